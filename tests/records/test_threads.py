"""Jobs in threads: results and the first error come in the order of the items, on one core as on four."""

from __future__ import annotations

import time

import pytest

from shuffledp.records import sources


@pytest.fixture(params=[1, 4], autouse=True)
def cores(request, monkeypatch):
    monkeypatch.setattr(sources, "workers", lambda: request.param)


def later(item: int) -> int:
    """The first items take longest."""
    time.sleep(max(0.02 - 0.005 * item, 0.0))
    if item in (2, 3):
        raise ValueError(item)
    return item


def test_results_come_in_order():
    assert list(sources.in_order(lambda item: -item, range(100))) == [-item for item in range(100)]


def test_the_first_error_in_the_order_of_the_items_is_raised():
    """Item 3 fails first in time, and an item that cannot be read comes after both."""

    def items():
        yield from range(4)
        raise RuntimeError("unread")

    results = sources.in_order(later, items())
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(ValueError, match=r"^2$"):
        next(results)


def test_an_item_that_cannot_be_read_comes_after_the_results_before_it():
    def items():
        yield from (0, 1)
        raise RuntimeError("unread")

    results = sources.in_order(later, items())
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(RuntimeError, match=r"^unread$"):
        next(results)


def test_items_are_read_a_few_ahead_and_not_all():
    read: list[int] = []
    results = sources.in_order(abs, (read.append(item) or item for item in range(1000)))
    assert next(results) == 0
    assert len(read) <= 10
    assert list(results) == list(range(1, 1000))
