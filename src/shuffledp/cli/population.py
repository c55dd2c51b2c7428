"""From the population options to a Setting: who takes part, with which budgets and randomizer, and who sees what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypedDict

from shuffledp.ball import BallDummies
from shuffledp.budgets import Budgets
from shuffledp.dummies import DiscreteLaplace, Dummies, NormalDummies, Uniform, check_family, column_of
from shuffledp.errors import InvalidInput, check_delta, choice, shown
from shuffledp.randomizers.base import AnyLaw
from shuffledp.setting import SEEN, SEEN_MEANING, Seen, Setting
from shuffledp.shell.output import working
from shuffledp.tables.options import AS_FOUND, TableOptions

FAMILIES = (
    "rr, krr:K, sue:K, oue:K, olh:K, hadamard:K, subset:K, one-bit, laplace, gaussian, piecewise, hybrid, "
    "tree:BINS, items:BITS:LEVELS:G, directions:D:M:C, sketch:D:BUCKETS, coordinates:D"
)
AVAILABLE = f"any, {FAMILIES}, memoised:E[:E_FRESH], or the name of a .csv file with a channel matrix"
MATRIX = ".csv"


@dataclass(frozen=True)
class Named:
    """A randomizer family, and the whole numbers that follow its name.

    Parameters
    ----------
    build : callable
        Function of these numbers that returns the family.
    fewest, most : int
        Smallest and largest number of them.
    example : str
        A valid example.
    """

    build: Callable[..., AnyLaw]
    fewest: int
    most: int
    example: str


def parse_randomizer(text: str, available: str = AVAILABLE) -> AnyLaw | Literal["any"]:
    """Return the family of randomizers that the text after --randomizer names.

    Parameters
    ----------
    text : str
        A name of `AVAILABLE`, with its whole numbers where it has any, or a path ending in ``.csv``.
    available : str
        List of names in an error.

    Raises
    ------
    InvalidInput
        If the name is unknown, a number is missing, superfluous or not allowed, or the file holds no channel matrix.
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
    """Return every family by name, with an arbitrary range or vector length, which do not change the guarantee."""
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
    """Return memoised randomized response with the permanent and, if given, the fresh budget."""
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
    """Return a family of numbers with a number of cells and the shape parameters that are given, if any."""
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


GAUSSIAN_NEEDS = "--randomizer gaussian needs a delta0 above 0 for everybody, because Gaussian noise is never pure"


@dataclass(frozen=True)
class Population:
    """The population options, as typed; exactly one of the three forms must be used.

    Parameters
    ----------
    epsilon0, n : number or None
        One budget for everybody, and the number of users.
    levels : list of str
        Texts such as ``"0.5:900"`` or ``"0.5,1e-9:900"``.
    file : Path or None
        A table with one row per user; `column` and `delta_column` name its budgets.
    table : TableOptions
        Format of that table.
    or_file : bool
        Whether the command can read a table; used in messages.
    """

    epsilon0: float | None = None
    n: int | None = None
    levels: tuple[str, ...] = ()
    file: Path | None = None
    column: str | None = None
    delta_column: str | None = None
    table: TableOptions = AS_FOUND
    or_file: bool = True

    def __post_init__(self) -> None:
        if self.file is None:
            everything = ("decimal", "thousands", "missing_values", "show_values")
            self.table.refuse_for_text("no --budgets FILE is given", everything)

    def budgets(self) -> Budgets:
        """Return the budgets with the number of users at each level.

        Raises
        ------
        InvalidInput
            If none or several of the three forms are used, or a value is not allowed.
        """
        single = self.epsilon0 is not None or self.n is not None
        if [single, bool(self.levels), self.file is not None].count(True) != 1:
            table = ", or --budgets FILE --column NAME" if self.or_file else ""
            raise InvalidInput(
                f"give the population in exactly one way: --epsilon0 E --n N, or --level E:COUNT (repeated){table}"
            )
        self.check_columns()
        if self.levels:
            return _from_levels(self.levels)
        if self.file is not None:
            return _budgets_of_file(self.file, self.column, self.delta_column, self.table)
        if self.epsilon0 is None or self.n is None:
            raise InvalidInput("--epsilon0 E and --n N belong together; give both")
        return Budgets(epsilons=[self.epsilon0], counts=[self.users()])

    def users(self) -> int:
        """Return --n, which must have been given."""
        if self.n is None or self.n < 1:
            raise InvalidInput(f"--n must be at least 1; got {self.n}")
        return self.n

    def check_columns(self) -> None:
        """Refuse names of columns without a file."""
        if self.file is None and (self.column is not None or self.delta_column is not None):
            raise InvalidInput("--column and --delta-column name columns of --budgets FILE; give the file too")


class Situation(TypedDict):
    """The parts of a `Setting` besides its population and delta, parsed; each field is that of `Setting`."""

    randomizer: AnyLaw | Literal["any"]
    seen: Seen
    rounds: int
    linked: bool
    same_record: bool
    colluding: int
    missing: float
    group_size: int
    reports_per_user: int
    dummies: Dummies | None
    records: int | None


@dataclass(frozen=True)
class TypedSituation:
    """The options that describe a collection besides its population, as typed; `Setting` defines and checks each part.

    Parameters
    ----------
    randomizer : str
        The text after --randomizer.
    seen : str or None
        The text after --seen; None if it was left out.
    rounds, colluding, group_size, reports_per_user : int
        As in `Setting`.
    missing : float
        As in `Setting`.
    linked, same_record : bool
        As in `Setting`.
    dummies : str or None
        The text after --dummies.
    delta : float
        Central delta, for which the ratio of a discrete Laplace law is chosen where --dummies does not state it.
    records : int or None
        As in `Setting`.
    """

    randomizer: str = "any"
    seen: str | None = None
    rounds: int = 1
    linked: bool = False
    colluding: int = 0
    missing: float = 0.0
    group_size: int = 1
    reports_per_user: int = 1
    dummies: str | None = None
    delta: float = 1e-6
    records: int | None = None
    same_record: bool = False

    def situation(self, levels: int) -> Situation:
        """Return the parsed options for a population with ``levels`` budget levels."""
        randomizer = parse_randomizer(self.randomizer)
        return Situation(
            randomizer=randomizer,
            seen=parse_seen(self.seen, levels),
            rounds=self.rounds,
            linked=self.linked,
            same_record=self.same_record,
            colluding=self.colluding,
            missing=self.missing,
            group_size=self.group_size,
            reports_per_user=self.reports_per_user,
            dummies=parse_dummies(self.dummies, self.delta, randomizer),
            records=self.records,
        )

    def about(self, budgets: Budgets) -> Setting:
        """Return the setting with a population, after checking every option."""
        if self.randomizer == "gaussian" and not budgets.deltas.all():
            raise InvalidInput(f"{GAUSSIAN_NEEDS}; write --level E,DELTA0:COUNT, or name a --delta-column")
        return Setting(budgets, neighboring="replace-one", **self.situation(budgets.levels))


def parse_dummies(text: str | None, delta: float, randomizer: AnyLaw | Literal["any"]) -> Dummies | None:
    """Return the dummies of --dummies.

    The forms are M, laplace:M, laplace:M:RATIO, ball:EPSILON, ball:RATE:RADIUS:CENTRE and normal:SPREAD:CENTRE.

    Parameters
    ----------
    text : str or None
        The text after --dummies.
    delta : float
        Central delta: where no ratio is stated, the law's ends have at most that probability; at it, ball dummies keep
        the central EPSILON even for reports without local noise.
    randomizer : RandomizerLaw, NoiseLaw or "any"
        The family, for which ball dummies are made.
    """
    if text is None:
        return None
    law, *numbers = text.split(":") if text.startswith(("laplace", "ball", "normal")) else ("uniform", text)
    forms: dict[tuple[str, int], tuple[Callable[[str], float], ...]] = {
        ("uniform", 1): (_count,),
        ("laplace", 1): (_count,),
        ("laplace", 2): (_count, float),
        ("ball", 1): (float,),
        ("ball", 3): (float, _count, _count),
        ("normal", 2): (float, _count),
    }
    try:
        first, *others = (read(number) for read, number in zip(forms[law, len(numbers)], numbers, strict=True))
    except (KeyError, ValueError):
        raise InvalidInput(
            "--dummies must be M, laplace:M, laplace:M:RATIO, ball:EPSILON, ball:RATE:RADIUS:CENTRE or "
            f"normal:SPREAD:CENTRE, like 172, laplace:60 or ball:1; got {shown(text)}"
        ) from None
    if law == "uniform":
        return Uniform(int(first))
    if law == "laplace":
        count = int(first)
        return DiscreteLaplace(count, *others) if others else DiscreteLaplace.reaching(count, check_delta(delta))
    if randomizer == "any":
        raise InvalidInput(
            f"--dummies {law}:... are made for one randomizer; name it with --randomizer krr:K, or take M or laplace:M"
        )
    column = column_of(check_family(randomizer))
    if law == "normal":
        return NormalDummies(column.size, first, int(others[0]))
    if others:
        return BallDummies.of_rate((column,), first, int(others[0]), (int(others[1]),))
    return BallDummies.of_promise((column,), [(first, ())], check_delta(delta))


def parse_seen(seen: str | None, levels: int, views: tuple[Seen, ...] = SEEN) -> Seen:
    """Return the view of --seen, which may be left out only where it makes no difference.

    Parameters
    ----------
    seen : str or None
        The text after --seen.
    levels : int
        Number of different budgets.
    views : tuple of str
        Views that the command accepts.
    """
    if seen is None:
        if levels > 1:
            ways = [f"{name} ({SEEN_MEANING[name]})" for name in views]
            listed = f"{', '.join(ways[:-1])} or {ways[-1]}"
            raise InvalidInput(f"--seen is needed, because there are {levels} budget levels; choose one of {listed}")
        return "reports"
    return choice(seen, "--seen", views)


def _from_levels(texts: tuple[str, ...]) -> Budgets:
    levels: list[tuple[float, int, float]] = []
    for text in texts:
        budget, colon, users = text.rpartition(":")
        epsilon, comma, delta = budget.partition(",")
        try:
            level = (float(epsilon), _count(users), float(delta) if comma else 0.0)
            Budgets(*([part] for part in level))
        except InvalidInput as error:
            raise InvalidInput(f"--level {shown(text)}: {error}") from None
        except ValueError:
            what = "is not E:COUNT or E,DELTA0:COUNT" if colon else "lacks its number of users"
            raise InvalidInput(f"--level {shown(text)} {what}; write it like 0.5:900 or 0.5,1e-9:900") from None
        levels.append(level)
    return Budgets(*zip(*levels, strict=True))


def _count(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        value = float(text)
    if not value.is_integer():
        raise ValueError(text)
    return int(value)


def _budgets_of_file(file: Path, column: str | None, delta_column: str | None, table: TableOptions) -> Budgets:
    from shuffledp.tables import read_columns

    if column is None:
        raise InvalidInput(f"--budgets {file} needs --column NAME, the column with each user's epsilon0")
    wanted = [column] if delta_column is None else [column, delta_column]
    with working(f"Reading {file.name}"):
        numbers = read_columns(file, numbers=wanted, options=table).numbers
    return Budgets.of(numbers[column], None if delta_column is None else numbers[delta_column])
