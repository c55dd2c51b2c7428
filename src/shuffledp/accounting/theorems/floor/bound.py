"""The floor of dummies (D3) as a bound: what holds whatever all other participants do (docs/theorems/floor.md).

Colluding, missing and malicious users never touch it, nor does the number of users: it counts on nobody but the
shuffler. Several reports of one user and groups are hidden by the same dummies; rounds have dummies of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.bound import MANY_LEVELS, AmplificationBound, epsilons_by_anchors
from shuffledp.accounting.profiles.composition import composed
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.ball import WHOLE, BallDummies
from shuffledp.dummies import WHOLE as FULL
from shuffledp.dummies import NormalDummies, OwnDummies, Uniform, check_dummies, is_log_concave
from shuffledp.errors import MAX_EPSILON0, InvalidInput, OutOfRegime, shown, whole_number
from shuffledp.numerics import counts
from shuffledp.numerics.floats import EPS, UNBOUNDED, Enclosure, FloatArray, Interval, Upper, round_up
from shuffledp.numerics.functions import exp_upper
from shuffledp.numerics.losses import LossLaw, LossSum, ProductPair, WeightedPair, multiplied
from shuffledp.setting import Kind, Setting

# The floor of ball dummies, over all questions together, as a privacy profile (docs/theorems/ball.md).

MOST_REPORTS = 64
"""Largest number of reports of one person that a floor is computed for."""


@dataclass(frozen=True, eq=False)
class BallFloor(PrivacyProfile):
    """Certified profile of one person's reports to all questions that share ball dummies. Use `ball_floor`.

    It holds whatever all other participants send.

    Parameters
    ----------
    law : BallDummies
        The law of the dummies.
    kept : tuple of Fraction
        kappa of each column: the chance that a report is the record's own.
    reports : int
        Number of reports of the person, each to all questions.
    top : float
        Sum of the local budgets of all reports (nats): from there on delta is 0.
    """

    tolerance: ClassVar[float] = 1e-9

    law: BallDummies
    kept: tuple[Fraction, ...]
    reports: int
    top: Upper

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon (nats) from which on delta is 0: the sum of the local budgets, since the rest is post-processing."""
        return self.top

    @property
    def known_below(self) -> bool:
        """Whether lower ends of delta are more than 0: always False, since the theorem is an upper bound."""
        return False

    def delta_at(self, epsilon: float) -> Interval:
        """Return the interval from 0 to the certified delta at epsilon by (B1) to (B4), rounded up to a double."""
        return Interval(0.0, double_above(self.law.floor(epsilon, self.kept, self.reports)))

    def keeps(self, epsilon: float, delta: float) -> bool:
        """Return whether the person's reports are certified to be (epsilon, delta)-private, by comparing whole numbers.

        Parameters
        ----------
        epsilon : float
            Nats, at least 0.
        delta : float
            In (0, 1).
        """
        return epsilon >= self.top or self.law.floor(epsilon, self.kept, self.reports) <= Fraction(delta)


def ball_floor(
    law: BallDummies, epsilon0: float | None = None, *, reports: int = 1, draw: Sequence[int] | None = None
) -> BallFloor:
    """Return the privacy profile of one person's reports to all questions, against everybody else, with ball dummies.

    Parameters
    ----------
    law : BallDummies
        What the shuffler adds; every column's reports are drawn by k-ary randomized response over its values (the
        number of ones of "bits").
    epsilon0 : float, optional
        The local budget of each report (nats, from 0 to 700); leave it out if `draw` states the law.
    reports : int
        Reports of the person, each to all questions, from 1 to 64; default 1.
    draw : sequence of int, optional
        For each column the chance over 2^64 that a report is the record's own, as drawn.

    Returns
    -------
    BallFloor
        ``.delta(epsilon).upper`` and ``.epsilon(delta).upper`` are certified; lower ends are 0.

    Raises
    ------
    InvalidInput
        If a number is out of range.

    Notes
    -----
    Source: docs/theorems/ball.md, own proof.

    Examples
    --------
    >>> law = BallDummies.of_promise(["choice:5", "choice:2"], [(1.0, ())], 1e-6)
    >>> 0.9 < ball_floor(law, 4.0).epsilon(1e-6).upper < 1.0
    True
    """
    reports = whole_number(reports, "reports", 1, MOST_REPORTS)
    if draw is not None:
        kept = tuple(_word(keep) for keep in draw)
        if len(kept) != len(law.columns):
            raise InvalidInput(f"draw must have one chance for each of the {len(law.columns)} columns; got {len(kept)}")
        tops = [_budget_of(keep, column.values) for keep, column in zip(kept, law.columns, strict=True)]
        return BallFloor(law, kept, reports, _sum(tops * reports))
    if isinstance(epsilon0, bool) or not isinstance(epsilon0, int | float) or not 0.0 <= epsilon0 <= MAX_EPSILON0:
        raise InvalidInput(f"epsilon0 must be a number of nats from 0 to {MAX_EPSILON0:g}; got {shown(epsilon0)}")
    kept = tuple(chance_kept(epsilon0, column.values) for column in law.columns)
    return BallFloor(law, kept, reports, _sum([float(epsilon0)] * (len(kept) * reports)))


def chance_kept(epsilon0: float, values: int) -> Fraction:
    """Return kappa = (e^epsilon0 - 1)/(e^epsilon0 + k - 1) of randomized response over k values, rounded up."""
    grown = exp_upper(Fraction(epsilon0))
    return (grown - 1) / (grown + values - 1)


def _word(value: object) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= WHOLE:
        raise InvalidInput(f"a law is drawn by whole numbers from 0 to 2^64; got {shown(value)}")
    return Fraction(value, WHOLE)


def _budget_of(kept: Fraction, values: int) -> Upper:
    """Return the local budget of reports so drawn: log(1 + k kappa/(1 - kappa))."""
    if kept == 1:
        return UNBOUNDED
    return round_up(math.log1p(float(values * kept / (1 - kept))), 8)


def _sum(budgets: list[Upper] | list[float]) -> Upper:
    return round_up(math.fsum(budgets)) if len(budgets) > 1 else Upper(budgets[0])


def double_above(value: Fraction) -> Upper:
    """Return a double of at least ``value``, which is not negative: the double after the nearest one; 0 for 0."""
    return round_up(float(value)) if value else Upper(0.0)


# One or several reports hidden among dummies: the pair of laws of what is released, atom by atom.
#
# A report of a record x is, with chance `keep`, uniform on the record's own set A_x, and otherwise uniform on all
# possible reports; a set holds one in `one_in` of them. Among m dummies drawn uniformly, c reports of a record x0 (or
# of x1) are released: m + c reports in all. Let A and B count the released reports in A_x0 and in A_x1. Were all of
# them uniform, (A, B) would have the law w; the density of c reports of x0 against it is
#
#     r(A) = E top^J low^(c - J),   top = low + one_in keep,  low = 1 - keep,                               (R)
#
# where J is the number in A_x0 of c reports drawn from the released ones without replacement: each set of c of the m
# + c is as likely to be the person's. Likewise r(B) for x1. Sets of two records are disjoint, or independent of each
# other.

MOST_ATOMS = 1 << 21
"""Largest number of atoms of a pair that is evaluated."""
_REST = 1e-45
"""Probability of the counts beyond each end that are left out, and charged."""
_LEAST = 1e-300
_FEW = 1e-280
"""Mass below which an atom among normal dummies may come from probabilities that underflow."""


@dataclass(frozen=True)
class Kept:
    """How a report is drawn: from the record's own set with chance `keep`, else uniformly from all possible reports.

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
    """Return the pair of laws of what is released: c reports of record x0, or of x1, among uniform dummies.

    Parameters
    ----------
    one_in : int
        A record's set of reports holds one in ``one_in`` of the possible reports, at least 2.
    disjoint : bool
        Whether the sets of two records are disjoint; otherwise they are independent under a uniform report.
    dummies, reports : int
        Numbers m >= 0 of dummies and c >= 1 of reports.
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
    """Return the pair of laws of what is released: c bits of record 1, or of record 0, among dummies with D ones.

    The number of released ones is D + Bin(c, (1 + keep)/2) for record 1, and mirrored for record 0.

    Parameters
    ----------
    weights : tuple of int
        P(D = j) times 2^64, j = 0..m; symmetric.
    reports : int
        Number of bits c >= 1.
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
        The law of the dummies.
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
    larger_ratio = kept.keep + kept.rest * ratio  # (C2): of the larger law, whose other part tells nothing
    nothing = kept.rest * float((mass * (1.0 - ratio))[forward].sum()) + (1e-13 if kept.rest else 0.0)
    larger_ratio = np.where(ratio == 1.0, 1.0, larger_ratio)
    weights = np.append(mass, nothing) if nothing else mass
    ratios = [
        np.where(forward, larger_ratio, ratio),
        np.where(forward, ratio, np.where(ratio == 1.0, 1.0, larger_ratio)),
    ]
    ratios = [np.append(side, 1.0) if nothing else side for side in ratios]
    return WeightedPair(weights, ratios[0], ratios[1], one + two + 16.0 * EPS, 32.0, charge)


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
    likely = whole[inside]
    return likely if total > 64 else whole


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


# ------------------------------------------------------------------ floor
# The floor of dummies (D3): what holds against every other participant, for every number of people.
#
# Let the dummies' histogram M have the law G. Whatever the others send, for the victim's records x0 and x1
#
#     H <= F(eps) = sum_t [ sum_y (R(x0)(y) - e^eps R(x1)(y)) G(t - e_y) ]_+ ,                             (D3)
#
# with equality if the observer knows all other reports. F belongs to one finite pair, which is evaluated atom by atom
# (`shuffledp.accounting.theorems.floor.bound`); the floors of several questions multiply. See
# docs/theorems/floor.md.

_FARTHEST = 709.0
"""Largest epsilon (nats) with a finite e^epsilon; larger ones get its delta."""
_LARGE = 1000
"""Number of dummies, for each in `one_in`, above which pairs are computed at every use instead of cached."""
_MERGED = 1 << 17
"""Largest number of atoms of a product of pairs: of more than two pairs the smallest are multiplied up to it."""


@dataclass(frozen=True, eq=False)
class Floor(PrivacyProfile):
    """Certified profile of one person's reports to one or several questions, from the dummies alone.

    It holds whatever all other participants send. Use `floor_profile` or `compose_floors` to make one.

    Parameters
    ----------
    above, below : tuple of WeightedPair
        The product of the pairs above dominates every pair of neighbours; the product of those below is one that an
        observer who knows all other reports attains. Where the two are one and the same, the floor is exact.
    top : float
        Sum of the local budgets of all reports (nats): from there on delta is 0.
    """

    tolerance: ClassVar[float] = 1e-9

    above: tuple[WeightedPair, ...]
    below: tuple[WeightedPair, ...]
    top: Upper
    _sums: dict[bool, WeightedPair | ProductPair | LossSum] = field(
        default_factory=dict[bool, "WeightedPair | ProductPair | LossSum"], repr=False
    )

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon (nats) from which on delta is 0: the sum of the local budgets, since the rest is post-processing."""
        return self.top

    def delta_at(self, epsilon: float) -> Interval:
        """Enclose delta(epsilon): above by the dominating pairs, below by pairs that an observer attains."""
        at, above = min(epsilon, _FARTHEST), self._whole(True)
        divergence = above.divergence(at)
        # a sum of losses encloses that of the dominating laws, which says nothing from below
        exact = self.below is self.above and not isinstance(above, LossSum)
        lower = divergence.lower if exact else self._whole(False).divergence(at).lower
        return Interval(min(lower, divergence.upper) if epsilon <= _FARTHEST else 0.0, divergence.upper)

    def keeps(self, epsilon: float, delta: float) -> bool:
        """Return whether the person's reports are certified to be (epsilon, delta)-private.

        Parameters
        ----------
        epsilon : float
            Nats, at least 0.
        delta : float
            In (0, 1).
        """
        return epsilon >= self.top or self._whole(True).divergence(min(epsilon, _FARTHEST)).upper <= delta

    def guess_epsilon(self, delta: float) -> float | None:
        """Return an approximation of epsilon(delta) (nats) by a saddle point, a first guess; None for a single pair."""
        if len(self.above) == 1:
            return None
        return LossSum(*_counted([pair.dominating for pair in self.above])).guess(math.log(delta))

    def _inverse(self, target: float) -> Interval:
        """One pair is inverted exactly; of several, both sides of the crossing are found by search."""
        if len(self.above) > 1 or len(self.below) > 1:
            return super()._inverse(target)
        above, below = next(iter(self.above)), next(iter(self.below))
        epsilon = above.epsilon(target)
        lower = epsilon.lower if below is above else below.epsilon(target).lower
        upper = min(epsilon.upper, self.top)
        return Interval(min(lower, upper), upper)

    def _whole(self, above: bool) -> WeightedPair | ProductPair | LossSum:
        """One pair, a product of two without a grid, or a sum of the losses of several."""
        if above not in self._sums:
            pairs = sorted(self.above if above else self.below, key=lambda pair: pair.weights.size)
            while len(pairs) > 2 and pairs[0].weights.size * pairs[1].weights.size <= _MERGED:
                merged = multiplied(pairs[0], pairs[1])
                pairs = sorted([merged, *pairs[2:]], key=lambda pair: pair.weights.size)
            if len(pairs) == 1:
                self._sums[above] = pairs[0]
            elif len(pairs) == 2:
                self._sums[above] = ProductPair(long=pairs[1], short=pairs[0])
            else:
                self._sums[above] = LossSum(*_counted([p.dominating if above else p.dominated for p in pairs]))
        return self._sums[above]


def _counted(laws: list[LossLaw]) -> tuple[tuple[LossLaw, ...], tuple[int, ...]]:
    """Different laws, and how often each occurs."""
    distinct = {id(law): law for law in laws}
    every = [id(law) for law in laws]
    return tuple(distinct.values()), tuple(every.count(one) for one in distinct)


def floor_profile(
    randomizer: object,
    epsilon0: float | None,
    dummies: OwnDummies,
    *,
    reports: int = 1,
    draw: int | tuple[int, int] | None = None,
) -> Floor:
    """Return the privacy profile of one person's reports to one question, against everybody else: (D3).

    It holds for every number of people and whatever the other participants send, as long as the shuffler is honest,
    draws the dummies from their law and tells nobody which they are.

    Parameters
    ----------
    randomizer : RandomizedResponse, OneBit or HadamardResponse
        The question's family. Reports of other families are not drawn from one set of equally likely reports.
    epsilon0 : float or None
        The person's local budget for a report (nats, from 0 to 700); None if `draw` states the law instead.
    dummies : Uniform, DiscreteLaplace, OnesLaw or NormalDummies
        What the shuffler adds to this question. DiscreteLaplace and OnesLaw are for families of one bit.
    reports : int
        Number of reports of this person to the question, from 1 to 64, of the same record or of different ones;
        default 1.
    draw : int or (int, int), optional
        The law as it is drawn, in whole numbers over 2^64: the chance of the report's own part
        (`keep_thresholds`); of a bit also the chances of a 1 at the low and at the high end.

    Returns
    -------
    Floor
        ``.delta(epsilon)`` and ``.epsilon(delta)`` are Intervals. They are closed to about 1e-9 for one report, and
        for any number of bits; for several reports of other families the upper end comes from the theorem on split
        dummies and the lower one from repeating one record.

    Raises
    ------
    InvalidInput
        If the family or its dummies do not fit, or a number is out of range.
    OutOfRegime
        If there are so many dummies that the pair of laws does not fit into memory.

    Notes
    -----
    Source: docs/theorems/floor.md, own proof.

    Examples
    --------
    >>> import shuffledp as sdp
    >>> floor = sdp.floor_profile(sdp.RandomizedResponse(5), 4.0, sdp.Uniform(172))
    >>> 0.997 < floor.epsilon(1e-6).upper < 1.0
    True
    """
    family, checked = check_dummies(randomizer, dummies)
    if isinstance(checked, BallDummies):
        raise InvalidInput("ball dummies are one law for all questions together: ask ball_floor for their floor")
    dummies, sets = checked, family.report_sets
    reports = whole_number(reports, "reports", 1, MOST_REPORTS)
    most, least, top = _kept(sets.one_in, epsilon0) if draw is None else _drawn(sets.one_in, sets.disjoint, draw)
    above = _pairs(sets.one_in, sets.disjoint, dummies, reports, most)
    if isinstance(dummies, NormalDummies):  # exact for reports without local noise
        return Floor(above, above if most.rest == 0.0 else (_NOTHING,), Upper(top))
    if reports > 1 and not (sets.one_in == 2 and sets.disjoint):
        below = (among_uniform(sets.one_in, sets.disjoint, dummies.count, reports, least),)
    else:
        below = above if least == most else _pairs(sets.one_in, sets.disjoint, dummies, reports, least)
    return Floor(above, below, Upper(top) if reports == 1 else round_up(top * reports, 1))


def compose_floors(floors: Sequence[Floor]) -> Floor:
    """Return the floor of several questions or rounds together, each with dummies drawn independently.

    Parameters
    ----------
    floors : sequence of Floor
        One per question, at least one. Equal questions may share one floor, listed several times.

    Raises
    ------
    InvalidInput
        If there is none.

    Examples
    --------
    >>> import shuffledp as sdp
    >>> one = sdp.floor_profile(sdp.RandomizedResponse(2), 1.0, sdp.Uniform(400))
    >>> one.epsilon(1e-6).upper < sdp.compose_floors([one, one]).epsilon(1e-6).upper
    True
    """
    if not floors:
        raise InvalidInput("a composition of floors needs at least one question; got none")
    if len(floors) == 1:
        return floors[0]
    above = tuple(pair for each in floors for pair in each.above)
    exact = all(each.below is each.above for each in floors)
    below = above if exact else tuple(pair for each in floors for pair in each.below)
    return Floor(above, below, round_up(math.fsum(each.top for each in floors)))


def _pairs(one_in: int, disjoint: bool, dummies: OwnDummies, reports: int, kept: Kept) -> tuple[WeightedPair, ...]:
    """Pairs whose product dominates; one exact pair for one report, and for bits."""
    if isinstance(dummies, Uniform):
        if reports == 1 or (one_in == 2 and disjoint):
            return (_uniform(one_in, disjoint, dummies.count, reports, kept),)
        # each report is hidden by its own share of the dummies: telling which share is whose only helps the observer
        shares = [dummies.count // reports + (i < dummies.count % reports) for i in range(reports)]
        return tuple(_uniform(one_in, disjoint, share, 1, kept) for share in shares)
    if isinstance(dummies, NormalDummies):
        if reports > 1:
            raise OutOfRegime("a floor of several reports is not known for normal dummies; take ball dummies")
        return (_cells(dummies, kept),)
    if reports > 1 and not is_log_concave(dummies.weights):
        raise OutOfRegime(
            "a floor of several reports needs a log-concave law of the number of ones, P(D=j)^2 >= P(D=j-1) P(D=j+1)"
        )
    return (_ones(dummies.weights, reports, kept),)


def _uniform(one_in: int, disjoint: bool, dummies: int, reports: int, kept: Kept) -> WeightedPair:
    """Remember pairs that are not large: a pair keeps its law of losses, and equal questions share it."""
    make = _remembered if dummies + reports <= _LARGE * one_in else among_uniform
    return make(one_in, disjoint, dummies, reports, kept)


_remembered = lru_cache(maxsize=64)(among_uniform)


_NOTHING = WeightedPair(np.ones(1), np.ones(1), np.ones(1), 0.0, 0.0, 0.0)
"""Two equal laws: the trivial lower bound."""


@lru_cache(maxsize=64)
def _cells(dummies: NormalDummies, kept: Kept) -> WeightedPair:
    """Remembered, likewise."""
    return among_cells(dummies, kept)


@lru_cache(maxsize=64)
def _ones(weights: tuple[int, ...], reports: int, kept: Kept) -> WeightedPair:
    """Remembered, likewise."""
    return among_ones(weights, reports, kept)


def _kept(one_in: int, epsilon0: float | None) -> tuple[Kept, Kept, Upper]:
    """How a report of that budget is drawn, twice, and the budget; a smaller chance to keep is never worse."""
    number = isinstance(epsilon0, int | float | np.floating) and not isinstance(epsilon0, bool)
    if not (number and 0.0 <= float(epsilon0) <= MAX_EPSILON0):  # type: ignore[arg-type]
        raise InvalidInput(f"epsilon0 must be a number of nats from 0 to {MAX_EPSILON0:g}; got {shown(epsilon0)}")
    budget = float(epsilon0)  # type: ignore[arg-type]
    decay = math.exp(-budget)
    whole = 1.0 + (one_in - 1) * decay
    kept = Kept(-math.expm1(-budget) / whole, one_in * decay / whole)
    return kept, kept, Upper(budget)


def _drawn(one_in: int, disjoint: bool, draw: int | tuple[int, int]) -> tuple[Kept, Kept, Upper]:
    """Return the most and the least that a stated law keeps of a record, and a budget that it satisfies.

    Bits with chances a and b of a 1 at the two ends: with w = max(b, 1 - a) both rows are mixtures of those of
    randomized response that is true with chance w, and with w = min(b, 1 - a) mixtures the other way round.
    """
    if isinstance(draw, tuple):
        if not (one_in == 2 and disjoint):
            raise InvalidInput(
                f"two chances state the law of reports of one bit; other families take one; got {shown(draw)}"
            )
        low, high = (_whole_word(part) for part in draw)
        if low > high:
            raise InvalidInput(f"the chance of a 1 must not fall from the low end to the high one; got {shown(draw)}")
        both = (2 * high - FULL, FULL - 2 * low)
    else:
        both = (_whole_word(draw), _whole_word(draw))
    most, least = max(0, *both), max(0, min(both))
    ratio = Fraction(FULL + (one_in - 1) * most, max(FULL - most, 1))  # of the likeliest report's two chances
    gain = float(ratio - 1)
    top = UNBOUNDED if most == FULL else round_up(math.log1p(gain), 8)
    return Kept(most / FULL, (FULL - most) / FULL), Kept(least / FULL, (FULL - least) / FULL), top


def _whole_word(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= int(value) <= FULL:
        raise InvalidInput(f"a law is drawn by whole numbers from 0 to 2^64; got {shown(value)}")
    return int(value)


class FloorBound(AmplificationBound):
    """Upper bound from the shuffler's dummies alone, all other participants being the adversary's.

    See docs/theorems/floor.md.
    """

    key = "floor"
    kind = Kind.CERTIFIED_UPPER
    reference = "dummies of the shuffler alone, whatever everybody else sends (own proof)"

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the profile of one round that the shuffler's dummies alone give.

        It is theorem (D3) of docs/theorems/floor.md, for as many reports as one changed person may change; for ball
        dummies it is the profile of docs/theorems/ball.md.

        Parameters
        ----------
        setting : Setting
            What is released; it must have dummies.
        epsilon0 : float
            Local budget of the attacked user, nats.
        """
        if setting.dummies is None:
            raise OutOfRegime("floor needs dummies; the setting has none")
        if setting.changed_reports > MOST_REPORTS:
            raise OutOfRegime(
                f"floor is computed for at most {MOST_REPORTS} reports of a group; got {setting.changed_reports}"
            )
        if isinstance(setting.dummies, BallDummies):
            return ball_floor(setting.dummies, epsilon0, reports=setting.changed_reports)
        return floor_profile(setting.law, epsilon0, setting.dummies, reports=setting.changed_reports)

    def profile(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the profile from the dummies alone over all rounds; see `AmplificationBound.profile`."""
        setting.budgets.index_of(epsilon0)
        return composed(self.one_round(setting, epsilon0), setting.rounds)

    def level_epsilons(
        self, setting: Setting, delta: float, levels: NDArray[np.int64], ceilings: FloatArray | None = None
    ) -> Enclosure:
        """Enclose the epsilon of each listed level (nats) from the dummies alone.

        Of more than 32 levels a few are computed, because the epsilon rises with the local budget. See
        `AmplificationBound.level_epsilons`.
        """
        epsilons = setting.budgets.epsilons[levels]
        if levels.size > MANY_LEVELS:
            capped = setting.changed_reports == setting.rounds == 1
            return epsilons_by_anchors(epsilons, delta, lambda e: composed(self.one_round(setting, e), setting.rounds),
                                       capped=capped)  # fmt: skip
        intervals = [self.profile(setting, float(epsilon0)).epsilon(delta) for epsilon0 in epsilons]
        return Enclosure(np.array([f.lower for f in intervals]), np.array([f.upper for f in intervals]))
