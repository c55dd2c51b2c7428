"""`crosstab`: cells, margins and the test on the screen, as JSON, as CSV, on the page, by group, and in a release."""

from __future__ import annotations

import polars as pl
import pytest

ASK = ("--epsilon0", 2, "--delta", 1e-6)
TABLE = ("crosstab", "p.csv", "--values", "side,vote", "--rows", "north,south", "--columns", "yes,no")
CELLS = [
    "north / yes",
    "north / no",
    "south / yes",
    "south / no",
    "north / all",
    "south / all",
    "all / yes",
    "all / no",
]


@pytest.fixture(autouse=True)
def people(tmp_path):
    rows = {"side": ["north", "south"] * 400, "vote": ["yes", "no", "yes", "yes"] * 200, "city": ["Oslo"] * 300}
    rows["city"] += ["Bergen"] * 500
    pl.DataFrame(rows | {"budget": [1.0, 3.0] * 400}).write_csv(tmp_path / "p.csv")


@pytest.mark.costly
def test_one_table_everywhere(run, tmp_path):
    words = (*TABLE, *ASK, "--simulation-seed", 1)
    out = run(*words, "--csv", "t.csv", "--report", "t.html", "--simplex", "--counts").out
    assert [line.split("│")[1].strip() for line in out.splitlines() if line.startswith("│")] == CELLS * 2
    assert "p = 0.001 for independence, with all noise counted (999 simulated tables)" in out
    found = run(*words, "--json").json
    assert found["question"] == "crosstab"
    assert [(each["row"], each["column"]) for each in found["estimates"]][3:6] == [
        ("south", "no"), ("north", None), ("south", None),
    ]  # fmt: skip
    assert found["independence"]["p_value"] == 0.001
    assert found["counts"]["of"] == 800
    table = pl.read_csv(tmp_path / "t.csv")
    assert table["estimate"].to_list() == [each["frequency"] for each in found["estimates"]]
    assert table["projected"][:4].sum() == pytest.approx(1.0)
    assert table["projected"][4] == pytest.approx(table["projected"][:2].sum())
    page = (tmp_path / "t.html").read_text(encoding="utf-8")
    assert "How often does each pair of values of the columns side, vote occur?" in page
    assert "south / all" in page
    assert "for independence" in page


@pytest.mark.costly
def test_groups_rows_and_budgets(run):
    found = run(
        *TABLE, "--epsilon0", "budget", "--delta", 1e-6, "--by", "city", "--groups", "Oslo,Bergen", "--json"
    ).json
    assert [each["n"] for each in found["groups"]] == [300, 500]
    assert all(each["independence"]["tables"] == 999 for each in found["groups"])
    assert [each["guarantee"]["setting"]["seen"] for each in found["groups"]] == ["reports", "reports"]
    chosen = run(*TABLE, "--target-epsilon", 1, "--delta", 1e-6, "--where", "city=Oslo", "--json").json
    assert chosen["n"] == 300
    assert chosen["guarantee"]["epsilon"]["upper"] <= 1.0


def test_a_test_of_one_group_bears_its_name(run):
    out = run(*TABLE, *ASK, "--by", "city", "--groups", "Oslo,Bergen", "--simulation-seed", 5).out
    told = [line for line in out.splitlines() if "for independence" in line]
    assert len(told) == 1 or [line.partition(":")[0] for line in told] == ["Oslo", "Bergen"]


@pytest.mark.costly
def test_in_one_release_with_others(run, tmp_path):
    ask = ("--ask", "crosstab side,vote north,south yes,no", "--ask", "frequency vote yes,no")
    out = run("release", "p.csv", *ask, *ASK, "--report", "r.html").out
    assert "How often does each pair of values of the columns side, vote occur?" in out
    found = run("release", "p.csv", *ask, *ASK, "--json").json["releases"]
    assert [each["column"] for each in found] == ["side, vote", "vote"]
    (tmp_path / "q.toml").write_text(
        '[[questions]]\ncolumn = ["side", "vote"]\nkind = "table"\nrows = ["north", "south"]\n'
        'columns = [{ en = "yes", de = "ja" }, "no"]\n'
    )
    assert "north / yes" in run("release", "p.csv", "--questions", "q.toml", *ASK).out


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("--values", "side"), "value must name 2 columns for a crosstab; got 1: side"),
        (("--columns", "yes,maybe"), "the record in row 2 is none of the categories ('yes', 'maybe')"),
        (("--seen", "levels"), "--seen can only be reports for this question; got 'levels'; leave it out"),
        (("--other", "west"), "--other must be a category of the table, or one of each column with a comma between"),
        (
            ("--other", "west\nyes"),
            "--other must be a category of the table, or one of each column with a comma between",
        ),
        (("--other", "w" * 200_000), "--other must be a category of the table, or one of each column with a comma"),
        (("--rows", "north\nwest,south"), "is no line of names with a comma between them"),
        (("--by", "side", "--groups", "north,south"), "--by makes the column 'side' public"),
    ],
)
def test_what_is_refused(run, change, told):
    assert told in run(*TABLE, *ASK, *change).error


def test_what_is_needed(run):
    assert "--rows is needed: all categories of the first column must be known" in run(*TABLE[:4], *ASK).error
    assert "two columns are asked together by crosstab" in run(
        "frequency", "p.csv", "--value", "side,vote", "--categories", "yes,no", *ASK
    ).error  # fmt: skip
