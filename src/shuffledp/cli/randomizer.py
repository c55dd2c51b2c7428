"""Read --randomizer: a family by its name, or a channel matrix from a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from shuffledp.errors import InvalidInput
from shuffledp.randomizers.base import AnyLaw

AVAILABLE = (
    "any, rr, krr:K, sue:K, oue:K, olh:K, hadamard:K, subset:K, one-bit, laplace, gaussian, "
    "or the name of a .csv file with a channel matrix"
)
MATRIX = ".csv"


def parse_randomizer(text: str) -> AnyLaw | Literal["any"]:
    """Turn the text after --randomizer into a family of randomizers.

    Parameters
    ----------
    text : str
        A name of `AVAILABLE`, with its number of categories where it has one, or a path ending in ``.csv``.

    Raises
    ------
    InvalidInput
        If the name is unknown, the number of categories is missing, superfluous or bad, or the file holds no
        channel matrix.
    """
    if text.lower().endswith(MATRIX):
        return _from_file(Path(text))
    if text == "any":
        return "any"
    name, colon, size = text.partition(":")
    if name in _sized():
        if not (colon and size.isascii() and size.isdecimal() and int(size) >= 2):
            raise InvalidInput(
                f"--randomizer {name} needs its number of categories, at least 2; got {text!r}; write {name}:10"
            )
        return _sized()[name](int(size))
    if name in _plain():
        if colon:
            raise InvalidInput(f"--randomizer {name} has no number of categories; got {text!r}; write {name}")
        return _plain()[name]()
    raise InvalidInput(f"--randomizer {text!r} is unknown; choose {AVAILABLE}")


def _sized() -> Mapping[str, Callable[[int], AnyLaw]]:
    """Families over k categories."""
    from shuffledp import randomizers

    return {
        "krr": lambda k: randomizers.RandomizedResponse(k=k),
        "sue": lambda k: randomizers.UnaryEncoding(k=k, optimized=False),
        "oue": lambda k: randomizers.UnaryEncoding(k=k, optimized=True),
        "olh": lambda k: randomizers.LocalHashing(k=k),
        "hadamard": lambda k: randomizers.HadamardResponse(k=k),
        "subset": lambda k: randomizers.SubsetSelection(k=k),
    }


def _plain() -> Mapping[str, Callable[[], AnyLaw]]:
    """Families without a number of categories. The range of a number does not matter to the guarantee."""
    from shuffledp import randomizers

    return {
        "rr": lambda: randomizers.RandomizedResponse(k=2),
        "one-bit": lambda: randomizers.OneBit(low=0.0, high=1.0),
        "laplace": lambda: randomizers.Laplace(low=0.0, high=1.0),
        "gaussian": lambda: randomizers.Gaussian(low=0.0, high=1.0),
    }


def _from_file(path: Path) -> AnyLaw:
    from shuffledp.randomizers import Channel

    if not path.is_file():
        raise InvalidInput(
            f"--randomizer {path} does not exist; name a .csv file with one row per record and one column per report"
        )
    return Channel.from_csv(path)
