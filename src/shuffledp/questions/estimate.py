"""An estimate from the shuffled reports alone, with its standard error and confidence intervals.

**Intervals that know the range.** The target lies in a known range, and noise may push an unbiased estimate out of it.
The interval around an estimate, cut to the range, would then be short or empty, and would read as certainty. So the
estimate is first moved to the nearest point of the range (Mandelkern and Schultz 2000), and the interval is the half
width to both sides of that point, cut to the range:

- it is never empty, lies in the range, and holds the nearest possible value;
- it covers the target whenever the one around the estimate itself does: for a target in the range, the point nearest
  to the estimate is at most as far from the target as the estimate is;
- inside the range nothing changes, and both ends are continuous in the estimate.

Where the law of a count is known, `shuffledp.questions.estimate` inverts it instead.

Of a share whose estimate is 0 or below it says "at most h", with the half width h, however far below 0 noise has moved
the estimate. At an estimate of exactly 0 the intervals of Feldman and Cousins (1998) say the same (1.96 standard errors
at 95 %); below 0 theirs shrink, though the noise that moved the estimate is no less.

Confidence intervals from the exact law of a count of reports.

Let C be the number of reports that support one category. Person i at level g supports it with chance p_g if it is her
record and with chance q_g <= p_g if it is not, whatever her record is otherwise, independently of the others; dummies
support it by a law of their own. So the law of C depends on the records only through h, the number of people whose
record is the category: it has no other unknown, and no worst case over the other categories has to be taken. Where
people have several levels and nobody sees whose report has which, the levels are dealt to the records at random, as
`shuffledp.questions.frequency` says. With n_g people at level g, n = sum n_g, and the dummies' generating function A,

    sum_h C(n, h) y^h E[x^C | h] = A(x) prod_g ((1 - q_g + q_g x) + y (1 - p_g + p_g x))^{n_g}                     (G)

*Proof.* Expand each person's factor: it is the generating function of her report, with a y if she has the record. The
coefficient of y^h adds up all ways to choose who has it, and each way is as likely as the others. QED

**The interval** (Blaker 2000). Let m(c, h) be the smaller of P(C >= c | h) and P(C <= c | h), and p(c, h) the chance at
h of a count with at most that m. The interval goes from the least to the largest h/n with p(c, h) > miss. The true h is
left out with a chance of at most miss: the counts with p <= miss are those with m at most some m(c', h), where p(c', h)
<= miss, and p(c', h) is their chance. QED

It lies in the interval of equal tails (Clopper and Pearson 1934), all h with m > miss/2: counts with m <= miss/2 form
two tails of at most miss/2 each. C increases stochastically in h, because p_g >= q_g (give one more person the record,
in each dealing), so these h lie between two ends, found by bisection. From there on inwards, steps are passed over in
blocks. On a block from h (inner) to h' (outer), below the estimate, p is at most P(C >= c | h) + P(C <= a | h') with
the largest a for which P(C <= a | h) <= P(C >= c | h): the first tail and a are largest at h, and P(C <= a) is largest
at h'. Above the estimate it is likewise. A block is passed over if that is at most miss. Where the standard error of C
is above `FEW` reports the gain is below 1 %, and ends are those of equal tails.

A count below the median at h = 0 is first moved up to it, and one above the median at h = n down to it. That keeps the
interval from being empty, and an h that belonged to it stays. For a count below the median m is at most P(C <= c | h) <
1/2. Moved, this tail is no smaller, and the other one is P(C >= median | h) >= P(C >= median | 0) >= 1/2: m, and with
it p, is at least as large as before.

**Means of one bit.** A person with the number t in [0, 1] reports a one with chance q + (p - q) t. Of all data sets
with one mean, the one in which everybody has that mean gives C the largest tails. *Proof* for one level and dummies
that are independent of each other. Let f be the law of all reports but two, of chances s and s'. In P(C <= c) the
product s s' has the factor f(c) - f(c - 1), which is not negative up to the mode of f; that mode is at least its mean
less 1 (Darroch 1964), so at least E C - 3. Up to there P(C <= c) grows if both chances become their average (Hoeffding
1956 without dummies), and P(C >= c) likewise from E C + 3 on. QED Nearer to the mean a tail counts as 1; the counts
that leave a mean out are two tails further away. The law prod (1 - s + s x)^n A(x) with s = q + (p - q) t is inverted
over t on a grid of 2^-20; an end is the last step that is kept, so it may be short by less than one step. Several
levels, and dummies of another law, have no such proof, and keep the inequality of `Estimate`.

**Rounding.** Laws are computed by discrete Fourier transforms of (G) on circles. Their windows hold seven standard
errors and 32 reports to either side, and every number of dummies whose law is a table; they leave out less than 1e-10.
Powers of numbers of modulus at most 1 are good to n 2^-52, so chances are good to 1e-9 up to the sizes allowed here; a
tail within `SLACK` of miss/2 counts as above it, and so does a p within twice that of miss, which can widen an interval
and never shorten it. Ends are whole numbers over n (over 2^20), so machines print the same ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import Brief, InvalidInput
from shuffledp.numerics.floats import LARGEST_BELOW_ONE, TINY, FloatArray
from shuffledp.numerics.functions import lambertw, ndtri


@dataclass(frozen=True, eq=False, repr=False)
class Estimate(Brief):
    """An unbiased estimate with its standard error and confidence intervals.

    Parameters
    ----------
    value : ndarray
        The estimate; unbiased, hence not confined to `support`. Shape (k,) for frequencies, () for a mean.
    standard_error : ndarray, shape of value
        Of `value` around the target, computed from the reports alone; positive.
    step : float
        The most by which one report can move `value`, positive.
    support : tuple of float
        The target's range.
    uninformative : int
        Number of users whose report carries no information (epsilon0 = 0, or below about 1e-19); they have weight 0.
    """

    value: FloatArray
    standard_error: FloatArray
    step: float
    support: tuple[float, float]
    uninformative: int

    enough: ClassVar[float] = 4.0
    """Sums are treated as partly normal from (standard_error / step)^2 = enough z^2, and as normal from twice that."""

    long_tailed: ClassVar[bool] = False
    """Whether the noise of a report is unbounded."""

    inequality_name: ClassVar[str] = "Bennett's"
    """The inequality that holds for any sum of such reports; "" where intervals are made otherwise."""

    def confidence_interval(self, level: float = 0.95, simultaneous: bool = False) -> tuple[FloatArray, FloatArray]:
        """Return both ends of a two-sided confidence interval, in the range; it is never empty, see the module.

        Let v = (standard_error / step)^2, the variance in units of the largest report, and z the normal quantile. Up to
        v = 4 z^2, where few reports decide and the normal law's tails are too thin, the half width is that of Bennett's
        inequality (Bennett 1962), which holds for any sum of bounded independent terms: step u v with v ((1+u) log(1+u)
        - u) = log(2 / (1 - level)). From v = 8 z^2 on it is the normal one, z standard_error + step/2 (continuity
        corrected). In between it is a mixture of both, so that it changes without a jump.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).
        simultaneous : bool
            False: for each target by itself. True: all k intervals hold at once with that level, each being that of the
            level 1 - (1 - level)/k: by Bonferroni's inequality, whatever the dependence between them.

        Returns
        -------
        lower, upper : ndarray, shape of value

        Raises
        ------
        InvalidInput
            If level is not in (0, 1).
        """
        half = self.half_width(chance_of_a_miss(level, self.value.size if simultaneous else 1), self.standard_error)
        return around(self.value, half, half, self.support)

    def inequality(self, level: float = 0.95, simultaneous: bool = False) -> str:
        """Return the name of the inequality that makes an interval wider than the normal one; "" where none does.

        Parameters
        ----------
        level, simultaneous
            As for `confidence_interval`.
        """
        miss = chance_of_a_miss(level, self.value.size if simultaneous else 1)
        return self.inequality_name if bool(np.any(self.few(miss))) else ""

    def few(self, miss: float) -> NDArray[np.bool_]:
        """Return, for each target, whether so few reports decide that an inequality widens its interval.

        Parameters
        ----------
        miss : float
            Chance of a miss, in (0, 1).
        """
        spread = np.asarray((self.standard_error / self.step) ** 2)
        return np.asarray(spread < 2.0 * self.enough * ndtri(miss / 2.0) ** 2)

    def minus(self, other: Estimate) -> Estimate:
        """Return the estimate of the difference between this target and that of ``other``.

        Parameters
        ----------
        other : Estimate
            Of the same shape and range, with independent noise. Where no report of either moves its estimate by more
            than its step, the noise of both is one sum of independent terms, each at most the larger step, whose
            variances add up: Bennett's inequality holds for it. Where the noise of one is unbounded, log-moment
            generating functions add up to at most v s^2/(2 (1 - c s)) with the sum v of the variances and the larger
            step c, which bounded terms satisfy too: Bernstein's inequality holds. Not meant for variances, whose error
            depends on the target.

        Raises
        ------
        InvalidInput
            If shape or range differ.
        """
        if np.shape(self.value) != np.shape(other.value) or self.support != other.support:
            raise InvalidInput(
                f"only estimates of one question have a difference; got ranges {self.support} and {other.support}, "
                f"sizes {np.size(self.value)} and {np.size(other.value)}"
            )
        width = self.support[1] - self.support[0]
        kind = type(self) if self.long_tailed else type(other) if other.long_tailed else Estimate
        return kind(
            value=self.value - other.value,
            standard_error=np.hypot(self.standard_error, other.standard_error),
            step=max(self.step, other.step),
            support=(-width, width),
            uninformative=self.uninformative + other.uninformative,
        )

    def half_width(self, miss: float | FloatArray, standard_error: FloatArray) -> FloatArray:
        """Return the half width of an interval that misses with probability ``miss``, given a standard error.

        Parameters
        ----------
        miss : float or ndarray
            Probability over both sides, in (0, 1).
        standard_error : ndarray
            Positive; broadcast with `miss`.
        """
        z, x = -ndtri(miss / 2.0), np.log(2.0 / miss)
        spread = (standard_error / self.step) ** 2
        normal, safe = self._half_widths(standard_error, spread, z, x)
        share = np.clip(spread / (self.enough * z**2) - 1.0, 0.0, 1.0)
        return share * normal + (1.0 - share) * np.maximum(safe, normal)

    def bounded_half_width(self, miss: float, standard_error: FloatArray) -> FloatArray:
        """Return the half width by Bennett's inequality alone, without a normal approximation.

        Parameters
        ----------
        miss : float
            Probability of a miss over both sides; half of it on either side.
        standard_error : ndarray
            Positive.
        """
        spread = (standard_error / self.step) ** 2
        return self.step * spread * _bennett(np.log(2.0 / miss) / spread)

    def _half_widths(
        self, standard_error: FloatArray, spread: FloatArray, z: Any, x: Any
    ) -> tuple[FloatArray, FloatArray]:
        """Return the half widths of the normal law and of Bennett's inequality.

        z is the normal quantile, and 2 e^-x is the probability of a miss.
        """
        return z * standard_error + self.step / 2.0, self.step * spread * _bennett(x / spread)


def chance_of_a_miss(level: float, targets: int = 1) -> float:
    """Return the probability with which each of several intervals may miss, so that all hold together with ``level``.

    Parameters
    ----------
    level : float
        Confidence level, in (0, 1).
    targets : int
        Number of intervals that hold together; each may miss with (1 - level)/targets (Bonferroni's inequality).

    Raises
    ------
    InvalidInput
        If level is not in (0, 1).
    """
    if not 0.0 < level < 1.0:
        raise InvalidInput(f"a confidence level must lie in (0, 1); got {level}")
    return (1.0 - level) / targets


def around(
    value: FloatArray, below: FloatArray, above: FloatArray, support: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of intervals, in the range, around the points of the range that are nearest to the estimates.

    Parameters
    ----------
    value, below, above : ndarray
        Estimates, and half widths below and above, at least 0.
    support : tuple of float
        The range (low, high).
    """
    low, high = support
    possible = np.clip(value, low, high)
    return np.maximum(possible - below, low), np.minimum(possible + above, high)


def _bennett(ratio: FloatArray) -> FloatArray:
    """Return the u >= 0 with (1+u) log(1+u) - u = ratio, by y e^y = (ratio - 1)/e for y = log(1+u) - 1."""
    return np.expm1(1.0 + np.real(lambertw((ratio - 1.0) / np.e)))


SLACK = 1e-8
"""Tolerance, above the possible rounding error, within which a tail counts as above the chance of a miss."""


GRID = 1 << 20
"""Number of steps of the unit range on which the ends of a mean's interval lie."""


MOST_CELLS = 1 << 21
"""Largest number of cells times levels for which a law is computed; beyond it `Estimate`'s inequality is used."""


MOST_LEVELS = 256
"""Largest number of different budgets for which a law is attached to an estimate."""


MOST_PEOPLE = 10**6
"""Largest number of people for which the rounding error of a tail is proven to stay below `SLACK`."""


NEAR_MEAN = 3
"""Distance (reports) from E C within which a tail of a mean's count is taken as 1, see the module."""


_WINDOW, _CIRCLE = 14.0, 9.0
"""Widths, in standard errors, of the window of counts C (in total), and of the window of h on a circle of y."""


_AT_LEAST = 64


FEW = 20.0
"""Largest standard error of a count, in reports, at which ends are moved inwards from those of equal tails."""


_BLOCKS, _MOST_BLOCKS = 8.0, 64
"""Blocks of steps in which one report's worth of the target is passed over, and the most that are tried at one end."""


_COARSE = 50.0
"""Half-width, in people, below which neighbouring counts are evaluated too, as each report changes it noticeably."""


_MOST_REMEMBERED = 512


_NORMAL = NormalDist()


@dataclass(frozen=True)
class Added:
    """The public distribution of the number of dummies that support a category, the same for every category.

    Parameters
    ----------
    chances : tuple of float
        P(number = j), j = 0, 1, ...; they sum to 1.
    count, share : int and float
        Number of further dummies, and the probability with which each of them independently supports the category.
    """

    chances: tuple[float, ...] = (1.0,)
    count: int = 0
    share: float = 0.0

    @cached_property
    def moments(self) -> tuple[float, float]:
        """Mean and variance of the number of supporting dummies."""
        chances, places = np.array(self.chances), np.arange(len(self.chances))
        mean = float(chances @ places)
        variance = float(chances @ (places - mean) ** 2)
        return mean + self.count * self.share, variance + self.count * self.share * (1.0 - self.share)

    def at(self, x: NDArray[np.complex128]) -> NDArray[np.complex128]:
        """Return the probability generating function of the number at points x of the unit circle, shape of x."""
        size = x.size if x.size > 1 else 1
        if len(self.chances) == 1:
            pgf = np.ones(size, dtype=np.complex128)
        else:  # x are the whole circle's first points: chances beyond it wrap around, as (G) does
            whole = 2 * (size - 1)
            folded = np.zeros(-(-len(self.chances) // whole) * whole)
            folded[: len(self.chances)] = self.chances
            pgf = np.fft.rfft(folded.reshape(-1, whole).sum(axis=0)).conj()
        return pgf * (1.0 - self.share + self.share * x) ** self.count


NOTHING = Added()
"""The distribution without any dummy."""


@dataclass(frozen=True)
class CountLaw:
    """The distribution of a count of reports, as a function of the unknown share or mean.

    Parameters
    ----------
    people : tuple of int
        n_g, the number of people at each level; the sum is at least 1.
    own, other : tuple of float
        p_g and q_g of each level, q_g <= p_g: probabilities to support the own category, and any other one.
    added : Added
        The dummies.
    target : {"share", "mean"}
        "share": each record has the category or not. "mean": records are numbers in [0, 1]. See the module.

    Examples
    --------
    >>> CountLaw((100,), (0.9,), (0.1,)).interval(50, 0.05)
    (0.43, 0.57)
    """

    people: tuple[int, ...]
    own: tuple[float, ...]
    other: tuple[float, ...]
    added: Added = NOTHING
    target: Literal["share", "mean"] = "share"
    _cached_laws: dict[int, tuple[int, FloatArray]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _intervals: dict[tuple[int, float], tuple[float, float]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @cached_property
    def n(self) -> int:
        """The number of people."""
        return sum(self.people)

    @property
    def steps(self) -> int:
        """Number of steps from 0 to 1 on which the target is evaluated: n for a share, `GRID` for a mean."""
        return self.n if self.target == "share" else GRID

    @cached_property
    def levels(self) -> list[tuple[int, float, float]]:
        """The levels (people, p, q), those with equal p and q joined."""
        merged: dict[tuple[float, float], int] = {}
        for n, own, other in zip(self.people, self.own, self.other, strict=True):
            if n:
                merged[own, other] = merged.get((own, other), 0) + n
        return [(n, own, other) for (own, other), n in merged.items()]

    @property
    def slope(self) -> float:
        """Increase of E[C] as the share goes from 0 to 1: the sum of p - q over all people."""
        return sum(n * (own - other) for n, own, other in self.levels)

    @property
    def affordable(self) -> bool:
        """Whether the exact interval is proven for this law and computable within a second, accurate to `SLACK`."""
        if self.target == "mean" and (len(self.levels) > 1 or len(self.added.chances) > 1):
            return False
        sizes = self._sizes(0.5)
        return self.slope > 0.0 and self.n <= MOST_PEOPLE and sizes[0] * sizes[1] * len(self.levels) <= MOST_CELLS

    def mean(self, share: float) -> float:
        """Return the expected count E[C] if the share (or mean) is ``share``, in [0, 1]."""
        return sum(n * (other + (own - other) * share) for n, own, other in self.levels) + self.added.moments[0]

    def variance(self, share: float) -> float:
        """Return the variance of the count if the share (or mean) is ``share``, in [0, 1].

        It is the sum of three: of the noise, of the random assignment of levels to records, and of the dummies.
        """
        total = self.added.moments[1]
        if self.target == "mean":
            return total + sum(
                n * s * (1.0 - s) for n, own, other in self.levels for s in [other + (own - other) * share]
            )
        noise = sum(
            n * (share * own * (1.0 - own) + (1.0 - share) * other * (1.0 - other)) for n, own, other in self.levels
        )
        mean = self.slope / self.n
        uneven = sum(n * (own - other - mean) ** 2 for n, own, other in self.levels)
        return total + noise + share * (1.0 - share) * uneven * self.n / max(self.n - 1, 1)

    @property
    def worst(self) -> float:
        """The share in [1/8, 7/8] with the largest Var[C]; nearer to 0 or 1 the range shortens the interval."""
        if self.target == "mean":
            return 0.5  # s is 1/2 there
        rise = 2.0 * (self.variance(0.5) - (self.variance(0.0) + self.variance(1.0)) / 2.0)  # half of the curvature
        tilt = self.variance(1.0) - self.variance(0.0)
        if 2.0 * rise <= abs(tilt):  # the variance is tilt f + 2 rise f (1 - f) and a constant
            return 0.125 if tilt < 0.0 else 0.875 if tilt > 0.0 else 0.5
        return min(max(0.5 + tilt / (4.0 * rise), 0.125), 0.875)

    def half_width(self, miss: float = 0.05) -> float:
        """Return half the length of the printed interval, the larger of those at the worst share and at 1/2.

        Parameters
        ----------
        miss : float
            As for `interval`.

        Returns
        -------
        float
            At most 1/2, the whole range; 1/2 where no report carries information.
        """
        if self.slope <= 0.0:
            return 0.5
        if self.affordable:
            about = {round(self.mean(share)) for share in (0.5, self.worst)}
            half_length = max(self._half_length(count, miss) for count in about)
            if half_length * self.n > _COARSE:
                return half_length
            around = {count + step for count in about for step in range(-3, 4)}  # ends are whole people: lengths differ
            return max(half_length, *(self._half_length(count, miss) for count in around))
        error = np.asarray(np.sqrt(max(self.variance(self.worst), self.variance(0.5))) / self.slope)
        plain = Estimate(error, error, 1.0 / self.slope, (0.0, 1.0), 0)
        return min(float(plain.half_width(miss, error)), 0.5)

    def _half_length(self, count: int, miss: float) -> float:
        low, high = self.interval(count, miss)
        return round((high - low) * self.steps) / (2 * self.steps)  # ends are whole steps: a half of 1 % is 0.01

    def chances(self, step: int) -> tuple[int, FloatArray]:
        """Return the distribution of the number of supporting reports C, if the true share is step/steps.

        Parameters
        ----------
        step : int
            From 0 to `steps`.

        Returns
        -------
        start : int
            The first count of a window that holds all but 1e-10 of the chance.
        chances : ndarray
            P(C = start), P(C = start + 1), ...
        """
        if step not in self._cached_laws:
            if len(self._cached_laws) > _MOST_REMEMBERED:
                self._cached_laws.clear()
            self._cached_laws[step] = self._chances(step)
        return self._cached_laws[step]

    def _sizes(self, share: float) -> tuple[int, int]:
        """Return the number of points of the windows of C and of h."""
        spread = max(self.variance(share), self.variance(0.5) if share == 0.5 else 0.0) + 1e-9
        if self.target == "share" and len(self.levels) > 1:  # on the circle of y the number of h is binomial
            dealt = self.n * share * (1.0 - share)
            spread += (self.slope / self.n) ** 2 * dealt
            others = min(self.n + 1, int(_CIRCLE * np.sqrt(dealt)) + _AT_LEAST) if 0.0 < share < 1.0 else 1
        else:
            others = 1
        wide = int(_WINDOW * np.sqrt(spread)) + _AT_LEAST + len(self.added.chances) - 1
        return 2 * -(-wide // 2), others

    def _chances(self, step: int) -> tuple[int, FloatArray]:
        share = step / self.steps
        size, others = self._sizes(share)
        x = np.exp(-2j * np.pi * np.arange(size // 2 + 1) / size)  # real chances: half of the circle is enough
        pgf = self.added.at(x.conj()).conj() if len(self.added.chances) > 1 else self.added.at(x)
        if self.target == "mean":
            for n, own, other in self.levels:
                pgf = pgf * (1.0 + (other + (own - other) * share) * (x - 1.0)) ** n
        elif others == 1:
            for n, own, other in self.levels:
                have = step if len(self.levels) == 1 else round(share * n)  # several levels: all of them, or nobody
                pgf = pgf * (1.0 + own * (x - 1.0)) ** have * (1.0 + other * (x - 1.0)) ** (n - have)
        else:
            pgf = pgf * self._dealt(step, x, others)
        law = np.fft.irfft(pgf, size)
        start = round(self.mean(share)) - size // 2
        return start, np.maximum(np.roll(law, -(start % size)), 0.0)

    def _dealt(self, step: int, x: NDArray[np.complex128], others: int) -> NDArray[np.complex128]:
        """Return E[x^C | h] without the dummies, shape of x, h being step/steps of the people.

        The coefficient of y^h in (G), computed on the circle of y on which h is binomial.
        """
        share, places = step / self.n, np.arange(others)
        y = np.exp(2j * np.pi * places / others)[:, None]
        total = np.ones((others, x.size), dtype=np.complex128)
        weight = np.ones((others, 1), dtype=np.complex128)
        for n, own, other in self.levels:
            have, lack = 1.0 + own * (x - 1.0), 1.0 + other * (x - 1.0)
            total *= _power((1.0 - share) * lack + (share * y) * have, n)
            weight *= (1.0 - share + share * y) ** n
        turn = np.exp(-2j * np.pi * ((places * step) % others) / others)[:, None]
        return (turn * total).sum(axis=0) / (turn * weight).sum().real

    def at_least(self, count: int, step: int) -> float:
        """Return P(C >= count) if the share (or mean) is ``step``/`steps`.

        For a mean it is 1 where the expected count is above ``count`` - 3.
        """
        if self.target == "mean" and count < self.mean(step / self.steps) + NEAR_MEAN:
            return 1.0
        start, law = self.chances(step)
        place = count - start
        return 1.0 if place <= 0 else float(law[place:].sum())

    def at_most(self, count: int, step: int) -> float:
        """Return P(C <= count) if the share (or mean) is ``step``/`steps`.

        For a mean it is 1 where the expected count is below ``count`` + 3.
        """
        if self.target == "mean" and count > self.mean(step / self.steps) - NEAR_MEAN:
            return 1.0
        start, law = self.chances(step)
        place = count - start
        return 0.0 if place < 0 else float(law[: place + 1].sum())

    def _median(self, step: int) -> int:
        start, law = self.chances(step)
        return start + int(np.searchsorted(np.cumsum(law), 0.5))

    def interval(self, count: int, miss: float) -> tuple[float, float]:
        """Return a confidence interval for the target, a share or mean.

        Parameters
        ----------
        count : int
            Reports that support the category, dummies included.
        miss : float
            Largest probability, over both sides together, that the interval misses the target; in (0, 1).

        Returns
        -------
        low, high : float
            In [0, 1], low <= high; covers the target with probability at least 1 - miss.
        """
        if (count, miss) not in self._intervals:
            if len(self._intervals) > _MOST_REMEMBERED:
                self._intervals.clear()
            self._intervals[count, miss] = self._inverted(count, miss)
        return self._intervals[count, miss]

    def _inverted(self, count: int, miss: float) -> tuple[float, float]:
        """Compute both ends of `interval`: those of equal tails by bisection, then inwards in blocks."""
        possible = min(max(int(count), self._median(0)), self._median(self.steps))
        near = (possible - self.mean(0.0)) / self.slope
        middle = min(max(round(near * self.steps), 0), self.steps)
        spread = max(1.0, float(np.sqrt(self.variance(middle / self.steps))) / self.slope * self.steps)
        least = miss / 2.0 - SLACK
        high = _last(lambda step: self.at_most(possible, step), least, middle, self.steps, spread)
        low = _last(
            lambda step: self.at_least(possible, self.steps - step), least, self.steps - middle, self.steps, spread
        )
        ends = self.steps - low, high
        if self.variance(0.5) <= FEW**2:
            ends = tuple(self._nearer(possible, end, middle, miss) for end in ends)
        return ends[0] / self.steps, ends[1] / self.steps

    def _nearer(self, count: int, outer: int, middle: int, miss: float) -> int:
        """Return the end of `interval` between ``outer``, that of equal tails, and ``middle``, which stays inside."""
        way, block = (1 if outer > middle else -1), max(1, round(self.steps / self.slope / _BLOCKS))
        for _ in range(_MOST_BLOCKS):
            if outer == middle or block == 0:
                break
            inner = outer - way * (min(block, abs(outer - middle)) - 1)
            if self._bound(count, inner, outer, upper=way > 0) <= miss - 2.0 * SLACK:
                outer = inner - way
            else:
                block //= 2
        return outer

    def _bound(self, count: int, inner: int, outer: int, *, upper: bool) -> float:
        """Return an upper bound on p(count, h) for all steps h of a block above (``upper``) or below the estimate."""
        start, law = self.chances(inner)
        mean, near = self.mean(inner / self.steps), NEAR_MEAN if self.target == "mean" else -math.inf
        if upper:
            own = self.at_most(count, inner)
            longer = int((np.cumsum(law[::-1])[::-1] > own + 2.0 * SLACK).sum())
            return own + self.at_least(max(start + longer, math.ceil(max(mean + near, 0.0))), outer)
        own = self.at_least(count, inner)
        shorter = int((np.cumsum(law) <= own + 2.0 * SLACK).sum())
        return own + self.at_most(min(start + shorter - 1, math.floor(min(mean - near, 2.0**53))), outer)


@lru_cache(maxsize=16)
def law_of_reports(
    people: tuple[int, ...],
    own: tuple[float, ...],
    other: tuple[float, ...],
    target: Literal["share", "mean"] = "share",
) -> CountLaw:
    """Return the law of a count of reports without dummies; cached, so that equal tasks share its computed tables.

    Parameters
    ----------
    people, own, other, target
        As for `CountLaw`.
    """
    return CountLaw(people, own, other, NOTHING, target)


def _power(base: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    """Return complex numbers of modulus at most 1 to a whole power.

    By squaring, which is five times as fast as by logarithms.
    """
    product: NDArray[np.complex128] | None = None
    while exponent:
        if exponent & 1:
            product = base if product is None else product * base
        exponent >>= 1
        if exponent:
            base = base * base
    return np.ones_like(base) if product is None else product


def _last(tail: Callable[[int], float], least: float, start: int, most: int, spread: float) -> int:
    """Return the last step up to ``most`` at which the non-increasing ``tail`` is above ``least``.

    ``start`` if no later step is. First guesses use a normal law of standard deviation ``spread``; they only save
    evaluations.
    """
    low, high = start, most + 1
    guess = start + round(-_NORMAL.inv_cdf(max(least, TINY)) * spread)
    for tried in range(200):
        if high - low <= 1:
            break
        guess = min(max(guess, low + 1), high - 1)
        mass = tail(guess)
        away = _NORMAL.inv_cdf(min(max(mass, TINY), LARGEST_BELOW_ONE)) - _NORMAL.inv_cdf(max(least, TINY))
        low, high = (guess, high) if mass > least else (low, guess)
        guess = (low + high) // 2 if tried > 7 else guess + round(away * spread)
    return low


@dataclass(frozen=True, eq=False, repr=False)
class CountEstimate(Estimate):
    """An estimate made of counts with a known distribution, which its confidence intervals invert.

    Parameters
    ----------
    counts : ndarray, shape of value
        Reports that support each category, dummies included; whole numbers.
    law : CountLaw
        The law of each count. Where it is too large to be computed (`CountLaw.affordable`), intervals are those of
        `Estimate`.
    """

    counts: NDArray[np.int64]
    law: CountLaw

    def confidence_interval(self, level: float = 0.95, simultaneous: bool = False) -> tuple[FloatArray, FloatArray]:
        """Return both ends of a two-sided confidence interval by the exact law; see the module.

        Parameters
        ----------
        level, simultaneous
            As for `Estimate.confidence_interval`.

        Returns
        -------
        lower, upper : ndarray, shape of value
            In the range, never empty; the interval holds the point of the range nearest to the estimate.

        Raises
        ------
        InvalidInput
            If level is not in (0, 1).
        """
        miss = chance_of_a_miss(level, self.value.size if simultaneous else 1)
        if not self.law.affordable:
            return super().confidence_interval(level, simultaneous)
        different, back = np.unique(self.counts, return_inverse=True)
        ends = np.array([self.law.interval(int(count), miss) for count in different])[back.reshape(-1)]
        start, end = self.support
        low, high = (start + (end - start) * ends[:, side].reshape(np.shape(self.value)) for side in (0, 1))
        possible = np.clip(self.value, start, end)
        return np.minimum(low, possible), np.maximum(high, possible)

    def inequality(self, level: float = 0.95, simultaneous: bool = False) -> str:
        """Return "" where the law of the counts is inverted; see `Estimate.inequality`."""
        return "" if self.law.affordable else super().inequality(level, simultaneous)
