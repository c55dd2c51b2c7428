"""Files as people have them: known by their content, unpacked, in UTF-8, their separator found out; and their rows.

A packed file, one in another encoding, and standard input are copied to a temporary file first, since a table is read
twice: its budgets before its records. The copy has no name where the system allows it, else one that only its owner may
read; it is gone when the table is.

The rows of a text table are looked at once before anything reads them: how many, how long, how many fields. The table
reader fills a row that is too short with nulls and goes on, so that a file cut short in the middle of a row would pass
unseen; it overlooks fields too many where it reads few columns; and a quote that is never closed makes one row of the
rest of the file, which costs it fifty times the file's size in memory. Rows are split here exactly as there: a record
ends at the first newline before which the quotes are even in number, and a field that starts with a quote runs to its
closing quote, ``""`` standing for one quote; a quote anywhere else in a field is a character like any other.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import difflib
import gzip
import io
import re
import sys
import tempfile
import weakref
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from shuffledp import whole_files
from shuffledp.errors import InvalidInput, named, path_shown, shown
from shuffledp.tables.options import BLANKS, TableOptions

LONGEST = 1_000_000
"""Largest length, in bytes, of a row."""

QUOTE, NEWLINE, RETURN = ord('"'), ord("\n"), ord("\r")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LINE_END = b"\r\n"
_ABOVE = 20
"""Number of rows from the top within which a title may end."""
CHUNK = 1 << 22


@dataclass(frozen=True)
class Survey:
    """The size and the header of a text table: number of rows, number of fields, names of the columns.

    Parameters
    ----------
    rows : int
        Number of rows after the header.
    width : int
        Number of fields of the header, and of every row; 0 for a file of blank lines.
    header : tuple of str
        The fields of the header as written; the table reader renames a name that occurs twice.
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
        Name of the file in messages.
    """

    file: Path
    separator: str
    name: str

    @cached_property
    def survey(self) -> Survey:
        """Return the numbers of rows and fields; the file is read once, in pieces.

        Raises
        ------
        InvalidInput
            For the first row that has fewer or more fields than the header, a CR outside quotes that ends no line as
            LF does, or more than 1,000,000 bytes; it is named, counting from 1 after the header.
        """
        counter = _Counter(self)
        for block in self._blocks(counter):
            counter.add(block)
        return Survey(max(counter.records - 1, 0), counter.width, counter.header)

    def first_unreadable(self, encoding: str) -> str | None:
        """Return words for the first row, or the header, that is not text in an encoding; None if there is none."""
        counter = _Counter(self)
        for block in self._blocks(counter):
            try:
                block.data.tobytes().decode(encoding)
            except UnicodeDecodeError as error:
                row = counter.records + int(np.searchsorted(block.ends, error.start, side="right"))
                return f"row {row}" if row else "the header"
            counter.records += block.ends.size
        return None

    def _blocks(self, counter: _Counter) -> Iterator[_Block]:
        """Yield the file in blocks of whole records, from the header on; the last record may lack its newline."""
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
                    long = int(np.argmax(lengths > LONGEST))
                    raise self._too_long(counter.records + long, block.record(long))
                if block.ends.size:
                    yield block
                if len(rest) > LONGEST:
                    raise self._too_long(counter.records, rest)
                if not chunk:
                    return

    def _too_long(self, record: int, start: bytes) -> InvalidInput:
        if _LONE_RETURN.search(_unquoted(start, self.separator.encode())):
            return two_line_ends(self.which(record))
        return InvalidInput(
            f"{self.which(record)} has more than {LONGEST:,} bytes; close the quote that is left open there, or "
            "shorten what the row holds"
        )

    def which(self, record: int) -> str:
        """Return words for a record of this number, 0 for the header."""
        return f"{f'row {record}' if record else 'the header'} of {self.name}"


class _Counter:
    """The numbers of records and fields so far; the first record is the header."""

    def __init__(self, rows: TextRows) -> None:
        self._rows, self._separator = rows, rows.separator.encode()
        self.records, self.width = 0, 0
        self.header: tuple[str, ...] = ()

    def add(self, block: _Block) -> None:
        """Count the records of a block, and refuse one with two line ends or another number of fields."""
        if (two := block.with_lone_return(self._separator)) is not None:
            raise two_line_ends(self._rows.which(self.records + two))
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
            problem = f"row {row} of {self._rows.name} is a blank line, the header has {_counted(self.width)}"
        else:
            problem = f"row {row} of {self._rows.name} has {_counted(fields)}, the header has {self.width}"
        above = ""
        if self.width == 1 and row <= _ABOVE:
            above = "; if the first lines are a title and the header comes later, say how many with `skip_lines`"
        if fields < self.width:  # whoever takes part must not depend on the record: no advice to leave out a row
            empty = " or, if it stands for nobody, delete the line" if blank else ""
            # told by the header alone, which is public: a line about a record must not depend on its text
            if self._separator == b"\t" and len(" ".join(self.header).split()) > self.width:
                empty += "; if blanks and tabs separate the columns, say `separator = 'blanks'`"
            return InvalidInput(f"{problem}; the file may be cut short: complete the row from its source{empty}{above}")
        mark = {"\t": "tab", ",": "comma", ";": "semicolon"}.get(self._rows.separator, repr(self._rows.separator))
        return InvalidInput(
            f"{problem}; put quotes around an entry that holds a {mark}, or remove what is too much{above}"
        )


@dataclass(frozen=True, eq=False)
class _Block:
    """Consecutive whole records of a file.

    Parameters
    ----------
    data : ndarray of uint8
        The records.
    quotes : ndarray of int
        Positions of quotes.
    ends : ndarray of int
        Positions after each record and its newline.
    """

    data: NDArray[np.uint8]
    quotes: NDArray[np.int64]
    ends: NDArray[np.int64]

    def record(self, which: int) -> bytes:
        """Return the bytes of one record."""
        start = 0 if which == 0 else int(self.ends[which - 1])
        return self.data[start : int(self.ends[which])].tobytes()

    def per_record(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many of these ascending positions each record holds."""
        return np.diff(np.searchsorted(places, self.ends), prepend=0)

    def from_header(self) -> _Block:
        """Return the block without blank lines before the header."""
        for record in range(self.ends.size):
            if self.record(record).removeprefix(BYTE_ORDER_MARK).strip(LINE_END):
                if record == 0:
                    return self
                start = int(self.ends[record - 1])
                return _Block(self.data[start:], self.quotes[self.quotes >= start] - start, self.ends[record:] - start)
        return _Block(self.data[:0], self.quotes[:0], self.ends[:0])

    def with_stray_quotes(self, separator: int) -> list[int]:
        """Return the indices of records in which a quote opens elsewhere than at the start of a field.

        Such a quote is a plain character.
        """
        opening = self.quotes[0::2]
        before = self.data[np.maximum(opening - 1, 0)]
        fine = (opening == 0) | (before == separator) | (before == NEWLINE) | (before == QUOTE)
        stray = opening[~fine & ~((opening == 3) & (self.data[:3].tobytes() == BYTE_ORDER_MARK))]
        return np.unique(np.searchsorted(self.ends, stray, side="right")).tolist()

    def with_lone_return(self, separator: bytes) -> int | None:
        """Return the index of the first record with a CR outside quotes before neither CR nor LF; None without one."""
        returns = np.flatnonzero(self.data == RETURN)
        after = self.data.take(returns + 1, mode="clip")
        lone = returns[(after != NEWLINE) & ((after != RETURN) | (returns == self.data.size - 1))]
        if lone.size == 0:
            return None
        outside = lone[np.searchsorted(self.quotes, lone) & 1 == 0]
        stray = self.with_stray_quotes(separator[0])
        candidates = np.setdiff1d(np.searchsorted(self.ends, outside, side="right"), stray)[:1].tolist()
        candidates += [which for which in stray if _LONE_RETURN.search(_unquoted(self.record(which), separator))][:1]
        return min(candidates, default=None)


def _block(data: bytes, *, last: bool) -> _Block:
    """Return the block of the complete records in some bytes."""
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
    """Return the number of fields of one record.

    Parameters
    ----------
    record : bytes
        The record, with or without its line end.
    separator : bytes
        One character.
    """
    return _unquoted(record, separator).count(separator)


def _unquoted(record: bytes, separator: bytes) -> bytes:
    """Return a record with a separator before each field, and without its quoted fields."""
    # With a separator put before the record every field starts with one, and a search for two characters is fast.
    quoted = re.compile(re.escape(separator) + rb'"[^"]*(?:""[^"]*)*"')
    return quoted.sub(separator, separator + record)


_LONE_RETURN = re.compile(rb"\r(?![\r\n])")


def two_line_ends(where: str) -> InvalidInput:
    """Return the error for a CR outside quotes that stands elsewhere than before an LF."""
    return InvalidInput(
        f"{where} holds a CR without LF outside quotes, and LF ends a line of the file, too: rows would be lost; save "
        "it with one kind of line ends, or put quotes around an entry that holds one"
    )


def _header(record: bytes, separator: str) -> tuple[str, ...]:
    """Return the fields of the header, with bytes that are not text replaced."""
    text = record.removeprefix(BYTE_ORDER_MARK).decode(errors="replace").rstrip("\r\n")
    try:
        return tuple(next(csv.reader([text], delimiter=separator), ()))
    except csv.Error:  # what the table reader calls the columns must do
        return ()


def _counted(fields: int) -> str:
    return f"{fields} field" if fields == 1 else f"{fields} fields"


# Lines of a text file that are nobody's: `sep=;`, what stands above the header, and further rows of the header.
#
# The table reader is given a copy without them, so that it, and whoever counts rows before it, see one header line.
# What stands there is found out only where it cannot be a record: `sep=` on the first line, and the row of ImportIds
# that one survey tool writes. All else is said (`skip_lines`, `header_rows`): a description of a column looks like
# any record.

_DECLARED = re.compile(rb'"?sep=([^\r\n])"?[ \t,;]*(?:\r?\n|\Z)', re.IGNORECASE)
_IMPORT_ID = re.compile(rb'\{"{1,2}ImportId"{1,2}:')
_DESCRIBED = 4
"""Number of rows, from the header on, in which ImportIds are searched: names, texts of the questions, ids."""
_FIELD = re.compile(rb'"(?:[^"]|"")*"|[^ \t]+')
_PIECE = 1 << 20


def declared_separator(start: bytes) -> str | None:
    r"""Return the separator that a first line such as ``sep=;`` declares; None without such a line.

    Examples
    --------
    >>> declared_separator(b"sep=;\r\nage;vote\r\n"), declared_separator(b"sep;age\n1;2\n")
    (';', None)
    """
    match = _DECLARED.match(start)
    return match[1].decode("latin-1") if match else None


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
    """Return whether the table reader would misread the file as it is."""
    return declared is not None or options.skip_lines > 0 or options.header_rows > 1 or options.separator == BLANKS


def laid_out(path: Path, name: str, declared: str | None, options: TableOptions) -> Iterator[bytes]:
    """Yield the table with one header line, and with tabs for blanks between fields where these separate them.

    Parameters
    ----------
    path : Path
        Text in UTF-8, without a byte-order mark.
    name : str
        Name of the file in messages.
    declared : str, optional
        The separator from `declared_separator`.
    options : TableOptions
        Format of the file.

    Raises
    ------
    InvalidInput
        If the file has fewer lines than are to be skipped, or a CR without LF stands in one that is.
    """
    with path.open("rb") as stream:
        above = max(options.skip_lines, int(declared is not None))  # `skip_lines` counts the line that declares, too
        for line in range(above):
            if not (skipped := stream.readline(LONGEST)):
                raise InvalidInput(f"{name} has {line} lines, of which `skip_lines` leaves no header; skip fewer")
            if _LONE_RETURN.search(_outside(skipped)):
                raise two_line_ends(f"line {line + 1} of {name}, which is skipped,")
        header = _record(stream)
        while header and not header.strip(LINE_END):
            header = _record(stream)
        for row in range(1, options.header_rows):
            if not (skipped := _record(stream)):
                raise InvalidInput(
                    f"`header_rows` is {options.header_rows}, but {name} has only {row} rows from its header on; state "
                    f"at most {row}"
                )
            if _LONE_RETURN.search(_outside(skipped)):
                raise two_line_ends(f"row {row + 1} of the header of {name}")
        yield from map(_tabbed, [header]) if options.separator == BLANKS else [header]
        yield from map(_tabbed, _records(stream)) if options.separator == BLANKS else _pieces(stream)


def refuse_descriptions(start: bytes, name: str, options: TableOptions) -> None:
    """Refuse a table whose first rows are Qualtrics' descriptions of its columns.

    Parameters
    ----------
    start : bytes
        First bytes of the table, after `laid_out`.
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
    """Return whether blanks may separate the columns of a header without any other separator."""
    return len(header) == 1 and len(header[0].split()) > 1


def _record(stream: BinaryIO) -> bytes:
    """Return bytes up to the first line end with an even number of quotes before it, as the text reader does."""
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


STANDARD_INPUT = "-"
SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
CANDIDATES = (",", ";", "\t", "|")
"""Separators that can be detected."""
PARQUET = (".parquet", ".pq")
PARQUET_MAGIC = b"PAR1"
GZIP, ZSTD, ZIP = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04"
ZLIB = (b"x\x01", b"x\x9c", b"x\xda")
UTF_32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
FOREIGN = {
    b"%PDF": "a PDF",
    b"SQLite format 3": "a database",
    b"\x89PNG": "a picture",
}
JSON_START = re.compile(rb"(\xef\xbb\xbf)?\s*(\[\s*\{|\{\s*\")")
"""Start of a JSON document, a list of objects or an object, with which no header of a table begins."""
_SAMPLE = 1 << 16
_NAMELESS = Path("/proc/self/fd")


@dataclass(frozen=True, eq=False)
class Opened:
    """A file that can be read any number of times.

    Parameters
    ----------
    path : Path
        The file, or a temporary copy: unpacked, and UTF-8 if it is text.
    name : str
        Name of the file in messages.
    separator : str or None
        The character between two fields of a text file; None for Parquet.
    copy : _Copy, optional
        Object with which a temporary copy disappears, or which knows when the file was written.
    """

    path: Path
    name: str
    separator: str | None
    copy: _Copy | None = None

    def check(self) -> None:
        """Refuse a file that was rewritten or replaced since it was opened.

        Raises
        ------
        InvalidInput
            If its length, its time or its place on the disk has changed.
        """
        if self.copy is not None and self.copy.written != self.copy.now():
            raise InvalidInput(
                f"{self.name} was written anew while it was read, so nothing is released; leave it unchanged until the "
                "command ends"
            )


def open_file(source: Path | str, options: TableOptions) -> Opened:
    """Return an opened file, or standard input, with its format detected.

    Parameters
    ----------
    source : Path, or "-"
        The file.
    options : TableOptions
        Format of the file, where it is given.

    Raises
    ------
    InvalidInput
        If it is missing, empty, or neither text nor Parquet.
    """
    file = Path(source) if source != STANDARD_INPUT else None
    name = path_shown(file) if file is not None else "standard input"
    try:
        copy = _Copy(_checked(file)) if file is not None else _spooled(_pieces(sys.stdin.buffer))
        start = _beginning(copy.path, name)
        if start.startswith((GZIP, ZSTD, *ZLIB)):
            copy = _spooled(_unpacked(copy.path, start))
            start = _beginning(copy.path, name)
        if start.startswith(PARQUET_MAGIC):
            options.refuse_for_text(f"{name} is Parquet")
            return Opened(copy.path, name, None, copy)
        encoding = _encoding(start, options.encoding, name)
        _refuse_foreign(start, name, file, encoding)
        if codecs.lookup(encoding).name not in ("utf-8", "utf-8-sig"):
            copy = _spooled(_in_utf_8(copy.path, encoding, name))
            start = _beginning(copy.path, name)
        marks = _marks(start)
        declared = declared_separator(start[marks * len(BYTE_ORDER_MARK) :])
        if marks > (not needs_layout(declared, options)) or _old_lines(start):
            copy = _spooled(_plain(copy.path, marks, name))
            start = _beginning(copy.path, name)
        _refuse_line_ends(start, name)
        declared = declared_separator(start)
        stated = agreed_separator(declared, options, name)
        if needs_layout(declared, options):
            copy = _spooled(laid_out(copy.path, name, declared, options))
            start = _beginning(copy.path, name)
            _refuse_line_ends(start, name)
        refuse_descriptions(start, name, options)
    except FileNotFoundError:
        raise InvalidInput(f"table {name} does not exist; {_similar_file(Path(source))}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise unreadable(name, error) from None
    separator = "\t" if stated == BLANKS else stated or _sniffed(start, SEPARATORS.get(_suffix(file), ","))
    return Opened(copy.path, name, separator, copy)


def unreadable(name: str, error: Any) -> InvalidInput:
    """Return the error, of one line, for a failure of polars or the operating system."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    first = named(" ".join(reason.strip().splitlines()[0].split())) if reason.strip() else type(error).__name__
    return InvalidInput(f"cannot read {name} as a table ({first.rstrip('.')}); it may be cut short or no table at all")


# ------------------------------------------------------------------ copies


class _Copy:
    """A file readable by its owner alone: a temporary one deleted with this object, or an existing one."""

    def __init__(self, path: Path, file: IO[bytes] | None = None) -> None:
        self.path = path
        self._mine = file is not None
        if file is not None:
            weakref.finalize(self, _close, file)
        self.written = self.now()

    def now(self) -> tuple[int, ...]:
        """Return length, time and place on the disk of a file that others may write; () for a temporary one."""
        if self._mine or not self.path.is_file():
            return ()
        status = self.path.stat()
        return status.st_size, status.st_mtime_ns, status.st_ino, status.st_dev


def _close(file: IO[bytes]) -> None:
    """Close a temporary file, which deletes it; on Windows it must be removed separately."""
    file.close()
    if whole_files.WINDOWS:
        with contextlib.suppress(OSError):  # the table reader may still map it
            Path(file.name).unlink()


def _spooled(pieces: Iterator[bytes]) -> _Copy:
    """Return a temporary copy of the pieces, which nobody else can open."""
    if not whole_files.WINDOWS and _NAMELESS.is_dir():
        file = cast(IO[bytes], tempfile.TemporaryFile("w+b"))  # noqa: SIM115 - it lives as long as the table
        copy = _Copy(_NAMELESS / str(file.fileno()), file)
    else:
        file = cast(IO[bytes], tempfile.NamedTemporaryFile("w+b", prefix="shuffledp-", delete=not whole_files.WINDOWS))  # noqa: SIM115
        copy = _Copy(Path(file.name), file)
    for piece in pieces:
        file.write(piece)
    file.flush()
    return copy


def _checked(file: Path) -> Path:
    if file.is_dir():
        raise InvalidInput(f"{path_shown(file)} is a directory; name one CSV, TSV or Parquet file")
    return file


def _beginning(path: Path, name: str) -> bytes:
    with path.open("rb") as stream:
        start = stream.read(_SAMPLE)
    if not start:
        raise InvalidInput(f"table {name} is empty; give a header line and one row per user")
    return start


def _unpacked(path: Path, start: bytes) -> Iterator[bytes]:
    """Yield the unpacked content of a file."""
    if start.startswith(ZSTD):
        yield from _from_zstd(path)
    elif start.startswith(GZIP):
        with gzip.open(path) as stream:
            yield from _pieces(cast(BinaryIO, stream))
    else:
        unpacker = zlib.decompressobj()
        with path.open("rb") as stream:
            for piece in _pieces(stream):
                yield unpacker.decompress(piece)
        if not unpacker.eof:
            raise EOFError("it ends too early")


def _from_zstd(path: Path) -> Iterator[bytes]:
    """Yield text unpacked line by line through polars, as Python has no zstd before 3.14."""
    import polars as pl

    try:
        lines = pl.scan_csv(
            path, separator="\x01", quote_char=None, has_header=False, infer_schema=False, new_columns=["line"]
        )
        for batch in lines.collect_batches(chunk_size=1 << 16, lazy=True):
            yield "\n".join([*(line or "" for line in batch["line"].to_list()), ""]).encode()
    except pl.exceptions.PolarsError as error:
        raise InvalidInput(
            f"a file packed with zstd must hold UTF-8 text ({named(str(error))}); unpack it first"
        ) from None


def _in_utf_8(path: Path, encoding: str, name: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)()
    with path.open("rb") as stream:
        try:
            for piece in _pieces(stream):
                yield decoder.decode(piece).encode()
            yield decoder.decode(b"", final=True).encode()
        except (UnicodeError, LookupError):
            raise InvalidInput(f"{name} is not {encoding} text; say how it is encoded with `encoding`") from None


# ------------------------------------------------------------------ content


def _refuse_foreign(start: bytes, name: str, file: Path | None, encoding: str) -> None:
    if _suffix(file) in PARQUET:
        raise InvalidInput(f"{name} is not a Parquet file (no PAR1 mark); export the table again")
    for magic, kind in FOREIGN.items():
        if start.startswith(magic):
            raise InvalidInput(f"{name} is {kind}, not a table of text or Parquet; export it as CSV")
    if start.startswith(ZIP):
        raise InvalidInput(
            f"{name} is a zip archive, or a spreadsheet, which is one; unzip it and name the table that was inside, or "
            "export the spreadsheet as CSV"
        )
    if JSON_START.match(start):
        raise InvalidInput(f"{name} is JSON, not a table of text or Parquet; export it as CSV")
    if b"\0" in start and codecs.lookup(encoding).name in ("utf-8", "utf-8-sig"):
        if _wide(start):
            raise InvalidInput(
                f"{name} is text in an encoding without a mark; say how it is encoded, such as `encoding = 'utf-16-le'`"
            )
        raise InvalidInput(f"{name} is neither text nor Parquet; export it as CSV")


def _wide(start: bytes) -> bool:
    """Return whether bytes look like Latin text with two or four bytes a character: every second one is 0."""
    letters = start.replace(b"\0", b"")
    text = sum(byte in b"\t\r\n" or 32 <= byte < 127 for byte in letters)
    zeros = [start[side::2].count(0) for side in (0, 1)]
    return text >= 0.9 * len(letters) and max(zeros) >= 0.45 * len(start) and min(zeros) <= 0.3 * len(start)


def _encoding(start: bytes, stated: str | None, name: str) -> str:
    """Return the encoding that is stated or that a byte-order mark shows, else UTF-8.

    The mark of UTF-32 begins as that of UTF-16.
    """
    kinds = {"utf-32": UTF_32, "utf-16": UTF_16, "utf-8": (BYTE_ORDER_MARK,)}
    marked = next((kind for kind, marks in kinds.items() if start.startswith(marks)), None)
    if marked and stated and not codecs.lookup(stated).name.startswith(marked):
        raise InvalidInput(f"{name} begins with the mark of {marked}, and `encoding` says {stated}; leave it out")
    return stated or marked or "utf-8"


def _outside(text: bytes) -> bytes:
    """Return text without what stands in quotes; the last quote may be open."""
    return re.sub(rb'"[^"]*(?:"|\Z)', b"", text)


def _refuse_line_ends(start: bytes, name: str) -> None:
    """Refuse text whose lines end with U+0085, as on mainframes, or with U+2028: all of it stands in its first line."""
    first = _outside(start).lstrip(LINE_END).partition(b"\n")[0]
    for end in ("\x85", "\u2028"):
        if end.encode() in first:
            raise InvalidInput(
                f"U+{ord(end):04X} ends a line within the first line of {name}; save it with LF or CR LF at the ends "
                "of its lines"
            )


def _marks(start: bytes) -> int:
    """Return the number of byte-order marks at the start; programs that read one as text add another."""
    count = 0
    while start.startswith(BYTE_ORDER_MARK, count * len(BYTE_ORDER_MARK)):
        count += 1
    return count


def _old_lines(start: bytes) -> bool:
    """Return whether lines end with CR alone, as on old Apple computers and from some spreadsheets.

    An entry in quotes may hold line ends of its own.
    """
    outside = _outside(start.removesuffix(b"\r") if len(start) == _SAMPLE else start)  # an LF may follow
    return b"\r" in outside and b"\n" not in outside


def _plain(path: Path, marks: int, name: str) -> Iterator[bytes]:
    """Yield text without its byte-order marks, and with usual line ends; refuse an LF among lines that end with CR."""
    quotes = 0
    with path.open("rb") as stream:
        start = stream.read(_SAMPLE)
        old, first = _old_lines(start), start[marks * len(BYTE_ORDER_MARK) :]
        for piece in chain([first], _pieces(stream)):
            if old and b"\n" in _outside(b'"' * (quotes % 2) + piece):
                raise two_line_ends(name)
            quotes += piece.count(b'"')
            yield piece.replace(b"\r", b"\n") if old else piece


def _suffix(file: Path | None) -> str:
    """Return the suffix of a file name that shows the format, before any suffix of packing."""
    parts = [part.lower() for part in file.suffixes] if file is not None else []
    while parts and parts[-1] in (".gz", ".zst", ".zz"):
        parts.pop()
    return parts[-1] if parts else ""


def _sniffed(start: bytes, usual: str) -> str:
    """Return the separator that splits the first rows into the same number of fields, at least two.

    Otherwise return the one in the header.
    """
    records = [record for record in start.removeprefix(BYTE_ORDER_MARK).split(b"\n") if record.strip(LINE_END)]
    records = records[:-1] if len(records) > 1 and len(start) == _SAMPLE else records
    order = (usual, *(mark for mark in CANDIDATES if mark != usual))
    widths = {mark: [field_count(record, mark.encode()) for record in records[:50]] for mark in order}
    even = [mark for mark in order if widths[mark] and len(set(widths[mark])) == 1 and widths[mark][0] > 1]
    return max(even or order, key=lambda mark: widths[mark][0] if widths[mark] else 0)


def _similar_file(file: Path) -> str:
    try:
        near = difflib.get_close_matches(file.name, [entry.name for entry in file.parent.iterdir()], n=1)
    except OSError:
        near = []
    return f"did you mean {path_shown(file.with_name(near[0]))}?" if near else "check the path"
