"""What outlives a training run that is cut off: its entry in a ledger, and its checkpoint.

In a ledger all rounds of a run are entered before the first message is computed. The checkpoint is held by one process,
and gone on from once: before the messages of a round leave, it is written with the round counted and a new turn, and
then the keeper takes that turn: the ledger that the run is entered in, or the lock file beside the checkpoint. A
checkpoint whose turn the keeper has left behind is an old copy, and refused. What nobody can notice is a copy of
checkpoint and keeper put back together.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import secrets
import tempfile
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from shuffledp.accounting import PrivacyProfile, SmallestProfile, StoredProfile
from shuffledp.errors import InvalidInput, OutOfRegime, Refused, attempt, path_shown
from shuffledp.learning.accounting import Tier, TrainingAccountant
from shuffledp.learning.rounds import Clientele, Server
from shuffledp.learning.settings import Settings
from shuffledp.ledger import MOST_LEVELS, Ledger, LevelSpending, NewEntry, Spending, Turn
from shuffledp.numerics.floats import FloatArray
from shuffledp.releases.run import Entering
from shuffledp.whole_files import can_lock, hold, sync_folder

MOST_TIERS = 32
"""Largest number of tiers with separate totals; with more, only the worst (epsilon, delta), by plain composition."""

Rounds = dict[tuple[int, ...], int]
"""Number of rounds for each tuple of messages per tier in a round."""


@dataclass(frozen=True)
class RemainingRounds:
    """Remaining rounds of a training run, fixed before the first of them.

    Parameters
    ----------
    accountant : TrainingAccountant
        Accountant with the messages sent before; it is not changed.
    ahead : sequence of (list of int) or None
        Number of messages of each tier in each remaining round; None for a round that is not released.
    affordable : callable
        ``affordable(accountant, messages)`` is True if one more round with these messages stays within the limits.
    """

    accountant: TrainingAccountant
    ahead: Sequence[list[int] | None]
    affordable: Callable[[TrainingAccountant, list[int]], bool]

    def whole(self, rounds: int) -> Rounds:
        """Return the rounds already sent together with the next ``rounds`` planned ones.

        The value maps the messages of each tier in a round to the number of such rounds. It stops before a round that
        is not affordable.
        """
        counted = replace(self.accountant, spent=dict(self.accountant.spent))  # it shares the profiles
        for counts in self.ahead[:rounds]:
            if counts is None:
                continue
            if not self.affordable(counted, counts):
                break
            counted.spend(counts)
        return counted.spent


def spending_of(accountant: TrainingAccountant, delta: float) -> Spending:
    """Return the privacy cost of an accountant's rounds, tier by tier, as a ledger records it.

    Parameters
    ----------
    accountant : TrainingAccountant
        Accountant with at least one recorded round.
    delta : float
        Central delta, in (0, 1).
    """
    guarantee = accountant.guarantee(delta)
    people = max(sum(messages) for messages in accountant.spent)
    totals = (guarantee.epsilon.upper, delta, people, guarantee.levels_total)
    there = [i for i in range(len(accountant.tiers)) if any(messages[i] for messages in accountant.spent)]
    if len(there) > MOST_TIERS:
        stated = StoredProfile.stated(guarantee.epsilon.upper, delta)
        local = attempt(accountant.widest_local, (OutOfRegime,))
        profiles = (stated,) if isinstance(local, Refused) else (stated, local)
        return Spending(*totals, StoredProfile.of(SmallestProfile(profiles)))
    priced = [Priced(accountant.tiers[i], totals[0], accountant.tier_profile(i)) for i in there]
    return replace(spending_by_level(priced, delta, people), levels_total=guarantee.levels_total)


@dataclass(frozen=True, eq=False)
class Priced:
    """Certified privacy cost of a run for the clients of one tier.

    Parameters
    ----------
    tier : Tier
        Budget and message law of these clients.
    epsilon : float
        Upper end of the central epsilon in nats, at the delta of the request.
    profile : PrivacyProfile
        Certified profile delta(epsilon).
    """

    tier: Tier
    epsilon: float
    profile: PrivacyProfile


def spending_by_level(tiers: Sequence[Priced], delta: float, people: int) -> Spending:
    """Return the privacy cost of rounds by budget level, as a ledger records it.

    Parameters
    ----------
    tiers : sequence of Priced
        All tiers that sent something.
    delta : float
        Central delta, in (0, 1).
    people : int
        Number of participants: the most messages of a round, or the fewest if only a lower limit is known.
    """
    levels: dict[tuple[float, float], list[StoredProfile]] = {}
    for each in tiers:
        budget = each.tier.epsilon0, each.tier.delta0
        levels.setdefault(budget, []).append(StoredProfile.of(each.profile))
    kept = [LevelSpending(*level, StoredProfile.largest(profiles)) for level, profiles in sorted(levels.items())]
    worst = StoredProfile.largest([level.profile for level in kept])
    apart = len(kept) <= MOST_LEVELS and len({level.epsilon0 for level in kept}) == len(kept)
    epsilon = max(each.epsilon for each in tiers)
    return Spending(epsilon, delta, people, len(kept), worst, tuple(kept) if apart else ())


def enter_run(
    entering: Entering,
    model: Mapping[str, Any],
    delta: float,
    plan: RemainingRounds,
    turn: Turn | None = None,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Enter the rounds of a training run that are not yet entered in the ledger.

    Parameters
    ----------
    entering : Entering
        The ledger, and what the run is entered under.
    model : mapping
        Public settings of the run, fixed beforehand, as JSON values.
    delta : float
        Central delta.
    plan : Plan
        Remaining rounds. An interrupted round is repeated, so it counts twice; its second time is entered here.
    turn : Turn, optional
        Next turn of a run with a checkpoint, recorded in the transaction that enters the rounds. None for a run without
        a checkpoint.
    ready : callable
        Called after the ledger's limit was found sufficient and before anything is entered; an error that it raises
        ends the run.

    Raises
    ------
    InvalidInput
        If the limit has no room (the message says how many rounds would fit), or the run has gone on past the turn.
    """
    run = secrets.token_hex(8) if turn is None else turn.run
    before = Counter[tuple[int, ...]]()
    for counts in [] if turn is None else entering.ledger.rounds_of(run):
        before.update({tuple(messages): times for messages, times in json.loads(counts)})
    fingerprint = hashlib.sha256(json.dumps(dict(model), sort_keys=True).encode()).hexdigest()
    entered_tasks = (entry.task for entry in entering.ledger.entries() if entry.task.endswith(f"/{run}"))
    task = next(entered_tasks, f"{fingerprint}/{run}")  # another machine's last digits would give another fingerprint

    def draft(rounds: int) -> NewEntry | None:
        new = Counter(plan.whole(rounds)) - before
        if not new:
            return None
        counted = replace(plan.accountant, spent=dict(new))
        words = f"unit {counted.unit}, {counted.rounds} rounds, seen {counted.seen}, {model['mechanism']}"
        title, cost, these = (
            f"training, {counted.rounds} rounds",
            spending_of(counted, delta),
            json.dumps(list(new.items())),
        )
        if turn is None:
            return NewEntry(title, task, words, cost)
        return NewEntry(title, task, words, cost, training=run, rounds=these)

    # what was sent before counts among the rounds that are asked for
    admit(entering, draft, len(plan.ahead), done=sum(plan.accountant.spent.values()), turn=turn, ready=ready)


def admit(
    entering: Entering,
    draft: Callable[[int], NewEntry | None],
    rounds: int,
    done: int = 0,
    turn: Turn | None = None,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Enter this number of rounds in the ledger, or raise an error that says how many would fit.

    Parameters
    ----------
    entering : Entering
        The ledger, and what the run is entered under.
    draft : callable
        ``draft(rounds)`` is the ledger entry for that many rounds; None if they cost nothing.
    rounds : int
        Number of remaining rounds.
    done : int
        Number of rounds sent before.
    turn, ready
        As for `enter_run`.

    Raises
    ------
    InvalidInput
        If the limit has no room.
    """
    whole = draft(rounds)
    refused = None if whole is None else entering.ledger.refusal([whole], entering.use)
    if refused is not None:
        most = _largest(rounds, lambda some: _fits(entering, draft(some)))
        fits = f"what would fit: `rounds = {done + most}`" if most else "not even one round would fit"
        raise InvalidInput(f"{refused}; {fits}; smaller budgets cost less")
    ready()
    if whole is not None:
        entering.ledger.enter([whole], entering.use, turn)
    elif turn is not None:
        entering.ledger.take(turn)


def _fits(entering: Entering, draft: NewEntry | None) -> bool:
    return draft is None or entering.ledger.refusal([draft], entering.use) is None


def _largest(high: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number of rounds below `high` that fits; 0 if none does."""
    low = 0
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low


# Training that stops may go on: the model, the server's memory, and what the accountant has counted, in one file.
#
# The file is written beside its place and renamed, so that it is either the old one or the new one. It is written
# before the first message of a round, with that round counted, and again after the round. A run that was cut short in
# the middle of a round therefore resumes with that round counted, and counts it again when it repeats it: both times
# messages may have left. That nobody goes on from an older copy is seen to by `shuffledp.learning.keeping`. The file
# holds nothing that the server has not seen: no record, no fingerprint of records.

FORMAT = 3
"""Format number of checkpoints; format 2 named no turn, so nobody could tell whether a run had gone on from it."""
SLACK = 1e-9
"""Relative tolerance between two numbers of the same run, whose last digits differ between machines."""
_ARRAYS = ("weights", "velocity", "total")


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """State of a training run between two rounds, as a checkpoint file stores it.

    Parameters
    ----------
    model : dict
        Everything that must agree for the run to go on, as JSON values: widths, budgets, clipping, noise, steps.
    rounds : int
        Number of requested rounds; a resumed run may request more.
    done : int
        Number of completed rounds, released or not.
    spent : list of (list of int, int)
        The accountant's count: messages per tier, and how many such rounds.
    private : bool
        Whether every noise so far was secure.
    weights, velocity, total : ndarray, shape (size,)
        The server's vectors: model weights, direction of the last step, and sum of the averaged models.
    averaged : int
        Number of models in ``total``.
    turn : Turn
        Turn that the run has reached: its number and name, which only one process may continue from.
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
        """Set the server's model, direction and average to the state stored in this checkpoint."""
        server.weights, server.velocity, server.total = self.weights.copy(), self.velocity.copy(), self.total.copy()
        server.averaged = self.averaged


def save(path: str | Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint file; the file at ``path`` is replaced in one step, or left as it was.

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
    """Read the checkpoint file of a run with the given settings, and return the checkpoint.

    Parameters
    ----------
    path : str or Path
        The file.
    model : mapping
        Settings of the run that the caller is about to train; they must equal those in the file, numbers up to a
        relative
        difference of `SLACK`.

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
        checkpoint = Checkpoint(
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
        if any(vector.shape != checkpoint.weights.shape or not np.isfinite(vector).all() for vector in arrays.values()):
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
    for key in (*wanted, *(key for key in checkpoint.model if key not in wanted)):
        if not agrees(wanted.get(key), checkpoint.model.get(key)):
            raise InvalidInput(
                f"{where} is a checkpoint of another model: its {key} is {_short(checkpoint.model.get(key))}, "
                f"not {_short(wanted.get(key))}; give it the same settings, or another file"
            )
    return checkpoint


def agrees(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal; numbers that are not whole may differ by `SLACK` relatively.

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


def _counts(stored: Any) -> list[tuple[list[int], int]]:
    return [([int(m) for m in messages], int(times)) for messages, times in stored]


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


WITHOUT_LEDGER = (
    "a checkpoint was kept without a ledger: whoever puts back an old copy of it together with its lock file, and goes "
    "on from there, sends rounds that this number does not count"
)
"""Note in the guarantee of a run with a checkpoint and no ledger."""
_LINE = re.compile(rb"shuffledp turn 1 ([0-9a-f]{16}) ([0-9]{12}) ([0-9a-f]{16})\n")
_LONGEST = 200
_NOT_INHERITED = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""Flags for opening files that child processes do not inherit; on Windows, for unchanged line ends."""


class Keeper(Protocol):
    """Interface of a record of each run's last turn, so that two processes cannot continue the same checkpoint.

    A turn is a state of a run from which it may be continued once; see `shuffledp.ledger.store.Turn`.
    """

    def kept(self, training: str, /) -> str | None:
        """Return the name of the last turn recorded for the run ``training``; None if the run is unknown."""
        ...

    def take(self, turn: Turn, /) -> None:
        """Record the next turn of a run; raise InvalidInput if another process has already continued the run."""
        ...


class LockFile:
    """Lock file FILE.lock beside a checkpoint FILE, held while a process trains.

    Without a ledger it also records the run's last turn.

    Parameters
    ----------
    checkpoint : Path
        Path of the checkpoint file.

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
        """Release the lock, so that another process can hold it."""
        os.close(self._number)

    def kept(self, training: str) -> str | None:
        """Return the name of the last turn recorded in the file for this run; None if the run is unknown."""
        os.lseek(self._number, 0, os.SEEK_SET)
        line = os.read(self._number, _LONGEST)
        if not line:
            return None
        match = _LINE.fullmatch(line)
        if match is None:
            raise InvalidInput(
                f"{path_shown(self.path)} is no lock file of a checkpoint, or is damaged, so nobody can tell whether "
                "the run has gone on; start again with another `checkpoint`"
            )
        return match[3].decode() if match[1].decode() == training else None

    def take(self, turn: Turn) -> None:
        """Record the next turn of a run in the file; raise InvalidInput if another process has continued the run."""
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
    """Checkpoint file of a run in progress, with the record of its last turn.

    Parameters
    ----------
    path : Path
        Path of the checkpoint file.
    ledger : Ledger or None
        Ledger in which the run is entered; None without a ledger.
    keeper : Keeper
        Record of the last turn of the run: the ledger, or the lock file.
    """

    def __init__(self, path: Path, ledger: Ledger | None, keeper: Keeper) -> None:
        self.path = path
        self.ledger = ledger
        self.keeper = keeper
        self.turn = Turn.first()

    @staticmethod
    @contextmanager
    def held(path: str | Path, ledger: Ledger | None, *, resume: bool) -> Generator[Kept]:
        """Hold the lock of a checkpoint file while a run trains, as a context manager.

        Parameters
        ----------
        path : str or Path
            Path of the checkpoint file.
        ledger : Ledger or None
            Ledger in which the run is entered; None without a ledger.
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
        """Return the stored checkpoint, and prepare the turn that continues from it.

        Parameters
        ----------
        model : mapping
            Settings of the run, which must equal those in the checkpoint.

        Raises
        ------
        InvalidInput
            If it is damaged, of another model, entered in another ledger, or was gone on from before.
        """
        checkpoint = load(self.path, model)
        if checkpoint.entered != (self.ledger is not None):
            raise InvalidInput(
                f"the run in {self.path} was entered in a ledger; name it with `ledger`"
                if checkpoint.entered
                else f"the run in {self.path} began without a ledger, and what it sent is in none; go on without "
                "`ledger`, or start again"
            )
        kept = self.keeper.kept(checkpoint.turn.run)
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
        if kept not in (checkpoint.turn.name, checkpoint.turn.before):
            raise InvalidInput(
                f"{self.path} is an old copy: its run has gone on from there, and the rounds sent since are not in its "
                "count; go on from the newest checkpoint of the run, or start again"
            )
        self.turn = checkpoint.turn.next(kept)
        return checkpoint

    def next_turn(self) -> None:
        """Prepare the run's next turn; it is recorded after the checkpoint that names it was written to disk."""
        self.turn = self.turn.next(self.turn.name)

    def forget(self) -> None:
        """Delete the first checkpoint of a run that could not begin; keep it if its turn was recorded."""
        if not self.turn.before and self.keeper.kept(self.turn.run) != self.turn.name:
            self.path.unlink(missing_ok=True)


def agreed(s: Settings, sender: Clientele, inputs: int, features: str | list[float]) -> dict[str, object]:
    """Return the public settings that a checkpoint and the run that resumes from it must have in common.

    Parameters
    ----------
    s : Settings
        Checked settings of the run.
    sender : Clientele
        The clients, with their message plan.
    inputs : int
        Number of columns of the feature array X.
    features : str or list of float
        Fingerprint of the fixed maps between the rows and the network.
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
