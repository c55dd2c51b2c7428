"""`task preview` and `task rehearse`: the page and the result before anything is posted."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from shuffledp.collection.rehearsal import rehearse, trial_of
from shuffledp.collection.task import Draft
from shuffledp.errors import InvalidInput
from tests.cli.conftest import Run
from tests.cli.test_collection import ok, refused
from tests.cli.test_collection_groups import EVERY_KIND
from tests.cli.test_collection_groups import SURVEY as GROUPS

SURVEY = GROUPS.replace('[groups]\nKitchen = 40\n"Büro & Lager" = 60\nHall = 8\n', "").replace(
    "at_least = 5", "at_least = 5\npeople = 120"
)
MORE = EVERY_KIND.replace(', "by bike"', "")


@pytest.fixture
def survey(run: Run, tmp_path: Path) -> Path:
    path = tmp_path / "survey.toml"
    path.write_text(SURVEY, encoding="utf-8")
    return path


def test_a_trial_says_so_in_every_language_and_is_open(survey):
    text = survey.read_text().replace('title = "Lunch"', 'title = {en = "Lunch"}')
    survey.write_text(text)
    trial = trial_of(survey, b"\7" * 32)
    assert trial.task.draft.title == {"en": "TEST: Lunch"}
    trial.key.check_task(trial.task)
    other = trial_of(survey, b"\7" * 32)
    assert trial.task.draft.analyzer_key != other.task.draft.analyzer_key


@pytest.mark.costly
def test_a_rehearsal_finds_what_was_made_up(survey, tmp_path):
    """Four questions of all sorts: nine intervals at 1 - 1e-9, so a false alarm has a chance of 1e-8."""
    survey.write_text(SURVEY + MORE, encoding="utf-8")
    opened, truths = rehearse(survey, 200, tmp_path)
    assert opened.batch.manifest.n == 200
    assert opened.promise_kept
    assert {place: len(each) for place, each in truths.items()} == {0: 2, 1: 4, 2: 1, 3: 2}
    for place, release in enumerate(opened.releases):
        low, high = release.confidence_interval(1 - 1e-9)
        for least, true, most in zip(np.atleast_1d(low), truths[place], np.atleast_1d(high), strict=True):
            assert least <= true <= most, place


@pytest.mark.costly
def test_a_rehearsal_on_the_command_line_leaves_nothing(survey, run, tmp_path):
    out = ok(run, "task", "rehearse", "survey.toml", "--people", "30", "--report", "page.html")
    assert "A rehearsal: 30 made-up people" in out
    assert "made up" in out
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<h1>TEST: Lunch</h1>" in page
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html", "survey.toml"]
    ok(run, "task", "draft", "survey.toml", "--out", "lunch")
    assert "A rehearsal: 120 made-up people" in ok(run, "task", "rehearse", "lunch.draft")
    assert "rehearse with 5 (at_least) to 100000 made-up people; got 4" in refused(
        run, "task", "rehearse", "survey.toml", "--people", "4"
    )


@pytest.mark.costly
def test_a_rehearsal_prints_the_intervals_of_its_page(survey, run, tmp_path):
    """The terminal had those of one cell each; page and `open` have those of all cells of a table together."""
    table = '[[questions]]\ntext = "Who?"\nrows = ["a", "b"]\ncolumns = ["c", "d", "e"]\n'
    survey.write_text(SURVEY.partition("[[questions]]")[0] + table, encoding="utf-8")
    out = ok(run, "task", "rehearse", "survey.toml", "--report", "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    ends = re.findall(r"[\d.]+% to [\d.]+%", out)
    assert len(ends) == 6
    assert all(each in page for each in ends), ends


def test_a_survey_with_groups_is_tried_by_its_first(tmp_path):
    path = tmp_path / "survey.toml"
    path.write_text(GROUPS, encoding="utf-8")
    assert trial_of(path, b"\7" * 32).task.draft.title == {"en": "TEST: Lunch: Kitchen"}


@pytest.mark.costly
def test_the_preview_serves_the_page_on_this_machine_until_it_is_ended(survey, tmp_path):
    environment = os.environ | {"TMPDIR": str(tmp_path / "tmp"), "PYTHONUNBUFFERED": "1"}
    (tmp_path / "tmp").mkdir()
    command = [sys.executable, "-m", "shuffledp", "task", "preview", str(survey)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=tmp_path) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(5)]
        links = [line.strip() for line in said if line.startswith("http")]
        assert len(links) == 3
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/t/[\w-]{43}#[\w-]{22}", links[0])
        with urllib.request.urlopen(links[0].split("#")[0]) as answer:
            assert answer.read().startswith(b"<!doctype html>")
        with urllib.request.urlopen(links[0].split("#")[0].replace("/t/", "/v1/")) as answer:
            posted = answer.read()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    size = int.from_bytes(posted[5:9], "little")
    assert Draft.parse(posted[9 : 9 + size]).title == {"en": "TEST: Lunch"}
    assert json.loads(posted[9 : 9 + size])["admission"] == "codes"
    assert list((tmp_path / "tmp").glob("shuffledp-preview-*")) == []


def test_what_is_no_survey_is_refused(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text("nonsense", encoding="utf-8")
    with pytest.raises(InvalidInput, match="not TOML"):
        trial_of(path, b"\7" * 32)
