"""What a command writes: files whole or not at all, tables on stdout, progress on stderr; and what it leaves behind.

What a command that fails leaves behind is asked of the files and the ledger themselves, never remembered: a signal may
come between the moment when a file gets its name, or an entry is on the disk, and the next statement. So what is kept
here is only where to look.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import sys
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from shuffledp.errors import InvalidInput, ShuffleDPError, path_shown, printable
from shuffledp.whole_files import replaced

if TYPE_CHECKING:
    from rich.console import Console

    from shuffledp.ledger import Ledger


@dataclass
class Left:
    """Where to look for what one command leaves behind.

    Parameters
    ----------
    files : list of (Path, callable)
        Files that it is about to write, and whether they are there by now.
    states : list of (Path, callable, str)
        Files that go on from command to command: whether this command has changed them, and what to do with them.
    ledgers : list of Ledger
        Ledgers that it may enter a release in.
    shown : {"no", "begun", "done"}
        Whether it has begun to show the answer on stdout, and whether that ended well.
    """

    files: list[tuple[Path, Callable[[], bool]]] = field(default_factory=list[tuple[Path, Callable[[], bool]]])
    states: list[tuple[Path, Callable[[], bool], str]] = field(
        default_factory=list[tuple[Path, Callable[[], bool], str]]
    )
    ledgers: list[Ledger] = field(default_factory=list["Ledger"])
    shown: Literal["no", "begun", "done"] = "no"

    def sentences(self) -> list[str]:
        """Say what is spent, and what exists; nothing if the command left nothing behind."""
        spent = [each for ledger in self.ledgers for each in _spent(ledger)]
        there = [path_shown(path) for path, is_there in self.files if is_there()]
        kept = [f"{path_shown(path)} {what}" for path, changed, what in self.states if changed()]
        files = [f"the answer was computed before that, and stands in {', '.join(there)}"] if there else []
        how = []
        if self.shown == "begun":
            how = ["part of the answer may have been shown; direct it to a place with room"]
        elif self.shown == "no" and spent and not there and not kept:
            how = ["the answer was not shown, and asking again spends again"]
        return [*spent, *files, *kept, *how]

    def close(self) -> None:
        """Close the ledgers that are open."""
        for ledger in self.ledgers:
            ledger.close()


LEFT: ContextVar[Left | None] = ContextVar("LEFT", default=None)
"""Of the command that runs; None where the library is used without the command line."""


def left() -> Left:
    """Return where to look after the command that runs."""
    found = LEFT.get()
    if found is None:
        LEFT.set(found := Left())
    return found


def will_stand(path: Path, number: int) -> None:
    """Note that a file will get a name.

    Parameters
    ----------
    path : Path
        The name.
    number : int
        Of the open file: whatever else stands under that name is not it.
    """
    inode = os.fstat(number).st_ino
    left().files.append((path, lambda: (_state(path) or (None,))[0] == inode))


def will_change(path: Path, what: str) -> None:
    """Note that a file which goes on from command to command may be changed.

    Parameters
    ----------
    path : Path
        The file, or where it will be.
    what : str
        What is said of it then, after its name.
    """
    before = _state(path)
    left().states.append((path, lambda: _state(path) not in (before, None), what))


def opened_ledger(path: Path | None) -> Ledger | None:
    """Open the ledger that --ledger names, and note that something may be entered there; None without one."""
    if path is None:
        return None
    from shuffledp.ledger import Ledger  # which --help does not need

    ledger = Ledger(path)
    left().ledgers.append(ledger)
    return ledger


def _spent(ledger: Ledger) -> list[str]:
    name = path_shown(ledger.path)
    try:
        numbers = ledger.entered_here()
    except ShuffleDPError:
        return [f"whether the ledger {name} holds an entry of it cannot be read"]
    if not numbers:
        return []
    which = f"entry {numbers[0]}" if len(numbers) == 1 else f"entries {numbers[0]} to {numbers[-1]}"
    return [f"{which} of the ledger {name} {'stands' if len(numbers) == 1 else 'stand'}, so it is spent"]


def _state(path: Path) -> tuple[int, int, int] | None:
    """Which file stands under a name, and since when as it is."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


@dataclass(frozen=True)
class Entered:
    """Where a release is entered, and under which names; `shuffledp.release` defines them."""

    ledger: Path | None
    population: str
    fixed_in_advance: str | None

    def arguments(self) -> dict[str, Any]:
        """Return the same, as the library's arguments; the ledger is opened."""
        names = {"population": self.population, "fixed_in_advance": self.fixed_in_advance}
        return {"ledger": opened_ledger(self.ledger), **names}


def write_bytes(path: Path, data: bytes, *, private: bool = False, fresh: bool = False) -> None:
    """Write a file, whole or not at all; parameters and errors as of `written`, with `data` its content."""
    with written(path, private=private, fresh=fresh) as stream:
        stream.write(data)


@contextlib.contextmanager
def written(path: Path, *, private: bool = False, fresh: bool = False) -> Generator[IO[bytes]]:
    """Open a file that gets its name when the block ends well.

    Parameters
    ----------
    path : Path
        The file.
    private : bool
        Readable by its owner alone.
    fresh : bool
        Refuse if the file is there: a key that is written over is lost.

    Raises
    ------
    InvalidInput
        If it cannot be written, is a symbolic link, or must be fresh and is not.
    """
    with replaced(path, str(path), private=private, fresh=fresh) as stream:
        will_stand(path, stream.fileno())
        yield stream


COMMAND_LINE: ContextVar[str] = ContextVar("COMMAND_LINE", default="shuffledp")
"""The command as typed, for the page that tells how to repeat it."""

WHOLE = 10_000
"""Columns in which every sentence is one line."""
FRAMES = frozenset(map(chr, (*range(0x2500, 0x2580), 0x20)))
"""What lines and gaps of tables are drawn with."""
PATIENCE = 1.0
"""Seconds after which a job shows that it is still running."""


@contextlib.contextmanager
def reserved(path: Path | None, option: str) -> Generator[IO[str] | None]:
    """Open a file that appears under its name only when the block ends well.

    Entering the block already creates a temporary file beside the target, so a path that cannot be written
    is refused before any work is done or any record is read.

    Parameters
    ----------
    path : Path or None
        Where the text shall stand; None yields None.
    option : str
        The option that named the path, for the error message.

    Raises
    ------
    InvalidInput
        If the path is a symbolic link, a directory or a device, its directory is missing or not writable, or the
        command line names the file a second time, as an input or another output.
    """
    if path is None:
        yield None
        return
    target = path.parent.resolve() / path.name
    if _times_named(target) > 1:
        raise InvalidInput(f"{option} {path} is also an input or another output of this command; choose another name")
    with replaced(path, f"{option} {path}") as file:
        will_stand(target, file.fileno())
        stream = io.TextIOWrapper(file, encoding="utf-8", newline="")
        yield stream
        stream.detach()  # writes what it holds; the file is closed by its own block


class Outputs:
    """Files that a command writes once its answer is there: what befalls one of them befalls no other.

    Parameters
    ----------
    opened : dict
        By option: the file's path, the open stream, and the block that gives the file its name.
    """

    def __init__(self, opened: dict[str, tuple[Path, IO[str], contextlib.ExitStack]]) -> None:
        self._opened = opened
        self.written: list[Path] = []
        self.failures: list[Exception] = []

    def write(self, option: str, fill: Callable[[IO[str]], object]) -> None:
        """Write a file and give it its name; a failure is raised when the outputs end, after everything else.

        Parameters
        ----------
        option : str
            The option that named the file; nothing happens if it was not given.
        fill : callable
            Writes into the stream.
        """
        if option not in self._opened:
            return
        path, stream, block = self._opened.pop(option)
        try:
            with block:
                fill(stream)
        except Exception as failure:  # the answer is spent: whatever else can be written must be
            self.failures.append(failure)
        else:
            self.written.append(path)

    def show(self, render: Callable[[], object]) -> None:
        """Show the answer on stdout, after the files."""
        left().shown = "begun"
        render()
        sys.stdout.flush()
        left().shown = "done"


@contextlib.contextmanager
def outputs(paths: Mapping[str, Path | None]) -> Generator[Outputs]:
    """Open the files of a command whose answer is entered in a ledger, before anything is entered.

    Parameters
    ----------
    paths : mapping
        By option; None for one that was not given.

    Raises
    ------
    InvalidInput
        As `reserved`, at once; and what `Outputs.write` met, at the end.
    """
    with contextlib.ExitStack() as every:
        opened: dict[str, tuple[Path, IO[str], contextlib.ExitStack]] = {}
        for option, path in paths.items():
            block = every.enter_context(contextlib.ExitStack())
            stream = block.enter_context(reserved(path, option))
            if path is not None and stream is not None:
                opened[option] = path, stream, block
        found = Outputs(opened)
        yield found
        if found.failures:
            known = all(isinstance(failure, InvalidInput) for failure in found.failures)
            raise InvalidInput("; ".join(map(str, found.failures))) if known else found.failures[0]


def _times_named(target: Path) -> int:
    """How many arguments of the command line mean this file: more than one, and writing it would destroy another."""
    words = [word.partition("=")[2] if word.startswith("--") else word for word in shlex.split(COMMAND_LINE.get())]
    return sum(1 for word in words if word and Path(word).resolve() == target.resolve())


@contextlib.contextmanager
def working(message: str) -> Generator[Callable[[float], None]]:
    """Show on a terminal's stderr that a job is running, once it has taken a second.

    Yields
    ------
    callable
        Takes the share that is done, from 0 to 1; the bar then shows it, and the time left.
    """
    if not sys.stderr.isatty():
        yield lambda share: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    bar = progress.add_task(message, total=None)
    timer = threading.Timer(PATIENCE, progress.start)
    timer.start()
    try:
        yield lambda share: progress.update(bar, total=1.0, completed=share)
    finally:
        timer.cancel()
        timer.join()
        progress.stop()


def console() -> Console:
    """Open stdout for people's tables.

    Prose is wrapped on a terminal alone: a file or a pipe gets whole sentences. A table that is wider than the terminal
    keeps its words whole, so that no number, date or name is cut; the terminal breaks its lines.

    A name such as tree:100:4 is no emoji. Names of categories, columns and files are other people's: what a terminal
    would obey in them, as an escape sequence or a turn of the direction of writing, is left out of all that is shown.
    """
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment
    from rich.table import Table

    class Plain(Console):
        def print(self, *objects: Any, **options: Any) -> None:
            (first, *more) = objects or ("",)
            needed = self._needed(first) if isinstance(first, Table) and not more else self.width
            if needed > self.width:
                Plain(emoji=False, width=needed).print(*objects, **options)
            else:
                super().print(*objects, **options)

        def _needed(self, table: Table) -> int:
            """Find a width at which no letter of a table is lost: rich cuts words for which there is no room."""

            def letters(width: int) -> Counter[str]:
                lines = self.render_lines(table, self.options.update(width=width), pad=False)
                return Counter(c for line in lines for part in line for c in part.text if c not in FRAMES)

            width, whole = self.width, letters(WHOLE)
            while letters(width) != whole:
                width += 4
            return width

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else segment._replace(text=printable(segment.text, "\n"))

    wraps = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Plain(emoji=False, width=None if wraps else WHOLE)
