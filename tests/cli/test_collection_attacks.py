"""What careless people, hostile files and hostile servers can do to the commands of a collection: nothing is lost."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shuffledp.collection.fields import to_base64
from shuffledp.collection.sealing import Opener
from shuffledp.collection.store import Store
from shuffledp.collection.task import PostedTask
from shuffledp.numerics.randomness import simulation_random
from tests.cli.conftest import Run
from tests.cli.test_collection import SURVEY, ok
from tests.collection.batches import batch_of, people, reports_of_people
from tests.collection.page.server import Server
from tests.collection.tasks import IDENTITY, SHUFFLER, choice, document, parse, posted


@pytest.fixture
def opened(run: Run, tmp_path: Path) -> Path:
    """The folder in which commands run, with lunch.task, .key, .batch and .release of a collection."""
    (tmp_path / "survey.toml").write_text(SURVEY, encoding="utf-8")
    ok(run, "task", "draft", "survey.toml", "--out", "lunch")
    ok(run, "task", "post", "lunch.draft")
    task = PostedTask.parse((tmp_path / "lunch.task").read_bytes())
    columns, counts = reports_of_people(task, people(np.random.default_rng(1), (40, 20), 3), simulation_random(1))
    (tmp_path / "lunch.batch").write_bytes(batch_of(task, columns, counts, identity=_identity(tmp_path)))
    ok(run, "open", "lunch.batch", "--key", "lunch.key")
    return tmp_path


def _identity(folder: Path) -> bytes:
    with contextlib.closing(Store(folder / "shuffledp.db")) as store:
        return store.identity()


@pytest.mark.costly(but=("--out ./lunch.batch",))
@pytest.mark.parametrize(
    "words",
    [
        ("--out", "lunch.key"),  # once the release stood in the place of the key, and nobody could open the batch again
        ("--out", "./lunch.batch"),
        ("--report", "lunch.key"),
        ("--out", "same.html", "--report", "same.html"),
        ("--out", "link.key"),
    ],
    ids=" ".join,
)
def test_opening_never_writes_over_key_or_batch(opened, run, words):
    (opened / "link.key").symlink_to("lunch.key")
    before = {path.name: path.read_bytes() for path in opened.glob("*.*")}
    assert "choose another name" in run("open", "lunch.batch", "--key", "lunch.key", *words).error
    assert {path.name: path.read_bytes() for path in opened.glob("*.*")} == before


def test_a_folder_is_no_batch(opened, run):
    assert "must be the folder of keys" in run("open", ".", "--key", "lunch.key").error


def test_a_host_that_is_none_is_one_line_that_names_the_option(opened, run):
    assert "--host" in run("serve", "--host", "no such host").error


def test_a_batch_that_is_called_release_is_not_written_over(opened, run):
    (opened / "lunch.batch").rename(opened / "that.release")
    before = (opened / "that.release").read_bytes()
    assert "choose another name" in run("open", "that.release", "--key", "lunch.key").error
    assert (opened / "that.release").read_bytes() == before


COMMANDS = {
    "lunch.batch": [("open", "lunch.batch", "--key", "lunch.key", "--out", "new.release")],
    "lunch.key": [("open", "lunch.batch", "--key", "lunch.key", "--out", "new.release")],
    "lunch.draft": [("task", "link", "lunch.draft", "lunch.task"), ("task", "post", "lunch.draft", "--out", "n.task")],
    "lunch.task": [("task", "verify", "lunch.task", "lunch.release")],
    "lunch.release": [("task", "verify", "lunch.task", "lunch.release")],
}


@pytest.mark.costly(but=("lunch.task",))
@pytest.mark.parametrize("name", COMMANDS)
def test_every_file_cut_short_or_changed_is_one_line(opened, run, name):
    whole = (opened / name).read_bytes()
    chance = random.Random(name)
    bad = [whole[:size] for size in (0, 8, len(whole) // 2, len(whole) - 1)]
    bad += [whole + b"x", whole[:5] + struct.pack("<I", 2**32 - 1) + whole[9:]]
    if name != "lunch.draft":  # a changed draft is another draft
        for place in (4, *(chance.randrange(len(whole)) for _ in range(3))):
            bad.append(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    for data in bad:
        (opened / name).write_bytes(data)
        for words in COMMANDS[name]:
            before = {path.name for path in opened.iterdir()}
            assert run(*words).error
            assert {path.name for path in opened.iterdir()} == before


def test_verify_finds_every_lie_about_the_batch(opened, run):
    lines = ok(run, "task", "verify", "lunch.task", "lunch.release", "--batch", "lunch.batch", "--json")
    assert json.loads(lines)["promise_kept"] is True
    data = bytearray((opened / "lunch.batch").read_bytes())
    data[-200] ^= 1  # a row of the column
    (opened / "other.batch").write_bytes(data)
    assert "error" in run("task", "verify", "lunch.task", "lunch.release", "--batch", "other.batch").err


@pytest.mark.costly(but=("name0",))
@pytest.mark.parametrize("name", ["a" * 5000, "a/" * 2000, "", "a\nb", "..", "lunch.key"])
def test_what_is_no_task_is_one_line(opened, run, name):
    for command in ("close", "destroy"):
        assert "task" in run("task", command, name).error


def test_what_is_lost_with_the_key_is_said_when_it_is_made(run, tmp_path):
    (tmp_path / "survey.toml").write_text(SURVEY, encoding="utf-8")
    out = " ".join(ok(run, "task", "draft", "survey.toml", "--out", "lunch").split())
    assert "lunch.key for the analyzer alone. Keep the key safe: without it nobody can open the answers." in out


def test_watching_ends_with_ctrl_c_and_one_line(opened, run, monkeypatch):
    looks: list[float] = []

    def third(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("shuffledp.collection.serve.time.sleep", third)
    found = run("task", "status", "--watch")
    assert (found.status, found.err.count("\n")) == (130, 1)
    assert found.out.count("careful") == 3


def test_a_person_is_shown_what_that_person_has_sent(run, tmp_path):
    task = posted(choice(5, 700), admission="open", opens="2020-01-01T00:00:00Z")
    words = ("--level", "careful", "--answer", "choice 1", "--state", "mine.json")
    with Server(task) as server:
        link = f"{server.url}/t/{task.id}"
        ok(run, "answer", link, *words, "--person", "Ada")
        shown = " ".join(ok(run, "answer", link, "--show", "--person", "Ada", "--state", "mine.json").split())
        assert "Sent to “The kitchen” before from this device: 1 answer, together 0.5 if" in shown
        assert shown.index("your number is") < shown.index("of 100 cases")
        assert "Sent to" not in ok(run, "answer", link, "--show", "--state", "mine.json")
        assert "one line" in run("answer", link, *words, "--person", "a\nb").error
        told = run("answer", link, "--show", "--person", "Ada", "--state", "mine.json", "--json").json
        assert told["spent"]["answers"] == 1


def test_a_report_that_is_sealed_for_another_code_is_said_to_be(run, tmp_path):
    """A relay can say that a code was refused: the second sealing may then be counted twice by a dishonest shuffler."""
    task = posted(choice(5, 172), opens="2020-01-01T00:00:00Z")
    words = ("--level", "careful", "--answer", "choice 1", "--state", "mine.json", "--json")
    with Server(task) as server:
        server.codes = ["01" * 16]
        refused = run("answer", f"{server.link}#{to_base64(bytes(16))}", *words)
        assert "or somebody on the way to it, says that the code is unknown" in refused.error
        assert "could count it twice" in refused.error
        done = run("answer", f"{server.link}#{to_base64(bytes([1] * 16))}", *words)
        assert json.loads(done.out)["held"] is True
        assert "only your epsilon0 protects you" in done.err
        assert len(server.held) == 1


FORGED = "careful”: your number is 0.001. It holds always. Level “open"
LINE = "Level “careful”: your number is 0.001. It holds always."


def test_no_words_of_the_organizer_pass_for_the_program_s(run):
    """A level's name with quotation marks ended its own, and went on as a promise of the program."""
    whole = document(
        opens="2020-01-01T00:00:00Z",
        title={"en": LINE},
        organizer=LINE,
        contact=LINE,
        operated_by={"analyzer": LINE, "shuffler": FORGED, "page": FORGED},
    )
    for level, name in zip(whole["levels"], (FORGED, FORGED + "2", "open"), strict=True):
        level["name"] = {"en": name}
    whole["questions"][0]["text"] = {"en": LINE}
    whole["questions"][0]["choices"][0] = {"en": "soup”), and nothing is sent (“salad"}
    task = PostedTask.post(parse(whole), Opener(SHUFFLER).public, IDENTITY)
    with Server(task) as server:
        link = f"{server.url}/t/{task.id}"
        shown = " ".join(ok(run, "answer", link, "--show", "--state", "mine.json").split())
        unknown = run("answer", link, "--state", "mine.json").error
    outside = re.sub("“[^“”]*”", "", shown)
    assert "Level : your number is 0.1." in outside
    assert "0.001" not in outside
    assert "holds always" not in outside
    assert "nothing is sent" not in outside
    assert outside.count("“") == outside.count("”") == 0
    assert "0.001" not in re.sub("“[^“”]*”", "", unknown)


def test_a_kill_between_store_and_letters_leaves_no_invitation_that_nobody_honours(opened, run, monkeypatch):
    """Codes that nobody has are harmless, letters whose codes the shuffler does not know are not."""
    add, seen = Store.add_codes, list[bool]()

    def spy(self: Store, *arguments: Any) -> None:
        add(self, *arguments)
        seen.extend((opened / name).exists() for name in ("codes.csv", "letters.html"))

    monkeypatch.setattr(Store, "add_codes", spy)
    ok(run, "task", "codes", "lunch.task", "2", "--links", "codes.csv", "--letters", "letters.html")
    assert seen == [False, False]
    assert (opened / "codes.csv").stat().st_mode & 0o777 == 0o600
    assert (
        "exists" in run("task", "codes", "lunch.task", "2", "--links", "other.csv", "--letters", "letters.html").error
    )
    assert not (opened / "other.csv").exists()
    assert len(seen) == 2, "no code was added"


def test_a_draft_that_cannot_be_written_leaves_no_key_behind(run, tmp_path, monkeypatch):
    (tmp_path / "survey.toml").write_text(SURVEY, encoding="utf-8")
    sync, calls = os.fsync, list[int]()

    def second(handle: int) -> None:
        calls.append(handle)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        sync(handle)

    monkeypatch.setattr("os.fsync", second)
    assert "No space left" in run("task", "draft", "survey.toml", "--out", "lunch").error
    assert [path.name for path in tmp_path.iterdir()] == ["survey.toml"]
