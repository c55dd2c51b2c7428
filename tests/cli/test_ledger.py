"""`--ledger` of the estimates, `ledger` and `total`, through the real command line."""

from __future__ import annotations

import json
import math
import sqlite3
from pathlib import Path

import polars as pl
import pytest

import shuffledp as sdp
from shuffledp.ledger import Ledger
from tests.ledger.test_store import of_version_1

MEAN = ("mean", "people.csv", "--value", "hours", "--low", 0, "--high", 80, "--epsilon0", 1, "--delta", 1e-6)
QUESTIONS = {
    "mean": MEAN,
    "frequency": ("frequency", "people.csv", "--value", "vote", "--categories", "yes,no", *MEAN[8:]),
    "histogram": ("histogram", *MEAN[1:], "--bins", 8),
    "quantiles": ("quantiles", *MEAN[1:], "--bins", 8),
    "variance": ("variance", *MEAN[1:]),
    "vector-mean": ("vector-mean", "people.csv", "--values", "hours", "--norm", 80, "--epsilon0", 1, "--delta", 1e-6),
}  # fmt: skip


@pytest.fixture(autouse=True)
def people(tmp_path):
    rows = 2000
    columns = {"hours": [20.0, 40.0] * (rows // 2), "vote": ["yes", "no"] * (rows // 2)}
    pl.DataFrame(columns).write_csv(tmp_path / "people.csv")


@pytest.fixture
def made(run):
    run("ledger", "p.ledger", "--new")


@pytest.mark.costly(but=("vector-mean",))
@pytest.mark.parametrize("name", QUESTIONS)
def test_every_estimate_is_entered(run, made, name):
    options = ("--ledger", "p.ledger", "--population", "panel", "--fixed-in-advance", "plan", "--title", "Wave 1")
    found = run(*QUESTIONS[name], *options, "--json").json
    with Ledger("p.ledger") as ledger:
        (entry,) = ledger.entries()
    assert (entry.title, entry.population, entry.plan) == ("Wave 1", "panel", "plan")
    assert entry.spending.epsilon == found["guarantee"]["epsilon"]["upper"]
    assert entry.task == found["fingerprint"]


def test_what_a_limit_costs_is_said_where_it_is_set(run):
    """A limit of 1 refuses a single release of 1, and admits a hundred that add up to more."""
    text = " ".join(run("ledger", "p.ledger", "--limit", "1,1e-6").out.split())
    assert "kept as a Gaussian shift of mu = 0.2355, whose squares add up: it has room for one release of" in text
    assert "of epsilon 0.1878 at delta 0 (not for one of 1), or for 100 of 0.01877 (together 1.877)." in text


def test_the_object_of_the_contract(run):
    run("ledger", "p.ledger", "--limit", "1,1e-6")
    run(*MEAN, "--ledger", "p.ledger")
    found = run("ledger", "p.ledger", "--json").json
    (entry,) = found["entries"]
    assert {"title", "date", "population", "epsilon", "delta"} <= set(entry)
    assert found["total"] == {"epsilon": 1.0, "delta": 1e-6}
    assert found["limit"].items() >= found["total"].items()
    assert 0.0 < found["meter"]["mu"] < found["limit"]["mu"]
    assert 0.0 < found["meter"]["outside"] < found["limit"]["outside"]
    assert found["total_if_fixed"]["epsilon"]["upper"] == pytest.approx(entry["epsilon"], rel=1e-2)  # kept at knots
    assert found["total_if_fixed"]["delta"] == 1e-6


def test_without_a_limit_nothing_is_claimed_for_questions_chosen_on_the_way(run, made):
    for _ in range(2):
        run(*MEAN, "--ledger", "p.ledger")
    found = run("ledger", "p.ledger", "--json").json
    assert found["limit"] is None
    assert found["total"] is None
    assert found["total_if_fixed"]["fixed"] is False
    assert any("no number may be claimed" in note for note in found["notes"])
    assert "no number may be claimed" in " ".join(run("ledger", "p.ledger").out.split())


def test_a_plan_may_be_added_up(run, made):
    for _ in range(2):
        run(*MEAN, "--ledger", "p.ledger", "--fixed-in-advance", "waves")
    found = run("ledger", "p.ledger", "--json", "--delta", "1e-5", "--report", "l.html").json
    assert found["total_if_fixed"]["fixed"] is True
    assert found["total_if_fixed"]["delta"] == 1e-5
    with open("l.html", encoding="utf-8") as page:
        text = page.read()
    assert "fixed in advance" in text
    assert text.count("<dt>") == 10
    assert text.count("<tr><td>") + text.count('<tr role="row"><td') == 3  # two releases, and the level that is in both
    assert "http" not in text


@pytest.mark.costly
def test_the_limit_refuses_in_one_line_that_says_what_fits(run):
    run("ledger", "p.ledger", "--limit", "0.05,1e-6")
    error = run(*MEAN, "--ledger", "p.ledger").error
    assert "nothing was released; what would fit: all budgets times 0." in error
    assert run("ledger", "p.ledger", "--json").json["entries"] == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("ledger", "none.ledger"), "there is no ledger none.ledger"),
        (("ledger", "people.csv"), "name another file"),
        (("ledger", "q.ledger", "--limit", "1"), "--limit must be EPSILON,DELTA"),
        (("ledger", "q.ledger", "--limit", "0,1e-6"), "epsilon above 0"),
        (("ledger", "p.ledger", "--disjoint", "a"), "two or more"),
        ((*MEAN, "--fixed-in-advance", "x"), "--ledger"),
        ((*MEAN, "--ledger", "p.ledger", "--simulation-seed", 1), "not private"),
        ((*MEAN, "--ledger", "people.csv"), "name another file"),
        (("total", "people.csv", "--delta", "1e-6"), "holds no guarantee"),
        (("total", "none.json", "--delta", "1e-6"), "cannot be read"),
        (("ledger", "p.ledger", "--disjoint", "north,"), "--disjoint takes names of populations with commas between"),
    ],
)
def test_bad_input_is_one_line(run, made, arguments, told):
    assert told in run(*arguments).error


TRAIN = ("train", "people.csv", "--label", "vote", "--features", "hours:0:80", "--unit", "client", "--seen", "reports",
         "--epsilon0", 4, "--delta", 1e-5, "--classes", "no,yes", "--holdout", 0)  # fmt: skip


def test_one_command_makes_a_ledger_and_nothing_else_does(run, tmp_path):
    """A mistyped name, and a file of 0 or 1 bytes, became a new ledger without a limit."""
    (tmp_path / "empty.ledger").write_bytes(b"")
    (tmp_path / "short.ledger").write_bytes(b"x")
    release = ("release", "people.csv", "--ask", "mean hours 0 80", *MEAN[8:])
    for name, told in (("none.ledger", "shuffledp ledger none.ledger --new"), ("empty.ledger", "is empty"),
                       ("short.ledger", "is no ledger"), (":memory:", "a file that stays"),
                       ("file:x?mode=memory", "a file that stays")):  # fmt: skip
        for command in (*QUESTIONS.values(), release, TRAIN):
            assert told in run(*command, "--ledger", name).error
        assert told in run("ledger", name, "--disjoint", "a,b").error
    assert (tmp_path / "empty.ledger").stat().st_size == 0
    assert sorted(path.name for path in tmp_path.glob("*")) == ["empty.ledger", "people.csv", "short.ledger"]
    assert "Nothing has been released." in run("ledger", "free.ledger", "--new").out
    assert run("ledger", "kept.ledger", "--limit", "1,1e-6", "--json").json["limit"]["epsilon"] == 1.0
    assert run("ledger", "both.ledger", "--new", "--limit", "2,1e-6", "--json").json["limit"]["epsilon"] == 2.0
    assert "--new makes a ledger, and free.ledger is there" in run("ledger", "free.ledger", "--new").error
    assert "epsilon above 0" in run("ledger", "bad.ledger", "--limit", "0,1e-6").error
    assert not (tmp_path / "bad.ledger").exists()


def test_what_was_changed_from_outside_is_said(run, made, tmp_path):
    run(*MEAN, "--ledger", "p.ledger")
    db = sqlite3.connect(tmp_path / "p.ledger", isolation_level=None)
    (trigger,) = db.execute("SELECT sql FROM sqlite_master WHERE name = 'entry_is_not_replaced'").fetchone()
    columns = [row[1] for row in db.execute("PRAGMA table_info(entry)")]
    db.execute("DROP TRIGGER entry_is_not_replaced")
    db.execute(f"REPLACE INTO entry SELECT {', '.join(columns).replace(' mu', ' 0.0')} FROM entry")
    db.execute(trigger)
    db.close()
    for command in (("ledger", "p.ledger"), (*MEAN, "--ledger", "p.ledger")):
        assert (
            "was changed from outside: its entry 1 is not what was entered; nothing may be claimed"
            in run(*command).error
        )


@pytest.mark.costly
def test_a_ledger_of_an_earlier_version_says_so(run):
    of_version_1(Path("old.ledger"))
    told = "An earlier version of shuffledp, which kept no chain of hashes, entered 1 release"
    for _ in range(2):
        assert told in " ".join(run("ledger", "old.ledger").out.split())
        run(*MEAN, "--ledger", "old.ledger")  # migrates


def test_disjoint_populations(run, made):
    for name in ("north", "south"):
        run(*MEAN, "--ledger", "p.ledger", "--population", name)
    both = run("ledger", "p.ledger", "--json").json["total_if_fixed"]["epsilon"]["upper"]
    found = run("ledger", "p.ledger", "--disjoint", "north,south", "--json").json
    assert found["disjoint"] == [["north", "south"]]
    assert found["total_if_fixed"]["epsilon"]["upper"] < 0.8 * both


@pytest.mark.costly
def test_total_composes_what_json_says(run, tmp_path):
    (tmp_path / "a.json").write_text(run(*MEAN, "--json").out, encoding="utf-8")
    amplify = ("amplify", "--epsilon0", 2, "--n", 2000, "--delta", 1e-6, "--json")
    (tmp_path / "b.json").write_text(run(*amplify).out, encoding="utf-8")
    found = run("total", "a.json", "b.json", "--delta", 1e-6, "--json").json
    assert [entry["recomputed"] for entry in found["files"]] == [True, True]
    parts = []
    for epsilon0, randomizer in ((1.0, sdp.OneBit(0, 80)), (2.0, "any")):
        setting = sdp.Setting(sdp.Budgets([epsilon0], [2000]), randomizer, seen="reports", neighboring="replace-one")
        parts.append((sdp.privacy_profile(setting, epsilon0=epsilon0), 1))
    exact = sdp.compose(parts).epsilon(1e-6)
    assert exact.lower <= found["epsilon"]["upper"] <= exact.upper * 1.005


@pytest.mark.costly
def test_rows_never_pass_for_people(run, tmp_path):
    # total, difference and the ledger spoke of people where each row had been taken as one
    pl.read_csv(tmp_path / "people.csv").with_row_index("person").write_csv(tmp_path / "known.csv")
    known = ("mean", "known.csv", *MEAN[2:], "--person", "person")
    for name, command in (("rows", MEAN), ("more", MEAN), ("people", known), ("them", known)):
        run("ledger", f"{name}.ledger", "--new")
        printed = run(*command, "--ledger", f"{name}.ledger", "--population", name, "--json").out
        (tmp_path / f"{name}.json").write_text(printed, encoding="utf-8")
    said = (
        "Each row was taken as a person. If somebody owns several rows, the guarantee for them is weaker than stated."
    )
    for command in ("total", "difference"):
        for files, told in ((("rows", "more"), 1), (("people", "them"), 0)):
            asked = (command, *(f"{name}.json" for name in files), "--delta", 1e-5)
            assert run(*asked, "--json").json["notes"].count(said) == told
            assert " ".join(run(*asked).out.split()).count(said) == told
    rows, people = (run("ledger", f"{name}.ledger", "--json").json for name in ("rows", "people"))
    assert rows["entries"][0]["setting"] == "one-bit, n = 2000 rows, taken as people, 1 levels, reports"
    assert people["entries"][0]["setting"] == "one-bit, n = 2000, 1 levels, reports"
    told = "In every release each row, or each report of an open collection, was taken as a person: whoever owns"
    shown = [" ".join(run("ledger", f"{name}.ledger").out.split()) for name in ("rows", "people")]
    assert [told in text for text in shown] == [True, False]


def test_total_takes_the_stated_number_where_the_setting_is_not_told(run, tmp_path):
    """A changed number is not computed away: what the file states counts."""
    known = json.loads(run(*MEAN, "--json").out)
    upper = known["guarantee"]["epsilon"]["upper"] * 2.0
    known["guarantee"]["epsilon"]["upper"] = known["guarantee"]["levels"][0]["epsilon"]["upper"] = upper
    (tmp_path / "a.json").write_text(json.dumps(known), encoding="utf-8")
    found = run("total", "a.json", "--delta", 1e-5, "--json").json
    assert found["files"][0]["recomputed"] is False
    assert upper * 0.98 < found["epsilon"]["upper"] <= upper
    assert run("total", "a.json", "a.json", "--delta", 1e-6, "--json").json["epsilon"]["upper"] == "inf"
    assert "name a larger --delta" in run("total", "a.json", "a.json", "--delta", 1e-6).out


def test_total_refuses_what_it_cannot_read(run, tmp_path):
    """A format of a later version, and no people, were taken without a word; an empty object was a simulation."""
    told = run("amplify", "--epsilon0", 1, "--n", 1000, "--delta", 1e-6, "--json").json
    for changed, why in (
        ({"format": 99}, "has format 99, and this version reads formats 1 to 2; install the version that wrote it"),
        ({"setting": told["setting"] | {"n": math.inf}}, "holds no guarantee; name what"),  # was an internal failure
        ({"setting": told["setting"] | {"n": -5}}, "holds no guarantee; name what amplify, an estimate, release or"),
        ({"groups": []}, "holds no guarantee; name what"),  # was an internal failure
        ({"releases": [{"groups": []}]}, "holds no guarantee; name what"),
    ):
        (tmp_path / "a.json").write_text(json.dumps(told | changed), encoding="utf-8")
        assert why in run("total", "a.json", "--delta", 1e-5).error
    for content in ('{"a": ' * 5000, '{"releases": [' * 5000):  # was an internal failure
        for name in ("a.json", "b.json"):
            (tmp_path / name).write_text(content, encoding="utf-8")
        assert "holds no guarantee" in run("total", "a.json", "--delta", 1e-5).error
        assert "is no release of one" in run("difference", "a.json", "b.json", "--delta", 1e-5).error
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text("{}", encoding="utf-8")
    assert "is no release of one question" in run("difference", "a.json", "b.json", "--delta", 1e-5).error


def test_total_refuses_a_simulation(run, tmp_path):
    (tmp_path / "a.json").write_text(run(*MEAN, "--simulation-seed", 1, "--json").out, encoding="utf-8")
    assert "protects nobody" in run("total", "a.json", "--delta", 1e-6).error
