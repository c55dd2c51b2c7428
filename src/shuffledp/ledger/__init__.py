"""The ledger: a file of all releases about the same people, entered before they are shown, with their joint cost."""

from shuffledp.ledger.entry import (
    EVERYBODY,
    MOST_LEVELS,
    TAKEN_AS_PEOPLE,
    Entry,
    LevelSpending,
    NewEntry,
    Spending,
    Use,
)
from shuffledp.ledger.ledger import Ledger, LevelTotal, Limit, Total, composed_epsilon
from shuffledp.ledger.store import Turn

__all__ = [
    "EVERYBODY",
    "MOST_LEVELS",
    "TAKEN_AS_PEOPLE",
    "Entry",
    "Ledger",
    "LevelSpending",
    "LevelTotal",
    "Limit",
    "NewEntry",
    "Spending",
    "Total",
    "Turn",
    "Use",
    "composed_epsilon",
]
