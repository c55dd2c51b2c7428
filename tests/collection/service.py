"""A shuffler for the tests: stores with a task, sealed reports, and requests to the application without a network."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shuffledp.collection.batch import Outer, open_outer, seal_inner, seal_outer
from shuffledp.collection.fields import to_base64
from shuffledp.collection.sealing import Opener, Sealer
from shuffledp.collection.server import Service, create_app
from shuffledp.collection.store import Store
from shuffledp.collection.task import PostedTask
from tests.collection.tasks import IDENTITY, SHUFFLER, choice, posted

NOON = 1_900_000_000
"""A time at which the tests' tasks are open: in March 2030."""
DAY = 86_400
TIMES = {"opens": "2030-03-01T00:00:00Z", "closes": "2030-04-01T00:00:00Z", "expires": "2030-05-01T00:00:00Z"}
CLOSES, EXPIRES = 1_901_232_000, 1_903_824_000
FLOOR = (0.1, 0.25, 1.0)


def task_of(*questions: dict[str, Any], **changed: Any) -> PostedTask:
    """A small posted task, open at NOON: one question, three levels, open admission unless told otherwise."""
    return posted(*(questions or (choice(5, 20),)), **({"admission": "open", "at_least": 1} | TIMES | changed))


def store_at(folder: Path, *tasks: PostedTask, now: int = NOON, name: str = "store.db") -> Store:
    """A store with these tasks, whose shuffler has the identity of the tests."""
    (folder / "shuffler.key").write_text(to_base64(IDENTITY))
    store = Store(folder / name)
    for task in tasks:
        store.post(task, SHUFFLER, FLOOR, now)
    return store


class Reports:
    """Makes sealed reports of a task, all different."""

    def __init__(self, task: PostedTask) -> None:
        self.task = task
        self._inner, self._outer = Sealer(task.draft.analyzer_key), Sealer(task.shuffler_key)

    def one(self, level: int = 0, report: int = 0, code: bytes | None = None) -> bytes:
        inners = [seal_inner(self.task, place, report, self._inner) for place in range(len(self.task.draft.questions))]
        return seal_outer(self.task, level, code, inners, self._outer)

    def many(self, n: int) -> list[bytes]:
        levels = len(self.task.draft.levels)
        return [self.one(place % levels, place % 2) for place in range(n)]


def codes_of(n: int, name: str = "") -> list[bytes]:
    return [hashlib.sha256(f"a code of the tests {name} {place}".encode()).digest()[:16] for place in range(n)]


def hash_of(code: bytes) -> bytes:
    return hashlib.sha256(code).digest()


def digest_of(task: PostedTask, report: bytes) -> bytes:
    """The name under which the shuffler of the tests holds a sealed report."""
    opened = open_outer(task, report, Opener(SHUFFLER))
    assert isinstance(opened, Outer)
    return hashlib.sha256(opened.inners).digest()[:16]


@dataclass
class Time:
    """A clock that stands until it is set."""

    now: int = NOON

    def __call__(self) -> int:
        return self.now


@dataclass
class Answer:
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class Face:
    """The application on an event loop of its own; `ask` sends one request and returns the answer."""

    def __init__(self, app: Service, runner: asyncio.Runner) -> None:
        self.app, self.runner = app, runner

    def ask(self, method: str, path: str, body: bytes = b"", **changed: Any) -> Answer:
        return self.runner.run(self.asking(method, path, body, **changed))

    def send(self, task: PostedTask, *reports: bytes) -> Answer:
        return self.ask("POST", f"/v1/{task.id}/reports", b"".join(reports))

    async def asking(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: list[tuple[bytes, bytes]] | None = None,
        parts: list[bytes] | None = None,
        stalls: bool = False,
    ) -> Answer:
        answer = Answer()
        sent = [body] if parts is None else list(parts)

        async def receive() -> dict[str, Any]:
            if not sent:
                if stalls:
                    await asyncio.sleep(3600)
                return {"type": "http.disconnect"}
            part = sent.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(sent) or stalls}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                answer.status = message["status"]
                answer.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            else:
                answer.body += message["body"]

        if headers is None:
            headers = [(b"content-length", b"%d" % sum(map(len, sent)))]
        await self.app({"type": "http", "method": method, "path": path, "headers": headers}, receive, send)
        return answer


@contextmanager
def face(store: Store, clock: Time | None = None) -> Iterator[Face]:
    """The application of a store, started and at the end stopped."""
    app = create_app(store, clock=clock or Time())
    assert isinstance(app, Service)
    told: list[str] = []

    async def send(message: Any) -> None:
        told.append(message["type"])

    with asyncio.Runner() as runner:
        orders: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

        async def begin() -> asyncio.Task[None]:
            life = asyncio.create_task(app({"type": "lifespan"}, orders.get, send))
            await orders.put({"type": "lifespan.startup"})
            while not told:
                await asyncio.sleep(0)
            return life

        async def finish(life: asyncio.Task[None]) -> None:
            await orders.put({"type": "lifespan.shutdown"})
            await life

        life = runner.run(begin())
        try:
            yield Face(app, runner)
        finally:
            runner.run(finish(life))
    assert told == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
