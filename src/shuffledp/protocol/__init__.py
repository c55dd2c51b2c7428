"""From records to a release: a question is asked, reports are randomized and counted, and an estimate is released."""

from __future__ import annotations

from shuffledp.protocol.amounts import Amounts
from shuffledp.protocol.asking import release
from shuffledp.protocol.by_group import GroupedRelease, release_by
from shuffledp.protocol.differences import Difference, difference
from shuffledp.protocol.estimate import Estimate
from shuffledp.protocol.estimators import (
    FrequencyEstimator,
    FrequentItemsEstimator,
    HistogramEstimator,
    MeanEstimator,
    QuantileEstimator,
    VarianceEstimator,
    VectorMeanEstimator,
)
from shuffledp.protocol.frequencies import FrequencyTally, frequency
from shuffledp.protocol.item_questions import FrequentItems
from shuffledp.protocol.items import ItemTally
from shuffledp.protocol.means import MeanTally, mean
from shuffledp.protocol.number_questions import Histogram, Mean, Quantiles, Variance
from shuffledp.protocol.people import RowBudgets
from shuffledp.protocol.questions import Frequency, Question, VectorMean
from shuffledp.protocol.release_kinds import ItemsRelease, RangeRelease
from shuffledp.protocol.released import Release
from shuffledp.protocol.running import Ask
from shuffledp.protocol.several import JointRelease, release_together
from shuffledp.protocol.shuffler import ShuffledReports, shuffle_reports
from shuffledp.protocol.simplex import project_to_simplex
from shuffledp.protocol.table_wrappers import (
    frequency_of_table,
    frequent_items_of_table,
    histogram_of_table,
    mean_of_table,
    quantiles_of_table,
    variance_of_table,
)
from shuffledp.protocol.tally import Tally, Task, level_indices, tally_for, tally_from_state
from shuffledp.protocol.variances import VarianceTally
from shuffledp.protocol.vectors import VectorTally
from shuffledp.protocol.wrappers import (
    estimate_frequency,
    estimate_frequent_items,
    estimate_histogram,
    estimate_mean,
    estimate_quantiles,
    estimate_variance,
    estimate_vector_mean,
)

__all__ = [
    "Amounts",
    "Ask",
    "Difference",
    "Estimate",
    "Frequency",
    "FrequencyEstimator",
    "FrequencyTally",
    "FrequentItems",
    "FrequentItemsEstimator",
    "GroupedRelease",
    "Histogram",
    "HistogramEstimator",
    "ItemTally",
    "ItemsRelease",
    "JointRelease",
    "Mean",
    "MeanEstimator",
    "MeanTally",
    "QuantileEstimator",
    "Quantiles",
    "Question",
    "RangeRelease",
    "Release",
    "RowBudgets",
    "ShuffledReports",
    "Tally",
    "Task",
    "Variance",
    "VarianceEstimator",
    "VarianceTally",
    "VectorMean",
    "VectorMeanEstimator",
    "VectorTally",
    "difference",
    "estimate_frequency",
    "estimate_frequent_items",
    "estimate_histogram",
    "estimate_mean",
    "estimate_quantiles",
    "estimate_variance",
    "estimate_vector_mean",
    "frequency",
    "frequency_of_table",
    "frequent_items_of_table",
    "histogram_of_table",
    "level_indices",
    "mean",
    "mean_of_table",
    "project_to_simplex",
    "quantiles_of_table",
    "release",
    "release_by",
    "release_together",
    "shuffle_reports",
    "tally_for",
    "tally_from_state",
    "variance_of_table",
]
