"""From a setting to the guarantee anyone may quote: smallest certified upper bound, largest witness; and whole curves.

The curves are those of the worst level, as points: the privacy profile, and the Renyi divergence by order.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.bound import MANY_LEVELS, AmplificationBound, levels_to_check, weigh
from shuffledp.accounting.profiles.composition import BracketProfile, FromAbove, SmallestProfile
from shuffledp.accounting.profiles.domination import check_outside, dominating_mu
from shuffledp.accounting.profiles.profile import PrivacyProfile, remembered_by_thread
from shuffledp.accounting.published import PUBLISHED
from shuffledp.accounting.theorems.approximate import ApproximateBound
from shuffledp.accounting.theorems.blanket.bound import BlanketBound
from shuffledp.accounting.theorems.chain.bound import ChainBound
from shuffledp.accounting.theorems.clones.bound import ClonesBound
from shuffledp.accounting.theorems.count.bound import CountBound
from shuffledp.accounting.theorems.count.exact import CountWitness
from shuffledp.accounting.theorems.equal_crowd import EqualCrowdWitness
from shuffledp.accounting.theorems.floor.bound import FloorBound
from shuffledp.accounting.theorems.krr_exact import KaryWitness
from shuffledp.accounting.theorems.linked import LinkedBound, LinkedWitness
from shuffledp.accounting.theorems.local import LocalBound
from shuffledp.accounting.theorems.ordered import OrderedBound
from shuffledp.accounting.theorems.reports_exact import ReportsWitness
from shuffledp.accounting.theorems.sum import SumBound, SumWitness
from shuffledp.accounting.theorems.window.bound import WindowWitness
from shuffledp.budgets import Budgets
from shuffledp.errors import InconsistentBounds, NotConverged, OutOfRegime, check_delta, whole_number
from shuffledp.numerics.floats import TINY, Enclosure, FloatArray, Interval, few_digits_up
from shuffledp.progress import Progress
from shuffledp.randomizers.base import MadeFromMemo
from shuffledp.setting import Evidence, Guarantee, Kind, LevelGuarantee, Setting

# What several bounds together say of some levels: the smallest upper bound, the largest witness, and the evidence.

_FIRST_OVER_ROUNDS = {
    key: at for at, key in enumerate(("count", "linked", "approximate", "blanket", "clones"), start=1)
}
"""Bounds that are evaluated after the others, in this order: cheaper ones, or usually smaller ones, first."""


@dataclass(frozen=True, eq=False)
class Weighed:
    """The certified ends of some levels' central epsilon, from several bounds together.

    Parameters
    ----------
    lower, upper : ndarray, shape (listed,)
        Per level, nats: the largest certified lower bound (0 if there is none), and the smallest certified upper bound
        (inf if there is none), without the floor.
    floor : Enclosure, shape (listed,), or None
        The epsilon that the dummies alone guarantee, even if all other users collude; None without dummies, or if the
        floor does not apply.
    evidence : tuple of Evidence
        One per bound that was asked.
    """

    lower: FloatArray
    upper: FloatArray
    floor: Enclosure | None
    evidence: tuple[Evidence, ...]

    @property
    def smallest(self) -> FloatArray:
        """Smallest upper bound of each level's central epsilon (nats), the bound `floor` included; shape (listed,)."""
        return self.upper if self.floor is None else np.minimum(self.upper, self.floor.upper)


def weigh_levels(
    setting: Setting,
    delta: float,
    listed: NDArray[np.int64],
    chosen: Sequence[AmplificationBound],
    progress: Progress | None = None,
    *,
    smallest: bool = False,
) -> Weighed:
    """Enclose the central epsilon of each listed level by several bounds together.

    Parameters
    ----------
    setting : Setting
        The collection.
    delta : float
        Central delta, in (0, 1).
    listed : ndarray of int, shape (listed,)
        Levels, by their position among the budgets.
    chosen : sequence of AmplificationBound
        The bounds; those that may not enter the certified interval are reported as evidence only.
    progress : callable, optional
        Called with the share of the bounds that were asked, from 0 to 1.
    smallest : bool
        Whether only `Weighed.smallest` is wanted, of one level: over rounds, a bound whose delta at what is known
        already is too large is not searched, and answers inf.

    Returns
    -------
    Weighed
        Per level the largest lower and the smallest upper bound, and the answer of every bound.
    """
    lower, upper = np.zeros(listed.size), np.full(listed.size, math.inf)
    floor: Enclosure | None = None
    evidence: list[Evidence] = []
    rivals = setting.rounds > 1  # in one round an answer costs less than to tell whether it is needed
    last = {FloorBound.key: len(_FIRST_OVER_ROUNDS) + 1} if smallest else {}  # usually far above the others
    places = _FIRST_OVER_ROUNDS | last
    order = sorted(chosen, key=lambda bound: places.get(bound.key, 0)) if rivals else chosen

    def ask(bound: AmplificationBound) -> Enclosure:
        if smallest and rivals and _surely_above(bound, setting, delta, int(listed[0]), float(upper[0])):
            return Enclosure(np.zeros(1), np.full(1, math.inf))
        ceilings = upper.copy() if rivals and bound.kind is Kind.CERTIFIED_UPPER else None
        return bound.level_epsilons(setting, delta, listed, ceilings)

    answers = weigh(order, ask)
    for done, answer in enumerate(answers, start=1):
        bound, enclosure = answer.bound, answer.value
        if progress is not None:
            progress(done / len(chosen))
        if enclosure is None:
            evidence.append(Evidence(bound.key, bound.kind, bound.reference, refused=answer.refused))
            continue
        worst = Interval(float(enclosure.lower.max()), float(enclosure.upper.max()))
        evidence.append(Evidence(bound.key, bound.kind, bound.reference, epsilon=worst))
        if not bound.enters_bracket:
            continue
        if bound.key == FloorBound.key:
            floor = enclosure
        elif bound.kind is Kind.CERTIFIED_UPPER:
            upper = np.minimum(upper, enclosure.upper)
        elif bound.kind is Kind.CERTIFIED_LOWER:
            lower = np.maximum(lower, enclosure.lower)
    place = {bound.key: at for at, bound in enumerate(chosen)}
    return Weighed(lower, upper, floor, tuple(sorted(evidence, key=lambda one: place[one.key])))


_CLEARLY = 1.0001
"""Factor on a known epsilon at which another bound is asked for its delta, above what either search leaves open."""
_CLEARLY_QUICK = 5.0
"""Factor on the wanted delta above which a quick value of delta tells that the value in full is above it, too."""


def _surely_above(bound: AmplificationBound, setting: Setting, delta: float, level: int, ceiling: float) -> bool:
    """Return whether an upper bound's epsilon is above a ceiling (nats), judged by one value of its delta.

    One report in one round, which costs little, is asked first: all of them together reveal no less. Noise added to
    records, delta0 above 0, linked rounds and many levels are left to the search.
    """
    pure = setting.adds_noise is None and setting.budgets.is_pure and not setting.linked
    if not pure or setting.budgets.levels > MANY_LEVELS or math.isinf(ceiling):
        return False
    own, at = float(setting.budgets.epsilons[level]), ceiling * _CLEARLY
    once = replace(setting, rounds=1, group_size=1)
    try:
        profiles = [bound.profile(each, own) for each in (once, setting)]
        if any(profile.deltas_quickly([at])[0] > _CLEARLY_QUICK * delta for profile in profiles):
            return True
        return any(profile.delta(at).upper > delta for profile in profiles)
    except (OutOfRegime, NotConverged):  # the search tells why it refuses, if it does
        return False


RENAMED = {"levels": "clones", "rr-exact": "count-exact"}
"""Names of bounds in version 0.2.0 and their present names; the old ones are still accepted for one version."""


class Keyed(Mapping[str, AmplificationBound]):
    """Read-only mapping from a theorem's key to its bound.

    A key of `RENAMED` raises a FutureWarning and returns the bound under its present name.

    Parameters
    ----------
    known : iterable of AmplificationBound
        The bounds, in the order in which they are asked.
    """

    def __init__(self, members: Iterable[AmplificationBound]) -> None:
        self._known = {bound.key: bound for bound in members}

    def __getitem__(self, key: str) -> AmplificationBound:
        if key in RENAMED:
            now = RENAMED[key]
            warnings.warn(f"the bound {key!r} is now {now!r}; use bounds[{now!r}]", FutureWarning, stacklevel=2)
            return self._known[now]
        return self._known[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __repr__(self) -> str:
        return f"<{len(self)} bounds by key: {', '.join(self)}>"

    def __len__(self) -> int:
        return len(self._known)


bounds: Mapping[str, AmplificationBound] = Keyed(
    (
        ClonesBound(),
        CountBound(),
        BlanketBound(),
        OrderedBound(),
        SumBound(),
        ApproximateBound(),
        ChainBound(),
        LinkedBound(),
        LocalBound(),
        FloorBound(),
        CountWitness(),
        KaryWitness(),
        ReportsWitness(),
        WindowWitness(),
        EqualCrowdWitness(),
        SumWitness(),
        LinkedWitness(),
        *PUBLISHED,
    )
)
"""Every theorem by key; each answers for the settings it fits and refuses the others."""

ALWAYS_SHOWN = ("gspa", "rdp-gdp", "rdp-renyi")
"""The two papers' formulas: shown beside every certified number, never in it; other published bounds on request."""


def entering(setting: Setting) -> list[AmplificationBound]:
    """Return the bounds that may enter the certified interval of a setting.

    The bound 'approximate' is left out where 'blanket' and 'chain' are never larger: for shuffled reports of a stated
    randomizer.

    Parameters
    ----------
    setting : Setting
        The question.
    """
    idle = ApproximateBound.key if setting.law is not None and setting.seen != "users" else ""
    return [bound for bound in bounds.values() if bound.enters_bracket and bound.key != idle]


def certified_uppers(setting: Setting) -> list[AmplificationBound]:
    """Return the certified upper bounds among those that may enter the certified interval of a setting.

    Parameters
    ----------
    setting : Setting
        The question.
    """
    return [bound for bound in entering(setting) if bound.kind is Kind.CERTIFIED_UPPER]


def consulted(setting: Setting, *, published: bool) -> list[AmplificationBound]:
    """Return the bounds that `certify` asks about a setting, in order.

    The floor is asked only if there are dummies; bounds for linked rounds only if rounds are linked or reports are made
    from a memo.

    Parameters
    ----------
    setting : Setting
        The question.
    published : bool
        Whether to ask every published bound, or only the certified ones, witnesses and the two papers' formulas.
    """
    published_too = [bound for bound in PUBLISHED if published or bound.key in ALWAYS_SHOWN]
    idle: set[str] = set() if setting.dummies is not None else {FloorBound.key}
    if not (setting.linked or isinstance(setting.law, MadeFromMemo)):
        idle |= {LinkedBound.key, LinkedWitness.key}
    return [*(bound for bound in entering(setting) if published or bound.key not in idle), *published_too]


def certify(
    setting: Setting,
    delta: float,
    *,
    max_levels: int = 1000,
    published: bool = False,
    progress: Progress | None = None,
) -> Guarantee:
    """Certify the central privacy of a shuffled collection.

    Parameters
    ----------
    setting : Setting
        The collection: population, randomizer, who sees what.
    delta : float
        Central delta, in (0, 1); far below 1/n is customary.
    max_levels : int
        At most that many levels are listed, spread evenly over the users, the worst always among them.
    published : bool
        Whether to show every published bound besides, as evidence; none of them enters the certified interval.
    progress : callable, optional
        Called with the share of the bounds that were asked, from 0 to 1.

    Returns
    -------
    Guarantee
        Per level the smallest certified upper bound of the central epsilon (nats) and the largest witness (a lower
        bound that a real attack attains), and the evidence; all ends are rounded outward to 10 significant digits, so
        that every machine states the same.

    Raises
    ------
    InvalidInput
        If delta is not in (0, 1), or max_levels is not a positive whole number.
    InconsistentBounds
        If an upper bound falls below a witness: a bug, please report it.

    Examples
    --------
    >>> setting = Setting(Budgets.of([1.0] * 1000), "any", seen="reports", neighboring="replace-one")
    >>> round(certify(setting, delta=1e-6).epsilon.upper, 4)
    0.1487
    """
    target = check_delta(delta)
    max_levels = whole_number(max_levels, "max_levels", 1)
    listed = _listed_levels(setting, target, max_levels)
    chosen = consulted(setting, published=published)
    weighed = weigh_levels(setting, target, listed, chosen, progress)
    _check_consistent(setting.budgets, listed, weighed.lower, weighed.smallest)
    levels = _level_guarantees(setting, listed, weighed)
    mu = partial(worst_mu, setting)
    evidence = tuple(
        one if one.epsilon is None else replace(one, epsilon=one.epsilon.published()) for one in weighed.evidence
    )
    return Guarantee(setting, target, levels, setting.budgets.levels, evidence, mu)


def _level_guarantees(setting: Setting, listed: NDArray[np.int64], weighed: Weighed) -> tuple[LevelGuarantee, ...]:
    """List the levels; with dummies each with its floor, and with what the crowd keeps."""
    budgets, floor, guarantees = setting.budgets, weighed.floor, list[LevelGuarantee]()
    for row, level in enumerate(listed):
        epsilon = Interval(float(weighed.lower[row]), float(weighed.smallest[row])).published()
        one = LevelGuarantee(
            float(budgets.epsilons[level]), float(budgets.deltas[level]), int(budgets.counts[level]), epsilon
        )
        if setting.dummies is not None:
            kept = None if floor is None else Interval(float(floor.lower[row]), float(floor.upper[row])).published()
            one = replace(one, floor=kept, crowd=Interval(epsilon.lower, few_digits_up(float(weighed.upper[row]))))
        guarantees.append(one)
    return tuple(guarantees)


def privacy_profile(setting: Setting, epsilon0: float) -> PrivacyProfile:
    """Return certified upper and lower bounds on one victim's privacy profile delta(epsilon).

    Parameters
    ----------
    setting : Setting
        Population, randomizer, who sees what.
    epsilon0 : float
        Local budget of the victim (the user whose privacy is analysed), nats; some user must have it.

    Returns
    -------
    PrivacyProfile
        ``.delta(epsilon)`` and ``.epsilon(delta)`` are Intervals whose upper ends are certified for every
        randomizer of the setting, and whose lower ends a real attack on one of them attains.

    Raises
    ------
    InvalidInput
        If no user has that budget.

    Examples
    --------
    >>> setting = Setting(Budgets.of([1.0] * 1000), "any", seen="reports", neighboring="replace-one")
    >>> privacy_profile(setting, epsilon0=1.0).delta(0.1).upper < 1e-3
    True
    """
    setting.budgets.index_of(epsilon0)
    return remembered_bracket(setting, float(epsilon0))


@remembered_by_thread(32)
def remembered_bracket(setting: Setting, epsilon0: float) -> BracketProfile:
    """Return the bounds of `privacy_profile`, cached for each thread: values evaluated once serve later compositions.

    Parameters
    ----------
    setting : Setting
        Population, randomizer, who sees what.
    epsilon0 : float
        The victim's local budget, nats; some user must have it.
    """
    uppers: list[PrivacyProfile] = []
    witnesses: list[PrivacyProfile] = []
    for answer in weigh(entering(setting), lambda bound: bound.profile(setting, epsilon0)):
        if answer.value is not None:
            (uppers if answer.bound.kind is Kind.CERTIFIED_UPPER else witnesses).append(answer.value)
    return BracketProfile(SmallestProfile(tuple(uppers)), tuple(witnesses))


def _listed_levels(setting: Setting, delta: float, most: int) -> NDArray[np.int64]:
    """At most ``most`` levels, evenly spread over users, with the level of the largest certified epsilon."""
    budgets = setting.budgets
    if budgets.levels <= most:
        return np.arange(budgets.levels)
    through = np.cumsum(budgets.counts)
    spread = np.searchsorted(through, np.linspace(0.0, float(through[-1]), most - 1), side="left")
    return np.unique(np.append(np.minimum(spread, budgets.levels - 1), _worst_level(setting, delta)))


def _worst_level(setting: Setting, delta: float) -> int:
    """Level with the largest certified upper bound: the top one where that is known, else by trying.

    Among many levels whatever hides all of them together (`CloneCurve`) is monotone in the victim's budget, and so is
    the floor of dummies, which only hide such reports. Where only the own level hides a user, levels are tried, those
    with the largest local epsilon first, until that of the next one is no longer above the best found.
    """
    checked = levels_to_check(setting)
    if len(checked) == 1:
        return checked[0]
    every = np.arange(setting.budgets.levels)
    if every.size <= MANY_LEVELS:
        uppers = weigh_levels(setting, delta, every, certified_uppers(setting)).smallest
        return int(np.flatnonzero(uppers == uppers.max())[-1])
    together = [bounds[key] for key in ("blanket", "ordered")]
    if setting.adds_noise is None and any(
        answer.refused is None for answer in weigh(together, lambda b: b.level_epsilons(setting, delta, every[-1:]))
    ):
        return int(every[-1])
    # of added noise a victim of a smaller budget may stand out: the common blanket tells of each
    capped = ("local", "blanket") if setting.adds_noise is not None else ("local",)
    caps = [bounds[key] for key in ((*capped, "linked") if setting.linked else capped)]
    local = weigh_levels(setting, delta, every, caps).smallest
    own = [bounds[key] for key in ("local", "clones", "approximate")]
    best, worst = -math.inf, int(every[-1])
    for level in np.lexsort((-every, -local)):
        if local[level] <= best:
            break
        value = min(float(weigh_levels(setting, delta, every[[level]], own).smallest[0]), float(local[level]))
        if value > best:
            best, worst = value, int(level)
    return worst


def worst_mu(setting: Setting, outside: float) -> float:
    """Return a mu whose Gaussian shift dominates every victim's profile up to the probability ``outside``.

    See docs/theorems/mu.md. That is: delta(epsilon) <= outside + (1 - outside) g_mu(epsilon), g_mu the profile of N(0,
    1) against N(mu, 1).

    Parameters
    ----------
    setting : Setting
        The collection.
    outside : float
        Probability that may be revealed outright, in [0, 1).

    Returns
    -------
    float
        At least 0, possibly inf; rounded up to 10 significant digits.

    Raises
    ------
    InvalidInput
        If ``outside`` is out of range.
    OutOfRegime
        If some victim's delta does not fall to ``outside``; or if there are more than 32 levels of added noise.
    """
    return _worst_mu(setting, check_outside(outside))


@lru_cache(maxsize=64)
def _worst_mu(setting: Setting, outside: float) -> float:
    """`worst_mu`, remembered: a filter asks for the same round again and again."""
    (levels, alike), pure = _levels_for_mu(setting), setting.budgets.is_pure
    # where the top level stands for all, only what rises with the victim's budget may be asked
    chosen = [bound for bound in certified_uppers(setting) if not alike or bound.rises_with_budget(setting)]
    tolerance = 2e-4 if setting.adds_noise is None else 2e-3  # noise is slow to evaluate
    worst = 0.0
    for level in levels:
        epsilon0 = float(setting.budgets.epsilons[level])
        local = bounds["local"].profile(setting, epsilon0)
        if pure and 0.0 < worst >= dominating_mu(local, outside, at_least=worst):
            break  # those that follow have smaller budgets
        answers = weigh(chosen, lambda bound, e=epsilon0: bound.profile(setting, e))
        profile = FromAbove.of(tuple(answer.value for answer in answers if answer.value is not None))
        worst = dominating_mu(profile, outside, at_least=worst, tolerance=tolerance)
    return few_digits_up(worst)


def _levels_for_mu(setting: Setting) -> tuple[list[int], bool]:
    """Levels among which that of the largest mu is, the largest budgets first; and whether all hide together.

    Of many, a level is left out if another one has a larger budget and no more users: each bound then says as much of
    it. Only the released sum of added noise hides everybody alike, whoever has how much.
    """
    levels, budgets, law = list(levels_to_check(setting)), setting.budgets, setting.adds_noise
    if len(levels) <= MANY_LEVELS:
        return levels, len(levels) == 1
    if budgets.is_pure and law is not None and setting.seen == "sum":
        return levels[:1], True
    one_blanket = setting.law is None or (setting.discrete is not None and setting.discrete.mixture)
    if setting.linked or not (budgets.is_pure and one_blanket):
        raise OutOfRegime(f"mu of {setting.randomizer_name} is computed for up to {MANY_LEVELS} budget levels")
    fewest = np.minimum.accumulate(budgets.counts[levels])
    return [levels[0], *(level for level, new in zip(levels[1:], np.diff(fewest) < 0, strict=True) if new)], False


def _check_consistent(budgets: Budgets, listed: NDArray[np.int64], lower: FloatArray, upper: FloatArray) -> None:
    crossed = np.flatnonzero(lower > upper)
    if crossed.size:
        at = crossed[0]
        raise InconsistentBounds(
            f"a witness at epsilon {lower[at]} exceeds the certified bound {upper[at]} for the level "
            f"{budgets.epsilons[listed[at]]}; this is a bug in shuffledp, please report it"
        )


ORDERS: tuple[float, ...] = (
    *(1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 14.0, 16.0),
    *(20.0, 24.0, 28.0, 32.0, 40.0, 48.0, 64.0, 128.0, 256.0),
)
"""Renyi orders of a written curve: dense where conversions to (epsilon, delta) usually have their best order."""


GSPA = "gspa"
DRAWN = 17
"""Number of points of a drawn privacy profile."""
DEPTH = 1e-3
"""Ratio of the smallest delta of a drawn profile to the requested delta."""


@dataclass(frozen=True)
class ProfileCurve:
    """Points of a privacy profile delta(epsilon), to be drawn.

    Parameters
    ----------
    name : str
        Label of the curve.
    kind : {"certified", "witness", "asymptotic"}
        Whether the true curve is certified to lie on or below it, a real attack attains it, or a published formula
        claims it.
    epsilons, deltas : sequence of float, same length
        The points, epsilons in nats, ascending; a delta of 0 ends the line.
    """

    name: str
    kind: Literal["certified", "witness", "asymptotic"]
    epsilons: Sequence[float]
    deltas: Sequence[float]


def drawn_profile(guarantee: Guarantee) -> tuple[ProfileCurve, ...]:
    """Return the privacy profile of the worst level as curves to be drawn on a page.

    Parameters
    ----------
    guarantee : Guarantee
        From `certify`.

    Returns
    -------
    tuple of ProfileCurve
        The certified upper bound, the lower bound that a real attack attains (witness), and the curve that GSPA's
        formula claims, where it applies; empty if the certified epsilon is 0 or infinite.
    """
    worst, setting = guarantee.worst, guarantee.setting
    if not 0.0 < worst.epsilon.upper < np.inf:
        return ()
    bracket = worst_profile(guarantee)
    epsilons = profile_epsilons(guarantee, bracket, DRAWN, DEPTH, widest=2.0)
    deltas = [bracket.delta(epsilon) for epsilon in epsilons]
    curves = [
        ProfileCurve("certified upper", "certified", epsilons, [delta.upper for delta in deltas]),
        ProfileCurve("witness", "witness", epsilons, [delta.lower for delta in deltas]),
    ]
    # where the formula does not apply, the evidence table tells why
    for claimed in weigh([bounds[GSPA]], lambda bound: bound.profile(setting, epsilon0=worst.epsilon0)):
        if claimed.value is not None:
            at = [claimed.value.delta(epsilon).upper for epsilon in epsilons]
            curves.append(ProfileCurve("GSPA", "asymptotic", epsilons, at))
    return tuple(curves)


def worst_profile(guarantee: Guarantee) -> PrivacyProfile:
    """Return certified upper and lower bounds on the privacy profile of the guarantee's worst level."""
    return privacy_profile(guarantee.setting, epsilon0=guarantee.worst.epsilon0)


def profile_epsilons(
    guarantee: Guarantee, profile: PrivacyProfile, points: int, depth: float, widest: float = math.inf
) -> list[float]:
    """Return epsilons (nats, ascending) at which to draw a profile: from 0 up, the guarantee's own epsilon included.

    Parameters
    ----------
    guarantee : Guarantee
        Its worst level's certified epsilon is one of the points.
    profile : PrivacyProfile
        That level's profile.
    points : int
        How many evenly spread points, at least 2.
    depth : float
        In (0, 1). The points end where delta has fallen to depth times the guarantee's delta; if no finite epsilon
        reaches that, they end at the level's local budget.
    widest : float
        Above 1.1. The points end at the latest at this multiple of the certified epsilon.
    """
    published, own = guarantee.worst.epsilon.upper, guarantee.worst.epsilon0
    deep = profile.epsilon(max(guarantee.delta * depth, TINY)).upper
    if math.isfinite(published):
        reach = max(min(deep, widest * published), 1.1 * published)
    else:
        reach = deep
    if not 0.0 < reach < math.inf:
        reach = own or 1.0
    spread = np.linspace(0.0, reach, points).tolist()
    return sorted({*spread, published} if math.isfinite(published) else spread)


def renyi_points(profile: PrivacyProfile, orders: Sequence[float] = ORDERS) -> list[tuple[float, Interval]]:
    """Return pairs of an order above 1 and the interval that encloses the Renyi divergence there, nats."""
    curve = profile.renyi_curve(orders)
    ends = zip(curve.lower.tolist(), curve.upper.tolist(), strict=True)
    return [(order, Interval(lower, upper)) for order, (lower, upper) in zip(orders, ends, strict=True)]
