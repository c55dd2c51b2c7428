"""`histogram`, `quantiles`, `variance` and `frequency --simplex`: keys, pages, what is stated, every bad input."""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ET

import numpy as np
import polars as pl
import pytest

RANGE = ("people.csv", "--value", "hours", "--low", "0", "--high", "100", "--delta", "1e-5")
HISTOGRAM = ("histogram", *RANGE, "--bins", "8")
QUANTILES = ("quantiles", *RANGE, "--bins", "50")
VARIANCE = ("variance", *RANGE)
FREQUENCY = ("frequency", "people.csv", "--value", "vote", "--categories", "yes,no,none", "--delta", "1e-5")
QUESTIONS = {"histogram": HISTOGRAM, "quantiles": QUANTILES, "variance": VARIANCE}
ALL = {"mean": ("mean", *RANGE), "frequency": FREQUENCY, **QUESTIONS}
REST = {
    "simultaneous",
    "unit",
    "rows",
    "rows_per_person",
    "clipped",
    "fingerprint",
    "confidence",
    "mechanism",
    "weights",
    "weighted_by",
    "notes",
    "uninformative",
    "private",
    "guarantee",
}
ONE = ("--epsilon0", "2")
OWN = ("--epsilon0", "budget")
LEANS = "it leans towards those who allow more"


@pytest.fixture(autouse=True)
def people(run, tmp_path):
    """A table of 600 people beside which the commands run, with a bad column of each kind."""
    rows = 600
    random = np.random.default_rng(1)
    hours = random.normal(45.0, 10.0, rows).clip(0.0, 100.0)
    columns = {
        "hours": hours,
        "vote": (["yes"] * 3 + ["no", "none"]) * (rows // 5),
        "budget": [0.5, 0.5, 2.0] * (rows // 3),
        "consent": ["low", "low", "high"] * (rows // 3),
        "gap": [None if i == 7 else 1.0 for i in range(rows)],
        "undefined": ["NaN" if i == 7 else "1" for i in range(rows)],
        "outlier": [101.0 if i == 7 else 1.0 for i in range(rows)],
        "endless": ["inf" if i == 7 else "1" for i in range(rows)],
        "negative": [-1.0 if i == 7 else 1.0 for i in range(rows)],
    }
    pl.DataFrame(columns).write_csv(tmp_path / "people.csv")
    return tmp_path


def test_histogram_json(run):
    answer = run(*HISTOGRAM, *OWN, "--seen", "reports", "--json").json
    own = {"question", "n", "low", "high", "bins", "estimates", "counts", "step", "long_tailed", "range"}
    assert set(answer) == own | REST
    assert (answer["question"], answer["n"], answer["bins"], answer["private"]) == ("histogram", 600, 8, True)
    edges = np.linspace(0.0, 100.0, 9)
    for row, low, high in zip(answer["estimates"], edges[:-1], edges[1:], strict=True):
        assert set(row) == {"low", "high", "frequency", "standard_error", "confidence_interval"}
        assert (row["low"], row["high"]) == (low, high)
        assert row["confidence_interval"][0] <= row["confidence_interval"][1]
    assert 0.0 < answer["guarantee"]["epsilon"]["upper"] < 2.0
    assert answer["mechanism"].startswith("subset:8:")


def test_quantiles_json(run):
    answer = run(*QUANTILES, *ONE, "--at", "0.5, 0.9", "--json").json
    assert set(answer) == {"question", "n", "low", "high", "bins", "estimates", "distribution"} | REST
    assert [row["probability"] for row in answer["estimates"]] == [0.5, 0.9]
    for row in answer["estimates"]:
        assert set(row) == {"probability", "quantile", "confidence_interval"}
        assert 0.0 <= row["confidence_interval"][0] < row["confidence_interval"][1] <= 100.0
    points = answer["distribution"]
    assert [point["value"] for point in points] == pytest.approx(np.linspace(0.0, 100.0, 51))
    assert (points[0]["below"], points[-1]["below"], points[0]["standard_error"]) == (0.0, 1.0, 0.0)
    assert answer["mechanism"] == "tree:50:4"
    few = run(*QUANTILES, *ONE, "--bins", "5000", "--json").json["distribution"]
    assert len(few) == 1000
    assert (few[0]["value"], few[-1]["value"]) == (0.0, 100.0)


def test_variance_json(run):
    answer = run(*VARIANCE, "--epsilon0", "700", "--json").json
    assert set(answer) == {"question", "n", "estimate", "standard_error", "confidence_interval"} | REST | {
        "standard_deviation"
    }
    low, high = answer["standard_deviation"]["confidence_interval"]
    assert low <= answer["standard_deviation"]["estimate"] <= high <= 50.0
    assert answer["standard_deviation"]["estimate"] == pytest.approx(max(answer["estimate"], 0.0) ** 0.5)


@pytest.mark.costly
def test_simplex_stands_beside_the_unbiased_estimates(run):
    for command in (FREQUENCY, HISTOGRAM):
        arguments = (*command, "--epsilon0", "0.05", "--simulation-seed", "3")
        plain, both = run(*arguments, "--json").json, run(*arguments, "--simplex", "--json").json
        assert [row["frequency"] for row in plain["estimates"]] == [row["frequency"] for row in both["estimates"]]
        assert "projected" not in plain["estimates"][0]
        projected = np.array([row["projected"] for row in both["estimates"]])
        assert min(row["frequency"] for row in both["estimates"]) < 0.0  # else there would be nothing to project
        assert (projected >= 0.0).all()
        assert projected.sum() == pytest.approx(1.0)
        assert plain["guarantee"] == both["guarantee"]
        shown = run(*arguments, "--simplex", "--report", "page.html").out
        assert "projected" in shown
        assert "small ones come out too large" in " ".join(shown.split())
        assert "projected" not in run(*arguments).out
        assert ">projected</th>" in page_of("page.html")


def page_of(name: str) -> str:
    with open(name, encoding="utf-8") as file:
        return file.read()


@pytest.mark.costly
@pytest.mark.one_in(3)
@pytest.mark.parametrize("question", ALL)
def test_what_the_weights_mean_is_stated_everywhere(run, question):
    """In words on the terminal and on the page, in a word and in words in JSON."""
    asked = (*ALL[question], *OWN)
    result = run(*asked, "--seen", "reports", "--report", "page.html")
    assert LEANS in " ".join(result.out.split())
    assert LEANS in page_of("page.html")
    answer = run(*asked, "--seen", "reports", "--json").json
    assert answer["weighted_by"] == "budget"
    assert any(LEANS in note for note in answer["notes"])
    for weights, word in (("population", "people"), ("precision", "precision")):
        answer = run(*asked, "--seen", "levels", "--weights", weights, "--json").json
        assert (answer["weights"], answer["weighted_by"]) == (weights, word)
        assert any("Each budget level was estimated by itself" in note for note in answer["notes"])
    answer = run(*ALL[question], *ONE, "--json").json
    assert answer["weighted_by"] == "people"
    assert not any("budget" in note for note in answer["notes"])


@pytest.mark.costly(but=("variance",))
@pytest.mark.parametrize("question", QUESTIONS)
def test_pages_hold_well_formed_pictures(run, question):
    arguments = (*QUESTIONS[question], *OWN, "--seen", "levels", "--simulation-seed", "1", "--report", "page.html")
    shown = run(*arguments)
    assert "NOT PRIVATE" in shown.out
    page = page_of("page.html")
    pictures = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(pictures) >= 3
    for picture in pictures:
        ET.fromstring(picture)
        assert "nan" not in picture.lower().replace("nance", "")
    assert "NOT PRIVATE: simulation" in page
    label = {"histogram": "Histogram of 8 bins", "quantiles": "3 quantiles are marked", "variance": "Estimate "}
    assert any(label[question] in picture for picture in pictures)


@pytest.mark.costly
def test_many_bins_fit_on_a_page_and_a_screen(run):
    shown = run(*HISTOGRAM, *ONE, "--bins", "1001", "--report", "page.html")
    assert "60 of 1,001 bins" in shown.out
    page = page_of("page.html")
    assert "400 of 1,001 bins are listed" in page
    assert page.count('<rect class="bar"') == 167  # six to a bar


def test_names_are_no_emoji(run):
    assert "tree:100:4" in run(*QUANTILES, *ONE, "--bins", "100").out


@pytest.mark.costly(but=("variance",))
@pytest.mark.parametrize("question", QUESTIONS)
def test_consent_in_words_and_clipping(run, question):
    words = ("--epsilon0", "consent", "--consent", "low=0.5", "--consent", "high=2", "--seen", "reports", "--json")
    levels = run(*QUESTIONS[question], *words).json["guarantee"]["levels"]
    assert [(level["epsilon0"], level["count"]) for level in levels] == [(0.5, 400), (2.0, 200)]
    assert run(*QUESTIONS[question], *ONE, "--value", "outlier", "--clip", "--json").json["n"] == 600


@pytest.mark.costly("arguments21-delta must .*; got 0-histogram")
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--epsilon0", "0"), "every epsilon0 is 0"),
        (("--epsilon0", "-1"), "epsilon0 must be .*; got -1"),
        (("--epsilon0", "nan"), "epsilon0 must be .*; got nan"),
        (("--epsilon0", "inf"), "epsilon0 must be .*; got inf"),
        (("--epsilon0", "1e9"), r"epsilon0 must be .*; got 1000000000"),
        (("--epsilon0", "bugdet"), r"no column 'bugdet' in people.csv; did you mean 'budget'\?"),
        (OWN, "there are 2 different budgets, so --seen is needed"),
        ((*OWN, "--seen", "sum"), "seen must be one of reports, levels; got 'sum'"),
        ((*OWN, "--seen", "users"), "seen must be one of reports, levels; got 'users'"),
        (("--epsilon0", "negative", "--seen", "reports"), "negative in row 8 is no budget; a local budget is a number"),
        ((*ONE, "--value", "gap"), "the value in row 8 is missing; say with --missing-as which number"),
        ((*ONE, "--value", "undefined"), "the value in row 8 is missing; say with --missing-as"),
        ((*ONE, "--value", "outlier"), r"the value in row 8 is outside \[0.0, 100.0\]; say --clip"),
        ((*ONE, "--value", "endless"), r"the value in row 8 is outside \[0.0, 100.0\]; say --clip"),
        ((*ONE, "--value", "vote"), "vote in row 1 is not a number"),
        ((*ONE, "--value", "minutes"), "no column 'minutes' in people.csv"),
        ((*ONE, "--low", "100"), "the range needs finite .*low < high"),
        ((*ONE, "--high", "nan"), "the range needs finite .*; got low 0.0 and high nan"),
        ((*ONE, "--high", "inf"), "the range needs finite .*; got low 0.0 and high inf"),
        ((*ONE, "--low", "-1e308", "--high", "1e308"), "range"),
        ((*ONE, "--low", "much"), "'--low': 'much' is not a number"),
        ((*ONE, "--delta", "0"), "delta must .*; got 0"),
        ((*ONE, "--weights", "best"), "--weights must be one of population, precision"),
        ((*ONE, "--simulation-seed", "-1"), "a simulation seed must be a whole number of at least 0"),
        ((*ONE, "--report", "no/page.html"), "--report no/page.html cannot be written"),
        ((*ONE, "--report", "people.csv"), "also an input or another output"),
    ],
)
def test_bad_input(run, people, question, arguments, message):
    assert re.search(message, run(*QUESTIONS[question], *arguments).error)
    assert os.listdir(people) == ["people.csv"]


@pytest.mark.costly("arguments13-a whole number of bins from 2 to 4,194,304; got 10000000")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*HISTOGRAM, *ONE, "--bins", "1"), "bins must be a whole number"),
        ((*HISTOGRAM, *ONE, "--bins", "2.5"), "'--bins': '2.5' is not a whole number"),
        ((*HISTOGRAM, *ONE, "--bins", "1e12"), "bins must be a whole number"),
        ((*HISTOGRAM, *ONE, "--low", "1", "--high", "1.0000000000000004"), "too narrow for double precision"),
        ((*HISTOGRAM, *ONE, "--mechanism", "laplace"), "--mechanism must be one of .*; got 'laplace'"),
        ((*HISTOGRAM, *ONE, "--mechanism", "rr"), "mechanism 'rr' needs exactly two categories; got 8"),
        (("histogram", *RANGE, *ONE), "Missing option '--bins'; see shuffledp histogram --help"),
        ((*QUANTILES, *ONE, "--at", "0.5,1"), "--at needs numbers strictly between 0 and 1 .*; got '0.5,1'"),
        ((*QUANTILES, *ONE, "--at", "median"), "--at needs numbers strictly between 0 and 1"),
        ((*QUANTILES, *ONE, "--at", ""), "--at needs numbers strictly between 0 and 1"),
        ((*QUANTILES, *ONE, "--at", "nan"), "--at needs numbers strictly between 0 and 1"),
        ((*QUANTILES, *ONE, "--at", "0.5,0.50"), "--at names 0.50 twice"),
        ((*QUANTILES, *ONE, "--bins", "0"), "bins must be a whole number"),
        ((*QUANTILES, *ONE, "--bins", "1e7"), "a whole number of bins from 2 to 4,194,304; got 10000000"),
        ((*QUANTILES, *ONE, "--branching", "1"), "a whole branching from 2 to 4,194,304; got 1"),
    ],
)
def test_bad_bins_and_quantiles(run, people, arguments, message):
    assert re.search(message, run(*arguments).error)
    assert os.listdir(people) == ["people.csv"]


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_range_is_asked_for(run, question):
    rest = [word for word in QUESTIONS[question] if word not in ("--high", "100")]
    assert run(*rest, *ONE).error.startswith("--high is needed: the range must be known beforehand")


@pytest.mark.costly(but=("variance",))
@pytest.mark.parametrize("question", QUESTIONS)
def test_tables_that_are_none(run, people, question):
    """Empty, without rows, cut short, not the format its name says."""
    for name, content, message in (
        ("people.csv", b"", "table people.csv is empty"),
        ("people.csv", b"hours\n", "table people.csv has no rows; give one row per user"),
        ("people.csv", b"hours,vote\n1,a\n1,2,3\n", "row 2 of people.csv has 3 fields, the header has 2"),
        ("people.csv", b"hours\n1\n2\n\xff\xfe", "cannot read|not a number|is not UTF-8 text"),
    ):
        (people / name).write_bytes(content)
        assert re.search(message, run(*QUESTIONS[question], *ONE, "--report", "page.html").error)
    (people / "people.csv").unlink()
    assert "table people.csv does not exist" in run(*QUESTIONS[question], *ONE).error
    pl.DataFrame({"hours": np.linspace(0.0, 100.0, 5000)}).write_parquet(people / "cut.parquet")
    whole = (people / "cut.parquet").read_bytes()
    (people / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    arguments = ["cut.parquet" if word == "people.csv" else word for word in QUESTIONS[question]]
    assert "cannot read cut.parquet as a table" in run(*arguments, *ONE, "--report", "page.html").error
    assert os.listdir(people) == ["cut.parquet"]


@pytest.mark.costly("2")
@pytest.mark.parametrize("rows", [1, 2])
def test_one_user(run, people, rows):
    """One person can be asked; what protects her is her own budget. A variance may need more, and says so."""
    (people / "people.csv").write_text("hours\n" + "40\n" * rows)
    for command in (HISTOGRAM, QUANTILES):
        answer = run(*command, *ONE, "--report", "page.html", "--json").json
        assert answer["n"] == rows
        assert rows == 2 or 1.99 < answer["guarantee"]["epsilon"]["upper"] <= 2.0
        assert run(*command, *ONE).status == 0
    assert "at least three of the users; there are" in run(*VARIANCE, *ONE).error


@pytest.mark.costly
def test_ranges_at_the_ends_of_double_precision(run, people):
    """Names of bins stay apart, numbers stay short, pictures well formed; a variance says what is too wide."""
    start = 10**15
    pl.DataFrame({"hours": [float(start + i) for i in range(50)]}).write_parquet(people / "far.parquet")
    far = ("far.parquet", "--value", "hours", "--low", str(start), "--high", str(start + 50), "--delta", "1e-5")
    page = ("--report", "page.html")
    shown = " ".join(run("histogram", *far, *ONE, "--bins", "4", *page).out.split())
    assert "1.0000000000000125e15" in shown
    assert "error" in shown
    assert "too narrow for double precision" in run("quantiles", *far, *ONE, "--bins", "1000").error
    wide = ("--value", "hours", "--low", "0", "--high", "1.7e308", "--delta", "1e-5")
    shown = run("mean", "people.csv", *wide, *ONE, *page).out.partition("\n")[0]
    assert len(shown) < 150
    for picture in re.findall(r"<svg.*?</svg>", page_of("page.html"), re.DOTALL):
        ET.fromstring(picture)
    assert "for a variance its width must lie between" in run("variance", "people.csv", *wide, *ONE).error
