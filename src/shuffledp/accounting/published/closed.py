"""Published closed forms epsilon(delta), rounded outward, and refused outside the regime they are stated for."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.bound import AmplificationBound, require_plain
from shuffledp.accounting.profiles.profile import GaussianProfile, PrivacyProfile
from shuffledp.accounting.theorems.clones.pair import ClonePairProfile, noiseless_divergence, victim_line
from shuffledp.budgets import Budgets
from shuffledp.errors import OutOfRegime, check_delta
from shuffledp.numerics.counts import SuccessRange
from shuffledp.numerics.floats import (
    SMALLEST,
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
from shuffledp.numerics.functions import ndtr
from shuffledp.setting import Kind, Setting

# Formulas as published: shown beside the certified numbers, never instead of them.
#
# Here are what they share (`PublishedBound`), and those that are one Gaussian or one clone pair; the closed forms
# (`closed`), the blanket inequalities (`blanket`), the Rényi bounds (`renyi`) and the
# personalised formula (`personal`) have modules of their own.

PAPER, CODE, SECOND, OWN = "paper", "code", "second", "own"
"""Sources of a formula: read in the paper, in its authors' code, in another text; or our own."""


class PublishedBound(AmplificationBound):
    """A formula from a publication, one number for all victims; it never enters the certified interval.

    It answers for one plain round (`Setting.is_plain`), or for several rounds if the publication itself composes them.
    """

    enters_bracket: ClassVar[bool] = False
    source: ClassVar[str]
    """Source of the formula: ``"paper"``, ``"code"``, ``"second"`` or ``"own"``."""
    composes: ClassVar[bool] = False
    """Whether the publication states a bound for several rounds."""

    def profile(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the published profile for a victim of local budget ``epsilon0``; see `AmplificationBound.profile`."""
        setting.budgets.index_of(epsilon0)
        require_plain(replace(setting, rounds=1) if self.composes else setting, self.key)
        return self.over_rounds(setting, self.one_round(setting.plain(setting.budgets), epsilon0))

    def level_epsilons(
        self, setting: Setting, delta: float, levels: NDArray[np.int64], ceilings: FloatArray | None = None
    ) -> Enclosure:
        """Return the published epsilon at ``delta`` (nats), the same for all listed levels; shape (listed,).

        See `AmplificationBound.level_epsilons`.
        """
        epsilon = self.profile(setting, float(setting.budgets.epsilons[-1])).epsilon(delta)
        return Enclosure(np.full(levels.size, epsilon.lower), np.full(levels.size, epsilon.upper))


def require_one_budget(setting: Setting, key: str) -> None:
    """Raise OutOfRegime, naming the bound ``key``, if users have several local budgets, or local delta0 > 0."""
    budgets = setting.budgets
    if not budgets.is_pure:
        raise OutOfRegime(f"{key} needs pure local budgets (delta0 = 0); got delta0 = {budgets.deltas.max():g}")
    if budgets.levels > 1:
        raise OutOfRegime(
            f"{key} needs one budget for all users; got {budgets.levels} levels, epsilon0 from "
            f"{budgets.epsilons[0]:g} to {budgets.epsilons[-1]:g}"
        )


def require_company(setting: Setting, key: str) -> None:
    """Raise OutOfRegime, naming the bound ``key``, for a single user: a formula with n - 1 does not apply."""
    if setting.budgets.n < 2:
        raise OutOfRegime(f"{key} needs n >= 2 users; got n = {setting.budgets.n}")


def require_unordered(setting: Setting, key: str) -> None:
    """Raise OutOfRegime, naming the bound ``key``, for ordered outputs of the randomizer "any".

    That randomizer may change with the step and with earlier outputs.
    """
    if setting.seen == "users" and setting.law is None:
        raise OutOfRegime(
            f"{key} needs one randomizer for all reports; got seen = users with randomizer 'any', which may depend "
            "on the step and on earlier outputs"
        )


def gspa_mu(budgets: Budgets) -> float:
    """Return the mu of GSPA Theorem 2: sqrt(2/(sum_i a_i - max_i a_i)), a_i = (1 - delta_i)/(1 + e^epsilon_i).

    Parameters
    ----------
    budgets : Budgets
        Every user's budget (epsilon_i, delta_i); the formula gives the same number for every victim.

    Returns
    -------
    float
        Gaussian shift, positive; inf for a single user.
    """
    low = np.exp(-budgets.epsilons)
    shares = (1.0 - budgets.deltas) * low / (1.0 + low)
    rest = float(shares @ budgets.counts) - float(shares.max())
    return math.sqrt(2.0 / rest) if budgets.n > 1 and rest > 0.0 else math.inf


class GspaBound(PublishedBound):
    """GSPA Theorem 2 with its error term dropped, as the paper uses it; asymptotic, and too small in places.

    Several rounds have sqrt(rounds) * mu (its Theorem 5). See docs/theorems/gspa.md.
    """

    key = "gspa"
    kind = Kind.ASYMPTOTIC
    reference = "Chen, Cao, Ge (AAAI 2024), Theorem 2 and Fact 3, as published"
    source = PAPER
    composes = True

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the Gaussian profile of `gspa_mu`, the same for every victim; refuse several visible levels.

        See `AmplificationBound.one_round`.
        """
        if setting.seen == "levels" and setting.budgets.levels > 1:
            raise OutOfRegime("gspa lets users of different levels hide each other; levels are visible here")
        return GaussianProfile(gspa_mu(setting.budgets))

    def over_rounds(self, setting: Setting, one: PrivacyProfile) -> PrivacyProfile:
        """Return the Gaussian profile with sqrt(rounds) * mu (Theorem 5); see `AmplificationBound.over_rounds`."""
        del one
        return GaussianProfile(gspa_mu(setting.budgets) * math.sqrt(setting.rounds))


class RdpGaussianBound(PublishedBound):
    """Theorem 2 of Chen, Cao, Ge (ICASSP 2024), mu = 2 e^{epsilon0/2}/sqrt(n - 1), as published; asymptotic.

    See docs/theorems/rdp-gdp.md.
    """

    key = "rdp-gdp"
    kind = Kind.ASYMPTOTIC
    reference = "Chen, Cao, Ge (ICASSP 2024), Theorem 2, as published"
    source = PAPER

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the Gaussian profile of that mu; refuse several budgets, delta0 > 0, and a single user.

        See `AmplificationBound.one_round`.
        """
        require_one_budget(setting, self.key)
        require_company(setting, self.key)
        return GaussianProfile(2.0 * math.exp(epsilon0 / 2.0) / math.sqrt(setting.budgets.n - 1))


class ClonesClosedBound(PublishedBound):
    """Gaussian limit of the clone pair, mu = tanh(epsilon0/2) sqrt(2 (1 + e^epsilon0)/(n - 1)): a first guess.

    A formula of this library, asymptotic. See docs/theorems/clones-closed.md.
    """

    key = "clones-closed"
    kind = Kind.ASYMPTOTIC
    reference = "central limit of the clone pair (own closed form): a first guess, not a bound"
    source = OWN

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the Gaussian profile of that mu; refuse several budgets, delta0 > 0, and a single user.

        See `AmplificationBound.one_round`.
        """
        require_one_budget(setting, self.key)
        require_company(setting, self.key)
        width = math.sqrt(2.0 * (1.0 + math.exp(epsilon0)) / (setting.budgets.n - 1))
        return GaussianProfile(math.tanh(epsilon0 / 2.0) * width)


class Clones2022Bound(AmplificationBound):
    """Upper bound of 2022, by a clone pair in which each other user is a clone with p = e^{-epsilon0}.

    Proved, and shown beside the others; the bound `clones`, with p = 2/(1 + e^{epsilon0}), is smaller. See
    docs/theorems/clones-2022.md.
    """

    key = "clones-2022"
    kind = Kind.CERTIFIED_UPPER
    reference = "Feldman, McMillan, Talwar (FOCS 2021), the clone pair with p = e^{-epsilon0}, evaluated exactly"
    source: ClassVar[str] = PAPER
    enters_bracket = False

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the profile of the clone pair with p = e^{-epsilon0}; refuse several budgets, and delta0 > 0.

        See `AmplificationBound.one_round`.
        """
        require_one_budget(setting, self.key)
        others = np.array([setting.budgets.n - 1.0])
        return ClonePairProfile(epsilon0, SuccessRange.of(np.exp(-setting.budgets.epsilons), others, ulps=8))

    def any_victim(self, setting: Setting) -> Callable[[float], PrivacyProfile]:
        """Refuse several levels, because the bound needs one budget for all users.

        See `AmplificationBound.any_victim`.
        """
        require_one_budget(setting, self.key)
        return super().any_victim(setting)


_SLACK = 64
"""Relative error, in roundoffs, of some ten operations without cancellation, each good to 4; generous."""


class ClosedFormProfile(PrivacyProfile):
    """Profile of a theorem that states epsilon as a formula of delta, on a range of delta.

    delta(epsilon) is the smallest delta of that range for which the stated epsilon is at most the one asked for,
    or 1 where there is none.
    """

    @abstractmethod
    def stated_epsilon(self, delta: float) -> float:
        """Return the epsilon (nats) that the formula states for delta, with a relative error below 64 roundoffs."""

    @abstractmethod
    def solved_delta(self, epsilon: float) -> Interval:
        """Enclose the delta at which the formula equals epsilon > 0, whether in the theorem's range or not.

        Any number of at least 1 if there is none below 1.
        """

    @abstractmethod
    def refusal(self, delta: float) -> str | None:
        """Return why the theorem is not stated for this delta, as text for a message; None if it is stated."""

    @property
    def smallest_delta(self) -> Interval:
        """Interval that encloses the smallest delta for which the theorem is stated; it is stated at the upper end."""
        return Interval(0.0, 0.0)

    def epsilon(self, delta: float) -> Interval:
        """Return the epsilon (nats) that the theorem states for delta, rounded outward.

        Raises
        ------
        OutOfRegime
            If the theorem is not stated for this delta.
        InvalidInput
            If delta is not in (0, 1).
        """
        target = check_delta(delta)
        refusal = self.refusal(target)
        if refusal is not None:
            raise OutOfRegime(refusal)
        value = self.stated_epsilon(target)
        return Interval(value, value).inflated(_SLACK)

    def delta_at(self, epsilon: float) -> Interval:
        """Enclose the smallest delta in the theorem's range with a stated epsilon of at most ``epsilon``; else 1."""
        if epsilon == 0.0:
            return Interval(1.0, 1.0)
        solved, least = self.solved_delta(epsilon), self.smallest_delta
        lower, upper = max(solved.lower, least.lower), max(solved.upper, least.upper)
        stated = upper < 1.0 and self.refusal(upper) is None
        return Interval(lower, upper) if stated else Interval(min(lower, 1.0), 1.0)


@dataclass(frozen=True)
class ErlingssonProfile(ClosedFormProfile):
    """Profile with epsilon = 12 epsilon0 sqrt(log(1/delta)/n) for delta < 1/100.

    Parameters
    ----------
    epsilon0 : float
        The common budget, nats, below 1/2.
    n : int
        Number of users, at least 1000.
    """

    epsilon0: float
    n: int

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon from which on delta is 0: infinite, or 0 if epsilon0 is 0."""
        return UNBOUNDED if self.epsilon0 > 0.0 else Upper(0.0)

    def stated_epsilon(self, delta: float) -> float:
        """Return 12 epsilon0 sqrt(log(1/delta)/n), nats."""
        return 12.0 * self.epsilon0 * math.sqrt(-math.log(delta) / self.n)

    def solved_delta(self, epsilon: float) -> Interval:
        """Enclose delta = exp(-n (epsilon/(12 epsilon0))^2)."""
        ratio = epsilon / (12.0 * self.epsilon0)
        exponent = self.n * ratio * ratio
        return Interval(_exp_down(-inflated(exponent, _SLACK)), _exp_up(-deflated(exponent, _SLACK)))

    def refusal(self, delta: float) -> str | None:
        """Return a message if delta is 1/100 or more, for which the theorem is not stated; else None."""
        return None if delta < 0.01 else f"erlingsson19 needs delta < 1/100; got {delta:g}"


class ErlingssonBound(PublishedBound):
    """Upper bound of 2019: epsilon = 12 epsilon0 sqrt(log(1/delta)/n). See docs/theorems/erlingsson19.md."""

    key = "erlingsson19"
    kind = Kind.CERTIFIED_UPPER
    reference = "Erlingsson, Feldman, Mironov, Raghunathan, Talwar, Thakurta (SODA 2019), Corollary 9"
    source = CODE

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the profile of the closed form; refuse epsilon0 >= 1/2, fewer than 1000 users, and several budgets.

        See `AmplificationBound.one_round`.
        """
        require_one_budget(setting, self.key)
        if not epsilon0 < 0.5:
            raise OutOfRegime(f"erlingsson19 needs epsilon0 < 1/2; got {epsilon0:g}")
        if setting.budgets.n < 1000:
            raise OutOfRegime(f"erlingsson19 needs n >= 1000 users; got n = {setting.budgets.n}")
        return ErlingssonProfile(epsilon0, setting.budgets.n)


@dataclass(frozen=True)
class CloneClosedProfile(ClosedFormProfile):
    """Profile with epsilon = log(1 + scale (sqrt(rate log(4/delta)) + offset)) where log(2/delta) <= room.

    Parameters
    ----------
    key : str
        The bound's key, for messages that refuse.
    condition : str
        The condition log(2/delta) <= room in the words of the publication, for the same messages.
    scale, rate, offset : float
        Constants of the formula, each good to 16 roundoffs.
    room : float
        Largest log(2/delta) for which the theorem is stated, good to 16 roundoffs.
    """

    key: str
    condition: str
    scale: float
    rate: float
    offset: float
    room: float

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon from which on delta is 0: infinite, or 0 if ``scale`` is 0."""
        return UNBOUNDED if self.scale > 0.0 else Upper(0.0)

    @property
    def smallest_delta(self) -> Interval:
        """Interval that encloses 2 e^{-room}, the smallest delta for which the theorem is stated.

        Its upper end is rounded up by more than `refusal` asks for.
        """
        return Interval(2.0 * _exp_down(-inflated(self.room, _SLACK)), 2.0 * _exp_up(-deflated(self.room, 4 * _SLACK)))

    def stated_epsilon(self, delta: float) -> float:
        """Return log(1 + scale (sqrt(rate log(4/delta)) + offset)), nats; log1p keeps relative accuracy."""
        return math.log1p(self.scale * (math.sqrt(self.rate * (math.log(4.0) - math.log(delta))) + self.offset))

    def solved_delta(self, epsilon: float) -> Interval:
        """Enclose delta = 4 exp(-(x - offset)^2/rate), x = (e^epsilon - 1)/scale; at least 1 where x <= offset."""
        x = math.expm1(min(epsilon, 700.0)) / self.scale
        doubt = roundoff(32, x + self.offset)
        low, high = x - self.offset - doubt, x - self.offset + doubt
        upper = 4.0 * _exp_up(-deflated(low * low / self.rate, _SLACK)) if low > 0.0 else 4.0
        lower = 4.0 * _exp_down(-inflated(high * high / self.rate, _SLACK)) if high > 0.0 else 1.0
        return Interval(min(lower, upper), upper)

    def refusal(self, delta: float) -> str | None:
        """Return a message unless log(2/delta) <= room, both rounded to the strict side; else None."""
        if inflated(math.log(2.0) - math.log(delta), _SLACK) <= deflated(self.room, 0.25 * _SLACK):
            return None
        return f"{self.key} needs {self.condition}; got delta = {delta:g}"


class Fmt22ClosedBound(PublishedBound):
    """Closed form of the upper bound of 2022 by clones, with p = e^{-epsilon0}. See docs/theorems/fmt22-closed.md."""

    key = "fmt22-closed"
    kind = Kind.CERTIFIED_UPPER
    reference = "Feldman, McMillan, Talwar (FOCS 2021), Theorem 3.1"
    source = SECOND

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the profile of the closed form; refuse several budgets, and too few users for any delta below 1.

        See `AmplificationBound.one_round`.
        """
        require_one_budget(setting, self.key)
        n = setting.budgets.n
        share = math.exp(epsilon0) / n
        return _within(
            CloneClosedProfile(
                self.key,
                f"epsilon0 <= log(n/(16 log(2/delta))), where epsilon0 = {epsilon0:g} and n = {n}",
                8.0 * math.tanh(epsilon0 / 2.0),
                share,
                share,
                n * math.exp(-epsilon0) / 16.0,
            )
        )


class Fmt23ClosedBound(PublishedBound):
    """Closed form of the upper bound of 2023 by clones, p = 2/(1 + e^{epsilon0}). See docs/theorems/fmt23-closed.md."""

    key = "fmt23-closed"
    kind = Kind.CERTIFIED_UPPER
    reference = "Feldman, McMillan, Talwar (SODA 2023), Theorem 3.2, with the stricter of its printed guards"
    source = CODE

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the profile of the closed form; refuse several budgets, and too few users for any delta below 1.

        See `AmplificationBound.one_round`.
        """
        require_one_budget(setting, self.key)
        n = setting.budgets.n
        return _within(
            CloneClosedProfile(
                self.key,
                f"epsilon0 <= log(n/(8 log(2/delta)) - 1), where epsilon0 = {epsilon0:g} and n = {n}",
                4.0 * math.expm1(epsilon0),
                2.0 / ((math.exp(epsilon0) + 1.0) * n),
                1.0 / n,
                n / (8.0 * (math.exp(epsilon0) + 1.0)),
            )
        )


def _within(profile: CloneClosedProfile) -> CloneClosedProfile:
    """Refuse at once where no delta below 1 is in the regime."""
    if not profile.room > inflated(math.log(2.0), 8 * _SLACK):
        raise OutOfRegime(f"{profile.key} needs {profile.condition}; no delta below 1 meets that")
    return profile


def _exp_up(exponent: float) -> float:
    """Return exp(exponent) rounded up, never 0; subnormal numbers are good to two of their units."""
    return inflated(math.exp(exponent), _SLACK) + 20.0 * SMALLEST


def _exp_down(exponent: float) -> float:
    """Return exp(exponent) rounded down, possibly 0."""
    return max(deflated(math.exp(exponent), _SLACK) - 20.0 * SMALLEST, 0.0)


# The published personalised formula of Liu et al. ("Echo of neighbors"), with its authors' evaluation.
#
# With p_ij = (eps_i/eps_j) (1 - e^{-eps_j})/(1 - e^{-eps_i}) e^{-max(eps_i, eps_j)} and user 1 the one of largest
# budget,
#
#     S = sum_{i != 1} 1/n sum_j p_ij                                                                           (S)
#
# stands for the expected number of clones of user 1, whose pair is then evaluated with a normal clone count.
# Averaging over j is not sound: the target of the average is a user whom i need not resemble.

STEP = 100
"""Number of clone counts in a block, as in the published runs."""
HALVINGS = 10
"""Number of bisection steps of the published search, which starts from the closed form."""
_REACH = 15.0
_MOST_BLOCKS = 1000.0
"""Largest number of blocks on either side; for more (about 10^7 users) blocks are wider, with negligible effect."""


def echoes(budgets: Budgets, power: int) -> float:
    """Return sum_{i != 1} sum_j (p_ij/n)^power over users i and j, user 1 being one of those of the largest budget.

    p_ij = (eps_i/eps_j) (1 - e^{-eps_j})/(1 - e^{-eps_i}) e^{-max(eps_i, eps_j)} is the weight with which user i counts
    as a clone. It is a function of eps_i times one of eps_j on either side of eps_i = eps_j, so two cumulative sums
    suffice.

    Parameters
    ----------
    budgets : Budgets
        Local budgets of the users, all positive.
    power : {1, 2}
        1 for the expected number S of clones, 2 for the sum that its variance needs.
    """
    epsilons = budgets.epsilons
    weights = budgets.counts.astype(np.float64)
    steep = (epsilons / -np.expm1(-epsilons)) ** power  # eps/(1 - e^-eps)
    decay = np.exp(-power * epsilons)
    below = np.cumsum(weights / steep)  # j up to i: e^{-eps_i}
    above = np.sum(weights * decay / steep) - np.cumsum(weights * decay / steep)  # j beyond i: e^{-eps_j}
    each = steep * (decay * below + np.maximum(above, 0.0)) / float(budgets.n) ** power
    weights[-1] -= 1.0
    return float(weights @ each)


@dataclass(frozen=True)
class EchoProfile(PrivacyProfile):
    """Profile of the victim with the largest budget for a normal number of clones N(S - 1/2, sigma^2), as published.

    The number is summed in blocks, in double precision, with the quirks of the published code (each block takes the
    divergence of its left end, and the chance of one count in `STEP` falls between two blocks), so that the published
    numbers come out. Nothing is certified.

    Parameters
    ----------
    epsilon0 : float
        The largest budget, nats.
    n : int
        Number of users.
    expected : float
        S, the expected number of clones.
    deviation : float
        Sigma, the standard deviation of the number of clones.
    """

    epsilon0: float
    n: int
    expected: float
    deviation: float

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon (nats) from which on delta is 0: the largest local budget."""
        return Upper(self.epsilon0)

    def closed_form(self, delta: float) -> float:
        """Return log(1 + tanh(eps_1/2) (8 sqrt(log(4/delta)/S) + 8/S)), nats: the publication's theorem.

        eps_1 is the largest local budget, S the expected number of clones.

        Parameters
        ----------
        delta : float
            In (0, 1).

        Raises
        ------
        OutOfRegime
            If S < 16 log(4/delta).
        """
        need = math.log(4.0) - math.log(check_delta(delta))
        if self.expected < 16.0 * need:
            raise OutOfRegime(
                f"liu23 needs S >= 16 log(4/delta) = {16.0 * need:.4g} expected clones at delta = {delta:g}; "
                f"got S = {self.expected:.4g}"
            )
        rise = 8.0 * math.sqrt(need / self.expected) + 8.0 / self.expected
        return math.log1p(math.tanh(self.epsilon0 / 2.0) * rise)

    def delta_at(self, epsilon: float) -> Interval:
        """Return the sum over blocks of their chance times the divergence at their left end; not certified."""
        left, chance = self._blocks()
        scale, excess = victim_line(epsilon, self.epsilon0)
        psi = noiseless_divergence(left, excess)
        value = scale * float(chance @ (0.5 * (psi.lower + psi.upper)))
        return Interval(value, value)

    def epsilon(self, delta: float) -> Interval:
        """Return the epsilon (nats) that the published code finds: ten halvings below the closed form, the upper end.

        Raises
        ------
        OutOfRegime
            If S < 16 log(4/delta).
        """
        low, high = 0.0, self.closed_form(delta)
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self.delta(middle).upper < delta else (middle, high)
        return Interval(high, high)

    def _blocks(self) -> tuple[FloatArray, FloatArray]:
        """Left ends and chances of the blocks within reach of the expected count, which starts a block."""
        centre, wide = math.ceil(self.expected), math.ceil(_REACH * self.deviation / (STEP * _MOST_BLOCKS))
        reach = math.ceil(_REACH * self.deviation / (STEP * wide)) + 1
        steps = np.arange(-reach, reach + 1.0)
        left = centre + wide * (STEP * steps + (steps > 0))  # the block that starts at the centre has one count more
        right = centre + wide * (STEP * (steps + 1.0) - (steps < 0))
        inside = (left <= self.n - 1.0) & (right >= 0.0)
        left, right = np.maximum(left[inside], 0.0), np.minimum(right[inside], self.n - 1.0)
        mean = self.expected - 0.5
        return left, ndtr((right - mean) / self.deviation) - ndtr((left - mean) / self.deviation)


class LiuBound(PublishedBound):
    """Bound of Liu et al. for personal local budgets, as their code evaluates it; asymptotic, and too small in places.

    See docs/theorems/liu23.md.
    """

    key = "liu23"
    kind = Kind.ASYMPTOTIC
    reference = "Liu, Zhao, Xiong, Liu, Chen (AAAI 2023), personalised clones, as its code evaluates them"
    source = CODE

    def one_round(self, setting: Setting, epsilon0: float) -> EchoProfile:
        """Return the profile of the victim with the largest budget, which the publication uses for all users.

        Refuses delta0 > 0, budgets of 0, a single user, and several budgets with visible levels or ordered outputs. See
        `AmplificationBound.one_round`.
        """
        budgets = setting.budgets
        if not budgets.is_pure:
            raise OutOfRegime(f"liu23 needs pure local budgets (delta0 = 0); got delta0 = {budgets.deltas.max():g}")
        if not budgets.epsilons[0] > 0.0:
            raise OutOfRegime(f"liu23 needs every epsilon0 > 0; got {budgets.epsilons[0]:g}")
        if budgets.n < 2:
            raise OutOfRegime(f"liu23 needs n >= 2 users; got n = {budgets.n}")
        if budgets.levels > 1 and setting.seen in ("levels", "users"):
            raise OutOfRegime(
                f"liu23 with several budgets is stated for unordered reports without levels; got seen = {setting.seen}"
            )
        expected = echoes(budgets, 1)
        deviation = math.sqrt(max(expected - echoes(budgets, 2), TINY))
        return EchoProfile(float(budgets.epsilons[-1]), budgets.n, expected, deviation)
