"""Families of local randomizers: what each user's report says, and how it is drawn."""

from __future__ import annotations

from shuffledp.randomizers.base import LocalRandomizer, NoiseLaw, PairBlanket, RandomizerLaw
from shuffledp.randomizers.categorical import RandomizedResponse
from shuffledp.randomizers.channel import Channel
from shuffledp.randomizers.hadamard import HadamardResponse
from shuffledp.randomizers.hashing import LocalHashing
from shuffledp.randomizers.noise import Gaussian, Laplace
from shuffledp.randomizers.numeric import OneBit
from shuffledp.randomizers.subset import SubsetSelection
from shuffledp.randomizers.unary import UnaryEncoding

__all__ = [
    "Channel",
    "Gaussian",
    "HadamardResponse",
    "Laplace",
    "LocalHashing",
    "LocalRandomizer",
    "NoiseLaw",
    "OneBit",
    "PairBlanket",
    "RandomizedResponse",
    "RandomizerLaw",
    "SubsetSelection",
    "UnaryEncoding",
]
