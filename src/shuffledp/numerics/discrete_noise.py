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

import math
from bisect import bisect_left
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.floats import FloatArray
from shuffledp.numerics.randomness import Randomness, Words

# ------------------------------------------------------------------ lazy uniform
# A uniform number known by its first bits, with further bits drawn only where a comparison needs them.
#
# The samplers compare a 64-bit word with a bound that double precision knows up to a stated error; the few words that
# fall into the gap are decided here, with as many digits as it takes. What is drawn is then the real-number law itself.

_WORD = 64
_SPARE = 12
"""Decimal digits that are computed beyond those needed for the compared bits."""


def exp_bounds(gamma: Fraction, bits: int) -> tuple[int, int]:
    """Return two whole numbers, at most 2 apart, that enclose 2^bits exp(-gamma).

    Parameters
    ----------
    gamma : Fraction
        At least 0.
    bits : int
        At least 1.

    Returns
    -------
    lower, upper : int
        lower <= 2^bits exp(-gamma) <= upper. The quotient is rounded outward; the exponential of the standard library's
        `decimal`, which rounds correctly, is moved by one more unit.

    Examples
    --------
    >>> exp_bounds(Fraction(1), 20)
    (385749, 385750)
    """
    digits = bits // 3 + _SPARE
    floor, ceiling = _context(digits, ROUND_FLOOR), _context(digits, ROUND_CEILING)
    least = floor.exp(floor.divide(Decimal(-gamma.numerator), Decimal(gamma.denominator)))
    most = ceiling.exp(ceiling.divide(Decimal(-gamma.numerator), Decimal(gamma.denominator)))
    unit = Decimal(2**bits)
    lower = floor.to_integral_value(floor.multiply(floor.next_minus(least), unit))
    upper = ceiling.to_integral_value(ceiling.multiply(ceiling.next_plus(most), unit))
    return max(int(lower), 0), min(int(upper), 2**bits)


class LazyUniform:
    """A number U, uniform on [0, 1), of which the leading bits are known: value/2^bits <= U < (value + 1)/2^bits.

    Parameters
    ----------
    value : int
        The known bits, in [0, 2^bits).
    bits : int
        How many, at least 1.
    word : callable
        Returns a fresh uniform integer in [0, 2^64), for the next 64 bits.
    """

    def __init__(self, value: int, bits: int, word: Callable[[], int]) -> None:
        self.value = value
        self.bits = bits
        self._word = word

    def extend(self) -> None:
        """Draw 64 further bits of U."""
        self.value = (self.value << _WORD) | self._word()
        self.bits += _WORD

    def below_exp(self, gamma: Fraction) -> bool:
        """Return whether U < exp(-gamma), for gamma >= 0, after drawing as many bits as the decision needs."""
        while True:
            decided = self.compare(*exp_bounds(gamma, self.bits))
            if decided is not None:
                return decided
            self.extend()

    def compare(self, lower: int, upper: int) -> bool | None:
        """Return whether U < b, given lower <= 2^bits b <= upper; None if the known bits of U do not decide it."""
        if self.value + 1 <= lower:
            return True
        return False if self.value >= upper else None

    def floor_exponential(self, scale: Fraction, offset: Fraction, near: int) -> int:
        """Return floor(offset - scale log U), the largest whole k with U < exp(-(k - offset)/scale).

        Parameters
        ----------
        scale : Fraction
            Positive.
        offset : Fraction
            From 0 to 1.
        near : int
            Start of the search; it changes the time of the search, never the result.
        """

        def reached(k: int) -> bool:
            return k <= offset or self.below_exp((k - offset) / scale)

        least, step = near, 1
        while not reached(least):
            least, step = least - step, 2 * step
        above, step = least + 1, 1
        while reached(above):
            above, step = above + step, 2 * step
        while above - least > 1:  # reached(least), not reached(above)
            middle = (least + above) // 2
            least, above = (middle, above) if reached(middle) else (least, middle)
        return least

    def exponential_bounds(self) -> tuple[Fraction, Fraction]:
        """Return lower and upper bounds on -log U from the known bits; 64 more are drawn first if all of them are 0."""
        while self.value == 0:
            self.extend()
        context = _context(self.bits // 3 + _SPARE, ROUND_FLOOR)
        whole = context.ln(Decimal(2**self.bits))
        least = context.subtract(context.next_minus(whole), context.next_plus(context.ln(Decimal(self.value + 1))))
        most = context.subtract(context.next_plus(whole), context.next_minus(context.ln(Decimal(self.value))))
        return max(Fraction(least), Fraction(0)), Fraction(context.next_plus(most))


def half_normal_accepts(proposal: LazyUniform, test: LazyUniform) -> bool:
    """Return whether V < exp(-(E - 1)^2/2), with E = -log U, U = ``proposal`` and V = ``test``.

    E given acceptance has the half-normal distribution (von Neumann 1951).
    """
    while True:
        least, most = proposal.exponential_bounds()
        farthest = max(abs(least - 1), abs(most - 1))
        nearest = Fraction(0) if least <= 1 <= most else min(abs(least - 1), abs(most - 1))
        lower = exp_bounds(farthest**2 / 2, test.bits)[0]
        upper = exp_bounds(nearest**2 / 2, test.bits)[1]
        decided = test.compare(lower, upper)
        if decided is not None:
            return decided
        proposal.extend()
        test.extend()


def _context(digits: int, rounding: str) -> Context:
    # no trap: an exponential that underflows is 0, and the next number above it is still an upper bound
    return Context(prec=digits, rounding=rounding, Emin=-(10**15), Emax=10**15, traps=[])


LARGEST_SCALE = 2.0**44
"""Largest scale accepted; beyond it, doubles do not resolve the whole numbers that are drawn."""
_CHUNK = 1 << 15  # samples at a time, so that temporaries stay in cache
_SMALL = np.uint64(1 << 50)
"""Random words (including the sign bit) below this are decided by exact arithmetic."""
_HALF = Fraction(1, 2)

Integers = NDArray[np.int64]
Draw = Callable[[FloatArray, Randomness], Integers]


def geometric(scale: ArrayLike, n: int, random: Randomness) -> Integers:
    """Draw independent geometric numbers: P(X >= k) = exp(-k/scale) for k = 0, 1, ...

    Parameters
    ----------
    scale : float or array_like, shape (n,)
        Positive, at most 2^44.
    n : int
        Number of draws, at least 0.
    random : Randomness
        Source of the bits.

    Returns
    -------
    ndarray of int64, shape (n,)

    Raises
    ------
    InvalidInput
        If a scale is out of range.
    """
    return _in_chunks(scale, n, random, lambda t, source: _magnitudes(t, 0.0, source)[0])


def discrete_laplace(scale: ArrayLike, n: int, random: Randomness) -> Integers:
    """Draw discrete Laplace noise: P(X = x) proportional to exp(-|x|/scale) on the whole numbers.

    A geometric magnitude gets a fair sign, and the draw is repeated if it is minus 0 (Canonne, Kamath and Steinke
    2020).

    Parameters
    ----------
    scale : float or array_like, shape (n,)
        Positive, at most 2^44.
    n : int
        Number of draws, at least 0.
    random : Randomness
        Source of the bits.

    Returns
    -------
    ndarray of int64, shape (n,)

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
    """Draw discrete Gaussian noise: P(X = x) proportional to exp(-x^2/(2 sigma^2)) on the whole numbers.

    Discrete Laplace noise Y of scale t = floor(sigma) + 1 is accepted with probability exp(-(|Y| - sigma^2/t)^2/(2
    sigma^2)) (Canonne, Kamath and Steinke 2020, Algorithm 3).

    Parameters
    ----------
    sigma : float or array_like, shape (n,)
        Positive, at most 2^44.
    n : int
        Number of draws, at least 0.
    random : Randomness
        Source of the bits.

    Returns
    -------
    ndarray of int64, shape (n,)

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
    """Draw continuous Laplace noise rounded to the nearest whole number: P(|X| >= k) = exp(-(k - 1/2)/scale), k >= 1.

    Rounding is post-processing: it increases no divergence between two laws, of one draw or of several together.

    Parameters
    ----------
    scale : float or array_like, shape (n,)
        Scale of the continuous noise, positive, at most 2^44.
    n : int
        Number of draws, at least 0.
    random : Randomness
        Source of the bits.

    Returns
    -------
    ndarray of int64, shape (n,)

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
    """Draw continuous normal noise rounded to the nearest whole number: P(X <= k) = Phi((k + 1/2)/sigma).

    An exponential E = -log U is accepted with probability exp(-(E - 1)^2/2), which makes it half-normal (von Neumann
    1951), then multiplied by sigma, rounded and given a fair sign. Rounding is post-processing; see `rounded_laplace`.

    Parameters
    ----------
    sigma : float or array_like, shape (n,)
        Standard deviation of the continuous noise, positive, at most 2^44.
    n : int
        Number of draws, at least 0.
    random : Randomness
        Source of the bits.

    Returns
    -------
    ndarray of int64, shape (n,)

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
    """Return floor(offset - scale log U), shape of scale, and a fair bit for each, to be used as a sign.

    U is made from 63 bits of a random word; the remaining bit is the sign.
    """
    words = random.words(scale.size)
    whole, unsure = _rounded(words, _logs(words), scale, offset)
    for i in np.flatnonzero(unsure):
        lazy = _lazy(int(words[i]) >> 1, 63, random)
        whole[i] = lazy.floor_exponential(Fraction(float(scale[i])), Fraction(offset), int(whole[i]))
    return whole, (words & np.uint64(1)).astype(np.bool_)


def _logs(words: Words) -> FloatArray:
    """Return log((V + 1/2)/2^63) element-wise, V being the upper 63 bits of a word."""
    u = (words >> np.uint64(1)).astype(np.float64)
    u += 0.5
    u *= 2.0**-63
    return np.log(u, out=u)


def _rounded(words: Words, logs: FloatArray, scale: FloatArray, offset: float) -> tuple[Integers, NDArray[np.bool_]]:
    """Return floor(offset - scale log U) in double precision, and a mask of elements where rounding leaves it open."""
    y = offset - scale * logs
    doubt = scale * (1.0 - logs)
    doubt *= 2.0**-48
    doubt += 2.0**-50
    whole = np.floor(y)
    y -= whole
    unsure = (y < doubt) | (y > 1.0 - doubt) | (words < _SMALL)
    return whole.astype(np.int64), unsure


def _compare_exp(words: Words, gamma: FloatArray, doubt: FloatArray) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return whether U < exp(-gamma), element-wise, and a mask of the elements where rounding leaves it open.

    U lies in [W, W+1)/2^64 for a word W; gamma is known up to an absolute error ``doubt``.
    """
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


# ------------------------------------------------------------------ wide gaussian
# Discrete normal noise of large scale, from one table: a weighted sum of draws of one fixed, narrow law.
#
# If X and Y are discrete normal of scales sB and B on the whole numbers, X + aY has probabilities proportional to
# exp(-k^2/(2 B^2 (s^2 + a^2))) times the sum of a normal curve of scale B s/sqrt(s^2 + a^2) over a shifted lattice of
# step 1. Where that scale is at least 3, Poisson summation makes the sum constant up to a factor within 1e-76 of 1
# (Micciancio and Peikert 2013, Theorem 3.3, with the error written out). So a_1 = 1, a_2, a_3, ... give any large scale
# B sqrt(a_1^2 + a_2^2 + ...), each addend by one look into a table of the law of scale B = 256.
#
# **The table is exact.** With F the distribution function, U uniform and v its first 64 bits, the draw is the least x
# with U < F(x), and v decides it unless v = floor(2^64 F(x)) for some x. The first 16 bits of v decide 97 draws in 100.
# The about 2^-52 of all draws that v leaves open are decided by as many further bits as it takes.

BASE = 256
"""Scale of the discrete normal distribution in the table."""
SMALLEST_WIDE = 2.0**15
"""Smallest scale of `wide_gaussian`; below it, neighbouring scales reachable with whole a_2, a_3 are too far apart."""
WIDENING = 1e-3
"""Upper bound on the relative excess of the drawn scale over the requested one."""

_REACH = (BASE * BASE - 9) // 9
"""Largest (a/s)^2 for which Poisson summation applies: 3^2 (s^2 + a^2) <= B^2 s^2."""
_GUARD = 64  # bits beyond those asked for, which absorb all roundings
_OPEN = np.int16(-(2**15))
_DRAWS = 1 << 15  # draws at a time: temporaries stay in cache
_CANDIDATES = 64


class Cumulative(NamedTuple):
    """Bounds on a distribution function F on whole numbers: lower[i] <= 2^bits F(first + i) < upper[i].

    Parameters
    ----------
    first : int
        Smallest number listed.
    lower, upper : list of int
        The bounds, non-decreasing.
    """

    first: int
    lower: list[int]
    upper: list[int]


@lru_cache(maxsize=8)
def cumulative(bits: int) -> Cumulative:
    """Enclose the distribution function of the discrete normal distribution of scale `BASE`, in units of 2^-bits.

    Parameters
    ----------
    bits : int
        Precision of the bounds, at least 1.

    Returns
    -------
    Cumulative
        From the first number whose chance is above 2^-(bits + 64) to its negative.
    """
    work = bits + _GUARD
    down, up = _weights(work)
    # the weights that are not listed: a geometric series, as their ratio is below 1 - 1/BASE from BASE + 1 on
    tail = BASE * up[-1]
    least = 2 * sum(down) - down[0]
    most = 2 * (sum(up) + tail) - up[0]
    lower: list[int] = []
    upper: list[int] = []
    below, above = 0, tail
    for x in range(1 - len(down), len(down)):
        below, above = below + down[abs(x)], above + up[abs(x)]
        lower.append((below << bits) // most)
        upper.append(min(-(-(above << bits) // least), 1 << bits))
    return Cumulative(1 - len(down), lower, upper)


def _weights(work: int) -> tuple[list[int], list[int]]:
    """Return lower and upper whole numbers around 2^work exp(-x^2/(2 BASE^2)) for x = 0, 1, ...

    The lists end where the lower bounds reach 0.
    """
    one = 1 << work
    low, high = exp_bounds(Fraction(1, 2 * BASE * BASE), work)
    down, up = [one], [one]
    ratio = [low, high]  # exp(-(2 x + 1)/(2 BASE^2)) at x = 0
    factor = [low * low >> work, -(-high * high >> work)]
    while down[-1]:
        down.append(down[-1] * ratio[0] >> work)
        up.append(-(-up[-1] * ratio[1] >> work))
        ratio = [ratio[0] * factor[0] >> work, -(-ratio[1] * factor[1] >> work)]
    return down, up


class _Table(NamedTuple):
    """Lookup table from the leading bits of a uniform number U to the number drawn.

    Parameters
    ----------
    first : int
        The number whose value of F is ``ends[0]``.
    ends : ndarray of uint64
        floor(2^64 F(x)), x from ``first`` on.
    guide : ndarray of int16, shape (2^16,)
        The number drawn, by the first 16 bits of U; `_OPEN` where more bits are needed.
    """

    first: int
    ends: Words
    guide: NDArray[np.int16]


@lru_cache(maxsize=1)
def _table() -> _Table:
    first, lower, upper = cumulative(64 + _GUARD)
    ends = [low >> _GUARD for low in lower]
    if ends != [(high - 1) >> _GUARD for high in upper]:  # pragma: no cover
        raise AssertionError("64 guard bits do not settle the table")
    words = np.array(ends, dtype=np.uint64)
    starts = np.arange(2**16, dtype=np.uint64) << np.uint64(48)
    guide = (first + np.searchsorted(words, starts)).astype(np.int16)
    guide[words >> np.uint64(48)] = _OPEN
    return _Table(first, words, guide)


def _base(n: int, random: Randomness) -> NDArray[np.int16]:
    """Draw n numbers from the discrete normal distribution of scale `BASE`."""
    first, ends, guide = _table()
    leading = random.words(-(-n // 4)).view(np.uint16)[:n]
    drawn = guide[leading]
    unsettled = np.flatnonzero(drawn == _OPEN)
    words = (leading[unsettled].astype(np.uint64) << np.uint64(48)) | (random.words(unsettled.size) >> np.uint64(16))
    places = np.searchsorted(ends, words)
    drawn[unsettled] = first + places
    for at in np.flatnonzero(ends[places] == words):
        drawn[unsettled[at]] = _settled(LazyUniform(int(words[at]), 64, lambda: int(random.words(1)[0])))
    return drawn


def _settled(uniform: LazyUniform) -> int:
    """Return the smallest x with U < F(x), drawing bits of U until it is certain."""
    while True:
        uniform.extend()
        first, lower, upper = cumulative(uniform.bits)
        place = bisect_left(lower, uniform.value + 1)  # the least with value + 1 <= lower: U < F there
        if 0 < place < len(lower) and uniform.value >= upper[place - 1]:
            return first + place


@lru_cache(maxsize=4096)
def layers(scale: float) -> tuple[int, ...]:
    """Return factors a_1 = 1, a_2, ... with BASE sqrt(a_1^2 + a_2^2 + ...) at least ``scale`` and barely above it.

    Parameters
    ----------
    scale : float
        From `SMALLEST_WIDE` to 2^44.

    Raises
    ------
    InvalidInput
        If the scale is out of range.

    Examples
    --------
    >>> layers(1e6)
    (1, 46, 3906)
    """
    if not SMALLEST_WIDE <= scale <= LARGEST_SCALE:
        raise InvalidInput(
            f"the scale of wide noise must lie in [{SMALLEST_WIDE:g}, {LARGEST_SCALE:g}]; got {shown(scale)}"
        )
    target = math.ceil(Fraction(scale) ** 2 / BASE**2)
    chain, squares = [1], 1
    while True:  # inner layers as wide as can be, until two more are enough
        widest = math.isqrt(_REACH * squares)
        pairs = [
            (inner, outer)
            for inner in range(min(widest, math.isqrt(target)), 0, -1)[:_CANDIDATES]
            for rest in (target - squares - inner**2,)
            for outer in (math.isqrt(max(rest - 1, 0)) + 1,)
            if outer**2 <= _REACH * (squares + inner**2)
        ]
        if pairs:
            inner, outer = min(pairs, key=lambda pair: pair[0] ** 2 + pair[1] ** 2)
            return (*chain, inner, outer)
        chain.append(widest)
        squares += widest**2


def wide_gaussian(scale: float, n: int, random: Randomness) -> NDArray[np.int64]:
    """Draw discrete normal noise whose scale is at least ``scale`` and exceeds it by less than one part in a thousand.

    Parameters
    ----------
    scale : float
        From `SMALLEST_WIDE` to 2^44.
    n : int
        Number of draws, at least 0.
    random : Randomness
        Source of the bits.

    Returns
    -------
    ndarray of int64, shape (n,)
        Independent; every probability within a relative 1e-75 of the discrete normal law of scale
        BASE sqrt(a_1^2 + a_2^2 + ...), the factors being those of `layers`.

    Raises
    ------
    InvalidInput
        If the scale is out of range.
    """
    factors = layers(float(scale))
    out = np.empty(n, dtype=np.int64)
    for start in range(0, n, _DRAWS):
        part = out[start : start + _DRAWS]
        part[:] = _base(part.size, random)
        for factor in factors[1:]:
            part += np.multiply(_base(part.size, random), factor, dtype=np.int64)
    return out
