"""How much budget a wanted central guarantee leaves: the certified limits that bucketing must respect.

Certified bounds fall with the company and rise with the victim's budget; so a limit found for fewer users, or for
others with larger budgets, serves. What is published is certified again at the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting import LARGEST_N, MANY_LEVELS, Target, certify
from shuffledp.budgets import MAX_EPSILON0, Budgets
from shuffledp.dummies import Dummies
from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.floats import JUST_BELOW, TINY
from shuffledp.numerics.interval import FloatArray
from shuffledp.planning.error import Prediction
from shuffledp.planning.question import MOST_HIDING, Family, level_of, rounded_up
from shuffledp.questions.task import Weights
from shuffledp.randomizers.base import AnyLaw, NoiseLaw, RandomizerLaw
from shuffledp.randomizers.wire import WireFormat, bytes_for
from shuffledp.setting import Seen, Setting

_SLACK = 1.0 - 1e-9
"""Searches aim this much below the target, so that rounding in another certificate of the same fact is no failure."""
MANY_WITHHELD = 500
"""Withheld levels that are certified one by one: so finely rounded up, epsilon rises by a percent at most."""
LEVELS_OF_NOISE = 12
"""The same for added noise, whose certificates take long."""
MOST_EXACT = 12
"""So many different budgets are given their own smallest company."""
_KNOT_RATIO = 1.35
"""Of more, it is known on a grid of this ratio (of added noise, whose certificates take long, its square)."""
_STEP_RATIO = 1.03
_USERS_TOLERANCE = 0.02


@dataclass(frozen=True)
class Circumstances:
    """How often people are asked, and whom of them the guarantee counts on; each as in `Setting`.

    Parameters
    ----------
    rounds, colluding, missing, group_size, dummies
        As in `Setting`.
    """

    rounds: int = 1
    colluding: int = 0
    missing: float = 0.0
    group_size: int = 1
    dummies: Dummies | None = None

    @property
    def reports(self) -> int:
        """Reports in which one protected person, or group, may change."""
        return self.rounds * self.group_size


ONCE = Circumstances()
"""One round of people who are all there and honest, each protected by herself."""


@dataclass(frozen=True)
class Wish:
    """The central guarantee that is wanted.

    Parameters
    ----------
    epsilon, delta : float
        For the worst level; epsilon positive (inf: no wish), delta in (0, 1).
    around : Circumstances
        What it must hold for.
    """

    epsilon: float
    delta: float
    around: Circumstances = ONCE

    @property
    def safe(self) -> float:
        """A pure local budget that is within the wish without any help of a crowd."""
        return self.epsilon / self.around.reports * _SLACK

    def setting(self, budgets: Budgets, family: Family, seen: Seen) -> Setting:
        """Return the question to the accountant."""
        around = self.around
        return Setting(
            budgets, accounted(family), seen=seen, neighboring="replace-one", rounds=around.rounds,
            colluding=around.colluding, missing=around.missing, group_size=around.group_size, dummies=around.dummies,
        )  # fmt: skip

    def certified(self, budgets: Budgets, family: Family, seen: Seen) -> float:
        """Certified central epsilon of the worst level; very many withheld levels are rounded up for it."""
        few = budgets if seen == "levels" else rounded_up(budgets, LEVELS_OF_NOISE if noisy(family) else MANY_WITHHELD)
        setting = self.setting(few, family, seen)
        if setting.budgets.levels <= MANY_LEVELS:
            return Target.of(1.0, self.delta).certified(setting)
        return certify(setting, self.delta, max_levels=2).epsilon.upper

    def holds(self, setting: Setting) -> bool:
        """Whether the setting is certified to be within the wish."""
        return self.epsilon == math.inf or Target.of(self.epsilon * _SLACK, self.delta).excess(setting) <= 0.0


def fewest_of(wish: Wish, family: Family, delta0: float, values: FloatArray, own: FloatArray, n: int) -> FloatArray:
    """About how many users a visible level needs, by its budget; inf where n do not suffice.

    Parameters
    ----------
    wish : Wish
        What must hold.
    family : Family
        The randomizer.
    delta0 : float
        Approximate part of the budgets.
    values : ndarray
        Ascending budgets.
    own : ndarray
        Those among them that users have. If they are few, each gets its own number; between these and the knots it
        is interpolated, so what is chosen must still be certified.
    n : int
        Users there are.
    """
    if wish.epsilon == math.inf:
        return np.ones_like(values)
    knots = knots_of(wish, float(values[-1]), ratio_of(family))
    if own.size <= MOST_EXACT:
        knots = np.union1d(knots, own[own > 0.0])
    needed = np.full(knots.shape, np.inf)
    for i, knot in enumerate(knots):
        needed[i] = fewest_users(wish, family, delta0, float(knot))
        if needed[i] > n:
            break
    known = np.isfinite(needed)
    if not known.any():
        return np.full(values.shape, np.inf)
    x, y = np.log(knots[known]), np.log(needed[known])
    between = np.exp(np.interp(np.log(np.maximum(values, TINY)), x, y)) * JUST_BELOW
    return np.where((values <= knots[known][-1]) & (between <= n), between, np.inf)


def steps_of(wish: Wish, top: float) -> FloatArray:
    """Return a fixed grid of candidate budgets for levels, from one that is safe by itself up to `top`."""
    return knots_of(wish, top, _STEP_RATIO)


def knots_of(wish: Wish, top: float, ratio: float) -> FloatArray:
    """Budgets from one that is safe by itself up to `top`: a fixed grid, so that certificates are found again."""
    safe = wish.epsilon / wish.around.reports * (1.0 - 1e-8)
    if safe >= top:
        return np.array([top])
    first = math.floor(math.log(safe) / math.log(ratio)) + 1
    inside = ratio ** np.arange(first, math.log(top) / math.log(ratio))
    return np.unique(np.concatenate([[safe], inside, [top]]))


@lru_cache(maxsize=8192)
def fewest_users(wish: Wish, family: Family, delta0: float, value: float) -> float:
    """How many users of one budget are certified to hide each other well enough, within 2 % of the fewest; or inf.

    What is returned was certified. The search comes from below: there every bound is asked, and the excess falls
    about linearly in the number of users; above, the first bound that suffices is the only one asked.
    """

    def excess(users: float) -> float:
        if math.ceil(users) < max(wish.around.colluding + 1, wish.around.group_size):
            return math.inf
        one = Budgets([value], [math.ceil(users)], [delta0])
        return Target.of(wish.epsilon * _SLACK, wish.delta).excess(wish.setting(one, family, "levels"))

    low, over = 1.0, excess(1.0)
    if over <= 0.0:
        return 1.0
    # about where: a normal law of the clones' mean and variance, at four deviations; other bounds may need a sixth
    guess = 2.0 * (1.0 + math.exp(value)) * (4.0 * math.tanh(value / 2.0) / wish.epsilon) ** 2 * wish.around.reports
    at, high = min(max(guess / 6.0, 2.0), LARGEST_N), math.inf
    while True:
        found = excess(at)
        if found > 0.0:
            if at >= LARGEST_N:
                return math.inf
            falls = (over - found) / (at - low) if at > low and math.isfinite(over) else 0.0
            low, over = at, found
            beyond = min(found / falls, 3.0 * at) if falls > 0.0 else 3.0 * at
            at = min((at + beyond) * (1.0 + _USERS_TOLERANCE / 2.0), LARGEST_N)
        else:
            high = at
            at = max(at / 3.0, low)
        if high <= max(low * (1.0 + _USERS_TOLERANCE), low + 1.0):
            return float(math.ceil(high))
        if at >= high or at <= low:
            at = math.sqrt(low * high)


def ratio_of(family: Family) -> float:
    """Return the ratio of two neighbouring budgets on the search grid (the knots)."""
    return _KNOT_RATIO**2 if noisy(family) else _KNOT_RATIO


def noisy(family: Family) -> bool:
    """Whether the family adds noise."""
    return isinstance(family, NoiseLaw)


def stand_in(budgets: Budgets, family: Family) -> Budgets:
    """Return a population of few levels that hides a user no better, for searches."""
    return rounded_up(budgets, LEVELS_OF_NOISE if noisy(family) else MOST_HIDING)


def accounted(family: Family) -> AnyLaw | Literal["any"]:
    """Return the family as the accountant reads it: by its law, or else as any randomizer within budget."""
    return family if isinstance(family, RandomizerLaw | NoiseLaw) else "any"


def scaled(budgets: Budgets, factor: float) -> Budgets:
    """Multiply every epsilon0, up to the largest budget there is."""
    return Budgets(np.minimum(budgets.epsilons * factor, MAX_EPSILON0), budgets.counts, budgets.deltas)


# A public rule that rounds budgets down, and what it promises.


@dataclass(frozen=True, eq=False)
class Bucketing:
    """A public rule that gives every user the budget her report is drawn with, and what it promises.

    Parameters
    ----------
    levels : ndarray or None
        Ascending levels; a user gets the largest one not above her budget. None: budgets stay as they are, up to
        the cap.
    cap : float
        Larger budgets are lowered to it; inf if none is.
    drop_below : float
        Users with a smaller budget take no part; 0: everybody does.
    dropped : int
        How many those are.
    budgets : Budgets
        The population after rounding.
    mechanism : str
        Name of the randomizer.
    family : FrequencyOracle or NumberRandomizer
        The randomizer that runs.
    seen : str
        As in `Setting`.
    weights : {"population", "precision"} or None
        How visible levels are combined; None where they are withheld.
    prediction : Prediction
        Of the error, after rounding.
    certified_epsilon : float
        Certified central epsilon of the worst level, after rounding, at `delta` (of more than 500 withheld levels:
        with budgets rounded up to about 500, so `certify` of `setting` may say a little less).
    delta : float
        Central delta.
    around : Circumstances
        What it covers.
    """

    levels: FloatArray | None
    cap: float
    drop_below: float
    dropped: int
    budgets: Budgets
    mechanism: str
    family: Family
    seen: Seen
    weights: Weights | None
    prediction: Prediction
    certified_epsilon: float
    delta: float
    around: Circumstances

    @property
    def setting(self) -> Setting:
        """The setting (population, randomizer, view) for which the central guarantee was certified."""
        return Wish(math.inf, self.delta, self.around).setting(self.budgets, self.family, self.seen)

    @property
    def report_bytes(self) -> int:
        """Bytes of one report on the wire (docs/wire.md), without the header of the message."""
        return report_bytes(self.family)

    @property
    def rounds_budgets(self) -> bool:
        """Whether anybody's budget may become smaller."""
        return self.levels is not None or self.cap < math.inf

    def takes_part(self, epsilons: ArrayLike) -> NDArray[np.bool_]:
        """Tell who takes part, shape (n,) of bool: everybody, unless small budgets were to be dropped."""
        return _own_budgets(epsilons) >= self.drop_below

    def apply(self, epsilons: ArrayLike) -> FloatArray:
        """Give each user the budget her report is drawn with, at most her own.

        Parameters
        ----------
        epsilons : array_like, shape (n,)
            Own budgets of those who take part, nats, in [0, 700].

        Raises
        ------
        InvalidInput
            If a budget is not in range, below `drop_below`, or below the lowest level.
        """
        own = _own_budgets(epsilons)
        if own.size and own.min() < self.drop_below:
            row = int(np.argmin(own)) + 1
            raise InvalidInput(
                f"epsilon0 {own.min():g} (entry {row}) is below {self.drop_below:g}, so this user takes no part; "
                "leave those users out, as takes_part tells"
            )
        low = np.minimum(own, self.cap)
        if self.levels is None:
            return low
        at = level_of(low, self.levels)
        if own.size and at.min() < 0:
            row = int(np.argmin(at)) + 1
            raise InvalidInput(
                f"epsilon0 {own[row - 1]:g} (entry {row}) is below the lowest level {self.levels[0]:g}; choose the "
                "levels again for the users there are"
            )
        return self.levels[at]


def report_bytes(family: Family) -> int:
    """Return the bytes of one report on the wire, the same for all reports of a family with its shape fixed."""
    if not isinstance(family, WireFormat):
        raise InvalidInput(f"the reports of {shown(family)} have no wire format")
    return bytes_for(family.report_bits)


def _own_budgets(epsilons: ArrayLike) -> FloatArray:
    own = np.asarray(epsilons, dtype=np.float64)
    bad = np.flatnonzero(~((own >= 0.0) & (own <= MAX_EPSILON0)).ravel())
    if bad.size:
        raise InvalidInput(f"epsilon0 must be from 0 to 700; got {own.ravel()[bad[0]]} (entry {bad[0] + 1})")
    return own
