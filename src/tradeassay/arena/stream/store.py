"""Reading and writing the stream's tables. A round's edition is written in one transaction, once."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, and_, insert, or_, select
from sqlalchemy.exc import IntegrityError

from tradeassay.arena.rounds.feed import Due
from tradeassay.arena.state.store import Store, tell
from tradeassay.arena.state.tables import stream_bands, stream_calls, stream_inbox, stream_items, stream_rounds
from tradeassay.arena.stream.duplicates import bands
from tradeassay.arena.stream.editing import Edition, Question
from tradeassay.arena.stream.items import ItemCheck, RawItem, StreamItem, item_id
from tradeassay.core.arena import NewsShown
from tradeassay.core.dialogue import ModelReply
from tradeassay.core.errors import DataError
from tradeassay.core.hashing import canonical_json, sha256_bytes, sha256_of
from tradeassay.core.time import Instant, iso, parse_iso

PER_SOURCE = 100
"""How many items of one source a round looks at."""

_NEWS = msgspec.json.Decoder(tuple[NewsShown, ...])
_CHECKS = msgspec.json.Decoder(tuple[ItemCheck, ...])
_IDS = msgspec.json.Decoder(tuple[str, ...])
_RAW = msgspec.json.Decoder(RawItem)
_REPLY = msgspec.json.Decoder(ModelReply)


def stored_news(store: Store, season: str, due: Due) -> tuple[NewsShown, ...] | None:
    """Return what a round was given before, or None when it was given nothing yet."""
    with store.read() as db:
        return _stored(db, season, due)


def window(store: Store, season: str, due: Due, raw: Sequence[RawItem], since: Instant) -> tuple[StreamItem, ...]:
    """Return the asset's items on record that matter now: those of the window, and those that came in again.

    Older items join them whose sketch says that they may tell a story that came in now.
    """
    ids = [item_id(season, due.asset, one) for one in raw]
    ids += _alike(store, season, due.asset, [one.words for one in raw if one.kind == "news"])
    recent = and_(stream_items.c.kind == "news", stream_items.c.published_at >= iso(since))
    query = select(stream_items).where(
        stream_items.c.season == season,
        stream_items.c.asset == due.asset,
        or_(recent, stream_items.c.id.in_(ids)),
    )
    with store.read() as db:
        return tuple(read_item(row) for row in db.execute(query.order_by(stream_items.c.published_at)))


def _alike(store: Store, season: str, asset: str, texts: Sequence[str]) -> list[str]:
    """Return the published items of any age that share a band of their sketch with one of the texts."""
    keys = sorted({key for text in texts for key in bands(text)})
    found: set[str] = set()
    with store.read() as db:
        for start in range(0, len(keys), 400):
            query = select(stream_bands.c.item).where(
                stream_bands.c.season == season,
                stream_bands.c.asset == asset,
                stream_bands.c.key.in_(keys[start : start + 400]),
            )
            found.update(db.execute(query).scalars())
    return sorted(found)


def write_edition(store: Store, season: str, due: Due, edition: Edition) -> tuple[NewsShown, ...]:
    """Write an edition, or return the one that is there: the first one counts."""
    body = canonical_json(edition.news)
    row = {"season": season, "asset": due.asset, "session": due.session, "decision_time": iso(due.at)}
    try:
        with store.write("stream") as db:
            there = _stored(db, season, due)
            if there is not None:
                return there
            if edition.items:
                db.execute(insert(stream_items), [_row(item) for item in edition.items])
            if fresh := [i for i in edition.items if i.kind == "news" and i.status == "published"]:
                where = {"season": season, "asset": due.asset}
                rows = [{**where, "key": key, "item": item.id} for item in fresh for key in set(bands(item.words))]
                db.execute(insert(stream_bands), rows)
            db.execute(insert(stream_rounds).values(**row, news=body.decode(), sha256=sha256_bytes(body)))
            count = {s: sum(i.status == s for i in edition.items) for s in ("published", "merged", "rejected")}
            told = {"asset": due.asset, "session": due.session, "shown": len(edition.news), **count}
            tell(db, season, "stream", iso(due.at), told)
    except IntegrityError:  # another worker wrote it at the same moment
        there = stored_news(store, season, due)
        if there is None:
            raise
        return there
    return edition.news


def stored_reply(store: Store, question: Question, model: str) -> ModelReply | None:
    """Return the answer a question had before; raises :class:`DataError` when it was another question."""
    where = (stream_calls.c.item == question.item, stream_calls.c.number == question.number)
    with store.read() as db:
        row = db.execute(select(stream_calls).where(*where)).first()
    if row is None:
        return None
    if (row.request_sha256, row.model) != (sha256_of(question.request), model):
        raise DataError(
            f"item {question.item} was summarised with another model or prompt before",
            hint="run the version and the model that started this season's stream",
        )
    return _REPLY.decode(zlib.decompress(row.reply))


def keep_reply(store: Store, question: Question, model: str, reply: ModelReply) -> None:
    """Write an answer down before it is used."""
    body = zlib.compress(msgspec.json.encode(reply), 1)
    row = {"item": question.item, "number": question.number, "model": model}
    try:
        with store.write("summary") as db:
            db.execute(insert(stream_calls).values(**row, request_sha256=sha256_of(question.request), reply=body))
    except IntegrityError:  # another worker asked at the same moment; its answer counts
        return


def put_in_inbox(store: Store, season: str, items: Sequence[RawItem]) -> int:
    """Keep what was fetched; what is there already keeps its first ``fetched_at``. Returns how many are new."""
    rows = {}
    for item in items:
        key = sha256_of((item.kind, item.source, item.id, item.content_sha256))
        known_at = max(parse_iso(item.published_at), parse_iso(item.fetched_at))
        body = msgspec.json.encode(item).decode()
        rows[item.asset, key] = {
            "season": season, "asset": item.asset, "key": key, "known_at": known_at, "body": body
        }  # fmt: skip
    with store.write("inbox") as db:
        mine = stream_inbox.c.key.in_([key for _, key in rows])
        query = select(stream_inbox.c.asset, stream_inbox.c.key).where(stream_inbox.c.season == season, mine)
        there = {(row.asset, row.key) for row in db.execute(query)}
        fresh = [row for place, row in rows.items() if place not in there]
        if fresh:
            db.execute(insert(stream_inbox), fresh)
    return len(fresh)


def inbox(store: Store, season: str, asset: str, since: Instant, at: Instant) -> tuple[RawItem, ...]:
    """Return what was published from ``since`` on and both published and fetched by ``at``.

    Of one source the newest :data:`PER_SOURCE`: every item is compared with every other, so a feed that never ends
    would hold up the round.
    """
    where = (stream_inbox.c.season == season, stream_inbox.c.asset == asset, stream_inbox.c.known_at <= at)
    query = select(stream_inbox.c.body).where(*where).order_by(stream_inbox.c.known_at, stream_inbox.c.key)
    with store.read() as db:
        found = tuple(_RAW.decode(row.body) for row in db.execute(query.where(stream_inbox.c.known_at >= since)))
    count: Counter[str] = Counter()
    newest = []
    for item in reversed(found):
        if parse_iso(item.published_at) >= since and count[item.source] < PER_SOURCE:
            count[item.source] += 1
            newest.append(item)
    return tuple(reversed(newest))


def read_item(row: Any) -> StreamItem:
    """Return a row of ``stream_items``."""
    found = {name: row._mapping[name] for name in StreamItem.__struct_fields__}
    found["checks"] = _CHECKS.decode(found["checks"])
    found["contradicts"] = _IDS.decode(found["contradicts"])
    return StreamItem(**found)


def _row(item: StreamItem) -> dict[str, Any]:
    row = msgspec.structs.asdict(item)
    row["checks"] = msgspec.json.encode(item.checks).decode()
    row["contradicts"] = msgspec.json.encode(item.contradicts).decode()
    return row


def _stored(db: Connection, season: str, due: Due) -> tuple[NewsShown, ...] | None:
    where = (
        stream_rounds.c.season == season,
        stream_rounds.c.asset == due.asset,
        stream_rounds.c.session == due.session,
    )
    body = db.execute(select(stream_rounds.c.news).where(*where)).scalar()
    return None if body is None else _NEWS.decode(body)
