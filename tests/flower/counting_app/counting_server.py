"""A server that trains four rounds, then asks again and again; it writes what it got to a file."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import numpy as np
from counting_client import TERMS
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from shuffledp.flower import ShuffledStrategy

app = ServerApp()


def model(value: float) -> ArrayRecord:
    """The model, all its numbers alike."""
    return ArrayRecord({"weights": Array(np.full(16, value, dtype=np.float32))})


def asked(grid: Grid, server_round: int | None, value: float) -> list[str]:
    """The bytes of every node's answer in hexadecimal, or "error", by node."""
    told = {"shuffledp-terms": TERMS.fingerprint} | ({} if server_round is None else {"server-round": server_round})
    content = {"arrays": model(value), "config": ConfigRecord(told)}
    sent = [
        Message(RecordDict(content), dst_node_id=node, message_type="train") for node in sorted(grid.get_node_ids())
    ]
    found = {reply.metadata.src_node_id: reply for reply in grid.send_and_receive(sent)}
    return [
        "error" if reply.has_error() else "".join(a.data.hex() for a in reply.content["arrays"].values())
        for _, reply in sorted(found.items())
    ]


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train, then try to get more than three messages out of anybody."""
    del context
    nodes, until = int(os.environ["COUNTING_NODES"]), time.monotonic() + 120
    while len(list(grid.get_node_ids())) < nodes and time.monotonic() < until:
        time.sleep(0.5)
    inner = FedAvg(fraction_evaluate=0.0, min_train_nodes=nodes, min_available_nodes=nodes)
    strategy = ShuffledStrategy(inner, TERMS, min_messages=nodes, delta=1e-5)
    strategy.start(grid, model(0.0), num_rounds=4)
    report = strategy.report()
    found = {
        "released": report.guarantee.rounds,
        "refused": [number for number, _ in report.refused],
        "private": report.guarantee.private,
        "again": [asked(grid, 3, value) for value in (0.0, 7.0)],
        "older": asked(grid, 2, 0.0),
        "beyond": asked(grid, 9, 0.0),
        "unnumbered": asked(grid, None, 0.0),
    }
    Path(os.environ["COUNTING_OUT"]).write_text(json.dumps(found), encoding="utf-8")
