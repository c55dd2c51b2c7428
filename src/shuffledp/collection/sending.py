"""Links, and HTTP with the standard library: read a task, send a report until it is held."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import queue
import ssl
import threading
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

from shuffledp.collection.fields import from_base64
from shuffledp.collection.report import Verdict
from shuffledp.collection.task import LONGEST_DRAFT, PostedTask, task_digest
from shuffledp.errors import InvalidInput, shown

TIMEOUT = 30.0
WHOLE = 120.0
"""Seconds within which an answer must be there whole: `TIMEOUT` begins anew with every byte of a slow server."""
LONGEST_WAIT = 60.0
MOST_BODY = LONGEST_DRAFT + 4096
CLOSED = 410
_ENDED = {
    400: "the server says that the report has the wrong length; read the task again",
    404: "the server knows no such task; check the link",
    CLOSED: "the task is closed: no further answers are taken",
    413: "the server refuses reports of this size; check the link",
}


class TaskClosed(InvalidInput):
    """The task takes no answers any more."""


@dataclass(frozen=True)
class Link:
    """A link to a task: ``SERVER/t/ID`` or ``SERVER/t/ID#CODE``.

    Parameters
    ----------
    server : str
        Such as ``"https://example.org"``, without a slash at the end.
    name : str
        The task's name, 43 characters.
    code : bytes or None
        The one-time code, 16 bytes.
    """

    server: str
    name: str
    code: bytes | None = None

    @classmethod
    def parse(cls, text: str) -> Link:
        """Read a link.

        Raises
        ------
        InvalidInput
            If it is none.
        """
        try:
            parts = urlsplit(text.strip())
            port = parts.port
        except ValueError:
            raise InvalidInput(f"this is no link to a task: {shown(text[:100])}") from None
        base, mark, name = parts.path.rpartition("/t/")
        if parts.scheme not in ("http", "https") or not parts.hostname or not mark or parts.query or parts.username:
            raise InvalidInput(f"a link to a task looks like https://HOST/t/ID#CODE; got {shown(text[:100])}")
        task_digest(name)
        code = from_base64(parts.fragment) if parts.fragment else None
        if parts.fragment and (code is None or len(code) != 16):
            raise InvalidInput("the code of the link (after #) is damaged: it has 22 letters, digits, - and _")
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        return cls(f"{parts.scheme}://{host}{f':{port}' if port else ''}{base}", name, code)

    @property
    def without_code(self) -> str:
        """The link to the survey page, without the code."""
        return f"{self.server}/t/{self.name}"


def fetch_task(link: Link) -> PostedTask:
    """Read the task a link names; its bytes must have the hash that the link says.

    Raises
    ------
    InvalidInput
        If the server cannot be reached, knows no such task, or serves another one, or its keys protect nothing.
    """
    status, body, _ = _ask(link.server, "GET", f"/v1/{link.name}", b"")
    if 300 <= status < 400:
        raise InvalidInput(
            "the server sends you to another address; use the link as you received it, with its https://"
        )
    if status != 200:
        raise InvalidInput(_ENDED.get(status, f"the server answers {status} instead of the task; try again later"))
    if hashlib.sha256(body).digest() != task_digest(link.name):
        raise InvalidInput("the server serves another task than the link names; do not answer it")
    task = PostedTask.parse(body)
    task.check_keys()
    return task


def send(link: Link, task: PostedTask, sealed: bytes, *, patience: float) -> Verdict:
    """Send a sealed report, the same bytes again and again, until there is a clear answer.

    Parameters
    ----------
    link : Link
        Where to.
    task : PostedTask
        The report's task.
    sealed : bytes
        The report.
    patience : float
        Seconds for which it is tried again after 409, 503 and broken connections.

    Returns
    -------
    Verdict
        The shuffler's answer.

    Raises
    ------
    InvalidInput
        If the server refuses for good, or no clear answer came in time; `TaskClosed` if the task is closed.
    """
    until = time.monotonic() + patience
    pause = 0.5
    while True:
        wait = pause
        try:
            status, body, after = _ask(link.server, "POST", f"/v1/{task.id}/reports", sealed)
        except InvalidInput as error:
            reason = str(error)
        else:
            if status == 200 and len(body) == 1 and body[0] <= max(Verdict):
                return Verdict(body[0])
            if status == CLOSED:
                raise TaskClosed(_ENDED[status])
            if status in _ENDED:
                raise InvalidInput(_ENDED[status])
            reason = "the task is not yet open" if status == 409 else f"the server answers {status}"
            wait = pause if after is None else after
        if time.monotonic() + wait > until:
            raise InvalidInput(f"{reason}; there is no clear answer yet: repeat the command, it sends the same report")
        time.sleep(wait)
        pause = min(2 * pause, LONGEST_WAIT)


Reply = tuple[int, bytes, float | None]
"""Status, body, and seconds of Retry-After."""


def _ask(server: str, method: str, path: str, body: bytes) -> Reply:
    """One request, given up after `WHOLE` seconds: a hostile server could keep us by a byte now and then."""
    found: queue.SimpleQueue[Reply | BaseException] = queue.SimpleQueue()

    def work() -> None:
        try:
            found.put(_exchange(server, method, path, body))
        except BaseException as error:
            found.put(error)

    threading.Thread(target=work, daemon=True).start()
    try:
        reply = found.get(timeout=WHOLE)
    except queue.Empty:
        raise InvalidInput(f"{server} cannot be reached (no whole answer within {WHOLE:g} seconds)") from None
    if isinstance(reply, BaseException):
        raise reply
    return reply


def _exchange(server: str, method: str, path: str, body: bytes) -> Reply:
    path = urlsplit(server).path + path
    try:
        with contextlib.closing(_connection(server)) as connection:
            connection.request(method, path, body=body if method == "POST" else None)
            answer = connection.getresponse()
            content = answer.read(MOST_BODY + 1)
            return answer.status, content, _seconds(answer.getheader("Retry-After"))
    except (OSError, http.client.HTTPException, UnicodeError) as error:  # the last: a host that is no name
        raise InvalidInput(f"{server} cannot be reached ({error or type(error).__name__})") from None


def _connection(server: str) -> http.client.HTTPConnection:
    parts = urlsplit(server)
    host = parts.hostname or ""
    if parts.scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(host, parts.port, timeout=TIMEOUT, context=context)
    return http.client.HTTPConnection(host, parts.port, timeout=TIMEOUT)


def _seconds(text: str | None) -> float | None:
    if text is None or not text.isascii() or not text.isdigit() or len(text) > 6:
        return None
    return min(max(float(text), 0.5), LONGEST_WAIT)
