"""Each command that spends is stopped at each of its writes: what is said to be spent and to exist is, and no more."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from shuffledp.ledger import Ledger
from shuffledp.shell.output import LEFT
from tests.collection.batches import analyzer_key
from tests.collection.test_spending import collected

FULL = OSError(28, "No space left on device")
LEDGER = ("--ledger", "p.ledger")
END = ("--epsilon0", 1, "--delta", 1e-4)
MEAN = ("mean", "people.csv", "--value", "hours", "--low", 0, "--high", 80, *END, *LEDGER)
TRAIN = ("train", "people.csv", "--label", "vote", "--features", "hours:0:80", "--unit", "client", "--seen", "sum",
         "--rounds", 2, *END, "--classes", "no,yes", "--holdout", 0, *LEDGER)  # fmt: skip
COMMANDS: dict[str, tuple[tuple[object, ...], tuple[str, ...]]] = {
    "mean": ((*MEAN, "--report", "page.html", "--csv", "mean.csv"), ("page.html", "mean.csv")),
    "mean --json": ((*MEAN, "--report", "page.html", "--json"), ("page.html",)),
    "mean --by": ((*MEAN, "--by", "vote", "--groups", "yes,no", "--csv", "mean.csv", "--json"), ("mean.csv",)),
    "release": (
        ("release", "people.csv", "--ask", "mean hours 0 80", *END, *LEDGER, "--report", "page.html"),
        ("page.html",),
    ),
    "train": ((*TRAIN, "--model-out", "m.npz", "--report", "page.html"), ("m.npz", "page.html")),
    "open": (
        ("open", "lunch.batch", "--key", "lunch.key", *LEDGER, "--report", "page.html"),
        ("page.html", "lunch.release"),
    ),
    "train --checkpoint": ((*TRAIN, "--model-out", "m.npz", "--checkpoint", "run.npz", "--json"), ("m.npz",)),
}


class Injected:
    """Fails one of the writes of a command: the number `at`, before or after it is done.

    Parameters
    ----------
    at : int
        From 0; -1 for none.
    failure : BaseException
        What is raised.
    after : bool
        Whether the write is done before.
    """

    def __init__(self, at: int, failure: BaseException, *, after: bool) -> None:
        self.at, self.failure, self.after = at, failure, after
        self.met: list[str] = []

    def around(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def injected(*given: Any, **named: Any) -> Any:
            self.met.append(name)
            hit = len(self.met) - 1 == self.at
            if hit and not self.after:
                raise self.failure
            found = call(*given, **named)
            if hit:
                raise self.failure
            return found

        return injected


@pytest.fixture
def stopped(run, tmp_path, monkeypatch, capsys):
    """Run a command in a folder of its own, with one write failing."""
    rows = 60
    pl.DataFrame({"hours": [20.0, 40.0] * rows, "vote": ["yes", "no"] * rows}).write_csv(tmp_path / "people.csv")
    Ledger(tmp_path / "p.ledger", make=True).close()
    task, batch, _ = collected()
    (tmp_path / "lunch.batch").write_bytes(batch)
    (tmp_path / "lunch.key").write_bytes(analyzer_key(task).document())
    given = sorted(tmp_path.iterdir())

    def call(command: tuple[object, ...], injected: Injected, folder: Path | None = None) -> Any:
        if folder is None:
            folder = tmp_path / f"{injected.at}-{injected.after}-{type(injected.failure).__name__}"
            folder.mkdir()
            for file in given:
                shutil.copy(file, folder)
        with monkeypatch.context() as patch:
            patch.chdir(folder)
            patch.setattr(os, "write", injected.around("write", os.write))
            patch.setattr(os, "fsync", injected.around("fsync", os.fsync))
            patch.setattr(os, "replace", injected.around("replace", os.replace))
            patch.setattr(Ledger, "enter", _apart_from_errors(injected, Ledger.enter))
            patch.setattr(sys.stdout, "write", injected.around("stdout", sys.stdout.write))
            return folder, run(*command)

    return call


def _apart_from_errors(injected: Injected, enter: Callable[..., int]) -> Callable[..., int]:
    """A full disk is SQLite's own affair; a signal may come around it."""
    return injected.around("enter", enter) if isinstance(injected.failure, KeyboardInterrupt) else enter


def check(folder: Path, result: Any, outputs: tuple[str, ...], failure: BaseException, *, shows: bool) -> None:
    """What the one line says is what is there."""
    (line,) = result.err.splitlines()
    assert line.startswith("error: "), line
    assert result.status == (130 if isinstance(failure, KeyboardInterrupt) else 2), line
    with Ledger(folder / "p.ledger") as ledger:
        entries = len(ledger.entries())
    assert ("entry 1 of the ledger p.ledger stands, so it is spent" in line) == (entries == 1), line
    named = re.findall(r"stands in ([^;]*)", line)
    stand = set() if not named else {Path(name).name for name in named[-1].split(", ")}
    there = {name for name in outputs if (folder / name).exists()}
    assert stand == there, line
    assert all((folder / name).stat().st_size > 50 for name in there)
    assert not list(folder.glob(".*.part"))
    assert ("run.npz keeps the run" in line) == (folder / "run.npz").exists(), line
    if not entries and not there:
        assert line.endswith(("nothing was written", "cannot be written (No space left on device); make room, or name "
                              "another", "cannot be written: No space left on device")), line  # fmt: skip
    if entries and not there and not shows and not result.out and not (folder / "run.npz").exists():
        assert line.endswith("the answer was not shown, and asking again spends again"), line


KINDS = ["full disk", "Ctrl-C before", "Ctrl-C after"]


QUICK = [pytest.param(name, marks=[] if name in ("mean --json", "open") else pytest.mark.slow) for name in COMMANDS]


@pytest.mark.costly
@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("kind", KINDS)
def test_the_last_write_of_each_sort(stopped, name, kind):
    """A full disk for a page was blamed on stdout, and lost the model; Ctrl-C said "nothing was written"."""
    each_write(stopped, name, kind, every=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("kind", KINDS)
def test_each_write(stopped, name, kind):
    each_write(stopped, name, kind, every=True)


def each_write(stopped, name, kind, *, every):  # type: ignore[no-untyped-def]
    command, outputs = COMMANDS[name]
    failure, after = (FULL, False) if kind == "full disk" else (KeyboardInterrupt(), kind.endswith("after"))
    calm = Injected(-1, failure, after=after)
    folder, result = stopped(command, calm)
    assert (result.status, result.err) == (0, "")
    events, answer = list(calm.met), result.out
    assert {"write", "fsync", "replace", "stdout"} <= set(events)
    with Ledger(folder / "p.ledger") as ledger:
        entries = len(ledger.entries())
    once = [at for at, event in enumerate(events) if event != "stdout" or events[at - 1] != "stdout"]
    if not every:
        once = sorted({events[at]: at for at in once}.values())
    for at in once:
        folder, result = stopped(command, Injected(at, failure, after=after))
        shows = events[at] == "stdout" or at > events.index("stdout")
        check(folder, result, outputs, failure, shows=shows)
        last = len(events) - 1 - events[::-1].index("stdout")
        if "the checkpoint run.npz cannot be written" in result.err:  # the run stops, and its last checkpoint goes on
            if (folder / "run.npz").exists():
                _, resumed = stopped((*command, "--resume"), Injected(-1, failure, after=after), folder)
                assert (resumed.status, resumed.err) == (0, "")
                assert json.loads(resumed.out)["stopped"] == "all rounds are done"
                assert {output for output in outputs if (folder / output).exists()} == set(outputs)
                with Ledger(folder / "p.ledger") as ledger:  # a round that was cut short counts twice
                    assert len(ledger.entries()) in (entries, entries + 1)
        elif isinstance(failure, OSError) and events[at] != "stdout" and "entry 1" in result.err and at < last:
            others = {output for output in outputs if f"{output} cannot be written" not in result.err}
            assert {output for output in outputs if (folder / output).exists()} == others
            if "run.npz" not in result.err.partition("cannot be written")[0]:
                assert json.loads(result.out) if answer.startswith("{") else result.out  # the answer is shown


@pytest.mark.costly
def test_a_limit_that_was_set_is_told(stopped):
    """The page fails; the limit stands, and can be set only once."""
    command = ("ledger", "q.ledger", "--limit", "1,1e-6", "--report", "page.html")
    events = Injected(-1, FULL, after=False)
    stopped(command, events)
    for at, event in enumerate(events.met):
        for failure, after in ((FULL, False), (KeyboardInterrupt(), False), (KeyboardInterrupt(), True)):
            if event == "stdout" and events.met[at - 1] == "stdout":
                continue
            folder, result = stopped(command, Injected(at, failure, after=after))
            (line,) = result.err.splitlines()
            made = (folder / "q.ledger").exists()
            assert ("q.ledger holds what was set before that" in line) == made, (event, line)
            assert (str(folder / "page.html") in line.partition("stands in")[2]) == (folder / "page.html").exists()


def test_a_page_that_cannot_be_made_loses_nothing_else(stopped, monkeypatch):
    def broken(*_: object, **__: object) -> str:
        raise RuntimeError("a template")

    monkeypatch.setattr("shuffledp.report.page.render", broken)
    folder, result = stopped(COMMANDS["mean"][0], Injected(-1, FULL, after=False))
    assert result.status == 1
    assert "internal failure (RuntimeError: a template); entry 1 of the ledger p.ledger stands" in result.err
    assert (folder / "mean.csv").exists()
    assert not (folder / "page.html").exists()
    assert "mean" in result.out


def test_outputs_that_cannot_be_opened_cost_nothing(stopped, tmp_path):
    (tmp_path / "taken").mkdir()
    for option in ("--report", "--csv"):
        folder, result = stopped((*MEAN, option, "none/x"), Injected(-2 - len(option), FULL, after=False))
        assert f"{option} none/x cannot be written" in result.error
        with Ledger(folder / "p.ledger") as ledger:
            assert ledger.entries() == []


# ------------------------------------------------------------------ stdout, as other processes leave it


def shuffledp(folder: Path, *arguments: object, before: str = "", **options: Any) -> subprocess.CompletedProcess[bytes]:
    program = f"{before}\nfrom shuffledp.cli import main; main()"
    words = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(words, cwd=folder, stderr=subprocess.PIPE, check=False, **options)


@pytest.fixture
def folder(tmp_path) -> Path:
    pl.DataFrame({"hours": [20.0, 40.0] * 60}).write_csv(tmp_path / "people.csv")
    Ledger(tmp_path / "p.ledger", make=True).close()
    return tmp_path


def entries(folder: Path) -> int:
    with Ledger(folder / "p.ledger") as ledger:
        return len(ledger.entries())


def test_a_closed_stdout_costs_nothing(folder):
    """It was an internal failure (AttributeError) that released nothing, and the entry was spent."""
    ended = shuffledp(folder, *MEAN, preexec_fn=partial(os.close, 1))
    (line,) = ended.stderr.decode().splitlines()
    assert (ended.returncode, line) == (
        2, "error: standard output is closed, so no answer could be shown; nothing was done: open it",
    )  # fmt: skip
    assert entries(folder) == 0


@pytest.mark.costly
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_full_disk_behind_stdout_says_what_is_spent(folder, more):
    with Path("/dev/full").open("w") as full:
        ended = shuffledp(folder, *MEAN, *more, stdout=full)
    (line,) = ended.stderr.decode().splitlines()
    assert line == (
        "error: standard output cannot be written (No space left on device); entry 1 of the ledger p.ledger stands, so "
        "it is spent; part of the answer may have been shown; direct it to a place with room"
    )
    assert entries(folder) == 1


@pytest.mark.costly
def test_a_reader_that_has_gone_is_told_what_is_spent(folder):
    read, write = os.pipe()
    os.close(read)
    ended = shuffledp(folder, *MEAN, stdout=write)
    os.close(write)
    (line,) = ended.stderr.decode().splitlines()
    assert line.startswith("error: the reader of standard output has gone; entry 1 of the ledger p.ledger stands")
    assert (ended.returncode, entries(folder)) == (1, 1)


@pytest.mark.costly
def test_a_polite_kill_says_what_is_spent(folder):
    """SIGTERM right after the entry: it ended without a word."""
    kill = (
        "import os, signal\nfrom shuffledp.ledger import Ledger\nenter = Ledger.enter\n"
        "def entered(*given):\n    enter(*given)\n    os.kill(os.getpid(), signal.SIGTERM)\n"
        "Ledger.enter = entered"
    )
    ended = shuffledp(folder, *MEAN, before=kill, stdout=subprocess.PIPE)
    (line,) = ended.stderr.decode().splitlines()
    assert line == (
        "error: stopped by signal 15; entry 1 of the ledger p.ledger stands, so it is spent; the answer was not shown, "
        "and asking again spends again"
    )
    assert (ended.returncode, ended.stdout, entries(folder)) == (143, b"", 1)


def test_the_library_keeps_nothing_of_commands(tmp_path):
    """Without a command there is nowhere to look, and nothing fails."""
    LEFT.set(None)
    Ledger(tmp_path / "l", make=True).close()
    assert LEFT.get() is None
