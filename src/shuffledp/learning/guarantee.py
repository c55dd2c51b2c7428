"""What may be claimed of a training run, and the message laws it rests on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shuffledp.guarantee import Evidence, LevelGuarantee
from shuffledp.learning.clipping import UNIT_MEANING, Unit
from shuffledp.numerics.floats import round_up
from shuffledp.numerics.interval import Interval
from shuffledp.setting import Seen
from shuffledp.told import Told

SERVER_SEES: dict[str, str] = {
    "reports": "the server sees the shuffled messages of a round, all computed at one model",
    "users": "the server sees every message, clients in a fresh random order, and moves the model after each",
    "levels": "the server sees the shuffled messages of a round with their budgets, all computed at one model",
    "sum": "the server sees only the sum of a round's messages",
}

REFERENCES: dict[str, str] = {
    "local": "plain composition of the message's own noise: no shuffling is counted on",
    "levels": "clone theorem within the budget level (own proof), fresh shuffle every round, composed",
    "approximate": "clone theorem within the budget level, Gaussian noise charged (own proof), fresh shuffle, composed",
    "chain": "chain theorem for Gaussian noise within the budget level (own proof), fresh shuffle, composed",
    "ordered": "clone theorem for ordered, adaptive steps (own proof), fresh permutation every round, composed",
    "blanket": "one-bit messages of all budgets hide each other (blanket of fair bits under public seeds, own proof), "
    "fresh shuffle every round, composed",
    "sum": "the noises of all messages of a round add; rounds composed",
}


@dataclass(frozen=True)
class Tier:
    """Clients with the same budget and the same message law.

    Parameters
    ----------
    epsilon0, delta0 : float
        Local budget of one message; epsilon0 in (0, 700], delta0 in [0, 1).
    sensitivity : float
        How far one unit moves the message, at most, in grid steps and in the mechanism's norm.
    scale : float
        Noise that may be counted on, in grid steps: standard deviation, or Laplace scale.
    """

    epsilon0: float
    delta0: float
    sensitivity: float
    scale: float

    @property
    def ratio(self) -> float:
        """sensitivity/scale, rounded up: mu of Gaussian noise, epsilon of Laplace noise."""
        return round_up(self.sensitivity / self.scale, 2)


@dataclass(frozen=True, repr=False)
class TrainingGuarantee(Told):
    """Certified central guarantee of a training run.

    Parameters
    ----------
    unit : {"client", "example"}
        What neighbours replace.
    seen : {"reports", "users", "levels", "sum"}
        What the server sees.
    delta : float
        Central delta.
    rounds : int
        Rounds that were released.
    levels : tuple of LevelGuarantee
        Per budget level; upper ends are certified, lower ends are 0: no attack is claimed.
    levels_total : int
        How many levels there are; of more than 1000 some are listed, the worst among them.
    evidence : tuple of Evidence
        Every bound consulted for the worst level, with its value or its refusal.
    method : str
        Key of the bound that gave the worst level's number.
    notes : tuple of str
        What the number rests on besides, one sentence each.
    private : bool
        False if the noise came from a seeded generator: then nothing is guaranteed.
    """

    unit: Unit
    seen: Seen
    delta: float
    rounds: int
    levels: tuple[LevelGuarantee, ...]
    levels_total: int
    evidence: tuple[Evidence, ...]
    method: str
    notes: tuple[str, ...] = ()
    private: bool = True

    def _told(self) -> str:
        rounds = f"{self.rounds} round{'' if self.rounds == 1 else 's'}"
        return (
            f"central epsilon at most {self.epsilon.upper!r} at delta = {self.delta!r}, by {self.method}: {rounds}, "
            f"neighbours replace one {self.unit}, seen = {self.seen}" + ("" if self.private else "; NOT PRIVATE")
        )

    def _rows(self) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
        return ("budget of a message", f"{self.unit}s", "central epsilon at most"), (
            (level.epsilon0, f"{level.count:,}", level.epsilon.upper) for level in self.levels
        )

    @property
    def epsilon(self) -> Interval:
        """Worst central epsilon over levels: the end to publish is ``.upper``."""
        return Interval(0.0, max((level.epsilon.upper for level in self.levels), default=0.0))

    @property
    def worst(self) -> LevelGuarantee:
        """The level with the largest certified epsilon."""
        return max(self.levels, key=lambda level: (level.epsilon.upper, level.epsilon0))

    def describe(self) -> str:
        """Return the guarantee in sentences, one per line."""
        head = (
            f"({self.epsilon.upper:.4g}, {self.delta:g})-differential privacy after {self.rounds} rounds"
            if self.private
            else "no privacy: the noise came from a seeded generator; with secure randomness it would be "
            f"({self.epsilon.upper:.4g}, {self.delta:g})"
        )
        return "\n".join(
            (
                f"{head}, by {self.method}: {REFERENCES[self.method]}.",
                f"Neighbours: {UNIT_MEANING[self.unit]}. {SERVER_SEES[self.seen].capitalize()}.",
                *(f"{note[0].upper()}{note[1:]}." for note in self.notes),
            )
        )
