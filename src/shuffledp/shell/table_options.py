"""How a table is written: the options of every command that reads one, and the decorator that gives a command them."""

from __future__ import annotations

import csv
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.errors import InvalidInput, shown
from shuffledp.shell.options import whole_number

if TYPE_CHECKING:
    from shuffledp.tables import TableOptions

WRITTEN = "How the table is written (where that is not found out)"

Separator = Annotated[
    str | None,
    typer.Option(
        "--separator",
        metavar="CHAR",
        help="Between two fields of a text file, such as ; or tab, or blanks for any run of them.",
        rich_help_panel=WRITTEN,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding", metavar="NAME", help="Of a text file, such as cp1252; default UTF-8.", rich_help_panel=WRITTEN
    ),
]
Decimal = Annotated[
    str,
    typer.Option("--decimal", metavar="MARK", help="Decimal mark of numbers: . or ,", rich_help_panel=WRITTEN),
]
Thousands = Annotated[
    str | None,
    typer.Option(
        "--thousands",
        metavar="MARK",
        help="Mark between thousands in numbers: , or . or _ or apostrophe or space. A number that may have one is "
        "else refused with both its readings.",
        rich_help_panel=WRITTEN,
    ),
]
MissingValues = Annotated[
    str | None,
    typer.Option(
        "--missing-values",
        metavar="A,B,...",
        help="Words and numbers that mean, in every column, that an entry is missing, such as '.,#N/A,-99'.",
        rich_help_panel=WRITTEN,
    ),
]
SkipLines = Annotated[
    int,
    typer.Option(
        "--skip-lines",
        parser=whole_number,
        metavar="K",
        help="Lines above the header of a text file that belong to no table.",
        rich_help_panel=WRITTEN,
    ),
]
HeaderRows = Annotated[
    int,
    typer.Option(
        "--header-rows",
        parser=whole_number,
        metavar="K",
        help="Rows of the header of a text file: names are in the first, and the others describe the columns.",
        rich_help_panel=WRITTEN,
    ),
]
ShowValues = Annotated[
    bool,
    typer.Option(
        "--show-values",
        help="Show what stands in a row that is refused; without, its number and the rule are told. For whoever holds "
        "the table.",
        rich_help_panel=WRITTEN,
    ),
]

TABLE: Mapping[str, tuple[Any, Any]] = {
    "separator": (Separator, None),
    "encoding": (Encoding, None),
    "decimal": (Decimal, "."),
    "thousands": (Thousands, None),
    "missing_values": (MissingValues, None),
    "skip_lines": (SkipLines, 0),
    "header_rows": (HeaderRows, 1),
    "show_values": (ShowValues, False),
}
"""Annotation and default of each; the names are those of `TableOptions`."""


def table_options(typed: Mapping[str, Any]) -> TableOptions:
    """Read how the table is written from the options as typed."""
    from shuffledp.tables import TableOptions

    said = {name: typed[name] for name in TABLE if name != "missing_values"}
    return TableOptions(**said, missing_values=_words(typed["missing_values"]))


def reads_table(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command these options; it takes them as `table`, its last parameter, a `TableOptions`.

    Parameters
    ----------
    command : callable
        Made for typer.
    """

    @functools.wraps(command)
    def reading(**typed: Any) -> None:
        own = {name: value for name, value in typed.items() if name not in TABLE}
        command(**own, table=table_options(typed))

    parameters = dict(inspect.signature(command, eval_str=True).parameters)
    del parameters["table"]
    keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD
    for name, (annotation, default) in TABLE.items():
        parameters[name] = inspect.Parameter(name, keyword, default=default, annotation=annotation)
    reading.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]
    reading.__annotations__ = {name: parameter.annotation for name, parameter in parameters.items()}
    return reading


def _words(text: str | None) -> tuple[str, ...]:
    """Read --missing-values: words with a comma between them, quotes as in CSV."""
    if text is None:
        return ()
    words = tuple(word.strip() for word in next(csv.reader([text], skipinitialspace=True), []))
    if not all(words) or not words:
        raise InvalidInput(
            f"--missing-values names words with a comma between them, such as '.,-99'; an empty entry is missing "
            f"anyway; got {shown(text)}"
        )
    return words
