"""The stream inside a running season: killed anywhere, it ends the same."""

import asyncio

import msgspec
import pytest
from sqlalchemy import select
from tests.arena.conftest import Killed, seated

from tradeassay.arena.agents import Trend
from tradeassay.arena.clock import ReplayClock
from tradeassay.arena.rounds.running import Runner
from tradeassay.arena.state.engine import open_engine
from tradeassay.arena.state.store import Store
from tradeassay.arena.state.tables import rounds, stream_items, stream_rounds
from tradeassay.arena.stream import quality, stream_publisher


@pytest.fixture(scope="module")
def short(season):
    entries = tuple(entry for entry in season.entries if entry.id == "trend")
    return msgspec.structs.replace(season, id="streamed", entries=entries, last="2022-06-08", warmup=1)


def play(url, season, feed, committed=None) -> None:
    store = Store(open_engine(url, durable=False), committed)
    agents, publish = seated(trend=Trend()), stream_publisher(store)
    runner = Runner(season=season, store=store, feed=feed, clock=ReplayClock(), agents=agents, publish=publish)
    try:
        asyncio.run(runner.run())
    finally:
        store.engine.dispose()


def everything(url) -> list[tuple[str, ...]]:
    store = Store(open_engine(url, durable=False))
    queries = (select(stream_items), select(stream_rounds), select(*rounds.c["session", "asset", "packet"]))
    found = [tuple(map(str, row)) for query in queries for row in store.rows(query)]
    store.engine.dispose()
    return sorted(found)


def test_killed_after_any_of_its_commits_the_stream_ends_the_same_and_has_figures(tmp_path, short, feed):
    whole = str(tmp_path / "whole.db")
    made: list[str] = []
    play(whole, short, feed, made.append)
    assert made.count("stream") == sum(not due.closing for due in feed.due(short))
    expected = everything(whole)
    killed = str(tmp_path / "killed.db")

    def die(what: str) -> None:
        if what == "stream":
            raise Killed

    for _ in range(3 + made.count("stream")):
        try:
            play(killed, short, feed, die)
        except Killed:
            continue
        break
    assert everything(killed) == expected
    store = Store(open_engine(whole, durable=False))
    found = quality(store, short.id)
    assert found.kinds["price"] == sum(not due.closing for due in feed.due(short))
    assert found.news == sum(s["published"] + s["merged"] + s["rejected"] for s in found.sources)
    assert found.agreement.value is None and found.agreement.reason == "no unit has two ratings"
    store.engine.dispose()
