"""A uniform number known by its first bits, with further bits drawn only where a comparison needs them.

The samplers compare a 64-bit word with a bound that double precision knows up to a stated error; the few words that
fall into the gap are decided here, with as many digits as it takes. What is drawn is then the real-number law itself.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

_WORD = 64
_SPARE = 12
"""Decimal digits beyond those that the bits compared need."""


def exp_bounds(gamma: Fraction, bits: int) -> tuple[int, int]:
    """Whole numbers around 2^bits exp(-gamma), at most 2 apart.

    Parameters
    ----------
    gamma : Fraction
        At least 0.
    bits : int
        At least 1.

    Returns
    -------
    lower, upper : int
        lower <= 2^bits exp(-gamma) <= upper: the quotient is rounded outward, and the exponential of the standard
        library's `decimal`, which rounds correctly, moved by one unit more.

    Examples
    --------
    >>> exp_bounds(Fraction(1), 20)
    (385749, 385750)
    """
    digits = bits // 3 + _SPARE
    floor, ceiling = _context(digits, ROUND_FLOOR), _context(digits, ROUND_CEILING)
    least = floor.exp(floor.divide(Decimal(-gamma.numerator), Decimal(gamma.denominator)))
    most = ceiling.exp(ceiling.divide(Decimal(-gamma.numerator), Decimal(gamma.denominator)))
    unit = Decimal(2**bits)
    lower = floor.to_integral_value(floor.multiply(floor.next_minus(least), unit))
    upper = ceiling.to_integral_value(ceiling.multiply(ceiling.next_plus(most), unit))
    return max(int(lower), 0), min(int(upper), 2**bits)


class LazyUniform:
    """A number U, uniform on [0, 1), of which the leading bits are known: value/2^bits <= U < (value + 1)/2^bits.

    Parameters
    ----------
    value : int
        The known bits, in [0, 2^bits).
    bits : int
        How many, at least 1.
    word : callable
        Returns a fresh uniform integer in [0, 2^64), for the next 64 bits.
    """

    def __init__(self, value: int, bits: int, word: Callable[[], int]) -> None:
        self.value = value
        self.bits = bits
        self._word = word

    def extend(self) -> None:
        """Draw 64 bits more."""
        self.value = (self.value << _WORD) | self._word()
        self.bits += _WORD

    def below_exp(self, gamma: Fraction) -> bool:
        """Whether U < exp(-gamma), for gamma >= 0; bits are drawn until that is certain."""
        while True:
            decided = self.compare(*exp_bounds(gamma, self.bits))
            if decided is not None:
                return decided
            self.extend()

    def compare(self, lower: int, upper: int) -> bool | None:
        """Whether U < b, of which lower <= 2^bits b <= upper is known; None if that does not decide."""
        if self.value + 1 <= lower:
            return True
        return False if self.value >= upper else None

    def floor_exponential(self, scale: Fraction, offset: Fraction, near: int) -> int:
        """Largest whole k with U < exp(-(k - offset)/scale): floor(offset - scale log U).

        Parameters
        ----------
        scale : Fraction
            Positive.
        offset : Fraction
            From 0 to 1.
        near : int
            Where to look first; any number is right.
        """

        def reached(k: int) -> bool:
            return k <= offset or self.below_exp((k - offset) / scale)

        least, step = near, 1
        while not reached(least):
            least, step = least - step, 2 * step
        above, step = least + 1, 1
        while reached(above):
            above, step = above + step, 2 * step
        while above - least > 1:  # reached(least), not reached(above)
            middle = (least + above) // 2
            least, above = (middle, above) if reached(middle) else (least, middle)
        return least

    def exponential_bounds(self) -> tuple[Fraction, Fraction]:
        """Bounds on -log U, from the bits that are known (and 64 more if all of them are 0)."""
        while self.value == 0:
            self.extend()
        context = _context(self.bits // 3 + _SPARE, ROUND_FLOOR)
        whole = context.ln(Decimal(2**self.bits))
        least = context.subtract(context.next_minus(whole), context.next_plus(context.ln(Decimal(self.value + 1))))
        most = context.subtract(context.next_plus(whole), context.next_minus(context.ln(Decimal(self.value))))
        return max(Fraction(least), Fraction(0)), Fraction(context.next_plus(most))


def half_normal_accepts(proposal: LazyUniform, test: LazyUniform) -> bool:
    """Whether V < exp(-(E - 1)^2/2), with E = -log U: then E has the half-normal law (von Neumann 1951)."""
    while True:
        least, most = proposal.exponential_bounds()
        farthest = max(abs(least - 1), abs(most - 1))
        nearest = Fraction(0) if least <= 1 <= most else min(abs(least - 1), abs(most - 1))
        lower = exp_bounds(farthest**2 / 2, test.bits)[0]
        upper = exp_bounds(nearest**2 / 2, test.bits)[1]
        decided = test.compare(lower, upper)
        if decided is not None:
            return decided
        proposal.extend()
        test.extend()


def _context(digits: int, rounding: str) -> Context:
    # no trap: an exponential that underflows is 0, and the next number above it is still an upper bound
    return Context(prec=digits, rounding=rounding, Emin=-(10**15), Emax=10**15, traps=[])
