"""The commands of README.md are promises: each runs as printed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import polars as pl
import pytest

from shuffledp.cli.demo import TABLE

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
COLLECTION = README.split("## Hold a collection")[1].split("\n## ")[0]
"""Its commands need each other; tests/cli/test_collection_pages.py runs them in order."""
COMMANDS = re.findall(r"^shuffledp .+$", README.replace(COLLECTION, ""), re.MULTILINE)
WHERE = "$(shuffledp demo --where)"
SLOW = ("rounds", "reproduce gspa", "plan --question frequency")
JOBS = {
    "plan", "mean", "frequency", "histogram", "quantiles", "variance", "audit", "amplify", "calibrate", "reproduce",
    "train", "ledger", "release", "frequent-items",
}  # fmt: skip


def case(command: str):
    return pytest.param(command, marks=[pytest.mark.slow] if any(word in command for word in SLOW) else [])


@pytest.mark.parametrize("command", [case(command) for command in COMMANDS])
def test_a_command_of_the_readme_runs(run, tmp_path, command):
    rows = 300
    columns = {
        "hours": [40.0, 20.0, 55.5] * (rows // 3),
        "vote": ["yes", "no", "none"] * (rows // 3),
        "budget": [0.5, 1.0] * (rows // 2),
        "consent": ["strict", "open"] * (rows // 2),
    }
    pl.DataFrame(columns).write_csv(tmp_path / "people.csv")
    words = shlex.split(command.replace(WHERE, str(TABLE)))
    result = run(*words[1:])
    assert result.status == 0, result.err
    assert result.out
    written = {word for word in words if word.endswith((".html", ".csv")) and word != "people.csv"}
    assert written <= {path.name for path in tmp_path.iterdir()}


def test_where_the_bundled_table_lies(run):
    assert run("demo", "--where").out == f"{TABLE}\n"


def test_there_is_a_command_for_every_job():
    assert {command.split()[1] for command in COMMANDS} == JOBS


def test_the_python_of_the_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"vote": ["yes", "no", "none"] * 100, "budget": [0.5, 1.0] * 150}).write_csv("people.csv")
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    known: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), known)
    assert {"guarantee", "release"} <= set(known)
