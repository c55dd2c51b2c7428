"""The numbers behind docs/bounds.md: GSPA's Table 2 populations under every bound, as rows of CSV tables.

Written by `python -m tools.make_docs_figures`; checked, a quick part of them, by tests/test_docs.py.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import shuffledp as sdp
from shuffledp.accounting import AmplificationBound, bounds
from shuffledp.errors import NotConverged, OutOfRegime
from shuffledp.reproduce.failure_tables import setting

Row = tuple[object, ...]
TABLE2_DELTA = 1e-4
SIZES = tuple(range(1000, 10_001, 1000))
POPULATIONS = ("Unif 1", "Unif 2", "Constant", "Mixed")
MEANING = {
    "Unif 1": "budgets uniform on [0.01, 1]",
    "Unif 2": "budgets uniform on [0.01, 2]",
    "Constant": "everybody at 0.5",
    "Mixed": "half at 0.5, half at 0.01",
}
VIEWS = {
    "reports": ("rr", "reports"),
    "levels": ("any", "levels"),
    "ordered": ("any", "users"),
}
"""What is asked: shuffled randomized response; any randomizer, levels visible; any, ordered, budgets at steps."""


def population(name: str, n: int) -> sdp.Budgets:
    """Return the first n users of a Table 2 population (numpy default_rng(0))."""
    random = np.random.default_rng(0)
    most = SIZES[-1]
    drawn = {
        "Unif 1": lambda: random.uniform(0.01, 1.0, most),
        "Unif 2": lambda: random.uniform(0.01, 2.0, most),
        "Constant": lambda: np.full(most, 0.5),
        "Mixed": lambda: np.tile([0.5, 0.01], most // 2),
    }
    return sdp.Budgets.of(drawn[name]()[:n])


def table2_setting(name: str, n: int, view: str, *, largest: bool = False) -> sdp.Setting:
    """Return the question of one cell; with ``largest``, everybody counts as having the largest budget."""
    randomizer, seen = VIEWS[view]
    budgets = population(name, n)
    if largest:
        budgets = sdp.Budgets([budgets.epsilons[-1]], [n])
    return setting(budgets, sdp.RandomizedResponse(k=2) if randomizer == "rr" else "any", seen)


def worst_epsilon(bound: AmplificationBound, asked: sdp.Setting) -> sdp.Interval | str:
    """Return a bound's epsilon, the largest of all levels, or its refusal."""
    levels = np.arange(asked.budgets.levels)
    listed = levels if levels.size <= 1000 else np.unique(np.linspace(0, levels.size - 1, 200).astype(np.int64))
    try:
        found = bound.level_epsilons(asked, TABLE2_DELTA, listed)
    except (OutOfRegime, NotConverged) as refusal:
        return str(refusal)
    return sdp.Interval(float(found.lower.max()), float(found.upper.max()))


def asks_for_one_budget(bound: AmplificationBound, refusal: str) -> bool:
    """Whether everybody at the largest budget is worth asking: never of a witness, which may only be rounded down."""
    return bound.kind is not sdp.Kind.CERTIFIED_LOWER and "one budget" in refusal


def table2(sizes: tuple[int, ...] = SIZES, names: tuple[str, ...] = POPULATIONS) -> Iterator[Row]:
    """Return population, n, seen, budgets, key, kind, lower, upper, refused for every bound.

    A bound that needs one budget for all refuses three populations; it is asked again with everybody at the
    largest budget ("largest"), which is a valid, weaker question for randomized response.
    """
    for name in names:
        for n in sizes:
            for view in VIEWS:
                asked = table2_setting(name, n, view)
                for key, bound in bounds.items():
                    found, counted = worst_epsilon(bound, asked), "own"
                    if isinstance(found, str) and view == "reports" and asks_for_one_budget(bound, found):
                        yield name, n, view, counted, key, bound.kind.value, "", "", found
                        found, counted = worst_epsilon(bound, table2_setting(name, n, view, largest=True)), "largest"
                    ends = ("", "", found) if isinstance(found, str) else (found.lower, found.upper, "")
                    yield name, n, view, counted, key, bound.kind.value, *ends
