"""Memoised reports: a noisy report drawn once (the memo) and sent in every round, with or without fresh noise."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.checks import local_budgets
from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.interval import FloatArray
from shuffledp.randomizers.base import PairBlanket, PairCounts
from shuffledp.randomizers.linked import Cell, attacks, from_cells

_DIGITS = 60
_LARGEST = 700.0


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
                f"the memo is drawn with budget {shown(self.permanent)}, above a stated epsilon0 of "
                f"{shown(float(small[0]))}; state at least that"
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
        both = np.array([[float(mass0), float(mass1)] for mass0, mass1, _ in _types(self, rounds)]).T
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
    if isinstance(value, int | float) and not isinstance(value, bool) and 0.0 < value <= _LARGEST:
        return float(value)
    raise InvalidInput(f"{name} must be a budget above 0, at most {_LARGEST:g} nats; got {shown(value)}")


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
        return (_pair(self.law, self.rounds),)

    def blanket_mass(self, epsilon0: ArrayLike) -> FloatArray:
        """Return gamma, the sum over outcomes of the smaller chance of two records, in the shape of epsilon0."""
        return np.full(np.shape(epsilon0), _pair(self.law, self.rounds).gamma)

    def pair_counts(self, epsilon0: ArrayLike) -> PairCounts | None:
        """Return None: there are two records only, so no third record exists."""
        del epsilon0

    def witness_pairs(self, epsilon0: float) -> tuple[PairBlanket, PairBlanket] | None:
        """Return the attack on records 0 and 1 among users of record 1, in both directions."""
        del epsilon0
        with localcontext(prec=_DIGITS):
            return attacks([(mass1, mass0, mass1, loss) for mass0, mass1, loss in _types(self.law, self.rounds)])


@lru_cache(maxsize=64)
def _pair(law: Memoised, rounds: int) -> PairBlanket:
    with localcontext(prec=_DIGITS):
        types = _types(law, rounds)
        gamma = sum((min(mass0, mass1) for mass0, mass1, _ in types), Decimal(0))
        cells: Iterable[Cell] = [(min(mass0, mass1) / gamma, mass0, mass1, loss) for mass0, mass1, loss in types]
        return from_cells(float(gamma), cells)


@lru_cache(maxsize=64)
def _types(law: Memoised, rounds: int) -> list[tuple[Decimal, Decimal, float]]:
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
