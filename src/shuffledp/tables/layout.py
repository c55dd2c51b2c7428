"""Lines of a text file that are nobody's: `sep=;`, what stands above the header, and further rows of the header.

The table reader is given a copy without them, so that it, and whoever counts rows before it, see one header line. What
stands there is found out only where it cannot be a record: `sep=` on the first line, and the row of ImportIds that one
survey tool writes. All else is said (`skip_lines`, `header_rows`): a description of a column looks like any record.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from shuffledp.errors import InvalidInput, shown
from shuffledp.tables.options import BLANKS, TableOptions
from shuffledp.tables.rows import LINE_END, LONGEST

_DECLARED = re.compile(rb'"?sep=([^\r\n])"?[ \t,;]*(?:\r?\n|\Z)', re.IGNORECASE)
_IMPORT_ID = re.compile(rb'\{"{1,2}ImportId"{1,2}:')
_DESCRIBED = 4
"""Rows from the header on in which ImportIds are looked for: names, texts of the questions, ids."""
_FIELD = re.compile(rb'"(?:[^"]|"")*"|[^ \t]+')
_PIECE = 1 << 20


def declared_separator(start: bytes) -> str | None:
    r"""Return the separator that a first line such as ``sep=;`` declares; None without such a line.

    Examples
    --------
    >>> declared_separator(b"sep=;\r\nage;vote\r\n"), declared_separator(b"sep;age\n1;2\n")
    (';', None)
    """
    found = _DECLARED.match(start)
    return found[1].decode("latin-1") if found else None


def agreed_separator(declared: str | None, options: TableOptions, name: str) -> str | None:
    """Return the separator that the file or the caller states; None if neither does.

    Raises
    ------
    InvalidInput
        If they state different ones.
    """
    if declared is not None and options.separator not in (None, declared):
        raise InvalidInput(
            f"the first line of {name} says that {shown(declared)} separates fields, and `separator` says "
            f"{shown(options.separator)}; leave it out, or remove the line"
        )
    return options.separator or declared


def needs_layout(declared: str | None, options: TableOptions) -> bool:
    """Whether the table reader would stumble over the file as it is."""
    return declared is not None or options.skip_lines > 0 or options.header_rows > 1 or options.separator == BLANKS


def laid_out(path: Path, name: str, declared: str | None, options: TableOptions) -> Iterator[bytes]:
    """Yield the table with one header line, and with tabs for blanks between fields where these separate them.

    Parameters
    ----------
    path : Path
        Text in UTF-8, without a mark.
    name : str
        What messages call it.
    declared : str, optional
        What `declared_separator` says.
    options : TableOptions
        How it is written.

    Raises
    ------
    InvalidInput
        If there are fewer lines than are to be left out.
    """
    with path.open("rb") as stream:
        above = max(options.skip_lines, int(declared is not None))  # `skip_lines` counts the line that declares, too
        for line in range(above):
            if not stream.readline(LONGEST):
                raise InvalidInput(f"{name} has {line} lines, of which `skip_lines` leaves no header; skip fewer")
        header = _record(stream)
        while header and not header.strip(LINE_END):
            header = _record(stream)
        for row in range(1, options.header_rows):
            if not _record(stream):
                raise InvalidInput(
                    f"{name} has {row} rows from its header on, and `header_rows` says {options.header_rows}"
                )
        yield from map(_tabbed, [header]) if options.separator == BLANKS else [header]
        yield from map(_tabbed, _records(stream)) if options.separator == BLANKS else _pieces(stream)


def refuse_descriptions(start: bytes, name: str, options: TableOptions) -> None:
    """Refuse a table whose first rows are Qualtrics' descriptions of its columns.

    Parameters
    ----------
    start : bytes
        What the table begins with, after `laid_out`.
    name, options
        As for `laid_out`.

    Raises
    ------
    InvalidInput
        If one of the rows holds ImportIds: these rows would count as people.
    """
    if _IMPORT_ID.search(start) is None:
        return
    stream = io.BytesIO(start)
    for row in range(_DESCRIBED):
        if _IMPORT_ID.search(_record(stream)) and row:
            raise InvalidInput(
                f"row {row} of {name} holds the ImportIds of a survey tool: it describes the columns, as do the rows "
                f"above it, and they are nobody's; say `header_rows = {options.header_rows + row}`"
            )


def blank_columns(header: tuple[str, ...]) -> bool:
    """Whether blanks may separate the columns of a header in which nothing else does."""
    return len(header) == 1 and len(header[0].split()) > 1


def _record(stream: BinaryIO) -> bytes:
    """Read up to the first line end before which the quotes are even in number; the text reader cuts likewise."""
    record = b""
    while line := stream.readline(LONGEST):
        record += line
        if record.count(b'"') % 2 == 0 or len(record) > LONGEST:  # a longer row is refused by whoever counts rows
            break
    return record


def _records(stream: BinaryIO) -> Iterator[bytes]:
    while record := _record(stream):
        yield record


def _tabbed(record: bytes) -> bytes:
    return b"\t".join(_FIELD.findall(record.rstrip(LINE_END))) + b"\n"


def _pieces(stream: BinaryIO) -> Iterator[bytes]:
    while piece := stream.read(_PIECE):
        yield piece
