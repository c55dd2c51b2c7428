"""Linked rounds with many types of reports: exact chances, the exact channel of few types, rare outputs apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.accounting.engines.blanket import OneBudgetProfile
from shuffledp.accounting.engines.rare_cells import without_rare
from shuffledp.numerics.long_logs import log_factorials, long_logs, summed
from shuffledp.randomizers import linked_channel as rooms
from shuffledp.randomizers import linked_types
from shuffledp.randomizers.base import PairBlanket
from shuffledp.randomizers.linked import SameRecord
from shuffledp.randomizers.linked_types import ManyTypes, compositions

ROWS = [[0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.2, 0.3, 0.5]]


def _columns(rows: Sequence[Sequence[float]]) -> list[list[tuple[int, int]]]:
    return [[Fraction(str(row[y])).as_integer_ratio() for row in rows] for y in range(len(rows[0]))]


def test_logs_in_two_parts_keep_the_last_digit() -> None:
    values = [Decimal("0.5"), Decimal("1e-300"), Decimal(3) / 7, Decimal(0)]
    logs = long_logs(values)
    counts = np.array([[300.0, 2.0, 698.0, 0.0], [0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 1.0]])
    found = summed(counts, logs)
    with mpmath.workdps(40):
        for row, high, low in zip(counts[:2], found.high[:2], found.low[:2], strict=True):
            exact = sum(
                int(c) * mpmath.log(mpmath.mpf(str(v))) if v != values[2] else int(c) * mpmath.log(mpmath.mpf(3) / 7)
                for c, v in zip(row, values, strict=True)
                if c
            )
            assert abs(mpmath.mpf(float(high)) + mpmath.mpf(float(low)) - exact) < 1e-20
        table = log_factorials(1000)
        assert abs(mpmath.mpf(table.high[1000]) + mpmath.mpf(table.low[1000]) - mpmath.loggamma(1001)) < 1e-20
    assert found.high[2] == -math.inf
    first = long_logs([Decimal(2)] * 2).minus(long_logs([Decimal(3)] * 2))
    assert (first.lower <= math.log(2 / 3)).all()
    assert (first.upper >= math.log(2 / 3)).all()


def test_compositions_are_all_of_them() -> None:
    found = compositions(5, 4)
    assert found.shape == (math.comb(8, 3), 4)
    assert (found.sum(axis=1) == 5.0).all()
    assert np.unique(found, axis=0).shape == found.shape


def test_chances_of_types_are_multinomial() -> None:
    types = ManyTypes(_columns(ROWS), 7)
    exact = []
    for counts in compositions(7, 3).astype(int).tolist():
        ways = math.factorial(7) // math.prod(math.factorial(c) for c in counts)
        chances = [math.prod(Fraction(str(p)) ** c for p, c in zip(row, counts, strict=True)) for row in ROWS]
        exact.append([float(ways * chance) for chance in chances])
    for record, logs in enumerate(types.logs):
        assert logs.exp() == pytest.approx(np.array(exact)[:, record], rel=1e-15)
    assert types.gamma == pytest.approx(np.array(exact).min(axis=1).sum(), rel=1e-14)


def _profile(pair: PairBlanket, n: int, **more: bool) -> OneBudgetProfile:
    return OneBudgetProfile(pair.largest_loss, pair, n, **more)


@pytest.mark.parametrize("rounds", [4, 9])
def test_many_types_are_the_exact_channel(rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    channel = sdp.Channel(ROWS)
    exact = rooms.LinkedChannel(channel, rounds)
    types = rooms.LinkedTypes(channel, rounds)
    assert types.blanket_mass(1.0) == pytest.approx(exact.blanket_mass(1.0), rel=1e-14)
    for known, found in zip(exact.pair_blankets(1.0), types.pair_blankets(1.0), strict=False):
        for epsilon in (0.2, 1.0):
            assert _profile(found, 200).delta(epsilon).upper == pytest.approx(
                _profile(known, 200).delta(epsilon).upper, rel=1e-6
            )
    # merged into few cells: above where it must be, below where it must be, and not far
    monkeypatch.setattr(linked_types, "_CELLS", 5)
    monkeypatch.setattr(linked_types, "_PLAIN", 0)
    merged = rooms.LinkedTypes(channel, rounds)
    for known, found in zip(exact.pair_blankets(1.0), merged.pair_blankets(1.0), strict=False):
        truth, above = _profile(known, 200).delta(0.5), _profile(found, 200).delta(0.5)
        assert truth.lower <= above.upper <= 1.1 * truth.upper
    known, found = exact.witness_pairs(1.0), merged.witness_pairs(1.0)
    assert known is not None
    assert found is not None
    truth, below = (_profile(pair[0], 200, enclosed=True).delta(0.5) for pair in (known, found))
    assert 0.8 * truth.lower <= below.lower <= truth.upper


def test_thousands_of_types_are_answered() -> None:
    """Refused before: types x records^2 x rounds was at most 2,000,000."""
    rows = [[0.34, 0.33, 0.33], [0.33, 0.34, 0.33], [0.33, 0.33, 0.34]]
    setting = sdp.Setting(
        sdp.Budgets([0.05], [1000]), sdp.Channel(rows), "reports", "replace-one", rounds=100, linked=True,
        same_record=True,
    )  # fmt: skip
    lower, upper = (sdp.bounds[key].profile(setting, 0.05).epsilon(1e-6) for key in ("linked-exact", "linked"))
    assert 0.8 * upper.upper < lower.lower <= upper.upper < 0.05


def test_rare_outputs_are_charged_and_nothing_is_lost() -> None:
    """A thousand rounds at 0.05: the transform alone said 23.6, and the attack 0.327."""
    pair = SameRecord(2, 1000, 0.05).pair_blankets(0.05)[0]
    spread = pair.spread
    assert spread is not None
    cut = without_rare(pair, 0.5, 1e-9)
    assert cut.spread is not None
    # each output is either as it was, or 0 with all its chance charged
    gone = (cut.ratios0 == 0.0) & (pair.ratios0 > 0.0)
    assert gone.any()
    assert (pair.losses[gone] > 0.5).all()
    charged = cut.spread.left_out_mass.sum() - spread.left_out_mass.sum()
    assert float((pair.masses * pair.ratios0)[gone].sum()) <= charged <= 1e-9
    assert (cut.ratios0[~gone] == pair.ratios0[~gone]).all()
    assert (cut.masses == pair.masses).all()
    assert cut.largest_loss >= pair.largest_loss
    assert without_rare(pair, pair.largest_loss, 1e-9) is pair


@pytest.mark.slow
def test_a_thousand_rounds_amplify() -> None:
    setting = sdp.Setting(
        sdp.Budgets([0.05], [1000]), sdp.RandomizedResponse(2), "reports", "replace-one", rounds=1000, linked=True,
        same_record=True,
    )  # fmt: skip
    lower, upper = (sdp.bounds[key].profile(setting, 0.05).epsilon(1e-6) for key in ("linked-exact", "linked"))
    assert 1.59 < lower.lower < upper.upper < 1.71
