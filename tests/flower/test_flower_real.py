"""Clients keep their own count in Flower as people run it: in its simulation (ray), and behind a SuperLink."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="needs the extra shuffledp[flower]")

APP = Path(__file__).resolve().parent / "counting_app"
BIN = Path(sys.executable).parent
SIMULATION = """
from counting_client import app as clients
from counting_server import app as server
from flwr.simulation import run_simulation
run_simulation(server, clients, {nodes}, backend_config={{"client_resources": {{"num_cpus": 1, "num_gpus": 0.0}}}})
"""


def environment(folder: Path, limit: str, nodes: int) -> dict[str, str]:
    told = {"COUNTING_LIMIT": limit, "COUNTING_NODES": str(nodes), "COUNTING_OUT": str(folder / "found.json")}
    own = {
        "FLWR_HOME": str(folder),
        "FLWR_TELEMETRY_ENABLED": "0",
        "OMP_NUM_THREADS": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    imported = [str(APP), *filter(None, [os.environ.get("PYTHONPATH")])]
    paths = {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(imported)}
    return os.environ | own | told | paths


def checked(folder: Path, nodes: int) -> None:
    found = json.loads((folder / "found.json").read_text(encoding="utf-8"))
    assert found["released"] == 3
    assert found["refused"] == [4]
    assert found["private"] is True
    first, second = found["again"]
    assert first == second  # the bytes of round 3, whatever the model that is sent with the question
    assert len(first) == nodes
    assert len(set(first)) == nodes
    assert "error" not in first
    for kind in ("older", "beyond", "unnumbered"):
        assert found[kind] == ["error"] * nodes


def test_in_a_simulation_with_ray(tmp_path):
    pytest.importorskip("ray", reason="needs flwr[simulation]")
    run = [sys.executable, "-W", "ignore", "-c", SIMULATION.format(nodes=4)]
    done = subprocess.run(
        run, env=environment(tmp_path, "messages", 4), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    checked(tmp_path, 4)


def free_ports(n: int) -> list[int]:
    with contextlib.ExitStack() as held:
        taken = [held.enter_context(socket.socket()) for _ in range(n)]
        for each in taken:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in taken]


def listening(port: int, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.3)
    raise AssertionError(f"nothing listens on port {port} after {seconds} s")


def test_behind_a_superlink_with_two_supernodes(tmp_path):
    own = environment(tmp_path, "epsilon", 2)
    port, *nodes = free_ports(3)
    (tmp_path / "config.toml").write_text(
        f'[superlink]\ndefault = "here"\n\n[superlink.here]\naddress = "127.0.0.1:{port}"\ninsecure = true\n',
        encoding="utf-8",
    )
    # what the app needs is installed: nothing is fetched
    link = ["--insecure", "--disable-runtime-dependency-installation", "--host", "127.0.0.1", "--port", str(port)]
    commands = [[BIN / "flower-superlink", *link]]
    commands += [
        [BIN / "flower-supernode", "--insecure", "--superlink", f"127.0.0.1:{port}", "--port", str(own_port)]
        for own_port in nodes
    ]
    running = list[subprocess.Popen[bytes]]()
    try:
        for at, command in enumerate(commands):
            with (tmp_path / f"log{at}.txt").open("wb") as log:
                running.append(
                    subprocess.Popen(command, env=own, cwd=tmp_path, stdout=log, stderr=log, start_new_session=True)
                )
            if at == 0:
                listening(port, 60)
        run = [BIN / "flwr", "run", str(APP), "here", "--stream"]  # until the run ends
        asked = subprocess.run(run, env=own, capture_output=True, text=True, timeout=300, check=False)
        logs = (tmp_path / f"log{at}.txt" for at in range(len(commands)))
        assert (tmp_path / "found.json").exists(), "\n".join(
            [asked.stdout[-2000:], asked.stderr[-2000:], *(log.read_text(errors="replace")[-3000:] for log in logs)]
        )
    finally:
        for process in reversed(running):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 15)
        for process in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
    checked(tmp_path, 2)
