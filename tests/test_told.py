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
