"""Histogram and quantiles as sklearn-shaped classes, see `shuffledp.protocol.estimators`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.protocol.estimators import Fitted, FittedRelease, one_column, seen_with
from shuffledp.protocol.histogram import Bins, estimate_histogram
from shuffledp.protocol.quantiles import RangeRelease, estimate_quantiles
from shuffledp.protocol.tabular import RowBudgets
from shuffledp.protocol.tabular_ranges import histogram_of_table, quantiles_of_table
from shuffledp.protocol.weights import Weights
from shuffledp.setting import Seen


class HistogramEstimator(FittedRelease):
    """Private histogram of a number in a known range.

    Parameters
    ----------
    low, high : float
        The range, public.
    bins : int
        Number of bins of equal width, public.
    seen : {"reports", "levels"} or None
        Who sees what, as for `estimate_histogram`; None where there is one budget.
    delta : float
        Central delta, in (0, 1).
    mechanism : str
        As for `histogram_of_table`.
    clip : bool
        Move values outside the range to its nearer end; else they are refused.
    weights : {"population", "precision"}
        How levels are combined when they are seen.
    random : Randomness, optional
        Default `secure_random()`.

    Attributes
    ----------
    frequencies_ : ndarray, shape (bins,)
        Unbiased estimates of the fraction in each bin.
    standard_error_ : ndarray, shape (bins,)
        Their standard errors.
    bin_edges_ : ndarray, shape (bins + 1,)
        The public edges.
    guarantee_ : Guarantee
        What was fitted costs this much privacy.
    release_ : Release
        All of it.

    Examples
    --------
    >>> fitted = HistogramEstimator(0, 100, bins=4, delta=1e-6).fit([20.0, 40.0] * 500, epsilon0=2.0)
    >>> fitted.frequencies_.shape, fitted.bin_edges_.tolist()
    ((4,), [0.0, 25.0, 50.0, 75.0, 100.0])
    """

    def __init__(
        self,
        low: float,
        high: float,
        *,
        bins: int,
        delta: float,
        seen: Seen | None = None,
        mechanism: str = "subset",
        clip: bool = False,
        weights: Weights = "population",
        random: Randomness | None = None,
    ) -> None:
        self.low = low
        self.high = high
        self.bins = bins
        self.delta = delta
        self.seen: Seen | None = seen
        self.mechanism = mechanism
        self.clip = clip
        self.weights: Weights = weights
        self.random = random

    @property
    def frequencies_(self) -> FloatArray:
        """Unbiased estimates of the fraction in each bin."""
        return np.asarray(self.fitted().estimate)

    @property
    def standard_error_(self) -> FloatArray:
        """Their standard errors."""
        return np.asarray(self.fitted().standard_error)

    @property
    def bin_edges_(self) -> FloatArray:
        """The public edges."""
        self.fitted()
        return Bins(self.low, self.high, self.bins).edges

    def fit(self, X: Any, y: Any = None, *, epsilon0: ArrayLike) -> Self:
        """Randomize, shuffle and count one number per user.

        Parameters
        ----------
        X : array_like, shape (n,) or (n, 1)
            The numbers.
        y : ignored
            For scikit-learn.
        epsilon0 : float or array_like, shape (n,)
            Local budgets, nats.

        Returns
        -------
        self

        Raises
        ------
        InvalidInput
            As `estimate_histogram`.
        """
        del y
        self.release_ = estimate_histogram(
            one_column(X), self.low, self.high, self.bins, epsilon0, seen=seen_with(self.seen, epsilon0),
            delta=self.delta, mechanism=self.mechanism, clip=self.clip, weights=self.weights, random=self.random,
        )  # fmt: skip
        return self

    def fit_table(self, table: Any, column: str, *, epsilon0: float | str | RowBudgets) -> Self:
        """Count a column of a table of any length, see `histogram_of_table`.

        Parameters
        ----------
        table : str, Path or dataframe
            A file, or any dataframe.
        column : str
            The column with the numbers.
        epsilon0 : float, str or RowBudgets
            One budget, a column of budgets, or a column of words with their meaning.

        Returns
        -------
        self
        """
        self.release_ = histogram_of_table(
            table, column, self.low, self.high, self.bins, epsilon0, seen=self.seen, delta=self.delta,
            mechanism=self.mechanism, clip=self.clip, weights=self.weights, random=self.random,
        )  # fmt: skip
        return self


class QuantileEstimator(Fitted[RangeRelease]):
    """Private quantiles of a number in a known range.

    Parameters
    ----------
    low, high : float
        The range, public.
    probabilities : float or array_like
        Which quantiles, in (0, 1): 0.5 is the median.
    bins : int
        Number of bins of equal width, public; quantiles are told to a bin.
    seen : {"reports", "levels"} or None
        Who sees what, as for `estimate_quantiles`; None where there is one budget.
    delta : float
        Central delta, in (0, 1).
    branching : int
        Children of a node of the tree of ranges.
    clip : bool
        Move values outside the range to its nearer end; else they are refused.
    weights : {"population", "precision"}
        How levels are combined when they are seen.
    random : Randomness, optional
        Default `secure_random()`.

    Attributes
    ----------
    quantiles_ : ndarray
        Estimates, in the order of the probabilities.
    guarantee_ : Guarantee
        What was fitted costs this much privacy.
    release_ : RangeRelease
        All of it; ``release_.distribution`` tells every range.

    Examples
    --------
    >>> fitted = QuantileEstimator(0, 100, [0.25, 0.5], bins=50, delta=1e-6).fit([20.0, 40.0] * 500, epsilon0=2.0)
    >>> fitted.quantiles_.shape, fitted.n_users_
    ((2,), 1000)
    """

    def __init__(
        self,
        low: float,
        high: float,
        probabilities: ArrayLike = (0.25, 0.5, 0.75),
        *,
        bins: int,
        delta: float,
        seen: Seen | None = None,
        branching: int = 4,
        clip: bool = False,
        weights: Weights = "population",
        random: Randomness | None = None,
    ) -> None:
        self.low = low
        self.high = high
        self.probabilities = probabilities
        self.bins = bins
        self.delta = delta
        self.seen: Seen | None = seen
        self.branching = branching
        self.clip = clip
        self.weights: Weights = weights
        self.random = random

    @property
    def quantiles_(self) -> FloatArray:
        """Estimates, in the order of the probabilities."""
        return self.fitted().estimate

    def confidence_interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Both ends of a confidence interval for each quantile by itself, see `RangeRelease.confidence_interval`.

        Parameters
        ----------
        level : float
            In (0, 1).
        """
        return self.fitted().confidence_interval(level)

    def fit(self, X: Any, y: Any = None, *, epsilon0: ArrayLike) -> Self:
        """Randomize, shuffle and rank one number per user.

        Parameters
        ----------
        X : array_like, shape (n,) or (n, 1)
            The numbers.
        y : ignored
            For scikit-learn.
        epsilon0 : float or array_like, shape (n,)
            Local budgets, nats.

        Returns
        -------
        self

        Raises
        ------
        InvalidInput
            As `estimate_quantiles`.
        """
        del y
        self.release_ = estimate_quantiles(
            one_column(X), self.low, self.high, self.probabilities, epsilon0, seen=seen_with(self.seen, epsilon0),
            bins=self.bins, delta=self.delta, branching=self.branching, clip=self.clip, weights=self.weights,
            random=self.random,
        )  # fmt: skip
        return self

    def fit_table(self, table: Any, column: str, *, epsilon0: float | str | RowBudgets) -> Self:
        """Rank a column of a table of any length, see `quantiles_of_table`.

        Parameters
        ----------
        table : str, Path or dataframe
            A file, or any dataframe.
        column : str
            The column with the numbers.
        epsilon0 : float, str or RowBudgets
            One budget, a column of budgets, or a column of words with their meaning.

        Returns
        -------
        self
        """
        self.release_ = quantiles_of_table(
            table, column, self.low, self.high, self.probabilities, epsilon0, seen=self.seen, bins=self.bins,
            delta=self.delta, branching=self.branching, clip=self.clip, weights=self.weights, random=self.random,
        )  # fmt: skip
        return self
