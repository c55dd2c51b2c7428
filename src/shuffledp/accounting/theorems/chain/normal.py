"""The chain theorem for normal vectors: groups of users, what they leave open, and (H) of docs/theorems/chain.md.

All messages are N(g, I) with |g - g'| <= mu, up to scale. The groups A_k, ..., A_1 are disjoint sets of the victim's
company. D(x) is the divergence of two normal laws mu apart at e^eps = e^x. With p the charge of one step, the *hub*
leaves A_k weights that sum to 1 and are at most 1/N, N = floor(0.9 |A_k|/b), where 11 D(ln b) <= p; what is cut off
is paid. From weights at most 1/N, the weights one group on are averages of log-normal variables that stray no more,
in convex order, than the average of N independent ones; they are cut at 1 + s and lifted to 1 - l (`LognormalMeans`),
and after that lie within a ratio r = (1 + s)/(1 - l) of each other, so that the largest of |A_j| normalised ones is
at most r/|A_j|: N_j = floor(|A_j|/r). In the last group A_1, weights with sum 1 within a ratio r of each other have

    sum w^2 <= (1 + (r - 1)^2/(4 r))/|A_1|,     max w <= r/|A_1|                                                  (W)

(w |A_1| has mean 1 and lies in [x, r x]: its variance is at most (r x - 1)(1 - x)). All in all, with P = k p,

    H(eps) <= e^P ( Psi(eps) + P D(eps) ) + (e^eps - 1)(e^P - 1),                                                 (H)

Psi = `positive_part` of such weights. The sizes of the groups belong to the proof: every choice is a bound, and a
search may be as crude as it likes.

**Rounding.** Counts are rounded down, ratios, (W) and (H) up by 1e-9 relative; D comes rounded up, and mu is rounded
up by 64 units of 2^-53, which covers how far discrete noise as drawn is from the law it is accounted as.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from shuffledp.accounting.theorems.chain.moments import LARGEST_MU, Weights, positive_part, ratio_moments
from shuffledp.numerics.gaussian_tail import normal_divergence
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.special import ndtr

# ------------------------------------------------------------------ lognormal means
# How far an average of independent log-normal weights strays from its mean 1, certified.
#
# rho = exp(mu Z - mu^2/2), Z standard normal, so E rho = 1. For N independent copies and a charge p this module finds
#
#     s with E( avg_N rho - (1 + s) )_+ <= p      and      l with E( (1 - l) - avg_N rho )_+ <= p.
#
# **Derivation.** x_+ <= e^(tx)/(e t) for t > 0 (the exponential touches the line at x = 1/t). With tau = t/N,
#
#     E( avg - (1 + s) )_+ <= exp( N log E e^(tau (rho - 1)) - N tau s ) / (e N tau),                              (E)
#
# so for given tau the smallest s is one division, and the smallest over a grid of tau is taken; likewise with -tau for
# l. E e^(tau rho) is infinite: rho is cut at c = rho(z_top) first, and E( avg - avg min(rho, c) ) = E(rho - c)_+, which
# is the divergence of two normal laws at e^eps = c, is at most p/2; (E) gets the other half.
#
# **The moments.** The line of z is cut into cells. In a cell rho has a known mass P = Phi(z') - Phi(z) and a known
# part of the mean Q = Phi(z' - mu) - Phi(z - mu); e^(tau rho) is convex, hence at most its chord at Q/P. Below the
# first cell and above the last one the value at the end is taken.
#
# **Rounding.** Masses are differences of tails on their own side of 0, good to 1e-12 relative: cells are 1/16 wide,
# so that a difference cancels at most five bits, and no tail is below 1e-300. A share Q/P within its cell is then off
# by at most 1e-11/mu, and is moved by that to the unsafe side's opposite; every moment is raised by 1e-10 relative,
# the few hundred exponentials of arguments below 700 among them.

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
    """Return the normal masses of the cells between ascending points, from the tail on the cell's own side of 0."""
    low, high = ndtr(z), ndtr(-z)
    return np.where(z[:-1] > 0.0, high[:-1] - high[1:], np.diff(low))


SMALLEST_SHIFT, LARGEST_SHIFT = 1e-3, LARGEST_MU - 1e-6
"""Range of mu for which the theorem is evaluated."""
CHARGES = tuple(10.0**-power for power in (5, 7, 9, 11, 13, 16, 20, 27, 40))
"""Total charges P for which groups are chosen; at every eps the best of them serves."""
_STEPS = 4
_KEPT = 0.9
_SIZES = 30
_DOUBT = 1e-9
_ULPS = 2.0**-47


@dataclass(frozen=True, eq=False)
class Links:
    """Groups for several charges, and what they leave open.

    Parameters
    ----------
    mu : float
        Rounded up.
    charges : ndarray, shape (ways,)
        P of (H).
    weights : Weights
        Of the last group, with the cut of the tail.
    sizes : tuple of tuple of int
        Per way the sizes of the groups, from the hub on, the last one included.
    """

    mu: float
    charges: FloatArray
    weights: Weights
    sizes: tuple[tuple[int, ...], ...]

    def divergence(self, epsilon: float) -> float:
        """Return (H), rounded up, here or before, or the divergence of the message itself where that is smaller.

        The true divergence does not increase, so what (H) says at a smaller epsilon holds here.

        Parameters
        ----------
        epsilon : float
            Nats, at least 0, finite.
        """
        own = float(normal_divergence(epsilon, self.mu).upper)
        if not self.sizes:
            return own
        at, least = self._ladder
        before = int(np.searchsorted(at, epsilon, side="right")) - 1
        return min(self._here(epsilon, own), float(least[before]) if before >= 0 else own, own)

    @cached_property
    def _ladder(self) -> tuple[FloatArray, FloatArray]:
        """Epsilons, and the smallest value of (H) up to each."""
        at = np.concatenate(([0.0], np.geomspace(0.5, 40.0, 24) * self.mu * math.sqrt(self.weights.squares.min())))
        values = [self._here(epsilon, float(normal_divergence(epsilon, self.mu).upper)) for epsilon in at.tolist()]
        return at, np.minimum.accumulate(values)

    def _here(self, epsilon: float, own: float) -> float:
        """(H) with the best of the charges."""
        growth = math.expm1(min(epsilon, 30.0)) * (1.0 + _ULPS)
        moments = ratio_moments(self.mu).at(growth)
        psi = positive_part(growth * (1.0 - 4.0 * _ULPS), self.weights, moments)
        total = np.exp(self.charges) * (psi + self.charges * own) + growth * np.expm1(self.charges)
        return float(total.min()) * (1.0 + _DOUBT)


@lru_cache(maxsize=64)
def links(mu: float, others: int) -> Links:
    """Choose groups among the victim's company.

    Parameters
    ----------
    mu : float
        Diameter of the ball of messages in standard deviations of their noise, in [1e-3, 1.199999].
    others : int
        Users besides the victim, at least 1.

    Raises
    ------
    ValueError
        If mu is out of range.

    Examples
    --------
    >>> links(0.5, 59_999).divergence(0.01) < 1e-7
    True
    """
    if not SMALLEST_SHIFT <= mu <= LARGEST_SHIFT:
        raise ValueError(f"the chain theorem is evaluated for mu in [{SMALLEST_SHIFT}, {LARGEST_SHIFT}]; got {mu}")
    raised = mu * (1.0 + _ULPS)
    found = [(charge, *best) for charge in CHARGES if (best := _groups(raised, others, charge)) is not None]
    logs = np.arange(1.0, 40.0, 0.125) * raised
    lost = np.asarray(normal_divergence(logs, raised).upper)
    cuts = np.array([int(np.argmax(lost <= 0.01 * charge)) for charge, _, _ in found], dtype=np.int64)
    last = np.array([groups[-1] for _, groups, _ in found], dtype=np.float64)
    ratio = np.array([r for _, _, r in found])
    weights = Weights(
        (1.0 + (ratio - 1.0) ** 2 / (4.0 * ratio)) / last * (1.0 + _DOUBT),
        ratio / last * (1.0 + _DOUBT),
        np.exp(logs[cuts]) * (1.0 + _DOUBT),
        lost[cuts] * (1.0 + _DOUBT),
    )
    return Links(raised, np.array([charge for charge, _, _ in found]), weights, tuple(groups for _, groups, _ in found))


def _groups(mu: float, others: int, charge: float) -> tuple[tuple[int, ...], float] | None:
    """Sizes of two to four groups with the smallest sum of squared weights found, and the last ratio."""
    means = LognormalMeans(mu, charge / _STEPS)
    logs = np.arange(0.5, 40.0, 0.05) * mu
    hub = np.asarray(normal_divergence(logs, mu).upper) * (1.0 + 1.0 / (1.0 - _KEPT)) * (1.0 + _DOUBT)
    height = math.exp(float(logs[int(np.argmax(hub <= charge / _STEPS))]))
    sizes = np.unique(np.floor(np.geomspace(4.0, max(others / 2.0, 5.0), _SIZES)))
    chains, used = [(int(size),) for size in sizes], sizes
    ratio = _ratio(means, np.floor(_KEPT * sizes / height * (1.0 - _DOUBT)))
    best: tuple[float, tuple[int, ...], float] | None = None
    for step in range(_STEPS - 1):
        left = others - used
        there = (left >= 1) & np.isfinite(ratio)
        if not there.any():
            break
        known = np.where(there, ratio, 1.0)
        value = np.where(there, (1.0 + (known - 1.0) ** 2 / (4.0 * known)) / np.maximum(left, 1.0), math.inf)
        at = int(np.argmin(value))
        if best is None or value[at] < best[0]:
            best = float(value[at]), (*chains[at], int(left[at])), float(ratio[at])
        if step == _STEPS - 2:
            break
        front = _front(used, ratio)
        following = np.floor(sizes[None, :] / ratio[front][:, None] * (1.0 - _DOUBT))
        chains = [(*chains[i], int(size)) for i in front for size in sizes]
        used = (used[front][:, None] + sizes[None, :]).ravel()
        ratio = _ratio(means, following.ravel())
    return None if best is None else best[1:]


def _ratio(means: LognormalMeans, copies: FloatArray) -> FloatArray:
    """(1 + s)/(1 - l) after averages of so many, rounded up; inf where nothing is left."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (1.0 + means.excess(copies)) / (1.0 - means.shortfall(copies)) * (1.0 + _DOUBT)
    return np.where(np.isfinite(found) & (found >= 1.0), found, math.inf)


def _front(used: FloatArray, ratio: FloatArray) -> list[int]:
    """Chains that no other beats in both users and ratio."""
    kept: list[int] = []
    least = math.inf
    for index in np.argsort(used, kind="stable").tolist():
        if ratio[index] < least:
            least = float(ratio[index])
            kept.append(index)
    return kept
