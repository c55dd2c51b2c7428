"""What is missing is one line: pyspark, Java, a new enough Java; a worker without this package, or with another."""

from __future__ import annotations

import os
import re

import pytest

import shuffledp as sdp
import shuffledp.spark as sps
from shuffledp.errors import InvalidInput, what_is_missing
from shuffledp.spark import engine, frames
from shuffledp.spark.engine import SparkEngine, check_versions
from shuffledp.spark.frames import explained

NO_PACKAGE = r"^a worker of Spark has no shuffledp, or not all that it needs; install shuffledp "


def test_without_pyspark_one_line_names_the_extra(monkeypatch):
    monkeypatch.setattr(frames, "find_spec", lambda name: None if name == "pyspark" else object())
    told = {"value": "vote", "budgets": 1.0, "seen": "reports", "delta": 1e-6}
    message = rf"^{re.escape(what_is_missing('shuffledp.spark', 'pyspark'))}$"
    with pytest.raises(InvalidInput, match=message):
        sps.release(sdp.Frequency(["yes", "no"]), object(), **told)
    with pytest.raises(InvalidInput, match=message):
        sps.local_session()


def java(folder, text):
    """A program that says what Java says."""
    program = folder / "java"
    program.write_text(f"#!/bin/sh\necho '{text}' >&2\n")
    program.chmod(0o755)


@pytest.mark.skipif(os.name != "posix", reason="the stand-in for Java is a shell script")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "Spark needs Java, and there is none on the PATH; install Java 17 or 21"),
        ('java version "1.8.0_392"', "Spark 4 needs Java 17 or newer, and .*/java is 8; install"),
        ('openjdk version "11.0.20" 2023-07-18', "needs Java 17 or newer, and .*/java is 11; install"),
        ("no such thing", "does not tell its version"),
        ('openjdk version "17.0.15" 2025-04-15', None),
        ('openjdk version "21" 2023-09-19', None),
    ],
)
def test_a_missing_or_old_java_is_one_line(monkeypatch, tmp_path, text, message):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    if text is not None:
        java(tmp_path, text)
    if message is None:
        frames.require_java()
        return
    with pytest.raises(InvalidInput, match=message):
        frames.require_java()


def test_a_home_of_java_without_java_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(InvalidInput, match="cannot be run; install Java 17"):
        frames.require_java()


def test_versions_of_workers_are_compared():
    check_versions([sdp.__version__] * 3)
    check_versions([])
    with pytest.raises(InvalidInput, match=NO_PACKAGE):
        check_versions([sdp.__version__, engine.ABSENT])
    with pytest.raises(InvalidInput, match=r"^workers of Spark have shuffledp 0.0.1, and the driver"):
        check_versions([sdp.__version__, "0.0.1"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Traceback ...\nModuleNotFoundError: No module named 'polars.io'", "has no module polars; install"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has", "another version of Python than the driver"),
        ("shuffledp.TaskFailed: a task of shuffledp failed with KeyError", "a task failed with KeyError"),
        (
            "[CAST_INVALID_INPUT] The value 'a secret' of",
            r"^Spark could not evaluate the dataframe \(CAST_INVALID_INPUT\)",
        ),
        ("The value 'a secret' is bad\nwith many\nlines", r"^Spark could not evaluate the dataframe \(RuntimeError\)"),
    ],
)
def test_what_spark_finds_wrong_is_one_line_without_its_text(text, message):
    error = explained(RuntimeError(text))
    with pytest.raises(InvalidInput, match=message) as caught:
        raise error
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.spark
@pytest.mark.parametrize("module", ["shuffledp.spark.worker", "polars"])
def test_a_worker_without_the_package_is_one_line(spark, monkeypatch, module):
    """Its Python does not find the module while the task runs; it is found again for the tests that follow."""
    probe = engine.probing_task()

    def blinded(batches):
        import sys

        known = sys.modules.pop(module, None)
        sys.modules[module] = None
        try:
            answers = list(probe(batches))
        finally:
            del sys.modules[module]
            if known is not None:
                sys.modules[module] = known
        yield from answers

    monkeypatch.setattr("shuffledp.spark.engine.probing_task", lambda: blinded)
    with pytest.raises(InvalidInput, match=NO_PACKAGE):
        SparkEngine(spark.range(4))
    monkeypatch.undo()
    SparkEngine(spark.range(4))
