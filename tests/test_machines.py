"""What one machine makes another reads, and a seed draws the same reports on both."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests import machine_files
from tests.perturbed import NAMES, Perturbed
from tests.trees import ROOT

pytestmark = pytest.mark.machine
DIGESTS = json.loads(Path(__file__).with_name("machine_digests.json").read_text(encoding="utf-8"))


def test_a_seed_draws_the_frozen_reports():
    """Frozen for every family, with a budget of one's own for each of 3,000 people."""
    assert machine_files.digests() == DIGESTS


@pytest.mark.costly
def test_files_made_on_one_machine_are_read_on_another(tmp_path):
    """The other one's exp, expm1, log and log1p have other last digits."""
    for what, machine in (("make", ["tests.perturbed", "11"]), ("read", [])):
        call = [sys.executable, "-m", *machine, "tests.machine_files", what, str(tmp_path / "files")]
        done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
        assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_the_imitated_machine_differs_by_one_unit(name, precision):
    moved = Perturbed(getattr(np, name).ufunc if isinstance(getattr(np, name), Perturbed) else getattr(np, name), 7)
    x = np.linspace(0.0, 3.0, 3001).astype(precision) + (1 if name == "log" else 0)
    x = x.astype(precision)
    plain, found = moved.ufunc(x), moved(x)
    steps = (found.astype(np.float64) - plain) / np.spacing(np.abs(plain))
    assert found.dtype == precision
    assert (moved(x) == found).all()
    assert found[0] == plain[0]  # exp(0), log(1): the same everywhere
    assert set(np.unique(np.sign(steps))) == {-1.0, 0.0, 1.0}
    assert np.abs(steps).max() <= 1.0
    assert np.mean(steps != 0.0) == pytest.approx(2 / 3, abs=0.05)
    assert moved(precision(2.0)) == moved(np.full(3, 2.0, dtype=precision))[1]
    into = np.zeros_like(x)
    assert moved(x, out=into) is into
    assert (into == found).all()
