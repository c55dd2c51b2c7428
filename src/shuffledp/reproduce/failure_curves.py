"""The curves in the pictures of docs/where-the-papers-fail.md: figure, series, x, y."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from shuffledp.accounting import bounds
from shuffledp.budgets import Budgets
from shuffledp.numerics.sums import IndependentSum, positive_part
from shuffledp.randomizers.categorical import RandomizedResponse
from shuffledp.randomizers.noise import Laplace
from shuffledp.reproduce import estimation as real
from shuffledp.reproduce import failure_tables as tables

Point = tuple[str, str, float, float]
Curve = Callable[[float], float]

LOCAL_BUDGETS = np.geomspace(0.05, 8.0, 34)
ORDERS = np.geomspace(2, 64, 26)
ROUNDS = (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 20)
LAPLACE_EPSILONS = np.linspace(0.0, 0.36, 10)
FINE_EPSILONS = np.linspace(0.0, 0.36, 37)
ORDERED_EPSILONS = np.linspace(0.0, 0.6, 61)
APPROXIMATE_EPSILONS = np.linspace(0.0, 0.25, 51)


def _some(points: np.ndarray, quick: bool) -> np.ndarray:
    """Every third point, both ends among them."""
    return points[:: 3 if (points.size - 1) % 3 == 0 else 5] if quick else points


def one_budget(n: int = 1000, delta: float = 1e-6, *, quick: bool = False) -> Iterator[Point]:
    """Yield the points (figure, series, x, y) of the curves of items 1 and 2: epsilon against the local budget.

    Parameters
    ----------
    n : int
        Number of users, all of one budget.
    delta : float
        Central delta, in (0, 1).
    quick : bool
        Whether to compute fewer points.
    """
    for e0 in _some(LOCAL_BUDGETS, quick):
        e0 = float(e0)
        setting = tables.same(e0, n)
        for series, keys, best in (
            ("certified", ("clones",), min),
            ("attained", ("count-exact", "krr-exact"), max),
            ("gspa", ("gspa",), min),
            ("rdp-gdp", ("rdp-gdp",), min),
        ):
            yield "one-budget", series, e0, best(tables.epsilon(key, setting, e0, delta) for key in keys)


def _profiles(figure: str, series: dict[str, Curve], at: np.ndarray) -> Iterator[Point]:
    for name, delta in series.items():
        for x in at:
            yield figure, name, float(x), delta(float(x))


def laplace(*, quick: bool = False) -> Iterator[Point]:
    """Return the curves of item 4: delta against epsilon for a victim (the analysed user) with budget 2.

    Parameters are as for `one_budget`.
    """
    setting = tables.setting(Budgets([0.01, 2.0], [9999, 1]), Laplace(0.0, 1.0))
    parts = {key: bounds[key].profile(setting, 2.0) for key in ("blanket", "gspa")}
    slow: dict[str, Curve] = {"certified": lambda x: parts["blanket"].delta(x).upper}
    fast: dict[str, Curve] = {"attained": real.QUIET_LAPLACE[2.0].delta, "gspa": lambda x: parts["gspa"].delta(x).upper}
    yield from _profiles("laplace", slow, _some(LAPLACE_EPSILONS, quick))
    yield from _profiles("laplace", fast, FINE_EPSILONS)


def ordered(*, quick: bool = False) -> Iterator[Point]:
    """Return the curves of item 5: delta against epsilon for 900 steps of budget 0.01 and 100 of budget 4.

    Parameters are as for `one_budget`.
    """
    budgets = Budgets([e0 for e0, _ in tables.STEPS], [count for _, count in tables.STEPS])
    setting = tables.setting(budgets, seen="users")
    parts = {key: bounds[key].profile(setting, 4.0) for key in ("ordered", "gspa")}
    series: dict[str, Curve] = {
        "certified": lambda x: parts["ordered"].delta(x).upper,
        "attained": lambda x: real.three_symbol_delta(tables.STEPS, x),
        "gspa": lambda x: parts["gspa"].delta(x).upper,
    }
    yield from _profiles("ordered", series, _some(ORDERED_EPSILONS, quick))


def renyi(n: int = 1000, *, quick: bool = False) -> Iterator[Point]:
    """Return the curves of item 7: Renyi divergence against its order.

    ``n`` is the number of users. Other parameters are as for `one_budget`.
    """
    orders = _some(ORDERS, quick)
    for e0 in (2.0, 4.0):
        figure = f"renyi, epsilon0 = {e0:g}"
        setting, attack = tables.same(e0, n), tables.same(e0, n, randomizer=RandomizedResponse(k=2))
        curves = {
            "certified": bounds["clones"].profile(setting, e0).renyi_curve(orders).upper,
            "attained": bounds["count-exact"].profile(attack, e0).renyi_curve(orders).lower,
            "own pair": bounds["clones-2022"].profile(setting, e0).renyi_curve(orders).upper,
            "rdp-renyi": 2.0 * math.exp(e0) * orders / (n - 1),
        }
        for series, values in curves.items():
            for order, value in zip(orders, values, strict=True):
                yield figure, series, float(order), float(value)


def rounds(delta: float = 1e-5, *, quick: bool = False) -> Iterator[Point]:
    """Return the curves of item 10: epsilon against the number of rounds.

    Parameters are as for `one_budget`.
    """
    e0, n = tables.ROUND_BUDGET, tables.ROUND_USERS
    for count in ROUNDS[:: 3 if quick else 1]:
        fresh = tables.same(e0, n, randomizer=RandomizedResponse(k=2), rounds=count)
        linked = tables.linked_setting(count)
        top = float(linked.budgets.epsilons[-1])
        yield "rounds", "certified", count, tables.epsilon("blanket", linked, top, delta)
        yield "rounds", "attained", count, linked_epsilon(count, delta)
        yield "rounds", "fresh", count, tables.epsilon("clones", fresh, e0, delta)
        yield "rounds", "gspa", count, tables.epsilon("gspa", fresh, e0, delta)
        yield "rounds", "unshuffled", count, real.unshuffled_rounds_epsilon(e0, count, delta)


def approximate(e0: float = 0.5, d0: float = 1e-3, n: int = 10_000, *, quick: bool = False) -> Iterator[Point]:
    """Return the curves of item 6: delta(epsilon) of randomized response that shows the record with chance delta0.

    ``e0`` is epsilon0, ``d0`` is delta0, ``n`` is the number of users. Other parameters are as for `one_budget`.
    """
    claimed = bounds["gspa"].profile(tables.setting(Budgets([e0], [n], [d0])), e0)
    series: dict[str, Curve] = {"attained": lambda x: d0, "gspa": lambda x: claimed.delta(x).upper}
    yield from _profiles("approximate", series, _some(APPROXIMATE_EPSILONS, quick))


def pure(*, quick: bool = False) -> Iterator[Point]:
    """Return the curves of item 11: distance over delta0 from every pure randomizer, by the number of values.

    epsilon0 is 1.

    Parameters are as for `one_budget`.
    """
    del quick
    for k in range(2, 21):
        yield "pure", "claimed", float(k), 1.0 + 1.0 / (2.0 * math.e)
        yield "pure", "real", float(k), (k - 1.0) / (1.0 + math.e)


def linked_epsilon(count: int, delta: float) -> float:
    """Return the epsilon in nats that an attack on linked answers attains, by the library's transform.

    `failure_tables.linked_epsilon` computes the same value more slowly.
    """
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


PARTS = (one_budget, laplace, ordered, approximate, renyi, rounds, pure)
"""Every curve; quick takes every third to fifth point."""
