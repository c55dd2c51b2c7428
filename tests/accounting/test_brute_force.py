"""Enumeration of the real shuffled protocol, n <= 6, in exact fractions, against the certified bracket.

No theorem enters the enumeration: every record of every other user, every pair of records of the victim,
every multiset of reports. Rational e^epsilon0 = E; the double log(E) handed to the library is rounded to
the safe side (budgets up, central epsilon down), so an upper bound needs no slack but 1e-12 for its inputs.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest

from shuffledp.accounting import bounds, privacy_profile
from shuffledp.budgets import Budgets
from shuffledp.randomizers import RandomizedResponse
from shuffledp.setting import Setting
from tests import oracles

SLACK = Fraction(1, 10**12)
TINY = Fraction(1, 10**15)
"""Absolute slack of the witness side: a rounded log(E) moves a delta by at most a few ulps."""
SMALL_RATIOS = [Fraction(x, 100) for x in (101, 110, 128, 165, 200, 272, 350, 500, 739, 1200, 2000, 5000)]


def log_up(ratio: Fraction) -> float:
    return math.nextafter(float(oracles.fraction_log(ratio)), math.inf)


def log_down(ratio: Fraction) -> float:
    return max(0.0, math.nextafter(float(oracles.fraction_log(ratio)), -math.inf))


def asked_ratios(rng: random.Random, E: Fraction) -> list[Fraction]:
    """Values of e^epsilon: 1, inside, close to and beyond the victim's own."""
    inside = 1 + (E - 1) * Fraction(rng.randint(1, 99), 100)
    return [Fraction(1), inside, 1 + (E - 1) * Fraction(1, 20), 1 + (E - 1) * Fraction(97, 100), E + 1]


def setting_of(ratios: list[Fraction], randomizer: object, seen: str = "reports") -> Setting:
    budgets = Budgets.of([log_up(E) for E in ratios])
    return Setting(budgets, randomizer, seen=seen, neighboring="replace-one")


def check_upper(upper: float, exact: Fraction, what: object) -> None:
    assert Fraction(upper) >= exact * (1 - SLACK), (
        "upper bound below the real protocol",
        what,
        upper,
        float(exact),
    )


def check_lower(lower: float, exact: Fraction, what: object) -> None:
    assert Fraction(lower) <= exact * (1 + SLACK) + TINY, (
        "witness above the real one",
        what,
        lower,
        float(exact),
    )


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(100))
def test_randomized_response_with_own_budgets(seed):
    rng = random.Random(seed)
    n = rng.choice([1, 2, 3, 4, 5, 6])
    few = rng.sample(SMALL_RATIOS, rng.choice([1, 2, 3]))
    ratios = [rng.choice(few) for _ in range(n)]
    setting = setting_of(ratios, RandomizedResponse(k=2))
    protocol = oracles.ShuffledProtocol([oracles.krr_channel(2, E) for E in ratios])
    victim = rng.randrange(n)
    e0 = log_up(ratios[victim])
    uppers = [bounds[key].profile(setting, epsilon0=e0) for key in ("clones", "blanket", "local")]
    witness = bounds["count-exact"].profile(setting, epsilon0=e0)
    bracket = privacy_profile(setting, epsilon0=e0)
    for t in asked_ratios(rng, ratios[victim]):
        exact = protocol.worst(victim, t, [(0, 1), (1, 0)])
        what = (list(map(str, ratios)), victim, str(t))
        for profile in (*uppers, bracket):
            check_upper(profile.delta(log_down(t)).upper, exact, what)
        for profile in (witness, bracket):
            check_lower(profile.delta(float(oracles.fraction_log(t))).lower, exact, what)


@pytest.mark.costly("18")
@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(60))
def test_kary_randomized_response_with_own_budgets(seed):
    rng = random.Random(1000 + seed)
    k = rng.choice([3, 3, 4])
    n = rng.choice([1, 2, 3, 4, 5, 6] if k == 3 else [2, 3, 4])
    few = rng.sample(SMALL_RATIOS, rng.choice([1, 2]))
    ratios = [rng.choice(few) for _ in range(n)]
    setting = setting_of(ratios, RandomizedResponse(k=k))
    protocol = oracles.ShuffledProtocol([oracles.krr_channel(k, E) for E in ratios])
    victim = rng.randrange(n)
    e0 = log_up(ratios[victim])
    blanket = bounds["blanket"].profile(setting, epsilon0=e0)
    bracket = privacy_profile(setting, epsilon0=e0)
    for t in asked_ratios(rng, ratios[victim])[:4]:
        exact = protocol.worst(victim, t, [(0, 1)])  # the symbols are exchangeable: one ordered pair is all
        what = (k, list(map(str, ratios)), victim, str(t))
        check_upper(blanket.delta(log_down(t)).upper, exact, what)
        check_upper(bracket.delta(log_down(t)).upper, exact, what)
        check_lower(bracket.delta(float(oracles.fraction_log(t))).lower, exact, what)


@pytest.mark.parametrize("seed", range(30))
def test_kary_witness_is_attained(seed):
    rng = random.Random(2000 + seed)
    k, n, E = rng.choice([3, 4]), rng.choice([2, 3, 4]), rng.choice(SMALL_RATIOS)
    setting = setting_of([E] * n, RandomizedResponse(k=k))
    witness = bounds["krr-exact"].profile(setting, epsilon0=log_up(E))
    protocol = oracles.ShuffledProtocol([oracles.krr_channel(k, E)] * n)
    for t in asked_ratios(rng, E)[:4]:
        interval = witness.delta(float(oracles.fraction_log(t)))
        check_lower(interval.lower, protocol.worst(0, t, [(0, 1)]), (k, n, str(E), str(t)))
        own = oracles.krr_witness_delta(k, log_up(E), n, float(oracles.fraction_log(t)))
        assert interval.lower <= own * (1 + 1e-12) + 1e-15


def random_channel(rng: random.Random, E: Fraction) -> oracles.Channel:
    """A random channel with column ratios at most E: two-value mechanisms side by side, then merged.

    Each part answers "is the record in this random set?" by randomized response at E; listing the parts
    with weights keeps E-LDP, and so does merging outputs.
    """
    inputs, parts = rng.choice([2, 3]), rng.choice([1, 2, 3])
    weights = [rng.randint(1, 9) for _ in range(parts)]
    columns: list[list[Fraction]] = []
    for weight in weights:
        share = Fraction(weight, sum(weights))
        inside = [rng.random() < 0.5 for _ in range(inputs)]
        high, low = share * E / (1 + E), share / (1 + E)
        columns.append([high if x else low for x in inside])
        columns.append([low if x else high for x in inside])
    outputs = rng.choice([2, 3, 4])
    merged = [[Fraction(0)] * inputs for _ in range(outputs)]
    for column in columns:
        target = rng.randrange(outputs)
        merged[target] = [a + b for a, b in zip(merged[target], column, strict=True)]
    kept = [column for column in merged if any(column)]
    return tuple(tuple(column[x] for column in kept) for x in range(inputs))


@pytest.mark.parametrize("seed", range(100))
def test_any_randomizer_with_one_budget(seed):
    rng = random.Random(3000 + seed)
    E, n = rng.choice(SMALL_RATIOS), rng.choice([1, 2, 3, 4, 5])
    channel = random_channel(rng, E)
    assert oracles.ldp_ratio(channel) <= E
    setting = setting_of([E] * n, "any")
    clones = bounds["clones"].profile(setting, epsilon0=log_up(E))
    bracket = privacy_profile(setting, epsilon0=log_up(E))
    protocol = oracles.ShuffledProtocol([channel] * n)
    for t in asked_ratios(rng, E)[:4]:
        exact = protocol.worst(0, t)
        check_upper(clones.delta(log_down(t)).upper, exact, (channel, n, str(E), str(t)))
        check_upper(bracket.delta(log_down(t)).upper, exact, (channel, n, str(E), str(t)))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("own", [RandomizedResponse(k=3), "any"], ids=["krr:3", "any"])
def test_levels_visible(seed, own):
    """Each report names its level: users of other levels hide nobody."""
    rng = random.Random(4000 + seed)
    few = rng.sample(SMALL_RATIOS, 2)
    ratios = [few[0]] * rng.choice([1, 2, 3]) + [few[1]] * rng.choice([1, 2])
    channels = {E: oracles.krr_channel(3, E) if own != "any" else random_channel(rng, E) for E in few}
    protocol = oracles.ShuffledProtocol([channels[E] for E in ratios], [few.index(E) for E in ratios])
    setting = setting_of(ratios, own, seen="levels")
    e0 = log_up(few[0])
    profiles = [bounds["clones"].profile(setting, epsilon0=e0), privacy_profile(setting, epsilon0=e0)]
    for t in asked_ratios(rng, few[0])[:3]:
        exact = protocol.worst(0, t)
        for profile in profiles:
            check_upper(profile.delta(log_down(t)).upper, exact, (list(map(str, ratios)), str(t)))
        if own != "any":
            check_lower(profiles[1].delta(float(oracles.fraction_log(t))).lower, exact, (ratios, t))


@pytest.mark.parametrize("seed", range(30))
def test_sum_of_bits(seed):
    """The sum of randomized-response bits is their count: same number as shuffled reports."""
    rng = random.Random(5000 + seed)
    n = rng.choice([2, 3, 4, 5])
    few = rng.sample(SMALL_RATIOS, 2)
    ratios = [rng.choice(few) for _ in range(n)]
    channels = [oracles.krr_channel(2, E) for E in ratios]
    summed = oracles.ShuffledProtocol(channels, summed=True)
    listed = oracles.ShuffledProtocol(channels)
    profile = privacy_profile(setting_of(ratios, RandomizedResponse(k=2), seen="sum"), epsilon0=log_up(ratios[0]))
    for t in asked_ratios(rng, ratios[0])[:3]:
        exact = summed.worst(0, t)
        assert exact == listed.worst(0, t)
        check_upper(profile.delta(log_down(t)).upper, exact, (list(map(str, ratios)), str(t)))
        check_lower(profile.delta(float(oracles.fraction_log(t))).lower, exact, (list(map(str, ratios)), str(t)))
