"""One training run: settings checked, messages planned, rounds run, counted, reported and kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import InvalidInput
from shuffledp.learning.accounting import Tier, TrainingAccountant, TrainingGuarantee
from shuffledp.learning.entering import Plan, enter_run
from shuffledp.learning.features import Projection
from shuffledp.learning.inputs import (
    Clients,
    checked_features,
    checked_labels,
)
from shuffledp.learning.keeping import WITHOUT_LEDGER, Checkpoint, Kept, agreed, save
from shuffledp.learning.messages import mechanism_of
from shuffledp.learning.network import Network
from shuffledp.learning.rounds import (
    Clientele,
    Sender,
    Server,
    Sketcher,
    all_at_once,
    finite,
    step_by_step,
)
from shuffledp.learning.settings import (
    DECAYS,
    RoundReport,
    Settings,
    accountant_of,
    assumptions,
    plan_run,
    prepared,
    probed,
    public_components,
)
from shuffledp.learning.target import aimed
from shuffledp.numerics.floats import TINY
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness, secure_random
from shuffledp.releases.entering import Entering

_CHUNK = 2048


@dataclass
class Run:
    """One training run. Use `Run.of` to make a run, then `train`.

    Parameters
    ----------
    settings : Settings
        Checked settings of the run.
    sender, server, accountant
        The clients, the server, and the accountant of the released rounds.
    inputs : int
        Number of columns of the feature array X.
    projection : Projection or None
        Principal components fitted on public data; None without them.
    taking_part : ndarray of int64
        Clients with a positive budget.
    random : Randomness
        Source of all random draws.
    notes : list of str
        Assumptions of the guarantee, one sentence each.
    validation : tuple or None
        Public features and labels for validation; None without them.
    presence : callable or None
        ``presence(round)`` returns which clients take part; None if all always do.
    features : str or list of float
        Fingerprint of the fixed maps between the rows and the network, for the checkpoint; made without a record.
    entering : Entering or None
        The ledger, and what the run is entered under.
    """

    settings: Settings
    sender: Clientele
    server: Server
    accountant: TrainingAccountant
    inputs: int
    projection: Projection | None
    taking_part: NDArray[np.int64]
    random: Randomness
    notes: list[str]
    validation: tuple[NDArray[np.generic], NDArray[np.int64]] | None
    presence: Callable[[int], ArrayLike] | None
    features: str | list[float] = ""
    history: list[RoundReport] = field(default_factory=list[RoundReport])
    stopped: str = ""
    private: bool = True
    done: int = 0
    paid: list[int] | None = None
    best: tuple[int, float, FloatArray] | None = None
    entering: Entering | None = None
    kept: Kept | None = None

    @staticmethod
    def of(
        settings: Settings,
        rows: NDArray[np.generic],
        y: ArrayLike,
        groups: ArrayLike | None,
        validation: tuple[ArrayLike, ArrayLike] | None,
        presence: Callable[[int], ArrayLike] | None,
        entering: Entering | None = None,
    ) -> Run:
        """Return a run with checked settings and data and with its messages planned."""
        s, random = settings.checked(), settings.random or secure_random()
        if entering is not None and s.classes is None and random.private:
            raise InvalidInput(
                "with a `ledger`, say how many `classes` there are: reading them off the labels would be a release "
                "that no ledger enters"
            )
        labels, classes = checked_labels(y, rows.shape[0], s.classes)
        if groups is None and s.unit == "example":
            raise InvalidInput(
                "`unit = 'example'` needs `groups`, the client of each example; without, everybody has one example: "
                "say `unit = 'client'`, or spread them with assign_clients"
            )
        clients = Clients.of(groups, rows.shape[0])
        notes = assumptions(s, settings.classes is None)
        projection = public_components(s, rows, notes)
        ready = prepared(rows, s.features, projection)
        network = Network((ready.shape[1], *s.hidden, classes))
        s = aimed(s, clients, network.size, notes)
        plan, taking_part = plan_run(s, clients, network.size, notes)
        side = (network, s.clipping, plan, clients, ready, labels, random)
        sender = Sketcher(*side) if s.mechanism == "sketch" else Sender(*side, mechanism_of(s.mechanism))
        server = Server(network.initial(random), float(s.step), float(s.momentum))
        accountant = accountant_of(s, plan)
        shown = None
        if validation is not None:
            there = checked_features(validation[0], inputs=rows.shape[1])
            known = checked_labels(validation[1], there.shape[0], classes)[0]
            shown = prepared(there, s.features, projection), known
        return Run(
            s,
            sender,
            server,
            accountant,
            rows.shape[1],
            projection,
            taking_part,
            random,
            notes,
            shown,
            presence,
            probed(rows, s.features, projection),
            private=random.private,
            entering=entering,
        )

    def train(self, *, resume: bool) -> None:
        """Run the remaining rounds, or as many as the largest allowed epsilon permits."""
        self.stopped = "all rounds are done"
        if self.settings.patience is not None and (self.validation is None or self.presence is not None):
            raise InvalidInput("`patience` needs validation data that are public, and everybody there in every round")
        path = self.settings.checkpoint
        if path is None:
            if resume:
                raise InvalidInput("resume needs the checkpoint file's name; give checkpoint=...")
            self._begin()
            self._rounds()
            return
        ledger = None if self.entering is None else self.entering.ledger
        with Kept.held(path, ledger, resume=resume) as self.kept:
            if ledger is None:
                self.notes.append(WITHOUT_LEDGER)
            if resume:
                self._resume(self.kept)
            try:
                self._begin()
            except BaseException:
                self.kept.forget()
                raise
            self._rounds()

    def _begin(self) -> None:
        """Enter the rounds, and take the turn; the checkpoint is written before, so that it can be written."""
        if self.entering is not None:
            self._enter(self.entering)
        elif self.kept is not None:
            self._keep()
            self.kept.keeper.take(self.kept.turn)

    def _rounds(self) -> None:
        """Run the rounds that are left."""
        while self.done < self.settings.rounds:
            present = self._present()
            counts = self.sender.plan.messages(present)
            released = present.size >= self.settings.min_messages
            if released and not self._affordable(self.accountant, counts):
                self.stopped = f"one more round would exceed epsilon = {self.most:g}"
                break
            if released:
                self.accountant.spend(counts)
                self._take_turn()  # the count is on the disk before the first message of the round leaves
                with np.errstate(all="ignore"):  # a warning would tell of a record
                    self._round(present)
                    finite(self.server.weights)
            self.done += 1
            self._keep()
            self._report(present.size, released)
            if self._overdue(counts if released else []):
                break
        if not self.accountant.rounds:
            raise InvalidInput(
                f"no round was released ({self.stopped}); ask for fewer `min_messages`, or allow a larger `max_epsilon`"
            )

    @property
    def result(self) -> FloatArray:
        """Return the weights of the released model: the best on public data with ``patience``, else the server's."""
        return self.server.result if self.best is None else self.best[2]

    def _overdue(self, counts: list[int]) -> bool:
        """Whether ``patience`` ends training; remembers the best model.

        When it ends is a function of released models. What was released by then is a function of what all rounds would
        release, whose cost bounds it; the cost of the rounds behind alone does not. So all of them are counted.
        """
        s = self.settings
        if s.patience is None:
            return False
        accuracy = self.history[-1].accuracy
        if self.best is None or accuracy > self.best[1]:
            self.best = self.done, accuracy, self.server.result.copy()
        if self.done - self.best[0] < s.patience or self.done >= s.rounds:
            return False
        self.stopped = f"no better accuracy on the public data since round {self.best[0]}"
        counted = 0
        while counts and counted < s.rounds - self.done and self._affordable(self.accountant, counts):
            self.accountant.spend(counts)
            counted += 1
        self.notes.append(
            f"training ended after round {self.done}; when it ends depends on the released models, so {counted} "
            "further rounds that were not run are counted too"
        )
        return True

    def guarantee(self) -> TrainingGuarantee:
        """Return the certified central guarantee of the released rounds."""
        return self.accountant.guarantee(self.settings.delta, notes=tuple(self.notes), private=self.private)

    def _round(self, present: NDArray[np.int64]) -> None:
        s = self.settings
        factor = DECAYS[s.decay](self.done / s.rounds)
        average = self.done >= s.rounds * (1.0 - s.averaging)
        if s.seen == "users" and isinstance(self.sender, Sender):
            swap = s.unit == "client"
            step_by_step(self.sender, self.server, present, factor, swap=swap, average=average)
        else:
            all_at_once(self.sender, self.server, present, factor, average=average)

    def _enter(self, entering: Entering) -> None:
        """Enter all rounds that will be released; who is there is asked now, once, for all of them."""
        s = self.settings
        if not self.private:
            raise InvalidInput("a simulation is not private, so no `ledger` takes it; leave one of the two out")
        turns = range(self.done, s.rounds)
        there = {turn: self._there(turn) for turn in turns}
        if self.presence is not None:
            known = {turn: np.isin(np.arange(self.sender.clients.count), present) for turn, present in there.items()}
            self.presence = known.__getitem__
        ahead = [self.sender.plan.messages(who) if who.size >= s.min_messages else None for who in there.values()]
        plan = Plan(self.accountant, ahead, self._affordable)
        turn = None if self.kept is None else self.kept.turn
        enter_run(entering, self._agreed(), float(s.delta), plan, turn, self._keep)

    def _present(self) -> NDArray[np.int64]:
        return self._there(self.done)

    def _there(self, turn: int) -> NDArray[np.int64]:
        if self.presence is None:
            return self.taking_part
        mask = np.asarray(self.presence(turn))
        if mask.shape != (self.sender.clients.count,) or mask.dtype != np.bool_:
            raise InvalidInput(f"presence must say True or False for each of {self.sender.clients.count} clients")
        return self.taking_part[mask[self.taking_part]]

    @property
    def most(self) -> float:
        """Largest epsilon that a round may reach, in nats; infinite without a limit."""
        wanted = (self.settings.max_epsilon, self.settings.target_epsilon)
        return min((each for each in wanted if each is not None), default=math.inf)

    def _affordable(self, so_far: TrainingAccountant, counts: list[int]) -> bool:
        """Whether one more round with these counts stays within ``most``."""
        if math.isinf(self.most) or counts == self.paid:
            return True
        delta, most, left = self.settings.delta, self.most, self.settings.rounds - self.done
        if self.presence is None and so_far.epsilon_after(counts, delta, left, enough=most) <= most:
            self.paid = counts  # all rounds that are left are alike and fit: each alone would cost as much to ask
            return True
        return so_far.epsilon_after(counts, delta, enough=most) <= most

    def _report(self, messages: int, released: bool) -> None:
        report = RoundReport(self.done, self.settings.rounds, messages, released)
        if self.settings.progress is not None:
            report = replace(report, epsilon=self.accountant.epsilon(self.settings.delta))
        if self.validation is not None:
            loss, accuracy = measured(self.sender.network, self.server.result, *self.validation)
            report = replace(report, loss=loss, accuracy=accuracy)
        self.history.append(report)
        if self.settings.progress is not None:
            self.settings.progress(report)

    def _agreed(self) -> dict[str, object]:
        return agreed(self.settings, self.sender, self.inputs, self.features)

    def _take_turn(self) -> None:
        """Write the checkpoint with the next turn, and take that turn: then this round's messages may leave."""
        if self.kept is not None:
            self.kept.next_turn()
            self._keep()
            self.kept.keeper.take(self.kept.turn)

    def _keep(self) -> None:
        if self.kept is None:
            return
        server = self.server
        spent = [(list(messages), times) for messages, times in self.accountant.spent.items()]
        vectors = server.weights, server.velocity, server.total
        save(
            self.kept.path,
            Checkpoint(
                self._agreed(),
                int(self.settings.rounds),
                self.done,
                spent,
                self.private,
                *vectors,
                averaged=server.averaged,
                turn=self.kept.turn,
                entered=self.entering is not None,
            ),
        )

    def _resume(self, kept: Kept) -> None:
        s = self.settings
        found = kept.load(self._agreed())
        if s.rounds < found.done:
            raise InvalidInput(
                f"{s.checkpoint} has {found.done} rounds behind it; ask for so many `rounds` or more, got {s.rounds}"
            )
        found.restore(self.server)
        if s.rounds != found.rounds and found.done < s.rounds * (1.0 - s.averaging):
            self.server.forget_average()  # in the longer run these models are not among the last ones
        tiers = _worse(self.sender.plan.tiers, found.model["tiers"])
        if tiers != self.sender.plan.tiers:
            self.accountant = accountant_of(s, replace(self.sender.plan, tiers=tiers))
        self.accountant.spent = {tuple(messages): times for messages, times in found.spent}
        self.done, self.private = found.done, self.private and found.private


def _worse(tiers: Sequence[Tier], others: Any) -> tuple[Tier, ...]:
    """Of message laws that agree but for last digits, computed here and where the run began: what hides less."""
    known = [Tier(*other) for other in others]
    return tuple(
        Tier(
            max(one.epsilon0, other.epsilon0),
            max(one.delta0, other.delta0),
            max(one.sensitivity, other.sensitivity),
            min(one.scale, other.scale),
        )
        for one, other in zip(tiers, known, strict=True)
    )


def in_chunks(rows: NDArray[np.generic]) -> list[FloatArray]:
    """Return the rows as double-precision arrays of a few thousand rows each."""
    return [rows[at : at + _CHUNK].astype(np.float64, copy=False) for at in range(0, rows.shape[0], _CHUNK)]


def measured(
    network: Network, weights: FloatArray, rows: NDArray[np.generic], labels: NDArray[np.int64]
) -> tuple[float, float]:
    """Return the mean cross-entropy, in nats, and the share of rows predicted correctly."""
    loss, right, at = 0.0, 0, 0
    for part in in_chunks(rows):
        chances, known = network.probabilities(weights, part), labels[at : at + _CHUNK]
        loss -= float(np.log(np.maximum(chances[np.arange(known.size), known], TINY)).sum())
        right += int((chances.argmax(axis=1) == known).sum())
        at += _CHUNK
    return loss / labels.size, right / labels.size
