"""What is settled before a record is read: budgets, randomizer, view, guarantee."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shuffledp.accounting import certify
from shuffledp.errors import InvalidInput, shown
from shuffledp.guarantee import Guarantee
from shuffledp.numerics.randomness import Randomness, secure_random
from shuffledp.progress import Progress
from shuffledp.protocol.choices import check_choice
from shuffledp.protocol.people import People, RowBudgets
from shuffledp.protocol.questions import Question
from shuffledp.protocol.tally import Task
from shuffledp.protocol.weights import Weights
from shuffledp.setting import SEEN_MEANING, Seen, Setting


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
    budgets: float | str | RowBudgets, consent: Mapping[str, float] | None = None, missing: float | None = None
) -> RowBudgets:
    """Return the long form of where budgets come from.

    Raises
    ------
    InvalidInput
        If the long form is given together with `consent` or `missing`, which belong inside it.
    """
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
