"""The curves in the pictures of docs/where-the-papers-fail.md: figure, series, x, y."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from tests.accounting import failure_oracles as real
from tests.accounting.test_paper_failures import renyi_of_clone_pair, renyi_of_count
from tools import docs_tables as tables

import shuffledp as sdp
from shuffledp.accounting import bounds
from shuffledp.numerics.sums import IndependentSum, positive_part

Point = tuple[str, str, float, float]

LOCAL_BUDGETS = np.geomspace(0.05, 8.0, 34)
ORDERS = np.geomspace(2, 64, 26)
ROUNDS = (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 20)
LAPLACE_EPSILONS = np.linspace(0.0, 0.36, 10)
FINE_EPSILONS = np.linspace(0.0, 0.36, 37)
ORDERED_EPSILONS = np.linspace(0.0, 0.6, 61)


def curves() -> Iterator[Point]:
    """Return every point of every curve."""
    yield from one_budget()
    yield from laplace()
    yield from ordered()
    yield from renyi()
    yield from rounds()


def one_budget(n: int = 1000, delta: float = 1e-6) -> Iterator[Point]:
    """Items 1 and 2: epsilon by local budget."""
    for e0 in LOCAL_BUDGETS:
        e0 = float(e0)
        asked = tables.same(e0, n)
        for series, keys, best in (
            ("certified", ("clones",), min),
            ("attained", ("rr-exact", "krr-exact"), max),
            ("gspa", ("gspa",), min),
            ("rdp-gdp", ("rdp-gdp",), min),
        ):
            yield "one-budget", series, e0, best(tables.epsilon(key, asked, e0, delta) for key in keys)


def _profiles(figure: str, series: dict[str, Callable[[float], float]], at: np.ndarray) -> Iterator[Point]:
    for name, delta in series.items():
        for x in at:
            yield figure, name, float(x), delta(float(x))


def laplace() -> Iterator[Point]:
    """Item 4: delta by epsilon, victim at 2."""
    asked = tables.setting(sdp.Budgets([0.01, 2.0], [9999, 1]), sdp.Laplace(0.0, 1.0))
    parts = {key: bounds[key].profile(asked, 2.0) for key in ("blanket", "gspa")}
    slow = {"certified": lambda x: parts["blanket"].delta(x).upper}
    quick = {"attained": real.QUIET_LAPLACE[2.0].delta, "gspa": lambda x: parts["gspa"].delta(x).upper}
    yield from _profiles("laplace", slow, LAPLACE_EPSILONS)
    yield from _profiles("laplace", quick, FINE_EPSILONS)


def ordered() -> Iterator[Point]:
    """Item 5: delta by epsilon, 900 steps at 0.01 and 100 at 4."""
    budgets = sdp.Budgets([e0 for e0, _ in tables.STEPS], [count for _, count in tables.STEPS])
    asked = tables.setting(budgets, seen="users")
    parts = {key: bounds[key].profile(asked, 4.0) for key in ("ordered", "gspa")}
    series = {
        "certified": lambda x: parts["ordered"].delta(x).upper,
        "attained": lambda x: real.three_symbol_delta(tables.STEPS, x),
        "gspa": lambda x: parts["gspa"].delta(x).upper,
    }
    yield from _profiles("ordered", series, ORDERED_EPSILONS)


def renyi(n: int = 1000) -> Iterator[Point]:
    """Item 7: divergence by order, epsilon0 = 2 and 4."""
    for e0 in (2.0, 4.0):
        for order in map(float, ORDERS):
            figure = f"renyi, epsilon0 = {e0:g}"
            yield figure, "certified", order, renyi_of_clone_pair(e0, n, order)
            yield figure, "attained", order, renyi_of_count(e0, n, order)
            yield figure, "own pair", order, real.clone_pair_renyi(e0, n, order, math.exp(-e0))
            yield figure, "rdp-renyi", order, 2 * math.exp(e0) * order / (n - 1)


def rounds(delta: float = 1e-5) -> Iterator[Point]:
    """Item 10: epsilon by number of rounds."""
    e0, n = tables.ROUND_BUDGET, tables.ROUND_USERS
    for count in ROUNDS:
        fresh = tables.same(e0, n, randomizer=sdp.RandomizedResponse(k=2), rounds=count)
        linked = tables.linked_setting(count)
        top = float(linked.budgets.epsilons[-1])
        yield "rounds", "certified", count, tables.epsilon("blanket", linked, top, delta)
        yield "rounds", "attained", count, linked_epsilon(count, delta)
        yield "rounds", "fresh", count, tables.epsilon("clones", fresh, e0, delta)
        yield "rounds", "gspa", count, tables.epsilon("gspa", fresh, e0, delta)
        yield "rounds", "unshuffled", count, real.unshuffled_rounds_epsilon(e0, count, delta)


def linked_epsilon(count: int, delta: float) -> float:
    """Return what linked answers attain: as `docs_tables.linked_epsilon`, by the library's faster transform."""
    zero, ratios = real.round_counts(tables.ROUND_BUDGET, count)
    n = float(tables.ROUND_USERS)

    def leak(epsilon: float) -> float:
        t = math.exp(epsilon)
        one = IndependentSum(np.array([n]), (ratios - t)[None], zero[None], np.array([-math.expm1(epsilon)]))
        return positive_part(one).lower / n

    low, high = 0.0, tables.ROUND_BUDGET * count
    while high - low > 1e-4:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if leak(middle) > delta else (low, middle)
    return low
