"""One place locks files; Windows' way is tried with a stand-in for msvcrt, and what would fail there is refused."""

from __future__ import annotations

import ast
import errno
import os
import sys
import threading
import types
from pathlib import Path

import pytest

import shuffledp
from shuffledp import whole_files
from shuffledp.cli import main
from shuffledp.errors import InvalidInput
from shuffledp.learning.keeping import LockFile
from shuffledp.ledger import Turn

ROOT = Path(shuffledp.__file__).parent


class Bytes:
    """What msvcrt does: a byte at the file's position belongs to one open file, until that is closed."""

    LK_NBLCK = 2

    def __init__(self) -> None:
        self.held: dict[tuple[int, int], int] = {}

    def locking(self, number: int, mode: int, size: int) -> None:
        assert (mode, size) == (self.LK_NBLCK, 1)
        place = os.fstat(number).st_ino, os.lseek(number, 0, os.SEEK_CUR)
        holder = self.held.get(place)
        if holder not in (None, number) and is_open(holder):  # a number is given anew once its file is closed
            raise PermissionError(errno.EACCES, "Permission denied")
        self.held[place] = number


def is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


@pytest.fixture
def windows(monkeypatch):
    found = Bytes()
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", types.SimpleNamespace(locking=found.locking, LK_NBLCK=found.LK_NBLCK))
    monkeypatch.setattr(whole_files, "WINDOWS", True)


@pytest.fixture(params=["here", "windows"])
def _anywhere(request):
    if request.param == "windows":
        request.getfixturevalue("windows")


@pytest.mark.usefixtures("_anywhere")
def test_a_lock_is_held_until_its_file_is_closed(tmp_path):
    with open(tmp_path / "t", "a+b") as first, open(tmp_path / "t", "a+b") as second:
        whole_files.hold(first.fileno())
        with pytest.raises(BlockingIOError):
            whole_files.hold(second.fileno(), wait=False)
        freed = threading.Timer(0.2, first.close)
        freed.start()
        whole_files.hold(second.fileno())
        freed.join()
        assert first.closed


def test_a_disk_without_locks_is_not_waited_for(monkeypatch, tmp_path, windows):
    """Where `msvcrt` fails for another reason than a holder, `answer` waited without end."""

    def fails(*_: int) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(sys.modules["msvcrt"], "locking", fails)
    with open(tmp_path / "t", "a+b") as file, pytest.raises(OSError, match="Invalid argument"):
        whole_files.hold(file.fileno())


@pytest.mark.usefixtures("_anywhere")
def test_the_lock_of_a_checkpoint_keeps_its_turn(tmp_path):
    file = LockFile(tmp_path / "c")
    run, name = "0" * 16, "1" * 16
    assert file.kept(run) is None
    file.take(Turn(run, 1, name, ""))
    assert file.kept(run) == name
    with pytest.raises(InvalidInput, match=r"^another process trains with the checkpoint .*; let it end"):
        LockFile(tmp_path / "c")
    file.close()
    again = LockFile(tmp_path / "c")
    assert again.kept(run) == name
    again.close()


def test_a_system_without_locks_is_told(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", None)
    assert not whole_files.can_lock()
    with open(tmp_path / "t", "a+b") as file, pytest.raises(InvalidInput, match=r"^this system has no locks on files"):
        whole_files.hold(file.fileno())
    with pytest.raises(
        InvalidInput, match=r"^this system has no locks on files, so two processes could go on from one"
    ):
        LockFile(tmp_path / "c")


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize("words", [("task", "status"), ("serve", "--port", "0"), ("task", "close", "x.task", "--yes")])
def test_a_collection_is_not_held_where_its_end_would_not_be_kept(monkeypatch, tmp_path, capsys, words):
    """It was posted, and closing it was an internal failure (ModuleNotFoundError: No module named 'fcntl')."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shuffledp.db").touch()
    with pytest.raises(SystemExit) as stopped:
        main(list(words))
    error = capsys.readouterr().err
    assert stopped.value.code == 2, error
    assert "internal" not in error
    assert "a collection cannot be held on Windows" in error or "x.task" in error


@pytest.mark.costly
def test_one_place_locks_files():
    """No other module asks for fcntl or msvcrt, which one of the systems has not."""
    asking = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Import) and {alias.name for alias in node.names} & {"fcntl", "msvcrt"})
        or (isinstance(node, ast.ImportFrom) and node.module in ("fcntl", "msvcrt"))
    }
    assert asking == {"whole_files.py"}
