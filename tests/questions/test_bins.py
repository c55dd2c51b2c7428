"""A value on the edge of two bins is in the one that begins there, wherever values are put into bins."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import polars as pl
import pytest

import shuffledp as sdp
from shuffledp.questions.ranges import Bins

TOLD = {"value": "x", "budgets": 700.0, "seen": "reports", "delta": 1e-6, "any_delta": True}


@pytest.mark.parametrize(
    ("low", "high", "bins"),
    [("0", "1", 10), ("0", "4", 40), ("-0.3", "0.1", 4), ("-1", "1", 20), ("0.1", "0.9", 8), ("-0.7", "12.3", 130)],
)
def test_a_value_on_an_edge_is_in_the_bin_that_begins_there(low, high, bins):
    """0.0, 0.1, ..., 0.9 in ten bins of 0..1 gave shares .1 .1 .2 0 .1 .2 .1 0 .1 .1; of 0..4 by 0.1 15 were wrong."""
    step = (Decimal(high) - Decimal(low)) / bins
    values = [float(Decimal(low) + step * i) for i in range(bins)]
    grid = Bins(float(low), float(high), bins)
    assert grid.codes(np.array(values)).tolist() == list(range(bins))
    assert grid.edges[:-1].tolist() == values
    below = np.nextafter(np.array([*values[1:], float(high)]), -np.inf)
    assert grid.codes(below).tolist() == list(range(bins))
    assert grid.codes(np.array([float(high)])).tolist() == [bins - 1]


@pytest.mark.costly("text")
@pytest.mark.parametrize("form", ["text", "frame"])
def test_a_histogram_of_values_on_edges_is_even(form):
    """At a budget of 700 everybody tells the truth."""
    written = [f"0.{k}" for k in range(10)] * 20
    table = pl.DataFrame({"x": written if form == "text" else [float(text) for text in written]})
    found = sdp.release(sdp.Histogram(0, 1, 10), table, mechanism="krr", **TOLD)
    assert found.estimate.tolist() == pytest.approx([0.1] * 10, abs=1e-9)


def test_the_bins_of_a_histogram_and_of_quantiles_are_the_same():
    numbers = np.array([k / 10 for k in range(40)])
    histogram, quantiles = sdp.Histogram(0, 4, 40), sdp.Quantiles(0, 4, bins=40)
    for question in (histogram, quantiles):
        assert question.records([numbers], sdp.Ask(question, "x").recode, 0).tolist() == list(range(40))
    assert histogram.grid.edges is quantiles.grid.edges
    assert [label[0] for label in histogram.labels] == numbers.tolist()
