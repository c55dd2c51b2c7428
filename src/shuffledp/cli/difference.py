"""`difference`: two releases of one question, read from what they printed with --json."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np

from shuffledp.accounting import check_delta
from shuffledp.cli.files import read_bytes
from shuffledp.cli.ledger import read_guarantee
from shuffledp.cli.output import console, working
from shuffledp.errors import InvalidInput, path_shown, shown
from shuffledp.protocol.differences import Side, check_question, subtract
from shuffledp.protocol.estimate import Estimate
from shuffledp.protocol.means import LongTailedEstimate
from shuffledp.report.difference import difference_to_json, print_difference
from shuffledp.report.to_json import dumps


def run_difference(
    files: list[Path], between: tuple[str, str] | None, delta: float, *, disjoint: bool, simultaneous: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Subtract the first from the second, and say what both cost together."""
    check_delta(delta)
    if len(files) != (2 if between is None else 1):
        raise InvalidInput(
            f"difference needs two files, or one file of groups with --between A B; got {len(files)}"
            + ("" if between is None else " with --between")
        )
    twice = between[0] == between[1] if between is not None else files[0].resolve() == files[1].resolve()
    if twice:  # the noise of both would be the same noise, and the interval is that of independent ones
        raise InvalidInput("difference needs two releases, each with noise of its own; got the same one twice")
    with working("Subtracting"):
        if between is None:
            before, after = (_side(path, _object(path)) for path in files)
            names = ("before", "after") if files[0].name == files[1].name else (files[0].name, files[1].name)
        else:
            before, after = (_side(files[0], _group(files[0], name)) for name in between)
            names = between
        found = subtract(before, after, delta=delta, disjoint=disjoint or between is not None)
    if as_json:
        print(dumps(difference_to_json(found, simultaneous=simultaneous)))
    else:
        print_difference(console(), found, names, simultaneous=simultaneous)


def _bad(path: Path) -> InvalidInput:
    return InvalidInput(
        f"{path_shown(path)} is no release of one question; name what mean, frequency, histogram or vector-mean of "
        "this version printed with --json"
    )


def _object(path: Path) -> dict[str, Any]:
    try:
        known = json.loads(read_bytes(path, "the file"))
    except ValueError as error:
        if isinstance(error, InvalidInput):
            raise
        raise _bad(path) from None
    if not isinstance(known, dict):
        raise _bad(path)
    if "groups" in known:
        raise InvalidInput(f"{path_shown(path)} holds groups; name two of them with --between A B, and this file alone")
    return known  # pyright: ignore[reportUnknownVariableType]


def _group(path: Path, name: str) -> dict[str, Any]:
    try:
        groups: dict[str, dict[str, Any]] = {
            str(group["group"]): group for group in json.loads(read_bytes(path, "the file"))["groups"]
        }
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(
            f"{path_shown(path)} holds no groups; --between needs what a question with --by printed with --json"
        ) from None
    if name not in groups:
        raise InvalidInput(
            f"--between names {shown(name)}, none of the groups of {path_shown(path)}: {', '.join(groups)}"
        )
    return groups[name]


def _side(path: Path, entry: dict[str, Any]) -> Side:
    """Read one release; whatever is not as a release prints it is refused."""
    try:
        if entry.get("private") is not True:
            raise InvalidInput(f"{path_shown(path)} is a simulation, which protects nobody; leave it out")
        question, cost, _ = read_guarantee(entry)
        check_question(question)
        labels, value, error = _answer(question, entry)
        low, high = (float(end) for end in entry["range"])
        step = float(entry["step"])
        kind = {False: Estimate, True: LongTailedEstimate}[entry["long_tailed"]]
        n, uninformative = int(entry["n"]), int(entry["uninformative"])
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        if isinstance(problem, InvalidInput):
            raise
        raise _bad(path) from None
    numbers = (*np.ravel(value), *np.ravel(error), low, high, step)
    if not (all(map(math.isfinite, numbers)) and low < high and step > 0.0 and bool(np.all(error > 0.0))):
        raise _bad(path)
    return Side(question, labels, kind(value, error, step, (low, high), uninformative), n, cost)


def _answer(question: str, entry: dict[str, Any]) -> tuple[tuple[Hashable, ...] | None, Any, Any]:
    """Return labels, values and standard errors."""
    if question == "mean":
        return None, np.array(float(entry["estimate"])), np.array(float(entry["standard_error"]))
    rows = entry["estimates"]
    name = "estimate" if question == "vector-mean" else "frequency"
    value, error = (np.array([float(row[key]) for row in rows]) for key in (name, "standard_error"))
    if question == "vector-mean":
        return None, value, error
    labels = tuple(row["category"] if question == "frequency" else (row["low"], row["high"]) for row in rows)
    return labels, value, error
