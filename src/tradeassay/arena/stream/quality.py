"""The stream's own figures: what came in, what was held back and why, what experts say of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec
from sqlalchemy import func, select

from tradeassay.arena.state.store import Store
from tradeassay.arena.state.stream_tables import stream_items
from tradeassay.arena.stream.items import CHECKS
from tradeassay.arena.stream.measuring import CheckQuality, measure_checks
from tradeassay.arena.stream.review import Review, expert_agreement, reviews
from tradeassay.core.measure import Measure
from tradeassay.metrics.rates import rate_measure

_NO_NEWS = "no news item came in"
_NO_REVIEW = "no expert has judged an item"


class SourceQuality(msgspec.Struct, frozen=True, kw_only=True):
    """One source's items by what became of them, and how many contradict another item."""

    source: str
    published: int
    merged: int
    rejected: int
    contradicting: int


class StreamQuality(msgspec.Struct, frozen=True, kw_only=True):
    """A season's stream in figures. Shares are of news items and have Wilson intervals.

    ``rejections`` counts rejected items by the check that failed first; ``kinds`` all items by kind;
    ``by`` the published news by who summarised them. ``confirmed`` is the share of experts' verdicts on published
    items that confirm, ``rightly_rejected`` the share of verdicts on rejected items that agree with the rejection.
    ``agreement`` is Krippendorff's alpha; ``checks`` are measured on the labelled set, not on this season.
    """

    season: str
    news: int
    published: Measure
    merged: Measure
    rejected: Measure
    contradicting: Measure
    kinds: dict[str, int]
    languages: dict[str, int]
    by: dict[str, int]
    rejections: dict[str, int]
    sources: tuple[SourceQuality, ...]
    reviewed: int
    experts: int
    confirmed: Measure
    rightly_rejected: Measure
    agreement: Measure
    checks: tuple[CheckQuality, ...]


def quality(store: Store, season: str) -> StreamQuality:
    """Return the figures of a season's stream."""
    columns = ("source", "status", "language", "summary_by", "contradicts")
    picked = [stream_items.c[name] for name in columns]
    news = (stream_items.c.season == season, stream_items.c.kind == "news")
    refused = select(stream_items.c.reason).where(*news, stream_items.c.status == "rejected")
    kinds = select(stream_items.c.kind, func.count()).where(stream_items.c.season == season)
    with store.read() as db:
        rows = db.execute(select(*picked, func.count().label("n")).where(*news).group_by(*picked)).all()
        reasons = [row.reason for row in db.execute(refused)]
        by_kind = {row[0]: int(row[1]) for row in db.execute(kinds.group_by(stream_items.c.kind))}
    found = reviews(store, season)
    total = sum(row.n for row in rows)
    status = _count((row.status, row.n) for row in rows)
    against = sum(row.n for row in rows if row.contradicts != "[]")
    confirmed, right = _verdicts(store, season, found)
    return StreamQuality(
        season=season,
        news=total,
        published=rate_measure(status.get("published", 0), total, nothing=_NO_NEWS),
        merged=rate_measure(status.get("merged", 0), total, nothing=_NO_NEWS),
        rejected=rate_measure(status.get("rejected", 0), total, nothing=_NO_NEWS),
        contradicting=rate_measure(against, total, nothing=_NO_NEWS),
        kinds=dict(sorted(by_kind.items())),
        languages=_count((row.language, row.n) for row in rows),
        by=_count((row.summary_by, row.n) for row in rows if row.status == "published"),
        rejections=_count((reason.partition(":")[0], 1) for reason in reasons),
        sources=_sources((row.source, row.status, row.contradicts, row.n) for row in rows),
        reviewed=len({review.item for review in found}),
        experts=len({review.expert for review in found}),
        confirmed=confirmed,
        rightly_rejected=right,
        agreement=expert_agreement(found),
        checks=measure_checks(),
    )


def _verdicts(store: Store, season: str, found: tuple[Review, ...]) -> tuple[Measure, Measure]:
    status: Mapping[str, str] = {}
    if found:
        mine = stream_items.c.id.in_(sorted({review.item for review in found}))
        with store.read() as db:
            query = select(stream_items.c.id, stream_items.c.status).where(stream_items.c.season == season, mine)
            status = {row.id: row.status for row in db.execute(query)}
    shown = [review.verdict for review in found if status[review.item] == "published"]
    held = [review.verdict for review in found if status[review.item] == "rejected"]
    return (
        rate_measure(shown.count("confirm"), len(shown), nothing=_NO_REVIEW),
        rate_measure(held.count("reject"), len(held), nothing="no expert has judged a rejected item"),
    )


def _sources(rows: Iterable[tuple[str, str, str, int]]) -> tuple[SourceQuality, ...]:
    counts: Counter[tuple[str, str]] = Counter()
    for source, status, contradicts, n in rows:
        counts[source, status] += n
        counts[source, "against"] += n if contradicts != "[]" else 0
    return tuple(
        SourceQuality(
            source=source,
            published=counts[source, "published"],
            merged=counts[source, "merged"],
            rejected=counts[source, "rejected"],
            contradicting=counts[source, "against"],
        )
        for source in sorted({source for source, _ in counts})
    )


def _count(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for name, n in pairs:
        counts[name] += n
    order = {name: place for place, name in enumerate(CHECKS)}
    return dict(sorted(counts.items(), key=lambda pair: (order.get(pair[0], 99), pair[0])))  # type: ignore[call-overload]  # any text
