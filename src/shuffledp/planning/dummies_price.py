"""What dummies cost an estimate: their own variance, which is known, on top of that of people's reports.

The estimator subtracts the dummies' mean and divides by what people's reports say, so that the dummies add their
variance divided by the square of the same sum. A uniform dummy has the variance of a report at budget 0; of bits the
number of ones counts, which a discrete Laplace law keeps near its middle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shuffledp.ball import BallDummies
from shuffledp.budgets import Budgets
from shuffledp.dummies import WHOLE, Dummies, Uniform, check_dummies
from shuffledp.normal import NormalDummies
from shuffledp.planning.error import Moments, predict, reading
from shuffledp.randomizers.base import FrequencyOracle, NumberRandomizer

NOBODY = Moments(0.0, 0.0)
"""Records that are all at the low end, or of other categories: reports vary least, so dummies cost the most."""


@dataclass(frozen=True)
class DummiesPrice:
    """The standard error of an estimate without and with dummies.

    Parameters
    ----------
    without, total : float
        In the unit of the answer: with the same people and no dummies, and with them.
    """

    without: float
    total: float

    @property
    def factor(self) -> float:
        """By how much dummies widen the standard error; at least 1."""
        return self.total / self.without


def dummies_price(
    randomizer: FrequencyOracle | NumberRandomizer,
    budgets: Budgets,
    dummies: Dummies,
    moments: Moments = NOBODY,
    width: float = 1.0,
) -> DummiesPrice:
    """Predict what dummies cost the estimate of a share or of a mean whose reports do not show their budgets.

    Parameters
    ----------
    randomizer : RandomizedResponse, OneBit or HadamardResponse
        The question's family.
    budgets : Budgets
        Everybody's local budget; some budget is above 0.
    dummies : Uniform, DiscreteLaplace, OnesLaw, NormalDummies or BallDummies
        What the shuffler adds to this question.
    moments : Moments
        What is known of the records, scaled to [0, 1]; by default the ones at which dummies cost the most.
    width : float
        Width of the range of the answer, positive; 1 for a share.

    Raises
    ------
    InvalidInput
        If the dummies do not fit the family, or no report carries information.

    Examples
    --------
    >>> import shuffledp as sdp
    >>> people = sdp.Budgets([0.5, 1.0, 4.0], [540, 370, 90])
    >>> round(sdp.dummies_price(sdp.RandomizedResponse(5), people, sdp.Uniform(172)).factor, 2)
    1.1
    """
    check_dummies(randomizer, dummies)
    without = predict(randomizer, budgets, None, moments, width).standard_error
    law = reading(randomizer, budgets.epsilons, budgets.deltas).law
    told = math.fsum(budgets.counts * law.slope)
    of_one = float(reading(randomizer, np.zeros(1), np.zeros(1)).law.variance[0][0])
    added = width**2 * of_one * _in_dummies(dummies) / told**2
    return DummiesPrice(without, math.hypot(without, math.sqrt(added)))


def _in_dummies(dummies: Dummies) -> float:
    """Return the variance of the dummies' sum, in units of that of one uniform dummy: of a fair bit this is 1/4."""
    if isinstance(dummies, Uniform):
        return float(dummies.count)
    if isinstance(dummies, BallDummies):
        share = 1.0 / dummies.columns[0].cells
        return dummies.cell_variance(0) / (share * (1.0 - share))
    if isinstance(dummies, NormalDummies):
        share = 1.0 / dummies.answers
        return dummies.cell_variance / (share * (1.0 - share))
    spread = sum((2 * ones - dummies.count) ** 2 * weight for ones, weight in enumerate(dummies.weights))
    return spread / WHOLE
