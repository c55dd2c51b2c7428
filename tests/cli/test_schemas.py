"""Every command with --json has a schema under docs/schemas, and `reproduce` keeps to its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tools.json_schemas import FOLDER

from shuffledp.cli.app import parser
from shuffledp.reproduce import catalogue

OBJECTS = {"demo": ("demo", "demo collection")}
"""Commands that print an object of another kind where their argument says so."""


def with_json(command: Any, name: str = "") -> Iterator[str]:
    """Names of a command, and of those below it, that take --json."""
    if any("--json" in parameter.opts for parameter in command.params):
        yield name
    for word, below in getattr(command, "commands", {}).items():
        yield from with_json(below, f"{name} {word}".strip())


def test_every_command_with_json_has_a_schema():
    commands = [each for name in with_json(parser()) for each in OBJECTS.get(name, (name,))]
    assert {"amplify", "task plan", "reproduce"} <= {*commands}
    assert {f"{name.replace(' ', '-')}.json" for name in commands} == {path.name for path in FOLDER.glob("*.json")}


@pytest.mark.parametrize("words", [("--list",), ("gspa-lemma-2", "--quick", "--out", "here")])
def test_reproduce_prints_what_its_schema_says(run, monkeypatch, words):
    monkeypatch.setattr(catalogue, "reproduce", lambda name, out, **options: [out / f"{name}.csv"])
    found = run("reproduce", *words, "--json").json
    assert found.get("written") in (None, {"gspa-lemma-2": ["here/gspa-lemma-2.csv"]})
