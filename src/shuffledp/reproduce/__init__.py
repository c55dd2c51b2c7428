"""The papers' tables and figures, computed again: data, picture, and what agrees with the paper and what does not."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shuffledp.reproduce.base import Reproduction
    from shuffledp.reproduce.catalogue import REPRODUCTIONS, reproduce

__all__ = ["REPRODUCTIONS", "Reproduction", "reproduce"]

_HOME = {"REPRODUCTIONS": "catalogue", "Reproduction": "base", "reproduce": "catalogue"}


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(f"shuffledp.reproduce.{_HOME[name]}"), name)
    raise AttributeError(f"module 'shuffledp.reproduce' has no attribute {name!r}")
