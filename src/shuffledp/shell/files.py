"""Files of bytes that a command writes, whole or not at all."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from pathlib import Path
from typing import IO

from shuffledp.shell.left import will_stand
from shuffledp.whole_files import replaced


def write_bytes(path: Path, data: bytes, *, private: bool = False, fresh: bool = False) -> None:
    """Write a file, whole or not at all; parameters and errors as of `written`, with `data` its content."""
    with written(path, private=private, fresh=fresh) as stream:
        stream.write(data)


@contextlib.contextmanager
def written(path: Path, *, private: bool = False, fresh: bool = False) -> Generator[IO[bytes]]:
    """Open a file that gets its name when the block ends well.

    Parameters
    ----------
    path : Path
        The file.
    private : bool
        Readable by its owner alone.
    fresh : bool
        Refuse if the file is there: a key that is written over is lost.

    Raises
    ------
    InvalidInput
        If it cannot be written, is a symbolic link, or must be fresh and is not.
    """
    with replaced(path, str(path), private=private, fresh=fresh) as stream:
        will_stand(path, stream.fileno())
        yield stream
