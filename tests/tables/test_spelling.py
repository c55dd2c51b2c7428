"""What "the same word" means, for every kind of name."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shuffledp as sdp
from shuffledp.errors import InvalidInput
from shuffledp.tables import Table, canonical, canonical_texts
from shuffledp.tables.options import one_spelling, spelled, twice

SPELLINGS = {
    "5": ["5", "5.0", " 5", "5\t", "5.000", "\ufeff5", "5\u200b"],
    "0": ["0", "-0", "0.0", "-0.0", "-0.000"],
    "Zo\u00eb": ["Zo\u00eb", "Zoe\u0308", "Zoe\u200b\u0308", "\u00a0Zo\u00eb\u2003"],
    "\u212b": [],
    "\u00c5sa": ["\u212bsa", "A\u030asa", "\u00c5sa"],
    "\uac00": ["\u1100\u1161", "\uac00"],
    "Anna Maria": [
        "Anna Maria",
        "Anna\u00a0Maria",
        "Anna  Maria",
        "Anna\nMaria",
        "Anna\u202f\tMaria",
        "Anna Ma\u00adria",
    ],
    "10000000000000000": ["10000000000000000", "1e+16", "1.0E16", "1.0e16", "10000000000000000.0"],
    "-12500000000000000000": ["-1.25e19", "-1.25E+19"],
}
DIFFERENT = [
    "7",
    "07",
    "7.5",
    "7.50",
    "yes",
    "Yes",
    "1e16",
    "4e21",
    "1E5",
    "100000",
    "a\u200cb",
    "ab",
    "\u0430b",
    "a\x00b",
]


@pytest.mark.parametrize("one", SPELLINGS)
def test_what_looks_the_same_is_one_word(one):
    assert [canonical(text) for text in SPELLINGS[one]] == [one] * len(SPELLINGS[one])
    assert canonical_texts(pl.Series(SPELLINGS[one], dtype=pl.String)).to_list() == [one] * len(SPELLINGS[one])


def test_what_looks_different_is_not():
    assert [canonical(text) for text in DIFFERENT] == DIFFERENT
    assert canonical_texts(pl.Series(DIFFERENT)).to_list() == DIFFERENT


@pytest.mark.costly
@given(
    st.lists(
        st.text("05.-Ee+16 \t\u00a0\u0308\u00eb\u200b\u0301a\x85\r\x1c\ufeffT", max_size=9) | st.none(), max_size=9
    )
)
def test_a_column_is_spelled_as_its_entries_are(entries):
    column = pl.Series(entries, dtype=pl.String)
    found = canonical_texts(column).to_list()
    assert found == [None if entry is None else canonical(entry) for entry in entries]
    assert found == [None if entry is None else canonical(entry) for entry in found]
    assert column.to_list() == entries  # left as it was
    assert spelled(column).to_list() == spelled(entries).to_list() == [one_spelling(entry) for entry in entries]


def test_the_type_of_a_number_is_no_part_of_the_word():
    values = [5, 5.0, np.int8(5), np.float32(5), Decimal("5.00"), "5", "5.0"]
    assert {one_spelling(value) for value in values} == {"5"}
    assert {one_spelling(value) for value in (-0.0, 0, "-0", np.float64(-0.0), False + 0)} == {"0"}
    for dtype in (pl.Int8, pl.UInt64, pl.Float32, pl.Float64, pl.Decimal(10, 2), pl.String, pl.Categorical):
        column = pl.Series(["5", None]).cast(pl.Decimal(10, 2) if dtype == pl.Decimal(10, 2) else dtype)
        assert spelled(column).to_list() == ["5", None]
    large = [1e16, 2.0**63, -(2.0**63), 1e300, 2.0**53 + 2]
    assert spelled(pl.Series(large)).to_list() == [str(int(value)) for value in large]
    assert [one_spelling(value) for value in large] == [str(int(value)) for value in large]


def test_the_first_two_that_are_one_word():
    assert twice(["5", "x", 5.0, "x"]) == ("5", 5.0)
    assert twice(DIFFERENT) is None


# ------------------------------------------------------------------ persons, groups, consent, categories, columns

VOTE = sdp.Frequency(["yes", "no"])
TOLD = {"value": "vote", "budgets": 1.0, "seen": "reports", "delta": 1e-3}


@pytest.mark.parametrize("form", ["frame", "lists", "objects", "csv"])
@pytest.mark.parametrize(
    "ids",
    [["5", "5.0"], ["Zo\u00eb", "Zoe\u0308"], ["-0", "0"], ["a b", "a\u00a0b"], ["x", "x\u200b"], ["TRUE", "true"]],
    ids=ascii,
)
def test_two_spellings_of_a_person_are_one_person(tmp_path, form, ids):
    """Ids 5 and 5.0 were two people: .0862 was claimed where .181 holds."""
    table = pl.DataFrame({"id": ids + [f"p{k}" for k in range(98)], "vote": ["yes", "no"] * 50})
    data = table
    if form == "lists":
        data = table.to_dict(as_series=False)
    elif form == "objects":
        data = {name: np.array(table[name].to_list(), dtype=object) for name in table.columns}
    elif form == "csv":
        data = tmp_path / "t.csv"
        table.write_csv(data)
    with pytest.raises(InvalidInput, match=r"^1 of 99 people owns several rows \(one owns 2\)"):
        sdp.release(VOTE, data, person="id", **TOLD)
    found = sdp.release(VOTE, data, person="id", rows_per_person=2, **TOLD)
    assert (found.n, found.rows, found.guarantee.setting.group_size) == (99, 100, 2)


def test_persons_of_several_types_are_one_person():
    data = {"id": np.array([5, 5.0, "5", "5.0", *range(6, 102)], dtype=object), "vote": ["yes", "no"] * 50}
    with pytest.raises(InvalidInput, match=r"^1 of 97 people owns several rows \(one owns 4\)"):
        sdp.release(VOTE, data, person="id", **TOLD)


@pytest.mark.parametrize(
    "pair", [("5", 5.0), ("Zo\u00eb", "Zoe\u0308"), ("a b", "a  b"), ("0", "-0"), ("True", "true")]
)
def test_two_spellings_are_not_two_names(pair):
    line = r"^the {} .* and .* are one word, written in two ways; name each {} once$"
    with pytest.raises(InvalidInput, match=line.format("categories", "category")):
        sdp.Frequency(pair)
    with pytest.raises(InvalidInput, match=line.format("categories", "category")):
        sdp.FrequentItems(pair)
    with pytest.raises(InvalidInput, match=line.format("words of consent", "word")):
        sdp.RowBudgets("b", dict.fromkeys(pair, 1.0))
    with pytest.raises(InvalidInput, match=line.format("groups", "group")):
        sdp.release_by(VOTE, {"vote": ["yes"], "side": ["a"]}, by="side", groups=pair, **TOLD)


@pytest.mark.parametrize("form", ["frame", "lists"])
def test_groups_consent_and_categories_are_found_in_any_spelling(form):
    table = pl.DataFrame(
        {
            "vote": ["oui\u0301", "ou\u00ed", " ou\u00ed ", "non\u200b"] * 50,
            "side": ["5", "5.0", "Z\u00fcrich", "Zu\u0308rich"] * 50,
            "level": ["1", "1.0", "hoch ", "ho\u00adch"] * 50,
        }
    )
    data = table if form == "frame" else table.to_dict(as_series=False)
    ask = {"value": "vote", "budgets": "level", "consent": {1: 0.5, "hoch": 1.0}, "seen": "reports", "delta": 1e-3}
    found = sdp.release_by(sdp.Frequency(["ou\u00ed", "non"]), data, by="side", groups=[5, "Z\u00fcrich"], **ask)
    assert [release.n for release in found.releases.values()] == [100, 100]
    assert found.releases[5].guarantee.setting.budgets.epsilons.tolist() == [0.5]


@pytest.mark.parametrize("form", ["frame", "csv", "lists"])
def test_a_column_is_found_in_any_spelling_and_not_twice(tmp_path, form):
    def data(*names: str):
        table = pl.DataFrame({name: ["yes", "no"] * 50 for name in names})
        if form == "csv":
            table.write_csv(tmp_path / "t.csv")
            return tmp_path / "t.csv"
        return table if form == "frame" else table.to_dict(as_series=False)

    ask = TOLD | {"value": "Zo\u00eb"}
    assert sdp.release(VOTE, data("Zoe\u0308 ", "x"), **ask).n == 100
    with pytest.raises(InvalidInput, match=r"^column 'Zoë' stands twice in .*, also as 'Zoe.*'; rename one$"):
        sdp.release(VOTE, data("Zoe\u0308", "Zo\u00eb"), **ask)


def test_spans_of_time_are_refused_as_what_they_are():
    table = Table.of(pl.DataFrame({"x": pl.Series([1, 2]).cast(pl.Duration("ms"))}))
    line = r"^column 'x' holds spans of time \(Duration.*\), neither numbers nor words; write them as numbers first"
    for kind in ("numbers", "texts"):
        with pytest.raises(InvalidInput, match=line):
            list(table.batches(**{kind: ["x"]}))
