"""Files as people have them: by content, packed, in other encodings, with any separator, from standard input."""

from __future__ import annotations

import gc
import gzip
import io
import os
import sys
import tempfile
from pathlib import Path

import polars as pl
import pytest

from shuffledp.errors import InvalidInput
from shuffledp.tables import Table, TableOptions, read_columns

ROWS = "name,hours\nAnne,40\nBjörn,38.5\n"
VALUES = {"name": ["Anne", "Björn"], "hours": [40.0, 38.5]}


def read(path, **options) -> dict[str, list]:
    columns = read_columns(path, numbers=["hours"], texts=["name"], options=TableOptions(**options))
    return {"name": columns.texts["name"].to_list(), "hours": columns.numbers["hours"].tolist()}


def written(folder: Path, content: bytes, name: str = "people") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def parquet() -> bytes:
    stream = io.BytesIO()
    pl.DataFrame(VALUES).write_parquet(stream)
    return stream.getvalue()


def zstd(text: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "t.zst"
        rows = [line.split(",") for line in text.splitlines()]
        frame = pl.DataFrame(dict(zip(rows[0], zip(*rows[1:], strict=True), strict=True)))
        frame.lazy().sink_csv(file, compression="zstd")
        return file.read_bytes()


CONTENTS = {
    "commas": ROWS.encode(),
    "semicolons": ROWS.replace(",", ";").encode(),
    "tabs": ROWS.replace(",", "\t").encode(),
    "bars": ROWS.replace(",", "|").encode(),
    "line ends of Windows": ROWS.replace("\n", "\r\n").encode(),
    "byte order mark": b"\xef\xbb\xbf" + ROWS.encode(),
    "utf-16": ROWS.encode("utf-16"),
    "utf-16, big end first": b"\xfe\xff" + ROWS.encode("utf-16-be"),
    "gzip": gzip.compress(ROWS.encode(), mtime=0),
    "gzip of utf-16 with tabs": gzip.compress(ROWS.replace(",", "\t").encode("utf-16"), mtime=0),
    "zstd": zstd(ROWS),
    "parquet": parquet(),
    "parquet in gzip": gzip.compress(parquet(), mtime=0),
}


@pytest.mark.parametrize("name", ["people", "people.csv", "people.txt", "people.xlsx"])
@pytest.mark.parametrize("content", CONTENTS)
def test_a_file_is_known_by_its_content(tmp_path, content, name):
    assert read(written(tmp_path, CONTENTS[content], name)) == VALUES


def test_an_entry_with_other_separators_does_not_mislead(tmp_path):
    content = 'name;hours\n"Anne, B.|x";40\n"Björn, C.|x";38.5\n'.encode()
    assert read(written(tmp_path, content))["name"] == ["Anne, B.|x", "Björn, C.|x"]


def test_a_separator_can_be_named(tmp_path):
    content = b"name:hours\nAnne:40\n"
    with pytest.raises(InvalidInput, match=r"^no column 'hours' in .*; did you mean 'name:hours'\? its"):
        read(written(tmp_path, content))
    assert read(written(tmp_path, content), separator=":")["hours"] == [40.0]
    assert read(written(tmp_path, b"name\thours\nAnne\t40\n"), separator="tab")["hours"] == [40.0]


def test_another_encoding_is_named_and_can_be_given(tmp_path):
    path = written(tmp_path, ROWS.encode("cp1252"), "people.csv")
    with pytest.raises(
        InvalidInput, match=r"people\.csv is not UTF-8 text: row 2 cannot be read; .* `encoding = 'cp1252'` for a"
    ):
        read(path)
    assert read(path, encoding="cp1252") == VALUES
    with pytest.raises(InvalidInput, match=r"people\.csv is not utf-32 text; say how it is encoded with `encoding`$"):
        read(path, encoding="utf-32")
    header = written(tmp_path, "größe,hours\n1,2\n".encode("cp1252"), "header.csv")
    with pytest.raises(InvalidInput, match=r"header\.csv is not UTF-8 text: the header cannot be read; "):
        read_columns(header, numbers=["größe"])
    assert read_columns(header, numbers=["hours"]).rows == 1


def test_a_decimal_comma_is_asked_for(tmp_path):
    path = written(tmp_path, "name;hours\nAnne;40\nBjörn;38,5\n".encode())
    with pytest.raises(InvalidInput, match=r"^hours in row 2 is not a number; if the comma is a decimal"):
        read(path)
    assert read(path, decimal=",") == VALUES
    with pytest.raises(InvalidInput, match=r"^hours in row 1 is not a number"):
        read(written(tmp_path, b"name;hours\nAnne;38.5\n"), decimal=",")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"separator": ",,"}, "`separator` must be one ASCII character, such as ; or tab, or blanks; got ',,'"),
        ({"separator": '"'}, "`separator` must be one ASCII character"),
        ({"separator": "a"}, "`separator` must be one ASCII character"),
        ({"separator": "§"}, "`separator` must be one ASCII character"),
        (
            {"encoding": "klingon"},
            "`encoding` must be a text encoding, such as utf-8 or cp1252; got 'klingon'",
        ),
        ({"encoding": "base64"}, "`encoding` must be a text encoding, such as utf-8 or cp1252; got 'base64'"),
        ({"decimal": "'"}, "`decimal` must be . or , and not the separator"),
        ({"decimal": ",", "separator": ","}, "`decimal` must be . or , and not the separator; got ','"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(InvalidInput) as raised:
        TableOptions(**options)
    assert str(raised.value).startswith(message)
    assert raised.value.parameter == message.split("`")[1]


@pytest.mark.parametrize("content", ["commas", "gzip", "parquet", "zstd"])
@pytest.mark.parametrize("dash", ["-", Path("-")])
def test_standard_input_is_read_once_and_served_twice(monkeypatch, content, dash):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CONTENTS[content])))
    table = Table.of(dash)
    assert table.name == "standard input"
    for _ in range(2):
        (batch,) = table.batches(numbers=["hours"])
        assert batch.numbers["hours"].tolist() == [40.0, 38.5]
    assert table.count() == 2


def test_an_empty_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    with pytest.raises(InvalidInput, match=r"^table standard input is empty; give a header line and one row per user$"):
        Table.of("-")


def test_a_copy_has_no_name_and_is_gone_with_its_table(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    table = Table.of(written(tmp_path, CONTENTS["gzip"]))
    if Path("/proc/self/fd").is_dir():
        assert list((tmp_path / "temporary").iterdir()) == []
    copy = table.lines.file
    assert os.stat(copy).st_mode & 0o077 == 0
    assert copy.exists()
    del table
    gc.collect()
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.costly(but=("gzip",))
@pytest.mark.parametrize("content", ["commas", "gzip", "zstd", "utf-16"])
def test_the_whole_table_outlives_its_copy(tmp_path, content):
    whole = Table.of(written(tmp_path, CONTENTS[content])).whole()
    gc.collect()
    assert whole.rows() == [("Anne", "40"), ("Björn", "38.5")]
    with pytest.raises(InvalidInput, match=r"row 1 of .*short has 1 field"):
        Table.of(written(tmp_path, b"a,b\n1\n", "short")).whole()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"PK\x03\x04" + bytes(30),
            "is a zip archive, or a spreadsheet, which is one; unzip it and name the table that was inside, or",
        ),
        (b"%PDF-1.7\n", "is a PDF, not a table of text or Parquet; export it as CSV$"),
        (b"\x89PNG", "is a picture, not a table of text or Parquet; export it as CSV$"),
        (b"GIF89a" + bytes(30), "is neither text nor Parquet; export it as CSV$"),
        (b"", "^table .*people is empty; give a header line and one row per user$"),
        (gzip.compress(b"", mtime=0), "^table .*people is empty; give a header line and one row per user$"),
        (gzip.compress(ROWS.encode(), mtime=0)[:-12], "^cannot read .*people as a table "),
        (b"\x28\xb5\x2f\xfd" + bytes(30), "(must hold UTF-8 text|cannot read)"),
        (b"x\x9c" + bytes(30), "^cannot read .*people as a table "),
        (b"\n\n\n", "people has no header; give a header line and one row per user$"),
    ],
)
def test_what_is_no_table(tmp_path, content, message):
    with pytest.raises(InvalidInput, match=message) as raised:
        read(written(tmp_path, content))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("start", ['[{"a": 1},\n {"a": 2}]\n', '[\n   {\n      "a":1},{"a":2}]', '{"a": [1, 2]}\n'])
def test_json_is_named_as_such(tmp_path, start):
    file = tmp_path / "cars.json"
    file.write_text(start, encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"cars\.json is JSON, not a table"):
        read(file)
