"""Attack on a local randomizer: the best event found on one half of the reports, judged on the other half."""

from __future__ import annotations

import math
from collections.abc import Sequence as Records
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from shuffledp.audit.calls import (
    ALIKE,
    PairAttack,
    PlaceAttack,
    Placed,
    Sequence,
    SmallPair,
    choose_pair_attack,
    choose_place,
    choose_small_attack,
    draw_calls,
    draw_small,
    every_call,
    suspect_hundredths,
)
from shuffledp.audit.loading import Subject, Subjectable, subject
from shuffledp.audit.result import AuditResult, Cut, Hits, best_cut
from shuffledp.audit.scores import Reading, Score, fit_scores, reading_score, show
from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.floats import JUST_BELOW
from shuffledp.numerics.randomness import Randomness, secure_random

TRIALS = 200_000
FEWEST_TRIALS = 1000
MOST_TRIALS = 100_000_000
MOST_RECORDS = 16
_CALLS = 16
_FIRST = 1 / 2
"""Share of the error that the event of one report has, wherever it stands."""
_OTHERS = 1 / 6
"""Share of each other event: two users' reports, one report at its place in a large call, small calls."""


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

    The claim tested is: reports are independent of each other given the records, also from call to call, and each
    is (epsilon0, delta0)-LDP, however many rows a call has. The randomizer is called 16 times with `trials` / 16 users,
    and many times with 1, 2 and 17, whose records are drawn at random. A part of the reports teaches scores that tell
    two records apart, a part chooses the pair of records, score and threshold of largest limit, and the rest judges
    just four events: one of a single report; one of the reports of two users who may share their noise; one of a report
    at its place in a large call (one hundredth of the rows); and one of small calls (of a report at its place, or of
    two users' reports). Each judgement is a Clopper-Pearson test, the first at a half of 1 - confidence, each
    other at a sixth of it.

    Parameters
    ----------
    randomizer : family of ours, callable, or str
        A family with `randomize`; a function f(records) or f(records, random=...) of an array of n records that returns
        n reports (numbers, rows of numbers, bit-packed or not, or words), where random is a `Randomness`;
        ``"FILE.py:FUNCTION"``; or ``"command:PROGRAM ARGUMENTS"``, which reads one record per line and prints one
        report per line (run without a shell).
    epsilon0 : float
        The claim, nats, at least 0; a family is run at this budget.
    delta0 : float
        The claim's delta, in [0, 1); default 0.
    records : sequence, optional
        From 2 to 16 records among which the worst pair is sought. By default a few of a family's, else 0 and 1.
    trials : int
        Reports drawn in large calls, at least 1,000; default 200,000. Below that there are fewer small calls, too.
    confidence : float
        In (0, 1): a randomizer which keeps the claim is accused with chance at most 1 - confidence; default 0.999.
    score : callable, optional
        An attack of your own: (reports, record) -> one number per report, larger the more it speaks for the record.
    random : Randomness, optional
        Secure by default; `simulation_random(seed)` makes an audit of a function that draws from it repeatable.

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
    found = _strongest(attacked, trials, delta0, alpha, source)
    return AuditResult(
        subject=attacked.name,
        claimed=claimed,
        delta=delta0,
        epsilon_lower_bound=max(found.limit, 0.0),
        confidence=confidence,
        records=found.records,
        worlds=found.worlds,
        attack=found.attack.attack,
        event=found.attack.event,
        likelier=found.attack.cut.likelier,
        hits=found.hits,
        private=source.private,
    )


@dataclass(frozen=True, eq=False)
class _Judged:
    """An event, and how far its hits on fresh reports bind epsilon from below."""

    limit: float
    hits: Hits
    attack: PlaceAttack | PairAttack | SmallPair
    records: tuple[str, str]

    @property
    def worlds(self) -> tuple[str, str]:
        """What the event tells apart, in words."""
        if isinstance(self.attack, PlaceAttack):
            return f"record {self.records[0]}", f"record {self.records[1]}"
        return ALIKE


def _strongest(attacked: Subject, trials: int, delta: float, alpha: float, source: Randomness) -> _Judged:
    """Choose four events, judge each of them on fresh reports, and return the one of largest limit."""
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
    """Return the pair of records, the event of one report, and all scores learned for that pair.

    The report counts wherever it stands.
    """
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
    """Return the claimed epsilon, or raise InvalidInput on a claim out of range."""
    if not (math.isfinite(epsilon) and epsilon >= 0.0):
        raise InvalidInput(f"the claimed epsilon must be a finite number of nats of at least 0; got {epsilon}")
    if not 0.0 <= delta < 1.0:
        raise InvalidInput(f"the claimed delta must be a probability in [0, 1); got {delta}")
    return float(epsilon)


def check_confidence(confidence: float) -> float:
    """Return the chance of a false alarm, or raise InvalidInput."""
    if not 0.0 < confidence < 1.0 or confidence > JUST_BELOW:
        raise InvalidInput(f"confidence must lie strictly between 0 and 1, such as 0.999; got {confidence}")
    return 1.0 - confidence


def check_trials(trials: int, fewest: int) -> int:
    """Return the number of trials, or raise InvalidInput if it is no whole number, too small or too large."""
    whole = isinstance(trials, int | np.integer) and not isinstance(trials, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not whole or trials < fewest:
        raise InvalidInput(f"trials must be a whole number of at least {fewest}; got {shown(trials)}")
    if trials > MOST_TRIALS:
        raise InvalidInput(f"trials must be at most {MOST_TRIALS:,}, whose reports fit in memory; got {shown(trials)}")
    return int(trials)
