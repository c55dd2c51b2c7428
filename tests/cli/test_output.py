"""Where the answer goes: outputs that fail do not make it undone, and letters a terminal lacks do not lose it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_a_terminal_without_the_letters(votes):
    ended = shuffledp(votes, *VOTES, encoding="ascii")
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert rb"\u042f" in ended.stdout
    ended = shuffledp(votes, *VOTES, "--json", encoding="ascii")
    assert [row["category"] for row in json.loads(ended.stdout)["estimates"]] == ["ä", "Я"]
