"""Two-way tables: cells and margins that are covered, and a test that seldom takes noise alone for dependence."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import shuffledp as sdp
from shuffledp.errors import InvalidInput
from shuffledp.questions.crosstab import Responses, _binomial, cell_name
from shuffledp.questions.estimate import CountLaw

ROWS, COLUMNS = ("north", "south", "east"), ("yes", "no")
ASK = {"value": ("side", "vote"), "delta": 1e-6}


def people(n, shares, seed=1):
    """A table whose cells have these shares, exactly as far as whole people allow, in random order."""
    counts = np.floor(np.array(shares) * n).astype(int)
    counts[0] += n - counts.sum()
    cells = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    return {"side": np.array(ROWS)[cells // 2].tolist(), "vote": np.array(COLUMNS)[cells % 2].tolist()}, counts / n


def asked(table, seed, **options):
    question = sdp.Crosstab(ROWS, COLUMNS)
    return sdp.release(question, table, random=sdp.simulation_random(seed), **{**ASK, "budgets": 2.0, **options})


def test_without_noise_it_is_the_table():
    table, truth = people(600, [0.3, 0.1, 0.2, 0.15, 0.05, 0.2])
    found = asked(table, 1, budgets=300.0)
    assert found.table == pytest.approx(truth.reshape(3, 2))
    assert found.row_shares.value == pytest.approx(truth.reshape(3, 2).sum(axis=1))
    assert found.column_shares.value == pytest.approx(truth.reshape(3, 2).sum(axis=0))
    assert found.independence.p_value == 0.001
    assert found.categories[1] == ("north", "no")
    frame = found.to_frame(amounts=True)
    assert frame.columns[:2] == ["row", "column"]
    assert frame["row"].to_list()[-5:] == [*ROWS, None, None]
    assert frame.filter(pl.col("row").is_null())["count"].sum() == pytest.approx(600)


def test_the_guarantee_is_that_of_a_frequency_over_the_cells():
    table, _ = people(600, [0.3, 0.1, 0.2, 0.15, 0.05, 0.2])
    joined = {"cell": [f"{row}{column}" for row, column in zip(*table.values(), strict=True)]}
    names = [f"{row}{column}" for row in ROWS for column in COLUMNS]
    plain = sdp.release(sdp.Frequency(names), joined, value="cell", budgets=2.0, delta=1e-6)
    found = asked(table, 1)
    assert found.guarantee.epsilon == plain.guarantee.epsilon
    assert found.fingerprint == plain.fingerprint


@pytest.mark.costly
@pytest.mark.parametrize("budgets", [1.5, "budget"])
def test_cells_and_margins_are_covered(budgets):
    """120 runs of 11 intervals: coverage below .95 by 4.5 sigma of the binomial, a false alarm in 3e5 at each."""
    table, truth = people(400, [0.3, 0.1, 0.2, 0.15, 0.05, 0.2])
    cells = truth.reshape(3, 2)
    target = np.concatenate([truth, cells.sum(axis=1), cells.sum(axis=0)])
    table["budget"] = np.random.default_rng(3).permutation(np.repeat([0.5, 1.0, 3.0], [100, 100, 200])).tolist()
    hits = np.zeros(11)
    for seed in range(120):
        numbers = asked(table, seed, budgets=budgets).analysis.numbers(0.95, simultaneous=False)
        hits += (numbers.low <= target + 1e-12) & (target <= numbers.high + 1e-12)
    assert (hits / 120 >= 0.95 - 4.5 * np.sqrt(0.95 * 0.05 / 120)).all()


@pytest.mark.costly
def test_noise_alone_does_not_look_like_dependence():
    """Independent columns, 120 runs: p <= .05 in at most 17 (a false alarm in 1e4); dependent ones are seen."""
    apart = np.outer([0.5, 0.3, 0.2], [0.6, 0.4]).ravel()
    alone = [asked(people(300, apart, seed)[0], seed, budgets=1.5).independence.p_value for seed in range(120)]
    assert np.mean(np.array(alone) <= 0.05) <= 17 / 120
    assert np.mean(alone) == pytest.approx(0.5, abs=0.12)
    together = people(600, [0.45, 0.05, 0.05, 0.25, 0.1, 0.1])[0]
    assert all(asked(together, seed, budgets=3.0).independence.p_value <= 0.005 for seed in range(5))


def test_the_test_is_the_same_each_time_it_is_shown():
    table, _ = people(300, [0.3, 0.1, 0.2, 0.15, 0.05, 0.2])
    assert asked(table, 4).independence == asked(table, 4).independence


def test_all_intervals_hold_together_where_asked():
    table, _ = people(300, [0.3, 0.1, 0.2, 0.15, 0.05, 0.2])
    found = asked(table, 4).analysis
    one, all_ = (found.numbers(0.95, simultaneous=each) for each in (False, True))
    assert (all_.low < one.low).all()
    alone = found.numbers(1 - 0.05 / 11, simultaneous=False)
    assert np.array_equal(all_.low, alone.low)


def test_records_that_are_missing_or_unlisted():
    table = {"side": ["north", "south", "", "west"], "vote": ["yes", "no", "no", ""]}
    question = sdp.Crosstab(("north", "south"), ("yes", "no"))
    ask = {"value": ("side", "vote"), "budgets": 300.0, "delta": 0.01}
    for options in (
        {"missing_as": "north,no", "other": "south"},
        {"missing_as": ("north", "no"), "other": ("south", None)},
    ):
        found = sdp.release(question, table, **ask, **options)
        assert found.table * 4 == pytest.approx(np.array([[1.0, 1.0], [0.0, 2.0]]))
    with pytest.raises(InvalidInput, match=r"row 3 is missing; name the category that such a record counts as"):
        sdp.release(question, table, **ask, missing_as="no", other="south")
    for bad in ("north,west", "west", ("north", "yes", "no"), 7):
        with pytest.raises(InvalidInput, match="`other` must be a category of the table, or one of each column"):
            sdp.release(question, table, **ask, other=bad)


def test_what_is_refused():
    table, _ = people(300, [0.3, 0.1, 0.2, 0.15, 0.05, 0.2])
    with pytest.raises(InvalidInput, match="at most 64 cells; 2 rows and 33 columns make 66"):
        sdp.Crosstab(("a", "b"), range(33))
    with pytest.raises(InvalidInput, match="at least two categories"):
        sdp.Crosstab(("a",), ("b", "c"))
    with pytest.raises(InvalidInput, match="must name 2 columns for a crosstab; got 1"):
        asked(table, 1, value="side")
    with pytest.raises(InvalidInput, match="`seen` can only be reports"):
        asked(table, 1, seen="levels")
    with pytest.raises(InvalidInput, match="difference"):
        sdp.difference(asked(table, 1), asked(table, 2), delta=1e-6)


def test_names_of_cells():
    assert [cell_name(*entry) for entry in sdp.Crosstab(("a", "b"), (1, 2)).entries] == [
        "a / 1", "a / 2", "b / 1", "b / 2", "a / all", "b / all", "all / 1", "all / 2",
    ]  # fmt: skip


@pytest.mark.costly("1000000-0.2", "1000000-3e-06")
@pytest.mark.parametrize(
    ("n", "chance"), [(0, 0.3), (1, 0.3), (40, 0.01), (10**6, 0.2), (10**6, 3e-6), (30_000, 0.999)]
)
def test_drawn_numbers_are_binomial(n, chance):
    """Mean and variance of 20,000 draws within five standard errors: a false alarm in 1e6 each."""
    found = _binomial(np.full(20_000, n), chance, sdp.simulation_random(3))
    mean, variance = n * chance, n * chance * (1.0 - chance)
    assert abs(found.mean() - mean) <= 5 * np.sqrt(variance / 20_000) + 1e-12
    fourth = variance * (1.0 + (3.0 * n - 6.0) * chance * (1.0 - chance)) if n else 0.0
    assert abs(found.var() - variance) <= 5 * np.sqrt(max(fourth - variance**2, 0.0) / 20_000) + 1e-12
    assert 0 <= found.min() <= found.max() <= n
    assert _binomial(np.array([7]), 0.0, sdp.simulation_random(1)) == [0]
    assert _binomial(np.array([7]), 1.0, sdp.simulation_random(1)) == [7]


@pytest.mark.costly
def test_tables_drawn_at_once_have_the_law_of_those_drawn_one_by_one():
    """Mean and variance of each cell over 999 tables: within 5 standard errors of the exact ones, two levels."""
    people = ((300, 0.9), (500, 0.2))
    expected = np.array([0.5, 0.25, 0.2, 0.05])
    chances = [(n, s * expected + (1 - s) / 4) for n, s in people]
    mean = sum(n * chance for n, chance in chances)
    variance = sum(n * chance * (1 - chance) for n, chance in chances)
    reports = Responses((2, 2), people, CountLaw((800,), (0.5,), (0.1,)))
    for draw in (reports._one_by_one, reports._together):
        drawn = np.array(list(draw(expected, sdp.simulation_random(2))))
        assert (drawn.sum(axis=1) == 800).all()
        assert (np.abs(drawn.mean(axis=0) - mean) <= 5 * np.sqrt(variance / 999)).all()
        assert (np.abs(drawn.var(axis=0) / variance - 1) <= 5 * np.sqrt(2 / 999)).all()


def test_a_missing_record_may_count_as_the_category_0():
    """The category 0 was taken for none, and a missing record was refused although its category was stated."""
    table = {"a": [0, 1, None, 1] * 100, "b": [5, 6, 6, 5] * 100}
    options = {"value": ("a", "b"), "budgets": 700.0, "delta": 1e-4, "seen": "reports", "missing_as": (0, 5)}
    found = sdp.release(sdp.Crosstab([0, 1], [5, 6]), table, **options)
    assert found.estimate[:4] == pytest.approx([0.25, 0.25, 0.25, 0.25])
