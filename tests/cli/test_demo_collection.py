"""`demo collection`: a whole collection through the real service, small in `make test`, whole in test-all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import shuffledp
from shuffledp.cli.demo import service as demo_service
from shuffledp.cli.demo.collection import run_demo_collection
from shuffledp.cli.demo.service import INSIDERS, STRANGERS
from shuffledp.errors import what_is_missing
from tests.cli.conftest import Run

SIGMAS = 6.0
"""A normal variable is further off with chance 2e-9; there are six estimates in a run."""


@pytest.fixture(autouse=True)
def absolute_path(monkeypatch):
    """Processes that the demo starts find this package from any folder."""
    monkeypatch.setenv("PYTHONPATH", str(Path(shuffledp.__file__).parents[1]))


def check(found: dict, clients: int) -> None:
    """The contract's keys, everybody counted once, all junk seen, and estimates near the truth."""
    collection = found["collection"]
    assert {"id", "counts", "junk_seen", "promise_kept", "dummies", "floor", "crowd"} <= set(collection)
    assert list(collection["counts"]) == list(collection["floor"]) == list(collection["crowd"])
    assert list(collection["counts"]) == ["careful", "usual", "open"]
    assert sum(collection["counts"].values()) == clients == found["clients"]["held"]
    assert found["clients"]["on_disk_after_kill"] >= found["clients"]["acknowledged_before_kill"] > 0
    bits = int(found["releases"][1]["mechanism"].removeprefix("bits:"))
    assert collection["junk_seen"] == (1 + bits) * INSIDERS
    assert found["clients"]["refused"] == dict.fromkeys(("unreadable", "unfit", "code"), STRANGERS // 3)
    assert collection["promise_kept"] is True
    assert all(collection["floor"][name] <= promise for name, promise in collection["promise"].items())
    shares, mean = found["releases"]
    assert shares["question"] == "frequency"
    assert mean["question"] == "mean"
    truth = found["truth"]
    for row, true in zip(shares["estimates"], truth[0], strict=True):
        assert abs(row["frequency"] - true) <= SIGMAS * row["standard_error"], row
    assert abs(mean["estimate"] - truth[1]) <= SIGMAS * mean["standard_error"]
    assert [release["n"] for release in found["releases"]] == [clients, clients]
    assert found["seconds"]["total"] > 0


def leftovers() -> set[str]:
    return {name for name in os.listdir(tempfile.gettempdir()) if name.startswith("shuffledp-demo-")}


def test_sixty_people(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    page = tmp_path / "page.html"
    run_demo_collection(1e-6, None, as_json=True, report=page, clients=60, browser=False)
    captured = capsys.readouterr()
    assert captured.err == ""
    found = json.loads(captured.out)
    check(found, 60)
    assert found["clients"]["in_chromium"] == 0
    assert "Working life" in page.read_text(encoding="utf-8")
    assert leftovers() == set()


@pytest.mark.slow
def test_three_hundred_people(run: Run):
    result = run("demo", "collection", "--json", "--report", "page.html")
    check(result.json, 300)
    assert "true" in Path("page.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_in_words_with_a_page_of_its_own(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    run_demo_collection(1e-6, None, as_json=False, report=None, clients=60, browser=False)
    out = capsys.readouterr().out
    assert max(len(line.rstrip()) for line in out.splitlines() if line and line[0] in "┏┃┡│├└") <= 120
    shown = " ".join(out.split())
    assert "What each party saw" in shown
    assert "Every promise is kept." in shown
    (page,) = leftovers()
    assert page.endswith(".html")
    assert page in shown.replace(" ", "")


def test_refused(run: Run):
    assert "--simulation-seed" in run("demo", "collection", "--simulation-seed", "1").error
    assert "10 stop_at" in run("demo", "collection", "--delta", "0.01").error
    assert "nonsense" in run("demo", "nonsense").error


def test_without_the_extra_one_line_names_it(run: Run, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert run("demo", "collection").error == what_is_missing("demo collection", "uvicorn")


def test_an_old_cryptography_is_named(tmp_path):
    """In a process of its own: modules that are loaded stay loaded."""
    code = (
        "import sys; sys.modules['cryptography.hazmat.primitives.hpke'] = None\n"
        "from shuffledp.cli import main; main(['demo', 'collection'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert what_is_missing("demo collection", "cryptography 47 or newer", "service") in done.stderr


def test_whatever_fails_the_service_ends_and_the_folder_is_removed(tmp_path, monkeypatch):
    started: list[int] = []

    def interrupted(held, server, *rest, **options):
        started.append(server.pid)
        raise KeyboardInterrupt

    monkeypatch.setattr(demo_service, "_answers", interrupted)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    with pytest.raises(KeyboardInterrupt):
        run_demo_collection(1e-6, None, as_json=True, report=None, clients=60, browser=False)
    (pid,) = started
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert leftovers() == set()
