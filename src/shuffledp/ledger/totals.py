"""The numbers of a ledger: its limit, what its releases cost together, and whether they were fixed in advance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from shuffledp.accounting import StoredProfile, allowed_mu, check_delta, compose
from shuffledp.errors import InvalidInput, shown
from shuffledp.ledger.entry import Entry
from shuffledp.numerics.floats import few_digits_up

OUTSIDE_SHARE = 0.1
"""Share of the limit's delta that may be spent as the chance to reveal a record."""


@dataclass(frozen=True)
class Limit:
    """What all releases of a ledger together may cost anybody, set before the first of them.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee that holds, however the questions are chosen.
    """

    epsilon: float
    delta: float

    @staticmethod
    def checked(epsilon: float, delta: float) -> Limit:
        """Return the limit, or raise InvalidInput if it is none."""
        check_delta(delta)
        if not (isinstance(epsilon, int | float) and 0.0 < epsilon < math.inf):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"a `limit` needs an epsilon above 0; got {shown(epsilon)}")
        return Limit(float(epsilon), float(delta))

    @property
    def outside(self) -> float:
        """Chances to reveal a record that all releases may add up to."""
        return OUTSIDE_SHARE * self.delta

    @property
    def mu(self) -> float:
        """Root of what the squares of the releases' mu may add up to."""
        return allowed_mu(self.epsilon, self.delta, self.outside)

    def share_of(self, number: int) -> float:
        """Return the chance that the release of this number spends unless it must spend more.

        Half of the sum over i of 1/(i (i+1)) = 1 goes that way, however many releases come.
        """
        return 0.5 * self.outside / (number * (number + 1.0))


@dataclass(frozen=True)
class LevelTotal:
    """What people spent who had this budget in every release.

    Parameters
    ----------
    epsilon0 : float
        The local budget.
    epsilon : float
        Central epsilon of all releases together, certified from above.
    """

    epsilon0: float
    epsilon: float


@dataclass(frozen=True)
class Total:
    """What a ledger's releases cost the people who spent most.

    Parameters
    ----------
    epsilon, delta : float
        Exact composition, certified from above: it holds if all releases were fixed in advance.
    fixed : bool
        Whether the ledger says that they were: one plan's name, or one run, for all that concern one person.
    populations : tuple of str
        The populations whose members spent most.
    levels : tuple of LevelTotal
        Budgets that occur in every one of those releases.
    mu, outside : float
        The meter: root of the sum of squares, and sum of chances.
    """

    epsilon: float
    delta: float
    fixed: bool
    populations: tuple[str, ...]
    levels: tuple[LevelTotal, ...]
    mu: float
    outside: float


def composed_epsilon(profiles: Iterable[StoredProfile], delta: float) -> float:
    """Return a certified upper end of the epsilon of releases fixed in advance, rounded up to 10 digits.

    Parameters
    ----------
    profiles : iterable of StoredProfile
        One per release; equal ones are counted together.
    delta : float
        In (0, 1).
    """
    alike: dict[tuple[Any, Any], tuple[StoredProfile, int]] = {}
    for profile in profiles:
        key = profile.knots, profile.log_delta
        alike[key] = alike.get(key, (profile, 0))[0], alike.get(key, (profile, 0))[1] + 1
    return few_digits_up(compose(list(alike.values())).epsilon(delta).upper)


def fixed_together(entries: Sequence[Entry]) -> bool:
    """Whether releases were fixed before the first of their answers: by one plan, or in one run."""
    plans, runs = {entry.plan for entry in entries}, {entry.run for entry in entries}
    return len(runs) == 1 or (len(plans) == 1 and None not in plans)


def levels_together(entries: Sequence[Entry], delta: float) -> Iterable[LevelTotal]:
    """Totals of the budgets that occur in every release."""
    kept = [{level.epsilon0: level.profile for level in entry.spending.levels} for entry in entries]
    for epsilon0 in sorted(set.intersection(*(set(levels) for levels in kept))):
        yield LevelTotal(epsilon0, composed_epsilon([levels[epsilon0] for levels in kept], delta))
