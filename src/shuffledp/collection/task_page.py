"""`task page`: the survey page of one task as a file, for another host than the shuffler's."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from shuffledp.collection.commands import Posted
from shuffledp.shell import options as o


def register(task: typer.Typer) -> None:
    """Add the command to `shuffledp task`."""
    task.command()(page)


def page(
    posted: Posted,
    server: Annotated[str, typer.Option("--server", metavar="URL", help="Where the page sends reports: the shuffler.")],
    out: Annotated[
        Path | None, typer.Option("--out", parser=o.file_path, metavar="FILE.html", help="The file; TASK.html.")
    ] = None,
) -> None:
    """Write the survey page of a task as one file for another host to serve, and print its SHA-256.

    Who serves the page could change it, so somebody other than the shuffler and the analyzer should. It sends reports
    to the shuffler and nowhere else. A person's link is the page's address with the person's code after #.

    Example:

    shuffledp task page lunch.task --server https://collect.example.org --out lunch.html
    """
    from shuffledp.collection.survey_page import page_for
    from shuffledp.collection.task import LONGEST_POSTED, PostedTask
    from shuffledp.shell.files import write_bytes
    from shuffledp.shell.output import console
    from shuffledp.whole_files import read_bytes

    document = page_for(PostedTask.parse(read_bytes(posted, "the task", LONGEST_POSTED)), server.removesuffix("/"))
    target = posted.with_suffix(".html") if out is None else out
    write_bytes(target, document, fresh=True)
    digest = hashlib.sha256(document).hexdigest()
    console().print(f"Written: {escape(str(target))}, SHA-256 {digest}", highlight=False, soft_wrap=True)
    console().print(
        "Publish the SHA-256 where people trust it, so that they can check the file that they are served.",
        highlight=False,
    )
