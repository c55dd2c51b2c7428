"""Seconds of one whole frequency estimate, against multi-freq-ldpy's GRR client and aggregator in the same run.

    pip install multi-freq-ldpy
    python benchmarks/bench_frequency.py [--rows 1000000] [--categories 100] [--repeats 3]

What is timed of ours is the whole call: checks, certificate, randomizing, tally, estimate, interval; the first call,
which fills the caches, stands apart. Of theirs it is the loop over the client that their README shows, after one call
that compiles it, and the aggregator.
"""

from __future__ import annotations

import argparse
import importlib
import time

import numpy as np

import shuffledp as sdp


def ours(records: np.ndarray, k: int, epsilon: float) -> float:
    """CPU seconds of one call."""
    began = time.process_time()
    sdp.estimate_frequency(records, range(k), epsilon, mechanism="krr", seen="reports", delta=0.1 / records.size)
    return time.process_time() - began


def theirs(records: np.ndarray, k: int, epsilon: float) -> float:
    """CPU seconds of their client, record by record, and of their aggregator."""
    module = importlib.import_module("multi_freq_ldpy.pure_frequency_oracles.GRR")
    module.GRR_Client(int(records[0]), k, epsilon)  # compiled at the first call
    began = time.process_time()
    reports = [module.GRR_Client(record, k, epsilon) for record in records]
    module.GRR_Aggregator_MI(reports, k, epsilon)
    return time.process_time() - began


def main() -> None:
    """Print the seconds of each and their ratio."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--categories", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    records = np.random.default_rng(1).integers(asked.categories, size=asked.rows)
    assert sdp.estimate_frequency is not None  # imported at first use; theirs is imported before it is timed, too
    cold = ours(records, asked.categories, 1.0)
    warm = min(ours(records, asked.categories, 1.0) for _ in range(asked.repeats))
    print(f"shuffledp, first call   {cold:8.3f} s\nshuffledp, later calls  {warm:8.3f} s")
    try:
        peer = min(theirs(records, asked.categories, 1.0) for _ in range(asked.repeats))
    except ModuleNotFoundError:
        print("multi-freq-ldpy is not installed; no ratio")
        return
    print(f"multi-freq-ldpy         {peer:8.3f} s\nratio, first call        {cold / peer:.3f}, later {warm / peer:.3f}")


if __name__ == "__main__":
    main()
