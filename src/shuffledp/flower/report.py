"""What a federated training may claim, level by level, with and without a shuffler that one trusts."""

from __future__ import annotations

from dataclasses import dataclass

from shuffledp.learning.accounting import TrainingAccountant
from shuffledp.learning.guarantee import TrainingGuarantee


@dataclass(frozen=True)
class LevelReport:
    """One budget level.

    Parameters
    ----------
    names : tuple of str
        The levels of the terms that have this budget.
    epsilon0, delta0 : float
        Local budget of one message.
    epsilon : float
        Certified central epsilon of a client of this level after all released rounds.
    method : str
        Key of the bound that gave it: the smallest of the valid ones.
    epsilon_operator : float
        The same against whoever runs the server and sees who sent what: composition of the client's own noise over all
        rounds in which clients were asked, released or not.
    """

    names: tuple[str, ...]
    epsilon0: float
    delta0: float
    epsilon: float
    method: str
    epsilon_operator: float


@dataclass(frozen=True)
class FederatedReport:
    """Privacy of a federated training so far.

    Parameters
    ----------
    guarantee : TrainingGuarantee
        Neighbours replace all records of one client.
    levels : tuple of LevelReport
        Every level of the terms.
    refused : tuple of (int, str)
        Rounds that were not released, and why.
    stopped : str
        Why no further round is asked for; empty while training goes on.
    """

    guarantee: TrainingGuarantee
    levels: tuple[LevelReport, ...]
    refused: tuple[tuple[int, str], ...]
    stopped: str

    def describe(self) -> str:
        """Return the report in sentences, one per line."""
        lines = [self.guarantee.describe()]
        for level in self.levels:
            lines.append(
                f"Level {', '.join(level.names)} (epsilon0 = {level.epsilon0:g}, delta0 = {level.delta0:g} a message): "
                f"epsilon {level.epsilon:.4g} by {level.method}; {level.epsilon_operator:.4g} against whoever runs "
                "the server."
            )
        lines += [f"Round {number} was not released: {why}." for number, why in self.refused]
        return "\n".join([*lines, f"Stopped: {self.stopped}."] if self.stopped else lines)


def level_reports(
    accountant: TrainingAccountant, names: tuple[tuple[str, ...], ...], delta: float, *, asked: int
) -> tuple[LevelReport, ...]:
    """Report every tier.

    Parameters
    ----------
    accountant : TrainingAccountant
        Of the training.
    names : tuple of tuple of str
        Names of each tier.
    delta : float
        Central delta.
    asked : int
        Rounds in which clients were asked for messages, at least 1.
    """
    found: list[LevelReport] = []
    for index, tier in enumerate(accountant.tiers):
        method, epsilon = "local", 0.0
        if any(messages[index] for messages in accountant.spent):
            method, epsilon, _ = accountant.tier_answer(index, delta)
        # one message a round, and nobody else's to hide among
        alone = TrainingAccountant(accountant.unit, "levels", accountant.gaussian, (tier,), {(1,): asked})
        found.append(LevelReport(names[index], tier.epsilon0, tier.delta0, epsilon, method, alone.epsilon(delta)))
    return tuple(found)
