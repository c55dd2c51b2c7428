"""Bodies of requests: room for those that arrive, and some of it for single reports alone."""

from __future__ import annotations

import asyncio

import pytest

from shuffledp.collection.ingest import Room
from tests.collection.service import Reports, face, store_at, task_of


@pytest.fixture
def task():
    return task_of()


@pytest.fixture
def store(tmp_path, task):
    opened = store_at(tmp_path, task)
    yield opened
    opened.close()


@pytest.fixture
def shuffler(store):
    with face(store) as running:
        yield running


def test_a_slow_body_and_a_client_that_leaves_keep_nothing(shuffler, task, store, monkeypatch):
    monkeypatch.setattr("shuffledp.collection.ingest.BODY_SECONDS", 0.05)
    report, length = Reports(task).one(), [(b"content-length", b"%d" % task.size)]
    path = f"/v1/{task.id}/reports"
    assert shuffler.ask("POST", path, headers=length, parts=[report[:50]], stalls=True).status == 400
    gone = shuffler.ask("POST", path, headers=length, parts=[])
    assert gone.status == 0, "nobody is there to be answered"
    assert store.held(task.digest) == 0
    assert shuffler.app._room.held == 0
    assert shuffler.ask("POST", path, headers=length, parts=[report[:50], b"", report[50:]]).body == b"\0"


def test_bodies_under_way_are_bounded_and_room_is_kept_for_single_reports(shuffler, task):
    shuffler.app._room = Room(3 * task.size, task.size)
    one, two, three = Reports(task).many(3)
    full = shuffler.send(task, one, two, three)
    assert (full.status, full.headers["retry-after"], full.headers["connection"]) == (503, "5", "close")
    assert shuffler.app._room.held == 0
    assert shuffler.send(task, one, two).status == 200
    assert shuffler.app._room.take(2 * task.size, single=False)
    assert shuffler.send(task, one, two).status == 503
    assert shuffler.send(task, three).status == 200
    assert shuffler.app._room.held == 2 * task.size


def test_bytes_are_booked_when_they_arrive_and_not_when_they_are_announced(shuffler, task):
    """417 connections that announced bodies and sent nothing took all of the room: 133 kB kept everybody out."""
    shuffler.app._room = Room(100 * task.size, task.size)
    path, length = f"/v1/{task.id}/reports", [(b"content-length", b"%d" % (100 * task.size))]
    reports = Reports(task).many(20)

    async def besieged() -> list[tuple[int, int]]:
        app, seen = shuffler.app, []
        sieges = [
            asyncio.create_task(shuffler.asking("POST", path, headers=length, parts=[], stalls=True))
            for _ in range(417)
        ]
        await asyncio.sleep(0)  # every one of them has announced its body
        for report in reports:
            held = app._room.held
            seen.append((held, (await shuffler.asking("POST", path, report)).status))
        drips = [
            shuffler.asking("POST", path, headers=length, parts=[b"x" * task.size], stalls=True) for _ in range(50)
        ]
        sieges += [asyncio.create_task(drip) for drip in drips]
        await asyncio.sleep(0)
        seen.append((app._room.held, (await shuffler.asking("POST", path, reports[0])).status))
        for siege in sieges:
            siege.cancel()
        await asyncio.gather(*sieges, return_exceptions=True)
        return seen

    assert shuffler.runner.run(besieged()) == [(0, 200)] * 20 + [(50 * task.size, 200)]
    assert shuffler.app._room.held == 0
