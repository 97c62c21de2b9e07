"""The action: what ``submit_action`` takes, and how it becomes orders."""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from tradeassay.benchmarks.ktdfin.wire import BadArguments, Wire
from tradeassay.benchmarks.ktdfin.words import Stock
from tradeassay.benchmarks.protocol import schema_of
from tradeassay.core.dialogue import ToolSpec
from tradeassay.core.orders import Order

NAME = "submit_action"
_LONGEST_REASON = 2_000
_SPACE = re.compile(r"\s+")


class OrderAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One order of an action. Exactly one of ``target_weight`` and ``shares`` is given."""

    stock_id: Stock
    side: Literal["BUY", "SELL"]
    confidence: Annotated[float, Meta(ge=0, le=1)]
    reason: str
    target_weight: Annotated[float, Meta(ge=0, le=1)] | None = None
    shares: Annotated[float, Meta(gt=0, le=2**53)] | None = None


class Action(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A step's action. No orders means to leave everything as it is."""

    orders: list[OrderAsked]
    overall_reason: str


SUBMIT = ToolSpec(
    name=NAME,
    description=(
        "Submit today's action and end the day. Give every order exactly one of target_weight (share of the "
        "account's value that the position shall have) and shares (how many to trade). An empty list of orders "
        "trades nothing."
    ),
    schema=schema_of(Action),
)


def read_action(raw: str, wire: Wire, min_reason: int) -> tuple[tuple[Order, ...], str]:
    """Return the orders, in true terms, and the overall reason.

    Raises :class:`BadArguments` for anything the schema does not allow and
    :class:`~tradeassay.masking.UnknownAlias` for a name the episode does not have.
    """
    action = wire.decode(raw, Action)
    for at, asked in enumerate(action.orders):
        if (asked.target_weight is None) == (asked.shares is None):
            raise BadArguments(f"give exactly one of target_weight and shares - at `$.orders[{at}]`")
        if len(_plain(asked.reason)) < min_reason:
            raise BadArguments(f"a reason has at least {min_reason} characters - at `$.orders[{at}].reason`")
    if len(_plain(action.overall_reason)) < min_reason:
        raise BadArguments(f"a reason has at least {min_reason} characters - at `$.overall_reason`")
    orders = tuple(_order(asked, wire) for asked in action.orders)
    return orders, wire.gate.incoming(_plain(action.overall_reason)[:_LONGEST_REASON])


def _order(asked: OrderAsked, wire: Wire) -> Order:
    by_weight = asked.target_weight is not None
    amount = asked.target_weight if asked.target_weight is not None else asked.shares
    assert amount is not None
    return wire.gate.real_order(
        Order(
            symbol=wire.stock_id(asked.stock_id),
            amount=float(amount),
            unit="target_weight" if by_weight else "shares",
            side=asked.side,
            confidence=float(asked.confidence),
            reason=_plain(asked.reason)[:_LONGEST_REASON],
        )
    )


def _plain(text: str) -> str:
    """Return a text on one line, without space at its ends."""
    return _SPACE.sub(" ", text).strip()
