"""What closing and opening a batch cost, as ratios to bare HPKE of the same run.

    python benchmarks/bench_opening.py [--reports 1000000]

Reports are sealed beforehand. Opened means: copies removed, rows opened, reports unpacked and counted.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from bench_collection import make_task

from shuffledp.collection.batch import permuted_column, seal_inner
from shuffledp.collection.laws import seal_dummies
from shuffledp.collection.opening import open_column
from shuffledp.collection.sealing import Opener, Sealer
from shuffledp.collection.store import Store
from shuffledp.numerics.randomness import secure_random
from shuffledp.randomizers.wire import unpack_each


def timed(job: Callable[[], object]) -> tuple[float, float]:
    """Return wall and CPU seconds of a call, its child processes included."""
    wall, cpu = time.perf_counter(), _cpu()
    job()
    return time.perf_counter() - wall, _cpu() - cpu


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main() -> None:
    """Print one line per job."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--reports", type=int, default=200_000, help="rows of the column")
    n = parser.parse_args().reports
    with tempfile.TemporaryDirectory() as name:
        task, _, key = make_task(Store(Path(name) / "store.db"))
        question, size, info = task.draft.questions[0], task.inner_sizes[0], task.inner_info(0)
        sealer, opener = Sealer(task.draft.analyzer_key), Opener(key.key)
        rows: list[bytes] = []
        _, sealing = timed(lambda: rows.extend(seal_inner(task, 0, place % 5, sealer) for place in range(n)))
        print(f"bare HPKE seal: {n / sealing:,.0f} reports a CPU second")
        _, bare = timed(lambda: [opener.open(row, info) for row in rows])
        print(f"bare HPKE open: {n / bare:,.0f} reports a CPU second")
        column: list[bytes] = []
        _, permuting = timed(lambda: column.append(permuted_column(rows, secure_random())))
        print(f"permuting {n:,} reports: {permuting:.2f} CPU s")

        def opened(processes: int) -> None:
            found = open_column(memoryview(column[0]), size, key.key, info, question.report_bytes, processes=processes)
            reports, possible = unpack_each(found.contents, question.family.library(question.low, question.high))
            if not possible.all() or np.bincount(np.asarray(reports)).sum() != n:
                raise SystemExit("a report was lost")

        alone, cpu = timed(lambda: opened(1))
        both, _ = timed(lambda: opened(2))
        print(f"open and tally, one process: ratio {bare / cpu:.2f}; two processes: {alone / both:.2f} times as fast")
        dummies = question.dummies.count
        wall, cpu = timed(lambda: list(seal_dummies(task, secure_random())))
        print(f"{dummies} dummies, drawn and sealed: {1e3 * wall:.0f} ms, ratio {sealing / n * dummies / cpu:.2f}")


if __name__ == "__main__":
    main()
