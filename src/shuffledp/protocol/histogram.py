"""The histogram of a number: its bins are categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import InvalidInput
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.protocol.collect import census, check_choice, collect, guarantee_for, make_release
from shuffledp.protocol.columns import bounded_numbers
from shuffledp.protocol.frequencies import frequency
from shuffledp.protocol.mechanisms import frequency_oracle
from shuffledp.protocol.release import Release
from shuffledp.protocol.weights import Weights
from shuffledp.randomizers.checks import MAX_COUNTED, real_range, whole_number
from shuffledp.setting import Seen

HISTOGRAM_SEEN: tuple[Seen, ...] = ("reports", "levels")


@dataclass(frozen=True)
class Bins:
    """Bins of equal width over a public range; the last one is closed, the others hold their lower edge only.

    Parameters
    ----------
    low, high : float
        The range, finite, low < high.
    count : int
        How many bins, from 2 to 2^24.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range, or the bins are too narrow to be told apart in double precision.

    Examples
    --------
    >>> Bins(0.0, 10.0, 4).codes(np.array([0.0, 2.5, 9.9, 10.0])).tolist()
    [0, 1, 3, 3]
    """

    low: float
    high: float
    count: int

    def __post_init__(self) -> None:
        low, high = real_range(self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        object.__setattr__(
            self, "count", whole_number(self.count, "bins must be a whole number, such as 20,", 2, MAX_COUNTED)
        )
        if not (np.diff(self.edges) > 0.0).all():
            raise InvalidInput(
                f"{self.count} bins over [{low}, {high}] are too narrow for double precision; take fewer"
            )

    @property
    def edges(self) -> FloatArray:
        """The public edges, shape (count + 1,)."""
        return np.linspace(self.low, self.high, self.count + 1)

    def codes(self, numbers: FloatArray) -> NDArray[np.int64]:
        """Bin of each number of the range, 0..count-1."""
        return np.searchsorted(self.edges[1:-1], numbers, side="right").astype(np.int64)


def estimate_histogram(
    values: Sequence[float] | ArrayLike,
    low: float,
    high: float,
    bins: int,
    epsilon0: ArrayLike,
    *,
    mechanism: str,
    seen: Seen,
    delta: float,
    clip: bool = False,
    weights: Weights = "population",
    random: Randomness | None = None,
) -> Release:
    """Estimate the fraction of the values in each bin of a known range, in the shuffle model.

    Parameters
    ----------
    values : sequence, array or polars Series of numbers, length n
        One number per user, in [low, high].
    low, high : float
        The range, finite, low < high. It is public: reading it off the values would leak.
    bins : int
        Number of bins of equal width, at least 2; the last one is closed, so that `high` is in it. Public.
    epsilon0 : float or array_like, shape (n,)
        Local budgets (nats, 0 to 700); one for all or one per user. Public, and independent of the values.
    mechanism : {"krr", "rr", "sue", "oue", "olh", "hadamard", "subset"}
        The local randomizer of the bins, as for `estimate_frequency`. No default.
    seen : {"reports", "levels"}
        Whether the analyst sees the reports without, or with, their senders' budgets. No default.
    delta : float
        Central delta of the guarantee, in (0, 1). No default.
    clip : bool
        Move values outside [low, high] to the nearer end, which changes the target; else they are refused.
    weights : {"population", "precision"}
        How levels are combined when they are seen, see `frequency`.
    random : Randomness, optional
        Default `secure_random()`. `simulation_random(seed)` marks the release as not private.

    Returns
    -------
    Release
        ``.estimate`` has shape (bins,), ``.categories`` are the bins' edges (lower, upper). For long ranges and
        quantiles use `estimate_quantiles`, whose error does not grow with their length.

    Raises
    ------
    InvalidInput
        On any bad argument; a missing value or one outside the range is named with its row, counting from 1.

    Examples
    --------
    >>> ages = [20.0, 40.0, 65.0] * 500
    >>> release = estimate_histogram(ages, 0, 100, 4, 2.0, mechanism="oue", seen="levels", delta=1e-6)
    >>> release.categories[-1], release.estimate.shape
    ((75.0, 100.0), (4,))
    """
    check_choice("seen", seen, HISTOGRAM_SEEN)
    grid = Bins(low, high, bins)
    family = frequency_oracle(mechanism, grid.count)
    who = census(values, epsilon0, weights, random)
    randomizer = family.for_budgets(who.population.epsilons, who.population.counts)
    guarantee = guarantee_for(who.population, randomizer, seen, delta)
    codes = grid.codes(bounded_numbers(values, grid, clip=clip))
    analysis = frequency(collect(codes, who.budgets, randomizer, seen, who.source), randomizer, weights=weights)
    edges = grid.edges.tolist()
    return make_release(analysis, guarantee, who.source, weights, tuple(pairwise(edges)))
