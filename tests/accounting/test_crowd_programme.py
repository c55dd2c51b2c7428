"""The crowd programme: its lemmas, its figures, that it is asked only on request."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from shuffledp import Budgets, InvalidInput, Laplace, OutOfRegime, RandomizedResponse, Setting, bounds, certify
from shuffledp.accounting.certify import consulted
from shuffledp.accounting.engines.crowd_programme import ProgrammeProfile, _Distance
from shuffledp.accounting.engines.random_crowd import MixedCrowd, least_number
from shuffledp.numerics.hitting import MeanRegion, RecordGrid, mean_of_convex
from shuffledp.numerics.sums import IndependentSum, positive_part
from shuffledp.numerics.two_laws import laplace_laws


def setting(n: int, epsilon0: float, **more) -> Setting:
    return Setting(Budgets([epsilon0], [n]), Laplace(0, 1), more.pop("seen", "reports"), "replace-one", **more)


def density(rate: float, x: float, y: np.ndarray) -> np.ndarray:
    return 0.5 * rate * np.exp(-rate * np.abs(y - x))


@pytest.mark.parametrize("rate", [0.3, 1.0, 4.0])
def test_laws_of_records_hide_those_of_the_ends_and_of_a_centre(rate: float) -> None:
    """(H) on a grid of outputs, for the ends and for a centre."""
    y = np.linspace(-3.0, 4.0, 1401)
    for x in np.linspace(0.0, 1.0, 33):
        law = density(rate, x, y) * (1 + 1e-12)
        a, b = np.sinh(rate * (1 - x)) / np.sinh(rate), np.sinh(rate * x) / np.sinh(rate)
        assert (law >= a * density(rate, 0.0, y) + b * density(rate, 1.0, y)).all()
        assert (law >= np.exp(-rate * abs(x - 0.3)) * density(rate, 0.3, y)).all()


@pytest.mark.parametrize("rate", [0.3, 1.0, 6.0])
def test_records_of_the_grid_stand_for_those_between(rate: float) -> None:
    """a, b and exp(-r |x-c|), c on the grid or not, are at least a mixture of the values at both neighbours."""
    steps = 16
    grid, centres = RecordGrid(rate, steps), (0.0, 0.3, 0.5, 1.0)
    a, b = grid.mixtures()
    near = [grid.reach(c) for c in centres]
    for x in np.linspace(0.0, 1.0, 301):
        k = min(int(x * steps), steps - 1)
        left, right = np.sinh(rate * ((k + 1) / steps - x)), np.sinh(rate * (x - k / steps))
        weight = left / (left + right)
        truth = [np.sinh(rate * (1 - x)) / np.sinh(rate), np.sinh(rate * x) / np.sinh(rate)]
        truth += [np.exp(-rate * abs(x - c)) for c in centres]
        for true, known in zip(truth, [a, b, *near], strict=True):
            assert true >= weight * known[k] + (1 - weight) * known[k + 1]
    assert a[0] > 1 - rate**2 / (7.0 * steps**2)  # and hardly less


@pytest.mark.parametrize("seed", range(4))
def test_the_means_of_every_crowd_lie_above_a_corner(seed: int) -> None:
    """Crowds within [0, 1], and crowds with users beyond who count as users on an end with a chance."""
    rng, rate, there = np.random.default_rng(seed), 2.0, 0.93
    grid, centres = RecordGrid(rate, 60), (0.0, 0.5, 1.0)
    most = np.array([0.9, 0.62, 0.8])
    region = MeanRegion.of(grid, np.stack([grid.reach(c) for c in centres]), most, 12, there)
    every = MeanRegion.of(grid, np.zeros((0, 61)), np.zeros(0), 12, there)
    tested = 0
    for _ in range(4000):
        x, share = rng.random(4), rng.dirichlet(np.full(4, 0.5))
        x[:2] = rng.integers(0, 2, 2)
        weight = share * np.array([rng.uniform(there, 1.0), rng.uniform(there, 1.0), 1.0, 1.0])
        reached = np.array([weight @ np.exp(-rate * np.abs(x - c)) for c in centres])
        a, b = (weight @ np.sinh(rate * z) / np.sinh(rate) for z in (1 - x, x))
        assert ((every.a <= a) & (every.b <= b)).any()
        if (reached <= most).all():
            tested += 1
            assert ((region.a <= a) & (region.b <= b)).any()
    assert tested > 50


def test_the_region_is_worth_its_conditions() -> None:
    """At half of the users on either end the conditions leave only crowds with more of both."""
    grid = RecordGrid(2.0, 64)
    region = MeanRegion.of(grid, grid.reach(0.5)[None], np.array([0.55]), 20)
    every = MeanRegion.of(grid, np.zeros((0, 65)), np.zeros(0), 20)
    assert (region.a + region.b).min() > (every.a + every.b).min() + 0.05
    fewer = MeanRegion.of(grid, grid.reach(0.5)[None], np.array([0.55]), 20, 0.8)
    assert fewer.a.size >= region.a.size
    assert (fewer.a + fewer.b).min() < (region.a + region.b).min()


def exact_law(p: np.ndarray) -> np.ndarray:
    law = np.ones(1)
    for chance in p:
        law = np.convolve(law, [1 - chance, chance])
    return law


@pytest.mark.parametrize("seed", range(3))
def test_sums_of_unequal_bits(seed: int) -> None:
    """Thresholds and convex means against the exact law of sums of unequal bits (convolution)."""
    rng = np.random.default_rng(10 + seed)
    p = rng.beta(0.5, 0.5, 40)
    law, counts = exact_law(p), np.arange(41.0)
    for chance in (0.3, 0.1, 1e-3, 1e-9):
        least, below = least_number(40, np.array([p.mean()]), np.array([chance]))
        assert law[: int(least[0])].sum() <= below[0] <= chance * (1 + 1e-9)
        assert least[0] <= p.sum()
    nodes = np.array([0.0, 3.0, 8.0, 12.0, 15.0, 18.0, 22.0, 30.0])
    h = np.exp(-0.2 * counts) + 0.05 * (counts < 20)
    found = mean_of_convex(nodes, h[nodes.astype(int)], 40, float(p.mean()))
    assert law @ h <= found <= 1.0
    plain = np.exp(-0.2 * counts)  # convex by itself: the binomial mean of the shifted nodes
    fine = mean_of_convex(counts, plain, 40, float(p.mean()))
    assert law @ plain <= fine <= 1.3 * binom.pmf(counts, 40, p.mean()) @ plain


@pytest.mark.parametrize(("seed", "spread"), [(1, 0.0), (2, 0.0), (3, 0.9), (4, 0.9)])
def test_layers_bound_the_mean_over_a_random_crowd(seed: int, spread: float) -> None:
    """(A) for users of unequal chances: the exact law of both numbers times the bounds of H, summed."""
    rng, others, epsilon = np.random.default_rng(seed), 60, 0.4
    chances = rng.dirichlet(np.array([3.0, 2.0, 1.0 - spread]), others)[:, :2]
    law = np.zeros((others + 1, others + 1))
    law[0, 0] = 1.0
    for a, b in chances:
        moved = (1 - a - b) * law
        moved[1:] += a * law[:-1]
        moved[:, 1:] += b * law[:, :-1]
        law = moved
    crowd = MixedCrowd(laplace_laws(1.0, 12), epsilon)
    mean = 0.0
    for i, j in zip(*np.nonzero(law > 1e-7), strict=True):
        mean += law[i, j] * min(crowd.two_type(int(i), int(j)), crowd.equal_crowd(int(i), int(j)), 1.0)
    region = MeanRegion(*(np.array([chances[:, k].mean()]) for k in (0, 1)))
    proved = [delta for delta in mean * np.geomspace(0.8, 8.0, 30) if crowd.hides(region, others, delta, 0.2)]
    assert proved
    assert min(proved) >= mean
    assert min(proved) <= 6.0 * mean


def profile(n: int, epsilon0: float) -> ProgrammeProfile:
    found = bounds["crowd-programme"].profile(setting(n, epsilon0), epsilon0)
    assert isinstance(found, ProgrammeProfile)
    return found


def test_ten_thousand_at_one() -> None:
    """The first cell of distances alone; all of them in the slow test."""
    assert _Distance(1.0, 10_000).proved(0.995, 0.0331, 1e-6)


@pytest.mark.parametrize(
    ("epsilon0", "n", "proved", "attained"),
    [
        (1.0, 10_000, 0.0327, 0.0312),
        (1.0, 1000, 0.1190, 0.1100),
        (2.0, 10_000, 0.0755, 0.0718),
        (4.0, 10_000, 0.2540, 0.2440),
    ],
)
def test_end_points(epsilon0: float, n: int, proved: float, attained: float) -> None:
    """The pair (0, 1) itself, everybody being there; never at an epsilon that an attack attains."""
    assert _Distance(epsilon0, n).proved(1.0, proved, 1e-6)
    assert not _Distance(epsilon0, n).proved(1.0, attained, 1e-6)


def attained(rate: float, start: float, n: int, epsilon: float) -> float:
    """A lower end of delta for the pair (start, 1), all others on 0: cells of outputs merged into points."""
    ends = np.concatenate(([-40.0], np.linspace(0.0, 1.0, 101), [40.0]))

    def masses(x: float) -> np.ndarray:
        right = 0.5 * np.exp(-rate * np.abs(ends - x))
        return np.diff(np.where(ends < x, right, 1.0 - right))

    crowd, values = masses(0.0), masses(start) - np.exp(epsilon) * masses(1.0)
    one = IndependentSum(np.array([float(n)]), (values / crowd)[None], crowd[None], np.array([values.sum()]), 1e4)
    return positive_part(one, 0.02).lower / n


@pytest.mark.parametrize(("rate", "distance"), [(4.0, 0.95), (4.0, 0.5), (2.0, 0.7)])
def test_pairs_within_the_range_stay_above_what_an_attack_attains(rate: float, distance: float) -> None:
    """A victim between 0 and 1 - d, all others on 0, beyond the pair: at that epsilon the cell is not proved."""
    n, low, high = 10_000, 0.03, 0.3
    for _ in range(8):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if attained(rate, 1.0 - distance, n, middle) > 1e-6 else (low, middle)
    there = np.exp(-rate * (1.0 - distance))
    assert not _Distance(rate * distance, n).proved(there, low, 1e-6)
    assert _Distance(rate * distance, n).proved(there, 1.12 * high, 1e-6)


def test_delta_is_that_of_the_blanket() -> None:
    asked = setting(1000, 1.0)
    assert profile(1000, 1.0).delta(0.1).upper == bounds["blanket"].profile(asked, 1.0).delta(0.1).upper


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon0", "n", "most"),
    [(1.0, 10_000, 0.0327), (1.0, 1000, 0.1194), (2.0, 10_000, 0.0763), (4.0, 10_000, 0.2580)],
)
def test_the_figures_of_all_pairs(epsilon0: float, n: int, most: float) -> None:
    asked = setting(n, epsilon0)
    found = certify(asked, 1e-6, effort="thorough").epsilon
    assert found.lower < found.upper <= most
    blanket = next(each.epsilon for each in certify(asked, 1e-6).evidence if each.key == "blanket")
    assert blanket is not None
    assert found.upper < 0.92 * blanket.upper


def test_it_is_asked_on_request_only() -> None:
    asked = Setting(Budgets([1.0], [50]), RandomizedResponse(3), "reports", "replace-one")
    keys = [{one.key for one in certify(asked, 1e-3, effort=effort).evidence} for effort in ("usual", "thorough")]
    assert keys[1] - keys[0] == {"crowd-programme"}
    assert "crowd-programme" not in {bound.key for bound in consulted(setting(1000, 1.0), published=True)}
    with pytest.raises(InvalidInput, match="effort must be usual or thorough; got 'slow'"):
        certify(asked, 1e-3, effort="slow")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (Setting(Budgets([1.0], [500]), RandomizedResponse(3), "reports", "replace-one"), "Laplace noise"),
        (Setting(Budgets([1.0, 2.0], [500, 500]), Laplace(0, 1), "reports", "replace-one"), "one budget"),
        (setting(500, 1.0, seen="sum"), "sum"),
        (setting(50, 1.0), "users"),
        (setting(500, 9.0), "budgets from"),
    ],
)
def test_refusals(asked: Setting, why: str) -> None:
    with pytest.raises(OutOfRegime, match=why):
        bounds["crowd-programme"].profile(asked, float(asked.budgets.epsilons[0]))
