"""The arena's tables. Plain SQL types only, so that SQLite and PostgreSQL hold the same.

Structured values are JSON text. Times are ISO text in UTC, which sorts as time does. Season, asset and session
stand in ``slots`` again, because nearly every page asks for decisions by them.
"""

from __future__ import annotations

from sqlalchemy import (
    Column,
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
)

metadata = MetaData()
SCHEMA = 1
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

slots = Table(
    "slots",
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
    Column("position_before", Integer),
    Column("position", Integer),
    Column("nav_before", Float),
    Column("fee", Float),
    Column("earned", Float),
    Column("nav", Float),
    UniqueConstraint("round", "entry"),
    Index("slots_by_entry", "season", "entry", "asset", "session"),
    Index("slots_by_session", "season", "session"),
    Index("slots_open", "status", "lease_until"),
)

calls = Table(
    "calls",
    metadata,
    Column("slot", Integer, ForeignKey("slots.id"), primary_key=True),
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
    Column("slot", Integer, ForeignKey("slots.id"), primary_key=True),
    Column("season", String(64), nullable=False),
    Column("entry", String(64), nullable=False),
    Column("asset", String(64), nullable=False),
    Column("session", String(10), nullable=False),
    Column("reward", Float, nullable=False),
)

# The next two are only used where one account spans all assets.
purses = Table(
    "purses",
    metadata,
    Column("season", String(64), primary_key=True),
    Column("entry", String(64), primary_key=True),
    Column("stage", String(8), primary_key=True),
    Column("value", Float, nullable=False),
)

stakes = Table(
    "stakes",
    metadata,
    Column("slot", Integer, ForeignKey("slots.id"), primary_key=True),
    Column("round", Integer, nullable=False),
    Column("season", String(64), nullable=False),
    Column("entry", String(64), nullable=False),
    Column("asset", String(64), nullable=False),
    Column("stage", String(8), nullable=False),
    Column("before", Float, nullable=False),  # signed money behind the asset before the decision
    Column("exposure", Float, nullable=False),  # and after it
    Column("carried", Float),  # what it has become at the next price
    Index("stakes_by_round", "round"),
    Index("stakes_newest", "season", "stage", "entry", "asset", "slot"),
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
