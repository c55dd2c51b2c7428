"""Two-outcome channels of any shape under the count theorem (extension 1 of docs/theorems/count.md)."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.accounting.theorems.count.channel import Outcome, channel_count, two_outcomes
from tests import oracles

SLACK = Fraction(1, 10**11)


def _asked(rows: list[list[float]], n: int, **more: object) -> sdp.Setting:
    channel = sdp.Channel(rows)
    return sdp.Setting(sdp.Budgets([channel.epsilon0], [n]), channel, "reports", "replace-one", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(20))
def test_every_record_vector_is_enumerated(seed: int) -> None:
    """Any shape, two to four records, n up to 7: both ends are the largest divergence of the real protocol."""
    rng = random.Random(seed)
    n, records = rng.randint(1, 7), rng.randint(2, 4)
    parts = sorted(Fraction(rng.randint(1, 63), 64) for _ in range(records))
    if parts[0] == parts[-1]:
        parts[0] /= 2
    rows = [[p, 1 - p] for p in parts]
    asked = _asked([[float(p), float(q)] for p, q in rows], n)
    protocol = oracles.ShuffledProtocol([tuple(tuple(row) for row in rows)] * n)
    pairs = [(x, y) for x in range(records) for y in range(records) if x != y]
    own = asked.randomizer.epsilon0  # type: ignore[union-attr]
    upper, lower = (sdp.bounds[key].profile(asked, own) for key in ("count", "count-exact"))
    for _ in range(3):
        epsilon = rng.uniform(0.0, own)
        t = Fraction(math.exp(epsilon))
        exact = protocol.worst(0, t, pairs)
        found, shown = upper.delta(epsilon).upper, lower.delta(epsilon).lower
        # e^epsilon is a double here: a unit of it moves the exact value by at most 3e-16 t
        assert Fraction(found) >= exact * (1 - SLACK) - Fraction(1, 10**14)
        assert Fraction(found) <= exact * (1 + Fraction(1, 10**8)) + Fraction(1, 10**13) * t
        assert Fraction(shown) <= exact * (1 + SLACK) + Fraction(1, 10**14) * t
        assert Fraction(shown) >= exact * (1 - Fraction(1, 10**8)) - Fraction(1, 10**13) * t


def test_randomized_response_as_a_matrix_is_randomized_response() -> None:
    w = 1 / (1 + math.exp(-1.0))
    found = sdp.certify(_asked([[w, 1 - w], [1 - w, w]], 1000), 1e-6).epsilon
    known = sdp.certify(
        sdp.Setting(sdp.Budgets([1.0], [1000]), sdp.RandomizedResponse(2), "reports", "replace-one"), 1e-6
    ).epsilon
    assert found.upper == pytest.approx(known.upper, rel=2e-5)
    assert found.lower == pytest.approx(known.lower, rel=2e-5)


@pytest.mark.costly
def test_rounds_of_randomized_response_are_those_of_its_matrix() -> None:
    """.354299 against .353554, by 256 boxes for every budget: 13,537 people, 100 rounds."""
    w = 1 / (1 + math.exp(-1.5))
    known = sdp.Setting(sdp.Budgets([1.5], [13_537]), sdp.RandomizedResponse(2), "reports", "replace-one", rounds=100)
    found = sdp.certify(_asked([[w, 1 - w], [1 - w, w]], 13_537, rounds=100), 3.4875e-4).epsilon
    assert sdp.certify(known, 3.4875e-4).epsilon.upper <= found.upper * (1.0 + 1e-6) < 0.35356


def test_a_lopsided_channel_is_closed() -> None:
    """One outcome is rare: its count is what tells."""
    setting = _asked([[0.02, 0.98], [0.05, 0.95]], 2000)
    found = sdp.certify(setting, 1e-6)
    known = {evidence.key: evidence.epsilon for evidence in found.evidence}
    assert found.epsilon.upper <= 1.001 * found.epsilon.lower
    assert known["blanket"] is not None
    assert found.epsilon.upper < known["blanket"].upper


def test_many_users_are_covered_by_boxes() -> None:
    outcome = Outcome(Fraction(1, 5), Fraction(1, 2))
    exact, boxed = (channel_count(outcome, n, above=True).epsilon(1e-6).upper for n in (10_001, 10_002))
    lower = channel_count(outcome, 10_002, above=False).epsilon(1e-6).lower
    assert lower < boxed < 1.005 * lower
    assert abs(boxed / exact - 1) < 5e-3


def test_rounds_are_attacked_with_one_vector() -> None:
    profile = channel_count(Outcome(Fraction(1, 5), Fraction(1, 2)), 50, above=False)
    single = profile.strongest
    assert single.first.size == 1
    ends = profile.delta_pair(0.1)
    assert max(end.lower for end in ends) <= profile.delta(0.1).lower
    assert profile.directed


def test_what_is_a_channel_of_two_outcomes() -> None:
    assert two_outcomes(sdp.Channel([[0.25, 0.75], [0.5, 0.5]])) == Outcome(Fraction(1, 4), Fraction(1, 2))
    assert two_outcomes(sdp.Channel([[0.2, 0.3, 0.5], [0.3, 0.3, 0.4]])) is None
    assert two_outcomes(sdp.Channel([[0.5, 0.5], [0.5, 0.5]])) is None
    assert two_outcomes(sdp.Channel([[0.0, 1.0], [0.5, 0.5]])) is None
    assert two_outcomes(sdp.Laplace(0, 1)) is None


def test_chances_are_rounded_away_from_each_other() -> None:
    outcome = Outcome(Fraction(1, 3), Fraction(2, 3))
    one = np.ones(1)
    for outwards in (True, False):
        crowd = outcome.crowds(one, one, outwards=outwards)
        high, low = (1 - Fraction(c) if f else Fraction(c) for c, f in zip(crowd.chances, crowd.flipped, strict=True))
        assert (high > outcome.q) == outwards
        assert (low < outcome.p) == outwards


@pytest.mark.costly(but=("sum",))
@pytest.mark.parametrize("seen", ["reports", "users", "sum"])
def test_stated_budgets_of_one_channel_do_not_matter(seen: str) -> None:
    """Everybody has the same chances, so that steps of several stated budgets are alike, too."""
    channel = sdp.Channel([[0.3, 0.7], [0.5, 0.5], [0.42, 0.58]])
    one, two = (
        sdp.certify(sdp.Setting(budgets, channel, seen, "replace-one"), 1e-6).epsilon  # type: ignore[arg-type]
        for budgets in (sdp.Budgets([1.0], [600]), sdp.Budgets([1.0, 2.0], [500, 100]))
    )
    assert two.upper == pytest.approx(one.upper, rel=1e-5)
    assert two.lower == pytest.approx(one.lower, rel=1e-5)
