"""Write tests/costly.txt: the cases that `make test` leaves to `make test-all`, because they cost most.

    python -m tools.costly_tests [pytest arguments]

Runs the tests that are not marked slow, one after the other, and adds up each case's CPU time, that of its processes
included. A case above 0.2 s is left to `make test-all`, but the cheapest case of every test stays if it costs at most
1 s, or 1.5 s where it guards a bound. What `ESSENTIAL` names stays whatever it costs: a collection from end to end,
crashes, the demo, and the inputs of defects once found. `tests/conftest.py` reads the file.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest

FILE = Path(__file__).resolve().parent.parent / "tests" / "costly.txt"
ABOVE, STAYS = 0.2, {"tests/accounting/": 1.5, "": 1.0}
ESSENTIAL = (
    "collection/test_crash",
    "collection/test_power",
    "cli/test_collection_pages",
    "cli/test_demo_collection",
    "cli/test_commands.py::test_demo",
    "ledger/test_adaptive",
    "ledger/test_crash",
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


def costly(seconds: dict[str, float]) -> list[str]:
    """Return the cases to leave out, the costliest first."""
    families: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for case, cost in seconds.items():
        families[case.partition("[")[0]].append((cost, case))
    found: list[tuple[float, str]] = []
    for family, cases in families.items():
        if any(word in family for word in ESSENTIAL):
            continue
        above = sorted(case for case in cases if case[0] > ABOVE)
        most = next(most for room, most in STAYS.items() if family.startswith(room))
        if len(above) == len(cases) and above[0][0] <= most:
            above = above[1:]
        found += above
    return [case for _, case in sorted(found, reverse=True)]


def main() -> None:
    """Run the tests, then write the file."""
    watch = Stopwatch()
    FILE.write_text("", encoding="utf-8")  # whatever it named before is measured again
    code = pytest.main(["-m", "not slow and not spark", "--hypothesis-profile=repeatable", *sys.argv[1:]], [watch])
    FILE.write_text("".join(f"{case}\n" for case in costly(watch.seconds)), encoding="utf-8")
    sys.exit(code)


if __name__ == "__main__":
    main()
