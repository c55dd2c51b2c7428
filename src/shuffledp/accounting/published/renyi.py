"""Published Rényi bounds of one budget, and what they say about epsilon.

Upper bounds are converted by Mironov (2017), Proposition 3: for every order lambda,

    epsilon(delta) <= D(lambda) + log(1/delta)/(lambda - 1),                                                    (M)

minimised over integer orders. (Canonne, Kamath and Steinke (2020), Proposition 12, add
log(1 - 1/lambda) - log(lambda)/(lambda - 1), which is negative and therefore tighter.)

A lower bound D on the Rényi divergence does not become a lower bound on epsilon by (M), which is the wrong way
round (and tends to 0 at high orders for the curve below). What it implies is this: a pair that is
epsilon0-indistinguishable and (epsilon, delta)-indistinguishable is dominated by a mixture of randomized response at
epsilon0 and at epsilon (Kairouz, Oh, Viswanath 2015), so that its moment obeys

    e^{(lambda-1) D} <= (1-q) m(epsilon) + q m(epsilon0),   delta = q (e^epsilon0 - e^epsilon)/(1 + e^epsilon0),  (K)

with m(e) = 1 + (e^{lambda e} - 1)(1 - e^{-(lambda-1) e})/(1 + e^e) the moment of randomized response.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.accounting.published.closed import (
    PAPER,
    PublishedBound,
    require_company,
    require_one_budget,
    require_unordered,
)
from shuffledp.accounting.theorems.clones.pair import victim_line
from shuffledp.errors import InvalidInput, OutOfRegime, check_delta
from shuffledp.numerics.floats import TINY, UNBOUNDED, Enclosure, FloatArray, Interval, Upper, roundoff
from shuffledp.setting import Kind, Setting

_SLACK = roundoff(64)
"""Relative error of a dozen operations without cancellation; generous."""
_ORDERS = np.unique(np.concatenate((np.arange(2.0, 258.0), np.rint(np.geomspace(257.0, 2.0**40, 1200)))))
"""Orders among which the best one is first searched; its neighbourhood is searched next."""


def least_over_orders(value: Callable[[FloatArray], FloatArray]) -> float:
    """Return an integer order from 2 to 2^40 that minimises a function with a single local minimum.

    Any order gives a valid bound, so the search only decides how good it is.

    Parameters
    ----------
    value : callable
        From orders, shape (orders,), to the function's values; may be inf.
    """
    orders = _ORDERS
    while True:
        best = int(np.argmin(value(orders)))
        low, high = orders[max(best - 1, 0)], orders[min(best + 1, orders.size - 1)]
        if high - low <= 2.0:
            return float(orders[best])
        orders = np.unique(np.rint(np.linspace(low, high, 257)))


class RenyiProfile(PrivacyProfile):
    """Privacy profile of a pair of neighbours of which only a bound on the Rényi divergence by order is known."""

    @abstractmethod
    def curve(self, orders: FloatArray) -> Enclosure:
        """Enclose the bound D(lambda) on the Rényi divergence (nats) at each of the orders, whole numbers from 2."""

    def renyi(self, order: float) -> Interval:
        """Enclose the published bound on the Rényi divergence of one order, nats: the formula itself.

        Parameters
        ----------
        order : float
            A whole number, at least 2.

        Raises
        ------
        InvalidInput
            If the order is not one for which the bound is stated.
        """
        divergence = self.curve(np.array([self.checked_order(order)]))
        return Interval(float(divergence.lower[0]), float(divergence.upper[0]))

    def renyi_curve(self, orders: ArrayLike) -> Enclosure:
        """Enclose the published bound on the Rényi divergence (nats) of many orders, in the shape of ``orders``."""
        listed = np.asarray(orders, dtype=np.float64)
        return self.curve(
            np.array([self.checked_order(float(order)) for order in listed.ravel()]).reshape(listed.shape)
        )

    def checked_order(self, order: float) -> float:
        """Return the order as a float, or raise InvalidInput unless it is a whole number from 2 to 2^40."""
        value = float(order)
        if not (2.0 <= value <= 2.0**40 and value.is_integer()):
            raise InvalidInput(f"the bound is stated for whole orders from 2 to 2^40; got {order}")
        return value


class RenyiUpperProfile(RenyiProfile):
    """Privacy profile by an upper bound on the Rényi divergence, converted by (M) of the module (Mironov 2017)."""

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon from which on delta is 0: infinite, since (M) is positive everywhere."""
        return UNBOUNDED

    def epsilon(self, delta: float) -> Interval:
        """Enclose the smallest D(lambda) + log(1/delta)/(lambda - 1) over integer orders lambda, nats: (M).

        Parameters
        ----------
        delta : float
            In (0, 1).
        """
        need = -math.log(check_delta(delta))
        best = np.array([least_over_orders(lambda orders: self.curve(orders).upper + need / (orders - 1.0))])
        divergence, extra = self.curve(best), need / (float(best[0]) - 1.0)
        return Interval(
            (float(divergence.lower[0]) + extra) * (1 - _SLACK), (float(divergence.upper[0]) + extra) * (1 + _SLACK)
        )

    def delta_at(self, epsilon: float) -> Interval:
        """Enclose the smallest exp((lambda - 1)(D(lambda) - epsilon)) over integers lambda: (M) solved for delta."""
        best = np.array([least_over_orders(lambda orders: (orders - 1.0) * (self.curve(orders).upper - epsilon))])
        divergence, power = self.curve(best), float(best[0]) - 1.0
        doubt = _SLACK * power * (float(divergence.upper[0]) + epsilon)
        if not math.isfinite(doubt):
            return Interval(0.0, 1.0)
        low, high = (
            power * (float(divergence.lower[0]) - epsilon) - doubt,
            power * (float(divergence.upper[0]) - epsilon) + doubt,
        )
        lower, upper = math.exp(min(low, 1.0)) * (1 - _SLACK) - TINY, math.exp(min(high, 1.0)) * (1 + _SLACK) + TINY
        return Interval(min(max(lower, 0.0), 1.0), min(upper, 1.0))


@dataclass(frozen=True)
class GirgisUpperProfile(RenyiUpperProfile):
    """Profile by the second upper bound D of Girgis et al. on the Rényi divergence of order lambda.

    D = log(e^{lambda^2 (e^epsilon0 - 1)^2/m} + e^{epsilon0 lambda - (n-1)/(8 e^epsilon0)})/(lambda - 1), where
    m = floor((n-1)/(2 e^epsilon0)) + 1.

    Parameters
    ----------
    epsilon0 : float
        The common budget, nats.
    n : int
        Number of users.
    """

    epsilon0: float
    n: int

    def curve(self, orders: FloatArray) -> Enclosure:
        """Enclose D of the class docstring at each order, nats.

        If rounding leaves the floor m in doubt, each end of the enclosure uses the value that is safe for it.
        """
        share = (self.n - 1.0) * math.exp(-self.epsilon0)
        growth = 4.0 * math.sinh(self.epsilon0 / 2.0) ** 2 * math.exp(self.epsilon0)  # (e^epsilon0 - 1)^2
        deep = self.epsilon0 * orders - share / 8.0
        doubt = _SLACK * (self.epsilon0 * orders + share / 8.0)
        with np.errstate(over="ignore"):
            most = orders * orders * growth / (math.floor(share / 2.0 * (1 - _SLACK)) + 1.0) * (1 + _SLACK)
            least = orders * orders * growth / (math.floor(share / 2.0 * (1 + _SLACK)) + 1.0) * (1 - _SLACK)
            upper = np.logaddexp(most, deep + doubt) / (orders - 1.0) * (1 + _SLACK)
            lower = np.logaddexp(least, deep - doubt) / (orders - 1.0) * (1 - _SLACK)
        return Enclosure(np.minimum(lower, upper), upper)


class GirgisBound(PublishedBound):
    """Second upper bound of Girgis et al. on the Rényi divergence, at integer orders, converted to epsilon by (M).

    See docs/theorems/girgis21.md.
    """

    key = "girgis21"
    kind = Kind.CERTIFIED_UPPER
    reference = "Girgis, Data, Diggavi, Suresh, Kairouz (CCS 2021), Rényi upper bound, converted by Mironov (2017)"
    source = PAPER

    def one_round(self, setting: Setting, epsilon0: float) -> GirgisUpperProfile:
        """Return the profile by (M); refuse several budgets, ordered outputs of "any", and epsilon0 > 300.

        See `AmplificationBound.one_round`.
        """
        require_one_budget(setting, self.key)
        require_unordered(setting, self.key)
        _require_moderate(epsilon0, self.key)
        return GirgisUpperProfile(epsilon0, setting.budgets.n)


@dataclass(frozen=True)
class GirgisLowerProfile(RenyiProfile):
    """Profile with D >= log(1 + lambda (lambda-1)/2 (e^epsilon0 - 1)^2/(n e^epsilon0))/(lambda - 1).

    D is the Rényi divergence of order lambda; the lower bound on delta is what D implies by (K) of the module.

    Parameters
    ----------
    epsilon0 : float
        The common budget, nats.
    n : int
        Number of users.
    """

    epsilon0: float
    n: int

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon (nats) from which on delta is 0: the local budget that all users share."""
        return Upper(self.epsilon0)

    def curve(self, orders: FloatArray) -> Enclosure:
        """Enclose the lower bound on D of the class docstring at each order, nats."""
        value = np.log1p(self._excess(orders)) / (orders - 1.0)
        return Enclosure(value * (1 - _SLACK), value * (1 + _SLACK))

    def delta_at(self, epsilon: float) -> Interval:
        """Enclose the lower bound on delta by (K), the largest over a few hundred orders, each of them valid."""
        orders = _ORDERS[_ORDERS * self.epsilon0 <= 300.0]
        excess, inner, outer = self._excess(orders), _moment(orders, epsilon), _moment(orders, self.epsilon0)
        slack = 2.0 * _SLACK * (1.0 + orders * self.epsilon0)
        low = excess * (1 - slack) - inner * (1 + slack)
        high = excess * (1 + slack) - inner * (1 - slack)
        with np.errstate(divide="ignore", invalid="ignore"):
            # q <= 1 as D is that of an epsilon0-indistinguishable pair; next to epsilon0 a difference may round to 0
            least = np.where(low > 0.0, low / (outer * (1 + slack) - inner * (1 - slack)), 0.0)
            most = np.where(high > 0.0, high / np.maximum(outer * (1 - slack) - inner * (1 + slack), 0.0), 0.0)
        whole = victim_line(epsilon, self.epsilon0)[0]  # randomized response's own delta
        share = Interval(min(float(least.max(initial=0.0)), 1.0), min(float(most.max(initial=0.0)), 1.0))
        return Interval(share.lower * whole * (1 - _SLACK), share.upper * whole * (1 + _SLACK))

    def _excess(self, orders: FloatArray) -> FloatArray:
        """e^{(lambda-1) D} - 1, by (e^x - 1)^2/e^x = 4 sinh(x/2)^2."""
        return orders * (orders - 1.0) / self.n * (2.0 * math.sinh(self.epsilon0 / 2.0) ** 2)


class GirgisLowerBound(PublishedBound):
    """Lower bound of Girgis et al. on the Rényi divergence, attained by randomized response.

    Its epsilon is what the Rényi bound implies by (K): valid, and far below the exact witnesses. See
    docs/theorems/girgis21-lower.md.
    """

    key = "girgis21-lower"
    kind = Kind.CERTIFIED_LOWER
    reference = "Girgis, Data, Diggavi, Suresh, Kairouz (CCS 2021), Rényi lower bound (randomized response)"
    source = PAPER

    def one_round(self, setting: Setting, epsilon0: float) -> GirgisLowerProfile:
        """Return the profile of `GirgisLowerProfile`; refuse several budgets, epsilon0 > 300, and other randomizers.

        Other randomizers are stated ones with more than two outcomes. See `AmplificationBound.one_round`.
        """
        require_one_budget(setting, self.key)
        _require_moderate(epsilon0, self.key)
        if setting.law is not None and (setting.discrete is None or not setting.discrete.two_point):
            raise OutOfRegime(f"girgis21-lower is attained by two-outcome randomizers; got {setting.randomizer_name}")
        return GirgisLowerProfile(epsilon0, setting.budgets.n)


@dataclass(frozen=True)
class LinearRenyiProfile(RenyiProfile):
    """Profile with Rényi divergence D = slope * lambda for every real order lambda > 1, as published; not certified.

    Parameters
    ----------
    slope : float
        Rényi divergence (nats) per unit of the order, at least 0.
    """

    slope: float

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon from which on delta is 0: infinite, or 0 if the slope is 0."""
        return UNBOUNDED if self.slope > 0.0 else Upper(0.0)

    def curve(self, orders: FloatArray) -> Enclosure:
        """Return slope * lambda at each order, nats, as intervals of one point."""
        value = self.slope * orders
        return Enclosure(value, value)

    def checked_order(self, order: float) -> float:
        """Return the order as a float, or raise InvalidInput unless it is finite and above 1."""
        value = float(order)
        if not 1.0 < value < math.inf:
            raise InvalidInput(f"a Rényi order must be a finite number above 1; got {order}")
        return value

    def epsilon(self, delta: float) -> Interval:
        """Return slope + 2 sqrt(slope log(1/delta)), nats: (M) at its best real order, 1 + sqrt(log(1/delta)/slope)."""
        need = -math.log(check_delta(delta))
        value = self.slope + 2.0 * math.sqrt(self.slope * need)
        return Interval(value, value)

    def delta_at(self, epsilon: float) -> Interval:
        """Return exp(-(epsilon - slope)^2/(4 slope)), (M) solved for delta; 1 up to epsilon = slope."""
        beyond = max(epsilon - self.slope, 0.0)
        value = math.exp(-beyond * (beyond / (4.0 * self.slope)))
        return Interval(value, value)


class RdpRenyiBound(PublishedBound):
    """Corollary 2 of Chen, Cao, Ge (ICASSP 2024): (lambda, 2 e^epsilon0 lambda/(n-1))-RDP; asymptotic.

    It is too small at high orders lambda. Over several rounds the divergences add up (its Theorem 3). See
    docs/theorems/rdp-renyi.md.
    """

    key = "rdp-renyi"
    kind = Kind.ASYMPTOTIC
    reference = "Chen, Cao, Ge (ICASSP 2024), Corollary 2 and Theorem 3, as published, converted by Mironov (2017)"
    source = PAPER
    composes = True

    def one_round(self, setting: Setting, epsilon0: float) -> LinearRenyiProfile:
        """Return the profile with D = 2 e^epsilon0 lambda/(n-1); refuse several budgets, and a single user.

        See `AmplificationBound.one_round`.
        """
        require_one_budget(setting, self.key)
        require_company(setting, self.key)
        return LinearRenyiProfile(2.0 * math.exp(epsilon0) / (setting.budgets.n - 1))

    def over_rounds(self, setting: Setting, one: PrivacyProfile) -> LinearRenyiProfile:
        """Return the profile of all rounds together, with ``rounds`` times the divergence of one (Theorem 3).

        See `AmplificationBound.over_rounds`.
        """
        del one
        n, epsilon0 = setting.budgets.n, float(setting.budgets.epsilons[-1])
        return LinearRenyiProfile(setting.rounds * 2.0 * math.exp(epsilon0) / (n - 1))


def _moment(orders: FloatArray, epsilon: float) -> FloatArray:
    """m(epsilon) - 1 of (K); exponents up to 300."""
    return np.expm1(orders * epsilon) * -np.expm1(-(orders - 1.0) * epsilon) / (1.0 + math.exp(epsilon))


def _require_moderate(epsilon0: float, key: str) -> None:
    """Refuse budgets whose squares leave double precision."""
    if epsilon0 > 300.0:
        raise OutOfRegime(f"{key} is evaluated up to epsilon0 = 300; got {epsilon0:g}")
