"""The mean among those who answered: certified as krr:3, and covered whoever is missing."""

from __future__ import annotations

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.errors import InvalidInput
from shuffledp.questions.mean import AnsweredEstimate, MeanOfAnswered
from shuffledp.questions.question import Task
from shuffledp.questions.tally import tally_for
from shuffledp.records.columns import NO_ANSWER

RUNS = 120
LEAST = 0.95 - 4.5 * np.sqrt(0.95 * 0.05 / RUNS)
"""Least coverage in so many runs: below it by chance once in 3e5 times, if an interval covers with .95."""
ASK = {"value": "x", "delta": 1e-6, "missing_as": "no-answer"}
KINDS = {
    "spread": lambda rng, n: rng.uniform(2.0, 10.0, n),
    "ends": lambda rng, n: np.where(rng.random(n) < 0.3, 10.0, 2.0),
    "low": lambda rng, n: np.full(n, 2.0),
}


def answers(n, gone, kind, seed=0):
    """Numbers of the range [2, 10], of which a share is missing."""
    values = KINDS[kind](np.random.default_rng(seed), n)
    values[: round(gone * n)] = np.nan
    return values


def runs(values, budgets):
    """Independent estimates from the same records, budgets dealt anew each time."""
    question, random, dealer = MeanOfAnswered(2.0, 10.0), sdp.simulation_random(1), np.random.default_rng(2)
    known = sdp.Budgets.of(budgets)
    family = question.randomizer("krr", known, "reports")
    task, fractions = Task(family, known, "reports"), (values - 2.0) / 8.0
    for _ in range(RUNS):
        tally = tally_for(task)
        tally.add(question.draw(family, fractions, dealer.permutation(budgets), 0.0, random))
        yield question.answer(tally.estimate(), task)


@pytest.mark.costly
@pytest.mark.parametrize("n", [200, 1000, 5000])
@pytest.mark.parametrize("gone", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("kind", KINDS)
def test_mean_and_share_are_covered(n, gone, kind):
    values = answers(n, gone, kind)
    for budgets in (np.full(n, 1.0), np.repeat([0.5, 4.0], [n // 2, n - n // 2])):
        mean = share = 0
        for found in runs(values, budgets):
            low, high = found.confidence_interval()
            mean += low <= np.nanmean(values) <= high
            least, most = found.answered.confidence_interval()
            share += least[0] - 1e-12 <= np.mean(~np.isnan(values)) <= most[0] + 1e-12
        assert min(mean, share) >= LEAST * RUNS


def test_without_noise_it_is_the_mean_of_those_who_answered():
    """Rounding to an end is noise of its own: four standard errors of it, seeded."""
    values = answers(4000, 0.25, "spread")
    found = sdp.release(
        sdp.Mean(2, 10), {"x": values}, budgets=300.0, random=sdp.simulation_random(1), **{**ASK, "delta": 1e-4}
    )
    assert found.estimate == pytest.approx(np.nanmean(values), abs=4 * 4.0 / np.sqrt(3000))
    assert found.standard_error == pytest.approx(8 * 0.5 / np.sqrt(3000), rel=0.05)
    assert found.analysis.answered.value == pytest.approx([0.75])


def test_the_guarantee_is_that_of_three_categories():
    values = answers(500, 0.2, "spread")
    found = sdp.release(sdp.Mean(2, 10), {"x": values}, budgets=2.0, **ASK)
    frequency = {"x": np.where(np.isnan(values), "none", "some")}
    plain = sdp.release(sdp.Frequency(["none", "some", "other"]), frequency, value="x", budgets=2.0, delta=1e-6)
    assert found.mechanism == "krr:3"
    assert found.guarantee.epsilon == plain.guarantee.epsilon
    assert isinstance(found.analysis, AnsweredEstimate)


def test_where_nobody_can_be_told_to_have_answered_the_interval_is_the_range():
    values = answers(200, 0.99, "spread")
    found = sdp.release(sdp.Mean(2, 10), {"x": values}, budgets=0.3, random=sdp.simulation_random(1), **ASK)
    assert found.confidence_interval() == (2.0, 10.0)
    assert found.standard_error <= 8.0


def test_the_range_and_its_clip():
    table = {"x": [2.0, None, 12.0, 9.0]}
    with pytest.raises(InvalidInput, match=r"the value in row 3 is outside \[2.0, 10.0\]; say `clip`"):
        sdp.release(sdp.Mean(2, 10), table, budgets=300.0, **{**ASK, "delta": 0.01})
    found = sdp.release(sdp.Mean(2, 10), table, budgets=300.0, clip=True, **{**ASK, "delta": 0.01})
    assert found.clipped
    assert found.analysis.answered.value == pytest.approx([0.75])


def test_what_is_refused():
    values = {"x": answers(300, 0.1, "spread")}
    ask = {**ASK, "budgets": 1.0}
    release = sdp.release(sdp.Mean(2, 10), values, **ask)
    with pytest.raises(
        InvalidInput, match="only means have sums, and of all records; the question was a mean among those"
    ):
        release.sum()
    with pytest.raises(InvalidInput, match="shares and means have a difference here; got Mean among those who"):
        sdp.difference(release, sdp.release(sdp.Mean(2, 10), values, **ask), delta=1e-6)
    with pytest.raises(InvalidInput, match=r"is asked with krr, .*: `mechanism` laplace has no report for no answer"):
        sdp.release(sdp.Mean(2, 10), values, mechanism="laplace", **ask)
    with pytest.raises(InvalidInput, match=r"`missing_as` must be a number of the range \[2.0, 10.0\]; got no-answer"):
        sdp.release(sdp.Variance(2, 10), values, **ask)
    with pytest.raises(InvalidInput, match=r"`missing_as` must be a number of the range \[2.0, 10.0\] or no-answer"):
        sdp.release(sdp.Mean(2, 10), values, **{**ask, "missing_as": "none"})
    with pytest.raises(InvalidInput, match=r"row 1 is missing; say with `missing_as` .* or no-answer for the mean"):
        sdp.release(sdp.Mean(2, 10), values, **{**ask, "missing_as": None})
    assert sdp.MeanEstimator(2, 10, missing_as=NO_ANSWER, delta=1e-6).fit(values["x"], budgets=2.0).release_.n == 300
