"""The Flower app in Flower's own simulation (ray):  python examples/flower_app/run_simulation.py [NODES]."""

from __future__ import annotations

import sys

from client_app import app as client_app
from flwr.simulation import run_simulation
from server_app import app as server_app
from task import CLIENTS

if __name__ == "__main__":
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else CLIENTS
    run_simulation(server_app, client_app, nodes, backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0.0}})
