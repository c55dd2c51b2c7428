"""Ask a question of people's records: count budgets, certify the guarantee, and only then read and randomize records.

The order is part of the promise. What leaves is a `Release`: an estimate together with its guarantee.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

from shuffledp.ledger import EVERYBODY, Ledger
from shuffledp.numerics.randomness import Randomness
from shuffledp.progress import Progress
from shuffledp.protocol.entering import Entering
from shuffledp.protocol.owners import RowsPerPerson
from shuffledp.protocol.people import RowBudgets
from shuffledp.protocol.preparing import row_budgets
from shuffledp.protocol.questions import Question
from shuffledp.protocol.released import Release
from shuffledp.protocol.running import Ask, Run
from shuffledp.protocol.weights import Weights
from shuffledp.setting import Seen
from shuffledp.tables import BATCH, TableOptions


def release(
    question: Question,
    data: Any,
    *,
    value: str | Sequence[str],
    budgets: float | str | RowBudgets,
    seen: Seen | None = None,
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
    progress: Progress | None = None,
    ledger: Ledger | str | Path | None = None,
    population: str = EVERYBODY,
    fixed_in_advance: str | None = None,
    title: str = "",
) -> Release:
    """Ask one question of people's records, and release a private estimate with its certified guarantee.

    Parameters
    ----------
    question : Question
        `Frequency`, `FrequentItems`, `Mean`, `Histogram`, `Quantiles`, `Variance` or `VectorMean`.
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
        mean). It may be left out where there is one budget: then these views tell the same.
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
        The category that an unlisted record counts as, or the item that one outside the domain of items does.
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
        Separator, encoding and marks of numbers of a text file, where they are not to be found out; and whether
        refusals show what stands in a row (``show_values``).
    progress : callable, optional
        Called with the share of the work that is done, from 0 to 1.
    ledger : Ledger, str or Path, optional
        Where the release is entered before it is returned. Its limit is asked before a record is read.
    population : str
        The name that the ledger gives these people. Names that differ are taken to overlap, unless the ledger says
        otherwise.
    fixed_in_advance : str, optional
        Name of the plan that fixed this release before the first answer of the plan was seen.
    title : str
        What the entry is called; default: the question.

    Returns
    -------
    Release
        A `RangeRelease` for quantiles, an `ItemsRelease` for frequent items.

    Raises
    ------
    InvalidInput
        On any bad argument, for the first bad row, counting from 1, and if the ledger's limit has no room.

    Examples
    --------
    >>> from shuffledp.protocol import Frequency
    >>> people = {"vote": ["yes", "no"] * 500, "budget": [0.5, 2.0] * 500}
    >>> release(Frequency(["yes", "no"]), people, value="vote", budgets="budget", seen="reports", delta=1e-6).n
    1000
    """
    asked = Ask(question, value, mechanism, missing_as, other, clip)
    run = Run(
        row_budgets(budgets, consent, missing_budget),
        seen,
        delta,
        person,
        rows_per_person,
        any_delta,
        weights,
        random,
        rows,
        table_options,
        progress,
        Entering.into(ledger, population, fixed_in_advance, title),
    )
    return run.ask([asked], data)[0]
