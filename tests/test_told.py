"""Results say themselves in a line: the headline and what matters, and in a notebook a table besides."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import shuffledp as sdp

LONGEST = 400
BUDGETS = sdp.Budgets([1.0, 4.0], [900, 100])
SETTING = sdp.Setting(BUDGETS, sdp.RandomizedResponse(2), seen="reports", neighboring="replace-one")
ASKED: dict[str, Any] = {"budgets": 1.0, "seen": "reports", "delta": 1e-6}
PEOPLE = pl.DataFrame({"vote": ["yes", "no"] * 300, "side": ["<b>", "south"] * 300})
VOTE = sdp.Frequency(["yes", "no"])


def by_side() -> sdp.GroupedRelease:
    groups = ("<b>", "south")
    return sdp.release_by(VOTE, PEOPLE, by="side", groups=groups, value="vote", **ASKED)


RESULTS = {
    "guarantee": lambda: sdp.certify(SETTING, delta=1e-6),
    "plan": lambda: sdp.plan(BUDGETS, sdp.Mean(0, 1), target_epsilon=0.5, delta=1e-6, mechanisms=["one-bit"]),
    "profile": lambda: sdp.privacy_profile(SETTING, 4.0),
    "calibration": lambda: sdp.calibrate_epsilon0(epsilon=0.5, n=1000, delta=1e-6),
    "several": lambda: sdp.release_together([sdp.Ask(VOTE, "vote")], PEOPLE, **ASKED),
    "by group": by_side,
    "difference": lambda: sdp.difference(
        sdp.release(VOTE, PEOPLE, value="vote", **ASKED), sdp.release(VOTE, PEOPLE, value="vote", **ASKED), delta=2e-6
    ),
    "dummies": lambda: sdp.calibrate_dummies({2: 1, 4: 1}, [sdp.RandomizedResponse(5)] * 3, 1e-6, law="ball"),
    "way of a plan": lambda: RESULTS["plan"]().alternatives[0],
    "audit": lambda: sdp.audit_randomizer(sdp.RandomizedResponse(2), 1.0, trials=1000),
}


@pytest.mark.costly("plan", "several")
@pytest.mark.parametrize("name", RESULTS)
def test_a_result_says_itself_in_a_line(name):
    found = RESULTS[name]()
    said = repr(found)
    assert len(said) < LONGEST
    assert "\n" not in said
    page = found._repr_html_()
    assert page.startswith("<p>")
    assert "<b>" not in page


def test_the_numbers_of_a_guarantee_are_not_rounded():
    found = sdp.certify(SETTING, delta=1e-6)
    assert f"at most {found.epsilon.upper!r} and at least {found.epsilon.lower!r} at delta = 1e-06" in repr(found)
    assert f"<td>{found.worst.epsilon.upper!r}</td>" in found._repr_html_()


def test_no_number_of_a_release_is_rounded_to_the_wrong_side():
    for budget in (0.9, 1.0, 1.1, 1.2):  # one of these is rounded down to four digits
        release = sdp.release(VOTE, PEOPLE, value="vote", **ASKED | {"budgets": budget})
        assert f"at most {release.guarantee.epsilon.upper!r} at delta" in repr(release)


MANY = [f"category {number}" for number in range(500)]
CHOSEN: dict[str, list[object]] = {"vote": [MANY[number % 500] for number in range(2000)], "x": [0.25] * 2000}


def of_many(question: Any, column: str = "vote") -> Any:
    return sdp.release(question, CHOSEN, value=column, budgets=4.0, seen="reports", delta=1e-6)


LONG = {
    "question": lambda: sdp.Frequency(MANY),
    "items": lambda: sdp.FrequentItems(MANY),
    "quantiles": lambda: sdp.Quantiles(0, 1, tuple(number / 1000 for number in range(1, 1000))),
    "ask": lambda: sdp.Ask(sdp.Frequency(MANY), "vote"),
    "people": lambda: sdp.People(CHOSEN, budgets=1.0, person="x"),
    "analysis": lambda: of_many(sdp.Frequency(MANY)).analysis,
    "counts": lambda: of_many(sdp.Frequency(MANY)).counts(),
    "tried": lambda: of_many(sdp.FrequentItems(MANY)).tried,
    "distribution": lambda: of_many(sdp.Quantiles(0, 1, (0.5,), bins=256), "x").distribution,
    "ball": lambda: sdp.calibrate_dummies({2: 1}, [sdp.RandomizedResponse(5)] * 12, 1e-6, law="ball").dummies,
    "filter": lambda: sdp.PrivacyFilter.within(epsilon=1.0, delta=1e-6),
    "bounds": lambda: sdp.bounds,
}


@pytest.mark.costly
@pytest.mark.parametrize("name", LONG)
def test_what_is_long_is_cut(name):
    told = repr(LONG[name]())
    assert len(told) < 2 * LONGEST
    assert "\n" not in told
    assert " object at 0x" not in told


def test_no_item_is_said_in_words():
    rare = {"word": [f"{number:04}" for number in range(1000)]}
    question = sdp.FrequentItems(max_length=4, alphabet="digits", false_positives=1e-6)
    release = sdp.release(question, rare, value="word", budgets=0.1, seen="reports", delta=1e-6)
    assert repr(release).startswith("<frequent-items: No item is frequent enough to be named; 95% intervals; ")


def test_people_show_no_record():
    assert "category" not in repr(sdp.People(CHOSEN, budgets=1.0))


@pytest.mark.costly
def test_many_levels_are_some_rows_in_a_notebook():
    budgets = sdp.Budgets([0.1 * i for i in range(1, 31)], [100] * 30)
    setting = sdp.Setting(budgets, sdp.RandomizedResponse(2), seen="reports", neighboring="replace-one")
    page = sdp.certify(setting, delta=1e-6)._repr_html_()
    assert page.count("<tr>") == 13
    assert "18 more rows" in page


def test_one_user_is_no_users():
    alone = sdp.certify(sdp.Setting(sdp.Budgets([1.0], [1]), "any", "reports", "replace-one"), delta=1e-6)
    assert ": 1 user, randomizer" in repr(alone)
    assert ": 1 user, randomizer" in alone._repr_html_()
    assert "1 users" not in repr(sdp.calibrate_epsilon0(epsilon=0.5, n=1, delta=1e-6))
