"""A small HTTP(S) server on an ephemeral loopback port.

It can also be late, break off, or stand in as a proxy.
"""

from __future__ import annotations

import json
import socketserver
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, unquote, urlsplit


@dataclass(frozen=True)
class Ask:
    """One request as it arrived."""

    host: str
    path: str
    query: dict[str, str]


@dataclass(frozen=True)
class Reply:
    """What to send.

    ``cut`` promises the whole body and sends half; ``stall`` sends nothing at all.
    """

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    stall: bool = False

    @classmethod
    def of(cls, value: object, status: int = 200, **headers: str) -> Reply:
        return cls(
            json.dumps(value).encode(), status, {"Content-Type": "application/json", **headers}
        )


class Serving:
    """A server in a thread of its own on an ephemeral loopback port; ``asked`` holds everything
    it was asked.
    """

    def __init__(
        self, server: type[socketserver.BaseServer], handler: type[socketserver.BaseRequestHandler]
    ):
        self.asked: list = []
        self.released = threading.Event()
        self._server = server(("127.0.0.1", 0), handler)
        self._server.stand_in = self
        self._server.daemon_threads = True
        # Clients hang up on purpose here; a traceback would only be noise.
        self._server.handle_error = lambda request, client_address: None
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class StandIn(Serving):
    """A server that answers with ``answer(ask)``, over TLS or as a proxy to it."""

    def __init__(self, answer: Callable[[Ask], Reply], tls: ssl.SSLContext):
        self.answer, self.tls = answer, tls
        super().__init__(ThreadingHTTPServer, _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *args):
        pass

    def do_CONNECT(self):
        self.send_response(200)
        self.end_headers()
        stand_in = self.server.stand_in
        self.connection = stand_in.tls.wrap_socket(self.connection, server_side=True)
        self.rfile = self.connection.makefile("rb", -1)
        self.wfile = self.connection.makefile("wb", 0)
        self.close_connection = False

    def do_GET(self):
        stand_in = self.server.stand_in
        url = urlsplit(self.path)
        ask = Ask(self.headers.get("Host", ""), unquote(url.path), dict(parse_qsl(url.query)))
        length = int(self.headers.get("Content-Length") or 0)
        if length:
            self.rfile.read(length)
        stand_in.asked.append(ask)
        reply = stand_in.answer(ask)
        if reply.stall:
            stand_in.released.wait(20)
            self.close_connection = True
            return
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        if reply.cut:
            self.wfile.write(reply.body[: len(reply.body) // 2])
            self.wfile.flush()
            if isinstance(self.connection, ssl.SSLSocket):
                self.connection.unwrap()  # an orderly goodbye: the body is short, not the connection torn
            self.close_connection = True
            return
        self.wfile.write(reply.body)

    do_POST = do_GET


def instead(answer, applies: Callable[..., bool], times: int = 99) -> Callable[..., object]:
    """Make a ``before`` that gives another answer to the first ``times`` requests that it
    applies to.
    """
    left = [times]

    def before(*asked):
        if left[0] > 0 and applies(*asked):
            left[0] -= 1
            return answer
        return None

    return before
