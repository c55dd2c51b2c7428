"""Two laws of one report against each other, as finitely many atoms: exact ones, and ones that dominate.

A pair of laws (A, B) is *above* another one, (A', B'), if one channel maps A to A' and B to B'. A part of the outputs
on which the ratio A'/B' lies between l_1 and l_2 is below two atoms with the ratios l_1 and l_2 and the same two masses
(the two-point law is the extreme one, in convex order, of its mean), so cutting outputs by their ratio and moving each
part to the two ends of its interval gives a finite pair above a continuous one:

    b_1 = int B (l_2 - l)/(l_2 - l_1),    b_2 = int B (l - l_1)/(l_2 - l_1),    a_k = l_k b_k.                       (2)

For Laplace noise of rate r between two records at distance 1, cut into parts of equal loss 4h, (2) is elementary: an
inner atom of loss x has a = e^((x-r)/2) tanh(h), b = e^(-(x+r)/2) tanh(h).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from shuffledp.numerics.interval import FloatArray

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)
_REACH = 9.0
_CORE = 5.0
_ULPS = 48.0


@dataclass(frozen=True, eq=False)
class TwoLaws:
    """Laws A and B of one report on common atoms.

    Parameters
    ----------
    masses_a, masses_b : ndarray, shape (atoms,)
        Good to ``doubt`` units of 2^-53, relative; each sums to 1.
    losses : ndarray, shape (atoms,)
        log(A/B), good to 4 units relative; inf where B has no mass, -inf where A has none.
    doubt : float
        At least 8.
    """

    masses_a: FloatArray
    masses_b: FloatArray
    losses: FloatArray
    doubt: float

    def likely_distance(self, reports: int) -> float:
        """The larger chi-square distance of A and B, n mu^2 of an equal crowd, over outputs that are likely to occur.

        An estimate: it places searches, nothing is proved by it.
        """
        largest = 1e-12
        for crowd in (self.masses_a, self.masses_b):
            likely = crowd > 1e-3 / reports
            largest = max(largest, float(((self.masses_a - self.masses_b)[likely] ** 2 / crowd[likely]).sum()))
        return largest


def laplace_laws(scale: float, parts: int) -> TwoLaws:
    """Return atoms above Laplace noise around two records at distance 1.

    Parameters
    ----------
    scale : float
        Of the noise, positive; 1/scale is at most 300.
    parts : int
        Number of parts, at least 1.
    """
    rate = 1.0 / scale
    losses = rate * (2.0 * np.arange(parts + 1) - parts) / parts
    share = math.tanh(0.5 * rate / parts)
    masses = np.exp(0.5 * (losses - rate)) * share
    masses[0] = 0.5 * math.exp(-rate) * (1.0 + share)
    masses[-1] = 0.5 * (1.0 + share)
    return TwoLaws(masses, masses[::-1].copy(), losses, _ULPS + 8.0 * rate)


def gaussian_laws(sigma: float, parts: int) -> TwoLaws:
    """Return atoms above normal noise around two records at distance 1.

    Parameters
    ----------
    sigma : float
        Standard deviation, positive; 1/sigma is at most 20.
    parts : int
        Number of parts within 5 standard deviations of either record, at least 2; the rest is cut more coarsely, and
        what lies beyond 9 of them is put on two atoms of infinite loss.
    """
    shift = 1.0 / sigma
    inner, outer = 0.5 * shift + _CORE, 0.5 * shift + _REACH
    half = np.concatenate((np.linspace(0.0, inner, parts // 2 + 1), np.linspace(inner, outer, parts // 8 + 2)[1:]))
    ends = np.concatenate((-half[:0:-1], half))  # of (y - 1/2)/sigma; A lies at -shift/2, B at shift/2
    losses = -shift * ends
    low, high = losses[1:], losses[:-1]  # of the part between two ends, where the loss falls
    width = ends[1:] - ends[:-1]
    nodes = ends[:-1, None] + width[:, None] * (0.5 + 0.5 * _NODES)
    law_b = np.exp(-0.5 * (nodes - 0.5 * shift) ** 2) * (0.5 * width[:, None] * _WEIGHTS) / math.sqrt(2.0 * math.pi)
    loss, span = -shift * nodes, -np.expm1(low - high)[:, None]
    to_low = (law_b * (-np.expm1(loss - high[:, None])) / span).sum(axis=1)
    to_high = (law_b * np.exp(loss - high[:, None]) * (-np.expm1(low[:, None] - loss)) / span).sum(axis=1)
    inner_b = np.zeros(ends.size)
    inner_b[1:] += to_low
    inner_b[:-1] += to_high
    tails = float(ndtr(-_REACH)) + float(ndtr(-_REACH - shift))
    masses_a = np.concatenate(([tails], inner_b * np.exp(losses), [0.0]))[::-1].copy()
    masses_b = np.concatenate(([0.0], inner_b, [tails]))[::-1].copy()
    losses = np.concatenate(([math.inf], losses, [-math.inf]))[::-1].copy()
    return TwoLaws(masses_a, masses_b, losses, _ULPS + 8.0 * shift * outer)
