"""Laws every certified number obeys, whatever the population (hypothesis).

The library returns upper ends with counted slack (relative 1e-4 at most), so "monotone" is asked up to it.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shuffledp.accounting import bounds, certify, privacy_profile
from shuffledp.budgets import Budgets
from shuffledp.numerics.floats import few_digits_up
from shuffledp.randomizers import RandomizedResponse
from shuffledp.setting import Setting

SLACK = 2e-4
FLOOR = 1e-12
FEW = settings(max_examples=40, deadline=None, derandomize=True)
FEWER = settings(FEW, max_examples=15)

budget = st.floats(0.01, 8.0)
size = st.integers(2, 100_000)
deltas = st.floats(-12, -2).map(lambda x: 10.0**x)
users = st.lists(st.sampled_from([0.0, 0.01, 0.1, 0.5, 1.0, 2.0, 4.0]) | st.floats(0.0, 6.0), min_size=2, max_size=30)


def one_budget(e0: float, n: int) -> Setting:
    return Setting(Budgets(epsilons=(e0,), counts=(n,)), "any", seen="reports", neighboring="replace-one")


def rr(epsilons: list[float]) -> Setting:
    return Setting(Budgets.of(epsilons), RandomizedResponse(k=2), seen="reports", neighboring="replace-one")


def upper(e0: float, n: int, delta: float) -> float:
    return bounds["clones"].profile(one_budget(e0, n), epsilon0=e0).epsilon(delta).upper


def at_most(small: float, large: float) -> bool:
    return small <= large * (1 + SLACK) + FLOOR


@FEW
@given(budget, budget, size, deltas)
def test_more_local_budget_is_less_private(a, b, n, delta):
    assert at_most(upper(min(a, b), n, delta), upper(max(a, b), n, delta))


@FEW
@given(budget, size, size, deltas)
def test_more_users_are_more_private(e0, n, m, delta):
    assert at_most(upper(e0, max(n, m), delta), upper(e0, min(n, m), delta))


@FEW
@given(budget, size, deltas, deltas)
def test_larger_delta_needs_smaller_epsilon(e0, n, a, b):
    assert at_most(upper(e0, n, max(a, b)), upper(e0, n, min(a, b)))


@pytest.mark.costly
@FEW
@given(users, st.floats(0, 1), st.floats(0, 1), st.randoms(use_true_random=False))
def test_delta_falls_with_epsilon_and_brackets(epsilons, x, y, rng):
    victim = rng.choice(epsilons)
    profile = privacy_profile(rr(epsilons), epsilon0=victim)
    first, second = profile.delta(min(x, y) * victim), profile.delta(max(x, y) * victim)
    assert 0.0 <= first.lower <= first.upper <= 1.0
    assert at_most(second.upper, first.upper)
    assert at_most(second.lower, first.lower)


@pytest.mark.costly
@FEWER
@given(users, deltas)
def test_central_never_exceeds_local_and_lower_never_upper(epsilons, delta):
    guarantee = certify(rr(epsilons), delta)
    assert 0.0 <= guarantee.epsilon.lower <= guarantee.epsilon.upper <= few_digits_up(max(epsilons))
    for level in guarantee.levels:
        assert 0.0 <= level.epsilon.lower <= level.epsilon.upper <= few_digits_up(level.epsilon0)
    assert guarantee.levels_total == len(set(epsilons))


@FEW
@given(users, st.floats(0.0, 6.0), deltas, st.randoms(use_true_random=False))
def test_a_new_user_never_hurts_the_others(epsilons, new, delta, rng):
    victim = rng.choice(epsilons)
    before = bounds["clones"].profile(rr(epsilons), epsilon0=victim).epsilon(delta).upper
    after = bounds["clones"].profile(rr([*epsilons, new]), epsilon0=victim).epsilon(delta).upper
    assert at_most(after, before)


@pytest.mark.slow
@FEWER
@given(users, deltas, st.randoms(use_true_random=False))
def test_order_of_the_budgets_does_not_matter(epsilons, delta, rng):
    mixed = list(epsilons)
    rng.shuffle(mixed)
    a, b = certify(rr(epsilons), delta), certify(rr(mixed), delta)
    assert a.levels == b.levels
    assert a.epsilon == b.epsilon


@FEW
@given(users, st.floats(0.0, 1.0), st.randoms(use_true_random=False))
def test_two_symbols_blanket_is_the_clone_pair(epsilons, x, rng):
    victim = rng.choice(epsilons)
    setting = rr(epsilons)
    a = bounds["clones"].profile(setting, epsilon0=victim).delta(x * victim)
    b = bounds["blanket"].profile(setting, epsilon0=victim).delta(x * victim)
    assert a.lower <= b.upper  # both enclose one number, so they overlap
    assert b.lower <= a.upper


@FEW
@given(budget, st.integers(2, 2000), deltas)
def test_delta_and_epsilon_invert_each_other(e0, n, delta):
    profile = bounds["clones"].profile(one_budget(e0, n), epsilon0=e0)
    found = profile.epsilon(delta)
    assert profile.delta(found.upper).lower <= delta * (1 + SLACK)
    if found.lower > 0:
        assert profile.delta(found.lower).upper >= delta * (1 - SLACK)
