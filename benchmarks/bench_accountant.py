"""Seconds and memory of the complete accountant, and the same questions put to other people's programs.

    python benchmarks/bench_accountant.py [--repeats 5] [--only TEXT] [--profile 3]

Every case runs in a process of its own, so that its peak resident set size is its own, and is stopped after a minute.
Times are CPU seconds on one thread, which on an idle machine are seconds, best of several runs with emptied caches.
Three per case: the bound that decides the certified epsilon, all certified upper bounds of the worst victim, and the
whole `certify` with witnesses and evidence for every level. A case's goal stands beside it; nothing fails if it is
missed, but such cases are ranked at the end, and the slowest ones profiled.

Five programs that compute the same numbers can be asked in the same run: let SHUFFLEDP_PEER_X, for X = APPLE
(apple/ml-shuffling-amplification), WANGSW (wangsw/PrivacyAmplification), DPBAYES
(DPBayes/numerical-shuffler-experiments), SU (Optimal-amplification-bound/Decomposition-Based-...) and BALLE
(BorjaBalle/amplification-by-shuffling), name folders where they are checked out. Nothing of theirs is bundled; without
the variables that part says so.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import cProfile
import functools
import gc
import io
import math
import multiprocessing
import os
import platform
import pstats
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar
from unittest import mock

import numpy as np
import scipy

import shuffledp as sdp
from shuffledp import Budgets, Kind, OutOfRegime, Setting, bounds, certify
from shuffledp.numerics.floats import Enclosure

DELTA = 1e-6
LIMIT = 60
"""CPU seconds after which a process is stopped; on a busy machine it may take five times as long."""
ALLOWANCE = 5.0  # seconds after which a measurement is not repeated any more
ORDERS = np.geomspace(1.25, 256.0, 64)
GOALS = {"discrete": 0.1, "laplace": 2.0, "ordered": 1.0, "renyi": 1.0, "rounds": 2.0}
MEMORY_GOAL = 1000.0
_CACHE = type(functools.lru_cache(lambda: None))
T = TypeVar("T")
MATRIX = 0.9 * np.random.default_rng(0).dirichlet(np.full(10, 4.0), 10) + 0.01
FAMILIES: dict[str, Callable[[], Any]] = {
    "any": lambda: "any",
    "rr": lambda: sdp.RandomizedResponse(2),
    "krr:10": lambda: sdp.RandomizedResponse(10),
    "oue:10": lambda: sdp.UnaryEncoding(10),
    "sue:10": lambda: sdp.UnaryEncoding(10, optimized=False),
    "olh:10": lambda: sdp.LocalHashing(10),
    "hadamard:10": lambda: sdp.HadamardResponse(10),
    "subset:10": lambda: sdp.SubsetSelection(10),
    "one-bit": lambda: sdp.OneBit(0.0, 1.0),
    "channel": lambda: sdp.Channel(MATRIX),
    "laplace": lambda: sdp.Laplace(0.0, 1.0),
    "gaussian": lambda: sdp.Gaussian(0.0, 1.0),
}


@dataclass(frozen=True)
class Case:
    """A question: so many users, spread evenly over so many budgets (from 0.1 to 2; a single one is 1)."""

    group: str
    randomizer: str
    levels: int
    n: int

    def __str__(self) -> str:
        return f"{self.group:9}{self.randomizer:12}{self.levels:4} levels  n = {self.n:.0e}"

    @property
    def goal(self) -> float:
        return GOALS.get(self.group, math.inf)

    def setting(self) -> Setting:
        """Equally many users per level, so that the largest budget is the worst victim's."""
        epsilons = np.array([1.0]) if self.levels == 1 else np.linspace(0.1, 2.0, self.levels)
        family = FAMILIES[self.randomizer]()
        if self.randomizer == "channel":
            epsilons = family.epsilon0 + epsilons  # nobody's budget may be below the matrix's own
        deltas = np.full(self.levels, 1e-8 if self.randomizer == "gaussian" else 0.0)
        budgets = Budgets(epsilons, np.full(self.levels, self.n // self.levels), deltas)
        return Setting(
            budgets,
            family,
            seen="users" if self.group == "ordered" else "reports",
            neighboring="replace-one",
            rounds=1000 if self.group == "rounds" else 1,
        )


def all_cases() -> list[Case]:
    """Every case, in the order printed."""
    discrete = [name for name in FAMILIES if name not in ("laplace", "gaussian")]
    cases = [Case("discrete", f, g, n) for f in discrete for g in (1, 10, 100) for n in (10**3, 10**6, 10**9)]
    cases += [Case("ordered", "any", g, n) for g in (1, 10, 100) for n in (10**3, 10**6, 10**9)]
    renyi = (("any", 1), ("rr", 10), ("krr:10", 1), ("krr:10", 10), ("hadamard:10", 1), ("laplace", 1))
    cases += [Case("renyi", f, g, 10**6) for f, g in renyi]
    cases += [Case("rounds", f, g, 10**6) for f, g in (("any", 1), ("krr:10", 1), ("krr:10", 10))]
    return cases + [
        Case(f, f, g, n) for f in ("laplace", "gaussian") for g in (1, 2, 3, 10) for n in (10**3, 10**5, 10**8)
    ]


def timed(task: Callable[[], T], times: int) -> tuple[float, T]:
    """CPU seconds of so many runs, every cache of the package emptied before each; and the answer of the last."""
    caches = [x for x in gc.get_objects() if type(x) is _CACHE and str(x.__module__).startswith("shuffledp")]
    start = time.process_time()
    while True:
        for cache in caches:
            cache.cache_clear()
        answer, times = task(), times - 1
        if times == 0:
            return time.process_time() - start, answer


def best(task: Callable[[], T], repeats: int) -> tuple[float, T]:
    """CPU seconds of the fastest of several runs, fewer if they take long; and the answer.

    The clock may tick every 4 ms only: short runs are timed many at once.
    """
    took, spent, times = math.inf, 0.0, 1
    while True:
        total, answer = timed(task, times)
        spent += total
        if total < 0.1 and times < 256:
            times *= 4
        else:
            took, repeats = min(took, total / times), repeats - 1
            if repeats <= 0 or spent > ALLOWANCE:
                return took, answer


def certified_epsilon(setting: Setting, keys: Iterable[str] = tuple(bounds)) -> tuple[float, str]:
    """Smallest certified upper bound for the worst victim, and its key."""
    found: list[tuple[float, str]] = []
    for key in keys:
        if bounds[key].enters_bracket and bounds[key].kind is Kind.CERTIFIED_UPPER:
            with contextlib.suppress(OutOfRegime):
                profile = bounds[key].profile(setting, float(setting.budgets.epsilons[-1]))
                found.append((profile.epsilon(DELTA).upper, key))
    return min(found)


def renyi_curve(setting: Setting, key: str) -> Enclosure:
    """Return one bound's Renyi divergences of 64 orders."""
    return bounds[key].profile(setting, float(setting.budgets.epsilons[-1])).renyi_curve(ORDERS)


def measure(case: Case, repeats: int) -> Iterator[tuple[str, Any]]:
    """Run one case, part by part."""
    certify(alike(1.0, 100, "any"), DELTA)  # imports are not what is measured
    uppers, (epsilon, key) = best(lambda: certified_epsilon(case.setting()), repeats * (case.group != "renyi"))
    yield "key", key
    if case.group == "renyi":
        took, curve = best(lambda: renyi_curve(case.setting(), key), repeats)
        yield "uppers", took
        yield "answer", f"{key}, lower ends at least {(curve.lower / curve.upper).min():.5f} of the upper ends"
        return
    yield "answer", f"{key}, epsilon {epsilon:.6g}"
    yield "uppers", uppers
    yield "decisive", best(lambda: certified_epsilon(case.setting(), [key]), repeats)[0]
    took, whole = best(lambda: certify(case.setting(), DELTA), repeats)
    yield "certify", took
    yield "answer", f"{key}, epsilon {epsilon:.6g}; certify {whole.epsilon.lower:.6g} to {whole.epsilon.upper:.6g}"


def profiled(case: Case, key: str, lines: int) -> Iterator[tuple[str, Any]]:
    """Say where the time goes: the functions with the most time of their own, in one run or its first 40 seconds."""
    recorder = cProfile.Profile()
    signal.signal(signal.SIGVTALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_VIRTUAL, 40.0)
    with contextlib.suppress(KeyboardInterrupt):
        if case.group == "renyi":
            recorder.runcall(renyi_curve, case.setting(), key)
        else:
            recorder.runcall(certified_epsilon, case.setting())
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
    table: dict[tuple[str, int, str], Any] = pstats.Stats(recorder).stats  # type: ignore[attr-defined]
    whole = sum(row[2] for row in table.values())
    top = sorted(table.items(), key=lambda item: -item[1][2])[:lines]
    yield "lines", [f"{row[2] / whole:6.1%} {row[1]:8} x {Path(f).name}:{n} {name}" for (f, n, name), row in top]


def served(pipe: Connection, task: Callable[..., Iterator[tuple[str, Any]]], args: tuple[Any, ...]) -> None:
    """Send what a task yields, and this process's peak memory in MB; or why it stopped."""
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))
    try:
        for part in task(*args):
            pipe.send(part)
            pipe.send(("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))
    except Exception as error:
        pipe.send(("answer", f"{type(error).__name__}: {error}"))
    pipe.send(("done", True))


def alone(task: Callable[..., Iterator[tuple[str, Any]]], *args: Any) -> dict[str, Any]:
    """Collect what a task yields in a process of its own, up to the limit."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=served, args=(theirs, task, args))
    process.start()
    theirs.close()
    found: dict[str, Any] = {"answer": f"stopped after {LIMIT} s"}
    deadline = time.monotonic() + 5.0 * LIMIT
    with contextlib.suppress(EOFError):  # of a process that was stopped
        while "done" not in found and ours.poll(max(deadline - time.monotonic(), 0.0)):
            name, value = ours.recv()
            found[name] = value
    process.kill()
    process.join()
    return found


# ------------------------------------------------------------------ the same questions, asked elsewhere


def module_of(folder: str, file: str) -> ModuleType:
    """Load one file of a peer; CuPy, which one of them imports, is played by NumPy."""
    module, path = ModuleType(Path(file).stem), Path(folder, file)
    with mock.patch.dict(sys.modules, {"cupy": np}), warnings.catch_warnings(action="ignore"):
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), vars(module))
    return module


def quietly(solve: Callable[..., Any], *args: Any) -> float:
    """Call a peer; what it prints and warns of is not ours to show."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(action="ignore"):
        return float(solve(*args))


def apple(folder: str, epsilon0: float, n: int, step: int = 100) -> float:
    """The clone pair with p = e^-epsilon0; ten halvings, as in its example."""
    return module_of(folder, "computeamplification.py").numericalanalysis(n, epsilon0, DELTA, 10, step, True)


def wangsw(folder: str, epsilon0: float, n: int, mechanism: str | None = None, option: int | None = None) -> float:
    """The variation-ratio upper bound; for any randomizer it is the clone pair with p = 2/(1 + e^epsilon0)."""
    module = module_of(folder, "unifiedamplification.py")
    return module.amplificationUB(*module.computeUBParameters(epsilon0, mechanism, option), n, DELTA, 20)


def su(folder: str, epsilon0: float, n: int, mechanism: str, *options: int) -> float:
    """The blanket sum by FFT, rounded up on its grid."""
    law = getattr(module_of(folder, "mechanisms.py"), mechanism)(epsilon0, *options)
    return module_of(folder, "amplification_bounds.py").FFTbound(law).get_eps(epsilon0, n, DELTA)


def balle(folder: str, epsilon0: float, n: int, bound: str, mechanism: str, *options: int) -> float:
    """The privacy blanket with a concentration inequality."""
    law = getattr(module_of(folder, "shuffleddp/mechanisms.py"), mechanism)(epsilon0, *options)
    return getattr(module_of(folder, "shuffleddp/amplification_bounds.py"), bound)(law).get_eps(epsilon0, n, DELTA)


def dpbayes(folder: str, epsilon0: float, n: int, rounds: int = 1) -> float:
    """The clone pair's loss distribution on its grid, composed by FFT.

    Its script runs on import, so that only the definitions are taken; grid 2e6, losses to 10.
    """
    path = Path(folder, "clones_comparison_fig1/delta_shuffler_fa.py")
    names: dict[str, Any] = {"np": np, "scipy": scipy}
    with warnings.catch_warnings(action="ignore"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        exec(compile(tree, str(path), "exec"), names)
    top = 10.0
    omega, grid, _ = names["get_omega"](n, rounds, epsilon0, 2 * 10**6, top)
    law = np.fft.fftshift(np.fft.ifft(np.fft.fft(np.fft.fftshift(omega)) ** rounds).real) if rounds > 1 else omega
    low, high = 0.0, top
    while high - low > 1e-7:
        epsilon = 0.5 * (low + high)
        start = math.ceil((top + epsilon) / (2.0 * top / omega.size))
        exceeds = float(-np.expm1(epsilon - grid[start:]) @ law[start:]) > DELTA
        low, high = (epsilon, high) if exceeds else (low, epsilon)
    return high


def ours(epsilon0: float, n: int, randomizer: str, rounds: int, key: str) -> float:
    """One bound's certified epsilon."""
    return bounds[key].profile(alike(epsilon0, n, randomizer, rounds), epsilon0).epsilon(DELTA).upper


def alike(epsilon0: float, n: int, randomizer: str, rounds: int = 1) -> Setting:
    return Setting(Budgets([epsilon0], [n]), FAMILIES[randomizer](), "reports", "replace-one", rounds)


Question = tuple[float, int, str, int, str]
"""epsilon0, n, randomizer, rounds, and which of our bounds is that number."""
Rival = tuple[str, Callable[..., float], tuple[Any, ...]]
CLONES: tuple[Rival, ...] = (("WANGSW", wangsw, ()), ("DPBAYES", dpbayes, ()))
QUESTIONS: tuple[tuple[Question, tuple[Rival, ...]], ...] = (
    ((1.0, 10**3, "any", 1, "clones"), CLONES),
    ((1.0, 10**6, "any", 1, "clones"), CLONES),
    ((1.0, 10**3, "any", 1, "clones-2022"), (("APPLE", apple, ()),)),
    ((1.0, 10**6, "any", 1, "clones-2022"), (("APPLE", apple, ()),)),
    ((1.0, 10**3, "rr", 1, "blanket"), (("SU", su, ("RRMechanism", 2)),)),
    ((1.0, 10**6, "rr", 1, "blanket"), (("SU", su, ("RRMechanism", 2)),)),
    ((1.0, 10**3, "krr:10", 1, "blanket"), (("SU", su, ("RRMechanism", 10)), ("WANGSW", wangsw, ("krr", 10)))),
    ((1.0, 10**3, "krr:10", 1, "balle19-bennett"), (("BALLE", balle, ("BennettExact", "RRMechanism", 10)),)),
    ((1.0, 10**3, "laplace", 1, "blanket"), (("SU", su, ("LaplaceMechanism",)), ("WANGSW", wangsw, ("laplace",)))),
    ((1.0, 10**3, "laplace", 1, "balle19-bennett"), (("BALLE", balle, ("BennettExact", "LaplaceMechanism")),)),
    ((1.0, 10**3, "any", 4, "clones"), (("DPBAYES", dpbayes, (4,)),)),
    ((1.0, 10**3, "any", 16, "clones"), (("DPBAYES", dpbayes, (16,)),)),
)


def asked(solve: Callable[..., float], args: tuple[Any, ...], repeats: int) -> Iterator[tuple[str, Any]]:
    """Time one question, with at most 4 GB of memory, and nothing printed."""
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    took, value = best(lambda: quietly(solve, *args), repeats)
    yield "seconds", took
    yield "value", value


def duel(question: Question, rivals: tuple[Rival, ...], repeats: int) -> None:
    """Print our answer and time to one question, what a real attack leaks, and their answers."""
    epsilon0, n, randomizer, rounds, key = question
    witness = certify(alike(epsilon0, n, randomizer, rounds), DELTA).epsilon.lower
    mine = alone(asked, ours, question, repeats)
    print(f"{randomizer}, epsilon0 = {epsilon0:g}, n = {n:.0e}, {rounds} rounds; an attack attains {witness:.7f}")
    print(f"  {key:16} {seconds(mine.get('seconds'))}   epsilon {mine.get('value', math.nan):.7f}   (ours)")
    for name, solve, options in rivals:
        folder = os.environ.get(f"SHUFFLEDP_PEER_{name}")
        if not folder:
            print(f"  {name.lower():16} peer not given")
            continue
        found = alone(asked, solve, (folder, epsilon0, n, *options), repeats)
        if "value" not in found or "value" not in mine:
            print(f"  {name.lower():16} {found['answer']}", flush=True)
            continue
        slower, larger = found["seconds"] / mine["seconds"], found["value"] / mine["value"] - 1.0
        print(
            f"  {name.lower():16} {seconds(found['seconds'])}   epsilon {found['value']:.7f}   {slower:.3g} times our "
            f"time, {larger:+.3%} of our epsilon{', BELOW THE ATTACK' if found['value'] < witness else ''}",
            flush=True,
        )


def seconds(value: float | None) -> str:
    return f"{'-':>9}" if value is None or value == math.inf else f"{value:8.4f}s"


def main() -> None:
    """Print the machine, every case, the peers, and the ranking."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="runs per time, fewer once they take 5 seconds")
    parser.add_argument("--only", default="", help="only cases that contain this text; 'peers' for the peers alone")
    parser.add_argument("--profile", type=int, default=3, help="so many of the slowest cases are profiled")
    options = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"  # of the processes started from here
    print(
        f"{platform.platform()}, {platform.machine()}, {os.cpu_count()} cpus, load {os.getloadavg()[0]:.1f}, "
        f"python {platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}"
    )
    missed: list[tuple[float, Case, str]] = []
    cases = [case for case in all_cases() if options.only in str(case)]
    print(f"{'case':46}{'goal':>9}{'deciding':>9}{'uppers':>9}{'certify':>9}  {'MB':>5}  load  answer")
    for case in cases:
        found = alone(measure, case, options.repeats)
        late = " late" if (took := found.get("uppers", math.inf)) > case.goal else ""
        print(
            f"{case!s:46}{seconds(case.goal)}{seconds(found.get('decisive'))}{seconds(found.get('uppers'))}"
            f"{seconds(found.get('certify'))}  {found.get('peak', 0.0):5.0f}  {os.getloadavg()[0]:4.1f}  "
            f"{found['answer']}{late}",
            flush=True,
        )
        if late or found.get("peak", 0.0) > MEMORY_GOAL:
            missed.append((took / case.goal, case, found.get("key", "blanket")))
    if options.only in ("", "peers"):
        for question, rivals in QUESTIONS:
            duel(question, rivals, options.repeats)
    print(f"{len(missed)} of {len(cases)} cases miss their goal (upper bounds in time, {MEMORY_GOAL:.0f} MB)")
    for ratio, case, key in sorted(missed, key=lambda item: -item[0]):
        print(f"  {case}: {ratio:.1f} times the goal")
        if options.profile > 0:
            options.profile -= 1
            print("    " + "\n    ".join(alone(profiled, case, key, 6).get("lines", ["no profile"])))


if __name__ == "__main__":
    main()
