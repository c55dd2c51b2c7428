"""Sums of independent discrete variables, through their moment generating function on a tilted line.

Everything here evaluates a Bromwich integral by the trapezoidal rule. By Poisson summation the rule returns the
wanted value plus *non-negative* aliases, so it errs upwards by itself; aliases, the truncated part of the line
and every rounding error are bounded and counted in the returned enclosure.

    P(C <= x)  + aliases = (1/P) sum_j exp(z_j x) M(-z_j) / (1 - exp(-z_j)),   z_j = theta + 2 pi i j / P       (L)
    E (S+U)_+  + aliases = (1/P) sum_j M(z_j) exp(s^2 z_j^2 / 2) / z_j^2                                        (B)

In (B), U ~ N(0, s^2) is independent of S: by Jensen E(S)_+ <= E(S+U)_+, and since
E(x+U)_+ - x_+ <= s^2 * (density of U at -x), also E(S)_+ >= E(S+U)_+ - s^2 * (density of S+U at 0).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import NotConverged
from shuffledp.numerics.floats import EPS, Enclosure, FloatArray, Interval
from shuffledp.numerics.functions import expm1_minus, log1p_minus_small

# Moment generating functions of laws of many atoms on many points of one line, by matrix products.
#
# On the line z_j = theta + i j step the exponentials of an atom v are e^(theta v) times powers of one rotation. With
# j = q B + r, b = exp(i r step v) - 1, g = exp(i q B step v) - 1, and b', g' the same less their linear terms,
#
#     exp(i j step v) - 1 - i j step v = b' + g' + b g,                                                        (P)
#
# so that B rows of b and as many of g serve all points, and the rest is a matrix product. Every term of (P) is of
# second order in j step v: what is left of a sum of many copies once its mean is taken out keeps its digits.

ComplexArray = NDArray[np.complex128]
_ONE_THREAD, _ONE_THREAD_VECTOR = 1 << 18, 1 << 13
"""Number of multiplications of one real product of two matrices, and of a matrix and a vector; more start threads."""
_RADII = 24
"""Number of radii |z| at which a bound that increases with |z| is evaluated.

Other points use the next larger radius.
"""


def characteristic(values: FloatArray, weights: FloatArray, y: FloatArray, first: float = 0.0) -> ComplexArray:
    """Return sum_k weights_k exp(i (first + y_j) values_k) for y_j = j y_1, shape of y.

    Parameters
    ----------
    values, weights : ndarray, shape (atoms,)
    y : ndarray, shape (points,)
        Evenly spaced from 0.
    first : float
        Added to each point of ``y``.
    """
    width = math.ceil(math.sqrt(y.size))
    step = y[1] if y.size > 1 else 0.0
    baby = np.exp(1j * np.outer(values, step * np.arange(width)))
    turns = np.outer(first + step * width * np.arange(math.ceil(y.size / width)), values)
    giant = np.asarray(weights * np.exp(1j * turns), dtype=np.complex128)
    return _product(giant, baby).ravel()[: y.size]


def _product(left: ComplexArray, right: ComplexArray) -> ComplexArray:
    """Return a complex matrix product, computed by real products of a few rows.

    Larger products start threads, which wait longer than they compute.
    """
    real, imaginary = np.ascontiguousarray(right.real), np.ascontiguousarray(right.imag)
    rows, blocks = max(1, _ONE_THREAD // right.size), list[ComplexArray]()
    for start in range(0, left.shape[0], rows):
        part = left[start : start + rows]
        a, b = np.ascontiguousarray(part.real), np.ascontiguousarray(part.imag)
        blocks.append((a @ real - b @ imaginary) + 1j * (a @ imaginary + b @ real))
    return np.concatenate(blocks)


def weighted(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the matrix product ``rows @ weights``, by products of a few rows, for the reason that `_product` has.

    Parameters
    ----------
    rows : ndarray, shape (rows, atoms)
    weights : ndarray, shape (atoms,)
    """
    matrix = np.ascontiguousarray(rows)
    some = max(1, _ONE_THREAD_VECTOR // max(weights.size, 1))
    return np.concatenate([matrix[start : start + some] @ weights for start in range(0, max(rows.shape[0], 1), some)])


def weighted_complex(rows: ComplexArray, weights: FloatArray) -> ComplexArray:
    """Return ``rows @ weights`` for complex rows, as `weighted` does."""
    return np.asarray(weighted(rows.real, weights) + 1j * weighted(rows.imag, weights), dtype=np.complex128)


def second_order(
    values: FloatArray, probabilities: FloatArray, z: ComplexArray, places: NDArray[np.int64], doubt: float
) -> tuple[ComplexArray, FloatArray]:
    """Return sum_a p_a (exp(z v_a) - 1 - z v_a), shape of z, and a bound on its absolute error in units of EPS.

    Parameters
    ----------
    values, probabilities : ndarray, shape (atoms,)
        v and p, each with a relative error of at most ``doubt`` EPS.
    z : ndarray of complex, shape (points,)
        theta + i step places, theta >= 0, each with a relative error of at most 2 EPS; at least two points.
    places : ndarray of int, shape (points,)
        Ascending, from 0.
    doubt : float
        At least 4.

    Notes
    -----
    With w = p e^(theta v) and s = |z v|, what (P), sum p (e^(theta v) - 1 - theta v) and i y sum p v (e^(theta v) - 1)
    add up is at most 3/2 (w + p) min(s^2, 8 + 2 s), of which a sum of K terms loses K EPS; exponentials less their
    linear terms are good to 32 EPS relative or 9 EPS absolute beyond 1/4, which 200 EPS s^2 covers. Moving p and v by
    their doubt moves exp(zv) - 1 - zv by at most 3/2 doubt (w + p) min(s^2, 1 + 2 s) EPS.
    """
    theta, (small, large), (row, column) = float(z.real[0]), *_laid_out(z, places)
    tilted = probabilities * np.exp(theta * values)
    baby, baby_rest = _rotated(values[:, None] * small)
    giant, giant_rest = _rotated(large[:, None] * values)
    table = _product(tilted * giant, baby) + weighted_complex(giant_rest, tilted)[:, None]
    table += weighted_complex(baby_rest.T, tilted)
    real = (theta * values).astype(np.complex128)
    flat = float((probabilities * expm1_minus(real, np.exp(real)).real).sum())
    slope = float((probabilities * values * np.expm1(theta * values)).sum())
    value = table[row, column] + flat + 1j * z.imag * slope

    size = np.abs(z)
    radii = np.geomspace(float(size.min()), float(size.max()) * (1.0 + 1e-12), _RADII)
    reach = radii[:, None] * np.abs(values)
    most = weighted(np.minimum(reach * reach, 8.0 + 2.0 * reach), tilted + probabilities)
    bound = most[np.minimum(np.searchsorted(radii, size), _RADII - 1)]
    return value, bound * (2.0 * values.size + 200.0 + 2.0 * doubt)


def _laid_out(
    z: ComplexArray, places: NDArray[np.int64]
) -> tuple[tuple[FloatArray, FloatArray], tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return the steps r step and q B step of (P) that are needed, and of each point the positions of its q and r."""
    step, width = float(z.imag[-1]) / max(int(places[-1]), 1), math.ceil(math.sqrt(places.size))
    turns, row = np.unique(places // width, return_inverse=True)
    small, large = step * np.arange(width, dtype=np.float64), step * width * turns.astype(np.float64)
    return (small, large), (row, places % width)


def first_order(
    values: FloatArray, probabilities: FloatArray, z: ComplexArray, places: NDArray[np.int64], doubt: float
) -> tuple[ComplexArray, FloatArray]:
    """Return sum_a p_a exp(z v_a), shape of z, and a bound on its absolute error in units of EPS.

    Parameters are those of `second_order`. All terms are positive at the first point, so that nothing cancels there
    however small the sum is.

    Notes
    -----
    With w = p e^(theta v): the angles are good to 8 EPS |z v|, exponentials and products to 16 EPS, real sums of 2 K
    products to 2 K EPS, each times the sum of w; moving p and v by their doubt moves a term by doubt (1 + |z v|) w EPS.
    """
    (small, large), (row, column) = _laid_out(z, places)
    tilted = probabilities * np.exp(float(z.real[0]) * values)
    giant = np.asarray(tilted * np.exp(1j * large[:, None] * values), dtype=np.complex128)
    baby = np.asarray(np.exp(1j * values[:, None] * small), dtype=np.complex128)
    table = _product(giant, baby)
    turned = np.abs(z) * float(tilted @ np.abs(values))
    return table[row, column], float(tilted.sum()) * (2.0 * values.size + 64.0 + 2.0 * doubt) + turned * (16.0 + doubt)


def _rotated(angle: FloatArray) -> tuple[ComplexArray, ComplexArray]:
    """Return exp(i angle) - 1 and exp(i angle) - 1 - i angle, shape of angle."""
    arg = np.asarray(1j * angle, dtype=np.complex128)
    rest = expm1_minus(arg, np.exp(arg))
    return rest + arg, rest


# ------------------------------------------------------------------ tilted
# Sums of independent discrete variables under a tilted law: how wide they are, and where their transform vanishes.
#
# On the line theta + iy the moment generating function of a sum of many variables is soon negligible, and stays so: of
# thousands of points some dozens need to be computed. Which ones is told by bounds on |E exp(iyS)|, E being tilted.

FALL = 46.0
"""Points where the transform is below e^(1 - FALL) of its value at y = 0 are bounded instead of evaluated."""
_CELLS = 2.0


@dataclass(frozen=True, eq=False)
class TiltedSum:
    """The tilted sum S: ``counts[g]`` independent copies of a variable with atoms ``values[g]`` and otherwise 0.

    Parameters
    ----------
    counts : ndarray, shape (groups,)
    values, weights : ndarray, shape (groups, atoms)
        Atoms and their tilted probabilities.
    rest : ndarray, shape (groups,)
        Tilted probability of 0.
    unsure : float
        Bound on the relative error of values and weights, and on the absolute error of ``rest``.
    """

    counts: FloatArray
    values: FloatArray
    weights: FloatArray
    rest: FloatArray
    unsure: float

    @cached_property
    def means(self) -> FloatArray:
        """Mean of one copy of each group's variable, shape (groups,)."""
        return np.asarray((self.weights * self.values).sum(axis=1), dtype=np.float64)

    @cached_property
    def variance(self) -> float:
        """Variance of S; inf if it overflows."""
        if not np.abs(self.values).max(initial=0.0) < 1e150:
            return math.inf
        apart = self.values - self.means[:, None]
        return float(((self.weights * apart**2).sum(axis=1) + self.rest * self.means**2) @ self.counts)

    def powers(self, y: FloatArray, groups: slice) -> tuple[NDArray[np.complex128], FloatArray]:
        """Return E exp(iyS_g) for the sums S_g of chosen groups, shape (y, groups), and bounds on the absolute errors.

        The bound is inf where the rounding error is not bounded.
        """
        values, counts = self.values[groups], self.counts[groups]
        chi = (self.weights[groups] * np.exp(1j * (y[:, None, None] * values))).sum(axis=2) + self.rest[groups]
        phase = y[:, None] * np.abs(values).max(axis=1)
        off = 2.0 * self.unsure * (1.0 + phase) + EPS * (4.0 * phase + 8.0)
        size = np.abs(chi)
        with np.errstate(divide="ignore", over="ignore"):
            high, low = np.exp(counts * np.log(size + off)), np.exp(counts * np.log(size))
        power = low * np.exp(1j * (counts * np.angle(chi)))
        return power, high - low + high * (32.0 * EPS * (counts + np.abs(np.log(size + off)) * counts + 1.0))

    def alive(self, step: float, points: int, copies: float, s: float) -> NDArray[np.int64]:
        """Return the j for which |E exp(iyS)|^copies exp(-s^2 y^2/2), y = j step, may be above e^(1 - FALL).

        Parameters
        ----------
        step : float
            Positive.
        points : int
            j = 0, ..., points - 1.
        copies : float
            At least 1.
        s : float
            Not negative.

        Returns
        -------
        ndarray
            Ascending. At all other points the value certainly is at most e^(1 - FALL).

        Notes
        -----
        For X of range R and variance V, |E exp(iyX)|^2 = E cos(y(X - X')) <= 1 - 2V (1 - cos yR)/R^2 up to
        yR = pi, because (1 - cos x)/x^2 decreases until there; this bound falls with y. Farther out, |E exp(iyX)|
        changes by at most E|X - EX| per unit of y: its value in the middle of a cell bounds it in the whole cell.
        """
        size = np.abs(self.values).max(axis=1)
        if self.unsure * (1.0 + step * points * float(size.max())) > 1e-10:
            return np.arange(points)
        reach = float(np.max(np.maximum(self.values.max(axis=1), 0.0) - np.minimum(self.values.min(axis=1), 0.0)))
        reach *= 1 + 1e-9
        variance = max(self.variance * (1 - 1e-9) - 8.0 * self.unsure * float(size**2 @ self.counts), 0.0)

        def fallen(j: int) -> bool:
            y = j * step
            return copies * variance * 2.0 * (math.sin(0.5 * reach * y) / reach) ** 2 + 0.5 * (s * y) ** 2 >= FALL

        far = min(math.floor(math.pi / (reach * step)), points - 1)
        first = far + 1
        if fallen(far):
            low, first = 0, far
            while first - low > 1:
                middle = (low + first) // 2
                low, first = (low, middle) if fallen(middle) else (middle, first)
        return np.concatenate((np.arange(first), self._alive_far(far + 1, step, points, copies, s)))

    def _alive_far(self, first: int, step: float, points: int, copies: float, s: float) -> NDArray[np.int64]:
        """Return `alive` from ``first`` on, decided cell by cell; all points if nearly as many cells were needed."""
        if first >= points:
            return np.arange(0)
        apart = np.abs(self.values - self.means[:, None])
        slope = (self.weights * apart).sum(axis=1) + self.rest * np.abs(self.means)
        moving = float((1.0 - np.maximum(self.weights.max(axis=1), self.rest)) @ self.counts)
        wanted = _CELLS * step * float(slope @ self.counts)
        if not 2.0 * wanted < moving:
            return np.arange(first, points)
        each = min(math.floor(moving / wanted), points - first)
        start = np.arange(first, points, each)
        middle, apart = step * (first + 0.5 * (each - 1)), step * (start.astype(np.float64) - first)
        laws = zip(self.values, self.weights, strict=True)
        size = np.abs(np.stack([characteristic(*law, apart, middle) for law in laws], axis=1) + self.rest)
        # 1e-9 is far above what `unsure` and rounding can do
        bound = np.minimum(size + 0.5 * step * each * slope + 1e-9, 1.0)
        fall = -copies * (np.log(bound) @ self.counts) + 0.5 * (s * step * start) ** 2
        indices = (start[fall < FALL][:, None] + np.arange(each)).ravel()
        return indices[indices < points]


_MAX_POINTS = 1 << 17
_TILTS = np.geomspace(0.02, 400.0, 72)
_TOGETHER = 2.0
_MANY = 64
"""Number of points of a line, and of atoms times four, from which matrix products are faster."""
_SURE = 1e-7
"""Error of a value relative to the largest one that is negligible in enclosures with a relative width of 1e-4."""
_NEAR = 0.3
"""Distance of the mgf from 1 up to which its logarithm is a series of its second-order part."""


@dataclass(frozen=True, eq=False)
class IndependentSum:
    """A sum S of independent variables: ``counts[g]`` copies of a variable with atoms ``values[g]`` and otherwise 0.

    Parameters
    ----------
    counts : ndarray, shape (groups,)
    values, probabilities : ndarray, shape (groups, atoms)
        Each with a relative error of at most ``doubt`` EPS. The probabilities of a group sum to at most 1; the
        remaining probability of 0 may nearly cancel and has an absolute error of at most ``doubt`` EPS.
    means : ndarray, shape (groups,)
        Mean of one copy, with a relative error of a few EPS (given, because summing atoms could cancel).
    doubt : float
        Relative error of values and probabilities, in units of EPS, at least 4.
    """

    counts: FloatArray
    values: FloatArray
    probabilities: FloatArray
    means: FloatArray
    doubt: float = 4.0

    @property
    def mean(self) -> float:
        """The mean E S of the sum."""
        return math.fsum((self.counts * self.means).tolist())

    def log_mgf_centered(self, z: ComplexArray) -> tuple[ComplexArray, FloatArray]:
        """Return log E exp(z (S - E S)), shape of z, and a bound on its absolute error.

        Written as sum_g n_g [ (log(1+w) - w) + sum_j q_j (exp(z l_j) - 1 - z l_j) ], w = E exp(z L) - 1, so that
        nothing cancels when |z| is small and n large.
        """
        z = np.atleast_1d(z)
        flat = z.ravel()
        total = np.zeros(flat.size, dtype=np.complex128)
        error = np.zeros(flat.size)
        step = max(1, 2_000_000 // max(1, self.values.size))
        for start in range(0, flat.size, step):
            part = slice(start, start + step)
            total[part], error[part] = self._log_mgf_block(flat[part])
        return total.reshape(z.shape), error.reshape(z.shape)

    def _log_mgf_block(self, z: ComplexArray) -> tuple[ComplexArray, FloatArray]:
        arg = z[:, None, None] * self.values[None]
        size = np.abs(arg)
        grown = np.exp(arg)
        terms = self.probabilities * expm1_minus(arg, grown)
        # away from 1 the mgf is summed as it stands, so that a tiny value keeps its digits
        parts = self.probabilities * grown
        rest = np.maximum(1.0 - self.probabilities.sum(axis=1), 0.0)
        mgf = rest + parts.sum(axis=2)
        off = self.doubt
        doubt_mgf = (np.abs(parts) * (4.0 + off + 0.5 * off * size)).sum(axis=2) + off
        # relative where the series is used; absolute beyond, where exp(z) - 1 - z has zeros
        far = (np.abs(parts) + self.probabilities * (1.0 + size)) * (4.0 + off + 0.5 * off * size)
        doubt_second = np.where(size < 0.25, np.abs(terms) * (30.0 + 3.0 * off), far).sum(axis=2)
        return self._logs((terms.sum(axis=2), doubt_second), z[:, None] * self.means, (mgf, doubt_mgf))

    def log_mgf_on_line(self, z: ComplexArray, places: NDArray[np.int64]) -> tuple[ComplexArray, FloatArray]:
        """Return `log_mgf_centered` for z = theta + i step places, by matrix products where points and atoms are many.

        Parameters
        ----------
        z : ndarray of complex, shape (points,)
            On a line of positive real part.
        places : ndarray of int, shape (points,)
            Ascending, from 0; the imaginary parts are these multiples of one step.
        """
        if min(places.size, 4 * self.values.shape[1]) < _MANY:
            return self.log_mgf_centered(z)
        laws = list(zip(self.values, self.probabilities, strict=True))
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is asked again below
            by_law = [second_order(*law, z, places, self.doubt) for law in laws]
        second, doubt_second = (np.stack(part, axis=1) for part in zip(*by_law, strict=True))
        shift = z[:, None] * self.means
        moved = second + shift
        doubt_mgf = doubt_second + 4.0 * (1.0 + np.abs(moved) + np.abs(shift))
        total, error = self._logs((second, doubt_second), shift, (1.0 + moved, doubt_mgf))
        if _sure(total, error):
            return total, error
        # 1 + moved has lost the digits of a small mgf: sum it as it stands, where `second` drops out but for rounding
        with np.errstate(over="ignore", invalid="ignore"):
            by_law = [first_order(*law, z, places, self.doubt) for law in laws]
        mgf, doubt_mgf = (np.stack(part, axis=1) for part in zip(*by_law, strict=True))
        mgf += np.maximum(1.0 - self.probabilities.sum(axis=1), 0.0)
        near = np.abs(moved) < _NEAR
        doubt_second = np.where(near, doubt_second, 4.0 * (np.abs(second) + np.abs(shift)))
        total, error = self._logs((second, doubt_second), shift, (mgf, doubt_mgf + self.doubt))
        # where the doubt of the remaining probability is most of it, a sum point by point errs as much
        alike = not near.any() and bool((doubt_mgf <= self.doubt).all() and np.isfinite(error).all())
        return (total, error) if alike or _sure(total, error) else self.log_mgf_centered(z)

    def _logs(
        self, second: tuple[ComplexArray, FloatArray], shift: ComplexArray, mgf: tuple[ComplexArray, FloatArray]
    ) -> tuple[ComplexArray, FloatArray]:
        """Return the sum of log(mgf) - shift over all copies, and a bound on its absolute error.

        ``second`` (the second-order part of the mgf) and ``mgf`` are given with their errors in units of EPS.
        """
        (terms, doubt_terms), (size, doubt_size) = second, mgf
        w = terms + shift
        size = np.where(size == 0.0, EPS * doubt_size, size)  # a zero has no logarithm; its error has
        near = np.abs(w) < _NEAR
        log_rest = np.where(near, log1p_minus_small(np.where(near, w, 0.0)), np.log(np.where(near, 1.0, size)) - w)
        total = weighted_complex(log_rest + terms, self.counts)
        doubt_log = np.where(near, 2.0 * (doubt_terms + 4.0 * np.abs(shift)) * np.abs(w), doubt_size / np.abs(size))
        error = EPS * (34.0 * np.abs(log_rest) + 4.0 * np.abs(w) + doubt_log + doubt_terms)
        return total, 2.0 * weighted(error, self.counts)

    def log_mgf_above(self, theta: FloatArray) -> FloatArray:
        """Return upper bounds on every group's part of log E exp(theta S) for real theta >= 0, shape (thetas, groups).

        Their sum, too, is an upper bound. inf or NaN where it overflows. Sharp where the mgf is well above EPS, as it
        is for a variable that may take values of 0 or more.
        """
        arg = theta[:, None, None] * self.values
        grown, off = np.expm1(arg), self.doubt
        parts = self.probabilities * grown
        doubt = np.abs(parts) * (4.0 + off + arg.shape[2]) + self.probabilities * (grown + 1.0) * np.abs(arg) * (
            2 + off
        )
        # at least -1 + EPS, which an upper bound may say
        logs = self.counts * np.log1p(np.maximum(parts.sum(axis=2) + EPS * doubt.sum(axis=2), EPS - 1.0))
        return logs + (8.0 + self.counts.size) * EPS * np.abs(logs)

    def tilted(self, theta: float) -> TiltedSum:
        """Return the sum S tilted by exp(theta S)."""
        exponent = theta * self.values
        top = np.maximum(exponent.max(axis=1), 0.0)
        weights = self.probabilities * np.exp(exponent - top[:, None])
        rest = np.maximum(1.0 - self.probabilities.sum(axis=1), 0.0) * np.exp(-top)
        norm = np.maximum(weights.sum(axis=1) + rest, 1e-300)  # all weights may underflow
        room = 1.0 + float(np.abs(exponent).max(initial=0.0)) + float((np.exp(-top) / norm).max())
        unsure = EPS * (self.doubt + self.values.shape[1] + 8.0) * room
        return TiltedSum(self.counts, self.values, weights / norm[:, None], rest / norm, unsure)


def _sure(total: ComplexArray, error: FloatArray) -> bool:
    """Return whether errors of logarithms are negligible next to the largest value, which is the first one."""
    felt = np.expm1(np.minimum(error, 50.0)) * np.exp(np.minimum(total.real - total.real[0], 0.0))
    return bool((felt < _SURE).all())


def positive_part(total: IndependentSum, smoothing: float = 0.02) -> Interval:
    """Enclose E max(S, 0) by formula (B) of the module, an integral of the moment generating function.

    Parameters
    ----------
    total : IndependentSum
        The sum S.
    smoothing : float
        Standard deviation of the normal variable U that (B) adds to S, times the tilt; the enclosure's relative width
        is about its square.

    Returns
    -------
    Interval
        The upper end is inf if the moment generating function overflows everywhere.
    """
    enclosure = positive_parts(total, np.ones(1), smoothing)
    return Interval(float(enclosure.lower[0]), float(enclosure.upper[0]))


def positive_parts(total: IndependentSum, copies: FloatArray, smoothing: float = 0.02) -> Enclosure:
    """Enclose E (S_1 + ... + S_m)_+ for independent copies of S, one entry per m in ``copies``.

    Parameters
    ----------
    total : IndependentSum
        One copy of S.
    copies : ndarray, shape (entries,)
        Whole numbers m >= 1. Entries within a factor of 2 share one tilted line, where the mgf of S is computed once.
    smoothing : float
        As in `positive_part`.
    """
    lower, upper = np.empty_like(copies), np.empty_like(copies)
    chunk = np.floor(np.log(copies.max() / copies) / math.log(_TOGETHER))
    for label in np.unique(chunk):
        mine = chunk == label
        try:
            line = _Line.through(total, copies[mine], smoothing)
            lower[mine], upper[mine] = line.values(copies[mine]) if line else _crude(total, copies[mine])
        except NotConverged:  # the mgf overflows: say only what Jensen says
            lower[mine], upper[mine] = np.maximum(copies[mine] * total.mean, 0.0) * (1 - 16 * EPS), np.inf
    return Enclosure(lower, upper)


def positive_parts_above(total: IndependentSum, smoothing: float = 0.4) -> FloatArray:
    """Return upper bounds on E (S_g)_+ for each group's sum S_g by itself, shape (groups,).

    Faster than `positive_part`: all groups share the line of the first one and a strong smoothing. Aliases only raise
    the value, so upper bounds need no estimate of them.

    Parameters
    ----------
    total : IndependentSum
        The more similar the groups are to the first one, the sharper the bounds.
    smoothing : float
        As in `positive_part`; an upper bound exceeds the truth by about half its square, relatively.
    """
    first = replace(total, counts=total.counts[:1], values=total.values[:1], probabilities=total.probabilities[:1])
    above = np.full(total.counts.size, np.inf)
    try:
        draft = _Draft.of(replace(first, means=total.means[:1]), np.ones(1), smoothing)
    except NotConverged:
        return above
    if draft is None:
        return above
    period = max(6.0 * draft.spread, 15.0 / draft.theta)  # aliases may take 1e-4 of the value
    if draft.points(period) > _MAX_POINTS:
        return above
    z = bromwich_line(draft.theta, period, draft.points(period))
    share = np.exp(0.5 * draft.s**2 * (z**2 - draft.theta**2)) / z**2
    share[1:] *= 2.0
    cut = float(np.abs(z[-1]))
    missing = math.exp(-FALL) * (1.0 / (math.pi * cut) + 2.0 / (period * cut**2))
    missing += 1e-13 * float(np.abs(share).sum()) / period
    with np.errstate(over="ignore", invalid="ignore"):
        logs = total.log_mgf_above(np.array([draft.theta]))[0] + 0.5 * (draft.s * draft.theta) ** 2
        tilted = total.tilted(draft.theta)
    step = max(1, 400_000 // (z.size * total.values.shape[1]))
    for start in range(0, above.size, step):
        part = slice(start, start + step)
        power, doubt = tilted.powers(z.imag, part)
        value = (share.real @ power.real - share.imag @ power.imag + np.abs(share) @ doubt) / period + missing
        with np.errstate(over="ignore", invalid="ignore"):
            above[part] = value * np.exp(np.minimum(logs[part], 700.0)) * (1 + 1e-12) + 1e-300
    return np.where((logs < 700.0) & np.isfinite(above), above, np.inf)


def _crude(total: IndependentSum, copies: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return lower bounds (Jensen) and upper bounds (Chernoff) where the transform exceeds memory or double range."""
    grid, grid_log = _real_grid(total, math.sqrt(float(copies.max()) * total.tilted(0.0).variance))
    logs = np.min(copies[:, None] * grid_log - 1.0 - np.log(grid), axis=1, initial=709.0)
    return np.maximum(copies * total.mean, 0.0) * (1 - 16 * EPS), np.exp(logs) * (1 + 1e-12) + 1e-300


@dataclass(frozen=True, eq=False)
class _Draft:
    """Tilt, smoothing and period of (B), suited to given numbers of copies; every choice gives valid bounds.

    ``spread`` is the standard deviation of the tilted sum; ``grid_log`` holds upper bounds on one copy's log-mgf at the
    tilts ``grid``.
    """

    theta: float
    s: float
    period: float
    spread: float
    tilted: TiltedSum
    grid: FloatArray
    grid_log: FloatArray

    @classmethod
    def of(cls, total: IndependentSum, copies: FloatArray, smoothing: float) -> _Draft | None:
        """Return parameters of (B) suited to the numbers of copies; None if the value is below 1e-300."""
        m = math.sqrt(float(copies.min()) * float(copies.max()))
        sigma = math.sqrt(m * total.tilted(0.0).variance)
        if not 0.0 < sigma < math.inf:
            raise NotConverged("a sum without finite positive variance has no transform")
        grid, grid_log = _real_grid(total, sigma)
        log_grid = np.log(grid)
        if np.min(m * grid_log - log_grid) < -690.0:
            return None
        best = int(np.argmin(m * grid_log - 2.0 * log_grid))
        theta = math.exp(_lowest(log_grid, m * grid_log - 2.0 * log_grid, best))
        tilted = total.tilted(theta)
        spread = math.sqrt(max(m * tilted.variance, sigma**2 * 1e-6))
        s = smoothing / theta * min(max(spread * theta, 0.1), 1.0)
        size = m * float(grid_log[best]) - 2.0 * math.log(theta * spread)
        smooth_log = m * grid_log + 0.5 * (s * grid) ** 2
        period = max(12.0 * spread, 30.0 / theta)
        while _alias(theta, period, grid, smooth_log) > 1e-7 * math.exp(min(max(size, -700.0), 700.0)):
            if period > 1e4 * max(spread, 1.0 / theta):
                break  # whatever is left is charged to the lower end
            period *= 1.5
        return cls(theta, s, period, spread, tilted, grid, grid_log)

    def points(self, period: float) -> int:
        """Return the number of points z_j after which exp(-s^2 y^2/2) is below e^-FALL."""
        return math.ceil(math.sqrt(2.0 * FALL) / self.s * period / (2.0 * math.pi)) + 1


@dataclass(frozen=True, eq=False)
class _Line:
    """The points z_j of (B) with the log-mgf of one copy of S at each of them."""

    mean: float
    theta: float
    s: float
    period: float
    cut: float
    z: ComplexArray
    weight: FloatArray
    centered: ComplexArray
    error: FloatArray
    lost: tuple[float, float]
    grid: FloatArray
    grid_log: FloatArray

    @classmethod
    def through(cls, total: IndependentSum, copies: FloatArray, smoothing: float) -> _Line | None:
        """Return the line for these numbers of copies, with the mgf where it is not negligible.

        None if the value is below 1e-300, or the line would be too long.
        """
        draft = _Draft.of(total, copies, smoothing)
        if draft is None or (points := draft.points(draft.period)) > _MAX_POINTS:
            return None
        # |M| falls along the line: where it is certainly negligible, it is charged instead of computed
        theta, s, period, step = draft.theta, draft.s, draft.period, 2.0 * math.pi / draft.period
        alive = draft.tilted.alive(step, points, float(copies.min()), s)
        weight = np.where(alive == 0, 1.0 / period, 2.0 / period)
        lost = 0.0, 0.0
        if alive.size < points:
            first = float(np.flatnonzero(np.append(alive, points) != np.arange(alive.size + 1.0))[0])
            # the sums from the first point skipped on of (2/period)/y_j^2, and of 2/period
            charge = math.exp(1.0 - FALL) * 2.0 / period * (1 + 1e-9)
            lost = charge * (1.0 / first**2 + 1.0 / first) / step**2, charge * (points - alive.size)
        z = np.asarray(theta + 1j * step * alive, dtype=np.complex128)
        cut = math.hypot(theta, step * (points - 1))
        mgf = total.log_mgf_on_line(z, alive)
        return cls(total.mean, theta, s, period, cut, z, weight, *mgf, lost, draft.grid, draft.grid_log)

    def values(self, copies: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper bounds on E (S_1 + ... + S_m)_+ for each m in ``copies``."""
        step = max(1, 400_000 // self.z.size)
        parts = [self._values(copies[start : start + step]) for start in range(0, copies.size, step)]
        return np.concatenate([f[0] for f in parts]), np.concatenate([f[1] for f in parts])

    def _values(self, copies: FloatArray) -> tuple[FloatArray, FloatArray]:
        s = self.s
        # as in `through`, now that |M| is known; the fewest copies fall the least
        fall = float(copies.min()) * self.centered.real + 0.5 * s * s * (self.z**2).real
        keep = fall - fall[0] > -FALL
        m, z, centered, weight = copies[:, None], self.z[keep], self.centered[keep], self.weight[keep]
        charge = math.exp(1.0 - FALL) * self.weight[~keep]
        lost = self.lost[0] + float(charge @ np.abs(self.z[~keep]) ** -2.0), self.lost[1] + float(charge.sum())
        mean = m * self.mean
        log_terms = m * centered + z * mean + 0.5 * (s * z) ** 2
        error = m * self.error[keep] + 8.0 * EPS * (np.abs(z * mean) + np.abs(log_terms) + 1.0)
        scale = log_terms[:, :1].real
        if not (scale < 700.0).all():
            raise NotConverged("the moment generating function overflows; the sum could not be certified")
        terms: ComplexArray = np.exp(log_terms - scale)
        doubt = weight * np.abs(terms) * np.expm1(np.minimum(error, 50.0))
        kernel = 1.0 / z**2
        # beyond the last point |exp(s^2 z^2/2)| is e^-FALL of its value at the first
        missing = math.exp(-FALL) * (1.0 / (math.pi * self.cut) + 2.0 / (self.period * self.cut**2)) + lost[0]
        value = weighted((terms * kernel).real, weight)
        slack = weighted(doubt, np.abs(kernel)) + missing + np.abs(value) * 1e-13
        density = weighted(terms.real, weight) + doubt.sum(axis=1) + 2.0 * math.exp(-FALL) / s + lost[1]
        size = np.where(scale[:, 0] > -740.0, np.exp(scale[:, 0]), 0.0)
        upper = (value + slack) * size * (1 + 1e-13) + 1e-300
        logs = m * self.grid_log + 0.5 * (s * self.grid) ** 2
        alias = _alias(self.theta, self.period, self.grid, logs)
        lower = (value - slack - s * s * np.maximum(density, 0.0)) * size * (1 - 1e-13) - alias
        lower = np.maximum(np.maximum(lower, mean[:, 0] * (1 - 8 * EPS)), 0.0)  # Jensen: E(S)_+ >= (E S)_+
        return np.minimum(lower, upper), np.maximum(upper, 0.0)


def _lowest(x: FloatArray, values: FloatArray, best: int) -> float:
    """Return the minimiser of the parabola through the smallest value and its neighbours; x is evenly spaced.

    So the choice of the tilt, and with it the width of enclosures, varies smoothly with the input.
    """
    if not 0 < best < x.size - 1:
        return float(x[best])
    left, here, right = values[best - 1 : best + 2].tolist()
    bend = left - 2.0 * here + right
    return float(x[best]) + (0.5 * (left - right) / bend * float(x[best + 1] - x[best]) if bend > 0.0 else 0.0)


def bromwich_line(theta: float, period: float, points: int) -> ComplexArray:
    """Return z_j = theta + 2 pi i j / period for j = 0, ..., points - 1."""
    return np.asarray(theta + 1j * (2.0 * math.pi / period) * np.arange(points), dtype=np.complex128)


def _real_grid(total: IndependentSum, sigma: float) -> tuple[FloatArray, FloatArray]:
    """Return tilts theta > 0 at which log E exp(theta S) does not overflow, and upper bounds on it."""
    grid = _TILTS / sigma
    with np.errstate(over="ignore", invalid="ignore"):
        logs = total.log_mgf_above(grid).sum(axis=1)
    finite = np.isfinite(logs)
    if not finite.any():
        raise NotConverged("the moment generating function overflows; the sum could not be certified")
    return grid[finite], logs[finite]


def _alias(theta: float, period: float, grid: FloatArray, log_m: FloatArray) -> FloatArray:
    """Return a bound on the aliases E(S + k period)_+ exp(-theta k period), k != 0.

    By (y)_+ <= exp(t y)/(e t) for any t > 0. Shape of ``log_m`` without its last axis, which runs over the grid.
    """
    total = np.zeros(log_m.shape[:-1])
    for side in (grid < theta * (1 - 1e-9), grid > theta * (1 + 1e-9)):
        gap = np.abs(grid[side] - theta) * period
        with np.errstate(over="ignore", divide="ignore"):
            logs = log_m[..., side] - 1.0 - np.log(grid[side]) - gap - np.log(-np.expm1(-gap))
        total += np.exp(np.minimum(np.min(logs, axis=-1, initial=700.0), 700.0))
    return total


def law_of_sum(law: FloatArray, times: int) -> tuple[FloatArray, float]:
    """Return the distribution, on 0..n times, of the sum of ``times`` independent copies, and its relative error.

    Computed by convolving the laws of half the copies. A sum of m products errs by at most m + 1 EPS in any order.

    Parameters
    ----------
    law : ndarray, shape (n + 1,)
        Probabilities of 0..n of one copy, each rounded once.
    times : int
        At least 0.

    Returns
    -------
    chances : ndarray, shape (n times + 1,)
        Probabilities; those above 1e-300 have at most the relative error ``doubt``.
    doubt : float
        The relative error.
    """
    if times == 0:
        return np.ones(1), 0.0
    if times == 1:
        return law, EPS
    half, doubt = law_of_sum(law, times // 2)
    other, more = law_of_sum(law, times - times // 2) if times % 2 else (half, doubt)
    return np.convolve(half, other), 1.01 * (doubt + more + (half.size + 1.0) * EPS)
