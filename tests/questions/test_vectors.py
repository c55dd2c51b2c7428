from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import simulation_random
from shuffledp.questions.tally import shuffle_reports
from shuffledp.questions.vectors import VectorEstimate, vector_family, vector_mean
from shuffledp.randomizers.sketch import CoordinateSampling, SignedSketch
from shuffledp.randomizers.vector import DirectionCodebook
from shuffledp.records.columns import Recode, bounded_vectors
from shuffledp.releases.wrappers import estimate_vector_mean
from tests.randomizers.errors import predicted_error

NORMS = ["l1", "l2", "linf"]


def data(n, d, norm, bound=2.0, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d)) + 1.0
    size = {"l1": np.abs(x).sum(1), "l2": np.linalg.norm(x, axis=1), "linf": np.abs(x).max(1)}[norm]
    return x / size[:, None] * rng.uniform(0.3, 1.0, n)[:, None] * bound


def ask(x, epsilon0=1.0, **options):
    return estimate_vector_mean(x, epsilon0, **{"norm": 2.0, "seen": "reports", "delta": 1e-6, **options})


@pytest.mark.costly(
    but=(
        "10-1500-1.0-l1",
        "10-1500-1.0-linf",
        "40-500-3.0-l1",
        "5-600-5.0-l1",
    )
)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("d", "n", "epsilon0"), [(10, 1500, 1.0), (5, 600, 5.0), (40, 500, 3.0)])
def test_unbiased_and_standard_errors_are_right(norm, d, n, epsilon0):
    """False alarm below 1e-6: the mean of the z's has 5 sigma, their mean square 6; coverage is binomial.

    Standard errors are upper bounds, so a mean square below 1 is allowed, down to what unequal records explain.
    """
    x = data(n, d, norm)
    family = vector_family(d, norm, 2.0, epsilon0)
    bounds = []
    z = []
    for seed in range(25):
        shuffled = shuffle_reports(
            family.randomize(x, epsilon0, simulation_random(seed)),
            epsilon0,
            seen="reports",
            random=simulation_random(0),
        )
        found = vector_mean(shuffled, family)
        z.append((found.value - x.mean(0)) / found.standard_error)
        low, high = found.confidence_interval(0.9)
        bounds.append((low <= x.mean(0)) & (x.mean(0) <= high))
    z = np.array(z)
    assert np.abs(z.mean(0)).max() < 5.5 / np.sqrt(25)
    assert 0.6 < np.mean(z**2) < 1.0 + 6 * np.sqrt(2 / z.size)
    assert np.mean(bounds) > 0.9 - 5 * np.sqrt(0.09 / z.size)


@pytest.mark.costly(
    but=(
        "linf-levels-population",
        "linf-levels-precision",
        "linf-reports-population",
    )
)
@pytest.mark.parametrize(
    ("seen", "weights"), [("reports", "population"), ("levels", "population"), ("levels", "precision")]
)
@pytest.mark.parametrize("norm", NORMS)
def test_personal_budgets(norm, seen, weights):
    n, d = 2000, 6
    x = data(n, d, norm)
    epsilons = np.random.default_rng(1).choice([0.0, 0.5, 2.0], n)
    family = vector_family(d, norm, 2.0, epsilons, np.ones(n))
    z = []
    for seed in range(25):
        random = simulation_random(seed)
        reports = family.randomize(x, epsilons, random)
        found = vector_mean(shuffle_reports(reports, epsilons, seen=seen, random=random), family, weights=weights)
        z.append((found.value - x.mean(0)) / found.standard_error)
        assert found.uninformative == np.count_nonzero(epsilons == 0.0)
    z = np.array(z)
    assert np.abs(z.mean(0)).max() < 5.5 / np.sqrt(25)
    assert 0.6 < np.mean(z**2) < 1.0 + 6 * np.sqrt(2 / z.size)


@pytest.mark.costly(but=("linf",))
@pytest.mark.parametrize("norm", NORMS)
def test_budgets_that_depend_on_the_records(norm):
    """With levels and weights "population" that does no harm; the large vectors have the small budgets."""
    n = 2000
    x = data(n, 3, norm)
    size = np.abs(x).sum(1)
    epsilons = np.where(size > np.median(size), 1.0, 5.0)
    family = vector_family(3, norm, 2.0, [1.0, 5.0], [1, 1])
    found = []
    for seed in range(25):
        random = simulation_random(seed)
        shuffled = shuffle_reports(family.randomize(x, epsilons, random), epsilons, seen="levels", random=random)
        found.append(vector_mean(shuffled, family).value)
    error = np.std(found, axis=0, ddof=1) / np.sqrt(25)
    # t with 24 degrees of freedom, three coordinates: false alarm below 1e-5
    assert np.abs((np.mean(found, axis=0) - x.mean(0)) / error).max() < stats.t.isf(1e-6, 24)


def test_the_best_family_is_taken():
    assert isinstance(vector_family(20, "l2", 1.0, 1.0), DirectionCodebook)
    assert isinstance(vector_family(20, "l1", 1.0, 1.0), SignedSketch)
    assert isinstance(vector_family(20, "linf", 1.0, 1.0), CoordinateSampling)
    cube = vector_family(20, "linf", 1.0, 4.0)
    assert isinstance(cube, DirectionCodebook)
    assert cube.bound == pytest.approx(np.sqrt(20))
    single = 20.0**2 / float(CoordinateSampling(20).sampled_law(4.0).keep) ** 2
    assert 20.0 * (predicted_error(cube, 4.0) + 1.0) < 0.6 * single


@pytest.mark.parametrize("norm", NORMS)
def test_predicted_error_is_the_one_reported(norm):
    d, n, epsilon0 = 30, 4000, 2.0
    x = data(n, d, norm)
    release = ask(x, epsilon0, kind=norm, random=simulation_random(5))
    family = vector_family(d, norm, 2.0, epsilon0)
    predicted = family.bound * np.sqrt((predicted_error(family, epsilon0) + 1.0) / n)
    assert isinstance(release.analysis, VectorEstimate)
    assert release.analysis.l2_error == pytest.approx(predicted, rel=0.03)
    assert np.linalg.norm(release.estimate - x.mean(0)) < 1.6 * release.analysis.l2_error
    assert release.analysis.support == (-2.0, 2.0)
    assert release.mechanism == family.name


def test_release_carries_its_guarantee():
    x, epsilons = data(1000, 4, "l2"), np.repeat([0.0, 0.5, 1.0], (100, 500, 400))
    for seen in ("reports", "levels"):
        release = ask(x, epsilons, seen=seen)
        assert release.private
        assert release.guarantee.setting.seen == seen
        assert release.guarantee.setting.randomizer_name == release.mechanism
        assert release.guarantee.epsilon.upper <= 1.0
        assert release.uninformative == 100
        assert release.weights == ("population" if seen == "levels" else None)
        low, high = release.confidence_interval(0.95)
        assert (low >= -2.0).all()
        assert (high <= 2.0).all()
    assert ask(x, 1.0, random=simulation_random(1)).private is False


@pytest.mark.parametrize("norm", NORMS)
def test_clip_shortens_but_never_invents(norm):
    x = data(50, 3, norm, bound=4.0)
    with pytest.raises(InvalidInput, match=r"norm beyond 2; say `clip`"):
        ask(x, kind=norm)
    assert ask(x, kind=norm, clip=True).n == 50
    clipped = bounded_vectors([x], 3, norm, 2.0, Recode(clip=True))
    size = {"l1": np.abs(clipped).sum(1), "l2": np.linalg.norm(clipped, axis=1), "linf": np.abs(clipped).max(1)}[norm]
    assert size.max() <= 2.0 * (1 + 1e-15)
    inside = {"l1": np.abs(x).sum(1), "l2": np.linalg.norm(x, axis=1), "linf": np.abs(x).max(1)}[norm] <= 2.0
    assert inside.any()
    assert (clipped[inside] == x[inside]).all()
    x[3, 1] = np.nan
    with pytest.raises(InvalidInput, match="row 4 is missing"):
        ask(x, kind=norm, clip=True)


@pytest.mark.costly(but=("l1",))
@pytest.mark.parametrize("norm", NORMS)
def test_one_user_and_one_dimension_are_enough(norm):
    release = ask([[0.5]], kind=norm)
    assert release.estimate.shape == (1,)
    assert np.isfinite(release.standard_error).all()
    assert (release.standard_error > 0).all()
    assert ask([[0.5, 0.1]], 0.001, kind=norm, seen="levels").analysis.l2_error < np.inf
    exact = ask(np.tile([1.0, -0.5], (4000, 1)), 700.0, kind=norm, random=simulation_random(3))
    assert np.abs(exact.estimate - [1.0, -0.5]).max() < 6 * exact.standard_error.max()


class RefusedError(Exception):
    pass


def test_the_guarantee_comes_before_the_records(monkeypatch):
    def refuse(setting, delta, **_):
        assert (setting.budgets.n, delta) == (2, 1e-6)
        raise RefusedError

    monkeypatch.setattr("shuffledp.releases.run.certify", refuse)
    monkeypatch.setattr("shuffledp.questions.vectors.bounded_vectors", lambda *_: pytest.fail("a record was read"))
    with pytest.raises(RefusedError):
        ask([[1.0, 0.0], [0.0, 1.0]])


@pytest.mark.parametrize(
    ("x", "options", "message"),
    [
        ([1.0, 2.0], {}, r"shape \(n, d\)"),
        (np.zeros((0, 3)), {}, r"shape \(n, d\)"),
        ([[1.0], [2.0, 3.0]], {}, "one entry per user"),
        ([["a", "b"]], {}, "vectors must be numbers"),
        ([[1.0, 0.0]], {"kind": "l3"}, "kind must be one of"),
        ([[1.0, 0.0]], {"norm": -1.0}, "norm must be a positive"),
        ([[1.0, 0.0]], {"seen": "sum"}, "seen must be one of reports, levels"),
        ([[1.0, 0.0]], {"epsilon0": 0.0}, "every epsilon0 is 0"),
        ([[1.0, 0.0]], {"epsilon0": [1.0, 2.0]}, "1 records need 1 budgets"),
        ([[1.0, 0.0]], {"weights": "equal"}, "weights must be one of"),
        ([[1.0, 0.0]], {"random": 3}, "random must come from"),
    ],
)
def test_bad_input(x, options, message):
    with pytest.raises(InvalidInput, match=message):
        ask(x, **options)
