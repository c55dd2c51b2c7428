"""One rule for entries, from text, Parquet and dataframes."""

from __future__ import annotations

from datetime import date, datetime

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.errors import InvalidInput
from shuffledp.tables import Table, canonical, canonical_texts, read_columns

SPELLINGS = {
    "true": ["true", "True", "TRUE"],
    "false": ["false", "False", "FALSE"],
    "1": ["1", "1.0", "1.000"],
    "0": ["0", "0.0", "-0.0"],
    "-3": ["-3", "-3.0"],
    "2013-01-01": ["2013-01-01", "2013-01-01 00:00:00", "2013-01-01T00:00:00", "2013-01-01 00:00:00.000000"],
    "2013-01-01 10:30:00": ["2013-01-01 10:30:00", "2013-01-01T10:30:00", "2013-01-01 10:30:00.000"],
    "2013-01-01 10:30:00.25": ["2013-01-01 10:30:00.250000"],
    "2013-01-01 10:30:00Z": [
        "2013-01-01T10:30:00Z",
        "2013-01-01 10:30:00+00:00",
        "2013-01-01T10:30:00.000000+0000",
        "2013-01-01 05:30:00-05:00",
        "2013-01-01 12:30:00.000+0200",
    ],
    "2012-12-31 23:00:00.000000001Z": ["2013-01-01 00:00:00.000000001+01:00"],
    "2013-02-30 10:30:00Z": ["2013-02-30 10:30:00Z"],
    "0001-01-01 00:00:00+01:00": ["0001-01-01 00:00:00+01:00"],
    "007": ["007"],
    "007.0": ["007.0"],
    "1.5": ["1.5"],
    "1.50": ["1.50"],
    "tRUE": ["tRUE"],
    "1.0.0": ["1.0.0"],
    "v1.0": ["v1.0"],
    "2013-01": ["2013-01"],
    "": [""],
}


@pytest.mark.parametrize("one", SPELLINGS)
def test_every_spelling_of_a_word_is_one_word(one):
    assert [canonical(text) for text in SPELLINGS[one]] == [one] * len(SPELLINGS[one])
    assert canonical_texts(pl.Series(SPELLINGS[one])).to_list() == [one] * len(SPELLINGS[one])


@given(st.lists(st.text("01.-tTrRuUeEfaslL :T2\n", max_size=12) | st.none(), max_size=9))
def test_a_column_is_spelled_as_its_entries_are(entries):
    found = canonical_texts(pl.Series(entries, dtype=pl.String)).to_list()
    assert found == [None if entry is None else canonical(entry) for entry in entries]
    assert found == [None if entry is None else canonical(entry) for entry in found]


FRAME = pl.DataFrame(
    {
        "truth": [True, False],
        "whole": [1, 0],
        "float": [1.0, -3.0],
        "day": [date(2013, 1, 1), date(2014, 2, 3)],
        "time": [datetime(2013, 1, 1), datetime(2013, 1, 1, 10, 30)],
        "kind": pl.Series(["1", "0"], dtype=pl.Categorical),
        "instant": pl.Series([datetime(2013, 1, 1), datetime(2013, 7, 1, 10, 30)]).dt.replace_time_zone("UTC"),
        "there": pl.Series([datetime(2013, 1, 1), datetime(2013, 7, 1, 10, 30)]).dt.replace_time_zone(
            "America/New_York"
        ),
    }
)
WORDS = {
    "truth": ["true", "false"],
    "whole": ["1", "0"],
    "float": ["1", "-3"],
    "day": ["2013-01-01", "2014-02-03"],
    "time": ["2013-01-01", "2013-01-01 10:30:00"],
    "kind": ["1", "0"],
    "instant": ["2013-01-01 00:00:00Z", "2013-07-01 10:30:00Z"],
    "there": ["2013-01-01 05:00:00Z", "2013-07-01 14:30:00Z"],
}
NUMBERS = {"truth": [1.0, 0.0], "whole": [1.0, 0.0], "float": [1.0, -3.0], "kind": [1.0, 0.0]}


def of_pandas(frame: pl.DataFrame) -> str:
    """The frame as pandas writes it, whose words for truth are Python's."""
    zones = {name: pl.col(name).dt.strftime("%Y-%m-%d %H:%M:%S%:z") for name in ("instant", "there")}
    text = frame.with_columns(**zones).write_csv(datetime_format="%Y-%m-%d %H:%M:%S")
    return text.replace("true", "True").replace("false", "False")


@pytest.mark.parametrize("form", ["frame", "parquet", "csv of polars", "csv of pandas"])
def test_every_form_of_a_table_means_the_same(tmp_path, form):
    """The rule of docs/how-to/tables.md."""
    path = tmp_path / "t"
    if form == "parquet":
        FRAME.write_parquet(path)
    elif form != "frame":
        path.write_text(FRAME.write_csv() if form == "csv of polars" else of_pandas(FRAME))
    table = Table.of(FRAME if form == "frame" else path)
    (batch,) = table.batches(numbers=list(NUMBERS), texts=list(WORDS))
    assert {name: canonical_texts(column).to_list() for name, column in batch.texts.items()} == WORDS
    assert {name: column.tolist() for name, column in batch.numbers.items()} == NUMBERS
    with pytest.raises(InvalidInput, match=r"^(column 'day' holds Date|day in row 1 is), not|^day in row 1 is not "):
        list(table.batches(numbers=["day"]))


@pytest.mark.parametrize("form", ["pandas", "pandas of objects", "pandas with gaps", "pyarrow", "csv", "parquet"])
def test_frames_of_others_mean_the_same(tmp_path, form):
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    frame = FRAME.drop("kind")
    if form != "pyarrow":
        pytest.importorskip("pandas", reason="needs pandas")
    others = frame.to_arrow() if form == "pyarrow" else frame.to_pandas()
    if form == "pandas of objects":
        others = others.astype(object)
    elif form == "pandas with gaps":
        others = others.convert_dtypes()
    elif form == "csv":
        others.to_csv(tmp_path / "t.csv", index=False)
        others = tmp_path / "t.csv"
    elif form == "parquet":
        others.to_parquet(tmp_path / "t.parquet")
        others = tmp_path / "t.parquet"
    (batch,) = Table.of(others).batches(texts=frame.columns)
    found = {name: canonical_texts(column).to_list() for name, column in batch.texts.items()}
    assert found == {name: words for name, words in WORDS.items() if name != "kind"}


@pytest.mark.parametrize("dtype", [pl.List(pl.Int64), pl.Struct({"a": pl.Int64}), pl.Binary])
def test_containers_are_no_words(dtype):
    table = Table.of(pl.DataFrame({"x": pl.Series([None], dtype=dtype)}))
    with pytest.raises(InvalidInput, match=r"^column 'x' holds .*, not one word a row; name another one$"):
        list(table.batches(texts=["x"]))


@pytest.mark.parametrize("size", [100, 900_000])
def test_a_bad_entry_is_cut_in_the_message(tmp_path, size):
    path = tmp_path / "t.csv"
    path.write_text("x\n1\n" + "y\u202e\x1b" * (size // 8) + "\n")
    with pytest.raises(InvalidInput) as raised:
        read_columns(path, numbers=["x"])
    assert str(raised.value).startswith("x in row 2 is not a number; give every row a number, or name a word that ")
    line = str(raised.value.with_value())
    assert line.startswith(r"x in row 2 is 'y\u202e\x1by\u202e\x1b")
    assert line.isprintable()
    assert len(line) < 300


def test_names_of_columns_are_cut_in_the_message(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\x1b[2J\u202eb" + "n" * 100_000 + ",c\n1,2\n")
    with pytest.raises(InvalidInput) as raised:
        read_columns(path, numbers=["d" * 100_000])
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 400
