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

from shuffledp.accounting.profiles.profile import PrivacyProfile, check_delta
from shuffledp.accounting.published.closed import (
    PAPER,
    PublishedBound,
    require_company,
    require_one_budget,
    require_unordered,
)
from shuffledp.accounting.theorems.clones.pair import victim_line
from shuffledp.errors import InvalidInput, OutOfRegime
from shuffledp.guarantee import Kind
from shuffledp.numerics.floats import TINY, UNBOUNDED, Upper, roundoff
from shuffledp.numerics.interval import Enclosure, FloatArray, Interval
from shuffledp.setting import Setting

_SLACK = roundoff(64)
"""Relative error of a dozen operations without cancellation; generous."""
_ORDERS = np.unique(np.concatenate((np.arange(2.0, 258.0), np.rint(np.geomspace(257.0, 2.0**40, 1200)))))
"""Orders among which the best one is looked for first; its neighbourhood follows."""


def least_over_orders(value: Callable[[FloatArray], FloatArray]) -> float:
    """Return an integer order from 2 to 2^40 that minimises a function with one valley.

    Any order gives a valid bound, so the search only decides how good it is.

    Parameters
    ----------
    value : callable
        From orders, shape (orders,), to values; may be inf.
    """
    orders = _ORDERS
    while True:
        best = int(np.argmin(value(orders)))
        low, high = orders[max(best - 1, 0)], orders[min(best + 1, orders.size - 1)]
        if high - low <= 2.0:
            return float(orders[best])
        orders = np.unique(np.rint(np.linspace(low, high, 257)))


class RenyiProfile(PrivacyProfile):
    """A pair of neighbours known by a Rényi curve."""

    @abstractmethod
    def curve(self, orders: FloatArray) -> Enclosure:
        """Enclose D(lambda), shape of ``orders``, which are whole numbers from 2 up."""

    def renyi(self, order: float) -> Interval:
        """Enclose the published bound on the Rényi divergence of one order, the formula itself.

        Parameters
        ----------
        order : float
            A whole number, at least 2.

        Raises
        ------
        InvalidInput
            If the order is not one for which the bound is stated.
        """
        found = self.curve(np.array([self.checked_order(order)]))
        return Interval(float(found.lower[0]), float(found.upper[0]))

    def renyi_curve(self, orders: ArrayLike) -> Enclosure:
        """Enclose the published bound at many orders; see `renyi`."""
        listed = np.asarray(orders, dtype=np.float64)
        return self.curve(
            np.array([self.checked_order(float(order)) for order in listed.ravel()]).reshape(listed.shape)
        )

    def checked_order(self, order: float) -> float:
        """Return the order as a float, or raise InvalidInput."""
        value = float(order)
        if not (2.0 <= value <= 2.0**40 and value.is_integer()):
            raise InvalidInput(f"the bound is stated for whole orders from 2 to 2^40; got {order}")
        return value


class RenyiUpperProfile(RenyiProfile):
    """An upper bound on the Rényi curve: delta and epsilon by (M)."""

    @property
    def vanishes_at(self) -> Upper:
        """Never: (M) is positive everywhere."""
        return UNBOUNDED

    def epsilon(self, delta: float) -> Interval:
        """(M), the smallest over integer orders.

        Parameters
        ----------
        delta : float
            In (0, 1).
        """
        need = -math.log(check_delta(delta))
        best = np.array([least_over_orders(lambda orders: self.curve(orders).upper + need / (orders - 1.0))])
        found, extra = self.curve(best), need / (float(best[0]) - 1.0)
        return Interval((float(found.lower[0]) + extra) * (1 - _SLACK), (float(found.upper[0]) + extra) * (1 + _SLACK))

    def delta_at(self, epsilon: float) -> Interval:
        """(M) solved for delta: exp((lambda - 1)(D(lambda) - epsilon)), the smallest over integer orders."""
        best = np.array([least_over_orders(lambda orders: (orders - 1.0) * (self.curve(orders).upper - epsilon))])
        found, power = self.curve(best), float(best[0]) - 1.0
        doubt = _SLACK * power * (float(found.upper[0]) + epsilon)
        if not math.isfinite(doubt):
            return Interval(0.0, 1.0)
        low, high = power * (float(found.lower[0]) - epsilon) - doubt, power * (float(found.upper[0]) - epsilon) + doubt
        lower, upper = math.exp(min(low, 1.0)) * (1 - _SLACK) - TINY, math.exp(min(high, 1.0)) * (1 + _SLACK) + TINY
        return Interval(min(max(lower, 0.0), 1.0), min(upper, 1.0))


@dataclass(frozen=True)
class GirgisUpperProfile(RenyiUpperProfile):
    """D = log(e^{lambda^2 (e^epsilon0 - 1)^2/m} + e^{epsilon0 lambda - (n-1)/(8 e^epsilon0)})/(lambda - 1).

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
        """As in the class docstring; a floor that rounding may move is moved down for the upper end."""
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
    """The second upper bound of Girgis et al., integer orders, through (M). See docs/theorems/girgis21.md."""

    key = "girgis21"
    kind = Kind.CERTIFIED_UPPER
    reference = "Girgis, Data, Diggavi, Suresh, Kairouz (CCS 2021), Rényi upper bound, converted by Mironov (2017)"
    source = PAPER

    def one_round(self, setting: Setting, epsilon0: float) -> GirgisUpperProfile:
        """Return the Rényi curve of one budget; see `AmplificationBound.one_round`."""
        require_one_budget(setting, self.key)
        require_unordered(setting, self.key)
        _require_moderate(epsilon0, self.key)
        return GirgisUpperProfile(epsilon0, setting.budgets.n)


@dataclass(frozen=True)
class GirgisLowerProfile(RenyiProfile):
    """D >= log(1 + lambda (lambda-1)/2 (e^epsilon0 - 1)^2/(n e^epsilon0))/(lambda - 1), and what it implies by (K).

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
        """The budget that all users share."""
        return Upper(self.epsilon0)

    def curve(self, orders: FloatArray) -> Enclosure:
        """As in the class docstring."""
        value = np.log1p(self._excess(orders)) / (orders - 1.0)
        return Enclosure(value * (1 - _SLACK), value * (1 + _SLACK))

    def delta_at(self, epsilon: float) -> Interval:
        """(K) solved for delta, the largest over a few hundred orders; each is a valid lower bound."""
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
    """The Rényi lower bound of Girgis et al., attained by randomized response. See docs/theorems/girgis21-lower.md.

    Its epsilon is what the Rényi bound implies by (K): valid, and far below the exact witnesses.
    """

    key = "girgis21-lower"
    kind = Kind.CERTIFIED_LOWER
    reference = "Girgis, Data, Diggavi, Suresh, Kairouz (CCS 2021), Rényi lower bound (randomized response)"
    source = PAPER

    def one_round(self, setting: Setting, epsilon0: float) -> GirgisLowerProfile:
        """Return the Rényi curve of one budget; see `AmplificationBound.one_round`."""
        require_one_budget(setting, self.key)
        _require_moderate(epsilon0, self.key)
        if setting.law is not None and (setting.discrete is None or not setting.discrete.two_point):
            raise OutOfRegime(f"girgis21-lower is attained by two-outcome randomizers; got {setting.randomizer_name}")
        return GirgisLowerProfile(epsilon0, setting.budgets.n)


@dataclass(frozen=True)
class LinearRenyiProfile(RenyiProfile):
    """D = slope * lambda for every real order above 1; double precision as published, no certificate.

    Parameters
    ----------
    slope : float
        Non-negative, per order.
    """

    slope: float

    @property
    def vanishes_at(self) -> Upper:
        """Never, unless the slope is zero."""
        return UNBOUNDED if self.slope > 0.0 else Upper(0.0)

    def curve(self, orders: FloatArray) -> Enclosure:
        """As in the class docstring."""
        value = self.slope * orders
        return Enclosure(value, value)

    def checked_order(self, order: float) -> float:
        """Accept any order above 1."""
        value = float(order)
        if not 1.0 < value < math.inf:
            raise InvalidInput(f"a Rényi order must be a finite number above 1; got {order}")
        return value

    def epsilon(self, delta: float) -> Interval:
        """(M) at its best real order, 1 + sqrt(log(1/delta)/slope): slope + 2 sqrt(slope log(1/delta))."""
        need = -math.log(check_delta(delta))
        value = self.slope + 2.0 * math.sqrt(self.slope * need)
        return Interval(value, value)

    def delta_at(self, epsilon: float) -> Interval:
        """(M) solved for delta: exp(-(epsilon - slope)^2/(4 slope)), or 1 up to epsilon = slope."""
        beyond = max(epsilon - self.slope, 0.0)
        value = math.exp(-beyond * (beyond / (4.0 * self.slope)))
        return Interval(value, value)


class RdpRenyiBound(PublishedBound):
    """The RDP paper's Corollary 2, (lambda, 2 e^epsilon0 lambda/(n-1))-RDP; asymptotic, too small at high orders.

    Several rounds add up (its Theorem 3). See docs/theorems/rdp-renyi.md.
    """

    key = "rdp-renyi"
    kind = Kind.ASYMPTOTIC
    reference = "Chen, Cao, Ge (ICASSP 2024), Corollary 2 and Theorem 3, as published, converted by Mironov (2017)"
    source = PAPER
    composes = True

    def one_round(self, setting: Setting, epsilon0: float) -> LinearRenyiProfile:
        """Return the linear Rényi curve; see `AmplificationBound.one_round`."""
        require_one_budget(setting, self.key)
        require_company(setting, self.key)
        return LinearRenyiProfile(2.0 * math.exp(epsilon0) / (setting.budgets.n - 1))

    def over_rounds(self, setting: Setting, one: PrivacyProfile) -> LinearRenyiProfile:
        """Theorem 3: so many times the curve."""
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
