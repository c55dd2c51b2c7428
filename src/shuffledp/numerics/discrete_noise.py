"""Exact noise on the whole numbers, vectorised, with a scale for each sample.

Every draw is decided by comparing random bits with exponentials, as Canonne, Kamath and Steinke (2020) do with
rational arithmetic. Here the comparison is made in double precision with a bound on its error, and the few draws that
this leaves open are decided by `LazyUniform` with as many bits as needed. So the laws below hold exactly: no
probability is rounded. A scale is a double, hence a rational number, and is meant as such.

**Error bounds.** exp and log of NumPy are taken to be good to 8 units of 2^-53 relative (the tests allow 3). With U in
[V, V+1)/2^63, u the double nearest to (V + 1/2)/2^63 and V >= 2^49, so u >= 2^-14:

    |scale log u - scale log U| <= scale (|log u| 2^-50 + 2^-52 + 2^-49),

and the floating-point evaluation of offset - scale log u adds at most (scale |log u| + 1) 2^-51; together they are
below scale (|log u| + 1) 2^-48 + 2^-50. A smaller V (chance 2^-14) is always decided exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import InvalidInput
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.lazy_uniform import LazyUniform, half_normal_accepts
from shuffledp.numerics.randomness import Randomness, Words

LARGEST_SCALE = 2.0**44
"""Beyond, doubles do not resolve the whole numbers that are drawn."""
_CHUNK = 1 << 15  # samples at a time, so that temporaries stay in cache
_SMALL = np.uint64(1 << 50)
"""Words (with the sign bit) below it are decided exactly."""
_HALF = Fraction(1, 2)

Integers = NDArray[np.int64]
Draw = Callable[[FloatArray, Randomness], Integers]


def geometric(scale: ArrayLike, n: int, random: Randomness) -> Integers:
    """Independent geometric draws: P(X >= k) = exp(-k/scale) for k = 0, 1, ...

    Parameters
    ----------
    scale : float or array_like, shape (n,)
        Positive, at most 2^44.
    n : int
        How many draws, at least 0.
    random : Randomness
        Source of the bits.

    Raises
    ------
    InvalidInput
        If a scale is out of range.
    """
    return _in_chunks(scale, n, random, lambda t, source: _magnitudes(t, 0.0, source)[0])


def discrete_laplace(scale: ArrayLike, n: int, random: Randomness) -> Integers:
    """Discrete Laplace noise: P(X = x) proportional to exp(-|x|/scale) on the whole numbers.

    A geometric magnitude with a fair sign, drawn again where it is minus 0 (Canonne, Kamath and Steinke 2020).

    Parameters
    ----------
    scale : float or array_like, shape (n,)
        Positive, at most 2^44.
    n : int
        How many draws, at least 0.
    random : Randomness
        Source of the bits.

    Raises
    ------
    InvalidInput
        If a scale is out of range.
    """

    def propose(t: FloatArray, source: Randomness) -> tuple[Integers, NDArray[np.bool_]]:
        magnitude, minus = _magnitudes(t, 0.0, source)
        return _signed(magnitude, minus), (magnitude > 0) | ~minus

    return _in_chunks(scale, n, random, lambda t, source: _until_accepted(t, source, propose))


def discrete_gaussian(sigma: ArrayLike, n: int, random: Randomness) -> Integers:
    """Discrete Gaussian noise: P(X = x) proportional to exp(-x^2/(2 sigma^2)) on the whole numbers.

    Discrete Laplace noise Y of scale t = floor(sigma) + 1, kept with probability exp(-(|Y| - sigma^2/t)^2/(2
    sigma^2)) (Canonne, Kamath and Steinke 2020, Algorithm 3).

    Parameters
    ----------
    sigma : float or array_like, shape (n,)
        Positive, at most 2^44.
    n : int
        How many draws, at least 0.
    random : Randomness
        Source of the bits.

    Raises
    ------
    InvalidInput
        If a sigma is out of range.
    """

    def propose(s: FloatArray, source: Randomness) -> tuple[Integers, NDArray[np.bool_]]:
        t = np.minimum(np.floor(s) + 1.0, LARGEST_SCALE)  # any whole number is right
        noise = discrete_laplace(t, s.size, source)
        size, peak = np.abs(noise).astype(np.float64), s * (s / t)
        gamma = ((size - peak) / s) ** 2 / 2.0
        words = source.words(s.size)
        accepted, unsure = _compare_exp(words, gamma, ((size + peak) / s) ** 2 * 2.0**-49)
        for i in np.flatnonzero(unsure):
            square = Fraction(float(s[i])) ** 2
            exact = (abs(int(noise[i])) - square / int(t[i])) ** 2 / (2 * square)
            accepted[i] = _lazy(int(words[i]), 64, source).below_exp(exact)
        return noise, accepted

    return _in_chunks(sigma, n, random, lambda s, source: _until_accepted(s, source, propose))


def rounded_laplace(scale: ArrayLike, n: int, random: Randomness) -> Integers:
    """Continuous Laplace noise rounded to the nearest whole number: P(|X| >= k) = exp(-(k - 1/2)/scale), k >= 1.

    Being a function of the continuous noise, it is as private, alone and among any other reports.

    Parameters
    ----------
    scale : float or array_like, shape (n,)
        Scale of the continuous noise, positive, at most 2^44.
    n : int
        How many draws, at least 0.
    random : Randomness
        Source of the bits.

    Raises
    ------
    InvalidInput
        If a scale is out of range.

    Examples
    --------
    >>> from shuffledp.numerics.randomness import secure_random
    >>> rounded_laplace(1e-300, 3, secure_random()).tolist()
    [0, 0, 0]
    """
    return _in_chunks(scale, n, random, lambda t, source: _signed(*_magnitudes(t, 0.5, source)))


def rounded_gaussian(sigma: ArrayLike, n: int, random: Randomness) -> Integers:
    """Continuous normal noise rounded to the nearest whole number: P(X <= k) = Phi((k + 1/2)/sigma).

    An exponential E = -log U is kept with probability exp(-(E - 1)^2/2), which makes it half-normal (von Neumann
    1951), then multiplied by sigma, rounded and given a fair sign. Being a function of the continuous noise, it is as
    private, alone and among any other reports.

    Parameters
    ----------
    sigma : float or array_like, shape (n,)
        Standard deviation of the continuous noise, positive, at most 2^44.
    n : int
        How many draws, at least 0.
    random : Randomness
        Source of the bits.

    Raises
    ------
    InvalidInput
        If a sigma is out of range.
    """
    return _in_chunks(sigma, n, random, lambda s, source: _until_accepted(s, source, _propose_rounded_gaussian))


def _propose_rounded_gaussian(sigma: FloatArray, random: Randomness) -> tuple[Integers, NDArray[np.bool_]]:
    words, tests = random.words(sigma.size), random.words(sigma.size)
    logs = _logs(words)
    excess = -logs - 1.0
    # E is known to |log u| 2^-50 + 2^-52 + 2^-49, see above; gamma = excess^2/2 changes by |excess| as much
    doubt = (np.abs(excess) + 1.0) * (1.0 - logs) * 2.0**-48
    accepted, unsure = _compare_exp(tests, 0.5 * excess * excess, doubt)
    whole, open_ = _rounded(words, logs, sigma, 0.5)
    for i in np.flatnonzero(unsure | open_ | (words < _SMALL)):
        proposal = _lazy(int(words[i]) >> 1, 63, random)
        accepted[i] = half_normal_accepts(proposal, _lazy(int(tests[i]), 64, random))
        if accepted[i]:
            whole[i] = proposal.floor_exponential(Fraction(float(sigma[i])), _HALF, int(whole[i]))
    return _signed(whole, (words & np.uint64(1)).astype(np.bool_)), accepted


def _magnitudes(scale: FloatArray, offset: float, random: Randomness) -> tuple[Integers, NDArray[np.bool_]]:
    """floor(offset - scale log U) with U from 63 bits of a word, and the bit left, for a sign."""
    words = random.words(scale.size)
    whole, unsure = _rounded(words, _logs(words), scale, offset)
    for i in np.flatnonzero(unsure):
        lazy = _lazy(int(words[i]) >> 1, 63, random)
        whole[i] = lazy.floor_exponential(Fraction(float(scale[i])), Fraction(offset), int(whole[i]))
    return whole, (words & np.uint64(1)).astype(np.bool_)


def _logs(words: Words) -> FloatArray:
    """log((V + 1/2)/2^63), V the upper 63 bits."""
    u = (words >> np.uint64(1)).astype(np.float64)
    u += 0.5
    u *= 2.0**-63
    return np.log(u, out=u)


def _rounded(words: Words, logs: FloatArray, scale: FloatArray, offset: float) -> tuple[Integers, NDArray[np.bool_]]:
    """floor(offset - scale log U) in double precision, and where that is not certain."""
    y = offset - scale * logs
    doubt = scale * (1.0 - logs)
    doubt *= 2.0**-48
    doubt += 2.0**-50
    whole = np.floor(y)
    y -= whole
    unsure = (y < doubt) | (y > 1.0 - doubt) | (words < _SMALL)
    return whole.astype(np.int64), unsure


def _compare_exp(words: Words, gamma: FloatArray, doubt: FloatArray) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether U < exp(-gamma), U in [W, W+1)/2^64, gamma known up to doubt; and where that is not certain."""
    u = (words.astype(np.float64) + 0.5) * 2.0**-64
    chance = np.exp(-gamma)
    # exp(-gamma) moves by at most chance (e^doubt - 1); 8 units for exp, one for u, half a cell for its other bits
    slack = chance * (2.0 * doubt + 2.0**-49) + u * 2.0**-52 + 2.0**-64
    return u < chance, np.abs(u - chance) <= slack


def _until_accepted(
    scale: FloatArray,
    random: Randomness,
    propose: Callable[[FloatArray, Randomness], tuple[Integers, NDArray[np.bool_]]],
) -> Integers:
    out, accepted = propose(scale, random)
    left = np.flatnonzero(~accepted)
    while left.size:
        values, accepted = propose(scale[left], random)
        out[left[accepted]] = values[accepted]
        left = left[~accepted]
    return out


def _in_chunks(scale: ArrayLike, n: int, random: Randomness, draw: Draw) -> Integers:
    scales = np.broadcast_to(np.asarray(scale, dtype=np.float64), (n,))
    inside = (scales > 0.0) & (scales <= LARGEST_SCALE)
    if not inside.all():
        at = int(np.argmin(inside))
        raise InvalidInput(f"a noise scale must lie above 0 and not above 2^44; got {scales[at]} in row {at + 1}")
    out = np.empty(n, dtype=np.int64)
    for start in range(0, n, _CHUNK):
        out[start : start + _CHUNK] = draw(scales[start : start + _CHUNK], random)
    return out


def _signed(magnitude: Integers, minus: NDArray[np.bool_]) -> Integers:
    return np.where(minus, -magnitude, magnitude)


def _lazy(value: int, bits: int, random: Randomness) -> LazyUniform:
    return LazyUniform(value, bits, lambda: int(random.words(1)[0]))
