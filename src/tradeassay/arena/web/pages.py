"""The pages. Each is made by one function from the reader's answers, in the reader's language, once per event."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from jinja2 import Environment
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, RedirectResponse

from tradeassay import __version__
from tradeassay.arena.queries.reader import SeasonReader
from tradeassay.arena.web import contents
from tradeassay.arena.web.assets import NAMES as NAMES_OF_FILES
from tradeassay.arena.web.assets import address, asset
from tradeassay.arena.web.context import House, NotHere
from tradeassay.arena.web.status import arena_health, season_books
from tradeassay.arena.web.words import COOKIE, LANGUAGES, NAMES, Language, PageWords, choose, words
from tradeassay.report.shell import page_environment

Make = Callable[[SeasonReader, PageWords, Request], dict[str, Any]]
PAGES: dict[str, tuple[str, Make]] = {
    "": ("standings", contents.standings),
    "/timeline": ("timeline", contents.timeline),
    "/split": ("split", contents.split),
    "/feed": ("feed", contents.feed),
    "/information": ("information", contents.information),
    "/items/{item}": ("item", contents.item),
    "/rules": ("rules", contents.rules),
    "/published": ("published", contents.published),
    "/entries/{entry}": ("entry", contents.entry),
    "/decisions/{id}": ("decision", contents.decision),
}
MENU = ("standings", "timeline", "split", "feed", "information", "rules", "published")
_YEAR_S = 365 * 86_400


def pages(house: House) -> APIRouter:
    """Return the routes of all pages."""
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    async def home(request: Request) -> Response:
        """Lead to the season that is played."""
        season = await run_in_threadpool(house.default)
        if season is None:
            return _html(house, request, "seasons", {"seasons": (), "season": None})
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"/season/{season}{query}", 307)

    @router.get("/seasons")
    async def seasons(request: Request) -> Response:
        """List all seasons."""
        found = await run_in_threadpool(house.reader.seasons)
        return _html(house, request, "seasons", {"seasons": found, "season": None})

    @router.get("/health")
    async def health(request: Request) -> Response:
        """Say how the arena is, for people; ``/healthz`` says it to programs."""
        found = await run_in_threadpool(arena_health, house.reader.store, house.own())
        books = await run_in_threadpool(season_books, house.reader.store) if found.database == "ok" else ()
        return _html(house, request, "health", {"health": found, "books": books, "season": None})

    for path, (name, make) in PAGES.items():
        router.add_api_route(f"/season/{{season}}{path}", _route(house, name, make), methods=["GET"])
    return router


def _route(house: House, name: str, make: Make) -> Callable[[Request], Any]:
    async def page(request: Request) -> Response:
        """Answer with a page, made once per event and language."""
        reader, version = await house.found(request.path_params["season"])
        language = _language(request)
        query = urlencode(sorted((k, v) for k, v in request.query_params.multi_items() if k != "lang" and v))
        part = request.query_params.get("part")

        def made() -> tuple[bytes, str]:
            template = f"{name}.html.j2" if part != "body" else f"{name}_body.html.j2"
            context = make(reader, words(language), request)
            context |= {"season": reader, "page": name, "facts": reader.facts(), "seq": reader.shown_seq}
            return _render(house, request, language, template, context), "text/html; charset=utf-8"

        if part == "body" and name != "decision":
            raise NotHere("this page has no part of its own")
        answer = await house.answers.give(request, ("page", request.scope["path"], query, language), version, made)
        return _remember(request, answer)

    return page


def error_page(house: House, request: Request, status: int, detail: str, hint: str | None) -> Response:
    """Return a page that says what went wrong."""
    answer = _html(house, request, "error", {"season": None, "status": status, "detail": detail, "hint": hint})
    answer.status_code = status
    return answer


def _html(house: House, request: Request, name: str, context: dict[str, Any]) -> Response:
    context = {"page": name, "facts": None, "seq": 0} | context
    body = _render(house, request, _language(request), f"{name}.html.j2", context)
    return _remember(request, HTMLResponse(body, headers={"vary": "accept-language, cookie"}))


def _render(house: House, request: Request, language: Language, template: str, context: dict[str, Any]) -> bytes:
    others = [
        (other, NAMES[other], str(request.url.include_query_params(lang=other).replace(scheme="", netloc="")))
        for other in LANGUAGES
        if other != language
    ]
    everywhere: dict[str, Any] = {
        "t": words(language),
        "lang": language,
        "languages": others,
        "menu": MENU,
        "speed": house.speed,
    }
    everywhere["judged"] = house.judged
    return _environment().get_template(template).render(everywhere | context).encode()


def _language(request: Request) -> Language:
    return choose(
        request.query_params.get("lang"), request.cookies.get(COOKIE), request.headers.get("accept-language")
    )


def _remember(request: Request, answer: Response) -> Response:
    asked = request.query_params.get("lang")
    if asked in LANGUAGES:
        answer.set_cookie(COOKIE, asked, max_age=_YEAR_S, samesite="lax", httponly=True)
    return answer


def prepare() -> None:
    """Compile the pages, so that the first reader need not wait for it."""
    for name in _environment().list_templates():
        if name.endswith(".j2"):
            _environment().get_template(name)


def warm() -> None:
    """Do once what readers of other pages would wait for: pack the files."""
    for name in NAMES_OF_FILES:
        asset(name)


@cache
def _environment() -> Environment:
    made = page_environment("tradeassay.arena.web")
    made.globals.update(
        static=address,
        percent=contents.percent,
        price=contents.price,
        money=contents.money,
        spoken=contents.spoken,
        when=contents.when,
        initials=contents.initials,
        version=__version__,
    )
    return made
