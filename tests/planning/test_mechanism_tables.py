"""The tables behind docs/which-mechanism.md: up to date, measured as predicted, and saying what the page says."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from tools import make_mechanism_figures as figures

TABLES = Path(__file__).resolve().parents[2] / "docs" / "tables"
QUESTIONS = ("mean", *map(str, figures.SIZES))


def read(name: str) -> list[dict[str, str]]:
    with (TABLES / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.costly
def test_predictions_are_up_to_date():
    for row in read("mechanisms"):
        now = figures.predicted(row["question"], row["mechanism"], float(row["epsilon0"]))
        assert now == pytest.approx(float(row["predicted"]), rel=1e-4), row


def test_measured_as_predicted():
    """140 dots; the worst of them has 4 repetitions of 1,000 categories, or 400 of two."""
    ratios = [float(row["measured"]) / float(row["predicted"]) for row in read("mechanisms") if row["measured"]]
    assert len(ratios) == 140
    assert max(abs(ratio - 1.0) for ratio in ratios) < 0.065


def test_one_measured_dot_is_as_written():
    (row,) = [r for r in read("mechanisms") if (r["question"], r["mechanism"], r["epsilon0"]) == ("10", "krr", "1")]
    assert figures.measured("10", "krr", 1.0) == pytest.approx(float(row["measured"]), rel=1e-4)


def test_central_epsilons_are_up_to_date():
    rows = [r for r in read("mechanisms_central") if r["question"] in ("mean", "10")]
    wish = figures.Wish(1.0, figures.CENTRAL_DELTA)
    for row in rows[::9]:
        budgets = figures.Budgets([float(row["epsilon0"])], [figures.CENTRAL_N])
        family = figures.question_of(row["question"]).family(row["mechanism"], budgets, "reports")
        # the table has the budget to six digits
        assert wish.certified(budgets, family, "reports") == pytest.approx(float(row["central_epsilon"]), rel=1e-4)


def at_central(question: str, mechanism: str, epsilon: float) -> float:
    """Error at a central epsilon, between the table's points on a double logarithmic scale."""
    rows = [r for r in read("mechanisms_central") if (r["question"], r["mechanism"]) == (question, mechanism)]
    points = sorted((math.log(float(r["central_epsilon"])), math.log(float(r["standard_error"]))) for r in rows)
    return math.exp(float(np.interp(math.log(epsilon), *zip(*points, strict=True))))


def test_what_the_page_says_of_equal_central_epsilon():
    for question in QUESTIONS[1:]:
        for epsilon in (0.005, 0.02, 0.1):
            others = [at_central(question, m, epsilon) for m in figures.mechanisms_of(question) if m != "krr"]
            assert at_central(question, "krr", epsilon) <= min(others) * 1.005
    page = {"krr": 0.00056, "subset": 0.00071, "oue": 0.00073, "olh": 0.00092, "sue": 0.0014, "hadamard": 0.0033}
    for mechanism, error in page.items():
        assert at_central("1000", mechanism, 0.1) == pytest.approx(error, rel=0.04)


def test_what_the_page_says_of_equal_local_budget():
    error = {(r["question"], r["mechanism"], r["epsilon0"]): float(r["predicted"]) for r in read("mechanisms")}
    budgets = {e for _, _, e in error}
    for question in QUESTIONS[1:]:
        for e in budgets:
            best = min(error[question, m, e] for m in figures.mechanisms_of(question))
            assert error[question, "subset", e] <= best * 1.0001
    for e in budgets:
        assert error["mean", "laplace", e] > 1.3 * error["mean", "hybrid", e]
    assert 5.0 < error["mean", "one-bit", "6"] / error["mean", "piecewise", "6"] < 6.0


@pytest.mark.costly("1/k-10-2.0-subset")
@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("share", "k", "epsilon0", "mechanism"),
    [("worst", 100, 1.0, "krr"), ("worst", 1000, 4.0, "sue"), ("1/k", 10, 2.0, "subset"), ("1/k", 1000, 8.0, "krr")],
)
def test_what_the_planner_finds_is_up_to_date(share, k, epsilon0, mechanism):
    (row,) = [
        r
        for r in read("mechanisms_planned")
        if (r["share"], r["k"], float(r["epsilon0"]), r["mechanism"]) == (share, str(k), epsilon0, mechanism)
    ]
    local, central, error = figures.planned(share, k, epsilon0, mechanism)
    assert local == pytest.approx(float(row["local_budget"]), rel=1e-3)
    assert central == pytest.approx(float(row["central_epsilon"]), rel=1e-3)
    assert error == pytest.approx(float(row["standard_error"]), rel=1e-3)


def test_the_page_recommends_what_the_planner_finds():
    """Version 0.1.0 recommended k-ary response for many categories, where others err 2 to 16 times less."""
    rows = read("mechanisms_planned")
    page = figures.PAGE.read_text(encoding="utf-8")
    for line in figures.planned_table(rows):
        assert line in page.splitlines()
    error = {(r["share"], int(r["k"]), float(r["epsilon0"]), r["mechanism"]): float(r["standard_error"]) for r in rows}
    for k in figures.SIZES[1:]:
        for e in figures.PLANNED_AT:
            names = figures.mechanisms_of(str(k))
            worst, equal = ({m: error[share, k, e, m] for m in names} for share in figures.SHARES)
            if e <= 0.6 * math.log(k):  # people allow less than about ln k
                assert min(equal["subset"], equal["oue"]) <= 1.01 * min(equal.values())
                assert min(worst["subset"], worst["sue"]) <= 1.0001 * min(worst.values())
                assert equal["krr"] > 1.15 * equal["subset"]
            if e >= math.log(k):  # the central epsilon is what binds
                assert equal["krr"] <= 1.0001 * min(equal.values())
                assert worst["sue"] <= 1.0001 * min(worst.values())
    ratio = error["worst", 1000, 0.5, "krr"] / error["worst", 1000, 0.5, "sue"]
    assert 15.0 < ratio < 16.0
    said = [error["1/k", 1000, 1.0, m] for m in ("subset", "oue", "krr")]
    assert said == pytest.approx([0.00607, 0.00607, 0.0583], rel=0.003)
