"""Where randomized response attains the clone pair, and how far below it is elsewhere: what the pages say of both."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest

from shuffledp import Budgets, RandomizedResponse, Setting, bounds


def count_divergence(n: int, ratio: Fraction, power: Fraction) -> Fraction:
    """Randomized response seen as its count, all others on x0; the larger direction."""
    s = 1 / (1 + ratio)
    others = [comb(n - 1, j) * s**j * (1 - s) ** (n - 1 - j) for j in range(n)]

    def law(one: Fraction) -> list[Fraction]:
        return [a * (1 - one) + b * one for a, b in zip([*others, Fraction(0)], [Fraction(0), *others], strict=True)]

    first, second = law(s), law(1 - s)
    return max(
        sum((max(a - power * b, Fraction(0)) for a, b in zip(p, q, strict=True)), Fraction(0))
        for p, q in ((first, second), (second, first))
    )


def clone_divergence(n: int, ratio: Fraction, power: Fraction) -> Fraction:
    """The clone pair's divergence by its two counts."""
    p, w, total = 2 / (1 + ratio), ratio / (1 + ratio), Fraction(0)
    for c in range(n):
        chance, m = comb(n - 1, c) * p**c * (1 - p) ** (n - 1 - c), c + 1
        for a in range(m + 1):
            here = w * a + (1 - w) * (m - a) - power * ((1 - w) * a + w * (m - a))
            total += chance * Fraction(comb(m, a), 2**m) * Fraction(2, m) * max(here, Fraction(0))
    return total


@pytest.mark.parametrize("n", [2, 3, 4, 6, 9])
@pytest.mark.parametrize("ratio", [Fraction(3, 2), Fraction(3), Fraction(8)])
def test_attained_from_the_stated_point_on_and_not_before(n, ratio):
    point = ((n - 1) * ratio + 1) / (n - 1 + ratio)
    for power in (point, (point + ratio) / 2):
        assert count_divergence(n, ratio, power) == clone_divergence(n, ratio, power)
    if point > 1:
        before = 1 + (point - 1) * Fraction(19, 20)
        assert count_divergence(n, ratio, before) < clone_divergence(n, ratio, before)


def test_the_factors_of_the_page():
    for n, power, factor in ((3, Fraction(6, 5), 1.062), (9, Fraction(18, 11), 1.443)):
        found = clone_divergence(n, Fraction(3), power) / count_divergence(n, Fraction(3), power)
        assert float(found) == pytest.approx(factor, abs=5e-4)


@pytest.mark.costly("1e-06-1.43")
@pytest.mark.parametrize(("delta", "most"), [(1e-6, 1.43), (1e-3, 1.77)])
def test_how_far_clones_lies_above_the_count(delta, most):
    """The largest ratio of the grid on the page is at epsilon0 = 4, n = 1e6."""
    ratios = []
    for epsilon0, n in ((4.0, 10**6), (1.0, 1000), (2.0, 10_000), (6.0, 10_000)):
        setting = Setting(Budgets([epsilon0], [n]), RandomizedResponse(2), seen="reports", neighboring="replace-one")
        upper, lower = (bounds[key].profile(setting, epsilon0).epsilon(delta) for key in ("clones", "count-exact"))
        ratios.append(upper.upper / lower.lower)
    assert ratios[0] == max(ratios) == pytest.approx(most, abs=5e-3)
