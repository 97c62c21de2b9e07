"""Asking a role: what it is told, how its answer is read, and what is written down about it."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from tradeassay.agents.ama.answers import KINDS, SHAPES
from tradeassay.agents.ama.prompts import PROMPTS
from tradeassay.core.arena import Choice, ChoiceFailure, Packet, Said
from tradeassay.core.dialogue import AskModel, Message, ModelReply
from tradeassay.llm.prompting import answer_object

A = TypeVar("A", bound=msgspec.Struct)
Json = Mapping[str, object]
Consultation = Generator[AskModel, ModelReply, A | None]
"""Asks one role; returns its answer, or None when no usable one came."""


@dataclass
class Minutes:
    """What was said and what went wrong in the making of one decision."""

    attempts: int = 3
    talk: list[Said] = field(default_factory=list)
    failures: list[ChoiceFailure] = field(default_factory=list)

    def failed(self, why: str) -> Choice:
        """Return the choice of an architecture whose last word never came."""
        return Choice(
            action="HOLD", status="failed", reasoning=why, talk=tuple(self.talk), failures=tuple(self.failures)
        )


@dataclass(frozen=True, slots=True)
class Role:
    """Somebody who is asked: a name, the step of the process, and the prompt that says who it is."""

    name: str
    step: str
    prompt: str
    character: str = ""


def consult(role: Role, packet: Packet, shown: Json, wanted: type[A], minutes: Minutes) -> Consultation[A]:
    """Ask a role once, and again with the reason while its answer cannot be read.

    ``shown`` is all that it sees besides date, asset and its own prompt. A model that gives no answer at all is
    not asked again: the layer below has tried already.
    """
    messages = _opening(role, packet, shown, wanted)
    for attempt in range(1, minutes.attempts + 1):
        reply = yield AskModel(
            purpose=role.name, messages=messages, answer_schema=_schema(wanted), attempt=attempt
        )
        if reply.error is not None:
            _note(minutes, role, reply.error_kind or "unreachable", reply.error)
            return None
        answer, wrong = _read(reply.text, wanted)
        if answer is not None:
            minutes.talk.append(Said(role=role.name, step=role.step, text=_words(answer)))
            return answer
        _note(minutes, role, "schema" if wrong.startswith("not as asked") else "parse", wrong)
        messages = (*messages, Message(role="assistant", text=reply.text), _again(wrong))
    return None


def opinions(found: Mapping[str, msgspec.Struct | None]) -> list[Json]:
    """Return what several roles said in the form their successors are shown it; silence is shown as silence."""
    return [
        {"role": name, **msgspec.to_builtins(said)} if said is not None else {"role": name, "said": None}
        for name, said in found.items()
    ]


def _opening(role: Role, packet: Packet, shown: Json, wanted: type[msgspec.Struct]) -> tuple[Message, ...]:
    system = PROMPTS.fill("system", role=role.name, who=PROMPTS.fill(role.prompt, character=role.character))
    payload = {
        "kind": KINDS[wanted],
        "role": role.name,
        "date": packet.date,
        "symbol": packet.symbol,
        "asset_kind": packet.kind,
        "position": packet.position,
        **shown,
    }
    body = msgspec.json.encode(payload).decode()
    user = PROMPTS.fill("ask", date=packet.date, symbol=packet.symbol, body=body, shape=SHAPES[wanted])
    return (Message(role="system", text=system), Message(role="user", text=user))


def _read(text: str, wanted: type[A]) -> tuple[A | None, str]:
    body = answer_object(text, wanted.__struct_fields__[0])
    if body is None:
        return None, "no JSON object was found in the answer"
    try:
        return msgspec.convert(body, wanted), ""
    except msgspec.ValidationError as error:
        return None, f"not as asked: {error}"


def _again(wrong: str) -> Message:
    feedback = {"kind": "feedback", "failures": [{"kind": "schema", "detail": wrong}]}
    return Message(role="user", text=PROMPTS.fill("again", body=msgspec.json.encode(feedback).decode()))


def _note(minutes: Minutes, role: Role, kind: str, text: str) -> None:
    minutes.failures.append(ChoiceFailure(kind=kind, text=f"{role.name}: {text}"[:2000]))
    minutes.talk.append(Said(role=role.name, step=role.step, text=f"[no usable answer: {kind}]"))


def _words(answer: msgspec.Struct) -> str:
    return msgspec.json.encode(answer).decode()


_SCHEMAS: dict[type[msgspec.Struct], str] = {}


def _schema(wanted: type[msgspec.Struct]) -> str:
    if wanted not in _SCHEMAS:
        _SCHEMAS[wanted] = msgspec.json.encode(msgspec.json.schema(wanted)).decode()
    return _SCHEMAS[wanted]
