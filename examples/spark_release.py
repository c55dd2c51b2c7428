"""Release a frequency and a mean from a dataframe of Spark, on this machine.

    python examples/spark_release.py [ROWS]

Spark makes up the people: votes, hours and personal budgets. On a cluster, use its session and its tables.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from pyspark.sql import functions as F  # noqa: N812

import shuffledp as sdp
import shuffledp.spark as sps


def main(rows: int = 1_000_000) -> None:
    """Write a table, and release from it."""
    spark = sps.local_session(cores=2)
    spark.sparkContext.setLogLevel("ERROR")
    number = F.xxhash64("id")
    people = spark.range(rows).select(
        F.element_at(F.array(*map(F.lit, ("yes", "no", "none"))), (F.pmod(number, F.lit(3)) + 1).cast("int")).alias(
            "vote"
        ),
        (F.pmod(F.shiftright(number, 8), F.lit(8000)) / 100.0).alias("hours"),
        F.when(F.pmod(F.shiftright(number, 24), F.lit(10)) == 0, 2.0).otherwise(0.5).alias("budget"),
    )
    with tempfile.TemporaryDirectory() as folder:
        table = str(Path(folder) / "people")
        people.write.parquet(table)  # a release reads its rows more than once, so they are fixed first
        asked = [sdp.Ask(sdp.Frequency(["yes", "no", "none"]), "vote"), sdp.Ask(sdp.Mean(0, 80), "hours")]
        found = sps.release_together(
            asked, spark.read.parquet(table), budgets="budget", seen="reports", delta=0.01 / rows
        )
    for release in found.releases:
        print(release)
    print(f"both together: central epsilon at most {found.epsilon:.4g} at delta = {found.delta:g}")
    spark.stop()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
