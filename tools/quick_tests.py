"""Run the tests of what changed, the nearest first, for at most a minute: ``make quick``.

    python -m tools.quick_tests [pytest arguments]

What changed is what git sees since the last commit or, in a clean tree, what that commit changed. A test file is near
if it changed itself, then if it bears the name of a changed module, then if it imports one.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 55.0


class Minute:
    """Ends the run after `SECONDS`, and says so."""

    def __init__(self) -> None:
        self.began = time.monotonic()

    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        """Look at the clock after each case."""
        if time.monotonic() - self.began > SECONDS:
            item.session.shouldstop = f"a minute is over; {item.nodeid} was the last: `make test` runs the rest"


def changed() -> list[str]:
    """Return the changed files, seen from the root."""

    def names(*words: str) -> list[str]:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    here = names("diff", "--name-only", "HEAD") + names("ls-files", "--others", "--exclude-standard")
    return here or names("diff", "--name-only", "HEAD~1", "HEAD")


def imported(path: Path) -> Iterator[str]:
    """Names of modules, and of what is taken out of them, that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def near(files: list[str]) -> list[str]:
    """Return the test files to run, the nearest first."""
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    modules = {
        ".".join(Path(name).with_suffix("").parts[1:]).removesuffix(".__init__")
        for name in files
        if name.startswith("src/") and name.endswith(".py")
    }
    own = {f"test_{module.rpartition('.')[2]}" for module in modules}
    ranks = {
        test: (str(test.relative_to(ROOT)) not in files, test.stem not in own, not modules & set(imported(test)))
        for test in tests
    }
    return [str(test) for test in sorted(tests, key=lambda test: ranks[test]) if not all(ranks[test])]


def main() -> None:
    """Run them."""
    files = near(changed())
    if not files:
        print("no test belongs to what changed; `make test` runs all")
        return
    sys.exit(pytest.main(["-x", "-m", "not slow and not spark", *sys.argv[1:], *files], [Minute()]))


if __name__ == "__main__":
    main()
