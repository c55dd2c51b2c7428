"""Releases as the JSON objects of the contract."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from shuffledp.report.items import all_notes, chosen, items_to_json
from shuffledp.report.rows import CONFIDENCE, FrequencyRow, bin_rows, edge_rows, frequency_rows, quantile_rows
from shuffledp.report.to_json import guarantee_to_json
from shuffledp.report.wording import weighted_by

if TYPE_CHECKING:
    from shuffledp.releases.release import Amounts, Release

MOST_EDGES = 1000
"""Points of a distribution function that are listed."""


def release_to_json(release: Release, *, simplex: bool = False, simultaneous: bool = False) -> dict[str, Any]:
    """Build the object that the question's command prints with --json.

    Parameters
    ----------
    release : Release
        Of any question.
    simplex : bool
        Add "projected" beside each share.
    simultaneous : bool
        Whether intervals hold together; else each holds by itself.
    """
    known = {"question": release.question.name, "n": release.n}
    return known | _ANSWERS[release.question.name](release, simplex, simultaneous) | _rest(release, simultaneous)


def _mean(release: Release, simplex: bool, simultaneous: bool) -> dict[str, Any]:
    (entry,) = amounts_to_json(release.sum(CONFIDENCE, simultaneous=simultaneous), "estimate")
    return _number(release, simplex, simultaneous) | {"sum": entry} | _reach(release)


def _reach(release: Release) -> dict[str, Any]:
    """Return what the interval of a difference needs besides: the largest step of a report, and the range."""
    found = release.analysis
    return {"step": found.step, "long_tailed": found.long_tailed, "range": list(found.support)}


def amounts_to_json(amounts: Amounts, name: str) -> list[dict[str, Any]]:
    """List counts or sums, each with its error and interval.

    Parameters
    ----------
    amounts : Amounts
        Of a release.
    name : str
        Key of the estimate.
    """
    columns = (amounts.estimate, amounts.standard_error, amounts.low, amounts.high)
    return [
        {name: value, "standard_error": error, "confidence_interval": [low, high]}
        for value, error, low, high in np.column_stack([np.atleast_1d(column) for column in columns]).tolist()
    ]


def _counts(release: Release, labels: Sequence[Mapping[str, Any]], simultaneous: bool) -> dict[str, Any]:
    found = release.counts(CONFIDENCE, simultaneous=simultaneous)
    listed = zip(labels, amounts_to_json(found, "count"), strict=True)
    return {"of": found.records, "estimates": [{**label, **entry} for label, entry in listed]}


def _number(release: Release, simplex: bool, simultaneous: bool) -> dict[str, Any]:
    del simplex
    low, high = release.confidence_interval(CONFIDENCE, simultaneous=simultaneous)
    return {
        "estimate": release.estimate,
        "standard_error": release.standard_error,
        "confidence_interval": [low, high],
    }


def _variance(release: Release, simplex: bool, simultaneous: bool) -> dict[str, Any]:
    """Return the deviation is the root of what is at least 0."""
    known = _number(release, simplex, simultaneous)
    value, low, high = (math.sqrt(max(float(x), 0.0)) for x in (known["estimate"], *known["confidence_interval"]))
    return known | {"standard_deviation": {"estimate": value, "confidence_interval": [low, high]}}


def _vector(release: Release, simplex: bool, simultaneous: bool) -> dict[str, Any]:
    del simplex
    low, high = release.confidence_interval(CONFIDENCE, simultaneous=simultaneous)
    columns = (release.estimate, release.standard_error, low, high)
    return {
        "estimates": [
            {"coordinate": i, "estimate": value, "standard_error": error, "confidence_interval": [first, last]}
            for i, (value, error, first, last) in enumerate(np.column_stack(columns).tolist())
        ],
        "sum": {
            "estimates": [
                {"coordinate": i} | entry
                for i, entry in enumerate(
                    amounts_to_json(release.sum(CONFIDENCE, simultaneous=simultaneous), "estimate")
                )
            ]
        },
        **_reach(release),
    }


def _frequency(release: Release, simplex: bool, simultaneous: bool) -> dict[str, Any]:
    rows = frequency_rows(release, simplex=simplex, simultaneous=simultaneous)
    labels = [{"category": row.category} for row in rows]
    return {
        "estimates": [label | _share(row) for label, row in zip(labels, rows, strict=True)],
        "counts": _counts(release, labels, simultaneous),
        **_reach(release),
    }


def _items(release: Any, simplex: bool, simultaneous: bool) -> dict[str, Any]:
    del simplex
    rows = frequency_rows(release)
    labels = [{"item": row.category} for row in rows]
    return {
        "estimates": [label | _share(row) for label, row in zip(labels, rows, strict=True)],
        "counts": _counts(release, labels, simultaneous),
        "search": items_to_json(release),
        **_reach(release),
    }


def _histogram(release: Release, simplex: bool, simultaneous: bool) -> dict[str, Any]:
    rows = bin_rows(release, simplex=simplex, simultaneous=simultaneous)
    labels = [{"low": row.left, "high": row.right} for row in rows]
    return {
        "low": rows[0].left,
        "high": rows[-1].right,
        "bins": len(rows),
        "estimates": [label | _share(row) for label, row in zip(labels, rows, strict=True)],
        "counts": _counts(release, labels, simultaneous),
        **_reach(release),
    }


def _quantiles(release: Any, simplex: bool, simultaneous: bool) -> dict[str, Any]:
    """List quantiles, and the estimated fraction below edges of bins: all of them, or `MOST_EDGES` spread evenly."""
    del simplex
    return {
        "low": float(release.edges[0]),
        "high": float(release.edges[-1]),
        "bins": release.edges.size - 1,
        "estimates": [
            {"probability": row.probability, "quantile": row.value, "confidence_interval": [row.low, row.high]}
            for row in quantile_rows(release, simultaneous=simultaneous)
        ],
        "distribution": [
            {"value": row.value, "below": row.below, "standard_error": row.standard_error}
            for row in edge_rows(release, MOST_EDGES)
        ],
    }


_ANSWERS: Mapping[str, Any] = {
    "mean": _mean,
    "variance": _variance,
    "vector-mean": _vector,
    "frequency": _frequency,
    "frequent-items": _items,
    "histogram": _histogram,
    "quantiles": _quantiles,
}


def _share(row: FrequencyRow) -> dict[str, Any]:
    known = {
        "frequency": row.frequency,
        "standard_error": row.standard_error,
        "confidence_interval": [row.low, row.high],
    }
    return known if row.projected is None else known | {"projected": row.projected}


def _rest(release: Release, simultaneous: bool) -> dict[str, Any]:
    """Return what every estimate carries.

    These are how it was made, whose rows they were, whether it is private, and its guarantee.
    """
    said: Sequence[str] = all_notes(release)
    return {
        "confidence": CONFIDENCE,
        "simultaneous": simultaneous or chosen(release),
        "mechanism": release.mechanism,
        "weights": release.weights,
        "weighted_by": weighted_by(release),
        "unit": "people" if release.unit == "people" else f"{release.unit}, taken as people",
        "rows": release.rows,
        "rows_per_person": release.guarantee.setting.group_size,
        "clipped": release.clipped,
        "notes": list(said),
        "uninformative": release.uninformative,
        "private": release.private,
        "fingerprint": release.fingerprint,
        "guarantee": guarantee_to_json(release.guarantee),
    }
