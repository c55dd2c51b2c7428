"""Tables: what can be read is read over its full length, what cannot gets one clear line."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

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
    with pytest.raises(InvalidInput, match=r"^x in row 20001 is not a number; "):
        read_columns(path, numbers=["x"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "x,y\n1,2\n,3\n,4\n",
            r"^x in row 2 is missing; give every row a number "
            r"\(2 such rows in all\)$",
        ),
        (
            "x,y\n1,2\nNA,3\n",
            r"^x in row 2 is missing; give every row a number$",
        ),
        ("x,y\n1,2\nnan,3\n", r"^x in row 2 is missing; "),
        ("x,y\n1,2\n'3',3\n", "^x in row 2 is not a number; "),
        ("x,y\n", r"has no rows; give one row per user$"),
        ("", r"t\.csv is empty; give a header line and one row per user$"),
        ("y,X\n1,2\n", r"^no column 'x' in .*t\.csv; its columns are y, X$"),
        ("x,x\n1,2\n", r"^column 'x' stands twice in the header of .*t\.csv; rename one$"),
        (
            "x,y\n1,2\n1,2,3\n",
            r"^row 2 of .*t\.csv has 3 fields, the header has 2; put quotes around an entry that holds a comma, "
            r"or remove what is too much$",
        ),
        (b"x,y\n\xff\xfe\x00\x01,2\n", r"t\.csv is neither text nor Parquet; export it as CSV$"),
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


@pytest.mark.costly
def test_a_bad_row_of_a_late_batch_is_named_by_its_place_in_the_table(tmp_path):
    path = written(tmp_path, "t.csv", "x\n" + "1\n" * 2_000_000 + "many\n")
    with pytest.raises(InvalidInput, match=r"^x in row 2000001 is not a number; "):
        for _ in Table.of(path).batches(numbers=["x"], rows=1000):
            pass


# ------------------------------------------------------------------ what is decoded


def test_columns_that_are_not_asked_for_are_not_decoded(tmp_path):
    """The pages of the value column are overwritten with junk; budgets and the number of rows are read all the same."""
    path = tmp_path / "t.parquet"
    frame = pl.DataFrame({"budget": [0.5, 1.0] * 500, "value": [f"record {i}" for i in range(1000)]})
    frame.write_parquet(path, compression="uncompressed", use_pyarrow=False)
    content = path.read_bytes()
    assert content.count(b"record 5") > 0
    path.write_bytes(content.replace(b"record ", b"\xff" * 7))
    table = Table.of(path)
    assert table.count() == 1000
    (batch,) = table.batches(numbers=["budget"])
    assert batch.numbers["budget"].tolist() == [0.5, 1.0] * 500
    with pytest.raises(InvalidInput, match=r"^cannot read .*t\.parquet as a table"):
        list(table.batches(texts=["value"]))


def test_counting_parquet_reads_its_end_alone(tmp_path):
    path = tmp_path / "t.parquet"
    pl.DataFrame({"value": np.arange(100_000)}).write_parquet(path)
    content = path.read_bytes()
    path.write_bytes(content[:4] + bytes(len(content) // 2) + content[4 + len(content) // 2 :])
    assert Table.of(path).count() == 100_000
    assert sum(batch.rows for batch in Table.of(path).batches(rows=30_000)) == 100_000


@pytest.mark.parametrize("form", ["parquet", "csv", "frame"])
def test_a_pass_asks_polars_for_its_columns_alone(tmp_path, form, monkeypatch):
    frame = pl.DataFrame({name: ["1", "2"] for name in "abcdef"})
    path = tmp_path / f"t.{form}"
    if form == "parquet":
        frame.write_parquet(path)
    elif form == "csv":
        frame.write_csv(path)
    table = Table.of(frame if form == "frame" else path)
    widths = []
    usual = pl.LazyFrame.collect_batches

    def counted(self, *arguments, **options):
        plan = self.explain()
        widths.append(re.findall(r"(?:PROJECT|PROJECT\[.*\]) (\S+) COLUMNS", plan))
        return usual(self, *arguments, **options)

    monkeypatch.setattr(pl.LazyFrame, "collect_batches", counted)
    (batch,) = table.batches(texts=["c"])
    assert batch.texts["c"].to_list() == ["1", "2"]
    assert widths == [["1/6"]]


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
    with pytest.raises(InvalidInput, match=r"^a table is a file, a pandas dataframe, or one .*; got dict$"):
        Table.of({"x": [1]})


VOTES = "vote,budget,consent,hours\nyes,0.5,strict,40\n"
SHORT = r"^row {} of {} has {}, the header has {}; the file may be cut short: complete the row from its source$"


def refused(path: Path, texts: list[str]) -> str:
    """The one line on a table, which must be the same read whole and in batches."""
    lines = set()
    for rows in (None, 1000):
        with pytest.raises(InvalidInput) as raised:
            list(Table.of(path).batches(texts=texts, rows=rows))
        lines.add(str(raised.value).replace(f"{path.parent}/", ""))
    (line,) = lines
    assert "\n" not in line
    return line


@pytest.mark.parametrize("texts", [["vote"], ["vote", "hours"], ["hours"], []])
@pytest.mark.parametrize("end", ["no,1", "no,1\n", "no,1\r\n"])
def test_a_file_cut_short_in_a_row_is_refused(tmp_path, texts, end):
    line = refused(written(tmp_path, "cut2.csv", VOTES + end), texts)
    assert line == (
        "row 2 of cut2.csv has 2 fields, the header has 4; the file may be cut short: complete the row from its source"
    )


@pytest.mark.parametrize(
    ("content", "row", "fields", "width"),
    [
        (VOTES + "no,1\nyes,2,strict,30\n", 2, 2, 4),  # short in the middle
        (VOTES + "no,1,normal,\n" * 5 + "no,1\n" + "no,1,normal,\n" * 5, 7, 2, 4),  # among rows with a blank end
        (VOTES + 'no,1,"a,b"\n', 2, 3, 4),  # quoted separators do not count
        (VOTES + 'no,1,"a\nb,\n",3\nno,1\n', 3, 2, 4),  # nor do quoted newlines
        (VOTES + 'no,1,"say ""a"", b",3\nno,1,"""\n"""\n', 3, 3, 4),
        (VOTES + 'no,5" x,1" y\n', 2, 3, 4),  # a quote inside a field is a character, and hides no separator
        (VOTES + 'no,5" x', 2, 2, 4),
        ("a,b\n1\n2,2\n3,3,", 1, 1, 2),  # the sum of separators alone would look right
        ('"a\n,","b"\n1,2\n3\n', 2, 1, 2),
        ('\ufeff"a",b\n1,2\n3\n', 2, 1, 2),
        ("\n\r\na,b\n1,2\n3\n", 2, 1, 2),  # blank lines before the header are no rows
        ("a,b\r\n1,2\r\n3\r\n", 2, 1, 2),
    ],
)
def test_short_rows_are_named(tmp_path, content, row, fields, width):
    path = written(tmp_path, "t.csv", content)
    counted = "1 field" if fields == 1 else f"{fields} fields"
    name = pl.read_csv(path, infer_schema=False, n_rows=1).columns[0]
    with pytest.raises(InvalidInput, match=SHORT.format(row, r".*t\.csv", counted, width)):
        list(Table.of(path).batches(texts=[name]))


def test_rows_cut_by_tabs_and_blanks_name_the_way(tmp_path):
    line = refused(written(tmp_path, "t.tsv", "vote   age\tdept\nyes   31   A\nno   40   B\n"), ["dept"])
    assert line.endswith("from its source; if blanks and tabs separate the columns, say `separator = 'blanks'`")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("1\t2\t3\n4\t5\n", "row 2 of t.tsv has 2 fields, the header has 3; the file may be cut short: "),
        ("1\t2,x\t3\n4,5\t,\t7\t8\n", "row 2 of t.tsv has 4 fields, the header has 3; put quotes around an entry "),
        ('1\t"2\t"\t3\n"4\t"\t5\n', "row 2 of t.tsv has 2 fields, the header has 3; the file may be cut short: "),
    ],
)
def test_tab_separated_rows_of_another_length_are_named(tmp_path, content, line):
    assert refused(written(tmp_path, "t.tsv", "a\tb\tc\n" + content), ["a"]).startswith(line)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (
            "a\n1\n1,000\n",
            "row 2 of t.csv has 2 fields, the header has 1; put quotes around an entry that holds a comma",
        ),
        ('a,b\n1,2\n"3,4",5,6\n', "row 2 of t.csv has 3 fields, the header has 2; put quotes around an entry"),
        ("a,b\n1\n2,3,4\n", "row 1 of t.csv has 1 field, the header has 2; "),  # the sum alone would look right
        ("a,b\n1,2\n\n3,4\n", "row 2 of t.csv is a blank line, the header has 2 fields; the file may be cut short: "),
        ("a,b\n1,2\n\r\n", "row 2 of t.csv is a blank line, the header has 2 fields; "),
        (
            "a\n1\n\n2\n",
            "a in row 2 is missing; give every row an entry",
        ),  # one column: a blank line is a blank entry
    ],
)
def test_long_rows_and_blank_lines_are_named(tmp_path, content, line):
    assert refused(written(tmp_path, "t.csv", content), ["a"]).startswith(line)


@pytest.mark.costly("texts0")
@pytest.mark.parametrize("texts", [["a"], ["b", "a"]])
def test_a_short_row_of_a_late_batch_is_found(tmp_path, texts):
    path = written(tmp_path, "t.csv", "a,b,c\n" + 'x,"1,1",2\n' * 300_000 + "y,1\n" + "x,1,2\n" * 300_000)
    assert refused(path, texts).startswith("row 300001 of t.csv has 2 fields, the header has 3; ")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", "a,b,c\n1,x,\n2,,\n3,y,z\n"),
        ("t.csv", "a,b,c\r\n1,x,\r\n2,,\r\n3,y,z"),
        ("t.csv", '\ufeff\n"a",b,"c"\n1,"x,\n",\n2,"""",\n3,,""'),
        ("t.csv", 'a,b,c\n1,5" x 6",\n2,6" x,7" y\n3,"",'),
        ("t.csv", 'a,b,c\n1,5" x,6" y\n2,,\n3,,z\n'),
        ("t.tsv", 'a\tb\tc\n1\tx,y,z\t\n2\t"\t"\t\n3\ty\tz\n'),
        ("t.csv", gzip.compress(b"a,b,c\n1,,\n2,,\n3,,3\n", mtime=0)),
        ("t.csv", zlib.compress(b"a,b,c\n1,,1\n2,,2\n3,,3\n")),
    ],
)
def test_a_blank_last_field_is_a_field(tmp_path, name, content):
    path = written(tmp_path, name, content)
    assert read_columns(path, numbers=["a"]).numbers["a"].tolist() == [1.0, 2.0, 3.0]
    (batch,) = Table.of(path).batches(numbers=["a"])
    assert batch.numbers["a"].tolist() == [1.0, 2.0, 3.0]


def test_rows_of_packed_tables(tmp_path):
    content = b"a,b\n1,2\n3\n"
    assert refused(written(tmp_path, "t.csv", gzip.compress(content, mtime=0)), ["a"]).startswith(
        "row 2 of t.csv has 1 field, "
    )
    assert refused(written(tmp_path, "t.csv", zlib.compress(content)), ["a"]).startswith("row 2 of t.csv has 1 field, ")


@pytest.mark.costly
@given(
    rows=st.lists(st.lists(st.text('ab,"\n\t ', max_size=4), min_size=3, max_size=3), min_size=1, max_size=8),
    fields=st.integers(1, 4),
    at=st.integers(0, 7),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    end=st.sampled_from(["\n", "\r\n"]),
    separator=st.sampled_from([",", "\t"]),
)
@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_row_of_another_length_is_the_one_named(tmp_path, rows, fields, at, quoting, end, separator):
    """The csv module writes the table, one row of it with another number of fields."""
    assume(at < len(rows))
    whole = [["k", *row[1:]] for row in rows]
    whole[at] = [*whole[at], "more"][:fields]
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=separator, quoting=quoting, lineterminator=end).writerows([["k", "l", "m"], *whole])
    path = written(tmp_path, {",": "t.csv", "\t": "t.tsv"}[separator], stream.getvalue())
    if fields == 3:
        assert read_columns(path, texts=["k"]).texts["k"].to_list() == ["k"] * len(rows)
        return
    with pytest.raises(InvalidInput, match=rf"^row {at + 1} of .* has {fields} fields?, the header has 3; "):
        read_columns(path, texts=["k"])
