"""Outputs that the victim hardly ever gives but that would give everything away: charged, not transformed.

A bundle of hundreds of reports has outputs that are e^100 times as likely under one record as under the blanket, with
chances of 1e-40. The moment generating function of L lives on them alone and says nothing at any useful tilt. They may
be left out of L, which is then 0 there, and charged with the victim's own divergence (docs/theorems/blanket.md). Of a
lower end they may be left out for nothing: where L > 0, less of it makes E(sum L)_+ smaller.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from shuffledp.numerics.floats import round_down, round_up
from shuffledp.numerics.interval import Interval
from shuffledp.randomizers.base import CellSpread, PairBlanket

_CUTS = (1e-9, 1e-13, 1e-18)
"""Chances that may be charged."""
_WORTH = 1e3
"""A value so many times the cut is not made worse by it."""
_MANY, _FEW = 1e4, 1e8
"""Ratios beyond which outputs are worth leaving out: of laws on a lattice, and of laws taken as they are."""


def with_rare_cells_apart(pair: PairBlanket, epsilon: float, evaluated: Callable[[PairBlanket], Interval]) -> Interval:
    """Return the best ends of (I) with rare outputs left out, and as it is where that matters.

    Parameters
    ----------
    pair : PairBlanket
        A pair of inputs; of a continuous law (``loss_ulps`` of 0) the edges have been chosen already.
    epsilon : float
        Nats, at least 0.
    evaluated : callable
        (I) for a pair: upper ends of laws above L, lower ends of laws below it.
    """
    largest = float(pair.ratios0.max()) if pair.spread is None else float(pair.spread.ratio_high.max())
    if not pair.loss_ulps or largest <= (_FEW if pair.spread is None else _MANY):
        return evaluated(pair)
    lower, upper = 0.0, math.inf
    for cut in _CUTS:
        found = evaluated(without_rare(pair, epsilon, cut))
        lower, upper = max(lower, found.lower), min(upper, found.upper)
        if upper >= _WORTH * cut:
            break
    if pair.spread is None or upper < _WORTH * _CUTS[-1]:
        found = evaluated(pair)
        lower, upper = max(lower, found.lower), min(upper, found.upper)
    return Interval(min(lower, upper), upper)


def without_rare(pair: PairBlanket, epsilon: float, cut: float) -> PairBlanket:
    """Return the pair with the outputs of the largest ratios left out, of chance ``cut`` at most under the first input.

    Parameters
    ----------
    pair : PairBlanket
        Of rounded losses.
    epsilon : float
        Nats: only outputs of a larger loss are left out.
    cut : float
        In (0, 1).
    """
    spread = pair.spread
    if spread is None:
        ulps = pair.loss_ulps
        spread = CellSpread(
            *(round_down(pair.ratios0, 8), round_up(pair.ratios0, 8)),
            *(round_down(pair.losses, ulps), round_up(pair.losses, ulps)),
            *(np.zeros(0), np.zeros(0)),
        )
    chance = round_up(pair.masses * spread.ratio_high, 8)
    order = np.argsort(-spread.ratio_high, kind="stable")
    far = np.zeros(chance.size, dtype=bool)
    far[order] = np.cumsum(chance[order]) <= cut
    far &= spread.loss_low > epsilon
    if not far.any():
        return pair
    told = CellSpread(
        np.where(far, 0.0, spread.ratio_low),
        np.where(far, 0.0, spread.ratio_high),
        np.where(far, 0.0, spread.loss_low),
        np.where(far, 0.0, spread.loss_high),
        np.append(spread.left_out_mass, chance[far]),
        np.append(spread.left_out_loss, spread.loss_high[far]),
    )
    ratios0, ratios1, losses = (np.where(far, 0.0, part) for part in (pair.ratios0, pair.ratios1, pair.losses))
    return replace(pair, ratios0=ratios0, ratios1=ratios1, losses=losses, spread=told)
