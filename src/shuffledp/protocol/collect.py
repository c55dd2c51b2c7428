"""What every question shares: budgets checked, guarantee certified, and only then records read and collected."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.certify import certify
from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput
from shuffledp.guarantee import Guarantee
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness, secure_random
from shuffledp.protocol.columns import as_array, as_floats
from shuffledp.protocol.estimate import Estimate
from shuffledp.protocol.release import Release
from shuffledp.protocol.shuffler import ShuffledReports, shuffle_reports
from shuffledp.protocol.weights import WEIGHTS, Weights
from shuffledp.randomizers.base import LocalRandomizer
from shuffledp.setting import Seen, Setting


def prepare(
    records: Any,
    epsilon0: ArrayLike,
    randomizer: LocalRandomizer,
    seen: Seen,
    delta: float,
    weights: str,
    random: Randomness | None,
) -> tuple[FloatArray, Randomness, Guarantee]:
    """Check and certify everything that can be without the records; of them only the number is used."""
    check_choice("weights", weights, WEIGHTS)
    source = secure_random() if random is None else random
    if not isinstance(source, Randomness):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"random must come from secure_random() or simulation_random(seed); got {source!r}")
    try:
        n = len(records)
    except TypeError:
        raise InvalidInput(f"records must be a sequence or an array; got {type(records).__name__}") from None
    if n == 0:
        raise InvalidInput("there are no records; an estimate needs at least one user")
    budgets, population = _population(epsilon0, n)
    if population.epsilons[-1] == 0.0:
        raise InvalidInput("every epsilon0 is 0, so no report carries information; give some users a budget above 0")
    setting = Setting(population, randomizer, seen=seen, neighboring="replace-one")
    return budgets, source, certify(setting, delta)


def _population(epsilon0: ArrayLike, n: int) -> tuple[FloatArray, Budgets]:
    if isinstance(epsilon0, int | float | np.number):
        return np.asarray(epsilon0, dtype=np.float64), Budgets(epsilons=(float(epsilon0),), counts=(n,))
    column = as_array(epsilon0)
    if column.shape != (n,):
        raise InvalidInput(f"{n} records need {n} budgets, or one number for all; got {column.size}")
    budgets = as_floats(column, "epsilon0")
    return budgets, Budgets.of(budgets)


def collect(
    records: NDArray[Any], budgets: FloatArray, randomizer: LocalRandomizer, seen: Seen, random: Randomness
) -> ShuffledReports:
    """Randomize every record under its own budget, and shuffle the reports."""
    reports = randomizer.randomize(records, budgets, random)
    return shuffle_reports(reports, budgets, seen=seen, random=random)


def make_release(
    analysis: Estimate,
    guarantee: Guarantee,
    source: Randomness,
    weights: Weights,
    labels: tuple[Hashable, ...] | None = None,
) -> Release:
    """Put estimate and guarantee together."""
    setting = guarantee.setting
    shown = weights if setting.seen == "levels" else None
    return Release(analysis, guarantee, setting.budgets.n, setting.randomizer_name, source.private, shown, labels)


def check_choice(what: str, value: object, known: tuple[str, ...]) -> None:
    """Refuse a word that is not among the known ones."""
    if value not in known:
        raise InvalidInput(f"{what} must be one of {', '.join(known)}; got {value!r}")
