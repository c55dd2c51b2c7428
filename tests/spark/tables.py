"""Tables for the tests of Spark, in as many partitions as a test wants."""

from __future__ import annotations

import numpy as np
import polars as pl

ROWS = 6000
TOLD = {"budgets": "budget", "delta": 1e-6}


def people(rows=ROWS, seed=1):
    """Votes, hours and a second number, with three budgets."""
    random = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "vote": np.array(["yes", "no", "none"])[random.choice(3, rows, p=[0.5, 0.3, 0.2])],
            "hours": random.uniform(0.0, 80.0, rows),
            "more": random.uniform(-1.0, 1.0, rows),
            "budget": random.choice([0.5, 1.0, 2.0], rows),
            "who": np.arange(rows).astype(str),
        }
    )


def frame_of(spark, table):
    """A dataframe of Spark."""
    return spark.createDataFrame(table.to_arrow())


def in_partitions(spark, table, count):
    """A dataframe of so many partitions, and the partitions as tables, in order."""
    frame = frame_of(spark, table).repartition(count, "who")
    parts = [pl.DataFrame(frame.filter(f"spark_partition_id() = {place}").toArrow()) for place in range(count)]
    assert sum(part.height for part in parts) == table.height
    return frame, parts


def reader_of(path, *more):
    """A function for Spark that yields whatever the file holds when it runs."""

    def read(batches):
        import polars

        for batch in batches:
            if batch.num_rows:
                yield from polars.read_parquet(path).select("vote", "budget", *more).to_arrow().to_batches()

    return read
