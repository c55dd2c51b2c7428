"""One question, one flow: every misuse has one message, whichever front it comes through."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

import shuffledp as sdp
from shuffledp.cli import main
from shuffledp.cli.app import options_of
from shuffledp.cli.messages import in_options

N = 200
PEOPLE = pl.DataFrame(
    {
        "hours": np.tile([10.0, 20.0, 30.0, 90.0], N // 4),
        "budget": np.tile([0.5, 1.0], N // 2),
        "zero": np.zeros(N),
        "odd": np.tile([0.5, -1.0], N // 2),
    }
)
RIGHT: dict[str, Any] = {"low": 0.0, "high": 100.0, "value": "hours", "budgets": 1.0, "seen": "reports", "delta": 1e-4}


def released(given: dict[str, Any]) -> object:
    options = {name: given[name] for name in given if name not in ("low", "high")}
    return sdp.release(sdp.Mean(given["low"], given["high"]), PEOPLE, **options)


def in_memory(given: dict[str, Any]) -> object:
    budgets = given["budgets"]
    column = PEOPLE[budgets].to_numpy() if isinstance(budgets, str) else budgets
    options = {name: given[name] for name in given if name not in ("low", "high", "value", "budgets")}
    return sdp.estimate_mean(PEOPLE[given["value"]].to_numpy(), given["low"], given["high"], column, **options)


def of_table(given: dict[str, Any]) -> object:
    options = {name: given[name] for name in given if name not in ("low", "high", "value", "budgets")}
    return sdp.mean_of_table(PEOPLE, given["value"], given["low"], given["high"], given["budgets"], **options)


def as_class(given: dict[str, Any]) -> object:
    options = {name: given[name] for name in given if name not in ("low", "high", "value", "budgets")}
    estimator = sdp.MeanEstimator(given["low"], given["high"], **options)
    return estimator.fit_table(PEOPLE, given["value"], epsilon0=given["budgets"])


FRONTS: dict[str, Callable[[dict[str, Any]], object]] = {
    "release": released,
    "memory": in_memory,
    "table": of_table,
    "class": as_class,
}

MISUSES: dict[str, tuple[dict[str, Any], str]] = {
    "delta": ({"delta": 2.0, "any_delta": True}, "delta must "),
    "delta of 1/n": (
        {"delta": 1 / N},
        "must be below 1/n = 0.005; got 0.005: such a guarantee lets one person's record",
    ),
    "rows without persons": ({"rows_per_person": "one"}, "needs the column that tells whose row it is"),
    "range": (
        {"low": 5.0, "high": 5.0},
        "the range needs finite low < high and a finite width; got low 5.0",
    ),
    "outside": ({"high": 50.0}, "the value in row 4 is outside [0.0, 50.0]; say `clip`, or widen the range"),
    "budgets": ({"budgets": "zero"}, "every epsilon0 is 0, so no report carries information"),
    "negative": ({"budgets": "odd"}, "in row 2 is no budget; a local budget is a number of nats from 0 to 700"),
    "seen": ({"seen": "users"}, "seen must be one of reports, levels, sum; got 'users'"),
    "unseen": (
        {"budgets": "budget", "seen": None},
        "there are 2 different budgets, so `seen` is needed",
    ),
    "mechanism": ({"mechanism": "krr"}, "mechanism must be one of one-bit, laplace, gaussian, piecewise, hybrid; got"),
    "sum of noise": ({"mechanism": "laplace", "seen": "sum"}, "`seen = 'sum'` is not certified for laplace noise"),
    "weights": ({"weights": "people"}, "weights must be one of population, precision; got 'people'"),
    "other": ({"other": "x"}, "`other` maps unlisted categories, and a mean has none"),
    "missing": ({"missing_as": 101}, "`missing_as` must be a number of the range [0.0, 100.0]; got 101"),
    "random": (
        {"random": np.random.default_rng(1)},
        "random must come from secure_random() or",
    ),
}


@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize("misuse", MISUSES)
def test_one_message_for_each_misuse(misuse, front):
    changed, message = MISUSES[misuse]
    given = RIGHT | changed
    with pytest.raises(sdp.InvalidInput) as refused:
        FRONTS[front](given)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.costly("delta")
@pytest.mark.parametrize("misuse", [name for name in MISUSES if name not in ("random", "other")])
def test_the_command_says_the_same_of_its_options(misuse, tmp_path, capsys):
    changed, message = MISUSES[misuse]
    given = RIGHT | changed
    path = tmp_path / "people.parquet"
    PEOPLE.write_parquet(path)
    words = ["mean", str(path), "--value", "hours", "--epsilon0", str(given["budgets"])]
    for name in ("low", "high", "seen", "delta", "mechanism", "weights", "missing_as", "rows_per_person"):
        if given.get(name) is not None:
            words += [f"--{name.replace('_', '-')}", str(given[name])]
    if given.get("any_delta"):
        words.append("--any-delta")
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    shown = capsys.readouterr().err
    assert in_options(message, words, options_of(words)).split(" must ")[-1] in shown, shlex.join(words)
    assert shown.count("\n") == 1


PERSONS = [f"p{i // 2}" for i in range(N)]


def test_person_rows_and_ledger_work_on_every_front(tmp_path):
    """100 persons of two rows each: refused without a rule, one row of each used with one, and entered."""
    table = PEOPLE.with_columns(who=pl.Series(PERSONS))
    numbers = PEOPLE["hours"].to_numpy()
    asked: dict[str, Any] = {"delta": 1e-4, "rows_per_person": "one"}

    def as_memory(**options: Any) -> Any:
        return sdp.estimate_mean(numbers, 0.0, 100.0, 1.0, person=PERSONS, **options)

    def as_table(**options: Any) -> Any:
        return sdp.mean_of_table(table, "hours", 0.0, 100.0, 1.0, person="who", **options)

    def as_fit(**options: Any) -> Any:
        return sdp.MeanEstimator(0.0, 100.0, **options).fit(numbers, epsilon0=1.0, person=PERSONS).fitted()

    def as_fit_table(**options: Any) -> Any:
        return sdp.MeanEstimator(0.0, 100.0, **options).fit_table(table, "hours", epsilon0=1.0, person="who").fitted()

    def as_release(**options: Any) -> Any:
        return sdp.release(sdp.Mean(0.0, 100.0), table, value="hours", budgets=1.0, person="who", **options)

    fronts = (as_memory, as_table, as_fit, as_fit_table, as_release)
    with sdp.Ledger(tmp_path / "people.ledger", make=True) as ledger:
        for front in fronts:
            found = front(ledger=ledger, **asked)
            assert (found.n, found.unit) == (N // 2, "people")
        assert len(ledger.entries()) == len(fronts)
    said = set()
    for front in fronts:
        with pytest.raises(sdp.InvalidInput) as refused:
            front(delta=1e-4)
        said.add(str(refused.value))
    assert len(said) == 1
