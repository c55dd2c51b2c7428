"""The server on a real socket: patience has an end, and the log holds nothing of a request."""

from __future__ import annotations

import contextlib
import logging
import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn

from shuffledp.collection import server
from shuffledp.collection.closing import Discreet, place_of
from shuffledp.collection.server import HEAD_BYTES, MOST_CONNECTIONS, config_of, create_app, listen
from tests.collection.service import Reports, Time, store_at, task_of
from tests.collection.tasks import choice

TASK = task_of()
SILENCE = 120.0
"""Seconds; beyond the 30 that the service keeps an idle connection, however busy the machine is."""


@contextmanager
def served(folder, app=None, task=TASK, most_connections=MOST_CONNECTIONS):
    """The service on loopback in a thread; yields its port."""
    store, listening = store_at(folder, task), listen("127.0.0.1", 0)
    config = config_of(app or create_app(store, clock=Time()), most_connections)
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not running.started:
        time.sleep(0.005)
    yield listening.getsockname()[1]
    running.should_exit = True
    thread.join()
    store.close()


def talk(port: int, *parts: bytes, pause: float = 0.0) -> bytes:
    """Send bytes and return all that comes until the other side closes; one that never does is silent."""
    with socket.create_connection(("127.0.0.1", port), timeout=SILENCE) as connection:
        received = b""
        try:
            for part in parts:
                connection.sendall(part)
                time.sleep(pause)
            while piece := connection.recv(65536):
                received += piece
        except TimeoutError:
            received += b"(silence)"
        except OSError:
            received += b"(reset)"
        return received


@pytest.fixture
def port(tmp_path):
    with served(tmp_path) as number:
        yield number


def head(length: int, *more: str, task=TASK) -> bytes:
    lines = [f"POST /v1/{task.id}/reports HTTP/1.1", "host: x", f"content-length: {length}", *more]
    return "\r\n".join((*lines, "", "")).encode()


@pytest.fixture(autouse=True)
def root_logger(monkeypatch):
    """uvicorn's settings replace the root logger's handlers, and close those of pytest: they are kept and put back."""
    monkeypatch.setattr("logging.config._clearExistingHandlers", lambda: None)
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    yield
    root.handlers[:], root.level = before


def test_nothing_of_a_request_is_logged(tmp_path, capfd, caplog, monkeypatch):
    monkeypatch.setattr(server, "KEEP_ALIVE", 1)  # until the connection that asks for an upgrade is closed
    caplog.set_level(logging.DEBUG)
    with served(tmp_path) as port:
        assert talk(port, head(TASK.size, "connection: close"), Reports(TASK).one()).endswith(b"\0")
        assert talk(port, b"GET /secret HTTP/1.1\r\nconnection: close\r\n\r\n").startswith(b"HTTP/1.1 404")
        told = capfd.readouterr().err
        assert talk(port, b"secret\r\n\r\n").startswith(b"HTTP/1.1 400")
        talk(port, b"CONNECT secret:1 HTTP/1.1\r\nhost: x\r\n\r\n")
        talk(port, b"GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: secret\r\n\r\n")
        assert capfd.readouterr().err == ""  # a stranger cannot make the log grow
    written = told + caplog.text
    for word in ("secret", TASK.id, "POST", "127.0.0.1"):
        assert word not in written


def test_reports_over_a_socket_and_one_connection_for_several(port):
    one, two = Reports(TASK).many(2)
    said = talk(port, head(TASK.size), one, head(2 * TASK.size, "connection: close"), one, two)
    assert said.count(b"HTTP/1.1 200 OK") == 2
    assert b"\r\n\r\n\0HTTP" in said
    assert said.endswith(b"\r\n\r\n\0\0")
    assert b"server:" not in said


def test_chunked_oversized_and_broken_requests_are_refused_and_the_connection_closed(port):
    chunked = f"POST /v1/{TASK.id}/reports HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    assert talk(port, chunked + b"5\r\nhello\r\n0\r\n\r\n").startswith(b"HTTP/1.1 400")
    assert talk(port, head(10**9)).startswith(b"HTTP/1.1 413")
    assert talk(port, b"\x16\x03\x01 this is no HTTP\r\n\r\n").startswith(b"HTTP/1.1 400")
    both = head(TASK.size, "transfer-encoding: chunked")
    assert b"HTTP/1.1 200" not in talk(port, both + b"0\r\n\r\n" + bytes(TASK.size))


def test_a_head_that_does_not_come_is_not_waited_for(port, monkeypatch):
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.2)
    assert talk(port) == b""
    assert talk(port, b"POST /v1/") == b""
    assert talk(port, b"\r\n") == b""
    monkeypatch.setattr(server, "HEAD_SECONDS", 2.0)  # what is sent at once comes in time on a busy machine, too
    answered = talk(port, head(TASK.size) + Reports(TASK).one(), b"POST /v1/", pause=0.1)
    assert answered.startswith(b"HTTP/1.1 200")
    assert b"(silence)" not in answered


def test_a_head_without_end_is_cut(port):
    assert b"HTTP/1.1 200" not in talk(port, b"GET /healthz HTTP/1.1\r\n", *[b"x: " + b"y" * 9000 + b"\r\n"] * 9)
    endless = talk(port, b"GET /healthz HTTP/1.1\r\nx: ", *[b"y" * 9000] * 9)
    assert b"(silence)" not in endless
    assert b"HTTP/1.1 200" not in endless
    assert talk(port, b"GET /healthz HTTP/1.1\r\nconnection: close\r\n\r\n").startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("extra", [HEAD_BYTES, 2 * HEAD_BYTES, 5 * HEAD_BYTES])
def test_a_head_that_is_too_large_is_refused_also_in_one_packet(port, extra):
    """A head above 32 KiB was taken where it came whole: it was complete before it was measured."""
    for filled in (f"x: {'y' * extra}", "\r\n".join(f"x{place}: {'y' * 1000}" for place in range(extra // 1000 + 1))):
        assert b"HTTP/1.1 200" not in talk(port, f"GET /healthz HTTP/1.1\r\n{filled}\r\n\r\n".encode())
    assert b"HTTP/1.1 2" not in talk(port, f"GET /{'y' * extra} HTTP/1.1\r\n\r\n".encode())
    two = b"GET /healthz HTTP/1.1\r\n\r\n" + b"GET /healthz HTTP/1.1\r\nx: " + b"y" * extra + b"\r\n\r\n"
    assert talk(port, two).count(b"HTTP/1.1 200") < 2, "the second of two in one packet"
    almost = b"GET /healthz HTTP/1.1\r\nconnection: close\r\nx: " + b"y" * (HEAD_BYTES - 100) + b"\r\n\r\n"
    assert talk(port, almost).startswith(b"HTTP/1.1 200")


@contextmanager
def announced(port: int, number: int, task) -> Iterator[None]:
    """Open connections that announce a hundred reports and send none; the service has read each announcement."""
    with contextlib.ExitStack() as opened:
        for _ in range(number):
            connection = opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            connection.sendall(head(100 * task.size, "expect: 100-continue", task=task))
            assert connection.recv(100).startswith(b"HTTP/1.1 100"), "it waits for the body"
        yield


@pytest.mark.costly
def test_connections_that_announce_bodies_and_send_nothing_keep_nobody_out(tmp_path):
    """417 of them announced 64 MiB, which were booked: 128 of 132 honest reports got 503."""
    task = task_of(*[choice(5, 20)] * 32)
    assert 417 * 100 * task.size > 64 << 20
    with served(tmp_path, task=task) as port, announced(port, 417, task):
        for report in Reports(task).many(132):
            assert talk(port, head(task.size, "connection: close", task=task), report).endswith(b"\r\n\r\n\0")


def test_of_too_many_connections_the_one_longest_waited_for_makes_way(tmp_path):
    """A connection that sends nothing, half a head or half a body, or that does not read what it asked for."""
    starts = (b"", b"GET /heal", head(TASK.size) + bytes(50), f"GET /t/{TASK.id} HTTP/1.1\r\n\r\n".encode() * 50)
    with served(tmp_path, most_connections=8) as port, contextlib.ExitStack() as opened:
        first: list[socket.socket] = []
        for place in range(40):
            connection = opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            connection.sendall(starts[place % 4])
            first = [*first, connection][:8]
        for connection in first:
            with contextlib.suppress(ConnectionResetError):
                while connection.recv(1 << 20):
                    pass
        for report in Reports(TASK).many(20):
            assert talk(port, head(TASK.size, "connection: close"), report).endswith(b"\r\n\r\n\0")


def test_connections_are_no_more_than_the_system_allows(monkeypatch):
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: asked.append(limits))
    none = resource.RLIM_INFINITY
    for now, most, allowed in (
        (1024, 4096, 4032),
        (1024, 9999, 4096),
        (1024, none, 4096),
        (50, 50, 1),
        (none, none, 4096),
    ):
        monkeypatch.setattr(resource, "getrlimit", lambda _, limits=(now, most): limits)
        assert server.allowed_connections() == allowed
    assert asked == [(4096, 4096), (4160, 9999), (4160, none), (50, 50)]


def test_a_large_body_is_no_large_head(port):
    reports = Reports(TASK).many(3) * 33
    said = talk(port, head(99 * TASK.size, "connection: close"), *reports)
    assert said.endswith(bytes(99))


def test_an_error_in_the_application_is_logged_by_type_and_line_alone(tmp_path, capfd):
    async def broken(scope, receive, send):
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        raise ValueError(f"the secret {scope['path']}")

    with served(tmp_path, broken) as port:
        assert talk(port, b"GET /secret HTTP/1.1\r\nconnection: close\r\n\r\n").startswith(b"HTTP/1.1 500")
    written = capfd.readouterr().err
    assert written.count(" error: ValueError at test_server.py:") == written.count("error") == 1
    assert "secret" not in written


def test_messages_of_other_libraries_are_left_out():
    record = logging.LogRecord("asyncio", logging.ERROR, "x", 1, "Task exception: %s", ("the secret",), None)
    assert "secret" not in Discreet().format(record)
    own = logging.LogRecord("uvicorn.error", logging.INFO, "x", 1, "Started\nserver %d", (7,), None)
    assert Discreet().format(own).endswith("info: Started server 7")
    assert place_of(KeyError("the secret")) == "KeyError"


def test_the_files_for_operators_are_short_and_log_nothing():
    folder = Path(server.__file__).parents[3] / "deploy"
    if not folder.is_dir():
        pytest.skip("the package is installed without its repository")
    texts = [path.read_text() for path in sorted(folder.iterdir())]
    assert len(texts) == 3
    assert sum(text.count("\n") for text in texts) <= 60
    for word in (
        "DynamicUser=yes",
        "StateDirectory=",
        "NoNewPrivileges=yes",
        "reverse_proxy",
        "ENTRYPOINT",
        "request_buffers",
        "max_conns_per_host",
        "LimitNOFILE=",
        "time-sync.target",
    ):
        assert any(word in text for text in texts)
    assert not any("\nlog" in text or "\tlog" in text for text in texts)
