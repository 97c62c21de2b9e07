"""Serve an arena: the application under uvicorn.

A season may run in a thread of the same process.
"""

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

from tradeassay.core.errors import UserError
from tradeassay.core.secrets import remember
from tradeassay_arena.agents import (
    OUTSIDE,
    EntryAgent,
    ModelOpener,
    OutsideAgent,
    check_entries,
    entry_agents,
)
from tradeassay_arena.api.agent_api import AgentApi, KeyKind
from tradeassay_arena.api.outside import outside_agents, refuse_private
from tradeassay_arena.api.router import listen
from tradeassay_arena.clock import ArenaClock, LiveClock, ReplayClock, parse_speed
from tradeassay_arena.rounds.feed import (
    LiveFeed,
    PriceFeed,
    SnapshotFeed,
    check_data,
    is_live,
    parse_renamed,
)
from tradeassay_arena.rounds.health import Health, Mark, claim_name, release_name
from tradeassay_arena.rounds.running import Runner
from tradeassay_arena.rounds.spending import capped, check_prices
from tradeassay_arena.season import Season
from tradeassay_arena.state.engine import open_engine
from tradeassay_arena.state.store import Store
from tradeassay_arena.stream import stream_publisher
from tradeassay_arena.stream.connectors import collect, connectors_of
from tradeassay_arena.web.app import Arena, create_app
from tradeassay_arena.web.site import PageWriter
from tradeassay_bench.agents.foreign.transport import Network, parse_networks
from tradeassay_bench.core.errors import SourceError
from tradeassay_bench.core.time import SECOND, Instant, iso
from tradeassay_bench.llm import Access, Budget, ModelParams, open_model


class PlayOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options for playing a season.

    ``allow`` are private networks in which agents may be called. ``worker`` is this process's name
    (None: the machine's name, with a number if several processes play here). ``renamed`` are
    renamed live symbols (OLD=NEW). ``on_health`` receives the worker's health once. ``clock`` is
    the clock of a live season. A replay from a record has its own ``opener`` of models, ``feed``
    and ``outside`` agents.

    ``access`` and ``connections`` are the settings for calling models. ``budget`` covers all of
    them: at its cap the season stops with :class:`SeasonCapped` and can be continued. ``progress``
    is called after every round of a replay.
    """

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
    season: Season,
    store: Store,
    speed: float | None,
    until: Instant | None = None,
    how: PlayOptions | None = None,
) -> int:
    """Run a season from the end of its database, and return the number of executed rounds.

    A live season follows the machine's clock. Any other season is replayed at ``speed``. All texts
    for agents pass through the information stream, and live sources are collected while rounds run.
    The call may be cancelled at any moment and repeated. Raises :class:`UserError` for entries that
    cannot take part and for missing data, and :class:`Stalled` if a part stays unavailable for too
    long.
    """
    how, live = how or PlayOptions(), is_live(season)
    if live:
        check_data(season)
    if how.opener is None and how.budget is None:
        check_prices(season)
    usual = partial(open_model, access=how.access, connections=how.connections, budget=how.budget)
    opener = how.opener or capped(usual)
    base = (platform.node() or "main")[:40]
    worker, held = (
        (how.worker, None) if how.worker else claim_name(base, f"{store.engine.url}/{season.id}")
    )
    clock: ArenaClock = (how.clock or LiveClock()) if live else ReplayClock(speed=speed)
    async with AsyncExitStack() as stack:
        if held is not None:
            stack.callback(release_name, held)
        if how.outside is None:
            await refuse_private(season, how.allow)
        renamed = parse_renamed(season, how.renamed)
        feed: PriceFeed = how.feed or (
            LiveFeed(
                clock=clock, owner=f"{season.id}-{worker}", first=season.first, renamed=renamed
            )
            if live
            else SnapshotFeed.open(season)
        )

        async def open_agents(part: Season) -> dict[str, EntryAgent]:
            outside = how.outside
            if outside is None:
                api = AgentApi(store, how.clock)
                outside = await stack.enter_async_context(
                    outside_agents(part, api, allow=how.allow)
                )
            opened = entry_agents(
                part, outside=outside, opener=opener, recorded=how.opener is not None
            )
            return await stack.enter_async_context(opened)

        summariser, checker = [
            await stack.enter_async_context(
                opener(name, ModelParams(temperature=0.0, max_tokens=800))
            )
            if name
            else None
            for name in (season.summary.model, season.summary.checker)
        ]
        runner = Runner(
            season=season,
            store=store,
            feed=feed,
            clock=clock,
            agents=await open_agents(season),
            open_agents=open_agents,
            publish=stream_publisher(store, summariser, checker=checker),
            worker=worker,
            progress=how.progress,
        )
        how.on_health(runner.health)
        beside = (
            [asyncio.create_task(collect_news(runner))]
            if live and connectors_of(season, clock)
            else []
        )
        if isinstance(feed, LiveFeed):
            beside.append(asyncio.create_task(_mark(runner, feed)))
        try:
            return await runner.run(until)
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)


async def collect_news(runner: Runner) -> None:
    """Read the live sources repeatedly.

    The error of each source is reported separately, and the source is tried again.
    """
    season, clock = runner.season, runner.clock
    sources = connectors_of(season, clock)
    while True:
        if season.assets != runner.season.assets:  # An asset was added.
            season = runner.season
            sources = connectors_of(season, clock)
        try:
            failed = await collect(runner.store, season, sources, clock)
        except Exception as error:
            # For example the database, which the rounds report too. Collecting goes on when it is
            # back.
            runner.health.trouble("news", error, "warning")
        else:
            runner.health.fine("news")
            for address in {one.address for one in sources}:
                if address in failed:
                    runner.health.trouble(
                        f"feed {address}", SourceError(failed[address]), "warning"
                    )
                else:
                    runner.health.fine(f"feed {address}")
        await clock.wait_until(clock.now() + season.news.every_s * SECOND)


MARK_S = 900.0
"""Interval in seconds at which vendors are queried for prices between the closes."""


async def _mark(runner: Runner, feed: LiveFeed) -> None:
    """Query vendors at intervals for the return of open positions since the last close. Rounds do
    not depend on it.
    """
    while True:
        for asset in runner.season.assets:
            try:
                last = runner.store.last_round(runner.season.id, asset.symbol)
            except SQLAlchemyError:  # The rounds report the same error.
                break
            held = last is not None and last.phase == "executed"
            growth = (
                await asyncio.to_thread(feed.growth_since, asset, last.session)
                if last and held
                else None
            )
            if last is None or growth is None:
                runner.health.marks.pop(asset.symbol, None)
            else:
                now = iso(runner.clock.now())
                runner.health.marks[asset.symbol] = Mark(
                    session=last.session, growth=growth, at=now
                )
        await runner.clock.wait_until(runner.clock.now() + int(MARK_S * SECOND))


class Player:
    """Runs :func:`play` in a thread, so that the API stays fast while agents think.

    ``ended`` is called if the season cannot continue. ``error`` has the cause.
    """

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
        self._play: Callable[[], Coroutine[Any, Any, int]] = lambda: play(
            season, store, speed, how=options
        )
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
        """Stop the season after the present transaction, and return whether it stopped before its
        end.

        Questions without a written answer will be asked again.
        """
        self._stopping.set()
        with suppress(RuntimeError):  # The season has ended already.
            self._cancel()
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        return self._stopped

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait for the season's end, and return whether it has ended."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        if not self._come():
            self._say("waiting for the first agent to register")
            while not self._come():
                if self._stopping.wait(0.3):
                    return
            self._say("the first agent has registered; the season begins")
        try:
            done = asyncio.run(self._main())
            self._say(f"season over: {done} rounds finished now")
        except asyncio.CancelledError:
            self._stopped = True
            self._say("stopped; start again to continue")
        except Exception as error:
            # Report the end of the thread, or pages would stop without a reason.
            self.error = error
            self._say(f"the season cannot continue: {error}")
            self._ended()

    async def _main(self) -> int:
        task = asyncio.current_task()
        assert task is not None  # asyncio.run made one
        self._cancel = partial(task.get_loop().call_soon_threadsafe, task.cancel)
        return 0 if self._stopping.is_set() else await self._play()

    def _hear(self, health: Health) -> None:
        def alert(text: str) -> None:
            """Report a new failure or the end of all failures, here and at the operator's
            address.
            """
            self._say(text)
            if self._webhook:
                body = msgspec.json.encode(
                    {"season": health.season, "text": f"arena '{health.season}': {text}"}
                )
                threading.Thread(
                    target=_post, args=(self._webhook, body), name="webhook", daemon=True
                ).start()

        self.health, health.say = health, alert


def _post(address: str, body: bytes) -> None:
    """Send an alert, in up to three attempts.

    The season does not depend on the delivery.
    """
    request = urllib.request.Request(address, body, {"content-type": "application/json"})
    for pause in (1.0, 10.0, 0.0):
        try:
            urllib.request.urlopen(request, timeout=10).close()
        except OSError:
            time.sleep(pause)
        else:
            return


class Serving(msgspec.Struct, frozen=True, kw_only=True):
    """Options for serving an arena. ``speed`` is parsed by :func:`parse_speed`. ``experts`` may
    judge the stream.

    ``pages`` is the folder of the site (empty: named after the database). ``allow`` are private
    networks in which agents may be called. ``renamed`` are renamed live symbols (OLD=NEW). ``wait``
    delays a replay until the first outside agent is registered. ``proxies`` are networks of proxies
    whose X-Forwarded-For is trusted. ``webhook`` is an address that receives alerts.
    """

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
    """A server that ends waiting requests for packets when it stops."""

    def __init__(self, config: uvicorn.Config, closing: threading.Event) -> None:
        super().__init__(config)
        self._closing = closing

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        self._closing.set()
        await super().shutdown(sockets)


def serve(season: Season | None, how: Serving, say: Callable[[str], None]) -> None:
    """Serve an arena until the process is stopped, and run a given season at the same time.

    Without a season, the arena's pages are only displayed. Stopping is clean, and a new start
    continues the season. Raises :class:`UserError` for a season that cannot run or a database that
    cannot be opened.
    """
    parse_speed(how.speed)
    parse_networks(how.proxies)
    if how.embed and not re.fullmatch(r"\*|https?://[A-Za-z0-9.:-]+", how.embed):
        raise UserError(
            f"'{how.embed[:80]}' is not an origin",
            hint="give one like https://blog.example.org, or '*'",
        )
    if how.webhook and not how.webhook.startswith(("http://", "https://")):
        raise UserError(
            f"'{how.webhook[:80]}' is not a web address", hint="for example: https://..."
        )
    store = Store(open_engine(how.db))
    clock = LiveClock()
    api, player = AgentApi(store, clock), None
    if season is not None:
        check_entries(season, tuple(e.id for e in season.entries if e.architecture in OUTSIDE))
        check_data(season)
        check_prices(season)
        # A replay has only its own time.
        store.create_season(season, iso(clock.now() if is_live(season) else 0))
        parse_renamed(season, how.renamed)
        player = Player(
            season, store, how, clock, say, ended=lambda: setattr(server, "should_exit", True)
        )
    listening = listen(how.host, how.port)
    # New keys are displayed only this once.
    wanted: list[tuple[KeyKind, str]] = [("expert", name) for name in how.experts]
    wanted += [("operator", "operator")] if how.register else []
    for kind, name in wanted:
        if name in api.key_names(kind):
            say(
                f"{kind} '{name}' has a key already; 'tradeassay arena amend key {kind} {name}' "
                "makes a new one"
            )
            continue
        key = api.issue_key(kind, name, now=iso(api.clock.now()))
        say(f"key of {kind} '{name}': {key}")
        # Hide only the secret part: the id is stored in the database.
        remember(key.split("-", 2)[2])

    def own() -> Health | None:
        return None if player is None else player.health

    pages = PageWriter(store, how.folder, own=own, api=api, languages=("en",))
    arena = Arena(
        api=api,
        folder=how.folder,
        translate=pages.translate,
        register=how.register,
        apply=how.apply,
        embed=how.embed,
        own=own,
    )
    config = uvicorn.Config(
        create_app(arena),
        host=how.host,
        port=how.port,
        log_level="warning",
        timeout_graceful_shutdown=3,
        server_header=False,
        http="h11",
        limit_concurrency=1200,  # the proxy limits connections per address
        proxy_headers=bool(how.proxies),
        forwarded_allow_ips=list(how.proxies),
    )
    server = ArenaServer(config, api.closing)
    done = threading.Event()
    writing = threading.Thread(target=pages.follow, args=(done,), name="pages", daemon=True)
    # How long rendering a page may keep an agent waiting for the interpreter (Python's default is 5
    # ms).
    sys.setswitchinterval(0.001)
    writing.start()
    say(f"arena: http://{how.host}:{how.port}/  (stop with Ctrl-C)")
    if player is not None and season is not None:
        id = season.id
        player.start(lambda: not how.wait or bool(api.registered(id)))
    try:
        server.run([listening])
    except KeyboardInterrupt:
        if player is None or not player.stop():
            raise
        raise KeyboardInterrupt("the player has reported the stop") from None
    finally:
        if player is not None:
            player.stop()
        done.set()  # The pages are written once more, to show that the season has stopped.
        writing.join(20)
        store.engine.dispose()
    if player is not None and player.error is not None:
        raise player.error
