"""Crowds of two laws: the theorem in exact fractions, the engine against enumeration, the figures asked for."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from shuffledp import (
    Budgets,
    Channel,
    Gaussian,
    HadamardResponse,
    Laplace,
    OutOfRegime,
    RandomizedResponse,
    Setting,
    bounds,
    certify,
)
from shuffledp.accounting.engines.two_type import TwoTypeProfile
from shuffledp.numerics.two_laws import TwoLaws, gaussian_laws, laplace_laws
from shuffledp.numerics.two_type import BUMP_0, BUMP_1, BUMP_CENTRE, told_apart

Law = tuple[Fraction, ...]
Multisets = dict[tuple[int, ...], Fraction]


def setting(law, n: int, epsilon0: float, delta0: float = 0.0, **more) -> Setting:
    return Setting(
        Budgets([epsilon0], [n], [delta0]), law, more.pop("seen", "reports"), "replace-one", records=2, **more
    )


def random_law(rng: np.random.Generator, outcomes: int) -> tuple[Law, Law]:
    while True:
        rows = rng.integers(0, 9, (2, outcomes))
        if (rows.sum(axis=1) > 0).all() and (rows.sum(axis=0) > 0).all() and tuple(rows[0]) != tuple(rows[1]):
            return tuple(tuple(Fraction(int(x), int(row.sum())) for x in row) for row in rows)  # type: ignore[return-value]


def shuffled(laws: list[Law]) -> Multisets:
    """The law of the histogram of independent reports."""
    found: Multisets = {(0,) * len(laws[0]): Fraction(1)}
    for law in laws:
        grown: Multisets = {}
        for histogram, mass in found.items():
            for y, p in enumerate(law):
                if p:
                    key = (*histogram[:y], histogram[y] + 1, *histogram[y + 1 :])
                    grown[key] = grown.get(key, Fraction(0)) + mass * p
        found = grown
    return found


def both_worlds(a: Law, b: Law, i: int, j: int) -> tuple[Multisets, Multisets]:
    crowd = [a] * i + [b] * j
    return shuffled([*crowd, a]), shuffled([*crowd, b])


def hockey(p: Multisets, q: Multisets, t: Fraction) -> Fraction:
    return sum((max(mass - t * q.get(y, Fraction(0)), Fraction(0)) for y, mass in p.items()), Fraction(0))


def as_laws(a: Law, b: Law) -> TwoLaws:
    first, second = (np.array([float(x) for x in law]) for law in (a, b))
    with np.errstate(divide="ignore"):
        return TwoLaws(first, second, np.log(first) - np.log(second), 16.0)


@pytest.mark.parametrize("seed", range(12))
def test_the_theorem_in_fractions(seed: int) -> None:
    """(T) for every multiset: both inequalities, with T and V in fractions; outputs that one law never gives, too."""
    rng = np.random.default_rng(seed)
    a, b = random_law(rng, int(rng.integers(2, 5)))
    i, j = (int(x) for x in rng.integers(0, 4, 2))
    t = Fraction(int(rng.integers(8, 24)), 8)
    p, q = both_worlds(a, b, i, j)
    tilt = Fraction(i + 1, j + 1) / t
    pi = [Fraction(1) if not y else tilt * x / (y + tilt * x) for x, y in zip(a, b, strict=True)]
    for histogram in p.keys() | q.keys():
        in_p, in_q = p.get(histogram, Fraction(0)), t * q.get(histogram, Fraction(0))
        total = sum(m * x for m, x in zip(histogram, pi, strict=True))
        variance = sum(m * x * (1 - x) for m, x in zip(histogram, pi, strict=True))
        assert max(in_p - in_q, 0) * variance <= max(total - i, 0) * in_p
        assert max(in_q - in_p, 0) * variance <= max(i + 1 - total, 0) * in_q
        assert in_p >= in_q or total < i + 1
        assert in_p <= in_q or total > i


@pytest.mark.parametrize("seed", range(8))
def test_never_below_small_crowds(seed: int) -> None:
    """One crowd, and the worst of all crowds, against exact fractions."""
    rng = np.random.default_rng(100 + seed)
    a, b = random_law(rng, int(rng.integers(2, 5)))
    n, t = int(rng.integers(2, 7)), Fraction(int(rng.integers(4, 12)), 4)
    epsilon, laws = math.nextafter(math.log(t), 0.0), as_laws(a, b)
    exact = [hockey(*both_worlds(a, b, i, n - 1 - i), t) for i in range(n)]
    for i, value in enumerate(exact):
        assert Fraction(told_apart(laws, i, n - 1 - i, epsilon)) >= value
    worst = TwoTypeProfile((laws,), n, math.inf).delta(epsilon).upper
    assert Fraction(worst) >= max(exact) * (1 - Fraction(1, 10**13))


@pytest.mark.parametrize(
    ("i", "j", "depth", "most"), [(150, 150, 1.0, 1.15), (40, 260, 2.0, 2.5), (260, 40, 5.0, 4.0), (150, 150, 9.0, 8.0)]
)
def test_near_and_above_binomial_crowds(i: int, j: int, depth: float, most: float) -> None:
    """Randomized response: two binomials convolved, down to 1e-20."""
    w = 1.0 / (1.0 + math.exp(-1.0))
    epsilon = depth * 2.0 * math.tanh(0.5) / math.sqrt(i + j)
    others = np.convolve(binom.pmf(np.arange(i + 1), i, w), binom.pmf(np.arange(j + 1), j, 1 - w))
    p, q = (np.convolve(others, [1 - x, x]) for x in (w, 1 - w))
    exact = float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())
    laws = TwoLaws(np.array([w, 1 - w]), np.array([1 - w, w]), np.array([1.0, -1.0]), 8.0)
    found = told_apart(laws, i, j, epsilon)
    assert exact * (1 - 1e-9) <= found
    assert found <= exact * most  # a factor costs its logarithm over depth^2 in epsilon


def test_atoms_lie_above_the_noise() -> None:
    """Hockey-stick divergences of the atoms are at least those of the continuous laws, and close."""
    for epsilon0 in (0.2, 1.0, 4.0):
        laws = laplace_laws(1.0 / epsilon0, 40)
        assert laws.masses_a.sum() == pytest.approx(1.0, abs=1e-14)
        for e in np.linspace(-epsilon0, epsilon0, 21) * 0.999:
            exact = max(-math.expm1((e - epsilon0) / 2.0), 1.0 - math.exp(e)) if e > -epsilon0 else 1.0 - math.exp(e)
            found = float(np.maximum(laws.masses_a - math.exp(e) * laws.masses_b, 0.0).sum())
            assert exact - 1e-14 <= found <= exact + 2e-3 * epsilon0
    for sigma in (0.5, 1.0, 5.0):
        laws, mu = gaussian_laws(sigma, 120), 1.0 / sigma
        assert laws.masses_b.sum() == pytest.approx(1.0, abs=1e-13)
        assert laws.masses_a.sum() == pytest.approx(1.0, abs=1e-13)
        for e in np.linspace(-3.0, 3.0, 25) * mu:
            exact = float(ndtr(mu / 2 - e / mu) - math.exp(e) * ndtr(-mu / 2 - e / mu))
            found = float(np.maximum(laws.masses_a - math.exp(e) * laws.masses_b, 0.0).sum())
            assert exact - 1e-13 <= found <= exact + 2e-3 * mu


def test_the_constants_of_the_bumps() -> None:
    """(K) over cells: each factor at the end of the cell where it is larger; beyond 12 it falls like e^(-m x)."""
    x = np.linspace(-1.0, 12.0, 400_001)
    low, high = x[:-1], x[1:]
    bell = np.exp(0.5 * np.maximum(np.abs(low - BUMP_CENTRE), np.abs(high - BUMP_CENTRE)) ** 2)
    for a, constant in ((0.0, BUMP_0), (1.0, BUMP_1)):
        found = np.maximum(high + a, 0.0) * ndtr(-low) * bell
        assert 0.995 * constant < found.max() <= constant
        # Phi(-x) < exp(-x^2/2)/(x sqrt(2 pi))
        assert (12.0 + a) / 12.0 / math.sqrt(2 * math.pi) * math.exp(BUMP_CENTRE**2 / 2 - 12.0 * BUMP_CENTRE) < constant


@pytest.mark.parametrize(
    ("law", "epsilon0", "delta0", "most"),
    [
        (Laplace(0, 1), 1.0, 0.0, 0.0321),
        (Laplace(0, 1), 2.0, 0.0, 0.0729),
        (Laplace(0, 1), 4.0, 0.0, 0.2460),
        pytest.param(Gaussian(0, 1, sigma=1.0), 8.0, 1e-3, 0.0467, marks=pytest.mark.slow),
        (HadamardResponse(10), 1.0, 0.0, 0.0250),
    ],
)
def test_figures_at_ten_thousand(law, epsilon0: float, delta0: float, most: float) -> None:
    """Epsilon at delta 1e-6 is at most this number, and for noise within 2.5 % of what is attained."""
    asked = setting(law, 10_000, epsilon0, delta0)
    assert bounds["two-type"].profile(asked, epsilon0).delta(most).upper <= 1e-6
    if law.name in ("laplace", "gaussian"):
        attained = bounds["equal-crowd"].profile(asked, epsilon0)
        assert attained.delta(most).lower <= 1e-6 < attained.delta(most / 1.028).lower


def test_a_witness_is_never_above() -> None:
    for n, epsilon0 in ((60, 0.5), (400, 3.0)):
        upper, lower = (
            bounds[k].profile(setting(Laplace(0, 1), n, epsilon0), epsilon0) for k in ("two-type", "equal-crowd")
        )
        for epsilon in (0.0, 0.2):
            assert lower.delta(epsilon).lower <= upper.delta(epsilon).upper


@pytest.mark.slow
def test_the_weigher_takes_the_smaller_of_it_and_count() -> None:
    asked = setting(Laplace(0, 1), 1000, 2.0)
    upper = certify(asked, 1e-6).epsilon.upper
    assert upper == bounds["two-type"].profile(asked, 2.0).epsilon(1e-6).upper
    assert upper < bounds["count"].profile(asked, 2.0).epsilon(1e-6).upper


def test_the_weigher_asks_it() -> None:
    found = certify(setting(HadamardResponse(4), 200, 1.0), 1e-3)
    asked = {one.key: one for one in found.evidence}
    assert asked["two-type"].epsilon is not None
    assert found.epsilon.upper == min(
        asked[key].epsilon.upper for key in ("two-type", "count", "blanket", "local") if asked[key].epsilon is not None
    )


def test_pairs_of_a_channel_in_both_orders() -> None:
    """An unsymmetric channel: n = 5 by enumeration, both directions and all pairs of records."""
    rows = [[4, 3, 1], [2, 3, 3], [1, 1, 6]]
    fractions = [tuple(Fraction(x, 8) for x in row) for row in rows]
    law, n, t = Channel(np.array(rows) / 8.0), 5, Fraction(3, 2)
    found = bounds["two-type"].profile(setting(law, n, 2.0), 2.0).delta(math.nextafter(math.log(t), 0.0)).upper
    exact = [
        hockey(*both_worlds(a, b, i, n - 1 - i), t) for a in fractions for b in fractions if a != b for i in range(n)
    ]
    assert Fraction(found) >= max(exact) * (1 - Fraction(1, 10**12))
    assert found <= 0.3829  # that of one report alone


def test_situations() -> None:
    """Colluding users are left out; of visible levels those of the own one."""
    levels = Setting(Budgets([1.0, 2.0], [300, 50]), Laplace(0, 1), "levels", "replace-one", records=2)
    with_two, without, own = (
        bounds["two-type"].profile(asked, 1.0).delta(0.2)
        for asked in (setting(Laplace(0, 1), 302, 1.0, colluding=2), setting(Laplace(0, 1), 300, 1.0), levels)
    )
    assert with_two == without == own


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (Setting(Budgets([1.0], [9]), Laplace(0, 1), "reports", "replace-one"), "two values"),
        (setting("any", 9, 1.0), "stated randomizer"),
        (setting(RandomizedResponse(2), 9, 1.0), "exact"),
        (setting(Laplace(0, 1), 9, 1.0, seen="sum"), "sum"),
        (setting(Laplace(0, 1), 9, 100.0), "noise of"),
        (setting(Channel([[0.5, 0.5, 0.0], [0.4, 0.3, 0.3]]), 9, 5.0, 0.4), "every record"),
        (Setting(Budgets([1.0, 2.0], [9, 9]), Laplace(0, 1), "reports", "replace-one", records=2), "one budget"),
        (setting(Laplace(0, 1), 1, 1.0), "hide among"),
    ],
)
def test_refusals(asked: Setting, why: str) -> None:
    with pytest.raises(OutOfRegime, match=why):
        bounds["two-type"].profile(asked, float(asked.budgets.epsilons[0]))
