"""The arena's tables: the journal, the API for agents, and the information stream.

Only plain SQL types are used, so SQLite and PostgreSQL store the same values. Structured values are
JSON text. Times are ISO text in UTC, which sorts by time. Season, asset and session are repeated in
``decisions``, because nearly every page selects decisions by them.

Money is a journal: rows of ``bookings`` are only appended. The view ``slots`` joins every decision
with its booking and its return on the newest prices. A vendor's revision is booked as a correction.
Prices have the time at which they were known (``price_vintages``).
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    UniqueConstraint,
    event,
)

metadata = sa.MetaData()
SCHEMA = 3
"""Version of the tables. Increase it whenever a table changes."""

NAME = String(64)
HASH = String(64)
DAY = String(10)
WORD = String(10)
MOMENT = String(40)

schema = Table(
    "arena_schema",
    metadata,
    Column("version", Integer, primary_key=True, autoincrement=False),
)

seasons = Table(
    "seasons",
    metadata,
    Column("id", NAME, primary_key=True),
    Column("spec", Text, nullable=False),
    Column("sha256", HASH, nullable=False),
    Column("created_at", MOMENT, nullable=False),
)

rounds = Table(
    "rounds",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("season", NAME, ForeignKey("seasons.id"), nullable=False),
    Column("asset", NAME, nullable=False),
    Column("session", DAY, nullable=False),
    Column("decision_time", MOMENT, nullable=False),
    Column("opened_at", MOMENT, nullable=False),
    # The stage is warm-up or live, the phase opened, executed or settled.
    Column("stage", WORD, nullable=False),
    Column("phase", WORD, nullable=False),
    Column("price", Float, nullable=False),
    # The price in units of a share at the time of the next session's price.
    Column("base_price", Float),
    Column("next_price", Float),
    Column("momentum", Float),
    Column("next_session", DAY),
    Column("packet", Text, nullable=False),
    Column("packet_sha256", HASH, nullable=False),
    Column("shared", Text),  # accounts over all assets when the round was opened, as JSON
    UniqueConstraint("season", "asset", "session"),
    Index("rounds_by_state", "season", "asset", "phase", "session"),
)

decisions = Table(
    "decisions",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("round", Integer, ForeignKey("rounds.id"), nullable=False),
    Column("season", NAME, nullable=False),
    Column("asset", NAME, nullable=False),
    Column("entry", NAME, nullable=False),
    Column("session", DAY, nullable=False),
    Column("stage", WORD, nullable=False),
    Column("status", WORD, nullable=False),  # open, decided, failed or missed
    Column("action", String(4)),
    Column("confidence", Float),
    Column("allocation", Float),
    Column("usd", Float),
    Column("lease_until", Float),
    Column("reasoning", Text),
    Column("message", Text),
    Column("talk", Text),
    Column("failures", Text),
    Column("decided_at", MOMENT),
    Column("calls", Integer),
    Column("input_tokens", Integer),
    Column("output_tokens", Integer),
    Column("lease_owner", NAME),
    UniqueConstraint("round", "entry"),
    Index("slots_by_entry", "season", "entry", "asset", "session"),
    Index("slots_by_session", "season", "session"),
    Index("slots_open", "status", "lease_until"),
    # An index for an entry's newest decisions.
    Index("decisions_by_entry", "season", "entry", "status", "session"),
)

bookings = Table(
    "bookings",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("slot", Integer, ForeignKey("decisions.id"), nullable=False),
    # 0 is the execution, 1 the settlement. Larger numbers are corrections. ``kind`` is the name.
    Column("number", Integer, nullable=False),
    Column("season", NAME, nullable=False),
    Column("entry", NAME, nullable=False),
    Column("asset", NAME, nullable=False),
    Column("stage", WORD, nullable=False),
    Column("kind", WORD, nullable=False),
    Column("position_before", Integer, nullable=False),
    Column("position", Integer, nullable=False),
    Column("nav_before", Float, nullable=False),
    Column("fee", Float, nullable=False),
    Column("nav", Float, nullable=False),
    Column("earned", Float),
    # The signed money invested in the asset, for an account over all assets.
    Column("exposure_before", Float),
    Column("exposure", Float),
    # The account value before a corrected decision, on the new prices.
    Column("restated_before", Float),
    UniqueConstraint("slot", "number"),
    Index("bookings_by_account", "season", "stage", "entry", "asset", "id"),
)

_MONEY = ("position_before", "position", "nav_before", "fee", "earned", "nav")

slots = Table(
    "slots",
    sa.MetaData(),  # separate metadata: the view is not created with the tables
    *(
        Column(
            column.name, column.type, *([ForeignKey(rounds.c.id)] if column.name == "round" else [])
        )
        for column in decisions.c
    ),
    *(Column(name, bookings.c[name].type) for name in _MONEY),
)
"""Every slot with its decision and, once it is executed, the account as booked at that time.

``earned`` is on the newest prices. A correction takes precedence over the settlement.
"""

_CURRENT = ", ".join(
    f"coalesce(b.{name}, a.{name}) AS {name}" for name in _MONEY if name != "earned"
)

CREATE_SLOTS = f"""
    CREATE VIEW slots AS SELECT {", ".join(f"d.{column.name}" for column in decisions.c)},
        {_CURRENT},
        coalesce((SELECT c.earned FROM bookings c WHERE c.slot = d.id AND c.number > 1
                  ORDER BY c.number DESC LIMIT 1), b.earned) AS earned
    FROM decisions d
        LEFT JOIN bookings a ON a.slot = d.id AND a.number = 0
        LEFT JOIN bookings b ON b.slot = d.id AND b.number = 1
    """


@event.listens_for(bookings, "after_create")
def create_view(table: Table, connection: sa.Connection, **_: object) -> None:
    connection.execute(sa.text(CREATE_SLOTS))


# A vendor's closes of a session and the times at which they were known. Rows never change.
price_vintages = Table(
    "price_vintages",
    metadata,
    Column("season", NAME, primary_key=True),
    Column("asset", NAME, primary_key=True),
    Column("session", DAY, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("close", Float, nullable=False),
    Column("known_at", MOMENT, nullable=False),
    Column(
        "used", Integer, nullable=False
    ),  # 1: a round was decided or settled on it; 0: it was only compared
)

# Revisions that all accounts have booked.
corrections = Table(
    "corrections",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("season", NAME, nullable=False),
    Column("asset", NAME, nullable=False),
    Column("session", DAY, nullable=False),
    Column("old", Float, nullable=False),
    Column("new", Float, nullable=False),
    Column("known_at", MOMENT, nullable=False),
    Column(
        "restated", Integer, nullable=False
    ),  # the number of decisions whose return differs from the booked return
    Index("corrections_by_asset", "season", "asset", "session"),
)

# Bars that look wrong. Each delays its round until an operator or a second look accepts it.
held_bars = Table(
    "held_bars",
    metadata,
    Column("season", NAME, primary_key=True),
    Column("asset", NAME, primary_key=True),
    Column("session", DAY, primary_key=True),
    Column("price", Float, nullable=False),
    Column("reason", Text, nullable=False),
    Column("since", MOMENT, nullable=False),
    Column("word", WORD),  # accept or refuse
    Column("word_by", NAME),
    Column("word_at", MOMENT),
)

# Sessions without a round, and the cause.
skipped = Table(
    "skipped_sessions",
    metadata,
    Column("season", NAME, primary_key=True),
    Column("asset", NAME, primary_key=True),
    Column("session", DAY, primary_key=True),
    Column("stage", WORD, nullable=False),
    Column("cause", Text, nullable=False),
    Column("at", MOMENT, nullable=False),
)

# Workers of a season: their last report (in real seconds) and their troubles.
workers = Table(
    "workers",
    metadata,
    Column("season", NAME, primary_key=True),
    Column("worker", NAME, primary_key=True),
    Column("state", WORD, nullable=False),  # live, replay, stalled, finished or stopped
    Column("since", MOMENT, nullable=False),
    Column("beat", Float, nullable=False),
    Column("rounds", Integer, nullable=False),
    Column("next_at", MOMENT),
    Column("troubles", Text, nullable=False),
)

calls = Table(
    "calls",
    metadata,
    Column("slot", Integer, ForeignKey("decisions.id"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("purpose", NAME, nullable=False),
    Column("request_sha256", HASH, nullable=False),
    Column("request", LargeBinary, nullable=False),
    Column("reply", LargeBinary, nullable=False),
)

memories = Table(
    "memories",
    metadata,
    Column("season", NAME, primary_key=True),
    Column("entry", NAME, primary_key=True),
    Column("asset", NAME, primary_key=True),
    Column("slot", Integer, nullable=False),
    Column("body", LargeBinary, nullable=False),
)

rewards = Table(
    "rewards",
    metadata,
    Column("slot", Integer, ForeignKey("decisions.id"), primary_key=True),
    Column("season", NAME, nullable=False),
    Column("entry", NAME, nullable=False),
    Column("asset", NAME, nullable=False),
    Column("session", DAY, nullable=False),
    Column("reward", Float, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("seq", Integer, primary_key=True),
    Column("season", NAME, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("at", MOMENT, nullable=False),
    Column("body", Text, nullable=False),
    Index("events_by_season", "season", "seq"),
)

AMENDED = events.c.kind == sa.literal("amended", literal_execute=True)
"""Kinds of events that are the operator's amendments."""
# Every round looks for amendments first.
Index("events_amended", events.c.season, sqlite_where=AMENDED, postgresql_where=AMENDED)

# Registered agents. Only a salted hash of a token is kept.
door_agents = Table(
    "door_agents",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("season", NAME, nullable=False),
    Column("entry", NAME, nullable=False),
    Column("address", Text),
    Column("salt", LargeBinary, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("created_at", MOMENT, nullable=False),
    Column("revoked_at", MOMENT),
    UniqueConstraint("season", "entry"),
)

# Applicants. The token is valid once an operator has approved.
door_applicants = Table(
    "door_applicants",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("season", NAME, nullable=False),
    Column("entry", NAME, nullable=False),
    Column("label", Text, nullable=False),
    Column("contact", Text, nullable=False),
    Column("address", Text),
    Column("salt", LargeBinary, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("at", MOMENT, nullable=False),
    Column("status", WORD, nullable=False),  # waiting, approved or declined
    UniqueConstraint("season", "entry"),
)

# Keys of the operator and of experts. They survive a restart and can be revoked.
door_keys = Table(
    "door_keys",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("kind", WORD, nullable=False),
    Column("name", NAME, nullable=False),
    Column("salt", LargeBinary, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("created_at", MOMENT, nullable=False),
    Column("revoked_at", MOMENT),
)

# Agents' answers until the worker of the round takes them. ``received`` is in real seconds.
door_offers = Table(
    "door_offers",
    metadata,
    Column("slot", Integer, primary_key=True, autoincrement=False),
    Column("agent", String(16), nullable=False),
    Column("body", Text, nullable=False),
    Column("received", Float, nullable=False),
)

door_nonces = Table(
    "door_nonces",
    metadata,
    Column("agent", String(16), primary_key=True),
    Column("nonce", String(128), primary_key=True),
    Column("received", Float, nullable=False),
)

# Requests per key and minute, over all processes.
door_counts = Table(
    "door_counts",
    metadata,
    Column("key", String(80), primary_key=True),
    Column("minute", Integer, primary_key=True),
    Column("count", Integer, nullable=False),
)

# Items as live connectors fetched them, before any round.
stream_inbox = Table(
    "stream_inbox",
    metadata,
    Column("season", NAME, primary_key=True),
    Column("asset", NAME, primary_key=True),
    Column("key", HASH, primary_key=True),  # of source, id and content
    Column("body", Text, nullable=False),
    Column(
        "known_at", BigInteger, nullable=False
    ),  # nanoseconds: the later of published and fetched
    Index("stream_inbox_known", "season", "asset", "known_at"),
)

stream_items = Table(
    "stream_items",
    metadata,
    Column("id", String(20), primary_key=True),
    Column("season", NAME, ForeignKey("seasons.id"), nullable=False),
    Column("asset", NAME, nullable=False),
    Column("session", DAY, nullable=False),
    Column("kind", WORD, nullable=False),
    Column("language", WORD, nullable=False),
    Column("status", WORD, nullable=False),  # published or merged
    Column("raw_id", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("shown_title", Text, nullable=False),
    Column("shown_text", Text, nullable=False),
    Column("summary_by", Text, nullable=False),
    Column("checks", Text, nullable=False),
    Column("published_at", MOMENT, nullable=False),
    Column("fetched_at", MOMENT, nullable=False),
    Column("content_sha256", HASH, nullable=False),
    Column("merged_into", String(20)),
    Index("stream_items_by_session", "season", "asset", "session"),
    Index("stream_items_by_status", "season", "status", "published_at"),
    Index("stream_items_merged", "merged_into"),
)

# The news of each round. Rows never change.
stream_rounds = Table(
    "stream_rounds",
    metadata,
    Column("season", NAME, primary_key=True),
    Column("asset", NAME, primary_key=True),
    Column("session", DAY, primary_key=True),
    Column("decision_time", MOMENT, nullable=False),
    Column("news", Text, nullable=False),
    Column("sha256", HASH, nullable=False),
)

# Answers of models about news items, written before they are used.
stream_calls = Table(
    "stream_calls",
    metadata,
    Column("item", String(20), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("model", Text, nullable=False),
    Column("request_sha256", HASH, nullable=False),
    Column("reply", LargeBinary, nullable=False),
)

stream_reviews = Table(
    "stream_reviews",
    metadata,
    Column("item", String(20), ForeignKey("stream_items.id"), primary_key=True),
    Column("expert", NAME, primary_key=True),
    Column("verdict", WORD, nullable=False),  # confirm or reject
    Column("note", Text, nullable=False),
    Column("at", MOMENT, nullable=False),
)
