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

import sqlalchemy as sa
from sqlalchemy import Column, ForeignKey, Index, Table, Text, UniqueConstraint, event
from sqlalchemy.types import TypeEngine

metadata = sa.MetaData()
SCHEMA = 1
"""Raised whenever a table changes its form."""

NAME, DAY, MOMENT, WORD, HASH = sa.String(64), sa.String(10), sa.String(40), sa.String(10), sa.String(64)


def _id() -> Column[int]:
    return Column("id", sa.Integer, primary_key=True, autoincrement=True)


def _key(kind: TypeEngine[Any], *names: str) -> list[Column[Any]]:
    return [Column(name, kind, primary_key=True, autoincrement=False) for name in names]


def _given(kind: TypeEngine[Any], *names: str) -> list[Column[Any]]:
    return [Column(name, kind, nullable=False) for name in names]


def _maybe(kind: TypeEngine[Any], *names: str) -> list[Column[Any]]:
    return [Column(name, kind) for name in names]


def _table(name: str, *parts: Any) -> Table:
    return Table(name, metadata, *parts)


schema = _table("arena_schema", *_key(sa.Integer(), "version"))

seasons = _table(
    "seasons",
    *_key(NAME, "id"),
    *_given(Text(), "spec"),
    *_given(HASH, "sha256"),
    *_given(MOMENT, "created_at"),
)

rounds = _table(
    "rounds",
    _id(),
    Column("season", NAME, ForeignKey("seasons.id"), nullable=False),
    *_given(NAME, "asset"),
    *_given(DAY, "session"),
    *_given(MOMENT, "decision_time", "opened_at"),
    # The stage is warm-up or live, the phase opened, executed or settled.
    *_given(WORD, "stage", "phase"),
    *_given(sa.Float(), "price"),
    # The price again, in terms of a share at the time of the next session's price.
    *_maybe(sa.Float(), "base_price", "next_price", "momentum"),
    *_maybe(DAY, "next_session"),
    *_given(Text(), "packet"),
    *_given(HASH, "packet_sha256"),
    *_maybe(Text(), "shared"),  # what each account over all assets was worth when the round was opened
    UniqueConstraint("season", "asset", "session"),
    Index("rounds_by_state", "season", "asset", "phase", "session"),
)

decisions = _table(
    "decisions",
    _id(),
    Column("round", sa.Integer, ForeignKey("rounds.id"), nullable=False),
    *_given(NAME, "season", "asset", "entry"),
    *_given(DAY, "session"),
    *_given(WORD, "stage", "status"),  # the status is open, decided, failed or missed
    *_maybe(sa.String(4), "action"),
    *_maybe(sa.Float(), "confidence", "allocation", "usd", "lease_until"),
    *_maybe(Text(), "reasoning", "message", "talk", "failures"),
    *_maybe(MOMENT, "decided_at"),
    *_maybe(sa.Integer(), "calls", "input_tokens", "output_tokens"),
    *_maybe(NAME, "lease_owner"),
    UniqueConstraint("round", "entry"),
    Index("slots_by_entry", "season", "entry", "asset", "session"),
    Index("slots_by_session", "season", "session"),
    Index("slots_open", "status", "lease_until"),
    # For an entry's newest decisions: found here without a look at the decisions that are not on the list.
    Index("decisions_by_entry", "season", "entry", "status", "session"),
)

bookings = _table(
    "bookings",
    _id(),
    Column("slot", sa.Integer, ForeignKey("decisions.id"), nullable=False),
    # 0 for the execution, 1 for the settlement, then corrections; the kind says the same in a word.
    *_given(sa.Integer(), "number"),
    *_given(NAME, "season", "entry", "asset"),
    *_given(WORD, "stage", "kind"),
    *_given(sa.Integer(), "position_before", "position"),
    *_given(sa.Float(), "nav_before", "fee", "nav"),
    # The exposures are the signed money behind the asset, where one account spans all assets; ``restated_before``
    # is the account before a corrected decision, on the new prices.
    *_maybe(sa.Float(), "earned", "exposure_before", "exposure", "restated_before"),
    UniqueConstraint("slot", "number"),
    Index("bookings_by_account", "season", "stage", "entry", "asset", "id"),
)

_MONEY = ("position_before", "position", "nav_before", "fee", "earned", "nav")

slots = Table(
    "slots",
    sa.MetaData(),  # a view: it is not created with the tables
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
def create_view(table: Table, connection: sa.Connection, **_: object) -> None:
    connection.execute(sa.text(CREATE_SLOTS))


price_vintages = _table(
    "price_vintages",  # what a vendor said a session's close was, and when it was known; never changed
    *_key(NAME, "season", "asset"),
    *_key(DAY, "session"),
    *_key(sa.Integer(), "number"),
    *_given(sa.Float(), "close"),
    *_given(MOMENT, "known_at"),
    *_given(sa.Integer(), "used"),  # 1: rounds were decided or settled on it; 0: it was only looked at
)

corrections = _table(
    "corrections",  # a revision that all accounts have booked
    _id(),
    *_given(NAME, "season", "asset"),
    *_given(DAY, "session"),
    *_given(sa.Float(), "old", "new"),
    *_given(MOMENT, "known_at"),
    *_given(sa.Integer(), "restated"),  # how many decisions earned something else than was booked
    Index("corrections_by_asset", "season", "asset", "session"),
)

held_bars = _table(
    "held_bars",  # a bar that looks wrong holds its round until somebody or a second look says more
    *_key(NAME, "season", "asset"),
    *_key(DAY, "session"),
    *_given(sa.Float(), "price"),
    *_given(Text(), "reason"),
    *_given(MOMENT, "since"),
    *_maybe(WORD, "word"),  # accept or refuse
    *_maybe(NAME, "word_by"),
    *_maybe(MOMENT, "word_at"),
)

skipped = _table(
    "skipped_sessions",  # sessions without a round: everybody missed them, and why
    *_key(NAME, "season", "asset"),
    *_key(DAY, "session"),
    *_given(WORD, "stage"),
    *_given(Text(), "cause"),
    *_given(MOMENT, "at"),
)

amendments = _table(
    "amendments",  # what the operator changed while the season ran; never changed itself
    *_key(NAME, "season"),
    *_key(sa.Integer(), "number"),
    *_given(MOMENT, "at"),
    *_given(NAME, "by", "what"),
    *_given(WORD, "change"),
    *_given(DAY, "day"),
    *_given(Text(), "value", "signature"),
    *_given(HASH, "sha256"),
)

workers = _table(
    "workers",  # who plays a season, when it was last heard of, what troubles it
    *_key(NAME, "season", "worker"),
    *_given(WORD, "state"),  # live, replay, stalled, finished or stopped
    *_given(MOMENT, "since"),
    *_given(sa.Float(), "beat"),  # real seconds
    *_given(sa.Integer(), "rounds"),
    *_maybe(MOMENT, "next_at"),
    *_given(Text(), "troubles"),
)

calls = _table(
    "calls",
    Column("slot", sa.Integer, ForeignKey("decisions.id"), primary_key=True),
    *_key(sa.Integer(), "number"),
    *_given(NAME, "purpose"),
    *_given(HASH, "request_sha256"),
    *_given(sa.LargeBinary(), "request", "reply"),
)

memories = _table(
    "memories",
    *_key(NAME, "season", "entry", "asset"),
    *_given(sa.Integer(), "slot"),
    *_given(sa.LargeBinary(), "body"),
)

rewards = _table(
    "rewards",
    Column("slot", sa.Integer, ForeignKey("decisions.id"), primary_key=True),
    *_given(NAME, "season", "entry", "asset"),
    *_given(DAY, "session"),
    *_given(sa.Float(), "reward"),
)

events = _table(
    "events",
    Column("seq", sa.Integer, primary_key=True, autoincrement=True),
    *_given(NAME, "season"),
    *_given(sa.String(16), "kind"),
    *_given(MOMENT, "at"),
    *_given(Text(), "body"),
    Index("events_by_season", "season", "seq"),
)

door_agents = _table(
    "door_agents",  # who is registered; of a token only a salted hash is kept
    *_key(sa.String(16), "id"),
    *_given(NAME, "season", "entry"),
    *_maybe(Text(), "address"),
    *_given(sa.LargeBinary(), "salt", "digest"),
    *_given(MOMENT, "created_at"),
    *_maybe(MOMENT, "revoked_at"),
    UniqueConstraint("season", "entry"),
)

door_applicants = _table(
    "door_applicants",  # who asks to be let in; the token counts once an operator has approved
    *_key(sa.String(16), "id"),
    *_given(NAME, "season", "entry"),
    *_given(Text(), "label", "contact"),
    *_maybe(Text(), "address"),
    *_given(sa.LargeBinary(), "salt", "digest"),
    *_given(MOMENT, "at"),
    *_given(WORD, "status"),  # waiting, approved or declined
    UniqueConstraint("season", "entry"),
)

door_keys = _table(
    "door_keys",  # those of the operator and of experts; they survive a restart and can be revoked
    *_key(sa.String(16), "id"),
    *_given(WORD, "kind"),  # operator or expert
    *_given(NAME, "name"),
    *_given(sa.LargeBinary(), "salt", "digest"),
    *_given(MOMENT, "created_at"),
    *_maybe(MOMENT, "revoked_at"),
)

door_offers = _table(
    "door_offers",  # agents' answers, until the worker that plays the round takes them; received in real seconds
    *_key(sa.Integer(), "slot"),
    *_given(sa.String(16), "agent"),
    *_given(Text(), "body"),
    *_given(sa.Float(), "received"),
)

door_nonces = _table(
    "door_nonces", *_key(sa.String(16), "agent"), *_key(sa.String(128), "nonce"), *_given(sa.Float(), "received")
)

door_counts = _table(
    "door_counts",  # how often somebody knocked in a minute, over all processes
    *_key(sa.String(80), "key"),
    *_key(sa.Integer(), "minute"),
    *_given(sa.Integer(), "count"),
)

stream_inbox = _table(
    "stream_inbox",  # what live connectors fetched, as it came, before any round
    *_key(NAME, "season", "asset"),
    *_key(HASH, "key"),  # of source, id and content
    *_given(Text(), "body"),
    *_given(sa.BigInteger(), "known_at"),  # nanoseconds: the later of published and fetched
    Index("stream_inbox_known", "season", "asset", "known_at"),
)

stream_items = _table(
    "stream_items",
    *_key(sa.String(20), "id"),
    Column("season", NAME, ForeignKey("seasons.id"), nullable=False),
    *_given(NAME, "asset"),
    *_given(DAY, "session"),
    *_given(WORD, "kind", "language", "status"),  # the status is published, merged or rejected
    *_given(Text(), "raw_id", "source", "url", "title", "text", "reason", "shown_title", "shown_text"),
    *_given(Text(), "summary_by", "checks", "contradicts"),
    *_given(MOMENT, "published_at", "fetched_at"),
    *_given(HASH, "content_sha256"),
    *_maybe(sa.String(20), "merged_into"),
    Index("stream_items_by_session", "season", "asset", "session"),
    Index("stream_items_by_status", "season", "status", "published_at"),
    Index("stream_items_merged", "merged_into"),
)

stream_rounds = _table(
    "stream_rounds",  # what a round was given, once and for all
    *_key(NAME, "season", "asset"),
    *_key(DAY, "session"),
    *_given(MOMENT, "decision_time"),
    *_given(Text(), "news"),
    *_given(HASH, "sha256"),
)

stream_calls = _table(
    "stream_calls",  # a model's answers, kept before they are used
    *_key(sa.String(20), "item"),
    *_key(sa.Integer(), "number"),
    *_given(Text(), "model"),
    *_given(HASH, "request_sha256"),
    *_given(sa.LargeBinary(), "reply"),
)

stream_reviews = _table(
    "stream_reviews",
    Column("item", sa.String(20), ForeignKey("stream_items.id"), primary_key=True),
    *_key(NAME, "expert"),
    *_given(WORD, "verdict"),  # confirm or reject
    *_given(Text(), "note"),
    *_given(MOMENT, "at"),
)
