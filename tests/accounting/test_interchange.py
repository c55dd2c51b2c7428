"""Privacy loss distributions of dp_accounting: there and back, composed with our rounds and with other mechanisms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shuffledp.accounting.profiles.composition import ComposedProfile, compose
from shuffledp.accounting.profiles.domination import from_dp_accounting, to_dp_accounting
from shuffledp.accounting.theorems.clones.pair import one_budget_profile
from shuffledp.accounting.theorems.count.exact import rr_count_profile
from shuffledp.accounting.theorems.local import LocalProfile
from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput

pld_library = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
STEP = 1e-3
DELTA = 1e-6


@pytest.fixture(scope="module")
def clones():
    return one_budget_profile(1.0, 1000, coarse=False)


def mass(pmf: object) -> float:
    dense = pmf.to_dense_pmf()
    return math.fsum(dense._probs) + dense._infinity_mass


def test_total_mass_is_one_and_the_curve_is_above(clones):
    pld = to_dp_accounting(clones, STEP)
    assert mass(pld._pmf_remove) == pytest.approx(1.0, abs=1e-9)
    for epsilon in np.linspace(0.0, 0.4, 23).tolist():
        assert pld.get_delta_for_epsilon(epsilon) >= clones.delta(epsilon).lower
    assert pld.get_delta_for_epsilon(0.1) <= clones.delta(0.1).upper * 1.05
    assert to_dp_accounting(clones).get_epsilon_for_delta(DELTA) <= clones.epsilon(DELTA).upper * 1.0001


def test_both_laws_keep_their_mass(clones):
    """P and Q of the grid: sum of p and sum of p e^-loss."""
    dense = to_dp_accounting(clones, STEP)._pmf_remove.to_dense_pmf()
    losses = (np.arange(dense.size) + dense._lower_loss) * dense._discretization
    assert math.fsum(dense._probs * np.exp(-losses)) == pytest.approx(1.0, abs=1e-8)


def test_there_and_back_is_never_smaller(clones):
    back = from_dp_accounting(to_dp_accounting(clones, STEP))
    for epsilon in (0.0, 0.013, 0.1, 0.2, 0.31):
        assert back.delta(epsilon).upper >= clones.delta(epsilon).lower
        assert back.delta(epsilon).lower == 0.0
    assert clones.epsilon(DELTA).lower <= back.epsilon(DELTA).upper <= clones.epsilon(DELTA).upper * 1.01


@pytest.mark.costly("16")
@pytest.mark.parametrize("rounds", [2, 16])
def test_their_composition_agrees_and_is_never_below_ours(clones, rounds):
    theirs = to_dp_accounting(clones, STEP).self_compose(rounds).get_epsilon_for_delta(DELTA)
    ours = ComposedProfile.of(clones, rounds).epsilon(DELTA)
    assert ours.lower <= theirs <= ours.upper * 1.005


@pytest.mark.costly
def test_with_a_gaussian_mechanism_in_either_library(clones):
    gaussian = pld_library.from_gaussian_mechanism(5.0, value_discretization_interval=STEP)
    theirs = to_dp_accounting(clones, STEP).self_compose(4).compose(gaussian).get_epsilon_for_delta(DELTA)
    ours = compose([(clones, 4), (from_dp_accounting(gaussian), 1)]).epsilon(DELTA)
    assert ours.upper == pytest.approx(theirs, rel=3e-3)
    assert ours.upper > ComposedProfile.of(clones, 4).epsilon(DELTA).upper
    from shuffledp.accounting.profiles.profile import gaussian_epsilon

    assert ours.upper > gaussian_epsilon(DELTA, 1 / 5.0)


def test_directions_travel_separately():
    witness = rr_count_profile(Budgets([1.0], [20]), 1.0)
    pld = to_dp_accounting(witness, STEP)
    assert not pld._symmetric
    first, second = witness.delta_pair(0.4)
    assert pld._pmf_remove.get_delta_for_epsilon(0.4) == pytest.approx(first.upper, rel=2e-2)
    assert pld._pmf_add.get_delta_for_epsilon(0.4) == pytest.approx(second.upper, rel=2e-2)
    assert from_dp_accounting(pld).delta(0.4).upper >= witness.delta(0.4).lower


def test_mass_at_infinity_travels():
    leaky = LocalProfile(0.5, 1e-3)
    pld = to_dp_accounting(leaky, STEP)
    assert pld.get_delta_for_epsilon(math.inf) == pytest.approx(1e-3, rel=1e-6)
    back = from_dp_accounting(pld)
    assert back.vanishes_at == math.inf
    assert back.mass_at_infinity.upper == pytest.approx(1e-3, rel=1e-6)
    assert back.epsilon(1e-4).upper == math.inf


def test_refusals(clones):
    optimistic = pld_library.from_gaussian_mechanism(
        1.0, pessimistic_estimate=False, value_discretization_interval=STEP, use_connect_dots=False
    )
    with pytest.raises(InvalidInput, match="pessimistic"):
        from_dp_accounting(optimistic)
    for step in (0.0, -1e-4, math.nan):
        with pytest.raises(InvalidInput, match="value_discretization_interval"):
            to_dp_accounting(clones, step)
    with pytest.raises(InvalidInput, match="grid points"):
        to_dp_accounting(clones, 1e-9)


def test_directions_compose_apart():
    """A thousand steps on a hundredth of the records: the worst of both directions in every step cost 2.51."""
    step = pld_library.from_gaussian_mechanism(1.0, sampling_prob=0.01, value_discretization_interval=STEP)
    ours = compose([(from_dp_accounting(step), 1000)]).epsilon(DELTA).upper
    theirs = step.self_compose(1000).get_epsilon_for_delta(DELTA)
    assert theirs * (1.0 - 1e-6) <= ours <= theirs * 1.0005


def skewed_pair():
    """Two reports, P = (3/4, 1/4) and Q = (1/4, 3/4) turned by one step: both directions, on the grid log 3."""
    step = math.log(3.0)
    remove, add = {1: 0.75, -1: 0.25}, {1: 0.5, 0: 0.25, -2: 0.25}
    return pld_library.PrivacyLossDistribution.create_from_rounded_probability(
        remove, 0.0, step, rounded_probability_mass_function_add=add, infinity_mass_add=0.0, symmetric=False
    )


@pytest.mark.costly(but=("1",))
@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_what_composes_is_above_every_direction_summed_exactly(rounds):
    pld, step = skewed_pair(), math.log(3.0)
    back = from_dp_accounting(pld)
    composed = compose([(back, rounds)])
    for losses, masses in (([1, -1], [0.75, 0.25]), ([1, 0, -2], [0.5, 0.25, 0.25])):
        law = {0: 1.0}
        for _ in range(rounds):
            following: dict[int, float] = {}
            for known, mass in law.items():
                for loss, chance in zip(losses, masses, strict=True):
                    following[known + loss] = following.get(known + loss, 0.0) + mass * chance
            law = following
        for epsilon in np.linspace(0.0, rounds * step * 0.97, 23).tolist():
            exact = sum(mass * -math.expm1(min(epsilon - loss * step, 0.0)) for loss, mass in law.items())
            assert composed.delta(epsilon).upper >= exact * (1.0 - 1e-12)


@pytest.mark.parametrize("step", [1e-4, 2e-4, 1e-3])
@pytest.mark.parametrize("delta", [1e-6, 1e-15, 1e-20])
def test_three_pure_releases_cost_at_most_their_sum(step, delta):
    """There and back they cost 3.00007, and up to 3.0003: no knot stood where the curve bends."""
    back = from_dp_accounting(to_dp_accounting(LocalProfile(1.0, 0.0), step))
    assert compose([(back, 3)]).epsilon(delta).upper <= 3.0 * (1.0 + 1e-9)


def test_an_identity_costs_nothing_and_warns_of_nothing():
    """Its loss is 0, which was rounded up to the smallest double."""
    nothing = from_dp_accounting(pld_library.identity(value_discretization_interval=STEP))
    assert nothing.vanishes_at == 0.0
    assert compose([(nothing, 5)]).epsilon(DELTA).upper == 0.0
    assert nothing.renyi(2.0).upper == 0.0
    assert nothing.tradeoff(0.25).lower == pytest.approx(0.75)
    gaussian = pld_library.from_gaussian_mechanism(5.0, value_discretization_interval=STEP)
    both = compose([(nothing, 3), (from_dp_accounting(gaussian), 1)]).epsilon(DELTA).upper
    assert both == pytest.approx(gaussian.get_epsilon_for_delta(DELTA), rel=1e-4)
