"""Serving an arena: the application under uvicorn, with or without a season played beside it."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from socket import socket

import msgspec
import uvicorn
from fastapi import FastAPI

from tradeassay.agents.foreign.address import parse_networks
from tradeassay.arena.agents import OUTSIDE, check_entries
from tradeassay.arena.clock import parse_speed
from tradeassay.arena.doors import router as door
from tradeassay.arena.doors.doors import Doors
from tradeassay.arena.reading.reader import Reader
from tradeassay.arena.season import Season
from tradeassay.arena.state.engine import open_engine
from tradeassay.arena.state.store import Store
from tradeassay.arena.web.app import create_app
from tradeassay.arena.web.experts import Experts
from tradeassay.arena.web.playing import Player
from tradeassay.core.secrets import remember


class Serving(msgspec.Struct, frozen=True, kw_only=True):
    """How an arena is served. ``speed`` as :func:`parse_speed` reads it; ``experts`` may judge the stream.

    ``allow`` are private networks in which agents may live all the same.
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

    Without a season what the database holds is shown. Stopping is clean and starting again goes on. Raises
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
        Reader(store),
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
