"""The equal crowd: enumeration of small populations, the figures asked for, refusals."""

from __future__ import annotations

import math
from itertools import permutations, product

import numpy as np
import pytest
from scipy.stats import laplace, norm

from shuffledp import Budgets, Gaussian, Interval, Laplace, OutOfRegime, RandomizedResponse, Setting, bounds, certify
from shuffledp.accounting.theorems import reports_exact
from shuffledp.accounting.theorems.equal_crowd import EqualCrowdWitness, gaussian_pair, laplace_pair
from shuffledp.randomizers.base import AnyLaw, PairBlanket

EPSILONS = (0.0, 0.1, 0.4)
ROUNDING = 1e-10


def crowd(law: AnyLaw | str, budgets: Budgets, seen: str = "reports", **more: object):
    setting = Setting(budgets, law, seen, "replace-one", **more)  # type: ignore[arg-type]
    return bounds["equal-crowd"].profile(setting, float(budgets.epsilons[-1]))


def hockey(first: np.ndarray, second: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(first - math.exp(epsilon) * second, 0.0).sum())


def pair_of_reports(rows: np.ndarray, other: np.ndarray) -> list[np.ndarray]:
    """Law of the multiset of two reports, one of them the victim's, for each of the victim's records."""
    return [np.triu((np.outer(row, other) + np.outer(other, row)) * (1 - 0.5 * np.eye(other.size))) for row in rows]


@pytest.mark.parametrize("epsilon0", [0.3, 1.0, 3.0])
def test_two_people_with_laplace_noise(epsilon0: float) -> None:
    """All pairs of windows, with masses from another library's distribution function."""
    edges = np.concatenate(([-np.inf], np.linspace(0.0, 1.0, 65), [np.inf]))
    rows = np.array([np.diff(laplace.cdf(edges, loc=x, scale=1 / epsilon0)) for x in (0.0, 1.0)])
    assert np.allclose(laplace_pair(1 / epsilon0)[0].masses, rows[1], rtol=1e-9)
    both = pair_of_reports(rows, rows[1])
    profile = crowd(Laplace(0.0, 1.0), Budgets([epsilon0], [2]))
    for e in EPSILONS:
        exact, found = max(hockey(both[0], both[1], e), hockey(both[1], both[0], e)), profile.delta(e)
        assert found.lower <= exact + ROUNDING
        assert found.lower == pytest.approx(exact, rel=2e-3, abs=1e-9)


def test_two_people_with_normal_noise() -> None:
    """Windows of the same place, with masses from another library; the upper law is put on a lattice, the lower too."""
    law, epsilon0, delta0 = Gaussian(0.0, 1.0), 1.5, 0.05
    scale = float(law.scale(np.array([epsilon0]), np.array([delta0]))[0])
    steps = math.ceil((0.5 / scale + 8.0) / 0.1)
    edges = np.linspace(-(0.5 / scale + 8.0), 0.5 / scale + 8.0, 2 * steps + 1) * scale + 0.5
    edges = np.concatenate(([-np.inf], edges, [np.inf]))
    rows = np.array([np.where(edges[:-1] > x, -np.diff(norm.sf(edges, x, scale)), np.diff(norm.cdf(edges, x, scale)))
                     for x in (0.0, 1.0)])  # fmt: skip
    pair = gaussian_pair(scale)[0]
    assert np.allclose(pair.masses, rows[1], rtol=1e-8)
    assert np.allclose(pair.ratios0 * pair.masses, rows[0], rtol=1e-8)
    both = pair_of_reports(rows, rows[1])
    profile = crowd(law, Budgets([epsilon0], [2], [delta0]))
    for e in EPSILONS:
        exact, found = max(hockey(both[0], both[1], e), hockey(both[1], both[0], e)), profile.delta(e)
        assert exact * 0.95 < found.lower <= exact + ROUNDING
        assert exact <= found.upper + ROUNDING


@pytest.mark.parametrize("law", [RandomizedResponse(2), RandomizedResponse(3)], ids=str)
def test_permuted_users_with_several_budgets(law: RandomizedResponse) -> None:
    """Every permutation of three people over three steps of different budgets, outputs in order."""
    budgets = (0.4, 0.9, 1.6)
    rows = [law.channel(e) for e in budgets]
    outputs = list(product(range(law.k), repeat=3))
    other = 1 if law.k == 2 else 2

    def seen(record: int) -> np.ndarray:
        told = [record, other, other]
        return np.array([
            sum(math.prod(rows[t][told[who], y] for t, (who, y) in enumerate(zip(order, ys, strict=True)))
                for order in permutations(range(3))) / 6
            for ys in outputs
        ])  # fmt: skip

    first, second = seen(0), seen(1)
    profile = crowd(law, Budgets(budgets, [1, 1, 1]), "users")
    for e in EPSILONS:
        exact, found = max(hockey(first, second, e), hockey(second, first, e)), profile.delta(e)
        assert found.lower <= exact + ROUNDING
        assert found.lower == pytest.approx(exact, rel=2e-3, abs=1e-9)
        assert exact <= found.upper + ROUNDING


FIGURES = [(1.0, 10_000, 0.0312), (1.0, 1_000, 0.1100), (1.0, 1_000_000, 0.00249), (2.0, 10_000, 0.0718)]


@pytest.mark.parametrize(("epsilon0", "n", "least"), FIGURES)
def test_laplace_figures(epsilon0: float, n: int, least: float) -> None:
    lower = crowd(Laplace(0.0, 1.0), Budgets([epsilon0], [n])).epsilon(1e-6).lower
    setting = Setting(Budgets([epsilon0], [n]), Laplace(0.0, 1.0), "reports", "replace-one")
    assert least <= lower <= bounds["blanket"].profile(setting, epsilon0).epsilon(1e-6).upper


@pytest.mark.parametrize("law", ["any", RandomizedResponse(2), RandomizedResponse(5), Laplace(0.0, 1.0)], ids=str)
def test_ordered_outputs_have_a_witness(law: AnyLaw | str) -> None:
    """0.5:9000 and 2:1000, which had lower end 0 before; the upper end is that of any randomizer."""
    budgets = Budgets([0.5, 2.0], [9000, 1000])
    setting = Setting(budgets, law, "users", "replace-one")  # type: ignore[arg-type]
    found = bounds["equal-crowd"].level_epsilons(setting, 1e-6, np.arange(2))
    upper = bounds["ordered"].profile(setting, 2.0).epsilon(1e-6).upper
    assert 0.025 < found.lower[0] == found.lower[1] <= upper < 0.0382
    if law == "any":
        assert found.lower[0] > 0.0350


def test_exposed_steps_are_not_chosen() -> None:
    """Whose steps are exposed is chance: the attack counts on nobody's absence."""
    budgets = Budgets([0.5, 2.0], [90, 10])
    plain, fewer = (crowd("any", budgets, "users", missing=share).delta(0.1).lower for share in (0.0, 0.5))
    assert plain == fewer


@pytest.mark.parametrize(
    ("law", "budgets", "seen", "why"),
    [
        ("any", Budgets([1.0], [9]), "reports", "with one budget"),
        (Laplace(0.0, 1.0), Budgets([1.0, 2.0], [9, 9]), "reports", "others with one budget"),
        (Laplace(0.0, 1.0), Budgets([1.0], [9]), "sum", "only their sum is seen"),
        (Laplace(0.0, 1.0), Budgets([300.0], [9]), "reports", "noise of 0.01"),
        ("any", Budgets([1.0, 2.0], [9, 9], [0.1, 0.1]), "users", "pure local budgets"),
    ],
)
def test_refusals(law: AnyLaw | str, budgets: Budgets, seen: str, why: str) -> None:
    with pytest.raises(OutOfRegime, match=why):
        crowd(law, budgets, seen)
    with pytest.raises(OutOfRegime, match="a third record"):
        crowd(RandomizedResponse(3), Budgets([1.0, 2.0], [9, 9]), "users", records=2)


@pytest.mark.parametrize("law", [Laplace(0.0, 1.0), Gaussian(0.0, 1.0)])
def test_the_epsilon_is_that_of_the_worse_direction_whichever_is_searched_first(law, monkeypatch):
    """The guess of the worse direction saves time alone; the other one is always checked."""
    budgets = Budgets([2.0], [3_000], [1e-8 if law.noise == "gaussian" else 0.0])
    setting = Setting(budgets, law, seen="reports", neighboring="replace-one")
    found = list[Interval]()
    for ahead in (None, True, False):
        if ahead is not None:
            monkeypatch.setattr(reports_exact, "forward_is_larger", lambda crowd, epsilon, ahead=ahead: ahead)
        found.append(EqualCrowdWitness().one_round(setting, 2.0).epsilon(1e-6))
    profile = EqualCrowdWitness().one_round(setting, 2.0)
    both = [part.epsilon(1e-6) for part in (profile.forward, profile.backward)]
    for one in found:
        assert one.upper == max(part.upper for part in both)
        assert one.lower == max(part.lower for part in both)


def test_an_end_asked_for_alone_is_that_of_both():
    setting = Setting(Budgets([1.0], [500]), Laplace(0.0, 1.0), seen="reports", neighboring="replace-one")
    whole, apart = (EqualCrowdWitness().one_round(setting, 1.0).forward for _ in range(2))
    for epsilon in (0.0, 0.05, 0.2, 0.9999, 1.5):
        assert apart.delta_above(epsilon) == whole.delta(epsilon).upper
        assert apart.delta_below(epsilon) == pytest.approx(whole.delta(epsilon).lower, rel=1e-12)


def test_a_ratio_that_is_the_same_everywhere_has_no_spread():
    """Budgets of 700 once ended in a division by zero: the power of a variance near 0 was 0."""
    law = PairBlanket(1.0, np.array([1.0]), np.array([1.0]), np.array([1.0]), np.array([0.0]))
    assert reports_exact.forward_is_larger(((law,), np.array([100.0])), 0.5)
    assert (
        certify(Setting(Budgets.of([700.0] * 30), RandomizedResponse(2), "reports", "replace-one"), 1e-6).epsilon.lower
        > 0
    )
