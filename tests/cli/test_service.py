"""`serve` and the commands on the shuffler's machine: what they do, and one line for each mistake."""

from __future__ import annotations

import io
import json
import shutil
import socket
import sqlite3
import time
import urllib.error
import urllib.request

import pytest

from shuffledp.cli.demo.service import ServiceProcess, running
from shuffledp.collection import serve as commands
from shuffledp.collection.batch import Batch
from shuffledp.collection.ingest import hold, open_reports
from shuffledp.collection.sealing import Opener
from shuffledp.errors import ShuffleDPError
from tests.collection.service import DAY, Reports, store_at, task_of
from tests.collection.tasks import SHUFFLER, choice, number

OPEN_NOW = {"opens": "2020-01-01T00:00:00Z"}
TASK = task_of(choice(5, 20), number(dummies=11), title={"en": "Lunch [red]"}, at_least=6, **OPEN_NOW)


@pytest.fixture
def shuffler(run, tmp_path):
    """A store in the current folder with a task that has seven answers."""
    store = store_at(tmp_path, TASK, now=int(time.time()), name="shuffledp.db")
    hold(store, [open_reports(b"".join(Reports(TASK).many(7)), TASK, Opener(SHUFFLER))])
    (tmp_path / "lunch.task").write_bytes(TASK.data)
    yield store
    store.close()


def test_the_service_starts_serves_and_stops(tmp_path):
    with running(tmp_path / "new.db") as service:
        with urllib.request.urlopen(service.url + "/healthz") as answer:
            assert answer.read() == b"ok\n"
        with urllib.request.urlopen(service.url + "/") as answer:
            assert json.load(answer) == {"tasks": []}
        second = ServiceProcess(tmp_path / "second.db")
        second._port = int(service.url.rpartition(":")[2])
        with pytest.raises(ShuffleDPError, match=r"port \d+ cannot be listened on \(Address already in use\)"):
            second.start()
        log = service.log
    assert "error" not in log.read_text()
    assert {path.name for path in tmp_path.iterdir()} >= {"new.db", "shuffler.key"}


def test_a_port_in_use_is_one_line(run):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"127.0.0.1 port {port} cannot be listened on" in run("serve", "--port", port).error


def test_a_store_that_is_none_is_one_line(run, tmp_path):
    (tmp_path / "survey.toml").write_text("title = 'no database'\n" * 100)
    assert "cannot be used" in run("serve", "--store", "survey.toml").error
    assert "there is no store missing.db" in run("task", "status", "--store", "missing.db").error


def test_status_says_who_has_answered_and_what_it_is_worth(run, shuffler):
    (facts,) = run("task", "status", "--json").json["tasks"]
    assert [(level["name"], level["held"], level["planned"]) for level in facts["levels"]] == [
        ("careful", 3, 540),
        ("middle", 2, 370),
        ("open", 2, 90),
    ]
    assert (facts["id"], facts["state"], facts["timers_wait"]) == (TASK.id, "open", False)
    assert all(question["half_width"] > 0 for question in facts["questions"])
    shown = run("task", "status")
    assert shown.status == 0
    for words in ("Lunch [red] (open)", "careful", "540", "the answer says nothing yet.", TASK.id):
        assert words in shown.out


def test_closing_hands_over_the_batch_and_empties_the_store(run, shuffler, tmp_path):
    done = run("task", "close", "--yes")
    assert done.status == 0, done.err
    path = tmp_path / "outbox" / f"{TASK.file_name}.batch"
    assert done.out.splitlines() == [
        str(path),
        "“Lunch [red]” is handed over with this file. “The kitchen” opens it with: "
        f"shuffledp open {path.name} --key NAME.key",
    ]
    assert "Lunch [red] (handed over)" in run("task", "status").out
    assert Batch.parse(path.read_bytes()).manifest.n == 7
    assert list(shuffler.reports(TASK.digest)) == []
    assert (
        run("task", "close", "--yes").error
        == f"name a task: 0 are open or closing or restored; closed before, with the batch in {path}"
    )
    assert run("task", "close", TASK.id, "--yes").out == done.out, "named, it says again where the batch is"


def test_a_store_put_back_from_a_copy_is_not_closed_again(run, shuffler, tmp_path):
    assert shuffler.checkpoint()
    shutil.copy(tmp_path / "shuffledp.db", tmp_path / "copy.db")
    assert run("task", "close", "--yes").status == 0
    shuffler.close()
    shutil.copy(tmp_path / "copy.db", tmp_path / "shuffledp.db")
    for words in ((), (TASK.id,)):
        done = run("task", "close", *words, "--yes")
        assert "put back from a copy" in done.error
        assert "the batch holds 7 people, the store 7, of whom it lacks 0" in done.error
    assert "Lunch [red] (restored)" in run("task", "status").out
    assert run("task", "destroy", TASK.id, "--yes").status == 0


def test_after_a_kill_past_the_commit_the_batch_that_lies_there_is_named(run, shuffler, tmp_path, monkeypatch):
    """The operator has seen no path, and `task close` said only that nothing is open."""

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("shuffledp.collection.store.Store.checkpoint", killed)
    assert run("task", "close", "--yes").status == 130
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "outbox" / f"{TASK.file_name}.batch"
    assert str(path) in run("task", "close", "--yes").error
    assert run("task", "close", "lunch.task", "--yes").out.splitlines()[0] == str(path), (
        "named, the task is deleted to the end"
    )
    path.unlink()
    assert run("task", "close", "--yes").error == "name a task: 0 are open or closing or restored"


def test_after_a_kill_past_the_commit_destroying_again_removes_the_files(run, shuffler, tmp_path, monkeypatch):
    path = tmp_path / "outbox" / f"{TASK.file_name}.batch"
    assert run("task", "close", "--yes").status == 0

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("shuffledp.collection.closing._remove_files", killed)
    assert run("task", "destroy", "lunch.task", "--yes").status == 130
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert path.exists()
    assert "there is nothing left to delete" in run("task", "destroy", "lunch.task", "--yes").error
    assert not path.exists(), "and what it says is true"


def test_too_few_are_not_handed_over(run, tmp_path):
    store = store_at(tmp_path, TASK, now=int(time.time()))
    assert "fewer than 6 the answer would mislead" in run("task", "close", "--store", "store.db", "--yes").error
    store.close()


def test_destroying_asks_for_the_task(run, shuffler):
    assert run("task", "destroy").status == 2
    assert run("task", "destroy", "--no-such").error.endswith("; see shuffledp task destroy --help")
    for words in (("no-such",), ("--no-such", "destroy")):
        assert run("task", *words).error.endswith("; see shuffledp task --help")
    assert "has no task" in run("task", "destroy", "A" * 43, "--yes").error
    assert "43 letters" in run("task", "destroy", "lunch", "--yes").error
    assert run("task", "destroy", "lunch.task", "--yes").out == "destroyed: “Lunch [red]”\n"
    assert "there is nothing left to delete" in run("task", "destroy", TASK.id, "--yes").error
    status = run("task", "status").out
    assert "Lunch [red] (destroyed)" in status
    assert "closes" not in status
    assert "with these people" not in status


def test_codes_are_for_an_open_task(run, shuffler):
    assert run("task", "close", "--yes").status == 0
    with pytest.raises(ShuffleDPError, match=r"^codes are for an open task; 'Lunch \[red\]'.* is handed over$"):
        shuffler.add_codes(TASK.digest, [bytes(32)])


def test_the_clock_is_confirmed(run, shuffler):
    with shuffler.writing() as db:
        db.execute("UPDATE task SET tick = tick - ?", (40 * DAY,))
    assert "timers wait" in run("task", "status").out
    assert run("task", "status", "--json").json["tasks"][0]["timers_wait"]
    assert run("task", "clock-ok").out == "timers go on\n"
    assert "timers wait" not in run("task", "status").out


def test_only_a_signed_release_of_the_task_is_published(run, shuffler, tmp_path):
    (tmp_path / "lunch.release").write_bytes(b"SHFR of somebody else")
    assert "name a task: 0 are handed over" in run("task", "publish", "lunch.release").error
    assert run("task", "close", "--yes").status == 0
    assert run("task", "publish", "lunch.release").status == 2
    assert "cannot be read" in run("task", "publish", "missing.release").error
    assert shuffler.release(TASK.digest) is None


def test_a_reader_in_the_way_of_deletion_is_told(run, shuffler, tmp_path, monkeypatch):
    monkeypatch.setattr(commands, "DELETION_SECONDS", 0.0)
    reader = sqlite3.connect(tmp_path / "shuffledp.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM report").fetchall()
    done = run("task", "close", "--yes")
    assert done.status == 2
    assert "the batch is written" in done.err
    assert "deleted reports are still in its file" in done.err
    reader.execute("COMMIT")
    reader.close()


def test_a_full_store_is_one_line(run, shuffler, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("shuffledp.collection.closing.close_task", full)
    assert "database or disk is full" in run("task", "close", "--yes").error


def test_a_full_outbox_is_one_line_and_nothing_is_lost(run, shuffler, tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    assert "No space left on device" in run("task", "close", "--yes").error
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert len(list(shuffler.reports(TASK.digest))) == 7
    assert run("task", "close", "--yes").status == 0


def test_a_closing_beside_a_running_service(shuffler, tmp_path, run):
    with running(tmp_path / "shuffledp.db") as service:
        request = urllib.request.Request(
            f"{service.url}/v1/{TASK.id}/reports", data=Reports(TASK).one(), headers={"content-type": "x"}
        )
        with urllib.request.urlopen(request) as answer:
            assert answer.read() == b"\0"
        assert run("task", "close", "--yes").status == 0
        with pytest.raises(urllib.error.HTTPError, match="410"):
            urllib.request.urlopen(request)


# ------------------------------------------------------------------ asked on a terminal


class Terminal(io.StringIO):
    """What somebody types at a terminal."""

    def isatty(self) -> bool:
        return True


LOSSES = pytest.mark.parametrize(
    ("verb", "loss"),
    [
        ("close", "“Lunch [red]”: 7 answers will be handed over, and nobody can answer any more"),
        ("destroy", "“Lunch [red]”: 7 answers will be lost for good, unopened, with the keys and the batch"),
    ],
)


@LOSSES
def test_on_a_terminal_the_title_is_asked_for(run, shuffler, monkeypatch, verb, loss):
    monkeypatch.setattr("sys.stdin", Terminal("yes\n"))
    refused = run("task", verb, TASK.id)
    assert (refused.status, refused.out) == (2, "")
    assert refused.err == (
        f"{loss}.\nType the title to {verb} it: error: that is not the title, so nothing was done; to {verb} it "
        "without being asked, say --yes\n"
    )
    assert [row.state for row in shuffler.tasks()] == ["open"]
    monkeypatch.setattr("sys.stdin", Terminal("Lunch [red]\n"))
    assert run("task", verb, TASK.id).status == 0
    assert [row.state for row in shuffler.tasks()] != ["open"]


@LOSSES
def test_without_a_terminal_and_without_yes_nothing_is_done(run, shuffler, monkeypatch, verb, loss):
    for stdin in (io.StringIO("Lunch [red]\n"), None):
        monkeypatch.setattr("sys.stdin", stdin)
        assert run("task", verb, TASK.id).error == (
            f"{loss}; there is no terminal to ask at, so nothing was done: to {verb} without being asked, say --yes"
        )
        assert [row.state for row in shuffler.tasks()] == ["open"]
    assert run("task", "close", "--yes").status == 0
    assert run("task", "close", TASK.id).status == 0, "what is handed over loses nothing by saying again where"


@pytest.mark.parametrize("verb", ["close", "destroy"])
def test_with_yes_nobody_is_asked(run, shuffler, monkeypatch, verb):
    monkeypatch.setattr("sys.stdin", Terminal(""))
    done = run("task", verb, TASK.id, "--yes")
    assert (done.status, done.err) == (0, "")
