"""One question of public groups: each is a population of its own, and the weakest guarantee is the one told."""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl
import pytest

import shuffledp as sdp
from shuffledp.errors import InvalidInput
from shuffledp.ledger import Ledger
from shuffledp.numerics.randomness import simulation_random
from shuffledp.releases import engine
from shuffledp.tables import TableOptions

ROWS = 1200
SIDES = np.array(["north"] * 400 + ["south"] * 800)
PEOPLE = {
    "side": SIDES,
    "vote": np.where(np.arange(ROWS) % 4 == 0, "yes", "no"),
    "hours": np.where(SIDES == "north", 10.0, 30.0),
    "budget": np.where(SIDES == "north", 1.0, np.where(np.arange(ROWS) % 2 == 0, 0.5, 700.0)),
    "person": [f"p{i // 2}" for i in range(ROWS)],
}
ASK = {"value": "hours", "budgets": 700.0, "seen": "reports", "delta": 1e-6}
NAMES = ("north", "south")


def by(question=None, data=PEOPLE, groups=NAMES, **changes):
    return sdp.release_by(question or sdp.Mean(0, 40), data, by="side", groups=groups, **(ASK | changes))


@pytest.mark.parametrize("form", ["memory", "table"])
def test_each_group_gets_its_own_answer(form, tmp_path):
    """A budget of 700 nats leaves of a one-bit mean only its sampling noise: within 5 sigma of the group's own."""
    data = PEOPLE
    if form == "table":
        data = tmp_path / "people.csv"
        pl.DataFrame(PEOPLE).write_csv(data)
    found = by(data=data)
    for name, mean, n in (("north", 10.0, 400), ("south", 30.0, 800)):
        release = found.releases[name]
        assert release.n == n
        assert abs(release.estimate - mean) < 5 * 40 * np.sqrt(0.25 * 0.75 / n)
    assert found.to_frame()["group"].to_list() == ["north", "south"]


def test_a_groups_guarantee_is_that_of_its_people_alone():
    found = by(sdp.Frequency(["yes", "no"]), value="vote", budgets="budget")
    for name in NAMES:
        alone = {key: np.asarray(column)[name == SIDES] for key, column in PEOPLE.items()}
        ask = ASK | {"value": "vote", "budgets": "budget"}
        own = sdp.release(sdp.Frequency(["yes", "no"]), alone, **ask)
        assert found.releases[name].guarantee.epsilon == own.guarantee.epsilon
    assert found.guarantee.epsilon.upper == max(each.guarantee.epsilon.upper for each in found.releases.values())


def test_the_noise_of_a_group_is_that_of_its_people_alone():
    """With one seed, one group of all people is the release without groups."""
    everybody = PEOPLE | {"side": ["all"] * ROWS}
    ask = ASK | {"budgets": 1.0}
    one = by(data=everybody, groups=("all",), budgets=1.0, random=simulation_random(3)).releases["all"]
    whole = sdp.release(sdp.Mean(0, 40), everybody, **ask, random=simulation_random(3))
    assert one.estimate == whole.estimate
    assert one.guarantee.epsilon == whole.guarantee.epsilon


def test_every_group_is_certified_before_a_record_is_read(monkeypatch):
    monkeypatch.setattr(engine, "collect", lambda *_: pytest.fail("a record was read"))
    with pytest.raises(InvalidInput, match="below 1/n"):
        by(delta=2e-3)  # fine for the 400, not for the 800


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"groups": ("north",)}, "is none of the groups"),
        ({"groups": ("north", "south", "east")}, "nobody is in the group east"),
        ({"groups": ("north", "north")}, "different groups"),
        ({"groups": ()}, "different groups"),
        ({"data": PEOPLE | {"side": [None, *SIDES[1:]]}}, "side in row 1 is missing"),
        ({"data": PEOPLE | {"person": ["same"] * ROWS}, "person": "person", "rows_per_person": ROWS}, "several groups"),
    ],
)
def test_refusals(changes, told):
    with pytest.raises(InvalidInput, match=told):
        by(**changes)


@pytest.mark.costly
def test_people_with_several_rows_in_one_group_are_counted_as_people():
    found = by(person="person", rows_per_person=2)
    assert [release.n for release in found.releases.values()] == [200, 400]
    assert found.guarantee.setting.group_size == 2


def test_one_row_of_each_person_may_lie_in_any_group():
    found = by(data=PEOPLE | {"person": [f"p{i % 600}" for i in range(ROWS)]}, person="person", rows_per_person="one")
    assert found.n == 600


def test_a_row_that_is_not_used_may_have_a_budget_that_nobody_else_has():
    """Levels were looked up for rows that were not chosen, too: one row each of two people, budgets 0.5 or 2."""
    people = {"person": ["a", "a", "b", "b"], "vote": ["yes", "no"] * 2, "budget": [0.5, 2.0, 0.5, 2.0]}
    ask = {"value": "vote", "budgets": "budget", "seen": "reports", "delta": 1e-3}
    for _ in range(12):
        found = sdp.release(sdp.Frequency(["yes", "no"]), people, **ask, person="person", rows_per_person="one")
        assert found.n == 2


@pytest.mark.costly
def test_the_ledger_enters_the_costliest_group_once(tmp_path):
    with Ledger(tmp_path / "l", make=True) as ledger:
        found = by(budgets="budget", ledger=ledger, data=PEOPLE | {"budget": np.where(SIDES == "north", 1.0, 2.0)})
        (entry,) = ledger.entries()
    assert entry.spending.epsilon == found.guarantee.epsilon.upper
    assert entry.spending.n == ROWS
    for name, epsilon0 in (("north", 1.0), ("south", 2.0)):
        (level,) = (level for level in entry.spending.levels if level.epsilon0 == epsilon0)
        upper = found.releases[name].guarantee.epsilon.upper
        assert upper <= level.profile.epsilon(1e-6).upper <= 1.05 * upper
    assert entry.question.endswith("by group")


@pytest.mark.costly
def test_the_limit_says_what_would_fit(tmp_path):
    with Ledger(tmp_path / "l", make=True) as ledger:
        ledger.set_limit(0.05, 1e-5)
        with pytest.raises(InvalidInput, match="what would fit: all budgets times 0"):
            by(budgets=1.0, ledger=ledger)
        assert ledger.entries() == []


@pytest.mark.parametrize(
    "question",
    [sdp.Frequency(["yes", "no"]), sdp.Histogram(0, 40, 4), sdp.Quantiles(0, 40, bins=8), sdp.Variance(0, 40)],
)
def test_every_question_can_be_asked_by_group(question):
    found = by(question, value="vote" if isinstance(question, sdp.Frequency) else "hours", budgets=2.0)
    assert set(found.releases) == set(NAMES)
    assert found.to_frame()["n"].to_list()[0] == 400


# Only rows with public values: `where`.

CITIES = {
    "city": np.array(["Oslo", "Bergen", " Oslo", ""] * 300),
    "age": np.array([30, 31, 30, 32] * 300),
    "vote": np.array(["yes", "no", "no", "yes"] * 300),
    "hours": np.array([10.0, 99.0, 30.0, np.nan] * 300),
    "budget": np.array([0.5, -1.0, 1.0, np.nan] * 300),
    "word": np.array(["low", "?", "high", ""] * 300),
    "person": np.array([f"p{i // 8}" for i in range(1200)]),
    "side": np.array(["north", "?", "south", "?"] * 300),
}
OSLO = {"city": "Oslo"}
FORMS = ("memory", "frame", "file")


def as_form(form, folder, data=CITIES):
    if form == "memory":
        return data
    frame = pl.DataFrame({name: np.asarray(column).tolist() for name, column in data.items()}, nan_to_null=True)
    if form == "frame":
        return frame
    frame.write_csv(folder / "people.csv")
    return folder / "people.csv"


def chosen(rows):
    return {name: column[rows] for name, column in CITIES.items()}


@pytest.mark.costly(
    but=(
        "column-file",
        "column-frame",
        "column-memory",
        "consent-file",
        "consent-frame",
        "one-file",
        "one-frame",
        "one-memory",
    )
)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "asked",
    [
        {"budgets": 1.0},
        {"budgets": "budget", "seen": "levels"},
        {"budgets": "word", "consent": {"low": 0.5, "high": 1.0}, "seen": "reports"},
        {"budgets": 1.0, "person": "person", "rows_per_person": 4},
        {"budgets": 1.0, "person": "person", "rows_per_person": "one"},
        {"target_epsilon": 0.2},
    ],
    ids=["one", "column", "consent", "four rows", "one row", "target"],
)
def test_the_rows_that_are_asked_are_a_table_of_their_own(form, asked, tmp_path):
    """With one seed: the same numbers, guarantee and unit as the table of these rows; other rows are not looked at."""
    ask = {"value": "hours", "delta": 1e-6, **asked, "rows": 100}
    found = sdp.release(sdp.Mean(0, 40), as_form(form, tmp_path), **ask, where=OSLO, random=simulation_random(5))
    alone = chosen(np.isin(CITIES["city"], ["Oslo", " Oslo"]))
    ask["rows"] = 50  # batches of the same rows: noise is drawn batch by batch
    own = sdp.release(sdp.Mean(0, 40), as_form(form, tmp_path, alone), **ask, random=simulation_random(5))
    assert (found.n, found.rows, found.unit) == (own.n, own.rows, own.unit)
    assert found.rows == (150 if asked.get("rows_per_person") == "one" else 600)
    assert found.estimate == own.estimate
    assert found.guarantee.epsilon == own.guarantee.epsilon
    assert (found.where, own.where) == ({"city": ("Oslo",)}, {})


@pytest.mark.costly("where0-rows0-memory")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ({"city": ["Oslo", "Bergen"]}, [0, 1, 2]),
        ({"city": "Oslo", "vote": "no"}, [2]),
        ({"age": 30}, [0, 2]),
        ({"age": "30"}, [0, 2]),
        ({"age": [30.0, 32]}, [0, 2, 3]),
        ({"budget": 0.5}, [0]),
        (None, [0, 1, 2, 3]),
        ({}, [0, 1, 2, 3]),
    ],
)
def test_a_row_needs_one_value_of_each_column(form, where, rows, tmp_path):
    data = CITIES | {"budget": np.where(CITIES["age"] == 30, CITIES["budget"], 2.0)}
    question = sdp.Histogram(0, 100, 4)
    ask = {"value": "age", "budgets": "budget", "seen": "levels", "delta": 1e-6}
    if where and "age" in where:
        ask |= {"value": "hours", "missing_as": 0.0}
    found = sdp.release(question, as_form(form, tmp_path, data), **ask, where=where)
    assert found.n == 300 * len(rows)
    levels = {float(data["budget"][row]) for row in rows}
    assert {level.epsilon0 for level in found.guarantee.levels} == levels


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("question", "value", "changes"),
    [
        (sdp.Frequency(["yes", "no"]), "vote", {"vote": "maybe"}),
        (sdp.FrequentItems(max_length=3, alphabet="lower"), "vote", {"vote": "maybe"}),
        (sdp.Mean(0, 40), "hours", {"hours": 41.0}),
        (sdp.Mean(0, 40), "hours", {"hours": np.nan}),
        (sdp.VectorMean(1, 40.0), ("hours",), {"hours": 41.0}),
        (sdp.Mean(0, 40), "hours", {"budget": -0.5}),
        (sdp.Mean(0, 40), "hours", {"word": "maybe"}),
        (sdp.Mean(0, 40), "hours", {"person": ""}),
        (sdp.Mean(0, 40), "hours", {"side": "maybe"}),
    ],
)
def test_a_refusal_names_the_row_as_the_table_numbers_it(form, question, value, changes, tmp_path):
    """The bad entry stands in row 803, which is the 402nd of those that are asked, in the second batch."""
    data = {name: column.astype(object) for name, column in CITIES.items()}
    for name, bad in changes.items():
        data[name][802] = bad
    for name in ("hours", "budget", "age"):
        data[name] = data[name].astype(float)
    asked = {"value": value, "budgets": 1.0, "delta": 1e-6, "where": OSLO, "rows": 500, "seen": "reports"}
    asked |= {"budgets": "budget"} if "budget" in changes else {}
    asked |= {"budgets": "word", "consent": {"low": 0.5, "high": 1.0}} if "word" in changes else {}
    asked |= {"person": "person", "rows_per_person": 4} if "person" in changes else {}
    data = {name: column.astype(str) if column.dtype == object else column for name, column in data.items()}
    ask = partial(sdp.release_by, by="side", groups=NAMES) if "side" in changes else sdp.release
    with pytest.raises(InvalidInput, match=r"in row 803 "):
        ask(question, as_form(form, tmp_path, data), **asked)


def test_groups_of_the_rows_that_are_asked():
    found = sdp.release_by(
        sdp.Mean(0, 40), CITIES, by="side", groups=NAMES, value="hours", budgets=1.0, delta=1e-6, where=OSLO
    )
    assert [each.n for each in found.releases.values()] == [300, 300]
    assert all(each.where == {"city": ("Oslo",)} for each in found.releases.values())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("where", "told"),
    [
        ({"city": "Oslu"}, r"has city = Oslu, as `where` asks; name one of the column's values, or leave `where` out"),
        ({"city": ["Oslo", "Rome"]}, r"has city = Rome, .* leave `where` out to ask every row"),
        ({"town": "Oslo"}, r"no column 'town' in .*its columns are city, age"),
        ({"person": "nobody"}, r"name one of the column's values, or leave `where` out"),
        ({"city": "Bergen", "age": 30}, r"is asked: city is Bergen, and age is 30 holds of none; name other values"),
        ({"vote": "yes"}, r"`where` makes the column 'vote' public, and it is the one that is asked"),
        ({" vote": "yes"}, r"`where` makes the column ' vote' public, and it is the one that is asked"),
        ({"city": []}, r"`where` names no value of city"),
        ({"city": ""}, r"`where` names an empty value of city"),
        ({"city": ["Oslo", "Oslo "]}, r"are one word"),
        ("city", r"`where` must name columns and their values, as \{'city': 'Oslo'\}; got 'city'"),
    ],
)
def test_what_nobody_has_is_refused(form, where, told, tmp_path):
    ask = {"value": "vote", "budgets": 1.0, "delta": 1e-6, "where": where}
    with pytest.raises(InvalidInput, match=told):
        sdp.release(sdp.Frequency(["yes", "no"]), as_form(form, tmp_path), **ask)


@pytest.mark.parametrize("entry", ["secret", ""])
def test_an_entry_of_a_row_that_is_not_asked_refuses_nothing(entry, tmp_path):
    """It was refused with the row's number: what stands in a row that is not asked showed."""
    rows = "".join(f"Oslo,{place % 40}\nBergen,{entry if place == 7 else 3}\n" for place in range(300))
    (tmp_path / "t.csv").write_text(f"city,hours\n{rows}", encoding="utf-8")
    ask = {"value": "hours", "budgets": 1.0, "delta": 1e-6}
    found = sdp.release(sdp.Mean(0, 40), tmp_path / "t.csv", where={"city": "Oslo"}, **ask)
    assert found.n == 300
    with pytest.raises(InvalidInput, match="in row 16 is "):
        sdp.release(sdp.Mean(0, 40), tmp_path / "t.csv", where={"city": "Bergen"}, **ask)


def test_the_values_of_a_column_are_listed_only_for_who_may_see_the_table():
    """A column named by mistake may be private: its values stood in the message, and so in a log."""
    ask = {"value": "hours", "budgets": 1.0, "delta": 1e-6, "table_options": TableOptions(show_values=True)}
    with pytest.raises(InvalidInput, match="the column's values, Bergen, Oslo, or leave"):
        sdp.release(sdp.Mean(0, 40), CITIES, where={"city": "Oslu"}, **ask)
    with pytest.raises(InvalidInput, match="values, of which there are more than 20, or leave"):
        sdp.release(sdp.Mean(0, 40), CITIES, where={"person": "nobody"}, **ask)


def test_a_set_of_values_has_the_same_order_in_every_process():
    """Titles in a ledger and JSON list the values."""
    ask = {"value": "vote", "budgets": 1.0, "delta": 1e-6}
    found = sdp.release(sdp.Frequency(["yes", "no", "none"]), CITIES, where={"city": {"Oslo", "Bergen"}}, **ask)
    assert found.where == {"city": ("Bergen", "Oslo")}


def test_a_column_of_groups_is_not_asked():
    """Its entries would be public by being groups, and an answer about them protects nobody."""
    with pytest.raises(InvalidInput, match="`by` makes the column 'vote' public, and it is the one that is asked"):
        sdp.release_by(
            sdp.Frequency(["yes", "no"]), CITIES, by="vote", groups=["yes", "no"], value="vote", budgets=1.0, delta=1e-6
        )
    crossed = [f"{side} / {vote}" for side in NAMES for vote in ("yes", "no")]
    with pytest.raises(InvalidInput, match="`by` makes the column 'vote' public, and it is the one that is asked"):
        sdp.release_by(
            sdp.Frequency(["yes", "no"]), CITIES, by="side,vote", groups=crossed, value="vote", budgets=1.0, delta=1e-6
        )


def test_rows_that_change_between_the_passes_are_refused(monkeypatch):
    """A row that gets the public value after the people were counted is not among those that the guarantee is for."""
    data = chosen(slice(None))
    certified = engine.OneMachine.tallies

    def later(self, *given):
        data["city"][1] = "Oslo"
        data["hours"][1] = 20.0
        return certified(self, *given)

    monkeypatch.setattr(engine.OneMachine, "tallies", later)
    with pytest.raises(InvalidInput, match="had 600 rows when its budgets were counted and 601 afterwards"):
        sdp.release(sdp.Mean(0, 40), data, value="hours", budgets=1.0, delta=1e-6, where=OSLO)


@pytest.mark.costly
def test_the_ledger_names_the_rows(tmp_path):
    ledger = Ledger(tmp_path / "spent.db", make=True)
    sdp.release(sdp.Mean(0, 40), CITIES, value="hours", budgets=1.0, delta=1e-6, where=OSLO, ledger=ledger)
    (entry,) = ledger.entries()
    assert entry.title == "mean of hours where city is Oslo"


def test_records_in_memory_have_no_column_to_choose_by():
    with pytest.raises(InvalidInput, match="`where` chooses rows by a column, and records in memory have none"):
        sdp.estimate_mean([1.0, 2.0], 0.0, 4.0, 1.0, delta=0.1, where=OSLO)
