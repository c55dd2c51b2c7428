"""Attack on a whole shuffled collection, against its central claim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from shuffledp.accounting import certify
from shuffledp.audit.counts import CountAttack, count_attacks
from shuffledp.audit.crowd import Crowd, choose_crowd_attack
from shuffledp.audit.loading import Runnable, Subject, Subjectable, subject
from shuffledp.audit.randomizer import check_claim, check_confidence, check_trials
from shuffledp.audit.result import AuditResult, best_cut
from shuffledp.audit.scores import Reading, show
from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness, secure_random
from shuffledp.randomizers.base import AnyLaw, FrequencyOracle, NoiseLaw, RandomizerLaw
from shuffledp.setting import Seen, Setting

FEWEST_RUNS = 400
COUNT_RUNS = 4_000_000
_REPORTS = 20_000_000
"""Reports drawn by default, as runs times users."""
_MOST_REPORTS = 20_000_000_000
_MOST_DRAWS = 1_000_000_000


def audit_pipeline(
    randomizer: Subjectable | AnyLaw,
    budgets: Budgets,
    delta: float,
    *,
    seen: Seen = "reports",
    claimed_epsilon: float | None = None,
    counts: bool = False,
    records: Sequence[Any] | None = None,
    trials: int | None = None,
    confidence: float = 0.999,
    score: Reading | None = None,
    random: Randomness | None = None,
) -> AuditResult:
    """Attack a shuffled collection: whether the multiset of reports tells what one user's record was.

    Many collections are simulated, half of them with the victim's first record and half with her second; the attacker
    knows all other records. The score of a multiset is a sum over its reports (a count, or a likelihood score learned
    beforehand). Half of the collections choose the threshold, the other half judge it: Clopper-Pearson limits of both
    chances, together wrong with chance at most 1 - confidence. The victim is a user of the largest budget.

    Parameters
    ----------
    randomizer : family of ours, callable, or str
        As for `audit_randomizer`; a function or a command has one budget, whatever it is called with.
    budgets : Budgets
        The population, the victim among them.
    delta : float
        Central delta of the claim, in (0, 1).
    seen : {"reports", "levels"}
        What the attacker sees (see `Setting`); with "levels", the victim's level is attacked by itself.
    claimed_epsilon : float, optional
        The central claim, nats; by default what `certify` promises the whole population.
    counts : bool
        Draw the counts of reports from the family's *stated law*, level by level, instead of running the randomizer for
        every user: millions of collections instead of thousands, but it is the claim that is attacked, not the sampler.
    records : sequence, optional
        Records to try; by default a few of the family's. Not with ``counts``.
    trials : int, optional
        Collections simulated, at least 400. By default so many that 2e7 reports are drawn, but from 1,000 to 100,000;
        4,000,000 with ``counts``.
    confidence : float
        In (0, 1): a true claim is called violated with chance at most 1 - confidence; default 0.999.
    score : callable, optional
        As for `audit_randomizer`. Not with ``counts``.
    random : Randomness, optional
        Secure by default.

    Returns
    -------
    AuditResult

    Raises
    ------
    InvalidInput
        If an argument is out of range, or the randomizer fails or cannot be run.
    OutOfRegime
        If no claim is given and none can be certified.

    Examples
    --------
    >>> from shuffledp.numerics.randomness import simulation_random
    >>> from shuffledp.randomizers import RandomizedResponse
    >>> everyone = Budgets([5.0], [1000])
    >>> result = audit_pipeline(RandomizedResponse(2), everyone, 1e-6, claimed_epsilon=2.488, counts=True,
    ...                         trials=1_000_000, random=simulation_random(1))
    >>> result.violated
    True
    """
    check_confidence(confidence)
    if seen not in ("reports", "levels"):
        raise InvalidInput(f"an audit attacks what is seen as reports or as levels; got seen = {shown(seen)}")
    source = secure_random() if random is None else random
    claimed = check_claim(
        _claim(randomizer, budgets, delta, seen) if claimed_epsilon is None else claimed_epsilon, delta
    )
    company = Budgets(budgets.epsilons[-1:], budgets.counts[-1:], budgets.deltas[-1:]) if seen == "levels" else budgets
    if counts:
        if records is not None or score is not None:
            raise InvalidInput("counts are drawn for the worst records known; leave records and score out, or counts")
        runs = check_trials(COUNT_RUNS if trials is None else trials, FEWEST_RUNS)
        return _audit_counts(randomizer, company, runs, (claimed, delta, confidence), source)
    usual = min(max(_REPORTS // company.n, 1000), 100_000)
    runs = check_trials(usual if trials is None else trials, FEWEST_RUNS)
    if runs * company.n > _MOST_REPORTS:
        raise InvalidInput(
            f"{runs} collections of {company.n} users would draw {runs * company.n:.2g} reports; ask for at most "
            f"{max(_MOST_REPORTS // company.n, FEWEST_RUNS)} trials, or draw counts"
        )
    crowd = _crowd(randomizer, company, records, score)
    attack = choose_crowd_attack(crowd, source)
    quarter = runs // 4
    learn, judge = ((attack.draw(crowd, 0, quarter, source), attack.draw(crowd, 1, quarter, source)) for _ in range(2))
    first, second = (show(crowd.victim.records[i]) for i in attack.records)
    others = f"the sum of the reports' scores, learned from {attack.score.attack}, the others holding record "
    others += show(crowd.victim.records[attack.held])
    return _judged(crowd.victim.name, (first, second), others, learn, judge, (claimed, delta, confidence), source)


def _claim(randomizer: Subjectable | AnyLaw, budgets: Budgets, delta: float, seen: Seen) -> float:
    law = randomizer if isinstance(randomizer, RandomizerLaw | NoiseLaw) else "any"
    return certify(Setting(budgets, law, seen=seen, neighboring="replace-one"), delta).epsilon.upper


def _judged(
    name: str,
    records: tuple[str, str],
    attack: str,
    learn: tuple[FloatArray, FloatArray],
    judge: tuple[FloatArray, FloatArray],
    claim: tuple[float, float, float],
    source: Randomness,
) -> AuditResult:
    claimed, delta, confidence = claim
    alpha = check_confidence(confidence)
    cut, _ = best_cut(learn, delta, alpha)
    limit, hits = cut.limit(judge, delta, alpha)
    return AuditResult(
        subject=f"shuffled {name}",
        claimed=claimed,
        delta=delta,
        epsilon_lower_bound=max(limit, 0.0),
        confidence=confidence,
        records=records,
        worlds=(f"victim with record {records[0]}", f"victim with record {records[1]}"),
        attack=attack,
        event=f"it {cut.words}",
        likelier=cut.likelier,
        hits=hits,
        private=source.private,
    )


# ------------------------------------------------------------------ through the randomizer


def _crowd(
    randomizer: Subjectable | AnyLaw, budgets: Budgets, records: Sequence[Any] | None, score: Reading | None
) -> Crowd:
    if isinstance(randomizer, FrequencyOracle):
        randomizer = cast(Runnable, randomizer.for_budgets(budgets.epsilons, budgets.counts))
    elif budgets.levels > 1 and not isinstance(randomizer, RandomizerLaw | NoiseLaw):
        raise InvalidInput(f"a function or a command has one budget; got {budgets.levels} levels")

    def at(level: int) -> Subject:
        budget = float(budgets.epsilons[level]), float(budgets.deltas[level])
        return subject(cast(Subjectable, randomizer), *budget, records, score)

    counts = budgets.counts.copy()
    counts[-1] -= 1
    kept = [level for level in range(budgets.levels) if counts[level] > 0]
    return Crowd(at(-1), tuple(at(level) for level in kept), tuple(int(counts[level]) for level in kept))


# ------------------------------------------------------------------ from the stated law


def _audit_counts(
    randomizer: Subjectable | AnyLaw,
    budgets: Budgets,
    runs: int,
    claim: tuple[float, float, float],
    random: Randomness,
) -> AuditResult:
    if not isinstance(randomizer, RandomizerLaw | NoiseLaw):
        raise InvalidInput("counts are drawn from a stated law, which only our families have; leave counts out")
    if runs * budgets.levels > _MOST_DRAWS:
        raise InvalidInput(
            f"{runs} collections of {budgets.levels} levels are too many draws; ask for at most "
            f"{_MOST_DRAWS // budgets.levels} trials"
        )
    delta, alpha = claim[1], check_confidence(claim[2])
    source = np.random.default_rng(random.words(4))
    quarter = runs // 4
    attacks = count_attacks(randomizer, budgets, delta, quarter, alpha)
    chosen, learn = _strongest(attacks, quarter, delta, alpha, source)
    judge = (chosen.draw(0, quarter, source), chosen.draw(1, quarter, source))
    return _judged(randomizer.name, chosen.records, chosen.attack, learn, judge, claim, random)


def _strongest(
    attacks: list[CountAttack], runs: int, delta: float, alpha: float, source: np.random.Generator
) -> tuple[CountAttack, tuple[FloatArray, FloatArray]]:
    """Return the attack of largest limit, with the runs that chose it."""
    best: tuple[float, CountAttack, tuple[FloatArray, FloatArray]] | None = None
    for attack in attacks:
        found = attack.draw(0, runs, source), attack.draw(1, runs, source)
        _, limit = best_cut(found, delta, alpha)
        if best is None or limit > best[0]:
            best = limit, attack, found
    if best is None:
        raise InvalidInput("there is no attack to try on these counts")
    return best[1], best[2]
