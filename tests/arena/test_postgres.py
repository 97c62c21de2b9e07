"""The same season on PostgreSQL: killed, continued, shared by two workers; always the same end
as on SQLite.
"""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select, text
from tests.arena.conftest import Killed, kill_after, seated
from tests.arena.postgres import fresh, restartable, server
from tests.arena.test_agent_api import NOW, founded
from tests.arena.test_agent_api_rules import SHARED, feed_of

from tradeassay_arena.agents import ConstantAction
from tradeassay_arena.api.agent_api import AgentApi, Offer, Rejected
from tradeassay_arena.api.outside import OfferWatch, PollingAgent
from tradeassay_arena.clock import ReplayClock
from tradeassay_arena.queries.seasons import season_ids
from tradeassay_arena.rounds.health import claim_name, release_name
from tradeassay_arena.rounds.running import Runner
from tradeassay_arena.season import Entry
from tradeassay_arena.state.engine import open_engine
from tradeassay_arena.state.store import Store
from tradeassay_arena.state.tables import bookings
from tradeassay_arena.web.app import Arena, create_app
from tradeassay_arena.web.site import PageWriter

pytestmark = pytest.mark.journey


@pytest.fixture(scope="module")
def address():
    with server() as found:
        yield found


@pytest.fixture
def database(address):
    return fresh(address)


@pytest.fixture
def short(table):
    return msgspec.structs.replace(table.season, last="2022-06-06", warmup=1)


@pytest.fixture
def whole(table, short, tmp_path):
    """The same season on SQLite, played to its end at once."""
    made = type(table)(str(tmp_path / "whole.db"), short, table.feed)
    made.play()
    return made


def test_killed_again_and_again_it_ends_as_on_sqlite(short, database, whole):
    again = type(whole)(database, short, whole.feed)
    deaths = 0
    while True:
        try:
            again.play(kill_after(5 + deaths % 7))
            break
        except Killed:
            deaths += 1
    assert deaths > 5
    assert again.everything() == whole.everything()
    assert again.model.asked == whole.model.asked


def test_two_workers_never_decide_twice(short, database, whole):
    shared = type(whole)(database, short, whole.feed)
    runners = [shared.runner(worker=name, at_once=1, poll_s=0.005) for name in ("one", "two")]

    async def both() -> None:
        await asyncio.gather(*(runner.run() for runner in runners))

    asyncio.run(both())
    for runner in runners:
        runner.store.engine.dispose()
    assert shared.everything() == whole.everything()
    assert shared.model.asked == whole.model.asked


def test_two_workers_put_no_error_into_the_servers_log(short, whole):
    """A row that both want to write is no error: 154 of them stood in the log of 108 rounds."""
    with restartable() as postgres:
        shared = type(whole)(postgres.address, short, whole.feed)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda name: shared.play(worker=name, poll_s=0.005), ("one", "two")))
        assert shared.everything() == whole.everything()
        assert postgres.errors == []


def test_many_workers_may_start_on_an_empty_database(short, database):
    """Each makes the tables it misses; they are made once, and nobody falls over the others."""
    begun = threading.Barrier(6)

    def start(_: int) -> int:
        begun.wait()
        store = Store(open_engine(database, durable=False))
        try:
            store.create_season(short, "2022-06-01T00:00:00Z")
            return len(season_ids(store))
        finally:
            store.engine.dispose()

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(start, range(6))) == [1] * 6


def test_processes_beside_each_other_have_names_of_their_own(tmp_path):
    first, held = claim_name("here", str(tmp_path))
    second, beside = claim_name("here", str(tmp_path))
    elsewhere, other = claim_name("here", str(tmp_path / "another"))
    assert (first, second, elsewhere) == ("here", "here-2", "here")
    assert held is not None and beside is not None and other is not None
    held.close()  # as it is when a process is killed
    again, held = claim_name("here", str(tmp_path))
    assert again == "here"  # a process that is started again keeps its name
    for one in (held, beside, other):
        assert one is not None
        release_name(one)
        assert not Path(one.name).exists()


@pytest.mark.slow
def test_no_question_is_lost_to_a_server_that_was_restarted():
    with restartable() as postgres:
        store = Store(open_engine(postgres.address))
        assert season_ids(store) == ()
        took = store.scalar(text("SELECT pg_backend_pid()"))
        postgres.stop()
        postgres.start()
        assert season_ids(store) == () and store.scalar(text("SELECT pg_backend_pid()")) != took
        with (
            store.change() as db,
            store.read() as other,
        ):  # both from the pool that knew the old server
            assert db.execute(text("SELECT 1")).scalar() == other.execute(text("SELECT 1")).scalar()
        store.engine.dispose()


def test_a_restart_of_the_database_ends_nothing(short, whole, tmp_path):
    gone = threading.Event()

    async def until_gone(_: float) -> None:
        while not gone.is_set():
            await asyncio.sleep(0.02)

    with restartable() as postgres:
        again = type(whole)(postgres.address, short, whole.feed)
        said: list[str] = []
        runner = again.runner(clock=ReplayClock(speed=1.0, sleep=until_gone))
        runner.health.say = said.append
        api, site = AgentApi(runner.store), tmp_path / "site"
        app = create_app(Arena(api=api, folder=site, own=lambda: runner.health))
        done = threading.Event()
        writing = threading.Thread(
            target=PageWriter(runner.store, site).follow, args=(done,), daemon=True
        )
        playing = threading.Thread(target=lambda: asyncio.run(runner.run()), daemon=True)
        with TestClient(app, raise_server_exceptions=False) as client:
            playing.start()
            writing.start()
            while (
                not runner.health.rounds or not (site / "seasons" / short.id / "now.json").exists()
            ):
                time.sleep(0.02)
            postgres.stop()
            gone.set()
            while not said:
                time.sleep(0.02)
            assert client.get(f"/seasons/{short.id}/").status_code == 200  # pages are files
            asked = {"authorization": f"Bearer ta-{'0' * 12}-{'x' * 43}"}
            refused = client.get("/agents/me", headers=asked)
            assert refused.status_code == 503 and "does not answer" in refused.text
            assert refused.headers["retry-after"] == "5" and refused.json()["hint"]
            well = client.get("/healthz")
            assert well.status_code == 503 and well.json()["workers"][0]["state"] == "stalled"
            assert "stalled since" in client.get("/health").text
            assert "tradeassay_up 0" in client.get("/metrics").text
            postgres.start()
            playing.join(60)
            assert not playing.is_alive() and said[-1] == "everything works again"
            assert client.get("/healthz").status_code == 200
            done.set()
            writing.join(60)
            told = client.get(f"/seasons/{short.id}/index.json").json()["season"]["progress"]
            states = client.get("/seasons/now.json").json()["states"]
            assert told["decided"] and states[short.id]["status"] == "finished"
        assert again.everything() == whole.everything()
        assert again.model.asked == whole.model.asked
        runner.store.engine.dispose()


OUTSIDE_SEASON = msgspec.structs.replace(
    SHARED,
    last="2022-06-02",
    entries=(Entry(id="anna", architecture="http"), Entry(id="bert", architecture="python")),
)


def played_at_the_door(url: str) -> dict[str, float]:
    store = Store(open_engine(url, durable=False))
    api = founded(store, OUTSIDE_SEASON)
    agent = api.agent_of(api.register(OUTSIDE_SEASON.id, "anna", now=NOW))
    agents = seated(
        anna=PollingAgent(OfferWatch(api, poll_s=0.01), "anna"), bert=ConstantAction("SELL")
    )
    feed = feed_of(OUTSIDE_SEASON.assets)
    run = Runner(season=OUTSIDE_SEASON, store=store, feed=feed, clock=ReplayClock(), agents=agents)

    async def both() -> None:
        task = asyncio.create_task(run.run())
        count = 0
        while not task.done():
            told = await asyncio.to_thread(api.waiting, agent)
            if told is None:
                await asyncio.sleep(0.01)
                continue
            count += 1
            said = {"recommended_action": "BUY", "reasoning": "r\u00e9", "allocation": 0.4}
            offer = Offer(slot=told.slot, packet_sha256=told.packet_sha256, **said)
            api.submit(agent, f"request-{count}", offer)
            with pytest.raises(Rejected) as refused:
                api.submit(agent, f"request-{count}", offer)
            assert refused.value.status == 409
        assert task.result() == count

    asyncio.run(both())
    found = dict(
        map(tuple, store.rows(select(bookings.c.entry, bookings.c.nav).order_by(bookings.c.id)))
    )
    store.engine.dispose()
    return found


def test_doors_and_the_shared_account_end_as_on_sqlite(tmp_path, address):
    expected = played_at_the_door(str(tmp_path / "arena.db"))
    assert expected["anna"] != 1.0
    assert played_at_the_door(address) == expected


def test_processes_that_count_the_same_agents_do_not_wait_for_each_other_for_ever(address):
    keys = [f"agent-{number}" for number in range(40)]
    first, second = (AgentApi(Store(open_engine(address, durable=False))) for _ in range(2))

    def count(api: AgentApi, order: list[str]) -> None:
        for _ in range(60):
            api.count(dict.fromkeys(order, 1), 7)

    with ThreadPoolExecutor(2) as both:
        for done in (both.submit(count, first, keys), both.submit(count, second, keys[::-1])):
            done.result()
    assert first.count({keys[0]: 1}, 7) == {keys[0]: 121}
    for api in (first, second):
        api.store.engine.dispose()
