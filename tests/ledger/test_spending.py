"""One curve for many levels: that of the largest budget lies above everybody's, which (T) of the theorem page says."""

from __future__ import annotations

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.accounting import bounds, certify
from shuffledp.ledger import Spending
from shuffledp.randomizers import Laplace

EPSILONS = np.linspace(0.0, 2.0, 9)


@pytest.mark.parametrize("key", ["clones", "blanket"])
@pytest.mark.parametrize("budgets", [(0.1, 4.0), (0.5, 1.0, 2.0), (0.2, 0.3, 5.0)])
def test_the_curve_of_the_largest_budget_lies_above_all(key, budgets):
    """Few users, so that it matters whom of them a victim lacks."""
    population = sdp.Budgets(budgets, tuple(1 + 2 * (k % 2) for k in range(len(budgets))))
    family = sdp.RandomizedResponse(k=2 if key == "clones" else 4)
    setting = sdp.Setting(population, family, seen="reports", neighboring="replace-one")
    top = bounds[key].profile(setting, budgets[-1])
    for epsilon0 in budgets[:-1]:
        other = bounds[key].profile(setting, epsilon0)
        for epsilon in EPSILONS:
            assert other.delta(epsilon).lower <= top.delta(epsilon).upper


@pytest.mark.costly
@pytest.mark.parametrize("family", [sdp.RandomizedResponse(k=2), sdp.RandomizedResponse(k=4), Laplace(0.0, 1.0)])
def test_the_curve_that_is_kept_of_many_levels_lies_above_each(family):
    budgets = np.linspace(0.2, 2.0, 9)
    population = sdp.Budgets(budgets, [40] * 9)
    setting = sdp.Setting(population, family, seen="reports", neighboring="replace-one")
    kept = Spending.of(certify(setting, 1e-6))
    assert kept.levels == ()
    for epsilon0 in budgets[[0, 4, 8]]:
        profile = sdp.privacy_profile(setting, epsilon0=float(epsilon0))
        for epsilon in EPSILONS:
            assert profile.delta(epsilon).lower <= kept.worst.delta(epsilon).upper


def test_blanket_of_added_noise_does_not_stand_for_all(monkeypatch):
    """Neither is it known of "approximate" and "sum", which were once taken at the top."""
    for key in ("blanket", "approximate", "sum"):
        monkeypatch.setattr(type(bounds[key]), "profile", lambda bound, *_: pytest.fail(f"{bound.key} was asked"))
    budgets = np.linspace(0.2, 2.0, 9)
    setting = sdp.Setting(sdp.Budgets(budgets, [40] * 9), Laplace(0.0, 1.0), seen="reports", neighboring="replace-one")
    levels = tuple(sdp.LevelGuarantee(float(e), 0.0, 40, sdp.Interval(0.0, 1.5)) for e in budgets)
    curve = Spending.of(sdp.Guarantee(setting, 1e-6, levels, 9, ())).worst
    assert 1.5 <= curve.epsilon(1e-6).upper < 1.50001
