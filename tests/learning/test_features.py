"""Fixed features: from no data, or from data declared public."""

from __future__ import annotations

import numpy as np
import pytest

from shuffledp.errors import InvalidInput
from shuffledp.learning.features import OrientedGradients, cosine_projection, public_projection

DRAW = np.random.default_rng(0)


def test_principal_components_are_those_of_the_covariance():
    rows = DRAW.normal(size=(300, 6)) @ np.diag([5, 3, 2, 1, 0.5, 0.1]) @ DRAW.normal(size=(6, 6)) + 4.0
    found = public_projection(rows, 3, public=True)(rows)
    centred = rows - rows.mean(axis=0)
    values = np.linalg.svd(centred, compute_uv=False)
    assert np.allclose(np.linalg.norm(found, axis=0), values[:3])
    assert np.allclose(found.T @ found, np.diag(values[:3] ** 2), atol=1e-8)


def test_components_of_private_data_are_refused():
    with pytest.raises(InvalidInput, match="principal components of private records reveal them"):
        public_projection(np.eye(4), 2, public=False)


def test_cosines_are_orthonormal_and_in_order_of_frequency():
    matrix = cosine_projection(7, 49).matrix
    assert np.allclose(matrix.T @ matrix, np.eye(49), atol=1e-12)
    assert np.allclose(cosine_projection(7, 1).matrix, 1 / 7)
    assert np.array_equal(cosine_projection(7, 5).matrix, matrix[:, :5])


def test_gradients_of_a_step_point_across_it():
    """A vertical edge: all of it in the bin of direction 0, in the cells that the edge touches."""
    picture = np.zeros((1, 8, 8))
    picture[:, :, 4:] = 100.0
    found = OrientedGradients(8, cell=4, directions=8, length=2.0)(picture.reshape(1, 64)).reshape(2, 2, 8)
    assert np.allclose(found[..., 0], 1.0)
    assert np.allclose(found[..., 1:], 0.0)


def test_features_have_their_length_and_ignore_brightness():
    pictures = DRAW.integers(256, size=(3, 784)).astype(np.uint8)
    features = OrientedGradients(28)
    assert np.allclose(np.linalg.norm(features(pictures), axis=1), 3.0)
    assert np.allclose(features(pictures), features(pictures * 0.01 + 7.0))
    assert not features(np.zeros((1, 784))).any()


def test_a_turn_of_the_picture_turns_the_bins():
    picture = DRAW.uniform(size=(8, 8))
    features = OrientedGradients(8, cell=8, directions=8)
    turned = np.rot90(picture, -1)  # clockwise, with rows counted downwards: angles grow by a quarter
    first, second = (features(p.reshape(1, 64))[0] for p in (picture, turned))
    assert np.allclose(np.roll(first, 2), second)


@pytest.mark.parametrize(
    "make",
    [
        lambda: OrientedGradients(28, cell=5),
        lambda: OrientedGradients(28, directions=1),
        lambda: OrientedGradients(28)(np.zeros((1, 100))),
        lambda: cosine_projection(4, 17),
        lambda: cosine_projection(0, 1),
        lambda: cosine_projection(4, 3)(np.zeros((2, 15))),
        lambda: public_projection(np.array([[1.0, np.inf], [0.0, 1.0]]), 1, public=True),
        lambda: public_projection(np.eye(3), 4, public=True),
    ],
)
def test_what_does_not_fit_is_refused(make):
    with pytest.raises(InvalidInput):
        make()
