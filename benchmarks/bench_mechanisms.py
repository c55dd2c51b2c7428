"""Upper end, lower end and CPU seconds of `certify` for every mechanism, number of people and budget.

    python benchmarks/bench_mechanisms.py [--out table.md] [--only "rr;laplace"] [--n 100,10000] [--epsilon0 1,4]

One budget for everybody, unordered reports, delta = 1e-6. Gaussian noise has a local delta0 of 1e-7. Each answer starts
with nothing remembered. Mechanisms that this version does not know are left out, so that the script may be run against
an older one (PYTHONPATH). The table is written row by row, so that what was computed is kept if it is cut short.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import TextIO

import shuffledp as sdp
from shuffledp import accounting

DELTA, LOCAL_DELTA = 1e-6, 1e-7
USERS = (100, 1_000, 10_000, 1_000_000)
EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 6.0)
MECHANISMS: dict[str, Callable[[], object]] = {
    "any": lambda: "any",
    "any, two-valued records": lambda: "any",
    "rr": lambda: sdp.RandomizedResponse(2),
    "one-bit": lambda: sdp.OneBit(0, 1),
    "krr:10": lambda: sdp.RandomizedResponse(10),
    "hadamard:10": lambda: sdp.HadamardResponse(10),
    "sue:10": lambda: sdp.UnaryEncoding(10, optimized=False),
    "oue:10": lambda: sdp.UnaryEncoding(10),
    "hashing:10": lambda: sdp.LocalHashing(10),
    "subset:10": lambda: sdp.SubsetSelection(10),
    "laplace": lambda: sdp.Laplace(0, 1),
    "gaussian": lambda: sdp.Gaussian(0, 1),
    "piecewise": lambda: sdp.Piecewise(0, 1),
    "hybrid": lambda: sdp.Hybrid(0, 1),
}


def answered(name: str, n: int, epsilon0: float) -> tuple[str, str, str]:
    """Upper end, lower end and CPU seconds of one cell, as text; the reason where there is none.

    Parameters
    ----------
    name : str
        A key of `MECHANISMS`.
    n : int
        People.
    epsilon0 : float
        Local budget, nats.
    """
    if remembered := getattr(accounting, "remembered", None):
        remembered.cache_clear()
    start = time.process_time()
    try:
        deltas = [LOCAL_DELTA] if name == "gaussian" else [0.0]
        more = {"records": 2} if "two-valued" in name else {}
        budgets = sdp.Budgets([epsilon0], [n], deltas)
        setting = sdp.Setting(budgets, MECHANISMS[name](), "reports", "replace-one", **more)  # type: ignore[arg-type]
        found = sdp.certify(setting, DELTA).epsilon
    except (TypeError, sdp.ShuffleDPError) as error:  # what an older version does not know
        return type(error).__name__, "", ""
    return f"{found.upper:.6g}", f"{found.lower:.6g}", f"{time.process_time() - start:.2f}"


def write_table(out: TextIO, names: list[str], users: list[int], epsilons: list[float]) -> None:
    """Write one row per mechanism, number of people and budget.

    Parameters
    ----------
    out : text file
        Where to.
    names, users, epsilons : list
        What is asked.
    """
    out.write("| mechanism | n | epsilon0 | upper | lower | upper/lower | CPU s |\n|---|---|---|---|---|---|---|\n")
    for name in names:
        for n in users:
            for epsilon0 in epsilons:
                upper, lower, seconds = answered(name, n, epsilon0)
                ratio = f"{float(upper) / float(lower):.4f}" if seconds and float(lower) > 0.0 else ""
                out.write(f"| {name} | {n:,} | {epsilon0:g} | {upper} | {lower} | {ratio} | {seconds} |\n")
                out.flush()


def main() -> None:
    """Ask what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out")
    parser.add_argument("--only", default=";".join(MECHANISMS), help="mechanisms, separated by semicolons")
    parser.add_argument("--n", default=",".join(map(str, USERS)))
    parser.add_argument("--epsilon0", default=",".join(map(str, EPSILONS)))
    asked = parser.parse_args()
    names = [name.strip() for name in asked.only.split(";")]
    unknown = [name for name in names if name not in MECHANISMS]
    if unknown:
        parser.error(f"no mechanism {unknown[0]!r}; there are {'; '.join(MECHANISMS)}")
    users, epsilons = [int(n) for n in asked.n.split(",")], [float(e) for e in asked.epsilon0.split(",")]
    if asked.out is None:
        write_table(sys.stdout, names, users, epsilons)
        return
    with open(asked.out, "w", encoding="utf-8") as out:
        write_table(out, names, users, epsilons)


if __name__ == "__main__":
    main()
