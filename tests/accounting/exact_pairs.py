"""Pairs of laws on a few outcomes, whose divergences are sums; used as oracles."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from mpmath import log, mp, mpf, workdps

from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.numerics.floats import Interval


@dataclass(frozen=True, eq=False)
class ExactProfile(PrivacyProfile):
    """Two laws on a few outcomes; enclosures are widened, differently at every epsilon, by up to a relative slack."""

    p: np.ndarray
    q: np.ndarray
    slack: float = 0.0
    two_way: bool = False
    asked: list[float] = field(default_factory=list[float])

    @property
    def vanishes_at(self) -> float:
        if np.any((self.p == 0) != (self.q == 0)):
            return math.inf
        both = self.p > 0
        return float(np.max(np.abs(np.log(self.p[both] / self.q[both])))) * (1 + 1e-15)

    @property
    def directed(self) -> bool:
        return self.two_way

    def exact(self, epsilon: float, reverse: bool = False) -> float:
        p, q = (self.q, self.p) if reverse else (self.p, self.q)
        return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())

    def delta_at(self, epsilon: float) -> Interval:
        first, second = self.delta_pair(epsilon)
        return Interval(max(first.lower, second.lower), max(first.upper, second.upper))

    def delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        self.asked.append(epsilon)
        rng = np.random.default_rng(abs(hash(epsilon)) % 2**32)
        ends = []
        for reverse in (False, True):
            value = self.exact(epsilon, reverse)
            doubt = 4e-16 * (1 + math.exp(epsilon))
            low, high = rng.uniform(0, self.slack, 2)
            ends.append(Interval(max(value * (1 - low) - doubt, 0.0), value * (1 + high) + doubt))
        if not self.two_way:
            worst = Interval(max(e.lower for e in ends), max(e.upper for e in ends))
            return worst, worst
        return ends[0], ends[1]

    def renyi_exact(self, order: float, reverse: bool = False) -> float:
        p, q = (self.q, self.p) if reverse else (self.p, self.q)
        some = p > 0
        if np.any(q[some] == 0):
            return math.inf
        with workdps(40):  # next to order 1 the logarithm cancels
            a, b = ([mpf(float(x)) for x in side] for side in (p, q))
            a, b, power = [x / mp.fsum(a) for x in a], [x / mp.fsum(b) for x in b], mpf(order)
            total = mp.fsum(x**power * y ** (1 - power) for x, y in zip(a, b, strict=True) if x > 0)
            return float(log(total) / (power - 1))


def random_pair(rng: np.random.Generator, outcomes: int) -> tuple[np.ndarray, np.ndarray]:
    p = rng.dirichlet(np.full(outcomes, 0.7)) + 1e-4
    q = p * np.exp(rng.normal(0.0, rng.choice([0.1, 1.0, 3.0]), outcomes))
    return p / p.sum(), q / q.sum()
