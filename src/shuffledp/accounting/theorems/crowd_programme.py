"""Laplace noise, one budget, every crowd of records: slower and tighter (docs/theorems/crowd-programme.md)."""

from __future__ import annotations

from shuffledp.accounting.bound import AmplificationBound, level_alone, remembered, require_plain
from shuffledp.accounting.engines.crowd_programme import ProgrammeProfile
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.accounting.theorems.blanket import BlanketBound
from shuffledp.accounting.theorems.levels import LevelsBound
from shuffledp.budgets import Budgets
from shuffledp.errors import OutOfRegime
from shuffledp.guarantee import Kind
from shuffledp.setting import Setting

_LEAST_RATE, _LARGEST_RATE = 0.2, 6.0
_FEWEST, _MOST = 100, 1_000_000


class CrowdProgrammeBound(AmplificationBound):
    """Reports of Laplace noise hidden among any crowd of records: blankets chosen after the crowd.

    See docs/theorems/crowd-programme.md.
    """

    key = "crowd-programme"
    kind = Kind.CERTIFIED_UPPER
    reference = "crowd programme (own proof): blankets that follow the crowd, and the two-type theorem elsewhere"
    thorough = True

    def company(self, setting: Setting, budgets: Budgets, level: int, exposed: int) -> Budgets:
        """Of visible levels the exposed users may all be of the victim's own."""
        if setting.seen != "levels":
            return super().company(setting, budgets, level, exposed)
        return LevelsBound().company(setting, budgets, level, exposed)

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Epsilon of a delta by the programme, delta of an epsilon by `blanket`; see `AmplificationBound.one_round`."""
        require_plain(setting, self.key)
        noise = setting.adds_noise
        if noise is None or noise.noise != "laplace":
            raise OutOfRegime("crowd-programme is for Laplace noise")
        if setting.seen == "sum":
            raise OutOfRegime("crowd-programme is about reports; of the sum of added noises 'sum' knows the profile")
        if setting.seen == "levels":
            if int((setting.budgets.epsilons == epsilon0).sum()) > 1:
                raise OutOfRegime(
                    f"crowd-programme cannot tell levels of one epsilon0 apart; got several of {epsilon0:g}"
                )
            setting = level_alone(setting, epsilon0)
        if setting.budgets.levels > 1:
            raise OutOfRegime(f"crowd-programme needs one budget; got {setting.budgets.levels} levels")
        n, rate = setting.budgets.n, 1.0 / float(noise.scale(epsilon0, 0.0))
        if not (_LEAST_RATE <= rate <= _LARGEST_RATE and _FEWEST <= n <= _MOST):
            raise OutOfRegime(
                f"crowd-programme is evaluated for budgets from {_LEAST_RATE:g} to {_LARGEST_RATE:g} and {_FEWEST} to "
                f"{_MOST} users; got {epsilon0:g} and {n}"
            )
        return ProgrammeProfile(remembered(BlanketBound, setting, epsilon0), rate, n)
