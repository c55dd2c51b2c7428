"""The verb `release`: one question, several in one run, or each of public groups, asked of people's records.

The order is part of the promise: budgets are counted, the guarantee is certified, a ledger is asked; only then records
are read and randomized. What leaves is a `Release`: an estimate together with its guarantee.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from shuffledp.accounting import certify
from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput, ShuffleDPError, choice, shown
from shuffledp.in_words import conditions
from shuffledp.ledger import EVERYBODY, MOST_LEVELS, TAKEN_AS_PEOPLE, Ledger, NewEntry, Spending, Use
from shuffledp.numerics.floats import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.progress import Progress, steps
from shuffledp.questions.question import Question, Task, Weights
from shuffledp.records.people import Groups, Headcount, RowBudgets
from shuffledp.records.sources import Where, open_source
from shuffledp.releases.engine import Engine, OneMachine, Part, Prepared
from shuffledp.releases.release import GroupedRelease, JointByGroup, JointRelease, Release, release_type
from shuffledp.releases.terms import Ask, People, Terms
from shuffledp.setting import SEEN_MEANING, Guarantee, Seen, Setting
from shuffledp.tables import BATCH
from shuffledp.tables.table import explained

if TYPE_CHECKING:
    pass
    from shuffledp.ledger import LevelTotal

_STEPS = 5
"""Number of bisection steps for the largest factor on all budgets that fits."""


_LEAST = 0.01


def drafted(prepared: Prepared, guarantee: Guarantee | None = None) -> NewEntry:
    """Return the ledger's draft of an entry for a question.

    Parameters
    ----------
    prepared : Prepared
        The question.
    guarantee : Guarantee, optional
        A guarantee to use instead of the question's own, to test whether it would fit.
    """
    part, certified = prepared.part, prepared.guarantee if guarantee is None else guarantee
    names = ", ".join(part.columns[:5]) + (", ..." if len(part.columns) > 5 else "")
    setting = certified.setting
    taken = "" if prepared.unit == "people" else f" {prepared.unit}{TAKEN_AS_PEOPLE}"
    levels = f"{setting.budgets.levels} levels, {setting.seen}"
    words = f"{setting.randomizer_name}, n = {setting.budgets.n}{taken}, {levels}"
    condition = f" where {conditions(prepared.where)}" if prepared.where else ""
    title = f"{part.question.name} of {names}{condition}"
    return NewEntry(title, part.task.fingerprint().hex(), words, Spending.of(certified))


def draft_of(groups: Sequence[Prepared], guarantees: Sequence[Guarantee] | None = None) -> NewEntry:
    """Return the ledger's draft of an entry for one question to one or several disjoint groups.

    Nobody spends more than the group in which the question costs most, so that cost is entered, once.

    Parameters
    ----------
    groups : sequence of Prepared
        The question, for each group.
    guarantees : sequence of Guarantee, optional
        Guarantees to use instead of the questions' own, to test whether they would fit.
    """
    replacements = [None] * len(groups) if guarantees is None else guarantees
    drafts = [drafted(each, guarantee) for each, guarantee in zip(groups, replacements, strict=True)]
    if len(drafts) == 1:
        return drafts[0]
    return NewEntry.apart(drafts, f"{drafts[0].question}, by group")


@dataclass(frozen=True)
class Entering:
    """A ledger, and the names under which releases are entered.

    Parameters
    ----------
    ledger : Ledger
        The ledger.
    use : Use
        Population, plan and title of the entries.
    """

    ledger: Ledger
    use: Use

    @staticmethod
    def into(
        ledger: Ledger | str | Path | None, population: str, fixed_in_advance: str | None, title: str
    ) -> Entering | None:
        """Return the ledger that a release names, opened; None if it names none. Parameters are those of `Terms`.

        Raises
        ------
        InvalidInput
            If the file is no ledger, or a name is not allowed; if a plan or a population is named without a ledger.
        """
        use = Use(population, fixed_in_advance, title)
        if ledger is None:
            if fixed_in_advance is not None:
                raise InvalidInput("`fixed_in_advance` is noted in a ledger; name one with `ledger`")
            if population != EVERYBODY:
                raise InvalidInput("`population` names people in a ledger; name one with `ledger`")
            return None
        return Entering(ledger if isinstance(ledger, Ledger) else Ledger(ledger), use)

    def admit(self, prepared: Sequence[Sequence[Prepared]]) -> list[NewEntry]:
        """Return the drafts of entries for a run, one for each question, before any record is read.

        Parameters
        ----------
        prepared : sequence of sequence of Prepared
            The questions of the run, each for every group.

        Raises
        ------
        InvalidInput
            If the ledger's limit has no room; the message says what would fit.
        """
        drafts = [draft_of(each) for each in prepared]
        refusal = self.ledger.refusal(drafts, self.use)
        if refusal is None:
            return drafts
        ways = list(self._ways(prepared))
        advice = f"what would fit: {'; or '.join(ways)}" if ways else "not even a hundredth of the budgets would fit"
        raise InvalidInput(f"{refusal}; {advice}")

    def enter(self, drafts: Sequence[NewEntry]) -> None:
        """Enter the drafts that `admit` returned; see `Ledger.enter`."""
        self.ledger.enter(drafts, self.use)

    def _ways(self, prepared: Sequence[Sequence[Prepared]]) -> Iterator[str]:
        """Yield descriptions of changes that make the run fit, each tested by certifying the changed run."""

        def fits(change: Callable[[Budgets], Budgets] = lambda budgets: budgets, mechanism: str | None = None) -> bool:
            def again(each: Prepared) -> Guarantee:
                whom = replace(each.part.people, population=change(each.part.people.population))
                return each.again(whom, mechanism or each.mechanism)

            try:
                drafts = [draft_of(groups, [again(each) for each in groups]) for groups in prepared]
            except ShuffleDPError:
                return False
            return self.ledger.refusal(drafts, self.use) is None

        factor = _largest(lambda factor: fits(lambda budgets: _with(budgets, budgets.epsilons * factor)))
        if factor is not None:
            yield f"all budgets times {factor:.2g}"
        levels = sorted({float(e) for each in prepared[0] for e in each.part.people.population.epsilons})
        for top in levels[-2::-1] if len(levels) <= MOST_LEVELS else ():
            if fits(lambda budgets, top=top: _with(budgets, np.minimum(budgets.epsilons, top))):
                yield f"fewer levels, with budgets above {top:g} lowered to {top:g}"
                break
        if len(prepared) == 1:
            single = prepared[0][0]
            others = (name for name in single.part.question.mechanisms if name != single.mechanism)
            alternative = next((name for name in others if fits(mechanism=name)), None)
            if alternative is not None:
                yield f"`mechanism = {alternative}`"
            return
        for count in range(len(prepared) - 1, 0, -1):
            if self.ledger.refusal([draft_of(each) for each in prepared[:count]], self.use) is None:
                yield f"the first {count} of the {len(prepared)} questions"
                break


def _with(budgets: Budgets, epsilons: FloatArray) -> Budgets:
    return Budgets(epsilons, budgets.counts, budgets.deltas)


def _largest(fits: Callable[[float], bool]) -> float | None:
    """Return the largest factor found that fits, to a hundredth, rounded down to two digits; None if none fits."""
    low, high = _LEAST, 1.0
    if not fits(low):
        return None
    for _ in range(_STEPS):
        middle = (low * high) ** 0.5
        rounded = float(f"{middle * 0.995:.2g}")
        if rounded <= low:
            break
        if fits(rounded):
            low = rounded
        else:
            high = middle
    return low


# What is settled before a record is read: budgets, randomizer, view, guarantee.


def certified(
    question: Question,
    people: Headcount,
    mechanism: str,
    seen: Seen | None,
    delta: float,
    weights: Weights,
    *,
    any_delta: bool,
    progress: Progress | None = None,
) -> tuple[Guarantee, Task]:
    """Choose the randomizer for the population and certify its shuffled reports, before any record is read.

    Parameters
    ----------
    question : Question
        The question.
    people : Headcount
        The people who take part.
    mechanism, seen, delta, weights, any_delta
        As in `Ask` and `Terms`.
    progress : callable, optional
        Called with the share of the certificate that is computed, from 0 to 1.

    Returns
    -------
    guarantee : Guarantee
        The certified guarantee.
    task : Task
        The task of the tally.

    Raises
    ------
    InvalidInput
        If the question does not allow such a release.
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
    seen: Seen | None, levels: int, views: tuple[Seen, ...], possible: tuple[Seen, ...] | None = None
) -> Seen:
    """Return a validated `seen`; None is replaced by "reports" if there is a single budget level.

    Parameters
    ----------
    seen : str or None
        What the caller gave.
    levels : int
        Number of different budgets.
    views : tuple of str
        The views of the question.
    possible : tuple of str, optional
        The views of its mechanism, for the message.
    """
    if seen is None and len(views) == 1:
        return views[0]  # there is nothing to choose
    if seen is None:
        if levels > 1:
            ways = [f"{name} ({SEEN_MEANING[name]})" for name in possible or views]
            raise InvalidInput(
                f"there are {levels} different budgets, so `seen` is needed; choose one of "
                f"{', '.join(ways[:-1])} or {ways[-1]}"
            )
        return "reports"
    if len(views) == 1 and seen != views[0]:
        raise InvalidInput(f"`seen` can only be {views[0]} for this question; got {shown(seen)}; leave it out")
    choice(seen, "seen", views)
    return seen


def row_budgets(people: People, target: float | None = None) -> RowBudgets:
    """Return where budgets come from, in the long form; with a target, whose budget is found later, a placeholder.

    Raises
    ------
    InvalidInput
        If the long form is given together with `consent` or `missing_budget`, which belong inside it; if there are
        both one budget for all and a target, or neither.
    """
    budgets, consent, missing = people.budgets, people.consent, people.missing_budget
    column = isinstance(budgets.epsilon0 if isinstance(budgets, RowBudgets) else budgets, str)
    if (budgets is None) == (target is None) and not column:
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


def entering_of(terms: Terms) -> Entering | None:
    """Return the ledger that the terms name, opened; None if they name neither a ledger nor anything that needs one.

    Raises
    ------
    InvalidInput
        As for `Entering.into`; if a simulation is to be entered.
    """
    if terms.ledger is None and terms.fixed_in_advance is None and terms.population == "everybody":
        return None

    entering = Entering.into(terms.ledger, terms.population, terms.fixed_in_advance, terms.title)
    if entering is not None and terms.random is not None and not terms.random.private:
        raise InvalidInput("a simulation is not private, so no `ledger` takes it; leave one of the two out")
    return entering


_COUNTING = 0.2
"""Share of the progress assigned to the first pass, before which the rest of the work is unknown."""


_CERTIFICATE, _LEVEL = 1e6, 20.0
"""Work of a certificate, and of each different budget in it, in rows read and randomized, roughly."""


@dataclass(frozen=True)
class Run:
    """The conditions under which questions are asked: the people, the terms, and the ledger.

    Parameters
    ----------
    people : People
        The people who are asked.
    terms : Terms
        Delta, view, randomness and ledger.
    who : RowBudgets
        Where budgets come from, see `row_budgets`.
    entering : Entering, optional
        The ledger, and the names under which the releases are entered.
    """

    people: People
    terms: Terms
    who: RowBudgets
    entering: Entering | None

    def ask(
        self,
        asks: Sequence[Ask],
        first: Callable[[Sequence[Sequence[Guarantee]]], object] | None = None,
        together: Callable[[Sequence[Guarantee]], float] | None = None,
    ) -> list[tuple[Release, ...]]:
        """Ask questions of the same people, or of each public group, in one pass over their records.

        Parameters
        ----------
        asks : sequence of Ask
            The questions, at least one.
        first : callable, optional
            Called with the guarantees, by question and then by group, before a record is read; an exception that it
            raises ends the run.
        together : callable, optional
            Function of several guarantees of the same people that returns their joint epsilon; needed for several
            questions with a target.

        Returns
        -------
        list of tuple of Release
            For each question the releases, one for each group; a single one where there are no groups.

        Raises
        ------
        InvalidInput
            As for `release`.
        """
        people, terms, random = self.people, self.terms, self.terms.random
        assert random is not None
        groups = None if people.by is None else Groups(people.by, tuple(people.groups or ()))
        with explained(people.data, people.table_options):
            engine = self._engine()

            def count(who: RowBudgets) -> list[Headcount]:
                rule = *people.whose, random
                counting = steps(terms.progress, [_COUNTING, 1.0 - _COUNTING])[0]
                if groups is None:
                    return [engine.people(who, *rule, counting)]
                headcounts = engine.groups(who, *rule, groups, counting)
                if terms.margins is not None:
                    from shuffledp.releases.margins import group_shares

                    for ask in asks:
                        group_shares(terms.margins, ask.question, groups, [each.n for each in headcounts])
                return headcounts

            heads = count(self.who) if terms.target_epsilon is None else self._within_target(asks, count, together)
            return self._releases(asks, engine, heads, random, first)

    def _within_target(
        self,
        asks: Sequence[Ask],
        count: Callable[[RowBudgets], list[Headcount]],
        together: Callable[[Sequence[Guarantee]], float] | None,
    ) -> list[Headcount]:
        """Count the people, and return them with the largest budgets that the target allows, for each group."""
        from shuffledp.releases.target import size_within, sized

        groups, target = count(self.who), self.terms.target_epsilon
        assert target is not None

        def certify_one(at: int, people: Headcount) -> Guarantee:
            return self._certified(asks[at], people, None)[0]

        size = size_within(target, len(asks), groups, certify_one, together)
        scaled = [sized(people, size) for people in groups]
        if self.people.person is None:
            return scaled
        again = count(scaled[0].who)  # what tells tables apart is made of persons and their budgets
        if [people.population.n for people in again] != [people.population.n for people in groups]:
            raise InvalidInput("the table has changed since its people were counted; leave it until the command ends")
        return again

    def _engine(self) -> Engine:
        data, options = self.people.data, self.people.table_options
        engine: Engine
        if isinstance(data, Engine):
            engine = data
            if options is not None:
                options.refuse_for_text("this is a table of Spark", ("decimal", "thousands", "missing_values"))
        else:
            engine = OneMachine(open_source(data, BATCH if self.terms.rows is None else self.terms.rows, options))
        where = tuple(Where(column, values) for column, values in self.people.selection.items())
        return engine.selected(where) if where else engine

    def _releases(
        self,
        asks: Sequence[Ask],
        engine: Engine,
        groups: Sequence[Headcount],
        random: Randomness,
        first: Callable[[Sequence[Sequence[Guarantee]]], object] | None,
    ) -> list[tuple[Release, ...]]:
        """Certify each question for each group, ask the ledger, read the records, and return the releases."""
        certificates = [_CERTIFICATE + _LEVEL * people.population.levels for _ in asks for people in groups]
        *certifying, reading = steps(self.terms.progress, [*certificates, float(len(asks) * groups[0].rows)], _COUNTING)
        reporters = iter(certifying)
        prepared = [tuple(self._prepared(ask, people, next(reporters)) for people in groups) for ask in asks]
        if first is not None:
            first([[each.guarantee for each in several] for several in prepared])
        admitted = None if self.entering is None else self.entering.admit(prepared)
        every = [(ask, each) for ask, several in zip(asks, prepared, strict=True) for each in several]
        tallies = engine.tallies([each.part for _, each in every], random, reading)
        releases = [
            self._released(ask, each, tally, private=random.private)
            for (ask, each), tally in zip(every, tallies, strict=True)
        ]
        if self.entering is not None and admitted is not None:
            self.entering.enter(admitted)  # nobody has seen an answer yet
        step = len(groups)
        return [tuple(releases[at : at + step]) for at in range(0, len(releases), step)]

    def _prepared(self, ask: Ask, people: Headcount, progress: Progress | None) -> Prepared:
        """Certify one question, and return it ready to be asked."""
        assert ask.mechanism is not None
        guarantee, task = self._certified(ask, people, progress)

        def again(others: Headcount, mechanism: str) -> Guarantee:
            return self._certified(ask, others, None, mechanism)[0]

        part = Part(ask.question, ask.columns, ask.recode, task, people)
        unit = "rows" if self.people.person is None else "people"
        return Prepared(part, guarantee, ask.mechanism, again, unit, self.people.selection)

    def _certified(
        self, ask: Ask, people: Headcount, progress: Progress | None, mechanism: str | None = None
    ) -> tuple[Guarantee, Task]:
        terms, name = self.terms, mechanism or ask.mechanism
        assert name is not None
        way = name, terms.seen, terms.delta, terms.weights
        return certified(ask.question, people, *way, any_delta=terms.any_delta, progress=progress)

    def _released(self, ask: Ask, prepared: Prepared, tally: Any, *, private: bool) -> Release:
        task, guarantee, people = prepared.part.task, prepared.guarantee, prepared.part.people
        return release_type(ask.question)(
            question=ask.question,
            analysis=ask.question.answer(tally.estimate(), task),
            guarantee=guarantee,
            n=people.n,
            rows=people.population.n,
            mechanism=guarantee.setting.randomizer_name,
            private=private,
            weights=self.terms.weights if task.seen == "levels" else None,
            unit=prepared.unit,
            clipped=ask.clip,
            fingerprint=task.fingerprint().hex(),
            where=prepared.where,
            lowered=people.who.factor,
        )


@overload
def release(questions: Ask, people: People, terms: Terms) -> Release | GroupedRelease: ...


@overload
def release(questions: Sequence[Ask], people: People, terms: Terms) -> JointRelease | JointByGroup: ...


def release(
    questions: Ask | Sequence[Ask], people: People, terms: Terms
) -> Release | GroupedRelease | JointRelease | JointByGroup:
    """Ask questions about people's records, and release private estimates with their certified guarantee.

    Parameters
    ----------
    questions : Ask or sequence of Ask
        One question; or several, at least one, each of which everybody answers with the whole local budget. `delta`,
        and a target, then also hold for all questions together.
    people : People
        The people who are asked. With `by` and `groups` each public group is shuffled by itself, so only its own
        members hide each other: small groups have weak guarantees. Which group a person is in is public, and not
        protected.
    terms : Terms
        Delta, view, randomness and ledger. With groups they hold for each: delta must be below 1/n of the smallest.

    Returns
    -------
    Release, GroupedRelease, JointRelease or JointByGroup
        For one question a `Release`, or with groups a `GroupedRelease`; for several questions a `JointRelease`, or with
        groups a `JointByGroup`.

    Raises
    ------
    InvalidInput
        If an argument is not allowed, for the first row (from 1) that cannot be used, or if the ledger has no room.

    Examples
    --------
    >>> from shuffledp.questions.frequency import Frequency
    >>> people = People({"vote": ["yes", "no"] * 500, "budget": [0.5, 2.0] * 500}, budgets="budget")
    >>> release(Ask(Frequency(["yes", "no"]), "vote"), people, Terms(seen="reports", delta=1e-6)).n
    1000
    """
    asks = [questions] if isinstance(questions, Ask) else list(questions)
    if not asks:
        raise InvalidInput("there is no question; ask at least one")
    for ask in asks:
        people.check_private(ask)
    entering = entering_of(terms)
    run = Run(people, terms, row_budgets(people, terms.target_epsilon), entering)
    if isinstance(questions, Ask):
        (by_group,) = run.ask(asks)
        return by_group[0] if people.by is None else _by_group(people, by_group)
    together: list[tuple[float, tuple[LevelTotal, ...]]] = []

    def compose(certified: Sequence[Sequence[Guarantee]]) -> None:
        together.extend(_composed(each, terms.delta) for each in zip(*certified, strict=True))

    several = run.ask(asks, compose, lambda guarantees: _worth(guarantees, terms.delta))
    joint = [
        JointRelease(releases, epsilon, terms.delta, levels)
        for releases, (epsilon, levels) in zip(zip(*several, strict=True), together, strict=True)
    ]
    if people.by is None:
        return joint[0]
    return JointByGroup(people.by, dict(zip(people.groups or (), joint, strict=True)))


def _by_group(people: People, releases: Sequence[Release]) -> GroupedRelease:
    assert people.by is not None
    return GroupedRelease(people.by, dict(zip(people.groups or (), releases, strict=True)))


def _worth(guarantees: Sequence[Guarantee], delta: float) -> float:
    """Return the joint epsilon (nats), at delta, of several answers about the same people."""
    from shuffledp.ledger import Spending, composed_epsilon

    return composed_epsilon([Spending.of(each).worst for each in guarantees], delta)


def _composed(guarantees: Sequence[Guarantee], delta: float) -> tuple[float, tuple[LevelTotal, ...]]:
    """Return the joint epsilon of all questions for everybody, and level by level.

    The people of a level are the same for all questions. Of one question they are what its own guarantee states: the
    curve that is kept of it for composing lies a little above.
    """
    from shuffledp.ledger import LevelTotal, Spending, composed_epsilon

    if len(guarantees) == 1 and len(guarantees[0].levels) == guarantees[0].levels_total:
        (only,) = guarantees
        return only.epsilon.upper, tuple(LevelTotal(level.epsilon0, level.epsilon.upper) for level in only.levels)
    costs = [Spending.of(each) for each in guarantees]
    levels = tuple(
        LevelTotal(level[0].epsilon0, composed_epsilon([each.profile for each in level], delta))
        for level in zip(*(cost.levels for cost in costs), strict=True)
    )
    together = composed_epsilon([cost.worst for cost in costs], delta)
    return together if len(costs) > 1 else guarantees[0].epsilon.upper, levels
