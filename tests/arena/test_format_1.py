"""Databases of format 1, where money was overwritten, are read as journals."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import select
from tests.arena.test_doors_rules import SHARED, Plan, play

from tradeassay.arena.agents import ConstantAction
from tradeassay.arena.season import OptionalRules
from tradeassay.arena.state.engine import open_engine
from tradeassay.arena.state.store import Store
from tradeassay.arena.state.tables import bookings, slots
from tradeassay.core.errors import DataError, TradeassayWarning

BACK = """
DROP VIEW slots;
ALTER TABLE rounds DROP COLUMN shared;
ALTER TABLE rounds DROP COLUMN next_session;
ALTER TABLE decisions RENAME TO slots;
ALTER TABLE slots ADD COLUMN position_before INTEGER;
ALTER TABLE slots ADD COLUMN position INTEGER;
ALTER TABLE slots ADD COLUMN nav_before FLOAT;
ALTER TABLE slots ADD COLUMN fee FLOAT;
ALTER TABLE slots ADD COLUMN earned FLOAT;
ALTER TABLE slots ADD COLUMN nav FLOAT;
CREATE TABLE purses (season TEXT, entry TEXT, stage TEXT, value FLOAT, PRIMARY KEY (season, entry, stage));
CREATE TABLE stakes (slot INTEGER PRIMARY KEY, round INTEGER, season TEXT, entry TEXT, asset TEXT, stage TEXT,
    before FLOAT, exposure FLOAT, carried FLOAT);
UPDATE slots SET (position_before, position, nav_before, fee, earned, nav) =
    (SELECT position_before, position, nav_before, fee, earned, nav FROM bookings b WHERE b.slot = slots.id
     ORDER BY number DESC LIMIT 1);
INSERT INTO stakes SELECT e.slot, s.round, e.season, e.entry, e.asset, e.stage, e.exposure_before, e.exposure,
    (SELECT f.exposure FROM bookings f WHERE f.slot = e.slot AND f.number = 1)
    FROM bookings e JOIN slots s ON s.id = e.slot WHERE e.number = 0 AND e.exposure IS NOT NULL;
DROP TABLE bookings;
UPDATE arena_schema SET version = 1;
"""


def as_format_1(path: Path) -> None:
    """Write a database back as it would have been in format 1."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(BACK)


def journal(store: Store) -> list[tuple[object, ...]]:
    with store.read() as db:
        found = [tuple(row) for row in db.execute(select(bookings).order_by(bookings.c.id))]
    return found


@pytest.mark.parametrize("shared", [False, True])
def test_the_journal_comes_back(tmp_path: Path, shared: bool) -> None:
    path = tmp_path / "a.db"
    season = msgspec.structs.replace(SHARED, rules=OptionalRules(cross_asset=shared), warmup=2)
    anna = Plan({"AHVQ": [("BUY", 0.6), ("HOLD", None), ("SELL", 0.25)], "AAJX": [("BUY", 0.8)]})
    store = play(path, season, {"anna": anna, "bert": ConstantAction("SELL")})
    before = journal(store)
    with store.read() as db:
        shown = db.execute(select(slots).order_by(slots.c.id)).all()
    store.engine.dispose()
    as_format_1(path)
    with closing(sqlite3.connect(path)) as was:
        old = list(was.iterdump())
    with pytest.warns(TradeassayWarning, match=r"kept as a\.db\.format-1"):
        again = Store(open_engine(str(path)))
    with closing(sqlite3.connect(f"{path}.format-1")) as kept:
        assert list(kept.iterdump()) == old
    after = journal(again)
    nav = [column.name for column in bookings.c].index("nav")
    assert [(row[:nav], row[nav + 1 :]) for row in after] == [(row[:nav], row[nav + 1 :]) for row in before]
    # The value right after the fee was overwritten and is worked out again.
    assert [row[nav] for row in after] == pytest.approx([row[nav] for row in before], rel=1e-15)
    with again.read() as db:
        assert db.execute(select(slots).order_by(slots.c.id)).all() == shown
    again.engine.dispose()
    ended = play(path, season, {"anna": anna, "bert": ConstantAction("SELL")})  # nothing is left to do
    assert journal(ended) == after
    ended.engine.dispose()


def test_an_account_that_does_not_add_up_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    play(path, SHARED, {"anna": ConstantAction("BUY"), "bert": ConstantAction("SELL")}).engine.dispose()
    as_format_1(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE slots SET fee = fee + 0.1 WHERE entry = 'anna'")
    with (
        pytest.warns(TradeassayWarning),
        pytest.raises(DataError, match="'anna': the old account does not add up"),
    ):
        open_engine(str(path))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT version FROM arena_schema").fetchone() == (1,)
        assert connection.execute("SELECT count(*) FROM purses").fetchone() == (0,)
