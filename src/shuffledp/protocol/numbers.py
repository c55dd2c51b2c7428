"""Which family answers a question about a number by which name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol

from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput
from shuffledp.protocol.choices import check_choice
from shuffledp.randomizers.base import NoiseLaw, NumberRandomizer, RandomizerLaw
from shuffledp.randomizers.hybrid import Hybrid
from shuffledp.randomizers.noise import Gaussian, Laplace
from shuffledp.randomizers.numeric import OneBit
from shuffledp.randomizers.piecewise import Piecewise
from shuffledp.setting import Seen

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
