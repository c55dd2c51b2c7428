"""The released sum: of noisy reports as an upper bound, and as a witness (docs/theorems/sum.md, sum-exact.md)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.bound import MANY_LEVELS, AmplificationBound, epsilons_by_anchors, require_plain
from shuffledp.accounting.profiles.composition import composed
from shuffledp.accounting.profiles.profile import PrivacyProfile, gaussian_epsilon
from shuffledp.errors import OutOfRegime, check_delta
from shuffledp.numerics.floats import (
    TINY,
    UNBOUNDED,
    Enclosure,
    FloatArray,
    Interval,
    Upper,
    deflated,
    inflated,
    roundoff,
)
from shuffledp.numerics.laplace_sums import LaplaceSum
from shuffledp.numerics.tails import StepSum, normal_divergence
from shuffledp.randomizers.base import FrequencyOracle, PairCounts, SumsSupports
from shuffledp.setting import Kind, Setting

# ------------------------------------------------------------------ noise sum
# The released sum of noisy reports: the noises add, and nothing else is needed (docs/theorems/sum.md).
#
# Record x_i in [0, 1], report x_i + b_i Z_i. Replacing one record moves the sum by at most 1, and by exactly 1 between
# x0 = 0 and x1 = 1, while the sum of all noises, the victim's own included, stays. So the pair N, N + 1 dominates every
# pair of neighbours, and is one: the profile is upper bound (`sum`) and witness (`sum-exact`) at once.

_DOUBT = 32  # in units of a roundoff: scales good to 4 roundoffs, their squares summed pairwise


@dataclass(frozen=True)
class NoNoiseLeft(PrivacyProfile):
    """Profile of a sum that tells nothing, because some user adds infinite noise."""

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon from which on delta is 0: 0, since the released sum does not depend on the record."""
        return Upper(0.0)

    def delta_at(self, epsilon: float) -> Interval:
        """Return [0, 0]: delta is 0, since the released sum does not depend on the record."""
        del epsilon
        return Interval(0.0, 0.0)


@dataclass(frozen=True)
class GaussianSumProfile(PrivacyProfile):
    """Profile of N(0, 1) against N(mu, 1): delta = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu).

    Balle and Wang 2018, Theorem 8.

    Parameters
    ----------
    mu : float
        Shift of the sum in standard deviations of the whole noise, positive and finite; good to 32 roundoffs.
    """

    mu: float

    @property
    def vanishes_at(self) -> Upper:
        """Infinite: delta stays positive at every epsilon."""
        return UNBOUNDED

    @property
    def mass_at_infinity(self) -> Interval:
        """Interval [0, 0]: delta tends to 0 for large epsilon, because the density ratio is finite everywhere."""
        return Interval(0.0, 0.0)

    def delta_at(self, epsilon: float) -> Interval:
        """Enclose delta(epsilon) of the class docstring, which rises with mu; mu is rounded both ways."""
        low = normal_divergence(epsilon, deflated(self.mu, _DOUBT))
        high = normal_divergence(epsilon, inflated(self.mu, _DOUBT))
        return Interval(float(low.lower), float(high.upper))

    def repeated(self, rounds: int) -> PrivacyProfile:
        """Return the profile of ``rounds`` independent rounds: one Gaussian shift of sqrt(rounds) * mu."""
        return GaussianSumProfile(self.mu * math.sqrt(rounds))

    def guess_epsilon(self, delta: float) -> float | None:
        """Return epsilon(delta) (nats) by the same formula in double precision, a first guess."""
        return gaussian_epsilon(delta, self.mu)


@dataclass(frozen=True, eq=False)
class LaplaceSumProfile(PrivacyProfile):
    """Profile of N against N + shift, N a sum of independent Laplace variables.

    Parameters
    ----------
    noise : LaplaceSum
        N, the sum of all noises.
    shift : float
        How far replaced records move the sum, in widths of the range of records; positive.
    """

    noise: LaplaceSum
    shift: float

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon (nats) from which on delta is 0: shift/(widest scale), which the widest noise alone guarantees."""
        return Upper(inflated(self.shift / self.noise.widest, _DOUBT))

    def delta_at(self, epsilon: float) -> Interval:
        """Enclose delta(epsilon): P(N + shift > t) - e^epsilon P(N > t) at the best threshold t of the sum."""
        return self.noise.shift_divergence(epsilon, self.shift)

    def guess_epsilon(self, delta: float) -> float | None:
        """Return the epsilon (nats) of the Gaussian limit, mu = shift/(deviation of the noise), a first guess."""
        return gaussian_epsilon(delta, self.shift / self.noise.deviation)


@dataclass(frozen=True, eq=False)
class SummedNoise:
    """The noise in a released sum: the noise scale of each level, and how many reports have it.

    Parameters
    ----------
    kind : str
        Shape of the noise, "laplace" or "gaussian".
    scales : ndarray, shape (levels,)
        Noise scale of each level, in widths of the range of records; possibly infinite.
    counts : ndarray, shape (levels,)
        Reports of each level, as floats.
    """

    kind: str
    scales: FloatArray
    counts: FloatArray

    def without_widest(self, exposed: float, level: int, kept: float) -> SummedNoise:
        """Return the noise without ``exposed`` reports, those of the widest noise first.

        Parameters
        ----------
        exposed : float
            How many reports are removed.
        level : int
            Position of a level, usually the victim's.
        kept : float
            How many reports of that level are kept in any case.
        """
        order = np.argsort(-self.scales, kind="stable")
        others = self.counts.copy()
        others[level] -= kept
        there = others[order]
        left = np.empty_like(there)
        left[order] = there - np.clip(exposed - (np.cumsum(there) - there), 0.0, there)
        left[level] += kept
        return SummedNoise(self.kind, self.scales, left)

    def profile(self, shift: float, rounds: int) -> PrivacyProfile:
        """Return the profile of the noise against itself shifted, over several independent rounds.

        Parameters
        ----------
        shift : float
            How far replaced records move the sum, in widths of the range.
        rounds : int
            Number of rounds, at least 1.
        """
        some = self.counts > 0
        scales, counts = self.scales[some], self.counts[some]
        if not np.isfinite(scales).all():
            return NoNoiseLeft()
        if self.kind == "gaussian":  # independent rounds of a Gaussian shift are one larger shift
            return GaussianSumProfile(shift * math.sqrt(rounds / math.fsum((counts * scales**2).tolist())))
        return composed(LaplaceSumProfile(LaplaceSum.of(scales, counts), shift), rounds)


class SumBound(AmplificationBound):
    """Upper bound when only the sum of the reports is released, and the reports carry additive noise.

    See docs/theorems/sum.md.
    """

    key = "sum"
    kind = Kind.CERTIFIED_UPPER
    reference = "the noises add: Gaussian profile (Balle and Wang 2018), best threshold of the summed Laplace noise"

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the profile of the summed noise, the same for every victim; see `AmplificationBound.one_round`."""
        return self.profile(setting, epsilon0)

    def profile(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the profile of all changed reports over all rounds; see `AmplificationBound.profile`.

        m changed reports move the sum by at most m, so groups need no chain of neighbours; independent Gaussian
        rounds are one larger shift.
        """
        noises, exposed = self._noises(setting), float(setting.exposed * setting.reports_per_user)
        level = setting.budgets.index_of(epsilon0)
        left = noises.without_widest(exposed, level, float(setting.reports_per_user))
        return left.profile(self._shift(setting), setting.rounds)

    def level_epsilons(
        self, setting: Setting, delta: float, levels: NDArray[np.int64], ceilings: FloatArray | None = None
    ) -> Enclosure:
        """Enclose the epsilon of each listed level (nats), by one evaluation unless users are exposed.

        See `AmplificationBound.level_epsilons`.
        """
        target, exposed = check_delta(delta), setting.exposed * setting.reports_per_user
        if exposed and setting.budgets.levels <= MANY_LEVELS:
            return super().level_epsilons(setting, target, levels, ceilings)
        noises = self._noises(setting)
        # a victim who would be among the exposed keeps her noise, and another one's narrower noise goes instead
        left = noises.without_widest(exposed, 0, 0.0)
        epsilon = left.profile(self._shift(setting), setting.rounds).epsilon(target)
        lower = np.full(levels.size, epsilon.lower)
        gone = left.counts[levels] == 0.0
        if gone.any():  # a witness with nobody exposed is one with some
            lower[gone] = noises.profile(self._shift(setting), setting.rounds).epsilon(target).lower
        return Enclosure(lower, np.full(levels.size, epsilon.upper))

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


# ------------------------------------------------------------------ supports
# The difference of two categories' counts in a released sum, as a witness (docs/theorems/sum-exact.md).
#
# A report supports a set of categories; what is released is how many reports support each category.
# Let D = (supports of x0) - (supports of x1). A user's own term is 1, 0 or -1, with chances that depend on the record.
# With S the sum of the others' terms, all others on one record, and v the victim's, for every threshold t
#
#     H(eps) >= P0(S + v >= t) - e^eps P1(S + v >= t)
#             = f1 P(S = t - 1) + (f1 + f0) P(S = t) - (e^eps - 1) P(S > t),                                (D)
#
# f_j = P0(v = j) - e^eps P1(v = j).

_ULPS = 32.0
"""Relative error, in roundoffs, of the probabilities of a step: a few ulps each, and as much for their sum."""
_NEAR = np.arange(-4.0, 5.0)
_TYPICAL = 1e-6
_LARGEST = 600.0


@dataclass(frozen=True, eq=False)
class SupportsProfile(PrivacyProfile):
    """Lower bound (D) on the profile, by the best threshold found for the difference of two categories' counts.

    Parameters
    ----------
    epsilon0 : float
        The victim's local budget, nats.
    own : tuple of float
        Chances that the victim's term is 1, -1 and 0 under the record x0; under x1 the first two change places.
    others : StepSum
        The sum of the other users' terms, each 1, -1 or 0.
    """

    tolerance: ClassVar[float] = 2e-5

    epsilon0: float
    own: tuple[float, float, float]
    others: StepSum
    _known: dict[tuple[float, bool], tuple[Interval, Interval]] = field(
        default_factory=dict[tuple[float, bool], tuple[Interval, Interval]]
    )

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon (nats) from which on delta is 0: the victim's local budget."""
        return Upper(inflated(self.epsilon0, 16))

    @property
    def coarseness(self) -> float:
        """Factor 10 by which a table of this profile may be less accurate, since a lower bound may use fewer values."""
        return 10.0

    @property
    def mass_at_infinity(self) -> Interval:
        """Interval [0, 0]: the attack shows no mass at infinite loss."""
        return Interval(0.0, 0.0)

    @property
    def directed(self) -> bool:
        """Whether the two directions differ: they agree if the others' terms are as likely to be 1 as -1."""
        return not np.array_equal(self.others.up, self.others.down)

    def delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        """Enclose the lower bound (D) on delta(epsilon) in both directions, x0 against x1 and x1 against x0."""
        return self._test(epsilon, False)[0], self._test(epsilon, self.directed)[0]

    def delta_at(self, epsilon: float) -> Interval:
        """Enclose the lower bound (D) on delta(epsilon), the larger of both directions."""
        first, second = self.delta_pair(epsilon)
        return Interval(max(first.lower, second.lower), max(first.upper, second.upper))

    def test_masses(self, epsilon: float) -> tuple[Interval, Interval]:
        """Enclose, per direction, the chance of the attack's test S + v >= t under the second law."""
        return self._test(epsilon, False)[1], self._test(epsilon, self.directed)[1]

    def guess_epsilon(self, delta: float) -> float | None:
        """Return the epsilon (nats) of the Gaussian limit with mu = `signal`, a first guess."""
        return gaussian_epsilon(delta, self.signal)

    @cached_property
    def signal(self) -> float:
        """How far the victim's record moves the difference of counts, in its standard deviations."""
        right, wrong, _ = self.own
        spread = right + wrong - (right - wrong) ** 2
        return 2.0 * (right - wrong) / math.sqrt(self.others.variance + spread)

    def _test(self, epsilon: float, back: bool) -> tuple[Interval, Interval]:
        """Enclose (D), and P1(S + v >= t), at the best threshold near the likely one."""
        key = (epsilon, back)
        if key not in self._known:
            self._known[key] = self._enclosed(epsilon, self.others.mirrored if back else self.others)
        return self._known[key]

    def _enclosed(self, epsilon: float, others: StepSum) -> tuple[Interval, Interval]:
        (right, wrong, neither), nothing = self.own, Interval(0.0, 0.0)
        if epsilon >= min(self.vanishes_at, _LARGEST):
            return nothing, nothing
        grow, factor = math.expm1(epsilon), math.exp(epsilon)
        own = right - factor * wrong
        if own <= 0.0:
            return nothing, nothing
        # next to t the law of S falls like e^{-theta s}: the ratio of the two worlds' chances of t is then e^eps
        half = 0.5 * neither * grow
        tilt = (half + math.sqrt(half * half + own * max(factor * right - wrong, 0.0))) / own
        tilted = others.tilted(min(math.log(max(tilt, 1.0)), 30.0))
        weights = np.array(
            [
                (own, own - neither * grow, -grow),
                (wrong, wrong + neither, 1.0),
                (1.0, 1.0, 1.0),
                (1.0, 1.0, 0.0),
            ]
        )
        most = float(others.counts.sum())
        at = np.clip(np.rint(tilted.mean), 1.0 - most, most) + _NEAR
        forms = tilted.forms(weights, at)
        # S in t - 2, ..., t + 1: what (D) may gain or lose where one other term is moved by 1
        around = forms.upper[3][:-2] + forms.upper[3][2:]
        doubt = others.moved(around, forms.upper[2][1:-1])
        price = (1.0 + factor) * (doubt + roundoff(64.0, forms.upper[2][1:-1]))
        low, high = forms.lower[0][1:-1] - price, forms.upper[0][1:-1] + price
        best = int(np.argmax(low))
        value, slack = max(float(low[best]), 0.0), float(price[best])
        mass = forms.lower[1][1 + best] - slack, forms.upper[1][1 + best] + slack
        return Interval(value, max(float(high[best]), value)), Interval(
            max(float(mass[0]), 0.0), min(float(mass[1]), 1.0)
        )


def counts_supports(setting: Setting) -> bool:
    """Return whether the released sum states how many reports support each category, or a linear map of these numbers.

    Parameters
    ----------
    setting : Setting
        The collection.
    """
    law = setting.discrete
    summed = isinstance(law, FrequencyOracle | SumsSupports)
    return setting.seen == "sum" and summed and not law.two_point


def supports_profile(setting: Setting, epsilon0: float, others: FloatArray, key: str) -> SupportsProfile:
    """Return the lower bound's profile for one victim, the other users on the record that shows more.

    Parameters
    ----------
    setting : Setting
        A plain setting, with `counts_supports`.
    epsilon0 : float
        The victim's local budget, nats.
    others : ndarray, shape (levels,)
        Number of other users of each level.
    key : str
        Key of the bound that refuses, for the message.

    Raises
    ------
    OutOfRegime
        If the setting is not plain, or the family does not state the chances.
    """
    require_plain(setting, key)
    family, budgets = setting.discrete, setting.budgets.epsilons
    chances = None if family is None else family.pair_counts(budgets)
    if family is None or chances is None:
        raise OutOfRegime(
            f"{key} needs the chances that a report supports one category and not another; "
            f"{setting.randomizer_name} does not state them"
        )
    mine = family.pair_counts(epsilon0)
    assert mine is not None
    own = (float(mine.right), float(mine.wrong), float(mine.neither))
    crowds = [_on_x0(chances)] if setting.records is not None else [_on_x0(chances), _on_third(chances)]
    there = others > 0
    sums = [StepSum(up[there], down[there], stay[there], others[there], ulps) for up, down, stay, ulps in crowds]
    profiles = [SupportsProfile(epsilon0, own, one) for one in sums]
    usual = 0.9 * min(max(gaussian_epsilon(_TYPICAL, one.signal) for one in profiles), epsilon0)
    return max(profiles, key=lambda one: one.delta(usual).lower)


def _on_x0(counts: PairCounts) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Chances of 1, -1 and 0 of users who hold x0, and to how many roundoffs they are good."""
    return counts.right, counts.wrong, counts.neither, _ULPS


def _on_third(counts: PairCounts) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Chances of users who hold a third record: 1 is as likely as -1, and 0 is a difference, which may cancel."""
    stay = np.maximum(1.0 - 2.0 * counts.third, 0.0)
    return counts.third, counts.third, stay, _ULPS + 8.0 / max(float(stay.min()), TINY)


# ------------------------------------------------------------------ sum exact
# The released sum as a witness: of noisy reports, and of supported categories (docs/theorems/sum-exact.md).


class SumWitness(SumBound):
    """Lower bound from a released sum: of noisy reports, or the difference of two categories' counts.

    The victim holds one end of the range or the other, or one of the two categories or the other. See
    docs/theorems/sum-exact.md.
    """

    key = "sum-exact"
    kind = Kind.CERTIFIED_LOWER
    reference = "the released sum, the victim at one end of the range or at the other, or in one of two categories"

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the attack's profile for a victim of budget ``epsilon0``; see `AmplificationBound.one_round`."""
        if not counts_supports(setting):
            return super().one_round(setting, epsilon0)
        others = setting.budgets.counts.astype(np.float64)
        others[setting.budgets.index_of(epsilon0)] -= 1.0
        return supports_profile(setting, epsilon0, others, self.key)

    def profile(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the attack's profile over all changed reports and rounds; see `AmplificationBound.profile`."""
        if not counts_supports(setting):
            return super().profile(setting, epsilon0)
        return AmplificationBound.profile(self, setting, epsilon0)

    def level_epsilons(
        self, setting: Setting, delta: float, levels: NDArray[np.int64], ceilings: FloatArray | None = None
    ) -> Enclosure:
        """Enclose the attack's epsilon of each listed level (nats); see `AmplificationBound.level_epsilons`."""
        if not counts_supports(setting):
            return super().level_epsilons(setting, delta, levels, ceilings)
        return AmplificationBound.level_epsilons(self, setting, delta, levels, ceilings)

    def many_levels(self, setting: Setting, delta: float, levels: NDArray[np.int64]) -> Enclosure:
        """Return each listed level's lower bound on epsilon (nats), from a few victims, as intervals of one point.

        See `AmplificationBound.many_levels`.
        """
        epsilons, victim = setting.budgets.epsilons[levels], self.any_victim(setting)
        rising = self.rises_with_budget(setting)
        enclosure = epsilons_by_anchors(epsilons, delta, victim, anchors=9, rising=rising)
        return Enclosure(enclosure.lower, enclosure.lower)

    def rises_with_budget(self, setting: Setting) -> bool:
        """Return whether the randomizer is a mixture family.

        There a smaller budget mixes the victim's report with one that does not depend on the record, so epsilon rises.
        """
        return setting.discrete is not None and setting.discrete.mixture

    def any_victim(self, setting: Setting) -> Callable[[float], PrivacyProfile]:
        """Return a function from a victim's budget to the attack's profile, in which all users count as others.

        One more term of a known law is a post-processing, so the profile remains a lower bound. See
        `AmplificationBound.any_victim`.
        """
        if not counts_supports(setting):
            return super().any_victim(setting)
        others = setting.budgets.counts.astype(np.float64)
        return lambda epsilon0: supports_profile(setting, epsilon0, others, self.key)

    def _shift(self, setting: Setting) -> float:
        """Leave out a group's exposed members: their reports are known, so they are no part of an attack on the sum."""
        changed = min(setting.group_size, setting.budgets.n - setting.exposed)
        return float(changed * setting.reports_per_user)
