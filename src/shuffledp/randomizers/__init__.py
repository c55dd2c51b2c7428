"""Families of local randomizers: what each user's report says, and how it is drawn."""

from __future__ import annotations

from shuffledp.randomizers.base import LocalRandomizer, NoiseLaw, PairBlanket, RandomizerLaw
from shuffledp.randomizers.categorical import RandomizedResponse
from shuffledp.randomizers.channel import Channel
from shuffledp.randomizers.hadamard import HadamardResponse
from shuffledp.randomizers.hashing import LeveledHashing, LocalHashing
from shuffledp.randomizers.memoised import Memoised
from shuffledp.randomizers.noise import Gaussian, Laplace
from shuffledp.randomizers.numeric import Hybrid, OneBit, Piecewise
from shuffledp.randomizers.sketch import CoordinateSampling, SignedSketch
from shuffledp.randomizers.subset import SubsetSelection
from shuffledp.randomizers.tree import RangeTree
from shuffledp.randomizers.unary import UnaryEncoding
from shuffledp.randomizers.vector import DirectionCodebook

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
