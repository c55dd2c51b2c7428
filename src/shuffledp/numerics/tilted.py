"""Sums of independent discrete variables under a tilted law: how wide they are, and where their transform vanishes.

On the line theta + iy the moment generating function of a sum of many variables is soon negligible, and stays so: of
thousands of points some dozens need to be computed. Which ones is told by bounds on |E exp(iyS)|, E being tilted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shuffledp.numerics.floats import EPS
from shuffledp.numerics.interval import FloatArray

FALL = 46.0
"""What is below e^(1 - FALL) of the value at y = 0 is charged instead of computed."""
_CELLS = 2.0


@dataclass(frozen=True, eq=False)
class TiltedSum:
    """``counts[g]`` independent copies of a law with atoms ``values[g]`` and a rest at 0, already tilted.

    Parameters
    ----------
    counts : ndarray, shape (groups,)
    values, weights : ndarray, shape (groups, atoms)
        Atoms and their tilted probabilities.
    rest : ndarray, shape (groups,)
        Tilted probability of 0.
    unsure : float
        Bound on the relative error of values and weights, and on the absolute error of ``rest``.
    """

    counts: FloatArray
    values: FloatArray
    weights: FloatArray
    rest: FloatArray
    unsure: float

    @cached_property
    def means(self) -> FloatArray:
        """Mean of one copy, shape (groups,)."""
        return np.asarray((self.weights * self.values).sum(axis=1), dtype=np.float64)

    @cached_property
    def variance(self) -> float:
        """Variance of S; inf where it leaves double range."""
        if not np.abs(self.values).max(initial=0.0) < 1e150:
            return math.inf
        apart = self.values - self.means[:, None]
        return float(((self.weights * apart**2).sum(axis=1) + self.rest * self.means**2) @ self.counts)

    def powers(self, y: FloatArray, groups: slice) -> tuple[NDArray[np.complex128], FloatArray]:
        """Return E exp(iyS_g) for the sums S_g of some groups, and a bound on its absolute error; shapes (y, groups).

        The bound is inf where rounding may be anything.
        """
        values, counts = self.values[groups], self.counts[groups]
        chi = (self.weights[groups] * np.exp(1j * (y[:, None, None] * values))).sum(axis=2) + self.rest[groups]
        phase = y[:, None] * np.abs(values).max(axis=1)
        off = 2.0 * self.unsure * (1.0 + phase) + EPS * (4.0 * phase + 8.0)
        size = np.abs(chi)
        with np.errstate(divide="ignore", over="ignore"):
            high, low = np.exp(counts * np.log(size + off)), np.exp(counts * np.log(size))
        power = low * np.exp(1j * (counts * np.angle(chi)))
        return power, high - low + high * (32.0 * EPS * (counts + np.abs(np.log(size + off)) * counts + 1.0))

    def alive(self, step: float, points: int, copies: float, s: float) -> NDArray[np.int64]:
        """Tell for which j the value |E exp(iyS)|^copies exp(-s^2 y^2/2), y = j step, may be above e^(1 - FALL).

        Parameters
        ----------
        step : float
            Positive.
        points : int
            j = 0, ..., points - 1.
        copies : float
            At least 1.
        s : float
            Not negative.

        Returns
        -------
        ndarray
            Ascending. At all other points the value certainly is at most that.

        Notes
        -----
        For X of range R and variance V, |E exp(iyX)|^2 = E cos(y(X - X')) <= 1 - 2V (1 - cos yR)/R^2 up to
        yR = pi, because (1 - cos x)/x^2 decreases until there; this bound falls with y. Farther out, |E exp(iyX)|
        changes by at most E|X - EX| per unit of y: its value in the middle of a cell bounds it in the whole cell.
        """
        size = np.abs(self.values).max(axis=1)
        if self.unsure * (1.0 + step * points * float(size.max())) > 1e-10:
            return np.arange(points)
        reach = float(np.max(np.maximum(self.values.max(axis=1), 0.0) - np.minimum(self.values.min(axis=1), 0.0)))
        reach *= 1 + 1e-9
        variance = max(self.variance * (1 - 1e-9) - 8.0 * self.unsure * float(size**2 @ self.counts), 0.0)

        def fallen(j: int) -> bool:
            y = j * step
            return copies * variance * 2.0 * (math.sin(0.5 * reach * y) / reach) ** 2 + 0.5 * (s * y) ** 2 >= FALL

        far = min(math.floor(math.pi / (reach * step)), points - 1)
        first = far + 1
        if fallen(far):
            low, first = 0, far
            while first - low > 1:
                middle = (low + first) // 2
                low, first = (low, middle) if fallen(middle) else (middle, first)
        return np.concatenate((np.arange(first), self._alive_far(far + 1, step, points, copies, s)))

    def _alive_far(self, first: int, step: float, points: int, copies: float, s: float) -> NDArray[np.int64]:
        """`alive` from ``first`` on, by cells; all of them where cells would have to be nearly as many as points."""
        if first >= points:
            return np.arange(0)
        apart = np.abs(self.values - self.means[:, None])
        slope = (self.weights * apart).sum(axis=1) + self.rest * np.abs(self.means)
        moving = float((1.0 - np.maximum(self.weights.max(axis=1), self.rest)) @ self.counts)
        wanted = _CELLS * step * float(slope @ self.counts)
        if not 2.0 * wanted < moving:
            return np.arange(first, points)
        each = min(math.floor(moving / wanted), points - first)
        start = np.arange(first, points, each)
        middle = step * (start + 0.5 * (each - 1))
        turned = np.exp(1j * (middle[:, None, None] * self.values))
        size = np.abs((self.weights * turned).sum(axis=2) + self.rest)
        # 1e-9 is far above what `unsure` and rounding can do
        bound = np.minimum(size + 0.5 * step * each * slope + 1e-9, 1.0)
        fall = -copies * (np.log(bound) @ self.counts) + 0.5 * (s * step * start) ** 2
        found = (start[fall < FALL][:, None] + np.arange(each)).ravel()
        return found[found < points]
