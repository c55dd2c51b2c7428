"""What a page shows of an estimate: sentences, numbers as people read them, a picture, a table; by kind of question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from shuffledp.guarantee import Guarantee
from shuffledp.report import wording
from shuffledp.report.amounts import amounts_table
from shuffledp.report.items import NOTHING, all_notes, chosen, items_table
from shuffledp.report.release_terminal import deviation_words, some_bins
from shuffledp.report.remarks import notes, people
from shuffledp.report.rows import (
    CONFIDENCE,
    FrequencyRow,
    bin_rows,
    edge_rows,
    frequency_rows,
    in_bins,
    interval_words,
    quantile_rows,
    quantile_words,
)
from shuffledp.report.svg import bars_picture, distribution_picture, histogram_picture, mean_picture

if TYPE_CHECKING:
    from shuffledp.releases.release import RangeRelease
from shuffledp.releases.release import Release

MOST_ROWS = 400
"""Bins a page lists, and points of a curve it draws."""
MOST_BARS = 60
"""Items that a page draws."""
INTERVAL = f"{CONFIDENCE:.0%} interval"


@dataclass(frozen=True)
class Answer:
    """One question and what is known about it.

    Parameters
    ----------
    question : str
        The question in words, such as "What is the mean of hours_per_week?".
    guarantee : Guarantee
        The central guarantee.
    release : Release or None
        The estimate; None when only a guarantee was asked for.
    truth : sequence of float or None
        The true value or values, where the data are public anyway (the demo).
    simplex : bool
        Show the projected frequencies, too.
    simultaneous : bool
        Show intervals that hold together.
    counts : bool
        Show counts beside shares, and sums beside means.
    """

    question: str
    guarantee: Guarantee
    release: Release | None = None
    truth: Sequence[float] | None = None
    simplex: bool = False
    simultaneous: bool = False
    counts: bool = False


def estimate_parts(answer: Answer) -> dict[str, Any] | None:
    """Collect what the template of this kind needs to know; None without an estimate.

    Parameters
    ----------
    answer : Answer
        Its release fits its kind.
    """
    release = answer.release
    if release is None:
        return None
    kind = release.question.name
    common = {
        "kind": kind.replace("-", "_"),
        "people": people(release),
        "together": answer.simultaneous or chosen(release),
        "mechanism": release.mechanism,
        "confidence": f"{CONFIDENCE:.0%}",
        "truth": None,
        "table": None,
        "amounts": amounts_table(release, INTERVAL, simultaneous=answer.simultaneous) if answer.counts else None,
    }
    return common | _PARTS[kind](answer, release)


def _mean(answer: Answer, release: Release) -> dict[str, Any]:
    low, high = (float(end) for end in release.confidence_interval(CONFIDENCE))
    truth = None if answer.truth is None else answer.truth[0]
    value, error = float(release.estimate), float(release.standard_error)
    span = release.analysis.support
    return {
        "notes": notes(release),
        "clipped": release.clipped,
        "value": value,
        "shown": [wording.with_error(x, error) for x in (value, low, high)],
        "error": error,
        "low": low,
        "high": high,
        "range": span,
        "truth": truth,
        "picture": Markup(mean_picture(value, low, high, span, truth)),
    }


def _variance(answer: Answer, release: Release) -> dict[str, Any]:
    parts = _mean(answer, release)
    return parts | {"deviation": deviation_words(parts["value"], parts["low"], parts["high"])}


def _frequency(answer: Answer, release: Release) -> dict[str, Any]:
    rows = frequency_rows(release, simplex=answer.simplex, simultaneous=answer.simultaneous)
    return {
        "notes": _share_notes(answer, release),
        "truth": answer.truth,
        "table": _share_table("category", rows, answer.truth),
        "picture": Markup(bars_picture(rows, answer.truth)),
    }


def _items(answer: Answer, release: Any) -> dict[str, Any]:
    del answer
    rows = frequency_rows(release)
    return {
        "notes": all_notes(release),
        "found": items_table(release, INTERVAL),
        "nothing": NOTHING,
        "picture": Markup(bars_picture(rows[:MOST_BARS], None)) if rows else None,
    }


def _histogram(answer: Answer, release: Release) -> dict[str, Any]:
    rows = bin_rows(release, simplex=answer.simplex, simultaneous=answer.simultaneous)
    shown = some_bins(rows, MOST_ROWS)
    listed = f"{len(shown)} of {wording.count(len(rows))} bins are listed." if len(shown) < len(rows) else ""
    return {
        "notes": _share_notes(answer, release),
        "bins": len(rows),
        "table": _share_table("bin", shown, None) | {"remark": listed},
        "picture": Markup(histogram_picture(rows)),
    }


def _share_notes(answer: Answer, release: Release) -> list[str]:
    return [*notes(release), *([wording.PROJECTED] if answer.simplex else [])]


def _share_table(first: str, rows: Sequence[FrequencyRow], truth: Sequence[float] | None) -> dict[str, Any]:
    """List shares; projected ones and true ones where they are there."""
    headings = [first, "share", "standard error", INTERVAL]
    cells = [
        [row.category, wording.share(row.frequency), wording.points(row.standard_error),
         interval_words(row)]
        for row in rows
    ]  # fmt: skip
    if rows[0].projected is not None:
        headings.append("projected")
        cells = [[*line, wording.share(row.projected or 0.0)] for line, row in zip(cells, rows, strict=True)]
    if truth is not None:
        headings.append("true")
        cells = [[*line, wording.share(value)] for line, value in zip(cells, truth, strict=True)]
    return {"headings": headings, "rows": cells, "remark": ""}


def _quantiles(answer: Answer, release: RangeRelease) -> dict[str, Any]:
    rows = quantile_rows(release, simultaneous=answer.simultaneous)
    width = float(release.edges[1] - release.edges[0])
    cells = [
        [f"{wording.near(100 * row.probability, 6)}%", in_bins(row.value, width),
         quantile_words(row, release.edges)]
        for row in rows
    ]  # fmt: skip
    return {
        "notes": notes(release),
        "bins": release.edges.size - 1,
        "quantiles": {"headings": ["share below", "value", INTERVAL], "rows": cells, "remark": ""},
        "picture": Markup(distribution_picture(edge_rows(release, MOST_ROWS), rows)),
    }


def _vector(answer: Answer, release: Release) -> dict[str, Any]:
    low, high = release.confidence_interval(CONFIDENCE, simultaneous=answer.simultaneous)
    numbers = np.column_stack((release.estimate, release.standard_error, low, high))[:MOST_ROWS].tolist()
    rows = [
        [str(i), wording.with_error(value, error), wording.near(error, 2),
         f"{wording.with_error(first, error)} to {wording.with_error(last, error)}"]
        for i, (value, error, first, last) in enumerate(numbers, start=1)
    ]  # fmt: skip
    total = np.size(release.estimate)
    remark = f"The first {MOST_ROWS} of {wording.count(total)} coordinates." if total > MOST_ROWS else ""
    return {
        "notes": notes(release),
        "coordinates": {"headings": ["coordinate", "mean", "standard error", INTERVAL], "rows": rows, "remark": remark},
    }


_PARTS: Mapping[str, Callable[[Answer, Any], dict[str, Any]]] = {
    "mean": _mean,
    "frequency": _frequency,
    "frequent-items": _items,
    "histogram": _histogram,
    "quantiles": _quantiles,
    "variance": _variance,
    "vector-mean": _vector,
}
