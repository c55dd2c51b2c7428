"""Tables as people have them, each a small file: read, or refused by one line that says how to read it."""

from __future__ import annotations

from pathlib import Path

import pytest

import shuffledp as sdp
from shuffledp.errors import InvalidInput
from shuffledp.tables import TableOptions, read_columns

FOUND = Path(__file__).parent / "found"
PLAIN = (["yes", "no"], [3.0, 4.0])


def read(name: str, **options: object) -> tuple[list[str | None], list[float]]:
    names = ("Q1", "Q2") if name == "qualtrics.csv" else ("vote", "age")
    how = TableOptions(**options)  # type: ignore[arg-type]
    columns = read_columns(FOUND / name, texts=names[:1], numbers=names[1:], options=how)
    return columns.texts[names[0]].to_list(), columns.numbers[names[1]].tolist()


@pytest.mark.parametrize(
    ("name", "options", "found"),
    [
        ("declared-separator.csv", {}, PLAIN),
        ("declared-separator.csv", {"separator": ";"}, PLAIN),
        ("declared-separator.csv", {"skip_lines": 1}, PLAIN),
        ("declared-separator-after-mark.csv", {}, PLAIN),
        ("declared-separator-after-mark.csv", {"skip_lines": 1}, PLAIN),
        ("qualtrics.csv", {"header_rows": 3}, PLAIN),
        ("two-header-rows.csv", {"header_rows": 2}, PLAIN),
        ("title.csv", {"skip_lines": 1}, PLAIN),
        ("title.csv", {"skip_lines": 2}, PLAIN),
        ("title-of-a-spreadsheet.csv", {"skip_lines": 2}, PLAIN),
        ("blanks.txt", {"separator": "blanks"}, (["yes", "no"], [3.0, 14.0])),
        ("line-ends-cr.csv", {}, (["ye\ns", "no"], [3.0, 4.0])),
        ("line-ends-cr-cr-lf.csv", {}, PLAIN),
        ("cp1252.csv", {"encoding": "cp1252"}, (["jä", "no"], [3.0, 4.0])),
        ("ebcdic.csv", {"encoding": "cp037"}, PLAIN),
        ("utf-16.csv", {}, PLAIN),
        ("utf-16.csv", {"encoding": "utf-16-le"}, PLAIN),
    ],
)
def test_it_is_read(name, options, found):
    assert read(name, **options) == found


TITLE = r"if the first lines are a title and the header comes later, say how many with `skip_lines`"


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("qualtrics.csv", {}, r"^row 2 of .* holds the ImportIds .* say `header_rows = 3`$"),
        ("qualtrics.csv", {"header_rows": 2}, r"^row 1 of .* say `header_rows = 3`$"),
        (
            "two-header-rows.csv",
            {},
            r"^age in row 1 is not a number, and only the first row is so: if it describes the columns, say "
            r"`header_rows = 2`; if not, give every row a number, or name a word that means missing with .*$",
        ),
        ("title.csv", {}, f"^row 2 of .* has 2 fields, the header has 1; .*{TITLE}$"),
        ("title-of-a-spreadsheet.csv", {}, f"^no column 'age' in .*{TITLE}$"),
        ("blanks.txt", {}, "^no column 'age' .* if blanks separate columns, say `separator = 'blanks'`; "),
        (
            "line-ends-mixed.csv",
            {},
            "^row 1 of .* holds a CR without LF outside quotes, and LF ends .* one kind of line ends, ",
        ),
        ("line-ends-nel.csv", {}, r"^U\+0085 ends a line within the first line of .*; save it with LF or CR LF "),
        (
            "cp1252.csv",
            {},
            r"is not UTF-8 text: row 1 cannot be read; say how it is encoded, such as `encoding = 'cp1252'`",
        ),
        ("ebcdic.csv", {}, r"is not UTF-8 text: the header cannot be read; say how it is encoded, such as "),
        (
            "utf-16.csv",
            {"encoding": "cp1252"},
            "begins with the mark of utf-16, and `encoding` says cp1252; leave it out$",
        ),
        (
            "declared-separator.csv",
            {"separator": ","},
            "first line of .* says that ';' separates .* `separator` says ','",
        ),
        ("title.csv", {"skip_lines": 9}, "^.* has 5 lines, of which `skip_lines` leaves no header; skip fewer$"),
        ("title.csv", {"skip_lines": 1, "header_rows": 9}, "`header_rows` is 9, but .* only 3 rows .* at most 3$"),
    ],
)
def test_it_is_refused_by_name(name, options, message):
    with pytest.raises(InvalidInput, match=message) as raised:
        read(name, **options)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"skip_lines": -1}, "`skip_lines` must be a whole number from 0 to 1,000; got -1"),
        ({"header_rows": 0}, "`header_rows` must be a whole number from 1 to 1,000; got 0"),
        ({"header_rows": 2.0}, "`header_rows` must be a whole number from 1 to 1,000; got 2.0"),
        ({"missing_values": "."}, "`missing_values` must be a list of words, not the text '.'"),
        ({"missing_values": (" ",)}, "`missing_values` need not name the empty entry, which is missing"),
    ],
)
def test_bad_options(options, rule):
    with pytest.raises(InvalidInput) as raised:
        TableOptions(**options)
    assert str(raised.value) == rule


def shares(name: str, **more: object) -> sdp.Release:
    ask = {"value": "vote", "budgets": 20.0, "delta": 1e-6, "random": sdp.simulation_random(1)}
    return sdp.release(sdp.Frequency(["yes", "no"]), FOUND / name, **ask, **more)  # type: ignore[arg-type]


def test_descriptions_of_columns_are_not_counted_as_people():
    """`--other` was all that a refusal offered, and three rows of a header would have been three answers."""
    line = (
        r"none of the categories \('yes', 'no'\), and only the first row is so: if it describes the columns, say "
        r"`header_rows = 2`; if not, name the category that such a record counts as with `other`, or add one$"
    )
    with pytest.raises(InvalidInput, match=line):
        shares("two-header-rows.csv")
    assert shares("two-header-rows.csv", table_options=TableOptions(header_rows=2)).n == 2


def test_only_a_first_row_unlike_all_others_is_taken_for_a_header(tmp_path):
    known, more = tmp_path / "t.csv", "; if the first rows describe the columns, say so with `header_rows`"
    way = "name the category that such a record counts as with `other`, or add one"
    two = ", and only the first 2 rows are so"
    for rows, told in (
        (["Response", "Id", "yes", "no"], f"{two}: if they describe the columns, say `header_rows = 3`; if not, {way}"),
        (["Response", "yes", "maybe"], f"; {way}{more}"),
        (["yes", "Response"], f"; {way}{more}"),
        (["Response"], f"; {way}{more}"),
    ):  # fmt: skip
        known.write_text("\n".join(["vote", *rows]) + "\n", encoding="utf-8")
        with pytest.raises(InvalidInput) as raised:
            sdp.release(sdp.Frequency(["yes", "no"]), known, value="vote", budgets=1.0, delta=1e-6)
        assert str(raised.value).endswith(f"is none of the categories ('yes', 'no'){told}")
    with pytest.raises(InvalidInput) as raised:  # arrays have no rows of a header
        sdp.release(
            sdp.Frequency(["yes", "no"]), {"vote": ["Response", "yes", "no"]}, value="vote", budgets=1.0, delta=1e-6
        )
    assert str(raised.value).endswith(f"; {way}")


def test_several_answers_in_one_cell_are_told_apart_from_an_unlisted_one():
    line = (
        "the record in row 1 is several of the categories in one cell, and a frequency counts one a person; give each "
        "category a column of 0 and 1, and ask for their vector mean with norm 1 in linf"
    )
    with pytest.raises(InvalidInput) as raised:
        shares("several-answers.csv")
    assert str(raised.value) == line


def test_words_for_missing_are_missing_in_every_column():
    name, missing = "words-for-missing.csv", TableOptions(missing_values=(".", "#N/A", "-99"))
    with pytest.raises(InvalidInput, match="; if it is a word for missing, name it with `missing_values`; "):
        shares(name)
    with pytest.raises(
        InvalidInput, match=r"^the record in row 1 is missing; .* counts as with `missing_as`, or add one$"
    ):
        shares(name, table_options=missing)
    found = shares(name, table_options=missing, missing_as="no")
    assert found.n == 4
    assert found.estimate.tolist() == pytest.approx([0.25, 0.75], abs=1e-3)  # yes, and three that count as no
    columns = read_columns(FOUND / name, numbers=["age"], texts=["vote"], gaps=["age", "vote"], options=missing)
    assert columns.texts["vote"].to_list() == [None, "yes", None, "no"]
    assert [value == value for value in columns.numbers["age"].tolist()] == [False, False, True, False]


def test_numbers_that_mean_missing_are_missing_in_a_column_of_numbers():
    import polars as pl

    from shuffledp.tables import Table

    table = Table.of(pl.DataFrame({"x": [1, -99], "y": [1.5, -99.0]}), TableOptions(missing_values=("-99",)))
    (batch,) = table.batches(numbers=["x", "y"], texts=["x"], gaps=["x", "y"])
    assert batch.texts["x"].to_list() == ["1", None]
    assert [str(value) for name in ("x", "y") for value in batch.numbers[name]] == ["1.0", "nan", "1.5", "nan"]


@pytest.mark.parametrize("name", ["separator", "encoding", "skip_lines", "header_rows"])
def test_an_option_that_says_nothing_is_refused(tmp_path, name):
    import polars as pl

    options = TableOptions(**{name: {"separator": ";", "encoding": "cp1252"}.get(name, 2)})
    frame = pl.DataFrame({"age": [1.0, 2.0]})
    frame.write_parquet(tmp_path / "t.parquet")
    for table, what in ((tmp_path / "t.parquet", ".*t.parquet is Parquet"), (frame, "this is a dataframe")):
        with pytest.raises(InvalidInput, match=f"^`{name}` is about tables of text, and {what}; leave it out$"):
            sdp.mean_of_table(table, "age", 0, 9, 1.0, delta=0.1, table_options=options)
    with pytest.raises(InvalidInput, match=f"^`{name}` is about tables.* and these are arrays by name; leave it out$"):
        sdp.release(sdp.Mean(0, 9), {"age": [1.0]}, value="age", budgets=1.0, delta=0.1, table_options=options)


def test_marks_of_numbers_hold_for_text_in_parquet(tmp_path):
    """`--decimal ,` was ignored there, and 1,5 refused with the advice to say it."""
    import polars as pl

    pl.DataFrame({"age": ["1,5", "2"]}).write_parquet(tmp_path / "t.parquet")
    found = read_columns(tmp_path / "t.parquet", numbers=["age"], options=TableOptions(decimal=","))
    assert found.numbers["age"].tolist() == [1.5, 2.0]
