"""One training run: settings checked, messages planned, rounds run, counted, reported and kept.

`ShuffledSGDClassifier` is the same in the shape of a scikit-learn estimator.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import InvalidInput
from shuffledp.learning.accounting import Tier, TrainingAccountant, TrainingGuarantee
from shuffledp.learning.features import Features, Projection
from shuffledp.learning.inputs import (
    Clients,
    checked_features,
    checked_labels,
)
from shuffledp.learning.keeping import WITHOUT_LEDGER, Checkpoint, Kept, RemainingRounds, agreed, enter_run, save
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
    Progress,
    RoundReport,
    Settings,
    accountant_of,
    aimed,
    assumptions,
    plan_run,
    prepared,
    probed,
    public_components,
)
from shuffledp.ledger import EVERYBODY, Ledger
from shuffledp.numerics.floats import TINY, FloatArray
from shuffledp.numerics.randomness import Randomness, secure_random
from shuffledp.params import Parameters
from shuffledp.releases.run import Entering

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
        """Return a run with checked settings and data and with its messages planned.

        Parameters
        ----------
        settings : Settings
            Settings of the run.
        rows, y, groups, validation, presence
            As ``X, y, groups, validation, presence`` of `ShuffledSGDClassifier.fit`.
        entering : Entering or None
            The ledger, and what the run is entered under.
        """
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
        validation_data = None
        if validation is not None:
            validation_rows = checked_features(validation[0], inputs=rows.shape[1])
            validation_labels = checked_labels(validation[1], validation_rows.shape[0], classes)[0]
            validation_data = prepared(validation_rows, s.features, projection), validation_labels
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
            validation_data,
            presence,
            probed(rows, s.features, projection),
            private=random.private,
            entering=entering,
        )

    def train(self, *, resume: bool) -> None:
        """Run the remaining rounds, or as many as the largest allowed epsilon permits.

        ``resume`` says whether the run goes on from its checkpoint file.
        """
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
            masks = {turn: np.isin(np.arange(self.sender.clients.count), present) for turn, present in there.items()}
            self.presence = masks.__getitem__
        ahead = [self.sender.plan.messages(who) if who.size >= s.min_messages else None for who in there.values()]
        plan = RemainingRounds(self.accountant, ahead, self._affordable)
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
        stored = kept.load(self._agreed())
        if s.rounds < stored.done:
            raise InvalidInput(
                f"{s.checkpoint} has {stored.done} rounds behind it; ask for so many `rounds` or more, got {s.rounds}"
            )
        stored.restore(self.server)
        if s.rounds != stored.rounds and stored.done < s.rounds * (1.0 - s.averaging):
            self.server.forget_average()  # in the longer run these models are not among the last ones
        tiers = _worse(self.sender.plan.tiers, stored.model["tiers"])
        if tiers != self.sender.plan.tiers:
            self.accountant = accountant_of(s, replace(self.sender.plan, tiers=tiers))
        self.accountant.spent = {tuple(messages): times for messages, times in stored.spent}
        self.done, self.private = stored.done, self.private and stored.private


def _worse(tiers: Sequence[Tier], others: Any) -> tuple[Tier, ...]:
    """Of message laws that agree but for last digits, computed here and where the run began: what hides less."""
    other_tiers = [Tier(*other) for other in others]
    return tuple(
        Tier(
            max(one.epsilon0, other.epsilon0),
            max(one.delta0, other.delta0),
            max(one.sensitivity, other.sensitivity),
            min(one.scale, other.scale),
        )
        for one, other in zip(tiers, other_tiers, strict=True)
    )


def in_chunks(rows: NDArray[np.generic]) -> list[FloatArray]:
    """Return the rows, shape (n, features), as a list of double-precision arrays of a few thousand rows each."""
    return [rows[at : at + _CHUNK].astype(np.float64, copy=False) for at in range(0, rows.shape[0], _CHUNK)]


def measured(
    network: Network, weights: FloatArray, rows: NDArray[np.generic], labels: NDArray[np.int64]
) -> tuple[float, float]:
    """Return the mean cross-entropy, in nats, and the share of rows predicted correctly.

    Parameters
    ----------
    network : Network
        The model.
    weights : ndarray, shape (size,)
        All weights of the model, in one vector.
    rows : ndarray, shape (n, features)
        One row of features per example.
    labels : ndarray of int64, shape (n,)
        Index of the true class of each row.
    """
    loss, right, at = 0.0, 0, 0
    for part in in_chunks(rows):
        chances, targets = network.probabilities(weights, part), labels[at : at + _CHUNK]
        loss -= float(np.log(np.maximum(chances[np.arange(targets.size), targets], TINY)).sum())
        right += int((chances.argmax(axis=1) == targets).sum())
        at += _CHUNK
    return loss / labels.size, right / labels.size


class ShuffledSGDClassifier(Parameters):
    """Private classifier trained on locally clipped and noised messages of clients.

    A ReLU network with softmax and cross-entropy. In every round each client sends one message: the average of its
    clipped gradients plus noise that its own budget asks for. No default for what only the caller can choose: the unit,
    what the server sees, budgets, delta, clip and rounds.

    Parameters
    ----------
    unit : {"client", "example"}
        What neighbours replace, and so what is protected: all data of one client, or one example.
    seen : {"reports", "users", "levels", "sum"}
        What the server sees. "users": every message, from clients in a fresh random order, the model moving after each;
        at client level budgets then belong to steps. "reports", "levels": all messages of a round at one model,
        shuffled. "sum": only their sum.
    epsilon0 : float, array_like or mapping
        Local budget of one message, nats, in [0, 700]: for all, per client in ascending order of ``groups``, or by
        client. Clients with budget 0 are left out.
    delta : float
        Central delta, in (0, 1).
    clip : float
        Largest norm C of what is clipped (Euclidean, or sum of absolute values for Laplace noise).
    rounds : int or None
        Messages of every client; each is one pass over its examples. None: as many as ``target_epsilon`` allows, up to
        10,000.
    hidden : tuple of int
        Widths of hidden layers; () for softmax regression.
    mechanism : {"gaussian", "laplace", "sketch"}
        Noise on every number of the message, Gaussian calibrated analytically to (epsilon0, delta0); or one bit: on
        which side of a random hyperplane the gradient lies, by randomized response (client level, "reports" or
        "levels"). With many clients of few examples each the bit is by far the best.
    delta0 : float, array_like, mapping or None
        Gaussian: approximate part of each message's budget; by default delta at example level and for sums, else
        delta over the number of clients.
    clipped : {"examples", "message"} or None
        Every example's gradient, or the average as a whole; by default examples at example level, else the message.
        With unit = "example" only "examples" is private.
    step, momentum, decay, averaging : float, float, {"none", "linear", "cosine"}, float
        The server's: step length, share of the last direction kept, how the step shrinks over the rounds, and the
        share of last rounds whose models are averaged (0: the last model).
    weighting : {"auto", "none", "inverse-variance"}
        Whether noisier clients move the model less; "auto" does so if noise differs between clients. Bits ("sketch")
        that are seen without their budgets ("reports") all count the same; another choice is refused.
    min_messages : int
        A round with fewer messages is not released.
    classes : int or None
        Number K of classes; None reads it off the labels, which is then no secret.
    features : callable or None
        Fixed map from rows to features, made without private data: `cosine_projection`, `OrientedGradients`, ...
    pca : int or None
        Principal components in front of the network, fitted on ``pca_data``.
    pca_data : array_like or None
        Public data for ``pca``: not of the people who are protected.
    public_features : bool
        Your statement that the features X of the training data are public, so that ``pca`` may be fitted on them.
    max_epsilon : float or None
        Training stops before the guarantee would exceed it.
    target_epsilon : float or None
        Central epsilon that all rounds together may cost, positive. All budgets are then multiplied by one factor, the
        largest found with which the certified epsilon of all rounds is at most this (no budget above 64), so that
        ``epsilon0`` states them in proportion only; with rounds=None budgets stay, and the number of rounds is found.
        ``guarantee_.notes`` says what was found. The search takes everybody to be there always; whoever is, training
        stops before the guarantee would exceed the target.
    patience : int or None
        With public ``validation`` data: training ends after so many rounds without a better accuracy on them, and the
        best model is kept. When it ends depends on released models, so the guarantee is that of all rounds asked for.
    checkpoint : str, Path or None
        File written before and after every round; `fit` with resume=True goes on from it. A file that exists already
        is refused without resume=True: it holds the count of what its run has spent.
    progress : callable or None
        Called with a `RoundReport` after every round; `print_progress` shows a line.
    random : Randomness or None
        Default `secure_random()`. With `simulation_random(seed)` nothing is private, and the guarantee says so.

    Attributes
    ----------
    guarantee_ : TrainingGuarantee
        What may be published about privacy.
    accountant_ : TrainingAccountant
        Rounds released, and their cost.
    classes_, n_features_in_, network_, weights_, history_, stopped_
        Labels, inputs, the network and its weights, one `RoundReport` per round, and why training ended.

    Examples
    --------
    >>> from shuffledp.learning.inputs import read_digits, sample_folder
    >>> from shuffledp.learning.inputs import assign_clients
    >>> from shuffledp.learning.features import cosine_projection
    >>> digits = read_digits(sample_folder(), "train")
    >>> model = ShuffledSGDClassifier(
    ...     unit="example", seen="users", epsilon0=8.0, delta=1e-5, clip=0.5, rounds=2, hidden=(), classes=10,
    ...     features=cosine_projection(28, 40, scale=1 / 255),
    ... ).fit(digits.images, digits.labels, groups=assign_clients(2000, 10))
    >>> model.guarantee_.epsilon.upper < 16
    True
    """

    def __init__(
        self,
        *,
        unit: str,
        seen: str,
        epsilon0: Any,
        delta: float,
        clip: float,
        rounds: int | None,
        hidden: tuple[int, ...] = (128,),
        mechanism: str = "gaussian",
        delta0: Any = None,
        clipped: str | None = None,
        step: float = 0.5,
        momentum: float = 0.0,
        decay: str = "linear",
        averaging: float = 0.0,
        weighting: str = "auto",
        min_messages: int = 1,
        classes: int | None = None,
        features: Features | None = None,
        pca: int | None = None,
        pca_data: ArrayLike | None = None,
        public_features: bool = False,
        max_epsilon: float | None = None,
        target_epsilon: float | None = None,
        patience: int | None = None,
        checkpoint: str | Path | None = None,
        progress: Progress | None = None,
        random: Randomness | None = None,
    ) -> None:
        self.unit = unit
        self.seen = seen
        self.epsilon0 = epsilon0
        self.delta = delta
        self.clip = clip
        self.rounds = rounds
        self.hidden = hidden
        self.mechanism = mechanism
        self.delta0 = delta0
        self.clipped = clipped
        self.step = step
        self.momentum = momentum
        self.decay = decay
        self.averaging = averaging
        self.weighting = weighting
        self.min_messages = min_messages
        self.classes = classes
        self.features = features
        self.pca = pca
        self.pca_data = pca_data
        self.public_features = public_features
        self.max_epsilon = max_epsilon
        self.target_epsilon = target_epsilon
        self.patience = patience
        self.checkpoint = checkpoint
        self.progress = progress
        self.random = random

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        groups: ArrayLike | None = None,
        *,
        validation: tuple[ArrayLike, ArrayLike] | None = None,
        presence: Callable[[int], ArrayLike] | None = None,
        resume: bool = False,
        ledger: Ledger | str | Path | None = None,
        population: str = EVERYBODY,
        fixed_in_advance: str | None = None,
        title: str = "",
    ) -> Self:
        """Train the classifier with private messages of clients, and return the fitted estimator.

        Parameters
        ----------
        X : array_like, shape (examples, inputs)
            Numbers of any type; bytes stay bytes. A row that is missing, infinite or so large that its gradient
            overflows contributes zero: an error, or a missing message, would tell that there is such a row.
        y : array_like of int, shape (examples,)
            Labels in 0..K-1.
        groups : array_like, shape (examples,), optional
            Whose example each is; by default everybody has one.
        validation : (X, y), optional
            Public data on which loss and accuracy are shown while training. Numbers from private data would be a
            release of their own, so without it only the privacy spent is shown.
        presence : callable, optional
            presence(round) returns which clients (ascending) take part, shape (clients,) of bool. It must not depend
            on the records. Default: everybody, always.
        resume : bool
            Go on from the checkpoint file instead of starting.
        ledger : Ledger, str or Path, optional
            Where all rounds are entered before the first message is computed; rounds that a checkpoint shows to be
            entered are not entered again. It needs ``classes``, and asks ``presence`` for all rounds at once.
        population, fixed_in_advance, title
            As for `shuffledp.release`.

        Raises
        ------
        InvalidInput
            On any bad argument or data, or if the ledger's limit has no room. The estimator is then as it was before.
        NotConverged
            If training diverges.
        """
        entering = Entering.into(ledger, population, fixed_in_advance, title)
        rows = checked_features(X, private=True)
        run = Run.of(Settings(**self.get_params()), rows, y, groups, validation, presence, entering)
        run.train(resume=resume)
        self.network_: Network = run.sender.network
        self.weights_: FloatArray = run.result.copy()
        self.projection_: Projection | None = run.projection
        self.classes_ = np.arange(self.network_.widths[-1])
        self.n_features_in_ = run.inputs
        self.accountant_: TrainingAccountant = run.accountant
        self.history_: list[RoundReport] = run.history
        self.stopped_: str = run.stopped
        self.guarantee_: TrainingGuarantee = run.guarantee()
        return self

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return the predicted probability of each class for each row of X, shape (n, classes); X is as for `fit`."""
        return np.concatenate([self.network_.probabilities(self.weights_, part) for part in self._parts(X)])

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return the label of the most likely class of each row of X, shape (n,); X is as for `fit`."""
        return np.concatenate([self.network_.scores(self.weights_, part).argmax(axis=1) for part in self._parts(X)])

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Return the share of rows, in [0, 1], whose class is predicted correctly; X and y are as for `fit`."""
        predicted = self.predict(X)
        labels, _ = checked_labels(y, predicted.size, self.network_.widths[-1])
        return float(np.mean(predicted == labels))

    def _parts(self, X: ArrayLike) -> list[FloatArray]:
        if not hasattr(self, "weights_"):
            raise InvalidInput("this classifier is not trained yet; call fit first")
        rows = checked_features(X, inputs=self.n_features_in_)
        return in_chunks(prepared(rows, self.features, self.projection_))
