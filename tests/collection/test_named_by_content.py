"""A report is named by what it holds: the same content under two codes is one row, whoever lies on the way."""

from __future__ import annotations

import http.server
import shutil
import sqlite3
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from shuffledp.cli.demo.service import running
from shuffledp.collection import store as schema
from shuffledp.collection.analyzer import open_batch
from shuffledp.collection.batch import Batch, Outer, Verdict, open_outer, seal_inner, seal_outer
from shuffledp.collection.client import RESEALED, Device, DeviceState, Link, fetch_task
from shuffledp.collection.closing import close_task
from shuffledp.collection.fields import to_base64
from shuffledp.collection.ingest import Refused, hold, open_reports
from shuffledp.collection.sealing import Opener, Sealer
from shuffledp.collection.store import Store
from shuffledp.collection.task import PostedTask
from shuffledp.errors import InvalidInput
from tests.collection.batches import analyzer_key
from tests.collection.service import Reports, Time, codes_of, digest_of, hash_of, store_at, task_of
from tests.collection.tasks import IDENTITY, SHUFFLER, choice
from tests.collection.test_closing import rows_of

OLD_STORE = Path(__file__).with_name("stores") / "store_0_2_0.db"


def twice(task: PostedTask, *codes: bytes | None, level: int = 0) -> list[bytes]:
    """One content, sealed once for each code."""
    inners = [seal_inner(task, place, 1, Sealer(task.draft.analyzer_key)) for place in range(len(task.draft.questions))]
    return [seal_outer(task, level, code, inners, Sealer(task.shuffler_key)) for code in codes]


def send(store: Store, task: PostedTask, *reports: bytes) -> bytes | Refused:
    return hold(store, [open_reports(b"".join(reports), task, Opener(SHUFFLER))])[0]


@contextmanager
def relay(server: str, lies: list[int]) -> Iterator[str]:
    """A proxy before a service: for each of `lies` it replaces the answer to one report by that byte."""

    class Relay(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.forward(None)

        def do_POST(self) -> None:
            self.forward(self.rfile.read(int(self.headers["Content-Length"])))

        def forward(self, body: bytes | None) -> None:
            with urllib.request.urlopen(urllib.request.Request(server + self.path, body)) as answer:
                said = answer.read()
            if body is not None and lies:
                assert said == b"\0", "the shuffler holds it"
                said = bytes([lies.pop(0)])
            self.send_response(200)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Relay) as lying:
        thread = threading.Thread(target=lying.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{lying.server_port}"
        lying.shutdown()
        thread.join()


@pytest.mark.costly
def test_a_forged_refusal_and_a_second_code_count_a_person_once(tmp_path):
    """An honest shuffler, an honest device, a relay that makes "held" into "code refused", and a second code.

    The batch of 0.2.0 held 30 people's rows and the victim's twice, so the analyzer knew whose that one was.
    """
    task = task_of(choice(5, 172), admission="codes", opens="2020-01-01T00:00:00Z")
    store, codes = store_at(tmp_path, task, now=int(time.time())), codes_of(30)
    store.add_codes(task.digest, [hash_of(code) for code in codes])
    reports = Reports(task)
    assert send(store, task, *(reports.one(0, 0, code) for code in codes[2:])) == bytes(28)
    said: list[str] = []
    device = Device(DeviceState(tmp_path / "answers.json"), say=said.append)
    with running(tmp_path / "store.db") as service, relay(service.url, [Verdict.CODE_REFUSED]) as server:
        link = Link(server, task.id, codes[0])
        assert fetch_task(link) == task
        assert device.answer(link, task, [3], 0, patience=5) is Verdict.CODE_REFUSED
        assert said == []
        assert device.answer(Link(server, task.id, codes[1]), task, [3], 0, patience=5) is Verdict.HELD
        assert said == [RESEALED]
    path = close_task(store, task.digest, clock=Time())
    assert store.tally(task.digest) == {0: 29}
    store.close()
    batch = Batch.parse(path.read_bytes())
    assert batch.manifest.counts == (29, 0, 0)
    assert max(Counter(rows_of(path)[0]).values()) == 1, "no row stands twice"
    assert open_batch(path.read_bytes(), analyzer_key(task)).junk[0].total == 0


@pytest.mark.costly
@pytest.mark.parametrize("lie", [Verdict.UNREADABLE, Verdict.UNFIT])
def test_a_forged_refusal_leads_to_no_second_draw(tmp_path, lie):
    """The report is held; the device hears otherwise, and a second link does not make it draw again."""
    task = task_of(choice(5, 172), admission="codes", opens="2020-01-01T00:00:00Z")
    store, codes = store_at(tmp_path, task, now=int(time.time())), codes_of(2)
    store.add_codes(task.digest, [hash_of(code) for code in codes])
    device = Device(DeviceState(tmp_path / "answers.json"))
    with running(tmp_path / "store.db") as service, relay(service.url, [lie]) as server:
        assert device.answer(Link(server, task.id, codes[0]), task, [3], 0, patience=5) is lie
        with pytest.raises(InvalidInput, match="already answered"):
            device.answer(Link(server, task.id, codes[1]), task, [3], 0, patience=5)
    assert device.spent("The kitchen")["answers"] == 1
    assert store.tally(task.digest) == {0: 1}
    store.close()


@pytest.mark.parametrize("together", [True, False], ids=["one request", "two requests"])
def test_a_copy_is_held_once_and_spends_its_code(tmp_path, together):
    """What a code does afterwards tells only that its report was said to be held, and never that it was a copy."""
    task = task_of(admission="codes")
    store, codes = store_at(tmp_path, task), codes_of(3)
    store.add_codes(task.digest, [hash_of(code) for code in codes[:2]])
    one, two = twice(task, *codes[:2])
    answers = [send(store, task, one, two)] if together else [send(store, task, one), send(store, task, two)]
    assert b"".join(answer for answer in answers if isinstance(answer, bytes)) == b"\0\0"
    assert [name for name, _, _ in store.reports(task.digest)] == [digest_of(task, one)]
    assert store.tally(task.digest) == {0: 1}
    reports = Reports(task)
    assert [send(store, task, reports.one(code=code)) for code in codes] == [b"\3"] * 3
    store.close()


def test_what_is_held_is_said_to_be_held_whatever_code_it_brings(tmp_path):
    task = task_of(admission="codes")
    store, codes = store_at(tmp_path, task), codes_of(3)
    store.add_codes(task.digest, [hash_of(code) for code in codes[:2]])
    one, unknown, of_another = twice(task, codes[0], codes[2], codes[1])
    assert send(store, task, one, Reports(task).one(1, code=codes[1])) == b"\0\0"
    assert send(store, task, one, unknown, of_another) == b"\0\0\0"
    assert store.tally(task.digest) == {0: 1, 1: 1}
    store.close()


def test_a_copy_needs_no_room_and_takes_no_other_level(tmp_path):
    task = task_of(stop_at=1)
    store = store_at(tmp_path, task)
    one, again = twice(task, None, None)
    outer = open_outer(task, one, Opener(SHUFFLER))
    assert isinstance(outer, Outer)
    louder = seal_outer(task, 2, None, [outer.inners], Sealer(task.shuffler_key))
    assert [send(store, task, report) for report in (one, again, louder)] == [b"\0"] * 3
    assert send(store, task, Reports(task).one()) is Refused.FULL
    assert store.tally(task.digest) == {0: 1}
    store.close()


def old_store(folder: Path) -> Store:
    """The store that 0.2.0 left (stores/make_0_2_0.py), opened by the present version."""
    shutil.copy(OLD_STORE, folder / "store.db")
    (folder / "shuffler.key").write_text(to_base64(IDENTITY))
    with closing(sqlite3.connect(folder / "store.db")) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
    return Store(folder / "store.db")


def named(store: Store, title: str) -> PostedTask:
    tasks = [PostedTask.parse(row.posted) for row in store.tasks()]
    return next(task for task in tasks if task.draft.title["en"] == title)


def test_a_store_of_0_2_0_with_open_tasks_is_led_on(tmp_path):
    store = old_store(tmp_path)
    with store.writing() as db:
        assert db.execute("PRAGMA user_version").fetchone() == (len(schema.MIGRATIONS),)
    states = {"By codes": "open", "Open to all": "open", "Half closed": "closing", "Handed over": "released"}
    tallies = {
        "By codes": {0: 2, 1: 2, 2: 1, -1: 1},  # 0.2.0 counted 3 at the first level: one of them twice
        "Open to all": {0: 1, 1: 1, 2: 1},
        "Half closed": {0: 2, 1: 1, 2: 1},
        "Handed over": {0: 1, 1: 1},
    }
    for title, state in states.items():
        task = named(store, title)
        assert store.state(task.digest)[0] == state
        assert store.tally(task.digest) == tallies[title]
    task, codes = named(store, "By codes"), codes_of(7)
    store.add_codes(task.digest, [hash_of(codes[6])])
    held = [inners for _, _, inners in store.reports(task.digest)]
    assert len(held) == len(set(held)) == 5
    size = task.inner_sizes[0]
    again = [seal_outer(task, 0, codes[6], [held[0][:size], held[0][size:]], Sealer(task.shuffler_key))]
    assert send(store, task, *again) == b"\0", "held before the migration, and known by its content"
    assert store.tally(task.digest) == tallies["By codes"]
    store.close()


@pytest.mark.parametrize(("title", "people"), [("By codes", 5), ("Open to all", 3), ("Half closed", 4)])
def test_a_task_that_was_opened_under_0_2_0_is_closed(tmp_path, title, people):
    store = old_store(tmp_path)
    task = named(store, title)
    before = {
        sealed for question in range(len(task.draft.questions)) for sealed in store.dummies(task.digest, question)
    }
    path = close_task(store, task.digest, clock=Time())
    rows = rows_of(path)
    assert Batch.parse(path.read_bytes()).manifest.n == people
    assert all(len(column) == len(set(column)) for column in rows)
    assert before <= {row for column in rows for row in column}, "dummies that 0.2.0 has drawn are not drawn anew"
    store.close()


def test_two_commands_with_two_new_codes_send_one_report(tmp_path):
    """Both found the report without a sealed form, and each sealed it for its own code: it left twice."""
    task = task_of(choice(5, 172), admission="codes")
    codes = codes_of(3)
    devices = [Device(DeviceState(tmp_path / "answers.json"), say=lambda _: None) for _ in range(2)]
    first = devices[0].prepare(task, [3], 0, codes[0])
    devices[0].state.code_refused(task.id, to_base64(first))
    ready = threading.Barrier(2)  # both have read the file before either writes it
    for device in devices:
        device._say = lambda _: ready.wait(10) and None
    sealed: list[bytes] = []
    threads = [
        threading.Thread(target=lambda d=device, c=code: sealed.append(d.prepare(task, [3], 0, c)))
        for device, code in zip(devices, codes[1:], strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(sealed) == 2
    assert len(set(sealed)) == 1
    assert sealed[0] != first


def test_a_late_refusal_of_the_first_code_leaves_what_was_sealed_for_the_second(tmp_path):
    task = task_of(choice(5, 172), admission="codes")
    codes = codes_of(3)
    device = Device(DeviceState(tmp_path / "answers.json"), say=lambda _: None)
    first = device.prepare(task, [3], 0, codes[0])
    device.state.code_refused(task.id, to_base64(first))
    second = device.prepare(task, [3], 0, codes[1])
    device.state.code_refused(task.id, to_base64(first))  # another command hears of the first code only now
    assert device.prepare(task, [3], 0, codes[2]) == second


def test_a_report_that_was_answered_meanwhile_is_not_sealed_again(tmp_path):
    task = task_of(choice(5, 172), admission="codes")
    device = Device(DeviceState(tmp_path / "answers.json"))
    first = device.prepare(task, [3], 0, codes_of(1)[0])
    device.state.code_refused(task.id, to_base64(first))
    device._say = lambda _: device.state.answered(task.id, "held")
    with pytest.raises(InvalidInput, match="already answered"):
        device.prepare(task, [3], 0, codes_of(2)[1])


def test_without_a_listener_a_second_sealing_is_a_warning(tmp_path):
    task = task_of(choice(5, 172), admission="codes")
    device = Device(DeviceState(tmp_path / "answers.json"))
    first = device.prepare(task, [3], 0, codes_of(1)[0])
    device.state.code_refused(task.id, to_base64(first))
    with pytest.warns(UserWarning, match="only your epsilon0 protects you"):
        device.prepare(task, [3], 0, codes_of(2)[1])
