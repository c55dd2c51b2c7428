"""The checkpoint of a run while it trains: held by one process, and gone on from once.

Before the messages of a round leave, the checkpoint is written with the round counted and a new turn, and then the
keeper takes that turn: the ledger that the run is entered in, or the lock file beside the checkpoint. A checkpoint
whose turn the keeper has left behind is an old copy, and refused. What nobody can notice is a copy of checkpoint and
keeper put back together.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import numpy as np

from shuffledp.errors import InvalidInput, path_shown
from shuffledp.learning.checkpoint import Checkpoint, load
from shuffledp.learning.rounds import Clientele
from shuffledp.learning.settings import Settings
from shuffledp.ledger import Ledger, Turn
from shuffledp.locks import can_lock, hold, sync_folder

WITHOUT_LEDGER = (
    "a checkpoint was kept without a ledger: whoever puts back an old copy of it together with its lock file, and goes "
    "on from there, sends rounds that this number does not count"
)
"""What a guarantee says of a run with a checkpoint and no ledger."""
_LINE = re.compile(rb"shuffledp turn 1 ([0-9a-f]{16}) ([0-9]{12}) ([0-9a-f]{16})\n")
_LONGEST = 200
_NOT_INHERITED = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""Of Windows: files are not inherited anyway, and ends of lines are left as they are."""


class Keeper(Protocol):
    """Who knows which turn a run has taken last."""

    def kept(self, training: str, /) -> str | None:
        """Return the name of the turn that a run has taken last; None if the keeper does not know the run."""
        ...

    def take(self, turn: Turn, /) -> None:
        """Enter that a run takes its next turn; raise InvalidInput if another process has gone on with it."""
        ...


class LockFile:
    """The file FILE.lock beside a checkpoint FILE: held while a process trains; without a ledger it keeps the turn.

    Parameters
    ----------
    checkpoint : Path
        The checkpoint.

    Raises
    ------
    InvalidInput
        If the file cannot be made, or another process holds it.
    """

    def __init__(self, checkpoint: Path) -> None:
        self.path = checkpoint.with_name(f"{checkpoint.name}.lock")
        if not can_lock():
            raise InvalidInput(
                "this system has no locks on files, so two processes could go on from one `checkpoint`; enter the run "
                "in a `ledger`, or leave `checkpoint` out"
            )
        try:
            self._number = os.open(self.path, os.O_RDWR | os.O_CREAT | _NOT_INHERITED, 0o666)
        except OSError as error:
            raise InvalidInput(
                f"the lock file {path_shown(self.path)} beside the checkpoint cannot be opened "
                f"({error.strerror or error}); choose an existing, writable folder"
            ) from None
        try:
            hold(self._number, wait=False)
        except OSError:
            os.close(self._number)
            raise InvalidInput(
                f"another process trains with the checkpoint {path_shown(checkpoint)}; let it end, or name another file"
            ) from None

    def close(self) -> None:
        """Let another process hold it."""
        os.close(self._number)

    def kept(self, training: str) -> str | None:
        """Return what was kept; see `Keeper.kept`."""
        os.lseek(self._number, 0, os.SEEK_SET)
        line = os.read(self._number, _LONGEST)
        if not line:
            return None
        found = _LINE.fullmatch(line)
        if found is None:
            raise InvalidInput(
                f"{path_shown(self.path)} is no lock file of a checkpoint, or is damaged, so nobody can tell whether "
                "the run has gone on; start again with another `checkpoint`"
            )
        return found[3].decode() if found[1].decode() == training else None

    def take(self, turn: Turn) -> None:
        """Take one of them; see `Keeper.take`."""
        turn.check_taken_from(self.kept(turn.run), path_shown(self.path))
        line = f"shuffledp turn 1 {turn.run} {turn.number:012d} {turn.name}\n".encode("ascii")
        try:
            os.lseek(self._number, 0, os.SEEK_SET)
            if os.write(self._number, line) != len(line):
                raise OSError(28, "No space left on device")
            os.fsync(self._number)
            if not turn.before:
                sync_folder(self.path.parent)
        except OSError as error:
            raise InvalidInput(
                f"the lock file {path_shown(self.path)} cannot be written: {error.strerror or error}"
            ) from None


class Kept:
    """The checkpoint of a run that trains.

    Parameters
    ----------
    path : Path
        The checkpoint.
    ledger : Ledger or None
        Which the run is entered in.
    keeper : Keeper
        Who knows which turn the run has taken last.
    """

    def __init__(self, path: Path, ledger: Ledger | None, keeper: Keeper) -> None:
        self.path = path
        self.ledger = ledger
        self.keeper = keeper
        self.turn = Turn.first()

    @staticmethod
    @contextmanager
    def held(path: str | Path, ledger: Ledger | None, *, resume: bool) -> Generator[Kept]:
        """Hold a checkpoint while a run trains.

        Parameters
        ----------
        path : str or Path
            The checkpoint.
        ledger : Ledger or None
            Which the run is entered in.
        resume : bool
            Whether the run goes on from the file, which must be there; else it must not be.

        Raises
        ------
        InvalidInput
            If another process holds it, or it is there and must not, or the other way round.
        """
        where = Path(path)
        if resume and not where.exists():
            raise InvalidInput(f"there is no checkpoint {where}; train without resume first")
        if not resume and where.exists():
            raise _exists(where)
        lock = LockFile(where) if ledger is None or can_lock() else None
        try:
            if not resume and where.exists():  # another process may have been first
                raise _exists(where)
            keeper = lock if ledger is None else ledger
            assert keeper is not None
            yield Kept(where, ledger, keeper)
        finally:
            if lock is not None:
                lock.close()

    def load(self, model: Mapping[str, object]) -> Checkpoint:
        """Read the checkpoint, and prepare the turn that goes on from it.

        Parameters
        ----------
        model : mapping
            What the run must agree on with the checkpoint.

        Raises
        ------
        InvalidInput
            If it is damaged, of another model, entered in another ledger, or was gone on from before.
        """
        found = load(self.path, model)
        if found.entered != (self.ledger is not None):
            raise InvalidInput(
                f"the run in {self.path} was entered in a ledger; name it with `ledger`"
                if found.entered
                else f"the run in {self.path} began without a ledger, and what it sent is in none; go on without "
                "`ledger`, or start again"
            )
        kept = self.keeper.kept(found.turn.run)
        if kept is None and self.ledger is not None:
            raise InvalidInput(
                f"the run that the checkpoint {self.path} keeps is not in the ledger {path_shown(self.ledger.path)}; "
                "name the `ledger` that it was entered in"
            )
        if kept is None:
            raise InvalidInput(
                f"the lock file {self.path}.lock does not know the run in {self.path}, so nobody can tell whether it "
                "has gone on from there; keep the two files together, or start again with another `checkpoint`"
            )
        if kept not in (found.turn.name, found.turn.before):
            raise InvalidInput(
                f"{self.path} is an old copy: its run has gone on from there, and the rounds sent since are not in its "
                "count; go on from the newest checkpoint of the run, or start again"
            )
        self.turn = found.turn.next(kept)
        return found

    def next_turn(self) -> None:
        """Prepare the next turn; it is taken when the checkpoint that names it is on the disk."""
        self.turn = self.turn.next(self.turn.name)

    def forget(self) -> None:
        """Remove the first checkpoint of a run that could not begin; one whose turn was taken stays."""
        if not self.turn.before and self.keeper.kept(self.turn.run) != self.turn.name:
            self.path.unlink(missing_ok=True)


def agreed(s: Settings, sender: Clientele, inputs: int, features: str | list[float]) -> dict[str, object]:
    """Return what a checkpoint must agree on with the run that goes on from it; all of it is public.

    Parameters
    ----------
    s : Settings
        Checked.
    sender : Clientele
        The clients' side.
    inputs : int
        Columns of X.
    features : str or list of float
        Fingerprint of what stands between rows and network.
    """
    plan = sender.plan
    return {
        "widths": list(sender.network.widths),
        "inputs": inputs,
        "features": features,
        "unit": s.unit,
        "seen": s.seen,
        "delta": float(s.delta),
        "mechanism": s.mechanism,
        "clip": float(s.clip),
        "clipped": sender.clipping.clipped,
        "step": float(s.step),
        "momentum": float(s.momentum),
        "decay": s.decay,
        "averaging": float(s.averaging),
        "weighting": s.weighting,
        "min_messages": int(s.min_messages),
        "clients": sender.clients.count,
        "names of clients": sender.clients.fingerprint(sizes=s.unit == "example"),
        "grid": plan.grid,
        "tiers": [[t.epsilon0, t.delta0, t.sensitivity, t.scale] for t in plan.tiers],
        "budgets of clients": hashlib.sha256(np.where(plan.scales > 0.0, plan.tier_of, -1).tobytes()).hexdigest(),
    }


def _exists(where: Path) -> InvalidInput:
    return InvalidInput(
        f"`checkpoint` {path_shown(where)} exists already, and holds the count of what its run has spent; go on with "
        "`resume`, or name another file"
    )
