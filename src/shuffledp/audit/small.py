"""Attacks on small calls: a randomizer called for one user, for two, for seventeen.

A client calls a randomizer with its own record alone, so the path of one row is the one that matters most; and 17 rows
do not fill the blocks of 2, 4, 8 or 16 in which vectorised code works.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shuffledp.audit.dependence import PairAttack, choose_pair_attack, draw_calls
from shuffledp.audit.fitting import fit_scores
from shuffledp.audit.loading import Subject
from shuffledp.audit.places import (
    Place,
    PlaceAttack,
    Placed,
    calls_of,
    choose_place,
    every_call,
    first_row,
    last_row,
    suspect_rows,
)
from shuffledp.audit.reports import Reports
from shuffledp.audit.result import Cut, Hits
from shuffledp.audit.scores import Score
from shuffledp.numerics.randomness import Randomness

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
        """What is compared, in words."""
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
