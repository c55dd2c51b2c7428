"""Sums of independent Laplace variables with their own scales: the best test of a shift, enclosed.

N = sum of independent Laplace variables of scales b_i has the moment generating function
M(z) = prod 1/(1 - b_i^2 z^2) on |Re z| < 1/max b, and a log-concave symmetric density f (distribution function F). So
f(t)/f(t-d) does not increase in t, the best test of N against N + d is a threshold, and

    H(eps) = max_t G(t),   G(t) = F(t) - e^eps F(t-d)
           = sum over aliases + (1/P) sum_j M(z_j) exp(z_j t) (1 - exp(eps - z_j d))/z_j,                          (S)

z_j = theta + 2 pi i j/P, 0 < theta < 1/max b. Nothing cancels in (S), however small d is against the spread of N.
The maximum is bounded through G'(t) = f(t-d) (f(t)/f(t-d) - e^eps), the same sum without 1/z: where
G'(t1) >= 0 >= G'(t2), t1 < t2; the ratio does not increase and |f'| <= f/max b, so that

    H <= G(t1) + (t2 - t1) G'(t1) exp((t2 - t1)/max b).                                                            (T)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from shuffledp.numerics.floats import EPS, FloatArray, Interval
from shuffledp.numerics.functions import log1p_minus_small
from shuffledp.numerics.sums import ComplexArray, bromwich_line, weighted, weighted_complex

MAX_GROUPS = 256
_MAX_POINTS = 1 << 15
_MAX_TERMS = 1 << 21
_BLOCK = 1 << 20
_TINY = 1e-300
_SCALE_ULPS = 8.0
_STEPS = 40
_DEEP = -700.0  # log of what counts as 0
_LARGEST = 700.0  # beyond, e^eps leaves double precision


@dataclass(frozen=True, eq=False)
class LaplaceSum:
    """A sum N of independent Laplace variables, grouped by scale b.

    Build it with `LaplaceSum.of`.

    Parameters
    ----------
    squares : ndarray, shape (groups,)
        Mean of (b/max b)^2 in each group, ascending.
    counts : ndarray, shape (groups,)
        Group sizes, as floats.
    smallest, largest : ndarray, shape (groups,)
        Extremes of (b/max b)^2 in each group.
    scatter : ndarray, shape (groups,)
        Sum over the group of squared distances of (b/max b)^2 to its mean.
    widest : float
        max b.
    """

    squares: FloatArray
    counts: FloatArray
    smallest: FloatArray
    largest: FloatArray
    scatter: FloatArray
    widest: float

    @classmethod
    def of(cls, scales: FloatArray, counts: FloatArray) -> LaplaceSum:
        """Group the variables by scale.

        Parameters
        ----------
        scales : ndarray, shape (levels,)
            Scales b, positive and finite, good to 4 EPS.
        counts : ndarray, shape (levels,)
            Whole numbers >= 1.
        """
        order = np.argsort(scales, kind="stable")
        v, c = (scales[order] / scales[order[-1]]) ** 2, counts[order].astype(np.float64)
        if v.size <= MAX_GROUPS:
            return cls(v, c, v, v, np.zeros_like(v), float(scales[order[-1]]))
        # equal shares of the variance: the widest noises, near whose pole the sum is taken, stay alone
        through = np.cumsum(c * v)
        label = np.minimum((through - c * v) / through[-1] * MAX_GROUPS, MAX_GROUPS - 1).astype(np.int64)
        starts = np.flatnonzero(np.concatenate(([True], label[1:] != label[:-1])))
        ends = np.concatenate((starts[1:], [v.size]))
        sizes = np.add.reduceat(c, starts)
        mean = np.add.reduceat(c * v, starts) / sizes
        scatter = np.add.reduceat(c * (v - np.repeat(mean, ends - starts)) ** 2, starts) * (1 + 1e-9)
        return cls(mean, sizes, v[starts], v[ends - 1], scatter, float(scales[order[-1]]))

    @cached_property
    def deviation(self) -> float:
        """Standard deviation of N, in plain double precision."""
        return self.widest * math.sqrt(2.0 * float(self.counts @ self.squares))

    def shift_divergence(self, epsilon: float, shift: float) -> Interval:
        """Enclose H(eps) of (S), the hockey-stick divergence of N and N + shift (the same in both directions).

        Parameters
        ----------
        epsilon : float
            Nats, at least 0.
        shift : float
            The distance d, positive.
        """
        reach = shift / self.widest  # from here on all scales are in units of the widest
        if epsilon >= reach * (1.0 + 4.0 * _SCALE_ULPS * EPS):
            return Interval(0.0, 0.0)
        # hidden by the widest noise alone it would be 1 - exp((eps - reach)/2); more noise hides more
        room = 0.5 * (reach - epsilon) + 4.0 * _SCALE_ULPS * EPS * reach
        alone = -math.expm1(-room) * (1.0 + 4.0 * EPS)
        if float(self.counts.sum()) == 1.0:
            least = 0.5 * (reach - epsilon) - 4.0 * _SCALE_ULPS * EPS * reach
            return Interval(max(-math.expm1(-least) * (1.0 - 4.0 * EPS), 0.0), min(alone, 1.0))
        if epsilon > min(_LARGEST, reach * (1.0 - 1e-10)):
            return Interval(0.0, min(alone, 1.0))
        enclosure = _BestThreshold(self, epsilon, reach).enclosed()
        upper, lower = min(enclosure.upper, alone, 1.0), enclosure.lower
        if upper - lower > 1e-3 and reach > self.deviation / self.widest:
            lower = max(lower, self._crude(epsilon, reach))
        return Interval(min(lower, upper), upper)

    def _crude(self, epsilon: float, reach: float) -> float:
        """Return a lower bound on (S) that is sharp where the shift is much larger than the noise.

        1 - P(N > t) - e^eps P(N <= t-d), both probabilities by Chernoff bounds.
        """
        tau = np.geomspace(1e-3 / max(self.deviation / self.widest, 1.0), 0.5, 200)
        tau = np.concatenate((tau, 1.0 - np.geomspace(1e-3, 0.5, 40)))
        logs, error = self.log_mgf(tau.astype(np.complex128))
        height = (logs.real + error)[:, None] + 1e-12
        t = np.linspace(0.0, reach, 400)[None]
        far = np.min(height - tau[:, None] * t, axis=0) + np.log1p(1e-9)
        near = np.min(height - tau[:, None] * (reach - t), axis=0) + epsilon + 1e-9 * (1.0 + epsilon)
        return float(np.max(1.0 - np.exp(np.minimum(far, 1.0)) - np.exp(np.minimum(near, 1.0)), initial=0.0))

    def log_mgf(self, z: ComplexArray) -> tuple[ComplexArray, FloatArray]:
        """Return log M(z) in units of the widest scale, shape of z, and a bound on its absolute error.

        Parameters
        ----------
        z : ndarray of complex
            With 0 < Re z < 1.
        """
        total, error = np.empty(z.size, dtype=np.complex128), np.empty(z.size)
        step = max(1, _BLOCK // self.squares.size)
        for start in range(0, z.size, step):
            part = slice(start, start + step)
            total[part], error[part] = self._log_mgf_block(z[part])
        return total, error

    def _log_mgf_block(self, z: ComplexArray) -> tuple[ComplexArray, FloatArray]:
        root = np.sqrt(self.squares)
        w = np.multiply.outer(z * z, self.squares)
        near = np.abs(w) < 0.25
        rest = log1p_minus_small(-np.where(near, w, 0.0))
        below, above = 1.0 - np.multiply.outer(z, root), 1.0 + np.multiply.outer(z, root)
        plain = np.log(np.where(near, 1.0, below * above))
        size = np.abs(w)
        # 1 - b^2 z^2 by its factors: the first loses digits near the pole
        pole = np.where(near, 1.0, 1.0 + (1.0 + np.sqrt(size)) / np.abs(below))
        rounding = np.where(near, 4.0 * size + 36.0 * np.abs(rest), 6.0 * pole + 4.0 * np.abs(plain))
        own = 2.0 * _SCALE_ULPS * size / (np.abs(below) * np.abs(above))  # the scales themselves
        total = weighted_complex(np.where(near, w - rest, -plain), self.counts)
        return total, 2.0 * EPS * weighted(rounding + own, self.counts) + self._scatter_error(z)

    def _scatter_error(self, z: ComplexArray) -> FloatArray:
        """Bound the error of log M(z) from replacing each group's v = (b/max b)^2 by its mean, shape of z.

        Half the scatter times max |d^2 log(1 - v z^2)/dv^2| = |z^2/(1 - v z^2)|^2 between a group's extremes.
        """
        if not self.scatter.any():
            return np.zeros(z.size)
        root, end = np.sqrt(self.smallest), np.sqrt(self.largest)
        # |1 - u z| is at least its real and its imaginary part, |1 + u z| at least 1 and its imaginary part
        high = np.multiply.outer(z.imag, root)
        below = np.maximum(1.0 - np.multiply.outer(z.real, end), high)
        distance = below * np.maximum(1.0, high)
        return weighted(0.51 * (np.abs(z)[:, None] ** 4 / distance**2), self.scatter)

    def slope(self, theta: float) -> tuple[float, float]:
        """Return first and second derivatives of log M at ``theta`` in (0, 1), to place lines; nothing is certified."""
        inverse = 1.0 / (1.0 - self.squares * theta * theta)
        first = 2.0 * self.squares * theta * inverse
        return float(first @ self.counts), float((2.0 * self.squares * inverse + first * first) @ self.counts)

    def log_decay(self, theta: float, y: float) -> tuple[float, float]:
        """Return log |M(theta + iy)/M(theta)|, and an exponent p such that it decays at least like y^-p from y on."""
        total, power = 0.0, 0.0
        root = np.sqrt(self.smallest)  # a wider noise falls further and faster
        for side in (1.0 - root * theta, 1.0 + root * theta):
            square = (root * y / side) ** 2
            total -= 0.5 * float(np.log1p(square) @ self.counts)
            power += float((square / (1.0 + square)) @ self.counts)
        return total, power


@dataclass(frozen=True, eq=False)
class _BestThreshold:
    """The search for the threshold t that maximises G(t) of (S), in units of the widest scale."""

    noise: LaplaceSum
    epsilon: float
    shift: float

    def enclosed(self) -> Interval:
        """Return bounds on H by (S) and (T); the upper end is 1 where the two signs of (T) cannot be certified."""
        line, t = self._climbed()
        if line.log_size < _DEEP and sum(line.slope(t)) < 0.0:  # H is at most F where G falls
            return Interval(0.0, _TINY)
        value = line.difference(t)
        lower = max(value[0] - value[1], 0.0)
        width = min(1e-5 * line.spread, 0.05)
        for _ in range(4):
            before, after = line.slope(t - width), line.slope(t + width)
            if before[0] > before[1] and -after[0] > after[1]:
                start = line.difference(t - width)
                rise = 2.0 * width * (before[0] + before[1]) * math.exp(2.0 * width) * (1 + 1e-12)
                return line.unscaled(lower, max(start[0] + start[1] + rise, lower))
            width *= 10.0
        return Interval(min(line.unscaled(lower, lower).lower, 1.0), 1.0)

    def _climbed(self) -> tuple[_Line, float]:
        """Return a line near the best threshold, and that threshold.

        Newton on the log ratio, guarded by bisection, from the saddle point of the loss; any result gives valid bounds.
        """
        low, high = -math.inf, 0.5 * self.shift  # there f(t) = f(t-d)
        t = high - self.noise.slope(min(self.epsilon / self.shift, 1.0 - 1e-9))[0]
        line = _Line.at(self.noise, self.epsilon, self.shift, t)
        for _ in range(_STEPS):
            excess, fall = line.log_ratio(t)
            low, high = (t, high) if excess > 0.0 else (low, t)
            step = -excess / fall if fall < 0.0 else math.copysign(line.spread, excess)
            if abs(step) < 1e-7 * line.spread or (excess < 0.0 and line.log_size < _DEEP):
                break
            t = t + step
            if not low < t < high:
                t = 0.5 * (low + high) if math.isfinite(low) else high - line.spread
            if abs(t - line.anchor) > 0.5 * line.spread:
                line = _Line.at(self.noise, self.epsilon, self.shift, t)
        return replace(line, reference=t), t


@dataclass(frozen=True, eq=False)
class _Line:
    """The points z_j of (S) with M at each of them, relative to M(theta) exp(theta reference)."""

    noise: LaplaceSum
    epsilon: float
    shift: float
    anchor: float
    reference: float
    theta: float
    spread: float
    period: float
    z: ComplexArray
    relative: ComplexArray
    doubt: FloatArray
    kernel: ComplexArray
    kernel_doubt: FloatArray
    base: float
    cut: tuple[float, float]
    """log |M/M(theta)| at the end of the line, and the exponent of its power-law decay from there."""

    @classmethod
    def at(cls, noise: LaplaceSum, epsilon: float, shift: float, t: float) -> _Line:
        """Return a line whose tilt, period and length suit thresholds near t; every choice gives valid bounds."""
        theta = _tilt(noise, t, epsilon, shift)
        spread = math.sqrt(noise.slope(theta)[1])
        top, doubt = noise.log_mgf(np.array([theta + 0j]))
        base, none = float(top.real[0]), np.zeros(1)
        period = 16.0 * spread + shift + (50.0 + epsilon + max(-base - theta * t, 0.0)) / theta + 40.0 / (1.0 - theta)
        draft = cls(noise, epsilon, shift, t, t, theta, spread, period, top, top, none, top, none, base, (0.0, 0.0))
        fine = min(shift / spread, 1.0)  # G is about so much smaller than F
        for _ in range(40):
            if draft.aliases(t, 1.0) <= 1e-13 * fine:
                break
            draft = replace(draft, period=draft.period * 1.5)
        length = _fallen(noise, theta, 22.0 - math.log(fine))
        most = min(_MAX_POINTS, _MAX_TERMS // noise.squares.size)
        points = min(math.ceil(length * draft.period / (2.0 * math.pi)) + 2, most)
        z = bromwich_line(theta, draft.period, points)
        logs, error = noise.log_mgf(z)
        fall, power = noise.log_decay(theta, float(z.imag[-1]))
        spoiled = np.expm1(np.minimum(error, 50.0))
        cut = fall + float(doubt[0]), power
        kernel, own = _kernel(z, epsilon, shift)
        relative = np.exp(logs - base)
        return replace(draft, z=z, relative=relative, doubt=spoiled, kernel=kernel, kernel_doubt=own, cut=cut)

    @property
    def log_size(self) -> float:
        """Log of M(theta) exp(theta reference), an upper bound on F(reference)."""
        return self.base + self.theta * self.reference

    def _summed(self, t: float, power: int) -> tuple[float, float, float]:
        """Return the trapezoidal sum with the kernel times z^power, a bound on its error, and one on the truncation.

        All three are divided by M(theta) exp(theta reference).
        """
        weight = np.where(np.arange(self.z.size) == 0, 1.0, 2.0) / self.period * _exp(self._lift(t))
        factor = self.relative * self.z**power
        value = float(weight @ (factor * self.kernel * np.exp(1j * (self.z.imag * t))).real)
        size = weight * np.abs(factor)
        spoiled = self.doubt + EPS * (32.0 + self.z.size + 4.0 * np.abs(self.z.imag * t))
        error = float(size @ (np.abs(self.kernel) * spoiled + self.kernel_doubt))
        # |M(z)/z| falls at least like y^-(p+1): the rest of the line is below the integral from its last point
        fall, p = self.cut
        end = float(self.z.imag[-1])
        most = 1.0 + math.exp(self.epsilon - self.theta * self.shift)
        spare = p - (1 + power)
        if spare <= 1e-9 or end <= 0.0:
            return value, error, math.inf
        return value, error, _exp(fall + self._lift(t)) * most * end ** (1 + power) / (math.pi * spare)

    def _lift(self, t: float) -> float:
        return self.theta * (t - self.reference)

    def difference(self, t: float) -> tuple[float, float]:
        """Return G(t) and a bound on its error, both divided by M(theta) exp(theta reference)."""
        value, error, left = self._summed(t, -1)
        return value, error + left + self.aliases(t, 1.0)

    def slope(self, t: float) -> tuple[float, float]:
        """Return G'(t) and a bound on its error, both divided by M(theta) exp(theta reference).

        The aliases use that f is at most 1/2, and f(x) <= F(x + 1) left of 0.
        """
        value, error, left = self._summed(t, 0)
        return value, error + left + self.aliases(t, math.e)

    def log_ratio(self, t: float) -> tuple[float, float]:
        """Return log f(t)/f(t-d) - eps and its derivative, used only for Newton's steps."""
        turn = self.relative * np.exp(1j * (self.z.imag * t))
        sums = [(turn * part)[1:].real.sum() + 0.5 * turn[0].real * part[0].real for part in self._parts()]
        rise, bend, shifted, shifted_slope = (float(x) for x in sums)
        if shifted <= 0.0 or rise <= -shifted:
            return math.copysign(1.0, rise), 0.0
        return math.log1p(rise / shifted), (bend - shifted_slope / shifted * rise) / (rise + shifted)

    def _parts(self) -> tuple[ComplexArray, ComplexArray, ComplexArray, ComplexArray]:
        """Return the kernels of G', G'', e^eps f(t-d) and its derivative."""
        shifted = 1.0 - self.kernel
        return self.kernel, self.kernel * self.z, shifted, shifted * self.z

    def aliases(self, t: float, factor: float) -> float:
        """Bound the sum of |G(t + kP)| exp(-theta k P) over k != 0, divided by M(theta) exp(theta reference).

        To the right |G| <= e^eps; to the left G is at most F (Chernoff, with any larger tilt tau < 1). ``factor``
        multiplies the bound.
        """
        gap = self.theta * self.period
        scale = -self.base - self.theta * self.reference
        right = _exp(self.epsilon - gap + scale) / -math.expm1(-gap)
        room = 0.9 * (1.0 - self.theta)
        tau = self.theta + np.geomspace(min(0.3 / self.spread, room), room, 12)
        logs, error = self.noise.log_mgf(tau.astype(np.complex128))
        far = (tau - self.theta) * self.period
        height = np.maximum(self.epsilon - tau * self.shift, 0.0)
        left = logs.real + error + tau * t - far - np.log(-np.expm1(-far)) + height + scale
        return factor * (right + _exp(float(left.min()))) * (1 + 1e-9)

    def unscaled(self, lower: float, upper: float) -> Interval:
        """Return the bounds multiplied by M(theta) exp(theta reference), rounded outward."""
        log = self.log_size
        spoiled = 8.0 * EPS * (1.0 + abs(self.base) + abs(self.theta * self.reference))
        size = _exp(log)
        return Interval(max(lower * size * (1 - spoiled) - _TINY, 0.0), upper * size * (1 + spoiled) + _TINY)


def _kernel(z: ComplexArray, epsilon: float, shift: float) -> tuple[ComplexArray, FloatArray]:
    """Return 1 - exp(eps - z d) and a bound on its absolute error, which allows for cancellation in eps - theta d."""
    exponent = epsilon - z * shift
    value = -np.expm1(exponent)
    doubt = 16.0 * EPS * (epsilon + np.abs(z) * shift) * np.exp(exponent.real)
    return value, doubt + 8.0 * EPS * np.abs(value)


def _exp(x: float) -> float:
    return math.exp(min(x, 700.0)) if x > -740.0 else 0.0


def _tilt(noise: LaplaceSum, t: float, epsilon: float, shift: float) -> float:
    """Return the tilt at which M(z) exp(zt) (1 + exp(eps - z d))/z is smallest on (0, 1); its logarithm is convex."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        pull = shift / (1.0 + math.exp(min(max(middle * shift - epsilon, -700.0), 700.0)))
        low, high = (middle, high) if noise.slope(middle)[0] + t < 1.0 / middle + pull else (low, middle)
    return min(max(0.5 * (low + high), 1e-300), 1.0 - 1e-13)


def _fallen(noise: LaplaceSum, theta: float, drop: float) -> float:
    """Return a y at which |M(theta + iy)| has fallen by the factor exp(-drop)."""
    high = 1.0 / math.sqrt(noise.slope(theta)[1])
    while noise.log_decay(theta, high)[0] > -drop and high < 1e12:
        high *= 2.0
    low = 0.0
    for _ in range(10):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if noise.log_decay(theta, middle)[0] > -drop else (low, middle)
    return high
