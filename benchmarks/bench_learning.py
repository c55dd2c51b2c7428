"""Training on MNIST: seconds and memory of one honest epoch, and honest accuracy at stated guarantees.

    python benchmarks/bench_learning.py                      one epoch, 128 and 1000 hidden units
    python benchmarks/bench_learning.py --mnist FOLDER --case constant-0.5 --model network --seeds 3
    python benchmarks/bench_learning.py --mnist FOLDER --case all --model edges --seeds 3

The first times random features of the size of 60 components of MNIST. Cases: 100 clients of 600 digits, example level,
the server sees every message, 50 rounds, delta = 1e-5, no shuffling counted on. With --noise textbook every client's
noise is sigma = 2C/600 sqrt(2 ln(1.25e5))/epsilon, stated here by its exact delta0, so that guarantees compare with
those of the literature; with --noise analytic it is the least that serves (epsilon, 1e-5) in each round.

Cases "users-T": client level, every digit a user of its own, T rounds of shuffled reports, delta = 1e-6. Cases
"bits-E-T": the same with one bit a message, of budget E: bits-2-1150, bits-4-300, ...

Models: "network" 60 principal components and 128 hidden units, "edges" softmax regression on oriented gradients, which
are made from no data. The principal components are those of the training digits, declared public: as in the published
experiments, and as there not paid for; "cosine" takes cosine frequencies instead, from no data.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np

from shuffledp.accounting import gaussian_epsilon
from shuffledp.learning.classifier import ShuffledSGDClassifier
from shuffledp.learning.features import OrientedGradients
from shuffledp.learning.idx import Digits, read_digits
from shuffledp.learning.inputs import assign_clients
from shuffledp.learning.pca import cosine_projection, public_projection
from shuffledp.numerics.gaussian_tail import normal_divergence
from shuffledp.numerics.randomness import secure_random, simulation_random
from shuffledp.report.wording import up

CLIENTS, ROUNDS, DELTA = 100, 50, 1e-5
TEXTBOOK = float(np.sqrt(2.0 * np.log(1.25 / DELTA)))
CASES = ("constant-0.5", "uniform-0.01-2", "uniform-0.01-1", "uniform-0.5-1", "mixed", "constant-2")


def budgets(case: str, seed: int) -> np.ndarray:
    """Each client's epsilon0."""
    draw = np.random.default_rng(1000 + seed)
    if case == "mixed":
        return np.where(np.arange(CLIENTS) % 2 == 0, 0.5, 0.01)
    kind, *ends = case.split("-")
    low, high = float(ends[0]), float(ends[-1])
    return np.full(CLIENTS, low) if kind == "constant" else draw.uniform(low, high, CLIENTS)


def model(kind: str, train: Digits, epsilon0: np.ndarray, delta0: np.ndarray, **more: Any) -> ShuffledSGDClassifier:
    """The settings of each model; clip and step were chosen on seed 0 of constant-0.5."""
    common: dict[str, Any] = {
        "unit": "example", "seen": "users", "epsilon0": epsilon0, "delta0": delta0, "delta": DELTA,
        "rounds": ROUNDS, "classes": 10,
    }  # fmt: skip
    if kind == "edges":
        return ShuffledSGDClassifier(**common, clip=0.2, hidden=(), step=2.0, features=OrientedGradients(28), **more)
    found = (
        public_projection(train.images, 60, public=True, scale=SCALE / 255)
        if kind == "network"
        else cosine_projection(28, 60, scale=SCALE / 255)
    )
    return ShuffledSGDClassifier(**common, clip=CLIP, hidden=(128,), step=STEP, features=found, **more)


SCALE, CLIP, STEP = 2.0, 0.2, 0.7


def accuracy(asked: argparse.Namespace, case: str, train: Digits, test: Digits) -> None:
    """Print one line: accuracy over seeds, and the guarantee."""
    kind, seeds, found, worst = asked.model, asked.seeds, list[float](), 0.0
    start = time.perf_counter()
    for seed in range(seeds):
        epsilon0 = budgets(case, seed)
        exact = normal_divergence(epsilon0, epsilon0 / TEXTBOOK).upper
        delta0 = exact if asked.noise == "textbook" else np.full(CLIENTS, DELTA)
        random = secure_random() if asked.secure else simulation_random(seed)
        fitted = model(kind, train, epsilon0, delta0, random=random)
        fitted.fit(train.images, train.labels, groups=assign_clients(60000, CLIENTS, simulation_random(seed)))
        found.append(100.0 * fitted.score(test.images, test.labels))
        spent = fitted.guarantee_
        worst = max(worst, spent.epsilon.upper)
    seconds = (time.perf_counter() - start) / seeds
    each = ", ".join(f"{value:.2f}" for value in found)
    print(
        f"{kind:8s} {case:15s} {np.mean(found):6.2f} +- {np.std(found, ddof=min(1, seeds - 1)):.2f} ({each})  worst "
        f"(epsilon, delta) = ({up(worst)}, {DELTA:g}) by {spent.method}, {seconds:.0f} s a run",
        flush=True,
    )


def one_example_per_user(rounds: int, seeds: int, train: Digits, test: Digits) -> None:
    """Client level, 60,000 users with a digit each, shuffled reports, amplification certified: mu = 0.8 a message."""
    found: list[float] = []
    for seed in range(seeds):
        fitted = ShuffledSGDClassifier(
            unit="client", seen="reports", epsilon0=gaussian_epsilon(1e-10, 0.8), delta0=1e-10, delta=1e-6, clip=0.2,
            rounds=rounds, hidden=(), step=50.0, classes=10, features=OrientedGradients(28, cell=7),
            random=simulation_random(seed),
        ).fit(train.images, train.labels)  # fmt: skip
        found.append(100.0 * fitted.score(test.images, test.labels))
        spent = fitted.guarantee_
    each = ", ".join(f"{value:.2f}" for value in found)
    local = spent.levels[0]
    print(
        f"edges    users-{rounds:<9d} {np.mean(found):6.2f} +- {np.std(found, ddof=min(1, seeds - 1)):.2f} ({each})  "
        f"central ({up(spent.epsilon.upper)}, 1e-06) by {spent.method}; a message is ({up(local.epsilon0)}, 1e-10)-LDP",
        flush=True,
    )


def one_bit_per_user(epsilon0: float, rounds: int, seeds: int, train: Digits, test: Digits) -> None:
    """Client level, 60,000 users with a digit each, one randomized-response bit a round, amplification certified."""
    found: list[float] = []
    start = time.perf_counter()
    for seed in range(seeds):
        fitted = ShuffledSGDClassifier(
            unit="client", seen="reports", epsilon0=epsilon0, delta=1e-6, clip=0.4 if epsilon0 > 3.0 else 0.6,
            rounds=rounds, hidden=(), mechanism="sketch", step=30.0, momentum=0.9, averaging=0.3, classes=10,
            features=OrientedGradients(28, cell=7, length=1.0), random=simulation_random(seed),
        ).fit(train.images, train.labels)  # fmt: skip
        found.append(100.0 * fitted.score(test.images, test.labels))
        spent = fitted.guarantee_
    each = ", ".join(f"{value:.2f}" for value in found)
    print(
        f"edges    bits-{epsilon0:g}-{rounds:<8d} {np.mean(found):6.2f} +- {np.std(found, ddof=min(1, seeds - 1)):.2f} "
        f"({each})  central ({up(spent.epsilon.upper)}, 1e-06) by {spent.method}, "
        f"{(time.perf_counter() - start) / seeds:.0f} s a run",
        flush=True,
    )


def one_epoch(hidden: int) -> None:
    """Print seconds of one round of 100 blocks of 600, and how much memory training adds to the data."""
    draw = np.random.default_rng(0)
    features, labels = draw.standard_normal((60000, 60)), draw.integers(10, size=60000)
    groups = assign_clients(60000, CLIENTS, simulation_random(0))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    clock: list[float] = []
    fitted = ShuffledSGDClassifier(
        unit="example", seen="users", epsilon0=0.5, delta=DELTA, clip=0.2, rounds=6, hidden=(hidden,), classes=10,
        progress=lambda _: clock.append(time.perf_counter()),
    )  # fmt: skip
    fitted.fit(features, labels, groups=groups)
    seconds = np.diff(clock)
    added = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"one epoch, {hidden} hidden units: {seconds.min():.3f} s, {added:.0f} MB added to the data", flush=True)


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mnist", default=os.environ.get("SHUFFLEDP_MNIST"))
    parser.add_argument("--case", metavar="NAME", help=f"{', '.join(CASES)}, all, users-T or bits-E-T")
    parser.add_argument("--model", choices=("network", "cosine", "edges"), default="network")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--noise", choices=("textbook", "analytic"), default="textbook")
    parser.add_argument("--secure", action="store_true", help="secure randomness, not repeatable")
    asked = parser.parse_args()
    if asked.case is None:
        for hidden in (128, 1000):  # each in a process of its own, so that its peak memory is its own
            worker = multiprocessing.get_context("spawn").Process(target=one_epoch, args=(hidden,))
            worker.start()
            worker.join()
        return
    if asked.mnist is None:
        parser.error("accuracy needs --mnist FOLDER (or SHUFFLEDP_MNIST)")
    train, test = (read_digits(Path(asked.mnist), part) for part in ("train", "test"))
    if asked.case.startswith("users-"):
        one_example_per_user(int(asked.case.removeprefix("users-")), asked.seeds, train, test)
        return
    if asked.case.startswith("bits-"):
        epsilon0, rounds = asked.case.removeprefix("bits-").split("-")
        one_bit_per_user(float(epsilon0), int(rounds), asked.seeds, train, test)
        return
    for case in CASES if asked.case == "all" else (asked.case,):
        accuracy(asked, case, train, test)


if __name__ == "__main__":
    main()
