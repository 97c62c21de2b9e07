"""The information stream's tables, in the same database as the rounds. JSON is text, times are ISO text in UTC."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, LargeBinary, String, Table, Text

from tradeassay.arena.state.tables import metadata

__all__ = ["metadata", "stream_calls", "stream_inbox", "stream_items", "stream_reviews", "stream_rounds"]

stream_inbox = Table(
    "stream_inbox",  # what live connectors fetched, as it came, before any round
    metadata,
    Column("season", String(64), primary_key=True),
    Column("asset", String(64), primary_key=True),
    Column("key", String(64), primary_key=True),  # the hash of source, id and content
    Column("body", Text, nullable=False),
    Column("known_at", BigInteger, nullable=False),  # nanoseconds: the later of published and fetched
    Index("stream_inbox_known", "season", "asset", "known_at"),
)

stream_items = Table(
    "stream_items",
    metadata,
    Column("id", String(20), primary_key=True),
    Column("season", String(64), ForeignKey("seasons.id"), nullable=False),
    Column("asset", String(64), nullable=False),
    Column("session", String(10), nullable=False),
    Column("kind", String(8), nullable=False),
    Column("raw_id", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("published_at", String(40), nullable=False),
    Column("fetched_at", String(40), nullable=False),
    Column("content_sha256", String(64), nullable=False),
    Column("language", String(8), nullable=False),
    Column("title", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("status", String(10), nullable=False),  # published, merged or rejected
    Column("reason", Text, nullable=False),
    Column("merged_into", String(20)),
    Column("shown_title", Text, nullable=False),
    Column("shown_text", Text, nullable=False),
    Column("summary_by", Text, nullable=False),
    Column("checks", Text, nullable=False),
    Column("contradicts", Text, nullable=False),
    Index("stream_items_by_session", "season", "asset", "session"),
    Index("stream_items_by_status", "season", "status", "published_at"),
    Index("stream_items_merged", "merged_into"),
)

stream_rounds = Table(
    "stream_rounds",  # what a round was given, once and for all
    metadata,
    Column("season", String(64), primary_key=True),
    Column("asset", String(64), primary_key=True),
    Column("session", String(10), primary_key=True),
    Column("decision_time", String(40), nullable=False),
    Column("news", Text, nullable=False),
    Column("sha256", String(64), nullable=False),
)

stream_calls = Table(
    "stream_calls",  # a model's answers, kept before they are used
    metadata,
    Column("item", String(20), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("model", Text, nullable=False),
    Column("request_sha256", String(64), nullable=False),
    Column("reply", LargeBinary, nullable=False),
)

stream_reviews = Table(
    "stream_reviews",
    metadata,
    Column("item", String(20), ForeignKey("stream_items.id"), primary_key=True),
    Column("expert", String(64), primary_key=True),
    Column("verdict", String(8), nullable=False),  # confirm or reject
    Column("note", Text, nullable=False),
    Column("at", String(40), nullable=False),
)
