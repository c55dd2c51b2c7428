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


TWO = (
    r"holds a CR without LF outside quotes, and LF ends a line of the file, too: rows would be lost; save it with one "
    r"kind of line ends, or put quotes around an entry that holds one$"
)


@pytest.mark.parametrize(
    ("text", "options", "found"),
    [
        ("vote,x\ryes,1\r\nno,2\rno,3\r\nyes,4\rno,5\r\n", {}, "^the header of .*"),  # 2 rows of 5 were read
        ("vote,age\ryes,20\r\nno,30\rno,40\r", {}, "^the header of .*"),  # 1 of 3
        ("vote,age\ryes,20\rno,30\n", {}, "^the header of .*"),  # "has no rows"
        ("vote\ryes\nno\ryes\n", {}, "^the header of .*"),  # "no column 'vote'"
        ("vote\nyes\nno\ryes\n", {}, "^row 2 of .*"),
        ("vote\nyes\nno\r", {}, "^row 2 of .*"),
        ('vote,x\n"a\rb",5" c\rd\n', {}, "^row 1 of .*"),  # a quote inside an entry quotes nothing
        ('vote,x\na,5" c\rd 6"\n"b\n",c\rd\n', {}, "^row 1 of .*"),
        ('vote,x\n"a\r\rb","c\r\n\r"\ny,c\rd\n', {}, "^row 2 of .*"),
        (
            "vote\r" + "yes\r" * 20_000 + "no\n" + "no\r",
            {},
            "^.*",
        ),
        (
            "vote\n" + "yes\n" * 20_000 + "no\r" * 600_000,
            {},
            "^row 20001 of .*",
        ),  # "more than 1,000,000 bytes"
        (
            "old\rvote\ryes\nno\n",
            {"skip_lines": 1},
            "^line 1 of .*, which is skipped,",
        ),
        (
            "vote\nWhat?\ryes\nno\n",
            {"header_rows": 2},
            "^row 2 of the header of .*",
        ),
    ],
)
def test_two_line_ends_are_refused(tmp_path, text, options, found):
    """People between a CR and the next CR LF were lost in silence."""
    with pytest.raises(InvalidInput, match=f"{found} {TWO}"):
        votes(tmp_path / "t", text.encode(), **options)


@pytest.mark.parametrize(
    ("text", "options", "found"),
    [
        ("vote,x\r\nyes,1\nno,2\r\n", {}, ["yes", "no"]),
        ("vote,x\nyes,1\r\r\nno,2\n", {}, ["yes", "no"]),
        ('vote,x\n"a\rb",1\r\n"b\r",2\n', {}, ["a\rb", "b"]),
        ('vote,"x\ry"\na,"5"" \r"\n', {}, ["a"]),
        ('vote,x\r"a\nb",1\r' + "no,2\r" * 3, {}, ["a\nb", *["no"] * 3]),
        ('vote,x\rno,"' + "\n" * (1 << 16) + '"\rno,2\r', {}, ["no", "no"]),  # the quote is open where the sample ends
        (f'"{"x" * ((1 << 16) - 9)}",vote\r\n1,no\r\n', {}, ["no"]),
        (f'"{"x" * ((1 << 16) - 8)}",vote\r\n1,no\r\n', {}, ["no"]),  # the sample ends between CR and LF
        ('vote,x\n"What\r?",y\nno,1\n', {"header_rows": 2}, ["no"]),
        ("vote,x\nyes\u2028no,1\n", {}, ["yes\u2028no"]),
    ],
)
def test_line_ends_of_one_kind_are_read(tmp_path, text, options, found):
    """CR LF and LF are one kind; what stands in quotes ends no line."""
    assert votes(tmp_path / "t", text.encode(), **options) == found


@pytest.mark.parametrize("end", ["\x85", "\u2028"], ids=ascii)
@pytest.mark.parametrize("last", ["", "\n"], ids=ascii)
@pytest.mark.parametrize("title", [False, True])
def test_other_line_ends_are_refused(tmp_path, end, last, title):
    text = "title\n" * title + end.join(["vote", "yes", "no"]) + (last or end)
    with pytest.raises(
        InvalidInput, match=rf"^U\+{ord(end):04X} ends a line within the first line of .*; save it with"
    ):
        votes(tmp_path / "t", text.encode(), skip_lines=int(title))


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


@pytest.mark.parametrize("data", [TEXT.encode() + bytes(100), b"$FL2@(#) SPSS DATA FILE" + bytes(50)])
def test_zeros_that_are_no_wide_encoding(tmp_path, data):
    """A file that ends in zeros, and one of a statistics program, were called text in an encoding without a mark."""
    with pytest.raises(InvalidInput, match=r"is neither text nor Parquet; export it as CSV$"):
        votes(tmp_path / "t", data)


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
