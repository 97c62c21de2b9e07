"""Answers that are made once per change: bodies are kept until something happens, and sent packed."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

MOST_BYTES = 48 * 2**20
_WORTH_PACKING = 1024


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """A made answer."""

    plain: bytes
    packed: bytes | None
    etag: str
    media_type: str


class Answers:
    """Bodies by what was asked, each at one version. Those who ask for the same at once wait for one making."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._size = 0
        self._kept: OrderedDict[Hashable, tuple[Hashable, Body]] = OrderedDict()
        self._making: dict[Hashable, asyncio.Future[Body]] = {}

    async def give(
        self, request: Request, key: Hashable, version: Hashable, make: Callable[[], tuple[bytes, str]]
    ) -> Response:
        """Answer a request with what ``make`` gives (body and media type), or with what it gave before."""
        found = self._kept.get(key)
        if found is not None and found[0] == version:
            self._kept.move_to_end(key)
            return respond(request, found[1])
        return respond(request, await self._make(key, version, make))

    async def _make(self, key: Hashable, version: Hashable, make: Callable[[], tuple[bytes, str]]) -> Body:
        waiting = self._making.get((key, version))
        if waiting is not None:
            return await asyncio.shield(waiting)
        future: asyncio.Future[Body] = asyncio.get_running_loop().create_future()
        self._making[key, version] = future
        try:
            body = await run_in_threadpool(lambda: _pack(*make()))
            self._keep(key, version, body)
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

    def _keep(self, key: Hashable, version: Hashable, body: Body) -> None:
        old = self._kept.pop(key, None)
        if old is not None:
            self._size -= _size(old[1])
        self._kept[key] = (version, body)
        self._size += _size(body)
        while self._size > self._most and self._kept:
            _, (_, dropped) = self._kept.popitem(last=False)
            self._size -= _size(dropped)


def respond(request: Request, body: Body, status: int = 200) -> Response:
    """Return a body as the reader wants it: packed where it may be, nothing when it has it already."""
    headers = {"etag": body.etag, "cache-control": "no-cache", "vary": "accept-encoding, accept-language, cookie"}
    if body.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if body.packed is not None and "gzip" in request.headers.get("accept-encoding", ""):
        headers["content-encoding"] = "gzip"
        return Response(body.packed, status, headers, body.media_type)
    return Response(body.plain, status, headers, body.media_type)


def _pack(plain: bytes, media_type: str) -> Body:
    packed = gzip.compress(plain, 5, mtime=0) if len(plain) > _WORTH_PACKING else None
    etag = f'W/"{hashlib.sha256(plain).hexdigest()[:20]}"'
    return Body(plain=plain, packed=packed, etag=etag, media_type=media_type)


def _size(body: Body) -> int:
    return len(body.plain) + len(body.packed or b"") + 400
