"""The package's optional dependencies (extras): which module belongs to which extra, and how to install an extra."""

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
    """Return the command that installs an extra, as text for a message.

    It installs from the sources, since no package index has shuffledp yet.

    Parameters
    ----------
    extra : str
        Name of the extra, such as ``"figures"``.

    Examples
    --------
    >>> way_to_install("figures")
    "in the folder with shuffledp's sources, run: pip install '.[figures]'"
    """
    return f"in the folder with shuffledp's sources, run: pip install '.[{extra}]'"


def what_is_missing(who: str, module: str, extra: str | None = None) -> str:
    """Return a message that something needs a module that is not installed, with the command to install it.

    Parameters
    ----------
    who : str
        What needs it: a command, or a part of the package.
    module : str
        Name of the module that is not installed.
    extra : str, optional
        Name of the extra that contains the module; by default looked up in `EXTRA_OF`.

    Examples
    --------
    >>> what_is_missing("serve", "uvicorn")
    "serve needs uvicorn, which is not installed; in the folder with shuffledp's sources, run: pip install '.[service]'"
    """
    return f"{who} needs {module}, which is not installed; {way_to_install(extra or EXTRA_OF[module])}"
