"""A file is there whole or not at all, and never through somebody else's link."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat

import pytest

from shuffledp.collection.store import Store
from shuffledp.errors import InvalidInput
from shuffledp.ledger import Ledger
from shuffledp.whole_files import replaced, toml_table


def test_a_block_that_fails_leaves_what_was_there(tmp_path):
    target = tmp_path / "page.html"
    target.write_bytes(b"old")

    def fail():
        with replaced(target, "the page") as file:
            file.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["page.html"]


@pytest.mark.parametrize("there", [True, False], ids=["link", "dangling"])
@pytest.mark.parametrize("fresh", [True, False])
def test_a_link_is_refused(tmp_path, there, fresh):
    """`write_bytes` of 0.2.0's first drafts wrote beside the file that a link named."""
    aim = tmp_path / "elsewhere"
    if there:
        aim.write_bytes(b"theirs")
    (tmp_path / "link").symlink_to(aim)
    with (
        pytest.raises(InvalidInput, match="the key is a symbolic link; name the file itself"),
        replaced(tmp_path / "link", "the key", fresh=fresh),
    ):
        pass
    assert aim.exists() == there


def test_a_fresh_file_never_replaces_one_that_came_meanwhile(tmp_path):
    target = tmp_path / "key"

    def late():
        with replaced(target, "the key", fresh=True) as file:
            file.write(b"mine")
            target.write_bytes(b"theirs")

    with pytest.raises(InvalidInput, match="the key exists and would be lost"):
        late()
    assert target.read_bytes() == b"theirs"
    assert os.listdir(tmp_path) == ["key"]


def full() -> sqlite3.Error:
    """What SQLite raises where there is no room."""
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE t (x)")
    db.execute("PRAGMA max_page_count=2").fetchone()
    with pytest.raises(sqlite3.OperationalError) as raised:
        db.execute("INSERT INTO t VALUES (zeroblob(100000))")
    return raised.value


def raising(error: Exception):
    def call(*_: object, **__: object) -> None:
        raise error

    return call


def test_a_disk_without_room_is_not_answered_by_another_name(tmp_path, monkeypatch):
    """`name another` was the advice where the disk was full: another name on it would not help."""
    no_room, no_right = OSError(errno.ENOSPC, "No space left on device"), OSError(errno.EACCES, "Permission denied")
    for error, advice in ((no_room, "make room on its disk"), (no_right, "choose an existing, writable folder")):
        monkeypatch.setattr("tempfile.mkstemp", raising(error))
        with pytest.raises(InvalidInput, match=f"; {advice}$"), replaced(tmp_path / "page.html", "the page"):
            pass
    for error, advice in ((no_room, "make room on its disk"), (no_right, "name another")):
        monkeypatch.setattr("tempfile.mkstemp", raising(error))
        with pytest.raises(InvalidInput, match=f"; {advice}$"):
            Store(tmp_path / "new.db")
    monkeypatch.undo()
    Ledger(tmp_path / "l.db", make=True).close()
    for module, make in (
        ("collection", lambda: Store(tmp_path / "s.db")),
        ("ledger", lambda: Ledger(tmp_path / "l.db")),
    ):
        monkeypatch.setattr(f"shuffledp.{module}.store.sqlite3.connect", raising(full()))
        with pytest.raises(InvalidInput, match=r"disk is full\); make room on its disk$"):
            make()
        monkeypatch.undo()


def test_modes(tmp_path):
    for private, mode in ((True, 0o600), (False, 0o644)):
        old = os.umask(0o022)
        try:
            with replaced(tmp_path / "file", "file", private=private) as file:
                file.write(b"x")
        finally:
            os.umask(old)
        assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode


def test_a_missing_folder_is_named_before_any_work(tmp_path):
    wanted = r"out/page.html cannot be written \(No such file or directory\); choose an"
    with pytest.raises(InvalidInput, match=wanted), replaced(tmp_path / "no" / "page.html", "out/page.html"):
        pytest.fail("the block was entered")


@pytest.mark.parametrize("data", ["name = 'Büro'".encode("utf-8-sig"), "name = 'Büro'".encode()])
def test_toml_is_read_with_or_without_a_mark(data):
    """A file of questions with a mark, as Windows' editor writes one, was no TOML: `Invalid statement`."""
    assert toml_table(data, "the file") == {"name": "Büro"}


@pytest.mark.parametrize("encoding", ["utf-16", "cp1252"])
def test_toml_in_another_encoding_is_named(encoding):
    with pytest.raises(InvalidInput, match=r"^the survey is not UTF-8 text; save it as UTF-8$"):
        toml_table("name = 'Büro'".encode(encoding), "the survey")
