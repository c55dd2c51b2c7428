"""The Python client: certifies a task, draws and seals one report, and sends it until the shuffler has it.

What one device remembers of collections is one JSON file: sealed reports on their way, and the ledger of what was
sent. A report is drawn and sealed once for a task and slot; the sealed bytes stay until the shuffler's clear
answer and are then deleted. The ledger line is written before the first byte is sent and stays.

The client trusts no page and no server: the task's bytes must hash to the name in the link, its draws must stay within
the stated budgets (checked when a task is read), and its floor must be at most its promises.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import os
import queue
import ssl
import tempfile
import threading
import time
import unicodedata
import warnings
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from shuffledp.collection.asked import MOST_COLUMNS, SurveyQuestion
from shuffledp.collection.batch import Verdict, seal_inner, seal_outer
from shuffledp.collection.codes import read_code
from shuffledp.collection.draw import MOST_BITS, draw_report, pieces_of
from shuffledp.collection.fields import Fields, Text, from_base64, read_json, to_base64
from shuffledp.collection.sealing import Sealer
from shuffledp.collection.task import CODE, LONGEST_DRAFT, Notice, PostedTask, task_digest
from shuffledp.errors import InvalidInput, shown, whole_number
from shuffledp.numerics.randomness import Randomness, secure_random
from shuffledp.whole_files import hold

T = TypeVar("T")
LONGEST = 1 << 26
ANSWERED = "this device has already answered this task; an answer is drawn and sent once"


def default_state_file() -> Path:
    """Return the default path of a device's state: below XDG_STATE_HOME, or ~/.local/state."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "shuffledp" / "answers.json"


class DeviceState:
    """The state file of one device; every change is on disk before it takes effect.

    Parameters
    ----------
    path : Path
        The file; made on the first change, readable by its owner alone.

    Raises
    ------
    InvalidInput
        If the file exists and is no state file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read()

    def waiting(self, slot: str) -> dict[str, Any] | None:
        """Return the report of this slot that has no clear answer yet, or None."""
        return self._read()["waiting"].get(slot)

    def used(self, slot: str) -> bool:
        """Return whether this device has drawn a report in this slot, sent or waiting."""
        return slot in self._read()["used"]

    def ledger(self, organizer: str | None = None) -> list[dict[str, Any]]:
        """Return the ledger lines of sent reports, for one organizer or for all."""
        return [line for line in self._read()["ledger"] if organizer is None or line["organizer"] == organizer]

    def keep(self, slot: str, report: dict[str, Any], line: dict[str, Any]) -> dict[str, Any]:
        """Store a newly drawn report with its ledger line; return the report that is stored, if any was stored before.

        Raises
        ------
        InvalidInput
            If a report was drawn in this slot before and was sent.
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
        """Delete the sealed bytes of a slot after a clear answer, and note the answer in the ledger line.

        Parameters
        ----------
        slot : str
            Slot of the report.
        how : str
            The answer, such as "held".
        """

        def change(state: dict[str, Any]) -> None:
            state["waiting"].pop(slot, None)
            _mark(state, slot, how)

        self._change(change)

    def code_refused(self, slot: str, sealed: str | None = None) -> None:
        """Delete the sealed bytes after the server refused the code; keep the reports, to be sealed under another code.

        Parameters
        ----------
        slot : str
            Slot of the report.
        sealed : str, optional
            The refused bytes: nothing changes if another command has sealed the report again meanwhile.
            By default the bytes that are stored now.
        """

        def change(state: dict[str, Any]) -> None:
            waiting = state["waiting"].get(slot, {})
            if sealed is None or waiting.get("sealed") == sealed:
                waiting.pop("sealed", None)
                _mark(state, slot, "code refused")

        self._change(change)

    def reseal(self, slot: str, sealed: str) -> str:
        """Store the same reports sealed with another code; return the bytes to send, those stored before if any.

        Parameters
        ----------
        slot : str
            Slot of the report.
        sealed : str
            The sealed bytes to store and send.

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
            result = change(state)
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
        return result

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
    """Read the unanswered reports by slot: level, messages to the analyzer, and sealed bytes if they can be sent."""
    return {slot: fields.object(slot, _report) for slot in fields.names()}


def _report(fields: Fields) -> dict[str, Any]:
    inners = fields.list_of("inners", 1, MOST_COLUMNS * MOST_BITS)  # a message for each piece of each column
    for message in inners:
        if not isinstance(message, str):
            fields.refuse("inners", message, "a list of texts")
    sealed = {"sealed": fields.line("sealed", LONGEST)} if fields.has("sealed") else {}
    return {"level": fields.whole("level", 0, 255), "inners": inners} | sealed


@contextlib.contextmanager
def _locked(path: Path) -> Generator[None]:
    """Hold a lock on a file, so that two commands on one device do not both draw."""
    with open(path, "a", encoding="utf-8") as stream:
        hold(stream.fileno())
        yield


# Links, and HTTP with the standard library: read a task, send a report until it is held.

TIMEOUT = 30.0
WHOLE = 120.0
"""Number of seconds within which a complete answer must arrive.

The separate limit `TIMEOUT` starts anew with every byte of a slow server.
"""
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
    """Error: the task accepts no further answers."""


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
        """Return the link in a text.

        Raises
        ------
        InvalidInput
            If the text is no link to a task.
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
        code = read_code(parts.fragment) if parts.fragment else None
        if parts.fragment and code is None:
            raise InvalidInput(
                "the code of the link (after #) is damaged: it has 22 letters, digits, - and _, or three groups of four"
            )
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        return cls(f"{parts.scheme}://{host}{f':{port}' if port else ''}{base}", name, code)

    @property
    def without_code(self) -> str:
        """The link to the survey page, without the code."""
        return f"{self.server}/t/{self.name}"


def fetch_task(link: Link) -> PostedTask:
    """Read the task that a link names; its bytes must have the hash in the link.

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


def fetch_notice(link: Link, task: PostedTask) -> Notice | None:
    """Return the notice of a later deadline of a task, signed by the task's shuffler; None if there is none."""
    status, body, _ = _ask(link.server, "GET", f"/v1/{link.name}/notice", b"")
    return Notice.parse(body, task) if status == 200 else None


def send(link: Link, task: PostedTask, sealed: bytes, *, patience: float) -> Verdict:
    """Send a sealed report, and the same bytes again until there is a clear answer.

    Parameters
    ----------
    link : Link
        Link to the task.
    task : PostedTask
        The report's task.
    sealed : bytes
        The report.
    patience : float
        Number of seconds for which sending is repeated after 409, 503 and broken connections.

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
"""Status, body, and the seconds of the Retry-After header of a reply."""


def _ask(server: str, method: str, path: str, body: bytes) -> Reply:
    """Send one request, and give up after `WHOLE` seconds, since a hostile server could send a byte now and then."""
    replies: queue.SimpleQueue[Reply | BaseException] = queue.SimpleQueue()

    def work() -> None:
        try:
            replies.put(_exchange(server, method, path, body))
        except BaseException as error:
            replies.put(error)

    threading.Thread(target=work, daemon=True).start()
    try:
        reply = replies.get(timeout=WHOLE)
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


LONGEST_PERSON = 100
SENT = "sent, no answer yet"
RESEALED = (
    "The report that was drawn before is sealed again for this code. An honest shuffler counts it once. A dishonest "
    "one could hand it over twice; then the analyzer knows which report is yours, and only your epsilon0 protects you."
)
"""Warning before a device seals a content again for another code."""
ENDS = {Verdict.HELD: "held", Verdict.UNREADABLE: "could not be opened", Verdict.UNFIT: "did not fit the task"}


class Client:
    """One person's answer to one task, drawn and sealed once.

    Parameters
    ----------
    task : PostedTask
        The task, as it was read.
    random : Randomness, optional
        `secure_random()` by default.

    Raises
    ------
    InvalidInput
        If the task's dummies do not make its promises true.
    """

    def __init__(self, task: PostedTask, random: Randomness | None = None) -> None:
        certify_task(task)
        self.task = task
        self._random = secure_random() if random is None else random
        self._inners: list[bytes] | None = None
        self._level = 0

    def draw(self, answers: Sequence[int], level: int) -> list[bytes]:
        """Draw one report for each column and seal each to the analyzer; a second call is refused.

        Parameters
        ----------
        answers : sequence of int
            For each question the answer's code, from `answer_code`.
        level : int
            Index of the level, from 0.

        Returns
        -------
        list of bytes
            The sealed inner messages.

        Raises
        ------
        InvalidInput
            If there is no such level or answer, or this client has drawn before.
        """
        draft = self.task.draft
        if self._inners is not None:
            raise InvalidInput("this client has drawn its report; a report is drawn once, and sent again as it is")
        level = whole_number(level, "level", 0, len(draft.levels) - 1)
        if len(answers) != len(draft.questions):
            raise InvalidInput(f"this task has {len(draft.questions)} questions; got {len(answers)} answers")
        sealer, inners = Sealer(draft.analyzer_key), list[bytes]()
        for place, report in enumerate(self._reports(answers, level)):
            pieces = pieces_of(draft.columns[place].family, report, self._random)
            inners += [seal_inner(self.task, place, piece, sealer) for piece in pieces]
        self._inners = inners
        self._level = level
        return self._inners

    def _reports(self, answers: Sequence[int], level: int) -> list[int]:
        """Return one drawn report for each column."""
        questions = zip(self.task.draft.questions, self.task.draft.levels[level].draw, answers, strict=True)
        return [
            draw_report(question.family, keep, record, self._random)
            for question, keep, answer in questions
            for record in question.records(answer)
        ]

    def seal(self, answers: Sequence[int], level: int, code: bytes | None = None) -> bytes:
        """Draw the reports and seal them to the shuffler.

        Parameters
        ----------
        answers : sequence of int
            For each question the answer's code, from `answer_code`.
        level : int
            Index of the level, from 0.
        code : bytes or None
            The one-time code, 16 bytes, exactly if the task's admission is by codes.

        Returns
        -------
        bytes
            `task.size` bytes to send, repeatedly if necessary.

        Raises
        ------
        InvalidInput
            As for `draw`, or if a code is missing or not accepted.
        """
        check_code(self.task, code)
        return outer_of(self.task, self.draw(answers, level), level, code)


def outer_of(task: PostedTask, inners: Sequence[bytes], level: int, code: bytes | None) -> bytes:
    """Return drawn reports sealed to the shuffler: `task.size` bytes.

    Parameters
    ----------
    task : PostedTask
        The task.
    inners : sequence of bytes
        The messages sealed to the analyzer, column by column.
    level : int
        Index of the level, from 0.
    code : bytes or None
        The one-time code, 16 bytes, exactly if the task's admission is by codes.
    """
    return seal_outer(task, level, code, inners, Sealer(task.shuffler_key))


def check_code(task: PostedTask, code: bytes | None) -> None:
    """Refuse a missing code if the task needs one, and any code if it does not."""
    if task.has_codes and (code is None or len(code) != CODE):
        raise InvalidInput("this task needs the one-time code of an invitation: the part of the link after #")
    if not task.has_codes and code is not None:
        raise InvalidInput("this task takes no one-time code; use the link without the part after #")


def answer_code(question: SurveyQuestion, answer: str) -> int:
    """Return the code of an answer given in words.

    Parameters
    ----------
    question : SurveyQuestion
        The question.
    answer : str
        A choice in any of the task's languages (capitals do not matter), or a number on the question's grid. Of several
        options all that are checked, with a semicolon between them, or ``-`` for none; of a table a row and a column,
        with a slash between them.

    Raises
    ------
    InvalidInput
        If it is none of the question's answers.
    """
    if question.kind == "several":
        whole = _plain(answer) in {_plain(text) for choice in question.choices for text in choice.values()}
        parts = [answer] if whole else [] if answer.strip() == "-" else answer.split(";")
        places = {_choice(question, question.choices, part) for part in parts}
        if question.optional and len(places) > 1 and len(question.choices) - 1 in places:
            raise InvalidInput(
                f"{_question_text(question)} is either left out or answered; got {shown(answer)}: leave out "
                f"{shown(next(iter(question.choices[-1].values())))}, or give it alone"
            )
        return sum(1 << place for place in places)
    if question.kind != "number":
        return _choice(question, question.choices, answer)
    try:
        value = float(answer)
        place = round((value - question.low) / question.step)
    except (ValueError, OverflowError):
        raise InvalidInput(f"the answer to {_question_text(question)} must be a number; got {shown(answer)}") from None
    if not 0 <= place < question.answers or abs(question.low + place * question.step - value) > 1e-6 * question.step:
        raise InvalidInput(
            f"the answer to {_question_text(question)} must be a number from {question.low:g} to {question.high:g} in "
            f"steps of {question.step:g}; got {shown(answer)}"
        )
    return place


def _choice(question: SurveyQuestion, choices: Sequence[Text], answer: str) -> int:
    """Return the index of an answer among texts, in any language."""
    wanted = _plain(answer)
    for place, choice in enumerate(choices):
        if wanted in map(_plain, choice.values()):
            return place
    if question.kind == "dictionary":
        number = len(choices) - 1 - question.optional
        other = shown(next(iter(choices[number].values())))
        raise InvalidInput(
            f"{shown(answer)} is none of the {number:,} words of {_question_text(question)}; look it up in the list, "
            f"or give {other}"
        )
    choice_names = ", ".join(repr(next(iter(choice.values()))) for choice in choices[:20])
    more = f" and {len(choices) - 20} more" if len(choices) > 20 else ""
    how = "; give those that fit, with a semicolon between them, or - for none" if question.kind == "several" else ""
    raise InvalidInput(f"the answers to {_question_text(question)} are {choice_names}{more}{how}; got {shown(answer)}")


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split()).casefold()


def level_named(task: PostedTask, name: str) -> int:
    """Return the index of the level with this name in any of the task's languages."""
    wanted = _plain(name)
    for place, level in enumerate(task.draft.levels):
        if wanted in map(_plain, level.name.values()):
            return place
    level_names = ", ".join(repr(next(iter(level.name.values()))) for level in task.draft.levels)
    raise InvalidInput(f"the levels of this task are {level_names}; got {shown(name)}")


class Device:
    """A device that answers tasks: its state file keeps each drawn report until the shuffler has it.

    Parameters
    ----------
    state : DeviceState
        The device's file.
    person : str
        Name of the person who answers, where several people share a device; each draws once. One line of at most 100
        letters, which the state file keeps.
    say : callable
        Called with `RESEALED` before a report is sent that was sealed for another code before; by default it warns.

    Raises
    ------
    InvalidInput
        If the person's name is longer, or is not one line of text.
    """

    def __init__(self, state: DeviceState, person: str = "", say: Callable[[str], None] = warnings.warn) -> None:
        if person:
            Fields({"person": person}, "who answers").line("person", LONGEST_PERSON)
        self.state, self.person, self._say = state, person, say

    def spent(self, organizer: str) -> dict[str, Any]:
        """Return the sums of the local budgets that this person has sent to an organizer from this device.

        Sums are valid guarantees by basic composition.
        """
        lines = [line for line in self.state.ledger(organizer) if line["slot"].partition("/")[2] == self.person]
        totals = {
            name: float(sum((Decimal(repr(line[name])) for line in lines), Decimal(0)))
            for name in ("epsilon0", "promise", "delta")
        }
        return {"organizer": organizer, "answers": len(lines)} | totals

    def waits(self, task: PostedTask) -> bool:
        """Return whether a report of this person was drawn and has no clear answer yet."""
        return self.state.waiting(self._slot(task)) is not None

    def prepare(self, task: PostedTask, answers: Sequence[int], level: int, code: bytes | None) -> bytes:
        """Return the sealed bytes to send: those drawn before, if there are any; else drawn now and stored first.

        Parameters are as for `Client.seal`.
        """
        slot = self._slot(task)
        check_code(task, code)
        waiting = self.state.waiting(slot)
        if waiting is None:
            client = Client(task)
            inners = client.draw(answers, level)
            kept: dict[str, Any] = {"level": level, "inners": [to_base64(inner) for inner in inners]}
            kept["sealed"] = to_base64(outer_of(task, inners, level, code))
            waiting = self.state.keep(slot, kept, self._line(task, level, slot))
        if "sealed" not in waiting:
            self._say(RESEALED)
            inners = [_bytes(text) for text in waiting["inners"]]
            sealed = to_base64(outer_of(task, inners, waiting["level"], code))
            return _bytes(self.state.reseal(slot, sealed))
        return _bytes(waiting["sealed"])

    def answer(self, link: Link, task: PostedTask, answers: Sequence[int], level: int, *, patience: float) -> Verdict:
        """Draw and store a report, and send the same bytes until there is a clear answer.

        Parameters
        ----------
        link : Link
            Address of the task, with the one-time code.
        task : PostedTask
            The task that was read there.
        answers, level
            As for `Client.draw`; without effect if this person has drawn before.
        patience : float
            Number of seconds for which sending is repeated.

        Returns
        -------
        Verdict
            The shuffler's answer.

        Raises
        ------
        InvalidInput
            If the task is not open, or no clear answer came: the report is kept, and the next call sends it again.
        """
        sealed = self.prepare(task, answers, level, link.code)
        try:
            verdict = send(link, task, sealed, patience=patience)
        except TaskClosed:  # an earlier attempt may have arrived
            self.state.answered(self._slot(task), "the task closed before a clear answer")
            raise
        if verdict is Verdict.CODE_REFUSED:
            self.state.code_refused(self._slot(task), to_base64(sealed))
        else:
            self.state.answered(self._slot(task), ENDS[verdict])
        return verdict

    def _slot(self, task: PostedTask) -> str:
        return f"{task.id}/{self.person}" if self.person else task.id

    def _line(self, task: PostedTask, level: int, slot: str) -> dict[str, Any]:
        from shuffledp.collection.promise import spent_by_answering  # with the accountant, which takes its time

        draft = task.draft
        epsilon0, promise = spent_by_answering(draft, level)
        return {
            "id": task.id,
            "slot": slot,
            "organizer": draft.organizer,
            "epsilon0": epsilon0,
            "promise": promise,
            "delta": draft.delta,
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            "state": SENT,
        }


def certify_task(task: PostedTask) -> tuple[float, ...]:
    """Return the certified floor of each level, cached for the process; refuse a task whose promises do not hold."""
    return _certified(task.data)


@lru_cache(maxsize=64)
def _certified(data: bytes) -> tuple[float, ...]:
    from shuffledp.collection.promise import check_floor  # with the accountant, which takes its time

    task = PostedTask.parse(data)
    task.check_keys()
    return check_floor(task.draft)


def _question_text(question: SurveyQuestion) -> str:
    return repr(next(iter(question.text.values())))


def _bytes(text: object) -> bytes:
    data = from_base64(text) if isinstance(text, str) else None
    if data is None:
        raise InvalidInput("the file of answers is damaged: a report in it is no base64url text")
    return data
