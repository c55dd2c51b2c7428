"""The command line: parse, make one library call, hand the result to one renderer.

Exit status 0 done; 2 bad input or refused; 1 internal failure; 130 interrupted. Anything but 0 comes with
exactly one line on stderr, ``error: what, which value, what to do``.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
import threading
from collections.abc import Sequence

from shuffledp.errors import InvalidInput, OutOfRegime, ShuffleDPError

DONE, INTERNAL, REFUSED, INTERRUPTED = 0, 1, 2, 130
DEBUG_VARIABLE = "SHUFFLEDP_DEBUG"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit.

    Parameters
    ----------
    arguments : sequence of str, optional
        Command and options; those of the process by default.

    Raises
    ------
    SystemExit
        Always, with the exit status above. With SHUFFLEDP_DEBUG set, internal failures keep their traceback.
    """
    sys.exit(_run(list(sys.argv[1:] if arguments is None else arguments)))


def _run(arguments: list[str]) -> int:
    try:
        from typer import TyperException
    except ImportError:  # before typer had exceptions of its own, it raised click's
        from click import ClickException as TyperException  # pyright: ignore[reportMissingImports, reportUnknownVariableType]

    from shuffledp.cli.app import app
    from shuffledp.cli.output import COMMAND_LINE

    if threading.current_thread() is threading.main_thread():  # a polite kill leaves nothing half-written either
        signal.signal(signal.SIGTERM, _leave)
    COMMAND_LINE.set(shlex.join(["shuffledp", *arguments]))
    try:
        status = app(arguments, prog_name="shuffledp", standalone_mode=False) or DONE
        # The parser turns Ctrl-C into this status without a word.
        return _fail("interrupted; nothing was written", INTERRUPTED) if status == INTERRUPTED else status
    except (InvalidInput, OutOfRegime) as error:
        return _fail(str(error), REFUSED)
    except TyperException as error:
        return _fail(_usage(error.format_message(), arguments), REFUSED)
    except ShuffleDPError as error:
        return _fail(f"{error}; nothing was released", INTERNAL)
    except BrokenPipeError:  # the reader of our output has gone, as in `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return INTERNAL
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        what = f"{type(error).__name__}: {error}"
        return _fail(f"internal failure ({what}); nothing was released; {DEBUG_VARIABLE}=1 shows where", INTERNAL)


def _usage(message: str, arguments: list[str]) -> str:
    """Complete the parser's message by where to look."""
    from shuffledp.cli.app import COMMANDS

    command = arguments[0] if arguments else ""
    page = f"shuffledp {command} --help" if command in COMMANDS else "shuffledp --help"
    return f"{message.rstrip('.')}; see {page}"


def _leave(number: int, _frame: object) -> None:
    sys.exit(128 + number)


def _fail(message: str, status: int) -> int:
    line = "".join(c if c.isprintable() else "?" for c in " ".join(message.split()))  # a file may hold anything
    print("error:", line if len(line) <= 600 else line[:597] + "...", file=sys.stderr)
    return status
