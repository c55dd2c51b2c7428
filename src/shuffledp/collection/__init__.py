"""A shuffled collection over the Internet: tasks, sealed reports, batches and their analysis."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shuffledp.collection.task import Draft, PostedTask

__all__ = ["Draft", "PostedTask"]

_HOME = {"Draft": "task", "PostedTask": "task"}


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(f"shuffledp.collection.{_HOME[name]}"), name)
    raise AttributeError(f"module 'shuffledp.collection' has no attribute {name!r}")
