"""The same season on PostgreSQL: killed, continued, shared by two workers; always the same end as on SQLite."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator

import msgspec
import pytest
from sqlalchemy import create_engine, text
from tests.arena.postgres import server
from tests.arena.test_rounds import Killed, kill_after

pytest.importorskip("psycopg")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with server() as found:
        yield found


@pytest.fixture
def database(address: str) -> str:
    """A fresh database on the server."""
    name = f"d{uuid.uuid4().hex}"
    engine = create_engine(address, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return address.replace("/postgres?", f"/{name}?")


@pytest.fixture
def short(table):
    return msgspec.structs.replace(table.season, last="2022-06-06", warmup=1)


def test_killed_again_and_again_it_ends_as_on_sqlite(table, short, database, tmp_path) -> None:
    whole = type(table)(str(tmp_path / "whole.db"), short, table.feed)
    whole.play()
    again = type(table)(database, short, table.feed)
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


def test_two_workers_never_decide_twice(table, short, database, tmp_path) -> None:
    whole = type(table)(str(tmp_path / "whole.db"), short, table.feed)
    whole.play()
    shared = type(table)(database, short, table.feed)
    runners = [shared.runner(worker=name, at_once=1, poll_s=0.005) for name in ("one", "two")]

    async def both() -> None:
        await asyncio.gather(*(runner.run() for runner in runners))

    asyncio.run(both())
    for runner in runners:
        runner.store.engine.dispose()
    assert shared.everything() == whole.everything()
    assert shared.model.asked == whole.model.asked
