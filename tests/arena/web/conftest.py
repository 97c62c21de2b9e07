"""The sample season's database, its site, and a client of both."""

import sys
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

sys.path.insert(0, str(Path(__file__).parent))

from arena_sample import FAST, Late, make_season, open_store, play

from tradeassay_arena.api.agent_api import AgentApi
from tradeassay_arena.rounds.feed import SnapshotFeed
from tradeassay_arena.season import Entry
from tradeassay_arena.web.app import Arena, create_app
from tradeassay_arena.web.site import PageWriter


@pytest.fixture(scope="session")
def web_feed():
    return SnapshotFeed.open(make_season())


@pytest.fixture(scope="session")
def web_store(tmp_path_factory, web_feed):
    """An open season, one whose outside agent keeps it sealed, and one session of each that was
    missed.
    """
    store = open_store(tmp_path_factory.mktemp("web") / "arena.db")
    season = make_season()
    play(store, season, web_feed, "2022-06-07")
    play(store, season, web_feed, "2022-06-08", clock=Late())
    outside = Entry(id="one-a", architecture="http", params={"url": "http://10.0.0.1/secret"})
    sealed = make_season(id="sealed", first="2022-06-01", entries=(outside,))
    play(store, sealed, web_feed, "2022-06-06")
    yield store
    store.engine.dispose()


@pytest.fixture(scope="session")
def site(web_store, tmp_path_factory):
    """The site of that database; whoever has it leaves it as it is."""
    folder = tmp_path_factory.mktemp("site")
    PageWriter(web_store, folder, FAST).update()
    return folder


@pytest.fixture(scope="session")
def client(web_store, site):
    with TestClient(create_app(Arena(api=AgentApi(web_store), folder=site))) as made:
        yield made
