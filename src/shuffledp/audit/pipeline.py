"""An attack on a whole shuffled collection, against its claimed central epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, norm

from shuffledp.accounting import certify
from shuffledp.audit.loading import Runnable, Subject, Subjectable, subject
from shuffledp.audit.randomizer import check_claim, check_confidence, check_trials
from shuffledp.audit.result import AuditResult, best_cut
from shuffledp.audit.scores import Reading, Reports, Score, fit_scores, join, reading_score, show
from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.floats import TINY, FloatArray
from shuffledp.numerics.functions import ndtr
from shuffledp.numerics.randomness import Randomness, secure_random
from shuffledp.randomizers.base import AnyLaw, FrequencyOracle, LocalRandomizer, NoiseLaw, RandomizerLaw
from shuffledp.setting import Seen, Setting

# Whole collections, drawn through the randomizer itself, and the score of a multiset of reports.

_FIT = 20_000
_CELLS = 32
_CHUNK = 1 << 19
_AS_GOOD = 0.02  # powers are estimates; scores that are quicker to compute come first


@dataclass(frozen=True, eq=False)
class Crowd:
    """The users of a collection: the victim (the user under attack) and everybody else.

    Parameters
    ----------
    victim : Subject
        The victim's randomizer.
    levels : tuple of Subject
        The others' randomizers, one per level, with the same records.
    counts : tuple of int
        Number of others at each level.
    """

    victim: Subject
    levels: tuple[Subject, ...]
    counts: tuple[int, ...]

    @property
    def n(self) -> int:
        """Number of users, including the victim."""
        return 1 + sum(self.counts)


@dataclass(frozen=True, eq=False)
class CrowdAttack:
    """A score of the multiset of reports: the sum of a weight for each report.

    If the others' reports have the law q and the victim's p0 or p1, the likelihood ratio of a multiset is that of the
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
        The weight of a report is weights[number of edges up to its score].
    power : float
        Distance of the score's means under the two records in standard deviations, on fresh reports.
    """

    records: tuple[int, int]
    held: int
    score: Score
    edges: FloatArray
    weights: FloatArray
    power: float

    def added(self, reports: Reports) -> FloatArray:
        """Return the weight of each report in the score."""
        return self.weights[np.searchsorted(self.edges, self.score.values(reports), side="right")]

    def draw(self, crowd: Crowd, record: int, runs: int, random: Randomness) -> FloatArray:
        """Return the scores of simulated collections, shape (runs,), drawn through the randomizer user by user.

        Parameters
        ----------
        crowd : Crowd
            The users.
        record : {0, 1}
            Which of the two records the victim holds.
        runs : int
            Number of collections.
        random : Randomness
            Source of the noise.
        """
        scores = self.added(crowd.victim.draw(np.full(runs, self.records[record]), random))
        for level, count in zip(crowd.levels, crowd.counts, strict=True):
            some = max(1, _CHUNK // count)
            for start in range(0, runs, some):
                size = min(some, runs - start)
                reports = level.draw(np.full(size * count, self.held), random)
                scores[start : start + size] += self.added(reports).reshape(size, count).sum(axis=1)
        return scores


def choose_crowd_attack(crowd: Crowd, random: Randomness) -> CrowdAttack:
    """Learn the weights of reports, for the victim's pair of records and the others' record that are easiest to attack.

    Parameters
    ----------
    crowd : Crowd
        The users.
    random : Randomness
        Source of the noise.
    """
    records = range(len(crowd.victim.records))
    mine = {i: [crowd.victim.draw(np.full(_FIT, i), random) for _ in range(2)] for i in records}
    theirs = {i: [_others(crowd, i, random) for _ in range(2)] for i in records}
    attacks: list[CrowdAttack] = []
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
                attacks.append(CrowdAttack((pair[0], pair[1]), held, score, edges, weights, power))
    most = max(attack.power for attack in attacks)
    return next(attack for attack in attacks if attack.power >= (1.0 - _AS_GOOD) * most)


def _others(crowd: Crowd, held: int, random: Randomness) -> tuple[FloatArray, Reports]:
    """Return a sample of the others' reports, each with the number of users that it represents."""
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
    """Return the weight of a cell, (p0 - p1)/q, from the first samples, and its power on the other samples."""
    size = edges.size + 1
    place = [np.searchsorted(edges, part, side="right") for part in values]
    share = [(np.bincount(place[i], minlength=size) + 0.5) / (values[i].size + 0.5 * size) for i in range(4)]
    crowd = [np.bincount(place[4 + i], stands[i], size) + 0.5 * n / _FIT for i in range(2)]
    weights = (share[0] - share[1]) / (crowd[0] / crowd[0].sum())
    law = crowd[1] / crowd[1].sum()
    mean = float(law @ weights)
    spread = float(law @ (weights - mean) ** 2) * n + TINY
    return weights, float((share[2] - share[3]) @ weights) / np.sqrt(spread)


# Counts of reports drawn from a randomizer's stated law: millions of runs of a collection in a second.
#
# The attacker counts the reports of a kind or two. Reports are independent given the records, so the others' counts
# are multinomial, level by level, and need not be drawn report by report. What is attacked here is the central claim,
# not the sampler.

_DRAWN_AT_ONCE = 1 << 18
_COUNT = "the number of reports {}, the others holding record {}"


@dataclass(frozen=True, eq=False)
class CountAttack:
    """A collection reduced to counts of a few kinds of reports, with a weighted sum as the score.

    Parameters
    ----------
    victim : ndarray, shape (2, kinds)
        Probabilities of each kind of the victim's report, under the victim's first and second record.
    others : ndarray, shape (levels, kinds)
        Probabilities of each kind of the others' reports.
    counts : ndarray of int, shape (levels,)
        Number of other users at each level.
    weights : ndarray, shape (kinds,)
        Weight of each kind in the score.
    records : (str, str)
        The victim's two records.
    attack : str
        Words for what is counted.
    """

    victim: FloatArray
    others: FloatArray
    counts: NDArray[np.int64]
    weights: FloatArray
    records: tuple[str, str]
    attack: str

    def draw(self, record: int, runs: int, source: np.random.Generator) -> FloatArray:
        """Return the scores of independent simulated collections, shape (runs,).

        Parameters
        ----------
        record : {0, 1}
            Which of the two records the victim holds.
        runs : int
            Number of collections.
        source : numpy.random.Generator
            Source of the counts.
        """
        scores = np.empty(runs)
        for start in range(0, runs, _DRAWN_AT_ONCE):
            size = min(_DRAWN_AT_ONCE, runs - start)
            part = self.weights[source.choice(self.weights.size, size, p=self.victim[record])]
            for chances, count in zip(self.others, self.counts, strict=True):
                part = part + source.multinomial(count, chances, size) @ self.weights
            scores[start : start + size] = part
        return scores


def count_attacks(law: AnyLaw, budgets: Budgets, delta: float, runs: int, alpha: float) -> list[CountAttack]:
    """Return the counting attacks on a stated law, with a victim of the largest budget.

    Parameters
    ----------
    law : RandomizerLaw or NoiseLaw
        The randomizer of all users.
    budgets : Budgets
        The population.
    delta, alpha : float
        Central delta and probability of a false alarm, used to choose a window.
    runs : int
        Number of collections for each record that judge, used to choose a window.

    Raises
    ------
    InvalidInput
        If the law states no kinds of reports that can be counted.
    """
    counts = budgets.counts.copy()
    counts[-1] -= 1
    kept = counts > 0
    company = budgets.epsilons[kept], budgets.deltas[kept], counts[kept]
    if isinstance(law, NoiseLaw):
        return [_window(law, budgets, company, delta, runs, alpha)]
    top = float(budgets.epsilons[-1])
    if law.two_point and isinstance(law, LocalRandomizer):
        channels = np.array([law.channel(float(epsilon)) for epsilon in company[0]]).reshape(-1, 2, 2)
        names = ("low", "high") if hasattr(law, "low") else ("0", "1")
        zeros = np.array([1.0, 0.0])
        return [
            CountAttack(law.channel(top), channels[:, held], company[2], zeros, names, _COUNT.format("0", names[held]))
            for held in (0, 1)
        ]
    pair, each = law.pair_counts(top), law.pair_counts(company[0])
    if pair is None or each is None:
        raise InvalidInput(f"{law.name} states no counts to draw; leave --counts out, so that its sampler is run")
    victim = np.array([[pair.right, pair.wrong, pair.neither], [pair.wrong, pair.right, pair.neither]], dtype=float)
    third = np.stack((each.third, each.third, 1.0 - 2.0 * each.third), axis=1)
    second = np.stack((each.wrong, each.right, each.neither), axis=1)
    records = ("A", "B")
    less, alone = np.array([1.0, -1.0, 0.0]), np.array([1.0, 0.0, 0.0])
    names = _COUNT.format("that speak for A less that of B", "C"), _COUNT.format("that speak for A", "B")
    return [
        CountAttack(_normed(victim), _normed(third), company[2], less, records, names[0]),
        CountAttack(_normed(victim), _normed(second), company[2], alone, records, names[1]),
    ]


def _normed(chances: FloatArray) -> FloatArray:
    """Return rows normalised to sum to 1 for the sampler; they do so already up to rounding."""
    return chances / chances.sum(axis=1, keepdims=True)


def _window(
    law: NoiseLaw,
    budgets: Budgets,
    company: tuple[FloatArray, FloatArray, NDArray[np.int64]],
    delta: float,
    runs: int,
    alpha: float,
) -> CountAttack:
    """Return the attack that counts reports in the best interval around 0, the others holding 1.

    The interval is chosen by a rough prediction (a binomial for the others' count), which does not judge it.
    """
    own = float(law.scale(budgets.epsilons[-1], budgets.deltas[-1]))
    scales = law.scale(company[0], company[1])
    ends = own * np.concatenate((-np.geomspace(16.0, 0.05, 28), [0.0])), own * np.geomspace(0.05, 8.0, 28)
    low, high = (side.ravel() for side in np.meshgrid(*ends, indexing="ij"))
    low, high = np.append(low, -np.inf), np.append(high, 0.5)
    cdf = _laplace_cdf if law.noise == "laplace" else ndtr

    def inside(record: float, scale: FloatArray | float) -> FloatArray:
        return np.maximum(cdf((high - record) / scale) - cdf((low - record) / scale), 0.0)

    mine = np.array([inside(0.0, own), inside(1.0, own)])
    theirs = np.array([inside(1.0, float(scale)) for scale in scales]).reshape(-1, low.size)
    people = int(company[2].sum())
    share = (company[2] @ theirs) / max(people, 1)
    deviation = np.sqrt(people * share * (1.0 - share)) + 1.0
    steps = np.floor(people * share + deviation * np.linspace(-1.0, 4.5, 45)[:, None])
    at_least, just = binom.sf(steps - 1.0, people, share), binom.pmf(steps - 1.0, people, share)
    chances = [np.maximum(at_least + part * just, 1e-90) for part in mine]
    gain = np.maximum(chances[0] - delta, 1e-90)
    doubt = np.sqrt(chances[0] / gain**2 + 1.0 / chances[1]) / np.sqrt(runs)
    prospects = np.log(gain / chances[1]) - norm.isf(alpha / 2.0) * doubt
    best = int(np.argmax(np.max(prospects, axis=0)))
    split = [np.stack((part[..., best], 1.0 - part[..., best]), axis=-1) for part in (mine, theirs)]
    name = _COUNT.format(f"between {low[best]:.4g} and {high[best]:.4g} (range 0 to 1)", "1")
    return CountAttack(split[0], split[1], company[2], np.array([1.0, 0.0]), ("0", "1"), name)


def _laplace_cdf(z: FloatArray) -> FloatArray:
    return np.where(z < 0.0, 0.5 * np.exp(np.minimum(z, 0.0)), 1.0 - 0.5 * np.exp(-np.maximum(z, 0.0)))


FEWEST_RUNS = 400
COUNT_RUNS = 4_000_000
_REPORTS = 20_000_000
"""Default number of reports drawn: runs times users."""
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
    """Attack a shuffled collection: test whether the multiset of reports reveals one user's record.

    Many collections are simulated, half of them with the victim's first record and half with the second; the attacker
    knows all other records. The score of a multiset is a sum over its reports (a count, or a likelihood score learned
    beforehand). Half of the collections choose the threshold, the other half judge it: Clopper-Pearson limits of both
    probabilities, together wrong with probability at most 1 - confidence. The victim is a user of the largest budget.

    Parameters
    ----------
    randomizer : family of this library, callable, or str
        As for `audit_randomizer`; a function or a command has one budget only.
    budgets : Budgets
        The population, the victim among them.
    delta : float
        Central delta of the claim, in (0, 1).
    seen : {"reports", "levels"}
        What the attacker sees (see `Setting`); with "levels", the victim's level is attacked by itself.
    claimed_epsilon : float, optional
        The claimed central epsilon, nats; by default the one that `certify` gives for the whole population.
    counts : bool
        Draw the counts of reports from the family's *stated law*, level by level, instead of running the randomizer for
        every user: millions of collections instead of thousands, but this tests the claim, not the sampler.
    records : sequence, optional
        Records to try; by default a few of the family's. Not with ``counts``.
    trials : int, optional
        Number of simulated collections, at least 400. By default for 2e7 reports in all, but from 1,000 to 100,000;
        4,000,000 with ``counts``.
    confidence : float
        In (0, 1): a true claim is called violated with probability at most 1 - confidence; default 0.999.
    score : callable, optional
        As for `audit_randomizer`. Not with ``counts``.
    random : Randomness, optional
        Source of randomness; secure by default.

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
    tried: list[tuple[float, CountAttack, tuple[FloatArray, FloatArray]]] = []
    for attack in attacks:
        scores = attack.draw(0, runs, source), attack.draw(1, runs, source)
        tried.append((best_cut(scores, delta, alpha)[1], attack, scores))
    return max(tried, key=lambda each: each[0])[1:]
