"""Checks of arguments: what is taken, and that everything else is one line."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.errors import (
    InvalidInput,
    check_delta,
    check_epsilon,
    choice,
    cut_at_commas,
    local_budgets,
    number,
    one_budget,
    real_range,
    whole_number,
)

HUGE = 10**400


@pytest.mark.parametrize("check", [check_delta, check_epsilon, one_budget, lambda value: number(value, "x", 0.0, 1.0)])
@pytest.mark.parametrize("value", [HUGE, -HUGE, Fraction(HUGE), math.nan, "one", None])
def test_what_is_no_double_is_one_line(check, value):
    """Numbers beyond a double left as OverflowError."""
    with pytest.raises(InvalidInput) as refused:
        check(value)
    assert "\n" not in str(refused.value)


def test_a_range_and_a_whole_number_beyond_all_digits():
    with pytest.raises(InvalidInput, match="the range needs two numbers"):
        real_range(-HUGE, 10)
    with pytest.raises(InvalidInput, match="got a whole number of more than 4,300 digits"):
        whole_number(10**5000, "rounds", 1, 12)
    with pytest.raises(InvalidInput, match="the range needs"):
        sdp.Mean(-HUGE, 10)


def test_a_whole_number_of_numpy_becomes_one_of_python():
    found = whole_number(np.int64(7), "rounds", 1)
    assert type(found) is int
    for bad in (True, np.True_, 7.0, np.float64(7), "7", None):
        with pytest.raises(InvalidInput, match=r"^rounds must be a whole number of at least 1; got "):
            whole_number(bad, "rounds", 1)
    with pytest.raises(InvalidInput) as refused:
        whole_number(0, "`group_size`", 1, 9)
    assert refused.value.parameter == "group_size"


def test_one_of_some_words():
    assert choice("b", "seen", ("a", "b")) == "b"
    with pytest.raises(InvalidInput, match=r"^seen must be one of a, b; got 'c'$"):
        choice("c", "seen", ("a", "b"))


class AnyWord(str):
    """A text that equals every other."""

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return True


def test_a_word_is_what_it_spells():
    with pytest.raises(InvalidInput, match=r"^seen must be one of a, b; got 'c'$"):
        choice(AnyWord("c"), "seen", ("a", "b"))
    assert type(choice(AnyWord("b"), "seen", ("a", "b"))) is str


NUMBERS = {
    "number": lambda value: number(value, "x", 0.0, 2.0),
    "delta": check_delta,
    "epsilon": check_epsilon,
    "budget": one_budget,
    "budgets": lambda value: local_budgets([value, 1.0]),
    "range": lambda value: real_range(value, 2.0),
}


@pytest.mark.parametrize("check", NUMBERS)
@pytest.mark.parametrize("value", [True, np.True_, " 0.5 ", "0.5", b"0.5", np.str_("0.5")])
def test_text_and_truth_are_no_numbers(check, value):
    """As whole numbers refused them before; `number(True)` was 1."""
    with pytest.raises(InvalidInput):
        NUMBERS[check](value)
    NUMBERS[check](np.float32(0.5))
    NUMBERS[check](Fraction(1, 2))


def test_words_are_cut_at_commas():
    assert cut_at_commas('a, "b, c" ,d') == ("a", "b, c", "d")
    assert cut_at_commas("a\nb,c") == cut_at_commas("a" * 200_000 + ",b") == ()
