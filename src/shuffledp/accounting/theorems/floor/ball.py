"""The floor of ball dummies, over all questions together, as a privacy profile (docs/theorems/ball.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.ball import WHOLE, BallDummies
from shuffledp.budgets import MAX_EPSILON0
from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.floats import UNBOUNDED, Upper, round_up
from shuffledp.numerics.interval import Interval
from shuffledp.numerics.rounded import exp_upper

MOST_REPORTS = 64
"""Largest number of reports of one person that a floor is computed for."""


@dataclass(frozen=True, eq=False)
class BallFloor(PrivacyProfile):
    """Certified floor of one person's reports to all questions that share ball dummies. Use `ball_floor`.

    Parameters
    ----------
    law : BallDummies
        The dummies.
    kept : tuple of Fraction
        kappa of each column: the chance that a report is the record's own.
    reports : int
        Reports of the person, each to all questions.
    top : float
        Sum of the local budgets of all reports (nats): from there on delta is 0.
    """

    tolerance: ClassVar[float] = 1e-9

    law: BallDummies
    kept: tuple[Fraction, ...]
    reports: int
    top: Upper

    @property
    def vanishes_at(self) -> Upper:
        """The sum of the local budgets: what is released is a post-processing of the person's reports."""
        return self.top

    @property
    def known_below(self) -> bool:
        """No: with local noise the theorem is an upper bound."""
        return False

    def delta_at(self, epsilon: float) -> Interval:
        """(B1) to (B4), rounded up to a double."""
        return Interval(0.0, _double_above(self.law.floor(epsilon, self.kept, self.reports)))

    def keeps(self, epsilon: float, delta: float) -> bool:
        """Whether the floor is certified to be (epsilon, delta)-private: a comparison of whole numbers.

        Parameters
        ----------
        epsilon : float
            Nats, at least 0.
        delta : float
            In (0, 1).
        """
        return epsilon >= self.top or self.law.floor(epsilon, self.kept, self.reports) <= Fraction(delta)


def ball_floor(
    law: BallDummies, epsilon0: float | None = None, *, reports: int = 1, draw: Sequence[int] | None = None
) -> BallFloor:
    """Privacy profile of one person's reports to all questions, against everybody else, with ball dummies.

    Parameters
    ----------
    law : BallDummies
        What the shuffler adds; every column's reports are drawn by k-ary randomized response over its values (the
        number of ones of "bits").
    epsilon0 : float, optional
        The local budget of each report (nats, from 0 to 700); leave it out if `draw` states the law.
    reports : int
        Reports of the person, each to all questions, from 1 to 64; default 1.
    draw : sequence of int, optional
        For each column the chance over 2^64 that a report is the record's own, as drawn.

    Returns
    -------
    BallFloor
        ``.delta(epsilon).upper`` and ``.epsilon(delta).upper`` are certified; lower ends are 0.

    Raises
    ------
    InvalidInput
        If a number is out of range.

    Notes
    -----
    Source: docs/theorems/ball.md, own proof.

    Examples
    --------
    >>> law = BallDummies.of_promise(["choice:5", "choice:2"], [(1.0, ())], 1e-6)
    >>> 0.9 < ball_floor(law, 4.0).epsilon(1e-6).upper < 1.0
    True
    """
    if isinstance(reports, bool) or not isinstance(reports, int) or not 1 <= reports <= MOST_REPORTS:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"reports must be a whole number from 1 to {MOST_REPORTS}; got {shown(reports)}")
    if draw is not None:
        kept = tuple(_word(keep) for keep in draw)
        if len(kept) != len(law.columns):
            raise InvalidInput(f"{len(law.columns)} columns need one chance each; got {len(kept)}")
        tops = [_budget_of(keep, column.values) for keep, column in zip(kept, law.columns, strict=True)]
        return BallFloor(law, kept, reports, _sum(tops * reports))
    if isinstance(epsilon0, bool) or not isinstance(epsilon0, int | float) or not 0.0 <= epsilon0 <= MAX_EPSILON0:
        raise InvalidInput(f"epsilon0 must be a number of nats from 0 to {MAX_EPSILON0:g}; got {shown(epsilon0)}")
    kept = tuple(chance_kept(epsilon0, column.values) for column in law.columns)
    return BallFloor(law, kept, reports, _sum([float(epsilon0)] * (len(kept) * reports)))


def chance_kept(epsilon0: float, values: int) -> Fraction:
    """Return kappa = (e^epsilon0 - 1)/(e^epsilon0 + k - 1) of randomized response over k values, rounded up."""
    grown = exp_upper(Fraction(epsilon0))
    return (grown - 1) / (grown + values - 1)


def _word(value: object) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= WHOLE:
        raise InvalidInput(f"a law is drawn by whole numbers from 0 to 2^64; got {shown(value)}")
    return Fraction(value, WHOLE)


def _budget_of(kept: Fraction, values: int) -> Upper:
    """Return the local budget of reports so drawn: log(1 + k kappa/(1 - kappa))."""
    if kept == 1:
        return UNBOUNDED
    return round_up(math.log1p(float(values * kept / (1 - kept))), 8)


def _sum(budgets: list[Upper] | list[float]) -> Upper:
    return round_up(math.fsum(budgets)) if len(budgets) > 1 else Upper(budgets[0])


def _double_above(value: Fraction) -> Upper:
    """Return a lower end: the nearest double is at most half a unit below."""
    return round_up(float(value)) if value else Upper(0.0)
