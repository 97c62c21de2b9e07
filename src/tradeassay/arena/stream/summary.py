"""What is shown of an item: a model's summary, strictly checked, or the item's own neutral sentences."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from datetime import date

import msgspec

from tradeassay.arena.stream.checks import check_summary, neutrality, numbers
from tradeassay.arena.stream.items import ItemCheck, Language, RawItem, clean, sentences
from tradeassay.core.dialogue import AskModel, Given, Message, ModelReply
from tradeassay.core.time import moment, parse_iso
from tradeassay.llm.prompting import PromptFolder, answer_object

EXTRACTIVE = "extractive"
PROMPTS = PromptFolder("tradeassay.arena.stream.prompts", "v1", ("system", "ask", "again"))
ATTEMPTS = 2
LONGEST = 480
"""Characters of a summary."""

_TITLE = 140
_NAMES = {"en": "English", "zh": "Chinese", "other": "the language of the source"}


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """A title and a text with their checks. ``reason`` says why they may not be shown ("" when they may)."""

    title: str
    text: str
    by: str
    checks: tuple[ItemCheck, ...]
    reason: str = ""


Summarising = Generator[AskModel, ModelReply, Summary]


def extract(raw: RawItem, language: Language, known: Sequence[str] = ()) -> Summary:
    """Return an item's own words: its first neutral sentences, those with numbers preferred."""
    kept = [sentence for sentence in sentences(raw.text or raw.title) if not neutrality.issues(sentence)]
    ranked = sorted(range(len(kept)), key=lambda place: (not numbers.find(kept[place]), place))
    chosen: set[int] = set()
    for place in ranked:
        if sum(len(kept[i]) + 1 for i in chosen) + len(kept[place]) <= LONGEST or not chosen:
            chosen.add(place)
    text = " ".join(kept[place] for place in sorted(chosen))[:LONGEST]
    title = raw.title
    if neutrality.issues(title) and text:
        title = _short(text)
    return _judged(raw, title, text if raw.text else "", EXTRACTIVE, language, known)


def summarise(raw: RawItem, model: str, language: Language, known: Sequence[str] = ()) -> Summarising:
    """Ask a model, twice at most; what fails a check the second time is rejected.

    A model that gives no answer at all (an error, not a bad answer) is replaced by :func:`extract`.
    """
    payload = {
        "kind": "stream.summary",
        "symbol": raw.asset,
        "language": language,
        "published_at": raw.published_at,
        "source": raw.source,
        "title": raw.title,
        "text": raw.text,
    }
    body = msgspec.json.encode(payload).decode()
    messages: tuple[Message, ...] = (
        Message(role="system", text=PROMPTS.fill("system", language=_NAMES[language], longest=LONGEST)),
        Message(role="user", text=PROMPTS.fill("ask", payload=body)),
    )
    given = Given(session="", rules="{}", observation=body)
    for attempt in range(1, ATTEMPTS + 1):
        reply = yield AskModel(purpose="summary", messages=messages, attempt=attempt, given=given)
        if reply.error is not None:
            return extract(raw, language, known)
        found = _read(raw, reply.text, model, language, known)
        if not found.reason or attempt == ATTEMPTS:
            return found
        complaint = PROMPTS.fill("again", problems=found.reason)
        messages = (*messages, Message(role="assistant", text=reply.text), Message(role="user", text=complaint))
    raise AssertionError("the loop returns")


def published_day(stamp: str) -> date:
    """Return the calendar day (UTC) of an ISO time stamp."""
    return moment(parse_iso(stamp)).date()


def _read(raw: RawItem, text: str, model: str, language: Language, known: Sequence[str]) -> Summary:
    answer = answer_object(text, "summary")
    title, body = (None, None) if answer is None else (answer.get("title"), answer.get("summary"))
    if not isinstance(title, str) or not isinstance(body, str) or not body.strip() or not title.strip():
        reason = "answer: no JSON object with a title and a summary"
        return Summary(title="", text="", by=model, checks=(), reason=reason)
    title, body = clean(title), clean(body)
    if len(body) > LONGEST or len(title) > _TITLE:
        reason = f"length: {len(title)} and {len(body)} characters, {_TITLE} and {LONGEST} allowed"
        return Summary(title=title, text=body, by=model, checks=(), reason=reason)
    return _judged(raw, title, body, model, language, known)


def _judged(raw: RawItem, title: str, text: str, by: str, language: Language, known: Sequence[str]) -> Summary:
    shown = f"{title}\n{text}" if text else title
    checks = check_summary(shown, raw.words, published_day(raw.published_at), language, (raw.asset, *known))
    wrong = [f"{check.name}: {issue}" for check in checks for issue in check.issues]
    if raw.text and not text:
        wrong.insert(0, "neutrality: no neutral sentence is left")
    return Summary(title=title, text=text, by=by, checks=checks, reason="; ".join(wrong))


def _short(text: str) -> str:
    if len(text) <= _TITLE:
        return text
    return text[: _TITLE - 3].rsplit(" ", 1)[0] + "..."
