"""What the library says of its own parameters, said of the options that were typed."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

_NAMED = re.compile(r"`(\w+)(?: = '?([\w.,-]+)'?)?`")

_TARGET = "epsilon"
"""What the searches of `calibrate` call --target-epsilon."""


def in_options(message: str, arguments: Sequence[str], options: Collection[str]) -> str:
    """Name options where a message of the library names its parameters: between backticks, or as its first word.

    Parameters
    ----------
    message : str
        Of an `InvalidInput` or `OutOfRegime`.
    arguments : sequence of str
        The command line: a name with which a message begins is an option only if that was typed.
    options : collection of str
        All options of the command. A word between backticks that names none of them, such as a column's, stays.

    Examples
    --------
    >>> in_options("group_size must be at least 1; got 0", ["amplify", "--group-size", "0"], ["--group-size"])
    '--group-size must be at least 1; got 0'
    >>> in_options("say `seen = 'reports'`", ["mean"], ["--seen"])
    'say --seen reports'
    >>> in_options("choose a smaller `delta`, or say `missing_as = 'no'`", ["mean"], ["--delta"])
    "choose a smaller --delta, or say `missing_as = 'no'`"
    """
    typed = {word.partition("=")[0] for word in arguments}
    name, must, rest = message.partition(" must ")
    option = _as_option("target_epsilon" if name == _TARGET else name)
    if option in typed:
        message = f"{option}{must}{rest}"

    def as_typed(found: re.Match[str]) -> str:
        option = _as_option(found[1])
        return f"{option} {found[2] or ''}".rstrip() if option in options else found[0]

    return _NAMED.sub(as_typed, message)


def _as_option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
