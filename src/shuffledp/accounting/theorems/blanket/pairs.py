"""Profiles of the common blanket theorem for one pair of inputs, and for the worst of several.

With W_j iid ~ omega, L = r_0(W) - e^eps r_1(W), and C the number of blanket reports among the others,

    H(eps) <= E_C [ h(C) ],    h(c) = 1/(c+1) E( sum_{j <= c+1} L_j )_+,  non-increasing in c.              (I)

With one budget for all, P(C = c)/(c+1) = P(Bin(n, gamma) = c+1)/(n gamma) turns (I) into one sum over users,

    H(eps) <= 1/n E( sum_{i <= n} Z_i )_+,    Z = L/gamma with probability gamma, else 0.                    (Z)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from shuffledp.accounting.profiles.profile import PrivacyProfile, gaussian_epsilon
from shuffledp.accounting.theorems.blanket.loss_laws import LossLaw, loss_law, stacked, upper_laws
from shuffledp.numerics.compound_sums import TermCount, compound_sums_above
from shuffledp.numerics.counts import BlockedCount, SuccessRange
from shuffledp.numerics.floats import (
    TINY,
    Enclosure,
    FloatArray,
    Interval,
    Lower,
    Upper,
    deflated,
    inflated,
    round_down,
    round_up,
    roundoff,
)
from shuffledp.numerics.functions import gammaln
from shuffledp.numerics.sums import IndependentSum, positive_part, positive_parts, positive_parts_above
from shuffledp.numerics.tails import mills_ratio
from shuffledp.randomizers.base import CellSpread, PairBlanket

# ------------------------------------------------------------------ quick
# Quick upper bounds on (I), for many pairs of inputs at once: they tell which pairs need the transform.
#
# With S = L_1 + ... + L_m, h(m-1) = E(S)_+/m, and the law of S tilted by e^{tS}, t > 0,
#
#     E(S)_+ = M(t)^m E_t f(S),    f(s) = s e^{-ts} for s > 0, else 0.
#
# f <= 1/(et) gives Chernoff's bound. f has total variation 2/(et), so the normal law of the tilted S's mean a and
# variance b^2 gives E_t f(S) <= E f(N(a, b^2)) + 2/(et) D, where by Berry and Esseen (constant of Shevtsova 2011)
# D <= 0.4748 E_t|L - E_t L|^3/(sqrt(m) sd_t(L)^3). As h does not increase, E h(C) <= P(C < c) h(0) + h(c) for any c.

_TILTS = np.geomspace(1.0, 30.0, 10)
_BERRY_ESSEEN = 0.4748


def fewest_blankets(count: SuccessRange, delta: float) -> tuple[float, float]:
    """Return a number of reports m = c + 1, and a bound on the chance P(C < c) far below delta.

    Parameters
    ----------
    count : SuccessRange
        The law of the number C of blanket reports among the other users.
    delta : float
        Central delta, in (0, 1).
    """
    mean, deviation = count.fewest.mean, count.fewest.deviation
    for depth in (5.0, 7.0, 10.0, 15.0, 25.0, 40.0):
        least = math.floor(mean - depth * deviation)
        if least <= 0:
            break
        rare = float(count.cdf(np.array([least - 1.0])).upper[0])
        if rare <= 1e-3 * delta:
            return least + 1.0, rare
    return 1.0, 0.0


def chernoff_values(values: FloatArray, weights: FloatArray, reports: float) -> FloatArray:
    """Return upper bounds on h(m - 1) of (I) for many laws of L, by Chernoff's inequality; shape (laws,), at most 1.

    Parameters
    ----------
    values, weights : ndarray, shape (laws, atoms)
        Atoms of L, and their probabilities (the rest is at 0); a law above L gives a bound too.
    reports : float
        The number of reports m.
    """
    with np.errstate(over="ignore"):  # squares of ratios of many linked rounds: then nothing better than 1 is said
        scale = math.sqrt(float((weights * values**2).sum(axis=1).max()) * reports)
    best = np.ones(values.shape[0])
    if not 0.0 < scale < math.inf:
        return best
    rest = np.maximum(1.0 - weights.sum(axis=1), 0.0)
    for tilt in _TILTS / scale:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            grown = weights * np.expm1(tilt * values)
            # some thousand roundings of all magnitudes are far above those of some hundred atoms
            logs = reports * np.log1p(grown.sum(axis=1) + roundoff(8192, np.abs(grown).sum(axis=1) + tilt))
            part = _tilted_part(values, grown + weights, rest, reports, tilt) * (1 + 1e-6)
            bounds = np.exp(np.minimum(logs, 700.0)) * part / reports
        best = np.fmin(best, bounds)
    return best


def _tilted_part(values: FloatArray, tilted: FloatArray, rest: FloatArray, reports: float, tilt: float) -> FloatArray:
    """Bound E_t f(S); ``tilted`` are the atoms' weights times e^{tL}, and ``rest`` the weight at 0."""
    whole = tilted.sum(axis=1) + rest
    mean = (tilted * values).sum(axis=1) / whole
    apart = np.abs(values - mean[:, None])
    variance = ((tilted * apart**2).sum(axis=1) + rest * mean**2) / whole
    third = ((tilted * apart**3).sum(axis=1) + rest * np.abs(mean) ** 3) / whole
    distance = _BERRY_ESSEEN * third / (variance**1.5 * math.sqrt(reports))
    a, b = reports * mean, np.sqrt(reports * variance)
    x = tilt * b - a / b
    # int_0^inf s e^(-ts) dN(a, b^2) = b phi(a/b) (1 - x m(x)), m Mills' ratio
    normal = b * np.exp(-0.5 * (a / b) ** 2) / math.sqrt(2.0 * math.pi) * (1.0 - x * mills_ratio(np.maximum(x, -1.0)))
    smooth = np.where(x >= -1.0, normal + 2.0 / (math.e * tilt) * distance, math.inf)
    return np.fmin(smooth, 1.0 / (math.e * tilt))


# ------------------------------------------------------------------ rare cells
# Outputs that the victim hardly ever gives but that would give everything away: charged, not transformed.
#
# A bundle of hundreds of reports has outputs that are e^100 times as likely under one record as under the blanket,
# with chances of 1e-40. The moment generating function of L lives on them alone and says nothing at any useful tilt.
# They may be left out of L, which is then 0 there, and charged with the victim's own divergence
# (docs/theorems/blanket.md). Of a lower end they may be left out for nothing: where L > 0, less of it makes E(sum
# L)_+ smaller.

_CUTS = (1e-9, 1e-13, 1e-18)
"""Probabilities that may be charged for outputs left out."""
_WORTH = 1e3
"""Ratio of a value to the cut from which on the cut does not noticeably enlarge it."""
_MANY, _FEW = 1e4, 1e8
"""Ratios beyond which outputs are left out: for laws on a lattice, and for laws taken as they are."""


def with_rare_cells_apart(pair: PairBlanket, epsilon: float, evaluated: Callable[[PairBlanket], Interval]) -> Interval:
    """Return an enclosure of (I) that usually costs less: rare outputs are left out at first, and charged.

    (I) is evaluated with all outputs as well, and the smaller interval is returned, for discrete laws and where what is
    charged matters.

    Parameters
    ----------
    pair : PairBlanket
        A pair of inputs; of a continuous law (``loss_ulps`` of 0) the edges have been chosen already.
    epsilon : float
        Nats, at least 0.
    evaluated : callable
        Function of a pair that returns (I): upper ends for laws above L, lower ends for laws below it.
    """
    largest = float(pair.ratios0.max()) if pair.spread is None else float(pair.spread.ratio_high.max())
    if not pair.loss_ulps or largest <= (_FEW if pair.spread is None else _MANY):
        return evaluated(pair)
    lower, upper = 0.0, math.inf
    for cut in _CUTS:
        interval = evaluated(without_rare(pair, epsilon, cut))
        lower, upper = max(lower, interval.lower), min(upper, interval.upper)
        if upper >= _WORTH * cut:
            break
    if pair.spread is None or upper < _WORTH * _CUTS[-1]:
        interval = evaluated(pair)
        lower, upper = max(lower, interval.lower), min(upper, interval.upper)
    return Interval(min(lower, upper), upper)


def without_rare(pair: PairBlanket, epsilon: float, cut: float) -> PairBlanket:
    """Return the pair with its rare outputs left out: those of the largest ratios.

    Parameters
    ----------
    pair : PairBlanket
        Of rounded losses.
    epsilon : float
        Nats: only outputs of a larger loss are left out.
    cut : float
        Largest chance of the outputs left out under the first input, in (0, 1).
    """
    spread = pair.spread
    if spread is None:
        ulps = pair.loss_ulps
        spread = CellSpread(
            *(round_down(pair.ratios0, 8), round_up(pair.ratios0, 8)),
            *(round_down(pair.losses, ulps), round_up(pair.losses, ulps)),
            *(np.zeros(0), np.zeros(0)),
        )
    chance = round_up(pair.masses * spread.ratio_high, 8)
    order = np.argsort(-spread.ratio_high, kind="stable")
    far = np.zeros(chance.size, dtype=bool)
    far[order] = np.cumsum(chance[order]) <= cut
    far &= spread.loss_low > epsilon
    if not far.any():
        return pair
    trimmed = CellSpread(
        np.where(far, 0.0, spread.ratio_low),
        np.where(far, 0.0, spread.ratio_high),
        np.where(far, 0.0, spread.loss_low),
        np.where(far, 0.0, spread.loss_high),
        np.append(spread.left_out_mass, chance[far]),
        np.append(spread.left_out_loss, spread.loss_high[far]),
    )
    ratios0, ratios1, losses = (np.where(far, 0.0, part) for part in (pair.ratios0, pair.ratios1, pair.losses))
    return replace(pair, ratios0=ratios0, ratios1=ratios1, losses=losses, spread=trimmed)


EXACT_UP_TO = 48
"""Up to this many reports of few cells, h is a finite sum over all compositions."""
_MOST_COMPOSITIONS = 30_000
_PER_DEVIATION = 6.0
_RESOLUTION = 5000.0
SMOOTHING = 0.03
_SMOOTHING_OF_MANY = 0.02
"""The same for values at many epsilons in one pass, where less of it costs little."""
_ULPS = 32
_WEIGHTS = roundoff(65536)
"""Relative error of a sum of 30,000 positive terms, whose weights are good to 1e-12."""
_MANY_RIVALS = 4
_LARGEST_OF_PAIR = 600.0
"""Largest epsilon (nats) evaluated; larger ones get its delta, which does not increase, to keep e^epsilon in range."""


def upper_ends(pair: PairBlanket, epsilons: list[float], count: TermCount, *, mean: bool) -> dict[float, Interval]:
    """Return upper ends of (I) or (Z) for a continuous pair at many epsilons, each with the lower end 0.

    Epsilons at which one pass does not tell are left out, and so are all of a pair that is not continuous.

    Parameters
    ----------
    pair : PairBlanket
        A pair of inputs.
    epsilons : list of float
        Nats, at least 0.
    count : TermCount
        The number of reports that are added up.
    mean : bool
        Whether the expected mean of so many values of L is meant, (I), or their expected sum over the mean of their
        number, (Z).
    """
    moderate = [epsilon for epsilon in epsilons if epsilon <= _LARGEST_OF_PAIR]
    if pair.spread is None or pair.loss_ulps or not moderate:
        return {}
    laws = upper_laws(pair, pair.spread, np.array(moderate))
    alone = laws.alone
    ends = compound_sums_above(laws.values, laws.weights, count, alone if mean else None, _SMOOTHING_OF_MANY)
    ends = np.where(laws.usable, inflated(ends, 4) + laws.charge, np.inf)
    rows = zip(moderate, np.minimum(ends, alone).tolist(), np.isfinite(ends).tolist(), strict=True)
    return {epsilon: Interval(0.0, end) for epsilon, end, bounded in rows if bounded}


@dataclass(frozen=True, eq=False)
class OneBudgetProfile(PrivacyProfile):
    """Upper bound by the common blanket theorem, formula (Z), for n users who share one budget.

    Parameters
    ----------
    top : float
        An epsilon (nats, possibly inf) from which on the victim's own report has no divergence.
    pair : PairBlanket
        A pair of inputs at the common budget, gamma > 0.
    n : int
        Number of users.
    above : bool
        Whether a continuous law is rounded up (the upper end is certified) or down (the lower end is).
    smoothing : float
        Relative smoothing of the transform; the enclosure's relative width is about its square.
    enclosed : bool
        Whether both ends are certified if the losses are rounded; else the one of ``above`` alone.
    """

    top: Upper
    pair: PairBlanket
    n: int
    above: bool = True
    smoothing: float = SMOOTHING
    enclosed: bool = False
    _known: dict[float, Interval] = field(init=False, default_factory=dict[float, Interval], repr=False)

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon (nats, possibly inf) from which on delta is 0, because one report alone has delta 0 there."""
        return self.top

    def delta_at(self, epsilon: float) -> Interval:
        """Enclose the bound (Z) on delta(epsilon) by the tilted transform, or for few users by all compositions."""
        if epsilon not in self._known:
            self._known[epsilon] = self._evaluated(epsilon)
        return self._known[epsilon]

    def knows(self, epsilon: float) -> bool:
        """Return whether delta was evaluated at epsilon (nats)."""
        return epsilon in self._known

    def prepare(self, epsilons: list[float]) -> None:
        """Evaluate upper ends at several epsilons (nats) in one pass, for a continuous law rounded up."""
        fresh = [epsilon for epsilon in epsilons if epsilon not in self._known and epsilon < self.top]
        if self.above and fresh:
            # fewer blanket reports hide the victim no better, so gamma is rounded down
            gamma = np.array([self.pair.gamma * (1.0 - roundoff(64))])
            self._known.update(upper_ends(self.pair, fresh, TermCount(0, gamma, np.array([float(self.n)])), mean=False))

    @property
    def ends_apart(self) -> bool:
        """Whether laws above and below the losses are evaluated, one for each end."""
        return bool(self.pair.loss_ulps and self.enclosed)

    def delta_above(self, epsilon: float) -> Upper:
        """Return the upper end of `delta` at epsilon (nats)."""
        if not self.ends_apart or epsilon in self._known or not epsilon < min(self.top, _LARGEST_OF_PAIR):
            return self.delta(epsilon).upper
        return Upper(max(min(self._ends(epsilon, above=True).upper, 1.0), 0.0))

    def delta_below(self, epsilon: float) -> Lower:
        """Return the lower end of `delta` at epsilon (nats)."""
        if not self.ends_apart or epsilon in self._known or not epsilon < min(self.top, _LARGEST_OF_PAIR):
            return self.delta(epsilon).lower
        return Lower(max(min(self._ends(epsilon, above=False).lower, 1.0), 0.0))

    def _evaluated(self, epsilon: float) -> Interval:
        if epsilon > _LARGEST_OF_PAIR:
            return Interval(0.0, self.delta(_LARGEST_OF_PAIR).upper)
        interval = self._ends(epsilon, above=self.above)
        if not (self.pair.loss_ulps and self.enclosed):
            return interval
        below = self._ends(epsilon, above=False)
        return Interval(min(below.lower, interval.upper), interval.upper)

    def _ends(self, epsilon: float, *, above: bool) -> Interval:
        return with_rare_cells_apart(self.pair, epsilon, lambda pair: self._of(loss_law(pair, epsilon, above=above)))

    def _of(self, law: LossLaw) -> Interval:
        if not law.finite:
            return Interval(0.0, law.alone)
        if self.n <= exact_reports(self.pair):
            gamma = np.array([self.pair.gamma])
            count = SuccessRange.of(gamma, np.array([self.n - 1.0]), ulps=_ULPS)
            blocks = BlockedCount.of(count, 40.0, 75.0)
            interval = blocks.expectation(composition_values(law.one, blocks.left.astype(np.int64) + 1))
        else:
            sums = law.diluted(self.pair.gamma)
            if not sums.finite:
                return Interval(0.0, law.alone)
            users = replace(sums.one, counts=np.array([float(self.n)]))
            interval = positive_part(users, self.smoothing) / self.n
        return _capped(interval, law)

    def guess_epsilon(self, delta: float) -> float | None:
        """Return the epsilon (nats) of the Gaussian limit, a first guess; None if it has none."""
        return limit_epsilon(self.pair, self.n * self.pair.gamma, delta)


@dataclass(frozen=True, eq=False)
class OwnBudgetsProfile(PrivacyProfile):
    """Upper bound by the common blanket theorem, formula (I), for users with different budgets.

    Parameters
    ----------
    top : float
        An epsilon (nats, possibly inf) from which on the victim's own report has no divergence.
    pair : PairBlanket
        A pair of inputs at the victim's budget.
    blankets : SuccessRange
        Number of blanket reports among the other users.
    above : bool
        Whether a continuous law is rounded up (the upper end is certified) or down (the lower end is).
    smoothing : float
        Relative smoothing of the transform; the enclosure's relative width is about its square.
    fineness : float
        Blocks of the count, relative to the usual number.
    """

    top: Upper
    pair: PairBlanket
    blankets: SuccessRange
    above: bool = True
    smoothing: float = SMOOTHING
    fineness: float = 1.0
    _blocks: dict[float, BlockedCount] = field(default_factory=dict[float, BlockedCount], repr=False)
    _known: dict[float, Interval] = field(init=False, default_factory=dict[float, Interval], repr=False)

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon (nats, possibly inf) from which on delta is 0, because one report alone has delta 0 there."""
        return self.top

    def delta_at(self, epsilon: float) -> Interval:
        """Enclose the bound (I) on delta(epsilon), by h at the ends of blocks of the number of blanket reports.

        The far lower tail of that number is resolved only if it matters.
        """
        if epsilon not in self._known:
            self._known[epsilon] = self._evaluated(epsilon)
        return self._known[epsilon]

    def _evaluated(self, epsilon: float) -> Interval:
        if epsilon > _LARGEST_OF_PAIR:
            return Interval(0.0, self.delta(_LARGEST_OF_PAIR).upper)
        return with_rare_cells_apart(
            self.pair, epsilon, lambda pair: self._of(loss_law(pair, epsilon, above=self.above))
        )

    def _of(self, law: LossLaw) -> Interval:
        if not law.finite:
            return Interval(0.0, law.alone)
        value = Interval(0.0, 1.0)
        for depth in (11.0, 40.0):
            blocks = self._resolved(depth)
            value = blocks.expectation(self._values(blocks.left + 1.0, law))
            if blocks.left.size < 2 or blocks.through.upper[0] <= 1e-7 * value.lower:
                break
        return _capped(value, law)

    def knows(self, epsilon: float) -> bool:
        """Return whether delta was evaluated at epsilon (nats)."""
        return epsilon in self._known

    def prepare(self, epsilons: list[float]) -> None:
        """Evaluate upper ends at several epsilons (nats) in one pass, for a continuous law rounded up."""
        fresh = [epsilon for epsilon in epsilons if epsilon not in self._known and epsilon < self.top]
        if self.above and fresh:
            others = self.blankets.fewest  # fewer blanket reports hide the victim no better
            count = TermCount(1, others.probabilities, others.counts)
            self._known.update(upper_ends(self.pair, fresh, count, mean=True))

    def _resolved(self, depth: float) -> BlockedCount:
        if depth not in self._blocks:
            # h changes by about z^2/2c per user: large counts need fewer blocks for the same accuracy
            count = self.blankets.most
            needed = _RESOLUTION * count.deviation / max(count.mean, 1.0)
            per_deviation = min(max(needed, 1.5), _PER_DEVIATION) * self.fineness
            self._blocks[depth] = BlockedCount.of(self.blankets, depth, per_deviation)
        return self._blocks[depth]

    def _values(self, m: FloatArray, law: LossLaw) -> Enclosure:
        """h(m - 1), exactly for few reports and by the tilted transform for many.

        h(0) = E L_+ is a finite sum for every law; the transform would take a line of its own for it.
        """
        lower, upper = np.zeros(m.size), np.full(m.size, law.alone)
        few = m <= max(exact_reports(self.pair), 1)
        if few.any():
            lower[few], upper[few] = composition_values(law.one, m[few].astype(np.int64))
        if not few.all():
            many = positive_parts(law.one, m[~few], self.smoothing)
            lower[~few] = deflated(many.lower / m[~few], 4)
            upper[~few] = inflated(many.upper / m[~few], 4)
        upper = np.minimum(upper, law.alone)
        return Enclosure(np.minimum(lower, upper), upper)  # a law above L may exceed 1

    def guess_epsilon(self, delta: float) -> float | None:
        """Return the epsilon (nats) of the Gaussian limit, a first guess; None if it has none."""
        return limit_epsilon(self.pair, self.blankets.most.mean + 1.0, delta)


@dataclass(frozen=True, eq=False)
class LargestProfile(PrivacyProfile):
    """Pointwise maximum of several profiles: the worst of several pairs of inputs of a randomizer.

    Parameters
    ----------
    parts : tuple of PrivacyProfile
        One profile per pair, at least one; the one expected to be the largest first.
    pairs : tuple of PairBlanket
        The parts' pairs; if given, a part that a quick upper bound shows to be smaller is not evaluated.
    blankets : SuccessRange, optional
        The law of the number of blanket reports among the other users, for that quick bound.
    n : int, optional
        Number of users, if all have the same budget and the parts are (Z).
    """

    parts: tuple[PrivacyProfile, ...]
    pairs: tuple[PairBlanket, ...] = ()
    blankets: SuccessRange | None = None
    n: int | None = None

    @property
    def most_knots(self) -> int:
        """Largest number of knots of its table: the smallest such number of the parts."""
        return min(part.most_knots for part in self.parts)

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon (nats) from which on the deltas of all parts are 0."""
        return max(part.vanishes_at for part in self.parts)

    def delta_at(self, epsilon: float) -> Interval:
        """Enclose the largest of the parts' deltas at epsilon."""
        worst = self.parts[0].delta(epsilon)
        for part in self._rivals(self.parts[0], epsilon, worst.lower):
            delta = part.delta(epsilon)
            worst = Interval(max(worst.lower, delta.lower), max(worst.upper, delta.upper))
        return worst

    def _inverse(self, target: float) -> Interval:
        """Return the largest of the parts' epsilons; a part already below delta at the largest so far is left alone."""
        first = self._expected_worst(target)
        worst = first.epsilon(target)
        if not math.isfinite(worst.upper):
            return worst
        for part in self._rivals(first, worst.upper, target):
            if part.delta(worst.upper).upper > target:
                epsilon = part.epsilon(target)
                worst = Interval(max(worst.lower, epsilon.lower), max(worst.upper, epsilon.upper))
        return worst

    def _expected_worst(self, target: float) -> PrivacyProfile:
        """Return the part whose quick bound is the largest where epsilon is expected; it only saves time."""
        guess = self.parts[0].guess_epsilon(target)
        if self.blankets is None or guess is None or not guess <= _LARGEST_OF_PAIR:
            return self.parts[0]
        return self.parts[int(np.argmax(self._quick_bounds(guess, target)))]

    def _rivals(self, first: PrivacyProfile, epsilon: float, delta: float) -> list[PrivacyProfile]:
        """Parts besides one that may exceed delta at this epsilon."""
        if self.blankets is None or not 0.0 < delta < 1.0 or epsilon > _LARGEST_OF_PAIR:
            return [part for part in self.parts if part is not first]
        quick = self._quick_bounds(epsilon, delta)
        left = [i for i, bound in enumerate(quick) if bound > delta and self.parts[i] is not first]
        if self.n is not None and len(left) > _MANY_RIVALS:
            order = [self.parts.index(first), *left]
            bounds = users_above([self.pairs[i] for i in order], epsilon, self.n)
            left = [i for i, bound in zip(left, bounds[1:].tolist(), strict=True) if bound > delta]
        return [self.parts[i] for i in left]

    def _quick_bounds(self, epsilon: float, delta: float) -> FloatArray:
        """Upper bounds on all parts' deltas, shape (parts,), for comparison with this delta."""
        if self.blankets is None:
            return np.ones(len(self.parts))
        laws = [loss_law(pair, epsilon) for pair in self.pairs]
        total = stacked([law.one for law in laws])
        reports, rare = fewest_blankets(self.blankets, delta)
        values = chernoff_values(total.values, total.probabilities, reports)
        return values + rare + np.array([law.charge for law in laws])


def users_above(pairs: list[PairBlanket], epsilon: float, n: int) -> FloatArray:
    """Return upper bounds on (Z) for several pairs of inputs, shape (pairs,), by one quick evaluation for all.

    Parameters
    ----------
    pairs : list of PairBlanket
        Pairs of inputs of one randomizer. The bound is sharp for pairs that resemble the first one.
    epsilon : float
        Nats.
    n : int
        Number of users.
    """
    laws = [loss_law(pair, epsilon) for pair in pairs]
    sums = [law.diluted(pair.gamma) for law, pair in zip(laws, pairs, strict=True)]
    if not all(law.finite for law in sums):
        return np.ones(len(pairs))
    total = replace(stacked([law.one for law in sums]), counts=np.full(len(pairs), float(n)))
    return inflated(positive_parts_above(total) / n, 4) + np.array([law.charge for law in laws])


def _capped(interval: Interval, law: LossLaw) -> Interval:
    """Add the charge; nobody is worse off than alone."""
    upper = min(interval.upper + law.charge, law.alone)
    return Interval(min(interval.lower, upper), upper)


def limit_epsilon(pair: PairBlanket, blankets: float, delta: float) -> float | None:
    """Return the epsilon (nats) of the Gaussian limit at ``delta``, a first guess; None if the limit does not exist.

    The limit has mu^2 = E_omega (r_0 - r_1)^2 / ``blankets``, the number of blanket reports.
    """
    with np.errstate(over="ignore"):
        second = float(pair.masses @ (pair.ratios0 - pair.ratios1) ** 2)
    if blankets <= 0.0 or not math.isfinite(second):
        return None
    return gaussian_epsilon(delta, math.sqrt(second / blankets))


def exact_reports(pair: PairBlanket) -> int:
    """Return up to how many reports delta is computed by an exact sum over the counts of the pair's cells; may be 0."""
    return 0 if pair.spread is not None else _exact_reports(pair.masses.size)


@lru_cache(maxsize=64)
def _exact_reports(cells: int) -> int:
    most = EXACT_UP_TO
    while most > 1 and math.comb(most + cells - 1, cells - 1) > _MOST_COMPOSITIONS:
        most -= 1
    return most


@lru_cache(maxsize=128)
def _compositions(m: int, cells: int) -> FloatArray:
    """All ways to split m reports over the cells, shape (ways, cells)."""
    if m == 1:  # one report, in any cell: of a law on a lattice there are hundreds
        return np.eye(cells)
    if cells == 1:
        return np.array([[float(m)]])
    parts = [
        np.column_stack((np.full(len(rest), float(first)), rest))
        for first in range(m + 1)
        for rest in (_compositions(m - first, cells - 1),)
    ]
    return np.concatenate(parts)


def composition_values(law: IndependentSum, reports: np.ndarray) -> Enclosure:
    """Enclose h(m - 1) of (I) for each number of reports m by an exact sum over the counts of the cells.

    A term is a composition: how many of the m reports fall into each cell. Weights have a relative error of 1e-12
    (log-factorials below 48!, exponents below 48 * 21; of one report no factorial, and an exponent below 745). A sum of
    atoms may cancel: its rounding error (8 roundoffs per cell of the sum of magnitudes) and the error bound of each
    atom are added for the upper end and subtracted for the lower end before the positive part is taken. Values are
    scaled by the largest atom, so that only what is below 1e-300 underflows.
    """
    some = law.probabilities[0] > 0.0  # a law on a lattice may leave points out
    masses, unit = law.probabilities[0][some], max(float(np.abs(law.values).max()), TINY)
    atoms = law.values[0][some] / unit
    lower, upper = np.empty(reports.size), np.empty(reports.size)
    logs = np.log(masses)
    for index, m in enumerate(reports.tolist()):
        counts = _compositions(m, masses.size)
        total, size = counts @ atoms, counts @ np.abs(atoms)
        doubt = roundoff(8.0 * (masses.size + 1) + 2.0 * law.doubt, size)
        log_p = gammaln(m + 1.0) - gammaln(counts + 1.0).sum(axis=1) + counts @ logs
        weight = np.exp(log_p + math.log(unit)) / m
        lower[index] = float(weight @ np.maximum(total - doubt, 0.0)) * (1.0 - _WEIGHTS)
        upper[index] = float(weight @ np.maximum(total + doubt, 0.0)) * (1.0 + _WEIGHTS) + TINY
    return Enclosure(lower, upper)


def worst_first(pairs: tuple[PairBlanket, ...]) -> tuple[PairBlanket, ...]:
    """Return pairs of inputs ordered by E_omega (r_0 - r_1)^2, the most distinguishable first."""
    if len(pairs) == 1:
        return pairs
    with np.errstate(over="ignore"):
        return tuple(sorted(pairs, key=lambda pair: -float(pair.masses @ (pair.ratios0 - pair.ratios1) ** 2)))
