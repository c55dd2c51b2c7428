"""Which number is asked for: population, randomizer, who sees what, how often, which neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput
from shuffledp.randomizers.base import LocalRandomizer

Seen = Literal["reports", "users", "levels", "sum"]
SEEN: tuple[Seen, ...] = ("reports", "users", "levels", "sum")
SEEN_MEANING: dict[str, str] = {
    "reports": "the analyst sees the shuffled reports, without their senders' budgets",
    "users": "the analyst sees the reports in order, but the users were permuted first; budgets belong to positions",
    "levels": "the analyst sees the shuffled reports, each with its sender's budget",
    "sum": "the analyst sees only the sum of the reports",
}
NEIGHBORING = ("replace-one",)


@dataclass(frozen=True)
class Setting:
    """The question an accountant answers.

    Parameters
    ----------
    budgets : Budgets
        The population; public, and independent of the records.
    randomizer : LocalRandomizer or "any"
        A family of local randomizers, or "any": whatever pure LDP randomizer within budget, one common to
        all users of a level.
    seen : {"reports", "users", "levels", "sum"}
        Who sees what after the shuffle. No default.
    neighboring : {"replace-one"}
        The neighbouring relation: one user's record is replaced; n is public. No default.
    rounds : int
        Number of collections from the same users; 1 in this version.

    Raises
    ------
    InvalidInput
        If a choice is unknown or rounds is not a positive whole number.

    Examples
    --------
    >>> Setting(Budgets.of([1.0] * 1000), "any", seen="reports", neighboring="replace-one").budgets.n
    1000
    """

    budgets: Budgets
    randomizer: LocalRandomizer | Literal["any"]
    seen: Seen
    neighboring: Literal["replace-one"]
    rounds: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.budgets, Budgets):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"budgets must be a Budgets; got {self.budgets!r}; use Budgets.of(array)")
        if self.seen not in SEEN:
            raise InvalidInput(f"seen must be one of {', '.join(SEEN)}; got {self.seen!r}")
        if self.neighboring not in NEIGHBORING:
            raise InvalidInput(f"neighboring must be 'replace-one'; got {self.neighboring!r}")
        if self.randomizer != "any" and not isinstance(self.randomizer, LocalRandomizer):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"randomizer must be 'any' or a local randomizer; got {self.randomizer!r}")
        if isinstance(self.rounds, bool) or not isinstance(self.rounds, int) or self.rounds < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"rounds must be a whole number >= 1; got {self.rounds!r}")

    @property
    def randomizer_name(self) -> str:
        """The randomizer as the command line spells it."""
        return self.randomizer if isinstance(self.randomizer, str) else self.randomizer.name
