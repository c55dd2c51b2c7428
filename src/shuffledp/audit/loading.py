"""The subjects of audits: this library's families, a Python function, a function in a file, an external command."""

from __future__ import annotations

import importlib.util
import inspect
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.audit.scores import Printed, Reading, Reports, read_reports
from shuffledp.errors import InvalidInput, named, shown
from shuffledp.numerics.floats import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.randomizers.base import FrequencyOracle

COMMAND = "command:"
COMMAND_SECONDS = 600.0
"""Number of seconds that a command may take for one call."""
_GROUP = 48  # powers of two whose sums a double holds exactly, with room to spare


@runtime_checkable
class Runnable(Protocol):
    """A randomizer family of this library."""

    @property
    def name(self) -> str:
        """Name of the randomizer family on the command line."""
        ...

    def randomize(self, records: ArrayLike, epsilon0: ArrayLike, random: Randomness) -> NDArray[Any]:
        """Return one report per record, shape (n, ...); see `FrequencyOracle.randomize`."""
        ...


@runtime_checkable
class VectorFamily(Protocol):
    """A randomizer family of this library for vectors of bounded norm."""

    @property
    def dimension(self) -> int:
        """Number of entries of a vector."""
        ...

    @property
    def bound(self) -> float:
        """The largest norm of a record."""
        ...

    def values(self, reports: NDArray[Any]) -> NDArray[Any]:
        """Return the vector that each report encodes, shape (n, dimension)."""
        ...


Subjectable = Runnable | Callable[..., Any] | str
"""The types of randomizers that `audit_randomizer` accepts."""


@dataclass(frozen=True, eq=False)
class Subject:
    """A randomizer under attack.

    Parameters
    ----------
    name : str
        Name for messages.
    call : callable
        Function of (records, random) that returns the reports.
    records : tuple
        Records to try; the attack looks for the worst pair among them.
    reading : callable, optional
        How strongly a report indicates a record (see `shuffledp.audit.scores.Reading`), where it is known.
    costly : bool
        Whether a call takes long, however few its rows, as starting a program does.
    """

    name: str
    call: Callable[[NDArray[Any], Randomness], Any]
    records: tuple[Any, ...]
    reading: Reading | None = None
    costly: bool = False

    def draw(self, labels: NDArray[np.int64], random: Randomness, like: Reports | None = None) -> Reports:
        """Return the reports of one call, user i holding the record of index labels[i].

        Parameters
        ----------
        labels : ndarray of int, shape (n,)
            Indices of records.
        random : Randomness
            Source of the noise.
        like : Reports, optional
            See `read_reports`.

        Raises
        ------
        InvalidInput
            If it fails, or does not return one report per record.
        """
        records = np.asarray(self.records)[labels]
        return read_reports(self.call(records, random), labels.size, self.name, like)


def subject(
    randomizer: Subjectable, epsilon0: float, delta0: float, records: Sequence[Any] | None, reading: Reading | None
) -> Subject:
    """Return a randomizer of any accepted type as a `Subject`.

    Parameters
    ----------
    randomizer : family of this library, callable, or str
        See `shuffledp.audit.audit_randomizer`.
    epsilon0, delta0 : float
        The budget at which a family is run.
    records : sequence, optional
        At least two different records; by default a few of the family's, and 0 and 1 for others.
    reading : callable, optional
        See `Subject`.

    Raises
    ------
    InvalidInput
        If the randomizer cannot be run, or there are fewer than two different records.
    """
    if isinstance(randomizer, str):
        return _checked(_from_text(randomizer, reading), records)
    if isinstance(randomizer, Runnable):
        return _checked(_family(randomizer, epsilon0, delta0, reading), records)
    if callable(randomizer):
        name = getattr(randomizer, "__name__", type(randomizer).__name__)
        return _checked(Subject(name, _python_call(randomizer, name), (0, 1), reading), records)
    name = getattr(randomizer, "name", None) or repr(randomizer)
    raise InvalidInput(
        f"{name} cannot be run, so it cannot be audited; give a family with randomize, a function, "
        f"FILE.py:FUNCTION, or {COMMAND}PROGRAM"
    )


def _checked(subject: Subject, records: Sequence[Any] | None) -> Subject:
    if records is None:
        return subject
    kept = tuple(dict.fromkeys(tuple(entry) if isinstance(entry, list | np.ndarray) else entry for entry in records))
    if len(kept) < 2:
        raise InvalidInput(f"an audit compares at least two different records; got {shown(list(records))}")
    return replace(subject, records=kept)


# ------------------------------------------------------------------ families of ours


def _family(family: Runnable, epsilon0: float, delta0: float, reading: Reading | None) -> Subject:
    if isinstance(family, FrequencyOracle):
        family = family.for_budgets([epsilon0], [1])
        reading = reading or _support_reading(family)
    elif isinstance(family, VectorFamily):
        reading = reading or _vector_reading(family)
    takes_delta = "delta0" in inspect.signature(family.randomize).parameters
    extra = {"delta0": delta0} if takes_delta else {}

    def call(records: NDArray[Any], random: Randomness) -> Any:
        return family.randomize(records, epsilon0, random, **extra)

    return Subject(family.name, call, family_records(family), reading)


def family_records(family: Any) -> tuple[Any, ...]:
    """Return records of a family that are worth trying.

    They are a few categories, the ends and the middle of a range, or two vectors.
    """
    if hasattr(family, "low"):
        return (family.low, family.high, 0.5 * (family.low + family.high))
    if hasattr(family, "k"):
        return tuple(dict.fromkeys((0, 1, family.k // 2, family.k - 1)))
    if hasattr(family, "dimension"):
        rest = family.bound if family.norm == "linf" else 0.0
        along = (float(family.bound), *[float(rest)] * (int(family.dimension) - 1))
        return (along, tuple(0.0 - entry for entry in along))
    return (0, 1)


def _vector_reading(family: VectorFamily) -> Reading:
    """Return a reading: the inner product of the vector that a report encodes with the record."""
    return lambda reports, record: np.asarray(family.values(reports), dtype=np.float64) @ np.asarray(record)


def _support_reading(family: FrequencyOracle) -> Reading:
    """Return a reading: whether a report supports a category.

    Weights that are powers of two give the result for a whole group of categories at once.
    """

    def reading(reports: NDArray[Any], record: Any) -> FloatArray:
        supported = np.empty(len(reports))
        for start in range(0, len(reports), _GROUP):
            part = reports[start : start + _GROUP]
            powers = np.exp2(np.arange(len(part), dtype=np.float64))
            total = int(family.support_counts(part, powers)[int(record)])
            supported[start : start + len(part)] = (total >> np.arange(len(part))) & 1
        return supported

    return reading


# ------------------------------------------------------------------ other people's


def _python_call(function: Callable[..., Any], name: str) -> Callable[[NDArray[Any], Randomness], Any]:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        parameters = {}
    takes_random = "random" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())

    def call(records: NDArray[Any], random: Randomness) -> Any:
        try:
            return function(records, random=random) if takes_random else function(records)
        except (Exception, SystemExit) as error:
            what = f"{type(error).__name__}: {named(str(error))}" if str(error) else type(error).__name__
            raise InvalidInput(
                f"{name} raised {what}; it is called with {_counted(len(records))} such as {shown(records.tolist()[0])}"
                + (" and random=" if takes_random else "")
            ) from error

    return call


def _from_text(text: str, reading: Reading | None) -> Subject:
    if text.startswith(COMMAND):
        return Subject(text, _command_call(text.removeprefix(COMMAND)), (0, 1), reading, costly=True)
    path, colon, function = text.rpartition(":")
    if colon and path.endswith(".py"):
        return Subject(text, _python_call(_load(Path(path), function), text), (0, 1), reading)
    raise InvalidInput(
        f"{shown(text)} is not something to audit; write FILE.py:FUNCTION or {COMMAND}PROGRAM, or name one of the "
        "families"
    )


def _load(path: Path, function: str) -> Callable[..., Any]:
    if not path.is_file():
        raise InvalidInput(f"{path} does not exist; write FILE.py:FUNCTION with an existing file")
    specification = importlib.util.spec_from_file_location(f"shuffledp_audited_{path.stem}", path)
    if specification is None or specification.loader is None:
        raise InvalidInput(f"{path} cannot be imported; write FILE.py:FUNCTION with a Python file")
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module  # dataclasses look their module up there
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        specification.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise InvalidInput(f"{path} cannot be imported ({type(error).__name__}: {error}); mend it first") from error
    finally:
        if folder in sys.path:
            sys.path.remove(folder)
    attribute = getattr(module, function, None)
    if not callable(attribute):
        names = [name for name, entry in vars(module).items() if callable(entry) and not name.startswith("_")]
        available = f"; it has {', '.join(sorted(names)[:8])}" if names else ""
        raise InvalidInput(f"{path} has no function {shown(function)}{available}; write FILE.py:FUNCTION")
    return attribute


def _command_call(line: str) -> Callable[[NDArray[Any], Randomness], Any]:
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise InvalidInput(f"{COMMAND}{line} cannot be read ({error}); quote it as in a shell") from None
    if not words:
        raise InvalidInput(f"{COMMAND} needs a program; write it like '{COMMAND}./randomizer --epsilon 1'")

    def call(records: NDArray[Any], random: Randomness) -> Any:
        del random  # a program has noise of its own
        given = "".join(f"{record}\n" for record in records.tolist())
        try:
            done = subprocess.run(words, input=given, capture_output=True, text=True, timeout=COMMAND_SECONDS)
        except OSError as error:
            raise InvalidInput(f"command {shown(words[0])} cannot be run: {error.strerror}; check its name") from None
        except subprocess.TimeoutExpired:
            raise InvalidInput(
                f"command {shown(words[0])} took more than {COMMAND_SECONDS:g} s for {_counted(len(records))}; "
                "ask for fewer trials"
            ) from None
        except UnicodeDecodeError:
            raise InvalidInput(f"command {shown(words[0])} printed something that is not UTF-8 text") from None
        if done.returncode:
            message = named(next(iter(done.stderr.strip().splitlines()[-1:]), "nothing on stderr"))
            raise InvalidInput(f"command {shown(words[0])} failed with status {done.returncode}: {message}")
        lines = done.stdout.splitlines()
        if len(lines) != len(records):
            raise InvalidInput(
                f"command {shown(words[0])} printed {len(lines)} lines for {_counted(len(records))}; print "
                f"one report each"
            )
        return _parsed(lines)

    return call


def _counted(records: int) -> str:
    return f"{records} record" if records == 1 else f"{records} records"


def _parsed(lines: list[str]) -> Printed:
    """Return printed lines as numbers, rows of numbers separated by commas or blanks, or words."""
    rows = [line.replace(",", " ").split() for line in lines]
    try:
        table = np.array([[float(cell) for cell in row] for row in rows])
    except ValueError:
        return Printed(lines, np.array([line.strip() for line in lines]))
    return Printed(lines, table[:, 0] if table.ndim == 2 and table.shape[1] == 1 else table)
