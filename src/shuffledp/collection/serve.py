"""The commands on the shuffler's machine: `serve`, and `task status | close | publish | destroy | clock-ok`."""

from __future__ import annotations

import contextlib
import sqlite3
import sys
import time
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from shuffledp.errors import InvalidInput, shown
from shuffledp.shell import options as o
from shuffledp.whole_files import check_can_hold

if TYPE_CHECKING:
    from rich.table import Table

    from shuffledp.collection.store import Store, TaskRow
    from shuffledp.collection.task import PostedTask

StorePath = Annotated[
    Path, typer.Option("--store", parser=o.file_path, metavar="FILE", help="The shuffler's store, a SQLite file.")
]
Task = Annotated[
    str | None,
    typer.Argument(
        metavar="TASK", help="A task's name, its .task file, or a folder of groups; not needed while there is only one."
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask: needed where there is no terminal, as in a script.")]
STORE = Path("shuffledp.db")
DELETION_SECONDS = 60.0
"""Number of seconds that a command waits until no deleted data are left in the store."""
WATCH_SECONDS = 5.0
LOSS = {
    "close": "will be handed over, and nobody can answer any more",
    "destroy": "will be lost for good, unopened, with the keys and the batch",
}
"""What happens to the answers of a task that is closed or destroyed by hand."""
_UNASKED = "there is no terminal to ask at, so nothing was done: to {verb} without being asked, say --yes"
LONGEST_NAME = 256
"""Largest length of the path of a file that names a task."""


def register(app: typer.Typer, task: typer.Typer) -> None:
    """Add the commands of the shuffler's machine to the command line."""
    app.command()(serve)
    for name, command in (
        ("status", status),
        ("close", close),
        ("publish", publish),
        ("destroy", destroy),
        ("extend", extend),
    ):
        task.command(name)(command)
    task.command("clock-ok")(clock_ok)


def serve(
    store: StorePath = STORE,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port to listen on; 0: any free one.")] = 8000,
    host: Annotated[str, typer.Option("--host", help="Address to listen on; beyond this machine put TLS in front.")] = (
        "127.0.0.1"
    ),
) -> None:
    """Run the shuffler's service: it shows tasks and takes reports, nothing else.

    Example:

    shuffledp serve --store shuffledp.db --port 8000
    """
    check_can_hold()
    from shuffledp.collection.server import serve as run

    with opened(store, make=True) as shuffler:
        shuffler.identity()  # a folder that cannot be written is found before anybody connects
    run(store, host=host, port=port, ready=lambda url: print(f"serving {url} from {store}", flush=True))


def status(
    task: Annotated[
        str | None, typer.Argument(metavar="TASK", help="One task alone, or the folder of a survey's groups.")
    ] = None,
    store: StorePath = STORE,
    watch: Annotated[bool, typer.Option("--watch", help="Show it again every few seconds until Ctrl-C.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show each task: its state, and for every level how many people have answered and how many were planned.

    Example:

    shuffledp task status --store shuffledp.db
    """
    from shuffledp.collection.groups import is_folder
    from shuffledp.report.to_json import dumps
    from shuffledp.shell.output import console

    with opened(store) as shuffler:
        if json:
            rows = _rows(shuffler, task)
            print(dumps({"tasks": [_facts(shuffler, row, len(rows) if is_folder(task) else 1) for row in rows]}))
            return
        while True:
            for table in _tables(shuffler, _rows(shuffler, task), together=is_folder(task)):
                console().print(table, markup=False, highlight=False, soft_wrap=True)
            if not watch:
                return
            time.sleep(WATCH_SECONDS)


def close(task: Task = None, store: StorePath = STORE, yes: Yes = False) -> None:
    """Close a task, hand the batch over, and delete what the store held of it.

    It first says what will be lost, and asks for the task's title; without a terminal it wants --yes instead.

    Example:

    shuffledp task close --store shuffledp.db
    """
    from shuffledp.collection.groups import is_folder

    if not is_folder(task):
        _close(task, store, yes)
        return
    handed: list[tuple[str, Path]] = []
    try:
        one = partial(_close, store=store, yes=yes, handed=handed)
        _each_group(Path(str(task)), one, "closed", ask=not yes and "close")
    finally:  # also where some groups were refused
        if handed:
            analyzer, path = handed[0]
            print(
                f"{analyzer} opens all groups together with: shuffledp open {path.parent.name} --key NAME.keys. Opened "
                "one by one, the groups' intervals do not hold together."
            )


def _close(task: Task, store: Path, yes: bool, handed: list[tuple[str, Path]] | None = None) -> None:
    """Close one task; how it is opened is printed, or if it is one of several groups, noted in ``handed``."""
    from shuffledp.collection.closing import close_task
    from shuffledp.collection.promise import quoted
    from shuffledp.collection.task import PostedTask

    with opened(store) as shuffler:
        row = chosen(shuffler, task, "open", "closing", "restored", more=_handed_over)
        posted = PostedTask.parse(row.posted)
        if row.state == "open" and not yes:
            _ask_title(shuffler, posted, "close")
        path = close_task(shuffler, row.digest)
        print(path)
        analyzer, opens = quoted(posted.draft.operated_by.analyzer), ""
        if handed is None:
            opens = f" {analyzer} opens it with: shuffledp open {path.name} --key NAME.key"
        else:
            handed.append((analyzer, path))
        print(f"{_title(posted)} is handed over with this file.{opens}")
        wait_for_deletion(shuffler, f"the batch is written, {path}")


def extend(
    closes: Annotated[
        str, typer.Option("--closes", metavar="TIME", help="Such as 2030-02-14T18:00:00Z, later than now announced.")
    ],
    task: Task = None,
    store: StorePath = STORE,
    expires: Annotated[
        str | None, typer.Option("--expires", metavar="TIME", help="As before, or when it closes, by default.")
    ] = None,
) -> None:
    """Let people answer for longer: a notice that is signed and served beside the task, whose bytes stay.

    Only before the task closes, and never to an earlier time.

    Example:

    shuffledp task extend --closes 2030-02-14T18:00:00Z
    """
    from shuffledp.collection.fields import write_time
    from shuffledp.collection.groups import is_folder
    from shuffledp.collection.store import system_clock
    from shuffledp.collection.task import PostedTask

    if is_folder(task):
        _each_group(Path(str(task)), lambda name: extend(closes, name, store, expires), "extended")
        return
    times = [None if text is None else _time(text, name) for text, name in ((closes, "closes"), (expires, "expires"))]
    with opened(store) as shuffler:
        posted = PostedTask.parse(chosen(shuffler, task, "open").posted)
        notice = shuffler.extend(posted, times[0] or 0, times[1], system_clock())
        print(f"{_title(posted)} closes {write_time(notice.closes)} and expires {write_time(notice.expires)}")


def _time(text: str, name: str) -> int:
    """Return a time with a zone as seconds since 1970."""
    from datetime import datetime

    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return int(moment.timestamp())
    except (ValueError, OverflowError):
        pass
    raise InvalidInput(f"--{name} must be a time with a zone such as 2030-02-14T18:00:00Z; got {shown(text)}")


def publish(
    release: Annotated[
        Path,
        typer.Argument(
            metavar="RELEASE", parser=o.file_path, help="The analyzer's signed release, or a folder of them."
        ),
    ],
    task: Annotated[
        str | None,
        typer.Argument(
            metavar="TASK", help="A task's name or its .task file; not needed while one alone is handed over."
        ),
    ] = None,
    store: StorePath = STORE,
) -> None:
    """Show a release to everybody who asks for it, until the task's retention ends.

    Example:

    shuffledp task publish lunch.release
    """
    from shuffledp.collection.release import LONGEST_SIGNED, SignedRelease
    from shuffledp.collection.task import PostedTask
    from shuffledp.whole_files import read_bytes

    if release.is_dir():
        _publish_groups(release, store)
        return
    data = read_bytes(release, "the release", LONGEST_SIGNED)
    with opened(store) as shuffler:
        row = chosen(shuffler, task, "released")
        SignedRelease.parse(data, PostedTask.parse(row.posted))
        shuffler.publish(row.digest, data)
        print(f"published: {_title(PostedTask.parse(row.posted))}")


def destroy(
    task: Annotated[str, typer.Argument(metavar="TASK", help="The task's name or its .task file.")],
    store: StorePath = STORE,
    yes: Yes = False,
) -> None:
    """Destroy all that was collected for a task, unopened, with its keys; this cannot be undone.

    It first says what will be lost, and asks for the task's title; without a terminal it wants --yes instead.

    Example:

    shuffledp task destroy lunch.task
    """
    from shuffledp.collection.closing import GONE, destroy_task
    from shuffledp.collection.groups import is_folder
    from shuffledp.collection.task import PostedTask

    if is_folder(task):
        _each_group(Path(task), lambda name: destroy(name, store, yes), "destroyed", ask=not yes and "destroy")
        return
    with opened(store) as shuffler:
        row = chosen(shuffler, task)
        posted = PostedTask.parse(row.posted)
        if row.state not in GONE and not yes:
            _ask_title(shuffler, posted, "destroy")
        destroy_task(shuffler, row.digest)
        wait_for_deletion(shuffler, "the task is destroyed")
        print(f"destroyed: {_title(posted)}")


def _each_group(folder: Path, act: Callable[[str], None], done: str, *, ask: str | Literal[False] = False) -> None:
    """Apply a function to every group; refused groups do not stop the others, and are reported at the end.

    Without a terminal, a verb `ask` that asks for titles is refused once, before anything is done.
    """
    from shuffledp.collection.groups import Groups

    groups = Groups.read(folder)
    if ask and not _has_terminal():
        raise InvalidInput(f"the answers of {len(groups.groups)} groups {LOSS[ask]}; {_UNASKED.format(verb=ask)}")
    refused: list[str] = []
    for group in groups.groups:
        try:
            act(groups.task(group).id)
        except InvalidInput as error:
            refused.append(f"{group.first}: {error}")
    if refused:
        raise InvalidInput(f"{len(groups.groups) - len(refused)} groups {done}; not {'; '.join(refused)}")


def _publish_groups(folder: Path, store: Path) -> None:
    """Publish every release of a folder, each for the task that it answers."""
    from shuffledp.collection.release import LONGEST_SIGNED, SignedRelease
    from shuffledp.collection.task import PostedTask
    from shuffledp.whole_files import read_bytes

    files = sorted(folder.glob("*.release"))
    if not files:
        raise InvalidInput(f"the folder {folder} has no releases; name the folder that shuffledp open wrote into")
    with opened(store) as shuffler:
        tasks = [PostedTask.parse(row.posted) for row in shuffler.tasks() if row.state == "released"]
        for file in files:
            data = read_bytes(file, "the release", LONGEST_SIGNED)
            for task in tasks:
                with contextlib.suppress(InvalidInput):
                    SignedRelease.parse(data, task)
                    shuffler.publish(task.digest, data)
                    print(f"published: {_title(task)}")
                    break
            else:
                raise InvalidInput(f"{file} answers no task of the store that is handed over")


def _rows(store: Store, task: str | None) -> list[TaskRow]:
    """Return the tasks that an argument names: all of the store, those of a folder of groups, or one."""
    from shuffledp.collection.groups import Groups, is_folder

    if task is None:
        return store.tasks()
    if not is_folder(task):
        return [chosen(store, task)]
    groups = Groups.read(Path(task))
    return [chosen(store, groups.task(group).id) for group in groups.groups]


def _response(*facts: dict[str, Any]) -> str:
    from shuffledp.collection.codes import response

    held = sum(level["held"] for each in facts for level in each["levels"])
    return response(held, sum(each["invited"] or 0 for each in facts))


def _title(posted: PostedTask) -> str:
    from shuffledp.collection.promise import quoted

    return quoted(posted.title)


def _has_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _ask_title(store: Store, posted: PostedTask, verb: str) -> None:
    """Ask for the task's title at a terminal, after saying what will be lost; without a terminal refuse."""
    from shuffledp.report.wording import counted

    held = store.held(posted.digest)
    loss = f"{_title(posted)}: {counted(held, 'answer')} {LOSS[verb]}"
    if not _has_terminal():
        raise InvalidInput(f"{loss}; {_UNASKED.format(verb=verb)}")
    print(f"{loss}.", file=sys.stderr)
    print(f"Type the title to {verb} it: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip() != posted.title.strip():
        raise InvalidInput(f"that is not the title, so nothing was done; to {verb} it without being asked, say --yes")


def clock_ok(store: StorePath = STORE) -> None:
    """Say that this machine's clock is right: timers that wait after a jump go on.

    Example:

    shuffledp task clock-ok
    """
    from shuffledp.collection.store import system_clock

    with opened(store) as shuffler:
        shuffler.confirm_clock(system_clock())
        print("timers go on")


@contextlib.contextmanager
def opened(path: Path, *, make: bool = False) -> Generator[Store]:
    """Open a store for a command, and turn failures of the disk into one line for people.

    Parameters
    ----------
    path : Path
        The store's file.
    make : bool
        Whether to make the store if there is none; by default it must exist.

    Raises
    ------
    InvalidInput
        If there is none, or it cannot be read or written now; on Windows.
    """
    check_can_hold()
    from shuffledp.collection.store import Store

    if not make and not path.is_file():
        raise InvalidInput(f"there is no store {path}; name it with --store, or make one with: shuffledp serve")
    store = Store(path)
    try:
        yield store
    except sqlite3.Error as error:
        raise InvalidInput(f"the store {path} cannot be used now ({error}); make room, or try again") from None
    except OSError as error:
        where = error.filename or store.outbox
        raise InvalidInput(f"{where} cannot be used now ({error.strerror or error}); make room, or try again") from None
    finally:
        store.close()


def _handed_over(store: Store) -> str:
    """Return words on the latest batches in the outbox, in case a command was killed after closing."""
    from shuffledp.collection.closing import batch_path
    from shuffledp.collection.task import PostedTask

    rows = sorted((row for row in store.tasks() if row.state == "released"), key=lambda row: row.since, reverse=True)
    paths = [batch_path(store, PostedTask.parse(row.posted)) for row in rows]
    there = ", ".join([str(path) for path in paths if path.exists()][:3])
    return f"; closed before, with the batch in {there}" if there else ""


def chosen(store: Store, task: str | None, *states: str, more: Callable[[Store], str] = lambda store: "") -> TaskRow:
    """Return the task that an argument names: by its name, by its file, or as the only one in one of these states.

    Parameters
    ----------
    store : Store
        The store.
    task : str or None
        The argument.
    states : str
        States in which a single task need not be named.
    more : callable
        Function of the store that returns words to add to the refusal if there is no such task.

    Raises
    ------
    InvalidInput
        If there is no such task, or several could be meant.
    """
    from shuffledp.collection.fields import to_base64
    from shuffledp.collection.store import state_words
    from shuffledp.collection.task import LONGEST_POSTED, PostedTask, task_digest
    from shuffledp.whole_files import read_bytes

    rows = store.tasks()
    if task is None:
        left = [row for row in rows if row.state in states]
        if len(left) == 1:
            return left[0]
        names = ", ".join(PostedTask.parse(row.posted).called for row in left)
        hint = f"{': ' if names else ''}{names}" if left else more(store)
        raise InvalidInput(f"name a task: {len(left)} are {' or '.join(map(state_words, states))}{hint}")
    is_file = len(task) < LONGEST_NAME and Path(task).is_file()  # of a longer one the system would complain, not we
    if is_file:
        digest = PostedTask.parse(read_bytes(Path(task), "the task", LONGEST_POSTED)).digest
    else:
        digest = task_digest(task)
    for row in rows:
        if row.digest == digest:
            return row
    raise InvalidInput(f"the store {store.path} has no task {to_base64(digest)}; see shuffledp task status")


def wait_for_deletion(store: Store, done: str) -> None:
    """Wait until no deleted data are left in the store's files.

    `done` says what has succeeded if that takes too long.
    """
    from shuffledp.collection.store import Tidying

    tidying, end = Tidying(store), time.monotonic() + DELETION_SECONDS
    while not tidying.step():
        if time.monotonic() > end:
            raise InvalidInput(
                f"{done}; but some process reads the store, so deleted reports are still in its file: end that process "
                "and run shuffledp serve, which goes on deleting"
            )
        time.sleep(0.1)


def _facts(store: Store, row: TaskRow, groups: int = 1) -> dict[str, Any]:
    """Return what is known of a task; half-widths are those of a survey of so many groups."""
    from shuffledp.collection.estimates import width_of
    from shuffledp.collection.fields import write_time
    from shuffledp.collection.kinds import half_width, margins_at, margins_object
    from shuffledp.collection.store import is_trusted, system_clock
    from shuffledp.collection.task import PostedTask, draft_now

    task, tally = PostedTask.parse(row.posted), store.tally(row.digest)
    draft = draft_now(task, row.notice)
    first = draft.languages[0]
    counts = [tally.get(place, 0) for place in range(len(draft.levels))]
    places = range(len(draft.questions))
    worth = [half_width(draft, place, counts, groups) if sum(counts) else None for place in places]
    return {
        "id": task.id,
        "title": draft.title[first],
        "state": row.state,
        "reason": row.reason,
        "levels": [
            {"name": level.name[first], "held": held, "planned": level.planned}
            for level, held in zip(draft.levels, counts, strict=True)
        ],
        "questions": [
            {"text": question.text[first], "kind": question.kind, "range": width_of(question), "half_width": width}
            | margins_object(margins_at(draft, place, counts) if sum(counts) else ())
            for place, (question, width) in enumerate(zip(draft.questions, worth, strict=True))
        ],
        "invited": store.invited(row.digest) if task.has_codes else None,
        "refused": {"unreadable": tally.get(-1, 0), "unfit": tally.get(-2, 0), "code": tally.get(-3, 0)},
        "at_least": draft.at_least,
        **{key: write_time(getattr(draft, key)) for key in ("opens", "closes", "expires")},
        "timers_wait": row.state in ("open", "released") and not is_trusted(system_clock(), row.tick),
    }


def _tables(store: Store, rows: list[TaskRow], *, together: bool) -> Iterator[Table | str]:
    from rich.table import Table
    from rich.text import Text

    from shuffledp.collection.kinds import margins_line
    from shuffledp.collection.promise import quoted
    from shuffledp.collection.store import state_words
    from shuffledp.report.wording import SAYS_NOTHING, plus_minus

    every = [_facts(store, row, len(rows) if together else 1) for row in rows]
    for row, facts in zip(rows, every, strict=True):
        table = Table(title=Text(f"{facts['title']} ({state_words(facts['state'])})"), caption=facts["id"])
        for heading in ("level", "held", "planned"):
            table.add_column(heading, justify="left" if heading == "level" else "right")
        for level in facts["levels"]:
            table.add_row(Text(level["name"]), str(level["held"]), str(level["planned"]))
        table.add_row("together", *(str(sum(level[key] for level in facts["levels"])) for key in ("held", "planned")))
        yield table
        if facts["invited"]:
            yield f"{_response(facts)}."
        for question in facts["questions"] if facts["state"] in ("open", "closing") else ():
            if question["half_width"] is not None:
                text = quoted(question["text"])
                worth = plus_minus(question["half_width"], question["range"], shares=question["kind"] != "number")
                would = "the answer" if worth == SAYS_NOTHING else "the answer would be within"
                margins = margins_line(tuple(question.get("margins", {}).values()))
                yield f"{text}: with these people {would} {worth}.{f' {margins}.' if margins else ''}"
        if facts["state"] in ("open", "closing", "restored"):
            yield f"opens {facts['opens']}, closes {facts['closes']}, expires {facts['expires']}"
        if row.state == "restored":
            yield "This store was put back from a copy: the task has ended before, and takes no answers."
        if facts["timers_wait"]:
            yield "The clock has jumped: timers wait. If it is right now, run: shuffledp task clock-ok"
    if together and any(facts["invited"] for facts in every):
        yield f"All together: {_response(*every)}. The intervals of all groups hold together."
    if not rows:
        yield "no task has been posted"
