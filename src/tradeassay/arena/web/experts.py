"""Experts who confirm or reject what the stream published. Each has a key; only its hash is kept in memory."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Path, Request, Response
from starlette.concurrency import run_in_threadpool

from tradeassay.arena.doors.router import Limiter
from tradeassay.arena.stream import ItemReview, confirm, item_page
from tradeassay.arena.web.house import House, NotHere, Problem, answers, problem
from tradeassay.core.errors import UserError

MOST_BYTES = 8192


class ExpertVerdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an expert sends: the key, and whether what is shown is a true and fair account of the source."""

    key: Annotated[str, msgspec.Meta(max_length=128)]
    verdict: Literal["confirm", "reject"]
    note: Annotated[str, msgspec.Meta(max_length=2000)] = ""


class Experts:
    """Who may judge, by the hash of the key."""

    def __init__(self, names: tuple[str, ...] = ()) -> None:
        self._hashes: dict[str, str] = {}
        self.keys: dict[str, str] = {}
        for name in names:
            key = secrets.token_urlsafe(24)
            self.keys[name] = key
            self._hashes[name] = _hash(key)

    def forget_keys(self) -> None:
        """Forget the keys themselves once their owners have them."""
        self.keys.clear()

    def who(self, key: str) -> str | None:
        """Return whose key it is. Every hash is compared, so that timing reveals nothing."""
        given, found = _hash(key), None
        for name, known in self._hashes.items():
            if hmac.compare_digest(given, known):
                found = name
        return found

    @property
    def open(self) -> bool:
        """Whether anybody may judge here."""
        return bool(self._hashes)


def judging(house: House, experts: Experts) -> APIRouter:
    """Return the route by which experts judge. JSON alone is taken, so that no foreign page can post here."""
    router = APIRouter(prefix="/api", tags=["arena"])
    wrong = Limiter(10.0, 10)
    described: dict[int | str, dict[str, Any]] = {
        **answers(ItemReview, "The verdict, as it is on record."),
        403: problem("The key is nobody's, or nobody may judge here."),
        413: problem("The body is too large."),
        415: problem("The body is not sent as JSON."),
        429: problem("Too many wrong keys."),
    }

    @router.post(
        "/seasons/{season}/items/{item}/reviews",
        responses=described,
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Verdict"}}},
            }
        },
    )
    async def judge(
        request: Request,
        season: Annotated[str, Path(max_length=64)],
        item: Annotated[str, Path(max_length=64)],
    ) -> Response:
        """Confirm or reject an item; a second verdict of the same expert replaces the first."""
        who = request.client.host if request.client else "?"
        if wrong.empty(who) > 0:
            return _refuse(429, "too many wrong keys from this address")
        sent = await _body(request)
        if isinstance(sent, Response):
            return sent
        expert = experts.who(sent.key)
        if expert is None:
            wrong.take(who)
            return _refuse(403, "this key is nobody's" if experts.open else "nobody may judge here")

        def write() -> ItemReview:
            reader = house.find(season)
            try:
                item_page(house.reader.store, reader.season.id, item)
            except UserError as error:
                raise NotHere(error.message, mend=error.mend) from error
            return confirm(house.reader.store, item, expert, sent.verdict, note=sent.note)

        review = await run_in_threadpool(write)
        return Response(msgspec.json.encode(review), 200, {"cache-control": "no-store"}, "application/json")

    return router


async def _body(request: Request) -> ExpertVerdict | Response:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return _refuse(415, "send application/json")
    found = bytearray()
    async for piece in request.stream():
        found += piece
        if len(found) > MOST_BYTES:
            return _refuse(413, f"a body has at most {MOST_BYTES} bytes")
    try:
        return msgspec.json.decode(bytes(found), type=ExpertVerdict)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return _refuse(422, str(error))


def _refuse(status: int, detail: str) -> Response:
    return Response(msgspec.json.encode(Problem(detail=detail)), status, media_type="application/json")


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
