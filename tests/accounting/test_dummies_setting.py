"""Dummies as a part of a setting: floor and crowd, against enumeration of the real protocol in exact fractions."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shuffledp as sdp
from shuffledp.accounting import bounds, privacy_profile
from tests import oracles
from tests.accounting.test_brute_force import asked_ratios, check_lower, check_upper, log_down, log_up

R5 = sdp.RandomizedResponse(5)
RATIOS = [Fraction(x, 100) for x in (110, 165, 272, 739, 2000)]


def among(budgets: sdp.Budgets, family: object, dummies: object, **situation: object) -> sdp.Setting:
    return sdp.Setting(budgets, family, seen="reports", neighboring="replace-one", dummies=dummies, **situation)


@pytest.mark.parametrize("seed", range(40))
def test_crowd_and_floor_against_the_real_protocol(seed):
    """(D1), (D3): people of own budgets and uniform dummies, every record of everybody."""
    rng = random.Random(seed)
    k, n, m = rng.choice([(2, 3, 3), (2, 4, 2), (2, 1, 4), (3, 2, 2), (3, 3, 1), (4, 2, 1)])
    ratios = [rng.choice(RATIOS) for _ in range(n)]
    family = sdp.RandomizedResponse(k)
    setting = among(sdp.Budgets.of([log_up(E) for E in ratios]), family, sdp.Uniform(m))
    channels = [oracles.krr_channel(k, E) for E in [*ratios, *[Fraction(1)] * m]]
    protocol, victim = oracles.ShuffledProtocol(channels), rng.randrange(n)
    e0 = log_up(ratios[victim])
    uppers = [bounds[key].profile(setting, e0) for key in (("clones",) if k == 2 else ()) + ("blanket", "floor")]
    whole = privacy_profile(setting, e0)
    for t in asked_ratios(rng, ratios[victim]):
        exact = protocol.worst(victim, t, [(0, 1), (1, 0)])
        for upper in [*uppers, whole]:
            check_upper(upper.delta(log_down(t)).upper, exact, (seed, str(t)))
        check_lower(whole.delta(log_up(t)).lower, exact, (seed, str(t)))


def test_known_others_leave_the_floor():
    """Everybody else colludes: the crowd is the dummies, and (I) with C = m is the floor."""
    setting = among(sdp.Budgets([0.5, 4.0], [20, 3]), R5, sdp.Uniform(172), colluding=22)
    guarantee = sdp.certify(setting, 1e-6)
    for level in guarantee.levels:
        assert level.floor is not None
        assert level.crowd is not None
        assert level.crowd.upper == pytest.approx(level.floor.upper, rel=2e-4)
        assert level.epsilon.upper == min(level.floor.upper, level.crowd.upper)


@pytest.mark.costly
def test_thirty_honest_people_among_three_thousand_fakes():
    setting = among(sdp.Budgets([0.5, 1.0, 4.0], [3016, 11, 3]), R5, sdp.Uniform(172), colluding=3000)
    guarantee = sdp.certify(setting, 1e-6)
    for level, wanted in zip(guarantee.levels, (0.094, 0.220, 0.925), strict=True):
        assert level.crowd is not None
        assert abs(level.crowd.upper - wanted) < 0.002
        assert level.epsilon.upper == level.crowd.upper
    alone = sdp.certify(among(sdp.Budgets([0.5, 1.0, 4.0], [16, 11, 3]), R5, None), 1e-6)
    for level, without in zip(alone.levels, (0.285, 0.643, 3.42), strict=True):
        assert abs(level.epsilon.upper - without) < 0.002
        assert level.floor is level.crowd is None
    assert guarantee.floor is not None
    assert guarantee.floor.upper < 1.0
    assert alone.floor is alone.crowd is None


@pytest.mark.parametrize("situation", [{"colluding": 7}, {"missing": 0.4}, {}], ids=str)
def test_who_leaves_takes_no_dummy_along(situation):
    """The crowd of those who stay and all dummies, as if the others had never been there."""
    budgets = sdp.Budgets([1.0], [20])
    exposed = among(budgets, R5, sdp.Uniform(30), **situation)
    stay = among(sdp.Budgets([1.0], [20 - exposed.exposed]), R5, sdp.Uniform(30))
    for key in ("blanket", "krr-exact", "floor"):
        found, known = (bounds[key].profile(each, 1.0).epsilon(1e-4) for each in (exposed, stay))
        assert found == known


@pytest.mark.costly
def test_several_reports_and_groups_keep_the_number_of_dummies():
    """A level of budget 0 would double with two reports each."""
    budgets = sdp.Budgets([0.5, 1.0], [10, 10])
    twice = among(budgets, R5, sdp.Uniform(100), reports_per_user=2)
    groups = among(budgets, R5, sdp.Uniform(100), group_size=2)
    for setting in (twice, groups):
        guarantee = sdp.certify(setting, 1e-5)
        for level in guarantee.levels:
            known = sdp.floor_profile(R5, level.epsilon0, sdp.Uniform(100), reports=2).epsilon(1e-5)
            assert level.floor == known.published()
    # one of two reports: 20 reports of budget .5, 20 of budget 1 and 100 dummies, one of them the victim's
    one = bounds["blanket"].profile(among(sdp.Budgets([0.5, 1.0], [20, 20]), R5, sdp.Uniform(100)), 1.0)
    both = bounds["blanket"].profile(twice, 1.0)
    assert both.delta(0.2).upper == pytest.approx(one.delta(0.1).upper * (1 + math.exp(0.1)), rel=1e-9)


def test_rounds_have_dummies_of_their_own():
    setting = among(sdp.Budgets([1.0], [5]), R5, sdp.Uniform(100), rounds=2)
    one = sdp.floor_profile(R5, 1.0, sdp.Uniform(100))
    known = sdp.compose_floors([one, one]).epsilon(1e-5)
    found = bounds["floor"].profile(setting, 1.0).epsilon(1e-5)
    assert found.lower <= known.upper
    assert known.lower <= found.upper
    assert found.upper <= known.upper * 1.002


def test_a_law_of_ones_leaves_the_crowd_to_the_people():
    """Without (D2) what dummies of that law add to a crowd is not counted; no attack may forget them either."""
    budgets, law = sdp.Budgets([0.5, 1.0], [300, 100]), sdp.DiscreteLaplace(60, 1.5)
    guarantee = sdp.certify(among(budgets, sdp.RandomizedResponse(2), law), 1e-6)
    people = sdp.certify(among(budgets, sdp.RandomizedResponse(2), None), 1e-6)
    for level, alone in zip(guarantee.levels, people.levels, strict=True):
        assert level.crowd is not None
        assert level.crowd.upper == alone.epsilon.upper
        assert level.epsilon.lower == 0.0


@pytest.mark.costly
def test_more_than_thirty_two_levels():
    epsilons = np.linspace(0.1, 2.0, 40)
    guarantee = sdp.certify(among(sdp.Budgets(epsilons, [25] * 40), R5, sdp.Uniform(172), missing=0.05), 1e-6)
    every = among(sdp.Budgets(epsilons, [25] * 40), R5, None, missing=0.05)
    without = sdp.certify(every, 1e-6)
    for level, alone in zip(guarantee.levels, without.levels, strict=True):
        assert level.floor is not None
        known = sdp.floor_profile(R5, level.epsilon0, sdp.Uniform(172)).epsilon(1e-6)
        assert level.floor.lower <= known.upper
        assert known.lower <= level.floor.upper
        assert level.epsilon.upper < alone.epsilon.upper


def test_published_formulas_speak_of_people():
    budgets = sdp.Budgets([1.0], [1000])
    with_dummies = sdp.certify(among(budgets, R5, sdp.Uniform(50)), 1e-6, published=True)
    without = sdp.certify(among(budgets, R5, None), 1e-6, published=True)
    for key in ("gspa", "rdp-gdp", "erlingsson19", "liu23"):
        one, two = (next(e for e in g.evidence if e.key == key) for g in (with_dummies, without))
        assert one.epsilon == two.epsilon
        assert one.refused == two.refused
    assert [e.key for e in without.evidence] == [e.key for e in with_dummies.evidence]
    assert next(e for e in without.evidence if e.key == "floor").refused == "floor needs dummies; the setting has none"
    assert "floor" not in [e.key for e in sdp.certify(among(budgets, R5, None), 1e-6).evidence]


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    m=st.integers(0, 80),
    n=st.integers(1, 60),
    epsilon0=st.floats(0.05, 5.0),
    k=st.sampled_from([2, 3, 5]),
)
def test_the_guarantee_is_the_smaller_of_floor_and_crowd(m, n, epsilon0, k):
    guarantee = sdp.certify(among(sdp.Budgets([epsilon0], [n]), sdp.RandomizedResponse(k), sdp.Uniform(m)), 1e-5)
    (level,) = guarantee.levels
    assert level.floor is not None
    assert level.crowd is not None
    assert level.epsilon.upper == min(level.floor.upper, level.crowd.upper)
    assert level.crowd.lower <= level.crowd.upper * (1 + 1e-12)
    people = sdp.certify(among(sdp.Budgets([epsilon0], [n]), sdp.RandomizedResponse(k), None), 1e-5)
    assert level.crowd.lower <= people.epsilon.upper


def test_calibrations_count_on_dummies():
    setting = among(sdp.Budgets([1.0], [1]), R5, sdp.Uniform(2000))
    assert sdp.calibrate_batch(setting, 0.5, 1e-6).n == 1
    assert sdp.calibrate_batch(among(sdp.Budgets([1.0], [1]), R5, None), 0.5, 1e-6).n > 10


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"randomizer": "any"}, "got 'any'"),
        ({"randomizer": sdp.UnaryEncoding(4)}, "rr, krr:K, one-bit and hadamard:K"),
        ({"seen": "levels"}, "seen = 'reports'`; got 'levels'"),
        ({"seen": "sum", "randomizer": sdp.RandomizedResponse(2)}, "seen = 'reports'`; got 'sum'"),
        ({"rounds": 2, "linked": True}, "linked rounds expose them"),
        ({"dummies": 172}, "must be Uniform"),
        ({"dummies": sdp.DiscreteLaplace(4, 2.0)}, "take uniform or ball dummies"),
    ],
)
def test_refusals(change, what):
    known = {"randomizer": R5, "seen": "reports", "neighboring": "replace-one", "dummies": sdp.Uniform(10)}
    with pytest.raises(sdp.InvalidInput, match=what):
        sdp.Setting(sdp.Budgets([1.0], [10]), **(known | change))


def test_large_groups_are_left_to_the_crowd():
    guarantee = sdp.certify(among(sdp.Budgets([0.01], [1000]), R5, sdp.Uniform(100), group_size=65), 1e-6)
    assert guarantee.levels[0].floor is None
    assert guarantee.levels[0].crowd is not None
    refused = next(entry for entry in guarantee.evidence if entry.key == "floor").refused
    assert refused is not None
    assert "at most 64 reports" in refused


def convolved(one: list[Fraction], two: list[Fraction]) -> list[Fraction]:
    found = [Fraction(0)] * (len(one) + len(two) - 1)
    for i, p in enumerate(one):
        for j, q in enumerate(two):
            found[i + j] += p * q
    return found


def best_threshold(others: list[Fraction], w: Fraction, t: Fraction) -> Fraction:
    """(C): max over k of A P(S = k - 1) - (e^eps - 1) P(S >= k)."""
    factor = w - t * (1 - w)
    tails = [sum(others[k:], Fraction(0)) for k in range(len(others) + 1)]
    return max(factor * others[k - 1] - (t - 1) * tails[k] for k in range(1, len(others) + 1))


def divergence_of_counts(others: list[Fraction], w: Fraction, t: Fraction) -> Fraction:
    one, zero = convolved(others, [1 - w, w]), convolved(others, [w, 1 - w])
    return sum((max(p - t * q, Fraction(0)) for p, q in zip(one, zero, strict=True)), Fraction(0))


@pytest.mark.parametrize("seed", range(60))
def test_count_theorem_with_log_concave_dummies(seed):
    """(D2): bits of people with own chances and a log-concave number of ones among the dummies."""
    rng = random.Random(seed)
    m = rng.randint(0, 6)
    law: sdp.DiscreteLaplace | None = sdp.DiscreteLaplace(m, rng.choice([1.0, 1.3, 4.0]))
    weights = law.weights if rng.random() < 0.7 else tuple(math.comb(m, j) for j in range(m + 1))
    others = [Fraction(weight, sum(weights)) for weight in weights]
    for _ in range(rng.randint(0, 4)):
        chance = Fraction(rng.randint(1, 19), 20)
        others = convolved(others, [1 - chance, chance])
    E = rng.choice(RATIOS)
    w = E / (1 + E)
    for t in (Fraction(1), 1 + (E - 1) / 3, 1 + (E - 1) * Fraction(9, 10)):
        assert best_threshold(others, w, t) == divergence_of_counts(others, w, t)


def test_log_concavity_is_needed():
    """D on {0, 2}: the parity of the ones shows the bit; thresholds see half of it, the floor sees it all."""
    w, t = Fraction(3, 4), Fraction(1)
    others = [Fraction(1, 2), Fraction(0), Fraction(1, 2)]
    assert divergence_of_counts(others, w, t) == w - t * (1 - w)
    assert best_threshold(others, w, t) == (w - t * (1 - w)) / 2
    lumpy = sdp.OnesLaw((1 << 63, 1 << 63))
    found = sdp.floor_profile(sdp.RandomizedResponse(2), None, lumpy, draw=1 << 63).delta(0.0)
    assert found.lower <= 0.5 <= found.upper
    assert found.width < 1e-12


@pytest.mark.parametrize("budgets", [(2, 5), (3, 3, 7), (2, 3, 4)])
def test_nothing_beats_randomized_response_at_its_budget(budgets):
    """Theorem P: the unbiased function of the bits is unique; its variance at every record vector."""
    n = len(budgets)
    wrong = [Fraction(1, 1 + E) for E in budgets]
    bound = sum((Fraction(E, (E - 1) ** 2) for E in budgets), Fraction(0)) / n**2
    vectors = [tuple((code >> i) & 1 for i in range(n)) for code in range(2**n)]

    def chance(bits: tuple[int, ...], records: tuple[int, ...]) -> Fraction:
        return math.prod(
            (s if b != x else 1 - s for b, x, s in zip(bits, records, wrong, strict=True)), start=Fraction(1)
        )

    def estimate(bits: tuple[int, ...]) -> Fraction:
        return sum(((b - s) / (1 - 2 * s) for b, s in zip(bits, wrong, strict=True)), Fraction(0)) / n

    matrix = np.array([[float(chance(bits, records)) for bits in vectors] for records in vectors])
    assert np.linalg.matrix_rank(matrix) == 2**n
    for records in vectors:
        mean = sum((chance(bits, records) * estimate(bits) for bits in vectors), Fraction(0))
        square = sum((chance(bits, records) * estimate(bits) ** 2 for bits in vectors), Fraction(0))
        assert mean == Fraction(sum(records), n)
        assert square - mean**2 == bound
