"""Arrays whose entries NumPy would turn into other records are refused."""

from __future__ import annotations

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.errors import InvalidInput

ASKED = {"delta": 1e-6, "seen": "reports"}


@pytest.mark.parametrize("dtype", ["datetime64[s]", "timedelta64[s]", "complex128", "f8,f8"])
def test_types_that_only_look_like_numbers(dtype):
    """Dates counted as seconds since 1970, and complex numbers lost their imaginary part."""
    with pytest.raises(InvalidInput, match=r"^value must be numbers; got an array of "):
        sdp.estimate_mean(np.zeros(100, dtype=dtype), 0.0, 10.0, 1.0, **ASKED)
    if dtype != "f8,f8":
        with pytest.raises(InvalidInput, match=r"must be numbers; got an array of "):
            sdp.estimate_vector_mean(np.zeros((100, 2), dtype=dtype), 1.0, norm=1.0, kind="linf", **ASKED)


def test_masked_entries():
    """A masked array lost its mask, so what it hides was counted as if somebody had said it."""
    hidden = np.ma.array([3.0, 4.0] * 50, mask=[False, True] * 50)
    line = r" has masked entries; fill them first, with NaN or None where one is missing$"
    with pytest.raises(InvalidInput, match=f"^age{line}"):
        sdp.mean_of_table({"age": hidden}, "age", 0.0, 10.0, 1.0, **ASKED)
    with pytest.raises(InvalidInput, match=f"^epsilon0{line}"):
        sdp.estimate_mean(np.ones(100), 0.0, 10.0, hidden, **ASKED)
    filled = {"age": hidden.filled(np.nan)}
    assert sdp.mean_of_table(filled, "age", 0.0, 10.0, 1.0, missing_as=5.0, **ASKED).n == 100
    assert sdp.mean_of_table({"age": np.ma.array([3.0] * 100)}, "age", 0.0, 10.0, 1.0, **ASKED).n == 100


@pytest.mark.parametrize("column", ["vote", "person"])
def test_half_a_character(column):
    data = {"vote": ["yes", "no"] * 50, "person": [*map(str, range(100))]} | {column: ["yes", "\ud800"] * 50}
    with pytest.raises(InvalidInput, match=r"^an entry holds half a character \(a surrogate\), so it is not text; "):
        sdp.frequency_of_table(data, "vote", ["yes", "no"], 1.0, person="person", rows_per_person=50, **ASKED)


@pytest.mark.parametrize(("entry", "kind"), [(b"yes", "bytes"), ({1}, "set"), (np.ones(2), "ndarray")])
def test_what_is_no_word(entry, kind):
    with pytest.raises(InvalidInput, match=f"^an entry is not a word but of type {kind}; give one word per row$"):
        sdp.frequency_of_table(
            {"vote": ["yes"] * 100, "person": [entry] * 100}, "vote", ["yes", "no"], 1.0, person="person", **ASKED
        )
