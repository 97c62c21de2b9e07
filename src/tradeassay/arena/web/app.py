"""The application: pages, JSON interface, live stream, files; with headers that keep foreign code from running."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from inspect import signature
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tradeassay import __version__
from tradeassay.arena.web import assets
from tradeassay.arena.web.api import STREAM_TYPES, TYPES, api, stream_api
from tradeassay.arena.web.context import House, NotHere, Problem, describe
from tradeassay.arena.web.experts import Experts, ExpertVerdict, judging
from tradeassay.arena.web.live import live
from tradeassay.arena.web.pages import error_page, pages
from tradeassay.arena.web.status import health_routes
from tradeassay.core.errors import UserError

ABOUT = (
    "Standings, decisions and information of a paper-trading arena. Everything the pages show is here. "
    "Times are ISO 8601 in UTC, returns are fractions, and a number that could not be had is null with a reason."
)
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        # Charts place their parts by inline styles; styles cannot run anything.
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "font-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
_HEADERS = tuple(
    (name.encode(), value.encode())
    for name, value in (
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "same-origin"),
        ("permissions-policy", "camera=(), microphone=(), geolocation=()"),
        ("cross-origin-opener-policy", "same-origin"),
    )
)


class Guarded:
    """Adds the security headers to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and its answer back with the headers. HEAD is GET without the body."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        named = {name for name, _ in scope["headers"]}
        if b"content-length" in named and b"transfer-encoding" in named:
            # A proxy may have believed the other one: what follows could be somebody else's request.
            told = Response("a body has one length", 400, {"connection": "close"}, "text/plain")
            await told(scope, receive, send)
            return
        head = scope["method"] == "HEAD"

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                told = list(message.get("headers", ()))
                if 300 <= message["status"] < 400:
                    told = [(name, _here(value) if name == b"location" else value) for name, value in told]
                message = {**message, "headers": [*told, *_HEADERS]}
            elif head:
                message = {**message, "body": b""}
            await send(message)

        await self._app({**scope, "method": "GET"} if head else scope, receive, sending)


def _here(address: bytes) -> bytes:
    """Return an address as one of this server: the host of a request is whatever its sender called it."""
    parts = urlsplit(address)
    return urlunsplit((b"", b"", b"/" + parts.path.lstrip(b"/"), parts.query, b""))


def create_app(
    house: House,
    *,
    extra: Iterable[APIRouter] = (),
    types: Iterable[Any] = (),
    experts: Experts | None = None,
    poll_s: float = 0.25,
    heartbeat_s: float = 15.0,
) -> FastAPI:
    """Return the arena's application over a database.

    ``extra`` are further routes (the agents' door) and ``types`` the structs they send, for OpenAPI. ``experts``
    may judge the stream.
    """
    experts = experts or Experts()
    house = replace(house, judged=experts.open)
    app = FastAPI(title="tradeassay arena", version=__version__, docs_url=None, redoc_url=None,
                  openapi_url="/api/openapi.json")  # fmt: skip
    app.add_middleware(Guarded)
    extra = tuple(extra)
    for router in extra:  # first, because agents come all at once and routes are tried in their order
        app.include_router(router)
    app.include_router(api(house))
    app.include_router(stream_api(house))
    app.include_router(live(house, poll_s=poll_s, heartbeat_s=heartbeat_s))
    app.include_router(judging(house, experts))
    app.include_router(health_routes(house.reader.store, house.own))
    app.include_router(_files())
    shown = pages(house)
    app.include_router(shown)
    _shorten(app, (*extra, shown))
    _failures(app, house)
    describe(app, (*TYPES, *STREAM_TYPES, ExpertVerdict, *types), ABOUT)
    app.state.house = house
    return app


def _shorten(app: FastAPI, routers: Iterable[APIRouter]) -> None:
    """Answer routes that take nothing but the request without FastAPI's reading of parameters.

    That is more than half of what a page that is kept, or an agent's question, costs. The routes stay where they
    are as well, for OpenAPI.
    """
    app.router.routes[:0] = [
        Route(route.path, route.endpoint, methods=list(route.methods or ()))
        for router in routers
        for route in router.routes
        if isinstance(route, APIRoute) and list(signature(route.endpoint).parameters) == ["request"]
    ]


def _files() -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.get("/static/{name}")
    async def static(request: Request, name: str) -> Response:
        """Send one of the pages' own files."""
        if name not in assets.NAMES:
            raise NotHere(f"no file '{name[:80]}'")
        found = await run_in_threadpool(assets.asset, name)  # it is packed once
        fresh = request.query_params.get("v") == found.version
        keep = f"public, max-age={assets.YEAR_S}, immutable" if fresh else "no-cache"
        headers = {"cache-control": keep, "vary": "accept-encoding"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            headers["content-encoding"] = "gzip"
            return Response(found.packed, 200, headers, found.media_type)
        return Response(found.body, 200, headers, found.media_type)

    return router


def _failures(app: FastAPI, house: House) -> None:
    def answer(request: Request, status: int, detail: str, hint: str | None = None, **headers: str) -> Response:
        if request.url.path.startswith(("/api/", "/agents")):
            body = msgspec.json.encode(Problem(detail=detail, hint=hint))
            return Response(body, status, headers, "application/json")
        return error_page(house, request, status, detail, hint)

    @app.exception_handler(NotHere)
    async def not_here(request: Request, error: NotHere) -> Response:
        return answer(request, 404, error.message, error.hint)

    @app.exception_handler(UserError)
    async def refused(request: Request, error: UserError) -> Response:
        return answer(request, 422, error.message, error.hint)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:])
        return answer(request, 422, f"{where}: {first['msg']}"[:300], "see /api/openapi.json")

    @app.exception_handler(SQLAlchemyError)
    async def away(request: Request, error: SQLAlchemyError) -> Response:
        hint = "the arena goes on by itself when it is back; /healthz says how it is"
        answered = answer(request, 503, "the database does not answer at the moment", hint)
        answered.headers["retry-after"] = "5"
        return answered

    @app.exception_handler(HTTPException)
    async def plain(request: Request, error: HTTPException) -> Response:
        return answer(request, error.status_code, str(error.detail), **dict(error.headers or {}))
