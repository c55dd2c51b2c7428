"""Checks of parameters, budgets, records and reports, each with one clear error message; no other file words them."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from numbers import Integral
from typing import TYPE_CHECKING, Any

from shuffledp.errors import VALUE, BadEntry, InvalidInput, shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

MAX_SIZE = 10**9
"""Largest number of categories, and of values of a hash."""


MAX_EPSILON0 = 700.0
"""Largest local budget accepted (nats): beyond it exp(epsilon0) leaves double precision."""


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
    found = _real(value)
    if not (low <= found <= high) or (below and found == high):
        allowed = f"from {low:g} to {'below ' if below else ''}{high:g}"
        raise InvalidInput(f"{what} must be {allowed}; got {shown(value)}", _parameter(what))
    return found


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


def choice(value: Any, what: str, known: Iterable[str]) -> Any:
    """Return ``value`` if it is one of the known words.

    Parameters
    ----------
    value : object
        The word as it was given.
    what : str
        Name of the parameter, or what the error message calls the word.
    known : iterable of str
        The allowed words.

    Raises
    ------
    InvalidInput
        If the value is none of them.
    """
    words = tuple(known)
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
    return numbers_within(epsilon0, "epsilon0", "a finite number of nats from 0 to 700", MAX_EPSILON0, closed=True)


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
