"""A headless chromium that answers on the survey page as a person would, for demonstrations and tests.

It is spoken to by its own debugging protocol over a pair of pipes (``--remote-debugging-pipe``: JSON messages, each
ended by a zero byte), so nothing but chromium itself is needed, and nobody else on the machine can reach it.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from shuffledp.errors import ShuffleDPError

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
"""Seconds within which chromium must answer, unless told otherwise."""
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
  (await until(() => at(`#level input[value="${level}"]`) ?? at("#sent, #problem"))).click();
  if (at("#level")) at("#level button").click();
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
    """Return where chromium is installed, or None; None also where processes are not started as POSIX does."""
    if not hasattr(os, "posix_spawn"):
        return None
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Chromium:
    """A browser with a fresh profile; a context manager, whose end ends it.

    Parameters
    ----------
    path : str
        The program, from `chromium_path`.
    patience : float
        Seconds within which it must answer each time.
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
            Place of the level, from 0.
        values : sequence of float
            For each question the place of the choice or word, from 0, or the number; of several options the places
            of those that are checked, and of a table those of row and column.

        Returns
        -------
        str
            What became of the report: "held", "waiting", "refused" or "unclear"; "problem" if the page shows one.

        Raises
        ------
        ShuffleDPError
            If the browser does not answer, or the page fails.
        """
        script = _PERSON % (json.dumps(level), json.dumps(list(values)))
        return str(self.evaluate(link, script))

    def evaluate(self, link: str, script: str) -> Any:
        """Open a link as a new person does, and return what a script on the page comes to.

        Parameters
        ----------
        link : str
            Link to the page.
        script : str
            JavaScript; a promise is awaited.

        Raises
        ------
        ShuffleDPError
            As `answer`.
        """
        context = self._call("Target.createBrowserContext")["browserContextId"]  # nothing kept by another person
        target = self._call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._call("Page.navigate", session, url=link)  # its answer comes when the new page is there
        try:
            found = self._call("Runtime.evaluate", session, expression=script, awaitPromise=True, returnByValue=True)
        finally:
            self._call("Target.disposeBrowserContext", browserContextId=context)
        if "exceptionDetails" in found:
            raise ShuffleDPError("the survey page failed in chromium: " + str(found["exceptionDetails"].get("text")))
        return found["result"].get("value")

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
        """Read the next message; what comes without a number of ours is an event, and of no concern."""
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(until - time.monotonic(), 0.0))
            part = os.read(self._in, 1 << 16) if ready else b""
            if not part:
                raise ShuffleDPError("chromium does not answer; leave it out, or try again when the machine is idle")
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return message
