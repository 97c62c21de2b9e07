"""The doors and the shared account on PostgreSQL end as they do on SQLite."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from sqlalchemy import select
from tests.arena.conftest import seated
from tests.arena.postgres import server
from tests.arena.test_doors import NOW
from tests.arena.test_doors_rules import SHARED, feed_of

from tradeassay.arena.agents import ConstantAction
from tradeassay.arena.api.doors import Doors, Offer, TurnedAway
from tradeassay.arena.api.outside import DoorAgent, OfferWatch
from tradeassay.arena.clock import ReplayClock
from tradeassay.arena.rounds.running import Runner
from tradeassay.arena.season import Entry
from tradeassay.arena.state.engine import open_engine
from tradeassay.arena.state.store import Store
from tradeassay.arena.state.tables import bookings

SEASON = msgspec.structs.replace(
    SHARED,
    last="2022-06-02",
    entries=(Entry(id="anna", architecture="http"), Entry(id="bert", architecture="python")),
)


def play(url: str) -> dict[str, float]:
    store = Store(open_engine(url, durable=False))
    store.found_season(SEASON, NOW)
    doors = Doors(store)
    agent = doors.who(doors.register(SEASON.id, "anna", now=NOW))
    assert agent is not None
    agents = seated(anna=DoorAgent(OfferWatch(doors, poll_s=0.01), "anna"), bert=ConstantAction("SELL"))
    feed = feed_of(SEASON.assets)
    run = Runner(season=SEASON, store=store, feed=feed, clock=ReplayClock(), agents=agents)

    async def both() -> None:
        task = asyncio.create_task(run.run())
        count = 0
        while not task.done():
            told = await asyncio.to_thread(doors.waiting, agent)
            if told is None:
                await asyncio.sleep(0.01)
                continue
            count += 1
            said = {"recommended_action": "BUY", "reasoning": "r\u00e9", "allocation": 0.4}
            offer = Offer(slot=told.slot, packet_sha256=told.packet_sha256, **said)
            doors.submit(agent, f"request-{count}", offer)
            with pytest.raises(TurnedAway) as refused:
                doors.submit(agent, f"request-{count}", offer)
            assert refused.value.status == 409
        assert task.result() == count

    asyncio.run(both())
    with store.read() as db:
        found = dict(db.execute(select(bookings.c.entry, bookings.c.nav).order_by(bookings.c.id)).all())
    store.engine.dispose()
    return found


@pytest.fixture(scope="module")
def address():
    with server() as found:
        yield found


def test_it_ends_as_on_sqlite(tmp_path, address):
    expected = play(str(tmp_path / "arena.db"))
    assert expected["anna"] != 1.0
    assert play(address) == expected


def test_processes_that_count_the_same_agents_do_not_wait_for_each_other_for_ever(address):
    keys = [f"agent-{number}" for number in range(40)]
    first, second = (Doors(Store(open_engine(address, durable=False))) for _ in range(2))

    def count(doors: Doors, order: list[str]) -> None:
        for _ in range(60):
            doors.count(dict.fromkeys(order, 1), 7)

    with ThreadPoolExecutor(2) as both:
        for done in (both.submit(count, first, keys), both.submit(count, second, keys[::-1])):
            done.result()
    assert first.count({keys[0]: 1}, 7) == {keys[0]: 121}
    for doors in (first, second):
        doors.store.engine.dispose()
