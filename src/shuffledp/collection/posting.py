"""`task draft`, `post`, `link`, `codes`: what organizer and operator do before people answer."""

from __future__ import annotations

import contextlib
import hashlib
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from shuffledp.collection.codes import code_hash, draw_codes, letters_html, link_of, links_csv, qr_terminal
from shuffledp.collection.dummies import number_of_dummies, seconds_to_seal
from shuffledp.collection.estimates import FALSE_LEVELS, JUNK, shift_of_future_junk, slopes_of, width_of
from shuffledp.collection.fields import write_time
from shuffledp.collection.keys import AnalyzerKey
from shuffledp.collection.plan_view import plan_object, print_collection_plan
from shuffledp.collection.planner import plan_collection
from shuffledp.collection.price import Price, prices
from shuffledp.collection.promise import check_crowd, check_floor
from shuffledp.collection.promised import READ, crowd_tells, what_is_promised
from shuffledp.collection.sealing import OVERHEAD, Opener, new_identity, new_private
from shuffledp.collection.survey import LONGEST_SURVEY, draft_of_survey, has_levels, request_of_survey
from shuffledp.collection.task import LONGEST_DRAFT, LONGEST_POSTED, Draft, PostedTask
from shuffledp.errors import InvalidInput
from shuffledp.extras import what_is_missing
from shuffledp.report.to_json import dumps
from shuffledp.report.wording import count, counted, distance, near, plus_minus, probability, up
from shuffledp.shell.files import write_bytes, written
from shuffledp.shell.output import console, working
from shuffledp.whole_files import read_bytes

MANY_DUMMIES = 100_000
"""Dummies, over all questions, above which posting asks first."""
MOST_SHIFT = 0.1
"""Shift of a result by 5 % of junk, as a share of its range, from which on an open task is refused."""


def run_draft(survey: Path, out: Path, *, as_json: bool) -> None:
    """Write draft and key, and tell what they promise and cost."""
    files = out.with_name(out.name + ".draft"), out.with_name(out.name + ".key")
    for path in files:
        if path.exists():
            raise InvalidInput(f"{path} exists and would be lost; choose another --out or move it away")
    private, identity = new_private(), new_identity()
    with working("Computing the dummies"):
        data = read_bytes(survey, "the survey", LONGEST_SURVEY)
        draft = draft_of_survey(data, AnalyzerKey(private, identity, bytes(32)))
        plan = None if has_levels(data) else plan_collection(request_of_survey(data))
        floors = check_floor(draft)
        costs = prices(draft)
    key = AnalyzerKey(private, identity, hashlib.sha256(draft.data).digest())
    with _all_or_none(*files):
        write_bytes(files[1], key.document(), private=True, fresh=True)
        write_bytes(files[0], draft.data, fresh=True)
    if as_json:
        print(dumps(_draft_object(draft, floors, costs) | ({} if plan is None else {"plan": plan_object(plan)})))
        return
    if plan is not None:
        print_collection_plan(console(), plan)
    _print_draft(draft, floors, costs)
    console().print(
        f"Written: {escape(str(files[0]))} for the shuffler, {escape(str(files[1]))} for the analyzer alone. "
        "Keep the key safe: without it nobody can open the answers.",
        highlight=False,
    )


def run_post(draft_file: Path, store_file: Path, out: Path | None, *, accept_shift: bool, yes: bool) -> None:
    """Certify and sign a draft, and put it into the store; of many dummies only with consent."""
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
        floors = check_floor(draft)
        check_crowd(draft)
    target = draft_file.with_suffix(".task") if out is None else out
    private = new_private()
    with opened(store_file, make=True) as store, _all_or_none(target):
        task = PostedTask.post(draft, Opener(private).public, store.identity())
        write_bytes(target, task.data, fresh=True)
        store.post(task, private, floors, int(time.time()))
    console().print(
        f"Posted: {escape(str(target))}, in the store {escape(str(store_file))}. Give the file to the organizer, who "
        "checks it with task link. It opens "
        f"{write_time(draft.opens)} and closes {write_time(draft.closes)}. {cost}.",
        highlight=False,
    )


def run_link(draft_file: Path, posted: Path, server: str, page: str | None) -> None:
    """Print the link to a task whose draft is the organizer's, byte for byte."""
    task = PostedTask.parse(read_bytes(posted, "the task", LONGEST_POSTED))
    if task.draft.data != read_bytes(draft_file, "the draft", LONGEST_DRAFT):
        raise InvalidInput(
            f"{posted} does not hold the draft {draft_file}: the shuffler posted something else; do not invite people"
        )
    task.check_keys()
    link = link_of(task, server, page=page)
    shown = console()
    shown.print(link, highlight=False, soft_wrap=True)
    shown.print(f"id {task.id}", highlight=False, soft_wrap=True)
    if page is not None:
        shown.print(f"for shuffledp answer: {link_of(task, server)}", highlight=False, soft_wrap=True)
    try:
        picture = qr_terminal(link)
    except ModuleNotFoundError:  # the link is what matters
        picture = what_is_missing("A QR code", "segno")
    shown.print(picture, markup=False, highlight=False, soft_wrap=True)
    if task.has_codes:
        shown.print("People need a one-time code each: shuffledp task codes.", highlight=False)


def run_codes(
    posted: Path,
    how_many: int,
    store_file: Path,
    server: str,
    page: str | None,
    links: Path | None,
    letters: Path | None,
    language: str | None,
) -> None:
    """Draw codes, write links and letters, and give the hashes to the store."""
    from shuffledp.collection.serve import opened

    task = PostedTask.parse(read_bytes(posted, "the task", LONGEST_POSTED))
    if not task.has_codes:
        raise InvalidInput("this task is open to everybody and takes no codes; invite people with task link")
    if links is None and letters is None:
        raise InvalidInput("name a file for the codes: --links FILE.csv, --letters FILE.html, or both")
    drawn = draw_codes(how_many)
    addresses = [link_of(task, server, code, page=page) for code in drawn]
    files: list[tuple[Path, str]] = []
    if links is not None:
        files.append((links, links_csv(addresses)))
    if letters is not None:
        files.append((letters, letters_html(task, addresses, language)))
    with opened(store_file) as store, _all_or_none(*(path for path, _ in files)), contextlib.ExitStack() as named_last:
        for path, text in files:
            named_last.enter_context(written(path, private=True, fresh=True)).write(text.encode("utf-8"))
        store.add_codes(task.digest, [code_hash(code) for code in drawn])  # before anybody can send an invitation
    console().print(f"{count(how_many)} codes: each lets one person answer once.", highlight=False)


@contextlib.contextmanager
def _all_or_none(*files: Path) -> Generator[None]:
    """Remove the files that a block has made if it fails later: an invitation must be known to the store."""
    there = {path for path in files if path.exists()}
    try:
        yield
    except BaseException:
        for path in files:
            if path not in there:
                path.unlink(missing_ok=True)
        raise


def _cost_of_closing(draft: Draft) -> str:
    """Say what the dummies will cost when the task closes: rows, time on this machine, and bytes of the batch."""
    sizes = [column.dummies.count * (column.family.report_bytes + OVERHEAD) for column in draft.columns]
    seconds = round(seconds_to_seal(draft))
    time_taken = f"about {counted(seconds, 'second')}" if seconds else "less than a second"
    return (
        f"Closing will add {counted(number_of_dummies(draft), 'dummy', 'dummies')}: {time_taken} on this machine, and "
        f"{near(sum(sizes) / 1e6, 2)} MB of the batch"
    )


def _ask_consent(cost: str) -> None:
    """Ask at a terminal whether so many dummies are meant; elsewhere refuse."""
    if sys.stdin.isatty():
        print(f"{cost}. Post it? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            return
    raise InvalidInput(
        f"nothing was posted. {cost}; say --yes to post it all the same, or draft it with larger promises, which need "
        "fewer"
    )


def _check_shift(draft: Draft) -> None:
    """Refuse open admission where little junk could shift a result far."""
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
        told = what_is_promised(draft, place)
        numbers = {"local": told.local, "promise": level.promise, "floor": floor, "crowd": level.crowd}
        known = {"name": dict(level.name), "epsilon0": level.epsilon0, "planned": level.planned}
        levels.append(known | numbers | {"headline": told.headline, "sentences": [text for _, text in told.sentences]})
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
                "people_for_5_points": cost.for_five_points,
                "widening": cost.widening,
                "junk_shift": cost.junk_shift,
                "level_shift": {
                    f"of_{100 * share:g}_percent": shift
                    for share, shift in zip(FALSE_LEVELS, cost.level_shift, strict=True)
                },
            }
            for question, cost in zip(draft.questions, costs, strict=True)
        ],
    }


def _print_draft(draft: Draft, floors: tuple[float, ...], costs: tuple[Price, ...]) -> None:
    shown = console()
    table = Table(title=f"Promises at delta = {probability(draft.delta)}, over all questions", title_justify="left")
    for heading in ("level", "planned", "promise", "certified", "honest crowd", "shuffler and analyzer one"):
        table.add_column(heading, justify="left" if heading == "level" else "right")
    for place, (level, floor) in enumerate(zip(draft.levels, floors, strict=True)):
        told = what_is_promised(draft, place)
        central = (
            ("–",) * 3
            if draft.operated_by.one_hand
            else (up(level.promise), up(floor), up(level.crowd) if crowd_tells(level.crowd, level.promise) else "–")
        )
        table.add_row(escape(next(iter(level.name.values()))), count(level.planned), *central, up(told.local))
    shown.print(table)
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
            escape(next(iter(question.text.values()))),
            f"{count(question.dummies.count)} {question.dummies.law}",
            *(plus_minus(width, width_of(question), shares=shares) for width in (cost.planned, cost.at_least)),
            *(people, f"× {up(cost.widening)}", distance(cost.junk_shift, shares=shares)),
        )
    shown.print(worth)
    if len(draft.levels) > 1:
        _print_level_shifts(draft, costs)
    for place in range(len(draft.levels)):
        (_, first), *others = what_is_promised(draft, place).sentences
        read = [text for key, text in others if key in READ]
        shown.print(escape(" ".join([first, *read])), highlight=False)


def _print_level_shifts(draft: Draft, costs: tuple[Price, ...]) -> None:
    """Tell what false counts per level could do: nobody can check them, so levels are chosen with this in view."""
    shown = console()
    table = Table(title="Shift if so many people are counted at another level than theirs", title_justify="left")
    for heading in ("question", *(f"{100 * share:g} %" for share in FALSE_LEVELS)):
        table.add_column(heading, justify="left" if heading == "question" else "right")
    for question, cost in zip(draft.questions, costs, strict=True):
        table.add_row(
            escape(next(iter(question.text.values()))),
            *(distance(shift, shares=question.kind != "number") for shift in cost.level_shift),
        )
    shown.print(table)
    shown.print(
        "The counts per level are the shuffler's word. Levels close to each other, or one level for all, make this "
        "small.",
        highlight=False,
    )
