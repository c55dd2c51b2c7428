"""The released sum of noisy reports as an upper bound (docs/theorems/sum.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.bound import MANY_LEVELS, AmplificationBound
from shuffledp.accounting.profiles.composition import composed
from shuffledp.accounting.profiles.gaussian import gaussian_epsilon
from shuffledp.accounting.profiles.profile import PrivacyProfile, check_delta
from shuffledp.errors import OutOfRegime
from shuffledp.guarantee import Kind
from shuffledp.numerics.floats import UNBOUNDED, Upper, deflated, inflated
from shuffledp.numerics.gaussian_tail import normal_divergence
from shuffledp.numerics.interval import Enclosure, FloatArray, Interval
from shuffledp.numerics.laplace_sums import LaplaceSum
from shuffledp.setting import Setting

# ------------------------------------------------------------------ noise sum
# The released sum of noisy reports: the noises add, and nothing else is needed (docs/theorems/sum.md).
#
# Record x_i in [0, 1], report x_i + b_i Z_i. Replacing one record moves the sum by at most 1, and by exactly 1 between
# x0 = 0 and x1 = 1, while the sum of all noises, the victim's own included, stays. So the pair N, N + 1 dominates every
# pair of neighbours, and is one: the profile is upper bound (`sum`) and witness (`sum-exact`) at once.

_DOUBT = 32  # in units of a roundoff: scales good to 4 roundoffs, their squares summed pairwise


@dataclass(frozen=True)
class NoNoiseLeft(PrivacyProfile):
    """Somebody adds infinite noise: the sum tells nothing."""

    @property
    def vanishes_at(self) -> Upper:
        """0: the released sum does not depend on the record."""
        return Upper(0.0)

    def delta_at(self, epsilon: float) -> Interval:
        """0: the released sum does not depend on the record."""
        del epsilon
        return Interval(0.0, 0.0)


@dataclass(frozen=True)
class GaussianSumProfile(PrivacyProfile):
    """Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu), the profile of N(0, 1) against N(mu, 1).

    Balle and Wang 2018, Theorem 8.

    Parameters
    ----------
    mu : float
        Shift of the sum in standard deviations of the whole noise, positive and finite; good to 32 roundoffs.
    """

    mu: float

    @property
    def vanishes_at(self) -> Upper:
        """Nowhere: a Gaussian profile is positive."""
        return UNBOUNDED

    @property
    def mass_at_infinity(self) -> Interval:
        """None: the density ratio is finite everywhere."""
        return Interval(0.0, 0.0)

    def delta_at(self, epsilon: float) -> Interval:
        """Return the class's formula; non-decreasing in mu, which is rounded both ways."""
        low = normal_divergence(epsilon, deflated(self.mu, _DOUBT))
        high = normal_divergence(epsilon, inflated(self.mu, _DOUBT))
        return Interval(float(low.lower), float(high.upper))

    def repeated(self, rounds: int) -> PrivacyProfile:
        """Independent rounds of a Gaussian shift are one larger shift; mu is off by 2 roundoffs more, of 32."""
        return GaussianSumProfile(self.mu * math.sqrt(rounds))

    def guess_epsilon(self, delta: float) -> float | None:
        """Return the same formula in double precision."""
        return gaussian_epsilon(delta, self.mu)


@dataclass(frozen=True, eq=False)
class LaplaceSumProfile(PrivacyProfile):
    """Profile of N against N + shift, N a sum of independent Laplace variables.

    Parameters
    ----------
    noise : LaplaceSum
        The sum of all noises.
    shift : float
        How far replaced records move the sum, in widths of the range; positive.
    """

    noise: LaplaceSum
    shift: float

    @property
    def vanishes_at(self) -> Upper:
        """The shift over the widest scale: alone it would hide the shift so far."""
        return Upper(inflated(self.shift / self.noise.widest, _DOUBT))

    def delta_at(self, epsilon: float) -> Interval:
        """By the best threshold of the sum."""
        return self.noise.shift_divergence(epsilon, self.shift)

    def guess_epsilon(self, delta: float) -> float | None:
        """Gaussian limit, a first guess."""
        return gaussian_epsilon(delta, self.shift / self.noise.deviation)


@dataclass(frozen=True, eq=False)
class SummedNoise:
    """Whose noise is in the sum.

    Parameters
    ----------
    kind : str
        "laplace" or "gaussian".
    scales : ndarray, shape (levels,)
        Noise scale of each level, possibly infinite.
    counts : ndarray, shape (levels,)
        Reports of each level, as floats.
    """

    kind: str
    scales: FloatArray
    counts: FloatArray

    def without_widest(self, exposed: float, level: int, kept: float) -> SummedNoise:
        """Leave out so many reports, those of the widest noise first, but for ``kept`` ones of a level."""
        order = np.argsort(-self.scales, kind="stable")
        others = self.counts.copy()
        others[level] -= kept
        there = others[order]
        left = np.empty_like(there)
        left[order] = there - np.clip(exposed - (np.cumsum(there) - there), 0.0, there)
        left[level] += kept
        return SummedNoise(self.kind, self.scales, left)

    def profile(self, shift: float, rounds: int) -> PrivacyProfile:
        """Profile of the noise against itself shifted, over so many rounds."""
        some = self.counts > 0
        scales, counts = self.scales[some], self.counts[some]
        if not np.isfinite(scales).all():
            return NoNoiseLeft()
        if self.kind == "gaussian":  # independent rounds of a Gaussian shift are one larger shift
            return GaussianSumProfile(shift * math.sqrt(rounds / math.fsum((counts * scales**2).tolist())))
        return composed(LaplaceSumProfile(LaplaceSum.of(scales, counts), shift), rounds)


class SumBound(AmplificationBound):
    """Only the sum of the reports is released, and the reports carry additive noise.

    See docs/theorems/sum.md.
    """

    key = "sum"
    kind = Kind.CERTIFIED_UPPER
    reference = "the noises add: Gaussian profile (Balle and Wang 2018), best threshold of the summed Laplace noise"

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the same profile for every victim: her own noise is in the sum; see `AmplificationBound.one_round`."""
        return self.profile(setting, epsilon0)

    def profile(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Profile of all changed reports and rounds; see `AmplificationBound.profile`.

        m changed reports move the sum by at most m, so groups need no chain of neighbours; independent Gaussian
        rounds are one.
        """
        noises, exposed = self._noises(setting), float(setting.exposed * setting.reports_per_user)
        level = setting.budgets.index_of(epsilon0)
        left = noises.without_widest(exposed, level, float(setting.reports_per_user))
        return left.profile(self._shift(setting), setting.rounds)

    def level_epsilons(
        self, setting: Setting, delta: float, levels: NDArray[np.int64], ceilings: FloatArray | None = None
    ) -> Enclosure:
        """One evaluation for all levels, unless exposed users make a difference among a few levels."""
        target, exposed = check_delta(delta), setting.exposed * setting.reports_per_user
        if exposed and setting.budgets.levels <= MANY_LEVELS:
            return super().level_epsilons(setting, target, levels, ceilings)
        noises = self._noises(setting)
        # a victim who would be among the exposed keeps her noise, and another one's narrower noise goes instead
        left = noises.without_widest(exposed, 0, 0.0)
        found = left.profile(self._shift(setting), setting.rounds).epsilon(target)
        lower = np.full(levels.size, found.lower)
        gone = left.counts[levels] == 0.0
        if gone.any():  # a witness with nobody exposed is one with some
            lower[gone] = noises.profile(self._shift(setting), setting.rounds).epsilon(target).lower
        return Enclosure(lower, np.full(levels.size, found.upper))

    def _shift(self, setting: Setting) -> float:
        """How far the replaced records move the sum, at most: one width of the range per report."""
        return float(setting.changed_reports)

    def _noises(self, setting: Setting) -> SummedNoise:
        if setting.seen != "sum":
            raise OutOfRegime(f"{self.key} is for released sums; got seen = {setting.seen}")
        law, budgets = setting.adds_noise, setting.budgets
        if law is None:
            raise OutOfRegime(
                f"{self.key} needs additive noise (laplace, gaussian); got {setting.randomizer_name}: the sum of "
                "two-outcome reports is their count, which the bounds for reports cover"
            )
        counts = budgets.counts.astype(np.float64) * setting.reports_per_user
        return SummedNoise(law.noise, law.scale(budgets.epsilons, budgets.deltas), counts)


# ------------------------------------------------------------------ sum exact
# The released sum of noisy reports as a witness (docs/theorems/sum-exact.md).


class SumWitness(SumBound):
    """The same pair read as a witness: the victim holds one end of the range or the other.

    See docs/theorems/sum-exact.md.
    """

    key = "sum-exact"
    kind = Kind.CERTIFIED_LOWER
    reference = "sum of noisy reports, the victim at one end of the range or at the other"

    def _shift(self, setting: Setting) -> float:
        """Leave out a group's exposed members: their reports are known, so they are no part of an attack on the sum."""
        changed = min(setting.group_size, setting.budgets.n - setting.exposed)
        return float(changed * setting.reports_per_user)
