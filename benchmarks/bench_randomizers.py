"""Seconds to perturb and to estimate frequencies: every mechanism, one budget and own budgets, against peers.

    python benchmarks/bench_randomizers.py [--users 1000000] [--categories 100] [--epsilon0 1] [--repeats 3]

Secure randomness; what is printed is the least of the repeats. The peers, pure-ldp 1.2.0 and multi-freq-ldpy 0.2.5,
run in an interpreter of their own, as they need old releases of other packages; without it they are left out:

    python -m venv PEERS
    PEERS/bin/pip install pure-ldp==1.2.0 multi-freq-ldpy==0.2.5 scikit-learn statsmodels "xxhash<4"
    SHUFFLEDP_PEERS=PEERS/bin/python python benchmarks/bench_randomizers.py

The estimate is `frequency` (withheld levels), with its standard errors. Shuffling is left out: peers have none.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable

import numpy as np

from shuffledp.numerics.randomness import secure_random
from shuffledp.questions.frequency import FREQUENCY_MECHANISMS, frequency, frequency_oracle
from shuffledp.questions.tally import ShuffledReports

GOALS = {"krr": 10, "oue": 10, "olh": 50}
"""Wanted speed over multi-freq-ldpy."""
OWN_BUDGETS = 2.0
"""Wanted: the cost of own budgets over that of one budget is at most this."""
KINDS = {
    "one": lambda epsilon0, users: np.float64(epsilon0),
    "3 levels": lambda epsilon0, users: np.random.default_rng(2).choice([0.5, 1.0, 1.5], users) * epsilon0,
    "all own": lambda epsilon0, users: np.random.default_rng(2).uniform(0.5, 1.5, users) * epsilon0,
}
"""Budgets: one for all, three levels at random, or every user's different."""

PEERS = r"""
import json, sys, time
import numpy as np
users, k, epsilon0, which = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
records = np.random.default_rng(1).integers(k, size=users).tolist()

def multi_freq():
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client, GRR_Aggregator_MI
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client, UE_Aggregator_MI
    from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Client, LH_Aggregator_MI
    return {
        "krr": (lambda x: GRR_Client(x, k, epsilon0), lambda r: GRR_Aggregator_MI(r, k, epsilon0)),
        "oue": (lambda x: UE_Client(x, k, epsilon0, True), lambda r: UE_Aggregator_MI(r, epsilon0, True)),
        "olh": (lambda x: LH_Client(x, k, epsilon0, True), lambda r: LH_Aggregator_MI(r, k, epsilon0, True)),
    }

def pure_ldp():
    from pure_ldp.frequency_oracles import DEClient, DEServer, LHClient, LHServer, UEClient, UEServer
    def server(make):
        def estimate(reports):
            aggregator = make()
            for report in reports:
                aggregator.aggregate(report)
            return aggregator.estimate_all(range(1, k + 1))
        return estimate
    de, ue, lh = DEClient(epsilon0, k), UEClient(epsilon0, k, use_oue=True), LHClient(epsilon0, k, use_olh=True)
    return {
        "krr": (lambda x: de.privatise(x + 1), server(lambda: DEServer(epsilon0, k))),
        "oue": (lambda x: ue.privatise(x + 1), server(lambda: UEServer(epsilon0, k, use_oue=True))),
        "olh": (lambda x: lh.privatise(x + 1), server(lambda: LHServer(epsilon0, k, use_olh=True))),
    }

for name, make in (("multi-freq-ldpy", multi_freq), ("pure-ldp", pure_ldp)):
    for mechanism, (client, server) in make().items():
        if mechanism not in which.split(","):
            continue
        client(0)  # compiled on the first call
        start = time.perf_counter()
        reports = [client(x) for x in records]
        middle = time.perf_counter()
        server(reports)
        print(json.dumps([name, mechanism, middle - start, time.perf_counter() - middle]), flush=True)
        del reports
"""


def least(call: Callable[[], object], repeats: int) -> tuple[float, object]:
    """Fewest seconds of a call, and its last result."""
    best, result = float("inf"), None
    for _ in range(repeats):
        start = time.perf_counter()
        result = call()
        best = min(best, time.perf_counter() - start)
    return best, result


def ours(users: int, k: int, epsilon0: float, repeats: int) -> dict[tuple[str, str], tuple[float, float]]:
    """Seconds to perturb and to estimate, by mechanism and kind of budgets."""
    data = np.random.default_rng(1)
    records, random = data.integers(k, size=users), secure_random()
    found: dict[tuple[str, str], tuple[float, float]] = {}
    for mechanism in (name for name in FREQUENCY_MECHANISMS if name != "rr"):
        for kind, make in KINDS.items():
            budgets = make(epsilon0, users)
            family = frequency_oracle(mechanism, k).for_budgets([epsilon0], [users])
            perturb, reports = least(lambda f=family, b=budgets: f.randomize(records, b, random), repeats)
            seen = ShuffledReports(reports, np.broadcast_to(budgets, users), "reports")
            estimate, answer = least(lambda f=family, s=seen: frequency(s, f), repeats)
            truth = np.bincount(records, minlength=k) / users
            assert np.abs(answer.value - truth).max() < 6 * answer.standard_error.max()
            found[mechanism, kind] = perturb, estimate
    return found


def peers(users: int, k: int, epsilon0: float, which: str) -> dict[tuple[str, str], tuple[float, float]]:
    """Seconds of the peers, or nothing where no interpreter with them is named."""
    interpreter = os.environ.get("SHUFFLEDP_PEERS")
    if not interpreter:
        return {}
    command = [interpreter, "-W", "ignore", "-c", PEERS, str(users), str(k), str(epsilon0), which]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    rows = [json.loads(line) for line in lines if line.startswith("[")]
    return {(name, mechanism): (perturb, estimate) for name, mechanism, perturb, estimate in rows}


def main() -> None:
    """Print one line per mechanism and kind of budget, then the peers', then the goals."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--categories", type=int, default=100)
    parser.add_argument("--epsilon0", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--peers", default="krr,oue,olh", help="which mechanisms of the peers")
    options = parser.parse_args()
    task = options.users, options.categories, options.epsilon0
    print(f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}")
    print(f"{task[0]:,} users, {task[1]} categories, epsilon0 {task[2]}")
    print(f"{'who':<18}{'mechanism':<11}{'budgets':<9}{'perturb s':>10}{'estimate s':>11}{'total s':>9}")
    mine = ours(*task, options.repeats)
    for (mechanism, kind), (perturb, estimate) in mine.items():
        print(f"{'shuffledp':<18}{mechanism:<11}{kind:<9}{perturb:>10.3f}{estimate:>11.3f}{perturb + estimate:>9.3f}")
    theirs = peers(*task, options.peers)
    for (name, mechanism), (perturb, estimate) in theirs.items():
        print(f"{name:<18}{mechanism:<11}{'one':<9}{perturb:>10.3f}{estimate:>11.3f}{perturb + estimate:>9.3f}")
    for mechanism, goal in GOALS.items():
        total = sum(mine[mechanism, "one"])
        if ("multi-freq-ldpy", mechanism) in theirs:
            ratio = sum(theirs["multi-freq-ldpy", mechanism]) / total
            print(f"{mechanism}: {ratio:.0f} times as fast as multi-freq-ldpy (goal {goal})")
    for mechanism in dict.fromkeys(name for name, _ in mine):
        ratios = [f"{kind} {sum(mine[mechanism, kind]) / sum(mine[mechanism, 'one']):.2f}" for kind in KINDS]
        print(f"{mechanism}: cost over that of one budget: {', '.join(ratios)} (goal {OWN_BUDGETS})")


if __name__ == "__main__":
    main()
