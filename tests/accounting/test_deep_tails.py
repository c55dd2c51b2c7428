"""Far tails, delta down to 1e-250: a witness stays below the certified bound and encloses its own value."""

from __future__ import annotations

import pytest

from shuffledp.accounting import bounds, certify
from shuffledp.budgets import Budgets
from shuffledp.randomizers import RandomizedResponse
from shuffledp.setting import Setting
from tests import oracles

MIXED = Budgets(epsilons=(0.5, 2.0), counts=(9000, 1000))


@pytest.mark.costly(
    but=(
        "2-0.5",
        "2-2.0",
    )
)
@pytest.mark.parametrize("epsilon0", [0.5, 2.0])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_witness_stays_below_the_blanket(k, epsilon0):
    setting = Setting(MIXED, RandomizedResponse(k=k), seen="reports", neighboring="replace-one")
    key = "count-exact" if k == 2 else "krr-exact"
    witness = bounds[key].profile(setting, epsilon0=epsilon0)
    blanket = bounds["blanket"].profile(setting, epsilon0=epsilon0)
    for share in (0.06, 0.1, 0.14, 0.18, 0.22, 0.26, 0.3):
        eps = share * epsilon0
        assert witness.delta(eps).lower <= blanket.delta(eps).upper, (
            eps,
            witness.delta(eps),
            blanket.delta(eps),
        )


@pytest.mark.costly(
    "RandomizedResponse(k=2)-reports-1e-50",
    "RandomizedResponse(k=5)-levels-1e-300",
    "RandomizedResponse(k=5)-reports-1e-50",
)
@pytest.mark.one_in(3)
@pytest.mark.parametrize("delta", [1e-9, 1e-12, 1e-50, 1e-300])
@pytest.mark.parametrize("seen", ["reports", "levels"])
@pytest.mark.parametrize("randomizer", ["any", RandomizedResponse(k=2), RandomizedResponse(k=5)], ids=str)
def test_certify_never_crosses(randomizer, seen, delta):
    epsilon = certify(Setting(MIXED, randomizer, seen=seen, neighboring="replace-one"), delta).epsilon
    assert 0.0 <= epsilon.lower <= epsilon.upper <= 2.0


@pytest.mark.costly
@pytest.mark.one_in(3)
@pytest.mark.parametrize("others", [{0.5: 299, 2.0: 40}, {1.0: 400}, {0.1: 100, 1.0: 100, 3.0: 100}], ids=str)
def test_exact_count_encloses_the_exact_count(others):
    """Others all on 0 are one choice of the maximised witness; 40 digits, deltas from 1e-2 to 1e-100."""
    victim = max(others) if len(others) == 1 else sorted(others)[-2]
    counts = {budget: size + (budget == victim) for budget, size in others.items()}
    budgets = Budgets(epsilons=tuple(counts), counts=tuple(counts.values()))
    setting = Setting(budgets, RandomizedResponse(k=2), seen="reports", neighboring="replace-one")
    profile = bounds["count-exact"].profile(setting, epsilon0=victim)
    listed = [budget for budget, size in others.items() for _ in range(size)]
    for share in (0.0, 0.2, 0.4, 0.6, 0.8):
        exact = float(max(oracles.rr_count_deltas(victim, listed, 0, share * victim)))
        assert profile.delta(share * victim).upper >= exact * (1 - 1e-12), (
            share,
            profile.delta(share * victim),
            exact,
        )
