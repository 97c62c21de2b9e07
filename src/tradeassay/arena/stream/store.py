"""The stream's tables: what came in, what became of it, what rounds were given. An edition is written once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, get_args

import msgspec
from sqlalchemy import and_, bindparam, insert, or_, select
from sqlalchemy.exc import IntegrityError

from tradeassay.arena.rounds.feed import Due
from tradeassay.arena.state.rows import packed, unpacked
from tradeassay.arena.state.store import Store, insert_unless, tell
from tradeassay.arena.state.tables import stream_calls, stream_inbox, stream_items, stream_rounds
from tradeassay.arena.stream.items import ItemCheck, Kind, RawItem, Status, StreamItem, content_hash
from tradeassay.core.arena import NewsShown
from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.core.errors import DataError
from tradeassay.core.hashing import canonical_json, sha256_bytes, sha256_of
from tradeassay.core.time import Instant, iso, parse_iso
from tradeassay.llm import Model, QuestionPlace

PER_SOURCE = 100
"""How many items of one source a round looks at."""

_NEWS = msgspec.json.Decoder(tuple[NewsShown, ...])
_CHECKS = msgspec.json.Decoder(tuple[ItemCheck, ...])
_IDS = msgspec.json.Decoder(tuple[str, ...])
_RAW = msgspec.json.Decoder(RawItem)
_REPLY = msgspec.json.Decoder(ModelReply)

_OF: dict[str, Any] = {name: bindparam(name) for name in ("season", "asset")}
_GIVEN = select(stream_rounds.c.news).filter_by(**_OF, session=bindparam("session"))
_RECENT = and_(stream_items.c.kind == "news", stream_items.c.published_at >= bindparam("since"))
_KNOWN = select(stream_items).filter_by(**_OF).order_by(stream_items.c.published_at)
_KNOWN = _KNOWN.where(or_(_RECENT, stream_items.c.id.in_(bindparam("ids", expanding=True))))
_CAME_IN = select(stream_inbox.c.body).filter_by(**_OF)
_CAME_IN = _CAME_IN.where(stream_inbox.c.known_at.between(bindparam("since"), bindparam("at")))
_CAME_IN = _CAME_IN.order_by(stream_inbox.c.known_at, stream_inbox.c.key)
_ADD_ITEM, _ADD_ROUND = insert(stream_items), insert(stream_rounds)


class StreamStore:
    """One season's stream in the database."""

    def __init__(self, store: Store, season: str) -> None:
        self._store, self._season = store, season

    def news(self, due: Due) -> tuple[NewsShown, ...] | None:
        """Return what a round was given before, or None when it was given nothing yet."""
        given = {"season": self._season, "asset": due.asset, "session": due.session}
        body = self._store.scalar(_GIVEN, given)
        return None if body is None else _NEWS.decode(body)

    def known(self, asset: str, ids: Sequence[str], since: Instant) -> dict[str, StreamItem]:
        """Return the asset's items on record that matter now: news from ``since`` on, and what came in again."""
        asked = {"season": self._season, "asset": asset, "since": iso(since), "ids": ids}
        return {row.id: _read_item(row) for row in self._store.rows(_KNOWN, asked)}

    def write(self, due: Due, added: Sequence[StreamItem], news: tuple[NewsShown, ...]) -> tuple[NewsShown, ...]:
        """Write what a round adds to the record and shows, or return what is there: the first one counts."""
        body = canonical_json(news)
        row = {"season": self._season, "asset": due.asset, "session": due.session, "decision_time": iso(due.at)}
        try:
            with self._store.write("stream") as db:
                if added:
                    db.execute(_ADD_ITEM, [_row(item) for item in added])
                db.execute(_ADD_ROUND, {**row, "news": body.decode(), "sha256": sha256_bytes(body)})
                count = {s: sum(item.status == s for item in added) for s in get_args(Status)}
                event = {"asset": due.asset, "session": due.session, "shown": len(news), **count}
                tell(db, self._season, "stream", iso(due.at), event)
        except IntegrityError:  # another worker wrote it at the same moment
            there = self.news(due)
            if there is None:
                raise
            return there
        return news

    async def answer(self, item: str, model: Model, request: AskModel, place: QuestionPlace) -> ModelReply:
        """Ask a model about an item, or return what it answered before; ``place.index`` counts the questions.

        An answer is written down before it is used; of two workers that ask at once the first answer counts.
        """
        row = {"item": item, "number": place.index, "model": model.name, "request_sha256": sha256_of(request)}
        known = self._answered(row)
        if known is not None:
            return known
        reply = await model.ask(request, place)
        try:
            with self._store.write("summary") as db:
                db.execute(insert(stream_calls).values(**row, reply=packed(msgspec.json.encode(reply))))
        except IntegrityError:
            return self._answered(row) or reply
        return reply

    def _answered(self, row: dict[str, Any]) -> ModelReply | None:
        """Return the answer that a question had before; raises :class:`DataError` if it was another question."""
        asked = select(stream_calls).filter_by(item=row["item"], number=row["number"])
        for found in self._store.rows(asked):
            if (found.request_sha256, found.model) != (row["request_sha256"], row["model"]):
                raise DataError(
                    f"item {row['item']} was summarised with another model or prompt before",
                    hint="run the version and the model that started this season's stream",
                )
            return _REPLY.decode(unpacked(found.reply))
        return None

    def put(self, items: Sequence[RawItem]) -> None:
        """Keep what was fetched; what is there already keeps its ``fetched_at``."""
        rows = {}
        for item in items:
            key = sha256_of((item.kind, item.source, item.id, content_hash(item)))
            rows[item.asset, key] = {
                "season": self._season,
                "asset": item.asset,
                "key": key,
                "known_at": max(parse_iso(item.published_at), parse_iso(item.fetched_at)),
                "body": msgspec.json.encode(item).decode(),
            }
        if rows:  # another worker may write the same now; in one order neither waits for the other
            with self._store.write("inbox") as db:
                unless_there = insert_unless(db, stream_inbox).on_conflict_do_nothing()
                db.execute(unless_there, [rows[place] for place in sorted(rows)])

    def inbox(self, asset: str, since: Instant, at: Instant) -> tuple[RawItem, ...]:
        """Return what was published from ``since`` on and both published and fetched by ``at``.

        Of one source the newest :data:`PER_SOURCE`: every item is compared with every other, so a feed that never
        ends would hold up the round.
        """
        asked = {"season": self._season, "asset": asset, "since": since, "at": at}
        found = [_RAW.decode(body) for (body,) in self._store.rows(_CAME_IN, asked)]
        count: Counter[str] = Counter()
        newest = []
        for item in reversed(found):
            if parse_iso(item.published_at) >= since and count[item.source] < PER_SOURCE:
                count[item.source] += 1
                newest.append(item)
        return tuple(reversed(newest))


def _read_item(row: Any) -> StreamItem:
    found = {name: row._mapping[name] for name in StreamItem.__struct_fields__}
    found["checks"] = _CHECKS.decode(found["checks"])
    found["contradicts"] = _IDS.decode(found["contradicts"])
    return StreamItem(**found)


def _row(item: StreamItem) -> dict[str, Any]:
    row = msgspec.structs.asdict(item)
    row["checks"] = msgspec.json.encode(item.checks).decode()
    row["contradicts"] = msgspec.json.encode(item.contradicts).decode()
    return row


def items(
    store: Store, season: str, *, kind: Kind | None = "news", status: Status | None = None, limit: int = 100
) -> tuple[StreamItem, ...]:
    """Return items, newest first; None asks for every kind or status."""
    asked = {name: value for name, value in (("kind", kind), ("status", status)) if value is not None}
    query = select(stream_items).filter_by(season=season, **asked)
    query = query.order_by(stream_items.c.published_at.desc(), stream_items.c.id)
    return tuple(_read_item(row) for row in store.rows(query.limit(limit)))


def tellings(store: Store, season: str, id: str) -> list[StreamItem]:
    """Return an item and those that were merged into it, in the order they came out."""
    mine = (stream_items.c.id == id) | (stream_items.c.merged_into == id)
    query = select(stream_items).where(stream_items.c.season == season, mine)
    return [_read_item(row) for row in store.rows(query.order_by(stream_items.c.published_at))]
