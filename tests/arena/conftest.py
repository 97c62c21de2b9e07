"""A small season on synthetic days, and a player that asks, remembers and says who it heard."""

import asyncio
import contextlib
import shutil
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import numpy as np
import pytest
import uvicorn
from sqlalchemy import Select, select

from tradeassay_arena.agents import ConstantAction, EntryAgent, Trend
from tradeassay_arena.clock import ReplayClock
from tradeassay_arena.daily_target import target_growth
from tradeassay_arena.rounds.feed import SnapshotFeed
from tradeassay_arena.rounds.running import Runner
from tradeassay_arena.season import Asset, Entry, Season, demo_season
from tradeassay_arena.state import tables as t
from tradeassay_arena.state.engine import open_engine
from tradeassay_arena.state.store import Store
from tradeassay_arena.stream import stream_publisher
from tradeassay_arena.web.app import Arena, create_app
from tradeassay_arena.web.serving import ArenaServer, PlayOptions, play
from tradeassay_bench.core.arena import AgentChoice, Contribution, Deliberation, Packet
from tradeassay_bench.core.dialogue import AskModel, Message, ModelReply, Usage
from tradeassay_bench.core.time import DAY, midnight, parse_day
from tradeassay_bench.llm import QuestionPlace


class TwoQuestions:
    """Asks twice, counts its decisions in its memory, and acts on the second answer."""

    def deliberate(self, packet: Packet, memory: bytes | None) -> Deliberation:
        count = int(memory or b"0")
        first = yield AskModel(
            purpose="look", messages=(Message(role="user", text=f"{packet.date} {packet.price}"),)
        )
        said = f"{first.text} after {count} decisions at {packet.position}"
        second = yield AskModel(purpose="act", messages=(Message(role="user", text=said),))
        action = ("BUY", "SELL", "HOLD")[int(second.text) % 3]
        talk = (
            Contribution(role="analyst", step="look", text=first.text),
            Contribution(role="trader", step="act", text=second.text),
        )
        return AgentChoice(action=action, reasoning=said, talk=talk, memory=str(count + 1).encode())  # type: ignore[arg-type]  # one of the three


class EchoModel:
    """Answers with a number made from the question, and counts how often it was asked."""

    name = "test/echo"

    def __init__(self) -> None:
        self.asked = 0

    async def ask(self, request: AskModel, place: QuestionPlace) -> ModelReply:
        self.asked += 1
        await asyncio.sleep(0)
        number = sum(map(ord, request.messages[-1].text + place.episode)) % 7
        return ModelReply(
            text=str(number), usage=Usage(input_tokens=10, output_tokens=1, usd=0.001)
        )


class Killed(BaseException):
    """Stands for a process that is gone."""


def kill_after(count: int) -> Callable[[str], None]:
    """Return what lets a store's process die after so many commits."""
    left = iter(range(count))

    def committed(what: str) -> None:
        if next(left, None) is None:
            raise Killed(what)

    return committed


def seated(**deciding: object) -> dict[str, EntryAgent]:
    """Return who decides for each entry, buy and hold among them."""
    return {
        id: EntryAgent(who)
        for id, who in {"buy-and-hold": ConstantAction("BUY"), **deciding}.items()
    }


def altered(db: Path, copy: Path, change: str) -> Path:
    """Return a copy of a database in which a statement has changed something."""
    shutil.copyfile(db, copy)
    with closing(sqlite3.connect(copy)) as made:
        assert made.execute(change).rowcount, change
        made.commit()
    return copy


def worth(store: Store, entry: str, asset: str, prices: Mapping[str, float]) -> float:
    """Return what the recorded decisions make on a vendor's final prices, in plain arithmetic."""
    query = select(*t.decisions.c["session", "action"], t.rounds.c.next_session).where(
        t.decisions.c.entry == entry
    )
    query = query.join(t.rounds, t.rounds.c.id == t.decisions.c.round).order_by(
        t.decisions.c.session
    )
    position, held, moved = 0, [], []
    for session, action, later in store.rows(query.where(t.decisions.c.asset == asset)):
        position = {"BUY": 1, "SELL": -1, "HOLD": position}[action]
        held.append(position)
        moved.append(0.0 if later is None else prices[later] / prices[session] - 1.0)
    return float(np.prod(target_growth(np.array(held, dtype=np.int64), np.array(moved), 5.0)))


def wait_for(done: Callable[[], object], seconds: float = 120.0) -> None:
    """Wait until something is so; whoever is asked may not be there yet."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with contextlib.suppress(OSError, httpx.HTTPError):
            if done():
                return
        time.sleep(0.3)
    raise AssertionError("it did not happen in time")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def listening(arena: Arena) -> Iterator[int]:
    """Serve an arena in a thread; gives its port."""
    taken = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        create_app(arena), log_level="error", http="h11", timeout_graceful_shutdown=1
    )
    server = ArenaServer(config, arena.api.closing)
    thread = threading.Thread(target=server.run, args=([taken],), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield int(taken.getsockname()[1])
    server.should_exit = True
    thread.join(60)


def small_demo(*entries: str, last: str, **changed: object) -> Season:
    """Return a few days of March 2022 of the demo's season, with some of its entries."""
    demo = demo_season(first="2022-03-14", last=last, warmup=1)
    kept = tuple(entry for entry in demo.entries if entry.id in entries)
    return msgspec.structs.replace(demo, entries=kept, **changed)  # type: ignore[arg-type]  # a test's own mapping


def go(
    season: Season, file: Path, until: str | None = None, how: PlayOptions | None = None
) -> Path:
    """Play a season on in a database, to the end of a day (None: to its own)."""
    store = Store(open_engine(str(file), durable=False))
    asyncio.run(
        play(season, store, None, None if until is None else midnight(parse_day(until)) + DAY, how)
    )
    store.engine.dispose()
    return file


@pytest.fixture
def store(tmp_path):
    """An arena's database with nothing in it."""
    made = Store(open_engine(str(tmp_path / "arena.db"), durable=False))
    yield made
    made.engine.dispose()


@pytest.fixture(scope="session")
def season():
    return Season(
        id="small",
        assets=(
            Asset(symbol="AAJX", kind="stock", dataset="synthetic/us:7"),
            Asset(symbol="AHVQ", kind="crypto", dataset="synthetic/crypto:7"),
        ),
        entries=(
            Entry(id="thinker", architecture="python", model="test/echo"),
            Entry(id="trend", architecture="rule"),
        ),
        first="2022-06-01",
        last="2022-06-14",
        warmup=2,
    )


@pytest.fixture(scope="session")
def feed(season):
    return SnapshotFeed.open(season)


class Table:
    """Plays a season on one database, as often as it is asked to."""

    def __init__(self, url: str, season: Season, feed: SnapshotFeed) -> None:
        self.url, self.season, self.feed = url, season, feed
        self.model = EchoModel()

    def runner(self, committed: object = None, **changed: object) -> Runner:
        engine = open_engine(self.url, durable=False)
        store = Store(engine, committed)  # type: ignore[arg-type]  # a callable or None
        agents = {"thinker": EntryAgent(TwoQuestions(), self.model), **seated(trend=Trend())}
        plan = {
            "season": self.season,
            "store": store,
            "feed": self.feed,
            "clock": ReplayClock(),
            "agents": agents,
        }
        plan["publish"] = stream_publisher(store)
        return Runner(**{**plan, **changed})  # type: ignore[arg-type]  # a test's own mapping

    def play(self, committed: object = None, **changed: object) -> int:
        time = changed.pop("time", None)
        if time is not None:
            changed = {"clock": time.clock(), "beat_s": 6 * 3600.0, **changed}
        runner = self.runner(committed, **changed)
        try:
            return asyncio.run(runner.run()) if time is None else time.run(runner.run())
        finally:
            runner.store.engine.dispose()

    def rows(self, query: Select[Any]) -> list[Any]:
        store = Store(open_engine(self.url, durable=False))
        try:
            return list(store.rows(query))
        finally:
            store.engine.dispose()

    def everything(self) -> bytes:
        """Return all that standings are made of, and all that was said and published, as bytes."""
        found, by_chance = [], ("id", "round", "slot", "lease_owner", "lease_until")
        published = (t.stream_items, t.stream_rounds)
        for table in (t.rounds, t.slots, t.bookings, t.calls, t.memories, t.rewards, *published):
            query = select(*(column for column in table.c if column.name not in by_chance))
            if table is t.calls:
                query = query.add_columns(*t.slots.c["entry", "asset", "session"])
                query = query.join(t.slots, t.calls.c.slot == t.slots.c.id)
            found.append(
                sorted(([str(value) for value in row] for row in self.rows(query)), key=repr)
            )
        return msgspec.json.encode(found)


@pytest.fixture
def table(tmp_path, season, feed):
    return Table(str(tmp_path / "arena.db"), season, feed)


@pytest.fixture(scope="session")
def scripted_db(tmp_path_factory):
    """The database of a small season that scripted models played; whoever has it leaves it as it
    is.
    """
    entries = ("investor-sensible", "trade-contrarian", "trend")
    season = small_demo(*entries, last="2022-03-23", warmup=2, id="small-demo")
    return go(season, tmp_path_factory.mktemp("scripted") / "arena.db")


@pytest.fixture(scope="module")
def played(tmp_path_factory, season, feed):
    """A season that was played once, and how many rounds that were; whoever has it leaves it as
    it is.
    """
    made = Table(str(tmp_path_factory.mktemp("played") / "arena.db"), season, feed)
    return made, made.play()
