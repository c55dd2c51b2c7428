"""Predicted standard errors against simulation, against the analyzers' own, and against exact enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from shuffledp import Frequency, Mean, Variance
from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import simulation_random
from shuffledp.planning.question import Guess, Moments, PlannedQuestion, predict, reading, weight_of_reports
from shuffledp.questions.frequency import frequency
from shuffledp.questions.mean import mean
from shuffledp.questions.tally import ShuffledReports
from shuffledp.randomizers import OneBit, RandomizedResponse

SHARES = (0.55, 0.25, 0.12, 0.06, 0.02)
POPULATION = Budgets((0.5, 1.0, 3.0), (600, 300, 100))
WAYS = (("reports", None), ("levels", "population"), ("levels", "precision"))
REPEATS = 300
SIGMAS = 4.5
"""A variance from R normal draws has relative deviation sqrt(2/R): 0.082 here, so one check fails in 150,000 runs."""


def simulate(family, records, seen, weights, estimator):
    """Estimates and their own standard errors, budgets dealt to the users anew each time."""
    random, deal = simulation_random(5), np.random.default_rng(6)
    own = np.repeat(POPULATION.epsilons, POPULATION.counts)
    found = []
    for _ in range(REPEATS):
        budgets = deal.permutation(own)
        reports = family.randomize(records, budgets, random)
        shuffled = ShuffledReports(reports, budgets, seen=seen)
        estimate = estimator(shuffled, family, weights=weights or "population")
        found.append((estimate.value, estimate.standard_error))
    values, errors = (np.array(column) for column in zip(*found, strict=True))
    return values, errors


@pytest.mark.costly
@pytest.mark.one_in(4)
@pytest.mark.parametrize(("seen", "weights"), WAYS)
@pytest.mark.parametrize("mechanism", ["krr", "sue", "oue", "olh", "hadamard", "subset"])
def test_frequencies_err_as_predicted(mechanism, seen, weights):
    question = PlannedQuestion(Frequency(range(len(SHARES))))
    family = question.family(mechanism, POPULATION, seen)
    counts = np.rint(np.array(SHARES) * POPULATION.n).astype(int)
    records = np.repeat(np.arange(len(SHARES)), counts)
    values, errors = simulate(family, records, seen, weights, frequency)
    for j, share in enumerate(SHARES):
        predicted = predict(family, POPULATION, weights, Moments(share, share, binary=True)).standard_error
        ratio = float(np.mean((values[:, j] - share) ** 2)) / predicted**2
        assert abs(ratio - 1.0) < SIGMAS * (2.0 / REPEATS) ** 0.5, (share, ratio)
        # the analyzer reads the same formula off the reports: it differs by noise alone
        assert np.sqrt(np.mean(errors[:, j] ** 2)) == pytest.approx(predicted, rel=0.05)


@pytest.mark.costly
@pytest.mark.one_in(4)
@pytest.mark.parametrize(("seen", "weights"), WAYS)
@pytest.mark.parametrize("mechanism", ["one-bit", "laplace", "piecewise", "hybrid"])
def test_means_err_as_predicted(mechanism, seen, weights):
    values = np.random.default_rng(7).beta(2.0, 5.0, POPULATION.n) * 60.0 + 20.0
    question = PlannedQuestion(Mean(20.0, 80.0), Guess(mean=float(values.mean()), deviation=float(values.std())))
    family = question.family(mechanism, POPULATION, seen)
    predicted = predict(family, POPULATION, weights, question.moments, question.width).standard_error
    estimates, errors = simulate(family, values, seen, weights, mean)
    ratio = float(np.mean((estimates - values.mean()) ** 2)) / predicted**2
    assert abs(ratio - 1.0) < SIGMAS * (2.0 / REPEATS) ** 0.5, ratio
    # the analyzer takes the spread of the values at its largest where reports hide it: up to 20 % more, never less
    assert 0.97 < np.sqrt(np.mean(errors**2)) / predicted < 1.25


def test_one_user_at_a_time_by_enumeration():
    """Every report vector of three users, exactly: the variance of (E) at fixed records, averaged over dealings."""
    budgets, records = Budgets((0.4, 2.0), (2, 1)), (0, 1, 1)
    family = RandomizedResponse(2)
    channels = {e: family.channel(e) for e in (0.4, 2.0)}
    known = reading(family, budgets.epsilons, budgets.deltas)
    slope = dict(zip(budgets.epsilons.tolist(), known.law.slope.tolist(), strict=True))
    wrong = dict(zip(budgets.epsilons.tolist(), known.law.offset.tolist(), strict=True))
    square = 0.0
    for special in range(3):
        own = [2.0 if i == special else 0.4 for i in range(3)]
        total = sum(slope[e] for e in own)
        for bits in range(8):
            reports = [bits >> i & 1 for i in range(3)]
            chance = np.prod([channels[e][x, y] for e, x, y in zip(own, records, reports, strict=True)])
            estimate = (sum(reports) - sum(wrong[e] for e in own)) / total
            square += chance / 3.0 * (estimate - 2.0 / 3.0) ** 2
    predicted = predict(family, budgets, None, Moments(2 / 3, 2 / 3, binary=True))
    assert predicted.standard_error**2 == pytest.approx(square, rel=1e-9)


@pytest.mark.parametrize(("seen", "weights"), WAYS)
def test_the_worst_records_are_the_worst(seen, weights):
    """No mean and spread on a grid has a larger error than the one that is taken."""
    for family, binary in ((RandomizedResponse(7), True), (OneBit(0.0, 1.0), False)):
        worst = predict(family, POPULATION, weights, Moments(binary=binary))
        grid = [
            predict(family, POPULATION, weights, Moments(m, m if binary else m * m + share * m * (1 - m), binary))
            for m in np.linspace(0.0, 1.0, 41)
            for share in (0.0, 0.5, 1.0)
        ]
        assert max(g.standard_error for g in grid) <= worst.standard_error * (1 + 1e-12)
        assert max(g.standard_error for g in grid) >= worst.standard_error * 0.995
        again = predict(family, POPULATION, weights, Moments(worst.mean, worst.square, binary))
        assert again.standard_error == pytest.approx(worst.standard_error, rel=1e-12)


def test_users_without_information_count_as_the_analyzers_count_them():
    family, some = RandomizedResponse(3), Budgets((0.0, 1.0), (50, 100))
    known = reading(family, some.epsilons, some.deltas)
    assert weight_of_reports(known, None).tolist() == [1.0, 1.0]
    assert weight_of_reports(known, "population")[0] == weight_of_reports(known, "precision")[0] == 0.0
    with pytest.raises(InvalidInput, match="every epsilon0 is 0"):
        predict(family, Budgets((0.0,), (5,)), None, Moments(binary=True))


@pytest.mark.costly("<lambda>1")
@pytest.mark.parametrize(
    "bad",
    [
        lambda: Frequency(range(1)),
        lambda: PlannedQuestion(Frequency(range(10**6 + 1))),
        lambda: PlannedQuestion(Variance(0, 1)),
        lambda: Guess(share=float("nan")),
        lambda: PlannedQuestion(Frequency(range(3)), Guess(mean=0.5)),
        lambda: PlannedQuestion(Mean(0, 1), Guess(share=0.5)),
        lambda: Mean(1.0, 1.0),
        lambda: Mean(0.0, float("nan")),
        lambda: PlannedQuestion(Mean(0.0, 1.0), Guess(mean=2.0)),
        lambda: PlannedQuestion(Mean(0.0, 1.0), Guess(mean=0.5, deviation=0.6)),
        lambda: Guess(deviation=0.1),
        lambda: PlannedQuestion(Frequency(range(3))).family("laplace", POPULATION, "reports"),
    ],
)
def test_bad_questions_are_refused(bad):
    with pytest.raises(InvalidInput):
        bad()
