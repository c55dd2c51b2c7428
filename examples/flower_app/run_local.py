"""The Flower app in this process, without ray and without network:  python examples/flower_app/run_local.py."""

from __future__ import annotations

from client_app import app
from in_process import InProcessGrid
from server_app import train
from task import CLIENTS, accuracy

NODES = [{"partition-id": i, "level": "open" if i % 2 else "strict"} for i in range(CLIENTS)]


def main() -> None:
    """Train on 1000 nodes, and say how good and how private the model is."""
    arrays, strategy = train(InProcessGrid(app, NODES))
    print(f"accuracy on other digits: {100 * accuracy(arrays):.1f} %")
    print(strategy.report().describe())


if __name__ == "__main__":
    main()
