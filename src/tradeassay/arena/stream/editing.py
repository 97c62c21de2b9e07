"""One round's edition: a feed's as-of facts in, items on record and what agents are shown out.

An edition depends on its input alone, and nothing that came out after the decision time gets in.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from datetime import date

import msgspec

from tradeassay.arena.rounds.feed import AssetFacts, Due
from tradeassay.arena.season import Season
from tradeassay.arena.stream.duplicates import contradiction, same_story
from tradeassay.arena.stream.instructions import guarded
from tradeassay.arena.stream.items import Language, RawItem, StreamItem, clean, detect, item_id
from tradeassay.arena.stream.summary import EXTRACTIVE, Summary, extract, published_day, summarise
from tradeassay.core.arena import NewsShown
from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.core.drive import Ended, advance
from tradeassay.core.errors import FutureDataError
from tradeassay.core.time import Instant, iso, parse_iso


def from_facts(season: Season, due: Due, facts: AssetFacts) -> tuple[RawItem, ...]:
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


AS_IT_IS = "as it is"


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question to a model about one item; ``number`` counts the item's questions from 0."""

    item: str
    number: int
    request: AskModel


class Edition(msgspec.Struct, frozen=True, kw_only=True):
    """What a round adds to the record, and what its agents are shown."""

    items: tuple[StreamItem, ...]
    news: tuple[NewsShown, ...]


class EditingDesk(msgspec.Struct, frozen=True, kw_only=True):
    """How items are edited. ``model`` None extracts; ``language`` None keeps English or Chinese as it comes.

    Opposites are never merged, and instructions inside a source are quoted as such.
    """

    season: str
    model: str | None = None
    language: Language | None = None
    names: tuple[str, ...] = ()


Editing = Generator[Question, ModelReply, Edition]


def edit(desk: EditingDesk, due: Due, raw: Sequence[RawItem], on_record: Sequence[StreamItem]) -> Editing:
    """Edit a round: new items are merged, summarised, checked and flagged, in the order they came out.

    ``on_record`` are the asset's earlier items of the window. Raises :class:`FutureDataError` for anything
    that came out after the decision time.
    """
    refuse_late(raw, due.at)
    known = {item.id: item for item in on_record}
    added: list[StreamItem] = []
    for one in sorted(raw, key=lambda r: (parse_iso(r.published_at), r.source, r.id)):
        id = item_id(desk.season, due.asset, one)
        if id in known:
            continue
        before = [item for item in known.values() if item.kind == "news"]
        item = yield from _one(desk, due, id, one, before)
        known[id] = item
        added.append(item)
    return Edition(items=tuple(added), news=_shown(desk, due, raw, known))


def _one(
    desk: EditingDesk, due: Due, id: str, raw: RawItem, before: Sequence[StreamItem]
) -> Generator[Question, ModelReply, StreamItem]:
    day = published_day(raw.published_at)
    spoken = detect(raw.words)
    new = _record(desk, due, id, raw, spoken)
    if raw.kind != "news":
        return msgspec.structs.replace(new, shown_title=raw.title, shown_text=raw.text, summary_by=AS_IT_IS)
    ordered = sorted(before, key=lambda item: (item.published_at, item.id))
    # Only what was published can be repeated: a story whose first telling was rejected gets another chance.
    published = (item for item in ordered if item.status == "published")
    first = next((i for i in published if same_story(i.words, raw.words, day)), None)
    if first is not None:
        reason = f"tells the story of {first.source}, {first.published_at}, again"
        return msgspec.structs.replace(new, status="merged", merged_into=first.id, reason=reason)
    language = desk.language or spoken
    if language == "other":
        return msgspec.structs.replace(
            new, status="rejected", reason="language: the source is neither English nor Chinese"
        )
    summary = yield from _summary(desk, id, raw, language)
    summary = guarded(summary, extracted=summary.by == EXTRACTIVE)
    done = msgspec.structs.replace(
        new,
        shown_title=summary.title,
        shown_text=summary.text,
        summary_by=summary.by,
        checks=summary.checks,
        status="rejected" if summary.reason else "published",
        reason=summary.reason,
    )
    return done if summary.reason else _flagged(done, ordered, day)


def _summary(
    desk: EditingDesk, id: str, raw: RawItem, language: Language
) -> Generator[Question, ModelReply, Summary]:
    if desk.model is None:
        return extract(raw, language, desk.names)
    asking = summarise(raw, desk.model, language, desk.names)
    number, now = 0, advance(asking)
    while not isinstance(now, Ended):
        reply = yield Question(item=id, number=number, request=now)
        number, now = number + 1, advance(asking, reply)
    return now.result


def _flagged(item: StreamItem, before: Sequence[StreamItem], day: date) -> StreamItem:
    """Name the published items that say otherwise."""
    against = []
    said = []
    for other in before:
        if other.status == "published" and (what := contradiction(item.words, other.words, day)) is not None:
            against.append(other.id)
            said.append(f"{other.source} of {other.published_at} says otherwise of {what}")
    return msgspec.structs.replace(item, contradicts=tuple(against), reason="; ".join(said)) if against else item


def _record(desk: EditingDesk, due: Due, id: str, raw: RawItem, language: Language) -> StreamItem:
    return StreamItem(
        id=id,
        season=desk.season,
        asset=due.asset,
        session=due.session,
        kind=raw.kind,
        raw_id=raw.id,
        source=raw.source,
        url=raw.url,
        published_at=raw.published_at,
        fetched_at=raw.fetched_at,
        content_sha256=raw.content_sha256,
        language=language,
        title=raw.title,
        text=raw.text,
        status="published",
    )


def _shown(
    desk: EditingDesk, due: Due, raw: Sequence[RawItem], known: Mapping[str, StreamItem]
) -> tuple[NewsShown, ...]:
    """Return the published news of the round's window, in the feed's order; a repeat brings nothing back."""
    found: dict[str, NewsShown] = {}
    for one in raw:
        item = known[item_id(desk.season, due.asset, one)]
        # A filing that a live source told of is news; one that the feed has is in the packet by itself.
        told = item.kind == "news" or (item.kind == "filing" and item.url)
        if not told or item.status != "published":
            continue
        if parse_iso(item.published_at) > due.at:  # what is on record is not trusted either
            raise FutureDataError(f"item {item.id} was published {item.published_at}, after {iso(due.at)}")
        flag = f"\n[{item.reason}]" if item.contradicts else ""
        found[item.id] = NewsShown(
            id=item.id,
            published_at=item.published_at,
            source=item.source,
            title=item.shown_title,
            text=item.shown_text + flag,
        )
    return tuple(found.values())
