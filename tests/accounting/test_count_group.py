"""Groups and several bits of one user under the count theorem (extension 2), against enumeration."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.numerics.grouped_bits import GroupedBits

RR = sdp.RandomizedResponse(2)


def _law(chances: list[Fraction]) -> list[Fraction]:
    law = [Fraction(1)]
    for p in chances:
        law = [
            (law[k] * (1 - p) if k < len(law) else 0) + (law[k - 1] * p if k else 0) for k in range(len(law) + 1)
        ]  # fmt: skip
    return law


@pytest.mark.parametrize(("n", "group", "each"), [(3, 2, 1), (6, 3, 1), (5, 5, 1), (4, 1, 2), (4, 2, 2), (3, 1, 3)])
def test_every_pair_of_groups_is_enumerated(n: int, group: int, each: int) -> None:
    """All records of the others, and all changes of the group's, each bit its own; 1 + e^epsilon0 = 4."""
    s, epsilon0 = Fraction(1, 4), math.log(3.0)
    setting = sdp.Setting(
        sdp.Budgets([epsilon0], [n]), RR, "reports", "replace-one", group_size=group, reports_per_user=each
    )
    upper, lower = (sdp.bounds[key].profile(setting, epsilon0) for key in ("count", "count-exact"))
    changed, others = group * each, (n - group) * each
    for growth in (Fraction(1), Fraction(3, 2), Fraction(5), Fraction(20)):
        worst = Fraction(0)
        for j in range(others + 1):
            rest = [1 - s] * j + [s] * (others - j)
            for one, two in itertools.product(range(changed + 1), repeat=2):
                laws = [_law(rest + [1 - s] * k + [s] * (changed - k)) for k in (one, two)]
                worst = max(worst, sum(max(p - growth * q, Fraction(0)) for p, q in zip(*laws, strict=True)))
        epsilon = math.log(growth)
        found, shown = upper.delta(epsilon).upper, lower.delta(epsilon).lower
        assert worst * (1 - Fraction(1, 10**9)) - Fraction(1, 10**14) <= Fraction(found)
        assert Fraction(found) <= worst * (1 + Fraction(1, 10**9)) + Fraction(1, 10**13)
        assert Fraction(shown) <= worst * (1 + Fraction(1, 10**9)) + Fraction(1, 10**13)
        if each == 1:
            assert Fraction(shown) >= worst * (1 - Fraction(1, 10**9)) - Fraction(1, 10**13)


def test_a_group_of_three_is_closed() -> None:
    """The chain of neighbours, and an attack on one of the three, left a gap."""
    setting = sdp.Setting(sdp.Budgets([1.0], [300]), RR, "reports", "replace-one", group_size=3, missing=0.1)
    found = sdp.certify(setting, 1e-6).epsilon
    assert found.upper <= found.lower * (1 + 1e-5)


def test_rounds_of_a_group() -> None:
    known = sdp.Setting(sdp.Budgets([1.0], [60]), RR, "reports", "replace-one", group_size=2, rounds=2)
    one = sdp.bounds["count"].profile(known, 1.0).epsilon(1e-4)
    attack = sdp.bounds["count-exact"].profile(known, 1.0).epsilon(1e-4)
    assert 0.0 < attack.lower <= one.upper


def test_laws_are_laws() -> None:
    bits = GroupedBits(0.2, 30, 3, np.array([0, 7, 30]))
    for law in bits.laws:
        assert law.sum(axis=1) == pytest.approx(np.ones(3), rel=1e-12)
    mean = bits.laws[0] @ np.arange(34.0)
    assert mean == pytest.approx(np.array([0, 7, 30]) * 0.6 + 30 * 0.2 + 3 * 0.8, rel=1e-12)
