"""Guarantees as the JSON objects of the contract: certified ends as `certify` rounds them, infinity as "inf"."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from shuffledp.ball import BallDummies
from shuffledp.budgets import Budgets
from shuffledp.dummies import DiscreteLaplace, Dummies, Uniform
from shuffledp.errors import Refused, attempt
from shuffledp.guarantee import Evidence, Guarantee, LevelGuarantee
from shuffledp.normal import NormalDummies
from shuffledp.numerics.interval import Interval
from shuffledp.report.evidence import Standing, source, standing, value

if TYPE_CHECKING:
    from shuffledp.audit.result import AuditResult

FORMAT = 2
"""Number of the JSON objects' format; it grows when a key is removed or its meaning changes."""


def dumps(value: Mapping[str, Any]) -> str:
    """Write one JSON object with its format number; infinities become the string "inf", and NaN is refused.

    Letters stand as they are; what a terminal would obey instead of showing is written by its number.

    Examples
    --------
    >>> dumps({"epsilon": float("inf"), "n": 10})
    '{"format": 2, "epsilon": "inf", "n": 10}'
    """
    text = json.dumps(_plain({"format": FORMAT, **value}), allow_nan=False, ensure_ascii=False)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def dummies_to_json(dummies: Dummies) -> dict[str, Any]:
    """Name the law of dummies, their number, and what else it has."""
    if isinstance(dummies, Uniform):
        return {"law": "uniform", "count": dummies.count}
    if isinstance(dummies, DiscreteLaplace):
        return {"law": "laplace", "count": dummies.count, "ratio": dummies.ratio}
    if isinstance(dummies, NormalDummies):
        return {"law": "normal", "count": dummies.count, "spread": dummies.spread, "centre": dummies.centre}
    if isinstance(dummies, BallDummies):
        return {
            "law": "ball",
            "count": dummies.count,
            "columns": [column.name for column in dummies.columns],
            "radius": [str(weight) for weight in dummies.radius],
            "centre": list(dummies.centre),
        }
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
    told |= {} if setting.records is None else {"records": setting.records}
    told |= {"same_record": True} if setting.same_record else {}
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


def mu_to_json(guarantee: Guarantee, outside: float) -> dict[str, Any]:
    """Build the object "mu": a Gaussian shift that is worse than the collection, all but ``outside`` of it.

    Parameters
    ----------
    guarantee : Guarantee
        From `certify`.
    outside : float
        What may be revealed beyond mu, a probability in [0, 1).
    """
    found = attempt(lambda: guarantee.mu(outside))
    if isinstance(found, Refused):
        return {"value": None, "outside": outside, "refused": found.reason}
    return {"value": found, "outside": outside}


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
