"""A copy without its products is a working accountant, with estimates, ledger, plan and audit."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_import_law import PRODUCTS
from tests.trees import ROOT

SCRIPT = """
import pathlib, sys
import shuffledp
from shuffledp.cli import main
assert pathlib.Path(shuffledp.__file__).is_relative_to(sys.argv[1]), shuffledp.__file__
main(sys.argv[2:])
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


def done(bare: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", SCRIPT, str(bare), *words]
    where = os.environ | {"PYTHONPATH": str(bare)}
    return subprocess.run(command, cwd=bare, env=where, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", COMMANDS)
def test_what_stays_answers_as_before(name: str, bare: Path) -> None:
    found = done(bare, *COMMANDS[name], "--json")
    assert (found.returncode, found.stderr) == (0, "")
    script = "import sys; from shuffledp.cli import main; main(sys.argv[1:])"
    whole = [sys.executable, "-c", script, *COMMANDS[name], "--json"]
    assert subprocess.run(whole, cwd=bare, capture_output=True, text=True, check=True).stdout == found.stdout


def test_a_ledger_is_kept(bare: Path) -> None:
    assert done(bare, "ledger", "l.db", "--limit", "2,1e-5").returncode == 0
    assert done(bare, "mean", "t.csv", *ASKED[:-2], "--ledger", "l.db", "--json").returncode == 0
    assert len(json.loads(done(bare, "ledger", "l.db", "--json").stdout)["entries"]) == 1


def test_what_went_is_named(bare: Path) -> None:
    shown = done(bare, "--help").stdout
    assert "amplify" in shown
    assert "train" not in shown
    gone = done(bare, "train", "mnist-sample")
    assert gone.returncode == 2
    assert gone.stderr.startswith("error: No such command")
    held = done(bare, "demo", "collection")
    assert (held.returncode, held.stderr.count("\n")) == (2, 1)
    assert "which this copy lacks" in held.stderr
