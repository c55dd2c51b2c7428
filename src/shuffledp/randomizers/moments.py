"""One bit about a number, or about its squared distance from the middle of the range: for its variance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.randomizers.base import PairBlanket, PairCounts
from shuffledp.randomizers.bits import PackedBits, fair_bits
from shuffledp.randomizers.categorical import RandomizedResponse
from shuffledp.randomizers.checks import local_budgets, matching, real_range
from shuffledp.randomizers.mixing import SampledLaw
from shuffledp.randomizers.noise import round_at_random, unit_fractions
from shuffledp.randomizers.wire import checked_reports, pack_integers, possible_integers, unpack_integers

_BINARY = RandomizedResponse(2)


@dataclass(frozen=True)
class TwoMoments:
    """One of two bits about a number, chosen by a fair coin, through binary randomized response.

    With t = (x - low)/(high - low), the first bit is 1 with probability t, the second with probability (2t - 1)^2. The
    report says which of the two it is, and its value. As a family over pairs of bits, it is binary randomized response
    to an analyst: the coin is independent of the record, and the worst pair differs in both bits. Numbers give such
    pairs only in part, so that what is certified is safe for them.

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
    >>> TwoMoments(0, 10).blanket_mass([0.0, 700.0]).round(3).tolist()
    [1.0, 0.0]
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        low, high = real_range(self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def name(self) -> str:
        """The spelling ``"two-moments"``."""
        return "two-moments"

    @property
    def mixture(self) -> bool:
        """One blanket, two fair bits, for every budget."""
        return True

    @property
    def two_point(self) -> bool:
        """Whether the bit was a lie is all that tells records apart."""
        return True

    def check_budgets(self, epsilon0: ArrayLike, delta0: ArrayLike) -> None:
        """Any pure budget is served, and an approximate one by its pure part."""
        del epsilon0, delta0

    def pair_blankets(self, epsilon0: float) -> tuple[PairBlanket, ...]:
        """Return the pair that differs in both bits: that of binary randomized response.

        It is (T) of docs/theorems/randomizers.md with two of four reports in A_x, and pairs that differ in one bit
        overlap more.

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
        """None: counting lies is all an attacker can do."""
        return _BINARY.witness_pairs(epsilon0)

    def blanket_mass(self, epsilon0: ArrayLike) -> FloatArray:
        """Chance of a fair bit at each budget: that of binary randomized response."""
        return _BINARY.blanket_mass(epsilon0)

    def sampled_law(self, epsilon0: ArrayLike) -> SampledLaw:
        """Chances that the bit is kept, and that it is a fair one, as drawn."""
        return _BINARY.sampled_law(epsilon0)

    def randomize(self, records: ArrayLike, epsilon0: ArrayLike, random: Randomness) -> NDArray[np.int64]:
        """One report per value, each under its own budget.

        Parameters
        ----------
        records : array_like of float, shape (n,)
            Values in [low, high].
        epsilon0 : float or array_like, shape (n,)
            Local budgets, nats, from 0 to 700; one for all, or one each.
        random : Randomness
            `secure_random()`, or `simulation_random(seed)` where no privacy is wanted.

        Returns
        -------
        ndarray of int64, shape (n,)
            0 or 1, the first bit; 2 or 3, the second one plus 2.

        Raises
        ------
        InvalidInput
            If a value is outside the range or NaN, or a budget is bad (the first such row is named, counting from 1).
        """
        fractions = unit_fractions(records, self.low, self.high)
        budgets = matching(local_budgets(epsilon0), fractions.size)
        second = fair_bits(fractions.size, random).astype(np.int64)
        chances = np.where(second == 1, (2.0 * fractions - 1.0) ** 2, fractions)
        return 2 * second + _BINARY.randomize(round_at_random(chances, random), budgets, random)

    @property
    def report_bits(self) -> int:
        """Bits of a report on the wire."""
        return 2

    def pack(self, reports: NDArray[np.int64]) -> PackedBits:
        """Encode reports as they travel; see `shuffledp.randomizers.wire.WireFormat`."""
        return pack_integers(reports, 2)

    def unpack(self, rows: PackedBits) -> NDArray[np.int64]:
        """Undo `pack`; those that are no possible report are refused."""
        return checked_reports(unpack_integers(rows, 2).view(np.int64), 4)

    def possible(self, rows: PackedBits) -> NDArray[np.bool_]:
        """Whether each row is a report of this family; see `WireFormat`."""
        return possible_integers(rows, 2, 4)
