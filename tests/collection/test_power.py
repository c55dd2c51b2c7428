"""The power fails: what the disk was told to keep when an answer left holds every report acknowledged until then."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from shuffledp.cli.demo.service import running
from tests.collection.service import Reports, store_at, task_of
from tests.collection.test_crash import Client

STRACE = shutil.which("strace")
CALLS = "pwrite64,ftruncate,fsync,fdatasync,write,writev,sendto,sendmsg"
CALL = re.compile(r"^\d+ +(\w+)\(\d+<([^>]*)>(?:, (.*)|\).*)?$")
"""A call on an open file, with the number of the thread, the file's path, and what follows."""
ANSWER = "".join(f"\\x{byte:02x}" for byte in b"HTTP/1.1 200 OK")


def watch(pid: int, log: Path) -> subprocess.Popen[str]:
    """Write every write, and every wait for the disk, of a process into a log, in the order in which they happen."""
    assert STRACE is not None
    words = [STRACE, "-f", "-y", "-xx", "-s", "1000000", "-e", f"trace={CALLS}", "-o", str(log), "-p", str(pid)]
    watcher = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    assert watcher.stderr is not None
    first = watcher.stderr.readline()
    if "attached" not in first:
        watcher.communicate()
        pytest.skip(f"strace cannot watch a process here: {first.strip()}")
    return watcher


def calls(log: Path) -> list[tuple[str, str, str]]:
    """Return name, path and the rest of every call: a write or sync when it ends, an answer when it begins."""
    found: list[tuple[str, str, str]] = []
    begun: dict[str, str] = {}
    for line in log.read_text().splitlines():
        thread = line.split(" ", 1)[0]
        if line.endswith("<unfinished ...>"):
            line = begun[thread] = line.removesuffix(" <unfinished ...>")
            if ANSWER not in line:
                continue
        elif "resumed>" in line:
            line = begun.pop(thread)
            if ANSWER in line:
                continue  # it counted when it began
        if match := CALL.match(line):
            found.append((match[1], plain(match[2]).decode(), match[3] or ""))
    return found


def plain(text: str) -> bytes:
    """Return the bytes that strace wrote in hexadecimal."""
    return bytes.fromhex(text.replace("\\x", ""))


class Disk:
    """The files as the disk keeps them: what was written is there once its file was synchronised."""

    def __init__(self, folder: Path, store: Path) -> None:
        self.folder, self.store = folder, store
        self.files = {path: bytearray(path.read_bytes()) for path in (store, store.with_name(store.name + "-wal"))}
        self.waiting: dict[Path, list[tuple[str, str]]] = {path: [] for path in self.files}

    def take(self, name: str, path: Path, rest: str) -> None:
        """Follow one call."""
        if path not in self.files:
            return
        if name in ("fsync", "fdatasync"):
            for written, what in self.waiting[path]:
                self._apply(path, written, what)
            self.waiting[path].clear()
        else:
            self.waiting[path].append((name, rest))

    def _apply(self, path: Path, name: str, rest: str) -> None:
        content = self.files[path]
        if name == "ftruncate":
            size = int(rest.split(")")[0])
            content[:] = content[:size].ljust(size, b"\0")
            return
        match = re.match(r'"([^"]*)", (\d+), (\d+)', rest)
        assert match is not None, (name, rest[-60:])
        data, at = plain(match[1]), int(match[3])
        assert len(data) == int(match[2])
        content[len(content) : at] = bytes(max(at - len(content), 0))
        content[at : at + len(data)] = data

    def held(self) -> int:
        """Start anew from what the disk kept, and count the reports."""
        copy = self.folder / "after.db"
        for path, content in self.files.items():
            copy.with_name(path.name.replace(self.store.name, copy.name)).write_bytes(content)
        copy.with_name(copy.name + "-shm").unlink(missing_ok=True)
        db = sqlite3.connect(copy)
        try:
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            return db.execute("SELECT count(*) FROM report").fetchone()[0]
        finally:
            db.close()


@pytest.mark.skipif(STRACE is None, reason="strace is not installed")
@pytest.mark.parametrize("clients", [1, 6])
def test_power_fails_when_an_answer_leaves(tmp_path, clients):
    """At each answer the power fails: everything not synchronised is lost, and no acknowledged report is."""
    each, path = 24 // clients, tmp_path / "store.db"
    task = task_of(opens="2020-01-01T00:00:00Z")
    store, reports = store_at(tmp_path, task, now=int(time.time())), Reports(task).many(clients * each)
    with running(path) as service:
        watcher = watch(service.pid, tmp_path / "calls.log")
        disk = Disk(tmp_path, path)  # what is written meanwhile is written once more, to the same places
        senders = [Client(service, f"/v1/{task.id}/reports", reports[at::clients], at) for at in range(clients)]
        with ThreadPoolExecutor(clients) as pool:
            assert all(pool.map(lambda sender: all(sender._send([one]) for one in sender.reports), senders))
        watcher.terminate()
        watcher.communicate()
    store.close()
    acknowledged = 0
    for name, file, rest in calls(tmp_path / "calls.log"):
        if ANSWER in rest:
            acknowledged += 1
            assert disk.held() >= acknowledged
        else:
            disk.take(name, Path(file), rest)
    assert acknowledged == len(reports)
