"""From a wanted epsilon to budgets or rounds: never more than the target, and not much less."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import simulation_random
from tests.learning.test_training import FEATURES, GROUPS, LABELS, classifier

TARGETS = {
    "example level": {"unit": "example", "seen": "users"},
    "sum": {"unit": "example", "seen": "sum"},
    "Laplace": {"unit": "client", "seen": "reports", "mechanism": "laplace"},
    "bits": {"unit": "client", "seen": "reports", "mechanism": "sketch", "epsilon0": [1.0] * 4 + [2.0] * 4},
}


@pytest.mark.costly("Laplace", "bits")
@pytest.mark.parametrize("way", TARGETS.values(), ids=TARGETS)
def test_budgets_are_chosen_for_a_target(way):
    """Never more than the target and, as cost grows with budgets, within 10 % of it."""
    fitted = classifier(**way, target_epsilon=3.0).fit(FEATURES, LABELS, groups=GROUPS)
    assert fitted.guarantee_.rounds == 3
    assert 2.7 < fitted.guarantee_.epsilon.upper <= 3.0
    budgets = [level.epsilon0 for level in fitted.guarantee_.levels]
    assert max(budgets) / min(budgets) == pytest.approx(2.0 if "epsilon0" in way else 1.0)
    (note,) = [note for note in fitted.guarantee_.notes if note.startswith("for a target epsilon of 3 budgets")]
    assert f"cost {fitted.guarantee_.epsilon.upper:.4g}, and the noise of one step is" in note


def test_with_a_target_budgets_matter_in_proportion_only():
    own = np.where(np.arange(8) < 4, 1.0, 2.0)
    one, other = (
        classifier(seen="sum", epsilon0=factor * own, target_epsilon=3.0).fit(FEATURES, LABELS, groups=GROUPS)
        for factor in (1.0, 10.0)
    )
    found = [[level.epsilon0 for level in fitted.guarantee_.levels] for fitted in (one, other)]
    assert found[0] == pytest.approx(found[1], rel=1e-9)
    assert found[0][1] / found[0][0] == pytest.approx(2.0)


@pytest.mark.costly(but=("example level",))
@pytest.mark.parametrize("way", TARGETS.values(), ids=TARGETS)
def test_rounds_are_chosen_for_a_target(way):
    """As many as fit: one more would not."""
    small = way | {"epsilon0": 0.1 * np.asarray(way.get("epsilon0", 1.0))}
    fitted = classifier(**small, rounds=None, target_epsilon=0.7).fit(FEATURES, LABELS, groups=GROUPS)
    account, (spent,) = fitted.accountant_, fitted.accountant_.spent
    assert fitted.guarantee_.epsilon.upper <= 0.7 < account.epsilon_after(spent, 1e-5)
    assert any(
        f"for a target epsilon of 0.7 {account.rounds:,} rounds were found" in n for n in fitted.guarantee_.notes
    )


def test_the_end_of_a_search_is_said_as_an_end(monkeypatch):
    """The largest budget, or number of rounds, that is tried is not the largest that the target allows."""
    said = "were found, where the search ends: more might stay within the target as well: "
    rich = classifier(seen="users", rounds=1, target_epsilon=1e4).fit(FEATURES, LABELS, groups=GROUPS)
    assert any("budgets of a message of 64" in note and said in note for note in rich.guarantee_.notes)
    monkeypatch.setattr("shuffledp.learning.settings.MOST_ROUNDS", 2)
    short = classifier(seen="users", rounds=None, target_epsilon=1e4).fit(FEATURES, LABELS, groups=GROUPS)
    assert any("2 rounds " + said in note for note in short.guarantee_.notes)
    usual = classifier(seen="users", target_epsilon=3.0).fit(FEATURES, LABELS, groups=GROUPS)
    assert not any("where the search ends" in note for note in usual.guarantee_.notes)


def test_a_target_holds_although_people_stay_away():
    """The search takes everybody to be there; with two of eight, the sum hides less, and training stops in time."""
    asked = classifier(unit="example", seen="sum", rounds=10, target_epsilon=2.0)
    fitted = asked.fit(FEATURES, LABELS, groups=GROUPS, presence=lambda _: np.arange(8) < 2)
    assert fitted.guarantee_.rounds < 10
    assert fitted.guarantee_.epsilon.upper <= 2.0
    assert fitted.stopped_ == "one more round would exceed epsilon = 2"


def test_the_noise_of_a_step_is_what_is_drawn():
    """Clients of gradient zero: what moves the model is noise alone. 200 rounds; a false alarm is a 6-sigma event."""
    asked = classifier(
        unit="example", seen="sum", rounds=200, step=1.0, decay="none", target_epsilon=50.0, clip=0.25, epsilon0=1.0
    )
    fitted = asked.fit(np.full((240, 3), np.nan), LABELS, groups=GROUPS)
    (note,) = [note for note in fitted.guarantee_.notes if "the noise of one step is" in note]
    told = float(note.split("the noise of one step is ")[1].split()[0])
    first = fitted.network_.initial(simulation_random(1))
    moved = float(np.linalg.norm(fitted.weights_ - first)) / math.sqrt(200.0) / 0.25
    assert moved == pytest.approx(told, rel=6.0 / math.sqrt(2.0 * first.size))


def test_a_target_out_of_reach_is_refused():
    with pytest.raises(InvalidInput, match=r"no budgets down to .* keep all rounds within `target_epsilon = 1e-09`"):
        classifier(target_epsilon=1e-9).fit(FEATURES, LABELS, groups=GROUPS)
    with pytest.raises(InvalidInput, match=r"one round costs more than `target_epsilon = 0\.5`"):
        classifier(target_epsilon=0.5, rounds=None).fit(FEATURES, LABELS, groups=GROUPS)
    with pytest.raises(InvalidInput, match="target_epsilon must be positive"):
        classifier(target_epsilon=0.0).fit(FEATURES, LABELS, groups=GROUPS)
    with pytest.raises(InvalidInput, match="`rounds` is missing"):
        classifier(rounds=None).fit(FEATURES, LABELS, groups=GROUPS)
