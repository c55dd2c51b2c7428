"""Ordered outputs (II): golden values by enumeration, the published failure, and agreement with one budget."""

import json
from pathlib import Path

import numpy as np
import pytest

from shuffledp import Budgets, OutOfRegime, RandomizedResponse, Setting, bounds, certify

GOLDEN = [
    case
    for case in json.loads((Path(__file__).parents[1] / "reference" / "clone_pair.json").read_text(encoding="utf-8"))
    if case["kind"].startswith("ordered")
]


def setting(budgets, seen="users"):
    return Setting(budgets, "any", seen=seen, neighboring="replace-one")


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: f"n={len(case['epsilons'])}")
def test_enumerated_pairs_are_enclosed(case):
    budgets = Budgets.of(case["epsilons"])
    profile = bounds["ordered"].profile(setting(budgets), float(budgets.epsilons[0]))
    for epsilon, delta in case["profile"]:
        found = profile.delta(epsilon)
        assert found.lower <= delta * (1 + 1e-15)
        assert delta * (1 - 1e-15) <= found.upper


@pytest.mark.parametrize(
    ("epsilon", "proved", "attained", "claimed"), [(0.2, 9.65e-4, 9.14e-4, 2.85e-5), (0.4, 8.12e-7, 7.10e-7, 1.3e-11)]
)
def test_gspa_under_its_own_definition_6(epsilon, proved, attained, claimed):
    # 900 steps at 0.01 and 100 at 4: ternary response per step, the others on the third symbol, attains `attained`
    budgets = Budgets([0.01, 4.0], [900, 100])
    found = bounds["ordered"].profile(setting(budgets), 4.0).delta(epsilon)
    assert found.upper == pytest.approx(proved, rel=2e-3)
    assert found.lower > attained
    assert bounds["gspa"].profile(setting(budgets), 4.0).delta(epsilon).upper == pytest.approx(claimed, rel=0.05)


@pytest.mark.parametrize(("epsilon0", "n"), [(0.1, 1000), (1.0, 10_000), (4.0, 10**6)])
def test_one_budget_is_the_clone_pair(epsilon0, n):
    one = setting(Budgets([epsilon0], [n]))
    ordered, clones = (bounds[key].profile(one, epsilon0).epsilon(1e-6) for key in ("ordered", "clones"))
    assert ordered.lower <= clones.upper
    assert clones.lower <= ordered.upper
    assert ordered.upper == pytest.approx(clones.upper, rel=1e-3)


def test_many_different_budgets_are_rounded_up():
    budgets = Budgets.of(np.linspace(0.1, 1.0, 3000))
    coarse = bounds["ordered"].profile(setting(budgets), 0.1).delta(0.05).upper
    below = Budgets(np.linspace(0.1, 1.0, 100), [30] * 100)
    assert coarse == pytest.approx(bounds["ordered"].profile(setting(below), 0.1).delta(0.05).upper, rel=0.05)


def test_budgets_of_users_are_refused():
    with pytest.raises(OutOfRegime, match="seen = users"):
        bounds["ordered"].profile(setting(Budgets([1.0], [10]), "reports"), 1.0)
    two = Setting(Budgets([1.0, 2.0], [10, 10]), RandomizedResponse(2), "users", "replace-one")
    with pytest.raises(OutOfRegime, match="ordered"):
        bounds["clones"].profile(two, 1.0)


def test_extreme_steps_keep_the_local_bound():
    found = certify(setting(Budgets([0.0, 1e-9, 700.0], [5, 5, 5])), 1e-6)
    assert found.epsilon.upper <= 700.0
