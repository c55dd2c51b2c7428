"""Inverse questions: on the safe side by `certify`'s own word, and the next value is not."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shuffledp as sdp
from shuffledp.accounting import (
    bounds,
    calibrate_batch,
    calibrate_epsilon0,
    calibrate_n,
    calibrate_rounds,
    calibrate_scale,
    certify,
)
from shuffledp.accounting.bound import levels_to_check
from shuffledp.accounting.calibrate import Target, apportioned, last_within
from shuffledp.accounting.certify import _surely_above, certified_uppers, weigh_levels
from shuffledp.budgets import MAX_EPSILON0, Budgets
from shuffledp.dummies import Uniform
from shuffledp.errors import InvalidInput, OutOfRegime
from shuffledp.randomizers import HadamardResponse, OneBit, RandomizedResponse
from shuffledp.setting import Kind, Setting
from tests import oracles

RR, TEN = RandomizedResponse(2), RandomizedResponse(10)
MIX = Budgets([0.1, 0.5, 2.0], [500, 300, 200])


def ask(budgets, randomizer="any", seen="reports", **situation):
    return Setting(budgets, randomizer, seen=seen, neighboring="replace-one", **situation)


def upper(setting, delta):
    return certify(setting, delta).epsilon.upper


def certified(setting, epsilon, delta):
    """Whether some certified bound keeps every level within the target: no search, no witness."""

    def within(bound, epsilon0):
        try:
            return bound.profile(setting, epsilon0).delta(epsilon).upper <= delta
        except OutOfRegime:
            return False

    usual = [bound for bound in bounds.values() if bound.enters_bracket]
    uppers = [bound for bound in usual if bound.kind is Kind.CERTIFIED_UPPER]
    return all(any(within(bound, float(e0)) for bound in uppers) for e0 in setting.budgets.epsilons)


SITUATIONS = [
    {},
    {"randomizer": TEN},
    {"seen": "users"},
    {"colluding": 20, "missing": 0.05},
    {"group_size": 2},
    {"reports_per_user": 3},
    pytest.param({"rounds": 4}, marks=pytest.mark.slow),
    pytest.param(
        {"rounds": 3, "colluding": 5, "missing": 0.1, "group_size": 2, "reports_per_user": 2}, marks=pytest.mark.slow
    ),
]


@pytest.mark.costly("{'randomizer': RandomizedResponse(k=10)}")
@pytest.mark.parametrize("situation", SITUATIONS, ids=str)
def test_the_smallest_batch(situation):
    epsilon0, epsilon, delta = 1.0, 0.8, 1e-5
    found = calibrate_n(epsilon0=epsilon0, epsilon=epsilon, delta=delta, **situation)
    setting = ask(Budgets([epsilon0], [found.n]), **situation)
    assert (found.setting, found.epsilon0, found.delta) == (setting, epsilon0, delta)
    assert found.rounds == situation.get("rounds", 1)
    assert found.certified_epsilon <= epsilon
    assert certified(setting, found.certified_epsilon, delta)
    if "rounds" not in situation:
        assert upper(setting, delta) == found.certified_epsilon
    fewest = max(situation.get("colluding", 0) + 1, situation.get("group_size", 1))
    if found.n > fewest:
        assert not certified(replace(setting, budgets=Budgets([epsilon0], [found.n - 1])), epsilon, delta)


@pytest.mark.costly("{'group_size': 2}", "{'randomizer': RandomizedResponse(k=10)}", "{'reports_per_user': 3}")
@pytest.mark.parametrize("situation", SITUATIONS, ids=str)
def test_the_largest_budget(situation):
    found = calibrate_epsilon0(n=1000, epsilon=0.7, delta=1e-6, **situation)
    setting = ask(Budgets([found.epsilon0], [1000]), **situation)
    assert found.setting == setting
    assert found.certified_epsilon <= 0.7
    assert certified(setting, found.certified_epsilon, 1e-6)
    assert upper(replace(setting, budgets=Budgets([found.epsilon0 * (1 + 2e-6)], [1000])), 1e-6) > 0.7


@pytest.mark.costly("1.0-0.5-0.001")
@pytest.mark.parametrize(("epsilon0", "epsilon", "delta"), [(1.0, 0.5, 1e-3), (0.3, 0.2, 1e-2), (2.0, 1.9, 1e-2)])
def test_the_smallest_batch_by_trying_every_size(epsilon0, epsilon, delta):
    """The first n whose clone pair, by 40-digit sums, is within the target, and every n before is not."""
    tried = 1
    while oracles.clone_pair_delta(epsilon0, [epsilon0] * (tried - 1), epsilon) > delta:
        tried += 1
    assert 3 < tried < 100
    assert calibrate_n(epsilon0=epsilon0, epsilon=epsilon, delta=delta).n == tried


@pytest.mark.costly
def test_the_largest_budget_by_bisection_in_40_digits():
    n, epsilon, delta = 20, 0.5, 1e-3

    def excess(e0: float) -> float:
        return float(oracles.clone_pair_delta(e0, [e0] * (n - 1), epsilon)) - delta

    low, high = epsilon, 2.0
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle) <= 0 else (low, middle)
    found = calibrate_epsilon0(n=n, epsilon=epsilon, delta=delta).epsilon0
    assert low * (1 - 2e-6) <= found <= high


QUESTIONS = [
    ask(MIX, RR),
    ask(MIX, RR, colluding=30, missing=0.02),
    pytest.param(ask(MIX, TEN), marks=pytest.mark.slow),
    ask(MIX, "any", seen="levels"),
    ask(MIX, "any"),
    ask(MIX, "any", seen="users"),
    ask(MIX, OneBit(0, 1), seen="sum"),
    ask(Budgets([0.0, 1.0], [5, 40]), RR),
    ask(Budgets.of(np.linspace(0.5, 1.5, 60)), RR),
]


@pytest.mark.costly(but=("rr-reports-2",))
@pytest.mark.one_in(3)
@pytest.mark.parametrize("setting", QUESTIONS, ids=lambda s: f"{s.randomizer_name}-{s.seen}-{s.budgets.levels}")
def test_the_largest_factor(setting):
    found = calibrate_scale(setting, 0.6, 1e-6)
    assert np.allclose(found.setting.budgets.epsilons, setting.budgets.epsilons * found.scale, rtol=1e-15, atol=0)
    assert found.setting.budgets.counts.tolist() == setting.budgets.counts.tolist()
    assert found.epsilon0 == found.setting.budgets.epsilons[-1]
    assert upper(found.setting, 1e-6) == found.certified_epsilon <= 0.6
    more = found.setting.budgets.epsilons * (1 + 1e-4)
    assert upper(replace(setting, budgets=Budgets(more, setting.budgets.counts)), 1e-6) > 0.6


@pytest.mark.costly(but=("rr-reports-2",))
@pytest.mark.one_in(3)
@pytest.mark.parametrize("setting", QUESTIONS[:-1], ids=lambda s: f"{s.randomizer_name}-{s.seen}-{s.budgets.levels}")
def test_the_smallest_batch_of_several_levels(setting):
    found = calibrate_batch(setting, 0.6, 1e-6)
    assert found.n == found.setting.budgets.n
    assert upper(found.setting, 1e-6) == found.certified_epsilon <= 0.6
    fewer = replace(setting, budgets=apportioned(setting.budgets, found.n - 1))
    assert upper(fewer, 1e-6) > 0.6


@pytest.mark.costly
def test_a_batch_of_several_levels_is_not_larger_than_certify_needs():
    """The search answered 146: a delta was bounded by coarser boxes than an epsilon."""
    assert upper(ask(apportioned(MIX, 139), RR), 1e-6) > 0.6
    assert calibrate_batch(ask(MIX, RR), 0.6, 1e-6).n == 140


@pytest.mark.costly(but=("levels0-counts0-1305",))
@pytest.mark.parametrize(
    ("levels", "counts", "smallest"),
    [([2.0, 3.0], [9, 13], 1305), ([0.2, 2.0, 3.0], [30, 50, 16], 613), ([1.0, 3.0], [39, 35], 700)],
)
def test_one_user_fewer_is_not_certified(levels, counts, smallest):
    """The search answered 1320, 621 and 707: near the target a delta is coarser than an epsilon."""
    mix = Budgets(levels, counts)
    assert calibrate_batch(ask(mix, RR), 0.2, 1e-3).n == smallest
    assert upper(ask(apportioned(mix, smallest - 1), RR), 1e-3) > 0.2


@pytest.mark.costly
def test_a_larger_factor_of_several_levels_is_not_certified():
    """The factor was 0.83247, with an epsilon of 0.1984."""
    found = calibrate_scale(ask(Budgets([0.2, 2.0, 3.0], [150, 250, 80]), RR), 0.2, 1e-3)
    assert 0.2 - 1e-6 < found.certified_epsilon <= 0.2


def test_one_level_is_the_old_question():
    one = calibrate_n(epsilon0=1.0, epsilon=0.5, delta=1e-6)
    assert calibrate_batch(ask(Budgets([1.0], [7])), 0.5, 1e-6) == one
    assert calibrate_scale(ask(Budgets([2.0], [1000])), 0.5, 1e-6).epsilon0 == pytest.approx(
        calibrate_epsilon0(n=1000, epsilon=0.5, delta=1e-6).epsilon0, rel=1e-6
    )


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=8), st.integers(0, 10**5))
def test_batches_grow_one_user_at_a_time_and_keep_the_mix(counts, more):
    budgets = Budgets(np.arange(len(counts)) / 4.0, counts)
    n = len(counts) + more
    small, large = apportioned(budgets, n), apportioned(budgets, n + 1)
    assert (small.n, large.n) == (n, n + 1)
    assert (large.counts >= small.counts).all()  # nested: only then is the smallest batch well defined
    x = n / budgets.n
    # ceil(x' c) with sum n: x' <= x, and no level is off by more than the rounding of all
    assert (np.abs(small.counts - x * budgets.counts) <= len(counts)).all()


@pytest.mark.slow
@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 40), min_size=3, max_size=3), st.sampled_from([RR, "any"]))
def test_more_users_of_any_level_keep_a_batch_certified(extra, randomizer):
    found = calibrate_batch(ask(MIX, randomizer), 0.9, 1e-3)
    grown = Budgets(MIX.epsilons, found.setting.budgets.counts + extra)
    assert upper(replace(found.setting, budgets=grown), 1e-3) <= 0.9 * (1 + 1e-6)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 10**9), st.floats(0.2, 3.0), st.integers(1, 10**6), st.booleans())
def test_the_search_finds_the_edge_in_few_steps(edge, power, stride, geometric):
    """Values that rise like a power, with a jump, or to infinity."""
    asked: list[int] = []

    def value(x: int) -> float:
        asked.append(x)
        away = (abs(x - edge) + 0.5) ** power
        return away if edge < x < edge + 10**6 else math.inf if x > edge else -away

    assert last_within(value, -1, 10**12, stride, geometric=geometric) == edge
    assert len(asked) <= 90
    assert last_within(value, -1, edge, stride, geometric=geometric) == edge
    assert last_within(lambda _: 1.0, 5, 10**12, stride, geometric=geometric) == 5


@pytest.mark.parametrize("edge", [30, 1007, 250_000, 10**9])
@pytest.mark.parametrize("bent", [0.0, 0.1])
def test_near_the_edge_of_a_smooth_function_few_numbers_are_asked(edge, bent):
    """Each costs a certificate: of those within a tenth of the answer there are four, two of which are needed."""
    asked: list[int] = []

    def value(x: int) -> float:
        asked.append(x)
        away = math.log((1.0 + x) / (1.5 + edge))
        return 9.0 * away - bent * away**2

    assert last_within(value, 0, 10**12, geometric=True) == edge
    assert sum(abs(x - edge) <= edge / 10 for x in asked) <= 4
    assert len(asked) == len(set(asked))


# ---------------------------------------------------------------- rounds


ROUNDS = [(ask(Budgets([1.0], [1000])), 0.7, 18)]
SLOW_ROUNDS = [
    (ask(MIX, RR), 0.6, 7),
    (ask(Budgets([1.0], [1000]), group_size=2), 1.5, None),
    (ask(Budgets([2.0], [10_000]), TEN), 0.5, 30),
    (ask(MIX, "any", seen="users", colluding=10), 1.0, None),
    (ask(MIX, "any"), 3.0, 8),
    (ask(Budgets([0.5], [1])), 1.7, 3),  # nobody to hide among: plain composition
]


@pytest.mark.costly
@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("setting", "epsilon", "known"),
    [*ROUNDS, *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW_ROUNDS)],
    ids=lambda x: f"{x.randomizer_name}-{x.seen}-{x.budgets.n}-{x.changed_reports}" if isinstance(x, Setting) else "",
)
def test_the_largest_number_of_rounds(setting, epsilon, known):
    found = calibrate_rounds(replace(setting, rounds=9), epsilon, 1e-6)  # its own number of rounds is not used
    assert found.setting == replace(setting, rounds=found.rounds)
    assert found.rounds > 1
    assert known is None or found.rounds == known
    assert found.certified_epsilon <= epsilon
    assert certified(found.setting, found.certified_epsilon, 1e-6)
    assert not certified(replace(setting, rounds=found.rounds + 1), epsilon, 1e-6)


@pytest.mark.slow
def test_certify_agrees_about_rounds():
    found = calibrate_rounds(ask(Budgets([1.0], [1000])), 0.7, 1e-6)
    assert upper(found.setting, 1e-6) == found.certified_epsilon


def test_rounds_that_tell_nothing_end_at_the_cap_and_say_so():
    found = calibrate_rounds(ask(Budgets([0.0], [10])), 0.1, 1e-6)
    assert (found.rounds, found.capped) == (10**12, True)


def test_more_than_a_million_rounds_are_found():
    """0.2.0 ended at 1e6 rounds and called them the most."""
    found = calibrate_rounds(ask(Budgets([1e-5], [1])), 1.0, 1e-6)
    assert not found.capped
    assert 5.6e8 < found.rounds < 5.61e8
    assert found.certified_epsilon <= 1.0 < upper(replace(found.setting, rounds=found.rounds + 10**6), 1e-6)


def test_one_round_too_many():
    with pytest.raises(InvalidInput, match=r"one round already has epsilon = 0\.148\d+ at delta = 1e-06, .* 0\.1"):
        calibrate_rounds(ask(Budgets([1.0], [1000])), 0.1, 1e-6)


# ---------------------------------------------------------------- the ends of the ranges, and bad input


def test_a_budget_below_the_target_needs_nobody_else():
    assert calibrate_n(epsilon0=0.3, epsilon=0.5, delta=1e-6).n == 1
    assert calibrate_n(epsilon0=0.3, epsilon=0.5, delta=1e-6, colluding=4).n == 5  # they are counted
    assert calibrate_n(epsilon0=0.0, epsilon=1e-9, delta=1e-6).n == 1


def test_budgets_stop_at_the_largest_accepted():
    found = calibrate_epsilon0(n=1, epsilon=1e6, delta=0.5)
    assert found.epsilon0 == MAX_EPSILON0
    assert found.capped
    assert not calibrate_epsilon0(n=1, epsilon=1.0, delta=1e-6).capped
    found = calibrate_scale(ask(Budgets([1.0, 7.0], [3, 4])), 1e6, 0.5)
    assert found.scale == 700.0
    assert found.capped
    assert found.setting.budgets.epsilons.tolist() == [700.0]


@pytest.mark.costly
def test_hopeless_questions_say_what_to_do():
    with pytest.raises(InvalidInput, match=r"no batch up to 1e\+12 users .* lower the local budget"):
        calibrate_n(epsilon0=700.0, epsilon=1.0, delta=1e-6)
    with pytest.raises(InvalidInput, match=r"no factor of the budgets .* lower delta0"):
        calibrate_scale(ask(Budgets([1.0], [10], [0.5])), 1.0, 1e-6)
    with pytest.raises(InvalidInput, match="every budget is 0"):
        calibrate_scale(ask(Budgets([0.0], [10])), 1.0, 1e-6)


BAD_EPSILONS = [0.0, -1.0, math.nan, math.inf, "1", None, True]
BAD_DELTAS = [0.0, 1.0, -1e-6, math.nan, math.inf, "x", None]


@pytest.mark.parametrize("bad", BAD_EPSILONS, ids=repr)
def test_bad_epsilons_are_refused(bad):
    for question in (calibrate_batch, calibrate_rounds, calibrate_scale):
        with pytest.raises(InvalidInput, match="epsilon must be a positive number of nats"):
            question(ask(MIX, RR), bad, 1e-6)
    with pytest.raises(InvalidInput, match="epsilon must be a positive number of nats"):
        calibrate_n(epsilon0=1.0, epsilon=bad, delta=1e-6)


@pytest.mark.parametrize("bad", BAD_DELTAS, ids=repr)
def test_bad_deltas_are_refused(bad):
    for question in (calibrate_batch, calibrate_rounds, calibrate_scale):
        with pytest.raises(InvalidInput, match="delta must be"):
            question(ask(MIX, RR), 1.0, bad)


@pytest.mark.parametrize("bad", [0, -1, 1.5, math.nan, math.inf, "x", None, True, 10**13], ids=repr)
def test_bad_sizes_are_refused(bad):
    with pytest.raises(InvalidInput, match="n must be a whole number from 1 to 1,000,000,000,000"):
        calibrate_epsilon0(n=bad, epsilon=1.0, delta=1e-6)
    with pytest.raises(InvalidInput, match="group_size must be"):
        calibrate_n(epsilon0=1.0, epsilon=1.0, delta=1e-6, group_size=bad)
    if bad != 0:
        with pytest.raises(InvalidInput, match="colluding must be"):
            calibrate_n(epsilon0=1.0, epsilon=1.0, delta=1e-6, colluding=bad)


@pytest.mark.parametrize("bad", [-1.0, math.nan, 701.0], ids=repr)
def test_bad_budgets_are_refused(bad):
    with pytest.raises(InvalidInput, match="epsilon0 must be"):
        calibrate_n(epsilon0=bad, epsilon=1.0, delta=1e-6)


@pytest.mark.costly("users")
@pytest.mark.parametrize("seen", ["reports", "users"])
def test_what_calibrate_asks_certify_asks(seen):
    """Gaussian noise of ten people in order: only `approximate` says less than the local number."""
    asked = sdp.Setting(Budgets([4.0], [10], [1e-8]), sdp.Gaussian(0.0, 1.0), seen=seen, neighboring="replace-one")
    for published in (False, True):
        assert sdp.certify(asked, 1e-6, published=published).epsilon.upper == pytest.approx(3.3569, abs=1e-4)
    assert sdp.privacy_profile(asked, 4.0).epsilon(1e-6).upper == pytest.approx(3.3569, abs=1e-3)


@pytest.mark.costly(but=("law0-around0", "any-around3"))
@pytest.mark.parametrize(
    ("law", "around"),
    [
        (TEN, {}),
        (HadamardResponse(10), {"dummies": Uniform(50), "colluding": 10, "missing": 0.1, "group_size": 2}),
        (RR, {"group_size": 3}),
        ("any", {"missing": 0.2}),
    ],
)
def test_a_search_over_rounds_leaves_out_only_bounds_that_are_larger(law, around):
    """plan took six times as long: it inverted every bound, where one value tells that it is above another."""
    for counts in ((2000,), (1500, 500)):
        budgets = Budgets((1.0, 2.0)[: len(counts)], counts)
        setting = ask(budgets, law, rounds=6, **around)
        whole = max(
            float(weigh_levels(setting, 1e-6, np.array([level]), certified_uppers(setting)).smallest[0])
            for level in levels_to_check(setting)
        )
        found = Target.of(1.0, 1e-6).certified(setting)
        assert whole * (1.0 - 1e-9) <= found <= whole * (1.0 + 1e-9), (counts, found, whole)


def test_a_bound_that_is_surely_above_is_not_searched():
    setting = ask(Budgets([1.0], [2000]), HadamardResponse(10), rounds=6, dummies=Uniform(50))
    found = weigh_levels(setting, 1e-6, np.array([0]), certified_uppers(setting), smallest=True)
    left = [one.key for one in found.evidence if one.epsilon is not None and math.isinf(one.epsilon.upper)]
    assert {"blanket", "clones", "floor"} <= set(left)
    assert _surely_above(bounds["floor"], setting, 1e-6, 0, 0.001)
    assert not _surely_above(bounds["floor"], setting, 1e-6, 0, 50.0)
    assert not _surely_above(bounds["floor"], setting, 1e-6, 0, math.inf)


@pytest.mark.parametrize("situation", [{"rounds": 12, "group_size": 2}, {"rounds": 3, "randomizer": TEN}], ids=str)
def test_quick_values_find_the_same_largest_budget_but_for_little(situation):
    target = Target.of(0.1, 1e-6)
    edges = {}
    for quick in ("no", "first", "only"):
        low, high = 0.01, 2.0
        while high > low * 1.001:
            middle = math.sqrt(low * high)
            good = target.excess(ask(Budgets([middle], [9000]), **situation), quick=quick) <= 0.0
            low, high = (middle, high) if good else (low, middle)
        edges[quick] = low
        assert certified(ask(Budgets([low], [9000]), **situation), 0.1, 1e-6)
    assert edges["first"] == edges["no"]
    assert 0.97 * edges["no"] < edges["only"] <= edges["no"]
