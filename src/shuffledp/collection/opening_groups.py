"""`open` of a survey with groups: one release a group, and one page that compares them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from shuffledp import __version__
from shuffledp.collection.analyzer import Opened, open_batch
from shuffledp.collection.batch import Batch, read_batch
from shuffledp.collection.checklist import collection_checklist
from shuffledp.collection.compare import HEADINGS, differ, rows, to_json
from shuffledp.collection.groups import Group, Groups
from shuffledp.collection.keys import LONGEST_KEY, AnalyzerKey
from shuffledp.collection.promised import what_is_promised
from shuffledp.collection.release import write_release
from shuffledp.collection.release_json import release_document
from shuffledp.errors import InvalidInput
from shuffledp.report import wording
from shuffledp.report.page import page_template
from shuffledp.report.to_json import dumps
from shuffledp.shell.entered import Entered
from shuffledp.shell.files import write_bytes
from shuffledp.shell.output import COMMAND_LINE, console, reserved, working
from shuffledp.whole_files import read_bytes

ONE_EACH = (
    "Each group was shuffled by itself among dummies of its own, and everybody was invited in one group, so the "
    "promise holds for each person whatever the group. Which group somebody belongs to is not protected."
)


def run_open_groups(
    folder: Path, keys: Path, out: Path | None, report: Path | None, entered: Entered, *, as_json: bool
) -> None:
    """Open every batch of a folder, write a release each, and show the groups side by side."""
    if entered.ledger is not None:
        raise InvalidInput("a ledger enters one batch at a time: open each group's batch by itself with --ledger")
    if not keys.is_dir():
        raise InvalidInput(
            f"{folder} is a folder, so --key must be the folder of keys that task draft wrote; got {keys}"
        )
    groups = Groups.read(keys)
    target = folder if out is None else out
    with reserved(report, "--report") as page:
        with working("Opening the batches"):
            opened = [(group, key, open_batch(batch, key)) for group, key, batch in _batches(folder, groups)]
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
        for group, key, each in opened:
            release = write_release(release_document(each), each.batch.task, key.identity)
            write_bytes(target / f"{group.file}.release", release)
        names, every = [group.first for group, _, _ in opened], [each for _, _, each in opened]
        missing = [group for group in groups.groups if group.first not in names]
        if page is not None:
            page.write(groups_page(names, every, missing, command=COMMAND_LINE.get()))
    if as_json:
        told = [
            {"group": group.first, "id": each.batch.task.id, "people": each.batch.manifest.n}
            | {"promise_kept": each.promise_kept, "release": str(target / f"{group.file}.release")}
            for group, _, each in opened
        ]
        print(dumps({"groups": told, "compared": to_json(names, every), "missing": [group.first for group in missing]}))
        return
    _print(names, every, missing, target)


def _batches(folder: Path, groups: Groups) -> list[tuple[Group, AnalyzerKey, Batch]]:
    """Return the groups whose batch is in the folder, in their order, with key and batch."""
    by_draft: dict[bytes, Batch] = {}
    for path in sorted(folder.glob("*.batch")):
        batch = read_batch(path)
        by_draft[batch.task.draft.data] = batch
    found: list[tuple[Group, AnalyzerKey, Batch]] = []
    for group in groups.groups:
        key = AnalyzerKey.parse(read_bytes(groups.path(group, ".key"), "the key", LONGEST_KEY))
        if key.draft_sha256 != group.draft_sha256:
            raise InvalidInput(f"{groups.path(group, '.key')} is not the key of {group.first}; put the file back")
        own = next((batch for data, batch in by_draft.items() if _sha256(data) == group.draft_sha256), None)
        if own is not None:
            found.append((group, key, own))
    if len(found) < 2:
        raise InvalidInput(
            f"{folder} holds the batches of {len(found)} of these {len(groups.groups)} groups, and it takes two to "
            "compare; put the batches of the groups there, or open one by itself with its own key"
        )
    return found


def _sha256(data: bytes) -> bytes:
    import hashlib

    return hashlib.sha256(data).digest()


def _missing(missing: list[Group]) -> str:
    names = ", ".join(f"{group.first} ({wording.count(group.people)} invited)" for group in missing)
    return f"No batch was handed over of: {names}." if missing else ""


def _kept(every: list[Opened]) -> str:
    kept = all(each.promise_kept for each in every)
    return "Every promise is kept." if kept else "A PROMISE IS NOT KEPT; open that group's batch by itself."


def _print(names: list[str], every: list[Opened], missing: list[Group], target: Path) -> None:
    shown = console()
    for place, question in enumerate(every[0].batch.task.draft.questions):
        table = Table(title=escape(next(iter(question.text.values()))), title_justify="left")
        for heading in HEADINGS:
            table.add_column(heading, justify="left" if heading in HEADINGS[:2] else "right")
        for row in rows(names, every, place):
            table.add_row(*map(escape, row))
        shown.print(table)
        shown.print(escape(differ(names, every, place)), highlight=False)
    for sentence in (_missing(missing), ONE_EACH, _kept(every)):
        if sentence:
            shown.print(escape(sentence), highlight=False)
    shown.print(f"Written: a release of each group in {escape(str(target))}.", highlight=False, soft_wrap=True)


def groups_page(names: list[str], every: list[Opened], missing: list[Group], *, command: str) -> str:
    """Write the page that compares the groups.

    Parameters
    ----------
    names : list of str
        Of the groups.
    every : list of Opened
        One a group.
    missing : list of Group
        Those without a batch.
    command : str
        What made the page.
    """
    draft = every[0].batch.task.draft
    questions: list[dict[str, Any]] = [
        {
            "text": next(iter(question.text.values())),
            "table": {"headings": HEADINGS, "rows": list(rows(names, every, place)), "remark": ""},
            "differ": differ(names, every, place),
        }
        for place, question in enumerate(draft.questions)
    ]
    title = next(iter(draft.title.values())).removesuffix(f": {names[0]}")
    return page_template("groups.html").render(
        heading=title,
        organizer=draft.organizer,
        people=sum(each.batch.manifest.n for each in every),
        groups=len(names),
        questions=questions,
        missing=_missing(missing),
        one_each=ONE_EACH,
        kept=_kept(every),
        promises=[what_is_promised(draft, place).sentences[0][1] for place in range(len(draft.levels))],
        ids=[(name, each.batch.task.id) for name, each in zip(names, every, strict=True)],
        checklist=collection_checklist(every[0]),
        command=command,
        version=__version__,
    )
