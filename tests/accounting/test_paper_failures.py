"""Where the published formulas fail, with the numbers (theory part 7, items 1, 2 and 9)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shuffledp.accounting import bounds, certify
from shuffledp.budgets import Budgets
from shuffledp.guarantee import Kind
from shuffledp.numerics.randomness import simulation_random
from shuffledp.protocol import estimate_frequency
from shuffledp.randomizers import RandomizedResponse
from shuffledp.setting import Setting
from tests import oracles

DELTA = 1e-6


def epsilons(e0: float, n: int, key: str, randomizer: object = "any") -> tuple[float, float]:
    setting = Setting(Budgets.of([e0] * n), randomizer, seen="reports", neighboring="replace-one")
    found = bounds[key].profile(setting, epsilon0=e0).epsilon(DELTA)
    return found.lower, found.upper


# item 1: (epsilon0, n, GSPA Theorem 2, the clone pair, what randomized response really leaks)
TOO_SMALL = [
    (4.0, 1000, 1.449, 1.853, 1.691),
    (5.0, 1000, 2.488, 4.999, 4.999),
    (6.0, 10_000, 1.219, 1.472, 1.311),
]


@pytest.mark.parametrize(("e0", "n", "claimed", "proved", "leaked"), TOO_SMALL)
def test_large_epsilon_is_claimed_below_what_a_real_protocol_leaks(e0, n, claimed, proved, leaked):
    _, gspa = epsilons(e0, n, "gspa")
    lower, upper = epsilons(e0, n, "clones")
    attack, _ = epsilons(e0, n, "rr-exact", RandomizedResponse(k=2))
    assert gspa == pytest.approx(claimed, abs=6e-4)
    assert gspa == pytest.approx(float(oracles.gspa_epsilon([e0] * n, DELTA)), rel=1e-9)
    assert upper == pytest.approx(proved, abs=6e-4)
    assert upper - lower <= 1e-4 * upper
    assert attack == pytest.approx(leaked, abs=6e-4)
    assert gspa < attack <= upper  # the published number is refuted, the certified one is not


@pytest.mark.parametrize(
    ("e0", "n", "claimed", "proved"), [(0.1, 1000, 0.2501, 0.00992), (0.5, 10_000, 0.0825, 0.0181)]
)
def test_small_epsilon_is_claimed_far_too_loose(e0, n, claimed, proved):
    _, gspa = epsilons(e0, n, "gspa")
    _, upper = epsilons(e0, n, "clones")
    assert gspa == pytest.approx(claimed, rel=2e-3)
    assert upper == pytest.approx(proved, rel=6e-3)
    assert gspa > 4 * upper


@pytest.mark.parametrize(("e0", "n"), [(4.0, 1000), (0.1, 1000)])
def test_the_published_formula_never_enters_the_certified_interval(e0, n):
    setting = Setting(Budgets.of([e0] * n), "any", seen="reports", neighboring="replace-one")
    guarantee = certify(setting, DELTA)
    evidence = {item.key: item for item in guarantee.evidence}
    assert evidence["gspa"].kind == Kind.ASYMPTOTIC
    assert guarantee.epsilon.upper == pytest.approx(epsilons(e0, n, "clones")[1], rel=1e-9)
    assert guarantee.epsilon.lower > (evidence["gspa"].epsilon.upper if e0 == 4.0 else 0.0)


# item 9: high-budget users all hold 1, the others 0
ONES, N, LOW, HIGH = 20_000, 100_000, 0.5, 2.0


def population() -> tuple[np.ndarray, np.ndarray]:
    records = np.zeros(N, dtype=np.int64)
    records[:ONES] = 1
    return records, np.where(records == 1, HIGH, LOW)


def frequency_of_one(seen: str, seed: int) -> tuple[float, float]:
    records, epsilon0 = population()
    release = estimate_frequency(
        records,
        [0, 1],
        epsilon0,
        mechanism="rr",
        seen=seen,
        delta=DELTA,
        random=simulation_random(seed),
    )
    return float(np.asarray(release.estimate)[1]), float(np.asarray(release.standard_error)[1])


def test_withheld_levels_are_biased_when_budgets_go_with_records():
    """(A - B)/(n - 2B) estimates the (1 - 2 s_i)-weighted mean: 0.436 here, not 0.2."""
    informative = {e: math.tanh(e / 2) for e in (LOW, HIGH)}  # 1 - 2 s
    weighted = ONES * informative[HIGH] / (ONES * informative[HIGH] + (N - ONES) * informative[LOW])
    assert weighted == pytest.approx(0.4375, abs=5e-4)
    estimate, error = frequency_of_one("reports", seed=9)
    # one draw, 5 standard errors: false alarm 6e-7
    assert abs(estimate - weighted) < 5 * error
    assert estimate - ONES / N > 20 * error


def test_visible_levels_are_unbiased_when_budgets_go_with_records():
    draws = [frequency_of_one("levels", seed) for seed in range(20)]
    mean = np.mean([estimate for estimate, _ in draws])
    error = np.sqrt(np.sum([e**2 for _, e in draws])) / len(draws)
    # mean of 20 draws, 5 standard errors: false alarm 6e-7
    assert abs(mean - ONES / N) < 5 * error


def test_independent_budgets_are_not_biased():
    """The same budgets, shuffled over users: the weighted mean is the mean again."""
    records, epsilon0 = population()
    np.random.default_rng(4).shuffle(epsilon0)
    release = estimate_frequency(
        records, [0, 1], epsilon0, mechanism="rr", seen="reports", delta=DELTA, random=simulation_random(5)
    )
    # the allocation itself adds sampling noise below a tenth of the standard error; 5 of them: 6e-7
    estimate, error = float(np.asarray(release.estimate)[1]), float(np.asarray(release.standard_error)[1])
    assert abs(estimate - ONES / N) < 5 * error
