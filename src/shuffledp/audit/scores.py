"""Scores of a report that tell one record from another, learned from reports of both.

A score may be anything: the confidence of an audit does not depend on how good it is, only its power does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.audit.reports import Reports
from shuffledp.audit.result import Cut
from shuffledp.numerics.floats import TINY
from shuffledp.numerics.interval import FloatArray

Reading = Callable[[NDArray[Any], Any], FloatArray]
"""(reports, record) -> one number per report, larger the more the report speaks for the record."""

MOST_VALUES = 4096
"""Different reports up to which each gets its own likelihood ratio."""
_BINS = 32
SHOWN = 6
"""Parts of an event that its words name; the others are counted."""


@dataclass(frozen=True, eq=False)
class Score:
    """One number per report.

    Parameters
    ----------
    attack : str
        What the score looks at, in words.
    values : callable
        Reports -> ndarray of shape (n,), finite.
    words : callable
        Cut -> the event in words.
    """

    attack: str
    values: Callable[[Reports], FloatArray]
    words: Callable[[Cut], str]

    def read(self, reports: Reports) -> FloatArray:
        """Return `values` of these reports, which are computed once: several events of one score may be judged."""
        if self not in reports.read:
            reports.read[self] = self.values(reports)
        return reports.read[self]


def reading_score(reading: Reading, records: tuple[Any, Any]) -> Score:
    """Make a score of a known reading of reports: how much more it speaks for the first record than for the second.

    Parameters
    ----------
    reading : callable
        See `Reading`.
    records : tuple
        The two records.
    """

    def values(reports: Reports) -> FloatArray:
        return np.nan_to_num(reading(reports.raw, records[0]) - reading(reports.raw, records[1]))

    name = f"how much more the report speaks for {show(records[0])} than for {show(records[1])}"
    return Score("what the report says of each record", values, lambda cut: f"{name} {cut.words}")


def counted_score(first: Reports, second: Reports) -> list[Score]:
    """Likelihood ratio of every single report, from counts; none if there are too many different reports."""
    keys = np.concatenate((first.keys, second.keys))
    known, index, place = np.unique(keys, return_index=True, return_inverse=True)
    if known.size > min(MOST_VALUES, keys.size // 4):
        return []
    counts = [np.bincount(part, minlength=known.size) for part in (place[: first.n], place[first.n :])]
    ratio = np.log((counts[0] + 0.5) / first.n) - np.log((counts[1] + 0.5) / second.n)
    examples = [first.raw[i] if i < first.n else second.raw[i - first.n] for i in index[:MOST_VALUES]]

    def values(reports: Reports) -> FloatArray:
        at = np.minimum(np.searchsorted(known, reports.keys), known.size - 1)
        return np.where(known[at] == reports.keys, ratio[at], 0.0)

    def words(cut: Cut) -> str:
        inside = np.flatnonzero(cut.hits(ratio))
        shown = ", ".join(sorted(show(examples[i]) for i in inside[:SHOWN]))
        more = f" or one of {inside.size - SHOWN} others" if inside.size > SHOWN else ""
        return f"the report is {shown}{more}" if inside.size == 1 else f"the report is one of: {shown}{more}"

    return [Score("the value of the report", values, words)]


def show(report: Any) -> str:
    """Write a report on one short line."""
    text = " ".join(str(np.asarray(report).tolist()).split())
    return text if len(text) <= 60 else text[:57] + "..."


def value_score() -> Score:
    """Score a report by its first number."""

    def values(reports: Reports) -> FloatArray:
        return reports.columns[:, 0].astype(np.float64)

    return Score("the first number of the report", values, lambda cut: f"the first number of the report {cut.words}")


def binned_score(first: Reports, second: Reports) -> Score:
    """Likelihood ratio of the interval a number falls into: intervals of about equal chance."""
    edges, table = bin_column(first.columns[:, 0], second.columns[:, 0], _BINS)

    def values(reports: Reports) -> FloatArray:
        return table[np.searchsorted(edges, reports.columns[:, 0], side="right")]

    def words(cut: Cut) -> str:
        ends = np.concatenate(([-np.inf], edges, [np.inf]))
        parts = [f"[{ends[i]:.5g}, {ends[j]:.5g})" for i, j in stretches(cut.hits(table))]
        more = f" or one of {len(parts) - SHOWN} more intervals" if len(parts) > SHOWN else ""
        return f"the report lies in {', '.join(parts[:SHOWN])}{more}"

    return Score("intervals of the report", values, words)


def stretches(inside: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Where the entries that are True stand: start and end (exclusive) of each unbroken stretch."""
    turns = np.diff(inside.astype(np.int8), prepend=0, append=0)
    return list(zip(np.flatnonzero(turns > 0).tolist(), np.flatnonzero(turns < 0).tolist(), strict=True))


def bin_column(first: NDArray[Any], second: NDArray[Any], bins: int) -> tuple[FloatArray, FloatArray]:
    """Edges of intervals, and the logarithm of the ratio of their smoothed shares."""
    both = np.concatenate((first, second)).astype(np.float64)
    distinct = np.unique(both)
    if distinct.size <= bins:
        edges = distinct[1:]
    else:
        edges = np.unique(np.quantile(both, np.linspace(0.0, 1.0, bins + 1)[1:-1]))
    counts = [
        np.bincount(np.searchsorted(edges, part.astype(np.float64), side="right"), minlength=edges.size + 1)
        for part in (first, second)
    ]
    return edges, np.log((counts[0] + 0.5) / first.size) - np.log((counts[1] + 0.5) / second.size)


def rank_columns(means: tuple[FloatArray, FloatArray], variances: tuple[FloatArray, FloatArray]) -> NDArray[np.int64]:
    """Columns that are not constant, those whose means differ most (in standard errors) first.

    Parameters
    ----------
    means, variances : (ndarray, ndarray), each of shape (columns,)
        Mean of each column under the first and the second record, and that mean's own variance.
    """
    spread = variances[0] + variances[1]
    varied = (spread > 0) | (means[0] != means[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.where(varied, np.abs(means[0] - means[1]) / np.sqrt(spread), -1.0)
    order = np.argsort(-gap, kind="stable")
    return order[varied[order]]


def naive_score(first: Reports, second: Reports, chosen: NDArray[np.int64]) -> Score:
    """Sum of the columns' own likelihood ratios."""
    tables = [bin_column(first.columns[:, j], second.columns[:, j], 8) for j in chosen]

    def values(reports: Reports) -> FloatArray:
        total = np.zeros(reports.n)
        for j, (edges, table) in zip(chosen, tables, strict=True):
            total += table[np.searchsorted(edges, reports.columns[:, j].astype(np.float64), side="right")]
        return total

    named = f"column{'s' if chosen.size > 1 else ''} {', '.join(map(str, np.sort(chosen)[:SHOWN]))}"
    named += ", ..." if chosen.size > SHOWN else ""
    return Score(f"{named} of the report", values, lambda cut: f"the log-likelihood ratio of {named} {cut.words}")


def linear_score(first: Reports, second: Reports, chosen: NDArray[np.int64]) -> Score:
    """Fisher's linear discriminant."""
    parts = [part.columns[:, chosen].astype(np.float64) for part in (first, second)]
    scale = np.maximum(np.concatenate(parts).std(axis=0), TINY)
    parts = [part / scale for part in parts]
    inside = sum(np.cov(part, rowvar=False) for part in parts) + 1e-3 * np.eye(chosen.size)
    weights = np.linalg.solve(inside, parts[0].mean(axis=0) - parts[1].mean(axis=0)) / scale

    def values(reports: Reports) -> FloatArray:
        return reports.columns[:, chosen].astype(np.float64) @ weights

    named = f"a linear score of {chosen.size} columns"
    return Score(named, values, lambda cut: f"{named} {cut.words}")
