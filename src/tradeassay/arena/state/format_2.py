"""Databases of format 2, which knew no corrections, learn them: three columns, and another view of slots.

The new tables are created empty with all others.
"""

from __future__ import annotations

from sqlalchemy import Connection, text

from tradeassay.arena.state.tables import bookings, create_view


def add_columns(db: Connection) -> None:
    """Add what rounds of format 2 did not have; each was settled by the next round's price."""
    db.execute(text("ALTER TABLE rounds ADD COLUMN shared TEXT"))
    db.execute(text("ALTER TABLE rounds ADD COLUMN next_session VARCHAR(10)"))
    later = "SELECT min(o.session) FROM rounds o WHERE o.season = rounds.season AND o.asset = rounds.asset"
    db.execute(
        text(f"UPDATE rounds SET next_session = ({later} AND o.session > rounds.session) WHERE phase = 'settled'")
    )


def upgrade(db: Connection) -> None:
    """Turn a database of format 2 into one of format 3, inside the caller's transaction."""
    db.execute(text("DROP VIEW slots"))
    add_columns(db)
    db.execute(text("ALTER TABLE bookings ADD COLUMN restated_before FLOAT"))
    create_view(bookings, db)
    db.execute(text("UPDATE arena_schema SET version = 3"))
