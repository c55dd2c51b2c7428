"""Opening the rows of one column, with one process per core; a malformed row does not affect the others.

Imports little, because every process imports it anew.
"""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.sealing import Opener

SEVERAL = 20_000
"""Number of rows from which on several processes are worth starting."""
_PIECE = 10_000


@dataclass(frozen=True, eq=False)
class OpenedRows:
    """The contents of the rows of one column.

    Parameters
    ----------
    contents : ndarray of uint8, shape (kept, width)
        The reports' bytes, of rows that opened, without copies of earlier rows.
    unreadable, repeated : int
        Number of rows that do not open, and of rows that are copies of another one.
    """

    contents: NDArray[np.uint8]
    unreadable: int
    repeated: int


def open_column(
    column: memoryview, size: int, private: bytes, info: bytes, width: int, *, processes: int | None = None
) -> OpenedRows:
    """Open the sealed rows of a column.

    Parameters
    ----------
    column : memoryview
        Rows of `size` bytes, one after the other.
    size : int
        Bytes of a sealed row.
    private : bytes
        The analyzer's private HPKE key.
    info : bytes
        HPKE info of the question.
    width : int
        Bytes of a report; a row that opens to another length counts as unreadable.
    processes : int, optional
        Largest number of processes; by default one per core, or a single one below 20,000 rows.
    """
    rows = np.frombuffer(column, dtype=np.dtype((np.void, size)))
    first = np.sort(np.unique(rows, return_index=True)[1])  # the order of rows says nothing: they were permuted
    distinct = rows[first].tobytes()
    count = min(processes or os.cpu_count() or 1, 1 + len(first) // SEVERAL)
    pieces = [distinct[at : at + _PIECE * size] for at in range(0, len(distinct), _PIECE * size)]
    if count <= 1:
        opened = [_open_piece(private, info, size, width, piece) for piece in pieces]
    else:
        arguments = [(private, info, size, width)] * len(pieces)
        with ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn")) as pool:
            opened = list(pool.map(_open_piece, *zip(*arguments, strict=True), pieces))
    contents = np.frombuffer(b"".join(opened), dtype=np.uint8).reshape(-1, width)
    return OpenedRows(contents, len(first) - contents.shape[0], len(rows) - len(first))


def _open_piece(private: bytes, info: bytes, size: int, width: int, piece: bytes) -> bytes:
    opener = Opener(private)
    opened = (opener.open(piece[at : at + size], info) for at in range(0, len(piece), size))
    return b"".join([row for row in opened if row is not None and len(row) == width])
