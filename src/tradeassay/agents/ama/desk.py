"""What the architectures share: the door they register at, what roles answer, how they are asked, who decides.

Answers are small JSON objects, read strictly; their shapes are shown to models as they stand here, names and
descriptions included.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Generic, Literal, Protocol, TypeVar

import msgspec

from tradeassay.agents.ama.prompts import PROMPTS
from tradeassay.core.arena import Action, AgentChoice, ChoiceFailure, Contribution, Deliberation, Packet
from tradeassay.core.dialogue import AskModel, Message, ModelReply
from tradeassay.core.errors import UserError
from tradeassay.core.registry import Registry
from tradeassay.llm.prompting import answer_object

Scalar = bool | int | float | str


class Architecture(Protocol):
    """A way to come to a decision with a language model. ``roles`` lists everybody it asks, in order."""

    summary: ClassVar[str]

    @property
    def roles(self) -> tuple[str, ...]:
        """Everybody who is asked for a decision, in the order of their first word."""
        ...

    def deliberate(self, packet: Packet, memory: bytes | None) -> Deliberation:
        """Return the making of one decision; it depends on its arguments and the answers alone."""
        ...


architectures: Registry[Any] = Registry("architecture")
"""All architectures: classes with ``summary`` and ``Config``, made from a config.

Other packages add theirs through the entry-point group ``tradeassay.architectures``.
"""


def make_architecture(name: str, params: dict[str, Scalar] | None = None) -> Architecture:
    """Return an architecture with its settings; raises :class:`UserError` for an unknown name or setting."""
    made = architectures.get(name)
    try:
        config = msgspec.convert(params or {}, made.Config)
    except (msgspec.ValidationError, ValueError) as error:
        known = ", ".join(made.Config.__struct_fields__)
        raise UserError(f"architecture '{name}': {error}", mend=f"its settings are {known}") from error
    built: Architecture = made(config)
    return built


Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=8000)]


class Opinion(msgspec.Struct, frozen=True, kw_only=True):
    """What an analyst thinks of the asset."""

    view: Literal["bullish", "bearish", "neutral"]
    confidence: Share
    reason: Text


class Argument(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a debate."""

    argument: Text


class RiskCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What the risk manager allows. ``max_exposure`` 0 forbids any position."""

    allow_long: bool
    allow_short: bool
    reason: Text
    max_exposure: Share = 1.0


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """A proposal or a decision. ``message`` and ``allocation`` count only where the season allows them."""

    action: Action
    confidence: Share
    reasoning: Text
    allocation: Share | None = None
    message: Annotated[str, msgspec.Meta(max_length=500)] | None = None


class Lesson(msgspec.Struct, frozen=True, kw_only=True):
    """What is learnt from an outcome, and how much it matters."""

    lesson: Text
    importance: Share


SHAPES: dict[type[msgspec.Struct], str] = {
    Opinion: '{"view": "bullish" | "bearish" | "neutral", "confidence": 0..1, "reason": "..."}',
    Argument: '{"argument": "..."}',
    RiskCheck: '{"allow_long": true | false, "allow_short": true | false, "max_exposure": 0..1, "reason": "..."}',
    Verdict: '{"action": "BUY" | "SELL" | "HOLD", "confidence": 0..1, "reasoning": "...", "allocation": 0..1 or '
    'null, "message": "..." or null}',
    Lesson: '{"lesson": "...", "importance": 0..1}',
}
"""How each answer is described to a model."""

KINDS: dict[type[msgspec.Struct], str] = {
    Opinion: "ama.opinion",
    Argument: "ama.argument",
    RiskCheck: "ama.risk",
    Verdict: "ama.verdict",
    Lesson: "ama.lesson",
}
"""The ``kind`` of the payload that asks for each answer (what scripted models go by)."""


A = TypeVar("A", bound=msgspec.Struct)
Json = Mapping[str, object]
Sight = Callable[[Packet], dict[str, object]]
"""What a role is shown of a packet; see :mod:`tradeassay.agents.ama.sight`."""
Consultation = Generator[AskModel, ModelReply, A | None]
"""Asks one role; returns its answer, or None when no usable one came."""


@dataclass
class Minutes:
    """What was said and what went wrong in the making of one decision."""

    attempts: int = 3
    talk: list[Contribution] = field(default_factory=list)
    failures: list[ChoiceFailure] = field(default_factory=list)

    def failed(self, why: str) -> AgentChoice:
        """Return the choice of an architecture whose last word never came."""
        return AgentChoice(
            action="HOLD", status="failed", reasoning=why, talk=tuple(self.talk), failures=tuple(self.failures)
        )


@dataclass(frozen=True, slots=True)
class DeskRole:
    """Somebody who is asked: a name, the step of the process, and the prompt that says who it is."""

    name: str
    step: str
    prompt: str
    character: str = ""


def consult(role: DeskRole, packet: Packet, shown: Json, wanted: type[A], minutes: Minutes) -> Consultation[A]:
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
            minutes.talk.append(Contribution(role=role.name, step=role.step, text=_words(answer)))
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


def _opening(role: DeskRole, packet: Packet, shown: Json, wanted: type[msgspec.Struct]) -> tuple[Message, ...]:
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


def _note(minutes: Minutes, role: DeskRole, kind: str, text: str) -> None:
    minutes.failures.append(ChoiceFailure(kind=kind, text=f"{role.name}: {text}"[:2000]))
    minutes.talk.append(Contribution(role=role.name, step=role.step, text=f"[no usable answer: {kind}]"))


def _words(answer: msgspec.Struct) -> str:
    return msgspec.json.encode(answer).decode()


_SCHEMAS: dict[type[msgspec.Struct], str] = {}


def _schema(wanted: type[msgspec.Struct]) -> str:
    if wanted not in _SCHEMAS:
        _SCHEMAS[wanted] = msgspec.json.encode(msgspec.json.schema(wanted)).decode()
    return _SCHEMAS[wanted]


class DeskConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``attempts`` per role, ``without`` names roles that are left out (comma-separated), ``debate`` rounds."""

    attempts: int = 3
    without: str = ""
    debate: int = 1

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.debate < 0:
            raise ValueError("attempts must be at least 1 and debate at least 0")


def present(names: Iterable[str], config: DeskConfig, needed: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the roles that stay; raises :class:`UserError` for one that does not exist or cannot be missed."""
    everybody = tuple(names)
    gone = {name.strip() for name in config.without.split(",") if name.strip()}
    unknown = sorted(gone - set(everybody))
    if unknown:
        raise UserError(f"there is no role '{unknown[0]}' to leave out", mend=f"one of {', '.join(everybody)}")
    kept = sorted(gone & set(needed))
    if kept:
        raise UserError(f"role '{kept[0]}' cannot be left out: nobody else decides")
    return tuple(name for name in everybody if name not in gone)


C = TypeVar("C", bound=DeskConfig)


class RoleDesk(Generic[C]):
    """Roles around a table: everybody who may be asked, less who the config leaves out.

    An architecture says who is ``everybody`` and who is ``needed``, and brings ``deliberate``.
    """

    everybody: ClassVar[tuple[str, ...]]
    needed: ClassVar[tuple[str, ...]]

    def __init__(self, config: C) -> None:
        self._config = config
        self._roles = present(self.everybody, config, needed=self.needed)

    @property
    def roles(self) -> tuple[str, ...]:
        """Everybody who is asked, in order."""
        return self._roles

    def hear(
        self, analysts: Mapping[str, tuple[str, Sight]], packet: Packet, minutes: Minutes
    ) -> Generator[AskModel, ModelReply, dict[str, Opinion | None]]:
        """Ask analysts (their character, and what they see) one after another; return what each thinks."""
        said: dict[str, Opinion | None] = {}
        for name, (character, sees) in analysts.items():
            if name in self._roles:
                role = DeskRole(name, "analysis", "analyst", character)
                said[name] = yield from consult(role, packet, sees(packet), Opinion, minutes)
        return said


def conclude(
    verdict: Verdict | None, minutes: Minutes, *, risk: RiskCheck | None = None, memory: bytes | None = None
) -> AgentChoice:
    """Return the choice of a desk. A side that the risk manager forbade becomes HOLD, and that is on record."""
    if verdict is None:
        return msgspec.structs.replace(minutes.failed("the last role gave no usable answer"), memory=memory)
    action, allocation = verdict.action, verdict.allocation
    failures = list(minutes.failures)
    talk = list(minutes.talk)
    if risk is not None:
        if _forbidden(action, risk):
            failures.append(ChoiceFailure(kind="constraint", text=f"{action} was forbidden: {risk.reason}"[:2000]))
            talk.append(Contribution(role="rules", step="limit", text=f"{action} is not allowed; the desk holds"))
            action = "HOLD"
        if allocation is not None:
            allocation = min(allocation, risk.max_exposure)
    return AgentChoice(
        action=action,
        reasoning=verdict.reasoning,
        confidence=verdict.confidence,
        allocation=allocation,
        message=verdict.message,
        talk=tuple(talk),
        failures=tuple(failures),
        memory=memory,
    )


def _forbidden(action: Action, risk: RiskCheck) -> bool:
    if risk.max_exposure == 0:
        return action != "HOLD"
    return (action == "BUY" and not risk.allow_long) or (action == "SELL" and not risk.allow_short)
