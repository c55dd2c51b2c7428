"""What a new user meets first: five lines, groups of commands, help where people look for it."""

from __future__ import annotations

import shlex
import subprocess
import sys

import pytest

from shuffledp.cli.app import COMMANDS
from shuffledp.cli.front import FIRST, PANELS


def test_without_a_command_five_lines_say_what_to_type(run, tmp_path):
    bare = run()
    assert (bare.status, bare.err) == (0, "")
    lines = bare.out.splitlines()
    assert len(lines) == 5
    assert max(map(len, lines)) <= 86
    (tmp_path / "a.csv").write_text("x\n" + "1\n5\n9\n" * 20)
    for line in lines[1:]:
        words = shlex.split(line.partition("  (")[0])[1:]
        shown = run(*words[1:])
        if words[1] == "task":
            assert "survey.toml" in shown.error  # there is none
        else:
            assert shown.status == 0, shown.err


def test_the_commands_are_listed_in_groups(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = run("--help").out
    places = [shown.index(f"─ {panel} ─") for panel in PANELS]
    assert places == sorted(places)
    assert all(f"│ {command} " in shown for command in COMMANDS)
    assert "Start here: shuffledp demo" in shown


@pytest.mark.parametrize("words", [["-h"], ["help"], ["mean", "-h"], ["help", "mean"], ["help", "task", "draft"]])
def test_help_is_where_people_look(run, words):
    asked = [word for word in words if word not in ("help", "-h")]
    assert run(*words).out == run(*asked, "--help").out != ""


def test_commands_below_a_command_are_shown_without_an_error(run):
    bare = run("task")
    assert (bare.status, bare.err) == (0, "")
    assert "clock-ok" in bare.out


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["amplify", "--epsilon0", "1", "--n", "9", "--epsilon0", "2", "--delta", "1e-6"], "--epsilon0"),
        (["mean", "--json", "a.csv", "--json"], "--json"),
        (["task", "draft", "a.toml", "--out", "a", "--out=b"], "--out"),
    ],
)
def test_an_option_given_twice_is_refused(run_as_typed, words, option):
    assert run_as_typed(*words).error == f"{option} is given twice; give it once"


def test_an_option_that_may_be_repeated_may_be_repeated(run_as_typed):
    more = ("--randomizer", "rr", "--seen", "reports", "--delta", "1e-6")
    assert run_as_typed("amplify", "--level", "1:10", "--level", "2:20", *more).status == 0


def test_the_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "shuffledp"], capture_output=True, text=True, timeout=600, check=True)
    assert done.stdout == f"{FIRST}\n"
