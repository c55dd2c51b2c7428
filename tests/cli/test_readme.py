"""The commands of README.md are promises: each runs as printed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import polars as pl
import pytest

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^shuffledp .+$", README, re.MULTILINE)


SLOW = [pytest.mark.slow]


@pytest.mark.parametrize("command", [pytest.param(c, marks=SLOW if "rounds" in c else []) for c in COMMANDS])
def test_a_command_of_the_readme_runs(run, tmp_path, command):
    rows = 300
    columns = {"hours": [40.0] * rows, "vote": ["yes", "no", "none"] * (rows // 3), "budget": [0.5, 1.0] * (rows // 2)}
    pl.DataFrame(columns).write_csv(tmp_path / "people.csv")
    result = run(*shlex.split(command)[1:])
    assert result.status == 0, result.err
    assert result.out
    written = {word for word in shlex.split(command) if word.endswith((".html", ".csv")) and word != "people.csv"}
    assert written <= {path.name for path in tmp_path.iterdir()}


def test_there_is_a_command_for_every_job():
    assert {command.split()[1] for command in COMMANDS} == {"amplify", "calibrate", "mean", "frequency"}
