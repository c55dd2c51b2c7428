"""`shuffledp plan`: its JSON, its files, its sentences, and what it refuses."""

from __future__ import annotations

import math
import re
import shlex
import warnings
import xml.etree.ElementTree as ET

import numpy as np
import polars as pl
import pytest

from shuffledp.cli.plan import PLANNED

THREE = ("--level", "0.1:540", "--level", "0.5:370", "--level", "2:90")
FREQUENCY = ("--question", "frequency", "--k", "2", "--mechanism", "krr")
TARGET = ("--target-epsilon", "0.2", "--delta", "1e-6")
KEYS = {
    "question", "n", "target", "met", "limited_by", "mechanism", "randomizer", "seen", "weights", "needs_independence",
    "standard_error", "records_assumed", "rounding", "population", "batch", "remedies", "alternatives", "curve",
    "guarantee", "next", "report_bytes", "most_accurate", "unshuffled",
}  # fmt: skip


@pytest.fixture
def people(tmp_path):
    """A table of 600 people, the budget as a column."""
    rng = np.random.default_rng(3)
    pl.DataFrame(
        {"name": [f"p{i}" for i in range(600)], "vote": ["a", "b", "c"] * 200, "budget": rng.uniform(0.3, 2.0, 600)}
    ).write_csv(tmp_path / "people.csv")
    return "people.csv"


@pytest.mark.costly
def test_json_is_the_object_of_the_docs(run):
    answer = run("plan", *THREE, *FREQUENCY, *TARGET, "--target-error", "0.5", "--json").json
    assert set(answer) == KEYS
    assert answer["target"] == {"epsilon": 0.2, "delta": 1e-6, "standard_error": 0.5}
    assert answer["guarantee"]["epsilon"]["upper"] <= 0.2
    assert answer["met"] == (answer["standard_error"] <= 0.5)
    assert answer["population"]["levels"] == [
        {key: level[key] for key in ("epsilon0", "delta0", "count")} for level in answer["guarantee"]["levels"]
    ]
    assert {row["seen"] for row in answer["alternatives"]} == {"reports", "levels"}
    for row in answer["alternatives"]:
        assert set(row) == {
            "mechanism", "seen", "weights", "needs_independence", "as_given", "planned", "least", "report_bytes",
            "refused",
        }  # fmt: skip
        assert (row["planned"] is None) == (row["refused"] is not None)
    assert len(answer["curve"]) == 13
    assert set(answer["remedies"]) == {"users", "budget_factor"}


@pytest.mark.costly
@pytest.mark.parametrize("target", [(), ("--target-error", "0.2")])
def test_the_command_of_the_least_epsilon_first_and_the_most_accurate_beside(run, target):
    arguments = ("plan", "--epsilon0", "1", "--n", "5000", *FREQUENCY, "--target-epsilon", "0.4", "--delta", "1e-6")
    answer, text = run(*arguments, *target, "--json").json, run(*arguments, *target).out
    (first,) = answer["next"]
    assert answer["guarantee"]["epsilon"]["upper"] < (0.02 if target else 0.2)
    if not target:
        assert answer["most_accurate"] is None
        assert " --epsilon0 1 " in first
        assert "Or, instead" not in text
        return
    accurate = answer["most_accurate"]
    (other,) = accurate["next"]
    assert accurate["standard_error"] < 0.1 * answer["standard_error"]
    assert " --epsilon0 1 " in other
    assert " --epsilon0 0.0" in first
    assert text.index(first) < text.index("Or, instead: The smallest error") < text.index(other)


@pytest.mark.costly
def test_a_report_may_be_limited(run):
    given = ("plan", "--epsilon0", "1", "--n", "20000", "--question", "frequency", "--k", "100", "--mechanism", "oue")
    free = run(*given, "--mechanism", "krr", *TARGET, "--json").json
    assert (free["mechanism"], free["report_bytes"]) == ("oue", 13)
    short = run(*given, "--mechanism", "krr", *TARGET, "--max-bytes", "12", "--json").json
    assert (short["mechanism"], short["report_bytes"]) == ("krr", 1)
    assert "bytes" in run(*given, *TARGET).out
    assert "a report of oue has 13 bytes, more than the 12" in run(*given, *TARGET, "--max-bytes", "12").error
    assert "--max-bytes must be" in run(*given, *TARGET, "--max-bytes", "0").error


@pytest.mark.costly
def test_tables_for_people(run):
    result = run("plan", *THREE, *FREQUENCY, *TARGET, "--target-error", "1e-3")
    assert result.status == 0, result.err
    for words in ("NOT met", "users mixed as these are", "What is certified", "Next: shuffledp frequency"):
        assert words in result.out


@pytest.mark.costly
def test_plan_run_report_on_a_table_of_ones_own(run, people, tmp_path):
    """Plan with rounding, run its own next command on the written table, with a page."""
    planned = run(
        "plan", "--budgets", people, "--column", "budget", *FREQUENCY[:2], "--categories", "a,b,c",
        "--mechanism", "krr", *TARGET, "--seen", "levels", "--levels", "3", "--rounded-out", "rounded.csv", "--json",
    ).json  # fmt: skip
    table = pl.read_csv(tmp_path / "rounded.csv")
    assert table.columns == ["name", "vote", "budget", PLANNED]
    assert (table[PLANNED] <= table["budget"]).all()
    used = table.group_by(PLANNED).len().sort(PLANNED)
    assert used[PLANNED].to_list() == [level["epsilon0"] for level in planned["population"]["levels"]]
    assert used["len"].to_list() == [level["count"] for level in planned["population"]["levels"]]
    (step,) = planned["next"]
    assert " --categories a,b,c " in step
    words = shlex.split(step.replace("COLUMN", "vote"))
    answer = run(*words[1:], "--report", "answer.html", "--simulation-seed", "1", "--json").json
    assert answer["guarantee"]["epsilon"]["upper"] <= 0.2
    assert answer["guarantee"]["epsilon"]["upper"] == pytest.approx(planned["guarantee"]["epsilon"]["upper"], rel=1e-9)
    errors = [row["standard_error"] for row in answer["estimates"]]
    assert max(errors) <= planned["standard_error"] * 1.1
    assert "<h1>" in (tmp_path / "answer.html").read_text(encoding="utf-8")


@pytest.mark.costly
def test_figure_and_page(run, tmp_path):
    result = run(
        "plan", *THREE, *FREQUENCY, *TARGET, "--target-error", "0.5", "--figure", "c.svg", "--report", "p.html"
    )
    assert result.status == 0, result.err
    picture = ET.fromstring((tmp_path / "c.svg").read_text(encoding="utf-8"))
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 1
    assert page.count("<dt>") == 10
    for words in (
        "Carry it out",
        "Every way of asking",
        "No noise was drawn",
        "shuffledp plan --level",
        "about a plan",
    ):
        assert words in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.costly
def test_a_plan_says_that_an_answer_of_mere_noise_says_nothing(run):
    """A standard error of 313 stood there for a range of 1, and the next command beside it."""
    words = ("--epsilon0", "1", "--n", "10", "--target-epsilon", "0.001", "--delta", "1e-8")
    line = "Such an answer says nothing yet: its 95 % interval is at least as wide as all that is possible."
    assert line in run("plan", "--question", "mean", "--low", "0", "--high", "1", *words).out
    assert line not in run("plan", *FREQUENCY, *THREE, *TARGET).out


def test_a_mean_and_dropped_users(run):
    answer = run(
        "plan", "--level", "0:50", "--level", "1:950", "--question", "mean", "--low", "0", "--high", "10",
        "--guess-mean", "3", "--guess-deviation", "1", "--drop-below", "0.5", "--mechanism", "one-bit", *TARGET,
        "--json",
    ).json  # fmt: skip
    assert answer["rounding"]["dropped"] == 50
    assert answer["records_assumed"]["mean"] == pytest.approx(0.3)
    assert answer["n"] == 1000
    assert sum(level["count"] for level in answer["population"]["levels"]) == 950
    assert answer["next"][0].startswith("shuffledp mean TABLE --value COLUMN --low 0 --high 10")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"--question": "median"}, "mean or frequency"),
        ({"--k": None}, "--k K"),
        ({"--k": "1"}, "from 2 to 1,000,000"),
        ({"--categories": "a,b"}, "either"),
        ({"--low": "0"}, "does not belong"),
        ({"--target-epsilon": "nan"}, "--target-epsilon must be"),
        ({"--target-epsilon": "0"}, "--target-epsilon must be"),
        ({"--delta": "1"}, "delta"),
        ({"--target-error": "0"}, "--target-error must be"),
        ({"--seen": "sum"}, "reports or levels"),
        ({"--mechanism": "laplace"}, "mechanism"),
        ({"--levels": "0"}, "levels"),
        ({"--figure": "c.png"}, ".svg"),
        ({"--rounded-out": "r.csv"}, "--budgets"),
        ({"--level": "nan:10"}, "epsilon0"),
        ({"--level": "0:10"}, "no report carries information"),
        ({"--drop-below": "5"}, "nobody would take part"),
    ],
)
def test_what_is_refused(run, change, words):
    given = {"--level": "1:100", "--question": "frequency", "--k": "4", "--mechanism": "krr"} | {
        "--target-epsilon": "0.2",
        "--delta": "1e-6",
    }
    options = [word for name, value in (given | change).items() if value is not None for word in (name, value)]
    assert words in run("plan", *options).error


@pytest.mark.costly
def test_the_example_of_help_runs(run):
    page = " ".join(run("plan", "--help").out.replace("\\", " ").split())
    example = page[page.index("shuffledp plan --level") :].partition(" ╭")[0]
    answer = run(*shlex.split(example)[1:], "--mechanism", "krr", "--json").json
    assert math.isfinite(answer["standard_error"])


MEAN = ("--question", "mean", "--low", "0", "--high", "1", "--mechanism", "one-bit", "--target-epsilon", "1")


@pytest.mark.costly
def test_over_rounds_and_against_the_shuffler(run):
    arguments = (
        "plan",
        "--epsilon0",
        "1.5",
        "--n",
        "400",
        *MEAN,
        "--delta",
        "1e-6",
        "--rounds",
        "2",
        "--missing",
        "0.1",
    )
    said = run(*arguments).out
    told = " ".join(said.split())
    assert ", over all 2 rounds, wanted 1; " in told
    assert "What is certified at delta = 1e-6, over all 2 rounds" in told
    assert "It holds even if 10% of the users stay away or send junk." in told
    assert re.search(r"To whoever sees reports unshuffled: \S+ a round, \S+ in all\.", told)
    assert "Next, once in each of 2 rounds: shuffledp mean TABLE " in told
    assert "Or, where devices report: each draws one report a round of sdp.OneBit(low=0" in told


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (("--colluding", 1000), "--colluding must be a whole number from 0 to 999; got 1000"),
        (("--missing", 1), "--missing must be a fraction of the users"),
        (("--group-size", 0), "--group-size must be a whole number from 1 to 1,000"),
        (("--rounds", 0), "--rounds must be a whole number of at least 1"),
    ],
)
def test_a_wrong_option_is_not_blamed_on_the_target(run, wrong, told):
    """Each was "no way of asking is certified at epsilon = 0.5: ..."."""
    command = ("plan", "--question", "frequency", "--k", 2, "--epsilon0", 1, "--n", 1000, "--target-epsilon", 0.5)
    assert run(*command, "--delta", 1e-6, *wrong).error.startswith(told)


@pytest.mark.costly
def test_dummies_need_a_shuffler_who_adds_them(run):
    arguments = ("plan", "--epsilon0", "2", "--n", "500", *MEAN, "--delta", "1e-5", "--dummies", "100")
    assert run(*arguments, "--json").json["next"] == []
    said = run(*arguments).out
    assert "shuffledp mean" not in said
    assert "Next, where devices report: " in said
    assert "adds the dummies and mixes the batch." in said


@pytest.mark.costly
def test_a_plan_with_dummies_over_rounds_warns_of_nothing(run):
    """Thresholds far from the tilt that they share printed "RuntimeWarning: overflow encountered in multiply"."""
    words = ("--epsilon0", 3, "--n", 10_000, "--question", "mean", "--low", 0, "--high", 10, "--target-epsilon", 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "over all 12 rounds" in run("plan", *words, "--delta", "1e-6", "--rounds", 12, "--dummies", 100).out
