"""One rule for `seen` on every door, and a TypeError in the name of the function that was called."""

from __future__ import annotations

import inspect

import pytest

import shuffledp as sdp
from shuffledp.errors import InvalidInput

NUMBERS, TABLE = [0.0, 9.0] * 50, {"x": [0.0, 9.0] * 50, "budget": [1.0, 2.0] * 50}
IN_MEMORY = {
    sdp.estimate_frequency: (NUMBERS, [0.0, 9.0]),
    sdp.estimate_mean: (NUMBERS, 0, 9),
    sdp.estimate_histogram: (NUMBERS, 0, 9, 3),
    sdp.estimate_quantiles: (NUMBERS, 0, 9, 0.5),
    sdp.estimate_variance: (NUMBERS, 0, 9),
    sdp.estimate_frequent_items: (["A", "B"] * 50,),
    sdp.estimate_vector_mean: ([[0.0], [1.0]] * 50,),
}
OF_TABLE = {
    sdp.frequency_of_table: ([0.0, 9.0],),
    sdp.mean_of_table: (0, 9),
    sdp.histogram_of_table: (0, 9, 3),
    sdp.quantiles_of_table: (0, 9, 0.5),
    sdp.variance_of_table: (0, 9),
    sdp.frequent_items_of_table: (),
    sdp.vector_mean_of_table: (9.0,),
}
NEEDED = {"bins": 4, "norm": 1.0}
BUDGETS = [1.0, 2.0] * 50


def calls():
    for function, own in IN_MEMORY.items():
        needed = {name: value for name, value in NEEDED.items() if name in inspect.signature(function).parameters}
        needed = {name: value for name, value in needed.items() if name != "bins" or len(own) == 4}
        yield function, (*own, 1.0), (*own, BUDGETS), needed if function is not sdp.estimate_histogram else {}
    for function, own in OF_TABLE.items():
        needed = {"bins": 4} if function is sdp.quantiles_of_table else {}
        yield function, (TABLE, "x", *own, 1.0), (TABLE, "x", *own, "budget"), needed


CALLS = [pytest.param(*call, id=call[0].__name__) for call in calls()]


@pytest.mark.costly("estimate_frequent_items", "frequent_items_of_table")
@pytest.mark.parametrize(("function", "one", "two", "more"), CALLS)
def test_seen_may_be_left_out_where_there_is_one_budget(function, one, two, more):
    assert function(*one, delta=1e-6, **more).n == 100
    with pytest.raises(InvalidInput, match=r"^there are 2 different budgets, so `seen` is needed; choose one of "):
        function(*two, delta=1e-6, **more)


@pytest.mark.parametrize(("function", "one", "two", "more"), CALLS)
def test_a_type_error_names_the_function_that_was_called(function, one, two, more):
    del two
    name = function.__name__
    with pytest.raises(TypeError, match=rf"^{name}\(\) got an unexpected keyword argument 'clipped'$"):
        function(*one, delta=1e-6, clipped=True, **more)
    with pytest.raises(TypeError, match=rf"^{name}\(\) missing 1 required keyword-only argument: 'delta'$"):
        function(*one, **more)


def test_classes_name_themselves():
    with pytest.raises(TypeError, match=r"^MeanEstimator\(\) got an unexpected keyword argument 'clipped'$"):
        sdp.MeanEstimator(0, 9, delta=1e-6, clipped=True)
    with pytest.raises(TypeError, match=r"^MeanEstimator\(\) missing a required argument: 'high'$"):
        sdp.MeanEstimator(0, delta=1e-6)


def test_columns_of_arrays_may_be_named_by_numbers():
    found = sdp.release(sdp.Mean(0, 9), {0: NUMBERS}, value=0, budgets=1.0, delta=1e-6)
    assert found.n == 100


OLD = {
    "epsilon0": lambda: sdp.mean_of_table(TABLE, "x", 0, 9, epsilon0=1.0, delta=1e-6),
    "probabilities": lambda: sdp.estimate_quantiles(NUMBERS, 0, 9, probabilities=0.5, budgets=1.0, bins=4, delta=1e-6),
    "bound": lambda: sdp.estimate_vector_mean([[0.0], [1.0]] * 50, 1.0, norm="linf", bound=2.0, delta=1e-6),
    "fit": lambda: sdp.MeanEstimator(0, 9, delta=1e-6).fit(NUMBERS, epsilon0=1.0).release_,
}


@pytest.mark.parametrize("name", OLD)
def test_a_keyword_of_0_2_0_works_with_a_warning(name):
    with pytest.warns(FutureWarning, match=r"\(\): the argument `\w+` is now `\w+`") as warned:
        assert OLD[name]().n == 100
    assert warned[0].filename == __file__


def test_old_names_that_changed_places_keep_their_meaning():
    with pytest.warns(FutureWarning, match="`norm` is now `kind`, `bound` is now `norm`"):
        found = sdp.estimate_vector_mean([[0.0], [1.0]] * 50, 1.0, norm="linf", bound=2.0, delta=1e-6)
    assert found.question == sdp.VectorMean(1, 2.0, "linf")
    with pytest.raises(TypeError, match=r"^mean_of_table\(\) got `budgets` twice: by this name and by the old one$"):
        sdp.mean_of_table(TABLE, "x", 0, 9, epsilon0=1.0, budgets=1.0, delta=1e-6)
