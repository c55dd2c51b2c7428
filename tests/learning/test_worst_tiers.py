"""Of more than a thousand tiers some are asked what they cost; the worst is among them."""

import itertools

import numpy as np
import pytest

from shuffledp.learning.accounting import Tier, TrainingAccountant, tiers_to_ask


def gaussian(mu, moved=None):
    return Tier(mu, 1e-9, mu if moved is None else moved, 1.0 if moved is None else moved / mu)


def test_a_client_of_its_own_budget_next_to_a_crowd_is_not_forgotten():
    """0.834 was stated: of 1,500 tiers the one at 0.3 was skipped, and the crowd at 0.4 costs nearly nothing."""
    mus = np.concatenate((np.linspace(0.1, 0.2, 1498), [0.3, 0.4]))
    run = TrainingAccountant("client", "reports", True, tuple(gaussian(float(mu)) for mu in mus))
    run.spend([1] * 1499 + [50_000])
    asked = run._listed()
    assert 1498 in asked
    assert 1499 in asked
    assert run.tier_answer(1498, 1e-6)[1] > 1.29


def test_whoever_took_part_more_often_is_not_forgotten():
    """At example level plain composition counts: sqrt(rounds) times the shift."""
    mus = np.linspace(0.1, 0.2, 1500)
    run = TrainingAccountant("example", "reports", True, tuple(gaussian(float(mu)) for mu in mus))
    often = 2
    assert often not in np.linspace(0, 1499, 1000).astype(int)  # an even choice leaves it out
    run.spend([1] * 1500)
    run.spend([int(i == often) for i in range(1500)], 100)
    assert run.epsilon(1e-6) == run.tier_answer(often, 1e-6)[1]


@pytest.mark.parametrize("seed", range(3))
def test_nobody_left_out_exceeds_all_who_are_asked(seed):
    """Two shifts and two kinds of rounds, seen as reports and as a sum: the whole table against the choice."""
    random = np.random.default_rng(seed)
    tiers = [gaussian(float(m), float(s)) for m, s in zip(*random.uniform(0.1, 1.0, (2, 20)), strict=True)]
    rounds = [tuple(int(x) for x in random.integers(0, 2, 20)) for _ in range(2)]
    asked = tiers_to_ask(tiers, rounds, most=3, hidden=32).tolist()
    assert len(asked) < 20
    for seen in ("reports", "sum"):
        run = TrainingAccountant("client", seen, True, tuple(tiers), spent=dict.fromkeys(rounds, 3))
        there = [i for i in range(20) if any(key[i] for key in rounds)]
        costs = {i: run.tier_answer(i, 1e-6)[1] for i in there}
        assert max(costs.values()) == max(costs[i] for i in asked)


def test_few_tiers_are_all_asked_and_absent_ones_never():
    tiers = [gaussian(0.1), gaussian(0.2), gaussian(0.3)]
    assert tiers_to_ask(tiers, [(1, 0, 2)], most=1000, hidden=32).tolist() == [0, 2]
    for most, hidden in itertools.product((1, 2), (0, 32)):
        assert 2 in tiers_to_ask(tiers, [(1, 0, 2)], most=most, hidden=hidden).tolist()
