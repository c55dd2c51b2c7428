"""The law of L = r_0(W) - e^eps r_1(W), W ~ omega, enclosed between two discrete laws in convex order.

For a discrete randomizer both are L itself, unless its losses are rounded: where epsilon comes near a loss, their
rounding is all that is left of L, so they are rounded up (above) or down (below). For a continuous one, a cell on
which L lies between a and b with mean m is replaced by the two points a and b with the same mean (above: E(sum L)_+
is convex in each L) or by its mean (below). Outputs that no cell covers count as L = 0 and are charged by themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from shuffledp.numerics.floats import TINY, Upper, round_down, round_up, roundoff
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.sums import IndependentSum
from shuffledp.randomizers.base import CellSpread, PairBlanket

MOST_ATOMS = 96
"""Continuous laws are put on a lattice of so many values."""
_LARGEST = 1e150
_MARGIN = roundoff(8192)
"""Relative doubt of a continuous law's cell means: closed forms in double precision, far above their rounding."""


@dataclass(frozen=True, eq=False)
class LossLaw:
    """A discrete law above L (or below it), and what is charged besides.

    Parameters
    ----------
    one : IndependentSum
        One copy.
    charge : float
        Upper bound on the hockey-stick divergence over the outputs left out; 0 for a law below L.
    """

    one: IndependentSum
    charge: float

    @property
    def finite(self) -> bool:
        """Whether all values fit into double precision with room for a transform."""
        return bool(np.abs(self.one.values).max(initial=0.0) < _LARGEST)

    @property
    def alone(self) -> Upper:
        """Upper bound of E L_+ plus the charge: the divergence of a report that nobody hides."""
        if not self.finite:
            return Upper(1.0)
        positive = np.maximum(self.one.values[0], 0.0) @ self.one.probabilities[0]
        return Upper(min(float(positive) * (1.0 + _MARGIN) + self.charge, 1.0))

    def diluted(self, gamma: float) -> LossLaw:
        """Return the law of Z = L/gamma with probability gamma, good to 32 ulps, else 0.

        Its mean is that of L exactly.
        """
        with np.errstate(over="ignore"):
            values = self.one.values / gamma
        thin = self.one.probabilities * gamma
        return LossLaw(replace(self.one, values=values, probabilities=thin, doubt=self.one.doubt + 64.0), self.charge)


def loss_law(pair: PairBlanket, epsilon: float, *, above: bool = True) -> LossLaw:
    """Return the law of L for a pair of inputs at one epsilon.

    Parameters
    ----------
    pair : PairBlanket
        The pair.
    epsilon : float
        Central epsilon, nats, at least 0.
    above : bool
        Of rounded losses and of a continuous randomizer, whether to return a law above L or one below it.
    """
    if pair.spread is None:
        known = np.isfinite(pair.losses)
        finite = np.where(known, pair.losses, 0.0)
        rounded = (round_up if above else round_down)(finite, pair.loss_ulps) if pair.loss_ulps else finite
        values = _values(pair, np.where(known, rounded, pair.losses), epsilon)
        mean = -math.expm1(epsilon) if epsilon < 709.0 else -math.inf
        if pair.loss_ulps and math.isfinite(mean):  # each value moves by e^eps r_1 times its loss's rounding, at most
            mean += math.exp(epsilon) * float((pair.masses * pair.ratios1) @ (rounded - finite)) * (1.0 + _MARGIN)
        # a rounded exponent x costs |x| roundoffs; ratios and masses are good to a few roundoffs
        doubt = 16.0 + 2.0 * (epsilon + float(np.abs(finite).max(initial=0.0)))
        one = IndependentSum(np.ones(1), values[None], pair.masses[None], np.array([mean]), doubt)
        return LossLaw(one, 0.0)
    values = _values(pair, pair.losses, epsilon)
    low, high = loss_range(pair.spread, epsilon)
    with np.errstate(over="ignore"):
        size = np.abs(values) + np.abs(high) + np.abs(low) + pair.ratios0 + math.exp(epsilon) * pair.ratios1
    if not bool((size < _LARGEST).all()):  # beyond double range: the law that is not `finite`
        return LossLaw(IndependentSum(np.ones(1), np.full((1, 1), np.inf), np.ones((1, 1)), np.full(1, np.inf)), 0.0)
    doubt = _MARGIN * size
    if not above:
        return LossLaw(_merged(pair.masses, values - doubt), 0.0)
    law = _split(pair.masses, np.minimum(low, values), values + doubt, np.maximum(high, values) + doubt)
    return LossLaw(law, float(left_out(pair.spread, epsilon)))


def _values(pair: PairBlanket, losses: FloatArray, epsilon: float) -> FloatArray:
    """r_0 - e^eps r_1 = r_0 (1 - e^(eps - loss)), to a few ulps; infinite where it overflows."""
    never = pair.ratios0 == 0.0  # x0 never gives this output, and 1 - e^(eps - loss) is infinite
    with np.errstate(over="ignore", invalid="ignore"):
        usual = -pair.ratios0 * np.expm1(epsilon - np.where(never, 0.0, losses))
    return np.where(never, -math.exp(min(epsilon, 709.0)) * pair.ratios1, usual) if never.any() else usual


def stacked(laws: list[IndependentSum]) -> IndependentSum:
    """One sum with the groups of several; a law of fewer atoms is filled up with values at 0 of probability 0."""
    groups, atoms = sum(law.counts.size for law in laws), max(law.values.shape[1] for law in laws)
    values, probabilities, at = np.zeros((groups, atoms)), np.zeros((groups, atoms)), 0
    for law in laws:
        rows, cells = law.values.shape
        values[at : at + rows, :cells], probabilities[at : at + rows, :cells] = law.values, law.probabilities
        at += rows
    counts, means = np.concatenate([law.counts for law in laws]), np.concatenate([law.means for law in laws])
    return IndependentSum(counts, values, probabilities, means, max(law.doubt for law in laws))


def left_out(spread: CellSpread, epsilon: float) -> FloatArray:
    """Sum of (1 - e^(eps - loss))_+ R(x0)(A) over the parts left out."""
    share = -np.expm1(np.minimum(epsilon - spread.left_out_loss, 0.0))
    return np.sum(share * spread.left_out_mass, axis=-1) * (1.0 + _MARGIN)


def loss_range(spread: CellSpread, epsilon: float) -> tuple[FloatArray, FloatArray]:
    """Bounds on r_0 (1 - e^(eps - loss)) over each cell, from those on its two factors."""
    with np.errstate(over="ignore", invalid="ignore"):
        worst, best = -np.expm1(epsilon - spread.loss_low), -np.expm1(epsilon - spread.loss_high)
        low = worst * np.where(worst > 0, spread.ratio_low, spread.ratio_high)
        high = best * np.where(best > 0, spread.ratio_high, spread.ratio_low)
    return low, high


def _split(masses: FloatArray, low: FloatArray, mean: FloatArray, high: FloatArray) -> IndependentSum:
    """Spread each cell's mass over its two ends, and both ends over a lattice, keeping every mean."""
    width = np.maximum(high - low, 0.0)
    share = np.where(width > 0, np.clip((mean - low) / np.where(width > 0, width, 1.0), 0.0, 1.0), 1.0)
    values = np.concatenate((low, high))
    weights = np.concatenate((masses * (1.0 - share), masses * share))
    lattice = _lattice(values, weights)
    if lattice.size == MOST_ATOMS:
        at = np.clip(np.searchsorted(lattice, values, side="right") - 1, 0, MOST_ATOMS - 2)
        up = np.clip((values - lattice[at]) / (lattice[at + 1] - lattice[at]), 0.0, 1.0)
        mass = np.zeros(MOST_ATOMS)
        np.add.at(mass, at, weights * (1.0 - up))
        np.add.at(mass, at + 1, weights * up)
        values, weights = lattice[mass > 0], mass[mass > 0]
    products = values * weights
    mean_up = math.fsum(products.tolist()) + roundoff(90, float(np.abs(products).sum()))
    return IndependentSum(np.ones(1), values[None], weights[None], np.array([mean_up]))


def _lattice(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Values from the smallest to the largest, evenly spaced near 0 and geometrically far out."""
    scale = math.sqrt(float(weights @ values**2))
    low, high = float(values.min()), float(values.max())
    if not (0.0 < scale < math.inf and high > low):
        return np.zeros(0)
    lattice = scale * np.sinh(np.linspace(math.asinh(low / scale), math.asinh(high / scale), MOST_ATOMS))
    lattice[0], lattice[-1] = low, high
    return lattice if bool((np.diff(lattice) > 0).all()) else np.zeros(0)


def _merged(masses: FloatArray, values: FloatArray) -> IndependentSum:
    """Merge cells of neighbouring values into their mean."""
    order = np.argsort(values)
    values, masses = values[order], masses[order]
    label = np.searchsorted(_lattice(values, masses), values, side="right")
    starts = np.flatnonzero(np.diff(label, prepend=-1))
    mass = np.add.reduceat(masses, starts)
    centre = np.add.reduceat(masses * values, starts) / mass
    products = centre * mass
    mean_down = math.fsum(products.tolist()) - roundoff(90, float(np.abs(products).sum()) + TINY)
    return IndependentSum(np.ones(1), centre[None], mass[None], np.array([mean_down]))
