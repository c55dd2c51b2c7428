"""Counts and sums as people read them: a table for the terminal and the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from shuffledp.releases.release import COUNTED, MEANS
from shuffledp.report.rows import CONFIDENCE, bin_rows
from shuffledp.report.wording import count, with_error

if TYPE_CHECKING:
    from shuffledp.releases.release import Release

_FIRST = {"frequency": "category", "histogram": "bin", "vector-mean": "coordinate", "frequent-items": "item"}


def amounts_table(release: Release, interval: str, *, simultaneous: bool = False) -> dict[str, Any] | None:
    """Return counts of shares, or sums of means, as title, headings and rows; None where there are neither.

    Parameters
    ----------
    release : Release
        Of any question.
    interval : str
        Heading of the intervals.
    simultaneous : bool
        Whether the intervals hold together.
    """
    kind = release.question.name
    shares = kind in COUNTED
    if not shares and kind not in MEANS:
        return None
    found = (release.counts if shares else release.sum)(CONFIDENCE, simultaneous=simultaneous)
    columns = [np.atleast_1d(column) for column in (found.estimate, found.standard_error, found.low, found.high)]
    most = found.records if shares else None
    words = [_words(value, error, low, high, most) for value, error, low, high in np.column_stack(columns).tolist()]
    labels = _labels(release, len(words))
    return {
        "title": f"{'Counts' if shares else 'Sums'} over {count(found.records)} records",
        "headings": [*([_FIRST[kind]] if kind in _FIRST else []), "count" if shares else "sum", "standard error",
                     interval],
        "rows": [[*label, *cells] for label, cells in zip(labels, words, strict=True)],
        "remark": "",
    }  # fmt: skip


def _labels(release: Release, size: int) -> Sequence[Sequence[str]]:
    kind = release.question.name
    if kind in ("frequency", "frequent-items"):
        return [[str(category)] for category in release.categories or ()]
    if kind == "histogram":
        return [[row.category] for row in bin_rows(release)]
    return [[]] if kind == "mean" else [[str(place)] for place in range(1, size + 1)]


def _words(value: float, error: float, low: float, high: float, most: int | None) -> list[str]:
    ends = f"{with_error(low, error)} to {with_error(high, error)}"
    if most is not None and value < 0.0:
        ends = f"below 0: noise; at most {with_error(high, error)}"
    elif most is not None and value > most:
        ends = f"above {count(most)}: noise; at least {with_error(low, error)}"
    return [with_error(value, error), with_error(error, error), ends]
