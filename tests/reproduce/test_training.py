"""The papers' training figures on a small scale: what is run, what is written, and that nothing is claimed."""

from __future__ import annotations

import csv
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from shuffledp.errors import InvalidInput
from shuffledp.learning.inputs import sample_folder
from shuffledp.reproduce import REPRODUCTIONS, renyi, reproduce, training
from shuffledp.reproduce.base import epsilons
from shuffledp.reproduce.training import (
    VARIABLE,
    Honest,
    Published,
    Scale,
    scale,
    shown_epsilon,
    train_as_published,
    trained,
)

NAMES = ("gspa-figure-4", "gspa-table-3", "rdp-figure-4", "rdp-table-2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """All four, quick, cut to one epoch and two rounds, on small networks."""
    with pytest.MonkeyPatch.context() as patch:
        small = replace(scale(True), epochs=1, rounds=2)
        for module in (training, renyi):
            patch.setattr(module, "scale", lambda quick: small)
        patch.setattr(training, "READING", replace(training.READING, hidden=16))
        patch.setattr(renyi, "SCRIPT", replace(renyi.SCRIPT, hidden=16))
        patch.setattr(renyi, "PRINTED", replace(renyi.PRINTED, hidden=16))
        found = tmp_path_factory.mktemp("training")
        for name in NAMES:
            done: list[float] = []
            reproduce(name, found, quick=True, progress=done.append)
            assert done == sorted(done)
            assert done[-1] == 1.0
        return found


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_files_and_caption(folder, name):
    assert name in REPRODUCTIONS
    for ending in ("csv", "png", "svg", "md"):
        assert (folder / f"{name}.{ending}").stat().st_size > 0
    caption = (folder / f"{name}.md").read_text()
    for words in ("**Quick variant:**", "**Computed.**", "**Agrees", "**Does not.**", "**Honest"):
        assert words in caption
    assert re.search(r"guarantee (of both )?is none", caption)
    assert not re.search(r"\bnan\b|\binf\b|e-0|e\+", caption)


@pytest.mark.costly(but=("rdp-table-2",))
@pytest.mark.parametrize("name", ["gspa-figure-4", "rdp-figure-4", "rdp-table-2"])
def test_published_rows_claim_nothing_and_honest_rows_do(folder, name):
    kinds = set()
    for row in rows(folder / f"{name}.csv"):
        honest = row["training"].startswith("honest")
        kinds.add(honest)
        assert (row["guarantee"] == "none") != honest
        assert (row["epsilon"] == "") != honest
        assert (row["delta"] == "") != honest
        assert 0.0 <= float(row["accuracy"]) <= 100.0
    assert kinds == {True, False}


def test_every_population_and_every_budget_is_there(folder):
    table = rows(folder / "gspa-table-3.csv")
    assert [row["population"] for row in table] == ["unif-3", "constant", "unif-2", "unif-1", "mixed"]
    for row in table:
        assert row["published guarantee"] == "none"
        inverse = float(np.mean(1.0 / epsilons(row["population"], 100) ** 2))
        assert float(row["mean 1/epsilon0^2"]) == pytest.approx(inverse, rel=1e-12)
    budgets = {float(row["epsilon0"]) for row in rows(folder / "rdp-table-2.csv") if row["training"] == "as printed"}
    assert budgets == {0.1, 0.5, 1.0, 2.0}


def test_the_caption_has_the_numbers_of_the_data(folder):
    caption = (folder / "gspa-table-3.md").read_text()
    for row in rows(folder / "gspa-table-3.csv"):
        assert f"{float(row['published accuracy']):.1f} %" in caption
        assert f"{float(row['honest accuracy']):.1f} % at ε = {shown_epsilon(float(row['honest epsilon']))}" in caption
    caption = (folder / "rdp-table-2.md").read_text()
    for row in rows(folder / "rdp-table-2.csv"):
        assert f"{float(row['accuracy']):.1f} %" in caption


def test_honest_epsilon_grows_as_the_root_of_the_rounds(folder):
    """Two Gaussian messages of mu each are one of sqrt(2) mu: the trade-off of Balle and Wang 2018, Theorem 8."""
    from scipy.optimize import brentq
    from scipy.stats import norm

    def delta(epsilon: float, mu: float) -> float:
        return float(norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu))

    spent = [
        float(row["epsilon"])
        for row in rows(folder / "rdp-figure-4.csv")
        if row["training"] == "honest Gaussian" and float(row["epsilon0"]) == 1.0
    ]
    mu = brentq(lambda mu: delta(1.0, mu) - 1e-5, 0.01, 5.0, xtol=1e-13)
    for rounds, found in enumerate(spent, start=1):
        least = brentq(lambda e, t=rounds: delta(e, math.sqrt(t) * mu) - 1e-5, 0.1, 20.0, xtol=1e-12)
        assert least <= found <= least * 1.002


def test_a_way_runs_the_library_and_seeds_differ():
    how = Scale(sample_folder(), 1, 1, 2)
    way = Published(replace(training.READING, epochs=1, hidden=8), (1.0,) * 10)
    found = trained({"x": way}, how, lambda done: None)["x"]
    data = training._data(sample_folder())
    again = train_as_published(
        data.components[0], data.labels[0], (data.components[1], data.labels[1]), (1.0,) * 10, way.reading, seed=1
    )
    assert found.accuracies[1, 0] == pytest.approx(100.0 * again.accuracies[0], abs=0.5)
    assert found.accuracies[0, 0] != found.accuracies[1, 0]
    assert found.deviation[0] == pytest.approx(abs(np.diff(found.accuracies[:, 0])[0]) / math.sqrt(2.0))
    assert found.epsilons == ()


def test_published_and_honest_ask_for_the_same_budgets():
    how = replace(scale(True), clients=None)
    ways = training.ways(how)
    for name in training.POPULATIONS:
        published, honest = ways[f"published {name}"], ways[f"honest {name}"]
        assert isinstance(published, Published)
        assert isinstance(honest, Honest)
        assert published.budgets == honest.budgets == tuple(epsilons(name, 100).tolist())


@pytest.mark.parametrize("name", NAMES)
def test_the_full_variant_names_the_variable_it_needs(tmp_path, monkeypatch, name):
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(InvalidInput, match=r"set the variable SHUFFLEDP_MNIST to the folder .*--quick"):
        reproduce(name, tmp_path)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "gone"))
    with pytest.raises(InvalidInput, match="has no train-images-idx3-ubyte"):
        reproduce(name, tmp_path)
    assert not list(tmp_path.iterdir())


def test_epsilons_are_shown_rounded_up():
    assert [shown_epsilon(value) for value in (1.0, 1.001, 2.675)] == ["1.00", "1.01", "2.68"]
