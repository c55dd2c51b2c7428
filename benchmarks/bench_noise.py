"""Exact discrete noise and randomizers of numbers: nanoseconds a sample, secure randomness.

Run:  python benchmarks/bench_noise.py [samples] [--opendp /path/to/python]

With --opendp, the named interpreter (of an environment in which OpenDP is installed; it is no dependency here) times
OpenDP's discrete Laplace and discrete Gaussian mechanisms on a vector of zeros at the same scales.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from collections.abc import Callable

import numpy as np

from shuffledp.numerics import discrete_noise
from shuffledp.numerics.randomness import secure_random
from shuffledp.questions.mean import MeanTally
from shuffledp.questions.tally import ShuffledReports
from shuffledp.randomizers import Gaussian, Laplace, OneBit
from shuffledp.randomizers.numeric import Hybrid, Piecewise

SCALES = (0.7, 10.0, 65536.0)
GOAL = 500.0
REPEATS = 3
OPENDP = """
import json, sys, time
import opendp.prelude as dp
dp.enable_features("contrib")
n, out = int(sys.argv[1]), {}
space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
wide = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
zeros = [0] * n
for scale in json.loads(sys.argv[2]):
    for name, make in (("laplace", lambda s: dp.m.make_laplace(*space, scale=s)),
                       ("gaussian", lambda s: dp.m.make_gaussian(*wide, scale=s))):
        mechanism = make(scale)
        start = time.perf_counter()
        mechanism(zeros)
        out[f"{name} {scale:g}"] = (time.perf_counter() - start) / n * 1e9
print(json.dumps(out))
"""


def best(run: Callable[[], object], samples: int) -> float:
    """Return the least time of a few runs, nanoseconds a sample."""
    times: list[float] = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times) / samples * 1e9


def samplers(samples: int) -> None:
    """Time each sampler at one scale, and at a scale for each sample."""
    random, own = secure_random(), np.random.default_rng(0).choice(SCALES, samples)
    names = ("discrete_laplace", "rounded_laplace", "discrete_gaussian", "rounded_gaussian", "geometric")
    print(f"{'sampler':20s}" + "".join(f"{f'scale {s:g}':>14s}" for s in SCALES) + f"{'own scales':>14s}   ns a sample")
    for name in names:
        draw = getattr(discrete_noise, name)
        found = [best(lambda s=s, d=draw: d(s, samples, random), samples) for s in (*SCALES, own)]
        late = "  above the goal of 500" if name == "discrete_laplace" and max(found) > GOAL else ""
        print(f"{name:20s}" + "".join(f"{t:14.1f}" for t in found) + late)


def randomizers(samples: int) -> None:
    """Time randomize and estimate, at one budget and at personal ones."""
    random, dealer = secure_random(), np.random.default_rng(1)
    values, budgets = dealer.random(samples), dealer.choice([0.5, 1.0, 2.0], samples)
    families = (OneBit(0, 1), Laplace(0, 1), Gaussian(0, 1), Piecewise(0, 1), Hybrid(0, 1))
    print(
        f"\n{'randomizer':20s}{'one budget':>14s}{'own budgets':>14s}{'estimate':>14s}{'own, levels':>14s}   ns a user"
    )
    for family in families:
        delta0 = 1e-6 if family.name == "gaussian" else 0.0
        row: list[float] = []
        for epsilon0 in (1.0, budgets):
            row.append(best(lambda f=family, e=epsilon0, d=delta0: f.randomize(values, e, random, delta0=d), samples))
        for epsilon0, seen in ((1.0, "reports"), (budgets, "levels")):
            reports = family.randomize(values, epsilon0, random, delta0=delta0)

            own, deltas = np.broadcast_to(epsilon0, samples), np.broadcast_to(delta0, samples)
            shuffled = ShuffledReports(reports, own, seen, deltas)
            task, levels = shuffled.task(family), shuffled.levels

            def analyse(t=task, r=reports, at=levels) -> object:
                tally = MeanTally(t)
                tally.add(r, at)
                return tally.estimate()

            row.append(best(analyse, samples))
        print(f"{family.name:20s}" + "".join(f"{t:14.1f}" for t in row))


def opendp(python: str, samples: int) -> None:
    """Print OpenDP's times, measured by another interpreter."""
    arguments = [python, "-c", OPENDP, str(samples), json.dumps(SCALES)]
    answer = subprocess.run(arguments, capture_output=True, text=True, check=True)
    print("\nOpenDP, ns a sample: " + ", ".join(f"{k} {v:.0f}" for k, v in json.loads(answer.stdout).items()))


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description="ns a sample of exact noise")
    parser.add_argument("samples", nargs="?", type=int, default=1_000_000)
    parser.add_argument("--opendp", metavar="PYTHON")
    chosen = parser.parse_args()
    samplers(chosen.samples)
    randomizers(chosen.samples)
    if chosen.opendp:
        opendp(chosen.opendp, max(chosen.samples // 20, 1000))


if __name__ == "__main__":
    main()
