"""(II) for stated randomizers: against the sum over all outcomes of few steps, and lattice polynomials of many."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, arb_poly, ctx

from shuffledp.accounting import bounds, certify
from shuffledp.accounting.theorems.ordered import KnownStepsProfile, OrderedProfile
from shuffledp.budgets import Budgets
from shuffledp.randomizers import (
    Channel,
    HadamardResponse,
    LocalHashing,
    RandomizerLaw,
    SubsetSelection,
    UnaryEncoding,
)
from shuffledp.setting import Setting
from tests.accounting.test_blanket_oracle import TWO_LEVEL, Weights, ball, contains

Step = list[tuple[arb, arb]]
"""Chance and value of Z_t, zero left out."""


def step_of(weights: Weights, E: arb, t: arb) -> Step:
    only, both, neither = (arb(w) for w in weights)
    gamma_over_whole = 1 / (E * (only + both) + only + neither)
    law = [(only, E - t), (only, 1 - E * t), (both, E * (1 - t)), (neither, 1 - t)]
    return [(w * gamma_over_whole, value) for w, value in law if w > 0]


def all_outcomes(steps: Sequence[Step]) -> arb:
    """(II): 1/n E(sum Z_t)_+."""
    total = arb(0)
    full = [[*step, (1 - sum((q for q, _ in step), arb(0)), arb(0))] for step in steps]
    for outcome in itertools.product(*full):
        value = sum((v for _, v in outcome), arb(0))
        if not value < 0:
            chance = arb(1)
            for q, _ in outcome:
                chance *= q
            total += chance * value.max(arb(0))
    return total / len(steps)


def known(family: RandomizerLaw, budgets: Budgets) -> KnownStepsProfile:
    return KnownStepsProfile(budgets, tuple(family.pair_blankets(float(e))[0] for e in budgets.epsilons))


@pytest.mark.parametrize("name", TWO_LEVEL)
@pytest.mark.parametrize(
    "epsilons", [(1.0,), (0.5, 2.0), (1e-6, 1.0, 1.0), (0.0, 0.3, 3.0, 12.0), (40.0, 1.0, 0.1, 0.1)]
)
def test_few_steps_by_all_outcomes(name, epsilons):
    ctx.prec = 260
    family, weights = TWO_LEVEL[name]
    profile, top = known(family, Budgets.of(epsilons)), max(epsilons)
    for epsilon in (0.0, 0.1 * top, 0.6 * top, 0.98 * top):
        t = arb(epsilon).exp()
        truth = all_outcomes([step_of(weights, arb(e).exp(), t) for e in epsilons])
        found = profile.delta(epsilon)
        assert contains(found, truth, 1e-11), (name, epsilons, epsilon, found, truth)


@pytest.mark.parametrize("name", ["krr:3", "krr:7", "hadamard:10", "olh:50:5"])
@pytest.mark.parametrize(
    ("levels", "t"),
    [
        ({Fraction(2): 150, Fraction(3): 100}, Fraction(3, 2)),
        ({Fraction(2): 150, Fraction(3): 100}, Fraction(5, 2)),  # beyond the smaller budget
        ({Fraction(1): 100, Fraction(4): 50}, Fraction(1)),
        ({Fraction(3, 2): 200, Fraction(8): 3}, Fraction(7)),
    ],
)
def test_many_steps_on_a_lattice(name, levels, t):
    ctx.prec = 1200
    family, weights = TWO_LEVEL[name]
    steps = {E: exact_step(weights, E, t) for E in levels}
    unit = math.lcm(*(value.denominator for step in steps.values() for _, value in step))
    power, least = arb_poly([1]), 0
    for E, count in levels.items():
        whole = [(q, int(value * unit)) for q, value in steps[E]]
        low = min(0, *(s for _, s in whole))
        law = [arb(0)] * (max(0, *(s for _, s in whole)) - low + 1)
        law[-low] = 1 - ball(sum((q for q, _ in steps[E]), Fraction(0)))
        for q, s in whole:
            law[s - low] += ball(q)
        power, least = power * arb_poly(law) ** count, least + low * count
    n = sum(levels.values())
    truth = sum((power[j] * (j + least) for j in range(-least + 1, power.degree() + 1)), arb(0)) / (n * unit)
    budgets = Budgets([math.log(E) for E in levels], list(levels.values()))
    found = known(family, budgets).delta(math.log(t))
    assert contains(found, truth, 1e-11), (name, levels, t, found, truth)
    assert found.upper <= 1.2 * float(truth.mid()) + 1e-290


def exact_step(weights: Weights, E: Fraction, t: Fraction) -> list[tuple[Fraction, Fraction]]:
    only, both, neither = weights
    total = E * (only + both) + only + neither
    law = [(only, E - t), (only, 1 - E * t), (both, E * (1 - t)), (neither, 1 - t)]
    return [(Fraction(w) / total, value) for w, value in law if w]


@pytest.mark.parametrize(
    "family",
    [SubsetSelection(10), LocalHashing(10, collision="unknown"), UnaryEncoding(10), HadamardResponse(10)],
    ids=lambda family: family.name,
)
def test_budgets_whose_reports_differ_in_shape(family):
    # subset sizes 4 and 1, hash ranges 2 and 21: not the same number of cells, once a ValueError
    budgets = Budgets([0.3, 3.0, 700.0], [900, 100, 1])
    setting = Setting(budgets, family, seen="users", neighboring="replace-one")
    small = Setting(Budgets([0.3, 3.0], [900, 100]), family, seen="users", neighboring="replace-one")
    assert 0.0 < certify(small, 1e-6).epsilon.upper < 0.5
    assert certify(setting, 1e-6).epsilon.upper <= 700.0


def test_what_the_blanket_leaves_out_is_charged():
    """An output given by one record only, once in 64 reports at every step: a step's charge counts 1/n."""
    channel = Channel(np.array([[32, 16, 16, 0], [16, 32, 12, 4], [16, 16, 32, 0]]) / 64)
    pairs = [pair for pair in channel.pair_blankets(1.0) if pair.spread is not None]
    worst = max(pairs, key=lambda pair: float(pair.spread.left_out_mass.max()) if pair.spread else 0.0)
    profile = KnownStepsProfile(Budgets([1.0], [1000]), (worst,))
    assert profile.vanishes_at == math.inf
    assert profile.delta(50.0).upper == pytest.approx(4 / 64, rel=1e-9)
    assert profile.delta(0.2).upper >= 4 / 64 * (1 - math.exp(-50.0))


@pytest.mark.costly(but=("hadamard:10",))
@pytest.mark.parametrize("name", ["krr:7", "hadamard:10", "olh:50:5"])
def test_a_stated_randomizer_is_no_worse_than_any(name):
    """The certified number is the smaller of the two, at every delta."""
    family = TWO_LEVEL[name][0]
    budgets = Budgets([0.5, 1.0, 2.0], [300, 300, 400])
    setting = Setting(budgets, family, seen="users", neighboring="replace-one")
    both, anyone, own = bounds["ordered"].profile(setting, 1.0), OrderedProfile(budgets), known(family, budgets)
    for delta in (1e-3, 1e-6, 1e-60):
        smaller = min(anyone.epsilon(delta).upper, own.epsilon(delta).upper)
        assert both.epsilon(delta).upper == pytest.approx(smaller, rel=1e-5)
        assert both.epsilon(delta).upper < anyone.epsilon(delta).upper
