"""The commands of a collection and their options; each body hands over to `cli.collection`."""

from __future__ import annotations

import typer

task = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", help="Draft, post, and look after a collection.")
"""`shuffledp task ...`; `cli.service` adds the commands that need the store."""


def register(app: typer.Typer) -> None:
    """Add the collection's commands to the command line."""
    app.add_typer(task, name="task")
