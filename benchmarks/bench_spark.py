"""CPU seconds of a release from a dataframe of Spark: its passes, against what Spark alone would cost, and one process.

    python benchmarks/bench_spark.py [--rows 10000000] [--cores 2] [--generated]

CPU of this process and of all that it started (Java, Python workers), warm; krr:10 with three budgets. An empty
`mapInArrow` over the same two columns is what bringing rows to Python costs. --generated: Spark makes the rows up while
it reads them, so that no file is needed, and the largest memory of the driver's Python and Java is told.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

if find_spec("pyspark") is None:
    print("needs the extra shuffledp[spark]: run it with .venv-spark/bin/python (make test-spark makes that)")
    sys.exit()

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

import shuffledp as sdp
import shuffledp.spark as sps
from shuffledp.spark import engine

WORDS = [f"word {code}" for code in range(10)]
TOLD = {"value": "vote", "budgets": "budget", "seen": "reports"}
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Cost:
    """Seconds: by the clock, of all processes, and of the Python workers among them."""

    wall: float
    cpu: float
    python: float


def used() -> tuple[float, float]:
    """CPU seconds so far of this process and its descendants, and of the Python processes below it."""
    parents, times, names = defaultdict[int, list[int]](list), dict[int, float](), dict[int, str]()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except OSError:
            continue
        name, _, rest = text.partition("(")[2].rpartition(")")
        fields = rest.split()
        number = int(path.parent.name)
        parents[int(fields[1])].append(number)
        times[number], names[number] = sum(map(int, fields[11:15])) / TICKS, name
    total = python = 0.0
    waiting = [os.getpid()]
    while waiting:
        number = waiting.pop()
        waiting += parents[number]
        total += times.get(number, 0.0)
        if number != os.getpid() and names.get(number, "").startswith(("python", "pyspark")):
            python += times[number]
    return total, python


def java_memory() -> float:
    """Largest memory, in MB, of the Java process below this one; in local mode it is driver and executor."""
    found = 0
    for path in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in path.read_text().splitlines() if ":" in line)
        except OSError:
            continue
        if fields["Name"].strip() == "java" and int(fields["PPid"]) == os.getpid():
            found = max(found, int(fields["VmHWM"].split()[0]))
    return found / 1024


def cost(run: Callable[[], object]) -> Cost:
    """Run once."""
    began, (total, python) = time.perf_counter(), used()
    run()
    after, after_python = used()
    return Cost(time.perf_counter() - began, after - total, after_python - python)


def people(spark: object, rows: int) -> DataFrame:
    """Votes and budgets, a function of the row's number."""
    number = F.xxhash64("id")
    word = F.pmod(number, F.lit(10)).cast("string")
    level = F.pmod(F.shiftright(number, 16), F.lit(3))
    return spark.range(rows).select(  # type: ignore[attr-defined]
        F.concat(F.lit("word "), word).alias("vote"),
        F.when(level == 0, 0.5).when(level == 1, 1.0).otherwise(4.0).alias("budget"),
    )


def empty(batches):
    """Take rows to Python, and do nothing with them."""
    import pyarrow as pa

    yield pa.RecordBatch.from_pydict({"n": [sum(batch.num_rows for batch in batches)]})


def told(name: str, cost: Cost) -> None:
    """Print one line."""
    print(f"{name:34s} {cost.cpu:8.2f} CPU s ({cost.python:.2f} in Python workers), {cost.wall:8.2f} s", flush=True)


def main() -> None:
    """Print one line per case."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--generated", action="store_true")
    given = parser.parse_args()
    print(f"{given.rows:,} rows, local[{given.cores}], load of the machine before: {os.getloadavg()[0]:.1f}")
    spark = sps.local_session(given.cores)
    spark.sparkContext.setLogLevel("ERROR")
    question, delta = sdp.Frequency(WORDS), 0.01 / given.rows
    warm = people(spark, 100_000)
    sps.release(question, warm, **TOLD, delta=1e-9)
    if given.generated:
        told(
            "release of generated rows",
            cost(lambda: sps.release(question, people(spark, given.rows), **TOLD, delta=delta)),
        )
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"largest memory of the driver's Python: {memory:,.0f} MB, of its Java: {java_memory():,.0f} MB")
        return
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "people")
        people(spark, given.rows).repartition(4 * given.cores).write.parquet(path)
        stored = spark.read.parquet(path)
        two = stored.select("vote", "budget")
        two.mapInArrow(empty, "n bigint").toArrow()
        told("empty mapInArrow, two columns", cost(lambda: two.mapInArrow(empty, "n bigint").toArrow()))
        told("groupBy(budget).count()", cost(lambda: stored.groupBy("budget").count().toArrow()))
        passes: list[Cost] = []
        gathered = engine.gathered

        def timed(frame: DataFrame) -> object:
            found: list[object] = []
            passes.append(cost(lambda: found.append(gathered(frame))))
            return found[0]

        engine.gathered = timed  # type: ignore[assignment]
        whole = cost(lambda: sps.release(question, stored, **TOLD, delta=delta))
        engine.gathered = gathered
        told("release, whole", whole)
        told("  of it the pass over records", passes[-1])
        files = sorted(Path(path).glob("*.parquet"))
        import polars as pl

        frame = pl.scan_parquet(files)
        sdp.release(question, frame.head(1000), **TOLD, delta=1e-6)
        told("one process, the same files", cost(lambda: sdp.release(question, frame, **TOLD, delta=delta)))
    spark.stop()


if __name__ == "__main__":
    main()
