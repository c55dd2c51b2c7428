"""Quick upper bounds on (I), for many pairs of inputs at once: they tell which pairs need the transform.

With S = L_1 + ... + L_m, h(m-1) = E(S)_+/m, and the law of S tilted by e^{tS}, t > 0,

    E(S)_+ = M(t)^m E_t f(S),    f(s) = s e^{-ts} for s > 0, else 0.

f <= 1/(et) gives Chernoff's bound. f has total variation 2/(et), so the normal law of the tilted S's mean a and
variance b^2 gives E_t f(S) <= E f(N(a, b^2)) + 2/(et) D, where by Berry and Esseen (constant of Shevtsova 2011)
D <= 0.4748 E_t|L - E_t L|^3/(sqrt(m) sd_t(L)^3). As h does not increase, E h(C) <= P(C < c) h(0) + h(c) for any c.
"""

from __future__ import annotations

import math

import numpy as np

from shuffledp.numerics.floats import roundoff
from shuffledp.numerics.gaussian_tail import mills_ratio
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.poisson_binomial import SuccessRange

_TILTS = np.geomspace(1.0, 30.0, 10)
_BERRY_ESSEEN = 0.4748


def fewest_blankets(count: SuccessRange, delta: float) -> tuple[float, float]:
    """A number of reports m = c + 1, and a bound on P(C < c) far below delta.

    Parameters
    ----------
    count : SuccessRange
        The blanket reports C among the others.
    delta : float
        In (0, 1).
    """
    mean, deviation = count.fewest.mean, count.fewest.deviation
    for depth in (5.0, 7.0, 10.0, 15.0, 25.0, 40.0):
        least = math.floor(mean - depth * deviation)
        if least <= 0:
            break
        rare = float(count.cdf(np.array([least - 1.0])).upper[0])
        if rare <= 1e-3 * delta:
            return least + 1.0, rare
    return 1.0, 0.0


def chernoff_values(values: FloatArray, weights: FloatArray, reports: float) -> FloatArray:
    """Bound h(m - 1) from above for many laws of L, shape (laws,); at most 1, never NaN.

    Parameters
    ----------
    values, weights : ndarray, shape (laws, atoms)
        Atoms, and their probabilities (the rest is at 0); a law above L gives a bound too.
    reports : float
        m.
    """
    with np.errstate(over="ignore"):  # squares of ratios of many linked rounds: then nothing better than 1 is said
        scale = math.sqrt(float((weights * values**2).sum(axis=1).max()) * reports)
    best = np.ones(values.shape[0])
    if not 0.0 < scale < math.inf:
        return best
    rest = np.maximum(1.0 - weights.sum(axis=1), 0.0)
    for tilt in _TILTS / scale:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            grown = weights * np.expm1(tilt * values)
            # some thousand roundings of all magnitudes are far above those of some hundred atoms
            logs = reports * np.log1p(grown.sum(axis=1) + roundoff(8192, np.abs(grown).sum(axis=1) + tilt))
            part = _tilted_part(values, grown + weights, rest, reports, tilt) * (1 + 1e-6)
            found = np.exp(np.minimum(logs, 700.0)) * part / reports
        best = np.fmin(best, found)
    return best


def _tilted_part(values: FloatArray, tilted: FloatArray, rest: FloatArray, reports: float, tilt: float) -> FloatArray:
    """Bound E_t f(S); ``tilted`` are the atoms' weights times e^{tL}, and ``rest`` the weight at 0."""
    whole = tilted.sum(axis=1) + rest
    mean = (tilted * values).sum(axis=1) / whole
    apart = np.abs(values - mean[:, None])
    variance = ((tilted * apart**2).sum(axis=1) + rest * mean**2) / whole
    third = ((tilted * apart**3).sum(axis=1) + rest * np.abs(mean) ** 3) / whole
    distance = _BERRY_ESSEEN * third / (variance**1.5 * math.sqrt(reports))
    a, b = reports * mean, np.sqrt(reports * variance)
    x = tilt * b - a / b
    # int_0^inf s e^(-ts) dN(a, b^2) = b phi(a/b) (1 - x m(x)), m Mills' ratio
    normal = b * np.exp(-0.5 * (a / b) ** 2) / math.sqrt(2.0 * math.pi) * (1.0 - x * mills_ratio(np.maximum(x, -1.0)))
    smooth = np.where(x >= -1.0, normal + 2.0 / (math.e * tilt) * distance, math.inf)
    return np.fmin(smooth, 1.0 / (math.e * tilt))
