"""SIGKILL under load: nothing acknowledged is lost, nothing is counted twice."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from random import Random

import pytest

from shuffledp.cli.demo.service import ServiceProcess, running
from shuffledp.collection.closing import close_task
from shuffledp.collection.store import Store
from tests.collection.service import Reports, codes_of, digest_of, hash_of, store_at, task_of
from tests.collection.test_closing import rows_of

CLIENTS = 4
FORKER = """
import os, signal, sys
from pathlib import Path
from shuffledp.collection.server import serve
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        try:
            serve(Path(sys.argv[1]), port=int(line), ready=lambda url: print(os.getpid(), url, flush=True))
        finally:
            print(flush=True)
            os._exit(0)
"""


class Forked:
    """The service, started many times by a process that has imported everything once."""

    def __init__(self, store: Path, log: Path) -> None:
        with open(log, "ab") as file:
            self._forker = subprocess.Popen(
                [sys.executable, "-c", FORKER, str(store)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
            )
        self.url, self._pid = "http://127.0.0.1:0", 0

    def start(self) -> None:
        assert self._forker.stdin is not None
        assert self._forker.stdout is not None
        self._forker.stdin.write(self.url.rpartition(":")[2] + "\n")
        self._forker.stdin.flush()
        pid, self.url = self._forker.stdout.readline().split()  # an empty line: it did not start
        self._pid = int(pid)

    def kill(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            while True:  # until it is gone, and its port free
                os.kill(self._pid, 0)
                time.sleep(0.002)

    def end(self) -> None:
        self.kill()
        self._forker.communicate()


class Client(threading.Thread):
    """Sends its reports, each until it is answered, and when all are held some of them again."""

    def __init__(self, service: ServiceProcess | Forked, path: str, reports: list[bytes], seed: int) -> None:
        super().__init__(daemon=True)
        self.service, self.path, self.reports, self.random = service, path, reports, Random(seed)
        self.acknowledged: set[bytes] = set()
        self.wrong: list[object] = []
        self.finish = threading.Event()
        self.done = False

    def run(self) -> None:
        waiting = list(self.reports)
        while not (self.finish.is_set() and self.done):
            if waiting:
                taken = [waiting.pop() for _ in range(min(self.random.choice((1, 1, 5)), len(waiting)))]
            else:
                self.done = True
                taken = self.random.sample(self.reports, 2)
            while not self._send(taken):
                time.sleep(0.01)
            self.acknowledged.update(taken)

    def _send(self, reports: list[bytes]) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", int(self.service.url.rpartition(":")[2]), timeout=10)
        try:
            connection.request("POST", self.path, b"".join(reports))
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
        if answer.status == 503:
            return False
        if (answer.status, body) != (200, bytes(len(reports))):
            self.wrong.append((answer.status, body))
        return True


def kill_under_load(folder: Path, kills: int, each: int) -> None:
    task = task_of(admission="codes", opens="2020-01-01T00:00:00Z", stop_at=100_000)
    store, codes = store_at(folder, task, now=int(time.time())), codes_of(CLIENTS * each)
    store.add_codes(task.digest, [hash_of(code) for code in codes])
    made = Reports(task)
    reports = [made.one(place % 3, 0, code) for place, code in enumerate(codes)]
    random = Random(kills)
    service = Forked(folder / "store.db", folder / "store.log")
    service.start()
    try:
        path = f"/v1/{task.id}/reports"
        clients = [Client(service, path, reports[at::CLIENTS], at) for at in range(CLIENTS)]
        for client in clients:
            client.start()
        for _ in range(kills):
            time.sleep(random.uniform(0.02, 0.2))
            service.kill()
            acknowledged = set().union(*(client.acknowledged for client in clients))
            held = {digest for digest, _, _ in store.reports(task.digest)}
            assert {digest_of(task, report) for report in acknowledged} <= held
            service.start()
        for client in clients:
            client.finish.set()
        for client in clients:
            client.join(600)
            assert client.done
            assert client.wrong == []
        assert [digest for digest, _, _ in store.reports(task.digest)] == sorted(
            digest_of(task, report) for report in reports
        )
        assert store.held(task.digest) == len(reports)
        with store.writing() as db:
            assert db.execute("SELECT sum(spent), count(*) FROM code").fetchall() == [(len(codes), len(codes))]
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        log = (folder / "store.log").read_text()
    finally:
        service.end()
    columns = rows_of(close_task(store, task.digest))
    assert [len(set(column)) for column in columns] == [len(reports) + 20]
    assert "error" not in log
    assert "warning" not in log
    assert task.id not in log
    assert "POST" not in log
    store.close()


def test_kills_under_load(tmp_path):
    kill_under_load(tmp_path, kills=8, each=300)


@pytest.mark.slow
def test_a_hundred_kills_under_load(tmp_path):
    kill_under_load(tmp_path, kills=100, each=4000)


def test_two_servers_on_one_store(tmp_path):
    """Both hold reports of one task; one closes it while the other runs, and both answer 410 afterwards."""
    task = task_of(opens="2020-01-01T00:00:00Z")
    store, reports = store_at(tmp_path, task, now=int(time.time())), Reports(task).many(400)
    with running(tmp_path / "store.db") as one, running(tmp_path / "store.db", tmp_path / "two.log") as two:
        path = f"/v1/{task.id}/reports"
        clients = [Client(service, path, reports[at : at + 300], at) for at, service in ((0, one), (100, two))]
        for client in clients:
            client.finish.set()
            client.start()
        for client in clients:
            client.join(600)
            assert client.done
            assert client.wrong == []
        assert store.held(task.digest) == 400
        batch = close_task(Store(tmp_path / "store.db"), task.digest)
        assert [len(set(column)) for column in rows_of(batch)] == [420]
        for service in (one, two):
            late = Client(service, path, reports[:1], 0)
            assert late._send(reports[:1])
            assert late.wrong == [(410, b"this task takes no more reports\n")]
    store.close()


def test_a_command_beside_a_running_service_does_not_take_its_log_away(tmp_path):
    """Found by hand: opening the file once more dropped the service's locks, so the next command deleted its log.

    Reports that came afterwards were acknowledged and lost with the process.
    """
    task = task_of(opens="2020-01-01T00:00:00Z")
    store_at(tmp_path, task, now=int(time.time())).close()
    reports = Reports(task)
    with running(tmp_path / "store.db") as service:
        assert _posted(service, f"/v1/{task.id}/reports", reports.one()) == b"\0"
        for name in ("status", "clock-ok"):
            words = ["task", name, "--store", str(tmp_path / "store.db")]
            command = [sys.executable, "-c", "from shuffledp.cli import main; main()", *words]
            subprocess.run(command, check=True, capture_output=True)
        for _ in range(5):
            assert _posted(service, f"/v1/{task.id}/reports", reports.one()) == b"\0"
        service.kill()
        store = Store(tmp_path / "store.db")
        assert store.held(task.digest) == len(list(store.reports(task.digest))) == 6
        store.close()


def _posted(service: ServiceProcess, path: str, body: bytes) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", int(service.url.rpartition(":")[2]), timeout=300)
    try:
        connection.request("POST", path, body)
        return connection.getresponse().read()
    finally:
        connection.close()


def test_a_new_store_is_its_owner_s_alone_and_one_that_is_there_is_not_opened_twice(tmp_path, monkeypatch):
    before = os.umask(0)
    try:
        Store(tmp_path / "store.db").close()
        (tmp_path / "link.db").symlink_to(tmp_path / "behind.db")
        Store(tmp_path / "link.db").close()
    finally:
        os.umask(before)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("store.db", "behind.db")] == [0o600] * 2
    closed: list[int] = []
    monkeypatch.setattr("os.close", closed.append)
    Store(tmp_path / "store.db").close()
    assert closed == [], "closing a second handle drops the locks of the first (POSIX)"
