"""The page of claims: its numbers are the library's, and its verdicts follow from them."""

from __future__ import annotations

import math

import pytest
from tools import make_referee

from shuffledp import Interval

PAGE = make_referee.PAGE.read_text(encoding="utf-8")


@pytest.mark.costly
def test_the_page_is_what_the_script_writes():
    assert make_referee.page(PAGE) == PAGE, "docs/referee.md is out of date; run: python -m tools.make_referee"


def test_formulas_by_hand():
    """The two formulas of the cited lines at the package's default, 8 and 10,000 clients."""
    assert make_referee.square_root(8.0, 10_000) == pytest.approx(8 * math.sqrt(13.815510557964274 / 10_000), rel=1e-12)
    assert make_referee.logarithm(8.0, 10_000) == pytest.approx(0.9999 * math.log(1.2979957987) + 0.0008, rel=1e-9)


def test_a_verdict_follows_from_the_numbers():
    assert make_referee.judged(Interval(1.0, 1.5), 2.0, 3.0) == "**too small**: 33 % more is attained"
    assert make_referee.judged(Interval(0.1, 0.2), 2.0, 3.0) == "**too small**: 10 times as much is attained"
    assert make_referee.judged(Interval(1.5, 2.5), 2.0, 3.0) == "not refuted"
    assert make_referee.judged(Interval(3.0, 3.1), 2.0, 3.0) == "holds"
