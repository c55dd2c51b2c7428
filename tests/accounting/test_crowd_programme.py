"""The crowd programme: its lemmas, its figures, that it is asked only on request."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from shuffledp import Budgets, InvalidInput, Laplace, OutOfRegime, RandomizedResponse, Setting, bounds, certify
from shuffledp.accounting.certify import consulted
from shuffledp.accounting.engines.crowd_programme import ProgrammeProfile, _Distance
from shuffledp.numerics.hitting import MeanRegion, RecordCells, mean_of_convex, usual_range


def setting(n: int, epsilon0: float, **more) -> Setting:
    return Setting(Budgets([epsilon0], [n]), Laplace(0, 1), more.pop("seen", "reports"), "replace-one", **more)


def density(rate: float, x: float, y: np.ndarray) -> np.ndarray:
    return 0.5 * rate * np.exp(-rate * np.abs(y - x))


@pytest.mark.parametrize("rate", [0.3, 1.0, 4.0])
def test_laws_of_records_hide_those_of_the_ends_and_of_a_centre(rate: float) -> None:
    """(H) on a grid of outputs, with the lower bounds of each cell at several records of it."""
    cells, y = RecordCells(rate, 16), np.linspace(-3.0, 4.0, 1401)
    (left, right), (a, b), near = cells.ends, cells.mixtures(), cells.reach(0.3)
    for cell in range(16):
        for x in np.linspace(left[cell], right[cell], 3):
            law = density(rate, x, y) * (1 + 1e-12)
            assert (law >= a[cell] * density(rate, 0.0, y) + b[cell] * density(rate, 1.0, y)).all()
            assert (law >= near[cell] * density(rate, 0.3, y)).all()


@pytest.mark.parametrize("seed", range(4))
def test_the_means_of_every_crowd_lie_above_a_corner(seed: int) -> None:
    rng, rate = np.random.default_rng(seed), 2.0
    cells, centres = RecordCells(rate, 60), (0.0, 0.5, 1.0)
    most = np.array([0.9, 0.62, 0.8])
    region = MeanRegion.of(cells, np.stack([cells.reach(c) for c in centres]), most, 12)
    every = MeanRegion.hit(cells)
    tested = 0
    for _ in range(4000):
        x, share = rng.random(3), rng.dirichlet(np.full(3, 0.5))
        reached = np.array([share @ np.exp(-rate * np.abs(x - c)) for c in centres])
        a, b = (share @ np.sinh(rate * z) / np.sinh(rate) for z in (1 - x, x))
        assert ((every.a <= a) & (every.b <= b)).any()
        if (reached <= most).all():
            tested += 1
            assert ((region.a <= a) & (region.b <= b)).any()
    assert tested > 50


def test_the_region_is_worth_its_conditions() -> None:
    """At half of the users on either end the conditions leave only crowds with more of both."""
    cells = RecordCells(2.0, 240)
    region = MeanRegion.of(cells, cells.reach(0.5)[None], np.array([0.55]), 20)
    every = MeanRegion.hit(cells)
    assert (region.a + region.b).min() > (every.a + every.b).min() + 0.05


@pytest.mark.parametrize("seed", range(3))
def test_sums_of_unequal_bits(seed: int) -> None:
    """Ranges and convex means against the exact law of sums of unequal bits (convolution)."""
    rng = np.random.default_rng(10 + seed)
    p = rng.beta(0.5, 0.5, 40)
    law = np.ones(1)
    for chance in p:
        law = np.convolve(law, [1 - chance, chance])
    counts = np.arange(41.0)
    for chance in (0.1, 1e-3, 1e-9):
        low, high = usual_range(40, float(p.mean()), chance)
        assert law[:low].sum() <= chance
        assert law[high + 1 :].sum() <= chance
    nodes = np.array([0.0, 3.0, 8.0, 12.0, 15.0, 18.0, 22.0, 30.0])
    h = np.exp(-0.2 * counts) + 0.05 * (counts < 20)
    found = mean_of_convex(nodes, h[nodes.astype(int)], 40, float(p.mean()))
    assert law @ h <= found <= 1.0
    plain = np.exp(-0.2 * counts)  # convex by itself: the binomial mean of the shifted nodes
    fine = mean_of_convex(counts, plain, 40, float(p.mean()))
    assert law @ plain <= fine <= 1.3 * binom.pmf(counts, 40, p.mean()) @ plain


def profile(n: int, epsilon0: float) -> ProgrammeProfile:
    found = bounds["crowd-programme"].profile(setting(n, epsilon0), epsilon0)
    assert isinstance(found, ProgrammeProfile)
    return found


def test_ten_thousand_at_one() -> None:
    """The first cell of distances alone; all of them in the slow test."""
    assert _Distance(1.0, 10_000).proved(0.995, 0.0331, 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon0", "n", "proved", "attained"),
    [
        (1.0, 10_000, 0.0331, 0.0312),
        (1.0, 1000, 0.1205, 0.1100),
        (2.0, 10_000, 0.0760, 0.0718),
        (4.0, 10_000, 0.2575, 0.2440),
    ],
)
def test_end_points(epsilon0: float, n: int, proved: float, attained: float) -> None:
    """The pair (0, 1) itself, everybody being there; never at an epsilon that an attack attains."""
    assert _Distance(epsilon0, n).proved(1.0, proved, 1e-6)
    assert not _Distance(epsilon0, n).proved(1.0, attained, 1e-6)


def test_delta_is_that_of_the_blanket() -> None:
    asked = setting(1000, 1.0)
    assert profile(1000, 1.0).delta(0.1).upper == bounds["blanket"].profile(asked, 1.0).delta(0.1).upper


@pytest.mark.slow
def test_the_figure_of_all_pairs() -> None:
    found = certify(setting(10_000, 1.0), 1e-6, effort="thorough").epsilon
    assert found.lower < found.upper <= 0.0333
    usual = certify(setting(10_000, 1.0), 1e-6)
    assert found.upper < usual.epsilon.upper
    blanket = next(each.epsilon for each in usual.evidence if each.key == "blanket")
    assert blanket is not None
    assert found.upper < 0.9 * blanket.upper


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
