"""Reading idx files, the format in which MNIST is handed around, with one clear error for each way they break.

An idx file: two zero bytes, a type byte (8 for unsigned bytes), the number of dimensions, each dimension as a 32-bit
integer (big end first), then the values in row-major order. It may be gzip-compressed.
"""

from __future__ import annotations

import gzip
import math
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InvalidInput, shown

_UNSIGNED_BYTE = 8
_GZIP = b"\x1f\x8b"
_FILES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}


@dataclass(frozen=True, eq=False)
class Digits:
    """Labelled pictures of digits, as read from idx files.

    Parameters
    ----------
    images : ndarray of uint8, shape (n, rows * columns)
        One picture per row, 0 is background; read-only.
    labels : ndarray of uint8, shape (n,)
        One label per picture; read-only.
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.uint8]


def read_idx(path: str | Path) -> NDArray[np.uint8]:
    """Return the array in one idx file of unsigned bytes, plain or gzip-compressed.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    ndarray of uint8
        Of the shape the file states; read-only.

    Raises
    ------
    InvalidInput
        If the file cannot be read, is no idx file of unsigned bytes, or is shorter or longer than it says.
    """
    where = Path(path)
    content = _content(where)
    if len(content) < 4 or content[:2] != b"\0\0":
        raise InvalidInput(
            f"{where} is no idx file: it must begin with two zero bytes; check that it is the right file"
        )
    if content[2] != _UNSIGNED_BYTE:
        raise InvalidInput(f"{where} holds idx type {content[2]}; only unsigned bytes (type 8) are read")
    dimensions = content[3]
    start = 4 + 4 * dimensions
    if dimensions == 0 or len(content) < start:
        raise InvalidInput(f"{where} is cut short: its header states {dimensions} dimensions; download it again")
    shape = tuple(int.from_bytes(content[at : at + 4], "big") for at in range(4, start, 4))
    wanted, found = math.prod(shape), len(content) - start
    if found < wanted:
        raise InvalidInput(f"{where} is cut short: {wanted} values stated, {found} there; download it again")
    if found > wanted:
        raise InvalidInput(f"{where} has {found - wanted} bytes too many: {wanted} values stated; check the file")
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)


def read_digits(folder: str | Path, part: str) -> Digits:
    """Return the pictures and labels of one part of MNIST, or of any data set with the same file names.

    Parameters
    ----------
    folder : str or Path
        Holds the four files ``train-images-idx3-ubyte``, ``train-labels-idx1-ubyte``, ``t10k-images-idx3-ubyte`` and
        ``t10k-labels-idx1-ubyte``, each plain or with ``.gz``.
    part : {"train", "test"}
        Which pair of files.

    Raises
    ------
    InvalidInput
        If a file is missing or broken, or pictures and labels do not match.

    Examples
    --------
    >>> read_digits(sample_folder(), "test").images.shape
    (500, 784)
    """
    if part not in _FILES:
        raise InvalidInput(f"part must be 'train' or 'test'; got {shown(part)}")
    images, labels = (read_idx(_find(Path(folder), name)) for name in _FILES[part])
    if images.ndim != 3 or labels.ndim != 1 or images.shape[0] != labels.shape[0]:
        raise InvalidInput(
            f"{folder}: pictures of shape {images.shape} and labels of shape {labels.shape} do not belong together"
        )
    return Digits(images.reshape(images.shape[0], -1), labels)


def sample_folder() -> Path:
    """Return the folder of the bundled sample: 2,000 training and 500 test digits of MNIST."""
    return Path(__file__).resolve().parent.parent / "data" / "mnist_sample"


def _find(folder: Path, name: str) -> Path:
    for candidate in (folder / name, folder / f"{name}.gz"):
        if candidate.is_file():
            return candidate
    raise InvalidInput(f"{folder} has no {name} and no {name}.gz; give the folder that holds MNIST's four idx files")


def _content(path: Path) -> bytes:
    try:
        raw = path.read_bytes()
    except OSError as problem:
        raise InvalidInput(f"{path} cannot be read: {problem.strerror or problem}") from None
    if raw[:2] != _GZIP:
        return raw
    try:
        return gzip.decompress(raw)
    except (EOFError, OSError, zlib.error):
        raise InvalidInput(f"{path} is cut short or damaged: gzip cannot unpack it; download it again") from None
