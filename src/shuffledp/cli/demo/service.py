"""The steps of `demo collection`: a whole collection on this machine, with a real service and deliberate failures."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from shuffledp.cli.demo.clients import (
    HOURS,
    NO_ANSWER,
    Deliveries,
    DemoPerson,
    answer_and_die,
    answer_in_browser,
    chromium_path,
    invite,
    sealed_reports,
    spoilt_reports,
    strangers_reports,
)
from shuffledp.cli.demo.table import EDUCATIONS
from shuffledp.collection.analyzer import Opened, open_batch
from shuffledp.collection.batch import AnalyzerKey, Verdict
from shuffledp.collection.client import Link, TaskClosed, certify_task, fetch_task, send
from shuffledp.collection.closing import close_task
from shuffledp.collection.codes import code_hash, draw_codes
from shuffledp.collection.fields import write_time
from shuffledp.collection.promise import check_crowd, check_floor
from shuffledp.collection.release import write_release
from shuffledp.collection.release_page import release_document
from shuffledp.collection.sealing import Opener, new_identity, new_private
from shuffledp.collection.serve import wait_for_deletion
from shuffledp.collection.store import Store
from shuffledp.collection.survey import draft_of_survey
from shuffledp.collection.task import Draft, PostedTask
from shuffledp.collection.verify import verify
from shuffledp.errors import ShuffleDPError
from shuffledp.numerics.randomness import secure_random

# A service in a process of its own, for demonstrations, benchmarks and tests: started, killed, and started again.

_COMMAND = "from shuffledp.cli import main; main()"
_LAST_BYTES = 4096


class ServiceProcess:
    """A process that runs `shuffledp serve` on the loopback address.

    Parameters
    ----------
    store : Path
        The SQLite file.
    log : Path, optional
        File for stderr; beside the store by default.
    """

    def __init__(self, store: Path, log: Path | None = None) -> None:
        self.store, self.log = store, log or store.with_suffix(".log")
        self._port = 0
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        """Address of the running service, the same after a restart."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        """Process number of the running service."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start the service, and wait until it accepts connections.

        Raises
        ------
        ShuffleDPError
            If the service ends instead; the message is the service's.
        """
        words = ["serve", "--store", str(self.store), "--port", str(self._port)]
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _COMMAND, *words], stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if "http://" not in line:
            self.kill()
            with open(self.log, "rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - _LAST_BYTES))
                last = log.read(_LAST_BYTES).decode(errors="replace").splitlines()[-1:]
            raise ShuffleDPError(f"the service did not start: {' '.join(last)}")
        self._port = int(line.split("http://")[1].split()[0].rpartition(":")[2])

    def kill(self) -> None:
        """End the process with SIGKILL, as a failing machine would, and wait until it is gone."""
        self._end(lambda process: process.kill())

    def stop(self) -> None:
        """Ask the process to end, and wait until it has."""
        self._end(lambda process: process.terminate())

    def _end(self, how: Callable[[subprocess.Popen[str]], None]) -> None:
        if self._process is not None:
            how(self._process)
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None


@contextlib.contextmanager
def running(store: Path, log: Path | None = None) -> Generator[ServiceProcess]:
    """Start a service, and stop it at the end of the block.

    Parameters
    ----------
    store : Path
        The SQLite file.
    log : Path, optional
        File for stderr; beside the store by default.
    """
    service = ServiceProcess(store, log)
    try:
        service.start()
        yield service
    finally:
        service.stop()


IN_BROWSER = 3
INSIDERS, STRANGERS = 8, 12
"""Number of senders of invalid reports: people with a code of their own, and people without one."""
_SURVEY = """
title = "Working life"
organizer = "Institute of labour"
contact = "survey@example.org"
privacy_notice = "https://example.org/privacy"
delta = {delta!r}
opens = {opens}
closes = {closes}
expires = {expires}
at_least = {at_least}
stop_at = {stop_at}
people = {people}
accept_one_shuffler = true
[operated_by]
analyzer = "Institute of labour"
shuffler = "Works council"
page = "Public library"
[[questions]]
text = "What is the highest school or degree that you finished?"
choices = {choices}
[[questions]]
text = "How many hours do you work in a week?"
low = {low}
high = {high}
step = 1
"""


@dataclass
class Held:
    """A completed collection, from the first invitation to the published release."""

    clients: int
    truths: list[list[float]] = field(default_factory=list[list[float]])
    """True values among the people who answered honestly: shares of the choices, and the mean."""
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    opened: Opened | None = None
    in_browser: int = 0
    browser: str = "chromium is not installed, so nobody answered in a browser"
    kept: int = 0
    """Number of reports on disk after the service was killed."""
    acknowledged: int = 0
    """Number of reports whose senders knew at the kill that they were held."""
    again: int = 0
    """Number of clients that had to send once more."""
    insiders: int = 0
    strangers: int = 0
    checks: int = 0

    @contextlib.contextmanager
    def stage(self, name: str) -> Generator[None]:
        """Measure the time of a stage of the work, in seconds."""
        since = time.monotonic()
        yield
        self.seconds[name] = round(time.monotonic() - since, 3)

    @property
    def release(self) -> Opened:
        """The release made from the opened batch."""
        assert self.opened is not None
        return self.opened


def hold(folder: Path, clients: int, delta: float, tell: Callable[[str], None], *, browser: bool = True) -> Held:
    """Hold a collection from draft to published release, and return a record of it.

    Parameters
    ----------
    folder : Path
        An empty folder for all files.
    clients : int
        Number of people who are invited, at least 40.
    delta : float
        Central delta of the promises.
    tell : callable
        Called with a sentence about each step as soon as it is done.
    browser : bool
        Whether some people answer in Chromium, where it is installed.

    Raises
    ------
    ShuffleDPError
        If the collection does not keep one of its promises.
    """
    held, random = Held(clients), secure_random()
    with held.stage("draft"):
        draft, key = _draft(clients, delta)
    dummies = " and ".join(str(column.dummies.count) for column in draft.columns)
    tell(f"The organizer drafts two questions; the promises need {dummies} dummies.")
    with contextlib.closing(Store(folder / "shuffledp.db")) as store:
        with held.stage("post"):
            task = _post(draft, store)
            codes = draw_codes(clients)
            store.add_codes(task.digest, [code_hash(code) for code in codes])
            people = invite(_counts(draft), codes, random)
        tell(f"The shuffler certifies and posts the task; {clients} people get a code each.")
        with running(store.path) as server:
            with held.stage("answers"):
                _answers(held, server, store, task, people, tell, browser=browser)
            with held.stage("close"):
                batch = _close(server, store, task)
            tell("Closed: the dummies are drawn, the batch is handed over, and the store is empty.")
            with held.stage("open"):
                held.opened = open_batch(batch, key)
                release = write_release(release_document(held.opened), task, key.identity)
            with held.stage("verify"):
                _publish(held, server, store, task, release, batch)
            tell(f"The release is signed, published, read back, and checked without a key: {held.checks} checks.")
    _check(held, task)
    return held


def _counts(draft: Draft) -> list[int]:
    """Return the number of people at each level, as planned in the draft."""
    return [level.planned for level in draft.levels]


def _draft(clients: int, delta: float) -> tuple[Draft, AnalyzerKey]:
    """Return the draft and the analyzer's key, as `task draft` makes them."""
    now = int(time.time())
    survey = _SURVEY.format(
        delta=delta,
        opens=write_time(now - 60),
        closes=write_time(now + 3600),
        expires=write_time(now + 86400),
        at_least=min(100, clients // 2),
        stop_at=max(10_000, clients),
        people=clients,
        choices=[*EDUCATIONS, NO_ANSWER],
        low=HOURS[0],
        high=HOURS[1],
    )
    private, identity = new_private(), new_identity()
    draft = draft_of_survey(survey.encode("utf-8"), AnalyzerKey(private, identity, bytes(32)))
    return draft, AnalyzerKey(private, identity, hashlib.sha256(draft.data).digest())


def _post(draft: Draft, store: Store) -> PostedTask:
    """Post the draft in the store, as `task post` does, and return the task."""
    floors, private = check_floor(draft), new_private()
    check_crowd(draft)
    task = PostedTask.post(draft, Opener(private).public, store.identity())
    store.post(task, private, floors, int(time.time()))
    return task


def _answers(
    held: Held,
    server: ServiceProcess,
    store: Store,
    task: PostedTask,
    people: list[DemoPerson],
    tell: Callable[[str], None],
    *,
    browser: bool,
) -> None:
    """Let everybody answer, kill one client and the service on the way, and send twenty invalid reports."""
    served = fetch_task(Link(server.url, task.id))
    certify_task(served)
    _truths(held, people[INSIDERS:])
    insiders, honest, victim = people[:INSIDERS], people[INSIDERS], people[INSIDERS + 1]
    rest = people[INSIDERS + 2 :]
    early = _in_browser(held, server, task, rest[:IN_BROWSER], browser=browser)
    tell(f"{held.browser[0].upper()}{held.browser[1:]}.")
    words = [list(EDUCATIONS)[victim.answers[0]], str(victim.hours)]
    options = [
        "--level",
        task.draft.levels[victim.level].name["en"],
        *(part for word in words for part in ("--answer", word)),
    ]
    _expect(answer_and_die(server.url, task, victim, options, store.path.parent), Verdict.HELD)
    tell("A client is killed before it learns that its report is held; its device sends the same bytes again.")
    junk, own = spoilt_reports(task, insiders, honest)
    reports = [*junk, own, *sealed_reports(task, [person for person in rest if person not in early])]
    secrets.SystemRandom().shuffle(reports)
    with Deliveries(server.url, task, reports) as sent:
        sent.wait(len(reports) // 2)
        server.kill()
        held.acknowledged = len(sent.verdicts) + len(early) + 1
        held.kept = store.held(task.digest)
        server.start()
        sent.wait(len(reports))
    unsure = IN_BROWSER - len(early) if browser else 0  # the browser may have sent what it could not confirm
    refused = sum(verdict is Verdict.CODE_REFUSED for verdict in sent.verdicts.values())
    if any(verdict not in (Verdict.HELD, Verdict.CODE_REFUSED) for verdict in sent.verdicts.values()) or (
        refused > unsure
    ):
        raise ShuffleDPError("the service refused a report that it must hold")
    held.again, held.insiders, held.strangers = len(sent.again), len(insiders), STRANGERS
    tell(
        f"The service is killed (SIGKILL) after {held.acknowledged} acknowledged reports, of which none is lost, and "
        f"started again; {held.again} clients send the same bytes once more."
    )
    for sealed, due in strangers_reports(task, STRANGERS):
        _expect(send(Link(server.url, task.id), task, sealed, patience=60.0), due)
    tell(f"{len(insiders)} invited people and {STRANGERS} without an invitation send junk; the latter are refused.")


def _truths(held: Held, honest: Sequence[DemoPerson]) -> None:
    """Store the true values, which no real collection would know."""
    shares = [sum(person.answers[0] == place for person in honest) / len(honest) for place in range(len(EDUCATIONS))]
    held.truths = [[*shares, 0.0], [sum(person.hours for person in honest) / len(honest)]]


def _in_browser(
    held: Held, server: ServiceProcess, task: PostedTask, people: Sequence[DemoPerson], *, browser: bool
) -> list[DemoPerson]:
    path = chromium_path()
    if path is None or not browser:
        if path is not None:
            held.browser = "nobody was asked to answer in a browser"
        return []
    done = answer_in_browser(path, server.url, task, people)
    held.in_browser = len(done)
    held.browser = f"{len(done)} of {len(people)} people answer on the survey page in headless chromium"
    if len(done) < len(people):
        held.browser += ", which was too slow for the others: their devices send the report"
    return done


def _close(server: ServiceProcess, store: Store, task: PostedTask) -> bytes:
    """Close the task as `task close` does, check that further reports are refused, and return the batch."""
    batch = close_task(store, task.digest).read_bytes()
    wait_for_deletion(store, "the batch is written")
    with contextlib.suppress(TaskClosed):
        send(Link(server.url, task.id), task, bytes(task.size), patience=60.0)
        raise ShuffleDPError("a task that is closed takes reports")
    return batch


def _publish(held: Held, server: ServiceProcess, store: Store, task: PostedTask, release: bytes, batch: bytes) -> None:
    """Publish the release as `task publish` does, read it over HTTP, and check it as `task verify` does."""
    store.publish(task.digest, release)
    held.checks = len(verify(task, read_release(server.url, task), batch).checks)


def read_release(server: str, task: PostedTask) -> bytes:
    """Return the published release, read over HTTP."""
    with urllib.request.urlopen(f"{server}/v1/{task.id}/release", timeout=60) as answer:
        return answer.read()


def _expect(verdict: Verdict, due: Verdict) -> None:
    if verdict is not due:
        raise ShuffleDPError(f"the service answers {verdict.name} to a report where {due.name} is due")


def _check(held: Held, task: PostedTask) -> None:
    """Check that everybody's report is held once, no acknowledged report is lost, and all invalid ones are detected."""
    opened, pieces = held.release, sum(column.family.pieces for column in task.draft.columns)
    manifest = opened.batch.manifest
    if held.kept < held.acknowledged:
        raise ShuffleDPError(f"of {held.acknowledged} acknowledged reports {held.kept} were left after the kill")
    if manifest.n != held.clients or list(manifest.counts) != _counts(task.draft):
        raise ShuffleDPError(f"{held.clients} people answered, but the batch counts {manifest.counts}")
    if opened.junk_seen != held.insiders * pieces:
        raise ShuffleDPError(f"{held.insiders * pieces} rows are junk, but the analyzer saw {opened.junk_seen}")
