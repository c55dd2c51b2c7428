"""What an audit found."""

from __future__ import annotations

from dataclasses import dataclass

from shuffledp.audit.confidence import Hits
from shuffledp.told import Told

SLACK = 1e-9
"""Share of a claim by which its last digits may differ on the machine that certifies it anew."""


@dataclass(frozen=True, repr=False)
class AuditResult(Told):
    """An attack's verdict on a claimed epsilon.

    Parameters
    ----------
    subject : str
        What was attacked.
    claimed : float
        The claimed epsilon, nats.
    delta : float
        The claim's delta.
    epsilon_lower_bound : float
        No (epsilon, delta) below it can be true, at the stated confidence; nats, at least 0.
    confidence : float
        In (0, 1). What keeps its claim is accused (``violated``) with chance at most 1 - confidence.
    records : (str, str)
        The pair of records that was chosen as the easiest to tell apart.
    worlds : (str, str)
        What the event tells apart, in words: the two records, or pairs of users whose records are the same or differ.
    attack : str
        What the attacker looked at.
    event : str
        The event, in words.
    likelier : {0, 1}
        In which of the worlds the event is likelier.
    hits : Hits
        How often it happened in each world, in the trials that judged it.
    private : bool
        Whether the attacker's own randomness was secure; False for a repeatable audit.
    """

    subject: str
    claimed: float
    delta: float
    epsilon_lower_bound: float
    confidence: float
    records: tuple[str, str]
    worlds: tuple[str, str]
    attack: str
    event: str
    likelier: int
    hits: Hits
    private: bool

    def _told(self) -> str:
        verdict = "BROKEN" if self.violated else "not broken by this attack"
        return (
            f"audit of {self.subject}: the claim epsilon <= {self.claimed!r} at delta = {self.delta!r} is {verdict}; "
            f"no epsilon below {self.epsilon_lower_bound!r} can be true, at confidence {self.confidence!r}"
        )

    @property
    def violated(self) -> bool:
        """Whether the lower bound exceeds the claim by more than `SLACK`."""
        return self.epsilon_lower_bound > self.claimed * (1.0 + SLACK)

    @property
    def false_alarm(self) -> float:
        """Largest chance that something which keeps its claim is accused."""
        return float(f"{1.0 - self.confidence:.9g}")  # without the digits that the subtraction makes up
