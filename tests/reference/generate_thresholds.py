"""Write thresholds.json: K of every family at 40 budgets, from rational bounds on e^x alone (no library code).

    python tests/reference/generate_thresholds.py

K is the chance, over 2^64, of a report from the record's own part: 1 - gamma = f (e^x - 1)/(1 + f (e^x - 1)), f the
share of the reports that are its own. The smaller of gamma (up) and 1 - gamma (down) is rounded to 36 significant bits.
The bits of unary encoding are 1 with chance Q/2^64, Q = ceil((2^64 - K)/2) of binary randomized response.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

BUDGETS = [
    *(0.0, 5e-324, 1e-300, 1e-9, 0.001, 0.01, 0.1, 0.25, 0.3, 0.5, 0.6931471805599453, 0.7, 0.75, 0.9, 1.0),
    *(1.0986122886681098, 1.25, 1.3862943611198906, 1.5, 2.0, 2.25, 2.5, 3.0, 3.3, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0),
    *(10.0, 12.5, 16.0, 20.0, 30.0, 36.7368005696771, 44.0, 44.4, 100.0, 700.0),
]
SHARES = {
    "rr": (1, 2),
    "krr:3": (1, 3),
    "krr:10": (1, 10),
    "krr:1000": (1, 1000),
    "one-bit": (1, 2),
    "hadamard:10": (1, 2),
}
BITS, WHOLE = 36, 2**64


def power(x: Fraction, terms: int = 400) -> tuple[Fraction, Fraction]:
    """Bounds on e^x by the Taylor series at x / 2^h <= 1/2, squared h times in 700 binary places."""
    half, places = 0, 2200
    while x / 2**half > Fraction(1, 2):
        half += 1
    y, term, total = x / 2**half, Fraction(1), Fraction(0)
    low_y = Fraction(int(y * 2**places), 2**places)
    for j in range(1, terms):
        total += term
        term = Fraction(int(term * low_y / j * 2**places), 2**places)
    low, high = total, total + Fraction(terms + 2, 2 ** (places - 1)) + 2 * (y - low_y)
    for _ in range(half):
        low, high = low * low, high * high
        low = Fraction(int(low * 2**places), 2**places)
        high = Fraction(int(high * 2**places) + 1, 2**places)
    return low, high


def threshold(x: float, own: int, every: int) -> int:
    """Return K."""
    if x == 0.0:
        return 0
    found = {rounded(1 / (1 + Fraction(own, every) * (end - 1))) for end in power(Fraction(x))}
    assert len(found) == 1, (x, own, every)
    return found.pop()


def rounded(gamma: Fraction) -> int:
    """Return K of gamma."""
    mostly = gamma < Fraction(1, 2)
    scaled = (gamma if mostly else 1 - gamma) * WHOLE
    unit = 2 ** max(int(scaled).bit_length() - BITS, 0)
    return WHOLE - (int(scaled / unit) + 1) * unit if mostly else int(scaled / unit) * unit


def table() -> dict[str, list[str]]:
    """Return the table: whole numbers as text, since JSON's are doubles elsewhere."""
    found = {name: [str(threshold(x, *share)) for x in BUDGETS] for name, share in SHARES.items()}
    flips = {"oue:10": 1.0, "sue:10": 0.5}
    binary = {name: [threshold(x * scale, 1, 2) for x in BUDGETS] for name, scale in flips.items()}
    return found | {name: [str((WHOLE - k + 1) // 2) for k in ks] for name, ks in binary.items()}


if __name__ == "__main__":
    here = Path(__file__).with_name("thresholds.json")
    here.write_text(json.dumps({"budgets": BUDGETS, "thresholds": table()}, indent=1) + "\n", encoding="utf-8")
