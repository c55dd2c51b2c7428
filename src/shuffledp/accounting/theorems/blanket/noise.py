"""Added noise under the common blanket theorem: the best core, and the end points, the worst pair (`noise_core`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.profiles.profile import PrivacyProfile, gaussian_delta, gaussian_epsilon, log_end, safe_side
from shuffledp.accounting.theorems.blanket.loss_laws import loss_law
from shuffledp.accounting.theorems.blanket.pairs import OneBudgetProfile, OwnBudgetsProfile
from shuffledp.numerics.counts import BlockedCount, SuccessRange
from shuffledp.numerics.floats import (
    EPS,
    LEAST_MASS,
    FloatArray,
    Interval,
    Upper,
    deflated,
    inflated,
    roundoff,
)
from shuffledp.numerics.functions import log_ndtr, ndtr, ndtri_exp
from shuffledp.numerics.sums import positive_parts
from shuffledp.randomizers.base import CellSpread, NoiseLaw, PairBlanket

# Chances that users send a common blanket when a victim's noise is known up to a range of scales.
#
# With k_s the density of Laplace or normal noise of scale s, K_s(u) its mass above u, and a <= s <= b, every other
# user of scale t has the chance
#
#     gamma_t = 2 [K_a(1/2) - K_a(m) - K_b(far)]_+ min_{M = 1/2, far} k_t(M) / max_{a <= s <= b} k_s(M)           (T)
#
# of docs/theorems/blanket.md. As a function of s, k_s(M) rises up to s = M and then falls, for either noise.

_WIDER_MARGIN = 1e-12
"""Relative error allowed to tails and exponentials: closed forms in double precision, far above their rounding."""
_LEAST = 1e-200
"""Users with a smaller probability are counted as hiding nobody."""


def log_density(kind: str, scale: float | FloatArray, u: float | FloatArray) -> FloatArray:
    """Return log k_s(u), the log-density of noise of scale s at u, broadcast; absolute error 4 EPS (1 + |log k_s|).

    Parameters
    ----------
    kind : {"laplace", "gaussian"}
        Shape of the noise.
    scale : float or ndarray
        The scale s, positive.
    u : float or ndarray
        Any reals.
    """
    v = np.abs(u) / np.asarray(scale)
    if kind == "laplace":
        return -v - np.log(2.0 * np.asarray(scale))
    return -0.5 * v * v - np.log(np.asarray(scale) * math.sqrt(2.0 * math.pi))


def tail_above(kind: str, scale: float, u: float) -> float:
    """Return the chance that noise exceeds u >= 0; relative error below 1e-13.

    Parameters
    ----------
    kind : {"laplace", "gaussian"}
        Shape of the noise.
    scale : float
        Its scale, positive.
    u : float
        At least 0.
    """
    return 0.5 * math.exp(-u / scale) if kind == "laplace" else float(ndtr(-u / scale))


def shared_chances(
    kind: str, narrowest: float, widest: float, edges: tuple[float, float], scales: FloatArray
) -> FloatArray:
    """Return lower bounds by (T) on each other user's chance of a report that hides the victim; 0 where (T) gives none.

    Parameters
    ----------
    kind : {"laplace", "gaussian"}
        Shape of everybody's noise.
    narrowest, widest : float
        a and b, the ends of the range of the victim's scale.
    edges : tuple of float
        m and the farther edge, each at least 1.
    scales : ndarray, shape (users,)
        The others' scales, positive.

    Returns
    -------
    ndarray, shape (users,)
        Probabilities.
    """
    near, far = edges
    mass = tail_above(kind, narrowest, 0.5) * (1.0 - _WIDER_MARGIN)
    mass -= (tail_above(kind, narrowest, near) + tail_above(kind, widest, far)) * (1.0 + _WIDER_MARGIN)
    if mass <= 0.0:
        return np.zeros_like(scales)
    logs = np.full(scales.shape, math.inf)
    for distance in (0.5, far):
        own = log_density(kind, scales, distance)
        most = float(log_density(kind, min(max(distance, narrowest), widest), distance))
        logs = np.minimum(logs, own - most - 16.0 * EPS * (2.0 + np.abs(own) + abs(most)))
    return np.minimum(2.0 * mass * np.exp(np.minimum(logs, 100.0)) * (1.0 - _WIDER_MARGIN), 1.0)


def outside_mass(kind: str, widest: float, far: float) -> Upper:
    """Return an upper bound on the chance that a record in [0, 1] plus noise of at most that scale passes an edge.

    Parameters
    ----------
    kind : {"laplace", "gaussian"}
        Shape of the noise.
    widest : float
        The largest scale.
    far : float
        At least 1: reports outside [1 - far, far] have passed. The records 0 and 1 pass most often.
    """
    return Upper((tail_above(kind, widest, far - 1.0) + tail_above(kind, widest, far)) * (1.0 + _WIDER_MARGIN))


def charged(value: float, epsilon: float, outside: float) -> Upper:
    """Return an upper bound on value + e^epsilon outside, at most 1: a divergence with the mass left out charged.

    Parameters
    ----------
    value : float
        A divergence, at least 0.
    epsilon : float
        Nats.
    outside : float
        The mass left out, at least 0.
    """
    return Upper(min((value + math.exp(min(epsilon, 700.0)) * outside) * (1.0 + _WIDER_MARGIN), 1.0))


def rounded_groups(chances: FloatArray, counts: FloatArray, most: int, without: int) -> tuple[FloatArray, FloatArray]:
    """Return users' chances rounded down to at most ``most`` different ones, without the users of the largest chances.

    Parameters
    ----------
    chances, counts : ndarray, shape (groups,)
        The users' chances, and how many users have each, whole numbers as floats.
    most : int
        How many different chances are left.
    without : int
        How many users are left out.

    Returns
    -------
    chances, counts : ndarray, shape (at most ``most``,)
        Ascending chances, none of them next to 0, and how many users have each.
    """
    order = np.argsort(chances, kind="stable")
    p, n = chances[order], counts[order]
    after = np.cumsum(n[::-1])[::-1] - n
    n = n - np.clip(without - after, 0.0, n)
    keep = (n > 0.0) & (p > _LEAST)
    p, n = p[keep], n[keep]
    if p.size <= most:
        return p, n
    # runs of equal loss: the chance lost by rounding a run of users down is about users times spread
    weight = np.sqrt(np.diff(p, prepend=p[0]) * n)
    run = np.floor(np.cumsum(weight) * (most / max(float(weight.sum()), 1e-300)) * 0.999999)
    first = np.flatnonzero(np.diff(run, prepend=-1.0))
    return p[first], np.add.reduceat(n, first)


# ------------------------------------------------------------------ noise core
# Blankets for noise added to a number in [0, 1]: Laplace and Gaussian, own budgets (docs/theorems/blanket.md).
#
# With M(y) = max(|y|, |1-y|), the distance to the farther end of the range, every record's report has density at
# least k_s(M(y)), k_s the noise density of scale s. So for every core scale s* and edge m >= 1
#
#     omega(y) ∝ k_{s*}(M(y)) on M(y) <= m,    gamma_i = inf_{1/2 <= M <= m} k_{s_i}(M)/omega(M)                (O)
#
# is a common blanket of all budgets; the victim's mass where M > m is charged. s* and m are chosen per question,
# from budgets alone; each choice is a bound. Of all pairs of records in the range the end points have the largest
# bound (docs/theorems/end-points.md), with any core for Laplace noise, and up to `Core.proved_up_to` for normal noise.

_FINE, _TAIL = 120, 120
_DIGITS = 10  # cell ends are rounded to so many decimals, so that no two differ by rounding alone
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(6)


@dataclass(frozen=True)
class Noise:
    """Density k_s(u) of the noise: Laplace exp(-|u|/s)/(2s), or normal of standard deviation s.

    Parameters
    ----------
    kind : {"laplace", "gaussian"}
        The shape.
    scale : float
        The scale s, positive.
    """

    kind: str
    scale: float

    def log_density(self, u: FloatArray) -> FloatArray:
        """Return log k_s(u), in the shape of u; absolute error 4 roundoffs (1 + |log k_s|)."""
        return log_density(self.kind, self.scale, u)

    def mass(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return the chance of noise in [low, high], element-wise; ends of the same sign; relative error 1e-13."""
        flip = low < 0.0
        near, far = np.where(flip, -high, low) / self.scale, np.where(flip, -low, high) / self.scale
        near = np.maximum(near, 0.0)
        if self.kind == "laplace":
            return 0.5 * np.exp(-near) * -np.expm1(near - far)
        width = far - near
        # a difference of tails loses digits on short intervals; there, Gauss-Legendre is exact to 1e-15
        nodes = near[..., None] + width[..., None] * (0.5 + 0.5 * _NODES)
        short = 0.5 * width * (np.exp(-0.5 * nodes**2) @ _WEIGHTS) / math.sqrt(2.0 * math.pi)
        return np.where((near + 1.0) * width < 0.5, short, ndtr(-near) - ndtr(-far))

    def below(self, y: float) -> float:
        """Return the chance of noise in (-inf, y]."""
        v = y / self.scale
        if self.kind == "gaussian":
            return math.exp(float(log_ndtr(v)))
        return 0.5 * math.exp(v) if v < 0.0 else 1.0 - 0.5 * math.exp(-v)

    def loss(self, x0: float, x1: float, y: FloatArray) -> FloatArray:
        """Return the privacy loss log k(y - x0) - log k(y - x1) of report y (nats), which is monotone in y."""
        s = self.scale
        if self.kind == "gaussian":
            return (x0 - x1) * (2.0 * y - x0 - x1) / (2.0 * s * s)
        return np.sign(x0 - x1) * (np.clip(y, min(x0, x1), max(x0, x1)) * 2.0 - x0 - x1) / s


@dataclass(frozen=True)
class Core:
    """The common blanket omega of (O): the least density of noise of scale s* over all records, on [1 - m, m].

    Parameters
    ----------
    noise : Noise
        Shape and core scale s*.
    edge : float
        The edge m >= 1 of its support [1 - m, m], a decimal number of at most 10 digits after the point.
    """

    noise: Noise
    edge: float

    @cached_property
    def log_weight(self) -> float:
        """Logarithm of the factor that makes omega a density."""
        half = float(self.noise.mass(np.array([0.5]), np.array([self.edge]))[0])
        return -math.log(2.0 * half)

    def log_gammas(self, scales: FloatArray) -> FloatArray:
        """Return log gamma_i, the logarithm of the blanket mass, for each noise scale; at most 0, shape of ``scales``.

        log k_s - log k_{s*} is monotone in the distance, so its infimum is at one end of the support.
        """
        ends = np.array([0.5, self.edge])
        core = self.noise.log_density(ends) + self.log_weight
        out = np.min(log_density(self.noise.kind, scales[:, None], ends) - core, axis=1)
        return np.minimum(out, 0.0)

    def proved_up_to(self, victim: Noise) -> float:
        """Largest epsilon (nats, possibly inf) at which the end points are proved to be the worst pair of records.

        Theorem 1 of docs/theorems/end-points.md: normal noise needs s* >= s, or 8 s^2 epsilon <= 1.
        """
        if victim.kind == "laplace" or self.noise.scale >= victim.scale:
            return math.inf
        return deflated(1.0, 8) / (8.0 * victim.scale**2)


@dataclass(frozen=True, eq=False)
class RecordPair:
    """The laws of a victim's report for two records, on cells of one core (blanket).

    Parameters
    ----------
    core : Core
        The blanket.
    victim : Noise
        The victim's noise.
    x0, x1 : float
        The records, in [0, 1], decimal numbers of at most 10 digits; by default the end points, the worst pair.
    """

    core: Core
    victim: Noise
    x0: float = 0.0
    x1: float = 1.0

    @cached_property
    def ends(self) -> FloatArray:
        """Ends of the cells, ascending: at the records, at 1/2, and close together where densities change fast."""
        low, high = 1.0 - self.core.edge, self.core.edge
        inner = np.linspace(0.0, 1.0, _FINE + 1)
        tail = 1.0 + np.linspace(0.0, high - 1.0, _TAIL + 1)[1:]
        special = np.array([low, 0.5, high, self.x0, self.x1])
        ends: FloatArray = np.round(np.concatenate((special, inner, tail, 1.0 - tail)), _DIGITS)
        return np.unique(ends)

    @cached_property
    def omega(self) -> FloatArray:
        """Mass of each cell under the blanket omega, shape (cells,)."""
        left, right = self.ends[:-1], self.ends[1:]
        upper = left >= 0.5
        near, far = np.where(upper, left, 1.0 - right), np.where(upper, right, 1.0 - left)
        return self.core.noise.mass(near, far) * math.exp(self.core.log_weight)

    @cached_property
    def blanket(self) -> PairBlanket:
        """The pair's ratios to the core, rounded to an upper law of the loss; its gamma is set to 0 and not used.

        Where a mass is too small for a double, the largest possible ratio and loss are used (by `below` the smallest).
        """
        return self._seen(above=True)

    @cached_property
    def below(self) -> PairBlanket:
        """The pair's ratios to the core, rounded to a lower law of the loss."""
        return self._seen(above=False)

    def _seen(self, *, above: bool) -> PairBlanket:
        x0, x1 = self.x0, self.x1
        left, right = self.ends[:-1], self.ends[1:]
        mass0, mass1 = self.victim.mass(left - x0, right - x0), self.victim.mass(left - x1, right - x1)
        # where a mass has left double range, the mean over the cell is not known better than its bounds
        known0 = np.minimum(mass0, self.omega) > LEAST_MASS
        at_left, at_right = self.victim.loss(x0, x1, left), self.victim.loss(x0, x1, right)
        low, high = np.minimum(at_left, at_right), np.maximum(at_left, at_right)
        ratio_low, ratio_high = self._ratios()
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            losses, ratio = np.clip(np.log(mass0) - np.log(mass1), low, high), mass0 / self.omega
        losses = np.where(known0 & (mass1 > LEAST_MASS), losses, high if above else low)
        ratios0 = np.where(known0, np.clip(ratio, ratio_low, ratio_high), ratio_high if above else ratio_low)
        with np.errstate(over="ignore", invalid="ignore"):
            ratios1 = ratios0 * np.exp(-losses)
        spread = CellSpread(ratio_low, ratio_high, low, high, *self._left_out())
        return PairBlanket(0.0, self.omega, ratios0, ratios1, losses, spread)

    def _ratios(self) -> tuple[FloatArray, FloatArray]:
        """Bounds of R(x0)/omega on each cell: its logarithm is linear or quadratic in y there."""
        y, x0 = self.ends, self.x0
        core = self.core.noise

        def log_ratio(points: FloatArray) -> tuple[FloatArray, FloatArray]:
            """Enclose log R(x0)/omega: densities are good to 4 roundoffs (1 + |log|), their arguments to two more."""
            farther = np.maximum(np.abs(points), np.abs(1.0 - points))
            own, core_log = self.victim.log_density(points - x0), core.log_density(farther)
            value = own - core_log - self.core.log_weight
            doubt = roundoff(8, 2.0 + np.abs(own) + np.abs(core_log) + abs(self.core.log_weight))
            return value - doubt, value + doubt

        least, most = log_ratio(y)
        low, high = np.minimum(least[:-1], least[1:]), np.maximum(most[:-1], most[1:])
        if core.kind == "gaussian" and core.scale != self.victim.scale:
            for far in (0.0, 1.0):  # the farther end; the vertex of the quadratic may lie inside a cell
                a, b = 1.0 / self.victim.scale**2, 1.0 / core.scale**2
                vertex = np.clip((x0 * a - far * b) / (a - b), y[:-1], y[1:])
                least, most = log_ratio(vertex)
                low, high = np.minimum(low, least), np.maximum(high, most)
        with np.errstate(over="ignore"):
            return deflated(np.exp(low), 8), inflated(np.exp(high), 8)

    def _left_out(self) -> tuple[FloatArray, FloatArray]:
        """R(x0)-mass and largest loss beyond the support, on both sides."""
        low, high = 1.0 - self.core.edge, self.core.edge
        mass = np.array([self.victim.below(low - self.x0), self.victim.below(self.x0 - high)]) * (1.0 + roundoff(8192))
        most = inflated(abs(self.x1 - self.x0) / self.victim.scale, 16) if self.victim.kind == "laplace" else math.inf
        # beyond all records, the farther one's density is the smaller
        gains = (self.x0 < self.x1, self.x0 > self.x1)
        return mass, np.array([most if gain else 0.0 for gain in gains])


# ------------------------------------------------------------------ core choice
# Which cores are worth trying for a victim's noise among others': a choice among bounds, which it cannot spoil.

_WIDER = np.array([1.0, 1.15, 1.3, 1.45, 1.65, 1.9, 2.3])
"""Core scales that are tried, in units of the victim's scale."""
_SPREAD = 5
"""Number of further core scales, from the smallest to the largest noise scale of anybody."""
_SHARES = (1e-4, 2e-3, 0.02, 0.1)
"""Shares of delta that may be charged for outputs beyond the core's edge."""
_FIRST_SHARE = 0.02
_KEPT = 2
_FARTHEST = 200.0
"""Largest logarithm of a density ratio at the edge of a core worth trying."""


@dataclass(frozen=True, eq=False)
class CoreChoice:
    """A core with estimates of how well it serves; nothing is certified by them.

    Parameters
    ----------
    core : Core
        The core.
    mu : float
        Shift of the Gaussian limit for the end points 0 and 1 seen against the core, possibly inf.
    outside : float
        The victim's mass beyond the core's edge.
    """

    core: Core
    mu: float
    outside: float

    @classmethod
    def of(cls, core: Core, victim: Noise, scales: FloatArray, counts: FloatArray) -> CoreChoice:
        """Return the estimates of a core for a victim among others.

        Parameters
        ----------
        core : Core
            The core.
        victim : Noise
            The victim's noise.
        scales, counts : ndarray, shape (groups,)
            The others' noise scales, and how many have each.
        """
        pair = RecordPair(core, victim).blanket
        losses = loss_law(pair, 0.0)
        if not losses.finite:
            return cls(core, math.inf, 1.0)
        law = losses.one
        blankets = float(np.exp(core.log_gammas(scales)) @ counts) + 1.0
        second = float(law.probabilities[0] @ law.values[0] ** 2)
        # a value that moves the sum by more than its deviation is no Gaussian matter
        heavy = max(float(law.values.max()) / math.sqrt(second * blankets) - 0.5, 0.0) if second > 0.0 else 0.0
        outside = 0.0 if pair.spread is None else float(pair.spread.left_out_mass[0])
        return cls(core, math.sqrt(second / blankets) * (1.0 + heavy), outside)

    def expected_epsilon(self, delta: float) -> float:
        """Return about the epsilon (nats) at which the Gaussian limit plus the mass outside is delta; may be inf."""
        return gaussian_epsilon(delta - self.outside, self.mu) if self.outside < delta else math.inf


def promising_cores(victim: Noise, scales: FloatArray, counts: FloatArray, delta: float) -> list[CoreChoice]:
    """Return cores worth trying for one delta, the one of the victim's own noise scale among them.

    Parameters
    ----------
    victim : Noise
        The victim's noise.
    scales, counts : ndarray, shape (groups,)
        The others' noise scales, and how many have each.
    delta : float
        In (0, 1).
    """

    def choice(scale: float, share: float) -> CoreChoice | None:
        core = Core(Noise(victim.kind, scale), round(1.0 + _reach(victim, share * delta), 6))
        if scale != victim.scale and not _comparable(core, victim):
            return None
        return CoreChoice.of(core, victim, scales, counts)

    everyone = np.append(scales, victim.scale)
    low, high = float(everyone.min()), float(everyone.max())
    wider = victim.scale * _WIDER
    spread = np.geomspace(low, high, _SPREAD) if low < high else np.zeros(0)
    tried = np.unique(np.concatenate((wider[wider <= high], spread)))
    first = [candidate for scale in tried.tolist() if (candidate := choice(scale, _FIRST_SHARE)) is not None]
    best = sorted(first, key=lambda c: c.mu)[:_KEPT]
    kept = {victim.scale, *(candidate.core.noise.scale for candidate in best)}
    others = [choice(scale, share) for scale in sorted(kept) for share in _SHARES if share != _FIRST_SHARE]
    return first + [candidate for candidate in others if candidate is not None]


def _comparable(core: Core, victim: Noise) -> bool:
    """Whether R(x)/omega stays within double range up to the edge (with the victim's own scale it does)."""
    end = np.array([core.edge, core.edge - 1.0])
    gap = core.noise.log_density(end)[:, None] - victim.log_density(end)[None]
    return bool(np.abs(gap).max() < _FARTHEST)


def _reach(victim: Noise, mass: float) -> float:
    """How far beyond the range the victim's noise has so little mass."""
    if victim.kind == "laplace":
        return victim.scale * math.log(0.5 / mass)
    return -victim.scale * float(ndtri_exp(math.log(mass)))


LEAST_SCALE = {"laplace": 1.0 / 200.0, "gaussian": 0.06}
"""Smallest noise scales evaluated: smaller noise hides hardly anything, and its densities underflow."""
LARGEST_SCALE = 1e6
"""Largest noise scale evaluated: larger noise, infinite for a budget of 0, is too wide to hide anybody."""
_FEW = 0.1
"""Largest delta expected from the normal limit; at it there are too few users for that limit to guide a choice."""
_FAR_BELOW = -60.0
"""Logarithm of delta below which a table's first knots are placed by an estimate, in a fraction of the time."""
_HOPELESS = 30.0
"""Expected epsilon from which on the blanket hides nothing, and the trivial bound is returned."""
_ROOM = 0.5
"""Share of the range of epsilon for which a core is proved within which the expected epsilon must lie."""
_DEEPEST = 1e-40
"""Smallest delta for which a core is made; for smaller ones its cells would be too wide."""
_TOLERANCE, _ROUGHLY = 1e-4, 0.02
"""Relative precision of a search, since the discretisation of a law does not justify a finer one; of a rough one."""
_LEAST_GAMMA = 1e-200
"""Users with a smaller blanket are counted as hiding nobody."""
_TRIED = 4
"""Number of the most promising cores, and of those of the victim's own scale, that are fully evaluated."""
_OFTEN = 9.0
"""Number of decades of delta below 1 for each of which a core is chosen; below them, for every third decade."""
_UNLIKELY = 1.6
"""Cores whose expected epsilon exceeds the best one by this factor are not evaluated."""
_FINENESS = 4.0
"""Number of blocks of the count of blanket reports, relative to the usual number."""
_QUICK, _NEARLY = 0.3, 0.1
"""Relative smoothing of the transform in `most_quickly` and in `most_nearly`.

In 141 choices among cores, values of the latter smoothing named the core that certified values name; with 0.3 one core
was worse by 1e-4 of delta.
"""
_ENOUGH = 20.0
"""Expected number of blanket reports from which quick values may choose a core; fewer are far from a normal law."""
_NODES_OF_COUNT, _SHARES_OF_COUNT = np.polynomial.hermite_e.hermegauss(7)
"""Points, in deviations from the mean, and weights of a normal law: they stand for a number of blanket reports."""


def is_usual(law: NoiseLaw, scales: FloatArray) -> NDArray[np.bool_]:
    """Return for each noise scale whether the bound is evaluated for it: bool, in the shape of ``scales``.

    It is not evaluated if the noise of the family ``law`` is too small for the transform, or too large.
    """
    return (scales >= LEAST_SCALE[law.noise]) & (scales <= LARGEST_SCALE)


@dataclass(frozen=True, eq=False)
class NoiseProfile(PrivacyProfile):
    """Profile of the blanket theorem (I) for records 0 and 1, the worst pair, with a core (blanket) that suits it.

    Parameters
    ----------
    victim : Noise
        The victim's noise.
    top : float
        The victim's pure local budget (nats), or inf.
    scales, counts : ndarray, shape (groups,)
        The others' noise scales, and how many have each.
    """

    victim: Noise
    top: Upper
    scales: FloatArray
    counts: FloatArray
    _known: dict[float, list[CoreChoice]] = field(default_factory=dict[float, "list[CoreChoice]"], repr=False)
    _cores: dict[float, tuple[Core, float]] = field(default_factory=dict[float, "tuple[Core, float]"], repr=False)
    _serving: dict[int, Core] = field(default_factory=dict[int, Core], repr=False)
    _views: dict[Core, _View] = field(default_factory=dict[Core, "_View"], repr=False)

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon (nats) from which on delta is 0: the victim's pure local budget, or infinite."""
        return self.top

    @property
    def coarseness(self) -> float:
        """Factor 3 by which a table may be less accurate: the values come from a lattice and are no better."""
        return 3.0

    @property
    def mass_at_infinity(self) -> Interval:
        """Interval [0, 0]: delta tends to 0 for large epsilon, as the report's own profile does."""
        return Interval(0.0, 0.0)

    @property
    def known_below(self) -> bool:
        """False: values at knots are upper ends; `delta` and `epsilon` enclose the bound from both sides."""
        return False

    def delta_at(self, epsilon: float) -> Interval:
        """Enclose the blanket theorem's bound (I) on delta(epsilon), with the core that suits that delta."""
        return self._view(self.best_core(epsilon)).delta(epsilon)

    def delta_above(self, epsilon: float) -> Upper:
        """Return the upper end of `delta` alone, in half the time."""
        if epsilon >= self.top:
            return self.delta(epsilon).upper
        return Upper(min(self._view(self.best_core(epsilon)).most(epsilon), 1.0))

    def deltas_quickly(self, epsilons: list[float]) -> list[Upper]:
        """Return upper ends of `delta` with cores that are expected to be the best, without a comparison."""
        self.prepare(epsilons, self._quick_core)
        return [Upper(min(self._view(self._quick_core(epsilon)).most(epsilon), 1.0)) for epsilon in epsilons]

    def _quick_core(self, epsilon: float) -> Core:
        return self._proved(self._promising(10.0 ** -self._depth(self._expected(epsilon)))[0][1], epsilon)

    def log_delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        """Return, for both directions alike, the interval from -inf to the upper end of log delta(epsilon)."""
        both = Interval(-math.inf, log_end(self.delta_above(epsilon)))
        return both, both

    def prepare(self, epsilons: list[float], chosen: Callable[[float], Core] | None = None) -> None:
        """Evaluate upper ends at several epsilons (nats), in one pass for each core: `best_core`, unless ``chosen``."""
        by_core: dict[Core, list[float]] = {}
        for epsilon in (each for each in epsilons if each < self.top):
            by_core.setdefault((chosen or self.best_core)(epsilon), []).append(epsilon)
        for core, mine in by_core.items():
            self._view(core).prepare(mine)

    def log_roughly(self, epsilon: float) -> float:
        """Return the upper end of log delta(epsilon), or about it where delta is far below every delta of interest."""
        if epsilon < self.top:
            about = log_end(self._view(self.best_core(epsilon)).most_quickly(epsilon))
            if about < _FAR_BELOW:
                return about
        return log_end(self.delta_above(epsilon))

    def best_core(self, epsilon: float) -> Core:
        """Return the core with which `delta_at` evaluates (I) at epsilon; public so that it can be checked."""
        expected = self._expected(epsilon)
        if expected == _FEW:  # so few users that the normal limit says nothing: compare, a few times per unit
            at = -1 - math.floor(4.0 * epsilon)
            if at not in self._serving:
                self._serving[at] = self._least([core for _, core in self._promising(_FEW)], epsilon)
            return self._proved(self._serving[at], epsilon)
        key = self._depth(expected)
        if key not in self._serving:
            self._serving[key] = self._smallest(10.0**-key)
        return self._proved(self._serving[key], epsilon)

    def _expected(self, epsilon: float) -> float:
        """Return about delta(epsilon) by the normal limit, from `_DEEPEST` to `_FEW`."""
        expected = 1e-6
        for _ in range(2):
            mu = min(choice.mu for choice in self._choices(10.0 ** round(math.log10(expected))))
            expected = min(max(gaussian_delta(epsilon, mu), _DEEPEST), _FEW)
        return expected

    @staticmethod
    def _depth(expected: float) -> int:
        """Return for which decade of delta a core is chosen: few cores serve a curve."""
        depth = -math.log10(expected)
        return math.ceil(depth) if depth <= _OFTEN else 3 * math.ceil(depth / 3.0)

    def _proved(self, core: Core, epsilon: float) -> Core:
        """Return the core, or the victim's own noise where the theorem stops."""
        return core if epsilon <= core.proved_up_to(self.victim) else replace(core, noise=self.victim)

    def _smallest(self, delta: float) -> Core:
        """Return the promising core with the smallest bound where about three times this delta is expected."""
        epsilon = gaussian_epsilon(min(3.0 * delta, 0.5), min(choice.mu for choice in self._choices(delta)))
        cores = [core for _, core in self._promising(delta)]
        if not epsilon < min(self.top, _HOPELESS):
            return cores[0]
        return self._least(cores, epsilon)

    def _least(self, cores: list[Core], epsilon: float) -> Core:
        """Return the core with the smallest bound at epsilon, as quick values tell where they do."""
        if len(cores) == 1:
            return cores[0]
        view = self._view(cores[0])
        if view.common is None and view.others.most.mean >= _ENOUGH:
            quick = {core: self._view(core).most_nearly(epsilon) for core in cores}
            if math.isfinite(max(quick.values())):
                return min(cores, key=lambda core: quick[core])
        for core in cores:
            self._view(core).prepare([epsilon])
        return min(cores, key=lambda core: self._view(core).most(epsilon))

    def _inverse(self, target: float) -> Interval:
        """Return the core that suits this delta; each end by a search of its own."""
        core, upper = self._best(target)
        if not upper < min(self.top, _HOPELESS):
            return Interval(0.0, self.top)
        return Interval(self._view(core).lower_epsilon(target, upper), upper)

    def rough_epsilon(self, delta: float) -> float:
        """Return an epsilon (nats) at which delta is at most ``delta``, near the most promising core's smallest."""
        guess, core = self._promising(delta)[0]
        top = min(self.top, _HOPELESS)
        epsilon = safe_side(self._view(core).most, delta, top, guess, _ROUGHLY, above=False) if guess < top else top
        return epsilon if epsilon < top else self.top

    def guess_epsilon(self, delta: float) -> float | None:
        """Return the epsilon (nats) of the best core's Gaussian limit, a first guess."""
        return min(choice.expected_epsilon(delta) for choice in self._choices(delta))

    def _best(self, delta: float) -> tuple[Core, float]:
        """Return the best of a few promising cores, and a certified epsilon for it (inf if none of them helps)."""
        if delta not in self._cores:
            self._cores[delta] = self._searched(delta)
        return self._cores[delta]

    def _searched(self, delta: float) -> tuple[Core, float]:
        top, promising = min(self.top, _HOPELESS), self._promising(delta)
        best, least = promising[0][1], math.inf
        for guess, core in promising:
            if guess > min(top, _UNLIKELY * least):
                continue
            view = self._view(core)
            if math.isinf(least) or view.most(least * (1.0 - 10.0 * _TOLERANCE)) <= delta:
                epsilon = view.upper_epsilon(delta, min(guess, least))
                best, least = (core, epsilon) if epsilon < min(top, least) else (best, least)
        return best, least

    def _promising(self, delta: float) -> list[tuple[float, Core]]:
        """Return the few cores to try in earnest, with the epsilon expected of each; the most promising one first."""
        guesses = [(choice.expected_epsilon(delta), choice.core) for choice in self._choices(delta)]
        fit = [(guess, core) for guess, core in guesses if guess <= _ROOM * core.proved_up_to(self.victim)]
        fit.sort(key=lambda both: both[0])
        own = [(guess, core) for guess, core in fit if core.noise == self.victim]
        return list(dict.fromkeys(fit[:_TRIED] + own[:_TRIED]))

    def _view(self, core: Core) -> _View:
        if core not in self._views:
            self._views[core] = _View(self, core)
        return self._views[core]

    def _choices(self, delta: float) -> list[CoreChoice]:
        """Cores worth trying for this delta."""
        if delta not in self._known:
            self._known[delta] = promising_cores(self.victim, self.scales, self.counts, delta)
        return self._known[delta]


class _View:
    """One victim among the others, against one core."""

    def __init__(self, profile: NoiseProfile, core: Core) -> None:
        self.top = profile.top
        self.records = RecordPair(core, profile.victim)
        self.proved = core.proved_up_to(profile.victim)
        gammas = np.exp(core.log_gammas(profile.scales)) * (1.0 - roundoff(8192))
        some = gammas > _LEAST_GAMMA
        self.others = SuccessRange.of(gammas[some], profile.counts[some], ulps=4)
        alike = profile.scales.size == 1 and profile.scales[0] == profile.victim.scale
        self.common = float(gammas[0]) if alike else None
        self.n = int(profile.counts.sum()) + 1
        self._blocks: dict[float, BlockedCount] = {}

    def _profile(self, pair: PairBlanket, *, above: bool) -> OwnBudgetsProfile | OneBudgetProfile:
        """(I), or (Z) if everybody has the victim's noise."""
        if self.common is None:
            return OwnBudgetsProfile(self.top, pair, self.others, above, fineness=_FINENESS, _blocks=self._blocks)
        return OneBudgetProfile(self.top, replace(pair, gamma=self.common), self.n, above)

    @cached_property
    def above(self) -> OwnBudgetsProfile | OneBudgetProfile:
        """With a discrete law above the continuous one."""
        return self._profile(self.records.blanket, above=True)

    @cached_property
    def below(self) -> OwnBudgetsProfile | OneBudgetProfile:
        """With a discrete law below it."""
        return self._profile(self.records.below, above=False)

    def most(self, epsilon: float) -> float:
        """Upper end; where the end points are not proved the worst pair, that of the last epsilon where they are."""
        return self.above.delta(min(epsilon, self.proved)).upper

    def prepare(self, epsilons: list[float]) -> None:
        """Evaluate `most` at several epsilons in one pass."""
        self.above.prepare([min(epsilon, self.proved) for epsilon in epsilons])

    def most_quickly(self, epsilon: float) -> float:
        """About `most`: as if there were as many blanket reports as are expected. Nothing is certified by it."""
        if self.above.knows(min(epsilon, self.proved)):
            return self.most(epsilon)
        law, reports = loss_law(self.records.blanket, min(epsilon, self.proved)), self.others.most.mean + 1.0
        if not law.finite:
            return law.alone
        return float(positive_parts(law.one, np.array([reports]), _QUICK).upper[0]) / reports + law.charge

    def most_nearly(self, epsilon: float) -> float:
        """About `most`: as if the number of blanket reports took 7 values. Nothing is certified by it."""
        law, count = loss_law(self.records.blanket, min(epsilon, self.proved)), self.others.most
        if not law.finite:
            return law.alone
        reports = np.maximum(count.mean + count.deviation * _NODES_OF_COUNT, 0.0) + 1.0
        values = positive_parts(law.one, reports, _NEARLY).upper / reports
        return float(values @ _SHARES_OF_COUNT / _SHARES_OF_COUNT.sum()) + law.charge

    def least(self, epsilon: float) -> float:
        """Lower end of the end points' functional."""
        return self.below.delta(epsilon).lower

    def delta(self, epsilon: float) -> Interval:
        """Return both ends of delta."""
        most = self.most(epsilon)
        return Interval(min(self.least(epsilon), most), most)

    def upper_epsilon(self, delta: float, guess: float) -> float:
        """Return an epsilon near the guess with at most this delta; the largest one worth a search if there is none."""
        return safe_side(self.most, delta, min(self.top, _HOPELESS), guess, _TOLERANCE, above=False)

    def lower_epsilon(self, delta: float, upper: float) -> float:
        """Return an epsilon near and below ``upper`` at which (I) is certainly above delta, or 0."""
        return safe_side(self.least, delta, upper, upper, _TOLERANCE, above=True) if upper > 0.0 else 0.0
