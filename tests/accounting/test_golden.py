"""Every value of the golden file is enclosed by the certified API, and narrowly."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import numpy as np
import pytest

from shuffledp.accounting import bounds
from shuffledp.accounting.theorems.count.exact import rr_count_profile
from shuffledp.budgets import Budgets
from shuffledp.numerics.floats import Interval
from shuffledp.randomizers import RandomizedResponse
from shuffledp.setting import Setting
from tests import oracles

FILE = Path(__file__).parents[1] / "reference" / "clone_pair.json"
GOLDEN = json.loads(FILE.read_text(encoding="utf-8"))
ROUNDED = 2e-16
"""Relative rounding of the file's own 17 digits."""
NARROW = 1e-4


def cases(prefix: str) -> list[object]:
    chosen = [case for case in GOLDEN if case["kind"].startswith(prefix)]
    assert chosen
    names = [f"n={c.get('n', len(c.get('epsilons', [])))},v={c.get('victim')}" for c in chosen]
    return [pytest.param(case, id=name) for case, name in zip(chosen, names, strict=True)]


def check(interval: Interval, golden: float, what: object) -> None:
    slack = ROUNDED * abs(golden)
    assert interval.lower <= golden + slack, (what, interval, golden)
    assert interval.upper >= golden - slack, (what, interval, golden)
    assert interval.width <= max(NARROW * abs(golden), 1e-300), (what, interval, golden)


def check_case(profile: object, case: dict[str, object]) -> None:
    for eps, delta in case["profile"]:
        check(profile.delta(eps), delta, ("delta at", eps))
    for delta, epsilon in case["epsilon"]:
        check(profile.epsilon(delta), epsilon, ("epsilon at", delta))


@pytest.mark.parametrize("case", cases("uniform clone pair"))
def test_uniform_clone_pair(case):
    e0 = case["epsilon0"]
    setting = Setting(Budgets.of([e0] * case["n"]), "any", seen="reports", neighboring="replace-one")
    check_case(bounds["clones"].profile(setting, epsilon0=e0), case)


@pytest.mark.parametrize("key", ["clones", "blanket"])
@pytest.mark.parametrize("case", cases("personalized clone pair"))
def test_personal_clone_pair(case, key):
    setting = Setting(Budgets.of(case["epsilons"]), RandomizedResponse(k=2), seen="reports", neighboring="replace-one")
    check_case(bounds[key].profile(setting, epsilon0=case["epsilons"][case["victim"]]), case)


@pytest.mark.parametrize("case", cases("witness"))
def test_krr_witness(case):
    e0 = case["epsilon0"]
    setting = Setting(
        Budgets.of([e0] * case["n"]),
        RandomizedResponse(k=case["k"]),
        seen="reports",
        neighboring="replace-one",
    )
    check_case(bounds["krr-exact"].profile(setting, epsilon0=e0), case)


@pytest.mark.costly("n=120,v=0_1")
@pytest.mark.parametrize("case", cases("binary randomized response"))
def test_binary_randomized_response_count(case):
    """`ones` are held by the others of smallest epsilon0; the file gives them to the first of its list."""
    budgets, victim, ones = case["epsilons"], case["victim"], case["others_ones"]
    others = budgets[:victim] + budgets[victim + 1 :]
    profile = rr_count_profile(Budgets.of(budgets), budgets[victim], ones)
    for (eps, pq), (_, qp) in zip(case["profile_pq"], case["profile_qp"], strict=True):
        if others[:ones] == sorted(others)[:ones]:
            golden = max(pq, qp)
        else:
            golden = float(max(oracles.rr_count_deltas(budgets[victim], sorted(others), ones, eps)))
        check(profile.delta(eps), golden, ("delta at", eps))


def test_rr_exact_is_at_least_every_count_of_ones():
    """The witness maximises over the others' records; each single choice in the file is below it."""
    for case in (c for c in GOLDEN if c["kind"].startswith("binary")):
        budgets, victim = case["epsilons"], case["victim"]
        setting = Setting(Budgets.of(budgets), RandomizedResponse(k=2), seen="reports", neighboring="replace-one")
        profile = bounds["count-exact"].profile(setting, epsilon0=budgets[victim])
        if case["others_ones"] == 0:
            for eps, pq in case["profile_pq"]:
                assert profile.delta(eps).upper >= pq * (1 - 1e-12), (budgets, eps)


@pytest.mark.costly
@pytest.mark.one_in(4)
@pytest.mark.parametrize("n", [10**6, 10**8, 10**10, 10**12])
@pytest.mark.parametrize("e0", [0.1, 1.0, 4.0, 8.0])
def test_large_population(n, e0):
    """Against the contour integral, whose relative error is below 1/(number of clones)."""
    setting = Setting(Budgets(epsilons=(e0,), counts=(n,)), "any", seen="reports", neighboring="replace-one")
    profile = bounds["clones"].profile(setting, epsilon0=e0)
    clones = 2 * n / (1 + math.exp(e0))
    scale = math.tanh(e0 / 2) * math.sqrt(2 * (1 + math.exp(e0)) / n)
    for z in (0.1, 3.0, 6.0):
        interval, expected = profile.delta(z * scale), float(oracles.clone_pair_delta_large(e0, n, z * scale))
        slack = expected / clones
        assert interval.lower - slack <= expected <= interval.upper + slack, (z, interval, expected)
        assert interval.width <= 3e-3 * expected, (z, interval, expected)
    for delta in (1e-3, 1e-6, 1e-12):
        epsilon = profile.epsilon(delta)
        assert epsilon.upper <= epsilon.lower * (1 + NARROW), (delta, epsilon)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("seed", range(12))
def test_kary_blanket_with_own_budgets(seed):
    """(I) by enumerating the counts of x0, x1 and third symbols, 40 digits."""
    rng = random.Random(seed)
    k, n = rng.choice([2, 3, 4, 10, 100]), rng.choice([1, 2, 5, 12, 25])
    budgets = [rng.choice([0.0, 0.05, 0.3, 1.0, 2.5, 6.0]) for _ in range(n)]
    budgets[0] = rng.choice([0.3, 1.0, 2.5, 6.0])
    setting = Setting(Budgets.of(budgets), RandomizedResponse(k=k), seen="reports", neighboring="replace-one")
    profile = bounds["blanket"].profile(setting, epsilon0=budgets[0])
    for share in (0.0, 0.01, 0.3, 0.9):
        eps = share * budgets[0]
        golden = float(oracles.krr_blanket_delta(k, budgets[0], budgets[1:], eps))
        interval = profile.delta(eps)
        assert interval.lower <= golden * (1 + 1e-15), (k, budgets, eps, interval, golden)
        assert interval.upper >= golden * (1 - 1e-15), (k, budgets, eps, interval, golden)
        assert interval.width <= 1e-3 * golden + 1e-13, (k, budgets, eps, interval, golden)


@pytest.mark.costly("100000-0.5")
@pytest.mark.one_in(3)
@pytest.mark.parametrize("victim", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("scale", [10, 1000, 100_000])
def test_levels_of_a_large_population(victim, scale):
    """GSPA's fractions of three budgets, against the direct sum over the clone count in doubles."""
    counts = {0.1: 5 * scale, 0.5: 4 * scale, 1.0: scale}
    setting = Setting(
        Budgets(epsilons=tuple(counts), counts=tuple(counts.values())),
        RandomizedResponse(k=2),
        seen="reports",
        neighboring="replace-one",
    )
    others = {budget: size - (budget == victim) for budget, size in counts.items()}
    clones = sum(2 * size / (1 + math.exp(budget)) for budget, size in counts.items())
    unit = 2 * math.tanh(victim / 2) / math.sqrt(clones)
    profile = bounds["clones"].profile(setting, epsilon0=victim)
    for z in (0.0, 1.0, 3.0):
        interval, expected = (
            profile.delta(z * unit),
            oracles.clone_pair_delta_levels(victim, others, z * unit),
        )
        assert interval.lower - 2e-12 <= expected <= interval.upper + 2e-12, (z, interval, expected)
        assert interval.width <= NARROW * expected + 2e-12, (z, interval, expected)


DELTA = 1e-6
# clone pair, one budget: (epsilon0, n, epsilon at delta = 1e-6, half a unit of its last digit)
REFERENCE_POINTS = [
    (0.1, 10**4, 0.00279, 5e-6),
    (0.5, 10**5, 0.00515, 5e-6),
    (1.0, 10**3, 0.1487, 5e-5),
    (1.0, 10**4, 0.0432, 5e-5),
    (1.0, 10**6, 0.00351, 5e-6),
    (2.0, 10**4, 0.1144, 5e-5),
    (4.0, 10**4, 0.4108, 5e-5),
    (4.0, 10**6, 0.0343, 5e-5),
]


@pytest.mark.parametrize(("e0", "n", "epsilon", "digit"), REFERENCE_POINTS)
def test_reference_points_of_the_clone_pair(e0, n, epsilon, digit):
    setting = Setting(Budgets(epsilons=(e0,), counts=(n,)), "any", seen="reports", neighboring="replace-one")
    found = bounds["clones"].profile(setting, epsilon0=e0).epsilon(DELTA)
    assert found.upper == pytest.approx(epsilon, abs=1.2 * digit)
    assert found.width <= NARROW * found.upper


@pytest.mark.costly("10000-0.0325-0.0362")
@pytest.mark.parametrize(("n", "real", "proved"), [(1000, 0.1140, 0.1251), (10_000, 0.0325, 0.0362)])
def test_reference_points_of_personal_budgets(n, real, proved):
    budgets = np.random.default_rng(0).uniform(0.05, 1, 1000)
    if n == 10_000:
        generator = np.random.default_rng(0)
        generator.uniform(0.05, 1, 1000)
        budgets = generator.uniform(0.05, 1, 10_000)
    setting = Setting(Budgets.of(budgets), RandomizedResponse(k=2), seen="reports", neighboring="replace-one")
    worst = float(budgets.max())
    upper = bounds["clones"].profile(setting, epsilon0=worst).epsilon(DELTA)
    witness = bounds["count-exact"].profile(setting, epsilon0=worst).epsilon(DELTA)
    assert upper.upper == pytest.approx(proved, abs=1e-4)
    assert witness.lower == pytest.approx(real, abs=2e-4)
    assert witness.lower <= upper.upper


def test_reference_point_of_ten_symbols():
    setting = Setting(
        Budgets(epsilons=(1.0,), counts=(1000,)),
        RandomizedResponse(k=10),
        seen="reports",
        neighboring="replace-one",
    )
    blanket = bounds["blanket"].profile(setting, epsilon0=1.0).epsilon(DELTA)
    assert blanket.upper == pytest.approx(0.0802, abs=1e-4)
    assert blanket.width <= 1e-3 * blanket.upper
