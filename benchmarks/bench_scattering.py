"""How good a linear model on scattering features gets at client level, one digit a user, shuffled Gaussian messages.

    python benchmarks/bench_scattering.py --mnist FOLDER --rounds 2048 --mu 0.8 --seeds 3
    python benchmarks/bench_scattering.py --rounds 256 --mu 2.26          on the public digits alone: for choosing

A simulation of accuracy; the epsilon is certified. 58,000 users (MNIST without its first 2,000 digits, which come with
the package and are public) each send their clipped gradient with noise of mu = 2C/sigma in every round; one step along
the mean of a round. The simulation adds up clipped gradients and the sum of all noise. It leaves out that messages are
rounded to a grid of 1/4096 of their sensitivity, which in 1,296 x 10 numbers for each of 58,000 users and all rounds
takes most of the time and changes no accuracy. Without --mnist, 1,500 public digits stand for the users with the same
noise, and the other 500 judge, over two splits: clip and step were chosen so, on S = rounds mu^2 = 1310.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from bench_learning import private_part

from shuffledp.learning import Scattering, TrainingAccountant, read_digits, sample_folder
from shuffledp.learning.clipping import shrink
from shuffledp.learning.guarantee import Tier

USERS, DELTA, MOMENTUM, AVERAGED = 58_000, 1e-6, 0.9, 0.3


def accuracy(
    own: tuple[np.ndarray, np.ndarray], judge: tuple[np.ndarray, np.ndarray], asked: argparse.Namespace, seed: int
) -> float:
    """Percent of the judging digits that are recognised after all rounds."""
    draw = np.random.default_rng(seed)
    (rows, labels), (others, known) = own, judge
    rows, others = (np.hstack((part, np.ones((len(part), 1), np.float32))) for part in (rows, others))
    lengths, at = np.linalg.norm(rows, axis=1), np.arange(len(labels))
    noise = np.float32(2.0 * asked.clip / asked.mu / np.sqrt(USERS))
    weights = np.zeros((rows.shape[1], 10), np.float32)
    velocity, total, averaged = np.zeros_like(weights), np.zeros_like(weights), 0
    for turn in range(asked.rounds):
        scores = rows @ weights
        slopes = np.exp(scores - scores.max(axis=1, keepdims=True))
        slopes /= slopes.sum(axis=1, keepdims=True)
        slopes[at, labels] -= 1.0
        slopes *= shrink(lengths * np.linalg.norm(slopes, axis=1), asked.clip)[:, None].astype(np.float32)
        mean = rows.T @ slopes / np.float32(len(rows))
        mean += noise * draw.standard_normal(mean.shape, dtype=np.float32)
        velocity = MOMENTUM * velocity + (1.0 - MOMENTUM) * mean
        weights = weights - np.float32(asked.step * (1.0 - turn / asked.rounds)) * velocity
        if turn >= asked.rounds * (1.0 - AVERAGED):
            total, averaged = total + weights, averaged + 1
    return 100.0 * float(np.mean((others @ (total / averaged)).argmax(axis=1) == known))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mnist")
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--mu", type=float, required=True)
    parser.add_argument("--clip", type=float, default=0.3)
    parser.add_argument("--step", type=float, default=100.0)
    parser.add_argument("--seeds", type=int, default=1)
    asked = parser.parse_args()
    count = TrainingAccountant("client", "reports", True, (Tier(0.0, 0.0, asked.mu, 1.0),), {(USERS,): asked.rounds})
    method, epsilon, _ = count.tier_answer(0, DELTA)
    print(f"epsilon {epsilon:.4f} by {method} at delta {DELTA:g}", flush=True)
    features, began = Scattering(28), time.process_time()
    if asked.mnist is None:
        sample = read_digits(sample_folder(), "train")
        rows, labels = features(sample.images), sample.labels.astype(np.int64)
        orders = [np.random.default_rng(seed).permutation(labels.size) for seed in range(2)]
        parts = [[(rows[o], labels[o]) for o in (order[:1500], order[1500:])] for order in orders]
    else:
        train, test, _ = private_part(Path(asked.mnist), everybody=False)
        parts = [[(features(part.images), part.labels.astype(np.int64)) for part in (train, test)]] * asked.seeds
    print(f"features: {time.process_time() - began:.0f} CPU s", flush=True)
    for seed, (own, judge) in enumerate(parts):
        began = time.process_time()
        found = accuracy(own, judge, asked, seed)
        print(f"seed {seed}: {found:.2f} %, {time.process_time() - began:.0f} CPU s", flush=True)


if __name__ == "__main__":
    main()
