"""Shared parts of the architectures: their registry, the roles' questions and answers, and the
final choice.

Answers are small JSON objects. A role reads its material in words, then the question, and one
example of the answer. The values of the example are drawn from a hash of role, date and asset, so
copying the example is not an opinion.

Material is written in words and lines, without JSON and without our abbreviations. Foreign texts
are quoted. The same mapping is attached to the text as data. A key without words raises an error,
so scripted models never see more than real models.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Annotated, Any, ClassVar, Generic, Literal, Protocol, TypeVar

import msgspec

from tradeassay.core.errors import UserError
from tradeassay.core.registry import Registry
from tradeassay_arena.agents.ama.prompts import PROMPTS
from tradeassay_bench.core.arena import (
    Action,
    AgentChoice,
    ChoiceFailure,
    Contribution,
    Deliberation,
    Packet,
)
from tradeassay_bench.core.dialogue import AskModel, Given, Message, ModelReply, schema_text
from tradeassay_bench.core.drive import Ended, advance
from tradeassay_bench.llm.prompting import (
    GIVE_UP,
    REPEATED,
    Abandoned,
    Inquiry,
    Refused,
    Tail,
    answer_object,
    ask_until_read,
    unclosed_object,
    unreadable,
)

Json = Mapping[str, object]
QUOTED = 6000
"""Maximum number of characters quoted from one foreign text."""

HELD = {1: "long", 0: "none", -1: "short"}


def prose(shown: Json) -> str:
    """Return a role's material as text. Raises :class:`KeyError` for a part without words."""
    parts = [part for name, value in shown.items() if (part := _PARTS[name](value))]
    return "\n\n".join(parts) if parts else "You are shown nothing besides."


def quoted(text: str) -> str:
    """Return a foreign text with ``>`` before every line."""
    cut = text if len(text) <= QUOTED else text[: QUOTED - 4].rstrip() + " ..."
    return (
        "\n".join(f"> {line}" if line else ">" for line in cut.strip().splitlines()) or "> (empty)"
    )


def figure(value: float) -> str:
    """Return a price as text: two decimals from 1 upwards, four significant figures below 1."""
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.4g}"


def _percent(value: float) -> str:
    return f"{100 * value:+.2f} %"


def _stamp(text: str) -> str:
    return text.replace("T", " ")[:16]


def _line(text: str) -> str:
    return " ".join(str(text).split())


def _lines(head: str, nothing: str, line: Callable[[Any], str]) -> Callable[[Any], str]:
    """Return a function that formats a list: ``head`` and one line per item, or ``nothing`` for an
    empty list.
    """
    return lambda value: "\n".join([head, *map(line, value)]) if value else nothing


def _proposal(value: Any) -> str:
    if value is None:
        return "The trader made no usable proposal."
    sure = f"with confidence {value['confidence']:g}"
    return f"The trader proposes {value['action']} {sure}. {_line(value['reasoning'])}"


def _risk(value: Any) -> str:
    if value is None:
        return "The risk manager gave no usable answer."
    allowed = [
        side for side, key in (("long", "allow_long"), ("short", "allow_short")) if value[key]
    ]
    sides = " and ".join(allowed) if allowed and value["max_exposure"] > 0 else "no position at all"
    most = f", up to {value['max_exposure']:g} of the account" if value["max_exposure"] < 1 else ""
    return f"The risk manager allows {sides}{most}. {_line(value['reason'])}"


_LAYERS = {"short": "recent", "mid": "last months", "long": "lasting", "reflection": "lesson"}


def _memory(head: str) -> Callable[[Any], str]:
    return _lines(
        head,
        "Your memory holds nothing on this yet.",
        lambda one: (
            f"({_LAYERS[one['layer']]}, importance {one['importance']:g})\n{quoted(one['text'])}"
        ),
    )


def _entry(one: Any) -> str:
    came = "not settled yet" if one["earned"] is None else f"result {_percent(one['earned'])}"
    views = ", ".join(f"{name} {view}" for name, view in one["views"].items())
    seen = f"; the analysts said: {views}" if views else ""
    return f"- {one['date']}: {one['action']}, {came}{seen}. {_line(one['reasoning'])}"


def _report(name: str) -> Callable[[Any], str]:
    return lambda value: f"{name}: there is none." if not value else f"{name}:\n{quoted(value)}"


def _news(value: Any) -> str:
    lines = ["News, each with the time it was published (UTC) and its source:"]
    for place, item in enumerate(value, 1):
        told = quoted(f"{item['title']}\n{item['text']}" if item["text"] else item["title"])
        lines.append(f"{place}. {_stamp(item['published_at'])}, {item['source']}\n{told}")
    return "\n".join(lines) if value else "News: there is none."


_PARTS: dict[str, Callable[[Any], str]] = {
    "price": lambda value: f"Price now: {figure(value)}",
    "history": lambda value: (
        "Earlier closing prices, oldest first: "
        + ", ".join(f"{day} {figure(price)}" for day, price in value)
        if value
        else "Earlier closing prices: none are known."
    ),
    "momentum": lambda value: (
        f"Return over the last month: {'not known.' if value is None else _percent(value)}"
    ),
    "news": _news,
    "headlines": _lines(
        "Headlines, each with the time it was published (UTC) and its source:",
        "Headlines: there are none.",
        lambda one: f"{_stamp(one[0])}, {one[1]}\n{quoted(one[2])}",
    ),
    "annual_report": _report("Newest annual report"),
    "quarterly_report": _report("Newest quarterly report"),
    "opinions": _lines(
        "What was thought of the asset:",
        "Nobody gave an opinion.",
        lambda one: (
            f"- {one['role']}: "
            + (
                f"{one['view']}, confidence {one['confidence']:g}. {_line(one['reason'])}"
                if "view" in one
                else "gave no usable answer"
            )
        ),
    ),
    "debate": _lines(
        "The debate so far:",
        "The debate has not begun.",
        lambda one: f"- {one['role']}: {_line(one['argument'] or 'gave no usable answer')}",
    ),
    "proposal": _proposal,
    "risk": _risk,
    "outcomes": _lines(
        "Your own last settled decisions, oldest first:",
        "Your own settled decisions: there are none yet.",
        lambda one: (
            f"- {one['date']}: {one['action']}, position {HELD[int(one['position'])]}, "
            f"result {_percent(one['earned'])}"
        ),
    ),
    "others": _lines(
        "What other agents said in public:",
        "",
        lambda one: f"{one['entry']}, {one['date']}\n{quoted(one['text'])}",
    ),
    "memory": _memory("What you remember:"),
    "remembered": _memory("What you had in mind when you decided:"),
    "journal": _lines(
        "Your journal of own decisions, oldest first:", "Your journal is empty.", _entry
    ),
    "analysts_record": lambda value: (
        "\n".join(
            [
                "How often the asset moved as each analyst said:",
                *(f"- {name}: {one['right']} of {one['of']} times" for name, one in value.items()),
            ]
        )
        if value
        else "How often each analyst was right: not known yet."
    ),
    "account": lambda value: (
        f"Your account over all assets is worth {value:.4f} (it began with 1)."
    ),
    "exposures": lambda value: (
        "Money behind each asset now (negative is short): "
        + (", ".join(f"{asset} {money:+.4f}" for asset, money in value.items()) or "none")
        + "."
    ),
}


Scalar = bool | int | float | str


class Architecture(Protocol):
    """A procedure for reaching a decision with a language model.

    ``roles`` lists its roles in the order of their questions.
    """

    summary: ClassVar[str]

    @property
    def roles(self) -> tuple[str, ...]: ...

    def deliberate(self, packet: Packet, memory: bytes | None) -> Deliberation:
        """Return the dialogue of one decision. It depends only on its arguments and the answers."""
        ...


architectures: Registry[Any] = Registry("architecture")
"""The registry of architectures: classes with ``summary`` and ``Config``.

Other packages add their classes through the entry-point group ``tradeassay.architectures``.
"""


class Conduct(msgspec.Struct, frozen=True, kw_only=True):
    """The season's rules for all agents: the meaning of HOLD, and which optional fields an answer
    has.
    """

    hold: Literal["keep", "flat"] = "keep"
    allocations: bool = False
    messages: bool = False


PLAIN = Conduct()


def make_architecture(
    name: str, params: dict[str, Scalar] | None = None, conduct: Conduct = PLAIN
) -> Architecture:
    """Return an architecture with its settings.

    Raises :class:`UserError` for an unknown name or setting.
    """
    made = architectures.get(name)
    try:
        config = msgspec.convert(params or {}, made.Config)
    except (msgspec.ValidationError, ValueError) as error:
        known = ", ".join(made.Config.__struct_fields__)
        raise UserError(
            f"architecture '{name}': {error}", hint=f"its settings are {known}"
        ) from error
    built: Architecture = made(config, conduct)
    return built


Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=8000)]


# Models read the docstrings of the answers in their schemas: a change needs new recordings.
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
    """A proposal or a decision. ``message`` and ``allocation`` count only where the season allows them."""  # noqa: E501

    action: Action
    confidence: Share
    reasoning: Text
    allocation: Share | None = None
    message: Annotated[str, msgspec.Meta(max_length=500)] | None = None


class Lesson(msgspec.Struct, frozen=True, kw_only=True):
    """What is learnt from an outcome, and how much it matters."""

    lesson: Text
    importance: Share


_OPTIONAL = ("max_exposure", "allocation", "message")
ASKED: dict[type[msgspec.Struct], tuple[str, str]] = {
    Opinion: ("ama.opinion", "What do you think of the asset until the next decision?"),
    Argument: ("ama.argument", "State your case."),
    RiskCheck: ("ama.risk", "Which positions may be taken now?"),
    Verdict: ("ama.verdict", "What should be done now: BUY, SELL or HOLD?"),
    Lesson: ("ama.lesson", "What is the one lesson?"),
}
"""For each answer type, the ``kind`` of the question's payload, which scripted models read, and the
question itself.
"""


A = TypeVar("A", bound=msgspec.Struct)
Sight = Callable[[Packet], dict[str, object]]
"""Selects the part of a packet that a role sees."""
Consultation = Generator[AskModel, ModelReply, A | None]
"""A question to one role.

It returns the role's answer, or None if there is no usable answer.
"""


@dataclass
class Transcript:
    """The contributions and failures of one decision."""

    attempts: int = 3
    conduct: Conduct = PLAIN
    talk: list[Contribution] = field(default_factory=list)
    failures: list[ChoiceFailure] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Role:
    """A role of an architecture: its name, its step of the process, and its prompt."""

    name: str
    step: str
    prompt: str
    character: str = ""


CUT_OFF = 2
"""Maximum number of times that a truncated answer is requested again.

These requests are not attempts of the model.
"""

EARLIER = 1200
"""Maximum number of repeated characters of a refused answer, to bound conversations."""


def consult(
    role: Role, packet: Packet, shown: Json, wanted: type[A], transcript: Transcript
) -> Consultation[A]:
    """Ask a role, and repeat the question with the reason while its answer cannot be read.

    ``shown`` is everything that the role sees besides date, asset and its prompt. A model that does
    not answer is not asked again, because the layer below has already retried. A refusal states the
    error and repeats the required form. Only the last answer stays in the conversation. Two
    identical wrong answers in a row end it.
    """
    if packet.account is not None and "outcomes" in shown:
        # A role that sees its own outcomes also sees the account over all assets, if there is one.
        shown = {**shown, "account": packet.account, "exposures": dict(packet.exposures)}
    asked_on = (packet.date, packet.symbol, packet.kind, packet.position)
    first = _question(role, asked_on, wanted, transcript.conduct, msgspec.json.encode(shown))

    def count(kind: str, detail: str) -> None:
        if kind == GIVE_UP:  # The role has no answer, and later roles see that.
            return
        text = "the same answer again" if kind == REPEATED else detail
        transcript.failures.append(ChoiceFailure(kind=kind, text=f"{role.name}: {text}"[:2000]))
        if kind != REPEATED:
            said = f"[no usable answer: {kind}]"
            transcript.talk.append(Contribution(role=role.name, step=role.step, text=said))

    def again(reply: ModelReply, wrong: str) -> Tail:
        form = _form(role.name, packet.date, packet.symbol, wanted, transcript.conduct)
        asked = PROMPTS.fill("again", wrong=wrong, **form).strip()
        return (
            Message(role="assistant", text=reply.text[:EARLIER]),
            Message(role="user", text=asked),
        )

    def cut(reply: ModelReply) -> Tail:
        transcript.failures.append(
            ChoiceFailure(kind="length", text=f"{role.name}: the answer was cut off")
        )
        return again(reply, "it was cut off before it ended. Be shorter.")

    def silent(reply: ModelReply, tail: Tail) -> Tail:
        raise Abandoned("no answer came")

    inquiry = Inquiry(
        ask=lambda tail, attempt: (
            msgspec.structs.replace(first, messages=(*first.messages, *tail), attempt=attempt)
            if tail or attempt > 1
            else first
        ),
        read=lambda reply: _read(reply, wanted),
        on_refusal=lambda reply, refused, left: again(reply, str(refused)),
        on_cut=cut,
        record=count,
        on_error=silent,
        attempts=transcript.attempts,
        silences=CUT_OFF + 1,
        cuts_end=False,
    )
    try:
        answer = yield from ask_until_read(inquiry)
    except Abandoned:
        return None
    words = msgspec.json.encode(answer).decode()
    transcript.talk.append(Contribution(role=role.name, step=role.step, text=words))
    return answer


@lru_cache(maxsize=512)
def _question(
    role: Role,
    asked_on: tuple[str, str, str, int],
    wanted: type[msgspec.Struct],
    conduct: Conduct,
    material: bytes,
) -> AskModel:
    """Return the question to a role, in words and as data. It is built once for all models of an
    architecture.

    ``asked_on`` contains date, asset, asset kind and position. ``material`` is the material as
    JSON.
    """
    date, symbol, asset_kind, position = asked_on
    kind, task = ASKED[wanted]
    user = PROMPTS.fill(
        "ask",
        date=date,
        symbol=symbol,
        kind="a stock" if asset_kind == "stock" else "a crypto-currency",
        position=HELD[position],
        body=_body(material),
        task=task,
        **_form(role.name, date, symbol, wanted, conduct),
    )
    who = PROMPTS.fill(role.prompt, character=role.character).strip()
    system = PROMPTS.fill("system", role=role.name, who=who, hold=_HOLD[conduct.hold]).strip()
    payload = {
        "kind": kind,
        "role": role.name,
        "date": date,
        "symbol": symbol,
        "asset_kind": asset_kind,
        "position": position,
        **msgspec.json.decode(material),
    }
    return AskModel(
        purpose=role.name,
        messages=(Message(role="system", text=system), Message(role="user", text=user.strip())),
        answer_schema=_schema(wanted),
        # The question as data, for agents that do not read prose.
        given=Given(
            session=date,
            rules=msgspec.json.encode(conduct).decode(),
            observation=msgspec.json.encode(payload).decode(),
            answer_schema=_schema(wanted),
        ),
    )


@lru_cache(maxsize=512)
def _body(material: bytes) -> str:
    """Return the material in words. The result is cached, because sixteen personas share it."""
    return prose(msgspec.json.decode(material))


@lru_cache(maxsize=512)
def _form(
    role: str, date: str, symbol: str, wanted: type[msgspec.Struct], conduct: Conduct
) -> Mapping[str, str]:
    """Return an example answer and the description of its fields.

    Fields that the season does not use are left out.
    """
    unused: tuple[str, ...] = () if conduct.allocations else ("allocation", "max_exposure")
    unused += () if conduct.messages else ("message",)
    names = [name for name in wanted.__struct_fields__ if name not in unused]
    drawn = hashlib.sha256(f"{role}/{date}/{symbol}".encode()).digest()
    example = {}
    for name in names:
        _, byte, values = _FIELDS[name]
        example[name] = values[drawn[byte] % len(values)]
    fields = "\n".join(f"{name}: {_FIELDS[name][0]}" for name in names)
    return {"example": msgspec.json.encode(example).decode(), "fields": fields}


_HOLD = {
    "keep": "the position stays as it is.",
    "flat": "no position until the next decision; one that is held is closed.",
}
_SHARE, _BEHIND = "a number from 0 to 1", "share of the account behind the position"
_FIELDS: dict[str, tuple[str, int, tuple[object, ...]]] = {
    "view": ('"bullish", "bearish" or "neutral"', 0, ("bullish", "bearish", "neutral")),
    "confidence": (f"{_SHARE}, how sure you are", 1, tuple(n / 100 for n in range(50, 95, 5))),
    "reason": ("text, two sentences at most", 0, ("one or two sentences on what decided it",)),
    "argument": ("text, three sentences at most", 0, ("two or three sentences",)),
    "allow_long": ("true or false", 2, (False, True)),
    "allow_short": ("true or false", 3, (False, True)),
    "max_exposure": (f"{_SHARE}, the largest {_BEHIND}", 4, (0.25, 0.5, 0.75, 1.0)),
    "action": ('"BUY", "SELL" or "HOLD"', 0, ("BUY", "SELL", "HOLD")),
    "reasoning": (
        "text, three sentences at most",
        0,
        ("two or three sentences on what decided it",),
    ),
    "allocation": (f"{_SHARE}, the {_BEHIND}", 5, tuple(n / 10 for n in range(1, 11))),
    "message": (
        "text of at most 500 characters, or null",
        0,
        ("a public remark to the other agents",),
    ),
    "lesson": ("text, one sentence", 0, ("one sentence",)),
    "importance": (_SHARE, 6, tuple(n / 10 for n in range(1, 10))),
}
"""For each field: its description, the byte of the hash that draws the example, and the example
values.
"""


def _read(reply: ModelReply, wanted: type[A]) -> A:
    """Return a role's answer. Raises :class:`Refused` with the error in words."""
    whole = answer_object(reply.text, wanted.__struct_fields__[0])
    body = whole
    if body is None and reply.stop != "length":
        body = unclosed_object(reply.text)
    # A truncated JSON object is not an answer in the requested form.
    kind = "schema" if whole is not None else "parse"
    if body is None:
        raise Refused(kind, f"it holds no JSON object that can be read: {unreadable(reply.text)}.")
    plain = {
        key: _plainly(key, value) for key, value in body.items() if key in wanted.__struct_fields__
    }
    missing = [
        name for name in wanted.__struct_fields__ if name not in plain and name not in _OPTIONAL
    ]
    if missing:
        unknown = [repr(key[:40]) for key in body if key not in wanted.__struct_fields__][:5]
        also = f" It has {', '.join(unknown)}, which nobody asked for." if unknown else ""
        raise Refused(kind, f"the field {' and '.join(map(repr, missing))} is missing.{also}")
    try:
        return msgspec.convert(plain, wanted)
    except msgspec.ValidationError as error:
        where = str(error).rpartition("`$.")[2].rstrip("`") if "`$." in str(error) else ""
        may = f" '{where}' must be {_FIELDS[where][0]}." if where in _FIELDS else ""
        raise Refused(kind, f"{str(error).partition(' - at')[0]}.{may}") from None


def _plainly(key: str, value: object) -> object:
    """Return a value in its plain form.

    A word gets the expected case, and a number loses its quotation marks.
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    if key == "action":
        return text.upper()
    if key == "view":
        return text.lower()
    if key in ("confidence", "importance", "allocation", "max_exposure"):
        with suppress(ValueError):
            return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    return value


def opinions(found: Mapping[str, msgspec.Struct | None]) -> list[Json]:
    """Return the answers of several roles in the form that later roles see. A missing answer is
    marked.
    """
    return [
        {"role": name, **msgspec.to_builtins(said)}
        if said is not None
        else {"role": name, "said": None}
        for name, said in found.items()
    ]


_schema = cache(schema_text)


class ArchitectureConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of every architecture. ``attempts`` is the number of attempts per role.

    ``without`` names the roles to leave out, separated by commas. ``debate`` is the number of
    rounds of debate.
    """

    attempts: int = 3
    without: str = ""
    debate: int = 1

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.debate < 0:
            raise ValueError("attempts must be at least 1 and debate at least 0")


C = TypeVar("C", bound=ArchitectureConfig)


class RoleAgent(Generic[C]):
    """An agent made of the roles of its architecture, except those that the config leaves out.

    An architecture defines ``everybody`` (all roles), ``needed`` (roles that cannot be left out)
    and ``deliberate``.
    """

    everybody: ClassVar[tuple[str, ...]]
    needed: ClassVar[tuple[str, ...]]

    def __init__(self, config: C, conduct: Conduct = PLAIN) -> None:
        """Raise :class:`UserError` if a role to leave out does not exist or is needed."""
        self._config = config
        self._conduct = conduct
        gone = {name.strip() for name in config.without.split(",") if name.strip()}
        if unknown := sorted(gone - set(self.everybody)):
            hint = f"one of {', '.join(self.everybody)}"
            raise UserError(f"unknown role '{unknown[0]}'", hint=hint)
        if kept := sorted(gone & set(self.needed)):
            raise UserError(f"role '{kept[0]}' cannot be left out: it makes the decision")
        self._roles = tuple(name for name in self.everybody if name not in gone)

    @property
    def roles(self) -> tuple[str, ...]:
        return self._roles

    def transcript(self) -> Transcript:
        return Transcript(attempts=self._config.attempts, conduct=self._conduct)

    def ask_all(
        self, asking: Mapping[str, Consultation[A]]
    ) -> Generator[Any, Any, dict[str, A | None]]:
        """Ask several independent roles at the same time, and return their answers.

        Yields a tuple of questions and receives a tuple of replies. The transcript preserves the
        order in which roles answered.
        """
        found: dict[str, A | None] = {}
        replies: dict[str, Any] = dict.fromkeys(asking)
        while replies:
            steps = {name: advance(asking[name], reply) for name, reply in replies.items()}
            found |= {name: step.result for name, step in steps.items() if isinstance(step, Ended)}
            waiting = {name: step for name, step in steps.items() if not isinstance(step, Ended)}
            answers = (yield tuple(waiting.values())) if waiting else ()
            replies = dict(zip(waiting, answers, strict=True))
        return {name: found[name] for name in asking}

    def hear(
        self, analysts: Mapping[str, tuple[str, Sight]], packet: Packet, transcript: Transcript
    ) -> Generator[Any, Any, dict[str, Opinion | None]]:
        """Ask analysts, and return each analyst's opinion or None.

        ``analysts`` contains the character and the view of each analyst.
        """
        asking = {}
        for name, (character, sees) in analysts.items():
            if name in self._roles:
                role = Role(name, "analysis", "analyst", character)
                asking[name] = consult(role, packet, sees(packet), Opinion, transcript)
        return (yield from self.ask_all(asking))

    def assess_risk(
        self, packet: Packet, seen: Json, shown: dict[str, object], transcript: Transcript
    ) -> Consultation[RiskCheck]:
        """Ask the risk manager, if there is one, and add its answer to ``shown`` for later
        roles.
        """
        if "risk" not in self._roles:
            return None
        risk = yield from consult(Role("risk", "risk", "risk"), packet, seen, RiskCheck, transcript)
        shown["risk"] = msgspec.to_builtins(risk)
        return risk


def conclude(
    verdict: Verdict | None,
    transcript: Transcript,
    *,
    risk: RiskCheck | None = None,
    memory: bytes | None = None,
) -> AgentChoice:
    """Return an agent's choice.

    An action that the risk manager forbade becomes HOLD, and the failure is recorded.
    """
    failures, talk = list(transcript.failures), list(transcript.talk)
    if verdict is None:
        return AgentChoice(
            action="HOLD",
            status="failed",
            reasoning="the last role gave no usable answer",
            talk=tuple(talk),
            failures=tuple(failures),
            memory=memory,
        )
    action, allocation = verdict.action, verdict.allocation
    if risk is not None:
        allowed = {"BUY": risk.allow_long, "SELL": risk.allow_short, "HOLD": True}
        if not allowed[action] or (action != "HOLD" and risk.max_exposure == 0):
            failures.append(
                ChoiceFailure(
                    kind="constraint", text=f"{action} was forbidden: {risk.reason}"[:2000]
                )
            )
            talk.append(
                Contribution(
                    role="rules", step="limit", text=f"{action} is not allowed; the desk holds"
                )
            )
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
