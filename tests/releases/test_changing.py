"""A table that changes while it is read: nothing leaves unless what was drawn is what was certified."""

from __future__ import annotations

import os

import numpy as np
import polars as pl
import pytest

import shuffledp as sdp
from shuffledp.errors import InvalidInput
from shuffledp.releases import engine
from shuffledp.releases import run as flow

VOTE = sdp.Frequency(["yes", "no"])
N = 600
TABLE = pl.DataFrame(
    {
        "who": [f"p{k // 2}" for k in range(N)],
        "vote": ["yes", "no"] * (N // 2),
        "budget": [1.0, 1.0, 2.0, 2.0] * (N // 4),
        "side": ["a"] * (N // 2) + ["b"] * (N // 2),
    }
)
ONE_EACH = TABLE.with_columns(who=pl.Series([f"p{k}" for k in range(N)]))
TOLD = {"value": "vote", "budgets": "budget", "delta": 1e-6}
OTHER = "other people or budgets when its records were read than when they were counted, so nothing is released"


@pytest.fixture
def changes(monkeypatch):
    """Have something happen between the passes."""

    def when(change):
        certify = flow.certify

        def afterwards(*given, **named):
            change()
            return certify(*given, **named)

        monkeypatch.setattr(flow, "certify", afterwards)

    return when


def arrays_of(table: pl.DataFrame) -> dict:
    return {name: table[name].to_numpy(writable=True) for name in table.columns}


@pytest.mark.parametrize("seen", ["reports", "levels", "sum"])
def test_budgets_that_change_between_the_passes_release_nothing(changes, seen):
    """Budgets 1, 2 became 2, 2: .17249 was claimed where .21522 is right (seen reports, sum)."""
    data = {"vote": np.array([0, 1] * 300), "budget": np.array([1.0, 2.0] * 300)}
    changes(lambda: data["budget"].fill(2.0))
    with pytest.raises(InvalidInput, match="^the data had " + OTHER):
        sdp.release(sdp.Mean(0, 1), data, **TOLD, seen=seen)


@pytest.mark.costly
@pytest.mark.parametrize("seen", ["reports", "levels", "sum"])
def test_a_ledger_of_a_changed_table_has_no_entry(changes, tmp_path, seen):
    data = {"vote": np.array([0, 1] * 300), "budget": np.array([1.0, 2.0] * 300)}
    with sdp.Ledger(tmp_path / "l", make=True) as ledger:
        changes(lambda: data["budget"].sort())  # the same budgets in another order: as certified
        assert sdp.release(sdp.Mean(0, 1), data, **TOLD, seen=seen, ledger=ledger).n == 600
        changes(lambda: data["budget"].fill(1.0))
        with pytest.raises(InvalidInput, match=OTHER):
            sdp.release(sdp.Mean(0, 1), data, **TOLD, seen=seen, ledger=ledger)
        assert len(ledger.entries()) == 1


@pytest.mark.costly("2")
@pytest.mark.parametrize("rule", ["refuse", 2, "one"])
def test_persons_that_change_between_the_passes_release_nothing(changes, rule):
    """One person had all rows in the second pass, and a guarantee of somebody with one."""
    data = arrays_of(ONE_EACH if rule == "refuse" else TABLE)
    changes(lambda: data["who"].__setitem__(slice(4), "p0"))
    with pytest.raises(InvalidInput, match=OTHER):
        sdp.release(VOTE, data, **TOLD, seen="reports", person="who", rows_per_person=rule)


@pytest.mark.costly("kept0")
@pytest.mark.parametrize("kept", [range(300, N), range(N)])
def test_a_row_that_loses_its_person_between_the_passes_releases_nothing(changes, kept):
    """Two rows of one person were counted, and would be two people's; or rows without a person become one's."""
    data = arrays_of(TABLE) | {"who": TABLE["who"].to_numpy(writable=True).astype(object)}
    data["who"][: N - len(kept)] = ""
    changes(lambda: data["who"].__setitem__(slice(2), "p0" if kept[0] else ""))
    with pytest.raises(InvalidInput, match=OTHER):
        sdp.release(VOTE, data, **TOLD, seen="reports", person="who", rows_per_person=2, missing_person="own")


def test_persons_that_swap_their_budgets_release_nothing(changes):
    """Rows of p0 got budgets 1 and 2, and so did those of p1: as many at each level, and nothing is proved for them."""
    data = arrays_of(TABLE)
    changes(lambda: data["budget"].__setitem__(slice(4), [1.0, 2.0, 1.0, 2.0]))
    with pytest.raises(InvalidInput, match=OTHER):
        sdp.release(VOTE, data, **TOLD, seen="levels", person="who", rows_per_person=2)


@pytest.mark.parametrize("person", [None, "who"])
def test_rows_that_move_to_another_group_release_nothing(changes, person):
    data = arrays_of(ONE_EACH)
    changes(lambda: data["side"].__setitem__([0, N - 1], ["b", "a"]))
    with pytest.raises(InvalidInput, match=OTHER):
        sdp.release_by(VOTE, data, **TOLD, seen="reports", by="side", groups=["a", "b"], person=person)


def test_rows_in_another_order_are_the_same_people(changes):
    data = arrays_of(TABLE)
    order = np.random.default_rng(0).permutation(N)
    changes(lambda: [column.__setitem__(slice(None), column[order]) for column in data.values()])
    assert sdp.release(VOTE, data, **TOLD, seen="levels", person="who", rows_per_person=2).n == N // 2
    with pytest.raises(InvalidInput, match=OTHER):  # the chosen row of each is known by its place
        sdp.release(VOTE, data, **TOLD, seen="levels", person="who", rows_per_person="one")


@pytest.mark.costly
def test_threads_count_together(changes, monkeypatch):
    monkeypatch.setattr(engine, "_ONE_BATCH", 10)
    monkeypatch.setattr(engine, "workers", lambda: 3)
    asked = [sdp.Ask(VOTE, "vote"), sdp.Ask(sdp.Mean(0, 2), "spent")]
    told = {"budgets": "budget", "delta": 1e-6, "seen": "reports", "person": "who", "rows": 7}
    data = arrays_of(ONE_EACH)
    data["spent"] = data["budget"].copy()
    assert [found.n for found in sdp.release_together(asked, data, **told).releases] == [N, N]
    changes(lambda: data["who"].__setitem__(0, "p7"))
    with pytest.raises(InvalidInput, match=OTHER):
        sdp.release_together(asked, data, **told)


@pytest.mark.costly
@pytest.mark.parametrize("seen", ["reports", "levels"])
def test_many_levels_are_compared_by_one_sum(changes, monkeypatch, seen):
    monkeypatch.setattr(engine, "MOST_LEVELS", 3)
    budgets = np.linspace(0.5, 1.0, 500)
    data = {"vote": np.array([0, 1] * 250), "budget": budgets.copy()}
    assert sdp.release(sdp.Mean(0, 1), data, **TOLD, seen=seen).n == 500
    changes(lambda: data["budget"].__setitem__(0, budgets[-1]))
    with pytest.raises(InvalidInput, match=OTHER):
        sdp.release(sdp.Mean(0, 1), data, **TOLD, seen=seen)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_file_written_anew_between_the_passes_is_refused(changes, tmp_path, form):
    """Of the same rows, too: in the middle of a pass half of it may be old, and half new."""
    file = tmp_path / f"people.{form}"

    def write(budget: float) -> None:
        table = ONE_EACH.with_columns(budget=pl.Series([budget, 2.0] * (N // 2)))
        (table.write_csv if form == "csv" else table.write_parquet)(file)
        os.utime(file, ns=(0, int(budget * 1e9)))

    write(1.0)
    assert sdp.release(VOTE, file, **TOLD, seen="reports").n == N
    changes(lambda: write(2.0))
    with pytest.raises(InvalidInput, match=r"people\.\w+ (was written|had other people).*leave it unchanged until"):
        sdp.release(VOTE, file, **TOLD, seen="reports")


@pytest.mark.parametrize("name", ["missing_as", "other"])
@pytest.mark.parametrize("question", [sdp.Crosstab(["a", "b"], ["c", "d"]), sdp.Frequency(["a", "b"]), sdp.Mean(0, 1)])
def test_what_replaces_a_record_is_one_word(question, name):
    """An array ended in NumPy's ValueError on its truth."""
    columns = {"x": ["a", "b"] * 50, "y": ["c", "d"] * 50}
    value = ["x", "y"] if question.name == "crosstab" else "x"
    with pytest.raises(sdp.InvalidInput, match=f"^`{name}` must be one word or number; got array"):
        sdp.release(question, columns, value=value, budgets=1.0, delta=1e-6, **{name: np.array(["a", "c"])})
