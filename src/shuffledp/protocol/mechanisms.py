"""Which family answers a question by which name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from shuffledp.errors import InvalidInput, shown
from shuffledp.randomizers.base import FrequencyOracle
from shuffledp.randomizers.categorical import RandomizedResponse
from shuffledp.randomizers.hadamard import HadamardResponse
from shuffledp.randomizers.hashing import LocalHashing
from shuffledp.randomizers.subset import SubsetSelection
from shuffledp.randomizers.unary import UnaryEncoding

FREQUENCY_MECHANISMS: Mapping[str, Callable[[int], FrequencyOracle]] = MappingProxyType(
    {
        "krr": RandomizedResponse,
        "rr": RandomizedResponse,
        "sue": partial(UnaryEncoding, optimized=False),
        "oue": UnaryEncoding,
        "olh": LocalHashing,
        "hadamard": HadamardResponse,
        "subset": SubsetSelection,
    }
)
"""Families over k categories, by the names that `estimate_frequency` and the command line use."""


def frequency_oracle(mechanism: str, k: int) -> FrequencyOracle:
    """Return the family of that name over k categories.

    Parameters
    ----------
    mechanism : str
        A key of `FREQUENCY_MECHANISMS`.
    k : int
        Number of categories, at least 2.

    Raises
    ------
    InvalidInput
        If there is no such family, or "rr" is asked for more than two categories.

    Examples
    --------
    >>> frequency_oracle("olh", 100).name
    'olh:100'
    """
    if mechanism not in FREQUENCY_MECHANISMS:
        raise InvalidInput(f"mechanism must be one of {', '.join(FREQUENCY_MECHANISMS)}; got {shown(mechanism)}")
    if mechanism == "rr" and k != 2:
        raise InvalidInput(f"mechanism 'rr' needs exactly two categories; got {k}; use 'krr'")
    return FREQUENCY_MECHANISMS[mechanism](k)
