"""Whose row is it: people with several rows are counted, and refused, grouped, or represented by one row each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness, Words
from shuffledp.tables.entries import MISSING

if TYPE_CHECKING:
    import polars as pl

RowsPerPerson = int | Literal["refuse", "one"]


@dataclass(frozen=True)
class Owned:
    """What the rows say about people.

    Parameters
    ----------
    people : int
        Different owners.
    group_size : int
        Most rows of one owner that are used, as the caller stated it.
    used : ndarray of bool, shape (rows,), optional
        Which rows are used; None: all.
    """

    people: int
    group_size: int
    used: NDArray[np.bool_] | None


class Owners:
    """Counts the rows of each person, in one pass over the person column alone.

    Parameters
    ----------
    column : str
        The person column; its entries are compared as text.
    rows_per_person : {"refuse", "one"} or int
        "refuse": people with several rows are an error, which says how many they are. "one": one row of each is used,
        chosen by `random` without looking at any other column. A number K: every row is used, whoever owns more than K
        is an error, and the guarantee must be for groups of K rows.
    random : Randomness
        For "one".

    Raises
    ------
    InvalidInput
        If `rows_per_person` is none of these.
    """

    def __init__(self, column: str, rows_per_person: RowsPerPerson, random: Randomness) -> None:
        self.column = column
        self.rule = checked_rule(rows_per_person)
        self._random = random
        self._names: list[pl.Series] = []
        self._keys: list[Words] = []

    @property
    def chooses(self) -> bool:
        """Whether one row of each person is used."""
        return self.rule == "one"

    @property
    def groups(self) -> bool:
        """Whether a person may have several rows that are all used."""
        return self.rule not in ("one", "refuse", 1)

    def add(self, names: Any, before: int) -> None:
        """Take the person column of more rows.

        Parameters
        ----------
        names : sequence, array or polars Series
            Whose row each is.
        before : int
            Rows that came before these.

        Raises
        ------
        InvalidInput
            If an entry is empty.
        """
        import polars as pl

        column = names if isinstance(names, pl.Series) else pl.Series(values=[_name(entry) for entry in names])
        column = column.cast(pl.String).str.strip_chars()
        empty = column.is_null() | column.str.to_lowercase().is_in(MISSING)
        if empty.any():  # taken as one person, whoever owns such a row would have reports that nobody counts
            row = int(empty.arg_max() or 0)
            entry, several = column[row], f" ({int(empty.sum())} such rows in all)" if int(empty.sum()) > 1 else ""
            what = shown(entry) if entry else "empty"
            raise InvalidInput(
                f"{self.column} in row {before + row + 1} is {what}, so nobody knows whose row it is; "
                f"give every row its person{several}"
            )
        self._names.append(column.rename("person"))
        if self.chooses:
            self._keys.append(self._random.words(column.len()))

    def settle(self) -> Owned:
        """Apply the rule to all rows taken.

        Raises
        ------
        InvalidInput
            If a person owns more rows than the rule allows.
        """
        import polars as pl

        rows = pl.concat(self._names).to_frame()
        if self.chooses:
            return self._chosen(rows)
        counts = rows.group_by("person").len()["len"]
        most = 1 if self.rule == "refuse" else int(self.rule)
        if most > rows.height:
            raise InvalidInput(f"`rows_per_person` must be at most the {rows.height:,} rows there are; got {most}")
        above, largest = int((counts > most).sum()), int(counts.max() or 0)  # type: ignore[arg-type]
        if above:
            way_out = ", or `rows_per_person = 'one'` to use one row of each person, chosen at random"
            raise InvalidInput(several_rows(above, counts.len(), largest, most) + way_out)
        return Owned(counts.len(), most, None)

    def one_budget(self, epsilons: FloatArray, deltas: FloatArray) -> None:
        """Refuse people whose rows have several budgets: nothing is proved for them (docs/theorems/situations.md).

        Parameters
        ----------
        epsilons, deltas : ndarray, shape (rows,)
            The budget of each row.

        Raises
        ------
        InvalidInput
            If somebody's rows have more than one.
        """
        import polars as pl

        rows = pl.concat(self._names).to_frame()
        apart = rows.with_columns(pl.Series("epsilon0", epsilons), pl.Series("delta0", deltas)).unique()
        each = apart.group_by("person").len()["len"]
        several = int((each > 1).sum())
        if several:
            way_out = ", or use one row of each person with `rows_per_person = 'one'`"
            raise InvalidInput(several_budgets(several, each.len()) + way_out)

    def per_group(self, codes: NDArray[np.int64], groups: int) -> list[int]:
        """Count the people of each group of rows.

        Parameters
        ----------
        codes : ndarray of int64, shape (rows,)
            Each row's group.
        groups : int
            How many there are.

        Raises
        ------
        InvalidInput
            If a person has rows in several groups.
        """
        import polars as pl

        rows = pl.concat(self._names).to_frame().with_columns(pl.Series("group", codes))
        apart = rows.unique()
        several = apart.height - apart["person"].n_unique()
        if several:
            raise InvalidInput(
                f"people have rows in several groups ({several:,} times), so what one group costs is not all that a "
                "person spends; use one row of each with `rows_per_person = 'one'`, or group by what a person keeps"
            )
        counts = dict(apart.group_by("group").len().iter_rows())
        return [int(counts.get(place, 0)) for place in range(groups)]

    def _chosen(self, rows: pl.DataFrame) -> Owned:
        """Use the row of each person whose random key is smallest; equal keys (chance n^2 2^-65) go by place."""
        import polars as pl

        keyed = rows.with_columns(pl.Series("key", np.concatenate(self._keys))).with_row_index("row")
        chosen = keyed.group_by("person").agg(pl.col("row").sort_by("key", "row").first())["row"].to_numpy()
        used = np.zeros(rows.height, dtype=np.bool_)
        used[chosen] = True
        return Owned(chosen.size, 1, used)


def several_budgets(several: int, people: int) -> str:
    """Say how many people have rows of several budgets, and what would do.

    Parameters
    ----------
    several, people : int
        How many of them, and how many people there are.
    """
    return (
        f"{several:,} of {people:,} people have rows of different budgets, and a guarantee for rows of one budget is "
        "none for them; give all rows of a person one budget, such as the smallest"
    )


def several_rows(above: int, people: int, largest: int, most: int) -> str:
    """Say how many people own more rows than the rule allows, and what would allow them.

    Parameters
    ----------
    above, people : int
        How many own too many rows, and how many people there are.
    largest, most : int
        Rows of one person: the most there are, and the most that the rule allows.
    """
    verb = "owns" if above == 1 else "own"
    several = "several rows" if most == 1 else f"more than {most} rows"
    return (
        f"{above:,} of {people:,} people {verb} {several} (one owns {largest:,}), so a guarantee for one row would not "
        f"be one for a person; say `rows_per_person = {largest}` to protect groups of that many rows"
    )


def checked_rule(rows_per_person: object) -> RowsPerPerson:
    """Read what happens to people with several rows.

    Raises
    ------
    InvalidInput
        If it is neither "refuse" nor "one" nor a whole number of at least 1.
    """
    if rows_per_person in ("refuse", "one"):
        return rows_per_person  # type: ignore[return-value]
    text = str(rows_per_person)
    if not isinstance(rows_per_person, bool) and text.isascii() and text.isdigit() and int(text) >= 1:
        return int(text)
    raise InvalidInput(
        f"`rows_per_person` must be 'refuse', 'one' or a whole number of at least 1; got {shown(rows_per_person)}"
    )


def _name(entry: object) -> str | None:
    return None if entry is None or (isinstance(entry, float) and entry != entry) else str(entry)
