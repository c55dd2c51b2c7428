"""What questions about a number in a known range share, and which family answers under which name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput
from shuffledp.numerics.interval import FloatArray
from shuffledp.questions.question import Question
from shuffledp.questions.view import Numbers, Picture, View
from shuffledp.randomizers.base import NoiseLaw, NumberRandomizer, RandomizerLaw
from shuffledp.randomizers.checks import check_choice, real_range
from shuffledp.randomizers.noise import Gaussian, Laplace
from shuffledp.randomizers.numeric import Hybrid, OneBit, Piecewise
from shuffledp.records.columns import Recode, bounded_numbers
from shuffledp.setting import Seen

# Which family answers a question about a number by which name.

NUMBER_SEEN: tuple[Seen, ...] = ("reports", "levels", "sum")


class DiscreteNumbers(NumberRandomizer, RandomizerLaw, Protocol):
    """Randomizes numbers, and states a discrete law."""


class NoisyNumbers(NumberRandomizer, NoiseLaw, Protocol):
    """Randomizes numbers by added noise."""


KnownNumbers = DiscreteNumbers | NoisyNumbers
"""Randomizes numbers by a law that the accountant knows."""


Choose = Callable[[float, float, Budgets, Seen], KnownNumbers]


def _fixed(family: Callable[[float, float], KnownNumbers]) -> Choose:
    return lambda low, high, budgets, seen: family(low, high)


def _shaped(family: type[Piecewise] | type[Hybrid]) -> Choose:
    def choose(low: float, high: float, budgets: Budgets, seen: Seen) -> KnownNumbers:
        plain = family(low, high)
        return plain if seen == "levels" else plain.for_budgets(budgets.epsilons, budgets.counts)

    return choose


NUMBER_MECHANISMS: Mapping[str, Choose] = MappingProxyType(
    {
        "one-bit": _fixed(OneBit),
        "laplace": _fixed(Laplace),
        "gaussian": _fixed(Gaussian),
        "piecewise": _shaped(Piecewise),
        "hybrid": _shaped(Hybrid),
    }
)
"""Families over a range of numbers, by the names that `estimate_mean` and the command line use."""


ADDED_NOISE = ("laplace", "gaussian")


def number_randomizer(mechanism: str, low: float, high: float, budgets: Budgets, seen: Seen) -> KnownNumbers:
    """Return the family of that name, its shape chosen for the population.

    Parameters
    ----------
    mechanism : str
        A key of `NUMBER_MECHANISMS`.
    low, high : float
        The range.
    budgets : Budgets
        The population. Where levels are withheld, the shape of the reports is one for all, so that users hide each
        other across budgets.
    seen : {"reports", "levels", "sum"}
        Who sees what.

    Raises
    ------
    InvalidInput
        If there is no such family, or the range is bad.

    Examples
    --------
    >>> number_randomizer("piecewise", 0.0, 1.0, Budgets.of([1.0, 1.0]), "reports").name
    'piecewise:4096:1790'
    """
    check_choice("mechanism", mechanism, tuple(NUMBER_MECHANISMS))
    return NUMBER_MECHANISMS[mechanism](low, high, budgets, seen)


def check_seen(mechanism: str, seen: Seen) -> None:
    """Refuse what an analyst cannot be limited to.

    The sum of added noises is certified for real-valued noise. What is drawn is each report rounded, and a sum of
    rounded numbers is no function of the sum of the numbers.
    """
    check_choice("mechanism", mechanism, tuple(NUMBER_MECHANISMS))
    check_choice("seen", seen, NUMBER_SEEN)
    if seen == "sum" and mechanism in ADDED_NOISE:
        raise InvalidInput(
            f"`seen = 'sum'` is not certified for {mechanism} noise as it is drawn, report by report in whole steps; "
            "say `seen = 'reports'`, which holds for the sum, too, or use one-bit, piecewise or hybrid"
        )


# The questions about a number in a known range.

POINT = Picture("point", (("estimate", "estimate with its interval"),), truth="true value")
"""How a single number is drawn."""


def _unnamed() -> str:
    return ""


@dataclass(frozen=True)
class Number(Question):
    """Base of the questions about a number in a known range.

    Parameters
    ----------
    low, high : float
        The range, finite, low < high. It is public: reading it off the values would leak.

    Raises
    ------
    InvalidInput
        If the range is none.
    """

    low: float
    high: float

    reads: ClassVar[Literal["texts", "numbers"]] = "numbers"

    def __post_init__(self) -> None:
        low, high = real_range(self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def settled(self, recode: Recode) -> Recode:
        """See `Question.settled`: the number for missing records must lie in the range."""
        if recode.other is not None:
            raise InvalidInput(
                f"`other` maps unlisted categories, and a {self.name} has none; `clip` moves numbers into the range"
            )
        if recode.missing_as is None:
            return recode
        try:
            value = float(recode.missing_as)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            value = np.nan
        if not self.low <= value <= self.high:
            raise InvalidInput(
                f"`missing_as` must be a number of the range [{self.low}, {self.high}]; got {recode.missing_as}"
            )
        return Recode(value, None, recode.clip)

    def number_view(self, numbers: Numbers, support: tuple[float, float], **besides: Any) -> View:
        """Return the view of an answer that is one number.

        Parameters
        ----------
        numbers : Numbers
            The answer.
        support : tuple of float
            Range of what it can be.
        besides
            Further parameters of `View`.
        """
        return View(self.shape, numbers, name=_unnamed, support=support, range=(self.low, self.high), **besides)

    def numbers(self, columns: Sequence[Any], recode: Recode, before: int) -> FloatArray:
        """Return the values, all of them in the range."""
        return bounded_numbers(columns[0], self.low, self.high, recode, before)
