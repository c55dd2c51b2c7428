"""What the library says of its own parameters, said of the options that were typed."""

from __future__ import annotations

import re
from collections.abc import Sequence

_TYPED = re.compile(r"(--[a-z0-9-]+) = '?([\w.-]+)'?")
_CHOICE = re.compile(r"\b(seen|mechanism|unit) = '([\w-]+)'")
_NAMED = re.compile(r"`(\w+)(?: = '?([\w.-]+)'?)?`")
_UNDERSCORED = re.compile(
    r"(?<![\w'\"-])(group_size|reports_per_user|target_epsilon|drop_below|min_messages|max_epsilon)(?![\w'\"])"
)


_TARGET = "epsilon"
"""What the searches of `calibrate` call --target-epsilon."""


def in_options(message: str, arguments: Sequence[str]) -> str:
    """Name options where a message of the library names its parameters.

    Parameters
    ----------
    message : str
        Of an `InvalidInput` or `OutOfRegime`.
    arguments : sequence of str
        The command line: a name with which a message begins is an option only if that was typed, and a word that was
        typed, such as a column called group_size, stays as it is.

    Examples
    --------
    >>> in_options("group_size must be at least 1; got 0", ["amplify", "--group-size", "0"])
    '--group-size must be at least 1; got 0'
    >>> in_options("say seen = 'reports'", ["mean"])
    'say --seen reports'
    >>> in_options("choose a smaller `delta`, or say `rows_per_person = 'one'`", ["mean"])
    'choose a smaller --delta, or say --rows-per-person one'
    >>> in_options("such as `encoding` = 'cp1252' for a file of Windows", ["mean"])
    'such as --encoding cp1252 for a file of Windows'
    """
    typed = {word.partition("=")[0] for word in arguments}
    name, must, rest = message.partition(" must ")
    option = _as_option("target_epsilon" if name == _TARGET else name)
    if option in typed:
        message = f"{option}{must}{rest}"
    message = _CHOICE.sub(r"--\1 \2", message)
    message = _NAMED.sub(lambda found: f"{_as_option(found[1])} {found[2] or ''}".rstrip(), message)
    message = _TYPED.sub(r"\1 \2", message)
    return _UNDERSCORED.sub(lambda found: found[0] if found[0] in arguments else _as_option(found[0]), message)


def _as_option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
