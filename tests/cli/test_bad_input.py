"""Every bad input: exit status 2, one clear line, nothing half-written."""

from __future__ import annotations

import errno
import os
import re
import sys

import numpy as np
import polars as pl
import pytest

PLAN = ("amplify", "--delta", "1e-6")
ONE = (*PLAN, "--epsilon0", "1", "--n", "1000")
MEAN = ("mean", "t.csv", "--value", "x", "--low", "0", "--high", "10", "--delta", "1e-6")
FREQUENCY = ("frequency", "t.csv", "--value", "vote", "--delta", "1e-6")


@pytest.fixture
def table(run, tmp_path):
    """The directory of the run holds t.csv with good columns and one bad column of each kind."""
    rows = 40
    columns = {
        "x": np.linspace(0, 10, rows),
        "vote": ["yes", "no"] * (rows // 2),
        "budget": [0.5, 1.0] * (rows // 2),
        "negative": [0.5] * 5 + [-0.25] + [0.5] * (rows - 6),
        "infinite": ["0.5"] * 5 + ["inf"] + ["0.5"] * (rows - 6),
        "undefined": ["0.5"] * 5 + ["NaN"] + ["0.5"] * (rows - 6),
        "gap": ["0.5"] * 5 + [""] + ["0.5"] * (rows - 6),
        "word": ["0.5"] * 5 + ["high"] + ["0.5"] * (rows - 6),
        "outlier": [5.0] * 5 + [11.5] + [5.0] * (rows - 6),
    }
    pl.DataFrame(columns).write_csv(tmp_path / "t.csv")
    return tmp_path


@pytest.mark.costly("arguments19---seen is needed, because there are 2 budget levels; choose one of")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        # the population
        ((*PLAN,), "give the population in exactly one way: --epsilon0 E --n N, or --level E:COUNT"),
        ((*ONE, "--level", "1:5"), "give the population in exactly one way"),
        ((*PLAN, "--epsilon0", "1"), "--epsilon0 E and --n N belong together; give both"),
        ((*PLAN, "--n", "10"), "--epsilon0 E and --n N belong together; give both"),
        ((*PLAN, "--epsilon0", "-1", "--n", "10"), "epsilon0 must be .*; got -1"),
        ((*PLAN, "--epsilon0", "nan", "--n", "10"), "epsilon0 must be .*; got nan"),
        ((*PLAN, "--epsilon0", "inf", "--n", "10"), "epsilon0 must be .*; got inf"),
        (
            (*PLAN, "--epsilon0", "much", "--n", "10"),
            "'--epsilon0': 'much' is not a number; write it like 0.5",
        ),
        ((*PLAN, "--epsilon0", "1", "--n", "0"), "--n must be at least 1; got 0"),
        ((*PLAN, "--epsilon0", "1", "--n", "-5"), "--n must be at least 1; got -5"),
        ((*PLAN, "--epsilon0", "1", "--n", "2.5"), "'--n': '2.5' is not a whole number; write it like 10000"),
        ((*PLAN, "--epsilon0", "1", "--n", "inf"), "'--n': 'inf' is not a whole number"),
        ((*PLAN, "--level", "0.5:0"), "a level needs at least one user; got count 0; leave the level out"),
        ((*PLAN, "--level", "0.5"), "--level '0.5' lacks its number of users; write it like 0.5:900"),
        ((*PLAN, "--level", "a:5"), "--level 'a:5' is not E:COUNT or E,DELTA0:COUNT; write it like 0.5:900"),
        ((*PLAN, "--level", "1:2.5"), "--level '1:2.5' is not E:COUNT"),
        ((*PLAN, "--level", "-0.5:10"), "epsilon0 must be .*; got -0.5"),
        ((*PLAN, "--level", "1,1.5:10"), r"delta0 must be a probability in \[0, 1\); got 1.5"),
        ((*PLAN, "--column", "budget"), "(give the population|--column and --delta-column name columns)"),
        # who sees what
        (
            (*PLAN, "--level", "0.5:9", "--level", "1:9"),
            "--seen is needed, because there are 2 budget levels; choose one of",
        ),
        ((*ONE, "--seen", "all"), "--seen must be one of reports, users, levels, sum; got 'all'"),
        # the rest of the question
        (
            ("amplify", "--epsilon0", "1", "--n", "10"),
            "Missing option '--delta'; see shuffledp amplify --help",
        ),
        (("amplify", "--epsilon0", "1", "--n", "10", "--delta", "0"), "delta must .*; got 0"),
        (("amplify", "--epsilon0", "1", "--n", "10", "--delta", "1"), "delta must .*; got 1"),
        (("amplify", "--epsilon0", "1", "--n", "10", "--delta", "-1e-6"), "delta must .*; got -1e-06"),
        (("amplify", "--epsilon0", "1", "--n", "10", "--delta", "nan"), "delta must .*; got nan"),
        (("amplify", "--epsilon0", "1", "--n", "10", "--delta", "tiny"), "'--delta': 'tiny' is not a number"),
        ((*ONE, "--randomizer", "magic"), "--randomizer 'magic' is unknown; choose any, rr, krr:K, sue:K,"),
        ((*ONE, "--randomizer", ""), "--randomizer '' is unknown; choose any, rr"),
        ((*ONE, "--randomizer", "any:3"), "--randomizer 'any:3' is unknown; choose any, rr"),
        (
            (*ONE, "--randomizer", "krr"),
            "--randomizer krr needs its number of categories, at least 2; got 'krr'; write krr:10",
        ),
        ((*ONE, "--randomizer", "krr:1"), "needs its number of categories, at least 2; got 'krr:1'"),
        ((*ONE, "--randomizer", "oue:many"), "oue needs its number of categories, at least 2; got 'oue:many'"),
        ((*ONE, "--randomizer", "hadamard:-4"), "needs its number of categories, at least 2; got 'hadamard:-4'"),
        ((*ONE, "--randomizer", "laplace:3"), "laplace has no number of categories; got 'laplace:3'; write laplace"),
        ((*ONE, "--randomizer", "gone.csv"), "--randomizer gone.csv does not exist; name a .csv file with one row"),
        ((*ONE, "--rounds", "0"), "rounds must be a whole number of at least 1; got 0"),
        ((*ONE, "--rounds", "1.5"), "'--rounds': '1.5' is not a whole number; write it like 10000"),
        ((*ONE, "--colluding", "1000"), "colluding must be a whole number from 0 to 999; got 1000"),
        ((*ONE, "--colluding", "-1"), "colluding must be a whole number from 0 to 999; got -1"),
        ((*ONE, "--missing", "1"), r"missing must be a fraction of the users, in \[0, 1\); got 1"),
        ((*ONE, "--missing", "nan"), r"missing must be a fraction of the users, in \[0, 1\); got nan"),
        ((*ONE, "--group-size", "0"), "--group-size must be a whole number from 1 to 1,000; got 0"),
        ((*ONE, "--reports-per-user", "0"), "--reports-per-user must be a whole number of at least 1; got 0"),
        ((*ONE, "--bounds", "some"), "--bounds must be certified or all; got 'some'"),
        # how the command is written
        ((*ONE, "--sean", "reports"), r"No such option:? '?--sean.*--seen.*; see shuffledp amplify --help"),
        ((*ONE, "more"), r"Got unexpected extra argument.*\(more\); see shuffledp amplify --help"),
        (("amplifi",), "No such command 'amplifi'.*'amplify'.*; see shuffledp --help"),
        (("--nope",), r"No such option:? '?--nope.*; see shuffledp --help"),
    ],
)
def test_plans(run, arguments, message):
    assert re.search(message, run(*arguments).error)


@pytest.mark.parametrize(
    ("budgets", "message"),
    [
        (("gone.csv", "--column", "budget"), "table gone.csv does not exist; did you mean t.csv"),
        (("t.csv",), "--budgets t.csv needs --column NAME, the column with each user's epsilon0"),
        (
            ("t.csv", "--column", "budgt"),
            r"no column 'budgt' in t.csv; did you mean 'budget'\? its columns are x, vote, ",
        ),
        (("t.csv", "--column", "negative"), r"epsilon0 must be .*; got -0.25 \(entry 6 of 40\)"),
        (("t.csv", "--column", "infinite"), r"epsilon0 must be .*; got inf \(entry 6 of 40\)"),
        (("t.csv", "--column", "undefined"), "undefined in row 6 is missing; give every row a number"),
        (("t.csv", "--column", "gap"), "gap in row 6 is missing; give every row a number"),
        (("t.csv", "--column", "word"), "word in row 6 is not a number; give every row a number"),
        (
            ("t.csv", "--column", "budget", "--delta-column", "x"),
            r"delta0 must be a probability in \[0, 1\); got ",
        ),
    ],
)
def test_budget_files(run, table, budgets, message):
    assert re.search(message, run(*PLAN, "--seen", "reports", "--budgets", *budgets).error)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--epsilon0", "-1"), "epsilon0 must be .*; got -1"),
        (("--epsilon0", "nan"), "epsilon0 must be .*; got nan"),
        (("--epsilon0", "0"), "every epsilon0 is 0, so no report carries information"),
        (("--epsilon0", "bugdet"), r"no column 'bugdet' in t.csv; did you mean 'budget'\?"),
        (("--epsilon0", "budget"), "there are 2 different budgets, so --seen is needed"),
        (
            ("--epsilon0", "negative", "--seen", "reports"),
            "negative in row 6 is no budget; a local budget is a number of nats from 0 to 700",
        ),
        (
            ("--epsilon0", "gap", "--seen", "reports"),
            "gap in row 6 is missing; .* such a row has, as --missing-budget 0",
        ),
        (("--epsilon0", "1", "--value", "outlier"), r"row 6 is outside \[0.0, 10.0\]; say --clip"),
        (("--epsilon0", "1", "--value", "vote"), "vote in row 1 is not a number"),
        (("--epsilon0", "1", "--value", "y"), "no column 'y' in t.csv; "),
        (
            ("--epsilon0", "1", "--low", "11"),
            "the range needs finite .*low < high.*; got low 11.0 and high 10.0",
        ),
        (("--epsilon0", "1", "--low", "nan"), "the range needs finite .*; got low nan and high 10.0"),
        (("--epsilon0", "1", "--mechanism", "gaussian"), "Gaussian noise is never pure: give delta0 > 0"),
        (("--epsilon0", "1", "--mechanism", "laplace", "--seen", "sum"), "--seen sum is not certified for laplace"),
        (("--epsilon0", "1", "--consent", "low=1"), "--consent says .*, so --epsilon0 must name that column; got 1"),
        (
            ("--epsilon0", "vote", "--consent", "yes=1"),
            "vote in row 2 is a word that --consent does not explain; say there what it stands for",
        ),
        (
            ("--epsilon0", "vote", "--consent", "yes=-1", "--consent", "no=1"),
            "--consent 'yes=-1': a local budget must be a number of nats from 0 to 700",
        ),
        (("--epsilon0", "vote", "--consent", "yes=nan"), "--consent 'yes=nan': a local budget must be a number of"),
        (("--epsilon0", "vote", "--consent", "yes"), "--consent must be WORD=E with a number E, such as strict=0.1"),
        (("--epsilon0", "vote", "--consent", "yes=1", "--consent", "yes=2"), "--consent gives 'yes' twice"),
        (("--epsilon0", "1", "--weights", "best"), "--weights must be one of population, precision; got 'best'"),
        (
            ("--epsilon0", "1", "--mechanism", "magic"),
            "--mechanism must be one of .*; got 'magic'",
        ),
        (("--epsilon0", "1", "--delta", "1"), "delta must .*; got 1"),
        (("--epsilon0", "1", "--seen", "users"), "--seen must be one of reports, levels, sum; got 'users'"),
        (
            ("--epsilon0", "1", "--simulation-seed", "-1"),
            "a simulation seed must be a whole number of at least 0; got -1",
        ),
        (
            ("--epsilon0", "1", "--report", "no/such/page.html"),
            "--report no/such/page.html cannot be written",
        ),
    ],
)
def test_means(run, table, arguments, message):
    assert re.search(message, run(*MEAN, *arguments).error)
    assert os.listdir(table) == ["t.csv"]


def test_the_range_is_asked_for_because_the_data_would_leak_it(run, table):
    error = run("mean", "t.csv", "--value", "x", "--epsilon0", "1", "--delta", "1e-6", "--low", "0").error
    assert error == "--high is needed: the range must be known beforehand, as reading it off the data would leak"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (),
            "--categories is needed: they must be known beforehand, as reading them off the data would leak",
        ),
        (
            ("--categories", "yes"),
            r"--categories 'yes' is neither a list of two or more \(A,B,C\) nor a file",
        ),
        (("--categories", "yes,yes"), "category 'yes' is given twice; name each category once"),
        (("--categories", "yes,maybe"), r"record in row 2 is none of the categories"),
        (("--categories", "yes,no,"), "--categories 'yes,no,' holds an empty name; take out the comma"),
        (
            ("--categories", "yes,no,perhaps", "--mechanism", "rr"),
            "mechanism 'rr' needs exactly two categories; got 3; use 'krr'",
        ),
        (
            ("--categories", "yes,no", "--mechanism", "one-bit"),
            "--mechanism must be one of .*; got 'one-bit'",
        ),
        (
            ("--categories", "yes,no", "--value", "gap"),
            "the record in row 6 is missing; name the category .* with --missing-as, or add one",
        ),
    ],
)
def test_frequencies(run, table, arguments, message):
    assert re.search(message, run(*FREQUENCY, "--epsilon0", "1", *arguments).error)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", "table t.csv is empty; give a header line and one row per user"),
        ("t.csv", b"x\n", "table t.csv has no rows; give one row per user"),
        ("t.csv", b"x,y\n1,2\n1,2,3\n", "row 2 of t.csv has 3 fields, the header has 2; put quotes around"),
        ("t.csv", b"x,y,z\n1,2,3\n1,2", "row 2 of t.csv has 2 fields, the header has 3; the file may be cut short"),
        ("t.csv", b'x,y\n1,2\n1,"2\n', r"(cannot read t.csv as a table|is )"),
        ("t.parquet", b"PAR1 cut short", r"cannot read t.parquet as a table"),
        ("t.parquet", b"x\n1\n", r"t.parquet is not a Parquet file"),
        ("t.png", b"\x89PNG", r"t.png is a picture, not a table of text or Parquet; export it as CSV"),
    ],
)
def test_files_that_are_no_tables(run, tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    arguments = ("mean", name, "--value", "y" if b"y" in content else "x", "--low", "0", "--high", "10")
    assert re.search(message, run(*arguments, "--epsilon0", "1", "--delta", "1e-6", "--report", "page.html").error)
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("option", ["--report", "--levels-out"])
def test_output_that_cannot_be_written_is_refused_first(run, tmp_path, option):
    assert "cannot be written (No such file or directory)" in run(*ONE, option, "no/such/file").error
    assert "is a directory; name a file to write" in run(*ONE, option, tmp_path).error
    assert "is not a regular file; name a file to write" in run(*ONE, option, os.devnull).error
    assert os.listdir(tmp_path) == []


def test_a_page_is_refused_before_the_table_is_opened(run):
    arguments = ("mean", "gone.csv", "--value", "x", "--low", "0", "--high", "1", "--epsilon0", "1")
    error = run(*arguments, "--delta", "1e-6", "--report", "no/page.html").error
    assert error.startswith("--report no/page.html cannot be written")


def test_a_refused_command_leaves_the_old_page_alone(run, table):
    (table / "page.html").write_text("old")
    assert run(*MEAN, "--epsilon0", "1", "--value", "outlier", "--report", "page.html").error
    assert (table / "page.html").read_text() == "old"
    assert sorted(os.listdir(table)) == ["page.html", "t.csv"]


@pytest.mark.parametrize(
    ("failure", "status", "line"),
    [
        (
            RuntimeError("two\nlines"),
            1,
            "error: internal failure (RuntimeError: two lines); nothing was released",
        ),
        (KeyboardInterrupt(), 130, "error: interrupted; nothing was written"),
        (MemoryError("full"), 1, "error: internal failure (MemoryError: full)"),
        (ModuleNotFoundError("no x", name="x"), 1, "error: internal failure (ModuleNotFoundError: no x); nothing was "),
    ],
)
def test_failures_inside_are_one_line_too(run, monkeypatch, tmp_path, failure, status, line):
    def fail(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr("shuffledp.cli.calibrate.certify", fail)
    result = run(*ONE, "--report", "page.html")
    assert result.status == status
    assert result.err.startswith(line)
    assert result.err.count("\n") == 1
    assert os.listdir(tmp_path) == []


def test_a_reader_that_has_gone_on_windows(run, monkeypatch):
    """There `shuffledp ... | more` that is left early gives EINVAL, which was reported as a disk without room."""

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr("shuffledp.cli.calibrate.certify", fail)
    assert "standard output cannot be written (Invalid argument)" in run(*ONE).err
    monkeypatch.setattr(sys, "platform", "win32")
    assert (run(*ONE).status, run(*ONE).err) == (1, "")


@pytest.mark.parametrize(
    "arguments",
    [
        (*MEAN, "--epsilon0", "0.5", "--report", "t.csv"),  # once replaced the table by the page
        (*MEAN, "--epsilon0", "0.5", "--report=./t.csv"),
        (*FREQUENCY, "--epsilon0", "0.5", "--categories", "names.txt", "--report", "names.txt"),
        (*ONE, "--levels-out", "same.html", "--report", "same.html"),
    ],
)
def test_an_output_never_replaces_an_input_or_another_output(run, table, arguments):
    (table / "names.txt").write_text("yes\nno\n", encoding="utf-8")
    before = {path.name: path.read_bytes() for path in table.iterdir()}
    assert "another output of this command" in run(*arguments).error
    assert {path.name: path.read_bytes() for path in table.iterdir()} == before


def test_quoted_categories_may_hold_commas(run, tmp_path):
    pl.DataFrame({"vote": ["yes, sure", "no"] * 20}).write_csv(tmp_path / "t.csv")
    found = run(*FREQUENCY, "--epsilon0", "1", "--categories", '"yes, sure",no', "--json").json
    assert [row["category"] for row in found["estimates"]] == ["yes, sure", "no"]
