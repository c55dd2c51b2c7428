"""Randomizers of a number in a public range: one bit, a cell near the number, either of them, or two moments."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import InvalidInput, local_budgets, matching, population, real_range, shown, whole_number
from shuffledp.numerics.floats import FloatArray
from shuffledp.numerics.functions import exp_rounded, interpolated, logs_rounded
from shuffledp.numerics.randomness import Randomness
from shuffledp.randomizers.base import NumberLaw, PairBlanket, PairCounts, ReportSets
from shuffledp.randomizers.categorical import RandomizedResponse
from shuffledp.randomizers.mixing import SampledLaw
from shuffledp.randomizers.noise import round_at_random, unit_fractions
from shuffledp.randomizers.windows import WHOLE, Shape, WindowFamily, best_member, ideal_law, worst_variance
from shuffledp.randomizers.wire import (
    PackedBits,
    checked_reports,
    fair_bits,
    pack_integers,
    possible_integers,
    unpack_integers,
)

_BINARY = RandomizedResponse(2)


@dataclass(frozen=True)
class OneBit:
    """One bit about a number: the number is rounded at random to an end of its range, then randomized response.

    A value x becomes 1 with probability t = (x - low)/(high - low), else 0, and the bit goes through binary randomized
    response. The report's law is linear in t.

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
        """Name of the family on the command line: ``"one-bit"``."""
        return "one-bit"

    def channel(self, epsilon0: float) -> FloatArray:
        """Return the chances P(report | value) for both ends of the range, shape (2, 2).

        A value at the position t in [0, 1] of the range mixes the two rows by (1-t, t).

        Parameters
        ----------
        epsilon0 : float
            Local budget, nats, at least 0.
        """
        return _BINARY.channel(epsilon0)

    @property
    def mixture(self) -> bool:
        """Whether one privacy blanket serves every budget: True, it is the fair bit."""
        return True

    @property
    def two_point(self) -> bool:
        """Whether a report takes two values only: True, it is a bit."""
        return True

    @property
    def report_sets(self) -> ReportSets:
        """The sets of likely reports of the two ends of the range: one bit each, so they are disjoint."""
        return ReportSets(2, disjoint=True)

    def check_budgets(self, epsilon0: ArrayLike, delta0: ArrayLike) -> None:
        """Accept every local budget: reports are (epsilon0, 0)-LDP, which satisfies any delta0 as well."""
        del epsilon0, delta0

    def pair_blankets(self, epsilon0: float) -> tuple[PairBlanket, ...]:
        """Return the pair of the two ends of the range, relative to the uniform blanket on {0, 1}.

        No pair inside the range is worse: a value's law is a mixture of the end points' laws, so every value's report
        contains the blanket, and the hockey-stick divergence is jointly convex, so that a victim's pair (x0, x1) is at
        most as distinguishable as the worst pair of end points.

        Parameters
        ----------
        epsilon0 : float
            Local budget, nats, at least 0.
        """
        return _BINARY.pair_blankets(epsilon0)

    def pair_counts(self, epsilon0: ArrayLike) -> PairCounts | None:
        """Return None: a report has two outcomes only, so that no third record exists."""
        return _BINARY.pair_counts(epsilon0)

    def witness_pairs(self, epsilon0: float) -> tuple[PairBlanket, PairBlanket] | None:
        """Return None: with two outcomes no attack is stronger than counting ones."""
        return _BINARY.witness_pairs(epsilon0)

    def blanket_mass(self, epsilon0: ArrayLike) -> FloatArray:
        """Return gamma, the chance of a uniformly random bit, at each budget epsilon0 (nats)."""
        return _BINARY.blanket_mass(epsilon0)

    def randomize(
        self, records: ArrayLike, epsilon0: ArrayLike, random: Randomness, *, delta0: ArrayLike = 0.0
    ) -> NDArray[np.int64]:
        """Return one bit per value, each drawn with its own budget.

        Parameters
        ----------
        records : array_like of float, shape (n,)
            Values in [low, high].
        epsilon0 : float or array_like, shape (n,)
            Local budgets, nats, at least 0; one for all, or one each.
        random : Randomness
            `secure_random()`, or `simulation_random(seed)` where no privacy is wanted.
        delta0 : float or array_like, shape (n,)
            Accepted for a common signature and not used.

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
        """Return the bits as floats, 0.0 or 1.0, shape (n,)."""
        return reports.astype(np.float64)

    def number_law(self, epsilon0: ArrayLike, delta0: ArrayLike = 0.0) -> NumberLaw:
        """Return mean and variance of the bit given the value, as drawn: P(1) = p = gamma/2 + (1 - gamma) t.

        t in [0, 1] is the value's position in the range. The variance p (1 - p) = 1/4 - ((1 - gamma) (t - 1/2))^2 is
        exact.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, at least 0.
        delta0 : array_like
            Accepted for a common signature and not used.
        """
        del delta0
        law = _BINARY.sampled_law(epsilon0)
        half, square = 0.5 * law.blanket, law.keep * law.keep
        variance = np.stack((half * (1.0 - half), square, -square))
        return NumberLaw(half, law.keep, variance, np.ones_like(half))

    @property
    def report_bits(self) -> int:
        """Size of an encoded report, in bits: 1."""
        return _BINARY.report_bits

    def pack(self, reports: NDArray[np.int64]) -> PackedBits:
        """Encode reports as rows of bytes for transport, the inverse of `unpack`: shape (n, ceil(report_bits/8))."""
        return _BINARY.pack(reports)

    def unpack(self, rows: PackedBits) -> NDArray[np.int64]:
        """Return the reports encoded in rows of bytes; InvalidInput names the first row that is no report."""
        return _BINARY.unpack(rows)

    def possible(self, rows: PackedBits) -> NDArray[np.bool_]:
        """Return for each row of bytes whether it is a possible encoded report of this family: bool, shape (n,)."""
        return _BINARY.possible(rows)


# The piecewise mechanism for a bounded number, with exact chances and a window of the best width.


@dataclass(frozen=True)
class Piecewise(WindowFamily):
    """Piecewise mechanism on K cells: cells near the value are likely reports (Wang et al. 2019, on whole cells).

    The value is rounded at random to a window of w cells of 0..K-1, which are e^epsilon0 times likelier than the
    others. Exactly epsilon0-LDP. The paper's width is K/(e^(epsilon0/2) + 1); the one taken here has the least variance
    in the worst case, which is 2 % less at epsilon0 = 1 and a third less at 4.

    Parameters
    ----------
    low, high : float
        The range of the values, finite, low < high. It is public: choose it without looking at the records.
    cells : int
        Number K of cells, from 4 to 2^20; an odd number is raised by one. Default 4096.
    window : int, optional
        Number w of cells of the window, from 1 to K - 1, for every budget: a mixture family. By default the best
        number for each budget; then the spread of the reports reveals the budget, so this is not a
        mixture family.

    Raises
    ------
    InvalidInput
        If an end is not finite, low >= high, the width overflows, or a number of cells is out of range.

    Examples
    --------
    >>> Piecewise(0, 10).shape([0.5, 4.0]).window.tolist()
    [1920, 1001]
    """

    low: float
    high: float
    cells: int = 4096
    window: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.window is not None:
            what = "the piecewise mechanism takes a whole number of cells as its window,"
            object.__setattr__(self, "window", whole_number(self.window, what, 1, self.cells - 1))

    @property
    def name(self) -> str:
        """Name on the command line: ``"piecewise:K"``, or ``"piecewise:K:W"`` with a fixed window."""
        return f"piecewise:{self.cells}" + ("" if self.window is None else f":{self.window}")

    @property
    def mixture(self) -> bool:
        """Whether one privacy blanket serves every budget: True if the window is fixed."""
        return self.window is not None

    def shape(self, epsilon0: ArrayLike) -> Shape:
        """Return the shape of the reports at each budget: the width of the window; all reports are cells.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        budgets = local_budgets(epsilon0)
        full, none = np.full(budgets.shape, WHOLE), np.zeros(budgets.shape, dtype=np.int64)
        if self.window is not None:
            return Shape(np.full(budgets.shape, self.window), full, none)
        different, place = np.unique(budgets, return_inverse=True)
        least, most = np.ones(different.size, dtype=np.int64), np.full(different.size, self.cells // 2)
        full, none = np.full(different.size, WHOLE), np.zeros(different.size, dtype=np.int64)
        while (least < most).any():  # the worst variance falls and then rises with the window
            middle = (least + most) // 2
            here, next_ = (
                worst_variance(ideal_law(self.cells, Shape(window, full, none), different))
                for window in (middle, middle + 1)
            )
            rising = here <= next_
            least, most = np.where(rising, least, middle + 1), np.where(rising, middle, most)
        window = least[place].reshape(budgets.shape)
        return Shape(window, np.full(budgets.shape, WHOLE), np.zeros(budgets.shape, dtype=np.int64))

    def for_budgets(self, epsilon0: ArrayLike, counts: ArrayLike) -> Piecewise:
        """Return the member of the family with the one window of least error in the mean of these users' values.

        Parameters
        ----------
        epsilon0, counts : array_like, shape (levels,)
            Local budgets, nats from 0 to 700, and the number of users with each.
        """
        if self.window is not None:
            return self
        budgets, users = population(epsilon0, counts)
        choice = best_member(self.cells, self.shape, budgets, users)
        return replace(self, window=choice[0])


# The hybrid of piecewise mechanism and one bit, with the least variance in the worst case.

_BEST = np.array(
    [
        (0.61, 0.4349, 0.7246, 0.4888),
        (0.8, 0.425, 0.6442, 0.4817),
        (1.0, 0.4144, 0.5639, 0.473),
        (1.25, 0.4009, 0.4713, 0.4603),
        (1.5, 0.387, 0.3886, 0.446),
        (2.0, 0.3582, 0.2552, 0.4136),
        (2.5, 0.3286, 0.1618, 0.3778),
        (3.0, 0.2987, 0.1003, 0.3409),
        (3.5, 0.2692, 0.06139, 0.3042),
        (4.0, 0.2407, 0.03731, 0.269),
        (5.0, 0.1884, 0.01368, 0.2059),
        (6.0, 0.144, 0.005005, 0.1544),
        (7.0, 0.1082, 0.001836, 0.1145),
        (8.0, 0.08023, 0.0006731, 0.08344),
        (9.0, 0.05892, 0.0002472, 0.06065),
        (10.0, 0.04297, 9.088e-05, 0.0439),
        (12.0, 0.02255, 1.229e-05, 0.0228),
        (14.0, 0.01171, 1.663e-06, 0.01178),
        (17.0, 0.00434, 8.28e-08, 0.004348),
        (20.0, 0.001601, 4.122e-09, 0.001596),
        (25.0, 0.0003028, 2.742e-11, 0.000319),
    ]
)
"""Rows of budget, window over cells, share of the bits in omega, and distance of a bit's readings from the ends over
cells (of both together), with the least worst-case variance at that budget. Between them the logarithms of the last
three are interpolated. Only the error depends on it; tests compare it with a fresh minimisation."""


@dataclass(frozen=True)
class Hybrid(WindowFamily):
    """Hybrid mechanism: report a cell near the value, or one bit about it (Wang et al. 2019, least variance).

    The report says whether it is a cell or a bit. The blanket omega gives a cell with chance beta, else a bit, and
    outputs that fit the value, of either kind, are e^epsilon0 times likelier than under omega to the same constant: so
    the hybrid is one family of two levels of likelihood, exactly epsilon0-LDP. Below epsilon0 = 0.6 it is the one-bit
    mechanism. Its worst variance is 0.5 % below the paper's at epsilon0 = 1, 6 % at 2, 29 % at 4.

    Parameters
    ----------
    low, high : float
        The range of the values, finite, low < high. It is public: choose it without looking at the records.
    cells : int
        Number K of cells, from 4 to 2^20; an odd number is raised by one. Default 4096.
    fixed : tuple of int, optional
        Window (1 to K - 1 cells), share of the cells (0 to 2^24, in units of 2^-24) and inset of a bit's readings
        (0 to K/2 - 1 cells), the same for every budget: a mixture family. By default the best ones for each budget.

    Raises
    ------
    InvalidInput
        If an end is not finite, low >= high, the width overflows, or a whole number is out of range.

    Examples
    --------
    >>> Hybrid(0, 10).shape([0.5, 2.0]).share.tolist()
    [0, 12495670]
    """

    low: float
    high: float
    cells: int = 4096
    fixed: tuple[int, int, int] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fixed is None:
            return
        if len(self.fixed) != 3:
            raise InvalidInput(f"a fixed shape is a window, a share and an inset; got {shown(self.fixed)}")
        most = (("window", 1, self.cells - 1), ("share", 0, WHOLE), ("inset", 0, self.cells // 2 - 1))
        parts = zip(self.fixed, most, strict=True)
        checked = tuple(whole_number(part, f"the hybrid takes a whole {what}", *ends) for part, (what, *ends) in parts)
        object.__setattr__(self, "fixed", checked)

    @property
    def name(self) -> str:
        """Name on the command line: ``"hybrid:K"``, or ``"hybrid:K:W:B:C"`` with a fixed shape (W, B, C)."""
        return f"hybrid:{self.cells}" + "".join(f":{part}" for part in self.fixed or ())

    @property
    def mixture(self) -> bool:
        """Whether one privacy blanket serves every budget: True if the shape is fixed."""
        return self.fixed is not None

    def shape(self, epsilon0: ArrayLike) -> Shape:
        """Return the shape of the reports at each budget: window, share of cells, and how a bit is read.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        budgets = local_budgets(epsilon0)
        if self.fixed is not None:
            return Shape(*(np.full(budgets.shape, part) for part in self.fixed))
        at, cells = _BEST[:, 0], self.cells
        window, bits, inset = (exp_rounded(interpolated(budgets, at, logs)) for logs in logs_rounded(_BEST[:, 1:]).T)
        return Shape(
            np.clip(np.rint(window * cells), 1, cells // 2).astype(np.int64),
            np.where(budgets <= at[0], 0, np.rint((1.0 - bits) * WHOLE)).astype(np.int64),
            np.clip(np.rint(inset * (cells - 1) / 2.0), 0, cells // 2 - 1).astype(np.int64),
        )

    def for_budgets(self, epsilon0: ArrayLike, counts: ArrayLike) -> Hybrid:
        """Return the member of the family with the one shape of least error in the mean of these users' values.

        Parameters
        ----------
        epsilon0, counts : array_like, shape (levels,)
            Local budgets, nats from 0 to 700, and the number of users with each.
        """
        if self.fixed is not None:
            return self
        budgets, users = population(epsilon0, counts)
        return replace(self, fixed=best_member(self.cells, self.shape, budgets, users))


# One bit about a number, or about its squared distance from the middle of the range: for its variance.


@dataclass(frozen=True)
class TwoMoments:
    """One of two bits about a number, for its mean or its variance, through binary randomized response.

    A fair coin chooses the bit. With t = (x - low)/(high - low), the first bit is 1 with probability t, the second with
    probability (2t - 1)^2. The report says which of the two it is, and its value. It is certified as a family over all
    pairs of bits: the coin is independent of the record, and the worst two pairs differ in both bits, so that it is as
    private as binary randomized response. A number gives a random pair of bits, so the certificate holds for numbers
    too.

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
        """Name of the family in messages: ``"two-moments"``."""
        return "two-moments"

    @property
    def mixture(self) -> bool:
        """Whether one privacy blanket serves every budget: True, it is the fair coin and a fair bit."""
        return True

    @property
    def two_point(self) -> bool:
        """Whether two records differ on two outcomes only, the true and the turned bit: True."""
        return True

    def check_budgets(self, epsilon0: ArrayLike, delta0: ArrayLike) -> None:
        """Accept every local budget: reports are (epsilon0, 0)-LDP, which satisfies any delta0 as well."""
        del epsilon0, delta0

    def pair_blankets(self, epsilon0: float) -> tuple[PairBlanket, ...]:
        """Return the worst pair, two records that differ in both bits: that of binary randomized response.

        It is (T) of docs/theorems/randomizers.md with two of four reports in A_x, the set of likely reports; pairs that
        differ in one bit only overlap more.

        Parameters
        ----------
        epsilon0 : float
            Local budget, nats, at least 0.
        """
        return _BINARY.pair_blankets(epsilon0)

    def pair_counts(self, epsilon0: ArrayLike) -> PairCounts | None:
        """Return None: a pair has two outcomes only, so that no third record exists."""
        return _BINARY.pair_counts(epsilon0)

    def witness_pairs(self, epsilon0: float) -> tuple[PairBlanket, PairBlanket] | None:
        """Return None: with two outcomes no attack is stronger than counting turned bits."""
        return _BINARY.witness_pairs(epsilon0)

    def blanket_mass(self, epsilon0: ArrayLike) -> FloatArray:
        """Return gamma, the chance of a uniformly random bit, at each budget epsilon0 (nats)."""
        return _BINARY.blanket_mass(epsilon0)

    def sampled_law(self, epsilon0: ArrayLike) -> SampledLaw:
        """Return the chances, as drawn, that the true bit is kept, and that a fair bit replaces it, at each budget."""
        return _BINARY.sampled_law(epsilon0)

    def randomize(self, records: ArrayLike, epsilon0: ArrayLike, random: Randomness) -> NDArray[np.int64]:
        """Return one report per value, the number of a bit and its value, each drawn with its own budget.

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
            0 or 1: the first bit; 2 or 3: the second bit plus 2.

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
        """Size of an encoded report, in bits: 2."""
        return 2

    def pack(self, reports: NDArray[np.int64]) -> PackedBits:
        """Encode reports as rows of bytes for transport, the inverse of `unpack`: shape (n, ceil(report_bits/8))."""
        return pack_integers(reports, 2)

    def unpack(self, rows: PackedBits) -> NDArray[np.int64]:
        """Return the reports encoded in rows of bytes; InvalidInput names the first row that is no report."""
        return checked_reports(unpack_integers(rows, 2).view(np.int64), 4)

    def possible(self, rows: PackedBits) -> NDArray[np.bool_]:
        """Return for each row of bytes whether it is a possible encoded report of this family: bool, shape (n,)."""
        return possible_integers(rows, 2, 4)
