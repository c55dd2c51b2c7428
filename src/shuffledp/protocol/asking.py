"""Ask a question of people's records: count budgets, certify the guarantee, and only then read and randomize records.

The order is part of the promise. What leaves is a `Release`: an estimate together with its guarantee.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from shuffledp.accounting import certify
from shuffledp.errors import InvalidInput, shown
from shuffledp.guarantee import Guarantee
from shuffledp.numerics.randomness import Randomness, secure_random
from shuffledp.protocol.choices import check_choice
from shuffledp.protocol.collecting import collect
from shuffledp.protocol.columns import Recode
from shuffledp.protocol.owners import RowsPerPerson, checked_rule
from shuffledp.protocol.people import People, RowBudgets, count_people
from shuffledp.protocol.questions import Question
from shuffledp.protocol.released import Release, release_type
from shuffledp.protocol.sources import open_source
from shuffledp.protocol.tally import Task
from shuffledp.protocol.weights import WEIGHTS, Weights
from shuffledp.setting import SEEN_MEANING, Seen, Setting
from shuffledp.tables import BATCH, TableOptions


def release(
    question: Question,
    data: Any,
    *,
    value: str | Sequence[str],
    budgets: float | str | RowBudgets,
    seen: Seen | None,
    delta: float,
    mechanism: str | None = None,
    person: str | None = None,
    rows_per_person: RowsPerPerson = "refuse",
    missing_as: Hashable | None = None,
    other: Hashable | None = None,
    missing_budget: float | None = None,
    any_delta: bool = False,
    clip: bool = False,
    consent: Mapping[str, float] | None = None,
    weights: Weights = "population",
    random: Randomness | None = None,
    rows: int = BATCH,
    table_options: TableOptions | None = None,
    progress: Callable[[float], None] | None = None,
) -> Release:
    """Ask one question of people's records, and release a private estimate with its certified guarantee.

    Parameters
    ----------
    question : Question
        `Frequency`, `Mean`, `Histogram`, `Quantiles`, `Variance` or `VectorMean`.
    data : str, Path, dataframe, or mapping of str to array
        A file of text (CSV, TSV and the like) or of Parquet, plain or packed; ``"-"`` for standard input; any dataframe
        that speaks the Arrow interface; or arrays by name.
    value : str or sequence of str
        The column with the records; one column for each coordinate of a vector.
    budgets : float, str or RowBudgets
        One local budget for all (nats, 0 to 700), the name of the column with each row's budget, or the long form.
        Budgets are public, and must not depend on the records.
    seen : {"reports", "levels", "sum"} or None
        What the analyzer sees: the shuffled reports without, or with, their senders' budgets, or only their sum (a
        mean). None is allowed where there is one budget.
    delta : float
        Central delta of the guarantee, in (0, 1/n).
    mechanism : str, optional
        One of ``question.mechanisms``; default: the first of them.
    person : str, optional
        The column that tells whose row it is. Without it each row is taken as a person, and every output says so.
    rows_per_person : {"refuse", "one"} or int
        What happens to people with several rows. "refuse": an error says how many there are. "one": one row of each is
        used, chosen by secure randomness without looking at the records. A number K: every row is used, and the
        guarantee is for groups of K rows.
    missing_as : hashable, optional
        What a missing record counts as: a category, or a number of the range. The record is mapped before it is
        randomized, so the guarantee holds unchanged.
    other : hashable, optional
        The category that an unlisted record counts as.
    missing_budget : float, optional
        The budget (nats) of rows whose budget is missing; 0: they send no information.
    any_delta : bool
        Allow delta of 1/n and above. Such a guarantee lets one person's record be published.
    clip : bool
        Move values outside the range to its nearer end (shorten vectors), which changes the target; else they are
        refused. How many were moved is not known to the analyzer.
    consent : mapping of str to float, optional
        The budget that each word of the budget column stands for.
    weights : {"population", "precision"}
        How levels are combined when they are seen, see `frequency`.
    random : Randomness, optional
        Default `secure_random()`. `simulation_random(seed)` marks the release as not private.
    rows : int
        About how many rows are held at a time.
    table_options : TableOptions, optional
        Separator, encoding and decimal mark of a text file, where they are not to be found out.
    progress : callable, optional
        Called with the share of the work that is done, from 0 to 1.

    Returns
    -------
    Release
        A `RangeRelease` for quantiles.

    Raises
    ------
    InvalidInput
        On any bad argument, and for the first bad row, counting from 1.

    Examples
    --------
    >>> from shuffledp.protocol import Frequency
    >>> people = {"vote": ["yes", "no"] * 500, "budget": [0.5, 2.0] * 500}
    >>> release(Frequency(["yes", "no"]), people, value="vote", budgets="budget", seen="reports", delta=1e-6).n
    1000
    """
    if not isinstance(question, Question):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"question must be one of the questions, such as Mean(0, 100); got {shown(question)}")
    check_choice("weights", weights, WEIGHTS)
    name = question.mechanisms[0] if mechanism is None else mechanism
    check_choice("mechanism", name, question.mechanisms)
    recode = question.settled(Recode(missing_as, other, clip))
    who = row_budgets(budgets, consent, missing_budget)
    random = checked_random(random)
    if person is None and checked_rule(rows_per_person) != "refuse":
        raise InvalidInput(
            f"`rows_per_person = {rows_per_person}` needs the column that tells whose row it is; name it with `person`"
        )
    source = open_source(data, rows, table_options)
    people = count_people(source, who, person, rows_per_person, random)
    guarantee, task = certified(question, people, name, seen, delta, weights, any_delta=any_delta)
    tally = collect(question, source, columns_of(question, value), recode, people, task, random, progress)
    return release_type(question)(
        question=question,
        analysis=tally.estimate(),
        guarantee=guarantee,
        n=people.n,
        rows=people.population.n,
        mechanism=guarantee.setting.randomizer_name,
        private=random.private,
        weights=weights if task.seen == "levels" else None,
        unit="rows" if person is None else "people",
        clipped=clip,
        fingerprint=task.fingerprint().hex(),
    )


def certified(
    question: Question,
    people: People,
    mechanism: str,
    seen: Seen | None,
    delta: float,
    weights: Weights,
    *,
    any_delta: bool,
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
    return certify(setting, delta), Task(randomizer, population, view, weights)


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


def columns_of(question: Question, value: str | Sequence[str]) -> tuple[str, ...]:
    """Check the columns of the records: one, or one for each coordinate of a vector."""
    names = (value,) if isinstance(value, str) else tuple(value)
    if len(names) not in (1, question.columns):
        raise InvalidInput(
            f"value must name {question.columns} column{'s' * (question.columns > 1)} for a {question.name}; "
            f"got {len(names)}: {', '.join(map(str, names[:5]))}"
        )
    if len(set(names)) < len(names):
        raise InvalidInput(f"value names a column twice: {', '.join(names)}")
    return names
