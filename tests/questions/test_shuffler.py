from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import chisquare

from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import secure_random, simulation_random
from shuffledp.questions.tally import ShuffledReports, shuffle_reports


def test_reports_keep_their_budgets_when_levels_are_seen():
    epsilons = np.arange(1000) / 100
    shuffled = shuffle_reports(np.arange(1000), epsilons, seen="levels", random=secure_random())
    assert np.array_equal(shuffled.reports / 100, shuffled.epsilons)
    assert not np.array_equal(shuffled.reports, np.arange(1000))


@pytest.mark.costly("reports")
@pytest.mark.parametrize("seen", ["reports", "sum"])
def test_budgets_are_permuted_independently_when_levels_are_withheld(seen):
    # Seeded; fails by chance once in 10,000 fresh seeds. All 36 pairs of orders are equally likely.
    random, counts = simulation_random(2), Counter()
    for _ in range(9000):
        shuffled = shuffle_reports([0, 1, 2], [0.0, 1.0, 2.0], seen=seen, random=random)
        counts[(*shuffled.reports.tolist(), *shuffled.epsilons.astype(int).tolist())] += 1
    orders = list(permutations(range(3)))
    assert chisquare([counts[(*one, *other)] for one in orders for other in orders]).pvalue > 1e-4


def test_one_budget_for_all():
    shuffled = shuffle_reports([0, 1], 0.5, seen="reports", random=secure_random())
    assert shuffled.epsilons.tolist() == [0.5, 0.5]
    assert shuffled.n == 2


def test_arrays_are_read_only_and_the_callers_are_not():
    mine = np.array([0, 1])
    shuffled = ShuffledReports(mine, np.ones(2), "reports")
    with pytest.raises(ValueError, match="read-only"):
        shuffled.reports[0] = 1
    mine[0] = 1


def test_bad_input():
    with pytest.raises(InvalidInput, match="each of 2 reports needs a budget"):
        shuffle_reports([0, 1], [0.5], seen="reports", random=secure_random())
    with pytest.raises(InvalidInput, match="seen as one of reports, levels, sum; got 'users'"):
        shuffle_reports([0, 1], 0.5, seen="users", random=secure_random())
    with pytest.raises(InvalidInput, match="one budget each"):
        ShuffledReports(np.zeros(2, dtype=np.int64), np.ones(3), "reports")
