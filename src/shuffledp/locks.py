"""Locks on files, which the system gives back when a process dies; and names in folders that survive a power cut.

Elsewhere than on Windows a lock is that of ``flock``. On Windows it is one byte far behind the end of the file, locked
by ``msvcrt``: whoever asks for the same byte is refused, and the system gives it back when the process ends. A folder
cannot be synced there, so what needs that for its promise is refused (`can_sync_folders`): a shuffler's store.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path

from shuffledp.errors import InvalidInput

WINDOWS = sys.platform == "win32"
_FAR = 1 << 30
"""Where the byte lies that stands for a file: behind all that any locked file holds."""
_PAUSE = 0.05
"""Seconds between two tries: `msvcrt` waits ten seconds at most, and `flock` as long as it takes."""


def hold(number: int, *, wait: bool = True) -> None:
    """Hold a file's lock until the file is closed or the process dies.

    Parameters
    ----------
    number : int
        The open file's number. Its position may move.
    wait : bool
        Whether to wait for another holder.

    Raises
    ------
    BlockingIOError
        If another holds it, and `wait` is False.
    InvalidInput
        If this system has no such locks.
    """
    try:
        import fcntl
    except ImportError:
        _hold_a_byte(number, wait=wait)
        return
    fcntl.flock(number, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def can_lock() -> bool:
    """Whether this system has locks on files."""
    for module in ("fcntl", "msvcrt"):
        with contextlib.suppress(ImportError):
            __import__(module)
            return True
    return False


def can_sync_folders() -> bool:
    """Whether a name in a folder can be made to survive a power cut before work goes on."""
    return not WINDOWS


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut; where that cannot be (`can_sync_folders`), do nothing."""
    if not can_sync_folders():
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _hold_a_byte(number: int, *, wait: bool) -> None:
    try:
        import msvcrt
    except ImportError:
        raise InvalidInput("this system has no locks on files (neither fcntl nor msvcrt)") from None
    while True:
        os.lseek(number, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(number, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        except OSError as error:
            if not wait:
                raise BlockingIOError(error.errno, error.strerror) from None
            time.sleep(_PAUSE)
        else:
            os.lseek(number, 0, os.SEEK_SET)
            return
