"""Weighting to public margins: what it gives, its linearised variance against simulation, and bad margins."""

from __future__ import annotations

import numpy as np
import pytest

from shuffledp import Ask, JointByGroup, People, Terms, release, release_by
from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import simulation_random
from shuffledp.questions.frequency import Frequency
from shuffledp.questions.mean import Mean
from shuffledp.questions.variance import Variance
from shuffledp.records.people import Groups
from shuffledp.releases.margins import Margins, covariance_of_shares, group_weights, raked, weighted_groups

SIDE, AGE = np.repeat([0, 1], 6), np.tile(np.repeat([0, 1, 2], 2), 2)  # two sides, three ages, two answers: 12 cells
CELLS = np.array([8, 6, 9, 12, 5, 10, 10, 4, 6, 8, 12, 10]) / 100.0
TARGETS = [np.array([0.4, 0.6]), np.array([0.3, 0.3, 0.4])]


def test_raking_reaches_the_margins_and_keeps_odds_ratios():
    found = raked(CELLS, np.eye(12), [SIDE, AGE], TARGETS, 100)
    assert np.bincount(SIDE, found.value) == pytest.approx(TARGETS[0], abs=1e-9)
    assert np.bincount(AGE, found.value) == pytest.approx(TARGETS[1], abs=1e-9)
    before, after = CELLS[0] * CELLS[3] / (CELLS[1] * CELLS[2]), found.value[0] * found.value[3]
    assert after / (found.value[1] * found.value[2]) == pytest.approx(before)
    assert np.diag(found.covariance @ np.ones((12, 12))) == pytest.approx(np.zeros(12), abs=1e-8)


def test_the_linearisation_is_the_derivative():
    cov = np.diag(np.arange(1.0, 13.0))

    def value(cells):
        return raked(cells, cov, [SIDE, AGE], TARGETS, 1).value

    lead = np.array([
        (value(CELLS + step) - value(CELLS - step)) / 2e-6
        for step in 1e-6 * np.eye(12)
    ]).T  # fmt: skip
    assert raked(CELLS, cov, [SIDE, AGE], TARGETS, 1).covariance == pytest.approx(lead @ cov @ lead.T, abs=1e-5)


@pytest.mark.costly
@pytest.mark.parametrize("variables", [1, 2])
def test_the_variance_is_that_of_simulations(variables):
    """12,000 samples with noise of two levels and dummies: variances within 5 % each, twelve cells and the answer.

    The variance of 12,000 draws is off by 1.3 %; 5 % is nearly four standard errors: false alarm about .1 %.
    """
    rng, runs = np.random.default_rng(26), 12_000
    people, own, other = (1500, 500), (0.9, 0.6), (0.1 / 11, 0.4 / 11)
    m, slope = 240, 1500 * (0.9 - 0.1 / 11) + 500 * (0.6 - 0.4 / 11)
    dummies = m * (np.eye(12) / 12 - np.ones((12, 12)) / 144)
    counts = sum(
        rng.multinomial(n, q + (p - q) * CELLS, size=runs) for n, p, q in zip(people, own, other, strict=True)
    ) + rng.multinomial(m, np.full(12, 1 / 12), size=runs)
    base = m / 12 + sum(n * q for n, q in zip(people, other, strict=True))
    shares, which = (counts - base) / slope, [SIDE, AGE][:variables]
    found = np.array([raked(row, dummies, which, TARGETS[:variables], 2000).value for row in shares])
    cov = covariance_of_shares(people, own, other, CELLS, dummies)
    predicted = raked(CELLS, cov, which, TARGETS[:variables], 2000).covariance
    assert np.diag(predicted) == pytest.approx(found.var(axis=0), rel=0.05)
    first = np.arange(12) % 2 == 0
    assert first @ predicted @ first == pytest.approx(found[:, first].sum(axis=1).var(), rel=0.05)


def test_known_groups_are_weighted_and_those_missing_counted():
    cov = covariance_of_shares((100,), (1.0,), (0.0,), np.array([0.5, 0.5]))
    assert cov[0, 0] == pytest.approx(0.25 / 100)
    known = Margins({"side": {"north": 0.25, "south": 0.75}}, 400)
    weights = group_weights(known, Groups("side", ("north", "south")), [100, 50])
    found = weighted_groups([np.array([0.5, 0.5]), np.array([0.2, 0.8])], [np.diag(cov)] * 2, weights)
    assert found.value == pytest.approx([0.275, 0.725])
    assert found.standard_error[0] == pytest.approx(0.05 * np.hypot(0.25, 0.75))
    assert found.missing == 250


HEAD = "variable,category,people\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + "side,north,5\nside,south,5\nage,old,9\n", "do not add up: side has 10 and age has 9"),
        (HEAD + "side,north,5\nside,south,0\n", "at least 1; got '0'. An empty category"),
        (HEAD + "side,north,5\nside,north,5\n", "one twice"),
        ("variable,category,share\nside,north,0.5\nside,south,0.4\n", "add up to 0.9, not to 1"),
        ("side,people\nnorth,5\n", "need the columns"),
        (HEAD, "no line"),
        (HEAD + "side," + "x" * 200_000 + ",5\n", "no CSV table .field larger than field limit"),
        (HEAD + 'side,"no\nrth",5\n', "a name of several lines"),
        ('variable,"category,people\nside,north,5\n', "need the columns"),
    ],
)
def test_bad_margins_are_one_clear_line(text, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        Margins.parse(text.encode())
    assert "\n" not in str(caught.value)


def test_margins_fit_what_was_asked():
    known = Margins.parse((HEAD + "side,north,600\nside,south,400\n").encode())
    assert known.of("side", ["south", "north"]) == pytest.approx([0.4, 0.6])
    for variable, categories, message in (
        ("age", ["old"], "lack the variable"),
        ("side", ["north", "south", "east"], "lack 'east'"),
        ("side", ["north"], "of which nothing was asked"),
    ):
        with pytest.raises(InvalidInput, match=message):
            known.of(variable, categories)
    with pytest.raises(InvalidInput, match="1001 people answered"):
        raked(np.ones(1), np.ones((1, 1)), [np.zeros(1, dtype=int)], [np.ones(1)], 1001, 1000)
    with pytest.raises(InvalidInput, match="category 2 of variable 1 has no answers"):
        raked(np.array([0.9, -0.1]), np.eye(2), [np.array([0, 1])], [np.array([0.5, 0.5])], 10)


@pytest.mark.costly("laplace")
@pytest.mark.parametrize("mechanism", ["one-bit", "laplace"])
def test_a_mean_is_weighted_with_noise_and_sampling(mechanism):
    """Of one-bit the variance is that of 40,000 simulated samples within 5 %; of others at least that.

    The variance of so many draws is off by .7 %: no false alarm. Numbers of the two groups are 0 or 10, so their
    spread is the largest there is.
    """
    rng, sizes, chance = np.random.default_rng(26), (1600, 800), (0.3, 0.6)
    values = np.concatenate([10.0 * (np.arange(n) < p * n) for n, p in zip(sizes, chance, strict=True)])
    people = {"x": values, "side": np.repeat(["north", "south"], sizes)}
    found = release_by(
        Mean(0, 10), people, by="side", groups=["north", "south"], value="x", budgets=2.0, seen="reports",
        delta=1e-6, mechanism=mechanism, random=simulation_random(3),
    )  # fmt: skip
    known = Margins.parse((HEAD + "side,north,3000\nside,south,7000\n").encode())
    weighted = found.weighted(known)
    means = [float(each.estimate) for each in found.releases.values()]
    assert float(weighted.value) == pytest.approx(0.3 * means[0] + 0.7 * means[1])
    low, high = weighted.confidence_interval()
    assert 0.0 <= low < weighted.value < high <= 10.0
    total = 0.0
    for weight, n, p in zip((0.3, 0.7), sizes, chance, strict=True):
        sampled = rng.binomial(n, p, size=40_000) / n
        noise = float(next(r for r in found.releases.values() if r.n == n).standard_error) ** 2
        if mechanism == "one-bit":
            kept = np.tanh(1.0)  # p - q of a bit at budget 2
            ones = rng.binomial(n, 0.5 + kept * (p - 0.5), size=40_000) / n
            total += weight**2 * (10.0 / kept) ** 2 * ones.var()
        else:
            total += weight**2 * (100.0 * sampled.var() + noise)
    assert float(weighted.variance) == pytest.approx(total, rel=0.05)


CROSSED = {"side": {"north": 0.3, "south": 0.7}, "age": {"old": 0.5, "mid": 0.3, "young": 0.2}}
PEOPLE = np.array([480, 240, 80, 240, 480, 480])  # of the pairs of `CROSSED`, in order
CHANCE = np.array([0.95, 0.5, 0.05, 0.05, 0.5, 0.95])  # what age says hangs on the side, so sizes of pairs matter


@pytest.mark.costly
def test_groups_by_two_columns_are_raked_with_the_variance_of_simulations():
    """6,000 samples of people, of whom the margins alone are known, with randomized response: within 5 %.

    The variance of so many draws is off by 1.8 %. A part of it comes from the sizes of groups, so that weights taken
    as fixed would fail.
    """
    known, n, budget = Margins(CROSSED, 40_000), int(PEOPLE.sum()), 3.0
    names = known.crossed(["side", "age"])
    groups, kept = Groups("side,age", names), np.tanh(budget / 2)
    side, age = (np.repeat([name.split(" / ")[part] for name in names], PEOPLE) for part in (0, 1))
    votes = np.concatenate([np.arange(n_) < round(p * n_) for n_, p in zip(PEOPLE, CHANCE, strict=True)])
    found = release_by(
        Frequency(["yes", "no"]), {"side": side, "age": age, "vote": np.where(votes, "yes", "no")}, by="side,age",
        groups=names, value="vote", budgets=budget, seen="reports", delta=1e-6, random=simulation_random(3),
        margins=known,
    )  # fmt: skip
    assert [release.n for release in found.releases.values()] == PEOPLE.tolist()
    weighted = found.weighted(known)
    assert (weighted.answered, weighted.missing) == (n, 40_000 - n)

    rng, none = np.random.default_rng(26), [np.zeros(2)] * 6
    drawn, fixed = [], group_weights(known, groups, PEOPLE.tolist()).value
    for sizes in rng.multinomial(n, PEOPLE / n, size=6000):
        ones = rng.binomial(sizes, 0.5 + kept * (CHANCE - 0.5)) / sizes
        yes = 0.5 + (ones - 0.5) / kept
        raked_now = weighted_groups(np.stack((yes, 1.0 - yes), axis=1), none, group_weights(known, groups, sizes))
        drawn.append([*raked_now.value, fixed @ yes])
    spread = np.array(drawn).var(axis=0)
    assert weighted.variance == pytest.approx(spread[:2], rel=0.05)
    assert weighted.value[0] == pytest.approx(fixed @ CHANCE, abs=4.0 * weighted.standard_error[0])
    assert spread[2] < 0.85 * weighted.variance[0]


@pytest.mark.parametrize(
    ("by", "groups", "message"),
    [
        ("side,age", ["north / old", "south"], "one word a column, as in side / age; got 'south'"),
        ("side,age", ["north / old", "south / "], "one word a column"),
        ("side,side", ["north / old"], "up to 4 different ones"),
        ("side,", ["north / old"], "up to 4 different ones"),
        ("side,age", ["north / old", "south / old"], "age in row 2 is .*none of the groups"),
        ("side,age", ["north / old", "south / young"], "side,age in row 2 is .*none of the groups"),
        ("side,age", ["north / old", "north / young", "south / old", "south / young"], "nobody is in .*south / young"),
    ],
)
def test_groups_by_two_columns_that_do_not_fit_are_refused_in_one_line(by, groups, message):
    people = {"side": ["north", "north", "south"] * 4, "age": ["old", "young", "old"] * 4, "x": [1.0, 2.0, 3.0] * 4}
    with pytest.raises(InvalidInput, match=message) as refused:
        release_by(Mean(0, 9), people, by=by, groups=groups, value="x", budgets=1.0, seen="reports", delta=1e-6)
    assert "\n" not in str(refused.value)


def test_margins_that_no_weights_lead_to_draw_nothing():
    """Nobody old in the south and nobody young in the north: both shares cannot differ."""
    people = {"side": ["north", "south"] * 50, "age": ["old", "young"] * 50, "x": [1.0, 2.0] * 50}
    with pytest.raises(InvalidInput, match="no weights lead to these margins"):
        release_by(
            Mean(0, 9), people, by="side,age", groups=["north / old", "south / young"], value="x", budgets=1.0,
            seen="reports", delta=1e-6,
            margins=Margins({"side": {"north": 0.5, "south": 0.5}, "age": {"old": 0.4, "young": 0.6}}),
        )  # fmt: skip


@pytest.mark.costly
def test_several_questions_of_groups_are_weighted_too():
    people = {"side": ["north", "south"] * 200, "age": ["old"] * 100 + ["young"] * 300, "x": [1.0] * 400,
              "vote": ["yes", "no", "no", "no"] * 100}  # fmt: skip
    known = Margins({"side": {"north": 0.25, "south": 0.75}, "age": {"old": 0.5, "young": 0.5}})
    found = release(
        [Ask(Mean(0, 9), "x"), Ask(Frequency(["yes", "no"]), "vote")],
        People(people, budgets=8.0, by="side,age", groups=known.crossed(["side", "age"])),
        Terms(seen="reports", delta=1e-6, random=simulation_random(5), margins=known),
    )
    assert isinstance(found, JointByGroup)
    mean, vote = (each.weighted(known) for each in found.questions)
    assert float(mean.value) == pytest.approx(1.0, abs=4 * float(mean.standard_error))
    assert vote.value[0] == pytest.approx(0.25 * 0.5, abs=0.06)
    assert found.epsilon == found.releases[found.worst].epsilon


def test_what_has_no_share_and_no_mean_is_not_weighted():
    people = {"x": [1.0, 2.0] * 100, "side": ["north", "south"] * 100}
    found = release_by(
        Variance(0, 10), people, by="side", groups=["north", "south"], value="x", budgets=2.0, seen="reports",
        delta=1e-6, random=simulation_random(3),
    )  # fmt: skip
    with pytest.raises(InvalidInput, match="ask for a histogram in its place"):
        found.weighted(Margins.parse((HEAD + "side,north,3000\nside,south,7000\n").encode()))
