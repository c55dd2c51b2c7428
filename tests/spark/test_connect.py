"""Spark Connect: a session whose Java process is behind a server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs the extra shuffledp[spark]")
pytest.importorskip("grpc", reason="needs pyspark[connect]")

pytestmark = pytest.mark.spark


def test_a_dataframe_of_connect_gives_the_same_numbers_and_refusals():
    """In a process of its own: one process has either kind of session."""
    script = Path(__file__).with_name("connect.py")
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=600, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == "connect: same numbers"
