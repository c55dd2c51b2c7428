"""E |value/c - x/bound|^2 of one report of a vector, c its slope: 1/c^2 less |x/bound|^2; infinite where c = 0."""

from __future__ import annotations

import math
from typing import Any

from shuffledp.randomizers.sketch import SignedSketch


def predicted_error(family: Any, epsilon0: float) -> float:
    slope = float(family.report_slope(epsilon0))
    if slope == 0.0:
        return math.inf
    if isinstance(family, SignedSketch):  # other coordinates share the bucket by chance, the own one is in it
        d, g = family.dimension, family.buckets
        return ((d - slope) / g + slope) / slope**2 - 1.0
    return slope**-2 - (family.dimension if family.norm == "linf" else 1.0)
