"""By how much a number that one machine states may differ from the one that another machine certifies anew.

The last digits of a certified number hang on processor and NumPy, and where a search takes another branch the results
differ by the search's tolerance. Both numbers are proven, but not equal. So whoever states a number states it rounded
outward; whoever drafts a task keeps so much room that every machine finds its promises kept; and whoever checks what
another machine has stated allows the slack below, and no more.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Context, Decimal

FLOOR_SLACK = 1e-8
"""Relative; ten times the tolerance with which a floor is searched for."""
CROWD_SLACK = 1e-5
"""Relative; ten times the tolerance with which the number of an honest crowd is searched for."""
DIGITS = 10
"""Digits of a number that is published."""
_CROWD_DIGITS = 6


def outward(value: float, digits: int = DIGITS) -> float:
    """Round an upper end up to so many significant digits; never below the value.

    Parameters
    ----------
    value : float
        At least 0, possibly inf.
    digits : int
        How many.

    Examples
    --------
    >>> outward(0.09956159849397964), outward(0.25), outward(0.1234561, 6)
    (0.0995615985, 0.25, 0.123457)
    """
    # the shortest decimal that reads as the value: what is not below it does not read as a smaller double
    return float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(repr(float(value)))))


def published(certified: float, promise: float) -> float:
    """Round a certified number outward, but not beyond a promise that it keeps.

    Parameters
    ----------
    certified : float
        The upper end.
    promise : float
        What its level is promised.
    """
    return min(outward(certified), promise) if certified <= promise else outward(certified)


def stated_crowd(certified: float) -> float:
    """Return the number of an honest crowd as a draft states it: so that another machine certifies no larger one."""
    return outward(certified * (1.0 + CROWD_SLACK), _CROWD_DIGITS)


def covers(told: float, certified: float, slack: float = FLOOR_SLACK) -> bool:
    """Tell whether a number that another machine has stated holds, by the number certified here.

    Parameters
    ----------
    told : float
        What was stated, or promised.
    certified : float
        What is certified here.
    slack : float
        `FLOOR_SLACK` or `CROWD_SLACK`.
    """
    return certified <= told * (1.0 + slack)
