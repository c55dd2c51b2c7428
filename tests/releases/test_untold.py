"""No refusal tells what stands in a row, unless whoever holds the table asks for it."""

from __future__ import annotations

import pickle

import numpy as np
import polars as pl
import pytest

import shuffledp as sdp
from shuffledp.errors import BadEntry, InvalidInput
from shuffledp.randomizers import OneBit, RandomizedResponse
from shuffledp.tables import TableOptions

SECRET = "HIV"
NUMBER = 97.53125
ROWS = 40
TOLD = {"budgets": 1.0, "seen": "reports", "delta": 1e-3}
VOTE, AGE = sdp.Frequency(["yes", "no"]), sdp.Mean(0, 90)

BAD = {
    "category": (VOTE, {"value": "v"}, "v", SECRET),
    "candidate": (sdp.FrequentItems(max_length=3, alphabet="lower"), {"value": "v"}, "v", SECRET),
    "long item": (sdp.FrequentItems(max_length=3, alphabet="utf-8"), {"value": "v"}, "v", f"{SECRET} yes"),
    "word for a number": (AGE, {"value": "x"}, "x", SECRET),
    "marks": (AGE, {"value": "x"}, "x", "97,531"),
    "number": (AGE, {"value": "x"}, "x", NUMBER),
    "bin": (sdp.Histogram(0, 90, 3), {"value": "x"}, "x", NUMBER),
    "quantile": (sdp.Quantiles(0, 90, bins=4), {"value": "x"}, "x", NUMBER),
    "square": (sdp.Variance(0, 90), {"value": "x"}, "x", NUMBER),
    "vector": (sdp.VectorMean(2, 90.0), {"value": ["x", "zero"]}, "x", NUMBER),
    "budget": (VOTE, {"value": "v", "budgets": "b"}, "b", -NUMBER),
    "word for a budget": (VOTE, {"value": "v", "budgets": "b"}, "b", SECRET),
    "consent": (VOTE, {"value": "v", "budgets": "c", "consent": {"low": 1.0}}, "c", SECRET),
    "group": (VOTE, {"value": "v", "by": "side", "groups": ["a"]}, "side", SECRET),
}


def refusal(case: str, form: str, **options) -> InvalidInput:
    question, asked, column, bad = BAD[case]
    columns = {"v": "yes", "x": 1.0, "b": 1.0, "c": "low", "side": "a", "zero": 0.0}
    data = {name: [entry] * ROWS for name, entry in columns.items()}
    data[column][6] = bad
    if form == "frame":
        data = pl.DataFrame(data, strict=False) if not isinstance(bad, str) else pl.DataFrame(
            {name: [str(entry) for entry in entries] if name == column else entries for name, entries in data.items()}
        )  # fmt: skip
    ask = TOLD | asked | options
    with pytest.raises(InvalidInput) as raised:
        (sdp.release_by if "by" in ask else sdp.release)(question, data, **ask)
    return raised.value


@pytest.mark.costly("candidate-frame", "long item-frame", "quantile-frame")
@pytest.mark.parametrize("form", ["frame", "lists"])
@pytest.mark.parametrize("case", BAD)
def test_no_refusal_tells_what_stands_in_a_row(case, form):
    """ "row 301 is 'HIV'": messages stand in logs, and before people who may not see the table."""
    bad = str(BAD[case][3]).lstrip("-")
    told = refusal(case, form)
    assert "row 7" in str(told)
    assert str(told).isprintable()
    for word in (bad, bad[:4]):
        assert word not in str(told)
    assert told.__context__ is None or bad not in str(told.__context__) or told.__suppress_context__
    shown = str(refusal(case, form, table_options=TableOptions(show_values=True)))
    assert "row 7" in shown
    assert bad[:3] in shown


def test_the_way_out_depends_on_marks_and_not_on_digits():
    first = str(refusal("marks", "frame"))
    BAD["other marks"] = (AGE, {"value": "x"}, "x", "12,345")
    assert str(refusal("other marks", "frame")) == first
    del BAD["other marks"]


def test_primitives_say_the_same():
    for randomizer, record in ((OneBit(0, 90), NUMBER), (RandomizedResponse(90), 97)):
        with pytest.raises(BadEntry, match="row 2") as raised:
            randomizer.randomize(np.array([1, record]), 1.0, sdp.secure_random())
        assert "97" not in str(raised.value)
        assert "97" in str(raised.value.with_value())


def test_a_refusal_travels():
    refused = refusal("category", "lists")
    assert str(pickle.loads(pickle.dumps(refused))) == str(refused)
