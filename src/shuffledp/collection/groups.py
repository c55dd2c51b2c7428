"""Surveys of several groups, such as departments: one task for each group, and a folder that holds them.

Each group is a task by itself, with its own digest, dummies, codes and batch, so the promise holds for a person
whatever the group and however small it is. A person is invited in one group, so groups cost nobody anything more. The
folder holds ``groups.json`` and, for each group, files of one name: ``01-kitchen.draft``, ``.task`` or ``.key``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shuffledp.collection.asked import MOST_PEOPLE
from shuffledp.collection.fields import Fields, Text, dump_json, read_json, slug, to_base64, visible
from shuffledp.collection.task import LONGEST_DRAFT, LONGEST_POSTED, PostedTask
from shuffledp.errors import InvalidInput, shown
from shuffledp.whole_files import read_bytes

MANIFEST = "groups.json"
MOST_GROUPS = 100
_LONGEST = 1 << 20
_NAME = re.compile(r"\d{2,3}-[a-z0-9-]{1,40}|\d{2,3}")


@dataclass(frozen=True)
class SurveyGroup:
    """A group as stated in the survey.

    Parameters
    ----------
    name : Text
        In the languages of the survey's title.
    people : int
        Number of people who are invited, at least 1.
    """

    name: Text
    people: int

    @property
    def first(self) -> str:
        """The name in its first language."""
        return next(iter(self.name.values()))


@dataclass(frozen=True)
class Group(SurveyGroup):
    """A group of a survey, with its files.

    Parameters
    ----------
    file : str
        Name of its files without their suffix.
    draft_sha256 : bytes
        SHA-256 of its draft, 32 bytes.
    """

    file: str
    draft_sha256: bytes


@dataclass(frozen=True)
class Groups:
    """A folder with the files of all groups; made by `Groups.read` or `Groups.of`.

    Parameters
    ----------
    folder : Path
        The folder.
    groups : tuple of Group
        The groups in the order of the survey.
    """

    folder: Path
    groups: tuple[Group, ...]

    @staticmethod
    def of(folder: Path, stated: Sequence[SurveyGroup], drafts: Sequence[bytes]) -> Groups:
        """Return a folder's groups, with names for their files, from the drafts.

        Parameters
        ----------
        folder : Path
            The folder, which need not exist yet.
        stated : sequence of SurveyGroup
            The groups of the survey.
        drafts : sequence of bytes
            One for each group.
        """
        made = [
            Group(group.name, group.people, _file_name(place, group.first), hashlib.sha256(draft).digest())
            for place, (group, draft) in enumerate(zip(stated, drafts, strict=True), start=1)
        ]
        return Groups(folder, tuple(made))

    @staticmethod
    def read(folder: Path) -> Groups:
        """Return the groups in a folder's ``groups.json``.

        Parameters
        ----------
        folder : Path
            Folder that `task draft` wrote.

        Raises
        ------
        InvalidInput
            If the file is missing or malformed.
        """
        path = folder / MANIFEST
        if not path.is_file():
            raise InvalidInput(f"the folder {folder} has no {MANIFEST}; name the folder that task draft wrote")
        fields = read_json(read_bytes(path, "the groups", _LONGEST), f"{path}", _LONGEST)
        fields.word("what", "shuffledp groups")
        fields.whole("version", 1, 1)
        groups = fields.objects("groups", 2, MOST_GROUPS, _read_group)
        fields.done()
        for identifiers in ([visible(each.first) for each in groups], [each.file for each in groups]):
            if len(set(identifiers)) < len(groups):
                raise InvalidInput(f"{path} names a group twice; put back the file that task draft wrote")
        return Groups(folder, groups)

    def document(self) -> bytes:
        """Return the content of ``groups.json``."""
        entries = [
            {"name": dict(each.name), "people": each.people, "file": each.file}
            | {"draft_sha256": to_base64(each.draft_sha256)}
            for each in self.groups
        ]
        return dump_json({"what": "shuffledp groups", "version": 1, "groups": entries})

    def path(self, group: Group, ending: str) -> Path:
        """Return the path of a group's file with a suffix such as ".task"."""
        return self.folder / f"{group.file}{ending}"

    def draft(self, group: Group) -> bytes:
        """Return a group's draft, after checking its SHA-256."""
        path = self.path(group, ".draft")
        data = read_bytes(path, "the draft", LONGEST_DRAFT)
        _check(path, data, group)
        return data

    def task(self, group: Group) -> PostedTask:
        """Return a group's posted task, after checking that it holds the group's draft."""
        path = self.path(group, ".task")
        if not path.is_file():
            raise InvalidInput(f"{path} is not there: post the groups first, with shuffledp task post {self.folder}")
        task = PostedTask.parse(read_bytes(path, "the task", LONGEST_POSTED))
        _check(path, task.draft.data, group)
        return task

    @property
    def smallest(self) -> Group:
        """The group with the fewest people."""
        return min(self.groups, key=lambda group: group.people)


def group_of_draft(folder: Path, draft_sha256: bytes) -> dict[str, Any] | None:
    """Return which group of several a draft is of, as a JSON object; None if the folder's groups do not name it.

    Neither task nor batch says that there are other groups, so the signed release does not either.

    Parameters
    ----------
    folder : Path
        A folder that may hold a ``groups.json``.
    draft_sha256 : bytes
        SHA-256 of the draft, 32 bytes.
    """
    if not (folder / MANIFEST).is_file():
        return None
    groups = Groups.read(folder).groups
    names = [group.first for group in groups if group.draft_sha256 == draft_sha256]
    return {"group": names[0], "groups": len(groups)} if names else None


def groups_of_survey(fields: Fields, language: str) -> tuple[SurveyGroup, ...]:
    """Read the table ``groups`` of a survey: names with numbers of people, or tables with ``name`` and ``people``.

    Parameters
    ----------
    fields : Fields
        The survey.
    language : str
        Language of names given without one.

    Raises
    ------
    InvalidInput
        If there are fewer than two groups, or two of one name.
    """
    given = fields.take("groups")
    if not isinstance(given, dict) or not 2 <= len(given) <= MOST_GROUPS:
        fields.refuse("groups", given, f"2 to {MOST_GROUPS} groups with how many are invited, such as Kitchen = 40")
    groups = tuple(_stated(key, value, language) for key, value in given.items())
    for name in groups[0].name:
        if len({visible(group.name.get(name, "")) for group in groups}) < len(groups):
            raise InvalidInput(f"{fields.what}: two groups have the same name in language {shown(name)}; rename one")
    return groups


def is_folder(path: Path | str | None) -> bool:
    """Return whether an argument names a folder, which then must be a folder of groups."""
    return path is not None and len(str(path)) < 4096 and Path(path).is_dir()


def _stated(key: str, value: object, language: str) -> SurveyGroup:
    values: dict[str, Any] = value if isinstance(value, dict) else {"people": value}
    fields = Fields(values, f"the survey, group {shown(key)}")
    name = fields.take("name") if fields.has("name") else key
    texts = Fields({"name": {language: name} if isinstance(name, str) else name}, fields.what).text("name")
    people = fields.whole("people", 1, MOST_PEOPLE)
    fields.done()
    return SurveyGroup(texts, people)


def _read_group(fields: Fields) -> Group:
    file = fields.line("file")
    if not _NAME.fullmatch(file):  # it becomes a path
        fields.refuse("file", file, "a name such as 01-kitchen")
    return Group(fields.text("name"), fields.whole("people", 1, MOST_PEOPLE), file, fields.bytes_of("draft_sha256", 32))


def _file_name(place: int, name: str) -> str:
    return f"{place:02d}-{slug(name)}".rstrip("-")


def _check(path: Path, draft: bytes, group: Group) -> None:
    if hashlib.sha256(draft).digest() != group.draft_sha256:
        raise InvalidInput(
            f"{path} does not hold the draft of {shown(group.first)} that {MANIFEST} names: somebody has changed it; "
            "do not invite people"
        )


def title_of_group(title: object, group: SurveyGroup) -> object:
    """Return a survey's title followed by a group's name, in every language of the title.

    Parameters
    ----------
    title : object
        The title by language, not checked yet.
    group : SurveyGroup
        The group.
    """
    if not isinstance(title, dict) or any(not isinstance(text, str) for text in title.values()):
        return title  # a draft refuses it
    if len(group.name) == 1:  # a name is often the same in all languages
        return {language: f"{text}: {group.first}" for language, text in title.items()}
    if set(group.name) != set(title):
        raise InvalidInput(
            f"the survey, group {shown(group.first)}: its name must be given once, or in the languages of the title: "
            f"{', '.join(title)}"
        )
    return {language: f"{text}: {group.name[language]}" for language, text in title.items()}
