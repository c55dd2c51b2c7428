"""`missing_person`: a row without a person is refused, or is the only row of a person of its own."""

from __future__ import annotations

import pytest

import shuffledp as sdp
from shuffledp.errors import InvalidInput

GAPS = (None, "", "NA")
WHO = [f"p{i // 2}" for i in range(300)] + [GAPS[i % 3] for i in range(150)]
SIDES = (["a"] * 100 + ["b"] * 200) + ["a"] * 50 + ["b"] * 100
PEOPLE = {"who": WHO, "vote": ["yes", "no", "yes"] * 150, "side": SIDES}


def asked(**changed):
    terms = {"value": "vote", "budgets": 1.0, "delta": 1e-4, "person": "who", "rows": 64} | changed
    return sdp.release(sdp.Frequency(["yes", "no"]), PEOPLE, **terms)


def test_such_a_row_is_refused():
    with pytest.raises(
        InvalidInput, match=r"who in row 301 is .*nobody knows whose row it is; .* `missing_person = 'own'`"
    ):
        asked(rows_per_person=2)


def test_each_counts_as_a_person_and_the_group_of_rows_is_still_protected():
    found = asked(rows_per_person=2, missing_person="own")
    assert found.n == 150 + 150
    assert found.guarantee.setting.group_size == 2
    assert found.guarantee.setting.budgets.n == 450


def test_one_row_each_keeps_all_of_them():
    found = asked(rows_per_person="one", missing_person="own")
    assert found.n == 300
    assert found.guarantee.setting.budgets.n == 300


def test_people_with_several_rows_are_refused_as_before():
    with pytest.raises(InvalidInput, match="150 of 300 people own several rows"):
        asked(missing_person="own")


def test_groups_count_them_too():
    ask = {"value": "vote", "budgets": 1.0, "delta": 1e-3, "person": "who", "rows_per_person": 2, "rows": 64}
    by = {"by": "side", "groups": ["a", "b"], "missing_person": "own"}
    found = sdp.release_by(sdp.Frequency(["yes", "no"]), PEOPLE, **ask, **by)
    assert {name: each.n for name, each in found.releases.items()} == {"a": 50 + 50, "b": 100 + 100}


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"person": None, "missing_person": "own"}, "needs the column that tells whose row it is"),
        ({"missing_person": "skip"}, "missing_person must be"),
    ],
)
def test_what_does_not_fit(changed, error):
    with pytest.raises(InvalidInput, match=error):
        asked(**changed)
