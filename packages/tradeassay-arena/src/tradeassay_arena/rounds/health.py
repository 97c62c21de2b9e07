"""Report the health of a worker: its state and its problems, in the process and in the database.

A worker writes a report every few seconds of real time. Without its database it cannot write. A
reader of the last report then sees the report's age and displays "stalled" instead of "live".
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import IO, Literal

import msgspec
from sqlalchemy import insert, select, update
from sqlalchemy.exc import SQLAlchemyError

from tradeassay.core.errors import TradeassayError
from tradeassay_arena.state.store import Store
from tradeassay_arena.state.tables import workers
from tradeassay_bench.core.drive import fault_of
from tradeassay_bench.core.time import SECOND, Instant, iso

WorkerState = Literal["live", "replay", "stalled", "finished", "stopped"]
SILENT_S = 90.0
"""Number of seconds without a report after which a worker is stalled, whatever it reported."""

BEAT_S = 15.0
Level = Literal["warning", "alarm", "stalled"]
"""The severity of a problem.

``warning``: the season can continue without the part. ``alarm``: a person should look at the part.
``stalled``: no round can be run.
"""


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """A part that fails repeatedly.

    It has the time of the first failure, the number of failures, the last error and its level.
    """

    part: str
    since: str
    count: int
    text: str
    level: Level = "stalled"


class WorkerHealth(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's last report. ``silent_s`` is its age in seconds."""

    season: str
    worker: str
    state: WorkerState
    since: str
    silent_s: float
    rounds: int
    next_at: str | None
    troubles: tuple[Trouble, ...]


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """An asset's newest price divided by its close of a session.

    Unfinished sessions are included. No booking uses this price.
    """

    session: str
    growth: float
    at: str


class Health:
    """The health of one worker. The class is thread-safe.

    ``now`` returns real time in seconds. ``say`` is called with a message when a part begins to
    fail, and when every part works again.
    """

    def __init__(
        self, season: str, worker: str, *, live: bool, now: Callable[[], float] = time.time
    ) -> None:
        self.season, self.worker = season, worker
        self._running: WorkerState = "live" if live else "replay"
        self._state: WorkerState = self._running
        self._now = now
        self._lock = Lock()
        self._since = _iso(self._now())
        self._troubles: dict[str, Trouble] = {}
        self._next: Instant | None = None
        self._beat = float("-inf")
        self.rounds = 0
        self.marks: dict[str, Mark] = {}
        self.say: Callable[[str], None] = lambda text: None

    def trouble(self, part: str, error: BaseException, level: Level = "stalled") -> None:
        """Record that a part failed.

        With the level ``stalled``, the worker is stalled until the part works again.
        """
        text = error.message if isinstance(error, TradeassayError) else str(fault_of(error))
        with self._lock:
            known = self._troubles.get(part)
            since, count = (_iso(self._now()), 0) if known is None else (known.since, known.count)
            noted = Trouble(part=part, since=since, count=count + 1, text=text[:500], level=level)
            self._troubles[part] = noted
            if level == "stalled":
                self._turn("stalled")
        if known is None:
            warned = {
                "warning": "the season continues without it",
                "alarm": "a person should look at it",
            }
            first = text.splitlines()[0][:300] if text else "failed"
            self.say(f"{part}: {first}; {warned.get(level, 'trying again')}")

    def fine(self, part: str) -> None:
        if part in self._troubles:
            with self._lock:
                self._troubles.pop(part, None)
                if not any(one.level == "stalled" for one in self._troubles.values()):
                    self._turn(self._running)
                well = not self._troubles
            if well:
                self.say("everything works again")

    def waits(self, at: Instant | None) -> None:
        self._next = at

    def ends(self, state: WorkerState, store: Store) -> None:
        with self._lock:
            self._turn(state)
        self.beat(store, force=True)

    def _turn(self, state: WorkerState) -> None:
        if state != self._state:
            self._state, self._since = state, _iso(self._now())

    def told(self) -> WorkerHealth:
        """Return the present state of this worker as a report."""
        with self._lock:
            return WorkerHealth(
                season=self.season,
                worker=self.worker,
                state=self._state,
                since=self._since,
                silent_s=0.0,
                rounds=self.rounds,
                next_at=None if self._next is None else iso(self._next),
                troubles=tuple(self._troubles.values()),
            )

    def beat(self, store: Store, *, force: bool = False) -> bool:
        """Write a report to the database every few seconds, and return whether it was time for a
        report.

        A database that is missing, or whose disk is full, is recorded as a problem and does not
        stop the worker.
        """
        now = self._now()
        if not force and now - self._beat < BEAT_S:
            return False
        self._beat = now
        here = self.told()
        copied = {name: getattr(here, name) for name in ("state", "since", "rounds", "next_at")}
        row = {**copied, "beat": now, "troubles": msgspec.json.encode(here.troubles).decode()}
        key = {"season": self.season, "worker": self.worker}
        try:
            with store.change() as db:
                if db.execute(update(workers).filter_by(**key).values(**row)).rowcount == 0:
                    db.execute(insert(workers).values(**key, **row))
        except (
            SQLAlchemyError
        ) as error:  # a separate part: a database on a full disk can be read, but is not healthy
            self.trouble("database writing", error)
        else:
            self.fine("database writing")
        return True


def claim_name(base: str, where: str) -> tuple[str, IO[str] | None]:
    """Return a worker name that no other process of this machine uses, and its open lock file.

    ``where`` names the database. A restarted process gets its old name again. A second process gets
    the next number.
    """
    try:
        import fcntl
    except (
        ImportError
    ):  # there are no such locks here: use a unique name, which changes at every restart
        return f"{base}-{os.getpid()}", None
    for number in range(1, 1000):
        name = base if number == 1 else f"{base}-{number}"
        mark = hashlib.sha256(f"{where}/{name}".encode()).hexdigest()[:20]
        path = Path(tempfile.gettempdir()) / f"tradeassay-{mark}.worker"
        try:
            held = path.open("a")
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(
                os.fstat(held.fileno()), path.stat()
            ):  # a new lock of another process
                continue
        except OSError:  # taken, or released at this moment
            continue
        return name, held
    return f"{base}-{os.getpid()}", None


def release_name(held: IO[str]) -> None:
    """Release the name that ``held`` locks and delete the lock file."""
    Path(held.name).unlink(missing_ok=True)
    held.close()


def _iso(seconds: float) -> str:
    return iso(int(seconds) * SECOND)


def read_workers(
    store: Store, season: str | None = None, now: float | None = None
) -> tuple[WorkerHealth, ...]:
    """Return the last reports of a season's workers, by name. None means all seasons."""
    at = time.time() if now is None else now
    query = select(workers).order_by(workers.c.season, workers.c.worker)
    found = []
    for row in store.rows(query if season is None else query.filter_by(season=season)):
        silent, state, since = max(at - row.beat, 0.0), row.state, row.since
        if state in ("live", "replay") and silent > SILENT_S:
            state, since = "stalled", _iso(row.beat)
        copied = {name: getattr(row, name) for name in ("season", "worker", "rounds", "next_at")}
        troubles = msgspec.json.decode(row.troubles, type=tuple[Trouble, ...])
        found.append(
            WorkerHealth(**copied, state=state, since=since, silent_s=silent, troubles=troubles)
        )
    return tuple(found)
