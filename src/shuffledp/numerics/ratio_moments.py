"""Moments of L = (R_0 - e^eps R_1)/R_K under R_K, normal laws whose centres lie in one ball, at most.

R_0, R_1, R_K are N(g, I) with centres in a ball of radius mu/2, in any dimension. Under R_K put X = R_0/R_K, Y =
R_1/R_K, A = |g_0 - g_K|^2, B = |g_1 - g_K|^2, c = (g_0 - g_K).(g_1 - g_K), s2 = |g_0 - g_1|^2 = A + B - 2c, M = mu^2.
Then E X^i Y^j = exp( i(i-1) A/2 + j(j-1) B/2 + i j c ), and with E = e^eps, L - E L = (X - Y) - (E - 1)(Y - 1).

**Second moment**, mu <= 1.2: E(X - Y)^2 <= e^M - 1, with equality for g_0, g_1 antipodal and g_K = g_1.

1. *g_K may stand on the sphere.* E|X - Y|^k = int |R_0 - R_1|^k R_K^(1-k), and R_K(x)^(1-k) is a positive multiple of
   exp((k-1) |x - g_K|^2/2), convex in g_K: the largest value is at an extreme point of the ball. (k = 2 and 4.)
2. *All three may stand on one circle.* E(X - Y)^2 = e^A + e^B - 2 e^c falls as c grows with A, B fixed. Seen from g_K
   on the sphere, a point of the ball at distance a lies at most at the angle arccos(a/mu) from the direction of the
   centre; so c >= a b cos(arccos(a/mu) + arccos(b/mu)), which two points of one great circle attain, on either side.
3. On the circle, with directions phi, psi, d = phi - psi and sigma = phi + psi: A + B = M (1 + y), A - B = -M x, s2 =
   M S, y = cos(sigma) cos d, x = sin(sigma) sin d, S = sin^2 d. Write C = 1 - S, |y| = w sqrt(C), so x^2 = S (1 -
   w^2), t = M/2:
       E(X - Y)^2 = 2 e^t e^(ty) ( cosh(tx) - e^(-tS) ),     e^M - 1 = 2 e^t sinh t.
   Only y > 0 can matter. cosh(tx) <= 1 + x^2 k, k = cosh t - 1 (convex in x^2); 1 - e^(-tS) <= 1 - e^-t - C t e^-t
   (concave in C). As e^(-ty) >= 1 - ty and k + 1 - e^-t = sinh t, it is enough that
       t y sinh t <= k ( C + w^2 - C w^2 ) + C t e^-t,   y = w sqrt(C).
   The right side is at least k w^2 + C t e^-t >= 2 w sqrt(C) sqrt(k t e^-t), so 4 k >= t e^t sinh^2 t is enough,
   which is 4 >= t e^t (1 + cosh t): true up to t = 0.78, that is mu = 1.249.

**Third moment**, signed: E(X - Y)^3 = e^3A - 3 e^(A+2c) + 3 e^(B+2c) - e^3B <= e^3M - 3 e^M + 2. With 2c = A + B - s2
it is e^3A - e^3B - 3 e^(-s2) e^(A+B) (e^A - e^B); it has the sign of A - B, and for A > B it grows with s2 <= M. At
s2 = M its slope in B is -3 e^B ( (e^B - e^(A-M))^2 + e^2A (e^-M - e^-2M) ) <= 0, so B = 0; then its slope in A is 3
e^A ( e^2A - e^-M (2 e^A - 1) ) >= 0, so A = M.

**Fourth moment**: E(X - Y)^4 = e^6A - 4 e^(3A+3c) + 6 e^(A+B+4c) - 4 e^(3B+3c) + e^6B falls as c grows, since e^3A +
e^3B >= 2 e^(3(A+B)/2) >= 2 e^(A+B+c). So steps 1 and 2 hold, and with q = e^(-MS), on the circle,

    E(X - Y)^4 = e^(3M(1+y)) [ 4 ( cosh(3Mx/2) - e^(-3MS/2) )^2 - 2 (1 - q)^2 (1 + 2q) ].                      (F)

In a cell S in [S0, S1], w in [w0, w1] every factor is monotone: y <= w1 sqrt(1 - S0), x^2 <= S1 (1 - w0^2), and the
subtracted term is at least 2 (1 - e^(-M S0))^2 (1 + 2 e^(-M S1)). The largest cell is the bound.

**With eps.** |L - E L|_p <= |X - Y|_p + (E - 1)|Y - 1|_p <= E b_p for p = 2, 4, where b_p^p bounds E|X - Y|^p in all
places (g_0 = g_K is one of them); E|X - Y|^3 <= (E(X-Y)^2 E(X-Y)^4)^(1/2); E(L - E L)^3 <= k_3 + (E^3 - 1) b_3^3
(expand, and Hoelder).

**Rounding.** expm1 and sinh of half the argument keep relative accuracy; in the largest cell what is subtracted in
(F) is at most 0.7 of what it is subtracted from. Values are raised by 1e-9 relative.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from shuffledp.numerics.interval import FloatArray

LARGEST_MU = 1.2
"""The second moment is proved up to here."""
_CELLS = 160
_DOUBT = 1e-9


@dataclass(frozen=True)
class RatioMoments:
    """Upper bounds of central moments of L, in all places of three centres.

    Parameters
    ----------
    second, fourth : float
        Of E(X - Y)^2 and E(X - Y)^4.
    third : float
        Of the signed E(X - Y)^3.
    absolute : float
        Of E|X - Y|^3.
    """

    second: float
    third: float
    absolute: float
    fourth: float

    def at(self, growth: float) -> RatioMoments:
        """Return those of L at e^eps = 1 + growth; ``growth`` at least 0, rounded up."""
        e = (1.0 + growth) * (1.0 + _DOUBT)
        third = self.third + (e * e * e - 1.0) * self.absolute
        return RatioMoments(self.second * e**2, third, self.absolute * e**3, self.fourth * e**4)


@lru_cache(maxsize=64)
def ratio_moments(mu: float) -> RatioMoments:
    """Return the moments at eps = 0 for centres in a ball of diameter mu.

    Parameters
    ----------
    mu : float
        In [1e-4, 1.2].

    Raises
    ------
    ValueError
        If mu is out of range.

    Examples
    --------
    >>> bool(abs(ratio_moments(0.5).second - np.expm1(0.25)) < 1e-8)
    True
    """
    if not 1e-4 <= mu <= LARGEST_MU:
        raise ValueError(f"the second moment is proved for mu in [1e-4, {LARGEST_MU}]; got {mu}")
    m = mu * mu
    second = float(np.expm1(m)) * (1.0 + _DOUBT)
    third = float(np.expm1(m) ** 2 * (np.exp(m) + 2.0)) * (1.0 + _DOUBT)  # e^3M - 3 e^M + 2, factored
    fourth = _fourth(m) * (1.0 + _DOUBT)
    return RatioMoments(second, third, float(np.sqrt(second * fourth)) * (1.0 + _DOUBT), fourth)


def _fourth(m: float) -> float:
    """The largest cell of (F)."""
    ends = np.linspace(0.0, 1.0, _CELLS + 1)
    s0, s1 = ends[:-1, None], ends[1:, None]
    w0, w1 = ends[None, :-1], ends[None, 1:]
    y, x = w1 * np.sqrt(1.0 - s0), np.sqrt(s1 * (1.0 - w0 * w0))
    gap = 2.0 * np.sinh(0.75 * m * x) ** 2 - np.expm1(-1.5 * m * s1)
    less = np.expm1(-m * s0) ** 2 * (1.0 + 2.0 * np.exp(-m * s1))
    return float((np.exp(3.0 * m * (1.0 + y)) * (4.0 * gap * gap - 2.0 * less)).max())


def finite_moments(masses: FloatArray, first: FloatArray, second: FloatArray, growth: float) -> RatioMoments:
    """Return the moments of L - E L for a finite law, the third one without its sign.

    Parameters
    ----------
    masses, first, second : ndarray, shape (cells,)
        R_K, and R_0/R_K, R_1/R_K, to a few ulps.
    growth : float
        e^eps - 1, at least 0.
    """
    d = first - 1.0 - (1.0 + growth) * (second - 1.0)
    powers = [float(masses @ np.abs(d) ** k) * (1.0 + _DOUBT) for k in (2, 3, 4)]
    return RatioMoments(powers[0], abs(float(masses @ d**3)) + _DOUBT * powers[1], powers[1], powers[2])


def laplace_moments(epsilon0: float) -> RatioMoments:
    """Return the moments at eps = 0 for Laplace noise on a number in a range of width epsilon0 scales.

    In units of the scale records are in [0, e], e = epsilon0. int |f_a - f_b|^k f_K^(1-k) is convex in K, as
    f_K^(1-k) is: K is an end, say 0. There for a <= b

        E XY = e^a + (e^(-a-b) - e^(2a-b))/3,
        slope of E(X - Y)^2 in a: -(4/3) e^a (1 - e^(a-b)) - (2/3)(e^-2a - e^(-a-b)) <= 0,

    so a = 0, and E(1 - Y)^2 = (2/3) e^b + e^(-2b)/3 - 1 grows with b: b = e. Nowhere |X - Y| > e^e - 1 (beyond b it is
    e^b - e^a; between a and b at most e^a - e^(2a-b), which is at most e^b/4, or 1 - e^-b where b < log 2). The
    third and fourth moments are taken as that times, and its square times, the second.

    Parameters
    ----------
    epsilon0 : float
        In (0, 8], rounded up.
    """
    most = math.expm1(epsilon0)
    second = (2.0 * most - -math.expm1(-2.0 * epsilon0)) / 3.0 * (1.0 + _DOUBT)
    return RatioMoments(second, second * most, second * most, second * most * most)
