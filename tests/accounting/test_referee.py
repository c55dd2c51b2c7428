"""Three users of added noise, each with a scale of their own: the real divergence, over all orders of the reports.

With the reports cut into cells, the chance of an unordered triple is a symmetrised product of cell masses. What cells
show is less than what reports show, so the divergence is a lower bound on the real one, and every upper bound lies
above it; nothing is shared with the blanket, its core, or the choice of records.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from shuffledp.accounting.theorems.blanket.noise import Noise, NoiseProfile
from shuffledp.numerics.floats import FloatArray

QUANTILES = np.linspace(0.005, 0.995, 30)


def masses(kind: str, scale: float, ends: FloatArray, x: float) -> FloatArray:
    z = (ends - x) / scale
    if kind == "gaussian":
        return np.diff(ndtr(z))
    return np.diff(np.where(z < 0, 0.5 * np.exp(np.minimum(z, 0.0)), 1.0 - 0.5 * np.exp(-np.maximum(z, 0.0))))


def real_divergence(
    kind: str, scales: tuple[float, float, float], records: tuple[float, float, float, float], epsilon: float
) -> float:
    """H at e^epsilon, the victim with the first scale and records x0, x1, the others with the last two records."""
    x0, x1, *others = records
    tails = np.concatenate((np.log(2 * QUANTILES[QUANTILES < 0.5]), -np.log(2 - 2 * QUANTILES[QUANTILES >= 0.5])))
    reach = scales[0] * (ndtri(QUANTILES) if kind == "gaussian" else tails)
    ends = np.concatenate(([-np.inf], np.unique(np.concatenate((x0 + reach, x1 + reach, [0.0, 1.0]))), [np.inf]))
    gain = masses(kind, scales[0], ends, x0) - math.exp(epsilon) * masses(kind, scales[0], ends, x1)
    first, second = (masses(kind, s, ends, x) for s, x in zip(scales[1:], others, strict=True))
    company = np.multiply.outer(first, second)
    triple = np.multiply.outer(gain, 0.5 * (company + company.T))
    symmetric = (triple + triple.transpose(1, 0, 2) + triple.transpose(1, 2, 0)) / 3.0
    return float(np.maximum(symmetric, 0.0).sum())


RECORDS = [(0.0, 1.0, 0.0, 0.0), (0.0, 1.0, 1.0, 1.0), (1.0, 0.0, 0.0, 1.0), (0.1, 0.8, 0.5, 0.2)]


@pytest.mark.costly("gaussian-scales2-0.9")
@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("kind", "scales", "tight"),
    [
        ("laplace", (1.6, 0.16, 0.18), 0.9),  # others with much less noise than the victim
        ("laplace", (0.5, 2.0, 0.7), 0.6),
        ("gaussian", (0.26, 1.6, 0.17), 0.9),
        ("gaussian", (1.3, 0.4, 0.6), 0.6),  # cores narrower than the victim's noise, up to 1/(8 s^2)
    ],
)
def test_no_upper_end_is_below_a_real_divergence_of_three_scales(kind, scales, tight):
    victim = scales[0]
    top = 1.0 / victim if kind == "laplace" else math.inf
    profile = NoiseProfile(Noise(kind, victim), top, np.sort(np.array(scales[1:])), np.ones(2))
    for epsilon in (0.0, 0.99 / (8.0 * victim**2), 0.7 / victim):
        if epsilon >= top:
            continue
        real = max(real_divergence(kind, scales, records, epsilon) for records in RECORDS)
        upper = profile.delta(epsilon).upper
        assert real <= upper
        assert epsilon > 0.0 or real > tight * upper


@pytest.mark.slow
def test_few_users_with_normal_noise_get_the_better_core():
    """Victim at 0.5 among users at 0.6, epsilon 0.1: of 10 users the first core tried gave 0.726, more than of 5."""
    victim = Noise("gaussian", 0.5)

    def upper(n: int) -> float:
        return NoiseProfile(victim, math.inf, np.array([0.6]), np.array([n - 1])).delta(0.1).upper

    found = [upper(n) for n in (3, 5, 10, 20)]
    assert found == sorted(found, reverse=True)
    assert found[2] < 0.45
