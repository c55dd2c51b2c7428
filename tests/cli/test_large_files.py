"""Every command that reads a file refuses one without end in one line, and reads little of it."""

from __future__ import annotations

import os

import pytest

from tests.cli.test_collection import SURVEY, ok

TERMS = ("--epsilon0", "1", "--delta", "1e-6")
COMMANDS = [
    ("task", "draft", "{}", "--out", "other"),
    ("task", "post", "{}"),
    ("task", "link", "{}", "lunch.task"),
    ("task", "link", "lunch.draft", "{}"),
    ("task", "codes", "{}", "5", "--links", "c.csv"),
    ("task", "page", "{}", "--server", "https://example.org"),
    ("task", "verify", "{}", "lunch.task"),
    ("task", "verify", "lunch.task", "{}"),
    ("task", "close", "{}"),
    ("task", "publish", "{}"),
    ("task", "status", "--store", "{}"),
    ("open", "{}", "--key", "lunch.key"),
    ("open", "lunch.task", "--key", "{}"),
    ("ledger", "{}"),
    ("total", "{}", "--delta", "1e-6"),
    ("difference", "{}", "--between", "a", "b", "--delta", "1e-6"),
    ("frequency", "votes.csv", "--value", "vote", "--categories", "{}", *TERMS),
    ("frequency", "votes.csv", "--value", "vote", "--categories", "a,b", "--by", "vote", "--groups", "{}", *TERMS),
    ("release", "votes.csv", "--questions", "{}", *TERMS),
]


@pytest.mark.costly(
    "difference-{}", "frequency-votes.csv0", "frequency-votes.csv1", "task-draft", "task-post", "total-{}"
)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: "-".join(command[:2]))
def test_a_file_of_six_gigabytes_is_one_line(run, tmp_path, command):
    (tmp_path / "survey.toml").write_text(SURVEY)
    ok(run, "task", "draft", "survey.toml", "--out", "lunch")
    ok(run, "task", "post", "lunch.draft")
    (tmp_path / "votes.csv").write_text("vote\nyes\nno\n")
    (tmp_path / "huge").touch()
    os.truncate(tmp_path / "huge", 6 << 30)  # it takes no room, and could not be read within the time of a test
    said = run(*(word.format("huge") for word in command)).error
    assert any(
        words in said for words in ("and is something else; name", "not a database", "is no ledger", "no batch")
    ), said


def test_a_device_without_end_is_one_line(run):
    found = run("open", "/dev/zero", "--key", "/dev/zero")
    assert (found.status, "more than 4,096 bytes" in found.err) == (2, True)


@pytest.mark.parametrize(
    "command", [("total", "nest", "--delta", "1e-6"), ("difference", "nest", "other", "--delta", "1e-6")]
)
def test_a_nest_without_end_is_one_line(run, tmp_path, command):
    for name in ("nest", "other"):
        (tmp_path / name).write_text("[" * 200_000)
    assert "holds no guarantee" in (error := run(*command).error) or "is no release" in error


def test_questions_nested_without_end_are_one_line(run, tmp_path):
    (tmp_path / "votes.csv").write_text("vote\nyes\nno\n")
    (tmp_path / "nest").write_text("x=" + "[" * 200_000)
    assert "is not TOML" in run("release", "votes.csv", "--questions", "nest", *TERMS).error
