"""The public names: each listed once, loaded on first use, the same object as at home."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import shuffledp as sdp

SOURCE = Path(sdp.__file__).read_text(encoding="utf-8")


def listed() -> list[tuple[str, str]]:
    """Module and name of every import for type checkers, as the syntax tree has them."""
    (block,) = [node for node in ast.parse(SOURCE).body if isinstance(node, ast.If)]
    found = []
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        (alias,) = node.names
        assert alias.asname == alias.name, "type checkers take a name without `as` for a private one"
        found.append((str(node.module), alias.name))
    return found


def test_each_name_is_listed_once():
    names = [name for _, name in listed()]
    assert len(names) == len(set(names)) > 90
    assert sdp.__all__ == sorted([*names, "__version__"]) == dir(sdp)


@pytest.mark.parametrize(("home", "name"), listed())
def test_a_name_is_the_object_of_its_home(home, name):
    assert getattr(sdp, name) is getattr(import_module(home), name)


def test_other_names_are_refused():
    for name in ("numpy", "certifi", "_homes_", "__wrapped__"):
        with pytest.raises(AttributeError, match=f"module 'shuffledp' has no attribute '{name}'"):
            getattr(sdp, name)


def test_the_package_itself_loads_nothing():
    code = "import sys, shuffledp; print([m for m in ('numpy', 'shuffledp.errors', 're') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path = {sys.path!r}; {code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "numpy" not in done.stdout
    assert "shuffledp.errors" not in done.stdout
