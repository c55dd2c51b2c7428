"""What careless people, hostile files and hostile servers can do to the commands of a collection: nothing is lost."""

from __future__ import annotations

import contextlib
import json
import random
import struct
from pathlib import Path

import numpy as np
import pytest

from shuffledp.collection.store import Store
from shuffledp.collection.task import PostedTask
from shuffledp.numerics.randomness import simulation_random
from tests.cli.conftest import Run
from tests.cli.test_collection import SURVEY, ok
from tests.collection.batches import batch_of, people, reports_of_people


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


@pytest.mark.parametrize("name", ["a" * 5000, "a/" * 2000, "", "a\nb", "..", "lunch.key"])
def test_what_is_no_task_is_one_line(opened, run, name):
    for command in ("close", "destroy"):
        assert "task" in run("task", command, name).error
