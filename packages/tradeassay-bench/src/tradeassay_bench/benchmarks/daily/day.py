"""Implement the daily protocol: one checked decision per session, with limited attempts.

A day is a sans-I/O generator that receives the answers of a rule, a model or a test. The rules for
retries and failures are therefore the same for all agents. :class:`ByObservation` passes the
observation itself to an agent. :class:`Daily` asks a model one question per session, and the model
answers with orders as JSON.

The rules of a conversation with a model:

- Prompts are prose and plain tables, and end with the question.
- A refusal names the changes to make and repeats the form of the answer.
- If an answer has valid and invalid orders, the valid ones are kept. The others count as
  ``dropped``.
- A provider's error and a truncated answer do not use up an attempt.
- Repeating the same wrong answer ends the attempts.
- Only the last refused answer stays in the conversation.
- If there was no answer, the kind of the failure is the cause (``timeout``, ``refused`` ...).
"""

import math
from collections.abc import Callable, Generator, Iterator
from typing import Annotated, get_args

import msgspec
import numpy as np
from msgspec import Meta

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import DataError
from tradeassay.core.measure import Convention
from tradeassay_bench.benchmarks.daily.prompts import PROMPTS
from tradeassay_bench.benchmarks.error_messages import (
    in_plain_words,
    refusal_in_words,
    unknown_fields,
)
from tradeassay_bench.benchmarks.protocol import ModelProtocol, ProtocolConfig, protocols, schema_of
from tradeassay_bench.core.agent import Agent, AskDecision, DayProtocol, EpisodeInfo, Observation
from tradeassay_bench.core.dialogue import AskModel, Dialogue, Given, Message, ModelReply
from tradeassay_bench.core.drive import drive
from tradeassay_bench.core.events import Filled, Rejected
from tradeassay_bench.core.orders import (
    Decision,
    Failure,
    Order,
    OrderKind,
    Side,
    TimeInForce,
    Unit,
)
from tradeassay_bench.llm.prompting import (
    CUT_OFF,
    Abandoned,
    Inquiry,
    Refused,
    Tail,
    answer_object,
    ask_until_read,
    cell,
    left_in_words,
    listed,
    own_words,
    table,
    unreadable,
)
from tradeassay_bench.play.episode import by_observation

_SIDES = frozenset((*get_args(Side), None))
_UNITS = frozenset(get_args(Unit))
_KINDS = frozenset(get_args(OrderKind))
_TIFS = frozenset(get_args(TimeInForce))
_TARGETS = frozenset(("target_weight", "target_value", "target_shares"))
_ROUNDING = 1e-6


def complaint(reply: object, observation: Observation, max_orders: int) -> Failure | None:
    """Return the first mistake in ``reply``, or None.

    The kinds are ``schema`` (not a decision, or a field with a wrong type or value), ``amount``,
    ``symbol`` and ``duplicate``. The function does not check whether the venue would fill an order,
    because a refusal by the venue is an event and not a mistake of form.
    """
    kind, detail = next(_mistakes(reply, observation, max_orders), ("", ""))
    return Failure(kind=kind, detail=detail) if kind else None


def _mistakes(
    reply: object, observation: Observation, max_orders: int
) -> Iterator[tuple[str, str]]:
    """Yield mistakes as (kind, description). The caller uses only the first."""
    # Types must match exactly, because the journal cannot store a subclass or a numpy number.
    if type(reply) is not Decision:
        yield "schema", f"the answer is a {type(reply).__name__}, not a Decision"
        return
    if reply.status not in ("ok", "failed"):
        yield "schema", f"status {reply.status!r} is neither 'ok' nor 'failed'"
    if type(reply.reason) is not str:
        yield "schema", "reason must be a text"
    if type(reply.failures) is not tuple or not all(type(f) is Failure for f in reply.failures):
        yield "schema", "failures must be a tuple of Failure"
    if type(reply.orders) is not tuple:
        yield "schema", f"orders must be a tuple, not a {type(reply.orders).__name__}"
    if len(reply.orders) > max_orders:
        yield "schema", f"{len(reply.orders)} orders; at most {max_orders} are taken"
    if reply.status == "failed":
        return
    seen: set[str] = set()
    for order in reply.orders:
        yield from _mistakes_of_order(order)
        # With margin a position may exceed the account. The venue decides by how much.
        if (
            order.unit == "target_weight"
            and order.amount > 1.0 + _ROUNDING
            and observation.rules.long_only
        ):
            yield (
                "amount",
                f"{order.symbol}: a target_weight of {order.amount:g} is more than the account",
            )
        if order.symbol in seen:
            yield "duplicate", f"{order.symbol}: more than one order; send one per symbol"
        seen.add(order.symbol)
        try:
            observation.view.column(order.symbol)
        except DataError:
            yield "symbol", f"{order.symbol}: no such symbol in this market"


def _mistakes_of_order(order: object) -> Iterator[tuple[str, str]]:
    """Yield the mistakes of one order. For speed, a plain market order skips most checks."""
    if type(order) is not Order:
        yield "schema", f"an order is a {type(order).__name__}, not an Order"
        return
    if type(order.symbol) is not str or not order.symbol:
        yield "schema", "an order has no symbol"
    name = order.symbol
    try:
        known = (
            order.unit in _UNITS
            and order.side in _SIDES
            and order.kind in _KINDS
            and order.tif in _TIFS
        )
    except TypeError:  # a list or a dict instead of a text
        known = False
    if not known:
        words = f"{name}: unknown unit, side, kind or tif"
        yield "schema", f"{words} ({order.unit!r}, {order.side!r}, {order.kind!r}, {order.tif!r})"
    if not _is_number(order.amount):
        yield "amount", f"{name}: amount {order.amount!r} is no finite plain number"
    if order.unit not in _TARGETS:
        if order.side is None:
            yield "schema", f"{name}: an order in {order.unit} needs a side"
        if order.amount <= 0:
            yield "amount", f"{name}: amount {order.amount} must be positive"
    if order.kind != "market" or order.limit_price is not None or order.stop_price is not None:
        for field, price, kind in (
            ("limit_price", order.limit_price, "limit"),
            ("stop_price", order.stop_price, "stop"),
        ):
            if order.kind == kind and price is None:
                yield "schema", f"{name}: a {kind} order needs a {field}"
            if price is not None and order.kind != kind:
                yield "schema", f"{name}: a {order.kind} order takes no {field}"
            if price is not None and not (_is_number(price) and price > 0):
                yield "amount", f"{name}: {field} {price!r} is no positive number"
    if order.confidence is not None and not (
        _is_number(order.confidence) and 0 <= order.confidence <= 1
    ):
        yield "amount", f"{name}: confidence {order.confidence!r} is not in 0 to 1"
    if type(order.reason) is not str:
        yield "schema", f"{name}: reason must be a text"


def _is_number(value: object) -> bool:
    # The journal is read back as floats, which are not exact for integers beyond 2**53.
    if type(value) is int:
        return abs(value) <= 2**53
    return type(value) is float and math.isfinite(value)


class DayConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limits of a day. ``max_orders`` protects the journal from a faulty agent."""

    attempts: Annotated[int, Meta(ge=1)] = 3
    max_orders: Annotated[int, Meta(ge=1)] = 2_000


DEFAULT = DayConfig()
"""The limits of a day if the benchmark states none."""


def day(
    observation: Observation, config: DayConfig = DEFAULT
) -> Generator[AskDecision, Decision | Failure, Decision]:
    """Request one decision and return it.

    A malformed answer is refused with the reason. After ``config.attempts`` attempts the day ends
    with ``status="failed"``. Every refused attempt is stored in ``failures``, even if a later one
    was accepted. A decision with the status ``failed`` (the agent raised or cannot run here) is
    final. A :class:`Failure` as an answer means that the attempt returned no decision.
    """
    failures: list[Failure] = []
    feedback: str | None = None
    for attempt in range(1, config.attempts + 1):
        reply = yield AskDecision(observation, attempt, feedback)
        if isinstance(reply, Failure):
            failure: Failure | None = reply
        else:
            failure = complaint(reply, observation, config.max_orders)
        if failure is None:
            assert isinstance(reply, Decision)
            if failures:
                reply = msgspec.structs.replace(reply, failures=(*failures, *reply.failures))
            return reply
        failures.append(failure)
        feedback = f"{failure.detail} (attempt {attempt} of {config.attempts})"
    return Decision(status="failed", reason="no usable answer", failures=tuple(failures))


class ByObservation:
    """The daily protocol for agents that see the observation itself.

    Implements :class:`~tradeassay_bench.play.episode.Conversation`. The protocol has no randomness
    and keeps no state between days.
    """

    def __init__(self, config: DayConfig) -> None:
        self._config = config

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None: ...

    def dialogue(self, observation: Observation) -> DayProtocol:
        return day(observation, self._config)

    def remember(self, observation: Observation, decision: Decision) -> None: ...


def play_day(protocol: DayProtocol, agent: Agent) -> Decision:
    """Answer the protocol's requests with ``agent`` and return the decision.

    An exception in the agent becomes a failed decision of kind ``agent``. The run continues.
    """
    return drive(protocol, by_observation(agent))


SPANS = (1, 5, 20, 60)
"""Periods, in sessions, of the returns in a model's tables."""
DROPPED = "dropped"
FORM = (
    '{"orders": [{"symbol": "<symbol>", "unit": "target_weight", "amount": <weight>, "reason": '
    '"<why>"}], '
    '"reason": "<what you are doing>"}'
)
"""The form of an answer. The text is not valid JSON and has no symbol, so that a copy of it trades
nothing.
"""
_FIELDS = tuple(field.name for field in msgspec.structs.fields(Order))
_CHOICES = {
    "unit": "target_weight, target_value, target_shares, shares or dollars",
    "side": "BUY or SELL",
    "kind": "market, limit or stop",
    "tif": "day or gtc",
    "amount": "a number",
}


class DailyConfig(ProtocolConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of the daily protocol.

    ``names`` is the maximum number of names in the table of names to buy. The names with the
    largest traded amount in the last session are selected. Holdings are always included.
    """

    convention: Convention = "corrected"
    attempts: Annotated[int, Meta(ge=1, le=1_000)] = DEFAULT.attempts
    max_orders: Annotated[int, Meta(ge=1, le=10_000)] = DEFAULT.max_orders
    names: Annotated[int, Meta(ge=1, le=10_000)] = 150
    temperature: Annotated[float, Meta(ge=0, le=2)] = 0.0
    max_tokens: Annotated[int, Meta(ge=1, le=10_000_000)] = 4_096
    timeout_s: Annotated[float, Meta(gt=0, le=604_800)] = 120.0


class RulesShown(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of the market. Costs are fractions of the traded value. Null means no limit."""

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
    """A position, valued at its last mark."""

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
    """The data of one session that a model sees."""

    session: str
    step: int
    cash: float
    nav: float
    positions: tuple[HoldingShown, ...]
    since_last_session: tuple[str, ...]
    names: tuple[NameShown, ...]


class OrdersAsked(msgspec.Struct, frozen=True, kw_only=True):
    """The form of an answer. Unknown fields are ignored."""

    orders: list[Order]
    reason: str = ""


SCHEMA = schema_of(OrdersAsked)


@protocols.register("daily")
class Daily(ModelProtocol):
    """The daily protocol for models.

    The protocol has no randomness and keeps no state between days.
    """

    Config = DailyConfig
    prompts = PROMPTS.files
    shown = (RulesShown, SessionShown)

    def __init__(self, config: DailyConfig | None = None) -> None:
        self.config = DailyConfig() if config is None else config

    def dialogue(self, observation: Observation) -> Dialogue:
        """Return the dialogue of one day. It repeats no messages of earlier days."""
        given = self._given(observation)
        opening = self._opening(observation, given)
        failures: list[Failure] = []

        def count(kind: str, detail: str) -> None:
            failures.append(Failure(kind=kind, detail=detail))

        def again(reply: ModelReply, refused: Refused, left: int) -> Tail:
            nonlocal given
            details = {"failures": [{"detail": line} for line in refused.lines]}
            feedback = msgspec.json.encode(details).decode()
            given = msgspec.structs.replace(given, feedback=feedback)
            words = {"wrong": listed(refused.lines), "left": left_in_words(left), "form": FORM}
            return (*own_words(reply), Message(role="user", text=PROMPTS.fill("again", **words)))

        def cut(reply: ModelReply) -> Tail:
            count(CUT_OFF, "the answer was cut off at the token limit")
            return (Message(role="user", text=PROMPTS.fill("cut", form=FORM)),)

        inquiry = Inquiry(
            ask=lambda tail, attempt: AskModel(
                purpose="orders", messages=(*opening, *tail), attempt=attempt, given=given
            ),
            read=lambda reply: self._read(reply.text, observation),
            on_refusal=again,
            on_cut=cut,
            record=count,
            attempts=self.config.attempts,
            silences=self.config.attempts,
        )
        try:
            orders, reason, dropped = yield from ask_until_read(inquiry)
        except Abandoned as abandoned:
            return Decision(status="failed", reason=str(abandoned), failures=tuple(failures))
        failures += [Failure(kind=DROPPED, detail=line) for line in dropped]
        return Decision(orders=orders, reason=reason, failures=tuple(failures))

    def _read(self, text: str, seen: Observation) -> tuple[tuple[Order, ...], str, tuple[str, ...]]:
        """Return the valid orders, the reason, and the mistakes of the other orders.

        Raises :class:`Refused` if the answer cannot be read or no order is valid.
        """
        body = answer_object(text, "orders")
        if body is None:
            raise Refused(
                "schema", f"the answer holds no JSON object that can be read: {unreadable(text)}"
            )
        raw = body.get("orders")
        if not isinstance(raw, list):
            unknown = unknown_fields(body, ("orders", "reason"))
            suffix = f"; there is no field {', '.join(unknown[:5])}" if unknown else ""
            problem = "orders must be a list" if "orders" in body else "orders is missing"
            raise Refused("schema", f"{problem}{suffix}")
        kept: list[Order] = []
        wrong: list[str] = []
        for number, item in enumerate(raw[: self.config.max_orders], start=1):
            try:
                order = msgspec.convert(item, Order)
            except msgspec.ValidationError as error:
                problem = in_plain_words(str(error), fields=_FIELDS, choices=_CHOICES)
                wrong.append(f"order {number}: {problem}")
                continue
            # The journal stores floats.
            order = msgspec.structs.replace(order, amount=float(order.amount))
            failure = complaint(Decision(orders=(*kept, order)), seen, self.config.max_orders)
            if failure is None:
                kept.append(order)
            else:
                wrong.append(failure.detail)
        if wrong and not kept:
            raise Refused("schema", *wrong)
        reason = body.get("reason")
        return tuple(kept), reason if isinstance(reason, str) else "", tuple(wrong)

    def _opening(self, seen: Observation, given: Given) -> tuple[Message, ...]:
        """Return the system message and the day's question, rendered from the payload ``given``."""
        rules = seen.rules
        lines = ["Only names in the table can be bought; what you hold can always be sold."]
        if rules.long_only:
            lines.append("You can only buy and sell what you hold: no borrowing, no short sales.")
        if rules.t_plus_1:
            lines.append("What was bought in a session cannot be sold before the next one.")
        if rules.lot != 1.0:
            lines.append(
                f"Purchases are made in multiples of {rules.lot:g}; the rest of an order is left "
                "out."
            )
        else:
            lines.append("Shares are whole; the rest of an order is left out.")
        if rules.max_weight is not None:
            lines.append(f"No purchase may bring a name above a weight of {rules.max_weight:g}.")
        if rules.max_positions is not None:
            lines.append(f"At most {rules.max_positions} names can be held at once.")
        system = PROMPTS.fill(
            "system",
            buy_cost=f"{rules.buy_cost * 100:g} %",
            sell_cost=f"{rules.sell_cost * 100:g} %",
            rules="\n".join(f"- {line}" for line in lines),
        )
        shown = msgspec.json.decode(given.observation)
        positions, only = "You hold nothing.", "You hold nothing, so nothing can be sold."
        if shown["positions"]:
            heads = ("symbol", "shares", "value", "weight", "sessions held")
            positions = "You hold:\n" + table(
                heads, (tuple(row.values()) for row in shown["positions"])
            )
            only = (
                "Only what you hold can be sold: "
                f"{', '.join(row['symbol'] for row in shown['positions'])}."
            )
        fates = "".join(f"- {line}\n" for line in _order_outcomes(seen, refusal_in_words))
        columns = (
            "symbol",
            "close",
            "return 1",
            "return 5",
            "return 20",
            "return 60",
            "trades today",
        )
        user = PROMPTS.fill(
            "day",
            session=seen.session,
            left=seen.sessions_left,
            currency=rules.currency,
            cash=f"{shown['cash']:.2f}",
            nav=f"{shown['nav']:.2f}",
            positions=positions,
            happened=f"\nSince the last session:\n{fates}" if fates else "",
            names=table(columns, (tuple(map(cell, row.values())) for row in shown["names"])),
            held=only if rules.long_only else "",
            form=FORM,
        )
        return Message(role="system", text=system), Message(role="user", text=user)

    def _given(self, seen: Observation) -> Given:
        """Return the question as data: rules, observation and the schema of the answer."""
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


def show_day(seen: Observation, most: int) -> SessionShown:
    """Return the data that a model sees in a session.

    The data contains the account, the outcome of the last orders and at most ``most`` names that
    may be bought. Prices are split-adjusted to today's shares.
    """
    view, account = seen.view, seen.account
    closes = view.bars("close", SPANS[-1] + 1)
    traded = closes[-1] * view.bars("volume", 1)[-1] if len(closes) else np.zeros(len(view.symbols))
    order = np.argsort(-np.nan_to_num(traded[seen.columns]), kind="stable")[:most]
    held = (k for k, name in enumerate(seen.universe) if name in account.positions)
    shown = [(seen.universe[k], int(seen.columns[k])) for k in sorted({*order.tolist(), *held})]
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
        since_last_session=tuple(_order_outcomes(seen)),
        names=tuple(
            _name(symbol, closes[:, column], bool(tradable[column])) for symbol, column in shown
        ),
    )


def _name(symbol: str, closes: Floats, tradable: bool) -> NameShown:
    """Return a name's row of the table: its last close and its returns.

    Unknown numbers are None.
    """

    def known(value: float) -> float | None:
        return round(value, 4) if math.isfinite(value) else None

    last = float(closes[-1]) if len(closes) else math.nan
    spans = {
        f"r{span}": float(closes[-1 - span]) if len(closes) > span else math.nan for span in SPANS
    }
    returns = {
        name: known(last / before - 1.0 if before else math.nan) for name, before in spans.items()
    }
    return NameShown(symbol=symbol, close=known(last), tradable=tradable, **returns)


def _order_outcomes(seen: Observation, worded: Callable[[str], str] = str) -> list[str]:
    """Return the outcomes of the last orders as sentences.

    ``worded`` converts the venue's reason for a refusal to words.
    """
    lines = []
    for event in seen.since_last:
        if isinstance(event, Filled):
            side = "bought" if event.quantity > 0 else "sold"
            lines.append(f"{side} {abs(event.quantity):g} {event.symbol} at {event.price:g}")
        elif isinstance(event, Rejected):
            lines.append(f"the order for {event.symbol} was refused: {worded(event.reason)}")
    return lines
