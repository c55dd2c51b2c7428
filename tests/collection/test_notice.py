"""A later deadline: signed, checked by everybody, never earlier, and only before the task closes."""

from __future__ import annotations

import json
import time

import pytest

from shuffledp.cli.demo.clients import Chromium
from shuffledp.cli.demo.service import running
from shuffledp.collection.closing import Keeper
from shuffledp.collection.fields import read_time, write_time
from shuffledp.collection.ingest import hold, open_reports
from shuffledp.collection.sealing import Opener
from shuffledp.collection.store import Store, due
from shuffledp.collection.task import Notice, draft_now
from shuffledp.errors import InvalidInput
from tests.collection.page.chromium import CHROMIUM, NODE
from tests.collection.page.nodejs import lay_out, run
from tests.collection.service import CLOSES, DAY, EXPIRES, NOON, Reports, Time, face, store_at, task_of
from tests.collection.tasks import IDENTITY, SHUFFLER, key, posted_second

TASK = task_of()
LATER = CLOSES + 10 * DAY


def extended(tmp_path, closes: int = LATER, expires: int | None = None, now: int = NOON) -> tuple[Store, Notice]:
    store = store_at(tmp_path, TASK)
    return store, store.extend(TASK, closes, expires, now)


def test_an_end_moves_later_and_the_task_stays(tmp_path):
    store, notice = extended(tmp_path)
    row = store.task(TASK.digest)
    assert row is not None
    assert row.posted == TASK.data
    draft = draft_now(TASK, row.notice)
    assert (draft.closes, draft.expires) == (notice.closes, notice.expires) == (LATER, EXPIRES)
    assert draft.data == TASK.draft.data
    assert draft_now(TASK, None) is TASK.draft
    second = store.extend(TASK, EXPIRES + DAY, None, LATER - 1)  # by the moved end it is still open
    assert (second.closes, second.expires) == (EXPIRES + DAY, EXPIRES + DAY)


@pytest.mark.parametrize(
    ("closes", "expires", "now", "said"),
    [
        (CLOSES, None, NOON, "never shortened"),
        (CLOSES - 1, None, NOON, "never shortened"),
        (LATER, EXPIRES - 1, NOON, "never shortened"),
        (LATER, None, CLOSES, "people were told so"),
        (1 << 62, None, NOON, "later"),
    ],
)
def test_nothing_is_shortened_nor_opened_again(tmp_path, closes, expires, now, said):
    with pytest.raises(InvalidInput, match=said):
        extended(tmp_path, closes, expires, now)
    store = Store(tmp_path / "store.db")
    assert store.notice(TASK.digest) is None
    store.close()


def test_a_second_notice_is_later_than_the_first(tmp_path):
    store, first = extended(tmp_path)
    with pytest.raises(InvalidInput, match="never shortened"):
        store.extend(TASK, LATER - 1, None, NOON)
    assert store.notice(TASK.digest) == first.data


FORGED = {
    "another shuffler": lambda: Notice.sign(TASK, LATER, EXPIRES, key("nobody")),
    "another task": lambda: Notice.parse(Notice.sign(TASK, LATER, EXPIRES, IDENTITY).data, task_of(at_least=2)),
    "a changed bit": lambda: Notice.parse(bytes([*NOTICE[:40], NOTICE[40] ^ 1, *NOTICE[41:]]), TASK),
    "cut": lambda: Notice.parse(NOTICE[:-1], TASK),
    "earlier": lambda: Notice.sign(TASK, CLOSES - 1, EXPIRES, IDENTITY),
    "expires before": lambda: Notice.sign(TASK, LATER, EXPIRES - 1, IDENTITY),
}
NOTICE = Notice.sign(TASK, LATER, EXPIRES, IDENTITY).data


@pytest.mark.parametrize("how", FORGED)
def test_a_notice_that_is_none_is_refused(how):
    with pytest.raises(InvalidInput):
        FORGED[how]()


def test_the_bytes_of_a_notice_are_frozen():
    assert len(NOTICE) == 117
    assert NOTICE[:5] == b"SHFN\1"
    assert NOTICE[5:37] == TASK.digest
    assert NOTICE[37:53] == LATER.to_bytes(8, "little") + EXPIRES.to_bytes(8, "little")


def test_the_service_takes_answers_until_the_moved_end_and_serves_the_notice(tmp_path):
    store, notice = extended(tmp_path, EXPIRES + 2 * DAY)
    clock = Time(EXPIRES + DAY)
    store.confirm_clock(clock.now)
    with face(store, clock) as service:
        assert service.ask("GET", f"/v1/{TASK.id}/notice").body == notice.data
        status = json.loads(service.ask("GET", f"/v1/{TASK.id}/status").body)
        assert (status["state"], status["closes"]) == ("open", write_time(EXPIRES + 2 * DAY))
        assert service.send(TASK, Reports(TASK).one()).status == 200
        clock.now = EXPIRES + 2 * DAY
        store.confirm_clock(clock.now)
        assert json.loads(service.ask("GET", f"/v1/{TASK.id}/status").body)["state"] != "open"
    other = task_of(at_least=2)
    (tmp_path / "other").mkdir()
    with face(store_at(tmp_path / "other", other)) as service:
        assert service.ask("GET", f"/v1/{other.id}/notice").status == 404


def test_timers_close_at_the_moved_end(tmp_path):
    store, _ = extended(tmp_path)
    hold(store, [open_reports(Reports(TASK).one(), TASK, Opener(SHUFFLER))])
    for now, state in ((CLOSES, "open"), (LATER - 1, "open"), (LATER, "released")):
        store.confirm_clock(now)
        keeper = Keeper(store.path, Time(now), ended=lambda digest: None)
        keeper.look()
        assert store.state(TASK.digest)[0] == state
    assert due("open", TASK.draft, 1, CLOSES, 0, 0) == "close"  # so it would have, without a notice


def test_a_task_that_has_ended_is_not_extended(tmp_path):
    store = store_at(tmp_path, TASK)
    with store.writing() as db:
        db.execute("UPDATE task SET state = 'closing'")
    with pytest.raises(InvalidInput, match="only an open task can be extended"):
        store.extend(TASK, LATER, None, NOON)


@pytest.mark.skipif(not NODE, reason="node is not installed")
def test_the_page_checks_a_notice_as_the_command_does(tmp_path):
    script = """
    import { readTask } from "./task.js";
    import { readNotice } from "./notice.js";
    const task = await readTask(bytes(given.posted), given.id);
    const found = [];
    for (const notice of given.notices) found.push(await readNotice(bytes(notice), task));
    give(found);
    """
    bad = [NOTICE[:-1], b"", NOTICE[:40] + bytes([NOTICE[40] ^ 1]) + NOTICE[41:], b"SHFT" + NOTICE[4:]]
    bad += [bytes([*NOTICE[:5], NOTICE[5] ^ 1, *NOTICE[6:]]), bytes([*NOTICE[:-1], NOTICE[-1] ^ 1])]
    given = {"posted": TASK.data.hex(), "id": TASK.id, "notices": [each.hex() for each in (NOTICE, *bad)]}
    told = run(lay_out(tmp_path), script, given)
    assert told == [{"closes": write_time(LATER), "expires": write_time(EXPIRES)}, *[None] * len(bad)]


@pytest.mark.slow
@pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed")
def test_the_page_shows_the_moved_end(tmp_path):
    times = {"opens": "2020-01-01T00:00:00Z", "closes": "2090-06-01T12:00:00Z", "expires": "2090-07-01T00:00:00Z"}
    task = posted_second(admission="open", at_least=1, **times)
    store = store_at(tmp_path, task, now=int(time.time()))
    shown = """
    (async () => {
      while (!document.querySelector("#level, #problem")) await new Promise((go) => setTimeout(go, 10));
      return document.getElementById("main").textContent;
    })()
    """
    with running(store.path) as service, Chromium(CHROMIUM) as browser:
        assert "2090" in browser.evaluate(f"{service.url}/t/{task.id}", shown)
        store.extend(task, read_time("2091-06-01T12:00:00Z") or 0, None, int(time.time()))
        time.sleep(1.1)  # the service asks the store once a second
        found = browser.evaluate(f"{service.url}/t/{task.id}", shown)
    assert "2091" in found
    assert "2090" not in found
