"""From a setting to the guarantee anyone may quote: smallest certified upper bound, largest witness."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.bound import AmplificationBound
from shuffledp.accounting.profiles.combined import SmallestProfile
from shuffledp.accounting.profiles.profile import PrivacyProfile, check_delta
from shuffledp.accounting.published import PUBLISHED
from shuffledp.accounting.theorems.approximate import ApproximateBound
from shuffledp.accounting.theorems.blanket import BlanketBound
from shuffledp.accounting.theorems.clones import ClonesBound
from shuffledp.accounting.theorems.floor import FloorBound
from shuffledp.accounting.theorems.krr_exact import KaryWitness
from shuffledp.accounting.theorems.levels import LevelsBound
from shuffledp.accounting.theorems.local import LocalBound
from shuffledp.accounting.theorems.ordered import OrderedBound
from shuffledp.accounting.theorems.reports_exact import ReportsWitness
from shuffledp.accounting.theorems.rr_exact import RandomizedResponseWitness
from shuffledp.accounting.theorems.sum import SumBound
from shuffledp.accounting.theorems.sum_exact import SumWitness
from shuffledp.accounting.theorems.window import WindowWitness
from shuffledp.budgets import Budgets
from shuffledp.errors import InconsistentBounds, InvalidInput, NotConverged, OutOfRegime, shown
from shuffledp.guarantee import Evidence, Guarantee, Kind, LevelGuarantee
from shuffledp.numerics.interval import Enclosure, FloatArray, Interval
from shuffledp.setting import Setting

bounds: Mapping[str, AmplificationBound] = {
    bound.key: bound
    for bound in (
        ClonesBound(),
        BlanketBound(),
        OrderedBound(),
        LevelsBound(),
        SumBound(),
        ApproximateBound(),
        LocalBound(),
        FloorBound(),
        RandomizedResponseWitness(),
        KaryWitness(),
        ReportsWitness(),
        WindowWitness(),
        SumWitness(),
        *PUBLISHED,
    )
}
"""Every theorem by key; each answers for the settings it fits and refuses the others."""

ALWAYS_SHOWN = ("gspa", "rdp-gdp", "rdp-renyi")
"""The two papers' formulas, shown beside every certified number; other published bounds on request."""


def consulted(setting: Setting, *, published: bool) -> list[AmplificationBound]:
    """Return the bounds that `certify` asks about a setting, in order; the floor where there are dummies.

    Parameters
    ----------
    setting : Setting
        The question.
    published : bool
        Whether to ask every published bound, or only the certified ones, witnesses and the two papers' formulas.
    """
    asked = [bound for bound in bounds.values() if published or bound.enters_bracket or bound.key in ALWAYS_SHOWN]
    return [bound for bound in asked if published or setting.dummies is not None or bound.key != FloorBound.key]


def certify(setting: Setting, delta: float, *, max_levels: int = 1000, published: bool = False) -> Guarantee:
    """Certify the central privacy of a shuffled collection.

    Parameters
    ----------
    setting : Setting
        Population, randomizer, who sees what.
    delta : float
        Central delta, in (0, 1); far below 1/n is customary.
    max_levels : int
        At most so many levels are listed, spread evenly over the users, the worst always among them.
    published : bool
        Whether to show every published bound besides, as evidence; none of them enters the certified interval.

    Returns
    -------
    Guarantee
        Per level the smallest certified upper bound and the largest witness, and the evidence.

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
    if isinstance(max_levels, bool) or not isinstance(max_levels, int) or max_levels < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"max_levels must be a whole number >= 1; got {shown(max_levels)}")
    listed = _listed_levels(setting, target, max_levels)
    lower, upper = np.zeros(listed.size), np.full(listed.size, math.inf)
    floor: Enclosure | None = None
    evidence: list[Evidence] = []
    for bound in consulted(setting, published=published):
        try:
            found = bound.level_epsilons(setting, target, listed)
        except (OutOfRegime, NotConverged) as refusal:
            evidence.append(Evidence(bound.key, bound.kind, bound.reference, refused=str(refusal)))
            continue
        worst = Interval(float(found.lower.max()), float(found.upper.max()))
        evidence.append(Evidence(bound.key, bound.kind, bound.reference, epsilon=worst))
        if not bound.enters_bracket:
            continue
        if bound.key == FloorBound.key:
            floor = found
        elif bound.kind is Kind.CERTIFIED_UPPER:
            upper = np.minimum(upper, found.upper)
        elif bound.kind is Kind.CERTIFIED_LOWER:
            lower = np.maximum(lower, found.lower)
    smallest = upper if floor is None else np.minimum(upper, floor.upper)
    _check_consistent(setting.budgets, listed, lower, smallest)
    levels = _level_guarantees(setting, listed, Enclosure(lower, smallest), upper, floor)
    return Guarantee(setting, target, levels, setting.budgets.levels, tuple(evidence))


def _level_guarantees(
    setting: Setting, listed: NDArray[np.int64], found: Enclosure, crowd: FloatArray, floor: Enclosure | None
) -> tuple[LevelGuarantee, ...]:
    """List the levels; with dummies each with its floor, and with what the crowd keeps."""
    budgets, known = setting.budgets, list[LevelGuarantee]()
    for row, level in enumerate(listed):
        epsilon = Interval(float(found.lower[row]), float(found.upper[row]))
        one = LevelGuarantee(
            float(budgets.epsilons[level]), float(budgets.deltas[level]), int(budgets.counts[level]), epsilon
        )
        if setting.dummies is not None:
            kept = None if floor is None else Interval(float(floor.lower[row]), float(floor.upper[row]))
            one = replace(one, floor=kept, crowd=Interval(epsilon.lower, float(crowd[row])))
        known.append(one)
    return tuple(known)


def privacy_profile(setting: Setting, epsilon0: float) -> PrivacyProfile:
    """Certified bracket of one victim's privacy profile: smallest upper bound, largest witness.

    Parameters
    ----------
    setting : Setting
        Population, randomizer, who sees what.
    epsilon0 : float
        The victim's budget (nats); some user must have it.

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
    uppers: list[PrivacyProfile] = []
    witnesses: list[PrivacyProfile] = []
    for bound in bounds.values():
        if not bound.enters_bracket:
            continue
        try:
            part = bound.profile(setting, epsilon0)
        except OutOfRegime:
            continue
        (uppers if bound.kind is Kind.CERTIFIED_UPPER else witnesses).append(part)
    return BracketProfile(SmallestProfile(tuple(uppers)), tuple(witnesses))


@dataclass(frozen=True, eq=False)
class BracketProfile(PrivacyProfile):
    """Upper ends from a certified upper bound, lower ends from witnesses.

    Parameters
    ----------
    upper : PrivacyProfile
        A certified upper bound.
    witnesses : tuple of PrivacyProfile
        Certified lower bounds, possibly none.
    """

    upper: PrivacyProfile
    witnesses: tuple[PrivacyProfile, ...]

    @property
    def vanishes_at(self) -> float:
        """Where the upper bound vanishes."""
        return self.upper.vanishes_at

    def delta_at(self, epsilon: float) -> Interval:
        """Largest witness and upper bound."""
        return self._bracket(self.upper.delta(epsilon), [w.delta(epsilon) for w in self.witnesses])

    def epsilon(self, delta: float) -> Interval:
        """Largest witness and upper bound, each inverted by itself."""
        return self._bracket(self.upper.epsilon(delta), [w.epsilon(delta) for w in self.witnesses])

    @property
    def mass_at_infinity(self) -> Interval:
        """The upper bound's; no witness is certain of any."""
        return Interval(0.0, self.upper.mass_at_infinity.upper)

    def log_delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        """As `delta`, in logs, with one witness: only one real pair has divergences, trade-offs and rounds."""
        high = max(end.upper for end in self.upper.log_delta_pair(epsilon))
        low = -math.inf
        if self.strongest is not None:
            # the smaller direction both ways round is the curve of a symmetric pair that the witness dominates
            low = min(end.lower for end in self.strongest.log_delta_pair(epsilon))
        both = Interval(min(low, high), high)
        return both, both

    @cached_property
    def strongest(self) -> PrivacyProfile | None:
        """The witness with the largest epsilon at delta = 1e-6; None without witnesses."""
        return max(self.witnesses, key=lambda witness: witness.epsilon(1e-6).lower, default=None)

    @staticmethod
    def _bracket(upper: Interval, witnesses: list[Interval]) -> Interval:
        lower = max((w.lower for w in witnesses), default=0.0)
        if lower > upper.upper:
            raise InconsistentBounds(f"a witness at {lower} exceeds the certified bound {upper.upper}; please report")
        return Interval(lower, upper.upper)


def _listed_levels(setting: Setting, delta: float, most: int) -> NDArray[np.int64]:
    """At most ``most`` levels, evenly spread over users, with the level of the largest certified epsilon."""
    budgets = setting.budgets
    if budgets.levels <= most:
        return np.arange(budgets.levels)
    through = np.cumsum(budgets.counts)
    spread = np.searchsorted(through, np.linspace(0.0, float(through[-1]), most - 1), side="left")
    return np.unique(np.append(np.minimum(spread, budgets.levels - 1), _worst_level(setting, delta)))


def _worst_level(setting: Setting, delta: float) -> int:
    """Level with the largest certified upper bound.

    Whatever hides all levels together (`CloneCurve`) is monotone in the victim's budget. Where only the own
    level hides a user, levels are tried from the largest budget down, until the local bound of the next one
    is no longer above the best found.
    """
    budgets = setting.budgets
    top = budgets.levels - 1
    for key in ("clones", "blanket", "ordered"):
        try:
            bounds[key].profile(setting, float(budgets.epsilons[top]))
            return top
        except OutOfRegime:
            continue
    best, worst = -math.inf, top
    for level in range(top, -1, -1):
        epsilon0 = float(budgets.epsilons[level])
        local = LocalBound().profile(setting, epsilon0).epsilon(delta).upper
        if local <= best:
            break
        value = min(local, _hidden_in_level(setting, epsilon0, delta))
        if value > best:
            best, worst = value, level
    return worst


def _hidden_in_level(setting: Setting, epsilon0: float, delta: float) -> float:
    try:
        return LevelsBound().profile(setting, epsilon0).epsilon(delta).upper
    except OutOfRegime:
        return math.inf


def _check_consistent(budgets: Budgets, listed: NDArray[np.int64], lower: FloatArray, upper: FloatArray) -> None:
    crossed = np.flatnonzero(lower > upper)
    if crossed.size:
        at = crossed[0]
        raise InconsistentBounds(
            f"a witness at epsilon {lower[at]} exceeds the certified bound {upper[at]} for the level "
            f"{budgets.epsilons[listed[at]]}; this is a bug in shuffledp, please report it"
        )
