"""The commands `task preview` and `task rehearse`: the survey's page and its results with made-up answers.

Both make a task of the survey that says TEST in its title, with keys of its own, in a folder that is deleted at the
end. Nobody's answer can end there by mistake: its link leads to this machine alone.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shuffledp.collection.batch import AnalyzerKey
from shuffledp.collection.client import Client
from shuffledp.collection.closing import close_task
from shuffledp.collection.codes import code_hash, draw_codes, link_of
from shuffledp.collection.estimates import width_of
from shuffledp.collection.fields import to_base64, write_time
from shuffledp.collection.ingest import hold, open_reports
from shuffledp.collection.kinds import half_width
from shuffledp.collection.promise import check_floor
from shuffledp.collection.sealing import Opener, new_identity, new_private
from shuffledp.collection.store import Store
from shuffledp.collection.survey import LONGEST_SURVEY, draft_of_survey, survey_groups
from shuffledp.collection.task import Draft, PostedTask
from shuffledp.errors import InvalidInput
from shuffledp.shell.output import COMMAND_LINE, console, reserved, working
from shuffledp.whole_files import check_can_hold, read_bytes

if TYPE_CHECKING:
    from shuffledp.collection.analyzer import Opened
    from shuffledp.collection.groups import SurveyGroup

TEST = "TEST: "
LINKS = 3
"""Number of links with which people can try the page."""
DAY = 86_400
MOST_MADE_UP = 100_000
LONGEST_BATCH = 1 << 32
"""Largest size, in bytes, of the batch of a rehearsal, which this process has just written."""


@dataclass(frozen=True)
class Trial:
    """A task for trying a survey, with all its keys; its answers are never used.

    Parameters
    ----------
    task : PostedTask
        The task, whose title begins with TEST; it is open now.
    shuffler_key : bytes
        Private HPKE key of the shuffler, 32 bytes.
    key : AnalyzerKey
        The analyzer's keys.
    """

    task: PostedTask
    shuffler_key: bytes
    key: AnalyzerKey

    def store(self, folder: Path) -> Store:
        """Return a new store in this folder with the task posted in it."""
        store = Store(folder / "test.db")
        store.post(self.task, self.shuffler_key, check_floor(self.task.draft), int(time.time()))
        return store


def trial_of(path: Path, identity: bytes) -> Trial:
    """Return a trial of a survey or a draft; for a survey with groups, of the first group.

    Parameters
    ----------
    path : Path
        A survey.toml or a .draft.
    identity : bytes
        The shuffler's private signing key, 32 bytes.
    """
    data = read_bytes(path, "the survey", LONGEST_SURVEY)
    private, own = new_private(), new_identity()
    key = AnalyzerKey(private, own, bytes(32))
    if _is_draft(data):
        draft = Draft.parse(data)
    else:
        groups = survey_groups(data)
        draft = draft_of_survey(data, key, groups[0] if groups else None, path.parent)
    now = int(time.time())
    document: dict[str, Any] = json.loads(draft.data)
    document["title"] = {language: TEST + text for language, text in draft.title.items()}
    times = {"opens": now - DAY, "closes": now + DAY, "expires": now + 2 * DAY}
    document |= {name: write_time(when) for name, when in times.items()}
    document |= {"analyzer_key": to_base64(key.public), "analyzer_identity": to_base64(key.public_identity)}
    whole = json.dumps(document, ensure_ascii=False).encode("utf-8")
    shuffler = new_private()
    task = PostedTask.post(Draft.parse(whole), Opener(shuffler).public, identity)
    return Trial(task, shuffler, AnalyzerKey(private, own, hashlib.sha256(whole).digest()))


def _is_draft(data: bytes) -> bool:
    return data.lstrip().startswith(b"{")


def run_preview(path: Path, port: int) -> None:
    """Serve the survey page of a trial, on this machine alone, until Ctrl-C is pressed.

    Parameters
    ----------
    path : Path
        The survey.
    port : int
        Port of the server.
    """
    check_can_hold()
    from shuffledp.collection.server import serve

    with tempfile.TemporaryDirectory(prefix="shuffledp-preview-") as name:
        folder = Path(name)
        with working("Computing the dummies"):
            trial = _posted(path, folder)
        codes = draw_codes(LINKS) if trial.task.has_codes else []
        store = Store(folder / "test.db")
        if codes:
            store.add_codes(trial.task.digest, [code_hash(code) for code in codes])
        store.close()

        def tell(url: str) -> None:
            print("The page as people will see it, on this machine alone; nothing that is sent counts or is kept.")
            for code in codes or [None]:
                print(link_of(trial.task, url, code))
            print("Ctrl-C ends it.", flush=True)

        serve(folder / "test.db", port=port, ready=tell)


def run_rehearse(path: Path, people: int | None, report: Path | None) -> None:
    """Let made-up people answer a trial, close and open it, and print the estimates beside the true values.

    Parameters are the options of ``shuffledp task rehearse``.
    """
    from shuffledp.collection.release_page import release_page

    with reserved(report, "--report") as page:
        with working("Rehearsing the survey"), tempfile.TemporaryDirectory(prefix="shuffledp-rehearsal-") as name:
            opened, truths = rehearse(path, people, Path(name))
        if page is not None:
            page.write(release_page(opened, command=COMMAND_LINE.get(), version=_version(), truths=truths))
    _print(opened, truths)
    data = read_bytes(path, "the survey", LONGEST_SURVEY)
    if groups := () if _is_draft(data) else survey_groups(data):
        _print_together(opened, groups)


def rehearse(path: Path, people: int | None, folder: Path) -> tuple[Opened, dict[int, list[float]]]:
    """Hold a whole collection with random answers, uniform over the answers of each question.

    Parameters
    ----------
    path : Path
        A survey.toml or a .draft.
    people : int, optional
        Number of people who answer; by default as many as are planned.
    folder : Path
        Folder in which the store is made and left.

    Returns
    -------
    Opened
        The analyzer's estimates.
    dict
        For each question the true shares, or the true mean.
    """
    from shuffledp.collection.analyzer import open_batch

    trial = _posted(path, folder)
    draft = trial.task.draft
    n = draft.planned if people is None else people
    if not draft.at_least <= n <= MOST_MADE_UP:
        raise InvalidInput(
            f"rehearse with {draft.at_least} (at_least) to {MOST_MADE_UP} made-up people; got {n}: say how many with "
            "--people"
        )
    chance = np.random.default_rng()  # of made-up people: nothing that is drawn here protects anybody
    answers = [[int(chance.integers(0, min(each.answers, 1 << 31))) for each in draft.questions] for _ in range(n)]
    planned = np.array([max(level.planned, 0) for level in draft.levels], dtype=np.float64)
    shares = planned / planned.sum() if planned.sum() else np.full(len(planned), 1.0 / len(planned))
    levels = chance.choice(len(planned), size=n, p=shares).tolist()
    codes = draw_codes(n) if trial.task.has_codes else [None] * n
    store, opener = Store(folder / "test.db"), Opener(trial.shuffler_key)
    if trial.task.has_codes:
        store.add_codes(trial.task.digest, [code_hash(code) for code in codes if code])
    for own, level, code in zip(answers, levels, codes, strict=True):
        hold(store, [open_reports(Client(trial.task).seal(own, level, code), trial.task, opener)])
    batch = read_bytes(close_task(store, trial.task.digest), "the batch", LONGEST_BATCH)
    store.close()
    opened = open_batch(batch, trial.key)
    truths = {place: _truth(draft, place, answers) for place in range(len(draft.questions))}
    for place, more in enumerate(opened.more):
        if more.words is not None:  # a release names some words only
            truths[place] = [truths[place][word] for word in more.words.named]
    return opened, truths


def _posted(path: Path, folder: Path) -> Trial:
    """Return a trial of a survey, posted in a new store in a folder and signed by that store's shuffler."""
    empty = Store(folder / "test.db")
    trial = trial_of(path, empty.identity())
    empty.close()
    trial.store(folder).close()
    return trial


def _truth(draft: Draft, place: int, answers: list[list[int]]) -> list[float]:
    question, given = draft.questions[place], [each[place] for each in answers]
    if question.kind == "number":
        return [question.low + question.step * sum(given) / len(given)]
    if question.kind == "several":
        return [sum(answer >> i & 1 for answer in given) / len(given) for i in range(len(question.choices))]
    return [given.count(i) / len(given) for i in range(len(question.choices))]


def _version() -> str:
    from shuffledp import __version__

    return __version__


def _print(opened: Opened, truths: dict[int, list[float]]) -> None:
    """Print every estimate beside the true value."""
    from rich.markup import escape
    from rich.table import Table

    from shuffledp.questions.question import CONFIDENCE
    from shuffledp.report.answer import interval_words, view_of
    from shuffledp.report.wording import counted, numbers_with_error, share

    terminal = console()
    for place, (question, release) in enumerate(zip(opened.batch.task.draft.questions, opened.releases, strict=True)):
        table = Table(title=escape(next(iter(question.text.values()))), title_justify="left")
        for heading in ("answer", "made up", "found", f"{CONFIDENCE:.0%} interval"):
            table.add_column(heading, justify="left" if heading == "answer" else "right")
        if release.categories is None:
            error = float(release.standard_error)
            low, high = (float(end) for end in release.confidence_interval(CONFIDENCE))
            numbers = (truths[place][0], float(release.estimate), low, high)
            true, estimate, *ends = numbers_with_error(numbers, low, high, error)
            table.add_row("mean", true, estimate, f"{ends[0]} to {ends[1]}")
        else:
            for row, true in zip(
                view_of(release, simultaneous=question.together).entries(), truths[place], strict=True
            ):
                table.add_row(escape(row.name), share(true), share(row.value), interval_words(row))
        terminal.print(table)
    terminal.print(
        f"A rehearsal: {counted(opened.batch.manifest.n, 'made-up person', 'made-up people')}, every answer as likely "
        "as every other. Nothing of it is kept, and nothing was posted.",
        highlight=False,
    )


def _print_together(opened: Opened, groups: tuple[SurveyGroup, ...]) -> None:
    """Print how wide the intervals are that `open` prints for this group beside the others."""
    from rich.markup import escape

    from shuffledp.report.wording import count, plus_minus

    draft, counts = opened.batch.task.draft, opened.batch.manifest.counts
    worth: list[str] = []
    for place, question in enumerate(draft.questions):
        width = half_width(draft, place, counts, len(groups))
        interval = plus_minus(width, width_of(question), shares=bool(question.choices))
        worth.append(f"{next(iter(question.text.values()))} {interval}")
    console().print(
        f"These are people of the group “{escape(groups[0].first)}” alone. Side by side with the other groups the "
        f"intervals of all {count(len(groups))} hold together, and are wider: {escape('; '.join(worth))}.",
        highlight=False,
    )
