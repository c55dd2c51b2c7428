"""Attack on a local randomizer: the best event found on one half of the reports, judged on the other half."""

from __future__ import annotations

import math
from collections.abc import Sequence as Records
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from shuffledp.audit.confidence import Cut, Hits, best_cut
from shuffledp.audit.dependence import PairAttack, Sequence, choose_pair_attack
from shuffledp.audit.loading import Subject, Subjectable, subject
from shuffledp.audit.reports import join
from shuffledp.audit.result import AuditResult
from shuffledp.audit.scores import Reading, Score, fit_scores, reading_score, show
from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import Randomness, secure_random

TRIALS = 200_000
FEWEST_TRIALS = 1000
MOST_RECORDS = 16
_CALLS = 16
_ALIKE = ("two users of the same record", "two users of different records")
_EVENTS = 2  # judged at the end: the best of one report, and the best of two users' reports


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
    is (epsilon0, delta0)-LDP. The randomizer is called 16 times, with users whose records are drawn at random. A
    quarter of the reports teaches scores that tell two records apart, a quarter chooses the pair of records, score and
    threshold of largest limit, and the rest judges just two events: one of a single report, and one of the reports of
    two users who may share their noise. Each judgement is a Clopper-Pearson test at half of 1 - confidence.

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
        Reports drawn, at least 1,000; default 200,000.
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
    batch, everyone = trials // _CALLS, tuple(range(len(attacked.records)))
    fit, choose = (_run(attacked, everyone, batch, _CALLS // 4, source) for _ in range(2))
    each = alpha / _EVENTS
    single = _choose_single(attacked, fit, choose, delta0, each)
    paired = choose_pair_attack(fit, choose, batch, delta0, each)
    judge = _run(attacked, single.records, batch, _CALLS // 2, source)
    limits = (_judge_single(single, judge, delta0, each), _judge_pair(paired, judge, delta0, each))
    at = int(limits[1][0] > limits[0][0])
    limit, hits = limits[at]
    first, second = (show(attacked.records[i]) for i in single.records)
    return AuditResult(
        subject=attacked.name,
        claimed=claimed,
        delta=delta0,
        epsilon_lower_bound=max(limit, 0.0),
        confidence=confidence,
        records=(first, second),
        worlds=_ALIKE if at else (f"record {first}", f"record {second}"),
        attack=paired.attack if at else single.score.attack,
        event=paired.event if at else single.score.words(single.cut),
        likelier=paired.cut.likelier if at else single.cut.likelier,
        hits=hits,
        private=source.private,
    )


@dataclass(frozen=True, eq=False)
class _Single:
    """The chosen event of one report.

    Parameters
    ----------
    records : (int, int)
        Indices of the two records.
    score, cut
        The event.
    estimate : float
        Its limit on the data that chose it.
    """

    records: tuple[int, int]
    score: Score
    cut: Cut
    estimate: float


def _run(attacked: Subject, held: tuple[int, ...], batch: int, calls: int, random: Randomness) -> Sequence:
    """Call the randomizer so often, each user holding a random one of these records, all known to the attacker."""
    labels = [np.asarray(held)[random.integers(len(held), batch)] for _ in range(calls)]
    return Sequence(join([attacked.draw(part, random) for part in labels]), np.concatenate(labels))


def _choose_single(attacked: Subject, fit: Sequence, choose: Sequence, delta: float, alpha: float) -> _Single:
    best = _Single((0, 1), reading_score(lambda raw, _: np.zeros(len(raw)), (0, 0)), Cut(0.0, True, 0), -math.inf)
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
            if estimate > best.estimate:
                best = _Single((pair[0], pair[1]), score, cut, estimate)
    return best


def _judge_single(chosen: _Single, judge: Sequence, delta: float, alpha: float) -> tuple[float, Hits]:
    scores = chosen.score.values(judge.reports)
    first, second = (scores[judge.labels == i] for i in chosen.records)
    return chosen.cut.limit((first, second), delta, alpha)


def _judge_pair(chosen: PairAttack, judge: Sequence, delta: float, alpha: float) -> tuple[float, Hits]:
    return chosen.cut.limit(chosen.scores(judge), delta, alpha)


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
    if not 0.0 < confidence < 1.0 or 1.0 - confidence < 1e-12:
        raise InvalidInput(f"confidence must lie strictly between 0 and 1, such as 0.999; got {confidence}")
    return 1.0 - confidence


def check_trials(trials: int, fewest: int) -> int:
    """Return the number of trials, or raise InvalidInput if it is no whole number or too small."""
    if isinstance(trials, bool) or not isinstance(trials, int | np.integer) or trials < fewest:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"trials must be a whole number of at least {fewest}; got {trials!r}")
    return int(trials)
