r"""A survey with groups: `task draft`, `post`, `link`, `codes` and `open`, the same for each group, in one folder.

`open` makes one release a group, and one page that shows the groups side by side: their answers, and which two differ.

**Intervals hold together, question by question**: each of G groups and k answers has the level 1 - 5 %/(G k), by
Bonferroni's inequality; each of the G (G - 1)/2 differences of k answers the level 1 - 5 %/(k G (G - 1)/2).

**A difference** of two independent estimates a and b with intervals (a_1, a_2) and (b_1, b_2) of one level has the
interval from a - b - sqrt((a - a_1)^2 + (b_2 - b)^2) to a - b + sqrt((a_2 - a)^2 + (b - b_1)^2) (Zou and Donner 2008,
"MOVER"). For normal errors this is exact; where errors have exponential tails, as those of dummies have, it is too wide
rather than too short, for a sum of two of them exceeds sqrt(2) times the same quantile less often.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape
from rich.table import Table

from shuffledp import __version__
from shuffledp.collection.analyzer import Opened, check_openable, enter_batches, open_batch
from shuffledp.collection.asked import SurveyQuestion
from shuffledp.collection.batch import LONGEST_KEY, AnalyzerKey, Batch, read_batch
from shuffledp.collection.codes import response
from shuffledp.collection.groups import MANIFEST, Group, Groups, SurveyGroup
from shuffledp.collection.kinds import half_width
from shuffledp.collection.promise import check_floor, in_language, quoted, what_is_promised
from shuffledp.collection.release import write_release
from shuffledp.collection.release_page import (
    collection_checklist,
    could_be_read,
    in_each_group,
    people_in_words,
    release_document,
    spoken_in,
    translation_of,
    who_in_words,
    words_of,
)
from shuffledp.collection.sealing import new_identity, new_private
from shuffledp.collection.survey import draft_of_survey
from shuffledp.collection.task import Draft, PostedTask
from shuffledp.errors import InvalidInput
from shuffledp.numerics.floats import FloatArray
from shuffledp.questions.estimate import Estimate
from shuffledp.questions.question import CONFIDENCE, AnswerLine
from shuffledp.report import wording
from shuffledp.report.answer import tells_nothing
from shuffledp.report.page import page_template
from shuffledp.report.to_json import dumps
from shuffledp.report.wording import SAYS_NOTHING, count, counted, points, share, with_error
from shuffledp.shell.output import COMMAND_LINE, Entered, console, reserved, working, write_bytes
from shuffledp.whole_files import read_bytes


@dataclass(frozen=True)
class Cell:
    """One answer's estimate in one group, or the difference between two groups.

    Parameters
    ----------
    value, low, high : float
        A share or a mean, and its interval, which holds together with the others of its question.
    says_nothing : bool
        Whether the interval covers the range of what is possible, or reaches further to a side than half of it.
    """

    value: float
    low: float
    high: float
    says_nothing: bool = field(default=False, repr=False, kw_only=True)

    @property
    def excludes_zero(self) -> bool:
        """Whether 0 is outside the interval."""
        return self.low > 0.0 or self.high < 0.0


@dataclass(frozen=True)
class Compared:
    """One quantity of a question in all groups: the share of one answer, or a mean.

    Parameters
    ----------
    label : str
        The answer; "mean" for a mean.
    shares : bool
        Whether it is a share.
    groups : tuple of Cell
        One for each group.
    differences : tuple of (int, int, Cell)
        Indices of two groups, and the value of the first less that of the second.
    """

    label: str
    shares: bool
    groups: tuple[Cell, ...]
    differences: tuple[tuple[int, int, Cell], ...]


def compare(opened: Sequence[Opened], place: int) -> list[Compared]:
    """Return the groups' answers to one question, with the differences of every two groups.

    Parameters
    ----------
    opened : sequence of Opened
        One for each group, with the same questions.
    place : int
        Index of the question, from 0.
    """
    question = opened[0].batch.task.draft.questions[place]
    comparisons: list[Compared] = []
    if question.choices:
        labels = [next(iter(choice.values())) for choice in question.choices]
        comparisons += _compared([each.releases[place].analysis for each in opened], labels, shares=True)
    means = _means(opened, question, place)
    return comparisons + (_compared(means, ["mean"], shares=False) if means else [])


def _means(opened: Sequence[Opened], question: SurveyQuestion, place: int) -> list[Estimate]:
    if not question.choices:
        return [each.releases[place].analysis for each in opened]
    return [mean for each in opened if (mean := each.more[place].mean) is not None]


def _compared(estimates: Sequence[Estimate], labels: Sequence[str], *, shares: bool) -> list[Compared]:
    groups, k = len(estimates), len(labels)
    pairs = list(combinations(range(groups), 2))
    miss = 1.0 - CONFIDENCE
    own = [_columns(estimate, 1.0 - miss / (groups * k)) for estimate in estimates]
    wider = [_columns(estimate, 1.0 - miss / (len(pairs) * k)) for estimate in estimates]
    return [
        Compared(
            label,
            shares,
            tuple(_cell(each[:, j], estimate.support) for each, estimate in zip(own, estimates, strict=True)),
            tuple((one, two, difference(wider[one][:, j], wider[two][:, j])) for one, two in pairs),
        )
        for j, label in enumerate(labels)
    ]


def _cell(numbers: FloatArray, support: tuple[float, float]) -> Cell:
    value, low, high = numbers.tolist()
    return Cell(value, low, high, says_nothing=tells_nothing(AnswerLine("", value, 0.0, low, high), support))


def _columns(estimate: Estimate, level: float) -> FloatArray:
    """Return value, low and high end of each target, shape (3, k); the value is first clipped to the range."""
    low, high = estimate.confidence_interval(level)
    value = np.clip(estimate.value, *estimate.support)
    return np.stack([np.atleast_1d(np.asarray(each, dtype=np.float64)) for each in (value, low, high)])


def difference(one: FloatArray, two: FloatArray) -> Cell:
    """Return the first estimate less the second; each is (value, low end, high end), with intervals of one level.

    Examples
    --------
    >>> import numpy as np
    >>> difference(np.array([0.5, 0.47, 0.53]), np.array([0.3, 0.26, 0.34]))
    Cell(value=0.2, low=0.15, high=0.25)
    """
    apart = float(one[0] - two[0])
    down, up = float(np.hypot(one[0] - one[1], two[2] - two[0])), float(np.hypot(one[2] - one[0], two[0] - two[1]))
    return Cell(*(round(each, 12) for each in (apart, apart - down, apart + up)))


def to_json(names: Sequence[str], opened: Sequence[Opened]) -> list[dict[str, Any]]:
    """Return one object for each question: every answer in every group, and the differences of every two groups.

    Parameters
    ----------
    names : sequence of str
        Names of the groups.
    opened : sequence of Opened
        One for each group.
    """
    return [
        {"text": next(iter(question.text.values())), "kind": question.kind}
        | {"answers": [_object(names, each) for each in compare(opened, place)]}
        for place, question in enumerate(opened[0].batch.task.draft.questions)
    ]


def _object(names: Sequence[str], compared: Compared) -> dict[str, Any]:
    groups = [{"group": name} | _numbers(cell) for name, cell in zip(names, compared.groups, strict=True)]
    apart = [{"of": names[one], "minus": names[two]} | _numbers(cell) for one, two, cell in compared.differences]
    return {"answer": compared.label, "share": compared.shares, "groups": groups, "differences": apart}


def _numbers(cell: Cell) -> dict[str, Any]:
    return {"estimate": cell.value, "confidence_interval": [cell.low, cell.high]}


HEADINGS = ("answer", "group", "people", "estimate", f"{CONFIDENCE:.0%} interval, all together")


def rows(names: Sequence[str], opened: Sequence[Opened], place: int) -> Iterator[list[str]]:
    """Yield the rows of a question's table, whose headings are `HEADINGS`: one for each answer and group.

    Parameters
    ----------
    names : sequence of str
        Names of the groups.
    opened : sequence of Opened
        The opened batch of each group.
    place : int
        Index of the question, from 0.
    """
    people = [count(each.batch.manifest.n) for each in opened]
    for compared in compare(opened, place):
        label = compared.label
        for name, number, cell in zip(names, people, compared.groups, strict=True):
            yield [label, name, number, *_words(cell, shares=compared.shares)]
            label = ""


def differ(names: Sequence[str], opened: Sequence[Opened], place: int) -> str:
    """Return a sentence that names the groups whose answers to one question differ, and by how much.

    Parameters
    ----------
    names : sequence of str
        Names of the groups.
    opened : sequence of Opened
        The opened batch of each group.
    place : int
        Index of the question, from 0.
    """
    differences = [
        f"{compared.label}: “{names[one]}” minus “{names[two]}” {_apart(cell, shares=compared.shares)}"
        for compared in compare(opened, place)
        for one, two, cell in compared.differences
        if cell.excludes_zero
    ]
    listing = "; ".join(differences) or "none that this survey can tell"
    return f"Groups that differ (all differences of the question hold together at {CONFIDENCE:.0%}): {listing}."


def _words(cell: Cell, *, shares: bool) -> tuple[str, str]:
    numbers = (cell.value, cell.low, cell.high)
    if shares:
        value, low, high = map(share, numbers)
    else:
        value, low, high = (with_error(each, (cell.high - cell.low) / 4.0 or 1.0) for each in numbers)
    return value, SAYS_NOTHING if cell.says_nothing else f"{low} to {high}"


def _apart(cell: Cell, *, shares: bool) -> str:
    if shares:
        return f"{points(cell.low)} to {points(cell.high)}"
    low, high = (with_error(each, (cell.high - cell.low) / 4.0 or 1.0) for each in (cell.low, cell.high))
    return f"{low} to {high}"


KEYS = ".keys"
"""Suffix of the folder that the analyzer keeps."""


def write_drafts(
    survey: bytes, stated: tuple[SurveyGroup, ...], out: Path, folder: Path
) -> list[tuple[SurveyGroup, Draft]]:
    """Write a draft and a key for each group, in two folders: one for the shuffler, one for the analyzer alone.

    Parameters
    ----------
    survey : bytes
        The survey's TOML.
    stated : tuple of SurveyGroup
        Its groups.
    out : Path
        The folder of drafts; that of keys is beside it.
    folder : Path
        The folder of the survey, in which a file of words is read.
    """
    folders = out, out.with_name(out.name + KEYS)
    for folder in folders:
        if folder.exists():
            raise InvalidInput(f"{folder} exists and would be lost; choose another --out or move it away")
    drafts: list[Draft] = []
    keys: list[AnalyzerKey] = []
    with working("Computing the dummies"):
        for group in stated:
            private, identity = new_private(), new_identity()
            draft = draft_of_survey(survey, AnalyzerKey(private, identity, bytes(32)), group, folder)
            drafts.append(draft)
            keys.append(AnalyzerKey(private, identity, hashlib.sha256(draft.data).digest()))
    made = Groups.of(out, stated, [draft.data for draft in drafts])
    folders[1].mkdir(mode=0o700)
    folders[0].mkdir()
    for group, draft, key in zip(made.groups, drafts, keys, strict=True):
        write_bytes(folders[1] / f"{group.file}.key", key.document(), private=True, fresh=True)
        write_bytes(made.path(group, ".draft"), draft.data, fresh=True)
    for folder in folders:
        write_bytes(folder / MANIFEST, made.document(), fresh=True)
    return list(zip(stated, drafts, strict=True))


def certified(drafts: list[tuple[SurveyGroup, Draft]]) -> list[tuple[SurveyGroup, Draft, tuple[float, ...]]]:
    """Certify every group's promises; return for each group (group, draft, certified floor of each level in nats)."""
    with working("Certifying the promises"):
        return [(group, draft, check_floor(draft)) for group, draft in drafts]


def print_groups(drafts: list[tuple[SurveyGroup, Draft]], out: Path) -> None:
    """Print for each group how many people are invited and its widest interval, and name the smallest group.

    Parameters
    ----------
    drafts : list of (SurveyGroup, Draft)
        The groups, and the draft of each.
    out : Path
        The folder that was written, which is named at the end.
    """
    from shuffledp.collection.estimates import width_of
    from shuffledp.report.wording import plus_minus

    terminal = console()
    table = Table(title="Groups: each is shuffled by itself, under the same promise", title_justify="left")
    for heading in ("group", "invited", "least precise answer if all of them answer"):
        table.add_column(heading, justify="left" if heading == "group" else "right")
    for group, draft in drafts:
        counts = [level.planned for level in draft.levels]
        widths = [half_width(draft, place, counts, len(drafts)) for place in range(len(draft.questions))]
        worth = [(width / (width_of(question) or 1.0), width, question)
                 for question, width in zip(draft.questions, widths, strict=True)]  # fmt: skip
        _, width, question = max(worth, key=lambda each: each[0])
        shares = question.kind != "number"
        worst = f"{plus_minus(width, width_of(question), shares=shares)} ({next(iter(question.text.values()))})"
        table.add_row(escape(group.first), count(group.people), escape(worst))
    terminal.print(table)
    smallest = min((group for group, _ in drafts), key=lambda group: group.people)
    terminal.print(
        f"The smallest group is {escape(smallest.first)}, {counted(smallest.people, 'person', 'people')}: look at its "
        "line before you invite anybody. Its answers are the least precise; its people are promised the same. Every "
        "± is of the intervals that open prints side by side: those of all groups hold together, question by question.",
        highlight=False,
    )
    terminal.print(
        f"Written: {escape(str(out))} for the shuffler, {escape(str(out) + KEYS)} for the analyzer alone. "
        "Keep the keys safe: without them nobody can open the answers.",
        highlight=False,
    )


def drafts_to_post(folder: Path) -> list[tuple[Path, Path]]:
    """Return draft and task file of every group that is not posted yet.

    Parameters
    ----------
    folder : Path
        The folder from `write_drafts`, as the organizer sent it.
    """
    groups = Groups.read(folder)
    unposted: list[tuple[Path, Path]] = []
    for group in groups.groups:
        groups.draft(group)
        if groups.path(group, ".task").exists():
            groups.task(group)
        else:
            unposted.append((groups.path(group, ".draft"), groups.path(group, ".task")))
    if not unposted:
        raise InvalidInput(f"all groups of {folder} are posted; send the folder to the organizer, who runs task link")
    return unposted


def checked_tasks(own: Path, posted: Path) -> list[tuple[Group, PostedTask]]:
    """Return each group's task, refused unless the shuffler posted the organizer's own draft, byte for byte.

    Parameters
    ----------
    own : Path
        The organizer's folder, of drafts or of keys.
    posted : Path
        The folder that the shuffler sent back.
    """
    own_groups, posted_groups = Groups.read(own), Groups.read(posted)
    if own_groups.groups != posted_groups.groups:
        raise InvalidInput(
            f"{posted} does not hold the groups of {own}: the shuffler posted something else; do not invite people"
        )
    return [(group, posted_groups.task(group)) for group in own_groups.groups]


def beside(path: Path, group: Group) -> Path:
    """Return the path of one group's own file beside ``path``: for ``codes.csv`` it is ``codes-01-kitchen.csv``."""
    return path.with_name(f"{path.stem}-{group.file}{path.suffix}")


def key_of_group(batch: Path, keys: Path) -> str:
    """Return what to type where the folder of keys was given beside one batch.

    Parameters
    ----------
    batch : Path
        The batch's file.
    keys : Path
        A folder.
    """
    what = f"--key {keys} is a folder and {batch} one batch"
    if not (keys / MANIFEST).is_file():
        return f"{what}; name the .key file that task draft wrote"
    draft = _sha256(read_batch(batch).task.draft.data)
    groups = Groups.read(keys)
    own = next((groups.path(group, ".key") for group in groups.groups if group.draft_sha256 == draft), None)
    if own is None:
        return f"{what} of none of its groups; name the .key file that belongs to it"
    return (
        f"{what}: open the groups together, shuffledp open {batch.parent} --key {keys}, or this one by itself, "
        f"shuffledp open {batch} --key {own}"
    )


ONE_EACH = (
    "Each group was shuffled by itself among dummies of its own, and everybody was invited in one group, so the "
    "promise holds for each person whatever the group. Which group somebody belongs to is not protected."
)


def run_open_groups(
    folder: Path, keys: Path, out: Path | None, report: Path | None, entered: Entered, *, as_json: bool
) -> None:
    """Open every batch of a folder, write a release for each, and print the groups side by side.

    Parameters
    ----------
    folder, keys : Path
        Folder of the batches, and folder of the groups' keys.
    out : Path or None
        Folder for the releases; None: that of the batches.
    report : Path or None
        HTML page to write.
    entered : Entered
        The ledger options; a ledger enters all groups as one release, before a row is opened.
    as_json : bool
        Whether to print JSON.
    """
    if not keys.is_dir():
        raise InvalidInput(
            f"{folder} is a folder, so --key must be the folder of keys that task draft wrote; got {keys}"
        )
    groups = Groups.read(keys)
    target = folder if out is None else out
    with reserved(report, "--report") as page:
        with working("Opening the batches"):
            batches = _batches(folder, groups)
            newly = _enter(batches, entered)
            opened = [(group, key, open_batch(batch, key)) for group, key, batch in batches]
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
        for group, key, each in opened:
            release = write_release(release_document(each), each.batch.task, key.identity)
            write_bytes(target / f"{group.file}.release", release)
        names, every = [group.first for group, _, _ in opened], [each for _, _, each in opened]
        missing = [group for group in groups.groups if group.first not in names]
        if page is not None:
            page.write(groups_page([group for group, _, _ in opened], every, missing, command=COMMAND_LINE.get()))
    if as_json:
        releases = [
            {"group": group.first, "id": each.batch.task.id, "people": each.batch.manifest.n}
            | {"promise_kept": each.promise_kept, "release": str(target / f"{group.file}.release")}
            for group, _, each in opened
        ]
        print(
            dumps(
                {"groups": releases, "compared": to_json(names, every), "missing": [group.first for group in missing]}
            )
        )
        return
    _print(names, every, missing, target)
    if newly is not None:
        console().print(escape(_entered(newly, len(every), entered)), highlight=False, soft_wrap=True)


def _enter(batches: list[tuple[Group, AnalyzerKey, Batch]], entered: Entered) -> int | None:
    """Enter the batches of all groups in the ledger as one release; return how many of them are entered now."""
    for group, key, batch in batches:
        try:
            check_openable(batch, key)
        except InvalidInput as error:
            raise InvalidInput(f"{group.first}: {error}") from None
    survey = _survey_title(batches[0][0].first, batches[0][2].task.draft)
    return enter_batches([batch for *_, batch in batches], **entered.arguments(), survey=survey)


def _entered(newly: int, groups: int, entered: Entered) -> str:
    """Return a sentence on what the ledger entered."""
    if not newly:
        return f"Entered before in the ledger {entered.ledger}; the same batches cost nothing more."
    which = "all groups" if newly == groups else f"the {count(newly)} of {count(groups)} groups that were not in it"
    return (
        f"Entered in the ledger {entered.ledger}: one entry for {which}, with the cost of the group in which answering "
        "costs most, because nobody is in two groups."
    )


def _survey_title(group: str, draft: Draft) -> str:
    """Return the survey's title, from the title of one group and the group's name."""
    return next(iter(draft.title.values())).removesuffix(f": {group}")


def _batches(folder: Path, groups: Groups) -> list[tuple[Group, AnalyzerKey, Batch]]:
    """Return group, key and batch of each group whose batch is in the folder, in the order of the groups."""
    by_draft: dict[bytes, Batch] = {}
    for path in sorted(folder.glob("*.batch")):
        batch = read_batch(path)
        by_draft[batch.task.draft.data] = batch
    batches: list[tuple[Group, AnalyzerKey, Batch]] = []
    for group in groups.groups:
        key = AnalyzerKey.parse(read_bytes(groups.path(group, ".key"), "the key", LONGEST_KEY))
        if key.draft_sha256 != group.draft_sha256:
            raise InvalidInput(f"{groups.path(group, '.key')} is not the key of {group.first}; put the file back")
        own = next((batch for data, batch in by_draft.items() if _sha256(data) == group.draft_sha256), None)
        if own is not None:
            batches.append((group, key, own))
    if len(batches) < 2:
        raise InvalidInput(
            f"{folder} holds the batches of {len(batches)} of these {len(groups.groups)} groups, and it takes two to "
            "compare; put the batches of the groups there, or open one by itself with its own key"
        )
    check_one_survey([(group, batch.task.draft) for group, _, batch in batches])
    return batches


def check_one_survey(drafts: Sequence[tuple[Group, Draft]]) -> None:
    """Refuse drafts of different surveys: somebody may have answered both, and one entry would count one of them.

    Parameters
    ----------
    drafts : sequence of (Group, Draft)
        The groups that are opened together, and the draft of each.

    Raises
    ------
    InvalidInput
        If their titles without the groups' names, their organizers, times, delta or questions differ.
    """
    surveys = {_survey_of(group, draft) for group, draft in drafts}
    if len(surveys) > 1:
        raise InvalidInput(
            f"{drafts[0][0].first} and other batches there are not groups of one survey, so one person may have "
            "answered several of them; open each by itself with its own key"
        )


def _survey_of(group: Group, draft: Draft) -> str:
    """Return what the groups of a survey have in common: its title without the group's name, and what is asked."""
    title = {name: text.removesuffix(f": {group.name.get(name, group.first)}") for name, text in draft.title.items()}
    questions = [(dict(each.text), each.kind, [dict(choice) for choice in each.choices]) for each in draft.questions]
    return repr((title, draft.organizer, draft.delta, draft.opens, draft.closes, questions))


def _sha256(data: bytes) -> bytes:
    import hashlib

    return hashlib.sha256(data).digest()


def _in(groups: list[Group], every: list[Opened], missing: list[Group], language: str) -> dict[str, Any]:
    """Return what the page says in one language of the survey."""
    draft, words = every[0].batch.task.draft, words_of(language)
    names = [in_language(group.name, language) for group in groups]
    people, made = (sum(each.batch.manifest.n for each in every), [each.batch.manifest.codes for each in every])
    absent = ", ".join(quoted(in_language(group.name, language), language) for group in missing)
    return {
        "language": language,
        "name": words["name"],
        "title": in_language(draft.title, language).removesuffix(f": {names[0]}"),
        "result": words["resultTitle"],
        "asks": words["asks"].format(organizer=quoted(draft.organizer, language)),
        "people": people_in_words(people, sum(n or 0 for n in made) if all(made) else None, words, language),
        "one_each": words["oneEach"],
        "missing": words["missing"].format(names=absent) if absent else "",
        "sizes": {
            "headings": [words["group"], words["resultPeople"]],
            "rows": [
                [name, translation_of(language).count(each.batch.manifest.n)]
                for name, each in zip(names, every, strict=True)
            ],
            "remark": "",
        },
        "questions": [_question_in(names, every, place, language) for place in range(len(draft.questions))],
        "sure": words["groupsSure"].format(confidence=round(100 * CONFIDENCE)),
        "kept": words["resultKept" if all(each.promise_kept for each in every) else "resultNotKept"],
        "who": who_in_words(draft, words, language),
        "rest": words["groupsRest"],
        "words": translation_of(language),
        "promises": in_each_group(
            names, [_promises(each.batch.task.draft, language) for each in every], translation_of(language)
        ),
        "ids": [(name, each.batch.task.id) for name, each in zip(names, every, strict=True)],
        "checklist": collection_checklist(*every, names=names, words=translation_of(language)),
    }


def _question_in(names: list[str], every: list[Opened], place: int, language: str) -> dict[str, Any]:
    """Return text, numbers and differences of one question in one language."""
    question, words = every[0].batch.task.draft.questions[place], words_of(language)
    comparisons = compare(every, place)
    labels = [in_language(choice, language) for choice in question.choices]
    labels += [words["mean"]] * (len(comparisons) - len(labels))  # of a number or a scale
    answers: list[dict[str, Any]] = []
    apart: list[str] = []
    for label, compared in zip(labels, comparisons, strict=True):
        rows: list[list[str]] = []
        for name, cell in zip(names, compared.groups, strict=True):
            value, low, high = _numbers_in(cell, compared.shares, language)
            unit = "\N{NO-BREAK SPACE}%" if compared.shares else ""
            ends = translation_of(language)(SAYS_NOTHING) if cell.says_nothing else f"{low} – {high}{unit}"
            rows.append([name, value + unit, ends])
        answers.append({"answer": label, "rows": rows})
        key = "resultLess" if compared.shares else "groupsLess"
        for one, two, cell in compared.differences:
            if cell.excludes_zero:
                value, low, high = _numbers_in(cell, compared.shares, language)
                pair = {"one": quoted(names[one], language), "two": quoted(names[two], language)}
                apart.append(words[key].format(answer=label, value=value, low=low, high=high, **pair))
    return {
        "text": in_language(question.text, language),
        "headings": [words[key] for key in ("group", "estimate", "range")],
        "answers": answers,
        "differ": words["groupsDiffer"].format(pairs="; ".join(apart) or words["resultNone"]),
    }


def _numbers_in(cell: Cell, shares: bool, language: str) -> list[str]:
    """Return value, low and high end as a language writes them: of shares in points, of numbers in their own unit."""
    numbers = (cell.value, cell.low, cell.high)
    if shares:
        return [translation_of(language).number(f"{100.0 * each:z.1f}") for each in numbers]
    return [translation_of(language).number(with_error(each, (cell.high - cell.low) / 4.0 or 1.0)) for each in numbers]


def _missing(missing: list[Group]) -> str:
    names = ", ".join(f"{group.first} ({wording.count(group.people)} invited)" for group in missing)
    return f"No batch was handed over of: {names}." if missing else ""


def _response(every: list[Opened]) -> str:
    """Return how many codes of all groups were used; empty unless every group's shuffler said how many there are."""
    made = [each.batch.manifest.codes or 0 for each in every]
    return response(sum(each.batch.manifest.n for each in every), sum(made)) if all(made) else ""


def _kept(every: list[Opened]) -> str:
    kept = all(each.promise_kept for each in every)
    return "Every promise is kept." if kept else "A PROMISE IS NOT KEPT; open that group's batch by itself."


def _print(names: list[str], every: list[Opened], missing: list[Group], target: Path) -> None:
    terminal = console()
    for place, question in enumerate(every[0].batch.task.draft.questions):
        table = Table(title=escape(next(iter(question.text.values()))), title_justify="left")
        for heading in HEADINGS:
            table.add_column(heading, justify="left" if heading in HEADINGS[:2] else "right")
        for row in rows(names, every, place):
            table.add_row(*map(escape, row))
        terminal.print(table)
        terminal.print(escape(differ(names, every, place)), highlight=False)
    for sentence in (_response(every), _missing(missing), ONE_EACH, _kept(every)):
        if sentence:
            terminal.print(escape(sentence), highlight=False)
    terminal.print(f"Written: a release of each group in {escape(str(target))}.", highlight=False, soft_wrap=True)


_PROMISED = ("headline_floor", "headline_local", "together")
"""Keys of the sentences of a promise that the page of groups shows, besides what could be read at every level."""


def _promises(draft: Draft, language: str) -> list[str]:
    """Return what each level's people were promised, also against shuffler and analyzer together."""
    sentences = [dict(what_is_promised(draft, place, language).sentences) for place in range(len(draft.levels))]
    every = [" ".join(text for key, text in each.items() if key in _PROMISED) for each in sentences]
    return [*every, *could_be_read(draft, translation_of(language))]


def groups_page(groups: list[Group], every: list[Opened], missing: list[Group], *, command: str) -> str:
    """Return the page that compares the groups, in the languages of the survey.

    Parameters
    ----------
    groups : list of Group
        The groups.
    every : list of Opened
        One opened batch for each group.
    missing : list of Group
        Groups without a batch.
    command : str
        The command that made the page.
    """
    draft = every[0].batch.task.draft
    parts = [_in(groups, every, missing, language) for language in spoken_in(draft) or ["en"]]
    return page_template("groups.html").render(
        heading=_survey_title(groups[0].first, draft),
        language=parts[0]["language"],
        parts=parts,
        command=command,
        version=__version__,
    )
