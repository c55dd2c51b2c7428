"""Every published bound, in the order in which they are shown."""

from __future__ import annotations

from shuffledp.accounting.bound import AmplificationBound
from shuffledp.accounting.published.blanket import BennettBound, HoeffdingBound
from shuffledp.accounting.published.closed import (
    Clones2022Bound,
    ClonesClosedBound,
    ErlingssonBound,
    Fmt22ClosedBound,
    Fmt23ClosedBound,
    GspaBound,
    LiuBound,
    RdpGaussianBound,
)
from shuffledp.accounting.published.renyi import GirgisBound, GirgisLowerBound, RdpRenyiBound

PUBLISHED: tuple[AmplificationBound, ...] = (
    GspaBound(),
    RdpGaussianBound(),
    RdpRenyiBound(),
    Clones2022Bound(),
    Fmt22ClosedBound(),
    Fmt23ClosedBound(),
    ErlingssonBound(),
    HoeffdingBound(),
    BennettBound(),
    GirgisBound(),
    GirgisLowerBound(),
    LiuBound(),
    ClonesClosedBound(),
)
"""Formulas as published, the two papers' own first; only `clones-2022` enters the certified interval."""
