"""What `certify` and its like publish: ends of ten significant digits, rounded outward, the same on every machine."""

from __future__ import annotations

from decimal import Decimal

import pytest

import shuffledp as sdp
from shuffledp.accounting import calibrate_rounds, calibrate_scale
from shuffledp.accounting.calibrate import Target
from shuffledp.accounting.profiles.stored import StoredProfile
from shuffledp.ledger import composed_epsilon
from shuffledp.setting import Kind

DELTA = 1e-6
SETTINGS = {
    "any": sdp.Setting(sdp.Budgets([1.0], [1000]), "any", "reports", "replace-one"),
    "three levels": sdp.Setting(
        sdp.Budgets([0.5, 1.0, 2.0], [500, 300, 200]), sdp.RandomizedResponse(5), "reports", "replace-one"
    ),
    "levels": sdp.Setting(sdp.Budgets([0.5, 2.0], [500, 300]), "any", "levels", "replace-one"),
    "dummies": sdp.Setting(
        sdp.Budgets([0.5, 1.0], [10, 10]), sdp.RandomizedResponse(5), "reports", "replace-one", dummies=sdp.Uniform(100)
    ),
    "noise": sdp.Setting(sdp.Budgets([1.0], [300]), sdp.Laplace(0, 1), "sum", "replace-one"),
}


def few(value: float) -> bool:
    return len(Decimal(repr(value)).normalize().as_tuple().digits) <= 10


@pytest.mark.costly("dummies")
@pytest.mark.parametrize("name", SETTINGS)
def test_every_end_has_ten_digits_and_lies_outward(name):
    setting = SETTINGS[name]
    found = sdp.certify(setting, DELTA)
    ends = [level.epsilon for level in found.levels]
    ends += [end for level in found.levels for end in (level.floor, level.crowd) if end is not None]
    ends += [one.epsilon for one in found.evidence if one.epsilon is not None]
    for end in ends:
        assert few(end.lower)
        assert few(end.upper)
    worst = found.worst
    for one in found.evidence:  # a theorem by itself keeps all digits
        if one.epsilon is None or one.kind is Kind.ASYMPTOTIC or setting.budgets.levels > 1:
            continue
        own = sdp.bounds[one.key].profile(setting, worst.epsilon0).epsilon(DELTA)
        assert one.epsilon == own.published()
        assert one.epsilon.lower <= own.lower <= own.upper <= one.epsilon.upper
    assert Target.of(1.0, DELTA).certified(setting) == found.epsilon.upper


def test_mu_and_totals_are_published_alike():
    guarantee = sdp.certify(SETTINGS["any"], DELTA)
    assert few(guarantee.mu(1e-9))
    stated = StoredProfile.stated(guarantee.epsilon.upper, DELTA)
    total = composed_epsilon([stated, stated], 1e-5)
    assert few(total)
    assert sdp.compose([(stated, 2)]).epsilon(1e-5).upper <= total


@pytest.mark.costly
@pytest.mark.parametrize("target", [1.0 / 3.0, 0.7000000000000001, 1.00000000051, 0.1])
def test_a_target_of_many_digits_is_never_passed(target):
    """The answer is certified as it is published: rounded up, and at most the target all the same."""
    alone = sdp.Setting(sdp.Budgets([1.0], [1]), "any", "reports", "replace-one")
    found = calibrate_scale(alone, target, DELTA)
    assert sdp.certify(found.setting, DELTA).epsilon.upper == found.certified_epsilon <= target
    assert found.certified_epsilon >= target * (1.0 - 1e-4)
    small = sdp.Setting(sdp.Budgets([0.05], [50]), "any", "reports", "replace-one")
    rounds = calibrate_rounds(small, target, DELTA)
    assert sdp.certify(rounds.setting, DELTA).epsilon.upper == rounds.certified_epsilon <= target
