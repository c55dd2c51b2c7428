"""Guarantees of training: known numbers, other routes to the same number, and the refusals."""

from __future__ import annotations

import itertools
import math

import mpmath
import pytest

import shuffledp as sdp
from shuffledp.accounting import GaussianPointsProfile, chain_profile, compose, one_budget_profile
from shuffledp.errors import InvalidInput
from shuffledp.learning.accounting import Tier, TrainingAccountant

TEXTBOOK = math.sqrt(2.0 * math.log(1.25e5))


def gaussian(mu, epsilon0=1.0):
    return Tier(epsilon0, 1e-6, 1.0, 1.0 / mu)


def pure(epsilon0):
    return Tier(epsilon0, 0.0, 1.0, 1.0 / epsilon0)


def accountant(unit, seen, tiers, rounds, *, noise="gaussian"):
    found = TrainingAccountant(unit, seen, noise == "gaussian", tuple(tiers))
    for messages in rounds:
        found.spend(messages)
    return found


def exact_epsilon(mu, delta):
    """Root of Balle and Wang's formula by bisection with 40 digits."""
    with mpmath.workdps(40):
        mu = mpmath.mpf(mu)
        low, high = mpmath.mpf(0), 20 * mu + mu**2
        for _ in range(60):
            e = (low + high) / 2
            found = mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)
            low, high = (e, high) if found > delta else (low, e)
        return float(low)


@pytest.mark.parametrize(("mu", "epsilon"), [(0.5 / TEXTBOOK, 3.05), (1 / 7.032, 4.41)])
def test_fifty_epochs_at_example_level(mu, epsilon):
    """GSPA's noise at 0.5, textbook and analytic, without any shuffling."""
    found = accountant("example", "users", [gaussian(mu)], [[100]] * 50).guarantee(1e-5)
    assert found.method == "local"
    assert found.epsilon.upper == pytest.approx(epsilon, abs=0.005)
    assert found.epsilon.upper == pytest.approx(exact_epsilon(mu * math.sqrt(50), 1e-5), rel=1e-5)
    assert found.epsilon.upper >= exact_epsilon(mu * math.sqrt(50), 1e-5)


@pytest.mark.costly
def test_a_sum_adds_the_noises():
    """100 messages at 0.5 (textbook), 50 rounds: 0.24."""
    tier = gaussian(0.5 / TEXTBOOK)
    found = accountant("client", "sum", [tier], [[100]] * 50).guarantee(1e-5)
    assert found.method == "sum"
    assert found.epsilon.upper == pytest.approx(0.24, abs=0.005)
    assert found.epsilon.upper == pytest.approx(exact_epsilon(0.05 / TEXTBOOK * math.sqrt(50), 1e-5), rel=1e-5)


@pytest.mark.costly
def test_a_sum_with_own_weights():
    """Two tiers: each moves the sum by its own sensitivity, all noise hides everybody; rounds of different size."""
    tiers = [Tier(1.0, 1e-6, 2.0, 10.0), Tier(0.1, 1e-6, 0.5, 30.0)]
    found = accountant("client", "sum", tiers, [[3, 4], [1, 0], [3, 4]]).guarantee(1e-6)
    small, large = found.levels
    whole, alone = 3 * 100.0 + 4 * 900.0, 100.0
    assert small.epsilon.upper == pytest.approx(exact_epsilon(math.sqrt(2 * 0.25 / whole), 1e-6), rel=1e-5)
    assert large.epsilon.upper == pytest.approx(exact_epsilon(math.sqrt(2 * 4 / whole + 4 / alone), 1e-6), rel=1e-5)
    assert (small.count, large.count) == (4, 3)


def test_a_pure_sum_is_hidden_by_the_widest_noise():
    tiers = [pure(2.0), pure(0.5)]
    found = accountant("client", "sum", tiers, [[5, 5]], noise="laplace").guarantee(1e-9)
    assert [level.epsilon.upper for level in found.levels] == pytest.approx([0.5, 0.5], rel=1e-6)
    assert found.epsilon.upper <= 0.5 * (1 + 1e-12)


@pytest.mark.parametrize(("seen", "key"), [("reports", "levels"), ("users", "ordered")])
def test_pure_clients_agree_with_the_accountant_of_collections(seen, key):
    tiers, counts = [pure(0.5), pure(1.0)], [700, 300]
    found = accountant("client", seen, tiers, [counts], noise="laplace").guarantee(1e-6)
    setting = sdp.Setting(sdp.Budgets([0.5, 1.0], counts), "any", seen=seen, neighboring="replace-one")
    other = sdp.certify(setting, delta=1e-6)
    assert found.method == key
    for mine, theirs in zip(found.levels, other.levels, strict=True):
        assert mine.epsilon.upper == pytest.approx(theirs.epsilon.upper, rel=1e-3)
        assert mine.epsilon.upper < mine.epsilon0


@pytest.mark.costly
def test_gaussian_clients_are_amplified_within_their_level():
    tiers = [gaussian(0.2, 0.5), gaussian(0.4, 1.0)]
    found = accountant("client", "levels", tiers, [[2000, 1]]).guarantee(1e-6)
    told = {e.key: e.epsilon for e in accountant("client", "levels", tiers[:1], [[2000]]).guarantee(1e-6).evidence}
    assert told["approximate"].upper == pytest.approx(GaussianPointsProfile(5.0, 2000).epsilon(1e-6).upper, rel=1e-5)
    assert told["chain"].upper == pytest.approx(chain_profile(0.2, 2000).epsilon(1e-6).upper, rel=1e-5)
    assert found.levels[0].epsilon.upper == told["chain"].upper < told["approximate"].upper / 5
    assert found.levels[0].epsilon.upper < exact_epsilon(0.2, 1e-6) / 4
    # alone in the level: nobody hides her
    assert found.levels[1].epsilon.upper == pytest.approx(exact_epsilon(0.4, 1e-6), rel=1e-4)
    assert found.worst.epsilon0 == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_rounds_of_different_size_compose(noise):
    make = (
        (lambda n: chain_profile(0.2, n))
        if noise == "gaussian"
        else (lambda n: one_budget_profile(0.5, n, coarse=False))
    )
    tier = gaussian(0.2) if noise == "gaussian" else pure(0.5)
    found = accountant("client", "reports", [tier], [[2000], [1000], [2000]], noise=noise).guarantee(1e-6)
    by_hand = compose([(make(2000), 2), (make(1000), 1)]).epsilon(1e-6)
    assert found.epsilon.upper == pytest.approx(by_hand.upper, rel=2e-3)
    single = accountant("client", "reports", [tier], [[1000]] * 3, noise=noise).guarantee(1e-6)
    assert found.epsilon.upper < single.epsilon.upper


@pytest.mark.costly
@pytest.mark.parametrize(
    ("mu", "clients", "rounds", "most", "before", "times"),
    [
        (0.25, 10_000, 1, 0.0081, 0.0698, 1.4),
        pytest.param(0.8, 60_000, 16, 0.0650, 0.6501, 1.44, marks=pytest.mark.slow),
        pytest.param(0.8, 60_000, 64, 0.1330, 1.297, 1.44, marks=pytest.mark.slow),
    ],
)
def test_training_with_gaussian_messages_is_certified_by_the_chain(mu, clients, rounds, most, before, times):
    """Delta 1e-6; docs/learning.md has the last two. The released sum costs so many times less."""
    run = accountant("client", "reports", [gaussian(mu)], [[clients]])
    if rounds > 1:
        run.spend([clients], rounds - 1)
    found = run.guarantee(1e-6)
    told = {e.key: e.epsilon.upper for e in found.evidence if e.epsilon is not None}
    assert found.method == "chain"
    assert found.epsilon.upper == min(told.values()) <= most
    assert told["approximate"] == pytest.approx(before, rel=2e-3)
    summed = exact_epsilon(mu * math.sqrt(rounds / clients), 1e-6)
    assert summed < found.epsilon.upper < times * summed


def test_the_smallest_valid_bound_is_taken_and_named():
    few = accountant("client", "reports", [gaussian(0.1)], [[2]]).guarantee(1e-5)
    assert few.method == "local"
    told = {e.key: e for e in few.evidence}
    assert told["local"].epsilon.upper <= told["approximate"].epsilon.upper
    assert few.epsilon.upper == told["local"].epsilon.upper
    assert "enough users to form its groups" in told["chain"].refused


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("seen", ["reports", "users", "levels"])
def test_at_example_level_no_amplification_is_claimed(seen, noise):
    tier = gaussian(0.3) if noise == "gaussian" else pure(0.3)
    found = accountant("example", seen, [tier], [[1000]], noise=noise).guarantee(1e-6)
    assert found.method == "local"
    assert {e.key for e in found.evidence if e.refused} == {
        "levels",
        "blanket",
        "approximate",
        "chain",
        "ordered",
        "sum",
    }


@pytest.mark.costly("client-gaussian-one")
@pytest.mark.one_in(4)
@pytest.mark.parametrize("rounds", [[[2000, 500]], [[2000, 500], [2000, 1], [0, 300]]], ids=["one", "several"])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("unit", ["client", "example"])
def test_less_seen_is_never_worse(unit, noise, rounds):
    """Sum <= reports <= levels, level by level; once Laplace clients had 4 times the epsilon under "sum"."""
    make = gaussian if noise == "gaussian" else pure
    tiers = [make(0.3, 0.3), make(0.8, 0.8)] if noise == "gaussian" else [make(0.3), make(0.8)]
    found = [
        accountant(unit, seen, tiers, rounds, noise=noise).guarantee(1e-6) for seen in ("sum", "reports", "levels")
    ]
    for less, more in itertools.pairwise(found):
        for first, second in zip(less.levels, more.levels, strict=True):
            assert first.epsilon.upper <= second.epsilon.upper, (less.seen, less.method, more.method)


def test_a_pure_sum_is_hidden_by_the_crowd_too():
    """1,000 clients at 3, 10 rounds: 30 with the widest noise alone, as shuffled messages far less."""
    summed, shuffled = (
        accountant("client", seen, [pure(3.0)], [[1000]] * 10, noise="laplace").guarantee(1e-6)
        for seen in ("sum", "reports")
    )
    assert summed.method == "levels"
    assert summed.epsilon.upper == shuffled.epsilon.upper < 10.0


def test_steps_belong_to_nobody():
    """Seen in order at client level, Gaussian: everybody may get the narrowest noise, in every round."""
    found = accountant("client", "users", [gaussian(0.1, 0.3), gaussian(0.5, 2.0)], [[5, 5], [5, 0]]).guarantee(1e-6)
    worst = exact_epsilon(0.5 * math.sqrt(2), 1e-6)
    assert [level.epsilon.upper for level in found.levels] == pytest.approx([worst, worst], rel=1e-5)


def test_asking_ahead_spends_nothing():
    one = accountant("example", "users", [gaussian(0.1)], [[10]])
    before = one.epsilon(1e-6)
    ahead = one.epsilon_after([10], 1e-6)
    assert one.epsilon(1e-6) == before < ahead
    one.spend([10])
    assert one.epsilon(1e-6) == ahead
    assert one.rounds == 2


def test_a_tier_pays_only_for_rounds_it_took_part_in():
    one = accountant("example", "users", [gaussian(0.1, 0.5), gaussian(0.1, 0.6)], [[1, 1]] * 4 + [[1, 0]] * 12)
    found = one.guarantee(1e-6)
    assert found.levels[0].epsilon.upper == pytest.approx(exact_epsilon(0.4, 1e-6), rel=1e-5)
    assert found.levels[1].epsilon.upper == pytest.approx(exact_epsilon(0.2, 1e-6), rel=1e-5)


@pytest.mark.costly
def test_very_many_tiers_are_sampled_with_the_worst():
    tiers = [gaussian(0.001 * (1 + i), 0.001 * (1 + i)) for i in range(1500)]
    found = accountant("example", "users", tiers, [[1] * 1500]).guarantee(1e-6)
    assert len(found.levels) <= 1000
    assert found.levels_total == 1500
    assert found.worst.epsilon0 == 1.5


def test_nothing_done_nothing_spent_and_bad_rounds_refused():
    empty = accountant("client", "reports", [gaussian(0.1)], [])
    assert empty.epsilon(1e-6) == 0.0
    assert empty.guarantee(1e-6).epsilon.upper == 0.0
    for messages in ([0], [1, 2], [-1]):
        with pytest.raises(InvalidInput):
            empty.spend(messages)


def test_the_guarantee_speaks():
    found = accountant("example", "users", [gaussian(0.1)], [[100]] * 50).guarantee(1e-5, notes=("a note",))
    text = found.describe()
    assert "after 50 rounds, by local" in text
    assert "one example of one client is replaced" in text
    assert "A note." in text
    told = accountant("example", "users", [gaussian(0.1)], [[1]]).guarantee(1e-5, private=False).describe()
    assert told.startswith("no privacy")
