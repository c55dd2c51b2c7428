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
    """The places to look for what one command leaves behind.

    Parameters
    ----------
    files : list of (Path, callable)
        Files that the command is about to write, and functions that return whether they exist by now.
    states : list of (Path, callable, str)
        Files that persist between commands, functions that return whether this command has changed them, and advice.
    ledgers : list of Ledger
        Ledgers in which it may enter a release.
    shown : {"no", "begun", "done"}
        Whether it has begun to print the answer on stdout, and whether that was completed.
    """

    files: list[tuple[Path, Callable[[], bool]]] = field(default_factory=list[tuple[Path, Callable[[], bool]]])
    states: list[tuple[Path, Callable[[], bool], str]] = field(
        default_factory=list[tuple[Path, Callable[[], bool], str]]
    )
    ledgers: list[Ledger] = field(default_factory=list["Ledger"])
    shown: Literal["no", "begun", "done"] = "no"

    def sentences(self) -> list[str]:
        """Return sentences on the budget spent and the files left; none if the command left nothing behind."""
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
        """Close the open ledgers."""
        for ledger in self.ledgers:
            ledger.close()


LEFT: ContextVar[Left | None] = ContextVar("LEFT", default=None)
"""The state of the running command; None where the library is used without the command line."""


def left() -> Left:
    """Return the places to look for what the running command leaves behind."""
    places = LEFT.get()
    if places is None:
        LEFT.set(places := Left())
    return places


def will_stand(path: Path, number: int) -> None:
    """Register a file that is about to get its name.

    Parameters
    ----------
    path : Path
        The name.
    number : int
        File descriptor of the open file, by which another file of that name is told apart.
    """
    inode = os.fstat(number).st_ino
    left().files.append((path, lambda: (_state(path) or (None,))[0] == inode))


def will_change(path: Path, what: str) -> None:
    """Register a file, kept from command to command, that may be changed.

    Parameters
    ----------
    path : Path
        The file, which need not exist yet.
    what : str
        Words on what to do with a changed file, printed after its name.
    """
    before = _state(path)
    left().states.append((path, lambda: _state(path) not in (before, None), what))


def has_changed(path: Path, what: str) -> None:
    """Replace the words on a file that `will_change` has registered, once more is known.

    Parameters
    ----------
    path, what
        As for `will_change`.
    """
    states = left().states
    states[:] = [(kept, changed, what if kept == path else words) for kept, changed, words in states]


def opened_ledger(path: Path | None) -> Ledger | None:
    """Return the ledger that --ledger names, opened and registered as one that may be changed; None without one."""
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
    """Return inode, modification time and size of the file at a path; None if there is none."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


@dataclass(frozen=True)
class Entered:
    """The ledger in which a release is entered, and the names of the entry; `shuffledp.release` defines them."""

    ledger: Path | None
    population: str
    fixed_in_advance: str | None

    def arguments(self) -> dict[str, Any]:
        """Return the options as keyword arguments of the library, with the ledger opened."""
        names = {"population": self.population, "fixed_in_advance": self.fixed_in_advance}
        return {"ledger": opened_ledger(self.ledger), **names}


def write_bytes(path: Path, data: bytes, *, private: bool = False, fresh: bool = False) -> None:
    """Write a file as a whole or not at all; parameters and errors as for `written`, with `data` its content."""
    with written(path, private=private, fresh=fresh) as stream:
        stream.write(data)


@contextlib.contextmanager
def written(path: Path, *, private: bool = False, fresh: bool = False) -> Generator[IO[bytes]]:
    """Open a file that appears under its name only if the block ends without an error.

    Parameters
    ----------
    path : Path
        The file.
    private : bool
        Whether only its owner may read it.
    fresh : bool
        Whether to refuse an existing file: a key that is overwritten is lost.

    Raises
    ------
    InvalidInput
        If it cannot be written, is a symbolic link, or exists though it must be fresh.
    """
    with replaced(path, str(path), private=private, fresh=fresh) as stream:
        will_stand(path, stream.fileno())
        yield stream


COMMAND_LINE: ContextVar[str] = ContextVar("COMMAND_LINE", default="shuffledp")
"""The command as typed, for the page that states how to repeat it."""

WHOLE = 10_000
"""Width, in characters, at which every sentence fits on one line."""
FRAMES = frozenset(map(chr, (*range(0x2500, 0x2580), 0x20)))
"""Characters that lines and gaps of tables consist of."""
PATIENCE = 1.0
"""Number of seconds after which a running job shows its progress."""


@contextlib.contextmanager
def reserved(path: Path | None, option: str) -> Generator[IO[str] | None]:
    """Open a text file that appears under its name only if the block ends without an error.

    Entering the block already creates a temporary file beside the target, so a path that cannot be written is refused
    before any work is done or any record is read.

    Parameters
    ----------
    path : Path or None
        The file; None yields None.
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
    """The files that a command writes once its answer is complete; a failure of one of them does not affect the others.

    Parameters
    ----------
    opened : dict
        For each option: the file's path, the open stream, and the block that gives the file its name.
    """

    def __init__(self, opened: dict[str, tuple[Path, IO[str], contextlib.ExitStack]]) -> None:
        self._opened = opened
        self.written: list[Path] = []
        self.failures: list[Exception] = []

    def write(self, option: str, fill: Callable[[IO[str]], object]) -> None:
        """Write a file and give it its name; a failure is raised only when all outputs are done.

        Parameters
        ----------
        option : str
            The option that named the file; nothing happens if it was not given.
        fill : callable
            Function that writes into the stream.
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
        """Print the answer on stdout, after the files are written."""
        left().shown = "begun"
        render()
        sys.stdout.flush()
        left().shown = "done"


@contextlib.contextmanager
def outputs(paths: Mapping[str, Path | None]) -> Generator[Outputs]:
    """Open the files of a command, before its answer is entered in a ledger.

    Parameters
    ----------
    paths : mapping
        Path for each option; None for one that was not given.

    Raises
    ------
    InvalidInput
        As for `reserved`, immediately; and the failures of `Outputs.write`, at the end.
    """
    with contextlib.ExitStack() as every:
        opened: dict[str, tuple[Path, IO[str], contextlib.ExitStack]] = {}
        for option, path in paths.items():
            block = every.enter_context(contextlib.ExitStack())
            stream = block.enter_context(reserved(path, option))
            if path is not None and stream is not None:
                opened[option] = path, stream, block
        files = Outputs(opened)
        yield files
        if files.failures:
            all_invalid = all(isinstance(failure, InvalidInput) for failure in files.failures)
            raise InvalidInput("; ".join(map(str, files.failures))) if all_invalid else files.failures[0]


def _times_named(target: Path) -> int:
    """Return the number of arguments of the command line that name this file.

    With more than one, writing would destroy it.
    """
    words = [word.partition("=")[2] if word.startswith("--") else word for word in shlex.split(COMMAND_LINE.get())]
    return sum(1 for word in words if word and Path(word).resolve() == target.resolve())


@contextlib.contextmanager
def working(message: str) -> Generator[Callable[[float], None]]:
    """Show on a terminal's stderr that a job is running, once it has taken a second.

    Yields
    ------
    callable
        Function of the share that is done, from 0 to 1, which updates the bar and the remaining time.
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
    """Return a console on stdout for tables and sentences.

    Prose and titles are wrapped on a terminal alone: a file or a pipe gets whole sentences. A table that is wider than
    the terminal keeps its words whole, so that no number, date or name is cut; the terminal breaks its lines.

    Names such as tree:100:4 are not replaced by emoji. Names of categories, columns and files come from elsewhere:
    control characters, escape sequences and changes of writing direction in them are removed from all output.
    """
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment
    from rich.table import Table

    wraps = sys.stdout.isatty() or "COLUMNS" in os.environ

    class Plain(Console):
        def print(self, *objects: Any, **options: Any) -> None:
            (first, *more) = objects or ("",)
            if isinstance(first, Table) and first.title is not None and not wraps:
                super().print(first.title, style="table.title", highlight=False)
                first.title = None
            needed = self._needed(first) if isinstance(first, Table) and not more else self.width
            if needed > self.width:
                Plain(emoji=False, width=needed).print(*objects, **options)
            else:
                super().print(*objects, **options)

        def _needed(self, table: Table) -> int:
            """Return a width at which a table loses no letter, because rich cuts words for which there is no room."""

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

    return Plain(emoji=False, width=None if wraps else WHOLE)
