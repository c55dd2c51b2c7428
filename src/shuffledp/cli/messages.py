"""What the library says of its own parameters, said of the options that were typed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

_CHOICE = re.compile(r"\b(seen|mechanism|unit) = '([\w-]+)'")
_CONSENT = re.compile(r"; add '(.*)' to consent, or ")
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
    """
    typed = {word.partition("=")[0] for word in arguments}
    name, must, rest = message.partition(" must ")
    option = _as_option("target_epsilon" if name == _TARGET else name)
    if option in typed:
        message = f"{option}{must}{rest}"
    message = _CHOICE.sub(r"--\1 \2", message)
    message = _CONSENT.sub(lambda found: f"; add --consent {shlex.quote(found[1])}=E, or ", message)
    return _UNDERSCORED.sub(lambda found: found[0] if found[0] in arguments else _as_option(found[0]), message)


def _as_option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
