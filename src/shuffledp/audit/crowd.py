"""Whole collections, drawn through the randomizer itself, and the score of a multiset of reports."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from shuffledp.audit.fitting import fit_scores
from shuffledp.audit.loading import Subject
from shuffledp.audit.reports import Reports, join
from shuffledp.audit.scores import Score, reading_score
from shuffledp.numerics.floats import TINY
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness

_FIT = 20_000
_CELLS = 32
_CHUNK = 1 << 19
_AS_GOOD = 0.02  # powers are estimates; scores that are quicker to compute come first


@dataclass(frozen=True, eq=False)
class Crowd:
    """The victim and everybody else.

    Parameters
    ----------
    victim : Subject
        Her randomizer.
    levels : tuple of Subject
        The others' randomizers, one per level, with the same records.
    counts : tuple of int
        How many others each level has.
    """

    victim: Subject
    levels: tuple[Subject, ...]
    counts: tuple[int, ...]

    @property
    def n(self) -> int:
        """Users, with the victim."""
        return 1 + sum(self.counts)


@dataclass(frozen=True, eq=False)
class CrowdAttack:
    """A score of the multiset of reports: every report's own weight, added.

    For reports of one law q but for the victim's, of law p0 or p1, the likelihood ratio of a multiset is that of the
    sums of p0/q and p1/q over its reports; their difference is what is added here.

    Parameters
    ----------
    records : (int, int)
        The victim's two records, by index.
    held : int
        The record of all others.
    score : Score
        Reading of one report.
    edges, weights : ndarray
        What a report adds: weights[number of edges up to its score].
    power : float
        Distance of the two worlds in standard deviations, on fresh reports.
    """

    records: tuple[int, int]
    held: int
    score: Score
    edges: FloatArray
    weights: FloatArray
    power: float

    def added(self, reports: Reports) -> FloatArray:
        """Return what each report adds to the score."""
        return self.weights[np.searchsorted(self.edges, self.score.values(reports), side="right")]

    def draw(self, crowd: Crowd, record: int, runs: int, random: Randomness) -> FloatArray:
        """Scores of so many collections, each drawn anew through the randomizer, user by user.

        Parameters
        ----------
        crowd : Crowd
            Who takes part.
        record : {0, 1}
            Which of the two records the victim holds.
        runs : int
            How many.
        random : Randomness
            Where the noise comes from.
        """
        found = self.added(crowd.victim.draw(np.full(runs, self.records[record]), random))
        for level, count in zip(crowd.levels, crowd.counts, strict=True):
            some = max(1, _CHUNK // count)
            for start in range(0, runs, some):
                size = min(some, runs - start)
                reports = level.draw(np.full(size * count, self.held), random)
                found[start : start + size] += self.added(reports).reshape(size, count).sum(axis=1)
        return found


def choose_crowd_attack(crowd: Crowd, random: Randomness) -> CrowdAttack:
    """Learn what a report should add to the score, for the victim's records and the others' record that tell most.

    Parameters
    ----------
    crowd : Crowd
        Who takes part.
    random : Randomness
        Where the noise comes from.
    """
    records = range(len(crowd.victim.records))
    mine = {i: [crowd.victim.draw(np.full(_FIT, i), random) for _ in range(2)] for i in records}
    theirs = {i: [_others(crowd, i, random) for _ in range(2)] for i in records}
    found: list[CrowdAttack] = []
    for pair in combinations(records, 2):
        learn, test = ([mine[i][stage] for i in pair] for stage in range(2))
        scores = fit_scores(learn[0], learn[1])
        if crowd.victim.reading is not None:
            names = crowd.victim.records[pair[0]], crowd.victim.records[pair[1]]
            scores.append(reading_score(crowd.victim.reading, names))
        for score in scores:
            read = [score.values(part) for part in (*learn, *test)]
            edges = _edges(np.concatenate(read[:2]))
            for held in records:
                values = [*read, *(score.values(part) for _, part in theirs[held])]
                weights, power = _weigh(values, edges, [weight for weight, _ in theirs[held]], crowd.n)
                found.append(CrowdAttack((pair[0], pair[1]), held, score, edges, weights, power))
    most = max(attack.power for attack in found)
    return next(attack for attack in found if attack.power >= (1.0 - _AS_GOOD) * most)


def _others(crowd: Crowd, held: int, random: Randomness) -> tuple[FloatArray, Reports]:
    """Return a sample of the others' reports, each with the number of users it stands for."""
    levels, counts = (crowd.levels, crowd.counts) if crowd.levels else ((crowd.victim,), (1,))  # she may be alone
    each = max(_FIT // len(levels), 200)
    parts = [level.draw(np.full(each, held), random) for level in levels]
    stands = np.repeat(np.array(counts, dtype=np.float64) / each, each)
    return stands, join(parts)


def _edges(values: FloatArray) -> FloatArray:
    distinct = np.unique(values)
    if distinct.size <= _CELLS:
        return distinct[1:]
    return np.unique(np.quantile(values, np.linspace(0.0, 1.0, _CELLS + 1)[1:-1]))


def _weigh(values: list[FloatArray], edges: FloatArray, stands: list[FloatArray], n: int) -> tuple[FloatArray, float]:
    """Return what a cell adds, (p0 - p1)/q, from the first samples.

    The other samples tell how well that separates the worlds.
    """
    size = edges.size + 1
    place = [np.searchsorted(edges, part, side="right") for part in values]
    share = [(np.bincount(place[i], minlength=size) + 0.5) / (values[i].size + 0.5 * size) for i in range(4)]
    crowd = [np.bincount(place[4 + i], stands[i], size) + 0.5 * n / _FIT for i in range(2)]
    weights = (share[0] - share[1]) / (crowd[0] / crowd[0].sum())
    law = crowd[1] / crowd[1].sum()
    mean = float(law @ weights)
    spread = float(law @ (weights - mean) ** 2) * n + TINY
    return weights, float((share[2] - share[3]) @ weights) / np.sqrt(spread)
