"""Rows of a text table that have another number of fields than its header.

The table reader fills a row that is too short with nulls and goes on, so that a file cut short in the middle
of a row would pass unseen. Rows are split here exactly as there: a record ends at the first newline before which
the quotes are even in number, and a field that starts with a quote runs to its closing quote, ``""`` standing
for one quote; a quote anywhere else in a field is a character like any other.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from shuffledp.errors import InvalidInput

GZIP = b"\x1f\x8b"
PACKED = (b"\x28\xb5\x2f\xfd", b"x\x01", b"x\x9c", b"x\xda")
"""First bytes of zstd and of zlib, which the table reader unpacks and this module cannot."""

QUOTE = b'"'
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LINE_END = b"\r\n"
CHUNK = 1 << 20


@dataclass(frozen=True)
class TextRows:
    """A CSV or TSV file, seen as rows of fields.

    Parameters
    ----------
    file : Path
        An existing file; it may be packed with gzip.
    separator : str
        The one ASCII character between two fields.
    """

    file: Path
    separator: str

    def refuse_short(self, width: int) -> None:
        """Refuse the first row that is not as long as the header, in a file known to have none that is longer.

        One count settles most files: no row has more than `width` - 1 separators, so if the separators outside
        quotes add up to that many a row, none is short. Else, as for a quote inside a field that hides a
        separator from this count, every row is looked at.

        Parameters
        ----------
        width : int
            Number of fields of the header, at least 1.

        Raises
        ------
        InvalidInput
            What `ragged` finds.
        """
        with self._opened() as stream:
            settled = _adds_up(stream, self.separator.encode(), width)
        error = None if settled else self.ragged(width)
        if error is not None:
            raise error

    def ragged(self, width: int) -> InvalidInput | None:
        """Look at every row in turn for the first that is shorter or longer than the header.

        Parameters
        ----------
        width : int
            Number of fields of the header, at least 1.

        Returns
        -------
        InvalidInput or None
            Names that row, counted from 1 after the header, its number of fields and that of the header; None if
            there is none.

        Raises
        ------
        InvalidInput
            If the file is packed otherwise than with gzip, so that its rows cannot be seen.
        """
        with self._opened() as stream:
            for row, (fields, record) in enumerate(_rows(stream, self.separator.encode()), start=1):
                if fields != width:
                    return InvalidInput(self._sentence(row, fields, width, not record.strip(LINE_END)))
        return None

    def _opened(self) -> BinaryIO:
        with self.file.open("rb") as stream:
            start = stream.read(4)
        if start.startswith(PACKED):
            raise InvalidInput(f"{self.file} is packed, so its rows cannot be checked one by one; unpack it first")
        if start.startswith(GZIP):
            return cast(BinaryIO, gzip.open(self.file, "rb"))
        return self.file.open("rb")

    def _sentence(self, row: int, fields: int, width: int, blank: bool) -> str:
        if blank:
            found = f"row {row} of {self.file} is a blank line, the header has {_counted(width)}"
        else:
            found = f"row {row} of {self.file} has {_counted(fields)}, the header has {width}"
        if fields < width:
            return f"{found}; the file may be cut short: complete the row or remove it"
        mark = "tab" if self.separator == "\t" else "comma"
        return f"{found}; put quotes around an entry that holds a {mark}, or remove what is too much"


def _counted(fields: int) -> str:
    return f"{fields} field" if fields == 1 else f"{fields} fields"


def _adds_up(stream: BinaryIO, separator: bytes, width: int) -> bool:
    """Whether outside quotes there are `width` - 1 separators a line on average."""
    lines = separators = quotes = 0
    start, end = True, b"\n"
    while chunk := stream.read(CHUNK):
        if start:
            chunk, start = chunk.removeprefix(BYTE_ORDER_MARK).lstrip(LINE_END), False
        end = chunk[-1:]
        pieces = chunk.split(QUOTE)
        outside = QUOTE.join(pieces[quotes & 1 :: 2])
        quotes += len(pieces) - 1
        lines += outside.count(b"\n")
        separators += outside.count(separator)
    if end == separator:  # the table reader overlooks one separator too many there; it could make up for a short row
        return False
    lines += end != b"\n"  # the last line may do without its newline
    return separators == lines * (width - 1)


def _rows(stream: BinaryIO, separator: bytes) -> Iterator[tuple[int, bytes]]:
    """Each row after the header, with its number of fields."""
    # With a separator put before the row every field starts with one, and a search for two characters is fast.
    quoted = re.compile(re.escape(separator) + rb'"[^"]*(?:""[^"]*)*"')
    records = _records(stream)
    for record in records:  # the header is the first line that is not blank
        if record.removeprefix(BYTE_ORDER_MARK).strip(LINE_END):
            break
    for record in records:
        if QUOTE in record:
            yield quoted.sub(separator, separator + record).count(separator), record
        else:
            yield record.count(separator) + 1, record


def _records(stream: BinaryIO) -> Iterator[bytes]:
    """Lines, joined to those that follow while the number of quotes is odd."""
    pieces: list[bytes] = []
    odd = 0
    for line in stream:
        if not pieces and QUOTE not in line:
            yield line
            continue
        pieces.append(line)
        odd ^= line.count(QUOTE) & 1
        if not odd:
            yield b"".join(pieces)
            pieces.clear()
    if pieces:
        yield b"".join(pieces)
