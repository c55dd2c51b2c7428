"""Where the answer goes: outputs that fail do not make it undone, and letters a terminal lacks do not lose it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.text import Text

from shuffledp.cli.app import COMMANDS
from shuffledp.shell.output import console, reserved

FULL = Path("/dev/full")
VOTES = ("frequency", "votes.csv", "--value", "vote", "--categories", "ä,Я", "--epsilon0", "1", "--delta", "1e-6")


@pytest.fixture
def votes(tmp_path) -> Path:
    (tmp_path / "votes.csv").write_text("vote\nä\nЯ\nä\n", encoding="utf-8")
    return tmp_path


def shuffledp(folder: Path, *arguments: str, stdout=subprocess.PIPE, encoding="utf-8") -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", "from shuffledp.cli import main; main()", *arguments],
        cwd=folder, env=os.environ | {"PYTHONIOENCODING": encoding}, stdout=stdout, stderr=subprocess.PIPE, check=False,
    )  # fmt: skip


@pytest.mark.costly
@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize(
    ("more", "told"),
    [
        ((), "part of the answer may have been shown"),
        (("--json",), "part of the answer may have been shown"),
        (("--report", "page.html"), "the answer was computed before that, and stands in "),
    ],
)
def test_a_full_disk_behind_stdout(votes, more, told):
    """It used to say that nothing was released, with the page already written."""
    with FULL.open("w") as full:
        ended = shuffledp(votes, *VOTES, *more, stdout=full)
    assert ended.returncode == 2
    (line,) = ended.stderr.decode().splitlines()
    assert line.startswith("error: standard output cannot be written (No space left on device); ")
    assert told in line
    assert ((votes / "page.html").exists(), "page.html" in line) == (bool(more[1:]), bool(more[1:]))


@pytest.mark.costly
def test_a_terminal_without_the_letters(votes):
    ended = shuffledp(votes, *VOTES, encoding="ascii")
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert rb"\u042f" in ended.stdout
    ended = shuffledp(votes, *VOTES, "--json", encoding="ascii")
    assert [row["category"] for row in json.loads(ended.stdout)["estimates"]] == ["ä", "Я"]


# ------------------------------------------------------------------ links


@pytest.mark.costly
@pytest.mark.parametrize("there", [True, False])
def test_an_output_does_not_follow_a_link(votes, there):
    """In a shared folder whoever made the link would choose which file of the user's is overwritten."""
    (votes / "elsewhere").mkdir()
    victim = votes / "elsewhere" / "victim"
    if there:
        victim.write_text("precious")
    (votes / "page.html").symlink_to(victim)
    ended = shuffledp(votes, *VOTES, "--report", "page.html")
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert ended.stderr.decode() == "error: --report page.html is a symbolic link; name the file itself\n"
    assert (votes / "page.html").is_symlink()
    assert (victim.exists(), victim.read_text() if there else "") == (there, "precious" if there else "")


def test_a_link_made_while_the_command_runs_is_replaced_not_followed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "victim").write_text("precious")
    with reserved(Path("page.html"), "--report") as stream:
        stream.write("answer")
        (tmp_path / "page.html").symlink_to("victim")
    assert (tmp_path / "victim").read_text() == "precious"
    assert not (tmp_path / "page.html").is_symlink()
    assert (tmp_path / "page.html").read_text() == "answer"


def test_a_folder_may_be_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with reserved(tmp_path / "link" / "page.html", "--report") as stream:
        stream.write("answer")
    assert (tmp_path / "real" / "page.html").read_text() == "answer"


# ------------------------------------------------------------------ names that a terminal would obey

EVIL = "a\x1b[2J\x9b5m\x07\u202egnp\u2066"


@pytest.mark.costly
def test_names_of_categories_do_not_steer_the_terminal_or_the_page(votes):
    (votes / "votes.csv").write_text("vote\n" + f"{EVIL}\nb\n" * 50, encoding="utf-8")
    (votes / "names.txt").write_text(f"{EVIL}\nb\n", encoding="utf-8")
    arguments = ("frequency", "votes.csv", "--value", "vote", "--categories", "names.txt", "--epsilon0", "1")
    arguments = (*arguments, "--delta", "1e-6", "--report", "page.html")
    for more in ((), ("--json",)):
        ended = shuffledp(votes, *arguments, *more)
        assert (ended.returncode, ended.stderr) == (0, b"")
        assert ended.stdout.decode().replace("\n", "").isprintable()
        page = (votes / "page.html").read_text(encoding="utf-8")
        assert page.replace("\n", "").isprintable()
        assert "a[2J5mgnp" in page
    assert json.loads(ended.stdout)["estimates"][0]["category"] == EVIL


def test_what_is_printed_keeps_its_colours(monkeypatch, capsys):
    """Escape sequences of our own are no part of any name."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    console().print(Text(EVIL, style="bold red"))
    shown = capsys.readouterr().out
    assert shown.startswith("\x1b[1;31m")
    assert "a[2J5mgnp" in shown


# ------------------------------------------------------------------ narrow terminals, and none

NUMBER = re.compile(r"\d[\d.,e%-]*")
SHOWN = {
    "amplify": ("amplify", "--level", "1:9000", "--level", "4:1000", "--seen", "reports", "--randomizer", "rr"),
    "frequency": VOTES[:-2],
    "histogram": (
        "histogram", "votes.csv", "--value", "hours", "--low", "0", "--high", "100", "--bins", "4", "--epsilon0", "1",
    ),
    "plan": (
        "plan", "--question", "frequency", "--categories", "a,b,c", "--epsilon0", "1", "--n", "10000",
        "--target-epsilon", "0.1", "--target-error", "0.01",
    ),
}  # fmt: skip


@pytest.mark.costly("amplify-40", "amplify-60", "plan-40", "plan-60")
@pytest.mark.parametrize("columns", [40, 60])
@pytest.mark.parametrize("command", SHOWN)
def test_a_narrow_terminal_cuts_no_number_and_no_word(run, votes, monkeypatch, command, columns):
    rows = [f"{vote},{hours}" for vote, hours in zip("äЯ" * 60, range(120), strict=True) if hours <= 100]
    (votes / "votes.csv").write_text("vote,hours\n" + "\n".join(rows), encoding="utf-8")
    simulated = () if command in ("amplify", "plan") else ("--simulation-seed", "1")
    shown: list[str] = []
    for width in (columns, 1000):
        monkeypatch.setenv("COLUMNS", str(width))
        done = run(*SHOWN[command], "--delta", "1e-6", *simulated)
        assert done.status == 0, done.err
        shown.append(done.out)
    assert "…" not in shown[0]
    assert sorted(NUMBER.findall(shown[0])) == sorted(NUMBER.findall(shown[1]))


def test_off_a_terminal_a_sentence_is_one_line(run, monkeypatch):
    monkeypatch.delenv("COLUMNS")
    lines = run("amplify", "--epsilon0", "1", "--n", "1000", "--delta", "1e-6").out.splitlines()
    assert any(line.startswith("An attacker who sees") and line.endswith("1e-6.") for line in lines)


def test_off_a_terminal_a_title_is_one_line(run, votes, monkeypatch):
    """It was broken at the width of its table, so the randomizer had a line of its own."""
    monkeypatch.delenv("COLUMNS")
    asked = ("--value", "hours", "--low", "0", "--high", "100", "--bins", "2", "--at", "0.5", "--epsilon0", "1")
    (votes / "votes.csv").write_text("hours\n" + "\n".join(map(str, range(101))), encoding="utf-8")
    told = run("quantiles", "votes.csv", *asked, "--delta", "1e-6", "--simulation-seed", "1").out
    assert "Quantiles of 101 rows, taken as people (tree:2:4)\n" in told


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_no_emoji(run, command):
    """`laplace:M:RATIO` was shown with a letter M in a circle."""
    assert not re.search("[\u24c2\u2600-\u27bf\U0001f000-\U0001ffff]", run(command, "--help").out)
