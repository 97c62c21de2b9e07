"""What all routes of the arena stand on: the reader, the answers kept, and finding a season by its id."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from tradeassay.arena.reading.reader import Reader, SeasonReader
from tradeassay.arena.season import Entry
from tradeassay.arena.web.answers import Answers
from tradeassay.core.errors import UserError


class NotHere(UserError):
    """Asked for something that does not exist; answered with 404."""


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """One reader, one store of answers; ``speed`` is what a replay in this process was started with.

    ``judged``: experts may judge items of the stream here.
    """

    reader: Reader
    answers: Answers = field(default_factory=Answers)
    current: str | None = None
    speed: str | None = None
    judged: bool = False
    stopping: Event = field(default_factory=Event)

    def find(self, season: str) -> SeasonReader:
        """Return a season's reader; raises :class:`NotHere`."""
        found = self.reader.season(season)
        if found is None:
            raise NotHere(f"no season '{season[:80]}'", mend="see /api/seasons")
        return found

    def default(self) -> str | None:
        """Return the season that is shown to who asks for none: the one that is played here, or the newest."""
        return self.current or next(iter(self.reader.ids()), None)

    async def json(
        self, request: Request, season: str, key: Hashable, make: Callable[[SeasonReader], Any]
    ) -> Response:
        """Answer with a struct as JSON, made once per event."""
        reader = await run_in_threadpool(self.find, season)
        version = (reader.seq, reader.view().version)
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
        raise NotHere(error.message[:200], mend=error.mend) from error


def asset_of(reader: SeasonReader, symbol: str) -> str:
    """Return a symbol the season trades; raises :class:`NotHere`."""
    try:
        return reader.season.asset(symbol).symbol
    except UserError as error:
        raise NotHere(error.message[:200], mend=error.mend) from error
