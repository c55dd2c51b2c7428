"""`shuffledp task page`: one file for another host, and its hash."""

from __future__ import annotations

import hashlib

import pytest

from shuffledp.collection.survey_page import page_for
from tests.collection.tasks import posted


@pytest.fixture
def task_file(tmp_path):
    path = tmp_path / "lunch.task"
    path.write_bytes(posted().data)
    return path


def test_the_file_and_its_hash(run, task_file):
    result = run("task", "page", str(task_file), "--server", "https://collect.example.org/")
    assert result.status == 0, result.err
    data = task_file.with_suffix(".html").read_bytes()
    assert data == page_for(posted(), "https://collect.example.org")
    assert hashlib.sha256(data).hexdigest() in result.out


def test_another_name(run, task_file, tmp_path):
    out = tmp_path / "page.html"
    assert run("task", "page", str(task_file), "--server", "http://127.0.0.1:8000", "--out", str(out)).status == 0
    assert out.read_bytes().startswith(b"<!doctype html>")
    assert "would be lost" in run("task", "page", str(task_file), "--server", "http://a", "--out", str(out)).error


def test_what_is_no_task_or_no_server_is_refused(run, task_file, tmp_path):
    assert "must be an origin" in run("task", "page", str(task_file), "--server", "collect.example.org").error
    assert "cannot be read" in run("task", "page", str(tmp_path / "none"), "--server", "https://a.org").error
    task_file.write_bytes(b"SHFT\1")
    assert run("task", "page", str(task_file), "--server", "https://a.org").error
