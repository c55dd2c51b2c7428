"""Sketch bits of different budgets hide each other: the blanket of all budgets, against enumeration and `certify`."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.errors import InvalidInput
from shuffledp.learning import ShuffledSGDClassifier
from shuffledp.learning.accounting import Tier, TrainingAccountant

ROWS = np.random.default_rng(0).standard_normal((1000, 6))
LABELS = np.random.default_rng(1).integers(0, 3, 1000)
BUDGETS = np.random.default_rng(0).uniform(0.5, 2.0, 1000)


def fitted(budgets, seen="reports"):
    return ShuffledSGDClassifier(
        unit="client", seen=seen, mechanism="sketch", epsilon0=budgets, delta=1e-6, clip=0.5, rounds=1, classes=3,
        hidden=(),
    ).fit(ROWS, LABELS).guarantee_  # fmt: skip


def accountant(counts, epsilons, seen="reports", rounds=1):
    tiers = tuple(Tier(e, 0.0, e, 1.0) for e in epsilons)
    return TrainingAccountant("client", seen, False, tiers, {tuple(counts): rounds}, bits=True)


@pytest.mark.costly
def test_a_thousand_different_budgets_are_amplified():
    """Certified 2.0 before, since nobody shares a budget; the count theorem is not for bits of a seed."""
    found = fitted(BUDGETS)
    assert found.method == "blanket"
    law = sdp.Setting(sdp.Budgets.of(BUDGETS), sdp.RandomizedResponse(k=2), seen="reports", neighboring="replace-one")
    known = sdp.certify(law, delta=1e-6).epsilon
    assert known.upper <= found.epsilon.upper <= 0.2793
    assert found.levels_total == 1000


def test_visible_budgets_are_not_amplified_across_levels():
    found = fitted(BUDGETS, seen="levels")
    assert found.method == "local"
    assert found.epsilon.upper == pytest.approx(BUDGETS.max(), rel=1e-5)


@pytest.mark.slow
def test_a_server_that_sees_less_never_gets_a_worse_guarantee():
    for counts in ((300, 300), (1, 500), (40, 2)):
        for rounds in (1, 5):
            asked = [accountant(counts, (0.5, 2.0), seen, rounds).epsilon(1e-5) for seen in ("reports", "levels")]
            assert asked[0] <= asked[1] * (1 + 1e-12)


@pytest.mark.costly
def test_a_larger_budget_costs_more_and_victims_are_rounded_up():
    found = fitted(BUDGETS)
    epsilons = [level.epsilon.upper for level in found.levels]
    assert all(a <= b * (1 + 1e-9) for a, b in itertools.pairwise(epsilons))
    many = accountant((10,) * 100, np.linspace(0.5, 2.0, 100).tolist())
    anchors = {many._anchor(tier.epsilon0) for tier in many.tiers}
    assert len(anchors) <= 32
    assert all(many._anchor(tier.epsilon0) >= tier.epsilon0 for tier in many.tiers)


def divergence(laws_0, laws_1, e):
    """sup over events of P0 - e P1 of the multiset of independent reports, exactly."""

    def multiset(laws):
        found: Counter = Counter()
        for combo in itertools.product(*(law.items() for law in laws)):
            chance = Fraction(1)
            for _, p in combo:
                chance *= p
            found[tuple(sorted(y for y, _ in combo))] += chance
        return found

    first, second = multiset(laws_0), multiset(laws_1)
    return sum((max(p - e * second[y], Fraction(0)) for y, p in first.items()), Fraction(0))


def report(odds, sides):
    """Law of (seed, bit): one of two seeds, then the side that this record takes there, told by randomized response."""
    truth = Fraction(odds, odds + 1)
    return {
        (seed, bit): Fraction(1, 2) * (truth if bit == side else 1 - truth)
        for seed, side in enumerate(sides)
        for bit in (0, 1)
    }


@pytest.mark.costly
@pytest.mark.parametrize("odds", [(4, 2, 3), (2, 4, 4), (3, 3, 6)])
def test_no_records_beat_the_bound(odds):
    """Three users, two seeds: every side of every record, all victims' pairs, at several epsilons, enumerated."""
    epsilons = tuple(float(np.log(o)) for o in odds)
    known = sorted(set(epsilons))
    asked = accountant([epsilons.count(e) for e in known], known)
    profile = asked._blanket(known.index(epsilons[0]))
    sides = list(itertools.product((0, 1), repeat=2))
    for power in (Fraction(1), Fraction(3, 2), Fraction(2)):
        most = max(
            divergence([report(odds[0], x), *others], [report(odds[0], y), *others], power)
            for x, y in itertools.product(sides, repeat=2)
            for others in ([report(odds[1], a), report(odds[2], b)] for a in sides for b in sides)
        )
        assert float(most) <= profile.delta(float(np.log(float(power)))).upper * (1 + 1e-9)


def test_bits_without_a_shuffle_keep_their_own_budget():
    with pytest.raises(InvalidInput, match="sketch"):
        fitted(BUDGETS, seen="sum")
