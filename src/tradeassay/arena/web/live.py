"""Server-sent events: what happens, as it happens. A reader that lost its connection resumes where it was."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

import msgspec
from fastapi import APIRouter, Header, Query, Request
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from tradeassay.arena.state.rows import SeasonEvent
from tradeassay.arena.web.context import House, problem

BATCH = 100
"""How many events are read at a time; a slow reader holds these and no more, whatever happens meanwhile."""


def live(house: House, *, poll_s: float = 0.25, heartbeat_s: float = 15.0, most_readers: int = 500) -> APIRouter:
    """Return the route of the stream. ``most_readers`` may listen at once; others are told to come back."""
    router = APIRouter(prefix="/api", tags=["arena"])
    listening: set[object] = set()

    @router.get(
        "/events/stream",
        response_class=StreamingResponse,
        responses={
            200: {"description": "Events without end.", "content": {"text/event-stream": {}}},
            404: problem("There is no such season."),
            422: problem("A parameter does not fit."),
            503: problem("Too many readers listen already."),
        },
    )
    async def stream(
        request: Request,
        season: Annotated[str | None, Query(max_length=64, description="Only this season's events.")] = None,
        after: Annotated[int | None, Query(ge=0, le=2**31 - 1, description="Begin after this number.")] = None,
        last_event_id: Annotated[str | None, Header(max_length=32)] = None,
    ) -> Response:
        """Stream events; without a number to begin after, from now on. `Last-Event-ID` resumes."""
        if season is not None:
            await run_in_threadpool(house.find, season)
        if len(listening) >= most_readers:
            body = msgspec.json.encode({"detail": "too many readers listen already", "hint": "try again later"})
            return Response(body, 503, {"retry-after": "30"}, "application/json")
        seq = _resume(last_event_id, after)
        if seq is None:
            seq = await run_in_threadpool(house.reader.pulse.newest, season)
        return StreamingResponse(
            _listen(seq, season), media_type="text/event-stream", headers={"cache-control": "no-store"}
        )

    async def _listen(seq: int, season: str | None) -> AsyncIterator[bytes]:
        me = object()
        listening.add(me)
        try:
            yield b"retry: 2000\n\n"
            quiet = 0.0
            while not house.stopping.is_set():  # else a stopping server would wait for its readers
                found: tuple[SeasonEvent, ...] = ()
                try:
                    if house.reader.pulse.newest(season) > seq:
                        found = await run_in_threadpool(house.reader.events_after, season, seq, BATCH)
                except SQLAlchemyError:  # it is told when the database is back
                    await asyncio.sleep(1.0)
                for event in found:
                    seq = event.seq
                    yield written(event)
                quiet = 0.0 if found else quiet + poll_s
                if quiet >= heartbeat_s:
                    quiet = 0.0
                    yield b": still here\n\n"
                if len(found) < BATCH:
                    await asyncio.sleep(poll_s)
        finally:
            listening.discard(me)

    return router


def written(event: SeasonEvent) -> bytes:
    """Return an event in the stream's form; encoded JSON has no line breaks, inside its strings or outside."""
    return f"id: {event.seq}\nevent: {event.kind}\ndata: ".encode() + msgspec.json.encode(event) + b"\n\n"


def _resume(header: str | None, after: int | None) -> int | None:
    """Return the number to begin after: the browser's own memory first, then the address."""
    if header is not None and header.isascii() and header.isdigit() and int(header) < 2**31:
        return int(header)
    return after
