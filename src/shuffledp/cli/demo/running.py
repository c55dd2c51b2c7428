"""A service in a process of its own, for demonstrations, benchmarks and tests: started, killed, and started again."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path

from shuffledp.errors import ShuffleDPError

_COMMAND = "from shuffledp.cli import main; main()"
_LAST_BYTES = 4096


class ServiceProcess:
    """`shuffledp serve` on loopback.

    Parameters
    ----------
    store : Path
        The SQLite file.
    log : Path, optional
        Where stderr goes; beside the store by default.
    """

    def __init__(self, store: Path, log: Path | None = None) -> None:
        self.store, self.log = store, log or store.with_suffix(".log")
        self._port = 0
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        """Address of the running service, the same after a restart."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        """Number of the process."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start, and wait until connections are taken.

        Raises
        ------
        ShuffleDPError
            If the service ends instead; the message is its own.
        """
        words = ["serve", "--store", str(self.store), "--port", str(self._port)]
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _COMMAND, *words], stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if "http://" not in line:
            self.kill()
            with open(self.log, "rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - _LAST_BYTES))
                last = log.read(_LAST_BYTES).decode(errors="replace").splitlines()[-1:]
            raise ShuffleDPError(f"the service did not start: {' '.join(last)}")
        self._port = int(line.split("http://")[1].split()[0].rpartition(":")[2])

    def kill(self) -> None:
        """End it with SIGKILL, as a failing machine would, and wait until it is gone."""
        self._end(lambda process: process.kill())

    def stop(self) -> None:
        """Ask it to end, and wait until it has."""
        self._end(lambda process: process.terminate())

    def _end(self, how: Callable[[subprocess.Popen[str]], None]) -> None:
        if self._process is not None:
            how(self._process)
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None


@contextlib.contextmanager
def running(store: Path, log: Path | None = None) -> Generator[ServiceProcess]:
    """Start a service and stop it at the end of the block.

    Parameters
    ----------
    store : Path
        The SQLite file.
    log : Path, optional
        Where stderr goes; beside the store by default.
    """
    service = ServiceProcess(store, log)
    try:
        service.start()
        yield service
    finally:
        service.stop()
