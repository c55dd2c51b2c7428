"""The chain theorem for pure reports: one small group of alike users, and everybody else (docs/theorems/chain.md).

n users of one budget e0; all density ratios lie in [e^-e0, e^e0]. The group A_2 has m users whose densities are
within a factor b of each other, so that the weights that the hub leaves them are at most b/m: any m users with b =
e^e0, or users of one record, b = 1, who exist by the pigeonhole principle. A_1 is everybody else, n1 = n - 1 - m. The
weight zeta_J of a seat J in A_1 is an average of independent ratios with weights at most b/m; a ratio of mean 1 in
[e^-e0, e^e0] is below the two-point law on the ends in convex order, so with N = floor(m/b)

    E phi(zeta_J) <= E phi(zeta*),   zeta* = average of N independent two-point ratios, for every convex phi.       (A)

Where a ratio is e^e0, 1 or e^-e0, the law itself is used: it is 1 but for a share `active`, and then two-point.

zeta is cut at 1 + s and lifted to 1 - l; with E(zeta* - 1 - s)_+ <= p and E(1 - l - zeta*)_+ <= p this costs p D(eps)
+ p (e^eps - 1), D the divergence of one report, and mean weights are at most 1 + p. So H is at most that plus E(
sum_J zeta_J L_J )_+/n1, the L_J independent of the zeta_J; g = e^eps - 1, D_J = L_J - E L_J <= a = e^e0 + g.

**Places and kinds.** The law of D_J is that of some place (R_0, R_1, R_J). A few *kinds* of places, with moments v2 =
E D^2, k3 = E D^3 with its sign, b3 = E|D|^3 and b4 = E D^4, are worst: for every convex G with G(0) = G'(0) = 0 the
mean E G(D) of any place is at most that of one of the kinds (docs/theorems/chain.md). A kind may also be made of upper
bounds of v2, k3, -k3, b3 and b4; then it serves where G is made of them. A mixture of kinds is below one of them.

**The tail.** Normalise: given the zeta_J, the sum is zbar times S = sum_J w_J L_J, zbar their mean, w_J = x_J/n1 with
x_J = zeta_J/zbar in [1/r, r], r = (1 + s)/(1 - l). The mean of x is 1; with chi = mean of x^2, less 1,

    mean (x - 1)_+ = mean (1 - x)_+ <= sqrt(chi)/2,   chi <= mean x^3 - x^2 <= (1 + r) chi,
    mean x^4 - 1 <= (r^2 + 2 r + 3) chi                                   (expand around 1; -1 <= x - 1 <= r - 1).

As inf_c mean (c zeta - 1)^2 = chi/(1 + chi), chi <= Q/(1 - Q) with Q = mean (zeta - 1)^2; so, by Jensen over J and (A),
for A >= 0 and s, l < 1

    E zbar e^(A chi) <= E exp( x + A x^2/(1 - x^2) ),  x = zeta* - 1, continued linearly beyond s, below -l.  (C)

Tilt the law of S by theta > 0. Let t = theta/n1, z_J = t x_J D_J <= y = t r a, and r_i = r_i(y) as in `positive_part`.
A seat's mass E e^z is at least 1 and at most 1 + E(z^2/2 + z^3/6 + r_4 z^4); 0 <= E z e^z <= E(z^2 + z^3/2 + r_3 z^4);
and E(z^2 + z^3) <= E z^2 e^z <= E(z^2 + z^3 + r_2 z^4). A tilted variance is E z^2 e^z over the mass, less a square:
with the largest v2, b3, b4 of all kinds, o = t r,

    log Z <= -theta g + sum E(z^2/2 + z^3/6 + r_4 z^4),    theta mean <= -theta g + sum E(z^2 + z^3/2 + r_3 z^4),
    W <= theta^2 variance <= sum E(z^2 + z^3 + r_2 z^4),   W = sum E(z^2 + z^3) - x^4 t^4 j,                        (V)
    j = (v2 + o b3)(v2/2 + o b3/6 + o^2 b4 r_4) + (v2 + o b3/2 + o^2 b4 r_3)^2.

*Three cases.* Let H(m, v) = E s_+ e^-s, s ~ N(m, v), log-concave in m (a convolution of log-concave functions). H(0,
V) = X phi(0) k(X), X = sqrt(V), and the logarithmic slope there is lambda = (M(X) - X k(X))/(X k(X)) >= 0, M Mills'
ratio: H(m, V) <= H(0, V) e^(lambda m). Choose any V > 0, phi in (0, 1], rho in [0, 0.3] and K with (V/v)^(1/2) <= K
e^(rho (V - v)) for phi V <= v <= V (ln of the left side is convex in v, so that the ends decide). Let v be theta^2
times the variance. If v >= V, one more normal variable adds v - V: H(m, v) <= H(0, V) e^(lambda m + lambda^2 (v -
V)/2). If phi V <= v < V, the normal density is at most (V/v)^(1/2) times that of variance V: a factor K e^(rho (V -
v)). If W < phi V, S is first padded with one normal variable of variance (phi V - W)/theta^2, which only raises E S_+
(Jensen) and adds (1/2 + lambda)(phi V - W) to the exponent. In each case E S_+ but for the error of the normal law is
at most

    (H(0, V)/theta) K e^(Y - (1 + lambda) theta g - lambda^2 V/2),    Y = max_i sum_J E G_i(z_J),                    (Y)
    G_0 = (1/2 + lambda + lambda^2/2) z^2 + (1/6 + lambda/2 + lambda^2/2) z^3 + c z^4,   c = r_4 + lambda r_3 +
        lambda^2 r_2/2,
    G_1 = (rho + lambda^2/2) V x^2/n1 + (1/2 + lambda - rho) z^2 + (1/6 + lambda/2 - rho) z^3 + (r_4 + lambda r_3) z^4
        + rho x^4 t^4 j,
    G_2 = ((1/2 + lambda) phi + rho (1 - phi) + lambda^2/2) V x^2/n1 + (1/3 + lambda/2)|z|^3 + c z^4 + (1/2 + lambda +
        lambda^2/2) x^4 t^4 j,

since 1 <= mean x^2 multiplies V. In G_2 z^2 is gone, and of z^3 what is left is taken without its sign; the padded
variance is at most phi V plus the gap in (V), whence lambda^2/2.

*Convex.* But for the terms in x alone each G_i is convex in z, with G(0) = G'(0) = 0: c_2 z^2 + c_3 z^3 + c_4 z^4 is
if 3 c_3^2 <= 8 c_2 c_4. As r_i >= 1/i!, G_0 is a sum with factors 1, lambda, lambda^2/2 of three that are: (1/2, 1/6,
1/24), (1, 1/2, 1/6), (1, 1, 1/2). For G_1 it is enough that (1/2 + lambda - rho)(1 + 4 lambda) - 9 (1/6 + lambda/2 -
rho)^2 >= 0; it is concave in rho, and 1/4 + 3 lambda/2 + 7 lambda^2/4 at rho = 0, 1/25 + 3 lambda + 7 lambda^2/4 at
0.3. So at every x a seat's E G_i is at most that of a kind, and Y is at most the mean over J of M(x_J),

    M(x) = max x^2 ( S + B (x - 1) + C (x^2 - 1) ) = max x^2 ( S + b (x - 1) + C (x - 1)^2 ),   b = B + 2 C, C >= 0,

over kinds and i, B and C n1 times the factors of x^3 and x^4, S n1 times the whole at x = 1. Let S* and b* be those of
the largest S, and q = S* - S. On [1, r], (b - b*)(x - 1) - q <= e+ (x - 1), e+ = max( b - b* - q/(r - 1) ), at least
0; on [1/r, 1] it is at most e- (1 - x), e- = max( b* - b - r q/(r - 1) ). As x^2 <= 1 + (1 + r)(x - 1) on [1, r],

    Y <= S* + A chi + (e+ + e-) sqrt(chi)/2,   A = S* + (1 + r)( max(b*, 0) + e+ ) + r^2 max C,                      (Z)

and sqrt(chi)/2 <= (chi/d + d)/4 for every d > 0: d^2 is the variance of zeta*. V is about theta^2 times the tilted
variance where all are at the worst kind, phi = 0.7, and rho the chord's slope, at most 0.3; where K would cost more
than padding does, phi = 1, rho = 0 and K = 1. One padded S has a normal part (Y) and an error (below): both take one V
and one phi.

*The error of the normal law.* s_+ e^(-theta s) has total variation 2/(e theta). The third absolute central moments of
the tilted terms sum to at most

    ( f + F + ((2 + r) f + (r^2 + 2 r + 3) F) chi )/n1^2,
        f = (1 + L)^2 b3,  F = (1 + L)^2 t b4 r_1 + (1 + 1/L)^2 (t (v2 + o b3/2 + o^2 b4 r_3))^3 r^2   for any L > 0

(from (p + q)^3 <= (1 + L)^2 p^3 + (1 + 1/L)^2 q^3). They are divided by the variance to the power 3/2: the same three
cases with the same V and phi, with (V/v)^(3/2) <= K' e^(rho' (V - v)), and with lambda = 0. With c = S* + (e+ + e-)
d/4, the factor A + (e+ + e-)/(4 d) of chi, and c' and A' likewise for lambda = 0 and rho',

    E( sum zeta L )_+/n1 <= (H(0, V)/theta) K e^(c - (1 + lambda) theta g - lambda^2 V/2) (C at A)                   (T)
        + 0.5606 (2/(e theta)) (theta/X)^3 (f + F)/n1^2 K' e^(c' - theta g) (C at A' + ((2 + r) f + (r^2 + 2 r + 3)
        F)/(f + F)).

**The centre.** Given the zeta_J the sum has mean -g zbar and, padded, variance v2 S/n1^2; sqrt(S/n1) - zbar <= var/(2
zbar), and E N(m, sd^2)_+ grows by at most phi(0) per unit of sd. With sd = sqrt(v2/n1) and tau = active (e^e0 - 1)(1
- e^-e0)/N, the variance of zeta*,

    E( sum zeta L )_+/n1 <= (1 + p) E N(-g, sd^2)_+ + phi(0) sd tau/(2 (1 - l)) + (1 + s) b3/(2 v2 n1).            (M)

**Rounding.** Probabilities of counts by log-gamma, good to 1e-9 for N up to 1e5; values of zeta* of probability below
1e-26 are left out of sums, at most 1e7 of them: 1e-19 in s and l (half the charge is kept for it), and 1e-19 times
values below e^300 in (C) would be too much, so (C) refuses exponents above 15. Moments are raised by 1e-9 of the
absolute ones. The terms of an exponent are good to 64 units of 2^-53 each; it is refused above 300, and below -600 it
is nothing beside the charges; in between it is refused where its terms exceed 1e6. Everything is raised by 1e-7, (C)
by 1e-9 relative.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.theorems.chain.normal import BERRY_ESSEEN, RatioMoments, remainders
from shuffledp.numerics.floats import UNBOUNDED, FloatArray, Upper
from shuffledp.numerics.functions import gammaln
from shuffledp.numerics.tails import mills_ratio, mills_slope

MOST_COPIES = 100_000
"""Largest N that is evaluated; a larger group is not used."""
MOST_SPARSE_COPIES = 30_000
"""Largest N where a ratio may be 1: the law then has two counts, and as many cells as copies."""
CHARGES = (2e-8, 1e-10, 1e-14)
"""Charges that are tried; the first is for delta above 1e-6."""
_RELATIVE, _FIXED = np.linspace(0.75, 1.2, 10), np.array([2.0, 3.0, 4.0, 5.0, 6.5, 8.0, 12.0])
_SHALLOW = math.log(1e-26)
_DOUBT = 1e-7
_DEEPEST = 30.0
_LARGEST_EXPONENT, _LARGEST_TERMS, _LARGEST_UNEVEN = 300.0, 1e6, 15.0
_WIDEST, _POINTS, _MANY_COPIES = 0.9, 800, 1_000
_FLOOR, _STEEPEST = 0.7, 0.3
_MOST_KINDS, _EXACT, _NARROW = 6, 1e-9, 1e-8
_PHI0 = 1.0 / math.sqrt(2.0 * math.pi)


class Kinds(NamedTuple):
    """Moments of D = L - E L for kinds of places, shape (kinds,) each.

    For every convex function G with G(0) = G'(0) = 0, E G(D) of any place is at most that of the worst kind.

    Parameters
    ----------
    second, absolute, fourth : ndarray
        Upper bounds of E D^2, E|D|^3 and E D^4.
    third, fallen : ndarray
        Upper bounds of E D^3 and of -E D^3.
    """

    second: FloatArray
    third: FloatArray
    fallen: FloatArray
    absolute: FloatArray
    fourth: FloatArray

    @classmethod
    def of(cls, masses: FloatArray, losses: FloatArray, doubts: FloatArray, spare: float | FloatArray = 0.0) -> Kinds:
        """Return the kinds with these chances and values of D.

        Parameters
        ----------
        masses : ndarray, shape (kinds, cells)
            Chances of the cells, at least 0, good to 1e-14 of themselves and ``spare``.
        losses, doubts : ndarray, shape (kinds, cells)
            D in each cell, and how far it may be off.
        spare : float or ndarray, shape (kinds, cells)
            How far the chances may be off.
        """
        size, most = np.abs(losses) + doubts, masses + spare
        second, absolute, fourth = ((most * size**power).sum(axis=1) * (1.0 + _EXACT) for power in (2, 3, 4))
        third = (masses * losses**3).sum(axis=1)
        doubt = (masses * (size**3 - np.abs(losses) ** 3) + spare * size**3).sum(axis=1) + _EXACT * absolute
        return cls(second, third + doubt, doubt - third, absolute, fourth)

    @classmethod
    def within(cls, moments: RatioMoments) -> Kinds:
        """Return the one kind whose moments are bounds."""
        bounds = (moments.second, moments.third, moments.absolute, moments.absolute, moments.fourth)
        return cls(*(np.array([float(each)]) for each in bounds))

    def fewer(self) -> Kinds:
        """Return at most a few of the kinds and one that bounds the others, which have a smaller second moment."""
        if self.second.size <= _MOST_KINDS:
            return self
        order = np.argsort(-self.second, kind="stable")
        rest = order[_MOST_KINDS - 1 :]
        return Kinds(*(np.append(each[order[: _MOST_KINDS - 1]], each[rest].max()) for each in self))


@dataclass(frozen=True, eq=False)
class PureLaw:
    """What is known of the law of pure reports of one budget.

    Parameters
    ----------
    epsilon0 : float
        Local budget, nats, in (0, 8], rounded up.
    kinds : callable
        From e^eps - 1 to the moments of L - E L, one for every kind of place that R_J can have.
    active : float
        Upper bound, in (0, 1], on the chance that a ratio R_J/R_K, K in A_2, is not 1; 1 is always valid.
    groups : tuple of callable
        Each from the number of other users, and a wished size, to the size m of a group A_2 that must exist, and the
        number N of copies; (0, 0) if there is none.
    """

    epsilon0: float
    kinds: Callable[[float], Kinds]
    active: float
    groups: tuple[Callable[[int, float], tuple[int, int]], ...]

    @property
    def spread(self) -> float:
        """Upper bound of the variance of a density ratio."""
        return self.active * math.expm1(self.epsilon0) * -math.expm1(-self.epsilon0)


@dataclass(frozen=True, eq=False)
class PureLinks:
    """Two groups of users with pure reports of one budget, chosen in several ways; the best way counts.

    Parameters
    ----------
    law : PureLaw
        What is known of the law of the reports.
    last : ndarray, shape (ways,)
        n1, the number of users of A_1; at least 2.
    copies : ndarray of int, shape (ways,)
        N, from 2 to 100,000.
    charges : ndarray, shape (ways,)
        p, in [1e-18, 1e-3].
    """

    law: PureLaw
    last: FloatArray
    copies: NDArray[np.int64]
    charges: FloatArray

    def divergence(self, epsilon: float) -> Upper:
        """Return an upper bound of the divergence at epsilon, possibly above that of one report; infinite without ways.

        Parameters
        ----------
        epsilon : float
            Nats, from 0 to epsilon0.
        """
        if self.last.size == 0:
            return UNBOUNDED
        growth = math.expm1(epsilon)
        kinds = self.law.kinds(growth)
        paid = self.charges * (pure_divergence(self.law.epsilon0, epsilon) + growth)
        least = float((paid + self._centre(growth, kinds)).min())
        return Upper(self._tail(growth, kinds, paid, least) * (1.0 + _DOUBT))

    @cached_property
    def _laws(self) -> list[Averages]:
        """The law of zeta* in each way, with s and l."""
        pairs = zip(self.copies.tolist(), self.charges.tolist(), strict=True)
        return [Averages.of(self.law.epsilon0, copies, self.law.active, charge) for copies, charge in pairs]

    @cached_property
    def _ends(self) -> tuple[FloatArray, FloatArray]:
        """How far zeta* strays in every way: s and l."""
        return np.array([law.excess for law in self._laws]), np.array([law.shortfall for law in self._laws])

    @cached_property
    def _spread(self) -> FloatArray:
        """The variance of zeta* in every way."""
        return self.law.spread / self.copies

    def _centre(self, growth: float, kinds: Kinds) -> FloatArray:
        """(M) of every way."""
        s, short = self._ends
        second, absolute = float(kinds.second.max()), float(kinds.absolute.max())
        sd = np.sqrt(second / self.last)
        z = growth / sd
        normal = sd * _PHI0 * np.exp(-0.5 * z * z) * mills_slope(z)
        room = short < 1.0
        uneven = _PHI0 * sd * self._spread / (2.0 * np.where(room, 1.0 - short, 1.0))
        centre = (1.0 + self.charges) * normal + uneven + (1.0 + s) * absolute / (2.0 * second * self.last)
        return np.where(room, centre, math.inf)

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")  # what is not finite is not good
    def _tail(self, growth: float, kinds: Kinds, paid: FloatArray, least: float) -> float:
        """Return the smallest of ``least`` and of (T) plus what is paid, in all ways and at all theta of a grid.

        The expectations (C) take most of the time. They are about e^(A Var zeta*) or more, which tells which are not
        worth it.
        """
        terms = self._terms(growth, kinds)
        if terms is None:
            return least
        body, error = (np.exp(power * self._spread[:, None]) for power in (terms.bodys, terms.errors))
        hopes = terms.factor * (terms.body * body + terms.error * error) + paid[:, None]
        hopes = np.where(np.isfinite(hopes) & terms.good, hopes, math.inf)
        for place in np.argsort(hopes, axis=None):
            way, at = divmod(int(place), hopes.shape[1])
            if not hopes[way, at] < least:
                break
            body, error = self._laws[way].uneven(np.array([terms.bodys[way, at], terms.errors[way, at]]))
            total = terms.body[way, at] * body + terms.error[way, at] * error
            least = min(least, float(terms.factor[way, at] * total + paid[way]))
        return least

    def _terms(self, growth: float, kinds: Kinds) -> _Terms | None:
        """(T) in pieces, shape (ways, thetas); None where the centre is all there is."""
        if growth == 0.0:
            return None
        s, short = (end[:, None] for end in self._ends)
        usable = np.maximum(s, short) < _WIDEST
        s, short = np.where(usable, s, 0.0), np.where(usable, short, 0.0)
        n, ratio = self.last[:, None].astype(np.float64), (1.0 + s) / (1.0 - short) * (1.0 + _DOUBT)
        v2 = float(kinds.second.max())
        theta = np.concatenate((growth * n / v2 * _RELATIVE, np.sqrt(n / v2) * _FIXED), axis=1)
        y = theta * ratio / n * (math.exp(self.law.epsilon0) + growth)
        good = usable & (y < _DEEPEST)
        scaled = _Scaled.of(kinds, n, theta, ratio, np.where(good, y, 1.0))
        spread = scaled.spread()
        x = np.sqrt(spread)
        slope = mills_slope(x)
        pull = np.maximum((mills_ratio(x) - x * slope) / slope, 0.0) / x
        typical = np.sqrt(np.maximum(self._spread, _NARROW)[:, None])
        log_body, bodys = scaled.exponents(pull, scaled.falls(0.5), ratio, typical)
        body = x / theta * _PHI0 * slope * np.exp(log_body - pull * (theta * growth + pull * spread / 2.0))
        log_error, errors = scaled.exponents(0.0 * pull, scaled.falls(1.5), ratio, typical)
        third, more = scaled.thirds(ratio)
        level = log_error - theta * growth
        good &= (level < _LARGEST_EXPONENT) & (np.maximum(log_body, log_error) < _LARGEST_TERMS)
        return _Terms(
            np.exp(np.where(good, level, 0.0)),
            body * np.exp(-log_error),
            BERRY_ESSEEN * 2.0 / (math.e * theta) * third / x**3,
            bodys,
            errors + more,
            good,
        )


class _Terms(NamedTuple):
    """(T) in pieces, shape (ways, thetas) each.

    It is factor (body C(bodys) + error C(errors)), C the expectation (C), where it is good.
    """

    factor: FloatArray
    body: FloatArray
    error: FloatArray
    bodys: FloatArray
    errors: FloatArray
    good: NDArray[np.bool_]


class _Scaled(NamedTuple):
    """n1 times the moments of t D for all kinds, ways and thetas, shape (kinds, ways, thetas) each.

    The remainders r1 to r4, and ``lean`` and ``curve``, t (v2 + o b3/2 + o^2 b4 r_3) times t and n1 t^4 j, have shape
    (ways, thetas); ``n`` has shape (ways, 1).
    """

    n: FloatArray
    second: FloatArray
    third: FloatArray
    fallen: FloatArray
    absolute: FloatArray
    fourth: FloatArray
    rest: tuple[FloatArray, FloatArray, FloatArray, FloatArray]
    lean: FloatArray
    curve: FloatArray

    @classmethod
    def of(cls, kinds: Kinds, n: FloatArray, theta: FloatArray, ratio: FloatArray, y: FloatArray) -> _Scaled:
        """Scale the moments of the kinds; ``y`` bounds z."""
        step = theta / n
        second, third, fallen, absolute, fourth = (
            n * step**power * each[:, None, None] for power, each in zip((2, 3, 3, 3, 4), kinds, strict=True)
        )
        v2, b3, b4 = (each.max(axis=0) / n for each in (second, absolute, fourth))
        rest = remainders(y)
        mass = v2 / 2.0 + ratio * b3 / 6.0 + ratio**2 * b4 * rest[3]
        lean = v2 + ratio * b3 / 2.0 + ratio**2 * b4 * rest[2]
        curve = n * ((v2 + ratio * b3) * mass + lean**2)
        return cls(n, second, third, fallen, absolute, fourth, rest, lean, curve)

    def thirds(self, ratio: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return t^3 (f + F) n1, and how it grows with chi: its share of chi."""
        flat, four = self.absolute.max(axis=0), self.fourth.max(axis=0) * self.rest[0]
        share = self.lean / np.cbrt((flat + four) / self.n)
        steep = (1.0 + share) ** 2 * four + (1.0 + 1.0 / share) ** 2 * self.lean**3 * ratio**2 * self.n
        flat = (1.0 + share) ** 2 * flat
        third = flat + steep
        return third, ((2.0 + ratio) * flat + (ratio * ratio + 2.0 * ratio + 3.0) * steep) / third

    def spread(self) -> FloatArray:
        """Return V, about theta^2 times the tilted variance where all are at the worst kind; any V > 0 serves.

        Where S will be padded to V, it is less by what makes G_2 about as large as G_0.
        """
        worst = np.argmax(self.second / 2.0 + self.third / 6.0, axis=0)[None]
        tilted_variance = np.take_along_axis(self.second + self.third, worst, axis=0)[0] - self.curve
        padded = self._padded(tilted_variance)
        return np.maximum(tilted_variance - 0.6 * padded * self.absolute.max(axis=0), 0.5 * self.second.max(axis=0))

    def falls(self, power: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return phi, rho and ln K with (V/v)^power <= K e^(rho (V - v)) for all v from phi V to V, rho at most 0.3.

        phi is that of `_padded` whatever the power: one padded S has a normal part and an error.
        """
        spread = self.spread()
        fall, left = _chord(spread, power)
        full = self._padded(spread)
        return np.where(full, 1.0, _FLOOR), np.where(full, 0.0, fall), np.where(full, 0.0, left)

    def _padded(self, spread: FloatArray) -> NDArray[np.bool_]:
        """Whether S is padded to V = ``spread`` itself: where that costs less than K does."""
        return _chord(spread, 1.0)[1] > 0.5 * self.absolute.max(axis=0)

    def exponents(
        self, pull: FloatArray, falls: tuple[FloatArray, FloatArray, FloatArray], ratio: FloatArray, typical: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return (Z), with ln K, as a constant and a factor of chi, for lambda = ``pull`` and what `falls` returned.

        ``ratio`` is r, and ``typical`` the d of (Z).
        """
        spread, half, (least, fall, left) = self.spread(), 0.5 * pull * pull, falls
        free, cut = 0.5 + pull, 1.0 / 6.0 + 0.5 * pull
        _, r2, r3, r4 = self.rest
        rest = (r4 + pull * r3) * self.fourth
        above = rest + half * r2 * self.fourth
        signed = (cut - fall) * np.where(cut >= fall, self.third, -self.fallen)
        floor = (least * free + (1.0 - least) * fall + half) * spread
        squares = (free + half) * self.second, (fall + half) * spread + (free - fall) * self.second, floor + 0.0 * rest
        cubes = (cut + half) * self.third, signed, (free - cut) * self.absolute
        fourths = above, rest + fall * self.curve, above + (free + half) * self.curve
        square, cube, fourth = (np.concatenate(each) for each in (squares, cubes, fourths))
        whole, slope = square + cube + fourth, cube + 2.0 * fourth
        most = whole.max(axis=0)
        own = np.take_along_axis(slope, np.argmax(whole, axis=0)[None], axis=0)[0]
        gap, apart = (most - whole) / (ratio - 1.0), slope - own
        up, down = (apart - gap).max(axis=0), (-apart - ratio * gap).max(axis=0)
        width = 0.25 * (up + down)
        factor = most + (1.0 + ratio) * (np.maximum(own, 0.0) + up) + ratio**2 * fourth.max(axis=0) + width / typical
        return most + width * typical + left, factor


def _chord(spread: FloatArray, power: float) -> tuple[FloatArray, FloatArray]:
    """Return rho, the slope of ln (V/v)^power between v = 0.7 V and V but at most 0.3, and what is left: ln K."""
    most = -power * math.log(_FLOOR)
    fall = np.clip(most / ((1.0 - _FLOOR) * spread), 0.0, _STEEPEST)
    return fall, np.maximum(most - (1.0 - _FLOOR) * fall * spread, 0.0)


@dataclass(frozen=True, eq=False)
class Averages:
    """The law of zeta*, an average of N independent two-point ratios, and how far it strays from 1 for a charge.

    Parameters
    ----------
    values, masses : ndarray, shape (cells,)
        Ascending values and their probabilities, rounded up; values of together 1e-19 are left out.
    excess, shortfall : float
        s and l: the means of (zeta* - 1 - s)_+ and (1 - l - zeta*)_+ are at most half the charge.
    """

    values: FloatArray
    masses: FloatArray
    excess: float
    shortfall: float

    @classmethod
    def of(cls, epsilon0: float, copies: int, active: float, charge: float) -> Averages:
        """Return the law of the average of N density ratios, with s and l for half the charge.

        Parameters
        ----------
        epsilon0 : float
            Local budget, nats.
        copies : int
            Number N of ratios.
        active : float
            Upper bound, in (0, 1], on the chance that a ratio is not 1.
        charge : float
            Probability that is added to delta for averages far from 1, see (C) of docs/theorems/chain.md.
        """
        zeta, mass = _averages(epsilon0, copies, active)
        over = np.cumsum((mass * zeta)[::-1])[::-1] - zeta * np.cumsum(mass[::-1])[::-1]
        under = zeta * np.cumsum(mass) - np.cumsum(mass * zeta)
        s = _crossing(zeta, over, 0.5 * charge) - 1.0
        short = 1.0 - _crossing(zeta[::-1], under[::-1], 0.5 * charge)
        return cls(zeta, mass, max(s, 0.0) + _DOUBT, max(short, 0.0) + _DOUBT)

    def uneven(self, factor: FloatArray) -> FloatArray:
        """Return the right side of (C), an upper bound, for each A of the array ``factor``."""
        x = np.clip(self.values - 1.0, -self.shortfall, self.excess)
        square = x * x
        exponent = x + factor[:, None] * (square / (1.0 - square))
        slope = 1.0 + factor[:, None] * (2.0 * x / (1.0 - square) ** 2)
        beyond = 1.0 + np.maximum(slope * (self.values - 1.0 - x), 0.0)
        mean = (np.exp(np.minimum(exponent, _LARGEST_EXPONENT)) * beyond) @ self.masses
        return np.where(exponent.max(axis=1) < _LARGEST_UNEVEN, mean * (1.0 + _DOUBT), math.inf)


@lru_cache(maxsize=64)
def _averages(epsilon0: float, copies: int, active: float) -> tuple[FloatArray, FloatArray]:
    """Values of zeta*, ascending, with their probabilities, raised, but for some of together 1e-19.

    Of many copies with two counts the law is made from that of a quarter of them.
    """
    if active == 1.0 or copies < _MANY_COPIES:
        return _on_a_line(*_counted(epsilon0, copies, active))
    quarter, mass = _on_a_line(*_counted(epsilon0, copies // 4, active))
    half = np.convolve(mass, mass)
    whole = np.convolve(half, half) * (1.0 + _DOUBT)
    kept = whole > math.exp(_SHALLOW)
    return _on_a_line(np.linspace(quarter[0], quarter[-1], whole.size)[kept], whole[kept])


def _counted(epsilon0: float, copies: int, active: float) -> tuple[FloatArray, FloatArray]:
    """Return the law of zeta* by counts of the ratios above 1 and, if there are ratios 1, below, in any order."""
    n, high = float(copies), math.exp(epsilon0)
    up, down = active / (1.0 + high), active * high / (1.0 + high)
    i = _reach(n, up)
    values, logs = i * math.expm1(epsilon0) / n, gammaln(n + 1.0) - gammaln(i + 1.0) + i * math.log(up)
    if active == 1.0:
        logs = logs - gammaln(n - i + 1.0) + (n - i) * math.log(down)
        values = values + (n - i) * math.expm1(-epsilon0) / n
    else:
        j = _reach(n, down)
        idle = np.arange(max(n - i[-1] - j[-1], 0.0), n - i[0] - j[0] + 1.0)
        rest = idle * math.log(1.0 - active) - gammaln(idle + 1.0)
        place = (n - i[:, None] - j[None, :] - idle[0]).astype(np.int64)  # below 0 where i + j is above n
        second = j * math.log(down) - gammaln(j + 1.0)
        logs = logs[:, None] + second + np.where(place < 0, -math.inf, rest[np.maximum(place, 0)])
        values = values[:, None] + j * math.expm1(-epsilon0) / n
    kept = logs > _SHALLOW
    return 1.0 + values[kept], np.exp(logs[kept]) * (1.0 + _DOUBT)


def _crossing(values: FloatArray, lost: FloatArray, allowed: float) -> float:
    """Where what is lost falls to what is allowed: it is linear between two values of zeta*."""
    at = int(np.argmax(lost <= allowed))
    if at == 0:
        return float(values[0])
    share = (allowed - lost[at]) / (lost[at - 1] - lost[at])
    return float(values[at] + share * (values[at - 1] - values[at]))


def _reach(n: float, chance: float) -> FloatArray:
    """Return the counts out of n of that chance that may have a probability above 1e-26, by Bernstein's inequality."""
    mean, deviation = n * chance, math.sqrt(n * chance * (1.0 - chance))
    reach = 11.0 * deviation + 45.0
    return np.arange(max(math.floor(mean - reach), 0.0), min(math.ceil(mean + reach), n) + 1.0)


def _on_a_line(values: FloatArray, masses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Split every mass between the two next points of a line, with the same mean: larger in convex order."""
    if values.size <= _POINTS:
        order = np.argsort(values)
        return values[order], masses[order]
    points = np.linspace(values.min(), values.max(), _POINTS)
    step = points[1] - points[0]
    left = np.clip(((values - points[0]) / step).astype(np.int64), 0, _POINTS - 2)
    share = np.clip((values - points[left]) / step, 0.0, 1.0)
    split_masses = np.bincount(left, masses * (1.0 - share), _POINTS) + np.bincount(left + 1, masses * share, _POINTS)
    return points, split_masses.astype(np.float64)


def copies_of(size: int, log_ratio: float) -> int:
    """Return the number of copies N for a group whose users' densities are within a factor e^log_ratio of each other.

    Parameters
    ----------
    size : int
        Number of users of the group.
    log_ratio : float
        Logarithm of that factor, at least 0; at most 100,000 copies are counted.
    """
    return min(math.floor(size * math.exp(-log_ratio) * (1.0 - _DOUBT)), MOST_COPIES)


def counted_copies(copies: int, active: float) -> int:
    """Return ``copies``, rounded down to a multiple of 4 where the law of their average needs it.

    It does for many copies if ``active``, the chance that a ratio is not 1, is below 1. An average of fewer copies is
    larger in convex order, so the bound remains valid.
    """
    return copies - copies % 4 if active < 1.0 and copies >= _MANY_COPIES else copies


def pure_divergence(epsilon0: float, epsilon: float) -> float:
    """Return the divergence of randomized response, the largest of one pure report, rounded up.

    Parameters
    ----------
    epsilon0, epsilon : float
        Nats, at least 0.
    """
    return max(-math.expm1(epsilon - epsilon0), 0.0) / (1.0 + math.exp(-epsilon0)) * (1.0 + _DOUBT)
