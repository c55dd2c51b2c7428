"""Modules that need an extra are collected (their docstrings are tests too) only where it is installed."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

collect_ignore_glob = [
    pattern
    for extra, pattern in (
        ("torch", "src/shuffledp/learning/torch/*"),
        ("flwr", "src/shuffledp/flower/*"),
        ("pyspark", "src/shuffledp/spark/*"),
        ("matplotlib", "src/shuffledp/reproduce/__init__.py"),
    )
    if find_spec(extra) is None
]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that imitates another machine; see tests/perturbed.py."""
    parser.addoption("--perturbed", type=int, metavar="SEED", help="other last digits of exp, expm1, log and log1p")


def pytest_configure(config: pytest.Config) -> None:
    """Change the functions before anything of the package is imported."""
    seed = config.getoption("--perturbed")
    if seed is not None:
        from tests.perturbed import install

        install(seed)


gc.disable()  # while tests are collected: nothing of them goes, and looking takes as long as collecting


def pytest_collection_finish() -> None:
    """Let the garbage collector work from here on, on what the tests make; what is garbage already shows here."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One session of Spark for all tests and docstrings: two cores, and four attempts for each task."""
    pytest.importorskip("pyspark", reason="needs the extra shuffledp[spark]")
    from shuffledp.spark import local_session

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = local_session(2, spark__sql__execution__arrow__maxRecordsPerBatch="1000")
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
