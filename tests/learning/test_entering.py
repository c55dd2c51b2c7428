"""A training run in a ledger: all rounds are entered before the first message, and each of them once."""

from __future__ import annotations

import numpy as np
import pytest

from shuffledp.errors import InvalidInput
from shuffledp.learning import training
from shuffledp.learning.keeping import spending_of
from shuffledp.ledger import Ledger
from shuffledp.numerics.floats import few_digits_up
from shuffledp.numerics.randomness import secure_random
from tests.learning.test_training import FEATURES, GROUPS, LABELS, classifier

DELTA = 1e-5


def fitted(ledger, *, resume=False, presence=None, **changes):
    names = {"population": "town", "fixed_in_advance": "plan", "title": "digits"}
    model = classifier(random=secure_random(), **changes)
    return model.fit(FEATURES, LABELS, groups=GROUPS, resume=resume, presence=presence, ledger=ledger, **names)


class Stop(Exception):
    """Pulls the plug."""


def cut_in_round(monkeypatch, number, ledger, **changes):
    """A run that dies after the messages of a round have left, before that round is finished."""
    with monkeypatch.context() as patch:
        whole = training.Run._round

        def dies(run, present):
            whole(run, present)
            if run.done == number:
                raise Stop

        patch.setattr(training.Run, "_round", dies)
        with pytest.raises(Stop):
            fitted(ledger, **changes)


@pytest.mark.costly(but=("changes4",))
@pytest.mark.parametrize(
    "changes",
    [{}, {"unit": "client", "seen": "reports"}, {"unit": "client", "seen": "reports", "mechanism": "sketch"},
     {"unit": "client", "epsilon0": [1.0] * 4 + [4.0] * 4}, {"max_epsilon": 12.0, "rounds": 6}],
)  # fmt: skip
def test_what_is_entered_is_what_the_run_costs(tmp_path, changes):
    with Ledger(tmp_path / "l", make=True) as ledger:
        model = fitted(ledger, **changes)
        (entry,) = ledger.entries()
    upper = model.guarantee_.epsilon.upper
    assert entry.spending.epsilon == upper
    assert upper <= few_digits_up(entry.spending.worst.epsilon(DELTA).upper * (1 + 1e-12))
    assert entry.spending.worst.epsilon(DELTA).upper <= 1.05 * upper  # kept at knots
    assert (entry.title, entry.population, entry.plan) == ("digits", "town", "plan")
    assert {level.epsilon0 for level in entry.spending.levels} == {level.epsilon0 for level in model.guarantee_.levels}


@pytest.mark.costly
def test_many_tiers_keep_what_holds_for_everybody(tmp_path):
    with Ledger(tmp_path / "l", make=True) as ledger:
        model = classifier(unit="client", epsilon0=np.linspace(0.5, 8.0, 240), random=secure_random())
        model.fit(FEATURES, LABELS, ledger=ledger)
        (entry,) = ledger.entries()
    assert entry.spending.levels == ()
    upper = model.guarantee_.epsilon.upper
    assert upper * (1 - 1e-9) <= entry.spending.worst.epsilon(DELTA).upper <= 1.05 * upper
    assert entry.mu < 100.0


def test_no_message_is_computed_before_the_entry(tmp_path, monkeypatch):
    with Ledger(tmp_path / "l", make=True) as ledger:
        seen = []
        monkeypatch.setattr(training, "step_by_step", lambda *_, **__: seen.append(len(ledger.entries())))
        fitted(ledger)
    assert seen == [1, 1, 1]


@pytest.mark.costly
def test_a_limit_without_room_says_how_many_rounds_fit(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "step_by_step", lambda *_, **__: pytest.fail("a message was computed"))
    with Ledger(tmp_path / "l", make=True) as ledger:
        ledger.set_limit(30.0, 1e-4)
        with pytest.raises(InvalidInput, match=r"what would fit: `rounds = (\d+)`") as refused:
            fitted(ledger, rounds=20)
        assert ledger.entries() == []
        fits = int(str(refused.value).partition("rounds = ")[2].partition("`")[0])
        monkeypatch.undo()
        with pytest.raises(InvalidInput, match="rounds"):
            fitted(ledger, rounds=fits + 1)
        fitted(ledger, rounds=fits)
        with pytest.raises(InvalidInput, match="not even one round"):
            fitted(ledger, rounds=20)


@pytest.mark.costly
def test_a_round_that_is_repeated_is_entered_again(tmp_path, monkeypatch):
    """The cut round's messages have left, so its repetition is one round more than the first entry holds."""
    changes = {"checkpoint": tmp_path / "run.npz", "rounds": 4}
    with Ledger(tmp_path / "l", make=True) as ledger:
        cut_in_round(monkeypatch, 1, ledger, **changes)
        model = fitted(ledger, resume=True, **changes)
        first, second = ledger.entries()
        assert model.guarantee_.rounds == 5
        assert first.task == second.task
        assert ("4 rounds" in first.setting, "1 rounds" in second.setting) == (True, True)
        assert model.guarantee_.epsilon.upper <= ledger.total(DELTA).epsilon
        again = fitted(ledger, resume=True, **changes)  # finished: nothing is sent
        assert (len(ledger.entries()), again.guarantee_.rounds) == (2, 5)


@pytest.mark.costly
def test_a_longer_run_enters_what_it_adds(tmp_path):
    with Ledger(tmp_path / "l", make=True) as ledger:
        fitted(ledger, checkpoint=tmp_path / "run.npz", rounds=2)
        model = fitted(ledger, checkpoint=tmp_path / "run.npz", rounds=5, resume=True)
        first, second = ledger.entries()
        assert ("2 rounds" in first.setting, "3 rounds" in second.setting) == (True, True)
        assert model.guarantee_.epsilon.upper <= ledger.total(DELTA).epsilon <= 1.05 * model.guarantee_.epsilon.upper


@pytest.mark.costly(but=("None-a-began without a ledger",))
@pytest.mark.parametrize(
    ("begun", "resumed", "told"),
    [("a", None, "name it with `ledger`"), (None, "a", "began without a ledger"), ("a", "b", "is not in the ledger")],
)
def test_a_run_goes_on_in_the_ledger_that_it_began_in(tmp_path, begun, resumed, told):
    def where(name):
        return None if name is None else tmp_path / name

    for name in "ab":
        Ledger(where(name), make=True).close()
    path = tmp_path / "run.npz"
    model = classifier(random=secure_random(), checkpoint=path)
    model.fit(FEATURES, LABELS, groups=GROUPS, ledger=where(begun))
    with pytest.raises(InvalidInput, match=told):
        model.fit(FEATURES, LABELS, groups=GROUPS, resume=True, ledger=where(resumed))


def test_presence_is_settled_before_the_first_round(tmp_path):
    asked = []

    def presence(turn):
        asked.append(turn)
        return np.arange(8) != turn

    with Ledger(tmp_path / "l", make=True) as ledger:
        model = fitted(ledger, presence=presence)
        (entry,) = ledger.entries()
    assert asked == [0, 1, 2]
    assert entry.spending.epsilon == model.guarantee_.epsilon.upper


def test_refusals(tmp_path):
    Ledger(tmp_path / "l", make=True).close()
    with pytest.raises(InvalidInput, match="a simulation is not private"):
        classifier().fit(FEATURES, LABELS, groups=GROUPS, ledger=tmp_path / "l")
    with pytest.raises(InvalidInput, match="how many `classes`"):
        fitted(tmp_path / "l", classes=None)


def test_spending_counts_the_largest_round():
    model = classifier(unit="client").fit(FEATURES, LABELS, groups=GROUPS)
    assert spending_of(model.accountant_, DELTA).n == 8
