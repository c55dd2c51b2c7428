"""A word out of few: checked in one place."""

from __future__ import annotations

from shuffledp.errors import InvalidInput, shown


def check_choice(what: str, value: object, known: tuple[str, ...]) -> None:
    """Raise InvalidInput unless `value` is one of `known`."""
    if value not in known:
        raise InvalidInput(f"{what} must be one of {', '.join(known)}; got {shown(value)}")
