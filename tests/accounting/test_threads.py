"""Several threads certify at once, as the threads of a web service do."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

import pytest

from shuffledp import Budgets, Laplace, RandomizedResponse, Setting, bounds, certify
from shuffledp.accounting import remembered, remembered_by_thread
from shuffledp.accounting.theorems.clones.pair import one_budget_profile

DELTAS = (1e-4, 1e-6, 1e-8)


def asked(family, people: int = 3000, **situation) -> Setting:
    return Setting(Budgets((1.0,), (people,)), family, seen="reports", neighboring="replace-one", **situation)


def elsewhere(work: Callable[[], object]) -> object:
    """Call in another thread."""
    found = list[object]()
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.slow
@pytest.mark.parametrize("family", [RandomizedResponse(k=4), Laplace(0.0, 1.0)])
def test_threads_do_not_write_each_others_tables(family):
    """They shared remembered profiles: "operands could not be broadcast together", or worse, a wrong number."""
    alone = {delta: certify(asked(family, rounds=3), delta).epsilon for delta in DELTAS}
    found, failed = list[tuple[float, float, float]](), list[Exception]()

    def work(first: int) -> None:
        try:
            for delta in DELTAS[first:] + DELTAS[:first]:
                epsilon = certify(asked(family, rounds=3), delta).epsilon
                found.append((delta, epsilon.lower, epsilon.upper))
        except Exception as problem:
            failed.append(problem)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(first,)) for first in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert failed == []
    assert len(found) == 9
    for delta, lower, upper in found:  # what was asked before moves an end a little, within its tolerance
        assert lower == pytest.approx(alone[delta].lower, rel=2e-3)
        assert upper == pytest.approx(alone[delta].upper, rel=2e-3)


@pytest.mark.parametrize(
    "profile",
    [
        lambda: one_budget_profile(1.0, 100, coarse=False),
        lambda: remembered(type(bounds["blanket"]), asked(RandomizedResponse(k=4), 100), 1.0),
        lambda: bounds["blanket"].profile(asked(RandomizedResponse(k=4), 100), 1.0),
    ],
)
def test_a_profile_is_remembered_by_one_thread_alone(profile):
    assert profile() is profile()
    assert elsewhere(profile) is not profile()


def test_each_thread_has_a_memory_of_its_own():
    made = list[int]()
    double = remembered_by_thread(4)(lambda x: made.append(x) or [2 * x])
    assert double(3) is double(3)
    other = elsewhere(lambda: double(3))
    assert other == [6]
    assert other is not double(3)
    assert made == [3, 3]
