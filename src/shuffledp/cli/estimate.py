"""From the options of a question, or of several (`release`), to a release: parse, one library call, one renderer."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rich.markup import escape

from shuffledp import __version__
from shuffledp.accounting import certify, drawn_profile
from shuffledp.errors import MAX_EPSILON0, InvalidInput, choice, cut_at_commas, path_shown, shown
from shuffledp.numerics.randomness import choose_random
from shuffledp.progress import Progress
from shuffledp.questions.question import Question, question_type, read_groups
from shuffledp.records.people import RowBudgets
from shuffledp.releases.margins import Margins
from shuffledp.releases.release import GroupedRelease, JointByGroup, JointRelease, Release
from shuffledp.releases.run import release
from shuffledp.releases.terms import Ask, People, Terms
from shuffledp.report.answer import Answer, title_of, view_of
from shuffledp.report.terminal import Shown, print_grouped, print_guarantees, print_release, print_weighted
from shuffledp.report.to_json import dumps, grouped_to_json, release_to_json, weighted_to_json
from shuffledp.report.wording import down, near, probability, unshuffled, up
from shuffledp.shell.estimate_options import typed_name
from shuffledp.shell.options import parse_bounds, table_options
from shuffledp.shell.output import COMMAND_LINE, console, opened_ledger, outputs, working
from shuffledp.whole_files import read_bytes, toml_table

if TYPE_CHECKING:
    import polars as pl

Typed = Mapping[str, Any]
"""The options as typed, by their Python names."""
Part = TypeVar("Part")
MOST_LOCAL = 8
"""Local budgets that are listed; of more the smallest and the largest are told."""


# The door: what was typed becomes `Ask`, `People` and `Terms`, each option in the field of its name.


def read(part: type[Part], typed: Typed, **values: Any) -> Part:
    """Return an `Ask`, `People` or `Terms` made from the typed options.

    Parameters
    ----------
    part : type
        The class to make.
    typed : mapping
        The options.
    **values
        Fields with values that are not typed options.
    """
    own = {each.name: typed_name(each.name) for each in fields(part) if each.metadata["typed"]}  # type: ignore[arg-type]
    return part(
        **{name: typed[option] for name, option in own.items() if option in typed and name not in values}, **values
    )


def read_ask(name: str, typed: Typed) -> Ask:
    """Return the question and its columns from the typed options.

    Parameters
    ----------
    name : str
        Name of the command.
    typed : mapping
        Its options.
    """
    value = parse_values(typed["values"]) if "values" in typed else typed["value"]
    options = {**typed, "dimension": len(value), "kind": typed["norm_kind"]} if "norm_kind" in typed else typed
    return read(Ask, typed, question=question_type(name).typed(options), value=value)


def read_people(typed: Typed, margins: Margins | None = None) -> People:
    """Return the table and the owners of its rows; margins name the groups where --groups does not."""
    besides: dict[str, Any] = {"consent": None, "missing_budget": None}  # they are in the budgets
    besides["where"] = parse_where(tuple(typed["where"] or ()))
    if margins is not None and typed["groups"] is None:
        from shuffledp.records.people import columns_of

        besides["groups"] = margins.crossed(columns_of(typed["by"]))
    elif typed.get("by") is not None or typed.get("groups") is not None:
        besides["groups"] = parse_groups(typed["by"], typed["groups"], weights="margins" in typed)[1]
    return read(
        People, typed, data=typed["table"], budgets=parse_budgets(typed), table_options=table_options(typed), **besides
    )


def read_terms(typed: Typed, progress: Progress, margins: Margins | None = None) -> Terms:
    """Return the terms from the typed options, with the ledger opened."""
    check_weights(typed)
    random, ledger = choose_random(typed["simulation_seed"]), opened_ledger(typed["ledger"])
    return read(Terms, typed, random=random, ledger=ledger, progress=progress, margins=margins)


def run(name: str, typed: Typed) -> None:
    """Ask a question and print the answer.

    Parameters
    ----------
    name : str
        Name of the command.
    typed : mapping
        Its options.
    """
    check_stated(typed)
    besides = Shown(
        simplex=typed.get("simplex", False),
        simultaneous=typed.get("simultaneous", False),
        bounds=typed["verbose"] or typed["bounds"] is not None,
        counts=typed.get("counts", False),
    )
    ask, margins = read_ask(name, typed), read_margins(typed)
    if typed.get("counts") and not ask.question.shape.amount:
        raise InvalidInput(
            "--counts adds the sum over all records, which is not estimated for a mean among those who answered; "
            "leave --counts out"
        )
    people = read_people(typed, margins)
    with outputs({"--report": typed["report"], "--csv": typed["csv"]}) as files:
        with working(f"Certifying, reading {typed['table'].name}, randomizing, counting") as progress:
            released = release(ask, people, read_terms(typed, progress, margins))
        released = _completed(released, typed["bounds"] == "all")
        files.write("--report", lambda page: page.write(_page(typed, released, besides, margins)))
        files.write("--csv", lambda table: table.write(_with_projected(released, besides).write_csv()))
        files.show(lambda: show(typed, released, besides, files.written, margins))


def read_margins(typed: Typed) -> Margins | None:
    """Return the margins of --margins, read before any budget is spent; they must name the groups."""
    path = typed.get("margins")
    if path is None:
        return None
    if typed["by"] is None:
        raise InvalidInput("--margins weights public groups, so it needs --by COLUMN, or several with a comma between")
    from shuffledp.records.people import Groups, columns_of
    from shuffledp.releases.margins import LONGEST, Margins
    from shuffledp.whole_files import read_bytes

    margins = Margins.parse(read_bytes(path, "the margins", LONGEST))
    columns = columns_of(typed["by"])
    names = margins.crossed(columns) if typed["groups"] is None else read_groups(typed["groups"])
    groups = Groups(typed["by"], names)
    for column, words in zip(columns, groups.words, strict=True):
        margins.of(column, [str(word) for word in dict.fromkeys(words)])
    return margins


def _with_projected(released: Release | GroupedRelease, besides: Shown) -> pl.DataFrame:
    """Return the answer as a table, with the projected shares if the screen shows them."""
    import polars as pl

    frame = released.to_frame(simultaneous=besides.simultaneous, amounts=True)
    if not besides.simplex or isinstance(released, GroupedRelease):
        return frame
    projected = view_of(released, simplex=True, simultaneous=besides.simultaneous).projected
    return frame.with_columns(pl.Series("projected", projected))


def _completed(released: Release | GroupedRelease, published: bool) -> Release | GroupedRelease:
    if isinstance(released, Release):
        return completed(released, published=published)
    return completed_groups(released, published=published)


def completed_groups(grouped: GroupedRelease, *, published: bool) -> GroupedRelease:
    """Return a grouped release in which every group's guarantee also lists all published bounds; see `completed`."""
    return GroupedRelease(
        grouped.by, {name: completed(each, published=published) for name, each in grouped.releases.items()}
    )


def completed(released: Release, *, published: bool) -> Release:
    """Return the release with every published bound in its evidence, if these are to be shown.

    The certified interval is unchanged.

    Parameters
    ----------
    released : Release
        The release of any question.
    published : bool
        Whether --bounds asks for the published bounds.
    """
    if not published:
        return released
    guarantee = certify(released.guarantee.setting, released.guarantee.delta, published=True)
    return replace(released, guarantee=guarantee)


def show(
    typed: Typed,
    released: Release | GroupedRelease,
    display: Shown,
    written: Sequence[Path],
    margins: Margins | None = None,
) -> None:
    """Print the release, as JSON or as a table with the names of the files that were written.

    Parameters
    ----------
    typed
        The options as typed.
    released
        The release.
    display
        How intervals are shown.
    written
        Paths of the files.
    margins
        The population's margins, or None.
    """
    how = {"simplex": display.simplex, "simultaneous": display.simultaneous}
    if isinstance(released, GroupedRelease):
        if typed["json"]:
            from shuffledp.report.to_json import dumps, grouped_to_json, weighted_to_json

            weighted = {} if margins is None else {"weighted": weighted_to_json(released, margins)}
            print(dumps(grouped_to_json(released, **how) | weighted))
            return
        print_grouped(console(), released, display)
    elif typed["json"]:
        from shuffledp.report.to_json import dumps, release_to_json

        print(dumps(release_to_json(released, **how)))
        return
    else:
        print_release(console(), released, display)
    tell_local(typed, list(released.releases.values()) if isinstance(released, GroupedRelease) else [released])
    if margins is not None and isinstance(released, GroupedRelease):
        print_weighted(console(), released, margins)
    for path in written:
        console().print(f"Written: {path.resolve()}", soft_wrap=True, highlight=False)


def tell_local(typed: Typed, releases: Sequence[Release]) -> None:
    """Print the local budgets that were found for a target epsilon, for each group; nothing without a target."""
    if typed["target_epsilon"] is None:
        return
    settings, wanted = [each.guarantee.setting for each in releases], near(typed["target_epsilon"])
    local = [down(budget, 6) for budget in sorted({float(e) for each in settings for e in each.budgets.epsilons})]
    lowered = releases[0].lowered  # one factor for all questions and groups
    if typed["epsilon0"] is None:
        sentence = f"Local budget found for a central epsilon of {wanted}: {local[-1]} for everybody."
    elif lowered == 1.0:
        sentence = f"The budgets of {typed['epsilon0']} stay within a central epsilon of {wanted} as they are."
    else:
        which = ", ".join(local) if len(local) <= MOST_LOCAL else f"from {local[0]} to {local[-1]}"
        sentence = (
            f"All budgets of {typed['epsilon0']} were multiplied by {down(lowered, 6)} for a central epsilon "
            f"of {wanted}: {which}."
        )
    most = max(settings, key=lambda each: each.unshuffled()[1])
    console().print(f"{sentence} {unshuffled(most)}", highlight=False, markup=False)


def _page(typed: Typed, released: Release | GroupedRelease, display: Shown, margins: Margins | None) -> str:
    from shuffledp import __version__
    from shuffledp.report.answer import grouped_parts
    from shuffledp.report.page import render
    from shuffledp.report.to_json import weighted_to_json

    value = typed["value"] if "value" in typed else ", ".join(parse_values(typed["values"]))
    by_group = isinstance(released, GroupedRelease)
    each = (
        [(f", {released.by} {name}", one) for name, one in released.releases.items()] if by_group else [("", released)]
    )
    answers = [
        Answer(
            title_of(one, value).replace("?", f"{where}?"), one.guarantee, one,
            simplex=display.simplex, simultaneous=display.simultaneous, counts=display.counts,
            profile=drawn_profile(one.guarantee),
        )
        for where, one in each
    ]  # fmt: skip
    heading = typed["title"] or ("Private estimates by group" if by_group else "A private estimate")
    weighted = weighted_to_json(released, margins) if by_group and margins is not None else None
    besides = grouped_parts(released, simultaneous=display.simultaneous, weighted=weighted) if by_group else {}
    return render(heading, answers, command=COMMAND_LINE.get(), version=__version__, **besides)


def parse_budgets(typed: Typed) -> RowBudgets | None:
    """Return the source of the budgets: one number, a column of numbers or of words; None if a target determines it."""
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
    """Return the budgets of words from the repeated option --consent WORD=E; None without one."""
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


def parse_where(texts: tuple[str, ...]) -> dict[str, list[str]] | None:
    """Return the public values from the repeated option --where COLUMN=VALUE: by column the values that were named.

    A column that is named several times has several values, of which a row needs one. None without the option.
    """
    values_by_column: dict[str, list[str]] = {}
    for text in texts:
        column, equals, value = text.partition("=")
        if not equals or not column.strip() or not value.strip():
            raise InvalidInput(f"--where must be COLUMN=VALUE, such as city=Oslo; got {shown(text)}")
        values_by_column.setdefault(column.strip(), []).append(value.strip())
    return values_by_column or None


def check_stated(typed: Typed) -> None:
    """Refuse options that nothing in the command uses.

    Parameters
    ----------
    typed : mapping
        The options.
    """
    if typed["title"] and typed["report"] is None and typed["ledger"] is None:
        raise InvalidInput("--title is that of the page and of the entry; add --report FILE.html or --ledger FILE")
    parse_bounds(typed["bounds"])


def check_weights(typed: Typed) -> None:
    """Refuse weights by precision where levels are not seen, so that there is nothing to weight."""
    if typed["weights"] == "precision" and typed["seen"] != "levels":
        got = "--seen was left out" if typed["seen"] is None else f"got --seen {typed['seen']}"
        raise InvalidInput(
            f"--weights precision weighs the reports of each budget level, so it needs --seen levels; {got}"
        )


def parse_groups(by: str | None, text: str | None, *, weights: bool = False) -> tuple[str, tuple[str, ...]]:
    """Return column and names of --by and --groups; `weights` says whether the command has --margins.

    Names are comma-separated (quotes as in CSV), or stand in a file with one per line.
    """
    if by is None:
        raise InvalidInput("--groups names the groups of a column; name the column with --by")
    if text is None:
        raise InvalidInput(
            "--by needs the names of all groups, known beforehand: write --groups A,B,C or name a text file with one "
            f"per line{' (--margins names them too)' if weights else ''}"
        )
    return by, read_groups(text)


def parse_values(text: str) -> tuple[str, ...]:
    """Return the column names of --values: comma-separated, quotes as in CSV."""
    names = cut_at_commas(text)
    if not names or not all(names):
        raise InvalidInput(f"--values needs the names of columns with a comma between them; got {shown(text)}")
    return names


LONGEST_QUESTIONS = 1 << 20
"""Largest size, in bytes, of a file of questions."""

ITEMS = ("candidates", "max_length", "alphabet", "cut", "false_positives")
KINDS = ("frequency", "crosstab", "frequent-items", "mean", "variance", "histogram", "quantiles")
"""Allowed kinds of a question in a file."""
KEYS = {"column", "text", "kind", "choices", "rows", "columns", "low", "high", "step", "bins", "at", "family",
        "mechanism", "missing_as", "other", "clip", *ITEMS}  # fmt: skip
"""Allowed keys of a question in a file; text, step and the kinds choice and number belong to surveys."""


def run_together(typed: Typed) -> None:
    """Ask the questions and print the answers.

    Parameters
    ----------
    typed : mapping
        The options.
    """
    check_stated(typed)
    asks = [] if typed["questions"] is None else read_questions(typed["questions"])
    asks += [parse_ask(text) for text in typed["ask"] or ()]
    if not asks:
        raise InvalidInput("there is no question; name a file with --questions, or ask with --ask")
    margins = read_margins(typed)
    people = read_people(typed, margins)
    with outputs({"--report": typed["report"], "--board": typed["board"]}) as files:
        with working(f"Certifying, reading {typed['table'].name}, randomizing, counting") as progress:
            joint_release = release(asks, people, read_terms(typed, progress, margins))
        files.write("--report", lambda page: page.write(_joint_page(typed, asks, joint_release, margins)))
        files.write("--board", lambda page: page.write(_board(typed, joint_release)))
        files.show(lambda: _show(typed, asks, joint_release, margins, files.written))


def _each_group(joint_release: JointRelease | JointByGroup) -> list[JointRelease]:
    """Return the releases of every group; where there are no groups those of everybody."""
    return list(joint_release.releases.values()) if isinstance(joint_release, JointByGroup) else [joint_release]


def _board(typed: Typed, joint_release: JointRelease | JointByGroup) -> str:
    from shuffledp.cli.board import board_of

    (first, epsilon), *others = [
        ([each.guarantee for each in joint.releases], joint.epsilon) for joint in _each_group(joint_release)
    ]
    several = f"{len(first)} answers" if len(first) > 1 else "One answer"
    people = "people" if typed["person"] is not None else "rows, taken as people"
    heading = typed["title"] or f"{several}, and what they promise"
    return board_of(first, epsilon, heading, people=people, others=others)


def parse_ask(text: str) -> Ask:
    """Return the question, its column, and its parameters from the text after --ask.

    Parameters
    ----------
    text : str
        Such as ``"mean hours 0 99"``; quotes keep words together.

    Raises
    ------
    InvalidInput
        If it is no question.
    """
    bad = InvalidInput(
        f'--ask must be like "frequency vote yes,no", "mean hours 0 99", "variance hours 0 99", '
        f'"histogram hours 0 100 10", "quantiles hours 0 100 0.25,0.5", "frequent-items dest 3 upper" or "crosstab '
        f'side,vote north,south yes,no"; got '
        f"{shown(text)}"
    )
    try:
        kind, column, *rest = shlex.split(text)
        question = question_type(kind).told(rest)
        ask = Ask(question, _columns_of(question, column))
        assert ask.columns
        return ask
    except ValueError as error:
        if not isinstance(error, InvalidInput) or error.parameter == "kind":
            raise bad from None
        raise InvalidInput(f"--ask {shown(text)}: {_NAMED.sub(_in_words, str(error))}") from None


_NAMED = re.compile(r"`(\w+)`|^value(?= must )")
_WORDS = {None: "it", "at": "the list of shares", "max_length": "length"}
"""Words, in the refusals of a question in words, for parameters of a call that are no options of `release`."""


def _in_words(name: re.Match[str]) -> str:
    return _WORDS.get(name[1], name[1])


def _columns_of(question: Question, columns: str | list[str]) -> str | Sequence[str]:
    """Return the column of a question, or its columns, which a text names with a comma between them."""
    return parse_values(columns) if question.column_count > 1 and isinstance(columns, str) else columns


def read_questions(path: Path) -> list[Ask]:
    """Return the ``[[questions]]`` of a TOML file; other tables, such as those of a survey, are ignored.

    Parameters
    ----------
    path : Path
        The file.

    Raises
    ------
    InvalidInput
        If the file is no TOML, or a question has other keys or values than allowed.
    """
    name = path_shown(path)
    document = toml_table(read_bytes(path, "the file of questions", LONGEST_QUESTIONS), name)
    entries = document.get("questions")
    if not isinstance(entries, list) or not entries:
        raise InvalidInput(f"{name} has no [[questions]]; write one for each question, with its column")
    return [_question(entry, f"{name}, question {place}") for place, entry in enumerate(entries, start=1)]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _question(entry: Any, where: str) -> Ask:
    table = entry if isinstance(entry, dict) else {}  # pyright: ignore[reportUnknownVariableType]
    columns = table.get("column")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if not isinstance(columns, str | list) or not all(isinstance(name, str) for name in columns):  # pyright: ignore[reportUnknownVariableType]
        raise InvalidInput(f"{where} needs its column, such as column = 'vote', or of a table ['side', 'vote']")
    options: dict[str, Any] = entry
    unknown = sorted(set(options) - KEYS)
    if unknown:
        raise InvalidInput(f"{where} says {shown(unknown[0])}, which is unknown; known are {', '.join(sorted(KEYS))}")
    kind = str(options.get("kind", "frequency" if "choices" in options else "mean"))
    kind = {"choice": "frequency", "number": "mean", "table": "crosstab"}.get(kind, kind)
    try:
        choice(kind, "kind", KINDS)
        if "choices" in options:
            options = {**options, "categories": [_first(choice) for choice in options["choices"]]}
        options = {
            **options,
            **{name: [_first(text) for text in options[name]] for name in ("rows", "columns") if name in options},
        }
        question = question_type(kind).typed(options)
        family = options.get("mechanism", options.get("family"))
        mechanism = None if family is None else str(family).partition(":")[0]
        return Ask(
            question,
            _columns_of(question, columns),
            mechanism,
            options.get("missing_as"),
            options.get("other"),
            bool(options.get("clip")),
        )
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from None


def _first(text: Any) -> Any:
    """Return a text or, of a text in several languages, the first."""
    return next(iter(text.values())) if isinstance(text, dict) and text else text  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType, reportUnknownArgumentType]


def _together(joint_release: JointRelease | JointByGroup) -> str:
    several = len(_each_group(joint_release)[0].releases)
    which = "The one answer" if several == 1 else f"All {several} answers together"
    whose = f", the number of the group {joint_release.worst}" if isinstance(joint_release, JointByGroup) else ""
    return (
        f"{which}: central epsilon at most {up(joint_release.epsilon)} at delta = "
        f"{probability(joint_release.delta)}{whose}, certified before a record was read."
    )


def _show(
    typed: Typed,
    asks: Sequence[Ask],
    joint_release: JointRelease | JointByGroup,
    margins: Margins | None,
    written: Sequence[Path],
) -> None:
    joints = _each_group(joint_release)
    if typed["json"]:
        together = {
            "epsilon": {"upper": joint_release.epsilon},
            "delta": joint_release.delta,
            "levels": [
                {"epsilon0": level.epsilon0, "epsilon": {"upper": level.epsilon}} for level in joint_release.levels
            ],
        }
        print(dumps({"question": "release", "private": joints[0].releases[0].private, "together": together,
                     "releases": _listed(asks, joint_release, margins)}))  # fmt: skip
        return
    published = typed["bounds"] == "all"
    besides = Shown(bounds=typed["verbose"] or typed["bounds"] is not None, counts=typed["counts"])
    out = console()
    out.print(f"[bold]{escape(_together(joint_release))}[/]", highlight=False)
    for level in joint_release.levels if len(joint_release.levels) > 1 else ():
        out.print(f"  people of budget {level.epsilon0:g}: at most {up(level.epsilon)}", highlight=False)
    printed = set[str]()
    for place, (ask, each) in enumerate(zip(asks, joints[0].releases, strict=True)):
        out.print()
        out.print(f"[bold]{escape(title_of(each, ask.called))}[/]", highlight=False)
        if isinstance(joint_release, JointByGroup):
            grouped = joint_release.questions[place]
            print_grouped(out, grouped, besides, printed)
            if margins is not None:
                print_weighted(out, grouped, margins, printed)
        else:
            print_release(out, each, besides, printed)
    worst = joint_release.releases[joint_release.worst] if isinstance(joint_release, JointByGroup) else joint_release
    names = [f"{each.question.name} {ask.called}" for ask, each in zip(asks, worst.releases, strict=True)]
    answers = [(name, completed(each, published=published)) for name, each in zip(names, worst.releases, strict=True)]
    out.print()
    print_guarantees(out, answers, worst.epsilon, worst.delta, bounds=besides.bounds)
    tell_local(typed, [joint.releases[0] for joint in joints])
    for path in written:
        out.print(f"Written: {path.resolve()}", soft_wrap=True, highlight=False)


def _listed(
    asks: Sequence[Ask], joint_release: JointRelease | JointByGroup, margins: Margins | None
) -> list[dict[str, Any]]:
    """Return the object of each question."""
    if isinstance(joint_release, JointRelease):
        return [
            {"column": ask.called, **release_to_json(each)}
            for ask, each in zip(asks, joint_release.releases, strict=True)
        ]
    listed: list[dict[str, Any]] = []
    for ask, grouped in zip(asks, joint_release.questions, strict=True):
        weighted = {} if margins is None else {"weighted": weighted_to_json(grouped, margins)}
        listed.append({"column": ask.called, **grouped_to_json(grouped), **weighted})
    return listed


def _joint_page(
    typed: Typed, asks: Sequence[Ask], joint_release: JointRelease | JointByGroup, margins: Margins | None
) -> str:
    from shuffledp.report.answer import Answer, grouped_parts
    from shuffledp.report.page import render

    overview: list[Any] = []
    titled_releases: list[tuple[str, Release]] = []
    if isinstance(joint_release, JointRelease):
        titled_releases = [
            (title_of(each, ask.called), each) for ask, each in zip(asks, joint_release.releases, strict=True)
        ]
    else:
        for ask, grouped in zip(asks, joint_release.questions, strict=True):
            weighted = None if margins is None else weighted_to_json(grouped, margins)
            titles = {name: title_of(each, ask.called) for name, each in grouped.releases.items()}
            title = f"All groups: {next(iter(titles.values()))}"
            overview += grouped_parts(grouped, weighted=weighted, title=title)["overview"]
            titled_releases += [
                (titles[name].replace("?", f", {joint_release.by} {name}?"), each)
                for name, each in grouped.releases.items()
            ]
    answers = [
        Answer(title, each.guarantee, each, counts=typed["counts"], profile=drawn_profile(each.guarantee))
        for title, each in titled_releases
    ]
    return render(
        typed["title"] or "Private estimates",
        answers,
        command=COMMAND_LINE.get(),
        version=__version__,
        remark=_together(joint_release),
        overview=overview,
    )
