"""The rows of a text table, looked at once before anything reads them: how many, how long, how many fields.

The table reader fills a row that is too short with nulls and goes on, so that a file cut short in the middle of a row
would pass unseen; it overlooks fields too many where it reads few columns; and a quote that is never closed makes one
row of the rest of the file, which costs it fifty times the file's size in memory. Rows are split here exactly as
there: a record ends at the first newline before which the quotes are even in number, and a field that starts with a
quote runs to its closing quote, ``""`` standing for one quote; a quote anywhere else in a field is a character like
any other.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InvalidInput

LONGEST = 1_000_000
"""Bytes of the longest row that is read."""

QUOTE, NEWLINE = ord('"'), ord("\n")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LINE_END = b"\r\n"
_ABOVE = 20
"""Rows from the top in which a title may end."""
CHUNK = 1 << 22


@dataclass(frozen=True)
class Survey:
    """The size and the header of a text table: number of rows, number of fields, names of the columns.

    Parameters
    ----------
    rows : int
        Rows after the header.
    width : int
        Fields of the header, and of every row; 0 for a file of blank lines.
    header : tuple of str
        Those of the header, as they stand there: the table reader gives a name that stands twice another one.
    """

    rows: int
    width: int
    header: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class TextRows:
    """A CSV or TSV file, seen as rows of fields.

    Parameters
    ----------
    file : Path
        An existing file, not packed.
    separator : str
        The one ASCII character between two fields.
    name : str
        What messages call it.
    """

    file: Path
    separator: str
    name: str

    @cached_property
    def survey(self) -> Survey:
        """Count rows and fields; the file is read once, whatever its size, in pieces.

        Raises
        ------
        InvalidInput
            For the first row that has fewer or more fields than the header, or more than 1,000,000 bytes; it is named,
            counting from 1 after the header.
        """
        found = _Counter(self)
        for block in self._blocks(found):
            found.add(block)
        return Survey(max(found.records - 1, 0), found.width, found.header)

    def first_unreadable(self, encoding: str) -> str | None:
        """Say which row, or the header, is the first that is no text in an encoding; None if there is none."""
        found = _Counter(self)
        for block in self._blocks(found):
            try:
                block.data.tobytes().decode(encoding)
            except UnicodeDecodeError as error:
                row = found.records + int(np.searchsorted(block.ends, error.start, side="right"))
                return f"row {row}" if row else "the header"
            found.records += block.ends.size
        return None

    def _blocks(self, found: _Counter) -> Iterator[_Block]:
        """Cut the file into blocks of whole records, from the header on; the last may do without its newline."""
        started, rest = False, b""
        with self.file.open("rb") as stream:
            while True:
                chunk = stream.read(CHUNK)
                data = rest + chunk
                block = _block(data, last=not chunk)
                rest = data[int(block.ends[-1]) :] if block.ends.size else data
                block = block if started else block.from_header()
                started = started or block.ends.size > 0
                lengths = np.diff(block.ends, prepend=0)
                if lengths.size and int(lengths.max()) > LONGEST:
                    raise self._too_long(found.records + int(np.argmax(lengths > LONGEST)))
                if block.ends.size:
                    yield block
                if len(rest) > LONGEST:
                    raise self._too_long(found.records)
                if not chunk:
                    return

    def _too_long(self, record: int) -> InvalidInput:
        which = f"row {record} of" if record else "the header of"
        return InvalidInput(
            f"{which} {self.name} has more than {LONGEST:,} bytes; close the quote that is left open there, or shorten "
            "what the row holds"
        )


class _Counter:
    """Records and fields counted so far; the first record is the header."""

    def __init__(self, rows: TextRows) -> None:
        self._rows, self._separator = rows, rows.separator.encode()
        self.records, self.width = 0, 0
        self.header: tuple[str, ...] = ()

    def add(self, block: _Block) -> None:
        """Count whole records."""
        fields = self._fields(block)
        if not self.records:
            self.width, self.header = int(fields[0]), _header(block.record(0), self._rows.separator)
        wrong = np.flatnonzero(fields != self.width)
        if wrong.size:
            first = int(wrong[0])
            raise self._ragged(self.records + first, int(fields[first]), block.record(first).rstrip(LINE_END))
        self.records += fields.size

    def _fields(self, block: _Block) -> NDArray[np.int64]:
        """Return the number of fields of each record."""
        separators = np.flatnonzero(block.data == self._separator[0])
        if block.quotes.size == 0:
            return block.per_record(separators) + 1
        inside = np.searchsorted(block.quotes, separators) & 1
        fields = block.per_record(separators[inside == 0]) + 1
        for record in block.with_stray_quotes(self._separator[0]):
            fields[record] = field_count(block.record(record), self._separator)
        return fields

    def _ragged(self, row: int, fields: int, record: bytes) -> InvalidInput:
        blank = not record.strip(LINE_END)
        if blank:
            found = f"row {row} of {self._rows.name} is a blank line, the header has {_counted(self.width)}"
        else:
            found = f"row {row} of {self._rows.name} has {_counted(fields)}, the header has {self.width}"
        above = ""
        if self.width == 1 and row <= _ABOVE:
            above = "; if the first lines are a title and the header comes later, say how many with `skip_lines`"
        if fields < self.width:  # whoever takes part must not depend on the record: no advice to leave out a row
            empty = " or, if it stands for nobody, delete the line" if blank else ""
            return InvalidInput(f"{found}; the file may be cut short: complete the row from its source{empty}{above}")
        if b"\r" in record and b'"' not in record:
            return InvalidInput(f"{found}; a CR without LF stands in it: save the file with one kind of line ends")
        mark = {"\t": "tab", ",": "comma", ";": "semicolon"}.get(self._rows.separator, repr(self._rows.separator))
        return InvalidInput(
            f"{found}; put quotes around an entry that holds a {mark}, or remove what is too much{above}"
        )


@dataclass(frozen=True, eq=False)
class _Block:
    """Whole records, one after the other.

    Parameters
    ----------
    data : ndarray of uint8
        The records.
    quotes : ndarray of int
        Where quotes stand.
    ends : ndarray of int
        Where each record ends, its newline included.
    """

    data: NDArray[np.uint8]
    quotes: NDArray[np.int64]
    ends: NDArray[np.int64]

    def record(self, which: int) -> bytes:
        """Return the bytes of one record."""
        start = 0 if which == 0 else int(self.ends[which - 1])
        return self.data[start : int(self.ends[which])].tobytes()

    def per_record(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count how many of these ascending places each record holds."""
        return np.diff(np.searchsorted(places, self.ends), prepend=0)

    def from_header(self) -> _Block:
        """Leave out blank lines before the header."""
        for record in range(self.ends.size):
            if self.record(record).removeprefix(BYTE_ORDER_MARK).strip(LINE_END):
                if record == 0:
                    return self
                start = int(self.ends[record - 1])
                return _Block(self.data[start:], self.quotes[self.quotes >= start] - start, self.ends[record:] - start)
        return _Block(self.data[:0], self.quotes[:0], self.ends[:0])

    def with_stray_quotes(self, separator: int) -> list[int]:
        """Return records in which a quote opens elsewhere than at the start of a field.

        Such a quote is a plain character.
        """
        opening = self.quotes[0::2]
        before = self.data[np.maximum(opening - 1, 0)]
        fine = (opening == 0) | (before == separator) | (before == NEWLINE) | (before == QUOTE)
        stray = opening[~fine & ~((opening == 3) & (self.data[:3].tobytes() == BYTE_ORDER_MARK))]
        return np.unique(np.searchsorted(self.ends, stray, side="right")).tolist()


def _block(data: bytes, *, last: bool) -> _Block:
    """Find the records of some bytes; what follows the last of them is not part of the block."""
    array = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(array == NEWLINE) + 1
    quotes = np.flatnonzero(array == QUOTE) if b'"' in data else np.empty(0, np.int64)
    if quotes.size:
        ends = ends[np.searchsorted(quotes, ends) & 1 == 0]
    if last and array.size > (int(ends[-1]) if ends.size else 0):
        ends = np.append(ends, array.size)
    end = int(ends[-1]) if ends.size else 0
    return _Block(array[:end], quotes[quotes < end], ends)


def field_count(record: bytes, separator: bytes) -> int:
    """Count the fields of one record.

    Parameters
    ----------
    record : bytes
        The record, with or without its line end.
    separator : bytes
        One character.
    """
    # With a separator put before the record every field starts with one, and a search for two characters is fast.
    quoted = re.compile(re.escape(separator) + rb'"[^"]*(?:""[^"]*)*"')
    return quoted.sub(separator, separator + record).count(separator)


def _header(record: bytes, separator: str) -> tuple[str, ...]:
    """Split the header; what is no text in it is marked as such."""
    text = record.removeprefix(BYTE_ORDER_MARK).decode(errors="replace").rstrip("\r\n")
    try:
        return tuple(next(csv.reader([text], delimiter=separator), ()))
    except csv.Error:  # what the table reader calls the columns must do
        return ()


def _counted(fields: int) -> str:
    return f"{fields} field" if fields == 1 else f"{fields} fields"
