"""Releases of questions whose answer is more than one number an entry: quantiles, and items that were searched for."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InvalidInput
from shuffledp.numerics.interval import FloatArray
from shuffledp.protocol.item_questions import FrequentItems
from shuffledp.protocol.items import ItemsEstimate
from shuffledp.protocol.number_questions import Quantiles
from shuffledp.protocol.questions import Question
from shuffledp.protocol.ranges import RangeEstimate
from shuffledp.protocol.released import Release


@dataclass(frozen=True, eq=False, repr=False)
class RangeRelease(Release):
    """Private quantiles, and all ranges besides, with their central guarantee.

    Parameters
    ----------
    question, analysis, guarantee, n, rows, mechanism, private, weights, unit, clipped, fingerprint
        As for `Release`; the question is `Quantiles`.
    """

    @property
    def distribution(self) -> RangeEstimate:
        """Fractions of all ranges of bins."""
        return self.analysis

    @property
    def edges(self) -> FloatArray:
        """Edges of the bins, public, shape (bins + 1,)."""
        return self._asked.grid.edges

    @property
    def probabilities(self) -> FloatArray:
        """Which quantiles were asked for, shape (quantiles,)."""
        return np.array(self._asked.at)

    @property
    def estimate(self) -> FloatArray:
        """The quantiles, in the order of `probabilities`."""
        return self.distribution.quantiles(self.probabilities, self.edges)

    @property
    def standard_error(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """None: the error of a quantile is told by its interval."""
        return None

    def confidence_interval(self, level: float = 0.95, *, simultaneous: bool = False) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends, edges of bins, see `RangeEstimate.quantile_interval`.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).
        simultaneous : bool
            Whether all quantiles hold together with that confidence (each is then asked for at the level
            1 - (1 - level)/quantiles); else each holds by itself.

        Raises
        ------
        InvalidInput
            If level is not in (0, 1).
        """
        if not 0.0 < level < 1.0:
            raise InvalidInput(f"a confidence level must lie in (0, 1); got {level}")
        each = 1.0 - (1.0 - level) / self.probabilities.size if simultaneous else level
        return self.distribution.quantile_interval(self.probabilities, self.edges, each)

    @property
    def _asked(self) -> Quantiles:
        assert isinstance(self.question, Quantiles)
        return self.question

    def _index(self) -> dict[str, Any]:
        return {"probability": self.probabilities}


@dataclass(frozen=True, eq=False, repr=False)
class ItemsRelease(Release):
    """The items that are frequent, the most frequent first, with their central guarantee.

    Parameters
    ----------
    question, analysis, guarantee, n, rows, mechanism, private, weights, unit, clipped, fingerprint
        As for `Release`; the question is `FrequentItems`.
    """

    @property
    def tried(self) -> ItemsEstimate:
        """The estimates of all items that were tried at the last level, named or not."""
        return self.analysis

    @property
    def categories(self) -> tuple[Hashable, ...]:
        """The items that are named, in the order of `estimate`; empty if none is."""
        items, listed = self.tried.items, self._asked.candidates
        return tuple(items[place] if listed is None else listed[place] for place in self._named)

    @property
    def estimate(self) -> FloatArray:
        """Their shares, shape (items,)."""
        return self.tried.value[self._named]

    @property
    def standard_error(self) -> FloatArray:
        """Standard errors of `estimate`, shape (items,)."""
        return self.tried.standard_error[self._named]

    def confidence_interval(self, level: float = 0.95, *, simultaneous: bool = True) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends, shape (items,), which hold all together although the items were chosen by the data.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).
        simultaneous : bool
            Not looked at.

        Raises
        ------
        InvalidInput
            If level is not in (0, 1).
        """
        return self.tried.at(self._named).confidence_interval(level, simultaneous)

    @cached_property
    def threshold(self) -> float:
        """The estimated share above which an item is named."""
        return self.tried.threshold(self._asked.false_positives)

    @cached_property
    def finds(self) -> float:
        """The smallest share of an item that is found with a chance of 95 %; above 1 if there are too few people."""
        return self.tried.finds(self._asked.false_positives)

    @cached_property
    def _named(self) -> NDArray[np.intp]:
        return self.tried.named(self._asked.false_positives)

    @property
    def _asked(self) -> FrequentItems:
        assert isinstance(self.question, FrequentItems)
        return self.question

    def _index(self) -> dict[str, Any]:
        return {"label": [str(label) for label in self.categories]}


def release_type(question: Question) -> type[Release]:
    """Return the class of the release that answers a question."""
    known = {Quantiles: RangeRelease, FrequentItems: ItemsRelease}
    return next((kind for asked, kind in known.items() if isinstance(question, asked)), Release)
