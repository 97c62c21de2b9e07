"""The arena's wire: requests to foreign agents and their answers, as Agent Market Arena defines
them.

The request holds the keys of the contract, each mapping the symbol to its part. ``own`` adds the
agent's private data (its position and past outcomes). It is left out for servers of the bare
contract. Three wires differ in form:

- ``tradeassay`` sends news items and numbers as they are.
- ``ama`` sends what the arena's published servers take and nothing else: news as one string,
  reports as lists of texts and only if there are any. The address is used as written.
- ``finmmeval`` has news as a list of strings and momentum as a word. Its servers give no reason.
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
"""The most bytes in a request."""
MAX_REASONING = 20_000
"""The most characters of reasoning that are kept."""
MAX_MESSAGE = 500
"""The most characters of a public message that are kept."""


class TradingAction(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's answer.

    Unknown fields are ignored, as servers of the contract may send more.
    """

    recommended_action: Action
    reasoning: str
    confidence: float | None = None
    allocation: float | None = None
    message: str | None = None


class NamedAction(TradingAction, frozen=True, kw_only=True):
    """An answer as read from a wire. ``id`` names the question it answers."""

    id: str | None = None


class BareAction(NamedAction, frozen=True, kw_only=True):
    """An answer of a FinMMEval server: an action without a reason."""

    reasoning: str = ""


_ANSWERS: dict[str, msgspec.json.Decoder[NamedAction]] = {
    wire: msgspec.json.Decoder(BareAction if wire == "finmmeval" else NamedAction, strict=True)
    for wire in ("tradeassay", "ama", "finmmeval")
}
WIRES = tuple(_ANSWERS)


def packet_id(packet: Packet) -> str:
    """Return the id of a question. A program on a pipe repeats it in its answer."""
    return f"{packet.season}/{packet.date}/{packet.symbol}"


class OwnState(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about the agent itself and the season, beyond the published contract."""

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
    """A packet as it is sent, with tables by symbol.

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
    """Return the request as JSON. Raises :class:`Unusable` (``too_large``) above
    :data:`MAX_REQUEST` bytes.
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
    (JSON of another form, or a number out of range), ``stray`` (the answer to another question than
    ``asked``).
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

    Databases and pages should not get those.
    """
    return "".join(
        c for c in text if c in "\n\t" or ((c.isprintable() or c.isspace()) and c >= " ")
    )


class ArenaAgent(ABC):
    """A foreign agent, asked over a wire.

    Every failure becomes a HOLD that records the error.
    """

    _transport: Transport | None = None

    async def decide(self, packet: Packet) -> AgentChoice:
        """Ask the agent for a choice.

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
        if self._transport is not None:
            await self._transport.close()

    @abstractmethod
    async def _ask(self, packet: Packet) -> AgentChoice: ...


class HttpAgent(ArenaAgent):
    """Asks a server of the AMA contract: ``POST /trading_action/``.

    Needs ``[arena]``.

    Failures are of the kinds of :class:`~tradeassay_bench.agents.foreign.transport.HttpTransport`
    and ``schema``. ``own`` adds the agent's position and outcomes to the contract's keys. ``reach``
    goes to the transport. The constructor raises :class:`~tradeassay.core.errors.UserError` for an
    address that makes no sense.
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
        # A published address may hold the path already.
        has_path = url.rstrip("/").endswith(PATH.rstrip("/"))
        self._http = HttpTransport(url, "" if has_path else PATH, **reach)
        self._transport = self._http
        self._model, self._own, self._wire = model, own, wire

    async def _ask(self, packet: Packet) -> AgentChoice:
        body = encode_request(packet, model=self._model, own=self._own, wire=self._wire)
        answer = await self._http.exchange(body)
        asked = packet if self._own else None  # questions of the bare contract have no ids
        return read_answer(answer, limit=self._http.max_answer, wire=self._wire, asked=asked)


class SubprocessAgent(ArenaAgent):
    """Runs a command that speaks the AMA contract as JSON lines.

    See :class:`~tradeassay_bench.agents.foreign.transport.PipeTransport` for what the process gets
    and for the kinds of failure. ``parse``, ``schema`` and ``stray`` are added.
    """

    def __init__(self, command: Sequence[str], **reach: Unpack[PipeOptions]) -> None:
        self._pipe = PipeTransport(command, **reach)
        self._transport = self._pipe

    async def _ask(self, packet: Packet) -> AgentChoice:
        line = await self._pipe.exchange(encode_request(packet))
        return read_answer(line, limit=self._pipe.max_answer, asked=packet, must_name=True)


class Decides(Protocol):
    """The method of an agent's class.

    It may return an :class:`AgentChoice`, an action, or the contract's answer.
    """

    def decide(self, packet: Packet) -> Any:
        """Return an action (``"BUY"``), a mapping of the contract, a choice, or an awaitable.

        The mapping has ``recommended_action`` and ``reasoning``.
        """
        ...


class PythonAgent(ArenaAgent):
    """Asks an object in this process: anything with ``decide(packet)``, plain or ``async``.

    Failures are of the kinds ``agent`` (it raised), ``timeout`` and ``schema``.
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

    Raises :class:`UserError` if that fails.
    """
    agent: Decides = load_class(name, "decide(packet)")
    return agent
