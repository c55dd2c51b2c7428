"""Training on MNIST: seconds and memory of one honest epoch, and honest accuracy at stated guarantees.

    python benchmarks/bench_learning.py                      one epoch, 128 and 1000 hidden units
    python benchmarks/bench_learning.py --mnist FOLDER --case constant-0.5 --model edges --seeds 3
    python benchmarks/bench_learning.py --mnist FOLDER --case bits-2-1150 --seeds 3

The first times random features of the size of 60 components of MNIST. The 2,000 digits that come with the package are
MNIST's first 2,000. They are public here: settings are chosen on them (`benchmarks/choose_settings.py`), and the
private people are the other 58,000.

Example level, 100 clients of 580 digits, the server sees every message, 50 rounds, delta = 1e-5, no shuffling counted
on. With --noise textbook every client's noise is sigma = 2C/580 sqrt(2 ln(1.25e5))/epsilon, stated here by its exact
delta0, so that guarantees compare with those of the literature; with --noise analytic it is the least that serves
(epsilon, 1e-5) in each round. Models: "edges" softmax regression on oriented gradients, which are made from no data;
"network" 128 hidden units on 60 principal components of the 2,000 public digits.

Client level, every digit a user of its own, shuffled reports, delta = 1e-6. "users-T": T rounds of Gaussian messages of
mu = 0.8. "bits-B-T": T rounds of one bit; B is everybody's budget, or "levels" (54 % of the users 0.5, 37 % 1, 9 % 2,
drawn by the seed), or "uniform" (uniform on (0.5, 2), rounded down to a multiple of 1/32). Both are softmax regression
on 128 stroke features, which are made from no data.
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
from shuffledp.learning.accounting import TrainingGuarantee
from shuffledp.learning.features import OrientedGradients, StrokeScattering, public_projection
from shuffledp.learning.inputs import Digits, assign_clients, read_digits
from shuffledp.learning.training import ShuffledSGDClassifier
from shuffledp.numerics.randomness import secure_random, simulation_random
from shuffledp.numerics.tails import normal_divergence
from shuffledp.report.wording import up

CLIENTS, ROUNDS, DELTA = 100, 50, 1e-5
PUBLIC = 2000
"""MNIST's first digits, which come with the package: public, and left out of the private set."""
CHOSEN = {"edges": (0.2, 2.0), "network": (0.2, 0.35), "users": (0.2, 100.0), "bits": (0.1, 60.0)}
"""Clip and step of each family, chosen by benchmarks/choose_settings.py on the public digits."""
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


def private_part(folder: Path) -> tuple[Digits, Digits, Digits]:
    """Private training digits, test digits, and the public ones."""
    train, test = (read_digits(folder, part) for part in ("train", "test"))
    public = Digits(train.images[:PUBLIC], train.labels[:PUBLIC])
    return Digits(train.images[PUBLIC:], train.labels[PUBLIC:]), test, public


def example_level(kind: str, public: Digits, *, clip: float, step: float, **more: Any) -> ShuffledSGDClassifier:
    """One of the two models at example level."""
    common: dict[str, Any] = {
        "unit": "example", "seen": "users", "delta": DELTA, "rounds": ROUNDS, "classes": 10, "clip": clip, "step": step,
    }  # fmt: skip
    if kind == "edges":
        return ShuffledSGDClassifier(**common, hidden=(), features=OrientedGradients(28), **more)
    found = public_projection(public.images, 60, public=True, scale=SCALE / 255)
    return ShuffledSGDClassifier(**common, hidden=(128,), features=found, **more)


SCALE = 2.0


def noise(epsilon0: np.ndarray, kind: str) -> np.ndarray:
    """delta0 of every client's message."""
    exact = normal_divergence(epsilon0, epsilon0 / TEXTBOOK).upper
    return np.asarray(exact) if kind == "textbook" else np.full(epsilon0.size, DELTA)


def users_model(rounds: int, *, clip: float, step: float, **more: Any) -> ShuffledSGDClassifier:
    """Client level, Gaussian messages of mu = 0.8."""
    return ShuffledSGDClassifier(
        unit="client", seen="reports", epsilon0=gaussian_epsilon(1e-10, 0.8), delta0=1e-10, delta=1e-6, clip=clip,
        rounds=rounds, hidden=(), step=step, classes=10, features=StrokeScattering(28), **more,
    )  # fmt: skip


def bit_budgets(kind: str, n: int, seed: int) -> np.ndarray:
    """Each user's epsilon0: a number for all, "levels" or "uniform"."""
    draw = np.random.default_rng(2000 + seed)
    if kind == "levels":
        return draw.choice([0.5, 1.0, 2.0], p=[0.54, 0.37, 0.09], size=n)
    if kind == "uniform":
        return np.floor(32.0 * draw.uniform(0.5, 2.0, n)) / 32.0
    return np.full(n, float(kind))


def bits_model(epsilon0: np.ndarray, rounds: int, *, clip: float, step: float, **more: Any) -> ShuffledSGDClassifier:
    """Client level, one bit a message."""
    return ShuffledSGDClassifier(
        unit="client", seen="reports", epsilon0=epsilon0, delta=1e-6, clip=clip, rounds=rounds, hidden=(),
        mechanism="sketch", step=step, momentum=0.9, averaging=0.3, classes=10,
        features=StrokeScattering(28), **more,
    )  # fmt: skip


def measure(asked: argparse.Namespace, case: str, train: Digits, test: Digits, public: Digits) -> None:
    """Print one line: accuracy over seeds, the largest guarantee, and CPU seconds a run, accounting included."""
    found, seconds, spent = list[float](), list[float](), list[TrainingGuarantee]()
    for seed in range(asked.first, asked.first + asked.seeds):
        random, groups = secure_random() if asked.secure else simulation_random(seed), None
        began = time.process_time()
        if case.startswith("users-"):
            clip, step = CHOSEN["users"]
            fitted = users_model(int(case.removeprefix("users-")), clip=clip, step=step, random=random)
        elif case.startswith("bits-"):
            clip, step = CHOSEN["bits"]
            kind, rounds = case.removeprefix("bits-").split("-")
            own = bit_budgets(kind, train.labels.size, seed)
            fitted = bits_model(own, int(rounds), clip=clip, step=step, random=random)
        else:
            clip, step = CHOSEN[asked.model]
            own = budgets(case, seed)
            fitted = example_level(
                asked.model, public, clip=clip, step=step, epsilon0=own, delta0=noise(own, asked.noise), random=random
            )
            groups = assign_clients(train.labels.size, CLIENTS, simulation_random(seed))
        fitted.fit(train.images, train.labels, groups=groups)
        seconds.append(time.process_time() - began)
        found.append(100.0 * fitted.score(test.images, test.labels))
        spent.append(fitted.guarantee_)
    worst = max(spent, key=lambda guarantee: guarantee.epsilon.upper)
    levels = {}
    if worst.levels_total <= 3:
        levels = {f"{level.epsilon0:g}": up(level.epsilon.upper) for level in worst.levels}
    print(
        f"{case:15s} {np.mean(found):6.2f} +- {np.std(found, ddof=min(1, len(found) - 1)):.2f} "
        f"({', '.join(f'{value:.2f}' for value in found)})  worst (epsilon, delta) = ({up(worst.epsilon.upper)}, "
        f"{worst.delta:g}) by {worst.method} after {worst.rounds} rounds, by level {levels}, "
        f"{np.mean(seconds):.0f} CPU s a run",
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
    parser.add_argument("--case", metavar="NAME", help=f"{', '.join(CASES)}, all, users-T or bits-B-T")
    parser.add_argument("--model", choices=("network", "edges"), default="edges")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
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
    train, test, public = private_part(Path(asked.mnist))
    for case in CASES if asked.case == "all" else (asked.case,):
        measure(asked, case, train, test, public)


if __name__ == "__main__":
    main()
