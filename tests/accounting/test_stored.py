"""Stored curves are never below what they keep, and Gaussian covers never below the stored curve."""

from __future__ import annotations

import json
import math

import mpmath
import numpy as np
import pytest

from shuffledp.accounting import (
    StoredProfile,
    allowed_mu,
    compose,
    dominating_mu,
    one_budget_profile,
    to_dp_accounting,
)
from shuffledp.errors import InvalidInput, OutOfRegime

PROFILES = {
    "small": one_budget_profile(1.0, 50, coarse=False),
    "large": one_budget_profile(2.0, 10_000, coarse=False),
    "rounds": compose([(one_budget_profile(0.5, 200, coarse=False), 4)]),
}


@pytest.mark.costly(but=("small",))
@pytest.mark.parametrize("name", PROFILES)
def test_a_stored_curve_is_above_and_close(name):
    profile = PROFILES[name]
    kept = StoredProfile.of(profile)
    top = min(kept.knots[-1], profile.vanishes_at)
    for epsilon in np.linspace(0.0, top, 23):
        assert kept.delta(float(epsilon)).upper >= profile.delta(float(epsilon)).lower
    assert profile.epsilon(1e-6).upper * (1.0 - 1e-6) <= kept.epsilon(1e-6).upper <= profile.epsilon(1e-6).upper * 1.002
    assert kept.delta(0.1).lower == 0.0


@pytest.mark.costly(but=("small",))
@pytest.mark.parametrize("name", PROFILES)
def test_what_was_kept_composes_like_the_profile(name):
    kept = StoredProfile.of(PROFILES[name])
    exact = compose([(PROFILES[name], 8)]).epsilon(1e-6)
    found = compose([(kept, 8)]).epsilon(1e-6).upper
    assert exact.lower <= found <= exact.upper * 1.002


def test_reading_what_was_written_changes_nothing():
    kept = StoredProfile.of(PROFILES["small"])
    again = StoredProfile.from_json(json.loads(json.dumps(kept.to_json(), allow_nan=False)))
    assert (again.knots, again.log_delta) == (kept.knots, kept.log_delta)
    assert again.log_delta[-1] == -math.inf


def test_dp_accounting_reads_a_stored_curve():
    kept = StoredProfile.of(PROFILES["large"])
    theirs = to_dp_accounting(kept).self_compose(8).get_epsilon_for_delta(1e-6)
    assert theirs == pytest.approx(compose([(kept, 8)]).epsilon(1e-6).upper, rel=5e-3)


@pytest.mark.parametrize(
    "known",
    [
        {},
        {"epsilon": [0.0, 1.0], "log_delta": [-1.0]},
        {"epsilon": [0.5], "log_delta": [-1.0]},
        {"epsilon": [0.0, 1.0], "log_delta": [-2.0, -1.0]},
        {"epsilon": [0.0, 1.0], "log_delta": [-1.0, math.nan]},
        {"epsilon": [0.0, math.inf], "log_delta": [-1.0, -2.0]},
        {"epsilon": [0.0], "log_delta": [0.5]},
        {"epsilon": "no", "log_delta": [-1.0]},
    ],
)
def test_what_is_no_profile_is_refused(known):
    with pytest.raises(InvalidInput, match="stored profile"):
        StoredProfile.from_json(known)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.3, 0.0), (20.0, 0.1), (0.0, 1e-3), (0.0, 0.0)])
def test_a_stated_guarantee_is_randomized_response_beside_a_chance(epsilon, delta):
    kept = StoredProfile.stated(epsilon, delta)
    for at in (0.0, 0.25 * epsilon, epsilon, 2.0 * epsilon + 1.0):
        exact = delta + (1.0 - delta) * max(math.exp(epsilon) - math.exp(at), 0.0) / (1.0 + math.exp(epsilon))
        assert exact * (1.0 - 1e-15) <= kept.delta(at).upper <= exact * (1.0 + 1e-12)
    assert math.isinf(StoredProfile.stated(math.inf, 0.0).epsilon(0.5).upper)


def test_the_largest_of_several_is_above_each():
    parts = [StoredProfile.stated(1.0, 1e-6), StoredProfile.of(PROFILES["large"]), StoredProfile.stated(0.2, 1e-3)]
    found = StoredProfile.largest(parts)
    for epsilon in np.linspace(0.0, 2.5, 101):
        each = [part.delta(float(epsilon)).upper for part in parts]
        assert max(each) * (1.0 - 1e-12) <= found.delta(float(epsilon)).upper
    assert StoredProfile.largest(parts[:1]) is parts[0]


def gaussian_delta(epsilon: float, mu: float) -> mpmath.mpf:
    """delta of mu-GDP, to fifty digits."""
    first = mpmath.ncdf(mpmath.mpf(mu) / 2 - mpmath.mpf(epsilon) / mu)
    return first - mpmath.exp(epsilon) * mpmath.ncdf(-mpmath.mpf(mu) / 2 - mpmath.mpf(epsilon) / mu)


def least_room(kept: StoredProfile, outside: float, mu: float) -> float:
    """The least of what a cover leaves above the curve, relative to it: at the knots, between and beyond them."""
    found = math.inf
    with mpmath.workdps(30):
        for a, b in zip(kept.knots, (*kept.knots[1:], kept.knots[-1] + 1.0), strict=True):
            for at in (a, 0.7 * a + 0.3 * b, 0.3 * a + 0.7 * b):
                curve = kept.delta(at).upper
                if curve > outside:
                    room = outside + (1 - mpmath.mpf(outside)) * gaussian_delta(at, mu) - curve
                    found = min(found, float(room / curve))
    return found


@pytest.mark.costly(
    but=(
        "large-0.001",
        "stated-0.001",
        "stated-1e-09",
        "stated-1e-20",
    )
)
@pytest.mark.parametrize("outside", [1e-3, 1e-9, 1e-20])
@pytest.mark.parametrize("name", [*PROFILES, "stated"])
def test_a_cover_is_above_the_curve_everywhere_and_a_smaller_one_is_not(name, outside):
    kept = StoredProfile.stated(1.0, 1e-21) if name == "stated" else StoredProfile.of(PROFILES[name])
    mu = dominating_mu(kept, outside)
    assert 0.0 < mu < 10.0
    assert least_room(kept, outside, mu) >= -1e-11
    assert least_room(kept, outside, 0.98 * mu) < 0.0


@pytest.mark.costly
def test_covers_are_those_of_the_theory():
    """Figures of the page on filters: any randomizer, n = 10,000, outside 1e-9."""
    for epsilon0, mu in ((0.5, 0.00564), (1.0, 0.01260), (2.0, 0.03123)):
        kept = StoredProfile.of(one_budget_profile(epsilon0, 10_000, coarse=False))
        assert dominating_mu(kept, 1e-9) == pytest.approx(mu, rel=2e-3)


def test_what_no_epsilon_covers_must_be_outside():
    for stated, outside in (((0.1, 1e-3), 1e-4), ((math.inf, 0.0), 0.5)):
        with pytest.raises(OutOfRegime, match="no mu covers"):
            dominating_mu(StoredProfile.stated(*stated), outside)
    assert dominating_mu(StoredProfile.stated(0.0, 1e-6), 1e-5) == 0.0


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-9), (8.0, 1e-3)])
def test_the_allowance_fills_the_limit_and_no_more(epsilon, delta):
    mu = allowed_mu(epsilon, delta, 0.1 * delta)
    with mpmath.workdps(50):
        spent = mpmath.mpf(0.1 * delta) + (1 - mpmath.mpf(0.1 * delta)) * gaussian_delta(epsilon, mu)
    assert 0.999 * delta < spent <= delta
    with pytest.raises(InvalidInput, match="outside"):
        allowed_mu(epsilon, delta, delta)
