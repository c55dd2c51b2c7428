"""What is held: each report once, each code once, nothing beyond `stop_at`, nothing that was not answered so."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from shuffledp.collection.batch import Verdict
from shuffledp.collection.ingest import Ingest, Offer, Refused, hold, open_reports
from shuffledp.collection.sealing import Opener, Sealer
from shuffledp.collection.store import Store
from tests.collection.service import Reports, codes_of, digest_of, hash_of, store_at, task_of
from tests.collection.tasks import SHUFFLER, choice, number

OPENER = Opener(SHUFFLER)


def offer(task, *reports: bytes) -> Offer:
    return open_reports(b"".join(reports), task, OPENER)


def held_in(store: Store, task) -> set[bytes]:
    found = [digest for digest, _, _ in store.reports(task.digest)]
    assert len(found) == len(set(found)) == store.held(task.digest)
    return set(found)


@pytest.fixture
def task():
    return task_of()


@pytest.fixture
def store(tmp_path, task):
    opened = store_at(tmp_path, task)
    yield opened
    opened.close()


def test_a_row_holds_level_and_inner_messages_and_nothing_else(tmp_path):
    task = task_of(choice(5, 20), number(), admission="codes")
    store, (code,) = store_at(tmp_path, task), codes_of(1)
    store.add_codes(task.digest, [hash_of(code)])
    report = Reports(task).one(level=2, code=code)
    assert hold(store, [offer(task, report)]) == [b"\0"]
    opened = OPENER.open(report, task.outer_info)
    assert opened is not None
    assert list(store.reports(task.digest)) == [(digest_of(task, report), 2, opened[17:])]
    store.close()


def test_a_report_is_held_once_however_often_it_comes(store, task):
    one, two = Reports(task).many(2)
    assert hold(store, [offer(task, one, one), offer(task, one)]) == [b"\0\0", b"\0"]
    assert hold(store, [offer(task, one, two)]) == [b"\0\0"]
    assert held_in(store, task) == {digest_of(task, one), digest_of(task, two)}
    assert store.tally(task.digest) == {0: 1, 1: 1}


def test_one_answer_byte_for_each_report(store, task):
    good = Reports(task).one()
    unreadable = [
        bytes(task.size),  # all-zero Diffie-Hellman
        b"\xff" * 32 + good[32:],  # a non-canonical point
        good[:40] + bytes([good[40] ^ 1]) + good[41:],
        good[:31] + bytes([good[31] ^ 0x80]) + good[32:],  # the bit that X25519 itself ignores
        Reports(task_of(title={"en": "Another task"})).one(),
        Sealer(task.draft.analyzer_key).seal(bytes(task.size - 48), task.outer_info),
    ]
    unfit = Sealer(task.shuffler_key).seal(b"\x03" + bytes(task.size - 49), task.outer_info)
    assert hold(store, [offer(task, *unreadable, good, unfit)]) == [b"\1" * 6 + b"\0\2"]
    assert held_in(store, task) == {digest_of(task, good)}
    assert store.tally(task.digest) == {0: 1, -1: 6, -2: 1}


def test_every_bit_of_a_report_matters(task):
    good = Reports(task).one()
    for place in range(8 * len(good)):
        changed = bytearray(good)
        changed[place // 8] ^= 1 << place % 8
        assert offer(task, bytes(changed)).verdicts == bytes([Verdict.UNREADABLE])


def test_the_first_report_with_a_code_wins(tmp_path):
    task = task_of(admission="codes")
    store, codes, reports = store_at(tmp_path, task), codes_of(3), Reports(task)
    store.add_codes(task.digest, [hash_of(code) for code in codes[:2]])
    one, again = reports.one(code=codes[0]), reports.one(code=codes[0])
    two, unknown = reports.one(level=1, code=codes[1]), reports.one(code=codes[2])
    assert hold(store, [offer(task, one, again, one), offer(task, one, unknown)]) == [b"\0\3\0", b"\0\3"]
    assert hold(store, [offer(task, one, again, two, unknown)]) == [b"\0\3\0\3"]
    assert held_in(store, task) == {digest_of(task, one), digest_of(task, two)}
    assert store.tally(task.digest) == {0: 1, 1: 1, -3: 4}
    store.close()


@pytest.mark.parametrize("state", ["closing", "released", "deleted", "destroyed"])
def test_nothing_comes_in_once_a_task_is_not_open(store, task, state):
    one, two = Reports(task).many(2)
    assert hold(store, [offer(task, one)]) == [b"\0"]
    with store.writing() as db:
        db.execute("UPDATE task SET state = ?", (state,))
    assert hold(store, [offer(task, one), offer(task, two)]) == [Refused.CLOSED] * 2
    assert held_in(store, task) == {digest_of(task, one)}


def test_a_task_of_which_the_store_knows_nothing_is_closed(store, task):
    other = task_of(title={"en": "Another task"})
    answers = hold(store, [offer(other, Reports(other).one()), offer(task, Reports(task).one())])
    assert answers == [Refused.CLOSED, b"\0"]


def test_stop_at_is_exact_and_what_is_held_is_still_confirmed(tmp_path):
    task = task_of(stop_at=5)
    store, reports = store_at(tmp_path, task), Reports(task).many(8)
    assert hold(store, [offer(task, *reports[:3]), offer(task, *reports[3:6])]) == [b"\0\0\0", Refused.FULL]
    assert hold(store, [offer(task, *reports[1:5])]) == [b"\0\0\0\0"], "three of the four are held already"
    assert hold(store, [offer(task, reports[5]), offer(task, reports[0])]) == [Refused.FULL, b"\0"]
    assert held_in(store, task) == {digest_of(task, report) for report in reports[:5]}
    store.close()


@pytest.mark.costly
def test_a_report_whose_code_is_refused_takes_no_room_and_changes_no_answer(tmp_path):
    """Room was counted first: near `stop_at`, 503 told each arrival to whoever sent reports without a code."""
    task = task_of(stop_at=5, admission="codes")
    store, codes, reports = store_at(tmp_path, task), codes_of(6), Reports(task)
    store.add_codes(task.digest, [hash_of(code) for code in codes])
    sent = [reports.one(code=code) for code in codes]
    for held in range(6):
        for size in (1, 5 - held, 6 - held, 7, 100):  # also just what fits and just what does not
            probes = [reports.one(code=code) for code in codes_of(size, "nobody's")]
            assert hold(store, [offer(task, *probes)]) == [b"\3" * size], (held, size)
            others = [reports.one(code=code) for code in codes[:held]]
            assert hold(store, [offer(task, *probes, *others, bytes(task.size))]) == [b"\3" * (size + held) + b"\1"]
            assert hold(store, [offer(task, *probes), offer(task, *probes)]) == [b"\3" * size] * 2
        if held < 5:
            assert hold(store, [offer(task, *probes, sent[held])]) == [b"\3" * 100 + b"\0"], "the last one fits"
    assert hold(store, [offer(task, sent[5], *probes), offer(task, sent[4])]) == [Refused.FULL, b"\0"]
    assert held_in(store, task) == {digest_of(task, report) for report in sent[:5]}
    store.close()


def test_a_code_is_not_spent_where_nothing_was_kept(tmp_path):
    task = task_of(stop_at=2, admission="codes")
    store, codes, reports = store_at(tmp_path, task), codes_of(3), Reports(task)
    store.add_codes(task.digest, [hash_of(code) for code in codes])
    one, two, three = (reports.one(code=code) for code in codes)
    again = reports.one(code=codes[0])
    assert hold(store, [offer(task, one, two, three)]) == [Refused.FULL]
    assert hold(store, [offer(task, one, two, three), offer(task, again, one)]) == [Refused.FULL, b"\0\3"]
    assert hold(store, [offer(task, two)]) == [b"\0"]
    assert held_in(store, task) == {digest_of(task, again), digest_of(task, two)}
    store.close()


def test_two_stores_on_one_file_count_together(tmp_path):
    task = task_of(stop_at=100)
    stores = [store_at(tmp_path, task), Store(tmp_path / "store.db")]
    reports, answers = Reports(task).many(160), [[], []]

    def write(which: int) -> None:
        for place in range(which * 40, which * 40 + 120, 3):
            answers[which] += hold(stores[which], [offer(task, report) for report in reports[place : place + 3]])

    threads = [threading.Thread(target=write, args=(which,)) for which in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    offered = [[digest_of(task, report) for report in reports[which * 40 : which * 40 + 120]] for which in range(2)]
    confirmed = {
        digest
        for which in range(2)
        for digest, answer in zip(offered[which], answers[which], strict=True)
        if answer == b"\0"
    }
    assert {*answers[0], *answers[1]} == {b"\0", Refused.FULL}
    assert held_in(stores[0], task) == confirmed
    assert len(confirmed) == 100
    for store in stores:
        store.close()


def test_a_full_disk_keeps_what_was_acknowledged_and_refuses_the_rest(tmp_path):
    task = task_of()
    store, reports = store_at(tmp_path, task), Reports(task).many(400)
    with store.writing() as db:
        db.execute("SELECT 1")
    store._db.execute(f"PRAGMA max_page_count={store._db.execute('PRAGMA page_count').fetchone()[0] + 4}").fetchone()
    answers = [hold(store, [offer(task, *reports[at : at + 20])])[0] for at in range(0, 400, 20)]
    assert set(answers) == {bytes(20), Refused.FAILED}
    kept = [
        report for at, answer in enumerate(answers) if answer == bytes(20) for report in reports[at * 20 : at * 20 + 20]
    ]
    assert held_in(store, task) == {digest_of(task, report) for report in kept}
    store._db.execute("PRAGMA max_page_count=100000").fetchone()
    assert hold(store, [offer(task, *reports[-20:])]) == [bytes(20)], "with room again, the same reports are taken"
    store.close()


FULL_DISK = """
import resource, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.collection.test_holding import *
task = task_of()
store, reports = Store(Path({folder!r}) / "store.db"), Reports(task).many(300)
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
for at in range(0, 300, 10):
    answer = hold(store, [offer(task, *reports[at : at + 10])])[0]
    if answer == bytes(10):
        print(*(digest_of(task, report).hex() for report in reports[at : at + 10]), sep="\\n")
    else:
        print(answer.name)
"""


@pytest.mark.costly
def test_a_file_that_cannot_grow_keeps_what_was_acknowledged(tmp_path):
    """The write-ahead log meets the limit, by an error of the system and not of SQLite."""
    task = task_of()
    store_at(tmp_path, task).close()
    limit = (tmp_path / "store.db").stat().st_size + 60_000
    root = str(Path(__file__).parents[2])
    code = FULL_DISK.format(root=root, folder=str(tmp_path), limit=limit)
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "FAILED" in out
    store = Store(tmp_path / "store.db")
    assert held_in(store, task) == {bytes.fromhex(line) for line in out if line != "FAILED"}
    assert held_in(store, task), "some were acknowledged before"
    store.close()


def test_a_lock_that_stays_is_no_loss(tmp_path, monkeypatch):
    monkeypatch.setattr("shuffledp.collection.store.PATIENCE", 0.1)
    task = task_of()
    store, other = store_at(tmp_path, task), sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    report = Reports(task).one()
    assert hold(store, [offer(task, report)]) == [Refused.FAILED]
    other.execute("ROLLBACK")
    other.close()
    assert hold(store, [offer(task, report)]) == [b"\0"]
    store.close()


def test_the_thread_answers_many_requests_with_few_commits(tmp_path, monkeypatch):
    task = task_of()
    store_at(tmp_path, task).close()
    reports, commits = Reports(task).many(300), []
    monkeypatch.setattr(
        "shuffledp.collection.ingest.hold", lambda store, offers: commits.append(len(offers)) or hold(store, offers)
    )
    ingest = Ingest(tmp_path / "store.db")

    async def send() -> list[object]:
        ingest.start()
        return await asyncio.gather(*(ingest.submit(report, task, OPENER) for report in reports))

    assert asyncio.run(send()) == [b"\0"] * 300
    ingest.stop()
    assert sum(commits) == 300
    assert len(commits) < 30
    assert not ingest.is_alive
    store = Store(tmp_path / "store.db")
    assert held_in(store, task) == {digest_of(task, report) for report in reports}
    store.close()


def test_a_fault_in_the_thread_is_answered_and_the_next_request_served(tmp_path, monkeypatch, caplog):
    task = task_of()
    store_at(tmp_path, task).close()
    ingest, reports = Ingest(tmp_path / "store.db"), Reports(task).many(2)

    def broken(store, offers):
        raise RuntimeError(f"secret {offers[0].rows[0].digest!r}")

    async def send() -> list[object]:
        ingest.start()
        monkeypatch.setattr("shuffledp.collection.ingest.hold", broken)
        first = await ingest.submit(reports[0], task, OPENER)
        monkeypatch.setattr("shuffledp.collection.ingest.hold", hold)
        return [first, await ingest.submit(reports[1], task, OPENER)]

    assert asyncio.run(send()) == [Refused.FAILED, b"\0"]
    ingest.stop()
    assert "RuntimeError at test_holding.py:" in caplog.text
    assert "secret" not in caplog.text
