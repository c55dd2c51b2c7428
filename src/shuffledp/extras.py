"""What the extras of the package bring, and the one way to install them."""

from __future__ import annotations

from collections.abc import Mapping

EXTRA_OF: Mapping[str, str] = {
    "matplotlib": "figures",
    "uvicorn": "service",
    "uvloop": "service",
    "httptools": "service",
    "segno": "service",
    "torch": "torch",
    "flwr": "flower",
    "pyspark": "spark",
    "pyarrow": "spark",
    "pandas": "spark",
}
"""The extra that brings a module."""


def way_to_install(extra: str) -> str:
    """Say how an extra is installed; no package index has shuffledp yet, so from its sources.

    Parameters
    ----------
    extra : str
        Its name.

    Examples
    --------
    >>> way_to_install("figures")
    "in the folder with shuffledp's sources, run: pip install '.[figures]'"
    """
    return f"in the folder with shuffledp's sources, run: pip install '.[{extra}]'"


def what_is_missing(who: str, module: str, extra: str | None = None) -> str:
    """Say that something needs a module of an extra, and how to get it.

    Parameters
    ----------
    who : str
        What needs it: a command, or a part of the package.
    module : str
        What is not installed.
    extra : str, optional
        The extra that brings it; that of `EXTRA_OF` by default.

    Examples
    --------
    >>> what_is_missing("serve", "uvicorn")
    "serve needs uvicorn, which is not installed; in the folder with shuffledp's sources, run: pip install '.[service]'"
    """
    return f"{who} needs {module}, which is not installed; {way_to_install(extra or EXTRA_OF[module])}"
