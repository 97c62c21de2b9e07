"""One round's edition: a feed's as-of facts in, items on record and what agents are shown out.

An edition depends on its input alone, and nothing that came out after the decision time gets in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import msgspec

from tradeassay.arena.rounds.feed import AssetFacts, Due
from tradeassay.arena.rounds.running import Publish
from tradeassay.arena.season import Season
from tradeassay.arena.state.store import Store
from tradeassay.arena.stream.items import Kind, RawItem, StreamItem, clean, content_hash, detect, item_id
from tradeassay.arena.stream.store import StreamStore
from tradeassay.arena.stream.stories import REPEAT_DAYS, contradiction, same_story
from tradeassay.arena.stream.summary import Ask, published_day, second_opinion, summarise
from tradeassay.core.arena import NewsShown
from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.core.errors import FutureDataError
from tradeassay.core.time import DAY, Instant, iso, parse_iso
from tradeassay.llm import Model, QuestionPlace

AS_IT_IS = "as it is"


def stream_publisher(store: Store, model: Model | None = None, *, checker: Model | None = None) -> Publish:
    """Return the hook that a :class:`~tradeassay.arena.rounds.running.Runner` publishes through.

    Without a ``model`` items are shown in their own words; a ``checker`` sees them before they are shown. What a
    round was given is stored, and given again.
    """

    async def publish(season: Season, due: Due, facts: AssetFacts) -> tuple[NewsShown, ...]:
        shelf = StreamStore(store, season.id)
        given = shelf.news(due)
        if given is None:
            desk = _Desk(shelf, season, due, model, checker)
            given = shelf.write(due, *await desk.edit(facts))
        return given

    return publish


@dataclass(frozen=True, slots=True)
class _Desk:
    """Edits one round."""

    shelf: StreamStore
    season: Season
    due: Due
    model: Model | None
    checker: Model | None

    async def edit(self, facts: AssetFacts) -> tuple[Sequence[StreamItem], tuple[NewsShown, ...]]:
        """Return what the round adds to the record, and what its agents are shown. New items are merged,
        summarised, checked and flagged, in the order they came out.

        Raises :class:`FutureDataError` for anything that was published or fetched after the decision time.
        """
        asset, at = self.due.asset, self.due.at
        since = at - self.season.on(self.due.session).news_days * DAY
        raw = (*_from_facts(self.season, self.due, facts), *self.shelf.inbox(asset, since, at))
        for one in raw:
            for what, stamp in (("published", one.published_at), ("fetched", one.fetched_at)):
                if parse_iso(stamp) > at:
                    late = f"item '{one.id}' of {one.source} was {what} {stamp}"
                    raise FutureDataError(f"{late}, after the decision time {iso(at)}")
        ids = [item_id(self.season.id, one) for one in raw]
        known = self.shelf.known(asset, ids, since - REPEAT_DAYS * DAY)
        added = []
        for one in sorted(raw, key=lambda one: (parse_iso(one.published_at), one.source, one.id)):
            id = item_id(self.season.id, one)
            if id not in known:
                # One day more than is shown: a figure that has just left the window can still be contradicted,
                # an older one is of another period.
                known[id] = await self._item(id, one, known, since - DAY)
                added.append(known[id])
        return added, _shown(self.due, [known[id] for id in ids])

    async def _item(self, id: str, raw: RawItem, known: Mapping[str, StreamItem], since: Instant) -> StreamItem:
        copied: dict[str, Any] = {**msgspec.structs.asdict(raw), "id": id, "raw_id": raw.id}
        new = StreamItem(
            **copied,
            season=self.season.id,
            session=self.due.session,
            content_sha256=content_hash(raw),
            language=detect(raw.words),
            status="published",
        )
        if raw.kind != "news":
            return msgspec.structs.replace(new, shown_title=raw.title, shown_text=raw.text, summary_by=AS_IT_IS)
        # Only what was published can be repeated: a story whose first telling was rejected gets another chance.
        published = [item for item in known.values() if item.kind == "news" and item.status == "published"]
        published.sort(key=lambda item: (item.published_at, item.id))
        day, oldest = published_day(raw.published_at), parse_iso(raw.published_at) - REPEAT_DAYS * DAY
        for item in published:
            if parse_iso(item.published_at) >= oldest and same_story(item.words, raw.words, day):
                reason = f"tells the story of {item.source}, {item.published_at}, again"
                return msgspec.structs.replace(new, status="merged", merged_into=item.id, reason=reason)
        language = self.season.summary.language or new.language
        if language == "other":
            reason = "language: the source is neither English nor Chinese"
            return msgspec.structs.replace(new, status="rejected", reason=reason)
        ask = self._asking_about(id)
        made = await summarise(new, self.model, language, self.season.asset(raw.asset).names, ask)
        if self.checker is not None and made.status == "published":
            made = await second_opinion(made, self.checker, ask)
        if made.status == "rejected":
            return made
        against, said = [], []
        for item in published:
            what = contradiction(raw.words, item.words, day) if parse_iso(item.published_at) >= since else None
            if what is not None:
                against.append(item.id)
                said.append(f"{item.source} of {item.published_at} says otherwise of {what}")
        return msgspec.structs.replace(made, reason="; ".join(said), contradicts=tuple(against))

    def _asking_about(self, item: str) -> Ask:
        """Return who asks models about an item, and counts its questions."""
        numbers = count()

        async def ask(model: Model, request: AskModel) -> ModelReply:
            place = QuestionPlace(
                episode=f"{self.season.id}/{self.due.asset}/stream/{item}",
                step=int(self.due.session.replace("-", "")),
                sample=0,
                index=next(numbers),
            )
            return await self.shelf.answer(item, model, request, place)

        return ask


def _shown(due: Due, given: Sequence[StreamItem]) -> tuple[NewsShown, ...]:
    """Return the published news of the round's window, in the feed's order; a repeat brings nothing back."""
    found: dict[str, NewsShown] = {}
    for item in given:
        # A filing that a live source listed is news; one that the feed has is in the packet by itself.
        readable = item.kind == "news" or (item.kind == "filing" and item.url)
        if not readable or item.status != "published":
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


def _from_facts(season: Season, due: Due, facts: AssetFacts) -> list[RawItem]:
    """Return what a feed knew at a decision time: its news, its reports, and the price itself.

    A report without a time of its own was known by the decision time, and is stamped with it.
    """
    now = iso(due.at)
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
    price = f"{due.asset} closed at {facts.price:g} on {due.session}"
    others: tuple[tuple[Kind, str, str | None, str | None], ...] = (
        ("filing", "annual report", facts.annual_report, facts.annual_at),
        ("filing", "quarterly report", facts.quarterly_report, facts.quarterly_at),
        ("price", f"close of {due.session}", price, now),
    )
    found += [
        RawItem(
            id=title,
            kind=kind,
            asset=due.asset,
            source=season.asset(due.asset).dataset,
            url="",
            published_at=stamp or now,
            fetched_at=now,
            title=title,
            text=text if kind == "price" else clean(text),
        )
        for kind, title, text, stamp in others
        if text is not None
    ]
    return found
