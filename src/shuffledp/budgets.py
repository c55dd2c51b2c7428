"""Personal privacy budgets: a population's local budgets (epsilon0, delta0), counted by level."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import BUDGET_RULE, MAX_EPSILON0, VALUE, BadEntry, InvalidInput, whole_number


@dataclass(frozen=True, eq=False)
class Budgets:
    """A population of local budgets (epsilon0, delta0), grouped into ascending levels.

    Parameters
    ----------
    epsilons : array_like, shape (levels,)
        Local epsilon0 of each level, nats, in [0, 700]. Zero is valid: such a user's report carries no
        information.
    counts : array_like of int, shape (levels,)
        Number of users at each level, at least 1.
    deltas : array_like, shape (levels,), optional
        Local delta0 of each level, in [0, 1); default 0 (pure local differential privacy).

    Attributes
    ----------
    epsilons, counts, deltas : ndarray, shape (levels,)
        The same, sorted by (epsilon0, delta0), with equal levels merged; read-only.

    Raises
    ------
    InvalidInput
        On an empty population, different lengths, or any value outside its range.

    Examples
    --------
    >>> budgets = Budgets(epsilons=(0.5, 2.0), counts=(900, 100))
    >>> budgets.n
    1000
    """

    epsilons: NDArray[np.float64]
    counts: NDArray[np.int64]
    deltas: NDArray[np.float64] = field(default=None)  # type: ignore[assignment]

    def __init__(self, epsilons: ArrayLike, counts: ArrayLike, deltas: ArrayLike | None = None) -> None:
        eps = _as_floats(epsilons, "epsilon0")
        dls = np.zeros_like(eps) if deltas is None else _as_floats(deltas, "delta0")
        cts = _as_counts(counts)
        if not eps.size == dls.size == cts.size:
            raise InvalidInput(
                f"budgets need one epsilon0, delta0 and count per level; got {eps.size}, {dls.size} and {cts.size}"
            )
        if eps.size == 0:
            raise InvalidInput("budgets need at least one user; got an empty population")
        _check_range(eps, "epsilon0", MAX_EPSILON0, BUDGET_RULE, closed=True)
        _check_range(dls, "delta0", 1.0, "a probability in [0, 1)", closed=False)
        eps, dls, cts = _merge(eps, dls, cts)
        for name, value in (("epsilons", eps), ("counts", cts), ("deltas", dls)):
            value.setflags(write=False)
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, epsilons: ArrayLike, deltas: ArrayLike | None = None) -> Budgets:
        """Return the population of users whose budgets are given one by one, grouped into levels.

        Parameters
        ----------
        epsilons : array_like, shape (n,)
            Each user's epsilon0, nats, in [0, 700].
        deltas : array_like, shape (n,), or float, optional
            Each user's delta0, in [0, 1); default 0.

        Examples
        --------
        >>> Budgets.of([0.5] * 900 + [2.0] * 100).counts.tolist()
        [900, 100]
        """
        eps = _as_floats(epsilons, "epsilon0")
        if deltas is None and eps.size:
            _check_range(eps, "epsilon0", MAX_EPSILON0, BUDGET_RULE, closed=True)
            return cls(*_counted(eps + 0.0))  # + 0.0 turns -0.0 into 0.0
        dls = None if deltas is None else np.broadcast_to(_as_floats(deltas, "delta0"), eps.shape).copy()
        return cls(eps, np.ones(eps.size, dtype=np.int64), dls)

    @cached_property
    def n(self) -> int:
        """Number of users in the population."""
        return int(self.counts.sum())

    @property
    def levels(self) -> int:
        """Number of levels, that is, of different budgets (epsilon0, delta0)."""
        return int(self.epsilons.size)

    @cached_property
    def is_pure(self) -> bool:
        """Whether every user's delta0 is zero (pure local differential privacy)."""
        return not bool(self.deltas.any())

    def index_of(self, epsilon0: float) -> int:
        """Return the index (from 0) of the level with a given epsilon0; of several, that of the largest delta0.

        Raises
        ------
        InvalidInput
            If no user has that budget.
        """
        last = int(np.searchsorted(self.epsilons, epsilon0, side="right")) - 1
        if last < 0 or self.epsilons[last] != epsilon0:
            some = ", ".join(f"{e:g}" for e in self.epsilons[:5])
            more = ", ..." if self.levels > 5 else ""
            raise InvalidInput(f"no user has epsilon0 = {epsilon0}; the levels are {some}{more}")
        return last

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Budgets):
            return NotImplemented
        return self is other or (
            np.array_equal(self.epsilons, other.epsilons)
            and np.array_equal(self.counts, other.counts)
            and np.array_equal(self.deltas, other.deltas)
        )

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Read a million levels once, not at every look into a table of remembered bounds."""
        return hash((self.epsilons.tobytes(), self.counts.tobytes(), self.deltas.tobytes()))

    def __reduce__(self) -> tuple[type[Budgets], tuple[NDArray[Any], ...]]:
        """Pickle the levels alone: another process hashes bytes differently, and makes its own read-only arrays."""
        return type(self), (self.epsilons, self.counts, self.deltas)

    def __repr__(self) -> str:
        if self.levels > 6:
            return f"Budgets(n={self.n}, levels={self.levels}, epsilon0 {self.epsilons[0]:g} to {self.epsilons[-1]:g})"
        deltas = "" if self.is_pure else f", deltas={tuple(self.deltas.tolist())}"
        return f"Budgets(epsilons={tuple(self.epsilons.tolist())}, counts={tuple(self.counts.tolist())}{deltas})"


def column_to_floats(values: Iterable[object], name: str) -> NDArray[np.float64]:
    """Return a table's column as floats; raise BadEntry that names the first bad row (from 1).

    Parameters
    ----------
    values : iterable
        Entries of the column: numbers, or texts that spell numbers.
    name : str
        Name of the column, for the error message.

    Returns
    -------
    ndarray of float64, shape (n,)
        The numbers.
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiu":
        return values.astype(np.float64)
    listed = list(values)
    out = np.empty(len(listed))
    for row, value in enumerate(listed):
        try:
            out[row] = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            what = "is missing" if value is None or value == "" else f"is {VALUE}, not a number"
            raise BadEntry(f"{name} in row {row + 1} {what}; give every user a number", value) from None
    return out


def _as_floats(values: ArrayLike, what: str) -> NDArray[np.float64]:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"{what} must be numbers; got {_short(values)}") from None
    return np.atleast_1d(array).ravel()


def _as_counts(values: ArrayLike) -> NDArray[np.int64]:
    try:
        raw = np.atleast_1d(np.asarray(values))
        counts = raw.astype(np.int64)
        exact = raw.dtype.kind in "iuf" and bool(np.all(counts == raw))
    except OverflowError:
        raise _too_many(values) from None
    except (TypeError, ValueError):
        exact, counts, raw = False, np.zeros(0, dtype=np.int64), np.zeros(0)
    if not exact:
        raise InvalidInput(f"level counts must be whole numbers; got {_short(values)}")
    bad = np.flatnonzero(counts < 1)
    if bad.size:
        raise InvalidInput(f"a level needs at least one user; got count {raw[bad[0]]}; leave the level out instead")
    if float(raw.astype(np.float64).sum()) > 2.0**53:
        raise _too_many(values)
    return counts.ravel()


def _too_many(values: ArrayLike) -> InvalidInput:
    given = _short(values).strip("[]")
    return InvalidInput(f"at most 2^53 (about 9e15) users can be counted exactly; got {given}; state fewer")


def _check_range(values: NDArray[np.float64], what: str, top: float, rule: str, *, closed: bool) -> None:
    below_top = values <= top if closed else values < top
    bad = np.flatnonzero(~((values >= 0) & below_top))
    if bad.size:
        where = f" (entry {bad[0] + 1} of {values.size})" if values.size > 1 else ""
        raise InvalidInput(f"{what} must be {rule}; got {values[bad[0]]}{where}")


def _merge(
    eps: NDArray[np.float64], dls: NDArray[np.float64], cts: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    if not dls.any() and (cts == 1).all():
        levels, users = _counted(eps + 0.0)
        return levels, np.zeros_like(levels), users.astype(np.int64)
    order = np.lexsort((dls, eps))
    eps, dls, cts = eps[order] + 0.0, dls[order] + 0.0, cts[order]  # + 0.0 turns -0.0 into 0.0
    first = np.concatenate(([True], (eps[1:] != eps[:-1]) | (dls[1:] != dls[:-1])))
    starts = np.flatnonzero(first)
    return eps[starts], dls[starts], np.add.reduceat(cts, starts)


_FEW = 16
"""Largest number of levels that are counted one by one rather than by sorting all users."""


_PROBED = 1024


def _counted(eps: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the different budgets, ascending, and the number of users at each.

    Where a sample shows few different budgets, users are counted budget by budget, which avoids sorting all of them.
    """
    probed = np.unique(eps[:: max(1, eps.size // _PROBED)])
    if eps.size > _PROBED and probed.size <= _FEW:
        counts = np.array([np.count_nonzero(eps == level) for level in probed], dtype=np.int64)
        if counts.sum() == eps.size:
            return probed, counts
    levels, users = np.unique(eps, return_counts=True)
    return levels, users.astype(np.int64)


def _short(values: object) -> str:
    some: object = list(values)[:5] if isinstance(values, Sequence) and not isinstance(values, str) else values
    text = repr(some)
    return text if len(text) <= 80 else text[:77] + "..."


_FEW_LEVELS = 8
"""Largest number of levels for which comparing with each is faster than searching."""


_MANY = 1 << 12


def level_indices(budgets: Budgets, epsilons: ArrayLike, deltas: ArrayLike | None = None) -> NDArray[np.int64]:
    """Return for each report the index of its level in `budgets`, the level of its local budget.

    Parameters
    ----------
    budgets : Budgets
        The population.
    epsilons, deltas : float or array_like, shape (n,)
        Local budget of each report: epsilon0 in nats, delta0 in [0, 1). `deltas` None means 0; a single number holds
        for all reports.

    Returns
    -------
    ndarray of int64, shape of epsilons (or of deltas)
        Indices of levels, from 0 for the lowest one.

    Raises
    ------
    InvalidInput
        If a budget is not a level of the population (the first such row is named, counting from 1).

    Examples
    --------
    >>> level_indices(Budgets((0.5, 2.0), (900, 100)), [2.0, 0.5, 0.5]).tolist()
    [1, 0, 0]
    """
    columns = (epsilons, 0.0 if deltas is None else deltas)
    wanted, slack = np.broadcast_arrays(*(np.asarray(column, dtype=np.float64) for column in columns))
    one_slack = bool((budgets.deltas == budgets.deltas[0]).all())  # complex numbers are sorted as pairs, as budgets are
    levels, sought = (
        (budgets.epsilons, wanted) if one_slack else (_pairs(budgets.epsilons, budgets.deltas), _pairs(wanted, slack))
    )
    if budgets.levels <= _FEW_LEVELS and one_slack:
        indices = sum((wanted > level for level in levels[:-1]), np.zeros(wanted.shape, dtype=np.int8)).astype(np.int64)
    elif budgets.levels > _MANY:  # neighbours are found in memory that was just read
        order = np.argsort(sought, axis=None)
        indices = np.empty(sought.shape, dtype=np.int64)
        indices.reshape(-1)[order] = np.searchsorted(levels, sought.reshape(-1)[order])
    else:
        indices = np.searchsorted(levels, sought)
    indices = np.minimum(indices, budgets.levels - 1)
    wrong = budgets.epsilons[indices] != wanted
    if not one_slack or np.ndim(columns[1]):
        wrong |= budgets.deltas[indices] != slack
    elif budgets.deltas[0] != columns[1]:
        wrong |= True
    if wrong.any():
        row = int(np.argmax(wrong.ravel()))
        raise InvalidInput(
            f"the budget in row {row + 1}, epsilon0 {wanted.ravel()[row]:g} and delta0 {slack.ravel()[row]:g}, is none "
            "of the population's levels; count the same budgets that the reports were drawn with"
        )
    return np.asarray(indices, dtype=np.int64)


def _pairs(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.complex128]:
    return first + 1j * second


# A public grid that budgets are rounded down to, so that any number of different ones become a few thousand.
#
# The grid cuts each octave [2^k, 2^(k+1)) from 2^-10 to 2^10 into `steps` equal steps, a power of two; below 2^-10
# stands 0 alone. A budget x of the octave k becomes floor(x 2^-k steps) 2^k / steps. All operations but floor are
# products with powers of two, so they are exact in any arithmetic of doubles: every engine rounds alike, to the bit,
# and never up.

LOWEST, HIGHEST = -10, 9
"""Exponents of the lowest and of the highest octave of the grid of budgets; the largest budget is 700."""


_OCTAVES = HIGHEST - LOWEST + 1


_MOST = 1 << 20


def checked_levels(levels: object) -> int:
    """Return the number of levels of the grid of budgets, after checking it.

    Raises
    ------
    InvalidInput
        Unless it is a whole number from 21 to 2^20.
    """
    return whole_number(levels, "`levels` of budgets must be a whole number", _OCTAVES + 1, _MOST)


def steps_of(levels: int) -> int:
    """Return the number of steps per octave: the largest power of two with which the grid has at most `levels` values.

    Parameters
    ----------
    levels : int
        Largest number of values of the grid, at least 21.

    Examples
    --------
    >>> steps_of(4096)
    128
    """
    return 1 << (((levels - 1) // _OCTAVES).bit_length() - 1)


def rounded_down(epsilons: NDArray[np.float64], levels: int) -> NDArray[np.float64]:
    """Return budgets rounded down to the grid.

    Parameters
    ----------
    epsilons : ndarray, shape (n,)
        Budgets, nats, in [0, 700].
    levels : int
        Largest number of values of the grid, at least 21.

    Returns
    -------
    ndarray, shape (n,)
        Each at most the budget and, for budgets of at least 2^-10, at least 1 - 1/steps of it.

    Examples
    --------
    >>> rounded_down(np.array([0.0, 0.0001, 0.7, 1.0, 700.0]), 4096).tolist()
    [0.0, 0.0, 0.69921875, 1.0, 700.0]
    """
    octaves = np.frexp(epsilons)[1] - 1  # x = m 2^e with m in [1/2, 1)
    unit = np.ldexp(1.0 / steps_of(levels), np.maximum(octaves, LOWEST))
    return np.where(octaves < LOWEST, 0.0, np.floor(epsilons / unit) * unit)
