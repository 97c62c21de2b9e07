"""From an episode's journal and its recorded dialogue to what a person can read, session by session."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tradeassay.core.dialogue import Message
from tradeassay.core.events import StepRecord
from tradeassay.report.model_data import CallNote, ModelDecision, OrderNote, Turn
from tradeassay.report.order_fates import Fates
from tradeassay.report.order_words import order_words
from tradeassay.runs import DialogueLine

MOST_CHARACTERS = 6_000
"""Of one text. A page holds many; the whole of it stays in the run's folder."""
MOST_ORDERS = 40


def model_decisions(
    records: Sequence[StepRecord], dialogue: Iterable[DialogueLine], most: int
) -> tuple[tuple[ModelDecision, ...], int]:
    """Return the latest ``most`` sessions, newest first, and how many were left out."""
    shown = records[-most:] if most else records[:0]
    first = shown[0].step if shown else 0
    by_step: dict[int, list[DialogueLine]] = {}
    for line in dialogue:
        if line.step >= first:
            by_step.setdefault(line.step, []).append(line)
    fates = Fates(records, first)
    made = [_decision(record, by_step.get(record.step, []), fates) for record in reversed(shown)]
    return tuple(made), len(records) - len(shown)


def _decision(record: StepRecord, lines: Sequence[DialogueLine], fates: Fates) -> ModelDecision:
    decision = record.decision
    usages = [line.reply.usage for line in lines]
    priced = [usage.usd for usage in usages if usage.usd is not None]
    return ModelDecision(
        session=record.session,
        reason=clipped(decision.reason),
        failed=decision.status == "failed",
        orders=_orders(record, fates),
        problems=tuple(clipped(f"{failure.kind}: {failure.detail}") for failure in decision.failures),
        turns=turns(lines),
        attempts=lines[-1].attempt if lines else 0,
        tokens=sum(usage.input_tokens + usage.output_tokens for usage in usages),
        usd=sum(priced) if len(priced) == len(usages) else None,
    )


def _orders(record: StepRecord, fates: Fates) -> tuple[OrderNote, ...]:
    notes = []
    for place, order in enumerate(record.decision.orders[:MOST_ORDERS]):
        tone, fate = fates.of(record.step, place)
        notes.append(
            OrderNote(
                text=order_words(order),
                tone=tone,
                fate=fate,
                confidence=order.confidence,
                reason=clipped(order.reason),
            )
        )
    more = len(record.decision.orders) - MOST_ORDERS
    if more > 0:
        notes.append(OrderNote(text=f"and {more} more", tone="nothing", fate="not shown"))
    return tuple(notes)


def turns(lines: Sequence[DialogueLine]) -> tuple[Turn, ...]:
    """Return one session's questions and answers; results stand with the calls that asked for them."""
    results = _results(lines)
    said: set[str] = set()
    made = []
    for place, line in enumerate(lines):
        reply = line.reply
        made.append(
            Turn(
                purpose=line.purpose,
                attempt=line.attempt,
                asked=tuple(
                    (message.role, clipped(message.text)) for message in line.messages if _is_new(message, said)
                ),
                said=clipped(reply.text),
                calls=tuple(
                    CallNote(
                        name=clipped(call.name),
                        arguments=clipped(call.arguments),
                        result=None if (told := results.get((place, call.id))) is None else clipped(told),
                        found_in=call.found_in,
                    )
                    for call in reply.calls
                ),
                error=None if reply.error is None else f"{reply.error_kind or 'error'}: {clipped(reply.error)}",
            )
        )
        said.add(reply.text)
    return tuple(made)


def _is_new(message: Message, said: set[str]) -> bool:
    """Tell whether a message is news: an echo of an answer, and the result of a call, stand elsewhere."""
    if message.role == "assistant":
        return bool(message.text) and message.text not in said
    return message.role != "tool"


def _results(lines: Sequence[DialogueLine]) -> dict[tuple[int, str], str]:
    """Return what every call was told, by the place of its answer and its id. Ids may come again."""
    found: dict[tuple[int, str], str] = {}
    asked: dict[str, list[int]] = {}
    for place, line in enumerate(lines):
        for message in line.messages:
            if message.role == "tool" and message.call_id is not None and asked.get(message.call_id):
                found[asked[message.call_id].pop(0), message.call_id] = message.text
        for call in line.reply.calls:
            asked.setdefault(call.id, []).append(place)
    return found


def clipped(text: str, most: int = MOST_CHARACTERS) -> str:
    """Return a text, cut with a note of what is missing when it is very long."""
    return text if len(text) <= most else f"{text[:most]} … [{len(text) - most:,} characters more]"
