"""From records to a release: randomize, shuffle, analyze."""

from __future__ import annotations

from shuffledp.protocol.estimate import Estimate
from shuffledp.protocol.frequencies import frequency
from shuffledp.protocol.means import mean
from shuffledp.protocol.pipeline import estimate_frequency, estimate_mean
from shuffledp.protocol.release import Release
from shuffledp.protocol.shuffler import ShuffledReports, shuffle_reports

__all__ = [
    "Estimate",
    "Release",
    "ShuffledReports",
    "estimate_frequency",
    "estimate_mean",
    "frequency",
    "mean",
    "shuffle_reports",
]
