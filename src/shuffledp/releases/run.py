"""The flow of a run: count budgets, certify every guarantee, ask the ledger; only then read and randomize records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shuffledp.accounting import certify
from shuffledp.errors import InvalidInput
from shuffledp.guarantee import Guarantee
from shuffledp.numerics.randomness import Randomness
from shuffledp.progress import Progress, steps
from shuffledp.questions.question import Question
from shuffledp.questions.task import Task, Weights
from shuffledp.randomizers.checks import check_choice
from shuffledp.records.people import Groups, Headcount, RowBudgets
from shuffledp.records.sources import open_source
from shuffledp.releases.engine import Engine, OneMachine, Part, Prepared
from shuffledp.releases.release import Release, release_type, targets
from shuffledp.releases.terms import Ask, People, Terms
from shuffledp.setting import SEEN_MEANING, Seen, Setting
from shuffledp.tables import BATCH
from shuffledp.tables.table import explained

if TYPE_CHECKING:
    from shuffledp.releases.entering import Entering

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
    """Choose the randomizer for the population and certify its shuffled reports; no record has been read.

    Parameters
    ----------
    question : Question
        What is asked.
    people : Headcount
        Who takes part.
    mechanism, seen, delta, weights, any_delta
        As in `Ask` and `Terms`.
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


def row_budgets(people: People, target: float | None = None) -> RowBudgets:
    """Return the long form of where budgets come from; of a target, for which a budget is found later, any one.

    Raises
    ------
    InvalidInput
        If the long form is given together with `consent` or `missing_budget`, which belong inside it; if there are
        both budgets and a target, or neither.
    """
    budgets, consent, missing = people.budgets, people.consent, people.missing_budget
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


def entering_of(terms: Terms) -> Entering | None:
    """Open the ledger that the terms name; None if they name none, nor anything that only a ledger takes.

    Raises
    ------
    InvalidInput
        As `Entering.into`; if a simulation is to be entered.
    """
    if terms.ledger is None and terms.fixed_in_advance is None and terms.population == "everybody":
        return None
    from shuffledp.releases.entering import Entering

    entering = Entering.into(terms.ledger, terms.population, terms.fixed_in_advance, terms.title)
    if entering is not None and terms.random is not None and not terms.random.private:
        raise InvalidInput("a simulation is not private, so no `ledger` takes it; leave one of the two out")
    return entering


_COUNTING = 0.2
"""The share of the work that the first pass is taken for: before it nothing is known of the rest."""


_CERTIFICATE, _LEVEL = 1e6, 20.0
"""What a certificate costs, and each different budget in it: in rows read and randomized, about."""


@dataclass(frozen=True)
class Run:
    """How questions are asked: whom, on which terms, and where the releases are entered.

    Parameters
    ----------
    people : People
        Whom.
    terms : Terms
        On which terms.
    who : RowBudgets
        Where budgets come from, see `row_budgets`.
    entering : Entering, optional
        The ledger, and what the releases are entered under.
    """

    people: People
    terms: Terms
    who: RowBudgets
    entering: Entering | None

    def ask(
        self,
        asked: Sequence[Ask],
        first: Callable[[Sequence[Sequence[Guarantee]]], object] | None = None,
        together: Callable[[Sequence[Guarantee]], float] | None = None,
    ) -> list[tuple[Release, ...]]:
        """Ask questions of the same people, or of each public group, in one pass over their records.

        Parameters
        ----------
        asked : sequence of Ask
            The questions, at least one.
        first : callable, optional
            Called with the guarantees, question by question and in each group by group, before a record is read; what
            it raises ends the run.
        together : callable, optional
            Tells what guarantees of the same people cost together: of several questions within one target.

        Returns
        -------
        list of tuple of Release
            For each question the releases, one a group; one where there are no groups.

        Raises
        ------
        InvalidInput
            As `release`.
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
                found = engine.groups(who, *rule, groups, counting)
                if terms.margins is not None:
                    for ask in asked:
                        targets(terms.margins, ask.question, groups, [each.n for each in found])
                return found

            heads = count(self.who) if terms.target_epsilon is None else self._within_target(asked, count, together)
            return self._asked(asked, engine, heads, random, first)

    def _within_target(
        self,
        asked: Sequence[Ask],
        count: Callable[[RowBudgets], list[Headcount]],
        together: Callable[[Sequence[Guarantee]], float] | None,
    ) -> list[Headcount]:
        """Count the people, each with the largest budget that the target allows."""
        from shuffledp.releases.target import budget_within, with_budget

        groups, target = count(self.who), self.terms.target_epsilon
        assert target is not None

        def certify_one(at: int, people: Headcount) -> Guarantee:
            return self._certified(asked[at], people, None)[0]

        budget = budget_within(target, len(asked), groups, certify_one, together)
        if self.people.person is None:
            return [with_budget(people, budget) for people in groups]
        again = count(RowBudgets(budget))  # what tells tables apart is made of persons and their budgets
        if [people.population.n for people in again] != [people.population.n for people in groups]:
            raise InvalidInput("the table has changed since its people were counted; leave it until the command ends")
        return again

    def _engine(self) -> Engine:
        data, options = self.people.data, self.people.table_options
        if not isinstance(data, Engine):
            return OneMachine(open_source(data, BATCH if self.terms.rows is None else self.terms.rows, options))
        if options is not None:
            options.refuse_for_text("this is a table of Spark", ("decimal", "thousands", "missing_values"))
        return data

    def _asked(
        self,
        asked: Sequence[Ask],
        engine: Engine,
        groups: Sequence[Headcount],
        random: Randomness,
        first: Callable[[Sequence[Sequence[Guarantee]]], object] | None,
    ) -> list[tuple[Release, ...]]:
        """Ask each question of each group: certified, admitted, and only then read."""
        certificates = [_CERTIFICATE + _LEVEL * people.population.levels for _ in asked for people in groups]
        *certifying, reading = steps(
            self.terms.progress, [*certificates, float(len(asked) * groups[0].rows)], _COUNTING
        )
        told = iter(certifying)
        prepared = [tuple(self._prepared(ask, people, next(told)) for people in groups) for ask in asked]
        if first is not None:
            first([[each.guarantee for each in several] for several in prepared])
        admitted = None if self.entering is None else self.entering.admit(prepared)
        every = [(ask, each) for ask, several in zip(asked, prepared, strict=True) for each in several]
        tallies = engine.tallies([each.part for _, each in every], random, reading)
        found = [
            self._released(ask, each, tally, private=random.private)
            for (ask, each), tally in zip(every, tallies, strict=True)
        ]
        if self.entering is not None and admitted is not None:
            self.entering.enter(admitted)  # nobody has seen an answer yet
        step = len(groups)
        return [tuple(found[at : at + step]) for at in range(0, len(found), step)]

    def _prepared(self, ask: Ask, people: Headcount, progress: Progress | None) -> Prepared:
        """Certify one question, and say what will be done with it."""
        assert ask.mechanism is not None
        guarantee, task = self._certified(ask, people, progress)

        def again(others: Headcount, mechanism: str) -> Guarantee:
            return self._certified(ask, others, None, mechanism)[0]

        part = Part(ask.question, ask.columns, ask.recode, task, people)
        return Prepared(part, guarantee, ask.mechanism, again, "rows" if self.people.person is None else "people")

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
            analysis=tally.estimate(),
            guarantee=guarantee,
            n=people.n,
            rows=people.population.n,
            mechanism=guarantee.setting.randomizer_name,
            private=private,
            weights=self.terms.weights if task.seen == "levels" else None,
            unit=prepared.unit,
            clipped=ask.clip,
            fingerprint=task.fingerprint().hex(),
        )
