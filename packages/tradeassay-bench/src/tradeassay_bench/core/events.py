"""History: a tagged union of immutable events.

The account's state is their replay.

Signs: ``quantity`` in a :class:`Filled` is positive for a buy and negative for a sale. Every
``cash`` is the exact change of the cash account, so that summing ``cash`` over a journal gives the
balance.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from tradeassay_bench.core.orders import Decision

# The terms an account is kept under; the ledger holds the account to them.


class AccountTerms(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a ledger must know to check an account.

    ``t_plus_1``: what was bought in a session cannot be sold in it. ``margin``: cash and positions
    may be negative, and at every mark equity covers the maintenance rates times the long and short
    exposure, or a margin call of that session says that it does not. A cash account (the default)
    never has negative cash or a negative position.
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
    """Money put into the account at the start, and the terms it is kept under."""

    cash: float
    terms: AccountTerms = AccountTerms()


class Filled(msgspec.Struct, frozen=True, tag="filled", gc=False, omit_defaults=True):
    """A trade.

    ``cash`` = -(quantity x price x multiplier) - fee - tax. ``price`` includes slippage,
    ``reference`` is the price before it. ``forced`` marks a cover or liquidation by the venue.
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
    """An order, or the rest of one, that the venue refused. Nothing is silently corrected."""

    order_id: str
    symbol: str
    reason: RejectReason
    detail: str
    quantity: float | None = None


class Trimmed(msgspec.Struct, frozen=True, tag="trimmed", gc=False):
    """A fill smaller than asked for (volume participation, lots, cash). The cause is named."""

    order_id: str
    symbol: str
    asked: float
    filled: float
    reason: RejectReason


class Rested(msgspec.Struct, frozen=True, tag="rested", gc=False):
    """A good-till-cancelled order, or its unfilled rest, that waits for a later session."""

    order_id: str
    symbol: str
    quantity: float


class Expired(msgspec.Struct, frozen=True, tag="expired", gc=False):
    """A limit or stop order whose price was not reached before it ran out."""

    order_id: str
    symbol: str


class DividendPaid(msgspec.Struct, frozen=True, tag="dividend", gc=False):
    """Cash dividend on the ex-date (negative ``cash`` for a short position)."""

    symbol: str
    per_share: float
    quantity: float
    cash: float


class SplitApplied(msgspec.Struct, frozen=True, tag="split", gc=False):
    """Shares multiplied by ``ratio`` to ``quantity``.

    A fraction that cannot exist is paid out (``cash``).
    """

    symbol: str
    ratio: float
    quantity: float
    cash: float


class Delisted(msgspec.Struct, frozen=True, tag="delisted", gc=False):
    """A holding paid out at its last price because the name left the exchange."""

    symbol: str
    quantity: float
    price: float
    cash: float


class BorrowCharged(msgspec.Struct, frozen=True, tag="borrow", gc=False):
    """Fee for a borrowed (short) position, one session."""

    symbol: str
    cash: float


class InterestCharged(msgspec.Struct, frozen=True, tag="interest", gc=False):
    """Interest on a negative cash balance of a margin account, one session."""

    cash: float


class MarginCalled(msgspec.Struct, frozen=True, tag="margin_call", gc=False):
    """Equity fell below the maintenance requirement. Forced fills follow."""

    equity: float
    required: float


class Marked(msgspec.Struct, frozen=True, tag="marked", gc=False, omit_defaults=True):
    """End of session: cash, the value of positions at the marking price, and their sum.

    ``stale`` names held symbols that had no price this session and were marked at the last one.
    ``marks`` holds the marking price of every held symbol, in the order the positions were opened.
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
    """One line of ``events.jsonl``: what was decided in a session and what came of it.

    ``opening`` holds what happened before the decision (splits, dividends, delistings), ``events``
    what the market made of it, the last being :class:`Marked`. Where a decision is made after the
    open, the fills of orders waiting from earlier sessions come first among ``events`` and precede
    the decision.
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
"""A line of a journal, on either track."""

ENCODER = msgspec.json.Encoder()
STEP_DECODER = msgspec.json.Decoder(StepRecord)
TURN_DECODER = msgspec.json.Decoder(TurnRecord)
