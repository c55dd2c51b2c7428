"""The main job: records and personal budgets in, a private estimate and its guarantee out.

The order is part of the promise: budgets are checked, the guarantee is certified, and only then is a record
read.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from numpy.typing import ArrayLike

from shuffledp.numerics.randomness import Randomness
from shuffledp.protocol.collect import (
    census,
    check_choice,
    collect,
    collect_numbers,
    guarantee_for,
    make_release,
)
from shuffledp.protocol.columns import bounded_numbers, category_codes, read_labels
from shuffledp.protocol.frequencies import frequency
from shuffledp.protocol.means import mean
from shuffledp.protocol.mechanisms import frequency_oracle
from shuffledp.protocol.numbers import check_seen, number_randomizer
from shuffledp.protocol.release import Release
from shuffledp.protocol.weights import Weights
from shuffledp.randomizers.checks import real_range
from shuffledp.setting import Seen

FREQUENCY_SEEN: tuple[Seen, ...] = ("reports", "levels")


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
    """Estimate how frequent each category is, with a local randomizer of your choice in the shuffle model.

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
    mechanism : {"krr", "rr", "sue", "oue", "olh", "hadamard", "subset"}
        Randomized response over k categories ("rr": the same for exactly two), symmetric and optimized unary
        encoding, local hashing, Hadamard response, subset selection. Range of the hash and size of the subset are
        fixed for all users, as the budgets make best (`for_budgets`).
    weights : {"population", "precision"}
        How levels are combined when they are seen, see `frequency`.
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
    check_choice("seen", seen, FREQUENCY_SEEN)
    labels = read_labels(categories)
    family = frequency_oracle(mechanism, len(labels))
    budgets, population, source, _ = census(records, epsilon0, weights, random)
    randomizer = family.for_budgets(population.epsilons, population.counts)
    guarantee = guarantee_for(population, randomizer, seen, delta)
    shuffled = collect(category_codes(records, labels), budgets, randomizer, seen, source)
    analysis = frequency(shuffled, randomizer, weights=weights)
    return make_release(analysis, guarantee, source, weights, labels)


def estimate_mean(
    values: Sequence[float] | ArrayLike,
    low: float,
    high: float,
    epsilon0: ArrayLike,
    *,
    seen: Seen,
    delta: float,
    mechanism: str = "one-bit",
    delta0: ArrayLike = 0.0,
    clip: bool = False,
    weights: Weights = "population",
    random: Randomness | None = None,
) -> Release:
    """Estimate the mean of a number in a known range, with a local randomizer of your choice in the shuffle model.

    Parameters
    ----------
    values : sequence, array or polars Series of numbers, length n
        One number per user, in [low, high].
    low, high : float
        The range, finite, low < high. It is public: reading it off the values would leak.
    epsilon0 : float or array_like, shape (n,)
        Local budgets (nats, 0 to 700); one for all or one per user. Public, and independent of the values.
    seen : {"reports", "levels", "sum"}
        The analyst sees the reports without, or with, their senders' budgets, or only the reports' sum (not for
        added noise).
    delta : float
        Central delta of the guarantee, in (0, 1). No default.
    mechanism : {"one-bit", "laplace", "gaussian", "piecewise", "hybrid"}
        One randomized bit, Laplace or Gaussian noise on a grid, the piecewise mechanism, or its hybrid with one bit.
        Where levels are withheld, window and share of the last two are fixed for all users, as the budgets make best
        (`for_budgets`); where they are seen, they are the best ones of each budget.
    delta0 : float or array_like, shape (n,)
        Local delta0 in [0, 1), one for all or one per user; Gaussian noise needs it above 0, the others do not use it.
    clip : bool
        Move values outside [low, high] to the nearer end, which changes the target; else they are refused.
    weights : {"population", "precision"}
        How levels are combined when they are seen, see `frequency`.
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
    check_seen(mechanism, seen)
    ends = real_range(low, high)
    who = census(values, epsilon0, weights, random, delta0)
    randomizer = number_randomizer(mechanism, *ends, who.population, seen)
    guarantee = guarantee_for(who.population, randomizer, seen, delta)
    shuffled = collect_numbers(bounded_numbers(values, randomizer, clip=clip), who, randomizer, seen)
    analysis = mean(shuffled, randomizer, weights=weights)
    return make_release(analysis, guarantee, who.source, weights)
