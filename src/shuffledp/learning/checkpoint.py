"""Training that stops may go on: the model, the server's memory, and what the accountant has counted, in one file.

The file is written beside its place and renamed, so that it is either the old one or the new one. It is written before
the first message of a round, with that round counted, and again after the round. A run that was cut short in the middle
of a round therefore resumes with that round counted, and counts it again when it repeats it: both times messages may
have left. That nobody goes on from an older copy is seen to by `shuffledp.learning.keeping`. The file holds nothing
that the server has not seen: no record, no fingerprint of records.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shuffledp.errors import InvalidInput
from shuffledp.learning.rounds import Server
from shuffledp.ledger import Turn
from shuffledp.locks import sync_folder
from shuffledp.numerics.interval import FloatArray

FORMAT = 3
"""Format 2 named no turn, so nobody can tell whether a file of that format was gone on from before."""
SLACK = 1e-9
"""Relative difference up to which two numbers of the same run agree: another machine computes other last digits."""
_ARRAYS = ("weights", "velocity", "total")


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A training run between two rounds.

    Parameters
    ----------
    model : dict
        Everything that must agree for the run to go on, as JSON values: widths, budgets, clipping, noise, steps.
    rounds : int
        Rounds that the run was asked for; a run that resumes may ask for more.
    done : int
        Rounds behind it, released or not.
    spent : list of (list of int, int)
        The accountant's count: messages per tier, and how many such rounds.
    private : bool
        Whether every noise so far was secure.
    weights, velocity, total : ndarray, shape (size,)
        The server's vectors.
    averaged : int
        Models in ``total``.
    turn : Turn
        The place that the run has reached.
    entered : bool
        Whether the run is in a ledger.
    """

    model: dict[str, object]
    rounds: int
    done: int
    spent: list[tuple[list[int], int]]
    private: bool
    weights: FloatArray
    velocity: FloatArray
    total: FloatArray
    averaged: int
    turn: Turn
    entered: bool

    def restore(self, server: Server) -> None:
        """Put a server where this run stood."""
        server.weights, server.velocity, server.total = self.weights.copy(), self.velocity.copy(), self.total.copy()
        server.averaged = self.averaged


def save(path: str | Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint; the file at ``path`` is replaced in one step, or left as it was.

    Raises
    ------
    InvalidInput
        If the file cannot be written.
    """
    where = Path(path)
    header = {
        "format": FORMAT,
        "model": checkpoint.model,
        "rounds": checkpoint.rounds,
        "done": checkpoint.done,
        "spent": checkpoint.spent,
        "private": checkpoint.private,
        "averaged": checkpoint.averaged,
        "turn": list(astuple(checkpoint.turn)),
        "ledger": checkpoint.entered,
    }
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    try:
        number, name = tempfile.mkstemp(prefix=f".{where.name}.", suffix=".part", dir=where.parent)
        try:
            with os.fdopen(number, "wb") as file:
                np.savez(file, header=text, **{key: getattr(checkpoint, key) for key in _ARRAYS})
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, where)
            sync_folder(where.parent)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as problem:
        raise InvalidInput(f"the checkpoint {where} cannot be written: {problem.strerror or problem}") from None


def load(path: str | Path, model: Mapping[str, object]) -> Checkpoint:
    """Read a checkpoint of the given model.

    Parameters
    ----------
    path : str or Path
        The file.
    model : mapping
        What the caller is about to train; must be what the file was written for, its numbers to `SLACK`.

    Raises
    ------
    InvalidInput
        If the file is missing, damaged, or of another model; the first difference is named.
    """
    where = Path(path)
    try:
        with where.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            header = json.loads(stored["header"].tobytes())
            if header["format"] != FORMAT:
                raise InvalidInput(
                    f"{where} was written in format {header['format']}; this version reads format {FORMAT}: "
                    "start again without resume"
                )
            arrays = {key: stored[key] for key in _ARRAYS}
        run, number, name, before = header["turn"]
        found = Checkpoint(
            header["model"],
            int(header["rounds"]),
            int(header["done"]),
            _counts(header["spent"]),
            header["private"] is True,
            **arrays,
            averaged=int(header["averaged"]),
            turn=Turn(str(run), int(number), str(name), str(before)),
            entered=header["ledger"] is True,
        )
        if any(vector.shape != found.weights.shape or not np.isfinite(vector).all() for vector in arrays.values()):
            raise InvalidInput(f"{where} is damaged: its vectors are not finite, or not of one length; start again")
    except InvalidInput:
        raise
    except FileNotFoundError:
        raise InvalidInput(f"there is no checkpoint {where}; train without resume first") from None
    except Exception:  # whatever a flipped bit makes zipfile, zlib, NumPy or json raise
        raise InvalidInput(
            f"{where} is no checkpoint of this library, or is damaged; start again without resume"
        ) from None
    wanted = json.loads(json.dumps(model))
    for key in (*wanted, *(key for key in found.model if key not in wanted)):
        if not agrees(wanted.get(key), found.model.get(key)):
            raise InvalidInput(
                f"{where} is a checkpoint of another model: its {key} is {_short(found.model.get(key))}, "
                f"not {_short(wanted.get(key))}; give it the same settings, or another file"
            )
    return found


def agrees(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same, numbers that are not whole to `SLACK`.

    Examples
    --------
    >>> agrees([1.0, "a"], [1.0 + 1e-13, "a"]), agrees([1.0], [1.0001]), agrees(3, 4)
    (True, False, False)
    """
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(agrees(*pair) for pair in zip(one, other, strict=True))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=SLACK)
    return bool(one == other)


def _counts(told: Any) -> list[tuple[list[int], int]]:
    return [([int(m) for m in messages], int(times)) for messages, times in told]


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
