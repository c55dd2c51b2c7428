"""More consent never makes a plan worse: larger budgets can always be rounded down.

Version 0.1.0 fixed the shape of subset selection and local hashing before it lowered the budgets, so people who
allowed 20 instead of 2 got a refusal.
"""

from __future__ import annotations

import itertools

import pytest

from shuffledp import Frequency, Mean
from shuffledp.budgets import Budgets
from shuffledp.planning import bucket_budgets, plan

HUNDRED = Frequency(range(100))
FOUND_WITHIN = 1.0 + 2e-4
"""Caps are found to 1e-4 of the best ones."""
NEARLY = 1.02
"""Shown levels are nearly the best: which users share one is chosen on a grid of 3 %."""


def bucket(budgets, question, mechanism, seen, **kwargs):
    return bucket_budgets(budgets, question, mechanism=mechanism, seen=seen, delta=1e-6, **kwargs)


@pytest.mark.costly
@pytest.mark.one_in(2)
@pytest.mark.parametrize("mechanism", ["olh", "subset"])
def test_a_budget_of_20_is_planned_as_well_as_one_of_2(mechanism):
    """The exact input of the finding."""
    made = {
        epsilon0: plan(
            Budgets((epsilon0,), (10_000,)), HUNDRED, target_epsilon=0.1, delta=1e-6, mechanisms=[mechanism],
            seen="reports",
        )
        for epsilon0 in (2.0, 20.0)
    }  # fmt: skip
    for one in made.values():
        assert one.guarantee.epsilon.upper <= 0.1
        assert one.bucketing.family == HUNDRED.randomizer(mechanism, one.bucketing.budgets, "reports")
    assert made[20.0].standard_error <= made[2.0].standard_error


@pytest.mark.costly
@pytest.mark.one_in(4)
@pytest.mark.parametrize("seen", ["reports", "levels"])
@pytest.mark.parametrize(
    ("question", "mechanism"),
    [(HUNDRED, "olh"), (HUNDRED, "subset"), (HUNDRED, "krr"), (Mean(0, 1), "piecewise")],
)
def test_the_error_of_one_budget_never_rises_with_it(question, mechanism, seen):
    """The budgets lie on both sides of changes of shape (local hashing: 0.55, 1.53 and 2.35)."""
    budgets = (0.05, 0.5, 0.6, 1.5, 1.55, 1.8, 2.3, 2.4, 3.0, 8.0, 100.0)
    errors = [
        bucket(Budgets((e,), (10_000,)), question, mechanism, seen, target=0.1).prediction.standard_error
        for e in budgets
    ]
    assert all(b <= a * FOUND_WITHIN for a, b in itertools.pairwise(errors)), errors


@pytest.mark.costly("subset")
@pytest.mark.parametrize("mechanism", ["olh", "subset"])
def test_the_smallest_epsilon_for_an_error_never_rises_with_the_budget(mechanism):
    epsilons = [
        bucket(Budgets((e,), (10_000,)), HUNDRED, mechanism, "reports", goal="guarantee", target=0.03).certified_epsilon
        for e in (1.0, 1.5, 1.6, 2.4, 8.0)
    ]
    assert all(b <= a * FOUND_WITHIN for a, b in itertools.pairwise(epsilons)), epsilons


@pytest.mark.costly
@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("question", "mechanism", "seen", "before", "after", "users"),
    [
        (HUNDRED, "olh", "levels", (1.587, 2.794), (1.587, 8.807), (2216, 622)),
        (HUNDRED, "olh", "reports", (0.337, 0.655, 2.427), (0.337, 0.655, 10.262), (1613, 1837, 6856)),
        (HUNDRED, "subset", "reports", (0.197, 2.216, 2.586), (0.197, 2.53, 4.194), (121, 6787, 1487)),
        (Frequency(range(30)), "oue", "reports", (0.286, 1.306), (0.867, 1.306), (170, 7337)),
        (Mean(0, 1), "hybrid", "levels", (1.035, 2.389, 2.418), (1.617, 7.249, 2.421), (4891, 6393, 5745)),
    ],
)
def test_the_error_of_several_budgets_does_not_rise(question, mechanism, seen, before, after, users):
    """Inputs at which a search of the wrong kind made it rise by 4 to 38 %."""
    first, then = (
        bucket(Budgets(epsilons, users), question, mechanism, seen, target=0.1, weights="precision")
        for epsilons in (before, after)
    )
    assert then.certified_epsilon <= 0.1
    assert then.prediction.standard_error <= first.prediction.standard_error * NEARLY


@pytest.mark.costly
def test_a_lonely_level_gets_company_where_reports_tell_it():
    """Unary reports give their sender's budget away: one cap for all would cost the crowd four fifths of theirs."""
    own = Budgets((0.867, 1.306), (170, 7337))
    found = bucket(own, Frequency(range(30)), "oue", "reports", target=0.1)
    assert found.certified_epsilon <= 0.1
    assert found.levels is not None
    assert found.budgets.epsilons[-1] == 1.306
