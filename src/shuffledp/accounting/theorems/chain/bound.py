"""The chain theorem, which needs no common blanket, as an upper bound (docs/theorems/chain.md)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import combinations, product

import numpy as np

from shuffledp.accounting.bound import require_plain
from shuffledp.accounting.profiles.profile import PrivacyProfile, gaussian_epsilon
from shuffledp.accounting.theorems.chain.normal import (
    LARGEST_SHIFT,
    SMALLEST_SHIFT,
    Links,
    laplace_moments,
    links,
)
from shuffledp.accounting.theorems.chain.pure import (
    CHARGES,
    MOST_COPIES,
    MOST_SPARSE_COPIES,
    Kinds,
    PureLaw,
    PureLinks,
    copies_of,
    counted_copies,
    pure_divergence,
)
from shuffledp.accounting.theorems.clones.bound import AmongEquals
from shuffledp.accounting.theorems.local import LocalProfile
from shuffledp.accounting.theorems.sum import GaussianSumProfile
from shuffledp.errors import InvalidInput, OutOfRegime
from shuffledp.numerics.floats import UNBOUNDED, FloatArray, Interval, Upper, round_up
from shuffledp.randomizers.base import LikelyShares, ListsPlaces, StatesTriples
from shuffledp.setting import Kind, Setting

# The worst kinds of places (`Kinds`) for pure reports: three records whose densities have a few patterns of likelihood.
#
# Three records have densities (R_0, R_1, R_J)(y) in the cone {max <= E min}, E = e^epsilon0. Scaled so that its
# smallest entry is 1, such a point lies in the cube [1, E]^3; so it is a mean of corners, and every point of the cone
# a positive combination of the eight patterns {1, E}^3. Let D = L - E L = R_0/R_J - 1 - e^eps (R_1/R_J - 1), G convex,
# G(0) = 0. Then R_J G(D) =: F(R_0, R_1, R_J) is convex and homogeneous (the perspective of a convex function), hence
# on the cone at most what the same combination of patterns gives. Densities integrate to 1, so
#
#     E G(D) <= max { sum_a q_a F(a) :  q >= 0,  sum_a q_a a = (1, 1, 1) }.                                         (P)
#
# sum_a q_a a is the same for all three records if and only if the patterns in which a record has E weigh the same for
# all three. The extreme rays of these q are the minimal balanced covers of three: one pattern that has E everywhere or
# nowhere, of which F is 0; a record by itself and the two others, each of them the same; three single records; three
# pairs. F >= 0 in the mean (Jensen), so the largest value is at one of the last five:                             (R)
# three laws of two outputs each, with D as in randomized response, and two laws of three.
#
# Where a record is likely on a share f of omega, q_a >= 0 sums to 1 and the patterns in which it has E to f, times
# gamma = 1/(1 + f (E - 1)): a polytope, of which a linear function is largest at a vertex. Vertices are solutions of
# four equations with coefficients 0 and 1, whose determinant is a whole number.
#
# **Rounding.** D is a product of a few factors, each good to an ulp: 1 + x with x one of u = E - 1, -v = 1/E - 1, 0, so
# that no entry is a difference of almost equal numbers. Vertices are good to 1e-14; those that are feasible but for
# 1e-9 are kept, and cut off at 0. E is a double above e^epsilon0, which only widens the cone. Moments are raised by
# 1e-9 of the absolute ones.

_DOUBT, _PRODUCTS = 1e-9, 1e-14
_PATTERNS = np.array(list(product((0.0, 1.0), repeat=3)))
"""Which of R_0, R_1 and R_J are E, R_J changing fastest; shape (8, 3)."""
_MINIMAL = np.array(
    [
        [0, 0, 0, 1, 1, 0, 0, 0],
        [0, 0, 1, 0, 0, 1, 0, 0],
        [0, 1, 0, 0, 0, 0, 1, 0],
        [0, 1, 1, 0, 1, 0, 0, 0],
        [0, 0, 0, 1, 0, 1, 1, 0],
    ]
)
"""The patterns of the rays (R), a ray in each row."""


def _pattern_kinds(shares: FloatArray, high: float, growth: float, spare: float = 0.0) -> Kinds:
    """Return kinds from the masses q of every pattern, shape (kinds, 8), which may be off by ``spare``."""
    up = high - 1.0
    # x - (1 + growth) y, where 1 + x and 1 + y are the ratios of R_0 and R_1 to R_J, for (R_0, R_1) = 11, 1E, E1, EE
    at_low = up * np.array([0.0, -1.0 - growth, 1.0, -growth])  # x, y = up for an E, else 0
    at_high = up / high * np.array([growth, -1.0, 1.0 + growth, 0.0])  # x, y = up/E downwards for a 1, else 0
    losses, own = np.stack((at_low, at_high), axis=1).ravel(), np.tile([1.0, high], 4)
    losses = np.broadcast_to(losses, shares.shape)
    return Kinds.of(shares * own, losses, _PRODUCTS * np.abs(losses), spare * own)


@lru_cache(maxsize=256)
def any_kinds(epsilon0: float, growth: float) -> Kinds:
    """Return the worst kinds of places for any three laws within a factor e^epsilon0 of each other.

    Parameters
    ----------
    epsilon0 : float
        Nats, in (0, 8].
    growth : float
        e^eps - 1, at least 0.

    Examples
    --------
    >>> round(float(any_kinds(0.5, 0.0).second.max()), 6)  # randomized response: (E - 1)^2/E
    0.255252
    """
    high = round_up(math.exp(epsilon0), 4)
    often = _MINIMAL @ _PATTERNS[:, :1]  # how often each of the three is E
    shares = _MINIMAL / (_MINIMAL.sum(axis=1, keepdims=True) + (high - 1.0) * often)
    return _pattern_kinds(shares, high, growth)


@lru_cache(maxsize=64)
def _overlaps(share: float) -> FloatArray:
    """Return the vertices of the overlaps of three sets of one mass, masses good to 1e-14; shape (vertices, 8)."""
    columns = np.vstack((np.ones(8), _PATTERNS.T))
    chosen = np.array(list(combinations(range(8), 4)))
    matrices = columns[:, chosen].transpose(1, 0, 2)
    regular = np.abs(np.linalg.det(matrices)) > 0.5  # determinants of whole numbers
    chosen, matrices = chosen[regular], matrices[regular]
    masses = np.linalg.solve(matrices, np.array([1.0, share, share, share])[:, None])[..., 0]
    feasible = masses.min(axis=1) > -_DOUBT
    vertices = np.zeros((int(feasible.sum()), 8))
    np.put_along_axis(vertices, chosen[feasible], masses[feasible], axis=1)
    return np.maximum(np.unique(np.round(vertices, 15), axis=0), 0.0)


@lru_cache(maxsize=256)
def two_level_kinds(epsilon0: float, share: float, growth: float) -> Kinds:
    """Return the worst kinds of places for reports with two likelihoods, whichever three records.

    Parameters
    ----------
    epsilon0 : float
        Local budget, nats, in (0, 8].
    share : float
        f = omega(A_x), the share of the reports that are likelier for record x, in (0, 1), a few ulps off.
    growth : float
        e^eps - 1, at least 0.

    Examples
    --------
    >>> round(float(two_level_kinds(0.5, 0.5, 0.0).second.max()), 6)  # the sets of two outcomes
    0.255252
    """
    high = round_up(math.exp(epsilon0), 4)
    least = round_up(1.0 / (1.0 + share * (high - 1.0)), 4)
    return _pattern_kinds(least * _overlaps(share), high, growth, _PRODUCTS).fewer()


def listed_kinds(places: LikelyShares, epsilon0: float, share: float, growth: float) -> Kinds:
    """Return the kinds of places of a list of three records.

    Of a part with likelihoods 1 + u m/M, u = E - 1, differences have whole numerators, and

        L - E L = u ((m_0 - m_1) - growth (m_1 - m_J))/(M + u m_J)

    is off by a few roundoffs of its two terms, which are added. A budget rounded up raises the mean of every convex
    function: the three laws at E are mixtures of those at a larger E and of (omega, omega, omega), of which D is 0.

    Parameters
    ----------
    places : LikelyShares
        The list of three records each, with the reports' likelihoods.
    epsilon0 : float
        Nats, in (0, 8].
    share : float
        f = omega(A_x), in (0, 1), a few ulps off.
    growth : float
        e^eps - 1, at least 0.
    """
    high = round_up(math.exp(epsilon0), 4)
    least = round_up(1.0 / (1.0 + share * (high - 1.0)), 4)
    first, second, other = (places.likely[..., at].astype(np.float64) for at in range(3))
    apart, moved = first - second, growth * (second - other)
    own = places.whole + (high - 1.0) * other  # R_J over gamma omega, times M
    unit = (high - 1.0) / own
    doubts = _PRODUCTS * (np.abs(apart) + np.abs(moved)) * unit
    return Kinds.of(least * places.omega * own / places.whole, (apart - moved) * unit, doubts).fewer()


# What the chain theorem needs of pure reports: moments by kind of place, and groups that must exist.


def any_law(epsilon0: float) -> PureLaw:
    """Return what is known of any epsilon0-LDP reports: moments by a linear programme, and any group of users.

    Parameters
    ----------
    epsilon0 : float
        Local budget, nats, in (0, 8].
    """
    return PureLaw(epsilon0, partial(any_kinds, epsilon0), 1.0, (partial(of_anybody, epsilon0, MOST_COPIES),))


def laplace_law(epsilon0: float) -> PureLaw:
    """Return what is known of the law of reports with Laplace noise; records in one bin of the range form a group.

    Parameters
    ----------
    epsilon0 : float
        Width of the range over the scale, in (0, 8], rounded up.
    """
    moments = laplace_moments(epsilon0)
    return PureLaw(epsilon0, lambda growth: Kinds.within(moments.at(growth)), 1.0, (partial(in_one_bin, epsilon0),))


def stated_law(family: StatesTriples) -> Callable[[float], PureLaw] | None:
    """Return a function from a budget to what is known of reports with two likelihoods; None if too little is stated.

    Parameters
    ----------
    family : StatesTriples
        The randomizer's family. If any three records are alike, there must be three.
    """
    if family.triples in ("free", "listed"):
        return partial(_free_law, family)
    if family.triples == "alike by parts" or (family.triples == "alike" and family.k > 2):
        return partial(_alike_law, family)
    return None


def _free_law(family: StatesTriples, epsilon0: float) -> PureLaw:
    """All records are likely on a share of the reports: the listed triples, or a programme over any overlaps."""
    share = family.share(epsilon0)
    kinds = partial(two_level_kinds, epsilon0, share)
    if isinstance(family, ListsPlaces):
        kinds = partial(listed_kinds, family.worst_places(epsilon0), epsilon0, share)
    active = _active(family, epsilon0)
    groups = (partial(of_anybody, epsilon0, most_copies(active)),)
    return PureLaw(epsilon0, kinds, active, groups)


def _alike_law(family: StatesTriples, epsilon0: float) -> PureLaw:
    """Three kinds: the third record is the first one, the second one, or another; by parts places mix them.

    On a part where the first two records are one, |L - E L| = (e^eps - 1)|R_0/R_J - 1|: below the first kind.
    """
    pair, third = family.pair_blankets(epsilon0)[0], family.triple(epsilon0)
    weight, own = pair.masses * pair.ratios1, pair.ratios0 / pair.ratios1  # the third record is the second one
    one = np.ones_like(own)
    places = [(weight, own, one), (weight, one, own), (third.masses, third.ratios0, third.ratios1)]
    most = max(weight.size, third.masses.size)
    masses, first, second = (
        np.array([np.pad(place[at], (0, most - place[at].size)) for place in places]) for at in range(3)
    )  # cells without mass fill up a kind
    active = _active(family, epsilon0)
    most = most_copies(active)
    groups = (partial(of_anybody, epsilon0, most),)
    if family.triples == "alike":
        groups = (partial(of_one_record, family.k, most), partial(of_few_or_anybody, epsilon0, family.k, most))

    def kinds(growth: float) -> Kinds:
        losses = first - 1.0 - (1.0 + growth) * (second - 1.0)
        return Kinds.of(masses, losses, _PRODUCTS * (first + (1.0 + growth) * second))

    return PureLaw(epsilon0, kinds, active, groups)


def _active(family: StatesTriples, epsilon0: float) -> float:
    """How likely a ratio of two records is not 1, rounded up: largest for the worst pair."""
    pair = family.pair_blankets(epsilon0)[0]
    off = pair.ratios0 != pair.ratios1
    return min(round_up(float((pair.masses * pair.ratios1)[off].sum()), 64), 1.0)


# ------------------------------------------------------------------ groups
# From how many others there are and a wished size, in users of one record, to the size m of a group A_2 that must
# exist, and N; (0, 0) if there is none.


def in_one_bin(epsilon0: float, others: int, wish: float) -> tuple[int, int]:
    """Return a group size and a number of copies for Laplace noise: m users whose records lie in one bin of the range.

    By the pigeonhole principle one of (others // m) bins holds m users; (0, 0) if there are too few.

    Parameters
    ----------
    epsilon0, others, wish
        As `of_anybody`.
    """
    size = math.ceil(wish)
    bins = others // size
    return (size, copies_of(size, epsilon0 / bins)) if bins else (0, 0)


def of_one_record(records: int, most: int, others: int, wish: float) -> tuple[int, int]:
    """Return the size of a group of users of one record, and the same number of copies.

    By the pigeonhole principle some record is held by at least others/records users.

    Parameters
    ----------
    records : int
        How many records there are.
    most, others, wish
        As `of_anybody`.
    """
    size = min(math.ceil(wish), others // records, most)
    return size, size


def of_anybody(epsilon0: float, most: int, others: int, wish: float) -> tuple[int, int]:
    """Return the size of a group of any users besides the victim, and the number of copies N that its weights allow.

    No record is more than e^epsilon0 times as likely as another one to have sent the hub's report.

    Parameters
    ----------
    epsilon0 : float
        Local budget, nats.
    most : int
        Largest number of copies that is evaluated.
    others : int
        Users besides the victim.
    wish : float
        Wished size if all had one record, at least 1.
    """
    size = min(math.ceil(wish * math.exp(0.5 * epsilon0)), math.ceil(most * math.exp(epsilon0)), others)
    return size, min(copies_of(size, epsilon0), most)


def of_few_or_anybody(epsilon0: float, records: int, most: int, others: int, wish: float) -> tuple[int, int]:
    """Return the size of a group of users of one record if there are enough, else of any users, with its copies.

    Parameters
    ----------
    epsilon0, records, most, others, wish
        As `of_one_record`, `of_anybody`.
    """
    group = of_one_record(records, most, others, wish)
    return group if group[0] >= min(wish, most) else of_anybody(epsilon0, most, others, wish)


def most_copies(active: float) -> int:
    """Return the largest number N of copies that is evaluated: a smaller one if ``active`` is below 1.

    ``active`` is an upper bound, in (0, 1], on the chance that a density ratio is not 1.
    """
    return MOST_COPIES if active == 1.0 else MOST_SPARSE_COPIES


# ------------------------------------------------------------------ chain
# The chain theorem as a privacy profile: normal vectors, and pure reports (docs/theorems/chain.md).

_SHARES = (0.4, 0.65, 1.0, 1.6)
_FEWEST = 4


@dataclass(frozen=True, eq=False)
class ChainProfile(PrivacyProfile):
    """Upper bound by the chain theorem (H) for a victim among users who add normal noise of one scale to a vector.

    Parameters
    ----------
    mu : float
        Diameter of the ball that holds all messages, in standard deviations of the noise; within `links`' range.
    n : int
        Users, the victim included; at least 2.
    """

    mu: float
    n: int

    @property
    def vanishes_at(self) -> Upper:
        """Infinite: delta stays positive at every epsilon."""
        return UNBOUNDED

    @property
    def mass_at_infinity(self) -> Interval:
        """Interval [0, 0]: delta tends to 0 for large epsilon, because the density ratio is finite everywhere."""
        return Interval(0.0, 0.0)

    @property
    def known_below(self) -> bool:
        """False: the theorem is a bound from above."""
        return False

    @cached_property
    def _links(self) -> Links:
        return links(self.mu, self.n - 1)

    def delta_at(self, epsilon: float) -> Interval:
        """Return the interval from 0 to the chain theorem's (H), or to one message's divergence if smaller."""
        return Interval(0.0, self._links.divergence(epsilon))

    def guess_epsilon(self, delta: float) -> float | None:
        """Return the epsilon (nats) of the normal limit, shift sqrt((exp(mu^2) - 1)/n); None if it is 0."""
        guess = gaussian_epsilon(delta, math.sqrt(math.expm1(self.mu**2) / self.n))
        return guess if guess > 0.0 else None


@dataclass(frozen=True, eq=False)
class PureChainProfile(PrivacyProfile):
    """Upper bound by the chain theorem for a victim among users with pure reports of one budget.

    Parameters
    ----------
    epsilon0 : float
        The common local budget, nats, positive.
    n : int
        Users, the victim included.
    law : PureLaw
        What is known of the law of the reports.
    """

    epsilon0: float
    n: int
    law: PureLaw

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon (nats) from which on delta is 0: the common local budget."""
        return Upper(self.epsilon0)

    @property
    def coarseness(self) -> float:
        """Factor 4 by which a table may be less accurate: one evaluation of delta takes milliseconds."""
        return 4.0

    @property
    def known_below(self) -> bool:
        """False: the theorem is a bound from above."""
        return False

    @cached_property
    def ways(self) -> PureLinks:
        """Group sizes and charges for which the theorem is evaluated, a few sizes for each charge; possibly none."""
        wish, others = math.sqrt(2.0 * self.n * self.law.spread), self.n - 1
        groups = {form(others, share * wish + 1.0) for form in self.law.groups for share in _SHARES}
        groups = {(m, counted_copies(copies, self.law.active)) for m, copies in groups}
        chosen = [(m, copies) for m, copies in groups if copies >= _FEWEST and others - m >= _FEWEST]
        pairs = np.array([(others - m, copies) for m, copies in sorted(chosen)], dtype=np.int64).reshape(-1, 2)
        last, copies = np.tile(pairs, (len(CHARGES), 1)).T
        charges = np.repeat(CHARGES, len(pairs))
        return PureLinks(self.law, last.astype(np.float64), copies, charges)

    def delta_at(self, epsilon: float) -> Interval:
        """Return the interval from 0 to the bound of the best group and charge, or to one report's own curve."""
        return Interval(0.0, min(pure_divergence(self.epsilon0, epsilon), self.ways.divergence(epsilon)))

    def guess_epsilon(self, delta: float) -> float | None:
        """Return about the epsilon (nats) of the normal limit for many users; None outside (0, epsilon0)."""
        most = float(self.law.kinds(0.0).second.max())
        guess = gaussian_epsilon(delta, math.sqrt(most / self.n))
        return 1.03 * guess if 0.0 < 1.03 * guess < self.epsilon0 else None


LARGEST_EPSILON0, FEWEST = 5.0, 100
"""Pure reports: budgets and sizes of levels for which the theorem is evaluated."""
_SERVES = "chain is for 'any', noise, and reports of two likelihoods that state how any three records overlap"
_TOO_FEW = (
    "chain needs messages up to 1.2 standard deviations of their noise apart, and enough users to form its groups; "
    "got {}"
)


class ChainBound(AmongEquals):
    """Upper bound by the chain theorem among the users of the victim's level, without a common blanket.

    It serves any pure reports, normal noise, and some stated laws. See docs/theorems/chain.md.
    """

    key = "chain"
    kind = Kind.CERTIFIED_UPPER
    reference = "chain theorem within the victim's level (own proof), n = n_g"

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the chain theorem's profile (H) for a victim of budget ``epsilon0``.

        If the level has too few users or too little noise, it is the profile of one message by itself. See
        `AmplificationBound.one_round`.
        """
        require_plain(setting, self.key)
        budgets, noise = setting.budgets, setting.adds_noise
        if setting.seen == "users" and budgets.levels > 1:
            raise OutOfRegime("chain needs budgets that belong to users; got seen = users with several budgets")
        same = budgets.epsilons == epsilon0
        if int(same.sum()) > 1:
            raise OutOfRegime("chain needs one law a level; got levels that differ in delta0 alone")
        n = int(budgets.counts[same][0])
        if noise is None or noise.noise != "gaussian":
            return _pure_profile(setting, epsilon0, n)
        shifts, counts = 1.0 / noise.scale(budgets.epsilons, budgets.deltas), budgets.counts.tolist()
        if not any(chain_hides(mu, n) for mu, n in zip(shifts.tolist(), counts, strict=True)):
            raise OutOfRegime(_TOO_FEW.format(f"{shifts.min():g} and {max(counts)} users"))
        return chain_or_alone(float(shifts[same][0]), n)


def _pure_profile(setting: Setting, epsilon0: float, n: int) -> PrivacyProfile:
    """Any pure reports, Laplace noise, or reports likely or unlikely, the same way for any three records."""
    budgets, noise = setting.budgets, setting.adds_noise
    if not budgets.is_pure:
        raise OutOfRegime(f"chain needs pure budgets or normal noise; got delta0 = {budgets.deltas.max():g}")
    stated = setting.discrete if isinstance(setting.discrete, StatesTriples) else None
    law = None if stated is None else stated_law(stated)
    if law is None and noise is None and setting.law is not None:
        raise OutOfRegime(f"{_SERVES}; got {setting.randomizer_name}")
    if setting.law is None and setting.seen == "users":
        raise OutOfRegime("chain needs independent reports; ordered outputs of 'any' may depend on earlier ones")
    served = (budgets.epsilons > 0.0) & (budgets.epsilons <= LARGEST_EPSILON0) & (budgets.counts >= FEWEST)
    if not served.any():
        raise OutOfRegime(f"chain is evaluated for {FEWEST} users of a budget up to {LARGEST_EPSILON0:g} and more")
    if not served[budgets.epsilons == epsilon0][0]:
        return LocalProfile(epsilon0, 0.0)
    if noise is not None:
        epsilon0, law = round_up(1.0 / float(noise.scale(epsilon0, 0.0)), 8), laplace_law
    return PureChainProfile(epsilon0, n, (law or any_law)(epsilon0))


def chain_hides(mu: float, n: int) -> bool:
    """Return whether the chain theorem gives a bound for a level of n users.

    Parameters
    ----------
    mu : float
        Diameter of the ball of all messages in standard deviations of their noise, at least 0.
    n : int
        Users of the level, at least 1.

    Raises
    ------
    InvalidInput
        If mu is negative or NaN, or n is below 1.
    """
    if not (mu >= 0.0 and n >= 1):
        raise InvalidInput(f"chain needs mu >= 0 and at least one user; got mu = {mu} and n = {n}")
    return n > 1 and mu <= LARGEST_SHIFT and bool(links(max(mu, SMALLEST_SHIFT), n - 1).sizes)


def chain_profile(mu: float, n: int) -> ChainProfile:
    """Return the chain theorem's profile (H), or refuse a level for which the theorem gives no bound.

    Parameters
    ----------
    mu : float
        Diameter of the ball of all messages in standard deviations of their noise, at least 0.
    n : int
        Users of the level, at least 1.

    Raises
    ------
    InvalidInput
        If mu is negative or NaN, or n is below 1.
    OutOfRegime
        If mu is above 1.199999, or there are too few users for the smallest groups.

    Examples
    --------
    >>> round(chain_profile(0.25, 10_000).epsilon(1e-6).upper, 4)
    0.008
    """
    if not chain_hides(mu, n):
        raise OutOfRegime(_TOO_FEW.format(f"{mu:g} and {n} users"))
    return ChainProfile(max(mu, SMALLEST_SHIFT), n)  # a larger shift is never more private


def chain_or_alone(mu: float, n: int) -> PrivacyProfile:
    """Return the chain theorem's profile (H), or that of one message by itself where the theorem gives no bound.

    Parameters
    ----------
    mu : float
        Diameter of the ball of all messages in standard deviations of their noise, at least 0.
    n : int
        Users of the level, at least 1.

    Raises
    ------
    InvalidInput
        If mu is negative or NaN, or n is below 1.
    """
    return chain_profile(mu, n) if chain_hides(mu, n) else GaussianSumProfile(mu)
