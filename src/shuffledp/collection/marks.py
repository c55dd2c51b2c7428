"""Marks that a task has ended, kept outside the store's file: a store put back from a copy opens no task again.

A copy of the store that was made while a task was open knows nothing of its end. Closed from the copy, the task would
be handed over a second time, and the rows that only one of the two batches holds are people without dummies. So the end
of a task stands beside the store in two folders, ``ended/`` (beside ``shuffler.key``) and ``outbox/``, of which one may
be put back or emptied too. The batch in ``outbox/`` is a mark itself, which covers what 0.2.0 closed.
"""

from __future__ import annotations

import os
from pathlib import Path

from shuffledp.locks import sync_folder

SUFFIX = ".ended"
GONE = ("deleted", "destroyed")
"""States in which nothing of a collection is left."""


def marks_of(store: Path, name: str) -> tuple[Path, Path]:
    """Return the places of a task's two marks.

    Parameters
    ----------
    store : Path
        The store's file.
    name : str
        The task's name, 43 characters.
    """
    return store.parent / "ended" / name, store.parent / "outbox" / (name + SUFFIX)


def found_mark(store: Path, name: str, state: str) -> Path | None:
    """Return the file that says that a task has ended although the store says otherwise, or None.

    Parameters
    ----------
    store, name
        As for `marks_of`.
    state : str
        What the store says: an ``"open"`` task has no mark and no batch, and one that is ``"closing"`` was not
        destroyed or deleted. Any other state contradicts no mark.
    """
    marks = [place for place in marks_of(store, name) if place.exists()]
    if state == "closing":
        return next((mark for mark in marks if _says(mark).startswith(GONE)), None)
    batch = store.parent / "outbox" / f"{name}.batch"
    return next((place for place in (*marks, batch) if place.exists()), None) if state == "open" else None


def set_marks(store: Path, name: str, state: str, day: str) -> None:
    """Set the marks of a task, on disk when this returns.

    Parameters
    ----------
    store, name
        As for `marks_of`.
    state : str
        How it ended: ``"closed"``, ``"deleted"`` or ``"destroyed"``.
    day : str
        Such as ``"2030-01-31"``.
    """
    for place in marks_of(store, name):
        if place.exists() and _says(place).startswith(state):
            continue
        place.parent.mkdir(mode=0o700, exist_ok=True)
        with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(f"{state} {day}\n")
            file.flush()
            os.fsync(file.fileno())
        sync_folder(place.parent)
        sync_folder(place.parent.parent)


def _says(mark: Path) -> str:
    """Return how a mark begins; it is short, whatever somebody has put in its place."""
    with open(mark, encoding="utf-8", errors="replace") as file:
        return file.read(64)
