"""Lose an executor, or let a slow task be run twice, on a cluster of two executors on this machine.

python tests/spark/cluster.py executor|speculation
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

import shuffledp as sdp
import shuffledp.spark as sps
from shuffledp.protocol import preparing

ROWS = 6000
MASTER = "local-cluster[2,1,700]"


def losing(folder):
    """Once the guarantee is certified, the task of partition 0 kills the Java process that it runs in."""

    def task(batches):
        import os
        import signal
        from pathlib import Path

        from pyspark import TaskContext

        for place, batch in enumerate(batches):
            if place == 1 and TaskContext.get().partitionId() == 0 and (Path(folder) / "certified").exists():
                try:
                    (Path(folder) / "killed").touch(exist_ok=False)
                except FileExistsError:
                    pass
                else:
                    daemon = os.getppid()
                    status = Path(f"/proc/{daemon}/stat").read_text()
                    os.kill(int(status.rpartition(")")[2].split()[1]), signal.SIGKILL)
            yield batch

    return task


def slow(folder):
    """The first copy of partition 0's task sleeps, so that Spark starts a second one."""

    def task(batches):
        import time
        from pathlib import Path

        from pyspark import TaskContext

        context = TaskContext.get()
        for place, batch in enumerate(batches):
            if place == 1 and context.partitionId() == 0:
                (Path(folder) / f"attempt {context.stageId()} {context.attemptNumber()}").touch()
                if context.attemptNumber() == 0:
                    time.sleep(60)
            yield batch

    return task


def main(what: str) -> None:
    """Compare with one process."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.driver.memory": "1g",
        "spark.executor.memory": "500m",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "200",
        "spark.speculation": str(what == "speculation").lower(),
        "spark.speculation.interval": "200ms",
        "spark.speculation.multiplier": "1.5",
        "spark.speculation.quantile": "0.5",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(sys.path),
    }
    builder = SparkSession.builder.master(MASTER).appName("shuffledp")
    for name, text in settings.items():
        builder = builder.config(name, text)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    random = np.random.default_rng(1)
    table = pl.DataFrame(
        {
            "vote": np.array(["yes", "no"])[random.integers(2, size=ROWS)],
            "budget": random.choice([0.5, 1.0], ROWS),
            "who": np.arange(ROWS),
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        frame = spark.createDataFrame(table.to_arrow()).repartition(4, "who")
        parts = [pl.DataFrame(frame.filter(f"spark_partition_id() = {place}").toArrow()) for place in range(4)]
        failing = frame.mapInArrow((losing if what == "executor" else slow)(folder), frame.schema)
        question = sdp.Frequency(["yes", "no"])
        told = {"value": "vote", "budgets": "budget", "seen": "reports", "delta": 1e-6}
        seeds = (sdp.simulation_random(3) for _ in range(2))
        certify = preparing.certify

        def noted(*given):
            (Path(folder) / "certified").touch()
            return certify(*given)

        preparing.certify = noted
        found = sps.release(question, failing, **told, random=next(seeds))
        alone = sps.simulate_partitions(question, parts, **told, random=next(seeds))
        happened = sorted(path.name for path in Path(folder).iterdir())
    spark.stop()
    assert "killed" in happened if what == "executor" else any(name.endswith(" 1") for name in happened), happened
    assert found.n == ROWS
    assert (found.estimate == alone.estimate).all()
    print(f"{what}: same numbers")


if __name__ == "__main__":
    main(sys.argv[1])
