from __future__ import annotations

import hashlib
import struct

import numpy as np
import pytest

from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import simulation_random
from shuffledp.randomizers import (
    Gaussian,
    HadamardResponse,
    Laplace,
    LocalHashing,
    OneBit,
    RandomizedResponse,
    SubsetSelection,
    UnaryEncoding,
)
from shuffledp.randomizers.numeric import Hybrid, Piecewise, TwoMoments
from shuffledp.randomizers.sketch import CoordinateSampling, SignedSketch
from shuffledp.randomizers.tree import RangeTree
from shuffledp.randomizers.vector import DirectionCodebook
from shuffledp.randomizers.wire import (
    MAGIC,
    WireFormat,
    decode,
    decode_each,
    encode,
    pack_integers,
    unpack_each,
    unpack_integers,
)
from tests.randomizers.drawing import RUN

SIZES = {"krr": 5, "sue": 30, "oue": 30, "olh": 12, "olh-wide": 54, "hadamard": 6, "subset": 30, "subset-list": 15}


@pytest.mark.parametrize("name", RUN)
def test_round_trip_in_the_stated_size(name):
    family = RUN[name]
    assert isinstance(family, WireFormat)
    assert family.report_bits == SIZES[name]
    reports = family.randomize(np.arange(90) % 30, 1.0, simulation_random(1))
    for part in (reports, reports[:1], reports[:0]):
        data = encode(part, family, task="week 1")
        assert len(data) == 36 + len(family.name) + part.shape[0] * -(-SIZES[name] // 8)
        again = decode(data, family, task="week 1")
        assert (again.dtype, again.shape) == (part.dtype, part.shape)
        assert (again == part).all()
        assert decode(memoryview(bytearray(data)), family, task="week 1").tolist() == part.tolist()


def test_the_documented_bytes():
    family = LocalHashing(100, 4)
    data = encode(np.array([0x1234, 7], dtype=np.uint64), family, task="lunch")
    text = b"shuffledp wire\0" + b"1\0LocalHashing(k=100, g=4, collision='exact')\0lunch"
    header = struct.pack("<4sBxHIQ", b"SHFL", 1, 9, 2, 2) + hashlib.sha256(text).digest()[:16]
    assert data == header + b"olh:100:4" + b"\x34\x12\x07\x00"
    packed = encode(np.array([[1, 2]], dtype=np.uint32), SubsetSelection(100, 2))
    assert packed[-2:] == (1 | 2 << 7).to_bytes(2, "little")
    assert encode(np.array([[3, 0]], dtype=np.uint8), UnaryEncoding(9))[-2:] == b"\x03\x00"
    assert encode(np.array([5]), HadamardResponse(3))[-1:] == b"\x05"


pytestmark = pytest.mark.machine
KRR = RandomizedResponse(30)
GOOD = encode(np.arange(30), KRR, task="a")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (GOOD[:-1], "cut short: 30 of 1 bytes need 72 bytes with their header; got 71"),
        (GOOD[:40], "cut short: 40 bytes, and the header alone has 42"),
        (GOOD[:20], "cut short: 20 bytes, and a header alone has 36"),
        (b"SH", "cut short: 2 bytes"),
        (b"", "cut short: 0 bytes"),
        (GOOD + b"\0", "too long: 30 of 1 bytes need 72 bytes with their header; got 73"),
        (GOOD + GOOD, "too long"),
        (b"PAR1" + GOOD[4:], "no reports: they begin with b'PAR1' instead of b'SHFL'"),
        (MAGIC + b"\2" + GOOD[5:], "wire version 2; this library reads version 1"),
        (encode(np.arange(30), KRR, task="b"), "another task: they say 'krr:30'"),
        (encode(np.arange(30), RandomizedResponse(31), task="a"), "another task: they say 'krr:31'"),
        (GOOD[:-1] + b"\x1e", "report in row 30 is 30; a report of this task is below 30"),
        (GOOD[:-2] + b"\xff\x00", "report in row 29 is 255"),
    ],
)
def test_bad_messages(data, message):
    with pytest.raises(InvalidInput, match=message):
        decode(data, KRR, task="a")


@pytest.mark.parametrize(
    ("family", "row", "message"),
    [
        (UnaryEncoding(30), b"\0\0\0\x40", "row 2 has more than 30 bits"),
        (SubsetSelection(30, 7), b"\xff\0\0\0", "row 2 has not 7 members"),
        (SubsetSelection(30, 3), (1 | 1 << 5 | 2 << 10).to_bytes(2, "little"), "row 2 is no ascending list of 3"),
        (SubsetSelection(30, 3), (1 | 2 << 5 | 31 << 10).to_bytes(2, "little"), "row 2 is no ascending list of 3"),
        (SubsetSelection(30, 3), b"\0\xff", "row 2 has more than 15 bits"),
        (LocalHashing(30, 4), b"\0\x10", "row 2 is 4096; a report of this task is below 4096"),
        (HadamardResponse(30), b"\x40", "row 2 is 64; a report of this task is below 64"),
    ],
)
def test_reports_that_cannot_be(family, row, message):
    one = encode(family.randomize([3], 1.0, simulation_random(1)), family)
    two = encode(family.randomize([3, 4], 1.0, simulation_random(1)), family)
    with pytest.raises(InvalidInput, match=message):
        decode(two[: len(one)] + row, family)


def test_only_a_fixed_shape_travels():
    for family in (LocalHashing(30), SubsetSelection(30)):
        with pytest.raises(InvalidInput, match="for_budgets"):
            encode(np.zeros(1, dtype=np.uint64), family)


def test_reports_out_of_range_are_not_written():
    with pytest.raises(InvalidInput, match="row 2 is 32"):
        encode(np.array([0, 32]), KRR)
    with pytest.raises(InvalidInput, match="row 1 is -1"):
        pack_integers(np.array([-1]), 64)
    assert unpack_integers(pack_integers(np.array([2**64 - 1], dtype=np.uint64), 64), 64)[0] == 2**64 - 1


# ------------------------------------------------------------------ row by row

EVERY = {
    **RUN,
    "rr": RandomizedResponse(2),
    "krr-64": RandomizedResponse(64),
    "hadamard-7": HadamardResponse(7),
    "oue-16": UnaryEncoding(16),
    "subset-wide": SubsetSelection(70_000, 2),
    "tree": RangeTree(100, 4),
    "one-bit": OneBit(0.0, 1.0),
    "moments": TwoMoments(0.0, 1.0),
    "laplace": Laplace(0.0, 1.0),
    "gaussian": Gaussian(0.0, 1.0),
    "piecewise": Piecewise(0.0, 1.0, 100),
    "hybrid": Hybrid(0.0, 1.0, 100),
    "coordinates": CoordinateSampling(5),
    "sketch": SignedSketch(8, 2),
    "codebook": DirectionCodebook(4, 6, 2),
}


@pytest.mark.parametrize("name", EVERY)
def test_the_verdict_on_a_row_is_that_of_strict_reading(name):
    """Random bytes of all sizes, and random flips in real reports; each row read alone, strictly, as the oracle."""
    family = EVERY[name]
    random = np.random.default_rng(7)
    size = -(-family.report_bits // 8)
    rows = random.integers(0, 256, (400, size), dtype=np.uint8)
    rows[100:] &= random.choice(np.array([0, 1, 3, 7, 255], dtype=np.uint8), (300, size))
    rows[0], rows[1] = 255, 0
    if name == "laplace" or name == "gaussian":
        real = family.pack(np.arange(-100, 100))
    elif hasattr(family, "dimension"):
        vectors = np.zeros((200, family.dimension))
        real = family.pack(family.randomize(vectors, 1.0, simulation_random(2)))
    else:
        real = family.pack(family.randomize(np.arange(200) % 2, 1.0, simulation_random(2)))
    flipped = real ^ (random.random(real.shape) < 0.1) * random.integers(0, 256, real.shape).astype(np.uint8)
    rows = np.concatenate((rows, real, flipped))
    possible = family.possible(rows)
    for row, found in zip(rows, possible, strict=True):
        try:
            family.unpack(row[None])
        except InvalidInput:
            assert not found
        else:
            assert found
    assert possible[400:600].all()
    reports, again = unpack_each(rows, family)
    assert (again == possible).all()
    assert (family.pack(reports) == rows[possible]).all()
    empty, none = unpack_each(rows[:0], family)
    assert (empty.shape[0], none.shape, none.dtype) == (0, (0,), bool)


def test_one_bad_report_among_20_000_spoils_no_other():
    """Version 0.1.0 read none of them, and its strict reading still does."""
    family = RandomizedResponse(5)
    sent = simulation_random(1).integers(5, 20_000)
    data = bytearray(encode(sent, family, task="a"))
    data[-1] = 5
    reports, possible = decode_each(data, family, task="a")
    assert reports.tolist() == sent[:-1].tolist()
    assert np.flatnonzero(~possible).tolist() == [19_999]
    with pytest.raises(InvalidInput, match="report in row 20000 is 5"):
        decode(data, family, task="a")
    with pytest.raises(InvalidInput, match="another task"):
        decode_each(data, family, task="b")


def test_the_reserved_byte_of_the_header_must_be_0():
    for read in (decode, decode_each):
        with pytest.raises(InvalidInput, match=r"^the header's sixth byte is 7, and 0 in every message of version 1$"):
            read(GOOD[:5] + b"\7" + GOOD[6:], KRR, task="a")


@pytest.mark.parametrize("rows", [np.zeros((3, 2), np.uint8), np.zeros(3, np.uint8), np.zeros((3, 1), np.int64)])
def test_rows_of_another_shape_are_refused(rows):
    with pytest.raises(InvalidInput, match=r"rows of reports are bytes \(uint8\) of shape \(n, 1\) in this task; got"):
        unpack_each(rows, KRR)
