"""Serving an arena: the application under uvicorn, with or without a season played in a thread beside it."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from socket import socket

import msgspec
import uvicorn
from fastapi import FastAPI

from tradeassay.agents.foreign.address import Network, parse_networks
from tradeassay.arena.agents import OUTSIDE, check_entries, entry_agents
from tradeassay.arena.clock import ArenaClock, LiveClock, ReplayClock, parse_speed
from tradeassay.arena.doors import router as door
from tradeassay.arena.doors.doors import Doors
from tradeassay.arena.doors.outside import outside_agents
from tradeassay.arena.reading.reader import ArenaReader
from tradeassay.arena.rounds.feed import LiveFeed, PriceFeed, SnapshotFeed, is_live
from tradeassay.arena.rounds.running import Runner
from tradeassay.arena.season import Season
from tradeassay.arena.state.engine import open_engine
from tradeassay.arena.state.store import Store
from tradeassay.arena.stream import stream_publisher
from tradeassay.arena.web.app import create_app
from tradeassay.arena.web.experts import Experts
from tradeassay.core.secrets import remember
from tradeassay.core.time import Instant


async def play(
    season: Season,
    store: Store,
    speed: float | None,
    until: Instant | None = None,
    *,
    allow: Sequence[Network] = (),
) -> int:
    """Play a season from where its database ends; returns how many rounds were finished.

    A season of live assets is played by the machine's clock, any other is replayed at ``speed``.

    ``allow`` are private networks in which agents may be reached nevertheless.

    Everything agents read goes through the information stream. May be cancelled at any moment and called again.
    Raises :class:`UserError` for entries that cannot take part and for missing data.
    """
    live = is_live(season)
    feed: PriceFeed = LiveFeed() if live else SnapshotFeed.open(season)
    async with AsyncExitStack() as stack:
        outside = await stack.enter_async_context(outside_agents(season, Doors(store), allow=allow))
        seated = await stack.enter_async_context(entry_agents(season, outside=outside))
        clock: ArenaClock = LiveClock() if live else ReplayClock(speed=speed)
        runner = Runner(
            season=season,
            store=store,
            feed=feed,
            clock=clock,
            agents=seated,
            publish=stream_publisher(store, season),
        )
        return await runner.run(until)


class Player:
    """Runs :func:`play` in a thread: pages stay quick while agents think."""

    def __init__(
        self,
        season: Season,
        store: Store,
        speed: float | None,
        told: Callable[[str], None] | None = None,
        *,
        allow: Sequence[Network] = (),
    ) -> None:
        self._plan = (season, store, speed)
        self._allow = allow
        self._told = told or (lambda text: None)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[int] | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"season-{season.id}", daemon=True)
        self.error: Exception | None = None

    def start(self) -> None:
        """Begin, or go on where the database ends."""
        self._thread.start()

    def stop(self, timeout_s: float = 20.0) -> None:
        """Stop after the present transaction; what was asked and not yet written will be asked again."""
        self._stopping.set()
        loop, task = self._loop, self._task
        if loop is not None and task is not None and not loop.is_closed():
            try:
                loop.call_soon_threadsafe(task.cancel)
            except RuntimeError:  # it ended at this very moment
                pass
        self._thread.join(timeout_s)

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait for the season's end; False when it is still played."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            done = asyncio.run(self._main())
            self._told(f"season over: {done} rounds finished now")
        except asyncio.CancelledError:
            self._told("stopped; start again to go on")
        except Exception as error:
            # The thread's end must not be silent: pages would stand still and nobody would know why.
            self.error = error
            self._told(f"the season cannot go on: {error}")

    async def _main(self) -> int:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        if self._stopping.is_set():
            return 0
        season, store, speed = self._plan
        return await play(season, store, speed, allow=self._allow)


class Serving(msgspec.Struct, frozen=True, kw_only=True):
    """How an arena is served. ``speed`` as :func:`parse_speed` reads it; ``experts`` may judge the stream.

    ``allow`` are private networks in which agents may be reached nevertheless.
    """

    db: str = "arena.db"
    host: str = "127.0.0.1"
    port: int = 8000
    speed: str = "1d/2s"
    experts: tuple[str, ...] = ()
    register: bool = False
    allow: tuple[str, ...] = ()


class ArenaServer(uvicorn.Server):
    """A server that ends its live streams when it is told to stop, so that nobody's open page holds it up."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._stopping = app.state.house.stopping

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """End the streams, then everything else."""
        self._stopping.set()
        await super().shutdown(sockets)


def serve(season: Season | None, how: Serving, say: Callable[[str], None]) -> None:
    """Serve until the process is told to stop; a season, when there is one, is played beside the pages.

    Without a season what the database holds is shown. Stopping is clean and starting again resumes. Raises
    :class:`UserError` for a season that cannot be played or a database that cannot be opened.
    """
    pace = parse_speed(how.speed)
    store = Store(open_engine(how.db))
    player = None
    if season is not None:
        check_entries(season, tuple(e.id for e in season.entries if e.architecture in OUTSIDE))
        store.found_season(season, "1970-01-01T00:00:00Z")
        player = Player(season, store, pace, say, allow=parse_networks(how.allow))
    experts = Experts(how.experts)
    for name, key in experts.keys.items():
        say(f"key of expert '{name}': {key}")
    experts.forget_keys()
    operator = secrets.token_urlsafe(24) if how.register else None
    if operator is not None:
        say(f"operator's token for registering agents: {operator}")
        remember(operator)  # shown this once
    app = create_app(
        ArenaReader(store),
        current=None if season is None else season.id,
        speed=how.speed if season is not None else None,
        extra=(door.router(Doors(store), operator=operator),),
        types=door.TYPES,
        experts=experts,
    )
    config = uvicorn.Config(
        app, host=how.host, port=how.port, log_level="warning", timeout_graceful_shutdown=3, server_header=False
    )
    say(f"arena: http://{how.host}:{how.port}/  (stop with Ctrl-C)")
    if player is not None:
        player.start()
    try:
        ArenaServer(config, app).run()
    finally:
        if player is not None:
            player.stop()
        store.engine.dispose()
