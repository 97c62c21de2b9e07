"""The recorded stream: fetched items, published items, the news of rounds, and verdicts of experts.

The news of a round is written once. Each expert confirms or rejects items independently.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

import msgspec
from sqlalchemy import and_, bindparam, delete, func, insert, or_, select

from tradeassay.core.errors import DataError, UserError
from tradeassay.core.hashing import canonical_json, sha256_bytes, sha256_of
from tradeassay.core.measure import Measure
from tradeassay.metrics.agreement import krippendorff_alpha
from tradeassay.metrics.intervals import rate_measure
from tradeassay_arena.rounds.feed import PlannedSession
from tradeassay_arena.state.rows import packed, read_row, unpacked
from tradeassay_arena.state.store import Store, add_event, add_unless_there, insert_unless
from tradeassay_arena.state.tables import (
    stream_calls,
    stream_inbox,
    stream_items,
    stream_reviews,
    stream_rounds,
)
from tradeassay_arena.stream.items import ItemCheck, Kind, RawItem, Status, StreamItem, content_hash
from tradeassay_bench.core.arena import NewsShown
from tradeassay_bench.core.dialogue import AskModel, ModelReply
from tradeassay_bench.core.time import Instant, WallClock, iso, parse_iso
from tradeassay_bench.llm import Model, QuestionPlace

# Statements are built once, because building one takes longer than running it.
_OF: dict[str, Any] = {name: bindparam(name) for name in ("season", "asset")}
_GIVEN = select(stream_rounds.c.news).filter_by(**_OF, session=bindparam("session"))
_RECENT = and_(stream_items.c.kind == "news", stream_items.c.published_at >= bindparam("since"))
_KNOWN = select(stream_items).filter_by(**_OF).order_by(stream_items.c.published_at)
_KNOWN = _KNOWN.where(or_(_RECENT, stream_items.c.id.in_(bindparam("ids", expanding=True))))
_CAME_IN = select(stream_inbox.c.body).filter_by(**_OF)
_CAME_IN = _CAME_IN.where(stream_inbox.c.known_at.between(bindparam("since"), bindparam("at")))
_CAME_IN = _CAME_IN.order_by(stream_inbox.c.known_at, stream_inbox.c.key)
_RAW = msgspec.json.Decoder(RawItem)


class StreamStore:
    """One season's stream in the database."""

    def __init__(self, store: Store, season: str) -> None:
        self._store, self._season = store, season

    def news(self, due: PlannedSession) -> tuple[NewsShown, ...] | None:
        """Return the stored news of a round, or None."""
        given = {"season": self._season, "asset": due.asset, "session": due.session}
        body = self._store.scalar(_GIVEN, given)
        return None if body is None else msgspec.json.decode(body, type=tuple[NewsShown, ...])

    def known(self, asset: str, ids: Sequence[str], since: Instant) -> dict[str, StreamItem]:
        """Return the asset's recorded items that are needed now: news since ``since``, and the
        given ids.
        """
        asked = {"season": self._season, "asset": asset, "since": iso(since), "ids": ids}
        return {row.id: _read_item(row) for row in self._store.rows(_KNOWN, asked)}

    def write(
        self, due: PlannedSession, added: Sequence[StreamItem], news: tuple[NewsShown, ...]
    ) -> tuple[NewsShown, ...]:
        """Store the new items and the news of a round, or return the stored news. The first writer
        wins.
        """
        body = canonical_json(news)
        row = {
            "season": self._season,
            "asset": due.asset,
            "session": due.session,
            "decision_time": iso(due.at),
        }
        items = []
        for item in added:
            checks = msgspec.json.encode(item.checks).decode()
            items.append({**msgspec.structs.asdict(item), "checks": checks})
        with self._store.write("stream") as db:
            # The round's row first: the worker that writes it also writes its items.
            first = add_unless_there(
                db, stream_rounds, {**row, "news": body.decode(), "sha256": sha256_bytes(body)}
            )
            if first:
                if items:
                    db.execute(insert(stream_items), items)
                count = {s: sum(item.status == s for item in added) for s in get_args(Status)}
                event = {"asset": due.asset, "session": due.session, "shown": len(news), **count}
                add_event(db, self._season, "stream", iso(due.at), event)
        if not first:  # another worker stored it at the same moment
            there = self.news(due)
            assert there is not None  # rows of the record are never deleted
            return there
        return news

    async def answer(
        self, item: str, model: Model, request: AskModel, place: QuestionPlace
    ) -> ModelReply:
        """Ask a model about an item, or return its recorded answer. ``place.index`` counts the
        questions.

        An answer is written before it is used. If two workers ask at the same time, the first
        answer is used. Raises :class:`DataError` if a different question is on record.
        """
        digest = sha256_of(request)

        def answered() -> ModelReply | None:
            for found in self._store.rows(
                select(stream_calls).filter_by(item=item, number=place.index)
            ):
                if (found.request_sha256, found.model) != (digest, model.name):
                    raise DataError(
                        f"item {item} was summarised with another model or prompt before",
                        hint="run the version and the model that started this season's stream",
                    )
                return msgspec.json.decode(unpacked(found.reply), type=ModelReply)
            return None

        if (known := answered()) is not None:
            return known
        reply = await model.ask(request, place)
        row = {"item": item, "number": place.index, "model": model.name, "request_sha256": digest}
        with self._store.write("summary") as db:
            first = add_unless_there(
                db, stream_calls, {**row, "reply": packed(msgspec.json.encode(reply))}
            )
        return reply if first else answered() or reply

    def put(self, items: Sequence[RawItem]) -> None:
        """Store fetched items. A recorded item keeps its ``fetched_at``."""
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
        if rows:  # sorted, so that two workers that write the same rows never wait for each other
            with self._store.write("inbox") as db:
                unless_there = insert_unless(db, stream_inbox).on_conflict_do_nothing()
                db.execute(unless_there, [rows[place] for place in sorted(rows)])

    def inbox(self, asset: str, since: Instant, at: Instant) -> tuple[RawItem, ...]:
        """Return items published since ``since``, and both published and fetched by ``at``.

        At most the newest 100 of one source are returned. Items are compared pairwise, so an
        endless feed would delay the round.
        """
        asked = {"season": self._season, "asset": asset, "since": since, "at": at}
        found = [_RAW.decode(body) for (body,) in self._store.rows(_CAME_IN, asked)]
        count: Counter[str] = Counter()
        newest = []
        for item in reversed(found):
            if parse_iso(item.published_at) >= since and count[item.source] < 100:
                count[item.source] += 1
                newest.append(item)
        return tuple(reversed(newest))


def _read_item(row: Any) -> StreamItem:
    found = {name: row._mapping[name] for name in StreamItem.__struct_fields__}
    found["checks"] = msgspec.json.decode(found["checks"], type=tuple[ItemCheck, ...])
    return StreamItem(**found)


def items(
    store: Store,
    season: str,
    *,
    kind: Kind | None = "news",
    status: Status | None = None,
    limit: int = 100,
) -> tuple[StreamItem, ...]:
    """Return items, newest first. None selects every kind or status."""
    asked = {"season": season, "kind": kind, "status": status}
    query = select(stream_items).filter_by(
        **{name: value for name, value in asked.items() if value is not None}
    )
    query = query.order_by(stream_items.c.published_at.desc(), stream_items.c.id)
    return tuple(_read_item(row) for row in store.rows(query.limit(limit)))


# -- experts ---------------------------------------------------------------------------------------

Verdict = Literal["confirm", "reject"]


class ItemReview(msgspec.Struct, frozen=True, kw_only=True):
    """An expert's verdict on whether an item's text is a true and fair account of the source."""

    item: str
    expert: str
    verdict: Verdict
    note: str
    at: str


class ItemPage(msgspec.Struct, frozen=True, kw_only=True):
    """An item with its reviews and the sources of its story (its own source first)."""

    item: StreamItem
    provenances: tuple[dict[str, str], ...]
    reviews: tuple[ItemReview, ...]


def confirm(
    store: Store, item: str, expert: str, verdict: Verdict, *, note: str = "", at: str | None = None
) -> ItemReview:
    """Store an expert's verdict. A second verdict of the same expert replaces the first.

    ``at`` is an ISO time (None: now). Raises :class:`UserError` for an unknown item, verdict or
    invalid name.
    """
    if verdict not in get_args(Verdict):
        raise UserError(f"'{verdict}' is not a verdict", hint="say 'confirm' or 'reject'")
    if not re.fullmatch(r"\w[\w .@-]{0,63}", expert):
        raise UserError(
            "an expert needs a name",
            hint="use up to 64 letters, digits, spaces, dots, @ and dashes",
        )
    now = at or iso(WallClock().now())
    review = ItemReview(item=item, expert=expert, verdict=verdict, note=note[:2000], at=now)
    with store.write("review") as db:
        season = db.execute(select(stream_items.c.season).filter_by(id=item)).scalar()
        if season is None:
            raise UserError(
                f"there is no item '{item[:40]}'", hint="take an id from the stream's page"
            )
        db.execute(delete(stream_reviews).filter_by(item=item, expert=expert))
        db.execute(insert(stream_reviews).values(**msgspec.structs.asdict(review)))
        add_event(
            db, season, "review", review.at, {"item": item, "expert": expert, "verdict": verdict}
        )
    return review


def _reviews(store: Store, season: str, item: str | None = None) -> tuple[ItemReview, ...]:
    """Return the verdicts of a season, or of one item, in order of items and experts."""
    own = stream_reviews.c
    query = select(stream_reviews).join(stream_items, stream_items.c.id == own.item)
    query = query.where(stream_items.c.season == season).order_by(own.item, own.expert)
    if item is not None:
        query = query.where(own.item == item)
    return tuple(read_row(ItemReview, row) for row in store.rows(query))


def item_page(store: Store, season: str, id: str) -> ItemPage:
    """Return an item with all its records. Raises :class:`UserError` for an unknown id."""
    own = stream_items.c
    query = select(stream_items).where(
        own.season == season, (own.id == id) | (own.merged_into == id)
    )
    query = query.order_by(own.id != id, own.published_at)  # the item itself first
    found = [_read_item(row) for row in store.rows(query)]
    if not found or found[0].id != id:
        raise UserError(
            f"season '{season}' has no item '{id[:40]}'", hint="take an id from the stream's page"
        )
    copied = ("source", "url", "published_at", "fetched_at", "content_sha256")
    places = ({"item": one.id, **{name: getattr(one, name) for name in copied}} for one in found)
    return ItemPage(item=found[0], provenances=tuple(places), reviews=_reviews(store, season, id))


# -- the stream in figures -------------------------------------------------------------------------


class StreamQuality(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of a season's stream. Shares are of news items and have Wilson intervals.

    ``kinds`` counts items by kind, ``by`` counts published news by summariser, ``sources`` counts
    the items of each source by status. ``confirmed`` is the share of experts' verdicts that
    confirm, ``agreement`` is Krippendorff's alpha.
    """

    season: str
    news: int
    published: Measure
    merged: Measure
    kinds: dict[str, int]
    languages: dict[str, int]
    by: dict[str, int]
    sources: tuple[dict[str, Any], ...]
    reviewed: int
    experts: int
    confirmed: Measure
    agreement: Measure


def quality(store: Store, season: str) -> StreamQuality:
    """Return the figures of a season's stream."""
    own, found = stream_items.c, _reviews(store, season)
    picked = (own.source, own.status, own.language, own.summary_by)
    news = {"season": season, "kind": "news"}
    rows = store.rows(select(*picked, func.count().label("n")).filter_by(**news).group_by(*picked))
    kinds = store.rows(select(own.kind, func.count()).filter_by(season=season).group_by(own.kind))
    total = sum(row.n for row in rows)
    count: Counter[tuple[str, str]] = Counter()
    for row in rows:
        count[row.source, row.status] += row.n
    sources = sorted({source for source, _ in count})
    shares = {
        name: rate_measure(
            sum(count[source, name] for source in sources), total, nothing="no news item came in"
        )
        for name in get_args(Status)
    }
    verdicts = [review.verdict for review in found]
    rated: dict[str, dict[str, str]] = defaultdict(dict)
    for review in found:
        rated[review.item][review.expert] = review.verdict
    return StreamQuality(
        season=season,
        news=total,
        **shares,
        kinds=dict(sorted((name, int(n)) for name, n in kinds)),
        languages=_sums((row.language, row.n) for row in rows),
        by=_sums((row.summary_by, row.n) for row in rows if row.status == "published"),
        sources=tuple(
            {"source": one, **{name: count[one, name] for name in get_args(Status)}}
            for one in sources
        ),
        reviewed=len(rated),
        experts=len({review.expert for review in found}),
        confirmed=rate_measure(
            verdicts.count("confirm"), len(verdicts), nothing="no expert has judged an item"
        ),
        agreement=krippendorff_alpha([rated[item] for item in sorted(rated)], "nominal", draws=500),
    )


def _sums(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Add up counts by name."""
    counts: Counter[str] = Counter()
    for name, n in pairs:
        counts[name] += n
    return dict(sorted(counts.items()))
