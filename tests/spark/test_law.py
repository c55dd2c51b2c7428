"""Releases from dataframes of Spark: budgets rounded down by the engine, and the law of secure releases."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

pytest.importorskip("pyspark", reason="needs the extra shuffledp[spark]")

from pyspark.sql import functions as F  # noqa: N812

import shuffledp as sdp
import shuffledp.spark as sps
from shuffledp.errors import InvalidInput
from shuffledp.records.people import RowBudgets
from shuffledp.spark import engine

from .tables import frame_of, in_partitions

pytestmark = pytest.mark.spark

VOTE = sdp.Frequency(["yes", "no", "none"])


def test_any_number_of_budgets_is_rounded_down_to_a_grid_by_the_engine(spark, monkeypatch):
    """To the bit as in one process: every octave, its ends, and a budget in the last place below each."""
    powers = 2.0 ** np.arange(-12, 10)
    budgets = np.concatenate([[0.0, 700.0], powers, np.nextafter(powers, 0.0), np.geomspace(1e-5, 3.0, 956)])
    table = pl.DataFrame({"vote": ["yes", "no"] * 501, "budget": np.append(budgets, np.zeros(1002 - budgets.size))})
    table = table.with_columns(who=pl.int_range(1002).cast(pl.String))
    frame, parts = in_partitions(spark, table, 2)
    who = RowBudgets("budget", levels=64)
    told = {"value": "vote", "seen": "levels", "delta": 1e-6}
    question = sdp.Frequency(["yes", "no"])
    with monkeypatch.context() as patched:
        patched.setattr(engine, "MOST_BUDGETS", 64)
        found = sps.release(question, frame, budgets=who, **told, random=sdp.simulation_random(2))
        with pytest.raises(InvalidInput, match=r"more than 64 different budgets; .* budgets = RowBudgets\('budget', l"):
            sps.release(question, frame, budgets="budget", **told)
    alone = sps.simulate_partitions(question, parts, budgets=who, **told, random=sdp.simulation_random(2))
    np.testing.assert_array_equal(found.estimate, alone.estimate)
    assert found.fingerprint == alone.fingerprint
    assert found.guarantee.epsilon == alone.guarantee.epsilon
    text = frame.withColumn("budget", F.col("budget").cast("string"))
    with pytest.raises(InvalidInput, match="the column budget holds string: cast it to double first"):
        sps.release(question, text, budgets=who, **told)


@pytest.mark.slow
def test_two_hundred_secure_releases_follow_the_law(spark):
    """Counts of krr:3 reports at ln 4 over 200 releases of 60 people; false alarm 1e-6 (chi-square, 2 degrees).

    And no two releases agree in all counts more often than independent ones would: the words of tasks differ.
    """
    from scipy import stats

    table = pl.DataFrame({"vote": ["yes"] * 30 + ["no"] * 20 + ["none"] * 10})
    frame = frame_of(spark, table).repartition(2)
    told = {"value": "vote", "budgets": float(np.log(4.0)), "seen": "reports", "delta": 1e-4, "mechanism": "krr"}
    found = np.array([sps.release(VOTE, frame, **told).estimate for _ in range(200)])
    # shares are (reports / n - q) / (p - q) with p = 4/6 and q = 1/6
    reports = np.rint((found * 0.5 + 1.0 / 6.0) * 60.0)
    assert (reports.sum(axis=1) == 60).all()
    truth = np.array([30, 20, 10]) * 0.5 + 10.0
    # reports of fixed records vary less than a multinomial: their covariance is the sum of each record's own
    law = np.full((3, 3), 1.0 / 6.0) + np.eye(3) * 0.5
    covariance = sum(n * (np.diag(law[code]) - np.outer(law[code], law[code])) for code, n in enumerate((30, 20, 10)))
    off = (reports.mean(axis=0) - truth)[:2]
    distance = 200.0 * off @ np.linalg.solve(covariance[:2, :2], off)
    assert stats.chi2.sf(distance, 2) > 1e-6
    spread = 199.0 * np.var(reports[:, 0], ddof=1) / covariance[0, 0]
    assert min(stats.chi2.sf(spread, 199), stats.chi2.cdf(spread, 199)) > 5e-7
    _, same = np.unique(reports, axis=0, return_counts=True)
    assert same.max() < 30
