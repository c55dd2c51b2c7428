"""One question of public groups: each is a population of its own, and the weakest guarantee is the one told."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import shuffledp as sdp
from shuffledp.errors import InvalidInput
from shuffledp.ledger import Ledger
from shuffledp.numerics.randomness import simulation_random
from shuffledp.releases import engine

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
