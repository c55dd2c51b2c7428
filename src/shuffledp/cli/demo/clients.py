"""The simulated people of `demo collection`: answers, devices, and senders of invalid reports; all over HTTP."""

from __future__ import annotations

import http.client
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from shuffledp.cli.demo.table import EDUCATIONS, TABLE
from shuffledp.collection.batch import Verdict
from shuffledp.collection.client import MOST_BODY, Client, Device, DeviceState, Link, outer_of
from shuffledp.collection.codes import draw_codes, link_of
from shuffledp.collection.sealing import Sealer
from shuffledp.collection.task import PostedTask
from shuffledp.errors import ShuffleDPError
from shuffledp.numerics.randomness import Randomness
from shuffledp.tables import read_columns

# A headless chromium that answers on the survey page as a person would, for demonstrations and tests.
#
# It is spoken to by its own debugging protocol over a pair of pipes (``--remote-debugging-pipe``: JSON messages, each
# ended by a zero byte), so nothing but chromium itself is needed, and nobody else on the machine can reach it.

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)
PATIENCE = 60.0
"""Default number of seconds within which Chromium must answer."""
_PERSON = """
(async (level, values) => {
  const until = async (find) => {
    for (;;) {
      const found = find();
      if (found) return found;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  const at = (selector) => document.querySelector(selector);
  const choice = await until(() => at(`#level input[value="${level}"]`) ?? at("#answer, #sent, #problem"));
  if (choice.type === "radio") {
    choice.click();
    at("#level button").click();
  }
  if (await until(() => at("#answer") ?? at("#sent, #problem")) === at("#answer")) {
    values.forEach((value, j) => {
      const typed = at(`#q${j}-number`) ?? at(`#q${j}-word`);
      if (!typed) {
        const parts = document.querySelectorAll(`#q${j} fieldset`); // a table's row and its column
        if (parts.length) return value.forEach((one, i) => parts[i].querySelector(`input[value="${one}"]`).click());
        return [value].flat().forEach((one) => at(`#q${j} input[value="${one}"]`).click());
      }
      typed.value = value;
      typed.dispatchEvent(new Event(typed.tagName === "SELECT" ? "change" : "input"));
    });
    at("#send button").click();
  }
  return (await until(() => at("#sent, #problem"))).dataset.state;
})(%s, %s)
"""


def chromium_path() -> str | None:
    """Return the path of an installed Chromium, or None; None also on systems without `os.posix_spawn`."""
    if not hasattr(os, "posix_spawn"):
        return None
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Chromium:
    """A browser with a fresh profile, as a context manager that ends it.

    Parameters
    ----------
    path : str
        The program, from `chromium_path`.
    patience : float
        Number of seconds within which it must answer each time.
    """

    def __init__(self, path: str, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._path, self._buffer, self._calls = path, b"", 0
        self._profile = tempfile.TemporaryDirectory(prefix="shuffledp-chromium-", ignore_cleanup_errors=True)

    def __enter__(self) -> Chromium:
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        # Chromium reads the protocol from file descriptor 3 and writes it to 4; the copies first go out of their way.
        high = [os.dup(end) for end in (theirs_in, theirs_out)]
        actions = [(os.POSIX_SPAWN_DUP2, high[0], 3), (os.POSIX_SPAWN_DUP2, high[1], 4)]
        actions += [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (1, 2)]
        words = [self._path, *FLAGS, f"--user-data-dir={self._profile.name}", "--lang=en"]
        self._pid = os.posix_spawn(self._path, words, os.environ, file_actions=actions, setpgroup=0)
        for end in (theirs_in, theirs_out, *high):
            os.close(end)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.killpg(self._pid, signal.SIGKILL)  # its own group: the browser and its helpers, and nothing else
        os.waitpid(self._pid, 0)
        os.close(self._in)
        os.close(self._out)
        self._profile.cleanup()

    def answer(self, link: str, level: int, values: Sequence[float | Sequence[int]]) -> str:
        """Open a link as a new person does, answer every question, and press Send.

        Parameters
        ----------
        link : str
            Link to the survey page, with the person's code.
        level : int
            Index of the level, from 0.
        values : sequence of float
            For each question the index of the choice or word, from 0, or the number; for several options the indices
            of those that are checked, and for a table those of row and column.

        Returns
        -------
        str
            State of the report: "held", "waiting", "refused" or "unclear"; "problem" if the page shows one.

        Raises
        ------
        ShuffleDPError
            If the browser does not answer, or the page fails.
        """
        script = _PERSON % (json.dumps(level), json.dumps(list(values)))
        return str(self.evaluate(link, script))

    def evaluate(self, link: str, script: str, width: int | None = None) -> Any:
        """Open a link as a new person does, and return the value of a script on the page.

        Parameters
        ----------
        link : str
            Link to the page.
        script : str
            JavaScript expression; a promise is awaited.
        width : int, optional
            Width of the window in CSS pixels; chromium's own if left out.

        Raises
        ------
        ShuffleDPError
            As for `answer`.
        """
        context = self._call("Target.createBrowserContext")["browserContextId"]  # nothing kept by another person
        target = self._call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        if width is not None:
            window = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            self._call("Emulation.setDeviceMetricsOverride", session, **window)
        self._call("Page.navigate", session, url=link)  # its answer comes when the new page is there
        try:
            reply = self._call("Runtime.evaluate", session, expression=script, awaitPromise=True, returnByValue=True)
        finally:
            self._call("Target.disposeBrowserContext", browserContextId=context)
        if "exceptionDetails" in reply:
            raise ShuffleDPError("the survey page failed in chromium: " + str(reply["exceptionDetails"].get("text")))
        return reply["result"].get("value")

    def _call(self, method: str, session: str | None = None, **parameters: object) -> dict[str, Any]:
        self._calls += 1
        message: dict[str, object] = {"id": self._calls, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + self._patience
        while True:
            answer = json.loads(self._read(until))
            if answer.get("id") == self._calls:
                if "error" in answer:
                    raise ShuffleDPError(f"chromium refuses {method}: {answer['error'].get('message')}")
                return answer["result"]

    def _read(self, until: float) -> bytes:
        """Return the next message that answers a call; events, which have no number, are skipped."""
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(until - time.monotonic(), 0.0))
            part = os.read(self._in, 1 << 16) if ready else b""
            if not part:
                raise ShuffleDPError("chromium does not answer; leave it out, or try again when the machine is idle")
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return message


THREADS = 4
CHROMIUM_SECONDS = 6.0
NO_ANSWER = "no answer"
HOURS = (1, 99)
"""Smallest and largest answer to the question about hours."""
IMPOSSIBLE = b"\xff"
"""Bytes that are a valid report to neither of the two questions."""


@dataclass(frozen=True)
class DemoPerson:
    """An invited person: codes of the answers, index of the level, and one-time code."""

    answers: tuple[int, int]
    level: int
    code: bytes

    @property
    def hours(self) -> int:
        """The second answer as a number of hours."""
        return self.answers[1] + HOURS[0]


def invite(counts: Sequence[int], codes: Sequence[bytes], random: Randomness) -> list[DemoPerson]:
    """Return people with real records from the bundled table, and with randomly assigned levels.

    Parameters
    ----------
    counts : sequence of int
        Number of people at each level.
    codes : sequence of bytes
        One one-time code per person.
    random : Randomness
        Source of the random choices.
    """
    columns = read_columns(TABLE, numbers=["hours_per_week"], texts=["education"])
    hours, schooling = columns.numbers["hours_per_week"], columns.texts["education"].to_list()
    group = {name: place for place, names in enumerate(EDUCATIONS.values()) for name in names}
    levels = [level for level, count in enumerate(counts) for _ in range(count)]
    drawn = random.permutation(hours.size)[: len(levels)].tolist()
    dealt = random.permutation(len(levels)).tolist()
    return [
        DemoPerson((group[schooling[row]], int(hours[row]) - HOURS[0]), levels[place], code)
        for row, place, code in zip(drawn, dealt, codes, strict=True)
    ]


def sealed_reports(task: PostedTask, people: Sequence[DemoPerson]) -> list[bytes]:
    """Return everybody's report, drawn and sealed by a separate client each."""
    return [Client(task).seal(person.answers, person.level, person.code) for person in people]


def spoilt_reports(task: PostedTask, people: Sequence[DemoPerson], honest: DemoPerson) -> tuple[list[bytes], bytes]:
    """Return sealed invalid reports of invited people, which the shuffler cannot tell from valid ones.

    Parameters
    ----------
    task : PostedTask
        The task.
    people : sequence of Person
        The senders, in turn: rows that do not open, impossible reports, and a copy of an honest person's first message
        beside one that does not open. The shuffler would recognise a copy of a whole report, and hold it once.
    honest : Person
        The person whose message is copied, as if it had been stolen from the device.

    Returns
    -------
    list of bytes, bytes
        The invalid reports, and the honest person's own report.
    """
    copied = Client(task).draw(honest.answers, honest.level)
    sealer, sizes = Sealer(task.draft.analyzer_key), [len(sealed) for sealed in copied]
    places = [place for place, column in enumerate(task.draft.columns) for _ in range(column.family.pieces)]
    kinds = (
        lambda: [os.urandom(size) for size in sizes],
        lambda: [sealer.seal(IMPOSSIBLE, task.inner_info(place)) for place in places],
        lambda: [copied[0], *(os.urandom(size) for size in sizes[1:])],
    )
    junk = [
        outer_of(task, kinds[place % len(kinds)](), person.level, person.code) for place, person in enumerate(people)
    ]
    return junk, outer_of(task, copied, honest.level, honest.code)


def strangers_reports(task: PostedTask, count: int) -> list[tuple[bytes, Verdict]]:
    """Return ``count`` sealed reports of people without an invitation, each with the answer to expect."""
    made: list[tuple[bytes, Verdict]] = []
    for place in range(count):
        code = draw_codes(1)[0]
        if place % 3 == 0:
            made.append((os.urandom(task.size), Verdict.UNREADABLE))
            continue
        inners = Client(task).draw((0, 0), 0)
        unfit = place % 3 == 1
        level, verdict = (255, Verdict.UNFIT) if unfit else (0, Verdict.CODE_REFUSED)
        made.append((outer_of(task, inners, level, code), verdict))
    return made


class Deliveries:
    """Sealed reports in transit: one per request, with the same bytes sent again until there is a clear answer.

    A context manager: threads start sending when it is entered and have ended when it is left.

    Parameters
    ----------
    server : str
        The shuffler's address.
    task : PostedTask
        The task.
    sealed : sequence of bytes
        The reports.
    """

    def __init__(self, server: str, task: PostedTask, sealed: Sequence[bytes]) -> None:
        parts = urlsplit(server)
        self._host, self._port = parts.hostname or "", parts.port
        self._path = f"/v1/{task.id}/reports"
        self._sealed = sealed
        self._waiting = iter(range(len(sealed)))
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._threads = [threading.Thread(target=self._send_all, daemon=True) for _ in range(THREADS)]
        self._problem: str | None = None
        self.verdicts: dict[int, Verdict] = {}
        self.again: set[int] = set()
        """Indices of the reports that were sent more than once."""

    def __enter__(self) -> Deliveries:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def wait(self, count: int) -> None:
        """Wait until ``count`` reports have a clear answer.

        Raises
        ------
        ShuffleDPError
            If the service refuses, or no answer comes for a minute.
        """
        seen, since = -1, time.monotonic()
        while len(self.verdicts) < count:
            if len(self.verdicts) > seen:
                seen, since = len(self.verdicts), time.monotonic()
            if self._problem is not None:
                raise ShuffleDPError(self._problem)
            if time.monotonic() - since > PATIENCE:
                raise ShuffleDPError(f"the service has acknowledged nothing for {PATIENCE:g} seconds")
            time.sleep(0.01)

    def _places(self) -> Iterator[int]:
        while not self._stop.is_set():
            with self._lock:
                place = next(self._waiting, None)
            if place is None:
                return
            yield place

    def _send_all(self) -> None:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=PATIENCE)
        for place in self._places():
            while not self._stop.is_set():
                try:
                    connection.request("POST", self._path, body=self._sealed[place])
                    answer = connection.getresponse()
                    body = answer.read()
                except (OSError, http.client.HTTPException):  # killed: what was not acknowledged is sent again
                    connection.close()
                    self.again.add(place)
                    self._stop.wait(0.1)
                    continue
                if answer.status == 200 and len(body) == 1 and body[0] <= max(Verdict):
                    self.verdicts[place] = Verdict(body[0])
                    break
                if answer.status != 503:
                    self._problem = f"the service answers {answer.status} to a report"
                    return
                self._stop.wait(0.5)
        connection.close()


def answer_in_browser(path: str, server: str, task: PostedTask, people: Sequence[DemoPerson]) -> list[DemoPerson]:
    """Let people answer on the survey page in Chromium; return those whose reports are held after some seconds.

    Parameters
    ----------
    path : str
        The browser, from `chromium_path`.
    server : str
        The service's address.
    task : PostedTask
        The task.
    people : sequence of Person
        The people who answer.
    """
    until, held = time.monotonic() + CHROMIUM_SECONDS, list[DemoPerson]()
    try:
        with Chromium(path, CHROMIUM_SECONDS) as browser:
            for person in people:
                if time.monotonic() > until:
                    break
                link, values = link_of(task, server, person.code), (person.answers[0], person.hours)
                if browser.answer(link, person.level, values) == "held":
                    held.append(person)
    except (ShuffleDPError, OSError):  # a slow or broken browser; the caller counts who is held
        pass
    return held


class Relay:
    """A relay between a client and the service that forwards everything except the answer to a report.

    Parameters
    ----------
    server : str
        The service's address.
    """

    def __init__(self, server: str) -> None:
        self.report: bytes | None = None
        self.taken, self._end = threading.Event(), threading.Event()
        target, relay = urlsplit(server), self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: object) -> None:
                """Write nothing about a request."""

            def do_GET(self) -> None:
                self._pass(b"")

            def do_POST(self) -> None:
                relay.report = self.rfile.read(int(self.headers["Content-Length"]))
                self._pass(relay.report)

            def _pass(self, body: bytes) -> None:
                onward = http.client.HTTPConnection(target.hostname or "", target.port, timeout=PATIENCE)
                onward.request(self.command, self.path, body=body or None)
                answer = onward.getresponse()
                content = answer.read(MOST_BODY)
                onward.close()
                if body:
                    relay.taken.set()
                    relay._end.wait()
                    return
                self.send_response(answer.status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        self._listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._listening.daemon_threads = True
        self._thread = threading.Thread(target=self._listening.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """The address of the relay."""
        return f"http://127.0.0.1:{self._listening.server_address[1]}"

    def __enter__(self) -> Relay:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end.set()
        self._listening.shutdown()
        self._thread.join()
        self._listening.server_close()


def answer_and_die(server: str, task: PostedTask, person: DemoPerson, words: Sequence[str], folder: Path) -> Verdict:
    """Run `shuffledp answer`, kill it before it learns that its report is held, and let its device send again.

    Parameters
    ----------
    server : str
        The service's address.
    task : PostedTask
        The task.
    person : Person
        The person who answers.
    words : sequence of str
        Level and answers as options of the command.
    folder : Path
        Folder for the device's file.

    Returns
    -------
    Verdict
        The answer to the second attempt, which sends the same bytes.

    Raises
    ------
    ShuffleDPError
        If the command ends by itself, or the device would send other bytes.
    """
    state = folder / "device.json"
    with Relay(server) as relay:
        command = [sys.executable, "-c", "from shuffledp.cli import main; main()", "answer"]
        command += [link_of(task, relay.url, person.code), *words, "--state", str(state)]
        client = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            until = time.monotonic() + PATIENCE
            while not relay.taken.wait(0.05):
                if client.poll() is not None or time.monotonic() > until:
                    raise ShuffleDPError("the command shuffledp answer did not send its report")
        finally:
            client.kill()
            client.wait()
    device = Device(DeviceState(state))
    if device.prepare(task, person.answers, person.level, person.code) != relay.report:
        raise ShuffleDPError("a device that was killed would send other bytes than before")
    link = Link(server, task.id, person.code)
    return device.answer(link, task, person.answers, person.level, patience=PATIENCE)
