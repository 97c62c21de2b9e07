"""The daily protocol as a conversation: one question per session, answered with orders as JSON.

What is wrong with an answer, how often it may be retried and when a day has failed is decided by :func:`day`, as
it is for agents that see the observation itself. An answer without such an object is a failure of the kind
``schema``; when no answer came, the kind says why (``timeout``, ``refused`` ...).
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec
import numpy as np
from msgspec import Meta

from tradeassay.benchmarks.daily.day import DayConfig, day
from tradeassay.benchmarks.daily.prompts import PROMPTS
from tradeassay.benchmarks.protocol import ProtocolConfig, protocols, schema_of
from tradeassay.core.agent import EpisodeInfo, Observation
from tradeassay.core.badges import Convention
from tradeassay.core.dialogue import AskModel, Dialogue, Given, Message, ModelReply, ToolSpec
from tradeassay.core.drive import Ended, advance
from tradeassay.core.events import Filled, Rejected
from tradeassay.core.orders import Decision, Failure, Order
from tradeassay.llm.prompting import answer_object

PURPOSE = "orders"
SPANS = (1, 5, 20, 60)
"""Sessions over which returns are shown."""
BP = 10_000.0
FINAL = frozenset(("over_budget",))
"""Kinds of error after which asking again is pointless."""
_DAY = DayConfig()


class DailyConfig(ProtocolConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a model plays a daily benchmark.

    ``names`` bounds how many names that may be bought are shown, the most traded ones of the last session first;
    holdings are always shown.
    """

    convention: Convention = "sound"
    attempts: Annotated[int, Meta(ge=1)] = _DAY.attempts
    max_orders: Annotated[int, Meta(ge=1)] = _DAY.max_orders
    names: Annotated[int, Meta(ge=1)] = 150
    temperature: Annotated[float, Meta(ge=0)] = 0.0
    max_tokens: Annotated[int, Meta(ge=1)] = 4_096
    timeout_s: Annotated[float, Meta(gt=0)] = 120.0


class RulesShown(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of the market. Costs are shares of what is traded; null is "no such limit"."""

    long_only: bool
    lot: float
    sold_the_next_session_at_the_earliest: bool
    max_weight: float | None
    max_positions: int | None
    buy_cost: float
    sell_cost: float
    max_orders: int
    attempts: int


class HoldingShown(msgspec.Struct, frozen=True, kw_only=True):
    """A position, at its last mark."""

    symbol: str
    shares: float
    value: float
    weight: float
    sessions_held: int


class NameShown(msgspec.Struct, frozen=True, kw_only=True):
    """A name that may be bought, with its last close and its returns over some sessions."""

    symbol: str
    close: float | None
    r1: float | None
    r5: float | None
    r20: float | None
    r60: float | None
    tradable: bool


class SessionShown(msgspec.Struct, frozen=True, kw_only=True):
    """What a model is shown of one session."""

    session: str
    step: int
    cash: float
    nav: float
    positions: tuple[HoldingShown, ...]
    since_last_session: tuple[str, ...]
    names: tuple[NameShown, ...]


class OrdersAsked(msgspec.Struct, frozen=True, kw_only=True):
    """The form of an answer. Fields that nobody asked for are not read."""

    orders: list[Order]
    reason: str = ""


SCHEMA = schema_of(OrdersAsked)


@protocols.register("daily")
class Daily:
    """The conversation rules of one episode. See :class:`~tradeassay.benchmarks.protocol.ModelProtocol`."""

    Config: ClassVar[type[ProtocolConfig]] = DailyConfig
    prompts: ClassVar[tuple[str, ...]] = PROMPTS.files
    tools: ClassVar[tuple[ToolSpec, ...]] = ()

    def __init__(self, config: DailyConfig | None = None) -> None:
        self.config = DailyConfig() if config is None else config

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        """Start an episode; nothing is random."""

    def remember(self, observation: Observation, decision: Decision) -> None:
        """Nothing outlives a day: the account shows what came of it."""

    def dialogue(self, observation: Observation) -> Dialogue:
        """Ask for one day's orders; its messages start afresh every day."""
        config = self.config
        given = self._given(observation)
        messages = self._opening(observation, given)
        asking = day(observation, DayConfig(attempts=config.attempts, max_orders=config.max_orders))
        now = advance(asking)
        while not isinstance(now, Ended):
            if now.feedback is not None:
                feedback = msgspec.json.encode({"failures": [{"detail": now.feedback}]}).decode()
                given = msgspec.structs.replace(given, feedback=feedback)
            reply = yield AskModel(purpose=PURPOSE, messages=messages, attempt=now.attempt, given=given)
            if reply.error_kind in FINAL:
                failure = Failure(kind=str(reply.error_kind), detail=reply.error or "no answer")
                return Decision(status="failed", reason="the model cannot be asked any more", failures=(failure,))
            now = advance(asking, read_orders(reply))
            if not isinstance(now, Ended) and reply.error_kind is None:
                own = (Message(role="assistant", text=reply.text),) if reply.text.strip() else ()
                again = Message(role="user", text=PROMPTS.fill("again", feedback=now.feedback))
                messages = (*messages, *own, again)
        return now.result

    def _opening(self, seen: Observation, given: Given) -> tuple[Message, ...]:
        rules = seen.rules
        system = PROMPTS.fill("system", buy_bps=f"{rules.buy_cost * BP:g}", sell_bps=f"{rules.sell_cost * BP:g}")
        user = PROMPTS.fill(
            "day",
            session=seen.session,
            left=seen.sessions_left,
            currency=rules.currency,
            rules=given.rules,
            observation=given.observation,
        )
        return Message(role="system", text=system), Message(role="user", text=user)

    def _given(self, seen: Observation) -> Given:
        rules = seen.rules
        shown = RulesShown(
            long_only=rules.long_only,
            lot=rules.lot,
            sold_the_next_session_at_the_earliest=rules.t_plus_1,
            max_weight=rules.max_weight,
            max_positions=rules.max_positions,
            buy_cost=rules.buy_cost,
            sell_cost=rules.sell_cost,
            max_orders=self.config.max_orders,
            attempts=self.config.attempts,
        )
        return Given(
            session=seen.session,
            rules=msgspec.json.encode(shown).decode(),
            observation=msgspec.json.encode(show_day(seen, self.config.names)).decode(),
            answer_schema=SCHEMA,
        )


def read_orders(reply: ModelReply) -> Decision | Failure:
    """Return what a model wrote as a decision, or why there is none."""
    if reply.error is not None or reply.error_kind is not None:
        return Failure(kind=reply.error_kind or "unreachable", detail=reply.error or "no answer")
    body = answer_object(reply.text, "orders")
    if body is None:
        cut = "; it was cut off at the token limit" if reply.stop == "length" else ""
        return Failure(kind="schema", detail=f"the answer holds no JSON object{cut}")
    try:
        asked = msgspec.convert(body, OrdersAsked)
    except msgspec.ValidationError as error:
        return Failure(kind="schema", detail=str(error))
    return Decision(orders=tuple(asked.orders), reason=asked.reason)


def show_day(seen: Observation, most: int) -> SessionShown:
    """Return what can be known now: the account, the fate of the last orders, and the names that may be bought.

    Prices are split-adjusted to today's share.
    """
    view, account = seen.view, seen.account
    closes = view.bars("close", SPANS[-1] + 1)
    traded = closes[-1] * view.bars("volume", 1)[-1] if len(closes) else np.zeros(len(view.symbols))
    order = np.argsort(-np.nan_to_num(traded[seen.columns]), kind="stable")[:most]
    shown = sorted({*order.tolist(), *(k for k, name in enumerate(seen.universe) if name in account.positions)})
    tradable = view.tradable()
    return SessionShown(
        session=seen.session,
        step=seen.step,
        cash=round(account.cash, 2),
        nav=round(account.nav, 2),
        positions=tuple(
            HoldingShown(
                symbol=symbol,
                shares=round(position.quantity, 6),
                value=round(position.value, 2),
                weight=round(account.weight(symbol), 4),
                sessions_held=position.held,
            )
            for symbol, position in account.positions.items()
        ),
        since_last_session=tuple(_happened(seen)),
        names=tuple(
            _name(seen.universe[k], closes[:, int(seen.columns[k])], bool(tradable[int(seen.columns[k])]))
            for k in shown
        ),
    )


def _name(symbol: str, closes: np.ndarray[tuple[int], np.dtype[np.float64]], tradable: bool) -> NameShown:
    last = float(closes[-1]) if len(closes) else float("nan")
    spans = {f"r{span}": float(closes[-1 - span]) if len(closes) > span else float("nan") for span in SPANS}
    returns = {name: _known(last / before - 1.0 if before else float("nan")) for name, before in spans.items()}
    return NameShown(symbol=symbol, close=_known(last), tradable=tradable, **returns)


def _known(value: float) -> float | None:
    return round(value, 4) if np.isfinite(value) else None


def _happened(seen: Observation) -> list[str]:
    """Return the fate of the last orders, in words."""
    found = []
    for event in seen.since_last:
        if isinstance(event, Filled):
            side = "bought" if event.quantity > 0 else "sold"
            found.append(f"{side} {abs(event.quantity):g} {event.symbol} at {event.price:g}")
        elif isinstance(event, Rejected):
            found.append(f"the order for {event.symbol} was refused: {event.reason}")
    return found
