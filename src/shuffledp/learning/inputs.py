"""Checks of what the caller gives to training, each with one clear error; and idx files, the format of MNIST.

An idx file: two zero bytes, a type byte (8 for unsigned bytes), the number of dimensions, each dimension as a 32-bit
integer (big end first), then the values in row-major order. It may be gzip-compressed.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import VALUE, BadEntry, InvalidInput, shown, whole_number
from shuffledp.numerics.floats import FloatArray
from shuffledp.numerics.randomness import Randomness, secure_random
from shuffledp.tables.options import twice

_CHUNK = 8192


@dataclass(frozen=True, eq=False)
class Clients:
    """Assignment of examples to the clients that own them.

    Parameters
    ----------
    names : ndarray, shape (clients,)
        Names of the clients, ascending, without repetition.
    rows : ndarray of int64, shape (examples,)
        Example numbers, client by client.
    starts : ndarray of int64, shape (clients + 1,)
        Client i owns ``rows[starts[i]:starts[i + 1]]``, at least one.
    """

    names: NDArray[np.generic]
    rows: NDArray[np.int64]
    starts: NDArray[np.int64]

    @staticmethod
    def of(groups: ArrayLike | None, examples: int) -> Clients:
        """Return the assignment that groups examples by client; without groups every example is its own client."""
        if groups is None:
            return Clients(np.arange(examples), np.arange(examples), np.arange(examples + 1))
        ids = np.asarray(groups)
        if ids.ndim != 1 or ids.size != examples:
            raise InvalidInput(f"groups needs one client for each of {examples} examples; got shape {ids.shape}")
        if ids.dtype.kind == "f" and not np.isfinite(ids).all():
            raise InvalidInput("groups has a missing client; give every example one")
        if ids.dtype.kind not in "buif" and (pair := twice(np.unique(ids).tolist())):
            raise InvalidInput(
                f"the clients {shown(pair[0])} and {shown(pair[1])} are one word, written in two ways; write each "
                "client in one way"
            )
        names, owner, counts = np.unique(ids, return_inverse=True, return_counts=True)
        rows = np.argsort(owner, kind="stable").astype(np.int64)
        return Clients(names, rows, np.concatenate(([0], np.cumsum(counts))).astype(np.int64))

    @property
    def count(self) -> int:
        """The number of clients."""
        return self.starts.size - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of examples of each client, shape (clients,)."""
        return np.diff(self.starts)

    def fingerprint(self, *, sizes: bool) -> str:
        """Return a hash of the clients' names in order, and of their sizes if ``sizes``.

        Parameters
        ----------
        sizes : bool
            Whether the number of each client's examples counts too; only where it is public.
        """
        whole = hashlib.sha256(repr(self.names.tolist()).encode())
        if sizes:
            whole.update(self.sizes.tobytes())
        return whole.hexdigest()

    def examples(self, client: int) -> NDArray[np.int64]:
        """Return the row numbers of one client's examples."""
        return self.rows[self.starts[client] : self.starts[client + 1]]


def assign_clients(examples: int, clients: int, random: Randomness | None = None) -> NDArray[np.int64]:
    """Assign examples to clients evenly and at random; return the client of each example, shape (examples,).

    Parameters
    ----------
    examples, clients : int
        Number of examples and of clients; at least one example for each client.
    random : Randomness, optional
        Source of the draw; default `secure_random()`.

    Raises
    ------
    InvalidInput
        If there are fewer examples than clients.

    Examples
    --------
    >>> np.bincount(assign_clients(10, 2)).tolist()
    [5, 5]
    """
    if not 1 <= clients <= examples:
        raise InvalidInput(f"clients must be at least 1 and at most the number of examples, {examples}; got {clients}")
    return (random or secure_random()).permutation(examples) % clients


def checked_features(X: ArrayLike, *, inputs: int | None = None, private: bool = False) -> NDArray[np.generic]:
    """Return features as an array of numbers, type unchanged, after checking that all are finite.

    Parameters
    ----------
    X : array_like, shape (n, features)
        Numbers; n >= 1.
    inputs : int, optional
        Number of columns the model takes.
    private : bool
        Whether these are records that are protected. Then a row that is not finite passes, and contributes zero to
        training: an error would tell that there is one.
    """
    rows = np.asarray(X)
    if rows.ndim != 2 or rows.shape[0] == 0 or rows.shape[1] == 0 or rows.dtype.kind not in "buif":
        raise InvalidInput(f"X must be a table of numbers, one row per example; got {rows.dtype} of shape {rows.shape}")
    if inputs is not None and rows.shape[1] != inputs:
        raise InvalidInput(f"this model takes {inputs} features; X has {rows.shape[1]}")
    if rows.dtype.kind == "f" and not private:
        for start in range(0, rows.shape[0], _CHUNK):
            fine = np.isfinite(rows[start : start + _CHUNK]).all(axis=1)
            if not fine.all():
                row = start + int(np.argmin(fine))
                raise InvalidInput(f"X has a missing or infinite feature in row {row + 1}; fill it")
    return rows


def checked_labels(y: ArrayLike, examples: int, classes: int | None) -> tuple[NDArray[np.int64], int]:
    """Return labels as whole numbers in 0..K-1, and the number K of classes.

    Parameters
    ----------
    y : array_like of int, shape (examples,)
        Labels.
    examples : int
        Number of labels needed.
    classes : int or None
        K; None takes the largest label plus one, which is then treated as public.
    """
    labels = np.asarray(y)
    if labels.ndim != 1 or labels.size != examples:
        raise InvalidInput(f"y needs one label for each of {examples} examples; got shape {labels.shape}")
    numbers = labels.dtype.kind in "bui" or (labels.dtype.kind == "f" and bool(np.isfinite(labels).all()))
    if not numbers or (labels.dtype.kind == "f" and bool((labels != np.floor(labels)).any())):
        raise InvalidInput("labels must be whole numbers 0..K-1; map names to numbers first")
    if classes is not None:
        whole_number(classes, "classes", 2)
    most = classes if classes is not None else max(int(labels.max()) + 1, 2)
    bad = np.flatnonzero((labels < 0) | (labels >= most))
    if bad.size:
        raise BadEntry(f"labels must lie in 0..{most - 1}; row {bad[0] + 1} has {VALUE}, another", labels[bad[0]])
    return labels.astype(np.int64), most


def per_client(value: object, clients: Clients, what: str) -> FloatArray:
    """Return one number per client, shape (clients,), from one for all, an array, or a mapping by client.

    Parameters
    ----------
    value : float, array_like or mapping
        The numbers. An array holds one for each client, in ascending order of clients.
    clients : Clients
        The clients.
    what : str
        Name of the numbers, for messages.

    Raises
    ------
    InvalidInput
        If clients and numbers do not match: a client without a number, or a number for a client without examples.
    """
    if isinstance(value, Mapping):
        wanted = dict(value)  # pyright: ignore[reportUnknownArgumentType]
        names = clients.names.tolist()
        missing = [name for name in names if name not in wanted]
        if missing:
            raise InvalidInput(f"client {shown(missing[0])} has no {what}; give every client one")
        empty = sorted(set(wanted) - set(names), key=str)
        if empty:
            raise InvalidInput(f"client {shown(empty[0])} has a {what}, but no example; leave it out")
        value = [wanted[name] for name in names]
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(
            f"{what} must be a number, one per client, or a mapping by client; got {shown(value)}"
        ) from None
    if numbers.ndim == 0:
        return np.full(clients.count, float(numbers))
    if numbers.shape != (clients.count,):
        raise InvalidInput(
            f"{what} needs one number for each of {clients.count} clients that have examples; got shape {numbers.shape}"
        )
    return numbers


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
    wanted, size = math.prod(shape), len(content) - start
    if size < wanted:
        raise InvalidInput(f"{where} is cut short: {wanted} values stated, {size} there; download it again")
    if size > wanted:
        raise InvalidInput(f"{where} has {size - wanted} bytes too many: {wanted} values stated; check the file")
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
