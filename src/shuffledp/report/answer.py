"""What a page shows of an estimate: sentences, numbers as people read them, a picture, a table; by kind of question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from markupsafe import Markup

from shuffledp.guarantee import Guarantee
from shuffledp.report import wording
from shuffledp.report.distribution import deviation_words, some_bins
from shuffledp.report.rows import (
    CONFIDENCE,
    FrequencyRow,
    bin_rows,
    edge_rows,
    frequency_rows,
    in_bins,
    quantile_rows,
)
from shuffledp.report.svg import bars_picture, distribution_picture, histogram_picture, mean_picture

if TYPE_CHECKING:
    from shuffledp.protocol.quantiles import RangeRelease
    from shuffledp.protocol.release import Release

Kind = Literal["mean", "frequency", "histogram", "quantiles", "variance"]
MOST_ROWS = 400
"""Bins a page lists, and points of a curve it draws."""
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
    release : Release, RangeRelease or None
        The estimate; None when only a guarantee was asked for.
    bounds : (low, high) or None
        The range of a mean or a variance; None for the others.
    truth : sequence of float or None
        The true value or values, where the data are public anyway (the demo).
    kind : str or None
        Which question it is; None: a mean if there are bounds, else frequencies.
    simplex : bool
        Show the projected frequencies, too.
    """

    question: str
    guarantee: Guarantee
    release: Release | RangeRelease | None = None
    bounds: tuple[float, float] | None = None
    truth: Sequence[float] | None = None
    kind: Kind | None = None
    simplex: bool = False


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
    kind = answer.kind or ("frequency" if answer.bounds is None else "mean")
    common = {
        "kind": kind,
        "n": release.n,
        "mechanism": release.mechanism,
        "confidence": f"{CONFIDENCE:.0%}",
        "truth": None,
        "table": None,
    }
    return common | _PARTS[kind](answer, release)


def _mean(answer: Answer, release: Release) -> dict[str, Any]:
    low, high = (float(end) for end in release.confidence_interval(CONFIDENCE))
    truth = None if answer.truth is None else answer.truth[0]
    value, error = float(release.estimate), float(release.standard_error)
    span = answer.bounds or release.analysis.support
    return {
        "notes": wording.notes(release),
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
    rows = frequency_rows(release, simplex=answer.simplex)
    return {
        "notes": _share_notes(answer, release),
        "truth": answer.truth,
        "table": _share_table("category", rows, answer.truth),
        "picture": Markup(bars_picture(rows, answer.truth)),
    }


def _histogram(answer: Answer, release: Release) -> dict[str, Any]:
    rows = bin_rows(release, simplex=answer.simplex)
    shown = some_bins(rows, MOST_ROWS)
    listed = f"{len(shown)} of {wording.count(len(rows))} bins are listed." if len(shown) < len(rows) else ""
    return {
        "notes": _share_notes(answer, release),
        "bins": len(rows),
        "table": _share_table("bin", shown, None) | {"remark": listed},
        "picture": Markup(histogram_picture(rows)),
    }


def _share_notes(answer: Answer, release: Release) -> list[str]:
    return [*wording.notes(release), *([wording.PROJECTED] if answer.simplex else [])]


def _share_table(first: str, rows: Sequence[FrequencyRow], truth: Sequence[float] | None) -> dict[str, Any]:
    """List shares; projected ones and true ones where they are there."""
    headings = [first, "share", "standard error", INTERVAL]
    cells = [
        [row.category, *map(wording.share, (row.frequency, row.standard_error)),
         f"{wording.share(row.low)} to {wording.share(row.high)}"]
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
    del answer
    rows = quantile_rows(release)
    width = float(release.edges[1] - release.edges[0])
    cells = [
        [f"{wording.near(100 * row.probability, 6)}%", in_bins(row.value, width),
         f"{in_bins(row.low, width)} to {in_bins(row.high, width)}"]
        for row in rows
    ]  # fmt: skip
    return {
        "notes": wording.range_notes(release),
        "bins": release.edges.size - 1,
        "quantiles": {"headings": ["share below", "value", INTERVAL], "rows": cells, "remark": ""},
        "picture": Markup(distribution_picture(edge_rows(release, MOST_ROWS), rows)),
    }


_PARTS: Mapping[str, Callable[[Answer, Any], dict[str, Any]]] = {
    "mean": _mean,
    "frequency": _frequency,
    "histogram": _histogram,
    "quantiles": _quantiles,
    "variance": _variance,
}
