"""The reports of one user over several rounds, taken together as one report (docs/theorems/linked.md); memoised ones.

Chances are whole numbers or decimals of 60 digits until they are rounded once: an exponent of hundreds of nats would
cost a double its last digits, and products of hundreds of chances would underflow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import MAX_EPSILON0, InvalidInput, local_budgets, shown
from shuffledp.numerics.floats import LEAST_MASS, FloatArray, round_down, round_up
from shuffledp.randomizers.base import CellSpread, PairBlanket, PairCounts, ReportSets

_DIGITS = 60
_LOSS_ULPS = 2
"""Relative error, in ulps, of losses: multiples of a budget, rounded once, or logarithms of decimals."""
_MOST_CELLS = 400
"""Number of cells of a law above which it is stated with its (degenerate) spread, so that values may be merged."""
"""Masses below would be subnormal: omega lacks the cell."""
_RARE = Decimal("1e-250")
_MOST_THIRD = 100
"""Largest number of rounds for which the attack on categories also tries others who hold a third category."""
Cell = tuple[Decimal, Decimal, Decimal, float]
"""The omega-mass of a cell, the masses of R(x0) and R(x1) in it, and log(R(x0)/R(x1))."""


class _Bundle:
    """What all linked reports have in common as a family of randomizers."""

    mixture = True
    two_point = False

    def check_budgets(self, epsilon0: ArrayLike, delta0: ArrayLike) -> None:
        """Budgets are those of a single report and have been checked."""
        del epsilon0, delta0

    def pair_counts(self, epsilon0: ArrayLike) -> PairCounts | None:
        """Return None: the attack on linked reports is not a count of two outcomes, see `witness_pairs`."""
        del epsilon0


@dataclass(frozen=True)
class ChangingRecords(_Bundle):
    """The law of one user's reports of ``rounds`` linked rounds, whose record may change from round to round.

    Linked reports are known to come from one user, so they are taken together as one report.

    Parameters
    ----------
    sets : ReportSets
        Size and overlap of the sets of likely reports of a single report.
    rounds : int
        Number of rounds, at least 1.
    constant : bool
        Whether the two record sequences of the victim (the user whose privacy is analysed) differ in all rounds, as
        they do if records do not change.
    """

    sets: ReportSets
    rounds: int
    constant: bool = False

    @property
    def name(self) -> str:
        """Name of this law in messages, such as ``"12 linked reports"``."""
        return f"{self.rounds} linked reports"

    def blanket_mass(self, epsilon0: ArrayLike) -> FloatArray:
        """Return the blanket mass, the chance that no report of a user depends on her record, at each budget.

        It is (q/(e^epsilon0 + q - 1))^rounds, q = `ReportSets.one_in`; epsilon0 (nats) is that of a single report.
        """
        budgets = np.asarray(epsilon0, dtype=np.float64)
        return np.array([self._gamma(e) for e in budgets.ravel().tolist()]).reshape(budgets.shape)

    def pair_blankets(self, epsilon0: float) -> tuple[PairBlanket, ...]:
        """Return pairs of record sequences that differ in all rounds, in all but one, ..., in one, against the blanket.

        Parameters
        ----------
        epsilon0 : float
            Local budget of a single report, nats.
        """
        return _changing_pairs(self.sets, self.rounds, epsilon0, self._gamma(epsilon0), self.constant)

    def witness_pairs(self, epsilon0: float) -> tuple[PairBlanket, PairBlanket] | None:
        """Return None: the attack is made on records that do not change, by `SameRecord`."""
        del epsilon0

    def _gamma(self, epsilon0: float) -> float:
        with localcontext(prec=_DIGITS):
            q = self.sets.one_in
            return float((q / (Decimal(epsilon0).exp() + (q - 1))) ** self.rounds)


@lru_cache(maxsize=64)
def _changing_pairs(
    sets: ReportSets, rounds: int, epsilon0: float, gamma: float, constant: bool
) -> tuple[PairBlanket, ...]:
    """Pairs against omega uniform: r_b = gamma E^(rounds in which the report lies in the set of record b)."""
    powers = _powers(epsilon0, rounds)
    pairs: list[PairBlanket] = []
    for differing in range(rounds, rounds - 1 if constant else 0, -1):
        counts, total = _hits(sets, rounds, differing)
        first, second = np.nonzero(counts)
        masses = np.array([count / total for count in counts[first, second]])  # whole numbers, rounded once
        ratios0, ratios1 = gamma * powers[first], gamma * powers[second]
        losses = (first - second).astype(np.float64) * epsilon0
        pairs.append(_pair(gamma, masses, ratios0, ratios1, losses, ([], [])))
    return tuple(pairs)


@lru_cache(maxsize=128)
def _hits(sets: ReportSets, rounds: int, differing: int) -> tuple[NDArray[Any], int]:
    """Count output sequences by the rounds in which they lie in the sets of x0 and of x1; and all sequences.

    In the other rounds both records are the same one.
    """
    q = sets.one_in
    if sets.disjoint:
        apart, outputs = {(1, 0): 1, (0, 1): 1, (0, 0): q - 2}, q
    else:
        apart, outputs = {(1, 1): 1, (1, 0): q - 1, (0, 1): q - 1, (0, 0): (q - 1) ** 2}, q * q
    counts = np.zeros((rounds + 1, rounds + 1), dtype=object)
    counts[0, 0] = 1
    size = rounds + 1
    for _ in range(differing):
        following = np.zeros_like(counts)
        for (up, right), weight in apart.items():
            if weight:
                following[up:, right:] += weight * counts[: size - up, : size - right]
        counts = following
    together = np.zeros_like(counts)
    alike = rounds - differing
    for hits in range(alike + 1):
        weight = math.comb(alike, hits) * (q - 1) ** (alike - hits)
        together[hits:, hits:] += weight * counts[: size - hits, : size - hits]
    return together, outputs**differing * q**alike


@dataclass(frozen=True)
class SameRecord(_Bundle):
    """The law of one user's linked reports of one unchanging record by k-ary randomized response, as counts.

    The *type* of the reports of ``rounds`` rounds is how often each category was reported; it is taken as one report.

    Parameters
    ----------
    k : int
        Number of categories.
    rounds : int
        Number of rounds, at least 1.
    reference : float
        Local budget of a single report (nats) that defines the common blanket: omega(type) is proportional to the
        smallest chance, over records, that a user of that budget reports the type.
    thirds : bool
        Whether the other users of an attack may hold a third category.
    """

    k: int
    rounds: int
    reference: float
    thirds: bool = True

    @property
    def name(self) -> str:
        """Name of this law in messages, such as ``"12 linked reports of one record"``."""
        return f"{self.rounds} linked reports of one record"

    def blanket_mass(self, epsilon0: ArrayLike) -> FloatArray:
        """Return the blanket mass gamma at each budget epsilon0 (nats) of a single report, in its shape.

        It is the least, over types, of the smallest chance of the type over records, divided by omega of the type.
        """
        budgets = np.asarray(epsilon0, dtype=np.float64)
        return np.array([self._gamma(e) for e in budgets.ravel().tolist()]).reshape(budgets.shape)

    def _gamma(self, epsilon0: float) -> float:
        with localcontext(prec=_DIGITS):
            ratio = (Decimal(epsilon0) - Decimal(self.reference)).exp() ** (self.rounds // self.k)
            return min(float(self._whole * self._wrong(epsilon0) * min(ratio, Decimal(1))), 1.0)

    def _wrong(self, epsilon0: float) -> Decimal:
        """Chance of any given sequence of reports none of which is the record."""
        return 1 / (Decimal(epsilon0).exp() + (self.k - 1)) ** self.rounds

    @cached_property
    def _powers(self) -> list[Decimal]:
        return _exact_powers(self.reference, self.rounds)

    @cached_property
    def _whole(self) -> Decimal:
        with localcontext(prec=_DIGITS):
            return sum((n * self._powers[least] for (_, _, least), n in _types(self.k, self.rounds)), Decimal(0))

    def pair_blankets(self, epsilon0: float) -> tuple[PairBlanket, ...]:
        """Return the pair of any two categories relative to the blanket; by symmetry one pair serves for all.

        Parameters
        ----------
        epsilon0 : float
            Local budget of a single report of the victim, nats.
        """
        return (_same_pair(self, epsilon0),)

    def cells(self, epsilon0: float) -> Iterable[Cell]:
        """Return the types of one user's reports as cells: masses under omega, x0 and x1, and the privacy loss (nats).

        Types with equal ratios are merged. epsilon0 is the local budget of a single report, in nats.
        """
        own, wrong = _exact_powers(epsilon0, self.rounds), self._wrong(epsilon0)
        summed: dict[tuple[int, int, int], Decimal] = {}
        for (right, other, least), n in _types(self.k, self.rounds):
            at = (right - least, other - least, 0 if epsilon0 == self.reference else least)
            summed[at] = summed.get(at, Decimal(0)) + n * self._powers[least]
        for (right, other, least), weight in summed.items():
            share = weight * wrong  # times E^least / E_reference^least, which is 1 where types were merged
            if least:
                share *= own[least] / self._powers[least]
            yield weight / self._whole, share * own[right], share * own[other], (right - other) * epsilon0

    def witness_pairs(self, epsilon0: float) -> tuple[PairBlanket, PairBlanket] | None:
        """Return the stronger of two attacks on a category against another one, in both orders.

        In the attacks all other users hold the second category, or a third one.

        Parameters
        ----------
        epsilon0 : float
            Local budget of a single report, nats, the same for all.
        """
        with localcontext(prec=_DIGITS):
            best = attacks(_two_categories(self.k, self.rounds, epsilon0))
            if self.k > 2 and self.thirds and self.rounds <= _MOST_THIRD:
                third = attacks(_three_categories(self.k, self.rounds, epsilon0))
                best = max(best, third, key=lambda pairs: _apart(pairs[0]))
        return best


@lru_cache(maxsize=64)
def _same_pair(bundle: SameRecord, epsilon0: float) -> PairBlanket:
    with localcontext(prec=_DIGITS):
        gamma = float(bundle.blanket_mass(epsilon0))
        return from_cells(gamma, bundle.cells(epsilon0))


def from_cells(gamma: float, cells: Iterable[Cell]) -> PairBlanket:
    """Return the pair of records with the given exact cells; cells of negligible omega-mass are listed as left out.

    Parameters
    ----------
    gamma : float
        Blanket mass gamma, to a few ulps.
    cells : iterable of Cell
        Masses of omega, R(x0) and R(x1), and the loss, for each group of outputs.
    """
    kept: list[tuple[float, float, float, float]] = []
    left: tuple[list[float], list[float]] = [], []
    for mass, chance0, chance1, loss in cells:
        if float(mass) < LEAST_MASS:
            left[0].append(round_up(float(chance0)))
            left[1].append(round_up(loss, _LOSS_ULPS))
        else:
            kept.append((float(mass), float(chance0 / mass), float(chance1 / mass), loss))
    masses, ratios0, ratios1, losses = np.array(kept).reshape(len(kept), 4).T.copy()
    return _pair(gamma, masses, ratios0, ratios1, losses, left)


def _pair(
    gamma: float,
    masses: FloatArray,
    ratios0: FloatArray,
    ratios1: FloatArray,
    losses: FloatArray,
    left: tuple[list[float], list[float]],
) -> PairBlanket:
    if masses.size <= _MOST_CELLS and not left[0]:
        return PairBlanket(gamma, masses, ratios0, ratios1, losses, None, _LOSS_ULPS)
    spread = CellSpread(
        *(round_down(ratios0, 8), round_up(ratios0, 8)),
        *(round_down(losses, _LOSS_ULPS), round_up(losses, _LOSS_ULPS)),
        *(np.array(left[0]), np.array(left[1])),
    )
    return PairBlanket(gamma, masses, ratios0, ratios1, losses, spread, _LOSS_ULPS)


def _exact_powers(epsilon0: float, most: int) -> list[Decimal]:
    """E^0, ..., E^most to 60 digits."""
    with localcontext(prec=_DIGITS):
        return [(Decimal(epsilon0) * power).exp() for power in range(most + 1)]


def _powers(epsilon0: float, most: int) -> FloatArray:
    return np.array([float(power) for power in _exact_powers(epsilon0, most)])


@lru_cache(maxsize=16)
def _types(k: int, rounds: int) -> list[tuple[tuple[int, int, int], int]]:
    """Count sequences of reports by (reports of category 0, of category 1, reports of the rarest category)."""
    if k == 2:
        split = [(ones, rounds - ones) for ones in range(rounds + 1)]
        return [((*both, min(both)), ways) for both, ways in zip(split, _choices(rounds), strict=True)]
    types: list[tuple[tuple[int, int, int], int]] = []
    others = [_at_least(k - 2, least, rounds) for least in range(rounds // k + 2)] if k > 3 else []
    for first, choose_first in enumerate(_choices(rounds)):
        for second, choose_second in enumerate(_choices(rounds - first)):
            chosen, rest, fewest = choose_first * choose_second, rounds - first - second, min(first, second)
            if k == 3:  # one other category, which has all the rest
                types.append(((first, second, min(fewest, rest)), chosen))
                continue
            for least in range(min(fewest, rest // (k - 2)) + 1):
                ways = others[least][rest]
                if least < fewest:  # then one of the others has exactly that many
                    ways -= others[least + 1][rest]
                if ways:
                    types.append(((first, second, least), chosen * ways))
    return types


def _choices(n: int) -> list[int]:
    """Binomial coefficients of n over 0, ..., n."""
    return list(accumulate(range(n), lambda ways, j: ways * (n - j) // (j + 1), initial=1))


def _at_least(boxes: int, least: int, most: int) -> list[int]:
    """Count the ways to put r = 0..most things into so many boxes, one or more, with at least ``least`` in each."""
    single = [int(size >= least) for size in range(most + 1)]
    total: list[int] | None = None
    while True:
        if boxes & 1:
            total = single if total is None else _joined(total, single)
        boxes >>= 1
        if not boxes:
            return total or []
        single = _joined(single, single)


def _joined(one: list[int], two: list[int]) -> list[int]:
    return [
        sum(math.comb(size, part) * one[part] * two[size - part] for part in range(size + 1) if one[part])
        for size in range(len(one))
    ]


def _two_categories(k: int, rounds: int, epsilon0: float) -> Iterable[Cell]:
    """Cells of the attack on category 0 against 1 while the others hold 1: how far 0 was reported more than 1."""
    own, wrong = _exact_powers(epsilon0, rounds), 1 / (Decimal(epsilon0).exp() + (k - 1)) ** rounds
    summed: dict[int, Decimal] = {}
    for first, choose_first in enumerate(_choices(rounds)):
        for second, choose_second in enumerate(_choices(rounds - first)) if k > 2 else ((rounds - first, 1),):
            ways = choose_first * choose_second * (k - 2) ** (rounds - first - second)
            summed[first - second] = summed.get(first - second, Decimal(0)) + ways * own[second] * wrong
    for more, mass in summed.items():
        ratio = own[more] if more >= 0 else 1 / own[-more]
        yield mass, mass * ratio, mass, more * epsilon0


def _three_categories(k: int, rounds: int, epsilon0: float) -> Iterable[Cell]:
    """Cells of the attack on category 0 against 1 while the others hold 2."""
    own, wrong = _exact_powers(epsilon0, rounds), 1 / (Decimal(epsilon0).exp() + (k - 1)) ** rounds
    summed: dict[tuple[int, int], Decimal] = {}
    for first in range(rounds + 1):
        for second in range(rounds - first + 1):
            left = rounds - first - second
            chosen = math.comb(rounds, first) * math.comb(rounds - first, second)
            for third in range(left + 1) if k > 3 else (left,):
                ways = chosen * math.comb(left, third) * (k - 3) ** (left - third)
                at = first - third, second - third
                summed[at] = summed.get(at, Decimal(0)) + ways * own[third] * wrong
    signed = own + [1 / power for power in own[:0:-1]]  # signed[-d] = E^-d
    for (one, two), mass in summed.items():
        yield mass, mass * signed[one], mass * signed[two], (one - two) * epsilon0


def attacks(cells: Iterable[Cell]) -> tuple[PairBlanket, PairBlanket]:
    """Return an attack on records x0, x1 and its mirror image, as laws relative to the report of another user.

    Rare cells are merged into one, which an attacker may do.

    Parameters
    ----------
    cells : iterable of Cell
        Chances under the other users' record, under x0 and under x1, and the loss log(R(x0)/R(x1)).
    """
    ordered = sorted(cells, key=lambda cell: cell[0])
    rare = sum(cell[0] < _RARE for cell in ordered)
    if rare:
        few = ordered[: rare + 1]
        mass, one, two = (sum(chances, Decimal(0)) for chances in list(zip(*few, strict=True))[:3])
        ordered = [(mass, one, two, float((one / two).ln())), *ordered[rare + 1 :]]
    mirrored = [(mass, chance1, chance0, -loss) for mass, chance0, chance1, loss in ordered]
    return from_cells(1.0, ordered), from_cells(1.0, mirrored)


def _apart(pair: PairBlanket) -> float:
    """E_omega (r_0 - r_1)^2; infinite beyond double range."""
    with np.errstate(over="ignore"):
        return float(pair.masses @ (pair.ratios0 - pair.ratios1) ** 2)


# Memoised reports: a noisy report drawn once (the memo) and sent in every round, with or without fresh noise.


@dataclass(frozen=True)
class Memoised:
    """Reports of one bit made in every round from one permanent report, the memo.

    Each user draws the memo once, by binary randomized response of her record with the permanent budget, keeps it, and
    sends it in every round; if ``fresh`` is stated, she sends randomized response of the memo with that budget, drawn
    anew in each round. Her reports of all rounds together are (permanent)-LDP. The library accounts for such reports
    (docs/theorems/linked.md) and does not draw them.

    Parameters
    ----------
    permanent : float
        Budget of the memo, nats, above 0 and at most 700.
    fresh : float, optional
        Budget of the noise of each round, nats, above 0 and at most 700; None, the default, if the memo itself is sent.

    Raises
    ------
    InvalidInput
        If a budget is out of range.

    Examples
    --------
    >>> memoised = Memoised(2.0, fresh=1.0)
    >>> memoised.name, memoised.rows(1)[1].round(4).tolist()
    ('memoised:2:1', [0.324, 0.676])
    """

    permanent: float
    fresh: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "permanent", _budget("permanent", self.permanent))
        if self.fresh is not None:
            object.__setattr__(self, "fresh", _budget("fresh", self.fresh))

    @property
    def name(self) -> str:
        """Name of the family on the command line: ``"memoised:E"``, or ``"memoised:E:E_FRESH"`` with fresh noise."""
        return f"memoised:{self.permanent:.17g}" + ("" if self.fresh is None else f":{self.fresh:.17g}")

    @property
    def mixture(self) -> bool:
        """Whether one privacy blanket serves every budget: True, all draw reports alike whatever the stated budget."""
        return True

    @property
    def two_point(self) -> bool:
        """Whether records differ on two outcomes with the chances of the stated budget: False, the chances differ."""
        return False

    def check_budgets(self, epsilon0: ArrayLike, delta0: ArrayLike) -> None:
        """Raise InvalidInput if a stated local budget is below the permanent budget of the memo.

        Parameters
        ----------
        epsilon0, delta0 : array_like
            Local budgets of all rounds together: epsilon0 in nats; delta0 is not used.

        Raises
        ------
        InvalidInput
            If a budget is below; the message names the first one.
        """
        del delta0
        budgets = local_budgets(epsilon0).ravel()
        small = budgets[budgets < self.permanent]
        if small.size:
            raise InvalidInput(
                f"every epsilon0 must be at least {shown(self.permanent)}, the budget with which the memo is drawn; "
                f"got {shown(float(small[0]))}"
            )

    def rows(self, rounds: int) -> FloatArray:
        """Return the chances of 0, 1, ..., ``rounds`` ones among the reports, for record 0 and for record 1.

        Parameters
        ----------
        rounds : int
            Number of rounds, at least 1.

        Returns
        -------
        ndarray, shape (2, rounds + 1), or (2, 2) if the memo itself is sent
            Row x is the law for record x.
        """
        both = np.array([[float(mass0), float(mass1)] for mass0, mass1, _ in _memo_types(self, rounds)]).T
        return np.ascontiguousarray(both)

    def together(self, rounds: int) -> LinkedMemo:
        """Return the law of a user's reports of `rounds` rounds, taken together as one report.

        Parameters
        ----------
        rounds : int
            Number of rounds, at least 1.
        """
        return LinkedMemo(self, rounds)

    def pair_blankets(self, epsilon0: float) -> tuple[PairBlanket, ...]:
        """Return the pair of records 0 and 1 in a single round, relative to the blanket; epsilon0 is not used."""
        return self.together(1).pair_blankets(epsilon0)

    def blanket_mass(self, epsilon0: ArrayLike) -> FloatArray:
        """Return the blanket mass gamma of a single round, the same at every budget, in the shape of epsilon0."""
        return self.together(1).blanket_mass(epsilon0)

    def pair_counts(self, epsilon0: ArrayLike) -> PairCounts | None:
        """Return None: there are two records only, so no third record exists."""
        del epsilon0

    def witness_pairs(self, epsilon0: float) -> tuple[PairBlanket, PairBlanket] | None:
        """Return the attack on records 0 and 1 among users of record 1, in one round, in both directions."""
        return self.together(1).witness_pairs(epsilon0)


def _budget(name: str, value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0.0 < value <= MAX_EPSILON0:
        return float(value)
    raise InvalidInput(f"{name} must be a budget above 0, at most {MAX_EPSILON0:g} nats; got {shown(value)}")


@dataclass(frozen=True)
class LinkedMemo:
    """The law of all reports of several rounds made from one memo: their number of ones, as one report.

    Parameters
    ----------
    law : Memoised
        The randomizer of a single round.
    rounds : int
        Number of rounds, at least 1.
    """

    law: Memoised
    rounds: int

    mixture = True
    two_point = False

    @property
    def permanent(self) -> float:
        """Local budget of the memo, in nats, which covers all rounds."""
        return self.law.permanent

    @property
    def name(self) -> str:
        """Name of the randomizer of a single round, as the command line spells it."""
        return self.law.name

    def check_budgets(self, epsilon0: ArrayLike, delta0: ArrayLike) -> None:
        """Raise InvalidInput if a local budget (nats) is below the memo's budget, which covers all rounds."""
        self.law.check_budgets(epsilon0, delta0)

    def pair_blankets(self, epsilon0: float) -> tuple[PairBlanket, ...]:
        """Return the pair of records 0 and 1 relative to the blanket; its mirror image is the same."""
        del epsilon0
        return (_memo_pair(self.law, self.rounds),)

    def blanket_mass(self, epsilon0: ArrayLike) -> FloatArray:
        """Return gamma, the sum over outcomes of the smaller chance of two records, in the shape of epsilon0."""
        return np.full(np.shape(epsilon0), _memo_pair(self.law, self.rounds).gamma)

    def pair_counts(self, epsilon0: ArrayLike) -> PairCounts | None:
        """Return None: there are two records only, so no third record exists."""
        del epsilon0

    def witness_pairs(self, epsilon0: float) -> tuple[PairBlanket, PairBlanket] | None:
        """Return the attack on records 0 and 1 among users of record 1, in both directions."""
        del epsilon0
        with localcontext(prec=_DIGITS):
            return attacks([(mass1, mass0, mass1, loss) for mass0, mass1, loss in _memo_types(self.law, self.rounds)])


@lru_cache(maxsize=64)
def _memo_pair(law: Memoised, rounds: int) -> PairBlanket:
    with localcontext(prec=_DIGITS):
        types = _memo_types(law, rounds)
        gamma = sum((min(mass0, mass1) for mass0, mass1, _ in types), Decimal(0))
        cells: Iterable[Cell] = [(min(mass0, mass1) / gamma, mass0, mass1, loss) for mass0, mass1, loss in types]
        return from_cells(float(gamma), cells)


@lru_cache(maxsize=64)
def _memo_types(law: Memoised, rounds: int) -> list[tuple[Decimal, Decimal, float]]:
    """Return chances of each number of ones under record 0 and record 1, and the logarithm of their ratio."""
    with localcontext(prec=_DIGITS):
        right = 1 / (1 + (-Decimal(law.permanent)).exp())
        wrong = 1 / (1 + Decimal(law.permanent).exp())
        if law.fresh is None:
            return [(right, wrong, law.permanent), (wrong, right, -law.permanent)]
        sent, flipped = 1 / (1 + (-Decimal(law.fresh)).exp()), 1 / (1 + Decimal(law.fresh).exp())
        types: list[tuple[Decimal, Decimal, float]] = []
        for ones in range(rounds + 1):
            ways, zeros = math.comb(rounds, ones), rounds - ones
            if1 = ways * sent**ones * flipped**zeros  # the memo is 1
            if0 = ways * flipped**ones * sent**zeros
            mass0, mass1 = right * if0 + wrong * if1, wrong * if0 + right * if1
            loss = 0.0 if 2 * ones == rounds else float((mass0 / mass1).ln())
            types.append((mass0, mass1, loss))
        return types
