"""Cut the bundled sample of digits from MNIST: the first 2,000 training and the first 500 test digits.

    python tools/make_mnist_sample.py FOLDER

FOLDER holds MNIST's four idx files, each plain or with ``.gz``. The sample lands in src/shuffledp/data/mnist_sample,
the same bytes every time.
"""

from __future__ import annotations

import gzip
import struct
import sys

import numpy as np
from numpy.typing import NDArray

from shuffledp.learning.inputs import read_digits, sample_folder


def idx_bytes(array: NDArray[np.uint8]) -> bytes:
    """Return the array as an idx file of unsigned bytes."""
    return bytes([0, 0, 8, array.ndim]) + b"".join(struct.pack(">I", side) for side in array.shape) + array.tobytes()


def main(folder: str) -> None:
    """Write the four files."""
    for part, name, count in (("train", "train", 2000), ("test", "t10k", 500)):
        digits = read_digits(folder, part)
        images = digits.images[:count].reshape(count, 28, 28)
        for kind, array in (("images-idx3", images), ("labels-idx1", digits.labels[:count])):
            target = sample_folder() / f"{name}-{kind}-ubyte.gz"
            target.write_bytes(gzip.compress(idx_bytes(array), 9, mtime=0))


if __name__ == "__main__":
    main(sys.argv[1])
