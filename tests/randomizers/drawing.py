"""The frequency oracles as they are drawn, for the tests: by name, and every report's chance."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np

from shuffledp.numerics.randomness import Randomness
from shuffledp.randomizers import (
    HadamardResponse,
    LocalHashing,
    RandomizedResponse,
    SubsetSelection,
    UnaryEncoding,
)
from tests.randomizers import laws

FALSE_ALARM = 1e-6
"""Of each statistical test, over fresh seeds; all are seeded."""

SMALL = {
    "krr": RandomizedResponse(5),
    "sue": UnaryEncoding(4, optimized=False),
    "oue": UnaryEncoding(4),
    "olh-2": LocalHashing(4, 2),
    "olh-4": LocalHashing(3, 4),
    "hadamard": HadamardResponse(3),
    "subset-bits": SubsetSelection(5, 2),
    "subset-list": SubsetSelection(16, 2),
}
"""Members whose reports can be listed."""

RUN = {
    "krr": RandomizedResponse(30),
    "sue": UnaryEncoding(30, optimized=False),
    "oue": UnaryEncoding(30),
    "olh": LocalHashing(30, 4),
    "olh-wide": LocalHashing(30, 512),
    "hadamard": HadamardResponse(30),
    "subset": SubsetSelection(30, 7),
    "subset-list": SubsetSelection(30, 3),
}
"""Members of a usual size."""


class Scripted(Randomness):
    """Words given in advance, in turn."""

    private = False

    def __init__(self, *batches):
        self.batches = list(batches)

    def words(self, n):
        batch = np.asarray(self.batches.pop(0), dtype=np.uint64)
        assert batch.shape == (n,)
        return batch.copy()


def report_law(name: str, record: int, epsilon0: float) -> dict[object, float]:
    """The chance of every report of a member of SMALL, keyed as `report_keys` does, from the definitions."""
    family, E = SMALL[name], Fraction(math.exp(epsilon0))
    if name == "krr":
        rest = E + family.k - 1
        return {y: float((E if y == record else 1) / rest) for y in range(family.k)}
    if name in ("sue", "oue"):
        root = Fraction(math.exp(epsilon0 / 2))
        p, q = (root / (root + 1), 1 / (root + 1)) if name == "sue" else (Fraction(1, 2), 1 / (E + 1))
        table = laws.unary_table(family.k, p, q)
        return dict(zip(itertools.product((0, 1), repeat=family.k), map(float, table[record]), strict=True))
    if name == "hadamard":
        return dict(enumerate(map(float, laws.hadamard_table(family.k, family.order, E)[record])))
    if name.startswith("subset"):
        table = laws.subset_table(family.k, family.size, E)
        subsets = itertools.combinations(range(family.k), family.size)
        return dict(zip(subsets, map(float, table[record]), strict=True))
    r, u = family.g.bit_length() - 1, (family.k - 1).bit_length()
    weights = {word: E if affine_supports(word, record, r, u) else Fraction(1) for word in range(2 ** (r * (u + 1)))}
    total = sum(weights.values())
    return {word: float(weight / total) for word, weight in weights.items()}


def affine_supports(word: int, record: int, r: int, u: int) -> bool:
    """Whether A x = c, bit by bit."""
    for row in range(r):
        bits = [(word >> (row * (u + 1) + place)) & 1 for place in range(u + 1)]
        if sum(bit * ((record >> place) & 1) for place, bit in enumerate(bits[:u])) % 2 != bits[u]:
            return False
    return True


def report_keys(name: str, reports: np.ndarray) -> list[object]:
    """Reports as keys of `report_law`."""
    family = SMALL[name]
    if name in ("sue", "oue"):
        return [tuple(row) for row in np.unpackbits(reports, axis=1, count=family.k, bitorder="little").tolist()]
    if name == "subset-bits":
        rows = np.unpackbits(reports, axis=1, count=family.k, bitorder="little")
        return [tuple(np.flatnonzero(row).tolist()) for row in rows]
    if name == "subset-list":
        return [tuple(row) for row in reports.tolist()]
    return reports.tolist()
