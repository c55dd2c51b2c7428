"""The HTTP server of a collection: uvicorn with patience and heads of stated size, and no access log."""

from __future__ import annotations

import asyncio
import contextlib
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
KEEP_ALIVE = 30
BACKLOG = 1024


class PatientProtocol(HttpToolsProtocol):
    """uvicorn's protocol, which closes a connection whose head is slow or endless; uvicorn itself would wait."""

    _timer: asyncio.TimerHandle | None = None
    _head = 0
    _reads_head = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Begin to wait for a head."""
        super().connection_made(transport)
        self.access_log = False  # whatever handlers somebody may have given to uvicorn's logger
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """End waiting."""
        self._end_waiting()
        super().connection_lost(exc)

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
        super().on_response_complete()

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
        self.transport.close()


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


def config_of(app: App) -> uvicorn.Config:
    """Return uvicorn's settings for the service."""
    return uvicorn.Config(
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


def _run(app: App, listening: socket.socket, ready: Callable[[], None]) -> None:
    server = uvicorn.Server(config_of(app))

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
