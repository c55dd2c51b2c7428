"""The privacy blanket with Hoeffding's and Bennett's inequality: constants, formulas, printed numbers, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import binomial, exp, expm1, log, mp, mpf, quad

from shuffledp.accounting.bound import AmplificationBound
from shuffledp.accounting.published.blanket import (
    BennettBound,
    BennettProfile,
    BlanketInequalityProfile,
    HoeffdingBound,
    HoeffdingProfile,
    LossBounds,
    generic_losses,
    laplace_losses,
    pair_losses,
)
from shuffledp.accounting.theorems.blanket.bound import BlanketBound
from shuffledp.budgets import Budgets
from shuffledp.errors import OutOfRegime
from shuffledp.numerics.floats import FloatArray
from shuffledp.randomizers import (
    HadamardResponse,
    Laplace,
    LocalHashing,
    RandomizedResponse,
    SubsetSelection,
    UnaryEncoding,
)
from shuffledp.randomizers.base import PairBlanket
from shuffledp.setting import Setting

DELTA = 1e-6
mp.dps = 40


class Noise:
    """Noise on a number in [0, 1], as the accountant sees it, of a shape that serves pure budgets or not."""

    def __init__(self, noise: str) -> None:
        self.name = self.noise = noise

    def check_budgets(self, epsilon0: object, delta0: object) -> None:
        """Serve everything."""

    def scale(self, epsilon0: FloatArray, delta0: FloatArray) -> FloatArray:
        return 1.0 / np.asarray(epsilon0)


LAPLACE = Laplace(0.0, 1.0)


def upper(bound: AmplificationBound, e0: float, n: int, randomizer: object = "any") -> float:
    setting = Setting(Budgets([e0], [n]), randomizer, seen="reports", neighboring="replace-one")  # type: ignore[arg-type]
    return bound.profile(setting, e0).epsilon(DELTA).upper


# ------------------------------------------------------------------ printed numbers

# Bennett, from the authors' public code: (epsilon0, n), 10-ary randomized response, Laplace noise on [0, 1]
BENNETT = [
    (0.1, 10**3, 0.005415, 0.01207),
    (0.1, 10**6, 0.0001139, 0.0002717),
    (0.5, 10**4, 0.01042, 0.02015),
    (1.0, 10**3, 0.0995, 0.1583),
    (1.0, 10**4, 0.02804, 0.04502),
    (1.0, 10**6, 0.002332, 0.003797),
    (2.0, 10**3, 0.3449, 0.4102),
    (2.0, 10**5, 0.02756, 0.03257),
    (4.0, 10**4, 0.4661, 0.4027),
    (4.0, 10**6, 0.03772, 0.03275),
]


@pytest.mark.parametrize(("e0", "n", "krr", "laplace"), BENNETT)
def test_bennett_as_printed_for_stated_randomizers(e0, n, krr, laplace):
    assert upper(BennettBound(), e0, n, RandomizedResponse(10)) == pytest.approx(krr, rel=6e-4)
    assert upper(BennettBound(), e0, n, LAPLACE) == pytest.approx(laplace, rel=6e-4)


def test_few_users_are_left_with_their_own_budget():
    for bound in (HoeffdingBound(), BennettBound()):
        assert upper(bound, 4.0, 1000) == 4.0
    assert upper(BennettBound(), 4.0, 1000, RandomizedResponse(10)) == 4.0


def as_coded(e0: float, eps: float) -> LossBounds:
    """The looser generic constants of the authors' public code, which allow ratios from e^-eps0 to e^eps0."""
    return LossBounds(
        math.exp(e0) * (1 - math.exp(eps - 2 * e0)),
        (math.exp(eps) + 1) * (math.exp(e0) - math.exp(-e0)),
        math.exp(e0) * (math.exp(2 * eps) + 1) - 2 * math.exp(-e0) * math.exp(eps - 2 * e0),
    )


@pytest.mark.parametrize(
    ("e0", "n", "hoeffding", "bennett"), [(0.5, 10**4, 0.054, 0.09065), (1.0, 10**4, 0.1666, 0.1662)]
)
def test_generic_constants_against_the_looser_ones_in_print(e0, n, hoeffding, bennett):
    def coded(profile: type[BlanketInequalityProfile]) -> float:
        return profile(e0, math.exp(-e0), n, lambda eps: (as_coded(e0, eps),)).epsilon(DELTA).upper

    assert coded(HoeffdingProfile) == pytest.approx(hoeffding, rel=6e-4)
    assert coded(BennettProfile) == pytest.approx(bennett, rel=6e-4)
    assert upper(HoeffdingBound(), e0, n) < hoeffding
    assert upper(BennettBound(), e0, n) < bennett


# ------------------------------------------------------------------ the formulas, 40 digits


def hoeffding_40(gamma: float, n: int, eps: float, loss: LossBounds) -> mpf:
    a, b, g = expm1(mpf(eps)), mpf(loss.width), mpf(gamma)
    return b**2 / (4 * a) / (g * n) * (1 - g * (1 - exp(-2 * a**2 / b**2))) ** n


def bennett_40(gamma: float, n: int, eps: float, loss: LossBounds) -> mpf:
    """The expectation as a sum over M >= 1."""
    a, top, c, g = expm1(mpf(eps)), mpf(loss.top), mpf(loss.square), mpf(gamma)
    beta = a * top / c
    s = c / top**2 * ((1 + beta) * log(1 + beta) - beta)
    mean = mp.fsum(binomial(n, m) * g**m * (1 - g) ** (n - m) * exp(-m * s) for m in range(1, n + 1))
    return top / log(1 + beta) * mean / (g * n)


@settings(max_examples=60, deadline=None)
@given(
    st.floats(-7, 0.8).map(lambda t: 10.0**t),
    st.integers(1, 120),
    st.floats(1e-6, 0.999999),
    st.sampled_from(["generic", "krr", "laplace"]),
)
def test_both_inequalities_enclose_their_formula(e0, n, share, which):
    eps = share * e0
    pairs = RandomizedResponse(5).pair_blankets(e0)
    gamma, losses = {
        "generic": (math.exp(-e0), generic_losses(e0)),
        "krr": (pairs[0].gamma, pair_losses(pairs)),
        "laplace": (math.exp(-e0 / 2), laplace_losses(e0)),
    }[which]
    (loss,) = losses(eps)
    for profile, formula in ((HoeffdingProfile, hoeffding_40), (BennettProfile, bennett_40)):
        truth = formula(gamma, n, eps, loss)
        found = profile(e0, gamma, n, losses).delta_at(eps)
        assert found.lower <= min(truth, 1)
        assert found.upper >= min(truth, 1)
        assert found.upper - found.lower <= 1e-9 * found.upper + 1e-290


# ------------------------------------------------------------------ the constants


def random_channel(rng: np.random.Generator, inputs: int, outputs: int, e0: float) -> FloatArray:
    """A random pure LDP channel: columns within a factor e^e0, and one more output that makes rows sum to 1."""
    low = rng.dirichlet(np.ones(outputs)) * math.exp(-e0)
    raw = low * np.where(rng.random((inputs, outputs)) < 0.5, 1.0, np.exp(e0 * rng.random((inputs, outputs))))
    rest = 1.0 - raw.sum(axis=1)
    return np.column_stack((raw, rest))


def true_epsilon0(channel: FloatArray) -> float:
    return float(np.log(channel.max(axis=0) / channel.min(axis=0)).max())


@pytest.mark.parametrize("seed", range(30))
def test_generic_constants_hold_for_random_channels(seed):
    rng = np.random.default_rng(seed)
    channel = random_channel(rng, int(rng.integers(2, 6)), int(rng.integers(2, 7)), float(rng.uniform(0.05, 3)))
    e0 = true_epsilon0(channel)
    least = channel.min(axis=0)
    gamma = float(least.sum())
    assert gamma >= math.exp(-e0) * (1 - 1e-12)
    omega, ratios = least / gamma, channel * gamma / least
    for eps in (0.1 * e0, 0.5 * e0, 0.9 * e0):
        (bounds,) = generic_losses(e0)(eps)
        for r0 in ratios:
            for r1 in ratios:
                loss = r0 - math.exp(eps) * r1
                assert loss.max() <= bounds.top * (1 + 1e-12)
                assert loss.max() - loss.min() <= bounds.width * (1 + 1e-12)
                assert omega @ loss**2 <= bounds.square * (1 + 1e-12)


@pytest.mark.parametrize("e0", [0.3, 1.0, 2.5])
def test_the_generic_second_moment_is_attained(e0):
    """Two disjoint high regions, all else at the minimum: the blanket mass at which the bound is largest."""
    for eps in (0.05 * e0, 0.6 * e0):
        x, E = math.exp(eps), math.exp(e0)
        a, curve = x - 1, (E - 1) * (1 + x * x) + (x - 1) ** 2
        g = max((a * a + curve) / (2 * curve), 1 / E)
        high = (1 - g) / (g * (E - 1))
        if high > 0.5:
            continue  # the regions would overlap: the bound is not attained there
        masses, r0, r1 = np.array([high, high, 1 - 2 * high]), np.array([E, 1, 1]) * g, np.array([1, E, 1]) * g
        assert masses @ r0 == pytest.approx(1.0)
        (bounds,) = generic_losses(e0)(eps)
        assert masses @ (r0 - x * r1) ** 2 == pytest.approx(bounds.square, rel=1e-9)


def laplace_ratio(e0: float, x: float, y: mpf) -> mpf:
    """R(x)(y)/omega(y), omega the common lower envelope of all records in [0, 1]."""
    far = max(abs(y), abs(1 - y))
    return exp(-mpf(e0) / 2) * exp(mpf(e0) * (far - abs(y - x)))


def laplace_square(e0: float, x0: float, x1: float, eps: float) -> mpf:
    def integrand(y: mpf) -> mpf:
        density = mpf(e0) / 2 * exp(-mpf(e0) * max(abs(y), abs(1 - y))) / exp(-mpf(e0) / 2)
        return density * (laplace_ratio(e0, x0, y) - exp(mpf(eps)) * laplace_ratio(e0, x1, y)) ** 2

    cuts = sorted({0.0, x0, x1, 0.5, 1.0})
    return quad(integrand, [-mp.inf, *cuts, mp.inf])


@pytest.mark.costly
@pytest.mark.one_in(3)
@pytest.mark.parametrize("e0", [0.2, 1.0, 3.0])
def test_laplace_constants_and_that_the_end_points_are_worst(e0):
    eps = 0.4 * e0
    (bounds,) = laplace_losses(e0)(eps)
    assert float(laplace_square(e0, 0.0, 1.0, eps)) == pytest.approx(bounds.square, rel=1e-10)
    grid = np.linspace(-2, 3, 401)
    values = [laplace_ratio(e0, 0.0, mpf(y)) - exp(mpf(eps)) * laplace_ratio(e0, 1.0, mpf(y)) for y in grid]
    assert float(max(values)) == pytest.approx(bounds.top, rel=1e-12)
    assert float(max(values) - min(values)) == pytest.approx(bounds.width, rel=1e-12)
    for x0, x1 in ((0.0, 0.7), (0.2, 1.0), (0.3, 0.45), (1.0, 0.6)):
        assert laplace_square(e0, x0, x1, eps) <= bounds.square


def test_small_budgets_keep_their_digits():
    """At 1e-7 the textbook second moments cancel twelve digits; these do not."""
    e0, eps = 1e-7, 0.5e-7
    (laplace,), (generic,) = laplace_losses(e0)(eps), generic_losses(e0)(eps)
    x, u, a = exp(mpf(eps)), exp(mpf(e0) / 2), expm1(mpf(eps))
    textbook = (x**2 + 1) / 3 * (2 * u + u**-2) - 2 * x * (2 / u - u**-2)
    assert laplace.square == pytest.approx(float(textbook), rel=1e-13)
    E, g = exp(mpf(e0)), exp(-mpf(e0))
    textbook = (1 + x**2) * (g * (1 + E) - g**2 * E) - 2 * x * (2 * g - g**2)
    assert generic.square == pytest.approx(float(textbook), rel=1e-13)
    assert generic.square > float(a) ** 2


# ------------------------------------------------------------------ soundness and refusals


FAMILIES = [
    RandomizedResponse(3),
    RandomizedResponse(10),
    UnaryEncoding(5),
    HadamardResponse(6),
    SubsetSelection(6),
    LocalHashing(6),
    LAPLACE,
]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_never_below_the_blanket_theorem_itself(family):
    for e0, n in ((0.2, 300), (2.0, 20_000)):
        exact = upper(BlanketBound(), e0, n, family)
        for bound in (HoeffdingBound(), BennettBound()):
            stated, generic = upper(bound, e0, n, family), upper(bound, e0, n)
            assert exact <= stated <= generic


class BlindFamily(RandomizedResponse):
    """A family that knows no common output."""

    def pair_blankets(self, epsilon0: float) -> tuple[PairBlanket, ...]:
        (pair,) = super().pair_blankets(epsilon0)
        return (PairBlanket(0.0, pair.masses, pair.ratios0, pair.ratios1, pair.losses),)


def test_what_has_no_blanket_or_no_pure_budget_is_refused():
    for bound in (HoeffdingBound(), BennettBound()):
        with pytest.raises(OutOfRegime, match="needs an output that every record may give; krr:3"):
            upper(bound, 1.0, 1000, BlindFamily(3))
        with pytest.raises(OutOfRegime, match=f"{bound.key} needs a pure randomizer; got gaussian"):
            upper(bound, 1.0, 1000, Noise("gaussian"))


def test_the_worst_pair_counts():
    """Several pairs of inputs: the largest delta of any."""
    weak, strong = RandomizedResponse(3).pair_blankets(0.5)[0], RandomizedResponse(3).pair_blankets(1.0)[0]
    both = BennettProfile(1.0, strong.gamma, 1000, pair_losses((weak, strong)))
    alone = BennettProfile(1.0, strong.gamma, 1000, pair_losses((strong,)))
    assert both.delta(0.08) == alone.delta(0.08)
    assert both.delta(0.08).upper > BennettProfile(1.0, strong.gamma, 1000, pair_losses((weak,))).delta(0.08).upper


def test_numbers_that_leave_double_precision_give_one():
    profile = BennettProfile(400.0, math.exp(-400.0), 10, generic_losses(400.0))
    assert profile.delta(1.0).upper == 1.0
    assert profile.delta(400.0).upper == 0.0
    assert profile.epsilon(DELTA).upper == 400.0
