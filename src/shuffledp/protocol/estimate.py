"""An estimate from the shuffled reports alone, with its standard error and confidence intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import lambertw, ndtri

from shuffledp.errors import InvalidInput
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

    def confidence_interval(self, level: float = 0.95, *, simultaneous: bool = False) -> tuple[FloatArray, FloatArray]:
        """Both ends of a two-sided confidence interval for each target by itself (not jointly).

        With v = (standard_error / step)^2, the variance in units of the largest report:
        at least 4 z^2, the normal half width z standard_error + step/2 (continuity corrected); below, where
        few reports decide and the normal law is too thin, the half width from Bennett's inequality (Bennett
        1962), step u v with v ((1+u) log(1+u) - u) = log(2 / (1 - level)), which holds for any sum of
        bounded independent terms. The ends are cut to the target's range, so an estimate that noise has
        pushed out of the range lies outside its interval.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        lower, upper : ndarray, shape of value

        Raises
        ------
        InvalidInput
            If level is not in (0, 1).
        """
        if not 0.0 < level < 1.0:
            raise InvalidInput(f"a confidence level must lie in (0, 1); got {level}")
        if simultaneous:
            level = 1.0 - (1.0 - level) / max(self.value.size, 1)
        z = -ndtri((1.0 - level) / 2.0)
        spread = (self.standard_error / self.step) ** 2
        normal = z * self.standard_error + self.step / 2.0
        bennett = self.step * spread * _bennett(np.log(2.0 / (1.0 - level)) / spread)
        half = np.where(spread >= 4.0 * z**2, normal, bennett)
        low, high = self.support
        return np.clip(self.value - half, low, high), np.clip(self.value + half, low, high)


def _bennett(ratio: FloatArray) -> FloatArray:
    """Solve (1+u) log(1+u) - u = ratio for u >= 0: y e^y = (ratio - 1)/e for y = log(1+u) - 1."""
    return np.expm1(1.0 + np.real(lambertw((ratio - 1.0) / np.e)))
