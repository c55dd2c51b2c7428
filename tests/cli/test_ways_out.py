"""Errors speak of what was typed, and name a way out; results say what they are not worth."""

from __future__ import annotations

import re

import polars as pl
import pytest

from shuffledp.cli.app import options_of
from shuffledp.cli.front import in_options
from shuffledp.report.wording import odds_factor

RANGE = ("--low", "0", "--high", "10")
WITH_RECORDS = {
    "frequency": ("--value", "vote", "--categories", "yes,no"),
    "mean": ("--value", "x", *RANGE),
    "histogram": ("--value", "x", *RANGE, "--bins", "4"),
    "quantiles": ("--value", "x", *RANGE),
    "variance": ("--value", "x", *RANGE),
}
REPORTS = r"reports \(the analyzer sees the shuffled reports, without their senders' budgets\)"
LEVELS = r"levels \(the analyzer sees the shuffled reports, each with its sender's budget\)"
SUM = r"sum \(the analyzer sees only the sum of the reports\)"
ONE = ("amplify", "--epsilon0", "1", "--n", "1000", "--delta", "1e-6")
PLAN = ("plan", "--epsilon0", "1", "--n", "1000", "--question", "mean", "--low", "0", "--high", "1", "--delta", "1e-5")
TRAIN = ("--epsilon0", "4", "--delta", "1e-5", "--seen", "users")


@pytest.fixture
def people(run, tmp_path):
    rows = 40
    columns = {
        "x": [i / 4 for i in range(rows)],
        "vote": ["yes", "no"] * (rows // 2),
        "budget": [0.5, 1.0] * (rows // 2),
        "consent": ["strict", "open"] * (rows // 2),
    }
    pl.DataFrame(columns).write_csv(tmp_path / "people.csv")
    return lambda command, *more, delta="1e-6": run(
        command, "people.csv", *WITH_RECORDS[command], "--delta", delta, *more
    )


@pytest.mark.parametrize("command", WITH_RECORDS)
def test_precision_needs_levels(people, command):
    needs = "--weights precision weighs the reports of each budget level, so it needs --seen levels; "
    assert people(command, "--epsilon0", "1", "--weights", "precision").error == f"{needs}--seen was left out"
    error = people(command, "--epsilon0", "1", "--weights", "precision", "--seen", "reports").error
    assert error == f"{needs}got --seen reports"


@pytest.mark.parametrize("command", WITH_RECORDS)
def test_seen_lists_what_the_command_takes(people, command):
    more = ", sum" if command == "mean" else ""
    assert people(command, "--epsilon0", "1", "--seen", "foo").error == (
        f"--seen must be one of reports, levels{more}; got 'foo'"
    )
    listed = f"{REPORTS}, {LEVELS} or {SUM}$" if command == "mean" else f"{REPORTS} or {LEVELS}$"
    error = people(command, "--epsilon0", "budget").error
    assert re.search(f"^there are 2 different budgets, so --seen is needed; choose one of {listed}", error)


def test_seen_of_added_noise(people):
    error = people("mean", "--epsilon0", "budget", "--mechanism", "laplace").error
    assert re.search(f"choose one of {REPORTS} or {LEVELS}$", error)


@pytest.mark.costly("histogram", "mean")
@pytest.mark.parametrize("command", [command for command in WITH_RECORDS if command != "variance"])
def test_a_tiny_budget_is_not_called_zero(people, command):
    assert "(every epsilon0 is 0 or too small; give some users a larger one)" in (
        people(command, "--epsilon0", "1e-300").error
    )


WORDS = ".* if words stand for budgets, say what each stands for with --consent$"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--epsilon0", "1", "--consent", "strict=0.5"), r"--consent .* so --epsilon0 must name that column; got 1; "),
        (
            ("--epsilon0", "consent"),
            f"row 1 is not a number; {WORDS}",
        ),
        (
            ("--epsilon0", "consent", "--seen", "reports"),
            f"not a number; {WORDS}",
        ),
        (
            ("--epsilon0", "consent", "--consent", "strict=0.5"),
            "^consent in row 2 is a word that --consent does not explain; say there what it stands for$",
        ),
        (
            ("--epsilon0", "1", "--categories", "names.txt"),
            "--categories names.txt holds 1 of the categories; write two",
        ),
        (
            ("--epsilon0", "1", "--simulation-seed", "x"),
            "'--simulation-seed': 'x' is not a whole number; write it like 10000",
        ),
    ],
)
def test_estimates(people, tmp_path, options, message):
    (tmp_path / "names.txt").write_text("yes\n\n")
    assert re.search(message, people("frequency", *options).error)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((*PLAN, "--target-epsilon", "1", "--levels", "0"), "--levels must be a whole number from 1 to 64; got 0"),
        (
            (*PLAN, "--target-epsilon", "1", "--drop-below", "5"),
            "--drop-below must be at most the largest budget, 1, or nobody would take part; got 5",
        ),
        ((*PLAN, "--target-epsilon", "-1"), "--target-epsilon must be a positive number of nats; got -1.0"),
        (
            ("calibrate", "--n", "10", "--target-epsilon", "-1", "--delta", "1e-5"),
            "--target-epsilon must be a positive number of nats; got -1.0",
        ),
        (
            (
                "calibrate",
                "--epsilon0",
                "4",
                "--n",
                "10",
                "--find",
                "rounds",
                "--target-epsilon",
                "1",
                "--delta",
                "1e-5",
            ),
            "one round already has epsilon = 3.99999 at delta = 1e-05, more than 1; scale the budgets down, take a "
            "larger batch, or raise epsilon",
        ),
        (
            ("amplify", "--epsilon0", "1", "--n", "1" + 20 * "0", "--delta", "1e-5"),
            f"at most 2^53 (about 9e15) users can be counted exactly; got 1{20 * '0'}; state fewer",
        ),
        (
            (*ONE, "--reports-per-user", "9007199254740992"),
            "at most 2^53 (about 9e15) reports can be counted exactly; got 1000 users with 9007199254740992 each; "
            "state fewer",
        ),
        (
            (*ONE, "--report", ""),
            "Invalid value for '--report': the name is empty; name a file or folder; see shuffledp amplify --help",
        ),
        (
            ("reproduce", "all", "--out", ""),
            "Invalid value for '--out': the name is empty; name a file or folder; see shuffledp reproduce --help",
        ),
        (
            ("audit", "--randomizer", "krr:3", "--epsilon0", "1", "--records", "0.5,1.5", "--simulation-seed", "1"),
            "--records must be whole numbers from 0 to 2; got float64",
        ),
        (
            ("audit", "--randomizer", "laplace", "--epsilon0", "1", "--records", "a,b", "--simulation-seed", "1"),
            "--records must be numbers from 0.0 to 1.0",
        ),
    ],
)
def test_options_are_named(run, arguments, error):
    assert run(*arguments).error == error


def test_audit_lists_what_it_takes(run):
    error = run("audit", "--randomizer", "foo", "--epsilon0", "1").error
    assert "any" not in error
    assert error.endswith(
        "coordinates:D, the name of a .csv file with a channel matrix, FILE.py:FUNCTION, or command:PROGRAM"
    )


@pytest.mark.parametrize(
    ("source", "more", "message"),
    [
        ("nodir", (), "^table nodir does not exist"),
        ("gone.csv", (), "^table gone.csv does not exist"),
        ("empty.csv", (), "^table empty.csv is empty; give a header line"),
        ("header.csv", (), "^table header.csv has no rows; give one row per user"),
        ("mnist-sample", (), "^--unit example needs clients"),
        ("mnist-sample", ("--clients", "0"), "^--clients must be at least 1; got 0$"),
        (
            "mnist-sample",
            ("--clients", "9999"),
            "^--clients must be at least 1 and at most the number of examples, 2000; ",
        ),
    ],
)
def test_training_says_first_that_there_are_no_data(run, tmp_path, source, more, message):
    (tmp_path / "empty.csv").write_bytes(b"")
    (tmp_path / "header.csv").write_bytes(b"x,vote\n")
    assert re.search(message, run("train", source, "--unit", "example", *TRAIN, *more).error)


def test_training_names_its_options(run, people):
    data = ("people.csv", "--label", "vote", "--features", "x", "--holdout", "0", "--rounds", "1", "--unit", "client")
    assert run("train", *data, *TRAIN, "--min-messages", "0").error == (
        "--min-messages must be a whole number of at least 1; got 0"
    )
    error = run("train", *data, *TRAIN, "--min-messages", "100").error
    assert error.endswith("ask for fewer --min-messages, or allow a larger --max-epsilon")


def test_words_that_were_typed_stay():
    typed = ["amplify", "--budgets", "t.csv", "--column", "group_size"]
    assert in_options("group_size in row 2 is missing", typed, ["--group-size"]) == "group_size in row 2 is missing"
    assert in_options("epsilon0 must be small", typed, ["--epsilon0"]) == "epsilon0 must be small"


def test_a_delta_above_one_in_n_is_told(run, people):
    note = "delta = 0.5 is above 1/n: such a guarantee allows one person's record to be published"
    large = ("--epsilon0", "1e-3", "--json")
    assert any(said.startswith(note) for said in people("frequency", *large, "--any-delta", delta="0.5").json["notes"])
    assert any(said.startswith(note) for said in people("quantiles", *large, "--any-delta", delta="0.5").json["notes"])
    assert not any(
        "1/n" in said for said in people("frequency", *large, "--any-delta", delta="0.025").json["notes"]
    )  # 1/40
    amplify = ("amplify", "--epsilon0", "1", "--n", "1000", "--delta", "0.5")
    assert run(*amplify, "--json").json["notes"][0].startswith(note)
    shown = run(*amplify, "--report", "page.html").out
    assert note in shown
    assert shown.count("above 1/n") == 1
    assert shown.index("above 1/n") < shown.index("Central epsilon at most")


def test_a_factor_is_never_one_and_more_of_nothing(people):
    shown = people("frequency", "--epsilon0", "1e-3", "--any-delta", delta="0.5").out
    words = " ".join(shown.split())
    assert "differs by at most 0.5 from the chance it would have" in words
    assert "= 1 times as likely" not in words
    assert "1.001" not in shown
    assert odds_factor(1e-5) == "1.000011"


def test_one_is_no_plural(run, tmp_path):
    pl.DataFrame({"x": [0.5], "vote": ["yes"]}).write_csv(tmp_path / "one.csv")
    rest = ("--epsilon0", "1", "--delta", "1e-6")
    assert (
        "Frequencies of 1 row, taken as people (rr)"
        in run("frequency", "one.csv", *WITH_RECORDS["frequency"], *rest).out
    )
    assert "(1 row, taken as people, one-bit)" in run("mean", "one.csv", *WITH_RECORDS["mean"], *rest).out.replace(
        "\n", " "
    )
    assert "Histogram of 1 row, taken as people" in run("histogram", "one.csv", *WITH_RECORDS["histogram"], *rest).out


def test_first_lines_keep_the_width(run, monkeypatch, people):
    monkeypatch.setenv("COLUMNS", "80")
    audit = run("audit", "--randomizer", "rr", "--epsilon0", "1", "--trials", "1000", "--simulation-seed", "1").out
    data = ("people.csv", "--label", "vote", "--features", "x", "--rounds", "1", "--unit", "client")
    trained = run("train", *data, *TRAIN, "--simulation-seed", "1").out
    assert max(map(len, (audit + trained).splitlines())) <= 80
    assert "1 round (" in trained
    assert "softmax regression, 1 feature," in trained


def test_help_lists_every_randomizer(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = run("amplify", "--help").out
    assert all(name in shown for name in ("piecewise", "hybrid", "tree:BINS", "directions", "sketch", "coordinates"))
    assert "NAME|FILE" not in run("audit", "--help").out


PLANNED = ("plan", "--question", "frequency", "--k", "4", "--target-epsilon", "1", "--delta", "1e-6")
ASKED = ("--epsilon0", "1", "--delta", "1e-6")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("release", "people.csv", "--ask", "frequency vote yes,maybe", *ASKED),
            "that such a record counts as with `other` in a file of --questions, or",
        ),
        (
            ("release", "people.csv", "--ask", "mean x 0 0.001", *ASKED),
            "; say `clip` in a file of --questions, or widen the range without looking at the values",
        ),
        (
            ("frequency", "people.csv", "--value", "vote", "--categories", "yes,maybe", *ASKED),
            "counts as with --other, or",
        ),
        (
            (*PLANNED, "--level", "1:100", "--colluding", "200"),
            "--colluding must be a whole number from 0 to 99; got 200",
        ),
        (
            (*PLANNED, "--level", "1:100", "--missing", "2"),
            "--missing must be a fraction of the users, in [0, 1); got 2.0",
        ),
        ((*PLANNED, "--level", "1,2:100"), "--level '1,2:100': delta0 must be a probability in [0, 1); got 2.0"),
        ((*PLANNED, "--level", "1:100", "--level", "-1:5"), "--level '-1:5': epsilon0 must be a finite number of nats"),
        (
            (*PLANNED, "--level", "1:100", "--level", "2,0.001:100"),
            "got 0 to 0.001; give all the same, or plan those of each delta0 by themselves",
        ),
        (
            ("variance", "people.csv", "--value", "x", "--low", "0", "--high", "9", *ASKED, "--by", "vote"),
            "write --groups A,B,C or name a text file with one per line",
        ),
        (
            ("mean", "people.csv", "--value", "x", "--low", "0", "--high", "9", *ASKED, "--by", "vote"),
            "(--margins names",
        ),
    ],
)
def test_a_refusal_names_what_its_own_command_can_say(run, people, words, message):
    error = run(*words).error
    assert message in error
    assert ("--margins" in error) == ("--margins" in options_of(words) and "--by" in words)
