"""Rigorous binomial and Poisson-binomial tails: Arb balls (python-flint), radius part of the answer.

P(X >= a) is the regularised incomplete beta I_p(a, n - a + 1). Arb evaluates it directly up to about 1e6
users; beyond, the beta integral is enclosed piece by piece with the linear term of its exponent removed
around the mode, so that balls stay narrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from flint import acb, arb, arb_poly, ctx

PRECISION = 200
"""Bits: values to 1e-300 with 1e12 in the exponent's factors lose at most about 50."""
DIRECT_LIMIT = 1_000_000
CUT = -110
"""Log of the relative height at which the integrand is cut; the rest is enclosed, not dropped."""
SERIES_TERMS = 48


def pmf(k: int, n: int, p: float) -> arb:
    """P(X = k) for X ~ Bin(n, p), p the exact value of the double."""
    ctx.prec = PRECISION + 60
    if k < 0 or k > n:
        return arb(0)
    P = arb(p)
    if p in (0.0, 1.0):
        return arb(int(k == (n if p == 1.0 else 0)))
    ways = (arb(n) + 1).lgamma() - (arb(k) + 1).lgamma() - (arb(n - k) + 1).lgamma()
    return (ways + k * P.log() + (n - k) * (1 - P).log()).exp()


def sf(a: int, n: int, p: float) -> arb:
    """P(X >= a) for X ~ Bin(n, p)."""
    ctx.prec = PRECISION + 60
    if a <= 0:
        return arb(1)
    if a > n or p == 0.0:
        return arb(0)
    if p == 1.0:
        return arb(1)
    if a == n:
        return arb(p) ** n
    if a == 1:
        return -(arb(n) * (-arb(p)).log1p()).expm1()
    if n <= DIRECT_LIMIT:
        return arb(p).beta_lower(arb(a), arb(n - a + 1), True)
    return beta_integral(a, n, 0.0, p)


def cdf(k: int, n: int, p: float) -> arb:
    """P(X <= k): the beta integral over the other side, so that small values keep their digits."""
    ctx.prec = PRECISION + 60
    if k < 0:
        return arb(0)
    if k >= n or p == 0.0:
        return arb(1)
    if p == 1.0:
        return arb(0)
    if k == 0:
        return (arb(n) * (-arb(p)).log1p()).exp()
    if k == n - 1:
        return -(arb(n) * arb(p).log()).expm1()
    if k >= n * p:  # at least about half: the complement has the digits
        return 1 - sf(k + 1, n, p)
    if n <= DIRECT_LIMIT:
        return (1 - arb(p)).beta_lower(arb(n - k), arb(k + 1), True)
    return beta_integral(k + 1, n, p, 1.0)


def _phi(ratio: acb) -> acb:
    """log(ratio) - (ratio - 1), by series near 1: the plain form would lose the cancellation in a ball."""
    x = ratio - 1
    size = x.abs_upper()
    if size < arb("0.1"):
        total, power = acb(0), x
        for j in range(2, SERIES_TERMS):
            power *= x
            total += power / j if j % 2 else -power / j
        rest = (size**SERIES_TERMS / (SERIES_TERMS * (1 - size))).abs_upper()
        return total + acb(arb(0, rest), arb(0, rest))
    return ratio.log(True) - x


def beta_integral(a: int, n: int, lower: float, upper: float) -> arb:
    """int_lower^upper t^(a-1) (1-t)^(n-a) dt / B(a, n-a+1), 2 <= a <= n-1."""
    A, B, start, end = arb(a - 1), arb(n - a), arb(lower), arb(upper)
    mode = A / (A + B)

    def exponent(t: acb) -> acb:  # log integrand minus its maximum; the linear terms cancel at the mode
        return A * _phi(t / mode) + B * _phi((1 - t) / (1 - mode))

    top = end if end < mode else start if start > mode else mode.mid()
    peak = exponent(acb(top)).real

    def height(t: arb) -> arb:
        return exponent(acb(t)).real - peak

    low, rest_low = _cut(start, top, height)
    high, rest_high = _cut(end, top, height)
    pieces = 12
    edges = [low] + [(low + (high - low) * i / pieces).mid() for i in range(1, pieces)] + [high]
    total = rest_low + rest_high
    tiny = (high - low).abs_upper() * arb(2) ** -90
    for left, right in pairwise(edges):
        total += acb.integral(
            lambda z, _: (exponent(z) - peak).exp(), left, right, rel_tol=arb(2) ** -64, abs_tol=tiny
        ).real
    scale = (A + B + 2).lgamma() - (A + 1).lgamma() - (B + 1).lgamma() + A * mode.log() + B * (1 - mode).log()
    return total * (scale + peak).exp()


def _cut(edge: arb, top: arb, height: object) -> tuple[arb, arb]:
    """Move an integration limit towards the maximum, to height e^CUT; enclose what lies beyond.

    The integrand is unimodal, so beyond the cut it is at most its value there.
    """
    inside = 0 < edge < 1
    if edge == top or (inside and not height(edge) < CUT):  # type: ignore[operator]
        return edge, arb(0)
    outer, inner = edge, top
    for _ in range(200):
        middle = ((outer + inner) / 2).mid()
        if height(middle) < CUT:  # type: ignore[operator]
            outer = middle
        else:
            inner = middle
        if outer != edge and abs(outer - inner) < abs(outer - top) / 64:
            break
    if not 0 < outer < 1:
        raise ArithmeticError("no cut found")
    rest = (abs(outer - edge) * height(outer).exp()).abs_upper()  # type: ignore[operator]
    return outer, arb(0).union(rest)


def poisson_binomial_cdf(k: int, ps: Sequence[float]) -> arb:
    """P(sum of Bern(p_i) <= k), by the exact product of the generating polynomials."""
    ctx.prec = PRECISION + 60
    product = arb_poly([1])
    for p in ps:
        product *= arb_poly([1 - arb(p), arb(p)])
    return sum((product[j] for j in range(min(k, len(ps)) + 1)), arb(0))
