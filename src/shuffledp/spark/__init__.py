"""Releases from dataframes of Apache Spark; needs the extra shuffledp[spark]. See docs/how-to/spark.md."""

from shuffledp.spark.asking import (
    frequency,
    frequent_items,
    histogram,
    mean,
    quantiles,
    release,
    release_together,
    variance,
)
from shuffledp.spark.frames import local_session
from shuffledp.spark.testing import simulate_partitions

__all__ = [
    "frequency",
    "frequent_items",
    "histogram",
    "local_session",
    "mean",
    "quantiles",
    "release",
    "release_together",
    "simulate_partitions",
    "variance",
]
