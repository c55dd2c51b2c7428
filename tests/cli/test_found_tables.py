"""Every command that reads a table: a refusal names only options that the command has, and none is ignored."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from shuffledp.cli.app import options_of

FOUND = Path(__file__).parents[1] / "tables" / "found"
ENDS = ("--delta", "1e-6")
COMMANDS = {
    "mean": ("--value", "age", "--low", "0", "--high", "99", "--epsilon0", "1", *ENDS),
    "frequency": ("--value", "vote", "--categories", "yes,no", "--epsilon0", "age", *ENDS),
    "release": ("--ask", "mean age 0 99", "--epsilon0", "1", *ENDS),
    "train": ("--label", "vote", "--features", "age:0:99", "--unit", "client", "--seen", "users", "--epsilon0", "1",
              *ENDS),
    "amplify": ("--budgets", "TABLE", "--column", "age", "--seen", "reports", *ENDS),
    "calibrate": ("--budgets", "TABLE", "--column", "age", "--seen", "reports", "--target-epsilon", "1", *ENDS),
    "plan": ("--budgets", "TABLE", "--column", "age", "--question", "mean", "--low", "0", "--high", "1",
             "--target-epsilon", "1", *ENDS),
}  # fmt: skip


def typed(command: str, table: Path, *more: str) -> list[str]:
    """The command about a table, which is its argument or that of --budgets."""
    words = COMMANDS[command]
    if "TABLE" in words:
        return [command, *(str(table) if word == "TABLE" else word for word in words), *more]
    return [command, str(table), *words, *more]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "name", ["cp1252.csv", "blanks.txt", "two-header-rows.csv", "title.csv", "words-for-missing.csv"]
)
def test_a_refusal_names_only_options_of_its_command(run, command, name):
    error = run(*typed(command, FOUND / name)).error
    assert "`" not in error
    named = set(re.findall(r"--[a-z][a-z0-9-]*", error))
    assert named
    assert named <= options_of([command])


@pytest.mark.parametrize("command", ["amplify", "calibrate", "plan"])
def test_options_of_a_table_need_one(run, command):
    words = [word for word in COMMANDS[command] if word not in ("--budgets", "TABLE", "--column", "age")]
    error = run(command, *words, "--epsilon0", "1", "--n", "100", "--header-rows", "2").error
    assert error == "--header-rows is about tables of text, and no --budgets FILE is given; leave it out"


def test_pictures_take_none(run):
    words = ("--unit", "example", "--seen", "users", "--clients", "20", "--epsilon0", "4", "--delta", "1e-5")
    error = run("train", "mnist-sample", *words, "--missing-values", ".").error
    assert error == "--missing-values is about tables, and pictures have no columns; leave it out"
    assert run("train", "mnist-sample", *words, "--missing-as", "0").error.startswith(
        "--missing-as belongs to tables; "
    )


@pytest.mark.parametrize("text", ["", ",", "a,,b"])
def test_words_for_missing_are_a_list(run, text):
    error = run(*typed("mean", FOUND / "cp1252.csv", "--missing-values", text)).error
    assert error.startswith("--missing-values names words with a comma between them, such as '.,-99'; ")


def test_names_for_a_ledger_need_one(run):
    table, ask = FOUND / "qualtrics.csv", ("--epsilon0", "1", "--header-rows", "3")
    assert run(*typed("mean", table), *ask, "--population", "staff").error == (
        "--population names people in a ledger; name one with --ledger"
    )
    assert run(*typed("mean", table), *ask, "--title", "Votes").error == (
        "--title is that of the page and of the entry; add --report FILE.html or --ledger FILE"
    )


def test_a_missing_feature_counts_as_a_number_in_training_and_in_prediction(run, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("vote,age\n" + "yes,-99\nno,40\n" * 20)
    ask = ["train", str(table), *COMMANDS["train"][:-2], "--delta", "1e-3", "--missing-values", "-99"]
    ask += ["--holdout", "0", "--rounds", "1"]
    assert run(*ask).error == (
        "age in row 1 is missing; give every row a number, or say in training with --missing-as which number it counts "
        "as"
    )
    assert run(*ask, "--missing-as", "7", "--model-out", "m.npz").status == 0
    told = run("predict", "m.npz", table, "--missing-values", "-99", "--label", "vote", "--json").json
    (tmp_path / "sevens.csv").write_text(table.read_text().replace("-99", "7"))
    assert told["counts"] == run("predict", "m.npz", "sevens.csv", "--label", "vote", "--json").json["counts"]
    assert told["rows"] == 40


def test_an_epsilon_to_publish(run, tmp_path):
    table, ask = tmp_path / "t.csv", ("--value", "vote", "--categories", "yes,no", "--delta", "1e-5")
    table.write_text("vote\n" + "yes\nno\n" * 1000)
    told = run("frequency", table, *ask, "--target-epsilon", "0.4", "--json").json["guarantee"]
    assert 0.36 <= told["epsilon"]["upper"] <= 0.4
    said = " ".join(run("frequency", table, *ask, "--target-epsilon", "0.4").out.split())
    assert re.search(
        r"Local budget found for a central epsilon of 0\.4: [\d.]+ for everybody\. To whoever sees reports ", said
    )
    for options, got in (((), "neither"), (("--epsilon0", "1", "--target-epsilon", "1"), "both")):
        error = run("frequency", table, *ask, *options).error
        assert error.startswith("say either the local budgets (--epsilon0), or the central epsilon (--target-epsilon) ")
        assert error.endswith(f"got {got}")
    error = run("frequency", table, *ask, "--target-epsilon", "1", "--consent", "a=1").error
    assert error == "--consent belongs to --epsilon0, and --target-epsilon finds that"


@pytest.mark.costly
def test_a_column_of_budgets_under_an_epsilon_to_publish(run_as_typed, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("vote,consent\n" + "yes,low\nno,high\n" * 1000)
    ask = ("frequency", table, "--value", "vote", "--categories", "yes,no", "--delta", "1e-5", "--seen", "reports")
    ask += ("--epsilon0", "consent", "--consent", "low=1", "--consent", "high=4")
    found = run_as_typed(*ask, "--target-epsilon", "0.1", "--json").json["guarantee"]
    low, high = (level["epsilon0"] for level in found["setting"]["levels"])
    assert found["epsilon"]["upper"] <= 0.1
    assert low < 1.0
    assert high == pytest.approx(4.0 * low, rel=1e-12)
    said = " ".join(run_as_typed(*ask, "--target-epsilon", "0.1").out.split())
    assert re.search(
        rf"All budgets of consent were multiplied by {low:.5f}\d* for a central epsilon of 0\.1: [\d.]+, [\d.]+\. To "
        "whoever sees reports unshuffled: ",
        said,
    )
    said = " ".join(run_as_typed(*ask, "--target-epsilon", "3").out.split())
    assert "The budgets of consent stay within a central epsilon of 3 as they are. To whoever" in said
