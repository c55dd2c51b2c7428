"""Sums of a random number N of independent terms of one law, bounded from above, for many laws in one pass.

With M the moment generating function of one term X, N a number of independent successes (of chances g_i) plus a
fixed number of terms, and U ~ N(0, s^2) independent of all, formula (B) of `numerics.sums` sums over N as well:

    E w(N) (X_1+...+X_N + U)_+ + aliases = (1/P) sum_j Q(z_j) exp(s^2 z_j^2 / 2) / z_j^2,   Q(z) = E w(N) M(z)^N,   (N)

where aliases are not negative if w is not. E M^N is a product over the trials. Two weights w are used: a constant,
and for the mean of the N terms one that is at least 1/N wherever N >= a:

    w(m) = (1 - u + u^2 - u^3 + (c/a) u^4)/c,    u = m/c - 1,    0 < a <= c.                                       (W)

Indeed 1/(1 + u) = 1 - u + u^2 - u^3 + u^4/(1 + u), and 1 + u >= a/c. For u <= 0 no term of (W) is negative, and for
u > 0 its sum is at least (1 + u^5)/(1 + u) > 0. With c the mean of N where the integral has its mass, w exceeds 1/N by
a fourth power. E w(N) M^N / E M^N is a polynomial in the cumulants of N under the complex measure with weights M^N.
That N < a has, by Chernoff's inequality, a chance that is charged.

All terms of a sum have one law; laws of the batch share the law of N. What one pass does not bound gets inf.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shuffledp.numerics.floats import EPS, FloatArray
from shuffledp.numerics.sums import FALL, ComplexArray

BoolArray = NDArray[np.bool_]

_TILTS = np.geomspace(0.1, 80.0, 40)
_CHERNOFF = np.geomspace(0.003, 3.0, 48)
_DOUBT = 4.0
"""Relative error of atoms and probabilities, in units of EPS; absolute error of the remaining probability of 0."""
_RARE = 21.0
"""A number of terms whose chance is below e^-21 of the value is charged."""
_DEEPER = 8.0
"""How much farther than e^-FALL the transform has fallen where it is charged; there the weight may be larger."""
_EXCESS = 2e-6
"""Largest relative excess of (W) over 1/N, about, with which the weight is used."""
_ALIAS = 1e-7
_WIDTHS = (1.5, 2.5, 4.0, math.inf)
"""Half-widths, in deviations, of the sets of atoms by which a characteristic function is bounded."""
_CHANGES, _MOST_CELLS = (0.25, 0.1, 0.05), 2048
"""By how much a characteristic function may change in half a cell, and the largest number of cells."""
_TERMS = 32
"""Number T of terms of a series in m/b - 1, which is at most `_NEAR`."""
_NEAR = 0.3
_MOST_POINTS = 1024
_TOGETHER = 1 << 21
"""Largest number of atoms times points that one pass holds."""


@dataclass(frozen=True, eq=False)
class TermCount:
    """The number N of terms: ``sure`` terms, and one for each success among independent trials.

    Parameters
    ----------
    sure : int
        0 or 1.
    chances, trials : ndarray, shape (groups,)
        The trials' chances in (0, 1), taken as exact, and how many trials have each, whole numbers as floats.
    """

    sure: int
    chances: FloatArray
    trials: FloatArray

    @cached_property
    def mean(self) -> float:
        """The expected number E N of terms."""
        return self.sure + float(self.trials @ self.chances)

    @cached_property
    def _chernoff(self) -> FloatArray:
        """Log E exp(-t (N - sure)) at the tilts t = `_CHERNOFF`, rounded up."""
        logs = np.log1p(self.chances * np.expm1(-_CHERNOFF)[:, None]) @ self.trials
        return logs * (1.0 - 1e-12)

    def rarely_below(self, depth: FloatArray) -> FloatArray:
        """Return numbers a, shape of ``depth``, such that N < a has at most the chance e^-depth each; 0 tells nothing.

        By Chernoff's inequality: P(N - sure <= k) <= E exp(-t (N - sure)) e^(tk) for every t > 0.
        """
        reach = (-depth[:, None] - 1e-9 - self._chernoff) / _CHERNOFF
        return np.maximum(np.floor(reach.max(axis=1)) + 1.0, 0.0) + self.sure

    def log_growth(self, excess: FloatArray) -> FloatArray:
        """Return about log E (1 + x)^N for real x = ``excess`` > -1, any shape."""
        logs = np.log1p(excess[..., None] * self.chances) @ self.trials
        return logs + np.log1p(excess) if self.sure else logs

    def at(self, m: ComplexArray, off: FloatArray) -> Generated:
        """Return E m^N and the cumulants of N under the measure with weights m^N, by series around the first point.

        Parameters
        ----------
        m : ndarray of complex, shape (laws, points)
            The first point of each law is positive; others farther from it than `_NEAR` of it are not told.
        off : ndarray, shape (laws, points)
            Bound on the absolute error of ``m``.

        Notes
        -----
        With p = g b/(1 - g + g b) at the first point b as it was computed, S_k = sum p^k over all trials, w = m/b - 1
        and q = |w|, the logarithm of E m^N exceeds that at b by sum_k (-1)^(k+1) S_k w^k/k, and

            A_j = sum (p/(1 + p w))^j = sum_(k >= j) (-1)^(k-j) C(k-1, j-1) S_k w^(k-j),    j = 1, ..., 4,

        summed over trials; p (1 + w)/(1 + p w) is a trial's share. S_k errs by k (6 + G) EPS, a power of w by 4 k EPS,
        each relatively; the sums of absolute values are at most S_1 q/(1 - q) and S_1/(1 - q)^j, and what is left out
        at most S_1 q^(T+1)/(1 - q) and S_1 C(T, j-1) q^(T+1-j)/(1 - q)^j. An error of w moves the logarithm by
        S_1/(1 - q) times as much, A_j by j S_1/(1 - q)^(j+1).
        """
        base, groups = m[:, :1].real, self.chances.size
        mixed = (1.0 - self.chances) + self.chances * base
        share = self.chances * base / mixed
        powers = np.multiply.accumulate(np.broadcast_to(share[:, None, :], (share.shape[0], _TERMS, groups)), axis=1)
        sums = powers @ self.trials
        w = m / base - 1.0
        off_w = (off + 4.0 * EPS * np.abs(m)) / base + EPS
        q = np.abs(w)
        series = _series(sums, w)

        first = sums[:, :1]
        at_base = np.log(mixed)
        doubt = (((8.0 + groups) * EPS * (1.0 + np.abs(at_base))) @ self.trials)[:, None]
        doubt = doubt + 2.0 * first * (off_w + EPS * _TERMS * (12.0 + groups) * q + q ** (_TERMS + 1))
        log: ComplexArray = np.asarray((at_base @ self.trials)[:, None] + w * series[:, 0], dtype=np.complex128)
        if self.sure:
            own = np.log(m)
            log = log + own
            doubt = doubt + 2.0 * off / np.abs(m) + 16.0 * EPS * (1.0 + np.abs(own))
        grown = 1.0 + w
        one, two, three, four = (series[:, j] * grown**j for j in (1, 2, 3, 4))
        cumulants = self.sure + one, one - two, one - 3.0 * two + 2.0 * three
        fourth = one - 7.0 * two + 12.0 * three - 6.0 * four
        relative = 16.0 * off_w + EPS * _TERMS * (12.0 + groups) + math.comb(_TERMS, 3) * q ** (_TERMS - 3)
        far = q > _NEAR
        return Generated(
            log,
            np.where(far, np.inf, doubt),
            (*cumulants, fourth),
            np.where(far, np.inf, relative) * (first + self.sure),
        )


@dataclass(frozen=True, eq=False)
class Generated:
    """Log E m^N and the cumulants of N under the weights m^N, with their errors; arrays of shape (laws, points).

    Parameters
    ----------
    log, doubt
        The logarithm, and a bound on its absolute error, inf where nothing is told.
    cumulants
        The first four.
    unsure
        Bound on the absolute errors of the cumulants, in units of 4, 20, 100 and 700.

    Notes
    -----
    With q <= 0.3, A_j (1 + w)^j is at most 1.9, 3.5, 6.5 and 12 S_1. A relative error e of all its parts moves it by as
    many e S_1, one of w by at most 12 times as many. So the cumulants, which are sums of these with the factors (1),
    (1, -1), (1, -3, 2) and (1, -7, 12, -6), move by less than 4, 20, 100 and 700 times ``unsure``.
    """

    log: ComplexArray
    doubt: FloatArray
    cumulants: tuple[ComplexArray, ComplexArray, ComplexArray, ComplexArray]
    unsure: FloatArray

    def weight(self, centre: FloatArray, least: FloatArray) -> tuple[ComplexArray, FloatArray]:
        """Return E w(N) m^N / E m^N for the weight (W), and a bound on its absolute error.

        Parameters
        ----------
        centre, least : ndarray, shape (laws,)
            c and a of (W), 1 <= a <= c.
        """
        c, last = centre[:, None], (centre / least)[:, None]
        first, second, third, fourth = (value / c**k for k, value in enumerate(self.cumulants, start=1))
        d1, d2, d3, d4 = (times * self.unsure / c**k for k, times in ((1, 4.0), (2, 20.0), (3, 100.0), (4, 700.0)))
        d = first - 1.0
        total = 1.0 - d + (second + d**2) - (third + 3.0 * second * d + d**3)
        total = total + last * (fourth + 4.0 * third * d + 3.0 * second**2 + 6.0 * second * d**2 + d**4)
        u, v, t = np.abs(d), np.abs(second), np.abs(third)
        moved = d1 + d2 + 2.0 * u * d1 + d3 + 3.0 * (v * d1 + u * d2 + u**2 * d1)
        moved += last * (d4 + 4.0 * (t * d1 + u * d3) + 6.0 * v * d2 + 12.0 * u * v * d1 + 6.0 * u**2 * d2)
        moved += last * 4.0 * u**3 * d1
        size = 1.0 + u + v + u**2 + t + 3.0 * u * v + u**3
        size += last * (np.abs(fourth) + 4.0 * t * u + 3.0 * v**2 + 6.0 * v * u**2 + u**4)
        # first-order errors count twice: where they are so small, those of higher order are far smaller
        return total / c, np.where(d1 < 1e-6, 2.0 * moved + 64.0 * EPS * size, np.inf) / c


def _series(sums: FloatArray, w: ComplexArray) -> ComplexArray:
    """Return (log E m^N - log E b^N)/w and A_1, ..., A_4 of `TermCount.at`, shape (laws, 5, points)."""
    order, signs = np.arange(_TERMS), np.where(np.arange(_TERMS) % 2, -1.0, 1.0)
    factors = np.zeros((sums.shape[0], 5, _TERMS))
    factors[:, 0] = sums * signs / (order + 1.0)
    binomial = signs
    for j in range(1, 5):  # binomial: (-1)^i C(i + j - 1, j - 1), the factor of S_(i+j) w^i
        factors[:, j, : _TERMS - j + 1] = sums[:, j - 1 :] * binomial[: _TERMS - j + 1]
        binomial = binomial * (order + j) / j
    one = np.ones((w.shape[0], 1, w.shape[1]), dtype=np.complex128)
    every = np.concatenate((one, np.broadcast_to(w[:, None, :], (w.shape[0], _TERMS - 1, w.shape[1]))), axis=1)
    return np.matmul(factors.astype(np.complex128), np.multiply.accumulate(every, axis=1))


def compound_sums_above(
    values: FloatArray, weights: FloatArray, count: TermCount, alone: FloatArray | None, smoothing: float
) -> FloatArray:
    """Return upper bounds, one per law of a term, on E (X_1+...+X_N)_+ / E N, or on the mean of the N terms.

    Parameters
    ----------
    values, weights : ndarray, shape (laws, atoms)
        Atoms of a term and their probabilities, each with a relative error of at most 4 EPS; the remaining probability
        of 0 has an absolute error of at most 4 EPS. Their sum may exceed 1, where the probabilities were rounded up.
    count : TermCount
        The law of N.
    alone : ndarray, shape (laws,), optional
        If given, E [(X_1+...+X_N)_+ / N] is bounded, and these bound E (X_1+...+X_m)_+ / m for every m >= 1.
    smoothing : float
        Standard deviation of U times the tilt; the bound exceeds the truth by about half its square, relatively.

    Returns
    -------
    ndarray, shape (laws,)
        inf where the bound is not computed, or is not near the truth.
    """
    bounds, step = np.full(values.shape[0], np.inf), max(1, _TOGETHER // (values.shape[1] * 64))
    for start in range(0, bounds.size, step):
        part = slice(start, start + step)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            mine = None if alone is None else alone[part]
            bounds[part] = _bounded(Lines.of(values[part], weights[part], count, smoothing), count, mine)
    return bounds


@dataclass(frozen=True, eq=False)
class Lines:
    """For each law the tilted line of (N), and what bounds the transform on it. Arrays of shape (laws,) unless said.

    Parameters
    ----------
    values, tilted : ndarray, shape (laws, atoms)
        Atoms, and their probabilities times e^(theta v).
    rest, whole : ndarray
        The probability of 0, and M(theta).
    theta, s, period : ndarray
        Tilt, deviation of U, and P.
    centre, spread : ndarray
        Mean of N and deviation of the sum, under the tilted law.
    expected : ndarray
        About the logarithm of E (X_1+...+X_N)_+.
    """

    values: FloatArray
    tilted: FloatArray
    rest: FloatArray
    whole: FloatArray
    theta: FloatArray
    s: FloatArray
    period: FloatArray
    centre: FloatArray
    spread: FloatArray
    expected: FloatArray

    @classmethod
    def of(cls, values: FloatArray, weights: FloatArray, count: TermCount, smoothing: float) -> Lines:
        """Return lines that suit the laws; every choice gives upper bounds."""
        flat = (weights * values).sum(axis=1)
        sigma = np.sqrt(count.mean * np.maximum((weights * values**2).sum(axis=1) - flat**2, 0.0))
        tilts = _TILTS / sigma[:, None]
        grown = np.matmul(np.expm1(tilts[:, :, None] * values[:, None, :]), weights[:, :, None])[..., 0]
        logs = count.log_growth(np.maximum(grown, EPS - 1.0))
        logs = np.where(np.isfinite(logs), logs, 1e300)
        goal = logs - 2.0 * np.log(tilts)
        rows, best = np.arange(sigma.size), np.clip(goal.argmin(axis=1), 1, _TILTS.size - 2)
        left, here, right = (goal[rows, best + k] for k in (-1, 0, 1))
        bend, step = left - 2.0 * here + right, math.log(_TILTS[1] / _TILTS[0])
        moved = np.where(bend > 0.0, np.clip(0.5 * (left - right) / bend, -1.0, 1.0), 0.0)
        theta = tilts[rows, best] * np.exp(step * moved)

        tilted = weights * np.exp(theta[:, None] * values)
        rest = np.maximum(1.0 - weights.sum(axis=1), 0.0)
        whole = tilted.sum(axis=1) + rest
        mean = (tilted * values).sum(axis=1) / whole
        variance = (tilted * values**2).sum(axis=1) / whole - mean**2
        share = count.chances * whole[:, None] / (1.0 + count.chances * (whole[:, None] - 1.0))
        centre = count.sure + share @ count.trials
        spread = np.sqrt(centre * variance + ((share * (1.0 - share)) @ count.trials) * mean**2)
        s = smoothing / theta * np.clip(spread * theta, 0.1, 1.0)
        period = _periods(theta, s, spread, tilts, logs, here)
        size = count.log_growth(whole - 1.0)
        expected = size - 2.0 * np.log(theta) - np.log(spread) - 0.5 * math.log(2.0 * math.pi)
        return cls(values, tilted, rest, whole, theta, s, period, centre, spread, expected)

    @property
    def step(self) -> FloatArray:
        """Distance of neighbouring points."""
        return 2.0 * math.pi / self.period

    def transforms(self, first: FloatArray, step: FloatArray, points: int) -> tuple[ComplexArray, FloatArray]:
        """Return M(theta + i y), y = first + j step, and bounds on the absolute errors; shape (laws, points).

        Notes
        -----
        Exponentials of two digits of j are multiplied. With q the tilted probabilities, angles err by at most 8 EPS
        |yv|, exponentials and their products by 24 EPS, sums of A terms by 2 A EPS, each times sum q; atoms and
        probabilities move a term by `_DOUBT` (1 + |zv|) q EPS.
        """
        width = math.ceil(math.sqrt(points))
        turns = math.ceil(points / width)
        v = self.values[:, :, None]
        small = np.exp(1j * (v * (step[:, None, None] * np.arange(width))))
        large = first[:, None, None] + (step * width)[:, None, None] * np.arange(turns)
        giant = self.tilted[:, :, None] * np.exp(1j * (v * large))
        table = np.matmul(giant.transpose(0, 2, 1), small).reshape(first.size, -1)[:, :points]
        y = first[:, None] + step[:, None] * np.arange(points)
        atoms, whole = self.values.shape[1], self.tilted.sum(axis=1)
        turned = np.hypot(self.theta[:, None], y) * (self.tilted * np.abs(self.values)).sum(axis=1)[:, None]
        off = (whole * (64.0 + 2.0 * atoms + 2.0 * _DOUBT) + atoms + _DOUBT + 8.0)[:, None] + turned * (16.0 + _DOUBT)
        return table + self.rest[:, None], EPS * off

    def fallen(self, floor: FloatArray, last: FloatArray) -> FloatArray:
        """Return y from which on, up to y = ``last``, |M(theta + iy)| is certainly at most ``floor`` M(theta).

        inf where no such y is found. For atoms v of any set B, with q their tilted probabilities, R the length of an
        interval that holds B, and 2 A = sum_{v, w in B} q_v q_w (v - w)^2,

            1 - |chi(y)|^2 >= sum_{v, w in B} q_v q_w (1 - cos y(v - w)) >= 2 A (1 - cos yR)/R^2,    0 <= yR <= pi,

        because (1 - cos x)/x^2 decreases there, and the right side increases with y. Beyond pi/R, chi changes by at
        most E|X - EX| per unit of y: its value in the middle of a cell bounds it in the whole cell.
        """
        q, v = self.tilted / self.whole[:, None], self.values
        mean = (q * v).sum(axis=1)
        apart, largest = np.abs(v - mean[:, None]), np.abs(v).max(axis=1)
        deviation = np.sqrt((q * apart**2).sum(axis=1))
        room = 1.0 + self.theta * largest + 1.0 / self.whole
        unsure = EPS * (_DOUBT + v.shape[1] + 8.0) * room
        first, far = np.full(mean.size, np.inf), last
        for width in _WIDTHS:
            inside = np.where(apart <= width * deviation[:, None], q, 0.0)
            held = np.where(inside > 0.0, v - mean[:, None], 0.0)
            reach = (held.max(axis=1) - held.min(axis=1)) * (1.0 + 1e-9)
            squares = inside.sum(axis=1) * (inside * held**2).sum(axis=1) - (inside * held).sum(axis=1) ** 2
            squares = squares * (1.0 - 1e-9) - 8.0 * unsure * largest**2
            sine = reach * np.sqrt((1.0 - floor**2) / (4.0 * squares))
            begins = np.where((squares > 0.0) & (sine < 1.0), 2.0 * np.arcsin(sine) / reach * (1.0 + 1e-9), np.inf)
            better = begins < first
            first, far = np.where(better, begins, first), np.where(better, math.pi / reach * (1.0 - 1e-9), far)
        first = np.where(unsure * (1.0 + last * largest) <= 1e-10, first, np.inf)
        slope = (q * apart).sum(axis=1) + self.rest / self.whole * np.abs(mean)
        return np.where(self._low_between(far, last, floor, slope), first, np.inf)

    def _low_between(self, first: FloatArray, last: FloatArray, floor: FloatArray, slope: FloatArray) -> BoolArray:
        """Whether `fallen` holds in all cells from ``first`` to ``last``."""
        length = np.maximum(last - first, 0.0)
        holds = length == 0.0
        for change in _CHANGES:
            left = np.flatnonzero(~holds & (length * slope < 2.0 * change * _MOST_CELLS))
            if left.size == 0:
                break
            cells = math.ceil(float((length * slope)[left].max()) / (2.0 * change))
            some, step = self.chosen(left), length[left] / cells
            size = np.abs(some.transforms(first[left] + 0.5 * step, step, cells)[0]) / some.whole[:, None]
            # 1e-9 is far above what `unsure` and rounding can do
            most = size.max(axis=1) + 0.5 * step * slope[left] * (1.0 + 1e-9) + 1e-9
            holds[left] = most <= floor[left]
        return holds

    def chosen(self, rows: NDArray[np.int64]) -> Lines:
        """Return the lines of some laws."""
        return Lines(*(getattr(self, part.name)[rows] for part in fields(self)))


def _periods(
    theta: FloatArray, s: FloatArray, spread: FloatArray, tilts: FloatArray, logs: FloatArray, size: FloatArray
) -> FloatArray:
    """Return periods with negligible aliases, which by (y)_+ <= exp(t y)/(e t) are bounded at every tilt t."""
    smooth = logs + 0.5 * (s[:, None] * tilts) ** 2 - 1.0 - np.log(tilts)
    apart = np.abs(tilts - theta[:, None])
    smooth = np.where(apart > 1e-9 * theta[:, None], smooth, np.inf)
    below = tilts < theta[:, None]
    goal = math.log(_ALIAS) + size - 2.0 * np.log(spread) + 2.0 * np.log(np.maximum(spread, 1.0 / theta) / spread)
    period, most = np.maximum(12.0 * spread, 30.0 / theta), 1e4 * np.maximum(spread, 1.0 / theta)
    for _ in range(16):
        gap = apart * period[:, None]
        alias = smooth - gap - np.log(-np.expm1(-gap))
        left = np.where(below, alias, np.inf).min(axis=1)
        right = np.where(below, np.inf, alias).min(axis=1)
        long = (np.logaddexp(left, right) > goal) & (period < most)
        if not long.any():
            break
        period = np.where(long, 1.5 * period, period)
    return period


def _bounded(lines: Lines, count: TermCount, alone: FloatArray | None) -> FloatArray:
    """Evaluate (N) with all its errors; see `compound_sums_above`."""
    theta, s, period, step = lines.theta, lines.s, lines.period, lines.step
    above = np.full(theta.size, np.inf)
    cut = np.sqrt(2.0 * FALL) / s * (1.0 + 1e-9)  # beyond, exp(-s^2 y^2/2) is below e^-FALL
    floor = 1.0 - (FALL + _DEEPER) / lines.centre
    begins = lines.fallen(np.maximum(floor, 0.0), cut + step)
    needed = np.floor(begins / step) + 2.0
    fit = (floor > 0.0) & (needed <= _MOST_POINTS) & (lines.expected > -650.0) & (lines.expected < 650.0)
    if not fit.any():
        return above
    points = int(needed[fit].max())
    some = np.arange(points) < np.where(fit, needed, 1.0)[:, None]
    m, off = lines.transforms(np.zeros(theta.size), step, points)
    # the last column is the transform's bound at all points left out
    low = floor * lines.whole * (1.0 + 1e-9)
    m, off = np.column_stack((m, low.astype(np.complex128))), np.column_stack((off, np.zeros(theta.size)))
    generated = count.at(m, off)
    z = theta[:, None] + 1j * (step[:, None] * np.arange(points))
    if alone is None:
        weight, doubt_weight = (
            np.full(m.shape, (1.0 + (8.0 + count.chances.size) * EPS) / count.mean),
            np.zeros(m.shape),
        )
        rare = np.zeros(theta.size)
    else:
        depth = np.maximum(_RARE + np.log(alone) - lines.expected + np.log(lines.centre), 1.0)
        least = np.minimum(count.rarely_below(depth), lines.centre)
        weight, doubt_weight = generated.weight(lines.centre, least)
        rare = np.exp(np.log(alone) - depth) * (1.0 + 1e-9)  # exp(-depth) by itself may underflow
        tail = np.abs(generated.cumulants[3][:, 0] + 3.0 * generated.cumulants[1][:, 0] ** 2) / lines.centre**4
        fit &= tail * (lines.centre / least - 1.0) <= _EXCESS
    exponent = generated.log[:, :-1] + 0.5 * (s[:, None] * z) ** 2
    scale = exponent[:, :1].real
    error = generated.doubt[:, :-1] + 8.0 * EPS * (
        np.abs(exponent) + np.abs(scale) + (s[:, None] * np.abs(z)) ** 2 + 4.0
    )
    error, doubt_here = (np.where(some, part, 0.0) for part in (error, doubt_weight[:, :-1]))
    terms = np.where(some, np.exp(exponent - scale) / z**2, 0.0) / period[:, None]
    terms[:, 1:] *= 2.0
    size = np.abs(terms)
    value = (terms * weight[:, :-1]).real.sum(axis=1)
    slack = (size * (np.abs(weight[:, :-1]) * np.expm1(error) + doubt_here * np.exp(error))).sum(axis=1)
    slack += 1e-13 * (size * np.abs(weight[:, :-1])).sum(axis=1)
    fit &= (error[:, 0] < 1e-3) & (generated.doubt[:, -1] < 1e-3)
    fit &= (np.abs(scale[:, 0]) < 700.0) & (theta > 1e-100) & (theta < 1e100)  # else exp(scale) or z^2 may underflow
    # points left out: up to the cut |Q| is at most its value at `low`, and beyond, at most the one at theta
    most, most_low = (np.abs(weight[:, k]) + doubt_weight[:, k] for k in (0, -1))
    beyond = np.exp(-FALL) * (1.0 / (math.pi * cut) + 2.0 / (period * cut**2)) * most
    fallen = np.exp((generated.log[:, -1] - generated.log[:, 0]).real) * most_low
    beyond += fallen * 2.0 / period * (1.0 / needed**2 + 1.0 / needed) / step**2
    total = (value + slack + 1.01 * beyond) * np.exp(scale[:, 0]) * (1.0 + 1e-12) + rare + 1e-300
    return np.where(fit & np.isfinite(total) & (slack <= _ALIAS * value), total, above)
