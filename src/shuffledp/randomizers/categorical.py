"""Randomized response over k categories: keep the record, or report a uniformly random category."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import InvalidInput
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.randomizers.base import PairBlanket, PairCounts
from shuffledp.randomizers.two_level import third_record

MAX_CATEGORIES = 10**9
MAX_CHANNEL = 4096
"""Most categories for which `channel` writes the k by k matrix out (128 MiB)."""

_CHUNK = 1 << 17  # rows at a time: bounds the temporaries, and they stay in cache
_MARGIN = 2.0**-46  # far above the few ulp (2^-53 each) by which exp, expm1 and four operations can err


class SampledLaw(NamedTuple):
    """The law that is drawn, element by element; the two masses add to 1 up to one rounding.

    Parameters
    ----------
    keep : ndarray
        Probability of reporting the record as it is: an integer over 2^64.
    blanket : ndarray
        Probability of reporting a uniformly random category instead, the record's own among them.
    """

    keep: FloatArray
    blanket: FloatArray


@dataclass(frozen=True)
class RandomizedResponse:
    """k-ary randomized response, a family over personal budgets (a mixture family).

    With probability 1 - gamma the report is the record, with probability gamma = k/(e^epsilon0 + k - 1) it is
    uniform on the k categories. So each wrong category is reported with probability s = 1/(e^epsilon0 + k -
    1) and the right one with e^epsilon0 s.

    Parameters
    ----------
    k : int
        Number of categories, from 2 to 1e9; records and reports are 0..k-1.

    Raises
    ------
    InvalidInput
        If k is not a whole number in that range.

    Examples
    --------
    >>> RandomizedResponse(3).channel(0.0).round(3).tolist()
    [[0.333, 0.333, 0.333], [0.333, 0.333, 0.333], [0.333, 0.333, 0.333]]
    """

    k: int

    def __post_init__(self) -> None:
        whole = isinstance(self.k, int | np.integer) and not isinstance(self.k, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not (whole and 2 <= self.k <= MAX_CATEGORIES):
            raise InvalidInput(f"randomized response takes a whole number k from 2 to {MAX_CATEGORIES}; got {self.k!r}")
        object.__setattr__(self, "k", int(self.k))

    @property
    def name(self) -> str:
        """``"rr"`` for two categories, ``"krr:K"`` otherwise."""
        return "rr" if self.k == 2 else f"krr:{self.k}"

    def channel(self, epsilon0: float) -> FloatArray:
        """P(report | record) at one budget.

        Parameters
        ----------
        epsilon0 : float
            Local budget, nats, at least 0.

        Returns
        -------
        ndarray, shape (k, k)
            Row x is the law of the report of record x; correct to a few ulp of each entry.

        Raises
        ------
        InvalidInput
            On a bad budget, or more than 4096 categories (the matrix would not fit; its entries are in the
            class's formula).
        """
        if self.k > MAX_CHANNEL:
            raise InvalidInput(
                f"a channel matrix of {self.k} categories is too large; up to {MAX_CHANNEL} are written out"
            )
        _, blanket = self._masses(_budget(epsilon0))
        matrix = np.full((self.k, self.k), float(blanket) / self.k)
        np.fill_diagonal(matrix, 1.0 / (1.0 + (self.k - 1) * np.exp(-float(epsilon0))))
        return matrix

    @property
    def mixture(self) -> bool:
        """One blanket, uniform on the categories, for every budget."""
        return True

    @property
    def two_point(self) -> bool:
        """Whether there are two categories."""
        return self.k == 2

    def check_budgets(self, epsilon0: ArrayLike, delta0: ArrayLike) -> None:
        """Any pure budget is served, and an approximate one by its pure part."""
        del epsilon0, delta0

    def pair_blankets(self, epsilon0: float) -> tuple[PairBlanket, ...]:
        """Any two categories x0, x1 against the uniform blanket on k categories.

        The cells are x0, x1 and, for k > 2, the categories that tell nothing about x0 against x1: masses
        (1/k, 1/k, (k-2)/k), ratios of x0's report k s (e^epsilon0, 1, 1), of x1's k s (1, e^epsilon0, 1).

        Parameters
        ----------
        epsilon0 : float
            Local budget, nats, at least 0.
        """
        _, blanket = self._masses(_budget(epsilon0))
        wrong = float(blanket)  # k s
        right = self.k / (1.0 + (self.k - 1) * float(np.exp(-float(epsilon0))))  # k e^epsilon0 s
        cells = 2 if self.k == 2 else 3
        masses = np.array([1.0, 1.0, self.k - 2.0])[:cells] / self.k
        ratios0 = np.array([right, wrong, wrong])[:cells]
        ratios1 = np.array([wrong, right, wrong])[:cells]
        losses = np.array([1.0, -1.0, 0.0])[:cells] * float(epsilon0)
        return (PairBlanket(gamma=wrong, masses=masses, ratios0=ratios0, ratios1=ratios1, losses=losses),)

    def pair_counts(self, epsilon0: ArrayLike) -> PairCounts | None:
        """Chances of the two categories x0 and x1 themselves; None for k = 2.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, at least 0.
        """
        if self.k == 2:
            return None
        budgets = _budget(epsilon0)
        wrong = self._masses(budgets)[1] / self.k
        return PairCounts(1.0 / (1.0 + (self.k - 1) * np.exp(-budgets)), wrong, (self.k - 2) * wrong, wrong)

    def blanket_mass(self, epsilon0: ArrayLike) -> FloatArray:
        """Chance gamma = k/(e^epsilon0 + k - 1) of a uniformly random report, at each budget.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, at least 0.

        Returns
        -------
        ndarray, shape of epsilon0
            To a few ulp of each entry.
        """
        return self._masses(_budget(epsilon0))[1]

    def witness_pairs(self, epsilon0: float) -> tuple[PairBlanket, PairBlanket] | None:
        """Two categories against a third one, the same in both orders; None for k = 2.

        Parameters
        ----------
        epsilon0 : float
            Local budget, nats, at least 0.
        """
        if self.k == 2:
            return None
        pair = third_record(float(_budget(epsilon0)), (self.k - 3.0, 1.0, 0.0, 0.0))
        return pair, pair

    def keep_thresholds(self, epsilon0: ArrayLike) -> NDArray[np.uint64]:
        """Integers K such that the record is kept with probability exactly K / 2^64.

        The mechanism that is drawn, not its formula, is epsilon0-LDP. With blanket mass g = 1 - K/2^64 the
        likelihood ratio of two records at any report is at most 1 + k (1-g)/g, which is at most e^epsilon0 if
        and only if g >= gamma. K is therefore rounded so that g >= gamma holds whatever the rounding
        errors: from the smaller of gamma (up) and 1 - gamma (down), with a relative margin of 2^-46. As K
        is at most 2^64 - 1, g is at least 2^-64 even where gamma is smaller (epsilon0 beyond about 44):
        more private. At epsilon0 = 0 K is 0, and the report is exactly uniform.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, at least 0.

        Returns
        -------
        ndarray of uint64, shape of epsilon0
        """
        keep, blanket = self._masses(_budget(epsilon0))
        # Multiplying by 2^64 is exact. The caps only keep the branch that is not chosen within 64 bits.
        from_keep = np.floor(np.minimum(keep, 0.75) * (1.0 - _MARGIN) * 2.0**64).astype(np.uint64)
        lifted = np.minimum(blanket, 0.75) * (1.0 + _MARGIN)
        from_blanket = np.maximum(np.ceil(lifted * 2.0**64), 1.0).astype(np.uint64)
        return np.where(keep <= 0.5, from_keep, _complement(from_blanket))

    def sampled_law(self, epsilon0: ArrayLike) -> SampledLaw:
        """Keep and blanket probabilities as drawn, which is what estimators invert.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, at least 0.

        Returns
        -------
        SampledLaw
            Each mass is its integer over 2^64, rounded once. Differs from the formula by at most
            2^-46 min(gamma, 1 - gamma) + 2^-64.
        """
        thresholds = self.keep_thresholds(epsilon0)
        keep = thresholds.astype(np.float64) * 2.0**-64
        blanket = _complement(np.maximum(thresholds, 1)).astype(np.float64) * 2.0**-64
        return SampledLaw(keep, np.where(thresholds == 0, 1.0, blanket))

    def randomize(self, records: ArrayLike, epsilon0: ArrayLike, random: Randomness) -> NDArray[np.int64]:
        """One report per record, each under its own budget.

        Parameters
        ----------
        records : array_like of int, shape (n,)
            Categories, 0..k-1.
        epsilon0 : float or array_like, shape (n,)
            Local budgets, nats, at least 0; one for all, or one each.
        random : Randomness
            `secure_random()`, or `simulation_random(seed)` where no privacy is wanted.

        Returns
        -------
        ndarray of int64, shape (n,)
            Categories, 0..k-1, independent of each other given the records.

        Raises
        ------
        InvalidInput
            If a record is not one of the categories (the first such row is named, counting from 1), a budget
            is negative or not finite, or the lengths differ.

        Examples
        --------
        >>> from shuffledp.numerics.randomness import secure_random
        >>> RandomizedResponse(4).randomize([0, 3, 2], 700.0, secure_random()).tolist()
        [0, 3, 2]
        """
        codes = self._codes(records)
        budgets = _budget(epsilon0)
        if budgets.ndim and budgets.shape != codes.shape:
            raise InvalidInput(f"{codes.size} records need as many budgets, or one; got {budgets.size}")
        everyone = None if budgets.ndim else int(self.keep_thresholds(budgets))
        for start in range(0, codes.size, _CHUNK):
            chunk = codes[start : start + _CHUNK]
            keep = self.keep_thresholds(budgets[start : start + _CHUNK]) if everyone is None else everyone
            hidden = np.flatnonzero(~random.bernoulli(keep, chunk.size))
            chunk[hidden] = random.integers(self.k, hidden.size)
        return codes

    def _masses(self, epsilon0: FloatArray) -> tuple[FloatArray, FloatArray]:
        """1 - gamma and gamma, each to a few ulp of itself; written in e^-epsilon0, so nothing overflows."""
        decay = np.exp(-epsilon0)
        whole = 1.0 + (self.k - 1) * decay
        return -np.expm1(-epsilon0) / whole, self.k * decay / whole

    def _codes(self, records: ArrayLike) -> NDArray[np.int64]:
        raw = np.asarray(records)
        if raw.ndim != 1:
            raise InvalidInput(f"records must be one-dimensional; got shape {raw.shape}")
        if raw.size and raw.dtype.kind not in "iu":
            raise InvalidInput(f"records must be whole numbers from 0 to {self.k - 1}; got {raw.dtype} entries")
        bad = (raw < 0) | (raw >= self.k)
        if bad.any():
            row = int(np.argmax(bad))
            raise InvalidInput(f"record in row {row + 1} is {raw[row]}; it must be a category from 0 to {self.k - 1}")
        return raw.astype(np.int64)


def _complement(count: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """2^64 - count for count >= 1, without leaving 64 bits."""
    return ~count + np.uint64(1)


def _budget(epsilon0: ArrayLike) -> FloatArray:
    budgets = np.asarray(epsilon0, dtype=np.float64)
    valid = (budgets >= 0.0) & np.isfinite(budgets)
    if not valid.all():
        flat = budgets.ravel()
        row = int(np.argmin(valid.ravel()))
        where = f" in row {row + 1}" if budgets.ndim else ""
        raise InvalidInput(f"epsilon0{where} must be a finite number of nats of at least 0; got {flat[row]}")
    return budgets
