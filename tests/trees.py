"""Syntax trees of this project's files, each read once a process."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path


@cache
def tree_of(path: Path) -> ast.Module:
    """Parse a file with the garbage collector at rest, which would look at a million nodes again and again."""
    gc.disable()
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
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
