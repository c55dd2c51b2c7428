"""The result of an attack, and the confidence limits behind it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import Told
from shuffledp.numerics.floats import FloatArray, roundoff
from shuffledp.numerics.functions import betainccinv, betaincinv

# How far counted hits bind an epsilon from below: Clopper-Pearson limits, and the choice of an event.
#
# If P(E | x0) <= e^epsilon P(E | x1) + delta, then epsilon >= log((P(E | x0) - delta)/P(E | x1)). With p a lower limit
# of the first chance and q an upper limit of the second, each wrong with chance at most alpha/2,
#
#     epsilon >= log((p - delta)/q)                                                                             (A)
#
# is wrong with chance at most alpha (Jagielski, Ullman, Oprea 2020). E must have been fixed before the hits are drawn.

_MARGIN = 1e-9  # far above the relative error of the inverse incomplete beta integral (below 1e-12)


_MOST_CUTS = 160


def lower_limit(hits: ArrayLike, trials: ArrayLike, alpha: float) -> FloatArray:
    """Return the one-sided Clopper-Pearson lower limit of a probability, element-wise.

    Parameters
    ----------
    hits, trials : array_like of int
        0 <= hits <= trials.
    alpha : float
        Probability, in (0, 1), with which the limit may exceed the true probability.

    Returns
    -------
    ndarray
        In [0, 1); 0 where there are no hits. Rounded down by a relative 1e-9.
    """
    h, n = np.broadcast_arrays(np.asarray(hits, dtype=np.float64), np.asarray(trials, dtype=np.float64))
    limit = betaincinv(np.maximum(h, 1.0), np.maximum(n - h, 0.0) + 1.0, alpha)
    return np.where(h > 0, limit * (1.0 - _MARGIN), 0.0)


def upper_limit(hits: ArrayLike, trials: ArrayLike, alpha: float) -> FloatArray:
    """Return the one-sided Clopper-Pearson upper limit of a probability, element-wise.

    Parameters
    ----------
    hits, trials : array_like of int
        0 <= hits <= trials.
    alpha : float
        Probability, in (0, 1), with which the limit may fall below the true probability.

    Returns
    -------
    ndarray
        In (0, 1]; 1 where every trial is a hit. Rounded up by a relative 1e-9.
    """
    h, n = np.broadcast_arrays(np.asarray(hits, dtype=np.float64), np.asarray(trials, dtype=np.float64))
    limit = betainccinv(h + 1.0, np.maximum(n - h, 1.0), alpha)
    return np.where(h < n, np.minimum(limit * (1.0 + _MARGIN), 1.0), 1.0)


def epsilon_limit(hits: ArrayLike, trials: tuple[ArrayLike, ArrayLike], delta: float, alpha: float) -> FloatArray:
    """Return a lower confidence limit of epsilon from the counts of an event on two records: formula (A).

    Parameters
    ----------
    hits : array_like, shape (2, ...)
        Number of times the event happened on the record that makes it likelier, and on the other one.
    trials : (int, int), or a pair of arrays of shape (...)
        Number of independent trials of each.
    delta : float
        The claim's delta, in [0, 1).
    alpha : float
        Probability, in (0, 1), with which the limit may exceed the true epsilon.

    Returns
    -------
    ndarray, shape (...)
        Nats; -inf where the event is no evidence.

    Examples
    --------
    >>> float(epsilon_limit([900, 100], (1000, 1000), 0.0, 0.001).round(3))
    1.859
    """
    likely, other = np.asarray(hits)
    gain = lower_limit(likely, trials[0], alpha / 2.0) - delta
    with np.errstate(divide="ignore", invalid="ignore"):
        limit = np.log(np.maximum(gain, 0.0)) - np.log(upper_limit(other, trials[1], alpha / 2.0))
    return limit - roundoff(8192)  # the logarithms and their difference, values below 100


@dataclass(frozen=True)
class Cut:
    """The event that a score is at least, or at most, a threshold.

    Parameters
    ----------
    threshold : float
        The threshold, in units of the score.
    above : bool
        Whether the event is "at least".
    likelier : {0, 1}
        Which of the two records makes the event likelier.
    """

    threshold: float
    above: bool
    likelier: int

    def hits(self, scores: FloatArray) -> NDArray[np.bool_]:
        """Return whether each score lies in the event, a bool array of the scores' shape."""
        return scores >= self.threshold if self.above else scores <= self.threshold

    def limit(self, scores: tuple[FloatArray, FloatArray], delta: float, alpha: float) -> tuple[float, Hits]:
        """Return the lower limit of epsilon (nats) from the event's hits on both records, and the hits.

        Parameters
        ----------
        scores : (ndarray, ndarray)
            Scores under the first and under the second record, independent of each other.
        delta, alpha : float
            As for `epsilon_limit`.
        """
        counts = [int(np.count_nonzero(self.hits(part))) for part in scores]
        tally = Hits((counts[0], counts[1]), (scores[0].size, scores[1].size))
        order = (self.likelier, 1 - self.likelier)
        ordered = tally.trials[order[0]], tally.trials[order[1]]
        limit = epsilon_limit([tally.counts[order[0]], tally.counts[order[1]]], ordered, delta, alpha)
        return float(limit), tally

    @property
    def words(self) -> str:
        """The event in words, to follow the name of the score."""
        return f"is at {'least' if self.above else 'most'} {self.threshold:.6g}"


@dataclass(frozen=True)
class Hits:
    """The numbers of times that an event happened.

    Parameters
    ----------
    counts, trials : (int, int)
        Hits and trials under the first and under the second record.
    """

    counts: tuple[int, int]
    trials: tuple[int, int]


def best_cut(scores: tuple[FloatArray, FloatArray], delta: float, alpha: float) -> tuple[Cut, float]:
    """Return the threshold and direction that give the largest lower limit of epsilon on these data.

    The data that choose an event must not be used to judge it.

    Parameters
    ----------
    scores : (ndarray, ndarray)
        Scores under the first and under the second record.
    delta, alpha : float
        As for `epsilon_limit`.

    Returns
    -------
    Cut, float
        The event and its limit here, which is biased upwards by the choice.
    """
    ordered = np.sort(scores[0]), np.sort(scores[1])
    cuts = _thresholds(ordered)
    at_most = np.stack([np.searchsorted(part, cuts, side="right") for part in ordered])
    below = np.stack([np.searchsorted(part, cuts, side="left") for part in ordered])
    sizes = ordered[0].size, ordered[1].size
    at_least = np.asarray(sizes)[:, None] - below
    events = [(above, likelier) for above in (True, False) for likelier in (0, 1)]
    hits = np.stack([(at_least if above else at_most)[[likelier, 1 - likelier]] for above, likelier in events], axis=1)
    order = np.array([likelier for _, likelier in events])
    trials = np.asarray(sizes)[order][:, None], np.asarray(sizes)[1 - order][:, None]
    limits = epsilon_limit(hits, trials, delta, alpha)
    event, at = np.unravel_index(int(np.argmax(limits)), limits.shape)
    above, likelier = events[int(event)]
    return Cut(float(cuts[at]), above=above, likelier=likelier), float(limits[event, at])


def _thresholds(ordered: tuple[FloatArray, FloatArray]) -> FloatArray:
    """Return all values if they are few, else quantiles of both records' scores, denser towards the tails."""
    both = np.unique(np.concatenate(ordered))
    if both.size <= _MOST_CUTS:
        return both
    tail = np.geomspace(1e-4, 0.5, _MOST_CUTS // 4)
    levels = np.concatenate((tail, 1.0 - tail))
    return np.unique(np.concatenate([part[(levels * (part.size - 1)).astype(np.int64)] for part in ordered]))


# What an audit found.

SLACK = 1e-9
"""Relative tolerance on a claim, for its last digits on another machine that certifies it."""


@dataclass(frozen=True, repr=False)
class AuditResult(Told):
    """The result of an attack on a claimed epsilon.

    Parameters
    ----------
    subject : str
        Name of what was attacked.
    claimed : float
        The claimed epsilon, nats.
    delta : float
        The claim's delta.
    epsilon_lower_bound : float
        No (epsilon, delta) below it can be true, at the stated confidence; nats, at least 0.
    confidence : float
        In (0, 1). A true claim is called ``violated`` with probability at most 1 - confidence.
    records : (str, str)
        The pair of records that was chosen as the easiest to tell apart.
    worlds : (str, str)
        The two cases that the event distinguishes: the two records, or pairs of users with equal or different records.
    attack : str
        Words for what the attacker looked at.
    event : str
        The event, in words.
    likelier : {0, 1}
        Index of the case in which the event is likelier.
    hits : Hits
        Number of times it happened in each case, in the trials that judged it.
    private : bool
        Whether the attacker's own randomness was secure; False for a repeatable audit.
    """

    subject: str
    claimed: float
    delta: float
    epsilon_lower_bound: float
    confidence: float
    records: tuple[str, str]
    worlds: tuple[str, str]
    attack: str
    event: str
    likelier: int
    hits: Hits
    private: bool

    def _told(self) -> str:
        verdict = "BROKEN" if self.violated else "not broken by this attack"
        return (
            f"audit of {self.subject}: the claim epsilon <= {self.claimed!r} at delta = {self.delta!r} is {verdict}; "
            f"no epsilon below {self.epsilon_lower_bound!r} can be true, at confidence {self.confidence!r}"
        )

    @property
    def violated(self) -> bool:
        """Whether the lower bound exceeds the claim by more than `SLACK`."""
        return self.epsilon_lower_bound > self.claimed * (1.0 + SLACK)

    @property
    def false_alarm(self) -> float:
        """Largest probability that a true claim is called violated."""
        return float(f"{1.0 - self.confidence:.9g}")  # without the digits that the subtraction makes up
