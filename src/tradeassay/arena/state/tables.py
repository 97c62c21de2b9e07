"""The arena's tables, those of its doors and of its information stream.

Plain SQL types only, so that SQLite and PostgreSQL hold the same. Structured values are JSON text. Times are ISO
text in UTC, which sorts as time does. Season, asset and session are repeated in ``decisions``, because nearly
every page asks for decisions by them.

Money is a journal: ``bookings`` is only ever appended to. The view ``slots`` reads every decision with what was
booked for it, and with what it earned on the newest prices: a vendor's revision is booked as a correction.
Prices are kept with the time at which they were known (``price_vintages``), so that both can be read again."""

from __future__ import annotations

from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy import Column, ForeignKey, Index, Table, UniqueConstraint, event

metadata = sa.MetaData()
SCHEMA = 1
"""Raised whenever a table changes its form."""

_TYPES: dict[str, Any] = {
    **{"serial": sa.Integer, "int": sa.Integer, "long": sa.BigInteger, "float": sa.Float, "text": sa.Text},
    **{"bytes": sa.LargeBinary, "name": sa.String(64), "hash": sa.String(64), "day": sa.String(10)},
    **{"moment": sa.String(40), "word": sa.String(10)},
}


def _table(name: str, columns: str, *rules: UniqueConstraint | Index) -> Table:
    """Make a table of columns that are written ``name type``, with a comma between them.

    A star behind the type makes a key, a question mark lets it be missing; ``str20`` is a text of up to 20
    characters, and ``> table.column`` where a column points."""
    made = []
    for written in columns.split(","):
        column, kind, *points = written.replace(">", " ").split()
        plain = kind.rstrip("*?")
        type_ = sa.String(int(plain[3:])) if plain.startswith("str") else _TYPES[plain]
        key = kind.endswith("*") or plain == "serial"
        counts: bool | Literal["auto"] = plain == "serial" if key and not points else "auto"
        to, missing = map(ForeignKey, points), kind.endswith("?")
        made.append(Column(column, type_, *to, primary_key=key, nullable=missing, autoincrement=counts))
    return Table(name, metadata, *made, *rules)


schema = _table("arena_schema", "version int*")

seasons = _table("seasons", "id name*, spec text, sha256 hash, created_at moment")

rounds = _table(
    "rounds",
    "id serial, season name > seasons.id, asset name, session day, decision_time moment, opened_at moment, "
    # The stage is warm-up or live, the phase opened, executed or settled.
    "stage word, phase word, price float, "
    # The price again, in terms of a share at the time of the next session's price.
    "base_price float?, next_price float?, momentum float?, next_session day?, packet text, packet_sha256 hash, "
    "shared text?",  # what each account over all assets was worth when the round was opened
    UniqueConstraint("season", "asset", "session"),
    Index("rounds_by_state", "season", "asset", "phase", "session"),
)

decisions = _table(
    "decisions",
    "id serial, round int > rounds.id, season name, asset name, entry name, session day, stage word, "
    "status word, "  # open, decided, failed or missed
    "action str4?, confidence float?, allocation float?, usd float?, lease_until float?, reasoning text?, "
    "message text?, talk text?, failures text?, decided_at moment?, calls int?, input_tokens int?, "
    "output_tokens int?, lease_owner name?",
    UniqueConstraint("round", "entry"),
    Index("slots_by_entry", "season", "entry", "asset", "session"),
    Index("slots_by_session", "season", "session"),
    Index("slots_open", "status", "lease_until"),
    # For an entry's newest decisions: found here without a look at the decisions that are not on the list.
    Index("decisions_by_entry", "season", "entry", "status", "session"),
)

bookings = _table(
    "bookings",
    "id serial, slot int > decisions.id, "
    # 0 for the execution, 1 for the settlement, then corrections; the kind says the same in a word.
    "number int, season name, entry name, asset name, stage word, kind word, "
    "position_before int, position int, nav_before float, fee float, nav float, "
    # The exposures are the signed money behind the asset, where one account spans all assets; ``restated_before``
    # is the account before a corrected decision, on the new prices.
    "earned float?, exposure_before float?, exposure float?, restated_before float?",
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

``earned`` is on the newest prices: the last correction's where there is one."""

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
    "season name*, asset name*, session day*, number int*, close float, known_at moment, "
    "used int",  # 1: rounds were decided or settled on it; 0: it was only looked at
)

corrections = _table(
    "corrections",  # a revision that all accounts have booked
    "id serial, season name, asset name, session day, old float, new float, known_at moment, "
    "restated int",  # how many decisions earned something else than was booked
    Index("corrections_by_asset", "season", "asset", "session"),
)

held_bars = _table(
    "held_bars",  # a bar that looks wrong holds its round until somebody or a second look says more
    "season name*, asset name*, session day*, price float, reason text, since moment, "
    "word word?, word_by name?, word_at moment?",  # accept or refuse
)

skipped = _table(
    "skipped_sessions",  # sessions without a round: everybody missed them, and why
    "season name*, asset name*, session day*, stage word, cause text, at moment",
)

amendments = _table(
    "amendments",  # what the operator changed while the season ran; never changed itself
    "season name*, number int*, at moment, by name, what name, change word, day day, value text, signature text, "
    "sha256 hash",
)

workers = _table(
    "workers",  # who plays a season, when it was last heard of (in real seconds), what troubles it
    "season name*, worker name*, "
    "state word, "  # live, replay, stalled, finished or stopped
    "since moment, beat float, rounds int, next_at moment?, troubles text",
)

calls = _table(
    "calls", "slot int* > decisions.id, number int*, purpose name, request_sha256 hash, request bytes, reply bytes"
)

memories = _table("memories", "season name*, entry name*, asset name*, slot int, body bytes")

rewards = _table(
    "rewards", "slot int* > decisions.id, season name, entry name, asset name, session day, reward float"
)

events = _table(
    "events",
    "seq serial, season name, kind str16, at moment, body text",
    Index("events_by_season", "season", "seq"),
)

door_agents = _table(
    "door_agents",  # who is registered; of a token only a salted hash is kept
    "id str16*, season name, entry name, address text?, salt bytes, digest bytes, created_at moment, "
    "revoked_at moment?",
    UniqueConstraint("season", "entry"),
)

door_applicants = _table(
    "door_applicants",  # who asks to be let in; the token counts once an operator has approved
    "id str16*, season name, entry name, label text, contact text, address text?, salt bytes, digest bytes, "
    "at moment, status word",  # waiting, approved or declined
    UniqueConstraint("season", "entry"),
)

door_keys = _table(
    "door_keys",  # those of the operator and of experts; they survive a restart and can be revoked
    "id str16*, kind word, name name, salt bytes, digest bytes, created_at moment, revoked_at moment?",
)

door_offers = _table(
    "door_offers",  # agents' answers, until the worker that plays the round takes them; received in real seconds
    "slot int*, agent str16, body text, received float",
)

door_nonces = _table("door_nonces", "agent str16*, nonce str128*, received float")

door_counts = _table(
    "door_counts",  # how often somebody knocked in a minute, over all processes
    "key str80*, minute int*, count int",
)

stream_inbox = _table(
    "stream_inbox",  # what live connectors fetched, as it came, before any round
    "season name*, asset name*, "
    "key hash*, "  # of source, id and content
    "body text, known_at long",  # nanoseconds: the later of published and fetched
    Index("stream_inbox_known", "season", "asset", "known_at"),
)

stream_items = _table(
    "stream_items",
    "id str20*, season name > seasons.id, asset name, session day, kind word, language word, "
    "status word, "  # published, merged or rejected
    "raw_id text, source text, url text, title text, text text, reason text, shown_title text, shown_text text, "
    "summary_by text, checks text, contradicts text, published_at moment, fetched_at moment, content_sha256 hash, "
    "merged_into str20?",
    Index("stream_items_by_session", "season", "asset", "session"),
    Index("stream_items_by_status", "season", "status", "published_at"),
    Index("stream_items_merged", "merged_into"),
)

stream_rounds = _table(
    "stream_rounds",  # what a round was given, once and for all
    "season name*, asset name*, session day*, decision_time moment, news text, sha256 hash",
)

stream_calls = _table(
    "stream_calls",  # a model's answers, kept before they are used
    "item str20*, number int*, model text, request_sha256 hash, reply bytes",
)

stream_reviews = _table(
    "stream_reviews",
    "item str20* > stream_items.id, expert name*, verdict word, note text, at moment",  # confirm or reject
)
