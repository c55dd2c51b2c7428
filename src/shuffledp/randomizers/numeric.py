"""Randomizers of a number in a known range."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.randomizers.base import NumberLaw, PairBlanket, PairCounts, ReportSets
from shuffledp.randomizers.bits import PackedBits
from shuffledp.randomizers.categorical import RandomizedResponse
from shuffledp.randomizers.checks import real_range
from shuffledp.randomizers.grid import round_at_random, unit_fractions

_BINARY = RandomizedResponse(2)


@dataclass(frozen=True)
class OneBit:
    """One bit about a number: round it at random to an end of its range, then randomized response.

    A value x becomes 1 with probability t = (x - low)/(high - low), else 0, and the bit goes through binary
    randomized response. The report's law is linear in t.

    Parameters
    ----------
    low, high : float
        The range of the values, finite, low < high. It is public: choose it without looking at the records.

    Raises
    ------
    InvalidInput
        If an end is not finite, low >= high, or the width overflows.

    Examples
    --------
    >>> OneBit(0.0, 10.0).channel(0.0).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        low, high = real_range(self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def name(self) -> str:
        """``"one-bit"``."""
        return "one-bit"

    def channel(self, epsilon0: float) -> FloatArray:
        """P(report | value) for the two end points; a value at fraction t mixes the rows by (1-t, t).

        Parameters
        ----------
        epsilon0 : float
            Local budget, nats, at least 0.
        """
        return _BINARY.channel(epsilon0)

    @property
    def mixture(self) -> bool:
        """One blanket, the fair bit, for every budget."""
        return True

    @property
    def two_point(self) -> bool:
        """Reports are bits."""
        return True

    @property
    def report_sets(self) -> ReportSets:
        """One bit for each end of the range."""
        return ReportSets(2, disjoint=True)

    def check_budgets(self, epsilon0: ArrayLike, delta0: ArrayLike) -> None:
        """Any pure budget is served, and an approximate one by its pure part."""
        del epsilon0, delta0

    def pair_blankets(self, epsilon0: float) -> tuple[PairBlanket, ...]:
        """Set the end points against the uniform blanket on {0, 1}: that of binary randomized response.

        No pair inside the range is worse: a value's law is a mixture of the end points' laws, so every
        value's report contains the blanket, and the hockey-stick divergence is jointly convex, so that a
        victim's pair (x0, x1) is at most as distinguishable as the worst pair of end points.

        Parameters
        ----------
        epsilon0 : float
            Local budget, nats, at least 0.
        """
        return _BINARY.pair_blankets(epsilon0)

    def pair_counts(self, epsilon0: ArrayLike) -> PairCounts | None:
        """None: the two outcomes are all there is."""
        return _BINARY.pair_counts(epsilon0)

    def witness_pairs(self, epsilon0: float) -> tuple[PairBlanket, PairBlanket] | None:
        """None: counting ones is all an attacker can do."""
        return _BINARY.witness_pairs(epsilon0)

    def blanket_mass(self, epsilon0: ArrayLike) -> FloatArray:
        """Chance of a uniformly random bit at each budget: that of binary randomized response."""
        return _BINARY.blanket_mass(epsilon0)

    def randomize(
        self, records: ArrayLike, epsilon0: ArrayLike, random: Randomness, *, delta0: ArrayLike = 0.0
    ) -> NDArray[np.int64]:
        """One bit per value, each under its own budget.

        Parameters
        ----------
        records : array_like of float, shape (n,)
            Values in [low, high].
        epsilon0 : float or array_like, shape (n,)
            Local budgets, nats, at least 0; one for all, or one each.
        random : Randomness
            `secure_random()`, or `simulation_random(seed)` where no privacy is wanted.
        delta0 : float or array_like, shape (n,)
            Not needed, and not used.

        Returns
        -------
        ndarray of int64, shape (n,)
            0 or 1, independent of each other given the values. The bit before randomized response is 1 with
            probability floor(2^64 t)/2^64, t rounded to double: within 2^-52 of (x - low)/(high - low), and
            exact at both ends.

        Raises
        ------
        InvalidInput
            If a value is outside the range or NaN (the first such row is named, counting from 1), or a budget
            is bad.

        Examples
        --------
        >>> from shuffledp.numerics.randomness import secure_random
        >>> OneBit(0, 10).randomize([0.0, 10.0], 700.0, secure_random()).tolist()
        [0, 1]
        """
        del delta0
        bits = round_at_random(unit_fractions(records, self.low, self.high), random)
        return _BINARY.randomize(bits, epsilon0, random)

    def report_values(self, reports: NDArray[np.int64]) -> FloatArray:
        """The bits themselves."""
        return reports.astype(np.float64)

    def number_law(self, epsilon0: ArrayLike, delta0: ArrayLike = 0.0) -> NumberLaw:
        """Mean and variance of the bit, as drawn: it is 1 with probability p = gamma/2 + (1 - gamma) t.

        p (1 - p) = 1/4 - ((1 - gamma) (t - 1/2))^2 is exact.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, at least 0.
        delta0 : array_like
            Not needed, and not used.
        """
        del delta0
        law = _BINARY.sampled_law(epsilon0)
        half, square = 0.5 * law.blanket, law.keep * law.keep
        variance = np.stack((half * (1.0 - half), square, -square))
        return NumberLaw(half, law.keep, variance, np.ones_like(half))

    @property
    def report_bits(self) -> int:
        """Bits of a report on the wire."""
        return _BINARY.report_bits

    def pack(self, reports: NDArray[np.int64]) -> PackedBits:
        """Reports as they travel; see `shuffledp.randomizers.wire.WireFormat`."""
        return _BINARY.pack(reports)

    def unpack(self, rows: PackedBits) -> NDArray[np.int64]:
        """Reports as they were before `pack`."""
        return _BINARY.unpack(rows)

    def possible(self, rows: PackedBits) -> NDArray[np.bool_]:
        """Whether each row is a report of this family; see `WireFormat`."""
        return _BINARY.possible(rows)
