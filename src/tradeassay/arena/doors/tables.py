"""The doors' tables: who may come in, what they brought, and which requests were seen before."""

from __future__ import annotations

from sqlalchemy import Column, Float, Integer, LargeBinary, MetaData, String, Table, Text, UniqueConstraint

metadata = MetaData()

agents = Table(
    "door_agents",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("season", String(64), nullable=False),
    Column("entry", String(64), nullable=False),
    Column("address", Text),
    Column("salt", LargeBinary, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("created_at", String(40), nullable=False),
    Column("revoked_at", String(40)),
    UniqueConstraint("season", "entry"),
)

offers = Table(
    "door_offers",
    metadata,
    Column("slot", Integer, primary_key=True, autoincrement=False),
    Column("agent", String(16), nullable=False),
    Column("body", Text, nullable=False),
    Column("received", Float, nullable=False),  # real seconds
)

nonces = Table(
    "door_nonces",
    metadata,
    Column("agent", String(16), primary_key=True),
    Column("nonce", String(128), primary_key=True),
    Column("received", Float, nullable=False),
)
