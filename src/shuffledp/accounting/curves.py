"""Whole curves of the worst level, as points: the privacy profile, and the Renyi divergence by order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from shuffledp.accounting.bound import weigh
from shuffledp.accounting.certify import bounds, privacy_profile
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.guarantee import Guarantee
from shuffledp.numerics.floats import TINY
from shuffledp.numerics.interval import Interval

ORDERS: tuple[float, ...] = (
    *(1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 14.0, 16.0),
    *(20.0, 24.0, 28.0, 32.0, 40.0, 48.0, 64.0, 128.0, 256.0),
)
"""Renyi orders that are written: dense where conversions to (epsilon, delta) usually have their best order."""


GSPA = "gspa"
DRAWN = 17
"""Points of a drawn privacy profile."""
DEPTH = 1e-3
"""The drawn profile falls a thousand times further than the delta asked for."""


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
        At the last point delta is at most depth times the guarantee's, in (0, 1); where no finite epsilon brings
        it there, the last point is the level's local budget.
    widest : float
        The last point is at most that many times the certified epsilon; above 1.1.
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
    found = profile.renyi_curve(orders)
    ends = zip(found.lower.tolist(), found.upper.tolist(), strict=True)
    return [(order, Interval(lower, upper)) for order, (lower, upper) in zip(orders, ends, strict=True)]
