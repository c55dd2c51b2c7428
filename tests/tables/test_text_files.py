"""Files of text as old and odd programs write them: read, or refused as what they are."""

from __future__ import annotations

import codecs

import pytest

from shuffledp.errors import InvalidInput
from shuffledp.tables import TableOptions, read_columns
from shuffledp.tables.files import BYTE_ORDER_MARK

TEXT = "vote,x\nja,1\nGrüße,2\n"


def votes(path, data: bytes, name: str = "vote", **options) -> list[str]:
    path.write_bytes(data)
    return read_columns(path, texts=[name], options=TableOptions(**options)).texts[name].to_list()


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=ascii)
@pytest.mark.parametrize("marks", [0, 1, 2, 3])
@pytest.mark.parametrize("header", ["vote", '"vote"'])
@pytest.mark.parametrize("last", ["", "end"])
def test_line_ends_and_byte_order_marks(tmp_path, end, marks, header, last):
    """A file of CR alone was said to have no rows, and one with two marks to have no column `vote`."""
    text = TEXT.replace("vote", header).rstrip("\n").replace("\n", end) + (end if last else "")
    assert votes(tmp_path / "t", BYTE_ORDER_MARK * marks + text.encode()) == ["ja", "Grüße"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_wide_encodings(tmp_path, encoding):
    """With a mark they are known, with `encoding` read; else the refusal says what to do, and not to export it anew."""
    data, path = TEXT.encode(encoding), tmp_path / "t"
    mark = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE, "utf-32-le": codecs.BOM_UTF32_LE}
    mark |= {"utf-32-be": codecs.BOM_UTF32_BE}
    assert votes(path, mark.get(encoding, b"") + data) == ["ja", "Grüße"]
    assert votes(path, data, encoding=encoding) == ["ja", "Grüße"]
    if encoding in mark:
        with pytest.raises(
            InvalidInput, match=r"is text in an encoding without a mark; say how it is encoded, such as"
        ):
            votes(path, data)


@pytest.mark.parametrize(
    ("header", "name", "found"),
    [
        ("vote,vote_duplicated_0", "vote", 0),
        ("vote,vote_duplicated_0", "vote_duplicated_0", 1),
        ("x,vote_duplicated_0", "vote_duplicated_0", 1),
        ("y,y", "vote", None),
        ("vote,vote", "vote", None),
        ("vote,vote", "vote_duplicated_0", None),
    ],
)
def test_names_like_those_that_the_table_reader_gives(tmp_path, header, name, found):
    """`vote,vote_duplicated_0` was said to have `vote` twice."""
    data = f"{header}\na,b\n".encode()
    if found is not None:
        assert votes(tmp_path / "t", data, name) == ["ab"[found]]
        return
    with pytest.raises(InvalidInput, match=r"stands twice in the header|^no column"):
        votes(tmp_path / "t", data, name)


@pytest.mark.parametrize("header", ["vote,vote,vote_duplicated_0", "vote,vote_duplicated_0,vote"])
def test_a_name_twice_beside_one_like_it(tmp_path, header):
    with pytest.raises(InvalidInput, match=r"^column 'vote' stands twice in the header of .*; rename one$"):
        votes(tmp_path / "t", f"{header}\na,b,c\n".encode(), "vote_duplicated_0")


def test_what_a_cut_file_tells_and_what_it_does_not(tmp_path):
    """A row, a quote and a character show where they were cut; the end of a number does not (docs/how-to/tables.md)."""
    whole = 'vote,x\n"ja",40\nGrüße,40\n'.encode()
    for cut in (whole[:-8], whole[: whole.index(b'\n"') + 3], whole[: whole.index(b"\xbc") + 0]):
        with pytest.raises(InvalidInput):
            votes(tmp_path / "t", cut, "x")
    assert votes(tmp_path / "t", whole[:-2], "x") == ["40", "4"]
