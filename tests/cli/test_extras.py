"""Without an extra: what does not need it runs, and what does names it in one line."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys

import pytest

from shuffledp.errors import EXTRA_OF, naming_the_extra, what_is_missing
from tests.cli.test_collection import SURVEY

HIDDEN = [module for module, extra in EXTRA_OF.items() if extra in ("service", "figures")]
HIDE = f"import sys\nsys.modules.update(dict.fromkeys({HIDDEN}))\nfrom shuffledp.cli import main\nmain()"


def without_extras(folder, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", HIDE, *map(str, arguments)], cwd=folder, capture_output=True, text=True, check=False,
        env=os.environ | {"COLUMNS": "120"}, timeout=600,
    )  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A task, drafted and posted without any extra."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "survey.toml").write_text(SURVEY, encoding="utf-8")
    for words in (["task", "draft", "survey.toml", "--out", "lunch"], ["task", "post", "lunch.draft"]):
        done = without_extras(folder, *words)
        assert (done.returncode, done.stderr) == (0, "")
    return folder


@pytest.fixture
def posted(made, tmp_path):
    """A copy of the posted task."""
    return shutil.copytree(made, tmp_path, dirs_exist_ok=True)


@pytest.mark.costly
def test_what_a_collection_does_without_an_extra(posted):
    done = without_extras(posted, "task", "status", "--json")
    assert json.loads(done.stdout)["tasks"][0]["state"] == "open"
    done = without_extras(posted, "task", "codes", "lunch.task", "3", "--links", "codes.csv")
    assert (done.returncode, done.stderr) == (0, "")
    link = (posted / "codes.csv").read_text().split()[-1]
    done = without_extras(posted, "task", "link", "lunch.draft", "lunch.task")
    assert (done.returncode, done.stderr) == (0, "")
    assert what_is_missing("A QR code", "segno") in done.stdout
    done = without_extras(posted, "answer", link, "--show")
    assert done.returncode == 2
    assert "pip" not in done.stderr  # nobody listens there; no module is missing


@pytest.mark.costly
@pytest.mark.parametrize(
    ("command", "words", "module"),
    [
        ("serve", ["serve"], "uvicorn"),
        ("task codes", ["task", "codes", "lunch.task", "3", "--letters", "letters.html"], "segno"),
        ("reproduce", ["reproduce", "gspa-lemma-2"], "matplotlib"),
    ],
)
def test_what_needs_an_extra_names_it(posted, command, words, module):
    done = without_extras(posted, *words)
    assert done.returncode == 2
    assert done.stderr == f"error: {what_is_missing(command, module)}\n"
    assert not (posted / "letters.html").exists()


class Absent:
    """A finder for which a module is not installed."""

    def __init__(self, module: str) -> None:
        self.module = module

    def find_spec(self, name: str, *_: object) -> None:
        if name == self.module:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.mark.parametrize(("part", "module"), [("shuffledp.flower", "flwr"), ("shuffledp.learning.torch", "torch")])
def test_a_part_of_the_package_names_its_extra(part, module, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == module or name.startswith(part)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Absent(module), *sys.meta_path])
    with pytest.raises(ModuleNotFoundError) as refused:
        importlib.import_module(part)
    assert (str(refused.value), refused.value.name) == (what_is_missing(part, module), module)
    assert what_is_missing(part, module).endswith(f"pip install '.[{EXTRA_OF[module]}]'")


def test_another_missing_module_is_named_as_it_is():
    with pytest.raises(ModuleNotFoundError, match="No module named 'not_there'"), naming_the_extra("x", "torch"):
        importlib.import_module("not_there")
