"""All record vectors of users who send one bit, in few crowds: what (C) and (B) of the count theorem evaluate.

A user of a group may send 1 with chance s (record 0) or 1 - s (record 1). Only how many of a group hold 1 matters. Its
possible numbers 0..n are cut into parts first..last: then `first` users certainly hold 1, `n - last` certainly hold 0,
and the others are open; each of these is a coin with chance 2s by itself, and is told otherwise (B). The inner value
does not increase with the number of coins, so that number may be blocked; with no open user nothing is lost.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import NotConverged
from shuffledp.numerics.counts import SuccessCount
from shuffledp.numerics.floats import EPS, TINY, Enclosure, FloatArray, Upper, deflated, inflated, round_up, roundoff

# The best threshold test on a count of independent bits, for many crowds at once.
#
# S is a sum of independent bits; for an excess r >= 0 the best threshold test has the value
#
#     psi(r) = max_m [ P(S = m) - r P(S > m) ].                                                             (psi)
#
# With r = e^theta - 1 and S tilted by e^{theta S} (P~ its law, M its moment generating function at theta),
#
#     P(S = m) - r P(S > m) = M e^{-theta m} sum_{d >= 0} c_d P~(m + d),    c_0 = 1,  c_d = -r e^{-theta d},   (T)
#     P(S = m+1) - r P(S > m+1) - [P(S = m) - r P(S > m)] = M e^{-theta m} [P~(m + 1) - P~(m)].
#
# So the best m is a mode of P~, and a mode of a sum of independent bits lies at the floor or the ceiling of its mean
# (Darroch 1964): three candidates next to the mean are enough. All crowds share the tilt, and the transform of a
# crowd is a product of powers of the same few functions of y: crowds cost one matrix product and one exponential.
#
# Rounding. With d cut at D and the window of N values around the mean,
#
#     sum_{d <= D} c_d P~(m + d) = 1/N sum_y M~(y) e^{-iym} kappa(y) + aliases,    y = 2 pi j/N,
#     kappa(y) = (1 - e^{-iy})/(1 - q) + r q^(D+1)/(1 - q),    q = e^{-theta - iy}.
#
# |c_d| <= 1, so aliases and what is cut weigh at most P~(|S - mean| >= t), which Bernstein's inequality bounds by
# 2 exp(-t^2/(2 (v + t/3))), v the variance. Each bit gives |1 + p (e^{iy} - 1)|^2 = 1 - 2p(1-p)(1 - cos y), so that
# |M~(y)| <= exp(-v (1 - cos y)): points beyond exp(-`_FALL`) are left out and charged. Exponents are sums of terms
# known to a few EPS each, whose absolute values are summed and charged. psi falls in r: theta is rounded down for the
# upper end, and for the lower end what that adds is taken off again.

_FALL = 46.0
_AT_ONCE = 1 << 15
_NEGLIGIBLE = 1e-150
"""Excess below which 0 is used, as e^theta - 1 would leave double range."""
_OFFSETS = np.array([-1.0, 0.0, 1.0])


@dataclass(frozen=True, eq=False)
class BitCrowds:
    """Sums of independent bits ("crowds"): each row counts how many bits of each group one sum has.

    Parameters
    ----------
    chances : ndarray, shape (groups,)
        Chance that a bit of the group is 1, in (0, 1); the doubles given are taken as exact.
    flipped : ndarray of bool, shape (groups,)
        Whether a bit of the group is 1 with chance 1 - chance, exactly, instead.
    counts : ndarray, shape (crowds, groups)
        Number of bits of each group in each crowd: whole numbers >= 0, as floats.
    """

    chances: FloatArray
    flipped: np.ndarray
    counts: FloatArray

    def best_thresholds(self, excess: float) -> Enclosure:
        """Enclose log psi(excess) for each crowd, shape (crowds,); a lower end of -inf certifies nothing.

        psi(r) = max_m [P(S = m) - r P(S > m)] is the value of the best threshold test on the crowd's sum S.

        Parameters
        ----------
        excess : float
            The argument r >= 0 of psi, good to 8 EPS relative; inf counts as 1e300.

        Raises
        ------
        NotConverged
            If there are so many bits that doubles do not hold their mean to within 1/4.
        """
        tilt = _Tilt.of(self, min(excess, 1e300))
        mean = self.counts @ tilt.chances
        if 16.0 * EPS * float(mean.max(initial=0.0)) > 0.2:
            raise NotConverged("the mean of so many bits is not known to a quarter; state fewer users")
        order = np.argsort(self.counts @ tilt.variances, kind="stable")
        lower, upper = np.empty(order.size), np.empty(order.size)
        start = 0
        while start < order.size:
            step = self._chunk(tilt, order[start:])
            mine = order[start : start + step]
            lower[mine], upper[mine] = tilt.evaluate(self.counts[mine], mean[mine])
            start += step
        return Enclosure(lower, upper)

    def _chunk(self, tilt: _Tilt, order: np.ndarray) -> int:
        """How many crowds, ascending by variance, are evaluated together: alike ones, and not more than fit."""
        least = float(self.counts[order[0]] @ tilt.variances)
        alike = order[: _AT_ONCE // 4]
        spread = self.counts[alike] @ tilt.variances
        step = max(1, int(np.searchsorted(spread, 1.5 * least + 10.0, side="right")))
        return max(1, min(step, _AT_ONCE // _points(least, _window(float(spread[step - 1])))[1].size))


def _window(variance: float) -> int:
    """Distance t from the mean beyond which Bernstein's inequality leaves 2 e^-_FALL."""
    third = _FALL / 3.0
    return math.ceil((third + math.sqrt(third * third + 2.0 * _FALL * variance)) * (1.0 + 1e-9)) + 1


def _points(variance: float, window: int) -> tuple[int, FloatArray]:
    """N, odd, and the points y >= 0 at which a crowd of at least that variance is not negligible."""
    period = 2 * window + 9
    most = period // 2
    if variance > 0.5 * _FALL:
        reach = 2.0 * math.asin(math.sqrt(0.5 * _FALL / variance))
        most = min(most, math.ceil(reach * period / (2.0 * math.pi)) + 1)
    return period, np.arange(most + 1.0) * (2.0 * math.pi / period)


@dataclass(frozen=True, eq=False)
class _Tilt:
    """One tilt theta, and what it makes of one bit of each group.

    ``theta`` is a double with e^theta - 1 <= r, ``missing`` bounds (r - (e^theta - 1))/r, ``logs`` are the logs of the
    moment generating functions, ``chances`` and ``variances`` those of the tilted bits.
    """

    theta: float
    missing: float
    logs: FloatArray
    chances: FloatArray
    variances: FloatArray

    @classmethod
    def of(cls, crowds: BitCrowds, excess: float) -> _Tilt:
        """Tilt so that the best threshold lies at the mean."""
        negligible = excess < _NEGLIGIBLE
        theta = 0.0 if negligible else math.log1p(excess * (1.0 - 16.0 * EPS)) * (1.0 - 8.0 * EPS)
        s, odds = crowds.chances, crowds.chances / (1.0 - crowds.chances)
        plain, mirrored = odds * math.exp(theta), odds * math.exp(-theta)
        p = np.where(crowds.flipped, 1.0 / (1.0 + mirrored), plain / (1.0 + plain))
        q = np.where(crowds.flipped, mirrored / (1.0 + mirrored), 1.0 / (1.0 + plain))
        logs = np.where(crowds.flipped, theta + np.log1p(s * math.expm1(-theta)), np.log1p(s * math.expm1(theta)))
        # of a negligible r all is missing: r P(S > m) <= r, and P~ is bounded by 2 e^-_FALL at least
        return cls(theta, 1e-100 if negligible else (32.0 + 16.0 * theta) * EPS, logs, p, p * q)

    def evaluate(self, counts: FloatArray, mean: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bounds on log psi for crowds of like variance."""
        variance = counts @ self.variances
        window = _window(float(variance.max()))
        period, y = _points(float(variance.min()) * (1.0 - 1e-12), window)
        centre = np.rint(mean)
        size, angle, doubt = self._powers(counts, mean - centre, y)
        kernel = self._kernel(y, window + 2)
        weights = np.where(y == 0.0, 1.0, 2.0) / period
        factor = weights[:, None] * kernel[:, None] * np.exp(-1j * np.outer(y, _OFFSETS))
        value = (size * np.cos(angle)) @ factor.real - (size * np.sin(angle)) @ factor.imag
        most = size @ weights + 2.0 * math.exp(-_FALL)  # at least every P~
        around = (size @ (weights * np.abs(kernel))) * np.expm1(doubt) + 8.0 * math.exp(-_FALL)
        scale = counts @ self.logs - self.theta * centre
        parts = counts @ (np.abs(self.logs) + self.theta * self.chances) + self.theta + 2.0
        unsure = 32.0 * EPS * parts
        shift = scale[:, None] - self.theta * _OFFSETS
        with np.errstate(divide="ignore"):
            low = np.log(np.maximum(value - around[:, None] - (self.missing * most)[:, None], 0.0)) + shift
            high = np.log(np.maximum(value + around[:, None], 0.0)) + shift
        high = np.where(self._possible(counts, mean, centre), high, -np.inf)
        return low.max(axis=1) - unsure, high.max(axis=1) + unsure

    def _possible(self, counts: FloatArray, mean: FloatArray, centre: FloatArray) -> np.ndarray:
        """Which of the three candidates next to the mean may be a mode (Darroch 1964); the mean may be off."""
        doubt = 16.0 * EPS * (mean + 1.0) + 1e-12
        n = counts.sum(axis=1)
        # with m = floor(mean): m alone below m + 1/(m+2), m + 1 alone above m + 1 - 1/(n - m + 1)
        below = centre - mean >= 1.0 / (n - centre + 2.0) - doubt
        above = mean - centre >= 1.0 / (centre + 2.0) - doubt
        return np.stack((below, np.ones_like(below), above), axis=1)

    def _powers(
        self, counts: FloatArray, offset: FloatArray, y: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Size and angle of M~(y) e^{-iy centre}, shape (crowds, points), and bounds on relative errors, (crowds,)."""
        turn = 2.0 * np.sin(0.5 * y) ** 2  # 1 - cos y
        p = self.chances[:, None]
        real = 0.5 * np.log1p(-2.0 * self.variances[:, None] * turn)
        angle = np.arctan2(p * np.sin(y), 1.0 - p * turn)
        part = np.abs(real).max(axis=1) + np.abs(angle).max(axis=1) + 2.0 * self.chances * y[-1]
        turned = counts @ (angle - p * y) + np.multiply.outer(offset, y)
        return np.exp(counts @ real), turned, 16.0 * EPS * (2.0 * (counts @ part) + y[-1] + 8.0)

    def _kernel(self, y: FloatArray, cut: int) -> np.ndarray:
        """Kappa(y)."""
        if self.theta == 0.0:
            return np.ones(y.size, dtype=np.complex128)
        z = self.theta + 1j * y
        rest = math.expm1(self.theta) * np.exp(-(cut + 1.0) * z)
        return (-np.expm1(-1j * y) + rest) / -np.expm1(-z)


# ------------------------------------------------------------------ largest box
# The largest of many bounds on psi at one excess after another: only those that may be the largest are evaluated.
#
# A box's psi does not increase with the excess and is convex in it (docs/theorems/count.md). So what was found at the
# next excesses below and above bounds it in between, by the chord, and a box whose chord is below another box's bound
# is left alone.

_LIKELY = 24
"""Number of boxes evaluated first: those of the largest chords."""
_MOST_KEPT = 1 << 16
"""Largest number of bounds cached for one cover."""


@dataclass(frozen=True, eq=False)
class LargestBox:
    """The largest of the bounds that many boxes of record vectors give, with a cache of past evaluations.

    At a new excess, a box is not evaluated if convexity between cached excesses shows that its bound is not the
    largest.

    Parameters
    ----------
    boxes : int
        Number of boxes.
    evaluated : callable
        Function of an excess and box indices (None: all boxes) that returns finite upper bounds on log psi of each.
    """

    boxes: int
    evaluated: Callable[[float, NDArray[np.int64] | None], FloatArray]
    _asked: list[float] = field(default_factory=list[float], repr=False)
    _bounds: list[FloatArray] = field(default_factory=list[FloatArray], repr=False)

    def at(self, excess: float) -> Upper:
        """Return an upper bound on log psi(excess) of every box: the largest of the evaluated ones.

        Parameters
        ----------
        excess : float
            The argument r of psi, at least 0, possibly inf, good to 8 roundoffs.
        """
        place = bisect.bisect_right(self._asked, excess)
        if place and self._asked[place - 1] == excess:
            return Upper(float(self._bounds[place - 1].max()))
        if place and self.boxes > _LIKELY:
            bounds = self._narrowed(excess, chords(excess, self._asked[place - 1 :], self._bounds[place - 1 :]))
        else:
            bounds = self.evaluated(excess, None)
        if len(self._asked) < _MOST_KEPT // self.boxes:
            self._asked.insert(place, excess)
            self._bounds.insert(place, bounds)
        return Upper(float(bounds.max()))

    def _narrowed(self, excess: float, bounds: FloatArray) -> FloatArray:
        """Evaluate boxes until no other one's known bound is above the largest value; return the bounds of all."""
        likely = np.argpartition(bounds, -_LIKELY)[-_LIKELY:]
        bounds[likely] = self.evaluated(excess, likely)
        above = bounds > bounds[likely].max()
        if above.any():  # none of the likely ones, whose largest this is
            bounds[above] = self.evaluated(excess, np.flatnonzero(above))
        return bounds


def chords(excess: float, ends: list[float], bounds: list[FloatArray]) -> FloatArray:
    """Return upper bounds on log psi(excess) of boxes from those at the next excesses below and, if known, above.

    Parameters
    ----------
    excess : float
        The argument r of psi: at least the first of ``ends``, below the second.
    ends : list of float
        Excesses, ascending, at least one; only the first two are used.
    bounds : list of ndarray, each of shape (boxes,)
        Upper bounds on log psi there.

    Notes
    -----
    Both weights of the chord are quotients of differences, each rounded once, so their sum with positive factors is
    good to a few roundoffs. A bound at an excess holds at all that lie up to 16 roundoffs below (numerics.bit_counts),
    in the same proportion for all three, so their being good to 8 changes nothing.
    """
    if len(ends) == 1 or not math.isfinite(ends[1]):
        return bounds[0].copy()
    (start, end), (low, high) = ends[:2], bounds[:2]
    far, near = (excess - start) / (end - start), (end - excess) / (end - start)
    log = low + np.log(near + far * np.exp(np.minimum(high - low, 0.0)))
    return np.minimum(log + roundoff(32, 1.0 + np.abs(low) + np.abs(high)), low)


EXACT_UP_TO = 10_000
"""Largest number of other users of one budget for whom every number of ones is evaluated as a crowd of its own."""
_RARITIES = np.array([1e-60, 1e-30, 1e-16, 1e-11, 1e-7, 3e-4, 0.1])
_FAIR = 0.5
_FEW = 4
"""Largest number of different chances below 1/2 that are kept apart."""
_KNOTS = 3
_CANDIDATES = 96
_DEPTH = 7.2
_WORTH = 0.015


@dataclass(frozen=True, eq=False)
class Groups:
    """Users grouped by the chance s <= 1/2 with which their bit differs from their record.

    Parameters
    ----------
    chances, counts : ndarray, shape (groups,)
        Each group's s in any order, taken as exact; and its number of users, whole numbers >= 1 as floats.
    """

    chances: FloatArray
    counts: FloatArray

    @property
    def variance(self) -> float:
        """The variance of the number of ones sent by all users; it does not depend on the records."""
        return float((self.chances * (1.0 - self.chances)) @ self.counts)

    def crowds(self, ones: FloatArray, zeros: FloatArray, coins: FloatArray) -> BitCrowds:
        """Return the law of the number of ones for each of several crowds: users with given records and fair coins.

        Parameters
        ----------
        ones, zeros : ndarray, shape (crowds, groups)
            Number of users of each group whose record is 1, and 0.
        coins : ndarray, shape (crowds,)
            Number of users who send a fair coin.
        """
        chances = np.concatenate((self.chances, self.chances, [_FAIR]))
        flipped = np.concatenate((np.ones_like(self.chances), np.zeros_like(self.chances), [0.0])).astype(bool)
        counts = np.concatenate((ones, zeros, coins[:, None]), axis=1)
        used = counts.any(axis=0) | (np.arange(chances.size) == chances.size - 1)
        return BitCrowds(chances[used], flipped[used], counts[:, used])

    def merged(self, most: int, *, outwards: bool) -> Groups:
        """Return at most that many groups: each user's chance s is rounded to that of another user.

        Rounding s down (`outwards`) gives a larger set of laws of each bit, so that its divergence is an upper bound;
        rounding it up gives a smaller one. The groups are those that change the variance least.
        """
        if self.chances.size <= most:
            return self
        order = np.argsort(self.chances, kind="stable")
        s, n = self.chances[order], self.counts[order]
        first = _best_cuts(s, n, most, outwards=outwards)
        last = np.append(first[1:], s.size) - 1
        return Groups(s[first if outwards else last], np.add.reduceat(n, first))


def _best_cuts(s: FloatArray, n: FloatArray, most: int, *, outwards: bool) -> NDArray[np.int64]:
    """First members of at most so many runs of ascending s, by dynamic programming over 128 candidates."""
    through = np.concatenate(([0.0], np.cumsum(n)))
    want = np.linspace(0.0, through[-1], 129)[:-1]
    starts = np.unique(np.searchsorted(through, want, side="right") - 1)
    v = s * (1.0 - s)
    spread = np.concatenate(([0.0], np.cumsum(n * v)))
    ends = np.append(starts[1:], s.size)
    # cost[i, j]: candidates i..j as one run
    size = through[ends][None, :] - through[starts][:, None]
    have = spread[ends][None, :] - spread[starts][:, None]
    cost = np.abs(have - size * (v[starts][:, None] if outwards else v[ends - 1][None, :]))
    cost = np.where(starts[:, None] < ends[None, :], cost, np.inf)
    best, came = cost[0], np.zeros((1, ends.size), dtype=np.int64)
    for _ in range(most - 1):
        options = np.concatenate(([[np.inf] * ends.size], best[:-1, None] + cost[1:]))
        chosen = options.argmin(axis=0)
        least = options[chosen, np.arange(ends.size)]
        better = least < best
        came = np.vstack((came, np.where(better, chosen, -1)))
        best = np.where(better, least, best)
    cuts, at = list[int](), ends.size - 1
    for row in came[::-1]:
        if row[at] > 0:
            cuts.append(int(row[at]))
            at = int(row[at]) - 1
    return starts[np.array([0, *cuts[::-1]])]


@dataclass(frozen=True, eq=False)
class CountCover:
    """Boxes of record vectors that together contain all of them, for an upper bound on the count theorem's maximum.

    Parameters
    ----------
    groups : Groups
        All users but the victim, grouped by their flip chance s, rounded down.
    first, last : ndarray, shape (boxes, groups)
        Per box and group the least and the largest number of ones.
    """

    groups: Groups
    first: FloatArray
    last: FloatArray

    @classmethod
    def of(cls, groups: Groups, boxes: int, *, exact: bool = True) -> CountCover:
        """Cover all record vectors with about the given number of boxes.

        Users who all have one chance below 1/2 are covered exactly if there are at most 10,000 of them.

        A box leaves the records of some users of each group open, and each of them makes the bound larger by some
        amount. The numbers are chosen inversely proportional to these amounts, so that every group adds the same.
        """
        fair = groups.chances >= _FAIR
        moving = np.flatnonzero(~fair)
        s, n = groups.chances[moving], groups.counts[moving]
        if exact and moving.size == 1 and n[0] <= EXACT_UP_TO:
            boxes = max(boxes, int(n[0]) + 1)
        cost = n * s * (1.0 - s) if moving.size == 1 else n * s * (_FAIR - s) + 1e-9 * n
        parts = _parts(cost, n + 1.0, boxes)
        ends = [_cut(count, part) for count, part in zip(n, parts, strict=True)]
        mesh = np.meshgrid(*(np.arange(part) for part in parts), indexing="ij") if moving.size else []
        rows = math.prod(parts)
        first, last = np.zeros((rows, groups.chances.size)), np.zeros((rows, groups.chances.size))
        for column, (low, high), index in zip(moving, ends, mesh, strict=True):
            first[:, column], last[:, column] = low[index.ravel()], high[index.ravel()]
        return cls(groups, first, last)

    @cached_property
    def _blocks(self) -> tuple[FloatArray, FloatArray]:
        """Numbers c of coins from 0 up, and bounds on P(C < next c): of the boxes with the fewest open users."""
        opened = (self.last - self.first).min(axis=0)
        moving = self.groups.chances < _FAIR
        count = SuccessCount.of(2.0 * self.groups.chances, np.where(moving, opened, 0.0))
        if count.n == 0.0 or int(moving.sum()) < 2:
            return np.zeros(1), np.zeros(0)
        depth = np.sqrt(-2.0 * np.log(_RARITIES))
        at = np.unique(np.floor(count.mean - depth * count.deviation))
        at = at[at >= 1.0]
        if at.size == 0:
            return np.zeros(1), np.zeros(0)
        return np.concatenate(([0.0], at)), np.minimum(count.cdf(at - 1.0).upper, 1.0)

    @cached_property
    def _crowds(self) -> BitCrowds:
        coins = self._blocks[0]
        moving = self.groups.chances < _FAIR
        zeros = np.where(moving, self.groups.counts - self.last, 0.0)
        fair = float(self.groups.counts[~moving].sum())
        every = np.tile(coins, self.first.shape[0]) + fair
        return self.groups.crowds(
            np.repeat(self.first, coins.size, axis=0), np.repeat(zeros, coins.size, axis=0), every
        )

    @property
    def exact(self) -> bool:
        """Whether each box holds a single record vector, so that the bound loses nothing."""
        return bool((self.first == self.last)[:, self.groups.chances < _FAIR].all())

    @property
    def moving(self) -> int:
        """Indices of the groups whose records change the law of their bits: those with s below 1/2."""
        return int((self.groups.chances < _FAIR).sum())

    def log_psi_above(self, excess: float) -> Upper:
        """Return an upper bound on log psi(excess) over all record vectors.

        Parameters
        ----------
        excess : float
            The argument r >= 0 of psi, see `BitCrowds.best_thresholds`.
        """
        return self._largest.at(excess)

    @cached_property
    def _largest(self) -> LargestBox:
        """The largest bound of all boxes, of which few are evaluated."""
        return LargestBox(self.first.shape[0], self.box_logs)

    def box_logs(self, excess: float, boxes: NDArray[np.int64] | None = None) -> FloatArray:
        """Return, per box, an upper bound on log psi(excess) over the record vectors in the box, shape (boxes,).

        Parameters
        ----------
        excess : float
            The argument r >= 0 of psi, see `BitCrowds.best_thresholds`.
        boxes : ndarray, optional
            Indices of the boxes to evaluate; default: all.
        """
        coins, rare = self._blocks
        crowds = self._crowds
        if boxes is not None:
            held = crowds.counts.reshape(-1, coins.size, crowds.chances.size)[boxes]
            crowds = replace(crowds, counts=held.reshape(-1, crowds.chances.size))
        logs = crowds.best_thresholds(excess).upper.reshape(-1, coins.size)
        logs = np.minimum.accumulate(logs, axis=1)
        if coins.size == 1:
            return logs[:, 0]
        # E h(C) <= h(c_B) + sum_b P(C < c_{b+1}) (h(c_b) - h(c_{b+1})), relative to the box's largest value
        top = logs[:, :1]
        h = np.exp(np.maximum(logs - top, -1400.0))
        mean = h[:, -1] + (h[:, :-1] - h[:, 1:]) @ round_up(rare, 8) + TINY
        return top[:, 0] + np.minimum(np.log(mean), 0.0) + roundoff(64, 1.0 + np.abs(top[:, 0]))

    def only(self, kept: NDArray[np.bool_]) -> CountCover:
        """Return a cover that keeps only the selected boxes."""
        return CountCover(self.groups, self.first[kept], self.last[kept])

    def halved(self) -> CountCover | None:
        """Return the boxes cut in two, in the group that loses most; None if no box leaves a record open.

        All boxes are cut in the same group: they have one shape, up to one user, as those of `of` do.
        """
        opened = self.last - self.first
        s = self.groups.chances
        cost = np.where(s < _FAIR, opened.max(axis=0) * (s * (_FAIR - s) + 1e-9), 0.0)
        at = int(cost.argmax())
        if cost[at] == 0.0:
            return None
        middle = self.first[:, at] + np.floor(0.5 * opened[:, at])
        low, high = self.last.copy(), self.first.copy()
        low[:, at], high[:, at] = middle, middle + 1.0
        some = opened[:, at] > 0.0
        first, last = np.concatenate((self.first, high[some])), np.concatenate((low, self.last[some]))
        return CountCover(self.groups, first, last)


def _parts(cost: FloatArray, most: FloatArray, boxes: int) -> list[int]:
    """Into how many parts each group is cut: in proportion to its cost, with a product of about ``boxes``."""
    if cost.size == 0:
        return []
    low, high = -80.0, 80.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        product = np.prod(np.clip(np.ceil(cost * math.exp(middle)), 1.0, most))
        low, high = (middle, high) if product <= boxes else (low, middle)
    return [int(part) for part in np.clip(np.ceil(cost * math.exp(low)), 1.0, most)]


def _cut(count: float, parts: int) -> tuple[FloatArray, FloatArray]:
    """First and last of so many parts of 0..count, of sizes that differ by at most one."""
    edges = np.floor(np.arange(parts + 1) * ((count + 1.0) / parts))
    edges[-1] = count + 1.0
    return edges[:-1], edges[1:] - 1.0


@dataclass(frozen=True, eq=False)
class SpreadCover:
    """A cover that replaces many different flip chances by a few.

    Each user takes one of the two neighbouring chances by a public coin: a bit with flip chance s between s_g and s_h
    has the law of one that takes s_h with probability c = (s - s_g)/(s_h - s_g), else s_g. More users of the larger
    chances can only hide the victim more, so their numbers are taken at the low end of what is likely. For the unlikely
    numbers below, every user takes the smaller chance, and their probability is the charge.

    Parameters
    ----------
    likely, sure : CountCover
        The cover for the smallest likely numbers of users of the larger chances, and the cover that always holds, with
        all users at the smaller chance.
    charge : float
        Upper bound on the probability that fewer users than in `likely` take the larger chances.
    """

    likely: CountCover
    sure: CountCover
    charge: float

    @property
    def groups(self) -> Groups:
        """Groups of the users by the few chances that replace theirs, in the likely case."""
        return self.likely.groups

    @classmethod
    def of(cls, groups: Groups, boxes: int) -> SpreadCover:
        """Return a cover with a few chances, chosen so that the number of ones loses little variance.

        Parameters
        ----------
        groups : Groups
            Users by their flip chance, with many different chances.
        boxes : int
            About the number of boxes of the cover. A chance of 1/2 is always among the few.
        """
        order = np.argsort(groups.chances, kind="stable")
        s, n = groups.chances[order], groups.counts[order]
        knots = np.append(s[_best_knots(s, n)], _FAIR)
        at_least, charge = [float(n.sum())], 0.0
        for low, high in pairwise(knots.tolist()):
            inside = (s >= low) & (s < high)
            c = np.clip(deflated((s[inside] - low) / (high - low), 16), 0.0, 1.0)
            count = SuccessCount.of(c, n[inside])
            quantile = max(0.0, math.floor(count.mean - _DEPTH * count.deviation - 2.0))
            charge += float(count.cdf(np.array([quantile - 1.0])).upper[0])
            at_least.append(quantile + float(n[s >= high].sum()))
        sizes = np.array(at_least) - np.append(at_least[1:], 0.0)
        keep = sizes > 0.0
        likely = CountCover.of(Groups(knots[keep], sizes[keep]), boxes)
        return cls(
            likely, CountCover.of(groups.merged(_FEW, outwards=True), boxes // 4), inflated(charge, 2 * knots.size)
        )

    def log_psi_above(self, excess: float) -> Upper:
        """Return an upper bound on log psi(excess) over all record vectors, with the charge for unlikely counts."""
        sure = self.sure.log_psi_above(excess)
        charge = math.log(self.charge) if self.charge > 0.0 else -math.inf
        charged = float(np.logaddexp(self.likely.log_psi_above(excess), sure + charge))
        return min(sure, Upper(charged + roundoff(8, 1.0 + abs(charged))))


Cover = CountCover | SpreadCover
"""A set of boxes that bounds every record vector."""


def cover_of(groups: Groups, boxes: int, *, exact: bool = True) -> Cover:
    """Return a cover of all record vectors: with the exact flip chances if these are few, else with a few others.

    Parameters
    ----------
    groups : Groups
        All users but the victim, grouped by their flip chance s, rounded down.
    boxes : int
        About how many boxes to use.
    exact : bool
        Whether users of one chance are covered exactly, up to 10,000 of them.
    """
    if int((groups.chances < _FAIR).sum()) <= _FEW:
        return CountCover.of(groups, boxes, exact=exact)
    return SpreadCover.of(groups, boxes)


def _best_knots(s: FloatArray, n: FloatArray) -> NDArray[np.int64]:
    """Positions of two or three knots among ascending s, the first of them 0, that lose least variance up to 1/2."""
    through = np.concatenate(([0.0], np.cumsum(n)))
    some = np.unique(np.searchsorted(through, np.linspace(0.0, through[-1], _CANDIDATES + 1)[:-1], side="right") - 1)
    level = np.append(s[some], _FAIR)
    place = np.append(some, s.size)
    first = np.concatenate(([0.0], np.cumsum(n * s)))[place]
    second = np.concatenate(([0.0], np.cumsum(n * s * s)))[place]
    users = through[place]
    # sum of n (s - low)(high - s) over the users between two candidates
    low, high = level[:, None], level[None, :]
    cost = (low + high) * (first[None, :] - first[:, None])
    cost -= second[None, :] - second[:, None] + low * high * (users[None, :] - users[:, None])
    cost = np.where(np.arange(level.size)[:, None] < np.arange(level.size)[None, :], np.maximum(cost, 0.0), np.inf)
    best, came = cost[0], list[NDArray[np.int64]]()
    lost = [float(best[-1])]
    for _ in range(_KNOTS - 1):
        options = best[:, None] + cost
        came.append(options.argmin(axis=0))
        best = options.min(axis=0)
        lost.append(float(best[-1]))
    # a further knot makes boxes coarser, which costs more than little
    enough = float((n * s * (1.0 - s)).sum()) * _WORTH
    more = next((k for k in range(1, _KNOTS - 1) if lost[k] - lost[-1] <= enough), _KNOTS - 1)
    cuts, at = list[int](), level.size - 1
    for chosen in came[:more][::-1]:
        at = int(chosen[at])
        cuts.append(at)
    return np.unique(np.array([0, *(int(some[cut]) for cut in cuts)]))
