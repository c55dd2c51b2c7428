"""Enumeration of the real shuffled protocol for stated randomizers, n <= 4, in exact fractions.

No theorem enters the enumeration: every record of every other user, every ordered pair of records of the victim,
every multiset of reports (or every sequence, for outputs in order). Entries of channels are multiples of 1/64, so
that the doubles handed to the library are exact; elsewhere e^epsilon0 is a fraction and its logarithm is rounded up,
the central epsilon's down: an upper bound then needs no slack but 1e-12 for its inputs.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from fractions import Fraction

import pytest

from shuffledp.accounting import bounds, privacy_profile
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.budgets import Budgets
from shuffledp.errors import OutOfRegime
from shuffledp.randomizers import (
    Channel,
    HadamardResponse,
    LocalHashing,
    RandomizedResponse,
    SubsetSelection,
    UnaryEncoding,
)
from shuffledp.setting import Setting
from tests import oracles
from tests.randomizers import laws

SLACK = Fraction(1, 10**12)
SMALL_RATIOS = [Fraction(x, 100) for x in (110, 165, 200, 272, 500, 739, 2000)]
SHARES = (Fraction(0), Fraction(1, 20), Fraction(2, 5), Fraction(4, 5), Fraction(97, 100))
Table = oracles.Channel


def log_up(ratio: Fraction) -> float:
    return math.nextafter(float(oracles.fraction_log(ratio)), math.inf)


def log_down(ratio: Fraction) -> float:
    return max(0.0, math.nextafter(float(oracles.fraction_log(ratio)), -math.inf))


def between(top: Fraction) -> list[Fraction]:
    """Values of e^epsilon from 1 to beyond ``top``."""
    return [1 + (top - 1) * share for share in SHARES] + [top + 1]


def check(profiles: dict[str, PrivacyProfile], exact: Fraction, ratio: Fraction, what: object) -> None:
    for key, profile in profiles.items():
        upper = Fraction(profile.delta(log_down(ratio)).upper)
        assert upper >= exact * (1 - SLACK), (key, what, float(ratio), float(upper), float(exact))


def asked(setting: Setting, epsilon0: float, keys: Sequence[str]) -> dict[str, PrivacyProfile]:
    """The named bounds, and the bracket of all of them."""
    found = {key: bounds[key].profile(setting, epsilon0) for key in keys}
    return {**found, "all": privacy_profile(setting, epsilon0)}


def random_table(rng: random.Random, least: int) -> Table:
    """2-4 records, 2-5 outputs, entries whole multiples of 1/64, none below ``least``/64."""
    inputs, outputs = rng.choice([2, 2, 3, 4]), rng.choice([2, 3, 4, 5])
    rows: list[tuple[Fraction, ...]] = []
    for _ in range(inputs):
        cuts = sorted(rng.randint(0, 64 - outputs * least) for _ in range(outputs - 1))
        sizes = [b - a + least for a, b in itertools.pairwise([0, *cuts, 64 - outputs * least])]
        rows.append(tuple(Fraction(size, 64) for size in sizes))
    return tuple(rows)


def budgets_of(ratios: Sequence[Fraction]) -> Budgets:
    return Budgets.of([log_up(E) for E in ratios])


# ---------------------------------------------------------- channels


@pytest.mark.costly(
    but=(
        "10",
        "18",
        "2",
        "26",
        "31",
        "39",
        "57",
    )
)
@pytest.mark.one_in(4)
@pytest.mark.parametrize("seed", range(60))
def test_random_channels(seed):
    rng = random.Random(seed)
    table, n = random_table(rng, least=1), rng.choice([1, 2, 3, 3, 4])
    if len(table) == 4 and len(table[0]) == 5:
        n = min(n, 3)
    channel = Channel([[float(p) for p in row] for row in table])
    top = oracles.ldp_ratio(table)
    assert channel.epsilon0 >= float(oracles.fraction_log(top)) * (1 - 1e-15)
    setting = Setting(Budgets([channel.epsilon0], [n]), channel, seen="reports", neighboring="replace-one")
    profiles = asked(setting, channel.epsilon0, ("blanket", "clones", "local"))
    protocol = oracles.ShuffledProtocol([table] * n)
    for ratio in between(top):
        check(profiles, protocol.worst(0, ratio), ratio, (table, n))


@pytest.mark.costly("10", "3", "5", "6", "7", "9")
@pytest.mark.parametrize("seed", range(12))
def test_one_channel_under_several_stated_budgets(seed):
    """The law is the same whatever was stated; the victim of each level has the same guarantee."""
    rng = random.Random(100 + seed)
    table = random_table(rng, least=2)
    channel, n = Channel([[float(p) for p in row] for row in table]), rng.choice([2, 3])
    stated = [channel.epsilon0 * (1 + rng.choice([0, 1, 3])) for _ in range(n)]
    setting = Setting(Budgets.of(stated), channel, seen="reports", neighboring="replace-one")
    protocol, top = oracles.ShuffledProtocol([table] * n), oracles.ldp_ratio(table)
    for epsilon0 in set(stated):
        profiles = asked(setting, epsilon0, ("blanket",))
        for ratio in between(top)[:4]:
            check(profiles, protocol.worst(0, ratio), ratio, (table, stated))


@pytest.mark.parametrize("seed", range(25))
def test_channels_with_impossible_outputs(seed):
    """Outputs that some record never gives are charged in full, at every epsilon."""
    rng = random.Random(200 + seed)
    table = random_table(rng, least=0)
    n, delta0 = rng.choice([1, 2, 3]), 0.999
    channel = Channel([[float(p) for p in row] for row in table])
    epsilon0 = 2.0
    setting = Setting(Budgets([epsilon0], [n], [delta0]), channel, seen="reports", neighboring="replace-one")
    protocol = oracles.ShuffledProtocol([table] * n)
    try:
        blanket = bounds["blanket"].profile(setting, epsilon0)
    except OutOfRegime as refusal:
        assert not any(all(column) for column in zip(*table, strict=True)), refusal  # noqa: PT017
        return
    for ratio in (Fraction(1), Fraction(3, 2), Fraction(4), Fraction(60)):
        check({"blanket": blanket}, protocol.worst(0, ratio), ratio, (table, n))


# ---------------------------------------------------------- families


def unary_square(k: int, E: Fraction, *, optimized: bool) -> Table:
    """SUE of e^epsilon0 = E^2, OUE of e^epsilon0 = E: both in fractions."""
    own = Fraction(1, 2) if optimized else E / (1 + E)
    return laws.unary_table(k, own, 1 / (1 + E))


FAMILIES = [
    ("krr:3", RandomizedResponse(3), lambda E: oracles.krr_channel(3, E)),
    ("krr:4", RandomizedResponse(4), lambda E: oracles.krr_channel(4, E)),
    ("hadamard:3", HadamardResponse(3), lambda E: laws.hadamard_table(3, 4, E)),
    ("subset:4:2", SubsetSelection(4, size=2), lambda E: laws.subset_table(4, 2, E)),
    ("subset:3:2", SubsetSelection(3, size=2), lambda E: laws.subset_table(3, 2, E)),
    ("olh:2:2", LocalHashing(2, g=2), lambda E: laws.hashing_table(laws.all_hashes(2, 2), 2, E)),
    ("olh:2:3", LocalHashing(2, g=3), lambda E: laws.hashing_table(laws.all_hashes(2, 3), 3, E)),
    ("olh:3:2", LocalHashing(3, g=2), lambda E: laws.hashing_table(laws.all_hashes(3, 2), 2, E)),
    (
        "olh:2:2:unknown",
        LocalHashing(2, g=2, collision="unknown"),
        lambda E: laws.hashing_table([(0, 1), (1, 0)], 2, E),
    ),
]


@pytest.mark.parametrize(("name", "family", "table"), FAMILIES, ids=[f[0] for f in FAMILIES])
@pytest.mark.parametrize("seed", range(3))
def test_mixture_families_with_own_budgets(seed, name, family, table):
    rng = random.Random(f"{name} {seed}")
    n = rng.choice([2, 3]) if len(table(Fraction(2))[0]) < 10 else 2
    ratios = [rng.choice(SMALL_RATIOS) for _ in range(n)]
    setting = Setting(budgets_of(ratios), family, seen="reports", neighboring="replace-one")
    protocol = oracles.ShuffledProtocol([table(E) for E in ratios])
    victim = rng.randrange(n)
    profiles = asked(setting, log_up(ratios[victim]), ("blanket",))
    for ratio in rng.sample(between(ratios[victim]), 3):
        check(profiles, protocol.worst(victim, ratio, [(0, 1)]), ratio, (name, list(map(str, ratios)), victim))


ONE_BUDGET = [
    *FAMILIES,
    ("oue:2", UnaryEncoding(2), lambda E: unary_square(2, E, optimized=True)),
    ("oue:3", UnaryEncoding(3), lambda E: unary_square(3, E, optimized=True)),
    ("sue:2", UnaryEncoding(2, optimized=False), lambda E: unary_square(2, E, optimized=False)),
    ("sue:3", UnaryEncoding(3, optimized=False), lambda E: unary_square(3, E, optimized=False)),
]


@pytest.mark.parametrize(("name", "family", "table"), ONE_BUDGET, ids=[f[0] for f in ONE_BUDGET])
def test_every_family_with_one_budget(name, family, table):
    rng = random.Random(name)
    for _ in range(2):
        law = table(rng.choice(SMALL_RATIOS[:5]))
        top = oracles.ldp_ratio(law)
        n = rng.choice([2, 3]) if len(law[0]) < 9 else 2
        setting = Setting(budgets_of([top] * n), family, seen="reports", neighboring="replace-one")
        profiles = asked(setting, log_up(top), ("blanket", "clones"))
        protocol = oracles.ShuffledProtocol([law] * n)
        for ratio in rng.sample(between(top), 3):
            check(profiles, protocol.worst(0, ratio, [(0, 1)]), ratio, (name, str(top), n))


# ---------------------------------------------------------- outputs in order


def ordered_worst(tables: Sequence[Table], ratio: Fraction) -> Fraction:
    """Largest sum over sequences z of (P(z) - ratio Q(z))_+; step t applies table t to a random user's record."""
    n, inputs, outputs = len(tables), len(tables[0]), len(tables[0][0])
    scale = [math.lcm(*(p.denominator for row in table for p in row)) for table in tables]
    whole = [[[int(p * s) for p in row] for row in table] for table, s in zip(tables, scale, strict=True)]
    best = 0
    for others in itertools.combinations_with_replacement(range(inputs), n - 1):
        laws_of = []
        for record in (0, 1):
            placed = list(itertools.permutations((record, *others)))
            laws_of.append(
                [
                    sum(
                        math.prod(whole[t][x][y] for t, (x, y) in enumerate(zip(order, z, strict=True)))
                        for order in placed
                    )
                    for z in itertools.product(range(outputs), repeat=n)
                ]
            )
        for P, Q in (laws_of, laws_of[::-1]):
            best = max(
                best, sum(max(0, ratio.denominator * p - ratio.numerator * q) for p, q in zip(P, Q, strict=True))
            )
    return Fraction(best, math.factorial(n) * math.prod(scale) * ratio.denominator)


ORDERED = [
    ("krr:3", RandomizedResponse(3), lambda E: oracles.krr_channel(3, E), 3),
    ("krr:4", RandomizedResponse(4), lambda E: oracles.krr_channel(4, E), 3),
    ("hadamard:3", HadamardResponse(3), lambda E: laws.hadamard_table(3, 4, E), 2),
    ("subset:4:2", SubsetSelection(4, size=2), lambda E: laws.subset_table(4, 2, E), 2),
    ("oue:3", UnaryEncoding(3), lambda E: unary_square(3, E, optimized=True), 2),
    ("sue:2", UnaryEncoding(2, optimized=False), lambda E: unary_square(2, E, optimized=False), 3),
    ("olh:2:2", LocalHashing(2, g=2), lambda E: laws.hashing_table(laws.all_hashes(2, 2), 2, E), 2),
]


@pytest.mark.costly("0-oue:3", "1-hadamard:3", "1-krr:4", "1-oue:3", "2-krr:4", "2-oue:3")
@pytest.mark.parametrize(("name", "family", "table", "n"), ORDERED, ids=[f[0] for f in ORDERED])
@pytest.mark.parametrize("seed", range(3))
def test_outputs_in_order_with_a_budget_per_step(seed, name, family, table, n):
    rng = random.Random(f"ordered {name} {seed}")
    tables = [table(rng.choice(SMALL_RATIOS)) for _ in range(n)]
    tops = [oracles.ldp_ratio(law) for law in tables]
    setting = Setting(budgets_of(tops), family, seen="users", neighboring="replace-one")
    profiles = asked(setting, log_up(tops[0]), ("ordered",))
    for ratio in rng.sample(between(max(tops)), 3):
        check(profiles, ordered_worst(tables, ratio), ratio, (name, list(map(str, tops))))
