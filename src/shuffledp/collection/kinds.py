r"""Estimates that a kind of question has besides its shares, and what the answers to a draft's questions are worth.

**Linear functionals** sum_j v_j f_j of the shares f are estimated by the same sum of the estimated shares. A report of
slope s has the value v of its own answer with chance s, else that of a uniform one; people's variance follows from the
shares, moved to the nearest ones that could be, and the dummies' law is exact (`spread`).

**Margins and independence** of a table are those of `shuffledp.questions.crosstab`, with the dummies.

**Groups of a table.** In row i the share of column c is p_(c|i) = f_(ic)/f_(i+), and of two rows the difference has the
derivative (1[cell = (i, c)] - p_(c|i) 1[row = i])/f_(i+) for the first, less the same for the second. Its variance is
that of this linear functional, its interval that of `spread` with the law of one cell of the dummies brought to their
variance. Rows are compared whose people can be told from none: below that a quotient has no interval.

**The mean among those who answered** an optional scale is a ratio of two such sums, with Fieller's interval
(`AnsweredMean`).

**A word is present** if so many reports of it have a chance of at most 5 % / k where nobody sent it (Bonferroni: over
all words the chance that any is wrongly called present is at most 5 %).
"""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.ball import below_of
from shuffledp.collection.asked import (
    MOST_CHOICES,
    TOGETHER,
    WORD_CELLS,
    StatedDummies,
    SurveyQuestion,
    check_dictionary,
    whole_values,
)
from shuffledp.collection.dictionary import FoundWords, WordsEstimate, found_words, seen_from
from shuffledp.collection.draw import Family
from shuffledp.collection.estimates import (
    FALSE_LEVELS,
    JUNK,
    NO_DUMMIES,
    JoinedEstimate,
    Slopes,
    Spread,
    SpreadEstimate,
    cell_law,
    count_law,
    dummies_along,
    dummies_between,
    predicted_half_width,
    predicted_variance,
    scaled_counts,
    shift_of_future_junk,
    shift_of_levels,
    slopes_of,
    width_of,
)
from shuffledp.collection.laws import draw_column
from shuffledp.collection.task import Draft
from shuffledp.errors import InvalidInput, shown
from shuffledp.in_words import plus_minus
from shuffledp.numerics.floats import TINY, FloatArray
from shuffledp.numerics.functions import ndtri
from shuffledp.numerics.randomness import Randomness, simulation_random
from shuffledp.questions.crosstab import Independence, Responses
from shuffledp.questions.estimate import Added, CountEstimate, Estimate, chance_of_a_miss
from shuffledp.questions.frequency import project_to_simplex
from shuffledp.questions.mean import AnsweredMean, tried_values
from shuffledp.whole_files import read_bytes

MOST_COMPARED = 12
"""Largest number of choices of which every two are compared."""
ERROR_RATE = 0.05
"""Probability that any word is called present that nobody sent."""
CONFIDENCE = 0.95


def miss_of(kind: str, targets: int, groups: int = 1) -> float:
    """Return the probability with which each printed interval of a question's answers may miss.

    Parameters
    ----------
    kind : Kind
        Kind of the question.
    targets : int
        Number of its answers or, of a margin of a table, of rows or columns; of a dictionary any number: the intervals
        of all cells of its two columns hold together.
    groups : int
        Number of groups that are compared: from 2 on the intervals of all answers in all of them hold together.
    """
    together = 1 if kind not in TOGETHER else 2 * WORD_CELLS if kind == "dictionary" else targets
    together = groups * targets if groups > 1 else together
    return chance_of_a_miss(CONFIDENCE, together)


@dataclass(frozen=True, eq=False)
class More:
    """The estimates of a question besides its shares; those that its kind does not have are None or empty.

    Parameters
    ----------
    mean : Estimate or None
        Mean of a scale.
    differences : tuple of (int, int, Estimate)
        Share of the first choice less that of the second.
    rows, columns : Estimate or None
        Margins of a table.
    independence : Independence or None
        Test of a table.
    groups : tuple of (int, int, int, Estimate)
        For a table: share of a column (third) among the people of the first row less that among those of the second.
    present : tuple of bool or None
        For a list, whether each word is present.
    least : float or None
        Approximate number of people from which on a word of a list, or of a dictionary, is called present; None where
        no number of people is enough.
    words : FoundWords or None
        For a dictionary, the words that are present or may be.
    cells : tuple of tuple of int
        For a dictionary, the number of usable rows in each cell of either column, from which all scores follow.
    """

    mean: Estimate | None = None
    differences: tuple[tuple[int, int, Estimate], ...] = ()
    rows: Estimate | None = None
    columns: Estimate | None = None
    independence: Independence | None = None
    groups: tuple[tuple[int, int, int, Estimate], ...] = ()
    present: tuple[bool, ...] | None = None
    least: float | None = 0.0
    words: FoundWords | None = None
    cells: tuple[tuple[int, ...], ...] = ()


def more_of(draft: Draft, place: int, shares: Estimate, counts: Sequence[int]) -> More:
    """Return the estimates that a question's kind has besides its shares.

    Parameters
    ----------
    draft : Draft
        The task's draft.
    place : int
        Index of the question, from 0.
    shares : Estimate
        From `estimates.estimate_question`.
    counts : sequence of int
        Number of people at each level whose reports were used.
    """
    question, slopes = draft.questions[place], slopes_of(draft, place)
    if question.kind == "several" and isinstance(shares, JoinedEstimate):
        return More(differences=_between(question, slopes, shares, counts))
    if isinstance(shares, WordsEstimate):
        least = seen_from(shares.columns[0].law, shares.words)
        cells = tuple(tuple(column.counts.tolist()) for column in shares.columns)
        return More(least=least, words=found_words(shares), cells=cells)
    if draft.version == 1 or not isinstance(shares, CountEstimate):
        return More()
    task = Cells(question, slopes, tuple(counts), shares)
    if question.kind == "list":
        return task.words()
    if question.kind == "table":
        return task.table(int.from_bytes(hashlib.sha256(draft.data).digest()[:8], "little"))
    if question.kind == "scale" and question.optional:
        return More(mean=mean_of_answered(task, question.values), differences=task.differences())
    mean = task.along(question.values) if question.kind == "scale" else None
    return More(mean=mean, differences=task.differences())


def _between(
    question: SurveyQuestion, slopes: Slopes, shares: JoinedEstimate, counts: Sequence[int]
) -> tuple[tuple[int, int, Estimate], ...]:
    """Return the differences of every two of a few options.

    The noise of people is independent between options, that of the dummies is not.
    """
    k = len(question.choices)
    if k > MOST_COMPARED:
        return ()
    total = sum(count * slope for count, slope in zip(counts, slopes.slopes, strict=True))
    added = Spread(dummies_between(question.dummies), 1.0 / total)
    each = Spread(dummies_along(question.family, question.dummies, (0, 1)), 1.0 / total).variance
    own = np.maximum(shares.standard_error**2 - each, 0.0)
    return tuple(
        (
            one,
            two,
            SpreadEstimate(
                value=np.asarray(shares.value[one] - shares.value[two]),
                standard_error=np.asarray(np.sqrt(own[one] + own[two] + added.variance)),
                step=shares.step,
                support=(-1.0, 1.0),
                uninformative=shares.uninformative,
                added=added,
            ),
        )
        for one in range(k)
        for two in range(one + 1, k)
    )


@dataclass(frozen=True, eq=False)
class Cells:
    """A question with one column of choices, and its estimated shares.

    Parameters
    ----------
    question : SurveyQuestion
        The question.
    slopes : Slopes
        Slope p - q of each level.
    counts : tuple of int
        Number of people at each level whose reports were used.
    shares : CountEstimate
        The estimated shares of the choices, or of a table's cells row by row.
    """

    question: SurveyQuestion
    slopes: Slopes
    counts: tuple[int, ...]
    shares: CountEstimate

    @property
    def people(self) -> list[tuple[int, float]]:
        """Number of people and slope of each level."""
        return list(zip(self.counts, self.slopes.slopes, strict=True))

    @property
    def total(self) -> float:
        """Sum of the slopes over people: the factor from a share to an expected count."""
        return sum(count * slope for count, slope in self.people)

    def own_variance(self, values: Sequence[float]) -> float:
        """Return the variance of the estimated sum_j v_j f_j that people's reports cause, f_j the share of cell j.

        It has two parts: the randomizers' noise, and the random assignment of levels to people.

        Parameters
        ----------
        values : sequence of float
            The v_j, one for each cell.
        """
        v, n, total = np.array(values, dtype=np.float64), sum(self.counts), self.total
        likely = project_to_simplex(self.shares.value)
        noise = 0.0
        for count, s in self.people:
            mean, square = s * v + (1.0 - s) * v.mean(), s * v**2 + (1.0 - s) * (v**2).mean()
            noise += count * float(likely @ (square - mean**2))
        uneven = max(sum(count * s * s for count, s in self.people) / total**2 - 1.0 / n, 0.0) * n / max(n - 1, 1)
        dealt = uneven * max(float(likely @ v**2 - (likely @ v) ** 2), 0.0)
        return noise / total**2 + dealt

    @property
    def one_cell(self) -> tuple[float, ...]:
        """The law of one cell's dummies around their mean.

        Cells sum to a constant, so all pairs have the same covariance.
        """
        k = self.question.family.cells
        return dummies_along(self.question.family, self.question.dummies, (1,) + (0,) * (k - 1))

    def along(self, values: Sequence[float]) -> SpreadEstimate:
        """Return an estimate of sum_j v_j f_j, f_j the share of cell j, with its standard error.

        Parameters
        ----------
        values : sequence of float
            The v_j, one for each cell.
        """
        order = sorted(set(values))
        whole = dict(zip(order, whole_values(tuple(order)), strict=True))
        unit = float(Fraction(repr(order[1])) - Fraction(repr(order[0]))) / whole[order[1]]
        v, total = np.array(values, dtype=np.float64), self.total
        cells = tuple(whole[value] for value in values)
        added = Spread(dummies_along(self.question.family, self.question.dummies, cells), unit / total)
        return SpreadEstimate(
            value=np.asarray(float(v @ self.shares.value)),
            standard_error=np.asarray(np.sqrt(self.own_variance(values) + added.variance)),
            step=float(v.max() - v.min()) / total,
            support=(float(v.min()), float(v.max())),
            uninformative=self.shares.uninformative,
            added=added,
        )

    def differences(self) -> tuple[tuple[int, int, Estimate], ...]:
        """Return (i, j, estimate of share i minus share j) for every two choices; empty for two choices or too many."""
        k = len(self.question.choices)
        if not 2 < k <= MOST_COMPARED:
            return ()
        pairs = [(one, two) for one in range(k) for two in range(one + 1, k)]
        return tuple(
            (one, two, self.along([float(j == one) - float(j == two) for j in range(k)])) for one, two in pairs
        )

    def words(self) -> More:
        """Return which words are present."""
        law, k = self.shares.law, len(self.question.choices)
        chance = ERROR_RATE / k
        low, high = round(law.mean(0.0)), round(law.mean(0.0)) + 1
        while law.at_least(high, 0) > chance:
            low, high = high, high + 2 * (high - low)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if law.at_least(middle, 0) > chance else (low, middle)
        present = tuple(bool(count >= high) for count in self.shares.counts.tolist())
        return More(present=present, least=max(high - law.mean(0.0), 0.0) / law.slope * law.n)

    def table(self, seed: int) -> More:
        """Return the estimated margins of a table, and a test of their independence.

        ``seed`` determines the tables that the test simulates.
        """
        question, law = self.question, count_law(self.question, self.slopes, self.counts)
        shape = (len(question.rows), len(question.columns))

        def dummies(random: Randomness) -> NDArray[np.int64]:
            return draw_column(question.family, question.dummies, below_of(random))

        reports = Responses(shape, tuple(self.people), self.shares.law, dummies, question.optional)
        counts = self.shares.counts.reshape(shape)
        rows, columns = (
            reports.margin(counts.sum(axis=axis), size, Added(cell_law(question.family, question.dummies, size)))
            for axis, size in ((1, shape[1]), (0, shape[0]))
        )
        variance = law.variance(1.0 / len(question.choices)) / self.total**2
        independence = reports.independence(self.shares.value, variance, simulation_random(seed >> 1))
        return More(rows=rows, columns=columns, independence=independence, groups=self._groups(shape, rows))

    def _groups(self, shape: tuple[int, int], rows: Estimate) -> tuple[tuple[int, int, int, Estimate], ...]:
        """Return the differences of every two of a few rows in each column, without rows that may be empty."""
        if shape[0] > MOST_COMPARED:
            return ()
        shares = self.shares.value.reshape(shape)
        there = np.flatnonzero(rows.confidence_interval(simultaneous=True)[0] > 0.0).tolist()
        within = shares / np.where(rows.value > 0.0, rows.value, 1.0)[:, None]

        def slope(row: int, column: int) -> FloatArray:
            along = np.zeros(shape)
            along[row] = -within[row, column]
            along[row, column] += 1.0
            return along / rows.value[row]

        return tuple(
            (
                one,
                two,
                column,
                self._led(within[one, column] - within[two, column], (slope(one, column) - slope(two, column)).ravel()),
            )
            for place, one in enumerate(there)
            for two in there[place + 1 :]
            for column in range(shape[1])
        )

    def _led(self, value: float, along: FloatArray) -> SpreadEstimate:
        """Return an estimate, for the people who answered, whose derivative with respect to the shares is ``along``."""
        noise = self.own_variance(along.tolist())
        around = float(((along - along.mean()) ** 2).sum()) * along.size / (along.size - 1)
        total = self.total
        added = Spread(self.one_cell, float(np.sqrt(around)) / total)
        return SpreadEstimate(
            value=np.asarray(value),
            standard_error=np.asarray(np.sqrt(noise + added.variance)),
            step=float(along.max() - along.min()) / total,
            support=(-1.0, 1.0),
            uninformative=self.shares.uninformative,
            added=added,
        )


def mean_of_answered(task: Cells, values: Sequence[float]) -> AnsweredMean:
    """Return the estimated mean of a scale among those who answered; the last choice is "no answer".

    Parameters
    ----------
    task : Cells
        The question with its estimated shares.
    values : sequence of float
        Values of all choices but the last.
    """
    shares, whole = task.shares.value, np.array(whole_values(tuple(values)), dtype=np.float64)
    unit, total = float(Fraction(repr(values[-1])) - Fraction(repr(values[0]))) / whole[-1], float(shares[:-1].sum())
    near = float(np.clip(shares[:-1] @ whole / total, 0.0, whole[-1])) if total > 0.0 else float(whole[-1] / 2.0)

    def weights(t: float) -> list[float]:
        return [*(whole - t).tolist(), 0.0]

    base = task.along(weights(round(near)))
    around = np.array(weights(round(near)))
    dummies = base.added.variance / float(((around - around.mean()) ** 2).sum())  # they are exchangeable among cells
    tried = tried_values(float(whole[-1]))
    each = np.array([weights(t) for t in tried])
    own = [task.own_variance(weights(t)) for t in (0.0, whole[-1] / 2.0, whole[-1])]  # a parabola in t
    variance = np.polyval(np.polyfit([0.0, 0.5, 1.0], own, 2), tried / whole[-1])
    variance += dummies * ((each - each.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    error = np.sqrt(np.maximum(variance, TINY))
    at = float(np.interp(near, tried, error))
    normal = -float(ndtri(chance_of_a_miss(CONFIDENCE) / 2.0)) * float(base.standard_error)
    wide = float(base.half_width(chance_of_a_miss(CONFIDENCE), base.standard_error))
    widening = max(wide / normal, 1.0) if normal > 0.0 else 1.0
    return AnsweredMean(
        value=np.asarray(values[0] + unit * near),
        standard_error=np.asarray(unit * min(at / max(total, TINY), float(whole[-1]))),
        step=unit * base.step,
        support=(values[0], values[-1]),
        uninformative=task.shares.uninformative,
        tried=values[0] + unit * tried,
        apart=each @ shares,
        error=error,
        wide=lambda miss, error: -ndtri(miss / 2.0) * widening * error,
    )


# The words of a survey's question: written in the survey, or one a line in a file beside it.


ANOTHER_WORD = {"en": "another word", "de": "ein anderes Wort", "fr": "un autre mot"}
"""Default words of the answer of a dictionary for people whose word is not in it, by language."""
LONGEST_WORDS = 1 << 20


def words_of_survey(given: str, what: str, folder: Path | None) -> list[str]:
    """Return the words of a question that names a file with one word a line.

    Parameters
    ----------
    given : str
        Name of the file.
    what : str
        The question, for messages.
    folder : Path or None
        The folder of the survey.

    Raises
    ------
    InvalidInput
        If the file cannot be read, is no UTF-8, or has an empty line between words.
    """
    if folder is None:
        raise InvalidInput(f"{what}: words names the file {shown(given)}; only a survey in a file can name another one")
    data = read_bytes(folder / given, "the words", LONGEST_WORDS)
    try:
        lines = data.decode("utf-8-sig").rstrip("\r\n").split("\n")
    except UnicodeDecodeError:
        raise InvalidInput(f"{what}: the words in {given} are not UTF-8; save the file as UTF-8") from None
    words = [line.strip() for line in lines]
    if "" in words:
        raise InvalidInput(f"{what}: line {words.index('') + 1:,} of {given} is empty; write one word a line")
    return words


def is_dictionary(given: object) -> bool:
    """Return whether so many words are asked as a dictionary, in two columns of cells, and not as a list."""
    return isinstance(given, list) and len(given) > MOST_CHOICES  # pyright: ignore[reportUnknownArgumentType]


def dictionary_of(words: list[Any], what: str, another: object) -> dict[str, Any]:
    """Return the keys of a dictionary in a draft.

    Parameters
    ----------
    words : list
        The words, each a text that is the same in every language.
    what : str
        The question, for messages.
    another : object
        Words by language for people whose word is not in it.

    Raises
    ------
    InvalidInput
        As for `asked.check_dictionary`.
    """
    for place, word in enumerate(words, start=1):
        if not isinstance(word, str):
            raise InvalidInput(
                f"{what}, word {place:,}: a list of more than {MOST_CHOICES:,} words has one text a word, the same "
                f"in every language; got {shown(word)}"
            )
    normal = [unicodedata.normalize("NFC", word).strip() for word in words]
    return {"kind": "dictionary", "words": "\n".join(check_dictionary(normal, what)), "more": [another]}


def columns_of(question: dict[str, Any]) -> int:
    """Return the number of columns of a survey's question: one an option, two of a dictionary, else one."""
    return 2 if question["kind"] == "dictionary" else len(question.get("options", ("",)))


def records_of(question: dict[str, Any]) -> int:
    """Return the number of records of each column of a survey's question."""
    if question["kind"] == "dictionary":
        return WORD_CELLS
    if question["kind"] == "table":
        return len(question["rows"]) * len(question["columns"])
    return len(question.get("choices") or question.get("words") or (0, 1))


def in_languages(given: object, question: dict[str, Any], what: str, key: str, english: str) -> dict[str, Any]:
    """Return words in the languages of a question, refused if they lack one.

    Parameters
    ----------
    given : object
        The words by language.
    question : dict
        The question, with its text.
    what : str
        The question, for messages.
    key, english : str
        The key of the survey that would state the words, and the words in English.
    """
    languages = question["text"] if isinstance(question["text"], dict) else {}
    by_language = given if isinstance(given, dict) else {}
    if lacking := [name for name in languages if name not in by_language]:
        example = ", ".join(f'{name} = "…"' for name in languages)
        why = "it has a dictionary" if key == "another_word" else "it is optional"
        where = "below its text" if key == "explanation" else "above the questions"
        raise InvalidInput(
            f"{what}: {why}, and nothing says “{english}” in {', '.join(lacking)}; write {key} = {{{example}}} {where}"
        )
    return {name: by_language[name] for name in languages}


NEAREST = {
    "en": "Choose the number that is nearest to yours.",
    "de": "Wählen Sie die Zahl, die Ihrer am nächsten liegt.",
    "fr": "Choisissez le nombre le plus proche du vôtre.",
}
"""Explanation of a number that is asked as a scale, by language."""
MOST_AS_THEY_ARE = 11
"""Number of values up to which an optional number offers each of them, 0 to 10 for example."""


def number_as_scale(question: dict[str, Any], what: str) -> dict[str, Any]:
    """Return the scale as which an optional number is asked: "no answer" needs a place of its own among the reports.

    Up to 11 values stay as they are. More become four to seven evenly spaced ones, of which people choose the nearest.

    Parameters
    ----------
    question : dict
        The question, with its text, its low, high and step.
    what : str
        The question, for messages.
    """
    low, high, step = (Fraction(repr(question.pop(key))) for key in ("low", "high", "step"))
    if not (low < high and step > 0 and (high - low) % step == 0):
        got = ", ".join(f"{float(each):.15g}" for each in (low, high, step))
        raise InvalidInput(f"{what}: a number needs low < high, and a step that divides high - low; got {got}")
    steps = int((high - low) / step)
    parts = steps if steps < MOST_AS_THEY_ARE else next((each for each in (4, 5, 3, 6) if steps % each == 0), 4)
    values = [float(low + (high - low) * part / parts) for part in range(parts + 1)]
    scale = question | {"kind": "scale", "values": values}
    scale["choices"] = [dict.fromkeys(question["text"], f"{value:.15g}") for value in values]
    if parts < steps and "explanation" not in question:
        scale["explanation"] = in_languages(NEAREST, question, what, "explanation", NEAREST["en"])
    return scale


# What the answers to a draft's questions will be worth.


POINTS = 0.05
"""Half-width, as a share of the range, for which the needed number of people is stated."""
MOST = 10**9


@dataclass(frozen=True)
class Price:
    """The accuracy of the answer to one question, for the worst answers, by the intervals that will be printed.

    Parameters
    ----------
    planned : float
        Half-width of a 95 % interval if as many people as planned answer, in the answer's unit.
    at_least : float
        The same for the smallest number of people for whom the batch is handed over.
    for_five_points : int or None
        Number of people, mixed as planned, for a half-width of 5 % of the range; None beyond 10^9.
    widening : float
        Factor by which the dummies widen the interval at the planned number; inf where it has no length without them.
    junk_shift : float
        Largest shift of the answer by 5 % of invalid reports, in its unit.
    level_shift : tuple of float
        Largest shift of the answer if 1, 5 and 10 % of the people are counted at another level than theirs.
    present_from : int or None
        Approximate number of people from which on a word of a dictionary is called present; None if no number is.
    margins : tuple of float
        Half-widths of the shares of a table's rows and of its columns at the planned number; none of other kinds.
    """

    planned: float
    at_least: float
    for_five_points: int | None
    widening: float
    junk_shift: float
    level_shift: tuple[float, ...]
    present_from: int | None = None
    margins: tuple[float, ...] = ()


def prices(draft: Draft, groups: int = 1) -> tuple[Price, ...]:
    """Return the accuracy of the answers to a draft's questions.

    Parameters
    ----------
    draft : Draft
        The draft; people are mixed over levels as planned.
    groups : int
        Number of groups of the survey, of which this is the draft of one.
    """
    mix = [level.planned for level in draft.levels]
    if not sum(mix):
        mix = [1] * len(draft.levels)
    return tuple(_price(draft, place, mix, groups) for place in range(len(draft.questions)))


def miss_in(question: SurveyQuestion, groups: int = 1) -> float:
    """Return `miss_of` for a question of a draft: that of a survey of ``groups`` groups."""
    return miss_of(question.kind, len(question.choices) or 1, groups)


def half_width(draft: Draft, place: int, counts: Sequence[int], groups: int = 1, *, dummies: bool = True) -> float:
    """Return half the length of the interval that will be printed, in the answer's unit, at the worst answers.

    Parameters
    ----------
    draft : Draft
        The draft.
    place : int
        Index of the question, from 0.
    counts : sequence of int
        Number of people at each level.
    groups : int
        As for `miss_of`.
    dummies : bool
        Whether the dummies' variance is included.

    Returns
    -------
    float
        At most half the range, which is no information; inf if nobody answers.
    """
    if not sum(counts):
        return math.inf
    question, slopes = draft.questions[place], slopes_of(draft, place).slopes
    added = question.dummies if dummies else NO_DUMMIES
    miss = miss_in(question, groups)
    return width_of(question) * predicted_half_width(question.family, added, slopes, tuple(counts), miss)


def margins_of(
    family: Family,
    dummies: StatedDummies,
    shape: Sequence[int],
    slopes: tuple[float, ...],
    counts: tuple[int, ...],
    shufflers: int = 1,
) -> tuple[float, ...]:
    """Return the half-widths of the printed intervals of a table's rows and of its columns, at the worst answers.

    Parameters
    ----------
    family, dummies, slopes, counts, shufflers
        As for `estimates.law_of_count`.
    shape : sequence of int
        Number of rows and of columns; empty where the question is no table.

    Returns
    -------
    tuple of float
        As shares: that of a row, and that of a column; empty where the question is no table.
    """
    return tuple(
        predicted_half_width(family, dummies, slopes, counts, miss_of("table", size), shufflers, family.cells // size)
        for size in shape
    )


def margins_at(draft: Draft, place: int, counts: Sequence[int]) -> tuple[float, ...]:
    """Return the half-widths of a table's rows and of its columns, as shares; empty where the question is no table.

    Parameters
    ----------
    draft, place, counts
        As for `half_width`.
    """
    question = draft.questions[place]
    slopes = slopes_of(draft, place).slopes
    return margins_of(question.family, question.dummies, question.shape, slopes, tuple(counts))


def margins_object(margins: Sequence[float]) -> dict[str, Any]:
    """Return the key of a plan's or a draft's question with the half-widths of its margins; none without margins.

    Parameters
    ----------
    margins : sequence of float
        From `margins_of`.
    """
    return {"margins": dict(zip(("rows", "columns"), margins, strict=True))} if margins else {}


def margins_line(margins: Sequence[float]) -> str:
    """Return words on the half-widths of a table's margins; "" without margins.

    Parameters
    ----------
    margins : sequence of float
        From `margins_of`.
    """
    if not margins:
        return ""
    row, column = (plus_minus(width, 1.0, shares=True) for width in margins)
    return f"Stated is the half-width of a cell's share; of a whole row's share: {row}, of a whole column's: {column}"


def _price(draft: Draft, place: int, mix: Sequence[int], groups: int) -> Price:
    question = draft.questions[place]
    planned = half_width(draft, place, mix, groups)
    alone = half_width(draft, place, mix, groups, dummies=False)
    return Price(
        planned=planned,
        at_least=half_width(draft, place, scaled_counts(mix, draft.at_least), groups),
        for_five_points=_people_for(draft, place, mix, groups),
        widening=planned / alone if alone > 0.0 else math.inf,
        junk_shift=shift_of_future_junk(slopes_of(draft, place), mix, JUNK, width_of(question)),
        level_shift=tuple(shift_of_levels(draft, place, mix, share, stated=False) for share in FALSE_LEVELS),
        present_from=(
            seen_from(count_law(question, slopes_of(draft, place), mix), len(question.choices))
            if question.kind == "dictionary"
            else None
        ),
        margins=margins_at(draft, place, mix),
    )


def _people_for(draft: Draft, place: int, mix: Sequence[int], groups: int) -> int | None:
    """Return the least number of people, mixed as planned, with a half-width of `POINTS`, up to half a per cent.

    The normal law gives an approximate number; the exact laws are inverted around it.
    """
    question, slopes = draft.questions[place], slopes_of(draft, place)
    z, wanted = -float(ndtri(miss_in(question, groups) / 2.0)), POINTS * width_of(question)

    def normal(people: int) -> bool:
        return z * math.sqrt(predicted_variance(question, slopes, scaled_counts(mix, people))) <= POINTS

    def printed(people: int) -> bool:
        return half_width(draft, place, scaled_counts(mix, people), groups) <= wanted

    if not normal(MOST):
        return None
    about = least_number(normal, 0, MOST)
    low, high = about - about // 20 - 1, about + about // 20 + 1
    while not printed(high):
        low, high = high, high + high // 5 + 1
    return least_number(printed, max(low, 0), high)


def least_number(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return about the smallest whole number from ``low`` to ``high`` for which a condition holds.

    Parameters
    ----------
    holds : callable
        The condition; it holds at ``high``.
    low, high : int
        Ends of the search.
    """
    while high - low > max(1, high // 200):
        middle = (low + high) // 2 if low else math.isqrt(high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
