"""A collection of a million reports, from the first byte to the signed release: time, CPU, and the server's memory.

    python benchmarks/bench_million.py [--reports 1000000]

Reports are sealed in a process of their own while they are sent, 100 a request over four connections. The service's
memory is told after every tenth; closing, opening (one process a core) and checking follow on the same machine.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench_collection import grouped, make_task, post_all, sealed, used_by

from shuffledp.cli.demo.collection import running
from shuffledp.collection.analyzer import open_batch
from shuffledp.collection.closing import close_task
from shuffledp.collection.release import write_release
from shuffledp.collection.release_page import release_document
from shuffledp.collection.store import Store
from shuffledp.collection.task import PostedTask
from shuffledp.collection.verify import verify

PIECE = 10_000
CORES = multiprocessing.cpu_count()


def seal_piece(task: bytes) -> list[bytes]:
    """Seal reports, joined for requests of 100."""
    return list(grouped(sealed(PostedTask.parse(task), PIECE), 100))


def bodies(task: PostedTask, pieces: int) -> Iterator[bytes]:
    """Yield the bodies of all requests while they are sealed elsewhere."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for piece in pool.imap(seal_piece, [task.data] * pieces):
            yield from piece


def main() -> None:
    """Print one line per step."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reports", type=int, default=1_000_000, help="a multiple of 100,000")
    pieces = parser.parse_args().reports // PIECE
    with tempfile.TemporaryDirectory() as name:
        store = Store(Path(name) / "store.db")
        task, _, key = make_task(store)
        first = time.perf_counter()
        with running(store.path) as service:
            everything = bodies(task, pieces)
            for tenth in range(10):
                part = (next(everything) for _ in range(pieces * PIECE // 1000))
                seconds = sorted(asyncio.run(post_all(service, task, part, 4)))
                used = used_by(service.pid)
                done, wall = (tenth + 1) * pieces * PIECE // 10, time.perf_counter() - first
                print(
                    f"{done:,} reports after {wall:.0f} s: service "
                    f"{used.cpu:.1f} CPU s, {used.memory:.0f} MB; p99 {seconds[int(len(seconds) * 0.99)] * 1e3:.0f} ms",
                    flush=True,
                )
            everything.close()  # type: ignore[attr-defined]
        start, cpu = time.perf_counter(), time.process_time()
        batch = close_task(store, task.digest).read_bytes()
        print(
            f"closing: {time.perf_counter() - start:.1f} s, {time.process_time() - cpu:.1f} CPU s; {len(batch):,} bytes"
        )
        start, children = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        opened = open_batch(batch, key)
        release = write_release(release_document(opened), task, key.identity)
        own = resource.getrusage(resource.RUSAGE_CHILDREN)
        used_cpu = own.ru_utime + own.ru_stime - children.ru_utime - children.ru_stime
        print(f"opening with {CORES} processes: {time.perf_counter() - start:.1f} s, {used_cpu:.1f} CPU s of theirs")
        assert opened.junk_seen == 0
        start = time.perf_counter()
        verify(task, release, batch)
        print(f"checking: {time.perf_counter() - start:.1f} s; {opened.batch.manifest.n:,} people")
        print(f"from the first byte to a checked release: {time.perf_counter() - first:.0f} s")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"largest memory of closing and opening: {peak:,.0f} MB")
        store.close()


if __name__ == "__main__":
    main()
