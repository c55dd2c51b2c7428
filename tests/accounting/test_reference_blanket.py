"""The table tests/reference/blanket.json: (I), (Z) and (II) by products of polynomials, down to 1e-290."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from mpmath import mpf

from shuffledp.accounting import bounds
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.accounting.theorems.ordered import KnownStepsProfile
from shuffledp.budgets import Budgets
from shuffledp.randomizers import HadamardResponse, LocalHashing, RandomizedResponse, SubsetSelection
from shuffledp.setting import Setting
from tests.oracles import fraction_log

ROWS = json.loads((Path(__file__).parent.parent / "reference" / "blanket.json").read_text(encoding="utf-8"))["rows"]
FAMILIES = {
    "krr:3": RandomizedResponse(3),
    "krr:100": RandomizedResponse(100),
    "hadamard:10": HadamardResponse(10),
    "olh:50:4": LocalHashing(50, g=4),
    "subset:12:3": SubsetSelection(12, size=3),
}
INPUT = 1e-10
"""Relative: what a rounded log(E) may move a delta near 1e-250 by (about 500 times EPS per nat), many times over."""


def log(ratio: str) -> float:
    return float(fraction_log(Fraction(ratio)))


def budgets_of(levels: dict[str, int]) -> Budgets:
    return Budgets([log(E) for E in levels], list(levels.values()))


def profile_of(row: dict) -> PrivacyProfile:
    family = FAMILIES[row["family"]]
    if row["kind"] == "steps":
        budgets = budgets_of(row["steps"])
        return KnownStepsProfile(budgets, tuple(family.pair_blankets(float(e))[0] for e in budgets.epsilons))
    if row["kind"] == "one":
        budgets = budgets_of(row["steps"])
        victim = float(budgets.epsilons[0])
    else:
        victim = log(row["victim"])
        others = budgets_of(row["others"])
        budgets = Budgets(np.append(others.epsilons, victim), np.append(others.counts, 1))
    setting = Setting(budgets, family, seen="reports", neighboring="replace-one")
    return bounds["blanket"].profile(setting, victim)


def name(row: dict) -> str:
    return f"{row['family']}-{row['kind']}-{row['ratio'].replace('/', ':')}-{row['delta'][:3]}{row['delta'][-5:]}"


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_the_table_lies_inside_the_enclosures(row):
    truth, found = mpf(row["delta"]), profile_of(row).delta(log(row["ratio"]))
    assert mpf(found.lower) * (1 - INPUT) <= truth
    assert truth <= mpf(found.upper) * (1 + INPUT)
    # close to the budget, and far below what depends on a likely number of blanket reports, bounds are less sharp
    if truth > mpf(10) ** -35 and row["ratio"] != "39":
        assert found.upper <= 1.05 * float(truth)
