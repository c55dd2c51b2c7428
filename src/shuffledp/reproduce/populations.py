"""The papers' populations of budgets (GSPA, Table 2)."""

from __future__ import annotations

import numpy as np

from shuffledp.budgets import Budgets
from shuffledp.numerics.interval import FloatArray

DRAWN = 1000
"""Budgets drawn at random; a larger population repeats them, so that it has the same levels."""

SEED = 2312  # of the draws; the papers give none

NAMES = {
    "unif-1": "Unif 1: U(0.01, 1)",
    "unif-2": "Unif 2: U(0.01, 2)",
    "constant": "Constant: 0.5",
    "mixed": "Mixed: half 0.5, half 0.01",
    "unif-3": "Unif 3: U(0.5, 1)",
}

_RANGES = {"unif-1": (0.01, 1.0), "unif-2": (0.01, 2.0), "unif-3": (0.5, 1.0)}


def epsilons(name: str, n: int) -> FloatArray:
    """Local budgets of n users.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    n : int
        Users; beyond 1,000 a multiple of 1,000.

    Returns
    -------
    ndarray, shape (n,)
        nats.
    """
    if name == "constant":
        return np.full(n, 0.5)
    if name == "mixed":
        return np.where(np.arange(n) % 2 == 0, 0.5, 0.01)
    low, high = _RANGES[name]
    first = np.random.default_rng(SEED).uniform(low, high, DRAWN)
    return np.resize(first, n)


def budgets(name: str, n: int) -> Budgets:
    """The same, counted by level."""
    return Budgets.of(epsilons(name, n))
