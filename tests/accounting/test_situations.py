"""Colluding, absent and malicious users, groups, several reports, rounds: the real protocol in exact fractions.

Nothing of a theorem enters the enumeration: every record of everybody, every choice of the colluding users, what
the analyst really sees. The double log(E) handed to the library is rounded to the safe side.
"""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from shuffledp.accounting import bounds, certify, privacy_profile
from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput, OutOfRegime
from shuffledp.randomizers import HadamardResponse, Laplace, OneBit, RandomizedResponse
from shuffledp.setting import Setting
from tests import oracles

SLACK = Fraction(1, 10**12)
RATIOS = [Fraction(x, 100) for x in (110, 150, 200, 300, 500, 900, 2000)]
UPPERS = ("clones", "blanket", "local")
Law = dict[object, Fraction]


def log_up(ratio: Fraction) -> float:
    return math.nextafter(float(oracles.fraction_log(ratio)), math.inf)


def log_down(ratio: Fraction) -> float:
    return max(0.0, math.nextafter(float(oracles.fraction_log(ratio)), -math.inf))


def setting_of(ratios: Sequence[Fraction], k: int = 2, seen: str = "reports", **situation: float) -> Setting:
    budgets = Budgets.of([log_up(E) for E in ratios])
    return Setting(budgets, RandomizedResponse(k), seen=seen, neighboring="replace-one", **situation)


def check_upper(upper: float, exact: Fraction, what: object) -> None:
    assert Fraction(upper) >= exact * (1 - SLACK), ("upper bound below the real protocol", what, upper, float(exact))


def check_all(setting: Setting, e0: float, ratio: Fraction, exact: Fraction, what: object) -> None:
    """Every certified upper bound that answers covers the real protocol."""
    for key in UPPERS if setting.randomizer.two_point else UPPERS[1:]:
        check_upper(bounds[key].profile(setting, e0).delta(log_down(ratio)).upper, exact, (key, what))


def worlds(
    channels: Sequence[oracles.Channel], changed: Sequence[int], tags: Sequence[int] | None = None
) -> Iterator[tuple[Law, Law]]:
    """Both laws for every record of the others and all pairs of records of those who change (all of them do)."""
    protocol = oracles.ShuffledProtocol(channels, tags)
    others = [i for i in range(len(channels)) if i not in changed]
    inputs = [len(channel) for channel in channels]
    for held in itertools.product(*(range(inputs[i]) for i in others)):
        records = dict(zip(others, held, strict=True))
        laws = {
            own: protocol.law([{**records, **dict(zip(changed, own, strict=True))}[i] for i in range(len(channels))])
            for own in itertools.product(*(range(inputs[i]) for i in changed))
        }
        for first, second in itertools.permutations(laws, 2):
            yield laws[first], laws[second]


def worst(pairs: Iterator[tuple[Law, Law]], ratio: Fraction, rounds: int = 1) -> Fraction:
    return max(oracles.hockey_stick(product(P, rounds), product(Q, rounds), ratio) for P, Q in pairs)


def product(law: Law, rounds: int) -> Law:
    """Independent rounds, all seen."""
    out: Law = {(): Fraction(1)}
    for _ in range(rounds):
        out = {(*seen, y): p * q for seen, p in out.items() for y, q in law.items()}  # type: ignore[misc]
    return out


def krr(k: int, ratios: Sequence[Fraction]) -> list[oracles.Channel]:
    return [oracles.krr_channel(k, E) for E in ratios]


def asked(rng: random.Random, E: Fraction, times: int = 1) -> list[Fraction]:
    return [Fraction(1), 1 + (E**times - 1) * Fraction(rng.randint(1, 60), 100), 1 + (E - 1) * Fraction(1, 10)]


# ---------------------------------------------------------------- colluding, absent and malicious users


def shown(n: int, colluders: Sequence[int]) -> list[int]:
    """Tags under which the analyst recognises every report of a colluding user."""
    return [1 + i if i in colluders else 0 for i in range(n)]


@pytest.mark.costly("3-1", "3-2", "3-6", "3-7")
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("k", [2, 3])
def test_whoever_colludes(k, seed):
    rng = random.Random(10 * seed + k)
    n = rng.choice([3, 4, 5] if k == 2 else [3, 4])
    ratios = [rng.choice(RATIOS) for _ in range(n)]
    colluding = rng.randint(1, n - 1)
    setting = setting_of(ratios, k, colluding=colluding)
    for ratio in asked(rng, ratios[0])[:2]:
        exact = max(
            worst(worlds(krr(k, ratios), [0], shown(n, some)), ratio)
            for some in itertools.combinations(range(1, n), colluding)
        )
        check_all(setting, log_up(ratios[0]), ratio, exact, (k, ratios, colluding, ratio))


@pytest.mark.parametrize("seed", range(6))
def test_the_smallest_budgets_are_missed_most(seed):
    """The reduction drops the right users: with two kinds of others the noisier one's collusion costs more."""
    rng = random.Random(seed)
    low, high = sorted(rng.sample(RATIOS, 2))
    ratios = [rng.choice(RATIOS), low, high, low, high]
    ratio = 1 + (ratios[0] - 1) * Fraction(1, 10)
    without_low = worst(worlds(krr(2, ratios), [0], shown(5, [1, 3])), ratio)
    without_high = worst(worlds(krr(2, ratios), [0], shown(5, [2, 4])), ratio)
    assert without_low >= without_high
    check_all(setting_of(ratios, colluding=2), log_up(ratios[0]), ratio, without_low, ratios)


@pytest.mark.parametrize("colluding", [1, 2, 3])
def test_one_budget_is_the_same_with_fewer_users(colluding):
    E, n = Fraction(3), 5
    ratio = ((n - colluding - 1) * E + 1) / (n - colluding - 1 + E) + Fraction(1, 50)  # attained from here on
    fewer = setting_of([E] * (n - colluding))
    with_them = setting_of([E] * n, colluding=colluding)
    exact = worst(worlds(krr(2, [E] * n), [0], shown(n, range(n - colluding, n))), ratio)
    assert exact == worst(worlds(krr(2, [E] * (n - colluding)), [0]), ratio)
    found = privacy_profile(with_them, log_up(E)).delta(log_down(ratio))
    assert found == privacy_profile(fewer, log_up(E)).delta(log_down(ratio))
    assert found.upper == pytest.approx(float(exact), rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_absent_and_malicious_users(seed):
    """Two of five: absent, or sending any fixed letter; never worse than reports that are shown."""
    rng = random.Random(seed)
    ratios = [rng.choice(RATIOS) for _ in range(5)]
    setting = setting_of(ratios, missing=0.4)
    ratio = asked(rng, ratios[0])[1]
    exact = Fraction(0)
    for bad in itertools.combinations(range(1, 5), 2):
        honest = [i for i in range(5) if i not in bad]
        exact = max(exact, worst(worlds(krr(2, [ratios[i] for i in honest]), [0]), ratio))
        for junk in (((1, 0), (1, 0)), ((0, 1), (0, 1)), ((Fraction(1, 3), Fraction(2, 3)),) * 2):
            fixed = tuple(tuple(map(Fraction, row)) for row in junk)
            channels = [fixed if i in bad else ch for i, ch in enumerate(krr(2, ratios))]
            exact = max(exact, worst(worlds(channels, [0]), ratio))
    check_all(setting, log_up(ratios[0]), ratio, exact, (ratios, ratio))


def permuted(steps: Sequence[Fraction], records: Sequence[int], told: Sequence[int]) -> Law:
    """Binary randomized response at own budgets per step, in order; and where each of ``told`` was."""
    law: Law = {}
    channels, n = krr(2, steps), len(steps)
    for order in itertools.permutations(range(n)):
        known = tuple(order.index(user) for user in told)
        for outputs in itertools.product((0, 1), repeat=n):
            mass = math.prod((channels[t][records[order[t]]][outputs[t]] for t in range(n)), start=Fraction(1))
            law[known, outputs] = law.get((known, outputs), Fraction(0)) + mass / math.factorial(n)
    return law


@pytest.mark.costly("3", "6")
@pytest.mark.parametrize("seed", range(8))
def test_colluding_users_of_ordered_outputs(seed):
    rng = random.Random(seed)
    n = 4
    steps = [rng.choice(RATIOS) for _ in range(n)]
    colluding = rng.choice([1, 2])
    told = range(n - colluding, n)
    setting = setting_of(steps, seen="users", colluding=colluding)
    profile = bounds["ordered"].profile(setting, float(setting.budgets.epsilons[0]))
    laws = [
        (permuted(steps, (0, *held), told), permuted(steps, (1, *held), told))
        for held in itertools.product((0, 1), repeat=n - 1)
    ]
    for ratio in asked(rng, max(steps)):
        exact = max(oracles.hockey_stick(P, Q, ratio) for pair in laws for P, Q in (pair, pair[::-1]))
        check_upper(profile.delta(log_down(ratio)).upper, exact, (steps, colluding, ratio))


# ---------------------------------------------------------------- groups, several reports, rounds


@pytest.mark.costly("3-0", "3-3", "3-8")
@pytest.mark.one_in(4)
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("k", [2, 3])
def test_groups(k, seed):
    rng = random.Random(20 * seed + k)
    n, size = (5, rng.choice([2, 3])) if k == 2 else (4, 2)
    E = rng.choice(RATIOS[:-1])
    ratios = [E] * size + [rng.choice(RATIOS) for _ in range(n - size)]
    setting = setting_of(ratios, k, group_size=size)
    for ratio in asked(rng, E, size):
        exact = worst(worlds(krr(k, ratios), range(size)), ratio)
        check_all(setting, log_up(E), ratio, exact, (k, ratios, size, ratio))


@pytest.mark.costly("3-0", "3-3", "3-8")
@pytest.mark.one_in(4)
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("k", [2, 3])
def test_several_reports_each(k, seed):
    """All reports of the victim change, whether they speak of one record or of several; so does what others hold."""
    rng = random.Random(30 * seed + k)
    n, reports = (3, 2) if k == 2 else (2, 2)
    ratios = [rng.choice(RATIOS[:-1]) for _ in range(n)]
    setting = setting_of(ratios, k, reports_per_user=reports)
    every = [E for E in ratios for _ in range(reports)]
    for ratio in asked(rng, ratios[0], reports):
        exact = worst(worlds(krr(k, every), range(reports)), ratio)
        check_all(setting, log_up(ratios[0]), ratio, exact, (k, ratios, ratio))


@pytest.mark.parametrize("seed", range(6))
def test_rounds(seed):
    rng = random.Random(seed)
    n, rounds = rng.choice([2, 3, 4]), rng.choice([2, 3])
    ratios = [rng.choice(RATIOS[:-1]) for _ in range(n)]
    setting = setting_of(ratios, rounds=rounds)
    for ratio in asked(rng, ratios[0], rounds):
        exact = worst(worlds(krr(2, ratios), [0]), ratio, rounds)
        check_all(setting, log_up(ratios[0]), ratio, exact, (ratios, rounds, ratio))


@pytest.mark.parametrize("seed", range(8))
def test_everything_together(seed):
    """Two rounds, two reports each, two records replaced, one user colluding: all four at once."""
    rng = random.Random(seed)
    E = rng.choice(RATIOS[:-1])
    ratios = [E, E, rng.choice(RATIOS)]
    setting = setting_of(ratios, rounds=2, reports_per_user=2, group_size=2, colluding=1)
    every = [E for E in ratios for _ in range(2)]
    pair = next(worlds(krr(2, every), range(4), [0, 0, 0, 0, 1, 2]))  # all four reports of the group change
    zeros, ones = (oracles.ShuffledProtocol(krr(2, every), [0, 0, 0, 0, 1, 2]).law([x] * 4 + [0, 0]) for x in (0, 1))
    for ratio in (*asked(rng, E, 2), 1 + (E**8 - 1) * Fraction(1, 20)):
        exact = max(worst(iter([pair]), ratio, 2), worst(iter([(zeros, ones)]), ratio, 2))
        check_all(setting, log_up(E), ratio, exact, (ratios, ratio))


# ---------------------------------------------------------------- many levels, added noise


def test_a_group_among_many_levels_is_not_capped_at_one_budget():
    """Ten of forty users replaced, all budgets different: the count moves far beyond any single budget."""
    epsilons = [1.0 + 0.0025 * i for i in range(40)]
    setting = Setting(Budgets.of(epsilons), RandomizedResponse(2), "reports", "replace-one", group_size=10)
    answers = [bounds[key].level_epsilons(setting, 1e-6, np.array([0, 39])) for key in ("clones", "blanket", "local")]
    claimed = min(float(answer.upper[-1]) for answer in answers)
    lies = [1 / (1 + oracles.exp(e)) for e in epsilons]
    P, Q = (oracles.poisson_binomial([*lies[:30], *group]) for group in (lies[30:], [1 - s for s in lies[30:]]))
    ratio = oracles.exp(claimed)
    assert sum(max(q - ratio * p, 0) for p, q in zip(P, Q, strict=True)) <= 1e-6
    assert sum(max(p - ratio * q, 0) for p, q in zip(P, Q, strict=True)) <= 1e-6


@pytest.mark.costly
def test_nobody_leaks_more_than_her_own_reports_whoever_colludes():
    """Colluding users empty many of forty levels: their victims keep their own budgets, and their own witnesses."""
    budgets = Budgets([*(0.001 * i for i in range(1, 41)), 2.0], [1] * 40 + [100])
    for situation in ({}, {"colluding": 60}, {"missing": 0.4}):
        setting = Setting(budgets, RandomizedResponse(2), "reports", "replace-one", **situation)
        for level in certify(setting, 1e-6).levels:
            assert level.epsilon.lower <= level.epsilon.upper <= level.epsilon0, (situation, level)


@pytest.mark.parametrize("seen", ["reports", "levels"])
@pytest.mark.parametrize(("others", "own", "colluding"), [(3, 6, 5), (40, 42, 40)])
def test_users_of_other_levels_do_not_stand_in_for_the_own(seen, others, own, colluding):
    """Any randomizer may show its level: that all *other* users might collude does not spare the victim's own."""
    E, ratio = Fraction(5), Fraction(2)
    e0 = log_up(E)
    budgets = Budgets([*(0.1 + 0.01 * i for i in range(others)), e0], [1] * others + [own])
    setting = Setting(budgets, "any", seen=seen, neighboring="replace-one", colluding=colluding)
    exact = worst(worlds(krr(2, [E] * (own - colluding)), [0]), ratio)
    assert exact > Fraction(1, 10)
    answered = 0
    for key in UPPERS:
        try:
            profile = bounds[key].profile(setting, e0)
            listed = bounds[key].level_epsilons(setting, float(exact), np.array([others]))
        except OutOfRegime:
            continue
        answered += 1
        check_upper(profile.delta(log_down(ratio)).upper, exact, key)
        assert listed.upper[0] >= math.log(2.0) * (1 - 1e-9), key
    assert answered >= 2


def test_noise_of_another_scale_is_not_the_best_company():
    """Laplace: the noisiest reports lie elsewhere and hide least; users like the victim are missed most."""
    left, window, epsilon = 200, (-1.0, 0.5), 1.0
    budgets = Budgets([0.1, 2.0], [left, 301])
    setting = Setting(budgets, Laplace(0, 1), "reports", "replace-one", colluding=300)

    def inside(centre: float, budget: float) -> float:
        return sum(
            sign * stats.laplace.cdf(edge, centre, 1 / budget) for sign, edge in zip((-1, 1), window, strict=True)
        )

    others = stats.binom.pmf(np.arange(left + 1), left, inside(1.0, 0.1))
    P, Q = (np.convolve(others, [1 - p, p]) for p in (inside(0.0, 2.0), inside(1.0, 2.0)))
    attained = float(np.maximum(Q - math.exp(epsilon) * P, 0).sum())
    assert attained > 3e-7
    assert privacy_profile(setting, 2.0).delta(epsilon).upper >= attained * (1 - 1e-9)


def test_a_user_of_permuted_steps_may_get_the_largest_budget():
    """Budgets belong to steps: a small one protects nobody by itself."""
    steps = [Fraction(101, 100), Fraction(101, 100), Fraction(20)]
    setting = setting_of(steps, seen="users")
    ratio = Fraction(5, 4)
    exact = oracles.hockey_stick(permuted(steps, (0, 0, 0), ()), permuted(steps, (1, 0, 0), ()), ratio)
    assert exact > Fraction(1, 20)
    for level in setting.budgets.epsilons:
        check_upper(privacy_profile(setting, float(level)).delta(log_down(ratio)).upper, exact, level)


@pytest.mark.parametrize("family", [RandomizedResponse(2), RandomizedResponse(7), HadamardResponse(6), OneBit(0, 1)])
def test_smaller_budgets_hide_better_in_every_mixture_family(family):
    """What the reduction of colluding users rests on, and what it may not be used for otherwise."""
    assert family.mixture
    assert (np.diff(family.blanket_mass(np.linspace(0.0, 20.0, 400))) < 0).all()


# ---------------------------------------------------------------- laws of every certified number

FEW = settings(max_examples=25, deadline=None, derandomize=True)
epsilons = st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0, 2.0]) | st.floats(0.05, 4.0), min_size=2, max_size=25)
shares = st.floats(0.0, 1.0)
FIELDS = ["colluding", "missing", "group_size", "reports_per_user"]


def delta_upper(setting: Setting, victim: float, epsilon: float) -> float:
    return privacy_profile(setting, victim).delta(epsilon).upper


@FEW
@given(epsilons, shares, st.sampled_from(["reports", "levels", "users"]), st.sampled_from(FIELDS), st.data())
def test_a_worse_situation_is_never_more_private(budgets, x, seen, field, data):
    """`reports_per_user`: more reports are more cover, too; so the others then send as many."""
    n, victim = len(budgets), data.draw(st.sampled_from(budgets))
    top = {"colluding": n - 1, "missing": 0.9, "group_size": n, "reports_per_user": 1}[field]
    values = st.floats(0.0, top) if field == "missing" else st.integers(0 if field == "colluding" else 1, top)
    a, b = sorted((data.draw(values), data.draw(values)))
    better, worse = (
        Setting(Budgets.of(budgets), RandomizedResponse(2), seen, "replace-one", **{field: value}) for value in (a, b)
    )
    small, large = (delta_upper(setting, victim, 2 * x) for setting in (better, worse))
    assert small <= large * (1 + 2e-4) + 1e-12


def clones_epsilon(e0: float, n: int, **situation: int) -> float:
    setting = Setting(Budgets([e0], [n]), "any", "reports", "replace-one", **situation)
    return bounds["clones"].profile(setting, e0).epsilon(1e-6).upper


@settings(FEW, max_examples=8)
@given(st.floats(0.1, 3.0), st.integers(6, 400), st.integers(1, 4), st.integers(1, 4))
def test_groups_and_colluders_cost_epsilon(e0, n, size, colluding):
    plain, group = clones_epsilon(e0, n), clones_epsilon(e0, n, group_size=size)
    assert plain <= group * (1 + 1e-5) + 1e-12
    assert group <= size * e0 * (1 + 1e-12)
    assert plain <= clones_epsilon(e0, n, colluding=colluding) * (1 + 1e-5) + 1e-12


@pytest.mark.one_in(2)
@pytest.mark.parametrize("situation", [{}, {"colluding": 30, "group_size": 2}], ids=str)
def test_more_rounds_cost_epsilon(situation):
    found = [clones_epsilon(1.0, 500, rounds=T, **situation) for T in (1, 2, 5)]
    assert found == sorted(found)
    assert found[0] < found[-1]
    assert all(value <= T * found[0] * 1.3 for T, value in zip((1, 2, 5), found, strict=True))


BAD = {
    "rounds": [0, -1, 1.0, "2", None, True, math.nan],
    "colluding": [-1, 10, 1.5, "2", None, True, math.inf],
    "missing": [-0.1, 1.0, 1.5, math.nan, math.inf, "0.1", None, True],
    "group_size": [0, 11, 1.5, "2", None, True],
    "reports_per_user": [0, -3, 1.5, "2", None, True, 2**53],
}


@pytest.mark.parametrize(("field", "bad"), [(f, b) for f, values in BAD.items() for b in values], ids=str)
def test_impossible_situations_are_refused(field, bad):
    named = "reports can be counted exactly" if bad == 2**53 else f"{field} must be .*; got {re.escape(repr(bad))}"
    with pytest.raises(InvalidInput, match=named):
        Setting(Budgets([1.0], [10]), "any", seen="reports", neighboring="replace-one", **{field: bad})
