"""Reading what a model wrote. Whatever does not have the asked-for form is a ``schema`` failure with a reason."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from tradeassay.benchmarks.protocol import schema_of
from tradeassay.llm.prompting import answer_object

Action = Literal["increase", "hold", "decrease", "close"]
Amount = Annotated[float, Meta(ge=0)]
LONGEST_REASON = 1_000
_SPACE = re.compile(r"\s+")


class Complaint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing wrong with an answer, as the model is told it."""

    kind: str
    detail: str
    symbol: str | None = None


class Feedback(msgspec.Struct, frozen=True, kw_only=True):
    """Everything wrong with an answer."""

    failures: tuple[Complaint, ...]
    kind: str = "feedback"


class Refused(Exception):
    """An answer that cannot be used; all complaints are of one kind."""

    def __init__(self, *complaints: Complaint) -> None:
        super().__init__("; ".join(map(in_words, complaints)))
        self.complaints = complaints
        self.kind = complaints[0].kind


class Picked(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to the overview. Fields that nobody asked for are not read."""

    analyse: list[str]
    reason: str = ""


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """What is decided about one name. The target may be left out where the action says it all (hold, close)."""

    action: Action
    reasons: list[str]
    confidence: Annotated[float, Meta(ge=0, le=1)]
    target_cash_amount: Amount | None = None
    target_shares: Amount | None = None


class _Decisions(msgspec.Struct, frozen=True, kw_only=True):
    decisions: dict[str, object]


class _DecisionsAsked(msgspec.Struct, frozen=True, kw_only=True):
    decisions: dict[str, Decided]


PICKED_SCHEMA = schema_of(Picked)
DECISIONS_SCHEMA = schema_of(_DecisionsAsked)


def read_picks(text: str, symbols: Collection[str], most: int) -> tuple[str, ...]:
    """Return the names to analyse, each once; raises :class:`Refused`."""
    body = _object(text, "analyse")
    try:
        picked = msgspec.convert(body, Picked)
    except msgspec.ValidationError as error:
        raise Refused(_schema(str(error))) from None
    names = tuple(dict.fromkeys(picked.analyse))
    unknown = [name for name in names if name not in symbols]
    if unknown:
        raise Refused(*(_schema("no such name today", name) for name in unknown[:10]))
    if len(names) > most:
        raise Refused(_schema(f"{len(names)} names; choose {most} at most"))
    return names


def read_decisions(text: str, symbols: Collection[str]) -> dict[str, Decided]:
    """Return the decision about each name that is mentioned; raises :class:`Refused`."""
    body = _object(text, "decisions")
    try:
        raw = msgspec.convert(body, _Decisions).decisions
    except msgspec.ValidationError as error:
        raise Refused(_schema(str(error))) from None
    found: dict[str, Decided] = {}
    wrong: list[Complaint] = []
    for symbol, value in raw.items():
        if symbol not in symbols:
            wrong.append(_schema("no such name today", symbol))
            continue
        try:
            found[symbol] = msgspec.convert(value, Decided)
        except msgspec.ValidationError as error:
            wrong.append(_schema(str(error), symbol))
            continue
        if found[symbol].target_cash_amount is None and found[symbol].action in ("increase", "decrease"):
            wrong.append(_schema(f"{found[symbol].action} needs a target_cash_amount", symbol))
    if wrong:
        raise Refused(*wrong)
    return found


def in_words(complaint: Complaint) -> str:
    """Return a complaint as one line."""
    return complaint.detail if complaint.symbol is None else f"{complaint.symbol}: {complaint.detail}"


def reason_of(decided: Decided) -> str:
    """Return the reasons as one line of bounded length."""
    return _SPACE.sub(" ", "; ".join(decided.reasons)).strip()[:LONGEST_REASON]


def _object(text: str, key: str) -> dict[str, object]:
    body = answer_object(text, key)
    if body is None:
        raise Refused(_schema("the answer is empty" if not text.strip() else "the answer holds no JSON object"))
    return body


def _schema(detail: str, symbol: str | None = None) -> Complaint:
    return Complaint(kind="schema", detail=detail, symbol=symbol)
