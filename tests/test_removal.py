"""A copy without its products is a working accountant, with estimates, ledger, plan and audit."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from shuffledp.cli import main
from tests.test_import_law import PRODUCTS
from tests.trees import ROOT

SCRIPT = """
import contextlib, io, json, pathlib, sys
import shuffledp
from shuffledp.cli import main
assert pathlib.Path(shuffledp.__file__).is_relative_to(sys.argv[1]), shuffledp.__file__
found = []
for words in json.loads(sys.argv[2]):
    status, out, err = 0, io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(words)
        except SystemExit as end:
            status = end.code or 0
    found.append((status, out.getvalue(), err.getvalue()))
print(json.dumps(found))
"""
CROWD = ("--epsilon0", "1", "--n", "10000", "--delta", "1e-6")
ASKED = ("--value", "v", "--low", "0", "--high", "1", "--epsilon0", "1", "--delta", "1e-6", "--simulation-seed", "1")
COMMANDS = {
    "amplify": ("amplify", *CROWD, "--randomizer", "krr:5"),
    "mean": ("mean", "t.csv", *ASKED),
    "release": ("release", "t.csv", "--ask", "mean v 0 1", "--ask", "variance v 0 1", *ASKED[6:]),
    "plan": ("plan", *CROWD, "--question", "mean", "--low", "0", "--high", "1", "--target-epsilon", "0.1"),
    "calibrate": ("calibrate", "--target-epsilon", "0.5", "--n", "10000", "--delta", "1e-6"),
    "audit": ("audit", "--randomizer", "krr:4", "--epsilon0", "1", "--trials", "2000", "--simulation-seed", "1"),
}


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package without the products, beside a table."""
    folder = tmp_path_factory.mktemp("bare")
    left_out = shutil.ignore_patterns("__pycache__")

    def ignored(where: str, names: list[str]) -> set[str]:
        products = set(PRODUCTS) if Path(where).name == "shuffledp" else set[str]()
        return left_out(where, names) | products

    shutil.copytree(ROOT / "src" / "shuffledp", folder / "shuffledp", ignore=ignored)
    (folder / "t.csv").write_text("v\n" + "0\n1\n" * 500)
    return folder


class Done(NamedTuple):
    """What a command left: its exit status, and what it wrote."""

    status: int
    out: str
    err: str


def done(bare: Path, *commands: Sequence[str]) -> list[Done]:
    """Run commands in the copy, one after the other in one process."""
    command = [sys.executable, "-c", SCRIPT, str(bare), json.dumps(commands)]
    where = os.environ | {"PYTHONPATH": str(bare)}
    printed = subprocess.run(command, cwd=bare, env=where, capture_output=True, text=True, check=True).stdout
    return [Done(*one) for one in json.loads(printed)]


def test_what_stays_answers_as_before(
    bare: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = [[*words, "--json"] for words in COMMANDS.values()]
    monkeypatch.chdir(bare)
    for words, found in zip(commands, done(bare, *commands), strict=True):
        assert (found.status, found.err) == (0, ""), words
        with contextlib.suppress(SystemExit):
            main(words)
        assert capsys.readouterr().out == found.out, words


def test_a_ledger_is_kept(bare: Path) -> None:
    kept = ("mean", "t.csv", *ASKED[:-2], "--ledger", "l.db", "--json")
    *asked, shown = done(bare, ("ledger", "l.db", "--limit", "2,1e-5"), kept, ("ledger", "l.db", "--json"))
    assert [one.status for one in asked] == [0, 0]
    assert len(json.loads(shown.out)["entries"]) == 1


def test_what_went_is_named(bare: Path) -> None:
    shown, gone, held = done(bare, ("--help",), ("train", "mnist-sample"), ("demo", "collection"))
    assert "amplify" in shown.out
    assert "train" not in shown.out
    assert gone.status == 2
    assert gone.err.startswith("error: No such command")
    assert (held.status, held.err.count("\n")) == (2, 1)
    assert "which this copy lacks" in held.err
