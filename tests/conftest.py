"""Profiles of the property tests."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

GOLDEN = (5.0**0.5 - 1.0) / 2.0
COSTLY = Path(__file__).with_name("costly.txt")
"""Cases left to `make test-all`; written by `python -m tools.costly_tests`."""

# No test depends on how busy the machine is: an example has no deadline, and may be slow to draw.
settings.register_profile("fresh", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# `make test` decides whether a change may land: the same examples every time. `make test-all` draws fresh ones.
settings.register_profile("repeatable", settings.get_profile("fresh"), derandomize=True)
settings.load_profile("fresh")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the costliest cases to `make test-all`, and all but about one in k of a test marked ``one_in(k)``.

    Such a test asks one question of many cases, each of which costs a good part of a second: simulations, brute force,
    an oracle in arbitrary precision. Multiples of the golden ratio spread evenly, and in no step with a grid of cases;
    the first case is always among them.
    """
    met: Counter[str] = Counter()
    costly = set(COSTLY.read_text(encoding="utf-8").splitlines())
    for item in items:
        if item.nodeid in costly:
            item.add_marker(pytest.mark.slow)
        mark = item.get_closest_marker("one_in")
        if mark is not None:
            name = item.nodeid.partition("[")[0]
            if met[name] * GOLDEN % 1.0 >= 1.0 / mark.args[0]:
                item.add_marker(pytest.mark.slow)
            met[name] += 1
