"""Guarantees and releases as the JSON objects of the contract: full precision, infinity as "inf"."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from shuffledp.budgets import Budgets
from shuffledp.dummies import DiscreteLaplace, Dummies, Uniform
from shuffledp.guarantee import Evidence, Guarantee, LevelGuarantee
from shuffledp.numerics.interval import Interval
from shuffledp.report.evidence import Standing, source, standing, value
from shuffledp.report.rows import CONFIDENCE, FrequencyRow, bin_rows, edge_rows, frequency_rows, quantile_rows
from shuffledp.report.wording import notes, range_notes, weighted_by

if TYPE_CHECKING:
    from shuffledp.audit.result import AuditResult
    from shuffledp.protocol.quantiles import RangeRelease
    from shuffledp.protocol.release import Release

MOST_EDGES = 1000
"""Points of a distribution function that are listed."""


def dumps(value: Mapping[str, Any]) -> str:
    """One JSON object; infinities become the string "inf", and NaN is refused.

    Examples
    --------
    >>> dumps({"epsilon": float("inf"), "n": 10})
    '{"epsilon": "inf", "n": 10}'
    """
    return json.dumps(_plain(value), allow_nan=False, ensure_ascii=False)


def dummies_to_json(dummies: Dummies) -> dict[str, Any]:
    """Name the law of dummies, their number, and what else it has."""
    if isinstance(dummies, Uniform):
        return {"law": "uniform", "count": dummies.count}
    if isinstance(dummies, DiscreteLaplace):
        return {"law": "laplace", "count": dummies.count, "ratio": dummies.ratio}
    return {"law": "ones", "count": dummies.count, "thresholds": [str(step) for step in dummies.thresholds]}


def guarantee_to_json(guarantee: Guarantee) -> dict[str, Any]:
    """Build the object `shuffledp amplify --json` prints.

    Parameters
    ----------
    guarantee : Guarantee
        At most as many levels as it holds are listed; ``levels_total`` tells how many there are.
    """
    setting, floor, crowd = guarantee.setting, guarantee.floor, guarantee.crowd
    told = {} if setting.dummies is None else {"dummies": dummies_to_json(setting.dummies)}
    kept = {name: _interval(known) for name, known in (("floor", floor), ("crowd", crowd)) if known is not None}
    return {
        "setting": {
            "n": setting.budgets.n,
            "levels": [
                {"epsilon0": level.epsilon0, "delta0": level.delta0, "count": level.count} for level in guarantee.levels
            ],
            "seen": setting.seen,
            "randomizer": setting.randomizer_name,
            "rounds": setting.rounds,
            "linked": setting.linked,
            "colluding": setting.colluding,
            "missing": setting.missing,
            "group_size": setting.group_size,
            "reports_per_user": setting.reports_per_user,
            "neighboring": setting.neighboring,
            **told,
        },
        "delta": guarantee.delta,
        "epsilon": _interval(guarantee.epsilon),
        **kept,
        "levels": [_level(level) for level in guarantee.levels],
        "levels_total": guarantee.levels_total,
        "bounds": [_evidence(entry) for entry in guarantee.evidence],
    }


def mean_to_json(release: Release) -> dict[str, Any]:
    """Build the object `shuffledp mean --json` prints."""
    return _number("mean", release) | _rest(release, notes(release))


def variance_to_json(release: Release) -> dict[str, Any]:
    """Build the object `shuffledp variance --json` prints; the deviation is the root of what is at least 0."""
    value, low, high = (math.sqrt(max(x, 0.0)) for x in _value_and_ends(release))
    deviation = {"estimate": value, "confidence_interval": [low, high]}
    return _number("variance", release) | {"standard_deviation": deviation} | _rest(release, notes(release))


def frequency_to_json(release: Release, *, simplex: bool = False) -> dict[str, Any]:
    """Build the object `shuffledp frequency --json` prints; `simplex` adds "projected" beside each estimate."""
    rows = frequency_rows(release, simplex=simplex)
    found = [{"category": row.category} | _share(row) for row in rows]
    return {"question": "frequency", "n": release.n, "estimates": found} | _rest(release, notes(release))


def histogram_to_json(release: Release, *, simplex: bool = False) -> dict[str, Any]:
    """Build the object `shuffledp histogram --json` prints; `simplex` adds "projected" beside each estimate."""
    rows = bin_rows(release, simplex=simplex)
    known = {
        "question": "histogram",
        "n": release.n,
        "low": rows[0].left,
        "high": rows[-1].right,
        "bins": len(rows),
        "estimates": [{"low": row.left, "high": row.right} | _share(row) for row in rows],
    }
    return known | _rest(release, notes(release))


def quantiles_to_json(release: RangeRelease) -> dict[str, Any]:
    """Build the object `shuffledp quantiles --json` prints.

    "distribution" is the estimated fraction below edges of bins: all of them, or `MOST_EDGES` spread evenly.
    """
    known = {
        "question": "quantiles",
        "n": release.n,
        "low": float(release.edges[0]),
        "high": float(release.edges[-1]),
        "bins": release.edges.size - 1,
        "estimates": [
            {"probability": row.probability, "quantile": row.value, "confidence_interval": [row.low, row.high]}
            for row in quantile_rows(release)
        ],
        "distribution": [
            {"value": row.value, "below": row.below, "standard_error": row.standard_error}
            for row in edge_rows(release, MOST_EDGES)
        ],
    }
    return known | _rest(release, range_notes(release))


def _value_and_ends(release: Release) -> tuple[float, float, float]:
    low, high = release.confidence_interval(CONFIDENCE)
    return float(release.estimate), float(low), float(high)


def _number(question: str, release: Release) -> dict[str, Any]:
    value, low, high = _value_and_ends(release)
    return {
        "question": question,
        "n": release.n,
        "estimate": value,
        "standard_error": release.standard_error,
        "confidence_interval": [low, high],
    }


def _share(row: FrequencyRow) -> dict[str, Any]:
    known = {
        "frequency": row.frequency,
        "standard_error": row.standard_error,
        "confidence_interval": [row.low, row.high],
    }
    return known if row.projected is None else known | {"projected": row.projected}


def _rest(release: Release | RangeRelease, said: Sequence[str]) -> dict[str, Any]:
    """What every estimate carries: how it was made, whether it is private, and its guarantee."""
    return {
        "confidence": CONFIDENCE,
        "mechanism": release.mechanism,
        "weights": release.weights,
        "weighted_by": weighted_by(release),
        "notes": list(said),
        "uninformative": release.uninformative,
        "private": release.private,
        "guarantee": guarantee_to_json(release.guarantee),
    }


def audit_to_json(result: AuditResult) -> dict[str, Any]:
    """Build the object `shuffledp audit --json` prints."""
    return {
        "claimed": result.claimed,
        "delta": result.delta,
        "epsilon_lower_bound": result.epsilon_lower_bound,
        "confidence": result.confidence,
        "false_alarm": result.false_alarm,
        "violated": result.violated,
        "subject": result.subject,
        "records": list(result.records),
        "attack": result.attack,
        "event": result.event,
        "worlds": [
            {"world": world, "trials": trials, "hits": hits}
            for world, trials, hits in zip(result.worlds, result.hits.trials, result.hits.counts, strict=True)
        ],
        "private": result.private,
    }


def budgets_to_json(budgets: Budgets, most: int) -> dict[str, Any]:
    """List a population's levels, at most so many, and tell how many there are."""
    columns = (budgets.epsilons[:most].tolist(), budgets.deltas[:most].tolist(), budgets.counts[:most].tolist())
    return {
        "levels": [{"epsilon0": e, "delta0": d, "count": c} for e, d, c in zip(*columns, strict=True)],
        "levels_total": budgets.levels,
    }


def _level(level: LevelGuarantee) -> dict[str, Any]:
    known = {"epsilon": level.epsilon, "floor": level.floor, "crowd": level.crowd}
    return {
        "epsilon0": level.epsilon0,
        "delta0": level.delta0,
        "count": level.count,
        **{name: _interval(value) for name, value in known.items() if value is not None},
    }


def _evidence(entry: Evidence) -> dict[str, Any]:
    known: dict[str, Any] = {"key": entry.key, "kind": str(entry.kind)}
    if entry.refused is None:
        known["epsilon"] = value(entry)
    else:
        known["refused"] = entry.refused
    if standing(entry) is Standing.PUBLISHED:
        known["published"] = True
    if source(entry) is not None:
        known["source"] = source(entry)
    return known | {"reference": entry.reference}


def _interval(interval: Interval) -> dict[str, float]:
    return {"lower": interval.lower, "upper": interval.upper}


def _plain(value: Any) -> Any:
    """Turn numpy values into Python's, and infinities into words."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
        return [_plain(entry) for entry in value]
    return value
