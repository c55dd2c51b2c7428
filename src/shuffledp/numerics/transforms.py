"""Moment generating functions of laws of many atoms on many points of one line, by matrix products.

On the line z_j = theta + i j step the exponentials of an atom v are e^(theta v) times powers of one rotation. With
j = q B + r, b = exp(i r step v) - 1, g = exp(i q B step v) - 1, and b', g' the same less their linear terms,

    exp(i j step v) - 1 - i j step v = b' + g' + b g,                                                        (P)

so that B rows of b and as many of g serve all points, and the rest is a matrix product. Every term of (P) is of second
order in j step v: what is left of a sum of many copies once its mean is taken out keeps its digits.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from shuffledp.numerics.floats import expm1_minus
from shuffledp.numerics.interval import FloatArray

ComplexArray = NDArray[np.complex128]
_ONE_THREAD = 1 << 18
"""Multiplications of one real matrix product."""
_RADII = 24
"""So many radii |z| at which a bound that increases with |z| is evaluated; the others take the next larger one's."""


def characteristic(values: FloatArray, weights: FloatArray, y: FloatArray, first: float = 0.0) -> ComplexArray:
    """Return sum_k weights_k exp(i (first + y_j) values_k) for y_j = j y_1, shape of y.

    Parameters
    ----------
    values, weights : ndarray, shape (atoms,)
    y : ndarray, shape (points,)
        Evenly spaced from 0.
    first : float
        What is added to each of them.
    """
    width = math.ceil(math.sqrt(y.size))
    step = y[1] if y.size > 1 else 0.0
    baby = np.exp(1j * np.outer(values, step * np.arange(width)))
    turns = np.outer(first + step * width * np.arange(math.ceil(y.size / width)), values)
    giant = np.asarray(weights * np.exp(1j * turns), dtype=np.complex128)
    return _product(giant, baby).ravel()[: y.size]


def _product(left: ComplexArray, right: ComplexArray) -> ComplexArray:
    """Matrix product by real products of a few rows: larger ones start threads, which wait longer than they compute."""
    real, imaginary = np.ascontiguousarray(right.real), np.ascontiguousarray(right.imag)
    rows, found = max(1, _ONE_THREAD // right.size), list[ComplexArray]()
    for start in range(0, left.shape[0], rows):
        part = left[start : start + rows]
        a, b = np.ascontiguousarray(part.real), np.ascontiguousarray(part.imag)
        found.append((a @ real - b @ imaginary) + 1j * (a @ imaginary + b @ real))
    return np.concatenate(found)


def second_order(
    values: FloatArray, probabilities: FloatArray, z: ComplexArray, places: NDArray[np.int64], doubt: float
) -> tuple[ComplexArray, FloatArray]:
    """Return sum_a p_a (exp(z v_a) - 1 - z v_a), shape of z, and a bound on its absolute error in units of EPS.

    Parameters
    ----------
    values, probabilities : ndarray, shape (atoms,)
        v and p, each good to ``doubt`` EPS relative.
    z : ndarray of complex, shape (points,)
        theta + i step places, theta >= 0, each good to 2 EPS; several points.
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
    theta, step = float(z.real[0]), float(z.imag[-1]) / max(int(places[-1]), 1)
    width = math.ceil(math.sqrt(places.size))
    turns, at = np.unique(places // width, return_inverse=True)
    grown = np.exp(theta * values)
    tilted = probabilities * grown
    baby, baby_rest = _rotated(values[:, None] * (step * np.arange(width)))
    giant, giant_rest = _rotated((step * width * turns)[:, None] * values)
    table = _product(tilted * giant, baby) + (giant_rest @ tilted)[:, None] + tilted @ baby_rest
    real = (theta * values).astype(np.complex128)
    flat = float((probabilities * expm1_minus(real, np.exp(real)).real).sum())
    slope = float((probabilities * values * np.expm1(theta * values)).sum())
    found = table[at, places % width] + flat + 1j * z.imag * slope

    size = np.abs(z)
    radii = np.geomspace(float(size.min()), float(size.max()) * (1.0 + 1e-12), _RADII)
    reach = radii[:, None] * np.abs(values)
    most = np.minimum(reach * reach, 8.0 + 2.0 * reach) @ (tilted + probabilities)
    known = most[np.minimum(np.searchsorted(radii, size), _RADII - 1)]
    return found, known * (2.0 * values.size + 200.0 + 2.0 * doubt)


def _rotated(angle: FloatArray) -> tuple[ComplexArray, ComplexArray]:
    """Return exp(i angle) - 1, and that less i angle."""
    arg = np.asarray(1j * angle, dtype=np.complex128)
    rest = expm1_minus(arg, np.exp(arg))
    return rest + arg, rest
