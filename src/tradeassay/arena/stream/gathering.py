"""Connectors of a replay: a feed's as-of facts as raw items, and the wall that keeps later ones out."""

from __future__ import annotations

from collections.abc import Iterable

from tradeassay.arena.rounds.feed import Due, Facts
from tradeassay.arena.season import Season
from tradeassay.arena.stream.items import RawItem
from tradeassay.arena.stream.text import clean
from tradeassay.core.errors import FutureDataError
from tradeassay.core.time import Instant, iso, parse_iso


def from_facts(season: Season, due: Due, facts: Facts) -> tuple[RawItem, ...]:
    """Return what a feed knew at a decision time: its news, its reports, and the price itself.

    A report without a time of its own was known by the decision time, and is stamped with it.
    """
    now = iso(due.at)
    dataset = season.asset(due.asset).dataset
    found = [
        RawItem(
            id=item.id,
            kind="news",
            asset=due.asset,
            source=item.source,
            url=facts.urls.get(item.id, ""),
            published_at=iso(parse_iso(item.published_at)),
            fetched_at=now,
            title=clean(item.title),
            text=clean(item.text),
        )
        for item in facts.news
    ]
    reports = (
        ("annual report", facts.annual_report, facts.annual_at),
        ("quarterly report", facts.quarterly_report, facts.quarterly_at),
    )
    found += [
        _told("filing", title, due.asset, dataset, stamp or now, now, clean(text))
        for title, text, stamp in reports
        if text is not None
    ]
    price = f"{due.asset} closed at {facts.price:g} on {due.session}"
    found.append(_told("price", f"close of {due.session}", due.asset, dataset, now, now, price))
    return tuple(found)


def refuse_late(items: Iterable[RawItem], at: Instant) -> None:
    """Raise :class:`FutureDataError` for what was published or fetched after ``at``. Unreadable times raise."""
    for item in items:
        for what, stamp in (("published", item.published_at), ("fetched", item.fetched_at)):
            if parse_iso(stamp) > at:
                raise FutureDataError(
                    f"item '{item.id}' of {item.source} was {what} {stamp}, after the decision time {iso(at)}"
                )


def _told(kind: str, title: str, asset: str, dataset: str, published: str, now: str, text: str) -> RawItem:
    return RawItem(
        id=title,
        kind="filing" if kind == "filing" else "price",
        asset=asset,
        source=dataset,
        url="",
        published_at=published,
        fetched_at=now,
        title=title,
        text=text,
    )
