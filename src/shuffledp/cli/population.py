"""From the population options to a Setting: who takes part, with which budgets, and who sees what."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from shuffledp.budgets import Budgets
from shuffledp.cli.output import working
from shuffledp.errors import InvalidInput
from shuffledp.randomizers.base import LocalRandomizer
from shuffledp.setting import SEEN, SEEN_MEANING, Seen, Setting

AVAILABLE = "any, rr, krr:K or one-bit"
LATER = ("sue", "oue", "olh", "hadamard", "subset", "laplace", "gaussian")
"""Randomizers the contract names which this version does not have."""
BOUNDS = ("certified", "all")


@dataclass(frozen=True)
class Population:
    """The population options as typed; exactly one of the three ways must be used.

    Parameters
    ----------
    epsilon0, n : number or None
        One budget for everybody, and how many users.
    levels : list of str
        Texts such as ``"0.5:900"`` or ``"0.5,1e-9:900"``.
    file : Path or None
        A table with one row per user; `column` and `delta_column` name its budgets.
    """

    epsilon0: float | None = None
    n: int | None = None
    levels: tuple[str, ...] = ()
    file: Path | None = None
    column: str | None = None
    delta_column: str | None = None

    def budgets(self) -> Budgets:
        """Count the users at each level.

        Raises
        ------
        InvalidInput
            If none or several of the three ways are used, or a value is bad.
        """
        single = self.epsilon0 is not None or self.n is not None
        if [single, bool(self.levels), self.file is not None].count(True) != 1:
            raise InvalidInput(
                "give the population in exactly one way: --epsilon0 E --n N, or --level E:COUNT (repeated), "
                "or --budgets FILE --column NAME"
            )
        if self.file is None and (self.column is not None or self.delta_column is not None):
            raise InvalidInput("--column and --delta-column name columns of --budgets FILE; give the file too")
        if self.levels:
            return _from_levels(self.levels)
        if self.file is not None:
            return _from_file(self.file, self.column, self.delta_column)
        if self.epsilon0 is None or self.n is None:
            raise InvalidInput("--epsilon0 E and --n N belong together; give both")
        if self.n < 1:
            raise InvalidInput(f"--n must be at least 1; got {self.n}")
        return Budgets(epsilons=[self.epsilon0], counts=[self.n])


def make_setting(population: Population, *, randomizer: str, seen: str | None, rounds: int) -> Setting:
    """Put the question together; every option checked."""
    kind = parse_randomizer(randomizer)
    if rounds > 1:
        raise InvalidInput(
            f"--rounds {rounds} is not in this version; use --rounds 1 and add up the epsilons and the "
            "deltas of the rounds, which is always safe"
        )
    budgets = population.budgets()
    return Setting(budgets, kind, seen=parse_seen(seen, budgets.levels), neighboring="replace-one", rounds=rounds)


def parse_seen(seen: str | None, levels: int) -> Seen:
    """Read --seen; it may be left out only where nothing depends on it."""
    if seen is None:
        if levels > 1:
            ways = "; ".join(f"{name}: {SEEN_MEANING[name]}" for name in SEEN)
            raise InvalidInput(f"--seen is needed, because there are {levels} budget levels; choose one of {ways}")
        return "reports"
    if seen not in SEEN:
        raise InvalidInput(f"--seen must be one of {', '.join(SEEN)}; got {seen!r}")
    return seen


def parse_randomizer(text: str) -> LocalRandomizer | Literal["any"]:
    """Read --randomizer."""
    from shuffledp.randomizers import OneBit, RandomizedResponse

    name, colon, size = text.partition(":")
    if text == "any":
        return "any"
    if text == "rr":
        return RandomizedResponse(k=2)
    if text == "one-bit":
        return OneBit(low=0.0, high=1.0)  # the range does not matter to the guarantee
    if name == "krr" and colon and size.isdecimal() and int(size) >= 2:
        return RandomizedResponse(k=int(size))
    if name == "krr":
        raise InvalidInput(f"--randomizer krr needs its number of categories, at least 2; got {text!r}; write krr:10")
    if name in LATER or text.endswith(".csv"):
        raise InvalidInput(f"--randomizer {text} is not in this version; choose {AVAILABLE}")
    raise InvalidInput(f"--randomizer {text!r} is unknown; choose {AVAILABLE}")


def check_bounds(which: str) -> None:
    """Read --bounds. All published bounds of this version are among those always consulted."""
    if which not in BOUNDS:
        raise InvalidInput(f"--bounds must be certified or all; got {which!r}")


def _from_levels(texts: tuple[str, ...]) -> Budgets:
    epsilons: list[float] = []
    deltas: list[float] = []
    counts: list[int] = []
    for text in texts:
        budget, colon, users = text.rpartition(":")
        epsilon, comma, delta = budget.partition(",")
        try:
            epsilons.append(float(epsilon))
            deltas.append(float(delta) if comma else 0.0)
            counts.append(_count(users))
        except ValueError:
            what = "is not E:COUNT or E,DELTA0:COUNT" if colon else "lacks its number of users"
            raise InvalidInput(f"--level {text!r} {what}; write it like 0.5:900 or 0.5,1e-9:900") from None
    return Budgets(epsilons, counts, deltas)


def _count(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        value = float(text)
    if not value.is_integer():
        raise ValueError(text)
    return int(value)


def _from_file(file: Path, column: str | None, delta_column: str | None) -> Budgets:
    from shuffledp.tables import read_columns

    if column is None:
        raise InvalidInput(f"--budgets {file} needs --column NAME, the column with each user's epsilon0")
    wanted = [column] if delta_column is None else [column, delta_column]
    with working(f"Reading {file.name}"):
        numbers = read_columns(file, numbers=wanted).numbers
    return Budgets.of(numbers[column], None if delta_column is None else numbers[delta_column])
