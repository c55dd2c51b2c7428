"""The service's public face: an ASGI application that shows tasks and takes reports, and does nothing else.

Every handler answers with fixed words: nothing of a request is repeated, stored beside the report, or logged.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from shuffledp.collection.bodies import Body, Gone, Receive, Room, Unread
from shuffledp.collection.clock import Clock, system_clock
from shuffledp.collection.fields import to_base64, write_time
from shuffledp.collection.holding import Refused
from shuffledp.collection.ingest import Ingest
from shuffledp.collection.keeper import Keeper
from shuffledp.collection.sealing import Opener
from shuffledp.collection.store import Store
from shuffledp.collection.task import PostedTask, task_digest
from shuffledp.errors import InvalidInput

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_REPORTS = 100
"""Reports in one request."""
STATUS_SECONDS = 600
"""The number of held reports that is shown changes no more often."""
HEALTH_SECONDS = 10.0
BUSY_SECONDS = 5
"""After which a client whose reports were not kept may try again."""


@dataclass(frozen=True)
class Reply:
    """What is sent: status, body, and headers beside those of every answer."""

    status: int
    body: bytes
    kind: bytes = b"text/plain; charset=utf-8"
    headers: tuple[tuple[bytes, bytes], ...] = ()


@dataclass
class Post:
    """A task as the running service knows it.

    Parameters
    ----------
    task : PostedTask
        What was posted.
    opener : Opener or None
        Of the task's private key while it is open.
    held, counted : int
        Reports as shown, and the period of time in which they were counted.
    state, read : str and int
        What `Service._state` said, and the second in which it was asked; the writer asks the store itself.
    """

    task: PostedTask
    opener: Opener | None = None
    held: int = 0
    counted: int = -1
    state: str = ""
    read: int = -1


def create_app(store: Store, *, clock: Clock = system_clock) -> App:
    """Make the application; its lifespan starts and ends the threads that write and that keep time.

    Parameters
    ----------
    store : Store
        Used for reading, on the event loop's thread.
    clock : callable
        Returns seconds since 1970.
    """
    return Service(store, clock)


class Service:
    """The ASGI application of `create_app`.

    Parameters
    ----------
    store : Store
        Used for reading, on the event loop's thread.
    clock : callable
        Returns seconds since 1970.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        from shuffledp.collection.survey_page import content_security_policy, survey_page

        self._store, self._clock = store, clock
        self._ingest, self._keeper = Ingest(store.path), Keeper(store.path, clock, ended=self._forget_key)
        self._posts: dict[str, Post] = {}
        self._room = Room()
        self._health = (0.0, Reply(503, b"starting\n"))
        self._page = Reply(200, survey_page(), b"text/html; charset=utf-8", _page_headers(content_security_policy()))

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
        found = self._show(parts)
        return found() if found and method == "GET" else _not_allowed(b"GET") if found else NOT_FOUND

    def _show(self, parts: list[str]) -> Callable[[], Reply] | None:
        match parts:
            case [""]:
                return self._index
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
            case _:
                return None

    async def _take(self, name: str, scope: Scope, receive: Receive) -> Reply:
        """POST /v1/{id}/reports."""
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
        """Return what opens the task's reports, or say why it takes none now."""
        state, now, draft = self._state(post), self._clock(), post.task.draft
        if state == "not-yet-open":
            wait = min(draft.opens - now, 86_400)
            return Reply(409, b"this task is not open yet\n", headers=((b"retry-after", b"%d" % wait),))
        opener = post.opener
        if state == "open" and opener is None and (key := self._store.key(post.task.digest)):
            post.opener = opener = Opener(key)
        return opener if state == "open" and opener else CLOSED

    def _forget_key(self, digest: bytes) -> None:
        """Let the copy in memory go with the key; the timers' thread says so when a task is no longer open."""
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
        now, draft = self._clock(), post.task.draft
        if now != post.read:
            state, tick = self._store.state(post.task.digest)
            if state == "open" and now < draft.opens:
                state = "not-yet-open"
            elif state == "open" and now >= draft.expires and self._keeper.trusts(now, tick):
                state = "expired"
            post.state, post.read = state, now
        return post.state

    def _index(self) -> Reply:
        shown: list[dict[str, Any]] = []
        for row in self._store.tasks():
            post = self._post(to_base64(row.digest))
            if post is not None and self._state(post) == "open":
                shown.append({"id": post.task.id, "title": dict(post.task.draft.title), "page": f"/t/{post.task.id}"})
        return _json({"tasks": shown})

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
        draft, period = post.task.draft, self._clock() // STATUS_SECONDS
        if period != post.counted:
            post.held, post.counted = rounded(self._store.held(post.task.digest)), period
        times = {key: write_time(getattr(draft, key)) for key in ("opens", "closes", "expires")}
        row = self._store.task(post.task.digest)
        reason = {"reason": row.reason} if row and row.reason else {}
        return _json({"state": self._state(post), "held": post.held, **times, **reason})

    def _release(self, name: str) -> Reply:
        post = self._post(name)
        release = self._store.release(post.task.digest) if post else None
        return NOT_FOUND if release is None else Reply(200, release, b"application/octet-stream")

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
    """Round a number of held reports down, so that it does not tell when one person answered."""
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
    """Refuse before the body was read: the connection cannot be used again."""
    return Reply(status, body, headers=((b"connection", b"close"),))


def _busy(body: bytes, *more: tuple[bytes, bytes]) -> Reply:
    return Reply(503, body, headers=((b"retry-after", b"%d" % BUSY_SECONDS), *more))


def _content_length(scope: Scope) -> int | None:
    """Read the one Content-Length of a request; None if it is missing, doubled, no number, or the body is chunked."""
    lengths = [value for name, value in scope["headers"] if name == b"content-length"]
    chunked = any(name == b"transfer-encoding" for name, _ in scope["headers"])
    if chunked or len(lengths) != 1 or not lengths[0].isdigit() or len(lengths[0]) > 12:
        return None
    return int(lengths[0])
