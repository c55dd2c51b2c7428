"""Whose turn it is to go on with a training run: each place that a run has reached may be gone on from once."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from shuffledp.errors import InvalidInput


@dataclass(frozen=True)
class Turn:
    """A place that a run has reached.

    A checkpoint names its turn, and so does the keeper: the ledger, or the lock file beside the checkpoint. The
    checkpoint is written first. So the keeper stands at the checkpoint's turn, or at the one before it, in which case
    no message of this turn has left. A checkpoint of any other turn is an old copy: its run has gone on.

    Parameters
    ----------
    run : str
        Random name of the run.
    number : int
        1 for the first turn of the run.
    name : str
        Random, so that two processes that go on from one place take different turns.
    before : str
        Name of the turn that the keeper must stand at when this one is taken; "" for the first.
    """

    run: str
    number: int
    name: str
    before: str = ""

    @staticmethod
    def first() -> Turn:
        """Return the first turn of a new run."""
        return Turn(secrets.token_hex(8), 1, secrets.token_hex(8))

    def next(self, before: str) -> Turn:
        """Return a turn that follows this one, while the keeper stands at the turn named ``before``."""
        return Turn(self.run, self.number + 1, secrets.token_hex(8), before)

    def check_taken_from(self, kept: str | None, keeper: str) -> None:
        """Raise InvalidInput unless this turn follows the one that the keeper stands at.

        Parameters
        ----------
        kept : str or None
            The name of the turn that the keeper stands at; None if it knows nothing of the run.
        keeper : str
            What the message calls the keeper.
        """
        if (kept or "") != self.before:
            raise InvalidInput(
                f"another process has gone on with this run: {keeper} holds a later turn; let that one go on, as "
                "messages of both would leave and only one is counted"
            )
