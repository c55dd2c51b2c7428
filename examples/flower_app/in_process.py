"""Run a Flower ClientApp and strategy in this process: no ray, no network. For examples and tests, not for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flwr.app import Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity  # a message asks who makes it; a real server sets this itself

SERVER_NODE = 1


class InProcessGrid(Grid):
    """A grid whose nodes are calls.

    Parameters
    ----------
    app : ClientApp
        What every node runs.
    nodes : list of dict
        Configuration of each node (``context.node_config``).
    """

    def __init__(self, app: ClientApp, nodes: list[dict[str, Any]]) -> None:
        TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, SERVER_NODE, 1
        self.app = app
        self.contexts = {100 + i: Context(1, 100 + i, config, RecordDict(), {}) for i, config in enumerate(nodes)}

    def set_run(self, run: Any) -> None:
        """There is only one."""
        raise NotImplementedError

    @property
    def run(self) -> Any:
        """There is only one."""
        raise NotImplementedError

    def create_message(self, *args: Any, **kwargs: Any) -> Message:
        """Old interface of Flower, not used by strategies."""
        raise NotImplementedError

    def get_node_ids(self) -> Iterable[int]:
        """Who can be asked."""
        return list(self.contexts)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Strategies use `send_and_receive`."""
        raise NotImplementedError

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Strategies use `send_and_receive`."""
        raise NotImplementedError

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        """Let each node answer in turn; a node that raises answers with an error, as in a real run."""
        del timeout
        return [self._answer(message) for message in messages]

    def _answer(self, message: Message) -> Message:
        try:
            return self.app(message, self.contexts[message.metadata.dst_node_id])
        except Exception as problem:
            return Message(Error(0, str(problem)), reply_to=message)
