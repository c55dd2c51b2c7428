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
from shuffledp.accounting.theorems.floor.ball import MOST_REPORTS, ball_floor
from shuffledp.accounting.theorems.floor.fake_reports import Kept, among_cells, among_ones, among_uniform
from shuffledp.ball import BallDummies
from shuffledp.budgets import MAX_EPSILON0
from shuffledp.dummies import WHOLE, OwnDummies, Uniform, check_dummies, is_log_concave
from shuffledp.errors import InvalidInput, OutOfRegime, shown
from shuffledp.guarantee import Kind
from shuffledp.normal import NormalDummies
from shuffledp.numerics.floats import UNBOUNDED, Upper, round_up
from shuffledp.numerics.interval import Enclosure, FloatArray, Interval
from shuffledp.numerics.losses import LossLaw, LossSum, ProductPair, WeightedPair, multiplied
from shuffledp.setting import Setting

# ------------------------------------------------------------------ floor
# The floor of dummies (D3): what holds against every other participant, for every number of people.
#
# Let the dummies' histogram M have the law G. Whatever the others send, for the victim's records x0 and x1
#
#     H <= F(eps) = sum_t [ sum_y (R(x0)(y) - e^eps R(x1)(y)) G(t - e_y) ]_+ ,                             (D3)
#
# with equality if the observer knows all other reports. F belongs to one finite pair, which is evaluated atom by atom
# (`shuffledp.accounting.theorems.floor.fake_reports`); the floors of several questions multiply. See
# docs/theorems/floor.md.

_FARTHEST = 709.0
"""Beyond, e^epsilon is no double; delta there is answered as here."""
_LARGE = 1000
"""Pairs with more dummies than so many for each in `one_in` are computed anew whenever they are asked for."""
_MERGED = 1 << 17
"""Of more than two pairs, the smallest are multiplied out as long as their product has at most so many atoms."""


@dataclass(frozen=True, eq=False)
class Floor(PrivacyProfile):
    """Certified floor of one person's reports to one or several questions. Use `floor_profile`, `compose_floors`.

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
        """The sum of the local budgets: what is released is a post-processing of the person's reports."""
        return self.top

    def delta_at(self, epsilon: float) -> Interval:
        """Return the dominating product from above, the attained one from below."""
        at, above = min(epsilon, _FARTHEST), self._whole(True)
        found = above.divergence(at)
        # a sum of losses encloses that of the dominating laws, which says nothing from below
        exact = self.below is self.above and not isinstance(above, LossSum)
        lower = found.lower if exact else self._whole(False).divergence(at).lower
        return Interval(min(lower, found.upper) if epsilon <= _FARTHEST else 0.0, found.upper)

    def keeps(self, epsilon: float, delta: float) -> bool:
        """Whether the floor is certified to be (epsilon, delta)-private.

        Parameters
        ----------
        epsilon : float
            Nats, at least 0.
        delta : float
            In (0, 1).
        """
        return epsilon >= self.top or self._whole(True).divergence(min(epsilon, _FARTHEST)).upper <= delta

    def guess_epsilon(self, delta: float) -> float | None:
        """Return the saddle-point approximation of the product; it only saves time."""
        if len(self.above) == 1:
            return None
        return LossSum(*_counted([pair.dominating for pair in self.above])).guess(math.log(delta))

    def _inverse(self, target: float) -> Interval:
        """One pair is inverted exactly; of several, both sides of the crossing are found by search."""
        if len(self.above) > 1 or len(self.below) > 1:
            return super()._inverse(target)
        above, below = next(iter(self.above)), next(iter(self.below))
        found = above.epsilon(target)
        lower = found.lower if below is above else below.epsilon(target).lower
        upper = min(found.upper, self.top)
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
    known = {id(law): law for law in laws}
    every = [id(law) for law in laws]
    return tuple(known.values()), tuple(every.count(one) for one in known)


def floor_profile(
    randomizer: object,
    epsilon0: float | None,
    dummies: OwnDummies,
    *,
    reports: int = 1,
    draw: int | tuple[int, int] | None = None,
) -> Floor:
    """Privacy profile of one person's reports to one question, against everybody else: (D3).

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
    family, known = check_dummies(randomizer, dummies)
    if isinstance(known, BallDummies):
        raise InvalidInput("ball dummies are one law for all questions together: ask ball_floor for their floor")
    dummies, sets = known, family.report_sets
    if isinstance(reports, bool) or not isinstance(reports, int) or not 1 <= reports <= MOST_REPORTS:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"reports must be a whole number from 1 to {MOST_REPORTS}; got {shown(reports)}")
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
    """Floor of several questions, or rounds, together: each with its own dummies, drawn by themselves.

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
"""Two equal laws: a lower end that says nothing."""


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
            raise InvalidInput(f"two chances state the law of one bit; got {shown(draw)} for reports of another family")
        low, high = (_word(part) for part in draw)
        if low > high:
            raise InvalidInput(f"the chance of a 1 must not fall from the low end to the high one; got {shown(draw)}")
        both = (2 * high - WHOLE, WHOLE - 2 * low)
    else:
        both = (_word(draw), _word(draw))
    most, least = max(0, *both), max(0, min(both))
    ratio = Fraction(WHOLE + (one_in - 1) * most, max(WHOLE - most, 1))  # of the likeliest report's two chances
    gain = float(ratio - 1)
    top = UNBOUNDED if most == WHOLE else round_up(math.log1p(gain), 8)
    return Kept(most / WHOLE, (WHOLE - most) / WHOLE), Kept(least / WHOLE, (WHOLE - least) / WHOLE), top


def _word(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= int(value) <= WHOLE:
        raise InvalidInput(f"a law is drawn by whole numbers from 0 to 2^64; got {shown(value)}")
    return int(value)


class FloorBound(AmplificationBound):
    """Dummies alone, everybody else being the adversary's.

    See docs/theorems/floor.md.
    """

    key = "floor"
    kind = Kind.CERTIFIED_UPPER
    reference = "dummies of the shuffler alone, whatever everybody else sends (own proof)"

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Profile of (D3) for all reports that differ between neighbours; see `AmplificationBound.one_round`.

        Of ball dummies that of docs/theorems/ball.md.
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
        """Return the floor over all rounds; see `AmplificationBound.profile`."""
        setting.budgets.index_of(epsilon0)
        return composed(self.one_round(setting, epsilon0), setting.rounds)

    def level_epsilons(
        self, setting: Setting, delta: float, levels: NDArray[np.int64], ceilings: FloatArray | None = None
    ) -> Enclosure:
        """Level by level; of many levels a few are computed, because the floor rises with the budget."""
        epsilons = setting.budgets.epsilons[levels]
        if levels.size > MANY_LEVELS:
            capped = setting.changed_reports == setting.rounds == 1
            return epsilons_by_anchors(epsilons, delta, lambda e: composed(self.one_round(setting, e), setting.rounds),
                                       capped=capped)  # fmt: skip
        found = [self.profile(setting, float(epsilon0)).epsilon(delta) for epsilon0 in epsilons]
        return Enclosure(np.array([f.lower for f in found]), np.array([f.upper for f in found]))
