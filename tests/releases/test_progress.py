"""The share of a release that is done: told in every step, and never falling."""

from __future__ import annotations

import numpy as np
import pytest

from shuffledp import Budgets, Frequency, Mean, Setting, certify, release, release_by
from shuffledp.numerics.randomness import simulation_random
from shuffledp.progress import steps

N = 4000
PEOPLE = {
    "word": np.array(["a", "b"]).repeat(N // 2),
    "number": np.linspace(0, 1, N),
    "group": np.tile(["x", "y"], N // 2),
    "budget": np.linspace(0.1, 2.0, N),
}


@pytest.mark.costly(but=("one budget",))
@pytest.mark.parametrize(
    "ask",
    [
        lambda heard: release(
            Frequency(["a", "b"]), PEOPLE, value="word", budgets="budget", seen="levels", delta=1e-6, rows=500,
            random=simulation_random(1), progress=heard,
        ),
        lambda heard: release(
            Mean(0, 1), PEOPLE, value="number", budgets=1.0, seen="reports", delta=1e-6, rows=500,
            random=simulation_random(1), progress=heard,
        ),
        lambda heard: release_by(
            Frequency(["a", "b"]), PEOPLE, by="group", groups=["x", "y"], value="word", budgets="budget",
            seen="reports", delta=1e-6, rows=500, random=simulation_random(1), progress=heard,
        ),
    ],
    ids=["levels", "one budget", "groups"],
)  # fmt: skip
def test_the_share_of_the_work_grows_to_one(ask):
    heard = []
    ask(heard.append)
    assert heard == sorted(heard)
    assert heard[0] > 0.0
    assert heard[-1] == pytest.approx(1.0)
    assert heard[-1] <= 1.0
    # the certificate is most of the work for few rows, and is told bound by bound
    assert len([share for share in heard if 0.2 < share < 0.95]) > 5


@pytest.mark.costly
def test_the_first_pass_is_told_where_there_is_one():
    heard = []
    release(
        Mean(0, 1), PEOPLE, value="number", budgets="budget", seen="reports", delta=1e-6, rows=500,
        random=simulation_random(1), progress=heard.append,
    )  # fmt: skip
    assert heard[:8] == pytest.approx([0.025 * k for k in range(1, 9)])


def test_a_certificate_tells_each_bound():
    heard = []
    certify(Setting(Budgets.of([1.0] * 100), "any", "reports", "replace-one"), 1e-3, progress=heard.append)
    assert heard == pytest.approx([(k + 1) / len(heard) for k in range(len(heard))])
    assert len(heard) > 10


def test_nobody_needs_to_listen():
    assert steps(None, [1.0, 2.0]) == [None, None]
