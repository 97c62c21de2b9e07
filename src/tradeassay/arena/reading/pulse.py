"""What happened last. Everything that is shown is as old as the newest event it was made from."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock

import msgspec
from sqlalchemy import func, select

from tradeassay.arena.state.records import Event
from tradeassay.arena.state.store import Store
from tradeassay.arena.state.tables import events

MOST_EVENTS = 500
"""How many events one question may ask for."""

_ANY = msgspec.json.Decoder()


class Pulse:
    """The numbers of the newest events, asked for at most every ``rest_s`` seconds by however many readers."""

    def __init__(self, store: Store, rest_s: float = 0.05, now: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._rest_s = rest_s
        self._now = now
        self._lock = Lock()
        self._found: dict[tuple[str | None, str | None], tuple[float, int]] = {}

    def newest(self, season: str | None, kind: str | None = None) -> int:
        """Return the number of the newest event of a season (None: of all) and a kind, 0 when there is none."""
        key = (season, kind)
        with self._lock:
            at, seq = self._found.get(key, (float("-inf"), 0))
            if self._now() - at < self._rest_s:
                return seq
            seq = self._ask(season, kind, seq)
            self._found[key] = (self._now(), seq)
            return seq

    def _ask(self, season: str | None, kind: str | None, known: int) -> int:
        # Only what is newer than the last answer is looked at: a kind has no index of its own.
        query = select(func.max(events.c.seq)).where(events.c.seq > known)
        if season is not None:
            query = query.where(events.c.season == season)
        if kind is not None:
            query = query.where(events.c.kind == kind)
        with self._store.read() as db:
            return int(db.execute(query).scalar() or known)

    def after(self, season: str | None, seq: int, most: int = MOST_EVENTS) -> tuple[Event, ...]:
        """Return the events of a season (None: of all) after a number, oldest first."""
        query = select(events).where(events.c.seq > seq).order_by(events.c.seq).limit(min(most, MOST_EVENTS))
        return self._read(query if season is None else query.where(events.c.season == season))

    def before(self, season: str, seq: int | None, most: int) -> tuple[Event, ...]:
        """Return the newest events of a season below a number (None: no bound), newest first."""
        query = select(events).where(events.c.season == season).order_by(events.c.seq.desc())
        query = query.limit(min(most, MOST_EVENTS))
        return self._read(query if seq is None else query.where(events.c.seq < seq))

    def _read(self, query: object) -> tuple[Event, ...]:
        with self._store.read() as db:
            return tuple(
                Event(seq=row.seq, season=row.season, kind=row.kind, at=row.at, body=_ANY.decode(row.body))
                for row in db.execute(query)  # type: ignore[call-overload]  # any of the selects above
            )
