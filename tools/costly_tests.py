"""Mark the cases that `make test` leaves to `make test-all`, because they cost most: `pytest.mark.costly`.

    python -m tools.costly_tests [pytest arguments]

Takes every `costly` mark out of the test files, runs the tests that are not marked slow, one after the other, adds up
each case's CPU time, that of its processes included, and marks anew. A case above .15 s is costly, but the cheapest
case of every test stays if it costs at most .4 s, or .6 s where it guards a bound. What `ESSENTIAL` names stays
whatever it costs: a collection from end to end, crashes, the demo, and the inputs of defects once found.

The mark stands over the test and carries what was measured: `costly` all cases, `costly("one", "two")` these cases,
`costly(but=("one",))` all but these. `tests/conftest.py` reads it.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Generator, Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ABOVE, STAYS = 0.15, {"tests/accounting/": 0.6, "": 0.4}
ESSENTIAL = (
    "collection/test_crash",
    "collection/test_power",
    "cli/test_collection_pages",
    "cli/test_demo_collection",
    "cli/test_commands.py::test_demo",
    "ledger/test_adaptive",
    "ledger/test_crash",
    "tests/test_removal.py",
    "ledger/test_ledger",
    "cli/test_collection.py",
    "cli/test_service",
    "accounting/test_brackets",
    "accounting/test_regressions",
    "tests/test_house",
    "tests/test_import_law",
)


class Stopwatch:
    """Notes the CPU seconds of each case."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Time one case, with its fixtures."""
        began = sum(os.times()[:4])
        result = yield
        self.seconds[item.nodeid] = sum(os.times()[:4]) - began
        return result


def costly(seconds: dict[str, float]) -> dict[str, str]:
    """Return the mark of each test that has costly cases; a test is named as pytest names it, without its case.

    Parameters
    ----------
    seconds : dict
        CPU seconds of each case.

    Returns
    -------
    dict
        The mark's source, such as ``costly("pure")``. An example in a docstring bears no mark and stays.
    """
    tests: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for node, cost in seconds.items():
        test, _, case = node.partition("[")
        if test.startswith("tests/"):
            tests[test].append((cost, case.removesuffix("]")))
    marks = {}
    for test, cases in tests.items():
        above = sorted(case for case in cases if case[0] > ABOVE)
        most = next(most for room, most in STAYS.items() if test.startswith(room))
        if len(above) == len(cases) and above and above[0][0] <= most:
            above = above[1:]
        if above and not any(word in test for word in ESSENTIAL):
            marks[test] = mark({name for _, name in above}, {name for _, name in cases})
    return marks


def mark(named: set[str], known: set[str]) -> str:
    """Return the shortest mark that names these of the known cases."""
    rest = known - named
    if not rest:
        return "costly"
    if len(rest) < len(named):
        return f"costly(but=({', '.join(map(repr, sorted(rest)))},))"
    return f"costly({', '.join(map(repr, sorted(named)))})"


def definitions(text: str) -> dict[str, ast.FunctionDef]:
    """Return the test functions of a file, named as pytest names them."""
    found = {}
    for node in ast.parse(text).body:
        members = node.body if isinstance(node, ast.ClassDef) else [node]
        owner = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        found |= {owner + member.name: member for member in members if isinstance(member, ast.FunctionDef)}
    return found


def unmarked(text: str) -> str:
    """Return the file without its marks."""
    lines = text.splitlines(keepends=True)
    for test in definitions(text).values():
        for decorator in test.decorator_list:
            if ast.unparse(decorator).startswith("pytest.mark.costly"):
                lines[decorator.lineno - 1 : decorator.end_lineno] = [""] * (
                    decorator.end_lineno - decorator.lineno + 1
                )
    return "".join(lines)


def marked(text: str, marks: dict[str, str]) -> str:
    """Return the file, without marks, with these."""
    lines = text.splitlines(keepends=True)
    for name, test in definitions(text).items():
        if name in marks:
            first = min([test.lineno, *(decorator.lineno for decorator in test.decorator_list)]) - 1
            indent = " " * test.col_offset
            lines[first] = f"{indent}@pytest.mark.{marks[name]}\n{lines[first]}"
    new = "".join(lines)
    imported = any(isinstance(node, ast.Import) and node.names[0].name == "pytest" for node in ast.parse(new).body)
    if new != text and not imported:
        new = new.replace(
            "from __future__ import annotations\n", "from __future__ import annotations\n\nimport pytest\n", 1
        )
    return new


def write(files: Iterable[Path], marks: dict[str, str]) -> None:
    """Mark the files, and lay them out as the others."""
    changed = []
    for path in files:
        room = path.relative_to(ROOT).as_posix() + "::"
        old = path.read_text(encoding="utf-8")
        own = {test.removeprefix(room): source for test, source in marks.items() if test.startswith(room)}
        new = marked(unmarked(old), own)
        if new != old:
            path.write_text(new, encoding="utf-8")
            changed.append(str(path))
    if changed:
        for words in (("check", "--quiet", "--select", "I", "--fix"), ("format", "--quiet")):
            subprocess.run([sys.executable, "-m", "ruff", *words, *changed], check=True, cwd=ROOT)


def main() -> None:
    """Take the marks away, run the tests, and mark anew."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    write(files, {})
    watch = Stopwatch()
    code = pytest.main(["-m", "not slow and not spark", "--hypothesis-profile=repeatable", *sys.argv[1:]], [watch])
    write(files, costly(watch.seconds))
    sys.exit(code)


if __name__ == "__main__":
    main()
