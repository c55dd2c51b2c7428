"""Idx files: read back as written, and one clear error for each way they break."""

from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest

from shuffledp.errors import InvalidInput
from shuffledp.learning.inputs import read_digits, read_idx, sample_folder


def idx(array, kind=8):
    return bytes([0, 0, kind, array.ndim]) + b"".join(struct.pack(">I", s) for s in array.shape) + array.tobytes()


ARRAY = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_an_array_comes_back(tmp_path, pack):
    (tmp_path / "a").write_bytes(pack(idx(ARRAY)))
    found = read_idx(tmp_path / "a")
    assert found.dtype == np.uint8
    assert (found == ARRAY).all()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (idx(ARRAY)[:-1], "cut short: 24 values stated, 23 there"),
        (idx(ARRAY)[:9], "cut short"),
        (idx(ARRAY) + b"x", "1 bytes too many"),
        (gzip.compress(idx(ARRAY), mtime=0)[:-9], "cut short or damaged"),
        (idx(ARRAY, kind=13), "idx type 13"),
        (b"PNG", "no idx file"),
        (b"", "no idx file"),
    ],
    ids=["short", "short header", "long", "short gzip", "other type", "picture", "empty"],  # no bytes: they held a time
)
def test_broken_files_are_named(tmp_path, content, told):
    (tmp_path / "broken").write_bytes(content)
    with pytest.raises(InvalidInput, match=told):
        read_idx(tmp_path / "broken")


def test_missing_files_and_mismatches_are_named(tmp_path):
    with pytest.raises(InvalidInput, match="has no train-images"):
        read_digits(tmp_path, "train")
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_idx(tmp_path / "nothing")
    (tmp_path / "t10k-images-idx3-ubyte").write_bytes(idx(ARRAY))
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(idx(np.zeros(3, dtype=np.uint8)))
    with pytest.raises(InvalidInput, match="do not belong together"):
        read_digits(tmp_path, "test")
    with pytest.raises(InvalidInput, match="part must be"):
        read_digits(tmp_path, "dev")


def test_the_bundled_sample_holds_digits():
    for part, n in (("train", 2000), ("test", 500)):
        digits = read_digits(sample_folder(), part)
        assert digits.images.shape == (n, 784)
        assert sorted(set(digits.labels.tolist())) == list(range(10))
