"""The oracles against each other and against the golden file: two ways to every number."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from fractions import Fraction
from math import comb
from pathlib import Path

import pytest
from mpmath import exp, log, mpf

from tests import arb_oracles, oracles

GOLDEN = json.loads((Path(__file__).parent / "reference" / "clone_pair.json").read_text(encoding="utf-8"))
ROUNDED = 3e-16
"""The file holds 17 digits read into doubles."""


def close(value: object, golden: float) -> bool:
    return abs(value - mpf(golden)) <= ROUNDED * max(abs(golden), 1e-300)


@pytest.mark.costly("case2")
@pytest.mark.one_in(4)
@pytest.mark.parametrize("case", [c for c in GOLDEN if c["kind"].startswith("uniform") and c["n"] <= 200])
def test_uniform_clone_pair(case):
    n, e0 = case["n"], case["epsilon0"]
    for eps, delta in case["profile"][1:4]:
        assert close(oracles.clone_pair_delta(e0, [e0] * (n - 1), eps), delta)
        if n <= 50:
            assert close(oracles.clone_pair_delta_z_form(e0, n, eps), delta)


@pytest.mark.costly
@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", [c for c in GOLDEN if c["kind"].startswith("uniform") and c["n"] >= 200])
def test_contour_integral_for_large_populations(case):
    n, e0 = case["n"], case["epsilon0"]
    clones = 2 * n / (1 + exp(mpf(e0)))
    for eps, delta in case["profile"][1:4]:
        assert abs(oracles.clone_pair_delta_large(e0, n, eps) / delta - 1) < max(1 / clones, 0.003)


@pytest.mark.costly(but=("case0",))
@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", [c for c in GOLDEN if c["kind"].startswith("personalized")])
def test_personal_clone_pair(case):
    budgets, v = case["epsilons"], case["victim"]
    others = budgets[:v] + budgets[v + 1 :]
    for eps, delta in case["profile"][1:3]:
        assert close(oracles.clone_pair_delta(budgets[v], others, eps), delta)
    delta, epsilon = case["epsilon"][0]
    for factor, inside in (
        (1 - 1e-14, False),
        (1 + 1e-14, True),
    ):  # brackets the solution of delta(eps) = delta
        assert (oracles.clone_pair_delta(budgets[v], others, epsilon * factor) <= delta) == inside


@pytest.mark.parametrize("case", [c for c in GOLDEN if c["kind"].startswith("personalized")])
def test_clone_pair_in_doubles(case):
    budgets, v = case["epsilons"], case["victim"]
    others = Counter(budgets[:v] + budgets[v + 1 :])
    for eps, delta in case["profile"]:
        assert oracles.clone_pair_delta_levels(budgets[v], others, eps) == pytest.approx(delta, abs=1e-12)


@pytest.mark.costly("case1")
@pytest.mark.parametrize("case", [c for c in GOLDEN if c["kind"].startswith("witness")])
def test_krr_witness(case):
    for eps, delta in case["profile"][2:3]:
        assert close(oracles.krr_witness_delta(case["k"], case["epsilon0"], case["n"], eps), delta)


@pytest.mark.costly("case4", "case5")
@pytest.mark.parametrize("case", [c for c in GOLDEN if c["kind"].startswith("binary")])
def test_binary_randomized_response(case):
    budgets, v = case["epsilons"], case["victim"]
    others = budgets[:v] + budgets[v + 1 :]
    for (eps, pq), (_, qp) in zip(case["profile_pq"], case["profile_qp"], strict=True):
        forth, back = oracles.rr_count_deltas(budgets[v], others, case["others_ones"], eps)
        assert close(forth, pq)
        assert close(back, qp)


def test_krr_blanket_with_two_symbols_is_the_clone_pair():
    for others in ([0.3, 1.1, 2.0, 0.7], [0.5] * 12):
        for eps in (0.0, 0.1, 0.5):
            two = oracles.krr_blanket_delta(2, 1.5, others, eps)
            assert abs(two - oracles.clone_pair_delta(1.5, others, eps)) < mpf(10) ** -35


def test_blanket_bounds_the_enumerated_protocol_exactly_where_it_should():
    """Binary RR, everybody else on x0, large eps: (I) is attained (clone_theorem.md, remark 4)."""
    E = Fraction(3)
    n = 4
    channel = oracles.krr_channel(2, E)
    ratio = Fraction((n - 1) * 3 + 1, n - 1 + 3)
    real = oracles.ShuffledProtocol([channel] * n).worst(0, ratio)
    eps = oracles.fraction_log(ratio)
    bound = oracles.clone_pair_delta(oracles.fraction_log(E), [oracles.fraction_log(E)] * (n - 1), eps)
    assert abs(mpf(real.numerator) / real.denominator - bound) < mpf(10) ** -35


def test_enumeration_agrees_with_the_two_exact_counts():
    E, ratio, n = Fraction(5, 2), Fraction(6, 5), 5
    eps, e0 = oracles.fraction_log(ratio), oracles.fraction_log(E)
    protocol = oracles.ShuffledProtocol([oracles.krr_channel(3, E)] * n)
    forth = oracles.hockey_stick(protocol.law([0] + [2] * 4), protocol.law([1] + [2] * 4), ratio)
    expected = oracles.krr_witness_delta(3, e0, n, eps)
    assert abs(mpf(forth.numerator) / forth.denominator - expected) < mpf(10) ** -35
    binary = oracles.ShuffledProtocol([oracles.krr_channel(2, E)] * n)
    for ones in range(n):
        held = [1] * ones + [0] * (n - 1 - ones)
        forth = oracles.hockey_stick(binary.law([0, *held]), binary.law([1, *held]), ratio)
        expected, _ = oracles.rr_count_deltas(e0, [e0] * (n - 1), ones, eps)
        assert abs(mpf(forth.numerator) / forth.denominator - expected) < mpf(10) ** -35


def test_worst_case_search_misses_no_record():
    """`worst` groups exchangeable users; the plain product over all records must agree, for every view."""
    rng = random.Random(1)
    channels = [oracles.krr_channel(3, Fraction(rng.randint(11, 40), 10)) for _ in range(3)] * 2
    ratio = Fraction(21, 20)
    for tags, summed in ((None, False), ([0, 1, 2] * 2, False), (None, True)):
        protocol = oracles.ShuffledProtocol(channels[:4], None if tags is None else tags[:4], summed=summed)
        plain = Fraction(0)
        for code in range(3**3):
            held = [code // 3**i % 3 for i in range(3)]
            for x0 in range(3):
                for x1 in range(3):
                    P, Q = protocol.law([x0, *held]), protocol.law([x1, *held])
                    assert sum(P.values()) == 1
                    plain = max(plain, oracles.hockey_stick(P, Q, ratio))
        assert protocol.worst(0, ratio) == plain


def test_arb_tails_against_exact_fractions():
    rng = random.Random(2)
    for _ in range(60):
        n = rng.randint(1, 60)
        p = rng.choice([rng.random(), 2.0**-30, 1 - 2.0**-30])
        a = rng.randint(0, n + 1)
        P = Fraction(p)
        law = [comb(n, k) * P**k * (1 - P) ** (n - k) for k in range(n + 1)]
        for ball, exact in (
            (arb_oracles.sf(a, n, p), sum(law[a:], Fraction(0))),
            (arb_oracles.cdf(a, n, p), sum(law[: a + 1], Fraction(0))),
            (arb_oracles.pmf(a, n, p), law[a] if a <= n else Fraction(0)),
            (arb_oracles.poisson_binomial_cdf(a, [p] * n), sum(law[: a + 1], Fraction(0))),
        ):
            assert math.isclose(float(ball.mid()), float(exact), rel_tol=1e-15, abs_tol=0.0)


@pytest.mark.costly
def test_arb_integral_against_arb_beta():
    """The piecewise integral (used beyond 1e6 users) and Arb's own function enclose the same number."""
    rng = random.Random(3)
    for _ in range(25):
        n = int(10 ** rng.uniform(1, 6))
        p = rng.choice([rng.random(), 10 ** rng.uniform(-6, -1), 1 - 10 ** rng.uniform(-6, -1)])
        a = min(n - 1, max(2, round(n * p + rng.uniform(-20, 20) * math.sqrt(n * p * (1 - p)))))
        direct = arb_oracles.sf(a, n, p)
        other = arb_oracles.beta_integral(a, n, 0.0, p)
        assert direct.overlaps(other)
        assert other.rel_accuracy_bits() > 50
        assert (arb_oracles.beta_integral(a, n, p, 1.0) + direct).contains(1)


def test_arb_large_population_has_accurate_balls():
    for a, n, p in ((10**12 // 2 + 10**6, 10**12, 0.5), (2, 10**12, 1e-160), (10**12 - 5, 10**12, 1 - 1e-11)):
        up, down = arb_oracles.sf(a, n, p), arb_oracles.cdf(a - 1, n, p)
        assert up.rel_accuracy_bits() > 50
        assert (up + down).contains(1)


def test_published_formula():
    """GSPA Theorem 2 reference points of its own formula, delta = 1e-6."""
    for e0, n, value in ((1, 1000, 0.339), (2, 10_000, 0.153), (4, 10_000, 0.420)):
        assert float(oracles.gspa_epsilon([e0] * n, 1e-6)) == pytest.approx(value, rel=5e-3)


def test_fraction_log():
    assert exp(oracles.fraction_log(Fraction(7, 3))) == pytest.approx(mpf(7) / 3)
    assert log(mpf(2)) == oracles.fraction_log(Fraction(2))
