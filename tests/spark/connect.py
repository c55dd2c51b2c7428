"""Release over Spark Connect, from a server that this script starts on this machine.

python tests/spark/connect.py
"""

from __future__ import annotations

import numpy as np
import polars as pl

import shuffledp as sdp
import shuffledp.spark as sps

ROWS = 4000


def refusal(frame, **given) -> str:
    """What an error says."""
    told = {"value": "vote", "budgets": "budget", "seen": "reports", "delta": 1e-6, **given}
    try:
        sps.release(sdp.Frequency(["yes", "no"]), frame, **told)
    except sdp.InvalidInput as error:
        return str(error)
    return ""


def main() -> None:
    """Compare with one process."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F  # noqa: N812

    spark = SparkSession.builder.remote("local[2]").config("spark.driver.memory", "1g").getOrCreate()
    random = np.random.default_rng(1)
    table = pl.DataFrame(
        {
            "vote": np.array(["yes", "no"])[random.integers(2, size=ROWS)],
            "budget": np.repeat(random.choice([0.5, 1.0], ROWS // 2), 2),
            "who": np.arange(ROWS) // 2,
        }
    )
    frame = spark.createDataFrame(table.to_arrow()).repartition(2, "who")
    assert type(frame).__module__.startswith("pyspark.sql.connect"), type(frame)
    parts = [pl.DataFrame(frame.filter(f"spark_partition_id() = {place}").toArrow()) for place in range(2)]
    question = sdp.Frequency(["yes", "no"])
    told = {"value": "vote", "budgets": "budget", "seen": "levels", "delta": 1e-6, "person": "who"}
    seeds = (sdp.simulation_random(3) for _ in range(2))
    found = sps.release(question, frame, **told, rows_per_person=2, random=next(seeds))
    alone = sps.simulate_partitions(question, parts, **told, rows_per_person=2, random=next(seeds))
    assert found.n == ROWS // 2
    assert (found.estimate == alone.estimate).all()
    assert "may have other rows each time" in refusal(frame.filter(F.rand() < 0.5))
    assert "may have other rows each time" in refusal(frame.limit(100))
    assert "at least" in refusal(frame.withColumn("vote", F.lit("maybe")))
    failing = refusal(frame.withColumn("vote", F.col("vote").cast("int").cast("string")))
    assert failing.startswith("Spark could not evaluate the dataframe (CAST_INVALID_INPUT)"), failing
    spark.stop()
    print("connect: same numbers")


if __name__ == "__main__":
    main()
