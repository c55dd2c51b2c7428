"""Shuffled reports of two laws: how well one report of A among them is told from one of B (docs/theorems/two-type.md).

Besides the victim i reports are of law A and j of law B. With l = A/B, lambda = e^-eps (i+1)/(j+1), pi(y) = lambda
l/(1 + lambda l), T = sum of pi over all i+j+1 reports, V = sum of pi (1-pi), P the victim of A and Q of B,

    (P - e^eps Q)_+ <= min(1, (T-i)_+/V) P,    (e^eps Q - P)_+ <= min(1, (i+1-T)_+/V) e^eps Q,                      (T)

so that for every test phi(T) with values in [0, 1]

    H <= E_P phi - e^eps E_Q phi + E_P[(1-phi) min(1, (T-i)_+/V)] + e^eps E_Q[phi min(1, (i+1-T)_+/V)].

Here phi(T) = Phi((T-c)/s), c = i+1/2, s >= 1/2. Its expectations are Bromwich integrals of exp(s^2 z^2/2 - zc) M(z)/z,
by the trapezoidal rule. With u = T-c and t = 1/(2s) <= 1, the last two terms are below their bumps,

    (1-phi) (u+1/2)_+ <= s ((1-t) K_0 + t K_1) exp(-(u/s - m)^2/2),   K_a = sup_x (x+a)_+ Phi(-x) e^((x-m)^2/2),    (K)

whose expectations are integrals of the same kind, where V >= v and |u| <= 16 s; elsewhere they are at most 1, with
chances bounded by Phi(-16) and by E exp(t (v-V) + theta (T-i)) for every t >= 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from shuffledp.numerics.floats import EPS
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.sums import ComplexArray, IndependentSum
from shuffledp.numerics.tilted import FALL
from shuffledp.numerics.two_laws import TwoLaws

BUMP_CENTRE, BUMP_0, BUMP_1 = 0.15, 0.2525, 0.507
"""m, K_0 and K_1 of (K), rounded up."""
_OUTSIDE, _OUTSIDE_CHANCE = 16.0, 1e-56
_SMOOTHING = 0.015
_MAX_POINTS = 1 << 17
_TILTS = np.geomspace(0.02, 60.0, 48)
_FARTHER = np.array([4.0, 8.0, 12.0, 16.0])
_DEEP = -600.0
_SHARES = (0.98, 0.95, 0.9, 0.8, 0.65, 0.5, 0.3)


def told_apart(laws: TwoLaws, of_a: float, of_b: float, epsilon: float) -> float:
    """Bound the divergence of a victim of law A from one of law B among others of both, from above.

    Parameters
    ----------
    laws : TwoLaws
        A and B.
    of_a, of_b : float
        How many others have each law: whole numbers, at least 0.
    epsilon : float
        Nats, from 0 to 600.

    Returns
    -------
    float
        Upper bound of H(P, Q; epsilon), at most 1.
    """
    return min(_Crowd.of(laws, of_a, of_b, epsilon).most(), 1.0)


@dataclass(frozen=True, eq=False)
class _Crowd:
    """One crowd at one epsilon: the chances pi of the atoms, and the sum of those of the others."""

    laws: TwoLaws
    of_a: float
    of_b: float
    epsilon: float
    chances: FloatArray
    others: IndependentSum

    @classmethod
    def of(cls, laws: TwoLaws, of_a: float, of_b: float, epsilon: float) -> _Crowd:
        """Chances are good to ``doubt`` units: an absolute error of log(lambda l) is a relative one of pi."""
        tilt = math.log((of_a + 1.0) / (of_b + 1.0)) - epsilon
        finite = np.where(np.isfinite(laws.losses), laws.losses, 0.0)
        doubt = laws.doubt + 24.0 + 8.0 * (abs(tilt) + epsilon + float(np.abs(finite).max()))
        chances = expit(laws.losses + tilt)
        masses = np.stack((laws.masses_a, laws.masses_b))
        others = IndependentSum(
            np.array([of_a, of_b]), np.stack((chances, chances)), masses, masses @ chances, float(doubt)
        )
        return cls(laws, of_a, of_b, epsilon, chances, others)

    @property
    def centre(self) -> float:
        """The threshold c."""
        return self.of_a + 0.5

    def most(self) -> float:
        """The bound, by the line of the best tilt; 1 where there is none."""
        sigma = math.sqrt(self.others.tilted(0.0).variance)
        if not sigma > 1e-3:
            return 1.0
        grid, s = _TILTS / sigma, max(0.5, _SMOOTHING * sigma)
        with np.errstate(over="ignore", invalid="ignore"):
            logs = (
                self.others.log_mgf_above(grid).sum(axis=1) - grid * self.centre - np.log(grid) + 0.5 * (s * grid) ** 2
            )
        if not np.isfinite(logs).any():
            return 1.0
        theta = float(grid[int(np.nanargmin(logs))])
        return self._on(theta, sigma)

    def _on(self, theta: float, sigma: float) -> float:
        tilted = self.others.tilted(theta)
        spread = math.sqrt(max(tilted.variance, 1e-6 * sigma**2))
        s = max(0.5, _SMOOTHING * spread)
        size = float(self.others.log_mgf_above(np.array([theta])).sum()) - theta * self.centre
        period = max(12.0 * max(spread, s), (30.0 - min(size, 0.0)) / theta)
        points = math.ceil(math.sqrt(2.0 * FALL) / s * period / (2.0 * math.pi)) + 2
        if size < _DEEP:  # H <= P(T > i), by Chernoff
            return math.exp(min(max(size + 2.0 * theta, 2.0 * _DEEP), 0.0)) + 1e-300
        if points > _MAX_POINTS or not size < 300.0:
            return 1.0
        step = 2.0 * math.pi / period
        alive = tilted.alive(step, points, 1.0, s)
        with np.errstate(over="ignore", invalid="ignore"):  # where the transform leaves double range there is no bound
            line = _Line.through(self, theta, s, step, alive, points)
            band, least = line.bumps(), math.inf
            for v, rare in self._variances(theta, s):
                least = min(least, band / v * (1.0 + 1e-12) + rare)
            found = line.tails() + self._aliases(theta, s, period, spread) + least
        found += 2.0 * _OUTSIDE_CHANCE * (1.0 + math.exp(self.epsilon))
        return found if math.isfinite(found) else 1.0

    def _aliases(self, theta: float, s: float, period: float, spread: float) -> float:
        """T under P is stochastically above T under Q, so P(T >= x) - e^eps Q(T >= x) >= -(e^eps - 1) Q(T >= x)."""
        below = math.exp(-theta * period) / -math.expm1(-theta * period)
        tilts = theta + _FARTHER / spread
        under_q = replace(self.others, counts=self.others.counts + np.array([0.0, 1.0]))
        with np.errstate(over="ignore", invalid="ignore"):
            logs = under_q.log_mgf_above(tilts).sum(axis=1) + 0.5 * (s * tilts) ** 2 - tilts * self.centre
        gap = (tilts - theta) * period
        logs = logs + 16.0 * EPS * (np.abs(tilts * self.centre) + np.abs(logs) + 8.0) - gap - np.log(-np.expm1(-gap))
        finite = logs[np.isfinite(logs)]
        above = math.exp(min(float(finite.min()), 700.0)) if finite.size else math.inf
        return math.expm1(self.epsilon) * (below + above) * (1.0 + 1e-12)

    def _variances(self, theta: float, s: float) -> list[tuple[float, float]]:
        """Bounds v of V, with what their failure costs: sure ones, and those of (T)'s exponential moment."""
        n, low, high = self.of_a + self.of_b + 1.0, float(self.chances.min()), float(self.chances.max())
        reach = _OUTSIDE * s + 0.5
        # pi (1-pi) >= pi (1 - low - high) + low high between low and high
        ends = [min(max(end, n * low), n * high) for end in (self.centre - reach, self.centre + reach)]
        sure = min(end * (1.0 - low - high) + n * low * high for end in ends) * (1.0 - 1e-9) - 1e-9 * n
        found = [(sure, 0.0)] if sure > 0.0 else []
        each = self.chances * (1.0 - self.chances)
        masses = self.others.probabilities
        grown = masses * np.exp(theta * self.chances)
        weights = grown / grown.sum(axis=1, keepdims=True)
        counts = self.others.counts
        mean, second = float(counts @ (weights @ each)), float(counts @ (weights @ each**2))
        t = np.geomspace(0.02, 20.0, 32) * mean / max(second, 1e-300)
        damped = np.exp(theta * self.chances - t[:, None] * each) @ masses.T  # shape (t, laws)
        logs = np.log(damped)
        both = logs @ counts
        doubt = EPS * (2.0 * self.others.doubt + self.chances.size + 16.0) * (n + 1.0) * (1.0 + theta + t)
        first = both + logs[:, 0] - theta * self.of_a
        other = both + logs[:, 1] + self.epsilon - theta * self.centre + 0.5 * (theta * s) ** 2
        rounding = doubt + 16.0 * EPS * (np.abs(both) + theta * n + np.abs(other) + t * mean + 8.0)
        either = np.logaddexp(first, other) + rounding
        for share in _SHARES:
            v = share * mean
            rare = float(np.min(either + t * v))
            found.append((v, math.exp(min(rare, 1.0)) * (1.0 + 1e-12)))
        return found


@dataclass(frozen=True, eq=False)
class _Line:
    """The others' moment generating function on theta + iy, over its value at theta, with all errors."""

    crowd: _Crowd
    s: float
    z: ComplexArray
    weight: FloatArray
    power: ComplexArray
    doubt: FloatArray
    """Bound on the relative error of ``power``."""
    log_size: float
    grown: ComplexArray
    """exp(z pi), shape (points, atoms)."""
    skipped: float
    """Sum of the weights of the points left out, each of whose powers is at most e^(1 - FALL)."""
    cut: float

    @classmethod
    def through(cls, crowd: _Crowd, theta: float, s: float, step: float, alive: np.ndarray, points: int) -> _Line:
        """Compute what is not negligible; everything is relative to exp(log M(theta) + s^2 theta^2/2 - theta c)."""
        others = crowd.others
        z = np.asarray(theta + 1j * step * alive, dtype=np.complex128)
        centered, error = others.log_mgf_centered(z)
        offset = others.mean - crowd.centre
        logs = centered + z * offset + 0.5 * s * s * z * z
        top = float(logs[0].real)
        scale = np.abs(z) * (others.mean + crowd.centre)
        # the means are no better than the chances
        error = error + EPS * ((4.0 * others.doubt + 16.0) * scale + 8.0 * (np.abs(logs) + 1.0))
        weight = np.where(alive == 0, 0.5, 1.0) * step / math.pi
        missing = (points - alive.size) * step / math.pi
        cut = step * (points - 1)
        # beyond the last point the integral of e^(-s^2 (y^2 - cut^2)/2) adds
        missing += 2.0 / (math.pi * s * s * cut)
        power = np.exp(logs - top)
        grown = np.exp(np.multiply.outer(z, crowd.chances))
        return cls(
            crowd, s, z, weight, power, np.expm1(np.minimum(2.0 * error, 50.0)), top, grown,
            missing * math.exp(1.0 - FALL), cut,
        )  # fmt: skip

    def _summed(self, factor: ComplexArray, error: FloatArray, largest: float) -> float:
        """Upper end of the integral of the power times a factor, known to an absolute error, at most ``largest``."""
        value = float(self.weight @ (self.power * factor).real)
        size = self.weight * np.abs(self.power)
        slack = float(size @ (np.abs(factor) * (self.doubt + EPS * (16.0 + self.z.size)) + error * (1.0 + self.doubt)))
        rounding = 16.0 * EPS * (abs(self.log_size) + 8.0) + float(self.doubt[0])
        found = value + slack + self.skipped * largest
        grown = 1.0 + math.copysign(rounding, found)
        return found * math.exp(min(self.log_size, 700.0)) * grown + 1e-300

    def tails(self) -> float:
        """P(T + sU >= c) - e^eps Q(T + sU >= c), with its aliases."""
        laws, epsilon = self.crowd.laws, self.crowd.epsilon
        finite = np.isfinite(laws.losses)
        gain = np.where(
            finite,
            -laws.masses_a * np.expm1(epsilon - np.where(finite, laws.losses, 0.0)),
            laws.masses_a - math.exp(epsilon) * laws.masses_b,
        )
        both = laws.masses_a + math.exp(epsilon) * laws.masses_b
        off = EPS * (
            laws.doubt * np.abs(gain) + both * (8.0 * (epsilon + np.abs(np.where(finite, laws.losses, 0.0))) + 8.0)
        )
        error = self._atoms(gain, off)
        largest = float(np.abs(self.grown[0]) @ np.abs(gain)) / abs(self.z[0])
        return self._summed(np.einsum("ij,j->i", self.grown, gain) / self.z, error / np.abs(self.z), largest * 1.01)

    def bumps(self) -> float:
        """V times what the band costs: the two bumps of (K)."""
        laws, s, grown = self.crowd.laws, self.s, math.exp(self.crowd.epsilon)
        height = s * ((1.0 - 0.5 / s) * BUMP_0 + 0.5 / s * BUMP_1) * s * math.sqrt(2.0 * math.pi)
        turn = np.exp(-BUMP_CENTRE * s * self.z)
        law_a, law_b = (np.einsum("ij,j->i", self.grown, masses) for masses in (laws.masses_a, laws.masses_b))
        factor = height * (turn * law_a + grown / turn * law_b)
        off = self._atoms(laws.masses_a, EPS * laws.doubt * laws.masses_a) * np.abs(turn)
        off += grown * self._atoms(laws.masses_b, EPS * laws.doubt * laws.masses_b) / np.abs(turn)
        off += 16.0 * EPS * (1.0 + s * np.abs(self.z)) * (np.abs(turn * law_a) + grown * np.abs(law_b / turn))
        largest = height * float((np.abs(turn) * np.abs(law_a) + grown * np.abs(law_b / turn))[0]) * 1.01
        return max(self._summed(factor, height * off, largest), 0.0)

    def _atoms(self, coefficients: FloatArray, off: FloatArray) -> FloatArray:
        """Absolute error of sum_k coefficient_k exp(z pi_k)."""
        size = np.abs(self.grown[0])  # real: the largest on the line
        turned = np.multiply.outer(np.abs(self.z), self.crowd.chances) * (2.0 * self.crowd.others.doubt)
        doubt = EPS * (8.0 + coefficients.size + turned)
        return doubt @ (size * np.abs(coefficients)) + float(size @ off)
