"""A limit on several collections that are chosen on the way (docs/theorems/filter.md).

A round of mu and share t, whatever earlier rounds released, is a function of "with probability t everything, else a
Gaussian shift of mu". As long as the squares of mu and the shares of all admitted rounds stay within limits that were
fixed before the first one, all rounds together are no worse than one such round at the limits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from shuffledp.accounting.profiles.domination import check_outside
from shuffledp.accounting.profiles.gaussian import gaussian_epsilon
from shuffledp.accounting.profiles.profile import check_delta
from shuffledp.errors import InvalidInput, shown
from shuffledp.guarantee import Guarantee
from shuffledp.numerics.floats import (
    SMALLEST,
    Lower,
    Upper,
    fraction_down,
    fraction_up,
    log_ndtr,
    root_down,
    root_up,
    round_down,
    round_up,
    roundoff,
)
from shuffledp.numerics.gaussian_tail import largest_shift, normal_divergence

_LARGEST_MU = 1000.0
"""Larger limits protect nothing."""
_SHARE_OF_DELTA = 0.01
"""Of a target's delta, what all rounds together may reveal outright."""
_USUAL_ROUNDS = 100
"""So many rounds have an equal share if nothing else is said."""


@dataclass(frozen=True)
class Allowance:
    """A mu together with what may be revealed beyond it.

    Parameters
    ----------
    mu : float
        Gaussian shift, at least 0.
    outside : float
        Probability, in [0, 1).
    """

    mu: float
    outside: float


class PrivacyFilter:
    """Admits collections while all of them together stay within a limit fixed before the first one.

    Each collection may be chosen by what earlier ones released: its people, budgets, randomizer and size. It must use
    fresh randomness and a fresh shuffle, and everything it depends on besides must not depend on the person's records
    otherwise than through those releases. Ask `admit` before a collection is run, and run it only if the answer is
    True.

    Parameters
    ----------
    mu : float
        Limit: the squares of the rounds' mu may add up to its square. In (0, 1000].
    outside : float
        Limit of the sum of the rounds' shares, in (0, 1).

    Raises
    ------
    InvalidInput
        If a limit is out of range.

    Notes
    -----
    Source: docs/theorems/filter.md. What is claimed is the limit, from the first round on. The running sum `spent` is
    a meter, not a claim: a limit that is chosen by what was spent is not covered.

    Examples
    --------
    >>> import shuffledp as sdp
    >>> day = sdp.Setting(sdp.Budgets([1.0], [10_000]), "any", seen="reports", neighboring="replace-one")
    >>> year = sdp.PrivacyFilter.within(epsilon=1.0, delta=1e-6)
    >>> year.admit(sdp.certify(day, delta=1e-6))
    True
    """

    def __init__(self, mu: float, outside: float) -> None:
        if _positive("mu", mu) > _LARGEST_MU:
            raise InvalidInput(
                f"mu must be at most {_LARGEST_MU:g}, beyond which nothing is protected; got {shown(mu)}"
            )
        self._limit = Allowance(float(mu), check_outside(outside))
        if self._limit.outside == 0.0:
            raise InvalidInput("outside must be a probability in (0, 1); got 0; 1e-2 of delta is customary")
        self._squares, self._shares = Fraction(0), Fraction(0)  # exact: doubles are fractions

    @classmethod
    def within(cls, epsilon: float, delta: float) -> PrivacyFilter:
        """Return the filter that keeps (epsilon, delta)-differential privacy, a hundredth of delta for the shares.

        Parameters
        ----------
        epsilon : float
            Nats, positive.
        delta : float
            In (0, 1).

        Raises
        ------
        InvalidInput
            If a number is out of range.
        """
        outside = _SHARE_OF_DELTA * check_delta(delta)
        return cls(allowed_mu(epsilon, delta, outside), outside)

    @property
    def limit(self) -> Allowance:
        """What was fixed before the first round."""
        return self._limit

    @property
    def spent(self) -> Allowance:
        """Of all admitted rounds together, rounded up."""
        return Allowance(root_up(self._squares), fraction_up(self._shares))

    @property
    def left(self) -> Allowance:
        """What one more round may have, rounded down."""
        squares, shares = Fraction(self._limit.mu) ** 2 - self._squares, Fraction(self._limit.outside) - self._shares
        return Allowance(root_down(squares), fraction_down(shares))

    def admit(self, guarantee: Guarantee, outside: float | None = None) -> bool:
        """Say whether a collection may be run; if so, it is counted.

        Parameters
        ----------
        guarantee : Guarantee
            Of the collection by itself, from `certify`; its delta is not used.
        outside : float, optional
            The share of this round; default a hundredth of the filter's.

        Raises
        ------
        InvalidInput
            If ``outside`` is out of range, or the guarantee has no `mu`. Nothing is counted.
        OutOfRegime
            If no mu covers the collection but for ``outside``, as for a larger local delta0. Nothing is counted.
        """
        usual = fraction_down(Fraction(self._limit.outside) / _USUAL_ROUNDS)
        share = usual if outside is None else check_outside(outside)
        return self.admit_round(guarantee.mu(share), share)

    def admit_round(self, mu: float, outside: float) -> bool:
        """Say whether a round of known mu and share may be run; if so, it is counted.

        Parameters
        ----------
        mu : float
            As `Guarantee.mu` has it for this share; at least 0, possibly infinite (then the answer is False).
        outside : float
            Its share, in [0, 1).

        Raises
        ------
        InvalidInput
            If a number is out of range. Nothing is counted.
        """
        if not (_is_number(mu) and mu >= 0.0):
            raise InvalidInput(f"mu must be a number >= 0; got {shown(mu)}")
        share = check_outside(outside)
        if math.isinf(mu):
            return False
        squares, shares = self._squares + Fraction(float(mu)) ** 2, self._shares + Fraction(share)
        if squares > Fraction(self._limit.mu) ** 2 or shares > Fraction(self._limit.outside):
            return False
        self._squares, self._shares = squares, shares
        return True

    def epsilon(self, delta: float) -> Upper:
        """Return the epsilon that all admitted rounds keep together at a delta, however many there are.

        Parameters
        ----------
        delta : float
            In (0, 1), above the limit's ``outside``.

        Raises
        ------
        InvalidInput
            If delta is out of range.
        """
        if check_delta(delta) <= self._limit.outside:
            raise InvalidInput(f"delta must be above the filter's outside = {self._limit.outside:g}; got {delta:g}")
        mu, target = self._limit.mu, _beyond(delta, self._limit.outside)
        found, step = gaussian_epsilon(target, mu), roundoff(900)
        while float(normal_divergence(found, mu).upper) > target:
            found, step = found * (1.0 + step) + SMALLEST, 2.0 * step
        return Upper(found)  # where the certified divergence is at most the target

    def delta(self, epsilon: float) -> Upper:
        """Return the delta that all admitted rounds keep together at an epsilon >= 0 (nats).

        Raises
        ------
        InvalidInput
            If epsilon is negative, or no number.
        """
        if not (_is_number(epsilon) and 0.0 <= epsilon < math.inf):
            raise InvalidInput(f"epsilon must be a finite number >= 0 (nats); got {shown(epsilon)}")
        rest = float(normal_divergence(epsilon, self._limit.mu).upper)
        return min(round_up(self._limit.outside + (1.0 - self._limit.outside) * rest), Upper(1.0))


def allowed_mu(epsilon: float, delta: float, outside: float) -> Lower:
    """Return the mu of a limit that keeps (epsilon, delta) beside a share: about the largest, never above it.

    Parameters
    ----------
    epsilon : float
        Nats, positive.
    delta : float
        In (0, 1).
    outside : float
        The share, from 0 to below delta.

    Raises
    ------
    InvalidInput
        If a number is out of range.

    Examples
    --------
    >>> round(allowed_mu(1.0, 1e-6, 1e-8), 3)
    0.237
    """
    target = _positive("epsilon", epsilon)
    if not check_outside(outside) < check_delta(delta):
        raise InvalidInput(f"outside must be below delta = {delta:g}; got {outside:g}")
    # a little short of it, so that the roundings of `epsilon` and `delta` stay within the target
    return Lower(float(largest_shift(target, _beyond(delta, outside) * (1.0 - 1e-9))))


def largest_pure(mu: float) -> Lower:
    """Return the largest epsilon such that every (epsilon, 0)-private release is covered by one Gaussian shift of mu.

    The worst is randomized response; its trade-off function has one kink, at equal errors 1/(1 + e^epsilon), and the
    Gaussian one, convex and symmetric, is below it exactly if it is there: Phi(-mu/2) <= 1/(1 + e^epsilon).

    Parameters
    ----------
    mu : float
        Positive, at most 1000.

    Examples
    --------
    >>> round(largest_pure(0.237), 3)
    0.189
    """
    return Lower(max(float(log_ndtr(0.5 * mu) - log_ndtr(-0.5 * mu)) * (1.0 - 1e-9), 0.0))


def _beyond(delta: float, outside: float) -> Lower:
    """Return what is left of delta for the Gaussian part, rounded down: (delta - t)/(1 - t)."""
    return max(round_down((float(delta) - outside) / (1.0 - outside)), Lower(SMALLEST))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.floating) and not isinstance(value, bool) and not math.isnan(value)


def _positive(name: str, value: float) -> float:
    if not (_is_number(value) and 0.0 < value < math.inf):
        raise InvalidInput(f"{name} must be a positive finite number; got {shown(value)}")
    return float(value)
