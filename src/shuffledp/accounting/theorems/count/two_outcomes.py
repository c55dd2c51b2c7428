"""A report of two outcomes, by the range of its chances: (C) of the count theorem for any shape.

Counting one outcome, with chances between p and q > p, the victim's own divergence is A = q (1 - e^(eps - loss)),
loss = log(q/p), and the best threshold on the others' count S has the value A psi(r), r = (e^eps - 1)/A. Chances are
exact fractions, rounded outward once: a larger range of chances is a larger set of laws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from shuffledp.accounting.theorems.count.bit_counts import BitCrowds
from shuffledp.numerics.floats import EPS, round_down, round_up
from shuffledp.numerics.interval import FloatArray, Interval


def exponentials(log: float) -> Interval:
    """Enclose e^log, at most 1; log is good to what its rounding has been charged.

    Parameters
    ----------
    log : float
        Possibly -inf.
    """
    value = math.exp(min(log, 0.0)) if log > -745.0 else 0.0
    return Interval(round_down(value, 8) if value > 0.0 else 0.0, min(round_up(value, 8), 1.0))


@dataclass(frozen=True)
class Outcome:
    """One of two outcomes: its smallest and its largest chance, 0 < p <= q < 1.

    Parameters
    ----------
    p, q : Fraction
        Exact.
    """

    p: Fraction
    q: Fraction

    @property
    def loss(self) -> Interval:
        """The privacy loss log(q/p), enclosed."""
        value = math.log1p(float((self.q - self.p) / self.p)) if self.q < 2 * self.p else math.log(self.q / self.p)
        return Interval(max(round_down(value, 8), 0.0), round_up(value, 8))

    def other(self) -> Outcome:
        """Return the other outcome."""
        return Outcome(1 - self.q, 1 - self.p)

    def crowds(self, likely: FloatArray, unlikely: FloatArray, *, outwards: bool) -> BitCrowds:
        """Return crowds of so many users of chance q and of chance p, rounded away from each other or together.

        Parameters
        ----------
        likely, unlikely : ndarray, shape (crowds,)
            Whole numbers as floats.
        outwards : bool
            Whether the range of chances is made larger.
        """
        chances, flipped = list[float](), list[bool]()
        for chance, up in ((self.q, outwards), (self.p, not outwards)):
            over = 2 * chance > 1
            part = float(1 - chance if over else chance)
            chances.append(min((round_up if up != over else round_down)(part), 0.5))
            flipped.append(over)
        return BitCrowds(np.array(chances), np.array(flipped), np.stack((likely, unlikely), axis=1))

    def line(self, epsilon: float, *, above: bool) -> tuple[float, float] | None:
        """Bound A and r from above and below, or from below and above; None where A is 0.

        Parameters
        ----------
        epsilon : float
            Nats, from 0 to 700.
        above : bool
            Whether A is rounded up, and r down.
        """
        room = epsilon - (self.loss.upper if above else self.loss.lower)
        if room >= 0.0:
            return None
        scale = (round_up if above else round_down)(float(self.q) * -math.expm1(room), 8)
        return scale, (round_down if above else round_up)(math.expm1(epsilon) / scale, 8)

    def log_values(self, likely: FloatArray, unlikely: FloatArray, epsilon: float, *, above: bool) -> FloatArray:
        """Bound log(A psi(r)) of each crowd, from above or from below, shape (crowds,); -inf where it is 0.

        Parameters
        ----------
        likely, unlikely : ndarray, shape (crowds,)
            As for `crowds`.
        epsilon : float
            Nats, from 0 to 700.
        above : bool
            Which side.
        """
        line = self.line(epsilon, above=above)
        if line is None or line[0] <= 0.0:
            return np.full(likely.shape, -math.inf)
        found = self.crowds(likely, unlikely, outwards=above).best_thresholds(line[1])
        shift = math.log(line[0])
        doubt = 32.0 * EPS * (1.0 + abs(shift))
        return found.upper + (shift + doubt) if above else found.lower + (shift - doubt)
