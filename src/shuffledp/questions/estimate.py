"""An estimate from the shuffled reports alone, with its standard error and confidence intervals.

**Intervals that know the range.** The target lies in a known range, and noise may push an unbiased estimate out of it.
The interval around an estimate, cut to the range, would then be short or empty, and would read as certainty. So the
estimate is first moved to the nearest point of the range (Mandelkern and Schultz 2000), and the interval is the half
width to both sides of that point, cut to the range:

- it is never empty, lies in the range, and holds the nearest possible value;
- it covers the target whenever the one around the estimate itself does: for a target in the range, the point nearest
  to the estimate is at most as far from the target as the estimate is;
- inside the range nothing changes, and both ends are continuous in the estimate.

Where the law of a count is known, `shuffledp.questions.count_laws` inverts it instead.

Of a share whose estimate is 0 or below it says "at most h", with the half width h, however far below 0 noise has moved
the estimate. At an estimate of exactly 0 the intervals of Feldman and Cousins (1998) say the same (1.96 standard errors
at 95 %); below 0 theirs shrink, though the noise that moved the estimate is no less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from shuffledp.errors import InvalidInput
from shuffledp.numerics.floats import lambertw, ndtri
from shuffledp.numerics.interval import FloatArray


@dataclass(frozen=True, eq=False)
class Estimate:
    """An estimate with what is needed for its intervals.

    Parameters
    ----------
    value : ndarray
        Unbiased, hence not confined to `support`. Shape (k,) for frequencies, () for a mean.
    standard_error : ndarray, shape of value
        Of `value` around the target, computed from the reports alone; positive.
    step : float
        The most by which one report can move `value`, positive.
    support : tuple of float
        The target's range.
    uninformative : int
        Users whose report carries no information (epsilon0 = 0, or below about 1e-19); they have weight 0.
    """

    value: FloatArray
    standard_error: FloatArray
    step: float
    support: tuple[float, float]
    uninformative: int

    enough: ClassVar[float] = 4.0
    """From (standard_error / step)^2 = enough z^2 on sums are taken as normal; from twice that on wholly."""

    long_tailed: ClassVar[bool] = False
    """Whether the noise has no bound."""

    def confidence_interval(self, level: float = 0.95, simultaneous: bool = False) -> tuple[FloatArray, FloatArray]:
        """Both ends of a two-sided confidence interval, in the range; never empty, see the module.

        The half width, with v = (standard_error / step)^2, the variance in units of the largest report: up to
        v = 4 z^2, where few reports decide and the normal law is too thin, that of Bennett's inequality (Bennett 1962),
        step u v with v ((1+u) log(1+u) - u) = log(2 / (1 - level)), which holds for any sum of bounded independent
        terms; from v = 8 z^2 on the normal one, z standard_error + step/2 (continuity corrected); in between their
        mixture, so that it changes without a jump.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).
        simultaneous : bool
            False: for each target by itself. True: all k intervals hold at once with that level, each being that of
            the level 1 - (1 - level)/k: by Bonferroni's inequality, whatever the dependence between them.

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

    def minus(self, other: Estimate) -> Estimate:
        """Return the estimate of the difference of both targets.

        Parameters
        ----------
        other : Estimate
            Of the same shape and range, from other noise. Where no term of either is above its step, the noise of
            both is one sum of independent terms, each at most the larger step, whose variances add up: Bennett's
            inequality holds for it. Where the noise of one has no bound, log-moment generating functions add up to at
            most v s^2/(2 (1 - c s)) with the sum v of the variances and the larger step c, as bounded terms have it
            too: Bernstein's holds. A variance, whose error depends on its target, is not meant.

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
        """Half width at that chance of a miss, if the standard error were this one.

        Parameters
        ----------
        miss : float or ndarray
            Chance, in (0, 1).
        standard_error : ndarray
            Positive; broadcast with `miss`.
        """
        z, x = -ndtri(miss / 2.0), np.log(2.0 / miss)
        spread = (standard_error / self.step) ** 2
        normal, safe = self._half_widths(standard_error, spread, z, x)
        share = np.clip(spread / (self.enough * z**2) - 1.0, 0.0, 1.0)
        return share * normal + (1.0 - share) * np.maximum(safe, normal)

    def bounded_half_width(self, miss: float, standard_error: FloatArray) -> FloatArray:
        """Half width at that chance of a miss by Bennett's inequality alone, which takes nothing as normal.

        Parameters
        ----------
        miss : float
            Chance of both sides together; half of it of one.
        standard_error : ndarray
            Positive.
        """
        spread = (standard_error / self.step) ** 2
        return self.step * spread * _bennett(np.log(2.0 / miss) / spread)

    def _half_widths(
        self, standard_error: FloatArray, spread: FloatArray, z: Any, x: Any
    ) -> tuple[FloatArray, FloatArray]:
        """Those of the normal law, and of an inequality; z normal deviates, or a chance of 2 e^-x."""
        return z * standard_error + self.step / 2.0, self.step * spread * _bennett(x / spread)


def chance_of_a_miss(level: float, targets: int = 1) -> float:
    """Return the chance with which each of several intervals may miss, so that all hold with the level.

    Parameters
    ----------
    level : float
        Confidence level, in (0, 1).
    targets : int
        How many hold at once: (1 - level)/targets, by Bonferroni's inequality.

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
    """Return the ends of intervals that reach so far below and above the nearest possible values, in the range.

    Parameters
    ----------
    value, below, above : ndarray
        Estimates, and half widths, at least 0.
    support : tuple of float
        The range.
    """
    low, high = support
    possible = np.clip(value, low, high)
    return np.maximum(possible - below, low), np.minimum(possible + above, high)


def _bennett(ratio: FloatArray) -> FloatArray:
    """Solve (1+u) log(1+u) - u = ratio for u >= 0: y e^y = (ratio - 1)/e for y = log(1+u) - 1."""
    return np.expm1(1.0 + np.real(lambertw((ratio - 1.0) / np.e)))
