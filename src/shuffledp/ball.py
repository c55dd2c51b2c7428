"""Ball dummies: one joint law for the dummies of a whole questionnaire, whose floor is a short sum of whole numbers.

A dummy is a fake report that the shuffler adds. A column holds the reports to one question as a histogram with a fixed
total. The noise of a column is a whole vector z whose cells add up to 0; its gauge is the sum of its positive cells in
steps, and one person's report changes it by at most 1. A radius R is drawn by public weights, then each column's z
uniformly from the ball of the vectors of gauge at most R; a cell gets h + z dummies. The floor, the delta that the
dummies alone guarantee, has a closed form, (B1) to (B4) of docs/theorems/ball.md. Everything here is whole numbers,
rounded outward where it is rounded, so that every machine finds the same law and the same floor.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from typing import Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import Brief, InvalidInput, attempt, shown
from shuffledp.numerics.functions import correlated, exp_lower, exp_rounded, expm1_rounded, log_rounded
from shuffledp.numerics.randomness import Randomness

WHOLE = 1 << 64
"""The weights of a radius are whole numbers over 2^64."""
LARGEST_RADIUS = 4096
MOST_COLUMNS = 64
MOST_CELLS = 1024
_MOST_DIGITS = 9
MOST_ROWS = 100_000
"""Default number of dummies of one column beyond which a search gives up."""
_GUARD = 192
"""Number of bits by which fixed-point numbers are finer than one point of the largest ball."""
_LARGEST_RATE = 30.0
"""Largest rate (nats): a radius of 1 is then drawn about once in 2^43 times, and weights have 64 bits."""
_FARTHEST = 1000
"""Largest epsilon (nats per report) that is evaluated; larger ones get its answer, which is no smaller."""
_LONG = 512
"""Largest radius that is minimised; for a larger one the law of a cell would be computed too often."""
_TAIL = 64
"""Where centres are made smaller, the last radius may use at most one part of delta in this many."""
_SHORT = 1 << 256
_CELL = 192
"""A cell's probabilities are whole numbers over 2 to this power."""

Below = Callable[[int], int]
"""Function that draws a whole number uniformly from 0..n - 1."""


@dataclass(frozen=True)
class Column:
    """The reports to one question as a histogram, to whose cells each report adds a fixed total.

    Parameters
    ----------
    kind : {"choice", "bits"}
        "choice": a report is one of `size` values, 2 to 1,024. "bits": a report is `size` bits, 1 to 1,024, of which
        x are ones, x = 0..size.
    size : int
        The number of values k of a choice, or of bits B of a report.

    Raises
    ------
    InvalidInput
        If the kind is unknown or the size out of range.

    Examples
    --------
    >>> Column("choice", 5).name, Column("bits", 10).cells
    ('choice:5', 2)
    """

    kind: Literal["choice", "bits"]
    size: int

    def __post_init__(self) -> None:
        if self.kind not in ("choice", "bits"):
            raise InvalidInput(f"a column is 'choice' or 'bits'; got {shown(self.kind)}")
        least = 2 if self.kind == "choice" else 1
        whole = isinstance(self.size, int) and not isinstance(self.size, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not (whole and least <= self.size <= MOST_CELLS):
            raise InvalidInput(
                f"a column of kind {self.kind} has a size from {least} to {MOST_CELLS}; got {shown(self.size)}"
            )

    @classmethod
    def named(cls, name: Column | str) -> Column:
        """Return the column spelled ``choice:5`` or ``bits:10``; a Column is returned unchanged."""
        if isinstance(name, Column):
            return name
        kind, _, size = name.partition(":") if isinstance(name, str) else ("", "", "")  # pyright: ignore[reportUnnecessaryIsInstance]
        if kind not in ("choice", "bits") or not (size.isdecimal() and len(size) <= _MOST_DIGITS):
            raise InvalidInput(f"a column is choice:K or bits:B, such as choice:5; got {shown(name)}")
        return cls(kind, int(size))

    @property
    def name(self) -> str:
        """The column as text, its kind and size: ``choice:5``."""
        return f"{self.kind}:{self.size}"

    @property
    def cells(self) -> int:
        """Number of cells of the histogram: k for a choice, 2 (zeros and ones) for bits."""
        return self.size if self.kind == "choice" else 2

    @property
    def values(self) -> int:
        """Number of different reports: k for a choice, B + 1 (counts of ones) for bits."""
        return self.size if self.kind == "choice" else self.size + 1

    @property
    def step(self) -> int:
        """Largest change of a cell by one report: 1 for a choice, B for bits; radius R moves it by at most R steps."""
        return 1 if self.kind == "choice" else self.size

    def gauge(self, z: Sequence[int]) -> int:
        """Return the gauge of a vector z whose cells add up to 0: the sum of positive cells over `step`, rounded up."""
        return -(-sum(cell for cell in z if cell > 0) // self.step)

    def balls(self, radius: int) -> tuple[int, ...]:
        """Return the numbers of vectors of gauge at most r, for r = 0, 1, ..., radius."""
        if self.kind == "bits":
            return tuple(2 * self.size * r + 1 for r in range(radius + 1))
        return _balls(self.size, radius)

    def rims(self, radius: int) -> tuple[int, ...]:
        """Return for r = 0, ..., radius how many vectors the largest change of one report moves out of the ball r.

        For a choice it is the number of vectors in the ball of k - 1 answers.
        """
        if self.kind == "bits":
            return tuple(self.size if r else 1 for r in range(radius + 1))
        return _balls(self.size - 1, radius)


@dataclass(frozen=True, repr=False)
class BallDummies(Brief):
    """One joint law of the dummies of several columns (questions), as docs/theorems/ball.md defines it.

    Parameters
    ----------
    columns : tuple of Column
        From 1 to 64.
    radius : tuple of int
        Weights W_0..W_c, at least 0 and of sum 2^64: R = r has chance W_r / 2^64. c is at most 4,096.
    centre : tuple of int
        For each column the number h of dummies of each cell before z is added. If some h is smaller than the largest
        -z, all columns are drawn again until no cell is negative (`redraw`).
    rate : float or None
        The rate from which `of_rate` made the weights, in nats, for `name` only; the weights alone define the law.

    Raises
    ------
    InvalidInput
        If a number is out of range, or the law would have to be drawn again more often than every second time.

    Examples
    --------
    >>> law = BallDummies.of_rate(["choice:2"], 1.0, 14)
    >>> law.rows, f"{float(law.floor(1.0)):.5g}"
    ((28,), '3.8426e-07')
    """

    columns: tuple[Column, ...]
    radius: tuple[int, ...]
    centre: tuple[int, ...]
    rate: float | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not 1 <= len(self.columns) <= MOST_COLUMNS or len(self.centre) != len(self.columns):
            raise InvalidInput(
                f"ball dummies need 1 to {MOST_COLUMNS} columns and one centre for each; got {len(self.columns)} "
                f"columns and {len(self.centre)} centres"
            )
        if not 1 <= len(self.radius) <= LARGEST_RADIUS + 1:
            raise InvalidInput(f"a radius is at most {LARGEST_RADIUS}; got {len(self.radius) - 1}")
        for weight in (*self.radius, *self.centre):
            if isinstance(weight, bool) or not isinstance(weight, int) or weight < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InvalidInput(f"weights of a radius and centres are whole numbers of at least 0; got {weight}")
        if sum(self.radius) != WHOLE:
            raise InvalidInput(f"the weights of a radius must add up to 2^64; got {sum(self.radius)}")
        if self.redraw and self.accepted <= Fraction(1, 2):
            raise InvalidInput(
                f"centres {self.centre} are too small for a radius up to {self.largest}: most draws would have a "
                "negative cell; take larger centres"
            )

    @classmethod
    def of_rate(
        cls, columns: Sequence[Column | str], rate: float, largest: int, centre: Sequence[int] | None = None
    ) -> BallDummies:
        """Return the default law: z has a chance of about e^(-rate gauge(z)), up to the largest radius.

        Parameters
        ----------
        columns : sequence of Column or str
            One for each question; a text is ``choice:K`` or ``bits:B``.
        rate : float
            b, positive, at most 30, in nats: one report changes the log of a chance by at most b.
        largest : int
            c, the largest radius, at least 0.
        centre : tuple of int, optional
            As for the class; default: the least numbers h for which no draw has to be repeated.

        Raises
        ------
        InvalidInput
            If a number is out of range.
        """
        real = isinstance(rate, int | float) and not isinstance(rate, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not (real and 0.0 < rate <= _LARGEST_RATE and _is_whole(largest) and largest <= LARGEST_RADIUS):
            raise InvalidInput(
                f"a ball law needs a positive rate up to {_LARGEST_RATE:g} and a radius from 0 to {LARGEST_RADIUS}; "
                f"got {shown(rate)} and {shown(largest)}"
            )
        named = _named(columns)
        own = tuple(largest * column.step for column in named) if centre is None else tuple(centre)
        return cls(named, default_weights(named, rate, largest), own, rate)

    @classmethod
    def of_promise(
        cls,
        columns: Sequence[Column | str],
        levels: Sequence[tuple[float, Sequence[Fraction]]],
        delta: float,
        reports: int = 1,
        most: int = MOST_ROWS,
        largest: int = LARGEST_RADIUS,
    ) -> BallDummies:
        """Return the default law of the largest rate, with the fewest dummies, that keeps every level's promise.

        Parameters
        ----------
        columns : sequence of Column or str
            One for each question; a text is ``choice:K`` or ``bits:B``.
        levels : sequence of (float, sequence of Fraction)
            For each level of users: the promised central epsilon over all columns (nats, positive), and the chances
            `kept` of its columns as in `floor`, empty without local noise.
        delta : float
            Central delta, in (0, 1).
        reports : int
            Reports of one person, each to all questions; default 1.
        most : int
            Most dummies of one column; default 100,000.
        largest : int
            Largest radius above which the search gives up, if no law without repeated draws serves below it.

        Raises
        ------
        InvalidInput
            If a number is out of range, or no law of so few dummies keeps the promises.

        Examples
        --------
        >>> BallDummies.of_promise(["choice:5"], [(1.0, ())], 1e-6).rows
        (85,)
        """
        if not (0.0 < delta < 1.0 and levels and all(0.0 < promise < math.inf for promise, _ in levels)):
            raise InvalidInput(
                f"ball dummies need positive promises and a delta in (0, 1); got {shown(levels)}, {shown(delta)}"
            )
        named = _named(columns)
        promises = tuple((promise, tuple(kept)) for promise, kept in levels)
        for promise, kept in promises:
            _check_question(promise, kept, reports, named)
        return _Search(named, promises, Fraction(delta), reports, most, largest).law()

    @property
    def name(self) -> str:
        """Command-line spelling of the dummies; ``ball:ROWS`` for several columns or a law without a rate."""
        if self.rate is None or len(self.columns) > 1:
            return f"ball:{'+'.join(map(str, self.rows))}"
        return f"ball:{self.rate!r}:{self.largest}:{self.centre[0]}"

    @property
    def count(self) -> int:
        """Total number of dummies in all columns."""
        return sum(self.rows)

    @property
    def largest(self) -> int:
        """The largest radius c that the law can draw."""
        return len(self.radius) - 1

    @property
    def rows(self) -> tuple[int, ...]:
        """Number of dummies in each column, a fixed total: reports of a choice, single bits of "bits"."""
        return tuple(column.cells * own for column, own in zip(self.columns, self.centre, strict=True))

    @cached_property
    def redraw(self) -> bool:
        """Whether a cell may come out negative, so that all columns are drawn again until no cell is negative."""
        return any(own < self.largest * column.step for column, own in zip(self.columns, self.centre, strict=True))

    def delta(self, factor: Fraction) -> Fraction:
        """Return the upper bound (B1) on delta for two people's reports without local noise, in [0, 1].

        Delta is their hockey-stick divergence at E = e^epsilon. The bound is (B4) where a draw may be repeated.

        Parameters
        ----------
        factor : Fraction
            E = e^epsilon, at least 1.
        """
        if not (isinstance(factor, int | Fraction) and factor >= 1):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"a factor e^epsilon is a Fraction of at least 1; got {shown(factor)}")
        _, moved = _joint(self.columns, self.largest)
        low, high, unit = self._of_points
        top, bottom = factor.numerator, factor.denominator
        total = 0
        for r, count in enumerate(moved):
            total += count * max(high[r] * bottom - low[r + 1] * top, 0)
        bound = Fraction(total, bottom * unit)
        if self.redraw:
            bound = (bound + self._tails[0]) / self.accepted
        return min(bound, Fraction(1))

    @cached_property
    def _of_points(self) -> tuple[list[int], list[int], int]:
        return _radial(self.radius, _joint(self.columns, self.largest)[0])

    def floor(self, epsilon: float | Fraction, kept: Sequence[Fraction] = (), reports: int = 1) -> Fraction:
        """Return the certified delta that the dummies alone give at a central epsilon, whatever all others do.

        Parameters
        ----------
        epsilon : float or Fraction
            Central epsilon, nats, at least 0.
        kept : sequence of Fraction, optional
            kappa of each column, in [0, 1]: the chance that a report is the record's own; otherwise it is drawn
            without the record, of a single column uniformly from all values. Empty: reports have no local noise.
        reports : int
            Reports of one person, each to all questions; default 1.

        Returns
        -------
        Fraction
            An upper bound on delta, in [0, 1].

        Notes
        -----
        (B1) to (B4) of docs/theorems/ball.md. e^(epsilon/reports) is replaced by a rational number below it, at which
        delta is larger.
        """
        _check_question(epsilon, kept, reports, self.columns)
        factor = exp_lower(min(Fraction(epsilon) / reports, Fraction(_FARTHEST)))
        once = self._with_local_noise(factor, tuple(kept))
        return min(once * sum(factor**i for i in range(reports)), Fraction(1))

    def _with_local_noise(self, factor: Fraction, kept: tuple[Fraction, ...]) -> Fraction:
        """Return the bound (B2), for reports with local noise."""
        touched = chance_touched(kept) if kept else Fraction(1)
        if touched == 0:
            return Fraction(0)
        larger = larger_factor(factor, touched)
        short = Fraction(int(larger * _SHORT), _SHORT)  # kappa has 64 bits a column; from below, where delta is larger
        bound = touched * self.delta(max(short, Fraction(1)))
        if len(self.columns) == 1:
            part = factor / larger
            bound *= part + (1 - part) * (1 - Fraction(1, self.columns[0].values))
        return bound

    @cached_property
    def accepted(self) -> Fraction:
        """Lower bound on the chance that a draw has no negative cell, by a union bound over the cells; in (0, 1]."""
        return 1 - self._tails[1]

    @cached_property
    def _tails(self) -> tuple[Fraction, Fraction]:
        """From above, over all columns: chances that a change of a report empties a cell, and that one is negative."""
        emptied, outside = Fraction(0), Fraction(0)
        for (column, own), times in Counter(zip(self.columns, self.centre, strict=True)).items():
            if own < self.largest * column.step:
                at, beyond = _cell_tails(column, self.radius, own)
                emptied, outside = emptied + times * at, outside + times * column.cells * beyond
        return emptied, outside

    def cell_chances(self, place: int) -> tuple[int, ...]:
        """Return the law of one cell's z in a column, before any draw is repeated.

        Parameters
        ----------
        place : int
            Index of the column, from 0.

        Returns
        -------
        tuple of int
            P(z = v) = P(z = -v) times 2^192 for v = 0, 1, ..., each at most 2 units below the true value and never
            above it.
        """
        return _cell_chances(self.columns[place], self.radius)

    def cell_law(self, place: int) -> tuple[float, ...]:
        """Return the law of the number M of dummies in one cell, as chances of 0, 1, ... dummies.

        Parameters
        ----------
        place : int
            Index of the column, from 0.

        Returns
        -------
        tuple of float
            P(M = j), j = 0, 1, ..., each to a relative 2^-52; if draws may be repeated, upper bounds: the chances of a
            single draw over `accepted`, with a sum a little above 1.
        """
        own, chances = self.centre[place], self.cell_chances(place)
        unit = float(1 / self.accepted) if self.redraw else 1.0
        reach = len(chances) - 1
        return tuple(unit * (chances[abs(j - own)] / (1 << _CELL)) if abs(j - own) <= reach else 0.0
                     for j in range(own + reach + 1))  # fmt: skip

    def cell_variance(self, place: int) -> float:
        """Return the variance of the number of dummies in a cell of column `place` (from 0), from `cell_law`."""
        law = np.array(self.cell_law(place))
        return float(law @ (np.arange(law.size) - self.centre[place]) ** 2.0)

    def draw(self, below: Below) -> tuple[NDArray[np.int64], ...]:
        """Draw the number of dummies in each cell of every column.

        Parameters
        ----------
        below : callable
            Draws a whole number uniformly from 0..n - 1; `below_of` makes one of secure randomness.

        Returns
        -------
        tuple of ndarray of int64
            For each column an array with one count per cell; for "bits" the zeros, then the ones.
        """
        while True:
            radius = bisect_right(self._thresholds, below(WHOLE))
            counts = [
                _point(column, radius, below) + own for column, own in zip(self.columns, self.centre, strict=True)
            ]
            if not self.redraw or all(int(column.min()) >= 0 for column in counts):
                return tuple(counts)

    @cached_property
    def _thresholds(self) -> tuple[int, ...]:
        return tuple(accumulate(self.radius))


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _named(columns: Sequence[Column | str]) -> tuple[Column, ...]:
    """Return the columns; so many as no law has are not looked at, nor is a text, which is one column's name."""
    if isinstance(columns, str) or not 1 <= len(columns) <= MOST_COLUMNS:
        raise InvalidInput(f"ball dummies need a list of 1 to {MOST_COLUMNS} columns; got {shown(columns)}")
    return tuple(Column.named(column) for column in columns)


def _check_question(
    epsilon: float | Fraction, kept: Sequence[Fraction], reports: int, columns: tuple[Column, ...]
) -> None:
    """Refuse what a floor says nothing of: a kappa of 2 in two columns would make it 0."""
    real = isinstance(epsilon, int | float | Fraction)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not (real and 0 <= epsilon < math.inf and _is_whole(reports) and reports >= 1):
        raise InvalidInput(
            f"a floor needs a finite epsilon of at least 0 and at least one report; got {shown(epsilon)} and "
            f"{shown(reports)}"
        )
    chances = all(isinstance(chance, int | Fraction) and 0 <= chance <= 1 for chance in kept)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not (chances and len(kept) in (0, len(columns))):
        raise InvalidInput(
            f"a floor needs a kappa for each of {len(columns)} columns, or none, Fractions in [0, 1]; "
            f"got {shown(tuple(map(str, kept)))}"
        )


def default_weights(columns: tuple[Column, ...], rate: float, largest: int) -> tuple[int, ...]:
    """Return the default weights of the radii R = 0, ..., largest: whole numbers that add up to 2^64.

    About t^R (1 - t) times the points of the ball of radius R, t = e^-rate, rounded down; the rest goes to the largest
    one. Whole-number arithmetic, so the same everywhere. The floor certifies these numbers as they are.
    """
    points, _ = _joint(columns, largest)
    bits = 256 + math.ceil(1.5 * rate * largest)
    step = int(Fraction(float(exp_rounded(-rate))) * (1 << bits))
    power, shape = 1 << bits, list[int]()
    for r, count in enumerate(points):
        shape.append(power * count * ((1 << bits) - step if r < largest else 1 << bits))
        power = power * step >> bits
    total = sum(shape)
    weights = [WHOLE * each // total for each in shape]
    weights[weights.index(max(weights))] += WHOLE - sum(weights)
    return tuple(weights)


@dataclass(frozen=True)
class _Search:
    """What a law must keep, and how it is found; what is found was certified itself."""

    columns: tuple[Column, ...]
    levels: tuple[tuple[float, tuple[Fraction, ...]], ...]
    delta: Fraction
    reports: int
    most: int
    largest: int

    def law(self) -> BallDummies:
        """Return the law: without repeated draws, or with a longer radius and smaller centres if that saves dummies."""
        plain = self._law(self._least_radius(1, -1, self.largest))
        wide = self._least_radius(_TAIL, plain.largest - 1, LARGEST_RADIUS)
        too_long = wide > max(self.largest, _LONG)  # it is not made smaller
        if max(plain.rows) > self.most and (too_long or not self._may_serve(wide)):
            self._refuse()
        best = self._centred(wide)
        if best is None or sum(best.rows) >= sum(plain.rows):
            best = plain
        if max(best.rows) > self.most:
            self._refuse()
        return best

    @cached_property
    def rate(self) -> float:
        """The largest rate that a promise allows by (B2), rounded."""
        rates = [_LARGEST_RATE]
        for promise, kept in self.levels:
            touched = chance_touched(kept) if kept else Fraction(1)
            if touched:
                gain = float(expm1_rounded(min(promise / self.reports, _LARGEST_RATE)))
                rates.append(log_rounded(1.0 + gain / float(touched)))
        return min(rates)

    def keeps(self, law: BallDummies, share: int = 1) -> bool:
        """Whether every level's delta is at most so small a part of the allowed one."""
        return all(share * law.floor(promise, kept, self.reports) <= self.delta for promise, kept in self.levels)

    def _law(self, radius: int, centre: tuple[int, ...] | None = None) -> BallDummies:
        return BallDummies.of_rate(self.columns, self.rate, radius, centre)

    def _least_radius(self, share: int, low: int, most: int) -> int:
        """Return the least radius that serves above ``low``, which does not, and up to ``most``."""
        stride = 8
        while not self.keeps(self._law(high := min(low + stride, most)), share):
            if high == most:
                self._refuse()
            low, stride = high, 2 * stride
        return self._smallest(low, high, lambda radius: self._law(radius), share).largest

    def _may_serve(self, radius: int) -> bool:
        """Whether the largest centres allowed serve; no smaller ones do where these do not."""
        centre = tuple(self.most // column.cells for column in self.columns)
        law = attempt(lambda: self._law(radius, centre), (InvalidInput,))
        return isinstance(law, BallDummies) and self.keeps(law)

    def _smallest(self, low: int, high: int, law: Callable[[int], BallDummies], share: int = 1) -> BallDummies:
        """Bisect between a number that does not serve and one that does."""
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.keeps(law(middle), share) else (middle, high)
        return law(high)

    def _centred(self, radius: int) -> BallDummies | None:
        """Return a law with centres as small as the chance of an emptied cell allows, and then a smaller radius."""
        weights = default_weights(self.columns, self.rate, radius)
        kinds = tuple(dict.fromkeys(self.columns))
        laws = {kind: _cell_chances(kind, weights) for kind in kinds}

        def law(centres: dict[Column, int]) -> BallDummies | None:
            centre = tuple(centres[column] for column in self.columns)
            made = attempt(lambda: BallDummies(self.columns, weights, centre, self.rate), (InvalidInput,))
            return made if isinstance(made, BallDummies) and self.keeps(made) else None

        def centres_at(step: int) -> dict[Column, int]:
            """Return the least centres at which each column's chance of an emptied cell is at most delta 2^-step."""
            return {kind: _least_centre(kind, laws[kind], self.delta / (1 << step)) for kind in kinds}

        step = next((step for step in range(12) if law(centres_at(step)) is not None), None)
        if step is None:
            return None
        centres = centres_at(step)
        for kind in kinds:
            while centres[kind] and law(centres | {kind: centres[kind] - 1}) is not None:
                centres[kind] -= 1
        centre = tuple(centres[column] for column in self.columns)
        if radius > _LONG:
            return law(centres)
        least = max(own // column.step for column, own in zip(self.columns, centre, strict=True))
        return self._smallest(min(least, radius) - 1, radius, lambda smaller: self._law(smaller, centre))

    def _refuse(self) -> NoReturn:
        promises = ", ".join(f"{promise:g}" for promise, _ in self.levels)
        names = ", ".join(column.name for column in self.columns)
        raise InvalidInput(
            f"no ball law with up to {self.most} dummies a question keeps promise {promises} for {names} at delta = "
            f"{float(self.delta):g}; promise a larger epsilon, ask fewer questions, or raise delta"
        )


def _least_centre(column: Column, chances: tuple[int, ...], most: Fraction) -> int:
    """Return the least number of dummies a cell at which a report empties one with at most this chance."""
    allowed, tail, own = most * (1 << _CELL), 0, len(chances)
    while own and tail <= allowed:
        own -= 1
        tail = sum(chances[max(own - column.step + 1, 0) : own + 1])
    return own + 1


def larger_factor(factor: Fraction, touched: Fraction) -> Fraction:
    """Return 1 + (E - 1)/kappa of (B2), E being ``factor`` and kappa ``touched``; without local noise it replaces E."""
    return 1 + (factor - 1) / touched


def chance_touched(kept: Sequence[Fraction]) -> Fraction:
    """Return the chance that at least one of several independent reports, of chances ``kept``, is the record's own."""
    return _chance_touched(tuple(kept))


@lru_cache(maxsize=64)
def _chance_touched(kept: tuple[Fraction, ...]) -> Fraction:
    return 1 - math.prod((1 - each for each in kept), start=Fraction(1))


def below_of(random: Randomness) -> Below:
    """Return a function that draws whole numbers uniformly from 0..n - 1 for any n, from 64-bit random words.

    Parameters
    ----------
    random : Randomness
        Source of the words, such as `secure_random()`.
    """

    def below(bound: int) -> int:
        bits = (bound - 1).bit_length()
        words = -(-bits // 64)
        while True:  # at least every second number is below the bound
            drawn = int.from_bytes(random.words(words).astype("<u8").tobytes(), "little") >> (64 * words - bits)
            if drawn < bound:
                return drawn

    return below


# ------------------------------------------------------------------ counting


@lru_cache(maxsize=256)
def _balls(cells: int, radius: int) -> tuple[int, ...]:
    """Vectors of `cells` whole numbers that add up to 0, whose positive ones add up to at most 0, 1, ..., radius.

    With d = cells - 1 and s_r those of exactly r: (r + 1)^2 s_(r+1) = r^2 s_r + d (d + 1) N(r) (docs/theorems/ball.md).
    """
    sizes, shell, grown = [1], 0, cells * (cells - 1)
    for r in range(radius):
        shell = (r * r * shell + grown * sizes[-1]) // (r + 1) ** 2  # nothing is left over
        sizes.append(sizes[-1] + shell)
    return tuple(sizes)


@lru_cache(maxsize=64)
def _joint(columns: tuple[Column, ...], radius: int) -> tuple[list[int], list[int]]:
    """Points of the joint balls, and how many of them the largest change of all columns moves out."""
    points, stay = [1] * (radius + 1), [1] * (radius + 1)
    for column, times in Counter(columns).items():
        for r, (inside, out) in enumerate(zip(column.balls(radius), column.rims(radius), strict=True)):
            points[r] *= inside**times
            stay[r] *= (inside - out) ** times
    return points, [inside - left for inside, left in zip(points, stay, strict=True)]


def _radial(weights: tuple[int, ...], points: Sequence[int]) -> tuple[list[int], list[int], int]:
    """Chances of one point of gauge r, from below and from above, r = 0..c + 1, and their common denominator."""
    bits = max(points).bit_length() + _GUARD
    low, high = [0], [0]
    for weight, count in zip(reversed(weights), reversed(points), strict=True):
        whole, rest = divmod(weight << bits, count)
        low.append(low[-1] + whole)
        high.append(high[-1] + whole + (rest > 0))
    return low[::-1], high[::-1], WHOLE << bits


@lru_cache(maxsize=64)
def _cell_chances(column: Column, weights: tuple[int, ...]) -> tuple[int, ...]:
    """P(first cell = v), v = 0.., over 2^192, rounded down.

    A column by itself has the ball law of its own balls with the same weights. Of a choice the d = k - 1 other cells'
    positive ones add up to r - v and the negative ones to -r. One cell's generating function is (1 - xy)/((1 - x)(1 -
    y)), x for the positive and y for the negative part. So with a_r the chance of a point, u_s the coefficients of (1 -
    x)^-d and g the d-th difference of a, g_i = sum_j (-1)^j C(d, j) a_(i + j), P(v) = sum_s u_s u_(s + v) g_(s + v).
    """
    low, _, unit = _differences(column, weights)
    if column.kind == "bits":
        chances = [low[-(-v // column.size)] for v in range((len(weights) - 1) * column.size + 1)]
        return tuple((each << _CELL) // unit for each in chances)
    ways = _all_parts(len(weights) - 1, column.size - 1)
    chances = correlated(ways, [one * two for one, two in zip(ways, low, strict=False)])
    return tuple((each << _CELL) // unit for each in chances)


@lru_cache(maxsize=8)
def _differences(column: Column, weights: tuple[int, ...]) -> tuple[list[int], list[int], int]:
    """Chances of one point of gauge r from below and above, of a choice their d-th differences; denominator."""
    low, high, unit = _radial(weights, column.balls(len(weights) - 1))
    for _ in range(column.size - 1 if column.kind == "choice" else 0):
        low, high = ([one - two for one, two in pairwise([*each, 0])] for each in (low, high))
    return low, high, unit


@lru_cache(maxsize=64)
def _all_parts(most: int, parts: int) -> list[int]:
    """`_parts` of 0, 1, ..., most."""
    counts = [1]
    for whole in range(1, most + 1):
        counts.append(counts[-1] * (whole + parts - 1) // whole)  # nothing is left over
    return counts


@lru_cache(maxsize=256)
def _cell_tails(column: Column, weights: tuple[int, ...], centre: int) -> tuple[Fraction, Fraction]:
    """Bound the chance that one cell of a centre holds fewer dummies than a report may take, and that it is negative.

    As in `_cell_chances`, from above: the sum of P(v) beyond is sum_t u_t g_t (u_0 + ... + u_(t - centre - 1)).
    """
    c = len(weights) - 1
    _, high, unit = _differences(column, weights)
    if column.kind == "bits":
        last = c * column.size
        lost = range(max(centre - column.size + 1, -centre), min(centre, last) + 1)  # M < step: it may lose so many
        at = sum(high[-(-abs(v) // column.size)] for v in lost)
        beyond = sum(high[-(-v // column.size)] for v in range(centre + 1, last + 1))
    else:
        ways = _all_parts(c, column.size - 1)
        at = beyond = before = 0
        for t in range(centre, c + 1):
            weighted = ways[t] * high[t]
            at += ways[t - centre] * weighted
            beyond += before * weighted
            before += ways[t - centre]
    unit >>= _CELL  # a power of 2 above it
    return Fraction(-(-at // unit), 1 << _CELL), Fraction(-(-beyond // unit), 1 << _CELL)


def _parts(whole: int, parts: int) -> int:
    """Ways to write a whole number as an ordered sum of so many whole numbers of at least 0."""
    return math.comb(whole + parts - 1, parts - 1) if parts else int(whole == 0)


# ------------------------------------------------------------------ drawing


def _point(column: Column, radius: int, below: Below) -> NDArray[np.int64]:
    """Draw a point uniformly from a column's ball."""
    if column.kind == "bits":
        reach = radius * column.size
        ones = below(2 * reach + 1) - reach
        return np.array([-ones, ones], dtype=np.int64)
    k, balls = column.size, column.balls(radius)
    rank = below(balls[-1])  # says it all: gauge, number of positive cells, which ones, and both compositions
    r = bisect_right(balls, rank)
    point = np.zeros(k, dtype=np.int64)
    if r == 0:
        return point
    rank -= balls[r - 1]
    kinds = [(p, math.comb(k, p), math.comb(r - 1, p - 1), _parts(r, k - p)) for p in range(1, min(k - 1, r) + 1)]
    ends = list(accumulate(places * up * down for _, places, up, down in kinds))
    kind = bisect_right(ends, rank)
    rank -= ends[kind - 1] if kind else 0
    p, places, up, _ = kinds[kind]
    rank, chosen = divmod(rank, places)
    down, up = divmod(rank, up)
    positive = _subset(k, p, chosen)
    point[positive] = _gaps(_subset(r - 1, p - 1, up), r)
    rest = np.delete(np.arange(k), positive)
    point[rest] = 1 - _gaps(_subset(r + k - p - 1, k - p - 1, down), r + k - p)
    return point


def _gaps(cuts: list[int], whole: int) -> NDArray[np.int64]:
    """Return the positive parts into which cuts after the first, second, ... of so many things divide them."""
    return np.diff(np.array([0, *(cut + 1 for cut in cuts), whole], dtype=np.int64))


def _subset(n: int, size: int, rank: int) -> list[int]:
    """Return the subset of 0..n - 1 of that rank, in ascending order.

    The rank is in 0..C(n, size) - 1 (the combinatorial number system).
    """
    subset, many = list[int](), math.comb(n, size)
    for top in range(n - 1, -1, -1):  # many = C(top + 1, size)
        if size == 0:
            break
        without = many * (top + 1 - size) // (top + 1)  # C(top, size)
        if rank >= without:
            rank, many, size = rank - without, many - without, size - 1
            subset.append(top)
        else:
            many = without
    return subset[::-1]
