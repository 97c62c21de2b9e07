"""Experts who confirm or reject what the stream published. Each has a key; only its salted hash is kept."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Path, Request, Response
from starlette.concurrency import run_in_threadpool

from tradeassay.arena.api.doors import Doors, TurnedAway
from tradeassay.arena.api.router import Limiter, read_json
from tradeassay.arena.stream import ItemReview, confirm, item_page
from tradeassay.arena.web.context import House, NotHere, Problem, answers, problem
from tradeassay.core.errors import UserError

MOST_BYTES = 8192


class ExpertVerdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an expert sends: the key, and whether what is shown is a true and fair account of the source."""

    key: Annotated[str, msgspec.Meta(max_length=128)]
    verdict: Literal["confirm", "reject"]
    note: Annotated[str, msgspec.Meta(max_length=2000)] = ""


class Experts:
    """Who may judge: those with a valid key in the database, which survives a restart and can be revoked."""

    def __init__(self, doors: Doors | None = None) -> None:
        self._doors = doors

    def who(self, key: str) -> str | None:
        """Return whose key it is."""
        return None if self._doors is None else self._doors.key_owner("expert", key)

    @property
    def open(self) -> bool:
        """Whether anybody may judge here."""
        return self._doors is not None and bool(self._doors.key_names("expert"))


def judging(house: House, experts: Experts) -> APIRouter:
    """Return the route by which experts judge. JSON alone is taken, so that no foreign page can post here."""
    router = APIRouter(prefix="/api", tags=["arena"])
    wrong = Limiter(10.0, 10)
    described: dict[int | str, dict[str, Any]] = {
        **answers(ItemReview, "The verdict, as it is on record."),
        403: problem("The key is not known, or nobody may judge here."),
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
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ExpertVerdict"}}},
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
        try:
            sent = await read_json(request, ExpertVerdict, MOST_BYTES)
        except TurnedAway as error:
            return _refuse(error.status, error.detail)
        expert = await run_in_threadpool(experts.who, sent.key)
        if expert is None:
            if wrong.take(who) > 0:
                return _refuse(429, "too many wrong keys from this address")
            return _refuse(403, "this key is not known here")

        def write() -> ItemReview:
            reader = house.find(season)
            try:
                item_page(house.reader.store, reader.season.id, item)
            except UserError as error:
                raise NotHere(error.message, hint=error.hint) from error
            return confirm(house.reader.store, item, expert, sent.verdict, note=sent.note)

        review = await run_in_threadpool(write)
        return Response(msgspec.json.encode(review), 200, {"cache-control": "no-store"}, "application/json")

    return router


def _refuse(status: int, detail: str) -> Response:
    return Response(msgspec.json.encode(Problem(detail=detail)), status, media_type="application/json")
