"""A report drawn once and sent again in every round, with or without fresh noise on top."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.interval import FloatArray
from shuffledp.randomizers.base import PairBlanket, PairCounts
from shuffledp.randomizers.checks import local_budgets
from shuffledp.randomizers.linked import Cell, attacks, from_cells

_DIGITS = 60
_LARGEST = 700.0


@dataclass(frozen=True)
class Memoised:
    """Reports of one bit made from one permanent report, the memo, in every round.

    Each user draws the memo once, by randomized response of her record with the permanent budget, keeps it, and sends
    it in every round; if ``fresh`` is stated, she sends randomized response of the memo with that budget, drawn anew
    in each round. Her reports of all rounds together are (permanent)-LDP. The library accounts for such reports
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
        """``"memoised:E"``, or ``"memoised:E:E_FRESH"``."""
        return f"memoised:{self.permanent:.17g}" + ("" if self.fresh is None else f":{self.fresh:.17g}")

    @property
    def mixture(self) -> bool:
        """True: everybody draws reports alike, whatever the stated budget, so one blanket serves all."""
        return True

    @property
    def two_point(self) -> bool:
        """False: two reports, but not with the chances of the stated budget."""
        return False

    def check_budgets(self, epsilon0: ArrayLike, delta0: ArrayLike) -> None:
        """Refuse a stated budget below the permanent one.

        Parameters
        ----------
        epsilon0, delta0 : array_like
            The local budgets, which speak of all rounds together.

        Raises
        ------
        InvalidInput
            Naming the first such budget.
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
        """Chances of 0, 1, ..., ``rounds`` ones among the reports of a record 0, and of a record 1.

        Parameters
        ----------
        rounds : int
            Number of rounds, at least 1.

        Returns
        -------
        ndarray, shape (2, rounds + 1), or (2, 2) if the memo itself is sent
        """
        both = np.array([[float(mass0), float(mass1)] for mass0, mass1, _ in _types(self, rounds)]).T
        return np.ascontiguousarray(both)

    def together(self, rounds: int) -> LinkedMemo:
        """Return the reports of so many rounds as one report.

        Parameters
        ----------
        rounds : int
            Number of rounds, at least 1.
        """
        return LinkedMemo(self, rounds)

    def pair_blankets(self, epsilon0: float) -> tuple[PairBlanket, ...]:
        """Record 0 against record 1 in a single round; see `RandomizerLaw`."""
        return self.together(1).pair_blankets(epsilon0)

    def blanket_mass(self, epsilon0: ArrayLike) -> FloatArray:
        """Gamma of a single round, the same at every budget; see `RandomizerLaw`."""
        return self.together(1).blanket_mass(epsilon0)

    def pair_counts(self, epsilon0: ArrayLike) -> PairCounts | None:
        """None: there is no third record."""
        del epsilon0

    def witness_pairs(self, epsilon0: float) -> tuple[PairBlanket, PairBlanket] | None:
        """Record 0 against record 1 among others of record 1, in a single round; see `RandomizerLaw`."""
        return self.together(1).witness_pairs(epsilon0)


def _budget(name: str, value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0.0 < value <= _LARGEST:
        return float(value)
    raise InvalidInput(f"{name} must be a budget above 0, at most {_LARGEST:g} nats; got {shown(value)}")


@dataclass(frozen=True)
class LinkedMemo:
    """The reports of several rounds made from one memo, as one report: how many of them are ones.

    Parameters
    ----------
    law : Memoised
        A single round.
    rounds : int
        Number of rounds, at least 1.
    """

    law: Memoised
    rounds: int

    mixture = True
    two_point = False

    @property
    def permanent(self) -> float:
        """The budget of the memorized report."""
        return self.law.permanent

    @property
    def name(self) -> str:
        """The name of the underlying one-round law."""
        return self.law.name

    def check_budgets(self, epsilon0: ArrayLike, delta0: ArrayLike) -> None:
        """As of a single round: the memo's budget covers all rounds."""
        self.law.check_budgets(epsilon0, delta0)

    def pair_blankets(self, epsilon0: float) -> tuple[PairBlanket, ...]:
        """Record 0 against record 1; the mirror image is the same."""
        del epsilon0
        return (_pair(self.law, self.rounds),)

    def blanket_mass(self, epsilon0: ArrayLike) -> FloatArray:
        """Sum of the smaller chance of each type, the same at every budget."""
        return np.full(np.shape(epsilon0), _pair(self.law, self.rounds).gamma)

    def pair_counts(self, epsilon0: ArrayLike) -> PairCounts | None:
        """None: there is no third record."""
        del epsilon0

    def witness_pairs(self, epsilon0: float) -> tuple[PairBlanket, PairBlanket] | None:
        """Record 0 against record 1 among others of record 1, in both directions."""
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
