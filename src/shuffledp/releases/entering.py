"""Into the ledger: what a run costs, whether the limit has room for it, and if not, what would fit."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput, ShuffleDPError
from shuffledp.guarantee import Guarantee
from shuffledp.ledger import EVERYBODY, MOST_LEVELS, TAKEN_AS_PEOPLE, Draft, Ledger, Spending, Use
from shuffledp.numerics.interval import FloatArray
from shuffledp.questions.question import Question
from shuffledp.questions.task import Task
from shuffledp.records.columns import Recode
from shuffledp.records.people import People

_STEPS = 5
"""Halvings of the interval in which the largest factor on all budgets lies."""


_LEAST = 0.01


@dataclass(frozen=True)
class Prepared:
    """A question that is certified and not yet asked.

    Parameters
    ----------
    question : Question
        What is asked.
    columns : tuple of str
        The columns with the records.
    recode : Recode
        What missing records, and those outside the domain, count as.
    task : Task
        All that is public beforehand.
    guarantee : Guarantee
        What the release will cost.
    mechanism : str
        The randomizer's name among the question's.
    again : callable
        Certifies the same question of other people, or with another mechanism.
    people : People
        Whom it is asked.
    unit : {"people", "rows"}
        What a row is taken for: with a person column it is known whose it is.
    """

    question: Question
    columns: tuple[str, ...]
    recode: Recode
    task: Task
    guarantee: Guarantee
    mechanism: str
    again: Callable[[People, str], Guarantee]
    people: People
    unit: Literal["people", "rows"]

    def draft(self, guarantee: Guarantee | None = None) -> Draft:
        """Return what the ledger enters.

        Parameters
        ----------
        guarantee : Guarantee, optional
            Another one, to see whether it would fit.
        """
        known = self.guarantee if guarantee is None else guarantee
        names = ", ".join(self.columns[:5]) + (", ..." if len(self.columns) > 5 else "")
        setting = known.setting
        taken = "" if self.unit == "people" else f" {self.unit}{TAKEN_AS_PEOPLE}"
        levels = f"{setting.budgets.levels} levels, {setting.seen}"
        words = f"{setting.randomizer_name}, n = {setting.budgets.n}{taken}, {levels}"
        title = f"{self.question.name} of {names}"
        return Draft(title, self.task.fingerprint().hex(), words, Spending.of(known))


def draft_of(groups: Sequence[Prepared], guarantees: Sequence[Guarantee] | None = None) -> Draft:
    """Return what the ledger enters of one question to one or several groups that share nobody.

    Nobody spends more than the group in which the question costs most, so that is what is entered, once.

    Parameters
    ----------
    groups : sequence of Prepared
        The question, for each group.
    guarantees : sequence of Guarantee, optional
        Other ones, to see whether they would fit.
    """
    known = [None] * len(groups) if guarantees is None else guarantees
    drafts = [each.draft(guarantee) for each, guarantee in zip(groups, known, strict=True)]
    if len(drafts) == 1:
        return drafts[0]
    task = hashlib.sha256("".join(draft.task for draft in drafts).encode()).hexdigest()
    words = f"{len(drafts)} public groups; the first: {drafts[0].setting}"
    return Draft(f"{drafts[0].question}, by group", task, words, Spending.apart([draft.spending for draft in drafts]))


@dataclass(frozen=True)
class Entering:
    """A ledger, and what releases are entered under.

    Parameters
    ----------
    ledger : Ledger
        Where to.
    use : Use
        Population, plan and title.
    """

    ledger: Ledger
    use: Use

    @staticmethod
    def into(
        ledger: Ledger | str | Path | None, population: str, fixed_in_advance: str | None, title: str
    ) -> Entering | None:
        """Open the ledger that a release names; None if it names none.

        Raises
        ------
        InvalidInput
            If it is no ledger, or a name is bad; if there is a plan's or a population's name and no ledger.
        """
        use = Use(population, fixed_in_advance, title)
        if ledger is None:
            if fixed_in_advance is not None:
                raise InvalidInput("`fixed_in_advance` is noted in a ledger; name one with `ledger`")
            if population != EVERYBODY:
                raise InvalidInput("`population` names people in a ledger; name one with `ledger`")
            return None
        return Entering(ledger if isinstance(ledger, Ledger) else Ledger(ledger), use)

    def check(self, prepared: Sequence[Sequence[Prepared]], drafts: Sequence[Draft]) -> None:
        """Raise InvalidInput unless the limit has room for a run; no record has been read.

        Parameters
        ----------
        prepared : sequence of sequence of Prepared
            The questions of the run, each for every group.
        drafts : sequence of Draft
            What will be entered, one a question.

        Raises
        ------
        InvalidInput
            If there is no room; the message says what would fit.
        """
        refusal = self.ledger.refusal(drafts, self.use)
        if refusal is None:
            return
        ways = list(self._ways(prepared))
        told = f"what would fit: {'; or '.join(ways)}" if ways else "not even a hundredth of the budgets would fit"
        raise InvalidInput(f"{refusal}; {told}")

    def enter(self, drafts: Sequence[Draft]) -> None:
        """Enter what `check` has admitted; see `Ledger.enter`."""
        self.ledger.enter(drafts, self.use)

    def _ways(self, prepared: Sequence[Sequence[Prepared]]) -> Iterator[str]:
        """Say, each tried out, which changes make the run fit."""

        def fits(change: Callable[[Budgets], Budgets] = lambda known: known, mechanism: str | None = None) -> bool:
            def again(each: Prepared) -> Guarantee:
                whom = replace(each.people, population=change(each.people.population))
                return each.again(whom, mechanism or each.mechanism)

            try:
                drafts = [draft_of(groups, [again(each) for each in groups]) for groups in prepared]
            except ShuffleDPError:
                return False
            return self.ledger.refusal(drafts, self.use) is None

        factor = _largest(lambda factor: fits(lambda known: _with(known, known.epsilons * factor)))
        if factor is not None:
            yield f"all budgets times {factor:.2g}"
        levels = sorted({float(e) for each in prepared[0] for e in each.people.population.epsilons})
        for top in levels[-2::-1] if len(levels) <= MOST_LEVELS else ():
            if fits(lambda known, top=top: _with(known, np.minimum(known.epsilons, top))):
                yield f"fewer levels, with budgets above {top:g} lowered to {top:g}"
                break
        if len(prepared) == 1:
            asked = prepared[0][0]
            others = (name for name in asked.question.mechanisms if name != asked.mechanism)
            found = next((name for name in others if fits(mechanism=name)), None)
            if found is not None:
                yield f"`mechanism = {found}`"
            return
        for count in range(len(prepared) - 1, 0, -1):
            if self.ledger.refusal([draft_of(each) for each in prepared[:count]], self.use) is None:
                yield f"the first {count} of the {len(prepared)} questions"
                break


def _with(known: Budgets, epsilons: FloatArray) -> Budgets:
    return Budgets(epsilons, known.counts, known.deltas)


def _largest(fits: Callable[[float], bool]) -> float | None:
    """Return a factor that fits, down to a hundredth, rounded down to two digits; None if there is none."""
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
