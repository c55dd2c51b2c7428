"""Linked rounds and memoised reports on the command line."""

from __future__ import annotations

import pytest


@pytest.mark.costly
@pytest.mark.parametrize(
    ("randomizer", "rounds", "more", "upper"),
    [("rr", "4", ["--same-record"], 0.23), ("rr", "4", [], 0.254), ("memoised:1", "30", ["--same-record"], 0.0361)],
)
def test_linked_rounds(run, randomizer, rounds, more, upper):
    told = ["--epsilon0", "1", "--n", "10000", "--delta", "1e-6", "--randomizer", randomizer, "--seen", "reports"]
    result = run("amplify", *told, "--rounds", rounds, "--linked", *more, "--json")
    said = result.json
    assert 0.0 < said["epsilon"]["lower"] <= said["epsilon"]["upper"] <= upper
    assert said["setting"].get("same_record", False) == bool(more)


@pytest.mark.costly("memoised-more2-write memoised:2 or memoised:2:1")
@pytest.mark.parametrize(
    ("randomizer", "more", "why"),
    [
        ("rr", ["--same-record"], "--same-record is about linked rounds"),
        ("memoised:1", ["--rounds", "3", "--linked"], "made from one memo"),
        ("memoised", [], "write memoised:2 or memoised:2:1"),
        ("memoised:x", [], "write memoised:2 or memoised:2:1"),
        ("memoised:-1", [], "permanent must be a budget above 0"),
        ("memoised:2", [], "at least 2.0, the budget with which the memo is drawn; got 1.0"),
    ],
)
def test_mistakes_are_one_line(run, randomizer, more, why):
    told = ["--epsilon0", "1", "--n", "100", "--delta", "1e-6", "--randomizer", randomizer, *more]
    result = run("amplify", *told)
    assert why in result.error
