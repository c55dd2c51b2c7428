"""A torch training run in a ledger: as in NumPy, all rounds are entered before the first message, each once."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra shuffledp[torch]")

from torch import nn  # noqa: E402

from shuffledp.errors import InvalidInput  # noqa: E402
from shuffledp.learning import training  # noqa: E402
from shuffledp.learning.torch import ShuffledSGD  # noqa: E402
from shuffledp.ledger import Ledger  # noqa: E402
from shuffledp.numerics.randomness import simulation_random  # noqa: E402

ROWS = torch.from_numpy(np.random.default_rng(1).normal(size=(40, 3)))
LABELS = torch.arange(40) % 2
GROUPS = np.repeat(np.arange(10), 4)
NAMES = {"population": "town", "fixed_in_advance": "plan", "title": "digits"}


def trainer(**changes):
    settings = {"unit": "client", "seen": "sum", "epsilon0": 2.0, "delta": 1e-3, "clip": 1.0, "rounds": 3}
    return ShuffledSGD(nn.Linear(3, 2).double(), **(settings | changes))


def fitted(ledger, *, resume=False, **changes):
    return trainer(**changes).fit(ROWS, LABELS, groups=GROUPS, resume=resume, ledger=ledger, **NAMES)


@pytest.mark.parametrize(
    "changes", [{}, {"mechanism": "sketch", "seen": "reports"}, {"unit": "example", "seen": "users"}]
)
def test_what_is_entered_is_what_the_run_costs(tmp_path, changes):
    Ledger(tmp_path / "l", make=True).close()
    model = fitted(tmp_path / "l", **changes)
    with Ledger(tmp_path / "l") as ledger:
        (entry,) = ledger.entries()
    assert entry.spending.epsilon == model.guarantee_.epsilon.upper
    assert (entry.title, entry.population, entry.plan) == ("digits", "town", "plan")
    assert "3 rounds" in entry.setting


def test_no_message_is_computed_before_the_entry(tmp_path, monkeypatch):
    with Ledger(tmp_path / "l", make=True) as ledger:
        seen, whole = [], training.Run._round
        monkeypatch.setattr(
            training.Run, "_round", lambda run, who: (seen.append(len(ledger.entries())), whole(run, who))[1]
        )
        fitted(ledger)
    assert seen == [1, 1, 1]


def test_a_limit_without_room_says_how_many_rounds_fit_and_leaves_the_module(tmp_path, monkeypatch):
    monkeypatch.setattr(training.Run, "_round", lambda *_: pytest.fail("a message was computed"))
    with Ledger(tmp_path / "l", make=True) as ledger:
        ledger.set_limit(2.0, 1e-2)
        there = trainer(rounds=60)
        before = there.module.weight.clone()
        with pytest.raises(InvalidInput, match=r"what would fit: `rounds = (\d+)`") as refused:
            there.fit(ROWS, LABELS, groups=GROUPS, ledger=ledger)
        assert ledger.entries() == []
        assert torch.equal(before, there.module.weight)
        fits = int(str(refused.value).partition("rounds = ")[2].partition("`")[0])
        monkeypatch.undo()
        trainer(rounds=fits).fit(ROWS, LABELS, groups=GROUPS, ledger=ledger)


def test_a_longer_run_enters_what_it_adds(tmp_path):
    with Ledger(tmp_path / "l", make=True) as ledger:
        fitted(ledger, checkpoint=tmp_path / "run.npz", rounds=2)
        model = fitted(ledger, checkpoint=tmp_path / "run.npz", rounds=5, resume=True)
        first, second = ledger.entries()
        assert ("2 rounds" in first.setting, "3 rounds" in second.setting) == (True, True)
        assert model.guarantee_.epsilon.upper <= ledger.total(1e-3).epsilon <= 1.05 * model.guarantee_.epsilon.upper


def test_a_simulation_enters_nothing(tmp_path):
    with Ledger(tmp_path / "l", make=True) as ledger:
        with pytest.raises(InvalidInput, match="a simulation is not private"):
            fitted(ledger, random=simulation_random(1))
        assert ledger.entries() == []
    with pytest.raises(InvalidInput, match="name one with `ledger`"):
        trainer().fit(ROWS, LABELS, groups=GROUPS, fixed_in_advance="plan")
