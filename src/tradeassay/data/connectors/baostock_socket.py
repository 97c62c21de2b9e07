"""A transport for baostock that cannot hang.

The library reads from its socket in a loop without a time limit, and when the server hangs up it goes on reading
nothing for ever. It keeps its connector in a slot of its own (``SocketUtil.instance``). A connector of ours in
that slot gives it a socket with a time limit that notices a hang-up and a broken body, and remembers what went
wrong, because the library prints its errors and then forgets them.
"""

from __future__ import annotations

import socket
import zlib
from typing import Any

from tradeassay.core.errors import require

HEADER = 21
END = b"<![CDATA[]]>\n"


class WatchedSocket:
    """What the library uses of a socket: ``send``, ``recv`` and ``close``. ``fault`` says what went wrong."""

    def __init__(self, raw: socket.socket, timeout: float, compressed: tuple[str, ...]) -> None:
        self._raw = raw
        self._timeout = timeout
        self._compressed = compressed
        self._answer = b""
        self.fault: str | None = None

    def send(self, message: bytes) -> int:
        """Send a whole message."""
        self._answer = b""
        try:
            self._raw.sendall(message)
        except OSError as error:
            self.fault = f"the connection failed: {error}"
            raise
        return len(message)

    def recv(self, size: int) -> bytes:
        """Return the next bytes; raises :class:`OSError` on a time-out, a hang-up or a broken body."""
        try:
            part = self._raw.recv(size)
        except TimeoutError:
            self.fault = f"nothing came within {self._timeout:g} s"
            raise
        except OSError as error:
            self.fault = f"the connection failed: {error}"
            raise
        if not part:
            self.fault = "the answer broke off in the middle"
            raise ConnectionError(self.fault)
        self._answer += part
        if self._answer.endswith(END):
            self._check_body()
        return part

    def _check_body(self) -> None:
        head = self._answer[:HEADER].decode(errors="replace").split("\1")
        if len(head) == 3 and head[1] in self._compressed and head[2].isdecimal():
            try:
                zlib.decompress(self._answer[HEADER : HEADER + int(head[2])])
            except zlib.error as error:
                self.fault = "the answer broke off in the middle"
                raise ConnectionError(self.fault) from error

    def close(self) -> None:
        """Close the connection."""
        self._raw.close()


class Watch:
    """Puts watched sockets under the library while it is entered; leaves it as it was."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._before: Any = None
        self._utility: Any = require("baostock.util.socketutil", "ashare")
        self._context: Any = require("baostock.common.context", "ashare")
        self._constants: Any = require("baostock.common.contants", "ashare")
        self.failed: str | None = None
        """Why the last connection could not be made, None when it was."""

    @property
    def fault(self) -> str | None:
        """What went wrong on the wire since the last connection, None when nothing did."""
        if self.failed is not None:
            return self.failed
        present = getattr(self._context, "default_socket", None)
        return present.fault if isinstance(present, WatchedSocket) else None

    def __enter__(self) -> Watch:
        base = self._utility.SocketUtil
        connector = type("WatchedConnector", (base,), {"connect": lambda _, api_key="": self.connect(api_key)})
        self._before = base.instance
        base.instance = object.__new__(connector)
        return self

    def __exit__(self, *_: object) -> None:
        self.hang_up()
        self._utility.SocketUtil.instance = self._before

    def connect(self, api_key: str) -> None:
        """Connect to the host that the library's own constants name; called by the library when it logs in."""
        names = self._constants
        # Keys, and a server of their own for those who have one, came with version 0.9.
        host = names.BAOSTOCK_VIP_SERVER_IP if api_key.startswith("bs-") else names.BAOSTOCK_SERVER_IP
        self.hang_up()
        try:
            raw = socket.create_connection((host, names.BAOSTOCK_SERVER_PORT), timeout=self._timeout)
        except OSError as error:
            late = isinstance(error, TimeoutError)
            self.failed = f"nothing came within {self._timeout:g} s" if late else f"the connection failed: {error}"
            return
        self.failed = None
        self._context.default_socket = WatchedSocket(raw, self._timeout, names.COMPRESSED_MESSAGE_TYPE_TUPLE)

    def hang_up(self) -> None:
        """Close the present connection, if there is one."""
        present = getattr(self._context, "default_socket", None)
        if present is not None:
            present.close()
        self._context.default_socket = None
