"""Quantiles of a number: its bins are the leaves of a tree of ranges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.errors import InvalidInput
from shuffledp.guarantee import Guarantee
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.protocol.collect import census, check_choice, collect, guarantee_for
from shuffledp.protocol.columns import bounded_numbers
from shuffledp.protocol.histogram import Bins
from shuffledp.protocol.ranges import RangeEstimate, range_estimate
from shuffledp.protocol.weights import Weights
from shuffledp.randomizers.tree import RangeTree
from shuffledp.setting import Seen

QUANTILE_SEEN: tuple[Seen, ...] = ("reports", "levels")


@dataclass(frozen=True, eq=False)
class RangeRelease:
    """Private quantiles, and all ranges besides, with their central guarantee.

    Parameters
    ----------
    distribution : RangeEstimate
        Fractions of all ranges of bins.
    edges : ndarray, shape (bins + 1,)
        Of the bins, public.
    probabilities : ndarray, shape (quantiles,)
        Which quantiles were asked for.
    guarantee : Guarantee
        The certified central guarantee, computed before a record was touched; it covers all of this.
    n : int
        Number of users.
    mechanism : str
        The randomizer's name, such as ``"tree:256:4"``.
    private : bool
        False if the noise came from `simulation_random`: then nothing here is private.
    weights : {"population", "precision"} or None
        How levels were combined; None where they were withheld.
    """

    distribution: RangeEstimate = field(repr=False)
    edges: FloatArray = field(repr=False)
    probabilities: FloatArray
    guarantee: Guarantee = field(repr=False)
    n: int
    mechanism: str
    private: bool
    weights: Weights | None = None

    @property
    def estimate(self) -> FloatArray:
        """The quantiles, in the order of `probabilities`."""
        return self.distribution.quantiles(self.probabilities, self.edges)

    @property
    def uninformative(self) -> int:
        """Users whose report carries no information (epsilon0 = 0); they are taken to be like the others."""
        return self.distribution.uninformative

    def confidence_interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends, edges of bins, for each quantile by itself; see `RangeEstimate.quantile_interval`."""
        return self.distribution.quantile_interval(self.probabilities, self.edges, level)


def estimate_quantiles(
    values: Sequence[float] | ArrayLike,
    low: float,
    high: float,
    probabilities: ArrayLike,
    epsilon0: ArrayLike,
    *,
    bins: int,
    seen: Seen,
    delta: float,
    branching: int = 4,
    clip: bool = False,
    weights: Weights = "population",
    random: Randomness | None = None,
) -> RangeRelease:
    """Estimate quantiles of a number in a known range, and the fractions of all its ranges, in the shuffle model.

    Parameters
    ----------
    values : sequence, array or polars Series of numbers, length n
        One number per user, in [low, high].
    low, high : float
        The range, finite, low < high. It is public: reading it off the values would leak.
    probabilities : float or array_like
        Which quantiles, in (0, 1): 0.5 is the median.
    epsilon0 : float or array_like, shape (n,)
        Local budgets (nats, 0 to 700); one for all or one per user. Public, and independent of the values.
    bins : int
        Number of bins of equal width, from 2 to 2^22: quantiles are told to a bin. Public.
    seen : {"reports", "levels"}
        Whether the analyst sees the reports without, or with, their senders' budgets. No default.
    delta : float
        Central delta of the guarantee, in (0, 1). No default.
    branching : int
        Children of a node of the tree; default 4.
    clip : bool
        Move values outside [low, high] to the nearer end, which changes the target; else they are refused.
    weights : {"population", "precision"}
        How levels are combined when they are seen, see `frequency`.
    random : Randomness, optional
        Default `secure_random()`. `simulation_random(seed)` marks the release as not private.

    Returns
    -------
    RangeRelease
        ``.estimate`` and ``.confidence_interval()`` for the quantiles; ``.distribution`` for ranges.

    Raises
    ------
    InvalidInput
        On any bad argument; a missing value or one outside the range is named with its row, counting from 1.

    Examples
    --------
    >>> ages = [20.0, 40.0, 65.0] * 500
    >>> release = estimate_quantiles(ages, 0, 100, [0.5, 0.9], 2.0, bins=50, seen="reports", delta=1e-6)
    >>> release.mechanism, release.estimate.shape
    ('tree:50:4', (2,))
    """
    check_choice("seen", seen, QUANTILE_SEEN)
    wanted = read_probabilities(probabilities)
    grid, tree = Bins(low, high, bins), RangeTree(bins, branching)
    who = census(values, epsilon0, weights, random)
    guarantee = guarantee_for(who.population, tree, seen, delta)
    codes = grid.codes(bounded_numbers(values, grid, clip=clip))
    distribution = range_estimate(collect(codes, who.budgets, tree, seen, who.source), tree, weights=weights)
    shown = weights if seen == "levels" else None
    n = who.population.n
    return RangeRelease(distribution, grid.edges, wanted, guarantee, n, tree.name, who.source.private, shown)


def read_probabilities(probabilities: Any) -> FloatArray:
    """Check which quantiles are asked for: numbers in (0, 1), at least one."""
    try:
        wanted = np.atleast_1d(np.asarray(probabilities, dtype=np.float64))
    except (TypeError, ValueError):
        raise InvalidInput(f"probabilities of quantiles must be numbers in (0, 1); got {probabilities!r}") from None
    inside = (wanted > 0.0) & (wanted < 1.0)
    if wanted.ndim != 1 or wanted.size == 0 or not inside.all():
        raise InvalidInput(f"probabilities of quantiles must be numbers in (0, 1); got {probabilities!r}")
    return wanted
