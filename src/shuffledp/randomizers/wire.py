"""Reports as bytes: a header that names the task, and reports of one fixed size (docs/wire.md).

A family takes part by saying how many bits a report has and how it is written: `WireFormat`.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InvalidInput, shown
from shuffledp.randomizers.bits import PackedBits, bytes_for

MAGIC = b"SHFL"
VERSION = 1
_HEADER = struct.Struct("<4sBBHIQ16s")  # magic, version, reserved: 0, bytes of the name and of a report, reports, task


@runtime_checkable
class WireFormat(Protocol):
    """What a family states so that its reports can travel; the family's `repr` names all its parameters."""

    @property
    def name(self) -> str:
        """The name the command line uses, with every parameter that shapes a report, such as ``"olh:100:4"``."""
        ...

    @property
    def report_bits(self) -> int:
        """Bits of one report, the same for all reports and budgets of a task."""
        ...

    def pack(self, reports: NDArray[Any]) -> PackedBits:
        """One row of bytes a report, shape (n, bytes), lowest bit first, the bits beyond `report_bits` 0."""
        ...

    def unpack(self, rows: PackedBits) -> NDArray[Any]:
        """Return the reports that `pack` was given; InvalidInput names the first row that is no possible report."""
        ...

    def possible(self, rows: PackedBits) -> NDArray[np.bool_]:
        """Whether each row of bytes is a report that `unpack` reads, shape (n,); nothing is refused."""
        ...


def encode(reports: NDArray[Any], family: WireFormat, *, task: str = "") -> bytes:
    """Write reports as bytes.

    Parameters
    ----------
    reports : ndarray, first axis n
        As the family's `randomize` returned them.
    family : WireFormat
        The member of the family that drew them; its shape must be fixed (`for_budgets`).
    task : str
        What else the parties agree on: a name for this collection, with its round. Reports of another task are
        refused when they are read.

    Returns
    -------
    bytes
        Header and n reports of equal size, as docs/wire.md says.

    Raises
    ------
    InvalidInput
        If the reports are not the family's.

    Examples
    --------
    >>> from shuffledp.randomizers import RandomizedResponse
    >>> data = encode(np.array([2, 0]), RandomizedResponse(3), task="lunch, week 1")
    >>> decode(data, RandomizedResponse(3), task="lunch, week 1").tolist()
    [2, 0]
    """
    rows = family.pack(reports)
    name = family.name.encode()
    size = bytes_for(family.report_bits)
    header = _HEADER.pack(MAGIC, VERSION, 0, len(name), size, rows.shape[0], fingerprint(family, task))
    return header + name + rows.tobytes()


def decode(data: bytes | bytearray | memoryview, family: WireFormat, *, task: str = "") -> NDArray[Any]:
    """Read reports that `encode` wrote.

    Parameters
    ----------
    data : bytes
        One message, whole.
    family : WireFormat
        The member of the family that drew them.
    task : str
        As it was written.

    Returns
    -------
    ndarray, first axis n
        The reports.

    Raises
    ------
    InvalidInput
        If the bytes are no reports, of another version or task, cut short or too long, or hold a report that
        cannot be. Nothing is read from such a message.
    """
    return family.unpack(_rows(data, family, task))


def decode_each(
    data: bytes | bytearray | memoryview, family: WireFormat, *, task: str = ""
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Read a message row by row: reports that cannot be are left out instead of spoiling the others.

    Parameters
    ----------
    data, family, task
        As for `decode`.

    Returns
    -------
    reports : ndarray, first axis m <= n
        The reports of the rows that hold one, in their order.
    possible : ndarray of bool, shape (n,)
        Which rows those are.

    Raises
    ------
    InvalidInput
        As `decode`, but for impossible reports: a message whose header or length is wrong has no rows.

    Examples
    --------
    >>> from shuffledp.randomizers import RandomizedResponse
    >>> data = encode(np.array([2, 0, 1]), RandomizedResponse(3))
    >>> reports, possible = decode_each(data[:-1] + bytes([3]), RandomizedResponse(3))
    >>> reports.tolist(), possible.tolist()
    ([2, 0], [True, True, False])
    """
    return unpack_each(_rows(data, family, task), family)


def unpack_each(rows: PackedBits, family: WireFormat) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Read rows of bytes one by one, as `decode_each` reads those of a message.

    Parameters
    ----------
    rows : ndarray of uint8, shape (n, S)
        One row a report; S is the least number of bytes that holds `report_bits`.
    family : WireFormat
        The member of the family that drew them.

    Returns
    -------
    reports, possible
        As for `decode_each`.

    Raises
    ------
    InvalidInput
        If the array has another type or shape.
    """
    size = bytes_for(family.report_bits)
    if rows.dtype != np.uint8 or rows.ndim != 2 or rows.shape[1] != size:
        raise InvalidInput(
            f"rows of reports are bytes (uint8) of shape (n, {size}) in this task; got {rows.dtype} of shape "
            f"{rows.shape}"
        )
    possible = family.possible(rows)
    return family.unpack(rows[possible]), possible


def _rows(data: bytes | bytearray | memoryview, family: WireFormat, task: str) -> PackedBits:
    """Return the rows of a message whose header and length are right; see `decode`."""
    view = memoryview(data).cast("B")
    if len(view) < _HEADER.size or bytes(view[:4]) != MAGIC:
        _refuse_headless(view)
    _, version, reserved, name_size, size, n, digest = _HEADER.unpack_from(view)
    if version != VERSION:
        raise InvalidInput(f"these reports are of wire version {version}; this library reads version {VERSION}")
    if reserved:
        raise InvalidInput(f"the header's sixth byte is {reserved}, and 0 in every message of version {VERSION}")
    start = _HEADER.size + name_size
    if len(view) < start:
        raise InvalidInput(f"the reports are cut short: {len(view)} bytes, and the header alone has {start}")
    name = bytes(view[_HEADER.size : start]).decode("utf-8", "replace")
    if digest != fingerprint(family, task) or name != family.name or size != bytes_for(family.report_bits):
        raise InvalidInput(
            f"these reports are of another task: they say {shown(name)}, and {shown(family.name)} with task "
            f"{shown(task)} was asked for; name and parameters of the family and the task's text must be the ones they "
            "were written with"
        )
    if len(view) != start + n * size:
        raise InvalidInput(
            f"the reports are {'cut short' if len(view) < start + n * size else 'too long'}: {n} of {size} bytes need "
            f"{start + n * size} bytes with their header; got {len(view)}"
        )
    return np.frombuffer(view, dtype=np.uint8, offset=start).reshape(n, size)


def fingerprint(family: WireFormat, task: str) -> bytes:
    """Return the first 16 bytes of the SHA-256 of version, family with all its parameters, and task."""
    return hashlib.sha256("\0".join(("shuffledp wire", str(VERSION), repr(family), task)).encode()).digest()[:16]


def pack_integers(values: NDArray[Any], bits: int) -> PackedBits:
    """Whole numbers below 2^bits (at most 64) as rows of bytes, lowest byte first.

    Raises
    ------
    InvalidInput
        If one is out of range (the first such row is named).
    """
    _check_width(values, bits)
    rows = values.astype("<u8").view(np.uint8).reshape(values.size, 8)
    return np.ascontiguousarray(rows[:, : bytes_for(bits)])


def unpack_integers(rows: PackedBits, bits: int) -> NDArray[np.uint64]:
    """Return the whole numbers `pack_integers` was given, as uint64.

    Raises
    ------
    InvalidInput
        If one is 2^bits or more (the first such row is named).
    """
    values = _integers(rows)
    _check_width(values, bits)
    return values


def possible_integers(rows: PackedBits, bits: int, bound: int) -> NDArray[np.bool_]:
    """Whether each row is a whole number below a bound that `unpack_integers` reads.

    Parameters
    ----------
    rows : ndarray of uint8, shape (n, S)
        One number a row, lowest byte first.
    bits : int
        Bits of a report, at most 64.
    bound : int
        At most 2^bits.
    """
    values = _integers(rows)
    return values <= np.uint64(min(bound, 2**bits) - 1)


def possible_padding(rows: PackedBits, bits: int) -> NDArray[np.bool_]:
    """Whether the bits of each row beyond `bits` are 0."""
    used = bits % 8
    if used == 0:
        return np.ones(rows.shape[0], dtype=np.bool_)
    return rows[:, -1] >> np.uint8(used) == 0


def checked_reports(values: NDArray[Any], bound: int) -> NDArray[Any]:
    """Return whole numbers if all lie in [0, bound).

    Raises
    ------
    InvalidInput
        If one does not (the first such row is named).
    """
    if values.size and (values.min() < 0 or values.max() >= bound):
        row = int(np.argmax((values < 0) | (values >= bound)))
        raise InvalidInput(f"the report in row {row + 1} is {values[row]}; a report of this task is below {bound}")
    return values


def check_padding(rows: PackedBits, bits: int) -> PackedBits:
    """Return rows of packed bits if the bits beyond their number are 0.

    Raises
    ------
    InvalidInput
        If one is not (the first such row is named).
    """
    possible = possible_padding(rows, bits)
    if not possible.all():
        raise InvalidInput(f"the report in row {int(np.argmin(possible)) + 1} has more than {bits} bits")
    return rows


def _integers(rows: PackedBits) -> NDArray[np.uint64]:
    wide = np.zeros((rows.shape[0], 8), dtype=np.uint8)
    wide[:, : rows.shape[1]] = rows
    return wide.view("<u8").reshape(-1).astype(np.uint64)


def _check_width(values: NDArray[Any], bits: int) -> None:
    checked_reports(values, 2**bits)


def _refuse_headless(view: memoryview) -> None:
    if bytes(view[:4]) == MAGIC[: len(view)] or bytes(view[:4]) == MAGIC:
        raise InvalidInput(f"the reports are cut short: {len(view)} bytes, and a header alone has {_HEADER.size}")
    raise InvalidInput(
        f"these bytes are no reports: they begin with {shown(bytes(view[:4]))} instead of {shown(MAGIC)}"
    )
