"""The daily protocol: one decision per session, checked, asked for again with the reason, then counted as failed.

A day is a sans-I/O generator: a rule, a model or a test sends it the answers. Retry and failure rules therefore
exist once, for all agents.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Annotated, get_args

import msgspec
import numpy as np
from msgspec import Meta

from tradeassay.core.agent import Agent, AskDecision, DayProtocol, EpisodeInfo, Observation
from tradeassay.core.drive import drive as _drive
from tradeassay.core.errors import DataError
from tradeassay.core.orders import Decision, Failure, Order, OrderKind, Side, TimeInForce, Unit
from tradeassay.play.episode import broken, by_observation

_SIDES = frozenset((*get_args(Side), None))
_UNITS = frozenset(get_args(Unit))
_KINDS = frozenset(get_args(OrderKind))
_TIFS = frozenset(get_args(TimeInForce))
_TARGETS = frozenset(("target_weight", "target_value", "target_shares"))
_ROUNDING = 1e-6


def complaint(reply: object, observation: Observation, max_orders: int) -> Failure | None:
    """Return the first thing wrong with ``reply``, or None.

    Kinds: ``schema`` (not a decision, or a field of a wrong type or value), ``amount``, ``symbol``, ``duplicate``.
    Whether the venue would fill an order is not judged here: a refusal there is an event, not a mistake of form.
    """
    # Exact types, here and below: a subclass or a numpy number cannot be written to the journal as it is.
    if type(reply) is not Decision:
        return Failure(kind="schema", detail=f"the answer is a {type(reply).__name__}, not a Decision")
    wrong = _shape(reply, max_orders)
    if wrong is not None or reply.status == "failed":
        return wrong
    seen: set[str] = set()
    column = observation.view.column
    for order in reply.orders:
        wrong = _order(order)
        if wrong is not None:
            return wrong
        # On margin more than the account may be held; how much is the venue's answer.
        if order.unit == "target_weight" and order.amount > 1.0 + _ROUNDING and observation.rules.long_only:
            detail = f"{order.symbol}: a target_weight of {order.amount:g} is more than the account"
            return Failure(kind="amount", detail=detail)
        if order.symbol in seen:
            return Failure(kind="duplicate", detail=f"{order.symbol}: more than one order; send one per symbol")
        seen.add(order.symbol)
        try:
            column(order.symbol)
        except DataError:
            return Failure(kind="symbol", detail=f"{order.symbol}: no such symbol in this market")
    return None


def _shape(reply: Decision, max_orders: int) -> Failure | None:
    if reply.status not in ("ok", "failed"):
        return Failure(kind="schema", detail=f"status {reply.status!r} is neither 'ok' nor 'failed'")
    if type(reply.reason) is not str:
        return Failure(kind="schema", detail="reason must be a text")
    if type(reply.failures) is not tuple or not all(type(f) is Failure for f in reply.failures):
        return Failure(kind="schema", detail="failures must be a tuple of Failure")
    if type(reply.orders) is not tuple:
        return Failure(kind="schema", detail=f"orders must be a tuple, not a {type(reply.orders).__name__}")
    if len(reply.orders) > max_orders:
        return Failure(kind="schema", detail=f"{len(reply.orders)} orders; at most {max_orders} are taken")
    return None


def _order(order: object) -> Failure | None:
    """Check one order; the common case (a plain market order) passes the first few tests only."""
    if type(order) is not Order:
        return Failure(kind="schema", detail=f"an order is a {type(order).__name__}, not an Order")
    if type(order.symbol) is not str or not order.symbol:
        return Failure(kind="schema", detail="an order has no symbol")
    if not _is_one_of_ours(order):
        return Failure(
            kind="schema",
            detail=f"{order.symbol}: unknown unit, side, kind or tif "
            f"({order.unit!r}, {order.side!r}, {order.kind!r}, {order.tif!r})",
        )
    if not _is_number(order.amount):
        return Failure(kind="amount", detail=f"{order.symbol}: amount {order.amount!r} is no finite plain number")
    if order.unit not in _TARGETS:
        if order.side is None:
            return Failure(kind="schema", detail=f"{order.symbol}: an order in {order.unit} needs a side")
        if order.amount <= 0:
            return Failure(kind="amount", detail=f"{order.symbol}: amount {order.amount} must be positive")
    if order.kind != "market" or order.limit_price is not None or order.stop_price is not None:
        wrong = _prices(order)
        if wrong is not None:
            return wrong
    if order.confidence is not None and not (_is_number(order.confidence) and 0 <= order.confidence <= 1):
        return Failure(kind="amount", detail=f"{order.symbol}: confidence {order.confidence!r} is not in 0 to 1")
    return (
        None
        if type(order.reason) is str
        else Failure(kind="schema", detail=f"{order.symbol}: reason must be a text")
    )


def _is_one_of_ours(order: Order) -> bool:
    try:
        return order.unit in _UNITS and order.side in _SIDES and order.kind in _KINDS and order.tif in _TIFS
    except TypeError:  # a list or a dict instead of a word
        return False


def _prices(order: Order) -> Failure | None:
    for name, price, wanted in (
        ("limit_price", order.limit_price, order.kind == "limit"),
        ("stop_price", order.stop_price, order.kind == "stop"),
    ):
        if wanted and price is None:
            return Failure(kind="schema", detail=f"{order.symbol}: a {order.kind} order needs a {name}")
        if price is not None and not wanted:
            return Failure(kind="schema", detail=f"{order.symbol}: a {order.kind} order takes no {name}")
        if price is not None and not (_is_number(price) and price > 0):
            return Failure(kind="amount", detail=f"{order.symbol}: {name} {price!r} is no positive number")
    return None


def _is_number(value: object) -> bool:
    # Beyond 2**53 an integer has no exact float, and the journal is read back as floats.
    if type(value) is int:
        return abs(value) <= 2**53
    return type(value) is float and math.isfinite(value)


class DayConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How patient a day is. ``max_orders`` protects the journal from a runaway agent."""

    attempts: Annotated[int, Meta(ge=1)] = 3
    max_orders: Annotated[int, Meta(ge=1)] = 2_000


DEFAULT = DayConfig()


def day(
    observation: Observation, config: DayConfig = DEFAULT
) -> Generator[AskDecision, Decision | Failure, Decision]:
    """Ask for one decision and return it.

    An answer that is malformed goes back with the reason, up to ``config.attempts`` times in all; then the day
    ends with ``status="failed"``. Every refused attempt is kept in ``failures``, even when a later one was good.
    An answer that itself says ``failed`` (the agent broke or cannot play here) is final; a :class:`Failure` stands
    for an attempt that gave no decision at all.
    """
    failures: list[Failure] = []
    feedback: str | None = None
    for attempt in range(1, config.attempts + 1):
        reply = yield AskDecision(observation, attempt, feedback)
        wrong = reply if isinstance(reply, Failure) else complaint(reply, observation, config.max_orders)
        if wrong is None:
            assert isinstance(reply, Decision)
            return msgspec.structs.replace(reply, failures=(*failures, *reply.failures)) if failures else reply
        failures.append(wrong)
        feedback = f"{wrong.detail} (attempt {attempt} of {config.attempts})"
    return Decision(status="failed", reason="no usable answer", failures=tuple(failures))


class ByObservation:
    """The daily protocol of one episode for agents that see the observation itself.

    A :class:`~tradeassay.play.episode.Conversation`; nothing outlives a day.
    """

    def __init__(self, config: DayConfig = DEFAULT) -> None:
        self._config = config

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        """Nothing is drawn."""

    def dialogue(self, observation: Observation) -> DayProtocol:
        return day(observation, self._config)

    def remember(self, observation: Observation, decision: Decision) -> None:
        """Nothing is kept."""


__all__ = ["broken", "drive"]


def drive(protocol: DayProtocol, agent: Agent) -> Decision:
    """Let ``agent`` answer the protocol's requests and return the decision.

    An exception of the agent becomes a failed decision of kind ``agent``: a bad day is data, not a crash.
    """
    return _drive(protocol, by_observation(agent))
