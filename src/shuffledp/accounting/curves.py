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
    """Points of a privacy profile delta(epsilon) to draw.

    Parameters
    ----------
    name : str
        What the curve is.
    kind : {"certified", "witness", "asymptotic"}
        Whether the truth lies on or below it, a real attack reaches it, or a published formula claims it.
    epsilons, deltas : sequence of float, same length
        The points, epsilons ascending; deltas of 0 end the line.
    """

    name: str
    kind: Literal["certified", "witness", "asymptotic"]
    epsilons: Sequence[float]
    deltas: Sequence[float]


def drawn_profile(guarantee: Guarantee) -> tuple[ProfileCurve, ...]:
    """Evaluate the privacy profile of the worst level where a page draws it.

    Parameters
    ----------
    guarantee : Guarantee
        From `certify`.

    Returns
    -------
    tuple of ProfileCurve
        The certified upper end, what a witness reaches, and what GSPA's formula claims, where it applies; nothing where
        there is no finite, positive epsilon.
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
    """Certified bracket of the privacy profile of the guarantee's worst level."""
    return privacy_profile(guarantee.setting, epsilon0=guarantee.worst.epsilon0)


def profile_epsilons(
    guarantee: Guarantee, profile: PrivacyProfile, points: int, depth: float, widest: float = math.inf
) -> list[float]:
    """Choose where to evaluate a profile: from 0 to where delta has fallen far enough, the published point included.

    Parameters
    ----------
    guarantee : Guarantee
        Its worst level's epsilon is the published point.
    profile : PrivacyProfile
        That level's profile.
    points : int
        How many evenly spread points, at least 2.
    depth : float
        At the last point delta is at most depth times the guarantee's, in (0, 1); where no finite epsilon brings
        it there, the last point is the level's own budget.
    widest : float
        The last point is at most so many times the published one, above 1.1.
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
    """Enclose the Renyi divergence at each order."""
    found = profile.renyi_curve(orders)
    ends = zip(found.lower.tolist(), found.upper.tolist(), strict=True)
    return [(order, Interval(lower, upper)) for order, (lower, upper) in zip(orders, ends, strict=True)]
