"""The arena's wire: what travels between a round and an agent outside it, as the Agent Market Arena defines it.

The request holds the keys of the contract, each mapping the symbol to its part. ``own`` adds what only this agent
may know (its position and past outcomes) and is left out for servers that want the bare contract. Three wires
differ in their shapes: ``tradeassay`` sends items and numbers as they are; ``ama`` what the arena's published
servers take and nothing else (news one string, reports lists of texts and only where there are some, the address
as it stands); ``finmmeval`` has news as a list of strings and momentum as a word, and its servers give no reason.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Unpack

import msgspec

from tradeassay.agents.foreign.transport import (
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
    wants,
)
from tradeassay.core.arena import (
    Action,
    AgentChoice,
    ChoiceFailure,
    NewsShown,
    Packet,
    PeerMessage,
    PricePoint,
    SettledOutcome,
)
from tradeassay.core.errors import UNDECODABLE, UserError
from tradeassay.core.secrets import clean_foreign

PATH = "/trading_action/"

MAX_REQUEST = 1024 * 1024
"""The most bytes in a request."""
MAX_REASONING = 20_000
"""The most characters of reasoning that are kept."""
MAX_MESSAGE = 500
"""The most characters of a public message that are kept."""


class TradingAction(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent may say. Fields nobody knows are ignored, as servers of the contract may send more."""

    recommended_action: Action
    reasoning: str
    confidence: float | None = None
    allocation: float | None = None
    message: str | None = None


class NamedAction(TradingAction, frozen=True, kw_only=True):
    """What is read from a wire: it may say which question it answers."""

    id: str | None = None


class BareAction(NamedAction, frozen=True, kw_only=True):
    """What servers of FinMMEval say: the action, and no reason for it."""

    reasoning: str = ""


_ANSWERS: dict[str, msgspec.json.Decoder[NamedAction]] = {
    wire: msgspec.json.Decoder(BareAction if wire == "finmmeval" else NamedAction, strict=True)
    for wire in ("tradeassay", "ama", "finmmeval")
}
WIRES = tuple(_ANSWERS)


def packet_id(packet: Packet) -> str:
    """Return the name of a question, which a program on a pipe repeats in its answer."""
    return f"{packet.season}/{packet.date}/{packet.symbol}"


class OwnState(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent may know of itself and of the season, beyond the published contract."""

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
    """A packet as it is sent, tables by symbol; a program on a pipe repeats ``id`` in its answer."""

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


def encode_request(packet: Packet, *, model: str = "", own: bool = True, wire: str = "tradeassay") -> bytes:
    """Return the request as JSON; raises :class:`Unusable` (``too_large``) above :data:`MAX_REQUEST` bytes."""
    symbol = packet.symbol
    if wire == "tradeassay":
        shared = {name: getattr(packet, name) for name in OwnState.__struct_fields__} if own else {}
        asked: object = PacketRequest(
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
            own=OwnState(**shared) if own else msgspec.UNSET,
        )
    else:
        told = [f"{item.title}. {item.text}" if item.text else item.title for item in packet.news]
        bare: dict[str, Any] = {
            "date": packet.date,
            "price": {symbol: packet.price},
            "news": {symbol: told if wire == "finmmeval" else "\n\n".join(told)},
            "symbol": [symbol],
            "model": model,
            "history_price": {symbol: packet.history},
        }
        if packet.momentum is not None and wire == "finmmeval":
            word = "bullish" if packet.momentum > 0 else "bearish" if packet.momentum < 0 else "neutral"
            bare["momentum"] = {symbol: word}
        for key, report in (("10k", packet.annual_report), ("10q", packet.quarterly_report)):
            if report:
                bare[key] = {symbol: [report]}
        asked = bare
    body = msgspec.json.encode(asked)
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
    """Return an agent's answer as a choice; raises :class:`Unusable` for anything else.

    Kinds: ``too_large``, ``parse`` (not JSON), ``schema`` (JSON of another shape, or a number out of range), and
    ``stray`` (it names another question than the one that was ``asked``)."""
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
    """Return a choice from an answer; raises :class:`Unusable` (``schema``) for a share outside 0 to 1."""
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
    """Return a text without control characters and lone surrogates, which no database or page should get."""
    return "".join(c for c in text if c in "\n\t" or ((c.isprintable() or c.isspace()) and c >= " "))


class ArenaAgent(ABC):
    """An agent outside, asked over a wire. Every failure is a choice that holds and says what went wrong."""

    _transport: Transport | None = None

    async def decide(self, packet: Packet) -> AgentChoice:
        """Ask the agent; never raises for anything it does. After a failure the transport is reset."""
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
    """Asks a server of the AMA contract: ``POST /trading_action/``. Needs ``[arena]``.

    Failures are of the kinds of :class:`~tradeassay.agents.foreign.transport.HttpTransport` and ``schema``.
    ``own`` adds the agent's position and outcomes to the contract's keys; ``reach`` goes to the transport. The
    constructor raises :class:`~tradeassay.core.errors.UserError` for an address that makes no sense."""

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
            raise UserError(f"there is no wire '{wire}'", hint=f"one of {', '.join(WIRES)}")
        # An address in its published form names the path itself.
        whole = url.rstrip("/").endswith(PATH.rstrip("/"))
        self._transport = self._http = HttpTransport(url, "" if whole else PATH, **reach)
        self._model, self._own, self._wire = model, own, wire

    async def _ask(self, packet: Packet) -> AgentChoice:
        body = encode_request(packet, model=self._model, own=self._own, wire=self._wire)
        said = await self._http.exchange(body)
        asked = packet if self._own else None  # the bare contract has no names for its questions
        return read_answer(said, limit=self._http.max_answer, wire=self._wire, asked=asked)


class SubprocessAgent(ArenaAgent):
    """Runs a command that speaks the AMA contract as JSON lines. See
    :class:`~tradeassay.agents.foreign.transport.PipeTransport` for what the process gets and for the kinds of
    failure; ``parse``, ``schema`` and ``stray`` are added."""

    def __init__(self, command: Sequence[str], **reach: Unpack[PipeOptions]) -> None:
        self._transport = self._pipe = PipeTransport(command, **reach)

    async def _ask(self, packet: Packet) -> AgentChoice:
        line = await self._pipe.exchange(encode_request(packet))
        return read_answer(line, limit=self._pipe.max_answer, asked=packet, must_name=True)


class Decides(Protocol):
    """What an agent's class must have. It may return a :class:`AgentChoice`, a word, or the contract's answer."""

    def decide(self, packet: Packet) -> Any:
        """Return ``"BUY"``, a mapping with ``recommended_action`` and ``reasoning``, a choice, or an awaitable."""
        ...


class PythonAgent(ArenaAgent):
    """Asks an object in this process: anything with ``decide(packet)``, plain or ``async``. Failures are of the
    kinds ``agent`` (it raised), ``timeout`` and ``schema``."""

    def __init__(self, agent: Decides, *, timeout_s: float = TIMEOUT_S) -> None:
        wants(agent, "decide(packet)")
        self._caller = PythonCaller(agent.decide, timeout_s=timeout_s)

    async def _ask(self, packet: Packet) -> AgentChoice:
        said = await self._caller.call(packet)
        if isinstance(said, AgentChoice):
            return said
        if isinstance(said, str):
            said = {"recommended_action": said, "reasoning": ""}
        if not isinstance(said, Mapping):
            raise Unusable("schema", f"the answer is a {type(said).__name__}, not a choice")
        try:
            return to_choice(msgspec.convert(dict(said), TradingAction, strict=True))
        except msgspec.ValidationError as error:
            raise Unusable("schema", str(error)) from error


def load_agent(name: str) -> Decides:
    """Import ``package.module:Class`` and make one; raises :class:`UserError` when that does not work."""
    found: Decides = load_class(name, "decide(packet)")
    return found
