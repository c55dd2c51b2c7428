"""A word out of few: checked in one place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shuffledp.errors import InvalidInput, shown


def check_choice(what: str, value: object, known: tuple[str, ...]) -> None:
    """Raise InvalidInput unless `value` is one of `known`."""
    if value not in known:
        raise InvalidInput(f"{what} must be one of {', '.join(known)}; got {shown(value)}")


def check_options(options: Mapping[str, Any], kinds: type, function: str) -> None:
    """Refuse options as Python does, in the name of the function that was called and not of the one behind it.

    Parameters
    ----------
    options : mapping
        What was given by keyword.
    kinds : type
        The TypedDict of those that there are.
    function : str
        The function's name, or that of its question, whose hyphens become underscores.

    Raises
    ------
    TypeError
        For the first that there is not, and if `delta` is missing.
    """
    called = f"{function.replace('-', '_')}()"
    for name in options:
        if name not in kinds.__annotations__:
            raise TypeError(f"{called} got an unexpected keyword argument {name!r}")
    if "delta" not in options:
        raise TypeError(f"{called} missing 1 required keyword-only argument: 'delta'")
