"""Reading files up to a stated size, and writing them so that they appear complete or not at all; locks on files."""

from __future__ import annotations

import contextlib
import csv
import errno
import io
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import IO, Any

from shuffledp.errors import InvalidInput, path_shown


def csv_table(text: str, what: str) -> tuple[tuple[str, ...], list[dict[str, str]]]:
    r"""Split a small table into its header and its rows: fields that a row lacks are empty, further ones left out.

    Parameters
    ----------
    text : str
        CSV with a header, which may begin with a byte order mark.
    what : str
        What the table is expected to be, for the error message, such as ``"the margins"``.

    Raises
    ------
    InvalidInput
        If the csv module cannot split it, as where a quote swallows more than 131,072 characters.

    Examples
    --------
    >>> csv_table("link,name\r\nhere\r\n", "the links")
    (('link', 'name'), [{'link': 'here', 'name': ''}])
    """
    reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=""), restkey="", restval="")
    try:
        rows = [{name: row[name] for name in reader.fieldnames or ()} for row in reader]
        return tuple(reader.fieldnames or ()), rows
    except csv.Error as error:
        raise InvalidInput(f"{what} are no CSV table ({error}); save the table as CSV UTF-8") from None


def toml_table(data: bytes, what: str) -> dict[str, Any]:
    """Read TOML in UTF-8, with or without a byte-order mark, which some editors write.

    Parameters
    ----------
    data : bytes
        Content of the file.
    what : str
        What it is expected to be, for the error message, such as ``"the survey"``.

    Raises
    ------
    InvalidInput
        If it is other text, or no TOML.

    Examples
    --------
    >>> toml_table(b"people = 3", "the survey")
    {'people': 3}
    """
    import tomllib

    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise InvalidInput(f"{what} is not UTF-8 text; save it as UTF-8") from None
    except (ValueError, OverflowError, RecursionError) as error:  # also a number of 5,000 digits, or a nest of lists
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InvalidInput(f"{what} is not TOML as expected: {reason}") from None


def read_bytes(path: Path, what: str, most: int) -> bytes:
    """Return the content of a file; raise InvalidInput if it is larger than `most` bytes.

    Parameters
    ----------
    path : Path
        The file, or a device or pipe, which need not have an end.
    what : str
        What the file is expected to be, for the error message, such as ``"the draft"``.
    most : int
        Largest size in bytes.

    Raises
    ------
    InvalidInput
        If the file cannot be read, or is larger than `most`.

    Examples
    --------
    >>> read_bytes(Path("/dev/zero"), "the key", 4096)
    Traceback (most recent call last):
    ...
    shuffledp.errors.InvalidInput: the key /dev/zero has more than 4,096 bytes, and is something else; name another
    """
    try:
        return _read(path, what, most)
    except OSError as error:
        raise InvalidInput(
            f"{what} {path_shown(path)} cannot be read ({error.strerror}); name an existing file"
        ) from None


def read_lines(path: Path, what: str, most: int) -> list[str]:
    """Return the lines of a UTF-8 text file, with or without a byte-order mark at its beginning.

    Parameters
    ----------
    path : Path
        The file.
    what : str
        What the file is expected to be, for the error message.
    most : int
        Largest size in bytes.

    Raises
    ------
    InvalidInput
        If the file is larger than `most`.
    OSError
        If the file cannot be read.
    UnicodeDecodeError
        If the file is no UTF-8 text.
    """
    return _read(path, what, most).decode("utf-8-sig").splitlines()


def way_out(error: OSError | sqlite3.Error, otherwise: str) -> str:
    """Return advice for an error message about a system failure: make room if a disk is full, else `otherwise`.

    Parameters
    ----------
    error : OSError or sqlite3.Error
        The failure.
    otherwise : str
        Advice for any other failure, such as ``"name another file"``.

    Examples
    --------
    >>> way_out(OSError(errno.ENOSPC, "No space left on device"), "name another")
    'make room on its disk'
    >>> way_out(OSError(errno.EACCES, "Permission denied"), "name another")
    'name another'
    """
    if isinstance(error, OSError):
        return "make room on its disk" if error.errno in (errno.ENOSPC, errno.EDQUOT) else otherwise
    kind = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if kind == sqlite3.SQLITE_IOERR:  # also where there is no room for the files beside the database
        return "make room on its disk, or check the disk"
    return "make room on its disk" if kind == sqlite3.SQLITE_FULL else otherwise


def _read(path: Path, what: str, most: int) -> bytes:
    with open(path, "rb") as stream:
        data = stream.read(most + 1)
    if len(data) > most:
        raise InvalidInput(
            f"{what} {path_shown(path)} has more than {most:,} bytes, and is something else; name another"
        )
    return data


@contextlib.contextmanager
def all_or_none(*files: Path) -> Generator[None]:
    """Remove files that a block has made, should the block fail later.

    Parameters
    ----------
    *files : Path
        Files that the block may make. Those that are there before it stay.
    """
    there = {path for path in files if path.exists()}
    try:
        yield
    except BaseException:
        for path in files:
            if path not in there:
                path.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def replaced(path: Path, what: str, *, private: bool = False, fresh: bool = False) -> Generator[IO[bytes]]:
    """Open a binary file for writing that appears under its name only if the block ends without an error.

    Entering the block already creates a temporary file in the same folder, so a path that cannot be written is refused
    before any work is done. When the block raises, the temporary file is removed and whatever stood at `path` stays.

    Parameters
    ----------
    path : Path
        The file to write.
    what : str
        What an error calls the file, such as ``"--report page.html"``.
    private : bool
        Make the file readable by its owner alone; otherwise its mode is that of any new file.
    fresh : bool
        Refuse a path that exists already: an overwritten key would be lost.

    Yields
    ------
    binary file
        The open file; its content is on disk before it gets its name.

    Raises
    ------
    InvalidInput
        If the path is a symbolic link, a directory, a device or write-protected, if its folder is missing or not
        writable, or if `fresh` and something stands there, also when it came after the block began; if what the block
        writes cannot be written, as on a full disk.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replaced(Path(folder) / "page.html", "the page") as file:
    ...         count = file.write(b"<p>whole</p>")
    ...     (Path(folder) / "page.html").read_text()
    '<p>whole</p>'
    """
    target = path.parent.resolve() / path.name
    _refuse(target, what, fresh)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    except OSError as error:
        raise InvalidInput(
            f"{what} cannot be written ({error.strerror}); {way_out(error, 'choose an existing, writable folder')}"
        ) from None
    try:
        with io.BufferedWriter(_Named(handle, what)) as stream:
            yield stream
            stream.flush()
            with _explained(what):
                os.fsync(stream.fileno())
        with _explained(what):
            if not private:
                os.chmod(name, 0o666 & ~_umask())
            if fresh:
                _linked(name, target, what)
            else:
                os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


class _Named(io.FileIO):
    """A file whose failures say its name: an error of the system alone does not, and might be any file's."""

    def __init__(self, handle: int, what: str) -> None:
        super().__init__(handle, "wb")
        self._what = what

    def write(self, data: Any, /) -> int:
        with _explained(self._what):
            return os.write(self.fileno(), data)


@contextlib.contextmanager
def _explained(what: str) -> Generator[None]:
    """Turn an error of the system into one that says which file cannot be written."""
    try:
        yield
    except OSError as error:
        raise InvalidInput(
            f"{what} cannot be written ({error.strerror or error}); make room, or name another"
        ) from None


def _refuse(target: Path, what: str, fresh: bool) -> None:
    if target.is_symlink():  # whoever made the link would choose which file is overwritten
        raise InvalidInput(f"{what} is a symbolic link; name the file itself")
    if not target.exists():
        return
    if not target.is_file():
        kind = "a directory" if target.is_dir() else "not a regular file"
        raise InvalidInput(f"{what} is {kind}; name a file to write")
    if fresh:
        raise InvalidInput(f"{what} exists and would be lost; choose another name or move it away")
    if not os.access(target, os.W_OK):
        raise InvalidInput(f"{what} is write-protected; choose another name")


def _linked(name: str, target: Path, what: str) -> None:
    """Give the file its name in a way that fails where one stands: a link, unlike a rename, replaces nothing."""
    try:
        os.link(name, target)
    except FileExistsError:
        raise InvalidInput(f"{what} exists and would be lost; choose another name or move it away") from None
    os.unlink(name)


def _umask() -> int:
    """Read the process's file mode mask, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


# Locks on files, which the system gives back when a process dies; and names in folders that survive a power cut.
#
# Elsewhere than on Windows a lock is that of ``flock``. On Windows it is one byte far behind the end of the file,
# locked by ``msvcrt``: whoever asks for the same byte is refused, and the system gives it back when the process ends.
# A folder cannot be synced there, so what needs that for its promise is refused (`check_can_hold`): a shuffler's
# store.

WINDOWS = sys.platform == "win32"
_FAR = 1 << 30
"""Offset of the byte that is locked for a file, beyond the contents of any locked file."""
_PAUSE = 0.05
"""Number of seconds between two attempts: `msvcrt` waits ten seconds at most, and `flock` as long as it takes."""


def hold(number: int, *, wait: bool = True) -> None:
    """Take the exclusive lock of an open file and hold it until the file is closed or the process ends.

    Parameters
    ----------
    number : int
        The open file's descriptor; the file position may move.
    wait : bool
        Whether to wait while another process holds the lock.

    Raises
    ------
    BlockingIOError
        If another process holds the lock, and `wait` is False.
    InvalidInput
        If this system has no locks on files.
    """
    try:
        import fcntl
    except ImportError:
        _hold_a_byte(number, wait=wait)
        return
    fcntl.flock(number, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def can_lock() -> bool:
    """Whether this system has locks on files, which `hold` needs."""
    for module in ("fcntl", "msvcrt"):
        with contextlib.suppress(ImportError):
            __import__(module)
            return True
    return False


def can_sync_folders() -> bool:
    """Whether this system can make a new name in a folder survive a power cut (`sync_folder`): not on Windows."""
    return not WINDOWS


def check_can_hold() -> None:
    """Refuse to hold a collection on Windows, where the end of a task would not survive a power cut.

    Raises
    ------
    InvalidInput
        On Windows.
    """
    if not can_sync_folders():
        raise InvalidInput(
            "a collection cannot be held on Windows: that a task has ended must survive a power cut, and Windows "
            "syncs no folder; run the shuffler on Linux, in WSL 2 or on macOS"
        )


def sync_folder(folder: Path) -> None:
    """Write a folder's names to disk so that they survive a power cut; without effect on Windows."""
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
            if error.errno in (errno.EBADF, errno.EINVAL):  # nobody holds it, so waiting would not end
                raise
            if not wait:
                raise BlockingIOError(error.errno, error.strerror) from None
            time.sleep(_PAUSE)
        else:
            os.lseek(number, 0, os.SEEK_SET)
            return
