"""Frames of pandas, read without pyarrow, which a plain install has not.

`make test-spark` has pandas, and runs these.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.errors import InvalidInput
from shuffledp.tables import Table, canonical_texts

pd = pytest.importorskip("pandas", reason="needs pandas: make test-spark has it")


@pytest.fixture(autouse=True)
def _without_pyarrow(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)


def words(column: object) -> list[str | None]:
    (batch,) = Table.of(pd.DataFrame({"x": column, "other": [{1}, [2]]})).batches(texts=["x"], gaps=["x"])
    return canonical_texts(batch.texts["x"]).to_list()


def numbers(column: object) -> list[str]:
    (batch,) = Table.of(pd.DataFrame({"x": column, "other": [{1}, [2]]})).batches(numbers=["x"], gaps=["x"])
    return [str(value) for value in batch.numbers["x"]]


COLUMNS = {
    "text": (["yes", None], ["yes", None]),
    "text of pandas": (lambda: pd.array(["yes", None], dtype="string"), ["yes", None]),
    "mixed": (["a", 1], ["a", "1"]),
    "mixed floats": ([True, 2.0], ["true", "2"]),
    "categories": (lambda: pd.Categorical(["b", None]), ["b", None]),
    "bins": (lambda: pd.cut([1, 15], [0, 10, 20]), ["(0, 10]", "(10, 20]"]),
    "periods": (lambda: pd.PeriodIndex(["2013-01", "2013-02"], freq="M"), ["2013-01", "2013-02"]),
    "days": (lambda: pd.to_datetime(["2013-01-01", None]), ["2013-01-01", None]),
    "instants": (
        lambda: pd.to_datetime(["2013-01-01 00:00", "2013-07-01 10:30"]).tz_localize("America/New_York"),
        ["2013-01-01 05:00:00Z", "2013-07-01 14:30:00Z"],
    ),
    "whole with gaps": (lambda: pd.array([5, None], dtype="Int64"), ["5", None]),
    "floats with gaps": ([1.0, float("nan")], ["1", None]),
    "short floats with gaps": (lambda: pd.array([1.5, float("nan")], dtype="float32"), ["1.5", None]),
    "truth": ([True, False], ["true", "false"]),
    "large": ([2**62, 5], ["4611686018427387904", "5"]),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_words(kind):
    column, expected = COLUMNS[kind]
    assert words(column() if callable(column) else column) == expected


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ([1, 2], ["1.0", "2.0"]),
        ([1.5, None], ["1.5", "nan"]),
        ([True, False], ["1.0", "0.0"]),
        (["1.5", " 2"], ["1.5", "2.0"]),
        ([1.5, "2"], ["1.5", "2.0"]),
        (lambda: pd.array([5, None], dtype="Int64"), ["5.0", "nan"]),
        (lambda: pd.Categorical([2.5, 1.0]), ["2.5", "1.0"]),
    ],
)
def test_numbers(column, expected):
    assert numbers(column() if callable(column) else column) == expected


def test_containers_and_spans_are_refused():
    with pytest.raises(InvalidInput, match=r"^column 'x' holds a list, not one word a row; name another one$"):
        words([[1], [2]])
    for entries, kind in (([[], [2]], "list"), ([np.ones(2), np.ones(3)], "ndarray"), ([b"yes", b"no"], "bytes")):
        with pytest.raises(InvalidInput, match=rf"^column 'x' holds a {kind}, not one word a row; name another one$"):
            words(entries)
    with pytest.raises(InvalidInput, match=r"holds spans of time"):
        words(pd.to_timedelta([1, 2], unit="s"))


def test_one_column_of_pandas_is_no_table():
    """The refusal asked for pyarrow, which would not have helped."""
    with pytest.raises(InvalidInput, match=r"^a table is a file, a pandas dataframe, or .*; got Series$"):
        Table.of(pd.Series([1.0], name="x"))


def test_gaps_in_a_column_of_numbers_are_missing_records():
    """`missing_as` was not obeyed: "the record in row 1 is none of the categories", for numbers with gaps alone."""
    frame = pd.DataFrame({"d": [float("nan"), 0.0, 1.0, 2.0] * 25, "vote": ["yes", "no"] * 50})
    asked = sdp.Frequency(["0", "1", "2", "na"])
    both = {"missing_as": "na", "budgets": 700.0, "delta": 1e-6, "any_delta": True}  # at 700 nats nothing is changed
    assert sdp.release(asked, frame, value="d", **both).estimate.tolist() == pytest.approx([0.25] * 4)
    together = sdp.release_together(
        [sdp.Ask(asked, "d", missing_as="na")], frame, budgets=700.0, delta=1e-6, any_delta=True
    )
    assert together.releases[0].estimate.tolist() == pytest.approx([0.25] * 4)
    table = sdp.Crosstab(["0", "1", "2"], ["yes", "no"])
    crossed = sdp.release(table, frame, value=["d", "vote"], **{**both, "missing_as": ("0", "yes")})
    assert crossed.table.ravel().tolist() == pytest.approx([0.25, 0.25, 0.25, 0.0, 0.0, 0.25], abs=1e-9)
    with pytest.raises(InvalidInput, match=r"^d in row 1 is missing; a person's group is public: "):
        sdp.release_by(
            sdp.Frequency(["yes", "no"]), frame, value="vote", by="d", groups=[0, 1, 2], budgets=1.0, delta=1e-6
        )


def test_a_column_named_by_a_number_and_a_table_with_text():
    """An ImportError of pyarrow stood here, and a TypeError where a column's name is 0."""
    frame = pd.DataFrame({0: ["yes", "no"] * 50, "strange": [1, "a"] * 50})
    for name in (0, "0"):
        found = sdp.release(sdp.Frequency(["yes", "no"]), frame, value=name, budgets=1.0, delta=1e-6)
        assert found.n == 100
    with pytest.raises(InvalidInput, match=r"^no column '1' in the table; its columns are 0, strange$"):
        sdp.release(sdp.Frequency(["yes", "no"]), frame, value=1, budgets=1.0, delta=1e-6)


def test_answers_come_as_frames_of_pandas():
    found = sdp.estimate_frequency(["a", "b"] * 50, ["a", "b"], 1.0, delta=1e-6)
    frame = found.to_frame("pandas", level=0.9)
    assert isinstance(frame, pd.DataFrame)
    assert frame.to_dict("list") == found.to_frame(level=0.9).to_dict(as_series=False)
