"""Vectors bounded in the l2 norm: a seed's random directions, of which those close to the record are likelier."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import InvalidInput, population, whole_number
from shuffledp.numerics.floats import FloatArray, largest_below_one
from shuffledp.numerics.functions import bdtr, bdtrc, betainc, betainccinv, betaincinv, betaln, roots_legendre
from shuffledp.numerics.randomness import Randomness
from shuffledp.numerics.randomness import Words as RandomWords
from shuffledp.randomizers.balls import norms, positive_number
from shuffledp.randomizers.mixing import keep_masses
from shuffledp.randomizers.seeded import SeededFamily

# Random codebooks that a seed stands for, and how far a report chosen from one points towards its record.
#
# A seed names B directions; the codebook is these and their opposites, 2 B codewords. Whoever knows the seed can
# write it down, and nobody needs it to be random for privacy. `topmost_slope` is the mean component, along the
# record, of the kappa codewords closest to it, for directions that are uniform and independent.

Words = NDArray[np.uint64]
Float32 = NDArray[np.float32]

_GOLDEN = 0x9E3779B97F4A7C15
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_NODES = 400
_NEGLIGIBLE = 45.0  # e^-45 < 3e-20: tails left out of the quadrature


def mix(words: Words) -> Words:
    """Return 64-bit words scrambled by a bijection whose output bits look independent.

    It is Stafford's variant 13 of MurmurHash3. The function is frozen: reports drawn by one version are read by
    another. Test vectors stand in the tests.

    Parameters
    ----------
    words : ndarray of uint64
        Words to scramble; not changed.
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
    """Return a 64-bit word for each seed and place: mix(mix(seed + golden) + golden (place + 1)).

    Parameters
    ----------
    seeds : ndarray of uint64, shape (n,)
        The seeds, one per row of the result.
    places : ndarray of uint64, shape (m,)
        The places, one per column.
    """
    keys = mix(seeds + np.uint64(_GOLDEN))
    return mix(keys[:, None] + np.uint64(_GOLDEN) * (places + np.uint64(1)))


def normals(words: Words, width: int, precision: type[np.float32] | type[np.float64] = np.float32) -> NDArray[Any]:
    """Return standard normals from random words, by Box and Muller (1958) on 32 bits each.

    Parameters
    ----------
    words : ndarray of uint64, shape (..., ceil(width / 2))
        Each gives two normals: entry w of the row, and entry ceil(width / 2) + w.
    width : int
        Number of normals in a row.
    precision : float32 or float64
        Type of the result, and of all work. Each entry depends on its own word alone.

    Returns
    -------
    ndarray, shape (..., width)
        Normal variates: at most 6.8 in absolute value, and normal up to the 2^-24 (2^-32) of the format (of the words).
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
    """Return sums along the second axis, added in an order that depends on that axis's length alone.

    NumPy's own sums and products of matrices may differ in the last bit with the number of rows.

    Parameters
    ----------
    terms : ndarray, shape (n, m, ...)
        The terms; m, the length of the second axis, is at least 1.
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
    """Return the mean component along the record of the `likely` codewords that are closest to it.

    The codewords are +-a_j, j < bases, with a_j uniform on the sphere of R^inner and independent, so the closest ones
    are those of the largest |T_j|, T_j the component of a_j along the record. With N(t) ~ Bin(bases, P(|T| > t)),

        m = 1/likely int_0^1 F'(t) E min(likely, N(t)) dt,      P(|T| > t) = I_{1-t^2}((inner-1)/2, 1/2).

    For inner = dimension the record itself lies in R^inner, and F(t) = t. Else the record u is seen through y = G u, G
    a matrix of inner x dimension normals, and a_j stands for the direction of G^T a_j, whose component along u is
    t/sqrt(t^2 + (1-b)/b) with b = |y|^2/(|y|^2 + chi^2_{dimension-1}) ~ Beta(inner/2, (dimension-1)/2); F is its mean.

    Parameters
    ----------
    dimension, inner : int
        Length of a record, and of the directions: inner = dimension, or 2 <= inner <= dimension/2.
    bases, likely : int
        Numbers of pairs of codewords and of close codewords, 1 <= likely <= bases.

    Returns
    -------
    float
        The mean component m, in (0, 1]; by quadrature, to about 1e-9.
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
    """Return the optimum of PrivUnit2 on the sphere: its slope (mean report over record), and the share f of its cap.

    In PrivUnit2 (Bhowmick et al. 2018) a report is uniform on the cap {T >= t}, T its component along the record, or
    uniform on the rest, the former e^epsilon0 times as likely. It is optimal among all randomizers of the sphere if t
    is (Asi, Feldman, Talwar 2022). Its mean is slope times the record, slope = (1 - gamma) E(T | T >= t), and with unit
    reports its error is 1/slope^2 - 1.

    Parameters
    ----------
    dimension : int
        Length of a record, at least 1.
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


MAX_DIMENSION = 10**7
MAX_CODEWORDS = 1 << 14
_WORK = 1 << 17  # normals at a time: temporaries stay in cache
_MOST = 1 << 26  # normals of one user
_FRAME = np.uint64(1 << 40)  # places of the frame's words, beyond those of any codeword
_SLACK = 0.03
_BASES = sorted({round(2.0 ** (step / 2.0)) for step in range(23)} | {3, 5, 7, 10})  # 1, 2, 3, ..., 2048
_Precision = type[np.float32] | type[np.float64]
_INNER = tuple(1 << power for power in range(4, 10))


@dataclass(frozen=True)
class DirectionCodebook(SeededFamily):
    """A random codebook of directions for vectors of length at most `bound`.

    A seed stands for M = `size` codewords: M/2 directions a_j, uniform on the sphere and independent, and their
    opposites. The `close` codewords nearest to the record are e^epsilon0 times as likely as the others. With T_j the
    component of a_j along the record these are sign(T_j) a_j of the largest |T_j|; the mean of the reported codeword is

        E(codeword | x) = (1 - gamma) m x/bound,       m = E(mean of the `close` largest |T_j|).

    M = 2, close = 1 is the hemisphere of Duchi, Jordan, Wainwright (2018); many codewords are PrivUnit2 (Bhowmick et
    al. 2018). Codewords chosen by nearness are those of Isik, Chen, Ozgur, Weissman, No (2023). A vector x inside the
    ball is first moved to x/|x| or -x/|x|, with the chances that keep its mean.

    With `inner` the M/2 directions lie in a random subspace: a_j in R^inner stands for the direction of G^T a_j, G a
    matrix of normals that the seed gives as well. Each is still uniform on the sphere, but they cost inner (dimension +
    M/2) normals instead of dimension M/2; see Asi, Feldman, Nelson, Nguyen, Talwar (2023) for the idea.

    Parameters
    ----------
    dimension : int
        Length d of the vectors, from 1 to 1e7.
    size : int
        Number M of codewords, even, from 2 to 16384.
    close : int
        Number of codewords that are likelier, from 1 to M/2.
    inner : int, optional
        Dimension of the subspace, from 2 to d/2; by default there is none.
    bound : float
        Largest l2 norm of a vector, positive; public. Default 1.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range, or one user's codebook has more than 2^26 entries.

    Examples
    --------
    >>> DirectionCodebook.design(100, 2.0)
    DirectionCodebook(dimension=100, size=64, close=13, inner=None, bound=1.0)
    """

    dimension: int
    size: int
    close: int
    inner: int | None = None
    bound: float = 1.0

    def __post_init__(self) -> None:
        what = "a codebook of directions takes a whole "
        object.__setattr__(self, "dimension", whole_number(self.dimension, what + "dimension", 1, MAX_DIMENSION))
        size = whole_number(self.size, what + "size", 2, MAX_CODEWORDS)
        if size % 2:
            raise InvalidInput(f"codewords come in opposite pairs, so their number must be even; got {size}")
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "close", whole_number(self.close, what + "number of close codewords", 1, size // 2))
        if self.inner is not None:
            inner = whole_number(self.inner, what + "inner dimension", 2, max(self.dimension // 2, 2))
            if 2 * inner > self.dimension:
                raise InvalidInput(f"an inner dimension needs at least 4 dimensions; got {self.dimension}")
            object.__setattr__(self, "inner", inner)
        object.__setattr__(self, "bound", positive_number(self.bound, "bound"))
        if self.normals_per_user > _MOST:
            raise InvalidInput(f"one user's codebook would have {self.normals_per_user} entries, above {_MOST}")

    @classmethod
    def design(
        cls, dimension: int, epsilon0: ArrayLike, counts: ArrayLike = 1, *, bound: float = 1.0, slack: float = _SLACK
    ) -> DirectionCodebook:
        """Return the cheapest codebook whose predicted error is within `slack` of the optimum, or the best one.

        Parameters
        ----------
        dimension : int
            Length of the vectors, from 1 to 1e7.
        epsilon0, counts : array_like, shape () or (levels,)
            Budgets (nats, 0 to 700), and how many users hold each: one codebook for all of them, a mixture family.
        bound : float
            Largest l2 norm of a vector, positive.
        slack : float
            Allowed relative excess of the error 1/slope^2 - 1 over that of PrivUnit2 (`cap_slope`); 0.03 by default.
        """
        budgets, users = population(epsilon0, counts)
        d = whole_number(dimension, "a codebook of directions takes a whole dimension", 1, MAX_DIMENSION)
        size, close, inner = _design(d, tuple(budgets.tolist()), tuple(users.tolist()), float(slack))
        return cls(d, size, close, inner, bound)

    def for_budgets(self, epsilon0: ArrayLike, counts: ArrayLike) -> DirectionCodebook:
        """Return the codebook itself, as reports have the same shape at every budget; `design` adapts it to budgets."""
        del epsilon0, counts
        return self

    @property
    def name(self) -> str:
        """Name on the command line: ``"directions:D:M:CLOSE"``, with the dimension, `codewords` and `likely`.

        If there is a subspace, ``":INNER"`` with its dimension is appended.
        """
        return f"directions:{self.dimension}:{self.size}:{self.close}" + (f":{self.inner}" if self.inner else "")

    @property
    def norm(self) -> str:
        """The norm that bounds records: ``"l2"``."""
        return "l2"

    @property
    def codewords(self) -> int:
        """Number M of codewords of a seed."""
        return self.size

    @property
    def likely(self) -> int:
        """Number of codewords that are close to a record, and so likelier."""
        return self.close

    @property
    def normals_per_user(self) -> int:
        """Number of normal variates that make one user's codebook: the cost of a report."""
        return _cost(self.dimension, self.size // 2, self.inner)

    @property
    def rows(self) -> int:
        """Number of records processed at a time, so that temporary arrays stay small."""
        return max(_WORK // self.normals_per_user, 1)

    @property
    def value_rows(self) -> int:
        """Number of reports read at a time, so that temporary arrays stay small."""
        return max(_WORK // (self.dimension * ((self.inner or 0) + 1)), 1)

    def report_slope(self, epsilon0: ArrayLike) -> FloatArray:
        """Return c with E(value of a report | x) = c x/bound, as drawn, at each budget.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        reach = topmost_slope(self.dimension, self.inner or self.dimension, self.size // 2, self.close)
        return self.sampled_law(epsilon0).keep * reach

    def close_codewords(self, vectors: FloatArray, seeds: RandomWords, random: Randomness) -> NDArray[np.int64]:
        """Return the indices of the `close` codewords nearest to each record, shape (n, close).

        They are in ascending order of pairs of codewords. Opposite records have exactly opposite codewords. Which are
        closest is decided in single precision. This does not affect privacy, since any such set gives the same
        guarantee. If two codewords are equally close up to about 2^-20, another processor may choose the other one.
        """
        lengths = norms(vectors, "l2")
        # x and -x are projected as one vector, whose first entry that is not 0 is positive: so their sets are disjoint
        lead = np.argmax(vectors != 0.0, axis=1)
        negative = vectors[np.arange(lead.size), lead] < 0.0
        units = vectors / np.where(lengths > 0.0, lengths, 1.0)[:, None]
        units[negative] *= -1.0
        units[lengths == 0.0] = np.eye(1, self.dimension)  # any direction: the coin below makes its mean 0
        inward = np.maximum(1.0 - lengths, 0.0) * 2.0**63  # chance (1 - |x|)/2 of the opposite direction
        flipped = negative ^ random.bernoulli(inward.astype(np.uint64), lengths.size)
        along = self._components(units.astype(np.float32), seeds)
        # ascending, as the order in which a partition leaves them depends on the processor
        near = np.sort(np.argpartition(np.abs(along), -self.close, axis=1)[:, -self.close :], axis=1)
        away = np.take_along_axis(along, near, axis=1) < 0.0
        return 2 * near + (away ^ flipped[:, None])

    def _components(self, units: Float32, seeds: RandomWords) -> Float32:
        """Component of each direction along each record, up to a positive factor, shape (n, M/2)."""
        if self.inner is not None:
            units = np.matmul(self._frame(seeds), units[:, :, None])[:, :, 0]
        along = np.empty((seeds.size, self.size // 2), dtype=np.float32)
        block = max(_WORK // (seeds.size * units.shape[1]), 1)
        for start in range(0, along.shape[1], block):
            bases = np.arange(start, min(start + block, along.shape[1]), dtype=np.uint64)
            codes = self._directions(seeds, np.broadcast_to(bases, (seeds.size, bases.size)))
            part = np.matmul(codes, units[:, :, None])[:, :, 0]
            along[:, start : start + block] = part / np.sqrt(np.einsum("nbd,nbd->nb", codes, codes))
        return along

    def _directions(self, seeds: RandomWords, bases: RandomWords, precision: _Precision = np.float32) -> NDArray[Any]:
        """Return the normals of directions `bases`, shape (n, b), of each seed, shape (n, b, inner)."""
        width = self.inner or self.dimension
        half = (width + 1) // 2
        places = bases[:, :, None] * np.uint64(half) + np.arange(half, dtype=np.uint64)
        words = seeded_words(seeds, places.reshape(seeds.size, -1))
        return normals(words.reshape(*bases.shape, half), width, precision)

    def _frame(self, seeds: RandomWords, precision: _Precision = np.float32) -> NDArray[Any]:
        """Return the normals G of each seed, shape (n, inner, dimension)."""
        inner, half = self.inner or 0, (self.dimension + 1) // 2
        places = _FRAME + np.arange(inner * half, dtype=np.uint64)
        return normals(seeded_words(seeds, places[None]).reshape(seeds.size, inner, half), self.dimension, precision)

    def values(self, reports: NDArray[np.int64]) -> Float32:
        """Return the codeword of each report, a unit vector, shape (n, dimension).

        Parameters
        ----------
        reports : ndarray of int64, shape (n,)
            As `randomize` returned them.

        Raises
        ------
        InvalidInput
            If a report is no seed and index.
        """
        seeds, index = self.read(reports)
        vectors = self._directions(seeds, (index >> 1).astype(np.uint64)[:, None])[:, 0]
        if self.inner is not None:
            vectors = np.matmul(vectors[:, None, :], self._frame(seeds))[:, 0]
        vectors /= np.sqrt(np.einsum("nd,nd->n", vectors, vectors))[:, None]
        vectors[(index & 1) == 1] *= np.float32(-1.0)
        return vectors

    @property
    def unit(self) -> float:
        """Power of two of which `whole_values` counts multiples: at most 2^-10/sqrt(d), to make rounding negligible."""
        return 2.0 ** -self.bits[0]

    @property
    def square_unit(self) -> float:
        """The number of which `whole_squares` counts multiples: a 64th of the typical square of an entry."""
        return self.typical_square / 64.0

    @property
    def bits(self) -> tuple[int, int]:
        """Bounds (a, b): |`whole_values`| is at most 2^a, and `whole_squares` at most 2^b."""
        size = math.log2(self.dimension)
        return 10 + math.ceil(size / 2.0), 6 + math.ceil(size)

    def whole_values(self, reports: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the codeword of each report in doubles, rounded to whole multiples of `unit`, shape (n, dimension).

        All work is element by element, but for sums in a fixed order. Where two kinds of processor round a logarithm or
        a sine differently, in the last bit of a double, entries differ with chance 2^-30.
        """
        seeds, index = self.read(reports)
        vectors = self._directions(seeds, (index >> 1).astype(np.uint64)[:, None], np.float64)[:, 0]
        if self.inner is not None:
            vectors = fixed_sum(vectors[:, :, None] * self._frame(seeds, np.float64))
        vectors /= np.sqrt(fixed_sum(vectors * vectors))[:, None] * np.where(index & 1, -1.0, 1.0)[:, None]
        return np.rint(vectors / self.unit).astype(np.int64)

    def whole_squares(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the squares of given `whole_values` in whole multiples of `square_unit`, in the same shape."""
        return np.rint((values * self.unit) ** 2 / self.square_unit).astype(np.int64)

    @property
    def typical_square(self) -> float:
        """Mean square of an entry of a codeword: 1/d, d the dimension."""
        return 1.0 / self.dimension

    @property
    def value_energy(self) -> float:
        """Mean squared length of a report's value, a codeword: 1."""
        return 1.0

    @property
    def largest(self) -> float:
        """Bound on the absolute entries of a codeword; in many dimensions it holds for all but one in 1e8 entries."""
        return min(1.0, 6.0 / math.sqrt(self.dimension))


def _cost(dimension: int, bases: int, inner: int | None) -> int:
    return dimension * bases if inner is None else inner * (dimension + bases)


@lru_cache(maxsize=256)
def _design(
    dimension: int, epsilon0: tuple[float, ...], counts: tuple[float, ...], slack: float
) -> tuple[int, int, int | None]:
    """Size, close and inner of `DirectionCodebook.design`."""
    budgets, users = np.array(epsilon0), np.array(counts)
    best, share = cap_slope(dimension, budgets, users)
    if best == 0.0:
        return 2, 1, None
    wanted = (1.0 + slack) * (best**-2.0 - 1.0)
    inners: list[int | None] = [None, *(inner for inner in _INNER if 2 * inner <= dimension)]
    shapes = [(_cost(dimension, bases, inner), bases, inner) for bases in _BASES for inner in inners]
    designs: list[tuple[float, int, int, int | None]] = []
    for cost, bases, inner in sorted(shapes, key=lambda shape: (shape[0], shape[1], shape[2] or 0)):
        if cost > _MOST:
            break
        for close in sorted({min(max(math.floor(2.0 * bases * share) + step, 1), bases) for step in (0, 1)}):
            kept = float(np.sum(users * keep_masses(budgets, close / (2.0 * bases))[0])) / float(users.sum())
            slope = kept * topmost_slope(dimension, inner or dimension, bases, close)
            error = slope**-2.0 - 1.0
            if error <= wanted:
                return 2 * bases, close, inner
            designs.append((error, 2 * bases, close, inner))
    return min(designs, key=lambda design: design[0])[1:]
