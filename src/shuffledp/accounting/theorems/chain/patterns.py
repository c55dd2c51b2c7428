"""Largest moments of a link's privacy loss over all pure reports: linear programmes over patterns of likelihood.

Three records have densities (R_0, R_1, R_J)(y) in the cone {max <= E min}, E = e^epsilon0. Scaled so that its smallest
entry is 1, such a point lies in the cube [1, E]^3; so it is a mean of corners, and every point of the cone a positive
combination of the eight patterns {1, E}^3, of which (E, E, E) is E times (1, 1, 1). With L = (R_0 - e^eps R_1)/R_J,

    R_J |L - E L|^k = R_J |R_0/R_J - 1 - e^eps (R_1/R_J - 1)|^k =: F_k(R_0, R_1, R_J)

is convex and homogeneous (the perspective of a convex function), hence on the cone at most what the same combination
of patterns gives. Densities integrate to 1, so the largest moment is that of a linear programme, and it is attained:

    E|L - E L|^k <= max { sum_a q_a F_k(a) :  q >= 0,  sum_a q_a a = (1, 1, 1) }.                                  (P)

**Rounding.** By weak duality every lambda gives the upper bound lambda . b + b_1 max(0, max_a F(a) - lambda . a), for
constraints sum_a q_a a_i = b_i of which the first has a_1 >= 1: a basis of the programme only has to be *near* the
best one. The products of the certificate are off by less than 1e-14 of the terms they add, and that is added. F is
a product of a few factors, each good to an ulp: 1 + x with x one of u = E - 1, -v = 1/E - 1, 0, so that no entry is a
difference of almost equal numbers. E is a double above e^epsilon0, which only widens the cone. Results are raised by
1e-9.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.theorems.chain.moments import RatioMoments
from shuffledp.numerics.floats import round_up
from shuffledp.numerics.interval import FloatArray

_DOUBT, _PRODUCTS = 1e-9, 1e-14
_SINGULAR, _NEGATIVE = 1e-3, 1e-9


@dataclass(frozen=True, eq=False)
class Programme:
    """max { q . values : q >= 0, columns q = margins }, from above, for many values.

    Parameters
    ----------
    columns : ndarray, shape (rows, patterns)
        The first row at least 1 everywhere.
    margins : ndarray, shape (rows,)
        What the rows sum to; the first one positive.
    """

    columns: FloatArray
    margins: FloatArray

    @cached_property
    def _bases(self) -> tuple[NDArray[np.int64], FloatArray]:
        """Columns of the feasible bases and their inverses, shapes (bases, rows) and (bases, rows, rows)."""
        rows, patterns = self.columns.shape
        chosen = np.array(list(combinations(range(patterns), rows)), dtype=np.int64)
        matrices = self.columns[:, chosen].transpose(1, 0, 2)
        regular = np.abs(np.linalg.det(matrices)) > _SINGULAR
        chosen, inverses = chosen[regular], np.asarray(np.linalg.inv(matrices[regular]), dtype=np.float64)
        feasible = (inverses @ self.margins).min(axis=1) > -_NEGATIVE
        return chosen[feasible], inverses[feasible]

    def largest(self, values: FloatArray) -> FloatArray:
        """Return upper bounds of the maxima, shape (programmes,).

        Parameters
        ----------
        values : ndarray, shape (programmes, patterns)
            Good to 1e-14 of each entry.
        """
        chosen, inverses = self._bases
        dual = np.einsum("pbi,bij->pbj", values[:, chosen], inverses)
        short = (values[:, None, :] - dual @ self.columns).max(axis=2)
        doubt = _PRODUCTS * (np.abs(dual) @ np.abs(self.columns).max(axis=1) + np.abs(values).max(axis=1)[:, None])
        found = dual @ self.margins + self.margins[0] * (np.maximum(short, 0.0) + 2.0 * doubt)
        return found.min(axis=1)


@lru_cache(maxsize=64)
def _any_pure(high: float) -> Programme:
    """(P) without the pattern (E, E, E), which is E times the first one.

    That all three densities integrate to 1 is that R_0 does, and that each of the others is E as often as R_0.
    """
    bits = np.array(list(product((0.0, 1.0), repeat=3))[:-1]).T
    return Programme(np.array([np.where(bits[0] > 0.0, high, 1.0), bits[0] - bits[1], bits[0] - bits[2]]), np.eye(3)[0])


def _losses(high: float, growth: float) -> FloatArray:
    """|L - E L| for every pattern of (R_0, R_1, R_J), R_J changing fastest; shape (8,)."""
    up = high - 1.0
    # |x - (1 + growth) y|, where 1 + x and 1 + y are the ratios of R_0 and R_1 to R_J, for (R_0, R_1) = 11, 1E, E1, EE
    at_low = up * np.array([0.0, 1.0 + growth, 1.0, growth])  # x, y = up for an E, else 0
    at_high = up / high * np.array([growth, 1.0, 1.0 + growth, 0.0])  # x, y = up/E downwards for a 1, else 0
    return np.stack((at_low, at_high), axis=1).ravel()


@lru_cache(maxsize=256)
def any_moments(epsilon0: float, growth: float) -> RatioMoments:
    """Return the moments of L - E L for any three laws within a factor e^epsilon0 of each other.

    Parameters
    ----------
    epsilon0 : float
        Nats, in (0, 8].
    growth : float
        e^eps - 1, at least 0.

    Examples
    --------
    >>> round(any_moments(0.5, 0.0).second, 6)  # randomized response: (E - 1)^2/E
    0.255252
    """
    high = round_up(math.exp(epsilon0), 4)
    losses, own = _losses(high, growth), np.tile([1.0, high], 4)
    values = np.array([own * losses**k for k in (2, 3, 4)])[:, :-1]
    second, absolute, fourth = (_any_pure(high).largest(values) * (1.0 + _DOUBT)).tolist()
    return RatioMoments(second, absolute, absolute, fourth)


@lru_cache(maxsize=64)
def _two_levels(share: float) -> Programme:
    """Return the overlaps of three sets of one mass."""
    bits = np.array(list(product((0.0, 1.0), repeat=3))).T
    return Programme(np.vstack((np.ones(8), bits)), np.array([1.0, share, share, share]))


@lru_cache(maxsize=256)
def two_level_moments(epsilon0: float, share: float, growth: float) -> RatioMoments:
    """Return the moments of L - E L for reports of two likelihoods, whichever three records.

    Parameters
    ----------
    epsilon0 : float
        Nats, in (0, 8].
    share : float
        f = omega(A_x), in (0, 1), a few ulps off.
    growth : float
        e^eps - 1, at least 0.

    Examples
    --------
    >>> round(two_level_moments(0.5, 0.5, 0.0).second, 6)  # the sets of two outcomes
    0.255252
    """
    high = round_up(math.exp(epsilon0), 4)
    least = round_up(1.0 / (1.0 + share * (high - 1.0)), 4)
    losses, own = _losses(high, growth), np.tile([1.0, high], 4)
    values = least * np.array([own * losses**k for k in (2, 3, 4)])
    second, absolute, fourth = (_two_levels(share).largest(values) * (1.0 + _DOUBT)).tolist()
    return RatioMoments(second, absolute, absolute, fourth)
