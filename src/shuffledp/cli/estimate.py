"""From the options of a question to its release: parse, one library call, one renderer."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shuffledp.budgets import MAX_EPSILON0
from shuffledp.cli.population import parse_bounds
from shuffledp.errors import InvalidInput, shown
from shuffledp.guarantee import Guarantee
from shuffledp.numerics.randomness import choose_random
from shuffledp.questions.frequency import Frequency, project_to_simplex
from shuffledp.questions.items import FrequentItems
from shuffledp.questions.mean import Mean
from shuffledp.questions.question import Question
from shuffledp.questions.ranges import Histogram, Quantiles
from shuffledp.questions.variance import Variance
from shuffledp.questions.vectors import VectorMean
from shuffledp.records.people import RowBudgets
from shuffledp.releases.margins import LONGEST, Margins
from shuffledp.releases.release import Release
from shuffledp.releases.verb import GroupedRelease, release, release_by
from shuffledp.report.answer import Answer
from shuffledp.report.by_group import grouped_parts, grouped_to_json, print_grouped, print_weighted, weighted_to_json
from shuffledp.report.page import render
from shuffledp.report.release_json import release_to_json
from shuffledp.report.release_terminal import Shown, print_release
from shuffledp.report.to_json import dumps
from shuffledp.report.wording import down, near, unshuffled
from shuffledp.shell.left import opened_ledger
from shuffledp.shell.output import COMMAND_LINE, console, outputs, working
from shuffledp.shell.table_options import table_options
from shuffledp.whole_files import read_bytes, read_lines

if TYPE_CHECKING:
    import polars as pl

LONGEST_LIST = 1 << 26
"""Bytes of a file of categories or groups."""

Typed = Mapping[str, Any]
"""The options as typed, by their names in Python."""

BUILD: Mapping[str, Callable[[Typed], Question]] = {
    "mean": lambda t: Mean(*parse_range(t)),
    "frequency": lambda t: Frequency(parse_categories(t["categories"])),
    "histogram": lambda t: Histogram(*parse_range(t), bins=t["bins"]),
    "quantiles": lambda t: Quantiles(*parse_range(t), at=parse_at(t["at"]), bins=t["bins"], branching=t["branching"]),
    "variance": lambda t: Variance(*parse_range(t)),
    "frequent-items": lambda t: FrequentItems(
        None if t["candidates"] is None else parse_categories(t["candidates"], "candidates"),
        **{name: t[name] for name in ("max_length", "alphabet", "cut", "false_positives")},
    ),
    "vector-mean": lambda t: VectorMean(len(parse_values(t["values"])), t["norm"], t["norm_kind"]),
}
"""How each command's question is made from its options."""


def run(name: str, typed: Typed) -> None:
    """Ask a question and show the answer.

    Parameters
    ----------
    name : str
        The command.
    typed : mapping
        Its options.
    """
    check_stated(typed)
    question = BUILD[name](typed)
    value = parse_values(typed["values"]) if "values" in typed else typed["value"]
    besides = Shown(
        simplex=typed.get("simplex", False),
        simultaneous=typed.get("simultaneous", False),
        bounds=typed["verbose"] or typed["bounds"] is not None,
        published=typed["bounds"] is not None and parse_bounds(typed["bounds"]),
        counts=typed.get("counts", False),
    )
    margins = _margins(typed)
    with outputs({"--report": typed["report"], "--csv": typed["csv"]}) as files:
        with working(f"Certifying, reading {typed['table'].name}, randomizing, counting") as progress:
            asked: dict[str, Any] = {"value": value, "progress": progress, **_arguments(typed)}
            if typed["by"] is None and typed["groups"] is None:
                found = release(question, typed["table"], **asked)
            else:
                by, groups = parse_groups(typed["by"], typed["groups"])
                found = release_by(question, typed["table"], by=by, groups=groups, margins=margins, **asked)
        found = _completed(found, besides)
        files.write("--report", lambda page: page.write(_page(typed, found, besides, margins)))
        files.write("--csv", lambda table: table.write(_with_projected(found, besides).write_csv()))
        files.show(lambda: show(typed, found, besides, files.written, margins))


def _margins(typed: Typed) -> Margins | None:
    """Read --margins before anything is spent; they must name the groups."""
    path = typed.get("margins")
    if path is None:
        return None
    if typed["by"] is None or typed["groups"] is None:
        raise InvalidInput("--margins weights public groups, so it needs --by COLUMN and --groups A,B,C")
    by, groups = parse_groups(typed["by"], typed["groups"])
    margins = Margins.parse(read_bytes(path, "the margins", LONGEST))
    margins.of(by, groups)
    return margins


def _with_projected(found: Release | GroupedRelease, besides: Shown) -> pl.DataFrame:
    """Return the answer as a table, with the projected shares that the screen shows too."""
    frame = found.to_frame(simultaneous=besides.simultaneous, amounts=True)
    if not besides.simplex or isinstance(found, GroupedRelease):
        return frame
    return frame.with_columns(projected=project_to_simplex(found.estimate))


def _completed(found: Release | GroupedRelease, besides: Shown) -> Release | GroupedRelease:
    if isinstance(found, Release):
        return besides.complete(found)
    return GroupedRelease(found.by, {name: besides.complete(each) for name, each in found.releases.items()})


def _arguments(typed: Typed) -> dict[str, Any]:
    """Return what `release` and `release_by` take alike."""
    return {
        "budgets": parse_budgets(typed),
        "target_epsilon": typed["target_epsilon"],
        "mechanism": typed.get("mechanism"),
        "other": typed.get("other"),
        "clip": typed.get("clip", False),
        "random": choose_random(typed["simulation_seed"]),
        "table_options": table_options(typed),
        "title": typed["title"] or "",
        "ledger": opened_ledger(typed["ledger"]),
    } | {
        name: typed[name]
        for name in ("seen", "delta", "person", "rows_per_person", "missing_as", "any_delta", "weights", "population",
                      "fixed_in_advance")
    }  # fmt: skip


def show(
    typed: Typed,
    found: Release | GroupedRelease,
    shown: Shown,
    written: Sequence[Path],
    margins: Margins | None = None,
) -> None:
    """Print the release for a program, or for a person, who is told which files were written."""
    to_json, to_terminal = (
        (release_to_json, print_release) if isinstance(found, Release) else (grouped_to_json, print_grouped)
    )
    if typed["json"]:
        said = to_json(found, simplex=shown.simplex, simultaneous=shown.simultaneous)  # type: ignore[arg-type]
        if margins is not None and isinstance(found, GroupedRelease):
            said |= {"weighted": weighted_to_json(found, margins)}
        print(dumps(said))
        return
    to_terminal(console(), found, shown)  # type: ignore[arg-type]
    tell_local(typed, found.guarantee)
    if margins is not None and isinstance(found, GroupedRelease):
        print_weighted(console(), found, margins)
    for path in written:
        console().print(f"Written: {path.resolve()}", soft_wrap=True, highlight=False)


def tell_local(typed: Typed, guarantee: Guarantee) -> None:
    """Say beside a central epsilon that was asked for which local budget was found for it."""
    if typed["target_epsilon"] is not None:
        console().print(
            f"Local budget found for a central epsilon of {near(typed['target_epsilon'])}: "
            f"{down(guarantee.setting.budgets.epsilons[-1], 6)} for everybody. {unshuffled(guarantee.setting)}",
            highlight=False,
        )


def _page(typed: Typed, found: Release | GroupedRelease, shown: Shown, margins: Margins | None) -> str:
    from shuffledp import __version__

    value = typed.get("value") or typed["values"]
    by_group = isinstance(found, GroupedRelease)
    each = [(f", {found.by} {name}", one) for name, one in found.releases.items()] if by_group else [("", found)]
    answers = [
        Answer(
            title_of(one, value).replace("?", f"{where}?"), one.guarantee, one,
            simplex=shown.simplex, simultaneous=shown.simultaneous, counts=shown.counts,
        )
        for where, one in each
    ]  # fmt: skip
    heading = typed["title"] or ("Private estimates by group" if by_group else "A private estimate")
    besides = grouped_parts(found, simultaneous=shown.simultaneous, margins=margins) if by_group else {}
    return render(heading, answers, command=COMMAND_LINE.get(), version=__version__, **besides)


def title_of(found: Release, value: str) -> str:
    """Say the question in words, for the page."""
    moved = " of the values moved into the range" if found.clipped else ""
    return {
        "mean": f"What is the mean of {value}{moved}?",
        "frequency": f"How often does each {value} occur?",
        "frequent-items": f"Which values of {value} are frequent?",
        "histogram": f"How is {value} distributed?",
        "quantiles": f"What are the quantiles of {value}?",
        "variance": f"What is the variance of {value}{moved}?",
        "vector-mean": f"What is the mean of {value}?",
    }[found.question.name]


def parse_budgets(typed: Typed) -> RowBudgets | None:
    """Read where the budgets come from: one number, a column of numbers or of words; None if a target finds one."""
    if (typed["epsilon0"] is None) == (typed["target_epsilon"] is None):
        raise InvalidInput(
            "say either --epsilon0, the local budget of everybody, or --target-epsilon, the central epsilon for which "
            f"the largest one is found; got {'neither' if typed['epsilon0'] is None else 'both'}"
        )
    if typed["epsilon0"] is None:
        for name in ("consent", "missing_budget", "delta0"):
            if typed.get(name):
                raise InvalidInput(f"--{name.replace('_', '-')} belongs to --epsilon0, and --target-epsilon finds that")
        return None
    words = parse_consent(tuple(typed["consent"] or ()))
    where: float | str = typed["epsilon0"]
    try:
        where = float(typed["epsilon0"])
    except ValueError:
        return RowBudgets(where, words, typed.get("delta0", 0.0), typed["missing_budget"])
    if words is not None:
        raise InvalidInput(
            "--consent says what the words of a column stand for, so --epsilon0 must name that column; "
            f"got {typed['epsilon0']}; name the column, or leave --consent out"
        )
    return RowBudgets(where, None, typed.get("delta0", 0.0), typed["missing_budget"])


def parse_consent(texts: tuple[str, ...]) -> dict[str, float] | None:
    """Read --consent WORD=E, repeated; None without."""
    words: dict[str, float] = {}
    for text in texts:
        word, equals, budget = text.rpartition("=")
        try:
            epsilon0 = float(budget)
        except ValueError:
            equals = ""
            epsilon0 = 0.0
        if not equals or not word.strip():
            raise InvalidInput(f"--consent must be WORD=E with a number E, such as strict=0.1; got {shown(text)}")
        if word.strip() in words:
            raise InvalidInput(f"--consent gives {shown(word.strip())} twice; give each word one budget")
        if not 0.0 <= epsilon0 <= MAX_EPSILON0:
            raise InvalidInput(
                f"--consent {shown(text)}: a local budget must be a number of nats from 0 to {MAX_EPSILON0:g}"
            )
        words[word.strip()] = epsilon0
    return words or None


def check_stated(typed: Typed) -> None:
    """Refuse options that nothing of what is asked for uses.

    Parameters
    ----------
    typed : mapping
        The options.
    """
    if typed["title"] is not None and typed["report"] is None and typed["ledger"] is None:
        raise InvalidInput("--title is that of the page and of the entry; add --report FILE.html or --ledger FILE")
    check_weights(typed)


def check_weights(typed: Typed) -> None:
    """Refuse weights by precision where levels are not seen: there is nothing to weigh."""
    if typed["weights"] == "precision" and typed["seen"] != "levels":
        got = "--seen was left out" if typed["seen"] is None else f"got --seen {typed['seen']}"
        raise InvalidInput(
            f"--weights precision weighs the reports of each budget level, so it needs --seen levels; {got}"
        )


def parse_range(typed: Typed) -> tuple[float, float]:
    """Read --low and --high, both needed; what they may be is the library's to say."""
    low, high = typed["low"], typed["high"]
    if low is None or high is None:
        missing = "--low" if low is None else "--high"
        raise InvalidInput(
            f"{missing} is needed: the range must be known beforehand, as reading it off the data would leak"
        )
    return low, high


def parse_categories(text: str | None, option: str = "categories") -> list[str]:
    """Read --categories, or --candidates: a comma-separated list (quotes as in CSV), or a file with one per line."""
    if text is None:
        raise InvalidInput(
            "--categories is needed: they must be known beforehand, as reading them off the data would leak; "
            "write --categories A,B,C or name a text file with one per line"
        )
    if "," in text and not Path(text).exists():
        names = [name.strip() for name in next(csv.reader([text], skipinitialspace=True))]
        if not all(names):
            raise InvalidInput(f"--{option} {shown(text)} holds an empty name; take out the comma that is too many")
        return names
    try:
        lines = read_lines(Path(text), f"--{option}", LONGEST_LIST)
    except (OSError, UnicodeDecodeError):
        raise InvalidInput(
            f"--{option} {shown(text)} is neither a list of two or more (A,B,C) nor a file with one per line"
        ) from None
    names = [line.strip() for line in lines if line.strip()]
    if len(names) < 2:
        raise InvalidInput(f"--{option} {text} holds {len(names)} of the {option}; write two or more, one per line")
    return names


def parse_groups(by: str | None, text: str | None) -> tuple[str, tuple[str, ...]]:
    """Read --by and --groups: names with a comma between them (quotes as in CSV), or a file with one per line."""
    if by is None:
        raise InvalidInput("--groups names the groups of a column; name the column with --by")
    if text is None:
        raise InvalidInput(
            "--by needs the names of all groups, known beforehand: write --groups A,B,C or name a text file with one "
            "per line"
        )
    if Path(text).is_file():
        try:
            lines = read_lines(Path(text), "--groups", LONGEST_LIST)
        except (OSError, UnicodeDecodeError):
            raise InvalidInput(f"--groups {shown(text)} cannot be read as a text file in UTF-8") from None
        names = tuple(line.strip() for line in lines if line.strip())
    else:
        names = tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True), []))
    if not names or not all(names):
        raise InvalidInput(f"--groups needs names with a comma between them; got {shown(text)}")
    return by, names


def parse_values(text: str) -> tuple[str, ...]:
    """Read --values: the names of columns, a comma between them (quotes as in CSV)."""
    names = tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True), []))
    if not names or not all(names):
        raise InvalidInput(f"--values needs the names of columns with a comma between them; got {shown(text)}")
    return names


def parse_at(text: str) -> tuple[float, ...]:
    """Read --at: numbers strictly between 0 and 1, a comma between them."""
    wanted: list[float] = []
    for word in text.split(","):
        try:
            value = float(word)
        except ValueError:
            value = -1.0
        if not 0.0 < value < 1.0:
            raise InvalidInput(
                f"--at needs numbers strictly between 0 and 1 with a comma between them, such as 0.25,0.5,0.75; "
                f"got {shown(text)}"
            )
        if value in wanted:
            raise InvalidInput(f"--at names {word.strip()} twice; name each quantile once")
        wanted.append(value)
    return tuple(wanted)
