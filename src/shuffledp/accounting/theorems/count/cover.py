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

from shuffledp.accounting.theorems.count.bit_counts import BitCrowds
from shuffledp.numerics.counts import SuccessCount
from shuffledp.numerics.floats import TINY, deflated, inflated, round_up, roundoff
from shuffledp.numerics.interval import FloatArray

# ------------------------------------------------------------------ largest box
# The largest of many bounds on psi at one excess after another: only those that may be the largest are evaluated.
#
# A box's psi does not increase with the excess and is convex in it (docs/theorems/count.md). So what was found at the
# next excesses below and above bounds it in between, by the chord, and a box whose chord is below another box's bound
# is left alone.

_LIKELY = 24
"""Boxes evaluated first: those of the largest chords."""
_MOST_KEPT = 1 << 16
"""Bounds kept of one cover, in all."""


@dataclass(frozen=True, eq=False)
class LargestBox:
    """The largest bound over boxes.

    Parameters
    ----------
    boxes : int
        How many there are.
    evaluated : callable
        From an excess and the boxes asked for, all of them for None, to upper bounds on log psi there, finite.
    """

    boxes: int
    evaluated: Callable[[float, NDArray[np.int64] | None], FloatArray]
    _asked: list[float] = field(default_factory=list[float], repr=False)
    _bounds: list[FloatArray] = field(default_factory=list[FloatArray], repr=False)

    def at(self, excess: float) -> float:
        """Return an upper bound on log psi(excess) of every box: the largest of the evaluated ones.

        Parameters
        ----------
        excess : float
            At least 0, possibly inf, good to 8 roundoffs.
        """
        place = bisect.bisect_right(self._asked, excess)
        if place and self._asked[place - 1] == excess:
            return float(self._bounds[place - 1].max())
        if place and self.boxes > _LIKELY:
            found = self._narrowed(excess, chords(excess, self._asked[place - 1 :], self._bounds[place - 1 :]))
        else:
            found = self.evaluated(excess, None)
        if len(self._asked) < _MOST_KEPT // self.boxes:
            self._asked.insert(place, excess)
            self._bounds.insert(place, found)
        return float(found.max())

    def _narrowed(self, excess: float, found: FloatArray) -> FloatArray:
        """Evaluate boxes until no other one's known bound is above the largest value; return the bounds of all."""
        likely = np.argpartition(found, -_LIKELY)[-_LIKELY:]
        found[likely] = self.evaluated(excess, likely)
        above = found > found[likely].max()
        if above.any():  # none of the likely ones, whose largest this is
            found[above] = self.evaluated(excess, np.flatnonzero(above))
        return found


def chords(excess: float, ends: list[float], bounds: list[FloatArray]) -> FloatArray:
    """Return upper bounds on log psi(excess) of boxes from those at the next excesses below and, if known, above.

    Parameters
    ----------
    excess : float
        At least the first of ``ends``, below the second.
    ends : list of float
        Excesses, ascending, at least one; the first two count.
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
"""Other users of one budget of whom every number of ones is a crowd of its own."""
_RARITIES = np.array([1e-60, 1e-30, 1e-16, 1e-11, 1e-7, 3e-4, 0.1])
_FAIR = 0.5
_FEW = 4
"""Different chances below 1/2 that are told apart."""
_KNOTS = 3
_CANDIDATES = 96
_DEPTH = 7.2
_WORTH = 0.015


@dataclass(frozen=True, eq=False)
class Groups:
    """Users by the smaller chance s of their bit, s <= 1/2.

    Parameters
    ----------
    chances, counts : ndarray, shape (groups,)
        s, ascending or not, taken as exact; and how many users have it, whole numbers >= 1 as floats.
    """

    chances: FloatArray
    counts: FloatArray

    @property
    def variance(self) -> float:
        """Variance of the number of ones, whatever the records."""
        return float((self.chances * (1.0 - self.chances)) @ self.counts)

    def crowds(self, ones: FloatArray, zeros: FloatArray, coins: FloatArray) -> BitCrowds:
        """Return crowds of so many ones and zeros of each group, shape (crowds, groups), and coins, (crowds,)."""
        chances = np.concatenate((self.chances, self.chances, [_FAIR]))
        flipped = np.concatenate((np.ones_like(self.chances), np.zeros_like(self.chances), [0.0])).astype(bool)
        counts = np.concatenate((ones, zeros, coins[:, None]), axis=1)
        used = counts.any(axis=0) | (np.arange(chances.size) == chances.size - 1)
        return BitCrowds(chances[used], flipped[used], counts[:, used])

    def merged(self, most: int, *, outwards: bool) -> Groups:
        """Return at most so many groups, each user's s rounded down, to that of another user, or up.

        Rounding s down gives a larger set of laws of each bit, so that what is found for it is an upper bound;
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
        found = options[chosen, np.arange(ends.size)]
        better = found < best
        came = np.vstack((came, np.where(better, chosen, -1)))
        best = np.where(better, found, best)
    cuts, at = list[int](), ends.size - 1
    for row in came[::-1]:
        if row[at] > 0:
            cuts.append(int(row[at]))
            at = int(row[at]) - 1
    return starts[np.array([0, *cuts[::-1]])]


@dataclass(frozen=True, eq=False)
class CountCover:
    """Crowds that together bound the count theorem's maximum over all record vectors from above.

    Parameters
    ----------
    groups : Groups
        Everybody but the victim; s rounded down.
    first, last : ndarray, shape (boxes, groups)
        Per box and group the least and the largest number of ones.
    """

    groups: Groups
    first: FloatArray
    last: FloatArray

    @classmethod
    def of(cls, groups: Groups, boxes: int, *, exact: bool = True) -> CountCover:
        """Cover all record vectors with about so many boxes; users of one chance below 1/2 exactly, up to 10,000.

        Parts of a group are inversely proportional to what an open user costs, so that each group costs the same.
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
        """Whether each box is one record vector."""
        return bool((self.first == self.last)[:, self.groups.chances < _FAIR].all())

    @property
    def moving(self) -> int:
        """Groups whose record matters: of chances below 1/2."""
        return int((self.groups.chances < _FAIR).sum())

    def log_psi_above(self, excess: float) -> float:
        """Bound log psi(excess) of every record vector from above.

        Parameters
        ----------
        excess : float
            As for `BitCrowds.best_thresholds`.
        """
        return self._largest.at(excess)

    @cached_property
    def _largest(self) -> LargestBox:
        """The largest bound of all boxes, of which few are evaluated."""
        return LargestBox(self.first.shape[0], self.box_logs)

    def box_logs(self, excess: float, boxes: NDArray[np.int64] | None = None) -> FloatArray:
        """Bounds on log psi(excess) from above, of the record vectors of each box, shape (boxes,).

        Parameters
        ----------
        excess : float
            As for `BitCrowds.best_thresholds`.
        boxes : ndarray, optional
            Which boxes; default all.
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
        """Return some of the boxes."""
        return CountCover(self.groups, self.first[kept], self.last[kept])

    def halved(self) -> CountCover | None:
        """Cut each box in two where its open users cost most; None if nobody is open.

        Boxes are taken to be of one shape, up to one user, as those of `of` are: all are cut alike.
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
    """Users of many different chances as users of a few: each is, by a coin that is told, one of its two neighbours.

    A bit with chance s between s_g and s_h is one with s_h with probability c = (s - s_g)/(s_h - s_g), else one with
    s_g. More users of the larger chances only hide more, so their numbers are taken at the low end of what is likely;
    the rest is charged, with every user at the smaller of the chances.

    Parameters
    ----------
    likely, sure : CountCover
        Of the least likely numbers of users, and of all users at the smaller of chances.
    charge : float
        Bound on the probability that there are fewer.
    """

    likely: CountCover
    sure: CountCover
    charge: float

    @property
    def groups(self) -> Groups:
        """The users as they are likely to be."""
        return self.likely.groups

    @classmethod
    def of(cls, groups: Groups, boxes: int) -> SpreadCover:
        """Choose the chances that lose least variance; a chance of 1/2 is one of them."""
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

    def log_psi_above(self, excess: float) -> float:
        """Bound log psi(excess) of every record vector from above; see `CountCover.log_psi_above`."""
        sure = self.sure.log_psi_above(excess)
        charge = math.log(self.charge) if self.charge > 0.0 else -math.inf
        found = float(np.logaddexp(self.likely.log_psi_above(excess), sure + charge))
        return min(sure, found + roundoff(8, 1.0 + abs(found)))


Cover = CountCover | SpreadCover
"""What bounds every record vector."""


def cover_of(groups: Groups, boxes: int, *, exact: bool = True) -> Cover:
    """Return a cover of all record vectors: by exact chances if few of them differ, else spread over a few.

    Parameters
    ----------
    groups : Groups
        Everybody but the victim, s rounded down.
    boxes : int
        About how many.
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
