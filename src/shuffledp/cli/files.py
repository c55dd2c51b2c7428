"""Files of bytes: read with one clear error, written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from shuffledp.cli.output import WRITTEN
from shuffledp.errors import InvalidInput


def read_bytes(path: Path, what: str) -> bytes:
    """Read a file.

    Parameters
    ----------
    path : Path
        The file.
    what : str
        What it must be, for the message, such as ``"the draft"``.

    Raises
    ------
    InvalidInput
        If it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{what} {path} cannot be read ({error.strerror}); name an existing file") from None


def write_bytes(path: Path, data: bytes, *, private: bool = False, fresh: bool = False) -> None:
    """Write a file beside its place and rename it.

    Parameters
    ----------
    path : Path
        The file.
    data : bytes
        Its content.
    private : bool
        Readable by its owner alone.
    fresh : bool
        Refuse if the file is there: a key that is written over is lost.

    Raises
    ------
    InvalidInput
        If it cannot be written, or must be fresh and is not.
    """
    if fresh and path.exists():
        raise InvalidInput(f"{path} exists and would be lost; choose another name or move it away")
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.resolve().parent)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written ({error.strerror}); choose a writable folder") from None
    try:
        with open(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        if not private:
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(name, 0o666 & ~mask)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    WRITTEN.set((*WRITTEN.get(), path))
