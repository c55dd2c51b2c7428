"""The inputs of a release: `Ask` (question, columns), `People` (data, budgets, owners), `Terms` (delta, view, ledger).

The fields of the three are the only list of options. The metadata of each holds a description (``help``), a function
that refuses values that are not allowed (``check``), and its form on the command line (``typed``). The command line
makes its options from them, the estimator classes their parameters, and the functions that take options by keyword
assign them by the three lists of fields. Only what ``--help`` needs is imported here; checks import what they need when
called.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from shuffledp.errors import Brief, InvalidInput, shown

if TYPE_CHECKING:
    from shuffledp.ledger import Ledger
    from shuffledp.numerics.randomness import Randomness
    from shuffledp.progress import Progress
    from shuffledp.questions.question import Question, Weights
    from shuffledp.records.columns import Recode
    from shuffledp.records.people import RowBudgets, RowsPerPerson
    from shuffledp.records.sources import MissingPerson, Person
    from shuffledp.releases.margins import Margins
    from shuffledp.setting import Seen
    from shuffledp.tables import TableOptions

ROWS = "Whose rows they are, and gaps"
GROUPS = "Groups (public)"
LEDGER = "Ledger (what the same people have spent)"
RESULT = "Output"
"""Name of the panel of --help for options on the output."""

Reads = Literal["text", "texts", "number", "whole", "file", "flag"]


@dataclass(frozen=True)
class Typed:
    """The form of an option on the command line.

    Parameters
    ----------
    metavar : str
        Placeholder of its value in --help; empty for a flag.
    reads : {"text", "texts", "number", "whole", "file", "flag"}
        Type of the value; "texts" may be given several times.
    panel : str
        Panel of --help that lists it; empty: the first.
    name : str
        Name of the option; empty: that of the field.
    """

    metavar: str = ""
    reads: Reads = "text"
    panel: str = ""
    name: str = ""


def option(help: str, typed: Typed | None = None, *, check: Callable[[Any], Any] | None = None) -> dict[str, Any]:
    """Return the metadata of a field that is an option.

    Parameters
    ----------
    help : str
        What the option is for, in one or two sentences, as --help shows it.
    typed : Typed, optional
        Its form on the command line; None: it is no option there.
    check : callable, optional
        Function of the value that returns it in its normal form, and raises InvalidInput if it is not allowed.
    """
    return {"help": help, "check": check, "typed": typed}


def settle(part: Any) -> None:
    """Check every field of an `Ask`, `People` or `Terms`, and replace each value by its normal form."""
    for each in fields(part):
        check = each.metadata["check"]
        if check is not None:
            object.__setattr__(part, each.name, check(getattr(part, each.name)))


# What refuses a bad value: each in its own room, and imported when it is needed.


def _question(given: object) -> object:
    from shuffledp.questions.question import Question

    if not isinstance(given, Question):
        raise InvalidInput(f"question must be a question such as Mean(0, 100); got {shown(given)}")
    return given


def _rule(given: object) -> object:
    from shuffledp.records.people import checked_rule

    return checked_rule(given)


def _missing_person(given: object) -> object:
    from shuffledp.errors import choice

    choice(given, "missing_person", ("refuse", "own"))  # type: ignore[arg-type]
    return given


def _where(given: object) -> object:
    from shuffledp.records.sources import checked_where

    return checked_where(given) or None


def _weights(given: object) -> object:
    from shuffledp.errors import choice
    from shuffledp.questions.question import WEIGHTS

    choice(given, "weights", WEIGHTS)  # type: ignore[arg-type]
    return given


def _random(given: object) -> object:
    from shuffledp.numerics.randomness import Randomness, secure_random

    if given is None:
        return secure_random()
    if not isinstance(given, Randomness):
        raise InvalidInput(f"random must come from secure_random() or simulation_random(seed); got {shown(given)}")
    return given


def _target(given: object) -> object:
    if given is None:
        return None
    from shuffledp.releases.target import checked_target

    return checked_target(given)  # type: ignore[arg-type]


def _for_missing(question: Question, missing_as: object) -> Question:
    """Return the question that is asked: itself, or the mean of those who answered if missing records are no answer."""
    from shuffledp.records.columns import NO_ANSWER

    if missing_as != NO_ANSWER:
        return question
    from shuffledp.questions.mean import Mean, MeanOfAnswered

    return MeanOfAnswered(question.low, question.high) if isinstance(question, Mean) else question


@dataclass(frozen=True, repr=False)
class Ask(Brief):
    """A question, and the columns of the records that answer it.

    Parameters
    ----------
    question : Question
        One of the questions, such as ``Mean(0, 100)``.
    value : str or sequence of str
        The column with the records; one column for each coordinate of a vector.
    mechanism : str, optional
        One of ``question.mechanisms``; default: the first of them.
    missing_as : hashable, optional
        Replacement of a missing record: one of the categories, or a number in the range. Without it a missing record
        is refused. "no-answer", for a mean: it is that of those who answered, and whether somebody did is private, too.
    other : hashable, optional
        Replacement of an unlisted record by a category; for items, of one outside the domain by an item.
    clip : bool
        Whether values outside the range are moved to its nearer end; the answer is then about the moved values.

    Raises
    ------
    InvalidInput
        If a value is not allowed for the question.

    Examples
    --------
    >>> from shuffledp.questions.mean import Mean
    >>> Ask(Mean(0, 100), "hours").mechanism
    'one-bit'
    """

    question: Question = field(metadata=option("What is asked.", check=_question))
    value: str | Sequence[str] = field(metadata=option("The column with the records.", Typed("COL")))
    mechanism: str | None = field(default=None, metadata=option("The randomizer, by its name.", Typed("NAME")))
    missing_as: Hashable | None = field(
        default=None,
        metadata=option(
            "What a missing record counts as: a category, or a number of the range; for a mean also no-answer: the "
            "mean is that of those who answered. See --missing-values.",
            Typed("VALUE", panel=ROWS),
        ),
    )
    other: Hashable | None = field(
        default=None,
        metadata=option(
            "The category that an unlisted record counts as; of items: what one outside the domain counts as.",
            Typed("CATEGORY", panel=ROWS),
        ),
    )
    clip: bool = field(
        default=False, metadata=option("Move values outside the range to its nearer end.", Typed(reads="flag"))
    )

    def __post_init__(self) -> None:
        from shuffledp.errors import choice

        settle(self)
        for name, given in (("missing_as", self.missing_as), ("other", self.other)):
            if isinstance(given, dict | set) or (hasattr(given, "__array__") and getattr(given, "ndim", 1) != 0):
                raise InvalidInput(f"`{name}` must be one word or number; got {shown(given)}", name)
        question = _for_missing(self.question, self.missing_as)
        if question is not self.question and self.mechanism not in (None, *question.mechanisms):
            choice(self.mechanism, "mechanism", self.question.mechanisms)
            raise InvalidInput(
                f"a mean among those who answered is asked with {question.mechanisms[0]}, over the ends of the range "
                f"and no answer: `mechanism` {self.mechanism} has no report for no answer; leave it out, or say with "
                "`missing_as` which number a missing record counts as"
            )
        object.__setattr__(self, "question", question)
        mechanism = question.mechanisms[0] if self.mechanism is None else self.mechanism
        object.__setattr__(self, "mechanism", choice(mechanism, "mechanism", question.mechanisms))
        _ = self.recode  # checked here, as the columns are, before anything is read
        object.__setattr__(self, "question", question.named_by(self.columns))

    @property
    def recode(self) -> Recode:
        """The replacements of missing records and of those outside the domain, checked by the question."""
        from shuffledp.records.columns import Recode

        return self.question.settled(Recode(self.missing_as, self.other, self.clip))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the records: one, or one for each coordinate of a vector."""
        question, value = self.question, self.value
        names = (str(value),) if isinstance(value, str | int) else tuple(map(str, value))  # frames number columns
        needed = question.column_count
        if len(names) not in ({needed} if question.reads == "texts" else {1, needed}):  # one array holds vectors
            raise InvalidInput(
                f"value must name {needed} column{'s' * (needed > 1)} for a {question.name}; "
                f"got {len(names)}: {', '.join(map(str, names[:5]))}"
            )
        if len(set(names)) < len(names):
            raise InvalidInput(f"value names a column twice: {', '.join(names)}")
        return names

    @property
    def called(self) -> str:
        """Name of the column, or names of the columns with a comma between them, for titles."""
        return ", ".join(self.columns)


@dataclass(frozen=True, eq=False, repr=False)
class People(Brief):
    """The people who are asked: their data, their budgets, the owner and the public group of each row.

    Parameters
    ----------
    data : str, Path, dataframe, or mapping of str to array
        A file of text (CSV, TSV and the like) or of Parquet, plain or packed; ``"-"`` for standard input; any dataframe
        that speaks the Arrow interface; or arrays by name.
    budgets : float, str or RowBudgets, optional
        One local budget for all (nats, 0 to 700), the name of the column with each row's budget, or a `RowBudgets`.
        Budgets are public, and must not depend on the records. With ``Terms.target_epsilon`` leave them out, or name a
        column, whose budgets are then lowered to meet the target.
    person : str, optional
        The column with the owner of each row. Without it each row is taken as a person, and every output says so.
    rows_per_person : {"refuse", "one"} or int
        Rule for people with several rows. "refuse": an error says how many there are. "one": one row of each is used,
        chosen by secure randomness without looking at the records. A number K: every row is used, and the guarantee is
        for groups of K rows.
    missing_person : {"refuse", "own"}
        Rule for a row whose owner is missing. "refuse": an error. "own": the only row of a person of its own; the
        guarantee then holds only if such rows are of different people, who have no other row.
    consent : mapping of str to float, optional
        The budget (nats) of each word in the column of budgets, such as ``{"strict": 0.1, "open": 1.0}``.
    missing_budget : float, optional
        The budget (nats, 0 to 700) of a row whose budget is missing; 0 sends no information.
    by : str, optional
        The column with each row's public group: every group gets a release of its own. Of several columns with a comma
        between them each pair of words is a group, named "word / word".
    groups : sequence of hashable, optional
        The names of all groups, known beforehand; needed with `by`.
    where : mapping of str to hashable or sequence of hashable, optional
        Only rows with these values are asked, such as ``{"city": "Oslo"}``; if a column has several values, a row needs
        one of them; if there are several columns, a row needs a value of each. The columns are public, and so is who
        has which value: they are not protected.
    table_options : TableOptions, optional
        Format of a text file, where it is not to be detected; whether error messages show cells.

    Raises
    ------
    InvalidInput
        If a value is not allowed, `rows_per_person` or `missing_person` is given without `person`, or one of `by` and
        `groups` without the other.

    Examples
    --------
    >>> People({"hours": [20.0, 40.0]}, budgets=1.0).rows_per_person
    'refuse'
    """

    data: Any = field(metadata=option("The table."), repr=False)  # a log that shows people shows no record
    budgets: float | str | RowBudgets | None = field(
        default=None,
        metadata=option(
            "Column with each person's local budget, or one number for all; or else --target-epsilon.",
            Typed("COL_OR_NUMBER", name="epsilon0"),
        ),
    )
    person: str | None = field(
        default=None,
        metadata=option(
            "The column that tells whose row it is. Without it each row is taken as a person.", Typed("COL", panel=ROWS)
        ),
    )
    rows_per_person: RowsPerPerson = field(
        default="refuse",
        metadata=option(
            "People with several rows: refuse; use one row each, chosen at random; or use all, with a guarantee for "
            "groups of K rows.",
            Typed("refuse|one|K", panel=ROWS),
            check=_rule,
        ),
    )
    missing_person: MissingPerson = field(
        default="refuse",
        metadata=option(
            "Rows without a person: refuse; or each counts as a person of its own, which must be true: the guarantee "
            "is for one such row.",
            Typed("refuse|own", panel=ROWS),
            check=_missing_person,
        ),
    )
    consent: Mapping[str, float] | None = field(
        default=None,
        metadata=option(
            "What a word of the --epsilon0 column stands for, such as strict=0.1. Repeat it for each word.",
            Typed("WORD=E", "texts"),
        ),
    )
    missing_budget: float | None = field(
        default=None,
        metadata=option(
            "The local budget of rows whose budget is missing; 0 sends no information.", Typed("E", "number", ROWS)
        ),
    )
    by: str | None = field(
        default=None,
        metadata=option(
            "The column with each row's public group: one answer, and one guarantee, for each of --groups. Of several "
            "columns (A,B) each pair of words is a group, named 'word / word'.",
            Typed("COL", panel=GROUPS),
        ),
    )
    groups: Sequence[Hashable] | None = field(
        default=None,
        metadata=option(
            "With --by: all groups, known beforehand: a list, or a text file with one per line; without it those of "
            "--margins.",
            Typed("A,B,C|FILE", panel=GROUPS),
        ),
    )
    where: Mapping[str, Hashable | Sequence[Hashable]] | None = field(
        default=None,
        metadata=option(
            "Ask only rows with this value of a public column. Repeat it: rows need one value of each column.",
            Typed("COLUMN=VALUE", "texts", GROUPS),
            check=_where,
        ),
    )
    table_options: TableOptions | None = field(default=None, metadata=option("How the table is written."))

    def __post_init__(self) -> None:
        settle(self)
        if self.person is None and self.rows_per_person != "refuse":
            raise InvalidInput(
                f"`rows_per_person = {self.rows_per_person}` needs the column that tells whose row it is; "
                "name it with `person`"
            )
        if self.person is None and self.missing_person != "refuse":
            raise InvalidInput(
                f"`missing_person = {self.missing_person}` needs the column that tells whose row it is; "
                "name it with `person`"
            )
        if (self.by is None) != (self.groups is None):
            raise InvalidInput("`by` names the column of public groups, and `groups` all of them; give both")

    @property
    def selection(self) -> Mapping[str, tuple[Hashable, ...]]:
        """Public values of the rows that are asked, by column; empty: all rows are."""
        return {} if self.where is None else self.where  # type: ignore[return-value]

    def check_private(self, ask: Ask) -> None:
        """Refuse a question about a column whose values are public: groups, conditions, budgets or owners of rows.

        Raises
        ------
        InvalidInput
            If `by`, `where`, `budgets` or `person` names a column of the records.
        """
        from shuffledp.records.people import RowBudgets, columns_of
        from shuffledp.records.sources import refuse_public

        budgets = self.budgets if isinstance(self.budgets, RowBudgets) else RowBudgets(self.budgets or 0.0)
        public = {
            "by": () if self.by is None else columns_of(self.by),
            "where": tuple(self.selection),
            "epsilon0": [name for name in (budgets.epsilon0, budgets.delta0) if isinstance(name, str)],
            "person": () if self.person is None else (self.person,),
        }
        refuse_public(public, ask.columns)

    @property
    def whose(self) -> tuple[Person | None, RowsPerPerson]:
        """The column with each row's owner (None without one), and the rule for people with several rows."""
        from shuffledp.records.sources import Person

        person = None if self.person is None else Person(self.person, self.missing_person)
        return person, self.rows_per_person


@dataclass(frozen=True, kw_only=True, eq=False)
class Terms:
    """The terms of a release: what the analyzer sees, the central delta, the source of noise, and the ledger.

    Parameters
    ----------
    target_epsilon : float, optional
        The central epsilon (nats) that must hold at `delta`: the largest local budget for which it is certified
        (to a few percent), one for everybody, is found and used; ``guarantee.setting.budgets`` states it. A
        column of budgets states the most that people allow: all are lowered by one factor, the largest that is
        certified, and none is raised.
    delta : float
        Central delta of the guarantee, in (0, 1/n).
    seen : {"reports", "levels", "sum"} or None
        What the analyzer sees: the shuffled reports without, or with, their senders' budgets, or only their sum (a
        mean). It may be left out where there is one budget: then the first two views reveal the same.
    weights : {"population", "precision"}
        Where levels are seen: "population" gives everybody equal weight; "precision" minimises the noise, which is
        unbiased only if budgets do not depend on the records.
    any_delta : bool
        Whether a delta of 1/n and above is allowed, which lets one person's record be published.
    ledger : Ledger, str or Path, optional
        The ledger in which the release is entered before it is returned. Its limit is checked before a record is read.
    population : str
        Name of these people in the ledger. Populations of different names are assumed to overlap, unless it says
        otherwise.
    fixed_in_advance : str, optional
        Name of the plan that fixed this release before the first answer of the plan was seen.
    random : Randomness, optional
        Source of the noise; secure by default. `simulation_random` is not private.
    rows : int, optional
        About how many rows are held in memory at a time, at least 1; default 2^19.
    progress : callable, optional
        Called with the share of the work that is done, from 0 to 1.
    margins : Margins, optional
        With groups: the margins for `GroupedRelease.weighted`. If they do not fit, nothing is drawn.
    title : str
        Title of the ledger's entry; default: the question.

    Raises
    ------
    InvalidInput
        If a value is not allowed.

    Examples
    --------
    >>> Terms(seen="reports", delta=1e-6).weights
    'population'
    """

    target_epsilon: float | None = field(
        default=None,
        metadata=option(
            "In place of --epsilon0: the central epsilon that must hold at --delta. The largest local budget that is "
            "certified for it (to a few percent), one for everybody, is found and asked with. With a column as "
            "--epsilon0 all its budgets are lowered by one factor, and none is raised.",
            Typed("E", "number"),
            check=_target,
        ),
    )
    delta: float = field(
        metadata=option("Central delta, strictly between 0 and 1; well below 1/n, such as 1e-6.", Typed("D", "number"))
    )
    seen: Seen | None = field(
        default=None,
        metadata=option(
            "What the analyzer sees: reports (nobody's budget) or levels (each report with its budget); of a mean also "
            "sum. Required with two budgets or more.",
            Typed("WHAT"),
        ),
    )
    weights: Weights = field(
        default="population",
        metadata=option(
            "With --seen levels. population: everybody counts the same; precision: least noise, right only if budgets "
            "do not depend on the records.",
            Typed("NAME"),
            check=_weights,
        ),
    )
    any_delta: bool = field(
        default=False,
        metadata=option(
            "Allow a delta of 1/n and above, which lets one person's record be published.", Typed(reads="flag")
        ),
    )
    ledger: Ledger | str | Path | None = field(
        default=None,
        metadata=option(
            "Enter the release before it is shown; the ledger's limit refuses what has no room.",
            Typed("FILE", "file", LEDGER),
        ),
    )
    population: str = field(
        default="everybody",
        metadata=option(
            "What the ledger calls these people. Names that differ overlap unless the ledger says otherwise.",
            Typed("NAME", panel=LEDGER),
        ),
    )
    fixed_in_advance: str | None = field(
        default=None,
        metadata=option(
            "Name of the plan that fixed this release, and all others of that name, before any of their answers.",
            Typed("ID", panel=LEDGER),
        ),
    )
    random: Randomness | None = field(
        default=None,
        metadata=option(
            "Repeatable noise from a seed, for testing: the output is marked NOT PRIVATE.",
            Typed("N", "whole", RESULT, "simulation_seed"),
            check=_random,
        ),
    )
    rows: int | None = field(default=None, metadata=option("Rows held in memory at a time."))
    progress: Progress | None = field(default=None, metadata=option("Called with the share of the work that is done."))
    margins: Margins | None = field(
        default=None,
        metadata=option(
            "With --by: public counts of all people (variable,category,people), to which answers are weighted; by "
            "several columns they are raked.",
            Typed("FILE.csv", "file", GROUPS),
        ),
    )
    title: str = field(
        default="",
        metadata=option("Title of the page that --report writes, and of the entry.", Typed("TEXT", panel=RESULT)),
    )

    def __post_init__(self) -> None:
        settle(self)


PARTS: tuple[type[Any], ...] = (Ask, People, Terms)


def options() -> dict[str, Field[Any]]:
    """Return every field of `Ask`, `People` and `Terms`, by name, in their order."""
    return {each.name: each for part in PARTS for each in fields(part)}


def told_apart(
    words: Mapping[str, Any], function: str, without: Collection[str] = ()
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Split keyword options into those of `Ask`, `People` and `Terms`; refuse unknown ones as Python does.

    Parameters
    ----------
    words : mapping
        The keyword options.
    function : str
        Name of the function that was called, for the message.
    without : collection of str
        Fields that it does not accept.

    Returns
    -------
    tuple of dict
        The keywords of `Ask`, of `People` and of `Terms`.

    Raises
    ------
    TypeError
        For the first unknown keyword, and if `delta` is missing.
    """
    accepted = options()
    for name in words:
        if name not in accepted or name in without:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
    if "delta" not in words:
        raise TypeError(f"{function}() missing 1 required keyword-only argument: 'delta'")
    ask, people, terms = ({each.name: words[each.name] for each in fields(p) if each.name in words} for p in PARTS)
    return ask, people, terms
