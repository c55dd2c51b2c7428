"""Linked rounds: exact enumeration of small populations, other engines, the figures asked for, refusals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.linalg import hadamard

from shuffledp import (
    Budgets,
    Channel,
    HadamardResponse,
    InvalidInput,
    Laplace,
    Memoised,
    OneBit,
    OutOfRegime,
    RandomizedResponse,
    Setting,
    bounds,
    certify,
    privacy_profile,
)
from shuffledp.accounting.bound import MANY_LEVELS
from shuffledp.accounting.certify import consulted
from shuffledp.accounting.theorems.linked import same_record_laws
from shuffledp.randomizers.base import AnyLaw
from shuffledp.randomizers.linked import ChangingRecords, SameRecord

Law = dict[tuple[int, ...], float]
EPSILONS = (0.0, 0.2, 0.7, 1.5)
ROUNDING = 1e-12
"""Of the enumeration, which adds at most a few thousand doubles below 1."""


def linked(law: AnyLaw, budgets: Budgets, rounds: int, *, same: bool = False, **more: object) -> Setting:
    return Setting(
        budgets,
        law,
        "reports",
        "replace-one",
        rounds=rounds,
        linked=True,
        same_record=same,
        **more,  # type: ignore[arg-type]
    )


def bundle(rows: np.ndarray, records: Sequence[int]) -> Law:
    """Law of the reports of one user, her record of each round given."""
    found: Law = {}
    for outputs in product(range(rows.shape[1]), repeat=len(records)):
        found[outputs] = math.prod(float(rows[x, y]) for x, y in zip(records, outputs, strict=True))
    return found


def multisets(laws: Sequence[Law]) -> dict[tuple[tuple[int, ...], ...], float]:
    """Law of the multiset of the reports of several users."""
    found: dict[tuple[tuple[int, ...], ...], float] = {(): 1.0}
    for law in laws:
        following: dict[tuple[tuple[int, ...], ...], float] = {}
        for seen, chance in found.items():
            for report, mass in law.items():
                key = tuple(sorted((*seen, report)))
                following[key] = following.get(key, 0.0) + chance * mass
        found = following
    return found


def divergences(others: Sequence[Law], first: Law, second: Law) -> list[float]:
    """H(P, Q; eps) at EPSILONS of the victim's two laws among the others."""
    world0, world1 = multisets([*others, first]), multisets([*others, second])
    return [sum(max(p - math.exp(e) * world1[key], 0.0) for key, p in world0.items()) for e in EPSILONS]


def worst(laws: list[list[Law]], victims: list[Law]) -> np.ndarray:
    """Largest divergence at EPSILONS over all records of the others, and all pairs of the victim's records."""
    found = np.zeros(len(EPSILONS))
    for others in product(*laws):
        for first, second in product(victims, repeat=2):
            if first is not second:
                found = np.maximum(found, divergences(others, first, second))
    return found


def rows_of(law: AnyLaw, epsilon0: float) -> np.ndarray:
    """Chances of every report; of Hadamard response over three categories written out, (index, bit) each."""
    if isinstance(law, HadamardResponse):
        right = 1 / (1 + math.exp(-epsilon0))
        agree = np.kron(hadamard(4)[1:], [1, -1]) > 0
        return np.where(agree, right, 1 - right) / 4
    return law.channel(epsilon0)  # type: ignore[union-attr]


@pytest.mark.costly(
    but=(
        "RandomizedResponse(k=2)-(0.3, 0.8, 1.5)-3-True",
        "RandomizedResponse(k=2)-(0.9, 0.9, 0.9)-3-True",
        "RandomizedResponse(k=3)-(0.5, 1.1)-2-True",
    )
)
@pytest.mark.parametrize(
    ("law", "levels", "rounds", "same"),
    [
        (RandomizedResponse(2), (0.9, 0.9, 0.9), 2, False),
        (RandomizedResponse(2), (0.4, 1.3), 3, False),
        (RandomizedResponse(2), (0.9, 0.9, 0.9), 3, True),
        (RandomizedResponse(2), (0.3, 0.8, 1.5), 3, True),
        (OneBit(0.0, 1.0), (0.3, 0.8, 0.8), 4, True),
        (RandomizedResponse(3), (0.8, 0.8), 2, False),
        (RandomizedResponse(3), (0.5, 1.1), 2, True),
        (RandomizedResponse(3), (1.0, 1.0, 1.0), 2, True),
        pytest.param(HadamardResponse(3), (0.7, 1.2), 2, False, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_no_enumerated_population_is_above_the_bound(
    law: AnyLaw, levels: tuple[float, ...], rounds: int, same: bool
) -> None:
    """Every victim, all records of everybody, exactly; records are corners, for which rounding coins do not matter."""
    budgets, matrix = Budgets.of(levels), {e: rows_of(law, e) for e in levels}
    inputs = range(next(iter(matrix.values())).shape[0])
    sequences = [(x,) * rounds for x in inputs] if same else list(product(inputs, repeat=rounds))
    laws = {e: [bundle(rows, records) for records in sequences] for e, rows in matrix.items()}
    setting = linked(law, budgets, rounds, same=same)
    for at, victim in enumerate(levels):
        others = [laws[e] for place, e in enumerate(levels) if place != at]
        exact = worst(others, laws[victim])
        upper = [bounds["linked"].profile(setting, victim).delta(e).upper for e in EPSILONS]
        assert (exact <= np.array(upper) + ROUNDING).all()


@pytest.mark.parametrize(
    ("law", "epsilon0", "rounds"),
    [(RandomizedResponse(2), 0.7, 3), (RandomizedResponse(3), 0.8, 2), (RandomizedResponse(4), 0.6, 2)],
    ids=str,
)
def test_the_attack_is_the_enumerated_one(law: RandomizedResponse, epsilon0: float, rounds: int) -> None:
    n, rows = 3, rows_of(law, epsilon0)
    setting = linked(law, Budgets([epsilon0], [n]), rounds, same=True)
    profile = bounds["linked-exact"].profile(setting, epsilon0)
    users = [bundle(rows, (x,) * rounds) for x in range(law.k)]
    thirds = [1] if law.k == 2 else [1, 2]
    attacked = {x: np.maximum(divergences([users[x]] * 2, users[0], users[1]),
                              divergences([users[x]] * 2, users[1], users[0])) for x in thirds}  # fmt: skip
    lower = np.array([profile.delta(e).lower for e in EPSILONS])
    assert any(np.allclose(lower, exact, rtol=1e-8, atol=1e-12) for exact in attacked.values())


@pytest.mark.parametrize(("fresh", "rounds"), [(None, 3), (0.8, 1), (0.8, 3)])
def test_memoised_reports(fresh: float | None, rounds: int) -> None:
    """Enumerated: a memo is drawn once; the law of all rounds is a mixture over it."""
    law, n = Memoised(1.1, fresh), 4
    rows = law.rows(rounds)
    if fresh is not None:
        p, q = 1 / (1 + math.exp(-1.1)), 1 / (1 + math.exp(-fresh))
        ones = [math.comb(rounds, j) * (p * q**j * (1 - q) ** (rounds - j) + (1 - p) * (1 - q) ** j * q ** (rounds - j))
                for j in range(rounds + 1)]  # fmt: skip
        assert np.allclose(rows, [ones[::-1], ones], rtol=1e-13)
    users = [{(y,): float(mass) for y, mass in enumerate(row)} for row in rows]
    exact = worst([users] * (n - 1), users)
    setting = linked(law, Budgets([1.1], [n]), rounds, same=True)
    profile = privacy_profile(setting, 1.1)
    found = [profile.delta(e) for e in EPSILONS]
    assert all(x <= y.upper + ROUNDING for x, y in zip(exact, found, strict=True))
    assert all(y.lower <= x + ROUNDING for x, y in zip(exact, found, strict=True))
    assert found[1].lower > 0.5 * exact[1]


def test_a_memo_sent_again_tells_no_more() -> None:
    """One memo, sent as it is: the guarantee of one round of one bit, whatever the rounds."""
    one = certify(Setting(Budgets([1.0], [1000]), RandomizedResponse(2), "reports", "replace-one"), 1e-6).epsilon
    for rounds in (1, 50):
        again = certify(linked(Memoised(1.0), Budgets([1.0], [1000]), rounds, same=True), 1e-6).epsilon
        assert again.upper == pytest.approx(one.upper, rel=1e-4)
        assert again.lower > 0.98 * one.lower
    fresh = certify(linked(Memoised(1.0, 0.5), Budgets([1.0], [1000]), 3, same=True), 1e-6).epsilon
    assert fresh.lower < fresh.upper < one.upper


def test_memoised_rounds_are_never_taken_for_fresh_ones() -> None:
    """No attack that composes rounds may speak of reports made from one memo: it would exceed the truth."""
    guarantee = certify(linked(Memoised(1.0), Budgets([1.0], [100]), 100, same=True), 1e-6)
    answered = {e.key for e in guarantee.evidence if e.epsilon is not None and e.kind.value == "certified-lower"}
    assert answered == {"linked-exact"}
    assert guarantee.epsilon.lower <= guarantee.epsilon.upper < 1.0


@pytest.mark.parametrize(
    ("same", "extra"),
    [(False, {"linked": False}), (False, {}), (True, {"reports_per_user": 2})],
)
def test_memoised_refuses_what_its_memo_forbids(same: bool, extra: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="memoised reports"):
        replace(linked(Memoised(1.0), Budgets([1.0], [10]), 2, same=True), same_record=same, **extra)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"every epsilon0 must be at least 2.* the memo is drawn; got 1"):
        linked(Memoised(2.0), Budgets([1.0], [10]), 2, same=True)


def test_types_of_reports_agree_with_a_channel_matrix() -> None:
    """Another room: the numbers of ones of 12 rounds as a matrix of one's own, bounded by its own blanket."""
    rounds, epsilon0, n = 12, 0.5, 500
    w = 1 / (1 + math.exp(-epsilon0))
    ones = [math.comb(rounds, j) * w**j * (1 - w) ** (rounds - j) for j in range(rounds + 1)]
    whole = Channel([ones, ones[::-1]])
    other = Setting(Budgets([rounds * epsilon0 * 1.001], [n]), whole, "reports", "replace-one")
    known = bounds["blanket"].profile(other, rounds * epsilon0 * 1.001)
    setting = linked(RandomizedResponse(2), Budgets([epsilon0], [n]), rounds, same=True)
    for e in (0.5, 1.5, 3.0):
        found = bounds["linked"].profile(setting, epsilon0).delta(e)
        assert found.upper == pytest.approx(known.delta(e).upper, rel=1e-6)


@pytest.mark.parametrize("budgets", [(0.7, 0.7), (0.3, 0.9)])
def test_gamma_is_the_smallest_ratio(budgets: tuple[float, float]) -> None:
    """gamma_i and the ratios in exact fractions of doubles' budgets: every type of 4 rounds of 3 categories."""
    reference, own = budgets
    rounds, k = 4, 3
    law = SameRecord(k, rounds, reference)

    def chance(epsilon0: float, record: int, outputs: tuple[int, ...]) -> Fraction:
        e = Fraction(math.exp(epsilon0))
        return e ** outputs.count(record) / (e + k - 1) ** rounds

    every = list(product(range(k), repeat=rounds))
    omega = [min(chance(reference, x, y) for x in range(k)) for y in every]
    whole = sum(omega)
    ratios = [chance(own, x, y) * whole / w for y, w in zip(every, omega, strict=True) for x in range(k)]
    assert float(law.blanket_mass(own)) == pytest.approx(float(min(ratios)), rel=1e-13)
    (pair,) = law.pair_blankets(own)
    assert float(pair.masses.sum()) == pytest.approx(1.0, abs=1e-13)
    assert float(pair.masses @ pair.ratios0) == pytest.approx(1.0, abs=1e-13)
    second = sum((chance(own, 0, y) - chance(own, 1, y)) ** 2 * whole / w for y, w in zip(every, omega, strict=True))
    assert float(pair.masses @ (pair.ratios0 - pair.ratios1) ** 2) == pytest.approx(float(second), rel=1e-12)


def test_one_round_of_changing_records_is_the_family_itself() -> None:
    for family in (RandomizedResponse(2), RandomizedResponse(7), HadamardResponse(8), OneBit(0.0, 1.0)):
        one = ChangingRecords(family.report_sets, 1)
        assert float(one.blanket_mass(1.3)) == pytest.approx(float(family.blanket_mass(1.3)), rel=1e-14)
        theirs, ours = family.pair_blankets(1.3)[0], one.pair_blankets(1.3)[0]
        apart = [float(p.masses @ (p.ratios0 - p.ratios1) ** 2) for p in (theirs, ours)]
        assert apart[0] == pytest.approx(apart[1], rel=1e-13)


FIGURES = [
    (0.5, 20, 10_000, 1e-5, False, 0.0, 1.64),
    (1.0, 4, 10_000, 1e-6, False, 0.0, 0.254),
    (0.5, 20, 1_000, 1e-5, True, 3.00, 3.09),
    (0.5, 20, 10_000, 1e-5, True, 1.05, 1.09),
    pytest.param(0.1, 100, 10_000, 1e-6, True, 0.044, 0.0601, marks=pytest.mark.slow),
    (1.0, 10, 1_000_000, 1e-6, True, 0.0, 0.2151),
]


@pytest.mark.costly("0.5-20-1000-1e-05-True-3.0-3.09", "0.5-20-10000-1e-05-False-0.0-1.64")
@pytest.mark.parametrize(("epsilon0", "rounds", "n", "delta", "same", "lower", "upper"), FIGURES)
def test_figures(epsilon0: float, rounds: int, n: int, delta: float, same: bool, lower: float, upper: float) -> None:
    setting = linked(RandomizedResponse(2), Budgets([epsilon0], [n]), rounds, same=same)
    ends = [bounds[key].profile(setting, epsilon0).epsilon(delta) for key in ("linked-exact", "linked")]
    assert lower <= ends[0].lower <= ends[1].upper <= upper


def test_a_question_with_links_has_an_attack_that_uses_them() -> None:
    setting = linked(RandomizedResponse(2), Budgets([0.5], [1000]), 6)
    forgets = bounds["count-exact"].profile(setting, 0.5).epsilon(1e-5).lower
    guarantee = certify(setting, 1e-5)
    assert guarantee.epsilon.lower > 1.2 * forgets
    whatever = bounds["linked-exact"].profile(replace(setting, randomizer="any"), 0.5).epsilon(1e-5)
    assert whatever.lower >= 0.999 * guarantee.epsilon.lower


def test_own_budgets_groups_and_missing_people() -> None:
    """More exposed people, and larger groups, never help; the bound stays above the attack."""
    budgets = Budgets([0.3, 0.8], [600, 200])
    setting = linked(RandomizedResponse(2), budgets, 6, same=True)
    plain, fewer, pairs = (
        bounds["linked"].profile(replace(setting, **kind), 0.8).delta(1.0).upper  # type: ignore[arg-type]
        for kind in ({}, {"missing": 0.2}, {"group_size": 2})
    )
    assert plain < min(fewer, pairs)
    alone = bounds["linked"].profile(replace(setting, seen="levels"), 0.8)
    assert alone.delta(1.0).upper > plain
    attack = bounds["linked-exact"].profile(replace(setting, seen="levels"), 0.8)
    assert 0.0 < attack.delta(1.0).lower <= alone.delta(1.0).upper


def test_many_levels_are_bounded_by_a_few_victims() -> None:
    many = Budgets(np.linspace(0.1, 0.5, MANY_LEVELS + 8), np.full(MANY_LEVELS + 8, 50))
    setting = linked(RandomizedResponse(2), many, 4)
    found = bounds["linked"].level_epsilons(setting, 1e-6, np.array([0, MANY_LEVELS + 7]))
    for at, level in ((0, 0.1), (1, 0.5)):
        alone = bounds["linked"].profile(setting, level).epsilon(1e-6).upper
        assert alone <= found.upper[at] * (1 + 1e-6) < 1.1 * alone + 1e-9


@pytest.mark.parametrize(
    ("law", "rounds", "same", "why"),
    [
        (RandomizedResponse(2), 1001, True, "up to 1000 rounds"),
        (RandomizedResponse(2), 65, False, "up to 64 rounds"),
        (RandomizedResponse(50), 65, True, "at most 1,000,000 types"),
        (Channel(np.full((3, 40), 1 / 40)), 5, True, "linked needs reports of rr, krr, one-bit or hadamard"),
        (Laplace(0.0, 1.0), 3, True, "linked needs reports of"),
    ],
    ids=str,
)
def test_refusals(law: AnyLaw, rounds: int, same: bool, why: str) -> None:
    with pytest.raises(OutOfRegime, match=why):
        bounds["linked"].profile(linked(law, Budgets([0.1], [100]), rounds, same=same), 0.1)


@pytest.mark.costly("2")
@pytest.mark.parametrize("k", [2, 50])
def test_stating_that_records_do_not_change_never_hurts(k: int) -> None:
    """Own budgets, and more types than are compared: the blanket of changing records stays available."""
    budgets = Budgets([0.2, 0.6], [5000, 5000])
    may, same = (linked(RandomizedResponse(k), budgets, 20 if k == 2 else 8, same=kind) for kind in (False, True))
    for level in (0.2, 0.6):
        changing, constant = (bounds["linked"].profile(setting, level).epsilon(1e-6).upper for setting in (may, same))
        assert constant <= changing * (1 + 1e-4)


def test_rounds_without_links_are_not_this_bound() -> None:
    setting = Setting(Budgets([1.0], [100]), RandomizedResponse(2), "reports", "replace-one", rounds=3)
    for key in ("linked", "linked-exact"):
        with pytest.raises(OutOfRegime, match="rounds that are not"):
            bounds[key].profile(setting, 1.0)
    assert not {"linked", "linked-exact"} & {bound.key for bound in consulted(setting, published=False)}
    with pytest.raises(InvalidInput, match="`same_record` is about linked rounds"):
        replace(setting, same_record=True)


def test_a_thousand_rounds_choose_a_channel_without_a_warning():
    """Squared ratios of e^(0.5 * 1,000) are beyond all floats; numpy's warning about it reached the terminal."""
    setting = Setting(
        Budgets((0.5,), (10_000,)), RandomizedResponse(k=2), seen="reports", neighboring="replace-one",
        rounds=1000, linked=True, same_record=True,
    )  # fmt: skip
    assert len(same_record_laws(setting, 0.5)) == 1


@pytest.mark.costly(but=("False-0.5-10000-10",))
@pytest.mark.parametrize(("epsilon0", "n", "rounds"), [(1.0, 1_000, 4), (1.0, 10_000, 4), (0.5, 10_000, 10)])
@pytest.mark.parametrize("same", [True, False])
def test_all_reports_of_a_user_travel_together(epsilon0: float, n: int, rounds: int, same: bool) -> None:
    """Two reports in each linked round were taken for two bundles that nothing ties together.

    rr 1, 10,000 users, 4 rounds of 2 reports was certified .3262; all eight together attain .858.
    """
    budgets = Budgets([epsilon0], [n])
    with pytest.raises(InvalidInput, match=f"state `rounds = {2 * rounds}`: all {2 * rounds} reports"):
        replace(linked(RandomizedResponse(2), budgets, rounds, same=same), reports_per_user=2)
    attained = certify(linked(RandomizedResponse(2), budgets, 2 * rounds, same=True), 1e-6).epsilon.lower
    stated = certify(linked(RandomizedResponse(2), budgets, 2 * rounds, same=same), 1e-6).epsilon.upper
    assert attained <= stated
    assert attained > {(1.0, 1_000): 2.26, (1.0, 10_000): 0.858, (0.5, 10_000): 1.168}[epsilon0, n]


def test_one_linked_round_may_have_several_reports() -> None:
    """One round has nothing that could be linked across rounds."""
    budgets = Budgets([1.0], [1_000])
    one = replace(linked(RandomizedResponse(2), budgets, 1, same=False), reports_per_user=2)
    assert certify(one, 1e-6).epsilon == certify(replace(one, linked=False), 1e-6).epsilon


@pytest.mark.costly("2-2-8-1.0", "3-1-2-200.0")
@pytest.mark.parametrize(
    ("k", "users", "rounds", "epsilon0"), [(2, 1, 2, 200.0), (2, 1, 4, 100.0), (2, 2, 8, 1.0), (3, 1, 2, 200.0)]
)
def test_one_user_with_linked_rounds_warns_of_nothing(k: int, users: int, rounds: int, epsilon0: float) -> None:
    """Squares of the ratios of the linked rounds leave double range where bounds are ordered; warnings are errors."""
    found = certify(linked(RandomizedResponse(k), Budgets([epsilon0], [users]), rounds), delta=1e-6).epsilon
    assert found.lower <= found.upper <= rounds * epsilon0 * (1.0 + 1e-9)
