"""Families of local randomizers: what each user's report says, and how it is drawn."""

from __future__ import annotations

from shuffledp.randomizers.base import LocalRandomizer, PairBlanket
from shuffledp.randomizers.categorical import RandomizedResponse
from shuffledp.randomizers.numeric import OneBit

__all__ = ["LocalRandomizer", "OneBit", "PairBlanket", "RandomizedResponse"]
