"""Every score of a report that is learned from two samples: of its value, of its numbers, of its digits."""

from __future__ import annotations

import numpy as np

from shuffledp.audit.digits import digit_scores
from shuffledp.audit.reports import Reports
from shuffledp.audit.scores import (
    Score,
    binned_score,
    counted_score,
    linear_score,
    naive_score,
    rank_columns,
    value_score,
)

_TOP_COLUMNS = (1, 2, 4, 16)
_MOST_LINEAR = 64


def fit_scores(first: Reports, second: Reports) -> list[Score]:
    """Learn scores that separate two samples of reports.

    Parameters
    ----------
    first, second : Reports
        Reports of the one record and of the other, at least one each.
    """
    scores = counted_score(first, second)
    width = first.columns.shape[1]
    if width == 0:
        return scores
    scores.append(value_score())
    if width == 1:
        return [*scores, binned_score(first, second), *digit_scores(first, second)]
    means = [part.columns.mean(axis=0, dtype=np.float64) for part in (first, second)]
    variances = [part.columns.var(axis=0, dtype=np.float64) / part.n for part in (first, second)]
    ranked = rank_columns((means[0], means[1]), (variances[0], variances[1]))
    scores += [naive_score(first, second, ranked[:most]) for most in _TOP_COLUMNS if most <= ranked.size]
    if 2 <= ranked.size <= _MOST_LINEAR:
        scores.append(linear_score(first, second, ranked))
    return scores + digit_scores(first, second)
