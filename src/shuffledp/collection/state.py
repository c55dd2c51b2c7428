"""What one device remembers of collections: sealed reports on their way, and the ledger of what was sent.

One JSON file. A report is drawn and sealed once for a task and slot; the sealed bytes stay until the shuffler's clear
answer and are then deleted. The ledger line is written before the first byte is sent and stays.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, TypeVar

from shuffledp.collection.fields import Fields, read_json
from shuffledp.collection.task import MOST_QUESTIONS
from shuffledp.errors import InvalidInput
from shuffledp.whole_files import hold

T = TypeVar("T")
LONGEST = 1 << 26
ANSWERED = "this device has already answered this task; an answer is drawn and sent once"


def default_state_file() -> Path:
    """Return where a device keeps its state: below XDG_STATE_HOME, or ~/.local/state."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "shuffledp" / "answers.json"


class DeviceState:
    """The file of one device; every change is written to disk before it is acted on.

    Parameters
    ----------
    path : Path
        The file; made on the first change, readable by its owner alone.

    Raises
    ------
    InvalidInput
        If the file is there and is no such file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read()

    def waiting(self, slot: str) -> dict[str, Any] | None:
        """Return the report that waits to be sent from this slot, or None."""
        return self._read()["waiting"].get(slot)

    def used(self, slot: str) -> bool:
        """Tell whether this device has drawn a report in this slot, sent or waiting."""
        return slot in self._read()["used"]

    def ledger(self, organizer: str | None = None) -> list[dict[str, Any]]:
        """Return the lines of what was sent, of one organizer or of all."""
        return [line for line in self._read()["ledger"] if organizer is None or line["organizer"] == organizer]

    def keep(self, slot: str, report: dict[str, Any], line: dict[str, Any]) -> dict[str, Any]:
        """Store a report that was just drawn, with its ledger line; return the one already there, if any.

        Raises
        ------
        InvalidInput
            If a report was drawn in this slot before and is no longer there: it was sent.
        """

        def change(state: dict[str, Any]) -> dict[str, Any]:
            if slot in state["waiting"]:
                return state["waiting"][slot]
            if slot in state["used"]:
                raise InvalidInput(ANSWERED)
            state["waiting"][slot] = report
            state["used"].append(slot)
            state["ledger"].append(line)
            return report

        return self._change(change)

    def answered(self, slot: str, how: str) -> None:
        """Delete the sealed bytes of a slot after a clear answer; the ledger line says how it ended."""

        def change(state: dict[str, Any]) -> None:
            state["waiting"].pop(slot, None)
            _mark(state, slot, how)

        self._change(change)

    def code_refused(self, slot: str, sealed: str | None = None) -> None:
        """Delete the sealed bytes after the server refused the code; keep the reports, to be sealed under another code.

        Parameters
        ----------
        slot : str
            Whose report it is.
        sealed : str, optional
            What was refused, as it was kept: nothing changes if another command has sealed the report anew meanwhile.
            By default it is what is kept now.
        """

        def change(state: dict[str, Any]) -> None:
            waiting = state["waiting"].get(slot, {})
            if sealed is None or waiting.get("sealed") == sealed:
                waiting.pop("sealed", None)
                _mark(state, slot, "code refused")

        self._change(change)

    def reseal(self, slot: str, sealed: str) -> str:
        """Store the same reports sealed under another code; return the ones already sealed again, if any.

        Parameters
        ----------
        slot : str
            Whose report it is.
        sealed : str
            What is to be kept and sent.

        Raises
        ------
        InvalidInput
            If the report is no longer there: another command has sent it and had a clear answer.
        """

        def change(state: dict[str, Any]) -> str:
            if slot not in state["waiting"]:
                raise InvalidInput(ANSWERED)
            kept = state["waiting"][slot]
            if "sealed" not in kept:
                kept["sealed"] = sealed
                _mark(state, slot, "sent, no answer yet")
            return kept["sealed"]

        return self._change(change)

    def _change(self, change: Callable[[dict[str, Any]], T]) -> T:
        try:
            return self._changed(change)
        except OSError as error:
            raise InvalidInput(
                f"the file of answers {self.path} cannot be written ({error.strerror or error}); make room, or name "
                "another with --state"
            ) from None

    def _changed(self, change: Callable[[dict[str, Any]], T]) -> T:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _locked(self.path.with_name(self.path.name + ".lock")):
            state = self._read()
            found = change(state)
            handle, name = tempfile.mkstemp(prefix=".answers.", dir=self.path.parent)  # 0600
            try:
                with open(handle, "w", encoding="utf-8") as stream:
                    json.dump(state, stream, ensure_ascii=False, indent=1)
                    stream.flush()
                    os.fsync(stream.fileno())
                os.replace(name, self.path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
        return found

    def _read(self) -> dict[str, Any]:
        try:
            with open(self.path, "rb") as stream:
                data = stream.read(LONGEST + 1)  # a device could be read without end
        except FileNotFoundError:
            return {"version": 1, "waiting": {}, "used": [], "ledger": []}
        except OSError as error:
            raise InvalidInput(f"{self.path} cannot be read ({error.strerror}); name another file of answers") from None
        fields = read_json(data, f"the file of answers {self.path}", LONGEST)
        fields.whole("version", 1, 1)
        return {
            "version": 1,
            "waiting": fields.object("waiting", _waiting),
            "used": [entry for entry in fields.list_of("used", 0, 10**6) if isinstance(entry, str)],
            "ledger": list(fields.objects("ledger", 0, 10**6, _line)),
        }


def _mark(state: dict[str, Any], slot: str, how: str) -> None:
    for line in state["ledger"]:
        if line.get("slot") == slot:
            line["state"] = how


def _line(fields: Fields) -> dict[str, Any]:
    numbers = {name: fields.number(name, 0.0) for name in ("epsilon0", "promise", "delta")}
    lines = {name: fields.line(name) for name in ("id", "slot", "organizer", "state")}
    return lines | {"date": fields.day("date")} | numbers


def _waiting(fields: Fields) -> dict[str, Any]:
    """Read the reports on their way, by slot: level, messages to the analyzer, and what was sealed if a code fits."""
    return {slot: fields.object(slot, _report) for slot in fields.names()}


def _report(fields: Fields) -> dict[str, Any]:
    inners = fields.list_of("inners", 1, MOST_QUESTIONS)
    for message in inners:
        if not isinstance(message, str):
            fields.refuse("inners", message, "a list of texts")
    sealed = {"sealed": fields.line("sealed", LONGEST)} if fields.has("sealed") else {}
    return {"level": fields.whole("level", 0, 255), "inners": inners} | sealed


@contextlib.contextmanager
def _locked(path: Path) -> Generator[None]:
    """Hold a lock on a file, so that two commands of one device do not both draw."""
    with open(path, "a", encoding="utf-8") as stream:
        hold(stream.fileno())
        yield
