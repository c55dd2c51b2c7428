"""Mistakes that people make with a collection: one clear line each, exit status 2, and nothing half-made."""

from __future__ import annotations

import os
import socket
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from shuffledp.collection.closing import close_task, destroy_task
from shuffledp.collection.ingest import hold, open_reports
from shuffledp.collection.sealing import Opener
from shuffledp.collection.store import Store
from tests.cli.conftest import Run
from tests.cli.test_collection import SURVEY, ok
from tests.collection.page.server import Server
from tests.collection.service import Reports, codes_of, hash_of, store_at, task_of
from tests.collection.tasks import SHUFFLER, choice, number

LATE = {"opens": "2019-01-01T00:00:00Z", "closes": "2020-01-01T00:00:00Z", "expires": "2020-02-01T00:00:00Z"}
OPEN = {"opens": "2020-01-01T00:00:00Z"}
TASK = task_of(choice(5, 20), number(dummies=11), at_least=6, admission="codes", **OPEN)
CODES = codes_of(7)
ROOT = os.geteuid() == 0


@pytest.fixture
def drafted(run: Run, tmp_path: Path) -> Path:
    """A folder with survey.toml, lunch.draft, lunch.key, lunch.task, and the store shuffledp.db."""
    (tmp_path / "survey.toml").write_text(SURVEY, encoding="utf-8")
    ok(run, "task", "draft", "survey.toml", "--out", "lunch")
    ok(run, "task", "post", "lunch.draft")
    return tmp_path


@pytest.fixture
def held(run: Run, tmp_path: Path) -> Store:
    """A store in the current folder with seven answers to `TASK`, whose file is lunch.task."""
    store = store_at(tmp_path, TASK, now=int(time.time()), name="shuffledp.db")
    store.add_codes(TASK.digest, map(hash_of, CODES))
    hold(store, [open_reports(b"".join(Reports(TASK).one(code=code) for code in CODES), TASK, Opener(SHUFFLER))])
    (tmp_path / "lunch.task").write_bytes(TASK.data)
    return store


SURVEYS = [
    ("a promise that no dummies can keep", "promise = 0.1\n", "promise = 0.0001\n", ", 0.5 would do"),
    ("levels of equal name", 'en = "open"', 'en = "careful"', "same name"),
    ("an unknown family", "choices = ", 'family = "olh:3"\nchoices = ', "family must be"),
    ("an unknown key", "[operated_by]", "surprise = 1\n[operated_by]", "unknown key"),
    ("an unknown admission", "[operated_by]", 'admission = "maybe"\n[operated_by]', "admission"),
    ("a delta that is too large", "delta = 1e-6", "delta = 1e-3", "stop_at"),
    ("a time without a zone", "closes = 2099-01-31T08:00:00+01:00", "closes = 2099-01-31T08:00:00", "zone"),
    ("a closing before the opening", "closes = 2099-01-31T08:00:00+01:00", "closes = 2025-01-31T08:00:00Z", "closes"),
    ("a budget of nothing", "epsilon0 = 0.5", "epsilon0 = 0", "epsilon0"),
    ("a number that is none", "promise = 0.1\n", "promise = nan\n", "'promise' must be a number"),
    ("fewer than two choices", SURVEY[SURVEY.index("choices") :].split("\n")[0], "choices = ['a']", "choices"),
    ("no levels", SURVEY[SURVEY.index("[[levels]]") :], "", "levels"),
    ("a number of 5,000 digits", "epsilon0 = 0.5", "epsilon0 = " + "9" * 5000, "not TOML as expected"),
    ("a nest of lists", "[operated_by]", "nest = " + "[" * 2000 + "]" * 2000 + "\n[operated_by]", "nested too deeply"),
    ("a time before the year 1", "opens = 2026-01-01T08:00:00Z", "opens = 0001-01-01T00:00:00+14:00", "opens lies"),
    ("a time after the year 9999", "2099-01-31T08:00:00+01:00", "9999-12-31T23:59:59-14:00", "closes lies"),
    ("a time without a day", "opens = 2026-01-01T08:00:00Z", "opens = 08:00:00", "opens needs a time of day and"),
    ("a delta that is none", "delta = 1e-6", "delta = nan", "'delta' must be made of"),
    ("an entry that is a day", "at_least = 5", "at_least = 2026-01-01", "'at_least' must be made of"),
]


@pytest.mark.costly("a promise that no dummies can keep")
@pytest.mark.parametrize(("good", "bad", "said"), [row[1:] for row in SURVEYS], ids=[row[0] for row in SURVEYS])
def test_a_survey_that_cannot_be(run, tmp_path, good, bad, said):
    assert good in SURVEY
    (tmp_path / "survey.toml").write_text(SURVEY.replace(good, bad, 1), encoding="utf-8")
    assert said in run("task", "draft", "survey.toml", "--out", "lunch").error
    assert not list(tmp_path.glob("lunch*"))


def test_a_survey_may_begin_with_the_mark_that_some_editors_write(run, tmp_path):
    (tmp_path / "survey.toml").write_text(SURVEY, encoding="utf-8-sig")
    ok(run, "task", "draft", "survey.toml", "--out", "lunch")


LINKS = [
    ("https://example.org/lunch", "looks like"),
    ("ftp://example.org/t/" + "A" * 43, "looks like"),
    ("https://example.org/t/" + "A" * 42, "43 letters"),
    ("https://example.org/t/" + "A" * 43 + "#short", "damaged"),
    ("http://[::1/t/" + "A" * 43, "no link"),
    ("http://127.0.0.1:9/t/" + "A" * 43, "cannot be reached"),
    ("http://127.0.0.1:99999/t/" + "A" * 43, "no link"),
    ("http://no\x01host/t/" + "A" * 43, "cannot be reached"),
    ("http://no host/t/" + "A" * 43, "cannot be reached"),
    ("http://a..b/t/" + "A" * 43, "cannot be reached"),
    ("", "looks like"),
]


@pytest.mark.costly("http://127.0.0.1:99999/t/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA-no link")
@pytest.mark.parametrize(("link", "said"), LINKS)
def test_a_wrong_link(run, link, said):
    assert said in run("answer", link, "--level", "careful", "--answer", "soup").error


@pytest.mark.costly(but=("https://a.org/#x",))
@pytest.mark.parametrize("address", ["example.org", "ftp://example.org", "https://", "https://a.org/#x", "https://a b"])
def test_an_address_that_is_none(run, drafted, address):
    assert "--server must look like" in run("task", "link", "lunch.draft", "lunch.task", "--server", address).error
    assert "--page must look like" in run("task", "link", "lunch.draft", "lunch.task", "--page", address).error
    assert "must" in run("task", "page", "lunch.task", "--server", address).error
    refused = run("task", "codes", "lunch.task", 2, "--links", "codes.csv", "--page", address)
    assert "--page must look like" in refused.error
    assert not list(drafted.glob("codes*"))


def test_a_task_that_is_closed_expired_or_destroyed_takes_no_codes_and_leaves_no_invitations(run, held, tmp_path):
    words = ("task", "codes", "lunch.task", 2, "--links", "codes.csv", "--letters", "letters.html")
    close_task(held, TASK.digest)
    assert "codes are for an open task" in run(*words).error
    destroy_task(held, TASK.digest)
    assert "codes are for an open task" in run(*words).error
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(("codes", "letters", ".codes"))]
    held.close()


def test_codes_go_to_a_store_that_is_there(run, drafted):
    assert "there is no store" in run("task", "codes", "lunch.task", 2, "--links", "c.csv", "--store", "no.db").error
    assert not (drafted / "no.db").exists()
    assert not (drafted / "c.csv").exists()


def test_a_draft_whose_time_has_passed_is_not_posted(run, tmp_path):
    (tmp_path / "late.draft").write_bytes(task_of(choice(5, 400), **LATE).draft.data)
    assert "has passed" in run("task", "post", "late.draft").error
    assert not (tmp_path / "late.task").exists()


def test_an_answer_to_a_task_that_is_closed_or_wrong(run, tmp_path):
    task = task_of(choice(5, 1000), number(dummies=2000), **OPEN)
    words = ("--level", "careful", "--answer", "choice 1", "--answer", "50", "--state", "mine.json")
    with Server(task) as server:
        link = f"{server.url}/t/{task.id}"
        for said, arguments in (
            ("choose a level", ()),
            ("the levels of this task are", ("--level", "brave", "--answer", "choice 1", "--answer", "50")),
            ("2 questions; got 1", ("--level", "careful", "--answer", "soup")),
            ("must be a number", ("--level", "careful", "--answer", "choice 1", "--answer", "many")),
            ("--language must be", (*words, "--language", "it")),
        ):
            assert said in run("answer", link, *arguments).error
        assert "no such task" in run("answer", f"{server.url}/t/{'A' * 43}", *words).error
    assert not (tmp_path / "mine.json").exists(), "nothing was drawn"


def _full(*_: object, **__: object) -> None:
    raise sqlite3.OperationalError("database or disk is full")


STORE_COMMANDS = [
    ("task", "status"),
    ("task", "clock-ok"),
    ("task", "close", "--yes"),
    ("task", "destroy", TASK.id, "--yes"),
    ("task", "codes", "lunch.task", "2", "--links", "codes.csv"),
]


@pytest.mark.parametrize("words", STORE_COMMANDS, ids=lambda words: words[1])
def test_a_full_store_is_one_line_for_every_command(run, held, monkeypatch, words):
    monkeypatch.setattr(Store, "writing", _full)
    monkeypatch.setattr(Store, "tasks", _full if words[1] in ("status",) else Store.tasks)
    assert "database or disk is full" in run(*words).error
    monkeypatch.undo()
    assert len(list(held.reports(TASK.digest))) == 7
    held.close()


def test_a_full_store_posts_nothing(run, drafted, monkeypatch):
    (drafted / "lunch.task").unlink()
    monkeypatch.setattr(Store, "post", _full)
    assert "database or disk is full" in run("task", "post", "lunch.draft").error
    assert not (drafted / "lunch.task").exists()


def test_a_full_disk_beside_the_store_is_one_line(run, drafted, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    for words in (
        ("task", "codes", "lunch.task", "2", "--links", "codes.csv"),
        ("task", "draft", "survey.toml", "--out", "other"),
        ("task", "page", "lunch.task", "--server", "https://example.org"),
    ):
        assert "No space left on device" in run(*words).error
    assert not [path.name for path in drafted.iterdir() if path.name.startswith(("codes", "other", "lunch.html", "."))]


WRONG_FILES: list[tuple[str, Callable[[Path], object]]] = [
    ("cannot be used", lambda path: path.write_text("no database " * 1000)),
    ("cannot be used", lambda path: path.mkdir()),
    ("of something else", lambda path: _database(path)),
]


@pytest.mark.costly(but=("post-text",))
@pytest.mark.parametrize(("said", "make"), WRONG_FILES, ids=["text", "folder", "database"])
@pytest.mark.parametrize("words", [("serve",), ("task", "post", "lunch.draft")], ids=["serve", "post"])
def test_a_store_that_is_none(run, drafted, said, make, words):
    make(drafted / "other.db")
    assert said in run(*words, "--store", "other.db").error
    assert "there is no store" in run("task", "status", "--store", "no.db").error


def _database(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE other (x)")
    db.commit()
    db.close()


@pytest.mark.costly("words1")
@pytest.mark.parametrize("words", [("serve",), ("task", "post", "lunch.draft", "--out", "again.task")])
def test_a_folder_that_is_not_there(run, drafted, words):
    assert "cannot be opened" in run(*words, "--store", "none/shuffledp.db").error


@pytest.mark.skipif(ROOT, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(run, drafted):
    (drafted / "locked").mkdir(mode=0o500)
    assert "cannot be opened" in run("serve", "--store", "locked/shuffledp.db").error


def test_a_damaged_identity(run, drafted):
    (drafted / "shuffler.key").write_text("?")
    assert "holds no key" in run("serve").error
    assert "holds no key" in run("task", "post", "lunch.draft", "--out", "again.task").error
    assert not (drafted / "again.task").exists()


def test_a_port_in_use(run, drafted):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert "cannot be listened on" in run("serve", "--port", taken.getsockname()[1]).error
    assert "--port" in run("serve", "--port", 70000).error


KEYS = [("is no", b"?"), ("cannot be read", None), ("is no", b"{}"), ("is no", b"\xff\xfe")]


@pytest.mark.parametrize(("said", "data"), KEYS)
def test_a_lost_or_damaged_key(run, held, tmp_path, said, data):
    batch = close_task(held, TASK.digest)
    if data is not None:
        (tmp_path / "lunch.key").write_bytes(data)
    refused = run("open", batch, "--key", "lunch.key").error
    assert "key" in refused
    held.close()


def test_the_key_of_another_draft(run, held, tmp_path):
    batch = close_task(held, TASK.digest)
    (tmp_path / "survey.toml").write_text(SURVEY, encoding="utf-8")
    ok(run, "task", "draft", "survey.toml", "--out", "lunch")
    assert "key" in run("open", batch, "--key", "lunch.key").error
    assert not batch.with_suffix(".release").exists()
    held.close()
