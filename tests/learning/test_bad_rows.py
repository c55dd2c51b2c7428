"""A record never shows as an error, a warning or a missing message: what is not finite contributes zero."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shuffledp.learning import ShuffledSGDClassifier
from shuffledp.learning.messages import Clipping
from shuffledp.learning.network import Network
from shuffledp.learning.settings import Settings
from shuffledp.learning.training import Run
from shuffledp.numerics.randomness import simulation_random

DRAW = np.random.default_rng(3)
LABELS = DRAW.integers(3, size=60)
FEATURES = DRAW.normal(size=(60, 5))
BAD = (1e60, 1e75, 1e150, 1e154, 1e300, 1.7e308, math.nan, math.inf, -math.inf, float(np.finfo(np.float32).max))
WAYS = (
    ("example", "users", "gaussian", (16,)),
    ("example", "users", "laplace", ()),
    ("example", "sum", "gaussian", ()),
    ("client", "users", "laplace", ()),
    ("client", "reports", "sketch", ()),
    ("client", "reports", "sketch", (4,)),
    ("client", "reports", "laplace", (8,)),
    ("client", "levels", "gaussian", (4, 4)),
    ("client", "sum", "gaussian", ()),
)


def classifier(unit, seen, mechanism, hidden, **changes):
    return ShuffledSGDClassifier(
        unit=unit, seen=seen, mechanism=mechanism, hidden=hidden, epsilon0=0.5, delta=1e-5, clip=0.2, rounds=2,
        classes=3, random=simulation_random(1), **changes,
    )  # fmt: skip


def with_row(bad, row=7):
    """One row replaced: all its numbers, with the signs they had."""
    rows = FEATURES.copy()
    rows[row] = bad * np.sign(rows[row])
    return rows


@pytest.mark.costly(
    but=(
        "example-sum-gaussian-()-1e+154-shared",
        "example-users-gaussian-(16,)-1e+60-own",
        "example-users-gaussian-(16,)-nan-shared",
    )
)
@pytest.mark.one_in(12)
@pytest.mark.parametrize("groups", [None, 4], ids=["own", "shared"])
@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(map(str, way)))
def test_training_runs_and_says_the_same(way, bad, groups):
    """Warnings are errors here: none is given either."""
    if way[0] == "example" and groups is None:
        groups = 60  # a client each
    owners = None if groups is None else np.arange(60) % groups
    fitted = classifier(*way).fit(with_row(bad), LABELS, groups=owners)
    clean = classifier(*way).fit(FEATURES, LABELS, groups=owners)
    assert np.isfinite(fitted.weights_).all()
    assert fitted.guarantee_ == clean.guarantee_
    assert [report.messages for report in fitted.history_] == [report.messages for report in clean.history_]


@pytest.mark.parametrize("hidden", [(), (6,), (6, 4)])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("bad", BAD)
def test_what_is_not_finite_contributes_exactly_zero(bad, order, hidden):
    """The message of ten examples, one of them bad, against the sum over the nine others."""
    network = Network((5, *hidden, 3))
    weights = network.initial(simulation_random(2))
    clipping, mine = Clipping("example", "examples", 0.2, order), np.arange(10)
    rows, others = with_row(bad)[:10], np.delete(mine, 7)
    with np.errstate(all="ignore"):
        found = clipping.message(network, weights, rows, LABELS[mine])
        without = clipping.message(network, weights, rows[others], LABELS[others]) * 9 / 10
    if abs(bad) < 1e60:  # large, but with a gradient: clipped like any other
        assert 0.0 < np.linalg.norm(found - without, ord=order) <= 0.02 * (1 + 1e-12)
    else:
        assert found == pytest.approx(without, abs=1e-15)


@pytest.mark.parametrize("bad", BAD)
def test_a_message_clipped_as_a_whole_stays_within_the_bound(bad):
    network = Network((5, 3))
    weights = network.initial(simulation_random(2))
    for order in (1, 2):
        with np.errstate(all="ignore"):
            found = Clipping("client", "message", 0.2, order).message(network, weights, with_row(bad), LABELS)
        assert np.linalg.norm(found, ord=order) <= 0.2 * (1 + 1e-12)


@pytest.mark.costly("nan")
@pytest.mark.parametrize("bad", [1e150, math.nan, math.inf])
def test_the_bit_of_a_bad_record_is_a_fair_coin(bad):
    """512 bits; within 0.5 +- 0.14 but for a chance of 1e-9."""
    settings = Settings(**classifier("client", "reports", "sketch", ()).get_params())
    rows = with_row(bad)
    run = Run.of(settings, rows, LABELS, None, None, None)
    weights, z = run.server.weights, np.ones((1, run.sender.network.size), dtype=np.float32)
    with np.errstate(all="ignore"):
        bits = [int(run.sender.bits(np.array([7]), weights, z)[0]) for _ in range(512)]
    assert abs(np.mean(bits) - 0.5) < 0.14


@pytest.mark.costly("nan")
@pytest.mark.parametrize("bad", [math.nan, 1e300])
def test_a_feature_map_may_fail_on_a_record(bad):
    def lengths(rows):
        return rows / np.sqrt(np.sum(rows * rows, axis=1, keepdims=True))

    fitted = classifier("client", "reports", "sketch", (), features=lengths).fit(with_row(bad), LABELS)
    assert np.isfinite(fitted.weights_).all()
