"""Choose clip and step of every family of `bench_learning.py` on the 2,000 public digits of the package.

    python benchmarks/choose_settings.py             all families, one line per candidate
    python benchmarks/choose_settings.py --family bits

1,500 of the public digits stand for the 58,000 private ones, the other 500 judge, over three splits, or ten where that
is quick; the candidate with the best mean wins. No private digit and no test digit is read. One step of a simulated run
is the exact clipped mean of the 1,500 plus normal noise as wide as that of the messages of 58,000 users (of 100 clients
of 580 at example level, each on 580 digits drawn from the 1,500): it is quick, and good enough for a choice, which
needs no certificate.
"strokes-M-T" is for T rounds of mu = M in `bench_strokes.py`, simulated in at most 128, and chooses the number of
components, too. Of equal candidates the one with fewer components, then with the larger clip is taken.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from bench_learning import CLIENTS, ROUNDS, SCALE, TEXTBOOK, bit_budgets
from bench_strokes import accuracy, squeezed

from shuffledp.learning import OrientedGradients, StrokeScattering, public_projection, read_digits, sample_folder
from shuffledp.learning.messages import shrink
from shuffledp.learning.network import Network
from shuffledp.numerics.randomness import simulation_random

USERS, PER_CLIENT = 58_000, 580
SLOPE = float(np.sqrt(2.0 / np.pi))
PUBLIC = read_digits(sample_folder(), "train")
LABELS = PUBLIC.labels.astype(np.int64)
Noise = Callable[[float], float]


def trained(
    features: np.ndarray, hidden: tuple[int, ...], clip: float, step: float, rounds: int, noise: float, split: int,
    *, momentum: float = 0.0, averaging: float = 0.0, blocks: int = 0,
) -> float:  # fmt: skip
    """Accuracy on the 500 of one split; ``noise`` per number of a step; ``blocks`` clients a round, 0 for one step."""
    draw = np.random.default_rng(split)
    order = draw.permutation(LABELS.size)
    own, judge = order[:1500], order[1500:]
    network = Network((features.shape[1], *hidden, 10))
    weights = network.initial(simulation_random(split))
    velocity, total, averaged = np.zeros_like(weights), np.zeros_like(weights), 0
    for turn in range(rounds):
        for _ in range(max(1, blocks)):
            some = draw.choice(own, PER_CLIENT) if blocks else own
            passed = network.backward(weights, features[some], LABELS[some])
            mean = network.weighted_sum(passed, shrink(network.gradient_norms(passed, 2), clip)) / some.size
            velocity = momentum * velocity + (1.0 - momentum) * (mean + noise * draw.standard_normal(mean.size))
            weights = weights - step * (1.0 - turn / rounds) * velocity
        if turn >= rounds * (1.0 - averaging):
            total, averaged = total + weights, averaged + 1
    result = total / averaged if averaged else weights
    return float(np.mean(network.scores(result, features[judge]).argmax(axis=1) == LABELS[judge]))


def example_level(kind: str) -> Callable[[float, float, int], float]:
    """Constant budget 0.5, textbook noise."""
    if kind == "edges":
        features, hidden = OrientedGradients(28)(PUBLIC.images), ()
    else:
        found = public_projection(PUBLIC.images, 60, public=True, scale=SCALE / 255)
        features, hidden = found(PUBLIC.images), (128,)

    def one(clip: float, step: float, split: int) -> float:
        noise = 2.0 * clip / PER_CLIENT * TEXTBOOK / 0.5
        return trained(features, hidden, clip, step, ROUNDS, noise, split, blocks=CLIENTS)

    return one


def users(clip: float, step: float, split: int) -> float:
    """64 rounds of mu = 0.8."""
    return trained(strokes(128), (), clip, step, 64, 2.0 * clip / 0.8 / np.sqrt(USERS), split)


def bits(clip: float, step: float, split: int) -> float:
    """Mean over the three populations, 600 rounds of one bit each."""
    found: list[float] = []
    for kind in ("2", "levels", "uniform"):
        keep = np.tanh(0.5 * bit_budgets(kind, USERS, split))
        noise = clip / SLOPE * np.sqrt(USERS) / keep.sum()  # all bits count the same: their budgets are not seen
        found.append(trained(strokes(128), (), clip, step, 600, noise, split, momentum=0.9, averaging=0.3))
    return float(np.mean(found))


def gaussian(mu: float, rounds: int) -> Callable[[float, float, float, int], float]:
    """Shuffled Gaussian messages of users."""
    few, wide = squeezed(rounds, mu, 128)

    def one(components: float, clip: float, step: float, split: int) -> float:
        features, order = strokes(int(components)), np.random.default_rng(split).permutation(LABELS.size)
        own, judge = ((features[part], LABELS[part]) for part in (order[:1500], order[1500:]))
        return accuracy(own, judge, rounds=few, mu=wide, clip=clip, step=step, seed=split) / 100.0

    return one


@lru_cache(maxsize=2)
def strokes(components: int) -> np.ndarray:
    """Stroke features of the public digits."""
    return StrokeScattering(28, components)(PUBLIC.images)


Grids = tuple[tuple[float, ...], ...]
FEW, SMALL = (128.0, 400.0), (0.075, 0.15, 0.3)
FAMILIES: dict[str, tuple[Callable[..., float], Grids]] = {
    "bits": (bits, ((0.1, 0.2, 0.4), (15.0, 30.0, 60.0))),
    "users": (users, ((0.1, 0.2, 0.4), (25.0, 50.0, 100.0))),
    "edges": (example_level("edges"), ((0.1, 0.2, 0.4), (1.0, 2.0, 4.0))),
    "network": (example_level("network"), ((0.1, 0.2, 0.4), (0.35, 0.7, 1.4))),
    "strokes-0.8-64": (gaussian(0.8, 64), (FEW, SMALL, (100.0, 200.0, 400.0, 800.0))),
    "strokes-0.8-512": (gaussian(0.8, 512), (FEW, SMALL, (200.0, 400.0, 800.0, 1600.0))),
    "strokes-0.8-2048": (gaussian(0.8, 2048), (FEW, SMALL, (200.0, 400.0, 800.0, 1600.0))),
    "strokes-0.5-20000": (gaussian(0.5, 20_000), (FEW, SMALL, (200.0, 400.0, 800.0, 1600.0))),
    "strokes-0.5-37500": (gaussian(0.5, 37_500), (FEW, SMALL, (200.0, 400.0, 800.0, 1600.0))),
}
"""What trains, and the candidates: components if they are chosen, clip, step."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--family", choices=tuple(FAMILIES), action="append")
    for name in parser.parse_args().family or FAMILIES:
        one, grids = FAMILIES[name]
        began, known = time.process_time(), list[tuple[float, tuple[float, ...]]]()
        for candidate in itertools.product(*grids):
            mean = 100.0 * float(
                np.mean([one(*candidate, split) for split in range(10 if name.startswith("strokes") else 3)])
            )
            known.append((mean, candidate))
            print(f"{name}: {said(candidate)}: {mean:.2f} % of the public digits held out", flush=True)
        _, best = max(known, key=lambda pair: (pair[0], [-part for part in pair[1][:-2]], pair[1][-2:]))
        print(f"{name}: chosen {said(best)}, {time.process_time() - began:.0f} CPU s", flush=True)


def said(candidate: tuple[float, ...]) -> str:
    """A candidate in words."""
    names = ("components", "clip", "step")[-len(candidate) :]
    return ", ".join(f"{name} {value:g}" for name, value in zip(names, candidate, strict=True))


if __name__ == "__main__":
    main()
