"""One release as the ledger keeps it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from shuffledp.accounting import StoredProfile, dominating_mu
from shuffledp.errors import InvalidInput, OutOfRegime, Refused, attempt, shown
from shuffledp.ledger.spending import LevelSpending, Spending

EVERYBODY = "everybody"
"""The population that a release is about if none is named."""
COLUMNS = (
    "id, run, date, title, question, population, plan, task, setting, epsilon, delta, n, levels_total, profile, "
    "levels, mu, outside"
)
TAKEN_AS_PEOPLE = ", taken as people"
"""In the words of a setting: after "rows" where nobody said whose they are, after "reports" of an open collection."""
_LONGEST_NAME = 200


@dataclass(frozen=True)
class Use:
    """Who uses a ledger, and how: what a release is entered under.

    Parameters
    ----------
    population : str
        Name of the population. Names that differ overlap, unless they are stated to be disjoint.
    fixed_in_advance : str, optional
        Name of the plan that fixed this release, and all others of that name, before the first of their answers was
        seen. None: the question was chosen on the way.
    title : str
        What the entry is called.

    Raises
    ------
    InvalidInput
        If a name is empty, longer than 200 characters, or not printable.
    """

    population: str = EVERYBODY
    fixed_in_advance: str | None = None
    title: str = ""

    def __post_init__(self) -> None:
        check_name("population", self.population)
        if self.fixed_in_advance is not None:
            check_name("fixed_in_advance", self.fixed_in_advance)


@dataclass(frozen=True)
class Entry:
    """A release in a ledger.

    Parameters
    ----------
    number : int
        1 for the first.
    run : str
        Releases of one run were fixed together, before the first of their answers.
    date : str
        ISO 8601, UTC, when it was entered.
    title, question, population, plan
        What was asked of whom; `plan` is the name of what was fixed in advance, or None.
    task : str
        Fingerprint of all that was public beforehand; never of records.
    setting : str
        The setting in words.
    spending : Spending
        What it costs.
    mu, outside : float
        The release is a post-processing of "with chance `outside` reveal the record, else mu-Gaussian DP".
    """

    number: int
    run: str
    date: str
    title: str
    question: str
    population: str
    plan: str | None
    task: str
    setting: str
    spending: Spending = field(repr=False)
    mu: float
    outside: float

    @staticmethod
    def of(row: Sequence[Any]) -> Entry:
        """Return the entry that a row of the ledger's table (columns `COLUMNS`) holds."""
        number, run, date, title, question, population, plan, task, setting, *rest = row
        epsilon, delta, n, levels_total, profile, levels, mu, outside = rest
        kept = tuple(
            LevelSpending(level["epsilon0"], level["delta0"], StoredProfile.from_json(level["profile"]))
            for level in json.loads(levels)
        )
        worst = StoredProfile.from_json(json.loads(profile))
        spending = Spending(epsilon, delta, n, levels_total, worst, kept)
        return Entry(number, run, date, title, question, population, plan, task, setting, spending, mu, outside)


@dataclass(frozen=True)
class Draft:
    """A release that is about to be entered.

    Parameters
    ----------
    question : str
        What is asked, such as "frequency of vote".
    task : str
        Fingerprint of all that was public beforehand.
    setting : str
        The setting in words.
    spending : Spending
        What it costs.
    output : str
        Fingerprint of the shuffled reports themselves, where what they were shuffled into is kept and may be opened
        again; "" where every release draws its own.
    training, rounds : str
        Of the rounds of a training run that may go on: its name, and which rounds these are; else "".
    """

    question: str
    task: str
    setting: str
    spending: Spending = field(repr=False)
    output: str = ""
    training: str = ""
    rounds: str = ""

    @property
    def known_as(self) -> str:
        """The task's key in the ledger: its fingerprint, joined with that of the reports where there is one."""
        return f"{self.task}:{self.output}" if self.output else self.task

    def is_in(self, entries: Iterable[Entry], use: Use) -> bool:
        """Whether these very reports are entered: what is computed from them is covered by that entry.

        Parameters
        ----------
        entries : iterable of Entry
            Of the ledger.
        use : Use
            Whom the release concerns; as entered.

        Raises
        ------
        InvalidInput
            If other reports to the same task are entered, or these under another population or plan.
        """
        if not self.output:
            return False
        for entry in entries:
            task, _, output = entry.task.partition(":")
            if task != self.task or not output:
                continue
            if output != self.output:
                raise InvalidInput(
                    f"entry {entry.number} of the ledger is another batch of this collection; both hold the same "
                    "reports, which no certified number covers twice; open the batch that was entered"
                )
            if use.population != entry.population or use.fixed_in_advance not in (None, entry.plan):
                plan = "no plan" if entry.plan is None else f"the plan {shown(entry.plan)}"
                raise InvalidInput(
                    f"this batch is entry {entry.number} of the ledger, under `population` {shown(entry.population)} "
                    f"and {plan}; an entry stays as it is: repeat those names"
                )
            return True
        return False

    def cover(self, least: float) -> tuple[float, float]:
        """Return mu and outside, the latter at least the given one and at least what no epsilon covers.

        Parameters
        ----------
        least : float
            In (0, 1).
        """
        uncovered = self.spending.worst.mass_at_infinity.upper
        outside = max(least, uncovered * (1.0 + 1e-9))
        if outside >= 1.0:
            return math.inf, 1.0
        found = attempt(lambda: dominating_mu(self.spending.worst, outside), (OutOfRegime,))
        return (math.inf if isinstance(found, Refused) else found), outside

    def row(self, use: Use, run: str, cover: tuple[float, float]) -> tuple[Any, ...]:
        """Return the values of the ledger's columns `COLUMNS` except the first, the entry's number."""
        spending = self.spending
        levels = [
            {"epsilon0": level.epsilon0, "delta0": level.delta0, "profile": level.profile.to_json()}
            for level in spending.levels
        ]
        return (
            run,
            datetime.now(UTC).isoformat(timespec="seconds"),
            use.title or self.question,
            self.question,
            use.population,
            use.fixed_in_advance,
            self.known_as,
            self.setting,
            spending.epsilon,
            spending.delta,
            spending.n,
            spending.levels_total,
            json.dumps(spending.worst.to_json(), allow_nan=False),
            json.dumps(levels, allow_nan=False),
            *cover,
        )


def check_name(parameter: str, name: object) -> str:
    """Return the name unchanged, or raise InvalidInput if it is not a valid name."""
    if not isinstance(name, str) or not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
        raise InvalidInput(f"`{parameter}` must be a name of 1 to 200 printable characters; got {shown(name)}")
    return name
