"""Results that carry a later time stamp than the clock fail closed: they are withheld, and counted.

A tool that answers with tomorrow's bar need not be understood to be stopped; its own dates give it away. Dates
that may honestly lie ahead (an announced ex-date, an expiry) are let through by the name of their field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import msgspec

from tradeassay.core.agent import Observation
from tradeassay.core.dialogue import AskModel, Message
from tradeassay.core.time import instant
from tradeassay.llm import fenced_blocks, parse_object

AHEAD = frozenset(("ex_date", "expiry", "delisted", "until", "end", "to", "end_date", "calendar", "pay_date"))
"""Fields whose dates may lie ahead: what they hold was announced."""
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_INSTANT = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}\S*")
_LABEL = re.compile(r"day_([+-]?\d+)")
_NANOSECONDS = 10**17
WITHHELD = '{"error":"withheld: the answer carries a time stamp that lies after the clock","kind":"late"}'


class LateStamp(msgspec.Struct, frozen=True, kw_only=True):
    """A time stamp after the clock: where it was (``prompt`` or ``tool <name>``), its field, and itself."""

    through: str
    field: str
    stamp: str


class _Clock(msgspec.Struct, frozen=True):
    session: str
    step: int
    time: int


def late_stamps(value: object, observation: Observation) -> tuple[tuple[str, str], ...]:
    """Return (field, stamp) of everything in a JSON value that is dated after the observation's clock.

    Looked at are ISO days and instants, masked day labels (``day_+12``, counted from the first session of the
    episode) and instants in nanoseconds. Texts that only contain a date are not time stamps.
    """
    clock = _Clock(observation.session, observation.step, observation.time)
    return tuple(_late(value, clock, ""))


def withhold_late(request: AskModel, observation: Observation) -> tuple[AskModel, tuple[LateStamp, ...]]:
    """Return a request whose late tool results are withheld, and what was late in it.

    A prompt cannot be withheld without ending the day; a late stamp in one is reported and shown.
    """
    calls = {call.id: call.name for message in request.messages for call in message.calls}
    messages: list[Message] = []
    found: list[LateStamp] = []
    for message in request.messages:
        late = [stamp for body in _bodies(message) for stamp in late_stamps(body, observation)]
        through = f"tool {calls.get(message.call_id or '', '?')}" if message.role == "tool" else "prompt"
        found += [LateStamp(through=through, field=field, stamp=stamp) for field, stamp in late]
        if late and message.role == "tool":
            message = msgspec.structs.replace(message, text=WITHHELD)
        messages.append(message)
    return (msgspec.structs.replace(request, messages=tuple(messages)) if found else request), tuple(found)


def _bodies(message: Message) -> Iterator[object]:
    if message.role == "tool":
        body = parse_object(message.text)
        if body is not None:
            yield body
    elif message.role in ("user", "system"):
        for block in fenced_blocks(message.text):
            body = parse_object(block.text) if block.label == "json" else None
            if body is not None:
                yield body


def _late(value: object, clock: _Clock, field: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _late(item, clock, str(key))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _late(item, clock, field)
    elif field.lower() not in AHEAD and _is_late(value, clock):
        yield field, str(value)


def _is_late(value: object, clock: _Clock) -> bool:
    if isinstance(value, int) and not isinstance(value, bool):
        return value > max(clock.time, _NANOSECONDS)
    if not isinstance(value, str):
        return False
    label = _LABEL.fullmatch(value)
    if label is not None:
        return int(label[1]) > clock.step
    if _DAY.fullmatch(value):
        return value > clock.session
    return _INSTANT.fullmatch(value) is not None and _instant(value, clock) > clock.time


def _instant(text: str, clock: _Clock) -> int:
    """Return an ISO instant in nanoseconds; one without a zone is UTC, one that is none is not late."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return clock.time
    return instant(moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment)
