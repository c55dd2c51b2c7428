"""Which bound earns its place: on a seeded sample of settings, where each is the best, by how much, and what it costs.

    python benchmarks/ablation.py                          300 settings, about ten minutes of one core
    python benchmarks/ablation.py --quick                  40 settings
    python benchmarks/ablation.py --out before.json        keep every setting's interval
    python benchmarks/ablation.py --against before.json    and compare with those kept: the largest rise of an upper end
    python benchmarks/ablation.py --terms                  what each term of `chain` costs (docs/theorems/chain.md)

A bound that is never the smallest upper end, or the largest lower one, of any setting that a user would meet has no
place in the bracket; a new one comes with the settings of this list that it wins. *Gain* is the factor between the
best of the others and the bound, of its best setting.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import defaultdict
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import shuffledp as sdp
from shuffledp.accounting import AmplificationBound, bounds, certify, weigh
from shuffledp.accounting.certify import consulted
from shuffledp.accounting.theorems.chain.bound import PureChainProfile
from shuffledp.accounting.theorems.chain.pure import Averages, PureLinks
from shuffledp.errors import ShuffleDPError
from shuffledp.setting import Kind

RANDOMIZERS: dict[str, Any] = {
    "any": lambda: "any",
    "rr": lambda: sdp.RandomizedResponse(2),
    "krr:3": lambda: sdp.RandomizedResponse(3),
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
    "channel": lambda: sdp.Channel([[0.6, 0.25, 0.15], [0.15, 0.6, 0.25], [0.25, 0.15, 0.6]]),
}
SITUATIONS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {},
    {"rounds": 8},
    {"missing": 0.05},
    {"colluding": 10},
    {"group_size": 2},
    {"rounds": 4, "linked": True},
    {"records": 2},
)
VIEWS = ("reports", "reports", "reports", "levels", "users", "sum")


def sampled(seed: int) -> tuple[str, sdp.Setting] | None:
    """One setting, or None where its parts do not go together."""
    random = np.random.default_rng(seed)
    name = str(random.choice(list(RANDOMIZERS)))
    n = round(float(10 ** random.uniform(math.log10(50), 6)))
    first = round(float(random.choice([0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0])) * float(random.uniform(0.8, 1.25)), 3)
    levels = int(random.choice([1, 1, 3]))
    epsilons = [first * factor for factor in ((1.0,) if levels == 1 else (0.25, 0.5, 1.0))]
    counts = [n] if levels == 1 else [max(n // 2, 1), max(n // 4, 1), max(n // 4, 1)]
    deltas = [1e-8] * levels if name == "gaussian" else None
    view, situation = str(random.choice(VIEWS)), SITUATIONS[int(random.integers(len(SITUATIONS)))]
    if name == "channel" and first < 1.39:
        epsilons = [1.4 + each for each in epsilons]
    words = " ".join(f"{key}={value}" for key, value in situation.items())
    told = f"{name} {'/'.join(f'{e:g}' for e in epsilons)} n={sum(counts)} seen={view} {words}".strip()
    try:
        budgets = sdp.Budgets(epsilons, counts, deltas) if deltas else sdp.Budgets(epsilons, counts)
        setting = sdp.Setting(budgets, RANDOMIZERS[name](), seen=view, neighboring="replace-one", **situation)  # type: ignore[arg-type]
    except ShuffleDPError:
        return None
    return told, setting


def ends(setting: sdp.Setting, spent: dict[str, float]) -> dict[str, tuple[float, Kind]]:
    """Worst end over the levels of every bound that `certify` asks and that answers; CPU seconds go into `spent`."""
    found: dict[str, tuple[float, Kind]] = {}
    every = np.arange(setting.budgets.levels)

    def ask(bound: AmplificationBound) -> Any:
        began = time.process_time()
        try:
            return bound.level_epsilons(setting, 1e-6, every)
        finally:
            spent[bound.key] += time.process_time() - began

    asked = [bound for bound in consulted(setting, published=False) if bound.enters_bracket]
    for answer in weigh(asked, ask):
        if answer.value is not None:
            upper = answer.bound.kind is Kind.CERTIFIED_UPPER
            end = answer.value.upper.max() if upper else answer.value.lower.max()
            found[answer.bound.key] = float(end), answer.bound.kind
    return found


GROUP, WEIGHTS, ERROR = "if the group A_2 hid the victim, too", "if the weights were all alike", "without Berry-Esseen"
DROPPED: tuple[tuple[str, ...], ...] = ((), (GROUP,), (WEIGHTS,), (ERROR,), (GROUP, WEIGHTS, ERROR))
"""Terms of (T) that are set to nothing together. What is left proves nothing."""


class Alike(Averages):
    """The law of weights whose expectations (C) are taken to be 1."""

    def uneven(self, factor: np.ndarray) -> np.ndarray:
        """Return 1 for each factor."""
        return np.ones_like(factor)


@dataclass(frozen=True, eq=False)
class Without(PureLinks):
    """The bound of the pure chain with some of its terms set to nothing."""

    dropped: tuple[str, ...] = field(default=())

    @cached_property
    def _laws(self) -> list[Averages]:
        laws = super()._laws
        if WEIGHTS not in self.dropped:
            return laws
        return [Alike(**{one.name: getattr(law, one.name) for one in fields(Averages)}) for law in laws]

    @cached_property
    def _spread(self) -> np.ndarray:
        return super()._spread * (WEIGHTS not in self.dropped)

    def _terms(self, *asked: Any) -> Any:
        found = super()._terms(*asked)
        return found if found is None or ERROR not in self.dropped else found._replace(error=0.0 * found.error)


def terms() -> None:
    """Print epsilon at delta 1e-6 and n = 10,000 with terms of the pure chain set to nothing, and what is attained."""
    asked = ((sdp.Laplace(0.0, 1.0), 1.0), (sdp.Laplace(0.0, 1.0), 2.0), (sdp.HadamardResponse(10), 2.0))
    table: list[list[float]] = [[] for _ in range(len(DROPPED) + 1)]
    for family, epsilon0 in asked:
        setting = sdp.Setting(sdp.Budgets([epsilon0], [10_000]), family, seen="reports", neighboring="replace-one")
        chain = bounds["chain"].profile(setting, epsilon0)
        assert isinstance(chain, PureChainProfile)
        ways = chain.ways
        for row, dropped in zip(table, DROPPED, strict=False):
            last = np.full_like(ways.last, chain.n - 1.0) if GROUP in dropped else ways.last
            changed = PureChainProfile(chain.epsilon0, chain.n, chain.law)
            changed.__dict__["ways"] = Without(ways.law, last, ways.copies, ways.charges, dropped)
            row.append(changed.epsilon(1e-6).upper)
        table[-1].append(certify(setting, 1e-6).epsilon.lower)
    print(f"{'epsilon at delta = 1e-6, n = 10,000':40} laplace 1  laplace 2  hadamard:10 2")
    names = ("certified", GROUP, WEIGHTS, ERROR, "without any of the three", "attained")
    for name, row in zip(names, table, strict=True):
        print(f"{name:38}" + "".join(f"{value:11.5f}" for value in row))


def main() -> None:
    """Sample, ask, tell."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="40 settings")
    options.add_argument("--out", type=Path, help="write every setting's interval")
    options.add_argument("--against", type=Path, help="compare with intervals that --out wrote")
    options.add_argument("--terms", action="store_true", help="what each term of the pure chain costs")
    asked = options.parse_args()
    if asked.terms:
        terms()
        return
    spent, wins, gain = defaultdict[str, float](float), defaultdict[str, int](int), defaultdict[str, float](lambda: 1.0)
    best, seed, wanted = {}, 0, 40 if asked.quick else 300
    while len(best) < wanted:
        one, seed = sampled(seed), seed + 1
        if one is None:
            continue
        told, setting = one
        found = ends(setting, spent)
        interval: dict[str, float] = {}
        for kind, better in ((Kind.CERTIFIED_UPPER, min), (Kind.CERTIFIED_LOWER, max)):
            own = {key: end for key, (end, of) in found.items() if of is kind}
            if not own:
                continue
            end = better(own.values())
            interval[kind.value] = end
            for key in [key for key, value in own.items() if value == end and 0.0 < end < math.inf]:
                others = [value for other, value in own.items() if other != key]
                second = better(others) if others else (math.inf if better is min else 0.0)
                factor = second / end if better is min else (end / second if second else math.inf)
                wins[key] += factor > 1.0
                gain[key] = max(gain[key], factor)
        best[told] = interval
    print(f"{len(best)} settings, {sum(spent.values()):.0f} CPU s")
    print(f"{'bound':18} {'alone best':>10} {'gain':>8} {'CPU s':>8}")
    for key in sorted(spent, key=lambda key: -wins[key]):
        print(f"{key:18} {wins[key]:10d} {gain[key]:8.3g} {spent[key]:8.1f}")
    if asked.out:
        asked.out.write_text(json.dumps(best, indent=1) + "\n", encoding="utf-8")
    if asked.against:
        compare(json.loads(asked.against.read_text(encoding="utf-8")), best)


def compare(before: dict[str, dict[str, float]], after: dict[str, dict[str, float]]) -> None:
    """Tell the largest rise of an upper end and the largest fall of a lower one."""
    upper, lower = Kind.CERTIFIED_UPPER.value, Kind.CERTIFIED_LOWER.value
    rises = {told: after[told][upper] / end[upper] for told, end in before.items() if told in after and upper in end}
    falls = {
        told: end[lower] / max(after[told].get(lower, 0.0), 1e-300) for told, end in before.items() if end.get(lower)
    }
    for name, changes in (("upper ends rose", rises), ("lower ends fell", falls)):
        most = sorted(changes, key=lambda told: -changes[told])[:5]
        above = sum(change > 1.0 + 1e-6 for change in changes.values())
        print(f"{name}: {above} of {len(changes)} by more than 1e-6; most:")
        print("\n".join(f"  {changes[told]:.6f}  {told}" for told in most))


if __name__ == "__main__":
    main()
