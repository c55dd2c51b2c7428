"""Seconds to estimate from a Parquet file of many rows: on one core and on all, against what reading it must cost.

    python benchmarks/bench_table.py [--rows 10000000]

The floor is what no release can do without: decoding the columns of records and budgets, and drawing four bytes of
AES keystream a row. Cases: one level, three levels, krr:5 and oue:5. Each number of cores is a process of its own: the
threads that decode Parquet stay on the cores they were started on.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ASKED = "--on-cores"
if ASKED in sys.argv:  # before a library starts its threads
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(sys.argv[sys.argv.index(ASKED) + 1])])

import numpy as np  # noqa: E402
import polars as pl  # noqa: E402

import shuffledp as sdp  # noqa: E402

CASES = (("krr", 1), ("krr", 3), ("oue", 1))


def table(folder: Path, rows: int) -> Path:
    """Write the file."""
    random = np.random.default_rng(1)
    path = folder / "people.parquet"
    names = np.array(["a", "b", "c", "d", "e"])
    pl.DataFrame(
        {
            "vote": names[random.integers(5, size=rows)],
            "one": np.ones(rows),
            "three": random.choice([0.5, 1.0, 4.0], rows),
        }
    ).write_parquet(path)
    return path


def floor(path: Path, levels: int) -> float:
    """Seconds of decoding and of the keystream."""
    began = time.perf_counter()
    frame = pl.read_parquet(path, columns=["vote", "three" if levels == 3 else "one"])
    sdp.secure_random().words((frame.height + 1) // 2)
    return time.perf_counter() - began


def release(path: Path, mechanism: str, levels: int) -> float:
    """Seconds of one release."""
    began = time.perf_counter()
    sdp.release(
        sdp.Frequency(["a", "b", "c", "d", "e"]), path, value="vote", budgets="three" if levels == 3 else "one",
        mechanism=mechanism, seen="reports", delta=1e-9,
    )  # fmt: skip
    return time.perf_counter() - began


def best(timed: Callable[..., float], *told: object) -> float:
    """Return the least of fifteen times."""
    return min(timed(*told) for _ in range(15))


def measured(path: Path) -> list[tuple[float, float]]:
    """Floor and release of each case, in this process."""
    for mechanism, levels in CASES:
        release(path, mechanism, levels)  # certificates and imports are not what is measured
    return [(best(floor, path, levels), best(release, path, mechanism, levels)) for mechanism, levels in CASES]


def on_cores(count: int, path: Path) -> list[tuple[float, float]]:
    """Measure in a process that has so many cores."""
    told = [sys.executable, __file__, ASKED, str(count), "--path", str(path)]
    return json.loads(subprocess.run(told, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    """Print one line per case."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument(ASKED, type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.on_cores:
        print(json.dumps(measured(asked.path)))
        return
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        path = table(Path(folder), asked.rows)
        alone, together = on_cores(1, path), on_cores(cores, path)
    for (mechanism, levels), (least, one), (_, several) in zip(CASES, alone, together, strict=True):
        print(
            f"{mechanism}, {levels} levels: floor {least:.2f} s, one core {one:.2f} s ({one / least:.1f} floors), "
            f"{cores} cores {several:.2f} s ({one / several:.2f} times as fast)"
        )


if __name__ == "__main__":
    main()
