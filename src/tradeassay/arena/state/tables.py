"""The arena's tables and those of its information stream.

Plain SQL types only, so that SQLite and PostgreSQL hold the same.

Structured values are JSON text. Times are ISO text in UTC, which sorts as time does. Season, asset and session
are repeated in ``decisions``, because nearly every page asks for decisions by them.

Money is a journal: ``bookings`` is only ever appended to. The view ``slots`` reads every decision with what was
booked for it, and with what it earned on the newest prices: a vendor's revision is booked as a correction.
Prices are kept with the time at which they were known (``price_vintages``), so that both can be read again.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
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
    Column("next_session", String(10)),  # the session next_price belongs to
    Column("momentum", Float),
    Column("packet", Text, nullable=False),
    Column("packet_sha256", String(64), nullable=False),
    Column("opened_at", String(40), nullable=False),
    Column("shared", Text),  # what each account over all assets was worth when the round was opened
    UniqueConstraint("season", "asset", "session"),
    Index("rounds_by_state", "season", "asset", "phase", "session"),
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
    # For lists of one status: a page of them is found here without a look at the decisions that are not on it.
    Index("decisions_by_status", "season", "status", "session"),
    Index("decisions_by_entry", "season", "entry", "status", "session"),
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
    Column("kind", String(10), nullable=False),  # executed, settled or corrected
    Column("position_before", Integer, nullable=False),
    Column("position", Integer, nullable=False),
    Column("nav_before", Float, nullable=False),
    Column("fee", Float, nullable=False),
    Column("earned", Float),
    Column("nav", Float, nullable=False),
    Column("exposure_before", Float),  # signed money behind the asset, where one account spans all assets
    Column("exposure", Float),
    Column("restated_before", Float),  # of a correction: the account before the decision, on the new prices
    UniqueConstraint("slot", "number"),
    Index("bookings_by_account", "season", "stage", "entry", "asset", "id"),
)

_MONEY = ("position_before", "position", "nav_before", "fee", "earned", "nav")
_AS_BOOKED = tuple(name for name in _MONEY if name != "earned")

slots = Table(
    "slots",
    MetaData(),  # a view: it is not created with the tables
    *(
        Column(column.name, column.type, *([ForeignKey(rounds.c.id)] if column.name == "round" else []))
        for column in decisions.c
    ),
    *(Column(name, bookings.c[name].type) for name in _MONEY),
)
"""Every slot with its decision and, once it is executed, the account as it was booked then.

``earned`` is on the newest prices: the last correction's where there is one.
"""

_CREATE_SLOTS = f"""
    CREATE VIEW slots AS SELECT {", ".join(f"d.{column.name}" for column in decisions.c)},
        {", ".join(f"coalesce(b.{name}, a.{name}) AS {name}" for name in _AS_BOOKED)},
        coalesce((SELECT c.earned FROM bookings c WHERE c.slot = d.id AND c.number > 1
                  ORDER BY c.number DESC LIMIT 1), b.earned) AS earned
    FROM decisions d
        LEFT JOIN bookings a ON a.slot = d.id AND a.number = 0
        LEFT JOIN bookings b ON b.slot = d.id AND b.number = 1
    """


@event.listens_for(bookings, "after_create")
def create_view(table: Table, connection: Connection, **_: object) -> None:
    """Create the view of slots."""
    connection.execute(text(_CREATE_SLOTS))


price_vintages = Table(
    "price_vintages",  # what a vendor said a session's close was, and when it was known; never changed
    metadata,
    Column("season", String(64), primary_key=True),
    Column("asset", String(64), primary_key=True),
    Column("session", String(10), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("close", Float, nullable=False),
    Column("known_at", String(40), nullable=False),
    Column("used", Integer, nullable=False),  # 1: rounds were decided or settled on it; 0: it was only looked at
)

corrections = Table(
    "corrections",  # a revision that all accounts have booked
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("season", String(64), nullable=False),
    Column("asset", String(64), nullable=False),
    Column("session", String(10), nullable=False),
    Column("old", Float, nullable=False),
    Column("new", Float, nullable=False),
    Column("known_at", String(40), nullable=False),
    Column("restated", Integer, nullable=False),  # how many decisions earned something else than was booked
    Index("corrections_by_asset", "season", "asset", "session"),
)

held_bars = Table(
    "held_bars",  # a bar that looks wrong holds its round until somebody or a second look says more
    metadata,
    Column("season", String(64), primary_key=True),
    Column("asset", String(64), primary_key=True),
    Column("session", String(10), primary_key=True),
    Column("price", Float, nullable=False),
    Column("reason", Text, nullable=False),
    Column("since", String(40), nullable=False),
    Column("word", String(8)),  # accept or refuse
    Column("word_by", String(64)),
    Column("word_at", String(40)),
)

skipped = Table(
    "skipped_sessions",  # sessions without a round: everybody missed them, and why
    metadata,
    Column("season", String(64), primary_key=True),
    Column("asset", String(64), primary_key=True),
    Column("session", String(10), primary_key=True),
    Column("stage", String(8), nullable=False),
    Column("cause", Text, nullable=False),
    Column("at", String(40), nullable=False),
)

kept_views = Table(
    "kept_views",  # the last standings, to be shown at once after a start
    metadata,
    Column("season", String(64), primary_key=True),
    Column("version", Integer, nullable=False),
    Column("body", LargeBinary, nullable=False),
)

workers = Table(
    "workers",  # who plays a season, when it was last heard of, what troubles it
    metadata,
    Column("season", String(64), primary_key=True),
    Column("worker", String(64), primary_key=True),
    Column("state", String(10), nullable=False),  # live, replay, stalled, finished or stopped
    Column("since", String(40), nullable=False),
    Column("beat", Float, nullable=False),  # real seconds
    Column("rounds", Integer, nullable=False),
    Column("next_at", String(40)),
    Column("troubles", Text, nullable=False),
)


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
