"""The walk of a budget, from the command line to the printed epsilon, is short: one flow, no detour."""

from __future__ import annotations

import sys
from itertools import pairwise, takewhile

import pytest

from shuffledp.cli import main

STOPS = ("row_budgets", "count_people", "certify", "print_guarantee")
"""Where the budget is read, counted, certified, and its guarantee printed."""


def modules_at_the_stops(arguments: list[str]) -> list[list[str]]:
    """Run the command; the modules that called each other, outermost first, at each stop."""
    stacks: list[list[str]] = []

    def watch(frame, event, _):
        if event == "call" and frame.f_code.co_name in STOPS:
            stack, at = [], frame
            while at is not None:
                name = at.f_globals.get("__name__", "")
                if name.startswith("shuffledp.") and (not stack or stack[-1] != name):
                    stack.append(name)
                at = at.f_back
            stacks.append(stack[::-1])

    sys.setprofile(watch)
    try:
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
    finally:
        sys.setprofile(None)
    assert not stopped.value.code
    return stacks


def test_a_budget_makes_fewer_than_fifteen_stays(tmp_path, capsys):
    """A stay is a module that hands it on; one that it comes back to, to go another way, counts as a return."""
    table = tmp_path / "people.csv"
    table.write_text("hours\n" + "10\n20\n" * 500)
    asked = ["mean", str(table), "--value", "hours", "--low", "0", "--high", "40", "--epsilon0", "1", "--delta", "1e-6"]
    stacks = modules_at_the_stops(asked)
    assert "epsilon" in capsys.readouterr().out
    assert len(stacks) == len(STOPS)
    stays = len(stacks[0])
    for before, stack in pairwise(stacks):
        shared = takewhile(lambda pair: pair[0] == pair[1], zip(before, stack, strict=False))
        stays += len(stack) - len(list(shared))
    assert stays < 15
    assert len(stacks) - 1 <= 5
