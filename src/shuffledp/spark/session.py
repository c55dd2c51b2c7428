# pyright: reportMissingImports=false, reportUnknownParameterType=false
"""A session of Spark on this machine, and one line where Spark or Java is missing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from shuffledp.errors import InvalidInput, path_shown
from shuffledp.extras import what_is_missing
from shuffledp.randomizers.checks import whole_number

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEAST_JAVA = 17
_INSTALL = "install Java 17 or 21 (Debian, Ubuntu: apt install openjdk-17-jre-headless)"


def local_session(cores: int = 2, memory: str = "2g", attempts: int = 4, **settings: str) -> SparkSession:
    """Return a Spark session on this machine, whose workers run the current Python.

    It is meant for trying out: on one machine `shuffledp.release` is faster. On a cluster use the session you have.

    Parameters
    ----------
    cores : int
        How many tasks run at a time, at least 1.
    memory : str
        Memory of the Java process, such as ``"2g"``.
    attempts : int
        How often a task is tried, at least 1.
    **settings : str
        Further settings of Spark, with ``__`` for each point: ``spark__ui__enabled="true"``.

    Returns
    -------
    SparkSession
        The new session, or the one that runs already.

    Raises
    ------
    InvalidInput
        If pyspark is not installed, or Java is missing or too old.

    Examples
    --------
    >>> spark = local_session(cores=1)  # doctest: +SKIP
    """
    require_pyspark()
    require_java()
    whole_number(cores, "cores must be a whole number", 1, 1 << 16)
    whole_number(attempts, "attempts must be a whole number", 1, 1 << 16)
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark would take whatever python3 is
    builder = SparkSession.builder.master(f"local[{cores},{attempts}]").appName("shuffledp")
    given = {name.replace("__", "."): text for name, text in settings.items()}
    own = {
        "spark.driver.memory": memory,
        "spark.sql.shuffle.partitions": str(max(4, 2 * cores)),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, text in {**own, **given}.items():
        builder = builder.config(name, text)
    return builder.getOrCreate()


def require_pyspark() -> None:
    """Raise InvalidInput unless pyspark and pyarrow are installed."""
    missing = [name for name in ("pyspark", "pyarrow") if find_spec(name) is None]
    if missing:
        raise InvalidInput(what_is_missing("shuffledp.spark", " and ".join(missing), "spark"))


def require_java() -> None:
    """Raise InvalidInput unless a Java version that Spark 4 runs on is installed."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None:
        raise InvalidInput(f"Spark needs Java, and there is none on the PATH; {_INSTALL}")
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        raise InvalidInput(f"Spark needs Java, and {path_shown(java)} cannot be run; {_INSTALL}") from None
    told = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    if told is None:
        raise InvalidInput(f"Spark needs Java, and {path_shown(java)} does not tell its version; {_INSTALL}")
    if int(told[1]) < LEAST_JAVA:
        raise InvalidInput(f"Spark 4 needs Java {LEAST_JAVA} or newer, and {path_shown(java)} is {told[1]}; {_INSTALL}")
