"""The law of a report in exact quotients, written down from its definition."""

from __future__ import annotations

from fractions import Fraction

from shuffledp.collection.draw import WHOLE, Family


def exact_law(family: Family, keep: int, record: int) -> tuple[Fraction, ...]:
    """Return P(report | answer) for every report, as exact quotients.

    Parameters
    ----------
    family : Family
        The randomizer.
    keep : int
        K, in [0, 2^64).
    record : int
        The answer, 0..records-1.
    """
    own = Fraction(keep, WHOLE)
    blanket = (1 - own) / family.reports
    shares = _own_shares(family, record)
    return tuple(blanket + own * shares.get(report, Fraction(0)) for report in range(family.reports))


def _own_shares(family: Family, record: int) -> dict[int, Fraction]:
    """Chances of the reports of A_x, given that the report is one of them."""
    if family.kind in ("one-bit", "bits"):
        scaled = Fraction(record * (family.reports - 1), family.records - 1)
        up = scaled - int(scaled)
        return {int(scaled): 1 - up} | ({int(scaled) + 1: up} if up else {})
    if family.kind == "hadamard":
        columns = range(family.reports // 2)
        share = Fraction(1, len(columns))
        return {2 * j + ((j & (record + 1)).bit_count() & 1): share for j in columns}
    return {record: Fraction(1)}
