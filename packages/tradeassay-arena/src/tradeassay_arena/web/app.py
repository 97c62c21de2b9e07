"""Build the web application: the site's files, the API for agents, experts and health.

All answers have strict security headers.
"""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from sqlalchemy.exc import DataError, SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tradeassay import __version__
from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_bytes
from tradeassay_arena.api import router as agent_routes
from tradeassay_arena.api.agent_api import AgentApi
from tradeassay_arena.rounds.health import Health
from tradeassay_arena.web.site import POLICY, render_page
from tradeassay_arena.web.status import arena_health, health_routes, season_books
from tradeassay_arena.web.words import LANGUAGES, NAMES

ABOUT = (
    "The agents' api, experts' verdicts and health of a paper-trading arena. What the pages show "
    "is in JSON "
    "files beside them. Times are ISO 8601 in UTC, returns are fractions, and a number that could "
    "not be had is "
    "null with a reason."
)
_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".xml": "application/atom+xml; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
}
_PATH = re.compile(r"/(?:[A-Za-z0-9_-][A-Za-z0-9._-]*/)*(?:[A-Za-z0-9_-][A-Za-z0-9._-]*)?")
"""Addresses that a file of the site can have: no part begins with a dot."""
_CHINESE = "/zh/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arena:
    """The parts of the application: the API over a database, and a folder of pages.

    ``register``: the operator may register entries over HTTP. ``apply``: anybody may apply for an
    entry. ``own`` returns the health of this process's own worker, which may be newer than the
    database. ``embed`` is an origin whose pages may frame these. ``translate`` returns a page in
    another language than English, which the folder does not contain, or None.
    """

    api: AgentApi
    folder: Path
    register: bool = False
    apply: bool = False
    embed: str = ""
    limits: agent_routes.RequestLimits | None = None
    own: Callable[[], Health | None] = lambda: None
    translate: Callable[[str], bytes | None] = lambda path: None


def create_app(arena: Arena) -> FastAPI:
    """Return the arena's application: API routes, and the site's files for every other address.

    While it runs, ``/mcp`` serves MCP clients in the same way as ``tradeassay mcp`` (extra
    ``serve``).
    """
    mcp = _McpRoute(arena)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with mcp.running():
            yield

    app = FastAPI(
        lifespan=lifespan,
        title="tradeassay arena",
        version=__version__,
        description=ABOUT,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
    )
    nobody = "'none'"
    headers = {
        "content-security-policy": f"{POLICY}; frame-ancestors {arena.embed or nobody}",
        "x-content-type-options": "nosniff",
        "referrer-policy": "same-origin",
        "permissions-policy": "camera=(), microphone=(), geolocation=()",
        "cross-origin-opener-policy": "same-origin",
        **(
            {"access-control-allow-origin": arena.embed}
            if arena.embed
            else {"x-frame-options": "DENY"}
        ),
    }
    app.add_middleware(
        _Guarded, headers=[(name.encode(), value.encode()) for name, value in headers.items()]
    )
    for_agents = agent_routes.router(
        arena.api, operator=arena.register, apply=arena.apply, limits=arena.limits
    )
    for router in (
        for_agents,
        agent_routes.judging(arena.api),
        health_routes(arena.api.store, arena.own),
    ):
        app.include_router(router)
    app.router.routes[:0] = [Route("/mcp", mcp)]
    # Routes that take only the request skip FastAPI's parsing of parameters, which is more than
    # half of an agent's request. They also stay in FastAPI for OpenAPI.
    app.router.routes[:0] = [
        Route(route.path, route.endpoint, methods=list(route.methods or ()))
        for route in for_agents.routes
        if isinstance(route, APIRoute) and list(signature(route.endpoint).parameters) == ["request"]
    ]

    @app.get("/health", include_in_schema=False)
    async def health(request: Request) -> Response:
        """Show the arena's health as a page. Programs use ``/healthz``."""
        store = arena.api.store
        found = await run_in_threadpool(arena_health, store, arena.own())
        books = await run_in_threadpool(season_books, store) if found.database == "ok" else ()
        language, other = LANGUAGES if request.query_params.get("lang") != "zh" else LANGUAGES[::-1]
        context = {
            "health": found,
            "books": books,
            "languages": [(other, NAMES[other], f"/health?lang={other}")],
        }
        return HTMLResponse(render_page(language, "health", context))

    @app.get("/{path:path}", include_in_schema=False)
    async def file(request: Request) -> Response:
        path = request.scope["path"]
        if path.startswith(_CHINESE) and _PATH.fullmatch(path):
            page = await run_in_threadpool(arena.translate, path)
            if page is not None:
                return _page(page, request)
        return _file(arena.folder, request)

    async def failed(request: Request, error: Exception) -> Response:
        if isinstance(error, UserError):
            return agent_routes.refusal(422, error.message, error.hint)
        if isinstance(error, RequestValidationError):
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"][1:])
            return agent_routes.refusal(
                422, f"{where}: {first['msg']}"[:300], "see /api/openapi.json"
            )
        if isinstance(error, DataError):
            hint = "leave out control characters"
            return agent_routes.refusal(
                422, "a text contains a character that cannot be stored", hint
            )
        if isinstance(error, HTTPException):
            if error.status_code == 404:
                return _missing(arena.folder, request.url.path)
            return agent_routes.refusal(
                error.status_code, str(error.detail), None, dict(error.headers or {})
            )
        hint = "the arena continues by itself when it is back; see /healthz"
        return agent_routes.refusal(
            503, "the database does not answer at the moment", hint, {"retry-after": "5"}
        )

    for kind in (UserError, RequestValidationError, SQLAlchemyError, HTTPException):
        app.add_exception_handler(kind, failed)

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            # The API's structs are msgspec's, which FastAPI cannot describe.
            _, components = msgspec.json.schema_components(
                agent_routes.TYPES, ref_template="#/components/schemas/{name}"
            )
            made = FastAPI.openapi(app)
            made.setdefault("components", {}).setdefault("schemas", {}).update(components)
        return app.openapi_schema or {}

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way to extend OpenAPI
    return app


class _McpRoute:
    """Serves MCP clients while the application runs."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._app: ASGIApp | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        if find_spec("mcp") is None:
            yield
            return
        from tradeassay_arena.api.mcp_server import mcp_app

        # Every request has a token, so any host name is accepted, for example a proxy's.
        made = mcp_app(self._arena.api, limits=self._arena.limits, host="")
        async with made.running():
            self._app = made
            yield
            self._app = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._app or agent_routes.refusal(
            404, "this arena does not answer MCP clients", _NO_MCP
        )
        await answer(scope, receive, send)


_NO_MCP = "its operator installs the extra 'serve'"


class _Guarded:
    """Adds security headers to every answer. HEAD is GET without the body."""

    def __init__(self, app: ASGIApp, headers: list[tuple[bytes, bytes]]) -> None:
        self._app, self._headers = app, headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        named = {name for name, _ in scope["headers"]}
        if b"content-length" in named and b"transfer-encoding" in named:
            # A proxy may have used the other length. The rest could then be another client's
            # request.
            refused = Response("a body has one length", 400, {"connection": "close"}, "text/plain")
            await refused(scope, receive, send)
            return
        if any(
            c < " " for c in scope["path"]
        ):  # not a valid address of the site, and a database could not store it
            refused = Response(
                b'{"detail":"there is nothing here"}', 404, media_type="application/json"
            )
            await refused(scope, receive, send)
            return
        head = scope["method"] == "HEAD"

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent = list(message.get("headers", ()))
                for place, (name, value) in enumerate(sent):
                    if (
                        name == b"location"
                    ):  # the server's own: the host of a request is set by its sender
                        to = urlsplit(value)
                        here = urlunsplit((b"", b"", b"/" + to.path.lstrip(b"/"), to.query, b""))
                        sent[place] = (name, here)
                message = {**message, "headers": [*sent, *self._headers]}
            elif head:
                message = {**message, "body": b""}
            await send(message)

        await self._app({**scope, "method": "GET"} if head else scope, receive, sending)


def _file(folder: Path, request: Request) -> Response:
    """Answer with a file. Files are small and were just written, so reading them does not block."""
    path = request.scope["path"]
    if not _PATH.fullmatch(path):
        return _missing(folder, path)
    file = folder / path[1:] / "index.html" if path.endswith("/") else folder / path[1:]
    try:
        facts = os.stat(file)
        if file.suffix not in _KINDS:
            return RedirectResponse(f"{path}/", 308) if file.is_dir() else _missing(folder, path)
        etag = f'"{facts.st_mtime_ns:x}-{facts.st_size:x}"'
        keep = "public, max-age=31536000, immutable" if path.startswith("/static/") else "no-cache"
        headers = {"etag": etag, "cache-control": keep, "vary": "accept-encoding"}
        if etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        if facts.st_size > 1024 and "gzip" in request.headers.get("accept-encoding", ""):
            headers["content-encoding"] = "gzip"
            return Response(
                _packed(str(file), facts.st_mtime_ns), 200, headers, _KINDS[file.suffix]
            )
        return Response(file.read_bytes(), 200, headers, _KINDS[file.suffix])
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return _missing(folder, path)


def _page(content: bytes, request: Request) -> Response:
    """Answer with a page that was rendered for this request."""
    etag = f'"{sha256_bytes(content)[:24]}"'
    headers = {"etag": etag, "cache-control": "no-cache", "vary": "accept-encoding"}
    if etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["content-encoding"] = "gzip"
        content = gzip.compress(content, 5, mtime=0)
    return Response(content, 200, headers, _KINDS[".html"])


@lru_cache(maxsize=256)
def _packed(file: str, _mtime: int) -> bytes:
    return gzip.compress(Path(file).read_bytes(), 5, mtime=0)


def _missing(folder: Path, path: str) -> Response:
    if path.startswith(("/api/", "/agents")) or path.endswith(".json"):
        return agent_routes.refusal(404, f"there is nothing at '{path[:80]}'")
    return HTMLResponse(render_page("zh" if path.startswith(_CHINESE) else "en", "error", {}), 404)
