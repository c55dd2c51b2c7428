"""Flower client: ordinary local training; LocalRandomizer lets out nothing but the clipped, noised update."""

from __future__ import annotations

from flwr.app import Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from task import CLIENTS, ROUNDS, TERMS, digits, local_training

from shuffledp.flower import LocalRandomizer


def level(context: Context) -> str:
    """Each node's configuration says what its owner chose; a simulation's nodes have only numbers, and take turns."""
    number = int(context.node_config["partition-id"])
    return str(context.node_config.get("level", "open" if number % 2 else "strict"))


app = ClientApp(mods=[LocalRandomizer(TERMS, level=level, max_messages=ROUNDS)])


@app.train()
def train(message: Message, context: Context) -> Message:
    """Train on this node's digits. The number of examples and the like are dropped by the mod."""
    rows, labels = digits("train")
    mine = slice(int(context.node_config["partition-id"]), None, CLIENTS)
    update = local_training(message.content["arrays"], rows[mine], labels[mine])
    content = RecordDict({"arrays": update, "metrics": MetricRecord({"num-examples": labels[mine].size})})
    return Message(content, reply_to=message)
