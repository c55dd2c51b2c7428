from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput
from shuffledp.randomizers import Gaussian, Laplace, NoiseLaw, RandomizerLaw
from shuffledp.setting import Setting
from tests.randomizers import laws


def gaussian_delta(epsilon: float, sigma: float) -> mpf:
    """Phi(1/(2 sigma) - eps sigma) - e^eps Phi(-1/(2 sigma) - eps sigma), 60 digits beyond what cancels."""
    with mpmath.workdps(700):
        s, e = mpf(float(sigma)), mpf(float(epsilon))

        def below(z: mpf) -> mpf:
            return mpmath.erfc(-z / mpmath.sqrt(2)) / 2

        return below(1 / (2 * s) - e * s) - mpmath.exp(e) * below(-1 / (2 * s) - e * s)


@pytest.mark.parametrize("epsilon0", [5e-324, 1e-300, 1e-6, 0.1, 1.0, 3.0, 40.0, 700.0])
def test_laplace_never_exceeds_its_budget(epsilon0):
    scale = float(Laplace(0.0, 1.0).scale(epsilon0, 0.0))
    if math.isinf(scale):
        assert epsilon0 < 1e-308
        return
    with mpmath.workdps(60):
        epsilon = 1 / mpf(scale)  # of the density exp(-|u|/scale)/(2 scale) over a unit range
        assert epsilon <= mpf(epsilon0) <= epsilon * (1 + mpf(2) ** -51)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("delta0", [1e-300, 1e-30, 1e-9, 1e-5, 0.1, 0.9, 1 - 1e-12])
@pytest.mark.parametrize("epsilon0", [0.0, 1e-9, 1e-6, 0.1, 1.0, 8.0, 40.0, 700.0])
def test_gaussian_serves_its_budget_and_no_more(epsilon0, delta0):
    sigma = float(Gaussian(0.0, 1.0).scale(epsilon0, delta0))
    assert 0.0 < sigma < math.inf
    assert gaussian_delta(epsilon0, sigma) <= mpf(delta0)
    if delta0 < 0.99:  # close to 1, delta hardly depends on sigma
        assert gaussian_delta(epsilon0, sigma * (1 - 1e-10)) > mpf(delta0)


@pytest.mark.costly
@settings(max_examples=40, deadline=None)
@given(st.floats(0, 700), st.floats(1e-290, 0.99))
def test_gaussian_serves_any_budget(epsilon0, delta0):
    assert gaussian_delta(epsilon0, float(Gaussian(0, 1).scale(epsilon0, delta0))) <= mpf(delta0)


def test_gaussian_is_the_analytic_one_not_the_textbooks():
    sigma = float(Gaussian(-1.0, 5.0).scale(1.0, 1e-5))
    assert sigma == pytest.approx(3.730631, abs=1e-6)  # Balle and Wang 2018; the textbook's is 4.84
    assert float(Gaussian(0.0, 1.0).scale(1.0, 1e-5)) == sigma


def test_scales_have_the_shape_of_the_budgets():
    for law in (Laplace(0, 1), Gaussian(0, 1), Gaussian(0, 1, sigma=3.0)):
        assert law.scale(1.0, 1e-6).shape == ()
        assert law.scale([1.0, 2.0], 1e-6).shape == (2,)
        assert law.scale(np.ones((2, 1)), np.full(3, 1e-6)).shape == (2, 3)
    grid = Gaussian(0, 1).scale([[1.0, 2.0], [2.0, 1.0]], [1e-6, 1e-6])
    assert grid[0, 0] == grid[1, 1] == Gaussian(0, 1).scale(1.0, 1e-6)
    assert grid[0, 1] == grid[1, 0] == Gaussian(0, 1).scale(2.0, 1e-6)


def test_no_budget_no_information():
    assert Laplace(0, 1).scale([0.0, 1.0], [0.0, 0.0])[0] == math.inf
    assert Gaussian(0, 1).scale([0.0, 1.0], [0.0, 0.0]).tolist() == [math.inf, math.inf]


def test_larger_budgets_need_less_noise():
    epsilons = np.linspace(0, 50, 101)
    for law in (Laplace(0, 1), Gaussian(0, 1)):
        assert (np.diff(law.scale(epsilons[1:], 1e-6)) < 0).all()
    assert (np.diff(Gaussian(0, 1).scale(1.0, np.geomspace(1e-200, 0.5, 50))) < 0).all()


def test_gaussian_refuses_pure_budgets():
    with pytest.raises(InvalidInput, match="never pure: give delta0 > 0 with epsilon0 = 2"):
        Gaussian(0, 1).check_budgets([1.0, 2.0], [1e-6, 0.0])
    with pytest.raises(InvalidInput, match="never pure"):
        Setting(Budgets.of([1.0] * 5), Gaussian(0, 1), "reports", "replace-one")
    Setting(Budgets.of([1.0] * 5, 1e-6), Gaussian(0, 1), "reports", "replace-one")
    Setting(Budgets.of([1.0] * 5), Laplace(0, 1), "reports", "replace-one")
    Laplace(0, 1).check_budgets([0.0, 1.0], [0.0, 1e-6])


def test_a_stated_sigma_must_fit_the_budgets():
    needed = float(Gaussian(0, 1).scale(1.0, 1e-6))
    stated = Gaussian(0, 1, sigma=needed * (1 + 1e-9))
    stated.check_budgets([1.0, 2.0], [1e-6, 1e-6])
    assert stated.scale([1.0, 5.0], 1e-6).tolist() == [stated.sigma] * 2
    with pytest.raises(
        InvalidInput, match=r"sigma = 4\.2\d* ranges needs delta0 of at least .* at epsilon0 = 1; got 1e-06"
    ):
        Gaussian(0, 1, sigma=needed * (1 - 1e-9)).check_budgets([2.0, 1.0], [1e-6, 1e-6])
    with pytest.raises(InvalidInput, match="never pure"):
        stated.check_budgets([50.0], [0.0])


def test_names_and_protocol():
    for law, name in ((Laplace(0, 1), "laplace"), (Gaussian(0, 1), "gaussian")):
        assert (law.name, law.noise) == (name, name)
        assert isinstance(law, NoiseLaw)
        assert not isinstance(law, RandomizerLaw)
    assert Laplace(0, 1) == Laplace(0.0, 1.0) != Laplace(0, 2)


@pytest.mark.parametrize("family", [Laplace, Gaussian])
@pytest.mark.parametrize("ends", [(1, 1), (2, 1), (math.nan, 1), (0, math.inf), (-1e308, 1e308), ("a", 1), (None, 1)])
def test_bad_ranges(family, ends):
    with pytest.raises(InvalidInput, match="the range needs"):
        family(*ends)


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.nan, math.inf, "much"])
def test_bad_sigma(sigma):
    with pytest.raises(InvalidInput, match="sigma must be a positive, finite number"):
        Gaussian(0, 1, sigma=sigma)


def test_bad_budgets():
    for epsilon0, message in laws.NOT_BUDGETS:
        for law in (Laplace(0, 1), Gaussian(0, 1)):
            with pytest.raises(InvalidInput, match=message):
                law.scale(epsilon0, 1e-6)
    for delta0 in (-1e-9, 1.0, math.nan, "x"):
        for law in (Laplace(0, 1), Gaussian(0, 1), Gaussian(0, 1, sigma=1.0)):
            with pytest.raises(InvalidInput, match="delta0 must be a probability"):
                law.scale(1.0, delta0)
