"""Estimates from shuffled reports, and what real protocols leak.

GSPA Figure 3: error of the estimated mean and frequency against how many are cautious, and how cautious. What real
protocols leak where published formulas claim less: each number straight from its definition. Nothing of the latter is
shared with the accountant, so that its bounds can be tested against these numbers, and the published formulas refuted
by them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse, stats
from scipy.special import gammaln

from shuffledp.numerics.floats import FloatArray
from shuffledp.numerics.randomness import Randomness, simulation_random
from shuffledp.questions.frequency import frequency
from shuffledp.questions.mean import mean
from shuffledp.questions.question import Weights
from shuffledp.questions.tally import ShuffledReports
from shuffledp.randomizers.base import NumberRandomizer
from shuffledp.randomizers.categorical import RandomizedResponse
from shuffledp.randomizers.noise import Laplace
from shuffledp.randomizers.numeric import OneBit
from shuffledp.reproduce.base import (
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    Cell,
    Outcome,
    Picture,
    Progress,
    Reproduction,
    Table,
    number,
)
from shuffledp.setting import Seen

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

USERS = 10_000
FRACTIONS = (0.54, 0.37, 0.09)
BUDGETS = (0.1, 0.5, 1.0)
"""Local budgets of cautious, medium and liberal users."""
LOW, HIGH, CENTRE, SPREAD = 20.0, 80.0, 50.0, 10.0
"""Range, mean and deviation of the numbers, normal and clipped to the range; the paper leaves the deviation open."""
DENSITY = 0.7
REPEATS, QUICK_REPEATS = 1000, 100
SEED = 3
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
CAUTIOUS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
PANELS = {
    "a": ("mean", "share f_c of the cautious"),
    "b": ("mean", "budget epsilon_c of the cautious"),
    "c": ("frequency", "share f_c of the cautious"),
    "d": ("frequency", "budget epsilon_c of the cautious"),
}
HEADER = ("panel", "question", "x", "series", "mean absolute error", "low", "high", "repeats")


@dataclass(frozen=True)
class ComparedEstimator:
    """One estimator of a comparison: the papers' or one of this package.

    Parameters
    ----------
    label : str
        Name of the estimator in the legend.
    colour : str
        Colour of its line.
    seen : {"reports", "levels"}
        View of the server: "reports" withholds the budget levels, "levels" shows them.
    weights : {"population", "precision"}
        Rule by which estimates of the levels are combined if levels are seen.
    noise : callable, optional
        Randomizer for means; frequencies use randomized response.
    """

    label: str
    colour: str
    seen: Seen
    weights: Weights = "population"
    noise: Callable[[float, float], NumberRandomizer] | None = None


MEANS = (
    ComparedEstimator("Algorithm 1: Laplace, plain average", PURPLE, "reports", noise=Laplace),
    ComparedEstimator("Laplace, levels shown, precision weights", ORANGE, "levels", "precision", noise=Laplace),
    ComparedEstimator("one bit, levels withheld", BLUE, "reports", noise=OneBit),
    ComparedEstimator("one bit, levels shown, precision weights", GREEN, "levels", "precision", noise=OneBit),
)
FREQUENCIES = (
    ComparedEstimator("Algorithm 2: randomized response, levels withheld", PURPLE, "reports"),
    ComparedEstimator("randomized response, levels shown, precision weights", GREEN, "levels", "precision"),
)
WAYS = {"mean": MEANS, "frequency": FREQUENCIES}


def personal_budgets(share: float, cautious: float) -> FloatArray:
    """Return the local budgets of all users, in nats; medium and liberal users keep their proportion.

    Parameters
    ----------
    share : float
        Share of cautious users, in (0, 1).
    cautious : float
        Local budget of the cautious users, nats.
    """
    rest = (1.0 - share) * np.array(FRACTIONS[1:]) / sum(FRACTIONS[1:])
    counts = np.rint(np.array([share, rest[0]]) * USERS).astype(np.int64)
    return np.repeat([cautious, *BUDGETS[1:]], [*counts, USERS - counts.sum()])


def run(quick: bool, progress: Progress) -> Outcome:
    """Simulate every point of the four panels, and return the tables, pictures and caption.

    Parameters
    ----------
    quick : bool
        Whether to compute fewer points and repetitions.
    progress : callable
        Called with the share of the work done, from 0 to 1.
    """
    repeats = QUICK_REPEATS if quick else REPEATS
    points = [
        (panel, question, x, personal_budgets(*((x, BUDGETS[0]) if panel in "ac" else (FRACTIONS[0], x))))
        for panel, (question, _) in PANELS.items()
        for x in (SHARES if panel in "ac" else CAUTIOUS)[:: 2 if quick else 1]
    ]
    rows: list[tuple[Cell, ...]] = []
    for done, (panel, question, x, budgets) in enumerate(points):
        for way in WAYS[question]:
            error, half = absolute_error(way, budgets, repeats)
            rows.append((panel, question, x, way.label, error, error - half, error + half, repeats))
        progress((done + 1) / len(points))
    table = Table(HEADER, rows)
    picture = Picture(lambda figure: draw(figure, table), (9.6, 7.6))
    return Outcome({"gspa-figure-3": table}, {"gspa-figure-3": picture}, caption(table, repeats))


def absolute_error(way: ComparedEstimator, budgets: FloatArray, repeats: int) -> tuple[float, float]:
    """Return the mean absolute error over simulated collections, and half of its 95 % confidence interval.

    Parameters
    ----------
    way : Way
        Estimator to simulate.
    budgets : ndarray, shape (n,)
        Local budgets, nats.
    repeats : int
        Number of collections, each with records of its own; at least 2.
    """
    random = simulation_random(SEED)
    records = _bits if way.noise is None else _numbers
    errors = np.array([_one(way, records(np.random.default_rng(i)), budgets, random) for i in range(repeats)])
    return float(errors.mean()), float(1.96 * errors.std(ddof=1) / np.sqrt(repeats))


def _numbers(random: np.random.Generator) -> FloatArray:
    return np.clip(random.normal(CENTRE, SPREAD, USERS), LOW, HIGH)


def _bits(random: np.random.Generator) -> FloatArray:
    return (random.random(USERS) < DENSITY).astype(np.float64)


def _one(way: ComparedEstimator, records: FloatArray, budgets: FloatArray, random: Randomness) -> float:
    if way.noise is not None:
        family = way.noise(LOW, HIGH)
        sent = ShuffledReports(family.randomize(records, budgets, random), budgets, way.seen)
        return abs(float(mean(sent, family, weights=way.weights).value) - float(records.mean()))
    response = RandomizedResponse(2)
    sent = ShuffledReports(response.randomize(records.astype(np.int64), budgets, random), budgets, way.seen)
    return abs(float(frequency(sent, response, weights=way.weights).value[1]) - float(records.mean()))


def _series(table: Table, panel: str) -> Iterator[tuple[str, list[float], list[float], list[float], list[float]]]:
    for label in dict.fromkeys(str(row[3]) for row in table.rows if row[0] == panel):
        rows = [row for row in table.rows if row[0] == panel and row[3] == label]
        x, error, low, high = ([float(row[place]) for row in rows] for place in (2, 4, 5, 6))
        yield label, x, error, low, high


def draw(figure: Figure, table: Table) -> None:
    """Draw the four panels of the error figure, as in the paper."""
    panels = figure.subplots(2, 2)
    for axes, (panel, (question, label)) in zip(panels.flat, PANELS.items(), strict=True):
        _panel(axes, table, panel, question)
        axes.set(title=f"({panel}) {question}", xlabel=label, yscale="log", ylabel="mean absolute error")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}")
        axes.tick_params(axis="y", which="minor", labelsize=7)
    for axes in panels[:, 1]:
        axes.legend(fontsize=8)


def _panel(axes: Axes, table: Table, panel: str, question: str) -> None:
    colours = {way.label: way.colour for way in WAYS[question]}
    for label, x, y, low, high in _series(table, panel):
        axes.plot(x, y, color=colours[label], label=label, marker="o", markersize=3)
        axes.fill_between(x, low, high, color=colours[label], alpha=0.2, linewidth=0)


def caption(table: Table, repeats: int) -> list[str]:
    """Return the caption, which states what the four panels show."""
    at = {(str(row[0]), float(row[2]), str(row[3])): float(row[4]) for row in table.rows}
    means, shares = [way.label for way in MEANS], [way.label for way in FREQUENCIES]
    x, y = 0.5, CAUTIOUS[0]
    falls = at["b", CAUTIOUS[-1], means[0]] < at["b", y, means[0]]
    return [
        f"**Computed.** Mean absolute error over {repeats:,} collections of {USERS:,} users (shaded: 95 % intervals), "
        "with the paper's shares 0.54, 0.37, 0.09 at budgets 0.1, 0.5, 1; in (a) and (c) the share of the cautious "
        "varies, the others keep their proportion; in (b) and (d) the budget of the cautious varies. Numbers are "
        "N(50, 10^2) clipped to [20, 80] (the paper leaves the deviation open), the attribute has density 0.7. Records "
        "and budgets are independent. Noise from a seeded generator: a simulation.",
        "**The paper shows** errors that grow with the share of the cautious and fall with their budget.",
        f"**Agrees.** Algorithm 1's error {'falls' if falls else 'does not fall'} with the budget of the cautious, "
        f"from {number(at['b', y, means[0]])} at {y:g} to {number(at['b', CAUTIOUS[-1], means[0]])} at "
        f"{CAUTIOUS[-1]:g}; Algorithm 2's from {number(at['d', y, shares[0]])} to "
        f"{number(at['d', CAUTIOUS[-1], shares[0]])}.",
        f"**Beyond.** At the same budgets one bit per user has {number(at['a', x, means[2]])} where Algorithm 1 has "
        f"{number(at['a', x, means[0]])} (half of the users cautious); with levels shown and precision weights it has "
        f"{number(at['a', x, means[3]])}, and randomized response {number(at['c', x, shares[1]])} instead of "
        f"{number(at['c', x, shares[0]])}. Precision weights are right only because budgets do not depend on the "
        "records, and showing levels costs amplification: see the page on plans.",
    ]


GSPA_FIGURE_3 = Reproduction("gspa-figure-3", "GSPA, Figure 3", "Error of mean and frequency", run, full_minutes=4.0)


Array = NDArray[np.float64]
Levels = tuple[tuple[float, int], ...]


@dataclass(frozen=True)
class SimulatedMean:
    """A simulated mean and a two-sided interval that holds with the stated confidence, however small the mean.

    Parameters
    ----------
    value : float
        The mean.
    lower, upper : float
        Ends of the interval.
    confidence : float
        Probability that the interval covers the expectation, in (0, 1).
    """

    value: float
    lower: float
    upper: float
    confidence: float


def bernstein(values: Array, top: float, confidence: float) -> SimulatedMean:
    """Return the empirical Bernstein interval (Maurer and Pontil 2009, Thm 4) for a mean of values in [0, top]."""
    x = values / top
    logs = math.log(4.0 / (1.0 - confidence))  # two sides, each the two events of the theorem
    width = math.sqrt(2.0 * float(x.var(ddof=1)) * logs / x.size) + 7.0 * logs / (3.0 * (x.size - 1))
    mean = float(x.mean())
    return SimulatedMean(mean * top, max(mean - width, 0.0) * top, (mean + width) * top, confidence)


def clopper_pearson(hits: int, trials: int, alpha: float) -> tuple[float, float]:
    """Return the lower and upper confidence limits for a probability, each wrong with chance at most alpha.

    ``hits`` of ``trials`` independent trials succeeded.
    """
    lower = float(stats.beta.ppf(alpha, hits, trials - hits + 1)) if hits else 0.0
    upper = float(stats.beta.isf(alpha, hits + 1, trials - hits)) if hits < trials else 1.0
    return lower, upper


def _root(falling: Callable[[float], float], top: float) -> float:
    """Where a falling function on [0, top] is zero."""
    root: Any = optimize.brentq(falling, 0.0, top, xtol=1e-9)
    return float(root)


# ------------------------------------------------------------------ Laplace noise, one loud user among quiet ones


def laplace_cdf(y: float, x: float, epsilon: float) -> float:
    """Return the probability that x plus Laplace noise of scale 1/epsilon is at most y."""
    z = (y - x) * epsilon
    return 0.5 * math.exp(z) if z < 0 else 1.0 - 0.5 * math.exp(-z)


@dataclass(frozen=True)
class Window:
    """Attack that counts the Laplace reports in [low, high]; records lie in [0, 1], and all others hold 1.

    ``victim`` and ``others`` are the local budgets of the attacked user and of the n - 1 others.
    """

    low: float
    high: float
    victim: float
    others: float
    n: int

    def chance(self, x: float, epsilon: float) -> float:
        """Return the probability that the report on record x with budget epsilon lies in the window."""
        return laplace_cdf(self.high, x, epsilon) - laplace_cdf(self.low, x, epsilon)

    def laws(self) -> tuple[Array, Array]:
        """Return the law of the count if the attacked user holds 0, and if she holds 1, each of shape (n + 1,)."""
        others = np.append(stats.binom.pmf(np.arange(self.n), self.n - 1, self.chance(1.0, self.others)), 0.0)
        more = np.append(0.0, others[:-1])
        zero, one = (others + self.chance(x, self.victim) * (more - others) for x in (0.0, 1.0))
        return zero, one

    def delta(self, epsilon: float) -> float:
        """Return the hockey-stick divergence at epsilon between the two laws of the count, the larger direction."""
        zero, one = self.laws()
        t = math.exp(epsilon)
        return max(float(np.maximum(zero - t * one, 0).sum()), float(np.maximum(one - t * zero, 0).sum()))

    def epsilon(self, delta: float) -> float:
        """Return the epsilon, in nats, at which the divergence of the count equals delta."""

        def excess(epsilon: float) -> float:
            return self.delta(epsilon) - delta

        return _root(excess, self.victim)

    def simulated_delta(self, epsilon: float, trials: int, seed: int, alpha: float) -> float:
        """Return a lower confidence limit (Clopper-Pearson) of the attack's delta at epsilon, by simulation.

        The test of the attack is "at least k reports in the window"; k is chosen from the exact laws, before anything
        is drawn. The others' reports are independent, so their number in the window is binomial and drawn as such.

        Parameters
        ----------
        epsilon : float
            Nats.
        trials : int
            Number of simulated collections for each record of the attacked user.
        seed : int
            Seed of the simulation.
        alpha : float
            Probability that the limit is wrong.
        """
        zero, one = self.laws()
        k = int(np.flatnonzero(zero > math.exp(epsilon) * one)[0])
        random = np.random.default_rng(seed)
        limits = []
        for x, side in ((0.0, 0), (1.0, 1)):
            count = random.binomial(self.n - 1, self.chance(1.0, self.others), trials)
            count += random.random(trials) < self.chance(x, self.victim)
            limits.append(clopper_pearson(int((count >= k).sum()), trials, alpha / 2)[side])
        return limits[0] - math.exp(epsilon) * limits[1]


QUIET_LAPLACE = {
    2.0: Window(-0.776, 0.409, victim=2.0, others=0.01, n=10_000),
    1.0: Window(-1.530, 0.417, victim=1.0, others=0.01, n=10_000),
}
"""The best window found for a victim at 2, and at 1, among 9,999 users at 0.01, for delta = 1e-4."""


# ------------------------------------------------------------------ ordered outputs: three symbols per step


def _symbols(e0: float, epsilon: float) -> tuple[Array, Array]:
    """Others on the third symbol: chances of the symbols, and (R(0) - e^eps R(1))/R(2) at them."""
    s, t = 1 / (math.exp(e0) + 2), math.exp(epsilon)
    chances = np.array([s, s, 1 - 2 * s])
    return chances, np.array([math.exp(e0) - t, 1 - math.exp(e0) * t, (1 - t) * math.exp(-e0)])


def _level_law(e0: float, steps: int, epsilon: float) -> tuple[Array, Array]:
    """Values and masses of the level's part of the sum, by its counts of the first two symbols."""
    chances, values = _symbols(e0, epsilon)
    a, b = np.meshgrid(np.arange(steps + 1.0), np.arange(steps + 1.0), indexing="ij")
    inside = a + b <= steps
    a, b = a[inside], b[inside]
    c = steps - a - b
    logs = gammaln(steps + 1) - gammaln(a + 1) - gammaln(b + 1) - gammaln(c + 1)
    logs += a * math.log(chances[0]) + b * math.log(chances[1]) + c * math.log(chances[2])
    keep = logs > -80.0
    return (a * values[0] + b * values[1] + c * values[2])[keep], np.exp(logs[keep])


def three_symbol_delta(levels: Levels, epsilon: float) -> float:
    """Return the exact delta for permuted users who answer in order by 3-ary randomized response.

    The victim holds 0 or 1, and all other users hold symbol 2. The density of z_1..z_n relative to "everybody on symbol
    2" is (1/n) sum_t R_t(x)(z_t)/R_t(2)(z_t), so that delta = (1/n) E(sum_t v_t)_+ over independent symbols.

    Parameters
    ----------
    levels : sequence of (float, int)
        Two local budgets (nats), and the number of steps with each.
    epsilon : float
        Nats.
    """
    (first, n1), (second, n2) = levels
    values, masses = _level_law(first, n1, epsilon)
    order = np.argsort(values)
    values, masses = values[order], masses[order]
    above = np.append(np.cumsum(masses[::-1])[::-1], 0.0)
    moment = np.append(np.cumsum((masses * values)[::-1])[::-1], 0.0)
    shifts, weights = _level_law(second, n2, epsilon)
    start = np.searchsorted(values, -shifts)
    return float(np.sum(weights * (moment[start] + shifts * above[start]))) / (n1 + n2)


def simulated_protocol_delta(levels: Levels, epsilon: float, runs: int, seed: int, confidence: float) -> SimulatedMean:
    """Return delta estimated by runs of the real protocol: users are permuted and answer in order.

    It averages (1 - e^eps P1/P0)_+ over outputs drawn if the victim holds 0, with P0 and P1 the probability of all that
    the analyst sees if she holds 0, and if she holds 1.

    Parameters
    ----------
    levels, epsilon
        As for `three_symbol_delta`.
    runs : int
        Number of runs.
    seed : int
        Seed of the simulation.
    confidence : float
        Confidence of the interval, in (0, 1).
    """
    random = np.random.default_rng(seed)
    budgets = np.concatenate([np.full(count, e0) for e0, count in levels])
    lie = (1 / (np.exp(budgets) + 2)).astype(np.float32)
    grow = np.exp(budgets)
    # density ratios R(0)/R(2) and R(1)/R(2) at the symbols 0, 1, 2
    ratio0, ratio1 = np.stack([grow, 1 / grow**0, 1 / grow]), np.stack([1 / grow**0, grow, 1 / grow])
    samples, steps = [], np.arange(budgets.size)
    for start in range(0, runs, 1000):
        size = min(1000, runs - start)
        records = np.full((size, budgets.size), 2)
        # the victim is user 0; the permutation sends her to a uniform step, the others all hold symbol 2
        records[np.arange(size), random.integers(budgets.size, size=size)] = 0
        draw = random.random((size, budgets.size), dtype=np.float32)
        lied = np.where(draw < lie, 1, np.where(draw < 2 * lie, 2, 0))
        seen = (records + lied) % 3
        p0, p1 = ratio0[seen, steps].sum(axis=1), ratio1[seen, steps].sum(axis=1)
        samples.append(np.maximum(1 - math.exp(epsilon) * p1 / p0, 0))
    return bernstein(np.concatenate(samples), 1.0, confidence)


def importance_delta(levels: Levels, epsilon: float, samples: int, seed: int, confidence: float) -> SimulatedMean:
    """Return the delta of `three_symbol_delta`, estimated by importance sampling, with a confidence interval.

    E(S)_+ = M(theta) E_theta[S_+ e^(-theta S)], terms up to M/(e theta).

    Parameters
    ----------
    levels, epsilon
        As for `three_symbol_delta`.
    samples : int
        Number of samples.
    seed : int
        Seed of the simulation.
    confidence : float
        Confidence of the interval, in (0, 1).
    """
    laws = [(count, *_symbols(e0, epsilon)) for e0, count in levels]

    def log_mgf(theta: float) -> float:
        return sum(count * math.log(float(q @ np.exp(theta * v))) for count, q, v in laws)

    def chernoff(x: float) -> float:
        return log_mgf(x) - math.log(x)

    minimum: Any = optimize.minimize_scalar(chernoff, bounds=(1e-3, 5), method="bounded")
    theta = float(minimum.x)
    random, total = np.random.default_rng(seed), np.zeros(samples)
    for count, q, v in laws:
        tilted = q * np.exp(theta * v)
        total += random.multinomial(count, tilted / tilted.sum(), samples) @ v
    scale = math.exp(log_mgf(theta)) / sum(count for _, count in levels)
    return bernstein(scale * np.maximum(total, 0) * np.exp(-theta * total), scale / (math.e * theta), confidence)


# ------------------------------------------------------------------ one permutation for all rounds


def round_counts(e0: float, rounds: int) -> tuple[Array, Array]:
    """Return the law of a user's number of ones over several rounds if she holds 0, and its likelihood ratios.

    Parameters
    ----------
    e0 : float
        Local budget of one round, nats.
    rounds : int
        Number of rounds.

    Returns
    -------
    law, ratio : ndarray, shape (rounds + 1,)
        Probability of each number of ones if she holds 0; and the probability if she holds 1, over that.
    """
    k = np.arange(rounds + 1.0)
    return stats.binom.pmf(k, rounds, 1 / (1 + math.exp(e0))), np.exp(e0 * (2 * k - rounds))


def linked_rounds_delta(e0: float, rounds: int, n: int, epsilon: float, step: float = 0.2) -> float:
    """Return delta for n users' linked randomized responses over several rounds under one permutation.

    All other users hold 0. What is seen can be reduced to the users' numbers of ones. Its likelihood ratio is the mean
    m of the users' own ratios (`round_counts`), with E m = 1, so that delta = E(m - e^eps)_+ = 1 - e^eps + E(e^eps -
    m)_+. Only m < e^eps matters, so large ratios are dropped from the convolution.

    Parameters
    ----------
    e0 : float
        Local budget of one round, nats.
    rounds, n : int
        Number of rounds, and of users.
    epsilon : float
        Nats.
    step : float
        Width of the grid onto which ratios are split linearly; it raises delta by about step^2/(8 n).
    """
    chances, ratios = round_counts(e0, rounds)
    length = int(math.exp(epsilon) * n / step) + 2
    size = 1 << (2 * length).bit_length()
    law = np.zeros(length)
    for chance, ratio in zip(chances, ratios, strict=True):
        cell, part = divmod(ratio / step, 1.0)
        for at, share in ((int(cell), 1 - part), (int(cell) + 1, part)):
            if at < length:
                law[at] += chance * share

    def add(x: Array, y: Array) -> Array:
        return np.maximum(np.fft.irfft(np.fft.rfft(x, size) * np.fft.rfft(y, size), size)[:length], 0.0)

    total, power, left = np.eye(1, length)[0], law, n
    while left:
        total = add(total, power) if left & 1 else total
        left >>= 1
        power = add(power, power) if left else power
    mean = np.arange(length) * step / n
    return 1 - math.exp(epsilon) + float(total @ np.maximum(math.exp(epsilon) - mean, 0))


def unshuffled_rounds_epsilon(e0: float, rounds: int, delta: float) -> float:
    """Return the epsilon, in nats, of one user's answers to several rounds without any shuffling.

    Each round is binary randomized response with local budget ``e0`` (nats); ``delta`` is in (0, 1).
    """
    zero, ratios = round_counts(e0, rounds)

    def excess(epsilon: float) -> float:
        return float(np.maximum(zero * ratios - math.exp(epsilon) * zero, 0).sum()) - delta

    return _root(excess, e0 * rounds) if excess(0.0) > 0 else 0.0


# ------------------------------------------------------------------ an approximate randomizer far from every pure one


def pairs_randomizer(k: int, epsilon: float, delta: float) -> tuple[list[tuple[int, int]], Array]:
    """Return the outputs, ordered pairs (a, b) with a != b, and the probability matrix of a randomizer of k records.

    R(x)(a, b) = e^eps t if x is neither, e^eps t + delta if x = a, t if x = b.
    """
    outputs = [(a, b) for a in range(k) for b in range(k) if a != b]
    E = math.exp(epsilon)
    t = (1 / (k - 1) - delta) / (E * (k - 1) + 1)
    matrix = np.array([[E * t + delta if x == a else t if x == b else E * t for a, b in outputs] for x in range(k)])
    return outputs, matrix


def nearest_pure(matrix: Array, epsilon: float) -> float:
    """Return the least d such that a pure epsilon-LDP randomizer is within total variation d of every row.

    It is the value of a linear program.

    Its outputs are those of the matrix and one more, onto which it may put whatever it likes.
    """
    k, m = matrix.shape[0], matrix.shape[1] + 1
    target = np.hstack([matrix, np.zeros((k, 1))])
    cells, E = k * m, math.exp(epsilon)
    rows, columns, values, right = [], [], [], []

    def constrain(entries: list[tuple[int, float]], limit: float) -> None:
        for column, value in entries:
            rows.append(len(right))
            columns.append(column)
            values.append(value)
        right.append(limit)

    for y in range(m):
        for x in range(k):
            constrain([(x * m + y, -1.0), (cells + x * m + y, -1.0)], -target[x, y])  # lost >= target - pure
            for other in range(k):
                if other != x:
                    constrain([(x * m + y, 1.0), (other * m + y, -E)], 0.0)
    for x in range(k):
        constrain([*((cells + x * m + y, 1.0) for y in range(m)), (2 * cells, -1.0)], 0.0)  # sum of lost <= d
    system = sparse.coo_matrix((values, (rows, columns)), shape=(len(right), 2 * cells + 1))
    whole = sparse.hstack([sparse.kron(sparse.eye(k), np.ones((1, m))), sparse.coo_matrix((k, cells + 1))])
    cost = np.zeros(2 * cells + 1)
    cost[-1] = 1.0
    return float(optimize.linprog(cost, A_ub=system, b_ub=right, A_eq=whole, b_eq=np.ones(k), method="highs").fun)
