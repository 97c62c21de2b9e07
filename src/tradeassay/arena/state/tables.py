"""The arena's tables. Plain SQL types only, so that SQLite and PostgreSQL hold the same.

Structured values are JSON text. Times are ISO text in UTC, which sorts as time does. Season, asset and session
stand in ``decisions`` again, because nearly every page asks for decisions by them.

Money is a journal: ``bookings`` is only ever appended to. What a slot's account is worth now is its last booking;
the view ``slots`` reads every decision with it.
"""

from __future__ import annotations

from sqlalchemy import (
    Column,
    Connection,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    event,
    text,
)

metadata = MetaData()
SCHEMA = 2
"""Raised whenever a table changes its form."""

schema = Table("arena_schema", metadata, Column("version", Integer, primary_key=True))

seasons = Table(
    "seasons",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("spec", Text, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("created_at", String(40), nullable=False),
)

rounds = Table(
    "rounds",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("season", String(64), ForeignKey("seasons.id"), nullable=False),
    Column("asset", String(64), nullable=False),
    Column("session", String(10), nullable=False),
    Column("decision_time", String(40), nullable=False),
    Column("stage", String(8), nullable=False),  # warm-up or live
    Column("phase", String(10), nullable=False),  # opened, executed or settled
    Column("price", Float, nullable=False),
    Column("base_price", Float),  # the price again, in terms of a share at the time of next_price
    Column("next_price", Float),
    Column("momentum", Float),
    Column("packet", Text, nullable=False),
    Column("packet_sha256", String(64), nullable=False),
    Column("opened_at", String(40), nullable=False),
    UniqueConstraint("season", "asset", "session"),
    Index("rounds_by_phase", "season", "asset", "phase"),
)

decisions = Table(
    "decisions",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("round", Integer, ForeignKey("rounds.id"), nullable=False),
    Column("season", String(64), nullable=False),
    Column("asset", String(64), nullable=False),
    Column("session", String(10), nullable=False),
    Column("stage", String(8), nullable=False),
    Column("entry", String(64), nullable=False),
    Column("status", String(10), nullable=False),  # open, decided, failed or missed
    Column("action", String(4)),
    Column("confidence", Float),
    Column("allocation", Float),
    Column("reasoning", Text),
    Column("message", Text),
    Column("talk", Text),
    Column("failures", Text),
    Column("decided_at", String(40)),
    Column("calls", Integer),
    Column("input_tokens", Integer),
    Column("output_tokens", Integer),
    Column("usd", Float),
    Column("lease_owner", String(64)),
    Column("lease_until", Float),
    UniqueConstraint("round", "entry"),
    Index("slots_by_entry", "season", "entry", "asset", "session"),
    Index("slots_by_session", "season", "session"),
    Index("slots_open", "status", "lease_until"),
)

bookings = Table(
    "bookings",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("slot", Integer, ForeignKey("decisions.id"), nullable=False),
    Column("number", Integer, nullable=False),  # 0 for the execution, 1 for the settlement, then corrections
    Column("season", String(64), nullable=False),
    Column("stage", String(8), nullable=False),
    Column("entry", String(64), nullable=False),
    Column("asset", String(64), nullable=False),
    Column("kind", String(10), nullable=False),  # executed or settled
    Column("position_before", Integer, nullable=False),
    Column("position", Integer, nullable=False),
    Column("nav_before", Float, nullable=False),
    Column("fee", Float, nullable=False),
    Column("earned", Float),
    Column("nav", Float, nullable=False),
    Column("exposure_before", Float),  # signed money behind the asset, where one account spans all assets
    Column("exposure", Float),
    UniqueConstraint("slot", "number"),
    Index("bookings_by_account", "season", "stage", "entry", "asset", "id"),
)

_MONEY = ("position_before", "position", "nav_before", "fee", "earned", "nav")

slots = Table(
    "slots",
    MetaData(),  # a view, which nobody creates as a table
    *(
        Column(column.name, column.type, *([ForeignKey(rounds.c.id)] if column.name == "round" else []))
        for column in decisions.c
    ),
    *(Column(name, bookings.c[name].type) for name in _MONEY),
)
"""Every slot with its decision and, once it is executed, what its last booking says."""

_CREATE_SLOTS = f"""
    CREATE VIEW slots AS SELECT {", ".join(f"d.{column.name}" for column in decisions.c)},
        {", ".join(f"b.{name}" for name in _MONEY)}
    FROM decisions d LEFT JOIN bookings b
        ON b.slot = d.id AND b.number = (SELECT max(number) FROM bookings WHERE slot = d.id)
    """


@event.listens_for(bookings, "after_create")
def _create_view(table: Table, connection: Connection, **_: object) -> None:
    connection.execute(text(_CREATE_SLOTS))


calls = Table(
    "calls",
    metadata,
    Column("slot", Integer, ForeignKey("decisions.id"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("purpose", String(64), nullable=False),
    Column("request_sha256", String(64), nullable=False),
    Column("request", LargeBinary, nullable=False),
    Column("reply", LargeBinary, nullable=False),
)

memories = Table(
    "memories",
    metadata,
    Column("season", String(64), primary_key=True),
    Column("entry", String(64), primary_key=True),
    Column("asset", String(64), primary_key=True),
    Column("slot", Integer, nullable=False),
    Column("body", LargeBinary, nullable=False),
)

rewards = Table(
    "rewards",
    metadata,
    Column("slot", Integer, ForeignKey("decisions.id"), primary_key=True),
    Column("season", String(64), nullable=False),
    Column("entry", String(64), nullable=False),
    Column("asset", String(64), nullable=False),
    Column("session", String(10), nullable=False),
    Column("reward", Float, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("season", String(64), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("at", String(40), nullable=False),
    Column("body", Text, nullable=False),
    Index("events_by_season", "season", "seq"),
)
