"""The torch trainer, as `test_bad_rows`: a record never shows as an error, a warning or a missing message."""

from __future__ import annotations

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from shuffledp.errors import InvalidInput  # noqa: E402
from shuffledp.learning.torch import ShuffledSGD  # noqa: E402
from shuffledp.learning.torch.gradients import LOSSES, FunctionalGradients, LayerGradients, Model  # noqa: E402
from shuffledp.numerics.randomness import simulation_random  # noqa: E402
from tests.learning.test_bad_rows import BAD, FEATURES, LABELS, with_row  # noqa: E402


def dense(kind=torch.float32):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3)).to(kind)


def convolving(kind=torch.float32):
    torch.manual_seed(0)
    layers = torch.nn.Unflatten(1, (1, 1, 5)), torch.nn.Conv2d(1, 2, (1, 3)), torch.nn.Flatten(), torch.nn.Linear(6, 3)
    return torch.nn.Sequential(*layers).to(kind)


@pytest.mark.parametrize("norms", ["layers", "functional"])
@pytest.mark.parametrize("way", [("example", "users"), ("client", "users"), ("client", "reports"), ("client", "sum")])
def test_training_runs_and_says_the_same(way, norms):
    """The row is large enough to overflow single precision, or double, or is no number at all."""
    asked = {"unit": way[0], "seen": way[1], "epsilon0": 0.5, "delta": 1e-5, "clip": 0.2, "rounds": 1, "norms": norms}
    for make, groups in ((dense, 4), (convolving, 20)):
        told = []
        for bad in (1.0, 1e150, 1.7e308, math.nan, math.inf, BAD[-1]):
            trainer = ShuffledSGD(make(), **asked, random=simulation_random(1))
            trainer.fit(
                torch.as_tensor(with_row(bad)[:20]), torch.as_tensor(LABELS[:20]), groups=np.arange(20) % groups
            )
            told.append(trainer.guarantee_)
            assert all(torch.isfinite(p).all() for p in trainer.module.parameters())
        assert all(guarantee == told[0] for guarantee in told)


@pytest.mark.parametrize("kind", [LayerGradients, FunctionalGradients])
@pytest.mark.parametrize("make", [dense, convolving])
@pytest.mark.parametrize("bad", [1e75, 1e300, math.nan, math.inf])
def test_what_is_not_finite_contributes_exactly_zero(bad, make, kind):
    """A huge gradient of finite norm is clipped like any other."""
    gradients = kind(Model(make(torch.float64), LOSSES["cross-entropy"]))
    rows, labels = torch.as_tensor(with_row(bad)[:10]), torch.as_tensor(LABELS[:10])
    others = torch.tensor([i for i in range(10) if i != 7])
    for order in (1, 2):
        found = gradients.clipped_sum(rows, labels, 0.2, order)
        without = gradients.clipped_sum(rows[others], labels[others], 0.2, order)
        assert torch.linalg.vector_norm(found - without, ord=order) <= (0.2 if math.isfinite(bad) else 0.0) + 1e-12


def test_running_statistics_are_refused_plainly():
    module = torch.nn.Sequential(
        torch.nn.Unflatten(1, (1, 5)), torch.nn.InstanceNorm1d(1, track_running_stats=True), torch.nn.Flatten()
    )
    module.append(torch.nn.Linear(5, 3))
    trainer = ShuffledSGD(module, unit="client", seen="sum", epsilon0=1.0, delta=1e-5, clip=1.0, rounds=1)
    with pytest.raises(InvalidInput, match="InstanceNorm1d with running statistics writes the records"):
        trainer.fit(FEATURES, LABELS)
