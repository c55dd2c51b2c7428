"""Local randomizers and accounting for Flower apps; needs the extra shuffledp[flower]. See docs/flower.md."""

from shuffledp.flower.count import ClientReport
from shuffledp.flower.mod import LocalRandomizer
from shuffledp.flower.report import FederatedReport, LevelReport
from shuffledp.flower.strategy import ShuffledStrategy
from shuffledp.flower.terms import Terms

__all__ = ["ClientReport", "FederatedReport", "LevelReport", "LocalRandomizer", "ShuffledStrategy", "Terms"]
