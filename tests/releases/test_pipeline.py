from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import secure_random, simulation_random
from shuffledp.releases.wrappers import estimate_frequency, estimate_mean

NAN = float("nan")


def count(records, categories=("a", "b"), epsilon0=700.0, **options):
    return estimate_frequency(records, categories, epsilon0, **{"seen": "reports", "delta": 1e-6, **options})


def average(values, low=0.0, high=10.0, epsilon0=700.0, **options):
    return estimate_mean(values, low, high, epsilon0, **{"seen": "reports", "delta": 1e-6, **options})


@pytest.mark.parametrize(
    "records",
    [
        ["b", "a", "b", "b"],
        ("b", "a", "b", "b"),
        np.array(["b", "a", "b", "b"]),
        np.array(["b", "a", "b", "b"], dtype=object),
        pl.Series(["b", "a", "b", "b"]),
        pl.Series(["b", "a", "b", "b"], dtype=pl.Categorical),
    ],
)
def test_labels_of_every_shape(records):
    release = count(records)
    assert release.estimate == pytest.approx([0.25, 0.75], abs=1e-9)
    assert release.categories == ("a", "b")


@pytest.mark.parametrize(
    ("records", "categories"),
    [
        (np.array([5, 3, 5, 5]), [3, 5]),
        (np.array([5.0, 3.0, 5.0, 5.0]), [3, 5]),
        (np.array([5, 3, 5, 5], dtype=np.uint8), np.array([3, 5])),
        ([5, 3, 5, 5], [3, 5.0]),
        (pl.Series([True, False, True, True]), [False, True]),
        (np.array([2**60 + 1, 2**60, 2**60 + 1, 2**60 + 1]), [2**60, 2**60 + 1]),
        ([("x", 1), None.__class__, ("x", 1), ("x", 1)], [type(None), ("x", 1)]),
    ],
)
def test_labels_of_every_kind(records, categories):
    assert count(records, categories).estimate == pytest.approx([0.25, 0.75], abs=1e-9)


@pytest.mark.parametrize(
    ("records", "categories", "message"),
    [
        (["a", "c"], ["a", "b"], r"row 2 is none of the categories \('a', 'b'\)"),
        (["a", None], ["a", "b"], "row 2 is missing"),
        (np.array([1.0, NAN]), [1, 2], "row 2 is missing"),
        (np.array([1, 3]), [1, 2], "row 2 is none of the categories"),
        (np.array([1, 2]), ["1", "2"], r"row 1 is none of the categories \('1', '2'\)"),
        (["5"], ["5", 5.0], "the categories '5' and 5.0 are one word, written in two ways; name each category once"),
        ([["a"], "b"], ["a", "b"], "not a label but a container"),
        (["a"], ["a"], "at least two categories; got 1"),
        (["a"], ["a", "b", "a"], "category 'a' is given twice"),
        (["a"], ["a", None], "category cannot be missing"),
        (["a"], ["a", NAN], "category cannot be missing"),
        (["a"], "ab", "list of labels, not the text 'ab'"),
        ([], ["a", "b"], "no records"),
        (iter("ab"), ["a", "b"], "must be a sequence or an array"),
    ],
)
def test_bad_labels(records, categories, message):
    with pytest.raises(InvalidInput, match=message):
        count(records, categories)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon0": [1.0]}, "2 records need 2 budgets"),
        ({"epsilon0": [1.0, -1.0]}, "epsilon0 (in row 2 is|must be) "),
        ({"epsilon0": [1.0, NAN]}, "epsilon0 (in row 2 is|must be) "),
        ({"epsilon0": [1.0, "high"]}, "epsilon0 in row"),
        ({"epsilon0": -0.5}, "epsilon0 (in row 2 is|must be) "),
        ({"epsilon0": 0.0}, "every epsilon0 is 0"),
        ({"epsilon0": [0.0, 0.0]}, "every epsilon0 is 0"),
        ({"seen": "users"}, "seen must be one of"),
        ({"mechanism": "tally"}, "mechanism must be one of"),
        ({"weights": "equal"}, "weights must be one of"),
        ({"random": np.random.default_rng(0)}, "random must come from secure_random"),
    ],
)
@pytest.mark.parametrize("question", ["frequency", "mean"])
def test_bad_options(question, options, message):
    with pytest.raises(InvalidInput, match=message):
        count(["a", "b"], **options) if question == "frequency" else average([1.0, 2.0], **options)


def test_sum_is_for_the_mean():
    with pytest.raises(InvalidInput, match="seen must be one of reports, levels; got 'sum'"):
        count(["a", "b"], seen="sum")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, 11.0], r"row 2 is outside \[0.0, 10.0\]; say `clip`"),
        ([1.0, float("-inf")], "row 2 is outside"),
        ([1.0, NAN], "row 2 is missing"),
        ([1.0, None], "row 2 is missing"),
        (pl.Series([1, None]), "row 2 is missing"),
        (["1", "tall"], "value in row 2 is not a number"),
        ([[1.0, 2.0]], "one-dimensional"),
        ([[1.0], [2.0, 3.0]], "one entry per user"),
        ([], "no records"),
    ],
)
def test_bad_values(values, message):
    with pytest.raises(InvalidInput, match=message):
        average(values)


def test_clip_moves_values_to_the_ends_but_never_invents_one():
    assert average([-5.0, 15.0, float("inf"), 0.0], clip=True).estimate == pytest.approx(5.0)
    with pytest.raises(InvalidInput, match="missing"):
        average([NAN], clip=True)


def test_bad_range():
    with pytest.raises(InvalidInput, match="low < high"):
        average([1.0], low=2.0, high=2.0)


def test_rr_is_for_two():
    assert count(["a", "b"], mechanism="rr").mechanism == "rr"
    assert count(["a", "b"], ["a", "b", "c"]).mechanism == "krr:3"
    with pytest.raises(InvalidInput, match="exactly two categories; got 3"):
        count(["a", "b"], ["a", "b", "c"], mechanism="rr")


class Untouchable(list):
    """Has a length, and nobody may look further."""

    def __getitem__(self, _):
        raise AssertionError("a record was read")

    def __iter__(self):
        raise AssertionError("a record was read")


class RefusedError(Exception):
    pass


def test_the_guarantee_comes_before_the_records(monkeypatch):
    def refuse(setting, delta, **_):
        assert setting.budgets.n == 2
        assert delta == 1e-6
        raise RefusedError

    monkeypatch.setattr("shuffledp.releases.run.certify", refuse)
    with pytest.raises(RefusedError):
        count(Untouchable(["a", "b"]))
    with pytest.raises(RefusedError):
        average(Untouchable([1.0, 2.0]))


def test_secure_unless_told_otherwise():
    records = ["a", "b"] * 500
    assert count(records, epsilon0=1.0).private
    assert count(records, epsilon0=1.0, random=secure_random()).private
    first, second = (count(records, epsilon0=1.0, random=simulation_random(4)) for _ in range(2))
    assert not first.private
    assert np.array_equal(first.estimate, second.estimate)
    names = [f"c{i}" for i in range(50)]  # two collections of 2 categories agree in one of fifty cases
    one, other = (count(names * 20, names, epsilon0=1.0).estimate for _ in range(2))
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("seen", ["reports", "levels"])
def test_one_user_is_enough(seen):
    release = average([4.0], epsilon0=1.0, seen=seen)
    low, high = release.confidence_interval(0.95)
    assert release.n == 1
    assert isinstance(release.estimate, float)
    assert isinstance(release.standard_error, float)
    assert 0.0 <= low <= np.clip(release.estimate, 0.0, 10.0) <= high <= 10.0
    assert release.standard_error > 0
    assert np.isfinite(count(["a"], epsilon0=1.0, seen=seen).estimate).all()


@pytest.mark.parametrize("seen", ["reports", "levels", "sum"])
def test_release_carries_its_guarantee(seen):
    epsilons = np.repeat([0.0, 0.5, 1.0], (100, 500, 400))
    release = average(np.linspace(0, 10, 1000), epsilon0=epsilons, seen=seen)
    assert release.guarantee.setting.seen == seen
    assert release.guarantee.setting.randomizer_name == "one-bit" == release.mechanism
    assert release.guarantee.delta == 1e-6
    assert release.guarantee.epsilon.upper <= 1.0
    assert release.uninformative == 100
    assert release.weights == ("population" if seen == "levels" else None)
    assert release.categories is None
    with pytest.raises(InvalidInput, match="confidence level"):
        release.confidence_interval(0)
