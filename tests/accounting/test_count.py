"""The count theorem against enumeration of record vectors, in fractions and in 40 digits."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mpf

from shuffledp.accounting import bounds, certify
from shuffledp.accounting.profiles.composition import composed
from shuffledp.accounting.theorems.count.bound import CoverProfile, others, worst_count, worst_curve
from shuffledp.accounting.theorems.count.cover import CountCover, Groups, SpreadCover
from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput, OutOfRegime
from shuffledp.randomizers import Channel, Laplace, OneBit, RandomizedResponse
from shuffledp.report.to_json import guarantee_to_json
from shuffledp.report.wording import covers, situation
from shuffledp.setting import Setting
from tests import oracles
from tests.accounting.test_brute_force import SLACK, TINY, asked_ratios, log_down, log_up

RR = RandomizedResponse(2)


def setting(budgets: Budgets, randomizer: object = RR, seen: str = "reports", **more: object) -> Setting:
    return Setting(budgets, randomizer, seen, "replace-one", **more)


def thresholds(pmf: list, A: object, excess: object) -> object:
    """(C): max_k A P(S = k-1) - excess P(S >= k)."""
    tail, best = 0, 0
    for mass in reversed(pmf):
        best = max(best, A * mass - excess * tail)
        tail += mass
    return best


@pytest.mark.parametrize("seed", range(40))
def test_every_record_vector_is_enumerated(seed):
    """n up to 9, own budgets: the upper end is the largest divergence of the real protocol, and so is the lower."""
    rng = random.Random(seed)
    n = rng.randint(2, 9)
    few = [Fraction(rng.randint(101, 2000), 100) for _ in range(rng.choice([1, 2, 3]))]
    ratios = [rng.choice(few) for _ in range(n)]
    asked = setting(Budgets.of([log_up(E) for E in ratios]), rng.choice([RR, OneBit(0, 1)]))
    protocol = oracles.ShuffledProtocol([oracles.krr_channel(2, E) for E in ratios])
    victim = rng.randrange(n)
    upper, lower = (bounds[key].profile(asked, log_up(ratios[victim])) for key in ("count", "count-exact"))
    for t in asked_ratios(rng, ratios[victim]):
        exact = protocol.worst(victim, t, [(0, 1), (1, 0)])
        found = upper.delta(log_down(t))
        assert Fraction(found.upper) >= exact * (1 - SLACK)
        assert Fraction(found.lower) <= exact * (1 + SLACK) + TINY
        # so few users that every number of ones is a crowd of its own
        assert Fraction(found.upper) <= exact * (1 + Fraction(1, 10**8)) + TINY
        shown = lower.delta(float(oracles.fraction_log(t)))
        assert Fraction(shown.lower) <= exact * (1 + SLACK) + TINY


@pytest.mark.parametrize("seed", range(20))
def test_coin_rounded_records_are_never_worse(seed):
    """A one-bit mean of numbers inside the range, the victim's among them."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 10))
    budgets = rng.choice(rng.uniform(0.05, 4.0, 3), n)
    s = 1.0 / (1.0 + np.exp(budgets))
    epsilon = float(rng.uniform(0.0, budgets[0]))
    upper = bounds["count"].profile(setting(Budgets.of(budgets), OneBit(0, 1)), float(budgets[0])).delta(epsilon).upper
    for _ in range(20):
        chance = s + (1.0 - 2.0 * s) * rng.random(n)
        first = s[0] + (1.0 - 2.0 * s[0]) * rng.random(2)
        pmf = [float(mass) for mass in oracles.poisson_binomial([mpf(p) for p in chance[1:]])]
        P, Q = (np.convolve(pmf, [1.0 - p, p]) for p in first)
        assert max(np.maximum(P - math.exp(epsilon) * Q, 0.0).sum(), 0.0) <= upper * (1 + 1e-12) + 1e-15


@pytest.mark.costly
def test_one_budget_is_exact_up_to_ten_thousand():
    """Every number of ones and every threshold, in 40 digits: relative 1e-9."""
    for n, e0, epsilon in ((41, 1.0, 0.4), (60, 0.3, 0.05), (30, 5.0, 2.0)):
        profile = bounds["count"].profile(setting(Budgets([e0], [n])), e0)
        exact = max(max(oracles.rr_count_deltas(e0, [e0] * (n - 1), ones, epsilon)) for ones in range(n))
        found = profile.delta(epsilon)
        assert found.lower <= exact <= found.upper
        assert found.upper - found.lower < 1e-9 * exact


def test_neither_end_nor_middle_is_the_worst():
    """E = 2, n = 5, e^epsilon = 5/4: three ones of four are the worst, a quarter above all zeros."""
    e0, epsilon = math.log(2.0), math.log(1.25)
    found = bounds["count"].profile(setting(Budgets([e0], [5])), e0).delta(epsilon)
    values = [float(max(oracles.rr_count_deltas(e0, [e0] * 4, ones, epsilon))) for ones in range(5)]
    assert found.upper == pytest.approx(max(values), rel=1e-12)
    assert max(values) > 1.2 * values[0]


@pytest.mark.costly(but=("23",))
@pytest.mark.one_in(4)
@pytest.mark.parametrize("seed", range(24))
def test_random_crowds_are_covered(seed):
    """Larger crowds of few and of many budgets: no record vector tried, in 40 digits, is above the upper end."""
    rng = np.random.default_rng(100 + seed)
    n, levels = int(rng.integers(20, 90)), int(rng.choice([2, 4, 6, 90]))
    pool = rng.uniform(0.0, rng.choice([1.0, 3.0, 8.0]), levels)
    users = np.sort(rng.choice(pool, n))
    victim = float(users[rng.integers(n)])
    budgets = Budgets.of(users)
    if victim == 0.0 or budgets.levels > 32:
        victim = float(users[-1])
    rest = np.delete(users, int(np.flatnonzero(users == victim)[0]))
    profile = worst_count(budgets, budgets.index_of(victim))
    w = 1 / (1 + oracles.exp(-mpf(victim)))
    for epsilon in (0.0, 0.05 * victim, 0.3 * victim, 0.9 * victim):
        fine, rough = (CoverProfile(victim, cover).delta(epsilon).upper for cover in (profile.fine, profile.rough))
        growth = oracles.exp(mpf(epsilon))
        for share in (0.0, 0.3, 0.5, 0.8, 1.0):
            ones = rng.random(rest.size) < share
            chance = [1 / (1 + oracles.exp(mpf(e) * (-1 if one else 1))) for e, one in zip(rest, ones, strict=True)]
            exact = thresholds(oracles.poisson_binomial(chance), w - growth * (1 - w), growth - 1)
            assert min(fine, rough) >= exact * (1 - mpf(10) ** -12)


@pytest.mark.parametrize("seed", range(6))
def test_covers_leave_nothing_out(seed):
    """Boxes of one and of several groups hold every number of ones exactly once."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 12, int(rng.integers(1, 5))).astype(float)
    groups = Groups(rng.uniform(0.01, 0.49, counts.size), counts)
    cover = CountCover.of(groups, int(rng.choice([1, 20, 300])), exact=False)
    for ones in itertools.product(*(range(int(n) + 1) for n in counts)):
        inside = (cover.first <= np.array(ones)).all(axis=1) & (np.array(ones) <= cover.last).all(axis=1)
        assert inside.sum() == 1


def test_spread_users_stand_for_all():
    """No user is forgotten, and what is unlikely is charged."""
    groups = Groups(np.sort(np.random.default_rng(2).uniform(0.05, 0.5, 3000)), np.ones(3000))
    cover = SpreadCover.of(groups, 300)
    assert float(cover.groups.counts.sum()) == 3000.0
    assert 0.0 < cover.charge < 1e-11
    assert cover.groups.chances.min() == groups.chances.min()
    assert cover.groups.variance <= groups.variance


@pytest.mark.costly("budgets4-0.0325", "budgets5-0.0335")
@pytest.mark.parametrize(
    ("budgets", "most"),
    [
        (Budgets([1.0], [10_000]), 0.03602),
        (Budgets([2.0], [10_000]), 0.08789),
        (Budgets([4.0], [10**6]), 0.02426),
        (Budgets([1.0], [1000]), 0.1279),
        (Budgets([0.1, 0.5, 1.0], [5400, 3700, 900]), 0.0325),
        (Budgets.of(np.random.default_rng(0).uniform(0.05, 1.0, 10_000)), 0.0335),
    ],
)
def test_what_is_reached(budgets, most):
    found = certify(setting(budgets), 1e-6).epsilon
    assert found.lower <= found.upper <= most


@pytest.mark.parametrize("e0", [0.1, 1.0, 6.0])
@pytest.mark.parametrize("n", [100, 400, 20_000, 10**12])
def test_one_budget_is_closed(e0, n):
    upper, lower = (
        bounds[key].profile(setting(Budgets([e0], [n])), e0).epsilon(1e-6) for key in ("count", "count-exact")
    )
    assert lower.lower <= upper.upper
    assert upper.upper <= 1.002 * lower.lower or upper.upper - lower.lower < 1e-3 / math.sqrt(n)


@pytest.mark.costly("0.0001")
@pytest.mark.parametrize("delta", [1e-4, 1e-8])
def test_four_levels_are_nearly_closed(delta):
    budgets = Budgets([0.5, 1.0, 4.0, 6.0], [250] * 4)
    for level in budgets.epsilons.tolist():
        upper, lower = (bounds[key].profile(setting(budgets), level).epsilon(delta) for key in ("count", "count-exact"))
        assert lower.lower <= upper.upper <= 1.03 * lower.lower


@pytest.mark.costly
def test_many_levels_are_read_off_one_curve():
    budgets = Budgets(np.linspace(0.05, 6.0, 200), np.full(200, 50))
    listed = np.array([0, 100, 199])
    found = bounds["count"].level_epsilons(setting(budgets), 1e-6, listed)
    shown = bounds["count-exact"].level_epsilons(setting(budgets), 1e-6, listed)
    clones = bounds["clones"].level_epsilons(setting(budgets), 1e-6, listed)
    assert (shown.lower <= found.upper).all()
    assert (found.upper < clones.upper).all()
    own = worst_count(budgets, 199).epsilon(1e-6).upper
    assert own * (1 - 1e-6) <= found.upper[-1] <= 1.02 * own


def test_the_curve_falls():
    curve = worst_curve(Budgets(np.linspace(0.05, 2.0, 40), np.full(40, 50)), 1e-6)
    assert (np.diff(curve.psi.upper) <= 0.0).all()
    assert curve.psi.upper[-1] <= 1e-7


def test_rounds_are_attacked_with_one_record_vector():
    """The upper end composes the supremum; the lower end is that of a real pair, which a single vector also shows."""
    asked = setting(Budgets([1.0], [400]))
    upper, lower = (bounds[key].profile(asked, 1.0) for key in ("count", "count-exact"))
    both = composed(upper, 6).epsilon(1e-6), composed(lower, 6).epsilon(1e-6)
    assert both[1].lower <= both[0].upper <= 1.02 * both[1].lower
    first, second = lower.delta_pair(0.05)
    single = lower.strongest.delta(0.05)
    assert max(first.upper, second.upper) == pytest.approx(single.upper, rel=1e-9)
    assert max(first.lower, second.lower) <= lower.delta(0.05).upper
    assert lower.renyi(4.0).lower <= upper.renyi(4.0).upper
    assert upper.tradeoff(0.1).lower <= lower.tradeoff(0.1).upper


def test_deltas_below_the_range_of_doubles():
    """Everybody on 1, and all bits 1: log delta >= log A + (n-1) log w, far below the smallest double."""
    e0, n = 3.0, 60_000
    profile = bounds["count"].profile(setting(Budgets([e0], [n])), e0)
    for epsilon in (2.9, 2.999):
        w = 1 / (1 + oracles.exp(-mpf(e0)))
        attained = oracles.log(w - oracles.exp(mpf(epsilon)) * (1 - w)) + (n - 1) * oracles.log(w)
        first, second = profile.log_delta_pair(epsilon)
        assert first == second
        assert first.upper >= attained * (1 + mpf(10) ** -13)
        assert first.upper < -700.0
        assert -math.inf < first.lower <= first.upper


def test_missing_users_are_those_who_hide_best():
    asked = setting(Budgets([0.5, 2.0], [300, 100]), missing=0.25)
    left = setting(Budgets([0.5, 2.0], [200, 100]))
    found, alone = (bounds["count"].profile(one, 2.0).epsilon(1e-6).upper for one in (asked, left))
    assert found == pytest.approx(alone, rel=1e-9)


def test_visible_levels_hide_among_their_own():
    asked = setting(Budgets([0.5, 2.0], [300, 100]), seen="levels", colluding=40)
    alone = setting(Budgets([2.0], [60]))
    assert bounds["count"].profile(asked, 2.0).epsilon(1e-6) == bounds["count"].profile(alone, 2.0).epsilon(1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_two_valued_records_bound_any_common_randomizer(seed):
    """Extension 3, by enumeration: n users, two records, any rational randomizer within the budget."""
    rng = random.Random(700 + seed)
    n, outputs = rng.randint(2, 5), rng.randint(2, 3)
    rows = [[Fraction(rng.randint(1, 9)) for _ in range(outputs)] for _ in range(2)]
    channel = tuple(tuple(p / sum(row) for p in row) for row in rows)
    E = max(oracles.ldp_ratio(channel), Fraction(101, 100))
    asked = setting(Budgets([log_up(E)], [n]), "any", records=2)
    protocol = oracles.ShuffledProtocol([channel] * n)
    for t in asked_ratios(rng, E):
        exact = protocol.worst(0, t, [(0, 1), (1, 0)])
        assert Fraction(bounds["count"].profile(asked, log_up(E)).delta(log_down(t)).upper) >= exact * (1 - SLACK)


def test_two_valued_records_have_no_third():
    """Attacks that give the others a third record are none here."""
    found = certify(setting(Budgets([1.0], [10_000]), "any", records=2), 1e-6)
    assert found.epsilon.upper == pytest.approx(0.0356588, abs=2e-6)
    refused = {one.key: one.refused for one in found.evidence if one.refused is not None}
    assert "third record" in refused["krr-exact"]
    laplace = certify(setting(Budgets([1.0], [10_000]), Laplace(0, 1), records=2), 1e-6).epsilon
    assert 0.029 < laplace.lower <= laplace.upper <= 0.035659


def test_what_is_supposed_of_records_is_said():
    guarantee = certify(setting(Budgets([1.0], [100]), "any", records=2), 1e-3)
    assert guarantee_to_json(guarantee)["setting"]["records"] == 2
    assert covers(guarantee.setting) == [
        "provided that every record is one of two values and all users of a budget run one and the same randomizer"
    ]
    assert "records of two values" in situation(guarantee.setting)


def test_linked_rounds_of_two_valued_records_are_not_two_valued():
    asked = setting(Budgets([0.2], [500]), "any", records=2, rounds=4, linked=True)
    with pytest.raises(OutOfRegime, match="records"):
        bounds["count"].profile(asked, 0.2)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (setting(Budgets([1.0], [9], [1e-6])), "delta0"),
        (setting(Budgets([1.0, 2.0], [9, 9]), seen="users"), "unordered"),
        (setting(Budgets([1.0], [9]), "any"), "records"),
        (setting(Budgets([1.0], [9]), RandomizedResponse(3)), "krr:3"),
        (setting(Budgets([1.0, 2.0], [9, 9]), "any", records=2), "one randomizer"),
        (setting(Budgets([1.0], [9]), "any", seen="users", records=2), "adaptive"),
        (setting(Budgets([2.0], [9]), Channel([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]])), "channel"),
    ],
)
def test_where_it_refuses(asked, why):
    with pytest.raises(OutOfRegime, match=why):
        bounds["count"].profile(asked, float(asked.budgets.epsilons[0]))


@pytest.mark.parametrize("bad", [1, 3, True, "2", 2.5])
def test_records_are_two_or_unknown(bad):
    with pytest.raises(InvalidInput, match="records must be 2"):
        setting(Budgets([1.0], [9]), records=bad)


def test_rounded_budgets_are_on_the_safe_side():
    budgets = Budgets([0.0, 0.3, 3.0], [5, 6, 7])
    above, below = others(budgets, 1, outwards=True), others(budgets, 1, outwards=False)
    assert above.chances[0] == below.chances[0] == 0.5
    exact = [float(1 / (1 + oracles.exp(mpf(e)))) for e in (0.3, 3.0)]
    assert (above.chances[1:] < exact).all()
    assert (below.chances[1:] > exact).all()
    assert above.counts.tolist() == [5.0, 5.0, 7.0]
