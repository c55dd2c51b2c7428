"""Sums of a random number of terms: bounds against exact sums, and every part of the bound by itself."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from shuffledp.numerics.compound_sums import Lines, TermCount, compound_sums_above
from shuffledp.numerics.floats import FloatArray

UNIT = 1.0 / 64.0
SMOOTHING = 0.02


def terms(seed: int, shift: int) -> tuple[FloatArray, FloatArray]:
    """Places (whole numbers, in units of UNIT) of a term's atoms, and their probabilities, which sum to below 1."""
    random = np.random.default_rng(seed)
    places = np.sort(random.choice(np.arange(-40, 41), 24, replace=False)).astype(np.float64) - shift
    chances = random.uniform(0.5, 1.5, 24)
    return places, chances / chances.sum() * 0.999


def count_law(count: TermCount) -> FloatArray:
    """P(N = 0, 1, ...), by convolution."""
    law = np.zeros(count.sure + 1)
    law[-1] = 1.0
    for chance, trials in zip(count.chances, count.trials, strict=True):
        law = np.convolve(law, binom.pmf(np.arange(int(trials) + 1), int(trials), chance))
    return law


def positive_parts(places: FloatArray, chances: FloatArray, most: int) -> FloatArray:
    """E (X_1+...+X_m)_+ for m = 0, ..., most, from the laws of the sums."""
    one = np.zeros(2 * int(np.abs(places).max()) + 1)
    one[places.astype(int) + one.size // 2] = chances
    one[one.size // 2] += 1.0 - chances.sum()
    law, found = np.ones(1), [0.0]
    for _ in range(most):
        law = np.convolve(law, one)
        found.append(float(law @ np.maximum(np.arange(law.size) - law.size // 2, 0.0)) * UNIT)
    return np.array(found)


COUNTS = [
    TermCount(1, np.array([0.6, 0.8]), np.array([300.0, 900.0])),
    TermCount(1, np.array([0.97]), np.array([800.0])),
    TermCount(0, np.array([0.5]), np.array([700.0])),
]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("mean", [True, False])
def test_bounds_are_above_exact_sums_and_near_them(count: TermCount, mean: bool) -> None:
    if mean and not count.sure:
        pytest.skip("a mean of no terms")
    shifts = (0, 2, 4)
    laws = [terms(5, shift) for shift in shifts]
    number = count_law(count)
    m = np.arange(number.size)
    exact, alone = [], []
    for places, chances in laws:
        sums = positive_parts(places, chances, m[-1])
        exact.append(float(number[1:] @ (sums[1:] / m[1:])) if mean else float(number @ sums) / float(number @ m))
        alone.append(sums[1])
    values = np.stack([places for places, _ in laws]) * UNIT
    weights = np.stack([chances for _, chances in laws])
    found = compound_sums_above(values, weights, count, np.array(alone) if mean else None, SMOOTHING)
    assert np.isfinite(found).all()
    above = found / np.array(exact) - 1.0
    assert (above > 0.0).all(), above  # smoothing alone is far more than the rounding of the exact sums
    assert (above < 4e-4).all(), above
    apart = [
        compound_sums_above(values[[k]], weights[[k]], count, np.array(alone)[[k]] if mean else None, SMOOTHING)[0]
        for k in range(len(laws))
    ]
    np.testing.assert_allclose(apart, found, rtol=1e-10)


@pytest.mark.parametrize(
    ("trials", "shift", "scale"),
    [
        (5000.0, 0.46, 1e60),
        (5000.0, 0.47, 1e80),
        (5000.0, 0.5, 1e140),
        (2000.0, 0.35, 10**-154.1),
        (20000.0, 0.15, 10**-153.5),
    ],
)
def test_sums_beyond_the_range_of_doubles_are_left_to_others(trials: float, shift: float, scale: float) -> None:
    """They were 1e-300, or 6.2e-258, where 2.09e-285 to 1.81e-236 are true: exp(scale) or 1/z^2 was 0."""
    random = np.random.default_rng(0)
    v = np.sort(random.uniform(-1.0, 1.0, 60))
    weights = random.uniform(0.5, 1.5, 60)
    weights /= weights.sum() / 0.999
    count = TermCount(1, np.array([0.5]), np.array([trials]))
    assert np.isinf(compound_sums_above(((v - shift) * scale)[None], weights[None], count, None, SMOOTHING))


def test_few_terms_and_lattices_are_left_to_others() -> None:
    places, chances = terms(5, 1)
    few = TermCount(1, np.array([0.5]), np.array([40.0]))
    many = TermCount(1, np.array([0.5]), np.array([4000.0]))
    alone = np.ones(1)
    assert np.isinf(compound_sums_above(places[None] * UNIT, chances[None], few, alone, SMOOTHING)).all()
    coin = np.array([[-1.1, 1.0]]), np.array([[0.5, 0.5]])  # |chi| is 1 again and again
    assert np.isinf(compound_sums_above(*coin, many, alone, SMOOTHING)).all()
    assert np.isinf(compound_sums_above(np.zeros((1, 2)), coin[1], many, alone, SMOOTHING)).all()


@pytest.mark.parametrize("m", [1.0, 1.02, 0.97, 0.98 + 0.05j, 1.01 - 0.2j, 0.8, 1.28])
def test_weight_is_the_expectation_of_its_polynomial(m: complex) -> None:
    count = TermCount(1, np.array([0.3, 0.6]), np.array([60.0, 80.0]))
    law = count_law(count)
    n = np.arange(law.size)
    found = count.at(np.array([[1.01, m]], dtype=np.complex128), np.full((1, 2), 1e-16))
    centre, least = 68.0, 20.0
    u = n / centre - 1.0
    w = (1.0 - u + u**2 - u**3 + centre / least * u**4) / centre
    assert (w >= 0.0).all()
    assert (w[20:] * n[20:] >= 1.0 - 1e-14).all()
    powers = law * np.complex128(m) ** n
    value, doubt = found.weight(np.array([centre]), np.array([least]))
    assert abs(value[0, 1] - (powers @ w) / powers.sum()) < doubt[0, 1] < 1e-9
    assert abs(found.log[0, 1].real - np.log(abs(powers.sum()))) < found.doubt[0, 1] < 1e-10
    for known in range(1, 3):  # mean and variance
        moment = ((powers @ n) / powers.sum(), (powers @ n**2) / powers.sum() - ((powers @ n) / powers.sum()) ** 2)
        assert abs(found.cumulants[known - 1][0, 1] - moment[known - 1]) < 1e-10


@pytest.mark.parametrize("m", [1.02, 0.98 + 0.05j, 1.01 - 0.2j])
def test_an_error_of_the_transform_moves_nothing_by_more_than_is_said(m: complex) -> None:
    count, wrong = TermCount(1, np.array([0.3, 0.6]), np.array([60.0, 80.0])), 1e-10
    ends = np.array([68.0]), np.array([20.0])
    found = count.at(np.array([[1.01, m]], dtype=np.complex128), np.full((1, 2), wrong * abs(m)))
    value, doubt = found.weight(*ends)
    for turn in (1.0, -1.0, 1j):
        moved = count.at(np.array([[1.01, m * (1.0 + wrong * turn)]]), np.full((1, 2), 1e-16))
        assert 0.0 < abs(moved.weight(*ends)[0] - value)[0, 1] < doubt[0, 1]
        assert 0.05 * found.doubt[0, 1] < abs(moved.log - found.log)[0, 1] < found.doubt[0, 1]


def test_far_from_the_first_point_nothing_is_told() -> None:
    found = COUNTS[0].at(np.array([[1.0, 1.31, 0.9 + 0.4j]]), np.full((1, 3), 1e-16))
    assert np.isfinite(found.doubt).tolist() == [[True, False, False]]
    assert np.isfinite(found.unsure).tolist() == [[True, False, False]]


@pytest.mark.parametrize("count", COUNTS)
def test_few_terms_are_rare(count: TermCount) -> None:
    law = count_law(count)
    for depth in (1.0, 10.0, 40.0, 200.0, 5000.0):
        least = int(count.rarely_below(np.array([depth]))[0])
        assert law[:least].sum() <= np.exp(-depth)
        deepest = law[: least + int(0.02 * count.mean) + 2].sum()  # and not much later
        assert deepest > np.exp(-1.3 * depth - 4.0) or least == count.sure


def lines() -> Lines:
    laws = [terms(seed, shift) for seed, shift in ((5, 0), (6, 2), (7, 4))]
    values, weights = np.stack([p for p, _ in laws]) * UNIT, np.stack([c for _, c in laws])
    return Lines.of(values, weights, COUNTS[0], SMOOTHING)


def test_transforms_err_by_less_than_is_said() -> None:
    found = lines()
    first, step = np.array([0.3, 0.0, 2.0]), np.array([0.07, 0.2, 0.011])
    value, off = found.transforms(first, step, 50)
    y = first[:, None].astype(np.longdouble) + step[:, None] * np.arange(50)
    angles = y[:, :, None] * found.values[:, None, :].astype(np.longdouble)
    tilted = found.tilted[:, None, :].astype(np.longdouble)
    exact = (tilted * np.cos(angles)).sum(axis=2) + found.rest[:, None], (tilted * np.sin(angles)).sum(axis=2)
    wrong = np.hypot(value.real - exact[0], value.imag - exact[1])
    assert (wrong < off).all()
    assert (off < 1e-12).all()


def test_transform_has_fallen_where_that_is_said() -> None:
    found = lines()
    for floor in (0.95, 0.9):
        last = np.full(3, 100.0)
        begins = found.fallen(np.full(3, floor), last)
        assert np.isfinite(begins).all()
        step = (last - begins) / 20_000
        size = np.abs(found.transforms(begins, step, 20_001)[0]) / found.whole[:, None]
        assert (size <= floor).all()
        near = np.abs(found.transforms(0.5 * begins, np.zeros(3), 1)[0][:, 0]) / found.whole
        assert (near > floor).all()  # and not much later
    assert np.isinf(found.fallen(np.full(3, 0.95), np.full(3, 500.0))).all()  # 2 pi / UNIT is about 402
