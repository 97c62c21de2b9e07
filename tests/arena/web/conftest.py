"""The sample season's database, and a client of its pages."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

sys.path.insert(0, str(Path(__file__).parent))

from arena_sample import AGENTS, FAST, Late, make_season, open_store, play

from tradeassay.arena.api.doors import Doors
from tradeassay.arena.queries.reader import ArenaReader
from tradeassay.arena.rounds.feed import SnapshotFeed
from tradeassay.arena.season import Entry
from tradeassay.arena.state.store import Store
from tradeassay.arena.web.app import create_app
from tradeassay.arena.web.context import House
from tradeassay.arena.web.experts import Experts


@pytest.fixture(scope="session")
def web_feed() -> SnapshotFeed:
    return SnapshotFeed.open(make_season())


@pytest.fixture(scope="session")
def web_store(tmp_path_factory: pytest.TempPathFactory, web_feed: SnapshotFeed) -> Iterator[Store]:
    """An open season, one whose outside agent keeps it sealed, and one session of each that was missed."""
    store = open_store(tmp_path_factory.mktemp("web") / "arena.db")
    season = make_season()
    play(store, season, web_feed, "2022-06-07")
    late = {"clock": Late(), "agents": AGENTS}
    play(store, season, web_feed, "2022-06-08", **late)
    sealed = make_season(
        id="sealed",
        first="2022-06-01",
        entries=(Entry(id="one-a", architecture="http", params={"url": "http://10.0.0.1/secret"}),),
    )
    play(store, sealed, web_feed, "2022-06-06")
    yield store
    store.engine.dispose()


class KeyedExperts(Experts):
    """Experts whose keys the test knows."""

    def __init__(self, doors: Doors) -> None:
        super().__init__(doors)
        now = "2022-06-01T00:00:00Z"
        self.keys = {name: doors.issue_key("expert", name, now=now) for name in ("ann", "bob")}


@pytest.fixture(scope="session")
def experts(web_store: Store) -> KeyedExperts:
    return KeyedExperts(Doors(web_store))


@pytest.fixture(scope="session")
def client(web_store: Store, experts: KeyedExperts) -> Iterator[TestClient]:
    app = create_app(
        House(reader=ArenaReader(web_store, config=FAST), current="small"), experts=experts, poll_s=0.01
    )
    with TestClient(app) as made:
        yield made
