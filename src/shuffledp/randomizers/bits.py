"""Reports of many bits: drawn many at a time, packed eight to a byte, counted place by place."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness, Words

PackedBits = NDArray[np.uint8]
_DENSE = 7
"""Bits of the threshold compared for all places; after it, at most 1 - (1 - 2^-7)^8 = 6 % of the bytes are open."""


def bytes_for(bits: int) -> int:
    """Bytes that hold so many bits."""
    return -(-bits // 8)


def bernoulli_bytes(thresholds: Words, width: int, random: Randomness) -> PackedBits:
    """Bytes of independent bits, each 1 with probability exactly thresholds / 2^64, one threshold a column.

    Random bits are compared with the threshold's bits from the highest on, eight places to a byte at a time: a
    place is decided where they first differ, and is 1 if the threshold's bit is the larger. Places that agree in
    all 64 bits are 0. Only bytes with an open place are gone on with.

    Parameters
    ----------
    thresholds : ndarray of uint64, shape () or (n,)
        In [0, 2^64).
    width : int
        Bytes of each column.
    random : Randomness
        Source of the bits.

    Returns
    -------
    ndarray of uint8, shape (width, 1) or (width, n)
        For shape () the caller says how many bytes by `width` alone.
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
    """Fair bits, one to a byte, shape (n,)."""
    return np.unpackbits(_random_bytes(random, bytes_for(n)), count=n)


def column_counts(packed: PackedBits, k: int) -> NDArray[np.int64]:
    """Return the number of ones on each of the first k places, over all rows.

    By carry-save adders: three rows of one weight become a row of sums and a row of carries, of twice the weight
    (positional population count: Klarqvist, Mula, Lemire 2019). Exact.

    Parameters
    ----------
    packed : ndarray of uint8, shape (n, width)
        Rows of bits, the lowest bit of a byte first.
    k : int
        At most 8 width.
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
    """Sum of the weights of the rows with a one, on each of the first k places.

    Parameters
    ----------
    packed : ndarray of uint8, shape (n, width)
        Rows of bits, the lowest bit of a byte first.
    k : int
        At most 8 width.
    weights : ndarray, shape (n,)
        One a row.
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
