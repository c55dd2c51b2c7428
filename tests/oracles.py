"""Slow, obviously right second implementations: every number straight from its definition.

Part 1 enumerates the real shuffled protocol in exact integers (no theorem at all).
Part 2 evaluates the theorems' own quantities with mpmath, 40 digits, by direct sums over outcomes.
Nothing here blocks, truncates, tilts or transforms, and nothing is shared with the library under test.
The rigorous binomial tails (Arb balls) are in `arb_oracles`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from mpmath import binomial, exp, log, mp, mpf
from scipy import signal, stats

mp.dps = 40

Channel = tuple[tuple[Fraction, ...], ...]
View = Callable[[Sequence[Hashable]], Hashable]

# ---------------------------------------------------------- part 1: the real protocol, exactly


def krr_channel(k: int, ratio: Fraction) -> Channel:
    """k-ary randomized response whose e^epsilon0 is `ratio`: truth with mass E/(E+k-1), else uniform."""
    total = ratio + k - 1
    return tuple(tuple((ratio if x == y else Fraction(1)) / total for y in range(k)) for x in range(k))


def ldp_ratio(channel: Channel) -> Fraction:
    """Largest column ratio of a channel: its e^epsilon0 (zero masses must match over a column)."""
    worst = Fraction(1)
    for column in zip(*channel, strict=True):
        if max(column) > 0:
            worst = max(worst, max(column) / min(column))
    return worst


def compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to split `total` identical things over `parts` cells."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in compositions(total - first, parts - 1):
            yield (first, *rest)


class ShuffledProtocol:
    """The shuffled protocol of n users with own channels; laws are integers over one common denominator.

    `tags[i]` is what the report of user i reveals about its sender besides its value: equal tags for
    shuffled reports, the level for "levels visible". `summed` releases the sum of the report values only.
    """

    def __init__(self, channels: Sequence[Channel], tags: Sequence[int] | None = None, *, summed: bool = False) -> None:
        self.channels = list(channels)
        self.tags = list(tags) if tags is not None else [0] * len(self.channels)
        self.summed = summed
        self.scales = [math.lcm(*(p.denominator for row in ch for p in row)) for ch in self.channels]
        outputs = {(tag, y) for tag, ch in zip(self.tags, self.channels, strict=True) for y in range(len(ch[0]))}
        self.cells = {cell: i for i, cell in enumerate(sorted(outputs))}

    def _start(self) -> dict[Hashable, int]:
        return {0 if self.summed else (0,) * len(self.cells): 1}

    def _add(self, law: dict[Hashable, int], user: int, record: int) -> dict[Hashable, int]:
        """Add one user's report to a multiset law."""
        out: dict[Hashable, int] = {}
        for y, mass in enumerate(self.channels[user][record]):
            weight = int(mass * self.scales[user])
            if weight == 0:
                continue
            cell = self.cells[(self.tags[user], y)]
            for state, value in law.items():
                if self.summed:
                    new: Hashable = state + y  # type: ignore[operator]
                else:
                    new = (*state[:cell], state[cell] + 1, *state[cell + 1 :])  # type: ignore[index]
                out[new] = out.get(new, 0) + value * weight
        return out

    def law(self, records: Sequence[int]) -> dict[Hashable, Fraction]:
        """Exact law of what the analyst sees."""
        law = self._start()
        for user, record in enumerate(records):
            law = self._add(law, user, record)
        total = math.prod(self.scales)
        return {state: Fraction(value, total) for state, value in law.items()}

    def laws_of_others(self, victim: int) -> Iterator[tuple[tuple[int, ...], dict[Hashable, int]]]:
        """Law of the others' multiset for all their records, each multiset law once per class of twins."""
        others = [i for i in range(len(self.channels)) if i != victim]
        groups: dict[Hashable, list[int]] = {}
        for i in others:
            groups.setdefault((self.channels[i], self.tags[i]), []).append(i)
        # users with one channel and one tag are exchangeable: only how many hold each record matters
        choices = []
        for members in groups.values():
            inputs = len(self.channels[members[0]])
            options = []
            for counts in compositions(len(members), inputs):
                held = [x for x, c in enumerate(counts) for _ in range(c)]
                options.append(list(zip(members, held, strict=True)))
            choices.append(options)
        for combination in itertools.product(*choices):
            law = self._start()
            records = dict(itertools.chain(*combination))
            for user, record in records.items():
                law = self._add(law, user, record)
            yield tuple(records.get(i, -1) for i in range(len(self.channels))), law

    def worst(self, victim: int, ratio: Fraction, pairs: Sequence[tuple[int, int]] | None = None) -> Fraction:
        """Largest sum_y (P(y) - ratio Q(y))_+ over others' records and ordered victim pairs (x0, x1)."""
        inputs = len(self.channels[victim])
        asked = list(itertools.permutations(range(inputs), 2)) if pairs is None else list(pairs)
        needed = sorted({x for pair in asked for x in pair})
        best = 0
        for _, law in self.laws_of_others(victim):
            seen = {x: self._add(law, victim, x) for x in needed}
            for x0, x1 in asked:
                best = max(best, _hockey_stick_integers(seen[x0], seen[x1], ratio))
        return Fraction(best, math.prod(self.scales) * ratio.denominator)


def _hockey_stick_integers(P: dict[Hashable, int], Q: dict[Hashable, int], ratio: Fraction) -> int:
    up, down = ratio.numerator, ratio.denominator
    return sum(max(0, down * value - up * Q.get(state, 0)) for state, value in P.items())


def hockey_stick(P: dict[Hashable, Fraction], Q: dict[Hashable, Fraction], ratio: Fraction) -> Fraction:
    """sum_y (P(y) - ratio Q(y))_+, exactly."""
    return sum((max(Fraction(0), p - ratio * Q.get(y, Fraction(0))) for y, p in P.items()), Fraction(0))


# ---------------------------------------------------------- part 2: the theorems' own numbers, 40 digits


def poisson_binomial(ps: Sequence[mpf]) -> list[mpf]:
    """Masses of a sum of independent Bern(p_i), by multiplying out the generating polynomial."""
    pmf = [mpf(1)]
    for p in ps:
        grown = [mpf(0)] * (len(pmf) + 1)
        for k, value in enumerate(pmf):
            grown[k] += value * (1 - p)
            grown[k + 1] += value * p
        pmf = grown
    return pmf


def binomial_pmf(n: int, p: mpf) -> list[mpf]:
    """Masses of Bin(n, p)."""
    return [binomial(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]


@lru_cache(maxsize=4096)
def _clone_h(c: int, eps_v: mpf, eps: mpf) -> mpf:
    """Sum over a of (P(a|c) - e^eps Q(a|c))_+ for the victim's report among c fair coins.

    Of m = c + 1 reports, a of the first kind: the victim's is of the first kind (w.p. w under x0) and the c
    coins show a - 1, or it is of the second kind and they show a.
    """
    w = exp(eps_v) / (1 + exp(eps_v))
    t = exp(eps)
    coins = [binomial(c, a) * mpf(2) ** (-c) for a in range(c + 1)]
    total = mpf(0)
    for a in range(c + 2):
        first = coins[a - 1] if a >= 1 else mpf(0)
        second = coins[a] if a <= c else mpf(0)
        p = w * first + (1 - w) * second
        q = (1 - w) * first + w * second
        total += max(mpf(0), p - t * q)
    return total


@lru_cache(maxsize=64)
def _clone_counts(others: tuple[float, ...]) -> list[mpf]:
    ps = [2 / (1 + exp(mpf(x))) for x in others]
    return binomial_pmf(len(ps), ps[0]) if len(set(others)) == 1 else poisson_binomial(ps)


def clone_pair_delta(eps_v: float, others: Sequence[float], eps: float) -> mpf:
    """Own-budget clone pair: victim eps_v, clone probabilities 2/(1+e^eps_i), delta at eps."""
    counts = _clone_counts(tuple(others))
    return mp.fsum(p * _clone_h(c, mpf(eps_v), mpf(eps)) for c, p in enumerate(counts) if p > mpf(10) ** -330)


def clone_pair_delta_z_form(eps0: float, n: int, eps: float) -> mpf:
    """(1/n) E(sum_{i<=n} Z_i)_+ with the three-valued Z of (Z*), by the trinomial law: one budget only."""
    E, t = exp(mpf(eps0)), exp(mpf(eps))
    alpha = 1 / (1 + E)
    up, down = E - t, 1 - E * t
    total = mpf(0)
    for i in range(n + 1):
        for j in range(n - i + 1):
            value = i * up + j * down
            if value > 0:
                ways = binomial(n, i) * binomial(n - i, j)
                total += value * ways * alpha ** (i + j) * (1 - 2 * alpha) ** (n - i - j)
    return total / n


def clone_pair_delta_large(eps0: float, n: int, eps: float) -> mpf:
    """(Z*) for large n: E(S)_+ = (1/2 pi i) int M(z)/z^2 dz over the vertical line through the saddle.

    M is the moment generating function of S = sum Z_i. Only the peak at the saddle is integrated; the
    others are smaller by about the number of clones, so the relative error is below 1/clones.
    """
    E, t = exp(mpf(eps0)), exp(mpf(eps))
    s, up, down = 1 / (1 + E), E - t, 1 - E * t

    def exponent(z: mpf) -> mpf:
        return n * mp.log1p(s * (mp.expm1(up * z) + mp.expm1(down * z))) - 2 * log(z)

    def slope(z: mpf) -> mpf:
        factor = 1 + s * (mp.expm1(up * z) + mp.expm1(down * z))
        return n * s * (up * exp(up * z) + down * exp(down * z)) / factor - 2 / z

    low, high = mpf(10) ** -14, 50 / up
    for _ in range(150):
        middle = mp.sqrt(low * high)
        low, high = (low, middle) if slope(middle) > 0 else (middle, high)
    step = high * mpf(10) ** -5
    width = 1 / mp.sqrt((slope(high + step) - slope(high - step)) / (2 * step))
    peak = exponent(high)
    area = mp.quad(lambda y: exp(exponent(mp.mpc(high, y)) - peak).real, [width * i for i in (0, 1, 2, 4, 6, 9, 14)])
    return exp(peak) * area / mp.pi / n


def clone_pair_delta_levels(eps_v: float, others: dict[float, int], eps: float) -> float:
    """Clone pair for up to 1e6 others in a few levels, in doubles: absolute error about 1e-12.

    The clone count is a convolution of binomials; h(c) by two binomial tails: the victim's report is of the
    first kind w.p. w, and the sum of (P - e^eps Q)_+ starts at the first a with a positive term.
    """
    counts = np.ones(1)
    for budget, size in others.items():
        counts = signal.fftconvolve(counts, stats.binom.pmf(np.arange(size + 1), size, 2 / (1 + math.exp(budget))))
    c = np.flatnonzero(counts > 1e-18)
    w, t = 1 / (1 + math.exp(-eps_v)), math.exp(eps)
    m = c + 1
    # sign of [w a + (1-w)(m-a)] - t [(1-w) a + w (m-a)]
    start = np.ceil(m * (t * w - (1 - w)) / ((2 * w - 1) * (1 + t)))
    h = (w - t * (1 - w)) * stats.binom.sf(start - 2, c, 0.5) + ((1 - w) - t * w) * stats.binom.sf(start - 1, c, 0.5)
    return float(np.sum(counts[c] * np.maximum(h, 0.0)))


def blanket_delta(
    cells: Sequence[tuple[mpf, mpf, mpf]], gammas: Sequence[mpf], eps: float, *, swap: bool = False
) -> mpf:
    """Functional (I): E_C h(C), h(c) = E(sum_{j<=c+1} L(W_j))_+ / (c+1), by enumerating cell counts.

    `cells` holds (omega mass, r0, r1); `swap` exchanges the two worlds.
    """
    t = exp(mpf(eps))
    losses = [(r1 - t * r0) if swap else (r0 - t * r1) for _, r0, r1 in cells]
    masses = [mass for mass, _, _ in cells]
    total = mpf(0)
    for c, weight in enumerate(poisson_binomial(list(gammas))):
        m, h = c + 1, mpf(0)
        for counts in compositions(m, len(cells)):
            value = mp.fsum(k * loss for k, loss in zip(counts, losses, strict=True))
            if value > 0:
                ways, left = mpf(1), m
                for k, mass in zip(counts, masses, strict=True):
                    ways *= binomial(left, k) * mass**k
                    left -= k
                h += ways * value
        total += weight * h / m
    return total


def krr_blanket_delta(k: int, eps_v: float, others: Sequence[float], eps: float) -> mpf:
    """(I) for k-ary randomized response with own budgets: omega uniform on the k symbols."""
    E = exp(mpf(eps_v))
    scale = k / (E + k - 1)
    cells = [(mpf(1) / k, scale * E, scale), (mpf(1) / k, scale, scale * E)]
    if k > 2:
        cells.append((mpf(k - 2) / k, scale, scale))
    return blanket_delta(cells, [k / (exp(mpf(x)) + k - 1) for x in others], eps)


def krr_witness_delta(k: int, eps0: float, n: int, eps: float) -> mpf:
    """Exact divergence of the counts of symbols 0 and 1, victim 0 or 1, others on third symbols (k >= 3)."""
    E, t = exp(mpf(eps0)), exp(mpf(eps))
    s = 1 / (E + k - 1)
    others: dict[tuple[int, int], mpf] = {}
    for a in range(n):
        for b in range(n - a):
            third = n - 1 - a - b
            ways = binomial(n - 1, a) * binomial(n - 1 - a, b)
            others[a, b] = ways * s ** (a + b) * (1 - 2 * s) ** third
    zero, total = mpf(0), mpf(0)
    for a in range(n + 1):
        for b in range(n - a + 1):
            hit_a, hit_b = others.get((a - 1, b), zero), others.get((a, b - 1), zero)
            miss = others.get((a, b), zero) * (k - 2) * s
            total += max(zero, (E * s * hit_a + s * hit_b + miss) - t * (s * hit_a + E * s * hit_b + miss))
    return total


def rr_count_deltas(eps_v: float, others: Sequence[float], ones: int, eps: float) -> tuple[mpf, mpf]:
    """Both directions of the exact count of ones, binary RR; the first `ones` of `others` hold a one."""
    t = exp(mpf(eps))
    s = [1 / (1 + exp(mpf(x))) for x in others]
    base = poisson_binomial([1 - p if i < ones else p for i, p in enumerate(s)])
    flip = 1 / (1 + exp(mpf(eps_v)))
    forth = back = mpf(0)
    for count in range(len(base) + 1):
        stay = base[count] if count < len(base) else mpf(0)
        more = base[count - 1] if count >= 1 else mpf(0)
        p = stay * (1 - flip) + more * flip
        q = stay * flip + more * (1 - flip)
        forth += max(mpf(0), p - t * q)
        back += max(mpf(0), q - t * p)
    return forth, back


def epsilon_by_bisection(delta_of: Callable[[mpf], mpf], delta: float, top: float) -> mpf:
    """Smallest eps in [0, top] with delta_of(eps) <= delta, for a non-increasing delta_of."""
    low, high, target = mpf(0), mpf(top), mpf(delta)
    if delta_of(low) <= target:
        return low
    for _ in range(60):
        middle = (low + high) / 2
        if delta_of(middle) > target:
            low = middle
        else:
            high = middle
    return high


def gspa_epsilon(budgets: Sequence[float], delta: float) -> mpf:
    """GSPA Theorem 2 with Fact 3, pure budgets, solved for epsilon: the published formula, not a bound."""
    s = [1 / (1 + exp(mpf(x))) for x in budgets]
    mu = mp.sqrt(2 / (mp.fsum(s) - max(s)))

    def profile(eps: mpf) -> mpf:
        return mp.ncdf(-eps / mu + mu / 2) - exp(eps) * mp.ncdf(-eps / mu - mu / 2)

    return epsilon_by_bisection(profile, delta, 50.0)


def fraction_log(ratio: Fraction) -> mpf:
    """Natural logarithm of an exact ratio."""
    return log(mpf(ratio.numerator) / mpf(ratio.denominator))
