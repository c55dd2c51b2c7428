"""Counts and sums: shares and means times the number of records, which is public."""

from __future__ import annotations

from dataclasses import dataclass

from shuffledp.numerics.interval import FloatArray


@dataclass(frozen=True, eq=False)
class Amounts:
    """Counts of records, or sums over them, with their intervals.

    Parameters
    ----------
    estimate : float or ndarray
        Unbiased where the share or mean is, so it may leave the possible range.
    standard_error : float or ndarray
        In the shape of `estimate`.
    low, high : float or ndarray
        Ends of the confidence interval, in the shape of `estimate`.
    records : int
        How many records are counted, or added up.

    Examples
    --------
    >>> Amounts.scaled(0.25, 0.05, (0.15, 0.35), 200).estimate
    50.0
    """

    estimate: float | FloatArray
    standard_error: float | FloatArray
    low: float | FloatArray
    high: float | FloatArray
    records: int

    @classmethod
    def scaled(
        cls,
        estimate: float | FloatArray,
        standard_error: float | FloatArray,
        interval: tuple[float | FloatArray, float | FloatArray],
        records: int,
    ) -> Amounts:
        """Multiply a share or a mean by the number of records.

        Parameters
        ----------
        estimate, standard_error : float or ndarray
            Of the share or the mean.
        interval : tuple of float or ndarray
            Both ends of its interval.
        records : int
            How many records there are; public, so nothing of it is estimated, and the level of the interval stays.
        """
        low, high = interval
        return cls(estimate * records, standard_error * records, low * records, high * records, records)
