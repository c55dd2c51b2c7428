"""Reports a CPU second of the collection's service, as ratios to bare references of the same run.

    python benchmarks/bench_collection.py [--reports 20000] [--requests 10000]

References: opening reports with HPKE and nothing else, and inserting rows into SQLite (synchronous FULL, 1000 a
commit) and nothing else. The service runs in a process of its own, whose CPU time the system tells; clients are not
counted. Memory is that process's resident set, before and after.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shuffledp.cli.demo.collection import ServiceProcess, running
from shuffledp.collection.batch import AnalyzerKey, seal_inner, seal_outer
from shuffledp.collection.closing import close_task
from shuffledp.collection.draw import Family
from shuffledp.collection.fields import dump_json, to_base64
from shuffledp.collection.ingest import Offer, Row, hold
from shuffledp.collection.sealing import Opener, Sealer, identity_of, new_identity, new_private
from shuffledp.collection.store import Store
from shuffledp.collection.task import Draft, PostedTask

CONNECTIONS = 64
LEVELS = (("careful", 0.5), ("middle", 1.0), ("open", 4.0))


def make_task(store: Store) -> tuple[PostedTask, bytes, AnalyzerKey]:
    """Post a task of one question with five choices under open admission; return it, its key, and the analyzer's."""
    family, private, secret, signs = Family("krr:5", 5), new_private(), new_private(), new_identity()
    question = {
        "text": {"en": "Which of five?"},
        "kind": "choice",
        "choices": [{"en": str(choice)} for choice in range(5)],
        "family": family.name,
        "report_bytes": family.report_bytes,
        "dummies": {"law": "uniform", "count": 172},
    }
    levels = [
        {
            "name": {"en": name},
            "epsilon0": epsilon0,
            "draw": [str(family.threshold(epsilon0))],
            "planned": 1000,
            "promise": epsilon0,
            "crowd": epsilon0,
        }
        for name, epsilon0 in LEVELS
    ]
    document = {
        "version": 1,
        "suite": 1,
        "title": {"en": "Benchmark"},
        "organizer": "benchmark",
        "contact": "benchmark",
        "privacy_notice": "https://example.org",
        "operated_by": {"analyzer": "one", "shuffler": "two", "page": "three"},
        "questions": [question],
        "levels": levels,
        "delta": 1e-9,
        "admission": "open",
        "at_least": 1,
        "opens": "2020-01-01T00:00:00Z",
        "closes": "2090-01-01T00:00:00Z",
        "expires": "2090-01-02T00:00:00Z",
        "stop_at": 10_000_000,
        "analyzer_key": to_base64(Opener(secret).public),
        "analyzer_identity": to_base64(identity_of(signs)),
        "retention_days": 30,
    }
    task = PostedTask.post(Draft.parse(dump_json(document)), Opener(private).public, store.identity())
    store.post(task, private, [1.0] * len(LEVELS), int(time.time()))
    return task, private, AnalyzerKey(secret, signs, hashlib.sha256(task.draft.data).digest())


def sealed(task: PostedTask, n: int) -> Iterator[bytes]:
    """Make n different reports."""
    inner, outer = Sealer(task.draft.analyzer_key), Sealer(task.shuffler_key)
    for place in range(n):
        yield seal_outer(task, place % 3, None, [seal_inner(task, 0, place % 5, inner)], outer)


@dataclass
class Used:
    """CPU seconds and resident memory (MB) of a process."""

    cpu: float
    memory: float


def used_by(pid: int) -> Used:
    """Ask the system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return Used(cpu, pages * os.sysconf("SC_PAGE_SIZE") / 2**20)


async def post_all(service: ServiceProcess, task: PostedTask, bodies: Iterator[bytes], connections: int) -> list[float]:
    """Send every body over keep-alive connections that take turns; return the seconds each answer took."""
    seconds: list[float] = []

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(service.url.rpartition(":")[2]))
        for body in bodies:
            start = time.perf_counter()
            head = f"POST /v1/{task.id}/reports HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            if not answer.startswith(b"HTTP/1.1 200") or any(await reader.readexactly(len(body) // task.size)):
                raise SystemExit("a report was not held")
            seconds.append(time.perf_counter() - start)
        writer.close()

    await asyncio.gather(*(client() for _ in range(connections)))
    return seconds


def grouped(reports: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Join so many reports for one request."""
    while group := [report for _, report in zip(range(size), reports, strict=False)]:
        yield b"".join(group)


def bare_open(task: PostedTask, private: bytes, n: int) -> float:
    """Reports a CPU second when they are opened and nothing else is done."""
    reports, opener = list(sealed(task, n)), Opener(private)
    start = time.process_time()
    for report in reports:
        opener.open(report, task.outer_info)
    return n / (time.process_time() - start)


def rows_of(n: int, seed: str) -> list[tuple[bytes, int, bytes]]:
    """Rows that look like opened reports."""
    return [(hashlib.sha256(f"{seed} {place}".encode()).digest()[:16], place % 3, bytes(49)) for place in range(n)]


def bare_store(folder: Path, n: int) -> float:
    """Rows a CPU second into SQLite and nothing else, 1000 a commit."""
    db = sqlite3.connect(folder / "bare.db", isolation_level=None)
    rows = [(bytes(32), *row) for row in rows_of(n, "bare")]
    db.execute("PRAGMA journal_mode=WAL").fetchone()
    db.execute("PRAGMA synchronous=FULL").fetchone()
    db.execute("CREATE TABLE r (t BLOB, d BLOB, l INTEGER, i BLOB, PRIMARY KEY (t, d)) WITHOUT ROWID")
    start = time.process_time()
    for at in range(0, n, 1000):
        db.execute("BEGIN IMMEDIATE")
        db.executemany("INSERT OR IGNORE INTO r VALUES (?, ?, ?, ?)", rows[at : at + 1000])
        db.execute("COMMIT")
    spent = time.process_time() - start
    db.close()
    return n / spent


def whole_store(store: Store, task: PostedTask, n: int) -> float:
    """Rows a CPU second through `hold`: ten requests of 100 reports a commit."""
    rows = rows_of(n, "whole")
    offers = [
        Offer(
            task.digest, n, bytearray(100), [Row(place, (task.digest, *rows[at + place]), None) for place in range(100)]
        )
        for at in range(0, n, 100)
    ]
    start = time.process_time()
    for at in range(0, len(offers), 10):
        hold(store, offers[at : at + 10])
    return n / (time.process_time() - start)


def main() -> None:
    """Print one line per job."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reports", type=int, default=20_000, help="reports sent 100 a request; 1000000 for memory")
    parser.add_argument("--requests", type=int, default=10_000, help="requests of one report")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = Store(folder / "store.db")
        task, private, _ = make_task(store)
        opened = bare_open(task, private, 5_000)
        print(f"bare HPKE open: {opened:,.0f} reports a CPU second")
        with running(store.path) as service:
            for size, n, connections in ((100, options.reports, 4), (1, options.requests, CONNECTIONS)):
                bodies = grouped(sealed(task, n), size)
                ready = bodies if n > 100_000 else iter(list(bodies))
                before, start = used_by(service.pid), time.perf_counter()
                seconds = sorted(asyncio.run(post_all(service, task, ready, connections)))
                wall, after = time.perf_counter() - start, used_by(service.pid)
                rate = n / (after.cpu - before.cpu)
                middle, late = (seconds[int(len(seconds) * share)] * 1e3 for share in (0.5, 0.99))
                print(
                    f"ingest, {size} a request, {connections} connections: {rate:,.0f} a CPU second, ratio "
                    f"{rate / opened:.2f}; {n / wall:,.0f} a second; p50 {middle:.0f} ms, p99 {late:.0f} ms; "
                    f"memory {before.memory:.0f} -> {after.memory:.0f} MB"
                )
        start, cpu = time.perf_counter(), time.process_time()
        path = close_task(store, task.digest)
        print(
            f"closing {options.reports + options.requests:,} reports: {time.perf_counter() - start:.2f} s, "
            f"{time.process_time() - cpu:.2f} CPU s; {path.stat().st_size / 2**20:.1f} MB"
        )
        other, *_ = make_task(store)
        bare, whole = bare_store(folder, 50_000), whole_store(store, other, 50_000)
        print(f"store alone: {whole:,.0f} rows a CPU second, bare SQLite {bare:,.0f}, ratio {whole / bare:.2f}")
        store.close()


if __name__ == "__main__":
    main()
