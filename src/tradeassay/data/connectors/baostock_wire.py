"""Asking baostock: log in, ask one question at a time, read every page, say in plain words what went wrong.

The library reads from its socket in a loop without a time limit, and when the server hangs up it keeps reading
nothing forever. It keeps its connector in a slot of its own (``SocketUtil.instance``). A connector of ours in
that slot gives it a socket with a time limit that notices a hang-up and a broken body, and remembers what went
wrong, because the library prints its errors and then forgets them.
"""

from __future__ import annotations

import contextlib
import json
import socket
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tradeassay.core.errors import SourceError, require
from tradeassay.data.connectors.asked import changed_format
from tradeassay.data.connectors.retry import Runtime, Throttled, Unanswered, ask_with_retries, quietly

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


class SocketWatch:
    """Puts watched sockets under the library inside its block, and restores the library afterwards."""

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

    def __enter__(self) -> SocketWatch:
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
        # Keys, and a separate server for their holders, came with version 0.9.
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
        """Close the current connection, if there is one."""
        present = getattr(self._context, "default_socket", None)
        if present is not None:
            present.close()
        self._context.default_socket = None


VENDOR = "baostock"
Row = dict[str, str]

OK, NOT_LOGGED_IN, TOO_OLD, TOO_MANY_LOGINS, BANNED = "0", "10001001", "10001004", "10001005", "10001011"
WIRE_TROUBLE = ("10002", "10004001", "10004002")
"""Prefixes of the codes that the library itself gives when reading from the wire failed."""


class BaostockWire:
    """A conversation with baostock. Use inside :func:`conversation`."""

    def __init__(self, library: Any, watch: SocketWatch, runtime: Runtime) -> None:
        self._library = library
        self._watch = watch
        self._runtime = runtime
        self._logged_in = False

    def rows(self, what: str, needed: Sequence[str], method: str, *args: str, **named: str) -> list[Row]:
        """Call a query of the library and return all its rows.

        Raises :class:`SourceError` when it fails, or when a field in ``needed`` is missing from the answer.
        """

        def once() -> list[Row]:
            if not self._logged_in:
                self._log_in()
            return self._read(what, needed, getattr(self._library, method), args, named)

        return ask_with_retries(once, vendor=VENDOR, what=what, runtime=self._runtime)

    def _log_in(self) -> None:
        answer = self._attempt("the login", self._library.login)
        self._refuse("the login", answer)
        self._logged_in = True

    def _read(
        self,
        what: str,
        needed: Sequence[str],
        query: Callable[..., Any],
        args: Sequence[str],
        named: dict[str, str],
    ) -> list[Row]:
        rows: list[list[str]] = []

        def every_page() -> Any:
            result = query(*args, **named)
            # The library fetches the next page inside next(), and ends quietly when that fails.
            while result.error_code == OK and result.next():
                rows.append(result.get_row_data())
            return result

        result = self._attempt(what, every_page)
        self._refuse(what, result)
        missing = [name for name in needed if name not in result.fields]
        if missing:
            raise changed_format(VENDOR, what, f"no field {', '.join(missing)}", VENDOR)
        short = next((row for row in rows if len(row) != len(result.fields)), None)
        if short is not None:
            raise changed_format(VENDOR, what, f"a row reads {short}", VENDOR)
        return [dict(zip(result.fields, row, strict=True)) for row in rows]

    def _attempt(self, what: str, call: Callable[[], Any]) -> Any:
        try:
            result = call()
        except json.JSONDecodeError as error:
            self._logged_in = False
            raise Unanswered("the answer is not complete JSON") from error
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise changed_format(VENDOR, what, repr(error), VENDOR) from error
        if self._watch.fault is not None:
            self._logged_in = False
            raise Unanswered(self._watch.fault)
        return result

    def _refuse(self, what: str, result: Any) -> None:
        code, message = str(result.error_code), str(result.error_msg)
        if code == OK:
            return
        if code == NOT_LOGGED_IN or code.startswith(WIRE_TROUBLE):
            self._logged_in = False
            raise Unanswered(f"{message} ({code})")
        if code == TOO_MANY_LOGINS:
            raise Throttled(f"too many logins: {message} ({code})")
        mends = {
            BANNED: "baostock has barred this address; wait a day and ask for less at once",
            TOO_OLD: "pip install -U baostock",
        }
        raise SourceError(
            f"baostock refused {what}: {message} ({code})", hint=mends.get(code, "check the code and the days")
        )


@contextlib.contextmanager
def conversation(runtime: Runtime) -> Iterator[BaostockWire]:
    """Open a conversation; it logs in with the first question and hangs up at the end.

    Raises :class:`~tradeassay.core.errors.MissingExtra` when baostock is not installed.
    """
    library: Any = require("baostock", "ashare")
    with quietly("baostock"), SocketWatch(runtime.retry.timeout) as watch:
        yield BaostockWire(library, watch, runtime)
