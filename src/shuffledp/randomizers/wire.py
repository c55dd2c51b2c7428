"""Reports as bytes: a header that names the task, and reports of one fixed size (docs/wire.md).

A family takes part by stating how many bits a report has and how it is written: `WireFormat`.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.floats import FloatArray
from shuffledp.numerics.randomness import Randomness, Words

# Reports of many bits: drawn many at a time, packed eight to a byte, counted place by place.

PackedBits = NDArray[np.uint8]
_DENSE = 7
"""Bits of the threshold compared for all places; after it, at most 1 - (1 - 2^-7)^8 = 6 % of the bytes are open."""


def bytes_for(bits: int) -> int:
    """Return the least number of bytes that hold `bits` bits."""
    return -(-bits // 8)


def bernoulli_bytes(thresholds: Words, width: int, random: Randomness) -> PackedBits:
    """Return bytes of independent bits, each 1 with probability exactly thresholds / 2^64, one threshold per column.

    Random bits are compared with the threshold's bits from the highest on, eight places to a byte at a time: a place is
    decided where they first differ, and is 1 if the threshold's bit is the larger. Places that agree in all 64 bits are
    0. Only bytes with an undecided place are compared further.

    Parameters
    ----------
    thresholds : ndarray of uint64, shape () or (n,)
        Whole numbers in [0, 2^64).
    width : int
        Number of bytes in each column.
    random : Randomness
        Source of the bits.

    Returns
    -------
    ndarray of uint8, shape (width, 1) or (width, n)
        The bytes; their number is `width` for thresholds of shape ().
    """
    level = np.atleast_1d(thresholds)
    shape = (width, level.size)
    out = np.zeros(shape, dtype=np.uint8)
    open_ = np.full(shape, 255, dtype=np.uint8)
    for step in range(_DENSE):
        _compare(out, open_, _bit_mask(level, step), _random_bytes(random, out.size).reshape(shape))
    places = np.flatnonzero(open_)
    left_out, left_open = out.ravel()[places], open_.ravel()[places]
    column = places % level.size
    for step in range(_DENSE, 64):
        if not places.size:
            break
        _compare(left_out, left_open, _bit_mask(level, step)[column], _random_bytes(random, places.size))
        out.ravel()[places] = left_out
        still = np.flatnonzero(left_open)
        places, column, left_out, left_open = places[still], column[still], left_out[still], left_open[still]
    return out


def _compare(out: PackedBits, open_: PackedBits, mask: PackedBits, fresh: PackedBits) -> None:
    """One bit of the comparison, in place: `mask` is 255 where the threshold's bit is 1."""
    differs = fresh ^ mask
    differs &= open_
    open_ ^= differs
    differs &= mask
    out |= differs


def _bit_mask(level: Words, step: int) -> PackedBits:
    """255 where bit `step` of the threshold, from the highest on, is 1."""
    return ((level >> np.uint64(63 - step)) & np.uint64(1)).astype(np.uint8) * np.uint8(255)


def _random_bytes(random: Randomness, n: int) -> PackedBits:
    return random.words(bytes_for(n)).view(np.uint8)[:n]


def fair_bits(n: int, random: Randomness) -> PackedBits:
    """Return n independent fair bits, one in each byte (0 or 1), shape (n,)."""
    return np.unpackbits(_random_bytes(random, bytes_for(n)), count=n)


def column_counts(packed: PackedBits, k: int) -> NDArray[np.int64]:
    """Return the number of ones in each of the first k bit positions, over all rows; exact, shape (k,).

    By carry-save adders: three rows of one weight become a row of sums and a row of carries, of twice the weight
    (positional population count: Klarqvist, Mula, Lemire 2019).

    Parameters
    ----------
    packed : ndarray of uint8, shape (n, width)
        Rows of bits, the lowest bit of a byte first.
    k : int
        Number of bit positions, at most 8 width.
    """
    total = np.zeros(k, dtype=np.int64)
    rows, weight = packed, 1
    while rows.shape[0]:
        carries: list[PackedBits] = []
        while rows.shape[0] >= 3:
            third = rows.shape[0] // 3
            one, two, three = rows[:third], rows[third : 2 * third], rows[2 * third : 3 * third]
            half = one ^ two
            carries.append((one & two) | (half & three))
            half ^= three
            rest = rows[3 * third :]
            rows = np.concatenate((half, rest)) if rest.shape[0] else half
        total += weight * np.unpackbits(rows, axis=1, count=k, bitorder="little").sum(axis=0, dtype=np.int64)
        rows = np.concatenate(carries) if carries else rows[:0]
        weight *= 2
    return total


def weighted_column_counts(packed: PackedBits, k: int, weights: FloatArray) -> FloatArray:
    """Return for each of the first k bit positions the sum of the weights of the rows with a one there, shape (k,).

    Parameters
    ----------
    packed : ndarray of uint8, shape (n, width)
        Rows of bits, the lowest bit of a byte first.
    k : int
        Number of bit positions, at most 8 width.
    weights : ndarray, shape (n,)
        One weight per row.
    """
    if packed.shape[0] < 256:
        bits = np.unpackbits(packed, axis=1, count=k, bitorder="little")
        return np.einsum("n,nk->k", weights, bits, dtype=np.float64)
    table = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype(np.float64)
    total = np.empty(8 * packed.shape[1])
    for place in range(packed.shape[1]):
        by_value = np.bincount(packed[:, place], weights=weights, minlength=256)
        total[8 * place : 8 * place + 8] = np.einsum("v,vb->b", by_value, table)
    return total[:k]


MAGIC = b"SHFL"
VERSION = 1
_HEADER = struct.Struct("<4sBBHIQ16s")  # magic, version, reserved: 0, bytes of the name and of a report, reports, task


@runtime_checkable
class WireFormat(Protocol):
    """How a family's reports are encoded for transport; the family's `repr` names all its parameters."""

    @property
    def name(self) -> str:
        """Name on the command line, with every parameter that shapes a report, such as ``"olh:100:4"``."""
        ...

    @property
    def report_bits(self) -> int:
        """Size of one encoded report in bits, the same for all reports and budgets of a task."""
        ...

    def pack(self, reports: NDArray[Any]) -> PackedBits:
        """Return reports as rows of bytes, shape (n, ceil(report_bits/8)).

        The lowest bit comes first, and the bits beyond `report_bits` are 0.
        """
        ...

    def unpack(self, rows: PackedBits) -> NDArray[Any]:
        """Return the reports encoded in rows of bytes; InvalidInput names the first row that is no possible report."""
        ...

    def possible(self, rows: PackedBits) -> NDArray[np.bool_]:
        """Return for each row of bytes whether `unpack` reads it as a report: bool, shape (n,); nothing is refused."""
        ...


def encode(reports: NDArray[Any], family: WireFormat, *, task: str = "") -> bytes:
    """Return reports as one message of bytes: a header that names family and task, and the encoded reports.

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
    """Return the reports of a message that `encode` wrote.

    Parameters
    ----------
    data : bytes
        One complete message.
    family : WireFormat
        The member of the family that drew them.
    task : str
        The task's name, as in `encode`.

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
    """Return the possible reports of a message, leaving out rows that are no report instead of refusing them all.

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
    """Return the possible reports of rows of bytes, leaving out rows that are no report.

    Parameters
    ----------
    rows : ndarray of uint8, shape (n, S)
        One row a report; S is the least number of bytes that holds `report_bits`.
    family : WireFormat
        The member of the family that drew them.

    Returns
    -------
    reports : ndarray, first axis m <= n
        The reports of the rows that hold one, in their order.
    possible : ndarray of bool, shape (n,)
        Whether each row holds a report.

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
    """Return the digest of a task: 16 bytes of the SHA-256 of wire version, family with parameters, and task."""
    return hashlib.sha256("\0".join(("shuffledp wire", str(VERSION), repr(family), task)).encode()).digest()[:16]


def pack_integers(values: NDArray[Any], bits: int) -> PackedBits:
    """Return whole numbers below 2^bits (bits at most 64) as rows of ceil(bits/8) bytes, lowest byte first.

    Raises
    ------
    InvalidInput
        If one is out of range (the first such row is named).
    """
    _check_width(values, bits)
    rows = values.astype("<u8").view(np.uint8).reshape(values.size, 8)
    return np.ascontiguousarray(rows[:, : bytes_for(bits)])


def unpack_integers(rows: PackedBits, bits: int) -> NDArray[np.uint64]:
    """Return the whole numbers encoded by `pack_integers`, as uint64, shape (n,).

    Raises
    ------
    InvalidInput
        If one is 2^bits or more (the first such row is named).
    """
    values = _integers(rows)
    _check_width(values, bits)
    return values


def possible_integers(rows: PackedBits, bits: int, bound: int) -> NDArray[np.bool_]:
    """Return for each row of bytes whether it encodes a whole number below `bound`: bool, shape (n,).

    Parameters
    ----------
    rows : ndarray of uint8, shape (n, S)
        One number a row, lowest byte first.
    bits : int
        Number of bits of a report, at most 64.
    bound : int
        Number of possible reports, at most 2^bits.
    """
    values = _integers(rows)
    return values <= np.uint64(min(bound, 2**bits) - 1)


def possible_padding(rows: PackedBits, bits: int) -> NDArray[np.bool_]:
    """Return for each row of bytes whether its bits beyond the first `bits` are all 0: bool, shape (n,)."""
    used = bits % 8
    if used == 0:
        return np.ones(rows.shape[0], dtype=np.bool_)
    return rows[:, -1] >> np.uint8(used) == 0


def checked_reports(values: NDArray[Any], bound: int) -> NDArray[Any]:
    """Return whole numbers unchanged if all lie in [0, bound).

    Raises
    ------
    InvalidInput
        If a number does not (the first such row is named).
    """
    if values.size and (values.min() < 0 or values.max() >= bound):
        row = int(np.argmax((values < 0) | (values >= bound)))
        raise InvalidInput(f"the report in row {row + 1} is {values[row]}; a report of this task is below {bound}")
    return values


def check_padding(rows: PackedBits, bits: int) -> PackedBits:
    """Return rows of packed bits unchanged if in each the bits beyond the first `bits` are 0.

    Raises
    ------
    InvalidInput
        If such a bit is 1 (the first such row is named).
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
