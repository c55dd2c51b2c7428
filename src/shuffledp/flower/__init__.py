"""Local randomizers and accounting for Flower apps; needs the extra shuffledp[flower]. See docs/flower.md."""

from shuffledp.errors import naming_the_extra

with naming_the_extra("shuffledp.flower", "flwr"):
    from shuffledp.flower.mod import ClientReport, LocalRandomizer
    from shuffledp.flower.strategy import ShuffledStrategy
    from shuffledp.flower.terms import FederatedReport, LevelReport, Terms

__all__ = ["ClientReport", "FederatedReport", "LevelReport", "LocalRandomizer", "ShuffledStrategy", "Terms"]
