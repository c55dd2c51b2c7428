"""Every error the library raises on purpose.

    ShuffleDPError
    ├── InvalidInput         a value breaks a stated rule (also a ValueError)
    │   └── BadEntry         an entry of a row does; its value is not told
    ├── OutOfRegime          a theorem's hypotheses do not fit the question
    ├── NotConverged         a numerical search or sum could not be certified
    └── InconsistentBounds   an upper bound fell below a witness: a bug in shuffledp, never smoothed over

A message is one line: what, which value, what to do.
"""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

JOINERS = "\u200c\u200d"
"""The zero-width non-joiner and joiner of Persian, Indic scripts and emoji."""

LONGEST_ENTRY = 80
"""Characters of an entry that a message shows."""

LONGEST_PATH = 200
"""Characters of a path that a message shows."""


def shown(value: object) -> str:
    """Return an entry as a message shows it: as Python writes it, cut to 80 characters.

    Parameters
    ----------
    value : object
        An entry as it was given; of a NumPy number the plain number is shown.

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
    text = " ".join(repr(plain).split())
    return text if len(text) <= LONGEST_ENTRY else text[: LONGEST_ENTRY - 3] + "..."


def printable(text: str, kept: str = "") -> str:
    r"""Return a text without the characters that a terminal or a page obeys instead of showing.

    Left out are control characters, those that change the direction of writing, and other invisible ones, except the
    two joiners that some scripts need; line ends and tabs become blanks.

    Parameters
    ----------
    text : str
        A text with names that somebody else chose.
    kept : str
        Characters that stay, whatever they are.

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
    """Return a name as a message shows it without quotes: `printable`, cut to 80 characters."""
    plain = printable(text[: 2 * LONGEST_ENTRY])
    return plain if len(plain) <= LONGEST_ENTRY else plain[: LONGEST_ENTRY - 3] + "..."


def path_shown(path: object) -> str:
    """Return a path as a message shows it: `printable`; of a very long one the end, which holds the file's name.

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
        One line.
    parameter : str, optional
        The parameter, or the column, whose value it is.
    """

    def __init__(self, message: str, parameter: str | None = None) -> None:
        super().__init__(message)
        self.parameter = parameter

    def and_then(self, more: str) -> InvalidInput:
        """Return the same refusal with more to say."""
        return InvalidInput(f"{self}{more}", self.parameter)


VALUE = "\0"
"""Where a message of `BadEntry` has the value, followed by a comma."""


class BadEntry(InvalidInput):
    """An entry of somebody's row breaks a rule: the message names the row and the rule, and not what stands there.

    What a program refuses is read by people who may not see the table, and kept in logs.

    Parameters
    ----------
    message : str
        One line, with `VALUE` and a comma where the value stands.
    value : object
        What stands in the row.
    parameter : str, optional
        The column.
    row : int, optional
        The row, if what stands in it is neither missing nor a number out of range: it may be a second header.

    Examples
    --------
    >>> refusal = BadEntry(f"the record in row 3 is {VALUE}, none of the categories", "HIV")
    >>> str(refusal), str(refusal.with_value())
    ('the record in row 3 is none of the categories', "the record in row 3 is 'HIV', none of the categories")
    """

    def __init__(
        self, message: str, value: object = None, parameter: str | None = None, *, row: int | None = None
    ) -> None:
        super().__init__(message.replace(f"{VALUE}, ", ""), parameter)
        self._message, self._value, self.row = message, value, row
        self._told = message.replace(VALUE, value if isinstance(value, Written) else shown(value))

    def and_then(self, more: str) -> InvalidInput:
        """Return the same refusal with more to say."""
        return BadEntry(self._message + more, self._value, self.parameter, row=self.row)

    def with_value(self) -> InvalidInput:
        """Return the same refusal with the value, for whoever holds the table and asks to see it."""
        return InvalidInput(self._told, self.parameter)


class Written(str):
    """A value as a message shows it."""


@contextmanager
def values_shown(asked: bool) -> Generator[None]:
    """Show values in refusals of entries, if whoever holds the table asked for it.

    Parameters
    ----------
    asked : bool
        Whether that was asked for.
    """
    try:
        yield
    except BadEntry as refusal:
        if not asked:
            raise
        raise refusal.with_value() from None


class OutOfRegime(ShuffleDPError):
    """A bound was asked a question its theorem does not answer; the message names the condition."""


class NotConverged(ShuffleDPError):
    """A numerical result could not be certified; nothing smaller than the truth is returned instead."""


class InconsistentBounds(ShuffleDPError):
    """A certified upper bound lies below a witness, which a correct library never reports."""


T = TypeVar("T")


@dataclass(frozen=True)
class Refused:
    """A refusal as a value: why a question cannot be asked in this way.

    Parameters
    ----------
    reason : str
        One line.
    """

    reason: str


REFUSALS: tuple[type[ShuffleDPError], ...] = (InvalidInput, OutOfRegime, NotConverged)
"""What says that a question cannot be asked in this way, and no more."""


def attempt(make: Callable[[], T], errors: tuple[type[ShuffleDPError], ...] = REFUSALS) -> T | Refused:
    """Return what ``make`` returns, or the reason why the question cannot be asked in this way.

    Parameters
    ----------
    make : callable
        Computes the answer.
    errors : tuple of type
        What counts as a refusal; anything else is raised.
    """
    try:
        return make()
    except errors as refusal:
        return Refused(str(refusal))


# Results that say themselves in a line, and in a notebook in a line and a table.

MOST_ROWS = 12
"""Rows of a table in a notebook."""


class Told(ABC):
    """A result with a short `repr`: the headline and what matters, not every field.

    Numbers are written in full, so that none is rounded to the wrong side. A dataclass takes this in place of its own
    `repr` by ``repr=False``.
    """

    @abstractmethod
    def _told(self) -> str:
        """Say the result in a line."""

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
