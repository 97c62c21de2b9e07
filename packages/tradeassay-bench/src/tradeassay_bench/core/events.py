"""Define the events of an account as a tagged union of immutable structs.

Replaying the events reproduces the account's state.

Signs: ``quantity`` in a :class:`Filled` is positive for a purchase and negative for a sale. Every
``cash`` is the exact change of the cash account, so the sum of ``cash`` over a journal is the
balance.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from tradeassay_bench.core.orders import Decision

# The terms of an account. The ledger enforces them.


class AccountTerms(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The rules by which a ledger checks an account.

    ``t_plus_1``: shares bought in a session cannot be sold in the same session. ``margin``: cash
    and positions may be negative. In a margin account, equity must cover the maintenance rates
    times the long and short exposure at every mark, unless the session has a margin call. A cash
    account (the default) never has negative cash or a negative position.
    """

    t_plus_1: bool = False
    margin: bool = False
    maintenance_long: float = 0.0
    maintenance_short: float = 0.0


RejectReason = Literal[
    "unknown_symbol",
    "not_in_universe",
    "bad_amount",
    "bad_price",
    "side_contradicts_target",
    "no_change",
    "suspended",
    "not_listed",
    "no_price",
    "limit_up",
    "limit_down",
    "t_plus_1",
    "lot",
    "below_minimum",
    "insufficient_cash",
    "insufficient_shares",
    "no_shorting",
    "no_borrow",
    "margin",
    "max_weight",
    "max_positions",
    "no_volume",
    "unsupported",
]


class Deposited(msgspec.Struct, frozen=True, tag="deposited", gc=False, omit_defaults=True):
    """The initial deposit of an account, with the account's terms."""

    cash: float
    terms: AccountTerms = AccountTerms()


class Filled(msgspec.Struct, frozen=True, tag="filled", gc=False, omit_defaults=True):
    """A trade.

    ``cash`` = -(quantity x price x multiplier) - fee - tax. ``price`` includes slippage,
    ``reference`` does not. ``forced`` marks a cover or liquidation by the venue.
    """

    order_id: str
    symbol: str
    quantity: float
    price: float
    reference: float
    fee: float
    tax: float
    cash: float
    forced: bool = False
    multiplier: float = 1.0


class Rejected(msgspec.Struct, frozen=True, tag="rejected", gc=False):
    """An order, or the remainder of an order, that the venue refused."""

    order_id: str
    symbol: str
    reason: RejectReason
    detail: str
    quantity: float | None = None


class Trimmed(msgspec.Struct, frozen=True, tag="trimmed", gc=False):
    """An order that was cut to a smaller quantity, with the reason (volume, lots, cash ...)."""

    order_id: str
    symbol: str
    asked: float
    filled: float
    reason: RejectReason


class Rested(msgspec.Struct, frozen=True, tag="rested", gc=False):
    """A good-till-cancelled order, or its unfilled remainder, that rests until a later session."""

    order_id: str
    symbol: str
    quantity: float


class Expired(msgspec.Struct, frozen=True, tag="expired", gc=False):
    """An order that ended without a fill.

    A day order expires if its price was not reached. A resting order expires if a new order
    supersedes it, or if its name is split or delisted.
    """

    order_id: str
    symbol: str


class DividendPaid(msgspec.Struct, frozen=True, tag="dividend", gc=False):
    """Cash dividend on the ex-date (negative ``cash`` for a short position)."""

    symbol: str
    per_share: float
    quantity: float
    cash: float


class SplitApplied(msgspec.Struct, frozen=True, tag="split", gc=False):
    """A split that multiplied a holding by ``ratio``, to ``quantity`` shares.

    A remainder of less than the smallest step is paid out in ``cash``.
    """

    symbol: str
    ratio: float
    quantity: float
    cash: float


class Delisted(msgspec.Struct, frozen=True, tag="delisted", gc=False):
    """The payout of a holding at its last price because the name left the exchange."""

    symbol: str
    quantity: float
    price: float
    cash: float


class BorrowCharged(msgspec.Struct, frozen=True, tag="borrow", gc=False):
    """The fee for a borrowed (short) position in one session."""

    symbol: str
    cash: float


class InterestCharged(msgspec.Struct, frozen=True, tag="interest", gc=False):
    """The interest on a negative cash balance of a margin account in one session."""

    cash: float


class MarginCalled(msgspec.Struct, frozen=True, tag="margin_call", gc=False):
    """Equity fell below the maintenance requirement. Forced fills follow."""

    equity: float
    required: float


class Marked(msgspec.Struct, frozen=True, tag="marked", gc=False, omit_defaults=True):
    """The end of a session: cash, the value of positions at the marking price, and their sum.

    ``stale`` lists held symbols that had no price in this session and were marked at their last
    price. ``marks`` contains the marking price of every held symbol, in the order in which the
    positions were opened.
    """

    cash: float
    positions: float
    nav: float
    stale: tuple[str, ...] = ()
    marks: dict[str, float] = {}


Event = (
    Deposited
    | Filled
    | Rejected
    | Trimmed
    | Rested
    | Expired
    | DividendPaid
    | SplitApplied
    | Delisted
    | BorrowCharged
    | InterestCharged
    | MarginCalled
    | Marked
)


class StepRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One line of ``events.jsonl``: the decision of a session and its consequences.

    ``opening`` contains the events before the decision (splits, dividends, delistings). ``events``
    contains the market's events and ends with :class:`Marked`. If the agent decides after the open,
    fills of resting orders that happened before the decision come first in ``events``.
    """

    step: int
    session: str
    decided_at: int
    opening: tuple[Event, ...]
    decision: Decision
    events: tuple[Event, ...]


class TurnRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a code episode's ``events.jsonl``: the result of examining one program.

    ``request`` is the hash of the request, ``result`` the benchmark's own record of the findings.
    """

    step: int
    request: str
    result: msgspec.Raw


JournalRecord = StepRecord | TurnRecord
"""A line of the journal of a trading episode or a code episode."""

ENCODER = msgspec.json.Encoder()
STEP_DECODER = msgspec.json.Decoder(StepRecord)
TURN_DECODER = msgspec.json.Decoder(TurnRecord)
