"""Syntax trees of this project's files, each read once a process."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sorted(
    p for folder in ("src", "tests", "benchmarks", "examples", "tools") for p in (ROOT / folder).rglob("*.py")
)


@cache
def tree_of(path: Path) -> ast.Module:
    """Return a file's syntax tree."""
    return trees()[path] if path in trees() else ast.parse(path.read_text(encoding="utf-8"))


@cache
def trees() -> dict[Path, ast.Module]:
    """Parse every file with the garbage collector at rest, which would look at a million nodes again and again."""
    gc.collect()  # garbage of earlier tests is not kept from being found
    gc.disable()
    try:
        return {path: ast.parse(path.read_text(encoding="utf-8")) for path in PYTHON}
    finally:
        gc.freeze()
        gc.enable()


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Every node of a file's syntax tree."""
    return tuple(ast.walk(tree_of(path)))


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Every statement in a node, at any depth, without the expressions in it."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for part in getattr(node, field, ()):
            yield part
            yield from statements(part)
