"""Profiles of the property tests."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from hypothesis import HealthCheck, settings

GOLDEN = (5.0**0.5 - 1.0) / 2.0

# No test depends on how busy the machine is: an example has no deadline, and may be slow to draw.
settings.register_profile("fresh", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# `make test` decides whether a change may land: the same examples every time. `make test-all` draws fresh ones.
settings.register_profile("repeatable", settings.get_profile("fresh"), derandomize=True)
settings.load_profile("fresh")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the cases marked ``costly`` to `make test-all`, and all but about one in k of a test marked ``one_in(k)``.

    The latter asks one question of many cases, each of which costs a good part of a second: simulations, brute force,
    an oracle in arbitrary precision. Multiples of the golden ratio spread evenly, and in no step with a grid of cases;
    the first case is always among them.

    A mark that names a case which no longer exists would leave nothing out, and nobody would notice: where whole files
    are collected, it is an error.
    """
    met: Counter[str] = Counter()
    known: dict[str, set[str]] = defaultdict(set)
    named: dict[str, set[str]] = {}
    for item in items:
        test, _, case = item.nodeid.partition("[")
        case = case.removesuffix("]")
        known[test].add(case)
        mark = item.get_closest_marker("costly")
        if mark is not None:
            kept = set(mark.kwargs.get("but", ()))
            named[test] = kept | set(mark.args)
            if case in mark.args or (not mark.args and case not in kept):
                item.add_marker(pytest.mark.slow)
        mark = item.get_closest_marker("one_in")
        if mark is not None:
            if met[test] * GOLDEN % 1.0 >= 1.0 / mark.args[0]:
                item.add_marker(pytest.mark.slow)
            met[test] += 1
    if not any("::" in word for word in config.args):
        for test, cases in named.items():
            if not cases <= known[test]:
                raise pytest.UsageError(
                    f"{test}: `costly` names {sorted(cases - known[test])}, which are no cases of it"
                )
