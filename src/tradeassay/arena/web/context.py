"""What all routes of the arena rest on: the reader, answers kept until something happens, and OpenAPI types."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import msgspec
from anyio import CapacityLimiter, to_thread
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from tradeassay.arena.queries.reader import ArenaReader, Moment, SeasonReader
from tradeassay.arena.rounds.health import Health
from tradeassay.arena.season import Entry
from tradeassay.core.errors import UserError

MOST_BYTES = 48 * 2**20
MAKERS = 2
"""How many answers are made at once: making one is computing, and more would only slow each other down."""

BUSY = 20
"""With so many requests within a second, answers may be a little older than the newest event."""

OLD_S, TOO_OLD_S = 1.0, 3.0
"""On a busy server an answer so old is still sent: as it is, or while another is made."""

_WORTH_PACKING = 1024


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """A finished answer; a large one is kept compressed."""

    content: bytes
    packed: bool
    etag: str
    media_type: str


class Relayed(Exception):
    """Another process has made the answer to a request, and it is a refusal."""

    def __init__(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        super().__init__(status)
        self.status, self.body, self.headers = status, body, headers


class Away(Exception):
    """There is no other process to make answers any more."""


Elsewhere = Callable[[Request], Awaitable[tuple[Body, bool]]]
"""Makes the answer to a request in another process, and says whether it is the newest there can be.

Raises :class:`Relayed` for a refusal and :class:`Away` when answers have to be made here from now on.
"""


class Answers:
    """Bodies by what was asked, one version each. Concurrent requests for the same body share one computation.

    While many ask, nobody waits for a body that is only a moment behind: an older version is sent meanwhile.
    ``elsewhere`` makes bodies in another process; without it, or when that is away, they are made here.
    """

    def __init__(self, most_bytes: int = MOST_BYTES, now: Callable[[], float] = time.monotonic) -> None:
        self.elsewhere: Elsewhere | None = None
        self._most = most_bytes
        self._now = now
        self._size = 0
        self._kept: OrderedDict[Hashable, tuple[Hashable, Body, float]] = OrderedDict()
        self._making: dict[tuple[Hashable, Hashable], asyncio.Future[Body]] = {}
        self._asked: deque[float] = deque(maxlen=BUSY)
        self._beside: set[asyncio.Task[Body]] = set()
        self._makers: CapacityLimiter | None = None

    async def give(
        self, request: Request, key: Hashable, version: Hashable, make: Callable[[], tuple[bytes, str]]
    ) -> Response:
        """Answer a request with what ``make`` gives (body and media type), or with what it gave before."""
        try:
            return respond(request, await self._body(request, key, version, make), version)
        except Relayed as told:
            return Response(told.body, told.status, told.headers)

    async def _body(
        self, request: Request, key: Hashable, version: Hashable, make: Callable[[], tuple[bytes, str]]
    ) -> Body:
        now = self._now()
        busy = len(self._asked) == BUSY and now - self._asked[0] < 1.0
        self._asked.append(now)
        found = self._kept.get(key)
        if found is None:
            return await self._make(request, key, version, make)
        known, body, made_at = found
        self._kept.move_to_end(key)
        if known != version:
            if not busy or now - made_at >= TOO_OLD_S:
                return await self._make(request, key, version, make)
            if now - made_at >= OLD_S and not any(one == key for one, _ in self._making):
                task = asyncio.ensure_future(self._make(request, key, version, make))
                self._beside.add(task)
                task.add_done_callback(self._done)
        return body

    def _done(self, task: asyncio.Task[Body]) -> None:
        self._beside.discard(task)
        if not task.cancelled():
            task.exception()  # the next reader who must wait for it is told

    async def _make(
        self, request: Request, key: Hashable, version: Hashable, make: Callable[[], tuple[bytes, str]]
    ) -> Body:
        waiting = self._making.get((key, version))
        if waiting is not None:
            return await asyncio.shield(waiting)
        future: asyncio.Future[Body] = asyncio.get_running_loop().create_future()
        self._making[key, version] = future
        try:
            body, newest = await self._made(request, make)
            self._keep(key, version if newest else None, body)
            future.set_result(body)
            return body
        except asyncio.CancelledError:
            future.cancel()
            raise
        except Exception as error:
            future.set_exception(error)
            future.exception()  # nobody may be waiting for it; whoever made it sees it raised here
            raise
        finally:
            del self._making[key, version]

    async def _made(self, request: Request, make: Callable[[], tuple[bytes, str]]) -> tuple[Body, bool]:
        if self.elsewhere is not None:
            try:
                return await self.elsewhere(request)
            except Away:
                self.elsewhere = None
        if self._makers is None:
            self._makers = CapacityLimiter(MAKERS)
        return await to_thread.run_sync(lambda: _pack(*make()), limiter=self._makers), True

    def _keep(self, key: Hashable, version: Hashable, body: Body) -> None:
        old = self._kept.pop(key, None)
        if old is not None:
            self._size -= _size(old[1])
        self._kept[key] = (version, body, self._now())
        self._size += _size(body)
        while self._size > self._most and self._kept:
            _, (_, dropped, _) = self._kept.popitem(last=False)
            self._size -= _size(dropped)


LAGGING = "x-lagging"
"""The header by which the process that makes pages tells the server that a newer one can be had soon."""


def respond(request: Request, body: Body, version: Hashable = None) -> Response:
    """Return a body as the reader wants it: compressed where accepted, empty when the reader has it already."""
    headers = {"etag": body.etag, "cache-control": "no-cache", "vary": "accept-encoding, accept-language, cookie"}
    if isinstance(version, Moment) and version.lagging:
        headers[LAGGING] = "1"
    if body.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if not body.packed:
        return Response(body.content, 200, headers, body.media_type)
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["content-encoding"] = "gzip"
        return Response(body.content, 200, headers, body.media_type)
    return Response(gzip.decompress(body.content), 200, headers, body.media_type)


def _pack(plain: bytes, media_type: str) -> Body:
    large = len(plain) > _WORTH_PACKING
    etag = f'W/"{hashlib.sha256(plain).hexdigest()[:20]}"'
    content = gzip.compress(plain, 5, mtime=0) if large else plain
    return Body(content=content, packed=large, etag=etag, media_type=media_type)


def _size(body: Body) -> int:
    return len(body.content) + 400


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is no answer, and what to do about it."""

    detail: str
    hint: str | None = None


_REF = "#/components/schemas/{name}"


def answers(type_: Any, what: str, *, missing: bool = True) -> dict[int | str, dict[str, Any]]:
    """Return the ``responses`` of an operation that sends a struct."""
    (shape,), _ = msgspec.json.schema_components([type_], ref_template=_REF)
    found: dict[int | str, dict[str, Any]] = {
        200: {"description": what, "content": {"application/json": {"schema": shape}}},
        422: problem("A parameter does not fit."),
    }
    if missing:
        found[404] = problem("There is no such season, entry, asset or decision.")
    return found


def problem(what: str) -> dict[str, Any]:
    """Return the description of an error answer."""
    return {
        "description": what,
        "content": {"application/json": {"schema": {"$ref": _REF.format(name="Problem")}}},
    }


def describe(app: FastAPI, types: tuple[Any, ...], about: str) -> None:
    """Let an application describe itself, with the given structs among the components."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = get_openapi(title=app.title, version=app.version, description=about, routes=app.routes)
            _, components = msgspec.json.schema_components([*types, Problem], ref_template=_REF)
            made.setdefault("components", {}).setdefault("schemas", {}).update(components)
            app.openapi_schema = made
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # the documented way to extend it


class NotHere(UserError):
    """Asked for something that does not exist; answered with 404."""


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """One reader, one store of answers. ``current`` is the season shown first, ``speed`` that of a replay here.

    ``judged``: experts may judge items of the stream here. ``own`` tells how this process's own worker is, which
    may be newer than what is on record.
    """

    reader: ArenaReader
    answers: Answers = field(default_factory=Answers)
    current: str | None = None
    speed: str | None = None
    judged: bool = False
    own: Callable[[], Health | None] = lambda: None
    stopping: Event = field(default_factory=Event)
    versions: dict[str, tuple[float | None, SeasonReader, Hashable]] = field(default_factory=dict)

    async def found(self, season: str) -> tuple[SeasonReader, Hashable]:
        """Return a season's reader and what its answers depend on now; raises :class:`NotHere`.

        Asked by every request, so a database that was asked a moment ago is not asked again.
        """
        pulse, known = self.reader.pulse, self.versions.get(season)
        if known is None or pulse.rested or known[0] != pulse.asked_at:
            known = self.versions[season] = await run_in_threadpool(self._versioned, season)
        return known[1:]

    def _versioned(self, season: str) -> tuple[float | None, SeasonReader, Hashable]:
        reader = self.find(season)
        self.reader.pulse.newest(season)
        # Where another process makes the pages it has the view; this one only hears that something happened.
        here = self.answers.elsewhere is None
        return self.reader.pulse.asked_at, reader, reader.moment(viewed=here)

    def find(self, season: str) -> SeasonReader:
        """Return a season's reader; raises :class:`NotHere`."""
        found = self.reader.season(season)
        if found is None:
            raise NotHere(f"no season '{season[:80]}'", hint="see /api/seasons")
        return found

    def default(self) -> str | None:
        """Return the season shown when none is asked for: the one played here, or the newest."""
        return self.current or next(iter(self.reader.ids()), None)

    async def json(
        self, request: Request, season: str, key: Hashable, make: Callable[[SeasonReader], Any]
    ) -> Response:
        """Answer with a struct as JSON, made once per event."""
        reader, version = await self.found(season)
        return await self.answers.give(
            request,
            ("json", season, key),
            version,
            lambda: (msgspec.json.encode(make(reader)), "application/json"),
        )


def entry_of(reader: SeasonReader, id: str) -> Entry:
    """Return an entry of a season; raises :class:`NotHere`."""
    try:
        return reader.season.entry(id)
    except UserError as error:
        raise NotHere(error.message[:200], hint=error.hint) from error


def asset_of(reader: SeasonReader, symbol: str) -> str:
    """Return a symbol the season trades; raises :class:`NotHere`."""
    try:
        return reader.season.asset(symbol).symbol
    except UserError as error:
        raise NotHere(error.message[:200], hint=error.hint) from error
