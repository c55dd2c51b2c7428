"""Several questions of different families together: against enumeration, and what saves time against what does not."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from shuffledp.accounting import bounds, compose, privacy_profile
from shuffledp.accounting.profiles.composition import ComposedBracket, ComposedProfile, FromAbove, SmallestProfile
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.accounting.profiles.stored import StoredProfile
from shuffledp.accounting.theorems.clones.pair import one_budget_profile
from shuffledp.accounting.theorems.count.bound import worst_count
from shuffledp.accounting.theorems.count.cover import CountCover, Groups, LargestBox
from shuffledp.accounting.theorems.local import LocalProfile
from shuffledp.budgets import Budgets
from shuffledp.randomizers import OneBit, RandomizedResponse
from shuffledp.setting import Setting
from tests import oracles
from tests.accounting.test_brute_force import SLACK, log_down, log_up, setting_of

Law = dict[object, Fraction]
PEOPLE = Budgets([0.5, 1.0, 4.0], [1080, 740, 180])


def product(one: Law, other: Law) -> Law:
    return {(a, b): p * q for (a, p), (b, q) in itertools.product(one.items(), other.items())}


def worlds(ratios: list[Fraction], k: int, victim: int) -> list[tuple[Law, Law]]:
    """Both laws of one shuffled question, for all records of the others and all ordered pairs of the victim's."""
    protocol = oracles.ShuffledProtocol([oracles.krr_channel(k, E) for E in ratios])
    found = []
    for records in itertools.product(range(k), repeat=len(ratios)):
        for other in range(k):
            changed = [other if i == victim else record for i, record in enumerate(records)]
            if changed != list(records):
                found.append((protocol.law(records), protocol.law(changed)))
    return found


@pytest.mark.costly
@pytest.mark.parametrize("seed", range(3))
def test_two_questions_multiplied_out(seed):
    """Every record of everybody in both questions: the upper end is above the worst, the lower end not above it."""
    rng = random.Random(seed)
    ratios = [Fraction(rng.randint(110, 600), 100) for _ in range(3)]
    victim = rng.randrange(3)
    budget = log_up(ratios[victim])
    asked = [setting_of(ratios, family) for family in (RandomizedResponse(3), OneBit(0, 1))]
    found = compose([(privacy_profile(each, budget), 1) for each in asked])
    assert isinstance(found, ComposedBracket)
    pairs = [
        (product(p, a), product(q, b))
        for (p, q), (a, b) in itertools.product(worlds(ratios, 3, victim), worlds(ratios, 2, victim))
    ]
    for t in (Fraction(1), Fraction(3, 2)):
        exact = max(oracles.hockey_stick(p, q, t) for p, q in pairs)
        assert Fraction(found.delta(log_down(t)).upper) >= exact * (1 - SLACK)
        assert Fraction(found.delta(log_up(t)).lower) <= exact * (1 + SLACK)


def settings_of(missing: float = 0.05) -> list[Setting]:
    return [
        Setting(PEOPLE, family, "reports", "replace-one", missing=missing)
        for family in (RandomizedResponse(5), OneBit(0, 1))
    ]


@pytest.mark.costly
@pytest.mark.one_in(2)
@pytest.mark.parametrize("budget", [0.5, 4.0])
def test_what_saves_time_moves_the_ends_by_less_than_a_thousandth(budget):
    """Against all parts at every knot, and knots ten times as dense."""
    profiles = [privacy_profile(each, budget) for each in settings_of()]
    found = compose([(one, 1) for one in profiles]).epsilon(1e-6)
    slow = ComposedProfile(tuple((SmallestProfile(one.upper.parts), 1) for one in profiles)).epsilon(1e-6)
    assert 0.9999 * slow.upper <= found.upper <= 1.0005 * slow.upper
    witness = ComposedProfile(tuple((one.strongest, 1) for one in profiles)).epsilon(1e-6)
    assert 0.998 * witness.lower <= found.lower <= witness.lower * (1 + 1e-4)
    assert found.lower > 0.98 * found.upper


def test_equal_settings_share_one_profile():
    one, same = (privacy_profile(settings_of()[0], 1.0) for _ in range(2))
    assert one is same
    assert compose([(one, 1), (same, 1)]).rounds == ((one, 2),)


class Looks(PrivacyProfile):
    """A profile that counts how often it is evaluated."""

    def __init__(self, inner: PrivacyProfile) -> None:
        self.inner, self.looks = inner, 0

    @property
    def vanishes_at(self) -> float:
        return self.inner.vanishes_at

    def delta_at(self, epsilon: float):
        self.looks += 1
        return self.inner.delta(epsilon)


@pytest.mark.costly(but=("6",))
@pytest.mark.parametrize("seed", range(8))
def test_the_smallest_from_above_in_any_order(seed):
    """Never below the pointwise minimum, whatever was asked before, and equal to it where the curves are apart."""
    rng = np.random.default_rng(seed)
    inner = [
        one_budget_profile(1.0, 60, coarse=False),
        LocalProfile(0.4, 1e-3),
        LocalProfile(1.0, 0.0),
        one_budget_profile(1.0, 30, coarse=False),
    ]
    parts = [Looks(part) for part in inner]
    smallest = SmallestProfile((SmallestProfile(tuple(parts[:2])), *parts[1:]))
    above = smallest.from_above
    assert above.parts == tuple(parts)  # taken apart, each once
    assert not above.known_below
    least = SmallestProfile(tuple(inner))
    asked = [0.0, 0.99, *rng.uniform(0.0, 0.99, 300).tolist()]
    equal = 0
    for epsilon in asked:
        exact, found = least.delta(epsilon), above.delta(epsilon)
        assert found.upper >= exact.upper * (1 - 1e-12)
        assert found.lower == 0.0
        equal += found.upper <= exact.upper * (1 + 1e-12)
    assert equal > 0.95 * len(asked)
    assert parts[3].looks < 20  # a company of half the size is never the smallest


def test_a_stored_curve_is_known_from_above_alone():
    stored = StoredProfile.stated(1.0, 1e-6)
    both = compose([(stored, 1), (StoredProfile.stated(0.5, 1e-7), 1)])
    assert not stored.known_below
    assert not both.known_below
    assert both.delta(0.5).lower == 0.0 == both.epsilon(1e-3).lower
    with_local = compose([(stored, 1), (LocalProfile(1.0, 0.0), 1)])
    assert with_local.known_below
    assert with_local.epsilon(1e-3).lower > 0.9


@pytest.mark.costly(but=("6",))
@pytest.mark.parametrize("seed", range(8))
def test_boxes_left_alone_are_not_the_largest(seed):
    """The largest bound is that of all boxes, in any order of questions, and every record vector is below it."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(40, 400, int(rng.integers(1, 4))).astype(float)
    groups = Groups(np.sort(rng.uniform(0.02, 0.45, counts.size)), counts)
    cover, fresh = (CountCover.of(groups, 300, exact=False) for _ in range(2))
    scale = 4.0 / math.sqrt(groups.variance)
    asked = [*(scale * rng.uniform(0.0, 3.0, 60)).tolist(), 0.0, 1e-200, 5.0, 1e300, math.inf]
    rng.shuffle(asked)
    for excess in (*asked, *asked[:5]):
        found, every = cover.log_psi_above(excess), fresh.box_logs(excess)
        assert found == pytest.approx(float(every.max()), rel=1e-11, abs=1e-11)
        held = np.clip(np.rint(rng.random((20, counts.size)) * counts), 0.0, counts)
        crowds = groups.crowds(held, counts - held, np.zeros(20))
        assert found >= float(crowds.best_thresholds(excess).lower.max())


def lines(rng: np.random.Generator, boxes: int):
    """Boxes that are largest tests of known value: max over tests of a - r b, convex and falling in r."""
    b = rng.uniform(0.0, 1.0, (boxes, 30))
    a = rng.uniform(0.1, 1.0, (boxes, 30))
    b[:, 0], a[:, 0] = 0.0, 10.0 ** rng.uniform(-12, -8, boxes)

    def value(excess: float, some: np.ndarray | None) -> np.ndarray:
        asked = slice(None) if some is None else some
        return np.log((a[asked] - excess * b[asked]).max(axis=1))

    return value


@pytest.mark.parametrize("seed", range(8))
def test_the_largest_of_convex_curves(seed):
    rng = np.random.default_rng(seed)
    value, seen = lines(rng, 200), Counter()

    def counted(excess: float, some: np.ndarray | None) -> np.ndarray:
        seen["boxes"] += 200 if some is None else some.size
        return value(excess, some)

    largest = LargestBox(200, counted)
    asked = np.sort(rng.uniform(0.0, 3.0, 200))
    rng.shuffle(asked)
    for excess in asked.tolist():
        assert largest.at(excess) == float(value(excess, None).max())
    assert seen["boxes"] < 0.4 * 200 * asked.size
    before = seen["boxes"]
    assert largest.at(float(asked[0])) == float(value(float(asked[0]), None).max())
    assert seen["boxes"] == before


def test_the_crowd_of_a_composition_keeps_the_count_bound():
    """Among the upper bounds of one-bit reports the count is looked at, and the company of one level hardly ever."""
    asked = settings_of()[1]
    count = bounds["count"].profile(asked, 1.0)
    assert isinstance(count, type(worst_count(PEOPLE, 1)))
    above = privacy_profile(asked, 1.0).upper.from_above
    assert isinstance(above, FromAbove)
    assert above.log_above(0.1) <= count.log_above(0.1)
