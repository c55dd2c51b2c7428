"""Local randomizers and accounting for Flower apps; needs the extra shuffledp[flower]. See docs/flower.md."""

from shuffledp.flower.mod import LocalRandomizer
from shuffledp.flower.report import FederatedReport, LevelReport
from shuffledp.flower.strategy import ShuffledStrategy
from shuffledp.flower.terms import Terms

__all__ = ["FederatedReport", "LevelReport", "LocalRandomizer", "ShuffledStrategy", "Terms"]
