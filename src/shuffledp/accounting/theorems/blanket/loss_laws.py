"""Discrete laws that bound the loss variable L = r_0(W) - e^eps r_1(W), W ~ omega, of a pair of inputs.

At one epsilon, or at many in one pass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shuffledp.numerics.floats import TINY, FloatArray, Upper, round_down, round_up, roundoff
from shuffledp.numerics.sums import IndependentSum
from shuffledp.randomizers.base import CellSpread, PairBlanket

# The law of L = r_0(W) - e^eps r_1(W), W ~ omega, enclosed between two discrete laws in convex order.
#
# For a discrete randomizer both are L itself, unless its losses are rounded: where epsilon comes near a loss, their
# rounding is all that is left of L, so they are rounded up (above) or down (below). For a continuous one, a cell on
# which L lies between a and b with mean m is replaced by the two points a and b with the same mean (above: E(sum L)_+
# is convex in each L) or by its mean (below). Outputs that no cell covers count as L = 0 and are charged by
# themselves.

MOST_ATOMS = 96
"""Number of lattice points on which continuous laws are placed."""
_LARGEST = 1e150
_MARGIN = roundoff(8192)
"""Relative error allowed to a continuous law's cell means: closed forms in double precision, far above rounding."""


@dataclass(frozen=True, eq=False)
class LossLaw:
    """A discrete law that bounds the loss variable L from above (or below), with what is charged for outputs left out.

    Parameters
    ----------
    one : IndependentSum
        The law of one copy of L.
    charge : float
        Upper bound on the hockey-stick divergence over the outputs left out; 0 for a law below L.
    """

    one: IndependentSum
    charge: float

    @property
    def finite(self) -> bool:
        """Whether all values of the law fit into double precision with room for a Fourier transform."""
        return bool(np.abs(self.one.values).max(initial=0.0) < _LARGEST)

    @property
    def alone(self) -> Upper:
        """Upper bound of E L_+ plus the charge: the divergence of a report that no other report hides; at most 1."""
        if not self.finite:
            return Upper(1.0)
        positive = np.maximum(self.one.values[0], 0.0) @ self.one.probabilities[0]
        return Upper(min(float(positive) * (1.0 + _MARGIN) + self.charge, 1.0))

    def diluted(self, gamma: float) -> LossLaw:
        """Return the law of Z, which is L/gamma with probability gamma, else 0; gamma is good to 32 ulps.

        Its mean is that of L exactly.
        """
        with np.errstate(over="ignore"):
            values = self.one.values / gamma
        thin = self.one.probabilities * gamma
        return LossLaw(replace(self.one, values=values, probabilities=thin, doubt=self.one.doubt + 64.0), self.charge)


def loss_law(pair: PairBlanket, epsilon: float, *, above: bool = True) -> LossLaw:
    """Return a law that bounds the loss variable L = r_0(W) - e^eps r_1(W) of a pair of inputs, at one epsilon.

    Parameters
    ----------
    pair : PairBlanket
        The laws of the two inputs against their common blanket.
    epsilon : float
        Central epsilon, nats, at least 0.
    above : bool
        For rounded losses and continuous randomizers, whether to return a law above L or one below it.
    """
    if pair.spread is None:
        is_finite = np.isfinite(pair.losses)
        finite = np.where(is_finite, pair.losses, 0.0)
        rounded = (round_up if above else round_down)(finite, pair.loss_ulps) if pair.loss_ulps else finite
        values = _values(pair, np.where(is_finite, rounded, pair.losses), epsilon)
        mean = -math.expm1(epsilon) if epsilon < 709.0 else -math.inf
        if pair.loss_ulps and math.isfinite(mean):  # each value moves by e^eps r_1 times its loss's rounding, at most
            mean += math.exp(epsilon) * float((pair.masses * pair.ratios1) @ (rounded - finite)) * (1.0 + _MARGIN)
        # a rounded exponent x costs |x| roundoffs; ratios and masses are good to a few roundoffs
        doubt = 16.0 + 2.0 * (epsilon + float(np.abs(finite).max(initial=0.0)))
        one = IndependentSum(np.ones(1), values[None], pair.masses[None], np.array([mean]), doubt)
        return LossLaw(one, 0.0)
    with np.errstate(over="ignore"):
        values, low, high, doubt = _bounds(pair, pair.spread, epsilon)
    if not bool((doubt < _MARGIN * _LARGEST).all()):  # beyond double range: the law that is not `finite`
        return LossLaw(IndependentSum(np.ones(1), np.full((1, 1), np.inf), np.ones((1, 1)), np.full(1, np.inf)), 0.0)
    if not above:
        return LossLaw(_merged(pair.masses, values - doubt), 0.0)
    law = _split(pair.masses, np.minimum(low, values), values + doubt, np.maximum(high, values) + doubt)
    return LossLaw(law, float(left_out(pair.spread, epsilon)))


def _values(pair: PairBlanket, losses: FloatArray, epsilon: float | FloatArray) -> FloatArray:
    """r_0 - e^eps r_1 = r_0 (1 - e^(eps - loss)), to a few ulps; infinite where it overflows."""
    never = pair.ratios0 == 0.0  # x0 never gives this output, and 1 - e^(eps - loss) is infinite
    with np.errstate(over="ignore", invalid="ignore"):
        usual = -pair.ratios0 * np.expm1(epsilon - np.where(never, 0.0, losses))
    return np.where(never, -np.exp(np.minimum(epsilon, 709.0)) * pair.ratios1, usual) if never.any() else usual


@dataclass(frozen=True, eq=False)
class UpperLaws:
    """Discrete laws above L of a continuous pair at many epsilons, on a lattice each.

    Parameters
    ----------
    values, weights : ndarray, shape (epsilons, MOST_ATOMS)
        Lattice points and their probabilities, some of which may be 0.
    charge : ndarray, shape (epsilons,)
        As `LossLaw.charge`.
    usable : ndarray of bool, shape (epsilons,)
        Whether the law was made: it has room on a lattice, and its values are in range.
    """

    values: FloatArray
    weights: FloatArray
    charge: FloatArray
    usable: NDArray[np.bool_]

    @property
    def alone(self) -> FloatArray:
        """As `LossLaw.alone`, shape (epsilons,)."""
        positive = (np.maximum(self.values, 0.0) * self.weights).sum(axis=1)
        return np.minimum(positive * (1.0 + _MARGIN) + self.charge, 1.0)


def upper_laws(pair: PairBlanket, spread: CellSpread, epsilons: FloatArray) -> UpperLaws:
    """Return the laws of `loss_law` above L at many epsilons.

    Parameters
    ----------
    pair : PairBlanket
        Of a continuous randomizer.
    spread : CellSpread
        The pair's.
    epsilons : ndarray, shape (epsilons,)
        Nats, at least 0, and below 700.
    """
    epsilon = epsilons[:, None]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        values, low, high, doubt = _bounds(pair, spread, epsilon)
        mean, low, high = values + doubt, np.minimum(low, values), np.maximum(high, values) + doubt
        values, weights = _at_ends(pair.masses, low, mean, high)
        scale = np.sqrt((weights * values**2).sum(axis=1))[:, None]
        usable = (scale[:, 0] > 0.0) & (scale[:, 0] < _LARGEST)
        at = np.arcsinh(values / scale)
        first, last = at.min(axis=1)[:, None], at.max(axis=1)[:, None]
        lattice = scale * np.sinh(first + (last - first) * np.linspace(0.0, 1.0, MOST_ATOMS))
        lattice[:, 0], lattice[:, -1] = values.min(axis=1), values.max(axis=1)
        usable &= (np.diff(lattice, axis=1) > 0.0).all(axis=1)
        if not usable.any():
            return UpperLaws(lattice, np.zeros_like(lattice), left_out(spread, epsilon), usable)
        places = np.where(usable[:, None], at, first)
        guess = np.nan_to_num((places - first) * ((MOST_ATOMS - 1.0) / (last - first)))
        place = np.clip(guess.astype(np.int64), 0, MOST_ATOMS - 2)
        rows = np.arange(epsilons.size)[:, None]
        place -= (lattice[rows, place] > values) & (place > 0)
        place += (lattice[rows, place + 1] <= values) & (place < MOST_ATOMS - 2)
        between = (lattice[rows, place] <= values) & (values <= lattice[rows, place + 1])
        usable &= between.all(axis=1)
        # a sum has at most so many terms, each good to a few roundoffs: no mass is below the exact one, but for what a
        # rounded share moves left, which the raised means make good; E (x + ...)_+ is not negative, and increases in x
        up = 1.0 + roundoff(values.shape[1] + 16)
        return UpperLaws(lattice, up * _placed(values, weights, lattice, place), left_out(spread, epsilon), usable)


def _bounds(
    pair: PairBlanket, spread: CellSpread, epsilon: float | FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return L's mean over each cell of a continuous pair, bounds on L there, and the doubt about all of them."""
    values = _values(pair, pair.losses, epsilon)
    low, high = loss_range(spread, epsilon)
    size = np.abs(values) + np.abs(high) + np.abs(low) + pair.ratios0 + np.exp(epsilon) * pair.ratios1
    return values, low, high, _MARGIN * size


def stacked(laws: list[IndependentSum]) -> IndependentSum:
    """Return one sum of independent terms that joins the groups of all the given sums.

    Groups with fewer atoms than others get further atoms of chance 0.
    """
    groups, atoms = sum(law.counts.size for law in laws), max(law.values.shape[1] for law in laws)
    values, probabilities, at = np.zeros((groups, atoms)), np.zeros((groups, atoms)), 0
    for law in laws:
        rows, cells = law.values.shape
        values[at : at + rows, :cells], probabilities[at : at + rows, :cells] = law.values, law.probabilities
        at += rows
    counts, means = np.concatenate([law.counts for law in laws]), np.concatenate([law.means for law in laws])
    return IndependentSum(counts, values, probabilities, means, max(law.doubt for law in laws))


def left_out(spread: CellSpread, epsilon: float | FloatArray) -> FloatArray:
    """Return the divergence of the parts of the output space that the cells leave out, rounded up.

    It is the sum over these parts A of (1 - e^(epsilon - loss))_+ R(x0)(A), x0 the first input of the pair.

    Parameters
    ----------
    spread : CellSpread
        The parts left out, each with its mass under x0 and its largest loss.
    epsilon : float
        Nats.
    """
    share = -np.expm1(np.minimum(epsilon - spread.left_out_loss, 0.0))
    return np.sum(share * spread.left_out_mass, axis=-1) * (1.0 + _MARGIN)


def loss_range(spread: CellSpread, epsilon: float | FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper bounds on the product r_0 (1 - e^(epsilon - loss)) over each cell, shape (cells,).

    Each bound is the product of the bounds on its two factors, which `spread` states.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        worst, best = -np.expm1(epsilon - spread.loss_low), -np.expm1(epsilon - spread.loss_high)
        low = worst * np.where(worst > 0, spread.ratio_low, spread.ratio_high)
        high = best * np.where(best > 0, spread.ratio_high, spread.ratio_low)
    return low, high


def _split(masses: FloatArray, low: FloatArray, mean: FloatArray, high: FloatArray) -> IndependentSum:
    """Spread each cell's mass over its two ends, and both ends over a lattice, keeping every mean."""
    values, weights = _at_ends(masses, low, mean, high)
    lattice = _lattice(values, weights)
    if lattice.size == MOST_ATOMS:
        at = np.clip(np.searchsorted(lattice, values, side="right") - 1, 0, MOST_ATOMS - 2)
        mass = _placed(values[None], weights[None], lattice[None], at[None])[0]
        values, weights = lattice[mass > 0], mass[mass > 0]
    products = values * weights
    mean_up = math.fsum(products.tolist()) + roundoff(90, float(np.abs(products).sum()))
    return IndependentSum(np.ones(1), values[None], weights[None], np.array([mean_up]))


def _at_ends(masses: FloatArray, low: FloatArray, mean: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return each cell's two ends, and its mass spread over them with the same mean; cells on the last axis."""
    width = np.maximum(high - low, 0.0)
    share = np.where(width > 0, np.clip((mean - low) / np.where(width > 0, width, 1.0), 0.0, 1.0), 1.0)
    return np.concatenate((low, high), axis=-1), np.concatenate((masses * (1.0 - share), masses * share), axis=-1)


def _placed(values: FloatArray, weights: FloatArray, lattice: FloatArray, at: NDArray[np.int64]) -> FloatArray:
    """Return the masses of each law on its lattice, means kept; ``at`` holds the places of the points below values."""
    rows = np.arange(lattice.shape[0])[:, None]
    left, right = lattice[rows, at], lattice[rows, at + 1]
    up = np.clip((values - left) / (right - left), 0.0, 1.0)
    place = (at + lattice.shape[1] * rows).ravel()
    parts = np.concatenate(((weights * (1.0 - up)).ravel(), (weights * up).ravel()))
    mass: FloatArray = np.bincount(np.concatenate((place, place + 1)), parts, lattice.size).astype(np.float64)
    return mass.reshape(lattice.shape)


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
