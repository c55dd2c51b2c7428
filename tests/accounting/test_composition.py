"""Composed rounds against exact products of small laws, closed forms, and printed reference points."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import binomial, exp, log, mp, mpf

from shuffledp.accounting.profiles import composition
from shuffledp.accounting.profiles.composition import (
    ComposedProfile,
    FromAbove,
    GroupProfile,
    SmallestProfile,
    _interpolated,
    compose,
    composed,
)
from shuffledp.accounting.profiles.knots import Points, _hull
from shuffledp.accounting.profiles.profile import (
    GaussianProfile,
    PrivacyProfile,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
)
from shuffledp.accounting.theorems.clones.pair import one_budget_profile
from shuffledp.accounting.theorems.count.bound import worst_count
from shuffledp.accounting.theorems.count.exact import rr_count_profile
from shuffledp.accounting.theorems.local import LocalProfile, LocalRounds
from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput
from shuffledp.numerics.floats import TINY, Interval
from tests import oracles
from tests.accounting.exact_pairs import ExactProfile, random_pair
from tests.work import calls_of

mp.dps = 40
Cells = list[tuple[mpf, mpf]]


def product(*rounds: Cells) -> Cells:
    """All outcomes of several rounds; outcomes of one ratio are put together."""
    total: dict[str, tuple[mpf, mpf]] = {"": (mpf(1), mpf(1))}
    for cells in rounds:
        merged: dict[str, tuple[mpf, mpf]] = defaultdict(lambda: (mpf(0), mpf(0)))
        for p, q in total.values():
            for a, b in cells:
                key = mp.nstr(log(p * a / (q * b)), 25)
                old = merged[key]
                merged[key] = old[0] + p * a, old[1] + q * b
        total = merged
    return list(total.values())


def hockey(cells: Cells, epsilon: float) -> mpf:
    return mp.fsum(max(mpf(0), p - exp(mpf(epsilon)) * q) for p, q in cells)


def clone_cells(epsilon0: float, n: int) -> Cells:
    """The clone pair over (a, m), from its definition."""
    w, p = 1 / (1 + exp(-mpf(epsilon0))), 2 / (1 + exp(mpf(epsilon0)))
    cells: Cells = []
    for c in range(n):
        clones = binomial(n - 1, c) * p**c * (1 - p) ** (n - 1 - c)
        m = c + 1
        for a in range(m + 1):
            fair = clones * binomial(m, a) / mpf(2) ** m * 2 / m
            cells.append((fair * (w * a + (1 - w) * (m - a)), fair * (w * (m - a) + (1 - w) * a)))
    return cells


def count_cells(epsilon0: float, others: int) -> Cells:
    """Binary randomized response, all others on 0: law of the number of ones under both records of the victim."""
    s = 1 / (1 + exp(mpf(epsilon0)))
    base = oracles.poisson_binomial([s] * others)
    padded = [mpf(0), *base, mpf(0)]
    return [
        (padded[k + 1] * (1 - s) + padded[k] * s, padded[k + 1] * s + padded[k] * (1 - s)) for k in range(others + 2)
    ]


def check(profile: PrivacyProfile, cells: Cells, epsilons: Sequence[float], narrow: float) -> None:
    reverse = [(q, p) for p, q in cells]
    for epsilon in epsilons:
        truth = max(hockey(cells, epsilon), hockey(reverse, epsilon))
        found = profile.delta(epsilon)
        assert found.lower <= truth * (1 + mpf(10) ** -15), (epsilon, found, float(truth))
        assert truth <= found.upper * (1 + mpf(10) ** -15), (epsilon, found, float(truth))
        assert found.width <= narrow * truth + 1e-300, (epsilon, found, float(truth))


@pytest.mark.costly("1.0-8-2")
@pytest.mark.parametrize(("epsilon0", "n", "rounds"), [(0.7, 2, 2), (0.7, 3, 4), (2.0, 4, 3), (4.0, 2, 5), (1.0, 8, 2)])
def test_small_clone_pairs_multiplied_out(epsilon0, n, rounds):
    cells = product(*[clone_cells(epsilon0, n)] * rounds)
    profile = ComposedProfile.of(one_budget_profile(epsilon0, n, coarse=False), rounds)
    check(profile, cells, [epsilon0 * rounds * share for share in (0.0, 0.031, 0.173, 0.417, 0.711, 0.95)], 0.03)


@dataclass(frozen=True, eq=False)
class SomeTests(PrivacyProfile):
    """A witness of a real pair that rejects less often than its best test would, except at few exponents."""

    cells: Cells
    good: tuple[float, ...]
    timid: float
    states_masses: bool = True

    @property
    def vanishes_at(self) -> float:
        return 1.0

    @property
    def directed(self) -> bool:
        return True

    def _test(self, epsilon: float, reverse: bool) -> tuple[mpf, mpf]:
        cells = sorted(((q, p) for p, q in self.cells) if reverse else self.cells, key=lambda cell: cell[1] / cell[0])
        tests = [(mp.fsum(p for p, _ in cells[:k]), mp.fsum(q for _, q in cells[:k])) for k in range(len(cells))]
        values = [p - exp(mpf(epsilon)) * q for p, q in tests]
        best = max(range(len(tests)), key=values.__getitem__)
        share = mpf(1) if epsilon in self.good else 1 - mpf(self.timid)
        return tests[best][0] * share, tests[best][1] * share

    def delta_at(self, epsilon: float) -> Interval:
        first, second = self.delta_pair(epsilon)
        return Interval(max(first.lower, second.lower), max(first.upper, second.upper))

    def delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        values = [float(p - exp(mpf(epsilon)) * q) for p, q in (self._test(epsilon, r) for r in (False, True))]
        first, second = (Interval(max(v - 1e-15, 0.0), max(v + 1e-15, 0.0)) for v in values)
        return first, second

    def test_masses(self, epsilon: float) -> tuple[Interval, Interval] | None:
        if not self.states_masses:
            return None
        masses = [float(self._test(epsilon, reverse)[1]) for reverse in (False, True)]
        first, second = (Interval(m * (1 - 1e-15), m * (1 + 1e-15)) for m in masses)
        return first, second


def excess(witness: SomeTests) -> float:
    """By how much the finite pair made from a witness exceeds the real pair's curve somewhere; negative if nowhere."""
    law = witness.table.lower("forward").law
    found = -math.inf
    for epsilon in np.linspace(-0.9, 0.9, 61).tolist():
        rise = np.maximum(-np.expm1(np.minimum(epsilon - law.losses, 0.0)), 0.0) @ np.exp(law.log_masses)
        found = max(found, float(rise) - float(hockey(witness.cells, epsilon)))
    return found


@pytest.mark.costly
def test_a_badly_chosen_test_is_still_a_line_below():
    """Upper ends of badly chosen tests are too low to infer slopes from; their masses are slopes."""
    cells, rounds = clone_cells(1.0, 8), 2
    good, timid = (0.125, 0.25), 0.05
    assert excess(SomeTests(cells, good, timid, states_masses=False)) > 1e-3
    witness = SomeTests(cells, good, timid)
    assert excess(witness) <= 1e-13
    profile, exact = ComposedProfile.of(witness, rounds), product(*[cells] * rounds)
    for epsilon in (0.0, 0.1, 0.5, 1.1):
        assert 0.0 <= profile.delta(epsilon).lower <= hockey(exact, epsilon)
    assert profile.delta(0.5).lower > 0.1 * hockey(exact, 0.5)


def test_different_rounds_multiplied_out():
    parts = [(0.5, 3, 2), (2.0, 2, 1), (1.2, 4, 1)]
    cells = product(*(clone_cells(e, n) for e, n, times in parts for _ in range(times)))
    profile = compose([(one_budget_profile(e, n, coarse=False), times) for e, n, times in parts])
    check(profile, cells, [0.0, 0.1, 0.7, 1.9, 3.3, 4.1], 0.03)


@pytest.mark.costly("9")
@pytest.mark.parametrize("others", [1, 4, 9])
def test_a_witness_is_composed_one_way_round(others):
    """The same neighbours in every round: both directions multiplied out, and no mixture of them."""
    epsilon0, rounds = 1.0, 3
    cells = product(*[count_cells(epsilon0, others)] * rounds)
    profile = ComposedProfile.of(rr_count_profile(Budgets([epsilon0], [others + 1]), epsilon0), rounds)
    check(profile, cells, [0.0, 0.11, 0.53, 1.31, 2.2], 0.03)
    forward, backward = profile.delta_pair(0.53)
    assert forward.lower <= hockey(cells, 0.53) <= forward.upper
    assert backward.lower <= hockey([(q, p) for p, q in cells], 0.53) <= backward.upper


@pytest.mark.costly("0.02-400")
@pytest.mark.parametrize(("epsilon0", "rounds"), [(0.02, 400), (1.0, 7), (5.0, 3)])
def test_randomized_response_is_a_binomial(epsilon0, rounds):
    w = 1 / (1 + exp(-mpf(epsilon0)))
    cells = [
        (binomial(rounds, k) * w**k * (1 - w) ** (rounds - k), binomial(rounds, k) * (1 - w) ** k * w ** (rounds - k))
        for k in range(rounds + 1)
    ]
    profile = ComposedProfile.of(LocalProfile(epsilon0, 0.0), rounds)
    check(profile, cells, [epsilon0 * rounds * share for share in (0.0, 0.017, 0.09, 0.31, 0.62, 0.997)], 0.03)


@pytest.mark.parametrize(("mu", "rounds"), [(0.01, 10_000), (0.3, 4), (1.0, 100)])
def test_gaussian_rounds_are_one_gaussian(mu, rounds):
    profile, whole = ComposedProfile.of(GaussianProfile(mu), rounds), mu * math.sqrt(rounds)
    for epsilon in (0.0, whole, 4.0 * whole, 0.5 * whole**2 + 3.0 * whole):
        truth = gaussian_delta(epsilon, whole)
        found = profile.delta(epsilon)
        assert found.lower <= truth * (1 + 1e-9)
        assert found.upper >= truth * (1 - 1e-9)
        assert found.width <= 0.02 * truth


@pytest.mark.costly("2.0-10000-printed1")
@pytest.mark.parametrize(
    ("epsilon0", "n", "printed"),
    [(1.0, 1000, {1: 0.14868, 4: 0.31159, 16: 0.65405}), (2.0, 10_000, {1: 0.11440, 4: 0.23984, 16: 0.50311})],
)
def test_reference_points(epsilon0, n, printed):
    """The printed numbers are pessimistic discretisations: never below ours, and within 2e-4."""
    profile = one_budget_profile(epsilon0, n, coarse=False)
    for rounds, value in printed.items():
        found = ComposedProfile.of(profile, rounds).epsilon(1e-6)
        assert found.lower <= value
        assert found.upper == pytest.approx(value, rel=2.5e-4)
        assert found.width <= 6e-4 * found.upper


@pytest.mark.costly
def test_depth():
    """Far below 1e-16 enclosures stay narrow."""
    profile = ComposedProfile.of(one_budget_profile(1.0, 10_000, coarse=False), 3)
    for delta, narrow in ((1e-12, 1e-3), (1e-150, 5e-3)):
        found = profile.epsilon(delta)
        assert found.width <= narrow * found.upper
    deltas = [profile.delta(e).upper for e in (0.15, 0.3, 0.5, 0.6)]
    assert all(a > b for a, b in pairwise(deltas))


def test_rounds_may_be_taken_apart_and_put_together():
    one, two = one_budget_profile(1.0, 500, coarse=False), one_budget_profile(0.5, 800, coarse=False)
    nested = compose([(ComposedProfile.of(one, 3), 2), (two, 1), (compose([(one, 1), (two, 4)]), 1)])
    assert [count for _, count in nested.rounds] == [7, 5]
    flat = compose([(two, 5), (one, 7)])
    for epsilon in (0.1, 0.8):
        a, b = nested.delta(epsilon), flat.delta(epsilon)
        assert max(a.lower, b.lower) <= min(a.upper, b.upper)
    looped: PrivacyProfile = one
    for _ in range(4):
        looped = compose([(looped, 1), (one, 1)])
    assert looped.epsilon(1e-6) == ComposedProfile.of(one, 5).epsilon(1e-6)
    assert ComposedProfile.of(one, 1) is one


def test_never_below_fewer_rounds_nor_above_their_sum():
    one = one_budget_profile(1.0, 2000, coarse=False)
    single = one.epsilon(1e-8).upper
    found = [ComposedProfile.of(one, rounds).epsilon(1e-6) for rounds in (1, 2, 5, 50)]
    assert all(a.upper < b.lower for a, b in pairwise(found))
    assert found[2].upper < 5 * single
    top = ComposedProfile.of(one, 5)
    assert top.vanishes_at == pytest.approx(5.0)
    assert top.delta(5.0 * (1 + 1e-12)) == Interval(0.0, 0.0)


def test_mass_at_infinity_adds_up():
    leaky = LocalProfile(0.5, 1e-4)
    profile = ComposedProfile.of(leaky, 10)
    truth = 1 - (1 - mpf(1e-4)) ** 10
    assert profile.delta(40.0).upper >= truth
    assert profile.delta(40.0).upper <= float(truth) * (1 + 1e-6)
    assert profile.mass_at_infinity.upper >= truth
    assert profile.epsilon(1e-4).upper == math.inf
    assert profile.delta(math.inf).upper >= truth
    assert profile.renyi(2.0).upper == math.inf


@pytest.mark.costly
def test_renyi_adds_up_and_converts_to_no_less():
    """Renyi curves sum; converted to (epsilon, delta) they are another upper bound, never below the lower end."""
    one, two = one_budget_profile(1.0, 1000, coarse=False), one_budget_profile(2.0, 5000, coarse=False)
    both = compose([(one, 12), (two, 4)])
    orders = np.geomspace(1.5, 200.0, 20)
    curve = both.renyi_curve(orders)
    alone = [p.renyi_curve(orders) for p in (one, two)]
    assert np.allclose(curve.upper, 12 * alone[0].upper + 4 * alone[1].upper, rtol=1e-12)
    assert np.all(curve.upper - curve.lower <= 1e-3 * curve.upper)
    delta = 1e-6
    converted = curve.upper + np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
    found = both.epsilon(delta)
    assert found.lower <= float(converted.min())
    assert found.upper <= float(converted.min()) <= 1.25 * found.upper


@pytest.mark.costly
def test_tradeoff_and_total_variation_of_rounds():
    one = one_budget_profile(1.0, 1000, coarse=False)
    several = ComposedProfile.of(one, 64)
    assert several.total_variation().lower > 6 * one.total_variation().upper
    found = several.tradeoff(0.05)
    assert found.upper < one.tradeoff(0.05).lower
    assert found.width <= 1e-3 * found.upper


@dataclass(frozen=True, eq=False)
class Jagged(PrivacyProfile):
    """A profile whose upper ends are up to a relative slack too large, by an amount that jumps about."""

    exact: PrivacyProfile
    slack: float

    @property
    def vanishes_at(self) -> float:
        return self.exact.vanishes_at

    def delta_at(self, epsilon: float) -> Interval:
        found = self.exact.delta(epsilon)
        jump = np.random.default_rng(int(epsilon * 1e12) % 2**31).uniform(0.0, self.slack)
        return Interval(found.lower * (1 - jump), found.upper * (1 + jump))


def connected_without_hull(profile: PrivacyProfile, step: float) -> float:
    """Total mass of the loss distribution that differences of the jagged deltas would give on a grid."""
    eps = np.arange(-200, 201) * step
    deltas = []
    for e in eps:
        upper = profile.delta(abs(e)).upper
        deltas.append(upper if e >= 0 else -math.expm1(e) + math.exp(e) * upper)
    delta = np.array(deltas)
    slope = np.diff(delta) / np.expm1(step)
    masses = np.maximum(slope[1:] - slope[:-1] * math.exp(step), 0.0)
    return float(masses.sum())


def test_jagged_slack_needs_the_hull_and_gets_it():
    exact = one_budget_profile(1.0, 1000, coarse=False)
    jagged = Jagged(exact, 1e-3)
    assert connected_without_hull(exact, 2e-4) <= 1.0 + 1e-9
    assert connected_without_hull(jagged, 2e-4) > 1.5  # not a law at all
    for rounds in (4, 100):
        truth = ComposedProfile.of(exact, rounds).epsilon(1e-6)
        found = ComposedProfile.of(jagged, rounds).epsilon(1e-6)
        assert found.upper >= truth.lower
        assert found.lower <= truth.upper
        assert found.upper <= truth.upper * 1.003


@pytest.mark.costly
@given(
    seed=st.integers(0, 2**32 - 1),
    rounds=st.integers(2, 4),
    slack=st.sampled_from([0.0, 1e-4, 1e-2]),
)
@settings(deadline=None, max_examples=15)
def test_random_pairs_multiplied_out(seed, rounds, slack):
    rng = np.random.default_rng(seed)
    p, q = random_pair(rng, 3)
    both, other = np.concatenate((p, q)) / 2.0, np.concatenate((q, p)) / 2.0
    profile = ComposedProfile.of(ExactProfile(both, other, slack=slack), rounds)
    cells = product(*[[(mpf(float(a)), mpf(float(b))) for a, b in zip(both, other, strict=True)]] * rounds)
    for epsilon in rng.uniform(0.0, profile.vanishes_at, 4).tolist():
        truth = hockey(cells, epsilon)
        found = profile.delta(epsilon)
        assert found.lower <= truth * (1 + mpf(10) ** -14) + mpf(10) ** -17
        assert found.upper >= truth * (1 - mpf(10) ** -14) - mpf(10) ** -17


def test_a_thousand_rounds_take_a_few_sums(monkeypatch):
    """The law of the sum of the losses is made a few times, as the knots grow, not for every round or epsilon."""
    made = calls_of(monkeypatch, composition, "LossSum")
    one_budget_profile.cache_clear()
    found = ComposedProfile.of(one_budget_profile(1.0, 1000, coarse=False), 1000).epsilon(1e-6)
    assert len(made) <= 10
    assert found.width <= 1e-3 * found.upper
    many = ComposedProfile.of(one_budget_profile(1.0, 10**6, coarse=False), 10**6).epsilon(1e-6)
    assert many.width <= 1e-3 * many.upper


def test_nothing_composes_to_nothing():
    profile = ComposedProfile.of(LocalProfile(0.0, 0.0), 100)
    assert profile.delta(0.0) == Interval(0.0, 0.0)
    assert profile.epsilon(1e-9) == Interval(0.0, 0.0)


@pytest.mark.parametrize("rounds", [0, -3, 2.5, True, "four", None, 2**53 + 1])
def test_bad_numbers_of_rounds(rounds):
    with pytest.raises(InvalidInput, match="rounds"):
        ComposedProfile.of(LocalProfile(1.0, 0.0), rounds)


def test_no_rounds_at_all():
    with pytest.raises(InvalidInput, match="at least one round"):
        compose([])


@pytest.mark.costly("0.01-0.0-900")
@pytest.mark.parametrize(
    ("epsilon0", "delta0", "rounds"), [(0.1, 0.0, 12), (2.0, 0.0, 5), (0.5, 1e-3, 20), (0.01, 0.0, 900)]
)
def test_rounds_of_the_local_bound_are_a_closed_form(epsilon0, delta0, rounds):
    one = LocalProfile(epsilon0, delta0)
    closed, apart = composed(one, rounds), ComposedProfile(((one, rounds),))
    assert isinstance(closed, LocalRounds)
    with mp.workdps(50):
        truth = 1 / (1 + exp(mpf(epsilon0)))
        clean = (1 - mpf(delta0)) ** rounds
        for share in (0.0, 0.07, 0.5, 0.93):
            epsilon = share * epsilon0 * rounds
            hidden = mpf(0)
            for lies in range(rounds + 1):
                gain = 1 - exp(mpf(epsilon) - (rounds - 2 * lies) * mpf(epsilon0))
                if gain > 0:
                    hidden += binomial(rounds, lies) * truth**lies * (1 - truth) ** (rounds - lies) * gain
            exact, found = (1 - clean) + clean * hidden, closed.delta(epsilon)
            assert found.lower <= exact <= found.upper
            assert found.upper - found.lower <= 1e-9 * found.upper
            assert found.lower <= apart.delta(epsilon).upper


def test_what_is_above_a_known_bound_is_stated_more_widely():
    """Of a bound that another one beats few knots are evaluated; whoever may be the smallest is composed as ever."""
    whole = ComposedProfile(((one_budget_profile(4.0, 100, coarse=False), 8),)).epsilon(1e-6)
    hopeless = ComposedProfile(((one_budget_profile(4.0, 100, coarse=True), 8),))
    rough = hopeless.epsilon_below(1e-6, 0.8 * whole.lower)
    assert 0.8 * whole.lower < rough.lower <= whole.upper
    assert whole.lower <= rough.upper < 1.2 * whole.upper
    assert 1e-6 not in hopeless._inverses
    pair = one_budget_profile(1.0, 1000, coarse=False)
    whole = ComposedProfile(((pair, 8),)).epsilon(1e-6)
    assert ComposedProfile(((pair, 8),)).epsilon_below(1e-6, 1.1 * whole.upper) == whole
    assert ComposedProfile(((pair, 8),)).epsilon_below(1e-6, math.inf) == whole


@pytest.mark.costly(but=("2.0-10000-100-1e-06",))
@pytest.mark.parametrize(
    ("epsilon0", "n", "rounds", "delta"), [(0.5, 100, 2, 1e-6), (1.0, 1000, 8, 1e-10), (2.0, 10_000, 100, 1e-6)]
)
def test_a_few_values_tell_which_side_of_a_ceiling_rounds_are(
    epsilon0: float, n: int, rounds: int, delta: float
) -> None:
    """From 1.5 % below its epsilon on a bound is not composed; at its epsilon, and above, it is."""
    one = one_budget_profile(epsilon0, n, coarse=False)
    whole = ComposedProfile(((one, rounds),)).epsilon(delta)
    below = ComposedProfile(((one, rounds),))
    found = below.epsilon_below(delta, 0.985 * whole.upper)
    assert not below._sums  # nothing was composed
    assert found.upper == pytest.approx(rounds * one.epsilon(delta / rounds).upper, rel=1e-12)
    for share in (1.0, 1.02):
        assert ComposedProfile(((one, rounds),)).epsilon_below(delta, share * whole.upper) == whole


def test_a_few_values_of_too_much_or_of_nothing_tell_nothing() -> None:
    """A round that vanishes, or whose delta falls to 0 where values are looked at, has no interpolated law."""
    assert _interpolated(LocalProfile(0.0, 0.0), 0.1) is None
    pair = one_budget_profile(1.0, 10**6, coarse=False)
    assert pair.delta(0.5).upper <= TINY
    assert _interpolated(pair, 0.5) is None
    assert _interpolated(pair, 0.01) is not None


def test_the_lower_end_alone_is_shown_by_an_attack() -> None:
    """Where delta certainly exceeds the target, and as far as both ends together tell."""
    budgets = Budgets([0.5, 1.0, 2.0], [300, 300, 300])
    attack = rr_count_profile(budgets, 2.0)
    assert attack.directed
    both = ComposedProfile(((attack, 12),)).epsilon(1e-6)
    alone = ComposedProfile(((attack, 12),))
    shown = alone.shown_epsilon(1e-6)
    assert alone.delta(shown).lower > 1e-6 * (1.0 - 1e-9)
    assert both.lower * (1.0 - 1e-4) <= shown <= both.upper
    assert alone.epsilon(1e-6).lower == alone.shown_epsilon(1e-6)  # what is known already is said


def test_a_bound_known_only_from_above_shows_nothing() -> None:
    one = FromAbove((one_budget_profile(1.0, 1000, coarse=False),))
    assert ComposedProfile(((one, 8),)).shown_epsilon(1e-6) == 0.0


def test_logarithms_of_upper_ends_are_rounded_up() -> None:
    """One of about every two logarithms of doubles is rounded down; as an upper end it would be too small."""
    part = LocalProfile(2.0, 0.0)
    above = FromAbove((part,), finely=True)
    for epsilon in np.linspace(0.0, 1.9, 40).tolist():
        with mp.workdps(40):
            assert above.log_above(epsilon) >= log(mpf(part.delta_above(epsilon)))


def test_rounds_of_the_count_theorem_are_composed_from_above_alone() -> None:
    """Its upper end over rounds is what it was with a lower end beside it."""
    one = worst_count(Budgets([0.5, 1.0, 2.0], [300, 300, 300]), 2)
    both, above = ComposedProfile(((one, 12),)).epsilon(1e-6), composed(one, 12).epsilon(1e-6)
    assert 0.0 == above.lower < both.lower
    assert above.upper == pytest.approx(both.upper, rel=1e-9)


def test_rounds_far_above_a_ceiling_are_added_up() -> None:
    """Nothing is composed of them, and their epsilons together are above what composing them proves."""
    whole = ComposedProfile(((one_budget_profile(1.0, 1000, coarse=False), 8),)).epsilon(1e-6)
    pair = one_budget_profile(1.0, 1000, coarse=True)
    far, before = ComposedProfile(((pair, 8),)), len(pair._tabulated)  # the pair is remembered from other tests
    found = far.epsilon_below(1e-6, 0.5 * whole.lower)
    assert found.lower <= whole.lower
    assert whole.upper < found.upper
    assert found.upper == pytest.approx(8.0 * pair.epsilon(1e-6 / 8.0).upper, rel=1e-12)
    assert len(pair._tabulated) == before


@pytest.mark.parametrize("mu", [1e-3, 0.1, 1.0, 5.0])
def test_mu_is_found_back_from_a_point_of_its_profile(mu: float) -> None:
    """`gaussian_mu` inverts `gaussian_delta`; beyond 100 it is infinite."""
    epsilon = gaussian_epsilon(1e-7, mu)
    assert gaussian_mu(epsilon, 1e-7) == pytest.approx(mu, rel=1e-5)
    assert gaussian_mu(1e5, 0.5) == math.inf


def test_a_hull_keeps_the_vertices_of_a_convex_curve_and_drops_what_is_above_it():
    """Of one curve with points lifted off it in runs: the vertices that are left are those that were not lifted."""
    eps = np.linspace(0.0, 2.0, 41)
    logs = np.log([gaussian_delta(epsilon, 1.0) for epsilon in eps.tolist()])
    lifted = np.zeros(41, dtype=bool)
    lifted[[3, 4, 5, 6, 17, 30, 31]] = True
    points = Points(eps, logs + np.where(lifted, 0.5, 0.0), -math.inf)
    for side in _hull(points, points):
        assert side.eps.tolist() == eps[~lifted].tolist()
        assert side.log.tolist() == logs[~lifted].tolist()


@pytest.mark.parametrize("rounds", [3, 12])
@pytest.mark.parametrize("wrapped", ["alone", "group", "smallest"])
def test_a_quick_delta_of_rounds_is_an_upper_bound_near_the_full_one_from_fewer_values(rounds, wrapped):
    def made() -> tuple[PrivacyProfile, PrivacyProfile]:
        part = one_budget_profile._function(0.5, 9000, coarse=False)  # not remembered: its values are counted
        rounded = ComposedProfile.of(part, rounds)
        return part, {"alone": rounded, "group": GroupProfile(rounded, 2), "smallest": SmallestProfile((rounded,))}[
            wrapped
        ]

    (few, quick), (many, full) = made(), made()
    for share in (0.015, 0.03):
        epsilon = share * math.sqrt(rounds)
        exact, near = full.delta(epsilon).upper, quick.deltas_quickly([epsilon])[0]
        assert exact * (1 - 1e-9) <= near <= 2.0 * exact
    assert len(few._tabulated) < len(many._tabulated)
