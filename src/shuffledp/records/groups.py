"""The names of public groups, and which of them each row is in."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import VALUE, BadEntry, InvalidInput
from shuffledp.records.columns import as_labels, check_different, known_codes
from shuffledp.records.sources import Batch
from shuffledp.tables.spelling import one_spelling

MOST = 1000


@dataclass(frozen=True)
class Groups:
    """Groups whose names are public, and so is who belongs to which.

    Parameters
    ----------
    column : str
        The column with each row's group.
    names : tuple of hashable
        The groups, at least one, known beforehand.

    Raises
    ------
    InvalidInput
        If there is none, a name is given twice, or there are more than 1,000.
    """

    column: str
    names: tuple[Hashable, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.names) <= MOST or len(set(self.names)) < len(self.names):
            raise InvalidInput(
                f"`groups` must name 1 to {MOST:,} different groups, known beforehand; got {len(self.names)}, of which "
                f"{len(set(self.names))} differ"
            )
        check_different(self.names, "group", "groups")

    def codes(self, batch: Batch) -> NDArray[np.int64]:
        """Return the place of each row's group, shape (rows,).

        Raises
        ------
        InvalidInput
            If a row belongs to none of them.
        """
        column = as_labels(batch.texts(self.column))
        codes = known_codes(column, self.names)
        if (codes >= 0).all():
            return codes
        row = int(np.argmin(codes))
        word = one_spelling(column[row])
        what = "is missing" if word is None else f"is {VALUE}, none of the groups"
        raise BadEntry(
            f"{self.column} in row {batch.before + row + 1} {what}; a person's group is public: give every row one "
            "of those that `groups` names, or name this one too",
            column[row],
        )
