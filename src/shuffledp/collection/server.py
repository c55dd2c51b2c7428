"""The HTTP server of a collection: uvicorn with patience, heads of stated size, and no access log.

Connections are bounded too. Where no more can be had, the one that has been waited for longest makes way, so whoever
opens many and sends nothing drives out its own: a person's report is here in one round trip.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from shuffledp.collection.app import App, create_app
from shuffledp.collection.clock import Clock, system_clock
from shuffledp.collection.logs import log_config
from shuffledp.collection.store import Store
from shuffledp.errors import InvalidInput

HEAD_SECONDS = 15.0
"""Within which request line and headers must have come."""
HEAD_BYTES = 1 << 15
"""Most bytes of request line and headers."""
MOST_CONNECTIONS = 4096
"""Connections held at one time, where the system allows as many files."""
OWN_FILES = 64
"""Files that the service needs besides: the store's, the log's, the standard ones."""
KEEP_ALIVE = 30
BACKLOG = 1024


class Settings(uvicorn.Config):
    """uvicorn's settings, and the connections from which something is awaited, the one longest waited for first."""

    most_connections: int
    unfinished: dict[PatientProtocol, None]


class HeadTooLarge(Exception):
    """A head is larger than `HEAD_BYTES`; the parser makes an answer of status 400 of it."""


class PatientProtocol(HttpToolsProtocol):
    """uvicorn's protocol, which closes a connection whose head is slow or endless; uvicorn itself would wait."""

    config: Settings
    _timer: asyncio.TimerHandle | None = None
    _head = 0
    _parsed = 0
    _reads_head = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Begin to wait for a head; of too many connections the one longest waited for is closed."""
        unfinished = self.config.unfinished
        if len(self.connections) >= self.config.most_connections and unfinished:
            next(iter(unfinished))._give_up()
        super().connection_made(transport)
        unfinished[self] = None
        self.access_log = False  # whatever handlers somebody may have given to uvicorn's logger
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """End what waits for this connection."""
        self._end_waiting()
        self.config.unfinished.pop(self, None)
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Begin to count a head."""
        self._parsed = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Count what stands in a head, however few packets it came in."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count what stands in a head, however few packets it came in."""
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_message_complete(self) -> None:
        """Wait for this client no longer: it waits for us."""
        self.config.unfinished.pop(self, None)
        super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        """Count what comes before a head is complete."""
        self._head += len(data)
        super().data_received(data)
        if self._timer is not None and self._head > HEAD_BYTES:
            self._give_up()
        elif self._reads_head:
            self._expect_head()

    def on_headers_complete(self) -> None:
        """End waiting; the body has a time of its own."""
        self._end_waiting()
        self._reads_head = False
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """Expect the next head, unless it is here already."""
        self._reads_head = not self.pipeline
        if not self.transport.is_closing():  # also while pipelined requests wait: perhaps nobody reads the answers
            self.config.unfinished[self] = None
        super().on_response_complete()

    def _count(self, size: int) -> None:
        self._parsed += size
        if self._parsed > HEAD_BYTES:
            raise HeadTooLarge

    def _expect_head(self) -> None:
        if self._timer is None:
            self._head = 0
            self._timer = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _end_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._end_waiting()
        self.config.unfinished.pop(self, None)
        self.connections.discard(self)  # at once, or the next connection would find it among the many
        self.transport.abort()  # to close would wait for a client that does not read its answer


def listen(host: str, port: int) -> socket.socket:
    """Open the socket of a server.

    Parameters
    ----------
    host : str
        Address or name to listen on.
    port : int
        From 0 to 65535; 0 lets the system choose.

    Raises
    ------
    InvalidInput
        If the port is in use or not allowed.
    """
    server = None
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        server = socket.socket(family, socket.SOCK_STREAM)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(address)
        server.listen(BACKLOG)
    except OSError as error:
        if server is not None:
            server.close()
        raise InvalidInput(
            f"{host} port {port} cannot be listened on ({error.strerror or error}); choose another --port or --host"
        ) from None
    return server


def serve(
    store: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    clock: Clock = system_clock,
    ready: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve a store until a signal asks to stop; what was taken by then is held and answered first.

    Parameters
    ----------
    store : Path
        The SQLite file; it and the shuffler's identity are made if they are not there.
    host : str
        Address to listen on. Beyond this machine a proxy with TLS belongs in front.
    port : int
        From 0 to 65535; 0 lets the system choose.
    clock : callable
        Returns seconds since 1970.
    ready : callable
        Is given the address once connections are taken.

    Raises
    ------
    InvalidInput
        If store or port cannot be used.
    """
    with contextlib.closing(Store(store)) as opened, listen(host, port) as listening:
        opened.identity()
        _run(create_app(opened, clock=clock), listening, lambda: ready(_address(listening)))


def config_of(app: App, most_connections: int = MOST_CONNECTIONS) -> Settings:
    """Return uvicorn's settings for the service.

    Parameters
    ----------
    app : App
        From `create_app`.
    most_connections : int
        Connections held at one time.
    """
    config = Settings(
        app,
        http=PatientProtocol,
        ws="none",
        lifespan="on",
        log_config=log_config(),
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=10,
    )
    config.most_connections, config.unfinished = most_connections, {}
    return config


def allowed_connections() -> int:
    """Ask the system for as many files as are needed, and return how many of them may be connections."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CONNECTIONS + OWN_FILES
    if now == resource.RLIM_INFINITY or now >= wanted:
        return MOST_CONNECTIONS
    now = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (now, most))
    return max(1, now - OWN_FILES)


def _run(app: App, listening: socket.socket, ready: Callable[[], None]) -> None:
    server = uvicorn.Server(config_of(app, allowed_connections()))

    def stop(_number: int, _frame: object) -> None:
        server.should_exit = True

    before = [(number, signal.signal(number, stop)) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        ready()
        server.run(sockets=[listening])
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
