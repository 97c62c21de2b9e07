"""A database of an older format becomes one of this format when it is opened; a copy is kept, a failure undone."""

import sqlite3
from contextlib import closing

import pytest
from sqlalchemy import Connection, select, text
from tests.arena.test_doors_rules import SHARED, play

from tradeassay.arena.agents import ConstantAction
from tradeassay.arena.state import engine
from tradeassay.arena.state.engine import open_engine
from tradeassay.arena.state.store import Store
from tradeassay.arena.state.tables import bookings
from tradeassay.core.errors import DataError, TradeassayWarning

AGENTS = {"anna": ConstantAction("BUY"), "bert": ConstantAction("SELL")}


def signed_amendments(db: Connection) -> None:
    for name in ("value", "signature"):
        db.execute(text(f"ALTER TABLE amendments ADD COLUMN {name} TEXT NOT NULL DEFAULT ''"))


def fails(db: Connection) -> None:
    db.execute(text("ALTER TABLE amendments ADD COLUMN value TEXT"))
    raise DataError("an account does not add up")


@pytest.fixture
def old(tmp_path, monkeypatch):
    """A season as a format 0 might have had it: amendments without value and signature."""
    monkeypatch.setitem(engine.MIGRATIONS, 0, signed_amendments)
    path = tmp_path / "a.db"
    play(path, SHARED, AGENTS).engine.dispose()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "ALTER TABLE amendments DROP COLUMN value; ALTER TABLE amendments DROP COLUMN signature;"
            "INSERT INTO amendments VALUES ('s', 1, '2022-01-03', 'ann', 'anna', 'withdraw', '2022-01-04', 'x');"
            "UPDATE arena_schema SET version = 0;"
        )
    return path


def test_an_older_format_is_converted_and_kept_beside(old):
    with closing(sqlite3.connect(old)) as was:
        before = list(was.iterdump())
        booked = was.execute("SELECT * FROM bookings ORDER BY id").fetchall()
    with pytest.warns(TradeassayWarning, match=r"from format 0 to 1; .* kept as a\.db\.format-0"):
        again = Store(open_engine(str(old)))
    with closing(sqlite3.connect(f"{old}.format-0")) as kept:
        assert list(kept.iterdump()) == before
    with again.read() as db:
        assert [tuple(row) for row in db.execute(select(bookings).order_by(bookings.c.id))] == booked
    assert [(one.what, one.value, one.signature) for one in again.amendments("s")] == [("anna", "", "")]
    again.engine.dispose()
    play(old, SHARED, AGENTS).engine.dispose()  # nothing is left to do, and nothing is in the way


def test_a_conversion_that_fails_leaves_it_as_it_was(old, monkeypatch):
    monkeypatch.setitem(engine.MIGRATIONS, 0, fails)
    with pytest.warns(TradeassayWarning), pytest.raises(DataError, match="does not add up"):
        open_engine(str(old))
    with closing(sqlite3.connect(old)) as connection:
        assert connection.execute("SELECT version FROM arena_schema").fetchone() == (0,)
        assert "value" not in [row[1] for row in connection.execute("PRAGMA table_info(amendments)")]


def test_a_format_that_nobody_converts_is_refused(old):
    with closing(sqlite3.connect(old)) as connection:
        connection.execute("UPDATE arena_schema SET version = -1")
        connection.commit()
    with pytest.raises(DataError, match="has form -1"):
        open_engine(str(old))
