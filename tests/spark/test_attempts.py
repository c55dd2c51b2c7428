"""Tasks that run again: everybody is counted once, and the numbers do not change."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyspark", reason="needs the extra shuffledp[spark]")

import shuffledp as sdp
import shuffledp.spark as sps

from .tables import TOLD, in_partitions, people

pytestmark = pytest.mark.spark

TABLE = people()
VOTE = sdp.Frequency(["yes", "no", "none"])


def raising(batches):
    """The first attempt fails after half of the partition's rows were handed on."""
    from pyspark import TaskContext

    for place, batch in enumerate(batches):
        if place == 1 and TaskContext.get().attemptNumber() == 0:
            raise RuntimeError("the first attempt")
        yield batch


def killing(batches):
    """The first attempt of partition 0 kills all Python workers of the session, its own and those of shuffledp."""
    import os
    import signal
    from pathlib import Path

    from pyspark import TaskContext

    context = TaskContext.get()
    for place, batch in enumerate(batches):
        if place == 1 and context.attemptNumber() == 0 and context.partitionId() == 0:
            daemon = os.getppid()
            for status in Path("/proc").glob("[0-9]*/stat"):
                try:
                    number, parent = int(status.parent.name), int(status.read_text().rpartition(")")[2].split()[1])
                except OSError:
                    continue
                if parent == daemon and number != os.getpid():
                    os.kill(number, signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        yield batch


@pytest.mark.parametrize("failing", [raising, killing], ids=["raising", "killing"])
@pytest.mark.parametrize("seen", ["reports", "levels"])
def test_a_second_attempt_counts_nobody_twice(spark, failing, seen):
    if failing is killing and not Path("/proc/self/stat").exists():
        pytest.skip("finds the workers in /proc")
    frame, parts = in_partitions(spark, TABLE, 2)
    assert min(part.height for part in parts) > 2000  # three batches of Arrow at least
    failed = frame.mapInArrow(failing, frame.schema)
    told = {"value": "vote", "seen": seen, **TOLD}
    found = sps.release(VOTE, failed, **told, random=sdp.simulation_random(3))
    alone = sps.simulate_partitions(VOTE, parts, **told, random=sdp.simulation_random(3))
    np.testing.assert_array_equal(found.estimate, alone.estimate)
    secure = sps.release(VOTE, failed, **told)
    assert (found.n, secure.n, secure.private) == (TABLE.height, TABLE.height, True)
    low, high = secure.confidence_interval(1 - 1e-6, simultaneous=True)
    truth = [(TABLE["vote"] == word).mean() for word in VOTE.categories]
    assert ((low < truth) & (truth < high)).all()


@pytest.mark.slow
@pytest.mark.parametrize("what", ["executor", "speculation"])
def test_a_lost_executor_and_a_second_copy_count_nobody_twice(what):
    """Two executors in processes of their own; a script, because a session cannot change its master."""
    script = Path(__file__).with_name("cluster.py")
    done = subprocess.run([sys.executable, str(script), what], capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == f"{what}: same numbers"
