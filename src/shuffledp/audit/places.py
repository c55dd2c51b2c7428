"""Attacks on a place in the call: its size, its first or last row, one hundredth of its rows.

A randomizer may be sound on average and send a few rows in clear: the one row of a call for one user, or the rest that
did not fill a block. Such rows drown among the others, so reports of one place are looked at by themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.audit.dependence import Sequence
from shuffledp.audit.reports import join
from shuffledp.audit.result import Cut, Hits, best_cut
from shuffledp.audit.scores import Score
from shuffledp.numerics.interval import FloatArray

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
        """Put several behind each other."""
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
        """What is looked at, in words."""
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
