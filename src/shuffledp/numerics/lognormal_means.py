"""How far an average of independent log-normal weights strays from its mean 1, certified.

rho = exp(mu Z - mu^2/2), Z standard normal, so E rho = 1. For N independent copies and a charge p this module finds

    s with E( avg_N rho - (1 + s) )_+ <= p      and      l with E( (1 - l) - avg_N rho )_+ <= p.

**Derivation.** x_+ <= e^(tx)/(e t) for t > 0 (the exponential touches the line at x = 1/t). With tau = t/N,

    E( avg - (1 + s) )_+ <= exp( N log E e^(tau (rho - 1)) - N tau s ) / (e N tau),                              (E)

so for given tau the smallest s is one division, and the smallest over a grid of tau is taken; likewise with -tau for
l. E e^(tau rho) is infinite: rho is cut at c = rho(z_top) first, and E( avg - avg min(rho, c) ) = E(rho - c)_+, which
is the divergence of two normal laws at e^eps = c, is at most p/2; (E) gets the other half.

**The moments.** The line of z is cut into cells. In a cell rho has a known mass P = Phi(z') - Phi(z) and a known part
of the mean Q = Phi(z' - mu) - Phi(z - mu); e^(tau rho) is convex, hence at most its chord at Q/P. Below the first cell
and above the last one the value at the end is taken.

**Rounding.** Masses are differences of tails on their own side of 0, good to 1e-12 relative: cells are 1/16 wide, so
that a difference cancels at most five bits, and no tail is below 1e-300. A share Q/P within its cell is then off by at
most 1e-11/mu, and is moved by that to the unsafe side's opposite; every moment is raised by 1e-10 relative, the few
hundred exponentials of arguments below 700 among them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shuffledp.numerics.gaussian_tail import normal_divergence
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.special import ndtr

_CELLS_PER_UNIT = 16
_LOWEST = -10.0
_TILTS = np.geomspace(2e-3, 40.0, 72)  # in units of 1/mu
_SHARE_DOUBT = 1e-11
_MOMENT_DOUBT = 1e-10
_LARGEST_EXPONENT = 600.0


@dataclass(frozen=True, eq=False)
class LognormalMeans:
    """Averages of independent copies of exp(mu Z - mu^2/2).

    Parameters
    ----------
    mu : float
        In [1e-4, 2]. Averages for a larger mu stray more in convex order, so mu may be rounded up.
    charge : float
        p, in [1e-60, 0.1].

    Examples
    --------
    >>> means = LognormalMeans(0.5, 1e-10)
    >>> bool(0.0 < means.shortfall(np.array([100]))[0] < means.excess(np.array([100]))[0] < 1.0)
    True
    """

    mu: float
    charge: float

    def excess(self, copies: FloatArray) -> FloatArray:
        """Return s with E( avg - (1 + s) )_+ at most the charge.

        Parameters
        ----------
        copies : ndarray, shape (any,)
            N, whole numbers; where N < 1 the answer is inf.

        Returns
        -------
        ndarray, shape (any,)
            Positive.
        """
        return self._smallest(copies, self._log_moments[0], 0.5 * self.charge)

    def shortfall(self, copies: FloatArray) -> FloatArray:
        """Return l with E( (1 - l) - avg )_+ at most the charge; 1 where no smaller one is found, and see `excess`."""
        return np.minimum(self._smallest(copies, self._log_moments[1], self.charge), 1.0)

    def _smallest(self, copies: FloatArray, log_moments: FloatArray, charge: float) -> FloatArray:
        """(E) solved for s, the smallest over the grid of tilts."""
        there = copies >= 1.0
        t = np.where(there, copies, 1.0)[:, None] * self._tau
        found = (np.where(there, copies, 1.0)[:, None] * log_moments - 1.0 - np.log(t) - math.log(charge)) / t
        smallest = found.min(axis=1)
        return np.where(there, np.maximum(smallest, 0.0) * (1.0 + _MOMENT_DOUBT) + _MOMENT_DOUBT, math.inf)

    @cached_property
    def _tau(self) -> FloatArray:
        return _TILTS / self.mu

    @cached_property
    def _edges(self) -> FloatArray:
        """Ends of the cells in z: from -10 to where what lies above may be charged."""
        above = np.arange(1.0, 40.0, 1.0 / _CELLS_PER_UNIT)
        lost = normal_divergence(self.mu * above - 0.5 * self.mu**2, self.mu * (1.0 + _SHARE_DOUBT)).upper
        top = above[int(np.argmax(lost <= 0.49 * self.charge))] if (lost <= 0.49 * self.charge).any() else 40.0
        return np.arange(_LOWEST, top + 0.5 / _CELLS_PER_UNIT, 1.0 / _CELLS_PER_UNIT)

    @cached_property
    def _log_moments(self) -> tuple[FloatArray, FloatArray]:
        """Upper bounds of log E exp(tau (min(rho, c) - 1)) and of log E exp(-tau (rho - 1)), shape (tilts,)."""
        z, tau = self._edges, self._tau
        rho = np.exp(self.mu * z - 0.5 * self.mu**2)
        mass, part = _masses(z), _masses(z - self.mu)
        inside = np.divide(part, mass, out=rho[1:].copy(), where=mass > 0.0)
        share = (inside - rho[:-1]) / np.diff(rho)
        below, above = float(ndtr(z[0])), float(ndtr(-z[-1]))
        found: list[FloatArray] = []
        for sign, ends in ((1.0, (rho[0], rho[-1])), (-1.0, (0.0, rho[-1]))):
            safe = np.clip(share + sign * _SHARE_DOUBT / self.mu, 0.0, 1.0)
            with np.errstate(over="ignore"):
                value = np.exp(sign * tau[:, None] * (rho - 1.0))
                moment = ((1.0 - safe) * value[:, :-1] + safe * value[:, 1:]) @ mass
                moment += below * np.exp(sign * tau * (ends[0] - 1.0)) + above * np.exp(sign * tau * (ends[1] - 1.0))
            usable = tau * (rho[-1] + 1.0) < _LARGEST_EXPONENT
            found.append(np.where(usable, np.log1p(np.where(usable, moment - 1.0, 0.0)) + 2.0 * _MOMENT_DOUBT, np.inf))
        return found[0], found[1]


def _masses(z: FloatArray) -> FloatArray:
    """Normal masses of the cells between ascending points, from the tail on the cell's own side of 0."""
    low, high = ndtr(z), ndtr(-z)
    return np.where(z[:-1] > 0.0, high[:-1] - high[1:], np.diff(low))
