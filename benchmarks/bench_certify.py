"""Milliseconds and interval width of `certify`, for one budget, a thousand levels and a million budgets.

    python benchmarks/bench_certify.py [--repeats 5] [--quick]

Prints the machine, then medians of at least five runs, each after the caches of the run before it were
emptied. Two programs that compute the same number can be timed in the same run: let SHUFFLEDP_PEER_APPLE
(apple/ml-shuffling-amplification) and SHUFFLEDP_PEER_WANGSW (wangsw/PrivacyAmplification) name folders where
they are checked out. Nothing of theirs is bundled; without the variables that part says so.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import itertools
import math
import multiprocessing
import os
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import scipy

import shuffledp as sdp
from shuffledp import Budgets, Guarantee, RandomizedResponse, Setting, certify
from shuffledp.accounting import one_budget_profile, remembered

USERS = tuple(10**power for power in range(2, 13))
EPSILONS = (0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
DELTAS = (1e-3, 1e-6, 1e-9, 1e-12)
PEER_QUESTION = (1.0, 10**6, 1e-6)
Task = Callable[[], Guarantee]


def fresh(task: Task) -> tuple[float, Guarantee]:
    """Seconds and answer of one run with nothing remembered from an earlier one."""
    one_budget_profile.cache_clear()
    remembered.cache_clear()
    start = time.perf_counter()
    answer = task()
    return time.perf_counter() - start, answer


def median_seconds(task: Task, repeats: int) -> tuple[float, Guarantee]:
    """Return the median of several runs, and the answer, which is the same in each."""
    runs = [fresh(task) for _ in range(repeats)]
    return statistics.median(seconds for seconds, _ in runs), runs[0][1]


def one_budget(epsilon0: float, n: int, delta: float) -> Task:
    """Ask for one budget and any randomizer."""
    setting = Setting(Budgets([epsilon0], [n]), "any", seen="reports", neighboring="replace-one")
    return lambda: certify(setting, delta)


def clones_width(guarantee: Guarantee) -> float:
    """Width of the `clones` interval relative to its upper end; 0 where epsilon is 0."""
    found = next(item.epsilon for item in guarantee.evidence if item.key == "clones")
    return 0.0 if found is None or found.upper == 0.0 else (found.upper - found.lower) / found.upper


def grid(repeats: int) -> None:
    """One budget: time and width over the whole grid."""
    fresh(one_budget(1.0, 1000, 1e-6))  # imports and first calls are not what is measured
    seconds: list[float] = []
    widths: list[float] = []
    slowest, widest = (0.0, ""), (0.0, "")
    for epsilon0, n, delta in itertools.product(EPSILONS, USERS, DELTAS):
        took, answer = median_seconds(one_budget(epsilon0, n, delta), repeats)
        width, where = clones_width(answer), f"epsilon0 = {epsilon0:g}, n = {n:.0e}, delta = {delta:g}"
        seconds.append(took)
        if answer.epsilon.upper > 0.0:
            widths.append(width)
        slowest, widest = max(slowest, (took, where)), max(widest, (width, where))
    print(f"one budget, {len(seconds)} questions (n 1e2 to 1e12, epsilon0 0.01 to 8, delta 1e-3 to 1e-12)")
    print(f"  median {1e3 * statistics.median(seconds):8.1f} ms   worst {1e3 * slowest[0]:8.1f} ms at {slowest[1]}")
    print(f"  over 50 ms: {sum(took > 0.05 for took in seconds)} of {len(seconds)}")
    print(
        f"  relative width of the clones interval where epsilon > 0 ({len(widths)} questions): "
        f"median {statistics.median(widths):.1e}, worst {widest[0]:.1e} at {widest[1]}"
    )


MECHANISMS: dict[str, Callable[[], object]] = {
    "any": lambda: "any",
    "rr": lambda: sdp.RandomizedResponse(2),
    "krr:10": lambda: sdp.RandomizedResponse(10),
    "sue:10": lambda: sdp.UnaryEncoding(10, optimized=False),
    "oue:10": lambda: sdp.UnaryEncoding(10),
    "olh:10": lambda: sdp.LocalHashing(10),
    "hadamard:10": lambda: sdp.HadamardResponse(10),
    "subset:10": lambda: sdp.SubsetSelection(10),
    "one-bit": lambda: sdp.OneBit(0.0, 1.0),
    "laplace": lambda: sdp.Laplace(0.0, 1.0),
    "gaussian": lambda: sdp.Gaussian(0.0, 1.0),
    "piecewise": lambda: sdp.Piecewise(0.0, 1.0),
    "hybrid": lambda: sdp.Hybrid(0.0, 1.0),
}


def forget() -> None:
    """Empty every memory of the accountant and of the randomizers."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("shuffledp.accounting", "shuffledp.randomizers", "shuffledp.numerics")):
            for value in list(vars(module).values()):
                clear = getattr(value, "cache_clear", None)
                if callable(clear) and not isinstance(value, type):
                    clear()


def mechanisms(repeats: int) -> None:
    """One budget of every mechanism: CPU milliseconds of a cold answer, imports done and nothing remembered."""
    found: list[tuple[float, str]] = []
    for name, make in MECHANISMS.items():
        for epsilon0, n in ((1.0, 10**4), (1.0, 10**6), (2.0, 10**5), (4.0, 10**5)):
            deltas = [1e-8] if name == "gaussian" else [0.0]
            runs: list[float] = []
            for _ in range(repeats + 1):  # the first one also loads what is loaded late
                setting = Setting(Budgets([epsilon0], [n], deltas), make(), seen="reports", neighboring="replace-one")  # type: ignore[arg-type]
                forget()
                began = time.process_time()
                certify(setting, 1e-6)
                runs.append(time.process_time() - began)
            found.append((statistics.median(runs[1:]), f"{name}, epsilon0 = {epsilon0:g}, n = {n:.0e}"))
    took = [seconds for seconds, _ in found]
    print(
        f"one budget of every mechanism, cold, {len(found)} questions, CPU: "
        f"median {1e3 * statistics.median(took):.1f} ms, worst {1e3 * max(took):.1f} ms"
    )
    for seconds, where in sorted(found, reverse=True)[:8]:
        print(f"  {1e3 * seconds:8.1f} ms  {where}")


def thousand_levels() -> Guarantee:
    """1,000 budgets from 0.01 to 4 and 1e8 users."""
    budgets = Budgets(np.linspace(0.01, 4.0, 1000), np.full(1000, 100_000))
    return certify(Setting(budgets, RandomizedResponse(2), seen="reports", neighboring="replace-one"), 1e-9)


def million_budgets() -> Guarantee:
    """1e6 users, no two budgets alike; counting the levels is part of the job."""
    epsilons = np.random.default_rng(0).uniform(0.05, 2.0, 10**6)
    return certify(
        Setting(Budgets.of(epsilons), RandomizedResponse(2), seen="reports", neighboring="replace-one"), 1e-8
    )


def alone(task: Task) -> tuple[float, float, tuple[float, float]]:
    """Seconds, peak resident set size in MB (of this process, so run it in one of its own), and epsilon."""
    seconds, answer = fresh(task)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return seconds, peak, (answer.epsilon.lower, answer.epsilon.upper)


def many_levels(repeats: int) -> None:
    """Time the large populations, each run in a process of its own."""
    cases = (("1,000 levels, 1e8 users", thousand_levels), ("1e6 different budgets", million_budgets))
    context = multiprocessing.get_context("spawn")
    for name, task in cases:
        with context.Pool(1, maxtasksperchild=1) as pool:
            runs = [pool.apply(alone, (task,)) for _ in range(repeats)]
        seconds, peak = statistics.median(run[0] for run in runs), max(run[1] for run in runs)
        low, high = runs[0][2]
        print(f"{name}: median {seconds:.2f} s, peak {peak:.0f} MB, epsilon in [{low:.6g}, {high:.6g}]")


def apple_upper(folder: str) -> float:
    """Upper bound by apple/ml-shuffling-amplification."""
    sys.path.insert(0, folder)
    epsilon0, n, delta = PEER_QUESTION
    found = importlib.import_module("computeamplification").numericalanalysis(n, epsilon0, delta, 10, 100, True)
    return float(found)


def wangsw_upper(folder: str) -> float:
    """Upper bound by wangsw/PrivacyAmplification."""
    sys.path.insert(0, folder)
    module = importlib.import_module("unifiedamplification")
    epsilon0, n, delta = PEER_QUESTION
    return float(module.amplificationUB(*module.computeUBParameters(epsilon0, None, None), n, delta, 20))


def peers(repeats: int) -> None:
    """Time the same question here and there, in one run."""
    ours, answer = median_seconds(one_budget(*PEER_QUESTION), repeats)
    epsilon = answer.epsilon.upper
    print(f"peers at epsilon0, n, delta = {PEER_QUESTION}: ours {1e3 * ours:.1f} ms, epsilon {epsilon:.8f}")
    for variable, solve in (("SHUFFLEDP_PEER_APPLE", apple_upper), ("SHUFFLEDP_PEER_WANGSW", wangsw_upper)):
        folder = os.environ.get(variable)
        if not folder:
            print(f"  {variable}: peer not given")
            continue
        runs: list[float] = []
        value = math.nan
        for _ in range(repeats):
            start = time.perf_counter()
            with contextlib.redirect_stdout(io.StringIO()):
                value = solve(folder)
            runs.append(time.perf_counter() - start)
        took = statistics.median(runs)
        print(f"  {variable}: {took:.2f} s, epsilon {value:.8f}, {took / ours:.0f} times ours")


def main() -> None:
    """Print the machine and every table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="runs per median, at least 5")
    parser.add_argument("--quick", action="store_true", help="only one budget of every mechanism")
    asked = parser.parse_args()
    repeats, quick = max(5, asked.repeats), bool(asked.quick)
    print(
        f"{platform.platform()}, {platform.machine()}, {os.cpu_count()} cpus, load {os.getloadavg()[0]:.1f}, "
        f"python {platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}"
    )
    mechanisms(repeats)
    if quick:
        return
    grid(repeats)
    many_levels(repeats)
    peers(repeats)


if __name__ == "__main__":
    main()
