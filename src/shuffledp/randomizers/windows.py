"""Families for numbers that report a cell in a window, a bit, or either: two levels of likelihood on 2K outputs.

The outputs are K cells in a row (0..K-1), and K to 2K-1 for the two bits. The blanket omega gives a cell with chance
beta, uniform on the K, else a fair bit. A record t in [0, 1] is rounded at random to a pair of a window [s, s + w) of
cells, s near (K - w) t, and of a bit near t; A_x is that window and that bit, its outputs e^epsilon0 times likelier.
With f = beta w/K + (1 - beta)/2 this is (T) of docs/theorems/randomizers.md:

    R(x)(y) = omega(y) gamma (e^epsilon0 on A_x, 1 elsewhere),    gamma = 1/(f e^epsilon0 + 1 - f).

A bit is read as the cells c and K-1-c, which leaves both readings linear in t.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import local_budgets, matching, one_budget, real_range, whole_number
from shuffledp.numerics.floats import FloatArray
from shuffledp.numerics.functions import steps_between
from shuffledp.numerics.randomness import Randomness
from shuffledp.randomizers.base import LikelyShares, NumberLaw, PairBlanket, Triples
from shuffledp.randomizers.mixing import CHUNK, TwoLevelFamily, TwoLevelLaw, keep_masses, keep_thresholds, sampled_law
from shuffledp.randomizers.noise import ROUNDING_VARIANCE, round_at_random, uniform_below_each, unit_fractions
from shuffledp.randomizers.wire import PackedBits, checked_reports, pack_integers, possible_integers, unpack_integers

WHOLE = 1 << 24
"""Shares of omega are whole numbers over this."""
FEWEST_CELLS, MOST_CELLS = 4, 1 << 20
_MANY, _TRIED = 1000, 33


class Shape(NamedTuple):
    """The shape of reports at each budget: width of the window, share of the cells, and reading of a bit.

    Parameters
    ----------
    window : ndarray of int64
        Number w of cells of a window, from 1 to K - 1.
    share : ndarray of int64
        beta, the blanket's mass on the cells, in units of 2^-24; from 0 to 2^24.
    inset : ndarray of int64
        Distance c in cells from either end of the cell as which a bit is read, from 0 to K/2 - 1.
    """

    window: NDArray[np.int64]
    share: NDArray[np.int64]
    inset: NDArray[np.int64]


class WindowFamily(TwoLevelFamily):
    """A family that reports a cell or a bit near a number; a subclass is a frozen dataclass that chooses the shape.

    Attributes
    ----------
    low, high : float
        The range of the values, finite, low < high.
    cells : int
        Number K of cells, even, from 4 to 2^20.
    """

    k = 3  # more than two records: besides the outputs that separate two there are others
    low: float
    high: float
    cells: int

    def __post_init__(self) -> None:
        low, high = real_range(self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        half = whole_number(self.cells, "a window family takes a whole number of cells", FEWEST_CELLS, MOST_CELLS)
        object.__setattr__(self, "cells", half + half % 2)

    @abstractmethod
    def shape(self, epsilon0: ArrayLike) -> Shape:
        """Return the shape of the reports at each budget epsilon0 (nats): window, share of the cells, inset."""

    def law(self, epsilon0: ArrayLike) -> TwoLevelLaw:
        """Return the report laws of the two ends of the range, the worst pair, as their windows overlap least.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        window, share, _ = self.shape(epsilon0)
        outside, overlap = self.cells - window, 2 * window - self.cells
        weights = (  # whole numbers, over 2 K 2^24
            2 * share * np.minimum(window, outside) + (WHOLE - share) * self.cells,
            2 * share * np.maximum(overlap, 0),
            2 * share * np.maximum(-overlap, 0),
        )
        return TwoLevelLaw.of(local_budgets(epsilon0), *(weight.astype(np.float64) for weight in weights))

    def third(self, law: TwoLevelLaw, epsilon0: ArrayLike) -> FloatArray:
        """Return the chance that a record in the middle of the range reports what one end alone makes likely.

        It is the same for both ends. See `TwoLevelFamily.third`.
        """
        window, share, _ = self.shape(epsilon0)
        own = np.minimum(window, self.cells - window)
        start = (self.cells - window) // 2  # where K - w is odd, half of the windows start one further
        hit = np.maximum(own - start, 0) + np.maximum(own - start - (self.cells - window) % 2, 0)
        cells = share * (hit * law.top + (2 * own - hit) * law.gamma)
        bits = (WHOLE - share) * self.cells * (law.top + law.gamma) / 2.0
        return (cells + bits) / (2.0 * self.cells * WHOLE)

    @property
    def triples(self) -> Triples:
        """How the sets of likely reports of three records overlap, as a word of `Triples`: "listed".

        `worst_places` lists the worst triples.
        """
        return "listed"

    def triple_weights(self, epsilon0: float) -> tuple[float, float, float, float]:
        """Raise NotImplementedError: triples of numbers are not alike; see `worst_places` and `witness_pairs`."""
        raise NotImplementedError("records on a line are not alike")

    def worst_places(self, epsilon0: float) -> LikelyShares:
        """Return all triples of the positions 0, T, 2T, 1, 1 - T, 1 - 2T on [0, 1], T = w/(K - w).

        The worst triple of records is among them. Let phi be convex and homogeneous. The sum of phi(R(x0), R(x1),
        R(x2))(y) over all reports y is largest at one of these triples. The roundings of the three starts of windows
        may be coupled, floor(s_i + U) with one U: a mixture of triples of whole starts, with s_i - s_j on the same side
        of 0, of w and of -w as before. Where these sides do not change, the shares of the cells in given windows are
        affine in the starts, and what the bits add is convex in t. So the sum is at most a convex function there, which
        is largest at a corner; and at a corner each t_i is 0 or 1, or is another one, or differs from it by T.

        Parameters
        ----------
        epsilon0 : float
            Local budget, nats, from 0 to 700.
        """
        window, share, _ = (int(part) for part in self.shape(one_budget(epsilon0)))
        free = self.cells - window
        starts = sorted(
            {at for at in (0, window, 2 * window) if at <= free}
            | {free - at for at in (0, window, 2 * window) if at <= free}
        )
        triples = np.array(list(product(starts, repeat=3)), dtype=np.int64)
        edges = np.sort(np.concatenate((triples, triples + window), axis=1), axis=1)
        ends = np.full((len(triples), 1), self.cells)
        edges = np.concatenate((0 * ends, edges, ends), axis=1)  # between two edges no window begins or ends
        inside = (triples[:, None, :] <= edges[:, :-1, None]) & (edges[:, :-1, None] < triples[:, None, :] + window)
        cells = 2 * share * np.diff(edges, axis=1)
        bits = np.full((len(triples), 2), (WHOLE - share) * self.cells)
        omega = np.concatenate((cells, bits), axis=1) / (2.0 * WHOLE * self.cells)
        likely = np.concatenate((inside * free, (free - triples)[:, None, :], triples[:, None, :]), axis=1)
        return LikelyShares(omega, likely, free)

    def witness_pairs(self, epsilon0: float) -> tuple[PairBlanket, PairBlanket]:
        """Return the strongest attack among many users: two records relative to a third one, in both orders.

        The three records are the triple of `worst_places` with the largest sum of (R(x0) - R(x1))^2/R(x2).

        Parameters
        ----------
        epsilon0 : float
            Local budget, nats, from 0 to 700.
        """
        budget = one_budget(epsilon0)
        places = self.worst_places(budget)
        decay, rise = math.exp(-budget), -math.expm1(-budget)
        own = decay + rise * (places.likely / places.whole)  # R over e^epsilon0 gamma omega
        apart = places.omega * (own[..., 0] - own[..., 1]) ** 2 / own[..., 2]
        at = int(np.argmax(apart.sum(axis=1)))
        there = places.omega[at] > 0.0
        own, omega = own[at][there], places.omega[at][there]
        ratios = own[:, :2] / own[:, 2:]
        masses = omega * own[:, 2]
        moved = rise * (places.likely[at, there, 0] - places.likely[at, there, 1]) / places.whole
        losses = np.where(moved < 0.0, -np.log1p(-moved / own[:, 0]), np.log1p(moved / own[:, 1]))
        masses = masses / math.fsum(masses.tolist())
        return (
            PairBlanket(1.0, masses, ratios[:, 0], ratios[:, 1], losses, loss_ulps=16),
            PairBlanket(1.0, masses, ratios[:, 1], ratios[:, 0], -losses, loss_ulps=16),
        )

    def randomize(
        self, records: ArrayLike, epsilon0: ArrayLike, random: Randomness, *, delta0: ArrayLike = 0.0
    ) -> NDArray[np.int64]:
        """Return one report per value, a cell or a bit, each drawn with its own budget.

        Parameters
        ----------
        records : array_like of float, shape (n,)
            Values in [low, high].
        epsilon0 : float or array_like, shape (n,)
            Local budgets, nats from 0 to 700; one for all, or one each.
        random : Randomness
            `secure_random()`, or `simulation_random(seed)` where no privacy is wanted.
        delta0 : float or array_like, shape (n,)
            Accepted for a common signature and not used.

        Returns
        -------
        ndarray of int64, shape (n,)
            0 to K-1: a cell; K to 2K-1: a bit, as K plus the cell as which it is read.

        Raises
        ------
        InvalidInput
            If a value is outside the range or NaN, or a budget is bad (the first such row is named, counting
            from 1).
        """
        del delta0
        fractions = unit_fractions(records, self.low, self.high)
        budgets = matching(local_budgets(epsilon0), fractions.size)
        reports = np.empty(fractions.size, dtype=np.int64)
        plain = None if budgets.ndim else self._plan(budgets)
        for start in range(0, fractions.size, CHUNK):
            rows = slice(start, start + CHUNK)
            shape, thresholds = plain or self._plan(budgets[rows])
            reports[rows] = self._draw(fractions[rows], shape, thresholds, random)
        return reports

    def _draw(
        self, fractions: FloatArray, shape: Shape, thresholds: NDArray[np.uint64], random: Randomness
    ) -> NDArray[np.int64]:
        """Draw omega, or omega within A_x: first a whole number below the total weight, by which all is chosen."""
        n, cells = fractions.size, self.cells
        window, share, inset = (np.broadcast_to(part, (n,)) for part in shape)
        kept = random.bernoulli(np.broadcast_to(thresholds, (n,)), n)
        width = np.where(kept, window, cells)  # weight of the cells that may be drawn is 2 share width
        bits = np.where(kept, 1, 2) * (WHOLE - share) * cells
        drawn = uniform_below_each((2 * share * width + bits).astype(np.uint64), random).astype(np.int64)
        is_cell = drawn < 2 * share * width
        near = round_at_random(fractions * np.where(is_cell, cells - window, 1), random)
        bit = np.where(kept, near, (drawn - 2 * share * width) & 1)  # that weight is even
        as_cell = np.where(kept, near, 0) + drawn % width
        return np.where(is_cell, as_cell, cells + inset + bit * (cells - 1 - 2 * inset))

    def report_values(self, reports: NDArray[np.int64]) -> FloatArray:
        """Return the cell as which each report is read, 0 to K-1, as floats, shape (n,)."""
        return (reports % self.cells).astype(np.float64)

    def number_law(self, epsilon0: ArrayLike, delta0: ArrayLike = 0.0) -> NumberLaw:
        """Return mean and variance of a report read as a cell, given the position t in [0, 1] of the value, as drawn.

        The variance is an upper bound, above the true one by at most 1/4 squared cell, as the position of the window's
        start between two cells is not known.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats from 0 to 700.
        delta0 : array_like
            Accepted for a common signature and not used.
        """
        del delta0
        budgets = local_budgets(epsilon0)
        shape, thresholds = self._plan(budgets)
        drawn = sampled_law(thresholds)
        return reading(self.cells, shape, drawn.keep, drawn.blanket)

    @property
    def report_bits(self) -> int:
        """Size of an encoded report, in bits: enough for the numbers 0, ..., 2K - 1."""
        return (2 * self.cells - 1).bit_length()

    def pack(self, reports: NDArray[np.int64]) -> PackedBits:
        """Encode reports as rows of bytes for transport, the inverse of `unpack`: shape (n, ceil(report_bits/8))."""
        return pack_integers(reports, self.report_bits)

    def unpack(self, rows: PackedBits) -> NDArray[np.int64]:
        """Return the reports encoded in rows of bytes; InvalidInput names the first row that is no report."""
        return checked_reports(unpack_integers(rows, self.report_bits).view(np.int64), 2 * self.cells)

    def possible(self, rows: PackedBits) -> NDArray[np.bool_]:
        """Return for each row of bytes whether it is a possible encoded report of this family: bool, shape (n,)."""
        return possible_integers(rows, self.report_bits, 2 * self.cells)

    def _plan(self, budgets: FloatArray) -> tuple[Shape, NDArray[np.uint64]]:
        shape = self.shape(budgets)
        return shape, keep_thresholds(*keep_masses(budgets, own_mass(self.cells, shape.window, shape.share)))


def own_mass(cells: int, window: NDArray[np.int64], share: NDArray[np.int64]) -> FloatArray:
    """Return f = omega(A_x), the blanket's mass on a record's likely outputs.

    Parameters
    ----------
    cells : int
        Number K of cells.
    window : array_like of int
        Number w of cells of a window.
    share : array_like of int
        Share beta of reports that are cells, in units of 2^-24.
    """
    return (2 * share * window + (WHOLE - share) * cells) / (2.0 * WHOLE * cells)


def reading(cells: int, shape: Shape, keep: FloatArray, blanket: FloatArray) -> NumberLaw:
    """Return mean and variance of a report read as a cell, given the position t in [0, 1] of the value.

    With D = K - 1 - 2c, rho the chance of a cell within A_x and u = t - 1/2, a report of A_x has mean (K-1)/2 + (rho (K
    - w) + (1 - rho) D) u and, around (K-1)/2, the second moment rho ((w^2 - 1)/12 + e + (K - w)^2 u^2) + (1 - rho)
    D^2/4, e <= 1/4 from the rounding of the start; a report of omega has beta (K^2 - 1)/12 + (1 - beta) D^2/4.

    Parameters
    ----------
    cells : int
        Number K of cells.
    shape : Shape
        Shape of the reports at each budget: w, beta and c.
    keep, blanket : ndarray
        1 - gamma and gamma at each budget: the chances of A_x and of omega.
    """
    window, inset = shape.window.astype(np.float64), shape.inset.astype(np.float64)
    beta = shape.share / WHOLE
    rho = beta * window / (cells * own_mass(cells, shape.window, shape.share))
    free, spread = cells - window, cells - 1.0 - 2.0 * inset
    slope = keep * (rho * free + (1.0 - rho) * spread)
    within = rho * ((window**2 - 1.0) / 12.0 + ROUNDING_VARIANCE) + (1.0 - rho) * spread**2 / 4.0
    noise = beta * (cells**2 - 1.0) / 12.0 + (1.0 - beta) * spread**2 / 4.0
    flat = keep * within + blanket * noise
    curved = keep * rho * free**2 - slope**2
    middle = (cells - 1.0) / 2.0
    variance = np.stack((flat + curved / 4.0, -curved, curved))
    return NumberLaw(middle - slope / 2.0, slope, variance, middle + slope / 2.0)


def ideal_law(cells: int, shape: Shape, epsilon0: FloatArray) -> NumberLaw:
    """Return mean and variance of a report read as a cell, from the formula's chances, without rounding.

    Parameters
    ----------
    cells : int
        Number K of cells.
    shape : Shape
        Shape of the reports at each budget.
    epsilon0 : ndarray
        Local budgets, nats.
    """
    return reading(cells, shape, *keep_masses(epsilon0, own_mass(cells, shape.window, shape.share)))


def worst_variance(law: NumberLaw) -> FloatArray:
    """Return the largest variance, over records, of the unbiased estimate of t from one report; inf for slope 0."""
    with np.errstate(divide="ignore"):
        return largest_variance(law) / law.slope**2


def largest_variance(law: NumberLaw) -> FloatArray:
    """Return the largest variance over records t in [0, 1], for a reading whose variance is symmetric around 1/2.

    It is attained at an end or in the middle.
    """
    flat, tilt, curved = law.variance
    return np.maximum(flat, flat + tilt / 2.0 + curved / 4.0)


def best_member(
    cells: int, shape: Callable[[FloatArray], Shape], budgets: FloatArray, users: FloatArray
) -> tuple[int, int, int]:
    """Return the shape (window, share, inset) of least error in the mean of all values, if all users share it.

    The candidates are the best shapes for budgets in the range of the users' ones. The error is that with coefficients
    all equal, as where budgets are withheld: sum n_i Var_i / (sum n_i slope_i)^2, each Var_i the largest over records.

    Parameters
    ----------
    cells : int
        Number K of cells.
    shape : callable
        Returns the family's best shape at each budget.
    budgets, users : ndarray, shape (levels,)
        Local budgets (nats) of the levels, and numbers of users.
    """
    some = budgets[(users > 0.0) & (budgets > 0.0)]
    if not some.size:
        some = np.ones(1)
    if budgets.size > _MANY:  # a choice of least error does not need every budget
        order = np.argsort(budgets)
        starts = np.unique(np.linspace(0, budgets.size, _MANY + 1).astype(np.int64)[:-1])
        budgets, users = budgets[order][starts], np.add.reduceat(users[order], starts)
    tried = steps_between(some.min(), some.max(), _TRIED) if some.min() < some.max() else some[:1]
    candidates = shape(np.append(tried, np.unique(some)[:_TRIED]))
    best, chosen = math.inf, (0, 0, 0)
    for window, share, inset in zip(*candidates, strict=True):
        every = Shape(*(np.full(budgets.shape, part) for part in (window, share, inset)))
        law = ideal_law(cells, every, budgets)
        total = float((users * law.slope).sum()) ** 2
        error = float((users * largest_variance(law)).sum()) / total if total > 0.0 else math.inf
        if error <= best:
            best, chosen = error, (int(window), int(share), int(inset))
    return chosen
