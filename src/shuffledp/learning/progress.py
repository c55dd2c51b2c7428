"""What is told after every round of training."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class RoundReport:
    """Where training stands after a round.

    Parameters
    ----------
    round : int
        Rounds behind, from 1.
    rounds : int
        Rounds asked for.
    messages : int
        Messages of this round.
    released : bool
        False if there were too few messages: the round was dropped, and costs nothing.
    epsilon : float
        Certified central epsilon spent so far, worst level; NaN if nobody asked for it.
    loss, accuracy : float
        On the validation data, mean cross-entropy in nats and share predicted correctly; NaN without such data.
    """

    round: int
    rounds: int
    messages: int
    released: bool
    epsilon: float = math.nan
    loss: float = math.nan
    accuracy: float = math.nan

    def line(self) -> str:
        """One line for a person."""
        done = round(20 * self.round / self.rounds)
        parts = [f"[{'#' * done}{'.' * (20 - done)}] round {self.round}/{self.rounds}"]
        if not self.released:
            parts.append(f"only {self.messages} messages, not released")
        if not math.isnan(self.epsilon):
            parts.append(f"epsilon {self.epsilon:.3f}")
        if not math.isnan(self.loss):
            parts.append(f"loss {self.loss:.3f}, accuracy {100 * self.accuracy:.1f} %")
        return "  ".join(parts)


Progress = Callable[[RoundReport], None]
"""Called after every round."""


def print_progress(report: RoundReport) -> None:
    """Show one line on standard error, rewritten every round."""
    end = "\n" if report.round == report.rounds else ""
    print(f"\r{report.line():<100}", end=end, file=sys.stderr, flush=True)
