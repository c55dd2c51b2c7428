"""What may be told of a training run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shuffledp.guarantee import LevelGuarantee
from shuffledp.learning.guarantee import TrainingGuarantee
from shuffledp.learning.progress import RoundReport
from shuffledp.report import wording

MOST_LEVELS = 12


@dataclass(frozen=True, eq=False)
class Training:
    """What may be told of a training run.

    Parameters
    ----------
    source : str
        The data, as the caller named them.
    rows, clients : int
        In training.
    test_rows : int
        Rows that took no part; 0 for none.
    tested_on : str
        What they are, in words.
    accuracy : float or None
        Share of them predicted correctly by the released model; None without such rows.
    majority : float or None
        Share of them in the most frequent class: what a model that always says this class would get right.
    seconds : float
        Processor time of training, in seconds.
    warnings : tuple of str
        What hurts accuracy, one sentence each.
    classes : tuple of str
        Names of the labels.
    features : str
        What the network sees, and what that was made from.
    widths : tuple of int
        Of the network, inputs and classes included.
    settings : mapping of str to str or number
        Mechanism, clip, step and the like.
    guarantee : TrainingGuarantee
        What may be claimed.
    notes : tuple of str
        What it rests on, a sentence each.
    stopped : str
        Why training ended.
    history : tuple of RoundReport
        One per round.
    """

    source: str
    rows: int
    clients: int
    test_rows: int
    tested_on: str
    accuracy: float | None
    majority: float | None
    seconds: float
    warnings: tuple[str, ...]
    classes: tuple[str, ...]
    features: str
    widths: tuple[int, ...]
    settings: Mapping[str, str | float]
    guarantee: TrainingGuarantee
    notes: tuple[str, ...]
    stopped: str
    history: tuple[RoundReport, ...]

    @property
    def shown_levels(self) -> list[LevelGuarantee]:
        """At most twelve levels, spread evenly over the budgets, the worst among them."""
        levels, worst = self.guarantee.levels, self.guarantee.worst
        if len(levels) <= MOST_LEVELS:
            return list(levels)
        steps = [round(i * (len(levels) - 1) / (MOST_LEVELS - 2)) for i in range(MOST_LEVELS - 1)]
        return [level for i, level in enumerate(levels) if i in steps or level is worst]

    @property
    def sentences(self) -> list[str]:
        """Assumptions as sentences."""
        return [f"{note[0].upper()}{note[1:]}." for note in self.notes]

    @property
    def model(self) -> str:
        """The network in words."""
        hidden = self.widths[1:-1]
        kind = f"network with hidden layers of {', '.join(map(str, hidden))}" if hidden else "softmax regression"
        return f"{kind}, {wording.counted(self.widths[0], 'feature')}, {self.widths[-1]} classes"
