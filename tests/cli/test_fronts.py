"""One question, one flow: every misuse has one message, whichever front it comes through."""

from __future__ import annotations

import inspect
import json
import shlex
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import polars as pl
import pytest

import shuffledp as sdp
from shuffledp.cli import main
from shuffledp.cli.app import options_of
from shuffledp.cli.front import in_options
from shuffledp.ledger import EVERYBODY
from shuffledp.releases.keywords import OF_GROUPS, InMemory, Options, RunOptions
from shuffledp.releases.terms import PARTS, options
from shuffledp.shell.estimate_options import typed_name

N = 200
PEOPLE = pl.DataFrame(
    {
        "hours": np.tile([10.0, 20.0, 30.0, 90.0], N // 4),
        "budget": np.tile([0.5, 1.0], N // 2),
        "zero": np.zeros(N),
        "odd": np.tile([0.5, -1.0], N // 2),
        "gaps": np.tile([10.0, float("nan")], N // 2),
    }
)
RIGHT: dict[str, Any] = {"low": 0.0, "high": 100.0, "value": "hours", "budgets": 1.0, "seen": "reports", "delta": 1e-4}


def released(given: dict[str, Any]) -> object:
    options = {name: given[name] for name in given if name not in ("low", "high")}
    return sdp.release(sdp.Mean(given["low"], given["high"]), PEOPLE, **options)


def in_memory(given: dict[str, Any]) -> object:
    budgets = given["budgets"]
    if given["value"] not in PEOPLE.columns or {"person", "where"} & given.keys() or budgets == given["value"]:
        pytest.skip("records in memory have no column of a name")
    column = PEOPLE[budgets].to_numpy() if isinstance(budgets, str) else budgets
    options = {name: given[name] for name in given if name not in ("low", "high", "value", "budgets")}
    return sdp.estimate_mean(PEOPLE[given["value"]].to_numpy(), given["low"], given["high"], column, **options)


def of_table(given: dict[str, Any]) -> object:
    options = {name: given[name] for name in given if name not in ("low", "high", "value", "budgets")}
    return sdp.mean_of_table(PEOPLE, given["value"], given["low"], given["high"], given["budgets"], **options)


def as_class(given: dict[str, Any]) -> object:
    options = {name: given[name] for name in given if name not in ("low", "high", "value", "budgets", "person")}
    estimator = sdp.MeanEstimator(given["low"], given["high"], **options)
    return estimator.fit_table(PEOPLE, given["value"], budgets=given["budgets"], person=given.get("person"))


def as_people_and_terms(given: dict[str, Any]) -> object:
    parts = {sdp.Ask: dict[str, Any](), sdp.People: dict[str, Any](), sdp.Terms: dict[str, Any]()}
    for part, own in parts.items():
        own |= {each.name: given[each.name] for each in fields(part) if each.name in given}
    ask = sdp.Ask(sdp.Mean(given["low"], given["high"]), **parts[sdp.Ask])
    return sdp.release(ask, sdp.People(PEOPLE, **parts[sdp.People]), sdp.Terms(**parts[sdp.Terms]))


def together(given: dict[str, Any]) -> object:
    own = {each.name for each in fields(sdp.Ask)}
    ask = sdp.Ask(sdp.Mean(given["low"], given["high"]), **{name: given[name] for name in given if name in own})
    options = {name: given[name] for name in given if name not in own | {"low", "high"}}
    return sdp.release_together([ask], PEOPLE, **options)


def of_spark(given: dict[str, Any]) -> object:
    pytest.importorskip("pyspark", reason="needs the extra shuffledp[spark]")
    import shuffledp.spark as sps

    options = {name: given[name] for name in given if name not in ("low", "high", "value", "budgets")}
    frame = sps.local_session().createDataFrame(PEOPLE.to_pandas())
    return sps.mean(frame, given["value"], given["low"], given["high"], given["budgets"], **options)


FRONTS: dict[str, Callable[[dict[str, Any]], object]] = {
    "release": released,
    "memory": in_memory,
    "table": of_table,
    "class": as_class,
    "people and terms": as_people_and_terms,
    "together": together,
    "spark": of_spark,
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
    "unknown mechanism": (
        {"mechanism": "duchi"},
        "mechanism must be one of one-bit, laplace, gaussian, piecewise, hybrid; got 'duchi'",
    ),
    "sum of noise": ({"mechanism": "laplace", "seen": "sum"}, "`seen = 'sum'` is not certified for laplace noise"),
    "weights": ({"weights": "people"}, "weights must be one of population, precision; got 'people'"),
    "other": ({"other": "x"}, "`other` maps unlisted categories, and a mean has none"),
    "missing": ({"missing_as": 101}, "`missing_as` must be a number of the range [0.0, 100.0] or no-answer; got 101"),
    "random": (
        {"random": np.random.default_rng(1)},
        "random must come from secure_random() or",
    ),
    "wrong column": ({"value": "houres"}, "'houres'"),
    "missing person": ({"person": "whom"}, "'whom'"),
    "missing record": (
        {"value": "gaps"},
        "the value in row 2 is missing; say with `missing_as` which number it counts as",
    ),
    "neither": ({"budgets": None}, "say either the local budgets (`epsilon0`), or the central epsilon"),
    "where nobody is": (
        {"where": {"budget": 2.0}},
        "has budget = 2.0, as `where` asks; name one of the column's values, or leave `where` out to ask every row",
    ),
    "where asked": (
        {"where": {"hours": 10.0}},
        "`where` makes the column 'hours' public, and it is the one that is asked",
    ),
    "budget asked": (
        {"budgets": "hours"},
        "`epsilon0` makes the column 'hours' public, and it is the one that is asked",
    ),
    "person asked": (
        {"person": "hours", "rows_per_person": "one"},
        "`person` makes the column 'hours' public, and it is the one that is asked",
    ),
    "where": ({"where": "budget"}, "`where` must name columns and their values, as {'city': 'Oslo'}; got 'budget'"),
    "target": (
        {"budgets": None, "target_epsilon": -1.0},
        "must be a positive number of nats; got -1.0",
    ),
}


NOT_SHOWN_BY_SPARK = {"outside", "negative", "missing record", "wrong column", "missing person"}
"""Spark tells bad rows by their number alone, and names its dataframe where others name a table."""


@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize("misuse", MISUSES)
def test_one_message_for_each_misuse(misuse, front):
    changed, message = MISUSES[misuse]
    given = RIGHT | changed
    with pytest.raises(sdp.InvalidInput) as refused:
        FRONTS[front](given)
    if not (front == "spark" and misuse in NOT_SHOWN_BY_SPARK):
        assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.costly("delta")
@pytest.mark.parametrize("misuse", [name for name in MISUSES if name not in ("random", "other", "where")])
def test_the_command_says_the_same_of_its_options(misuse, tmp_path, capsys):
    changed, message = MISUSES[misuse]
    given = RIGHT | changed
    path = tmp_path / "people.parquet"
    PEOPLE.write_parquet(path)
    words = ["mean", str(path), "--value", given["value"]]
    words += [] if given["budgets"] is None else ["--epsilon0", str(given["budgets"])]
    for name in (
        "person",
        "target_epsilon",
        "low",
        "high",
        "seen",
        "delta",
        "mechanism",
        "weights",
        "missing_as",
        "rows_per_person",
    ):
        if given.get(name) is not None:
            words += [f"--{name.replace('_', '-')}", str(given[name])]
    for column, own in given.get("where", {}).items():
        words += ["--where", f"{column}={own}"]
    if given.get("any_delta"):
        words.append("--any-delta")
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    shown = capsys.readouterr().err
    assert in_options(message, words, options_of(words)).split(" must ")[-1] in shown, shlex.join(words)
    assert shown.count("\n") == 1


def test_the_types_of_the_keywords_are_those_of_the_fields():
    """Type checkers cannot read the fields' metadata, so the keywords are written once more, and compared here."""
    own = {each.name for part in PARTS for each in fields(part)} - {"question", "data", "value", "budgets"}
    assert set(Options.__annotations__) == own - {*OF_GROUPS}
    assert set(InMemory.__annotations__) == set(Options.__annotations__)
    of_one = {each.name for each in fields(sdp.Ask)}
    assert set(RunOptions.__annotations__) == set(Options.__annotations__) - of_one
    assert options()["population"].default == EVERYBODY


def test_every_option_of_the_command_is_a_field_or_says_how_the_answer_is_shown():
    """A field that is typed is an option of `mean`, by the name and with the help that the field states."""
    listed = options_of(["frequency"]) | options_of(["mean"])
    for name, each in options().items():
        if each.metadata["typed"]:
            assert f"--{typed_name(name).replace('_', '-')}" in listed, name
            assert len(each.metadata["help"]) > 15
    for estimator in (sdp.MeanEstimator, sdp.FrequencyEstimator):
        taken = set(inspect.signature(estimator).parameters)
        assert taken >= options().keys() - {"question", "value", "data", "budgets", "person", *OF_GROUPS}


def test_groups_and_several_questions_come_together():
    table = PEOPLE.with_columns(side=pl.Series(["north"] * 120 + ["south"] * 80), odd=pl.Series(PEOPLE["zero"]))
    asked = [sdp.Ask(sdp.Mean(0, 100), "hours"), sdp.Ask(sdp.Variance(0, 100), "hours")]
    people = sdp.People(table, 1.0, by="side", groups=["north", "south"])
    found = sdp.release(asked, people, sdp.Terms(delta=1e-4))
    assert isinstance(found, sdp.JointByGroup)
    assert [each.n for each in found.releases["south"].releases] == [80, 80]
    alone = sdp.release(asked[0], people, sdp.Terms(delta=1e-4))
    assert alone.guarantee.epsilon.upper < found.epsilon == found.releases["south"].epsilon
    with pytest.raises(sdp.InvalidInput, match="give both"):
        sdp.People(table, 1.0, by="side")


PERSONS = [f"p{i // 2}" for i in range(N)]


@pytest.mark.costly
def test_person_rows_and_ledger_work_on_every_front(tmp_path, capsys):
    """100 persons of two rows each: refused without a rule, one row of each used with one, and entered."""
    table, file = PEOPLE.with_columns(who=pl.Series(PERSONS), side=pl.lit("north")), tmp_path / "people.parquet"
    table.write_parquet(file)
    numbers = PEOPLE["hours"].to_numpy()
    asked: dict[str, Any] = {"delta": 1e-4, "rows_per_person": "one"}

    def as_memory(**options: Any) -> Any:
        return sdp.estimate_mean(numbers, 0.0, 100.0, 1.0, person=PERSONS, **options)

    def as_table(**options: Any) -> Any:
        return sdp.mean_of_table(table, "hours", 0.0, 100.0, 1.0, person="who", **options)

    def as_fit(**options: Any) -> Any:
        return sdp.MeanEstimator(0.0, 100.0, **options).fit(numbers, budgets=1.0, person=PERSONS).fitted()

    def as_fit_table(**options: Any) -> Any:
        return sdp.MeanEstimator(0.0, 100.0, **options).fit_table(table, "hours", budgets=1.0, person="who").fitted()

    def as_release(**options: Any) -> Any:
        return sdp.release(sdp.Mean(0.0, 100.0), table, value="hours", budgets=1.0, person="who", **options)

    def as_parts(**options: Any) -> Any:
        terms = {name: options[name] for name in ("delta", "ledger") if name in options}
        rule = {name: options[name] for name in ("rows_per_person",) if name in options}
        ask = sdp.Ask(sdp.Mean(0.0, 100.0), "hours")
        return sdp.release(ask, sdp.People(table, 1.0, person="who", **rule), sdp.Terms(**terms))

    def as_together(**options: Any) -> Any:
        ask = sdp.Ask(sdp.Mean(0.0, 100.0), "hours")
        return sdp.release_together([ask], table, budgets=1.0, person="who", **options).releases[0]

    def as_groups(**options: Any) -> Any:
        groups = {"by": "side", "groups": ["north"], "value": "hours", "budgets": 1.0, "person": "who"}
        return sdp.release_by(sdp.Mean(0.0, 100.0), table, **groups, **options).releases["north"]

    fronts = (as_memory, as_table, as_fit, as_fit_table, as_release, as_parts, as_together, as_groups)
    place = tmp_path / "people.ledger"
    with sdp.Ledger(place, make=True) as ledger:
        for front in fronts:
            found = front(ledger=ledger, **asked)
            assert (found.n, found.unit) == (N // 2, "people"), front.__name__
        assert len(ledger.entries()) == len(fronts)
    typed = shlex.split(f"mean {file} --value hours --low 0 --high 100 --epsilon0 1 --delta 1e-4 --person who")
    with pytest.raises(SystemExit) as stopped:
        main([*typed, "--rows-per-person", "one", "--ledger", str(place), "--json"])
    assert not stopped.value.code
    assert json.loads(capsys.readouterr().out)["n"] == N // 2
    with sdp.Ledger(place) as ledger:
        assert len(ledger.entries()) == len(fronts) + 1
    said = set()
    for front in fronts:
        with pytest.raises(sdp.InvalidInput) as refused:
            front(delta=1e-4)
        said.add(str(refused.value))
    assert len(said) == 1
    with pytest.raises(SystemExit):
        main(typed)
    assert in_options(said.pop(), typed, options_of(typed)) in capsys.readouterr().err
