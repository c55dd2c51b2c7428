"""Lose an executor, or let a slow task be run twice, on a cluster of two executors on this machine.

python tests/spark/cluster.py executor|speculation
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl

import shuffledp as sdp
import shuffledp.spark as sps
from shuffledp.releases import run as flow

ROWS = 6000
MASTER = "127.0.0.1"


@contextmanager
def cluster(folder):
    """A master and two workers, one core each; yields the master's address."""
    import pyspark

    home = Path(pyspark.__file__).parent
    with socket.socket() as free:
        free.bind((MASTER, 0))
        port = free.getsockname()[1]
    deploy, url = "org.apache.spark.deploy", f"spark://{MASTER}:{port}"
    commands = [[f"{deploy}.master.Master", "--host", MASTER, "--port", str(port), "--webui-port", "0"]]
    for host in (MASTER, "127.0.0.2"):
        worker = [f"{deploy}.worker.Worker", "--host", host, "--cores", "1", "--memory", "700m", "--webui-port", "0"]
        commands.append([*worker, "--work-dir", str(Path(folder) / host), url])
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_DAEMON_MEMORY": "256m"}
    started = []
    try:
        for command in commands:
            with (Path(folder) / f"{len(started)}.log").open("wb") as log:
                run = [str(home / "bin" / "spark-class"), *command]
                started.append(subprocess.Popen(run, env=environment, stdout=log, stderr=log))
        yield url
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait()


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
    """Once the guarantee is certified, the first copy of partition 0's task sleeps, and Spark starts a second one."""

    def task(batches):
        import time
        from pathlib import Path

        from pyspark import TaskContext

        context = TaskContext.get()
        for place, batch in enumerate(batches):
            if place == 1 and context.partitionId() == 0 and (Path(folder) / "certified").exists():
                (Path(folder) / f"copy {context.attemptNumber()}").touch()
                if context.attemptNumber() == 0:
                    time.sleep(120)
            yield batch

    return task


def main(what: str) -> None:
    """Compare with one process."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = MASTER
    with tempfile.TemporaryDirectory() as logs, tempfile.TemporaryDirectory() as folder, cluster(logs) as url:
        happened = compared(url, what, Path(folder))
    assert happened, f"no {what}"
    print(f"{what}: same numbers")


def compared(url: str, what: str, folder: Path) -> bool:
    """Release, compare, and tell whether what was to happen has happened."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.memory": "1g",
        "spark.executor.memory": "500m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "200",
        "spark.speculation": str(what == "speculation").lower(),
        "spark.speculation.interval": "200ms",
        "spark.speculation.multiplier": "1.5",
        "spark.speculation.quantile": "0.5",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(sys.path),
    }
    builder = SparkSession.builder.master(url).appName("shuffledp")
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
    # sorted, because a shuffle between machines brings rows in the order in which they arrive
    frame = spark.createDataFrame(table.to_arrow()).repartition(4, "who").sortWithinPartitions("who")
    parts = [pl.DataFrame(frame.filter(f"spark_partition_id() = {place}").toArrow()) for place in range(4)]
    failing = frame.mapInArrow((losing if what == "executor" else slow)(str(folder)), frame.schema)
    certify = flow.certify

    def noted(*given, **named):
        (folder / "certified").touch()
        return certify(*given, **named)

    flow.certify = noted
    question = sdp.Frequency(["yes", "no"])
    told = {"value": "vote", "budgets": "budget", "seen": "reports", "delta": 1e-6}
    seeds = (sdp.simulation_random(3) for _ in range(2))
    found = sps.release(question, failing, **told, random=next(seeds))
    alone = sps.simulate_partitions(question, parts, **told, random=next(seeds))
    spark.stop()
    assert found.n == ROWS
    assert (found.estimate == alone.estimate).all(), (found.estimate, alone.estimate)
    names = [path.name for path in folder.iterdir()]
    return "killed" in names if what == "executor" else "copy 1" in names


if __name__ == "__main__":
    main(sys.argv[1])
