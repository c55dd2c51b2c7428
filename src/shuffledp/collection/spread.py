r"""Estimates whose error is people's noise, a sum of bounded terms, and that of ball dummies, whose law is known.

**The dummies' law.** Of a choice among k, z = (z_1..z_k) has whole cells that add up to 0, and its law given its gauge
r (the sum of its positive cells) is uniform. For whole numbers v_j the law of sum_j v_j z_j is therefore sum_r a_r
times the coefficient of x^r y^r in

    prod_j ( 1/(1 - y w^-v_j) + x w^v_j / (1 - x w^v_j) ),    w on the unit circle,

where x counts what is positive and y what is negative: each cell is positive, or is not. It is summed on the circle and
transformed back; chances are good to 1e-12. Of bits, v is 1 for the ones, and the law is that of a cell.

**The interval.** With D the dummies' part and X the people's, P(|X + D| > t) is the mean over D of the chance that X
lies beyond t - D. From (error of X / step)^2 = 8 z^2 on X is taken as normal (as in `protocol.estimate`), and the mean
is summed over the law of D: no normal law is put in the place of D's, whose tails are longer. Up to 4 z^2 the chance is
at most min_s 2 exp(-s t + L_X(s) + L_D(s)) (Chernoff 1952) with Bennett's L_X(s) = v (e^{s step} - 1 - s step)/step^2
and the logarithm L_D of the dummies' own generating function; in between their mixture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.asked import Dummies
from shuffledp.collection.balls import single_ball
from shuffledp.collection.draw import WHOLE, Family
from shuffledp.errors import InvalidInput
from shuffledp.numerics.floats import TINY
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.special import ndtr, ndtri
from shuffledp.questions.estimate import Estimate, around, chance_of_a_miss

_AT_ONCE = 1 << 21
"""Complex numbers that are held at once."""
_TRIED = 160
_HALVINGS = 60


@dataclass(frozen=True, eq=False)
class Spread:
    """The law of the dummies' part of an estimate, symmetric around 0.

    Parameters
    ----------
    chances : tuple of float
        P(part = (j - reach) unit), j = 0..2 reach.
    unit : float
        Distance of neighbouring values.
    """

    chances: tuple[float, ...]
    unit: float

    @cached_property
    def values(self) -> FloatArray:
        """The possible values, ascending."""
        reach = len(self.chances) // 2
        return np.arange(-reach, len(self.chances) - reach, dtype=np.float64) * self.unit

    @property
    def variance(self) -> float:
        """The variance of this law."""
        return float(np.array(self.chances) @ self.values**2)


@dataclass(frozen=True, eq=False)
class SpreadEstimate(Estimate):
    """An estimate with people's noise and that of dummies; see the module.

    Parameters
    ----------
    added : Spread
        The dummies' part; its variance is a part of the squared standard error.
    """

    added: Spread

    def confidence_interval(self, level: float = 0.95, simultaneous: bool = False) -> tuple[FloatArray, FloatArray]:
        """Both ends of a two-sided confidence interval, in the range; see the module.

        Parameters
        ----------
        level, simultaneous
            As for `Estimate.confidence_interval`.
        """
        half = self.half_width(chance_of_a_miss(level, self.value.size if simultaneous else 1), self.standard_error)
        return around(self.value, half, half, self.support)

    def half_width(self, miss: float | FloatArray, standard_error: FloatArray) -> FloatArray:
        """Half width at that chance of a miss, if the standard error were this one, dummies included.

        Parameters
        ----------
        miss : float
            Chance, in (0, 1).
        standard_error : ndarray
            Positive.
        """
        own = np.sqrt(np.maximum(np.asarray(standard_error) ** 2 - self.added.variance, 0.0))
        found = [self._half_width(float(miss), float(each)) for each in own.ravel()]  # type: ignore[arg-type]
        return np.array(found).reshape(own.shape)

    def _half_width(self, miss: float, own: float) -> float:
        if len(self.added.chances) == 1 and own == 0.0:
            return 0.0
        normal = self._normal(miss, max(own, TINY)) + self.step / 2.0
        share = float(np.clip((own / self.step) ** 2 / (self.enough * ndtri(miss / 2.0) ** 2) - 1.0, 0.0, 1.0))
        return normal if share == 1.0 else share * normal + (1.0 - share) * max(self._safe(miss, own), normal)

    def _normal(self, miss: float, own: float) -> float:
        """Return the t at which P(X + D > t) is miss/2 for a normal X."""
        chances, values = np.array(self.added.chances), self.added.values
        low, high = 0.0, float(values[-1]) + own * 40.0
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            beyond = float(chances @ ndtr((values - middle) / own))
            low, high = (low, middle) if beyond <= miss / 2.0 else (middle, high)
        return high

    def _safe(self, miss: float, own: float) -> float:
        """Return the least t for which Chernoff's bound is at most `miss`, over many s: each of them is valid."""
        chances, values = np.array(self.added.chances), self.added.values
        scale = max(own, float(np.sqrt(self.added.variance)), self.step)
        s = np.geomspace(0.05, 50.0, _TRIED)[:, None] / scale
        largest = (s * values[-1])[:, 0]
        dummies = largest + np.log(np.exp(s * values - largest[:, None]) @ chances)
        rise = s[:, 0] * self.step
        people = (own / self.step) ** 2 * (np.expm1(rise) - rise)
        return float(((np.log(2.0 / miss) + people + dummies) / s[:, 0]).min())


@lru_cache(maxsize=256)
def dummies_along(family: Family, dummies: Dummies, values: tuple[int, ...]) -> tuple[float, ...]:
    """Return the law of sum_j v_j z_j of ball dummies around their mean.

    Parameters
    ----------
    family : Family
        Of the column.
    dummies : Dummies
        Of law "ball", or none at all.
    values : tuple of int
        v_j of each cell; of bits (0, 1).

    Returns
    -------
    tuple of float
        P(sum = j - reach), j = 0..2 reach, with reach the largest radius times the range of the values.
    """
    if dummies.count == 0:
        return (1.0,)
    law = single_ball(family, dummies)
    if len(values) != family.cells:
        raise InvalidInput(f"{family.name} has {family.cells} cells; got {len(values)} values")
    if family.kind == "bits" or (len(values) == 2 and set(values) == {0, 1}):
        chances = [each / 2.0**192 for each in law.cell_chances(0)]
        return (*chances[:0:-1], *chances)
    points = law.columns[0].balls(law.largest)
    own = [weight / WHOLE / inside for weight, inside in zip(law.radius, points, strict=True)]
    chance = np.cumsum(own[::-1])[::-1]  # of one point of gauge r
    reach = law.largest * (max(values) - min(values))
    turns = np.arange(reach + 1)
    whole = np.concatenate([
        _on_circle(values, chance, 2.0 * np.pi * some / (2 * reach + 1))
        for some in np.array_split(turns, 1 + turns.size * chance.size**2 // _AT_ONCE)
    ])  # fmt: skip
    return tuple(np.maximum(np.roll(np.fft.irfft(whole, 2 * reach + 1), reach), 0.0).tolist())


def dummies_between(dummies: Dummies) -> tuple[float, ...]:
    """Return the law of the difference of the ones of two columns of bits that share one radius.

    Given the radius R both are uniform on -R..R, independently, so the difference d has the chance (2 R + 1 - |d|)/(2 R
    + 1)^2.

    Parameters
    ----------
    dummies : Dummies
        Of either column.

    Returns
    -------
    tuple of float
        P(difference = j - reach), j = 0..2 reach, with reach twice the largest radius.
    """
    if dummies.count == 0:
        return (1.0,)
    reach = 2 * (len(dummies.draw) - 1)
    apart, found = np.abs(np.arange(-reach, reach + 1)), np.zeros(2 * reach + 1)
    for radius, weight in enumerate(dummies.draw):
        values = 2 * radius + 1
        found += weight / WHOLE * np.maximum(values - apart, 0) / values**2
    return tuple(found.tolist())


def _on_circle(values: Sequence[int], chance: FloatArray, angles: FloatArray) -> NDArray[np.complex128]:
    """E[w^-(sum v z)] at w = e^(i angle): the transform that `irfft` inverts; the law is symmetric."""
    radii = chance.size
    found: NDArray[Any] = np.zeros((1, radii, radii))
    found[0, 0, 0] = 1.0
    for value in sorted(values, key=abs):  # cells of value 0 first: their factor is the same at every angle
        turn = np.exp(1j * angles * value)[:, None] if value else np.ones((1, 1))
        rest, positive = np.empty_like(found * turn[:, :, None]), np.zeros_like(found * turn[:, :, None])
        rest[:, :, 0] = found[:, :, 0]
        for n in range(1, radii):
            rest[:, :, n] = found[:, :, n] + rest[:, :, n - 1] / turn
            positive[:, n, :] = turn * (found[:, n - 1, :] + positive[:, n - 1, :])
        found = rest + positive
    shells = np.diagonal(found, axis1=1, axis2=2)
    return np.broadcast_to(shells @ chance, angles.shape).astype(np.complex128)
