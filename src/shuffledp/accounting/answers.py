"""Asking several theorems one question: what each says, or why it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from shuffledp.errors import NotConverged, OutOfRegime

Asked = TypeVar("Asked")
T = TypeVar("T")


@dataclass(frozen=True)
class Answer(Generic[Asked, T]):
    """What one bound said to one question.

    Parameters
    ----------
    bound : AmplificationBound, or str
        The bound that was asked, or its key.
    value : T or None
        Its answer; None if it refused.
    refused : str or None
        Why its theorem does not apply, or why its number could not be certified; None if it answered.
    """

    bound: Asked
    value: T | None
    refused: str | None = None


def weigh(chosen: Iterable[Asked], ask: Callable[[Asked], T]) -> Iterator[Answer[Asked, T]]:
    """Ask several bounds one question, in order; a bound that does not apply refuses and is passed over.

    Nothing else in the library decides which bound applies. The bounds are asked one after the other as the answers
    are read, so a caller who has read enough may stop.

    Parameters
    ----------
    chosen : iterable of AmplificationBound, or of str
        The bounds; a training run names its own by their keys.
    ask : callable
        From a bound to its answer.

    Yields
    ------
    Answer
        One per bound.
    """
    for bound in chosen:
        try:
            value = ask(bound)
        except (OutOfRegime, NotConverged) as refusal:
            yield Answer(bound, None, str(refusal))
            continue
        yield Answer(bound, value)
