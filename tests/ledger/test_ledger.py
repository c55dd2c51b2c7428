"""What a ledger takes, refuses, adds up and claims."""

from __future__ import annotations

import math
import sqlite3

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.accounting import certify, compose, privacy_profile
from shuffledp.ledger import Ledger, NewEntry, Spending, Use
from shuffledp.ledger.ledger import shared_by_one
from shuffledp.releases import engine, run

VOTES = {"vote": ["yes", "no"] * 500, "budget": [0.5, 2.0] * 500, "hours": [10.0, 40.0] * 500}
YES = sdp.Frequency(["yes", "no"])


def ask(question=YES, **changed):
    given = {"value": "vote", "budgets": 1.0, "seen": "reports", "delta": 1e-4}
    return sdp.release(question, VOTES, **(given | changed))


def stated(epsilon: float, delta: float = 0.0) -> NewEntry:
    return NewEntry("mean of x", "00", "rr", Spending.stated([(1.0, epsilon)], delta, 100))


@pytest.fixture
def book(tmp_path):
    with Ledger(tmp_path / "people.ledger", make=True) as ledger:
        yield ledger


@pytest.mark.machine
def test_an_entry_says_what_it_must(book):
    found = ask(ledger=book, population="panel", fixed_in_advance="plan 7", title="Vote, wave 1")
    (entry,) = book.entries()
    assert (entry.number, entry.title, entry.question, entry.population, entry.plan) == (
        1, "Vote, wave 1", "frequency of vote", "panel", "plan 7",
    )  # fmt: skip
    assert entry.task == found.fingerprint
    assert entry.spending.epsilon == found.guarantee.epsilon.upper
    assert (entry.spending.delta, entry.spending.n) == (1e-4, 1000)
    # `count` is kept as the coarser curve that composes: never below, and at most 1 % above
    kept = entry.spending.worst.epsilon(1e-4).upper
    assert found.guarantee.epsilon.upper <= kept * (1.0 + 1e-9) <= found.guarantee.epsilon.upper * 1.01
    assert 0.0 < entry.mu < 1.0
    assert entry.outside == pytest.approx(1e-7)
    assert entry.date.endswith("+00:00")


def test_the_same_question_asked_again_is_spent_again(book):
    ask(ledger=book)
    once = book.total(1e-4).epsilon
    ask(ledger=book)
    first, second = book.entries()
    assert first.task == second.task
    assert book.total(1e-4).epsilon > 1.3 * once


def test_the_total_is_our_own_composition(book):
    """Per level, and for the worst of them."""
    for _ in range(3):
        ask(budgets="budget", ledger=book, fixed_in_advance="plan")
    setting = ask(budgets="budget").guarantee.setting
    total = book.total(1e-5)
    for level, epsilon0 in zip(total.levels, (0.5, 2.0), strict=True):
        exact = compose([(privacy_profile(setting, epsilon0=epsilon0), 3)]).epsilon(1e-5)
        assert level.epsilon0 == epsilon0
        assert exact.lower <= level.epsilon <= exact.upper * 1.005
    assert total.epsilon == pytest.approx(total.levels[-1].epsilon, rel=1e-3)
    assert total.fixed


def test_many_levels_keep_the_worst(book):
    budgets = np.linspace(0.1, 2.0, 1000)
    given = {"value": "vote", "budgets": "own", "seen": "reports", "delta": 1e-4, "ledger": book}
    found = sdp.release(YES, VOTES | {"own": budgets}, **given)
    (entry,) = book.entries()
    assert entry.spending.levels == ()
    assert entry.spending.levels_total == 1000
    kept = entry.spending.worst.epsilon(1e-4).upper
    assert found.guarantee.epsilon.upper <= kept <= found.guarantee.epsilon.upper * 1.05
    assert book.total(1e-9).epsilon < 2.0  # the curve is kept, not only the one point at delta


def test_approximate_local_budgets_are_entered(book):
    who = sdp.RowBudgets(1.0, delta0=1e-9)
    given = {"value": "hours", "budgets": who, "seen": "reports", "delta": 1e-4, "mechanism": "gaussian"}
    sdp.release(sdp.Mean(0, 100), VOTES, **given, ledger=book)
    (entry,) = book.entries()
    assert entry.spending.worst.mass_at_infinity.upper > 0.0
    assert math.isfinite(entry.mu)


def test_only_what_was_fixed_in_advance_may_be_added_up(book):
    ask(ledger=book)
    assert book.total().fixed  # one run was fixed before its own answers
    ask(ledger=book)
    assert not book.total().fixed


def test_one_plan_is_fixed_and_two_are_not(book):
    ask(ledger=book, fixed_in_advance="a")
    ask(ledger=book, fixed_in_advance="a")
    assert book.total().fixed
    ask(ledger=book, fixed_in_advance="b")
    assert not book.total().fixed


def test_a_limit_is_set_once_and_first(book):
    book.set_limit(1.0, 1e-5)
    with pytest.raises(sdp.InvalidInput, match="set once"):
        book.set_limit(2.0, 1e-5)
    assert (book.limit.epsilon, book.limit.delta) == (1.0, 1e-5)


def test_a_limit_after_an_entry_is_refused(book):
    ask(ledger=book)
    with pytest.raises(sdp.InvalidInput, match="before the first"):
        book.set_limit(1.0, 1e-5)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.0, 1e-6), (math.inf, 1e-6), (math.nan, 1e-6), ("1", 1e-6), (1.0, 0.0)]
)
def test_a_bad_limit_is_refused(book, epsilon, delta):
    with pytest.raises(sdp.InvalidInput):
        book.set_limit(epsilon, delta)
    assert book.limit is None


@pytest.mark.slow
def test_the_limit_refuses_before_a_record_is_read_and_says_what_fits(book, monkeypatch):
    book.set_limit(0.1, 1e-5)

    def never(*_: object, **__: object) -> None:
        pytest.fail("a record was read")

    monkeypatch.setattr(engine, "collect", never)
    with pytest.raises(sdp.InvalidInput, match="nothing was released; what would fit") as refused:
        ask(budgets="budget", ledger=book)
    message = str(refused.value)
    factor = float(message.partition("all budgets times ")[2].partition(";")[0])
    monkeypatch.undo()
    fewer = VOTES | {"budget": [0.5 * factor, 2.0 * factor] * 500}
    sdp.release(YES, fewer, value="vote", budgets="budget", seen="reports", delta=1e-4, ledger=book)
    assert len(book.entries()) == 1
    assert "fewer levels, with budgets above 0.5 lowered to 0.5" in message


@pytest.mark.slow
def test_another_mechanism_that_fits_is_named(book):
    book.set_limit(0.95, 1e-5)
    ages = VOTES | {"age": [str(k % 20) for k in range(1000)]}
    given = {"value": "age", "budgets": 4.0, "seen": "reports", "delta": 1e-4, "ledger": book}
    with pytest.raises(sdp.InvalidInput, match="nothing was released") as refused:
        sdp.release(sdp.Frequency([str(k) for k in range(20)]), ages, **given, mechanism="krr")
    assert "`mechanism = oue`" in str(refused.value)
    sdp.release(sdp.Frequency([str(k) for k in range(20)]), ages, **given, mechanism="oue")


def test_what_is_not_entered_is_not_returned(book, monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise sdp.InvalidInput("the disk is full")

    monkeypatch.setattr(Ledger, "enter", broken)
    with pytest.raises(sdp.InvalidInput, match="the disk is full"):
        ask(ledger=book)
    assert book.entries() == []


def test_a_bad_record_costs_nothing(book):
    with pytest.raises(sdp.InvalidInput):
        ask(sdp.Frequency(["yes", "maybe"]), ledger=book)
    assert book.entries() == []


def test_a_simulation_is_refused(book):
    with pytest.raises(sdp.InvalidInput, match="not private"):
        ask(ledger=book, random=sdp.simulation_random(1))
    assert book.entries() == []


def test_disjoint_populations_do_not_add_up(book):
    for name in ("north", "south", "all"):
        ask(ledger=book, population=name)
    together = book.total(1e-5)
    assert together.populations == ("all", "north", "south")
    book.state_disjoint(["north", "south"])
    apart = book.total(1e-5)
    assert len(apart.populations) == 2
    exact = compose([(privacy_profile(ask().guarantee.setting, epsilon0=1.0), 2)]).epsilon(1e-5)
    assert exact.lower <= apart.epsilon <= exact.upper * 1.005 < together.epsilon


def test_the_limit_counts_who_can_be_the_same_person(book):
    book.set_limit(0.3, 1e-5)
    book.state_disjoint(["north", "south"])
    for name in ("north", "south"):
        while book.refusal([stated(0.01)], Use(name)) is None:
            book.enter([stated(0.01)], Use(name))
    known = [entry.population for entry in book.entries()]
    assert known.count("south") > 2
    assert known.count("south") >= known.count("north") - 2
    assert book.refusal([stated(0.01)], Use("elsewhere")) is not None


def test_names_that_overlap_as_they_like():
    assert shared_by_one(["a", "b"], []) == [frozenset("ab")]
    assert set(shared_by_one("abc", [("a", "b"), ("b", "c"), ("a", "c")])) == {frozenset(x) for x in "abc"}
    found = shared_by_one("abcd", [("a", "b"), ("c", "d"), ("a", "x")])
    assert set(found) == {frozenset("ac"), frozenset("ad"), frozenset("bc"), frozenset("bd")}
    many = [str(k) for k in range(40)]
    assert shared_by_one(many, [("1", "2")]) == [frozenset(many)]


def test_chances_beyond_every_epsilon_are_limited_too(book):
    book.set_limit(5.0, 1e-5)
    assert book.refusal([stated(0.1, 1e-7)], Use()) is None
    assert "reveal a record" in str(book.refusal([stated(0.1, 2e-6)], Use()))


def test_the_shares_of_delta_never_add_up_to_more(book):
    book.set_limit(1.0, 1e-5)
    limit = book.limit
    assert sum(limit.share_of(k) for k in range(1, 100_000)) < 0.5 * limit.outside


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 201, 7])
def test_bad_names_are_refused(book, name):
    with pytest.raises(sdp.InvalidInput, match="`population` must"):
        ask(ledger=book, population=name)
    with pytest.raises(sdp.InvalidInput):
        book.state_disjoint([name, "b"])


def test_a_plan_needs_a_ledger():
    with pytest.raises(sdp.InvalidInput, match="name one with `ledger`"):
        ask(fixed_in_advance="plan")


def test_entries_and_limit_stay(book):
    book.set_limit(1.0, 1e-5)
    ask(ledger=book)
    with sqlite3.connect(book.path) as db:
        for statement in ("DELETE FROM entry", "UPDATE entry SET epsilon = 0", "DELETE FROM allowance",
                          "UPDATE allowance SET epsilon = 9"):  # fmt: skip
            with pytest.raises(sqlite3.IntegrityError, match="stay"):
                db.execute(statement)
    db.close()


def test_a_file_of_something_else_is_refused(tmp_path):
    text = tmp_path / "people.csv"
    text.write_text("vote\nyes\n" * 100, encoding="utf-8")
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE x (y)")
    other.commit()
    other.close()
    for path in (text, tmp_path / "other.db", tmp_path):
        with pytest.raises(sdp.InvalidInput, match="name another"):
            Ledger(path)
    with pytest.raises(sdp.InvalidInput, match="there is no ledger"):
        Ledger(tmp_path / "none")
    assert not (tmp_path / "none").exists()
    with pytest.raises(sdp.InvalidInput, match="name of a file"):
        Ledger(7)


def test_wrappers_and_paths_enter_too(tmp_path):
    path = tmp_path / "a.ledger"
    Ledger(path, make=True).close()
    sdp.estimate_mean([1.0, 2.0] * 500, 0, 3, 1.0, seen="reports", delta=1e-4, ledger=path)
    sdp.mean_of_table(VOTES, "hours", 0, 100, 1.0, seen="reports", delta=1e-4, ledger=str(path), population="b")
    with Ledger(path) as ledger:
        assert [entry.question for entry in ledger.entries()] == ["mean of record", "mean of hours"]


def test_a_ledger_at_rest_is_one_file(tmp_path):
    with Ledger(tmp_path / "a.ledger", make=True) as ledger:
        ask(ledger=ledger)
    assert [path.name for path in tmp_path.iterdir()] == ["a.ledger"]


def test_the_least_costly_certificate_of_a_guarantee_is_kept():
    setting = ask(budgets="budget", seen="levels").guarantee.setting
    found = Spending.of(certify(setting, 1e-4))
    assert [level.epsilon0 for level in found.levels] == [0.5, 2.0]
    kept = max(level.profile.epsilon(1e-4).upper for level in found.levels)
    assert found.epsilon <= kept * (1.0 + 1e-9) <= found.epsilon * 1.01
    assert run.Entering.into(None, "everybody", None, "") is None
