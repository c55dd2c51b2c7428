"""Files of bytes: read with one clear error, written whole or not at all."""

from __future__ import annotations

from pathlib import Path

from shuffledp.cli.output import WRITTEN
from shuffledp.errors import InvalidInput
from shuffledp.whole_files import replaced


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
    """Write a file, whole or not at all.

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
        If it cannot be written, is a symbolic link, or must be fresh and is not.
    """
    try:
        with replaced(path, str(path), private=private, fresh=fresh) as stream:
            stream.write(data)
    except OSError as error:
        what = error.strerror or error
        raise InvalidInput(f"{path} cannot be written ({what}); make room, or name another") from None
    WRITTEN.set((*WRITTEN.get(), path))
