"""The estimates as classes of the shape scikit-learn has made familiar: parameters, `fit`, trailing underscores.

`fit(X, epsilon0)` takes records in memory; `fit_table(table, column)` a file or dataframe, in batches. What is fitted
is a private release: it carries its guarantee, and every `fit` costs that guarantee again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.errors import InvalidInput
from shuffledp.guarantee import Guarantee
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.params import Parameters
from shuffledp.protocol.pipeline import estimate_frequency, estimate_mean
from shuffledp.protocol.release import Release
from shuffledp.protocol.tabular import RowBudgets, frequency_of_table, mean_of_table
from shuffledp.protocol.weights import Weights
from shuffledp.setting import Seen


class Fit(Protocol):
    """What every release has."""

    @property
    def guarantee(self) -> Guarantee:
        """The certified central guarantee."""
        ...

    @property
    def private(self) -> bool:
        """False if the noise came from a simulation."""
        ...

    @property
    def n(self) -> int:
        """Number of users."""
        ...


R = TypeVar("R", bound=Fit)


class Fitted(Parameters, Generic[R]):
    """What all of them have after `fit`."""

    release_: R

    @property
    def guarantee_(self) -> Guarantee:
        """The certified central guarantee of what was fitted."""
        return self.fitted().guarantee

    @property
    def private_(self) -> bool:
        """False if the noise came from a simulation."""
        return self.fitted().private

    @property
    def n_users_(self) -> int:
        """Number of users whose reports were counted."""
        return self.fitted().n

    def fitted(self) -> R:
        """Return the release.

        Raises
        ------
        InvalidInput
            If there is none yet.
        """
        if "release_" not in self.__dict__:
            raise InvalidInput(f"this {type(self).__name__} is not fitted yet; call fit or fit_table first")
        return self.release_


class FittedRelease(Fitted[Release]):
    """Those whose fit is a `Release`."""

    def confidence_interval(self, level: float = 0.95) -> tuple[float | FloatArray, float | FloatArray]:
        """Both ends of a confidence interval, see `Release.confidence_interval`.

        Parameters
        ----------
        level : float
            In (0, 1).
        """
        return self.fitted().confidence_interval(level)


class FrequencyEstimator(FittedRelease):
    """Private frequencies of categories.

    Parameters
    ----------
    categories : iterable, length k
        All possible labels, public.
    seen : {"reports", "levels"} or None
        Who sees what, as for `estimate_frequency`; None where there is one budget.
    delta : float
        Central delta, in (0, 1).
    mechanism : str
        As for `estimate_frequency`.
    weights : {"population", "precision"}
        How levels are combined when they are seen.
    random : Randomness, optional
        Default `secure_random()`.

    Attributes
    ----------
    frequencies_ : ndarray, shape (k,)
        Unbiased estimates, in the order of the categories.
    standard_error_ : ndarray, shape (k,)
        Their standard errors.
    guarantee_ : Guarantee
        What was fitted costs this much privacy.
    release_ : Release
        All of it.

    Examples
    --------
    >>> estimator = FrequencyEstimator(["yes", "no"], delta=1e-6).fit(["yes", "no"] * 500, epsilon0=2.0)
    >>> estimator.frequencies_.shape, estimator.n_users_
    ((2,), 1000)
    """

    def __init__(
        self,
        categories: Iterable[Hashable],
        *,
        delta: float,
        seen: Seen | None = None,
        mechanism: str = "krr",
        weights: Weights = "population",
        random: Randomness | None = None,
    ) -> None:
        self.categories = categories
        self.delta = delta
        self.seen: Seen | None = seen
        self.mechanism = mechanism
        self.weights: Weights = weights
        self.random = random

    @property
    def frequencies_(self) -> FloatArray:
        """Unbiased estimates, in the order of the categories."""
        return np.asarray(self.fitted().estimate)

    @property
    def standard_error_(self) -> FloatArray:
        """Their standard errors."""
        return np.asarray(self.fitted().standard_error)

    def fit(self, X: Any, y: Any = None, *, epsilon0: ArrayLike) -> Self:
        """Randomize, shuffle and count one label per user.

        Parameters
        ----------
        X : array_like, shape (n,) or (n, 1)
            The labels.
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
            As `estimate_frequency`.
        """
        del y
        self.release_ = estimate_frequency(
            one_column(X), self.categories, epsilon0, seen=seen_with(self.seen, epsilon0), delta=self.delta,
            mechanism=self.mechanism, weights=self.weights, random=self.random,
        )  # fmt: skip
        return self

    def fit_table(self, table: Any, column: str, *, epsilon0: float | str | RowBudgets) -> Self:
        """Count a column of a table of any length, see `frequency_of_table`.

        Parameters
        ----------
        table : str, Path or dataframe
            A file, or any dataframe.
        column : str
            The column with the labels.
        epsilon0 : float, str or RowBudgets
            One budget, a column of budgets, or a column of words with their meaning.

        Returns
        -------
        self
        """
        self.release_ = frequency_of_table(
            table, column, self.categories, epsilon0, seen=self.seen, delta=self.delta,
            mechanism=self.mechanism, weights=self.weights, random=self.random,
        )  # fmt: skip
        return self


class MeanEstimator(FittedRelease):
    """Private mean of a number in a known range.

    Parameters
    ----------
    low, high : float
        The range, public.
    seen : {"reports", "levels", "sum"} or None
        Who sees what, as for `estimate_mean`; None where there is one budget.
    delta : float
        Central delta, in (0, 1).
    mechanism : str
        As for `estimate_mean`.
    clip : bool
        Move values outside the range to its nearer end; else they are refused.
    weights : {"population", "precision"}
        How levels are combined when they are seen.
    random : Randomness, optional
        Default `secure_random()`.

    Attributes
    ----------
    mean_ : float
        Unbiased estimate.
    standard_error_ : float
        Its standard error.
    guarantee_ : Guarantee
        What was fitted costs this much privacy.
    release_ : Release
        All of it.

    Examples
    --------
    >>> MeanEstimator(0.0, 100.0, delta=1e-6).fit([20.0, 40.0] * 500, epsilon0=1.0).n_users_
    1000
    """

    def __init__(
        self,
        low: float,
        high: float,
        *,
        delta: float,
        seen: Seen | None = None,
        mechanism: str = "one-bit",
        clip: bool = False,
        weights: Weights = "population",
        random: Randomness | None = None,
    ) -> None:
        self.low = low
        self.high = high
        self.delta = delta
        self.seen: Seen | None = seen
        self.mechanism = mechanism
        self.clip = clip
        self.weights: Weights = weights
        self.random = random

    @property
    def mean_(self) -> float:
        """Unbiased estimate."""
        return float(self.fitted().estimate)

    @property
    def standard_error_(self) -> float:
        """Its standard error."""
        return float(self.fitted().standard_error)

    def fit(self, X: Any, y: Any = None, *, epsilon0: ArrayLike, delta0: ArrayLike = 0.0) -> Self:
        """Randomize, shuffle and average one number per user.

        Parameters
        ----------
        X : array_like, shape (n,) or (n, 1)
            The numbers.
        y : ignored
            For scikit-learn.
        epsilon0, delta0 : float or array_like, shape (n,)
            Local budgets, nats and probability; only Gaussian noise needs a delta0.

        Returns
        -------
        self

        Raises
        ------
        InvalidInput
            As `estimate_mean`.
        """
        del y
        self.release_ = estimate_mean(
            one_column(X), self.low, self.high, epsilon0, seen=seen_with(self.seen, epsilon0), delta=self.delta,
            mechanism=self.mechanism, clip=self.clip, weights=self.weights, delta0=delta0, random=self.random,
        )  # fmt: skip
        return self

    def fit_table(self, table: Any, column: str, *, epsilon0: float | str | RowBudgets) -> Self:
        """Average a column of a table of any length, see `mean_of_table`.

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
        self.release_ = mean_of_table(
            table, column, self.low, self.high, epsilon0, seen=self.seen, delta=self.delta,
            mechanism=self.mechanism, clip=self.clip, weights=self.weights, random=self.random,
        )  # fmt: skip
        return self


def one_column(X: Any) -> Any:
    """One entry per user; a table of one column is that column."""
    shape = getattr(X, "shape", None)
    if shape is None or len(shape) != 2:
        return X
    if shape[1] != 1:
        raise InvalidInput(f"X must have one column; got {shape[1]}; fit one estimator per column (each costs privacy)")
    return np.asarray(X)[:, 0]


def seen_with(seen: Seen | None, epsilon0: ArrayLike) -> Seen:
    """Who sees what; without a word only where there is one budget."""
    if seen is not None:
        return seen
    if np.unique(np.asarray(epsilon0)).size > 1:
        raise InvalidInput("there are different budgets, so say who sees what: seen = 'reports' or seen = 'levels'")
    return "reports"
