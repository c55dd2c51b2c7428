"""Rows of a text file are looked at once: their number, their fields, their length."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shuffledp.errors import InvalidInput
from shuffledp.tables import Table
from shuffledp.tables import files as module
from shuffledp.tables.files import LONGEST, Survey, TextRows


def survey(path: Path, content: bytes, separator: str = ",") -> Survey:
    path.write_bytes(content)
    return TextRows(path, separator, "t").survey


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"a\n", Survey(0, 1)),
        (b"a,b", Survey(0, 2)),
        (b"a,b\n1,2\n3,4\n", Survey(2, 2)),
        (b"a,b\r\n1,2\r\n3,4", Survey(2, 2)),
        (b"\n\r\n\xef\xbb\xbfa,b\n1,2\n", Survey(1, 2)),
        (b'\xef\xbb\xbf"a,x",b\n1,2\n', Survey(1, 2)),
        (b"a\n1\n\n\n2\n", Survey(4, 1)),
        (b'a,b\n"1,\n""",2\n3,"4,"', Survey(2, 2)),
        (b'a,b\n5" x,6" y\n', Survey(1, 2)),
        (b"\n\n", Survey(0, 0)),
    ],
)
def test_rows_and_fields_are_counted(tmp_path, content, found):
    assert survey(tmp_path / "t.csv", content) == found


@pytest.mark.costly
@given(
    rows=st.lists(st.lists(st.text('ab,"\n\r\t é', max_size=5), min_size=2, max_size=2), max_size=9),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    end=st.sampled_from(["\n", "\r\n"]),
    chunk=st.integers(1, 40),
)
@settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
def test_any_pieces_of_a_table_give_the_count_of_the_table_reader(tmp_path, monkeypatch, rows, quoting, end, chunk):
    """The csv module writes the table; it is read in pieces of 1 to 40 bytes.

    Up to Python 3.13 that module leaves a CR outside quotes where its lines end with LF: such a table is refused.
    """
    monkeypatch.setattr(module, "CHUNK", chunk)
    stream = io.StringIO(newline="")
    csv.writer(stream, quoting=quoting, lineterminator=end).writerows([["k", "l"], *rows])
    path = tmp_path / "t.csv"
    text, inside = stream.getvalue(), False
    for place, letter in enumerate(text):
        inside ^= letter == '"'
        if letter == "\r" and not inside and text[place:].lstrip("\r")[:1] != "\n":
            with pytest.raises(InvalidInput, match="holds a CR without LF outside quotes"):
                survey(path, text.encode())
            return
    assert survey(path, text.encode()) == Survey(len(rows), 2)
    assert pl.read_csv(path, infer_schema=False).height == len(rows)


@pytest.mark.parametrize("row", [0, 1, 3])
@pytest.mark.parametrize("opened", [b'"', b""])
def test_a_row_beyond_a_megabyte_is_refused_by_its_number(tmp_path, row, opened):
    """An unclosed quote makes one row of the rest of the file: in version 0.1.0, 200 MB of it took 11 GB."""
    lines = [b"vote,n"] + [b"yes,1"] * 5
    lines[row] = opened + b"y" * (3 if opened else LONGEST) + lines[row]
    content = b"\n".join(lines) + b"\n" + b"yes,1\n" * 1_000_000
    which = "the header" if row == 0 else f"row {row}"
    with pytest.raises(InvalidInput) as raised:
        survey(tmp_path / "t.csv", content)
    assert str(raised.value) == (
        f"{which} of t has more than 1,000,000 bytes; close the quote that is left open there, or shorten what the row "
        "holds"
    )


def test_the_table_reader_never_sees_a_file_that_was_refused(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_bytes(b'vote,n\n"yes,1\n' + b"yes,1\n" * 500_000)
    table = Table.of(path)
    monkeypatch.setattr(pl.LazyFrame, "collect_schema", None)
    monkeypatch.setattr(pl.LazyFrame, "collect", None)
    for read in (lambda: table.count(), lambda: list(table.batches()), lambda: list(table.batches(texts=["vote"]))):
        with pytest.raises(InvalidInput, match=r"row 1 of .*t\.csv has more than 1,000,000 bytes"):
            read()


def test_a_row_of_a_megabyte_is_read(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"vote\n" + b"y" * (LONGEST - 1) + b"\nno\n")
    (batch,) = Table.of(path).batches(texts=["vote"])
    assert batch.texts["vote"].str.len_bytes().to_list() == [LONGEST - 1, 2]


def test_rows_are_looked_at_once(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_bytes(b"vote,n\n" + b"yes,1\n" * 1000)
    opened = []
    usual = Path.open
    table = Table.of(path)
    monkeypatch.setattr(Path, "open", lambda self, *args: opened.append(self) or usual(self, *args))
    for _ in range(3):
        assert table.count() == 1000
        assert sum(batch.rows for batch in table.batches(texts=["vote"])) == 1000
    assert opened == [path]


def test_a_file_that_grows_between_two_passes_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"vote,n\n" + b"yes,1\n" * 10)
    table = Table.of(path)
    assert table.count() == 10
    with path.open("ab") as stream:
        stream.write(b"no,1\n")
    with pytest.raises(InvalidInput, match=r"t\.csv has 10 rows, and 11 were read; leave it unchanged "):
        list(table.batches(texts=["vote"]))
