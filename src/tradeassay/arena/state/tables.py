"""The arena's tables, those of its doors and of its information stream.

Plain SQL types only, so that SQLite and PostgreSQL hold the same. Structured values are JSON text. Times are ISO
text in UTC, which sorts as time does. Season, asset and session are repeated in ``decisions``, because nearly
every page asks for decisions by them.

Money is a journal: ``bookings`` is only ever appended to. The view ``slots`` reads every decision with what was
booked for it, and with what it earned on the newest prices: a vendor's revision is booked as a correction.
Prices are kept with the time at which they were known (``price_vintages``), so that both can be read again.
"""

from __future__ import annotations

from typing import Any

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
from sqlalchemy.types import TypeEngine

metadata = MetaData()
SCHEMA = 1
"""Raised whenever a table changes its form."""

NAME, DAY, MOMENT, WORD, HASH = String(64), String(10), String(40), String(10), String(64)


def _id() -> Column[int]:
    return Column("id", Integer, primary_key=True, autoincrement=True)


def _key(kind: TypeEngine[Any], *names: str) -> list[Column[Any]]:
    return [Column(name, kind, primary_key=True, autoincrement=False) for name in names]


def _given(kind: TypeEngine[Any], *names: str) -> list[Column[Any]]:
    return [Column(name, kind, nullable=False) for name in names]


def _maybe(kind: TypeEngine[Any], *names: str) -> list[Column[Any]]:
    return [Column(name, kind) for name in names]


schema = Table("arena_schema", metadata, *_key(Integer(), "version"))

seasons = Table(
    "seasons",
    metadata,
    *_key(NAME, "id"),
    *_given(Text(), "spec"),
    *_given(HASH, "sha256"),
    *_given(MOMENT, "created_at"),
)

rounds = Table(
    "rounds",
    metadata,
    _id(),
    Column("season", NAME, ForeignKey("seasons.id"), nullable=False),
    *_given(NAME, "asset"),
    *_given(DAY, "session"),
    *_given(MOMENT, "decision_time", "opened_at"),
    # The stage is warm-up or live, the phase opened, executed or settled.
    *_given(WORD, "stage", "phase"),
    *_given(Float(), "price"),
    # The price again, in terms of a share at the time of the next session's price.
    *_maybe(Float(), "base_price", "next_price", "momentum"),
    *_maybe(DAY, "next_session"),
    *_given(Text(), "packet"),
    *_given(HASH, "packet_sha256"),
    *_maybe(Text(), "shared"),  # what each account over all assets was worth when the round was opened
    UniqueConstraint("season", "asset", "session"),
    Index("rounds_by_state", "season", "asset", "phase", "session"),
)

decisions = Table(
    "decisions",
    metadata,
    _id(),
    Column("round", Integer, ForeignKey("rounds.id"), nullable=False),
    *_given(NAME, "season", "asset", "entry"),
    *_given(DAY, "session"),
    *_given(WORD, "stage", "status"),  # the status is open, decided, failed or missed
    *_maybe(String(4), "action"),
    *_maybe(Float(), "confidence", "allocation", "usd", "lease_until"),
    *_maybe(Text(), "reasoning", "message", "talk", "failures"),
    *_maybe(MOMENT, "decided_at"),
    *_maybe(Integer(), "calls", "input_tokens", "output_tokens"),
    *_maybe(NAME, "lease_owner"),
    UniqueConstraint("round", "entry"),
    Index("slots_by_entry", "season", "entry", "asset", "session"),
    Index("slots_by_session", "season", "session"),
    Index("slots_open", "status", "lease_until"),
    # For an entry's newest decisions: found here without a look at the decisions that are not on the list.
    Index("decisions_by_entry", "season", "entry", "status", "session"),
)

bookings = Table(
    "bookings",
    metadata,
    _id(),
    Column("slot", Integer, ForeignKey("decisions.id"), nullable=False),
    # 0 for the execution, 1 for the settlement, then corrections; the kind says the same in a word.
    *_given(Integer(), "number"),
    *_given(NAME, "season", "entry", "asset"),
    *_given(WORD, "stage", "kind"),
    *_given(Integer(), "position_before", "position"),
    *_given(Float(), "nav_before", "fee", "nav"),
    # The exposures are the signed money behind the asset, where one account spans all assets; ``restated_before``
    # is the account before a corrected decision, on the new prices.
    *_maybe(Float(), "earned", "exposure_before", "exposure", "restated_before"),
    UniqueConstraint("slot", "number"),
    Index("bookings_by_account", "season", "stage", "entry", "asset", "id"),
)

_MONEY = ("position_before", "position", "nav_before", "fee", "earned", "nav")

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

CREATE_SLOTS = f"""
    CREATE VIEW slots AS SELECT {", ".join(f"d.{column.name}" for column in decisions.c)},
        {", ".join(f"coalesce(b.{name}, a.{name}) AS {name}" for name in _MONEY if name != "earned")},
        coalesce((SELECT c.earned FROM bookings c WHERE c.slot = d.id AND c.number > 1
                  ORDER BY c.number DESC LIMIT 1), b.earned) AS earned
    FROM decisions d
        LEFT JOIN bookings a ON a.slot = d.id AND a.number = 0
        LEFT JOIN bookings b ON b.slot = d.id AND b.number = 1
    """


@event.listens_for(bookings, "after_create")
def create_view(table: Table, connection: Connection, **_: object) -> None:
    connection.execute(text(CREATE_SLOTS))


price_vintages = Table(
    "price_vintages",  # what a vendor said a session's close was, and when it was known; never changed
    metadata,
    *_key(NAME, "season", "asset"),
    *_key(DAY, "session"),
    *_key(Integer(), "number"),
    *_given(Float(), "close"),
    *_given(MOMENT, "known_at"),
    *_given(Integer(), "used"),  # 1: rounds were decided or settled on it; 0: it was only looked at
)

corrections = Table(
    "corrections",  # a revision that all accounts have booked
    metadata,
    _id(),
    *_given(NAME, "season", "asset"),
    *_given(DAY, "session"),
    *_given(Float(), "old", "new"),
    *_given(MOMENT, "known_at"),
    *_given(Integer(), "restated"),  # how many decisions earned something else than was booked
    Index("corrections_by_asset", "season", "asset", "session"),
)

held_bars = Table(
    "held_bars",  # a bar that looks wrong holds its round until somebody or a second look says more
    metadata,
    *_key(NAME, "season", "asset"),
    *_key(DAY, "session"),
    *_given(Float(), "price"),
    *_given(Text(), "reason"),
    *_given(MOMENT, "since"),
    *_maybe(WORD, "word"),  # accept or refuse
    *_maybe(NAME, "word_by"),
    *_maybe(MOMENT, "word_at"),
)

skipped = Table(
    "skipped_sessions",  # sessions without a round: everybody missed them, and why
    metadata,
    *_key(NAME, "season", "asset"),
    *_key(DAY, "session"),
    *_given(WORD, "stage"),
    *_given(Text(), "cause"),
    *_given(MOMENT, "at"),
)

amendments = Table(
    "amendments",  # what the operator changed while the season ran; never changed itself
    metadata,
    *_key(NAME, "season"),
    *_key(Integer(), "number"),
    *_given(MOMENT, "at"),
    *_given(NAME, "by", "what"),
    *_given(WORD, "change"),
    *_given(DAY, "day"),
    *_given(Text(), "value", "signature"),
    *_given(HASH, "sha256"),
)

workers = Table(
    "workers",  # who plays a season, when it was last heard of, what troubles it
    metadata,
    *_key(NAME, "season", "worker"),
    *_given(WORD, "state"),  # live, replay, stalled, finished or stopped
    *_given(MOMENT, "since"),
    *_given(Float(), "beat"),  # real seconds
    *_given(Integer(), "rounds"),
    *_maybe(MOMENT, "next_at"),
    *_given(Text(), "troubles"),
)

calls = Table(
    "calls",
    metadata,
    Column("slot", Integer, ForeignKey("decisions.id"), primary_key=True),
    *_key(Integer(), "number"),
    *_given(NAME, "purpose"),
    *_given(HASH, "request_sha256"),
    *_given(LargeBinary(), "request", "reply"),
)

memories = Table(
    "memories",
    metadata,
    *_key(NAME, "season", "entry", "asset"),
    *_given(Integer(), "slot"),
    *_given(LargeBinary(), "body"),
)

rewards = Table(
    "rewards",
    metadata,
    Column("slot", Integer, ForeignKey("decisions.id"), primary_key=True),
    *_given(NAME, "season", "entry", "asset"),
    *_given(DAY, "session"),
    *_given(Float(), "reward"),
)

events = Table(
    "events",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    *_given(NAME, "season"),
    *_given(String(16), "kind"),
    *_given(MOMENT, "at"),
    *_given(Text(), "body"),
    Index("events_by_season", "season", "seq"),
)

door_agents = Table(
    "door_agents",  # who is registered; of a token only a salted hash is kept
    metadata,
    *_key(String(16), "id"),
    *_given(NAME, "season", "entry"),
    *_maybe(Text(), "address"),
    *_given(LargeBinary(), "salt", "digest"),
    *_given(MOMENT, "created_at"),
    *_maybe(MOMENT, "revoked_at"),
    UniqueConstraint("season", "entry"),
)

door_applicants = Table(
    "door_applicants",  # who asks to be let in; the token counts once an operator has approved
    metadata,
    *_key(String(16), "id"),
    *_given(NAME, "season", "entry"),
    *_given(Text(), "label", "contact"),
    *_maybe(Text(), "address"),
    *_given(LargeBinary(), "salt", "digest"),
    *_given(MOMENT, "at"),
    *_given(WORD, "status"),  # waiting, approved or declined
    UniqueConstraint("season", "entry"),
)

door_keys = Table(
    "door_keys",  # those of the operator and of experts; they survive a restart and can be revoked
    metadata,
    *_key(String(16), "id"),
    *_given(WORD, "kind"),  # operator or expert
    *_given(NAME, "name"),
    *_given(LargeBinary(), "salt", "digest"),
    *_given(MOMENT, "created_at"),
    *_maybe(MOMENT, "revoked_at"),
)

door_offers = Table(
    "door_offers",  # agents' answers, until the worker that plays the round takes them; received in real seconds
    metadata,
    *_key(Integer(), "slot"),
    *_given(String(16), "agent"),
    *_given(Text(), "body"),
    *_given(Float(), "received"),
)

door_nonces = Table(
    "door_nonces", metadata, *_key(String(16), "agent"), *_key(String(128), "nonce"), *_given(Float(), "received")
)

door_counts = Table(
    "door_counts",  # how often somebody knocked in a minute, over all processes
    metadata,
    *_key(String(80), "key"),
    *_key(Integer(), "minute"),
    *_given(Integer(), "count"),
)

stream_inbox = Table(
    "stream_inbox",  # what live connectors fetched, as it came, before any round
    metadata,
    *_key(NAME, "season", "asset"),
    *_key(HASH, "key"),  # of source, id and content
    *_given(Text(), "body"),
    *_given(BigInteger(), "known_at"),  # nanoseconds: the later of published and fetched
    Index("stream_inbox_known", "season", "asset", "known_at"),
)

stream_items = Table(
    "stream_items",
    metadata,
    *_key(String(20), "id"),
    Column("season", NAME, ForeignKey("seasons.id"), nullable=False),
    *_given(NAME, "asset"),
    *_given(DAY, "session"),
    *_given(WORD, "kind", "language", "status"),  # the status is published, merged or rejected
    *_given(Text(), "raw_id", "source", "url", "title", "text", "reason", "shown_title", "shown_text"),
    *_given(Text(), "summary_by", "checks", "contradicts"),
    *_given(MOMENT, "published_at", "fetched_at"),
    *_given(HASH, "content_sha256"),
    *_maybe(String(20), "merged_into"),
    Index("stream_items_by_session", "season", "asset", "session"),
    Index("stream_items_by_status", "season", "status", "published_at"),
    Index("stream_items_merged", "merged_into"),
)

stream_rounds = Table(
    "stream_rounds",  # what a round was given, once and for all
    metadata,
    *_key(NAME, "season", "asset"),
    *_key(DAY, "session"),
    *_given(MOMENT, "decision_time"),
    *_given(Text(), "news"),
    *_given(HASH, "sha256"),
)

stream_calls = Table(
    "stream_calls",  # a model's answers, kept before they are used
    metadata,
    *_key(String(20), "item"),
    *_key(Integer(), "number"),
    *_given(Text(), "model"),
    *_given(HASH, "request_sha256"),
    *_given(LargeBinary(), "reply"),
)

stream_reviews = Table(
    "stream_reviews",
    metadata,
    Column("item", String(20), ForeignKey("stream_items.id"), primary_key=True),
    *_key(NAME, "expert"),
    *_given(WORD, "verdict"),  # confirm or reject
    *_given(Text(), "note"),
    *_given(MOMENT, "at"),
)
