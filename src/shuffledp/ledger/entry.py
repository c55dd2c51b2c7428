"""One release as the ledger keeps it, and what it costs: certified upper profiles, and nothing of people's records."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from shuffledp.accounting import (
    AmplificationBound,
    PrivacyProfile,
    SmallestProfile,
    StoredProfile,
    bounds,
    certified_uppers,
    dominating_mu,
    weigh,
)
from shuffledp.errors import InvalidInput, OutOfRegime, Refused, attempt, shown
from shuffledp.setting import Guarantee, Setting

MOST_LEVELS = 8
"""Largest number of levels with separate profiles; with more levels only the worst profile is kept."""
_TOP_STANDS_FOR_ALL = ("clones", "blanket", "ordered", "local", "floor")
"""Upper bounds whose curve for users of the largest budget is an upper bound for everybody.

See (T) of docs/theorems/ledger.md. For added noise this is not known of `blanket`, which is then left out; so is
`clones` where levels do not hide each other.
"""


@dataclass(frozen=True, eq=False)
class LevelSpending:
    """The privacy cost of a release to the people of one budget level.

    Parameters
    ----------
    epsilon0, delta0 : float
        The local budget.
    profile : StoredProfile
        Certified upper curve delta(epsilon).
    """

    epsilon0: float
    delta0: float
    profile: StoredProfile


@dataclass(frozen=True, eq=False)
class Spending:
    """The privacy cost of a release.

    Parameters
    ----------
    epsilon, delta : float
        Its certified central guarantee, worst over levels.
    n : int
        Number of people or reports.
    levels_total : int
        Number of budget levels.
    worst : StoredProfile
        A certified upper curve delta(epsilon) for everybody in it.
    levels : tuple of LevelSpending
        The curve of each level; empty where there are more than `MOST_LEVELS`, or they are not distinguished.
    """

    epsilon: float
    delta: float
    n: int
    levels_total: int
    worst: StoredProfile
    levels: tuple[LevelSpending, ...] = ()

    @staticmethod
    def of(guarantee: Guarantee) -> Spending:
        """Return the privacy cost of a release with this guarantee.

        Parameters
        ----------
        guarantee : Guarantee
            From `certify`: its setting is accounted again, and its stated epsilon at its delta is used as well.
        """
        setting = guarantee.setting
        budgets = setting.budgets
        summary = (guarantee.epsilon.upper, guarantee.delta, budgets.n, budgets.levels)
        if budgets.levels > MOST_LEVELS:
            return Spending(*summary, _among_many(guarantee))
        levels = tuple(
            LevelSpending(float(e), float(d), StoredProfile.of(_upper(setting, float(e))))
            for e, d in zip(budgets.epsilons, budgets.deltas, strict=True)
        )
        return Spending(*summary, StoredProfile.largest([level.profile for level in levels]), levels)

    @staticmethod
    def stated(levels: Sequence[tuple[float, float]], delta: float, n: int) -> Spending:
        """Return the cost of a release of which only (epsilon, delta) of each level is known.

        Parameters
        ----------
        levels : sequence of (float, float)
            epsilon0 and certified central epsilon of each level, at least one.
        delta : float
            Central delta of all of them.
        n : int
            Number of people.
        """
        spendings = tuple(LevelSpending(e0, 0.0, StoredProfile.stated(epsilon, delta)) for e0, epsilon in levels)
        worst = max(epsilon for _, epsilon in levels)
        kept = spendings if len(spendings) <= MOST_LEVELS else ()
        return Spending(worst, delta, n, len(spendings), StoredProfile.stated(worst, delta), kept)

    @staticmethod
    def apart(parts: Sequence[Spending]) -> Spending:
        """Return the largest cost of a release to a member of one of several disjoint groups.

        Parameters
        ----------
        parts : sequence of Spending
            One for each group, at least one. The largest epsilon holds at the largest delta in every group.
        """
        levels: dict[tuple[float, float], list[StoredProfile]] = {}
        for level in (level for part in parts for level in part.levels):
            levels.setdefault((level.epsilon0, level.delta0), []).append(level.profile)
        kept = tuple(LevelSpending(*key, StoredProfile.largest(profiles)) for key, profiles in sorted(levels.items()))
        keeps_levels = all(part.levels for part in parts) and len(kept) <= MOST_LEVELS
        return Spending(
            max(part.epsilon for part in parts),
            max(part.delta for part in parts),
            sum(part.n for part in parts),
            max(len(kept), max(part.levels_total for part in parts)),
            StoredProfile.largest([part.worst for part in parts]),
            kept if keeps_levels else (),
        )


def _upper(setting: Setting, epsilon0: float) -> PrivacyProfile:
    """Return the certified upper profile; lower bounds would cost time and are not used."""
    return SmallestProfile(_answers(certified_uppers(setting), setting, epsilon0))


def _among_many(guarantee: Guarantee) -> StoredProfile:
    """Return one curve for all of many levels: that of the largest budget, where valid, and the value of `certify`."""
    setting = guarantee.setting
    stated = StoredProfile.stated(guarantee.epsilon.upper, guarantee.delta)
    if not setting.budgets.is_pure:
        return stated
    candidates = [bounds[key] for key in _TOP_STANDS_FOR_ALL if key != "blanket" or setting.adds_noise is None]
    rising = [bound for bound in candidates if bound.rises_with_budget(setting)]
    return StoredProfile.of(SmallestProfile((stated, *_answers(rising, setting, float(setting.budgets.epsilons[-1])))))


def _answers(candidates: Sequence[AmplificationBound], setting: Setting, epsilon0: float) -> tuple[PrivacyProfile, ...]:
    """Return the profiles of the bounds that apply."""
    answers = weigh(candidates, lambda bound: bound.profile(setting, epsilon0))
    return tuple(answer.value for answer in answers if answer.value is not None)


EVERYBODY = "everybody"
"""Default name of the population of a release."""
COLUMNS = (
    "id, run, date, title, question, population, plan, task, setting, epsilon, delta, n, levels_total, profile, "
    "levels, mu, outside"
)
TAKEN_AS_PEOPLE = ", taken as people"
"""Words after "rows" without known owners, and after "reports" of an open collection, in a setting's description."""
_LONGEST_NAME = 200


@dataclass(frozen=True)
class Use:
    """The names under which a release is entered.

    Parameters
    ----------
    population : str
        Name of the population. Populations of different names may overlap, unless they are stated to be disjoint.
    fixed_in_advance : str, optional
        Name of the plan that fixed this release, and all others of that name, before the first of their answers was
        seen. None: the question was chosen adaptively.
    title : str
        Title of the entry.

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
    """A release that is entered in a ledger.

    Parameters
    ----------
    number : int
        Number of the entry, from 1.
    run : str
        Identifier of the run; its releases were fixed together, before the first of their answers.
    date : str
        Time of entry, ISO 8601, UTC.
    title, question, population, plan
        Title, question and population; `plan` is the name of the plan fixed in advance, or None.
    task : str
        Fingerprint of all that was public beforehand; never of records. Of stored reports `NewEntry.known_as`.
    setting : str
        The setting in words.
    spending : Spending
        The privacy cost.
    mu, outside : float
        The release is a post-processing of "with probability `outside` reveal the record, else mu-Gaussian DP".
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
class NewEntry:
    """A release that is about to be entered.

    Parameters
    ----------
    question : str
        The question, such as "frequency of vote".
    task : str
        Fingerprint of all that was public beforehand.
    setting : str
        The setting in words.
    spending : Spending
        The privacy cost.
    batches : tuple of (str, str)
        Where shuffled reports are stored and may be opened again: the fingerprint of each task, and that of its
        reports. Empty where every release draws new reports.
    training, rounds : str
        For rounds of a training run that may continue: its name, and the rounds; else "".
    """

    question: str
    task: str
    setting: str
    spending: Spending = field(repr=False)
    batches: tuple[tuple[str, str], ...] = ()
    training: str = ""
    rounds: str = ""

    @staticmethod
    def apart(drafts: Sequence[NewEntry], question: str) -> NewEntry:
        """Return the draft of one entry for several disjoint groups, with the largest cost to a member of any of them.

        Nobody is in two groups, so nobody spends more than that.

        Parameters
        ----------
        drafts : sequence of NewEntry
            One for each group, at least one.
        question : str
            The question.
        """
        task = hashlib.sha256("".join(draft.task for draft in drafts).encode()).hexdigest()
        words = f"{len(drafts)} public groups; the first: {drafts[0].setting}"
        batches = tuple(batch for draft in drafts for batch in draft.batches)
        return NewEntry(question, task, words, Spending.apart([draft.spending for draft in drafts]), batches)

    @property
    def known_as(self) -> str:
        """The key in the ledger: the task's fingerprint or, for stored reports, that of each task and its reports."""
        return " ".join(f"{task}:{reports}" for task, reports in self.batches) or self.task

    def is_in(self, entries: Iterable[Entry], use: Use) -> bool:
        """Return whether all of these very reports are entered; entries then cover whatever is computed from them.

        Parameters
        ----------
        entries : iterable of Entry
            Entries of the ledger.
        use : Use
            The names under which the release is to be entered.

        Raises
        ------
        InvalidInput
            If other reports to the same task are entered, or these under another population or plan.
        """
        own, entered = dict(self.batches), set[str]()
        for entry, known_as in ((each, word) for each in entries for word in each.task.split()):
            task, _, reports = known_as.partition(":")
            if task not in own or not reports:
                continue
            if reports != own[task]:
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
            entered.add(task)
        return bool(own) and entered == own.keys()

    def cover(self, least: float) -> tuple[float, float]:
        """Return mu and outside; outside is at least ``least`` and at least the delta at infinite epsilon.

        Parameters
        ----------
        least : float
            Smallest value of outside, in (0, 1).
        """
        uncovered = self.spending.worst.mass_at_infinity.upper
        outside = max(least, uncovered * (1.0 + 1e-9))
        if outside >= 1.0:
            return math.inf, 1.0
        mu = attempt(lambda: dominating_mu(self.spending.worst, outside), (OutOfRegime,))
        return (math.inf if isinstance(mu, Refused) else mu), outside

    def row(self, use: Use, run: str, cover: tuple[float, float]) -> tuple[Any, ...]:
        """Return the values of the ledger's columns `COLUMNS` except the first, the entry's number.

        Parameters
        ----------
        use : Use
            The names under which the release is entered.
        run : str
            Identifier of the run.
        cover : tuple of float
            mu and outside, from `cover`.
        """
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
    """Return the name unchanged, or raise InvalidInput, which names ``parameter``, if it is not a valid name."""
    if not isinstance(name, str) or not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
        raise InvalidInput(f"`{parameter}` must be a name of 1 to 200 printable characters; got {shown(name)}")
    return name
