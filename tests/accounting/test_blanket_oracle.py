"""Functionals (I) and (Z) of discrete randomizers against balls, exact lattices and a contour integral.

Three second implementations, none of which smooths, blocks, tilts or shares code with the library:
direct sums over all ways the reports fall into the cells (Arb balls, few users), powers of a polynomial where
all values of L are multiples of one number (Arb balls, some thousand users, any depth), and a plain contour
integral in 40 digits (10^5 to 10^12 users). Laws are stated here from the mechanisms' definitions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from flint import arb, arb_poly, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpc, mpf
from scipy.special import gammaln

from shuffledp.accounting import bounds, certify
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.budgets import Budgets
from shuffledp.randomizers import (
    Channel,
    HadamardResponse,
    LocalHashing,
    RandomizedResponse,
    RandomizerLaw,
    SubsetSelection,
    UnaryEncoding,
)
from shuffledp.setting import Setting
from tests.oracles import compositions

PRECISION = 260
INPUT = 1e-12
"""Relative: what the double log(E), handed over for an exact E, may move a delta by."""
Weights = tuple[int, int, int]
"""omega-masses of the outputs in A_x0 only, in both sets, in neither, up to a common factor."""

TWO_LEVEL: dict[str, tuple[RandomizerLaw, Weights]] = {
    "krr:3": (RandomizedResponse(3), (1, 0, 1)),
    "krr:7": (RandomizedResponse(7), (1, 0, 5)),
    "krr:1000000": (RandomizedResponse(10**6), (1, 0, 10**6 - 2)),
    "hadamard:10": (HadamardResponse(10), (1, 1, 1)),  # two rows of signs agree on half of the columns
    "subset:6:3": (SubsetSelection(6, size=3), (comb(4, 2), comb(4, 1), comb(4, 3))),
    "subset:30:4": (SubsetSelection(30, size=4), (comb(28, 3), comb(28, 2), comb(28, 4))),
    "olh:50:2": (LocalHashing(50, g=2), (1, 1, 1)),
    "olh:50:5": (LocalHashing(50, g=5), (4, 1, 16)),  # y = h0 != h1; y = h0 = h1; neither
    "olh:50:5:unknown": (LocalHashing(50, g=5, collision="unknown"), (1, 0, 3)),
}


def profile(family: RandomizerLaw, budgets: Budgets, epsilon0: float) -> PrivacyProfile:
    return bounds["blanket"].profile(Setting(budgets, family, seen="reports", neighboring="replace-one"), epsilon0)


def cells(weights: Weights, E: arb, t: arb) -> tuple[arb, list[tuple[arb, arb]]]:
    """gamma, and (omega-mass, L) per cell, of R/omega = E gamma on A_x and gamma elsewhere."""
    only, both, neither = (arb(w) for w in weights)
    whole = 2 * only + both + neither
    gamma = whole / (E * (only + both) + only + neither)
    law = [(only, E - t), (only, 1 - E * t), (both, E * (1 - t)), (neither, 1 - t)]
    return gamma, [(mass / whole, gamma * value) for mass, value in law if mass > 0]


def direct_h(law: Sequence[tuple[arb, arb]], m: int) -> arb:
    """E(L_1 + ... + L_m)_+ / m over all compositions of m."""
    powers = [[mass**j for j in range(m + 1)] for mass, _ in law]
    total = arb(0)
    for counts in compositions(m, len(law)):
        value = sum((k * loss for k, (_, loss) in zip(counts, law, strict=True)), arb(0))
        if not value < 0:
            ways, left = 1, m
            for k in counts:
                ways, left = ways * comb(left, k), left - k
            chance = arb(ways)
            for k, table in zip(counts, powers, strict=True):
                chance *= table[k]
            total += chance * value.max(arb(0))
    return total / m


def direct(law: Sequence[tuple[arb, arb]], gammas: Sequence[arb]) -> arb:
    """(I): E_C h(C), C the sum of Bern(gamma_i)."""
    count = arb_poly([1])
    for gamma in gammas:
        count *= arb_poly([1 - gamma, gamma])
    return sum((count[c] * direct_h(law, c + 1) for c in range(len(gammas) + 1)), arb(0))


def contains(interval: object, truth: arb, slack: float = 0.0) -> bool:
    low, high = arb(interval.lower), arb(interval.upper)  # type: ignore[attr-defined]
    return bool(low * (1 - slack) <= truth.upper() and truth.lower() <= high * (1 + slack))


def log_grid(top: float) -> list[float]:
    return [0.0, 0.03 * top, 0.3 * top, 0.8 * top, 0.99 * top]


# ---------------------------------------------------------- few users, all compositions


@pytest.mark.parametrize("name", TWO_LEVEL)
@pytest.mark.parametrize(("epsilon0", "n"), [(1e-6, 2), (0.3, 7), (1.0, 12), (3.0, 1), (8.0, 12), (40.0, 5)])
def test_one_budget_few_users(name, epsilon0, n):
    ctx.prec = PRECISION
    family, weights = TWO_LEVEL[name]
    found = profile(family, Budgets([epsilon0], [n]), epsilon0)
    for epsilon in log_grid(epsilon0):
        gamma, law = cells(weights, arb(epsilon0).exp(), arb(epsilon).exp())
        assert contains(found.delta(epsilon), direct(law, [gamma] * (n - 1))), (name, epsilon0, n, epsilon)


@pytest.mark.costly(but=("49-olh:50:5:unknown",))
@pytest.mark.parametrize("name", ["krr:7", "krr:3", "olh:50:5:unknown"])
@pytest.mark.parametrize("n", [48, 49, 60])
def test_both_sides_of_the_switch_to_the_transform(name, n):
    ctx.prec = PRECISION
    family, weights = TWO_LEVEL[name]
    found = profile(family, Budgets([2.0], [n]), 2.0)
    for epsilon in (0.0, 0.4, 1.5):
        gamma, law = cells(weights, arb(2).exp(), arb(epsilon).exp())
        assert contains(found.delta(epsilon), direct(law, [gamma] * (n - 1))), (name, n, epsilon)


@pytest.mark.parametrize("name", TWO_LEVEL)
@pytest.mark.parametrize("others", [(0.0,), (0.0, 0.5, 2.0), (1e-6, 4.0, 40.0), (0.2,) * 6 + (1.0,) * 4])
def test_own_budgets_few_users(name, others):
    ctx.prec = PRECISION
    family, weights = TWO_LEVEL[name]
    for victim in (0.7, 3.0):
        found = profile(family, Budgets.of([victim, *others]), victim)
        for epsilon in (0.0, 0.2 * victim, 0.9 * victim):
            t = arb(epsilon).exp()
            gammas = [cells(weights, arb(e).exp(), t)[0] for e in others]
            law = cells(weights, arb(victim).exp(), t)[1]
            assert contains(found.delta(epsilon), direct(law, gammas)), (name, others, victim, epsilon)


@pytest.mark.parametrize("optimized", [True, False])
@pytest.mark.parametrize("k", [2, 5])
def test_unary_encoding(k, optimized):
    """omega is k bits of chance q (k > 2), or the smaller of the two laws (k = 2)."""
    ctx.prec = PRECISION
    for epsilon0, n in ((0.5, 9), (2.0, 4), (20.0, 9)):
        E = arb(epsilon0).exp()
        root = E if optimized else E.sqrt()
        q = 1 / (1 + root)
        p = arb(0.5) if optimized else 1 - q
        found = profile(UnaryEncoding(k, optimized=optimized), Budgets([epsilon0], [n]), epsilon0)
        for epsilon in log_grid(epsilon0)[1:]:
            t = arb(epsilon).exp()
            own = [(p * (1 - q), q * (1 - p)), (q * (1 - p), p * (1 - q)), (p * q, p * q), ((1 - p) * (1 - q),) * 2]
            if k == 2:
                omega = [q * (1 - p), q * (1 - p), p * q, (1 - p) * (1 - q)]
                gamma = sum(omega, arb(0))
                omega = [mass / gamma for mass in omega]
            else:
                omega = [q * (1 - q), q * (1 - q), q * q, (1 - q) * (1 - q)]
                gamma = (1 - p) / (1 - q)
            law = [(mass, (a - t * b) / mass) for mass, (a, b) in zip(omega, own, strict=True)]
            assert contains(found.delta(epsilon), direct(law, [gamma] * (n - 1))), (k, optimized, epsilon0, epsilon)


@pytest.mark.costly("10", "6")
@pytest.mark.parametrize("n", [1, 2, 6, 10])
def test_channel_of_five_outputs_worst_of_all_pairs(n):
    ctx.prec = PRECISION
    rows = [[8, 16, 24, 12, 4], [20, 20, 4, 12, 8], [16, 8, 8, 16, 16]]
    exact = [[Fraction(entry, 64) for entry in row] for row in rows]
    least = [min(column) for column in zip(*exact, strict=True)]
    gamma, top = sum(least), math.log(6.0)
    channel = Channel([[float(p) for p in row] for row in exact])
    found = profile(channel, Budgets([channel.epsilon0], [n]), channel.epsilon0)
    for epsilon in log_grid(top)[:4]:
        t, truth = arb(epsilon).exp(), arb(0)
        for x0 in range(3):
            for x1 in range(3):
                law = [
                    (ball(w / gamma), ball(a * gamma / w) - t * ball(b * gamma / w))
                    for a, b, w in zip(exact[x0], exact[x1], least, strict=True)
                ]
                truth = truth.max(direct(law, [ball(gamma)] * (n - 1)))
        assert contains(found.delta(epsilon), truth), (n, epsilon)


def ball(value: Fraction) -> arb:
    return arb(value.numerator) / value.denominator


# ---------------------------------------------------------- more users: values on a lattice


def lattice(weights: Weights, E: Fraction, t: Fraction, n: int) -> arb:
    """(Z): all values of Z are multiples of gamma/denominator, so the sum's law is a power of a polynomial."""
    only, both, neither = weights
    whole = 2 * only + both + neither
    gamma = Fraction(whole) / (E * (only + both) + only + neither)
    values = [(only, E - t), (only, 1 - E * t), (both, E * (1 - t)), (neither, 1 - t)]
    unit = math.lcm(*(v.denominator for _, v in values))
    steps = [(ball(Fraction(w, whole) * gamma), int(v * unit)) for w, v in values if w]
    least = min(0, *(s for _, s in steps))
    law = [arb(0)] * (max(s for _, s in steps) - least + 1)
    law[-least] = ball(1 - gamma)
    for mass, step in steps:
        law[step - least] += mass
    power = arb_poly(law) ** n
    total = sum((power[j] * (j + least * n) for j in range(-least * n + 1, power.degree() + 1)), arb(0))
    return total / (n * unit)


LATTICES = [
    (Fraction(3), Fraction(1), 400),
    (Fraction(3), Fraction(3, 2), 400),
    (Fraction(3), Fraction(5, 2), 400),  # deep: 1e-89 for krr:3
    (Fraction(2), Fraction(3, 2), 700),
    (Fraction(9), Fraction(2), 200),
    (Fraction(20), Fraction(8), 60),
    (Fraction(6, 5), Fraction(11, 10), 900),
]


@pytest.mark.costly("E5-t5-60-krr:7", "E5-t5-60-olh:50:5", "E6-t6-900-krr:7", "E6-t6-900-subset:6:3")
@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ["krr:3", "krr:7", "hadamard:10", "olh:50:5", "subset:6:3"])
@pytest.mark.parametrize(("E", "t", "n"), LATTICES)
def test_lattice_values(name, E, t, n):
    ctx.prec = 1400  # far tails are differences of nothing: every coefficient is a sum of positive terms
    family, weights = TWO_LEVEL[name]
    epsilon0, epsilon = math.log(E), math.log(t)
    truth = lattice(weights, E, t, n)
    found = profile(family, Budgets([epsilon0], [n]), epsilon0).delta(epsilon)
    assert contains(found, truth, INPUT), (name, str(E), str(t), n, found, truth)
    assert found.upper <= 1.2 * float(truth.mid()) + 1e-290


# ---------------------------------------------------------- very many users: a contour integral


def contour(weights: Weights, epsilon0: float, epsilon: float, n: float) -> mpf:
    """(Z) by (1/2 pi i) int M(z)^n z^-2 dz through the saddle; other peaks are far smaller."""
    E, t = mp.exp(mpf(epsilon0)), mp.exp(mpf(epsilon))
    only, both, neither = (mpf(w) for w in weights)
    whole = 2 * only + both + neither
    gamma = whole / (E * (only + both) + only + neither)
    law = [(only, E - t), (only, 1 - E * t), (both, E * (1 - t)), (neither, 1 - t)]
    law = [(gamma * w / whole, v) for w, v in law if w]

    def exponent(z: mpc) -> mpc:
        return n * mp.log1p(mp.fsum(q * mp.expm1(z * v) for q, v in law)) - 2 * mp.log(z)

    def slope(z: mpf) -> mpf:
        return (
            n
            * mp.fsum(q * v * mp.exp(z * v) for q, v in law)
            / mp.fsum([mp.one - mp.fsum(q for q, _ in law), *(q * mp.exp(z * v) for q, v in law)])
            - 2 / z
        )

    low, high = mpf(10) ** -16, 60 / (E - t)
    for _ in range(120):
        middle = mp.sqrt(low * high)
        low, high = (low, middle) if slope(middle) > 0 else (middle, high)
    step = high * mpf(10) ** -8
    width = 1 / mp.sqrt((slope(high + step) - slope(high - step)) / (2 * step))
    peak = exponent(mpc(high)).real
    area = mp.quad(lambda y: mp.exp(exponent(mpc(high, y)) - peak).real, [width * i for i in (0, 1, 2, 4, 7, 12)])
    return mp.exp(peak) * area / mp.pi / n


MANY = [
    (0.01, 1e6, 1e-5),
    (0.5, 1e5, 3e-3),
    (0.5, 1e6, 0.02),  # about 1e-250 for krr:7
    (1.0, 1e12, 1e-6),
    (1.0, 1e12, 2e-5),
    (4.0, 1e7, 0.01),
    (12.0, 1e9, 0.05),
    (20.0, 1e12, 0.03),
]


@pytest.mark.costly(but=("0.01-1000000.0-1e-05-krr:1000000",))
@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", ["krr:3", "krr:7", "hadamard:10", "olh:50:5", "subset:30:4", "krr:1000000"])
@pytest.mark.parametrize(("epsilon0", "n", "epsilon"), MANY)
def test_many_users(name, epsilon0, n, epsilon):
    family, weights = TWO_LEVEL[name]
    found = profile(family, Budgets([epsilon0], [int(n)]), epsilon0).delta(epsilon)
    with mp.workdps(40):
        truth = contour(weights, epsilon0, epsilon, n)
    if truth < 1e-290:
        assert found.upper < 1e-280
        return
    assert mpf(found.lower) * (1 - 1e-9) <= truth <= mpf(found.upper) * (1 + 1e-9)
    assert found.upper <= float(truth) * 1.02


def test_budgets_of_nothing():
    """epsilon0 = 0: a report that says nothing, hidden or not."""
    for family, _ in TWO_LEVEL.values():
        found = profile(family, Budgets([0.0, 2.0], [1000, 1]), 0.0)
        assert found.delta(0.0).upper == 0.0
        assert found.epsilon(1e-250).upper == 0.0
        alone = profile(family, Budgets([0.0], [5]), 0.0)
        assert alone.epsilon(1e-6).upper == 0.0


# ---------------------------------------------------------- laws that must hold

FEW = settings(max_examples=12, deadline=None, derandomize=True)
budget = st.floats(0.01, 6.0)
name = st.sampled_from(sorted(TWO_LEVEL))
size = st.integers(2, 100_000)
SLACK = 2e-3
"""Relative: the enclosures of (I) by the transform are about 1e-3 wide."""


@FEW
@given(name, budget, size, st.floats(0.0, 0.95), st.floats(0.0, 0.95))
def test_delta_falls_with_epsilon(which, epsilon0, n, a, b):
    found = profile(TWO_LEVEL[which][0], Budgets([epsilon0], [n]), epsilon0)
    near, far = found.delta(min(a, b) * epsilon0), found.delta(max(a, b) * epsilon0)
    assert far.lower <= near.upper
    assert near.lower <= near.upper
    assert far.upper <= near.upper * (1 + SLACK) + 1e-290


@pytest.mark.costly
@FEW
@given(name, budget, budget, size, st.floats(-60, -2))
def test_epsilon_grows_with_the_budget_and_falls_with_users(which, a, b, n, log_delta):
    delta, family = 10.0**log_delta, TWO_LEVEL[which][0]
    small = profile(family, Budgets([min(a, b)], [n]), min(a, b)).epsilon(delta)
    large = profile(family, Budgets([max(a, b)], [n]), max(a, b)).epsilon(delta)
    more = profile(family, Budgets([max(a, b)], [2 * n]), max(a, b)).epsilon(delta)
    assert small.lower <= large.upper
    assert more.lower <= large.upper
    assert large.lower <= large.upper <= max(a, b) * (1 + 1e-12)


@FEW
@given(name, budget, st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0, 3.0]), min_size=1, max_size=8), st.floats(-40, -2))
def test_a_user_with_a_smaller_budget_is_a_better_company(which, victim, others, log_delta):
    family = TWO_LEVEL[which][0]
    worse = profile(family, Budgets.of([victim, *others]), victim).epsilon(10.0**log_delta)
    better = profile(family, Budgets.of([victim, *(0.5 * x for x in others)]), victim).epsilon(10.0**log_delta)
    assert better.lower <= worse.upper


# ---------------------------------------------------------- the trap: counts of two symbols alone


def four_symbols(epsilon0: float, n: int, epsilon: float) -> float:
    """Exact divergence of all four counts of shuffled 4-ary randomized response, the others on the third symbol."""
    s = 1.0 / (math.exp(epsilon0) + 3.0)
    a, b, c = np.indices((n + 1, n + 1, n + 1)).reshape(3, -1)
    whole = a + b + c <= n
    counts = np.stack((a[whole], b[whole], c[whole], n - (a + b + c)[whole])).astype(float)
    others = np.log(np.array([s, s, math.exp(epsilon0) * s, s]))
    # M(counts - e_y) = M(counts) count_y / (n q_y), M the multinomial law of n others
    log_m = gammaln(n + 1.0) - gammaln(counts + 1.0).sum(axis=0) + others @ counts
    share = counts / (n * np.exp(others)[:, None])
    report = np.full((2, 4), s)
    report[0, 0] = report[1, 1] = math.exp(epsilon0) * s
    P, Q = report @ share
    return float(np.exp(log_m) @ np.maximum(P - math.exp(epsilon) * Q, 0.0))


@pytest.mark.costly(but=("2.0-1.2e-06",))
@pytest.mark.parametrize(("epsilon0", "leaked"), [(1.0, 1.07e-6), (2.0, 1.20e-6), (3.0, 6.23e-6)])
def test_the_pair_of_counts_is_no_upper_bound(epsilon0, leaked):
    """The counts of x0 and x1 alone do not tell what the others tell about the victim being among them.

    wangsw/PrivacyAmplification takes their divergence for an upper bound for k-ary randomized response. At its epsilon
    for delta = 1e-6 (n = 120, k = 4) the real protocol has the deltas above; the blanket counts all outputs.
    """
    n = 120
    setting = Setting(Budgets([epsilon0], [n]), RandomizedResponse(4), seen="reports", neighboring="replace-one")
    claimed = bounds["krr-exact"].profile(setting, epsilon0).epsilon(1e-6).lower
    truth = four_symbols(epsilon0, n, claimed)
    assert truth == pytest.approx(leaked, rel=0.01)
    blanket = bounds["blanket"].profile(setting, epsilon0)
    assert blanket.delta(claimed).upper >= truth
    certified = certify(setting, 1e-6).epsilon
    assert claimed <= certified.lower * (1 + 1e-4)
    assert four_symbols(epsilon0, n, certified.upper) <= 1e-6
