"""The HTTP server of a collection: uvicorn with limits on slow and long requests, and without an access log.

Connections are bounded too. Where no more can be had, the one that has been waited for longest makes way, so whoever
opens many and sends nothing drives out its own: a person's report is here in one round trip.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import signal
import socket
import time
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from shuffledp.collection.closing import Keeper, log_config
from shuffledp.collection.fields import to_base64, write_time
from shuffledp.collection.ingest import Body, Gone, Ingest, Receive, Refused, Room, Unread
from shuffledp.collection.sealing import Opener
from shuffledp.collection.store import Clock, Store, system_clock
from shuffledp.collection.task import Draft, PostedTask, draft_now, task_digest
from shuffledp.errors import InvalidInput

# The service's public face: an ASGI application that shows tasks and takes reports, and does nothing else.
#
# Every handler answers with fixed words: nothing of a request is repeated, stored beside the report, or logged.

Scope = MutableMapping[str, Any]
Headers = Sequence[tuple[bytes, bytes]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HTML = b"text/html; charset=utf-8"
MOST_REPORTS = 100
"""Largest number of reports in one request."""
STATUS_SECONDS = 600
"""Number of seconds between changes of the number of held reports that is shown."""
HEALTH_SECONDS = 10.0
BUSY_SECONDS = 5
"""Number of seconds after which a client whose reports were not stored may try again."""


@dataclass(frozen=True)
class Reply:
    """A response: status, body, content type (`kind`), and headers besides those of every response."""

    status: int
    body: bytes
    kind: bytes = b"text/plain; charset=utf-8"
    headers: tuple[tuple[bytes, bytes], ...] = ()


@dataclass
class Post:
    """A task in the memory of the running service.

    Parameters
    ----------
    task : PostedTask
        The posted task.
    opener : Opener or None
        Opener with the task's private key while it is open.
    held, counted : int
        Number of reports as shown, and the period of time in which they were counted.
    state, read : str and int
        Result of `Service._state`, and the second in which it was read; the writer asks the store itself.
    notice : bytes or None
        Notice of a later deadline, as of that second.
    """

    task: PostedTask
    opener: Opener | None = None
    held: int = 0
    counted: int = -1
    state: str = ""
    read: int = -1
    notice: bytes | None = None

    @property
    def draft(self) -> Draft:
        """The draft with the ends that hold now."""
        return draft_now(self.task, self.notice)


def create_app(store: Store, *, clock: Clock = system_clock) -> App:
    """Return the application; its lifespan starts and ends the writing thread and the timers' thread.

    Parameters
    ----------
    store : Store
        Used for reading, on the event loop's thread.
    clock : callable
        Function that returns seconds since 1970.
    """
    return Service(store, clock)


class Service:
    """The ASGI application of `create_app`.

    Parameters
    ----------
    store : Store
        Used for reading, on the event loop's thread.
    clock : callable
        Function that returns seconds since 1970.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        from shuffledp.collection.survey_page import content_security_policy, front_policy, survey_page

        self._store, self._clock = store, clock
        self._ingest, self._keeper = Ingest(store.path), Keeper(store.path, clock, ended=self._forget_key)
        self._posts: dict[str, Post] = {}
        self._room = Room()
        self._health = (0.0, Reply(503, b"starting\n"))
        self._page = Reply(200, survey_page(), HTML, _page_headers(content_security_policy()))
        self._front = (*_page_headers(front_policy()), (b"vary", b"accept, accept-language"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            try:
                reply = await self._reply(scope, receive)
            except Gone:
                return
            await send(
                {"type": "http.response.start", "status": reply.status, "headers": _headers(reply, scope["method"])}
            )
            await send({"type": "http.response.body", "body": reply.body})

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self._ingest.start()
                self._keeper.start()
                await send({"type": "lifespan.startup.complete"})
            else:
                self._ingest.stop()
                self._keeper.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _reply(self, scope: Scope, receive: Receive) -> Reply:
        method, parts = scope["method"], scope["path"].split("/")[1:]
        if len(parts) == 3 and parts[0] == "v1" and parts[2] == "reports":
            return await self._take(parts[1], scope, receive) if method == "POST" else _not_allowed(b"POST")
        handler = self._show(parts, scope["headers"])
        if handler and method != "GET":
            return _not_allowed(b"GET")
        reply = handler() if handler else NOT_FOUND
        return self._unknown(scope["headers"]) if reply is NOT_FOUND and method == "GET" else reply

    def _show(self, parts: list[str], headers: Headers) -> Callable[[], Reply] | None:
        match parts:
            case [""]:
                return lambda: self._index(headers)
            case ["healthz"]:
                return self._healthz
            case ["t", name]:
                return lambda: self._page if self._post(name) else NOT_FOUND
            case ["v1", name]:
                return lambda: self._task(name)
            case ["v1", name, "status"]:
                return lambda: self._status(name)
            case ["v1", name, "release"]:
                return lambda: self._release(name)
            case ["v1", name, "notice"]:
                return lambda: self._notice(name)
            case _:
                return None

    async def _take(self, name: str, scope: Scope, receive: Receive) -> Reply:
        """Answer POST /v1/{id}/reports."""
        post = self._post(name)
        if post is None:
            return NOT_FOUND
        length = _content_length(scope)
        size = post.task.size
        if length is None:
            return _closing(400, b"a request needs a Content-Length and no Transfer-Encoding\n")
        if length > MOST_REPORTS * size:
            return _closing(413, b"at most 100 reports are taken in one request\n")
        if length == 0 or length % size:
            return _closing(400, b"the body must be whole reports of this task\n")
        opener = self._door(post)
        if isinstance(opener, Reply):
            return opener
        with Body(self._room, length, single=length == size) as body:
            data = await body.read(receive)
            if data is Unread.WRONG:
                return _closing(400, b"the body did not come in time, or is not of the length announced\n")
            if data is Unread.NO_ROOM:
                return _busy(b"too much is under way\n", (b"connection", b"close"))
            answer = await self._ingest.submit(data, post.task, opener)
        if isinstance(answer, bytes):
            return Reply(200, answer, b"application/octet-stream")
        return CLOSED if answer is Refused.CLOSED else _busy(b"nothing was kept\n")

    def _door(self, post: Post) -> Opener | Reply:
        """Return the opener of the task's reports, or the response that says why it takes none now."""
        state, now, draft = self._state(post), self._clock(), post.task.draft
        if state == "not-yet-open":
            wait = min(draft.opens - now, 86_400)
            return Reply(409, b"this task is not open yet\n", headers=((b"retry-after", b"%d" % wait),))
        opener = post.opener
        if state == "open" and opener is None and (key := self._store.key(post.task.digest)):
            post.opener = opener = Opener(key)
        return opener if state == "open" and opener else CLOSED

    def _forget_key(self, digest: bytes) -> None:
        """Delete the copy of a task's key in memory; called by the timers' thread when a task has closed."""
        post = self._posts.get(to_base64(digest))
        if post is not None:
            post.opener, post.read = None, -1

    def _post(self, name: str) -> Post | None:
        if name not in self._posts:
            try:
                row = self._store.task(task_digest(name))
            except InvalidInput:
                return None
            if row is None:
                return None
            self._posts[name] = Post(PostedTask.parse(row.posted))
        return self._posts[name]

    def _state(self, post: Post) -> str:
        now = self._clock()
        if now != post.read:
            state, tick = self._store.state(post.task.digest)
            post.notice = self._store.notice(post.task.digest)
            draft = post.draft
            if state == "open" and now < draft.opens:
                state = "not-yet-open"
            elif state == "open" and now >= draft.expires and self._keeper.trusts(now, tick):
                state = "expired"
            post.state, post.read = state, now
        return post.state

    def _index(self, headers: Headers) -> Reply:
        """Answer GET /: the open tasks, as a page for a browser and as JSON for a program."""
        from shuffledp.collection.survey_page import front_page, language_of, wants_html

        open_tasks: list[dict[str, Any]] = []
        for row in self._store.tasks():
            post = self._post(to_base64(row.digest))
            if post is not None and self._state(post) == "open":
                open_tasks.append(
                    {"id": post.task.id, "title": dict(post.task.draft.title), "page": f"/t/{post.task.id}"}
                )
        if not wants_html(headers):
            return _json({"tasks": open_tasks})
        page = front_page([(task["id"], task["title"]) for task in open_tasks], language_of(headers))
        return Reply(200, page, HTML, self._front)

    def _unknown(self, headers: Headers) -> Reply:
        """Answer a request for an unknown address: a page for a browser, one line for a program."""
        from shuffledp.collection.survey_page import language_of, unknown_page, wants_html

        return Reply(404, unknown_page(language_of(headers)), HTML, self._front) if wants_html(headers) else NOT_FOUND

    def _task(self, name: str) -> Reply:
        post = self._post(name)
        if post is None:
            return NOT_FOUND
        forever = ((b"cache-control", b"public, max-age=31536000, immutable"),)
        return Reply(200, post.task.data, b"application/octet-stream", forever)

    def _status(self, name: str) -> Reply:
        post = self._post(name)
        if post is None:
            return NOT_FOUND
        state, period = self._state(post), self._clock() // STATUS_SECONDS
        if period != post.counted:
            post.held, post.counted = rounded(self._store.held(post.task.digest)), period
        times = {key: write_time(getattr(post.draft, key)) for key in ("opens", "closes", "expires")}
        row = self._store.task(post.task.digest)
        reason = {"reason": row.reason} if row and row.reason else {}
        invited = {"invited": self._store.invited(post.task.digest)} if post.task.has_codes else {}
        return _json({"state": state, "held": post.held, **invited, **times, **reason})

    def _release(self, name: str) -> Reply:
        post = self._post(name)
        release = self._store.release(post.task.digest) if post else None
        return NOT_FOUND if release is None else Reply(200, release, b"application/octet-stream")

    def _notice(self, name: str) -> Reply:
        post = self._post(name)
        notice = self._store.notice(post.task.digest) if post else None
        return NOT_FOUND if notice is None else Reply(200, notice, b"application/octet-stream")

    def _healthz(self) -> Reply:
        now = time.monotonic()
        if now - self._health[0] >= HEALTH_SECONDS:
            self._store.tasks()
            well = self._ingest.is_alive and self._keeper.is_alive
            self._health = (now, Reply(200, b"ok\n") if well else Reply(503, b"a thread has ended\n"))
        return self._health[1]


EVERYWHERE = (
    (b"access-control-allow-origin", b"*"),  # a page hosted elsewhere may send; there are no cookies
    (b"access-control-expose-headers", b"retry-after"),
)
SHOWN = ((b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer"))
NOT_KEPT = ((b"cache-control", b"no-store"),)
NOT_FOUND = Reply(404, b"there is no such thing here\n")
CLOSED = Reply(410, b"this task takes no more reports\n")


def rounded(held: int) -> int:
    """Return a number of held reports rounded down, so that it does not show when one person answered."""
    return held // 50 * 50 if held < 10_000 else held // 1000 * 1000


def _page_headers(policy: str) -> tuple[tuple[bytes, bytes], ...]:
    return (
        (b"content-security-policy", policy.encode("ascii")),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
    )


def _headers(reply: Reply, method: str) -> list[tuple[bytes, bytes]]:
    own = ((b"content-type", reply.kind), (b"content-length", b"%d" % len(reply.body)))
    if method == "POST":  # the path that must be fast; nobody shows or keeps its answers
        return [*own, *EVERYWHERE, *reply.headers]
    kept = () if any(name == b"cache-control" for name, _ in reply.headers) else NOT_KEPT
    return [*own, *EVERYWHERE, *SHOWN, *kept, *reply.headers]


def _json(value: dict[str, Any]) -> Reply:
    return Reply(200, json.dumps(value, ensure_ascii=False).encode(), b"application/json")


def _not_allowed(method: bytes) -> Reply:
    return Reply(405, b"this address has no such verb\n", headers=((b"allow", method), (b"connection", b"close")))


def _closing(status: int, body: bytes) -> Reply:
    """Return a refusal before the body was read, after which the connection cannot be used again."""
    return Reply(status, body, headers=((b"connection", b"close"),))


def _busy(body: bytes, *more: tuple[bytes, bytes]) -> Reply:
    return Reply(503, body, headers=((b"retry-after", b"%d" % BUSY_SECONDS), *more))


def _content_length(scope: Scope) -> int | None:
    """Return the Content-Length of a request; None if it is missing, doubled, no number, or the body is chunked."""
    lengths = [value for name, value in scope["headers"] if name == b"content-length"]
    chunked = any(name == b"transfer-encoding" for name, _ in scope["headers"])
    if chunked or len(lengths) != 1 or not lengths[0].isdigit() or len(lengths[0]) > 12:
        return None
    return int(lengths[0])


HEAD_SECONDS = 15.0
"""Number of seconds within which request line and headers must arrive."""
HEAD_BYTES = 1 << 15
"""Largest number of bytes of request line and headers."""
MOST_CONNECTIONS = 4096
"""Largest number of connections at one time, where the system allows as many files."""
OWN_FILES = 64
"""Number of files that the service needs besides connections: the store's, the log's, the standard ones."""
KEEP_ALIVE = 30
BACKLOG = 1024


class Settings(uvicorn.Config):
    """The settings of uvicorn, and the connections from which bytes are awaited, the longest waiting first."""

    most_connections: int
    unfinished: dict[PatientProtocol, None]


class HeadTooLarge(Exception):
    """Error: a request's head exceeds `HEAD_BYTES`; the parser answers it with status 400."""


class PatientProtocol(HttpToolsProtocol):
    """The protocol of uvicorn, extended to close a connection whose head is slow or endless."""

    config: Settings
    _timer: asyncio.TimerHandle | None = None
    _head = 0
    _parsed = 0
    _reads_head = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Wait for a head; if there are too many connections, close the one that has been waiting longest."""
        unfinished = self.config.unfinished
        if len(self.connections) >= self.config.most_connections and unfinished:
            next(iter(unfinished))._give_up()
        super().connection_made(transport)
        unfinished[self] = None
        self.access_log = False  # whatever handlers somebody may have given to uvicorn's logger
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timers of this connection."""
        self._end_waiting()
        self.config.unfinished.pop(self, None)
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Start counting the bytes of a head."""
        self._parsed = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Count the bytes of a request line, which may come in the same packet as others."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count the bytes of a header, which may come in the same packet as others."""
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_message_complete(self) -> None:
        """Stop waiting for this client, which now waits for our answer."""
        self.config.unfinished.pop(self, None)
        super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        """Count the bytes that arrive before a head is complete."""
        self._head += len(data)
        super().data_received(data)
        if self._timer is not None and self._head > HEAD_BYTES:
            self._give_up()
        elif self._reads_head:
            self._expect_head()

    def on_headers_complete(self) -> None:
        """Stop the timer of the head; the body has a timer of its own."""
        self._end_waiting()
        self._reads_head = False
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """Wait for the next head, unless it has arrived already."""
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
    """Return a listening socket.

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
    """Serve a store until a signal asks to stop; requests taken by then are stored and answered first.

    Parameters
    ----------
    store : Path
        The SQLite file; it and the shuffler's identity are made if they are not there.
    host : str
        Address to listen on. Beyond this machine a proxy with TLS belongs in front.
    port : int
        From 0 to 65535; 0 lets the system choose.
    clock : callable
        Function that returns seconds since 1970.
    ready : callable
        Called with the address once connections are accepted.

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
        Largest number of connections at one time.
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
    """Ask the system for as many files as are needed; return how many connections they allow."""
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
