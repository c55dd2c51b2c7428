"""The distribution of a report, defined by whole numbers and drawn by comparing integers.

A report of every family here is, with probability K/2^64, uniform on the reports A_x of the person's own answer x, and
otherwise uniform on all reports: `rr` and `krr:K` with A_x = {x}; `one-bit` with x first rounded at random to an end of
its range, by a coin of chance (x - low)/(high - low) = i/N, a quotient of whole numbers; `bits:B` with x first rounded
at random to a neighbour among B + 1 equally spaced values; `hadamard:K` with A_x the half of the reports that agree
with row x + 1. If f = |A_x|/(number of reports), two answers' laws differ by a factor of at most 1 + K/(f (2^64 - K)),
which is reached. So K states the law exactly, and whether it keeps within a budget is one comparison. The integers are
the library's own thresholds (`randomizers.mixing.keep_thresholds`).

A report of `bits:B` is a number v of 0..B and travels as B pieces, v ones and B - v zeros in an order of its own: who
sees the pieces of everybody in one column learns the number of ones alone. Every other report is one piece.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

from shuffledp.errors import InvalidInput, shown, whole_number
from shuffledp.numerics.randomness import Randomness
from shuffledp.randomizers.categorical import HadamardResponse, RandomizedResponse
from shuffledp.randomizers.numeric import OneBit
from shuffledp.randomizers.wire import bytes_for

WHOLE = 1 << 64
SLACK = Fraction(1, 1 << 40)
"""Tolerance, for rounding epsilon0 to a double, by which the budget implied by the integers may exceed it."""
FAMILIES = "rr, krr:K, one-bit, bits:B, hadamard:K"
MOST_BITS = 32
"""Largest B of the family `bits:B`."""


@dataclass(frozen=True)
class Family:
    """A randomizer whose reports have the same form at every budget.

    Parameters
    ----------
    name : str
        ``rr``, ``krr:K``, ``hadamard:K``, ``one-bit`` or ``bits:B``.
    records : int
        Number of answers 0..records-1; for ``one-bit`` and ``bits:B`` answer i is the number low + i step.
    """

    name: str
    records: int

    @property
    def kind(self) -> str:
        """The name without its number."""
        return self.name.partition(":")[0]

    @property
    def reports(self) -> int:
        """Number of different reports; a report is one of 0..reports-1."""
        if self.kind == "one-bit":
            return 2
        if self.kind == "bits":
            return self.pieces + 1
        return 2 * HadamardResponse(self.records).order if self.kind == "hadamard" else self.records

    @property
    def pieces(self) -> int:
        """Number of pieces in which a report is sent."""
        return int(self.name.partition(":")[2]) if self.kind == "bits" else 1

    @property
    def cells(self) -> int:
        """Number of different pieces; a piece is one of 0..cells-1."""
        return 2 if self.kind == "bits" else self.reports

    @property
    def report_bytes(self) -> int:
        """Number of bytes of a piece as it is sent (docs/wire.md)."""
        return bytes_for((self.cells - 1).bit_length())

    @property
    def without_hadamard(self) -> Family:
        """The family of the same answers that a question has if it does not ask for ``hadamard``."""
        plain = "rr" if self.records == 2 else f"krr:{self.records}"
        return Family(plain, self.records) if self.kind == "hadamard" else self

    @property
    def own_share(self) -> Fraction:
        """f, the share of all reports that belong to one answer."""
        return Fraction(1, self.reports) if self.kind in ("krr", "bits") else Fraction(1, 2)

    @property
    def is_answer(self) -> bool:
        """Whether a report is one of the answers; that of a number is rounded, one of ``hadamard:K`` is a bit."""
        return self.kind in ("rr", "krr")

    def true_share(self, keep: int) -> Fraction:
        """Return the probability that a report is the true answer or, if it is none, that it depends on the answer.

        Parameters
        ----------
        keep : int
            K of the task.
        """
        return Fraction(keep, WHOLE) + (Fraction(WHOLE - keep, self.reports * WHOLE) if self.is_answer else 0)

    def library(self, low: float = 0.0, high: float = 1.0) -> RandomizedResponse | HadamardResponse | OneBit:
        """Return the same randomizer as a class of `shuffledp.randomizers`; a number needs its range.

        For ``bits:B`` it is the randomizer of the rounded number: seeing only a sum of pieces reveals no more.
        """
        if self.kind == "one-bit":
            return OneBit(low, high)
        return HadamardResponse(self.records) if self.kind == "hadamard" else RandomizedResponse(self.reports)

    def of_pieces(self) -> RandomizedResponse | HadamardResponse | OneBit:
        """Return the randomizer whose reports have the bytes of a piece."""
        return RandomizedResponse(2) if self.kind == "bits" else self.library()

    def threshold(self, epsilon0: float) -> int:
        """Return the library's K for a budget (nats), which a draft states."""
        if self.kind == "hadamard":
            return int(HadamardResponse(self.records).keep_thresholds(epsilon0))
        return int(RandomizedResponse(self.reports).keep_thresholds(epsilon0))

    def to_bytes(self, piece: int) -> bytes:
        """Return one piece as bytes."""
        return piece.to_bytes(self.report_bytes, "little")


def family_named(name: str, kind: str, records: int, where: str, version: int = 1) -> Family:
    """Return the family of a question, or raise InvalidInput if it does not fit.

    Parameters
    ----------
    name : str
        As a draft states it.
    kind : str
        The question's kind.
    records : int
        Number of different answers; for `several`, to each of its options.
    where : str
        The question, for messages.
    version : {1, 2}
        Version of the task: ball dummies are for columns of choices and of bits, and ``hadamard:K`` has neither.
    """
    if kind == "number" and version > 1:
        if name in _BITS:
            return Family(name, records)
        raise InvalidInput(f"{where}: the family must be bits:B with B from 1 to {MOST_BITS}; got {shown(name)}")
    fitting = ("one-bit",)
    if kind != "number":
        fitting = ("rr" if records == 2 else f"krr:{records}", f"hadamard:{records}")[: 3 - version]
    if name not in fitting:
        raise InvalidInput(
            f"{where}: the family must be {' or '.join(fitting)}; got {shown(name)} (of the families {FAMILIES} "
            "reports look alike at every level)"
        )
    return Family(name, records)


_BITS = frozenset(f"bits:{size}" for size in range(1, MOST_BITS + 1))


@lru_cache(maxsize=4096)
def most_implied(family: Family, epsilon0: float) -> int:
    """Return the largest K whose law is (epsilon0 + 2^-40)-LDP, rounded down.

    1 + K/(f (2^64 - K)) <= E = e^(epsilon0 + 2^-40) means K <= 2^64 f (E - 1)/(1 + f (E - 1)). E is bounded from below:
    `Decimal.exp` is correctly rounded to 60 digits, and its last ten digits are rounded down.
    """
    digits = Context(prec=60)
    exact = Fraction(epsilon0) + SLACK
    exponent = digits.divide(Decimal(exact.numerator), Decimal(exact.denominator))
    gain = Fraction(digits.exp(exponent)) * (1 - Fraction(1, 10**50)) - 1
    odds = family.own_share * gain
    return min(int(WHOLE * odds / (1 + odds)), WHOLE - 1)


def draw_report(family: Family, keep: int, record: int, random: Randomness) -> int:
    """Return one random report, drawn by comparing whole numbers.

    Parameters
    ----------
    family : Family
        The randomizer.
    keep : int
        K, in [0, 2^64): 2^64 times the probability of a report that is the record's own.
    record : int
        The answer, 0..records-1.
    random : Randomness
        `secure_random()`.

    Raises
    ------
    InvalidInput
        If the answer is none of the family's.
    """
    record = whole_number(record, "an answer must be a whole number", 0, family.records - 1)
    report = int(random.integers(family.reports, 1)[0])
    if not random.bernoulli(keep, 1)[0]:
        return report
    if family.kind in ("one-bit", "bits"):  # round i/N of the range to a neighbour among 0..B, B = 1 for one bit
        whole, part = divmod(record * (family.reports - 1), family.records - 1)
        return whole + int(random.integers(family.records - 1, 1)[0] < part)
    if family.kind == "hadamard":  # the column stays, the sign becomes the record's
        return report & ~1 | ((report >> 1) & (record + 1)).bit_count() & 1
    return record


def pieces_of(family: Family, report: int, random: Randomness) -> list[int]:
    """Return the pieces in which a report is sent; those of ``bits:B`` are in a uniformly random order.

    Parameters
    ----------
    family : Family
        The randomizer.
    report : int
        One of its reports.
    random : Randomness
        `secure_random()`.
    """
    if family.kind != "bits":
        return [report]
    bits = [1] * report + [0] * (family.pieces - report)
    for place in range(len(bits) - 1, 0, -1):  # Fisher and Yates
        other = int(random.integers(place + 1, 1)[0])
        bits[place], bits[other] = bits[other], bits[place]
    return bits
