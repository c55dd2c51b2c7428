"""What the randomizers ask of their parameters, and how they say no."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.errors import InvalidInput
from shuffledp.numerics.interval import FloatArray

MAX_SIZE = 10**9
"""Most categories, and most values of a hash."""
MAX_BUDGET = 700.0
"""Nats; beyond, a law leaves double precision."""


def whole_number(value: object, what: str, low: int, high: int) -> int:
    """Return ``value`` as an int.

    Parameters
    ----------
    value : object
        A Python or NumPy integer; bools are refused.
    what : str
        Who takes it and what it is, such as ``"unary encoding takes a whole number k"``.
    low, high : int
        Its range, both ends included.

    Raises
    ------
    InvalidInput
        If it is no whole number in that range.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not low <= value <= high:
        raise InvalidInput(f"{what} from {low} to {high}; got {value!r}")
    return int(value)


def real_range(low: object, high: object) -> tuple[float, float]:
    """Return the ends of a range of numbers: finite, low < high, of finite width.

    Raises
    ------
    InvalidInput
        If they are not.
    """
    try:
        ends = float(low), float(high)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InvalidInput(f"the range needs two numbers; got {low!r} and {high!r}") from None
    if not (all(map(math.isfinite, ends)) and ends[0] < ends[1] and math.isfinite(ends[1] - ends[0])):
        raise InvalidInput(
            f"the range needs finite low < high and a finite width; got low {ends[0]} and high {ends[1]}"
        )
    return ends


def numbers_within(values: ArrayLike, what: str, rule: str, top: float, *, closed: bool) -> FloatArray:
    """Return ``values`` as doubles between 0 and ``top``.

    Parameters
    ----------
    values : array_like
        The numbers.
    what, rule : str
        Their name and the rule, for the error message.
    top : float
        The largest one allowed, if ``closed``; else the first one not allowed.

    Raises
    ------
    InvalidInput
        If one breaks the rule (the first such row is named, counting from 1) or is no number.
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"{what} must be {rule}; got {values!r}") from None
    valid = (array >= 0.0) & ((array <= top) if closed else (array < top))
    if not valid.all():
        where = f" in row {int(np.argmin(valid.ravel())) + 1}" if array.ndim else ""
        raise InvalidInput(f"{what}{where} must be {rule}; got {array.ravel()[int(np.argmin(valid.ravel()))]}")
    return array


def local_budgets(epsilon0: ArrayLike) -> FloatArray:
    """Return local budgets epsilon0 as doubles.

    Parameters
    ----------
    epsilon0 : array_like
        Nats, from 0 to 700.

    Raises
    ------
    InvalidInput
        If one is outside that range (the first such row is named), or no number.
    """
    return numbers_within(epsilon0, "epsilon0", "a finite number of nats from 0 to 700", MAX_BUDGET, closed=True)


def local_deltas(delta0: ArrayLike) -> FloatArray:
    """Return local delta0 as doubles: probabilities in [0, 1).

    Raises
    ------
    InvalidInput
        If one is outside that range (the first such row is named), or no number.
    """
    return numbers_within(delta0, "delta0", "a probability in [0, 1)", 1.0, closed=False)


def one_budget(epsilon0: float) -> float:
    """Return a single local budget; see `local_budgets`."""
    budget = local_budgets(epsilon0)
    if budget.ndim:
        raise InvalidInput(f"epsilon0 must be one number here; got shape {budget.shape}")
    return float(budget)
