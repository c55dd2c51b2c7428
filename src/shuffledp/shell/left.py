"""What a command that fails leaves behind: asked of the files and the ledger themselves, never remembered.

A signal may come between the moment when a file gets its name, or an entry is on the disk, and the next statement. So
what is kept here is only where to look.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from shuffledp.errors import ShuffleDPError, path_shown

if TYPE_CHECKING:
    from shuffledp.ledger import Ledger


@dataclass
class Left:
    """Where to look for what one command leaves behind.

    Parameters
    ----------
    files : list of (Path, callable)
        Files that it is about to write, and whether they are there by now.
    states : list of (Path, callable, str)
        Files that go on from command to command: whether this command has changed them, and what to do with them.
    ledgers : list of Ledger
        Ledgers that it may enter a release in.
    shown : {"no", "begun", "done"}
        Whether it has begun to show the answer on stdout, and whether that ended well.
    """

    files: list[tuple[Path, Callable[[], bool]]] = field(default_factory=list[tuple[Path, Callable[[], bool]]])
    states: list[tuple[Path, Callable[[], bool], str]] = field(
        default_factory=list[tuple[Path, Callable[[], bool], str]]
    )
    ledgers: list[Ledger] = field(default_factory=list["Ledger"])
    shown: Literal["no", "begun", "done"] = "no"

    def sentences(self) -> list[str]:
        """Say what is spent, and what exists; nothing if the command left nothing behind."""
        spent = [each for ledger in self.ledgers for each in _spent(ledger)]
        there = [path_shown(path) for path, is_there in self.files if is_there()]
        kept = [f"{path_shown(path)} {what}" for path, changed, what in self.states if changed()]
        files = [f"the answer was computed before that, and stands in {', '.join(there)}"] if there else []
        how = []
        if self.shown == "begun":
            how = ["part of the answer may have been shown; direct it to a place with room"]
        elif self.shown == "no" and spent and not there and not kept:
            how = ["the answer was not shown, and asking again spends again"]
        return [*spent, *files, *kept, *how]

    def close(self) -> None:
        """Close the ledgers that are open."""
        for ledger in self.ledgers:
            ledger.close()


LEFT: ContextVar[Left | None] = ContextVar("LEFT", default=None)
"""Of the command that runs; None where the library is used without the command line."""


def left() -> Left:
    """Return where to look after the command that runs."""
    found = LEFT.get()
    if found is None:
        LEFT.set(found := Left())
    return found


def will_stand(path: Path, number: int) -> None:
    """Note that a file will get a name.

    Parameters
    ----------
    path : Path
        The name.
    number : int
        Of the open file: whatever else stands under that name is not it.
    """
    inode = os.fstat(number).st_ino
    left().files.append((path, lambda: (_state(path) or (None,))[0] == inode))


def will_change(path: Path, what: str) -> None:
    """Note that a file which goes on from command to command may be changed.

    Parameters
    ----------
    path : Path
        The file, or where it will be.
    what : str
        What is said of it then, after its name.
    """
    before = _state(path)
    left().states.append((path, lambda: _state(path) not in (before, None), what))


def opened_ledger(path: Path | None) -> Ledger | None:
    """Open the ledger that --ledger names, and note that something may be entered there; None without one."""
    if path is None:
        return None
    from shuffledp.ledger import Ledger  # which --help does not need

    ledger = Ledger(path)
    left().ledgers.append(ledger)
    return ledger


def _spent(ledger: Ledger) -> list[str]:
    name = path_shown(ledger.path)
    try:
        numbers = ledger.entered_here()
    except ShuffleDPError:
        return [f"whether the ledger {name} holds an entry of it cannot be read"]
    if not numbers:
        return []
    which = f"entry {numbers[0]}" if len(numbers) == 1 else f"entries {numbers[0]} to {numbers[-1]}"
    return [f"{which} of the ledger {name} {'stands' if len(numbers) == 1 else 'stand'}, so it is spent"]


def _state(path: Path) -> tuple[int, int, int] | None:
    """Which file stands under a name, and since when as it is."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
