"""Two adaptively chosen releases, enumerated for n <= 5, never exceed the number that the ledger claims."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from shuffledp.accounting import certify
from shuffledp.budgets import Budgets
from shuffledp.ledger import Ledger, NewEntry, Spending, Use
from shuffledp.randomizers import RandomizedResponse
from shuffledp.setting import Setting

GRID = (0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0)
EPSILON, DELTA = 0.1, 0.2


def law(epsilon0: float, ones: int, n: int) -> np.ndarray:
    """Law of the number of ones among the shuffled reports of n people of whom so many have a 1."""
    keep = 1.0 / (1.0 + math.exp(-epsilon0))
    found = np.ones(1)
    for chance in [keep] * ones + [1.0 - keep] * (n - ones):
        found = np.convolve(found, [1.0 - chance, chance])
    return found


def draft(epsilon0: float, n: int) -> NewEntry:
    setting = Setting(Budgets([epsilon0], [n]), RandomizedResponse(2), seen="reports", neighboring="replace-one")
    return NewEntry(f"budget {epsilon0}", "00", "rr", Spending.of(certify(setting, 1e-3)))


def excess(epsilon0: float, n: int, p: float, q: float) -> float:
    """The largest sum over outcomes of (p P - e^E q Q)_+ of one release, over the others' records and both orders."""
    found = 0.0
    for ones in range(n):
        for with_, without in itertools.permutations((law(epsilon0, ones + 1, n), law(epsilon0, ones, n))):
            found = max(found, float(np.maximum(p * with_ - math.exp(EPSILON) * q * without, 0.0).sum()))
    return found


@pytest.mark.one_in(3)
@pytest.mark.parametrize("n", [2, 3, 5])
def test_no_strategy_exceeds_the_limit(tmp_path, n):
    """The second budget, the others' records and the order of the neighbours may all depend on the first answer."""
    drafts = {epsilon0: draft(epsilon0, n) for epsilon0 in GRID}
    worst = 0.0
    for first in GRID:
        with Ledger(tmp_path / f"{n}-{first}.ledger", make=True) as ledger:
            ledger.set_limit(EPSILON, DELTA)
            if ledger.refusal([drafts[first]], Use()) is not None:
                continue
            ledger.enter([drafts[first]], Use())
            second = [e for e in GRID if ledger.refusal([drafts[e]], Use()) is None]
        for ones in range(n):
            for p, q in itertools.permutations((law(first, ones + 1, n), law(first, ones, n))):
                found = sum(
                    max([excess(e, n, pk, qk) for e in second], default=max(pk - math.exp(EPSILON) * qk, 0.0))
                    for pk, qk in zip(p, q, strict=True)
                )
                worst = max(worst, found)
    assert worst <= DELTA
    assert worst > 0.1 * DELTA  # the limit is not kept by refusing everything


@pytest.mark.parametrize("n", [2, 3, 5])
def test_releases_that_were_fixed_cost_what_the_ledger_composes(tmp_path, n):
    with Ledger(tmp_path / "fixed.ledger", make=True) as ledger:
        for epsilon0 in (0.5, 1.0):
            ledger.enter([draft(epsilon0, n)], Use(fixed_in_advance="plan"))
        total = ledger.total(0.01)
    assert total.fixed
    worst = 0.0
    for ones, others in itertools.product(range(n), repeat=2):
        first, second = (law(0.5, ones + 1, n), law(0.5, ones, n)), (law(1.0, others + 1, n), law(1.0, others, n))
        for i, j in itertools.product((0, 1), repeat=2):
            p, q = np.outer(first[i], second[j]), np.outer(first[1 - i], second[1 - j])
            worst = max(worst, float(np.maximum(p - math.exp(total.epsilon) * q, 0.0).sum()))
    assert 0.0 < worst <= 0.01
