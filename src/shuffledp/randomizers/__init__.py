"""Families of local randomizers: what each user's report tells about the record, and how it is drawn.

A family's module is loaded when its name is first used, so that a command does not load the families it does not need.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shuffledp.randomizers.base import LocalRandomizer, NoiseLaw, PairBlanket, RandomizerLaw
    from shuffledp.randomizers.categorical import HadamardResponse, RandomizedResponse, UnaryEncoding
    from shuffledp.randomizers.channel import Channel
    from shuffledp.randomizers.hashing import LeveledHashing, LocalHashing
    from shuffledp.randomizers.linked import Memoised
    from shuffledp.randomizers.noise import Gaussian, Laplace
    from shuffledp.randomizers.numeric import Hybrid, OneBit, Piecewise
    from shuffledp.randomizers.sketch import CoordinateSampling, SignedSketch
    from shuffledp.randomizers.subset import SubsetSelection
    from shuffledp.randomizers.tree import RangeTree
    from shuffledp.randomizers.vector import DirectionCodebook

_HOMES = {
    "base": (
        "LocalRandomizer",
        "NoiseLaw",
        "PairBlanket",
        "RandomizerLaw",
    ),
    "categorical": ("HadamardResponse", "RandomizedResponse", "UnaryEncoding"),
    "channel": ("Channel",),
    "hashing": ("LeveledHashing", "LocalHashing"),
    "linked": ("Memoised",),
    "noise": (
        "Gaussian",
        "Laplace",
    ),
    "numeric": (
        "Hybrid",
        "OneBit",
        "Piecewise",
    ),
    "sketch": ("CoordinateSampling", "SignedSketch"),
    "subset": ("SubsetSelection",),
    "tree": ("RangeTree",),
    "vector": ("DirectionCodebook",),
}
"""Module in which each name is defined."""

__all__ = [
    "Channel",
    "CoordinateSampling",
    "DirectionCodebook",
    "Gaussian",
    "HadamardResponse",
    "Hybrid",
    "Laplace",
    "LeveledHashing",
    "LocalHashing",
    "LocalRandomizer",
    "Memoised",
    "NoiseLaw",
    "OneBit",
    "PairBlanket",
    "Piecewise",
    "RandomizedResponse",
    "RandomizerLaw",
    "RangeTree",
    "SignedSketch",
    "SubsetSelection",
    "UnaryEncoding",
]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"shuffledp.randomizers.{home}"), name)
    raise AttributeError(f"module 'shuffledp.randomizers' has no attribute {name!r}")
