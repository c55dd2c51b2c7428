"""The flow of a run: count budgets, certify every guarantee, ask the ledger; only then read and randomize records."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shuffledp.accounting import certify
from shuffledp.errors import InvalidInput, shown
from shuffledp.guarantee import Guarantee
from shuffledp.ledger import Spending
from shuffledp.numerics.randomness import Randomness, secure_random
from shuffledp.progress import Progress, steps
from shuffledp.questions.question import Question
from shuffledp.questions.task import WEIGHTS, Task, Weights
from shuffledp.randomizers.checks import check_choice
from shuffledp.records.columns import Recode
from shuffledp.records.groups import Groups
from shuffledp.records.owners import RowsPerPerson, checked_rule
from shuffledp.records.people import People, RowBudgets
from shuffledp.records.sources import open_source
from shuffledp.releases.engine import Engine, OneMachine, Part
from shuffledp.releases.entering import Entering, Prepared, draft_of
from shuffledp.releases.release import Release, release_type
from shuffledp.releases.target import Compose, budget_within, checked_target, with_budget
from shuffledp.setting import SEEN_MEANING, Seen, Setting
from shuffledp.tables import BATCH, TableOptions
from shuffledp.tables.table import explained

# What is settled before a record is read: budgets, randomizer, view, guarantee.


def certified(
    question: Question,
    people: People,
    mechanism: str,
    seen: Seen | None,
    delta: float,
    weights: Weights,
    *,
    any_delta: bool,
    progress: Progress | None = None,
) -> tuple[Guarantee, Task]:
    """Choose the randomizer for the population and certify its shuffled reports; no record has been read.

    Parameters
    ----------
    question : Question
        What is asked.
    people : People
        Who takes part.
    mechanism, seen, delta, weights, any_delta
        As for `release`.
    progress : callable, optional
        Called with the share of the certificate that is computed, from 0 to 1.

    Raises
    ------
    InvalidInput
        If the question cannot be asked that way.
    """
    population = people.population
    if population.epsilons[-1] == 0.0:
        raise InvalidInput("every epsilon0 is 0, so no report carries information; give some users a budget above 0")
    if not any_delta and delta * people.n >= 1.0:
        raise InvalidInput(
            f"`delta` must be below 1/n = {1.0 / people.n:.3g}; got {delta}: such a guarantee lets one person's "
            "record be published; choose a delta well below 1/n, or say `any_delta`"
        )
    view = settled_seen(seen, population.levels, question.views, question.views_of(mechanism))
    randomizer = question.randomizer(mechanism, population, view)
    setting = Setting(population, randomizer, seen=view, neighboring="replace-one", group_size=people.group_size)
    return certify(setting, delta, progress=progress), Task(randomizer, population, view, weights)


def settled_seen(
    seen: Seen | None, levels: int, known: tuple[Seen, ...], possible: tuple[Seen, ...] | None = None
) -> Seen:
    """Validate `seen`; None is accepted when there is a single budget level.

    Parameters
    ----------
    seen : str or None
        What the caller said.
    levels : int
        How many different budgets there are.
    known : tuple of str
        What the question takes.
    possible : tuple of str, optional
        Those of them that its mechanism takes, for the message.
    """
    if seen is None:
        if levels > 1:
            ways = [f"{name} ({SEEN_MEANING[name]})" for name in possible or known]
            raise InvalidInput(
                f"there are {levels} different budgets, so `seen` is needed; choose one of "
                f"{', '.join(ways[:-1])} or {ways[-1]}"
            )
        return "reports"
    check_choice("seen", seen, known)
    return seen


def row_budgets(
    budgets: float | str | RowBudgets | None,
    consent: Mapping[str, float] | None = None,
    missing: float | None = None,
    target: float | None = None,
) -> RowBudgets:
    """Return the long form of where budgets come from; of a target, for which a budget is found later, any one.

    Raises
    ------
    InvalidInput
        If the long form is given together with `consent` or `missing`, which belong inside it; if there are both
        budgets and a target, or neither.
    """
    if (budgets is None) == (target is None):
        raise InvalidInput(
            "say either the local budgets (`epsilon0`), or the central epsilon (`target_epsilon`) for which the "
            f"largest one is found; got {'neither' if budgets is None else 'both'}"
        )
    if budgets is None:
        if consent is not None or missing is not None:
            raise InvalidInput(
                "`target_epsilon` finds one budget for everybody, so `consent` and `missing_budget` have no column; "
                "leave them out"
            )
        return RowBudgets(1.0)
    if not isinstance(budgets, RowBudgets):
        return RowBudgets(budgets, consent, missing=missing)
    if consent is not None or missing is not None:
        raise InvalidInput("consent and missing_budget belong inside RowBudgets; give them there")
    return budgets


def checked_random(random: Randomness | None) -> Randomness:
    """Return the source of noise, secure by default; anything but our own sources is refused.

    Raises
    ------
    InvalidInput
        If it is no `Randomness`.
    """
    if random is None:
        return secure_random()
    if not isinstance(random, Randomness):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"random must come from secure_random() or simulation_random(seed); got {shown(random)}")
    return random


def columns_of(question: Question, value: str | int | Sequence[str | int]) -> tuple[str, ...]:
    """Check the columns of the records: one, or one for each coordinate of a vector."""
    names = (str(value),) if isinstance(value, str | int) else tuple(map(str, value))  # frames number columns
    if len(names) not in (1, question.columns):
        raise InvalidInput(
            f"value must name {question.columns} column{'s' * (question.columns > 1)} for a {question.name}; "
            f"got {len(names)}: {', '.join(map(str, names[:5]))}"
        )
    if len(set(names)) < len(names):
        raise InvalidInput(f"value names a column twice: {', '.join(names)}")
    return names


@dataclass(frozen=True)
class Ask:
    """A question, and the columns it is asked of.

    Parameters
    ----------
    question : Question
        What is asked.
    value : str or sequence of str
        The column with the records; one column for each coordinate of a vector.
    mechanism : str, optional
        One of ``question.mechanisms``; default: the first of them.
    missing_as, other, clip
        As for `release`.

    Raises
    ------
    InvalidInput
        If they do not fit each other.

    Examples
    --------
    >>> from shuffledp.questions.mean import Mean
    >>> Ask(Mean(0, 100), "hours").mechanism
    'one-bit'
    """

    question: Question
    value: str | Sequence[str]
    mechanism: str | None = None
    missing_as: Hashable | None = None
    other: Hashable | None = None
    clip: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.question, Question):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(
                f"question must be one of the questions, such as Mean(0, 100); got {shown(self.question)}"
            )
        name = self.question.mechanisms[0] if self.mechanism is None else self.mechanism
        check_choice("mechanism", name, self.question.mechanisms)
        object.__setattr__(self, "mechanism", name)
        self.recode  # noqa: B018 - checked here, before anything is read

    @property
    def recode(self) -> Recode:
        """What missing records, and those outside the domain, count as."""
        return self.question.settled(Recode(self.missing_as, self.other, self.clip))


_COUNTING = 0.2
"""The share of the work that the first pass is taken for: before it nothing is known of the rest."""


_CERTIFICATE, _LEVEL = 1e6, 20.0
"""What a certificate costs, and each different budget in it: in rows read and randomized, about."""


@dataclass(frozen=True)
class Run:
    """How questions are asked of one population: the same people, budgets and view for all of them.

    Parameters
    ----------
    who : RowBudgets
        Where budgets come from.
    seen, delta, person, rows_per_person, any_delta, weights, random, rows, table_options, progress
        As for `release`.
    entering : Entering, optional
        The ledger, and what the releases are entered under.
    target_epsilon : float, optional
        The central epsilon for which one local budget is found, see `shuffledp.releases.target`; `who` is any one then.
    """

    who: RowBudgets
    seen: Seen | None
    delta: float
    person: str | None = None
    rows_per_person: RowsPerPerson = "refuse"
    any_delta: bool = False
    weights: Weights = "population"
    random: Randomness | None = None
    rows: int = BATCH
    table_options: TableOptions | None = None
    progress: Progress | None = None
    entering: Entering | None = None
    target_epsilon: float | None = None

    def ask(
        self,
        asked: Sequence[Ask],
        data: Any,
        first: Callable[[Sequence[Spending]], None] | None = None,
        together: Compose | None = None,
    ) -> list[Release]:
        """Ask questions of the same people in one pass over their records.

        Parameters
        ----------
        asked : sequence of Ask
            The questions, at least one.
        data
            As for `release`.
        first : callable, optional
            Called with what each question costs, before a record is read; what it raises ends the run.
        together : callable, optional
            Tells what guarantees of the same people cost together: of several questions within one target.

        Raises
        ------
        InvalidInput
            As `release`.
        """
        random = self._checked_random()
        with explained(data, self.table_options):
            engine = self._engine(data)

            def count(who: RowBudgets) -> list[People]:
                return [engine.people(who, self.person, self.rows_per_person, random, self._counting())]

            (people,) = self._within_target(asked, count, together)
            return [found for (found,) in self._asked(asked, engine, [people], random, first)]

    def ask_groups(
        self, ask: Ask, data: Any, groups: Groups, check: Callable[[Sequence[int]], object] | None = None
    ) -> list[Release]:
        """Ask one question of each group, in one pass over all records; groups share nobody.

        Parameters
        ----------
        ask : Ask
            The question.
        data
            As for `release`.
        groups : Groups
            The groups.
        check : callable, optional
            Called with each group's people before anything is entered or drawn: what it raises ends the run.

        Raises
        ------
        InvalidInput
            As `release`, for any of the groups.
        """
        random = self._checked_random()
        with explained(data, self.table_options):
            engine = self._engine(data)

            def count(who: RowBudgets) -> list[People]:
                found = engine.groups(who, self.person, self.rows_per_person, random, groups, self._counting())
                if check is not None:
                    check([each.n for each in found])
                return found

            people = self._within_target([ask], count, None)
            return list(self._asked([ask], engine, people, random, None)[0])

    def _within_target(
        self, asked: Sequence[Ask], count: Callable[[RowBudgets], list[People]], together: Compose | None
    ) -> list[People]:
        """Count the people, each with her own budget, or with the largest one that a target allows."""
        groups = count(self.who)
        if self.target_epsilon is None:
            return groups

        def certify_one(at: int, people: People) -> Guarantee:
            return self._certified(asked[at], people, None)[0]

        budget = budget_within(checked_target(self.target_epsilon), len(asked), groups, certify_one, together)
        if self.person is None:
            return [with_budget(people, budget) for people in groups]
        again = count(RowBudgets(budget))  # what tells tables apart is made of persons and their budgets
        if [people.population.n for people in again] != [people.population.n for people in groups]:
            raise InvalidInput("the table has changed since its people were counted; leave it until the command ends")
        return again

    def _checked_random(self) -> Randomness:
        check_choice("weights", self.weights, WEIGHTS)
        random = checked_random(self.random)
        if self.person is None and checked_rule(self.rows_per_person) != "refuse":
            raise InvalidInput(
                f"`rows_per_person = {self.rows_per_person}` needs the column that tells whose row it is; "
                "name it with `person`"
            )
        if self.entering is not None and not random.private:
            raise InvalidInput("a simulation is not private, so no `ledger` takes it; leave one of the two out")
        return random

    def _engine(self, data: Any) -> Engine:
        if not isinstance(data, Engine):
            return OneMachine(open_source(data, self.rows, self.table_options))
        if self.table_options is not None:
            self.table_options.refuse_for_text("this is a table of Spark", ("decimal", "thousands", "missing_values"))
        return data

    def _asked(
        self,
        asked: Sequence[Ask],
        engine: Engine,
        groups: Sequence[People],
        random: Randomness,
        first: Callable[[Sequence[Spending]], None] | None,
    ) -> list[tuple[Release, ...]]:
        """Ask each question of each group: certified, admitted, and only then read."""
        *certifying, reading = self._afterwards(asked, groups)
        told = iter(certifying)
        prepared = [tuple(self._prepared(ask, people, next(told)) for people in groups) for ask in asked]
        wanted = first is not None or self.entering is not None
        drafts = [draft_of(each) for each in prepared] if wanted else []
        if first is not None:
            first([draft.spending for draft in drafts])
        if self.entering is not None:
            self.entering.check(prepared, drafts)
        every = [(ask, each) for ask, several in zip(asked, prepared, strict=True) for each in several]
        parts = [Part(each.question, each.columns, each.recode, each.task, each.people) for _, each in every]
        tallies = engine.tallies(parts, random, reading)
        found = [
            self._released(ask, each, tally, private=random.private)
            for (ask, each), tally in zip(every, tallies, strict=True)
        ]
        if self.entering is not None:
            self.entering.enter(drafts)  # nobody has seen an answer yet
        step = len(groups)
        return [tuple(found[at : at + step]) for at in range(0, len(found), step)]

    def _counting(self) -> Progress | None:
        """Tell how much of the first pass is done."""
        return steps(self.progress, [_COUNTING, 1.0 - _COUNTING])[0]

    def _afterwards(self, asked: Sequence[Ask], groups: Sequence[People]) -> list[Progress | None]:
        """Tell how much of each certificate is done, question by question, and of the second pass."""
        certificates = [_CERTIFICATE + _LEVEL * people.population.levels for _ in asked for people in groups]
        return steps(self.progress, [*certificates, float(len(asked) * groups[0].rows)], _COUNTING)

    def _prepared(self, ask: Ask, people: People, progress: Progress | None) -> Prepared:
        """Certify one question, and say what will be done with it."""
        assert ask.mechanism is not None
        guarantee, task = self._certified(ask, people, progress)

        def again(others: People, mechanism: str) -> Guarantee:
            return certified(
                ask.question, others, mechanism, self.seen, self.delta, self.weights, any_delta=self.any_delta
            )[0]

        columns, unit = columns_of(ask.question, ask.value), "rows" if self.person is None else "people"
        return Prepared(ask.question, columns, ask.recode, task, guarantee, ask.mechanism, again, people, unit)

    def _certified(self, ask: Ask, people: People, progress: Progress | None) -> tuple[Guarantee, Task]:
        assert ask.mechanism is not None
        way = ask.mechanism, self.seen, self.delta, self.weights
        return certified(ask.question, people, *way, any_delta=self.any_delta, progress=progress)

    def _released(self, ask: Ask, prepared: Prepared, tally: Any, *, private: bool) -> Release:
        task, guarantee, people = prepared.task, prepared.guarantee, prepared.people
        return release_type(ask.question)(
            question=ask.question,
            analysis=tally.estimate(),
            guarantee=guarantee,
            n=people.n,
            rows=people.population.n,
            mechanism=guarantee.setting.randomizer_name,
            private=private,
            weights=self.weights if task.seen == "levels" else None,
            unit=prepared.unit,
            clipped=ask.clip,
            fingerprint=task.fingerprint().hex(),
        )
