"""Serving an arena: the application under uvicorn, with or without a season played in a thread beside it."""

from __future__ import annotations

import asyncio
import platform
import re
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from socket import socket
from typing import Any

import msgspec
import uvicorn
from sqlalchemy.exc import SQLAlchemyError

from tradeassay.agents.foreign.transport import Network, parse_networks
from tradeassay.arena.agents import OUTSIDE, EntryAgent, ModelOpener, OutsideAgent, check_entries, entry_agents
from tradeassay.arena.api.doors import Doors, KeyKind
from tradeassay.arena.api.outside import outside_agents, refuse_private
from tradeassay.arena.api.router import listen
from tradeassay.arena.clock import ArenaClock, LiveClock, ReplayClock, parse_speed
from tradeassay.arena.rounds.feed import LiveFeed, PriceFeed, SnapshotFeed, check_data, is_live, parse_renamed
from tradeassay.arena.rounds.health import Health, Mark, give_back, own_name
from tradeassay.arena.rounds.running import Runner
from tradeassay.arena.rounds.spending import capped, check_prices
from tradeassay.arena.season import Season
from tradeassay.arena.state.engine import open_engine
from tradeassay.arena.state.store import Store
from tradeassay.arena.stream import stream_publisher
from tradeassay.arena.stream.connectors import collect, connectors_of
from tradeassay.arena.web.app import Arena, create_app
from tradeassay.arena.web.site import PageWriter
from tradeassay.core.errors import SourceError, UserError
from tradeassay.core.secrets import remember
from tradeassay.core.time import SECOND, Instant, iso
from tradeassay.llm import Access, Budget, ModelParams, open_model


class PlayOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a season is played.

    ``allow`` are private networks in which agents may be reached nevertheless. ``worker`` is this process's name
    (None: the machine's, and a number where several play here). ``renamed`` are live symbols that have changed
    (OLD=NEW). ``on_health`` is given the worker's health once. A live season goes by ``clock``. A replay from a
    record brings its own ``opener`` of models, ``feed``, and agents ``outside``.

    Models are reached as ``access`` says, over so many ``connections`` each. ``budget`` binds all of them: at its
    cap the season stops with :class:`SeasonCapped` and can be continued. ``progress`` is told of every round of a
    replay."""

    allow: Sequence[Network] = ()
    worker: str | None = None
    opener: ModelOpener | None = None
    renamed: Sequence[str] = ()
    on_health: Callable[[Health], None] = lambda health: None
    clock: LiveClock | None = None
    feed: PriceFeed | None = None
    outside: Mapping[str, OutsideAgent] | None = None
    access: Access | None = None
    connections: int = 10
    budget: Budget | None = None
    progress: Callable[[int, int], None] = lambda done, total: None


async def play(
    season: Season, store: Store, speed: float | None, until: Instant | None = None, how: PlayOptions | None = None
) -> int:
    """Play a season from where its database ends; returns how many rounds this worker finished.

    A season of live assets is played by the machine's clock, any other is replayed at ``speed``. Everything agents
    read goes through the information stream; live sources are collected beside the rounds. May be cancelled at any
    moment and called again. Raises :class:`UserError` for entries that cannot take part and for missing data, and
    :class:`Stalled` when something stays away for too long."""
    how, live = how or PlayOptions(), is_live(season)
    if live:
        check_data(season)
    if how.opener is None and how.budget is None:
        check_prices(season)
    usual = partial(open_model, access=how.access, connections=how.connections, budget=how.budget)
    opener = how.opener or capped(usual)
    base = (platform.node() or "main")[:40]
    worker, held = (how.worker, None) if how.worker else own_name(base, f"{store.engine.url}/{season.id}")
    clock: ArenaClock = (how.clock or LiveClock()) if live else ReplayClock(speed=speed)
    async with AsyncExitStack() as stack:
        if held is not None:
            stack.callback(give_back, held)
        if how.outside is None:
            await refuse_private(season, how.allow)
        renamed = parse_renamed(season, how.renamed)
        feed: PriceFeed = how.feed or (
            LiveFeed(clock=clock, owner=f"{season.id}-{worker}", first=season.first, renamed=renamed)
            if live
            else SnapshotFeed.open(season)
        )

        async def seat(part: Season) -> dict[str, EntryAgent]:
            outside = how.outside
            if outside is None:
                doors = Doors(store, how.clock)
                outside = await stack.enter_async_context(outside_agents(part, doors, allow=how.allow))
            opened = entry_agents(part, outside=outside, opener=opener, recorded=how.opener is not None)
            return await stack.enter_async_context(opened)

        summariser, checker = [
            await stack.enter_async_context(opener(name, ModelParams(temperature=0.0, max_tokens=800)))
            if name
            else None
            for name in (season.summary.model, season.summary.checker)
        ]
        runner = Runner(
            season=season,
            store=store,
            feed=feed,
            clock=clock,
            agents=await seat(season),
            seat=seat,
            publish=stream_publisher(store, summariser, checker=checker),
            worker=worker,
            progress=how.progress,
        )
        how.on_health(runner.health)
        beside = [asyncio.create_task(_collect(runner))] if live and connectors_of(season, clock) else []
        if isinstance(feed, LiveFeed):
            beside.append(asyncio.create_task(_mark(runner, feed)))
        try:
            return await runner.run(until)
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)


async def _collect(runner: Runner) -> None:
    """Visit the live sources again and again; whatever goes wrong is told, of each by itself, and tried again."""
    season, clock = runner.season, runner.clock
    sources = connectors_of(season, clock)
    while True:
        if season.assets != runner.season.assets:  # one was added
            season = runner.season
            sources = connectors_of(season, clock)
        try:
            failed = await collect(runner.store, season, sources, clock)
        except Exception as error:  # the database, say: the rounds notice it too, and this goes on when it is back
            runner.health.trouble("news", error, "warning")
        else:
            runner.health.fine("news")
            for address in {one.address for one in sources}:
                if address in failed:
                    runner.health.trouble(f"feed {address}", SourceError(failed[address]), "warning")
                else:
                    runner.health.fine(f"feed {address}")
        await clock.wait_until(clock.now() + season.news.every_s * SECOND)


MARK_S = 900.0
"""How often vendors are asked for prices between the closes, in seconds."""


async def _mark(runner: Runner, feed: LiveFeed) -> None:
    """Look now and then what open positions have made since the last close. The rounds do not depend on it."""
    while True:
        for asset in runner.season.assets:
            try:
                last = runner.store.last_round(runner.season.id, asset.symbol)
            except SQLAlchemyError:  # the rounds notice it, and say so
                break
            held = last is not None and last.phase == "executed"
            growth = await asyncio.to_thread(feed.growth_since, asset, last.session) if last and held else None
            if last is None or growth is None:
                runner.health.marks.pop(asset.symbol, None)
            else:
                now = iso(runner.clock.now())
                runner.health.marks[asset.symbol] = Mark(session=last.session, growth=growth, at=now)
        await runner.clock.wait_until(runner.clock.now() + int(MARK_S * SECOND))


class Player:
    """Runs :func:`play` in a thread: the doors stay quick while agents think.

    ``ended`` is called when the season cannot go on; ``error`` says why."""

    def __init__(
        self,
        season: Season,
        store: Store,
        how: Serving,
        clock: LiveClock | None = None,
        say: Callable[[str], None] = lambda text: None,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        speed, allow = parse_speed(how.speed), parse_networks(how.allow)
        options = PlayOptions(allow=allow, renamed=how.renamed, on_health=self._hear, clock=clock)
        self._play: Callable[[], Coroutine[Any, Any, int]] = lambda: play(season, store, speed, how=options)
        self._webhook, self._say, self._ended = how.webhook, say, ended
        self.health: Health | None = None
        self.error: Exception | None = None
        self._cancel: Callable[[], object] = lambda: None
        self._stopping = threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name=f"season-{season.id}", daemon=True)

    def start(self, come: Callable[[], bool] = lambda: True) -> None:
        self._come = come
        self._thread.start()

    def stop(self, timeout_s: float = 20.0) -> bool:
        """Stop after the present transaction; what was asked and not yet written will be asked again.

        Returns whether the season was stopped before its end, which has been said then."""
        self._stopping.set()
        with suppress(RuntimeError):  # it has ended already
            self._cancel()
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        return self._stopped

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait for the season's end; False when it is still played."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        if not self._come():
            self._say("waiting for the first agent to register")
            while not self._come():
                if self._stopping.wait(0.3):
                    return
            self._say("the first agent is here; the season begins")
        try:
            done = asyncio.run(self._main())
            self._say(f"season over: {done} rounds finished now")
        except asyncio.CancelledError:
            self._stopped = True
            self._say("stopped; start again to go on")
        except Exception as error:
            # The thread's end must not be silent: pages would stand still and nobody would know why.
            self.error = error
            self._say(f"the season cannot go on: {error}")
            self._ended()

    async def _main(self) -> int:
        task = asyncio.current_task()
        assert task is not None  # asyncio.run made one
        self._cancel = partial(task.get_loop().call_soon_threadsafe, task.cancel)
        return 0 if self._stopping.is_set() else await self._play()

    def _hear(self, health: Health) -> None:
        def alert(text: str) -> None:
            """Say what begins to fail, or that all is well again, here and at the operator's address."""
            self._say(text)
            if self._webhook:
                body = msgspec.json.encode({"season": health.season, "text": f"arena '{health.season}': {text}"})
                threading.Thread(target=_post, args=(self._webhook, body), name="webhook", daemon=True).start()

        self.health, health.say = health, alert


def _post(address: str, body: bytes) -> None:
    """Send an alert, three times at the most: the season does not depend on who hears of it."""
    request = urllib.request.Request(address, body, {"content-type": "application/json"})
    for pause in (1.0, 10.0, 0.0):
        try:
            urllib.request.urlopen(request, timeout=10).close()
        except OSError:
            time.sleep(pause)
        else:
            return


class Serving(msgspec.Struct, frozen=True, kw_only=True):
    """How an arena is served. ``speed`` as :func:`parse_speed` reads it; ``experts`` may judge the stream.

    ``pages`` is the folder of the site (empty: one named after the database). ``allow`` are private networks in
    which agents may be reached nevertheless, ``renamed`` live symbols that have changed (OLD=NEW). ``wait`` holds
    a replay until the first agent from outside is registered. ``proxies`` are the networks of proxies that say
    whose request they pass on. ``webhook`` is an address that is sent what begins to fail."""

    db: str = "arena.db"
    host: str = "127.0.0.1"
    port: int = 8000
    speed: str = "1d/2s"
    experts: tuple[str, ...] = ()
    register: bool = False
    apply: bool = False
    embed: str = ""
    allow: tuple[str, ...] = ()
    renamed: tuple[str, ...] = ()
    wait: bool = False
    pages: str = ""
    webhook: str = ""
    proxies: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        if self.pages:
            return Path(self.pages)
        return Path("arena-pages") if "://" in self.db else Path(self.db).with_suffix(".pages")


class ArenaServer(uvicorn.Server):
    """A server that lets agents who wait for a packet go when it is told to stop."""

    def __init__(self, config: uvicorn.Config, closing: threading.Event) -> None:
        super().__init__(config)
        self._closing = closing

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        self._closing.set()
        await super().shutdown(sockets)


def serve(season: Season | None, how: Serving, say: Callable[[str], None]) -> None:
    """Serve until the process is told to stop; a season, when there is one, is played beside the pages.

    Without a season what the database holds is shown. Stopping is clean and starting again resumes. Raises
    :class:`UserError` for a season that cannot be played or a database that cannot be opened."""
    parse_speed(how.speed)
    parse_networks(how.proxies)
    if how.embed and not re.fullmatch(r"\*|https?://[A-Za-z0-9.:-]+", how.embed):
        raise UserError(f"'{how.embed[:80]}' is no origin", hint="give one like https://blog.example.org, or '*'")
    if how.webhook and not how.webhook.startswith(("http://", "https://")):
        raise UserError(f"'{how.webhook[:80]}' is no web address", hint="give one like https://...")
    store = Store(open_engine(how.db))
    clock = LiveClock()
    doors, player = Doors(store, clock), None
    if season is not None:
        check_entries(season, tuple(e.id for e in season.entries if e.architecture in OUTSIDE))
        check_data(season)
        check_prices(season)
        # A replay knows no time but its own.
        store.found_season(season, iso(clock.now() if is_live(season) else 0))
        parse_renamed(season, how.renamed)
        player = Player(season, store, how, clock, say, ended=lambda: setattr(server, "should_exit", True))
    listening = listen(how.host, how.port)
    # The keys that are asked for and do not exist yet are shown this once.
    wanted: list[tuple[KeyKind, str]] = [("expert", name) for name in how.experts]
    wanted += [("operator", "operator")] if how.register else []
    for kind, name in wanted:
        if name in doors.key_names(kind):
            say(f"{kind} '{name}' has a key already; 'tradeassay arena amend key {kind} {name}' makes a new one")
            continue
        key = doors.issue_key(kind, name, now=iso(doors.clock.now()))
        say(f"key of {kind} '{name}': {key}")
        # Its id is no secret: the database is asked for it whenever the key is used.
        remember(key.split("-", 2)[2])

    def own() -> Health | None:
        return None if player is None else player.health

    arena = Arena(doors=doors, folder=how.folder, register=how.register, apply=how.apply, embed=how.embed, own=own)
    config = uvicorn.Config(
        create_app(arena),
        host=how.host,
        port=how.port,
        log_level="warning",
        timeout_graceful_shutdown=3,
        server_header=False,
        http="h11",
        limit_concurrency=1200,  # the proxy says how many of them one address may have
        proxy_headers=bool(how.proxies),
        forwarded_allow_ips=list(how.proxies),
    )
    server = ArenaServer(config, doors.closing)
    done = threading.Event()
    pages = PageWriter(store, how.folder, own=own, doors=doors)
    writing = threading.Thread(target=pages.follow, args=(done,), name="pages", daemon=True)
    # So long a page that is being made may keep an agent waiting for the interpreter (Python's own: 5 ms).
    sys.setswitchinterval(0.001)
    writing.start()
    say(f"arena: http://{how.host}:{how.port}/  (stop with Ctrl-C)")
    if player is not None and season is not None:
        id = season.id
        player.start(lambda: not how.wait or bool(doors.registered(id)))
    try:
        server.run([listening])
    except KeyboardInterrupt:
        if player is None or not player.stop():
            raise
        raise KeyboardInterrupt("the player has said it") from None
    finally:
        if player is not None:
            player.stop()
        done.set()  # the pages are written once more: they say that nobody plays now
        writing.join(20)
        store.engine.dispose()
    if player is not None and player.error is not None:
        raise player.error
