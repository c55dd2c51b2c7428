"""Weighting: estimates for those who answered are adjusted to public margins of the population they represent.

**Groups that are known** (`weighted_groups`). Estimates f_s of public groups s, of which each is W_s of the population,
give sum W_s f_s. Reports of different groups are independent, so the variances add up with W_s^2. By one column the W_s
are public: post-stratification. By several columns only the shares of each column's categories are: the shares n_s/n of
those who answered are raked to them. They are a sample too, of covariance (diag(p) - pp')/n, which (R) leads to the W_s
and which adds sum_(s,t) f_s Cov(W)_st f_t to the variance.

**Variables that were asked** (`raked`). Cells c of a table have estimated shares f_c; each variable j of the table puts
a cell into one of its categories, and t_j holds the public shares of these. Raking (Deming and Stephan 1940) finds
r_c = f_c exp(sum_j b_(j, category of c)) whose margins are the t_j; with one variable that is post-stratification. Let
X have a column for every category, 1 where a cell is in it. Then X'r = t, and by differentiating both equations

    dr = (I - R X (X'RX)^+ X') diag(r_c/f_c) df,      R = diag(r)                                                   (R)

so the covariance of r is that of f between this matrix and its transpose, up to terms of order 1/n^2.

**Variances hold both errors.** If the n people are a sample with replacement of the population they represent, their
reports are independent draws with chances s_g = q_g + (p_g - q_g) f over the cells, g the level, and dummies are drawn
by a known law. So the estimate has the covariance

    (sum_g n_g (diag(s_g) - s_g s_g') + dummies) / (sum_g n_g (p_g - q_g))^2                                         (S)

which is noise and sampling together; without noise it is (diag(f) - f f')/n.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.floats import FloatArray
from shuffledp.numerics.functions import ndtri
from shuffledp.questions.estimate import around, chance_of_a_miss
from shuffledp.questions.question import SHARES, Question
from shuffledp.records.people import CROSSED, Groups
from shuffledp.whole_files import csv_table

ADD_UP = 1e-6
"""Tolerance, for rounding, on the sum of the shares in a file."""


_ROUNDS = 1000


_CLOSE = 1e-9


LONGEST = 1 << 20


@dataclass(frozen=True)
class Margins:
    """Public margins of a population: the share of each category of some variables.

    Parameters
    ----------
    shares : mapping of str to mapping of str to float
        For each variable the share of each of its categories; positive, summing to 1.
    people : int or None
        Number of people in the population, if the file states counts.
    """

    shares: Mapping[str, Mapping[str, float]]
    people: int | None = None

    @classmethod
    def parse(cls, data: bytes) -> Margins:
        r"""Return the margins in a CSV file.

        Parameters
        ----------
        data : bytes
            The file's bytes: CSV with the columns variable, category, and people (whole numbers) or share.

        Raises
        ------
        InvalidInput
            If the file has another form, a cell is empty, or the shares of a variable do not sum to 1.

        Examples
        --------
        >>> margins = Margins.parse(b"variable,category,people\nside,north,600\nside,south,400\n")
        >>> margins.shares["side"]["north"], margins.people
        (0.6, 1000)
        """
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise InvalidInput("the margins are not a UTF-8 text; save the table as CSV UTF-8") from None
        header, rows = csv_table(text, "the margins")
        names = [name.strip() for name in header]
        what = "people" if "people" in names else "share"
        if sorted(names) != sorted(("variable", "category", what)):
            raise InvalidInput(
                f"the margins need the columns variable, category, and people or share; got {shown(', '.join(names))}"
            )
        amounts: dict[str, dict[str, float]] = {}
        for line, row in enumerate(rows, start=2):
            variable, category, amount = ((row.get(name) or "").strip() for name in ("variable", "category", what))
            if not variable or not category or category in amounts.setdefault(variable, {}):
                raise InvalidInput(f"line {line} of the margins names no category, or one twice: {shown(category)}")
            if len(f"{variable} {category}".splitlines()) > 1:
                raise InvalidInput(
                    f"line {line} of the margins has a name of several lines: {shown(f'{variable} {category}')}; write "
                    "it on one"
                )
            amounts[variable][category] = _amount(amount, what, f"line {line} of the margins")
        if not amounts:
            raise InvalidInput("the margins have no line; give each category of each variable one")
        return cls._of(amounts, what)

    @classmethod
    def _of(cls, amounts: Mapping[str, Mapping[str, float]], what: str) -> Margins:
        totals = {variable: sum(by_category.values()) for variable, by_category in amounts.items()}
        (first, total), *others = totals.items()
        for variable, other in others:
            if abs(other - total) > (0 if what == "people" else ADD_UP):
                raise InvalidInput(
                    f"the margins do not add up: {first} has {total:g} and {variable} has {other:g}; every variable "
                    "must count the same people"
                )
        if what == "share" and abs(total - 1.0) > ADD_UP:
            raise InvalidInput(
                f"the shares of {first} add up to {total:g}, not to 1; write shares such as 0.25, or people"
            )
        shares = {
            variable: {category: amount / totals[variable] for category, amount in by_category.items()}
            for variable, by_category in amounts.items()
        }
        return cls(shares, int(total) if what == "people" else None)

    def of(self, variable: str, categories: Sequence[str], answered: Sequence[int] = ()) -> FloatArray:
        """Return the shares of a variable's categories, in their order.

        Parameters
        ----------
        variable : str
            Name of the variable.
        categories : sequence of str
            All categories of the question or of the groups.
        answered : sequence of int, optional
            Number of people of each category who answered.

        Raises
        ------
        InvalidInput
            If the variable or a category is missing, there are others, or more answered than there are people.
        """
        shares = self._shares_of(variable)
        lacking, other = (
            [each for each in a if each not in b] for a, b in ((categories, shares), (shares, categories))
        )
        if lacking and other:
            raise InvalidInput(
                f"the margins of {variable} have {shown(', '.join(other))}, of which nothing was asked, and lack "
                f"{shown(', '.join(lacking))}: spell the categories as they were asked"
            )
        for category in categories:
            if category not in shares:
                raise InvalidInput(f"the margins of {variable} lack {shown(category)}; add its line, or leave it out")
        for category in shares:
            if category not in categories:
                raise InvalidInput(
                    f"the margins of {variable} have {shown(category)}, of which nothing was asked; put it together "
                    "with another category, in both"
                )
        if self.people is not None:
            for category, people in zip(categories, answered, strict=False):
                _enough(people, round(shares[category] * self.people), f" of {variable} {shown(category)}")
        return np.array([shares[category] for category in categories])

    def crossed(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the names of all groups by some columns: each category of the one with each of the others.

        Parameters
        ----------
        columns : sequence of str
            Variables of the margins.

        Raises
        ------
        InvalidInput
            If the margins lack one of them.

        Examples
        --------
        >>> margins = Margins({"side": {"north": 0.6, "south": 0.4}, "age": {"old": 0.5, "young": 0.5}})
        >>> margins.crossed(["side", "age"])
        ('north / old', 'north / young', 'south / old', 'south / young')
        """
        return tuple(CROSSED.join(words) for words in product(*(self._shares_of(column) for column in columns)))

    def _shares_of(self, variable: str) -> Mapping[str, float]:
        if variable not in self.shares:
            raise InvalidInput(f"the margins lack the variable {shown(variable)}; they have {', '.join(self.shares)}")
        return self.shares[variable]

    def check_people(self, answered: int) -> None:
        """Refuse if more people answered than the margins count.

        Parameters
        ----------
        answered : int
            Number of people who answered.

        Raises
        ------
        InvalidInput
            If `answered` exceeds the number of people in the margins.
        """
        _enough(answered, self.people)


@dataclass(frozen=True, eq=False)
class Weighted:
    """Estimates weighted to the public margins of a population.

    Parameters
    ----------
    value : ndarray, shape (k,)
        Shares (or means) in the population.
    variance : ndarray, shape (k,)
        Variances of `value`: noise and sampling together, linearised.
    answered : int
        Number of people who answered.
    population : int or None
        Number of people in the population, if known.
    covariance : ndarray, shape (k, k), or None
        Covariance of `value`, where it is known; its diagonal is `variance`.
    support : tuple of float
        The range of the estimated quantity: [0, 1] for shares.
    """

    value: FloatArray
    variance: FloatArray
    answered: int
    population: int | None = None
    covariance: FloatArray | None = None
    support: tuple[float, float] = (0.0, 1.0)

    @property
    def standard_error(self) -> FloatArray:
        """Square root of the variance, shape (k,)."""
        return np.sqrt(np.maximum(self.variance, 0.0))

    def confidence_interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return both ends of normal confidence intervals, in the range, for the population.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).
        """
        half = -ndtri(chance_of_a_miss(level) / 2.0) * self.standard_error
        return around(self.value, half, half, self.support)

    @property
    def missing(self) -> int | None:
        """Number of people of the population who did not answer; None where the population's size is not known."""
        return None if self.population is None else self.population - self.answered


def covariance_of_shares(
    people: Sequence[int],
    own: Sequence[float],
    other: Sequence[float],
    shares: FloatArray,
    dummies: FloatArray | None = None,
) -> FloatArray:
    """Return (S): the covariance of estimated shares, noise and sampling together, shape (k, k).

    Parameters
    ----------
    people : sequence of int
        n_g, number of people at each level.
    own, other : sequence of float
        p_g and q_g: the probabilities that a report is the record's own cell, and any single other cell (`krr`).
    shares : ndarray, shape (k,)
        The cells' shares; estimates are clipped to [0, 1].
    dummies : ndarray, shape (k, k), optional
        Covariance of the dummies' counts.
    """
    f = np.clip(np.asarray(shares, dtype=np.float64), 0.0, 1.0)
    total = np.zeros((f.size, f.size)) if dummies is None else np.array(dummies, dtype=np.float64)
    slope = 0.0
    for n, p, q in zip(people, own, other, strict=True):
        chances = q + (p - q) * f
        total += n * (np.diag(chances) - np.outer(chances, chances))
        slope += n * (p - q)
    return total / slope**2


def weighted_groups(values: Sequence[FloatArray], variances: Sequence[FloatArray], weights: Weighted) -> Weighted:
    """Weight estimates of known groups by the groups' shares of the population.

    Parameters
    ----------
    values : sequence of ndarray, shape (k,) or ()
        Estimates in each group.
    variances : sequence of ndarray, shape of values
        Variances of these estimates, noise and sampling together.
    weights : Weighted
        The groups' shares, from `group_weights`.
    """
    assert weights.covariance is not None
    each, spread = np.array(values), np.array(variances)
    lines = each.reshape(len(each), -1)
    drawn = np.einsum("sk,st,tk->k", lines, weights.covariance, lines).reshape(each.shape[1:])
    return replace(
        weights,
        value=np.tensordot(weights.value, each, 1),
        variance=np.tensordot(weights.value**2, spread, 1) + drawn,
        covariance=None,
    )


def group_weights(margins: Margins, groups: Groups, answered: Sequence[int]) -> Weighted:
    """Return the groups' shares of the population: public ones by one column, raked ones by several.

    Parameters
    ----------
    margins : Margins
        Public shares of each column's words.
    groups : Groups
        Columns and names of the groups.
    answered : sequence of int
        Number of people of each group who answered.

    Raises
    ------
    InvalidInput
        If the margins do not fit the groups, more answered than there are people, or no weights lead to the margins.
    """
    which: list[NDArray[np.int64]] = []
    public: list[FloatArray] = []
    for column, words in zip(groups.columns, groups.words, strict=True):
        places = {word: place for place, word in enumerate(dict.fromkeys(words))}
        which.append(np.array([places[word] for word in words]))
        people = np.bincount(which[-1], weights=answered).astype(int).tolist()
        public.append(margins.of(column, [str(word) for word in places], people))
    n, shares = sum(answered), np.array(answered) / sum(answered)
    return raked(shares, covariance_of_shares((n,), (1.0,), (0.0,), shares), which, public, n, margins.people)


def group_shares(margins: Margins, question: Question, groups: Groups, answered: Sequence[int]) -> Weighted:
    """Return the groups' shares of the population, see `group_weights`.

    Parameters
    ----------
    margins : Margins
        Public counts of all people.
    question : Question
        The question that the groups are asked.
    groups : Groups
        Column and names of the groups.
    answered : sequence of int
        Number of people in each group.

    Raises
    ------
    InvalidInput
        If the question's answers, or these groups, cannot be weighted to the margins.
    """
    if question.name not in (*SHARES, "mean") or not question.shape.amount:
        raise InvalidInput(
            f"only shares of categories or bins, and means, are weighted to margins; got {question.name}; ask for a "
            "histogram in its place"
        )
    for name, people in zip(groups.names, answered, strict=True):
        if people < 2:
            raise InvalidInput(f"group {shown(name)} has one person, which says nothing of its spread; join groups")
    return group_weights(margins, groups, answered)


def raked(
    shares: FloatArray,
    covariance: FloatArray,
    variables: Sequence[NDArray[np.int64]],
    targets: Sequence[FloatArray],
    answered: int,
    population: int | None = None,
) -> Weighted:
    """Return the estimated cells of a table raked to public margins.

    Parameters
    ----------
    shares : ndarray, shape (k,)
        Estimated shares of the cells; noise may make some negative.
    covariance : ndarray, shape (k, k)
        Their covariance, noise and sampling together (`covariance_of_shares`).
    variables : sequence of ndarray of int, shape (k,)
        For each variable the category of every cell, from 0.
    targets : sequence of ndarray
        For each variable the public shares of its categories; they sum to 1.
    answered : int
        Number of people who answered.
    population : int, optional
        Number of people in the population they represent.

    Returns
    -------
    Weighted
        Weighted shares of the cells; the share of an answer is a sum of them.

    Raises
    ------
    InvalidInput
        If the estimated share of a category is not above 0, or the iteration finds no weights.

    Examples
    --------
    >>> cells = np.array([0.3, 0.2, 0.1, 0.4])  # two groups times two answers
    >>> weighted = raked(cells, np.zeros((4, 4)), [np.array([0, 0, 1, 1])], [np.array([0.2, 0.8])], 100)
    >>> weighted.value.round(3).tolist()
    [0.12, 0.08, 0.16, 0.64]
    """
    _enough(answered, population)
    f = np.asarray(shares, dtype=np.float64)
    weights = np.ones_like(f)
    for _ in range(_ROUNDS):
        away = 0.0
        for place, (category, target) in enumerate(zip(variables, targets, strict=True)):
            margin = np.bincount(category, weights=f * weights, minlength=target.size)
            if not (margin > 0.0).all():
                worst = int(np.argmin(margin))
                raise InvalidInput(
                    f"category {worst + 1} of variable {place + 1} has no answers that can be told from noise, so it "
                    "cannot be weighted; put it together with another category"
                )
            away = max(away, float(np.abs(margin / target - 1.0).max()))
            weights = weights * (target / margin)[category]
        if away < _CLOSE or len(targets) == 1:
            break
    else:
        raise InvalidInput(
            "no weights lead to these margins: too many cells are empty, or below 0; put categories together"
        )
    value = f * weights
    indicators = np.concatenate(
        [np.eye(target.size)[category] for category, target in zip(variables, targets, strict=True)], axis=1
    )
    bread = np.linalg.pinv(indicators.T @ (value[:, None] * indicators))
    lead = (np.eye(f.size) - (value[:, None] * indicators) @ bread @ indicators.T) * weights[None, :]
    led = lead @ np.asarray(covariance) @ lead.T
    return Weighted(value, np.diag(led), answered, population, led)


def _enough(answered: int, population: int | None, whose: str = "") -> None:
    if population is not None and answered > population:
        raise InvalidInput(
            f"{answered} people{whose} answered, and the margins count {population}; give margins of all people for "
            "whom they stand"
        )


def _amount(text: str, what: str, where: str) -> float:
    """Return one positive amount read from a text."""
    try:
        value = float(int(text)) if what == "people" else float(text)
    except ValueError:
        value = float("nan")
    if not 0.0 < value < 1e15:
        rule = "a whole number of people, at least 1" if what == "people" else "a share above 0"
        raise InvalidInput(
            f"{where} must have {rule}; got {shown(text)}. An empty category cannot be weighted: leave it out, or put "
            "it together with another"
        )
    return value
