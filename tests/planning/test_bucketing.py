"""Levels: certified, never above anybody's own budget, and the best there are."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from shuffledp import Frequency, Mean
from shuffledp.accounting import certify
from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput
from shuffledp.planning import bucket_budgets
from shuffledp.planning.bucketing import _Company, _fewest_users
from shuffledp.planning.question import Moments, predict, rounded_down, rounded_up, some_values
from shuffledp.planning.target import Circumstances, Wish
from shuffledp.randomizers import OneBit, UnaryEncoding
from shuffledp.setting import Setting

MEAN = Mean(0.0, 1.0)
SPREAD = Budgets.of(np.random.default_rng(1).uniform(0.05, 3.0, 4000))
WAYS = (("reports", "population"), ("levels", "population"), ("levels", "precision"))


def bucket(budgets, **kwargs):
    return bucket_budgets(budgets, kwargs.pop("question", MEAN), **({"mechanism": "one-bit", "delta": 1e-6} | kwargs))


@pytest.mark.costly
@pytest.mark.parametrize(("seen", "weights"), WAYS)
def test_the_target_is_certified_for_the_rounded_population(seen, weights):
    found = bucket(SPREAD, seen=seen, weights=weights, target=0.08, levels=4)
    assert certify(found.setting, 1e-6).epsilon.upper <= 0.08
    assert found.certified_epsilon <= 0.08
    own = SPREAD.epsilons
    used = found.apply(own)
    assert (used <= own).all()
    assert found.budgets == Budgets.of(used)
    assert found.budgets.levels <= 4
    predicted = predict(found.family, found.budgets, found.weights, Moments())
    assert found.prediction.standard_error == pytest.approx(predicted.standard_error, rel=1e-12)


@pytest.mark.costly
def test_a_lonely_large_budget_gets_company():
    """One user at 4 among thousands at 0.5: shown as she is she would be amplified by nobody."""
    own = Budgets((0.5, 4.0), (5000, 1))
    alone = certify(Setting(own, OneBit(0, 1), seen="levels", neighboring="replace-one"), 1e-6)
    assert alone.epsilon.upper > 3.9
    found = bucket(own, seen="levels", target=0.2)
    assert found.certified_epsilon <= 0.2
    assert found.apply([0.5, 4.0]).tolist() == [0.5, 0.5]


@pytest.mark.slow
def test_visible_levels_are_the_best_of_all_pairs_of_budgets():
    """Twelve different budgets, at most two levels: no other choice of two of them within the target is better."""
    own = Budgets(np.linspace(0.2, 2.4, 12), np.array([900, 700, 400, 500, 300, 350, 200, 300, 150, 100, 120, 60]))
    for weights in ("population", "precision"):
        found = bucket(own, seen="levels", target=0.15, levels=2, weights=weights)
        errors = []
        for pair in itertools.combinations_with_replacement(own.epsilons, 2):
            if pair[0] != own.epsilons[0] and weights == "population":
                continue  # somebody would be below the lowest level
            levels = np.unique(np.append(own.epsilons[0], pair))[:2] if pair[0] != own.epsilons[0] else np.unique(pair)
            rounded = rounded_down(own, levels)
            setting = Setting(rounded, OneBit(0, 1), seen="levels", neighboring="replace-one")
            if certify(setting, 1e-6).epsilon.upper <= 0.15:
                errors.append(predict(OneBit(0, 1), rounded, weights, Moments()).standard_error)
        assert found.prediction.standard_error <= min(errors) * (1 + 1e-6)


@pytest.mark.slow
def test_a_cap_is_as_large_as_the_target_allows():
    found = bucket(SPREAD, seen="reports", target=0.05)
    assert found.levels is None
    assert 0.05 * 0.98 < found.certified_epsilon <= 0.05
    loose = bucket(SPREAD, seen="reports", target=math.inf)
    assert not loose.rounds_budgets
    assert loose.budgets == SPREAD


@pytest.mark.costly
@pytest.mark.parametrize(("seen", "weights"), [*WAYS[:1], pytest.param(*WAYS[2], marks=pytest.mark.slow)])
def test_the_other_goal_is_the_inverse(seen, weights):
    """The smallest guarantee at the error that a target allowed is about that target, and the error is kept."""
    there = bucket(SPREAD, seen=seen, weights=weights, target=0.06, levels=3)
    error = there.prediction.standard_error
    back = bucket(SPREAD, seen=seen, weights=weights, goal="guarantee", target=error * (1 + 1e-9), levels=3)
    assert back.prediction.standard_error <= error * (1 + 1e-9)
    assert back.certified_epsilon <= there.certified_epsilon * 1.03


@pytest.mark.slow
def test_more_levels_and_weaker_targets_never_hurt():
    errors = [
        bucket(SPREAD, seen="levels", target=0.1, levels=n, weights="precision").prediction.standard_error
        for n in (1, 2, 4)
    ]
    assert errors == sorted(errors, reverse=True)
    errors = [bucket(SPREAD, seen="reports", target=t).prediction.standard_error for t in (0.01, 0.05, 0.2)]
    assert errors == sorted(errors, reverse=True)


@pytest.mark.costly
def test_a_million_different_budgets():
    own = Budgets.of(np.random.default_rng(2).uniform(0.01, 4.0, 1_000_000))
    assert own.levels == 1_000_000
    found = bucket(own, seen="levels", target=0.05, levels=4, weights="precision")
    assert found.budgets.n == 1_000_000
    assert found.certified_epsilon <= 0.05
    used = found.apply(own.epsilons)
    assert (used <= own.epsilons).all()


def test_one_user_and_one_level():
    for seen in ("reports", "levels"):
        found = bucket(Budgets((1.0,), (1,)), seen=seen, target=0.3)
        assert 0.29 < found.budgets.epsilons[0] <= 0.3
        assert found.certified_epsilon <= 0.3
        free = bucket(Budgets((1.0,), (1,)), seen=seen)
        assert free.budgets == Budgets((1.0,), (1,))


def test_users_without_budget_stay_or_are_dropped_if_asked():
    own = Budgets((0.0, 0.02, 1.0), (100, 50, 2000))
    stays = bucket(own, seen="levels", target=0.1)
    assert stays.budgets.n == 2150
    assert stays.apply([0.0]).tolist() == [0.0]
    gone = bucket(own, seen="reports", target=0.1, drop_below=0.5)
    assert (gone.dropped, gone.budgets.n) == (150, 2000)
    assert gone.takes_part([0.0, 0.5, 1.0]).tolist() == [False, True, True]
    assert gone.prediction.standard_error < bucket(own, seen="reports", target=0.1).prediction.standard_error
    with pytest.raises(InvalidInput, match="takes no part"):
        gone.apply([1.0, 0.02])


@pytest.mark.costly
def test_families_with_a_shape_are_certified_in_their_new_shape():
    own = Budgets((0.5, 1.0, 2.5), (2000, 600, 100))
    found = bucket(own, question=Frequency(range(20)), mechanism="subset", seen="levels", target=0.3, levels=2)
    assert found.budgets != own
    assert found.family == Frequency(range(20)).randomizer("subset", found.budgets, "levels")
    assert certify(found.setting, 1e-6).epsilon.upper <= 0.3


def test_coarse_populations_round_to_the_safe_side():
    up, values = rounded_up(SPREAD, 32), some_values(SPREAD, 32)
    assert up.n == SPREAD.n
    assert up.levels <= 36
    assert {SPREAD.epsilons[0], SPREAD.epsilons[-1]} <= set(values.tolist())
    below = [int(SPREAD.counts[SPREAD.epsilons <= e].sum()) for e in up.epsilons]
    assert np.cumsum(up.counts).tolist() == below  # nobody is counted at less than her own budget


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"target": math.nan}, "target"),
        ({"target": 0.0}, "target"),
        ({"target": math.inf, "goal": "guarantee"}, "target"),
        ({"goal": "both"}, "goal"),
        ({"seen": "users"}, "seen"),
        ({"levels": 0}, "levels"),
        ({"weights": "none"}, "weights"),
        ({"drop_below": math.nan}, "drop_below"),
        ({"drop_below": 9.0}, "nobody would take part"),
        ({"delta": 0.0}, "delta"),
        ({"mechanism": "krr"}, "mechanism"),
        ({"goal": "guarantee", "target": 1e-9}, "cannot be brought to 1e-09"),
    ],
)
def test_bad_input_is_one_sentence(kwargs, message):
    with pytest.raises(InvalidInput, match=message):
        bucket(SPREAD, **({"seen": "reports"} | kwargs))


@pytest.mark.costly(but=("701.0",))
@pytest.mark.parametrize("value", [math.nan, -1.0, 701.0])
def test_bad_budgets_are_refused_by_the_rule(value):
    with pytest.raises(InvalidInput, match="from 0 to 700"):
        bucket(SPREAD, seen="levels", target=0.1).apply([1.0, value])
    with pytest.raises(InvalidInput, match="below the lowest level"):
        bucket(SPREAD, seen="levels", target=0.1).apply([1.0, 0.0])


def test_different_deltas_are_refused():
    with pytest.raises(InvalidInput, match="one delta0"):
        bucket(Budgets((1.0, 2.0), (500, 500), (0.0, 1e-9)), seen="reports", target=0.01)


@pytest.mark.costly
@pytest.mark.parametrize("family", [OneBit(0.0, 1.0), UnaryEncoding(k=10, optimized=False)])
def test_the_fewest_users_are_certified_and_at_most_two_percent_too_many(family):
    wish = Wish(0.1, 1e-6, Circumstances(2))
    found = int(_fewest_users(wish, family, 0.0, 0.5))
    for users, enough in ((found, True), (int(found / 1.021), False)):
        assert wish.holds(wish.setting(Budgets([0.5], [users]), family, "levels")) is enough


VALUES = np.array([0.3, 0.5, 0.6, 2.0])


def company_of(own: Budgets) -> _Company:
    return _Company.of(Wish(0.1, 1e-6), OneBit(0.0, 1.0), VALUES, own)


def test_levels_are_searched_only_where_the_users_of_a_budget_do_not_suffice():
    company = company_of(Budgets([0.5, 2.0], [9000, 1000]))
    assert not company.knew(VALUES)
    fewest = company.fewest()
    assert math.isinf(fewest[0])  # 9,000 at 0.5 suffice, so no level below them is needed
    assert 1.0 < fewest[1] < 1000 < fewest[-1]  # 1,000 do not suffice at 2, but at some level below it
    assert fewest[1] < fewest[2] < 1000
    assert fewest[1] > 20
    lonely = company_of(Budgets([0.5, 2.0], [20, 1000])).fewest()
    assert math.isfinite(lonely[0])  # 20 do not suffice at 0.5: levels below it are needed


def test_what_is_not_known_of_the_company_is_a_lower_bound_found_only_where_it_is_asked_for():
    company, whole = (company_of(Budgets([0.5, 2.0], [20, 1000])) for _ in range(2))
    assert not whole.knew(np.append(whole.knots, VALUES))
    every, before = whole.fewest(), company.fewest()
    assert (before <= every).all()
    assert not company.known[: np.argmax(company.known)].any()
    assert not company.knew(VALUES[1:2])
    assert company.knew(VALUES[1:2])
    assert company.fewest()[1] == pytest.approx(every[1], rel=0.02)
    assert company.knots[company.known & np.isfinite(company.needed)].tolist() == [0.5]
