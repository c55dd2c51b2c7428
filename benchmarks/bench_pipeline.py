"""Seconds and peak memory of randomize + shuffle + estimate, every user with a budget of their own.

    python benchmarks/bench_pipeline.py [--rows 10000000] [--repeats 3]

Each repeat runs in a process of its own, so that its peak resident set size is its own; medians are
printed. The guarantee is left out: it needs no record, and has its own benchmark.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import platform
import resource
import statistics
import time

import numpy as np

from shuffledp.numerics.randomness import secure_random
from shuffledp.questions.frequency import frequency
from shuffledp.questions.mean import mean
from shuffledp.questions.tally import shuffle_reports
from shuffledp.randomizers.categorical import RandomizedResponse
from shuffledp.randomizers.numeric import OneBit
from shuffledp.setting import Seen

CASES: tuple[tuple[str, Seen], ...] = (
    ("krr:10", "reports"),
    ("krr:10", "levels"),
    ("one-bit", "reports"),
    ("one-bit", "levels"),
)


def run(case: tuple[str, Seen, int]) -> tuple[list[float], float]:
    """Seconds of the three stages, and the process's peak memory in MB."""
    mechanism, seen, n = case
    data = np.random.default_rng(1)
    epsilons = data.uniform(0.1, 2.0, n)
    records = data.integers(10, size=n) if mechanism == "krr:10" else data.uniform(0.0, 100.0, n)
    randomizer = RandomizedResponse(10) if mechanism == "krr:10" else OneBit(0.0, 100.0)
    random = secure_random()
    marks = [time.perf_counter()]
    reports = randomizer.randomize(records, epsilons, random)
    marks.append(time.perf_counter())
    shuffled = shuffle_reports(reports, epsilons, seen=seen, random=random)
    marks.append(time.perf_counter())
    if isinstance(randomizer, OneBit):
        mean(shuffled, randomizer)
    else:
        frequency(shuffled, randomizer)
    marks.append(time.perf_counter())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [after - before for before, after in itertools.pairwise(marks)], peak


def main() -> None:
    """Print one line per case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print(f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}")
    print(
        f"{'mechanism':<10}{'seen':<9}{'rows':>12}"
        f"{'randomize':>11}{'shuffle':>9}{'estimate':>10}{'total s':>9}{'MB':>7}"
    )
    context = multiprocessing.get_context("spawn")
    for mechanism, seen in CASES:
        results: list[tuple[list[float], float]] = []
        for _ in range(options.repeats):
            with context.Pool(1) as pool:
                results.append(pool.apply(run, ((mechanism, seen, options.rows),)))
        stages = [statistics.median(stage) for stage in zip(*(times for times, _ in results), strict=True)]
        total = statistics.median(sum(times) for times, _ in results)
        peak = statistics.median(peak for _, peak in results)
        columns = f"{stages[0]:>11.2f}{stages[1]:>9.2f}{stages[2]:>10.2f}{total:>9.2f}{peak:>7.0f}"
        print(f"{mechanism:<10}{seen:<9}{options.rows:>12,}{columns}")


if __name__ == "__main__":
    main()
