"""Numbers as people read them never move to the wrong side."""

from __future__ import annotations

import json
import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shuffledp as sdp
from shuffledp.numerics.floats import Interval
from shuffledp.questions.question import AnswerLine
from shuffledp.releases.wrappers import estimate_frequency
from shuffledp.report.answer import interval_words, notes, tells_nothing
from shuffledp.report.to_json import FORMAT, dumps
from shuffledp.report.wording import (
    covers,
    distance,
    down,
    interval_with_error,
    near,
    odds_factor,
    plus_minus,
    points,
    probability,
    promise,
    share,
    situation,
    up,
    with_error,
)
from shuffledp.setting import LevelGuarantee

positive = st.floats(min_value=1e-300, max_value=1e300, allow_nan=False)


@given(positive)
def test_upper_ends_are_never_shown_too_small_and_lower_ends_never_too_large(value):
    # A double nearest to a short decimal number is shown as that number: 0.1, not 0.1001.
    ulp = Decimal(math.ulp(value))
    assert Decimal(up(value)) >= Decimal(value) - ulp
    assert Decimal(down(value)) <= Decimal(value) + ulp
    assert Decimal(down(value)) <= Decimal(up(value)) <= Decimal(value) * Decimal("1.0011") + ulp


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.123412, "0.1235"),
        (0.1, "0.1"),
        (2.0, "2"),
        (0.0, "0"),
        (math.inf, "∞"),
        (9.99999, "10"),
        (1.23451e-7, "1.235e-7"),
        (123456.7, "123500"),
        (1e-4, "0.0001"),
    ],
)
def test_up(value, shown):
    assert up(value) == shown


def test_down_and_near():
    assert down(0.123486) == "0.1234"
    assert down(0.0) == "0"
    assert near(0.123486) == "0.1235"
    assert near(-3.14159) == "-3.142"
    assert down(9.99999) == "9.999"


def setting(**situation) -> sdp.Setting:
    return sdp.Setting(sdp.Budgets([2.0], [1000]), "any", seen="reports", neighboring="replace-one", **situation)


LEVEL = LevelGuarantee(2.0, 0.0, 1000, Interval(1.8, 1.88))


def test_the_promise_says_what_the_theorem_says():
    # "odds move by at most e^epsilon except with probability delta" is not what (epsilon, delta) means
    said = promise(LEVEL, 0.1, setting())
    assert "about one user at most e^1.88" in said
    assert "times as likely as if that user's record were another" in said
    assert said.endswith("plus at most 0.1.")
    assert "except with probability" not in said
    assert "This holds" not in said


def test_the_promise_to_groups_is_about_groups():
    said = promise(LEVEL, 0.1, setting(group_size=3))
    assert "about a group of 3 people at most e^1.88" in said
    assert "as if the records of that group were others" in said
    assert "one user" not in said


@pytest.mark.parametrize(
    ("situation_", "words", "short"),
    [
        ({}, [], "1,000 users, randomizer any, 1 round"),
        (
            {"rounds": 12},
            ["over all 12 rounds together"],
            "1,000 users, randomizer any, 12 rounds",
        ),
        ({"linked": True}, [], "1,000 users, randomizer any, 1 round"),
        (
            {"rounds": 12, "linked": True},
            ["over all 12 rounds together", "even if a user's reports can be linked across the rounds"],
            "1,000 users, randomizer any, 12 rounds, linked",
        ),
        (
            {"colluding": 1},
            ["even if 1 other user colludes with the attacker"],
            "1,000 users, randomizer any, 1 round, 1 colluding",
        ),
        (
            {"colluding": 20, "missing": 0.07},
            [
                "even if 20 other users collude with the attacker",
                "even if 7% of the users stay away or send junk",
            ],
            "1,000 users, randomizer any, 1 round, 20 colluding, 7% missing",
        ),
        (
            {"reports_per_user": 4, "group_size": 2},
            ["for all 4 reports that a user sends in a round"],
            "1,000 users, randomizer any, 1 round, 4 reports per user, groups of 2",
        ),
    ],
)
def test_what_a_promise_covers(situation_, words, short):
    asked = setting(**situation_)
    assert covers(asked) == words
    assert situation(asked) == short
    assert all(word in promise(LEVEL, 0.1, asked) for word in words)


def test_nothing_is_promised_without_a_finite_epsilon():
    nothing = LevelGuarantee(2.0, 0.1, 1000, Interval(1.0, math.inf))
    assert promise(nothing, 0.01, setting(rounds=3)) == "Nothing can be promised to this level at delta = 0.01."


def test_odds_factor_is_an_upper_end():
    assert odds_factor(0.0) in ("1", "1.001")
    assert float(odds_factor(0.5)) >= math.exp(0.5)
    assert odds_factor(math.inf) == "∞"
    assert odds_factor(701.0) == "∞"


def test_estimates_follow_their_error():
    assert with_error(39.24871, 1.3953) == "39.2"
    assert with_error(39.24871, 0.0123) == "39.249"
    assert with_error(123456.0, 2345.0) == "123,500"
    assert with_error(3.0, math.inf) == "3"
    # 0 to 99 was printed as 0 to 0, and 18 to 70 as 20 to 70
    assert interval_with_error(0.0, 99.0, 3.1e5) == "0 to 99"
    assert interval_with_error(18.0, 70.0, 2400.0) == "18 to 70"
    assert interval_with_error(18.04, 39.96, 5.6) == "18.0 to 40.0"
    assert probability(1e-6) == "1e-6"
    assert probability(0.05) == "0.05"


def test_json_is_exact_and_strict():
    values = {
        "a": 0.1 + 0.2,
        "b": math.inf,
        "c": np.float64(1.5),
        "d": np.array([1, 2]),
        "e": (True, None),
        "f": np.bool_(True),
    }
    text = dumps(values)
    assert json.loads(text) == {
        "format": FORMAT,
        "a": 0.1 + 0.2,
        "b": "inf",
        "c": 1.5,
        "d": [1, 2],
        "e": [True, None],
        "f": True,
    }
    with pytest.raises(ValueError, match="not JSON compliant"):
        dumps({"epsilon": math.nan})


def test_a_person_alone_in_a_level_is_told_so():
    levels = np.array([1.0] * 50 + [2.0])
    release = estimate_frequency(["yes"] * 51, ["yes", "no"], levels, seen="levels", delta=1e-6)
    (said,) = [note for note in notes(release) if "alone" in note]
    assert said.startswith("One person is alone in a budget level (epsilon0 = 2): with levels seen nobody hides them")
    hidden = estimate_frequency(["yes"] * 51, ["yes", "no"], levels, seen="reports", delta=1e-6)
    assert not [note for note in notes(hidden) if "alone" in note]


# ------------------------------------------------------------------ units


@pytest.mark.parametrize("value", [-0.0, -1e-9, -0.00004, 0.0, 0.00004])
def test_zero_has_no_sign(value):
    assert share(value) == "0.00%"
    assert with_error(value, 1.0) == "0.0"
    assert with_error(1000.0 * value, 1000.0) == "0"


def test_a_negative_number_keeps_its_sign():
    assert (share(-0.0001), with_error(-0.06, 1.0)) == ("-0.01%", "-0.1")


def test_differences_of_shares_are_points_and_of_numbers_are_in_their_unit():
    assert points(0.00341) == "0.34 points"
    assert distance(0.5, shares=True) == "50 points"
    assert distance(0.5, shares=False) == "0.5"


@pytest.mark.parametrize(("value", "shares"), [(0.5, True), (49.0, False)])
def test_an_interval_as_wide_as_the_range_says_nothing(value, shares):
    span = 1.0 if shares else 98.0
    assert plus_minus(np.nextafter(value, 0.0), span, shares=shares).startswith("± ")
    assert plus_minus(value, span, shares=shares) == "says nothing yet"
    assert plus_minus(math.inf, span, shares=shares) == "says nothing yet"


@pytest.mark.parametrize(
    ("value", "low", "high", "nothing"), [(52.0, 8.0, 90.0, False), (60.0, 8.0, 90.0, True), (30.0, 0.0, 76.0, True)]
)
def test_an_interval_that_reaches_over_half_of_the_range_says_nothing(value, low, high, nothing):
    """8 to 90 of 0 to 90 was told as an answer."""
    assert tells_nothing(AnswerLine("", value, 20.0, low, high), (0.0, 90.0)) is nothing
    scaled = AnswerLine("", value / 90.0, 0.2, low / 90.0, high / 90.0)
    assert (interval_words(scaled) == "says nothing yet") is nothing


def test_one_person_whose_mean_says_nothing():
    released = sdp.estimate_mean([40.0], 0, 100, 1.0, seen="reports", delta=1e-6)
    assert any("says nothing yet" in note for note in notes(released))
    assert "1 record, taken as people" in repr(released) or "1 row, taken as people" in repr(released)
