"""Scattering features: what they hold, and that they look at one record at a time."""

from __future__ import annotations

import numpy as np
import pytest

from shuffledp.errors import InvalidInput
from shuffledp.learning import Scattering, read_digits, sample_folder

DIGITS = read_digits(sample_folder(), "train").images[:70]


def test_shape_length_and_channels():
    features = Scattering(28)
    found = features(DIGITS)
    assert found.shape == (70, 81 * 16)
    assert np.linalg.norm(found, axis=1) == pytest.approx(1.0, rel=1e-5)
    channels = found.reshape(70, 81, 16)
    assert np.abs(channels.mean(axis=2)).max() < 1e-6
    norms = np.linalg.norm(channels, axis=2)
    assert norms == pytest.approx(np.broadcast_to(norms[:, :1], norms.shape), rel=1e-3)
    assert features.origin == "1296 scattering features, from no data"


def test_a_record_is_mapped_by_itself():
    features = Scattering(28, angles=4)
    together = features(DIGITS)
    assert np.allclose(together[3:5], features(DIGITS[3:5]), atol=1e-6)
    assert not features(np.zeros((1, 784))).any()


def test_a_turned_picture_turns_its_channels():
    """A quarter turn of the picture is a shift of half the angles, and a quarter turn of the cells."""
    features = Scattering(28, cell=7, angles=4, length=1.0)
    picture = DIGITS[7].reshape(28, 28)
    plain, turned = (features(p.reshape(1, -1))[0].reshape(25, 4, 4) for p in (picture, np.rot90(picture)))
    for scale in (0, 1):
        own = plain[1 + 4 * scale : 5 + 4 * scale]
        assert turned[1 + 4 * scale : 5 + 4 * scale] == pytest.approx(
            np.rot90(np.roll(own, 2, axis=0), axes=(1, 2)), abs=2e-3
        )


def test_the_wavelets_do_not_see_the_mean():
    for waves in Scattering(28)._wavelets:
        assert np.abs(waves[:, 0, 0]).max() < 1e-7
        assert waves.max() > 0.9


@pytest.mark.parametrize("bad", [{"side": 4}, {"cell": 5}, {"angles": 1}, {"length": 0.0}])
def test_numbers_that_do_not_fit(bad):
    with pytest.raises(InvalidInput, match="scattering features need cells"):
        Scattering(**{"side": 28} | bad)


def test_other_pictures_are_refused():
    with pytest.raises(InvalidInput, match="784 points a picture"):
        Scattering(28)(np.zeros((2, 100)))
