"""The main job: records and personal budgets in, a private estimate and its guarantee out.

The order is part of the promise: budgets are checked, the guarantee is certified, and only then is a record
read.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.certify import certify
from shuffledp.budgets import Budgets, column_to_floats
from shuffledp.errors import InvalidInput
from shuffledp.guarantee import Guarantee
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness, secure_random
from shuffledp.protocol import analyzers
from shuffledp.protocol.analyzers import Estimate, Weights
from shuffledp.protocol.release import Release
from shuffledp.protocol.shuffler import ShuffledReports, shuffle_reports
from shuffledp.randomizers.base import LocalRandomizer
from shuffledp.randomizers.categorical import RandomizedResponse
from shuffledp.randomizers.numeric import OneBit
from shuffledp.setting import Seen, Setting

_CHUNK = 1 << 18  # rows at a time, so that temporaries stay small
FREQUENCY_SEEN: tuple[Seen, ...] = ("reports", "levels")
MEAN_SEEN: tuple[Seen, ...] = ("reports", "levels", "sum")


def estimate_frequency(
    records: Sequence[Hashable] | ArrayLike,
    categories: Iterable[Hashable],
    epsilon0: ArrayLike,
    *,
    seen: Seen,
    delta: float,
    mechanism: str = "krr",
    weights: Weights = "population",
    random: Randomness | None = None,
) -> Release:
    """Estimate how frequent each category is, with k-ary randomized response in the shuffle model.

    Parameters
    ----------
    records : sequence, array or polars Series, length n
        One category label per user: text, numbers or any hashable.
    categories : iterable, length k
        All possible labels, at least two, all different. They are public: reading them off the records
        would leak.
    epsilon0 : float or array_like, shape (n,)
        Local budgets (nats, 0 to 700); one for all or one per user. Public, and independent of the records.
    seen : {"reports", "levels"}
        Whether the analyst sees the reports without, or with, their senders' budgets. No default.
    delta : float
        Central delta of the guarantee, in (0, 1). No default.
    mechanism : {"krr", "rr"}
        Randomized response over k categories; "rr" is the same for exactly two.
    weights : {"population", "precision"}
        How levels are combined when they are seen, see `analyzers.frequency`.
    random : Randomness, optional
        Default `secure_random()`. `simulation_random(seed)` marks the release as not private.

    Returns
    -------
    Release
        ``.estimate`` has shape (k,), in the order of the categories.

    Raises
    ------
    InvalidInput
        On any bad argument; an unknown or missing label is named with its row, counting from 1.

    Examples
    --------
    >>> release = estimate_frequency(["a", "b"] * 500, ["a", "b"], 2.0, seen="reports", delta=1e-6)
    >>> release.private, release.estimate.shape
    (True, (2,))
    """
    _check_choice("mechanism", mechanism, ("krr", "rr"))
    _check_choice("seen", seen, FREQUENCY_SEEN)
    labels = _labels(categories)
    if mechanism == "rr" and len(labels) != 2:
        raise InvalidInput(f"mechanism 'rr' needs exactly two categories; got {len(labels)}; use 'krr'")
    randomizer = RandomizedResponse(len(labels))
    budgets, source, guarantee = _prepare(records, epsilon0, randomizer, seen, delta, weights, random)
    shuffled = _collect(_codes(records, labels), budgets, randomizer, seen, source)
    analysis = analyzers.frequency(shuffled, randomizer, weights=weights)
    return _release(analysis, guarantee, source, weights, labels)


def estimate_mean(
    values: Sequence[float] | ArrayLike,
    low: float,
    high: float,
    epsilon0: ArrayLike,
    *,
    seen: Seen,
    delta: float,
    mechanism: str = "one-bit",
    clip: bool = False,
    weights: Weights = "population",
    random: Randomness | None = None,
) -> Release:
    """Estimate the mean of a number in a known range, with one randomized bit per user in the shuffle model.

    Parameters
    ----------
    values : sequence, array or polars Series of numbers, length n
        One number per user, in [low, high].
    low, high : float
        The range, finite, low < high. It is public: reading it off the values would leak.
    epsilon0 : float or array_like, shape (n,)
        Local budgets (nats, 0 to 700); one for all or one per user. Public, and independent of the values.
    seen : {"reports", "levels", "sum"}
        The analyst sees the reports without, or with, their senders' budgets, or only the reports' sum.
    delta : float
        Central delta of the guarantee, in (0, 1). No default.
    mechanism : {"one-bit"}
        The randomizer.
    clip : bool
        Move values outside [low, high] to the nearer end, which changes the target; else they are refused.
    weights : {"population", "precision"}
        How levels are combined when they are seen, see `analyzers.frequency`.
    random : Randomness, optional
        Default `secure_random()`. `simulation_random(seed)` marks the release as not private.

    Returns
    -------
    Release
        ``.estimate`` is a float.

    Raises
    ------
    InvalidInput
        On any bad argument; a missing value or one outside the range is named with its row, counting from 1.

    Examples
    --------
    >>> release = estimate_mean([20.0, 40.0] * 500, 0.0, 100.0, 1.0, seen="reports", delta=1e-6)
    >>> release.private, release.n
    (True, 1000)
    """
    _check_choice("mechanism", mechanism, ("one-bit",))
    _check_choice("seen", seen, MEAN_SEEN)
    randomizer = OneBit(low, high)
    budgets, source, guarantee = _prepare(values, epsilon0, randomizer, seen, delta, weights, random)
    shuffled = _collect(_numbers(values, randomizer, clip=clip), budgets, randomizer, seen, source)
    analysis = analyzers.mean(shuffled, randomizer, weights=weights)
    return _release(analysis, guarantee, source, weights)


def _prepare(
    records: Any,
    epsilon0: ArrayLike,
    randomizer: LocalRandomizer,
    seen: Seen,
    delta: float,
    weights: str,
    random: Randomness | None,
) -> tuple[FloatArray, Randomness, Guarantee]:
    """Check and certify everything that can be without the records; of them only the number is used."""
    _check_choice("weights", weights, analyzers.WEIGHTS)
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
    column = _array(epsilon0)
    if column.shape != (n,):
        raise InvalidInput(f"{n} records need {n} budgets, or one number for all; got {column.size}")
    budgets = _floats(column, "epsilon0")
    return budgets, Budgets.of(budgets)


def _collect(
    records: NDArray[Any], budgets: FloatArray, randomizer: LocalRandomizer, seen: Seen, random: Randomness
) -> ShuffledReports:
    reports = randomizer.randomize(records, budgets, random)
    return shuffle_reports(reports, budgets, seen=seen, random=random)


def _release(
    analysis: Estimate,
    guarantee: Guarantee,
    source: Randomness,
    weights: Weights,
    labels: tuple[Hashable, ...] | None = None,
) -> Release:
    setting = guarantee.setting
    shown = weights if setting.seen == "levels" else None
    return Release(analysis, guarantee, setting.budgets.n, setting.randomizer_name, source.private, shown, labels)


def _labels(categories: Iterable[Hashable]) -> tuple[Hashable, ...]:
    if isinstance(categories, str):
        raise InvalidInput(f"categories must be a list of labels, not the text {categories!r}")
    labels = tuple(label.item() if isinstance(label, np.generic) else label for label in categories)
    if len(labels) < 2:
        raise InvalidInput(f"a frequency needs at least two categories; got {len(labels)}: {list(labels)}")
    seen_before: set[Hashable] = set()
    for label in labels:
        if _missing(label):
            raise InvalidInput(f"a category cannot be missing ({label!r}); write a word for it")
        if label in seen_before:
            raise InvalidInput(f"category {label!r} is given twice; name each category once")
        seen_before.add(label)
    return labels


def _codes(records: Any, labels: tuple[Hashable, ...]) -> NDArray[np.int64]:
    """Positions of the records among the labels; the first record that is none of them is named."""
    column = records if isinstance(records, list | tuple) else _array(records)
    if isinstance(column, np.ndarray) and _comparable(column, labels):
        codes = _number_codes(column, labels)
    else:
        codes = _label_codes(column, labels)
    bad = codes < 0
    if bad.any():
        row = int(np.argmax(bad))
        record = column[row].item() if isinstance(column[row], np.generic) else column[row]
        what = "is missing" if _missing(record) else f"is {record!r}, which is none of the categories"
        known = ", ".join(repr(label) for label in labels[:5]) + (", ..." if len(labels) > 5 else "")
        raise InvalidInput(f"the record in row {row + 1} {what} ({known}); add a category, or drop the row")
    return codes


def _comparable(column: NDArray[Any], labels: tuple[Hashable, ...]) -> bool:
    """Whether numpy compares these numbers with these labels as exactly as Python would."""
    whole = all(isinstance(label, int) and abs(label) < 2**53 for label in labels)
    number = all(isinstance(label, int | float) and abs(label) < 2**53 for label in labels)
    return (whole and column.dtype.kind in "bi") or (number and column.dtype.kind == "f")


def _number_codes(column: NDArray[Any], labels: tuple[Hashable, ...]) -> NDArray[np.int64]:
    values = np.asarray(labels)
    order = np.argsort(values)
    codes = np.empty(len(column), dtype=np.int64)
    for start in range(0, len(column), _CHUNK):
        chunk = column[start : start + _CHUNK]
        near = order[np.minimum(np.searchsorted(values, chunk, sorter=order), len(labels) - 1)]
        codes[start : start + _CHUNK] = np.where(values[near] == chunk, near, -1)
    return codes


def _label_codes(column: Any, labels: tuple[Hashable, ...]) -> NDArray[np.int64]:
    place: dict[Hashable, int] = {label: code for code, label in enumerate(labels)}
    codes = np.empty(len(column), dtype=np.int64)
    for start in range(0, len(column), _CHUNK):
        chunk = column[start : start + _CHUNK]
        entries = chunk.tolist() if isinstance(chunk, np.ndarray) else chunk
        try:
            found = np.fromiter(map(place.get, entries, repeat(-1)), dtype=np.int64, count=len(entries))
        except TypeError:
            raise InvalidInput("a record is not a label but a container; give one label per user") from None
        codes[start : start + _CHUNK] = found
    return codes


def _numbers(values: Any, randomizer: OneBit, *, clip: bool) -> FloatArray:
    column = _array(values)
    try:
        numbers = np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = _floats(column, "value")
    if numbers.ndim != 1:
        raise InvalidInput(f"values must be one-dimensional; got shape {numbers.shape}")
    missing = np.isnan(numbers)
    if missing.any():
        row = int(np.argmax(missing))
        raise InvalidInput(f"the value in row {row + 1} is missing (NaN); give a number, or drop the row")
    low, high = randomizer.low, randomizer.high
    if clip:
        return np.clip(numbers, low, high)
    outside = (numbers < low) | (numbers > high)
    if outside.any():
        row = int(np.argmax(outside))
        raise InvalidInput(
            f"the value in row {row + 1} is {numbers[row]}, outside [{low}, {high}]; "
            "clip, or widen the range without looking at the values"
        )
    return numbers


def _floats(column: NDArray[Any], name: str) -> FloatArray:
    """Numbers as they are; of anything else the first entry that is no number is named by its row."""
    return column_to_floats(column if column.dtype.kind in "iuf" else column.tolist(), name)


def _array(values: Any) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError:
        raise InvalidInput("a column must hold one entry per user; got rows of different lengths") from None


def _missing(label: object) -> bool:
    return label is None or (isinstance(label, float) and label != label)


def _check_choice(what: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InvalidInput(f"{what} must be one of {', '.join(known)}; got {value!r}")
