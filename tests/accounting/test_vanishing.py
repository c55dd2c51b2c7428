"""Where the divergence of a channel vanishes, and next to it: the last digit decides, and it is on the safe side.

Entries of the channels are multiples of 1/64: the doubles are exact, and so are the fractions they are compared with.
"""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from mpmath import exp, floor, mpf, workdps

from shuffledp import Budgets, Channel, RandomizedResponse, Setting, Uniform, certify, privacy_profile
from shuffledp.accounting import floor_profile
from shuffledp.accounting.theorems.blanket.loss_laws import loss_law
from tests import oracles

PARTS = 64
DIGITS = 60


def power(epsilon: float) -> Fraction:
    """e^epsilon rounded down to 60 digits after the point; epsilon is a double, which is a fraction."""
    with workdps(DIGITS + 20):
        return Fraction(int(floor(exp(mpf(epsilon)) * mpf(10) ** DIGITS)), 10**DIGITS)


def channel_of(table):
    return Channel([[float(p) for p in row] for row in table])


def setting_of(channel, n):
    budgets = Budgets([channel.epsilon0], [n]) if math.isfinite(channel.epsilon0) else leaking(channel, n)
    return Setting(budgets, channel, seen="reports", neighboring="replace-one")


def leaking(channel, n):
    return Budgets([3.0], [n], [channel.divergence(3.0)])


def table_of(*rows):
    return tuple(tuple(Fraction(entry, PARTS) for entry in row) for row in rows)


def dyadic_tables():
    """All 1,953 channels of two outputs without zeros, and 2,100 of three, drawn once."""
    two = [table_of((b, PARTS - b), (a, PARTS - a)) for a, b in itertools.combinations(range(1, PARTS), 2)]
    rng = random.Random(13)
    rows = [(a, b, PARTS - a - b) for a in range(1, PARTS - 1) for b in range(1, PARTS - a)]
    return two + [table_of(*rng.sample(rows, 2)) for _ in range(2100)]


@pytest.mark.costly
def test_of_four_thousand_channels_none_vanishes_before_its_largest_loss():
    """Of 3,906 pairs of two outputs, 1,954 had a computed loss below the exact one."""
    tables = dyadic_tables()
    assert len(tables) > 4000
    for table in tables:
        channel = channel_of(table)
        losses = [max(x / y for x, y in zip(one, two, strict=True)) for one, two in (table, table[::-1])]
        assert power(channel.epsilon0) >= max(losses)
        for pair in channel.pair_blankets(channel.epsilon0):
            top = int(np.argmax(pair.losses))
            exact = min(losses, key=lambda loss: abs(math.log(loss) - pair.losses[top]))
            assert power(pair.largest_loss) >= exact
            assert pair.largest_loss <= math.log(exact) * (1 + 1e-14) + 1e-300


NEAR = (0.0, 0.5, 1 - 1e-3, 1 - 1e-8, 1 - 1e-12, 1 - 1e-15, 1.0)
FOUND = [
    (table_of((2, 62), (1, 63)), 1),  # certified [0, 0] at 0.6931471805599453, exactly 7.2e-19
    (table_of((18, 46), (25, 39)), 1),  # 1.28217e-13 certified, 1.28222e-13 exactly
    (table_of((0, 52, 12), (0, 10, 54)), 2),
    (table_of((0, 7, 52, 5), (0, 10, 44, 10)), 3),
]


def check(table, n, parts=NEAR):
    channel = channel_of(table)
    setting, protocol = setting_of(channel, n), oracles.ShuffledProtocol([table] * n)
    profile = privacy_profile(setting, float(setting.budgets.epsilons[0]))
    top = min(profile.vanishes_at, 5.0)
    for epsilon in [top * part for part in parts]:
        found, above = profile.delta(epsilon), power(epsilon)
        # the exact delta lies between those at two neighbours of e^epsilon
        low, high = protocol.worst(0, above + Fraction(1, 10**DIGITS)), protocol.worst(0, above)
        assert Fraction(found.lower) <= high
        assert Fraction(found.upper) >= low, (table, n, epsilon)


@pytest.mark.parametrize(("table", "n"), FOUND)
def test_what_was_found_below_the_truth_next_to_the_vanishing_point(table, n):
    check(table, n)


@pytest.mark.costly
@pytest.mark.parametrize("n", [1, 2])
def test_dyadic_channels_next_to_their_vanishing_point(n):
    for table in dyadic_tables()[:: 61 * n]:
        check(table, n, NEAR[-3:])


def test_the_point_itself_is_certified():
    table = FOUND[0][0]
    epsilon = certify(setting_of(channel_of(table), 1), 1e-25).epsilon.upper
    assert oracles.ShuffledProtocol([table]).worst(0, power(epsilon)) <= Fraction(1, 10**25)


@pytest.mark.parametrize("reports", [3, 5, 7])
def test_several_reports_among_dummies_vanish_where_their_budgets_add_up_to(reports):
    """At 3 x 0.7, rounded to the nearest double below, [0, 0] was certified: three bits alone differ by 3 x 0.7."""
    for budget in (0.7, 0.1, 1.1, 2.3):
        floor = floor_profile(RandomizedResponse(2), budget, Uniform(0), reports=reports)
        assert Fraction(floor.vanishes_at) >= reports * Fraction(budget)
        assert floor.vanishes_at <= reports * budget * (1 + 1e-15)
    three = floor_profile(RandomizedResponse(2), 0.7, Uniform(0), reports=3)
    assert three.delta(3 * 0.7).upper > 0.0


# ------------------------------------------------------------------ outputs that one record never gives

IMPOSSIBLE = [
    [[0.0, 1.0], [0.32, 0.68]],
    [[0.0, 1.0], [0.5, 0.5], [0.0, 1.0]],
    [[1.0, 0.0], [0.625, 0.375]],
    [[0.75, 0.0, 0.0, 0.25], [0.25, 0.671875, 0.0, 0.078125]],
]


@pytest.mark.costly(but=("matrix0-1",))
@pytest.mark.one_in(4)
@pytest.mark.parametrize("n", [1, 3, 100])
@pytest.mark.parametrize("matrix", IMPOSSIBLE)
def test_an_impossible_output_is_no_zero_times_infinity(matrix, n):
    """Once a raw ValueError, after warnings on stderr; warnings are errors here."""
    channel = Channel(matrix)
    setting, shown = setting_of(channel, n), channel.divergence(40.0)
    for delta in (1e-6, 1e-3, 0.1):
        assert certify(setting, delta).epsilon.upper == math.inf  # with probability `shown` the report tells
    assert certify(setting, min(shown * 1.01, 0.99)).epsilon.upper < math.inf
    for epsilon in (0.0, 1.0):
        found = privacy_profile(setting, 3.0).delta(epsilon)
        assert found.upper >= shown * (1 - 1e-9)
        assert found.lower <= found.upper <= 1.0


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("table", [table_of((0, 64), (20, 44)), table_of((10, 28, 10, 16), (32, 0, 32, 0))])
def test_an_impossible_output_in_exact_fractions(table, n):
    check(table, n)


@pytest.mark.costly(but=("situation1",))
@pytest.mark.parametrize("situation", [{"rounds": 2}, {"group_size": 2}, {"colluding": 1}, {"reports_per_user": 2}])
def test_an_impossible_output_in_other_situations(situation):
    channel = Channel(IMPOSSIBLE[0])
    setting = Setting(leaking(channel, 4), channel, seen="reports", neighboring="replace-one", **situation)
    assert certify(setting, 0.1).epsilon.upper == math.inf


def test_the_law_of_the_losses_of_an_output_that_x0_never_gives():
    """-e^epsilon r_1 there: the formula r_0 (1 - e^(epsilon - loss)) has 0 times infinity."""
    found = Channel([[0.0, 0.5, 0.5], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]]).witness_pairs(1.0)
    assert found is not None
    for pair in found:
        law = loss_law(pair, 0.5)
        wanted = pair.ratios0 - math.exp(0.5) * pair.ratios1
        assert law.one.values[0] == pytest.approx(wanted, rel=1e-12, abs=1e-12)
        assert np.isfinite(law.one.doubt)
