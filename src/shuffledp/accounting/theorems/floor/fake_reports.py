"""One or several reports hidden among dummies: the pair of laws of what is released, atom by atom.

A report of a record x is, with chance `keep`, uniform on the record's own set A_x, and otherwise uniform on all
possible reports; a set holds one in `one_in` of them. Among m dummies drawn uniformly, c reports of a record x0 (or
of x1) are released: m + c reports in all. Let A and B count the released reports in A_x0 and in A_x1. Were all of
them uniform, (A, B) would have the law w; the density of c reports of x0 against it is

    r(A) = E top^J low^(c - J),   top = low + one_in keep,  low = 1 - keep,                               (R)

where J is the number in A_x0 of c reports drawn from the released ones without replacement: each set of c of the m + c
is as likely to be the person's. Likewise r(B) for x1. Sets of two records are disjoint, or independent of each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from shuffledp.errors import OutOfRegime
from shuffledp.normal import NormalDummies
from shuffledp.numerics import counts
from shuffledp.numerics.floats import EPS
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.losses import WeightedPair

MOST_ATOMS = 1 << 21
"""A pair of more atoms is not evaluated."""
_REST = 1e-45
"""Chance of the counts beyond each end that are left out, and charged."""
_LEAST = 1e-300
_FEW = 1e-280
"""Below, an atom among normal dummies may come from chances that left the range of doubles."""


@dataclass(frozen=True)
class Kept:
    """How a report is drawn: from the record's own set with chance `keep`, else uniformly.

    Parameters
    ----------
    keep, rest : float
        The two chances, each good to 8 EPS relative; together 1.
    """

    keep: float
    rest: float


@dataclass(frozen=True, eq=False)
class _Counts:
    """The law of (A, B): atoms with their weights, good to `doubt` relative; `lost` is left out."""

    first: FloatArray
    second: FloatArray
    weights: FloatArray
    doubt: float
    lost: float


def among_uniform(one_in: int, disjoint: bool, dummies: int, reports: int, kept: Kept) -> WeightedPair:
    """Return the pair of c reports of x0, or of x1, among uniform dummies.

    Parameters
    ----------
    one_in : int
        A record's set holds one in so many of the possible reports, at least 2.
    disjoint : bool
        Whether the sets of two records are disjoint; otherwise they are independent under a uniform report.
    dummies, reports : int
        m >= 0 and c >= 1.
    kept : Kept
        How a report is drawn.

    Raises
    ------
    OutOfRegime
        If the pair would have too many atoms.
    """
    counts = _counts(one_in, disjoint, dummies + reports)
    first, second = (_density(side, dummies + reports, reports, one_in, kept) for side in (counts.first, counts.second))
    # a density is at most one_in^c: what is left out of w is charged so many times
    lost = math.exp(min(math.log(counts.lost) + reports * math.log(one_in) + 1e-9, 0.0)) if counts.lost else 0.0
    return WeightedPair(counts.weights, first, second, counts.doubt, 16.0 * reports + 24.0, lost)


def among_ones(weights: tuple[int, ...], reports: int, kept: Kept) -> WeightedPair:
    """Return the pair of c bits of the record 1, or of the record 0, among dummies with a stated number of ones.

    The number of ones is D + Bin(c, (1 + keep)/2) for the one, and mirrored for the other.

    Parameters
    ----------
    weights : tuple of int
        P(D = j) times 2^64, j = 0..m; symmetric.
    reports : int
        c >= 1.
    kept : Kept
        How a bit is drawn.
    """
    law = np.array([weight / 2**64 for weight in weights])
    one, zero = 0.5 * (1.0 + kept.keep), 0.5 * kept.rest
    bits = np.ones(1)
    for _ in range(reports):
        bits = np.append(bits * zero, 0.0) + np.append(0.0, bits * one)
    first = np.zeros(law.size + reports)
    for ones, chance in enumerate(bits.tolist()):
        first[ones : ones + law.size] += chance * law
    second = first[::-1]
    weight = np.maximum(first, second)
    some = weight > 0.0
    weight, first, second = weight[some], first[some], second[some]
    ulps = 16.0 * reports + 24.0
    return WeightedPair(weight, first / weight, second / weight, 4.0 * EPS, 2.0 * ulps, 0.0)


def among_cells(dummies: NormalDummies, kept: Kept) -> WeightedPair:
    """Return a pair that dominates one report of x0, or of x1, among normal dummies; exact if the report is its record.

    (C1) and (C2) of docs/theorems/normal.md. Atoms are the counts i and j of the two records' answers.

    Parameters
    ----------
    dummies : NormalDummies
        What the shuffler adds.
    kept : Kept
        How a report is drawn.
    """
    (cell, _), (others, one), (every, two) = (dummies.sums(n) for n in (1, dummies.answers - 2, dummies.answers))
    own, without = np.append(0.0, cell), np.append(cell, 0.0)  # of i released reports one is the person's, or none
    left = dummies.count + 1 - np.arange(2 * own.size - 1)  # what all other answers have together
    possible = (left >= 0) & (left < others.size)
    rest = np.where(possible, others[np.clip(left, 0, others.size - 1)], 0.0) / every[dummies.count]
    i, j = (side.ravel() for side in np.meshgrid(np.arange(own.size), np.arange(own.size), indexing="ij"))
    first, second = own[i] * without[j], without[i] * own[j]
    larger, smaller = np.maximum(first, second), np.minimum(first, second)
    mass = larger * rest[i + j]
    some = mass > _FEW
    charge = float((~some).sum()) * 2.0 * _FEW
    mass, ratio, forward = mass[some], smaller[some] / larger[some], (first > second)[some]
    known = kept.keep + kept.rest * ratio  # (C2): of the larger law, whose other part tells nothing
    nothing = kept.rest * float((mass * (1.0 - ratio))[forward].sum()) + (1e-13 if kept.rest else 0.0)
    known = np.where(ratio == 1.0, 1.0, known)
    weights = np.append(mass, nothing) if nothing else mass
    told = [np.where(forward, known, ratio), np.where(forward, ratio, np.where(ratio == 1.0, 1.0, known))]
    told = [np.append(side, 1.0) if nothing else side for side in told]
    return WeightedPair(weights, told[0], told[1], one + two + 16.0 * EPS, 32.0, charge)


def _density(count: FloatArray, total: int, reports: int, one_in: int, kept: Kept) -> FloatArray:
    """(R): sum over J by drawing one report after another; all terms are positive, 8 EPS a step."""
    low, top = kept.rest, kept.rest + one_in * kept.keep
    if reports == 1:
        return low + (one_in * kept.keep / total) * count
    inside, outside = count, total - count
    states = [np.ones_like(count)]
    for drawn in range(reports):
        following = [np.zeros_like(count) for _ in range(drawn + 2)]
        for j, state in enumerate(states):
            following[j] += state * (low / (total - drawn)) * np.maximum(outside - (drawn - j), 0.0)
            following[j + 1] += state * (top / (total - drawn)) * np.maximum(inside - j, 0.0)
        states = following
    return np.asarray(sum(states[1:], start=states[0]), dtype=np.float64)


@lru_cache(maxsize=4)
def _counts(one_in: int, disjoint: bool, total: int) -> _Counts:
    """Return the law of (A, B) among so many uniform reports.

    Weights are products of one or two binomial chances of relative error RELATIVE_ERROR, for chances p = 1/one_in and
    1/(one_in - 1) that are rounded to EPS relative: that costs |count - its mean|/(1 - p) EPS, at most 4 EPS times the
    span for each of the two.
    """
    chance = 1.0 / one_in
    span = _span(total, chance)
    doubt = 2.0 * counts.RELATIVE_ERROR + (8.0 * span.size * EPS if one_in > 2 else 0.0)
    # the counts of either set beyond the span; the factor 2 is far above all rounding
    lost = 4.0 * 2.0 * _REST if span.size <= total else 0.0
    if disjoint and one_in == 2:
        weights = np.exp(counts.log_pmf(span, float(total), 0.5))
        return _positive(span, total - span, weights, doubt, lost)
    if span.size**2 > MOST_ATOMS:
        raise OutOfRegime(
            f"{total} reports with sets of one in {one_in} have more than {MOST_ATOMS} counts to sum over; "
            "ask for fewer dummies"
        )
    first, second = (side.ravel() for side in np.meshgrid(span, span, indexing="ij"))
    alone = counts.log_pmf(span, float(total), chance)
    if disjoint:
        possible = first + second <= total
        first, second = first[possible], second[possible]
        logs = np.repeat(alone, span.size)[possible]
        logs = logs + counts.log_pmf(second, total - first, 1.0 / (one_in - 1.0))
    else:
        logs = np.repeat(alone, span.size) + np.tile(alone, span.size)
    return _positive(first, second, np.exp(logs), doubt, lost)


def _span(total: int, chance: float) -> FloatArray:
    """Return the likely counts of one set among so many uniform reports.

    Counts beyond either end, of chance below `_REST`, are left out.
    """
    whole = np.arange(float(total) + 1.0) if total <= 64 else _grid(total, chance)
    inside = (counts.sf(whole, float(total), chance) >= _REST) & (counts.cdf(whole, float(total), chance) >= _REST)
    found = whole[inside]
    return found if total > 64 else whole


def _grid(total: int, chance: float) -> FloatArray:
    """Whole numbers around the mean that are sure to hold the span: Bernstein's inequality at e^-110 < `_REST`/2."""
    mean, spread = total * chance, total * chance * (1.0 - chance)
    reach = 110.0 / 3.0 + np.sqrt((110.0 / 3.0) ** 2 + 2.0 * 110.0 * spread) + 2.0
    return np.arange(max(np.floor(mean - reach), 0.0), min(np.ceil(mean + reach), float(total)) + 1.0)


def _positive(first: FloatArray, second: FloatArray, weights: FloatArray, doubt: float, lost: float) -> _Counts:
    """Atoms that double precision holds; the others are charged."""
    kept = weights >= _LEAST
    charge = float((~kept).sum()) * 2.0 * _LEAST
    return _Counts(first[kept], second[kept], weights[kept], doubt, lost + charge)
