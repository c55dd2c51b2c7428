"""Tables: what can be read is read over its full length, what cannot gets one clear line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from shuffledp.errors import InvalidInput
from shuffledp.tables import Table, read_columns

ROWS = "age,hours,sector\n31,40,public\n45,38.5,private\n"


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(("name", "content"), [("t.csv", ROWS), ("t.tsv", ROWS.replace(",", "\t")), ("T.CSV", ROWS)])
def test_text_tables(tmp_path, name, content):
    columns = read_columns(written(tmp_path, name, content), numbers=["hours"], texts=["sector", "age"])
    assert columns.numbers["hours"].tolist() == [40.0, 38.5]
    assert columns.numbers["hours"].dtype == np.float64
    assert columns.texts["sector"].to_list() == ["public", "private"]
    assert columns.texts["age"].to_list() == ["31", "45"]


def test_parquet(tmp_path):
    path = tmp_path / "t.parquet"
    pl.DataFrame(
        {"hours": pl.Series([40, 50], dtype=pl.UInt8), "over": [True, False], "text": ["1.5", " 2"]}
    ).write_parquet(path)
    columns = read_columns(path, numbers=["hours", "over", "text"], texts=["over", "hours"])
    assert columns.numbers["hours"].tolist() == [40.0, 50.0]
    assert columns.numbers["over"].tolist() == [1.0, 0.0]
    assert columns.numbers["text"].tolist() == [1.5, 2.0]
    assert columns.texts["over"].to_list() == ["true", "false"]
    assert columns.texts["hours"].to_list() == ["40", "50"]


def test_one_column_may_be_read_both_ways(tmp_path):
    columns = read_columns(written(tmp_path, "t.csv", ROWS), numbers=["age"], texts=["age"])
    assert columns.numbers["age"].tolist() == [31.0, 45.0]
    assert columns.texts["age"].to_list() == ["31", "45"]


def test_text_numbers_of_every_common_spelling(tmp_path):
    path = written(tmp_path, "t.csv", 'x\n 1\n"2.5"\n1e-3\n-4\n+5\n')
    assert read_columns(path, numbers=["x"]).numbers["x"].tolist() == [1.0, 2.5, 1e-3, -4.0, 5.0]


def test_a_late_word_in_a_long_column_is_not_lost(tmp_path):
    path = written(tmp_path, "t.csv", "x\n" + "1\n" * 20_000 + "many\n")
    with pytest.raises(InvalidInput, match=r"^x in row 20001 is 'many', not a number; "):
        read_columns(path, numbers=["x"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "x,y\n1,2\n,3\n,4\n",
            r"^x in row 2 is missing; give every row a number, or drop the row \(2 such rows in all\)$",
        ),
        ("x,y\n1,2\nNA,3\n", r"^x in row 2 is 'NA', not a number; give every row a number, or drop the row$"),
        ("x,y\n1,2\nnan,3\n", r"^x in row 2 is 'nan', not a number; "),
        ("x,y\n1,2\n'3',3\n", r"^x in row 2 is \"'3'\", not a number; "),
        ("x,y\n", r"has no rows; give one row per user$"),
        ("", r"t\.csv is empty; give a header line and one row per user$"),
        ("y,X\n1,2\n", r"^no column 'x' in .*t\.csv; its columns are y, X$"),
        ("x,x\n1,2\n", r"^column 'x' stands twice in the header of .*t\.csv; rename one$"),
        (
            "x,y\n1,2\n1,2,3\n",
            r"^cannot read .*t\.csv as a table \(.+\); it may be cut short or no table at all$",
        ),
        (b"x,y\n\xff\xfe\x00\x01,2\n", r"^(cannot read .*t\.csv as a table|x in row 1 is )"),
    ],
)
def test_bad_text_tables(tmp_path, content, message):
    with pytest.raises(InvalidInput, match=message) as raised:
        read_columns(written(tmp_path, "t.csv", content), numbers=["x"])
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("entry", ["", '""', "  "])
def test_missing_text_is_named_by_row(tmp_path, entry):
    with pytest.raises(InvalidInput, match=r"^vote in row 2 is missing; "):
        read_columns(written(tmp_path, "t.csv", f"vote,n\nyes,1\n{entry},2\n"), texts=["vote"])


def test_missing_column_suggests_the_near_name(tmp_path):
    path = written(tmp_path, "t.csv", ROWS)
    with pytest.raises(
        InvalidInput,
        match=r"^no column 'hour' in .*; did you mean 'hours'\? its columns are age, hours, sector$",
    ):
        read_columns(path, numbers=["hour"])


def test_missing_file_suggests_the_near_name(tmp_path):
    written(tmp_path, "people.csv", ROWS)
    with pytest.raises(InvalidInput, match=r"^table .*peple\.csv does not exist; did you mean .*people\.csv\?$"):
        read_columns(tmp_path / "peple.csv", numbers=["x"])
    with pytest.raises(InvalidInput, match=r"does not exist; check the path$"):
        read_columns(tmp_path / "no" / "such.csv", numbers=["x"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("t.xlsx", r"has the ending '\.xlsx', so its format is unknown; use one of \.csv, "),
        ("t", r"has no ending"),
    ],
)
def test_unknown_formats(tmp_path, name, message):
    with pytest.raises(InvalidInput, match=message):
        read_columns(written(tmp_path, name, ROWS), numbers=["age"])


def test_a_directory_is_no_table(tmp_path):
    with pytest.raises(InvalidInput, match=r"is a directory; name one CSV, TSV or Parquet file$"):
        read_columns(tmp_path, numbers=["age"])


@pytest.mark.parametrize("keep", [3, 40, 0.5, 0.95])
def test_truncated_parquet(tmp_path, keep):
    whole = tmp_path / "whole.parquet"
    pl.DataFrame({"x": np.arange(5000.0)}).write_parquet(whole)
    content = whole.read_bytes()
    size = keep if isinstance(keep, int) else int(keep * len(content))
    with pytest.raises(InvalidInput, match=r"(cannot read .* as a table|is not a Parquet file)") as raised:
        read_columns(written(tmp_path, "cut.parquet", content[:size]), numbers=["x"])
    assert "\n" not in str(raised.value)


def test_a_picture_called_parquet(tmp_path):
    with pytest.raises(InvalidInput, match=r"is not a Parquet file \(no PAR1 mark\); export the table again$"):
        read_columns(written(tmp_path, "t.parquet", b"\x89PNG\r\n\x1a\n" + bytes(100)), numbers=["x"])


def test_dates_are_not_numbers(tmp_path):
    path = tmp_path / "t.parquet"
    pl.DataFrame({"day": pl.Series(["2020-01-01"]).str.to_date()}).write_parquet(path)
    with pytest.raises(InvalidInput, match=r"^column 'day' holds Date, not numbers; name a numeric one$"):
        read_columns(path, numbers=["day"])


def test_the_bundled_table_is_whole():
    import shuffledp

    path = Path(shuffledp.__file__).parent / "data" / "adult.parquet"
    columns = read_columns(path, numbers=["hours_per_week"], texts=["income", "education"])
    assert columns.numbers["hours_per_week"].size == 48_842
    assert columns.numbers["hours_per_week"].min() == 1
    assert columns.numbers["hours_per_week"].max() == 99
    assert dict(columns.texts["income"].value_counts().iter_rows()) == {"<=50K": 37_155, ">50K": 11_687}
    assert columns.texts["education"].n_unique() == 16


def test_batches_are_the_whole_table_cut_up(tmp_path):
    path = tmp_path / "t.parquet"
    pl.DataFrame({"x": np.arange(10_000.0), "y": [f"w{i % 7}" for i in range(10_000)]}).write_parquet(
        path, row_group_size=700
    )
    whole = read_columns(path, numbers=["x"], texts=["y"])
    batches = list(Table.of(path).batches(numbers=["x"], texts=["y"], rows=999))
    assert len(batches) > 5
    assert sum(batch.rows for batch in batches) == whole.rows == 10_000
    assert np.concatenate([batch.numbers["x"] for batch in batches]).tolist() == whole.numbers["x"].tolist()
    assert pl.concat([batch.texts["y"] for batch in batches]).to_list() == whole.texts["y"].to_list()


def test_a_bad_row_of_a_late_batch_is_named_by_its_place_in_the_table(tmp_path):
    path = written(tmp_path, "t.csv", "x\n" + "1\n" * 2_000_000 + "many\n")
    with pytest.raises(InvalidInput, match=r"^x in row 2000001 is 'many', not a number; "):
        for _ in Table.of(path).batches(numbers=["x"], rows=1000):
            pass


class Capsule:
    """A dataframe of some other library: all it has is the Arrow interface."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.frame.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("wrap", [lambda frame: frame, lambda frame: frame.lazy(), Capsule])
def test_any_dataframe_is_a_table(wrap):
    table = Table.of(wrap(pl.DataFrame({"x": [1, 2, 3]})))
    for _ in range(2):  # and can be read twice
        (batch,) = table.batches(numbers=["x"])
        assert batch.numbers["x"].tolist() == [1.0, 2.0, 3.0]


def test_what_is_no_table_is_refused():
    with pytest.raises(InvalidInput, match=r"^a table is a file, or a dataframe .*; got dict$"):
        Table.of({"x": [1]})
