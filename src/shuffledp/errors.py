"""Every error the library raises on purpose, how messages show values, the checks that raise them, and extras.

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

import csv
import html
import math
import re
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


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
    return _IN_ROW.sub(lambda match: f"{match[1]}{row(int(match[2]))}", message, count=1)


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
        self._full_message = plain.replace(VALUE, value if isinstance(value, Written) else shown(value))

    def of_text_file(self) -> InvalidInput:
        """Return a copy of this error with advice for a text file whose first rows may describe its columns.

        The advice comes first where no later row breaks the rule.
        """
        if DESCRIBES not in self._message or self.row is None:
            return self.and_then("; if the first rows describe the columns, say so with `header_rows`")
        which, clause = (f"{self.row} rows are", "they describe") if self.row > 1 else ("row is", "it describes")
        say = f"`header_rows = {self.row + 1}`"
        advice = f", and only the first {which} so: if {clause} the columns, say {say}; if not, "
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
        return InvalidInput(self._full_message, self.parameter)


class Written(str):
    """A text that a message shows as it is, without quotes."""


@contextmanager
def values_shown(show: bool) -> Generator[None]:
    """Show the refused entry in a `BadEntry` raised inside the block, if the holder of the table asked for it.

    Parameters
    ----------
    show : bool
        Whether the entry is to be shown; otherwise the error passes unchanged.
    """
    try:
        yield
    except BadEntry as refusal:
        if not show:
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

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 60
MOST_ROWS = 12
"""Largest number of rows of a table in a notebook."""


class Brief:
    """A dataclass whose `repr` cuts long fields, such as a thousand categories; taken as `Told` is."""

    def __repr__(self) -> str:
        """Return the class with each field, in a line."""
        named_fields: tuple[Any, ...] = fields(self)  # type: ignore[arg-type]  # subclasses are dataclasses
        texts = (f"{each.name}={_SHORT.repr(getattr(self, each.name))}" for each in named_fields if each.repr)
        return " ".join(f"{type(self).__qualname__}({', '.join(texts)})".split())


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
        paragraph = f"<p>{html.escape(self._told())}</p>"
        if not headings:
            return paragraph
        lines = [list(row) for row in rows]
        head = "".join(f"<th>{html.escape(heading)}</th>" for heading in headings)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in line) + "</tr>"
            for line in lines[:MOST_ROWS]
        )
        more = f"<p>{len(lines) - MOST_ROWS:,} more rows</p>" if len(lines) > MOST_ROWS else ""
        return f"{paragraph}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


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


@contextmanager
def naming_the_extra(who: str, module: str) -> Generator[None]:
    """Import within; if `module` is not installed, the error says which extra `who` needs.

    Raises
    ------
    ModuleNotFoundError
        If a module is missing: with `what_is_missing` as its text where `module` itself is.
    """
    try:
        yield
    except ModuleNotFoundError as missing:
        if missing.name != module:
            raise
        raise ModuleNotFoundError(what_is_missing(who, module), name=module) from None


# Checks of parameters, budgets, records and reports, each with one clear error message; no other file words them.


MAX_SIZE = 10**9
"""Largest number of categories, and of values of a hash."""


MAX_EPSILON0 = 700.0
"""Largest local budget accepted (nats): beyond it exp(epsilon0) leaves double precision."""
BUDGET_RULE = f"a finite number of nats from 0 to {MAX_EPSILON0:g}"
"""The rule that every local budget keeps, as error messages word it."""


MAX_COUNTED = 2**24
"""Largest number of categories whose reports are written bit by bit, or counted: such tables must fit in memory."""


def whole_number(value: object, what: str, low: int, high: int | None = None) -> int:
    """Return ``value`` as an int if it is a whole number from ``low`` to ``high``.

    Parameters
    ----------
    value : object
        A Python or NumPy integer; bools are refused.
    what : str
        Name of the parameter; or the beginning of the error message, such as ``"unary encoding takes a whole number
        k"``.
    low : int
        Least allowed number.
    high : int, optional
        Largest allowed number; None: there is none.

    Raises
    ------
    InvalidInput
        If the value is no whole number in that range.
    """
    whole = isinstance(value, Integral) and not isinstance(value, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
    if whole and low <= value and (high is None or value <= high):  # type: ignore[operator]
        return int(value)  # type: ignore[call-overload]
    parameter = _parameter(what)
    rule = what if parameter is None else f"{what} must be a whole number"
    allowed = f"of at least {low:,}" if high is None else f"from {low:,} to {high:,}"
    raise InvalidInput(f"{rule} {allowed}; got {shown(value)}", parameter)


def _real(value: object) -> float:
    """Return a number as a float; NaN of what is none, such as text and truth values (as in `whole_number`)."""
    kind = getattr(getattr(value, "dtype", None), "kind", "f")  # of NumPy's scalars and arrays
    if isinstance(value, str | bytes | bytearray | bool) or kind in "bSU":
        return math.nan
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan


def number(value: object, what: str, low: float, high: float, *, below: bool = False) -> float:
    """Return ``value`` as a float if it is a number from ``low`` to ``high``.

    Parameters
    ----------
    value : object
        The number as it was given.
    what : str
        Name of the parameter.
    low, high : float
        The allowed range, both ends included.
    below : bool
        Whether ``high`` itself is refused.

    Raises
    ------
    InvalidInput
        If the value is no number in that range.
    """
    real = _real(value)
    if not (low <= real <= high) or (below and real == high):
        allowed = f"from {low:g} to {'below ' if below else ''}{high:g}"
        raise InvalidInput(f"{what} must be {allowed}; got {shown(value)}", _parameter(what))
    return real


def cut_at_commas(text: str) -> tuple[str, ...]:
    r"""Return the words of a text with commas between them, quotes as in CSV; no word if it is no such line.

    It is none if it holds a line end outside quotes, or a word of more than 131,072 letters.

    Parameters
    ----------
    text : str
        What was typed.

    Examples
    --------
    >>> cut_at_commas('yes, "no, never"'), cut_at_commas("yes\nno,maybe")
    (('yes', 'no, never'), ())
    """
    try:
        return tuple(word.strip() for word in next(csv.reader([text], skipinitialspace=True), []))
    except csv.Error:
        return ()


def choice(value: Any, what: str, allowed: Iterable[str]) -> Any:
    """Return ``value`` if it is one of the known words.

    Parameters
    ----------
    value : object
        The word as it was given.
    what : str
        Name of the parameter, or what the error message calls the word.
    allowed : iterable of str
        The allowed words.

    Raises
    ------
    InvalidInput
        If the value is none of them.
    """
    words = tuple(allowed)
    word = str.__str__(value) if isinstance(value, str) else None  # a subclass may have an __eq__ of its own
    if word in words:
        return word
    raise InvalidInput(f"{what} must be one of {', '.join(words)}; got {shown(value)}", _parameter(what))


def _parameter(what: str) -> str | None:
    """Return the parameter that a message begins with, without backticks; None if it begins with other words."""
    name = what.strip("`").removeprefix("--").replace("-", "_")
    return name if name.isidentifier() else None


WIDEST = 1e150
"""Largest magnitude of a number whose square, and whose inverse's square, is an ordinary double."""


def real_range(low: object, high: object) -> tuple[float, float]:
    """Return the two ends of a range of numbers as floats, after checking them.

    Raises
    ------
    InvalidInput
        If an end is not finite, low >= high, or the width is not finite or below 1e-150.
    """
    ends = _real(low), _real(high)
    if any(math.isnan(end) and not isinstance(given, float) for given, end in zip((low, high), ends, strict=True)):
        raise InvalidInput(f"the range needs two numbers; got {shown(low)} and {shown(high)}")
    if not (all(map(math.isfinite, ends)) and ends[0] < ends[1] and math.isfinite(ends[1] - ends[0])):
        raise InvalidInput(
            f"the range needs finite low < high and a finite width; got low {ends[0]} and high {ends[1]}"
        )
    if (ends[1] - ends[0]) * WIDEST < 1.0:  # its square would be 0, and so would every standard error
        raise InvalidInput(
            f"the range is {ends[1] - ends[0]} wide, below {1.0 / WIDEST:g}: count in other units; got low {ends[0]} "
            f"and high {ends[1]}"
        )
    return ends


def numbers_within(values: ArrayLike, what: str, rule: str, top: float, *, closed: bool) -> NDArray[np.float64]:
    """Return ``values`` as an array of floats if all lie between 0 and ``top``.

    Parameters
    ----------
    values : array_like
        Numbers, of any shape.
    what, rule : str
        Name of the numbers and the rule that they must keep, for the error message.
    top : float
        Upper end of the allowed range, which starts at 0.
    closed : bool
        Whether ``top`` itself is allowed.

    Raises
    ------
    InvalidInput
        If an entry breaks the rule (the first such row is named, counting from 1) or is no number.
    """
    import numpy as np

    try:
        given = np.asarray(values)
        entries = values if isinstance(values, list | tuple) else given.ravel() if given.dtype == object else ()
        words = any(isinstance(entry, str | bytes | bool | np.bool_) for entry in entries)
        no_number = words or given.dtype.kind in "bSU"
        array = given.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        no_number, array = True, np.zeros(0)
    if no_number:
        raise InvalidInput(f"{what} must be {rule}; got {shown(values)}")
    valid = (array >= 0.0) & ((array <= top) if closed else (array < top))
    if not valid.all():
        where = f" in row {int(np.argmin(valid.ravel())) + 1}" if array.ndim else ""
        raise InvalidInput(f"{what}{where} must be {rule}; got {array.ravel()[int(np.argmin(valid.ravel()))]}")
    return array


def local_budgets(epsilon0: ArrayLike) -> NDArray[np.float64]:
    """Return local budgets epsilon0 as an array of floats, after checking that they are from 0 to 700 nats.

    Parameters
    ----------
    epsilon0 : array_like
        Local budgets, nats, from 0 to 700.

    Raises
    ------
    InvalidInput
        If a budget is outside that range (the first such row is named), or no number.
    """
    return numbers_within(epsilon0, "epsilon0", BUDGET_RULE, MAX_EPSILON0, closed=True)


def local_deltas(delta0: ArrayLike) -> NDArray[np.float64]:
    """Return local delta0 as an array of floats, after checking that they are probabilities in [0, 1).

    Raises
    ------
    InvalidInput
        If a delta0 is outside that range (the first such row is named), or no number.
    """
    return numbers_within(delta0, "delta0", "a probability in [0, 1)", 1.0, closed=False)


def one_budget(epsilon0: float) -> float:
    """Return one local budget epsilon0 (nats) as a float, after checking that it is one number from 0 to 700."""
    budget = local_budgets(epsilon0)
    if budget.ndim:
        raise InvalidInput(f"epsilon0 must be one number here; got shape {budget.shape}")
    return float(budget)


def check_delta(delta: float) -> float:
    """Return delta as a float in (0, 1), or raise InvalidInput."""
    value = _real(delta)
    if not 0.0 < value < 1.0:
        given = shown(delta)
        raise InvalidInput(f"delta must be in (0, 1); got {given}; a common choice is 1e-6, far below 1/n")
    return value


def check_epsilon(epsilon: float) -> float:
    """Return epsilon (nats) as a float in [0, inf], or raise InvalidInput if it is negative or no number."""
    value = _real(epsilon)
    if math.isnan(value) or value < 0.0:
        raise InvalidInput(f"epsilon must be >= 0 (nats); got {shown(epsilon)}")
    return value


def record_codes(records: ArrayLike, k: int) -> NDArray[np.int64]:
    """Return records of k categories as a new array of int64, after checking that each is a category.

    Parameters
    ----------
    records : array_like of int, shape (n,)
        Categories, 0..k-1.
    k : int
        Number of categories.

    Raises
    ------
    InvalidInput
        If a record is not one of the categories; the first such row is named, counting from 1.
    """
    import numpy as np

    raw = np.asarray(records)
    if raw.ndim != 1:
        raise InvalidInput(f"records must be one-dimensional; got shape {raw.shape}")
    if raw.size and raw.dtype.kind not in "iu":
        raise InvalidInput(f"records must be whole numbers from 0 to {k - 1}; got {raw.dtype}")
    bad = (raw < 0) | (raw >= k)
    if bad.any():
        row = int(np.argmax(bad))
        raise BadEntry(f"record in row {row + 1} is {VALUE}, no category; it must be one from 0 to {k - 1}", raw[row])
    return raw.astype(np.int64)


def matching(budgets: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return the budgets of n records unchanged if there is one for all, shape (), or one each, shape (n,).

    Raises
    ------
    InvalidInput
        If there is neither one budget nor n of them.
    """
    if budgets.ndim and budgets.shape != (n,):
        raise InvalidInput(f"{n} records need as many budgets, or one; got {budgets.size}")
    return budgets


def counted(k: int) -> int:
    """Return the number k of categories if it is at most 2^24, so that a table of k counts fits into memory.

    Raises
    ------
    InvalidInput
        If k is above 2^24.
    """
    if k > MAX_COUNTED:
        raise InvalidInput(
            f"up to {MAX_COUNTED} categories can be counted; got {k}; merge categories, or ask about a part of them"
        )
    return k


def population(epsilon0: ArrayLike, counts: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the budgets of a population and how many users have each, as two arrays of one shape (levels,).

    Parameters
    ----------
    epsilon0 : array_like, shape () or (levels,)
        Local budgets, nats, from 0 to 700.
    counts : array_like, shape () or (levels,)
        Number of users with each budget, at least 0; not all 0.

    Raises
    ------
    InvalidInput
        If a budget or a count breaks its rule, or they do not match.
    """
    import numpy as np

    budgets = np.atleast_1d(local_budgets(epsilon0))
    users = np.asarray(counts, dtype=np.float64)
    if budgets.ndim != 1 or budgets.size == 0 or users.shape not in ((), budgets.shape):
        raise InvalidInput(f"{budgets.size} budgets need as many counts of users; got {users.size}")
    users = np.broadcast_to(users, budgets.shape)
    if not (bool(np.isfinite(users).all()) and bool((users >= 0.0).all()) and float(users.sum()) > 0.0):
        raise InvalidInput("counts of users must be numbers of at least 0, not all 0")
    return budgets, users


def one_shape(shapes: NDArray[np.int64], what: str) -> int:
    """Return the one shape (a whole number) that all reports of a task have, if all budgets choose the same.

    Parameters
    ----------
    shapes : ndarray of int64
        The shape that each budget would choose, such as the range of a hash.
    what : str
        Name of the shape, for the error message.

    Raises
    ------
    InvalidInput
        If the shapes differ, as the shape of a report would then reveal its sender's budget.
    """
    least, most = int(shapes.min()), int(shapes.max())
    if least != most:
        raise InvalidInput(
            f"these budgets would choose {what} from {least} to {most}, and reports of one task have one shape; "
            "take the family's for_budgets(epsilon0, counts), or fix it yourself"
        )
    return least


def report_rows(reports: NDArray[np.generic], kinds: str, columns: int | None, what: str) -> None:
    """Raise InvalidInput if an array of reports has not the task's type and shape.

    Parameters
    ----------
    reports : ndarray
        The reports as received, one per row.
    kinds : str
        Allowed kinds of data type, letters as in `numpy.dtype.kind`.
    columns : int or None
        Number of entries of one report; None if a report is a single number.
    what : str
        Description of valid reports, for the error message.

    Raises
    ------
    InvalidInput
        If the type or the shape differs.
    """
    shape = reports.shape[:1] if columns is None else (*reports.shape[:1], columns)
    if reports.ndim == 0 or reports.shape != shape or reports.dtype.kind not in kinds:
        raise InvalidInput(
            f"reports must be {what}; got {reports.dtype} of shape {reports.shape}; are they of this task?"
        )
