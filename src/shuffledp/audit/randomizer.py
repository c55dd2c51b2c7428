"""Attack on a local randomizer: the best event found on one half of the reports, judged on the other half.

Attacks on its calls look at small calls, places in a call, and users whose reports share noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from collections.abc import Sequence as Records
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.audit.loading import Subject, Subjectable, subject
from shuffledp.audit.result import AuditResult, Cut, Hits, best_cut
from shuffledp.audit.scores import Reading, Reports, Score, fit_scores, join, reading_score, show
from shuffledp.errors import InvalidInput, shown, whole_number
from shuffledp.numerics.floats import JUST_BELOW, FloatArray
from shuffledp.numerics.randomness import Randomness, secure_random

# Attacks on users together: reports that share their noise, in one call or from call to call.
#
# Whoever knows another user's record and report can subtract the noise they share. If reports are independent of each
# other, a victim's report together with a bystander's is exactly as private as the victim's alone; so every event of
# such a pair, the bystander's record known, is a fair test of the claim.

Labels = NDArray[np.int64]
ALIKE = ("two users of the same record", "two users of different records")
"""The two cases that an event of two users' reports distinguishes."""
_CELLS = 8


@dataclass(frozen=True, eq=False)
class Sequence:
    """Reports in the order in which they were drawn, over several calls of the same size.

    Parameters
    ----------
    reports : Reports
        All reports.
    labels : ndarray of int, shape (n,)
        Index of the record that each user held.
    """

    reports: Reports
    labels: Labels

    def pairs(self, lag: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the positions of victims, and of other users `lag` positions later; no user is in two pairs."""
        victims = np.arange(self.labels.size - lag)
        victims = victims[victims % (2 * lag) < lag]
        return victims, victims + lag


def draw_calls(
    attacked: Subject, held: tuple[int, ...], size: int, calls: int, random: Randomness, like: Reports | None = None
) -> Sequence:
    """Return the reports of `calls` calls with `size` users each, every user holding a random one of the records.

    Parameters
    ----------
    attacked : Subject
        The randomizer.
    held : tuple of int
        Indices of the records; all records are known to the attacker.
    size, calls : int
        Number of users in a call, and number of calls.
    random : Randomness
        Source of records and noise.
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
    """An event of two users' reports, chosen on other reports than those that judge it.

    Parameters
    ----------
    lag : int
        Distance of the two users' positions.
    batch : int
        Number of users in a call.
    values : callable
        (Sequence, lag) -> the score of each pair.
    name : str
        The score, in words.
    cut : Cut
        The event.
    estimate : float
        The lower limit of epsilon on the data that chose it.
    """

    lag: int
    batch: int
    values: PairValues
    name: str
    cut: Cut
    estimate: float

    def limit(self, judge: Sequence, delta: float, alpha: float) -> tuple[float, Hits]:
        """Return a lower limit of epsilon, and the hits, on fresh reports; see `Cut.limit`."""
        return self.cut.limit(split(judge, self.lag, self.values), delta, alpha)

    @property
    def attack(self) -> str:
        """Words for what the attack compares."""
        calls, rest = divmod(self.lag, self.batch)
        if calls and not rest:
            return f"the reports of one place in two calls ({calls} apart)"
        return f"the reports of two users {self.lag} place{'s' if self.lag > 1 else ''} apart"

    @property
    def event(self) -> str:
        """The event in words, for people to read."""
        return f"{self.name} {self.cut.words}"


def split(data: Sequence, lag: int, values: PairValues) -> tuple[FloatArray, FloatArray]:
    """Return the scores of the pairs of users with equal records, and of those with different records.

    Parameters
    ----------
    data : Sequence
        Reports and the record of each.
    lag : int
        Distance of the two users' positions.
    values : callable
        (Sequence, lag) -> the score of each pair.
    """
    victims, others = data.pairs(lag)
    scores = values(data, lag)
    alike = data.labels[victims] == data.labels[others]
    return scores[alike], scores[~alike]


def choose_pair_attack(fit: Sequence, choose: Sequence, batch: int, delta: float, alpha: float) -> PairAttack:
    """Return the pair of positions whose reports depend most on each other, with an event that shows it.

    Parameters
    ----------
    fit, choose : Sequence
        Two independent runs: the first suggests lags and learns scores, the second chooses among them.
    batch : int
        Number of users in a call.
    delta, alpha : float
        As for `epsilon_limit`.
    """
    attacks: list[PairAttack] = []
    for lag in _lags(fit, batch):
        scores = {"the difference between the two reports": _distance, "the joint likelihood ratio": _joint(fit, lag)}
        for name, values in scores.items():
            cut, estimate = best_cut(split(choose, lag, values), delta, alpha)
            attacks.append(PairAttack(lag, batch, values, name, cut, estimate))
    return max(attacks, key=lambda attack: attack.estimate)


def _lags(data: Sequence, batch: int) -> list[int]:
    """Return lags to try: neighbours, the same position in the next call, and the lag of largest correlation."""
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
    """Return one number per report, equal for equal reports: its rank, or a hash where it is no number."""
    source = reports.columns[:, 0] if reports.columns.shape[1] == 1 else reports.keys
    return np.unique(source, return_inverse=True)[1].astype(np.float64)


def _distance(data: Sequence, lag: int) -> FloatArray:
    """Return the distance of each pair: of two numbers, of two rows (differing columns), of two words (0 or 1)."""
    victims, others = data.pairs(lag)
    columns = data.reports.columns
    if columns.shape[1] == 0:
        return (data.reports.keys[victims] != data.reports.keys[others]).astype(np.float64)
    if columns.shape[1] == 1:
        return np.abs(columns[victims, 0].astype(np.float64) - columns[others, 0].astype(np.float64))
    return np.count_nonzero(columns[victims] != columns[others], axis=1).astype(np.float64)


def _joint(fit: Sequence, lag: int) -> PairValues:
    """Return a score: the likelihood ratio, from counts, of cells of both reports and the other user's record."""
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
    """Return numbers as they are and other reports as hashes, on the same scale in every run."""
    if reports.columns.shape[1] == 1:
        return reports.columns[:, 0].astype(np.float64)
    return reports.keys.astype(np.float64)


# Attacks on a place in the call: its size, its first or last row, one hundredth of its rows.
#
# A randomizer may be sound on average and send a few rows in clear: the one row of a call for one user, or the rest
# that did not fill a block. Such rows drown among the others, so reports of one place are looked at by themselves.

_FEWEST = 4
"""Smallest number of reports of each record with which a position is considered."""
_MOST_SUSPECT = 2


@dataclass(frozen=True, eq=False)
class Placed:
    """Reports with their positions in the calls from which they came.

    Parameters
    ----------
    data : Sequence
        The reports with their users' records, in the order in which they were drawn.
    sizes, rows : ndarray of int, shape (n,)
        Number of rows of the report's call, and the report's own row in it, counted from 0.
    """

    data: Sequence
    sizes: NDArray[np.int64]
    rows: NDArray[np.int64]

    @classmethod
    def of(cls, data: Sequence, size: int) -> Placed:
        """Return the reports of ``data`` with their positions, every call having had ``size`` rows."""
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
        """Return each report's position within its call, in hundredths of the call's length, from 0 to 99."""
        return self.rows * 100 // self.sizes

    def split(
        self, inside: NDArray[np.bool_], scores: FloatArray, pair: tuple[int, int]
    ) -> tuple[FloatArray, FloatArray]:
        """Return the scores of users with the first record of the pair, and of users with the second.

        Parameters
        ----------
        inside : ndarray of bool, shape (n,)
            Which reports are selected.
        scores : ndarray, shape (n,)
            The score of each report.
        pair : tuple of int
            Indices of the two records.
        """
        first, second = (scores[inside & (self.data.labels == label)] for label in pair)
        return first, second


@dataclass(frozen=True, eq=False)
class Place:
    """A set of positions in calls.

    Parameters
    ----------
    words : str
        Words for the positions, after "in"; empty for all positions.
    holds : callable
        Function of a `Placed` that returns whether each report is at such a position, shape (n,).
    """

    words: str
    holds: Callable[[Placed], NDArray[np.bool_]]


@dataclass(frozen=True, eq=False)
class PlaceAttack:
    """An event of one report at some positions, chosen on other reports than those that judge it.

    Parameters
    ----------
    place : Place
        Positions of the report.
    pair : (int, int)
        Indices of the two records.
    score, cut
        The event.
    estimate : float
        Its lower limit of epsilon on the data that chose it.
    """

    place: Place
    pair: tuple[int, int]
    score: Score
    cut: Cut
    estimate: float

    def limit(self, judge: Placed, delta: float, alpha: float) -> tuple[float, Hits]:
        """Return a lower limit of epsilon, and the hits, on fresh reports; see `Cut.limit`."""
        scores = self.score.read(judge.data.reports)
        return self.cut.limit(judge.split(self.place.holds(judge), scores, self.pair), delta, alpha)

    @property
    def attack(self) -> str:
        """Words for what the attack looks at."""
        return self.score.attack + self._where

    @property
    def event(self) -> str:
        """The event in words, for people to read."""
        return self.score.words(self.cut) + self._where

    @property
    def _where(self) -> str:
        return f", in {self.place.words}" if self.place.words else ""


def every_call(words: str = "") -> Place:
    """Return the set of all positions in all calls; ``words`` name it in the result, after "in"."""
    return Place(words, lambda placed: np.ones(placed.rows.size, dtype=np.bool_))


def calls_of(size: int) -> Place:
    """Return the set of all positions in the calls of ``size`` rows."""
    return Place(f"a call with {size} row{'' if size == 1 else 's'}", lambda placed: placed.sizes == size)


def row_of(size: int, row: int) -> Place:
    """Return the set of one position, ``row`` counted from 0, in the calls of ``size`` rows."""
    words = f"row {row + 1} of a call with {size} rows"
    return Place(words, lambda placed: (placed.sizes == size) & (placed.rows == row))


def first_row(words: str) -> Place:
    """Return the set of the first position of every call; ``words`` name the calls in the result."""
    return Place(f"the first row of {words}", lambda placed: placed.rows == 0)


def last_row(words: str) -> Place:
    """Return the set of the last position of every call; ``words`` name the calls in the result."""
    return Place(f"the last row of {words}", lambda placed: placed.rows == placed.sizes - 1)


def hundredth(which: int) -> Place:
    """Return the set of the positions in one hundredth of the rows of every call, number ``which`` from 0 to 99."""
    words = {0: "the first 1 % of a call's rows", 99: "the last 1 % of a call's rows"}
    usual = f"the rows from {which} % to {which + 1} % of a call"
    return Place(words.get(which, usual), lambda placed: placed.hundredths == which)


def suspect_hundredths(fit: Placed, scores: list[Score], pair: tuple[int, int]) -> list[Place]:
    """Return the first and last hundredth of a call, and for each score those that separate the two records best.

    Parameters
    ----------
    fit : Placed
        Reports that are used neither to choose nor to judge.
    scores : list of Score
        Scores that distinguish the records of the pair.
    pair : (int, int)
        Indices of the two records.
    """
    suspects = {0, 99, *_suspects(fit.data, fit.hundredths, scores, pair)}
    return [hundredth(place) for place in sorted(suspects)]


def suspect_rows(fit: Placed, size: int, scores: list[Score], pair: tuple[int, int]) -> list[Place]:
    """Return, for each score, the rows that separate the two records best in calls of `size` rows each.

    Parameters
    ----------
    fit, scores, pair
        As for `suspect_hundredths`.
    size : int
        Rows of a call.
    """
    return [row_of(size, row) for row in sorted(_suspects(fit.data, fit.rows, scores, pair))]


def _suspects(data: Sequence, cells: NDArray[np.int64], scores: list[Score], pair: tuple[int, int]) -> set[int]:
    """Return, for each score, the cells in which its means under the two records differ most."""
    most = int(cells.max()) + 1
    labelled = [data.labels == label for label in pair]
    counts = [np.maximum(np.bincount(cells[mine], minlength=most), 1) for mine in labelled]
    suspects: set[int] = set()
    for score in scores:
        values = score.values(data.reports)
        sums = [np.bincount(cells[mine], values[mine], minlength=most) for mine in labelled]
        gaps = np.abs(sums[0] / counts[0] - sums[1] / counts[1])
        suspects.update(np.argsort(-gaps, kind="stable")[:_MOST_SUSPECT].tolist())
    return suspects


def choose_place(
    places: list[Place], scores: list[Score], pair: tuple[int, int], choose: Placed, delta: float, alpha: float
) -> PlaceAttack | None:
    """Return positions, score and event with the largest limit; None if no positions have enough reports.

    Parameters
    ----------
    places : list of Place
        Positions to try.
    scores : list of Score
        Scores that distinguish the records of the pair, learned from other reports.
    pair : (int, int)
        Indices of the two records.
    choose : Placed
        Reports that are not used to judge.
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
"""Number of small calls at 200,000 trials, by their number of rows, for a function or family."""
COSTLY_CALLS = {1: 128, 2: 16, 17: 16}
"""The same numbers for a program, which is started for every call."""
FEWEST = 1 / 4
"""Share of these calls that is made even if very few trials are requested."""
_TRIALS = 200_000
_SHARES = (1 / 8, 1 / 4, 5 / 8)
"""Shares of the calls that train scores, choose an event and judge it."""
_SMALL = "a call with few rows"


@dataclass(frozen=True, eq=False)
class SmallRuns:
    """The reports of small calls of every size, separately for each purpose.

    Parameters
    ----------
    fit, choose, judge : dict of int to Placed
        The reports of all calls with a given number of rows, by that number.
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
        Number of rows of the calls.
    """

    pair: PairAttack
    size: int

    def limit(self, judge: dict[int, Placed], delta: float, alpha: float) -> tuple[float, Hits]:
        """Return a lower limit of epsilon, and the hits, on fresh reports; see `Cut.limit`."""
        return self.pair.limit(judge[self.size].data, delta, alpha)

    @property
    def cut(self) -> Cut:
        """The threshold that defines the event."""
        return self.pair.cut

    @property
    def estimate(self) -> float:
        """The lower limit of epsilon on the data that chose the event."""
        return self.pair.estimate

    @property
    def attack(self) -> str:
        """Words for what the attack compares."""
        return f"{self.pair.attack}, in calls with {self.size} row{'' if self.size == 1 else 's'}"

    @property
    def event(self) -> str:
        """The event in words, for people to read."""
        return self.pair.event


def draw_small(attacked: Subject, pair: tuple[int, int], trials: int, random: Randomness, like: Reports) -> SmallRuns:
    """Return reports of calls with few rows each, every user holding a random one of two records.

    Parameters
    ----------
    attacked : Subject
        The randomizer.
    pair : (int, int)
        Indices of the two records.
    trials : int
        Number of reports drawn in large calls; fewer than 200,000 mean fewer small calls.
    random : Randomness
        Source of records and noise.
    like : Reports
        Reports of large calls, to whose type these are converted.
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
    """Return the event of small calls with the largest limit: of one report at its position, or of two users' reports.

    Parameters
    ----------
    runs : SmallRuns
        The reports.
    scores : list of Score
        Scores that distinguish the records of the pair, learned from large calls; those learned here are added.
    pair : (int, int)
        Indices of the two records.
    delta, alpha : float
        As for `epsilon_limit`; alpha is that of the final judgement.
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
    """Return the positions to try: each size, first and last rows, suspect rows of the largest calls, and all rows."""
    size = max(fit)
    rows = suspect_rows(fit[size], size, scores, pair)
    return [every_call(_SMALL), first_row(_SMALL), last_row(_SMALL), *map(calls_of, CALLS), *rows]


TRIALS = 200_000
FEWEST_TRIALS = 1000
MOST_TRIALS = 100_000_000
MOST_RECORDS = 16
_CALLS = 16
_FIRST = 1 / 2
"""Share of the error probability for the event of one report at any position."""
_OTHERS = 1 / 6
"""Share for each other event: two users' reports, one report at its position in a large call, small calls."""


def audit_randomizer(
    randomizer: Subjectable,
    epsilon0: float,
    delta0: float = 0.0,
    *,
    records: Records[Any] | None = None,
    trials: int = TRIALS,
    confidence: float = 0.999,
    score: Reading | None = None,
    random: Randomness | None = None,
) -> AuditResult:
    """Attack a local randomizer that claims to be (epsilon0, delta0)-LDP, for one user and for users together.

    The claim tested is: reports are independent of each other given the records, also from call to call, and each is
    (epsilon0, delta0)-LDP, however many rows a call has. The randomizer is called 16 times with `trials` / 16 users,
    and many times with 1, 2 and 17, whose records are drawn at random. The reports are divided into three parts. The
    first trains scores, which tell two records apart. The second chooses the events to test: a pair of records, a score
    and a threshold for which the lower limit of epsilon is largest. The third tests just four events: of a single
    report; of the reports of two users, who may share their noise; of a report in one hundredth of the rows of a large
    call; and of a report, or two, in a small call. Each is a Clopper-Pearson test. The first has error probability (1 -
    confidence)/2, the three others (1 - confidence)/6 each.

    Parameters
    ----------
    randomizer : family of this library, callable, or str
        A family with `randomize`; a function f(records) or f(records, random=...) of an array of n records that returns
        n reports (numbers, rows of numbers, bit-packed or not, or words), where random is a `Randomness`;
        ``"FILE.py:FUNCTION"``; or ``"command:PROGRAM ARGUMENTS"``, which reads one record per line and prints one
        report per line (run without a shell).
    epsilon0 : float
        The claimed epsilon, nats, at least 0; a family is run at this budget.
    delta0 : float
        The claim's delta, in [0, 1); default 0.
    records : sequence, optional
        From 2 to 16 records, among which the worst pair is searched. By default a few of the family's, else 0 and 1.
    trials : int
        Number of reports drawn in large calls, at least 1,000; default 200,000. Fewer also mean fewer small calls.
    confidence : float
        In (0, 1): a randomizer that keeps the claim is accused with probability at most 1 - confidence; default 0.999.
    score : callable, optional
        An attack of your own: a function of (reports, record) that returns one number per report, larger for stronger
        evidence.
    random : Randomness, optional
        Source of randomness; secure by default; `simulation_random(seed)` makes an audit of a function that draws from
        it repeatable.

    Returns
    -------
    AuditResult

    Raises
    ------
    InvalidInput
        If an argument is out of range, or the randomizer fails or does not return one report per record.

    Notes
    -----
    An audit can only accuse. A bug that none of its scores sees, that strikes rarely, or whose records were not tried,
    passes.

    Examples
    --------
    >>> from shuffledp.numerics.randomness import simulation_random
    >>> result = audit_randomizer(lambda records: records, 1.0, random=simulation_random(1))
    >>> result.violated, round(result.epsilon_lower_bound, 1)
    (True, 8.7)
    """
    claimed = check_claim(epsilon0, delta0)
    alpha = check_confidence(confidence)
    trials = check_trials(trials, FEWEST_TRIALS)
    source = secure_random() if random is None else random
    attacked = subject(randomizer, claimed, delta0, records, score)
    if len(attacked.records) > MOST_RECORDS:
        raise InvalidInput(f"an audit tries at most {MOST_RECORDS} records; got {len(attacked.records)}")
    strongest = _strongest(attacked, trials, delta0, alpha, source)
    return AuditResult(
        subject=attacked.name,
        claimed=claimed,
        delta=delta0,
        epsilon_lower_bound=max(strongest.limit, 0.0),
        confidence=confidence,
        records=strongest.records,
        worlds=strongest.worlds,
        attack=strongest.attack.attack,
        event=strongest.attack.event,
        likelier=strongest.attack.cut.likelier,
        hits=strongest.hits,
        private=source.private,
    )


@dataclass(frozen=True, eq=False)
class _Judged:
    """An event with its hits and the lower limit of epsilon on fresh reports."""

    limit: float
    hits: Hits
    attack: PlaceAttack | PairAttack | SmallPair
    records: tuple[str, str]

    @property
    def worlds(self) -> tuple[str, str]:
        """Words for the two cases that the event distinguishes."""
        if isinstance(self.attack, PlaceAttack):
            return f"record {self.records[0]}", f"record {self.records[1]}"
        return ALIKE


def _strongest(attacked: Subject, trials: int, delta: float, alpha: float, source: Randomness) -> _Judged:
    """Choose four events, judge each of them on fresh reports, and return the one with the largest limit."""
    batch, everyone = trials // _CALLS, tuple(range(len(attacked.records)))
    first, other = alpha * _FIRST, alpha * _OTHERS
    fit = draw_calls(attacked, everyone, batch, _CALLS // 4, source)
    like = fit.reports
    choose = draw_calls(attacked, everyone, batch, _CALLS // 4, source, like)
    single, scores = _choose_single(attacked, fit, choose, delta, first)
    pair = single.pair
    paired = choose_pair_attack(fit, choose, batch, delta, other)
    best = list(dict.fromkeys([single.score, scores[0]]))  # rows in clear show in any score; the best, and the simplest
    suspects = suspect_hundredths(Placed.of(fit, batch), best, pair)
    placed = choose_place(suspects, best, pair, Placed.of(choose, batch), delta, other)
    judge = draw_calls(attacked, pair, batch, _CALLS // 2, source, like)
    large = Placed.of(judge, batch)
    small = draw_small(attacked, pair, trials, source, like)
    few = choose_small_attack(small, scores, pair, delta, other)
    limits: list[tuple[tuple[float, Hits], PlaceAttack | PairAttack | SmallPair]]
    limits = [(single.limit(large, delta, first), single), (paired.limit(judge, delta, other), paired)]
    if placed is not None:
        limits.append((placed.limit(large, delta, other), placed))
    if isinstance(few, PlaceAttack):
        limits.append((few.limit(Placed.joined(small.judge.values()), delta, other), few))
    elif few is not None:
        limits.append((few.limit(small.judge, delta, other), few))
    (limit, hits), attack = max(limits, key=lambda entry: entry[0][0])
    return _Judged(limit, hits, attack, (show(attacked.records[pair[0]]), show(attacked.records[pair[1]])))


def _choose_single(
    attacked: Subject, fit: Sequence, choose: Sequence, delta: float, alpha: float
) -> tuple[PlaceAttack, list[Score]]:
    """Return the pair of records, the event of one report at any position, and all scores learned for that pair."""
    nothing = reading_score(lambda raw, _: np.zeros(len(raw)), (0, 0))
    best = PlaceAttack(every_call(), (0, 1), nothing, Cut(0.0, True, 0), -math.inf), [nothing]
    parts = {
        i: [run.reports.take(np.flatnonzero(run.labels == i)) for run in (fit, choose)]
        for i in range(len(attacked.records))
    }
    for pair in combinations(parts, 2):
        learn, test = ([parts[i][stage] for i in pair] for stage in range(2))
        if min(part.n for part in (*learn, *test)) < 2:
            continue
        scores = fit_scores(learn[0], learn[1])
        if attacked.reading is not None:
            scores.append(reading_score(attacked.reading, (attacked.records[pair[0]], attacked.records[pair[1]])))
        for score in scores:
            cut, estimate = best_cut((score.values(test[0]), score.values(test[1])), delta, alpha)
            if estimate > best[0].estimate:
                best = PlaceAttack(every_call(), (pair[0], pair[1]), score, cut, estimate), scores
    return best


# ------------------------------------------------------------------ arguments


def check_claim(epsilon: float, delta: float) -> float:
    """Return the claimed epsilon (nats), after checking that it is at least 0 and that delta is in [0, 1)."""
    if not (math.isfinite(epsilon) and epsilon >= 0.0):
        raise InvalidInput(f"the claimed epsilon must be a finite number of nats of at least 0; got {epsilon}")
    if not 0.0 <= delta < 1.0:
        raise InvalidInput(f"the claimed delta must be a probability in [0, 1); got {delta}")
    return float(epsilon)


def check_confidence(confidence: float) -> float:
    """Return the probability of a false alarm, 1 - confidence, after checking that confidence is in (0, 1)."""
    if not 0.0 < confidence < 1.0 or confidence > JUST_BELOW:
        raise InvalidInput(f"confidence must lie strictly between 0 and 1, such as 0.999; got {confidence}")
    return 1.0 - confidence


def check_trials(trials: int, fewest: int) -> int:
    """Return the number of trials, or refuse one that is no whole number, below ``fewest``, or too large."""
    if whole_number(trials, "trials", fewest) > MOST_TRIALS:
        raise InvalidInput(f"trials must be at most {MOST_TRIALS:,}, whose reports fit in memory; got {shown(trials)}")
    return int(trials)
