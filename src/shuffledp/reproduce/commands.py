"""The command `reproduce`: the papers' tables and figures as files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from shuffledp.errors import InvalidInput, shown
from shuffledp.shell import options as o


def register(app: typer.Typer) -> None:
    """Add the command ``reproduce`` to the command line."""
    app.command()(reproduce)


def reproduce(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A name from --list, or all.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="List what can be reproduced and exit.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer points and repeats: all in under 5 minutes.")] = False,
    out: o.Out = Path("reproduced"),
    json: o.Json = False,
) -> None:
    """Compute the papers' tables and figures again: data as CSV, picture as PNG and SVG, and what agrees.

    Pictures need Matplotlib, the extra named figures.

    Example:

    shuffledp reproduce gspa-lemma-2 --quick --out reproduced
    """
    if list_:
        run_list(as_json=json)
    elif name is None:
        raise InvalidInput("name what to reproduce: all, or a name from shuffledp reproduce --list")
    else:
        run_reproduce(name, out, quick=quick, as_json=json)


def run_list(*, as_json: bool) -> None:
    """Print the list of tables and figures that can be reproduced."""
    from shuffledp.report.to_json import dumps
    from shuffledp.reproduce.catalogue import REPRODUCTIONS
    from shuffledp.shell.output import console

    if as_json:
        print(
            dumps(
                {
                    "reproductions": [
                        {"name": r.name, "source": r.source, "title": r.title} for r in REPRODUCTIONS.values()
                    ]
                }
            )
        )
        return
    from rich.table import Table

    table = Table("name", "where", "what", "full run")
    for r in REPRODUCTIONS.values():
        table.add_row(r.name, r.source, r.title, _duration(r.full_minutes))
    console().print(table)


def run_reproduce(name: str, out: Path, *, quick: bool, as_json: bool) -> None:
    """Compute one reproduction, or all, and print the names of the written files."""
    from shuffledp.report.to_json import dumps
    from shuffledp.reproduce import catalogue
    from shuffledp.reproduce.catalogue import REPRODUCTIONS
    from shuffledp.shell.output import console

    names = list(REPRODUCTIONS) if name == "all" else [name]
    if name != "all" and name not in REPRODUCTIONS:
        raise InvalidInput(f"nothing is called {shown(name)}; choose all or one of {', '.join(REPRODUCTIONS)}")
    if out.exists() and not out.is_dir():
        raise InvalidInput(f"--out {out} is a file; name a folder")
    written: dict[str, list[str]] = {}
    for each in names:
        with _progress(each) as progress:
            written[each] = [str(file) for file in catalogue.reproduce(each, out, quick=quick, progress=progress)]
        if not as_json:
            screen = console()
            screen.print(f"[bold]{each}[/bold]: {REPRODUCTIONS[each].title} ({REPRODUCTIONS[each].source})")
            for file in written[each]:
                screen.print(f"  {file}", soft_wrap=True, highlight=False)
    if as_json:
        print(dumps({"quick": quick, "written": written}))


def _duration(minutes: float) -> str:
    return f"{60 * minutes:.0f} s" if minutes < 1 else f"{minutes:.0f} min"


@contextmanager
def _progress(name: str) -> Generator[Callable[[float], None]]:
    """Return a bar on stderr where somebody watches."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=1.0)
        yield lambda done: bar.update(task, completed=done)
