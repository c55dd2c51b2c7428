"""`ShuffledSGDClassifier`: shuffled private stochastic gradient descent, in the shape of a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import InvalidInput
from shuffledp.learning.accounting import TrainingAccountant, TrainingGuarantee
from shuffledp.learning.features import Features, Projection
from shuffledp.learning.inputs import checked_features, checked_labels
from shuffledp.learning.network import Network
from shuffledp.learning.settings import Progress, RoundReport, Settings, prepared
from shuffledp.learning.training import Run, in_chunks
from shuffledp.ledger import EVERYBODY, Ledger
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.params import Parameters
from shuffledp.releases.entering import Entering


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
    >>> from shuffledp.learning.idx import read_digits, sample_folder
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
        """Return the predicted probability of each class for each row, shape (n, classes); rows add up to 1."""
        return np.concatenate([self.network_.probabilities(self.weights_, part) for part in self._parts(X)])

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return the label of the most likely class of each row, shape (n,)."""
        return np.concatenate([self.network_.scores(self.weights_, part).argmax(axis=1) for part in self._parts(X)])

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Return the share of rows, in [0, 1], whose class is predicted correctly."""
        found = self.predict(X)
        labels, _ = checked_labels(y, found.size, self.network_.widths[-1])
        return float(np.mean(found == labels))

    def _parts(self, X: ArrayLike) -> list[FloatArray]:
        if not hasattr(self, "weights_"):
            raise InvalidInput("this classifier is not trained yet; call fit first")
        rows = checked_features(X, inputs=self.n_features_in_)
        return in_chunks(prepared(rows, self.features, self.projection_))
