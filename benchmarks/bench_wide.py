"""CPU seconds of wide questions: many budgets over rounds, several levels of added noise, bounded attacks.

    python benchmarks/bench_wide.py                          every question below, against what it may cost
    python benchmarks/bench_wide.py --out before.json        keep the certified ends of a seeded grid of settings
    python benchmarks/bench_wide.py --against before.json    and tell which of those kept rose (upper) or fell (lower)

The grid is of settings with several rounds, which is where a bound is composed only if it may be the smallest; run
`--out` on the commit before and `--against` on the one after. The exit status is 1 if an upper end rose by more than
1e-6 of itself. Seconds are those of the processor, of a first answer: imports are done, nothing is remembered.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import shuffledp as sdp
from shuffledp.errors import ShuffleDPError

DELTA = 1e-6
RISE = 1e-6
LEVELS = (0.5, 1.0, 2.0)


def setting(epsilons: list[float], n: int, randomizer: object, delta0: float = 0.0, **more: object) -> sdp.Setting:
    """As many users of each budget, n in all."""
    counts = [n // len(epsilons)] * len(epsilons)
    budgets = sdp.Budgets(epsilons, counts, [delta0] * len(epsilons))
    return sdp.Setting(budgets, randomizer, **{"seen": "reports", "neighboring": "replace-one", **more})  # type: ignore[arg-type]


def different(randomizer: object) -> sdp.Setting:
    """10,000 people with budgets of their own, 12 rounds."""
    epsilons = np.random.default_rng(0).uniform(0.05, 2.0, 10_000).round(6)
    return sdp.Setting(
        sdp.Budgets.of(epsilons),
        randomizer,  # type: ignore[arg-type]
        seen="reports",
        neighboring="replace-one",
        rounds=12,
    )


LAPLACE, GAUSSIAN, BIT = sdp.Laplace(0.0, 1.0), sdp.Gaussian(0.0, 1.0), sdp.RandomizedResponse(2)
FORTY = np.linspace(0.5, 2.0, 40).tolist()


def certified(one: sdp.Setting) -> list[float]:
    """Both certified ends of the worst level."""
    found = sdp.certify(one, DELTA).epsilon
    return [found.lower, found.upper]


def dominated(one: sdp.Setting, outside: float) -> list[float]:
    """The mu of the worst level, with the certificate before it."""
    return [sdp.certify(one, DELTA).mu(outside)]


QUESTIONS: tuple[tuple[str, float, Callable[[], list[float]]], ...] = (
    ("any, 10,000 budgets, 12 rounds", 5.0, lambda: certified(different("any"))),
    ("rr, 10,000 budgets, 12 rounds", 5.0, lambda: certified(different(BIT))),
    ("laplace, 3 levels, 9,000 people, 8 rounds", 4.0, lambda: certified(setting([*LEVELS], 9000, LAPLACE, rounds=8))),
    (
        "gaussian, 3 levels, 9,000 people, 8 rounds",
        4.0,
        lambda: certified(setting([*LEVELS], 9000, GAUSSIAN, 1e-8, rounds=8)),
    ),
    ("laplace, 40 levels", 3.0, lambda: certified(setting(FORTY, 40_000, LAPLACE))),
    ("gaussian, 40 levels", 3.0, lambda: certified(setting(FORTY, 40_000, GAUSSIAN, 1e-8))),
    ("laplace, 40 levels, 8 rounds", 3.0, lambda: certified(setting(FORTY, 40_000, LAPLACE, rounds=8))),
    ("rr, 4 levels, 12 rounds", 2.0, lambda: certified(setting([0.5, 1.0, 1.5, 2.0], 40_000, BIT, rounds=12))),
    ("laplace, mu of 3 levels", 2.0, lambda: dominated(setting([*LEVELS], 9000, LAPLACE), 1e-9)),
    ("gaussian, mu of 3 levels", 2.0, lambda: dominated(setting([*LEVELS], 9000, GAUSSIAN, 1e-8), 1e-6)),
    ("gaussian at 4, 8 rounds", 3.0, lambda: certified(setting([4.0], 9000, GAUSSIAN, 1e-8, rounds=8))),
    (
        "krr:10, a million people, 12 linked rounds",
        3.0,
        lambda: certified(setting([1.0], 10**6, sdp.RandomizedResponse(10), rounds=12, linked=True)),
    ),
)
"""Each with the CPU seconds that it may cost."""

FAMILIES = {
    "any": lambda: "any",
    "rr": lambda: sdp.RandomizedResponse(2),
    "krr:3": lambda: sdp.RandomizedResponse(3),
    "hadamard:10": lambda: sdp.HadamardResponse(10),
    "subset:10": lambda: sdp.SubsetSelection(10),
    "laplace": lambda: LAPLACE,
    "gaussian": lambda: GAUSSIAN,
}


def grid(settings: int) -> dict[str, list[float]]:
    """Certified ends of a seeded sample of settings with rounds, by a name that says what was asked."""
    found: dict[str, list[float]] = {}
    for seed in range(settings):
        random = np.random.default_rng(seed)
        name = str(random.choice(list(FAMILIES)))
        levels, rounds = int(random.choice([1, 2, 3])), int(random.choice([2, 8, 12]))
        first = round(float(random.choice([0.5, 1.0, 2.0, 4.0])) * float(random.uniform(0.8, 1.25)), 3)
        n = round(float(10 ** random.uniform(2, 5)) / levels) * levels
        epsilons = [first / 2.0**step for step in range(levels)][::-1]
        view = str(random.choice(["reports", "reports", "levels"]))
        told = f"{name} {'/'.join(f'{e:g}' for e in epsilons)} n={n} seen={view} rounds={rounds}"
        try:
            delta0 = 1e-8 if name == "gaussian" else 0.0
            found[told] = certified(setting(epsilons, n, FAMILIES[name](), delta0, seen=view, rounds=rounds))
        except ShuffleDPError as refusal:
            print(f"  {told}: {refusal}")
    return found


def compare(before: dict[str, list[float]], after: dict[str, list[float]]) -> bool:
    """Tell the largest changes; whether no upper end rose."""
    same = [told for told in before if told in after]
    rises = {told: after[told][1] / before[told][1] - 1.0 if before[told][1] > 0.0 else 0.0 for told in same}
    falls = {told: 1.0 - after[told][0] / before[told][0] if before[told][0] > 0.0 else 0.0 for told in same}
    for name, changes in (("upper ends rose", rises), ("lower ends fell", falls)):
        above = sum(change > RISE for change in changes.values())
        print(f"{name} by more than {RISE:g} of themselves: {above} of {len(changes)}; most:")
        for told in sorted(changes, key=lambda one: -changes[one])[:5]:
            print(f"  {changes[told]:+.2e}  {told}")
    return max(rises.values(), default=0.0) <= RISE


def timed() -> None:
    """Print what every question costs and answers."""
    certified(setting([1.0], 1000, "any"))  # first calls are not what is measured
    for name, most, ask in QUESTIONS:
        began = time.process_time()
        answer = ask()
        took = time.process_time() - began
        told = ", ".join(f"{value:.9g}" for value in answer if not math.isnan(value))
        print(f"{name:44} {took:7.2f} s of {most:g}{'' if took <= most else '  OVER'}   [{told}]", flush=True)


def main() -> None:
    """Time the questions, or keep or compare the grid."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--settings", type=int, default=60, help="settings of the grid")
    parser.add_argument("--out", type=Path, help="keep the grid's certified ends")
    parser.add_argument("--against", type=Path, help="compare with a grid that was kept")
    asked = parser.parse_args()
    if asked.out is None and asked.against is None:
        timed()
        return
    now = grid(asked.settings)
    if asked.out is not None:
        asked.out.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
    if asked.against is not None and not compare(json.loads(asked.against.read_text(encoding="utf-8")), now):
        sys.exit(1)


if __name__ == "__main__":
    main()
