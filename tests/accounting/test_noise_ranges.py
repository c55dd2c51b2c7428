"""Added noise of more than 32 different budgets: lemma (T) of docs/theorems/blanket.md, and what it is used for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

import shuffledp as sdp
from shuffledp.accounting.theorems.blanket.bound import range_profiles, ranges
from shuffledp.accounting.theorems.blanket.noise import outside_mass, rounded_groups, shared_chances
from shuffledp.numerics.tails import noise_epsilons, normal_divergence

EDGES = (6.0, 9.0)


def _density(kind: str, scale: float, u: np.ndarray) -> np.ndarray:
    return np.exp(-np.abs(u) / scale) / (2 * scale) if kind == "laplace" else norm.pdf(u, scale=scale)


def _blanket(kind: str, narrow: float, scale: float, y: np.ndarray) -> np.ndarray:
    """omega'' of (T) by quadrature: the core of the narrow noise, widened, within the farther edge."""
    near = EDGES[0]
    u, step = np.linspace(1.0 - near, near, 8_001, retstep=True)
    core = _density(kind, narrow, np.maximum(np.abs(u), np.abs(1.0 - u)))
    core /= core.sum() * step
    if kind == "laplace":
        rho = (narrow / scale) ** 2
        inside = np.interp(y, u, core, left=0.0, right=0.0)
        spread = np.array([(core * _density(kind, scale, at - u)).sum() * step for at in y])
        wide = rho * inside + (1 - rho) * spread
    else:
        tau = math.sqrt(scale**2 - narrow**2)
        wide = np.array([(core * norm.pdf(at - u, scale=tau)).sum() * step for at in y])
    return wide / (wide.sum() * (y[1] - y[0]))


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [0.55, 0.6])
def test_chance_times_blanket_is_below_every_users_density(kind: str, scale: float) -> None:
    others = np.array([0.4, 0.5, 0.7, 2.0])
    chances = shared_chances(kind, 0.5, 0.6, EDGES, others)
    y = np.linspace(1.0 - EDGES[1], EDGES[1], 201)
    omega = _blanket(kind, 0.5, scale, y)
    farthest = np.maximum(np.abs(y), np.abs(1.0 - y))
    for other, chance in zip(others.tolist(), chances.tolist(), strict=True):
        assert (chance * omega <= _density(kind, other, farthest) * (1 + 1e-4)).all()
    assert chances[2] > 0.05  # it is not vacuous


def test_a_chance_twice_as_large_would_be_refuted() -> None:
    chances = 2.0 * shared_chances("laplace", 0.5, 0.6, EDGES, np.array([0.6]))
    y = np.linspace(1.0 - EDGES[1], EDGES[1], 201)
    farthest = np.maximum(np.abs(y), np.abs(1.0 - y))
    assert (chances[0] * _blanket("laplace", 0.5, 0.6, y) > _density("laplace", 0.6, farthest)).any()


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_mass_outside_is_that_of_the_worst_record(kind: str) -> None:
    y = np.linspace(3.0, 60.0, 200_001)
    step = y[1] - y[0]
    for record in (0.0, 0.3, 1.0):
        beyond = (_density(kind, 0.9, y - record) + _density(kind, 0.9, 1.0 - y - record)).sum() * step
        assert beyond <= outside_mass(kind, 0.9, 3.0) * (1 + 1e-3)


def test_rounding_to_few_chances_only_lowers_them() -> None:
    random = np.random.default_rng(3)
    chances, counts = random.uniform(0, 1, 300), random.integers(1, 9, 300).astype(float)
    p, n = rounded_groups(chances, counts, 16, 10)
    assert p.size <= 16
    assert n.sum() == counts.sum() - 10
    kept = np.sort(np.repeat(chances, counts.astype(int)))[:-10]
    assert (np.sort(np.repeat(p, n.astype(int))) <= kept).all()
    assert np.repeat(p, n.astype(int)).sum() > 0.93 * kept.sum()


def test_ranges_begin_with_the_narrowest_alone() -> None:
    scales = np.geomspace(1.0, 20.0, 500)
    found = ranges(scales, 24)
    assert (found == 0).sum() == 1
    assert found.max() == 23
    assert (np.diff(found) >= 0).all()
    assert (ranges(np.ones(3), 24) == 0).all()


def _setting(law: object, epsilons: np.ndarray, each: int = 1, **more: object) -> sdp.Setting:
    delta0 = 1e-7 if isinstance(law, sdp.Gaussian) else 0.0
    budgets = sdp.Budgets(epsilons, np.full(epsilons.size, each), np.full(epsilons.size, delta0))
    return sdp.Setting(budgets, law, seen="reports", neighboring="replace-one", **more)  # type: ignore[arg-type]


@pytest.mark.costly("gaussian")
@pytest.mark.parametrize("law", [sdp.Laplace(0, 1), sdp.Gaussian(0, 1)], ids=["laplace", "gaussian"])
def test_forty_levels_amplify_nearly_as_well_as_thirty_two(law: object) -> None:
    blanket = sdp.bounds["blanket"]
    many = _setting(law, np.linspace(0.5, 1.0, 40), 50)
    few = _setting(law, np.linspace(0.5, 1.0, 32), 62)
    top = blanket.level_epsilons(many, 1e-6, np.array([39])).upper[0]
    known = blanket.level_epsilons(few, 1e-6, np.array([31])).upper[0]
    assert known * 0.9 < top < known * 1.06


def test_every_level_of_a_range_is_answered_by_a_larger_number_than_by_itself() -> None:
    """32 levels have their own evaluation; ranges of the same population may not be below it."""
    setting = _setting(sdp.Laplace(0, 1), np.linspace(0.2, 1.0, 20), 100)
    law = setting.adds_noise
    assert law is not None
    own = sdp.bounds["blanket"].level_epsilons(setting, 1e-6, np.array([5])).lower[0]
    (found,) = [profile for members, profile in range_profiles(law, setting.budgets, 0, 12) if 5 in members]
    assert own <= found.epsilon(1e-6).upper <= 1.25 * own


def test_missing_users_are_those_who_hide_best() -> None:
    law, epsilons = sdp.Laplace(0, 1), np.linspace(0.5, 1.0, 40)
    blanket, top = sdp.bounds["blanket"], np.array([39])
    full = blanket.level_epsilons(_setting(law, epsilons, 50), 1e-6, top).upper[0]
    missed = blanket.level_epsilons(_setting(law, epsilons, 50, missing=0.05), 1e-6, top).upper[0]
    assert full < missed < 1.1 * full


@pytest.mark.slow
@pytest.mark.parametrize("law", [sdp.Laplace(0, 1), sdp.Gaussian(0, 1)], ids=["laplace", "gaussian"])
def test_ten_thousand_different_budgets_amplify(law: object) -> None:
    """0.99999 and 0.8957 before: every number was the local one."""
    epsilons = np.random.default_rng(1).uniform(0.05, 1.0, 10_000)
    found = sdp.certify(_setting(law, epsilons), 1e-6, max_levels=100).epsilon
    assert found.upper < (0.0493 if isinstance(law, sdp.Laplace) else 0.013)


@pytest.mark.slow
def test_rounds_of_many_levels_amplify() -> None:
    setting = _setting(sdp.Laplace(0, 1), np.linspace(0.5, 1.0, 40), 50, rounds=2)
    assert sdp.bounds["blanket"].level_epsilons(setting, 1e-6, np.array([39])).upper[0] < 0.3


def test_local_epsilons_of_normal_noise_are_next_to_the_smallest() -> None:
    sigma = np.array([0.3, 1.0, 7.0, 500.0, 1e9])
    found = noise_epsilons(sigma, 1e-6)
    assert (normal_divergence(found, 1.0 / sigma).upper <= 1e-6).all()
    assert (normal_divergence(found[:4] * (1 - 1e-9), 1.0 / sigma[:4]).lower > 1e-6 * (1 - 1e-6)).all()
    assert found[4] == 0.0


@pytest.mark.parametrize("law", [sdp.Laplace(0, 1), sdp.Gaussian(0, 1)], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("delta", [5e-324, 1e-310, 1e-100])
def test_below_the_least_delta_the_local_number_is_the_answer(law: object, delta: float) -> None:
    """5e-324 was a ZeroDivisionError, 1e-310 a warning; normal noise took minutes at 1e-100."""
    setting = _setting(law, np.linspace(0.5, 1.0, 40), 50)
    found = sdp.bounds["blanket"].level_epsilons(setting, delta, np.array([0, 39])).upper
    local = sdp.bounds["local"].level_epsilons(setting, 1e-7, np.array([0, 39])).upper
    assert (found >= local).all()
    if isinstance(law, sdp.Laplace):
        assert found.tolist() == [0.5, 1.0]
    else:
        own = normal_divergence(found, 1.0 / law.scale(setting.budgets.epsilons[[0, 39]], 1e-7))  # type: ignore[attr-defined]
        assert (own.lower <= delta).all()
