"""From records to a release: randomize, shuffle, analyze."""

from __future__ import annotations

from shuffledp.protocol.distribution_estimators import HistogramEstimator, QuantileEstimator
from shuffledp.protocol.estimate import Estimate
from shuffledp.protocol.estimators import FrequencyEstimator, MeanEstimator
from shuffledp.protocol.frequencies import FrequencyTally, frequency
from shuffledp.protocol.histogram import estimate_histogram
from shuffledp.protocol.means import MeanTally, mean
from shuffledp.protocol.pipeline import estimate_frequency, estimate_mean
from shuffledp.protocol.quantiles import RangeRelease, estimate_quantiles
from shuffledp.protocol.release import Release
from shuffledp.protocol.shuffler import ShuffledReports, shuffle_reports
from shuffledp.protocol.simplex import project_to_simplex
from shuffledp.protocol.tabular import RowBudgets, frequency_of_table, mean_of_table
from shuffledp.protocol.tabular_ranges import histogram_of_table, quantiles_of_table, variance_of_table
from shuffledp.protocol.tally import Tally, Task, level_indices, tally_for, tally_from_state
from shuffledp.protocol.variances import VarianceTally, estimate_variance
from shuffledp.protocol.vectors import VectorTally, estimate_vector_mean

__all__ = [
    "Estimate",
    "FrequencyEstimator",
    "FrequencyTally",
    "HistogramEstimator",
    "MeanEstimator",
    "MeanTally",
    "QuantileEstimator",
    "RangeRelease",
    "Release",
    "RowBudgets",
    "ShuffledReports",
    "Tally",
    "Task",
    "VarianceTally",
    "VectorTally",
    "estimate_frequency",
    "estimate_histogram",
    "estimate_mean",
    "estimate_quantiles",
    "estimate_variance",
    "estimate_vector_mean",
    "frequency",
    "frequency_of_table",
    "histogram_of_table",
    "level_indices",
    "mean",
    "mean_of_table",
    "project_to_simplex",
    "quantiles_of_table",
    "shuffle_reports",
    "tally_for",
    "tally_from_state",
    "variance_of_table",
]
