"""Guarantees and releases as JSON objects, with bounds as `certify` rounds them, and infinity as "inf"."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from shuffledp.ball import BallDummies
from shuffledp.budgets import Budgets
from shuffledp.dummies import DiscreteLaplace, Dummies, NormalDummies, Uniform
from shuffledp.errors import Refused, attempt
from shuffledp.numerics.floats import Interval
from shuffledp.questions.question import CONFIDENCE, Curve, View
from shuffledp.report.answer import first_of, grouped_notes, notes, view_of
from shuffledp.report.wording import Standing, source, standing, value, weighted_by
from shuffledp.setting import Evidence, Guarantee, LevelGuarantee

if TYPE_CHECKING:
    from shuffledp.audit.result import AuditResult
    from shuffledp.releases.margins import Margins
    from shuffledp.releases.release import Release
    from shuffledp.releases.run import GroupedRelease

FORMAT = 2
"""Format number of the JSON objects; it increases when a key is removed or its meaning changes."""


def dumps(value: Mapping[str, Any]) -> str:
    """Return a JSON object as a text, with its format number; infinities become the string "inf", and NaN is refused.

    Letters are not escaped; control characters, which a terminal would obey, are.

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
    """Return the name of the dummies' distribution, their number, and the distribution's parameters."""
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
    """Return the object that `shuffledp amplify --json` prints.

    Parameters
    ----------
    guarantee : Guarantee
        The guarantee. The levels it holds are listed; ``levels_total`` is the number of all levels.
    """
    setting, floor, crowd = guarantee.setting, guarantee.floor, guarantee.crowd
    optional_fields = {} if setting.dummies is None else {"dummies": dummies_to_json(setting.dummies)}
    optional_fields |= {} if setting.records is None else {"records": setting.records}
    optional_fields |= {"same_record": True} if setting.same_record else {}
    kept = {
        name: _interval(interval) for name, interval in (("floor", floor), ("crowd", crowd)) if interval is not None
    }
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
            **optional_fields,
        },
        "delta": guarantee.delta,
        "epsilon": _interval(guarantee.epsilon),
        **kept,
        "levels": [_level(level) for level in guarantee.levels],
        "levels_total": guarantee.levels_total,
        "bounds": [_evidence(entry) for entry in guarantee.evidence],
    }


def mu_to_json(guarantee: Guarantee, outside: float) -> dict[str, Any]:
    """Return the object "mu": a Gaussian shift that dominates the collection except for probability ``outside``.

    Parameters
    ----------
    guarantee : Guarantee
        From `certify`.
    outside : float
        Probability with which more than mu may be revealed, in [0, 1).
    """
    mu = attempt(lambda: guarantee.mu(outside))
    if isinstance(mu, Refused):
        return {"value": None, "outside": outside, "refused": mu.reason}
    return {"value": mu, "outside": outside}


def audit_to_json(result: AuditResult) -> dict[str, Any]:
    """Return the object that `shuffledp audit --json` prints."""
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
    """Return at most ``most`` of a population's levels, and the number of all of them."""
    columns = (budgets.epsilons[:most].tolist(), budgets.deltas[:most].tolist(), budgets.counts[:most].tolist())
    return {
        "levels": [{"epsilon0": e, "delta0": d, "count": c} for e, d, c in zip(*columns, strict=True)],
        "levels_total": budgets.levels,
    }


# Releases: what their view holds, how it was made, and the guarantee.

MOST_EDGES = 1000
"""Largest number of points of a distribution function that are listed."""


def release_to_json(release: Release, *, simplex: bool = False, simultaneous: bool = False) -> dict[str, Any]:
    """Return the object that the question's command prints with --json.

    Parameters
    ----------
    release : Release
        The release of any question.
    simplex : bool
        Whether to add "projected" beside each share.
    simultaneous : bool
        True: the intervals hold together. False: each holds by itself.
    """
    view = view_of(release, simplex=simplex, simultaneous=simultaneous)
    listed: Any = entries_to_json(view)
    return {
        "question": release.question.name,
        "n": release.n,
        **view.before,
        **({"estimates": listed} if view.shape.label else listed[0]),
        **amounts_to_json(view),
        **({} if view.curve is None else {"distribution": _curve(view.curve)}),
        **view.after,
        "confidence": CONFIDENCE,
        "simultaneous": view.simultaneous,
        "mechanism": release.mechanism,
        "weights": release.weights,
        "weighted_by": weighted_by(release),
        "unit": "people" if release.unit == "people" else f"{release.unit}, taken as people",
        "rows": release.rows,
        "rows_per_person": release.guarantee.setting.group_size,
        "clipped": release.clipped,
        **({"where": where_to_json(release.where)} if release.where else {}),
        "notes": notes(release, view),
        "uninformative": release.uninformative,
        "private": release.private,
        "fingerprint": release.fingerprint,
        "guarantee": guarantee_to_json(release.guarantee),
    }


def where_to_json(where: Mapping[str, Sequence[Hashable]]) -> list[dict[str, Any]]:
    """Return the public values that the rows asked must have, as a list with one object for each column."""
    return [{"column": column, "values": [str(value) for value in values]} for column, values in where.items()]


def _curve(curve: Curve) -> list[dict[str, Any]]:
    """Return the estimated fraction below edges of bins, at up to `MOST_EDGES` evenly spread edges."""
    some = curve.some(MOST_EDGES)
    columns = zip(some.value.tolist(), some.below.tolist(), some.standard_error.tolist(), strict=True)
    return [{"value": value, "below": below, "standard_error": error} for value, below, error in columns]


def entries_to_json(view: View) -> list[dict[str, Any]]:
    """Return the entries of a view: label, number, error, interval, and projected share if asked for.

    Parameters
    ----------
    view : View
        The view of any question.
    """
    shape, bare = view.shape, view.numbers.error is None
    return [
        dict(zip(shape.keys, entry.label, strict=True))
        | {shape.key: entry.value}
        | ({} if bare else {"standard_error": entry.error})
        | {"confidence_interval": [entry.low, entry.high]}
        | ({} if entry.projected is None else {"projected": entry.projected})
        for entry in view.entries()
    ]


def amounts_to_json(view: View) -> dict[str, Any]:
    """Return counts or sums under their key; an empty object where the question has neither.

    Parameters
    ----------
    view : View
        The view of any question.
    """
    amounts, shape = view.amounts, view.shape
    if amounts is None or amounts.error is None:
        return {}
    name = "count" if shape.amount == "count" else "estimate"
    listed: list[dict[str, Any]] = [
        dict(zip(shape.keys, label, strict=True))
        | {name: value, "standard_error": error, "confidence_interval": [low, high]}
        for label, (value, error, low, high) in zip(
            view.labels,
            np.column_stack((amounts.value, amounts.error, amounts.low, amounts.high)).tolist(),
            strict=True,
        )
    ]
    if shape.amount == "count":
        return {"counts": {"of": view.records, "estimates": listed}}
    return {"sum": {"estimates": listed} if shape.label else listed[0]}


def grouped_to_json(grouped: GroupedRelease, *, simplex: bool = False, simultaneous: bool = False) -> dict[str, Any]:
    """Return the object that a question with --by prints with --json.

    Parameters
    ----------
    grouped : GroupedRelease
        The releases.
    simplex, simultaneous : bool
        As for `release_to_json`.
    """
    return {
        "question": first_of(grouped).question.name,
        "by": grouped.by,
        "n": grouped.n,
        "groups": [
            {"group": str(name)} | release_to_json(release, simplex=simplex, simultaneous=simultaneous)
            for name, release in grouped.releases.items()
        ],
        "worst_group": str(grouped.worst),
        "notes": grouped_notes(grouped),
        "private": grouped.private,
        "guarantee": guarantee_to_json(grouped.guarantee),
    }


def weighted_to_json(grouped: GroupedRelease, margins: Margins) -> dict[str, Any]:
    """Return the object of shares, or of a mean, weighted to margins.

    Parameters
    ----------
    grouped : GroupedRelease
        The releases.
    margins : Margins
        Public margins of its groups.
    """
    weighted = grouped.weighted(margins)
    low, high = weighted.confidence_interval(CONFIDENCE)
    columns = (weighted.value, weighted.standard_error, low, high)
    view = view_of(first_of(grouped))
    shape = view.shape
    labels = [dict(zip(shape.keys, label, strict=True)) for label in view.labels]
    return {
        "estimates": [
            label | {shape.key: value, "standard_error": error, "confidence_interval": [first, last]}
            for label, value, error, first, last in zip(
                labels, *(np.atleast_1d(column).tolist() for column in columns), strict=True
            )
        ],
        "covers": "the people for whom the answers stand",
        "answered": weighted.answered,
        "population": weighted.population,
        "missing": weighted.missing,
    }


def _level(level: LevelGuarantee) -> dict[str, Any]:
    intervals = {"epsilon": level.epsilon, "floor": level.floor, "crowd": level.crowd}
    return {
        "epsilon0": level.epsilon0,
        "delta0": level.delta0,
        "count": level.count,
        **{name: _interval(value) for name, value in intervals.items() if value is not None},
    }


def _evidence(entry: Evidence) -> dict[str, Any]:
    fields: dict[str, Any] = {"key": entry.key, "kind": str(entry.kind)}
    if entry.refused is None:
        fields["epsilon"] = value(entry)
    else:
        fields["refused"] = entry.refused
    if standing(entry) is Standing.PUBLISHED:
        fields["published"] = True
    if source(entry) is not None:
        fields["source"] = source(entry)
    return fields | {"reference": entry.reference}


def _interval(interval: Interval) -> dict[str, float]:
    return {"lower": interval.lower, "upper": interval.upper}


def _plain(value: Any) -> Any:
    """Return a value with NumPy types replaced by Python's, and infinities by words."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
        return [_plain(entry) for entry in value]
    return value
