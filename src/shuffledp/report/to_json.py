"""Guarantees and releases as the JSON objects of the contract: full precision, infinity as "inf"."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from shuffledp.guarantee import Evidence, Guarantee, Kind, LevelGuarantee
from shuffledp.numerics.interval import Interval
from shuffledp.report.rows import CONFIDENCE, frequency_rows

if TYPE_CHECKING:
    from shuffledp.protocol.release import Release


def dumps(value: Mapping[str, Any]) -> str:
    """One JSON object; infinities become the string "inf", and NaN is refused.

    Examples
    --------
    >>> dumps({"epsilon": float("inf"), "n": 10})
    '{"epsilon": "inf", "n": 10}'
    """
    return json.dumps(_plain(value), allow_nan=False, ensure_ascii=False)


def guarantee_to_json(guarantee: Guarantee) -> dict[str, Any]:
    """Build the object `shuffledp amplify --json` prints.

    Parameters
    ----------
    guarantee : Guarantee
        At most as many levels as it holds are listed; ``levels_total`` tells how many there are.
    """
    setting = guarantee.setting
    return {
        "setting": {
            "n": setting.budgets.n,
            "levels": [
                {"epsilon0": level.epsilon0, "delta0": level.delta0, "count": level.count} for level in guarantee.levels
            ],
            "seen": setting.seen,
            "randomizer": setting.randomizer_name,
            "rounds": setting.rounds,
            "neighboring": setting.neighboring,
        },
        "delta": guarantee.delta,
        "epsilon": _interval(guarantee.epsilon),
        "levels": [_level(level) for level in guarantee.levels],
        "levels_total": guarantee.levels_total,
        "bounds": [_evidence(evidence) for evidence in guarantee.evidence],
    }


def mean_to_json(release: Release) -> dict[str, Any]:
    """Build the object `shuffledp mean --json` prints."""
    low, high = release.confidence_interval(CONFIDENCE)
    return {
        "question": "mean",
        "n": release.n,
        "estimate": release.estimate,
        "standard_error": release.standard_error,
        "confidence_interval": [low, high],
        "confidence": CONFIDENCE,
        "mechanism": release.mechanism,
        "weights": release.weights,
        "uninformative": release.uninformative,
        "private": release.private,
        "guarantee": guarantee_to_json(release.guarantee),
    }


def frequency_to_json(release: Release) -> dict[str, Any]:
    """Build the object `shuffledp frequency --json` prints."""
    return {
        "question": "frequency",
        "n": release.n,
        "estimates": [
            {
                "category": row.category,
                "frequency": row.frequency,
                "standard_error": row.standard_error,
                "confidence_interval": [row.low, row.high],
            }
            for row in frequency_rows(release)
        ],
        "confidence": CONFIDENCE,
        "mechanism": release.mechanism,
        "weights": release.weights,
        "uninformative": release.uninformative,
        "private": release.private,
        "guarantee": guarantee_to_json(release.guarantee),
    }


def _level(level: LevelGuarantee) -> dict[str, Any]:
    return {
        "epsilon0": level.epsilon0,
        "delta0": level.delta0,
        "count": level.count,
        "epsilon": _interval(level.epsilon),
    }


def _evidence(evidence: Evidence) -> dict[str, Any]:
    known: dict[str, Any] = {"key": evidence.key, "kind": str(evidence.kind)}
    if evidence.epsilon is None:
        known["refused"] = evidence.refused
    else:
        # A witness counts by its lower end, everything else by its upper one.
        lower = evidence.kind is Kind.CERTIFIED_LOWER
        known["epsilon"] = evidence.epsilon.lower if lower else evidence.epsilon.upper
    return known | {"reference": evidence.reference}


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
