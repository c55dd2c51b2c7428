"""The house rules that a machine can check."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import shuffledp.accounting as accounting
from shuffledp.accounting.published import PUBLISHED

ROOT = Path(__file__).resolve().parent.parent
MOST_LINES, MOST_FUNCTION_LINES = 400, 60
PYTHON = sorted(
    p for folder in ("src", "tests", "benchmarks", "examples", "tools") for p in (ROOT / folder).rglob("*.py")
)
TEXT = [
    ROOT / name
    for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff", "Makefile", "pyproject.toml")
]


def short(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", PYTHON, ids=short)
def test_no_file_and_no_function_is_too_long(path):
    source = path.read_text(encoding="utf-8")
    assert source.count("\n") <= MOST_LINES
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) is not None and len(node.body) > 1 else node.body
            length = (node.end_lineno or node.lineno) - body[0].lineno + 1
            assert length <= MOST_FUNCTION_LINES, f"{node.name} has {length} lines besides its docstring"


@pytest.mark.parametrize("key", sorted(accounting.bounds))
def test_every_bound_has_its_theorem_written_down(key):
    page = ROOT / "docs" / "theorems" / f"{key}.md"
    assert page.is_file(), f"docs/theorems/{key}.md is missing: statement, hypotheses, rounding argument"
    assert len(page.read_text(encoding="utf-8")) > 200


OWN = sorted(key for key, bound in accounting.bounds.items() if bound not in PUBLISHED)


@pytest.mark.parametrize("key", OWN)
def test_every_own_theorem_lives_in_the_file_of_its_name(key):
    """A key is found by its file name; what is alone in a file needs no search."""
    name = key.replace("-", "_")
    assert type(accounting.bounds[key]).__module__ == f"shuffledp.accounting.theorems.{name}"
    source = (ROOT / "src" / "shuffledp" / "accounting" / "theorems" / f"{name}.py").read_text(encoding="utf-8")
    assert re.findall(r'^    key = "(.*)"$', source, re.MULTILINE) == [key]


def test_every_file_of_theorems_is_one_of_the_keys():
    files = {path.stem for path in (ROOT / "src" / "shuffledp" / "accounting" / "theorems").glob("*.py")}
    assert files - {"__init__"} == {key.replace("-", "_") for key in OWN}
    assert len(OWN) >= 12


def test_files_named_in_the_theorem_pages_exist():
    for page in (ROOT / "docs" / "theorems").glob("*.md"):
        for name in re.findall(r"`((?:accounting|numerics|randomizers)/[\w/]+\.py)`", page.read_text(encoding="utf-8")):
            assert (ROOT / "src" / "shuffledp" / name).is_file(), f"{page.name}: {name}"


def catches(path: Path, error: str) -> int:
    """How many handlers of a file name the error."""
    handlers = [n for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, ast.ExceptHandler)]
    return sum(n.type is not None and error in ast.unparse(n.type) for n in handlers)


def test_which_bound_applies_is_decided_in_one_place():
    """`weigh` catches a refusal; besides it only who tries several ways (planning, training) and the command line."""
    source = ROOT / "src" / "shuffledp"
    found = {short(path): catches(path, "OutOfRegime") for path in source.rglob("*.py")}
    places = {name: count for name, count in found.items() if count}
    assert places["src/shuffledp/accounting/answers.py"] == 1
    assert sum(places.values()) <= 4, f"ask bounds through accounting.weigh, ways through planning.attempt: {places}"


@pytest.mark.parametrize("name", ["runtime.txt", "dev.txt", "docs.txt"])
def test_requirements_are_pinned_with_hashes_and_without_addresses(name):
    lines = (ROOT / "requirements" / name).read_text(encoding="utf-8").splitlines()
    pinned = [line for line in lines if line and not line.startswith((" ", "#"))]
    assert pinned
    assert [line for line in pinned if not re.match(r"[\w.\-\[\]]+==\S+ (;.*)?\\$", line)] == []
    assert len([line for line in lines if "--hash=sha256:" in line]) >= len(pinned)
    assert [line for line in lines if "://" in line or "--find-links" in line or "index-url" in line] == []


def test_readme_commands_exist():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", readme, re.MULTILINE))  # commands, not the verb
    assert {"demo", "test"} <= named <= targets
    from shuffledp.cli.app import COMMANDS

    assert set(re.findall(r"^shuffledp ([a-z-]+)", readme, re.MULTILINE)) <= set(COMMANDS)


def test_no_test_packs_the_time():
    """In a parameter it becomes part of the test's name, and two workers then collect different tests."""
    for path in PYTHON:
        if path != Path(__file__).resolve():
            assert not re.search(r"gzip\.compress\((?!.*mtime=0)", path.read_text(encoding="utf-8")), short(path)


@pytest.mark.parametrize("path", [*PYTHON, *TEXT], ids=short)
def test_no_path_of_one_machine_and_no_package_index(path):
    if path == Path(__file__).resolve():
        return
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"(?<![\w.])/(home|work|root|Users)/\w|pypi\.org/simple|--index-url", text)


def test_the_package_is_typed_and_licensed():
    assert (ROOT / "src" / "shuffledp" / "py.typed").is_file()
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "CC BY 4.0" in (ROOT / "src" / "shuffledp" / "data" / "README.md").read_text(encoding="utf-8")


ERRORS = {"InvalidInput", "OutOfRegime", "NotConverged", "InconsistentBounds"}


def test_every_entry_that_an_error_shows_is_cut():
    """`errors.shown` cuts an entry to 80 characters; ``!r`` in a message would show all of it."""
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) in ERRORS:
                for part in ast.walk(node):
                    whole = isinstance(part, ast.FormattedValue) and part.conversion == ord("r")
                    assert not whole, f"{short(path)}, line {part.lineno}: show an entry by errors.shown"


def test_every_costly_case_is_a_case_of_a_test():
    """A line that names nothing would leave nothing out, and nobody would notice."""
    for line in (ROOT / "tests" / "costly.txt").read_text(encoding="utf-8").splitlines():
        file, _, name = line.partition("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        last = name.partition("[")[0].rpartition(".")[2].rpartition("::")[2]
        assert re.search(rf"\b(def|class) {re.escape(last)}\b", text), line
