"""The public face: every status, every header, and nothing for hostile input."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import re
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shuffledp.collection import server as app_module
from shuffledp.collection.closing import close_task, destroy_task
from shuffledp.collection.server import rounded
from shuffledp.collection.store import Watch
from shuffledp.collection.survey_page import content_security_policy, survey_page
from tests.collection.service import (
    CLOSES,
    DAY,
    EXPIRES,
    NOON,
    Reports,
    Time,
    codes_of,
    face,
    hash_of,
    store_at,
    task_of,
)


@pytest.fixture
def task():
    return task_of(at_least=2)


@pytest.fixture
def clock():
    return Time()


@pytest.fixture
def store(tmp_path, task):
    opened = store_at(tmp_path, task)
    yield opened
    opened.close()


@pytest.fixture
def shuffler(store, clock):
    with face(store, clock) as running:
        yield running


def test_held_reports_are_answered_with_a_byte_each(shuffler, task, store):
    one, two = Reports(task).many(2)
    answer = shuffler.send(task, one, two)
    assert (answer.status, answer.body) == (200, b"\0\0")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert shuffler.send(task, two).body == b"\0"
    assert shuffler.send(task, bytes(task.size), one).body == b"\1\0"
    assert store.held(task.digest) == 2


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ([], 1, 400),
        ([(b"transfer-encoding", b"chunked")], 1, 400),
        ([(b"content-length", b"{W}"), (b"transfer-encoding", b"chunked")], 1, 400),
        ([(b"content-length", b"{W}"), (b"content-length", b"{W}")], 1, 400),
        ([(b"content-length", b"-{W}")], 1, 400),
        ([(b"content-length", b"+{W}")], 1, 400),
        ([(b"content-length", b"0x10")], 1, 400),
        ([(b"content-length", b"1" * 40)], 1, 400),
        ([(b"content-length", "٣".encode())], 1, 400),
        ([(b"content-length", b"")], 1, 400),
        ([(b"content-length", b"0")], 0, 400),
        ([(b"content-length", b"1")], 0, 400),
        ([(b"content-length", b"{W}")], 0, 400),
        ([(b"content-length", b"{W}")], 2, 400),
        ([(b"content-length", b"1000000")], 1, 413),
        ([(b"content-length", b"999999999999")], 1, 413),
    ],
)
def test_a_body_of_another_length_is_refused(shuffler, task, store, headers, body, status):
    filled = [(name, value.replace(b"{W}", b"%d" % task.size)) for name, value in headers]
    answer = shuffler.ask("POST", f"/v1/{task.id}/reports", Reports(task).one() * body, headers=filled)
    assert answer.status == status
    assert store.held(task.digest) == 0


def test_a_hundred_reports_are_taken_and_one_more_is_not(shuffler, task):
    report = Reports(task).one()
    assert shuffler.send(task, *[report] * 100).body == bytes(100)
    assert shuffler.send(task, *[report] * 101).status == 413


def test_before_it_opens_and_after_it_expires_a_task_takes_nothing(shuffler, task, clock, store):
    report = Reports(task).one()
    clock.now = NOON - 30 * DAY
    early = shuffler.send(task, report)
    assert early.status == 409
    assert 0 < int(early.headers["retry-after"]) <= DAY
    store.confirm_clock(EXPIRES - 1)
    clock.now = EXPIRES - 1
    assert shuffler.send(task, report).status == 200
    clock.now = EXPIRES
    assert shuffler.send(task, report).status == 410
    assert json.loads(shuffler.ask("GET", f"/v1/{task.id}/status").body)["state"] == "expired"


def test_while_the_clock_is_in_doubt_reports_are_taken(shuffler, task, clock, store):
    clock.now = EXPIRES + 30 * DAY  # asleep for two months; the stored tick is at NOON
    assert shuffler.send(task, Reports(task).one()).status == 200
    shuffler.app._keeper.look()
    assert store.task(task.digest).state == "open"
    store.confirm_clock(clock.now)
    clock.now += 1
    assert shuffler.send(task, Reports(task).one()).status == 410


def test_a_step_of_the_clock_below_a_day_turns_nobody_away(shuffler, task, clock, store):
    clock.now = EXPIRES - 3600
    store.confirm_clock(clock.now)
    watch = shuffler.app._keeper._watch = Watch(clock, steady=lambda: 500)
    assert shuffler.send(task, Reports(task).one()).status == 200
    clock.now += 7200
    assert shuffler.send(task, Reports(task).one()).status == 200, "the keeper has not looked yet"
    store.doubt_clock()  # what the keeper does
    watch.accept(clock.now)
    clock.now += 1
    assert shuffler.send(task, Reports(task).one()).status == 200
    store.confirm_clock(clock.now)
    clock.now += 1
    assert shuffler.send(task, Reports(task).one()).status == 410


def test_after_closing_everything_is_gone_and_the_key_with_it(shuffler, task, store):
    one, two, three = Reports(task).many(3)
    shuffler.send(task, one, two)
    post = shuffler.app._posts[task.id]
    assert post.opener is not None
    close_task(store, task.digest, clock=Time())
    assert store.key(task.digest) is None
    shuffler.app._keeper.look()
    assert post.opener is None, "the server's copy of the key goes too, without any request"
    for report in (one, three):
        assert shuffler.send(task, report).status == 410
    assert json.loads(shuffler.ask("GET", f"/v1/{task.id}/status").body)["state"] == "released"
    assert shuffler.ask("GET", f"/v1/{task.id}").body == task.data, "the task itself stays"


def test_a_task_that_closes_while_reports_wait_is_answered_410(shuffler, task, store):
    reports = Reports(task).many(3)
    shuffler.send(task, *reports[:2])
    opener = shuffler.app._posts[task.id].opener
    close_task(store, task.digest, clock=Time())
    shuffler.app._door = lambda post: opener  # the request came through before
    assert shuffler.send(task, reports[2]).status == 410


def test_a_full_task_and_a_full_disk_answer_503(tmp_path):
    task = task_of(stop_at=2)
    store, reports = store_at(tmp_path, task), Reports(task).many(3)
    with face(store) as shuffler:
        assert shuffler.send(task, *reports[:2]).status == 200
        full = shuffler.send(task, reports[2])
        assert (full.status, full.headers["retry-after"]) == (503, "5")
        ingest = shuffler.app._ingest._store._db
        assert shuffler.send(task, reports[0]).status == 200, "what is held is confirmed also when it is full"
        ingest.execute("PRAGMA query_only=ON").fetchone()
        assert shuffler.send(task, reports[0]).status == 503
    store.close()


def test_codes_are_asked_for_where_the_task_says_so(tmp_path):
    task, (known, unknown) = task_of(admission="codes"), codes_of(2)
    store = store_at(tmp_path, task)
    store.add_codes(task.digest, [hash_of(known)])
    reports = Reports(task)
    with face(store) as shuffler:
        assert shuffler.send(task, reports.one(code=unknown), reports.one(code=known)).body == b"\3\0"
    store.close()


def test_what_is_shown_of_a_task(shuffler, task, store, clock):
    posted = shuffler.ask("GET", f"/v1/{task.id}")
    assert (posted.status, posted.body) == (200, task.data)
    assert "immutable" in posted.headers["cache-control"]
    index = json.loads(shuffler.ask("GET", "/").body)
    assert index == {"tasks": [{"id": task.id, "title": {"en": "Lunch"}, "page": f"/t/{task.id}"}]}
    assert shuffler.ask("GET", f"/v1/{task.id}/release").status == 404
    shuffler.send(task, *Reports(task).many(2))
    close_task(store, task.digest, clock=Time())
    store.publish(task.digest, b"a release")
    assert shuffler.ask("GET", f"/v1/{task.id}/release").body == b"a release"
    clock.now += 1
    assert json.loads(shuffler.ask("GET", "/").body) == {"tasks": []}


BROWSER = [(b"accept", b"text/html,application/xhtml+xml,*/*;q=0.8"), (b"accept-language", b"de-AT,de;q=0.9")]


def test_a_browser_finds_the_open_tasks_and_a_program_still_reads_json(shuffler, task, store, clock):
    page = shuffler.ask("GET", "/", headers=BROWSER)
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    text = page.body.decode()
    assert "<title>Umfragen</title>" in text
    assert f'<a href="t/{task.id}" lang="en">Lunch</a>' in text
    assert "://" not in text
    style = text[text.index("<style>") + 7 : text.index("</style>")]
    hashed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{hashed}'" in page.headers["content-security-policy"]
    assert page.headers["vary"] == "accept, accept-language"
    shuffler.send(task, *Reports(task).many(2))
    close_task(store, task.digest, clock=Time())
    clock.now += 1
    assert "keine Umfrage offen" in shuffler.ask("GET", "/", headers=BROWSER).body.decode()


@pytest.mark.parametrize("path", ["/t/unknown", "/t/" + "A" * 43, "/secret", "/v1/secret"])
def test_a_link_that_names_nothing_has_a_page_with_a_title_for_a_browser(shuffler, path):
    page = shuffler.ask("GET", path, headers=BROWSER)
    assert page.status == 404
    assert "<title>Keine solche Umfrage</title>" in page.body.decode()
    assert b"secret" not in page.body
    assert shuffler.ask("GET", path).body == b"there is no such thing here\n"


def test_the_page_is_one_and_may_load_nothing(shuffler, task):
    page = shuffler.ask("GET", f"/t/{task.id}")
    assert page.body == survey_page()
    policy = page.headers["content-security-policy"]
    assert policy == content_security_policy()
    for rule in ("default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"):
        assert rule in policy
    assert "form-action 'none'" in policy
    assert "unsafe" not in policy
    assert page.headers["referrer-policy"] == "no-referrer"
    assert shuffler.ask("GET", f"/t/{'A' * 43}").status == 404


def test_the_status_changes_every_ten_minutes_and_in_steps(tmp_path, clock):
    task = task_of(at_least=2)
    store, reports = store_at(tmp_path, task), Reports(task).many(103)
    clock.now = NOON // 600 * 600
    with face(store, clock) as shuffler:
        path = f"/v1/{task.id}/status"
        assert json.loads(shuffler.ask("GET", path).body) == {
            "state": "open",
            "held": 0,
            "opens": "2030-03-01T00:00:00Z",
            "closes": "2030-04-01T00:00:00Z",
            "expires": "2030-05-01T00:00:00Z",
        }
        shuffler.send(task, *reports[:99])
        clock.now += 599
        assert json.loads(shuffler.ask("GET", path).body)["held"] == 0
        clock.now += 1
        assert json.loads(shuffler.ask("GET", path).body)["held"] == 50
        shuffler.send(task, *reports[99:])
        clock.now += 600
        assert json.loads(shuffler.ask("GET", path).body)["held"] == 100
        destroy_task(store, task.digest)
        clock.now += 1
        assert json.loads(shuffler.ask("GET", path).body)["reason"] == "destroyed by the operator"
    store.close()


@pytest.mark.parametrize(
    ("held", "shown"), [(0, 0), (49, 0), (50, 50), (9_999, 9_950), (10_000, 10_000), (12_999, 12_000)]
)
def test_the_number_shown_is_rounded_down(held, shown):
    assert rounded(held) == shown


def test_there_are_no_other_verbs_and_no_cookies(shuffler, task):
    paths = {
        f"/v1/{task.id}/reports": {"POST"},
        **{path: {"GET"} for path in ("/", "/healthz", f"/t/{task.id}", f"/v1/{task.id}", f"/v1/{task.id}/status")},
    }
    for path, verbs in paths.items():
        for verb in {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get"} - verbs:
            answer = shuffler.ask(verb, path)
            assert answer.status == 405, (verb, path)
            assert answer.headers["allow"] == next(iter(verbs))
    for path in ("/v1", "/v1/", "/t/", f"/v1/{task.id}/", f"/v1/{task.id}/reports/", "/v1/x/status/y", "//", "/admin"):
        assert shuffler.ask("GET", path).status == 404, path
        assert shuffler.ask("POST", path).status in (404, 405), path
    for path in paths:
        headers = shuffler.ask("GET", path).headers
        assert "set-cookie" not in headers
        assert headers["access-control-allow-origin"] == "*"
        assert headers["access-control-expose-headers"] == "retry-after"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


def test_health_is_asked_of_the_threads_and_remembered(shuffler, monkeypatch):
    assert shuffler.ask("GET", "/healthz").body == b"ok\n"
    monkeypatch.setattr(type(shuffler.app._ingest), "is_alive", property(lambda self: False))
    assert shuffler.ask("GET", "/healthz").status == 200
    monkeypatch.setattr(app_module, "HEALTH_SECONDS", 0.0)
    assert shuffler.ask("GET", "/healthz").status == 503


VERBS = ("POST", "POST", "POST", "GET", "PUT", "OPTIONS", "\0", "post")
PARTS = ("A" * 43, "", ".", "..", "%00", "reports", "v1", "t", "status", "release", "\ud800", "é" * 50, "x" * 5000)
LENGTHS = (b"", b"-1", b"+5", b"0", b"1e3", b"99999999999999999999", b"1 1", b"\xff", b"0x10", b"1,1")
HEADERS = (b"content-length", b"content-length", b"transfer-encoding", b"content-type", b"expect", b"x")


def hostile(random: Random, task, good: bytes) -> tuple[str, str, bytes, list[tuple[bytes, bytes]] | None]:
    """A request: any verb, path and headers, and a body of junk, of changed reports, or of a report cut wrongly."""
    path = "/v1/{ID}/reports"
    if random.random() < 0.2:
        path = "/" + "/".join(random.choice((*PARTS, "{ID}", "{ID}")) for _ in range(random.randrange(6)))
    changed = bytearray(good)
    for place in random.sample(range(8 * task.size), random.choice((1, 1, 2, 9))):
        changed[place // 8] ^= 1 << place % 8
    body = random.choice(
        (
            lambda: random.randbytes(random.randrange(300)),
            lambda: random.randbytes(random.choice((1, 1, 2, 99, 100, 101)) * task.size),
            lambda: bytes(changed),
            lambda: bytes(changed) * 3,
            lambda: bytes(task.size),
            lambda: good[1:],
            lambda: good + b"\0",
        )
    )()
    headers = None
    if random.random() < 0.2:
        names = random.choices(HEADERS, k=random.randrange(4))
        values = (*LENGTHS, b"%d" % len(body), b"%d" % (len(body) + 1), random.randbytes(9))
        headers = [(name, random.choice(values)) for name in names]
    return random.choice(VERBS), path.replace("{ID}", task.id), body, headers


def fuzz(folder, caplog, cases: Callable[[Callable[[Random], None]], None]) -> None:
    """Ask the application what `cases` draws; no 5xx, no report held, nothing repeated or logged."""
    task = task_of()
    store, good = store_at(folder, task), Reports(task).one()
    caplog.set_level(logging.DEBUG)
    with face(store) as shuffler:

        def check(random: Random) -> None:
            verb, path, body, headers = hostile(random, task, good)
            answer = shuffler.ask(verb, path, body, headers=headers)
            assert answer.status < 500
            assert answer.status != 200 or verb == "GET" or set(answer.body) == {1}
            assert len(body) < 12 or body[:50] not in answer.body

        cases(check)
        assert list(store.reports(task.digest)) == []
        assert store.held(task.digest) == 0
        assert shuffler.app._room.held == 0
        assert shuffler.send(task, good).body == b"\0", "and people are still served"
    assert [record for record in caplog.records if record.name.startswith(("shuffledp", "uvicorn"))] == []
    store.close()


def test_hostile_requests(tmp_path, caplog):
    def cases(check: Callable[[Random], None]) -> None:
        settings(max_examples=300, deadline=None, database=None)(given(st.randoms(use_true_random=True))(check))()

    fuzz(tmp_path, caplog, cases)


@pytest.mark.slow
def test_a_hundred_thousand_hostile_requests(tmp_path, caplog):
    random = Random(12)

    def cases(check: Callable[[Random], None]) -> None:
        for _ in range(100_000):
            check(random)

    fuzz(tmp_path, caplog, cases)


def test_every_fixed_answer_is_fixed():
    source = app_module.__file__
    with open(source, encoding="utf-8") as file:
        text = file.read()
    assert not re.search(r'Reply\([^)]*f"', text), "an answer that repeats a request"
    assert CLOSES < EXPIRES
