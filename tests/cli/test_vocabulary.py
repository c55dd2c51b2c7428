"""One word for a thing on every door: users in accounting, people in tables, participants in collections."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest
import typer

from shuffledp.cli.app import app
from shuffledp.cli.front import QUESTIONS

SENDERS = ("user", "client", "participant", "respondent")
"""Words for who sends a report, of which each door has one, or says people."""
TABLES = (*QUESTIONS, "release", "difference")
ACCOUNTING = ("amplify", "calibrate", "plan", "audit", "ledger", "total")
COLLECTIONS = ("task", "serve", "answer", "open")
LEARNING = ("train", "predict")
MAY = {
    **dict.fromkeys(TABLES, ()),
    **dict.fromkeys(ACCOUNTING, ("user",)),
    **dict.fromkeys(COLLECTIONS, ("participant",)),
    **dict.fromkeys(LEARNING, ("client",)),
}
VALUES = re.compile(r"--seen users|: users \(|reports, users, ")
"""The view `--seen users`, a name of the setting."""
OTHERS = ("analyst", "aggregator", "curator", "data collector", "privacy budget", "respondents", "bucket")
"""Words that the field has for what is named otherwise here: analyzer, organizer, local budget, bin."""


def texts(name: str, command: Any) -> Iterator[tuple[str, str]]:
    """The help of a command, of its options, and of the commands below it."""
    yield name, command.help or ""
    for option in command.params:
        yield f"{name} {option.opts[0]}", getattr(option, "help", "") or ""
    for below, inner in getattr(command, "commands", {}).items():
        yield from texts(f"{name} {below}", inner)


def strange(text: str, may: tuple[str, ...]) -> list[str]:
    """Words of a text that are not those of its door."""
    left = VALUES.sub("", text)
    found = [word for word in SENDERS if word not in may and re.search(rf"\b{word}s?\b", left, re.IGNORECASE)]
    return found + [word for word in OTHERS if re.search(rf"\b{word}\b", left, re.IGNORECASE)]


@pytest.mark.parametrize("name", MAY)
def test_help(name):
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert {where: found for where, text in texts(name, commands[name]) if (found := strange(text, MAY[name]))} == {}


def test_every_command_has_its_door():
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert set(commands) - set(MAY) == {"reproduce", "demo", "completion"}


@pytest.mark.costly(but=("more0-ask0",))
@pytest.mark.parametrize(
    "ask",
    [
        ("mean", "p.csv", "--value", "age", "--low", 0, "--high", 90),
        ("crosstab", "p.csv", "--values", "side,vote", "--rows", "a,b", "--columns", "c,d"),
        ("release", "p.csv", "--ask", "mean age 0 90", "--ask", "frequency side a,b"),
    ],
)
@pytest.mark.parametrize("more", [(), ("--by", "city", "--groups", "x,y")])
def test_answers_are_of_people(run, tmp_path, ask, more):
    rows = {"age": [20, 40], "side": ["a", "b"], "vote": ["c", "d"], "budget": [1.0, 2.0]}
    pl.DataFrame({name: column * 300 for name, column in rows.items()} | {"city": ["x", "x", "y"] * 200}).write_csv(
        tmp_path / "p.csv"
    )
    budgets = ("--epsilon0", "budget", "--seen", "reports", "--delta", 1e-6)
    assert strange(run(*ask, *more, *budgets).out, ()) == []


def test_a_strange_word_is_seen():
    assert strange("One row per user, bucket by bucket.", ()) == ["user", "bucket"]
    assert strange("What the server sees: users (every message) or levels.", ("client",)) == []
