"""The law of a report, stated in whole numbers and drawn by comparing them.

A report of every family here is, with probability K/2^64, uniform on the reports A_x of the person's own answer x, and
otherwise uniform on all reports: `rr` and `krr:K` with A_x = {x}; `one-bit` with x first rounded at random to an end of
its range, by a coin of chance (x - low)/(high - low) = i/N, a quotient of whole numbers; `hadamard:K` with A_x the half
of the reports that agree with row x + 1. If f = |A_x|/(number of reports), two answers' laws differ by a factor of at
most 1 + K/(f (2^64 - K)), which is reached. So K states the law exactly, and whether it keeps within a budget is one
comparison. The integers are the library's own thresholds (`randomizers.mixing.keep_thresholds`).
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.randomness import Randomness
from shuffledp.randomizers.bits import bytes_for
from shuffledp.randomizers.categorical import RandomizedResponse
from shuffledp.randomizers.hadamard import HadamardResponse
from shuffledp.randomizers.numeric import OneBit

WHOLE = 1 << 64
SLACK = Fraction(1, 1 << 40)
"""By so much the budget that integers imply may exceed the stated one: what rounding epsilon0 to a double may cost."""
FAMILIES = "rr, krr:K, one-bit, hadamard:K"


@dataclass(frozen=True)
class Family:
    """A randomizer whose reports look alike at every budget.

    Parameters
    ----------
    name : str
        ``rr``, ``krr:K``, ``hadamard:K`` or ``one-bit``.
    records : int
        Answers are 0..records-1; for ``one-bit`` answer i is the number low + i step.
    """

    name: str
    records: int

    @property
    def kind(self) -> str:
        """The name without its number."""
        return self.name.partition(":")[0]

    @property
    def reports(self) -> int:
        """How many different reports there are; a report is one of 0..reports-1."""
        if self.kind == "one-bit":
            return 2
        return 2 * HadamardResponse(self.records).order if self.kind == "hadamard" else self.records

    @property
    def report_bytes(self) -> int:
        """Bytes of a report as it travels (docs/wire.md)."""
        return bytes_for((self.reports - 1).bit_length())

    @property
    def own_share(self) -> Fraction:
        """f: the share of all reports that are an answer's own."""
        return Fraction(1, self.records) if self.kind == "krr" else Fraction(1, 2)

    def true_share(self, keep: int) -> Fraction:
        """Return the chance that a report supports the true answer, if the task states `keep`.

        A report of ``rr`` or ``krr:K`` then is that answer; one of ``hadamard:K`` is a bit that fits it, and one of
        ``one-bit`` the end of the range at which the number lies.
        """
        values = self.records if self.kind in ("rr", "krr") else 2
        return (keep + Fraction(WHOLE - keep, values)) / WHOLE

    def library(self, low: float = 0.0, high: float = 1.0) -> RandomizedResponse | HadamardResponse | OneBit:
        """Return the same randomizer as the accountant and the estimators know it; a number needs its range."""
        if self.kind == "one-bit":
            return OneBit(low, high)
        return HadamardResponse(self.records) if self.kind == "hadamard" else RandomizedResponse(self.records)

    def threshold(self, epsilon0: float) -> int:
        """Return the library's K for a budget: the one a draft states."""
        if self.kind == "hadamard":
            return int(HadamardResponse(self.records).keep_thresholds(epsilon0))
        return int(RandomizedResponse(2 if self.kind == "one-bit" else self.records).keep_thresholds(epsilon0))

    def to_bytes(self, report: int) -> bytes:
        """Write one report."""
        return report.to_bytes(self.report_bytes, "little")


def family_named(name: str, kind: str, records: int, where: str) -> Family:
    """Return the family of a question, or raise InvalidInput if it does not fit.

    Parameters
    ----------
    name : str
        As a draft states it.
    kind : {"choice", "number"}
        The question's kind.
    records : int
        How many different answers there are.
    where : str
        The question, for messages.
    """
    fitting = ("one-bit",)
    if kind == "choice":
        fitting = ("rr" if records == 2 else f"krr:{records}", f"hadamard:{records}")
    if name not in fitting:
        raise InvalidInput(
            f"{where}: the family must be {' or '.join(fitting)}; got {shown(name)} (of the families {FAMILIES} "
            "reports look alike at every level)"
        )
    return Family(name, records)


@lru_cache(maxsize=4096)
def most_implied(family: Family, epsilon0: float) -> int:
    """Return the largest K whose law is (epsilon0 + 2^-40)-LDP, never too large.

    1 + K/(f (2^64 - K)) <= E = e^(epsilon0 + 2^-40) means K <= 2^64 f (E - 1)/(1 + f (E - 1)). E is taken from
    below: `Decimal.exp` is correctly rounded to 60 digits, and the last ten of them are given away.
    """
    digits = Context(prec=60)
    exact = Fraction(epsilon0) + SLACK
    exponent = digits.divide(Decimal(exact.numerator), Decimal(exact.denominator))
    gain = Fraction(digits.exp(exponent)) * (1 - Fraction(1, 10**50)) - 1
    odds = family.own_share * gain
    return min(int(WHOLE * odds / (1 + odds)), WHOLE - 1)


def draw_report(family: Family, keep: int, record: int, random: Randomness) -> int:
    """Draw one report; only whole numbers are compared.

    Parameters
    ----------
    family : Family
        The randomizer.
    keep : int
        K, in [0, 2^64): the chance of the record's own part, over 2^64.
    record : int
        The answer, 0..records-1.
    random : Randomness
        `secure_random()`.

    Raises
    ------
    InvalidInput
        If the answer is none of the family's.
    """
    if not 0 <= record < family.records:
        raise InvalidInput(f"an answer must be a whole number from 0 to {family.records - 1}; got {record}")
    report = int(random.integers(family.reports, 1)[0])
    if not random.bernoulli(keep, 1)[0]:
        return report
    if family.kind == "one-bit":
        return int(random.integers(family.records - 1, 1)[0] < record)
    if family.kind == "hadamard":  # the column stays, the sign becomes the record's
        return report & ~1 | ((report >> 1) & (record + 1)).bit_count() & 1
    return record
