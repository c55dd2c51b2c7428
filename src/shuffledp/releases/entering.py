"""Into the ledger: what a run costs, whether the limit has room for it, and if not, what would fit."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput, ShuffleDPError
from shuffledp.guarantee import Guarantee
from shuffledp.ledger import EVERYBODY, MOST_LEVELS, TAKEN_AS_PEOPLE, Draft, Ledger, Spending, Use
from shuffledp.numerics.interval import FloatArray
from shuffledp.releases.engine import Prepared

_STEPS = 5
"""Halvings of the interval in which the largest factor on all budgets lies."""


_LEAST = 0.01


def drafted(prepared: Prepared, guarantee: Guarantee | None = None) -> Draft:
    """Return what the ledger enters of a question.

    Parameters
    ----------
    prepared : Prepared
        The question.
    guarantee : Guarantee, optional
        Another one, to see whether it would fit.
    """
    part, known = prepared.part, prepared.guarantee if guarantee is None else guarantee
    names = ", ".join(part.columns[:5]) + (", ..." if len(part.columns) > 5 else "")
    setting = known.setting
    taken = "" if prepared.unit == "people" else f" {prepared.unit}{TAKEN_AS_PEOPLE}"
    levels = f"{setting.budgets.levels} levels, {setting.seen}"
    words = f"{setting.randomizer_name}, n = {setting.budgets.n}{taken}, {levels}"
    title = f"{part.question.name} of {names}"
    return Draft(title, part.task.fingerprint().hex(), words, Spending.of(known))


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
    drafts = [drafted(each, guarantee) for each, guarantee in zip(groups, known, strict=True)]
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

    def admit(self, prepared: Sequence[Sequence[Prepared]]) -> list[Draft]:
        """Return what will be entered of a run, one draft a question; no record has been read.

        Parameters
        ----------
        prepared : sequence of sequence of Prepared
            The questions of the run, each for every group.

        Raises
        ------
        InvalidInput
            If the limit has no room; the message says what would fit.
        """
        drafts = [draft_of(each) for each in prepared]
        refusal = self.ledger.refusal(drafts, self.use)
        if refusal is None:
            return drafts
        ways = list(self._ways(prepared))
        told = f"what would fit: {'; or '.join(ways)}" if ways else "not even a hundredth of the budgets would fit"
        raise InvalidInput(f"{refusal}; {told}")

    def enter(self, drafts: Sequence[Draft]) -> None:
        """Enter what `admit` has returned; see `Ledger.enter`."""
        self.ledger.enter(drafts, self.use)

    def _ways(self, prepared: Sequence[Sequence[Prepared]]) -> Iterator[str]:
        """Say, each tried out, which changes make the run fit."""

        def fits(change: Callable[[Budgets], Budgets] = lambda known: known, mechanism: str | None = None) -> bool:
            def again(each: Prepared) -> Guarantee:
                whom = replace(each.part.people, population=change(each.part.people.population))
                return each.again(whom, mechanism or each.mechanism)

            try:
                drafts = [draft_of(groups, [again(each) for each in groups]) for groups in prepared]
            except ShuffleDPError:
                return False
            return self.ledger.refusal(drafts, self.use) is None

        factor = _largest(lambda factor: fits(lambda known: _with(known, known.epsilons * factor)))
        if factor is not None:
            yield f"all budgets times {factor:.2g}"
        levels = sorted({float(e) for each in prepared[0] for e in each.part.people.population.epsilons})
        for top in levels[-2::-1] if len(levels) <= MOST_LEVELS else ():
            if fits(lambda known, top=top: _with(known, np.minimum(known.epsilons, top))):
                yield f"fewer levels, with budgets above {top:g} lowered to {top:g}"
                break
        if len(prepared) == 1:
            asked = prepared[0][0]
            others = (name for name in asked.part.question.mechanisms if name != asked.mechanism)
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
