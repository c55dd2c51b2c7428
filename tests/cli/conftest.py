"""The real command line, run in this process."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest
from tools.json_schemas import FOLDER, closed, command_of

from shuffledp.cli import main
from shuffledp.report.to_json import FORMAT


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.status == 0, self.err
        assert self.err == ""
        found = json.loads(self.out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
        assert found.pop("format") == FORMAT  # every object carries it; the tests look at the rest
        return found

    @property
    def error(self) -> str:
        """The one line on stderr of a refused command, without its mark."""
        assert self.status == 2, (self.status, self.out, self.err)
        assert self.out == ""
        assert self.err.startswith("error: ")
        assert self.err.endswith("\n")
        assert self.err.count("\n") == 1, self.err
        assert "Traceback" not in self.err
        return self.err.removeprefix("error: ").rstrip("\n")


MANY = {"--level", "--consent", "--ask", "--answer", "--promise", "--disjoint"}
"""Options that may be given several times."""


def latest(*words: object) -> list[str]:
    """Let an option that a test adds replace the same one of the command it starts from: given twice, it is refused."""
    left: list[str] = []
    for word in map(str, words):
        many = word in MANY or (word == "--mechanism" and words[0] == "plan")
        if word.startswith("--") and not many and word in left:
            place = left.index(word)
            has_value = place + 1 < len(left) and not left[place + 1].startswith("--")
            del left[place : place + 1 + has_value]
        left.append(word)
    return left


Run = Callable[..., Result]


@cache
def schema(command: str) -> Callable[[Any], Any]:
    """Return what checks an object of this command; see tools/json_schemas.py."""
    text = (FOLDER / f"{command.replace(' ', '-')}.json").read_text(encoding="utf-8")
    return fastjsonschema.compile(closed(json.loads(text)))


def hold_to_schema(words: list[str], said: str) -> None:
    """Check what a command printed against its schema, or keep it for whoever writes the schemas anew."""
    value, seen = json.loads(said), os.environ.get("SHUFFLEDP_JSON_SEEN")
    if seen is None:
        schema(command_of(words))(value)
    else:
        with Path(seen, str(os.getpid())).open("a", encoding="utf-8") as file:
            file.write(json.dumps([command_of(words), value]) + "\n")


@pytest.fixture
def run(run_as_typed) -> Run:
    """Run `shuffledp ARGUMENTS`, of which the later of two options counts."""
    return lambda *arguments: run_as_typed(*latest(*arguments))


@pytest.fixture
def run_as_typed(capsys, monkeypatch, tmp_path) -> Run:
    """Run `shuffledp ARGUMENTS` in an empty directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("SHUFFLEDP_DEBUG", raising=False)

    def call(*arguments: object) -> Result:
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        status = int(stopped.value.code or 0)
        if status == 0 and "--json" in arguments:
            hold_to_schema([str(argument) for argument in arguments], captured.out)
        return Result(status, captured.out, captured.err)

    return call
