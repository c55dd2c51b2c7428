"""Which tiers of very many are asked what they cost, so that the worst is among them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from shuffledp.learning.guarantee import Tier


def tiers_to_ask(
    tiers: Sequence[Tier], rounds: Iterable[tuple[int, ...]], *, most: int, hidden: int
) -> NDArray[np.int64]:
    """Return the tiers that sent something; of more than ``most`` an even choice, with all that may be the worst.

    Whoever hides among others of one tier is asked, if there are at most ``hidden`` such tiers; beyond, nobody is
    taken to hide. All others who took part in the same rounds cost the more the larger their ratio, where their own
    noise protects them, and their sensitivity, where the noise of a sum does: those whom nobody exceeds in both are
    asked.

    Parameters
    ----------
    tiers : sequence of Tier
        All of them.
    rounds : iterable of tuple of int
        Messages per tier of every kind of round.
    most : int
        How many tiers make an even choice worth it.
    hidden : int
        How many tiers with several messages in a round are asked for amplification.

    Returns
    -------
    ndarray of int64, shape (asked,)
        Positions in ``tiers``, ascending.

    Examples
    --------
    >>> tiers = [Tier(e, 0.0, e, 1.0) for e in (0.5, 1.0, 2.0)]
    >>> tiers_to_ask(tiers, [(1, 1, 50)], most=1, hidden=32).tolist()
    [0, 1, 2]
    """
    counts = np.array(list(rounds), dtype=np.int64).reshape(-1, len(tiers))
    there = np.flatnonzero(counts.any(axis=0))
    if there.size <= most:
        return there
    ratio, moved = np.array([tier.ratio for tier in tiers]), np.array([tier.sensitivity for tier in tiers])
    even = there[np.argsort(ratio[there], kind="stable")][
        np.unique(np.linspace(0, there.size - 1, most).astype(np.int64))
    ]
    crowds = there[(counts[:, there] > 1).any(axis=0)]
    if crowds.size > hidden:
        crowds = crowds[:0]
    alone = np.setdiff1d(there, crowds)
    if alone.size == 0:
        return np.union1d(even, crowds)
    _, pattern = np.unique(counts[:, alone] > 0, axis=1, return_inverse=True)
    pattern, front, largest = pattern.ravel(), list[int](), dict[int, float]()
    for at in np.lexsort((-moved[alone], -ratio[alone], pattern)).tolist():
        kind, tier = int(pattern[at]), int(alone[at])
        if kind not in largest or moved[tier] > largest[kind]:
            largest[kind] = float(moved[tier])
            front.append(tier)
    return np.unique(np.concatenate((even, crowds, np.array(front, dtype=np.int64))))
