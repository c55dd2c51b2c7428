"""Attacks on users together: reports that share their noise, in one call or from call to call.

Whoever knows another user's record and report can subtract the noise they share. If reports are independent of each
other, a victim's report together with a bystander's is exactly as private as the victim's alone; so every event of such
a pair, the bystander's record known, is a fair test of the claim.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.audit.loading import Subject
from shuffledp.audit.reports import Reports, join
from shuffledp.audit.result import Cut, Hits, best_cut
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness

Labels = NDArray[np.int64]
ALIKE = ("two users of the same record", "two users of different records")
"""What an event of two users' reports tells apart."""
_CELLS = 8


@dataclass(frozen=True, eq=False)
class Sequence:
    """Reports in the order in which they were drawn, over several calls of the same size.

    Parameters
    ----------
    reports : Reports
        All of them.
    labels : ndarray of int, shape (n,)
        Which record each user held.
    """

    reports: Reports
    labels: Labels

    def pairs(self, lag: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Victims and bystanders `lag` places further on; no user is in two pairs."""
        victims = np.arange(self.labels.size - lag)
        victims = victims[victims % (2 * lag) < lag]
        return victims, victims + lag


def draw_calls(
    attacked: Subject, held: tuple[int, ...], size: int, calls: int, random: Randomness, like: Reports | None = None
) -> Sequence:
    """Call the randomizer `calls` times with `size` users, each holding a random one of these records.

    Parameters
    ----------
    attacked : Subject
        The randomizer.
    held : tuple of int
        Indices of the records; all records are known to the attacker.
    size, calls : int
        Users of a call, and number of calls.
    random : Randomness
        Where records and noise come from.
    like : Reports, optional
        Reports of earlier calls, with which these will be compared; by default those of the first call here.
    """
    labels = np.asarray(held)[random.integers(len(held), size * calls)]
    parts: list[Reports] = []
    for start in range(0, size * calls, size):
        parts.append(attacked.draw(labels[start : start + size], random, like))
        like = parts[0] if like is None else like
    return Sequence(join(parts), labels)


PairValues = Callable[[Sequence, int], FloatArray]


@dataclass(frozen=True, eq=False)
class PairAttack:
    """An event of two users' reports, chosen before it is judged.

    Parameters
    ----------
    lag : int
        How many places apart the two users are.
    batch : int
        Users in a call.
    values : callable
        (Sequence, lag) -> the score of each pair.
    name : str
        The score, in words.
    cut : Cut
        The event.
    estimate : float
        The limit of epsilon on the data that chose it.
    """

    lag: int
    batch: int
    values: PairValues
    name: str
    cut: Cut
    estimate: float

    def limit(self, judge: Sequence, delta: float, alpha: float) -> tuple[float, Hits]:
        """Bind epsilon from below on fresh reports; see `Cut.limit`."""
        return self.cut.limit(split(judge, self.lag, self.values), delta, alpha)

    @property
    def attack(self) -> str:
        """What is compared, in words."""
        calls, rest = divmod(self.lag, self.batch)
        if calls and not rest:
            return f"the reports of one place in two calls ({calls} apart)"
        return f"the reports of two users {self.lag} place{'s' if self.lag > 1 else ''} apart"

    @property
    def event(self) -> str:
        """The event, in words for a person."""
        return f"{self.name} {self.cut.words}"


def split(data: Sequence, lag: int, values: PairValues) -> tuple[FloatArray, FloatArray]:
    """Scores of the pairs whose records are alike, and of those whose records differ."""
    victims, others = data.pairs(lag)
    scores = values(data, lag)
    alike = data.labels[victims] == data.labels[others]
    return scores[alike], scores[~alike]


def choose_pair_attack(fit: Sequence, choose: Sequence, batch: int, delta: float, alpha: float) -> PairAttack:
    """Find two places whose reports tell most of each other, and the event that shows it.

    Parameters
    ----------
    fit, choose : Sequence
        Two independent runs: the first suggests lags and learns scores, the second chooses among them.
    batch : int
        Users in a call.
    delta, alpha : float
        As for `epsilon_limit`.
    """
    found: list[PairAttack] = []
    for lag in _lags(fit, batch):
        scores = {"the difference between the two reports": _distance, "the joint likelihood ratio": _joint(fit, lag)}
        for name, values in scores.items():
            cut, estimate = best_cut(split(choose, lag, values), delta, alpha)
            found.append(PairAttack(lag, batch, values, name, cut, estimate))
    return max(found, key=lambda attack: attack.estimate)


def _lags(data: Sequence, batch: int) -> list[int]:
    """Neighbours, the same place in the next call, and the lag of largest correlation among users of one record."""
    n = data.labels.size
    strength = np.zeros(n // 2)
    numbers = _ranks(data.reports)
    for label in np.unique(data.labels):
        mine = data.labels == label
        centred = np.where(mine, numbers - numbers[mine].mean(), 0.0)
        spectrum = np.fft.rfft(centred, 2 * n)
        strength += np.fft.irfft(np.abs(spectrum) ** 2, 2 * n)[: n // 2]
    strength[0] = 0.0
    candidates = {1, batch, int(np.argmax(np.abs(strength)))}
    return sorted(lag for lag in candidates if 1 <= lag <= n // 2)


def _ranks(reports: Reports) -> FloatArray:
    """One number per report, the same for equal reports: its rank, or a hash where it is no number."""
    source = reports.columns[:, 0] if reports.columns.shape[1] == 1 else reports.keys
    return np.unique(source, return_inverse=True)[1].astype(np.float64)


def _distance(data: Sequence, lag: int) -> FloatArray:
    """Distance of two numbers; number of columns in which two rows differ; 0 or 1 for words."""
    victims, others = data.pairs(lag)
    columns = data.reports.columns
    if columns.shape[1] == 0:
        return (data.reports.keys[victims] != data.reports.keys[others]).astype(np.float64)
    if columns.shape[1] == 1:
        return np.abs(columns[victims, 0].astype(np.float64) - columns[others, 0].astype(np.float64))
    return np.count_nonzero(columns[victims] != columns[others], axis=1).astype(np.float64)


def _joint(fit: Sequence, lag: int) -> PairValues:
    """Likelihood ratio of (cell of one report, cell of the other, the other's record), few cells each, from counts."""
    source = _ranks_source(fit.reports)
    distinct = np.unique(source)
    if distinct.size > _CELLS:
        distinct = np.unique(np.quantile(source, np.linspace(0.0, 1.0, _CELLS + 1)[:-1]))
    width, labels = distinct.size + 1, int(fit.labels.max()) + 1

    def cells(data: Sequence, apart: int) -> NDArray[np.int64]:
        victims, others = data.pairs(apart)
        own = np.searchsorted(distinct, _ranks_source(data.reports), side="right")
        return (own[victims] * width + own[others]) * labels + data.labels[others]

    victims, others = fit.pairs(lag)
    alike = fit.labels[victims] == fit.labels[others]
    place = cells(fit, lag)
    counts = [np.bincount(place[which], minlength=width * width * labels) + 0.5 for which in (alike, ~alike)]
    table = np.log(counts[0] / counts[0].sum()) - np.log(counts[1] / counts[1].sum())
    return lambda data, apart: table[cells(data, apart)]


def _ranks_source(reports: Reports) -> FloatArray:
    """Numbers as they are, other reports by their hash: the same scale in every run."""
    if reports.columns.shape[1] == 1:
        return reports.columns[:, 0].astype(np.float64)
    return reports.keys.astype(np.float64)
