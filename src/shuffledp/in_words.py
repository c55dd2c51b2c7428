"""Numbers as text for people: upper ends of intervals are rounded up, lower ends down, never the other way.

A `Translation` writes numbers and sentences in another language.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from shuffledp.errors import InvalidInput, named

DIGITS = 4
SAYS_NOTHING = "says nothing yet"
"""Words for an answer whose 95 % interval is as wide as the range."""


def up(value: float, digits: int = DIGITS) -> str:
    """Return an upper end as text: at most `digits` significant digits, rounded up.

    Examples
    --------
    >>> up(0.123412), up(2.0), up(float("inf"))
    ('0.1235', '2', '∞')
    """
    return _rounded(value, decimal.ROUND_CEILING, digits)


def down(value: float, digits: int = DIGITS) -> str:
    """Return a lower end as text: at most `digits` significant digits, rounded down."""
    return _rounded(value, decimal.ROUND_FLOOR, digits)


def near(value: float, digits: int = DIGITS) -> str:
    """Return an estimate as text: at most `digits` significant digits, rounded to the nearest, ties to even."""
    return _rounded(value, decimal.ROUND_HALF_EVEN, digits)


def with_error(value: float, error: float) -> str:
    """Return an estimate as text, rounded to the place of the second significant digit of its standard error."""
    if not (math.isfinite(value) and math.isfinite(error) and error > 0.0):
        return near(value)
    if abs(value) >= 1e15 or error < 1e-15:  # digits without end otherwise
        return near(value, min(2 + max(0, math.floor(math.log10(abs(value) or error) - math.log10(error))), 17))
    places = 1 - math.floor(math.log10(error))
    return _unsigned(f"{round(value, places):,.{max(places, 0)}f}")


def interval_with_error(low: float, high: float, error: float) -> str:
    """Return an interval as text, rounded as `with_error` rounds the estimate.

    The range of what is possible may cut an interval to far less than its standard error; its ends are then rounded to
    the place of the second significant digit of half its width, as otherwise 0 to 99 is written as 0 to 0.

    Parameters
    ----------
    low, high : float
        Ends of the interval.
    error : float
        Standard error of the estimate, above 0; both in the unit of the answer.

    Examples
    --------
    >>> interval_with_error(4.031, 5.02, 0.25), interval_with_error(0.0, 99.0, 1e5)
    ('4.03 to 5.02', '0 to 99')
    """
    return " to ".join(numbers_with_error((low, high), low, high, error))


def numbers_with_error(values: Sequence[float], low: float, high: float, error: float) -> list[str]:
    """Return numbers of one answer as text, all rounded as `interval_with_error` rounds the ends of its interval."""
    finest = min(error, (high - low) / 2.0 or error)
    return [with_error(value, finest) for value in values]


def probability(delta: float) -> str:
    """Return a probability as text as people type it: ``1e-6``, not ``1e-06``; at most 6 significant digits."""
    return f"{delta:g}".replace("e-0", "e-")


def count(value: int) -> str:
    """Return a whole number as text with commas between thousands: ``12,000``."""
    return f"{value:,}"


def counted(value: int, noun: str, several: str | None = None) -> str:
    """Return a count with its noun in the singular or plural, by default with an s: ``12,000 users``.

    Examples
    --------
    >>> counted(1, "user"), counted(12000, "user"), counted(2, "person", "people")
    ('1 user', '12,000 users', '2 people')
    """
    return f"{count(value)} {noun if value == 1 else several or noun + 's'}"


def share(value: float) -> str:
    """Return a share (1.0 is all users) as text in percent, with two decimals.

    Examples
    --------
    >>> share(0.2437), share(-0.00001)
    ('24.37%', '0.00%')
    """
    return _unsigned(f"{value:.2%}")


def _unsigned(text: str) -> str:
    """Leave out the sign of a number that is shown as 0."""
    return text.removeprefix("-") if not any(digit in text for digit in "123456789") else text


def distance(value: float, *, shares: bool, digits: int = 3) -> str:
    """Return the difference of two answers as text with its unit: percentage points for shares, else a plain number.

    `shares` says that the answers are shares, whose difference of 0.01 is 1 point; `digits` is the number of
    significant digits.

    Examples
    --------
    >>> distance(0.0805, shares=True), distance(0.01, shares=True), distance(1.25, shares=False)
    ('8.05 points', '1 point', '1.25')
    """
    if not shares:
        return near(value, digits)
    text = near(100.0 * value, digits)
    return f"{text} point{'' if text == '1' else 's'}"


def points(error: float) -> str:
    """Return the standard error of a share as text in percentage points, with two significant digits."""
    return distance(error, shares=True, digits=2)


def half_width_words(value: float, *, shares: bool) -> str:
    """Return a half-width as text with its unit: three significant digits, rounded up.

    Examples
    --------
    >>> half_width_words(0.07, shares=True), half_width_words(11.02, shares=False)
    ('± 7 points', '± 11.1')
    """
    text = up(round(100.0 * value, 9) if shares else value, 3)  # 100 * .07 is above 7 by its last digit
    return f"± {text}{'' if not shares else ' point' if text == '1' else ' points'}"


def plus_minus(value: float, span: float, *, shares: bool) -> str:
    """Return the half-width `value` of a confidence interval as text; ``says nothing yet`` if it spans the range.

    `span` is the width of the range of possible answers, in the unit of `value`; `shares` says that answers are shares.

    Examples
    --------
    >>> plus_minus(0.0805, 1.0, shares=True), plus_minus(60.0, 98.0, shares=False)
    ('± 8.05 points', 'says nothing yet')
    """
    return SAYS_NOTHING if value >= 0.5 * span else half_width_words(value, shares=shares)


def percent(fraction: float) -> str:
    """Return a fraction (1.0 is all) as text in percent, with at most four significant digits.

    Examples
    --------
    >>> percent(0.07), percent(0.0025)
    ('7%', '0.25%')
    """
    return f"{near(100.0 * fraction)}%"


def percent_down(fraction: float) -> str:
    """Return a fraction that a guarantee covers as text in percent, rounded down in its decimal digits.

    Examples
    --------
    >>> percent_down(0.29), percent_down(0.9999999)
    ('29%', '99.99%')
    """
    return f"{down(float(decimal.Decimal(repr(float(fraction))) * 100))}%"


@dataclass(frozen=True)
class Translation:
    r"""The language of a page: its sentences, found by the English ones, and its way to write numbers.

    Parameters
    ----------
    language : str
        The language. "" is English, with texts of others in the first language that they have.
    sentences : mapping of str to str
        The sentence for each English one, with the same names in braces. One that is missing stays English.

    Examples
    --------
    >>> german = Translation("de", {"{count} people": "{count} Personen"})
    >>> german.counted(1200, "person", "people"), german.share(0.2437)
    ('1\u202f200 Personen', '24,37\xa0%')
    """

    language: str = ""
    sentences: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    def __call__(self, sentence: str, **fields: object) -> str:
        """Return a sentence in this language, with the fields in the places of the names in braces."""
        written = self.sentences.get(sentence, sentence)
        return written.format(**fields) if fields else written

    def of(self, text: Mapping[str, str]) -> str:
        """Return a text that was given in several languages, in this one or in its first."""
        return text[self.language] if self.language in text else next(iter(text.values()))

    def number(self, text: str) -> str:
        """Return a number, or a share in percent, that is written as in English, in the signs of this language."""
        return text if self.language in ("", "en") else text.translate(_SIGNS)

    def count(self, value: int) -> str:
        """Return a whole number; see `count`."""
        return self.number(count(value))

    def counted(self, value: int, noun: str, several: str) -> str:
        """Return a count with its noun; see `counted`."""
        return self(f"{{count}} {noun if value == 1 else several}", count=self.count(value))

    def share(self, value: float) -> str:
        """Return a share in percent; see `share`."""
        return self.number(share(value))

    def distance(self, value: float, *, shares: bool, digits: int = 3) -> str:
        """Return the difference of two answers; see `distance`."""
        number, _, unit = distance(value, shares=shares, digits=digits).partition(" ")
        return self(f"{{number}} {unit}", number=self.number(number)) if unit else self.number(number)

    def points(self, error: float) -> str:
        """Return the standard error of a share; see `points`."""
        return self.distance(error, shares=True, digits=2)


_SIGNS = str.maketrans({",": "\N{NARROW NO-BREAK SPACE}", ".": ",", "%": "\N{NO-BREAK SPACE}%"})
ENGLISH = Translation()


def conditions(where: Mapping[str, Sequence[object]]) -> str:
    """Return the rows that are asked, in words; an empty text where all rows are.

    Parameters
    ----------
    where : mapping of str to sequence
        Public values of each column; a row has one of them in every column.

    Examples
    --------
    >>> conditions({"city": ("Oslo", "Bergen"), "age": (30,)})
    'city is Oslo or Bergen, and age is 30'
    """
    return ", and ".join(
        f"{named(column)} is {' or '.join(named(str(value)) for value in values)}" for column, values in where.items()
    )


def _rounded(value: float, rounding: str, digits: int) -> str:
    if math.isnan(value):
        raise InvalidInput("cannot show a value that is not a number; this is a bug in shuffledp, please report it")
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    exact = decimal.Decimal(value)
    if exact == 0:
        return "0"
    # Doubles such as 0.1 carry digits beyond the 15 that anyone wrote; they are not a reason to show 0.1001.
    if float(f"{value:.{digits}g}") == value:
        exact = decimal.Decimal(f"{value:.{digits}g}")
    rounded = exact.quantize(decimal.Decimal(1).scaleb(exact.adjusted() - digits + 1), rounding=rounding)
    if 1e-4 <= abs(value) < 1e6:
        text = f"{rounded:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    mantissa, exponent = f"{rounded:.{digits - 1}e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
