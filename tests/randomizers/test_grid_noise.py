"""Laplace and Gaussian noise as it is drawn: exact rounded laws on small grids, and what they promise."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf
from scipy.stats import chisquare

from shuffledp.accounting import certify
from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import secure_random, simulation_random
from shuffledp.randomizers import Gaussian, Laplace
from shuffledp.randomizers.base import NoiseLaw, NumberRandomizer, RandomizerLaw
from shuffledp.randomizers.noise import laplace_variance, normal_variance
from shuffledp.setting import Setting

FALSE_ALARM = 1e-5
"""Of each statistical test, over fresh seeds; all are seeded."""
FAMILIES = {"laplace": (Laplace(-1, 3, bits=3), 0.0), "gaussian": (Gaussian(-1, 3, bits=3), 1e-3)}


def below(noise: str, z: mpf) -> mpf:
    """Chance that standard noise is at most z."""
    if noise == "gaussian":
        return mpmath.erfc(-z / mpmath.sqrt(2)) / 2
    return mpmath.exp(z) / 2 if z < 0 else 1 - mpmath.exp(-z) / 2


def rounded_law(noise: str, scale: float, shift: int, span: range) -> list[mpf]:
    """Chances of the whole numbers of the span: differences of the continuous law around a whole number."""
    s = mpf(scale)
    ends = [below(noise, (mpf(k) - mpf(1) / 2 - shift) / s) for k in (*span, span.stop)]
    return [right - left for left, right in itertools.pairwise(ends)]


@pytest.mark.parametrize("name", FAMILIES)
def test_a_number_randomizer_with_the_stated_law(name):
    family, _ = FAMILIES[name]
    assert isinstance(family, NumberRandomizer)
    assert isinstance(family, NoiseLaw)
    assert not isinstance(family, RandomizerLaw)
    assert (family.low, family.high, family.steps) == (-1.0, 3.0, 8)


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-6, 700), st.integers(1, 24), st.sampled_from([Laplace, Gaussian]))
def test_the_scale_drawn_is_the_scale_certified(epsilon0, bits, kind):
    family = kind(0, 1, bits=bits)
    delta0 = 1e-7 if kind is Gaussian else 0.0
    drawn, stated = float(family._grid_scale(epsilon0, delta0)), float(family.scale(epsilon0, delta0))
    assert Fraction(drawn) == Fraction(stated) * 2**bits


@pytest.mark.costly("0.3-gaussian")
@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("epsilon0", [0.3, 1.0, 8.0])
def test_reports_follow_the_rounded_law(name, epsilon0):
    """A value between two grid points: the mixture of both, each the continuous law around it, rounded."""
    family, delta0 = FAMILIES[name]
    scale = family._grid_scale(epsilon0, delta0)
    span = range(-math.ceil(12 * scale) - 9, math.ceil(12 * scale) + 17)
    law = [0.75 * a + 0.25 * b for a, b in zip(*(rounded_law(name, scale, x, span) for x in (5, 6)), strict=True)]
    reports = family.randomize(np.full(30_000, -1 + 5.25 / 2), epsilon0, simulation_random(2), delta0=delta0)
    counts = np.bincount(np.clip(reports - span.start, 0, len(span) - 1), minlength=len(span))
    expected = np.array([float(p) for p in law]) * reports.size
    keep = expected >= 8.0
    counts, expected = np.append(counts[keep], counts[~keep].sum()), np.append(expected[keep], expected[~keep].sum())
    expected *= reports.size / expected.sum()
    some = expected > 1e-3
    assert counts[~some].sum() == 0
    assert chisquare(counts[some], expected[some] * counts[some].sum() / expected[some].sum()).pvalue > FALSE_ALARM


@pytest.mark.parametrize("epsilon0", [0.25, 1.0, 6.0])
def test_rounded_laplace_keeps_its_budget(epsilon0):
    """Every report's chance, for all pairs of grid points, from the continuous law, exhaustively."""
    family = Laplace(0, 1, bits=2)
    scale, span = float(family._grid_scale(epsilon0, 0.0)), range(-40, 45)
    with mpmath.workdps(80):
        laws = [rounded_law("laplace", scale, x, span) for x in range(5)]
        worst = max(max(a / b for a, b in zip(p, q, strict=True)) for p, q in itertools.permutations(laws, 2))
        assert worst <= mpmath.exp(mpf(epsilon0))
        assert worst >= mpmath.exp(mpf(epsilon0)) * (1 - mpf(2) ** -50)  # and nothing is given away


@pytest.mark.parametrize(("epsilon0", "delta0"), [(0.5, 1e-3), (1.0, 1e-6), (4.0, 0.05)])
def test_rounded_gaussian_keeps_its_budget(epsilon0, delta0):
    family = Gaussian(0, 1, bits=2)
    scale = float(family._grid_scale(epsilon0, delta0))
    span = range(-math.ceil(12 * scale), math.ceil(12 * scale) + 5)
    with mpmath.workdps(60):
        laws = [rounded_law("gaussian", scale, x, span) for x in (0, 4)]
        for p, q in itertools.permutations(laws, 2):
            lost = 1 - sum(p)
            found = sum(max(a - mpmath.exp(mpf(epsilon0)) * b, mpf(0)) for a, b in zip(p, q, strict=True))
            assert found + lost <= mpf(delta0)
            assert found >= 0.9 * delta0


@pytest.mark.costly(but=("0.1-budgets0",))
@pytest.mark.parametrize("budgets", [(2.0, 2.0, 2.0), (1.0, 2.0, 3.0)])
@pytest.mark.parametrize("delta", [1e-2, 1e-1])
def test_drawn_reports_never_exceed_the_certificate(budgets, delta):
    """Three users on two steps, multisets of reports enumerated: the certificate of the continuous law holds."""
    family, span = Laplace(0, 1, bits=1), range(-14, 17)
    upper = certify(Setting(Budgets.of(budgets), family, "reports", "replace-one"), delta).epsilon.upper
    laws = [[np.array(rounded_law("laplace", 2.0 / e, x, span), dtype=float) for x in (0, 2)] for e in budgets]

    def shuffled(victim: int, record: int, others: tuple[int, int]) -> np.ndarray:
        rows = [laws[i] for i in range(3) if i != victim]
        one, two, three = laws[victim][record], rows[0][others[0]], rows[1][others[1]]
        cube = np.einsum("i,j,k->ijk", one, two, three)
        return sum(np.transpose(cube, order) for order in itertools.permutations(range(3))) / 6.0

    for victim, others in itertools.product(range(3), itertools.product((0, 1), repeat=2)):
        p, q = (shuffled(victim, record, others) for record in (0, 1))
        for a, b in ((p, q), (q, p)):
            assert np.maximum(a - np.exp(upper) * b, 0.0).sum() <= delta * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("scale", [1e-3, 0.07, 0.5, 1.0, 2.999, 3.0, 20.0, 1e6])
def test_variance_of_rounded_noise(scale):
    with mpmath.workdps(40):
        s, top = mpf(scale), math.ceil(60 * scale) + 3
        if scale < 1e3:
            laplace = sum(2 * (2 * k - 1) * mpmath.exp(-(k - mpf(1) / 2) / s) / 2 for k in range(1, top))
            normal = sum((2 * k - 1) * mpmath.erfc((k - mpf(1) / 2) / s / mpmath.sqrt(2)) for k in range(1, top))
        else:  # rounding adds 1/12 to both, up to 1/(480 s^2)
            laplace, normal = 2 * s**2 + mpf(1) / 12, s**2 + mpf(1) / 12
        assert float(laplace_variance(np.array(scale))) == pytest.approx(float(laplace), rel=1e-9, abs=1e-300)
        assert float(normal_variance(np.array(scale))) == pytest.approx(float(normal), rel=1e-9, abs=1e-300)


def test_a_variance_beyond_double_precision_is_infinite():
    # `mean --mechanism laplace --epsilon0 1e-300` wrote a RuntimeWarning before its refusal
    assert laplace_variance(np.array([1e301, 1.0])).tolist()[0] == math.inf


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("fraction", [0.0, 0.3, 1.0])
def test_reading_is_unbiased_with_the_stated_variance(name, fraction):
    # Seeded; 4.5 standard errors for the mean (7e-6), the same for the variance with the kurtosis of Laplace noise.
    family, delta0 = FAMILIES[name]
    epsilons = np.tile([0.5, 4.0], 20_000)
    values = family.report_values(
        family.randomize(np.full(40_000, -1 + 4 * fraction), epsilons, simulation_random(5), delta0=delta0)
    )
    law = family.number_law(np.array([0.5, 4.0]), delta0)
    for level in range(2):
        own = values[level::2]
        spread = law.variance[0, level]
        assert abs(own.mean() - law.offset[level] - law.slope[level] * fraction) < 4.5 * math.sqrt(spread / own.size)
        assert spread - 0.25 - 4.5 * spread * math.sqrt(5 / own.size) < own.var()
        assert own.var() < spread * (1 + 4.5 * math.sqrt(5 / own.size))
    assert (law.variance[1:] == 0.0).all()
    assert np.isinf(law.largest).all()


def test_without_a_budget_the_report_is_the_middle():
    family = Laplace(0, 10, bits=4)
    reports = family.randomize([0.0, 10.0, 10.0], [0.0, 0.0, 700.0], secure_random())
    assert reports[:2].tolist() == [8, 8]
    law = family.number_law([0.0, 1.0])
    assert law.slope.tolist() == [0.0, 16.0]
    assert law.offset.tolist() == [8.0, 0.0]
    assert (law.variance[:, 0] == 0.0).all()
    assert law.largest.tolist() == [0.0, math.inf]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 700)), min_size=1, max_size=8),
    st.sampled_from(["laplace", "gaussian"]),
    st.floats(0, 1),
)
def test_any_budgets(epsilons, name, fraction):
    family = Laplace(2, 5) if name == "laplace" else Gaussian(2, 5)
    budgets, delta0 = np.array(epsilons), 1e-6
    reports = family.randomize(np.full(budgets.size, 2 + 3 * fraction), budgets, secure_random(), delta0=delta0)
    assert reports.shape == budgets.shape
    assert np.array_equal(family.unpack(family.pack(reports)), reports)
    law = family.number_law(budgets, delta0)
    assert np.isfinite(law.variance).all()
    assert ((law.slope > 0.0) == np.isfinite(family.scale(budgets, delta0))).all()


def test_gaussian_noise_needs_a_delta():
    with pytest.raises(InvalidInput, match="never pure"):
        Gaussian(0, 1).randomize([0.5], 1.0, secure_random())
    with pytest.raises(InvalidInput, match="sigma = 1"):
        Gaussian(0, 1, sigma=1.0).randomize([0.5], 1.0, secure_random(), delta0=1e-6)


@pytest.mark.parametrize("family", [Laplace(0, 1), Gaussian(0, 1)])
def test_bad_input_is_named(family):
    for value in (-0.1, 1.1, math.nan):
        with pytest.raises(InvalidInput, match="value in row 2"):
            family.randomize([0.5, value], 1.0, secure_random(), delta0=1e-6)
    with pytest.raises(InvalidInput, match="epsilon0 in row 2"):
        family.randomize([0.5, 0.5], [1.0, -1.0], secure_random(), delta0=1e-6)
    with pytest.raises(InvalidInput, match="3 records need as many budgets"):
        family.randomize([0.5, 0.5, 0.1], [1.0, 1.0], secure_random(), delta0=1e-6)
    with pytest.raises(InvalidInput, match="one-dimensional"):
        family.randomize([[0.5]], 1.0, secure_random(), delta0=1e-6)
    for bits in (0, 25, 2.5, True):
        with pytest.raises(InvalidInput, match="whole number of bits from 1 to 24"):
            type(family)(0, 1, bits=bits)


def test_a_budget_that_cannot_be_drawn_is_refused():
    with pytest.raises(InvalidInput, match="epsilon0 in row 2 is 1e-12, which needs noise beyond"):
        Laplace(0, 1).randomize([0.5, 0.5], [1.0, 1e-12], secure_random())
