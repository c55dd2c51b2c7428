"""Every published bound, in the order in which they are shown."""

from __future__ import annotations

from shuffledp.accounting.bound import AmplificationBound
from shuffledp.accounting.published.base import Clones2022Bound, ClonesClosedBound, GspaBound, RdpGaussianBound
from shuffledp.accounting.published.blanket import BennettBound, HoeffdingBound
from shuffledp.accounting.published.closed import ErlingssonBound, Fmt22ClosedBound, Fmt23ClosedBound
from shuffledp.accounting.published.personal import LiuBound
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
