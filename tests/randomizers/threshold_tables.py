"""Every family's thresholds at 40 budgets, recomputed in fractions; `python -m tests.randomizers.threshold_tables`.

Nothing of the library's arithmetic is used: e^x is bounded by its series in whole numbers, and a double is the nearest
one to a fraction. The formulas are those of docs/theorems/randomizers.md, "As drawn", operation by operation.
"""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

import numpy as np

from shuffledp import DiscreteLaplace
from shuffledp.randomizers import (
    CoordinateSampling,
    DirectionCodebook,
    HadamardResponse,
    Hybrid,
    LeveledHashing,
    LocalHashing,
    Piecewise,
    RandomizedResponse,
    RangeTree,
    SignedSketch,
    SubsetSelection,
    UnaryEncoding,
)

TABLE = Path(__file__).with_name("thresholds.json")
BUDGETS = (0.0, 5e-324, 1e-300, 1e-17, 1e-9, 0.001, 0.01, 0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.5493061443340549, 0.7)
BUDGETS += (0.6931471805599453, 0.75, 1.0, 1.0986122886681098, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0)
BUDGETS += (8.0, 10.0, 12.0, 20.0, 30.0, 43.7, 44.5, 100.0, 700.0)
MIXTURES = {
    "rr": (RandomizedResponse(2), Fraction(1, 2)),
    "krr:5": (RandomizedResponse(5), Fraction(1, 5)),
    "krr:1000": (RandomizedResponse(1000), Fraction(1, 1000)),
    "hadamard:10": (HadamardResponse(10), Fraction(1, 2)),
    "olh:10:4": (LocalHashing(10, 4), Fraction(1, 4)),
    "olh:10:64": (LocalHashing(10, 64), Fraction(1, 64)),
    "leveled": (LeveledHashing(16, 3, 8), Fraction(1, 8)),
    "subset:10:3": (SubsetSelection(10, 3), Fraction(3, 10)),
    "tree:64:4": (RangeTree(64, 4), Fraction(1, 2)),
    "coordinates:7": (CoordinateSampling(7), Fraction(1, 2)),
    "directions:100:64:13": (DirectionCodebook(100, 64, 13), Fraction(13, 64)),
    "sketch:50:6": (SignedSketch(50, 6), Fraction(1, 12)),
}
"""Families with K from `keep_thresholds`, and the share f of the record's own reports."""
WINDOWS = {
    "piecewise:4096:1001": Piecewise(0, 1, 4096, 1001),
    "hybrid:4096:1400:9000000:800": Hybrid(0, 1, 4096, (1400, 9_000_000, 800)),
}
BITS = {"oue:10": UnaryEncoding(10), "sue:10": UnaryEncoding(10, optimized=False)}
LAWS = ((60, 1.5), (61, 1.1), (7, 3.0), (1, 1.0), (400, 1.01), (200, 1.0))
"""Discrete Laplace laws of ones: how many dummies, and the ratio."""
FIXED = 1600
"""Bits behind the point; e^700 has 1010 before it."""
MARGIN = Fraction(1, 2**46)
WHOLE = 2**64


def double(value: Fraction) -> Fraction:
    """The nearest double, which Python's quotient of whole numbers is."""
    return Fraction(value.numerator / value.denominator)


@lru_cache(maxsize=1 << 14)
def exp_bounds(x: Fraction) -> tuple[Fraction, Fraction]:
    """Bounds on e^x for x >= 0: its series at x/2^10 in whole numbers over 2^1600, squared ten times."""
    unit = 1 << FIXED
    small = x / 2**10
    least, term, place = unit, unit, 0
    while term:
        place += 1
        term = term * small.numerator // (small.denominator * place)
        least += term
    most = least + 2 * place + 2  # each term is short of itself by less than 2, and the rest by less than 2
    for _ in range(10):
        least, most = least * least >> FIXED, (most * most >> FIXED) + 1
    return Fraction(least, unit), Fraction(most, unit)


def nearest_exp(x: Fraction, less: int = 0) -> Fraction:
    """The double nearest to e^x less 0 or 1."""
    least, most = exp_bounds(abs(x))
    if x < 0:
        least, most = 1 / most, 1 / least
    low, high = double(least - less), double(most - less)
    if low != high and less and abs(x) < Fraction(1, 2**60):
        return x  # x + x^2/2 + ...: nearer to x than to the double after it
    assert low == high
    return low


@lru_cache(maxsize=1024)
def nearest_log(x: Fraction) -> Fraction:
    """The double nearest to log(x), x >= 1: between the two midpoints of which e^m encloses x."""
    if x == 1:
        return Fraction(0)
    low, high = Fraction(0), Fraction(x.numerator.bit_length())
    while double(low) != double(high):
        middle = (low + high) / 2
        middle = Fraction(middle.numerator * 2**200 // middle.denominator, 2**200)
        if exp_bounds(middle)[1] <= x:
            low = middle
        else:
            assert exp_bounds(middle)[0] >= x
            high = middle
    return double(low)


def threshold(epsilon0: Fraction, share: Fraction) -> int:
    """K of a mixture family; the share is a quotient of whole numbers."""
    odds = double(nearest_exp(epsilon0, 1) * double(share))
    blanket = double(1 / double(1 + odds))
    keep = double(odds * blanket)
    if keep > Fraction(1, 2):
        return WHOLE - 1 - int(double(blanket * (1 + MARGIN) * WHOLE))
    return int(double(keep * (1 - MARGIN) * WHOLE))


def flips(epsilon0: Fraction, optimized: bool) -> int:
    """Q of unary encoding."""
    odds = nearest_exp(-epsilon0 if optimized else -epsilon0 / 2)
    lifted = double(double(odds / double(1 + odds)) * (1 + MARGIN)) * WHOLE
    return max(min(-(-lifted.numerator // lifted.denominator), 2**63), 1)


def ones(count: int, ratio: float) -> list[int]:
    """Weights of 0, 1, ..., count ones over 2^64."""
    bend = double(1 / double(Fraction(10**6) + count**2))
    slope, middle = nearest_log(Fraction(ratio)), 2 if count % 2 else 1
    shape = [nearest_exp(double(double(-d * slope) - double(bend * d * d))) for d in range(count // 2 + 1)]
    for least in (double(8 / bend), Fraction(0)):
        scale = double(WHOLE / double(middle * shape[0] + 2 * double(sum(shape[1:], Fraction(0)))))
        scaled = [double(part * scale) for part in shape]
        shape = [part if part >= least else Fraction(0) for part in scaled]
    side = [int(part) for part in shape]
    rest = WHOLE - 2 * sum(side[1:])
    return [*side[:0:-1], *([rest] if middle == 1 else [rest // 2] * 2), *side[1:]]


def window_share(cells: int, window: int, share: int) -> Fraction:
    """omega(A_x) of piecewise and hybrid."""
    return Fraction(2 * share * window + (2**24 - share) * cells, 2**25 * cells)


SHARES = {
    "piecewise:4096:1001": window_share(4096, 1001, 2**24),
    "hybrid:4096:1400:9000000:800": window_share(4096, 1400, 9_000_000),
}


def recomputed() -> dict[str, list[str]]:
    """All tables, in decimal digits: a double would round them."""
    budgets = [Fraction(budget) for budget in BUDGETS]
    shares = {name: share for name, (_, share) in MIXTURES.items()} | SHARES
    tables = {name: [threshold(budget, share) for budget in budgets] for name, share in shares.items()}
    tables |= {name: [flips(budget, family.optimized) for budget in budgets] for name, family in BITS.items()}
    tables |= {DiscreteLaplace(*law).name: ones(*law) for law in LAWS}
    return {name: [str(whole) for whole in table] for name, table in tables.items()}


def of_the_library() -> dict[str, list[str]]:
    """The same tables as the library states them."""
    tables = {name: family.keep_thresholds(BUDGETS).tolist() for name, (family, _) in MIXTURES.items()}
    tables |= {name: family._plan(np.array(BUDGETS))[1].tolist() for name, family in WINDOWS.items()}
    tables |= {name: family.flip_thresholds(BUDGETS).tolist() for name, family in BITS.items()}
    tables |= {DiscreteLaplace(*law).name: list(DiscreteLaplace(*law).weights) for law in LAWS}
    return {name: [str(whole) for whole in table] for name, table in tables.items()}


if __name__ == "__main__":
    TABLE.write_text(json.dumps(recomputed(), indent=0) + "\n", encoding="utf-8")
    sys.exit(f"{TABLE} is written anew: every threshold in it is frozen, so say why it changed")
