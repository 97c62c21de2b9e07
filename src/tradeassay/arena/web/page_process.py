"""Pages are made in a process of their own, so that an agent at a door never waits while a page is made.

The server keeps finished answers and asks that process, over a Unix socket, for those it does not have. Should the
process end it is started again; should that not help, pages are made in the server as well.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import uvicorn
from starlette.requests import Request

from tradeassay.arena.api.doors import Doors
from tradeassay.arena.queries.reader import ArenaReader
from tradeassay.arena.state.engine import open_engine
from tradeassay.arena.state.store import Store
from tradeassay.arena.web.app import create_app
from tradeassay.arena.web.context import LAGGING, Answers, Away, Body, House, Relayed
from tradeassay.arena.web.experts import Experts
from tradeassay.arena.web.pages import prepare, warm

READY_S = 60.0
"""How long a process that was just started may take to answer."""

MOST_STARTS = 4
WARM_AFTER_S = 8.0
SWITCH_S = 0.001
"""How long a page that is being made may keep the others waiting for the interpreter (Python's own: 5 ms)."""

MOST_ASKED = 64
"""How many pages may be on their way at once; more have to wait for one of them."""

PATIENCE_S = 120.0
"""How long a page may take to be made."""

_PASSED_ON = (b"accept-language", b"cookie")
_KEPT = ("content-type", "retry-after", "cache-control", "vary")
_Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class PagesShown(msgspec.Struct, frozen=True, kw_only=True):
    """What the pages are made from: the database, the season shown first, and the speed of a replay."""

    db: str
    current: str | None = None
    speed: str | None = None


class PageProcess:
    """The process that makes pages. It is started by :meth:`start`, early, and begins with :meth:`begin`."""

    def __init__(self, shown: PagesShown, say: Callable[[str], None]) -> None:
        self._shown = shown
        self._say = say
        self._folder = tempfile.TemporaryDirectory(prefix="tradeassay-")
        self._path = str(Path(self._folder.name) / "pages")
        self._starts = 0
        self._started = 0.0
        self._process: multiprocessing.process.BaseProcess | None = None
        self._begin: Callable[[], None] = lambda: None
        self._free: list[_Line] = []
        self._room = asyncio.Semaphore(MOST_ASKED)
        self._mending = asyncio.Lock()
        self.stopping = threading.Event()

    @staticmethod
    def possible() -> bool:
        """Whether this machine can have one."""
        return hasattr(os, "fork")

    def start(self) -> None:
        """Start the process, while this one has no threads yet: a copy of it needs nothing to be loaded again."""
        self._run(copy=sys.platform == "linux")

    def begin(self) -> None:
        """Let the process begin: the database is there."""
        self._begin()

    def stop(self) -> None:
        """End the process."""
        if self._process is not None and self._process.is_alive():
            self._process.terminate()
            self._process.join(5)
        self._folder.cleanup()

    def _run(self, *, copy: bool = False) -> None:
        self._starts += 1
        self._started = time.monotonic()
        Path(self._path).unlink(missing_ok=True)
        made = multiprocessing.get_context("fork") if copy else multiprocessing.get_context("spawn")
        waits, begins = made.Pipe(duplex=False)
        self._begin = lambda: begins.send(True)
        self._process = made.Process(
            target=_make_pages, args=(self._shown, self._path, os.getpid(), waits), name="pages", daemon=True
        )
        self._process.start()

    async def make(self, request: Request) -> tuple[Body, bool]:
        """Have the answer to a request made there, as :data:`Elsewhere` asks."""
        # As it was sent: put together again, a path with an encoded question mark would be another address.
        address = request.scope["raw_path"] + b"?" + request.scope["query_string"]
        told = [b"%s: %s" % (name, value) for name, value in request.scope["headers"] if name in _PASSED_ON]
        told += [b"host: pages", b"accept-encoding: gzip", b"", b""]
        asked = b"\r\n".join((b"GET %s HTTP/1.1" % address, *told))
        try:
            async with asyncio.timeout(PATIENCE_S), self._room:
                while True:
                    try:
                        status, headers, content = await self._ask(asked)
                        break
                    except (OSError, EOFError):
                        await self._mend()
        except TimeoutError as error:
            raise Relayed(503, b"too many pages are being made", {"retry-after": "5"}) from error
        if status != 200:
            raise Relayed(status, content, {name: headers[name] for name in _KEPT if name in headers})
        made = Body(
            content=content,
            packed=headers.get("content-encoding") == "gzip",
            etag=headers["etag"],
            media_type=headers["content-type"],
        )
        return made, LAGGING not in headers

    async def _ask(self, asked: bytes) -> tuple[int, dict[str, str], bytes]:
        """Send a request and return the answer's status, headers and body.

        Both ends are ours and every page has a length, so this is all of HTTP that is needed. A client library
        takes fifty times as long, in the process that has to answer everybody.
        """
        while self._free:
            line = self._free.pop()
            try:
                return await self._send(line, asked)
            except (OSError, EOFError):  # it had been closed; a new one may be had
                continue
        return await self._send(await asyncio.open_unix_connection(self._path), asked)

    async def _send(self, line: _Line, asked: bytes) -> tuple[int, dict[str, str], bytes]:
        came, gone = line
        whole = False
        try:
            gone.write(asked)
            first, *lines = (await came.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            parts = (text.partition(":") for text in lines if text)
            headers = {name.strip().lower(): value.strip() for name, _, value in parts}
            content = await came.readexactly(int(headers["content-length"]))
            whole = headers.get("connection") != "close"
            return int(first.split(" ", 2)[1]), headers, content
        finally:
            if whole:
                self._free.append(line)
            else:
                gone.close()

    async def _mend(self) -> None:
        """Wait for a process that has just been started, or start another; raises :class:`Away` at the end."""
        async with self._mending:
            assert self._process is not None
            if self.stopping.is_set():
                raise Relayed(503, b"the arena stops", {"retry-after": "5"})
            if not self._process.is_alive():
                if self._starts >= MOST_STARTS:
                    self._say("the process that makes pages ended again and again; pages are made in the server")
                    raise Away
                self._say(f"the process that makes pages ended ({self._process.exitcode}); another is started")
                await asyncio.to_thread(self._run)
                self.begin()
            elif time.monotonic() - self._started > READY_S:
                raise Away
            await asyncio.sleep(0.05)


class _PageServer(uvicorn.Server):
    """A server that leaves signals alone: the one who started it ends it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


def _make_pages(
    shown: PagesShown, path: str, parent: int, begins: multiprocessing.connection.Connection[bool, bool]
) -> None:
    """Serve pages until the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    begins.recv()
    store = Store(open_engine(shown.db))
    app = create_app(
        House(
            reader=ArenaReader(store, hurried=True),
            current=shown.current,
            speed=shown.speed,
            answers=Answers(most_bytes=0),  # the server keeps them
        ),
        experts=Experts(Doors(store)),
    )
    prepare()  # where it is no copy of a process that has
    later = threading.Timer(WARM_AFTER_S, warm)  # not while the first reader waits
    later.daemon = True
    later.start()
    sys.setswitchinterval(SWITCH_S)
    _PageServer(uvicorn.Config(app, uds=path, log_level="error", access_log=False, timeout_keep_alive=60)).run()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(0)
