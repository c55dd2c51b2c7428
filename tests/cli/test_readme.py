"""README.md is a promise: short, its commands run as printed, and what it shows is what they print."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest

from shuffledp.cli.demo.table import TABLE

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MOST_LINES = 130
CUT = "..."
"""Line that stands for lines that are left out."""
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def shown() -> list[tuple[str, list[str]]]:
    """Each command of the console blocks with the lines that they show below it, `CUT` among them."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line.removeprefix("$ "), []))
            else:
                found[-1][1].append(line)
    return found


def words(text: str) -> str:
    """Text without its line breaks, which differ between a terminal and a file."""
    return " ".join(text.split())


def test_it_is_short_and_leads_on():
    assert len(README.splitlines()) <= MOST_LINES
    for target in re.findall(r"\]\(([^)#]+)", README):
        assert (ROOT / target).exists(), target


@pytest.mark.costly
def test_its_commands_run_and_print_what_it_shows(run, tmp_path):
    commands = shown()
    assert [command.split()[1] for command, _ in commands] == ["amplify", "demo", "mean", "task", "train"]
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for command, lines in commands:
        result = run(*shlex.split(command)[1:])
        assert (result.status, result.err) == (0, ""), command
        assert [line for line in lines if line != CUT], f"{command} shows no output"
        at = words(result.out)
        for place, line in enumerate(lines):
            if line == CUT:
                continue
            before, found, at = at.partition(words(line))
            assert found, f"{line!r} is not in {result.out}"
            assert not before.strip() or (place and lines[place - 1] == CUT), f"lines are left out above {line!r}"
        assert not at.strip() or lines[-1] == CUT, f"lines are left out below {lines[-1]!r}"
    assert (tmp_path / "hours.html").is_file()


@pytest.mark.costly
def test_the_demo_that_it_shows_is_what_the_demo_prints(run, monkeypatch):
    """Estimates and intervals differ from run to run: their digits are left out, those of guarantees are not."""
    monkeypatch.setenv("COLUMNS", "80")
    answers, costs = run("demo").out.split("What they cost")
    block = next(block for block in re.findall(r"```\n(.*?)```", README, re.DOTALL) if "What they cost" in block)
    answers_shown, costs_shown = block.split("What they cost")
    assert words(costs_shown) == words(costs)
    assert NUMBER.sub("#", words(answers_shown)) == NUMBER.sub("#", words(answers))


def test_where_the_bundled_table_lies(run):
    assert run("demo", "--where").out == f"{TABLE}\n"


def test_its_python_runs_and_prints_what_it_says():
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "README.md", "exec"), {})
    assert out.getvalue().split() == re.findall(r"print\(.*\)  # (.*)", code)
