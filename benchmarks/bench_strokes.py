"""How good a linear model gets at client level, one digit a user, shuffled Gaussian messages.

    python benchmarks/bench_strokes.py --mnist FOLDER --rounds 2048 --mu 0.8 --within 128 --seeds 3

A simulation of accuracy; the epsilon is certified. 58,000 users (MNIST without its first 2,000 digits, which come with
the package and are public) each send their clipped gradient with noise of mu = 2C/sigma in every round; one step along
the mean of a round. The simulation adds up clipped gradients and the sum of all noise. It leaves out that messages are
rounded to a grid of 1/4096 of their sensitivity, which for each of 58,000 users and all rounds takes most of the time
and changes no accuracy. With --within R, more rounds than R are simulated in R rounds of the wider mu with the same
rounds mu^2; the epsilon is that of the rounds asked for. Features are `StrokeScattering`, or with --components 0 all
1,296 numbers of `Scattering`. Components, clip and step of the rows in docs/learning-accuracy.md, and
those taken unless others are given (for 37,500 rounds at mu 0.5), are what benchmarks/choose_settings.py chooses on the
public digits.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
from bench_learning import private_part

from shuffledp.learning import Scattering, StrokeScattering, TrainingAccountant
from shuffledp.learning.accounting import Tier
from shuffledp.learning.messages import shrink
from shuffledp.report.wording import up

USERS, DELTA, MOMENTUM, AVERAGED = 58_000, 1e-6, 0.9, 0.3


Part = tuple[np.ndarray, np.ndarray]
"""Features and labels of digits."""


def accuracy(own: Part, judge: Part, *, rounds: int, mu: float, clip: float, step: float, seed: int) -> float:
    """Percent of the digits of ``judge`` that are recognised after all rounds on those of ``own``."""
    draw = np.random.default_rng(seed)
    (rows, labels), (others, known) = own, judge
    rows, others = (np.hstack((part, np.ones((len(part), 1), np.float32))) for part in (rows, others))
    lengths, at = np.linalg.norm(rows, axis=1), np.arange(len(labels))
    noise = np.float32(2.0 * clip / mu / np.sqrt(USERS))
    weights = np.zeros((rows.shape[1], 10), np.float32)
    velocity, total, averaged = np.zeros_like(weights), np.zeros_like(weights), 0
    for turn in range(rounds):
        scores = rows @ weights
        slopes = np.exp(scores - scores.max(axis=1, keepdims=True))
        slopes /= slopes.sum(axis=1, keepdims=True)
        slopes[at, labels] -= 1.0
        slopes *= shrink(lengths * np.linalg.norm(slopes, axis=1), clip)[:, None].astype(np.float32)
        mean = rows.T @ slopes / np.float32(len(rows))
        mean += noise * draw.standard_normal(mean.shape, dtype=np.float32)
        velocity = MOMENTUM * velocity + (1.0 - MOMENTUM) * mean
        weights = weights - np.float32(step * (1.0 - turn / rounds)) * velocity
        if turn >= rounds * (1.0 - AVERAGED):
            total, averaged = total + weights, averaged + 1
    return 100.0 * float(np.mean((others @ (total / averaged)).argmax(axis=1) == known))


def squeezed(rounds: int, mu: float, within: int | None) -> tuple[int, float]:
    """Return ``within`` rounds, if fewer, and the mu with the same rounds mu^2."""
    fewer = rounds if within is None else min(rounds, within)
    return fewer, mu * float(np.sqrt(rounds / fewer))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mnist", default=os.environ.get("SHUFFLEDP_MNIST"))
    parser.add_argument("--rounds", type=int, default=37_500)
    parser.add_argument("--mu", type=float, default=0.5)
    parser.add_argument(
        "--within", type=int, default=128, help="simulate in at most so many rounds, with the same rounds mu^2"
    )
    parser.add_argument("--components", type=int, default=400, help="0: all scattering features")
    parser.add_argument("--clip", type=float, default=0.075)
    parser.add_argument("--step", type=float, default=1600.0)
    parser.add_argument("--seeds", type=int, default=1)
    asked = parser.parse_args()
    count = TrainingAccountant("client", "reports", True, (Tier(0.0, 0.0, asked.mu, 1.0),), {(USERS,): asked.rounds})
    method, epsilon, _ = count.tier_answer(0, DELTA)
    print(f"epsilon at most {up(epsilon)} by {method} at delta {DELTA:g}", flush=True)
    if asked.mnist is None:
        print("accuracy needs --mnist FOLDER (or SHUFFLEDP_MNIST)")
        return
    features = StrokeScattering(28, asked.components) if asked.components else Scattering(28)
    began = time.process_time()
    train, test, _ = private_part(Path(asked.mnist))
    own, judge = ((features(part.images), part.labels.astype(np.int64)) for part in (train, test))
    print(f"features: {time.process_time() - began:.0f} CPU s", flush=True)
    rounds, mu = squeezed(asked.rounds, asked.mu, asked.within)
    began, found = time.process_time(), list[float]()
    for seed in range(asked.seeds):
        found.append(accuracy(own, judge, rounds=rounds, mu=mu, clip=asked.clip, step=asked.step, seed=seed))
        print(f"seed {seed}: {found[-1]:.2f} %", flush=True)
    print(
        f"{np.mean(found):.2f} +- {np.std(found, ddof=min(1, len(found) - 1)):.2f}, "
        f"{(time.process_time() - began) / len(found):.0f} CPU s a run besides features",
        flush=True,
    )


if __name__ == "__main__":
    main()
