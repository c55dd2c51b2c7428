"""The end points are the worst pair of records (docs/theorems/end-points.md), by quadrature of T_t; nothing shared."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from shuffledp.accounting.theorems.blanket.noise import Core, Noise
from shuffledp.numerics.floats import FloatArray

PIECES = 6000


def density(kind: str, scale: float, u: FloatArray) -> FloatArray:
    if kind == "gaussian":
        return norm.pdf(u, scale=scale)
    return np.exp(-np.abs(u) / scale) / (2.0 * scale)


def midpoints(low: float, high: float, kinks: list[float], pieces: int) -> tuple[FloatArray, FloatArray]:
    ends = np.unique(np.concatenate((np.linspace(low, high, pieces), np.clip(kinks, low, high))))
    return 0.5 * (ends[1:] + ends[:-1]), np.diff(ends)


def both(kind: str, scale: float, omega, edge: float, pairs, a: float, levels) -> list[FloatArray]:
    """T_t of each pair for every level t; the same quadrature for all pairs."""
    kinks = [0.0, 0.5, 1.0, *(x for pair in pairs for x in pair)]
    y, width = midpoints(1.0 - edge, edge, kinks, PIECES + 1)
    far, wide = midpoints(edge, edge + 40.0 * scale, [], 4001)
    base = omega(y)
    base = base / float(base @ width)
    inside = [density(kind, scale, y - x0) - a * density(kind, scale, y - x1) for x0, x1 in pairs]
    found: list[FloatArray] = []
    for (x0, x1), gain in zip(pairs, inside, strict=True):
        charge = 0.0
        for side in (far, 1.0 - far):
            beyond = density(kind, scale, side - x0) - a * density(kind, scale, side - x1)
            charge += float(np.maximum(beyond, 0.0) @ wide)
        found.append(charge + np.maximum(gain - levels(inside, base)[:, None] * base, 0.0) @ width)
    return found


def telling_levels(inside: list[FloatArray], base: FloatArray) -> FloatArray:
    """Values that L takes, and 0."""
    with np.errstate(divide="ignore", over="ignore"):
        losses = np.concatenate([gain / base for gain in inside])
    return np.append(np.quantile(losses[np.isfinite(losses)], np.linspace(0.001, 0.999, 25)), 0.0)


def farther(y: FloatArray) -> FloatArray:
    return np.maximum(np.abs(y), np.abs(1.0 - y))


def excepted(victim: Noise, records: tuple[float, float], core: Core, epsilon: float) -> bool:
    """Whether the bound may be its charge alone, so that the theorem says nothing about negative levels."""
    x0, x1 = sorted(records)
    if victim.kind == "laplace":
        return x1 - x0 <= victim.scale * epsilon * (1 + 1e-9)
    if core.noise.scale < victim.scale:
        return False
    x0 = min(x0, 1.0 - x0) if x0 > 0.5 else x0  # as in the proof: both records on one side of the middle
    signs = [0.5 * (x + 1.0) - epsilon * victim.scale**2 / (1.0 - x) for x in (0.0, x0)]
    return min(signs) < 1.0 - core.edge + 1e-9


RECORDS = st.floats(0.0, 1.0)
LOG_RATIO = st.floats(-1.2, 1.2)


@pytest.mark.costly
@settings(max_examples=200, deadline=None)
@given(
    kind=st.sampled_from(["laplace", "gaussian"]),
    log_scale=st.floats(math.log(0.08), math.log(5.0)),
    log_ratio=LOG_RATIO,
    reach=st.floats(0.0, 6.0),
    records=st.tuples(RECORDS, RECORDS),
    share=st.floats(0.0, 1.0),
)
def test_no_pair_exceeds_the_end_points(kind, log_scale, log_ratio, reach, records, share):
    """Wherever `Core.proved_up_to` says that it is proved; records in any order."""
    scale = math.exp(log_scale)
    core = Core(Noise(kind, scale * math.exp(log_ratio)), round(1.0 + reach * scale, 6))
    local = 1.0 / scale if kind == "laplace" else 1.0 / scale**2
    epsilon = share**2 * min(core.proved_up_to(Noise(kind, scale)), local, 30.0)

    def omega(y: FloatArray) -> FloatArray:
        return density(kind, core.noise.scale, farther(y))

    def levels(inside: list[FloatArray], base: FloatArray) -> FloatArray:
        t = telling_levels(inside, base)
        return t[t >= 0.0] if excepted(Noise(kind, scale), records, core, epsilon) else t

    pairs = [(0.0, 1.0), records]
    worst, other = both(kind, scale, omega, core.edge, pairs, math.exp(epsilon), levels)
    # midpoints err by the curvature, a kink inside a cell by the slope: together below (step/scale)^2/4
    step = (2.0 * core.edge - 1.0) / PIECES / min(scale, core.noise.scale)
    assert (other <= worst + 0.25 * step**2 * (1.0 + np.abs(worst))).all()


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_the_core_must_not_be_larger_far_out(kind):
    """The inequality is no triviality: against a core that grows towards its edges another pair is worse."""
    scale, edge = 0.5, 3.0

    def omega(y: FloatArray) -> FloatArray:
        return np.exp(3.0 * np.abs(y - 0.5))

    pairs = [(0.0, 1.0), (0.4, 1.0), (0.2, 0.8), (0.0, 0.6), (0.5, 1.0)]
    worst, *others = both(kind, scale, omega, edge, pairs, 1.05, telling_levels)
    assert max(float((other - worst).max()) for other in others) > 1e-3


def test_narrow_normal_cores_are_proved_for_small_epsilon_only():
    wide, narrow, victim = (Noise("gaussian", s) for s in (2.0, 0.5, 1.0))
    assert Core(wide, 5.0).proved_up_to(victim) == math.inf
    assert Core(victim, 5.0).proved_up_to(victim) == math.inf
    assert Core(narrow, 5.0).proved_up_to(victim) == pytest.approx(1.0 / 8.0, rel=1e-12)
    assert Core(narrow, 5.0).proved_up_to(victim) < 1.0 / 8.0
    assert Core(Noise("laplace", 0.5), 5.0).proved_up_to(Noise("laplace", 1.0)) == math.inf
