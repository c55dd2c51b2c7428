"""How much work a task's certificate is, told before any of it is done: a task comes from somebody else.

What is counted are the atoms of the pairs of laws that the floor sums over (`numerics.fake_reports`), and a fixed
number for each law: about a million are a second and some 50 MB where laws are composed. Equal questions are one law.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from shuffledp.collection.asked import Dummies
from shuffledp.collection.draw import Family
from shuffledp.errors import InvalidInput

MOST_BALL_WORK = 1 << 22
"""About a second in a browser, which counts the same (page/ball.js)."""
MOST_WORK = 1 << 24
"""About a quarter of a minute: 100 different laws, such as those of 32 different questions at three levels."""
_A_LAW = 150_000
_ALONE = 4
"""By so much faster the one pair of one question is summed over, which is composed with nothing."""
_TAIL = 110.0
"""Minus the logarithm of the chance of counts that are left out."""


def work_of(
    draws: Sequence[Sequence[int]], questions: Sequence[Family], dummies: Sequence[Dummies], reports: int
) -> int:
    """Count the work of certifying a floor for each level.

    Parameters
    ----------
    draws, questions, dummies, reports
        As of `promise.floor`.
    """
    laws = {
        (family.kind, family.records if family.kind == "krr" else 0, law, keep)
        for draw in draws
        for family, law, keep in zip(questions, dummies, draw, strict=True)
    }
    known = {(family.kind, family.records if family.kind == "krr" else 0): family for family in questions}
    alone = _ALONE if len(questions) == 1 else 1
    return sum(_A_LAW + _atoms(known[kind, records], law, reports) // alone for kind, records, law, _ in laws)


def check_work(
    draws: Sequence[Sequence[int]], questions: Sequence[Family], dummies: Sequence[Dummies], reports: int
) -> None:
    """Raise InvalidInput if certifying would take longer than anybody should wait for somebody else's task.

    Parameters
    ----------
    draws, questions, dummies, reports
        As of `promise.floor`.
    """
    work = work_of(draws, questions, dummies, reports)
    if work > MOST_WORK:
        raise InvalidInput(
            f"certifying this task sums over {work:,} counts of {len(questions)} questions and {len(draws)} levels, "
            f"above the limit of {MOST_WORK:,}; ask fewer different questions, or with fewer levels or dummies"
        )


def _atoms(family: Family, law: Dummies, reports: int) -> int:
    """Return the counts of one question at one level.

    Where a set is not one of two halves, count those of two sets of reports.
    """
    if law.law == "laplace":
        return law.count + reports
    share, total = float(family.own_share), law.count + reports
    spread = total * share * (1.0 - share)
    reach = _TAIL / 3.0 + math.sqrt((_TAIL / 3.0) ** 2 + 2.0 * _TAIL * spread)
    span = int(min(total * share, reach) + min(total * (1.0 - share), reach)) + 2
    if family.kind in ("rr", "one-bit"):
        return span
    return span**2 if reports == 1 else 4 * span**2  # of two reports every draw is followed, and two pairs are made


def check_ball_work(columns: Sequence[tuple[Family, Dummies]]) -> None:
    """Raise InvalidInput if counting the balls of a task would take longer than anybody should wait for it.

    Parameters
    ----------
    columns : sequence of (Family, Dummies)
        The columns of a task of version 2.
    """
    work = sum(len(law.draw) * (size + len(law.draw) // 8) for size, law in {(_size(f), law) for f, law in columns})
    if work > MOST_BALL_WORK:
        raise InvalidInput(
            f"certifying this task sums over {work:,} terms, above the limit of {MOST_BALL_WORK:,}; promise a larger "
            "number, or ask questions with fewer answers"
        )


def _size(family: Family) -> int:
    return family.pieces if family.kind == "bits" else family.cells
