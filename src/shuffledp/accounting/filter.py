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
from shuffledp.accounting.profiles.profile import gaussian_epsilon
from shuffledp.errors import InvalidInput, check_delta, shown
from shuffledp.numerics.floats import (
    SMALLEST,
    Lower,
    Upper,
    fraction_down,
    fraction_up,
    root_down,
    root_up,
    round_down,
    round_up,
    roundoff,
)
from shuffledp.numerics.functions import log_ndtr
from shuffledp.numerics.tails import largest_shift, normal_divergence
from shuffledp.setting import Guarantee

_LARGEST_MU = 1000.0
"""Largest limit on mu that is accepted; larger ones protect nobody."""
_SHARE_OF_DELTA = 0.01
"""Share of a target's delta that is the probability, over all rounds, of revealing a record."""
_USUAL_ROUNDS = 100
"""Default number of rounds among which that probability is divided equally."""


@dataclass(frozen=True)
class Allowance:
    """A Gaussian shift mu, together with a probability that everything is revealed outright.

    Parameters
    ----------
    mu : float
        Shift of the standard Gaussian to which a privacy loss is compared, at least 0; 0 is perfect privacy.
    outside : float
        Probability that the record is revealed outright, in [0, 1).
    """

    mu: float
    outside: float


class PrivacyFilter:
    """Admits collections while all of them together stay within a limit fixed before the first one.

    Each collection may be chosen by what earlier ones released: its people, budgets, randomizer and size. It must use
    fresh randomness and a fresh shuffle, and otherwise must not depend on the person's records except through those
    releases. Call `admit` before a collection is run, and run it only if the answer is True.

    Parameters
    ----------
    mu : float
        Limit, in (0, 1000]: the squares of the mu of all rounds may add up to its square. The mu of a round is the
        Gaussian shift that dominates its privacy loss.
    outside : float
        Limit, in (0, 1), of the sum of the rounds' shares. The share of a round is the probability with which
        it may reveal the record outright, beside the Gaussian shift.

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

    def __repr__(self) -> str:
        """Return the limit and what was spent of it, in a line."""
        limit, spent = self._limit, self.spent
        return (
            f"<PrivacyFilter: mu at most {limit.mu!r} and shares at most {limit.outside!r}; spent mu {spent.mu!r} and "
            f"shares {spent.outside!r}>"
        )

    @classmethod
    def within(cls, epsilon: float, delta: float) -> PrivacyFilter:
        """Return the filter that keeps (epsilon, delta)-differential privacy over all admitted collections.

        A hundredth of delta is the limit of the rounds' shares (``outside``); the rest determines the limit of mu.

        Parameters
        ----------
        epsilon : float
            Central epsilon of all collections together, nats, positive.
        delta : float
            Central delta of all collections together, in (0, 1).

        Raises
        ------
        InvalidInput
            If a number is out of range.
        """
        outside = _SHARE_OF_DELTA * check_delta(delta)
        return cls(allowed_mu(epsilon, delta, outside), outside)

    @property
    def limit(self) -> Allowance:
        """The limits of mu and of the shares, fixed before the first round."""
        return self._limit

    @property
    def spent(self) -> Allowance:
        """Root of the summed squares of mu, and sum of the shares, over all admitted rounds; rounded up."""
        return Allowance(root_up(self._squares), fraction_up(self._shares))

    @property
    def left(self) -> Allowance:
        """Largest mu and largest share that one more round may have; rounded down."""
        squares, shares = Fraction(self._limit.mu) ** 2 - self._squares, Fraction(self._limit.outside) - self._shares
        return Allowance(root_down(squares), fraction_down(shares))

    def admit(self, guarantee: Guarantee, outside: float | None = None) -> bool:
        """Return whether a collection may be run; if True, it is counted against the limit.

        Parameters
        ----------
        guarantee : Guarantee
            The guarantee of the collection by itself, from `certify`; its delta is not used.
        outside : float, optional
            The share of this round: the probability, in [0, 1), with which it may reveal the record outright,
            beside the Gaussian shift; default a hundredth of the filter's limit.

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
        """Return whether a round of known mu and share may be run; if True, it is counted against the limit.

        Parameters
        ----------
        mu : float
            Gaussian shift that dominates the round's privacy loss but for its share, as `Guarantee.mu` returns it; at
            least 0, possibly infinite (then the answer is False).
        outside : float
            The round's share: the probability, in [0, 1), with which it may reveal the record outright,
            beside the shift.

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
        """Return the central epsilon (nats) that all admitted rounds together keep at a delta, however many they are.

        It follows from the limit alone, not from what was spent.

        Parameters
        ----------
        delta : float
            Central delta, in (0, 1), above the limit's ``outside``.

        Raises
        ------
        InvalidInput
            If delta is out of range.
        """
        if check_delta(delta) <= self._limit.outside:
            raise InvalidInput(f"delta must be above the filter's outside = {self._limit.outside:g}; got {delta:g}")
        mu, target = self._limit.mu, _beyond(delta, self._limit.outside)
        upper, step = gaussian_epsilon(target, mu), roundoff(900)
        while float(normal_divergence(upper, mu).upper) > target:
            upper, step = upper * (1.0 + step) + SMALLEST, 2.0 * step
        return Upper(upper)  # where the certified divergence is at most the target

    def delta(self, epsilon: float) -> Upper:
        """Return the central delta, in [0, 1], that all admitted rounds together keep at an epsilon >= 0 (nats).

        It follows from the limit alone, not from what was spent.

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
    """Return the largest limit of mu, up to rounding down, with which a filter keeps (epsilon, delta).

    Parameters
    ----------
    epsilon : float
        Central epsilon of all rounds together, nats, positive.
    delta : float
        Central delta of all rounds together, in (0, 1).
    outside : float
        Limit of the sum of the rounds' shares (see `PrivacyFilter`), from 0 to below delta.

    Returns
    -------
    Lower
        A Gaussian shift, at least 0.

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
    """Return the largest epsilon (nats) such that a Gaussian shift of mu dominates every (epsilon, 0)-private release.

    The worst such release is randomized response; its trade-off function has one kink, at equal errors
    1/(1 + e^epsilon). The Gaussian trade-off function, convex and symmetric, is below it exactly if it is below it at
    that kink: Phi(-mu/2) <= 1/(1 + e^epsilon).

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
