"""The papers' figures: files whole, data equal to what the library says, captions true to the data."""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

import pytest

import shuffledp as sdp
from shuffledp.cli import main
from shuffledp.errors import InvalidInput, what_is_missing
from shuffledp.reproduce import REPRODUCTIONS, reproduce
from shuffledp.reproduce.base import NAMES, epsilons
from shuffledp.reproduce.normal_limit import normal_distance
from tests.accounting import test_paper_failures as other

FAST = [name for name, reproduction in REPRODUCTIONS.items() if reproduction.full_minutes <= 0.5]


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reproduced")


@pytest.mark.costly
@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", FAST)
def test_each_leaves_data_pictures_and_caption(folder, name):
    done: list[float] = []
    files = reproduce(name, folder, quick=True, progress=done.append)
    assert [file.suffix for file in files][-3:] == [".png", ".svg", ".md"]
    assert all(file.stat().st_size > 0 for file in files)
    assert done == sorted(done)
    assert done[-1] == 1.0
    assert files[-3].read_bytes().startswith(b"\x89PNG")
    caption = files[-1].read_text()
    assert not re.search(r"\bnan\b|\binf\b", caption)
    assert all(word in caption for word in ("**Computed.**", "**Agrees", name))
    assert not list(folder.glob("*.part"))


def test_without_matplotlib_one_line_names_the_extra_before_any_work(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SystemExit) as left:
        main(["reproduce", "gspa-figure-4", "--out", str(tmp_path / "out")])  # an hour of work, if it began
    assert left.value.code == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == f"error: {what_is_missing('reproduce', 'matplotlib')}\n"
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_figure_of_central_epsilon_is_what_the_library_says(folder):
    reproduce("gspa-figure-2", folder, quick=True)
    table = {(r["population"], r["n"], r["series"]): float(r["epsilon"]) for r in rows(folder / "gspa-figure-2.csv")}
    setting = sdp.Setting(
        sdp.Budgets([0.5], [10_000]), sdp.RandomizedResponse(2), seen="reports", neighboring="replace-one"
    )
    found = sdp.certify(setting, 1e-4).epsilon
    assert table["constant", "10000", "certified-upper"] == found.upper
    assert table["constant", "10000", "attained"] == found.lower
    for (population, n, series), value in table.items():
        if series == "attained":
            assert value <= table[population, n, "certified-upper"]


@pytest.mark.slow
def test_renyi_figures_have_the_reference_values(folder):
    """Values of the same formulas at epsilon0 = 2, n = 1e4, order 8, computed independently with 6 digits."""
    reproduce("rdp-figure-3", folder, quick=True)
    at = {r["series"]: float(r["renyi"]) for r in rows(folder / "rdp-figure-3.csv") if float(r["order"]) == 8}
    for series, value in (
        ("certified-upper", 0.003894),
        ("clones-2022", 0.006861),
        ("rdp-renyi", 0.011824),
        ("girgis21-lower", 0.002193),
        ("girgis21", 0.5513),
    ):
        assert at[series] == pytest.approx(value, rel=3e-4)
    assert at["attained"] <= at["certified-upper"]


@pytest.mark.parametrize(("others", "share"), [(99, 0.47), (99, 0.2354), (12, 0.1)])
def test_the_distance_to_the_normal_law_by_another_way(others, share):
    assert normal_distance(others, share) == pytest.approx(other.normal_distance(others, share), abs=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_populations_repeat_the_first_thousand(name):
    budgets = epsilons(name, 3000)
    assert budgets.shape == (3000,)
    assert (budgets[:1000] == budgets[1000:2000]).all()
    assert budgets.min() >= 0.01
    assert budgets.max() <= 2.0


@pytest.mark.costly
def test_the_same_bytes_again(tmp_path):
    first = [file.read_bytes() for file in reproduce("gspa-lemma-2", tmp_path / "a", quick=True)]
    assert first == [file.read_bytes() for file in reproduce("gspa-lemma-2", tmp_path / "b", quick=True)]


@pytest.mark.costly
def test_bad_names_and_folders(tmp_path):
    with pytest.raises(InvalidInput, match=r"^nothing is called 'gspa-figure-1'; choose one of gspa-figure-2, "):
        reproduce("gspa-figure-1", tmp_path)
    (tmp_path / "file").write_text("kept")
    with pytest.raises(InvalidInput, match=r"^cannot write to .*file"):
        reproduce("gspa-lemma-2", tmp_path / "file", quick=True)
    assert (tmp_path / "file").read_text() == "kept"
