"""Two-valued records under a stated randomizer: crowds of two laws (docs/theorems/two-type.md)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.bound import MANY_LEVELS, AmplificationBound, level_alone, require_plain
from shuffledp.accounting.engines.blanket import worst_first
from shuffledp.accounting.engines.two_type import TwoTypeProfile
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.budgets import Budgets
from shuffledp.errors import OutOfRegime
from shuffledp.guarantee import Kind
from shuffledp.numerics.floats import UNBOUNDED, Upper
from shuffledp.numerics.interval import Enclosure
from shuffledp.numerics.two_laws import TwoLaws, gaussian_laws, laplace_laws
from shuffledp.randomizers.base import NoiseLaw, PairBlanket, RandomizerLaw
from shuffledp.setting import Setting

_LEAST_SCALE = {"laplace": 1.0 / 30.0, "gaussian": 0.8}
"""Smaller noise hides nothing worth a transform."""
_LARGEST_SCALE = 1e4
_LEAST_BUDGET = 1e-4
_MOST_PAIRS = 64
_GAUSSIAN_PARTS = 120


class TwoTypeBound(AmplificationBound):
    """Records of two values, one stated randomizer for all: the worst crowd of its two laws.

    See docs/theorems/two-type.md.
    """

    key = "two-type"
    kind = Kind.CERTIFIED_UPPER
    reference = "two-type theorem (own proof): shuffled reports of two laws, over all numbers of either"

    def company(self, setting: Setting, budgets: Budgets, level: int, exposed: int) -> Budgets:
        """Of visible levels the exposed users may all be of the victim's own."""
        if setting.seen != "levels":
            return super().company(setting, budgets, level, exposed)
        counts = budgets.counts.copy()
        counts[level] = max(int(counts[level]) - exposed, 1)
        return Budgets(budgets.epsilons, counts, budgets.deltas)

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Profile of the worst crowd for one victim; see `AmplificationBound.one_round`."""
        self._check(setting)
        if setting.seen == "levels":
            if int((setting.budgets.epsilons == epsilon0).sum()) > 1:
                raise OutOfRegime(f"two-type cannot tell levels of one epsilon0 apart; got several of {epsilon0:g}")
            setting = level_alone(setting, epsilon0)
        if setting.budgets.levels > 1:
            raise OutOfRegime(
                "two-type needs one law for all users of a record, hence one budget; "
                f"got {setting.budgets.levels} levels"
            )
        n, delta0 = setting.budgets.n, float(setting.budgets.deltas[0])
        if n == 1:
            raise OutOfRegime("two-type needs somebody to hide among; got one user")
        pairs, top = _laws(setting, epsilon0, delta0)
        return TwoTypeProfile(pairs, n, top)

    def many_levels(self, setting: Setting, delta: float, levels: NDArray[np.int64]) -> Enclosure:
        """Refused: one cover of crowds a level."""
        del delta, levels
        self._check(setting)
        raise OutOfRegime(f"two-type is not evaluated for more than {MANY_LEVELS} levels")

    def _check(self, setting: Setting) -> None:
        require_plain(setting, self.key)
        if setting.records != 2:
            raise OutOfRegime("two-type needs records that take two values (records = 2)")
        if setting.law is None:
            raise OutOfRegime("two-type needs a stated randomizer; got 'any'")
        if setting.seen == "sum" and setting.adds_noise is not None:
            raise OutOfRegime("two-type is about reports; of the sum of added noises 'sum' knows the exact profile")


def _laws(setting: Setting, epsilon0: float, delta0: float) -> tuple[tuple[TwoLaws, ...], Upper]:
    """Return the pairs of laws among which the worst is, and where a single report's divergence vanishes."""
    if setting.adds_noise is not None:
        top = Upper(epsilon0) if setting.adds_noise.noise == "laplace" else UNBOUNDED  # scales are rounded up
        return (_noisy(setting.adds_noise, epsilon0, delta0),), top
    if setting.discrete is None:
        raise OutOfRegime(f"two-type needs the law of a report; got {setting.randomizer_name}")
    return _discrete(setting.discrete, epsilon0)


def _noisy(noise: NoiseLaw, epsilon0: float, delta0: float) -> TwoLaws:
    """Return the ends of the range, of which any other pair is a post-processing: shrink, and add noise."""
    scale = float(noise.scale(epsilon0, delta0))
    if not _LEAST_SCALE[noise.noise] <= scale <= _LARGEST_SCALE:
        raise OutOfRegime(
            f"two-type needs {noise.noise} noise of {_LEAST_SCALE[noise.noise]:g} to {_LARGEST_SCALE:g} times the "
            f"range; this level has {scale:g}"
        )
    if noise.noise == "laplace":
        return laplace_laws(scale, min(max(40, math.ceil(20.0 / scale)), 240))
    return gaussian_laws(scale, _GAUSSIAN_PARTS)


def _discrete(family: RandomizerLaw, epsilon0: float) -> tuple[tuple[TwoLaws, ...], Upper]:
    if family.two_point:
        raise OutOfRegime(f"two-type has nothing to add to 'count', which is exact for {family.name}")
    if not epsilon0 >= _LEAST_BUDGET:
        raise OutOfRegime(f"two-type is evaluated for budgets of {_LEAST_BUDGET:g} and above; got {epsilon0:g}")
    pairs = worst_first(family.pair_blankets(epsilon0))
    if len(pairs) > _MOST_PAIRS:
        raise OutOfRegime(f"two-type is evaluated for up to {_MOST_PAIRS} pairs of records; got {len(pairs)}")
    if pairs[0].gamma <= 0.0 or any(pair.spread is not None for pair in pairs):
        raise OutOfRegime(f"two-type needs outputs that every record may give; {family.name} has others")
    return tuple(_of(pair) for pair in pairs), max(pair.largest_loss for pair in pairs)


def _of(pair: PairBlanket) -> TwoLaws:
    """Return both laws on the cells of a pair of records."""
    return TwoLaws(pair.masses * pair.ratios0, pair.masses * pair.ratios1, pair.losses, 32.0)
