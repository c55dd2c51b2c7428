"""Each coordinate of a mean vector bears the name of its column: on the terminal, in JSON, CSV, pages and Python."""

from __future__ import annotations

import json
import re

import numpy as np
import polars as pl
import pytest

import shuffledp as sdp

NAMES = ["walk", "bike", "bus"]
TABLE = pl.DataFrame({name: [0.1 * place, 0.2] * 500 for place, name in enumerate(NAMES)})
REST = ("--norm", 1, "--epsilon0", 4, "--delta", 1e-6)


@pytest.fixture
def ask(run, tmp_path):
    TABLE.write_csv(tmp_path / "p.csv")
    return lambda *options, values="walk,bike,bus": run("vector-mean", "p.csv", "--values", values, *REST, *options)


def test_every_door_names_the_columns(ask, tmp_path):
    screen = ask("--report", "p.html", "--csv", "out.csv").out
    assert re.findall(r"^│ +(\w+) │", screen, re.MULTILINE) == NAMES
    assert re.findall(r'data-heading="coordinate">(\w+)<', (tmp_path / "p.html").read_text(encoding="utf-8")) == NAMES
    assert pl.read_csv(tmp_path / "out.csv").select("coordinate", "column").rows() == list(enumerate(NAMES))
    found = ask("--json").json
    for listed in (found["estimates"], found["sum"]["estimates"]):
        assert [(each["coordinate"], each["column"]) for each in listed] == list(enumerate(NAMES))


def test_a_difference_names_them_and_subtracts_no_other_column(run, ask, tmp_path):
    for name, values in {"a": "walk,bike,bus", "b": "walk,bike,bus", "c": "bus,bike,walk"}.items():
        (tmp_path / f"{name}.json").write_text(ask("--json", values=values).out, encoding="utf-8")
    typed = ("difference", "a.json", "b.json", "--delta", 1e-6)
    assert re.findall(r"^│ +(\w+) +│", run(*typed).out, re.MULTILINE) == NAMES
    assert [each["column"] for each in run(*typed, "--json").json["estimates"]] == NAMES
    refused = run("difference", "a.json", "c.json", "--delta", 1e-6)
    assert (refused.status, "the same categories, bins or columns" in refused.err) == (2, True)
    old = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    for each in old["estimates"]:
        del each["column"]  # as version 0.2.0 wrote it
    (tmp_path / "old.json").write_text(json.dumps(old), encoding="utf-8")
    assert run("difference", "old.json", "b.json", "--delta", 1e-6).status == 0


def test_python_names_them_and_an_array_has_no_names():
    release = sdp.release(sdp.VectorMean(3, 1.0), TABLE, value=NAMES, budgets=4.0, seen="reports", delta=1e-6)
    assert release.to_frame()["column"].to_list() == NAMES
    assert release.question == sdp.VectorMean(3, 1.0)
    unnamed = sdp.release(
        sdp.VectorMean(3, 1.0), {"v": TABLE.to_numpy()}, value="v", budgets=4.0, seen="reports", delta=1e-6
    )
    assert unnamed.to_frame().columns[:2] == ["coordinate", "estimate"]
    assert sdp.difference(release, release, delta=2e-6).before.labels == tuple(NAMES)
    assert np.isfinite(unnamed.estimate).all()
