"""The command line: parse, make one library call, hand the result to one renderer.

Exit status 0 done; 2 bad input or refused; 1 internal failure; 130 interrupted. Anything but 0 comes with
exactly one line on stderr, ``error: what, which value, what to do``.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import gc
import json
import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from shuffledp.errors import InvalidInput, OutOfRegime, ShuffleDPError

DONE, INTERNAL, REFUSED, INTERRUPTED = 0, 1, 2, 130
DEBUG_VARIABLE = "SHUFFLEDP_DEBUG"
NEW_OBJECTS = 100_000
"""Number of new objects after which the garbage collector looks for cycles.

Loading modules makes many objects and hardly any garbage; the default of 700 costs a command a tenth of its time.
"""


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
    from shuffledp.shell.output import left

    gc.set_threshold(NEW_OBJECTS)
    try:
        sys.exit(_run(list(sys.argv[1:] if arguments is None else arguments)))
    finally:
        left().close()


def _run(arguments: list[str]) -> int:
    try:
        from typer import TyperException
    except ImportError:  # before typer had exceptions of its own, it raised click's
        from click import ClickException as TyperException  # pyright: ignore[reportMissingImports, reportUnknownVariableType]

    from shuffledp.cli.front import spelled
    from shuffledp.shell.output import COMMAND_LINE, LEFT, Left

    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - closed before the command began
        return _fail("standard output is closed, so no answer could be shown; nothing was done: open it", REFUSED)
    if threading.current_thread() is threading.main_thread():  # a polite kill leaves nothing half-written either
        signal.signal(signal.SIGTERM, _leave)
    arguments = spelled(arguments)
    COMMAND_LINE.set(shlex.join(["shuffledp", *arguments]))
    LEFT.set(Left())
    with contextlib.suppress(AttributeError):  # a terminal that lacks a letter shows its number instead of failing
        codecs.register_error("json", _escaped)
        sys.stdout.reconfigure(errors="json")  # pyright: ignore[reportAttributeAccessIssue]
    try:
        status = _parser(arguments)(arguments, prog_name="shuffledp", standalone_mode=False) or DONE
        sys.stdout.flush()
        # The parser turns Ctrl-C into this status without a word.
        return _interrupted() if status == INTERRUPTED else status
    except KeyboardInterrupt:
        return _interrupted()
    except (InvalidInput, OutOfRegime) as error:
        from shuffledp.cli.app import options_of
        from shuffledp.cli.front import in_options

        message = in_options(str(error), arguments, options_of(arguments))
        return _fail("; ".join([message, *_left_behind()]), REFUSED)
    except TyperException as error:
        if not error.format_message():  # a command that only has commands below it has shown its help
            return DONE
        return _fail(_usage(error.format_message(), arguments), REFUSED)
    except ShuffleDPError as error:
        return _fail(f"{error}; {_released()}", INTERNAL)
    except SystemExit as stop:  # a signal, or a reader of our output who has gone, as in `| head`
        return _stopped(stop.code if isinstance(stop.code, int) else INTERNAL)
    except Exception as error:
        if needs := _module_missing(error, arguments):
            return _fail(needs, REFUSED)
        if os.environ.get(DEBUG_VARIABLE):
            raise
        if isinstance(error, OSError) and error.filename is None:  # files of ours say their names
            if isinstance(error, BrokenPipeError) or (sys.platform == "win32" and error.errno == errno.EINVAL):
                return _stopped(INTERNAL)  # on Windows a pipe without a reader gives EINVAL
            _silence_stdout()
            what = f"standard output cannot be written ({error.strerror or error})"
            return _fail(f"{what}; {_released('part of the answer may have been shown')}", REFUSED)
        what = f"{type(error).__name__}: {error}"
        return _fail(f"internal failure ({what}); {_released()}; {DEBUG_VARIABLE}=1 shows where", INTERNAL)


def _module_missing(error: Exception, arguments: list[str]) -> str:
    """Return which extra or part of the package a command needs; "" if the error is another one."""
    from shuffledp.errors import EXTRA_OF, what_is_missing

    name = (error.name or "") if isinstance(error, ModuleNotFoundError) else ""
    if name.startswith("shuffledp."):
        return f"{_command(arguments)} needs {name}, which this copy lacks; install it whole"
    module = name.partition(".")[0]
    return what_is_missing(_command(arguments), module) if module in EXTRA_OF else ""


def _parser(arguments: list[str]) -> Callable[..., Any]:
    """Return the command line, with only the one command if it is a question of a table, which starts faster."""
    from shuffledp.cli.front import QUESTIONS, alone

    if arguments and arguments[0] in (*QUESTIONS, "release"):
        return alone(arguments[0])
    from shuffledp.cli.app import parser

    return parser()


def _interrupted() -> int:
    return _fail(f"interrupted; {_released('nothing was written')}", INTERRUPTED)


def _stopped(status: int) -> int:
    """Return the exit status, after reporting a signal, or a budget spent on output that nobody read."""
    left_behind = _left_behind()
    if status > 128:
        return _fail(f"stopped by signal {status - 128}; {_released('nothing was written')}", status)
    _silence_stdout()
    return _fail("; ".join(["the reader of standard output has gone", *left_behind]), status) if left_behind else status


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """Return letters that an output cannot encode as JSON escapes, so that JSON stays valid."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(json.dumps(letter)[1:-1] for letter in error.object[error.start : error.end]), error.end


def _released(nothing: str = "nothing was released") -> str:
    """Return words for what a failed command has spent, and for the files that exist nevertheless."""
    return "; ".join(_left_behind()) or nothing


def _left_behind() -> list[str]:
    from shuffledp.shell.output import left

    return left().sentences()


def _silence_stdout() -> None:
    """Discard further output to stdout, which would make the exit fail again."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _command(arguments: Sequence[str]) -> str:
    """Return the name of the typed command, with its subcommand."""
    return " ".join(arguments[: 2 if arguments[0] == "task" else 1])


def _usage(message: str, arguments: list[str]) -> str:
    """Return the parser's message with a reference to the help page."""
    from shuffledp.cli.app import COMMANDS

    command = arguments[0] if arguments else ""
    page = f"shuffledp {command} --help" if command in COMMANDS else "shuffledp --help"
    within = arguments[1:2] and not arguments[1].startswith("-") and not message.startswith("No such command")
    if command == "task" and within:
        page = f"shuffledp {_command(arguments)} --help"
    return f"{message.rstrip('.')}; see {page}"


def _leave(number: int, _frame: object) -> None:
    sys.exit(128 + number)


def _fail(message: str, status: int) -> int:
    line = "".join(c if c.isprintable() else "?" for c in " ".join(message.split()))  # a file may hold anything
    print("error:", line if len(line) <= 600 else line[:597] + "...", file=sys.stderr)
    return status
