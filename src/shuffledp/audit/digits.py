"""Scores of how a float is written: its single bits, and its last one that is not 0.

Two floats that compare as equal may differ (0.0 and -0.0), and noise added in floating point leaves in the last digits
which record it was added to (Mironov 2012). The attacker sees the bytes, so these scores read the bytes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shuffledp.audit.reports import Reports
from shuffledp.audit.result import Cut
from shuffledp.audit.scores import SHOWN, Score, bin_column, rank_columns, stretches
from shuffledp.numerics.interval import FloatArray

MOST_NUMBERS = 8
"""Numbers of a report whose digits are read."""
_TOP_BITS = (1, 8)
_NO_LAST_BIT = 4096.0
"""Stands for the place of the last bit of 0 and of what is not finite; above every other place."""


def digit_scores(first: Reports, second: Reports) -> list[Score]:
    """Learn scores of the bytes of reports that are floats; none for other reports.

    Parameters
    ----------
    first, second : Reports
        Reports of the one record and of the other, at least one each.
    """
    words = [_words(part) for part in (first, second)]
    if words[0] is None or words[1] is None:
        return []
    places = [last_bits(part) for part in (first, second)]
    scores = [_place_score(places[0], places[1], column) for column in range(places[0].shape[1])]
    means = [_means(part) for part in words if part is not None]
    spreads = [mean * (1.0 - mean) / part.n for mean, part in zip(means, (first, second), strict=True)]
    ranked = rank_columns((means[0], means[1]), (spreads[0], spreads[1]))
    return scores + [_bit_score(means, ranked[:most]) for most in _TOP_BITS if most <= ranked.size]


def last_bits(reports: Reports) -> FloatArray:
    """Exponent of the last bit that is not 0 of the first numbers of each report: -2 for 0.75 = 2^-1 + 2^-2.

    Parameters
    ----------
    reports : Reports
        Floats.

    Returns
    -------
    ndarray, shape (n, numbers)
        4096 for 0, infinities and NaN.
    """
    numbers = _numbers(reports).astype(np.float64)
    finite = np.isfinite(numbers) & (numbers != 0.0)
    fraction, exponent = np.frexp(np.where(finite, np.abs(numbers), 1.0))
    whole = np.ldexp(fraction, 53).astype(np.int64)
    last = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return np.where(finite, (exponent - 53 + last).astype(np.float64), _NO_LAST_BIT)


def _numbers(reports: Reports) -> NDArray[np.floating]:
    return reports.raw.reshape(reports.n, -1)[:, :MOST_NUMBERS]


def _words(reports: Reports) -> NDArray[np.unsignedinteger] | None:
    """Return the bytes of floats as unsigned integers of their size; None for other reports."""
    if reports.raw.dtype.kind != "f" or reports.raw.dtype.itemsize > 8:
        return None
    numbers = np.ascontiguousarray(_numbers(reports))
    return numbers.view(f"u{numbers.dtype.itemsize}")


def _bit(words: NDArray[np.unsignedinteger], column: int) -> NDArray[np.bool_]:
    """Bit `column` of each row, the lowest bit of the first number first."""
    number, bit = divmod(column, 8 * words.dtype.itemsize)
    return (words[:, number] >> words.dtype.type(bit)) & words.dtype.type(1) != 0


def _means(words: NDArray[np.unsignedinteger]) -> FloatArray:
    """Share of ones of each bit."""
    columns = words.shape[1] * 8 * words.dtype.itemsize
    return np.array([np.count_nonzero(_bit(words, column)) / max(words.shape[0], 1) for column in range(columns)])


def _bit_score(means: list[FloatArray], chosen: NDArray[np.int64]) -> Score:
    """Sum of the likelihood ratios of single bits, each bit's chances kept away from 0 and 1."""
    chances = [np.clip(mean[chosen], 1e-4, 1.0 - 1e-4) for mean in means]
    ones = np.log(chances[0]) - np.log(chances[1])
    zeros = np.log1p(-chances[0]) - np.log1p(-chances[1])

    def values(reports: Reports) -> FloatArray:
        words = _words(reports)
        total = np.zeros(reports.n)
        if words is not None:
            for j, one, zero in zip(chosen.tolist(), ones, zeros, strict=True):
                total += np.where(_bit(words, j), one, zero)
        return total

    named = f"bit{'s' if chosen.size > 1 else ''} {', '.join(map(str, np.sort(chosen)))} of the report's bytes"
    return Score(named, values, lambda cut: f"the log-likelihood ratio of {named} {cut.words}")


def _place_score(first: FloatArray, second: FloatArray, column: int) -> Score:
    """Likelihood ratio of the place of the last bit of one number."""
    known = np.unique(np.concatenate((first[:, column], second[:, column])))
    edges, table = bin_column(first[:, column], second[:, column], known.size)

    def values(reports: Reports) -> FloatArray:
        return table[np.searchsorted(edges, last_bits(reports)[:, column], side="right")]

    def words(cut: Cut) -> str:
        parts = [_stretch(known[i], known[j - 1]) for i, j in stretches(cut.hits(table))]
        more = f" or at one of {len(parts) - SHOWN} more places" if len(parts) > SHOWN else ""
        return f"the last binary digit of {which} is {', or '.join(parts[:SHOWN])}{more}"

    which = "the report" if first.shape[1] == 1 else f"number {column} of the report"
    return Score(f"the last binary digit of {which}", values, words)


def _stretch(low: float, high: float) -> str:
    ends = [f"2^{end:.0f}" if end < _NO_LAST_BIT else "none (zero, or no number)" for end in (low, high)]
    return ends[0] if low == high else f"{ends[0]} to {ends[1]}"
