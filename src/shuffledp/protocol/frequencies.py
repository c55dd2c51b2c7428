"""Frequencies from the shuffled reports alone, with standard errors and confidence intervals.

Every estimate is one linear formula. With p_i, q_i the chances, as drawn, that report i supports its own record's
category and that it supports another one, and coefficients a_i >= 0 with sum_i a_i (p_i - q_i) = 1,

    f_j = sum_i a_i (1[report_i supports j] - q_i),  E f_j = sum_i w_i 1[record_i = j],  w_i = a_i (p_i - q_i)   (E)

- a_i = 1 / sum (p - q): needs the counts of support and nothing else. GSPA Algorithm 2 for two categories, where
  sum (p - q) = n - 2 sum s and sum q = sum s; w_i is proportional to p_i - q_i.
- a_i = 1 / (n (p_i - q_i)): every user counts the same. Summed by level it is the stratified estimate with
  weights n_g/n.
- a_i proportional to (p_i - q_i)/(s_i (1 - s_i)), s_i = q_i + (p_i - q_i)/k: inverse-variance weights, exact where
  every record is a fair draw over the categories (for randomized response s = 1/k: proportional to p_i - q_i).

**What is random.** The records are a fixed data set, and its frequency is the target: only the randomizers are
random, and, wherever the w_i differ, the assignment of budgets to users, taken to be independent of the records.
The variance is, with f the target,

    sum a_i^2 (q_i (1 - q_i) + (p_i - q_i) (1 - p_i - q_i) 1[record_i = j])
        + f (1 - f) (sum w_i^2 - 1/n) n/(n-1)                                                                  (V)

as p (1-p) - q (1-q) = (p - q)(1 - p - q). Records are replaced by the estimate (`seen="reports"`), or by the unbiased
estimate level by level (`seen="levels"`). Where the estimate stands for them its own error counts: with kappa the
factor of f in the first sum, the score interval of Wilson (1927) at two standard errors is centred at f_j + 2 kappa,
and that value is put in; it adds 2 kappa^2, of order 1/n^2, and never takes away. If budgets do depend on the
records, (E) without levels is still unbiased, for the (p - q)-weighted frequency.

**Exact sums.** Without levels all a_i are equal, so counts are whole numbers, and the sums over budgets are sums of
whole multiples of 2^-76: reports may come in any order and pieces (`FrequencyTally.merge`), the answer is the same to
the last bit. With levels it is the same up to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import InvalidInput
from shuffledp.numerics.interval import FloatArray
from shuffledp.protocol.estimate import Estimate
from shuffledp.protocol.shuffler import SHUFFLED, ShuffledReports
from shuffledp.protocol.weights import WEIGHTS, Weights
from shuffledp.randomizers.base import FrequencyOracle, SupportLaw
from shuffledp.randomizers.checks import local_budgets
from shuffledp.setting import Seen

_CHUNK = 1 << 15  # budgets at a time: few enough for exact sums
_CHUNK_ALL = 1 << 13  # the same where all are different: temporaries stay in cache
_WEIGHTED = 1 << 20  # weighted reports at a time
_UNIT = 2**76  # exact sums are whole multiples of its inverse


class Sums(NamedTuple):
    """The sums in (E) and (V) over coefficients b_i that lack their common factor: a_i = scale b_i.

    Parameters
    ----------
    counts : ndarray, shape (k,)
        sum b_i 1[report_i supports j].
    own_counts : ndarray, shape (k,)
        sum b_i^2 (1 - p_i - q_i) 1[report_i supports j]; 0 without levels.
    wrong : float
        sum b_i q_i.
    drawn : float
        sum b_i^2 q_i (1 - q_i).
    own : float
        sum b_i^2 (p_i - q_i) (1 - p_i - q_i).
    weights_total, weights_squared : float
        Sums of b_i (p_i - q_i) and of its square.
    own_wrong, own_least, own_most : float
        sum b_i^2 (1 - p_i - q_i) q_i, and the sums of the negative and of the positive terms of `own`; with levels.
    largest : float
        max b_i.
    n, uninformative : int
        Reports, and those with p = q.
    """

    counts: FloatArray
    own_counts: FloatArray
    wrong: float
    drawn: float
    own: float
    weights_total: float
    weights_squared: float
    own_wrong: float
    own_least: float
    own_most: float
    largest: float
    n: int
    uninformative: int

    @property
    def scale(self) -> float:
        """What makes the weights add to 1."""
        return 1.0 / self.weights_total


_SCALARS = Sums._fields[2:10]
"""The sums that are one number each: those that have terms."""


class FrequencyTally:
    """All that a frequency estimate needs of the reports so far; its size does not depend on their number.

    Parameters
    ----------
    randomizer : FrequencyOracle
        The member of the family that draws the reports, with one shape of report (`for_budgets`).
    seen : {"reports", "sum", "levels"}
        "levels": `add` is told the budget of each report. Else which budgets there are, in any order.
    weights : {"population", "precision"}
        As for `frequency`.

    Raises
    ------
    InvalidInput
        If `seen` or `weights` is unknown.

    Examples
    --------
    >>> from shuffledp.randomizers import RandomizedResponse
    >>> monday, tuesday = (FrequencyTally(RandomizedResponse(2), seen="reports") for _ in range(2))
    >>> monday.add(np.array([0, 1]), 700.0)
    >>> tuesday.add(np.array([1, 1]), 700.0)
    >>> monday.merge(tuesday)
    >>> monday.estimate().value.round(6).tolist()
    [0.25, 0.75]
    """

    def __init__(self, randomizer: FrequencyOracle, *, seen: Seen, weights: Weights = "population") -> None:
        if seen not in SHUFFLED:
            raise InvalidInput(f"reports are tallied as one of {', '.join(SHUFFLED)}; got {seen!r}")
        if weights not in WEIGHTS:
            raise InvalidInput(f"weights must be one of {', '.join(WEIGHTS)}; got {weights!r}")
        self.randomizer = randomizer
        self.seen: Seen = seen
        self.weights: Weights | None = weights if seen == "levels" else None
        self.n = 0
        self._uninformative = 0
        self._largest = 0.0
        self._counts = np.zeros(randomizer.k)
        self._own_counts = np.zeros(randomizer.k if self.weights else 1)
        self._totals: list[float] | list[int] = [0] * len(_SCALARS)

    def add(self, reports: NDArray[Any], epsilons: ArrayLike) -> None:
        """Count more reports.

        Parameters
        ----------
        reports : ndarray, first axis n
            As the randomizer drew them.
        epsilons : float or array_like, shape (n,)
            Local budgets, nats: one for all, or one each. With levels entry i is the budget of report i.

        Raises
        ------
        InvalidInput
            If the reports are not the randomizer's, a budget is bad, or the lengths differ. Nothing is counted then.
        """
        budgets = local_budgets(epsilons)
        n = reports.shape[0] if reports.ndim else 0
        if reports.ndim == 0 or (budgets.ndim and budgets.shape != (n,)):
            raise InvalidInput(f"{n} reports need as many budgets, or one; got {budgets.size}")
        if n == 0:
            return
        if budgets.ndim and budgets.strides == (0,):
            budgets = budgets[0]  # one budget, written n times
        if self.weights is None:
            self._take(self.randomizer.support_counts(reports), 0.0, budgets, n)
            return
        for start in range(0, n, _WEIGHTED):
            part = reports[start : start + _WEIGHTED]
            own = budgets[start : start + _WEIGHTED] if budgets.ndim else np.full(part.shape[0], budgets)
            law = self.randomizer.support_law(own)
            b = self._coefficients(law)
            shaken = b * b * _balance(law)
            counts = self.randomizer.support_counts(part, b)
            self._take(counts, self.randomizer.support_counts(part, shaken), own, part.shape[0])

    def merge(self, other: FrequencyTally) -> None:
        """Add what another tally of the same task has counted.

        Raises
        ------
        InvalidInput
            If it is of another randomizer, another `seen` or other weights.
        """
        mine, theirs = self._task(), other._task()
        if mine != theirs:
            raise InvalidInput(f"tallies of different tasks cannot be merged: {mine} and {theirs}")
        self._counts += other._counts
        self._own_counts += other._own_counts
        self._totals = [a + b for a, b in zip(self._totals, other._totals, strict=True)]
        self._largest = max(self._largest, other._largest)
        self._uninformative += other._uninformative
        self.n += other.n

    def sums(self) -> Sums:
        """Return the sums of (E) and (V).

        Raises
        ------
        InvalidInput
            If no report carries information.
        """
        if self._uninformative == self.n:
            why = "every epsilon0 is 0 or too small; give some users a larger one" if self.n else "there are none"
            raise InvalidInput(f"no report carries information ({why}); nothing can be estimated")
        unit = _UNIT if self.weights is None else 1
        totals = {name: total / unit for name, total in zip(_SCALARS, self._totals, strict=True)}
        return Sums(
            self._counts, self._own_counts, **totals, largest=self._largest, n=self.n, uninformative=self._uninformative
        )

    def estimate(self) -> Estimate:
        """Estimate the frequency of each category from what was counted; see `frequency`."""
        sums = self.sums()
        n, scale = sums.n, sums.scale
        value = (sums.counts - sums.wrong) * scale
        shares = np.clip(value, 0.0, 1.0)
        centring = 2.0 * sums.own * scale**2  # 2 kappa
        if self.weights is None:
            own = sums.own * np.clip(shares + centring, 0.0, 1.0)
        else:
            own = np.clip(sums.own_counts - sums.own_wrong + centring * sums.own, sums.own_least, sums.own_most)
        uneven = max(sums.weights_squared * scale**2 - 1.0 / n, 0.0)
        assigned = shares * (1.0 - shares) * uneven * n / max(n - 1, 1)
        variance = (sums.drawn + own) * scale**2 + assigned
        return Estimate(value, np.sqrt(variance), sums.largest * scale, (0.0, 1.0), sums.uninformative)

    def _task(self) -> tuple[FrequencyOracle, bool, Weights | None]:
        """What must agree: with levels withheld it does not matter from whom."""
        return self.randomizer, self.weights is not None, self.weights

    def _take(self, counts: FloatArray, own_counts: FloatArray | float, budgets: FloatArray, n: int) -> None:
        """Add n reports, counted already, and the sums over their budgets; all or nothing."""
        totals, largest, uninformative = list(self._totals), self._largest, self._uninformative
        add = _exact_sum if self.weights is None else _float_sum
        for levels, users in _grouped(budgets, n):
            law = self.randomizer.support_law(levels)
            apart = law.own - law.other
            b = self._coefficients(law)
            terms = _terms(law, apart) if self.weights is None else _weighted_terms(law, apart, b)
            for place, total in enumerate(add(terms, users)):
                totals[place] += total
            largest = max(largest, float(b.max()))
            uninformative += int(np.sum(users * (apart <= 0.0)))
        self._totals, self._largest, self._uninformative = totals, largest, uninformative
        self._counts += counts
        self._own_counts += own_counts
        self.n += n

    def _coefficients(self, law: SupportLaw) -> FloatArray:
        """Give the a_i of (E) up to their common factor."""
        apart = law.own - law.other
        if self.weights is None:
            return np.ones_like(apart)  # sums of ones are exact counts
        if self.weights == "precision":
            share = law.other + apart / self.randomizer.k
            return apart / (share * (1.0 - share))
        return np.divide(1.0, apart, out=np.zeros_like(apart), where=apart > 0.0)


def frequency(shuffled: ShuffledReports, randomizer: FrequencyOracle, *, weights: Weights = "population") -> Estimate:
    """Estimate the frequency of each category from shuffled reports.

    Parameters
    ----------
    shuffled : ShuffledReports
        Seen "reports" or "sum": the coefficients are all equal. Seen "levels": by `weights`.
    randomizer : FrequencyOracle
        The member of the family that drew the reports.
    weights : {"population", "precision"}
        Seen "levels" only. "population": every informative user counts the same, right even if budgets depend on
        the records; a tiny budget's noise counts in full, so its standard error can be large. "precision": least
        noise, right only if budgets do not depend on the records. Either way users without information (p = q:
        epsilon0 = 0, or below about 1e-15) have weight 0: they are taken to be like the others.

    Returns
    -------
    Estimate
        Shape (k,), support (0, 1). Its variance is (V).

    Raises
    ------
    InvalidInput
        If no report carries information, `weights` is unknown, or the reports are not the randomizer's.

    Examples
    --------
    >>> from shuffledp.randomizers import RandomizedResponse
    >>> shuffled = ShuffledReports(np.array([0, 1, 1, 1]), np.full(4, 700.0), seen="reports")
    >>> frequency(shuffled, RandomizedResponse(2)).value.round(6).tolist()
    [0.25, 0.75]
    """
    tally = FrequencyTally(randomizer, seen=shuffled.seen, weights=weights)
    tally.add(shuffled.reports, shuffled.epsilons)
    return tally.estimate()


def _terms(law: SupportLaw, apart: FloatArray) -> FloatArray:
    """Terms of the scalar sums in the order of `Sums`, b = 1, one sum a row; those that are always 0 are left out."""
    return np.stack((law.other, law.other * (1.0 - law.other), apart * _balance(law), apart, apart * apart))


def _weighted_terms(law: SupportLaw, apart: FloatArray, b: FloatArray) -> FloatArray:
    """Terms of the scalar sums in the order of `Sums`, one sum a row."""
    scales = np.stack((b, *(b * b,) * 2, b, b * b))
    own = scales[2] * apart * _balance(law)
    shaken = scales[2] * law.other * _balance(law)
    return np.concatenate((scales * _terms(law, apart), (shaken, np.minimum(own, 0.0), np.maximum(own, 0.0))))


def _balance(law: SupportLaw) -> FloatArray:
    """1 - p - q, never too small: p is rounded, which must not turn a tiny variance into none."""
    return 1.0 - law.own - law.other + 2.0**-52


def _grouped(budgets: FloatArray, n: int) -> Iterator[tuple[FloatArray, NDArray[np.int64] | int]]:
    """Budgets and how many users have each, piece by piece; counted where few are different, for speed alone."""
    few = 4 * np.unique(budgets[:1024]).size <= 1024 if budgets.ndim else True
    for start in range(0, n, _CHUNK):
        part = budgets[start : start + _CHUNK] if budgets.ndim else budgets.reshape(1)
        if not budgets.ndim:
            yield part, min(_CHUNK, n - start)
        elif few:
            levels, users = np.unique(part, return_counts=True)
            few = 4 * levels.size <= part.size
            yield levels, users
        else:
            yield from ((part[inner : inner + _CHUNK_ALL], 1) for inner in range(0, part.size, _CHUNK_ALL))


def _exact_sum(terms: FloatArray, users: NDArray[np.int64] | int) -> list[int]:
    """Sums of users * terms along the rows, in units of 2^-76, each term rounded to whole ones.

    For terms in [-1, 1] and at most 2^15 users. Rounding to a multiple of 2^-38 leaves 53 bits, so products and sums
    below 2^15 are exact, in any order; what is left is below 2^-38, and goes the same way in multiples of 2^-76.
    """
    coarse = terms + 1.5 * 2.0**14
    coarse -= 1.5 * 2.0**14
    rest = terms - coarse
    rest += 1.5 * 2.0**-24
    rest -= 1.5 * 2.0**-24
    high, low = ((part * users if np.ndim(users) else part).sum(axis=-1) * 2.0**76 for part in (coarse, rest))
    times = 1 if np.ndim(users) else int(users)
    return [times * (int(one) + int(two)) for one, two in zip(high.tolist(), low.tolist(), strict=True)]


def _float_sum(terms: FloatArray, users: NDArray[np.int64] | int) -> list[float]:
    return (terms * users).sum(axis=-1).tolist()
