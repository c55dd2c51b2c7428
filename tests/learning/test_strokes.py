"""Stroke features: few numbers that hold what handwriting varies in, made from no data."""

from __future__ import annotations

import numpy as np
import pytest

from shuffledp.errors import InvalidInput
from shuffledp.learning import Scattering, StrokeScattering, public_projection, read_digits, sample_folder
from shuffledp.learning.features import PICTURES, features_of, random_strokes

SMALL = StrokeScattering(8, components=20, cell=4)
PICTURE = np.random.default_rng(5).integers(256, size=(6, 64)).astype(np.uint8)


@pytest.mark.costly
def test_shape_and_length():
    found = SMALL(PICTURE)
    assert found.shape == (6, 20)
    assert found.dtype == np.float32
    assert np.linalg.norm(found, axis=1) == pytest.approx(1.0, rel=1e-5)
    assert SMALL.origin == "20 principal components of scattering features of random strokes, from no data"


def test_a_record_is_mapped_by_itself():
    assert np.allclose(SMALL(PICTURE)[2:4], SMALL(PICTURE[2:4]), atol=1e-5)
    assert np.isfinite(SMALL(np.zeros((1, 64)))).all()


@pytest.mark.costly
def test_whitening_makes_components_equally_wide_among_strokes():
    drawn = random_strokes(8, PICTURES)
    spreads = {}
    for whitening in (0.0, 1.0):
        rows = StrokeScattering(8, 20, whitening, cell=4)(drawn)
        spreads[whitening] = rows.std(axis=0)
    assert spreads[0.0][0] > 2.0 * spreads[0.0][-1]
    assert spreads[1.0].max() < 1.1 * spreads[1.0].min()


def test_everybody_draws_the_same_strokes():
    pictures = random_strokes(28, 200).reshape(200, 28, 28)
    assert (pictures.reshape(200, -1) == random_strokes(28, 200)).all()
    ink = pictures.sum(axis=(1, 2), dtype=float)
    assert ink[:5] == pytest.approx([16521.0, 21696.0, 23913.0, 38561.0, 25624.0], rel=1e-3)
    for axis in (1, 2):  # what is drawn is about in the middle
        at = (pictures.sum(axis=3 - axis) * np.arange(28)).sum(axis=1) / ink
        assert np.abs(at - 13.5).mean() < 1.5
        assert at.min() > 8.0
        assert at.max() < 19.0


@pytest.mark.slow
def test_they_hold_what_digits_vary_in():
    """The figure of the module's first lines."""
    scattering = Scattering(28)
    digits = scattering(read_digits(sample_folder(), "train").images)
    found = public_projection(scattering(random_strokes(28, PICTURES)), 400, public=True)
    centred = digits - found.mean
    assert ((centred @ found.matrix) ** 2).sum() / (centred**2).sum() > 0.98


@pytest.mark.slow
def test_a_model_file_names_them():
    digits = read_digits(sample_folder(), "train").images[:9]
    assert (features_of({"kind": "strokes", "side": 28})(digits) == StrokeScattering(28)(digits)).all()


@pytest.mark.parametrize(
    ("bad", "why"),
    [({"components": c}, "whole number from 1 to 324") for c in (0, 325, True, 2.5, "9")]
    + [({"whitening": w}, "number from 0 to 1") for w in (-0.1, 1.1, np.nan, "1")]
    + [({"cell": 8}, "scattering features need cells that divide a side of 8 or more in several")]
    + [({"side": 8.0}, "`side` must be a whole number of at least 1; got 8.0")],
)
def test_numbers_that_do_not_fit(bad, why):
    with pytest.raises(InvalidInput, match=why):
        StrokeScattering(**{"side": 8, "cell": 4, "components": 20} | bad)


def test_a_side_that_does_not_fit():
    with pytest.raises(InvalidInput, match="scattering features need cells"):
        StrokeScattering(28, cell=5)
