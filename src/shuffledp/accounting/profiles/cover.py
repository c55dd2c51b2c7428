"""Gaussian covers: the smallest mu such that a profile is a post-processing of "reveal with chance t, else mu-GDP".

A curve f is covered by (mu, t) if f(x) <= t + (1 - t) delta_mu(x) for all x = e^epsilon >= 1. For every threshold c,

    delta_mu(x) >= Phi(c) - x Phi(c - mu),

which is a straight line in x, and the tangent at epsilon = mu (mu/2 - c). The stored curve is straight between two
knots, so a gap is covered if one such line is above the curve at both of its ends. Which c is tried is a matter of
accuracy alone. See docs/theorems/ledger.md.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from shuffledp.accounting.profiles.profile import check_delta, check_epsilon
from shuffledp.accounting.profiles.stored import StoredProfile
from shuffledp.errors import InvalidInput
from shuffledp.numerics.interval import FloatArray

MOST_MU = 1e4
_MARGIN = 1e-12
"""Relative error charged to each normal tail; their logarithms are right to about 1e-14 down to 1e-300."""
_STEPS = 40
_LEAST_MU = 1e-12


def gaussian_cover(profile: StoredProfile, outside: float) -> float:
    """Return a mu that covers a profile together with the chance `outside`; inf if there is none up to 1e4.

    Parameters
    ----------
    profile : StoredProfile
        A certified upper curve.
    outside : float
        The chance t, in (0, 1), with which the record may be revealed.

    Returns
    -------
    float
        Verified; the smallest one to about 1e-7 relative.

    Raises
    ------
    InvalidInput
        If `outside` is not in (0, 1).

    Examples
    --------
    >>> round(gaussian_cover(StoredProfile.stated(1.0, 1e-9), 1e-8), 2)
    1.23
    """
    check_delta(outside)
    eps, value = _corners(profile, outside)
    if value[-1] > outside:
        return math.inf
    if eps.size == 1:
        return 0.0
    low, high = 0.0, _LEAST_MU
    while not _covered(eps, value, high, outside):
        low, high = high, 2.0 * high
        if high > MOST_MU:
            return math.inf
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        if high - low <= 1e-7 * high:
            break
        if _covered(eps, value, middle, outside):
            high = middle
        else:
            low = middle
    return high


def gaussian_allowance(epsilon: float, delta: float, outside: float) -> float:
    """Return an M such that outside + (1 - outside) delta_M(epsilon) <= delta; the largest to about 1e-12.

    Parameters
    ----------
    epsilon : float
        Nats, at least 0.
    delta : float
        In (0, 1).
    outside : float
        In (0, delta).

    Raises
    ------
    InvalidInput
        If they are out of range.
    """
    value = check_epsilon(epsilon)
    if not 0.0 < outside < check_delta(delta):
        raise InvalidInput(f"outside must lie between 0 and delta = {delta}; got {outside}")

    def above(mu: float) -> float:
        c = mu / 2.0 - value / mu
        first, second = math.exp(float(log_ndtr(c))), math.exp(value + float(log_ndtr(c - mu)))
        return outside + (1.0 - outside) * (first - second + _MARGIN * (first + second)) * (1.0 + _MARGIN)

    low, high = 0.0, 1.0
    while above(high) <= delta:
        low, high = high, 2.0 * high
        if high > MOST_MU:
            return low
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        if above(middle) <= delta:
            low = middle
        else:
            high = middle
    return low


def _corners(profile: StoredProfile, outside: float) -> tuple[FloatArray, FloatArray]:
    """Corners of the curve's hull down to where it meets the chance that is allowed anyway."""
    points = profile.table.capped("worst").forward
    eps, value = points.eps, np.exp(points.log) * (1.0 + 1e-14 * (1.0 + np.abs(np.nan_to_num(points.log, neginf=0.0))))
    over = value > outside
    if not over.any() or over.all():
        return (eps, value) if over.any() else (eps[:1], np.minimum(value[:1], outside))
    last = int(np.flatnonzero(over)[-1])
    # where the chord down to the next corner meets `outside`, rounded away from the last corner above it
    share = (value[last] - outside) / (value[last] - value[last + 1])
    reach = math.log1p(min(share * (1.0 + 1e-9), 1.0) * math.expm1(min(eps[last + 1] - eps[last], 700.0)))
    cut = min(float(eps[last]) + reach * (1.0 + 1e-12) + 1e-300, float(eps[last + 1]))
    return np.append(eps[: last + 1], cut), np.append(value[: last + 1], outside)


def _covered(eps: FloatArray, value: FloatArray, mu: float, outside: float) -> bool:
    """Whether a line below the Gaussian curve is above every gap's two ends."""
    rest = np.maximum(value - outside, 0.0) / (1.0 - outside) * (1.0 + 4e-16)
    left, right = eps[:-1], eps[1:]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        drop = np.log(rest[:-1] - rest[1:])  # of the curve over the gap
        slope = drop - right - np.log(-np.expm1(left - right))  # log of its fall per unit of x
        wanted = mu + ndtri_exp(np.minimum(slope, -1e-300))
    c = np.clip(np.nan_to_num(wanted, nan=0.0), mu / 2.0 - right / mu, mu / 2.0 - left / mu)
    first, second = log_ndtr(c), log_ndtr(c - mu)
    for ends, needed in ((left, rest[:-1]), (right, rest[1:])):
        gain, cost = np.exp(first), np.exp(second + ends)
        room = gain * (1.0 - _MARGIN) - cost * (1.0 + _MARGIN)
        if not (room >= needed).all():
            return False
    return True
