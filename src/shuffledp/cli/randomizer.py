"""Read --randomizer: a family by its name and whole numbers, or a channel matrix from a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from shuffledp.errors import InvalidInput, shown
from shuffledp.randomizers.base import AnyLaw

FAMILIES = (
    "rr, krr:K, sue:K, oue:K, olh:K, hadamard:K, subset:K, one-bit, laplace, gaussian, piecewise, hybrid, "
    "tree:BINS, items:BITS:LEVELS:G, directions:D:M:C, sketch:D:BUCKETS, coordinates:D"
)
AVAILABLE = f"any, {FAMILIES}, memoised:E[:E_FRESH], or the name of a .csv file with a channel matrix"
MATRIX = ".csv"


@dataclass(frozen=True)
class Named:
    """A family and the whole numbers after its name.

    Parameters
    ----------
    build : callable
        Makes it from them.
    fewest, most : int
        How many there are.
    example : str
        One that works.
    """

    build: Callable[..., AnyLaw]
    fewest: int
    most: int
    example: str


def parse_randomizer(text: str, available: str = AVAILABLE) -> AnyLaw | Literal["any"]:
    """Turn the text after --randomizer into a family of randomizers.

    Parameters
    ----------
    text : str
        A name of `AVAILABLE`, with its whole numbers where it has any, or a path ending in ``.csv``.
    available : str
        What an error lists.

    Raises
    ------
    InvalidInput
        If the name is unknown, a number is missing, superfluous or bad, or the file holds no channel matrix.
    """
    if text.lower().endswith(MATRIX):
        return _from_file(Path(text))
    if text == "any":
        return "any"
    name, *sizes = text.split(":")
    if name == "memoised" and available == AVAILABLE:  # it is accounted for, and not run
        return _memoised(text, sizes)
    family = families().get(name)
    if family is None:
        raise InvalidInput(f"--randomizer {shown(text)} is unknown; choose {available}")
    if family.most == 0 and sizes:
        raise InvalidInput(f"--randomizer {name} has no number of categories; got {shown(text)}; write {name}")
    whole = all(size.isascii() and size.isdecimal() for size in sizes)
    if not (whole and family.fewest <= len(sizes) <= family.most and (not sizes or int(sizes[0]) >= 2)):
        what = "its number of categories" if family.fewest == 1 else "its whole numbers"
        raise InvalidInput(f"--randomizer {name} needs {what}, at least 2; got {shown(text)}; write {family.example}")
    return family.build(*map(int, sizes))


def families() -> Mapping[str, Named]:
    """Every family by name. The range of a number, and the length of a vector, do not matter to the guarantee."""
    from shuffledp import randomizers as r

    def sized(build: Callable[..., AnyLaw], example: str, most: int = 1) -> Named:
        return Named(build, 1, most, example)

    def plain(build: Callable[..., Any], example: str) -> Named:
        return Named(lambda: build(low=0.0, high=1.0), 0, 0, example)

    def windowed(build: Callable[..., Any], example: str, most: int) -> Named:
        return Named(lambda *shape: _windowed(build, shape), 0, most, example)

    return {
        "rr": Named(lambda: r.RandomizedResponse(k=2), 0, 0, "rr"),
        "krr": sized(r.RandomizedResponse, "krr:10"),
        "sue": sized(partial(r.UnaryEncoding, optimized=False), "sue:10"),
        "oue": sized(r.UnaryEncoding, "oue:10"),
        "olh": sized(r.LocalHashing, "olh:10", most=2),
        "hadamard": sized(r.HadamardResponse, "hadamard:10"),
        "subset": sized(r.SubsetSelection, "subset:10", most=2),
        "one-bit": plain(r.OneBit, "one-bit"),
        "laplace": plain(r.Laplace, "laplace"),
        "gaussian": plain(r.Gaussian, "gaussian"),
        "piecewise": windowed(r.Piecewise, "piecewise, or piecewise:4096:1790", 2),
        "hybrid": windowed(r.Hybrid, "hybrid", 4),
        "items": Named(r.LeveledHashing, 3, 3, "items:20:4:8"),
        "tree": sized(r.RangeTree, "tree:64", most=2),
        "directions": Named(r.DirectionCodebook, 3, 4, "directions:100:8:2"),
        "sketch": Named(r.SignedSketch, 2, 2, "sketch:100:8"),
        "coordinates": sized(r.CoordinateSampling, "coordinates:100"),
    }


def _memoised(text: str, budgets: list[str]) -> AnyLaw:
    """Read the permanent budget and, if there is one, the fresh one."""
    from shuffledp.randomizers import Memoised

    try:
        read = [float(budget) for budget in budgets]
    except ValueError:
        read = []
    if len(read) not in (1, 2):
        raise InvalidInput(
            f"--randomizer memoised needs its permanent budget, and may have a fresh one; got {shown(text)}; "
            "write memoised:2 or memoised:2:1"
        )
    return Memoised(*read)


def _windowed(build: Callable[..., AnyLaw], shape: tuple[int, ...]) -> AnyLaw:
    """Cells, and what is fixed for every budget, if anything is given."""
    if not shape:
        return build(0.0, 1.0)
    cells, *fixed = shape
    return build(0.0, 1.0, cells, *([fixed[0]] if len(fixed) == 1 else [tuple(fixed)] if fixed else []))


def _from_file(path: Path) -> AnyLaw:
    from shuffledp.randomizers import Channel

    if not path.is_file():
        raise InvalidInput(
            f"--randomizer {path} does not exist; name a .csv file with one row per record and one column per report"
        )
    return Channel.from_csv(path)
