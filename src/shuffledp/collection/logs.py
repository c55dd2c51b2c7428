"""What the service writes to its log: never a request, an address, or the text of an exception."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path
from typing import Any

OWN = ("shuffledp", "uvicorn")
"""Loggers whose messages hold no input; of others only the name and the level are written."""


def place_of(error: BaseException) -> str:
    """Name an exception by SQLite's code or its type, and the line that raised it, without its text."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{getattr(error, 'sqlite_errorname', type(error).__name__)}{where}"


def is_worth_a_line(record: logging.LogRecord) -> bool:
    """Leave out uvicorn's warnings about malformed requests, by which a stranger could fill the disk."""
    return not (record.name == "uvicorn.error" and record.levelno == logging.WARNING)


class Discreet(logging.Formatter):
    """Writes time, level and message of our own loggers; of an exception its type and line alone."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one line of the log."""
        if record.exc_info and record.exc_info[1] is not None:
            message = place_of(record.exc_info[1])
        elif record.name.split(".")[0] in OWN:
            message = " ".join(record.getMessage().split())
        else:
            message = "a message of another library, left out"
        return f"{self.formatTime(record, '%Y-%m-%dT%H:%M:%S')} {record.levelname.lower()}: {message}"


def log_config() -> dict[str, Any]:
    """Return the logging configuration of the service, for `logging.config.dictConfig`."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"discreet": {"()": Discreet}},
        "filters": {"worth": {"()": lambda: is_worth_a_line}},
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": "discreet",
                "filters": ["worth"],
                "stream": "ext://sys.stderr",
            }
        },
        "root": {"handlers": ["stderr"], "level": "INFO"},
    }
