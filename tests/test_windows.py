"""What runs on Windows runs without the modules, calls and encoding that it lacks; the rest is refused in one line.

`docs/systems.md` is the table. The subprocess here lacks what Windows lacks and has a stand-in for `msvcrt`; paths and
the rules of names are still this system's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SIMULATED = r"""
import json, os, signal, sys, types, warnings
import rich.console, typer  # they choose what they import by the system, which stays this one
sys.modules.update(dict.fromkeys(("fcntl", "grp", "pwd", "resource", "termios", "tty")))
for name in "fork getuid geteuid fchmod fchown mkfifo sched_getaffinity O_NOFOLLOW O_DIRECTORY O_CLOEXEC".split():
    delattr(os, name)
for name in ("SIGHUP", "SIGKILL", "SIGUSR1"):
    delattr(signal, name)
held = {}
def locking(number, mode, size):
    held[os.fstat(number).st_ino] = number
sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_NBLCK=2)
from shuffledp import whole_files
from shuffledp.cli import main
whole_files.WINDOWS = True
warnings.filterwarnings("error", category=EncodingWarning, module="shuffledp")
for words in json.loads(sys.argv[1]):
    try:
        main(words)
    except SystemExit as end:
        sys.stdout.flush()
        print("STATUS", end.code, *words[:2], flush=True, file=sys.stderr)
"""
SURVEY = """\
title = "Mittag für alle"
organizer = "Büro"
contact = "a@example.org"
privacy_notice = "https://example.org/p"
opens = 2026-01-01T08:00:00Z
closes = 2099-01-31T18:00:00Z
expires = 2099-02-28T18:00:00Z
people = 50
accept_one_shuffler = true
[operated_by]
analyzer = "Büro"
shuffler = "Rat"
page = "Rat"
[[questions]]
text = "Suppe?"
choices = ["ja", "nein", "weiß nicht"]
"""
REFUSED = "error: a collection cannot be held on Windows: "


def on_windows(folder: Path, *commands: str) -> subprocess.CompletedProcess[str]:
    """Run commands, one a line of words, where text is cp1252 and a file opened without an encoding is an error."""
    variables = {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}
    words = json.dumps([command.split() for command in commands])
    return subprocess.run(
        [sys.executable, "-X", "warn_default_encoding", "-c", SIMULATED, words],
        cwd=folder, capture_output=True, encoding="cp1252", check=False, timeout=600,
        env=os.environ | variables | {"COLUMNS": "120", "XDG_STATE_HOME": str(folder)},
    )  # fmt: skip


def test_what_runs_there(tmp_path):
    rows = "".join(f"{20 + place % 60},{word},{place % 9}\n" for place, word in enumerate(["Köln", "Łódź"] * 100))
    (tmp_path / "t.csv").write_text("age,city,who\n" + rows, encoding="utf-16")
    (tmp_path / "cities.txt").write_text("Köln\nŁódź\n", encoding="utf-8")
    (tmp_path / "survey.toml").write_text(SURVEY, encoding="utf-8")
    asked = "--epsilon0 1 --delta 1e-6"
    training = f"train t.csv --label city --features age:0:90 --unit example --seen users --groups who {asked}"
    done = on_windows(
        tmp_path,
        f"amplify --n 1000 {asked}",
        "ledger spent.db --new",
        f"mean t.csv --value age --low 0 --high 100 {asked} --ledger spent.db --report page.html",
        f"frequency t.csv --value city --categories cities.txt {asked} --csv shares.csv",
        f"{training} --rounds 1 --holdout 0 --checkpoint run",
        f"{training} --rounds 2 --holdout 0 --checkpoint run --resume --model-out model.npz",
        "task draft survey.toml --out lunch",
    )
    ended = [line for line in done.stderr.splitlines() if not line.startswith("STATUS 0 ")]
    assert (ended, done.stderr.count("STATUS 0 ")) == ([], 7), done.stdout
    assert {"page.html", "shares.csv", "run", "model.npz", "lunch.draft", "lunch.key"} <= set(os.listdir(tmp_path))
    assert "Łódź" in (tmp_path / "shares.csv").read_text(encoding="utf-8")
    assert "± is half of" in done.stdout  # cp1252 has it


@pytest.mark.costly
def test_what_is_refused_there(tmp_path):
    """`serve` ended in a traceback (no module named 'resource'), and `demo collection` drafted for 14 seconds first."""
    (tmp_path / "survey.toml").write_text(SURVEY, encoding="utf-8")
    commands = ["serve", "demo collection", "task preview survey.toml", "task rehearse survey.toml"]
    commands += ["task status", "task close --yes", "task clock-ok"]
    done = on_windows(tmp_path, *commands)
    lines = done.stderr.splitlines()
    assert [line.startswith(REFUSED) for line in lines[::2]] == [True] * len(commands), done.stderr
    assert [line.split()[:2] for line in lines[1::2]] == [["STATUS", "2"]] * len(commands)
    assert os.listdir(tmp_path) == ["survey.toml"]
