"""Inputs that once gave a wrong number or a crash, with the truth from an oracle of another kind (60 digits)."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf

from shuffledp import Budgets, Gaussian, InvalidInput, Laplace, RandomizedResponse, Setting, bounds, certify
from shuffledp.numerics import counts
from shuffledp.numerics.counts import SuccessCount
from tests import oracles


def setting(budgets, randomizer="any", seen="reports"):
    return Setting(budgets, randomizer, seen=seen, neighboring="replace-one")


@pytest.mark.parametrize(
    ("k", "epsilon0", "n", "epsilon"), [(3, 1e-12, 12, 7e-13), (10, 1e-12, 12, 7e-13), (10, 1e-6, 12, 5e-7)]
)
def test_blanket_keeps_tiny_budgets(k, epsilon0, n, epsilon):
    # upper was 3.3e-5, 1.2e-6 and 8.6e-11 (relative) below the truth: r_0 - e^eps r_1 cancelled
    with mp.workdps(60):
        truth = oracles.krr_blanket_delta(k, epsilon0, [epsilon0] * (n - 1), epsilon)
        found = (
            bounds["blanket"].profile(setting(Budgets([epsilon0], [n]), RandomizedResponse(k)), epsilon0).delta(epsilon)
        )
        assert mpf(found.lower) <= truth <= mpf(found.upper)


@pytest.mark.parametrize(
    ("k", "epsilon0", "n", "epsilon"), [(10**9, 2.0, 3, 1.8), (10**7, 1.0, 3, 0.5), (10**6, 0.5, 3, 0.45)]
)
def test_blanket_counts_the_rounding_of_one_minus_gamma(k, epsilon0, n, epsilon):
    # upper was 2.9e-8, 1.4e-10 and 2.4e-11 (relative) below the truth
    with mp.workdps(60):
        truth = oracles.krr_blanket_delta(k, epsilon0, [epsilon0] * (n - 1), epsilon)
        found = (
            bounds["blanket"].profile(setting(Budgets([epsilon0], [n]), RandomizedResponse(k)), epsilon0).delta(epsilon)
        )
        assert mpf(found.lower) <= truth <= mpf(found.upper)


@pytest.mark.parametrize("epsilon0", [20.0, 27.0, 36.0])
def test_pair_count_keeps_the_chance_of_third_symbols(epsilon0):
    # the witness was up to 3.9e-5 (relative) too high: 1 - right - wrong cancelled
    n, epsilon = 60, 0.97 * epsilon0
    with mp.workdps(60):
        truth = oracles.krr_witness_delta(3, epsilon0, n, epsilon)
        found = bounds["krr-exact"].profile(setting(Budgets([epsilon0], [n])), epsilon0).delta(epsilon)
        assert mpf(found.lower) <= truth <= mpf(found.upper)


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("budgets", "randomizer", "delta"),
    [
        (Budgets.of(np.linspace(0.5, 1.0, 33)), RandomizedResponse(2), 1e-6),  # the shared curve did not end
        (Budgets.of(np.linspace(3.0, 6.0, 40)), RandomizedResponse(2), 1e-2),
        (Budgets(np.linspace(8.0, 12.0, 33), [1000] * 33), RandomizedResponse(2), 1e-6),
        (Budgets([0.0, 0.5, 1.0], [5000] * 3), RandomizedResponse(2), 1e-6),  # lower > upper
        (Budgets([0.0, 0.5, 6.0], [5000, 1, 1]), RandomizedResponse(10), 1e-6),  # NaN
        (Budgets([30.0, 40.0, 50.0], [5000] * 3), RandomizedResponse(10), 1e-6),  # NaN
        (Budgets([20.0], [49]), RandomizedResponse(3), 1e-6),  # OverflowError
        (Budgets([5.0], [49]), RandomizedResponse(10**9), 1e-8),
        (Budgets([300.0], [100]), RandomizedResponse(3), 1e-6),  # NotConverged
        (Budgets([700.0], [100]), RandomizedResponse(10**9), 1e-6),  # ZeroDivisionError
        (Budgets([700.0], [1]), RandomizedResponse(10**9), 1e-6),  # NaN
        (Budgets([1e-12], [40]), RandomizedResponse(3), 1e-15),  # InconsistentBounds
        (Budgets([1e-17], [2]), RandomizedResponse(3), 1e-19),  # 0 instead of 9.1e-18
        (Budgets([0.5, 2.0], [9000, 1000]), RandomizedResponse(5), 1e-50),  # InconsistentBounds
        (Budgets([30.0], [10**12]), "any", 1e-6),  # more than a minute
        (Budgets([6.439], [2740]), "any", 1e-6),
    ],
)
def test_certify_answers_with_a_bracket(budgets, randomizer, delta):
    found = certify(setting(budgets, randomizer), delta).epsilon
    assert 0.0 < found.upper <= budgets.epsilons[-1]
    assert 0.0 <= found.lower <= found.upper


def test_far_tails_of_large_mixed_populations():
    # 1 - (tiny tail) was not rounded outward, so that differences of tails lost 1e-16 absolute
    count = SuccessCount.of(np.array([0.2, 0.5]), np.array([9000.0, 1000.0]))
    x = np.arange(2000.0, 3000.0)
    pmf, error = count.pmf_convolved()
    truth, found = pmf[x.astype(int)], count.pmf(x)
    assert (found.lower <= truth * (1 + error)).all()
    assert (found.upper >= truth * (1 - error)).all()


@pytest.mark.parametrize(
    ("a", "n", "p", "truth"),
    [
        (738860387085, 738889695697, 0.9999603340536344, 0.48921479744355),  # was 0.48921085252051
        (30367, 10**9, 3.0369e-05, 0.50534161944794),  # was 0.50534161956947
    ],
)
def test_skewed_binomial_near_its_mean(a, n, p, truth):
    assert float(counts.sf(a, n, p)) == pytest.approx(truth, rel=1e-12)


def test_max_levels_is_checked():
    with pytest.raises(InvalidInput, match="max_levels"):
        certify(setting(Budgets([1.0], [10])), 1e-6, max_levels=0)


def test_witness_for_any_randomizer_may_show_levels():
    # any randomizer may append its level to the report: hiding among all levels was once granted to the witness only
    budgets = Budgets([0.5, 2.0], [900, 100])
    shown = bounds["count-exact"].profile(setting(budgets, RandomizedResponse(2), "levels"), 2.0).epsilon(1e-6)
    either = bounds["count-exact"].profile(setting(budgets), 2.0).epsilon(1e-6)
    assert either == shown
    assert math.isfinite(either.upper)


def test_the_worst_level_is_listed_where_a_smaller_budget_has_less_noise():
    # delta0 = 1e-4 at epsilon0 = 0.9 means less noise than 1e-12 at 1.0: the top level was listed, 0.083 for 0.1436
    budgets = Budgets([0.9, 1.0], [50, 50], [1e-4, 1e-12])
    gaussian = Setting(budgets, Gaussian(0, 1), "reports", "replace-one")
    both, worst = certify(gaussian, 1e-6), certify(gaussian, 1e-6, max_levels=1)
    assert [level.epsilon0 for level in worst.levels] == [0.9]
    assert worst.epsilon.upper == both.epsilon.upper > 0.14


def test_the_worst_level_is_listed_where_one_person_adds_noise_alone():
    # of more than 32 levels of added noise only the own one hid a user: the crowded top level was listed
    budgets = Budgets(np.linspace(0.5, 1.0, 40), [1, *[1000] * 39])
    laplace = Setting(budgets, Laplace(0, 1), "reports", "replace-one")
    worst = certify(laplace, 1e-6, max_levels=1)
    whole = certify(laplace, 1e-6)
    assert worst.epsilon.upper == whole.epsilon.upper == max(level.epsilon.upper for level in whole.levels)
    assert whole.levels[0].epsilon.upper == whole.epsilon.upper > 0.04
