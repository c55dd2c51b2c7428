"""The pages of a collection and the list of its commands: they run in order and print what is shown."""

from __future__ import annotations

import csv
import re
import shlex
import shutil
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from shuffledp.cli.demo.service import running
from shuffledp.collection.client import Client, Link
from shuffledp.collection.task import PostedTask
from tests.cli.conftest import Run

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs" / "collection"
PAGES = ("organiser", "operator", "participant", "auditor")
CODES = (
    "shuffledp task codes lunch.task 1000 --server https://collect.example.org --links codes.csv --letters letters.html"
)
STORY = (
    "shuffledp task draft survey.toml --out lunch",
    "shuffledp serve --port 8000",
    "shuffledp task post lunch.draft",
    "shuffledp task link lunch.draft lunch.task --server https://collect.example.org",
    CODES,
    "shuffledp answer LINK --show",
    "shuffledp answer LINK --level careful --answer soup",
    "shuffledp task status",
    "shuffledp task close --yes",
    "shuffledp open lunch.batch --key lunch.key --report lunch.html",
    "shuffledp task publish lunch.release",
    "shuffledp task verify lunch.task lunch.release --batch lunch.batch",
)
"""All commands of the pages, in the order in which people run them."""


@dataclass
class Walk:
    """A folder in which a collection is held, one command after the other."""

    run: Run
    folder: Path
    url: str
    answered: list[str] = field(default_factory=list)

    def do(self, command: str) -> str:
        """Run a command as it is printed, but for the names that people must fill in."""
        words = shlex.split(command)[1:]
        if words[0] == "answer":
            words = [self.link if word == "LINK" else word for word in words] + ["--state", "answers.json"]
        if words[:2] == ["task", "close"]:
            self.others()
        words = [self.batch if word == "outbox/lunch-ID.batch" else word for word in words if word != "--watch"]
        done = self.run(*words)
        assert (done.status, done.err) == (0, ""), (command, done.err)
        if words[:2] == ["task", "close"]:
            shutil.copy(self.batch, self.folder / "lunch.batch")
        return done.out

    @property
    def batch(self) -> str:
        """The batch in the outbox."""
        (path,) = (self.folder / "outbox").glob("*.batch")
        return str(path)

    @property
    def links(self) -> list[str]:
        """Every invitation, with the address of the service that runs here."""
        with (self.folder / "codes.csv").open(encoding="utf-8", newline="") as file:
            return [self.url + re.sub(r"^https?://[^/]+", "", row["link"]) for row in csv.DictReader(file)]

    @property
    def link(self) -> str:
        """The invitation of the person who answers by command."""
        return self.links[0]

    def others(self) -> None:
        """Twenty-four more people answer."""
        task = PostedTask.parse((self.folder / "lunch.task").read_bytes())
        for place, link in enumerate(self.links[1:25]):
            sealed = Client(task).seal([place % 5], place % 3, Link.parse(link).code)
            with urllib.request.urlopen(f"{self.url}/v1/{task.id}/reports", sealed) as answer:
                assert answer.read() == b"\0"


@pytest.fixture
def survey(tmp_path: Path) -> str:
    """The organiser's survey.toml, in the folder where the commands run."""
    (text,) = re.findall(r"```text\n(title = .*?)```", (DOCS / "organiser.md").read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "survey.toml").write_text(text, encoding="utf-8")
    return text


def shown() -> dict[str, list[str]]:
    """Each command of the pages with the lines that they show below it."""
    found: dict[str, list[str]] = {}
    for page in PAGES:
        for block in re.findall(r"```console\n(.*?)```", (DOCS / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL):
            command = ""
            for line in block.splitlines():
                if line.startswith("$ "):
                    command = line.removeprefix("$ ")
                    found.setdefault(command, [])
                elif line != "...":
                    found[command].append(line)
    return found


def test_the_pages_of_a_collection_are_one_story(run, tmp_path, survey):
    pages = shown()
    assert set(pages) == set(STORY)
    with running(tmp_path / "shuffledp.db") as service:
        walk = Walk(run, tmp_path, service.url)
        for command in STORY:
            if command.startswith("shuffledp serve"):
                continue  # it runs, on a port of its own
            printed = " ".join(walk.do(command).split())
            for line in pages[command]:
                assert " ".join(line.split()) in printed, f"{command}: {line!r} is not in {printed}"
        with urllib.request.urlopen(f"{service.url}/v1/{Link.parse(walk.link).name}/release") as answer:
            assert answer.read() == (tmp_path / "lunch.release").read_bytes()


def test_the_plan_of_the_organisers_page_is_what_the_command_prints(run, survey):
    """It lacked the level 6 and its dummies: the survey had no second shuffler when it was copied."""
    page = (DOCS / "organiser.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```text\n\$ shuffledp (task plan survey\.toml)\n(.*?)```", page, re.DOTALL)
    printed = run(*block[0].split()).out
    for line in block[1].splitlines():
        assert line in printed, line


def test_the_collection_of_the_commands_is_one_story(run, tmp_path, survey):
    page = (DOCS.parent / "how-to" / "commands.md").read_text(encoding="utf-8")
    section = page.split("## A collection")[1].split("\n## ")[0]
    commands = [line.partition("#")[0].strip() for line in re.findall(r"^shuffledp .+$", section, re.MULTILINE)]
    assert len(commands) == 10
    with running(tmp_path / "shuffledp.db") as service:
        walk = Walk(run, tmp_path, service.url)
        for command in commands:
            if command != "shuffledp serve":
                assert walk.do(command)
    assert (tmp_path / "lunch.html").is_file()


@pytest.mark.parametrize("page", [*PAGES, "index", "threat-model"])
def test_a_page_of_a_role_fits_one_screen_and_its_links_lead_somewhere(page):
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    prose = re.sub(r"```text\n.*?```", "", text, flags=re.DOTALL)
    assert len(prose.split()) < ({"threat-model": 1500, "operator": 720}.get(page, 560))
    for target in re.findall(r"\]\(([^)#]+)", text):
        assert (DOCS / target).exists(), target
