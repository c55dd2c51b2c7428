"""What every question shares: budgets checked, guarantee certified, and only then records read and collected."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting import certify
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
from shuffledp.randomizers.base import AnyLaw, NumberRandomizer, RandomizerLaw
from shuffledp.setting import Seen, Setting


class Sampler(Protocol):
    """Whatever draws reports."""

    def randomize(self, records: ArrayLike, epsilon0: ArrayLike, random: Randomness) -> NDArray[Any]:
        """One report per record, each with its own budget (scalar or shape (n,))."""
        ...


class Census(NamedTuple):
    """Who takes part: known before a record is read.

    Parameters
    ----------
    budgets : ndarray, shape () or (n,)
        Each user's local budget, nats; one for all, or one each.
    population : Budgets
        The same, counted.
    source : Randomness
        Where the noise comes from.
    deltas : ndarray, shape () or (n,)
        Each user's local delta0; one for all, or one each.
    """

    budgets: FloatArray
    population: Budgets
    source: Randomness
    deltas: FloatArray


def census(
    records: Any, epsilon0: ArrayLike, weights: str, random: Randomness | None, delta0: ArrayLike = 0.0
) -> Census:
    """Check everything that can be without the records and the randomizer; of the records only the number is used."""
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
    budgets, deltas, population = _population(epsilon0, delta0, n)
    if population.epsilons[-1] == 0.0:
        raise InvalidInput("every epsilon0 is 0, so no report carries information; give some users a budget above 0")
    return Census(budgets, population, source, deltas)


def guarantee_for(population: Budgets, randomizer: AnyLaw, seen: Seen, delta: float) -> Guarantee:
    """Certify the shuffled reports of that very randomizer."""
    return certify(Setting(population, randomizer, seen=seen, neighboring="replace-one"), delta)


def prepare(
    records: Any,
    epsilon0: ArrayLike,
    randomizer: RandomizerLaw,
    seen: Seen,
    delta: float,
    weights: str,
    random: Randomness | None,
) -> tuple[FloatArray, Randomness, Guarantee]:
    """Check and certify everything that can be without the records; of them only the number is used."""
    budgets, population, source, _ = census(records, epsilon0, weights, random)
    return budgets, source, guarantee_for(population, randomizer, seen, delta)


def _population(epsilon0: ArrayLike, delta0: ArrayLike, n: int) -> tuple[FloatArray, FloatArray, Budgets]:
    if isinstance(epsilon0, int | float | np.number) and isinstance(delta0, int | float | np.number):
        one = Budgets(epsilons=(float(epsilon0),), counts=(n,), deltas=(float(delta0),))
        return np.asarray(epsilon0, dtype=np.float64), np.asarray(delta0, dtype=np.float64), one
    budgets, deltas = _budget_column(epsilon0, "epsilon0", n), _budget_column(delta0, "delta0", n)
    everyone = np.broadcast_to(budgets, (n,))
    return budgets, deltas, Budgets.of(everyone, deltas if deltas.ndim or deltas else None)


def _budget_column(values: ArrayLike, name: str, n: int) -> FloatArray:
    if isinstance(values, int | float | np.number):
        return np.asarray(values, dtype=np.float64)
    column = as_array(values)
    if column.shape != (n,):
        what = "budgets" if name == "epsilon0" else name
        raise InvalidInput(f"{n} records need {n} {what}, or one number for all; got {column.size}")
    return as_floats(column, name)


def collect(
    records: NDArray[Any], budgets: FloatArray, randomizer: Sampler, seen: Seen, random: Randomness
) -> ShuffledReports:
    """Randomize every record under its own budget, and shuffle the reports."""
    reports = randomizer.randomize(records, budgets, random)
    return shuffle_reports(reports, budgets, seen=seen, random=random)


def collect_numbers(values: NDArray[Any], who: Census, randomizer: NumberRandomizer, seen: Seen) -> ShuffledReports:
    """Randomize every number under its own budget, delta0 included, and shuffle the reports."""
    reports = randomizer.randomize(values, who.budgets, who.source, delta0=who.deltas)
    deltas = None if who.population.is_pure else who.deltas
    return shuffle_reports(reports, who.budgets, seen=seen, random=who.source, deltas=deltas)


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
