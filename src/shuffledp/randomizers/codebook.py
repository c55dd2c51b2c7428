"""Random codebooks that a seed stands for, and how far a report chosen from one points towards its record.

A seed names B directions; the codebook is these and their opposites, 2 B codewords. Whoever knows the seed can write it
down, and nobody needs it to be random for privacy. `topmost_slope` is the mean component, along the record, of the
kappa codewords closest to it, for directions that are uniform and independent.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.numerics.floats import largest_below_one
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.special import bdtr, bdtrc, betainc, betainccinv, betaincinv, betaln, roots_legendre
from shuffledp.randomizers.mixing import keep_masses

Words = NDArray[np.uint64]
Float32 = NDArray[np.float32]

_GOLDEN = 0x9E3779B97F4A7C15
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_NODES = 400
_NEGLIGIBLE = 45.0  # e^-45 < 3e-20: tails left out of the quadrature


def mix(words: Words) -> Words:
    """Return a bijection of 64-bit words whose output bits look independent (Stafford's variant 13 of MurmurHash3).

    Frozen: reports drawn by one version are read by another. Test vectors stand in the tests.

    Parameters
    ----------
    words : ndarray of uint64
        Left as they are.
    """
    mixed = words >> np.uint64(30)
    mixed ^= words
    mixed *= _FIRST
    shifted = mixed >> np.uint64(27)
    mixed ^= shifted
    mixed *= _SECOND
    np.right_shift(mixed, np.uint64(31), out=shifted)
    mixed ^= shifted
    return mixed


def seeded_words(seeds: Words, places: Words) -> Words:
    """Word mix(mix(seed + golden) + golden (place + 1)) of each seed at each place, shape (seeds, places)."""
    keys = mix(seeds + np.uint64(_GOLDEN))
    return mix(keys[:, None] + np.uint64(_GOLDEN) * (places + np.uint64(1)))


def normals(words: Words, width: int, precision: type[np.float32] | type[np.float64] = np.float32) -> NDArray[Any]:
    """Return standard normals from random words, by Box and Muller (1958) on 32 bits each.

    Parameters
    ----------
    words : ndarray of uint64, shape (..., ceil(width / 2))
        Each gives two normals: entry w of the row, and entry ceil(width / 2) + w.
    width : int
        Normals per row.
    precision : float32 or float64
        Of the result, and of all work. Each entry depends on its own word alone.

    Returns
    -------
    ndarray, shape (..., width)
        At most 6.8 in absolute value, and normal up to the 2^-24 (2^-32) of the format (of the words).
    """
    half, one_less = words.shape[-1], largest_below_one(precision)
    radius = (words & np.uint64(0xFFFFFFFF)).astype(precision)
    radius += precision(0.5)
    radius *= precision(2.0**-32)
    np.minimum(radius, one_less, out=radius)  # words from 2^32 - 128 on round to 1, and a direction must not be 0
    np.log(radius, out=radius)
    radius *= precision(-2.0)
    np.sqrt(radius, out=radius)
    angle = (words >> np.uint64(32)).astype(precision)
    angle *= precision(2.0 * math.pi * 2.0**-32)
    drawn = np.empty((*words.shape[:-1], 2 * half), dtype=precision)
    np.cos(angle, out=drawn[..., :half])
    np.sin(angle, out=drawn[..., half:])
    drawn[..., :half] *= radius
    drawn[..., half:] *= radius
    return drawn[..., :width]


def fixed_sum(terms: FloatArray) -> FloatArray:
    """Return sums along the second axis, added in an order that depends on its length alone.

    What NumPy's own sums and products of matrices give for one row may depend on how many rows there are.

    Parameters
    ----------
    terms : ndarray, shape (n, m, ...)
        m at least 1.
    """
    while terms.shape[1] > 1:
        half = terms.shape[1] // 2
        terms = np.concatenate((terms[:, :half] + terms[:, half : 2 * half], terms[:, 2 * half :]), axis=1)
    return terms[:, 0]


@lru_cache(maxsize=256)
def _quadrature(dimension: int, inner: int) -> tuple[FloatArray, FloatArray]:
    """P(|T| > t) at the nodes, and their weights times F'(t); see `topmost_slope`."""
    x, w = roots_legendre(_NODES)
    end = math.pi / 2.0
    if inner > 1:
        end = math.asin(math.sqrt(-math.expm1(-2.0 * _NEGLIGIBLE / (inner - 1))))
    theta = end * (np.asarray(x) + 1.0) / 2.0  # t = sin(theta): P(|T| > t) is smooth in theta up to t = 1
    t, weights = np.sin(theta), np.asarray(w) * end / 2.0 * np.cos(theta)
    tail = np.ones_like(t) if inner == 1 else betainc((inner - 1) / 2.0, 0.5, np.cos(theta) ** 2)
    if inner < dimension:
        weights = weights * _frame_derivative(t, dimension, inner)
    return tail, weights


def _frame_derivative(t: FloatArray, dimension: int, inner: int) -> FloatArray:
    """F'(t) = E( sqrt(b) (1-b) / (t^2 b + 1 - b)^(3/2) ), b ~ Beta(inner/2, (dimension-1)/2)."""
    first, second = inner / 2.0, (dimension - 1) / 2.0
    ends = np.sqrt([betaincinv(first, second, 1e-18), betainccinv(first, second, 1e-18)])
    x, w = roots_legendre(_NODES)
    s = ends[0] + (ends[1] - ends[0]) * (np.asarray(x) + 1.0) / 2.0  # b = s^2: the integrand is smooth in s
    b, rest = s * s, (1.0 - s) * (1.0 + s)
    log_density = (2.0 * first - 1.0) * np.log(s) + (second - 1.0) * np.log(rest)
    chance = np.asarray(w) * np.exp(log_density - np.max(log_density))
    chance /= np.sum(chance)
    values = s * rest / (t[:, None] ** 2 * b + rest) ** 1.5
    return np.sum(values * chance, axis=1)


def topmost_slope(dimension: int, inner: int, bases: int, likely: int) -> float:
    """Mean component along the record of the `likely` codewords that are closest to it.

    The codewords are +-a_j, j < bases, with a_j uniform on the sphere of R^inner and independent, so the closest ones
    are those of the largest |T_j|, T_j the component of a_j along the record. With N(t) ~ Bin(bases, P(|T| > t)),

        m = 1/likely int_0^1 F'(t) E min(likely, N(t)) dt,      P(|T| > t) = I_{1-t^2}((inner-1)/2, 1/2).

    inner = dimension: the record itself lies there, F(t) = t. Else the record u is seen through y = G u, G a matrix of
    inner x dimension normals, and a_j stands for the direction of G^T a_j, whose component along u is t/sqrt(t^2 +
    (1-b)/b) with b = |y|^2/(|y|^2 + chi^2_{dimension-1}) ~ Beta(inner/2, (dimension-1)/2); F is its mean.

    Parameters
    ----------
    dimension, inner : int
        inner = dimension, or 2 <= inner <= dimension/2.
    bases, likely : int
        1 <= likely <= bases.

    Returns
    -------
    float
        In (0, 1]; by quadrature, to about 1e-9.
    """
    tail, weights = _quadrature(dimension, inner)
    below = bases * tail * bdtr(likely - 2, bases - 1, tail) if likely >= 2 else 0.0  # E(N; N < likely)
    mean = below + likely * bdtrc(likely - 1, bases, tail)
    return float(np.sum(weights * mean)) / likely


@lru_cache(maxsize=64)
def _caps(dimension: int) -> tuple[FloatArray, FloatArray]:
    """Shares f of caps {T >= t} of the sphere, from one half down to e^-45, and the mean of T on each."""
    if dimension == 1:
        return np.array([0.5]), np.array([1.0])
    angles = np.linspace(0.0, math.asin(math.sqrt(-math.expm1(-2.0 * _NEGLIGIBLE / (dimension - 1)))), 4001)[:-1]
    power = np.cos(angles) ** 2
    shares = betainc((dimension - 1) / 2.0, 0.5, power) / 2.0
    log_mean = np.log(power) * (dimension - 1) / 2.0 - math.log(dimension - 1) - betaln(0.5, (dimension - 1) / 2.0)
    return shares, np.exp(log_mean - np.log(shares))


def cap_slope(dimension: int, epsilon0: FloatArray, counts: FloatArray) -> tuple[float, float]:
    """Return PrivUnit2's optimum on the sphere: the slope (mean report over record), and the share f of its cap.

    A report uniform on the cap {T >= t}, or uniform on the rest, the former e^epsilon0 times as likely, is PrivUnit2
    (Bhowmick et al. 2018), optimal among all randomizers of the sphere if t is (Asi, Feldman, Talwar 2022). Its mean is
    slope times the record, slope = (1 - gamma) E(T | T >= t), and with unit reports its error is 1/slope^2 - 1.

    Parameters
    ----------
    dimension : int
        At least 1.
    epsilon0, counts : ndarray
        Budgets (nats) and how many users hold each: the slope is the users' mean for one cap.
    """
    shares, means = _caps(dimension)
    slopes = np.zeros_like(shares)
    for epsilon, count in zip(epsilon0.tolist(), counts.tolist(), strict=True):
        slopes += count * keep_masses(np.asarray(epsilon), shares)[0]
    slopes *= means / counts.sum()
    best = int(np.argmax(slopes))
    return float(slopes[best]), float(shares[best])
