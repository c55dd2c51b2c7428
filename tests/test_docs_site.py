"""The documentation site: its code runs as printed, its links lead somewhere, its references are complete.

Warnings of the builder itself, and the built pages, are checked by `make docs`.

How code is written in the pages, and what is checked: Python blocks of a page run one after the other, in one
namespace; a line ``print(...)  # 0.064`` must print just that, ``# about ...`` is not compared, and comments that end a
block are what its loops print. In ``console`` blocks
the lines after ``$ `` are commands, a following line must be in the output, and ``...`` stands for lines left out.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from tools import check_docs_site, make_cli_reference

import shuffledp as sdp
from shuffledp.cli import main
from shuffledp.cli.app import COMMANDS
from shuffledp.cli.demo.table import TABLE
from shuffledp.cli.front import PANELS
from shuffledp.randomizers.base import AnyLaw

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
FENCE = re.compile(r"^(?P<mark>`{3,})(?P<kind>[^\n]*)\n(?P<body>.*?)^(?P=mark)`*[ ]*$", re.MULTILINE | re.DOTALL)
LONG = re.compile(r"\d+\.\d{6,}(?:e-?\d+)?")
GENERATED = {"cli.md", *(f"cli/{name}.md" for name in COMMANDS)}
SLOW = {"how-to/commands.md", "how-to/training.md", "how-to/compose.md"}
"""Pages whose code takes more than a few seconds; left to `make test-all`."""
STORY = {f"collection/{name}.md" for name in ("organiser", "operator", "participant", "auditor")}
"""Pages whose commands need those of the other pages; tests/cli/test_collection_pages.py runs them in order."""
SKETCHES = {"torch.md", "flower.md", "how-to/spark.md"}
"""Pages whose code needs an extra and data of one's own; what runs is in examples/, with tests beside."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    kind: str
    body: str


def short(page: Path) -> str:
    return str(page.relative_to(DOCS))


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [Block(found["kind"].strip(), found["body"]) for found in FENCE.finditer(text)]


def pages_with(*kinds: str) -> list[object]:
    return [
        pytest.param(page, id=short(page), marks=[pytest.mark.slow] if short(page) in SLOW else [])
        for page in PAGES
        if short(page) not in GENERATED | SKETCHES | STORY and any(block.kind in kinds for block in blocks(page))
    ]


# ------------------------------------------------------------------ code


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """An empty directory, in which the code of a page runs as it does for a reader: a page makes what it reads."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")


def promised(body: str) -> list[str]:
    """The texts that the block's prints promise, in order: behind each print, or as comments that end the block."""
    said = re.findall(r"^\s*print\(.*\)  # (.*)$", body, re.MULTILINE)
    last = re.search(r"(?:^# .*\n)+\Z", body, re.MULTILINE)
    return said + [line.removeprefix("# ") for line in (last[0].splitlines() if last else [])]


@pytest.mark.costly(
    but=(
        "estimates.md",
        "how-to/attack.md",
        "how-to/groups.md",
        "how-to/histogram.md",
        "theory/brackets.md",
    )
)
@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("page", pages_with("python"))
def test_the_python_of_a_page_runs_and_prints_what_it_says(page):
    names: dict[str, object] = {"__name__": "__docs__"}
    for block in blocks(page):
        if block.kind != "python":
            continue
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(block.body, short(page), "exec"), names)
        for said, printed in zip(promised(block.body), out.getvalue().splitlines(), strict=True):
            assert said.startswith("about ") or alike(said, printed), f"{short(page)}: {said!r}, prints {printed!r}"


def alike(said: str, printed: str) -> bool:
    """Whether two lines are the same text with the same numbers, last digits aside."""
    numbers = [[float(number) for number in LONG.findall(line)] for line in (said, printed)]
    return LONG.sub("#", said) == LONG.sub("#", printed) and numbers[0] == pytest.approx(numbers[1], rel=1e-6)


def run(command: str) -> tuple[int, str]:
    """Exit status and output of a command line, run in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as stopped:
        main(shlex.split(command.replace("$(shuffledp demo --where)", str(TABLE)))[1:])
    return int(stopped.value.code or 0), out.getvalue() + err.getvalue()


@pytest.mark.costly(
    but=(
        "how-to/groups.md",
        "how-to/tables.md",
        "referee.md",
    )
)
@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("page", pages_with("console"))
def test_the_commands_of_a_page_run_and_print_what_it_shows(page):
    for block in blocks(page):
        if block.kind != "console":
            continue
        status, printed = 0, ""
        for line in block.body.replace("\\\n", " ").splitlines():
            if line.startswith("$ shuffledp "):
                status, printed = run(line.removeprefix("$ ").partition("  #")[0])
                refused = "error:" in block.body
                assert status == (2 if refused else 0), f"{line}: {printed}"
            elif line.strip() and not line.startswith(("$ ", "...")):
                assert " ".join(line.split()) in " ".join(printed.split()), (
                    f"{short(page)}: {line!r} is not in\n{printed}"
                )


def test_python_and_console_are_the_only_languages_of_code_that_runs():
    """A block of another kind would go untested; these kinds hold no code of ours."""
    known = re.compile(r"^(python|console|text|json|csv|make|\{[\w:+-]+\}.*)$")
    for page in PAGES:
        for block in blocks(page):
            if short(page) not in GENERATED and page.parent != DOCS / "theorems":
                assert known.match(block.kind), f"{short(page)}: a block of kind {block.kind!r}"


# ------------------------------------------------------------------ numbers in tables

CROWD = sdp.Budgets([1.0], [10_000])
TABLE_ROWS: dict[str, tuple[str, AnyLaw | Literal["any"], dict[str, Any]]] = {
    "any randomizer": ("decide.md", "any", {}),
    "yes or no": ("decide.md", sdp.RandomizedResponse(2), {}),
    "Laplace noise": ("decide.md", sdp.Laplace(0, 1), {}),
    "unary encoding, 10 categories": ("decide.md", sdp.UnaryEncoding(10), {}),
    "randomized response, 10 categories": ("decide.md", sdp.RandomizedResponse(10), {}),
    "nothing of all this": ("decide.md", "any", {}),
    "100 people show": ("decide.md", "any", {"colluding": 100, "missing": 0.1}),
    "couples must be protected": ("decide.md", "any", {"group_size": 2}),
    "each person sends two": ("decide.md", "any", {"reports_per_user": 2}),
    "there are 12 rounds, each": ("decide.md", "any", {"rounds": 12}),
    "there are 12 rounds, and": ("decide.md", "any", {"rounds": 12, "linked": True}),
    "1 round": ("theory/rounds.md", "any", {}),
    "12 rounds, composed": ("theory/rounds.md", "any", {"rounds": 12}),
}
"""Beginning of a row, its page, and what it is about: 10,000 people at 1.0 and delta = 1e-6."""


@pytest.mark.parametrize(
    "row", [pytest.param(row, marks=[pytest.mark.slow] if "rounds" in row else []) for row in TABLE_ROWS]
)
def test_a_number_in_a_table_is_the_certified_one_rounded_up(row):
    name, randomizer, given = TABLE_ROWS[row]
    cell = re.search(rf"^\| {re.escape(row)}.*\| ([\d.]+) \|$", (DOCS / name).read_text(encoding="utf-8"), re.MULTILINE)
    assert cell, f"{name} has no row that begins with {row!r}"
    setting = sdp.Setting(CROWD, randomizer=randomizer, seen="reports", neighboring="replace-one", **given)
    certified = sdp.certify(setting, delta=1e-6).epsilon.upper
    step = 10.0 ** -len(cell[1].partition(".")[2])
    assert certified <= float(cell[1])
    assert float(cell[1]) - certified < step


# ------------------------------------------------------------------ references


def test_the_command_line_reference_is_up_to_date():
    written = {name: (DOCS / name).read_text(encoding="utf-8") for name in map(short, PAGES) if name.startswith("cli")}
    assert written == make_cli_reference.pages(), "docs/cli is out of date; run: python -m tools.make_cli_reference"


CENTRAL = "[noise on the answer errs less](../decide.md#0-does-a-trusted-hand-hold-the-table)"


def test_pages_on_tables_say_when_central_noise_is_better():
    asks = next(iter(PANELS.values()))
    pages = [f"cli/{name}.md" for name in asks]
    pages += [f"how-to/{name}.md" for name in ("tables", "mean", "frequency", "histogram", "groups", "frequent-items")]
    assert "cli/difference.md" in pages
    for page in pages:
        assert CENTRAL in " ".join((DOCS / page).read_text(encoding="utf-8").split()), page


def test_the_command_line_reference_has_every_command():
    """Each with its line on the first page, where links to the page that once had all commands find it."""
    text = (DOCS / "cli.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| (?:<a id=\"([\w-]+)\"></a>)?\[`([\w-]+)`\]\(cli/([\w-]+)\.md\)", text, re.MULTILINE)
    assert [name for _, name, _ in lines] == list(COMMANDS)
    assert all(page == name and (anchor or "plan") == name for anchor, name, page in lines)


def test_every_public_name_is_in_the_python_reference_once():
    text = "\n".join(page.read_text(encoding="utf-8") for page in (DOCS / "api").glob("*.md"))
    listed = re.findall(r"^\.\. [\w:]+:: shuffledp\.(\w+)$", text, re.MULTILINE)
    assert sorted(listed) == sorted(sdp.__all__)


def test_every_bound_has_a_line_on_the_page_of_proofs():
    text = (DOCS / "proofs.md").read_text(encoding="utf-8")
    assert {key for key in sdp.bounds if f"theorems/{key}.md" not in text} == set()


def test_every_page_is_in_a_table_of_contents():
    listed = {DOCS / "index.md"}
    for page in PAGES:
        for block in blocks(page):
            if block.kind == "{toctree}":
                entries = [line for line in block.body.splitlines() if line.strip() and not line.startswith(":")]
                for entry in entries:
                    name = re.sub(r"^.*<(.+)>$", r"\1", entry.strip())
                    found = (page.parent / f"{name.removesuffix('.md')}.md").resolve()
                    assert found.is_file(), f"{short(page)}: {entry}"
                    listed.add(found)
    assert {short(page) for page in PAGES if page.resolve() not in listed} == set()


# ------------------------------------------------------------------ links and words


def anchors(page: Path) -> set[str]:
    """The names by which links reach the headings of a page."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    plain = [
        re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    ]
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=short)
def test_links_lead_somewhere(page):
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text)):
        if target.startswith(("http://", "https://")):
            continue
        path, _, fragment = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{short(page)}: {target}"
        if fragment and file.suffix == ".md":
            assert fragment in anchors(file), f"{short(page)}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=short)
def test_pages_name_no_machine_and_no_private_notes(page):
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"(?<![\w.])/(home|work|root|Users|tmp)/\w|theory\.md part|theory part \d", text)


# ------------------------------------------------------------------ the checker of built pages


def test_the_checker_finds_broken_links_and_what_is_loaded_from_elsewhere(tmp_path, capsys):
    (tmp_path / "good.html").write_text('<h1 id="top">x</h1><a href="#top">x</a><a href="https://example.org">x</a>')
    assert check_docs_site.main(str(tmp_path)) == 0
    (tmp_path / "bad.html").write_text(
        '<script src="https://example.org/x.js"></script><img src="gone.svg"><a href="gone.html">x</a>'
        '<a href="good.html#gone">x</a><a href="good.html#top">x</a>'
    )
    capsys.readouterr()
    assert check_docs_site.main(str(tmp_path)) == 1
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_an_empty_site_is_no_good_site(tmp_path):
    assert check_docs_site.main(str(tmp_path)) == 1


@pytest.mark.costly("True")
@pytest.mark.parametrize("browser", [False, True])
def test_the_checker_finds_pages_that_are_too_tall(browser, tmp_path, capsys, monkeypatch):
    if browser and check_docs_site.chromium_path() is None:
        pytest.skip("chromium is not installed")
    if not browser:
        monkeypatch.setattr(check_docs_site, "chromium_path", lambda: None)
    for name, lines in {"short": 100, "long": 300, "tall": 700}.items():
        (tmp_path / f"{name}.html").write_text(f"<!doctype html><article>{'<p>A line.</p>' * lines}</article>")
    assert check_docs_site.main(str(tmp_path)) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"tall\.html: [\d,]+ pixels tall; split or shorten it below 15,000", line)
