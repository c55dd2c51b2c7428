"""Bodies of requests: read as they arrive, within a bounded number of bytes, some of which are kept for one report.

A byte is booked when it is here, never when it is announced: a connection that announces a body and sends nothing
takes no room from anybody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from enum import Enum
from typing import Any

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

MOST_BYTES = 64 << 20
"""Bytes of request bodies held at one time."""
KEPT_BYTES = 16 << 20
"""Those of them that only requests with a single report may use: a person's own device sends one."""
BODY_SECONDS = 30.0
"""Within which a body must have come."""


class Gone(Exception):
    """The client has left before its request was whole."""


class Unread(Enum):
    """Why a body was not read to its end."""

    WRONG = "the body is longer or shorter than announced, or late"
    NO_ROOM = "too many bytes of other bodies are held"


class Room:
    """The bytes of all bodies that are held at one time, whole ones that wait for their answer among them.

    Parameters
    ----------
    most : int
        Bytes of all bodies together.
    kept : int
        Those of them that only requests with a single report may use.
    """

    def __init__(self, most: int = MOST_BYTES, kept: int = KEPT_BYTES) -> None:
        self._most, self._kept = most, kept
        self.held = 0

    def take(self, size: int, *, single: bool) -> bool:
        """Book bytes that have arrived; False, and nothing is booked, if there is no room for them."""
        if self.held + size > self._most - (0 if single else self._kept):
            return False
        self.held += size
        return True


class Body:
    """One request's body; the room that its bytes take is given back at the end of the `with` block.

    Parameters
    ----------
    room : Room
        Where its bytes are booked.
    length : int
        Bytes that were announced.
    single : bool
        Whether it is a single report.
    """

    def __init__(self, room: Room, length: int, *, single: bool) -> None:
        self._room, self._length, self._single = room, length, single
        self._booked = 0

    def __enter__(self) -> Body:
        return self

    def __exit__(self, *_: object) -> None:
        self._room.held -= self._booked
        self._booked = 0

    async def read(self, receive: Receive) -> bytes | Unread:
        """Read the body to its end, or say why it was not read.

        Parameters
        ----------
        receive : callable
            ASGI's.

        Raises
        ------
        Gone
            If the client leaves before.
        """
        data = bytearray()  # a list of parts would hold fifty bytes for each byte that comes alone
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Gone
                    part = message.get("body", b"")
                    if len(data) + len(part) > self._length:
                        return Unread.WRONG
                    if not self._room.take(len(part), single=self._single):
                        return Unread.NO_ROOM
                    self._booked += len(part)
                    data += part
                    if not message.get("more_body", False):
                        return bytes(data) if len(data) == self._length else Unread.WRONG
        except TimeoutError:
            return Unread.WRONG
