"""One round's edition: a feed's as-of facts in, items on record and what agents are shown out.

An edition depends on its input alone, and nothing that came out after the decision time gets in.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import msgspec

from tradeassay.arena.rounds.feed import AssetFacts, Due
from tradeassay.arena.rounds.running import Publish, Published
from tradeassay.arena.season import Season
from tradeassay.arena.state.store import Store
from tradeassay.arena.stream.items import Kind, Language, RawItem, StreamItem, clean, content_hash, detect, item_id
from tradeassay.arena.stream.store import Edition, Question, StreamStore
from tradeassay.arena.stream.stories import REPEAT_DAYS, contradiction, same_story
from tradeassay.arena.stream.summary import Summary, published_day, second_opinion, summarise
from tradeassay.core.arena import NewsShown
from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.core.drive import adrive, drive, relay
from tradeassay.core.errors import FutureDataError, UserError
from tradeassay.core.time import DAY, Instant, iso, parse_iso
from tradeassay.llm import Model, QuestionPlace

AS_IT_IS = "as it is"
Editing = Generator[Question, ModelReply, StreamItem]


def stream_publisher(
    store: Store,
    season: Season,
    model: Model | None = None,
    *,
    checker: Model | None = None,
    language: Language | None = None,
    now: Callable[[], Season] | None = None,
) -> Publish:
    """Return the hook that a :class:`~tradeassay.arena.rounds.running.Runner` publishes through.

    Without a ``model`` items are shown in their own words; a ``checker`` sees them before they are shown.
    ``language`` is what summaries are written in (None: the source's, English or Chinese); ``now`` tells what the
    season has become by its amendments. What a round was given is stored, and given again. Raises
    :class:`UserError` for a language no check covers.
    """
    if language == "other":
        raise UserError("summaries can be checked in English and Chinese only", hint="ask for 'en' or 'zh'")
    desk = _Desk(StreamStore(store, season.id), now or (lambda: season), model, checker, language)
    return desk.publish if model is None and checker is None else desk.publish_with_models


@dataclass(frozen=True, slots=True)
class _Desk:
    """Edits the rounds of one season; ``season`` tells what it has become."""

    shelf: StreamStore
    season: Callable[[], Season]
    model: Model | None
    checker: Model | None
    language: Language | None

    def publish(self, due: Due, facts: AssetFacts) -> Published:
        there = self.shelf.news(due)
        return there if there is not None else self.shelf.write(due, drive(self.edit(due, facts), _unasked))

    async def publish_with_models(self, due: Due, facts: AssetFacts) -> Published:
        async def answer(question: Question) -> ModelReply:
            model = self.checker if question.request.purpose == "check" else self.model
            assert model is not None
            known = self.shelf.reply(question, model.name)
            if known is not None:
                return known
            episode = f"{self.season().id}/{due.asset}/stream/{question.item}"
            step = int(due.session.replace("-", ""))
            place = QuestionPlace(episode=episode, step=step, sample=0, index=question.number)
            return self.shelf.keep_reply(question, model.name, await model.ask(question.request, place))

        there = self.shelf.news(due)
        return there if there is not None else self.shelf.write(due, await adrive(self.edit(due, facts), answer))

    def edit(self, due: Due, facts: AssetFacts) -> Generator[Question, ModelReply, Edition]:
        """Edit a round: new items are merged, summarised, checked and flagged, in the order they came out.

        Raises :class:`FutureDataError` for anything that was published or fetched after the decision time.
        """
        since = due.at - self.season().on(due.session).news_days * DAY
        raw = (*from_facts(self.season(), due, facts), *self.shelf.inbox(due.asset, since, due.at))
        for one in raw:
            for what, stamp in (("published", one.published_at), ("fetched", one.fetched_at)):
                if parse_iso(stamp) > due.at:
                    late = f"item '{one.id}' of {one.source} was {what} {stamp}"
                    raise FutureDataError(f"{late}, after the decision time {iso(due.at)}")
        on_record = self.shelf.known(due.asset, raw, since - REPEAT_DAYS * DAY)
        known, added = {item.id: item for item in on_record}, []
        for one in sorted(raw, key=lambda r: (parse_iso(r.published_at), r.source, r.id)):
            id = item_id(self.season().id, due.asset, one)
            if id not in known:
                # One day more than is shown: a figure that has just left the window can still be contradicted,
                # an older one is of another period.
                known[id] = yield from self._item(due, id, one, known, since - DAY)
                added.append(known[id])
        ids = (item_id(self.season().id, due.asset, one) for one in raw)
        return Edition(items=tuple(added), news=_shown(due, [known[id] for id in ids]))

    def _item(self, due: Due, id: str, raw: RawItem, known: Mapping[str, StreamItem], since: Instant) -> Editing:
        day, spoken = published_day(raw.published_at), detect(raw.words)
        copied: dict[str, Any] = {**msgspec.structs.asdict(raw), "id": id, "raw_id": raw.id}
        new = StreamItem(
            **copied,
            season=self.season().id,
            session=due.session,
            content_sha256=content_hash(raw),
            language=spoken,
            status="published",
        )
        if raw.kind != "news":
            return msgspec.structs.replace(new, shown_title=raw.title, shown_text=raw.text, summary_by=AS_IT_IS)
        # Only what was published can be repeated: a story whose first telling was rejected gets another chance.
        published = [item for item in known.values() if item.kind == "news" and item.status == "published"]
        published.sort(key=lambda item: (item.published_at, item.id))
        oldest = parse_iso(raw.published_at) - REPEAT_DAYS * DAY
        for item in published:
            if parse_iso(item.published_at) >= oldest and same_story(item.words, raw.words, day):
                reason = f"tells the story of {item.source}, {item.published_at}, again"
                return msgspec.structs.replace(new, status="merged", merged_into=item.id, reason=reason)
        language = self.language or spoken
        if language == "other":
            reason = "language: the source is neither English nor Chinese"
            return msgspec.structs.replace(new, status="rejected", reason=reason)
        summary = yield from self._summary(id, raw, language)
        against, said = [], []
        for item in () if summary.reason else published:
            what = contradiction(raw.words, item.words, day) if parse_iso(item.published_at) >= since else None
            if what is not None:
                against.append(item.id)
                said.append(f"{item.source} of {item.published_at} says otherwise of {what}")
        return msgspec.structs.replace(
            new,
            shown_title=summary.title,
            shown_text=summary.text,
            summary_by=summary.by,
            checks=summary.checks,
            status="rejected" if summary.reason else "published",
            reason=summary.reason or "; ".join(said),
            contradicts=tuple(against),
        )

    def _summary(self, id: str, raw: RawItem, language: Language) -> Generator[Question, ModelReply, Summary]:
        numbers = count()

        def about_item(request: AskModel) -> Generator[Question, ModelReply, ModelReply]:
            return (yield Question(item=id, number=next(numbers), request=request))

        model = self.model.name if self.model else None
        names = self.season().asset(raw.asset).names
        made = yield from relay(summarise(raw, model, language, names), about_item)
        if self.checker is None or made.reason:
            return made
        return (yield from relay(second_opinion(raw, made), about_item))


def _unasked(question: Question) -> ModelReply:
    raise AssertionError(f"a desk without a model asks nothing, but it asked about {question.item}")


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


def from_facts(season: Season, due: Due, facts: AssetFacts) -> tuple[RawItem, ...]:
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
    return tuple(found)
