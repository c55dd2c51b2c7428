"""GSPA Figure 4 and Table 3: training under personal budgets, as published and honest.

As published, the average gradient of a block is clipped, and noise of scale 2C/m is added as if that bounded one
example's part (Chen, Cao, Ge 2024, Algorithm 3; and their ICASSP 2024 paper, Algorithm 1, with Laplace noise). No
guarantee follows: `PublishedRun.guarantee` is None. See docs/learning.md for how far the claim is off. The honest runs
are those of `shuffledp.learning`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting import GaussianSumProfile, gspa_mu
from shuffledp.errors import InvalidInput, whole_number
from shuffledp.learning.features import OrientedGradients, public_projection
from shuffledp.learning.inputs import assign_clients, read_digits, sample_folder
from shuffledp.learning.messages import Clipping
from shuffledp.learning.network import Network
from shuffledp.learning.settings import RoundReport
from shuffledp.learning.training import ShuffledSGDClassifier
from shuffledp.numerics.floats import TINY, FloatArray
from shuffledp.numerics.randomness import simulation_random
from shuffledp.numerics.tails import normal_divergence
from shuffledp.reproduce.base import (
    BLUE,
    GREEN,
    GREY,
    INK,
    NAMES,
    ORANGE,
    PURPLE,
    RED,
    Cell,
    Outcome,
    Picture,
    Progress,
    Reproduction,
    Table,
    budgets,
    epsilons,
    number,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ClippedNorm = Literal["average-l2", "average-l1", "average-column-sum", "examples-l1", "examples-l2", "none"]
CLIPPED_NORMS: tuple[ClippedNorm, ...] = (
    "average-l2", "average-l1", "average-column-sum", "examples-l1", "examples-l2", "none",
)  # fmt: skip


@dataclass(frozen=True)
class PaperReading:
    """One interpretation of the published pseudo-code for private training.

    Parameters
    ----------
    noise : {"gaussian", "laplace"}
        Gaussian: sigma = (2C/m) sqrt(2 ln(1.25/delta))/epsilon; Laplace: scale 2C/(m epsilon).
    clipped : str
        One of `CLIPPED_NORMS`. "average-column-sum" clips each weight matrix of the average by its largest column sum
        of absolute values (the induced 1-norm), and each bias by its sum, as the public script does.
    bound : float
        Clipping bound C, positive.
    divisor : int
        Number m in the noise scale.
    delta : float
        Delta in the formula of Gaussian noise.
    hidden : int
        Hidden units.
    step : float
        Step length.
    epochs : int
        Passes over the blocks, in one fixed order.
    """

    noise: Literal["gaussian", "laplace"]
    clipped: ClippedNorm
    bound: float
    divisor: int
    delta: float = 1e-5
    hidden: int = 1000
    step: float = 0.05
    epochs: int = 50


@dataclass(frozen=True, eq=False)
class PublishedRun:
    """Results of one run of a published training experiment.

    Parameters
    ----------
    accuracies : ndarray, shape (epochs,)
        Share of the test set predicted correctly after each epoch.
    train_accuracy : float
        Share of the training set predicted correctly at the end.
    weights : ndarray
        Of the last model.
    network : Network
        Its shape.
    guarantee : None
        Always: no theorem covers this.
    """

    accuracies: FloatArray
    train_accuracy: float
    weights: FloatArray
    network: Network
    guarantee: None = None


def train_as_published(
    features: FloatArray,
    labels: NDArray[np.int64],
    test: tuple[FloatArray, NDArray[np.int64]],
    epsilons: ArrayLike,
    reading: PaperReading,
    *,
    seed: int,
) -> PublishedRun:
    """Train as the papers' pseudo-code says, block i with budget epsilons[i], and return the results.

    Parameters
    ----------
    features, labels : ndarray, shapes (n, inputs) and (n,)
        Training data; spread over the blocks at random.
    test : (ndarray, ndarray)
        Test data.
    epsilons : array_like, shape (blocks,)
        Budget of each block in nats, positive, or inf for no noise.
    reading : Reading
        Interpretation of the pseudo-code.
    seed : int
        Seed of all random draws: this is a simulation.

    Raises
    ------
    InvalidInput
        If a budget is not positive, there are fewer examples than blocks, or the reading is unknown.
    """
    budgets = np.atleast_1d(np.asarray(epsilons, dtype=np.float64))
    whole_number(reading.epochs, "epochs", 1)
    if reading.clipped not in CLIPPED_NORMS or reading.noise not in ("gaussian", "laplace"):
        raise InvalidInput(f"this reading is unknown: {reading}")
    if not (budgets > 0.0).all() or not budgets.size <= labels.size:
        raise InvalidInput("every block needs a positive budget and at least one example")
    draw = np.random.default_rng(seed)
    network = Network((features.shape[1], reading.hidden, int(max(labels.max(), test[1].max())) + 1))
    weights = network.initial(simulation_random(seed))
    order = draw.permutation(labels.size)
    blocks = [(features[rows], labels[rows]) for rows in np.array_split(order, budgets.size)]
    factor = math.sqrt(2.0 * math.log(1.25 / reading.delta)) if reading.noise == "gaussian" else 1.0
    scales = 2.0 * reading.bound / reading.divisor * factor / budgets
    accuracies: list[float] = []
    for _ in range(reading.epochs):
        for (rows, targets), scale in zip(blocks, scales.tolist(), strict=True):
            sent = _message(network, weights, rows, targets, reading)
            if scale > 0.0:
                sent += (
                    draw.normal(0.0, scale, sent.size)
                    if reading.noise == "gaussian"
                    else draw.laplace(0.0, scale, sent.size)
                )
            weights -= reading.step * sent
        accuracies.append(_share(network, weights, *test))
    return PublishedRun(np.array(accuracies), _share(network, weights, features, labels), weights, network)


def _message(
    network: Network, weights: FloatArray, rows: FloatArray, labels: NDArray[np.int64], reading: PaperReading
) -> FloatArray:
    if reading.clipped.startswith("examples"):
        order: Literal[1, 2] = 1 if reading.clipped == "examples-l1" else 2
        return Clipping("example", "examples", reading.bound, order).message(network, weights, rows, labels)
    mean = network.weighted_sum(network.backward(weights, rows, labels)) / labels.size
    if reading.clipped == "average-column-sum":
        for matrix, bias in network.layers(mean):
            for part, norm in ((matrix, float(np.abs(matrix).sum(axis=0).max())), (bias, float(np.abs(bias).sum()))):
                part *= min(1.0, reading.bound / max(norm, TINY))
        return mean
    if reading.clipped != "none":
        norm = float(np.linalg.norm(mean, ord=1 if reading.clipped == "average-l1" else 2))
        mean *= min(1.0, reading.bound / max(norm, TINY))
    return mean


def _share(network: Network, weights: FloatArray, rows: FloatArray, labels: NDArray[np.int64]) -> float:
    return float(np.mean(network.scores(weights, rows).argmax(axis=1) == labels))


K = TypeVar("K")
VARIABLE = "SHUFFLEDP_MNIST"
COMPONENTS = 60
DELTA = 1e-5
"""Central delta of honest runs, and the delta of the papers' noise."""


@dataclass(frozen=True, eq=False)
class Data:
    """Training and test digits as features for the networks, with their labels.

    Parameters
    ----------
    components, edges : (ndarray, ndarray)
        Features of training and test digits: 60 principal components of the training digits, as in the papers; and
        oriented gradients, which are made from no data.
    labels : (ndarray of int64, ndarray of int64)
        Of training and test digits.
    """

    components: tuple[FloatArray, FloatArray]
    edges: tuple[FloatArray, FloatArray]
    labels: tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True)
class TrainingCurve:
    """Accuracy and privacy cost of one training run by epoch.

    Parameters
    ----------
    accuracies : tuple of float
        Share of the test digits predicted correctly, after each epoch.
    epsilons : tuple of float
        Largest certified central epsilon of a client after each epoch, nats; empty if nothing is guaranteed.
    training : float
        Share of the training digits predicted correctly at the end.
    """

    accuracies: tuple[float, ...]
    epsilons: tuple[float, ...]
    training: float


class TrainingMethod(Protocol):
    """Interface of a way of training that can be repeated under several seeds."""

    def run(self, data: Data, seed: int) -> TrainingCurve:
        """Train one model and return its accuracy by epoch; ``seed`` determines all random draws."""
        ...


@dataclass(frozen=True)
class Published:
    """Training by the published pseudo-code, from which no guarantee follows.

    Parameters
    ----------
    reading : Reading
        Interpretation of the pseudo-code.
    budgets : tuple of float
        Local budget of each block in nats; inf for no noise.
    """

    reading: PaperReading
    budgets: tuple[float, ...]

    def run(self, data: Data, seed: int) -> TrainingCurve:
        """Train one model by the published pseudo-code and return its accuracy by epoch."""
        test = data.components[1], data.labels[1]
        outcome = train_as_published(data.components[0], data.labels[0], test, self.budgets, self.reading, seed=seed)
        return TrainingCurve(tuple(outcome.accuracies.tolist()), (), outcome.train_accuracy)


@dataclass(frozen=True)
class Honest:
    """Softmax regression on oriented gradients; every example's gradient is clipped, the server sees every message.

    Parameters
    ----------
    mechanism : {"gaussian", "laplace"}
        Noise of a message.
    budgets : tuple of float
        Local budget of each client's message, one per client.
    deltas : tuple of float
        delta0 of each client's message; empty for Laplace noise.
    rounds : int
        Messages of every client.
    clip, step : float
        Largest norm of one example's gradient, and the length of a step.
    """

    mechanism: str
    budgets: tuple[float, ...]
    deltas: tuple[float, ...]
    rounds: int
    clip: float
    step: float

    def run(self, data: Data, seed: int) -> TrainingCurve:
        """Train one model and return its accuracy and certified epsilon after every round."""
        reports: list[RoundReport] = []
        model = ShuffledSGDClassifier(
            unit="example", seen="users", epsilon0=list(self.budgets), delta0=list(self.deltas) or None, delta=DELTA,
            clip=self.clip, rounds=self.rounds, hidden=(), step=self.step, mechanism=self.mechanism, classes=10,
            progress=reports.append, random=simulation_random(seed),
        )  # fmt: skip
        train_labels = data.labels[0]
        groups = assign_clients(train_labels.size, len(self.budgets), simulation_random(seed))
        model.fit(data.edges[0], train_labels, groups=groups, validation=(data.edges[1], data.labels[1]))
        return TrainingCurve(
            tuple(each.accuracy for each in reports),
            tuple(each.epsilon for each in reports),
            model.score(data.edges[0], train_labels),
        )


@dataclass(frozen=True)
class Trained:
    """Accuracies and epsilons of one way of training under several seeds.

    Parameters
    ----------
    accuracies : ndarray, shape (seeds, epochs)
        Percent of the test digits.
    training : ndarray, shape (seeds,)
        Percent of the training digits at the end.
    epsilons : tuple of float
        Certified central epsilon after each epoch, nats; empty without a guarantee. Budgets are public and the same for
        all seeds, and so are these.
    """

    accuracies: FloatArray
    training: FloatArray
    epsilons: tuple[float, ...]

    @property
    def mean(self) -> FloatArray:
        """Mean accuracy over seeds after each epoch, in percent, shape (epochs,)."""
        return self.accuracies.mean(axis=0)

    @property
    def deviation(self) -> FloatArray:
        """Standard deviation of the accuracy over seeds after each epoch, in percent; 0 for one seed."""
        return self.accuracies.std(axis=0, ddof=1) if self.accuracies.shape[0] > 1 else np.zeros_like(self.mean)


@dataclass(frozen=True)
class Scale:
    """Size of a reproduction of training: data, epochs, rounds, seeds and clients.

    Parameters
    ----------
    folder : Path
        Folder of the idx files.
    epochs : int
        Epochs of the published training.
    rounds : int
        Of the honest training.
    seeds : int
        Number of runs of each way of training.
    clients : int or None
        Of the honest training; None for as many as the paper has blocks.
    note : str
        What the quick variant leaves out, for captions; empty for the full one.
    """

    folder: Path
    epochs: int
    rounds: int
    seeds: int
    clients: int | None = None
    note: str = ""

    @property
    def like_the_paper(self) -> bool:
        """True if the numbers may be compared with the paper's one by one."""
        return not self.note


def scale(quick: bool) -> Scale:
    """Return the size of a reproduction: the bundled sample of digits if ``quick``, else all of MNIST.

    Raises
    ------
    InvalidInput
        If the full variant is asked for, and SHUFFLEDP_MNIST does not name a folder.
    """
    if quick:
        return Scale(
            sample_folder(), 8, 20, 1, 20,
            "**Quick variant:** the bundled 2,000 training and 500 test digits instead of 60,000 and 10,000, fewer "
            "epochs, one seed, and 20 clients in the honest runs; there are as many blocks as in the full variant, so "
            "smaller ones, with the full variant's noise. Accuracies are not to be compared with the paper's one by "
            f"one; the full variant (without `--quick`, {VARIABLE} naming the folder of idx files) takes all of MNIST.",
        )  # fmt: skip
    folder = os.environ.get(VARIABLE)
    if not folder:
        raise InvalidInput(
            f"the full variant trains on MNIST: set the variable {VARIABLE} to the folder with its four idx files, "
            "or use the quick variant (--quick), which trains on the bundled sample"
        )
    return Scale(Path(folder), 50, 50, 3)


def trained(ways: Mapping[K, TrainingMethod], how: Scale, progress: Progress) -> dict[K, Trained]:
    """Return the results of every way of training, each run once in this process and then reused.

    Parameters
    ----------
    ways : mapping of any name to Way
        Ways of training, in the order of the result.
    how : Scale
        Size of the reproduction: data, epochs and seeds.
    progress : callable
        Called with the completed part, from 0 to 1.
    """
    results: dict[K, Trained] = {}
    for done, (name, way) in enumerate(ways.items()):
        curves: list[TrainingCurve] = []
        for seed in range(how.seeds):
            curves.append(_once(how.folder, way, seed))
            progress((done + (seed + 1) / how.seeds) / len(ways))
        results[name] = Trained(
            np.array([[100.0 * share for share in curve.accuracies] for curve in curves]),
            np.array([100.0 * curve.training for curve in curves]),
            curves[0].epsilons,
        )
    return results


def shown_delta() -> str:
    """Return the delta at which honest runs are certified, as text for captions."""
    return f"{DELTA:g}".replace("e-0", "e-")


def shown_epsilon(epsilon: Cell) -> str:
    """Return a certified epsilon as text with two decimals, rounded up."""
    return f"{math.ceil(100.0 * float(epsilon)) / 100.0:.2f}"


def mean_inverse_square(budgets: Iterable[float]) -> float:
    """Return the mean of 1/epsilon^2: the noise variance of one pass, in units of that at epsilon = 1."""
    return float(np.mean([1.0 / each**2 for each in budgets]))


@lru_cache(maxsize=256)
def _once(folder: Path, way: TrainingMethod, seed: int) -> TrainingCurve:
    return way.run(_data(folder), seed)


@lru_cache(maxsize=1)
def _data(folder: Path) -> Data:
    train, test = (read_digits(folder, part) for part in ("train", "test"))
    components = public_projection(train.images, COMPONENTS, public=True, scale=1.0 / 255.0)
    edges = OrientedGradients(28)
    return Data(
        (components(train.images), components(test.images)),
        (edges(train.images), edges(test.images)),
        (train.labels.astype(np.int64), test.labels.astype(np.int64)),
    )


READING = PaperReading("gaussian", "average-l2", 2.0, 600, DELTA)
"""The reading whose accuracies come out as printed: the average gradient of a block is clipped."""
BLOCKS = 100
POPULATIONS = ("unif-3", "constant", "unif-2", "unif-1", "mixed")
COLOURS = dict(zip(POPULATIONS, (GREEN, BLUE, ORANGE, PURPLE, GREY), strict=True))
PAPER = {"constant": 94.8, "unif-2": 93.5}
"""Accuracies in per cent; the paper's text has no number for the others, but calls U(0.5, 1) the best."""
PAPER_BEST = 96.78
NOISE = math.sqrt(2.0 * math.log(1.25 / DELTA))
"""Noise scale of a Gaussian message, in units of sensitivity/epsilon."""
CLIP, STEP = 0.2, 2.0  # of the honest runs, chosen on one seed of the constant budget
CURVES = (
    "training", "population", "epoch", "accuracy", "deviation", "seeds", "epsilon", "delta", "guarantee",
)  # fmt: skip
TABLE = (
    "population", "mean 1/epsilon0^2", "published accuracy", "published deviation", "published training accuracy",
    "paper's accuracy", "published guarantee", "Theorem 5 would claim", "honest accuracy", "honest deviation",
    "honest epsilon", "delta", "seeds",
)  # fmt: skip


def ways(how: Scale) -> dict[str, TrainingMethod]:
    """Return every training of the figure and table, keyed by "published" or "honest" and the population."""
    trainings: dict[str, TrainingMethod] = {}
    for name in POPULATIONS:
        trainings[f"published {name}"] = Published(
            replace(READING, epochs=how.epochs), tuple(epsilons(name, BLOCKS).tolist())
        )
        own = epsilons(name, how.clients or BLOCKS)
        deltas = np.atleast_1d(normal_divergence(own, own / NOISE).upper)  # of the same noise, at its true sensitivity
        trainings[f"honest {name}"] = Honest(
            "gaussian", tuple(own.tolist()), tuple(deltas.tolist()), how.rounds, CLIP, STEP
        )
    return trainings


def run_figure(quick: bool, progress: Progress) -> Outcome:
    """Train every model, and return the figure of accuracy against epochs with its tables and caption.

    Parameters
    ----------
    quick : bool
        Whether to train on the bundled sample of digits instead of all of MNIST.
    progress : callable
        Called with the share of the work done, from 0 to 1.
    """
    how = scale(quick)
    results = trained(ways(how), how, progress)
    table, curves = Table(TABLE, list(summary(results, how))), Table(CURVES, list(curve_rows(results)))
    return Outcome(
        {"gspa-figure-4": curves},
        {"gspa-figure-4": Picture(lambda figure: draw_curves(figure, curves), (9.6, 4.6))},
        caption(table, how),
    )


def run_table(quick: bool, progress: Progress) -> Outcome:
    """Train every model, and return the table of last accuracies and guarantees with its picture and caption.

    Parameters
    ----------
    quick : bool
        Whether to train on the bundled sample of digits instead of all of MNIST.
    progress : callable
        Called with the share of the work done, from 0 to 1.
    """
    how = scale(quick)
    results = trained(ways(how), how, progress)
    table = Table(TABLE, list(summary(results, how)))
    return Outcome(
        {"gspa-table-3": table, "gspa-table-3-settings": Table(("setting", "value"), settings(how))},
        {"gspa-table-3": Picture(lambda figure: draw_table(figure, table, how), (8.6, 3.9))},
        caption(table, how),
    )


def curve_rows(results: dict[str, Trained]) -> Iterator[tuple[Cell, ...]]:
    """Return the rows of the accuracy table, one for each training and epoch."""
    for key, runs in results.items():
        training, _, name = key.partition(" ")
        for at, (mean, deviation) in enumerate(zip(runs.mean.tolist(), runs.deviation.tolist(), strict=True)):
            privacy = (runs.epsilons[at], DELTA, "plain composition") if runs.epsilons else ("", "", "none")
            yield training, name, at + 1, mean, deviation, runs.accuracies.shape[0], *privacy


def summary(results: dict[str, Trained], how: Scale) -> Iterator[tuple[Cell, ...]]:
    """Return the rows of the summary table, one for each population: accuracies and guarantees after the last epoch."""
    for name in POPULATIONS:
        published, honest = results[f"published {name}"], results[f"honest {name}"]
        claimed = GaussianSumProfile(gspa_mu(budgets(name, BLOCKS)) * math.sqrt(how.epochs)).epsilon(DELTA).upper
        yield (
            name,
            mean_inverse_square(epsilons(name, BLOCKS).tolist()),
            float(published.mean[-1]),
            float(published.deviation[-1]),
            float(published.training.mean()),
            PAPER.get(name, ""),
            "none",
            claimed,
            float(honest.mean[-1]),
            float(honest.deviation[-1]),
            honest.epsilons[-1],
            DELTA,
            how.seeds,
        )


def settings(how: Scale) -> list[tuple[Cell, ...]]:
    """Return the settings of the published training, as this package reads the paper, as rows of a table."""
    return [
        ("blocks, in one fixed order", BLOCKS),
        ("clipped", "the average gradient of a block, Euclidean norm"),
        ("C", READING.bound),
        ("noise", "Gaussian, (2 C/m) sqrt(2 ln(1.25/delta))/epsilon0"),
        ("m", READING.divisor),
        ("delta in the noise", READING.delta),
        ("features", "60 principal components of the training digits, not paid for"),
        ("hidden units", READING.hidden),
        ("step", READING.step),
        ("epochs", how.epochs),
        ("guarantee", "none"),
    ]


def draw_curves(figure: Figure, table: Table) -> None:
    """Draw accuracy against epochs in two panels, as published and with an honest guarantee, on the empty figure."""
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, training in ((left, "published"), (right, "honest")):
        for name in POPULATIONS:
            rows = [row for row in table.rows if row[0] == training and row[1] == name]
            spent = "" if rows[-1][6] == "" else f", ε = {shown_epsilon(rows[-1][6])}"
            curve(axes, rows, COLOURS[name], (NAMES[name].split(":")[0] if spent else NAMES[name]) + spent)
        below(axes)
    left.set(title="As published: no guarantee", ylabel="test accuracy, %")
    right.set_title(f"Honest: certified, δ = {shown_delta()}")


def curve(axes: Axes, rows: Sequence[Sequence[Cell]], colour: str, label: str) -> None:
    """Draw one curve of accuracy (fourth column; the fifth is its deviation) against epochs (third column)."""
    epochs = [float(row[2]) for row in rows]
    mean, deviation = (np.array([float(row[at]) for row in rows]) for at in (3, 4))
    axes.plot(epochs, mean, color=colour, label=label)
    axes.fill_between(epochs, mean - deviation, mean + deviation, color=colour, alpha=0.18, linewidth=0)


def below(axes: Axes) -> None:
    """Put the legend under the panel, and mark whole epochs on the horizontal axis."""
    axes.set_xlabel("epoch")
    axes.locator_params("x", integer=True)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, fontsize=8.5)


def draw_table(figure: Figure, table: Table, how: Scale) -> None:
    """Draw one line for each population: published accuracy, and accuracy with an honest guarantee."""
    axes = figure.subplots()
    places = range(len(table.rows), 0, -1)
    for place, row in zip(places, table.rows, strict=True):
        published, honest = float(row[2]), float(row[8])
        axes.plot([published, honest], [place, place], color="#d0d0d0", linewidth=1.2, zorder=1)
        axes.plot(published, place, "o", color=RED, markerfacecolor="white", label="as published: no guarantee")
        axes.plot(honest, place, "o", color=BLUE, label=f"honest, certified at δ = {shown_delta()}")
        if how.like_the_paper and row[5] != "":
            axes.plot(float(row[5]), place, "D", color=INK, markersize=4, label="printed in the paper")
        axes.annotate(
            f"ε = {shown_epsilon(row[10])}", (honest, place), (0, 7), textcoords="offset points", ha="center",
            fontsize=8.5, color=BLUE,
        )  # fmt: skip
    axes.set_yticks(list(places), [NAMES[str(row[0])] for row in table.rows])
    axes.set(xlabel="test accuracy, %", ylim=(0.5, len(table.rows) + 0.7))
    unique = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    figure.legend(unique.values(), unique.keys(), loc="outside lower center", ncols=3, fontsize=8.5)


def caption(table: Table, how: Scale) -> list[str]:
    """Return the caption of figure and table, which quotes numbers of the table."""
    at: dict[str, dict[str, Cell]] = {str(row[0]): dict(zip(TABLE, row, strict=True)) for row in table.rows}
    clients = how.clients or BLOCKS
    return [
        *([how.note] if how.note else []),
        f"**Computed.** Left and hollow: the reading of Algorithm 3 whose accuracies come out as printed. {BLOCKS} "
        "blocks in one fixed order, each with a budget of its own; the *average* gradient of a block clipped to norm "
        f"C = {READING.bound:g}; Gaussian noise of scale (2C/{READING.divisor})·√(2 ln(1.25/{shown_delta()}))/ε₀; "
        f"{READING.hidden:,} hidden units on 60 principal components of the training digits; step {READING.step:g}; "
        f"{how.epochs} epochs; {_seeds(how.seeds)}. **Its guarantee is none**, and so it stands in the data. Right and "
        f"filled: an honest run at the same budgets. {clients} clients, every example's gradient clipped to "
        f"{CLIP:g}, the same formula for the noise at the true sensitivity 2·{CLIP:g}/m, {how.rounds} rounds; softmax "
        "regression on oriented gradients, which are made from no data, with inverse-variance weights. The server sees "
        "every message; nothing is claimed from shuffling; ε protects one example of the worst-off client over all "
        "rounds. Seeds make these runs simulations; with secure noise the ε shown would be certified.",
        f"**The paper shows** {PAPER['constant']} % for the constant budget, {PAPER['unif-2']} % for U(0.01, 2), "
        f"U(0.5, 1) best of the five, and {PAPER_BEST} % as the best accuracy without saying at which budgets.",
        f"**Agrees{'' if how.like_the_paper else ' in order'}.** As published: {_published(at)}. {_order(at)}",
        "**Does not.** Clipping an average bounds the average, not one example's part in it: replacing a block's "
        f"records may move the message by 2C, not 2C/{READING.divisor}. So a message said to have ε₀ = 0.5 is, for its "
        f"block, only ({math.ceil(_real_epsilon(0.5)):,}, {shown_delta()})-private. Theorem 5 would claim ε = "
        f"{number(float(at['constant']['Theorem 5 would claim']))} for the constant budget after {how.epochs} "
        "epochs; its premises (messages alike for any two blocks, a fresh shuffle each epoch) are not met."
        + (_best(at) if how.like_the_paper else ""),
        f"**Honest:** {_honest(at)}. {_better(at)} Features and model differ too, so the difference between the two "
        "is not the price of privacy alone.",
    ]


def _seeds(seeds: int) -> str:
    return "one seed" if seeds == 1 else f"mean ± standard deviation over {seeds} seeds"


def _short(name: str) -> str:
    return NAMES[name].split(": ")[1]


def _accuracy(row: dict[str, Cell], which: str) -> str:
    spread = f" ± {float(row[f'{which} deviation']):.2f}" if int(row["seeds"]) > 1 else ""
    return f"{float(row[f'{which} accuracy']):.1f}{spread}"


def _published(at: dict[str, dict[str, Cell]]) -> str:
    return "; ".join(f"{_short(name)}: {_accuracy(row, 'published')} %" for name, row in at.items())


def _honest(at: dict[str, dict[str, Cell]]) -> str:
    return "; ".join(
        f"{_short(name)}: {_accuracy(row, 'honest')} % at ε = {shown_epsilon(row['honest epsilon'])}"
        for name, row in at.items()
    )


def _order(at: dict[str, dict[str, Cell]]) -> str:
    """Compare the order of accuracies with that of the mean of 1/epsilon0^2."""
    by_accuracy = sorted(at, key=lambda name: -float(at[name]["published accuracy"]))
    by_noise = sorted(at, key=lambda name: float(at[name]["mean 1/epsilon0^2"]))
    values = "; ".join(f"{_short(name)}: {_whole(float(at[name]['mean 1/epsilon0^2']))}" for name in by_noise)
    best = "is the best" if by_accuracy[0] == "unif-3" else f"is not the best: {_short(by_accuracy[0])} is"
    same = "That is" if by_accuracy == by_noise else "That is not quite"
    return f"U(0.5, 1) {best}. {same} the order of the mean of 1/ε₀², by which the added noise grows ({values})."


def _whole(value: float) -> str:
    return f"{value:,.0f}" if value >= 10.0 else number(value, 2)


def _best(at: dict[str, dict[str, Cell]]) -> str:
    highest = max(float(row["published accuracy"]) for row in at.values())
    reached = "The highest of the five comes to" if highest >= PAPER_BEST else "None of the five comes to"
    return f" {reached} {PAPER_BEST} %: the highest is {highest:.1f} %."


def _better(at: dict[str, dict[str, Cell]]) -> str:
    """Say where the honest run is the more accurate one."""
    where = [
        _short(name) for name, row in at.items() if float(row["honest accuracy"]) > float(row["published accuracy"])
    ]
    if len(where) == len(at):
        return "The honest run is the more accurate one everywhere."
    return f"The honest run is the more accurate one for {', '.join(where) or 'none of them'}."


def _real_epsilon(budget: float) -> float:
    """Return what one message has for its block: its noise at the sensitivity 2C."""
    return GaussianSumProfile(READING.divisor * budget / NOISE).epsilon(DELTA).upper


GSPA_FIGURE_4 = Reproduction(
    "gspa-figure-4", "GSPA, Figure 4", "Training under personal budgets: accuracy against epochs", run_figure, 22.0
)
GSPA_TABLE_3 = Reproduction(
    "gspa-table-3", "GSPA, Table 3", "Training under personal budgets: settings and accuracy", run_table, 22.0
)
