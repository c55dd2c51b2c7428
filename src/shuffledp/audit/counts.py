"""Counts of reports drawn from a randomizer's stated law: millions of runs of a collection in a second.

The attacker counts the reports of a kind or two. Reports are independent given the records, so the others' counts are
multinomial, level by level, and need not be drawn report by report. What is attacked here is the central claim, not
the sampler.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, norm

from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.special import ndtr
from shuffledp.randomizers.base import AnyLaw, LocalRandomizer, NoiseLaw

_CHUNK = 1 << 18
_COUNT = "the number of reports {}, the others holding record {}"


@dataclass(frozen=True, eq=False)
class CountAttack:
    """A collection seen as counts of a few kinds of reports, weighted and added.

    Parameters
    ----------
    victim : ndarray, shape (2, kinds)
        Chances of each kind of the victim's report, under her first and her second record.
    others : ndarray, shape (levels, kinds)
        Chances of each kind of the others' reports.
    counts : ndarray of int, shape (levels,)
        Number of other users.
    weights : ndarray, shape (kinds,)
        What each kind adds to the score.
    records : (str, str)
        The victim's two records.
    attack : str
        What is counted, in words.
    """

    victim: FloatArray
    others: FloatArray
    counts: NDArray[np.int64]
    weights: FloatArray
    records: tuple[str, str]
    attack: str

    def draw(self, record: int, runs: int, source: np.random.Generator) -> FloatArray:
        """Scores of so many runs, independent of each other.

        Parameters
        ----------
        record : {0, 1}
            Which of the two records the victim holds.
        runs : int
            How many.
        source : numpy.random.Generator
            Where the counts come from.
        """
        found = np.empty(runs)
        for start in range(0, runs, _CHUNK):
            size = min(_CHUNK, runs - start)
            part = self.weights[source.choice(self.weights.size, size, p=self.victim[record])]
            for chances, count in zip(self.others, self.counts, strict=True):
                part = part + source.multinomial(count, chances, size) @ self.weights
            found[start : start + size] = part
        return found


def count_attacks(law: AnyLaw, budgets: Budgets, delta: float, runs: int, alpha: float) -> list[CountAttack]:
    """Lay out the counting attacks on a stated law, the victim holding the largest budget.

    Parameters
    ----------
    law : RandomizerLaw or NoiseLaw
        The randomizer of all users.
    budgets : Budgets
        The population.
    delta, alpha : float
        Central delta and chance of a false alarm, to choose a window by.
    runs : int
        Runs of each record that will judge, to choose a window by.

    Raises
    ------
    InvalidInput
        If the law states nothing that can be counted.
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
    """Rows that add to 1 for the sampler; they do so up to rounding already."""
    return chances / chances.sum(axis=1, keepdims=True)


def _window(
    law: NoiseLaw,
    budgets: Budgets,
    company: tuple[FloatArray, FloatArray, NDArray[np.int64]],
    delta: float,
    runs: int,
    alpha: float,
) -> CountAttack:
    """Count the reports in one interval around 0, the others holding 1: the interval of best prospects.

    Prospects are rough (a binomial for the others' count): they choose, they do not judge.
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
