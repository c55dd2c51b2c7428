r"""Words of a dictionary of more than 1,000: how many people sent each, from the two cells in which a word is reported.

**Bounds.** T1(a) and T2(b) are the numbers of people whose word falls into cell a of the first and cell b of the second
column; intervals l <= T <= u of all 2,048 cells hold together with 95 % (Bonferroni, each from the exact law of its
count). Wherever they hold, the number N_w >= 0 of people who sent word w, in the cells a and b, is between

    high_w = min(u1(a) - sum low_v, u2(b) - sum low_v),   low_w = max(0, l1(a) - sum high_v, l2(b) - sum high_v),

with sums over the other words v of the same cell. From low = 0 these two lines are applied in turn until nothing
changes; each application keeps what is true. So the bounds of all words hold together with 95 %, whatever collides.

**Claims.** A word is *present* if low_w > 0: with a chance of at most 5 % any word is called present that nobody sent,
collisions included. It is *possible* if it is not present, but neither of its cells is empty (l1(a) > 0, l2(b) > 0):
then other words of its cells may be all there is, and they are named with it.

**The score** is the smaller of the two cells' estimated shares. Other words can only raise a cell, so the smaller one
is nearer to the word; of a word that nobody sent it leans down, by the noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.asked import WORD_CELLS, SurveyQuestion, cells_of_word
from shuffledp.errors import InvalidInput
from shuffledp.numerics.floats import FloatArray
from shuffledp.questions.estimate import CountEstimate, CountLaw, Estimate, chance_of_a_miss

CONFIDENCE = 0.95
MOST_NAMED = 200
"""Largest number of words that a release names; the further ones are counted."""
HIGHEST = 10
"""Number of words of the highest scores that a release names in any case."""
MOST_RIVALS = 5
"""Largest number of words named beside a possible word, from which it cannot be told apart."""
_ROUNDS = 50
_ROUNDING = 1e-9
"""Share of people below which a bound counts as 0: far below one person, far above the rounding of a short sum."""

Ends = tuple[FloatArray, FloatArray]
"""Lower and upper ends of the intervals of one column's cells, as shares."""


@dataclass(frozen=True, eq=False, repr=False)
class WordsEstimate(Estimate):
    """The scores of some words of a dictionary, with bounds that hold together for all its words; see the module.

    Parameters
    ----------
    columns : tuple of CountEstimate
        The estimated shares of the cells of the two columns.
    words : int
        Number of answers: words, "another word", and "no answer" if there is one.
    chosen : ndarray of int64
        Indices of the words whose scores these are.
    """

    columns: tuple[CountEstimate, CountEstimate]
    words: int
    chosen: NDArray[np.int64]
    _known: dict[float, tuple[Ends, Ends, Ends]] = field(default_factory=dict, init=False, repr=False)

    def confidence_interval(self, level: float = CONFIDENCE, simultaneous: bool = False) -> Ends:
        """Return the bounds of the chosen words, in the range; they always hold together, for all words.

        Parameters
        ----------
        level, simultaneous
            As for `Estimate.confidence_interval`; the second has no effect.
        """
        del simultaneous
        low, high = self.bounds(level)[0]
        return low[self.chosen], high[self.chosen]

    def bounds(self, level: float = CONFIDENCE) -> tuple[Ends, Ends, Ends]:
        """Return the bounds of all words, and the ends of the cells of either column from which they follow.

        Parameters
        ----------
        level : float
            Probability, in (0, 1), with which all of them hold together.
        """
        if level not in self._known:
            one, two = (cells.confidence_interval(1.0 - chance_of_a_miss(level, 2), True) for cells in self.columns)
            self._known[level] = bounds_of_words(one, two, self.words), one, two
        return self._known[level]

    def some(self, chosen: Sequence[int]) -> WordsEstimate:
        """Return the scores of these words only; the bounds stay those of all words.

        Parameters
        ----------
        chosen : sequence of int
            Indices among `chosen`.
        """
        places = np.array(chosen, dtype=np.int64)
        return replace(
            self,
            value=self.value[places],
            standard_error=self.standard_error[places],
            chosen=self.chosen[places],
        )


def words_estimate(columns: Sequence[Estimate], words: int) -> WordsEstimate:
    """Return the scores of all words of a dictionary.

    Parameters
    ----------
    columns : sequence of Estimate
        The estimated shares of the cells of the two columns.
    words : int
        Number of answers.

    Raises
    ------
    InvalidInput
        If the law of the cells is not known, as there are too many levels.
    """
    one, two = columns
    if not (isinstance(one, CountEstimate) and isinstance(two, CountEstimate)):
        raise InvalidInput("the cells of a dictionary have no known law at so many levels; offer fewer levels")
    first, second = places_of_words(words)
    value = np.stack([one.value[first], two.value[second]])
    errors = np.stack([one.standard_error[first], two.standard_error[second]])
    nearer = value.argmin(axis=0)[None]
    return WordsEstimate(
        value=np.take_along_axis(value, nearer, 0)[0],
        standard_error=np.take_along_axis(errors, nearer, 0)[0],
        step=max(one.step, two.step),
        support=(0.0, 1.0),
        uninformative=one.uninformative,
        columns=(one, two),
        words=words,
        chosen=np.arange(words),
    )


def places_of_words(words: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the cell of every word in the first and in the second column."""
    first, second = np.array([cells_of_word(index) for index in range(words)], dtype=np.int64).T
    return first, second


def bounds_of_words(one: Ends, two: Ends, words: int) -> Ends:
    """Return bounds on the share of every word that follow from those on the cells; see the module.

    Parameters
    ----------
    one, two : tuple of ndarray
        Lower and upper ends of the cells of the two columns, which are taken to hold.
    words : int
        Number of words.
    """
    columns = tuple(zip((one, two), places_of_words(words), strict=True))
    low = np.zeros(words)
    high = np.minimum(*(ends[1][places] for ends, places in columns))

    def others(each: FloatArray, places: NDArray[np.int64]) -> FloatArray:
        return np.bincount(places, weights=each, minlength=WORD_CELLS)[places] - each

    for _ in range(_ROUNDS):
        lower, upper = low, high
        for ends, places in columns:
            lower = np.maximum(lower, ends[0][places] - others(high, places) - _ROUNDING)
        for ends, places in columns:
            upper = np.minimum(upper, ends[1][places] - others(lower, places) + _ROUNDING)
        if (lower > upper).any():  # the ends of the cells contradict each other: one of the 5 cases in 100
            break
        changed = float(np.max(lower - low) + np.max(high - upper))
        low, high = lower, upper
        if changed <= _ROUNDING * WORD_CELLS:
            break
    return np.where(low > _ROUNDING * WORD_CELLS, low, 0.0), np.minimum(high, 1.0)


@dataclass(frozen=True)
class FoundWords:
    """Which words of a dictionary are present, and which may be.

    Parameters
    ----------
    present : tuple of int
        Indices of the words that are present, the highest scores first.
    possible : tuple of (int, tuple of int)
        Words that cannot be told apart from others: each with the other words of its cells that may be meant, present
        ones first, then by score, at most `MOST_RIVALS`.
    highest : tuple of int
        The words of the highest scores among the others.
    further : int
        Number of words that are present or possible beyond the first `MOST_NAMED`.
    """

    present: tuple[int, ...]
    possible: tuple[tuple[int, tuple[int, ...]], ...]
    highest: tuple[int, ...]
    further: int = 0

    @property
    def named(self) -> tuple[int, ...]:
        """All words that a release names."""
        return (*self.present, *(word for word, _ in self.possible), *self.highest)


def found_words(estimate: WordsEstimate) -> FoundWords:
    """Return which words are present, and which may be, at 95 %.

    Parameters
    ----------
    estimate : WordsEstimate
        The scores of all words.
    """
    (low, high), *cells = estimate.bounds()
    places = places_of_words(estimate.words)
    order = np.argsort(-estimate.value, kind="stable")
    there = low > 0.0
    raised = np.logical_and(*(ends[0][own] > 0.0 for ends, own in zip(cells, places, strict=True)))
    present = [word for word in order.tolist() if there[word]]
    possible = [word for word in order.tolist() if raised[word] and not there[word]]
    rest = [word for word in order[: len(present) + len(possible) + HIGHEST].tolist()
            if not there[word] and not raised[word]]  # fmt: skip
    listed = possible[: max(MOST_NAMED - len(present), 0)]

    def rivals(word: int) -> tuple[int, ...]:
        same = np.logical_or(*(own == own[word] for own in places)) & (high > 0.0)
        others = [each for each in np.flatnonzero(same).tolist() if each != word]
        return tuple(sorted(others, key=lambda each: (not there[each], -estimate.value[each]))[:MOST_RIVALS])

    return FoundWords(
        tuple(present[:MOST_NAMED]),
        tuple((word, rivals(word)) for word in listed),
        tuple(rest[:HIGHEST]),
        max(len(present) - MOST_NAMED, 0) + len(possible) - len(listed),
    )


def seen_from(law: CountLaw, words: int) -> int | None:
    """Return roughly how many people must send a word before it is called present, if no rival word is sent.

    Rivals are the words that share a cell with it. The number is the least h such that the interval of a cell with h
    senders lies above those of empty cells, all counts at their means. People who send rivals come on top.

    Parameters
    ----------
    law : CountLaw
        The law of the count of a cell.
    words : int
        Number of answers.

    Returns
    -------
    int or None
        At most the number of people; None if even all of them would not be seen.
    """
    if not law.slope > 0.0:
        return None
    others = math.ceil(words / WORD_CELLS) - 1

    def ends(people: int) -> tuple[float, float]:
        share = people / law.n
        count = np.array([round(law.mean(share))])
        error = np.array([math.sqrt(law.variance(share)) / law.slope])
        cell = CountEstimate(np.array([share]), error, 1.0 / law.slope, (0.0, 1.0), 0, count, law)
        low, high = cell.confidence_interval(1.0 - chance_of_a_miss(CONFIDENCE, 2 * WORD_CELLS))
        return float(low[0]), float(high[0])

    most = others * ends(0)[1]
    below, above = 0, law.n
    if not ends(above)[0] > most:
        return None
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if ends(middle)[0] > most else (middle, above)
    return above


def seen_line(people: int | None, planned: int) -> str:
    """Return a sentence on the number of people from which on a word of a dictionary is called present.

    Parameters
    ----------
    people : int or None
        That number; None if not even all of those planned are enough.
    planned : int
        Number of people planned.
    """
    if people is None:
        return (
            f"A word that all {planned:,} people sent would not be seen: ask more people, offer a larger "
            "epsilon0, promise a larger number, or ask with a shorter list"
        )
    return (
        f"A word is called present from about {people:,} of {planned:,} people on, and from as many more as send other "
        "words of its cells"
    )


def words_to_json(question: SurveyQuestion, words: FoundWords) -> dict[str, Any]:
    """Return the keys of a dictionary's answer that say which words are present, and which may be.

    Parameters
    ----------
    question : SurveyQuestion
        The question.
    words : FoundWords
        Its words.
    """
    texts = [next(iter(choice.values())) for choice in question.choices]
    return {
        "present": [texts[word] for word in words.present],
        "possible": [
            {
                "word": texts[word],
                "not_told_from": [texts[other] for other in rivals],
            }
            for word, rivals in words.possible
        ],
        "further": words.further,
        "words": len(texts),
    }
