"""What a command loads before it answers: a library that one option needs is imported where that option is served."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BASE = {"numpy", "rich", "shellingham", "shuffledp", "typer"}
"""Libraries of every command that computes; typer and NumPy bring pydantic, cython and the like along."""
NEVER = {"scipy.stats", "scipy.integrate", "scipy.interpolate", "dp_accounting", "matplotlib", "uvicorn", "segno"}
"""Slow to import, and not needed to amplify, to ask a table or to answer."""
OWN = ("amplify", "mean", "answer")
MAY = {
    "amplify": BASE | {"scipy"},
    "mean": BASE | {"scipy", "polars", "_cffi_backend", "cryptography", "markupsafe"},
    "answer": BASE | {"_cffi_backend", "cryptography"},
}
MOST_OWN = {"amplify": 120, "mean": 150, "answer": 60}
"""More modules of our own than a command loads."""
NOT_YET = {
    "amplify": ("shuffledp.collection.task", "shuffledp.learning.training", "shuffledp.planning"),
    "mean": ("shuffledp.collection", "shuffledp.learning", "shuffledp.planning"),
    "answer": ("shuffledp.accounting", "shuffledp.questions", "shuffledp.report"),
}
"""Rooms that a command does not enter; `answer` enters the accountant when its link names a task."""
WATCHED = (
    set().union(*MAY.values())
    | {"jinja2", "markupsafe"}
    | {
        "attr",
        "dp_accounting",
        "flwr",
        "matplotlib",
        "pandas",
        "pyarrow",
        "pyspark",
        "torch",
    }
)

ASKED = {
    "amplify": ["amplify", "--epsilon0", "1", "--n", "1000", "--delta", "1e-6"],
    "mean": ["mean", "TABLE", "--value", "v", "--low", "0", "--high", "1", "--epsilon0", "1", "--delta", "1e-6"],
    "answer": ["answer", "https://127.0.0.1:9/t/x"],
    "--help": ["--help"],
}
SCRIPT = """
import json, sys
from shuffledp.cli import main
try:
    main()
except SystemExit:
    pass
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def loaded(command: str, table: Path) -> set[str]:
    arguments = [str(table) if word == "TABLE" else word for word in ASKED[command]]
    done = subprocess.run([sys.executable, "-c", SCRIPT, *arguments], capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("command", OWN)
def test_a_command_loads_what_it_needs(command: str, tmp_path: Path) -> None:
    """Libraries, rooms, and how many modules of our own; `answer` is refused, for its link names no task."""
    table = tmp_path / "t.csv"
    table.write_text("v\n" + "0\n1\n" * 500)
    found = loaded(command, table)
    assert not found & NEVER
    assert {name.split(".")[0] for name in found} & WATCHED <= MAY[command]
    own = [name for name in found if name.partition(".")[0] == "shuffledp"]
    assert len(own) < MOST_OWN[command], sorted(own)
    assert not [name for name in own if name.startswith(NOT_YET[command])]


def test_help_computes_nothing(tmp_path: Path) -> None:
    found = loaded("--help", tmp_path)
    assert not found & {"numpy", "scipy", "polars", "cryptography", "jinja2", "shuffledp.accounting"}


@pytest.mark.costly
def test_the_list_sees_what_it_forbids() -> None:
    script = f"import sys, scipy.stats\nassert {NEVER!r} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)
