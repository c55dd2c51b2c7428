"""Attacks on calls of a randomizer: small calls, places in a call, and users whose reports share noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.audit.loading import Subject
from shuffledp.audit.result import Cut, Hits, best_cut
from shuffledp.audit.scores import Reports, Score, fit_scores, join
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness

# Attacks on users together: reports that share their noise, in one call or from call to call.
#
# Whoever knows another user's record and report can subtract the noise they share. If reports are independent of each
# other, a victim's report together with a bystander's is exactly as private as the victim's alone; so every event of
# such a pair, the bystander's record known, is a fair test of the claim.

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
        """Description, in words, of what the attack compares."""
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


# Attacks on a place in the call: its size, its first or last row, one hundredth of its rows.
#
# A randomizer may be sound on average and send a few rows in clear: the one row of a call for one user, or the rest
# that did not fill a block. Such rows drown among the others, so reports of one place are looked at by themselves.

_FEWEST = 4
"""Reports of each record that a place must have before it is looked at."""
_MOST_SUSPECT = 2


@dataclass(frozen=True, eq=False)
class Placed:
    """Reports, each with the call it came from.

    Parameters
    ----------
    data : Sequence
        The reports with their users' records, in the order in which they were drawn.
    sizes, rows : ndarray of int, shape (n,)
        Rows of the report's call, and the report's own row in it, counted from 0.
    """

    data: Sequence
    sizes: NDArray[np.int64]
    rows: NDArray[np.int64]

    @classmethod
    def of(cls, data: Sequence, size: int) -> Placed:
        """Return the reports of calls that all had `size` rows."""
        n = data.labels.size
        return cls(data, np.full(n, size), np.arange(n) % size)

    @classmethod
    def joined(cls, parts: Iterable[Placed]) -> Placed:
        """Concatenate the reports of several sequences of calls into one."""
        every = list(parts)
        data = Sequence(join([part.data.reports for part in every]), np.concatenate([p.data.labels for p in every]))
        return cls(data, np.concatenate([p.sizes for p in every]), np.concatenate([p.rows for p in every]))

    @property
    def hundredths(self) -> NDArray[np.int64]:
        """In which hundredth of its call each report stands, from 0 to 99."""
        return self.rows * 100 // self.sizes

    def split(
        self, inside: NDArray[np.bool_], scores: FloatArray, pair: tuple[int, int]
    ) -> tuple[FloatArray, FloatArray]:
        """Scores of the reports inside, of users with the first and with the second record of the pair."""
        first, second = (scores[inside & (self.data.labels == label)] for label in pair)
        return first, second


@dataclass(frozen=True, eq=False)
class Place:
    """Some rows of some calls.

    Parameters
    ----------
    words : str
        Which, to stand after "in"; empty for all.
    holds : callable
        Placed -> whether each report stands there, shape (n,).
    """

    words: str
    holds: Callable[[Placed], NDArray[np.bool_]]


@dataclass(frozen=True, eq=False)
class PlaceAttack:
    """An event of one report at one place, chosen before it is judged.

    Parameters
    ----------
    place : Place
        Where the report stands.
    pair : (int, int)
        Indices of the two records.
    score, cut
        The event.
    estimate : float
        Its limit on the data that chose it.
    """

    place: Place
    pair: tuple[int, int]
    score: Score
    cut: Cut
    estimate: float

    def limit(self, judge: Placed, delta: float, alpha: float) -> tuple[float, Hits]:
        """Bind epsilon from below on fresh reports; see `Cut.limit`."""
        scores = self.score.read(judge.data.reports)
        return self.cut.limit(judge.split(self.place.holds(judge), scores, self.pair), delta, alpha)

    @property
    def attack(self) -> str:
        """Description, in words, of what the attack looks at."""
        return self.score.attack + self._where

    @property
    def event(self) -> str:
        """The event, in words for a person."""
        return self.score.words(self.cut) + self._where

    @property
    def _where(self) -> str:
        return f", in {self.place.words}" if self.place.words else ""


def every_call(words: str = "") -> Place:
    """All rows; without words where that needs no mention."""
    return Place(words, lambda placed: np.ones(placed.rows.size, dtype=np.bool_))


def calls_of(size: int) -> Place:
    """All rows of the calls of one size."""
    return Place(f"a call with {size} row{'' if size == 1 else 's'}", lambda placed: placed.sizes == size)


def row_of(size: int, row: int) -> Place:
    """One row of the calls of one size, counted from 0."""
    words = f"row {row + 1} of a call with {size} rows"
    return Place(words, lambda placed: (placed.sizes == size) & (placed.rows == row))


def first_row(words: str) -> Place:
    """Return the first row of every call."""
    return Place(f"the first row of {words}", lambda placed: placed.rows == 0)


def last_row(words: str) -> Place:
    """Return the last row of every call."""
    return Place(f"the last row of {words}", lambda placed: placed.rows == placed.sizes - 1)


def hundredth(which: int) -> Place:
    """One hundredth of the rows of every call, counted from 0."""
    words = {0: "the first 1 % of a call's rows", 99: "the last 1 % of a call's rows"}
    usual = f"the rows from {which} % to {which + 1} % of a call"
    return Place(words.get(which, usual), lambda placed: placed.hundredths == which)


def suspect_hundredths(fit: Placed, scores: list[Score], pair: tuple[int, int]) -> list[Place]:
    """Return the first and the last hundredth, and for each score those that separate the two records best.

    Parameters
    ----------
    fit : Placed
        Reports that will neither choose nor judge.
    scores : list of Score
        Scores that tell the records of the pair apart.
    pair : (int, int)
        Indices of the two records.
    """
    found = {0, 99, *_suspects(fit.data, fit.hundredths, scores, pair)}
    return [hundredth(place) for place in sorted(found)]


def suspect_rows(fit: Placed, size: int, scores: list[Score], pair: tuple[int, int]) -> list[Place]:
    """For each score the rows that separate the two records best, in calls that all have `size` rows.

    Parameters
    ----------
    fit, scores, pair
        As for `suspect_hundredths`.
    size : int
        Rows of a call.
    """
    return [row_of(size, row) for row in sorted(_suspects(fit.data, fit.rows, scores, pair))]


def _suspects(data: Sequence, cells: NDArray[np.int64], scores: list[Score], pair: tuple[int, int]) -> set[int]:
    """For each score the cells in which its means under the two records differ most."""
    most = int(cells.max()) + 1
    labelled = [data.labels == label for label in pair]
    counts = [np.maximum(np.bincount(cells[mine], minlength=most), 1) for mine in labelled]
    found: set[int] = set()
    for score in scores:
        values = score.values(data.reports)
        sums = [np.bincount(cells[mine], values[mine], minlength=most) for mine in labelled]
        gaps = np.abs(sums[0] / counts[0] - sums[1] / counts[1])
        found.update(np.argsort(-gaps, kind="stable")[:_MOST_SUSPECT].tolist())
    return found


def choose_place(
    places: list[Place], scores: list[Score], pair: tuple[int, int], choose: Placed, delta: float, alpha: float
) -> PlaceAttack | None:
    """Find the place, the score and the event whose limit is largest; None if no place has enough reports.

    Parameters
    ----------
    places : list of Place
        Where to look.
    scores : list of Score
        Scores that tell the records of the pair apart, learned from other reports.
    pair : (int, int)
        Indices of the two records.
    choose : Placed
        Reports that will not judge.
    delta, alpha : float
        As for `epsilon_limit`.
    """
    best: PlaceAttack | None = None
    read = [score.values(choose.data.reports) for score in scores]
    for place in places:
        inside = place.holds(choose)
        for score, values in zip(scores, read, strict=True):
            parts = choose.split(inside, values, pair)
            if min(part.size for part in parts) < _FEWEST:
                continue
            cut, estimate = best_cut(parts, delta, alpha)
            if estimate > (-math.inf if best is None else best.estimate):
                best = PlaceAttack(place, pair, score, cut, estimate)
    return best


CALLS = {1: 640, 2: 192, 17: 256}
"""Rows of a small call, and how many such calls a function or family gets at 200,000 trials."""
COSTLY_CALLS = {1: 128, 2: 16, 17: 16}
"""The same for a program, which is started for every call."""
FEWEST = 1 / 4
"""Share of them that is made however few trials are asked for."""
_TRIALS = 200_000
_SHARES = (1 / 8, 1 / 4, 5 / 8)
"""Shares of the calls that teach scores, choose an event and judge it."""
_SMALL = "a call with few rows"


@dataclass(frozen=True, eq=False)
class SmallRuns:
    """Small calls of every size, one run for each purpose.

    Parameters
    ----------
    fit, choose, judge : dict of int to Placed
        Rows of a call -> the reports of all such calls.
    """

    fit: dict[int, Placed]
    choose: dict[int, Placed]
    judge: dict[int, Placed]


@dataclass(frozen=True, eq=False)
class SmallPair:
    """An attack on two users' reports in small calls.

    Parameters
    ----------
    pair : PairAttack
        The event.
    size : int
        Rows of the calls.
    """

    pair: PairAttack
    size: int

    def limit(self, judge: dict[int, Placed], delta: float, alpha: float) -> tuple[float, Hits]:
        """Bind epsilon from below on fresh reports; see `Cut.limit`."""
        return self.pair.limit(judge[self.size].data, delta, alpha)

    @property
    def cut(self) -> Cut:
        """The threshold that defines the event."""
        return self.pair.cut

    @property
    def estimate(self) -> float:
        """The limit of epsilon on the data that chose the event."""
        return self.pair.estimate

    @property
    def attack(self) -> str:
        """Description, in words, of what the attack compares."""
        return f"{self.pair.attack}, in calls with {self.size} row{'' if self.size == 1 else 's'}"

    @property
    def event(self) -> str:
        """The event, in words for a person."""
        return self.pair.event


def draw_small(attacked: Subject, pair: tuple[int, int], trials: int, random: Randomness, like: Reports) -> SmallRuns:
    """Call the randomizer with few rows at a time, each user holding one of two records, at random.

    Parameters
    ----------
    attacked : Subject
        The randomizer.
    pair : (int, int)
        Indices of the two records.
    trials : int
        Reports drawn in large calls; fewer than 200,000 mean fewer small calls.
    random : Randomness
        Where records and noise come from.
    like : Reports
        Reports of large calls, with which these will be compared.
    """
    runs: list[dict[int, Placed]] = [{}, {}, {}]
    for size, most in (COSTLY_CALLS if attacked.costly else CALLS).items():
        calls = most if attacked.costly else round(most * min(max(trials / _TRIALS, FEWEST), 1.0))
        for run, share in zip(runs, _SHARES, strict=True):
            run[size] = Placed.of(draw_calls(attacked, pair, size, max(round(calls * share), 1), random, like), size)
    return SmallRuns(*runs)


def choose_small_attack(
    runs: SmallRuns, scores: list[Score], pair: tuple[int, int], delta: float, alpha: float
) -> PlaceAttack | SmallPair | None:
    """Find the event of small calls whose limit is largest: of one report at its place, or of two users' reports.

    Parameters
    ----------
    runs : SmallRuns
        The reports.
    scores : list of Score
        Scores that tell the records of the pair apart, learned from large calls; those learned here are added.
    pair : (int, int)
        Indices of the two records.
    delta, alpha : float
        As for `epsilon_limit`; alpha is that of the judgement.
    """
    # With m reports of each record, all hit, the limit of a chance is alpha^(1/m): so few reports, judged at a power of
    # alpha, promise what more of them will hold.
    alpha = alpha ** (_SHARES[1] / _SHARES[2])
    fit, choose = Placed.joined(runs.fit.values()), Placed.joined(runs.choose.values())
    parts = [fit.data.reports.take(np.flatnonzero(fit.data.labels == label)) for label in pair]
    learned = fit_scores(parts[0], parts[1]) if min(part.n for part in parts) >= 2 else []
    best: PlaceAttack | SmallPair | None = choose_place(
        _places(runs.fit, scores, pair), [*scores, *learned], pair, choose, delta, alpha
    )
    for size, placed in runs.choose.items():
        if min(placed.data.labels.size, runs.fit[size].data.labels.size) < 8:
            continue
        paired = choose_pair_attack(runs.fit[size].data, placed.data, size, delta, alpha)
        if best is None or paired.estimate > best.estimate:
            best = SmallPair(paired, size)
    return best


def _places(fit: dict[int, Placed], scores: list[Score], pair: tuple[int, int]) -> list[Place]:
    """Where to look: each size, first and last rows, the most suspect rows of the largest calls, and all of it."""
    size = max(fit)
    rows = suspect_rows(fit[size], size, scores, pair)
    return [every_call(_SMALL), first_row(_SMALL), last_row(_SMALL), *map(calls_of, CALLS), *rows]
