"""`shuffledp train`: model file, accuracy, guarantee, page, and what it refuses."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import polars as pl
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from shuffledp.learning import OrientedGradients, ShuffledSGDClassifier, read_digits, sample_folder
from shuffledp.learning.train import weak
from shuffledp.numerics.randomness import simulation_random

DIGITS = (
    "train", "mnist-sample", "--unit", "example", "--seen", "users", "--clients", "20", "--epsilon0", "8",
    "--delta", "1e-5", "--rounds", "5", "--simulation-seed", "1",
)  # fmt: skip
PEOPLE = ("train", "people.csv", "--label", "buys", "--features", "age:0:100,income:0:9", "--delta", "1e-5")
BY_ROW = (*PEOPLE, "--unit", "client", "--seen", "reports", "--epsilon0", "4")
KEYS = {
    "question", "source", "rows", "clients", "test_rows", "tested_on", "accuracy", "classes", "features", "widths",
    "settings", "stopped", "notes", "private", "guarantee", "written",
    "majority_share", "cpu_seconds", "warnings",
}  # fmt: skip


@pytest.fixture
def people(run, tmp_path):
    """1,000 rows of 50 people, their budgets, and a label that two columns tell."""
    rng = np.random.default_rng(5)
    age, income = rng.uniform(0, 100, 1000), rng.uniform(0, 9, 1000)
    person = np.arange(1000) % 50
    pl.DataFrame(
        {
            "person": [f"p{i:02d}" for i in person],
            "age": age,
            "income": income,
            "buys": np.where(age / 100 + income / 9 > 1, "yes", "no"),
            "budget": np.where(person % 2 == 0, 1.0, 4.0),
            "rowwise": rng.uniform(1, 2, 1000),
            "gap": [None if i == 6 else 1.0 for i in range(1000)],
            "same": ["x"] * 1000,
        }
    ).write_csv(tmp_path / "people.csv")
    return "people.csv"


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Balle and Wang 2018, Theorem 8."""
    return float(norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu))


def layers(file) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict]:
    with np.load(file, allow_pickle=False) as stored:
        return stored["matrix_0"], stored["bias_0"], stored["classes"], json.loads(str(stored["about"]))


@pytest.mark.costly
def test_digits_from_model_file_alone(run, tmp_path):
    answer = run(*DIGITS, "--model-out", "digits.npz", "--json").json
    assert set(answer) == KEYS
    assert answer["rows"] == 2000
    assert answer["test_rows"] == 500
    assert answer["accuracy"] > 0.7
    assert answer["private"] is False
    assert answer["written"] == [str(tmp_path / "digits.npz")]
    matrix, bias, classes, about = layers(tmp_path / "digits.npz")
    test = read_digits(sample_folder(), "test")
    assert about["features_of_a_row"] == {"kind": "edges", "side": 28}
    found = classes[(OrientedGradients(28)(test.images) @ matrix + bias).argmax(axis=1)]
    assert float(np.mean(found.astype(int) == test.labels)) == answer["accuracy"]
    assert about["guarantee"] == answer["guarantee"]
    assert not list(tmp_path.glob(".*"))


@pytest.mark.costly
def test_one_bit_a_user_as_in_python(run, tmp_path):
    """The command of docs/learning.md on the bundled digits: the same model as the class trains."""
    options = {"epsilon0": 6.0, "clip": 0.6, "rounds": 8, "step": 30.0, "momentum": 0.9, "averaging": 0.5}
    typed = [word for name, value in options.items() for word in (f"--{name}", f"{value:g}")]
    answer = run(
        "train", "mnist-sample", "--unit", "client", "--seen", "reports", "--mechanism", "sketch", "--delta", "1e-4",
        "--features", "coarse-edges", *typed, "--simulation-seed", "1", "--model-out", "bits.npz", "--json",
    ).json  # fmt: skip
    train = read_digits(sample_folder(), "train")
    model = ShuffledSGDClassifier(
        unit="client", seen="reports", mechanism="sketch", delta=1e-4, hidden=(), classes=10,
        features=OrientedGradients(28, cell=7, length=1.0), random=simulation_random(1), **options,
    ).fit(train.images, train.labels)  # fmt: skip
    matrix, bias, _, about = layers(tmp_path / "bits.npz")
    assert np.array_equal(np.concatenate((matrix.ravel(), bias)), model.weights_)
    assert answer["guarantee"]["epsilon"]["upper"] == model.guarantee_.epsilon.upper
    assert about["settings"]["averaging"] == 0.5
    assert about["features_of_a_row"] == {"kind": "coarse-edges", "side": 28}


@pytest.mark.costly
def test_the_guarantee_is_that_of_what_was_run(run):
    guarantee = run(*DIGITS, "--json").json["guarantee"]
    assert (guarantee["unit"], guarantee["seen"], guarantee["rounds"]) == ("example", "users", 5)
    assert guarantee["method"] == "local"
    # the mu of one message that is (8, 1e-5)-private, then five of them, by another way
    mu = brentq(lambda mu: gaussian_delta(8.0, mu) - 1e-5, 0.1, 10.0, xtol=1e-12)
    epsilon = brentq(lambda epsilon: gaussian_delta(epsilon, math.sqrt(5.0) * mu) - 1e-5, 1.0, 100.0, xtol=1e-12)
    assert epsilon <= guarantee["epsilon"]["upper"] <= epsilon * 1.002
    keys = {"local", "levels", "blanket", "approximate", "chain", "ordered", "sum"}
    assert {entry["key"] for entry in guarantee["bounds"]} == keys


@pytest.mark.costly
def test_table_every_row_a_client(run, people, tmp_path):
    answer = run(*BY_ROW, "--rounds", "3", "--model-out", "m.npz", "--report", "r.html", "--json").json
    assert answer["private"] is True
    assert (answer["rows"], answer["clients"], answer["test_rows"]) == (800, 800, 200)
    assert answer["classes"] == ["no", "yes"]
    assert "drawn at random" in answer["tested_on"]
    assert any("held out" in note for note in answer["notes"])
    assert answer["guarantee"]["method"] in {"approximate", "chain", "local"}
    assert answer["guarantee"]["levels"][0]["count"] == 800
    about = layers(tmp_path / "m.npz")[3]
    assert about["features_of_a_row"]["columns"] == ["age", "income"]
    assert about["features_of_a_row"]["high"] == [100.0, 9.0]
    page = (tmp_path / "r.html").read_text()
    assert "A privately trained classifier" in page
    assert not re.search(r"(src|href)=\"http", page)


@pytest.mark.slow
def test_own_budgets_and_whole_clients_held_out(run, people):
    answer = run(
        *PEOPLE, "--unit", "client", "--seen", "sum", "--groups", "person", "--epsilon0", "budget", "--rounds", "2",
        "--classes", "no,yes", "--json",
    ).json  # fmt: skip
    assert (answer["clients"], answer["rows"], answer["test_rows"]) == (40, 800, 200)
    levels = answer["guarantee"]["levels"]
    assert [level["epsilon0"] for level in levels] == [1.0, 4.0]
    assert sum(level["count"] for level in levels) == 40
    assert not any("read off" in note for note in answer["notes"])
    worst = max(level["epsilon"]["upper"] for level in levels)
    assert answer["guarantee"]["epsilon"]["upper"] == worst


def test_learns_at_a_generous_budget_and_stops_at_max_epsilon(run, people):
    """Of 200 held-out rows, a line separates all; 85 % leaves room for noise that is 1/80 of the clip."""
    generous = (*PEOPLE, "--unit", "example", "--seen", "users", "--clients", "4", "--epsilon0", "100")
    answer = run(*generous, "--rounds", "60", "--step", "2", "--simulation-seed", "3", "--json").json
    assert answer["accuracy"] > 0.85
    stopped = run(*generous, "--rounds", "60", "--max-epsilon", "300", "--simulation-seed", "3", "--json").json
    assert 0 < stopped["guarantee"]["rounds"] < 60
    assert stopped["guarantee"]["epsilon"]["upper"] <= 300
    assert "would exceed" in stopped["stopped"]


@pytest.mark.costly
@pytest.mark.parametrize("find", ["scale", "rounds"])
def test_a_target_finds_budgets_or_rounds(run, find):
    """20 clients of 100 digits at (8, 1e-5) a message: 5 rounds cost 22.6, so both have to be smaller."""
    asked = [word for word in DIGITS if word not in ("--rounds", "5")] if find == "rounds" else list(DIGITS)
    answer = run(*asked, "--target-epsilon", "10", "--find", find, "--json").json
    (level,) = answer["guarantee"]["levels"]
    assert 7.0 < answer["guarantee"]["epsilon"]["upper"] <= 10.0
    assert answer["settings"]["rounds"] == answer["guarantee"]["rounds"]
    if find == "scale":
        assert answer["guarantee"]["rounds"] == 5
        assert level["epsilon0"] < 8.0
    else:
        assert answer["guarantee"]["rounds"] < 5
        assert level["epsilon0"] == 8.0
    assert any("for a target epsilon of 10" in note and "cost" in note for note in answer["notes"])


@pytest.mark.costly
def test_a_checkpoint_is_not_written_over(run):
    example = [word for word in DIGITS if word not in ("--clients", "20")]
    example[example.index("example")] = "client"
    example[example.index("users")] = "sum"
    one = (*example, "--mechanism", "laplace", "--rounds", "1", "--checkpoint", "run.npz")
    run(*one, "--json")
    assert "run.npz exists already" in (error := run(*one).error)
    assert "--resume" in error


@pytest.mark.costly
def test_patience_looks_at_public_rows_alone(run, people, tmp_path):
    pl.read_csv(tmp_path / people).head(100).write_csv(tmp_path / "public.csv")
    asked = (*BY_ROW, "--step", "0", "--rounds", "9", "--patience", "2", "--public")
    answer = run(*asked, "public.csv", "--simulation-seed", "1", "--json").json
    assert answer["stopped"] == "no better accuracy on the public data since round 1"
    assert answer["guarantee"]["rounds"] == 9
    assert (answer["rows"], answer["test_rows"]) == (800, 200)
    error = run(*BY_ROW, "--patience", "2").error
    assert "--patience needs --public" in error
    (tmp_path / "odd.csv").write_text("age,income,buys\n1,1,maybe\n")
    assert "'maybe', which is no label of the training rows" in run(*asked, "odd.csv").error
    assert "gone.csv does not exist" in run(*asked, "gone.csv").error


@pytest.mark.costly
def test_pictures_are_watched_on_public_ones(run):
    answer = run(*DIGITS, "--public", "mnist-sample", "--json").json
    assert answer["rows"] == 2000
    assert answer["test_rows"] == 500


@pytest.mark.parametrize(("epsilon", "told"), [(5.0, None), (5.1, "above 5 says little"), (11.0, "above 10 says next")])
def test_a_number_that_says_little_is_called_so(epsilon, told):
    found = weak(epsilon)
    assert (found == ()) if told is None else told in found[0]


def test_the_page_has_seconds_and_warnings(run, people, tmp_path):
    bare = [word.replace("age:0:100", "age") for word in BY_ROW]
    answer = run(*bare, "--rounds", "1", "--report", "r.html", "--json").json
    page = (tmp_path / "r.html").read_text()
    assert f"Trained in {answer['cpu_seconds']:.1f} CPU seconds." in page
    assert f"Always saying the most frequent class gets {100 * answer['majority_share']:.1f} %." in page
    assert "age: no range was given" in answer["warnings"][0]
    assert "age: no range was given" in page
    assert page.count("<dt>") == 10


@pytest.mark.costly
def test_what_people_read(run, people):
    shown = run(*BY_ROW, "--rounds", "1", "--holdout", "0").out
    for words in ("Accuracy was not measured", "Central epsilon at most", "What it rests on", "softmax regression"):
        assert words in shown
    assert "NOT PRIVATE" in run(*BY_ROW, "--rounds", "1", "--simulation-seed", "1").out


@pytest.mark.costly("arguments10-leaves nothing to train or to test")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "gone.csv", *BY_ROW[2:]), "table gone.csv does not exist"),
        ((*BY_ROW, "--label", "bys"), "no column 'bys' in people.csv; did you mean 'buys'"),
        ((*BY_ROW, "--label", "same"), "the labels are all the same: there is nothing to learn; check --label"),
        ((*BY_ROW, "--features", "gap"), "gap in row 7 is missing"),
        ((*BY_ROW, "--features", "person"), "person in row 1 is not a number"),
        ((*BY_ROW, "--features", "age:9:1"), "NAME:LOW:HIGH with LOW below HIGH; got 'age:9:1'"),
        ((*BY_ROW, "--features", "age:0"), "NAME:LOW:HIGH .* got 'age:0'"),
        ((*BY_ROW, "--features", "age,age"), "names a column twice"),
        ((*BY_ROW, "--classes", "no,maybe"), "buys in row [0-9]+ is not among --classes"),
        ((*BY_ROW, "--holdout", "1"), "--holdout must be from 0 to below 1; got 1"),
        ((*BY_ROW, "--holdout", "1e-9"), "leaves nothing to train or to test"),
        ((*BY_ROW, "--groups", "person", "--clients", "3"), "--groups and --clients exclude each other"),
        ((*BY_ROW, "--unit", "example"), "--unit example needs clients that hold several rows"),
        ((*BY_ROW, "--unit", "row"), "unit must be one of client, example; got 'row'"),
        ((*BY_ROW, "--seen", "all"), "seen must be one of"),
        ((*BY_ROW, "--groups", "person", "--epsilon0", "rowwise"), r"client p\d\d has two budgets"),
        ((*BY_ROW, "--epsilon0", "buys"), "--epsilon0 makes the column 'buys' public, and it is the one that is"),
        ((*BY_ROW, "--groups", "buys"), "--groups makes the column 'buys' public, and it is the one that is asked"),
        ((*BY_ROW, "--epsilon0", "0"), "every client has the budget epsilon0 = 0"),
        ((*BY_ROW, "--epsilon0", "-1"), "epsilon0 must be from 0 to 700"),
        ((*BY_ROW, "--delta", "0"), "delta must"),
        ((*BY_ROW, "--rounds", "0"), "rounds must be a whole number of at least 1"),
        ((*BY_ROW, "--find", "rounds"), "--find rounds needs --target-epsilon"),
        ((*BY_ROW, "--target-epsilon", "1", "--find", "n"), "--find must be scale .* or rounds; got 'n'"),
        ((*BY_ROW, "--target-epsilon", "1", "--find", "rounds", "--rounds", "3"), "leave --rounds out"),
        ((*BY_ROW, "--target-epsilon", "0"), "--target-epsilon must be positive"),
        ((*BY_ROW, "--min-messages", "10000"), "no round was released"),
        ((*BY_ROW, "--clip", "0"), "clip"),
        ((*BY_ROW, "--hidden", "128,x"), "--hidden must be widths of layers"),
        ((*BY_ROW, "--mechanism", "cauchy"), "mechanism must be one of gaussian, laplace"),
        ((*BY_ROW, "--report", "gone/r.html"), "--report gone/r.html cannot be written"),
        ((*BY_ROW, "--model-out", "m.npy"), "--model-out must end in .npz"),
        (
            (*DIGITS, "--features", "faces"),
            "--features of pictures must be one of edges, coarse-edges, scattering, strokes, cosine, pixels; got",
        ),
        ((*DIGITS, "--label", "x"), "--label belongs to tables"),
        ((*DIGITS, "--epsilon0", "budget"), "--epsilon0 must be a number for pictures"),
        (("train", "empty", *DIGITS[2:]), "empty has no train-images-idx3-ubyte"),
    ],
)
def test_bad_input_leaves_no_model(run, people, tmp_path, arguments, message):
    (tmp_path / "empty").mkdir()
    written = () if "--model-out" in arguments else ("--model-out", "model.npz")
    assert re.search(message, run(*arguments, *written).error)
    assert not list(tmp_path.glob("*model*"))
    assert not list(tmp_path.glob(".*.part"))


LEDGERED = (*BY_ROW, "--rounds", "3", "--classes", "no,yes", "--holdout", "0", "--ledger", "p.ledger")


@pytest.mark.costly
def test_the_whole_run_is_entered(run, people):
    run("ledger", "p.ledger", "--new")
    found = run(*LEDGERED, "--population", "town", "--fixed-in-advance", "plan", "--json").json
    (entry,) = run("ledger", "p.ledger", "--json").json["entries"]
    assert entry["epsilon"] == pytest.approx(found["guarantee"]["epsilon"]["upper"], rel=1e-6)
    assert (entry["title"], entry["population"]) == ("training, 3 rounds", "town")


@pytest.mark.costly
def test_a_limit_stops_training_before_a_message(run, people, tmp_path):
    run("ledger", "p.ledger", "--limit", "1.6,1e-4")
    error = run(*LEDGERED, "--model-out", "model.npz").error
    assert "nothing was released; what would fit: --rounds " in error
    assert run("ledger", "p.ledger", "--json").json["entries"] == []
    assert not (tmp_path / "model.npz").exists()


@pytest.mark.parametrize(
    ("without", "told"),
    [("--holdout", "say --holdout 0"), ("--classes", "name the labels with --classes")],
)
def test_a_ledger_covers_all_that_is_told(run, people, without, told):
    place = LEDGERED.index(without)
    assert told in run(*LEDGERED[:place], *LEDGERED[place + 2 :]).error


def test_a_plan_needs_a_ledger(run, people):
    assert "--ledger" in run(*LEDGERED[:-2], "--fixed-in-advance", "plan").error
