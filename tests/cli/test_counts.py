"""Counts beside shares and sums beside means: n times as much, everywhere."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import shuffledp as sdp

REST = ("--epsilon0", 1, "--delta", 1e-6)
MEAN = ("mean", "p.csv", "--value", "hours", "--low", 0, "--high", 40, *REST)
FREQUENCY = ("frequency", "p.csv", "--value", "vote", "--categories", "yes,no", *REST)
HISTOGRAM = ("histogram", "p.csv", "--value", "hours", "--low", 0, "--high", 40, "--bins", 4, *REST)
VECTOR = ("vector-mean", "p.csv", "--values", "hours", "--norm", 40, *REST)


@pytest.fixture(autouse=True)
def people(tmp_path):
    columns = {"hours": [20.0, 30.0] * 400, "vote": ["yes", "no"] * 400, "side": ["north"] * 300 + ["south"] * 500}
    pl.DataFrame(columns).write_csv(tmp_path / "p.csv")


@pytest.mark.costly("command1-low")
@pytest.mark.parametrize(("command", "key"), [(FREQUENCY, "category"), (HISTOGRAM, "low")])
def test_counts_are_n_times_the_shares(run, command, key):
    found = run(*command, "--json", "--csv", "t.csv").json
    assert found["counts"]["of"] == 800
    for share, counted in zip(found["estimates"], found["counts"]["estimates"], strict=True):
        assert share[key] == counted[key]
        assert counted["count"] == 800 * share["frequency"]
        assert counted["standard_error"] == 800 * share["standard_error"]
        assert counted["confidence_interval"] == [800 * end for end in share["confidence_interval"]]
    table = pl.read_csv("t.csv")
    assert table["count"].to_list() == pytest.approx([entry["count"] for entry in found["counts"]["estimates"]])
    assert {"count_standard_error", "count_interval_low", "count_interval_high"} <= set(table.columns)


def test_the_sum_is_n_times_the_mean(run):
    found = run(*MEAN, "--json", "--csv", "t.csv").json
    assert found["sum"]["estimate"] == 800 * found["estimate"]
    assert found["sum"]["confidence_interval"] == [800 * end for end in found["confidence_interval"]]
    assert pl.read_csv("t.csv")["sum"].to_list() == pytest.approx([found["sum"]["estimate"]])
    vector = run(*VECTOR, "--json").json
    assert vector["sum"]["estimates"][0]["estimate"] == 800 * vector["estimates"][0]["estimate"]


@pytest.mark.costly(but=("command3-Sums over 800",))
@pytest.mark.parametrize(("command", "title"), [(MEAN, "Sums over 800 records"), (FREQUENCY, "Counts over 800 records"),
                                                (HISTOGRAM, "Counts over 800"), (VECTOR, "Sums over 800")])  # fmt: skip
def test_a_person_sees_them_who_asks(run, tmp_path, command, title):
    assert "over 800 records" not in run(*command).out
    assert title in run(*command, "--counts", "--report", "r.html").out
    assert title in (tmp_path / "r.html").read_text(encoding="utf-8")


@pytest.mark.costly
def test_groups_and_several_questions_have_them_too(run):
    out = run(*FREQUENCY, "--counts", "--by", "side", "--groups", "north,south").out
    below = out.split("Counts by side")[1]
    assert below.index("north") < below.index("300") < below.index("south") < below.index("500")
    asked = ("--ask", "frequency vote yes,no", "--ask", "variance hours 0 40")
    out = run("release", "p.csv", *asked, "--counts", *REST).out
    assert out.count("over 800 records") == 1  # a variance has neither


@pytest.mark.parametrize("command", ["quantiles", "variance"])
def test_questions_without_refuse_the_option(run, command):
    assert "--counts" in run(command, *MEAN[1:], "--counts").error


def test_rows_of_people_are_what_is_counted():
    table = {"who": [*range(300), *range(300)], "vote": ["yes", "no"] * 300}
    ask = {"value": "vote", "budgets": 1.0, "seen": "reports", "delta": 1e-4, "person": "who", "rows_per_person": 2}
    found = sdp.release(sdp.Frequency(["yes", "no"]), table, **ask)
    assert (found.n, found.counts().records) == (300, 600)
    assert np.array_equal(found.counts().estimate, 600 * found.estimate)


def test_other_questions_have_neither():
    found = sdp.estimate_variance([1.0, 3.0] * 300, 0.0, 4.0, 2.0, seen="reports", delta=1e-6)
    with pytest.raises(sdp.InvalidInput, match="only shares have counts"):
        found.counts()
    with pytest.raises(sdp.InvalidInput, match="only means have sums"):
        found.sum()
