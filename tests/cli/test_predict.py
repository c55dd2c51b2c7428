"""`shuffledp predict`, `load_model`, and training that goes on from a checkpoint."""

from __future__ import annotations

import csv
import json
import random

import numpy as np
import polars as pl
import pytest

import shuffledp as sdp
from shuffledp.errors import InvalidInput

TABLE = ("train", "people.csv", "--label", "buys", "--delta", "1e-5", "--unit", "client", "--seen", "reports")
QUICK = ("--mechanism", "sketch", "--epsilon0", "2", "--rounds", "3", "--simulation-seed", "1")
FEATURES = ("--features", "age:0:100,income:0:9")


@pytest.fixture
def people(run, tmp_path):
    """600 rows, and a label that two columns tell."""
    rng = np.random.default_rng(5)
    age, income = rng.uniform(0, 100, 600), rng.uniform(0, 9, 600)
    buys = np.where(age / 100 + income / 9 > 0.8, "yes", "no")
    table = pl.DataFrame({"age": age, "income": income, "buys": buys, "word": ["x"] * 600})
    table.write_csv(tmp_path / "people.csv")
    return table


def test_predictions_of_a_table_are_those_of_the_layers(run, people, tmp_path):
    run(*TABLE, *QUICK, *FEATURES, "--model-out", "m.npz", "--json")
    told = run("predict", "m.npz", "people.csv", "--label", "buys", "--out", "p.csv", "--json").json
    model = sdp.load_model(tmp_path / "m.npz")
    rows = people.select("age", "income").to_numpy()
    found = model.predict(rows)
    assert model.columns == ("age", "income")
    with (tmp_path / "p.csv").open(newline="") as file:
        written = list(csv.reader(file))
    assert written[0] == ["row", "predicted"]
    assert [word for _, word in written[1:]] == found.tolist()
    assert told["accuracy"] == np.mean(found == people["buys"].to_numpy())
    assert told["majority_share"] == max((people["buys"] == word).sum() for word in ("yes", "no")) / 600
    assert told["counts"] == {name: int((found == name).sum()) for name in ("no", "yes")}
    assert told["written"] == [str(tmp_path / "p.csv")]
    with np.load(tmp_path / "m.npz") as stored:
        scores = rows / [100.0, 9.0] @ stored["matrix_0"] + stored["bias_0"]
    assert (np.array(["no", "yes"])[scores.argmax(axis=1)] == found).all()
    assert model.predict_proba(rows).sum(axis=1) == pytest.approx(np.ones(600))


@pytest.mark.costly
def test_predictions_of_pictures(run, tmp_path):
    trained = run(
        "train", "mnist-sample", "--unit", "client", "--seen", "sum", "--epsilon0", "8", "--delta", "1e-5", "--rounds",
        "4", "--model-out", "m.npz", "--json",
    ).json  # fmt: skip
    told = run("predict", "m.npz", "mnist-sample", "--json").json
    assert told["accuracy"] == trained["accuracy"]
    assert told["majority_share"] == trained["majority_share"]
    assert told["trained_with"] == {"epsilon": trained["guarantee"]["epsilon"]["upper"], "delta": 1e-5}
    printed = run("predict", "m.npz", "mnist-sample").out
    assert "Predicted 500 rows:" in printed
    assert "the rows predicted here are not protected" in " ".join(printed.split())


def test_a_simulation_promises_nothing(run, people, tmp_path):
    run(*TABLE, *QUICK, *FEATURES, "--model-out", "m.npz", "--json")
    assert sdp.load_model(tmp_path / "m.npz").epsilon == float("inf")
    assert "nothing protects the people" in " ".join(run("predict", "m.npz", "people.csv").out.split())
    told = run("predict", "m.npz", "people.csv", "--json").json
    assert told["accuracy"] is None
    assert told["majority_share"] is None


def test_a_model_without_ranges_can_be_read(run, people, tmp_path):
    run(*TABLE, *QUICK, "--features", "age,income:0:9", "--model-out", "m.npz", "--json")
    assert sdp.load_model(tmp_path / "m.npz").predict(people.select("age", "income").to_numpy()).size == 600


def test_bad_models_and_sources_are_one_line(run, people, tmp_path):
    run(*TABLE, *QUICK, *FEATURES, "--model-out", "m.npz", "--json")
    whole = (tmp_path / "m.npz").read_bytes()
    (tmp_path / "half.npz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "empty.npz").write_bytes(b"")
    np.savez(tmp_path / "other.npz", numbers=np.zeros(3))
    for name in ("half.npz", "empty.npz", "other.npz", "people.csv"):
        assert "is no model file of shuffledp, or is damaged" in run("predict", name, "people.csv").error
    assert "there is no model file gone.npz" in run("predict", "gone.npz", "people.csv").error
    assert "was trained on the columns age, income" in run("predict", "m.npz", "mnist-sample").error
    people.drop("income").write_csv(tmp_path / "less.csv")
    assert "income" in run("predict", "m.npz", "less.csv").error
    assert not (tmp_path / "p.csv").exists()


def test_every_damaged_description_is_refused(run, people, tmp_path):
    run(*TABLE, *QUICK, *FEATURES, "--model-out", "m.npz", "--json")
    with np.load(tmp_path / "m.npz") as stored:
        parts = {name: stored[name] for name in stored.files}
    about = json.loads(str(parts["about"]))
    changes = [
        {"format": 7}, {"guarantee": {}}, {"features_of_a_row": {"kind": "waves", "side": 2}},
        {"features_of_a_row": {"kind": "columns", "columns": ["age"], "low": [0], "high": [1]}},
        {"guarantee": {"epsilon": {"upper": 1}, "delta": 7}},
    ]  # fmt: skip
    for change in changes:
        np.savez(tmp_path / "bad.npz", **parts | {"about": np.array(json.dumps(about | change))})
        with pytest.raises(InvalidInput, match="another format" if "format" in change else "damaged"):
            sdp.load_model(tmp_path / "bad.npz")
    np.savez(tmp_path / "bad.npz", **parts | {"matrix_0": np.full((2, 2), np.nan)})
    with pytest.raises(InvalidInput, match="damaged"):
        sdp.load_model(tmp_path / "bad.npz")


@pytest.mark.costly
def test_training_goes_on_from_a_checkpoint(run, people):
    more = (*TABLE, "--mechanism", "sketch", "--epsilon0", "2", *FEATURES, "--holdout", "0", "--checkpoint", "c.npz")
    first = run(*more, "--rounds", "2", "--json").json
    again = run(*more, "--rounds", "5", "--resume", "--json").json
    assert (first["guarantee"]["rounds"], again["guarantee"]["rounds"]) == (2, 5)
    assert again["guarantee"]["epsilon"]["upper"] > first["guarantee"]["epsilon"]["upper"]
    assert run(*more, "--rounds", "5", "--resume", "--json").json["guarantee"] == again["guarantee"]
    assert "another model: its clip" in run(*more, "--rounds", "6", "--clip", "0.5", "--resume").error


def test_resuming_needs_the_same_clients(run, people):
    drawn = (*TABLE, *QUICK, *FEATURES, "--resume")
    assert run(*drawn).error.startswith("--resume needs --checkpoint FILE")
    assert "both are drawn at random" in run(*drawn, "--checkpoint", "c.npz").error


def test_columns_without_ranges_are_warned_of(run, people):
    told = run(*TABLE, *QUICK, "--features", "age,income:0:9", "--json").json
    (warning,) = told["warnings"]
    assert warning.startswith("age: no range was given")
    assert "Warning: age: no range" in " ".join(run(*TABLE, *QUICK, "--features", "age,income:0:9").out.split())
    assert run(*TABLE, *QUICK, *FEATURES, "--json").json["warnings"] == []


def test_the_most_frequent_class_and_the_time_stand_beside_the_accuracy(run, people):
    printed = " ".join(run(*TABLE, *QUICK, *FEATURES).out.split())
    assert "Always saying the most frequent class gets" in printed
    assert "CPU seconds" in printed


@pytest.mark.costly
def test_a_flipped_bit_gives_a_model_or_one_clear_error(run, people, tmp_path):
    """TokenError came out bare, 3 of 1,000 times: NumPy reads the head of an array as Python does."""
    run(*TABLE, *QUICK, *FEATURES, "--model-out", "m.npz", "--json")
    whole, chance, refused = (tmp_path / "m.npz").read_bytes(), random.Random(1), 0
    heads = [at for at in range(len(whole)) if whole[at : at + 6] == b"\x93NUMPY"]
    for place in [*(8 * (at + k) for at in heads for k in range(8, 100)), *chance.sample(range(8 * len(whole)), 300)]:
        content = bytearray(whole)
        content[place // 8] ^= 1 << place % 8
        (tmp_path / "flipped.npz").write_bytes(content)
        try:
            sdp.load_model(tmp_path / "flipped.npz")
        except InvalidInput:
            refused += 1
    assert refused > 300
