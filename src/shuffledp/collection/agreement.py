"""By how much a number that one machine states may differ from the one that another machine certifies anew.

The last digits of a certified number hang on processor and NumPy, and where a search takes another branch the results
differ by the search's tolerance. Both numbers are proven, but not equal. So whoever states a number states it rounded
outward; whoever drafts a task keeps so much room that every machine finds its promises kept; and whoever checks what
another machine has stated allows the slack below, and no more.
"""

from __future__ import annotations

from shuffledp.numerics.floats import few_digits_up

FLOOR_SLACK = 1e-8
"""Relative; ten times the tolerance with which a floor is searched for."""
CROWD_SLACK = 1e-5
"""Relative; ten times the tolerance with which the number of an honest crowd is searched for."""
_CROWD_DIGITS = 6


def published(certified: float, promise: float) -> float:
    """Round a certified number outward, but not beyond a promise that it keeps.

    Parameters
    ----------
    certified : float
        The upper end.
    promise : float
        What its level is promised.
    """
    return min(few_digits_up(certified), promise) if certified <= promise else few_digits_up(certified)


def stated_crowd(certified: float) -> float:
    """Return the number of an honest crowd as a draft states it: so that another machine certifies no larger one."""
    return few_digits_up(certified * (1.0 + CROWD_SLACK), _CROWD_DIGITS)


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
