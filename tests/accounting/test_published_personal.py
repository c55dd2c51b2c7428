"""The personalised formula of Liu et al.: its authors' numbers, its sums, its regime."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from shuffledp.accounting import bounds
from shuffledp.accounting.published.closed import Clones2022Bound, EchoProfile, LiuBound, echoes
from shuffledp.accounting.theorems.clones.pair import noiseless_divergence, victim_line
from shuffledp.budgets import Budgets
from shuffledp.errors import OutOfRegime
from shuffledp.randomizers import RandomizedResponse
from shuffledp.setting import Setting

DELTA = 1e-6


def profile_of(budgets: Budgets) -> EchoProfile:
    setting = Setting(budgets, RandomizedResponse(2), seen="reports", neighboring="replace-one")
    found = LiuBound().profile(setting, float(budgets.epsilons[0]))
    assert isinstance(found, EchoProfile)
    return found


def test_personalised_numbers_as_printed():
    """Uniform budgets, one stream: 1,000 users, then 10,000. The formulas, the pair of own budgets, the attack."""
    rng = np.random.default_rng(0)
    for n, liu, gspa, pair, attack in (
        (1000, 0.1640, 0.2858, 0.1251, 0.1140),
        (10_000, 0.0440, 0.0829, 0.0362, 0.0325),
    ):
        budgets = Budgets.of(rng.uniform(0.05, 1, n))
        setting = Setting(budgets, RandomizedResponse(2), seen="reports", neighboring="replace-one")
        listed = np.array([0, n // 2, n - 1])
        found = LiuBound().level_epsilons(setting, DELTA, listed)
        assert found.upper == pytest.approx([liu] * 3, abs=5e-5)
        assert bounds["gspa"].level_epsilons(setting, DELTA, listed).upper == pytest.approx([gspa] * 3, abs=5e-5)
        top = np.array([n - 1])
        assert bounds["clones"].level_epsilons(setting, DELTA, top).upper == pytest.approx([pair], abs=1.5e-4)
        assert bounds["count-exact"].level_epsilons(setting, DELTA, top).lower == pytest.approx([attack], abs=2e-4)


@pytest.mark.parametrize(
    ("e0", "n", "printed"), [(0.1, 1000, 0.01055), (1.0, 1000, 0.2069), (1.0, 10**4, 0.05351), (2.0, 10**4, 0.1585)]
)
def test_one_budget_as_printed(e0, n, printed):
    assert profile_of(Budgets([e0], [n])).epsilon(DELTA).upper == pytest.approx(printed, rel=3e-4)


def plain_sums(epsilons: list[float]) -> tuple[float, float]:
    """S and the sum of squares, user by user."""
    n, first = len(epsilons), epsilons.index(max(epsilons))
    total = squares = 0.0
    for i, ei in enumerate(epsilons):
        for ej in epsilons:
            if i != first:
                p = ei / ej * math.expm1(-ej) / math.expm1(-ei) * math.exp(-max(ei, ej)) / n
                total, squares = total + p, squares + p * p
    return total, squares


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from([1e-6, 0.05, 0.3, 1.0, 2.5, 8.0, 40.0]), min_size=2, max_size=12))
def test_sums_by_levels_are_the_sums_over_pairs(epsilons):
    total, squares = plain_sums(epsilons)
    budgets = Budgets.of(epsilons)
    assert echoes(budgets, 1) == pytest.approx(total, rel=1e-12, abs=1e-15)
    assert echoes(budgets, 2) == pytest.approx(squares, rel=1e-12, abs=1e-15)


def test_blocks_as_the_authors_walk_through_them():
    """The centre block, then one above and one below by turns, each charged at its left end."""
    profile, eps = profile_of(Budgets([0.05, 1.0], [1500, 1500])), 0.08
    n, S, sigma = profile.n, profile.expected, profile.deviation
    scale, excess = victim_line(eps, 1.0)
    total = 0.0
    for block in range(1, math.ceil(n / 100)):
        up = math.ceil(S + block * 100)
        down = math.ceil(S - block * 100)
        for low, high in ((up - 100 + (block > 1), min(up, n - 1)), (max(down, 0), down + 99)):
            if low <= n - 1 and high >= 0:
                chance = norm.cdf(high, S - 0.5, sigma) - norm.cdf(low, S - 0.5, sigma)
                total += chance * scale * float(noiseless_divergence(np.array([float(low)]), excess).upper[0])
    assert profile.delta(eps).upper == pytest.approx(total, rel=1e-9)


def test_the_closed_form_and_its_guard():
    profile = profile_of(Budgets([0.05, 1.0], [1500, 1500]))
    need = math.log(4 / DELTA)
    stated = math.log(1 + math.tanh(0.5) * (8 * math.sqrt(need / profile.expected) + 8 / profile.expected))
    assert profile.closed_form(DELTA) == pytest.approx(stated, rel=1e-12)
    assert profile.epsilon(DELTA).upper < stated
    few = profile_of(Budgets([2.0], [1000]))
    for ask in (few.closed_form, few.epsilon):
        with pytest.raises(OutOfRegime, match=r"liu23 needs S >= 16 log\(4/delta\) = 243.2 .* got S = 135.2"):
            ask(DELTA)


def test_refusals():
    def ask(budgets: Budgets, seen: str) -> None:
        LiuBound().profile(
            Setting(budgets, RandomizedResponse(2), seen=seen, neighboring="replace-one"),  # type: ignore[arg-type]
            float(budgets.epsilons[-1]),
        )

    with pytest.raises(OutOfRegime, match="liu23 needs every epsilon0 > 0; got 0"):
        ask(Budgets([0.0, 1.0], [10, 10]), "reports")
    for seen in ("levels", "users"):
        with pytest.raises(OutOfRegime, match=f"seen = {seen}"):
            ask(Budgets([0.5, 1.0], [10, 10]), seen)
        ask(Budgets([0.5], [10]), seen)
    with pytest.raises(OutOfRegime, match="liu23 needs n >= 2"):
        ask(Budgets([0.5], [1]), "reports")


@pytest.mark.parametrize("n", [10**6, 10**9])
def test_with_one_budget_it_is_the_2022_pair_with_a_normal_count(n):
    """Also beyond ten million users, where blocks are wider."""
    setting = Setting(Budgets([1.0], [n]), "any", seen="reports", neighboring="replace-one")
    exact = Clones2022Bound().profile(setting, 1.0).epsilon(DELTA).upper
    assert profile_of(Budgets([1.0], [n])).epsilon(DELTA).upper == pytest.approx(exact, rel=0.01)
