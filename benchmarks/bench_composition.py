"""Seconds and interval width of composed epsilons and of Renyi curves.

    python benchmarks/bench_composition.py [--repeats 5] [--questions]

Prints the machine, then medians of at least five runs, each with nothing remembered from the run before it. The
last part composes the same rounds with dp_accounting, from the distribution that `to_dp_accounting` builds.
`--questions` prints the joint epsilon of two questions of different families alone, in CPU seconds.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import scipy

from shuffledp.accounting import ComposedProfile, compose, one_budget_profile, privacy_profile, to_dp_accounting
from shuffledp.accounting.bound import remembered
from shuffledp.accounting.certify import remembered_bracket
from shuffledp.budgets import Budgets
from shuffledp.numerics.floats import Enclosure, Interval
from shuffledp.randomizers import OneBit, RandomizedResponse
from shuffledp.setting import Setting

CASES = ((1.0, 10**3), (2.0, 10**4), (1.0, 10**6), (8.0, 10**6), (0.1, 10**4))
ROUNDS = (1, 2, 4, 16, 1000, 10**6)
DELTA = 1e-6
T = TypeVar("T")


def median(task: Callable[[], T], repeats: int) -> tuple[float, T]:
    """Median seconds of fresh runs, and the answer."""
    seconds: list[float] = []
    answer: T | None = None
    for _ in range(repeats):
        one_budget_profile.cache_clear()
        start = time.perf_counter()
        answer = task()
        seconds.append(time.perf_counter() - start)
    assert answer is not None
    return statistics.median(seconds), answer


def composed(epsilon0: float, n: int, rounds: int) -> Callable[[], Interval]:
    return lambda: ComposedProfile.of(one_budget_profile(epsilon0, n, coarse=False), rounds).epsilon(DELTA)


def renyi(epsilon0: float, n: int, largest: float) -> Callable[[], Enclosure]:
    orders = np.geomspace(1.01, largest, 64)
    return lambda: one_budget_profile(epsilon0, n, coarse=False).renyi_curve(orders)


def rounds_table(repeats: int) -> None:
    print(f"composed epsilon at delta = {DELTA:g}")
    for epsilon0, n in CASES:
        for rounds in ROUNDS:
            seconds, found = median(composed(epsilon0, n, rounds), repeats)
            width = found.width / found.upper
            print(
                f"  eps0 {epsilon0:g}, n {n:.0e}, {rounds:>7} rounds: "
                f"{found.upper:12.6f}, width {width:.1e}, {seconds:.3f} s"
            )


def renyi_table(repeats: int) -> None:
    print("64 Renyi orders")
    for epsilon0, n in CASES:
        for largest in (64.0, 1e4):
            seconds, found = median(renyi(epsilon0, n, largest), repeats)
            width = (found.upper - found.lower) / found.upper
            print(
                f"  eps0 {epsilon0:g}, n {n:.0e}, orders up to {largest:g}: "
                f"width median {np.median(width):.1e}, worst {width.max():.1e}, {seconds:.3f} s"
            )


def questions_table(repeats: int) -> None:
    people = Budgets([0.5, 1.0, 4.0], [1080, 740, 180])
    asked = [
        Setting(people, family, "reports", "replace-one", missing=0.05)
        for family in (RandomizedResponse(5), OneBit(0.0, 1.0))
    ]

    def together() -> list[Interval]:
        return [
            compose([(privacy_profile(each, epsilon0), 1) for each in asked]).epsilon(DELTA)
            for epsilon0 in people.epsilons.tolist()
        ]

    first: list[float] = []
    again: list[float] = []
    found: list[Interval] = []
    for _ in range(repeats):
        remembered.cache_clear()
        remembered_bracket.cache_clear()
        one_budget_profile.cache_clear()
        for seconds in (first, again):
            start = time.process_time()
            found = together()
            seconds.append(time.process_time() - start)
    print(f"krr:5 and one-bit together, 2,000 people of three levels, 5 % missing, delta = {DELTA:g}")
    for epsilon0, each in zip(people.epsilons.tolist(), found, strict=True):
        print(f"  eps0 {epsilon0:g}: {each.lower:.6f} to {each.upper:.6f}")
    print(
        f"  CPU seconds of all three: {statistics.median(first):.2f} (least {min(first):.2f}), "
        f"a second time {statistics.median(again):.2f}"
    )


def other_library(repeats: int) -> None:
    print("dp_accounting, value_discretization_interval = 1e-4")
    for epsilon0, n in CASES[:2]:
        built, pld = median(lambda e=epsilon0, m=n: to_dp_accounting(one_budget_profile(e, m, coarse=False)), repeats)
        for rounds in (1, 4, 16):
            seconds, theirs = median(lambda p=pld, r=rounds: p.self_compose(r).get_epsilon_for_delta(DELTA), repeats)
            print(
                f"  eps0 {epsilon0:g}, n {n:.0e}, {rounds:>2} rounds: "
                f"{theirs:.6f}, built {built:.3f} s, {seconds:.3f} s"
            )


def main() -> None:
    """Print the machine and every table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="runs per median, at least 5")
    parser.add_argument("--questions", action="store_true", help="two questions of different families together, alone")
    options = parser.parse_args()
    repeats = max(5, options.repeats)
    print(
        f"{platform.platform()}, {platform.machine()}, {os.cpu_count()} cpus, load {os.getloadavg()[0]:.1f}, "
        f"python {platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}"
    )
    questions_table(repeats)
    if options.questions:
        return
    rounds_table(repeats)
    renyi_table(repeats)
    other_library(repeats)


if __name__ == "__main__":
    main()
