"""Write blanket.json: functionals (I), (Z) and (II) of stated randomizers, exactly, for hundreds to thousands of users.

`python tests/reference/generate_blanket.py tests/reference/blanket.json`, some minutes, python-flint only.

With e^epsilon0 and e^epsilon fractions, all values of L are multiples of one number: the law of a sum is a product of
polynomials; all coefficients are sums of positive terms, in Arb balls whose radii are checked. No tilt, no smoothing,
no blocks, no truncation.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import flint
from flint import arb, arb_poly, ctx

Cells = list[tuple[Fraction, Fraction]]
"""Chance and value."""

# omega-weights of the outputs in A_x0 only (as many in A_x1 only), in both, in neither
FAMILIES: dict[str, tuple[int, int, int]] = {
    "krr:3": (1, 0, 1),
    "krr:100": (1, 0, 98),
    "hadamard:10": (1, 1, 1),
    "olh:50:4": (3, 1, 9),
    "subset:12:3": (math.comb(10, 2), math.comb(10, 1), math.comb(10, 3)),
}
ONE_BUDGET = [  # e^epsilon0, e^epsilon, n
    ("2", "1", 3000),
    ("2", "21/20", 3000),
    ("2", "3/2", 3000),
    ("3", "5/4", 1500),
    ("8", "2", 800),
    ("8", "6", 800),
    ("40", "5", 300),
    ("40", "39", 300),
]
OWN_BUDGETS = [  # the victim's e^epsilon0, the others' with their numbers, e^epsilon
    ("3", {"2": 150, "4": 100}, "5/4"),
    ("3", {"2": 150, "4": 100}, "5/2"),
    ("10", {"1": 60, "3/2": 200}, "3/2"),
    ("2", {"30": 200, "5": 20}, "3/2"),
]
STEPS = [  # e^epsilon of the steps with their numbers, e^epsilon
    ({"2": 400, "4": 100}, "5/4"),
    ({"3/2": 500, "9": 20}, "3"),
    ({"1": 50, "5": 300}, "3"),
]


def gamma_of(name: str, E: Fraction) -> Fraction:
    only, both, neither = FAMILIES[name]
    return Fraction(2 * only + both + neither) / (E * (only + both) + only + neither)


def losses(name: str, E: Fraction, t: Fraction) -> Cells:
    """L/gamma and its law under omega."""
    only, both, neither = FAMILIES[name]
    whole = 2 * only + both + neither
    law = [(only, E - t), (only, 1 - E * t), (both, E * (1 - t)), (neither, 1 - t)]
    return [(Fraction(w, whole), value) for w, value in law if w]


def polynomial(law: Cells, unit: int) -> tuple[arb_poly, int]:
    """Law of one variable, mass missing at 0, and the exponent of its first coefficient, in steps of 1/unit."""
    steps = [(chance, int(value * unit)) for chance, value in law]
    low = min(0, *(step for _, step in steps))
    out = [arb(0)] * (max(0, *(step for _, step in steps)) - low + 1)
    out[-low] = ball(1 - sum(chance for chance, _ in law))
    for chance, step in steps:
        out[step - low] += ball(chance)
    return arb_poly(out), low


def ball(value: Fraction) -> arb:
    return arb(value.numerator) / value.denominator


def positive(law: arb_poly, low: int) -> arb:
    """E(S)_+ in steps."""
    return sum((law[j] * (j + low) for j in range(max(-low, 0), law.degree() + 1)), arb(0))


def unit_of(*laws: Cells) -> int:
    return math.lcm(*(value.denominator for law in laws for _, value in law))


def ordered(name: str, steps: dict[str, int], t: Fraction) -> arb:
    """(II): 1/n E(sum Z_t)_+; with one level (Z)."""
    laws = {}
    for E in steps:
        gamma = gamma_of(name, Fraction(E))
        laws[E] = [(chance * gamma, value) for chance, value in losses(name, Fraction(E), t)]
    unit, total, low = unit_of(*laws.values()), arb_poly([1]), 0
    for E, count in steps.items():
        one, first = polynomial(laws[E], unit)
        total, low = total * one**count, low + first * count
    return positive(total, low) / (sum(steps.values()) * unit)


def unordered(name: str, victim: str, others: dict[str, int], t: Fraction) -> arb:
    """(I): E_C h(C)."""
    count = arb_poly([1])
    for E, users in others.items():
        gamma = gamma_of(name, Fraction(E))
        count *= arb_poly([ball(1 - gamma), ball(gamma)]) ** users
    E = Fraction(victim)
    law = losses(name, E, t)
    unit = unit_of(law)
    one, first = polynomial(law, unit)
    total, power = arb(0), arb_poly([1])
    for m in range(1, count.degree() + 2):
        power *= one
        total += count[m - 1] * positive(power, first * m) / m
    return total * ball(gamma_of(name, E)) / unit


def decimal(value: arb) -> str:
    """20 digits; the ball must be narrower."""
    if not value.rad() <= abs(value.mid()) * arb(10) ** -22:
        raise ArithmeticError(f"not enough bits for {value}")
    return value.mid().str(20, radius=False)


def rows(names: Sequence[str]) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for name in names:
        for E, t, n in ONE_BUDGET:
            value = ordered(name, {E: n}, Fraction(t))
            found.append({"family": name, "kind": "one", "steps": {E: n}, "ratio": t, "delta": decimal(value)})
        for victim, others, t in OWN_BUDGETS:
            value = unordered(name, victim, others, Fraction(t))
            found.append(
                {"family": name, "kind": "own", "victim": victim, "others": others, "ratio": t, "delta": decimal(value)}
            )
        for steps, t in STEPS:
            value = ordered(name, steps, Fraction(t))
            found.append({"family": name, "kind": "steps", "steps": steps, "ratio": t, "delta": decimal(value)})
        print(name, len(found), flush=True)
    return found


def main(path: str) -> None:
    ctx.prec = 3000
    table = {"generator": "generate_blanket.py", "python-flint": flint.__version__, "rows": rows(list(FAMILIES))}
    Path(path).write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
