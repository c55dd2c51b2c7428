"""Published closed forms epsilon(delta), rounded outward, and refused outside the regime they are stated for."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

from shuffledp.accounting.profiles.profile import PrivacyProfile, check_delta
from shuffledp.accounting.published.base import CODE, SECOND, PublishedBound, require_one_budget
from shuffledp.errors import OutOfRegime
from shuffledp.guarantee import Kind
from shuffledp.numerics.floats import SMALLEST, UNBOUNDED, Upper, deflated, inflated, roundoff
from shuffledp.numerics.interval import Interval
from shuffledp.setting import Setting

_SLACK = 64
"""Relative error, in roundoffs, of some ten operations without cancellation, each good to 4; generous."""


class ClosedFormProfile(PrivacyProfile):
    """A theorem that states epsilon as a formula of delta, on a range of delta.

    delta(epsilon) is the smallest delta of that range for which the stated epsilon is at most the one asked for,
    or 1 where there is none.
    """

    @abstractmethod
    def stated_epsilon(self, delta: float) -> float:
        """Return the formula, relative error below 64 roundoffs."""

    @abstractmethod
    def solved_delta(self, epsilon: float) -> Interval:
        """Where the formula equals epsilon > 0, range aside; any number at least 1 if nowhere below 1."""

    @abstractmethod
    def refusal(self, delta: float) -> str | None:
        """Why the theorem is not stated for this delta; None if it is."""

    @property
    def smallest_delta(self) -> Interval:
        """The lower end of the range of delta; at its upper end the theorem is stated."""
        return Interval(0.0, 0.0)

    def epsilon(self, delta: float) -> Interval:
        """Return the formula, rounded outward.

        Raises
        ------
        OutOfRegime
            If the theorem is not stated for this delta.
        InvalidInput
            If delta is not in (0, 1).
        """
        target = check_delta(delta)
        refusal = self.refusal(target)
        if refusal is not None:
            raise OutOfRegime(refusal)
        value = self.stated_epsilon(target)
        return Interval(value, value).inflated(_SLACK)

    def delta_at(self, epsilon: float) -> Interval:
        """As in the class docstring."""
        if epsilon == 0.0:
            return Interval(1.0, 1.0)
        found, least = self.solved_delta(epsilon), self.smallest_delta
        lower, upper = max(found.lower, least.lower), max(found.upper, least.upper)
        stated = upper < 1.0 and self.refusal(upper) is None
        return Interval(lower, upper) if stated else Interval(min(lower, 1.0), 1.0)


@dataclass(frozen=True)
class ErlingssonProfile(ClosedFormProfile):
    """Epsilon = 12 epsilon0 sqrt(log(1/delta)/n) for delta < 1/100.

    Parameters
    ----------
    epsilon0 : float
        The common budget, nats, below 1/2.
    n : int
        Number of users, at least 1000.
    """

    epsilon0: float
    n: int

    @property
    def vanishes_at(self) -> Upper:
        """Never, unless reports carry nothing."""
        return UNBOUNDED if self.epsilon0 > 0.0 else Upper(0.0)

    def stated_epsilon(self, delta: float) -> float:
        """As in the class docstring."""
        return 12.0 * self.epsilon0 * math.sqrt(-math.log(delta) / self.n)

    def solved_delta(self, epsilon: float) -> Interval:
        """Delta = exp(-n (epsilon/(12 epsilon0))^2)."""
        ratio = epsilon / (12.0 * self.epsilon0)
        exponent = self.n * ratio * ratio
        return Interval(_exp_down(-inflated(exponent, _SLACK)), _exp_up(-deflated(exponent, _SLACK)))

    def refusal(self, delta: float) -> str | None:
        """Refuse a delta of 1/100 or more."""
        return None if delta < 0.01 else f"erlingsson19 needs delta < 1/100; got {delta:g}"


class ErlingssonBound(PublishedBound):
    """Amplification by shuffling, epsilon = 12 epsilon0 sqrt(log(1/delta)/n). See docs/theorems/erlingsson19.md."""

    key = "erlingsson19"
    kind = Kind.CERTIFIED_UPPER
    reference = "Erlingsson, Feldman, Mironov, Raghunathan, Talwar, Thakurta (SODA 2019), Corollary 9"
    source = CODE

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the closed form within its regime; see `AmplificationBound.one_round`."""
        require_one_budget(setting, self.key)
        if not epsilon0 < 0.5:
            raise OutOfRegime(f"erlingsson19 needs epsilon0 < 1/2; got {epsilon0:g}")
        if setting.budgets.n < 1000:
            raise OutOfRegime(f"erlingsson19 needs n >= 1000 users; got n = {setting.budgets.n}")
        return ErlingssonProfile(epsilon0, setting.budgets.n)


@dataclass(frozen=True)
class CloneClosedProfile(ClosedFormProfile):
    """Epsilon = log(1 + scale (sqrt(rate log(4/delta)) + offset)) where log(2/delta) <= room.

    Parameters
    ----------
    key : str
        The bound's key, for refusals.
    condition : str
        The regime in the source's words, likewise.
    scale, rate, offset : float
        Constants of the formula, each good to 16 roundoffs.
    room : float
        Largest log(2/delta) of the regime, good to 16 roundoffs.
    """

    key: str
    condition: str
    scale: float
    rate: float
    offset: float
    room: float

    @property
    def vanishes_at(self) -> Upper:
        """Never, unless reports carry nothing."""
        return UNBOUNDED if self.scale > 0.0 else Upper(0.0)

    @property
    def smallest_delta(self) -> Interval:
        """Delta = 2 e^{-room}, rounded up by more than `refusal` asks for."""
        return Interval(2.0 * _exp_down(-inflated(self.room, _SLACK)), 2.0 * _exp_up(-deflated(self.room, 4 * _SLACK)))

    def stated_epsilon(self, delta: float) -> float:
        """As in the class docstring; log1p keeps the relative accuracy of its argument."""
        return math.log1p(self.scale * (math.sqrt(self.rate * (math.log(4.0) - math.log(delta))) + self.offset))

    def solved_delta(self, epsilon: float) -> Interval:
        """Delta = 4 exp(-(x - offset)^2/rate), x = (e^epsilon - 1)/scale; at least 1 where x <= offset."""
        x = math.expm1(min(epsilon, 700.0)) / self.scale
        doubt = roundoff(32, x + self.offset)
        low, high = x - self.offset - doubt, x - self.offset + doubt
        upper = 4.0 * _exp_up(-deflated(low * low / self.rate, _SLACK)) if low > 0.0 else 4.0
        lower = 4.0 * _exp_down(-inflated(high * high / self.rate, _SLACK)) if high > 0.0 else 1.0
        return Interval(min(lower, upper), upper)

    def refusal(self, delta: float) -> str | None:
        """Log(2/delta) <= room, both rounded to the strict side."""
        if inflated(math.log(2.0) - math.log(delta), _SLACK) <= deflated(self.room, 0.25 * _SLACK):
            return None
        return f"{self.key} needs {self.condition}; got delta = {delta:g}"


class Fmt22ClosedBound(PublishedBound):
    """Closed form of the clone pair with p = e^{-epsilon0}. See docs/theorems/fmt22-closed.md."""

    key = "fmt22-closed"
    kind = Kind.CERTIFIED_UPPER
    reference = "Feldman, McMillan, Talwar (FOCS 2021), Theorem 3.1"
    source = SECOND

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the closed form within its regime; see `AmplificationBound.one_round`."""
        require_one_budget(setting, self.key)
        n = setting.budgets.n
        share = math.exp(epsilon0) / n
        return _within(
            CloneClosedProfile(
                self.key,
                f"epsilon0 <= log(n/(16 log(2/delta))), where epsilon0 = {epsilon0:g} and n = {n}",
                8.0 * math.tanh(epsilon0 / 2.0),
                share,
                share,
                n * math.exp(-epsilon0) / 16.0,
            )
        )


class Fmt23ClosedBound(PublishedBound):
    """Closed form of the clone pair with p = 2/(1 + e^{epsilon0}). See docs/theorems/fmt23-closed.md."""

    key = "fmt23-closed"
    kind = Kind.CERTIFIED_UPPER
    reference = "Feldman, McMillan, Talwar (SODA 2023), Theorem 3.2, with the stricter of its printed guards"
    source = CODE

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the closed form within its regime; see `AmplificationBound.one_round`."""
        require_one_budget(setting, self.key)
        n = setting.budgets.n
        return _within(
            CloneClosedProfile(
                self.key,
                f"epsilon0 <= log(n/(8 log(2/delta)) - 1), where epsilon0 = {epsilon0:g} and n = {n}",
                4.0 * math.expm1(epsilon0),
                2.0 / ((math.exp(epsilon0) + 1.0) * n),
                1.0 / n,
                n / (8.0 * (math.exp(epsilon0) + 1.0)),
            )
        )


def _within(profile: CloneClosedProfile) -> CloneClosedProfile:
    """Refuse at once where no delta below 1 is in the regime."""
    if not profile.room > inflated(math.log(2.0), 8 * _SLACK):
        raise OutOfRegime(f"{profile.key} needs {profile.condition}; no delta below 1 meets that")
    return profile


def _exp_up(exponent: float) -> float:
    """Return exp(exponent) rounded up, never 0; subnormal numbers are good to two of their units."""
    return inflated(math.exp(exponent), _SLACK) + 20.0 * SMALLEST


def _exp_down(exponent: float) -> float:
    """Return exp(exponent) rounded down, possibly 0."""
    return max(deflated(math.exp(exponent), _SLACK) - 20.0 * SMALLEST, 0.0)
