"""What may leave the house: an estimate and its guarantee, never one without the other."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from shuffledp.guarantee import Guarantee
from shuffledp.numerics.interval import FloatArray
from shuffledp.protocol.estimate import Estimate
from shuffledp.protocol.weights import Weights


@dataclass(frozen=True, eq=False)
class Release:
    """A private estimate with its central guarantee.

    Parameters
    ----------
    analysis : Estimate
        The analyzer's answer.
    guarantee : Guarantee
        The certified central guarantee, computed before a record was touched.
    n : int
        Number of users.
    mechanism : str
        The randomizer's name, such as ``"krr:5"`` or ``"one-bit"``.
    private : bool
        False if the noise came from `simulation_random`: then nothing here is private.
    weights : {"population", "precision"} or None
        How levels were combined; None where they were withheld (budget-weighted).
    categories : tuple or None
        The categories in the order of `estimate`; None for a mean.
    """

    analysis: Estimate = field(repr=False)
    guarantee: Guarantee = field(repr=False)
    n: int
    mechanism: str
    private: bool
    weights: Weights | None = None
    categories: tuple[Hashable, ...] | None = None

    @property
    def estimate(self) -> float | FloatArray:
        """The mean, a float, or the frequencies, shape (k,); unbiased, so it may leave the possible range."""
        return _plain(self.analysis.value)

    @property
    def standard_error(self) -> float | FloatArray:
        """Standard error of `estimate`, in its shape, from the reports alone (see `protocol.analyzers`)."""
        return _plain(self.analysis.standard_error)

    @property
    def uninformative(self) -> int:
        """Users whose report carries no information (epsilon0 = 0); they are taken to be like the others."""
        return self.analysis.uninformative

    def confidence_interval(self, level: float = 0.95) -> tuple[float | FloatArray, float | FloatArray]:
        """Lower and upper end, each in the shape of `estimate`; for each category by itself.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Raises
        ------
        InvalidInput
            If level is not in (0, 1).
        """
        lower, upper = self.analysis.confidence_interval(level)
        return _plain(lower), _plain(upper)


def _plain(value: FloatArray) -> float | FloatArray:
    return float(value) if value.ndim == 0 else value
