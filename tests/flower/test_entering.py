"""A federated run in a ledger: all rounds are entered before a client is asked, at no less than they will cost."""

from __future__ import annotations

import pytest

pytest.importorskip("flwr", reason="needs the extra shuffledp[flower]")

from flwr.serverapp.strategy import FedAvg

from shuffledp.errors import InvalidInput
from shuffledp.flower import ShuffledStrategy, Terms
from shuffledp.flower.terms import spending_of_rounds
from shuffledp.learning.accounting import TrainingAccountant
from shuffledp.ledger import Ledger
from shuffledp.numerics.randomness import simulation_random
from tests.flower.test_flower import InProcessGrid, app_of, nodes, record, strategy

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Flower's own dependencies

LEVELS = {"low": (1.0, 1e-7), "high": (8.0, 1e-7)}
PURE = {"low": (1.0, 0.0), "high": (3.0, 0.0)}
NAMES = {"population": "town", "fixed_in_advance": "plan", "title": "digits"}


def terms(**more) -> Terms:
    return Terms(**({"clip": 1.0, "levels": LEVELS, "release": "sum"} | more))


def started(run: ShuffledStrategy, agreed: Terms, clients: int, rounds: int):
    return run.start(InProcessGrid(app_of(agreed), nodes(clients)), record(0.0), num_rounds=rounds)


@pytest.mark.parametrize(
    ("agreed", "least"),
    [pytest.param(terms(), None, marks=pytest.mark.slow),
     pytest.param(terms(release="messages"), {"low": 4, "high": 5}, marks=pytest.mark.slow),
     (terms(levels=PURE, mechanism="laplace"), None),
     (terms(levels=PURE, mechanism="laplace", release="messages"), {"high": 6})],
)  # fmt: skip
def test_what_is_entered_covers_what_the_run_costs(tmp_path, agreed, least):
    file = tmp_path / "l"
    Ledger(file, make=True).close()
    run = strategy(agreed, rounds=2, least=least, ledger=file, **NAMES)
    started(run, agreed, 14, 3)
    report = run.report()
    assert (report.guarantee.rounds, run.stopped) == (2, "all 2 rounds are done")
    with Ledger(file) as ledger:
        (entry,) = ledger.entries()
    assert (entry.title, entry.population, entry.plan) == ("digits", "town", "plan")
    assert entry.spending.epsilon >= report.guarantee.epsilon.upper > 0.0
    upper = report.guarantee.epsilon.upper  # an inverse, rounded up more coarsely than the stored curve's
    assert entry.spending.worst.epsilon(1e-5).upper >= upper * (1 - 1e-5)
    assert len(entry.spending.levels) == 2


COUNTS = [((0, 0), 3, [(1, 2), (2, 1), (0, 4)]), ((2, 1), 3, [(2, 1), (2, 4), (4, 1)])]
"""Fewest of each level, fewest together, and rounds that may then be released."""


@pytest.mark.parametrize("release", ["sum", "messages"])
@pytest.mark.parametrize("mechanism", [pytest.param("gaussian", marks=pytest.mark.slow), "laplace"])
def test_no_round_that_may_be_released_costs_more(release, mechanism):
    levels = LEVELS if mechanism == "gaussian" else PURE
    agreed = terms(levels=levels, release=release, mechanism=mechanism)
    side = "client", agreed.seen, mechanism == "gaussian", agreed.plan(16).tiers
    for fewest, together, rounds in COUNTS:
        entered = spending_of_rounds(TrainingAccountant(*side), fewest, together, 2, 1e-3)
        for counts in rounds:
            assert TrainingAccountant(*side, {counts: 2}).epsilon(1e-3) <= entered.epsilon * (1 + 1e-9), counts


def test_without_a_least_number_nobody_of_a_level_hides_another():
    agreed = terms(release="messages", levels={"one": (1.0, 0.0)}, mechanism="laplace")
    fresh = TrainingAccountant("client", agreed.seen, False, agreed.plan(16).tiers)
    alone = TrainingAccountant("client", agreed.seen, False, fresh.tiers, {(1,): 2}).epsilon(1e-3)
    assert spending_of_rounds(fresh, (0,), 50, 2, 1e-3).epsilon == alone
    assert spending_of_rounds(fresh, (50,), 50, 2, 1e-3).epsilon < 0.7 * alone


def test_a_level_with_too_few_messages_is_not_released():
    agreed = terms()
    run = strategy(agreed, rounds=2, least={"low": 8})
    started(run, agreed, 14, 1)
    assert run.report().guarantee.rounds == 0
    assert run.refused == [(1, "7 messages of level low, fewer than 8")]


def test_the_entry_stands_before_a_client_is_asked(tmp_path):
    agreed, seen = terms(levels=PURE, mechanism="laplace"), []
    with Ledger(tmp_path / "l", make=True) as ledger:

        class Watching(FedAvg):
            def configure_train(self, *arguments, **more):
                seen.append(len(ledger.entries()))
                return super().configure_train(*arguments, **more)

        run = strategy(agreed, Watching(fraction_evaluate=0.0), rounds=2, ledger=ledger)
        started(run, agreed, 12, 2)
    assert seen == [1, 1]


def test_a_limit_without_room_says_how_many_rounds_fit_and_asks_nobody(tmp_path):
    agreed = terms(levels=PURE, mechanism="laplace")
    with Ledger(tmp_path / "l", make=True) as ledger:
        ledger.set_limit(20.0, 1e-4)
        asked = strategy(agreed, rounds=16, ledger=ledger, least={"low": 5, "high": 5})
        for _ in range(2):  # the second time, too: nothing is entered
            with pytest.raises(InvalidInput, match=r"what would fit: `rounds = (\d+)`") as refused:
                asked.configure_train(1, record(0.0), {}, InProcessGrid(app_of(agreed), nodes(12)))
        assert ledger.entries() == []
        fits = int(str(refused.value).partition("rounds = ")[2].partition("`")[0])
        run = strategy(agreed, rounds=fits, ledger=ledger, least={"low": 5, "high": 5})
        started(run, agreed, 12, 1)
        assert len(ledger.entries()) == 1


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"rounds": None}, "say how many `rounds`"),
        ({"random": simulation_random(1)}, "a simulation is not private"),
        ({"least": {"lwo": 3}}, "`least` names the level 'lwo'; the terms have high, low"),
        ({"least": {"low": -1}}, "least of level 'low'"),
        ({"ledger": None, "fixed_in_advance": "plan"}, "name one with `ledger`"),
    ],
)
def test_mistakes(tmp_path, more, told):
    Ledger(tmp_path / "l", make=True).close()
    with pytest.raises(InvalidInput, match=told):
        strategy(terms(), **({"rounds": 2, "ledger": tmp_path / "l"} | more))
