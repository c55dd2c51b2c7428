"""What a message shows of an entry: never much of it, and nothing that a terminal would obey."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.audit import audit_randomizer
from shuffledp.budgets import Budgets
from shuffledp.errors import LONGEST_ENTRY, InvalidInput, named, printable, shown
from shuffledp.randomizers import OneBit, RandomizedResponse
from shuffledp.randomizers.wire import decode, encode

LONG = "y\u202e\x1b" * 100_000


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("yes", "'yes'"),
        (b"yes", "b'yes'"),
        (np.float64(1.5), "1.5"),
        (np.int64(3), "3"),
        (np.str_("yes"), "'yes'"),
        (None, "None"),
        ([1, 2], "[1, 2]"),
        (np.array([1, 2]), "array([1, 2])"),
        (np.array(7), "7"),
    ],
)
def test_an_entry_is_shown_as_python_writes_it(value, text):
    assert shown(value) == text


@pytest.mark.parametrize("value", [LONG, LONG.encode(), [LONG] * 9, list(range(10**6)), np.zeros((9, 9)), 10**999])
def test_a_long_entry_is_cut(value):
    assert len(shown(value)) == LONGEST_ENTRY
    assert shown(value).endswith("...")
    assert shown(value).isprintable()


@given(st.text())
def test_names_keep_what_can_be_seen(text):
    assert printable(text).replace("\u200c", "").replace("\u200d", "").isprintable()
    assert [c for c in printable(text) if not c.isspace()] == [
        c for c in text if (c.isprintable() or c in "\u200c\u200d") and not c.isspace()
    ]
    assert printable(text, "\n").count("\n") == text.count("\n")
    assert len(named(text)) <= LONGEST_ENTRY


def careless(records):
    raise ValueError(LONG)


@pytest.mark.parametrize(
    "call",
    [
        lambda: Budgets.of([1.0, LONG]),
        lambda: RandomizedResponse(3).randomize([LONG], 1.0, None),
        lambda: OneBit(0, 1).randomize([LONG], 1.0, None),
        lambda: decode(encode(np.array([1]), RandomizedResponse(3)), RandomizedResponse(3), task=LONG),
        lambda: audit_randomizer(careless, 1.0),
    ],
)
def test_messages_are_short_whatever_the_entry(call):
    with pytest.raises(InvalidInput) as raised:
        call()
    assert len(str(raised.value)) < 400
    assert str(raised.value).isprintable()
