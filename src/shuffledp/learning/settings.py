"""What a training run was asked for, checked before anything is done; features; what the guarantee rests on."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting import check_delta
from shuffledp.errors import InvalidInput
from shuffledp.learning.clipping import CLIPPED, UNITS, Clipping, Unit
from shuffledp.learning.inputs import Clients, checked_features, number_within, one_of, per_client, whole_number
from shuffledp.learning.pca import Features, Projection, public_projection
from shuffledp.learning.progress import Progress
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.setting import SEEN

DECAYS: dict[str, Callable[[float], float]] = {
    "none": lambda done: 1.0,
    "linear": lambda done: 1.0 - done,
    "cosine": lambda done: 0.5 * (1.0 + math.cos(math.pi * done)),
}
"""Factor on the step length when a share ``done`` of the rounds is behind."""
NAMES = ("gaussian", "laplace", "sketch")
WEIGHTINGS = ("auto", "none", "inverse-variance")


@dataclass(frozen=True)
class Settings:
    """The estimator's arguments, as `ShuffledSGDClassifier` defines them."""

    unit: str
    seen: str
    epsilon0: Any
    delta: float
    clip: float
    rounds: Any
    hidden: tuple[int, ...]
    mechanism: str
    delta0: Any
    clipped: str | None
    step: float
    momentum: float
    decay: str
    averaging: float
    weighting: str
    min_messages: int
    classes: int | None
    features: Features | None
    pca: int | None
    pca_data: ArrayLike | None
    public_features: bool
    max_epsilon: float | None
    target_epsilon: float | None
    patience: int | None
    checkpoint: str | Path | None
    progress: Progress | None
    random: Randomness | None

    def checked(self) -> Settings:
        """Return the same settings after checking every choice and number that needs no data."""
        one_of("unit", self.unit, UNITS)
        one_of("seen", self.seen, SEEN)
        one_of("decay", self.decay, tuple(DECAYS))
        one_of("weighting", self.weighting, WEIGHTINGS)
        one_of("mechanism", self.mechanism, NAMES)
        check_delta(self.delta)
        if self.rounds is not None:
            whole_number("rounds", self.rounds, 1)
        elif self.target_epsilon is None:
            raise InvalidInput("`rounds` is missing: say how many, or give `target_epsilon`, from which they are found")
        whole_number("min_messages", self.min_messages, 1)
        number_within("step", self.step, 0.0, 1e6)
        number_within("momentum", self.momentum, 0.0, 1.0, below=True)
        number_within("averaging", self.averaging, 0.0, 1.0)
        if self.max_epsilon is not None:
            number_within("max_epsilon", self.max_epsilon, 0.0, math.inf)
        if self.target_epsilon is not None and not number_within("target_epsilon", self.target_epsilon, 0.0, 1e6) > 0.0:
            raise InvalidInput("target_epsilon must be positive; got 0")
        if self.patience is not None:
            whole_number("patience", self.patience, 1)
            if self.checkpoint is not None:
                raise InvalidInput("`patience` does not go with `checkpoint`, which keeps no best model; leave one out")
        if self.pure and self.delta0 is not None:
            raise InvalidInput(
                f"`mechanism = '{self.mechanism}'` is pure: leave `delta0` out, or use `mechanism = 'gaussian'`"
            )
        if self.mechanism == "sketch" and (self.unit != "client" or self.seen not in ("reports", "levels")):
            raise InvalidInput(
                "`mechanism = 'sketch'` sends one bit a client, all at one model: it needs `unit = 'client'` and "
                f"`seen = 'reports'` or `seen = 'levels'`; got `unit = '{self.unit}'`, `seen = '{self.seen}'`"
            )
        return self

    @property
    def pure(self) -> bool:
        """Whether messages are epsilon0-LDP with delta0 = 0."""
        return self.mechanism != "gaussian"

    @property
    def clipping(self) -> Clipping:
        """What is clipped; refuses what is not private."""
        what = self.clipped if self.clipped is not None else ("examples" if self.unit == "example" else "message")
        one_of("clipped", what, CLIPPED)
        order: Literal[1, 2] = 1 if self.mechanism == "laplace" else 2
        return Clipping(cast(Unit, self.unit), cast(Any, what), self.clip, order)

    def deltas(self, clients: Clients) -> FloatArray:
        """delta0 of every client's messages."""
        if self.pure:
            return np.zeros(clients.count)
        if self.delta0 is None:
            alone = self.unit == "example" or self.seen == "sum"
            return np.full(clients.count, self.delta if alone else self.delta / clients.count)
        return per_client(self.delta0, clients, "delta0")


def prepared(
    rows: NDArray[np.generic], features: Features | None, projection: Projection | None
) -> NDArray[np.generic]:
    """Return what the network sees: rows through the fixed map and the projection, if there are any.

    A record that the map cannot turn into finite numbers passes, without a word: it contributes zero.
    """
    with np.errstate(all="ignore"):
        out = rows if features is None else checked_features(features(rows), private=True)
    if out.shape[0] != rows.shape[0]:
        raise InvalidInput(f"features must keep the rows; got {out.shape[0]} rows from {rows.shape[0]}")
    with np.errstate(all="ignore"):
        return out if projection is None else projection(out)


def probed(rows: NDArray[np.generic], features: Features | None, projection: Projection | None) -> list[float]:
    """Fingerprint of the fixed map in front of the network: of what it makes of three made-up rows.

    Sums of numbers that are not negative, with public weights: another machine's last digits move them by no more than
    their own last digits, while another map moves them far.

    Parameters
    ----------
    rows : ndarray, shape (n, inputs)
        Their number of columns and their type are used, and no number in them.
    features, projection : callable or None
        As for `prepared`.
    """
    made_up = (np.arange(3 * rows.shape[1]) * 37 % 101).reshape(3, -1).astype(rows.dtype)
    found = np.nan_to_num(np.asarray(prepared(made_up, features, projection), dtype=np.float64)).ravel()
    size, places = np.abs(found), np.arange(found.size)
    weights = [1.0 + (places * prime % 101) / 101.0 for prime in (7, 11, 13, 17)]
    sums = [float((w * v).sum()) for w in weights for v in (size, size + np.maximum(found, 0.0))]
    return [float(found.size), *sums]


def public_components(s: Settings, rows: NDArray[np.generic], notes: list[str]) -> Projection | None:
    """Fit principal components to what was declared public, and note it; refuse to fit them to private data."""
    if s.pca is None:
        return None
    if s.pca_data is None and s.public_features is not True:
        raise InvalidInput(
            "principal components fitted on the private training data reveal them, and no budget here pays for that; "
            "give pca_data, public data of other people, or say public_features=True if X is public, "
            "or use features=cosine_projection(...), which needs no data"
        )
    public = rows if s.pca_data is None else checked_features(s.pca_data, inputs=rows.shape[1])
    found = public_projection(prepared(public, s.features, None), s.pca, public=True)
    notes.append(f"features: {found.origin}")
    return found


def assumptions(s: Settings, read_classes: bool) -> list[str]:
    """Return what the guarantee rests on besides the count of rounds, one sentence each."""
    notes = [
        "budgets, and who takes part in which round, are public and do not depend on the records",
        "a contribution that is not finite becomes zero, so that no error and no missing message tells of a record",
    ]
    if s.unit == "example":
        notes.append("how many examples each client has is public")
    if s.seen in ("reports", "levels") and s.unit == "client":
        notes.append("a trusted shuffler permutes the messages of every round afresh; here it is only simulated")
    if s.seen == "sum":
        notes.append("nothing but the sum of a round is released, and every client of the round adds its noise")
    if s.features is not None:
        origin = getattr(s.features, "origin", "a map given by the caller, who states that no private data made it")
        notes.append(f"features: {origin}")
    if read_classes:
        notes.append("the number of classes was read off the labels and is public")
    return notes
