"""The questions as estimator classes in the style of scikit-learn: parameters, `fit`, attributes such as `mean_`.

`fit(X, budgets=...)` takes records in memory; `fit_table(table, column, budgets=...)` takes a file or dataframe, in
batches. The fitted result is a private release with its guarantee, and every `fit` spends that guarantee again.
"""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Sequence
from dataclasses import MISSING
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.errors import InvalidInput
from shuffledp.numerics.floats import FloatArray
from shuffledp.params import Parameters, renamed
from shuffledp.questions.frequency import Frequency
from shuffledp.questions.items import FrequentItems
from shuffledp.questions.mean import Mean
from shuffledp.questions.question import Question
from shuffledp.questions.ranges import Histogram, Quantiles
from shuffledp.questions.variance import Variance
from shuffledp.questions.vectors import VectorMean
from shuffledp.records.people import RowBudgets
from shuffledp.releases.keywords import OF_GROUPS, asked_by_keyword
from shuffledp.releases.release import Release
from shuffledp.releases.terms import options
from shuffledp.releases.wrappers import in_memory
from shuffledp.setting import Guarantee

_OF_FIT = ("question", "value", "data", "budgets", "person", *OF_GROUPS)
"""Fields that `fit` sets, or that the classes do not accept."""


def _options() -> dict[str, Any]:
    """Return the keyword parameters that every class has besides the fields of its question, with their defaults."""
    taken = [each for each in options().values() if each.name not in _OF_FIT]
    defaults = {each.name: each.default for each in sorted(taken, key=lambda each: each.default is not MISSING)}
    return {name: inspect.Parameter.empty if default is MISSING else default for name, default in defaults.items()}


class QuestionEstimator(Parameters):
    """Base of the estimator classes; parameters are the fields of the question and the options of `release`.

    Attributes
    ----------
    release_ : Release
        The release that `fit` made.
    estimate_, standard_error_
        Answer and standard error, see `Release`.
    guarantee_ : Guarantee
        The certified guarantee of the release.
    private_ : bool
        False if the noise came from a simulation.
    n_users_ : int
        Number of users whose reports were counted.
    """

    ask: ClassVar[type[Question]]
    release_: Release

    def __init_subclass__(cls) -> None:
        """Set the signature of the class from the fields of its question and the options of `release`."""
        keyword = inspect.Parameter.KEYWORD_ONLY
        fields = inspect.signature(cls.ask).parameters.values()
        besides = [inspect.Parameter(name, keyword, default=default) for name, default in _options().items()]
        cls.__signature__ = inspect.Signature([*fields, *besides])  # type: ignore[attr-defined]

    def __init__(self, *args: Any, **options: Any) -> None:
        try:
            given = inspect.signature(type(self)).bind(*args, **options)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}() {error}") from None
        given.apply_defaults()
        for name, value in given.arguments.items():
            setattr(self, name, value)

    @renamed({"epsilon0": "budgets"})
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        budgets: ArrayLike | None = None,
        delta0: ArrayLike = 0.0,
        person: ArrayLike | None = None,
    ) -> Self:
        """Ask the question of records in memory.

        Parameters
        ----------
        X : array_like, shape (n,) or (n, 1); of vectors shape (n, d)
            The records.
        y : ignored
            Accepted for compatibility with scikit-learn.
        budgets, delta0 : float or array_like, shape (n,)
            Local budgets, nats and probability; only Gaussian noise needs a delta0. None with `target_epsilon`.
        person : array_like, shape (n,), optional
            The owner of each record; without it each record is taken as a person's only one.

        Returns
        -------
        self

        Raises
        ------
        InvalidInput
            As for `release`.
        """
        del y
        records = X if issubclass(self.ask, VectorMean) else one_column(X)
        self.release_ = in_memory(self._question(), records, budgets, self._options() | {"person": person}, delta0)
        return self

    @renamed({"epsilon0": "budgets"})
    def fit_table(
        self,
        table: Any,
        column: str | Sequence[str],
        *,
        budgets: float | str | RowBudgets | None = None,
        person: str | None = None,
    ) -> Self:
        """Ask the question of a column of a table of any length.

        Parameters
        ----------
        table : str, Path or dataframe
            A file, or any dataframe.
        column : str or sequence of str
            The column with the records; one column for each coordinate of a vector.
        budgets : float, str or RowBudgets, optional
            One budget (nats), the name of a column of budgets, or a column of words with their budgets; None with
            `target_epsilon`.
        person : str, optional
            The column with the owner of each row.

        Returns
        -------
        self

        Raises
        ------
        InvalidInput
            As for `release`.
        """
        own = {"value": column, "budgets": budgets, "person": person}
        self.release_ = asked_by_keyword(
            f"{type(self).__name__}.fit_table", self._question(), table, self._options() | own
        )
        return self

    def _question(self) -> Question:
        return self.ask(**{name: getattr(self, name) for name in inspect.signature(self.ask).parameters})

    def _options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _options()}

    def fitted(self) -> Release:
        """Return the release that `fit` made.

        Raises
        ------
        InvalidInput
            If the estimator is not fitted.
        """
        if "release_" not in self.__dict__:
            raise InvalidInput(f"this {type(self).__name__} is not fitted yet; call fit or fit_table first")
        return self.release_

    def confidence_interval(self, level: float = 0.95) -> tuple[float | FloatArray, float | FloatArray]:
        """Return both ends of a confidence interval, see `Release.confidence_interval`.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).
        """
        return self.fitted().confidence_interval(level)

    @property
    def estimate_(self) -> float | FloatArray:
        """The answer, see `Release.estimate`."""
        return self.fitted().estimate

    @property
    def standard_error_(self) -> float | FloatArray:
        """Standard error of the answer, in its shape."""
        return self.fitted().standard_error

    @property
    def guarantee_(self) -> Guarantee:
        """The certified central guarantee of the release."""
        return self.fitted().guarantee

    @property
    def private_(self) -> bool:
        """False if the noise came from a simulation, so that nothing is private."""
        return self.fitted().private

    @property
    def n_users_(self) -> int:
        """Number of users whose reports were counted."""
        return self.fitted().n


class FrequencyEstimator(QuestionEstimator):
    """Estimator of private frequencies of categories, with the parameters of `Frequency` and the options of `release`.

    Examples
    --------
    >>> estimator = FrequencyEstimator(["yes", "no"], delta=1e-6).fit(["yes", "no"] * 500, budgets=2.0)
    >>> estimator.frequencies_.shape, estimator.n_users_
    ((2,), 1000)
    """

    ask = Frequency

    @property
    def frequencies_(self) -> FloatArray:
        """Unbiased estimates of the shares, in the order of the categories."""
        return np.asarray(self.estimate_)


class MeanEstimator(QuestionEstimator):
    """Estimator of the private mean of a number in a known range, with the parameters of `Mean` and of `release`.

    Examples
    --------
    >>> MeanEstimator(0.0, 100.0, delta=1e-6).fit([20.0, 40.0] * 500, budgets=1.0).n_users_
    1000
    """

    ask = Mean

    @property
    def mean_(self) -> float:
        """The unbiased estimate of the mean."""
        return float(self.estimate_)


class VarianceEstimator(QuestionEstimator):
    """Estimator of the private variance of a number in a known range, with parameters of `Variance` and of `release`.

    Examples
    --------
    >>> VarianceEstimator(0.0, 100.0, delta=1e-6).fit([20.0, 40.0] * 500, budgets=1.0).n_users_
    1000
    """

    ask = Variance

    @property
    def variance_(self) -> float:
        """The estimate of the variance."""
        return float(self.estimate_)


class HistogramEstimator(QuestionEstimator):
    """Estimator of a private histogram of a number in a known range, with parameters of `Histogram` and `release`.

    Examples
    --------
    >>> fitted = HistogramEstimator(0, 100, bins=4, delta=1e-6).fit([20.0, 40.0] * 500, budgets=1.0)
    >>> fitted.frequencies_.shape, fitted.bin_edges_.tolist()
    ((4,), [0.0, 25.0, 50.0, 75.0, 100.0])
    """

    ask = Histogram

    @property
    def frequencies_(self) -> FloatArray:
        """Unbiased estimates of the bins' shares, shape (bins,)."""
        return np.asarray(self.estimate_)

    @property
    def bin_edges_(self) -> FloatArray:
        """Edges of the bins, shape (bins + 1,)."""
        question = self.fitted().question
        assert isinstance(question, Histogram)
        return question.grid.edges


class QuantileEstimator(QuestionEstimator):
    """Estimator of private quantiles of a number in a known range, with parameters of `Quantiles` and `release`.

    Examples
    --------
    >>> fitted = QuantileEstimator(0, 100, [0.5], bins=8, delta=1e-6).fit([20.0, 40.0] * 500, budgets=1.0)
    >>> fitted.quantiles_.shape
    (1,)
    """

    ask = Quantiles

    @property
    def quantiles_(self) -> FloatArray:
        """The estimated quantiles, in the order of `at`."""
        return np.asarray(self.estimate_)


class VectorMeanEstimator(QuestionEstimator):
    """Estimator of the private mean of vectors of bounded norm, with parameters of `VectorMean` and `release`.

    Examples
    --------
    >>> VectorMeanEstimator(2, 1.0, delta=1e-6).fit([[0.5, 0.5]] * 1000, budgets=1.0).mean_.shape
    (2,)
    """

    ask = VectorMean

    @property
    def mean_(self) -> FloatArray:
        """Unbiased estimate of the mean, shape (dimension,)."""
        return np.asarray(self.estimate_)


class FrequentItemsEstimator(QuestionEstimator):
    """Estimator of the frequent items among the records, with parameters of `FrequentItems` and of `release`.

    Examples
    --------
    >>> estimator = FrequentItemsEstimator(max_length=3, alphabet="upper", delta=1e-6)
    >>> estimator.fit(["ORD"] * 600 + ["ATL"] * 400, budgets=8.0).items_[:2]  # with chance .05 a false one follows
    ('ORD', 'ATL')
    """

    ask = FrequentItems

    @property
    def items_(self) -> tuple[Hashable, ...]:
        """The items that are named, the most frequent first."""
        return self.fitted().categories or ()

    @property
    def frequencies_(self) -> FloatArray:
        """Estimated shares of `items_`, which were unbiased before the items were selected."""
        return np.asarray(self.estimate_)


def one_column(X: Any) -> Any:
    """Return one entry per user; a table with one column becomes that column."""
    shape = getattr(X, "shape", None)
    if shape is None or len(shape) != 2:
        return X
    if shape[1] != 1:
        raise InvalidInput(f"X must have one column; got {shape[1]}; fit one estimator per column (each costs privacy)")
    return np.asarray(X)[:, 0]
