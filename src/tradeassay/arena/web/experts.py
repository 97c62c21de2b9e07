"""Experts confirm or reject what the stream published. Each has a key; only its salted hash is kept."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from fastapi import APIRouter, Path, Request, Response
from starlette.concurrency import run_in_threadpool

from tradeassay.arena.api.doors import Doors, TurnedAway
from tradeassay.arena.api.router import Limiter, described, read_json, refusal, takes
from tradeassay.arena.stream import ItemReview, confirm, item_page
from tradeassay.core.errors import UserError

MOST_BYTES = 8192
_Name = Annotated[str, Path(max_length=64)]


class ExpertVerdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an expert sends: the key, and whether what is shown is a true and fair account of the source."""

    key: Annotated[str, msgspec.Meta(max_length=128)]
    verdict: Literal["confirm", "reject"]
    note: Annotated[str, msgspec.Meta(max_length=2000)] = ""


def judging(doors: Doors) -> APIRouter:
    """Return the route by which experts judge. JSON alone is taken, so that no foreign page can post here."""
    router = APIRouter(prefix="/api", tags=["experts"])
    wrong = Limiter(10.0, 10)

    @router.post(
        "/seasons/{season}/items/{item}/reviews",
        responses=described(ItemReview, "The verdict, as it is on record.", 403, 404, 413, 415, 422, 429),
        openapi_extra={"requestBody": takes(ExpertVerdict)},
    )
    async def judge(request: Request, season: _Name, item: _Name) -> Response:
        """Confirm or reject an item; a second verdict of the same expert replaces the first."""
        try:
            sent = await read_json(request, ExpertVerdict, MOST_BYTES)
        except TurnedAway as error:
            return refusal(error.status, error.detail)
        expert = await run_in_threadpool(doors.key_owner, "expert", sent.key)
        if expert is None:
            if wrong.take(request.client.host if request.client else "?") > 0:
                return refusal(429, "too many wrong keys from this address")
            return refusal(403, "this key is not known here")

        def write() -> ItemReview:
            item_page(doors.store, season, item)
            return confirm(doors.store, item, expert, sent.verdict, note=sent.note)

        try:
            review = await run_in_threadpool(write)
        except UserError as error:
            return refusal(404, error.message, error.hint)
        return Response(msgspec.json.encode(review), 200, {"cache-control": "no-store"}, "application/json")

    return router
