"""Publish the news of one round: turn a feed's facts into recorded items and the agents' news.

The result depends only on the input. It never includes anything published after the decision time.
An item is shown as a model's summary, or in its original words. No rule hides an item: only a
word-for-word repeat is merged into the earlier item. If a season names a checker, its verdict is
recorded.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import msgspec

from tradeassay.core.hashing import sha256_bytes
from tradeassay_arena.rounds.feed import AssetFacts, PlannedSession
from tradeassay_arena.rounds.running import Publish
from tradeassay_arena.season import Season
from tradeassay_arena.state.store import Store
from tradeassay_arena.stream.duplicates import CLOSE, repeats, similarity
from tradeassay_arena.stream.items import (
    ItemCheck,
    Kind,
    Language,
    RawItem,
    StreamItem,
    clean,
    content_hash,
    detect,
    sentences,
)
from tradeassay_arena.stream.record import StreamStore
from tradeassay_bench.core.arena import NewsShown
from tradeassay_bench.core.dialogue import AskModel, Given, Message, ModelReply
from tradeassay_bench.core.errors import FutureDataError
from tradeassay_bench.core.time import DAY, iso, parse_iso
from tradeassay_bench.llm import Model, QuestionPlace
from tradeassay_bench.llm.prompting import PromptFolder, answer_object

PROMPTS = PromptFolder("tradeassay_arena.stream.prompts", "v1", ("system", "ask", "again", "check"))
LONGEST, LONGEST_TITLE = 480, 140  # the most characters of a summary and of its title
REPEAT_DAYS = 14
"""The period in which repeats of an item are searched.

The same words a month later are a new event.
"""
_DIGIT = re.compile(r"\d")


def stream_publisher(
    store: Store, model: Model | None = None, *, checker: Model | None = None
) -> Publish:
    """Return the ``publish`` hook of a :class:`~tradeassay_arena.rounds.running.Runner`.

    Without a ``model`` items are shown in their original words. A ``checker`` reads every text, and
    its verdict is recorded. The news of a round is stored, and a repeated call returns the stored
    news.
    """

    async def publish(
        season: Season, due: PlannedSession, facts: AssetFacts
    ) -> tuple[NewsShown, ...]:
        stream = StreamStore(store, season.id)
        if (given := stream.news(due)) is not None:
            return given
        return stream.write(due, *await _Editor(stream, season, due, model, checker).edit(facts))

    return publish


@dataclass(frozen=True, slots=True)
class _Editor:
    """Edits the news of one round."""

    stream: StreamStore
    season: Season
    due: PlannedSession
    model: Model | None
    checker: Model | None

    async def edit(self, facts: AssetFacts) -> tuple[Sequence[StreamItem], tuple[NewsShown, ...]]:
        """Return the new items of the round, and the news for its agents.

        New items are merged, summarised and checked in the order of their publication. Raises
        :class:`FutureDataError` for an item that was published or fetched after the decision time.
        """
        asset, at = self.due.asset, self.due.at
        since = at - self.season.on(self.due.session).news_days * DAY
        raw = (*_from_facts(self.season, self.due, facts), *self.stream.inbox(asset, since, at))
        ids: dict[str, RawItem] = {}
        for one in raw:
            for what, stamp in (("published", one.published_at), ("fetched", one.fetched_at)):
                if parse_iso(stamp) > at:
                    late = f"item '{one.id}' of {one.source} was {what} {stamp}"
                    raise FutureDataError(f"{late}, after the decision time {iso(at)}")
            # An item has the same id in every process.
            named = (self.season.id, one.asset, one.kind, one.source, one.id, content_hash(one))
            id = sha256_bytes("\n".join(named).encode())[:20]
            ids[id] = min(ids.get(id, one), one, key=lambda item: parse_iso(item.published_at))
        known, added = self.stream.known(asset, tuple(ids), since - REPEAT_DAYS * DAY), []
        new = [(id, one) for id, one in ids.items() if id not in known]
        for id, one in sorted(
            new, key=lambda p: (parse_iso(p[1].published_at), p[1].source, p[1].id)
        ):
            known[id] = await self._item(id, one, known)
            added.append(known[id])
        shown = []
        for item in (known[id] for id in ids):
            # A filing from a live source is news. A filing of the feed is a separate part of the
            # packet.
            readable = item.kind == "news" or (item.kind == "filing" and item.url)
            if not readable or item.status != "published":
                continue
            if parse_iso(item.published_at) > at:  # items on record are checked too
                raise FutureDataError(
                    f"item {item.id} was published {item.published_at}, after {iso(at)}"
                )
            told = {name: getattr(item, name) for name in ("id", "published_at", "source")}
            shown.append(NewsShown(**told, title=item.shown_title, text=item.shown_text))
        return added, tuple(shown)

    async def _item(self, id: str, raw: RawItem, known: Mapping[str, StreamItem]) -> StreamItem:
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
            return msgspec.structs.replace(
                new, shown_title=raw.title, shown_text=raw.text, summary_by="as it is"
            )
        oldest = parse_iso(raw.published_at) - REPEAT_DAYS * DAY
        published = [
            item
            for item in known.values()
            if item.kind == "news"
            and item.status == "published"
            and parse_iso(item.published_at) >= oldest
        ]
        published.sort(key=lambda item: (item.published_at, item.id))
        for item in published:
            if repeats(raw, item):
                reason = f"tells the story of {item.source}, {item.published_at}, again"
                return msgspec.structs.replace(
                    new, status="merged", merged_into=item.id, reason=reason
                )
        notes = [
            f"close to {item.source}, {item.published_at}"
            for item in published
            if similarity(raw, item) >= CLOSE
        ]
        made, ask = extract(new), partial(self._ask, id, count())
        if self.model is not None:
            language = self.season.summary.language or new.language
            made = await _summarised(new, self.model, language, ask) or made
        if self.checker is not None:
            check = await _second_opinion(made, self.checker, ask)
            if not check.ok and made.summary_by == "extractive":
                notes.append(f"the checker objects: {check.issues[0]}")
            elif not check.ok:
                notes.append(
                    "shown in its own words, because the checker objects to its summary: "
                    f"{check.issues[0]}"
                )
                made = extract(new)
            made = msgspec.structs.replace(made, checks=(check,))
        return msgspec.structs.replace(made, reason="; ".join(notes))

    async def _ask(
        self, item: str, numbers: count[int], model: Model, request: AskModel
    ) -> ModelReply:
        """Ask a model about an item. Questions are numbered in their order."""
        place = QuestionPlace(
            episode=f"{self.season.id}/{self.due.asset}/stream/{item}",
            step=int(self.due.session.replace("-", "")),
            sample=0,
            index=next(numbers),
        )
        return await self.stream.answer(item, model, request, place)


def _from_facts(season: Season, due: PlannedSession, facts: AssetFacts) -> list[RawItem]:
    """Return the items of a feed at a decision time: its news, its reports, and the price."""
    now, stored = iso(due.at), season.asset(due.asset).dataset
    raw = partial(RawItem, asset=due.asset, fetched_at=now)
    found = []
    for item in facts.news:
        at, url = iso(parse_iso(item.published_at)), facts.urls.get(item.id, "")
        told = {"title": clean(item.title), "text": clean(item.text)}
        found.append(
            raw(id=item.id, kind="news", source=item.source, url=url, published_at=at, **told)
        )
    price = f"{due.asset} closed at {facts.price:g} on {due.session}"
    of_its_own: tuple[tuple[Kind, str, str | None, str | None], ...] = (
        ("filing", "annual report", facts.annual_report, facts.annual_at),
        ("filing", "quarterly report", facts.quarterly_report, facts.quarterly_at),
        ("price", f"close of {due.session}", price, now),
    )
    for kind, title, text, known_at in of_its_own:
        if text is not None:  # a report without a publication time was known by the decision time
            text = text if kind == "price" else clean(text)
            told = {"published_at": known_at or now, "title": title, "text": text}
            found.append(raw(id=title, kind=kind, source=stored, url="", **told))
    return found


# -- what is shown of an item ----------------------------------------------------------------------

Ask = Callable[[Model, AskModel], Awaitable[ModelReply]]


async def _summarised(
    item: StreamItem, model: Model, language: Language, ask: Ask
) -> StreamItem | None:
    """Return an item with a model's summary, or None if the model gives no summary.

    The model is asked once more if its answer has another form or is too long. A model that does
    not answer is not asked again.
    """
    copied = {name: getattr(item, name) for name in ("published_at", "source", "title", "text")}
    payload = {"kind": "stream.summary", "symbol": item.asset, "language": language, **copied}
    body = msgspec.json.encode(payload).decode()
    spoken = {"en": "English", "zh": "Chinese", "other": "the language of the source"}[language]
    messages: tuple[Message, ...] = (
        Message(role="system", text=PROMPTS.fill("system", language=spoken, longest=LONGEST)),
        Message(role="user", text=PROMPTS.fill("ask", payload=body)),
    )
    given = Given(session="", rules="{}", observation=body)
    for attempt in (1, 2):
        reply = await ask(
            model, AskModel(purpose="summary", messages=messages, attempt=attempt, given=given)
        )
        if reply.error is not None:
            return None
        answer = answer_object(reply.text, "summary") or {}
        parts = [answer.get("title"), answer.get("summary")]
        title, text = (
            clean(part) if isinstance(part, str) and part.strip() else None for part in parts
        )
        if title is None or text is None:
            problem = "answer: no JSON object with a title and a summary"
        elif len(text) > LONGEST or len(title) > LONGEST_TITLE:
            problem = (
                f"length: {len(title)} and {len(text)} characters, {LONGEST_TITLE} and "
                f"{LONGEST} allowed"
            )
        else:
            return msgspec.structs.replace(
                item, shown_title=title, shown_text=text, summary_by=model.name
            )
        complaint = PROMPTS.fill("again", problems=problem)
        messages = (
            *messages,
            Message(role="assistant", text=reply.text),
            Message(role="user", text=complaint),
        )
    return None


def extract(item: StreamItem) -> StreamItem:
    """Return an item in its original words.

    As many sentences as fit are used, in order. Sentences with digits are preferred.
    """
    every = sentences(item.text)
    chosen: set[int] = set()
    for place in sorted(
        range(len(every)), key=lambda place: (not _DIGIT.search(every[place]), place)
    ):
        if sum(len(every[i]) + 1 for i in chosen) + len(every[place]) <= LONGEST or not chosen:
            chosen.add(place)
    text = " ".join(every[place] for place in sorted(chosen))[:LONGEST]
    return msgspec.structs.replace(
        item, shown_title=item.title, shown_text=text, summary_by="extractive"
    )


async def _second_opinion(item: StreamItem, checker: Model, ask: Ask) -> ItemCheck:
    """Return another model's verdict on the text that agents would see."""
    payload = {"source": item.words, "text": f"{item.shown_title}\n{item.shown_text}".strip()}
    body = msgspec.json.encode({"kind": "stream.check", **payload}).decode()
    messages = (
        Message(role="system", text=PROMPTS.fill("check")),
        Message(role="user", text=PROMPTS.fill("ask", payload=body)),
    )
    reply = await ask(checker, AskModel(purpose="check", messages=messages, attempt=1))
    answer = (None if reply.error is not None else answer_object(reply.text, "ok")) or {}
    ok = answer.get("ok")
    if not isinstance(ok, bool):
        return ItemCheck(name="model", ok=True, issues=("no verdict",))
    problem = clean(str(answer.get("problem") or "no reason given"))[:LONGEST]
    return ItemCheck(name="model", ok=ok, issues=() if ok else (problem,))
