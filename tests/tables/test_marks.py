"""Marks in numbers: what is ambiguous is refused with both readings, and a hint never leads to another number."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shuffledp as sdp
from shuffledp.errors import InvalidInput
from shuffledp.records.columns import as_floats
from shuffledp.tables import Table, TableOptions, read_columns
from shuffledp.tables.options import THOUSANDS, plain_numbers, way_out

BOTH = (
    r"1,234 is 1\.234 with `decimal = ','`, and 1234 with `thousands = ','`; say which it is",
    r"1\.234 is 1\.234 with `decimal = '\.'`, and 1234 with `thousands = '\.'`; say which it is",
)


def read(entries: list[str], **options):
    return Table.of(pl.DataFrame({"x": entries}), TableOptions(**options)).batches(numbers=["x"])


def values(entries: list[str], **options) -> list[float]:
    (batch,) = read(entries, **options)
    return batch.numbers["x"].tolist()


def test_a_comma_before_three_digits_is_refused_with_both_readings(tmp_path):
    """The hint said --decimal, which gave 550 where the truth is 14,727."""
    path = tmp_path / "t.csv"
    path.write_text('x\n"1,000"\n"28,454"\n')
    with pytest.raises(InvalidInput, match=r"^x in row 1 .* not a number; a comma may be .*" + BOTH[0] + r" \(2 such"):
        read_columns(path, numbers=["x"])
    assert read_columns(path, numbers=["x"], options=TableOptions(thousands=",")).numbers["x"].tolist() == [1000, 28454]
    assert read_columns(path, numbers=["x"], options=TableOptions(decimal=",", separator=";")).numbers[
        "x"
    ].tolist() == [1.0, 28.454]


@pytest.mark.parametrize(
    ("thousands", "decimal", "entries"),
    [
        (",", ".", ["1,000", "12,345,678.5", "7", "-1,000.", "999"]),
        (".", ",", ["1.000", "12.345.678,5", "7", "-1.000,", "999"]),
        ("space", ",", ["1\u00a0000", "12 345\u202f678,5", "7", "-1\u2009000", "999"]),
        ("apostrophe", ".", ["1'000", "12\u2019345'678.5", "7", "-1'000", "999"]),
        ("_", ".", ["1_000", "12_345_678.5", "7", "-1_000", "999"]),
    ],
)
def test_marks_between_thousands_are_said(thousands, decimal, entries):
    assert values(entries, thousands=thousands, decimal=decimal) == [1000, 12345678.5, 7, -1000, 999]


@pytest.mark.parametrize("entry", ["1,00", "12,34,567", "1,0000", ",100", "1,000,", "1000,000", "1.5,000", "1,,000"])
def test_marks_in_other_places_are_refused(entry):
    with pytest.raises(InvalidInput, match=r"^x in row 2 is not a number"):
        list(read(["1,000", entry], thousands=","))


def test_numbers_that_are_none_of_both():
    assert way_out("x", ".", None) is way_out("12,34,567", ".", None) is None
    assert way_out("38,5", ".", None) == "if the comma is a decimal mark, say so with `decimal = ','`"
    assert (
        way_out("0.5", ",", None) == "if the point is a decimal mark, say so with `decimal = '.'`"
    )  # was: thousands None
    assert re.search(BOTH[1], way_out("1.000", ",", None))
    assert way_out("1.000,5", ".", None).endswith("`decimal = ','` and `thousands = '.'`")


@given(st.integers(0, 10**9), st.sampled_from(list(THOUSANDS)), st.booleans(), st.sampled_from([".", ","]))
def test_whoever_follows_a_hint_reads_what_was_written(whole, mark, fraction, decimal):
    """An entry with one reading reads as that with the options of its hint; with two, both are told."""
    point = "," if mark == "." else "." if mark == "," else decimal
    written = f"{whole:,}".replace(",", mark) + (f"{point}25" if fraction else "")
    hint = way_out(written, ".", None)
    if mark not in written or hint is None or "may be" in hint:
        return
    said = dict(re.findall(r"`(decimal|thousands) = '([^`]+)'`", hint))
    assert values([written], **said) == [whole + 0.25 * fraction]


def test_columns_without_marks_are_as_they_are():
    column = pl.Series(["1", "2.5", "x", None])
    assert plain_numbers(column, ".", ",").to_list() == column.to_list()


@pytest.mark.parametrize("mark", ["", ";", "..", "1", "."])
def test_marks_that_are_none(mark):
    with pytest.raises(InvalidInput, match=r"^`thousands` must be , "):
        TableOptions(thousands=mark)


@pytest.mark.parametrize("dtype", [object, str])
def test_arrays_of_text_are_read_by_the_same_rule(dtype):
    """Python reads 1_000 as 1000, and digits of every script."""
    assert as_floats(np.array(["1.5", " 2 ", "-3e2"], dtype=dtype), "x").tolist() == [1.5, 2.0, -300.0]
    assert np.isnan(as_floats(np.array(["", "nan"], dtype=dtype), "x")).all()
    for entry in ("1_000", "\uff11", "0x10"):
        with pytest.raises(InvalidInput, match=r"^x in row 2 is not a number"):
            as_floats(np.array(["1", entry], dtype=dtype), "x")
    with pytest.raises(InvalidInput, match=BOTH[0]):
        as_floats(np.array(["1,000"], dtype=dtype), "x")


def test_a_release_reads_thousands(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("income;vote\n" + "12.000;yes\n" * 500 + "28.000;no\n" * 500)
    options = TableOptions(thousands=".", decimal=",")
    ask = {"value": "income", "budgets": 700.0, "seen": "reports", "delta": 1e-6, "any_delta": True}
    found = sdp.release(sdp.Mean(0, 40_000), path, table_options=options, **ask)
    assert abs(found.estimate - 20_000) < 3_000
