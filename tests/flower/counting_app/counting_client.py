"""Clients that send three messages each: by a limit on messages, or by one on their own epsilon."""

from __future__ import annotations

import os

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from shuffledp.flower import LocalRandomizer, Terms

BITS = os.environ.get("COUNTING_LIMIT") == "epsilon"
TERMS = (
    Terms(clip=1.0, levels={"all": (1.0, 0.0)}, release="sum", mechanism="sketch")
    if BITS
    else Terms(clip=1.0, levels={"all": (4.0, 1e-7)}, release="sum")
)
# three bits of budget 1 cost a client 3, in total, against whoever runs the server
LIMIT = {"max_epsilon": 3.0} if BITS else {"max_messages": 3}

app = ClientApp(mods=[LocalRandomizer(TERMS, level="all", **LIMIT)])


@app.train()
def train(message: Message, context: Context) -> Message:
    """Move every number by one."""
    del context
    (key, model), *_ = message.content.array_records.items()
    moved = ArrayRecord({name: Array(array.numpy() + np.float32(1.0)) for name, array in model.items()})
    return Message(RecordDict({key: moved}), reply_to=message)
