"""Encode requests to foreign agents and decode their answers, as Agent Market Arena defines them.

The request contains the keys of the contract, each with a value per symbol. ``own`` adds the
agent's private data (its position and past outcomes), which servers of the bare contract do not
receive. There are three wire formats:

- ``tradeassay`` sends news items and numbers unchanged.
- ``ama`` sends only the fields that the arena's published servers accept. News is one string.
  Reports are lists of texts and are sent only if there are any. The address is used as written.
- ``finmmeval`` sends news as a list of strings and momentum as a word. Its servers return no
  reason.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Unpack

import msgspec

from tradeassay.core.errors import UNDECODABLE, UserError
from tradeassay.core.secrets import clean_foreign
from tradeassay_bench.agents.foreign.transport import (
    MAX_ANSWER,
    TIMEOUT_S,
    HttpOptions,
    HttpTransport,
    PipeOptions,
    PipeTransport,
    PythonCaller,
    Transport,
    Unusable,
    check_id,
    load_class,
    quoted,
    require_method,
)
from tradeassay_bench.core.arena import (
    Action,
    AgentChoice,
    ChoiceFailure,
    NewsShown,
    Packet,
    PeerMessage,
    PricePoint,
    SettledOutcome,
)

PATH = "/trading_action/"

MAX_REQUEST = 1024 * 1024
"""Maximum size of a request, in bytes."""
MAX_REASONING = 20_000
"""Maximum number of characters of reasoning that are stored."""
MAX_MESSAGE = 500
"""Maximum number of characters of a public message that are stored."""


class TradingAction(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's answer.

    Unknown fields are ignored, because servers of the contract may send more.
    """

    recommended_action: Action
    reasoning: str
    confidence: float | None = None
    allocation: float | None = None
    message: str | None = None


class NamedAction(TradingAction, frozen=True, kw_only=True):
    """An answer that may contain the id of its question."""

    id: str | None = None


class BareAction(NamedAction, frozen=True, kw_only=True):
    """An answer from a FinMMEval server: an action without a reason."""

    reasoning: str = ""


_ANSWERS: dict[str, msgspec.json.Decoder[NamedAction]] = {
    wire: msgspec.json.Decoder(BareAction if wire == "finmmeval" else NamedAction, strict=True)
    for wire in ("tradeassay", "ama", "finmmeval")
}
WIRES = tuple(_ANSWERS)


def packet_id(packet: Packet) -> str:
    """Return the id of a question. A program on a pipe repeats the id in its answer."""
    return f"{packet.season}/{packet.date}/{packet.symbol}"


class OwnState(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about the agent and the season that are not part of the published contract."""

    season: str
    decided_at: str
    kind: str
    phase: str
    position: int
    outcomes: tuple[SettledOutcome, ...]
    others: tuple[PeerMessage, ...]
    account: float | None
    exposures: dict[str, float]


class PacketRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A packet in the format of a request, with tables by symbol.

    A program on a pipe repeats ``id`` in its answer.
    """

    date: str
    symbol: tuple[str, ...]
    price: dict[str, float]
    news: dict[str, tuple[NewsShown, ...]]
    history_price: dict[str, tuple[PricePoint, ...]]
    annual: dict[str, str | None] = msgspec.field(name="10k")
    quarterly: dict[str, str | None] = msgspec.field(name="10q")
    momentum: dict[str, float | None]
    model: str
    id: str | msgspec.UnsetType = msgspec.UNSET
    own: OwnState | msgspec.UnsetType = msgspec.UNSET


def encode_request(
    packet: Packet, *, model: str = "", own: bool = True, wire: str = "tradeassay"
) -> bytes:
    """Return the request as JSON.

    Raises :class:`Unusable` (``too_large``) above :data:`MAX_REQUEST` bytes.
    """
    symbol = packet.symbol
    if wire == "tradeassay":
        state: OwnState | msgspec.UnsetType = msgspec.UNSET
        if own:
            fields = {name: getattr(packet, name) for name in OwnState.__struct_fields__}
            state = OwnState(**fields)
        request: object = PacketRequest(
            date=packet.date,
            symbol=(symbol,),
            price={symbol: packet.price},
            news={symbol: packet.news},
            history_price={symbol: packet.history},
            annual={symbol: packet.annual_report},
            quarterly={symbol: packet.quarterly_report},
            momentum={symbol: packet.momentum},
            model=model,
            id=packet_id(packet) if own else msgspec.UNSET,
            own=state,
        )
    else:
        news = [f"{item.title}. {item.text}" if item.text else item.title for item in packet.news]
        bare: dict[str, Any] = {
            "date": packet.date,
            "price": {symbol: packet.price},
            "news": {symbol: news if wire == "finmmeval" else "\n\n".join(news)},
            "symbol": [symbol],
            "model": model,
            "history_price": {symbol: packet.history},
        }
        if packet.momentum is not None and wire == "finmmeval":
            word = "neutral"
            if packet.momentum > 0:
                word = "bullish"
            elif packet.momentum < 0:
                word = "bearish"
            bare["momentum"] = {symbol: word}
        for key, report in (("10k", packet.annual_report), ("10q", packet.quarterly_report)):
            if report:
                bare[key] = {symbol: [report]}
        request = bare
    body = msgspec.json.encode(request)
    if len(body) > MAX_REQUEST:
        raise Unusable("too_large", f"the request has {len(body)} bytes, {MAX_REQUEST} are allowed")
    return body


def read_answer(
    body: bytes | str,
    *,
    limit: int = MAX_ANSWER,
    wire: str = "tradeassay",
    asked: Packet | None = None,
    must_name: bool = False,
) -> AgentChoice:
    """Return an agent's answer as a choice.

    Raises :class:`Unusable` of one of these kinds: ``too_large``, ``parse`` (not JSON), ``schema``
    (JSON of the wrong form, or a number out of range), ``stray`` (the answer to a question other
    than ``asked``).
    """
    raw = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    if len(raw) > limit:
        raise Unusable("too_large", f"the answer has more than {limit} bytes")
    try:
        answer = _ANSWERS[wire].decode(clean_foreign(raw))
    except msgspec.ValidationError as error:
        raise Unusable("schema", str(error)) from error
    except UNDECODABLE as error:
        raise Unusable("parse", f"no JSON ({error}){quoted(raw)}") from error
    if asked is not None:
        check_id(answer.id, packet_id(asked), must_name=must_name)
    return to_choice(answer)


def to_choice(answer: TradingAction) -> AgentChoice:
    """Return a choice from an answer.

    Raises :class:`Unusable` (``schema``) for a share outside 0 to 1.
    """
    for name, value in (("confidence", answer.confidence), ("allocation", answer.allocation)):
        if value is not None and not (math.isfinite(value) and 0 <= value <= 1):
            raise Unusable("schema", f"{name} must lie between 0 and 1")
    return AgentChoice(
        action=answer.recommended_action,
        reasoning=plain(answer.reasoning)[:MAX_REASONING],
        confidence=answer.confidence,
        allocation=answer.allocation,
        message=None if answer.message is None else plain(answer.message)[:MAX_MESSAGE] or None,
    )


def plain(text: str) -> str:
    """Return a text without control characters and lone surrogates.

    Databases and pages cannot store or display these characters safely.
    """
    return "".join(
        c for c in text if c in "\n\t" or ((c.isprintable() or c.isspace()) and c >= " ")
    )


class ArenaAgent(ABC):
    """A foreign agent that is queried over a wire.

    Every failure becomes a HOLD that records the error.
    """

    _transport: Transport | None = None

    async def decide(self, packet: Packet) -> AgentChoice:
        """Query the agent and return its choice.

        A failure of the agent never raises. After a failure the transport is reset.
        """
        try:
            return await self._ask(packet)
        except Unusable as error:
            if self._transport is not None:
                await self._transport.reset()
            failure = ChoiceFailure(kind=error.kind, text=plain(clean_foreign(error.text))[:2000])
            return AgentChoice(action="HOLD", status="failed", reasoning="", failures=(failure,))

    async def close(self) -> None:
        """Close the connection to the agent."""
        if self._transport is not None:
            await self._transport.close()

    @abstractmethod
    async def _ask(self, packet: Packet) -> AgentChoice: ...


class HttpAgent(ArenaAgent):
    """Query a server of the AMA contract: ``POST /trading_action/``. Needs ``[arena]``.

    Failures have the kinds of :class:`~tradeassay_bench.agents.foreign.transport.HttpTransport` and
    ``schema``. ``own`` adds the agent's position and outcomes to the contract's keys. ``reach`` is
    passed to the transport. The constructor raises :class:`~tradeassay.core.errors.UserError` for
    an invalid address.
    """

    def __init__(
        self,
        url: str,
        *,
        model: str = "",
        own: bool = False,
        wire: str = "tradeassay",
        **reach: Unpack[HttpOptions],
    ) -> None:
        if wire not in WIRES:
            raise UserError(f"unknown wire '{wire}'", hint=f"choose one of {', '.join(WIRES)}")
        # A published address may already contain the path.
        has_path = url.rstrip("/").endswith(PATH.rstrip("/"))
        self._http = HttpTransport(url, "" if has_path else PATH, **reach)
        self._transport = self._http
        self._model, self._own, self._wire = model, own, wire

    async def _ask(self, packet: Packet) -> AgentChoice:
        body = encode_request(packet, model=self._model, own=self._own, wire=self._wire)
        answer = await self._http.exchange(body)
        asked = packet if self._own else None  # questions of the bare contract have no id
        return read_answer(answer, limit=self._http.max_answer, wire=self._wire, asked=asked)


class SubprocessAgent(ArenaAgent):
    """Runs a command that implements the AMA contract as JSON lines.

    See :class:`~tradeassay_bench.agents.foreign.transport.PipeTransport` for the environment of the
    process and the kinds of failure. ``parse``, ``schema`` and ``stray`` are added.
    """

    def __init__(self, command: Sequence[str], **reach: Unpack[PipeOptions]) -> None:
        self._pipe = PipeTransport(command, **reach)
        self._transport = self._pipe

    async def _ask(self, packet: Packet) -> AgentChoice:
        line = await self._pipe.exchange(encode_request(packet))
        return read_answer(line, limit=self._pipe.max_answer, asked=packet, must_name=True)


class Decides(Protocol):
    """The interface of an agent's class.

    ``decide`` may return an :class:`AgentChoice`, an action, or an answer of the contract.
    """

    def decide(self, packet: Packet) -> Any:
        """Return an action (``"BUY"``), a mapping of the contract, a choice, or an awaitable.

        The mapping has ``recommended_action`` and ``reasoning``.
        """
        ...


class PythonAgent(ArenaAgent):
    """Queries an object in this process that has ``decide(packet)``, plain or ``async``.

    Failures have the kinds ``agent`` (an exception), ``timeout`` and ``schema``.
    """

    def __init__(self, agent: Decides, *, timeout_s: float = TIMEOUT_S) -> None:
        require_method(agent, "decide(packet)")
        self._caller = PythonCaller(agent.decide, timeout_s=timeout_s)

    async def _ask(self, packet: Packet) -> AgentChoice:
        answer = await self._caller.call(packet)
        if isinstance(answer, AgentChoice):
            return answer
        if isinstance(answer, str):
            answer = {"recommended_action": answer, "reasoning": ""}
        if not isinstance(answer, Mapping):
            raise Unusable("schema", f"the answer is a {type(answer).__name__}, not a choice")
        try:
            return to_choice(msgspec.convert(dict(answer), TradingAction, strict=True))
        except msgspec.ValidationError as error:
            raise Unusable("schema", str(error)) from error


def load_agent(name: str) -> Decides:
    """Import ``package.module:Class`` and return an instance.

    Raises :class:`UserError` if the import or the call fails.
    """
    agent: Decides = load_class(name, "decide(packet)")
    return agent
