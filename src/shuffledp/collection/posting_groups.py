"""`task draft`, `post`, `link`, `codes` for a survey with groups: the same for each, in one folder."""

from __future__ import annotations

import hashlib
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from shuffledp.collection.groups import MANIFEST, Group, Groups, SurveyGroup
from shuffledp.collection.keys import AnalyzerKey
from shuffledp.collection.planner import prices
from shuffledp.collection.promise import check_floor
from shuffledp.collection.sealing import new_identity, new_private
from shuffledp.collection.survey import draft_of_survey
from shuffledp.collection.task import Draft, PostedTask
from shuffledp.errors import InvalidInput
from shuffledp.report.wording import count, counted
from shuffledp.shell.files import write_bytes
from shuffledp.shell.output import console, working

KEYS = ".keys"
"""Ending of the folder that the analyzer keeps."""


def write_drafts(survey: bytes, stated: tuple[SurveyGroup, ...], out: Path) -> list[tuple[SurveyGroup, Draft]]:
    """Write a draft and a key for each group, in two folders: one for the shuffler, one for the analyzer alone.

    Parameters
    ----------
    survey : bytes
        The survey's TOML.
    stated : tuple of SurveyGroup
        Its groups.
    out : Path
        The folder of drafts; that of keys is beside it.
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
            draft = draft_of_survey(survey, AnalyzerKey(private, identity, bytes(32)), group)
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
    """Certify every group's promises; return the floor per level beside each."""
    with working("Certifying the promises"):
        return [(group, draft, check_floor(draft)) for group, draft in drafts]


def print_groups(drafts: list[tuple[SurveyGroup, Draft]], out: Path) -> None:
    """Tell how many are invited in each group, and the smallest by name before anybody is."""
    from shuffledp.collection.estimates import width_of
    from shuffledp.report.wording import plus_minus

    shown = console()
    table = Table(title="Groups: each is shuffled by itself, under the same promise", title_justify="left")
    for heading in ("group", "invited", "widest answer if all of them answer"):
        table.add_column(heading, justify="left" if heading == "group" else "right")
    for group, draft in drafts:
        worth = [(cost.planned / (width_of(question) or 1.0), cost.planned, question)
                 for question, cost in zip(draft.questions, prices(draft), strict=True)]  # fmt: skip
        _, width, question = max(worth, key=lambda each: each[0])
        shares = question.kind != "number"
        table.add_row(escape(group.first), count(group.people), plus_minus(width, width_of(question), shares=shares))
    shown.print(table)
    smallest = min((group for group, _ in drafts), key=lambda group: group.people)
    shown.print(
        f"The smallest group is {escape(smallest.first)}, {counted(smallest.people, 'person', 'people')}: look at its "
        "line before you invite anybody. Its answers are the least precise; its people are promised the same.",
        highlight=False,
    )
    shown.print(
        f"Written: {escape(str(out))} for the shuffler, {escape(str(out) + KEYS)} for the analyzer alone. "
        "Keep the keys safe: without them nobody can open the answers.",
        highlight=False,
    )


def drafts_to_post(folder: Path) -> list[tuple[Path, Path]]:
    """Return draft and task file of every group that is not posted yet.

    Parameters
    ----------
    folder : Path
        From `write_drafts`, as the organizer sent it.
    """
    groups = Groups.read(folder)
    found: list[tuple[Path, Path]] = []
    for group in groups.groups:
        groups.draft(group)
        if groups.path(group, ".task").exists():
            groups.task(group)
        else:
            found.append((groups.path(group, ".draft"), groups.path(group, ".task")))
    if not found:
        raise InvalidInput(f"all groups of {folder} are posted; send the folder to the organizer, who runs task link")
    return found


def checked_tasks(own: Path, posted: Path) -> list[tuple[Group, PostedTask]]:
    """Return each group's task, refused unless the shuffler posted the organizer's own draft, byte for byte.

    Parameters
    ----------
    own : Path
        The organizer's folder, of drafts or of keys.
    posted : Path
        What the shuffler sent back.
    """
    known, found = Groups.read(own), Groups.read(posted)
    if known.groups != found.groups:
        raise InvalidInput(
            f"{posted} does not hold the groups of {own}: the shuffler posted something else; do not invite people"
        )
    return [(group, found.task(group)) for group in known.groups]


def beside(path: Path, group: Group) -> Path:
    """Return the name of a group's own file: ``codes.csv`` is ``codes-01-kitchen.csv``."""
    return path.with_name(f"{path.stem}-{group.file}{path.suffix}")
