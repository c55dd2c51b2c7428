"""Questions are values: what they accept, and what a record becomes."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import shuffledp as sdp
from shuffledp.errors import InvalidInput
from shuffledp.records.columns import Recode, bounded_vectors, category_codes


def test_questions_are_values():
    assert sdp.Frequency(["a", "b"]) == sdp.Frequency(("a", "b"))
    assert sdp.Mean(0, 1) == sdp.Mean(0.0, 1.0)
    assert len({sdp.Mean(0, 1), sdp.Mean(0, 1), sdp.Variance(0, 1)}) == 2
    assert sdp.Quantiles(0, 1, at=0.5, bins=8).at == (0.5,)


@pytest.mark.costly("<lambda>-too narrow")
@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: sdp.Frequency(["a"]), "at least two categories"),
        (lambda: sdp.Frequency("ab"), "must be a list of labels, not the text 'ab'"),
        (lambda: sdp.Mean(1, 1), "low < high"),
        (lambda: sdp.Mean(0, float("nan")), "low < high"),
        (lambda: sdp.Histogram(0, 1, bins=1), "bins must be a whole number"),
        (lambda: sdp.Histogram(1e300, 1.0000000001e300, bins=2**24), "too narrow"),
        (lambda: sdp.Quantiles(0, 1, at=[1.0]), r"must be numbers in \(0, 1\)"),
        (lambda: sdp.VectorMean(0, 1.0), "dimension"),
        (lambda: sdp.VectorMean(2, -1.0), "norm"),
        (lambda: sdp.VectorMean(2, 1.0, "l3"), "kind must be one of l2, linf, l1; got 'l3'"),
    ],
)
def test_bad_questions(ask, message):
    with pytest.raises(InvalidInput, match=message):
        ask()


@pytest.mark.costly
def test_a_vector_mean_of_columns_is_that_of_the_array():
    """At budget 40 a coordinate's bit is nearly its record; four standard errors, seeded."""
    random = np.random.default_rng(1)
    table = pl.DataFrame({"x": random.uniform(-1, 1, 4000), "y": random.uniform(0, 1, 4000)})
    question = sdp.VectorMean(2, 1.5)
    options = {"budgets": 40.0, "seen": "reports", "delta": 1e-6}
    found = sdp.release(question, table, value=["x", "y"], random=sdp.simulation_random(1), **options)
    truth = np.array([table["x"].mean(), table["y"].mean()])
    assert (np.abs(found.estimate - truth) < 4 * found.standard_error).all()
    array = {"v": table.to_numpy()}
    same = sdp.release(question, array, value="v", random=sdp.simulation_random(1), **options)
    assert np.array_equal(same.estimate, found.estimate)
    with pytest.raises(InvalidInput, match=r"^value must name 2 columns for a vector-mean; got 3: x, y, x"):
        sdp.release(question, table, value=["x", "y", "x"], **options)
    with pytest.raises(InvalidInput, match="names a column twice"):
        sdp.release(question, table, value=["x", "x"], **options)


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int64, np.bool_])
def test_whole_numbers_are_looked_up_whatever_their_width(kind):
    """100 - (-100) does not fit into eight bits."""
    labels = (0, 1) if kind is np.bool_ else (-100, 100, 7, 0)
    column = np.array(labels * 3, dtype=kind)
    assert category_codes(column, labels).tolist() == list(range(len(labels))) * 3
    if kind is np.int64:
        for far in (2**62, -(2**62), 99):
            with pytest.raises(InvalidInput, match="none of the categories"):
                category_codes(np.array([far], dtype=kind), labels)


def test_long_vectors_are_named_or_shortened():
    columns = [np.array([3.0, 0.1, 1e200]), np.array([4.0, 0.1, 0.0])]
    with pytest.raises(InvalidInput, match=r"^the vector in row 12 has l2 norm beyond 1; say `clip`"):
        bounded_vectors(columns, 2, "l2", 1.0, before=11)
    shortened = bounded_vectors(columns, 2, "l2", 1.0, Recode(clip=True))
    assert shortened == pytest.approx(np.array([[0.6, 0.8], [0.1, 0.1], [1.0, 0.0]]))
    assert np.array_equal(bounded_vectors(columns, 2, "linf", 1.0, Recode(clip=True))[0], [1.0, 1.0])
    for bad in (np.inf, -np.inf):
        with pytest.raises(InvalidInput, match="row 1"):
            bounded_vectors([np.array([bad]), np.array([0.0])], 2, "l2", 1.0)
        with pytest.raises(InvalidInput, match="row 1 is infinite"):
            bounded_vectors([np.array([bad]), np.array([0.0])], 2, "l2", 1.0, Recode(clip=True))
    with pytest.raises(InvalidInput, match="row 1 is missing"):
        bounded_vectors([np.array([np.nan]), np.array([0.0])], 2, "l2", 1.0)
    assert bounded_vectors([np.array([np.nan]), np.array([0.5])], 2, "l2", 1.0, Recode(0.0)).tolist() == [[0.0, 0.5]]


def test_a_release_tells_its_answer():
    found = sdp.release(
        sdp.Frequency(["yes", "no"]),
        {"vote": ["yes", "no"] * 50},
        value="vote",
        budgets=1.0,
        seen="reports",
        delta=1e-3,
        random=sdp.simulation_random(1),
    )
    text = repr(found)
    assert "central epsilon at most" in text
    assert "at delta = 0.001" in text
    assert "NOT PRIVATE" in text
    assert "<table" in found._repr_html_()
    frame = found.to_frame()
    assert frame.columns == ["label", "estimate", "standard_error", "interval_low", "interval_high"]
    assert frame.height == 2
    assert len(found.fingerprint) == 64
