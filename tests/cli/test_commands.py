"""Each command of the contract: keys, precision, what people see, the examples of --help."""

from __future__ import annotations

import html
import math
import os
import re
import shlex
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import shuffledp as sdp
from shuffledp.cli.app import COMMANDS

TWO_LEVELS = (
    "--level",
    "0.5:900",
    "--level",
    "2:100",
    "--seen",
    "reports",
    "--randomizer",
    "rr",
    "--delta",
    "1e-6",
)
MEAN = ("mean", "people.csv", "--value", "hours", "--low", "0", "--high", "100", "--delta", "1e-5")
FREQUENCY = ("frequency", "people.csv", "--value", "vote", "--epsilon0", "1", "--delta", "1e-5")
GUARANTEE_KEYS = {"setting", "delta", "epsilon", "levels", "levels_total", "bounds"}


@pytest.fixture
def people(run, tmp_path):
    """A table of 600 people beside which the commands run."""
    rows = 600
    columns = {
        "hours": np.linspace(20, 60, rows),
        "vote": (["yes"] * 3 + ["no", "none"]) * (rows // 5),
        "budget": [0.5, 0.5, 2.0] * (rows // 3),
    }
    pl.DataFrame(columns).write_csv(tmp_path / "people.csv")
    return "people.csv"


def test_amplify_says_why_there_is_no_mu(run):
    """Local delta0 above what may be revealed: refused in its place, and the rest is answered."""
    answer = run("amplify", "--level", "1,1e-5:100", "--delta", "1e-3", "--json").json
    assert answer["mu"]["value"] is None
    assert "falls no further" in answer["mu"]["refused"]
    assert answer["epsilon"]["upper"] <= 1.0


@pytest.mark.costly
def test_amplify_prints_the_object_of_the_contract(run):
    answer = run("amplify", *TWO_LEVELS, "--json").json
    assert set(answer) == GUARANTEE_KEYS | {"notes", "mu"}
    assert answer["notes"] == []
    assert answer["mu"]["outside"] == pytest.approx(1e-3 * answer["delta"])
    assert 0.0 < answer["mu"]["value"] < answer["epsilon"]["upper"]
    assert answer["setting"] == {
        "n": 1000,
        "levels": [
            {"epsilon0": 0.5, "delta0": 0.0, "count": 900},
            {"epsilon0": 2.0, "delta0": 0.0, "count": 100},
        ],
        "seen": "reports",
        "randomizer": sdp.RandomizedResponse(2).name,
        "rounds": 1,
        "linked": False,
        "colluding": 0,
        "missing": 0.0,
        "group_size": 1,
        "reports_per_user": 1,
        "neighboring": "replace-one",
    }
    assert answer["delta"] == 1e-6
    budgets = sdp.Budgets(epsilons=(0.5, 2.0), counts=(900, 100))
    setting = sdp.Setting(budgets, sdp.RandomizedResponse(2), seen="reports", neighboring="replace-one")
    guarantee = sdp.certify(setting, delta=1e-6)
    assert answer["epsilon"] == {"lower": guarantee.epsilon.lower, "upper": guarantee.epsilon.upper}
    for level, known in zip(answer["levels"], guarantee.levels, strict=True):
        assert level["epsilon"] == {"lower": known.epsilon.lower, "upper": known.epsilon.upper}
    assert {entry["key"] for entry in answer["bounds"]} == {entry.key for entry in guarantee.evidence}
    for entry in answer["bounds"]:
        assert ("epsilon" in entry) != ("refused" in entry)
        assert entry["kind"] in ("certified-upper", "certified-lower", "asymptotic")
        assert entry["reference"]


def test_amplify_shows_people_a_table(run):
    result = run("amplify", *TWO_LEVELS)
    assert result.status == 0
    assert result.err == ""
    assert "Central epsilon at most" in result.out
    assert "asymptotic" not in result.out
    assert "An attacker who sees everything the analyzer sees" in result.out
    listed = run("amplify", *TWO_LEVELS, "--bounds", "certified")
    assert "asymptotic (not a guarantee)" in listed.out


@pytest.mark.costly(but=("population2",))
@pytest.mark.parametrize(
    "population",
    [
        ("--epsilon0", "0.5", "--n", "1000"),
        ("--level", "0.5:1e3"),
        ("--level", "0.5,0:400", "--level", "0.5:600"),
    ],
)
def test_the_ways_to_give_a_population_agree(run, tmp_path, population):
    pl.DataFrame({"e": [0.5] * 1000, "d": [0.0] * 1000}).write_parquet(tmp_path / "b.parquet")
    from_file = ("--budgets", "b.parquet", "--column", "e", "--delta-column", "d")
    answers = [run("amplify", *way, "--delta", "1e-6", "--json").json for way in (population, from_file)]
    assert answers[0] == answers[1]


def test_one_user_has_the_local_budget_only(run):
    epsilon = run("amplify", "--epsilon0", "1.5", "--n", "1", "--delta", "1e-6", "--json").json["epsilon"]
    assert epsilon["lower"] <= epsilon["upper"]
    assert 1.4999 < epsilon["upper"] <= 1.5  # delta = 1e-6 buys that little


def test_a_budget_of_zero_leaks_nothing(run):
    answer = run("amplify", "--epsilon0", "0", "--n", "100", "--delta", "1e-6", "--json", "--report", "p.html").json
    assert answer["epsilon"] == {"lower": 0.0, "upper": 0.0}


def test_infinity_is_a_word(run):
    answer = run("amplify", "--level", "1,0.1:50", "--delta", "1e-6", "--json", "--report", "page.html").json
    assert answer["epsilon"]["upper"] == "inf"
    people = run("amplify", "--level", "1,0.1:50", "--delta", "1e-6").out
    assert "Central epsilon at most ∞" in people
    assert "Nothing can be promised" in people


@pytest.mark.costly
def test_all_levels_go_to_a_file(run, tmp_path, monkeypatch):
    monkeypatch.setattr("shuffledp.cli.calibrate.MOST_LEVELS", 20)  # 1,000 levels would show the same, slower
    epsilons = np.linspace(0.1, 1.0, 60)
    pl.DataFrame({"e": epsilons}).write_csv(tmp_path / "b.csv")
    arguments = (
        "amplify",
        "--budgets",
        "b.csv",
        "--column",
        "e",
        "--seen",
        "reports",
        "--randomizer",
        "rr",
        "--delta",
        "1e-5",
    )
    answer = run(*arguments, "--json", "--levels-out", "levels.csv").json
    assert 18 <= len(answer["levels"]) <= 20
    assert answer["levels_total"] == 60
    levels = pl.read_csv(tmp_path / "levels.csv")
    assert levels.columns == ["epsilon0", "delta0", "count", "epsilon_lower", "epsilon_upper"]
    np.testing.assert_array_equal(levels["epsilon0"].to_numpy(), epsilons)
    assert levels["epsilon_upper"].max() == answer["epsilon"]["upper"]
    listed = {level["epsilon0"]: level["epsilon"]["upper"] for level in answer["levels"]}
    whole = dict(zip(levels["epsilon0"], levels["epsilon_upper"], strict=True))
    assert all(whole[e] == upper for e, upper in listed.items())
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".part")]


def test_mean_prints_the_object_of_the_contract(run, people):
    arguments = (*MEAN, "--epsilon0", "budget", "--seen", "reports", "--json")
    answer = run(*arguments).json
    assert {
        "question",
        "n",
        "estimate",
        "standard_error",
        "confidence_interval",
        "mechanism",
        "private",
        "guarantee",
    } <= set(answer)
    assert (answer["question"], answer["n"], answer["mechanism"], answer["private"]) == (
        "mean",
        600,
        "one-bit",
        True,
    )
    assert set(answer["guarantee"]) == GUARANTEE_KEYS
    assert answer["confidence_interval"][0] <= answer["estimate"] <= answer["confidence_interval"][1]
    assert (
        run(*arguments).json["estimate"] != answer["estimate"] or run(*arguments).json["estimate"] != answer["estimate"]
    )


def test_frequency_prints_the_object_of_the_contract(run, people):
    arguments = (
        "frequency",
        people,
        "--value",
        "vote",
        "--categories",
        "yes,no,none",
        "--epsilon0",
        "1",
        "--delta",
        "1e-5",
    )
    answer = run(*arguments, "--json").json
    assert {"question", "n", "estimates", "mechanism", "private", "guarantee"} <= set(answer)
    assert [row["category"] for row in answer["estimates"]] == ["yes", "no", "none"]
    for row in answer["estimates"]:
        assert set(row) == {"category", "frequency", "standard_error", "confidence_interval"}
    assert math.isclose(sum(row["frequency"] for row in answer["estimates"]), 1.0, abs_tol=1e-9)
    assert "Frequencies of 600 rows, taken as people" in run(*arguments).out


def test_categories_from_a_file(run, people, tmp_path):
    (tmp_path / "votes.txt").write_text("yes\nno\n\nnone\n")
    arguments = (*FREQUENCY, "--categories", "votes.txt", "--json")
    answer = run(*arguments).json
    assert [row["category"] for row in answer["estimates"]] == ["yes", "no", "none"]


def test_numbers_may_be_categories(run, tmp_path):
    pl.DataFrame({"children": [0, 1, 2, 1] * 50}).write_parquet(tmp_path / "c.parquet")
    arguments = ("frequency", "c.parquet", "--value", "children", "--categories", "0,1,2")
    answer = run(*arguments, "--epsilon0", "3", "--delta", "1e-5", "--json").json
    assert answer["n"] == 200


@pytest.mark.costly("levels")
@pytest.mark.parametrize("seen", ["reports", "levels"])
def test_a_simulation_repeats_itself_and_says_that_it_is_not_private(run, people, seen):
    arguments = (*MEAN, "--epsilon0", "budget", "--seen", seen, "--simulation-seed", "7")
    first, second = (run(*arguments, "--json").json for _ in range(2))
    assert first == second
    assert first["private"] is False
    assert "NOT PRIVATE" in run(*arguments).out


def test_clip(run, people):
    arguments = (
        "mean",
        people,
        "--value",
        "hours",
        "--low",
        "30",
        "--high",
        "40",
        "--epsilon0",
        "1",
        "--delta",
        "1e-5",
    )
    assert "clip" in run(*arguments).error
    assert run(*arguments, "--clip", "--json").json["n"] == 600


def test_one_row(run, tmp_path):
    (tmp_path / "one.csv").write_text("x\n3\n")
    arguments = ("mean", "one.csv", "--value", "x", "--low", "0", "--high", "10", "--epsilon0", "1")
    arguments = (*arguments, "--delta", "1e-6", "--report", "p.html")
    answer = run(*arguments, "--json").json
    assert answer["n"] == 1
    assert 0.9999 < answer["guarantee"]["epsilon"]["upper"] <= 1.0
    assert "Mean" in run(*arguments).out


def test_demo(run, tmp_path):
    result = run("demo", "--simulation-seed", "1", "--report", "demo.html")
    assert result.status == 0
    assert "48,842 people of UCI Adult" in result.out
    assert "Each row of the table is taken as a person" in " ".join(result.out.split())
    page = " ".join(html.unescape((tmp_path / "demo.html").read_text(encoding="utf-8")).split())
    assert "one-bit for “Mean hours per week”, rr for “Income over 50K”, krr:4 for “Education”." in page
    answer = run("demo", "--json").json
    assert answer["private"] is True
    mean, income, education = answer["answers"]
    assert [len(income["estimates"]), len(education["estimates"])] == [2, 4]
    assert mean["truth"] == pytest.approx(40.422382, abs=1e-6)
    assert income["truth"][1] == pytest.approx(11687 / 48842)
    for one in answer["answers"]:
        levels = one["guarantee"]["levels"]
        assert [level["epsilon0"] for level in levels] == [1.0, 2.0, 4.0]
        assert sum(level["count"] for level in levels) == 48_842
        assert 0 < one["guarantee"]["epsilon"]["upper"] < 1.0
        assert one["gspa_claim"] > 0
    # Secure noise, so no seed: beyond five standard errors in less than 1 run of 1.7 million.
    assert abs(mean["estimate"] - mean["truth"]) < 5 * mean["standard_error"]


# test_plan.py runs the example of plan, which takes longest, on its own; test_collection.py and test_service.py run
# the commands of a collection, whose examples name files that only a collection makes; test_predict.py runs predict,
# which needs a model; test_difference.py runs difference, which needs two files, and test_completion.py the scripts
ELSEWHERE = {"plan", "predict", "task", "answer", "open", "serve", "total", "difference", "completion"}


@pytest.mark.costly(
    but=(
        "mean",
        "quantiles",
        "vector-mean",
    )
)
@pytest.mark.one_in(3)
@pytest.mark.parametrize("command", [command for command in COMMANDS if command not in ELSEWHERE])
def test_the_example_of_help_runs(run, command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")
    text = re.sub(r"[│╭╮╰╯─]", " ", run(command, "--help").out).split(" Arguments ")[0].split(" Options ")[0]
    where = text.index("shuffledp " + command, text.index("Example"))
    example = " ".join(text[where:].replace("\\", " ").split())
    example = example.replace("$(shuffledp demo --where)", run("demo", "--where").out.strip())
    words = shlex.split(example)
    assert words[0] == "shuffledp"
    result = run(*words[1:])
    assert result.status == 0, result.err
    assert result.out


def test_version(run):
    assert re.fullmatch(r"shuffledp \d+\.\d+\.\d+(\.dev\d+)?\n", run("--version").out)


HEAVY = (
    "numpy", "scipy", "polars", "matplotlib", "jinja2", "cryptography", "dp_accounting", "uvicorn", "httptools",
    "segno",
)  # fmt: skip


@pytest.mark.costly
def test_help_loads_nothing_heavy():
    """What is loaded, not how long it takes: a time would depend on the machine."""
    code = (
        "import sys\nfrom shuffledp.cli import main\n"
        "for page in ([], ['amplify'], ['plan'], ['mean'], ['train'], ['serve']):\n"
        "    try:\n        main([*page, '--help'])\n    except SystemExit as left:\n        assert not left.code\n"
        f"print([m for m in {HEAVY} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600)
    assert done.stdout.rstrip().endswith("[]")


@pytest.mark.costly
def test_the_installed_command_obeys_the_same_rules(tmp_path):
    call = [
        sys.executable,
        "-c",
        "from shuffledp.cli import main; main()",
        "amplify",
        "--epsilon0",
        "-1",
        "--n",
        "5",
        "--delta",
        "1e-6",
    ]
    done = subprocess.run(call, capture_output=True, text=True, timeout=600, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1


def test_the_csv_of_simplex_holds_what_the_screen_shows(run, people, tmp_path):
    arguments = (*FREQUENCY, "--categories", "yes,no,none", "--simplex", "--csv", "votes.csv", "--simulation-seed", "3")
    shown = run(*arguments)
    assert shown.status == 0, shown.err
    projected = pl.read_csv(tmp_path / "votes.csv")["projected"]
    assert projected.sum() == pytest.approx(1.0)
    assert all(f"{value:.2%} │" in shown.out for value in projected)
