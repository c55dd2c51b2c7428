"""The count theorem for a channel of two outcomes, which everybody uses: extension 1 of docs/theorems/count.md.

The chance of outcome 1 lies in [a, b] whatever the record, and both ends are attained; so a record vector says how many
others have chance b. Either outcome may be counted, with chances in [a, b] or in [1-b, 1-a].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from shuffledp.accounting.profiles.profile import PrivacyProfile, gaussian_epsilon
from shuffledp.accounting.theorems.count.cover import EXACT_UP_TO, BitCrowds, Groups
from shuffledp.errors import Brief
from shuffledp.numerics.floats import EPS, FloatArray, Interval, Upper, round_down, round_up
from shuffledp.numerics.functions import crossing
from shuffledp.randomizers.base import StatesChances

# Record vectors by themselves: what a crowd that holds them gives away, and which of some gives away most.

_SAMPLE = 33
_STEPS = (65, 9, 5, 3)
"""Number of shares of ones tried in each group, by the number of groups."""


@dataclass(frozen=True, eq=False, repr=False)
class RecordVectors(Brief):
    """A choice of record vectors: each says how many users of each group hold record 1.

    Parameters
    ----------
    groups : Groups
        All users but the victim, grouped by their flip chance s, rounded up.
    ones : ndarray, shape (vectors, groups)
        Users of each group who hold 1: whole numbers from 0 to the group's size.
    mirrored : bool
        Whether the vectors are closed under exchanging ones and zeros, so that both directions give the same largest
        divergence.
    """

    groups: Groups
    ones: FloatArray
    mirrored: bool = False

    @classmethod
    def likely_worst(cls, groups: Groups) -> RecordVectors:
        """Return record vectors among which the worst usually lies.

        For a single small group, every number of ones; else some shares of ones in each group.
        """
        n = groups.counts
        if n.size == 1 and n[0] <= EXACT_UP_TO:
            return cls(groups, np.arange(n[0] + 1.0)[:, None], mirrored=True)
        if n.size <= len(_STEPS):
            mesh = np.meshgrid(*([np.linspace(0.0, 1.0, _STEPS[n.size - 1])] * n.size), indexing="ij")
            shares = np.stack([axis.ravel() for axis in mesh], axis=1)
        else:
            shares = np.linspace(0.0, 1.0, 9)[:, None] * np.ones(n.size)
        return cls(groups, np.unique(np.rint(shares * n), axis=0))

    def log_psi(self, excess: float, *, zeros: bool = False) -> tuple[FloatArray, FloatArray]:
        """Enclose log psi(excess) of each vector, psi the best threshold test's value on the ones (or zeros)."""
        others = self.groups.counts - self.ones
        held = (others, self.ones) if zeros else (self.ones, others)
        enclosure = self.groups.crowds(*held, np.zeros(self.ones.shape[0])).best_thresholds(excess)
        return enclosure.lower, enclosure.upper

    def log_psi_pair(self, excess: float) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
        """Enclose log psi(excess) of each vector, once for counted ones and once for counted zeros."""
        others, size = self.groups.counts - self.ones, self.ones.shape[0]
        held = np.concatenate((self.ones, others)), np.concatenate((others, self.ones))
        enclosure = self.groups.crowds(*held, np.zeros(2 * size)).best_thresholds(excess)
        return (enclosure.lower[:size], enclosure.upper[:size]), (enclosure.lower[size:], enclosure.upper[size:])

    def worst(self, excess: float) -> RecordVectors:
        """Return the single record vector with the largest psi over both directions, compared in plain doubles."""
        most = self.log_psi(excess)[0]
        if not self.mirrored:
            most = np.maximum(most, self.log_psi(excess, zeros=True)[0])
        return self._only(int(most.argmax()))

    def sample(self) -> RecordVectors:
        """Return a few of the record vectors, evenly spread over the list."""
        few = np.unique(np.rint(np.linspace(0.0, self.ones.shape[0] - 1.0, _SAMPLE)).astype(np.int64))
        return RecordVectors(self.groups, self.ones[few])

    def _only(self, index: int) -> RecordVectors:
        return RecordVectors(self.groups, self.ones[index : index + 1])

    def climbed(self, excess: float) -> RecordVectors:
        """Return the worst record vector after a local search that changes the ones group by group.

        At one threshold psi rises, then falls in each count of ones.
        """
        best, n = self.worst(excess), self.groups.counts
        if self.mirrored or n.size > len(_STEPS):
            return best
        for width in (1.0, 1.0 / _SAMPLE, _SAMPLE**-2.0):
            for group in range(n.size):
                shift = np.linspace(-width, width, 2 * _SAMPLE + 1) * n[group]
                held = np.unique(np.clip(np.rint(best.ones[0, group] + shift), 0.0, n[group]))
                tried = np.repeat(best.ones, held.size, axis=0)
                tried[:, group] = held
                best = RecordVectors(self.groups, tried).worst(excess)
        return best


# A report of two outcomes, by the range of its chances: (C) of the count theorem for any shape.
#
# Counting one outcome, with chances between p and q > p, the victim's own divergence is A = q (1 - e^(eps - loss)),
# loss = log(q/p), and the best threshold on the others' count S has the value A psi(r), r = (e^eps - 1)/A. Chances
# are exact fractions, rounded outward once: a larger range of chances is a larger set of laws.


def exponentials(log: float) -> Interval:
    """Enclose e^log elementwise, capped at 1; rounding errors of `log` must already be in its ends.

    Parameters
    ----------
    log : float
        Possibly -inf.
    """
    value = math.exp(min(log, 0.0)) if log > -745.0 else 0.0
    return Interval(round_down(value, 8) if value > 0.0 else 0.0, min(round_up(value, 8), 1.0))


@dataclass(frozen=True)
class Outcome:
    """One of the two outcomes of a channel, given by its smallest and largest chance over records.

    Parameters
    ----------
    p, q : Fraction
        Smallest and largest chance over the records, exact, 0 < p <= q < 1.
    """

    p: Fraction
    q: Fraction

    @property
    def loss(self) -> Interval:
        """The privacy loss log(q/p), enclosed."""
        value = math.log1p(float((self.q - self.p) / self.p)) if self.q < 2 * self.p else math.log(self.q / self.p)
        return Interval(max(round_down(value, 8), 0.0), round_up(value, 8))

    def other(self) -> Outcome:
        """Return the other outcome, whose chances are 1 - q and 1 - p."""
        return Outcome(1 - self.q, 1 - self.p)

    def crowds(self, likely: FloatArray, unlikely: FloatArray, *, outwards: bool) -> BitCrowds:
        """Return the counts of users of chance q and of chance p as crowds of independent bits.

        The chances are rounded away from each other if `outwards`, else towards each other.

        Parameters
        ----------
        likely, unlikely : ndarray, shape (crowds,)
            Users of chance q and of chance p in each crowd: whole numbers, as floats.
        outwards : bool
            Whether the range of chances is made larger.
        """
        chances, flipped = list[float](), list[bool]()
        for chance, up in ((self.q, outwards), (self.p, not outwards)):
            over = 2 * chance > 1
            part = float(1 - chance if over else chance)
            chances.append(min((round_up if up != over else round_down)(part), 0.5))
            flipped.append(over)
        return BitCrowds(np.array(chances), np.array(flipped), np.stack((likely, unlikely), axis=1))

    def line(self, epsilon: float, *, above: bool) -> tuple[float, float] | None:
        """Return bounds on A and r, with which delta is A psi(r); None where A is 0.

        Parameters
        ----------
        epsilon : float
            Nats, from 0 to 700.
        above : bool
            Whether A is rounded up, and r down.
        """
        room = epsilon - (self.loss.upper if above else self.loss.lower)
        if room >= 0.0:
            return None
        scale = (round_up if above else round_down)(float(self.q) * -math.expm1(room), 8)
        return scale, (round_down if above else round_up)(math.expm1(epsilon) / scale, 8)

    def log_values(self, likely: FloatArray, unlikely: FloatArray, epsilon: float, *, above: bool) -> FloatArray:
        """Bound log(A psi(r)), the log of delta, of each crowd from one side, shape (crowds,); -inf where it is 0.

        Parameters
        ----------
        likely, unlikely : ndarray, shape (crowds,)
            As for `crowds`.
        epsilon : float
            Nats, from 0 to 700.
        above : bool
            True: upper bounds; False: lower bounds.
        """
        line = self.line(epsilon, above=above)
        if line is None or line[0] <= 0.0:
            return np.full(likely.shape, -math.inf)
        enclosure = self.crowds(likely, unlikely, outwards=above).best_thresholds(line[1])
        shift = math.log(line[0])
        doubt = 32.0 * EPS * (1.0 + abs(shift))
        return enclosure.upper + (shift + doubt) if above else enclosure.lower + (shift - doubt)


_BOXES, _TRIED, _SAMPLE_OF_CHANNEL = 2048, 129, 33
_TYPICAL = 1e-6


@dataclass(frozen=True, eq=False)
class ChannelCountProfile(PrivacyProfile):
    """Profile of the count of one outcome when all users share a channel with two outcomes.

    It is an upper bound, or the curve of attained record vectors; both fix how many of the other users hold the record
    that makes the outcome likelier.

    Parameters
    ----------
    outcome : Outcome
        The outcome that is counted.
    others : int
        Number of users other than the victim.
    first, last : ndarray, shape (vectors,)
        Least and largest number of other users who hold the record of the larger chance. The records of the users
        between are open.
    above : bool
        Whether this is an upper bound, or a witness: then first and last are the same.
    """

    outcome: Outcome
    others: int
    first: FloatArray
    last: FloatArray
    above: bool

    @property
    def vanishes_at(self) -> Upper:
        """The epsilon, in nats, from which delta is 0: the largest privacy loss of a single report."""
        return Upper(max(side.loss.upper for side in (self.outcome, self.outcome.other())))

    @property
    def coarseness(self) -> float:
        """Factor by which a table of this profile may be less accurate, as each knot costs a transform."""
        return 2.0

    @property
    def directed(self) -> bool:
        """Whether the two directions of the divergence differ: true of a witness, which is one pair of neighbours."""
        return not self.above

    def guess_epsilon(self, delta: float) -> float | None:
        """Guess the epsilon (nats) of a given delta by the Gaussian limit, for the record vector that hides least."""
        a, b = float(self.outcome.p), float(self.outcome.q)
        variance = self.others * min(a * (1.0 - a), b * (1.0 - b))
        return gaussian_epsilon(delta, (b - a) / math.sqrt(variance)) if variance > 0.0 and b > a else None

    def _logs(self, epsilon: float) -> tuple[FloatArray, FloatArray]:
        """Bounds on the logarithm of both directions, per vector."""
        at, n = min(epsilon, 700.0), float(self.others)
        ones = self.outcome.log_values(self.first, n - self.last, at, above=self.above)
        return ones, self.outcome.other().log_values(n - self.last, self.first, at, above=self.above)

    def delta_at(self, epsilon: float) -> Interval:
        """Bound delta at one epsilon (nats) from one side: the largest over the vectors and both directions."""
        delta = exponentials(max(float(logs.max()) for logs in self._logs(epsilon)))
        return Interval(0.0, delta.upper) if self.above else Interval(delta.lower, 1.0)

    def delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        """Bound delta at one epsilon (nats) in both directions; of a witness both belong to one record vector."""
        if self.above:
            return super().delta_pair(epsilon)
        first, second = (exponentials(float(logs.max())) for logs in self.strongest._logs(epsilon))
        return Interval(first.lower, 1.0), Interval(second.lower, 1.0)

    def _inverse(self, target: float) -> Interval:
        """Of a witness the epsilon of one vector, which is the worst of all at about that place."""
        if self.above:
            return super()._inverse(target)
        worst = self if self.first.size == 1 else self._worst(self._near(target))
        top = self.vanishes_at
        if worst.delta(0.0).lower <= target:
            return Interval(0.0, top)
        guess = self.guess_epsilon(target)
        lower, _ = crossing(lambda e: worst.delta(e).lower, target, 0.0, top, guess, self.tolerance)
        return Interval(lower, top)

    def _near(self, target: float) -> float:
        """About where a few of the vectors reach a delta."""
        some = np.unique(np.rint(np.linspace(0.0, self.first.size - 1.0, _SAMPLE_OF_CHANNEL)).astype(np.int64))
        few = ChannelCountProfile(self.outcome, self.others, self.first[some], self.last[some], self.above)
        epsilon = 0.0
        for _ in range(2):
            epsilon = few._worst(epsilon).epsilon(target).lower
        return epsilon

    @cached_property
    def strongest(self) -> ChannelCountProfile:
        """The profile of the single record vector with the largest delta, where that is about 1e-6."""
        return self if self.first.size == 1 else self._worst(self._near(_TYPICAL))

    def _worst(self, epsilon: float) -> ChannelCountProfile:
        ones, zeros = self._logs(epsilon)
        at = int(np.maximum(ones, zeros).argmax())
        return ChannelCountProfile(self.outcome, self.others, self.first[[at]], self.last[[at]], self.above)


def two_outcomes(law: object) -> Outcome | None:
    """Return the first outcome of a channel whose reports take two values; None for any other randomizer.

    Parameters
    ----------
    law : object
        The stated law of a randomizer.
    """
    if not isinstance(law, StatesChances):
        return None
    columns = law.exact_columns()
    if len(columns) != 2:
        return None
    chances = [Fraction(*chance) for chance in columns[0]]
    low, high = min(chances), max(chances)
    return Outcome(low, high) if 0 < low < high < 1 else None


def channel_count(outcome: Outcome, n: int, *, above: bool) -> ChannelCountProfile:
    """Return the count theorem's profile for n users of one two-outcome channel.

    From above it is a certified bound; from below it is the curve of attained record vectors.

    Parameters
    ----------
    outcome : Outcome
        The channel.
    n : int
        Number of users, the victim included, at least 1.
    above : bool
        Whether to return the upper bound.
    """
    others = n - 1
    if others <= EXACT_UP_TO:
        first = last = np.arange(others + 1.0)
    elif above:
        edges = np.unique(np.floor(np.linspace(0.0, others + 1.0, _BOXES + 1)))
        first, last = edges[:-1], edges[1:] - 1.0
    else:
        first = last = np.unique(np.rint(np.linspace(0.0, float(others), _TRIED)))
    return ChannelCountProfile(outcome, others, first, last, above)
