"""The audit of a whole collection. Each run on a true claim alarms with chance 1e-3 at most."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from shuffledp.accounting import bounds, certify
from shuffledp.audit import AuditResult, audit_pipeline
from shuffledp.audit.loading import subject
from shuffledp.audit.pipeline import CountAttack, Crowd, choose_crowd_attack, count_attacks
from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import simulation_random
from shuffledp.randomizers import Channel, Gaussian, Laplace, OneBit, RandomizedResponse, UnaryEncoding
from shuffledp.setting import Setting
from tests.audit import randomizers as some


def attack(randomizer, budgets, delta=1e-6, *, seed=1, **options) -> AuditResult:
    return audit_pipeline(randomizer, budgets, delta, random=simulation_random(seed), **options)


def published(randomizer, budgets, delta) -> float:
    setting = Setting(budgets, randomizer, seen="reports", neighboring="replace-one")
    return bounds["gspa"].profile(setting, float(budgets.epsilons[-1])).epsilon(delta).upper


# ------------------------------------------------------------------ broken claims


@pytest.mark.costly
def test_the_gspa_formula_under_laplace_noise_of_different_scales_is_caught():
    """One user at 2, 9,999 at 0.01: the formula says 0.0441 at delta = 1e-4, whatever the scales."""
    quiet = Budgets([0.01, 2.0], [9999, 1])
    claimed = published(Laplace(0.0, 1.0), quiet, 1e-4)
    assert claimed == pytest.approx(0.0441, abs=5e-5)
    found = attack(Laplace(0.0, 1.0), quiet, 1e-4, claimed_epsilon=claimed, counts=True)
    assert found.violated
    assert 0.09 < found.epsilon_lower_bound < 0.2033  # what this kind of attack can show at best


@pytest.mark.costly
def test_the_gspa_formula_at_a_large_budget_is_caught():
    everyone = Budgets([5.0], [1000])
    claimed = published(RandomizedResponse(2), everyone, 1e-6)
    found = attack(RandomizedResponse(2), everyone, claimed_epsilon=claimed, counts=True)
    assert claimed == pytest.approx(2.488, abs=1e-3)
    assert found.violated


@pytest.mark.parametrize("counts", [False, True])
def test_a_claim_that_forgets_the_crowd_of_two_is_caught(counts):
    """Two users at 3 hardly hide each other."""
    found = attack(RandomizedResponse(2), Budgets([3.0], [2]), claimed_epsilon=1.0, counts=counts, trials=40_000)
    assert found.violated


def test_a_bring_your_own_randomizer_of_twice_the_budget_is_caught():
    """The claim is that of any randomizer at 2; the function draws Laplace noise for 6."""
    found = attack(some.laplace(1.0 / 6.0), Budgets([2.0], [20]), trials=40_000)
    assert found.violated
    assert not attack(some.laplace(1.0 / 2.0), Budgets([2.0], [20]), trials=40_000).violated


# ------------------------------------------------------------------ true claims

POPULATIONS = {
    "rr": (RandomizedResponse(2), Budgets([1.0], [1000])),
    "rr, two levels": (RandomizedResponse(2), Budgets([0.5, 3.0], [90, 10])),
    "krr": (RandomizedResponse(5), Budgets([2.0], [100])),
    "oue": (UnaryEncoding(4), Budgets([2.0], [50])),
    "one-bit": (OneBit(0.0, 10.0), Budgets([2.0], [200])),
}


@pytest.mark.costly(but=("rr, two levels-False",))
@pytest.mark.one_in(3)
@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("name", POPULATIONS)
def test_certified_claims_are_not_violated(name, counts):
    family, budgets = POPULATIONS[name]
    found = attack(family, budgets, counts=counts, trials=100_000 if counts else 8_000)
    assert not found.violated, found
    assert (
        found.claimed
        == certify(Setting(budgets, family, seen="reports", neighboring="replace-one"), 1e-6).epsilon.upper
    )


def test_noise_is_not_violated_either():
    found = attack(Gaussian(0.0, 1.0), Budgets([2.0], [5], [1e-6]), 1e-3, counts=True, trials=400_000)
    assert not found.violated
    assert found.epsilon_lower_bound > 0.1


def test_visible_levels_leave_the_victim_with_her_own_level():
    """10 users at 3 among 1,000: as one crowd they are hidden, seen by level they are not."""
    both = Budgets([1.0, 3.0], [990, 10])
    found = attack(RandomizedResponse(2), both, seen="levels", claimed_epsilon=1.0, counts=True, trials=200_000)
    assert found.violated
    assert not attack(RandomizedResponse(2), both, claimed_epsilon=1.0, counts=True, trials=200_000).violated


def test_a_victim_alone_has_her_local_epsilon():
    found = attack(RandomizedResponse(2), Budgets([2.0], [1]), trials=40_000)
    assert not found.violated
    assert found.epsilon_lower_bound > 1.7


# ------------------------------------------------------------------ the simulations themselves


def test_counts_follow_the_stated_law():
    """Chi-square of 100,000 counts against the exact law, both records; false alarm 1e-4 each, seeded."""
    law = RandomizedResponse(2)
    chosen = count_attacks(law, Budgets([1.0, 2.0], [8, 5]), 1e-6, 1000, 1e-3)[0]
    for record in (0, 1):
        drawn = chosen.draw(record, 100_000, np.random.default_rng(record))
        exact = np.array([1.0])
        for chance in [*[law.channel(1.0)[0, 0]] * 8, *[law.channel(2.0)[0, 0]] * 4, law.channel(2.0)[record, 0]]:
            exact = np.convolve(exact, [1 - chance, chance])
        seen = np.bincount(drawn.astype(int), minlength=exact.size)
        often = exact * drawn.size > 10
        assert seen[~often].sum() < 100
        pooled = np.append(seen[often], seen[~often].sum()), np.append(exact[often], exact[~often].sum()) * drawn.size
        assert stats.chisquare(*pooled).pvalue > 1e-4


def test_a_crowd_run_user_by_user_has_the_mean_score_of_its_law():
    """The mean of 3,000 runs within 4.5 standard errors (7e-6) of the sum of the reports' own means, both records."""
    random = simulation_random(3)
    user = subject(RandomizedResponse(3), 1.0, 0.0, None, None)
    crowd = Crowd(user, (user,), (60,))
    chosen = choose_crowd_attack(crowd, random)
    weights = chosen.added(user.draw(np.zeros(1, dtype=np.int64), random))
    assert weights.shape == (1,)
    law = RandomizedResponse(3).channel(1.0)
    values = {}
    for report in range(3):
        kept = subject(lambda records, r=report: np.full(len(records), r), 1.0, 0.0, [0, 1, 2], None)
        values[report] = float(chosen.added(kept.draw(np.zeros(1, dtype=np.int64), random))[0])
    each = np.array([values[report] for report in range(3)])
    for side in (0, 1):
        scores = chosen.draw(crowd, side, 3000, random)
        expected = law[chosen.records[side]] @ each + 60 * law[chosen.held] @ each
        assert abs(scores.mean() - expected) < 4.5 * scores.std() / math.sqrt(3000)


def test_a_weight_per_kind_of_report_is_added_up():
    sure = CountAttack(
        victim=np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]),
        others=np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]),
        counts=np.array([7, 2]),
        weights=np.array([100.0, 1.0, -3.0]),
        records=("0", "1"),
        attack="",
    )
    assert set(sure.draw(0, 50, np.random.default_rng(1))) == {100.0 + 7.0 + 200.0}
    assert set(sure.draw(1, 50, np.random.default_rng(1))) == {-3.0 + 7.0 + 200.0}


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("randomizer", "budgets", "options", "message"),
    [
        (
            RandomizedResponse(2),
            Budgets([1.0], [10]),
            {"seen": "sum"},
            "seen as reports or as levels; got seen = 'sum'",
        ),
        (RandomizedResponse(2), Budgets([1.0], [10]), {"trials": 10}, "at least 400; got 10"),
        (RandomizedResponse(2), Budgets([1.0], [10]), {"confidence": 2.0}, "confidence must lie"),
        (RandomizedResponse(2), Budgets([1.0], [10]), {"claimed_epsilon": -1.0}, "claimed epsilon must be"),
        (RandomizedResponse(2), Budgets([1.0], [10]), {"delta": 0.0}, "delta must"),
        (some.laplace(1.0), Budgets([1.0], [10]), {"counts": True}, "only our families have"),
        (some.laplace(1.0), Budgets([1.0, 2.0], [10, 10]), {"claimed_epsilon": 1.0}, "one budget; got 2 levels"),
        (RandomizedResponse(2), Budgets([1.0], [10**7]), {"trials": 10**5}, "ask for at most 2000 trials"),
        (
            Channel([[0.6, 0.4], [0.4, 0.6]]),
            Budgets([1.0], [10]),
            {"claimed_epsilon": 1.0},
            "cannot be run, so it cannot be audited",
        ),
    ],
)
def test_refusals(randomizer, budgets, options, message):
    with pytest.raises(InvalidInput, match=message):
        attack(randomizer, budgets, **{"delta": 1e-6, **options})
