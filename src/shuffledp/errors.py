"""Every error the library raises on purpose, and how messages show values; and the package's extras.

    ShuffleDPError
    ├── InvalidInput         a value breaks a stated rule (also a ValueError)
    │   └── BadEntry         an entry of a data row does; the message does not show the entry
    ├── OutOfRegime          a theorem's hypotheses do not fit the question
    ├── NotConverged         a numerical search or sum could not be certified
    └── InconsistentBounds   an upper bound fell below a certified lower bound: a bug in shuffledp

A message is one line: what is wrong, the value, what to do.

Extras are the package's optional dependencies: which module belongs to which, and how to install one.
"""

from __future__ import annotations

import html
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

JOINERS = "\u200c\u200d"
"""The zero-width non-joiner and joiner of Persian, Indic scripts and emoji."""

LONGEST_ENTRY = 80
"""Largest number of characters of an entry that a message shows."""

LONGEST_PATH = 200
"""Largest number of characters of a path that a message shows."""


def shown(value: object) -> str:
    """Return a value as an error message shows it: its Python `repr` on one line, cut to 80 characters.

    Parameters
    ----------
    value : object
        The value as it was given; a NumPy scalar is shown as the plain number.

    Examples
    --------
    >>> shown("yes"), len(shown("y" * 1000))
    ("'yes'", 80)
    """
    plain = value.item() if getattr(value, "ndim", None) == 0 else value  # type: ignore[attr-defined]
    if isinstance(plain, str | bytes):
        plain = plain[: 2 * LONGEST_ENTRY]
    elif isinstance(plain, list | tuple) and len(plain) > LONGEST_ENTRY:  # no more of it would be shown
        plain = plain[:LONGEST_ENTRY]
    try:
        text = " ".join(repr(plain).split())
    except ValueError:  # Python writes no whole number of more than 4,300 digits
        text = "a whole number of more than 4,300 digits"
    return text if len(text) <= LONGEST_ENTRY else text[: LONGEST_ENTRY - 3] + "..."


def printable(text: str, kept: str = "") -> str:
    r"""Return a text without control characters and other invisible ones, which a terminal or a page would obey.

    Characters that change the direction of writing are left out as well; the two joiners that some scripts need stay.
    Line ends and tabs become blanks.

    Parameters
    ----------
    text : str
        A text that an untrusted party may have chosen, such as a name.
    kept : str
        Characters that are kept in any case.

    Examples
    --------
    >>> printable("a\x1b[2Jb\u202ec\nd")
    'a[2Jbc d'
    """
    if text.isprintable():
        return text
    stay = kept + JOINERS
    letters = (c for c in text if c.isprintable() or c.isspace() or c in stay)
    return "".join(" " if c.isspace() and c not in stay else c for c in letters)


def named(text: str) -> str:
    """Return a name as an error message shows it without quotes: made `printable` and cut to 80 characters."""
    plain = printable(text[: 2 * LONGEST_ENTRY])
    return plain if len(plain) <= LONGEST_ENTRY else plain[: LONGEST_ENTRY - 3] + "..."


def path_shown(path: object) -> str:
    """Return a path as an error message shows it: made `printable`, its last 200 characters if it is longer.

    Examples
    --------
    >>> path_shown("survey/people.csv"), len(path_shown("deep/" * 100 + "people.csv"))
    ('survey/people.csv', 200)
    """
    plain = printable(str(path))
    return plain if len(plain) <= LONGEST_PATH else "..." + plain[3 - LONGEST_PATH :]


class ShuffleDPError(Exception):
    """Base of every error raised on purpose by shuffledp."""


class InvalidInput(ShuffleDPError, ValueError):
    """A value given by the caller breaks a stated rule; the message names value, rule and way out.

    A parameter's name stands in backticks in the message, as `delta`, so that the command line can name its option.

    Parameters
    ----------
    message : str
        One line: the rule, the value, what to do.
    parameter : str, optional
        Name of the parameter or column whose value is refused.
    """

    def __init__(self, message: str, parameter: str | None = None) -> None:
        super().__init__(message)
        self.parameter = parameter

    def and_then(self, more: str) -> InvalidInput:
        """Return a copy of this error whose message is followed by the text `more`."""
        return InvalidInput(f"{self}{more}", self.parameter)

    def renumbered(self, row: Callable[[int], int]) -> InvalidInput:
        """Return a copy of this error in which the row of the refused entry has another number.

        Parameters
        ----------
        row : callable
            Takes the number that the message names, and returns the one that it shall name.
        """
        return InvalidInput(_renumbered(str(self), row), self.parameter)


_IN_ROW = re.compile(r"(.*\bin row )(\d+)", re.DOTALL)
"""How messages name a row; the last place counts, since the name of a column comes before it."""


def _renumbered(message: str, row: Callable[[int], int]) -> str:
    return _IN_ROW.sub(lambda found: f"{found[1]}{row(int(found[2]))}", message, count=1)


VALUE = "\0"
"""Placeholder, in a message of `BadEntry`, for the value, followed by a comma."""
DESCRIBES = "\1"
"""Placeholder, in a message of `BadEntry`, for advice on rows of a header; it stands between rule and advice."""


class BadEntry(InvalidInput):
    """An entry of a data row breaks a rule: the message names the row and the rule, but not the entry.

    Error messages are kept in logs and read by people who may not see the table.

    Parameters
    ----------
    message : str
        One line, with the placeholder `VALUE` and a comma where the value belongs.
    value : object
        The refused entry.
    parameter : str, optional
        Name of the column.
    row : int, optional
        The row (from 1), given if the entry is neither missing nor a number out of range: it may be a second header.
        Where the message holds `DESCRIBES`, the last of the first rows that break the rule, as no later row does.

    Examples
    --------
    >>> refusal = BadEntry(f"the record in row 3 is {VALUE}, none of the categories", "HIV")
    >>> str(refusal), str(refusal.with_value())
    ('the record in row 3 is none of the categories', "the record in row 3 is 'HIV', none of the categories")
    """

    def __init__(
        self, message: str, value: object = None, parameter: str | None = None, *, row: int | None = None
    ) -> None:
        plain = message.replace(DESCRIBES, "; ")
        super().__init__(plain.replace(f"{VALUE}, ", ""), parameter)
        self._message, self._value, self.row = message, value, row
        self._told = plain.replace(VALUE, value if isinstance(value, Written) else shown(value))

    def of_text_file(self) -> InvalidInput:
        """Return a copy of this error with advice for a text file whose first rows may describe its columns.

        The advice comes first where no later row breaks the rule.
        """
        if DESCRIBES not in self._message or self.row is None:
            return self.and_then("; if the first rows describe the columns, say so with `header_rows`")
        which, told = (f"{self.row} rows are", "they describe") if self.row > 1 else ("row is", "it describes")
        say = f"`header_rows = {self.row + 1}`"
        advice = f", and only the first {which} so: if {told} the columns, say {say}; if not, "
        return BadEntry(self._message.replace(DESCRIBES, advice), self._value, self.parameter, row=self.row)

    def and_then(self, more: str) -> InvalidInput:
        """Return a copy of this error whose message is followed by the text `more`."""
        return BadEntry(self._message + more, self._value, self.parameter, row=self.row)

    def renumbered(self, row: Callable[[int], int]) -> InvalidInput:
        """Return a copy of this error in which the row has another number, see `InvalidInput.renumbered`."""
        place = None if self.row is None else row(self.row)
        return BadEntry(_renumbered(self._message, row), self._value, self.parameter, row=place)

    def with_value(self) -> InvalidInput:
        """Return an InvalidInput whose message also shows the entry, for those who may see the table."""
        return InvalidInput(self._told, self.parameter)


class Written(str):
    """A text that a message shows as it is, without quotes."""


@contextmanager
def values_shown(asked: bool) -> Generator[None]:
    """Show the refused entry in a `BadEntry` raised inside the block, if the holder of the table asked for it.

    Parameters
    ----------
    asked : bool
        Whether the entry is to be shown; otherwise the error passes unchanged.
    """
    try:
        yield
    except BadEntry as refusal:
        if not asked:
            raise
        raise refusal.with_value() from None


class OutOfRegime(ShuffleDPError):
    """The hypotheses of a bound's theorem do not hold for the question; the message names the condition."""


class NotConverged(ShuffleDPError):
    """A numerical result could not be certified; it is refused rather than returned with too small a value."""


class InconsistentBounds(ShuffleDPError):
    """A certified upper bound lies below a certified lower bound: a bug, which a correct library never reports."""


T = TypeVar("T")


@dataclass(frozen=True)
class Refused:
    """A refusal returned as a value (by `attempt`): the reason why a question cannot be answered in this way.

    Parameters
    ----------
    reason : str
        The error message, one line.
    """

    reason: str


REFUSALS: tuple[type[ShuffleDPError], ...] = (InvalidInput, OutOfRegime, NotConverged)
"""Errors that mean only that a question cannot be asked in this way."""


def attempt(make: Callable[[], T], errors: tuple[type[ShuffleDPError], ...] = REFUSALS) -> T | Refused:
    """Return the result of ``make()``, or a `Refused` with the message if it raises one of ``errors``.

    Parameters
    ----------
    make : callable
        Computes the answer.
    errors : tuple of type
        Errors that count as a refusal; all others are raised.
    """
    try:
        return make()
    except errors as refusal:
        return Refused(str(refusal))


# Results that say themselves in a line, and in a notebook in a line and a table.

MOST_ROWS = 12
"""Largest number of rows of a table in a notebook."""


class Told(ABC):
    """A result whose `repr` is one line with the main numbers, not every field; notebooks show a table as well.

    Numbers are written in full, so that none is rounded to the wrong side. A dataclass takes this in place of its own
    `repr` by ``repr=False``.
    """

    @abstractmethod
    def _told(self) -> str:
        """Return the result as one line of text."""

    def _rows(self) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
        """Return headings and rows of the table; no headings, no table."""
        return (), ()

    def __repr__(self) -> str:
        """Return the result in a line."""
        return f"<{self._told()}>"

    def _repr_html_(self) -> str:
        """Return the same for a notebook, with the table."""
        headings, rows = self._rows()
        said = f"<p>{html.escape(self._told())}</p>"
        if not headings:
            return said
        lines = [list(row) for row in rows]
        head = "".join(f"<th>{html.escape(heading)}</th>" for heading in headings)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in line) + "</tr>"
            for line in lines[:MOST_ROWS]
        )
        more = f"<p>{len(lines) - MOST_ROWS:,} more rows</p>" if len(lines) > MOST_ROWS else ""
        return f"{said}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


EXTRA_OF: Mapping[str, str] = {
    "matplotlib": "figures",
    "uvicorn": "service",
    "uvloop": "service",
    "httptools": "service",
    "segno": "service",
    "torch": "torch",
    "flwr": "flower",
    "pyspark": "spark",
    "pyarrow": "spark",
    "pandas": "spark",
}
"""Name of the extra that installs each module."""


def way_to_install(extra: str) -> str:
    """Return the command that installs an extra, as text for a message.

    It installs from the sources, since no package index has shuffledp yet.

    Parameters
    ----------
    extra : str
        Name of the extra, such as ``"figures"``.

    Examples
    --------
    >>> way_to_install("figures")
    "in the folder with shuffledp's sources, run: pip install '.[figures]'"
    """
    return f"in the folder with shuffledp's sources, run: pip install '.[{extra}]'"


def what_is_missing(who: str, module: str, extra: str | None = None) -> str:
    """Return a message that something needs a module that is not installed, with the command to install it.

    Parameters
    ----------
    who : str
        What needs it: a command, or a part of the package.
    module : str
        Name of the module that is not installed.
    extra : str, optional
        Name of the extra that contains the module; by default looked up in `EXTRA_OF`.

    Examples
    --------
    >>> what_is_missing("serve", "uvicorn")
    "serve needs uvicorn, which is not installed; in the folder with shuffledp's sources, run: pip install '.[service]'"
    """
    return f"{who} needs {module}, which is not installed; {way_to_install(extra or EXTRA_OF[module])}"
