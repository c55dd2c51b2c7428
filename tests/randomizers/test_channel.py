from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput
from shuffledp.randomizers import Channel, HadamardResponse, RandomizedResponse, RandomizerLaw, UnaryEncoding
from shuffledp.setting import Setting
from tests import oracles
from tests.randomizers import laws
from tests.randomizers.laws import ULP

DYADIC = [[0.5, 0.25, 0.125, 0.125], [0.25, 0.5, 0.125, 0.125], [0.25, 0.25, 0.25, 0.25]]
LEAKY = [[0.5, 0.25, 0.25, 0.0], [0.25, 0.5, 0.25, 0.0], [0.25, 0.25, 0.25, 0.25]]


def exact_rows(channel: Channel) -> oracles.Channel:
    """The certified law: the doubles as rationals, rows divided by their sums."""
    rows = [[Fraction(entry) for entry in row] for row in channel.matrix.tolist()]
    return tuple(tuple(entry / sum(row) for entry in row) for row in rows)


def exact_log(ratio: Fraction) -> float:
    return float(oracles.fraction_log(ratio))


def merged(cells) -> np.ndarray:
    """Cells (ratio0, ratio1, loss, mass) in order, those that agree to 12 digits taken together."""
    found: dict[tuple, list] = {}
    for cell in cells:
        found.setdefault(tuple(f"{ratio:.12g}" for ratio in cell[:2]), []).append(cell)
    alike = [[*same[0][:3], math.fsum(cell[3] for cell in same)] for _, same in sorted(found.items())]
    return np.array(alike).reshape(len(alike), 4)


def expected_pair(rows: oracles.Channel, x0: int, x1: int) -> tuple[np.ndarray, list]:
    """Cells (ratio0, ratio1, loss, mass), and parts left out (loss, mass), from the definition."""
    least = [min(column) for column in zip(*rows, strict=True)]
    gamma = sum(least)
    cells = []
    left: dict[float, Fraction] = {}
    for y, low in enumerate(least):
        a, b = rows[x0][y], rows[x1][y]
        if low > 0:
            cells.append((float(a * gamma / low), float(b * gamma / low), exact_log(a / b), float(low / gamma)))
        elif a > 0 or b > 0:
            loss = math.inf if b == 0 else exact_log(a / b) if a > b else 0.0
            left[loss] = left.get(loss, Fraction(0)) + a
    return merged(cells), sorted((loss, float(mass)) for loss, mass in left.items())


def check_pairs(channel: Channel) -> None:
    """All ordered pairs are there, once, and right to a few ulps."""
    rows, pairs = exact_rows(channel), channel.pair_blankets(1.0)
    stated = [merged(zip(p.ratios0, p.ratios1, p.losses, p.masses, strict=True)) for p in pairs]
    used: set[int] = set()
    for x0, x1 in itertools.permutations(range(len(rows)), 2):
        cells, left = expected_pair(rows, x0, x1)
        same = [
            i
            for i, found in enumerate(stated)
            if len(found) == len(cells)
            and np.allclose(found, cells, rtol=16 * ULP, atol=2 * ULP)
            and same_left(pairs[i], left)
        ]
        assert same, (x0, x1)
        used.update(same)
    assert used == set(range(len(pairs)))
    gamma = sum(min(column) for column in zip(*rows, strict=True))
    assert {pair.gamma for pair in pairs} == {float(channel.blanket_mass(1.0))}
    assert pairs[0].gamma == pytest.approx(float(gamma), rel=4 * ULP, abs=0)


def same_left(pair, left: list) -> bool:
    if pair.spread is None:
        return not left
    spread = pair.spread
    stated, wanted = lumped(zip(spread.left_out_loss, spread.left_out_mass, strict=True)), lumped(left)
    if stated.shape != wanted.shape or not left:
        return False
    return bool((stated >= wanted).all()) and np.allclose(stated, wanted, rtol=1e-14, atol=1e-300)


def lumped(parts) -> np.ndarray:
    """Parts (loss, mass) in order, those whose losses agree to 12 digits taken together."""
    found: dict[str, list] = {}
    for loss, mass in parts:
        found.setdefault(f"{loss if loss > 1e-300 else 0.0:.12g}", []).append((loss, mass))
    alike = [(max(p[0] for p in same), math.fsum(p[1] for p in same)) for same in found.values()]
    return np.array(sorted(alike)).reshape(len(alike), 2)


@pytest.mark.parametrize("matrix", [DYADIC, LEAKY, [[1.0], [1.0]], [[0.3, 0.7], [0.7, 0.3]], [[1.0, 0.0], [0.0, 1.0]]])
def test_pairs_against_their_definition(matrix):
    check_pairs(Channel(matrix))


def test_losses_that_differ_by_rounding_alone():
    # two left-out outputs with losses one unit apart are one part
    check_pairs(
        Channel([[w / sum(row) for w in row] for row in ([0, 0, 0, 0, 1], [0, 0, 7, 1000, 7], [0, 7, 7, 1000, 1000])])
    )


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_pairs_of_any_matrix(data):
    outputs, records = data.draw(st.integers(1, 5)), data.draw(st.integers(2, 4))
    weights = st.lists(st.sampled_from([0, 1, 1, 2, 3, 7, 1000]), min_size=outputs, max_size=outputs).filter(any)
    check_pairs(
        Channel(
            [[w / sum(row) for w in row] for row in data.draw(st.lists(weights, min_size=records, max_size=records))]
        )
    )


def test_the_blanket_is_below_every_row():
    channel = Channel(np.random.default_rng(3).dirichlet(np.ones(6), 5))
    least = [min(column) for column in zip(*exact_rows(channel), strict=True)]
    assert float(channel.blanket_mass(0.0)) == pytest.approx(float(sum(least)), rel=4 * ULP, abs=0)
    for pair in channel.pair_blankets(0.0):
        assert pair.masses @ pair.ratios0 == pytest.approx(1.0, rel=1e-14)
        assert pair.masses @ pair.ratios1 == pytest.approx(1.0, rel=1e-14)
        assert pair.masses.sum() == pytest.approx(1.0, rel=1e-14)
        assert (pair.ratios0 >= pair.gamma * (1 - 4 * ULP)).all()
        assert np.exp(pair.losses) == pytest.approx(pair.ratios0 / pair.ratios1, rel=1e-13)


@pytest.mark.parametrize("epsilon0", [0.0, 1e-6, 1.0, 5.0, 30.0])
@pytest.mark.parametrize("k", [2, 3, 10])
def test_symmetric_channels_collapse(k, epsilon0):
    channel = Channel(RandomizedResponse(k).channel(epsilon0))
    (pair,), (plain,) = channel.pair_blankets(epsilon0), RandomizedResponse(k).pair_blankets(epsilon0)
    assert pair.gamma == pytest.approx(plain.gamma, rel=1e-13)
    if epsilon0 > 0.0:
        order = np.argsort(plain.losses)
        by_loss = np.argsort(pair.losses)
        assert pair.masses[by_loss] == pytest.approx(plain.masses[order], rel=1e-12)
        assert pair.losses[by_loss] == pytest.approx(plain.losses[order], rel=1e-8)  # of entries rounded to doubles
        assert pair.ratios0[by_loss] == pytest.approx(plain.ratios0[order], rel=1e-12)


def test_tables_of_named_families_give_their_pairs():
    E = Fraction(4)
    unary = laws.unary_table(2, Fraction(1, 2), 1 / (E + 1))
    hadamard = laws.hadamard_table(2, 4, E)
    for table, family in ((unary, UnaryEncoding(2)), (hadamard, HadamardResponse(2))):
        (pair,) = Channel([[float(p) for p in row] for row in table]).pair_blankets(2.0)
        (named,) = family.pair_blankets(math.log(4))
        assert (pair.ratios0 - pair.ratios1) ** 2 @ pair.masses / pair.gamma <= (
            (named.ratios0 - named.ratios1) ** 2 @ named.masses / named.gamma * (1 + 1e-12)
        )


def test_no_real_protocol_exceeds_the_bound():
    for matrix, n in ((DYADIC, 4), ([[0.5, 0.375, 0.125], [0.125, 0.375, 0.5], [0.25, 0.5, 0.25]], 4)):
        channel = Channel(matrix)
        rows = exact_rows(channel)
        for ratio in (Fraction(1), Fraction(5, 4), Fraction(7, 4)):
            exact = oracles.ShuffledProtocol([rows] * n).worst(0, ratio)
            gammas = channel.blanket_mass(np.ones(n - 1))
            bounds = [laws.stated_bound(pair, gammas, ratio) for pair in channel.pair_blankets(1.0)]
            assert mpmath.mpf(exact.numerator) / exact.denominator <= max(bounds) * (1 + 1e-12)
            assert exact == 0 or mpmath.mpf(exact.numerator) / exact.denominator > 0.4 * max(bounds)


def test_outputs_that_the_blanket_lacks_are_listed():
    channel = Channel(LEAKY)
    assert math.isinf(channel.epsilon0)
    pairs = channel.pair_blankets(1.0)
    leaks = [pair for pair in pairs if pair.spread is not None]
    assert leaks
    for pair in leaks:
        assert pair.spread.left_out_loss.size == 1
        if pair.spread.left_out_loss[0] > 1.0:  # possible for x0 only
            assert pair.spread.left_out_loss.tolist() == [math.inf]
            assert pair.spread.left_out_mass == pytest.approx([0.25], rel=1e-15)
        else:  # possible for x1 only
            assert pair.spread.left_out_mass.tolist() == [5e-324]
            assert pair.spread.left_out_loss.tolist() == [5e-324]
        assert pair.masses.size == pair.spread.ratio_low.size
        assert (pair.spread.ratio_low < pair.ratios0).all()
        assert (pair.spread.ratio_high > pair.ratios0).all()
        assert (pair.spread.loss_low <= pair.losses).all()
        assert (pair.spread.loss_high >= pair.losses).all()
    assert channel.blanket_mass(1.0) == 0.75


def test_nothing_in_common():
    channel = Channel([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]])
    pairs = channel.pair_blankets(1.0)
    assert {pair.gamma for pair in pairs} == {0.0}
    assert all(pair.masses.size == 0 for pair in pairs)
    assert float(channel.blanket_mass(1.0)) == 0.0


def test_columns_without_mass_are_dropped():
    (pair,) = Channel([[0.25, 0.0, 0.75], [0.75, 0.0, 0.25]]).pair_blankets(2.0)
    assert pair.masses.size == 2
    assert pair.spread is None


def test_subnormal_chances_count_as_left_out():
    channel = Channel([[1.0 - 1e-300, 1e-300], [1.0, 3e-300]])
    assert channel.epsilon0 == pytest.approx(math.log(3), rel=1e-15)
    forth, back = channel.pair_blankets(2.0)
    for pair, loss, mass in ((forth, 0.0, 1e-300), (back, math.log(3), 3e-300)):
        assert pair.masses.tolist() == [1.0]
        assert pair.spread is not None
        assert pair.spread.left_out_loss == pytest.approx([loss], rel=1e-15, abs=1e-320)
        assert pair.spread.left_out_mass == pytest.approx([mass], rel=1e-15, abs=0)
    assert Channel([[1.0, 1e-320], [0.5, 0.5]]).epsilon0 == pytest.approx(320 * math.log(10), rel=1e-3)


@pytest.mark.parametrize("tiny", [1e-3, 1e-8, 1e-15, 2.0**-52])
def test_small_budgets_keep_their_digits(tiny):
    channel = Channel([[0.5 + tiny, 0.5 - tiny], [0.5 - tiny, 0.5 + tiny]])
    rows = exact_rows(channel)
    exact = exact_log(rows[0][0] / rows[1][0])
    (pair,) = channel.pair_blankets(1.0)
    assert np.abs(pair.losses) == pytest.approx([exact, exact], rel=4 * ULP, abs=0)
    assert exact <= channel.epsilon0 <= exact * (1 + 1e-14)


def test_rows_are_divided_by_their_sums():
    channel = Channel([[0.5 + 5e-10, 0.5], [0.5, 0.5]])
    exact = exact_rows(channel)
    assert np.array(exact, dtype=np.float64) == pytest.approx(channel.rows, rel=2 * ULP, abs=0)
    assert channel.epsilon0 == pytest.approx(exact_log(exact[1][1] / exact[0][1]), rel=1e-14)
    with pytest.raises(ValueError, match="read-only"):
        channel.rows[0, 0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        channel.matrix[0, 0] = 1.0


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any), min_size=2, max_size=3), st.floats(0, 3)
)
def test_divergence_is_the_worst_pairs(weights, epsilon):
    channel = Channel([[w / sum(row) for w in row] for row in weights])
    rows = exact_rows(channel)
    E = mpmath.exp(mpmath.mpf(epsilon))
    exact = max(
        mpmath.fsum(
            max(mpmath.mpf(0), mpmath.mpf(a.numerator) / a.denominator - E * b.numerator / b.denominator)
            for a, b in pairs
        )
        for pairs in (list(zip(rows[i], rows[j], strict=True)) for i, j in itertools.permutations(range(len(rows)), 2))
    )
    assert exact <= channel.divergence(epsilon) <= exact + 1e-13


def test_budgets_must_cover_the_channel():
    channel = Channel(RandomizedResponse(3).channel(1.0))
    own = channel.epsilon0
    assert own == pytest.approx(1.0, rel=1e-14)
    channel.check_budgets([own, 2.0], [0.0, 0.0])
    with pytest.raises(InvalidInput, match=r"own epsilon is 1\.\d+, above a stated epsilon0 of 0\.5"):
        channel.check_budgets([2.0, 0.5], [0.0, 0.0])
    with pytest.raises(InvalidInput, match=r"own epsilon is 1\.\d+, above a stated epsilon0 of 0\.5"):
        Setting(Budgets.of([0.5] * 5), channel, "reports", "replace-one")
    needed = channel.divergence(0.5)
    channel.check_budgets([0.5], [needed])
    with pytest.raises(
        InvalidInput, match=r"needs delta0 of at least 0\.\d+ at epsilon0 = 0\.5, above the stated 0\.1;"
    ):
        channel.check_budgets([own, 0.5], [0.0, 0.1])


def test_leaky_channels_need_a_delta0():
    channel = Channel(LEAKY)
    needed = channel.divergence(1.0)
    assert needed == pytest.approx(0.25, rel=1e-14)
    channel.check_budgets([1.0], [needed])
    with pytest.raises(
        InvalidInput, match=r"own epsilon is inf, above a stated epsilon0 of 1\.0; an output that is possible"
    ):
        channel.check_budgets([1.0], [0.0])
    with pytest.raises(InvalidInput, match=r"needs delta0 of at least 0\.25"):
        channel.check_budgets([1.0], [0.2])


def test_names_and_protocol():
    channel = Channel(DYADIC)
    assert channel.name == "channel"
    assert isinstance(channel, RandomizerLaw)
    assert (channel.mixture, channel.two_point, channel.pair_counts(1.0)) == (True, False, None)
    assert channel == Channel(np.array(DYADIC))
    assert hash(channel) == hash(Channel(DYADIC))
    assert channel != Channel(LEAKY)
    assert channel != "channel"
    assert Setting(Budgets.of([2.0] * 5), channel, "reports", "replace-one").is_plain
    assert channel.blanket_mass(np.zeros((2, 3))).shape == (2, 3)


def test_the_given_array_is_neither_kept_nor_changed():
    matrix = np.array(DYADIC)
    channel = Channel(matrix)
    matrix[0] = 0.25
    assert channel.matrix.tolist() == DYADIC


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([0.5, 0.5], "two-dimensional matrix of numbers; got shape"),
        ([[[0.5, 0.5]]], "two-dimensional"),
        ([[0.5, 0.5], [1.0]], "rows of one length"),
        ([["a", "b"], ["c", "d"]], "matrix of numbers"),
        ([[0.5 + 0j, 0.5], [0.5, 0.5]], "matrix of numbers"),
        ([[0.5, 0.5]], "at least two rows"),
        (np.zeros((3, 0)), "at least two rows"),
        ([[0.5, 0.5], [math.nan, 1.0]], "row 2 of the channel has the entry nan"),
        ([[0.5, 0.5], [math.inf, 1.0]], "row 2 of the channel has the entry inf"),
        ([[1.5, -0.5], [0.5, 0.5]], "row 1 of the channel has the entry -0.5"),
        ([[0.5, 0.5], [0.5, 0.4]], "row 2 of the channel sums to 0.9"),
        ([[0.5, 0.5 + 2e-9], [0.5, 0.5]], "row 1 of the channel sums to 1.000000002"),
        (np.full((1000, 1000), 1e-3), "1000 records and 1000 outputs needs more than 2000000"),
    ],
)
def test_bad_matrices(matrix, message):
    with pytest.raises(InvalidInput, match=message):
        Channel(matrix)


def test_bad_budgets():
    for epsilon0, message in laws.NOT_BUDGETS:
        for ask in (Channel(DYADIC).pair_blankets, Channel(DYADIC).blanket_mass, Channel(DYADIC).divergence):
            with pytest.raises(InvalidInput, match=message):
                ask(epsilon0)


def test_from_csv(tmp_path):
    path = tmp_path / "channel.csv"
    path.write_text("\ufeff0.5, 0.25 ,2.5e-1\n0.25,0.5,0.25\n\n", encoding="utf-8")
    assert Channel.from_csv(path) == Channel([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]])
    assert Channel.from_csv(str(path)).name == "channel"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n0.5,0.5\n", r"line 1: 'a' is not a number; .* no header"),
        ("0.5,0.5\n0.5;0.5\n", "line 2: '0.5;0.5' is not a number"),
        ("0.5,0.5\n\n0.5,0.5\n", "line 2: '' is not a number"),
        ("0.5,0.5\n0.5,0.25,0.25\n", "line 2 has 3 numbers; line 1 has 2"),
        ("0.5,0.5\n0.5,0.4\n", "row 2 of the channel sums to 0.9"),
        ("0.5,0.5\nnan,0.5\n", "row 2 of the channel has the entry nan"),
        ("", "at least two rows"),
    ],
)
def test_bad_files(tmp_path, text, message):
    path = tmp_path / "channel.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match=message) as caught:
        Channel.from_csv(path)
    assert str(path) in str(caught.value)


def test_unreadable_files(tmp_path):
    with pytest.raises(InvalidInput, match="cannot be read"):
        Channel.from_csv(tmp_path / "none.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInput, match="cannot be read"):
        Channel.from_csv(tmp_path / "binary.csv")
