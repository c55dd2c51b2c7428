"""A process that releases over and over, and is killed at any moment: run by test_crash, not by pytest itself.

python crash.py LEDGER SHOWN KILLS SEED
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import warnings

import shuffledp as sdp

PEOPLE = {"vote": ["yes", "no"] * 50}


def release_and_show(ledger: str, shown: str, title: str) -> None:
    """Release, and then write the title to the file that stands for the world."""
    sdp.release(
        sdp.Frequency(["yes", "no"]), PEOPLE, value="vote", budgets=1.0, seen="reports", delta=1e-3,
        ledger=ledger, title=title,
    )  # fmt: skip
    with open(shown, "a", encoding="utf-8") as world:
        world.write(f"{title}\n")


def main() -> None:
    ledger, shown, kills, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    warnings.simplefilter("ignore")  # forks of a process that holds idle threads
    chance = random.Random(seed)
    sdp.Ledger(ledger, make=True).close()
    started = time.perf_counter()
    release_and_show(ledger, shown, "warm")
    release_and_show(ledger, shown, "warmer")
    spread = max(2.0 * (time.perf_counter() - started) / 2.0, 0.05)
    for kill in range(kills):
        child = os.fork()
        if child == 0:
            for turn in range(1000):
                release_and_show(ledger, shown, f"{kill}-{turn}")
            os._exit(0)
        size = os.path.getsize(shown)
        while kill % 2 and os.path.getsize(shown) == size:  # on a slow machine, too, every second child shows something
            time.sleep(0.005)
        time.sleep(chance.uniform(0.0, min(spread, 0.2)))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
