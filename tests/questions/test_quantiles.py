from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import simulation_random
from shuffledp.questions.frequency import frequency
from shuffledp.questions.ranges import Bins, RangeEstimate, TreeTally, consistent
from shuffledp.questions.tally import shuffle_reports
from shuffledp.randomizers import HadamardResponse
from shuffledp.randomizers.tree import RangeTree
from shuffledp.releases.wrappers import estimate_histogram, estimate_quantiles


def ask(values, probabilities=0.5, epsilon0=1.0, **options):
    arguments = {"bins": 20, "seen": "reports", "delta": 1e-6, **options}
    return estimate_quantiles(values, 0.0, 10.0, probabilities, epsilon0, **arguments)


def tree_matrix(nodes, branching):
    """Which bins are below each node, levels under each other."""
    depth = len(nodes)
    rows = []
    for level, count in enumerate(nodes):
        width = branching ** (depth - 1 - level)
        rows += [[float(bin_ // width == node) for bin_ in range(nodes[-1])] for node in range(count)]
    return np.array(rows)


@settings(deadline=None, max_examples=25)
@given(st.integers(2, 40), st.integers(2, 6), st.integers(0, 10**6))
@example(35, 2, 0)
def test_weighted_least_squares_by_another_way(bins, branching, seed):
    """Against the dense solution with the whole eliminated: values, and the variance of every range."""
    tree, rng = RangeTree(bins, branching), np.random.default_rng(seed)
    nodes = [rng.standard_normal(count) for count in tree.nodes]
    variances = [np.full(count, float(rng.uniform(0.2, 5.0))) for count in tree.nodes]
    fractions, u = consistent(nodes, variances, branching)
    rest = tree_matrix(tree.nodes, branching)
    base, free = rest[:, -1], rest[:, :-1] - rest[:, -1:]  # the last bin is 1 minus the others
    weights = 1.0 / np.concatenate(variances)
    inverse = np.linalg.inv(free.T @ (weights[:, None] * free))
    head = inverse @ (free.T @ (weights * (np.concatenate(nodes) - base)))
    leaves = np.append(head, 1.0 - head.sum())
    assert np.concatenate(fractions) == pytest.approx(rest @ leaves, rel=1e-9, abs=1e-9)
    lift = np.vstack((np.eye(bins - 1), -np.ones(bins - 1)))
    covariance = lift @ inverse @ lift.T
    found = RangeEstimate(fractions, u, branching, 1000, 0)
    prefix = np.tril(np.ones((bins, bins)))
    # variances are compared: the dense one of the whole range is 0 but for rounding, 1e-14, whose root is 1e-7
    dense = np.diag(prefix @ covariance @ prefix.T)
    assert found.below_error**2 == pytest.approx(np.append(0.0, dense), rel=2e-7, abs=1e-12)
    assert found.below[1:] == pytest.approx(np.cumsum(leaves), rel=1e-9, abs=1e-9)
    first = int(rng.integers(bins))
    last = int(rng.integers(first, bins))
    inside = (np.arange(bins) >= first) & (np.arange(bins) <= last)
    value, error = found.range(first, last)
    assert value == pytest.approx(leaves @ inside, rel=1e-9, abs=1e-9)
    assert error**2 == pytest.approx(inside @ covariance @ inside, rel=2e-7, abs=1e-12)


def gamma_values(n=4000):
    return np.clip(np.random.default_rng(5).gamma(3.0, 1.0, n), 0.0, 10.0)


def estimates(tree, codes, epsilons, repeats, seen="reports", weights="population"):
    for seed in range(repeats):
        random = simulation_random(seed)
        reports = tree.randomize(codes, epsilons, random)
        shuffled = shuffle_reports(reports, epsilons, seen=seen, random=random)
        tally = TreeTally(shuffled.task(tree, weights))
        tally.add(shuffled.reports, shuffled.levels)
        yield tally.estimate()


@pytest.mark.parametrize(
    ("tree", "epsilon0"),
    [(RangeTree(64), 1.0), (RangeTree(37, 3), 2.0), (RangeTree(16, 16), 0.5), (RangeTree(100, 2), 4.0)],
    ids=str,
)
def test_unbiased_and_standard_errors_are_right(tree, epsilon0):
    """False alarm below 1e-5 each: means have 5.5 sigma, the mean square 6 of about 8 independent entries a run.

    Standard errors leave out - f f^T, so a mean square below 1 is allowed.
    """
    repeats, values = 60, gamma_values()
    codes = Bins(0.0, 10.0, tree.bins).codes(values)
    true = np.append(0.0, np.cumsum(np.bincount(codes, minlength=tree.bins)) / codes.size)
    first, last = tree.bins // 5, tree.bins // 2
    z, ranges = [], []
    for found in estimates(tree, codes, epsilon0, repeats):
        z.append((found.below - true)[1:-1] / found.below_error[1:-1])
        value, error = found.range(first, last)
        ranges.append((value - (true[last + 1] - true[first])) / error)
    z = np.array(z)
    assert np.abs(z.mean(0)).max() < 5.5 / np.sqrt(repeats)
    assert 0.5 < np.mean(z**2) < 1.0 + 6 * np.sqrt(2 / (8 * repeats))
    assert abs(np.mean(ranges)) < 5.0 / np.sqrt(repeats)
    assert np.mean(np.square(ranges)) < 1.0 + 6 * np.sqrt(2 / repeats)


@pytest.mark.costly(but=("reports-population",))
@pytest.mark.parametrize(
    ("seen", "weights"), [("reports", "population"), ("levels", "population"), ("levels", "precision")]
)
def test_personal_budgets(seen, weights):
    repeats, tree = 60, RangeTree(27, 3)
    codes = Bins(0.0, 10.0, 27).codes(gamma_values())
    epsilons = np.random.default_rng(2).choice([0.0, 0.7, 2.5], codes.size)
    true = np.append(0.0, np.cumsum(np.bincount(codes, minlength=27)) / codes.size)
    z = []
    for found in estimates(tree, codes, epsilons, repeats, seen, weights):
        z.append((found.below - true)[1:-1] / found.below_error[1:-1])
        assert found.uninformative == np.count_nonzero(epsilons == 0.0)
    z = np.array(z)
    assert np.abs(z.mean(0)).max() < 5.5 / np.sqrt(repeats)
    assert 0.5 < np.mean(z**2) < 1.0 + 6 * np.sqrt(2 / (8 * repeats))


def test_long_ranges_are_better_than_in_a_flat_histogram():
    """n = 20,000, 256 bins, half of the range: both from Hadamard response at the same budget."""
    values, tree, flat = gamma_values(20_000), RangeTree(256), HadamardResponse(256)
    codes = Bins(0.0, 10.0, 256).codes(values)
    truth = np.mean((codes >= 20) & (codes < 148))
    by_tree = [found.range(20, 147) for found in estimates(tree, codes, 1.0, 25)]
    by_sum = []
    for seed in range(25):
        random = simulation_random(seed)
        shuffled = shuffle_reports(flat.randomize(codes, 1.0, random), 1.0, seen="reports", random=random)
        by_sum.append(frequency(shuffled, flat).value[20:148].sum())
    error = np.sqrt(np.mean([(value - truth) ** 2 for value, _ in by_tree]))
    assert error < 0.5 * np.sqrt(np.mean((np.array(by_sum) - truth) ** 2))
    # stated errors: sqrt(128) bins' for the sum, and 256 single bins are better flat
    assert by_tree[0][1] < 0.5 * np.sqrt(128 / 20_000) / np.tanh(0.5)


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize(("epsilon0", "bins"), [(1.0, 64), (5.0, 20), (0.3, 10)])
def test_intervals_cover_the_quantiles(epsilon0, bins, level):
    """Three quantiles, 80 runs each: coverage below the level by 5 sigma of the binomial, 1 in 3e6 each."""
    values, wanted, repeats = gamma_values(), np.array([0.1, 0.5, 0.9]), 80
    grid, tree = Bins(0.0, 10.0, bins), RangeTree(bins)
    codes = grid.codes(values)
    true = np.quantile(values, wanted, method="inverted_cdf")
    hits = np.zeros(3)
    for found in estimates(tree, codes, epsilon0, repeats):
        low, high = found.quantile_interval(wanted, grid.edges, level)
        hits += (low <= true) & (true <= high)
        assert (low < high).all()
    assert (hits / repeats > level - 5 * np.sqrt(level * (1 - level) / repeats)).all()


def test_quantiles_without_noise():
    """At epsilon0 = 700 only which level was drawn, and Hadamard's own sampling, are left."""
    values = np.linspace(0.0, 10.0, 200_001)
    release = ask(values, [0.25, 0.5, 0.9], 700.0, bins=100, random=simulation_random(2))
    assert release.estimate == pytest.approx([2.5, 5.0, 9.0], abs=0.15)
    low, high = release.confidence_interval(0.999)
    assert (low <= [2.5, 5.0, 9.0]).all()
    assert (high >= [2.5, 5.0, 9.0]).all()
    assert (high - low < 1.0).all()


def test_quantiles_by_hand():
    tree = RangeTree(4, 4)
    found = RangeEstimate((np.array([0.1, 0.5, -0.1, 0.5]),), (np.full(4, 1e-6),), 4, 1000, 0)
    edges = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    assert tree.depth == 1
    # below: 0, .1, .6, .5, 1; the closest rising curve has .55 at both edges in the middle
    assert found.quantiles([0.05, 0.1, 0.325, 0.775], edges) == pytest.approx([0.5, 1.0, 1.5, 3.5])
    low, high = found.quantile_interval([0.3, 0.55, 0.8], edges, 0.95)
    assert low.tolist() == [1.0, 1.0, 3.0]
    assert high.tolist() == [2.0, 4.0, 4.0]
    assert found.range(1, 2)[0] == pytest.approx(0.4)
    assert found.range(0, 3) == (pytest.approx(1.0), pytest.approx(0.0, abs=1e-9))


def test_few_reports_get_wide_intervals():
    few, many = (RangeEstimate((np.full(4, 0.25),), (np.full(4, 0.1),), 4, reports, 0) for reports in (99, 100))
    assert many.factor(0.95) == pytest.approx(1.95996, abs=1e-5)
    assert few.factor(0.95) == pytest.approx(np.sqrt(20))  # Chebyshev
    with pytest.raises(InvalidInput, match="confidence level must lie in"):
        few.factor(1.0)


@pytest.mark.costly
@settings(deadline=None, max_examples=12)
@given(
    st.integers(2, 70),
    st.integers(2, 9),
    st.lists(st.one_of(st.sampled_from([0.0, 700.0, 1e-12]), st.floats(0, 700)), min_size=1, max_size=5),
    st.sampled_from(["reports", "levels"]),
)
def test_any_shape_and_budget_gives_finite_consistent_answers(bins, branching, budgets, seen):
    """A few users over many levels: levels without reports, one user, budgets from 0 to 700."""
    budgets[0] = max(budgets[0], 1e-6)
    values = np.linspace(0.0, 10.0, len(budgets))
    release = ask(values, [0.2, 0.5], budgets, bins=bins, branching=branching, seen=seen)
    found = release.distribution
    # Doubles add up to about 1e-15 of what they are made of. A budget of 1e-12 makes noise of 1e12, of which the rest
    # may cancel: budgets of 436.18183405759737 and 1e-12 once gave .50085 for .5, at a standard error of 1.3e12.
    for coarse, fine in zip(found.fractions[:-1], found.fractions[1:], strict=True):
        sums = np.add.reduceat(fine, np.arange(0, fine.size, branching))
        room = 1e-6 * (1 + np.abs(fine).max()) + 1e-14 * found.below_error.max()
        assert sums == pytest.approx(coarse, rel=1e-6, abs=room)
    assert np.isfinite(found.below).all()
    assert np.isfinite(found.below_error).all()
    low, high = release.confidence_interval(0.9)
    assert ((low >= 0.0) & (low < high) & (high <= 10.0)).all()
    assert ((release.estimate >= 0.0) & (release.estimate <= 10.0)).all()


def test_release_carries_its_guarantee():
    values, epsilons = gamma_values(1000), np.repeat([0.0, 0.5, 1.0], (100, 500, 400))
    for seen in ("reports", "levels"):
        release = ask(pl.Series(values), [0.5], epsilons, seen=seen)
        assert release.private
        assert release.n == 1000
        assert release.guarantee.setting.randomizer_name == "tree:20:4" == release.mechanism
        assert release.guarantee.epsilon.upper <= 1.0
        assert release.weights == ("population" if seen == "levels" else None)
        assert release.distribution.uninformative == 100
    assert not ask(values, random=simulation_random(1)).private


class Untouchable(list):
    def __getitem__(self, _):
        raise AssertionError("a record was read")

    def __iter__(self):
        raise AssertionError("a record was read")


class RefusedError(Exception):
    pass


def test_the_guarantee_comes_before_the_records(monkeypatch):
    def refuse(setting, delta, **_):
        assert (setting.budgets.n, delta) == (2, 1e-6)
        raise RefusedError

    monkeypatch.setattr("shuffledp.releases.run.certify", refuse)
    with pytest.raises(RefusedError):
        ask(Untouchable([1.0, 2.0]))
    with pytest.raises(RefusedError):
        estimate_histogram(Untouchable([1.0, 2.0]), 0, 1, 4, 1.0, mechanism="krr", seen="reports", delta=1e-6)


@pytest.mark.costly("options5-whole number of bins from 2 to 4,194,304")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"probabilities": 0.0}, r"numbers in \(0, 1\); got 0.0"),
        ({"probabilities": [0.5, 1.0]}, r"numbers in \(0, 1\)"),
        ({"probabilities": []}, r"numbers in \(0, 1\)"),
        ({"probabilities": "half"}, r"numbers in \(0, 1\); got 'half'"),
        ({"bins": 1}, "bins must be a whole number, such as 20, from 2"),
        ({"bins": 2**22 + 1}, "whole number of bins from 2 to 4,194,304"),
        ({"branching": 1}, "whole branching from 2"),
        ({"values": [1.0, 11.0]}, "row 2 is outside"),
        ({"values": [1.0, float("nan")]}, "row 2 is missing"),
        ({"values": []}, "no records"),
        ({"seen": "sum"}, "seen must be one of reports, levels"),
        ({"epsilon0": 0.0}, "every epsilon0 is 0"),
        ({"epsilon0": [1.0]}, "2 records need 2 budgets"),
        ({"weights": "equal"}, "weights must be one of"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(InvalidInput, match=message):
        ask(**{"values": [1.0, 2.0], **options})


def test_bad_ranges():
    tree = RangeTree(10)
    (found,) = estimates(tree, [1, 2], np.ones(2), 1)
    for first, last in ((-1, 2), (3, 2), (0, 10)):
        with pytest.raises(InvalidInput, match="0 <= first <= last < 10"):
            found.range(first, last)


def test_bins_hold_their_lower_edge_and_the_last_one_both():
    grid = Bins(0.0, 1.0, 10)
    assert grid.codes(grid.edges).tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9]
    assert grid.codes(np.nextafter(grid.edges[1:-1], 0.0)).tolist() == list(range(9))
    with pytest.raises(InvalidInput, match="too narrow for double precision"):
        Bins(1.0, 1.0 + 2.0**-50, 100)
    with pytest.raises(InvalidInput, match="low < high"):
        Bins(1.0, 1.0, 4)


@pytest.mark.parametrize("mechanism", ["krr", "sue", "oue", "olh", "hadamard", "subset"])
def test_histogram_of_every_mechanism(mechanism):
    """z of every bin has 5.5 sigma: false alarm 1e-6 in all."""
    values = gamma_values(6000)
    release = estimate_histogram(
        values, 0.0, 10.0, 8, 2.0, mechanism=mechanism, seen="levels", delta=1e-6, random=simulation_random(7)
    )
    counts, edges = np.histogram(values, 8, (0.0, 10.0))
    assert release.categories == tuple(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    assert (np.abs(release.estimate - counts / 6000) < 5.5 * release.standard_error).all()
    assert release.guarantee.epsilon.upper < 2.0


def test_histogram_clips_only_when_told():
    options = {"mechanism": "krr", "seen": "reports", "delta": 1e-6}
    with pytest.raises(InvalidInput, match=r"row 2 is outside"):
        estimate_histogram([1.0, 11.0], 0, 10, 5, 700.0, **options)
    assert estimate_histogram([1.0, 11.0], 0, 10, 5, 700.0, clip=True, **options).estimate == pytest.approx(
        [0.5, 0, 0, 0, 0.5], abs=1e-9
    )
    with pytest.raises(InvalidInput, match="mechanism must be one of"):
        estimate_histogram([1.0], 0, 10, 5, 1.0, mechanism="tree", seen="reports", delta=1e-6)
