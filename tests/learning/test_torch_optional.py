"""The extras stay extras: torch and Flower are imported by their own packages alone, and only when asked for."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import shuffledp

ROOT = Path(shuffledp.__file__).parent
EXTRAS = {"torch": ROOT / "learning" / "torch", "flwr": ROOT / "flower"}


def imported(path: Path) -> set[str]:
    """First parts of all absolute names that a file imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found


@pytest.mark.costly
def test_extras_are_imported_in_their_own_packages_alone():
    users = {name: [path for path in ROOT.rglob("*.py") if name in imported(path)] for name in EXTRAS}
    for name, folder in EXTRAS.items():
        assert users[name], f"nobody uses {name}"
        assert all(path.is_relative_to(folder) for path in users[name])


def test_flower_internals_are_left_alone():
    public = {"flwr.app", "flwr.clientapp", "flwr.serverapp", "flwr.serverapp.strategy"}
    for path in EXTRAS["flwr"].rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("flwr"):
                assert node.module in public, f"{path.name} imports {node.module}"


@pytest.mark.costly
def test_the_package_alone_imports_no_extra():
    code = "import sys, shuffledp, shuffledp.learning; print([m for m in ('torch', 'flwr') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
