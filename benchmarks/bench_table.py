"""Seconds to estimate from a Parquet file of many rows: on one core and on all, against what reading it must cost.

    python benchmarks/bench_table.py [--rows 10000000]

The floor is what no release can do without: decoding the columns of records and budgets, and drawing four bytes of
AES keystream a row. Cases: one level, three levels, krr:5 and oue:5.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

import shuffledp as sdp

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
    """Seconds of decoding and of the keystream, on one core."""
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
    """Return the least of five times."""
    return min(timed(*told) for _ in range(5))


def main() -> None:
    """Print one line per case."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        path = table(Path(folder), parser.parse_args().rows)
        release(path, "krr", 3)  # certificates and imports are not what is measured
        release(path, "oue", 1)
        for mechanism, levels in CASES:
            os.sched_setaffinity(0, cores[:1])
            least, one = best(floor, path, levels), best(release, path, mechanism, levels)
            os.sched_setaffinity(0, cores)
            several = best(release, path, mechanism, levels)
            print(
                f"{mechanism}, {levels} levels: floor {least:.2f} s, one core {one:.2f} s ({one / least:.1f} floors), "
                f"{len(cores)} cores {several:.2f} s ({one / several:.2f} times as fast)"
            )


if __name__ == "__main__":
    main()
