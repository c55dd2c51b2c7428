"""Spark's session and dataframes: which may be read, what is asked of them, and one line for whatever fails."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from shuffledp.errors import InvalidInput, path_shown, shown, what_is_missing, whole_number
from shuffledp.spark.worker import renamed
from shuffledp.tables.options import same_word
from shuffledp.tables.table import no_column

if TYPE_CHECKING:
    import polars as pl
    from pyspark.sql import DataFrame, SparkSession

# pyright: reportMissingImports=false, reportUnknownParameterType=false


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
    match = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    if match is None:
        raise InvalidInput(f"Spark needs Java, and {path_shown(java)} does not tell its version; {_INSTALL}")
    if int(match[1]) < LEAST_JAVA:
        raise InvalidInput(
            f"Spark 4 needs Java {LEAST_JAVA} or newer, and {path_shown(java)} is {match[1]}; {_INSTALL}"
        )


# pyright: reportMissingImports=false, reportUnknownParameterType=false


T = TypeVar("T")
_NODE = re.compile(r"^[\s:|+\-]*'?(Sample|GlobalLimit|LocalLimit|Limit|Offset|Tail|Deduplicate)\b", re.MULTILINE)
_DRAWN = re.compile(r"\b(rand|randn|random|uuid|shuffle|randstr|uniform|monotonically_increasing_id)\(", re.IGNORECASE)
_DEPTH = 16
_WAY_OUT = "write the rows to a table first (df.write), and release from that"


def checked_frame(frame: Any) -> DataFrame:
    """Return a Spark dataframe after checking that its rows are the same at every evaluation, as its plan tells.

    Raises
    ------
    InvalidInput
        If it is no dataframe of Spark, a stream, or its plan draws at random or depends on the order of rows.
    """
    require_pyspark()
    from pyspark.sql import DataFrame

    if not isinstance(frame, DataFrame):
        raise InvalidInput(
            f"shuffledp.spark reads a dataframe of Spark; got {type(frame).__name__}: shuffledp.release reads files, "
            "other dataframes and arrays"
        )
    if asked(lambda: frame.isStreaming):
        raise InvalidInput(f"a stream has no end, and a release is about a fixed set of people; {_WAY_OUT}")
    changing = asked(lambda: _changing(frame))
    if changing is not None:
        raise InvalidInput(
            f"the dataframe may have other rows each time it is evaluated (its plan holds {changing}), and it is "
            f"evaluated several times; {_WAY_OUT}"
        )
    return frame


def _changing(frame: DataFrame) -> str | None:
    """Return what in a plan draws at random or takes rows by their order; None if nothing is seen."""
    if is_classic(frame):
        plan = frame._jdf.queryExecution().analyzed()  # type: ignore[attr-defined]
        text, random = str(plan.treeString()), not plan.deterministic()
    else:
        text = str(frame._explain_string(extended=True))  # type: ignore[attr-defined]
        text = text.partition("== Analyzed Logical Plan ==")[2].partition("== Optimized Logical Plan ==")[0]
        random = _DRAWN.search(text) is not None
    node = _NODE.search(text)
    return node[1] if node else "a random expression" if random else None


def is_classic(frame: DataFrame) -> bool:
    """Return whether a dataframe belongs to a Spark session with its own Java process, not to Spark Connect."""
    return type(frame).__module__.startswith("pyspark.sql.classic")


def check_columns(frame: DataFrame, wanted: Iterable[str]) -> None:
    """Raise InvalidInput unless each named column occurs exactly once in the dataframe."""
    names = list(frame.columns)
    for name in wanted:
        if names.count(name) > 1:
            raise InvalidInput(f"column {shown(name)} stands twice in the dataframe; rename one")
        if name not in names:
            raise no_column(name, names, "the dataframe")
        if len(same := same_word(name, names)) > 1:
            raise InvalidInput(
                f"column {shown(name)} stands twice in the dataframe, also as {shown(same[1])}; rename one"
            )


def chosen(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return a dataframe of these columns alone, renamed c0, c1, ..., since Spark does not accept every name."""
    from pyspark.sql import functions as F  # noqa: N812

    return frame.select(*(F.col(quoted(name)).alias(f"c{place}") for place, name in enumerate(names)))


def quoted(name: str) -> str:
    """Return a column's name quoted, so that Spark accepts any characters in it."""
    return "`" + name.replace("`", "``") + "`"


def gathered(frame: DataFrame) -> pl.DataFrame:
    """Evaluate a Spark dataframe, and return its rows on the driver."""
    import polars as pl

    return pl.DataFrame(asked(frame.toArrow))


def without_rows(frame: DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return an empty table of these columns, with the types in which tasks receive them."""
    return renamed(gathered(chosen(frame, names).limit(0)), names)


def evaluated(frame: DataFrame, task: Callable[[Any], Iterator[Any]], schema: str) -> DataFrame:
    """Return an unevaluated dataframe that applies a task to every partition of the given one.

    Parameters
    ----------
    frame : DataFrame
        The given dataframe.
    task : callable
        Function of an iterator of Arrow batches that yields Arrow batches.
    schema : str
        Columns of the result with their types, such as ``"n long, state binary"``.
    """

    def made() -> DataFrame:
        return frame.mapInArrow(task, schema)

    return asked(made)


def asked(question: Callable[[], T]) -> T:
    """Return the result of a call to Spark; errors become one line without their text, which may hold records.

    Parameters
    ----------
    question : callable
        Function without arguments that calls Spark.

    Raises
    ------
    InvalidInput
        If Spark raises anything.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        return question()
    except (PySparkException, Py4JError) as error:
        refusal = explained(error)
    raise refusal  # here, so that the original does not travel along as its context


def explained(error: Exception) -> InvalidInput:
    """Return the error that explains in one line what Spark found wrong, without quoting records.

    Parameters
    ----------
    error : Exception
        What Spark raised. Of its text only names of modules, of error conditions and of classes are used.
    """
    text = str(error)
    if missing := re.search(r"No module named '(\w+)", text):
        return InvalidInput(
            f"Python on a worker of Spark has no module {missing[1]}; install shuffledp with the extra spark for the "
            "Python that the workers run (PYSPARK_PYTHON), in the driver's version"
        )
    if "PYTHON_VERSION_MISMATCH" in text:
        return InvalidInput(
            "the workers of Spark run another version of Python than the driver; set PYSPARK_PYTHON to the same"
        )
    if failed := re.search(r"a task of shuffledp failed with (\w+)", text):
        return InvalidInput(
            f"a task failed with {failed[1]} as often as Spark tries one; the logs of the workers have the place"
        )
    return InvalidInput(
        f"Spark could not evaluate the dataframe ({_kind(error)}); evaluate its columns without shuffledp to see why"
    )


def _kind(error: Exception) -> str:
    """Name what Spark found wrong: its own condition, or the class of the innermost Java exception."""
    if inner := re.match(r"\[([A-Z_0-9.]+)\]", str(error)):
        return inner[1]
    if condition := getattr(error, "getCondition", lambda: None)():
        return str(condition)
    java = getattr(error, "java_exception", None)
    if java is None:
        return type(error).__name__
    for _ in range(_DEPTH):
        cause = java.getCause()
        if cause is None:
            break
        java = cause
    return str(java.getClass().getSimpleName())
