"""The commands `task draft`, `post`, `link`, `codes`: the work of organizer and operator before people answer."""

from __future__ import annotations

import contextlib
import hashlib
import math
import sys
import time
from collections import Counter
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape as plain
from rich.table import Table

from shuffledp.collection.asked import TOGETHER, WORD_CELLS
from shuffledp.collection.batch import AnalyzerKey
from shuffledp.collection.codes import code_hash, draw_codes, link_of, links_csv, qr_terminal
from shuffledp.collection.dictionary import seen_line
from shuffledp.collection.estimates import FALSE_LEVELS, JUNK, shift_of_future_junk, slopes_of, width_of
from shuffledp.collection.fields import write_time
from shuffledp.collection.group_commands import (
    beside,
    certified,
    checked_tasks,
    drafts_to_post,
    print_groups,
    write_drafts,
)
from shuffledp.collection.groups import Groups, SurveyGroup
from shuffledp.collection.kinds import Price, margins_line, margins_object, prices
from shuffledp.collection.laws import number_of_dummies, seconds_to_seal
from shuffledp.collection.lettering import LONGEST_TEMPLATE, NAMES, Kind, letters_html, links_of_csv, template_of
from shuffledp.collection.planner import (
    OFFERED,
    Choice,
    CollectionPlan,
    half_width_of,
    in_words,
    plan_collection,
    remarks_of,
    seen_at,
    sentences_of,
)
from shuffledp.collection.promise import READ, check_to_post, crowd_tells, in_100, quoted, what_is_promised
from shuffledp.collection.sealing import OVERHEAD, Opener, new_identity, new_private
from shuffledp.collection.survey import LONGEST_SURVEY, draft_of_survey, has_levels, request_of_survey, survey_groups
from shuffledp.collection.task import LONGEST_DRAFT, LONGEST_POSTED, Draft, PostedTask
from shuffledp.errors import InvalidInput, what_is_missing
from shuffledp.report.page import Axis
from shuffledp.report.to_json import dumps
from shuffledp.report.wording import count, counted, distance, near, plus_minus, probability, up
from shuffledp.shell.output import console, reserved, working, write_bytes, written
from shuffledp.whole_files import all_or_none, read_bytes

# The plan of a collection: table and sentences for the terminal, one JSON object, and a picture.

WIDTH, LEFT, RIGHT, TOP, BOTTOM, HEIGHT = 460.0, 60.0, 18.0, 26.0, 280.0, 330.0
_POINTS = 9
_BUDGETS = [epsilon0 for _, epsilon0 in OFFERED]


def plan_object(plan: CollectionPlan) -> dict[str, Any]:
    """Return the plan as a JSON object; half-widths and shifts are shares of the range.

    Parameters
    ----------
    plan : CollectionPlan
        The plan.
    """
    return {
        "questions": [
            {
                "text": choice.question.text,
                "family": choice.question.family.name,
                "dummies": choice.dummies.count,
                "law": choice.dummies.law,
                "chosen": plan.chosen,
                "limit": choice.limit,
                "levels": [
                    {
                        "epsilon0": row.epsilon0,
                        "true_in_100": 100.0 * float(row.true_share),
                        "half_width": row.half_width,
                        "junk_shift": row.junk_shift,
                    }
                    for row in choice.rows
                ],
                "mixed": choice.mixed,
                **margins_object(choice.margins),
                **({"groups": [{"people": n, "half_width": w} for n, w in choice.groups]} if choice.groups else {}),
                "cannot": choice.cannot or None,
                "columns": columns,
                **({"present_from": seen_at(plan.offer, choice)} if choice.question.words else {}),
            }
            for choice, columns in Counter(plan.choices).items()
        ],
        "people": plan.request.people,
        "shufflers": plan.request.shufflers,
        "promise": plan.request.promise,
        "delta": plan.request.delta,
        "wanted": plan.request.wanted,
        "sampling": plan.sampling,
        "chosen": plan.chosen,
    }


def print_collection_plan(console: Console, plan: CollectionPlan) -> None:
    """Print a table for each question, and the wishes that cannot be met.

    Parameters
    ----------
    console : Console
        The console to print on.
    plan : CollectionPlan
        The plan.
    """
    for choice in dict.fromkeys(plan.choices):  # the options of one question are planned alike
        console.print(_table(plan, choice))
        for sentence in sentences_of(plan, choice):
            console.print(plain(sentence), highlight=False)
    for sentence in remarks_of(plan):
        console.print(plain(sentence), highlight=False)


def _table(plan: CollectionPlan, choice: Choice) -> Table:
    request = plan.request
    kind = "a number" if not choice.question.is_share else counted(choice.question.family.records, "answer")
    kind = "each option checked or not" if choice.question.kind == "several" else kind
    if choice.question.words:
        kind = f"one of {count(choice.question.words)} words, in two columns of {count(WORD_CELLS)} cells"
    shufflers = counted(request.shufflers, "shuffler")
    title = (
        f"{choice.question.text}: {kind}, {count(request.people)} people, promise {near(request.promise)}, {shufflers}"
    )
    table = Table(title=plain(title), title_justify="left")
    true = "true in 100" if choice.question.family.is_answer else "depends on it in 100"
    headings = ("epsilon0", true, "± points" if choice.question.is_share else "±", "junk 5 % shifts")
    for heading in (*headings, "dummies a shuffler"):
        table.add_column(heading, justify="left" if heading == "epsilon0" else "right")
    offered = {epsilon0: name for name, epsilon0, _ in plan.offer.levels}  # a name is that of a level of the draft
    for row in choice.rows:
        if row.epsilon0 not in (*offered, *_BUDGETS):
            continue
        name = f"{row.epsilon0:g} {offered.get(row.epsilon0, '(not offered)')}"
        width_and_shift = [in_words(choice.question, value).split()[1] for value in (row.half_width, row.junk_shift)]
        mark = " <- chosen" if row.epsilon0 == plan.chosen else ""
        table.add_row(name + mark, in_100(row.true_share), *width_and_shift, count(row.dummies))
    return table


def plan_picture(plan: CollectionPlan) -> str:
    """Return a picture of each question's half-width at the chosen budget against the number of people.

    Parameters
    ----------
    plan : CollectionPlan
        The plan.

    Returns
    -------
    str
        An SVG file.
    """
    n = plan.request.people
    people = [max(1, round(n * 10.0 ** (step / 4.0 - 1.0))) for step in range(_POINTS)]
    first: dict[str, int] = {}
    for place, choice in enumerate(plan.choices):
        together = " together" if choice.question.kind in TOGETHER else ""
        first.setdefault(choice.question.family.name + together, place)  # questions of one family have one line
    curves = {name: _curve(plan, place, people) for name, place in first.items()}
    values = [value for curve in curves.values() for value in curve]
    x_axis = Axis(math.log10(people[0]), math.log10(max(people[-1], people[0] + 1)), LEFT, WIDTH - RIGHT)
    low, high = math.log10(max(min(values), 1e-3)) - 0.05, math.log10(max(values)) + 0.05
    y_axis = Axis(high, low, TOP, BOTTOM)
    parts = [f'<line class="axis" x1="{LEFT}" y1="{BOTTOM}" x2="{WIDTH - RIGHT}" y2="{BOTTOM}"/>']
    for value in (n // 10, n, 10 * n):
        if value >= people[0]:
            parts.append(_text(x_axis.at(math.log10(value)), BOTTOM + 18, f"{value:,}", "middle"))
    for value in (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0):
        if low <= math.log10(value) <= high:
            y = y_axis.at(math.log10(value))
            parts.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
            parts.append(_text(LEFT - 8, y + 4, f"{value:g}", "end"))
    for name, curve in curves.items():
        points = [
            (x_axis.at(math.log10(m)), y_axis.at(math.log10(max(w, 1e-3)))) for m, w in zip(people, curve, strict=True)
        ]
        parts.append(f'<path class="curve certified" d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y in points)}"/>')
        parts.append(_text(points[0][0] + 6, points[0][1] - 6, name, "start"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "people who answer", "middle"))
    parts.append(_text(LEFT, 14, "half-width, points or % of the range", "start"))
    label = f"Half-width against people at promise {plan.request.promise:g}; planned: {n:,} people"
    style = (files("shuffledp.report") / "templates" / "style.css").read_text(encoding="utf-8")
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} '
        f'{HEIGHT:.0f}" role="img" aria-label="{escape(label)}"><style>{style} svg {{ font-family: sans-serif; }}'
        f'</style><rect width="{WIDTH:.0f}" height="{HEIGHT:.0f}" fill="var(--card)"/>' + "".join(parts) + "</svg>\n"
    )


def _curve(plan: CollectionPlan, place: int, people: list[int]) -> list[float]:
    """Return half-widths of one question at the chosen budget for several numbers of people, in points."""
    choice, shufflers = plan.choices[place], plan.request.shufflers
    levels = [(("", plan.chosen, n),) for n in people]
    return [100.0 * half_width_of(choice.question, choice.dummies, each, shufflers) for each in levels]


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


_LONGEST_LINKS = 1 << 31
MANY_DUMMIES = 100_000
"""Number of dummies, over all questions, above which posting asks for consent."""
MOST_SHIFT = 0.1
"""Share of its range by which 5 % of invalid reports may shift a result; an open task beyond it is refused."""


def run_draft(survey: Path, out: Path, *, as_json: bool) -> None:
    """Write draft and key (for a survey with groups, of each group), and print promises and costs.

    Parameters are the options of ``shuffledp task draft``.
    """
    stated = survey_groups(read_bytes(survey, "the survey", LONGEST_SURVEY))
    if stated:
        _draft_groups(survey, stated, out, as_json=as_json)
        return
    files = out.with_name(out.name + ".draft"), out.with_name(out.name + ".key")
    for path in files:
        if path.exists():
            raise InvalidInput(f"{path} exists and would be lost; choose another --out or move it away")
    private, identity = new_private(), new_identity()
    with working("Computing the dummies"):
        data = read_bytes(survey, "the survey", LONGEST_SURVEY)
        draft = draft_of_survey(data, AnalyzerKey(private, identity, bytes(32)), folder=survey.parent)
        plan = None if has_levels(data) else plan_collection(request_of_survey(data, folder=survey.parent))
        floors = check_to_post(draft)
        costs = prices(draft)
    key = AnalyzerKey(private, identity, hashlib.sha256(draft.data).digest())
    with all_or_none(*files):
        write_bytes(files[1], key.document(), private=True, fresh=True)
        write_bytes(files[0], draft.data, fresh=True)
    if as_json:
        print(dumps(_draft_object(draft, floors, costs) | ({} if plan is None else {"plan": plan_object(plan)})))
        return
    if plan is not None:
        print_collection_plan(console(), plan)
    _print_draft(draft, floors, costs)
    console().print(
        f"Written: {plain(str(files[0]))} for the shuffler, {plain(str(files[1]))} for the analyzer alone. "
        "Keep the key safe: without it nobody can open the answers.",
        highlight=False,
    )


def _draft_groups(survey: Path, stated: tuple[SurveyGroup, ...], out: Path, *, as_json: bool) -> None:
    """Write the drafts and keys of all groups, and print the accuracy of each group's answers."""
    data = read_bytes(survey, "the survey", LONGEST_SURVEY)
    drafts = certified(write_drafts(data, stated, out, survey.parent))
    if as_json:
        priced = [(group, draft, floors, prices(draft, len(stated))) for group, draft, floors in drafts]
        group_objects = [{"name": dict(g.name), "people": g.people} | _draft_object(d, f, p) for g, d, f, p in priced]
        smallest = min(stated, key=lambda group: group.people).first
        print(dumps({"groups": group_objects, "smallest": smallest}))
        return
    _, draft, floors = min(drafts, key=lambda each: each[0].people)
    _print_draft(draft, floors, prices(draft, len(stated)))
    print_groups([(group, draft) for group, draft, _ in drafts], out)


def run_post(draft_file: Path, store_file: Path, out: Path | None, *, accept_shift: bool, yes: bool) -> None:
    """Certify and sign a draft, or each draft of a folder, and put it into the store.

    If very many dummies are needed, it asks for consent first. Parameters are the options of ``shuffledp task post``.
    """
    if draft_file.is_dir():
        if out is not None:
            raise InvalidInput(f"the tasks of groups are written into {draft_file}; leave --out out")
        for draft, target in drafts_to_post(draft_file):
            run_post(draft, store_file, target, accept_shift=accept_shift, yes=yes)
        console().print(f"All groups are posted; send {plain(str(draft_file))} to the organizer.", highlight=False)
        return
    from shuffledp.collection.serve import opened

    draft = Draft.parse(read_bytes(draft_file, "the draft", LONGEST_DRAFT))
    if draft.closes <= time.time():
        raise InvalidInput(f"this draft closes {write_time(draft.closes)}, which has passed; draft it with later times")
    if not accept_shift:
        _check_shift(draft)
    cost = _cost_of_closing(draft)
    if number_of_dummies(draft) > MANY_DUMMIES and not yes:
        _ask_consent(cost)
    with working("Certifying the promises"):
        floors = check_to_post(draft)
    target = draft_file.with_suffix(".task") if out is None else out
    private = new_private()
    with opened(store_file, make=True) as store, all_or_none(target):
        task = PostedTask.post(draft, Opener(private).public, store.identity())
        write_bytes(target, task.data, fresh=True)
        store.post(task, private, floors, int(time.time()))
    console().print(
        f"Posted: {plain(quoted(task.title))}, the file {plain(str(target))}, in the store {plain(str(store_file))}. "
        "Give the file to the organizer, who checks it with task link. It opens "
        f"{write_time(draft.opens)} and closes {write_time(draft.closes)}. {cost}.",
        highlight=False,
    )


def run_link(draft_file: Path, posted: Path, server: str, page: str | None) -> None:
    """Print the link to a task after checking that its draft is the organizer's; for two folders, each group's link.

    Parameters are the options of ``shuffledp task link``.
    """
    if draft_file.is_dir() or posted.is_dir():
        for group, task in checked_tasks(draft_file, posted):
            task.check_keys()
            console().print(f"{plain(group.first)}: {link_of(task, server, page=page)}", soft_wrap=True)
        console().print("People need a one-time code each: shuffledp task codes.", highlight=False)
        return
    task = PostedTask.parse(read_bytes(posted, "the task", LONGEST_POSTED))
    if task.draft.data != read_bytes(draft_file, "the draft", LONGEST_DRAFT):
        raise InvalidInput(
            f"{posted} does not hold the draft {draft_file}: the shuffler posted something else; do not invite people"
        )
    task.check_keys()
    link = link_of(task, server, page=page)
    terminal = console()
    terminal.print(link, highlight=False, soft_wrap=True)
    terminal.print(f"{plain(quoted(task.title))}, id {task.id}", highlight=False, soft_wrap=True)
    if page is not None:
        terminal.print(f"for shuffledp answer: {link_of(task, server)}", highlight=False, soft_wrap=True)
    try:
        picture = qr_terminal(link)
        picture.encode(terminal.encoding)
    except ModuleNotFoundError:  # the link is what matters
        picture = what_is_missing("A QR code", "segno")
    except UnicodeEncodeError:  # its blocks would stand there as numbers
        picture = f"This output shows no QR code: its encoding, {terminal.encoding}, lacks the blocks."
    terminal.print(picture, markup=False, highlight=False, soft_wrap=True)
    if task.has_codes:
        terminal.print("People need a one-time code each: shuffledp task codes.", highlight=False)


def run_codes(
    posted: Path,
    how_many: int | None,
    store_file: Path,
    server: str,
    page: str | None,
    links: Path | None,
    letters: Path | None,
    language: str | None,
    template: Path | None = None,
    *,
    short: bool = False,
) -> None:
    """Draw codes, write links and letters, and put the hashes into the store; for a folder, for each group.

    Parameters are the options of ``shuffledp task codes``.
    """
    from shuffledp.collection.serve import opened

    if posted.is_dir():
        groups = Groups.read(posted)
        for group in groups.groups:  # all of them are there before the first has a code
            groups.task(group)
        for group in groups.groups:
            own, printed = (None if path is None else beside(path, group) for path in (links, letters))
            number = group.people if how_many is None else how_many
            run_codes(
                groups.path(group, ".task"), number, store_file, server, page, own, printed, language, template,
                short=short,
            )  # fmt: skip
        return
    if how_many is None:
        raise InvalidInput("say how many codes: shuffledp task codes TASK COUNT; groups alone know how many they need")
    task = PostedTask.parse(read_bytes(posted, "the task", LONGEST_POSTED))
    if not task.has_codes:
        raise InvalidInput("this task is open to everybody and takes no codes; invite people with task link")
    if links is None and letters is None:
        raise InvalidInput("name a file for the codes: --links FILE.csv, --letters FILE.html, or both")
    if template is not None and letters is None:
        raise InvalidInput("a template is for letters: name their file with --letters FILE.html")
    letter = None if template is None else _template(template)
    drawn = draw_codes(how_many, short=short)
    addresses = [link_of(task, server, code, page=page) for code in drawn]
    files: list[tuple[Path, str]] = []
    if links is not None:
        files.append((links, links_csv(addresses)))
    if letters is not None:
        files.append((letters, letters_html(task, addresses, language, template=letter)))
    with opened(store_file) as store, all_or_none(*(path for path, _ in files)), contextlib.ExitStack() as named_last:
        for path, text in files:
            named_last.enter_context(written(path, private=True, fresh=True)).write(text.encode("utf-8"))
        store.add_codes(task.digest, [code_hash(code) for code in drawn])  # before anybody can send an invitation
        together = store.invited(task.digest)
    more = f" With those made before there are {count(together)}, and all are valid." if together > how_many else ""
    console().print(
        f"{counted(how_many, 'code')} for {plain(quoted(task.title))}: each lets one person answer once.{more}",
        highlight=False,
    )


def run_letter(kind: Kind, language: str, out: Path) -> None:
    """Write the default letter to a file, to be edited.

    Parameters are the options of ``shuffledp task letter``.
    """
    write_bytes(out, template_of(kind, language).encode("utf-8"), fresh=True)
    console().print(
        f"Written: {plain(str(out))}. Edit it, and name it with --template; it may name "
        f"{', '.join(NAMES)}, each between {{{{ and }}}}.",
        highlight=False,
        soft_wrap=True,
    )


def run_remind(posted: Path, links: Path, letters: Path, language: str | None, template: Path | None) -> None:
    """Write a reminder for every code, used or not; for a folder, for each group.

    Parameters are the options of ``shuffledp task remind``.
    """
    if posted.is_dir():
        groups = Groups.read(posted)
        for group in groups.groups:
            own = beside(links, group), beside(letters, group)
            run_remind(groups.path(group, ".task"), *own, language, template)
        return
    task = PostedTask.parse(read_bytes(posted, "the task", LONGEST_POSTED))
    text = read_bytes(links, "the links", _LONGEST_LINKS).decode("utf-8", "replace")
    addresses = links_of_csv(text, task)
    letter = None if template is None else _template(template)
    written_letters = letters_html(task, addresses, language, kind="reminder", template=letter)
    write_bytes(letters, written_letters.encode("utf-8"), private=True, fresh=True)
    console().print(
        f"{counted(len(addresses), 'reminder')} for {plain(quoted(task.title))}, one for every code, used or not: "
        "nobody has to find out who has answered.",
        highlight=False,
    )


def _template(path: Path) -> str:
    return read_bytes(path, "the letter", LONGEST_TEMPLATE).decode("utf-8", "replace")


def _cost_of_closing(draft: Draft) -> str:
    """Return words on the cost of the dummies when the task closes: rows, time on this machine, bytes of the batch."""
    sizes = [column.dummies.count * (column.family.report_bytes + OVERHEAD) for column in draft.columns]
    seconds = round(seconds_to_seal(draft))
    time_taken = f"about {counted(seconds, 'second')}" if seconds else "less than a second"
    return (
        f"Closing will add {counted(number_of_dummies(draft), 'dummy', 'dummies')}: {time_taken} on this machine, and "
        f"{near(sum(sizes) / 1e6, 2)} MB of the batch"
    )


def _ask_consent(cost: str) -> None:
    """Ask at a terminal whether so many dummies are wanted; refuse without a terminal."""
    if sys.stdin.isatty():
        print(f"{cost}. Post it? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            return
    raise InvalidInput(
        f"nothing was posted. {cost}; say --yes to post it all the same, or draft it with larger promises, which need "
        "fewer"
    )


def _check_shift(draft: Draft) -> None:
    """Refuse open admission where few invalid reports could shift a result far."""
    if draft.admission == "codes":
        return
    mix = [max(level.planned, 0) for level in draft.levels]
    for place in range(len(draft.questions)):
        shift = shift_of_future_junk(slopes_of(draft, place), mix if sum(mix) else [1] * len(mix), JUNK)
        if shift > MOST_SHIFT:
            raise InvalidInput(
                f"anybody may answer this task, and {JUNK:.0%} of junk could shift question {place + 1} by "
                f"{shift:.0%} of its range; ask for codes, raise the budgets, or consent with --accept-shift"
            )


def _draft_object(draft: Draft, floors: tuple[float, ...], costs: tuple[Price, ...]) -> dict[str, Any]:
    levels: list[dict[str, Any]] = []
    for place, (level, floor) in enumerate(zip(draft.levels, floors, strict=True)):
        promise = what_is_promised(draft, place)
        numbers = {"local": promise.local, "promise": level.promise, "floor": floor, "crowd": level.crowd}
        description = {"name": dict(level.name), "epsilon0": level.epsilon0, "planned": level.planned}
        levels.append(
            description | numbers | {"headline": promise.headline, "sentences": [text for _, text in promise.sentences]}
        )
    return {
        "delta": draft.delta,
        "one_hand": draft.operated_by.one_hand,
        "levels": levels,
        "questions": [
            {
                "family": question.family.name,
                "dummies": question.dummies.count,
                "law": question.dummies.law,
                "half_width": {"planned": cost.planned, "at_least": cost.at_least},
                **margins_object(cost.margins),
                "people_for_5_points": cost.for_five_points,
                "widening": cost.widening,
                "junk_shift": cost.junk_shift,
                "level_shift": {
                    f"of_{100 * share:g}_percent": shift
                    for share, shift in zip(FALSE_LEVELS, cost.level_shift, strict=True)
                },
                **({"present_from": cost.present_from} if question.kind == "dictionary" else {}),
            }
            for question, cost in zip(draft.questions, costs, strict=True)
        ],
    }


def _print_draft(draft: Draft, floors: tuple[float, ...], costs: tuple[Price, ...]) -> None:
    terminal = console()
    table = Table(title=f"Promises at delta = {probability(draft.delta)}, over all questions", title_justify="left")
    for heading in ("level", "planned", "promise", "certified", "honest crowd", "shuffler and analyzer one"):
        table.add_column(heading, justify="left" if heading == "level" else "right")
    for place, (level, floor) in enumerate(zip(draft.levels, floors, strict=True)):
        promised = what_is_promised(draft, place)
        central = (
            ("–",) * 3
            if draft.operated_by.one_hand
            else (up(level.promise), up(floor), up(level.crowd) if crowd_tells(level.crowd, level.promise) else "–")
        )
        table.add_row(plain(next(iter(level.name.values()))), count(level.planned), *central, up(promised.local))
    terminal.print(table)
    worth = Table(title="What the answers will be worth (95 % half-widths)", title_justify="left")
    for heading in (
        "question", "dummies", f"at {count(draft.planned)} people", f"at {count(draft.at_least)}",
        "people for ± 5 % of the range", "widened by dummies", "shift by 5 % junk",
    ):  # fmt: skip
        worth.add_column(heading, justify="left" if heading == "question" else "right")
    for question, cost in zip(draft.questions, costs, strict=True):
        shares = question.kind != "number"
        people = "beyond 10^9" if cost.for_five_points is None else count(cost.for_five_points)
        worth.add_row(
            plain(next(iter(question.text.values()))),
            f"{count(question.dummies.count)} {question.dummies.law}",
            *(plus_minus(width, width_of(question), shares=shares) for width in (cost.planned, cost.at_least)),
            *(people, f"× {up(cost.widening)}", distance(cost.junk_shift, shares=shares)),
        )
    terminal.print(worth)
    for question, cost in zip(draft.questions, costs, strict=True):
        sentence = seen_line(cost.present_from, draft.planned or 1) if question.kind == "dictionary" else ""
        if sentence := sentence or margins_line(cost.margins):
            terminal.print(plain(f"{quoted(next(iter(question.text.values())))}: {sentence}."), highlight=False)
    if len(draft.levels) > 1:
        _print_level_shifts(draft, costs)
    stated: set[str] = set()
    for place, level in enumerate(draft.levels):
        (_, first), *others = what_is_promised(draft, place).sentences
        name = f"Level {quoted(next(iter(level.name.values())))}: "
        promise = first.removeprefix(name)
        sentence = f"{name}the same promise." if promise in stated else first
        stated.add(promise)
        terminal.print(plain(" ".join([sentence, *(text for key, text in others if key in READ)])), highlight=False)


def _print_level_shifts(draft: Draft, costs: tuple[Price, ...]) -> None:
    """Print the effect of false counts per level, which nobody can check."""
    terminal = console()
    table = Table(title="Shift if so many people are counted at another level than theirs", title_justify="left")
    for heading in ("question", *(f"{100 * share:g} %" for share in FALSE_LEVELS)):
        table.add_column(heading, justify="left" if heading == "question" else "right")
    for question, cost in zip(draft.questions, costs, strict=True):
        table.add_row(
            plain(next(iter(question.text.values()))),
            *(distance(shift, shares=question.kind != "number") for shift in cost.level_shift),
        )
    terminal.print(table)
    terminal.print(
        "The counts per level are the shuffler's word. Levels close to each other, or one level for all, make this "
        "small.",
        highlight=False,
    )


# `task plan`: what a survey's answers will be worth, before a key is made.


def run_plan(
    survey: Path,
    people: int | None,
    promise: float | None,
    wanted: float | None,
    shufflers: int,
    figure: Path | None,
    *,
    as_json: bool,
) -> None:
    """Plan a survey, and print the plan.

    Parameters
    ----------
    survey : Path
        A survey.toml; only its questions are needed.
    people, promise, wanted, shufflers
        As for `shuffledp.collection.survey.request_of_survey`.
    figure : Path or None
        File for the picture, as SVG.
    as_json : bool
        Whether to print one JSON object and nothing else.
    """
    if figure is not None and figure.suffix.lower() != ".svg":
        raise InvalidInput(f"--figure {figure} must end in .svg; name a file such as plan.svg")
    data = read_bytes(survey, "the survey", LONGEST_SURVEY)
    request = request_of_survey(
        data, people=people, promise=promise, wanted=wanted, shufflers=shufflers, folder=survey.parent
    )
    with reserved(figure, "--figure") as stream, working("Planning"):
        plan = plan_collection(request)
        if stream is not None:
            stream.write(plan_picture(plan))
    if as_json:
        print(dumps(plan_object(plan)))
        return
    print_collection_plan(console(), plan)
    if figure is not None:
        console().print(f"Written: {figure.resolve()}", soft_wrap=True, highlight=False, markup=False)
