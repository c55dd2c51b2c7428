"""`frequent-items` as typed: JSON, CSV, page, groups, beside other questions, and what is said of mistakes."""

from __future__ import annotations

import html
import re

import numpy as np
import polars as pl
import pytest

from shuffledp import FrequentItems
from shuffledp.cli.estimate import parse_ask

ROWS = 1000
LISTED = ("frequent-items", "flights.csv", "--value", "dest", "--candidates", "ATL,BOS,LAX,ORD", "--delta", "1e-4")
WORDS = ("frequent-items", "flights.csv", "--value", "dest", "--delta", "1e-4", "--max-length", "3", "--alphabet",
         "upper")  # fmt: skip
FOUR = ("--epsilon0", "4")
SEEDED = (*FOUR, "--simulation-seed", "1")


@pytest.fixture(autouse=True)
def flights(run, tmp_path):
    """A table of flights beside which the commands run: half to ORD, three eighths to ATL, few to others."""
    dest = np.repeat(["ORD", "ATL", "BOS", "QQQ"], [500, 375, 120, 5])
    columns = {"dest": dest, "budget": [3.0, 4.0] * (ROWS // 2), "carrier": ["UA", "AA", "AA", "AA"] * (ROWS // 4)}
    pl.DataFrame(columns).write_csv(tmp_path / "flights.csv")


@pytest.mark.costly("searched")
@pytest.mark.parametrize("command", [LISTED, WORDS], ids=["listed", "searched"])
def test_json(run, command):
    answer = run(*command, *SEEDED, "--json").json
    assert answer["question"] == "frequent-items"
    assert [row["item"] for row in answer["estimates"][:2]] == ["ORD", "ATL"]
    first = answer["estimates"][0]
    assert set(first) == {"item", "frequency", "standard_error", "confidence_interval"}
    assert first["confidence_interval"][0] < 0.5 < first["confidence_interval"][1]
    assert answer["simultaneous"] is True
    assert answer["counts"]["of"] == ROWS
    assert answer["counts"]["estimates"][0]["item"] == "ORD"
    search = answer["search"]
    assert set(search) == {"threshold", "finds", "false_positives", "levels", "cells", "tried", "complete"}
    assert 0.0 < search["threshold"] < search["finds"] < 0.2
    assert (search["false_positives"], search["complete"]) == (0.05, True)
    assert (search["levels"], search["tried"]) == (1, 4) if command is LISTED else search["levels"] == 2
    assert answer["mechanism"] == ("items:3:1:64" if command is LISTED else "items:20:2:64")
    assert any("is found with a chance of 95 %" in note for note in answer["notes"])


def test_what_people_see(run, tmp_path):
    shown = run(
        *LISTED, *SEEDED, "--counts", "--csv", "items.csv", "--report", "items.html", "--title", "Where to?"
    ).out
    for words in ("Frequent items of 1,000 rows", "among 4 candidates", "ORD", "all together", "Counts over"):
        assert words in shown
    assert "one by one" not in shown
    table = pl.read_csv(tmp_path / "items.csv")
    assert table["label"].to_list()[:2] == ["ORD", "ATL"]
    assert {"estimate", "interval_low", "count", "count_interval_high"} <= set(table.columns)
    page = html.unescape((tmp_path / "items.html").read_text(encoding="utf-8"))
    assert "Which values of dest are frequent?" in page
    assert re.search(r"<td[^>]*>ORD</td>", page)
    assert "all of them hold together" in page


def test_nothing_found(run, tmp_path):
    """At a tiny budget no name is surely real; the answer says so, and is an answer."""
    command = (*LISTED, "--epsilon0", "0.01", "--simulation-seed", "1")
    shown = run(*command, "--report", "none.html", "--counts").out
    assert "No item is frequent enough to be named." in shown
    assert "no item would surely be found, however frequent" in shown
    assert "No item is frequent enough" in (tmp_path / "none.html").read_text(encoding="utf-8")
    answer = run(*command, "--json").json
    assert answer["estimates"] == answer["counts"]["estimates"] == []
    assert answer["search"]["finds"] > 1.0
    assert run(*command, "--csv", "none.csv").status == 0
    assert pl.read_csv(tmp_path / "none.csv").height == 0


@pytest.mark.costly
def test_groups_and_budgets(run):
    asked = (
        *LISTED,
        "--epsilon0",
        "budget",
        "--seen",
        "reports",
        "--simulation-seed",
        "1",
        "--by",
        "carrier",
        "--groups",
        "UA,AA",
    )
    shown = run(*asked).out
    assert "By carrier" in shown
    assert "all together" in " ".join(shown.split())
    answer = run(*asked, "--json").json
    assert [group["estimates"][0]["item"] for group in answer["groups"]] == ["ORD", "ORD"]


@pytest.mark.costly
def test_beside_other_questions(run, tmp_path):
    (tmp_path / "questions.toml").write_text(
        '[[questions]]\ncolumn = "dest"\nkind = "frequent-items"\ncandidates = ["ORD", "ATL"]\n'
        '[[questions]]\ncolumn = "carrier"\nkind = "frequency"\nchoices = ["UA", "AA"]\n',
        encoding="utf-8",
    )
    read = run("release", "flights.csv", "--questions", "questions.toml", *SEEDED, "--delta", "1e-4", "--json").json
    assert [each["question"] for each in read["releases"]] == ["frequent-items", "frequency"]


def test_asked_in_words():
    assert parse_ask("frequent-items dest 3 upper").question == FrequentItems(max_length=3, alphabet="upper")
    assert parse_ask("frequent-items dest 3").question == FrequentItems(max_length=3)
    assert parse_ask("frequent-items dest").question == FrequentItems()


@pytest.mark.costly
def test_a_file_of_candidates_and_a_ledger(run, tmp_path):
    (tmp_path / "airports.txt").write_text("ORD\nATL\nLAX\n", encoding="utf-8")
    command = ("frequent-items", "flights.csv", "--value", "dest", "--candidates", "airports.txt", "--delta", "1e-4")
    run("ledger", "people.ledger", "--new")
    assert run(*command, "--epsilon0", "1", "--ledger", "people.ledger").status == 0
    assert "frequent-items of dest" in run("ledger", "people.ledger").out


def test_two_releases_have_no_difference(run, tmp_path):
    """The items are chosen by each, so neither says anything of the other's."""
    found = run(*LISTED, "--epsilon0", "1", "--json")
    for name in ("first.json", "second.json"):
        (tmp_path / name).write_text(found.out, encoding="utf-8")
    assert "frequent-items" in run("difference", "first.json", "second.json", "--delta", "1e-4").error


@pytest.mark.costly("arguments1-row 1 is not a word of the alphabet 'lower'")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*WORDS[:-4], *SEEDED, "--max-length", "2"), "allow a larger --max-length, say --cut, or name the item"),
        ((*WORDS[:-1], "lower", *SEEDED), "row 1 is not a word of the alphabet 'lower'"),
        ((*WORDS, *SEEDED, "--other", "TOOLONG"), "--other must be an item of at most 3 characters"),
        ((*WORDS, *SEEDED, "--missing-as", "x"), "--missing-as must be an item of at most 3 characters"),
        ((*WORDS, *SEEDED, "--false-positives", "0"), "--false-positives must be a chance in (0, 1); got 0"),
        ((*WORDS[:-1], "aa", *SEEDED), "--alphabet must be ascii, lower"),
        ((*LISTED, *SEEDED, "--max-length", "3"), "--candidates list the items, so --max-length, --alphabet and --cut"),
        ((*LISTED, *SEEDED, "--other", "XXX"), "--other must be a candidate; got 'XXX'"),
        ((*LISTED[:5], "ORD", *LISTED[6:], *SEEDED), "--candidates 'ORD' is neither a list of two or more"),
        ((*WORDS, "--epsilon0", "budget"), "there are 2 different budgets, so --seen is needed"),
        ((*WORDS, *SEEDED, "--seen", "sum"), "--seen must be one of reports, levels; got 'sum'"),
        (
            ("release", "flights.csv", "--ask", "frequent-items dest 3 upper x", *SEEDED, "--delta", "1e-4"),
            "--ask must",
        ),
    ],
)
def test_bad_input(run, arguments, message):
    assert message in run(*arguments).error


def test_amplify_knows_the_randomizer(run):
    """The name that a release prints is accepted, and certified as it was."""
    answer = run(*LISTED, *SEEDED, "--json").json
    again = run(
        "amplify", "--epsilon0", 4, "--n", ROWS, "--randomizer", answer["mechanism"], "--delta", "1e-4", "--json"
    )
    assert again.json["epsilon"] == answer["guarantee"]["epsilon"]
