"""What a task does with its partition, without Spark: it needs neither pyspark nor Java."""

from __future__ import annotations

import pickle

import numpy as np
import polars as pl
import pytest

import shuffledp as sdp
from shuffledp.errors import InvalidInput
from shuffledp.records.people import count_people
from shuffledp.records.sources import open_source
from shuffledp.releases.engine import Part
from shuffledp.releases.run import certified, row_budgets
from shuffledp.spark.testing import simulate_partitions
from shuffledp.spark.worker import (
    Counted,
    Job,
    TaskFailed,
    answer_merged,
    answer_partition,
    cut,
    refused_rows,
    tally_partition,
)

from .tables import TOLD, people

QUESTIONS = [
    (question, mechanism)
    for question in (
        sdp.Frequency(["yes", "no", "none"]),
        sdp.FrequentItems(["yes", "no", "none"]),
        sdp.FrequentItems(max_length=4, alphabet="lower"),
        sdp.Mean(0, 80),
        sdp.Histogram(0, 80, 8),
        sdp.Quantiles(0, 80, bins=16),
        sdp.Variance(0, 80),
        sdp.VectorMean(2, 100.0),
        sdp.VectorMean(2, 100.0, kind="linf"),
        sdp.VectorMean(2, 100.0, kind="l1"),
    )
    for mechanism in question.mechanisms
]


def job_of(question, table, mechanism=None, seen="reports", delta0=0.0):
    who = row_budgets(sdp.People(table, sdp.RowBudgets("budget", delta0=delta0)))
    counted = count_people(open_source(table), who, None, "refuse", sdp.secure_random())
    mechanism = mechanism or question.mechanisms[0]
    _, task = certified(question, counted, mechanism, seen, 1e-6, "population", any_delta=False)
    columns = {1: ("vote",) if question.reads == "texts" else ("hours",), 2: ("hours", "more")}[question.column_count]
    recode = question.settled(sdp.Ask(question, "x").recode)
    return Job((Part(question, columns, recode, task, counted),))


@pytest.mark.costly(
    but=(
        "levels-frequency-rr",
        "levels-histogram-rr",
        "levels-mean-one-bit",
        "levels-variance-two-moments",
        "levels-vector-mean-least-error1",
        "levels-vector-mean-least-error2",
        "reports-frequency-oue",
        "reports-frequency-rr",
        "reports-frequency-sue",
        "reports-histogram-oue",
        "reports-histogram-rr",
        "reports-histogram-sue",
        "reports-variance-two-moments",
        "reports-vector-mean-least-error1",
        "reports-vector-mean-least-error2",
    )
)
@pytest.mark.parametrize(("question", "mechanism"), QUESTIONS, ids=lambda x: x if isinstance(x, str) else x.name)
@pytest.mark.parametrize("seen", ["reports", "levels"])
def test_what_travels_to_a_task_arrives(question, mechanism, seen):
    """Every randomizer is unpacked as it was packed, and answers in one task are the merged ones of two."""
    table = people(600)
    try:
        job = job_of(question, table, mechanism, seen, 1e-3 if "gauss" in mechanism else 0.0)
    except InvalidInput as refusal:
        pytest.skip(str(refusal))
    payload = pickle.dumps(job)
    table = table.select(job.columns)
    halves = [
        answer_partition(iter([part]), payload, place, 5) for place, part in enumerate((table[:250], table[250:]))
    ]
    _, n, bad, state = answer_merged([("1", *half) for half in halves], payload, "1")
    assert answer_merged([("1", *halves[0]), ("2", 0, 0, b"")], payload, "1") == ("2", 0, 0, b"")
    assert (n, bad) == (600, 0)
    found = Counted.nothing(job)
    found.add(job, n, bad, state)
    np.testing.assert_array_equal(found.levels, job.expected())
    assert len(state) == len(found.state())
    found.tallies[0].estimate()


def test_pieces_of_any_size_are_cut_into_equal_ones():
    table = pl.DataFrame({"x": np.arange(1000)})
    pieces = [table[:1], table[1:1], table[1:400], table[400:999], table[999:]]
    for rows in (1, 7, 400, 1000, 5000):
        found = list(cut(pieces, rows))
        assert pl.concat(found).equals(table)
        assert [piece.height for piece in found[:-1]] == [rows] * (len(found) - 1)
        assert 0 < found[-1].height <= rows
    assert list(cut([table[:0]], 5)) == []


@pytest.mark.parametrize("bad", [[], [0], [99], [3, 4, 50], list(range(100))])
def test_bad_rows_are_found_by_halving(bad):
    table = pl.DataFrame({"bad": np.isin(np.arange(100), bad)})

    def read(rows):
        if rows["bad"].any():
            raise InvalidInput("x")

    places, left = refused_rows(table, read)
    assert sorted(places) == bad
    assert left > 0
    places, left = refused_rows(table, read, 3)
    assert left == (2 if not bad else 0)
    assert set(places) <= set(bad)


@pytest.mark.costly
def test_a_task_counts_bad_rows_and_keeps_the_others():
    table = people(3000)
    job = job_of(sdp.Frequency(["yes", "no"]), table)
    bad, good = table.filter(pl.col("vote") == "none"), table.filter(pl.col("vote") != "none")
    found = tally_partition([bad[:9], good, bad[9:14]], job, sdp.secure_random())
    assert found.bad == 14
    many = tally_partition([table], job, sdp.secure_random())  # it stops before it has counted all
    assert 50 < many.bad < bad.height


def test_rows_with_another_budget_are_missing_from_the_count():
    table = people(500)
    job = job_of(sdp.Mean(0, 80), table)
    changed = table.with_columns(pl.when(pl.col("who") == "7").then(3.0).otherwise("budget").alias("budget"))
    assert tally_partition([changed], job, sdp.secure_random()).n < 500
    swapped = table.with_columns(pl.lit(1.0).alias("budget"))
    found = tally_partition([swapped], job, sdp.secure_random())
    assert found.n == 500
    assert not np.array_equal(found.levels, job.expected())
    assert tally_partition([table, table], job, sdp.secure_random()).n <= 500


@pytest.mark.costly
def test_many_levels_are_compared_by_one_sum():
    table = people(9000).with_columns(pl.Series("budget", np.linspace(0.5, 1.0, 9000)))
    job = job_of(sdp.Mean(0, 80), table)
    found = tally_partition([table[::-1]], job, sdp.secure_random())
    assert found.levels.shape == (1,)
    np.testing.assert_array_equal(found.levels, job.expected())
    moved = table.with_columns(pl.Series("budget", np.r_[0.5, np.linspace(0.5, 1.0, 9000)[:-1]]))
    assert not np.array_equal(tally_partition([moved], job, sdp.secure_random()).levels, job.expected())


def test_two_attempts_draw_differently_and_simulated_ones_alike():
    table = people(2000)
    job = job_of(sdp.Frequency(["yes", "no", "none"]), table)
    payload, table = pickle.dumps(job), table.select(job.columns)

    def state(place, root):
        return answer_partition(iter([table]), payload, place, root)[2]

    assert len({state(0, None) for _ in range(5)}) > 1  # all alike: probability below 1e-10
    assert state(0, 9) == state(0, 9)
    assert state(0, 9) != state(1, 9)
    assert state(0, 9) != state(0, 8)


def test_a_task_that_fails_names_no_cell():
    """Even where the text of an unexpected error holds one."""
    payload = pickle.dumps(job_of(sdp.Mean(0, 80), people(100)))

    def broken():
        raise KeyError("a secret cell")
        yield

    with pytest.raises(TaskFailed, match=r"^a task of shuffledp failed with KeyError$") as caught:
        answer_partition(broken(), payload, 0, None)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


def test_sources_of_randomness_do_not_travel():
    for source in (sdp.secure_random(), sdp.simulation_random(1)):
        with pytest.raises(InvalidInput, match="cannot be copied or pickled"):
            pickle.dumps({"random": source})


def test_a_simulation_says_what_it_is():
    tables = [people(300), people(300)[:0], people(300, seed=2)]
    question = sdp.Mean(0, 80)
    found = simulate_partitions(question, tables, value="hours", **TOLD, seen="sum", random=sdp.simulation_random(1))
    assert (found.n, found.private) == (600, False)
    low, high = found.confidence_interval(1 - 1e-6)
    assert low < 40 < high
    with pytest.raises(InvalidInput, match="simulation_random"):
        simulate_partitions(question, tables, value="hours", **TOLD, seen="sum")
    with pytest.raises(InvalidInput, match=r"at least 4 rows hold in hours"):
        simulate_partitions(
            question,
            [tables[0], pl.concat([tables[0][:5], people(4).with_columns(pl.lit(81.0).alias("hours"))])],
            value="hours", **TOLD, seen="sum", random=sdp.simulation_random(1),
        )  # fmt: skip
