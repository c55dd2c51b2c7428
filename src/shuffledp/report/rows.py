"""The rows of an estimate, one per category, bin, quantile or edge, as every renderer lists them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from shuffledp.questions.frequency import project_to_simplex
from shuffledp.report.wording import SAYS_NOTHING, near, share

if TYPE_CHECKING:
    from shuffledp.releases.release import RangeRelease
from shuffledp.releases.release import Release

NOTHING_FROM = 0.9
"""An interval of a quantile over this share of the range, or more, says nothing yet."""
CONFIDENCE = 0.95
"""Level of the confidence intervals that are shown."""


@dataclass(frozen=True)
class FrequencyRow:
    """One category's estimate.

    Parameters
    ----------
    category : str
        The category.
    frequency, standard_error : float
        Estimated share of the users (it may come out slightly below 0 or above 1), and its standard error.
    low, high : float
        Ends of the confidence interval at the level `CONFIDENCE`.
    projected : float or None
        Entry of the nearest frequencies that could be (`project_to_simplex`), where they were asked for: biased, and
        without a standard error of their own.
    """

    category: str
    frequency: float
    standard_error: float
    low: float
    high: float
    projected: float | None = None


def frequency_rows(release: Release, *, simplex: bool = False, simultaneous: bool = False) -> list[FrequencyRow]:
    """List a frequency release category by category; with `simplex` the projected frequencies beside.

    Parameters
    ----------
    release : Release
        Of shares.
    simplex : bool
        Whether to add the projected shares.
    simultaneous : bool
        Whether the intervals hold together; else each holds by itself.
    """
    low, high = release.confidence_interval(CONFIDENCE, simultaneous=simultaneous)
    columns = (release.estimate, release.standard_error, low, high)
    values = np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])
    names = [str(category) for category in release.categories or ()]
    rows = [FrequencyRow(name, *map(float, row)) for name, row in zip(names, values, strict=True)]
    if not simplex:
        return rows
    projected = project_to_simplex(release.estimate).tolist()
    return [replace(row, projected=value) for row, value in zip(rows, projected, strict=True)]


@dataclass(frozen=True)
class BinRow(FrequencyRow):
    """One bin of a histogram.

    Parameters
    ----------
    category : str
        Its edges, as people read them.
    left, right : float
        Its edges.
    """

    left: float = 0.0
    right: float = 0.0


def interval_words(row: FrequencyRow) -> str:
    """Show an interval of a share; where noise has moved the estimate out of 0 to 1, say so.

    Examples
    --------
    >>> interval_words(FrequencyRow("a", 0.1, 0.01, 0.08, 0.12))
    '8.00% to 12.00%'
    >>> interval_words(FrequencyRow("a", -0.0869, 0.04, 0.0, 0.031))
    'below 0: noise; at most 3.10%'
    >>> interval_words(FrequencyRow("a", 0.6, 0.9, 0.0, 1.0))
    'says nothing yet'
    """
    if row.high - row.low >= 1.0:
        return SAYS_NOTHING
    if row.frequency < 0.0:
        return f"below 0: noise; at most {share(row.high)}"
    if row.frequency > 1.0:
        return f"above 1: noise; at least {share(row.low)}"
    return f"{share(row.low)} to {share(row.high)}"


def quantile_words(row: QuantileRow, edges: Sequence[float]) -> str:
    """Show an interval of a quantile; one over nearly all of the range tells no value from another, so that is said.

    Parameters
    ----------
    row : QuantileRow
        A quantile with its interval.
    edges : sequence of float
        Edges of all bins, in the unit of the question.

    Examples
    --------
    >>> quantile_words(QuantileRow(0.5, 36.9, 30.0, 44.5), [0.0, 25.0, 50.0])
    '30 to 44.5'
    >>> quantile_words(QuantileRow(0.5, 36.9, 0.0, 47.0), [0.0, 25.0, 50.0])
    'says nothing yet'
    """
    if row.high - row.low >= NOTHING_FROM * float(edges[-1] - edges[0]):
        return SAYS_NOTHING
    width = float(edges[1] - edges[0])
    return f"{in_bins(row.low, width)} to {in_bins(row.high, width)}"


def bin_rows(release: Release, *, simplex: bool = False, simultaneous: bool = False) -> list[BinRow]:
    """List a histogram bin by bin, see `frequency_rows`."""
    edges = np.asarray(release.categories, dtype=np.float64)
    width = float(edges[-1, 1] - edges[0, 0]) / len(edges)
    rows = frequency_rows(release, simplex=simplex, simultaneous=simultaneous)
    return [
        BinRow(
            f"{in_bins(left, width)} to {in_bins(right, width)}", row.frequency, row.standard_error, row.low, row.high,
            row.projected, left, right,
        )
        for row, left, right in zip(rows, edges[:, 0].tolist(), edges[:, 1].tolist(), strict=True)
    ]  # fmt: skip


def in_bins(value: float, width: float) -> str:
    """Show a value to a hundredth of the width of its bin.

    Examples
    --------
    >>> in_bins(36.3794, 1.0), in_bins(1e6 + 0.125, 0.125), in_bins(-7.0, 2e9)
    ('36.38', '1.000000125e6', '0')
    """
    rounded = round(value, 2 - math.floor(math.log10(width)))
    return near(rounded, next(digits for digits in range(1, 18) if float(f"{rounded:.{digits}g}") == rounded))


@dataclass(frozen=True)
class QuantileRow:
    """One quantile.

    Parameters
    ----------
    probability : float
        Which one, in (0, 1).
    value : float
        Estimate.
    low, high : float
        Ends of the confidence interval at the level `CONFIDENCE`, edges of bins.
    """

    probability: float
    value: float
    low: float
    high: float


def quantile_rows(release: RangeRelease, *, simultaneous: bool = False) -> list[QuantileRow]:
    """List the quantiles in the order in which they were asked for; intervals one by one, or together."""
    low, high = release.confidence_interval(CONFIDENCE, simultaneous=simultaneous)
    values = np.column_stack((release.probabilities, release.estimate, low, high))
    return [QuantileRow(*map(float, row)) for row in values]


@dataclass(frozen=True)
class EdgeRow:
    """What is known at one edge of a bin.

    Parameters
    ----------
    value : float
        The edge.
    below : float
        Estimated fraction of the users below it; unbiased, so not always rising.
    standard_error : float
        Its standard error.
    low, high : float
        Ends of its confidence interval at the level `CONFIDENCE`, for this edge by itself.
    rising : float
        The rising distribution function closest to the estimates, off which quantiles are read.
    """

    value: float
    below: float
    standard_error: float
    low: float
    high: float
    rising: float


def edge_rows(release: RangeRelease, most: int) -> list[EdgeRow]:
    """List the distribution function at edges of bins, both ends among them: all, or `most` spread evenly."""
    found = release.distribution
    edges, below, errors = release.edges, found.below, found.below_error
    picked = np.unique(np.linspace(0, edges.size - 1, min(most, edges.size)).round().astype(np.int64))
    columns = (edges, below, errors, *found.below_interval(CONFIDENCE), found.rising)
    return [EdgeRow(*map(float, row)) for row in np.column_stack(columns)[picked]]
