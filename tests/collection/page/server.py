"""A small server that speaks collection.md's HTTP for one task, and misbehaves on request: the page's counterpart.

`Server.mode` says what becomes of a report: "hold", a status such as 503, or "cut": it is held, but the connection is
cut before the answer. What the server has opened is in `reports`, every request in `requests`.
"""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from shuffledp.collection.batch import Outer, open_outer, split_inners
from shuffledp.collection.sealing import Opener
from shuffledp.collection.survey_page import content_security_policy, survey_page
from shuffledp.collection.task import PostedTask
from tests.collection.tasks import ANALYZER, SHUFFLER


class Server(ThreadingHTTPServer):
    """One task, on a free port of the loopback; a context manager. `plain` is a host without headers of its own."""

    daemon_threads = True

    def __init__(self, task: PostedTask, page: bytes | None = None, *, plain: bool = False) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.task, self.page = task, page or survey_page()
        self.headers = {} if plain else {"Content_Security_Policy": content_security_policy()}
        self.tampered = False
        self.mode: str | int = "hold"
        self.state: dict[str, Any] = {"state": "open", "held": 0}
        self.releases: dict[str, bytes] = {}
        self.release_named = ""
        self.codes: list[str] | None = None
        self.requests: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []
        self.held: dict[bytes, Outer] = {}

    def __enter__(self) -> Server:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that is closed breaks its connections; anything else is told as always."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def link(self) -> str:
        return f"{self.url}/t/{self.task.id}"

    def opened(self) -> list[dict[str, Any]]:
        """What shuffler and analyzer together read of the held reports."""
        analyzer = Opener(ANALYZER)
        return [
            {
                "level": outer.level,
                "code": outer.code.hex() if outer.code else None,
                "reports": [
                    int.from_bytes(analyzer.open(inner, self.task.inner_info(j)) or b"\xff" * 9, "little")
                    for j, pieces in enumerate(split_inners(self.task, outer.inners))
                    for inner in pieces
                ],
            }
            for outer in self.held.values()
        ]

    def take(self, body: bytes) -> tuple[int, bytes]:
        self.bodies.append(body)
        if isinstance(self.mode, int):
            return self.mode, b""
        if len(body) != self.task.size:
            return 400, b""
        outer = open_outer(self.task, body, Opener(SHUFFLER))
        if not isinstance(outer, Outer):
            return 200, bytes([outer])
        spent = {other.code for sealed, other in self.held.items() if sealed != body}
        if self.codes is not None and ((outer.code or b"").hex() not in self.codes or outer.code in spent):
            return 200, b"\3"
        self.held[body] = outer
        return (0, b"") if self.mode == "cut" else (200, b"\0")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, format: str, *args: object) -> None:
        del format, args

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        if status == 0:
            self.close_connection = True
            return
        self.send_response(status)
        open_to_all = {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "Retry-After"}
        plain = {"Content-Length": str(len(body)), "Cache-Control": "no-store"}
        retry = {"Retry-After": "1"} if status in (409, 503) else {}
        for name, value in (open_to_all | plain | retry | headers).items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        home = self.server
        task = home.task.id
        if self.path == "/control":
            seen = {"requests": home.requests, "opened": home.opened(), "size": home.task.size}
            return self.answer(200, json.dumps(seen | {"bodies": [body.hex() for body in home.bodies]}).encode())
        home.requests.append({"method": "GET", "path": self.path, "headers": dict(self.headers)})
        if self.path == f"/t/{task}":
            return self.answer(200, home.page, Content_Type="text/html; charset=utf-8", **home.headers)
        if self.path == f"/v1/{task}":
            data = home.task.data
            return self.answer(
                200, data[:-1] + b"?" if home.tampered else data, Content_Type="application/octet-stream"
            )
        if self.path == f"/v1/{task}/status":
            return self.answer(200, json.dumps(home.state).encode(), Content_Type="application/json")
        if self.path == f"/v1/{task}/release" and home.release_named:
            return self.answer(200, home.releases[home.release_named], Content_Type="application/octet-stream")
        return self.answer(404)

    def do_POST(self) -> None:
        home = self.server
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/control":
            for name, value in json.loads(body).items():
                setattr(home, name, value)
            return self.answer(200)
        home.requests.append({"method": "POST", "path": self.path, "headers": dict(self.headers)})
        if self.path != f"/v1/{home.task.id}/reports":
            return self.answer(404)
        return self.answer(*home.take(body))
