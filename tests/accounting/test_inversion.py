"""epsilon(delta): few evaluations, safe whatever the computed curve does, and never asked twice."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shuffledp import Budgets, Channel, OutOfRegime, RandomizedResponse, Setting, bounds
from shuffledp.accounting.profiles.profile import PrivacyProfile, gaussian_delta, gaussian_epsilon
from shuffledp.accounting.theorems.blanket.pairs import LargestProfile
from shuffledp.accounting.theorems.clones.pair import ClonePairProfile, one_budget_profile
from shuffledp.accounting.theorems.count.cover import BitCrowds
from shuffledp.numerics.floats import Interval
from tests.work import calls_of

MATRIX = 0.9 * np.random.default_rng(3).dirichlet(np.full(6, 4.0), 5) + 0.1 / 6


@dataclass(frozen=True, eq=False)
class Counted(PrivacyProfile):
    """A Gaussian curve of a given slack and jaggedness, and where it was asked for."""

    mu: float
    slack: float = 1e-3
    jagged: float = 0.0
    guess: float = 1.0
    asked: list[float] = field(default_factory=list)

    @property
    def vanishes_at(self) -> float:
        return 20.0

    def delta_at(self, epsilon: float) -> Interval:
        self.asked.append(epsilon)
        value = gaussian_delta(epsilon, self.mu)
        noise = 1.0 + self.jagged * abs(math.sin(1e9 * epsilon))
        return Interval(value * (1 - self.slack), min(value * (1 + self.slack) * noise, 1.0))

    def guess_epsilon(self, delta: float) -> float | None:
        return self.guess * gaussian_epsilon(delta, self.mu)


@settings(max_examples=100, deadline=None)
@given(
    mu=st.floats(1e-3, 2.0),
    log_delta=st.floats(math.log(1e-12), math.log(1e-3)),
    slack=st.sampled_from([0.0, 1e-12, 1e-3, 0.3]),
    jagged=st.sampled_from([0.0, 1e-4, 0.2]),
    guess=st.sampled_from([1.0, 0.97, 1.05, 0.5, 3.0, 1e-3]),
)
def test_both_ends_are_on_their_sides(mu, log_delta, slack, jagged, guess):
    profile, delta = Counted(mu, slack, jagged, guess), math.exp(log_delta)
    found = profile.epsilon(delta)
    assert profile.delta(found.upper).upper <= delta
    assert found.lower == 0.0 or profile.delta(found.lower).lower > delta
    if jagged == 0.0 and found.lower > 0.0:
        # no looser than the enclosure itself
        below, above = (gaussian_epsilon(delta / (1 + sign * slack), mu) for sign in (-1, 1))
        assert found.upper <= above * (1 + 3e-6)
        assert found.lower >= below - 0.03 * (above - below) - 3e-6 * above


def test_a_smooth_curve_takes_few_evaluations():
    profile = Counted(0.05, guess=1.03)
    profile.epsilon(1e-6)
    assert len(profile.asked) <= 6


def test_the_same_question_is_answered_from_memory():
    profile = Counted(0.05)
    first, asked = profile.epsilon(1e-6), len(profile.asked)
    assert profile.epsilon(1e-6) == first
    assert len(profile.asked) == asked
    assert profile.epsilon(1e-7) != first


def test_rounds_of_one_profile_are_composed_once():
    alone = Setting(Budgets([1.0], [1000]), RandomizedResponse(4), "reports", "replace-one", rounds=3)
    visible = replace(alone, budgets=Budgets([0.5, 1.0], [1000, 1000]), seen="levels")
    blanket, level = bounds["blanket"].profile(alone, 1.0), bounds["clones"].profile(visible, 1.0)
    assert any(part is blanket for part in level.parts)


def of_channel(counts: list[int], rounds: int = 1) -> Setting:
    channel = Channel(MATRIX)
    epsilons = channel.epsilon0 + np.linspace(0.1, 1.0, len(counts))
    return Setting(Budgets(epsilons, counts), channel, "reports", "replace-one", rounds)


def test_everybody_of_one_channel_hides_everybody_whatever_the_budgets():
    """The law is the same at every budget: levels make no difference, and share one profile."""
    several, one = of_channel([300, 200, 500]), of_channel([1000])
    whole = bounds["blanket"].profile(one, float(one.budgets.epsilons[0])).epsilon(1e-6)
    for epsilon0 in several.budgets.epsilons.tolist():
        assert bounds["blanket"].profile(several, epsilon0).epsilon(1e-6) == whole
    many = of_channel([25] * 40)
    found = bounds["blanket"].level_epsilons(many, 1e-6, np.arange(40))
    assert found.upper == pytest.approx(np.full(40, whole.upper), rel=1e-12)


@pytest.mark.costly(but=("400",))
@pytest.mark.parametrize("n", [60, 400, 10_000])
def test_pairs_left_alone_are_not_the_worst(n):
    """Quick bounds only save time: the answer is the largest of all pairs' own."""
    setting = of_channel([n])
    profile = bounds["blanket"].profile(setting, float(setting.budgets.epsilons[0]))
    assert isinstance(profile, LargestProfile)
    found, each = profile.epsilon(1e-6), [part.epsilon(1e-6) for part in profile.parts]
    assert found.upper == pytest.approx(max(one.upper for one in each), rel=2e-6)
    assert found.lower <= max(one.upper for one in each)
    here = profile.delta(found.upper)
    assert here.upper == max(part.delta(found.upper).upper for part in profile.parts)


@pytest.mark.slow
def test_levels_is_left_to_blanket_over_several_rounds():
    """Everybody counts there: never below, and each level would be composed by itself."""
    setting = Setting(Budgets([0.5, 1.0], [500, 500]), RandomizedResponse(10), "reports", "replace-one", rounds=3)
    with pytest.raises(OutOfRegime, match="never below 'blanket'"):
        bounds["clones"].level_epsilons(setting, 1e-6, np.arange(2))
    whole = bounds["blanket"].level_epsilons(setting, 1e-6, np.arange(2)).upper
    for epsilon0, epsilon in zip((0.5, 1.0), whole, strict=True):
        assert epsilon < bounds["clones"].profile(setting, epsilon0).epsilon(1e-6).upper


def test_a_search_from_one_side_of_the_crossing_ends_there(monkeypatch):
    """Three points of a smooth curve on the safe side tell its slope; no point on the other side is needed."""
    seen = calls_of(monkeypatch, ClonePairProfile, "delta_at")
    for share in (1.001, 1.01, 1.05):
        profile = one_budget_profile(1.0, 10_000, coarse=False)
        exact = profile.epsilon(1e-6).upper
        fresh = ClonePairProfile(1.0, profile.clones)
        monkeypatch.setattr(ClonePairProfile, "guess_epsilon", lambda self, delta, at=share * exact: at)
        seen.clear()
        assert fresh.epsilon(1e-6).upper == pytest.approx(exact, rel=1.1e-6)
        assert len(seen) <= 5


def test_bounds_of_two_outcomes_share_their_clone_pair():
    setting = Setting(Budgets([1.0], [1_000]), RandomizedResponse(2), seen="reports", neighboring="replace-one")
    assert bounds["clones"].one_round(setting, 1.0) is bounds["blanket"].one_round(setting, 1.0)


def test_the_count_and_its_witness_share_their_record_vectors(monkeypatch):
    """Whoever asks second finds what the first one has evaluated."""
    setting = Setting(Budgets([1.5], [20_011]), RandomizedResponse(2), seen="reports", neighboring="replace-one")
    level = np.array([0])
    upper = bounds["count"].level_epsilons(setting, 1e-6, level)
    asked = calls_of(monkeypatch, BitCrowds, "best_thresholds")
    lower = bounds["count-exact"].level_epsilons(setting, 1e-6, level)
    assert not asked
    assert 0.0 < lower.lower[0] <= upper.upper[0]
